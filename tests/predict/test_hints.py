"""Terms and matches that a model reads in the source, over models with random weights."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from random_models import tiny_task
from weft.data.corpus import from_pairs
from weft.data.glossary import Entry, Glossary
from weft.data.hints import Hints, TermHint, target_ids
from weft.data.memory import Memory
from weft.data.tokenizer import BOS_ID, EOS_ID, UNK_ID
from weft.decoding.shortlist import learn_shortlist
from weft.engine.plain import PlainTransformer
from weft.engine.plain_steps import cross_attention_of, source_shares_of, steps_of
from weft.errors import UsageError
from weft.predict.rows import Member
from weft.predict.segments import SourceRow
from weft.predict.translator import Translator

LINE = "Ein kleiner Hund läuft über die Wiese."
OTHER = "Ein kleiner Hund läuft über die Straße."
GLOSSARY = Glossary((Entry(("Hund",), ("hound",)), Entry(("Wiese",), ("meadow",))))


@cache
def _translator(*settings: str) -> Translator:
    found: Translator = tiny_task("en-de", *settings).predictor()
    return found


def _reading() -> Translator:
    return _translator("data.terms=0.3", "data.memory=0.3")


def _row(model: Translator, line: str = LINE) -> SourceRow:
    (row,) = model.plan([line]).rows
    return row


def _memory() -> Memory:
    return Memory.from_text(
        from_pairs([(OTHER, "A dog on a street.")], "m", "de", "en")
    )


def test_a_model_reads_the_terms_that_it_has_learned_to_read() -> None:
    model = _reading()
    row = _row(model.with_glossary(GLOSSARY))
    tokenizer = model.src_tokenizer
    assert row.ids == (*tokenizer.encode(LINE), EOS_ID)
    first, second = row.hints.terms
    assert first.target == target_ids(tokenizer, "hound")
    assert tokenizer.decode(row.ids[second.begin : second.end]).strip() == "Wiese"
    read = list(row.read)
    assert read.count(UNK_ID) == 2
    begin, end = read.index(UNK_ID), read.index(EOS_ID)
    assert read[begin + 1 : end] == list(first.target)
    assert "Hund" not in tokenizer.decode(read)
    assert row.read[-1] == EOS_ID
    assert _row(model).read == row.ids


@pytest.mark.parametrize(
    ("terms", "marks", "binds"),
    [
        (None, True, True),
        ("both", True, True),
        ("source", True, False),
        ("search", False, True),
    ],
)
def test_who_has_the_terms_written_can_be_chosen(
    terms: Any, marks: bool, binds: bool
) -> None:
    model = _reading().with_glossary(GLOSSARY, terms=terms)
    planned = model.plan([LINE])
    (row,) = planned.rows
    assert bool(row.hints) == marks
    found = {row: model._rows.find([row], planned.settings)[row]}
    assert bool(model.bound(found, planned.settings)) == binds
    (prediction,) = model.translate(LINE)
    assert prediction.terms is not None
    are_used = ["meadow" in prediction.text, "hound" in prediction.text]
    assert are_used == [binds, binds]
    if not binds:
        reasons = {use.reason for use in prediction.terms}
        assert reasons == {"the model read it and did not write it"}


def test_a_model_that_has_not_learned_to_read_terms_does_not() -> None:
    model = _translator()
    assert not _row(model.with_glossary(GLOSSARY)).hints
    for terms in ("source", "both"):
        with pytest.raises(UsageError, match=r"not trained with data\.terms"):
            model.with_glossary(GLOSSARY, terms=terms)  # type: ignore[arg-type]
    assert not _row(model.with_memory(_memory())).hints
    # all of an ensemble have to
    together = _reading().ensemble(_reading())
    assert together.takes_terms
    assert together.takes_match
    other = _translator("data.terms=0.3")
    assert other.takes_terms
    assert not other.takes_match
    both = _reading().ensemble(other)
    assert both.takes_terms
    assert not both.takes_match


def test_a_model_reads_the_nearest_unit_of_its_memory() -> None:
    model = _reading().with_memory(_memory())
    tokenizer = model.src_tokenizer
    row = _row(model)
    assert row.hints == Hints(match=tuple(tokenizer.encode("A dog on a street.")))
    assert row.read == (*row.ids[:-1], BOS_ID, *row.hints.match, EOS_ID)
    assert not _row(model, "お茶をください。").hints
    both = _row(model.with_glossary(GLOSSARY))
    assert both.hints.match
    assert both.hints.terms
    # what is taken is not read at all
    assert not model.plan([OTHER]).rows


def test_hints_that_do_not_fit_are_left_out() -> None:
    model = _reading().with_glossary(GLOSSARY).with_memory(_memory())
    row = _row(model)
    tight = _row(_limited(model, len(row.read)))
    assert tight.hints == row.hints
    tighter = _row(_limited(model, len(row.read) - 1))
    assert tighter.hints == Hints(row.hints.terms)
    assert not _row(_limited(model, len(row.ids) + 1)).hints


def _limited(model: Translator, limit: int) -> Translator:
    limited = model.with_memory(_memory())
    limited.lengths = replace(limited.lengths, limit=limit)
    return limited


def test_alignments_count_the_tokens_of_the_plain_sentence() -> None:
    model = _reading().with_glossary(GLOSSARY, terms="source").with_memory(_memory())
    (prediction,) = model.translate(LINE, alignments=True)
    pieces = model.src_tokenizer.pieces(_row(model).ids)
    assert prediction.alignments is not None
    for link in prediction.alignments:
        assert pieces[link.source] == link.source_token
    assert prediction.words is not None
    for word in prediction.words:
        for source in word.sources:
            assert LINE[source.start : source.end] == source.text


def test_support_is_the_same_however_it_is_computed() -> None:
    """Recorded in the search, read again by the engine, and by the model's own steps."""
    task = tiny_task("en-de", "data.terms=0.3", "data.memory=0.3")
    model = task.predictor().with_glossary(GLOSSARY, terms="source")
    model = model.with_memory(_memory())
    planned = model.plan([LINE], alignments=True)
    (row,) = planned.rows
    assert row.hints
    found = model.find(planned)
    recorded = model._rows.support(found, planned.settings)[row]
    again = {row: [replace(one, shares=None) for one in found[row]]}
    read = model._rows.support(again, planned.settings)[row]
    plain = PlainTransformer(task.weights)
    member = Member(
        task.config.model.max_len,
        steps_of(plain),
        None,
        cross_attention_of(plain),
        source_shares_of(lambda: task.weights),
    )
    own = replace(model._rows, members=(member,)).support(again, planned.settings)[row]
    for one, other, third in zip(recorded, read, own, strict=True):
        assert one.shape[1] == len(row.ids)
        assert one == pytest.approx(other, abs=1e-3)
        assert one == pytest.approx(third, abs=1e-3)


def test_the_terms_of_a_search_are_bound_to_what_is_read() -> None:
    model = _reading().with_glossary(GLOSSARY)
    planned = model.plan([LINE])
    (row,) = planned.rows
    bound = row.bound()
    sentence = model.sentence(bound, planned.settings)
    assert tuple(sentence.ids) == row.read
    assert sentence.terms is not None
    for term, hint in zip(sentence.terms.terms, row.hints.terms, strict=True):
        assert term.span is not None
        first, last = term.span
        assert row.read[first] == UNK_ID
        assert row.read[last - 1] == EOS_ID
        assert row.read[first + 1 : last - 1] == hint.target


def test_a_shortlist_has_what_hints_say() -> None:
    model = _reading().with_memory(_memory())
    pairs = [(model.src_tokenizer.encode(LINE), model.src_tokenizer.encode("A dog"))]
    size = model.src_tokenizer.vocab_size
    learned = learn_shortlist(
        pairs, size, size, always=[EOS_ID], num_frequent=1, num_likely=1
    )
    model._rows = replace(model._rows, shortlist=learned)
    planned = model.plan([LINE], shortlist=True)
    (row,) = planned.rows
    allowed = set(np.asarray(model.sentence(row, planned.settings).allowed).tolist())
    assert set(row.hints.match) <= allowed
    assert not set(row.hints.match) <= set(learned.of(row.ids).tolist())


def test_a_hint_has_a_term_once_where_terms_share_tokens() -> None:
    model = _reading()
    glossary = Glossary(
        (Entry(("läuft über",), ("crosses",)), Entry(("die",), ("the",)))
    )
    row = _row(model.with_glossary(glossary))
    assert [len(hint.target) > 0 for hint in row.hints.terms] == [True, True]
    places = [place for hint in row.hints.terms for place in (hint.begin, hint.end)]
    assert places == sorted(places)
    assert isinstance(row.hints.terms[0], TermHint)


def test_a_hint_has_the_spelling_that_the_text_asks_for() -> None:
    model = _reading()

    def read(line: str, entry: Entry) -> list[str]:
        row = _row(model.with_glossary(Glossary((entry,))), line)
        decode = model.tgt_tokenizer.decode
        return [decode(hint.target).strip() for hint in row.hints.terms]

    small = Entry(("tea",), ("dog", "hound"))
    assert read("Tea, a tea and one Tea", small) == ["Dog", "dog", "dog"]
    assert read("A tea", small) == ["dog"]
    assert read("Tea", Entry(("Tea",), ("dog",))) == ["dog"]
    # an ending that the glossary does not have
    inflected = Entry(("Wiese",), ("meadow",), inflected=True)
    assert read("eine Wiese", inflected) == ["meadow"]
    assert read("zwei Wiesen", inflected) == []
    assert (
        model.with_glossary(Glossary((inflected,))).plan(["zwei Wiesen"]).rows[0].found
    )
