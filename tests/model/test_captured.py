"""The engine of PyTorch's operations computes what the model computes, on a GPU from captured
steps.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from weft.config import Seq2SeqSection
from weft.decoding.decoder import Rows
from weft.decoding.reference import beam_search
from weft.decoding.search import Beams, Sentence, search_all
from weft.engine.captured import CapturedEngine
from weft.engine.weights import weights_of
from weft.errors import DivergedError
from weft.model.transformer import Seq2SeqTransformer

V_SRC, V_TGT, BOS, EOS = 53, 71, 1, 2
POST = {"norm_first": False}
SHAPES: list[dict[str, Any]] = [
    {"d_model": 32, "d_ff": 40, "num_heads": 4},
    {
        "d_model": 26,
        "d_ff": 17,
        "num_heads": 3,
        "head_dim": 13,
        **POST,
        "positions": "learned",
        "activation": "gelu",
    },
    {
        "d_model": 30,
        "d_ff": 41,
        "num_heads": 5,
        "activation": "relu2",
        "bias": False,
        "positions": "rotary",
    },
    {
        "d_model": 34,
        "d_ff": 33,
        "num_heads": 1,
        **POST,
        "tie_embeddings": False,
        "scale_embeddings": False,
    },
    {
        "d_model": 32,
        "d_ff": 24,
        "num_heads": 4,
        "num_key_value_heads": 2,
        "norm": "rms",
        "activation": "swiglu",
        "query_key_norm": True,
        "sandwich_norm": True,
        "bias": False,
        "positions": "rotary",
    },
    {
        "d_model": 36,
        "d_ff": 20,
        "num_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 6,
        "activation": "geglu",
        "query_key_norm": True,
        **POST,
    },
    {
        "d_model": 40,
        "d_ff": 33,
        "num_heads": 20,
        "num_key_value_heads": 5,
        "head_dim": 4,
        "sandwich_norm": True,
        "norm": "rms",
        "positions": "rotary",
        "tie_embeddings": False,
    },
]
SOURCES = [
    [5, 7, 9, EOS],
    [3, EOS],
    [11, 12, 13, 14, 15, 16, 17, EOS],
    [8] * 40 + [EOS],
]
TARGET = [BOS, *(4 + i % 60 for i in range(45))]
Shake = Callable[[nn.Module], Any]


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    return str(request.param)


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape['num_heads']} heads")
def model(request: pytest.FixtureRequest, shake: Shake) -> Seq2SeqTransformer:
    torch.manual_seed(3)
    shape = Seq2SeqSection(
        **request.param,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_len=100,
        dropout=0.0,
    )
    built: Seq2SeqTransformer = shake(
        Seq2SeqTransformer(shape, V_SRC, V_TGT, joint=False)
    )
    return built.eval()


def log_probs_of(model: Seq2SeqTransformer, target: list[int]) -> np.ndarray:
    width = max(map(len, SOURCES))
    src = torch.tensor([row + [0] * (width - len(row)) for row in SOURCES])
    with torch.inference_mode():
        return model(src, torch.tensor([target] * len(SOURCES))).log_softmax(-1).numpy()


def decoded(engine: CapturedEngine, target: list[int]) -> np.ndarray:
    """Log-probabilities after each token, the sentences read one after the other; another place
    each time.
    """
    count, places = len(SOURCES), 3
    session = engine.session(count + 2, places)
    slots = np.arange(count)[::-1] + 1
    for slot, source in zip(slots.tolist(), SOURCES, strict=True):
        session.read([slot], [source])
    ancestors, found = np.zeros((count, len(target)), np.int32), []
    for time, token in enumerate(target):
        here = np.full(count, time % places)
        tokens = np.full(count, token, np.int32)
        rows = Rows(slots, here, np.full(count, time), tokens, ancestors[:, : time + 1])
        best, ids, whole = session.step(rows, 5, whole=True)
        assert whole is not None
        assert np.array_equal(best, np.take_along_axis(whole, ids.astype(np.int64), 1))
        assert np.array_equal(best, -np.sort(-whole, 1)[:, :5])
        ancestors[:, time] = here
        found.append(whole)
    return np.stack(found, 1)


def test_it_gives_the_models_log_probabilities_beyond_its_first_room(
    model: Seq2SeqTransformer, device: str
) -> None:
    found = decoded(CapturedEngine(weights_of(model), device), TARGET)
    np.testing.assert_allclose(
        found,
        log_probs_of(model, TARGET),
        atol=1e-3 if device == "cuda" else 3e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_products_in_half_precision_are_near(
    model: Seq2SeqTransformer, device: str, dtype: torch.dtype
) -> None:
    exact = log_probs_of(model, TARGET[:12])
    found = decoded(CapturedEngine(weights_of(model), device, dtype), TARGET[:12])
    assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()


@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 0.0), (4, 0.6)])
def test_its_search_finds_what_the_plain_one_finds(
    model: Seq2SeqTransformer, device: str, beam_size: int, alpha: float
) -> None:
    """Sentences take the places of others in their slots; what is left in memory there is not
    seen.
    """
    generator = torch.Generator().manual_seed(4)
    lens = torch.randint(1, 38, (25,), generator=generator).tolist()
    sources = [
        [*torch.randint(3, V_SRC, (n,), generator=generator).tolist(), EOS]
        for n in lens
    ]
    limits = [min(60, 2 * n + 3) for n in lens]
    sentences = [
        Sentence(i, row, limit)
        for i, (row, limit) in enumerate(zip(sources, limits, strict=True))
    ]
    beams = Beams(BOS, EOS, beam_size, alpha, beam_size, (0, BOS, 3))
    found = search_all(
        CapturedEngine(weights_of(model), device),
        sentences,
        beams,
        batch_tokens=100 * beam_size,
    )
    width = max(map(len, sources))

    def step(newest: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        states, cache = model.decode(newest[:, None], cache)
        return model.output(states[:, -1]), cache

    with torch.inference_mode():
        expected = beam_search(
            step, model.prefill(torch.tensor([row + [0] * (width - len(row)) for row in sources])), bos_id=BOS,
            eos_id=EOS, max_lens=torch.tensor(limits), beam_size=beam_size, length_penalty=alpha, n_best=beam_size,
            banned_ids=(0, BOS, 3),
        )  # fmt: skip
    for i, hypotheses in enumerate(expected):
        assert [h.ids for h in found[i]] == [h.ids for h in hypotheses]
        assert [h.score for h in found[i]] == pytest.approx(
            [h.score for h in hypotheses], abs=1e-3
        )


def test_a_sentence_with_a_shortlist_has_no_other_ids(
    model: Seq2SeqTransformer, device: str
) -> None:
    engine, allowed = CapturedEngine(weights_of(model), device), [4, 6, 20, 70]
    session = engine.session(2, 1)
    session.read([0, 1], SOURCES[:2], [allowed, []])
    zeros = np.zeros(2, np.int64)
    rows = Rows(
        np.arange(2),
        zeros,
        zeros,
        np.full(2, BOS, np.int32),
        np.zeros((2, 1), np.int32),
    )
    best, ids, whole = session.step(rows, 6, whole=True)
    assert whole is not None
    expected = torch.from_numpy(log_probs_of(model, [BOS])[:2, 0])
    np.testing.assert_allclose(
        whole[0, allowed], expected[0, allowed].log_softmax(0).numpy(), atol=1e-4
    )
    np.testing.assert_allclose(whole[1], expected[1].numpy(), atol=1e-4)
    assert sorted(ids[0, :4].tolist()) == allowed
    assert np.isneginf(best[0, 4:]).all()
    session.read([0], SOURCES[:1])  # a slot's next sentence does not inherit the list
    _, _, whole = session.step(rows, 1, whole=True)
    np.testing.assert_allclose(whole[0], expected[0].numpy(), atol=1e-4)  # type: ignore[index]


def test_what_is_no_number_is_told(model: Seq2SeqTransformer, device: str) -> None:
    with torch.no_grad():
        model.tgt_embedding.tokens.weight[BOS, 3] = float("nan")
    with pytest.raises(DivergedError):
        search_all(
            CapturedEngine(weights_of(model), device),
            [Sentence(0, SOURCES[0], 5)],
            Beams(BOS, EOS, 2),
        )
