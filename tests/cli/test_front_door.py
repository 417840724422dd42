"""The command line as such: its help, its speed, its usage errors, and a run of `weft train` by
signals.
"""

import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from weft.cli import app
from weft.folder.version import installed_version
from weft.training.trainer import Trainer

Command = Callable[..., Any]
USES = ["translate", "generate", "classify", "detect", "serve", "evaluate", "score"]
VERBS = [
    "demo",
    "check",
    "clean",
    "train",
    "finish",
    "sweep",
    *USES,
    "compare",
    "quantize",
    "average",
    "distill",
    "backtranslate",
    "export",
    "inspect",
    "diagnose",
    "selfcheck",
    "plot",
    "pack",
    "push",
]


def test_help_lists_only_verbs_that_work(command: Command) -> None:
    ended = command("--help")
    assert (ended.code, ended.err) == (0, "")
    text = ended.out.decode()
    verbs = text[text.index("Train a model:") :]
    found = [
        match.group(1) for match in re.finditer(r"^  (\w+) {2,}\S", verbs, re.MULTILINE)
    ]
    assert sorted(found) == sorted(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(command: Command, verb: str) -> None:
    for flag in ("--help", "-h"):
        ended = command(verb, flag)
        assert (ended.code, ended.err) == (0, "")
        assert "Usage:" in ended.out.decode()
        assert f"weft {verb}" in ended.out.decode()


@pytest.mark.parametrize("verb", VERBS)
def test_help_on_a_narrow_terminal_has_every_name_in_full(
    command: Command, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = command(verb, "--help").out.decode()
    assert max(map(len, shown.split("\n"))) <= 80
    names = [
        n if n.startswith("-") else n.upper()
        for option in shown_options(verb)
        for n in option.opts
    ]
    assert all(name in shown for name in names)


def shown_options(verb: str) -> list[Any]:
    parameters = typer.main.get_command(app).commands[verb].params
    return [parameter for parameter in parameters if not parameter.hidden]


def test_help_is_quick(process: Command) -> None:
    """Half a second on an idle machine; a busy one is given four times that, in processor time."""
    times, processor = [], []
    for _ in range(3):
        started, spent = time.perf_counter(), sum(os.times()[2:4])
        assert process("--help").code == 0
        times.append(time.perf_counter() - started)
        processor.append(sum(os.times()[2:4]) - spent)
    print(
        f"weft --help: {statistics.median(times):.2f} s, of them {statistics.median(processor):.2f} s computing"
    )
    assert statistics.median(processor) < 2


def test_leaving_looks_nothing_over_once_more() -> None:
    """What makes a verb linger behind its last word, without the clock: the handler that is asked
    runs last.
    """
    code = (
        "import atexit, gc, sys\natexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
        "from weft.__main__ import main\nsys.argv = ['weft', '--version']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[1:] == ["True", ""]


def test_help_loads_nothing_heavy() -> None:
    """What the time above depends on, without the clock."""
    heavy = ("torch", "numpy", "tokenizers", "pydantic", "sacrebleu")
    code = (
        f"import sys, weft, weft.cli; print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"


WITHOUT_MODEL = [
    ["--help"],
    ["trane"],
    ["train", "--nope"],
    ["train", "missing.tsv"],
    ["train", "text.tsv", "--set", "training.max_step=3"],
    ["train", "text.tsv", "--recipe", "nope"],
    ["train", "text.tsv", "--from", "nofolder"],
    ["train", "text.tsv", "--mono", "fr="],
    ["train", "text.tsv", "--mono", "fr=text.tsv@2"],
    ["train", "a.en-de.tsv", "--mono", "fr=text.tsv"],
    ["train", "a.en-de.tsv", "--mono", "de=text.tsv", "--set", "data.directions=both"],
    ["train", "a.en-de.tsv", "--mono", "de=text.tsv", "--from", "translator"],
    ["train"],
    ["check", "text.tsv"],
    ["translate", "nofolder", "x"],
    ["generate", "nofolder"],
    ["classify", "nofolder", "x"],
    ["detect", "nofolder", "x"],
    ["detect", "writer", "nofolder/x"],
    ["evaluate", "nofolder", "text.tsv"],
    ["compare", "nofolder", "nofolder", "text.tsv"],
    ["score", "nofolder"],
    ["quantize", "nofolder", "text.tsv", "--output", "x"],
    ["distill", "nofolder", "text.tsv", "--output", "x"],
    ["inspect", "nofolder", "x", "--output", "x.html"],
    ["diagnose", "nofolder"],
    ["selfcheck", "nofolder"],
    ["plot", "schedule", "--recipe", "nope", "--output", "x.png"],
    ["sweep", "nofile.toml"],
    ["sweep", "rows.toml"],
    ["translate", "writer", "a cat"],
    ["classify", "writer", "a cat"],
    ["generate", "classifier"],
    ["score", "classifier", "text.tsv"],
]


def test_a_wrong_command_is_answered_before_pytorch_is_loaded(tmp_path: Path) -> None:
    """What makes such an answer slow, without the clock; once it is loaded, all later ones fail
    too.
    """
    for text in ("text.tsv", "a.en-de.tsv"):
        (tmp_path / text).write_text("a\tb\n")
    (tmp_path / "rows.toml").write_text('train = "text.tsv"\nrows.a.model.width = 3\n')
    for name, task in (
        ("writer", "language-modelling"),
        ("classifier", "classification"),
        ("translator", "translation"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(f'{{"task": "{task}"}}')
        (tmp_path / name / "manifest.json").write_text("{}")
    code = (
        "import json, sys\nfrom weft.__main__ import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['weft', *arguments]\n"
        "    try: main()\n"
        "    except SystemExit as end: print(end.code, 'torch' in sys.modules, file=sys.__stderr__)\n"
    )
    asked = [sys.executable, "-c", code, json.dumps(WITHOUT_MODEL)]
    done = subprocess.run(
        asked, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    ends = re.findall(r"^(\d+) (True|False)$", done.stderr, re.MULTILINE)
    assert len(ends) == len(WITHOUT_MODEL)
    loaded = [
        asked
        for asked, (_, is_loaded) in zip(WITHOUT_MODEL, ends, strict=True)
        if is_loaded == "True"
    ]
    assert loaded == []
    codes = [int(code) for code, _ in ends]
    of_verbs = dict(
        zip((words[0] for words in WITHOUT_MODEL[:-4]), codes, strict=False)
    )
    assert of_verbs["translate"] == of_verbs["selfcheck"] == 5
    assert of_verbs["plot"] == of_verbs["trane"] == 2
    assert codes[-4:] == [2, 2, 2, 2]  # a model of another task
    inside = {path.name for path in tmp_path.iterdir()}
    files = {"text.tsv", "a.en-de.tsv", "rows.toml"}
    assert inside == {*files, "writer", "classifier", "translator"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["trane"],
        ["train"],
        ["train", "--out"],
        ["distill", "x", "y"],
        ["train", "--out", "x", "--no-such-option"],
        ["translate"],
        ["translate", "x", "--beam-size", "0"],
        ["translate", "x", "--beam-size", "many"],
        ["evaluate"],
    ],
    ids=" ".join,
)
def test_usage_errors(
    command: Command,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = command(*arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert [line.startswith("weft: ") for line in ended.messages] == [True]
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_said(command: Command) -> None:
    ended = command("--version")
    assert (ended.code, ended.out.decode()) == (0, f"weft {installed_version()}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no text to train on"),
        (["--recipe", "no-such"], "neither a file nor a packaged recipe"),
        (["--set", "training.max_step=3"], "did you mean training.max_steps?"),
        (["--set", "training.max_steps"], "write section.key=value"),
        (["--recipe", "demo", "--train", __file__], "the recipe brings its own text"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_train_refuses_in_one_line_before_a_file_is_written(
    command: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = command("train", "--out", tmp_path / "out", *arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert len(ended.messages) == 1
    assert message in ended.messages[0]
    assert not (tmp_path / "out").exists()


def test_a_recipe_file_that_is_misspelt(command: Command, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("{}")
    ended = command("train", "--recipe", tmp_path / "recipe.jsn")
    assert ended.code == 2
    assert ended.messages[0].endswith(f"did you mean {tmp_path / 'recipe.json'}?")


def train_arguments(
    out: Path, text: str, tiny: tuple[str, ...], steps: int
) -> list[str]:
    values = [*tiny, f"training.max_steps={steps}", "training.save_every=1000000"]
    return [
        "train",
        "--train",
        text,
        "--out",
        str(out),
        *(part for value in values for part in ("--set", value)),
    ]


def test_train_speaks_on_standard_error_alone(
    command: Command,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
) -> None:
    arguments = train_arguments(tmp_path / "out", write_pairs(60), tiny_settings, 5)
    ended = command(*arguments)
    assert (ended.code, ended.out) == (0, b"")
    assert ended.messages[-2].startswith("done after 5 steps; the model is in ")
    assert ended.messages[-1].startswith("  weft translate ")
    recipe = json.loads((tmp_path / "out" / "run" / "recipe.json").read_bytes())
    assert recipe["command"].startswith("weft train --train ")
    again = command(*arguments)
    assert (again.code, again.out) == (0, b"")
    assert "is finished" in again.messages[1]


@pytest.mark.long
def test_a_sigterm_stops_a_run_that_goes_on_later(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
) -> None:
    """As SIGINT does: faults/test_training_faults.py, T8."""
    out = tmp_path / "out"
    text = write_pairs(60)
    arguments = train_arguments(out, text, tiny_settings, 1_000_000)
    run = subprocess.Popen(
        [sys.executable, "-m", "weft", *arguments], stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 300
        while (
            not (out / "run" / "metrics.jsonl").exists() and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=300)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 75, err
    verdict = json.loads((out / "run" / "verdict.json").read_bytes())
    assert (verdict["outcome"], verdict["exit_code"]) == ("interrupted", 75)
    last = err.split("\n")[-2]
    step = verdict["step"]
    assert last.startswith(
        f"weft: interrupted after step {step}, which is saved; the same command continues it: weft train"
    )
    assert "Traceback" not in err


def test_an_import_that_makes_something_else_of_ctrl_c_is_left_all_the_same(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def importing() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ImportError("cannot load module more than once per process") from None

    monkeypatch.setattr("weft.__main__._run", importing)
    # a test run in the background ignores it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ended = command("translate")
        assert (ended.code, ended.err) == (
            130,
            "weft: left at once; what was saved before stays\n",
        )
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("given", "turns"),
    [
        ({}, "3000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, None),
    ],
    ids=["as it is", "turns", "policy"],
)
def test_threads_wait_briefly_unless_somebody_decided_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    given: dict[str, str],
    turns: str | None,
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that what the command sets is taken back
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert command("--version").code == 0
    assert os.environ.get("GOMP_SPINCOUNT") == turns


def test_a_run_that_is_left_at_once_says_whether_anything_was_saved(
    command: Command,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = train_arguments(tmp_path / "out", write_pairs(60), tiny_settings, 9)
    take_step = Trainer._take_step

    def leave_at(step: int) -> Any:
        def taking(self: Any) -> None:
            if self.progress.step == step:
                raise KeyboardInterrupt
            take_step(self)

        monkeypatch.setattr(Trainer, "_take_step", taking)
        return command(*arguments, "--set", "training.save_every=4")

    ended = leave_at(3)
    nothing = "nothing was saved yet, and the same command begins again"
    assert (ended.code, ended.messages[-1]) == (130, f"weft: left at once; {nothing}")
    ended = leave_at(5)
    kept = "weft: left at once; what was saved before stays"
    assert (ended.code, ended.messages[-1]) == (130, kept)


def test_a_stopped_run_names_its_whole_command_and_what_makes_a_model_of_it(
    command: Command,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    arguments = train_arguments(out, write_pairs(60), tiny_settings, 9)
    whole = shlex.join(["weft", *map(str, arguments)])
    both = f"the same command continues it: {whole}; to use what is saved: weft finish {out}"
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step == 3:
            os.kill(os.getpid(), signal.SIGINT)
        take_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", taking)
        ended = command(*arguments)
    assert (ended.code, ended.messages[-1]) == (
        75,
        f"weft: interrupted after step 4, which is saved; {both}",
    )
    ended = command("translate", out, "cat sees dog.")
    assert (ended.code, ended.messages) == (
        5,
        [f"weft: {out}: training has not finished; {both}"],
    )
    ended = command("finish", out)
    assert (ended.code, ended.out) == (0, b"")
    assert any(
        line.startswith(f"finished early at step 4 of 9; the model is in {out}")
        for line in ended.messages
    )
    assert command("translate", out, "cat sees dog.").code == 0
    ended = command(*shlex.split(whole)[1:])
    assert ended.messages[-2].startswith("done after 9 steps")


@pytest.mark.parametrize(("given", "threads"), [(None, "1"), ("3", "3")])
def test_numpy_has_one_thread_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    given: str | None,
    threads: str,
) -> None:
    # so that what the command sets is taken back
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", given or "")
    if given is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert command("--version").code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == threads
