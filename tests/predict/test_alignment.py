"""Support and attention read by hand: what a token comes from, and what is passed over."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.predict.alignment import (
    Link,
    _counted_words,
    coverage,
    links,
    support_by_attention,
    support_by_shares,
    word_pairs,
    words_of,
)

ATTENTION = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.3, 0.4, 0.3],
        [0.1, 0.45, 0.45],
        [0.9, 0.05, 0.05],
        [0.2, 0.3, 0.5],
    ],
    np.float32,
)


SUPPORT = np.array(
    [
        [0.7, 0.2, 0.1, 0.9],
        [-1.0, 0.4, 0.3, 0.0],
        [0.1, 0.45, 0.45, 0.0],
        [0.0, 0.0, 0.0, 0.0],
        [0.2, -0.3, 0.0, 0.5],
    ],
    np.float32,
)


def test_each_target_token_comes_from_what_supports_it_most() -> None:
    """Of equals the first; from the source's end nothing does but the target's own."""
    found = links(SUPPORT, "vwxyz", "abc.", True)
    assert [(link.target, link.source) for link in found] == [
        (0, 0),
        (1, 1),
        (2, 1),
        (4, 3),
    ]
    assert found[0] == Link(0, 0, "v", "a")
    assert found[-1] == Link(4, 3, "z", ".")
    assert links(SUPPORT, "vwxyz", "abc.", False)[-1] == Link(4, 0, "z", "a")
    later = links(SUPPORT, "vwxyz", "abc.", True, (10, 20))
    assert [(link.target, link.source) for link in later] == [
        (10 + link.target, 20 + link.source) for link in found
    ]
    assert links(SUPPORT[:2, :1], "vw", ".", True) == []


def test_shares_that_say_nothing_support_nothing() -> None:
    """The first looks were even, the second wrote hardly anything; a share below 0 stays one."""
    shares = np.array([[2, 0], [0.2, -3], [0.3, -3]], np.float32)
    support = support_by_shares(shares, np.array([0.98, 0.1, 0.97], np.float32))
    assert support.tolist() == [[0, 0], [0, 0], shares[2].tolist()]
    attention = np.array([[0.5, 0.5], [0.9, 0.1]], np.float32)
    assert support_by_attention(attention).tolist() == [[0, 0], attention[1].tolist()]


def test_a_word_comes_from_what_supports_all_of_its_tokens() -> None:
    """Two words of two and one tokens, from three of one, two and one."""
    tgt_of, src_of = [0, 0, 1], [0, 1, 1, 2]
    support = np.array([[1, 0.8, 0.8, 0], [0, 0, 0, 0.7], [0, -1, -1, 0]], np.float32)
    # b supports the first word most, with both tokens; c more than half as much, by one
    assert word_pairs(support, tgt_of, src_of) == [(1, 0)]
    support[1, 3] = 0.9
    assert word_pairs(support, tgt_of, src_of) == [(1, 0), (2, 0)]
    # the first token has most from the second word in all, though less from each of its tokens
    assert word_pairs(support[:0], [], src_of) == []
    assert word_pairs(np.zeros((3, 4), np.float32), tgt_of, src_of) == []


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("kitchen .", ["kitchen", "."]),
        ("「 厨 房 」 。", ["「", "厨", "房", "」。"]),
        ("厨 房 。", ["厨", "房", "。"]),
        ("( ▁well - known ) , ▁3 . 14 %", ["(", "well-known", "),", "3.14", "%"]),
        ("▁it ' s ▁“ ▁” ...", ["it's", "“", "”..."]),
        ("▁end. ▁x", ["end.", "x"]),
        ("… ▁😀", ["…", "😀"]),
    ],
)
def test_marks_at_the_edges_of_a_word_are_words_where_they_are_tokens(
    pieces: str, words: list[str]
) -> None:
    spelled = [piece.replace("▁", " ").encode() for piece in pieces.split(" ")]
    found, word_of = words_of(spelled)
    assert found == words
    assert sorted(set(word_of)) == list(range(len(words)))
    assert len(word_of) == len(spelled)


PIECES = [
    "a",
    " a",
    "b c",
    " ",
    "\t-",
    "",
    ".",
    " (",
    "é",
    " ü",
    "语",
    " 语",
    "\u3000x",
]
BYTES = [*(piece.encode() for piece in PIECES), b"\xe8", b"\xaf", b" \xe8", b"\xad"]


@given(st.lists(st.sampled_from(BYTES), max_size=12))
def test_words_are_the_same_however_the_pieces_are_divided(
    spelled: list[bytes],
) -> None:
    words, word_of = words_of(spelled)
    whole = _counted_words(spelled)
    assert words == [word for word, _ in whole]
    counts = [word_of.count(number) for number in range(len(words))]
    behind = len(spelled) - sum(count for _, count in whole) if words else 0
    assert counts[-1:] == [count + behind for _, count in whole[-1:]]
    assert counts[:-1] == [count for _, count in whole[:-1]]
    assert word_of == sorted(word_of)


def test_coverage_counts_what_was_passed_over() -> None:
    """Sums over the first two target tokens: 1.0, 0.6, 0.4; over all five, none is below 1."""
    assert coverage(ATTENTION[:2]) == pytest.approx(math.log(0.6) + math.log(0.4))
    assert coverage(ATTENTION) == 0.0
    assert coverage(np.array([[0.5, 0.5, 0.0]], np.float32)) < 2 * math.log(0.5) - 80
