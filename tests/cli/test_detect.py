"""weft detect: the language of each text, by the models of one folder or several."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.folder import durable
from weft.folder.layout import LANGUAGES

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of French texts."""
    here = tmp_path_factory.mktemp("reviews")
    words = ("le chat", "un chien", "la maison", "cette rue")
    rows = [f"{words[i % 4]} n'est pas {i % 7},l{i % 2}" for i in range(160)]
    text = here / "rows.csv"
    text.write_text("text,label\n" + "\n".join(rows) + "\n")
    small = ("d_model=8", "d_ff=8", "num_heads=2", "num_encoder_layers=1")
    settings = [
        *(f"model.{one}" for one in small),
        "data.lang=fr",
        "training.max_steps=1",
        "training.kernels=torch",
        "training.precision=float32",
    ]
    weft.train(
        out=here / "model",
        recipe="classify-modern",
        train=str(text),
        settings=settings,
        quiet=True,
    )
    return here / "model"


def named(folder: Path, tmp_path: Path, config: dict[str, Any]) -> Path:
    """Copy a folder as an earlier version would have written it, with other keys of its config."""
    out = tmp_path / "earlier"
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("run", LANGUAGES))
    own = durable.read_json(out / "config.json")
    durable.write_json(out / "config.json", own | config)
    manifest = durable.read_json(out / "manifest.json")
    durable.write_manifest(
        out, [name for name in manifest["files"] if name != LANGUAGES]
    )
    return out


def test_a_line_for_each_text_with_code_and_confidence(
    command: Command, tiny_folder: Path
) -> None:
    ended = command("detect", tiny_folder, "the cat", "Hund", "", "рыба", "Katze!")
    assert (ended.code, ended.messages) == (0, [])
    found = [line.split("\t") for line in ended.lines]
    assert [code for code, _ in found] == ["en", "de", "und", "und", "de"]
    assert all(0.5 < float(share) <= 1 for _, share in found)


def test_texts_are_read_from_a_file_or_a_pipe(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("cat\nHund\r\n\n", "utf-8")
    out = tmp_path / "out.txt"
    ended = command(
        "detect", tiny_folder, "--input", tmp_path / "in.txt", "--output", out
    )
    assert (ended.code, ended.out) == (0, b"")
    piped = command("detect", tiny_folder, stdin=b"cat\nHund\n\n")
    assert out.read_bytes() == piped.out
    assert [line.split("\t")[0] for line in piped.lines] == ["en", "de", "und"]


def test_json_has_the_confidence_of_every_language(
    command: Command, tiny_folder: Path
) -> None:
    ended = command("detect", tiny_folder, "Hund", "12", "--json")
    dog, number = map(json.loads, ended.lines)
    assert [*dog["languages"]] == ["de", "en"]
    assert dog["language"] == "de"
    assert dog["confidence"] == dog["languages"]["de"] > 0.9
    assert number == {
        "language": "und",
        "confidence": 1.0,
        "languages": {"de": 0.0, "en": 0.0},
    }


def test_several_folders_tell_the_languages_of_all(
    command: Command, tiny_folder: Path, reviews: Path
) -> None:
    texts = ("the cat", "der Hund", "le chat")
    both = command("detect", tiny_folder, reviews, *texts)
    assert [line[:2] for line in both.lines] == ["en", "de", "fr"]
    swapped = command("detect", reviews, tiny_folder, *texts)
    assert swapped.lines == both.lines
    alone = command("detect", reviews, "la maison", "狗", "--json")
    assert [json.loads(line)["language"] for line in alone.lines] == ["fr", "und"]


def test_a_model_says_it_from_python(tiny_folder: Path, reviews: Path) -> None:
    found = weft.load(tiny_folder).detect("der Hund")
    assert [code for code, _ in found] == ["de", "en"]
    assert found[0][1] > 0.9
    assert weft.load(reviews).detect("la maison")[0][0] == "fr"


def test_what_is_no_model_is_refused(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("detect", tmp_path, "x")
    assert (ended.code, len(ended.messages)) == (5, 1)
    assert "not a Weft model folder" in ended.messages[0]
    ended = command("detect", tiny_folder, tmp_path, "x")
    assert (ended.code, "not a Weft model folder" in ended.messages[0]) == (5, True)
    # a folder that was mistyped is no text
    ended = command("detect", tiny_folder, tiny_folder.parent / "modle", "x")
    assert (ended.code, len(ended.messages)) == (5, 1)
    assert "modle: no such folder; did you mean" in ended.messages[0]
    assert command("detect", tiny_folder, "and/or").code == 0
    ended = command("detect", tiny_folder, "x", "--input", "missing.txt")
    assert ended.code == 2


def test_a_folder_of_an_earlier_version_is_told_by_its_vocabulary(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = named(tiny_folder, tmp_path, {})
    ended = command("detect", folder, "the cat", "Hund", "рыба")
    assert [line[:3].strip() for line in ended.lines] == ["en", "de", "und"]
    (note,) = ended.messages
    assert "told by its vocabulary alone, less surely" in note


def test_a_model_that_names_no_language_says_how_to_name_it(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = named(tiny_folder, tmp_path, {"src_lang": "und", "tgt_lang": "und"})
    ended = command("detect", folder, "cat")
    assert ended.lines == ["und\t1.0000"]
    (note,) = ended.messages
    assert "names no language; name it in training (--set data.src_lang" in note


def test_pytorch_is_not_loaded(tiny_folder: Path) -> None:
    code = (
        "import sys\nfrom weft.__main__ import main\n"
        "sys.argv = ['weft', 'detect', sys.argv[1], 'Hund']\n"
        "try:\n    main()\nexcept SystemExit:\n    print('torch' in sys.modules)\n"
    )
    order = [sys.executable, "-c", code, str(tiny_folder)]
    done = subprocess.run(order, capture_output=True, text=True, check=True)
    assert done.stdout.split()[::2] == ["de", "False"]
