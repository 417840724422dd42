"""Near-duplicates: one word put in, left out, exchanged or moved, and nothing that differs in
more.
"""

import random

import pytest

from weft.data.check.documents import look_over_documents
from weft.data.check.pairs import look_over
from weft.data.check.parts import examine_rows
from weft.data.check.repeats import conflicts, near_repeats, repeats
from weft.data.check.rows import look_over_labelled
from weft.data.check.words import Vocabulary, Words
from weft.data.corpus import from_pairs
from weft.data.documents import from_documents
from weft.data.labelled import from_rows

BASE = "the quick brown fox jumps over a lazy dog near my house"


def near(*texts: str) -> dict[int, int]:
    return near_repeats(Words(texts, Vocabulary()))


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("lazy", "tired"),
        BASE.replace("the quick", "quick"),
        f"{BASE} today",
        BASE.replace("over a", "over a very"),
        BASE.replace("house", "home"),
        f"now {BASE}",
        BASE.replace("the quick", "quick the"),
    ],
)
def test_a_word_more_or_less_or_another_or_elsewhere_is_near(other: str) -> None:
    assert near("something else that is as long as that one is", BASE, other) == {2: 1}
    assert near(other, BASE) == {1: 0}


@pytest.mark.parametrize(
    "other",
    [
        BASE,  # a duplicate, not a near one
        BASE.replace("quick", "slow").replace("lazy", "tired"),
        "house my near dog lazy a over jumps fox brown quick the",
    ],
)
def test_nothing_else_is(other: str) -> None:
    assert near(BASE, other) == {}


def test_short_texts_are_let_be() -> None:
    assert near("i like my dog", "i like my cat") == {}
    assert near("he is in his house today ok", "he is in his garden today ok") == {}


def test_characters_count_as_words_where_there_are_no_spaces() -> None:
    assert near("我昨天在图书馆看了一本书", "我昨天在图书馆看了一本画") == {1: 0}


def test_long_texts_may_differ_in_more() -> None:
    chance = random.Random(1)
    words = [f"w{chance.randrange(5000)}" for _ in range(200)]
    other = [word if chance.random() > 0.03 else "else" for word in words]
    stranger = [f"w{chance.randrange(5000)}" for _ in range(200)]
    assert near(" ".join(words), " ".join(stranger), " ".join(other)) == {2: 0}


def test_it_is_quick_with_many_texts() -> None:
    chance = random.Random(2)
    texts = [
        " ".join(f"w{chance.randrange(3000)}" for _ in range(12)) for _ in range(20_000)
    ]
    texts.append(texts[17].replace(texts[17].split()[4], "another"))
    assert near(*texts) == {20_000: 17}


def test_repeats_and_conflicts() -> None:
    assert repeats(["a", "b", "a", "c", "a"]) == ([2, 4], [0, 0])
    assert conflicts(["a", "b", "a", "a"], [1, 2, 1, 3]) == [3]


def test_an_example_of_a_repeat_says_where_it_was_first() -> None:
    long = "one two three four five six seven eight nine ten"
    texts = ["first", "second", long, "First!", long.replace("two", "2"), "first"]
    pairs = from_pairs([(text, text.upper()) for text in texts], "p", "en", "de")
    rows = from_rows([(text, ["x"]) for text in texts], "p")
    documents = from_documents(texts, "p")
    for findings in (
        look_over(pairs),
        look_over_labelled(rows),
        look_over_documents(documents),
    ):
        found = {
            finding.code: [(e.where, e.about) for e in finding.examples]
            for finding in findings
        }
        assert found["duplicates"] == [("p:4", "first at p:1"), ("p:6", "first at p:1")]
        assert found["near-duplicates"] == [("p:5", "first at p:3")]


def test_a_row_of_the_test_text_says_where_training_has_it() -> None:
    train, test = (from_rows([(text, ["x"]) for text in texts], name) for name, texts in
                   (("train", ["a", "b", "c"]), ("test", ["d", "c", "b"])))  # fmt: skip
    (finding,) = [
        f for f in examine_rows(train, None, test) if f.code == "test-in-training"
    ]
    assert [(e.where, e.about) for e in finding.examples] == [
        ("test:2", "in training at train:3"), ("test:3", "in training at train:2"),
    ]  # fmt: skip
