"""A column on disk is the sequence that a list is."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from weft.data import column
from weft.data.column import Column, ColumnWriter, Growing, joined_texts
from weft.data.corpus import ParallelText, fingerprint, read_pairs, split_off

TEXTS = ["a", "", "zwei Wörter", "猫", "\ud800", *(f"text {n}" for n in range(40))]


def written(folder: Path, texts: list[str]) -> Column:
    writer = ColumnWriter(folder / "texts.txt")
    writer.extend(texts[:7])
    writer.extend(texts[7:])
    return writer.close()


def test_a_column_reads_as_the_list_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column, "_BLOCK", 4)
    whole = written(tmp_path, TEXTS)
    places = np.array([3, 2, 40, 0, 7, 8, 9, 10, 44])
    chosen = whole.at(places)
    again = chosen.at(np.array([8, 1]))
    some = [TEXTS[i] for i in places]
    for found, expected in (
        (whole, TEXTS),
        (chosen, some),
        (again, [some[8], some[1]]),
    ):
        assert list(found) == expected
        assert len(found) == len(expected)
        assert [found[i] for i in range(len(expected))] == expected
        assert found[-1] == expected[-1]
        for part in (slice(1, 5), slice(None, None, 3), slice(-3, None), slice(5, 2)):
            assert found[part] == expected[part]
        encoded = [text.encode("utf-8", "surrogatepass") for text in expected]
        assert found.size == sum(map(len, encoded))
        assert found.num_characters == sum(map(len, expected))
        assert list(chain.from_iterable(found.contents())) == encoded
        with pytest.raises(IndexError):
            found[len(expected)]


def test_few_rows_stay_in_memory_and_many_go_to_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column, "LARGE", 10)
    monkeypatch.setattr(column, "_BLOCK", 3)
    for count in (9, 10, 12, 31):
        growing = Growing(2)
        for n in range(count):
            growing.append(f"a{n}", f"b{n}")
        first, second = growing.done()
        assert isinstance(first, Column) == (count >= 10)
        assert list(first) == [f"a{n}" for n in range(count)]
        assert list(second) == [f"b{n}" for n in range(count)]


def test_the_file_goes_with_the_last_column(tmp_path: Path) -> None:
    whole = joined_texts([written(tmp_path, TEXTS), ["one", "more"]])
    assert isinstance(whole, Column)
    part = whole.at(np.array([0, 46]))
    path = whole.path
    del whole
    assert list(part) == ["a", "more"]
    del part
    assert not path.exists()


def test_a_text_on_disk_is_split_as_one_in_memory_is(
    tmp_path: Path, large_from: Callable[[int, int], None]
) -> None:
    files = []
    for name in ("one", "two"):
        file = tmp_path / f"{name}.tsv"
        rows = [f"source {name} {n % 180}\ttarget {n}\n" for n in range(300)]
        file.write_text("".join(rows), "utf-8")
        files.append(str(file))

    def parts() -> list[ParallelText]:
        text = read_pairs(files)
        held = [part for part in split_off(text, 20, 20, 1) if part is not None]
        return [text, *held]

    in_memory = parts()
    large_from(100, 400)
    on_disk = parts()
    assert isinstance(on_disk[1].src, Column)
    for one, other in zip(in_memory, on_disk, strict=True):
        assert list(one.rows()) == list(other.rows())
        assert fingerprint(one) == fingerprint(other)
        assert list(one.lines) == list(other.lines)
        assert [one.where(i) for i in range(len(one))] == [
            other.where(i) for i in range(len(other))
        ]
