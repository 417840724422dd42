"""An output has its terms: with room for everything it is the best that has them, with a small beam
it has them too, where the source's words were translated.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.best import LogSoftmax, best_allowed
from weft.decoding.decoder import Floats, Hypothesis, Indices, StepInput, TopK
from weft.decoding.forms import IDLE, Term, Terms
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, SampleSettings, Sentence
from weft.engine.batched import Steps
from weft.errors import UsageError

BOS, EOS, V = 0, 1, 7
LIMIT = 4  # tokens of an output, with eos
ROOM = 200  # hypotheses: more than there are of 5 other tokens


@lru_cache(maxsize=100_000)
def log_probs_after(source: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
    """A tiny model: random, the same for the same source and prefix; it never says bos."""
    rng = random.Random(f"{source} {prefix}")
    logits = [rng.gauss(0, 2) for _ in range(V)]
    logits[BOS] = -1e9
    total = math.log(sum(map(math.exp, logits)))
    return tuple(logit - total for logit in logits)


class Texts:
    """Sources and prefixes in the place of a cache."""

    def __init__(self, rows: list[tuple[int, tuple[int, ...]]]) -> None:
        self.rows = rows

    def select(self, rows: Indices) -> "Texts":
        return Texts([self.rows[row] for row in rows.tolist()])


def step(ids: Indices, cache: Texts) -> tuple[Floats, Texts]:
    rows = [
        (source, (*prefix, token))
        for (source, prefix), token in zip(cache.rows, ids.tolist(), strict=True)
    ]
    logits = [log_probs_after(source, prefix[1:]) for source, prefix in rows]
    return np.array(logits, np.float32), Texts(rows)


ENGINE = Steps(lambda sources: Texts([(ids[0], ()) for ids in sources]), step)


def beams(size: int, alpha: float = 0.6, n_best: int = 1) -> BeamSettings:
    return BeamSettings(BOS, EOS, size, alpha, n_best, banned_ids=(BOS,))


def has_all(ids: Sequence[int], terms: Terms, inner: Sequence[int] = ()) -> bool:
    """Whether each term has tokens of its own among these, in a row: every way is tried."""
    places = [list(places_of(ids, term, inner)) for term in terms.terms]
    return any(
        all(apart(one, other) for one in chosen for other in chosen if one is not other)
        for chosen in product(*places)
    )


def places_of(
    ids: Sequence[int], term: Term, inner: Sequence[int]
) -> Iterator[tuple[int, int]]:
    for form in term.forms:
        for first in range(len(ids) - len(form) + 1):
            end = first + len(form)
            is_whole = end == len(ids) or ids[end] not in inner
            if tuple(ids[first:end]) == form and is_whole:
                yield first, end


def apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def every_output(source: int) -> list[tuple[float, list[int]]]:
    """Every finished output with its score, the best first."""
    found = []
    open_ones: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for length in range(1, LIMIT + 1):
        grown = []
        for log_prob, ids in open_ones:
            log_probs = log_probs_after(source, ids)
            for token in range(1, V):
                grown.append((log_prob + log_probs[token], (*ids, token)))
        penalty = ((5 + length) / 6) ** 0.6
        for log_prob, ids in grown:
            if ids[-1] == EOS:
                found.append((log_prob / penalty, list(ids[:-1])))
        open_ones = [pair for pair in grown if pair[1][-1] != EOS]
    return sorted(found, key=lambda pair: -pair[0])


def random_terms(rng: random.Random) -> Terms:
    """One or two terms of one or two forms; all together fit."""
    terms = []
    room = LIMIT - 1
    for _ in range(rng.randint(1, 2)):
        longest = min(3, room)
        if not longest:
            break
        forms = {
            tuple(rng.choices(range(2, V), k=rng.randint(1, longest)))
            for _ in range(rng.randint(1, 2))
        }
        terms.append(Term(tuple(sorted(forms))))
        room -= min(map(len, forms))
    inner = rng.sample(range(2, V), rng.randint(0, 1))
    return Terms(tuple(terms), inner)


def search(sentences: list[Sentence], settings: BeamSettings) -> list[list[Hypothesis]]:
    found = search_all(ENGINE, sentences, settings, batch_tokens=10**6)
    return [found[number] for number in range(len(sentences))]


@pytest.mark.long
def test_with_room_for_all_it_finds_the_best_of_all_that_have_the_terms() -> None:
    """200 tiny models, each with terms of its own."""
    for number in range(200):
        terms = random_terms(random.Random(number))
        right = [
            (score, ids)
            for score, ids in every_output(number)
            if has_all(ids, terms, list(terms.inner))
        ]
        sentence = Sentence(0, [number], LIMIT, terms=terms)
        ((best, *others),) = search([sentence], beams(ROOM, n_best=3))
        assert right, number
        assert best.ids == right[0][1], number
        assert best.score == pytest.approx(right[0][0], abs=1e-4)
        expected = [ids for _, ids in right[1:3]]
        assert [other.ids for other in others if other.finished] == expected


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_with_a_small_beam_every_output_has_its_terms(size: int) -> None:
    chance = random.Random(size)
    sentences = []
    for number in range(150):
        terms = random_terms(chance)
        limit = chance.randint(LIMIT, 12)
        sentences.append(Sentence(number, [number], limit, terms=terms))
    for sentence, found in zip(
        sentences, search(sentences, beams(size, n_best=size)), strict=True
    ):
        assert found
        assert sentence.terms is not None
        for hypothesis in found:
            inner = list(sentence.terms.inner)
            assert has_all(hypothesis.ids, sentence.terms, inner), sentence


def test_sentences_without_terms_become_the_same_beside_those_with() -> None:
    plain = [Sentence(number, [number], 9) for number in range(12)]
    mixed = [
        Sentence(
            number,
            [number],
            9,
            terms=random_terms(random.Random(number)) if number % 3 == 0 else None,
        )
        for number in range(12)
    ]
    alone = search(plain, beams(3, n_best=2))
    together = search(mixed, beams(3, n_best=2))
    for number in range(12):
        if number % 3:
            assert together[number] == alone[number]
            continue
        ((own),) = search([Sentence(0, [number], 9, terms=mixed[number].terms)], beams(3, n_best=2))  # fmt: skip
        assert together[number] == own


def test_terms_of_a_prefix_are_written_already() -> None:
    terms = Terms((Term(((4, 5),)), Term(((6,),))))
    assert terms.after([4, 5, 4]) == (IDLE, 1, 1)
    assert terms.after([6, 4, 5]) == (IDLE, 3, 0)
    assert terms.after([4, 6]) == (IDLE, 2, 2)
    found = search([Sentence(0, [3], 9, prefix=(4, 5), terms=terms)], beams(5))
    assert found[0][0].ids[:2] == [4, 5]
    assert has_all(found[0][0].ids, terms)
    only = Terms((Term(((4, 5),)),))
    with_terms = search([Sentence(0, [3], 9, prefix=(4, 5), terms=only)], beams(5))
    without = search([Sentence(0, [3], 9, prefix=(4, 5))], beams(5))
    assert with_terms == without


def test_a_term_that_a_prefix_begins_goes_on() -> None:
    terms = Terms((Term(((4, 5), (6, 2, 3))),))
    assert terms.after([3, 4]) == (1, 0, 1)
    assert terms.after([6, 2]) == (4, 0, 1)
    assert terms.after([6]) == (3, 0, 2)
    for prefix, whole in (((3, 4), [3, 4, 5]), ((6,), [6, 2, 3])):
        sentence = Sentence(0, [3], 9, prefix=prefix, terms=terms)
        assert search([sentence], beams(5))[0][0].ids[: len(whole)] == whole


class Said:
    """A stem that is a single token."""

    def __init__(self, token: int) -> None:
        self.token = token

    def banned(self, tokens: Sequence[int]) -> Any:
        others = [token for token in range(V) if token != self.token]
        return None if len(tokens) else np.array(others, np.int32)


def test_a_term_that_a_stem_writes_or_begins_is_not_written_again() -> None:
    for source in range(20):
        plain = Sentence(0, [source], 9, prefix=(3,), stem=Said(4))
        single = replace(plain, terms=Terms((Term(((4,),)),)))
        assert search([single], beams(5)) == search([plain], beams(5))
        double = replace(plain, terms=Terms((Term(((4, 5),)),)))
        assert search([double], beams(5))[0][0].ids[:3] == [3, 4, 5]


def test_what_is_impossible_is_said() -> None:
    long = Terms((Term(((2, 3, 4),)),))
    with pytest.raises(UsageError, match="have 4 tokens with the end symbol"):
        search([Sentence(0, [1], 3, terms=long)], beams(2))
    samples = SampleSettings(BOS, EOS, 2)
    with pytest.raises(UsageError, match="samples have no terms"):
        search([Sentence(0, [1], 9, terms=long)], samples)
    many = Terms(tuple(Term(((2,),)) for _ in range(61)))
    with pytest.raises(UsageError, match="at most 60"):
        search([Sentence(0, [1], 99, terms=many)], beams(2))


class Looking:
    """A decoder that looks at the source's tokens one after the other, and says a token for each:
    that of the source plus 10; eos behind them.
    """

    begins_together = False
    attends = True

    def __init__(self, num_sentences: int, beam_size: int) -> None:
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self.sources: dict[int, Sequence[int]] = {}

    def read(self, indices: Any, sources: Any, allowed: Any = ()) -> None:
        self.sources.update(zip(indices, sources, strict=True))

    def step(
        self,
        inputs: StepInput,
        k: int,
        *,
        all_log_probs: bool = False,
        attention: Floats | None = None,
    ) -> TopK:
        logits = np.zeros((len(inputs), 30), np.float32)
        columns = inputs.sentences.tolist(), inputs.positions.tolist()
        for row, (sentence, place) in enumerate(zip(*columns, strict=True)):
            source = self.sources[sentence]
            token = source[place] + 10 if place < len(source) else EOS
            logits[row, token] = 5.0
            if attention is not None:
                attention[row] = 0.0
                attention[row, min(place, len(source) - 1)] = 1.0
        constants = LogSoftmax.of(logits)
        best, ids = best_allowed(logits, inputs, k)
        every = constants.log_probs(logits) if all_log_probs else None
        return constants.log_probs(best), ids, every

    def session(self, num_sentences: int, beam_size: int) -> "Looking":
        return Looking(num_sentences, beam_size)


@settings(max_examples=60, deadline=None)
@given(
    place=st.integers(0, 5),
    form=st.lists(st.integers(20, 29), min_size=1, max_size=1),
    size=st.integers(2, 5),
)
def test_a_form_stands_where_its_source_is_looked_at(
    place: int, form: list[int], size: int
) -> None:
    source = [2, 3, 4, 5, 6, 7]
    terms = Terms((Term((tuple(form),), (place, place + 1)),))
    sentence = Sentence(0, source, 20, terms=terms)
    found = search_all(Looking(1, size), [sentence], beams(size))[0][0]
    said = [token + 10 for token in source]
    said[place] = form[0]
    assert found.ids == said


def test_what_the_model_says_itself_is_a_term_wherever_it_looks() -> None:
    source = [2, 3, 4]
    terms = Terms((Term(((13,),), (2, 3)),))
    sentence = Sentence(0, source, 20, terms=terms)
    found = search_all(Looking(1, 4), [sentence], beams(4))[0][0]
    assert found.ids == [12, 13, 14]


def test_where_there_is_room_for_terms_alone_they_begin_anywhere() -> None:
    """The decoder would look at the last token when it is too late."""
    terms = Terms((Term(((20, 21),), (3, 4)),))
    sentence = Sentence(0, [2, 3, 4, 5], 3, terms=terms)
    found = search_all(Looking(1, 2), [sentence], beams(2))[0][0]
    assert (found.ids, found.finished) == ([20, 21], True)


def test_forms_lie_end_to_end() -> None:
    terms = Terms((Term(((4, 5), (6,)), (1, 3)), Term(((7, 8, 9),))))
    forms = terms.forms
    assert forms.tokens.tolist() == [4, 5, 6, 7, 8, 9]
    assert forms.terms.tolist() == [0, 0, 0, 1, 1, 1]
    assert forms.is_last.tolist() == [False, True, True, False, False, True]
    assert forms.rest.tolist() == [1, 0, 0, 2, 1, 0]
    assert forms.least.tolist() == [1, 1, 1, 3, 3, 3]
    assert forms.first.tolist() == [0, 2, 3]
    assert forms.spans.tolist() == [[1, 3], [1, 3], [0, IDLE]]
    assert terms.lengths == [1, 3]
