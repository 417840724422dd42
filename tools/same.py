"""Whether a change changes nothing: `make same BASE=<commit>`, or `python tools/same.py <commit>`.

Trains every packaged recipe, made tiny, with native and with plain kernels, by the sources of the
base commit and by those here; then translates, generates, classifies, scores and evaluates. Final
weights, losses, texts, scores and labels must be equal to the last bit. Prints what differs and
exits with 1; exits with 0 where all is the same.

The base stands in a git worktree under build/same, with an environment of its own, which takes the
packages of this one where both pin the same. Both sides run on this machine in this call, each run
on one thread.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "same"
KERNELS = ("native", "torch")
STEPS = 6
TEXT = "Anna has a Zzz. The old man reads a book."

# What was renamed, as {name here: name there}. A base that does not know the first is asked by the
# second.
RENAMED_KEYS: dict[str, str] = {}
RENAMED_RECIPES: dict[str, str] = {}
RENAMED_FILES: dict[str, str] = {}

# What a run's metrics tell of the clock and of this processor; all else must be equal.
CLOCK = {
    "tokens_per_second",
    "peak_share",
    "data_wait_share",
    "seconds",
    "seconds_left",
    "evaluation_seconds",
}

VERBS = {
    "translation": (
        (
            "translate",
            "MODEL",
            TEXT,
            "",
            "--json",
            "--alignments",
            "--beam-size",
            "4",
            "--n-best",
            "2",
        ),
        ("translate", "MODEL", TEXT, "--json", "--beam-size", "1"),
        ("translate", "MODEL", TEXT, "--json", "--temperature", "1", "--n-best", "2"),
        ("translate", "MODEL", "--input", "LINES", "--json"),
        ("detect", "MODEL", TEXT, "Das Haus ist alt.", "那个老人在看书。", "--json"),
        ("detect", "MODEL", "--input", "LINES", "--json"),
        ("evaluate", "MODEL", "TEST", "--json"),
    ),
    "language-modelling": (
        ("generate", "MODEL", "--prompt", "Anna", "--json"),
        ("generate", "MODEL", "--prompt", "Anna", "--json", "--temperature", "0"),
        ("score", "MODEL", "TEST", "--json"),
        ("evaluate", "MODEL", "TEST", "--json"),
    ),
    "classification": (
        ("classify", "MODEL", TEXT, "Zzz", "--json", "--all"),
        ("classify", "MODEL", "--input", "TEST", "--json"),
        ("evaluate", "MODEL", "TEST", "--json"),
    ),
}

Case = dict[str, Any]  # recipe, task, texts, settings
Results = dict[str, Any]  # by "recipe, kernels: what"


def main() -> None:
    """Compare these sources with those of a commit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="RECIPE", help="these recipes alone"
    )
    asked = parser.parse_args()
    started = time.perf_counter()
    commit = resolve(asked.base)
    base = checkout(commit)
    plan = write_plan(asked.only)
    there, here = run_sides(plan, {commit: base, "here": ROOT})
    differing = differences(there, here)
    for line in differing:
        print(line)
    minutes = (time.perf_counter() - started) / 60
    print(
        f"{len(here):,} results beside those of {commit}, {minutes:.1f} minutes: {len(differing)} differ"
    )
    sys.exit(1 if differing or not here else 0)


# --- the base -------------------------------------------------------------------------------------


def resolve(name: str) -> str:
    """Return a commit's short hash. Exits where git knows no such commit."""
    order = ["git", "rev-parse", "--short=10", f"{name}^{{commit}}"]
    found = subprocess.run(order, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"same: {name}: git knows no such commit here")
    return found.stdout.strip()


def checkout(commit: str) -> Path:
    """Check a commit out in a worktree of its own, with an environment; one that is there serves
    again.
    """
    root = WORK / commit
    if not (root / "src").is_dir():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        order = [
            "git",
            "worktree",
            "add",
            "--quiet",
            "--detach",
            "--force",
            str(root),
            commit,
        ]
        subprocess.run(order, cwd=ROOT, check=True)
    if not python_of(root).exists():
        make_environment(root)
    return root


def python_of(root: Path) -> Path:
    """Return the Python of a checkout; that of here is the one that runs this."""
    return Path(sys.executable) if root == ROOT else root / ".venv" / "bin" / "python"


def make_environment(root: Path) -> None:
    """Give a checkout its .venv: with the packages of this one where it pins the same, else
    installed anew.

    Packages are taken by a path file. Python reads no path files of a folder that one names, so
    that an editable install of these sources does not come along.
    """
    if (root / "constraints.txt").read_bytes() != (
        ROOT / "constraints.txt"
    ).read_bytes():
        subprocess.run(["make", ".venv/ready"], cwd=root, check=True)
        return
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True
    )
    (own,) = (root / ".venv" / "lib").glob("python*/site-packages")
    (own / "packages.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("-packages"))
    )


# --- the plan: what both sides run ----------------------------------------------------------------


def write_plan(only: Sequence[str]) -> Path:
    """Write the texts and the cases, one a packaged recipe, to build/same."""
    from shrunk import sizes_shrunk
    from weft.recipes.file import load_recipe, recipe_names

    texts = write_texts(WORK / "texts")
    cases: list[Case] = []
    for name in recipe_names():
        if only and name not in only:
            continue
        recipe = load_recipe(name)
        data = recipe.data.model_dump()
        pair = f"{data.get('src_lang')}-{data.get('tgt_lang')}"
        ending = {
            "translation": f"{pair}.tsv",
            "language-modelling": "txt",
            "classification": "csv",
        }[recipe.task]
        settings = {**sizes_shrunk(recipe), "training.max_steps": STEPS}
        # a built-in text, short enough as it is
        is_small = data["builtin"] not in ("none", "everyday", None)
        if data["builtin"] == "everyday":
            settings["data.builtin"] = "none"
        cases.append(
            {
                "recipe": name,
                "task": recipe.task,
                "train": None if is_small else str(texts / f"train.{ending}"),
                "test": str(texts / f"test.{ending}"),
                "lines": str(texts / f"lines.{data.get('src_lang')}"),
                "settings": settings,
            }
        )
    plan = WORK / "plan.json"
    plan.write_text(json.dumps(cases, indent=1), "utf-8")
    return plan


def write_texts(folder: Path) -> Path:
    """Write pairs, documents and rows from the built-in corpus, of each a part to train on and one
    to test.
    """
    from weft.data import builtin

    folder.mkdir(parents=True, exist_ok=True)
    for src, tgt in (("en", "de"), ("en", "zh"), ("de", "en")):
        splits = builtin.pairs("everyday", src, tgt)
        for part, rows in (("train", splits.train[:160]), ("test", splits.test[:12])):
            lines = [f"{a}\t{b}\n" for a, b in rows]
            (folder / f"{part}.{src}-{tgt}.tsv").write_text("".join(lines), "utf-8")
        (folder / f"lines.{src}").write_text(
            "".join(f"{a}\n" for a, _ in splits.test[:12]), "utf-8"
        )
    splits = builtin.pairs("everyday", "en", "de")
    for part, rows in (("train", splits.train[:160]), ("test", splits.test[:12])):
        (folder / f"{part}.txt").write_text(
            "\n\n".join(a for a, _ in rows) + "\n", "utf-8"
        )
        table = [f'"{a}",English\n"{b}",German\n' for a, b in rows]
        (folder / f"{part}.csv").write_text("text,label\n" + "".join(table), "utf-8")
    return folder


# --- one side -------------------------------------------------------------------------------------


def run_sides(plan: Path, roots: dict[str, Path]) -> list[Results]:
    """Run the plan in each checkout with each kind of kernels, two processes at a time; return
    their results.
    """
    orders = [
        (name, root, kernels) for kernels in KERNELS for name, root in roots.items()
    ]
    running: list[tuple[subprocess.Popen[bytes], Path]] = []
    results: dict[str, Results] = {name: {} for name in roots}
    for name, root, kernels in orders:
        folder = WORK / "results" / name / kernels
        folder.mkdir(parents=True, exist_ok=True)
        running.append((start_side(root, plan, folder, kernels), folder))
        if len(running) == len(roots):
            for process, _ in running:
                process.wait()
            running = []
    for name, _, kernels in orders:
        file = WORK / "results" / name / kernels / "results.json"
        if not file.is_file():
            sys.exit(
                f"same: {name} with {kernels} kernels gave no results; see {file.parent / 'log'}"
            )
        results[name] |= json.loads(file.read_text("utf-8"))
    return list(results.values())


def start_side(
    root: Path, plan: Path, folder: Path, kernels: str
) -> subprocess.Popen[bytes]:
    """Start a process that runs the plan with a checkout's sources; what it says goes to `log` in
    the folder.
    """
    (folder / "results.json").unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "OMP_NUM_THREADS": "1",
        "PYTHONSAFEPATH": "1",
    }
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import same; same.run_side(*sys.argv[1:])"
    order = [
        str(python_of(root)),
        "-c",
        code,
        str(root),
        str(plan),
        str(folder),
        kernels,
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            order, cwd=folder, env=environment, stdout=log, stderr=log
        )


def run_side(root: str, plan: str, folder: str, kernels: str) -> None:
    """Run the plan with the sources of `root`, in this process, and write results.json; models lie
    in `folder`.
    """
    import shutil

    import weft

    assert Path(weft.__file__).is_relative_to(root), f"{weft.__file__} is not of {root}"
    results: Results = {}
    for case in json.loads(Path(plan).read_text("utf-8")):
        name = case["recipe"]
        shutil.rmtree(name, ignore_errors=True)
        for what, value in run_case(Path(root), case, kernels).items():
            results[f"{name}, {kernels}: {what}"] = value
    Path(folder, "results.json").write_text(
        json.dumps(results, indent=1, ensure_ascii=False), "utf-8"
    )


def run_case(root: Path, case: Case, kernels: str) -> Results:
    """Train one recipe and use the model; return its weights' hashes, losses, and what each verb
    wrote.
    """
    model = Path(case["recipe"])
    recipe = case["recipe"]
    if not (root / "src" / "weft" / "recipes" / f"{recipe}.toml").is_file():
        recipe = RENAMED_RECIPES.get(recipe, recipe)
    keys = (root / "docs" / "recipes.md").read_text("utf-8")
    order = [
        "train",
        *([case["train"]] if case["train"] else []),
        "--recipe",
        recipe,
        "--output",
        str(model),
    ]
    for key, value in {**case["settings"], "training.kernels": kernels}.items():
        known = (
            key
            if key in RENAMED_KEYS and f"`{key}`" in keys
            else RENAMED_KEYS.get(key, key)
        )
        order += ["--set", f"{known}={value}"]
    results: Results = {"train": command(order)}
    if results["train"]["code"]:
        return results
    results["weights"] = weights(model)
    results["losses"] = losses(model)
    for verb in VERBS[case["task"]]:
        stands_for = {"MODEL": str(model), "TEST": case["test"], "LINES": case["lines"]}
        words = [stands_for.get(word, word) for word in verb]
        results[" ".join(verb)] = command(words)
    return results


def command(words: Sequence[str]) -> Results:
    """Run `weft WORDS` in this process; return its exit code and standard output. A traceback is
    code -1.
    """
    from weft.__main__ import main as weft_main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.argv = ["weft", *words]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out):
            weft_main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = -1
    out.flush()
    written = out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]
    return {"code": code or 0, "output": written}


def weights(model: Path) -> dict[str, str]:
    """Return the hash of each weight of a model folder."""
    from safetensors import safe_open

    with safe_open(file_of(model, "model.safetensors"), framework="np") as file:
        return {
            name: hashlib.sha256(file.get_tensor(name).tobytes()).hexdigest()
            for name in sorted(file.keys())
        }


def losses(model: Path) -> list[dict[str, Any]]:
    """Return the metrics of a run, without those of the clock."""
    lines = file_of(model, "run/metrics.jsonl").read_text("utf-8").splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if key not in CLOCK}
        for line in lines
    ]


def file_of(model: Path, name: str) -> Path:
    """Return the path of a model folder's file, by its name here or by its name of before."""
    new, old = model / name, model / RENAMED_FILES.get(name, name)
    return new if new.exists() else old


# --- the comparison -------------------------------------------------------------------------------


def differences(there: Results, here: Results) -> list[str]:
    """Return a line for each result that is not the same on both sides, with the first place where
    it is not.
    """
    lines = []
    for name in sorted(there.keys() | here.keys()):
        if name not in here or name not in there:
            lines.append(f"{name}: only {'there' if name in there else 'here'}")
        elif isinstance(here[name], dict) and here[name].get("code"):
            # alike or not, it shows nothing
            lines.append(f"{name}: exit code {here[name]['code']} here")
        elif there[name] != here[name]:
            lines.append(f"{name}: {first_difference(there[name], here[name])}")
    return lines


def first_difference(there: Any, here: Any, where: str = "") -> str:
    """Say where two results part: the key or number of the first unlike part, and both values,
    shortened.
    """
    if isinstance(there, dict) and isinstance(here, dict):
        for key in there.keys() | here.keys():
            if there.get(key) != here.get(key):
                return first_difference(there.get(key), here.get(key), f"{where} {key}")
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for i, (a, b) in enumerate(zip(there, here, strict=True)):
            if a != b:
                return first_difference(a, b, f"{where} {i}")
    if isinstance(there, str) and isinstance(here, str):
        at = next(
            (i for i, (a, b) in enumerate(zip(there, here, strict=False)) if a != b),
            min(len(there), len(here)),
        )
        return f"{where.strip()} from character {at}: {there[at : at + 60]!r} there, {here[at : at + 60]!r} here"
    return f"{where.strip()} {there!r:.60} there, {here!r:.60} here"


if __name__ == "__main__":
    main()
