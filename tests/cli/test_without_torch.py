"""A model of every packaged recipe but the recurrent ones is used without PyTorch; and without the
native library it gives the same.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from shrunk import sizes_shrunk
from weft.data import builtin
from weft.kernels import native
from weft.recipes.file import load_recipe, recipe_names

RECURRENT = [name for name in recipe_names() if "rnn" in name]
NAMES = [name for name in recipe_names() if name not in RECURRENT]
TEXT = "Anna has a book. The old man reads."
Plan = list[list[str]]
Outcome = dict[str, Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of each recipe, and texts to try them on."""
    here = tmp_path_factory.mktemp("models")
    pairs = builtin.pairs("everyday", "en", "de").train[:60]
    lines = "".join(f"{a}\t{b}\n" for a, b in pairs)
    (here / "pairs.tsv").write_text(lines, "utf-8")
    (here / "text.txt").write_text("\n\n".join(a for a, _ in pairs) + "\n", "utf-8")
    table = "".join(f'"{a}",English\n"{b}",German\n' for a, b in pairs)
    (here / "rows.csv").write_text("text,label\n" + table, "utf-8")
    (here / "page.html").write_text(f"<p>{TEXT} <b>{TEXT}</b></p>", "utf-8")
    for name in [*NAMES, RECURRENT[0]]:
        recipe = load_recipe(name)
        settings = sizes_shrunk(recipe) | {"training.max_steps": 2}
        if recipe.task == "translation":
            settings |= {"data.src_lang": "en", "data.tgt_lang": "de"}
        weft.train(
            recipe=name,
            train=str(text_for(name, here)),
            out=here / name,
            settings=[
                f"{k}={v}" for k, v in {**settings, "data.builtin": "none"}.items()
            ],
            allow_bad_data=True,
            quiet=True,
        )
    return here


def text_for(name: str, here: Path) -> Path:
    files = {
        "translation": "pairs.tsv",
        "language-modelling": "text.txt",
        "classification": "rows.csv",
    }
    return here / files[load_recipe(name).task]


def use(name: str, here: Path) -> Plan:
    """The verbs of a model's task; what has one right answer stands first."""
    model = str(here / name)
    page = str(here / "page.html")
    learning = ["inspect", model, TEXT, "--checkpoints", "--json"]
    plans: dict[str, Plan] = {
        "translation": [
            ["translate", model, TEXT],
            ["translate", model, TEXT, "--beam-size", "4", "--n-best", "3"],
            ["translate", model, TEXT, "--ensemble", model],
            ["translate", model, TEXT, "--json", "--alignments"],
            ["translate", model, page, "--json", "--output", f"{model}.html"],
            ["translate", model, TEXT, "--temperature", "1", "--n-best", "2"],
            ["translate", model, TEXT, "--mbr", "4"],
            ["inspect", model, TEXT, "--json"],
            *([[*learning]] if name == "demo" else []),
        ],
        "language-modelling": [
            ["generate", model, "--prompt", "Anna", "--temperature", "0"],
            ["generate", model, "--temperature", "0", "--draft", "prompt"],
            ["generate", model, "--prompt", "Anna"],
            ["score", model, str(here / "text.txt")],
            ["inspect", model, TEXT, "--json"],
        ],
        "classification": [
            ["classify", model, TEXT, "Das ist ein Buch.", "Zzz"],
            ["classify", model, TEXT, "--all", "--json"],
            ["inspect", model, TEXT, "--output", str(here / "x.html")],
        ],
    }
    return plans[load_recipe(name).task]


def has_engine(name: str) -> bool:
    """Whether the engine does a part of a model's work: all but a mean of vectors."""
    recipe = load_recipe(name)
    return getattr(recipe.model, "num_encoder_layers", 1) > 0


def run(kind: str, plan: Plan, here: Path) -> list[Outcome]:
    file = here / "plan.json"
    file.write_text(json.dumps(plan), "utf-8")
    for name in NAMES:  # a document never takes the place of another one
        (here / f"{name}.html").unlink(missing_ok=True)
    child = Path(__file__).with_name("without_torch.py")
    order = [sys.executable, "-W", "error", str(child), kind, str(file)]
    done = subprocess.run(
        order,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[Outcome] = json.loads(done.stdout)
    return found


def test_every_verb_without_pytorch_and_without_the_native_library(
    models: Path,
) -> None:
    plan = [words for name in NAMES for words in use(name, models)]
    by_kind = {kind: run(kind, plan, models) for kind in ("native", "numpy")}
    for kind, ended in by_kind.items():
        for words, one in zip(plan, ended, strict=True):
            assert (one["code"], one["loaded"]) == (0, []), (kind, words, one["err"])
            is_slow = "without native kernels (" in one["err"]
            assert is_slow == (kind == "numpy" and has_engine(Path(words[1]).name))
    has_one_answer = 0
    for words, here, there in zip(plan, *by_kind.values(), strict=True):
        if "--json" in words or {"--temperature", "--mbr"} & set(words) - {"0"}:
            continue
        if words[0] in ("translate", "classify"):
            has_one_answer += 1
            texts = [
                [line.split("\t")[-1] for line in one["out"].split("\n")]
                for one in (here, there)
            ]
            assert texts[0] == texts[1], words
    assert has_one_answer > 12


def test_text_is_written_the_same_without_the_native_library(models: Path) -> None:
    names = [n for n in NAMES if load_recipe(n).task == "language-modelling"]
    plan = [words for name in names for words in use(name, models)[:2]]
    here, there = run("native", plan, models), run("numpy", plan, models)
    assert [one["out"] for one in here] == [one["out"] for one in there]
    # a model of six steps may write nothing but spaces
    assert any(one["out"].strip() for one in here)


def test_a_model_is_packed_and_its_pack_used_without_pytorch(models: Path) -> None:
    folder, pack = str(models / "demo"), str(models / "demo.weft")
    plan = [
        ["pack", folder, "--output", pack],
        ["translate", pack, TEXT],
        ["translate", folder, TEXT],
    ]
    packed, *texts = run("native", plan, models)
    assert [one["code"] for one in (packed, *texts)] == [0, 0, 0]
    assert {"torch", "jaxtyping"}.isdisjoint(packed["loaded"])
    assert texts[0]["out"] == texts[1]["out"]


@pytest.mark.long
def test_graphs_are_written_and_certified_without_pytorch(models: Path) -> None:
    plan = []
    for name in ("demo", "causal-lm", "classify-fast"):
        data = str(text_for(name, models))
        out = str(models / f"{name}-onnx")
        plan.append(["export", str(models / name), data, "--to", "onnx"])
        plan[-1] += ["--output", out]
    for words, one in zip(plan, run("native", plan, models), strict=True):
        assert one["code"] == 0, (words, one["err"])
        assert {"torch", "jaxtyping"}.isdisjoint(one["loaded"])
        assert (Path(words[-1]) / "parity.json").is_file()


@pytest.mark.long
def test_models_are_checked_without_pytorch(models: Path) -> None:
    """Every proof of every task is tried: a translator has seven, each of two lines."""
    proofs = {"translation": 7, "language-modelling": 5, "classification": 3}
    plan = [["selfcheck", str(models / name)] for name in NAMES]
    for name, one in zip(NAMES, run("native", plan, models), strict=True):
        assert (one["code"], one["err"], one["loaded"]) == (0, "", []), (name, one)
        by, *lines = one["out"].split("\n")[:-1]
        engine = "the native engine, " if has_engine(name) else "NumPy, "
        assert by.startswith(f"by     {engine}")
        claims = lines[::2]
        assert len(claims) == proofs[load_recipe(name).task]
        assert all(claim.startswith("holds  ") for claim in claims)


@pytest.mark.long
def test_models_are_evaluated_and_quantized_without_pytorch(models: Path) -> None:
    evaluate = [
        ["evaluate", str(models / name), str(text_for(name, models)), "--json"]
        for name in NAMES
    ]
    name = next(n for n in NAMES if load_recipe(n).task == "translation")
    int8 = str(models / "int8")
    quantize = ["quantize", str(models / name), str(models / "pairs.tsv")]
    rest = ["--output", int8, "--max-bleu-loss", "100"]
    plan = [*evaluate, [*quantize, *rest], ["translate", int8, TEXT]]
    try:
        native.load()
    except native.UnavailableError:
        plan = evaluate
    for words, one in zip(plan, run("native", plan, models), strict=True):
        assert one["code"] == 0, (words, one["err"])
        assert {"torch", "jaxtyping"}.isdisjoint(one["loaded"])
    for words, one in zip(evaluate, run("numpy", evaluate, models), strict=True):
        assert one["code"] == 0, (words, one["err"])


def test_what_needs_pytorch_says_so_in_one_line(models: Path) -> None:
    plan = [
        ["translate", str(models / RECURRENT[0]), TEXT],
        ["translate", str(models / NAMES[0]), TEXT, "--kernels", "torch"],
        ["train", str(models / "pairs.tsv"), "--output", str(models / "new")],
        ["inspect", str(models / RECURRENT[0]), TEXT, "--json"],
    ]
    ended = run("native", plan, models)
    for words, one in zip(plan, ended, strict=True):
        assert one["code"] == 2, (words, one)
        *_, line, end = one["err"].split("\n")
        assert end == ""
        assert "PyTorch" in line
        assert "pip install '.[train]'" in line
        assert "https://download.pytorch.org/whl/cpu" in line
    # before it has read and described the text
    assert ended[2]["err"].count("\n") == 1
    assert not (models / "new").exists()
