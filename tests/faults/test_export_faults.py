"""Exports that would change what a model gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import random_models
from weft.errors import FolderError
from weft.ship.exporting import export
from weft.ship.huggingface.target import HuggingFace


def export_to(place: Path) -> None:
    folder = random_models.write_folder("en-de", place / "model")
    dev = random_models.write_dev("translation", place)
    export(folder, HuggingFace(), place / "out", [dev])


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the last bytes of the weights be other ones than were meant."""
    real = HuggingFace.write

    def damage(num_bytes: int) -> None:
        def write(self: Any, source: Any, place: Path, asked: Any) -> Any:
            written = real(self, source, place, asked)
            path = place / "model.safetensors"
            content = bytearray(path.read_bytes())
            for place_of in range(len(content) - num_bytes, len(content)):
                content[place_of] ^= 1
            path.write_bytes(content)
            return written

        monkeypatch.setattr(HuggingFace, "write", write)

    return damage


def test_X1_one_changed_number_is_found_and_nothing_is_written(
    tmp_path: Path, damaged: Callable[[int], None]
) -> None:
    damaged(1)
    said = r"numbers of the weights: .* is .*, not .*; nothing was written"
    with pytest.raises(FolderError, match=said):
        export_to(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_X1_a_sentence_that_comes_out_otherwise_is_shown(
    tmp_path: Path, damaged: Callable[[int], None]
) -> None:
    damaged(40_000)
    said = r"numbers of the weights: .*; for example '.*' gives '.*', not '.*'; nothing"
    with pytest.raises(FolderError, match=said):
        export_to(tmp_path)
