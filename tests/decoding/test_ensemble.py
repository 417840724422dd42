"""Several decoders as one: mean probabilities by hand, and one decoder twice is itself."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from weft.decoding.decoder import Floats, Hypothesis, Indices
from weft.decoding.search import BeamSettings, Sentence, search_all
from weft.engine.batched import Steps
from weft.engine.ensemble import EnsembleEngine, log_mean
from weft.errors import DivergedError

BOS, EOS, V = 0, 1, 7


class Prefixes:
    """A cache of sources and of what was fed."""

    def __init__(self, rows: list[tuple[Sequence[int], tuple[int, ...]]]) -> None:
        self.rows = rows

    def select(self, rows: Indices) -> "Prefixes":
        return Prefixes([self.rows[i] for i in rows.tolist()])


def log_probs_after(
    model: int, source: Sequence[int], prefix: Sequence[int]
) -> torch.Tensor:
    """Of the next token: random, the same for the same model, source and prefix."""
    generator = torch.Generator().manual_seed(
        hash((model, *source, -1, *prefix)) % 2**31
    )
    return (2 * torch.randn(V, generator=generator)).log_softmax(-1)


def engine(model: int) -> Steps[Prefixes]:
    def prefill(sources: Sequence[Sequence[int]]) -> Prefixes:
        return Prefixes([(tuple(source), ()) for source in sources])

    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        rows = [
            (source, (*seen, i))
            for (source, seen), i in zip(cache.rows, ids.tolist(), strict=True)
        ]
        return np.stack(
            [log_probs_after(model, source, seen).numpy() for source, seen in rows]
        ), Prefixes(rows)

    return Steps(prefill, step)


SENTENCES = [Sentence(i, [i, 3 * i % 4], 8, [5] if i == 4 else []) for i in range(9)]
BEAMS = [
    BeamSettings(BOS, EOS),
    BeamSettings(BOS, EOS, 3, 1.0, 3, banned_ids=(2,), no_repeat_ngrams=2),
    BeamSettings(BOS, EOS, 9, 0.5, 2),
]


def test_the_mean_is_of_probabilities() -> None:
    with np.errstate(divide="ignore"):
        rows = np.log(np.array([[[0.5, 0.5, 0.0]], [[0.1, 0.2, 0.7]]], np.float32))
    np.testing.assert_allclose(np.exp(log_mean(rows)), [[0.3, 0.35, 0.35]], rtol=1e-6)
    nothing = np.full((1, 2), -np.inf, np.float32)
    assert log_mean([nothing, nothing]).tolist() == [[-math.inf] * 2]
    faint = np.full((1, 2), -900.0, np.float32)
    assert log_mean([faint, nothing])[0, 0] == pytest.approx(-900 - math.log(2))


@pytest.mark.parametrize("beams", BEAMS, ids=str)
def test_a_model_twice_finds_what_it_finds_alone(beams: BeamSettings) -> None:
    for models in ([3, 3], [3, 3, 3]):
        together = search_all(
            EnsembleEngine([engine(model) for model in models]), SENTENCES, beams
        )
        assert together == search_all(engine(3), SENTENCES, beams)


@pytest.mark.parametrize("beams", BEAMS, ids=str)
def test_scores_are_those_of_the_mean_probabilities(beams: BeamSettings) -> None:
    found = search_all(
        EnsembleEngine([engine(1), engine(2), engine(3)]), SENTENCES, beams
    )
    for sentence in SENTENCES:
        for hypothesis in found[sentence.number]:
            expected = by_hand(sentence, hypothesis)
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-5)
            assert hypothesis.log_prob == pytest.approx(sum(expected), abs=1e-4)
    alone = search_all(engine(1), SENTENCES, beams)
    assert [h[0].ids for h in found.values()] != [h[0].ids for h in alone.values()]


def by_hand(sentence: Sentence, hypothesis: Hypothesis) -> list[float]:
    ids = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
    models = [
        [log_probs_after(m, sentence.ids, [BOS, *ids[:t]]) for t in range(len(ids))]
        for m in (1, 2, 3)
    ]
    return [
        math.log(sum(math.exp(float(m[t][token])) for m in models) / 3)
        for t, token in enumerate(ids)
    ]


def test_a_wide_beam_over_two_finds_their_best_output() -> None:
    """Of all outputs of up to three tokens, the most probable under the mean at every token."""
    sentence = Sentence(0, [2, 2], 3)
    (found,) = search_all(
        EnsembleEngine([engine(1), engine(2)]), [sentence], BeamSettings(BOS, EOS, 60)
    ).values()
    best = (-math.inf, [0])
    for ids in [
        [],
        *([a] for a in range(V)),
        *([a, b] for a in range(V) for b in range(V)),
    ]:
        if EOS not in ids:
            said = [*ids, EOS]
            probs = [
                np.mean(
                    [
                        log_probs_after(m, [2, 2], [BOS, *said[:t]]).exp()[token].item()
                        for m in (1, 2)
                    ]
                )
                for t, token in enumerate(said)
            ]
            best = max(best, (float(np.log(probs).sum()), ids))
    assert found[0].ids == best[1]
    assert found[0].log_prob == pytest.approx(best[0], abs=1e-4)


def test_one_model_whose_output_is_no_number_is_told() -> None:
    sound = engine(1)

    def step(ids: Indices, cache: Prefixes) -> tuple[Floats, Prefixes]:
        logits, longer = sound.step(ids, cache)
        return logits * math.nan, longer

    broken = Steps(sound.prefill, step)
    with pytest.raises(DivergedError):
        search_all(
            EnsembleEngine([engine(2), broken]), SENTENCES, BeamSettings(BOS, EOS, 2)
        )
