"""Words of a translation: where they stand, how probable they were, and what they come from."""

import json
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.config import SideSection
from weft.data.segment import split_sentences
from weft.data.tokenizer import EOS_ID, Tokenizer, train_tokenizer
from weft.predict.segments import RowLengths, plan_rows
from weft.predict.terms import TermUse
from weft.predict.text import one_line
from weft.predict.words import (
    Segment,
    SourceWord,
    WordReport,
    WordReporter,
    _but_terms,
    quality_of_all,
    with_quality_of_all,
)

TEXTS = (
    "Anna drinks tea. The café is open, and the dog is old.",
    "我喝茶。老人读一本书。 ภาษาไทย 12 345",
)
KINDS = ("bpe", "unigram", "character", "word", "byte")


@cache
def tokenizer_of(kind: str, **options: object) -> Tokenizer:
    settings = {"kind": kind, "vocab_size": 400, **options}
    return train_tokenizer(TEXTS * 3, SideSection.model_validate(settings))


def echoed(
    text: str, src: Tokenizer, tgt: Tokenizer, by_sentence: bool = True
) -> tuple[str, list[WordReport], float]:
    """Translate a text to itself, segment by segment: each token comes from the source token at its
    place, or the last where there are fewer.
    """
    lengths = RowLengths(10_000, 10_000, by_sentence)
    (plan,) = plan_rows([text], src, lengths, "en").values()
    outputs = [[*tgt.encode(line), EOS_ID] for line in plan.texts]
    shown = plan.join([one_line(tgt.decode(ids)) for ids in outputs], "en")
    reporter = WordReporter(src, tgt, text, shown)
    total = 0.0
    for row, line, start, ids in zip(
        plan.rows, plan.texts, plan.starts, outputs, strict=True
    ):
        places = np.minimum(np.arange(len(ids)), len(row.ids) - 2)
        attention = np.eye(len(row.ids), dtype=np.float32)[places]
        log_probs = [-0.1 - n / 100 for n in range(len(ids))]
        total += sum(log_probs[:-1]) if line.strip() else 0
        reporter.add(Segment(line, start, row.ids, ids, log_probs, attention))
    return shown, reporter.reports, total


TEXT = "\n\t Anna drinks  tea.\n\n我喝茶。 The caf\u0065\u0301 “ﬁne” is 😀饕.  "


def shown_in(text: str, words: Sequence[SourceWord | WordReport]) -> list[str]:
    return [text[word.start : word.end] for word in words]


@pytest.mark.parametrize("by_sentence", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_word_stands_where_it_says(kind: str, by_sentence: bool) -> None:
    tokenizer = tokenizer_of(kind, unicode="NFKC")
    shown, words, total = echoed(TEXT, tokenizer, tokenizer, by_sentence)
    assert "fine" in shown
    assert shown_in(shown, words) == [word.text for word in words]
    own = [source for word in words for source in word.sources]
    assert [source.number for source in own] == list(range(len(words)))
    assert shown_in(TEXT, own) == [source.text for source in own]
    plain = {"ﬁ": "fi", "\u0065\u0301": "\u00e9"}
    for word, source in zip(words, own, strict=True):
        text = source.text
        for before, after in plain.items():
            text = text.replace(before, after)
        assert text == word.text
    assert {"Anna", "drinks", "tea"} <= {word.text for word in words}
    assert math.fsum(word.log_prob for word in words) == pytest.approx(total)


def test_the_places_by_hand() -> None:
    """Two sentences with white space around; the second one without spaces."""
    text = "  Tea,  is\nhot.   我喝\U00020000茶。"
    tokenizer = tokenizer_of("character")
    shown, words, _ = echoed(text, tokenizer, tokenizer)
    assert shown == "  Tea,  is hot.   我喝\U00020000茶。"
    found = [(word.text, word.start, word.end) for word in words]
    assert found == [
        ("Tea", 2, 5),
        (",", 5, 6),
        ("is", 8, 10),
        ("hot", 11, 14),
        (".", 14, 15),
        ("我", 18, 19),
        ("喝", 19, 20),
        ("\U00020000", 20, 21),
        ("茶", 21, 22),
        ("。", 22, 23),
    ]
    sources = [source for word in words for source in word.sources]
    assert [(one.text, one.start, one.end) for one in sources] == found
    # T, e and a, the first tokens of the segment
    assert words[0].log_prob == pytest.approx(-0.1 - 0.11 - 0.12)
    assert words[0].probability == pytest.approx(math.exp(-0.33))
    # in a segment of its own, a token of three or four bytes each
    assert words[5].log_prob == pytest.approx(-0.1)
    assert json.loads(json.dumps(words[2].to_json())) == {
        "text": "is",
        "start": 8,
        "end": 10,
        "log_prob": words[2].log_prob,
        "probability": math.exp(words[2].log_prob),
        "sources": [{"number": 2, "text": "is", "start": 8, "end": 10}],
    }


def test_a_word_has_each_source_word_once_in_their_order_and_none_from_an_end() -> None:
    tokenizer = tokenizer_of("character")
    text = "a b c"
    ids = [*tokenizer.encode(text), EOS_ID]
    reporter = WordReporter(tokenizer, tokenizer, text, "xyz w")
    tgt_ids = tokenizer.encode("xyz w")
    # x, y, z, the space and w look at c, a, c, the end, b
    looked = np.eye(6, dtype=np.float32)[[4, 0, 4, 5, 2]]
    looked[3] = [0, 0.1, 0, 0, 0.3, 0.6]
    reporter.add(Segment(text, 0, ids, tgt_ids, [-1.0] * 5, looked))
    first, second = reporter.reports
    assert [word.text for word in first.sources] == ["a", "c"]
    assert [word.number for word in first.sources] == [0, 2]
    # the space belongs to the word behind it; c has too little of that word beside b
    assert [word.text for word in second.sources] == ["b"]
    assert (first.log_prob, second.log_prob) == (-3.0, -2.0)


def test_a_source_that_was_cut_has_the_words_that_were_read() -> None:
    tokenizer = tokenizer_of("character")
    text = " Anna drinks tea"
    read = [*tokenizer.encode("Anna dri"), EOS_ID]
    reporter = WordReporter(tokenizer, tokenizer, text, "x y")
    looked = np.eye(9, dtype=np.float32)[[0, 4, 6]]
    tgt_ids = tokenizer.encode("x y")
    reporter.add(Segment(text.strip(), 0, read, tgt_ids, [-1.0] * 3, looked))
    sources = [word.sources[0] for word in reporter.reports]
    assert [(one.text, one.start, one.end) for one in sources] == [
        ("Anna", 1, 5),
        ("dri", 6, 9),
    ]


def test_nothing_but_an_end_has_no_words() -> None:
    tokenizer = tokenizer_of("bpe")
    reporter = WordReporter(tokenizer, tokenizer, "tea", "")
    src_ids = [*tokenizer.encode("tea"), EOS_ID]
    attention = np.ones((1, len(src_ids)), np.float32)
    reporter.add(Segment("tea", 0, src_ids, [EOS_ID], [-0.5], attention))
    assert reporter.reports == []
    reporter.add(Segment("tea", 0, src_ids, [], [], attention[:0]))
    assert reporter.reports == []


@pytest.mark.parametrize("kind", ["character", "word", "bpe", "byte"])
def test_bytes_that_are_no_characters_leave_all_others_in_their_places(
    kind: str,
) -> None:
    """The text shows a mark for each byte of a run that is wrong somewhere, or for several."""
    tokenizer = tokenizer_of(kind)
    broken = [4 + byte for byte in "語".encode()[:2]]
    if kind == "bpe":
        broken = [i for i in tokenizer.encode("龘") if len(tokenizer.spell([i])) == 1][
            :2
        ]
    begin, end = tokenizer.encode("Anna is "), tokenizer.encode(" old")
    ids = [*begin, *broken, *end, EOS_ID]
    shown = tokenizer.decode(ids)
    assert "\N{REPLACEMENT CHARACTER}" in shown
    reporter = WordReporter(tokenizer, tokenizer, "Anna", shown)
    src_ids = [*tokenizer.encode("Anna"), EOS_ID]
    attention = np.ones((len(ids), len(src_ids)), np.float32)
    log_probs = [-1.0] * len(ids)
    reporter.add(Segment("Anna", 0, src_ids, ids, log_probs, attention))
    words = reporter.reports
    assert shown_in(shown, words) == [word.text for word in words]
    assert [words[0].text, words[1].text, words[-1].text] == ["Anna", "is", "old"]
    assert any("\N{REPLACEMENT CHARACTER}" in word.text for word in words)


ODD = "\n|\r\n|  |\u3000|\u0301|e\u0301|ﬁ|\u0130|😀|語|. |。|“|\x1c|Anna|tea|我|12|!"
pieces = st.one_of(st.sampled_from(ODD.split("|")), st.text(max_size=2))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(text=st.lists(pieces, max_size=9).map("".join), lowercase=st.booleans())
@example(text="a\ud800b. \u0301\u0327C", lowercase=True)
@example(text="", lowercase=False)
def test_words_of_any_text_stand_side_by_side_and_leave_nothing_out(
    kind: str, text: str, lowercase: bool
) -> None:
    tokenizer = tokenizer_of(kind, unicode="NFKC", lowercase=lowercase)
    shown, words, total = echoed(text, tokenizer, tokenizer)
    assert shown_in(shown, words) == [word.text for word in words]
    places = [place for word in words for place in range(word.start, word.end)]
    assert places == sorted(set(places))
    left_out = set(range(len(shown))) - set(places)
    assert all(shown[place].isspace() for place in left_out)
    assert all(word.text and word.text == word.text.strip() for word in words)
    assert math.fsum(word.log_prob for word in words) == pytest.approx(total)
    sources = [source for word in words for source in word.sources]
    assert [source.number for source in sources] == list(range(len(words)))
    assert shown_in(text, sources) == [source.text for source in sources]
    starts = [source.start for source in sources]
    assert starts == sorted(starts)
    covered = {place for source in sources for place in range(source.start, source.end)}
    solid = {place for place, one in enumerate(text) if not one.isspace()}
    if len(split_sentences(text, "en")) == 1:
        assert solid <= covered or not words


def test_what_a_term_says_is_not_left_out() -> None:
    words = [SourceWord(n, text, 4 * n, 4 * n + 3) for n, text in enumerate("abcd")]
    term = TermUse("c", 8, 11, ("C",), "C", "used", "t.tsv:1")
    assert _but_terms(words, [term]) == [words[0], words[1], words[3]]
    assert _but_terms(words[1:], [term]) == []
    assert _but_terms(words[:2], [term]) == words[:2]


def test_the_quality_of_a_text_goes_with_that_of_its_words() -> None:
    own = WordReport("a", 0, 1, -1.0, [], 0.2)
    term = WordReport("b", 0, 1, -1.0, [], None, "B")
    assert [word.quality for word in with_quality_of_all([own], 0.9)] == [0.9]
    assert with_quality_of_all([own, own], 0.9) == [own, own]
    assert with_quality_of_all([term], 0.9) == [term]
    assert quality_of_all([term], 0.4) == 1.0
    assert quality_of_all([own, own, own, term], 0.6) == pytest.approx(0.7)
