"""How near texts are, and that the index finds the nearest of many."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data import near_index
from weft.data import nearness as module
from weft.data.near_index import NearIndex
from weft.data.nearness import (
    count_edits,
    count_edits_plainly,
    nearness,
    words_of,
)

WORDS = [
    "the",
    "red",
    "dog",
    "runs",
    "over",
    "a",
    "green",
    "hill",
    "with",
    "two",
    "small",
    "cats",
    "12",
    "3.5",
    ".",
]


def test_words_of_every_script() -> None:
    for text, words in (
        ("It's 1,234.5 km, no?", ["it", "'", "s", "1,234.5", "km", ",", "no", "?"]),
        ("SHA256 v2", ["sha256", "v2"]),
        ("第3章 in 東京", ["第", "3", "章", "in", "東", "京"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs are parts of words
        ("한국어 문장", ["한국어", "문장"]),
        ("", []),
    ):
        assert words_of(text) == words


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_words_of_ascii_are_those_of_any_text(text: str) -> None:
    wide = words_of(f"{text} ü")
    assert [*words_of(text), "ü"] == wide


def test_nearness_by_hand() -> None:
    for text, other, expected in (
        ("a b c d", "a b c d", 1),
        ("a b c d", "A x C d", 3 / 4),
        ("a b c d", "a b c d e", 4 / 5),
        ("a b", "b a", 0),
        ("我喜歡貓", "我喜歡大貓", 4 / 5),
        ("", "a", 0),
        ("a", "", 0),
        ("", "", 1),
    ):
        assert nearness(text, other) == pytest.approx(expected)


def slow_edits(text: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for place, letter in enumerate(text, start=1):
        diagonal = row[0]
        row[0] = place
        for column, against in enumerate(other, start=1):
            kept = diagonal + (letter != against)
            diagonal = row[column]
            row[column] = min(kept, row[column] + 1, row[column - 1] + 1)
    return row[-1]


@given(st.text("abc", max_size=80), st.text("abcd", max_size=80))
def test_edits_are_those_of_the_table(text: str, other: str) -> None:
    expected = [slow_edits(text, other)]
    assert count_edits_plainly(text, [other]) == expected
    assert list(count_edits(text, [other])) == expected


def test_rapidfuzz_is_used_where_it_is_and_is_not_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("rapidfuzz")
    monkeypatch.setattr(module, "count_edits_plainly", None)
    assert list(count_edits("abc", ["abd", "x"])) == [1, 3]
    monkeypatch.undo()
    monkeypatch.setattr(module, "_rapid_distance", lambda: None)
    assert list(count_edits("abc", ["abd", "x"])) == [1, 3]


def made_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def test_the_nearest_of_few_are_those_of_all_pairs() -> None:
    texts = made_texts(60, seed=1)
    index = NearIndex(texts)
    for query in [*made_texts(30, seed=2), *texts[:5]]:
        near = [nearness(query, text) for text in texts]
        order = sorted(range(60), key=lambda n: (-near[n], -n))
        expected = [(n, pytest.approx(near[n])) for n in order if near[n] >= 0.4]
        assert index.find(query, 5, 0.4) == expected[:5]


def test_rare_words_lead_to_a_text_among_many() -> None:
    texts = [*made_texts(3000, seed=3), "the zebra runs over a green hill"]
    texts += [*made_texts(3000, seed=4), "第三章說的是一隻很老的斑馬", ""]
    index = NearIndex(texts)
    assert index.find("The zebra runs over a hill", 1, 0.5) == [
        (3000, pytest.approx(6 / 7))
    ]
    assert index.find("第四章說的是一隻很老的斑馬", 1, 0.5) == [
        (6001, pytest.approx(12 / 13))
    ]
    assert index.find("quite unheard-of", 3, 0.1) == []
    assert index.find("", 3, 0.0) == []


def test_what_is_excluded_is_not_found() -> None:
    index = NearIndex(["a b c d", "a b c e", "x"])
    assert index.find("a b c d", 1, 0.5) == [(0, 1)]
    assert index.find("a b c d", 1, 0.5, without=[0]) == [(1, pytest.approx(3 / 4))]
    assert index.find("x", 1, 0.5, without=[2]) == []


def test_an_index_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", *made_texts(40, seed=5), "", ""]
    whole = NearIndex(texts)
    monkeypatch.setattr(near_index, "_BLOCK", 7)
    divided = NearIndex(texts)
    assert np.array_equal(whole.rows, divided.rows)
    assert np.array_equal(whole.first, divided.first)
    # a text stands once for each of its words
    for key in range(whole.num_keys):
        rows = whole.rows[whole.first[key] : whole.first[key + 1]]
        assert (np.diff(rows) > 0).all()


def test_very_common_words_alone_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_index, "_MOST_FOUND", 10)
    index = NearIndex(["the"] * 50)
    assert [row for row, _ in index.find("the", 20, 0.5)] == list(range(49, 39, -1))
    assert len(NearIndex([])) == 0
    assert NearIndex([]).find("the", 1, 0.5) == []


def test_queries_of_several_threads_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_index, "_MOST_CANDIDATES", 3)
    index = NearIndex(made_texts(60, seed=6))
    first, second = made_texts(2, seed=7)
    expected = [index.find(text, 5, 0.1) for text in (first, second)]
    found = NearIndex._found
    pool = ThreadPoolExecutor(1)
    other: list[Any] = []

    def interrupted(self: NearIndex, query: Any) -> Iterator[Any]:
        *rows, last = found(self, query)
        yield from rows
        if threading.current_thread() is threading.main_thread():
            other.append(pool.submit(index.find, second, 5, 0.1))
            wait(other, timeout=0.1)
        yield last

    monkeypatch.setattr(NearIndex, "_found", interrupted)
    assert index.find(first, 5, 0.1) == expected[0]
    assert other[0].result(timeout=10) == expected[1]
    pool.shutdown()
