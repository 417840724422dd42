"""The engine's whole steps of beams are those that NumPy takes, number for number."""

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from weft.config import Seq2SeqSection
from weft.decoding.decoder import Decoder, Hypothesis
from weft.decoding.running import Search
from weft.decoding.sampling import Sampling
from weft.decoding.sentences import BeamSettings, SampleSettings, Sentence
from weft.engine.bindings import Engine, Session
from weft.engine.from_model import weights_of
from weft.errors import DivergedError
from weft.model.transformer import Seq2SeqTransformer

BOS, EOS, V = 1, 2, 23


pytestmark = pytest.mark.usefixtures("need_engine")


@dataclass
class StepByStep:
    """A session of the engine without its whole steps of beams."""

    session: Session

    def __post_init__(self) -> None:
        self.num_sentences = self.session.num_sentences
        self.beam_size = self.session.beam_size
        self.begins_together = self.session.begins_together

    def read(self, *given: Any) -> None:
        self.session.read(*given)

    def step(self, *given: Any, **named: Any) -> Any:
        return self.session.step(*given, **named)


def model_of(seed: int, vocabulary: int = V) -> Seq2SeqTransformer:
    torch.manual_seed(seed)
    shape = Seq2SeqSection(
        d_model=16,
        d_ff=24,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
        max_len=40,
        dropout=0.0,
    )
    model = Seq2SeqTransformer(shape, V, vocabulary, joint=False)
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.7)
    return model.eval()


def settings_of(rng: random.Random) -> BeamSettings:
    if rng.random() < 0.1:
        return SampleSettings(BOS, EOS, 2, 0.6, 2, (0,), 0, Sampling(0.9), 5)
    size = rng.choice([1, 2, 3, 5])
    banned = rng.choice([(), (0,), (0, BOS)])
    ngrams = 2 if rng.random() < 0.1 else 0
    penalty = rng.choice([0.0, 0.6, 1.5])
    return BeamSettings(BOS, EOS, size, penalty, rng.randint(1, size), banned, ngrams)


def sentences_of(seed: int, count: int, are_alike: bool) -> list[Sentence]:
    """Sentences of all kinds of settings; alike but for their texts where all rows may be plain."""
    rng = random.Random(seed)
    settings = settings_of(rng)
    if are_alike and isinstance(settings, SampleSettings):
        settings = BeamSettings(BOS, EOS, 4, 0.6, 2, (0,), 0)
    sentences = []
    for number in range(count):
        ids = (*rng.choices(range(3, V), k=rng.randint(1, 9)), EOS)
        prefix = (4, 5) if rng.random() < 0.2 else ()
        own = settings if are_alike else settings_of(rng)
        limit = rng.choice([3, 8, 30])
        one = Sentence(number, ids, limit, prefix=prefix, settings=own)
        sentences.append(one)
    return sentences


def found_by(
    decoder: Decoder, sentences: list[Sentence], seed: int
) -> dict[int, list[Hypothesis] | str]:
    """What a running batch finds while sentences come, stand still and leave."""
    rng = random.Random(seed)
    search = Search(decoder, BeamSettings(BOS, EOS, 5, 0.6, 1, (), 0), 10_000)
    waiting = list(sentences)
    found: dict[int, list[Hypothesis] | str] = {}
    under_way: set[int] = set()
    while waiting or under_way:
        while waiting and search.free and rng.random() < 0.6:
            under_way.add(waiting[0].number)
            search.begin([waiting.pop(0)])
        if under_way and rng.random() < 0.03:
            gone = rng.choice(sorted(under_way))
            search.drop(gone)
            under_way.discard(gone)
        some = {number for number in under_way if rng.random() < 0.8}
        for number, outcome in search.advance(some):
            under_way.discard(number)
            is_list = isinstance(outcome, list)
            found[number] = outcome if is_list else type(outcome).__name__
    return found


@pytest.mark.parametrize("are_alike", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_whole_steps_find_the_same(seed: int, are_alike: bool) -> None:
    engine = Engine(weights_of(model_of(seed)), ("float32", "int8")[seed % 2])
    sentences = sentences_of(seed, 40, are_alike)
    whole = found_by(engine.session(6, 5), sentences, seed)
    steps = found_by(StepByStep(engine.session(6, 5)), sentences, seed)
    assert len(whole) > 25
    assert whole == steps


def test_whole_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would hold, too, if all steps were NumPy's."""
    taken: list[int] = []
    advance = Session.advance

    def counted(session: Session, *given: Any) -> Any:
        taken.append(len(given[1]))
        return advance(session, *given)

    monkeypatch.setattr(Session, "advance", counted)
    engine = Engine(weights_of(model_of(1)))
    found_by(engine.session(6, 5), sentences_of(1, 20, are_alike=True), 1)
    assert sum(taken) > 50


def test_fewer_words_than_hypotheses_find_the_same() -> None:
    """Where a beam is wider than there are candidates, what is left is of probability 0."""
    engine = Engine(weights_of(model_of(3, vocabulary=4)))
    wide = BeamSettings(BOS, EOS, 5, 0.6, 5, (0, BOS), 0)
    sentences = [Sentence(n, (3 + n, EOS), 6, settings=wide) for n in range(5)]
    whole = found_by(engine.session(3, 5), sentences, 1)
    assert whole == found_by(StepByStep(engine.session(3, 5)), sentences, 1)


def test_equal_probabilities_find_the_same() -> None:
    model = model_of(4)
    with torch.no_grad():
        for weights in model.tgt_embedding.parameters():
            weights.copy_(weights.round())
            weights[8:16] = weights[:8]
    engine = Engine(weights_of(model))
    sentences = sentences_of(8, 30, are_alike=True)
    sentences = [
        replace(one, settings=BeamSettings(BOS, EOS, 5, 0.0, 5, (), 0))
        for one in sentences
    ]
    whole = found_by(engine.session(6, 5), sentences, 2)
    assert whole == found_by(StepByStep(engine.session(6, 5)), sentences, 2)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_one_sentence_without_numbers_harms_no_other(number: float) -> None:
    model = model_of(5)
    with torch.no_grad():
        model.src_embedding.tokens.weight[7] = number
    engine = Engine(weights_of(model))
    sentences = sentences_of(5, 30, are_alike=True)
    bad = {one.number for one in sentences if 7 in one.ids}
    assert 0 < len(bad) < 30
    whole = found_by(engine.session(6, 5), sentences, 3)
    assert whole == found_by(StepByStep(engine.session(6, 5)), sentences, 3)
    broken = {n for n, found in whole.items() if found == DivergedError.__name__}
    assert broken == bad & set(whole)


def test_a_step_that_has_no_memory_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(weights_of(model_of(6)))
    session = engine.session(2, 5)
    search = Search(session, BeamSettings(BOS, EOS, 5, 0.6, 1, (), 0), 10_000)
    search.begin([Sentence(n, (5, 6 + n, EOS), 9) for n in range(2)])
    before = search.log_probs.copy(), search.lengths.copy()

    def failing(*_given: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as there:
        there.setattr(session, "advance", failing)
        ((number, outcome),) = search.advance()
    assert isinstance(outcome, MemoryError)
    left = 1 - number
    assert np.array_equal(search.log_probs[left], before[0][left])
    assert search.lengths[left] == before[1][left]
    (other,) = [each for _ in range(9) for each in search.advance()]
    assert other[0] == left
