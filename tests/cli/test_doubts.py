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
