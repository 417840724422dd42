"""What weft translate says of its own translations, by a model that has learned to judge itself."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.folder.durable import sha256_of

# every word is right by 3 in 10, every omission that can be told is one
QUALITY = {
    "words": {"bias": -0.8473, "weights": {}},
    "sentences": {"bias": 0.0, "weights": {"mean_probability": 1.0}},
    "omission": {"bias": 9.0, "weights": {}},
    "least_omission": 0.5,
}
Command = Callable[..., Any]

LONG = "cat sees dog and bird hears fish and horse likes mouse."


@pytest.fixture(scope="module")
def judging_folder(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path) -> Path:
    """A copy of the tiny model that doubts all of its words."""
    folder = tmp_path_factory.mktemp("judging") / "model"
    shutil.copytree(tiny_folder, folder)
    return with_quality(folder, QUALITY)


def with_quality(folder: Path, quality: dict[str, Any]) -> Path:
    config = json.loads((folder / "config.json").read_bytes()) | {"quality": quality}
    (folder / "config.json").write_text(json.dumps(config))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["config.json"] = {
        "size": (folder / "config.json").stat().st_size,
        "sha256": sha256_of(folder / "config.json"),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_doubts_are_counted_on_standard_error(
    command: Command, judging_folder: Path
) -> None:
    ended = command("translate", judging_folder, "cat sees dog.", LONG)
    text = ended.lines[1]
    omission = [line for line in ended.messages if "omission" in line]
    if len(text.split()) >= 6:
        assert omission[0].startswith("weft: line 2: omission: nothing seems to be")
    (words,) = [line for line in ended.messages if "rather wrong" in line]
    assert ", and 30% of all may be right" in words
    quiet = command("translate", judging_folder, "--no-doubts", "cat sees dog.", LONG)
    assert quiet.lines == ended.lines
    assert not [line for line in quiet.messages if "wrong" in line or "omis" in line]


def test_json_has_the_quality_of_words_and_sentence(
    command: Command, judging_folder: Path
) -> None:
    ended = command("translate", judging_folder, "--json", "cat sees dog.")
    (found,) = map(json.loads, ended.lines)
    assert 0.5 < found["quality"] < 0.74
    assert (found["omitted"], found["doubled"]) == ([], [])
    assert [word["quality"] for word in found["words"]] == pytest.approx(
        [0.3] * len(found["words"]), abs=1e-3
    )
    assert "alignments" not in found
    assert [line for line in ended.messages if "wrong" in line] == []
    plain = command("translate", judging_folder, "--json", "--no-doubts", "cat.")
    assert "words" not in json.loads(plain.lines[0])


def test_a_document_has_the_quality_as_its_confidence(
    command: Command, judging_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.po"
    path.write_text('msgid ""\nmsgstr ""\n\nmsgid "cat sees dog."\nmsgstr ""\n')
    ended = command("translate", judging_folder, path, "--json")
    (found,) = map(json.loads, ended.lines)
    assert found["confidence"] == found["quality"] > 0.5
    assert (found["omitted"], found["doubled"]) == ([], [])
    assert {round(word["quality"], 2) for word in found["words"]} == {0.3}
    path.rename(tmp_path / "b.po")
    ended = command("translate", judging_folder, tmp_path / "b.po")
    assert any("rather wrong than right" in line for line in ended.messages)


def test_a_review_shows_lines_side_by_side(
    command: Command, judging_folder: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text(f"cat sees dog.\n{LONG}\nzebra <b>.\n")
    page = tmp_path / "review.html"
    ended = command("translate", judging_folder, "--input", lines, "--review", page)
    html = page.read_text()
    assert html.count("<article") == len(ended.lines) == 3
    assert "Review of in.txt" in html
    assert f"{ended.lines[0].split()[0]}</mark>" in html
    assert ">line 3</a>" in html
    assert "zebra</mark> &lt;b&gt;." in html
    assert ended.messages[-1] == (
        f"weft: {page}: 3 translations side by side; a browser opens it"
    )
    again = command("translate", judging_folder, "cat.", "--review", page)
    assert (again.code, page.read_text().count("<article")) == (0, 1)
    assert again.messages[-1].endswith(
        ": 1 translation side by side; a browser opens it"
    )
    named = command("translate", judging_folder, "cat.", "--review", tmp_path / "r.txt")
    assert (named.code, "must end in .html" in named.err) == (2, True)


def test_a_review_of_a_document_has_each_text_once_with_its_place(
    command: Command, judging_folder: Path, tmp_path: Path
) -> None:
    document = tmp_path / "a.md"
    document.write_text("# cat sees dog.\n\nbird hears fish.\n\ncat sees dog.\n")
    page = tmp_path / "review.html"
    ended = command("translate", judging_folder, document, "--review", page)
    assert ended.code == 0, ended.err
    html = page.read_text()
    assert html.count("<article") == 2
    assert ">line 1</a>" in html
    assert ">line 3</a>" in html
    assert "are doubtful.</b>" in html
    assert 'class="very' not in html.split("</style>")[1].split("<section")[1]


def test_given_translations_are_judged(
    command: Command, judging_folder: Path, tmp_path: Path
) -> None:
    given = tmp_path / "given.de"
    given.write_text("Katze sieht Hund.\nKatze sieht Hund Katze sieht Hund mag Maus.\n")
    arguments = ("translate", judging_folder, "cat sees dog.", LONG, "--given", given)
    ended = command(*arguments)
    shares, names = zip(*(line.split("\t") for line in ended.lines), strict=True)
    assert all(0.5 < float(share) < 0.74 for share in shares)
    assert names[0] == ""
    assert names[1].startswith("omission; doubled")
    assert any(
        "line 2: doubled: it says twice: Katze sieht Hund" in m for m in ended.messages
    )
    objects = [json.loads(line) for line in command(*arguments, "--json").lines]
    assert [one["text"] for one in objects] == given.read_text().split("\n")[:-1]
    assert objects[1]["doubled"] == ["Katze sieht Hund"]
    page = tmp_path / "r.html"
    assert command(*arguments, "--review", page).code == 0
    assert ">Katze</mark>" in page.read_text()
    given.write_text("Katze.\n")
    ended = command(*arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert "has 1 lines for 2 texts" in ended.err
    ended = command(*arguments[:2], tmp_path / "r.html", "--given", given)
    assert (ended.code, "--given is for lines" in ended.err) == (2, True)
    ended = command(
        "translate", judging_folder, "cat.", "--given", given, "--n-best", 2
    )
    assert (ended.code, "not searched for" in ended.err) == (2, True)


def test_numbers_that_differ_are_doubted(command: Command, tiny_folder: Path) -> None:
    ended = command("translate", tiny_folder, "cat sees dog.", "cat sees 512 dogs.")
    (said,) = [line for line in ended.messages if "numbers" in line]
    assert said == (
        "weft: line 2: numbers: the source has 512, the translation does not"
    )
    ended = command("translate", tiny_folder, "--json", "cat sees 512 dogs.")
    (value,) = map(json.loads, ended.lines)
    assert value["numbers"] == {"missing": ["512"], "added": []}
