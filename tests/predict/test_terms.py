"""Translations with a glossary have its terms, and say what became of each."""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import weft
from weft.config import SideSection
from weft.data.glossary import Entry, Glossary
from weft.data.tokenizer import EOS_ID, train_tokenizer
from weft.decoding.forms import Term, Terms
from weft.errors import UsageError
from weft.predict.evidence import SENTENCE_FEATURES, WORD_FEATURES
from weft.predict.quality import Logistic, Quality
from weft.predict.segments import SourceRow
from weft.predict.terms import TermFinder, TermUse
from weft.predict.translator import Translator
from weft.predict.words import SourceWord
from weft.tasks.translation import term_text

TEXTS = [
    "The teacher reads a book in the garden.",
    "My brother bought a new bicycle yesterday.",
    "The teacher bought a book.",
    "Anna drinks tea in the library.",
]


@pytest.fixture(scope="module")
def demo() -> Translator:
    found = weft.load(weft.DEMO)
    assert isinstance(found, Translator)
    return found


def rows(*terms: tuple[str, str]) -> Glossary:
    return Glossary(tuple(Entry((src,), (tgt,)) for src, tgt in terms))


def used(prediction: weft.Prediction) -> list[TermUse]:
    assert prediction.terms is not None
    return prediction.terms


def test_every_term_stands_once(demo: Translator) -> None:
    glossary = rows(("teacher", "教员"), ("book", "书籍"), ("bicycle", "单车"))
    plain = demo.translate(TEXTS)
    bound = demo.with_glossary(glossary).translate(TEXTS, alignments=True)
    counts = {"教员": [1, 0, 1, 0], "书籍": [1, 0, 1, 0], "单车": [0, 1, 0, 0]}
    for word, wanted in counts.items():
        assert [prediction.text.count(word) for prediction in bound] == wanted
    for text, prediction in zip(TEXTS, bound, strict=True):
        for use in used(prediction):
            assert text[use.start : use.end] == use.source
            assert use.status in ("used", "elsewhere")  # of a tiny model
            assert use.used in use.wanted
    assert bound[3].text == plain[3].text
    assert [prediction.terms for prediction in plain] == [None] * len(TEXTS)
    assert demo.translate(TEXTS) == plain
    together = demo.with_glossary(glossary).translate(TEXTS)
    alone = [demo.with_glossary(glossary).translate(text)[0] for text in TEXTS]
    assert together == alone


def test_a_translation_that_has_the_term_stays_as_it_was(demo: Translator) -> None:
    (plain,) = demo.translate(TEXTS[0])
    assert "老师" in plain.text
    (bound,) = demo.with_glossary(rows(("teacher", "老师"))).translate(TEXTS[0])
    assert bound.text == plain.text
    assert [use.status for use in used(bound)] == ["used"]


def test_the_models_own_word_gives_way(demo: Translator) -> None:
    (bound,) = demo.with_glossary(rows(("teacher", "教员"))).translate(TEXTS[0])
    assert "教员" in bound.text
    assert "老师" not in bound.text


def test_the_search_is_bound_by_what_was_lacking_and_only_then_by_all(
    demo: Translator,
) -> None:
    """Terms that the model writes by itself do not divide the beam."""
    model = demo.with_glossary(rows(("teacher", "老师"), ("book", "书籍")))
    planned = model.plan([TEXTS[0]])
    (row,) = planned.rows
    free = model._rows.find([row], planned.settings)
    assert "老师" in model.text_of(free[row][0])
    again = model.bound(free, planned.settings)
    every = row.bound().terms
    assert every is not None
    assert again[row].terms == Terms(every.terms[1:])
    by_all = model.bound(free, planned.settings, again)
    assert by_all[row].terms == every
    assert by_all[row].avoided == again[row].avoided
    assert not model.bound(free, planned.settings, by_all)
    found = model.find(planned)
    assert not model.bound(found, planned.settings, again)


def test_what_must_not_be_used_is_not(demo: Translator) -> None:
    glossary = Glossary((Entry(("teacher",), ("教员", "教师"), ("老师",)),))
    (bound,) = demo.with_glossary(glossary).translate(TEXTS[0])
    assert "老师" not in bound.text
    assert re.search("教员|教师", bound.text)


def test_a_term_without_target_stays_as_it_is(demo: Translator) -> None:
    glossary = Glossary((Entry(("teacher",), ()),))
    (bound,) = demo.with_glossary(glossary).translate(TEXTS[0])
    assert "teacher" in bound.text


def test_a_stream_and_a_completion_are_bound_too(demo: Translator) -> None:
    bound = demo.with_glossary(rows(("bicycle", "单车")))
    assert "单车" in "".join(bound.stream(TEXTS[1]))
    completed = bound.complete(TEXTS[1], "我哥哥")
    assert completed.text.startswith("我哥哥")
    assert "单车" in completed.text
    assert bound.complete(TEXTS[1], "单车").text.count("单车") == 1


def test_completions_and_their_alternatives_have_the_terms(demo: Translator) -> None:
    entry = Entry(("bicycle",), ("单车",), ("自行车",))
    bound = demo.with_glossary(Glossary((entry,)))
    (translated,) = bound.translate(TEXTS[1])
    assert bound.complete(TEXTS[1]).text == translated.text
    for prefix in ("我哥哥", "我哥哥昨天买了一辆新单"):
        completed = bound.complete(TEXTS[1], prefix, alternatives=3)
        texts = [completed.text, *(one.translation for one in completed.alternatives)]
        assert len(texts) == 4
        for text in texts:
            assert text.startswith(prefix)
            assert text.count("单车") == 1
            assert "自行车" not in text
        (use,) = used(completed.prediction)
        assert use.used == "单车"


def test_samples_and_exhaustive_search_have_no_glossary(demo: Translator) -> None:
    bound = demo.with_glossary(rows(("teacher", "教员")))
    for options in ({"temperature": 1.0}, {"exhaustive": 2}):
        with pytest.raises(UsageError, match="a glossary is for a beam"):
            bound.translate(TEXTS[0], **options)
    assert bound.with_glossary(None).translate(TEXTS[0], temperature=1.0)


def test_no_text_has_no_terms(demo: Translator) -> None:
    (nothing,) = demo.with_glossary(rows(("teacher", "教员"))).translate("  ")
    assert nothing.terms == []


TOKENS = train_tokenizer(
    ["the cat sat on the mat", "die Katze saß 猫好"] * 4,
    SideSection(kind="bpe", vocab_size=330),
)


def row_of(
    glossary: Glossary, line: str, room: int = 20, has_spaces: bool = True
) -> SourceRow:
    """The row of a line, with the terms that were found in it."""
    ids = (*TOKENS.encode(line), EOS_ID)
    finder = TermFinder(glossary, TOKENS, TOKENS, room, has_spaces)
    return SourceRow(ids, found=finder.find(ids, line))


def bound(
    glossary: Glossary, line: str, room: int = 20, has_spaces: bool = True
) -> tuple[Term, ...]:
    terms = row_of(glossary, line, room, has_spaces).bound().terms
    assert terms is not None
    return terms.terms


def spelled(ids: Sequence[int]) -> str:
    return TOKENS.decode(ids)


@pytest.mark.parametrize("line", ["the cat sat", "cat", "  a “cat”, the", "猫 cat猫"])
def test_the_source_tokens_of_a_term(line: str) -> None:
    row = row_of(rows(("cat", "Katze")), line)
    (term,) = bound(rows(("cat", "Katze")), line)
    assert term.span is not None
    first, last = term.span
    assert spelled(row.ids[first:last]).strip(" “") == "cat"
    assert [spelled(form) for form in term.forms] == ["Katze"]


def test_a_row_without_terms_is_not_bound() -> None:
    row = row_of(rows(("dog", "Hund")), "the cat sat")
    assert row.found is None
    assert row.bound() is row


def test_a_capital_at_the_head_is_an_alternative() -> None:
    (term,) = bound(rows(("cat", "katze")), "Cat sat")
    assert [spelled(form) for form in term.forms] == ["katze", "Katze"]


def test_a_script_without_spaces_needs_none_before_a_term() -> None:
    (term,) = bound(rows(("cat", "猫")), "cat", has_spaces=False)
    assert {TOKENS.spell(form, begins=False).decode() for form in term.forms} == {"猫", " 猫"}  # fmt: skip
    assert term.open


def test_a_first_word_without_a_leading_space_is_a_form_of_its_own() -> None:
    settings = SideSection(kind="bpe", vocab_size=330, leading_space=False)
    bare = train_tokenizer(["the cat sat on the mat", "die Katze saß"] * 4, settings)
    line = "the cat sat"
    ids = (*bare.encode(line), EOS_ID)
    found = TermFinder(rows(("cat", "Katze")), bare, bare, 20).find(ids, line)
    assert found is not None
    assert found.needed is not None
    (term,) = found.needed.terms
    assert [bare.decode(form) for form in term.forms] == [" Katze", "Katze"]
    assert term.span is not None
    assert bare.decode(ids[slice(*term.span)]) == " cat"
    # a model that reads terms has seen them inside of sentences
    (hint,) = found.hints
    assert bare.decode(hint.target) == " Katze"


def uses(row: SourceRow, translation: str, source: int | None = None) -> list[TermUse]:
    """What became of the terms, if all tokens of a translation come from one of the source."""
    ids = TOKENS.encode(translation)
    support = None
    if source is not None:
        support = np.zeros((len(ids) + 1, len(row.ids)), np.float32)
        support[:, source] = 1.0
    assert row.found is not None
    return list(row.found.uses(translation, ids, support))


def test_what_became_of_a_term_is_said() -> None:
    glossary = Glossary((Entry(("cat",), ("Katze",), ("Kater",), where="t.tsv:1"),))
    row = row_of(glossary, "the cat sat")

    def status(translation: str, source: int | None = None) -> tuple[str, str]:
        (use,) = uses(row, translation, source)
        assert use.where == "t.tsv:1"
        return use.status, use.reason

    assert status("die Katze saß") == ("used", "")
    assert status("die Katze saß Katze")[0] == "doubled"
    assert status("der Kater saß") == ("avoided", "Kater must not be used")
    assert status("saß")[0] == "missing"
    assert status("Katzen")[0] == "missing"
    (term,) = bound(glossary, "the cat sat")
    assert term.span is not None
    assert status("die Katze saß", term.span[0])[0] == "used"
    assert status("die Katze saß", 0)[0] == "elsewhere"


def test_an_inflected_term_is_in_its_place() -> None:
    """Its tokens are others than those of the word in the glossary."""
    entry = Entry(("cat",), ("Katze",), inflected=True, where="t.tsv:1")
    row = row_of(Glossary((entry,)), "the cats sat")
    (term,) = bound(Glossary((entry,)), "the cats sat")
    assert term.span is not None
    for translation in ("die Katze saß", "die Katzenöhr saß"):
        (use,) = uses(row, translation, term.span[0])
        assert use.status == "used"
        start, end = use.place
        assert translation[start:end] == use.used == "Katze"
        (use,) = uses(row, translation, 0)
        assert use.status == "elsewhere"


def test_a_word_of_a_term_comes_from_it_and_is_not_doubted(demo: Translator) -> None:
    glossary = rows(("teacher", "教员"), ("book", "书籍"), ("bicycle", "单车"))
    doubting = copy(demo.with_glossary(glossary))
    quality = Quality(
        Logistic(-3.0, np.zeros(len(WORD_FEATURES))),
        Logistic(-3.0, np.zeros(len(SENTENCE_FEATURES))),
    )
    doubting.doubts = replace(doubting.doubts, quality=quality)
    for text, prediction in zip(
        TEXTS, doubting.translate(TEXTS, doubts=True), strict=True
    ):
        assert prediction.words is not None
        demanded = [word for word in prediction.words if word.term]
        assert {word.term for word in demanded} == {
            use.source for use in used(prediction)
        }
        for word in demanded:
            assert [source.text.strip(".") for source in word.sources] == [word.term]
            assert word.quality is None
            assert not word.is_doubtful
            assert word.to_json()["term"] == word.term
        others = [word for word in prediction.words if not word.term]
        assert others
        assert all(word.is_doubtful for word in others)
        assert prediction.quality is not None
        assert (prediction.quality > 0.1) == bool(demanded), text


def test_the_place_of_a_term_is_judged_by_what_the_model_looked_at(
    demo: Translator,
) -> None:
    bound = demo.with_glossary(rows(("teacher", "garden")))
    (prediction,) = bound.translate(TEXTS[0], alignments=True)
    assert prediction.words is not None
    (word,) = [word for word in prediction.words if word.term]
    assert [one.text for one in word.sources] == ["teacher"]
    # what it is demanded for says nothing about where it stands
    elsewhere = SourceWord(7, "garden.", 31, 38)
    moved = replace(prediction, words=[replace(word, looked_at=[elsewhere])])
    text = term_text(TEXTS[0], "garden", moved)
    assert text.words is not None
    assert [one.sources for one in text.words] == [((31, 38),)]


def test_a_word_whose_translation_is_said_is_not_unknown(demo: Translator) -> None:
    text = "The zorbing teacher reads a zorbing."
    (plain,) = demo.translate(text)
    assert plain.unknown_words == ["zorbing"]
    (once,) = demo.with_glossary(rows(("zorbing teacher", "教员"))).translate(text)
    assert once.unknown_words == ["zorbing"]
    (found,) = demo.with_glossary(rows(("zorbing", "zorbing"))).translate(text)
    assert found.unknown_words == []


def test_what_is_written_again_as_it_is_is_not_unknown(demo: Translator) -> None:
    reading = copy(demo)
    reading.kept_forms = (":a:`a",)
    text = "The :func:`zorb` teacher reads a zorb."
    assert set(demo.translate(text)[0].unknown_words) > {"zorb"}
    assert reading.translate(text)[0].unknown_words == ["zorb"]
    assert reading.translate(text.replace(" zorb.", " book."))[0].unknown_words == []


def test_a_term_twice_in_the_source_is_needed_twice() -> None:
    row = row_of(rows(("cat", "Katze")), "cat on cat")
    once = uses(row, "eine Katze")
    assert [(use.used, use.status) for use in once] == [("Katze", "used"), ("", "missing")]  # fmt: skip
    assert row.found is not None
    assert row.found.lacks("eine Katze")
    assert not row.found.lacks("Katze und Katze")


@pytest.mark.parametrize(
    ("translation", "said"),
    [
        ("Katzen", "; for Katzen to count, too, give the row inflection: yes"),
        ("Eine Wildkatze.", "; for Wildkatze to count, too, write Katze|Wildkatze"),
        ("Hund", "it does not stand there as a word"),
    ],
)
def test_a_longer_word_in_its_place_is_told_with_the_remedy(
    translation: str, said: str
) -> None:
    row = row_of(rows(("cat", "Katze")), "a cat")
    (use,) = uses(row, translation)
    assert use.status == "missing"
    assert use.reason.endswith(said)


def test_terms_that_share_a_target_are_lacking_together() -> None:
    row = row_of(rows(("cat", "Katze"), ("mat", "Matte")), "cat on cat, mat")
    assert row.found is not None
    assert row.found.lacking("Katze auf Katze, Matte") == set()
    assert row.found.lacking("Katze auf Matte") == {0, 1}
    assert row.found.lacking("Katze auf Katze") == {2}
    assert row.found.needed is not None
    assert row.found.needed_of({2}) == Terms(row.found.needed.terms[2:])
    assert row.found.needed_of(()) is None


def test_a_term_within_another_one_is_no_second_one() -> None:
    glossary = rows(("cat", "Katze"), ("big cat", "große Katze"))
    row = row_of(glossary, "a cat and a big cat")
    assert [use.status for use in uses(row, "Katze und große Katze")] == ["used", "used"]  # fmt: skip
    statuses = [use.status for use in uses(row, "eine große Katze")]
    assert statuses == ["missing", "used"]


def test_terms_beyond_the_room_are_left_out_and_said() -> None:
    glossary = rows(("cat", "Katze"), ("mat", "Katze saß die Katze saß"))
    line = "the cat on the mat"
    assert len(bound(glossary, line, room=4)) == 1
    found = uses(row_of(glossary, line, room=4), "Katze")
    assert [use.status for use in found] == ["used", "missing"]
    assert found[1].reason == "the sentence has too many terms"
