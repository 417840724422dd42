"""Documents are mended line by line, lose what cannot be, and do not change again."""

from pathlib import Path

import pytest

from weft.data.clean.cleaned import Cleaned
from weft.data.clean.documents import clean_documents
from weft.data.clean.rules import Choice
from weft.data.clean.writing import Destination, documents_as_file
from weft.data.documents import Documents, Ends
from weft.errors import DataError, UsageError

LINES = [
    f"The {noun} {verb} the {other} near the old mill by the river"
    for noun in ("cat", "dog", "horse", "mouse")
    for verb in ("sees", "hears", "finds", "follows")
    for other in ("bird", "goat", "cow")
]


def clean(
    path: Path, ends: Ends = "blank-line", **asked: list[str]
) -> Cleaned[Documents]:
    choice = Choice.of(
        "language-modelling", asked.get("keep", []), asked.get("drop", [])
    )
    return clean_documents([str(path)], ends, False, choice)


def written(cleaned: Cleaned[Documents], path: Path, ends: Ends = "blank-line") -> Path:
    place = Destination.of(str(path), None, [])
    place.write(documents_as_file(cleaned.text, ends, path))
    return path


def test_lines_are_mended_and_what_repeats_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "made.txt"
    first = "\n".join(LINES[:10])
    damaged = (
        f"{LINES[10]} &amp; <b>more</b>\n<p>\ncaf\ufffd is lost\n  It\x92s  indented"
    )
    strange = "\n".join([*LINES[11:40], "кошка видит собаку у реки"])
    path.write_text(
        "\n\n".join([first, damaged, strange, first.upper(), LINES[41]]) + "\n"
    )
    cleaned = clean(path)
    assert cleaned.text.texts == [
        first,
        f"{LINES[10]} & more\n  It\u2019s  indented",
        "\n".join(LINES[11:40]),
        LINES[41],
    ]
    changes = []
    for line in list(cleaned.record.lines(("text",)))[1:]:
        done, rules, where, _, after = line.rstrip("\n").split("\t")
        changes.append((where.rpartition(":")[2], done, rules, after))
    assert changes == [
        ("12", "mended", "markup", f"{LINES[10]} & more"),
        ("13", "dropped", "markup", ""),
        ("14", "dropped", "control-characters", ""),
        ("15", "mended", "control-characters", "  It\u2019s  indented"),
        ("46", "dropped", "wrong-script", ""),
        ("48", "dropped", "duplicates", ""),
    ]


@pytest.mark.parametrize("ends", ["blank-line", "line", "file"])
def test_cleaning_again_changes_nothing(tmp_path: Path, ends: Ends) -> None:
    path = tmp_path / "made.txt"
    blocks = [
        LINES[:5],
        [*LINES[5:9], "<br>"],
        LINES[:5],
        [LINES[20], "кошка видит собаку"],
    ]
    path.write_text("\n\n".join("\n".join(block) for block in blocks))
    cleaned = clean(path, ends)
    assert cleaned.record.num_changes
    again = clean(written(cleaned, tmp_path / "out.txt.gz", ends), ends)
    assert again.record.num_changes == 0
    assert again.text.texts == cleaned.text.texts


def test_documents_are_written_as_text_alone(tmp_path: Path) -> None:
    path = tmp_path / "made.txt"
    path.write_text("\ufffd\n")
    with pytest.raises(DataError, match="no document is left"):
        clean(path)
    kept = clean(path, keep=["control-characters"])
    assert kept.text.texts == ["\ufffd"]
    with pytest.raises(UsageError, match="would be written over what is read"):
        Destination.of(str(tmp_path / "." / "made.txt"), None, [str(path)])
