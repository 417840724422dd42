"""Terms in translations: what counts, and where each stands; the figures are worked out by hand."""

import json

import pytest

from weft.data.glossary import Entry, Glossary
from weft.evaluation.terms import (
    AlignedWord,
    TermCounts,
    TermScores,
    TermText,
    term_scores,
    term_table,
)

CAT = Entry(("cat",), ("Katze", "Mieze"), ("Kater",))
DOG = Entry(("dog",), ("Hund",))
SOURCE = "The old cat sleeps on the red mat"
REFERENCE = "Die alte Katze schläft auf der roten Matte."


def scores(*texts: TermText, entries: tuple[Entry, ...] = (CAT, DOG)) -> TermScores:
    return term_scores(Glossary(entries), texts, "de")


def counts(
    source: str, reference: str, translation: str, *words: AlignedWord
) -> TermCounts:
    text = TermText(source, reference, translation, words or None)
    return scores(text).counts


def test_a_reference_has_all_its_terms_right() -> None:
    texts = [
        TermText(SOURCE, REFERENCE, REFERENCE),
        # twice, as in the source; and once more than there
        TermText("cat, dog and cat", "Katze, Hund, Mieze", "Katze, Hund, Mieze"),
        TermText("its dog", "der Hund, sein Hund", "der Hund, sein Hund"),
        TermText("cat", "Katze", "Katze"),
        TermText("cat", "Katze, kein Kater", "Katze, kein Kater"),
    ]
    found = scores(*texts)
    expected = TermCounts(
        num_terms=7, right=7, exact=7, avoidable=5, overlaps={2: 7.0, 3: 7.0}
    )
    assert found.counts == expected
    assert found.num_sentences == 5
    assert found.sentences is not None
    assert found.sentences.bleu == pytest.approx(100)


@pytest.mark.parametrize(
    ("translation", "two", "three"),
    [
        # the reference has Die alte _ schläft auf, of three words also der
        ("Die alte Katze schläft auf der roten Matte", 4 / 4, 5 / 5),
        ("Die alte Mieze schläft auf einer Matte", 4 / 4, 4 / 5),
        ("Alte Katze, auf der roten Matte schläft sie", 1 / 4, 2 / 5),
        ("Auf der roten Matte schläft die alte Katze", 1 / 4, 2 / 5),
        ("Katze", 0.0, 0.0),
        # each word of the reference is matched once
        ("auf auf Katze auf auf", 1 / 4, 1 / 5),
    ],
)
def test_window_overlap(translation: str, two: float, three: float) -> None:
    found = counts(SOURCE, REFERENCE, translation).overlaps
    assert found == {2: pytest.approx(two), 3: pytest.approx(three)}


def test_each_character_is_a_word_where_there_are_no_spaces() -> None:
    text = TermText("a cat", "一只老猫睡。", "那只猫睡了")
    entry = Entry(("cat",), ("猫",))
    found = term_scores(Glossary((entry,)), [text], "zh").counts
    # two: 只老 睡 beside 那只 睡了; three: 一只老 睡 beside 那只 睡了
    assert found.overlaps == {2: pytest.approx(2 / 3), 3: pytest.approx(2 / 4)}


def test_without_the_reference_nothing_counts() -> None:
    found = scores(TermText("the cat", "sie schläft", "die Katze schläft"))
    assert found.counts == TermCounts(not_in_reference=1, avoidable=1)
    assert (found.num_sentences, found.sentences) == (0, None)
    assert found.to_json()["bleu"] is None
    (line,) = term_table({"with": found})
    assert "0 of 1" in line


def test_a_term_counts_as_often_as_in_source_and_reference() -> None:
    found = counts("cat and cat and cat", "Katze und Katze und sie", "Katze")
    assert (found.num_terms, found.not_in_reference) == (2, 1)
    assert (found.exact, found.missing) == (1, 1)


def test_sentences_with_terms_that_the_reference_lacks_have_no_bleu() -> None:
    found = scores(
        TermText("cat, dog", "Katze, er", "Katze, Hund"),
        TermText(SOURCE, REFERENCE, REFERENCE),
        TermText("no term", "nichts", "etwas"),
    )
    assert (found.counts.num_terms, found.num_sentences) == (2, 1)
    assert found.sentences is not None
    assert found.sentences.bleu == pytest.approx(100)


def test_doubled() -> None:
    found = counts(SOURCE, REFERENCE, "Die alte Katze schläft auf der Katze.")
    assert (found.doubled, found.right, found.exact) == (1, 0, 1)
    other = counts(SOURCE, REFERENCE, "Die alte Katze, eine Mieze, schläft.")
    assert other.doubled == 1
    once = counts("cat cat", "Katze Katze", "Katze Katze Katze")
    assert (once.doubled, once.right) == (1, 1)


def test_within_another_term_is_not_doubled() -> None:
    entries = (CAT, Entry(("wild cat",), ("wilde Katze",)))
    text = TermText("wild cat, cat", "wilde Katze, Katze", "wilde Katze, Katze")
    assert scores(text, entries=entries).counts.right == 2
    lacking = TermText("wild cat, cat", "wilde Katze, Katze", "wilde Katze, da")
    found = scores(lacking, entries=entries).counts
    assert (found.exact, found.missing, found.doubled) == (1, 1, 0)


def test_within_a_word_is_missing() -> None:
    assert counts("the dog", "der Hund", "der Hundestall").missing == 1


def test_a_place_is_judged_by_alignment_or_words() -> None:
    moved = "Auf der roten Matte liegt Katze"
    place = moved.index("Katze"), len(moved)
    cat = SOURCE.index("cat"), SOURCE.index("cat") + 3
    mat = SOURCE.index("mat"), SOURCE.index("mat") + 3
    assert counts(SOURCE, REFERENCE, moved).misplaced == 1
    assert counts(SOURCE, REFERENCE, moved, AlignedWord(*place, (cat,))).right == 1
    assert counts(SOURCE, REFERENCE, moved, AlignedWord(*place, ())).misplaced == 1
    wrong = AlignedWord(*place, (mat,))
    assert counts(SOURCE, REFERENCE, moved, wrong).misplaced == 1
    # among the reference's words it is in its place, whatever the model looked at
    again = AlignedWord(REFERENCE.index("Katze"), REFERENCE.index("Katze") + 5, (mat,))
    assert counts(SOURCE, REFERENCE, REFERENCE, again).right == 1


def test_words_to_avoid() -> None:
    found = counts(SOURCE, REFERENCE, "Der alte Kater, die Katze")
    assert (found.avoidable, found.avoided, found.exact) == (1, 1, 1)
    assert counts(SOURCE, REFERENCE, "Katerstimmung").avoided == 0


def test_for_a_person_and_a_program() -> None:
    free = scores(TermText(SOURCE, REFERENCE, "Der Kater schläft auf der roten Matte"))
    bound = scores(TermText(SOURCE, REFERENCE, REFERENCE))
    lines = term_table({"without": free, "with": bound})
    assert lines[0] == "terms 1 of 1 in the sources are in the references and count"
    assert lines[1].split() == ["without", "with"]
    rows = {line[:44].strip(): line[44:].split() for line in lines[2:]}
    assert rows["as often as it should, in its place"] == ["0.0", "%", "100.0", "%"]
    assert rows["missing"] == ["100.0", "%", "0.0", "%"]
    assert rows["a word to avoid, of 1 with one"] == ["100.0", "%", "0.0", "%"]
    assert rows["BLEU"][1] == "100.00"
    assert lines[-1].strip() == "BLEU and chrF of 1 sentence whose terms all count"
    found = json.loads(json.dumps(bound.to_json()))
    assert (found["right"], found["window_overlap_2"]) == (1.0, 1.0)
    assert found["counts"]["num_terms"] == found["counts"]["num_sentences"] == 1


def test_what_is_not_right_is_listed_with_its_place() -> None:
    texts = [
        TermText("cat and dog", "Katze und Hund", "Kater", None, "a:1"),
        TermText("cat", "Katze", "Katze, Katze", None, "a:2"),
        TermText(
            "a cat and a dog", "eine Katze und ein Hund", "Katze, Hund", None, "a:3"
        ),
    ]
    found = scores(*texts)
    told = [(one.where, one.status, one.source) for one in found.counts.faults]
    assert told[:4] == [
        ("a:1", "missing", "cat"),
        ("a:1", "missing", "dog"),
        ("a:1", "avoided", "cat"),
        ("a:2", "doubled", "cat"),
    ]
    counts = found.counts
    num_wrong = counts.missing + counts.avoided + counts.doubled + counts.misplaced
    assert len(told) == num_wrong
    lines = term_table({"without": found, "with": scores(*texts * 4)})
    assert "a word to avoid, of 3 with one" in " ".join(lines)
    first = lines.index(next(line for line in lines if "not right with" in line))
    assert lines[first + 1] == "      a:1: cat: missing: Katze or Mieze"
    assert lines[first + 3] == "      a:1: cat: avoided: Kater"
    assert len(lines) == first + 12
    assert lines[-1].endswith("more; --json lists them all")
