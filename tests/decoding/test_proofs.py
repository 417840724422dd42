"""What must be equal is equal over the engine, in every kind of product: searches, caches, batches,
drafts.

The references are told nothing of slots, places or caches: at every step they let a fresh session
read each whole prefix in one call. So whatever equals them was decoded as if without a cache.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from weft.config import CausalSection, Seq2SeqSection
from weft.decoding.decoder import Hypothesis, StepInput
from weft.decoding.draws import Draws
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.reference import beam_search, greedy_search
from weft.decoding.running import Search
from weft.decoding.sampling import Chooser, Logits, Sampling, sample_tokens
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, SampleSettings, Sentence
from weft.decoding.speculative import (
    Draft,
    PromptLookup,
    Tally,
    speculative_tokens,
)
from weft.engine.bindings import KINDS, Engine
from weft.engine.from_model import causal_weights_of, weights_of
from weft.engine.plain import PlainTransformer
from weft.engine.plain_steps import steps_of
from weft.engine.writer import Writer, WriterCache
from weft.errors import DivergedError
from weft.model.causal import CausalTransformer
from weft.model.transformer import Seq2SeqTransformer

V_SRC, BOS, EOS = 29, 1, 2
BANNED = (0, BOS)
SOURCES: list[list[int]] = [
    [*random.Random(i).choices(range(3, V_SRC), k=size), EOS]
    for i, size in enumerate([3, 11, 1, 7, 19, 5, 2, 13, 7, 4, 8])
]

each_kind = pytest.mark.parametrize("kind", KINDS)


pytestmark = pytest.mark.usefixtures("need_engine")


def shaken(module: nn.Module, end: float) -> nn.Module:
    """Random weights far from their start values, and the end so much more likely that some outputs
    have one.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.25)
        module.projection.bias[EOS] += end
    return module.eval()


def small_model(vocab_size: int) -> Seq2SeqTransformer:
    """An encoder-decoder with random weights."""
    torch.manual_seed(vocab_size)
    shape = Seq2SeqSection(
        d_model=26,
        d_ff=41,
        num_heads=3,
        head_dim=11,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_len=43,
    )
    model = Seq2SeqTransformer(shape, V_SRC, vocab_size, joint=False)
    return shaken(model, 4.0)  # type: ignore[return-value]


@cache
def engine(kind: str, vocab_size: int = 37) -> Engine:
    """Its engine."""
    return Engine(weights_of(small_model(vocab_size)), kind)  # type: ignore[arg-type]


@cache
def plain_steps() -> Any:
    """Its steps in plain NumPy."""
    return steps_of(PlainTransformer(weights_of(small_model(37))))


@cache
def writer(kind: str, seed: int = 5, ngrams: int = 1) -> Writer:
    """A language model of 31 tokens; with `ngrams` it looks at runs of tokens beside them."""
    torch.manual_seed(seed)
    more = (
        {"ngrams": ngrams, "ngram_buckets": 57, "match_lengths": (1, 2)}
        if ngrams > 1
        else {}
    )
    shape = CausalSection(
        d_model=34,
        d_ff=47,
        num_heads=4,
        head_dim=9,
        num_decoder_layers=2,
        max_len=64,
        **more,
    )
    model = shaken(CausalTransformer(shape, 31), 2.0)
    return Writer(causal_weights_of(model), kind)  # type: ignore[arg-type]


def read_at_once(engine: Engine, rows: Sequence["Row"]) -> list[NDArray[np.float32]]:
    """Log-probabilities after every token of each prefix, from one call of a session that knew
    nothing.
    """
    session = engine.session(len(rows), 1)
    session.read(range(len(rows)), [row.source for row in rows])
    lens = [len(row.prefix) for row in rows]
    slots, times = (
        np.repeat(np.arange(len(rows)), lens),
        np.concatenate([np.arange(n) for n in lens]),
    )
    tokens = np.array([token for row in rows for token in row.prefix], np.int32)
    table = np.zeros((len(tokens), max(lens)), np.int32)
    _, _, found = session.step(
        StepInput(slots, np.zeros_like(slots), times, tokens, table),
        0,
        all_log_probs=True,
    )
    assert found is not None
    return np.split(found, np.cumsum(lens)[:-1])


@dataclass(frozen=True)
class Row:
    """A source, and what its output begins with, bos included."""

    source: Sequence[int]
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class NoCache:
    """A cache that caches nothing."""

    engine: Engine
    rows: tuple[Row, ...]

    def select(self, rows: NDArray[np.int64]) -> "NoCache":
        return NoCache(self.engine, tuple(self.rows[i] for i in rows.tolist()))


def uncached(
    newest: NDArray[np.int64], cache: NoCache
) -> tuple[NDArray[np.float32], NoCache]:
    """The step of the references."""
    rows = tuple(
        Row(row.source, (*row.prefix, i))
        for row, i in zip(cache.rows, newest.tolist(), strict=True)
    )
    found = [log_probs[-1] for log_probs in read_at_once(cache.engine, rows)]
    return np.stack(found), NoCache(cache.engine, rows)


def beginnings(engine: Engine, sources: Sequence[Sequence[int]]) -> NoCache:
    return NoCache(engine, tuple(Row(source) for source in sources))


def sentences_of(sources: Sequence[Sequence[int]]) -> list[Sentence]:
    return [Sentence(i, source, 5 + i % 7) for i, source in enumerate(sources)]


def same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> bool:
    """The references norm the engine's log-probabilities once more, which may change their last
    bits.
    """
    return [(h.ids, h.finished) for h in found] == [
        (h.ids, h.finished) for h in expected
    ] and all(
        np.allclose(getattr(one, name), getattr(other, name), atol=1e-5)
        for one, other in zip(found, expected, strict=True)
        for name in ("token_log_probs", "log_prob", "score")
    )


# Searches
# --------------------------------------------------------------------------------------


@each_kind
def test_a_beam_of_one_is_greedy(kind: str) -> None:
    sentences = sentences_of(SOURCES)
    expected = greedy_search(
        uncached, beginnings(engine(kind), SOURCES), bos_id=BOS, eos_id=EOS,
        max_lens=[s.max_len for s in sentences], banned_ids=BANNED, length_penalty=0.7,
    )  # fmt: skip
    found = search_all(
        engine(kind),
        sentences,
        BeamSettings(BOS, EOS, 1, 0.7, banned_ids=BANNED),
        batch_tokens=30,
    )
    assert {hypothesis.finished for hypothesis in expected} == {True, False}
    assert all(same(found[i], [hypothesis]) for i, hypothesis in enumerate(expected))


@each_kind
@pytest.mark.parametrize(
    ("beam_size", "n_best", "alpha"), [(2, 1, 0.0), (4, 3, 1.0), (5, 5, -0.4)]
)
def test_the_beam_over_slots_is_the_beam_over_batches(
    kind: str, beam_size: int, n_best: int, alpha: float
) -> None:
    sentences = sentences_of(SOURCES)
    expected = beam_search(
        uncached, beginnings(engine(kind), SOURCES), bos_id=BOS, eos_id=EOS,
        max_lens=[s.max_len for s in sentences], beam_size=beam_size, length_penalty=alpha,
        n_best=n_best, banned_ids=BANNED,
    )  # fmt: skip
    beams = BeamSettings(BOS, EOS, beam_size, alpha, n_best, BANNED)
    for workers, batch_tokens in ((1, 40), (3, 150)):
        found = search_all(engine(kind), sentences, beams, workers, batch_tokens)
        assert all(same(found[i], hypotheses) for i, hypotheses in enumerate(expected))


@pytest.mark.parametrize(
    ("kind", "alpha"),
    [
        ("float32", 0.0),
        *(
            pytest.param(kind, alpha, marks=pytest.mark.long)
            for kind, alpha in product(KINDS, (0.0, 1.0))
            if (kind, alpha) != ("float32", 0.0)
        ),
    ],
)
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(
    kind: str, alpha: float
) -> None:
    """Of the 156 outputs of up to four tokens from a vocabulary of seven, two of them banned."""
    small = engine(kind, vocab_size=7)
    found = search_all(
        small,
        [Sentence(i, s, 4) for i, s in enumerate(SOURCES[:5])],
        BeamSettings(BOS, EOS, 512, alpha, 20, BANNED),
    )
    for i, source in enumerate(SOURCES[:5]):
        expected = exhaustive_search(
            uncached, beginnings(small, [source]), bos_id=BOS, eos_id=EOS, max_len=4, length_penalty=alpha,
            n_best=20, banned_ids=BANNED,
        )  # fmt: skip
        assert len(expected) == 20
        assert same(found[i], expected)


# Caches
# --------------------------------------------------------------------------------------


@each_kind
def test_what_grew_token_by_token_is_what_is_read_at_once(kind: str) -> None:
    """Bit for bit, at every length: encoder-decoder, sentences beside each other."""
    prefix = (BOS, *random.Random(8).choices(range(3, 37), k=12))
    session, size = engine(kind).session(len(SOURCES), 1), len(SOURCES)
    session.read(range(size), SOURCES)
    slots, zeros, table = (
        np.arange(size),
        np.zeros(size, np.int64),
        np.zeros((size, 13), np.int32),
    )
    grown = [
        session.step(
            StepInput(
                slots, zeros, zeros + time, np.full(size, token, np.int32), table
            ),
            0,
            all_log_probs=True,
        )[2]
        for time, token in enumerate(prefix)
    ]
    for time in range(len(prefix)):
        whole = read_at_once(
            engine(kind), [Row(source, prefix[: time + 1]) for source in SOURCES]
        )
        for i, log_probs in enumerate(whole):
            assert np.array_equal(log_probs, np.stack(grown[: time + 1])[:, i])  # type: ignore[arg-type]


@each_kind
@pytest.mark.parametrize("ngrams", [1, 3])
def test_so_it_is_of_a_language_model(kind: str, ngrams: int) -> None:
    ids = np.array([random.Random(9).choices(range(3, 9), k=20)])
    model = writer(kind, ngrams=ngrams)
    grown, known = [], model.prefill(ids[:, :0])
    for place in range(20):
        log_probs, known = model.decode(ids[:, place : place + 1], known)
        grown.append(log_probs)
        whole, _ = model.decode(ids[:, : place + 1], model.prefill(ids[:, :0]))
        assert np.array_equal(whole, np.concatenate(grown, 1))


# Batches
# --------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_is_found_alike_in_any_company(kind: str, beam_size: int) -> None:
    """Bit for bit, scores too: subsets, orders, workers and sizes of batches drawn at random."""
    sentences, beams = (
        sentences_of(SOURCES),
        BeamSettings(BOS, EOS, beam_size, 1.0, beam_size, BANNED),
    )
    alone = {
        s.number: search_all(engine(kind), [s], beams)[s.number] for s in sentences
    }
    draw = random.Random(10)
    for _ in range(12):
        some = draw.sample(sentences, draw.randint(1, len(sentences)))
        found = search_all(
            engine(kind),
            some,
            beams,
            draw.randint(1, 4),
            draw.choice([1, 20, 60, 4096]),
        )
        assert found == {s.number: alone[s.number] for s in some}


MIXED = [
    BeamSettings(BOS, EOS, 1, banned_ids=BANNED),
    BeamSettings(BOS, EOS, 2, 1.0, 2, BANNED),
    BeamSettings(BOS, EOS, 4, 0.6, 1, BANNED, no_repeat_ngrams=2),
    SampleSettings(BOS, EOS, 3, 0.0, 3, BANNED, 0, Sampling(), 7),
    SampleSettings(BOS, EOS, 1, 0.0, 1, BANNED, 0, Sampling(0.5, top_k=5), 8),
]


def mixed(begin: int) -> list[Sentence]:
    """Sentences of all settings, some with a prefix, some with a shortlist."""
    draw = random.Random(begin)
    return [
        Sentence(
            i,
            source,
            6 + i % 7,
            draw.choices(range(3, 37), k=draw.choice([0, 0, 3, 5])),
            sorted({EOS, *range(3, 37)}) if i % 4 == 0 else (),
            MIXED[(begin + i) % len(MIXED)],
        )
        for i, source in enumerate(SOURCES)
    ]


class OneByOne:
    """Lets the waiting sentences begin one after the other, beside those under way."""

    at_once = True

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.waiting = list(sentences)

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        return [self.waiting.pop() for _ in range(min(1, count, len(self.waiting)))]


@each_kind
def test_beams_and_samples_beside_each_other_are_what_each_is_alone(kind: str) -> None:
    """Bit for bit, scores too, in several orders of arrival, while some leave."""
    for begin in range(3):
        sentences = mixed(begin)
        search = Search(engine(kind).session(5, 4), MIXED[0], 1000)
        line = OneByOne(random.Random(begin).sample(sentences, len(sentences)))
        found: dict[int, Any] = {}
        while search.fill(line):
            if len(line.waiting) == 3:
                search.drop(begin)
            found |= dict(search.advance())
        assert len(found) >= len(sentences) - 1
        for number, hypotheses in found.items():
            own = replace(sentences[number], settings=None)
            settings = sentences[number].settings
            assert hypotheses == search_all(engine(kind), [own], settings)[number]


@dataclass
class Stepwise:
    """An engine whose sessions take one position of a hypothesis at a time."""

    engine: Engine

    def session(self, num_sentences: int, beam_size: int) -> Any:
        session = self.engine.session(num_sentences, beam_size)
        session.begins_together = True
        return session


@each_kind
def test_a_prefix_read_in_one_step_is_what_it_is_token_by_token(kind: str) -> None:
    """Bit for bit, whatever it says, for searches and samples."""
    sentences = [
        replace(sentence, prefix=[(7 * i + sentence.number) % 34 + 3 for i in range(5)])
        for sentence in mixed(4)
    ]
    found = search_all(engine(kind), sentences, MIXED[0])
    assert found == search_all(Stepwise(engine(kind)), sentences, MIXED[0])
    for sentence in sentences:
        for hypothesis in found[sentence.number]:
            assert hypothesis.ids[:5] == sentence.prefix


@pytest.mark.parametrize("kind", [*KINDS, "NumPy"])
def test_what_begins_as_it_would_anyway_is_the_same(kind: str) -> None:
    """Bit for bit: a prefix changes nothing where the search would have written it."""
    own = plain_steps() if kind == "NumPy" else engine(kind)
    greedy = MIXED[0]
    sentences = sentences_of(SOURCES)
    expected = search_all(own, sentences, greedy)
    begun = [
        replace(sentence, prefix=expected[sentence.number][0].ids[:4])
        for sentence in sentences
    ]
    assert sum(len(sentence.prefix) for sentence in begun) > 20
    assert search_all(own, begun, greedy) == expected


@each_kind
def test_a_source_that_is_no_number_harms_no_other(kind: str) -> None:
    """One token's vector is NaN: sentences with it diverge, the others are what they were."""
    model = small_model(37)
    whole = Engine(weights_of(model), kind)  # type: ignore[arg-type]
    with torch.no_grad():
        model.src_embedding.tokens.weight[5] = np.nan
    broken = Engine(weights_of(model), kind)  # type: ignore[arg-type]
    sentences = mixed(1)
    search = Search(broken.session(5, 4), MIXED[0], 1000)
    line = OneByOne(sentences)
    found: dict[int, Any] = {}
    while search.fill(line):
        found |= dict(search.advance())
    expected = search_all(whole, sentences, MIXED[0])
    harmed = {sentence.number for sentence in sentences if 5 in sentence.ids}
    assert 2 <= len(harmed) <= 8
    for number, outcome in found.items():
        if number in harmed:
            assert isinstance(outcome, DivergedError)
        else:
            assert outcome == expected[number]
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        search_all(broken, sentences, MIXED[0])


@each_kind
def test_texts_are_read_alike_in_any_company(kind: str) -> None:
    """Bit for bit, by a language model: prompts at once, then their next tokens."""
    texts = np.random.default_rng(11).integers(3, 31, (9, 12))
    model = writer(kind)

    def logits(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        first, known = model.decode(rows[:, :8], model.prefill(rows[:, :0]))
        second, known = model.decode(rows[:, 8:9], known)
        third, _ = model.decode(rows[:, 9:], known)
        return np.concatenate([first, second, third], axis=1)

    alone = np.concatenate([logits(texts[i : i + 1]) for i in range(9)])
    draw = random.Random(12)
    for _ in range(5):
        some = draw.sample(range(9), draw.randint(2, 9))
        assert np.array_equal(logits(texts[some]), alone[some])


# Drafts
# --------------------------------------------------------------------------------------


SETTINGS = [
    Sampling(temperature=0.0),
    Sampling(),
    Sampling(temperature=0.8, top_k=9, top_p=0.95, min_p=0.01, repetition_penalty=1.2),
]


def generated(
    model: Writer, draft: Draft | None, prompt: list[int], seed: int, settings: Sampling
) -> tuple[list[tuple[int, float]], Tally]:
    """What a prompt becomes, with or without a draft."""

    def steps(ids: Sequence[int], known: WriterCache) -> tuple[Logits, WriterCache]:
        logits, known = model.decode(np.array([ids]), known)
        return logits[0], known

    choose = Chooser(settings, Draws(seed, prompt), BANNED)
    tally = Tally()
    known = model.prefill(np.array([prompt[:-1]], np.int64))
    where: dict[str, Any] = {"text": prompt, "max_new_tokens": 30, "eos_id": EOS}
    if draft is None:
        return list(sample_tokens(steps, known, choose, **where)), tally
    where |= {"first": 0, "place": 0}
    return list(speculative_tokens(steps, known, draft, choose, tally, **where)), tally


class Foretold:
    """Knows what will be written after a prompt, and is wrong at every fourth place."""

    def __init__(self, truth: list[tuple[int, float]]) -> None:
        self.truth = [token for token, _ in truth]

    def propose(self, ids: Sequence[int], place: int, count: int) -> list[int]:
        ahead = enumerate(self.truth[place : place + count], place)
        return [EOS if number % 4 == 3 else token for number, token in ahead]


@each_kind
@pytest.mark.parametrize("settings", SETTINGS, ids=["greedy", "all", "filtered"])
@pytest.mark.parametrize("is_foretold", [True, False])
def test_a_draft_changes_nothing(
    kind: str, settings: Sampling, is_foretold: bool
) -> None:
    """Bit for bit, log-probabilities too, whether it is right or not."""
    model, draw = writer(kind, ngrams=3), random.Random(13)
    proposed = accepted = 0
    for seed, prompt in enumerate(([7], draw.choices(range(3, 31), k=9)), start=30):
        expected, _ = generated(model, None, prompt, seed, settings)
        draft = Foretold(expected) if is_foretold else PromptLookup(3, 1)
        found, tally = generated(model, draft, prompt, seed, settings)
        assert found == expected
        proposed += tally.proposed
        accepted += tally.accepted
    assert 0 <= accepted < proposed
    assert accepted > 0 or not is_foretold
