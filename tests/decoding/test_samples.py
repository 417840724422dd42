"""Samples: each is drawn for itself, from the model's own distribution, whatever stands
beside it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from weft.decoding.decoder import Floats, Hypothesis, Indices
from weft.decoding.draws import Draws
from weft.decoding.sampling import Sampling
from weft.decoding.search import continuous_search
from weft.decoding.sentences import BeamSettings, SampleSettings, Sentence, Waiting
from weft.engine.batched import Steps
from weft.errors import DivergedError

BOS, EOS, V = 0, 1, 7


def log_probs_after(source: Sequence[int], prefix: Sequence[int]) -> torch.Tensor:
    """Of the next token: random, the same for the same source and prefix."""
    generator = torch.Generator().manual_seed(hash((*source, -1, *prefix)) % 2**31)
    logits = 1.5 * torch.randn(V, generator=generator)
    return logits.log_softmax(-1)


class Prefixes:
    """A cache of sources and of what was fed after bos."""

    def __init__(self, rows: list[tuple[Sequence[int], tuple[int, ...]]]) -> None:
        self.rows = rows

    def select(self, rows: Indices) -> "Prefixes":
        return Prefixes([self.rows[i] for i in rows.tolist()])


def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
    rows = [
        (source, (*seen, i))
        for (source, seen), i in zip(cache.rows, ids.tolist(), strict=True)
    ]
    return np.stack(
        [log_probs_after(source, seen[1:]).numpy() for source, seen in rows]
    ), Prefixes(rows)


def sample(
    sentences: Sequence[Sentence], beams: BeamSettings, slots: int = 4, step=step
) -> dict[int, list[Hypothesis]]:
    def prefill(some: Sequence[Sequence[int]]) -> Prefixes:
        return Prefixes([(tuple(source), ()) for source in some])

    decoder = Steps(prefill, step).session(slots, beams.beam_size)
    return dict(continuous_search(decoder, Waiting(sentences), beams, 1000))


def samples(
    count: int,
    seed: int = 1,
    *,
    alpha: float = 0.0,
    banned: Sequence[int] = (),
    n: int = 0,
    **sampling,
):
    return SampleSettings(
        BOS, EOS, count, alpha, count, banned, n, Sampling(**sampling), seed
    )


SENTENCES = [Sentence(i, [i, 7 * i % 5, *range(i % 3)], 3 + i) for i in range(11)]


def test_samples_come_as_often_as_the_model_says() -> None:
    """Outputs of one token and of two, against their probabilities; 5,000 samples, four
    deviations.
    """
    source, count = (3, 4), 5000
    (found,) = sample([Sentence(0, source, 9)], samples(count)).values()
    seen = Counter((*h.ids, EOS) if h.finished else tuple(h.ids) for h in found)
    first = log_probs_after(source, []).exp().tolist()
    probabilities = {(EOS,): first[EOS]}
    for token in range(V):
        if token != EOS:
            probabilities[token, EOS] = first[token] * float(
                log_probs_after(source, [token])[EOS].exp()
            )
    for ids, p in probabilities.items():
        assert abs(seen[ids] / count - p) < 4 * math.sqrt(p * (1 - p) / count)
    assert len(seen) > 50


def test_a_sample_is_what_its_own_numbers_choose() -> None:
    """One number for each position, of the seed, the source and the number of the sample: walked by
    hand.
    """
    sentence = SENTENCES[5]
    found = sample(SENTENCES, samples(4, seed=9))[5]
    for number, hypothesis in enumerate(found):
        draws = Draws(9, sentence.ids, number)
        ids: list[int] = []
        for place in range(sentence.max_len):
            uniform = draws.at(place)
            cumulative = log_probs_after(sentence.ids, ids).double().exp().cumsum(0)
            ids.append(
                int((cumulative > uniform * float(cumulative[-1])).int().argmax())
            )
            if ids[-1] == EOS:
                break
        assert hypothesis.ids == [i for i in ids if i != EOS]
        assert hypothesis.finished == (ids[-1] == EOS)
    assert len({tuple(h.ids) for h in found}) > 1


@pytest.mark.parametrize("slots", [1, 3, 64])
def test_nothing_depends_on_the_sentences_beside_it_or_on_how_many_samples_there_are(
    slots: int,
) -> None:
    alone = {
        s.number: sample([s], samples(5, temperature=1.3))[s.number] for s in SENTENCES
    }
    assert sample(SENTENCES, samples(5, temperature=1.3), slots) == alone
    fewer = sample(SENTENCES, samples(2, temperature=1.3), slots)
    assert fewer == {number: found[:2] for number, found in alone.items()}
    assert sample(SENTENCES, samples(5, seed=2, temperature=1.3), slots) != alone


def test_samples_of_several_seeds_and_settings_are_drawn_side_by_side() -> None:
    """Each as alone, bit for bit, with sentences that are searched between them."""
    settings = [
        samples(2, seed=3),
        samples(4, seed=4, temperature=1.4, top_p=0.9),
        BeamSettings(BOS, EOS, 3, 0.0, 2),
        samples(1, seed=3, temperature=0.6, top_k=3, n=1),
        samples(3, seed=5, min_p=0.1, banned=(2,)),
    ]
    sentences = [replace(s, settings=settings[s.number % 5]) for s in SENTENCES]
    widest = BeamSettings(BOS, EOS, 4)
    for slots in (3, 64):
        found = sample(sentences, widest, slots)
        for s in SENTENCES:
            assert found[s.number] == sample([s], settings[s.number % 5])[s.number]


def test_probabilities_are_the_models_own_and_scores_those_of_a_search() -> None:
    for number, found in sample(
        SENTENCES, samples(3, alpha=0.7, temperature=0.5, top_k=4)
    ).items():
        for hypothesis in found:
            ids = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
            walked = [
                float(log_probs_after(SENTENCES[number].ids, ids[:t])[i])
                for t, i in enumerate(ids)
            ]
            assert hypothesis.token_log_probs == pytest.approx(walked, abs=1e-5)
            assert hypothesis.log_prob == pytest.approx(sum(walked), abs=1e-4)
            assert hypothesis.score == pytest.approx(
                sum(walked) / ((5 + len(ids)) / 6) ** 0.7, abs=1e-4
            )
            assert hypothesis.finished or len(ids) == SENTENCES[number].max_len


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0}, {"top_k": 1}, {"min_p": 0.9999}], ids=str
)
def test_where_the_best_token_alone_is_left_every_sample_is_greedy(
    settings: dict[str, float],
) -> None:
    greedy = sample(SENTENCES, BeamSettings(BOS, EOS))
    for number, found in sample(SENTENCES, samples(3, **settings)).items():
        assert [h.ids for h in found] == [greedy[number][0].ids] * 3


def test_a_prefix_is_kept_and_what_is_banned_is_never_drawn() -> None:
    sentences = [Sentence(i, [i, 2], 9, [4, 4, 2]) for i in range(5)]
    found = sample(sentences, samples(40, temperature=3.0, banned=(2, 5), n=1))
    for hypotheses in found.values():
        for hypothesis in hypotheses:
            assert hypothesis.ids[:3] == [4, 4, 2]
            drawn = hypothesis.ids[3:]
            assert not {2, 4, 5} & set(drawn)
            assert all(a != b for a, b in pairwise(sorted(drawn)))
    assert {
        token
        for hypotheses in found.values()
        for h in hypotheses
        for token in h.ids[3:]
    } == {0, 3, 6}


def test_what_is_no_number_or_all_banned_is_told() -> None:
    def broken(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        logits, after = step(ids, cache)
        return logits * math.nan, after

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(SENTENCES, samples(2), step=broken)
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        sample(SENTENCES, samples(2, banned=range(V)))
