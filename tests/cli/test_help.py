"""The help: groups, examples, no words of Python; and what is said of what is not there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from weft.cli import app
from weft.cli.examples import EXAMPLES, GROUPS, PAGES, RESEARCH, VALUES
from weft.cli.hints import INSTEAD, LANGUAGES, OPTIONS
from weft.data.formats.registry import FILE_TYPES

Command = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
VERBS = GROUP.commands
PYTHON = re.compile(r"<|>|list\[|\bint\b|\bstr\b|None|Path\b|\bINTEGER\b|stray|\[-")


def options_of(verb: str) -> set[str]:
    return {name for parameter in VERBS[verb].params for name in parameter.opts}


def test_every_verb_stands_under_one_heading_with_an_example() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(VERBS)
    assert {verb for verb in VERBS if not EXAMPLES.get(verb)} == set()
    for verb, examples in EXAMPLES.items():
        for example in examples:
            assert example.split()[:2] == ["weft", verb]
            assert {
                word for word in example.split() if word.startswith("--")
            } <= options_of(verb), example


def test_the_list_of_verbs_says_whole_sentences() -> None:
    assert {
        name: verb.short_help
        for name, verb in VERBS.items()
        if not verb.short_help.endswith(".")
    } == {}


def test_the_pages_that_the_help_names_exist() -> None:
    named = [
        page
        for pages in PAGES.values()
        for page in re.findall(r"docs/[\w-]+\.md", pages)
    ]
    assert named
    assert [page for page in named if not (ROOT / page).exists()] == []
    assert set(PAGES) <= set(VERBS)


def test_a_page_that_is_named_for_a_verb_speaks_of_it() -> None:
    """The section that the help names, or the page, has the verb's command."""
    silent = []
    for verb, pages in PAGES.items():
        for page, anchor in re.findall(r"(docs/[\w-]+\.md)(?:#([\w-]+))?", pages):
            text = (ROOT / page).read_text("utf-8")
            sections = re.split(r"^#+ ", text, flags=re.MULTILINE)
            if anchor:
                chosen = [one for one in sections if anchor_of(one) == anchor]
                assert chosen, (verb, page, anchor)
                text = chosen[0]
            is_said = re.search(rf"weft {verb}\b", text) or page == "docs/recipes.md"
            if not is_said:
                silent.append((verb, page, anchor))
    assert silent == []


def test_every_form_of_pairs_is_named() -> None:
    [data] = [one for one in VERBS["train"].params if one.name == "data"]
    listed = re.search(r"pairs \(([^()]*), or two files as a,b\)", str(data.help))
    assert listed is not None
    in_help = {name.casefold() for name in listed[1].split(", ")}
    in_registry = {
        kind.name
        for kind in FILE_TYPES.values()
        if kind.read_pairs and not kind.is_text
    }
    missing = "a format of pairs is in the help of `weft train` (cli/train.py) or in the registry, not in both"
    assert in_help == in_registry, missing


def anchor_of(section: str) -> str:
    title = section.partition("\n")[0].lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def test_examples_fit_in_sixty_columns() -> None:
    examples = [example for several in EXAMPLES.values() for example in several]
    assert [line for line in examples if len(line) > 58] == []


def test_what_is_set_apart_exists() -> None:
    for verb, names in RESEARCH.items():
        assert names <= options_of(verb)
    assert set(VALUES) <= {name for verb in VERBS for name in options_of(verb)}


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_speaks_no_python_and_keeps_to_the_width(
    command: Command, monkeypatch: pytest.MonkeyPatch, verb: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = command(*verb.split(), "--help").out.decode()
    assert PYTHON.findall(text) == []
    prose = [line for line in text.split("\n") if not line.startswith("  weft ")]
    assert max(map(len, prose)) <= min(columns, 100)
    assert "\x1b" not in text


def test_options_for_research_stand_below_the_others(command: Command) -> None:
    text = command("translate", "--help").out.decode()
    usual, research = text[text.index("\nOptions:") :].split("\nFor research:\n")
    assert all(f"  {name}" in usual for name in ("--input", "--beam-size", "--n-best"))
    assert all(f"  {name} " in research for name in RESEARCH["translate"])
    assert "--output PATH" in usual
    assert "--out " not in text


def test_a_second_name_is_taken_and_not_shown(command: Command) -> None:
    for asked in (["--out", "x.pdf"], ["--out=x.pdf"], ["--output", "x.pdf"]):
        ended = command("inspect", "m", "text", *asked)
        assert (
            ended.code,
            ended.messages[0].startswith("weft: x.pdf: the name must end in"),
        ) == (2, True)
    ended = command("translate", "m", "--", "--out")
    assert ended.code == 5, "behind -- it is a text"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("server", "weft serve FOLDER serves models over HTTP"),
        ("zip", "weft pack FOLDER --output model.weft"),
        ("predict", "weft translate, weft classify or weft generate"),
        ("fit", "weft train DATA trains a model"),
        ("eval", "weft evaluate FOLDER DATA"),
        ("finetune", "--from FOLDER"),
        ("chat", "weft generate FOLDER --prompt TEXT"),
        ("convert", "weft export writes a model"),
        ("exprt", "did you mean weft export?"),
        ("serv", "did you mean weft serve?"),
        ("trane", "did you mean weft train?"),
        ("transalte", "did you mean weft translate?"),
        ("qwertz", "weft --help lists them"),
    ],
)
def test_a_verb_that_is_not_there(command: Command, word: str, said: str) -> None:
    ended = command(word, "x", "--option")
    assert (ended.code, ended.out, len(ended.messages)) == (2, b"", 1)
    assert ended.messages[0].startswith(
        f"weft: weft has no {'' if word in INSTEAD or word == 'exprt' else 'verb '}"
    )
    assert said in ended.messages[0]


def test_a_file_or_folder_where_a_verb_belongs(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "memory.tmx").write_text("<tmx>")
    ended = command(tmp_path / "memory.tmx")
    assert (ended.code, f"weft train {tmp_path}/memory.tmx" in ended.err) == (2, True)
    assert f"weft translate {tmp_path} TEXT" in command(tmp_path).err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--epochs", "3"], "--set training.max_steps=2000"),
        (["train", "--lr", "0.1"], "--set training.learning_rate=0.001"),
        (["train", "--lr=0.1"], "--set training.learning_rate=0.001"),
        (["train", "--batch-size", "8"], "--set batches.batch_size=..."),
        (["train", "--gpu"], "a GPU is used where PyTorch finds one"),
        (["train", "--dropout", "0.2"], "--set model.dropout=..."),
        (["train", "--hidden-size", "8"], "--set model.d_model=..."),
        (["train", "--outptu", "x"], "did you mean --output?"),
        (["translate", "--beam", "3"], "did you mean --beam-size?"),
        (["inspect", "m", "t", "--qwertz"], "see weft inspect --help"),
        (["train", "--src", "en"], "--set data.src_lang=en"),
        (["train", "--tgt", "de"], "--set data.tgt_lang=de"),
        (
            ["check", "x.tsv", "--language", "de"],
            "--set data.src_lang=en --set data.tgt_lang=de",
        ),
        (["translate", "m", "--src", "en"], "the languages that it was trained on"),
        (["evaluate", "m", "--lang", "de"], "the languages that it was trained on"),
        (["translate", "m", "--from", "de"], "the languages that it was trained on"),
        (
            ["translate", "m", "--lr", "1"],
            "decided when a model is trained: --set training.learning_rate",
        ),
        (
            ["inspect", "m", "t", "--kernels", "torch", "--output", "a.html"],
            "what it shows comes from plain NumPy",
        ),
        (
            ["diagnose", "m", "--kernels", "torch"],
            "only weft translate, classify, generate, score and evaluate have it",
        ),
        (["train", "--kernels", "torch"], "--set training.kernels=..."),
        (
            ["classify", "m", "--dropout", "0"],
            "decided when a model is trained: it is a key of the recipe",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_option_that_is_not_there(
    command: Command, arguments: list[str], said: str
) -> None:
    ended = command(*arguments)
    assert (ended.code, ended.out, len(ended.messages)) == (2, b"", 1)
    name = next(word for word in arguments if word.startswith("--")).partition("=")[0]
    assert ended.messages[0].startswith(
        f"weft: weft {arguments[0]} has no option {name}"
    )
    assert said in ended.messages[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "translate m --beam-size 0 x",
            "--beam-size 0: must be a whole number of at least 1",
        ),
        (
            "translate m --beam-size=many x",
            "--beam-size many: must be a whole number of at least 1",
        ),
        (
            "plot positions --d-model 5000 --output x.png",
            "--d-model 5000: must be a whole number from 2 to 1,024",
        ),
        ("train --minutes 0", "--minutes 0: must be a number of at least 0.1"),
        ("translate m --length-penalty x", "--length-penalty x: must be a number"),
        (
            "plot hitsory --output x.png",
            (
                "WHAT hitsory: must be 'positions', 'mask', 'smoothing', 'schedule' or 'history'; "
                "did you mean 'history'?"
            ),
        ),
        (
            "plot attention --output x.png",
            (
                "WHAT attention: must be 'positions', 'mask', 'smoothing', 'schedule' or 'history'; "
                "weft inspect FOLDER TEXT --output page.html draws what a model does with a text"
            ),
        ),
        ("translate m --beam-size", "--beam-size needs a value"),
        ("train --verbose=3", "--verbose takes no value"),
        ("plot history", "weft plot needs --output (output file, .png or .svg)"),
        ("translate", "weft translate needs FOLDER (a model folder, or a pack of one)"),
        ("inspect", "weft inspect needs FOLDER (a model folder), or --demo"),
        ("inspect m", "weft inspect needs TEXTS (a sentence, or several) after m"),
        (
            "export --to web --output site",
            "weft export needs FOLDER (a model folder), or --demo",
        ),
        (
            "compare m",
            "weft compare needs SECOND (another model folder, for the same task)",
        ),
        (
            "inspect m a dog --output x.html",
            "unexpected 'dog': weft inspect takes FOLDER TEXTS...; put a text with spaces in quotes",
        ),
    ],
)
def test_wrong_arguments_are_told_in_words_of_ours(
    command: Command, arguments: str, said: str
) -> None:
    verb, *others = arguments.split()
    ended = command(verb, *others)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [f"weft: {said}; see weft {verb} --help"]


def test_hints_are_of_what_is_not_there_and_name_what_is() -> None:
    assert set(INSTEAD) & set(VERBS) == set()
    common = set.intersection(
        *(options_of(verb) for verb in ("train", "translate", "check"))
    )
    assert set(OPTIONS | LANGUAGES) & common == set()
    for said in [*INSTEAD.values(), *OPTIONS.values(), *LANGUAGES.values()]:
        for verb in re.findall(r"\bweft ([a-z]+)", said):
            assert verb in VERBS, said


@pytest.fixture
def beside_models(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with the models `model` and `runs/memory`, a folder without one, and a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "memory").symlink_to(tiny_folder)
    (tmp_path / "model").symlink_to(tiny_folder)
    (tmp_path / "modell").mkdir()
    (tmp_path / "text.tsv").write_text("a\tb\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["translate", "modle", "x"], "modle: no such folder; did you mean model?"),
        (
            ["evaluate", "./modle", "text.tsv"],
            "modle: no such folder; did you mean model?",
        ),
        (["diagnose", "memroy"], "memroy: no such folder; did you mean runs/memory?"),
        (["finish", "memroy"], "memroy: no such folder; did you mean runs/memory?"),
        (
            ["selfcheck", "qwertz"],
            "qwertz: no such folder; give the folder that `weft train` wrote",
        ),
        (
            ["translate", "x " * 3000],
            f"{'x ' * 100}: no such folder; give the folder that `weft train` wrote",
        ),
        (
            ["train", "text.tsv", "--from", "mdel"],
            "mdel: no such folder; did you mean model?",
        ),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("beside_models")
def test_a_model_that_is_not_there_brings_the_like_ones(
    command: Command, arguments: list[str], said: str
) -> None:
    ended = command(*arguments)
    assert (ended.code, ended.messages) == (5, [f"weft: {said}"])


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["translate", "A dog.", "model"], "weft translate model 'A dog.'"),
        (
            ["classify", "a", "b", "runs/memory", "--json"],
            "weft classify runs/memory a b",
        ),
        (["evaluate", "text.tsv", "model"], "weft evaluate model text.tsv"),
        (
            ["inspect", "A dog.", "model", "--output", "x.html"],
            "weft inspect model 'A dog.'",
        ),
        (["score", "text.tsv", "model"], "weft score model text.tsv"),
        (
            ["quantize", "text.tsv", "model", "--output", "x"],
            "weft quantize model text.tsv",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("beside_models")
def test_the_folder_of_a_model_behind_its_text(
    command: Command, arguments: list[str], right: str
) -> None:
    ended = command(*arguments)
    assert (ended.code, ended.messages) == (
        2,
        [f"weft: the model's folder comes first: {right}"],
    )


@pytest.mark.parametrize(
    "more", [[], ["--recipe", "lm-modern"], ["--set", "task=classification"]], ids=str
)
@pytest.mark.parametrize("verb", ["train", "check"])
def test_of_a_text_that_is_missing_nothing_else_is_said(
    command: Command, tmp_path: Path, verb: str, more: list[str]
) -> None:
    ended = command(verb, tmp_path / "missing.csv", *more)
    assert (ended.code, ended.out) == (3, b"")
    assert ended.messages == [f"weft: {tmp_path / 'missing.csv'}: no such file"]
