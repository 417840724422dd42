"""weft pack, and every verb with a pack in the place of a folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.cli.models import Translators
from weft.folder.layout import RunFolder
from weft.predict.settings import DecodingSettings
from weft.ship.pack import pack

Command = Callable[..., Any]
OLD = Path(__file__).parents[1] / "folder" / "old"


@pytest.fixture(scope="module")
def models(
    tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, Path]]:
    """A folder without a run for each task, and its pack."""
    here = tmp_path_factory.mktemp("packs")
    found = {}
    for task, source in [
        ("translation", tiny_folder),
        ("classification", OLD / "classifier"),
        ("language-modelling", OLD / "language"),
    ]:
        folder = here / task
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("run"))
        pack(folder, here / f"{task}.weft")
        found[task] = (folder, here / f"{task}.weft")
    return found


Models = dict[str, tuple[Path, Path]]
TEXT = "cat sees dog."
PLANS: dict[str, list[tuple[object, ...]]] = {
    "translation": [
        ("translate", Path(), TEXT, "--json", "--beam-size", "3", "--n-best", "2"),
        ("translate", Path(), TEXT, "--ensemble", Path()),
        ("detect", Path(), Path(), "der Hund"),
        ("inspect", Path(), TEXT, "--json"),
        ("inspect", Path(), Path(), TEXT, "--json"),
        ("selfcheck", Path()),
    ],
    "classification": [
        ("classify", Path(), TEXT, "--all", "--json"),
        ("inspect", Path(), TEXT),
        ("detect", Path(), TEXT),
    ],
    "language-modelling": [
        ("generate", Path(), "--prompt", "A", "--max-new-tokens", "5"),
        ("score", Path(), "lines.txt"),
    ],
}


@pytest.mark.parametrize("task", PLANS)
def test_verbs_write_the_same_of_a_folder_and_of_its_pack(
    command: Command,
    models: Models,
    task: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("A line.\nAnother one.\n")
    folder, one = models[task]
    for plan in PLANS[task]:
        said = []
        for model in (folder, one):
            words = [model if word == Path() else word for word in plan]
            ended = command(*words)
            assert ended.code == 0, ended.err
            assert ended.out
            text = ended.out.decode("utf-8") + "\n".join(ended.messages)
            said.append(text.replace(str(model), "MODEL"))
        assert said[0] == said[1]


@pytest.mark.long
@pytest.mark.usefixtures("need_engine")
def test_a_pack_is_scored_quantized_averaged_and_exported(
    command: Command, models: Models, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    folder, one = models["translation"]
    pairs = write_pairs(20)
    scores = [command("evaluate", model, pairs, "--json") for model in (folder, one)]
    assert scores[0].out == scores[1].out
    ended = command("compare", folder, one, pairs, "--samples", "10")
    assert "both models have the same weights" in ended.out.decode()
    small = [tmp_path / "small", tmp_path / "same"]
    for model, out in zip((folder, one), small, strict=True):
        loss = ("--max-bleu-loss", "100")
        assert command("quantize", model, pairs, "--output", out, *loss).code == 0
        mean = ("average", model, model, "--output", tmp_path / f"{out.name}-mean")
        assert command(*mean).code == 0
    for name in ("small/model.safetensors", "small-mean/model.safetensors"):
        other = name.replace("small", "same")
        assert (tmp_path / name).read_bytes() == (tmp_path / other).read_bytes()
    for out in ("a", "b"):
        model = folder if out == "a" else one
        export = ("export", model, "--to", "web", "--output", tmp_path / out)
        assert command(*export).code == 0
    page = [(tmp_path / out / "model.js").read_bytes() for out in ("a", "b")]
    assert page[0] == page[1]


def test_training_goes_on_from_a_pack(
    command: Command,
    models: Models,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
) -> None:
    """The first weights, and so all later ones, are the folder's."""
    pairs = write_pairs(60)
    settings = [f"--set={one}" for one in (*tiny_settings, "model.d_model=32")]
    settings += ["--set=training.max_steps=2", "--set=data.test_size=0"]
    for model in models["translation"]:
        out = tmp_path / model.name.replace(".", "-")
        ended = command("train", pairs, "--from", model, "--output", out, *settings)
        assert ended.code == 0, ended.err
    weights = [path.read_bytes() for path in tmp_path.glob("*/model.safetensors")]
    assert len(weights) == 2
    assert weights[0] == weights[1]
    assert RunFolder(tmp_path / "translation-weft").words.is_file()


def test_what_was_written_and_what_is_in_it_is_said(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tiny.weft"
    ended = command("pack", tiny_folder, "--output", out)
    assert (ended.code, ended.out) == (0, b"")
    wrote, how = ended.messages
    assert wrote.startswith(f"weft: wrote {out}, 0.")
    assert wrote.endswith("no training text, but README.md names its files")
    assert "in the place of the model's folder" in how


def test_a_pack_that_is_there_is_replaced_only_where_that_is_asked_for(
    command: Command, models: Models, tmp_path: Path
) -> None:
    out = tmp_path / "mine.weft"
    out.write_bytes(b"another model")
    folder, one = models["translation"]
    ended = command("pack", folder, "--output", out)
    assert (ended.code, ended.messages) == (
        2,
        [f"weft: --output {out}: exists already; give another name, or --replace"],
    )
    assert out.read_bytes() == b"another model"
    assert command("pack", folder, "--output", out, "--replace").code == 0
    assert out.read_bytes() == one.read_bytes()


REFUSED = {
    ("finish", "PACK"): "holds no run that could be finished",
    ("evaluate", "PACK"): "holds no run whose held-out text could be taken; give DATA",
    ("plot", "history", "PACK", "--output", "a.png"): "a pack has no run",
    ("average", "PACK", "--output", "new"): "holds 0 checkpoints of a run",
    ("train", "PAIRS", "--output", "PACK"): "is the ending of packs",
    ("train", "PAIRS", "--output", "new.weft"): "give new, of which weft pack",
    ("quantize", "PACK", "PAIRS", "--output", "new.weft"): "give new, of which",
    ("average", "PACK", "PACK", "--output", "new.weft"): "give new, of which",
    ("pack", "PACK", "--output", "new.zip"): "give new.weft",
    ("pack", "none", "--output", "new.weft"): "no such folder",
    ("PACK",): "weft needs a verb before",
    ("translate", "hello", "PACK"): "the model's folder comes first",
    ("inspect", "--demo", "PACK"): "is a pack: leave out one of them",
    ("inspect", "PACK", "PACK"): "is the pack of a model; give a sentence after it",
    ("translate", "lines.txt", "hello"): "is no folder, and no pack",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_a_pack_is_not_for_is_refused_in_a_line(
    command: Command,
    models: Models,
    write_pairs: Callable[[int], str],
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("A line.\n")
    _, one = models["translation"]
    named = {"PACK": str(one), "PAIRS": write_pairs(40)}
    before = one.read_bytes()
    ended = command(*(named.get(word, word) for word in words))
    assert ended.code in (2, 5)
    assert REFUSED[words] in ended.messages[-1]
    assert one.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"lines.txt"}


def test_checkpoints_of_a_pack_are_none(command: Command, models: Models) -> None:
    _, one = models["translation"]
    ended = command("inspect", one, TEXT, "--checkpoints")
    assert ended.code == 0
    assert "has kept no earlier step" in ended.err + ended.out.decode()


TERMS = "source\ttarget\ncat\tKater\n"
UNITS = "fish wants mouse.\tEs ist 12 Uhr.\n"
SOURCES = "cat sees dog.\nfish wants mouse.\nbird knows cat.\n"


@pytest.fixture
def along(
    command: Command, models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """The folder, and a pack of it with a glossary and a memory, which lie beside it here."""
    monkeypatch.chdir(tmp_path)
    Path("terms.tsv").write_text(TERMS)
    Path("old.en-de.tsv").write_text(UNITS)
    Path("a.txt").write_text(SOURCES)
    Path("a.html").write_text("<p>fish wants <b>mouse</b>.</p><p>cat sees dog.</p>")
    folder, _ = models["translation"]
    pair = ("--glossary", "terms.tsv", "--memory", "old.en-de.tsv")
    ended = command("pack", folder, "--output", "along.weft", *pair)
    assert ended.code == 0
    assert "as text a glossary of 1 line and a memory of 1 line;" in ended.messages[0]
    return folder, Path("along.weft")


PAIR = ("--glossary", "terms.tsv", "--memory", "old.en-de.tsv")
USED = "weft: along.weft: translates with its glossary (1 term) and its memory (1 unit)"


def test_translate_takes_what_comes_along(
    command: Command, along: tuple[Path, Path]
) -> None:
    folder, one = along
    by_files = command("translate", folder, "--input", "a.txt", *PAIR)
    by_pack = command("translate", one, "--input", "a.txt")
    plain = command("translate", folder, "--input", "a.txt")
    assert by_pack.lines == by_files.lines != plain.lines
    assert USED in by_pack.messages
    without = command(
        "translate", one, "--input", "a.txt", "--no-glossary", "--no-memory"
    )
    assert without.lines == plain.lines
    assert USED not in without.messages
    Path("terms.tsv").write_text("cat\tHund\n")
    other = ("--glossary", "terms.tsv")
    one_file = command("translate", one, "--input", "a.txt", *other, "--no-memory")
    assert (
        one_file.lines == command("translate", folder, "--input", "a.txt", *other).lines
    )
    sampled = command("translate", one, "cat sees dog.", "--temperature", "1")
    assert sampled.code == 0
    assert (
        sampled.messages[0] == "weft: along.weft: translates with its memory (1 unit)"
    )


def test_a_document_takes_what_comes_along(
    command: Command, along: tuple[Path, Path]
) -> None:
    folder, one = along
    assert command("translate", folder, "a.html", *PAIR, "--output", "b.html").code == 0
    ended = command("translate", one, "a.html", "--output", "c.html")
    assert USED in ended.messages
    assert Path("b.html").read_text() == Path("c.html").read_text()


def test_what_comes_along_decides_whether_an_output_is_continued(
    along: tuple[Path, Path],
) -> None:
    folder, one = along
    facts = []
    for model, leaves in ((folder, False), (one, False), (one, True)):
        asked = Translators(model, [], "float32", "auto", (), (), leaves, leaves)
        facts.append(asked.facts("input", DecodingSettings(), asked.open()))
    keys = ("glossaries", "memories")
    own = ["the pack's"]
    assert [[fact[key] for key in keys] for fact in facts] == [
        [[], []],
        [own, own],
        [[], []],
    ]
    assert facts[0]["model"] != facts[1]["model"] == facts[2]["model"]


def test_evaluate_scores_the_terms_that_come_along(
    command: Command, along: tuple[Path, Path], write_pairs: Callable[[int], str]
) -> None:
    folder, one = along
    pairs = write_pairs(12)
    by_files = command("evaluate", folder, pairs, "--glossary", "terms.tsv")
    by_pack = command("evaluate", one, pairs)
    plain = command("evaluate", folder, pairs)
    same = [line for line in by_pack.lines if not line.startswith("by ")]
    assert same == [line for line in by_files.lines if not line.startswith("by ")]
    assert any("glossary" in line for line in by_pack.lines)
    assert command("evaluate", one, pairs, "--no-glossary").lines == plain.lines
    assert command("evaluate", one, pairs, "--mbr", "2").code == 0


TWICE = {
    ("translate", "along.weft", "x", "--no-glossary", "--glossary", "terms.tsv"): "--glossary and --no-glossary",
    ("translate", "along.weft", "x", "--no-memory", "--memory", "old.en-de.tsv"): "--memory and --no-memory",
    ("evaluate", "along.weft", "old.en-de.tsv", "--no-glossary", "--glossary", "terms.tsv"): "exclude each other",
    ("pack", "along.weft", "--output", "b.weft", "--glossary", "none.tsv"): "--glossary none.tsv: no such file",
    ("pack", "along.weft", "--output", "b.weft", "--memory", "none.tmx"): "--memory none.tmx: no such file",
    ("pack", "classifier", "--output", "b.weft", "--memory", "old.en-de.tsv"): "cannot translate: leave out --memory",
}  # fmt: skip


@pytest.mark.usefixtures("along")
def test_options_that_take_each_other_back_are_refused(
    command: Command, models: Models
) -> None:
    for words, said in TWICE.items():
        named = {"classifier": models["classification"][1]}
        ended = command(*(named.get(word, word) for word in words))
        assert ended.code == 2
        assert said in ended.messages[-1]
        assert not Path("b.weft").exists()
