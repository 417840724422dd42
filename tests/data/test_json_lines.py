"""Glossaries and memories as JSON lines: they come back as they were, and nothing else is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.formats.row import on_one_line
from weft.data.glossary import Entry, Glossary
from weft.data.json_lines import (
    glossary_lines,
    glossary_of_lines,
    memory_lines,
    units_of_lines,
)
from weft.data.memory import Memory, Units
from weft.errors import DataError

# letters that JSON escapes, that lines end with elsewhere, and half a character
TEXT = (
    st.text('ab"\\{é漢\u2028\x85\t 😀', min_size=1)
    .map(lambda text: on_one_line(f"{text}x"))
    .map(lambda text: text.replace("b", "\ud800"))
)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
TERMS = st.builds(
    Entry,
    st.lists(TEXT, min_size=1, max_size=2).map(tuple),
    TEXTS,
    TEXTS,
    exact_case=st.booleans(),
    inflected=st.booleans(),
)
UNIT = st.tuples(TEXT, TEXT, st.none() | st.tuples(TEXT, TEXT))


@settings(max_examples=60, deadline=None)
@given(st.lists(TERMS, min_size=1, max_size=5))
def test_terms_come_back_as_they_were(entries: list[Entry]) -> None:
    glossary = Glossary(tuple(entries))
    content = b"".join(glossary_lines(glossary))
    found = glossary_of_lines(memoryview(content), "g")
    assert found.sha256 == glossary.sha256
    assert [one.where for one in found.entries] == [
        f"g:{number}" for number in range(1, len(entries) + 1)
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(UNIT, max_size=6))
def test_units_come_back_as_they_were(rows: list[tuple[str, str, object]]) -> None:
    units = Units(["one", "two"])
    for number, (source, target, coded) in enumerate(rows):
        units.add(source, target, number % 2, number)
        if isinstance(coded, tuple):
            units.add_marked(*coded)
    content = b"".join(memory_lines(units))
    found = units_of_lines(memoryview(content), "m")
    assert b"".join(memory_lines(found)) == content
    assert found.coded == units.coded
    old, new = Memory(units, "de"), Memory(found, "de")
    for source, _, _ in rows:
        exact = new.exact(source)
        assert exact is not None
        assert exact.where == f"m:{exact.number + 1}"
        assert (exact.number, exact.target) == (
            old.exact(source).number,  # type: ignore[union-attr]
            old.exact(source).target,  # type: ignore[union-attr]
        )


def test_lines_are_found_wherever_they_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    units = Units(["one"])
    for number in range(20):
        units.add(f"source {number}", "漢字" * number + "x", 0, number)
    content = b"".join(memory_lines(units))
    for piece in (1, 7, 64):
        monkeypatch.setattr("weft.data.json_lines._PIECE", piece)
        found = units_of_lines(memoryview(content), "m")
        assert b"".join(memory_lines(found)) == content


GOOD = {"source": ["a"], "target": ["b"]}
BAD_TERMS: list[object] = [
    [],
    {},
    {"source": ["a"]},
    GOOD | {"note": "x"},
    GOOD | {"source": []},
    GOOD | {"source": "a"},
    GOOD | {"source": [""]},
    GOOD | {"source": ["a\nb"]},
    GOOD | {"target": [1]},
    GOOD | {"target": ["a\0b"]},
    GOOD | {"case": False},
    GOOD | {"case": "yes"},
    GOOD | {"__class__": "x"},
]
BAD_UNITS: list[object] = [
    {"source": "a"},
    {"source": "a", "target": ""},
    {"source": "a", "target": " "},
    {"source": ["a"], "target": "b"},
    {"source": "a", "target": "b", "coded": ["x"]},
    {"source": "a", "target": "b", "coded": "xy"},
    {"source": "a", "target": "b", "where": "x"},
]


@pytest.mark.parametrize("row", BAD_TERMS, ids=str)
def test_a_line_that_is_no_term_is_refused_with_its_number(row: object) -> None:
    good = json.dumps(GOOD).encode() + b"\n"
    assert len(glossary_of_lines(memoryview(good), "g").entries) == 1
    bad = good + json.dumps(row).encode() + b"\n"
    with pytest.raises(DataError, match=r"^g:2: "):
        glossary_of_lines(memoryview(bad), "g")


@pytest.mark.parametrize("row", BAD_UNITS, ids=str)
def test_a_line_that_is_no_unit_is_refused_with_its_number(row: object) -> None:
    bad = json.dumps(row).encode() + b"\n"
    with pytest.raises(DataError, match=r"^m:1: "):
        units_of_lines(memoryview(bad), "m")


def test_what_is_no_line_of_json_is_refused() -> None:
    for content in (
        b"\xff\n",
        b"{}",
        b"\n",
        b"[" * 100_000 + b"\n",
        b'{"a":1,"a":2}\n',
    ):
        with pytest.raises(DataError, match=r"^m"):
            units_of_lines(memoryview(content), "m")


def test_a_line_without_end_is_refused_before_it_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.data.json_lines._MOST_BYTES", 1000)
    monkeypatch.setattr("weft.data.json_lines._PIECE", 100)
    with pytest.raises(DataError, match="a line has over 1,000 bytes"):
        units_of_lines(memoryview(b"x" * 10_000), "m")
