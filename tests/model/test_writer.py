"""The engine as a language model: what the model itself says of every position, however the text
came in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from weft.config import CausalSection
from weft.engine import bindings
from weft.engine.from_model import build_writer, causal_weights_of
from weft.engine.writer import Writer
from weft.kernels import native
from weft.model.causal import CausalTransformer

V = 41
SHAPES: list[dict[str, Any]] = [
    {},
    {"norm_first": False, "positions": "learned", "activation": "gelu", "tie_embeddings": False},
    {"positions": "rotary", "num_heads": 3, "head_dim": 6, "bias": False},
    {"positions": "rotary", "num_key_value_heads": 2, "norm": "rms", "activation": "swiglu",
     "query_key_norm": True, "sandwich_norm": True, "bias": False, "ngrams": 2, "ngram_buckets": 57},
    {"ngrams": 3, "ngram_buckets": 57, "match_lengths": (1, 2)},
    # wider than what vectors are filled up to
    {"ngrams": 2, "ngram_buckets": 57, "d_model": 34, "head_dim": 9, "embedding_norm": True},
]  # fmt: skip


@pytest.fixture(params=SHAPES, ids=str)
def models(
    request: pytest.FixtureRequest, shake: Callable[[nn.Module], Any]
) -> tuple[CausalTransformer, Writer]:
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")
    torch.manual_seed(5)
    values = {
        "d_model": 32,
        "d_ff": 40,
        "num_heads": 4,
        "num_decoder_layers": 2,
        "max_len": 23,
        "dropout": 0.0,
    }
    model = shake(
        CausalTransformer(CausalSection(**{**values, **request.param}), V)
    ).eval()
    writer = build_writer(model, "cpu", "float32")
    assert writer is not None
    return model, writer


def drawn(rows: int, length: int) -> NDArray[np.int64]:
    """Few different ids, so that they match."""
    return np.random.default_rng(6).integers(1, 6, (rows, length))


def close(found: NDArray[np.float32], expected: torch.Tensor) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=3e-5, rtol=1e-5)


@torch.inference_mode()
def test_it_says_what_the_model_says(
    models: tuple[CausalTransformer, Writer], subtests: pytest.Subtests
) -> None:
    model, writer = models
    ids = drawn(3, 9)
    expected = model(torch.from_numpy(ids))
    for prompt, *parts in ([9], [1] * 9, [4, 1, 3, 1], [0, 5, 4]):
        with subtests.test(prompt=prompt, parts=parts):
            cache, first = writer.prefill(ids[:, :prompt]), prompt
            for size in parts:
                end = first + size
                logits, cache = writer.decode(ids[:, first:end], cache)
                close(logits, expected[:, first:end])
                first = end
            assert np.array_equal(cache.ids, ids)


def test_rows_may_leave_and_change_places_and_are_the_same_bit_for_bit(
    models: tuple[CausalTransformer, Writer],
) -> None:
    model, writer = models
    ids = drawn(5, 8)
    with torch.inference_mode():
        expected = model(torch.from_numpy(ids))[:, -1]
    alone = []
    for i in range(5):
        row = ids[i : i + 1]
        logits, _ = writer.decode(row[:, 6:], writer.prefill(row[:, :6]))
        alone.append(logits[0])
    some = np.array([4, 0, 2])
    cache = writer.prefill(ids[:, :6]).select(some)
    _, cache = writer.decode(ids[some, 6:7], cache)
    logits, _ = writer.decode(ids[some[1:], 7:8], cache.select(np.array([1, 2])))
    for row, i in enumerate(some[1:].tolist()):
        assert np.array_equal(logits[row, 0], alone[i][-1])
        close(logits[row, 0], expected[i])


def test_a_text_cannot_go_on_in_two_ways(
    models: tuple[CausalTransformer, Writer],
) -> None:
    cache = models[1].prefill(drawn(2, 3))
    with pytest.raises(ValueError, match="cannot continue in two ways"):
        cache.select(np.array([1, 1]))


def test_a_session_for_which_there_is_no_memory_is_an_error(
    models: tuple[CausalTransformer, Writer],
) -> None:
    """More slots than a vector can hold, or than there are bytes: neither ends the process."""
    for slots in (2**62, 2**45):
        with pytest.raises(MemoryError):
            models[1].engine.session(slots, 1)


@torch.inference_mode()
def test_what_is_forgotten_leaves_no_trace(
    models: tuple[CausalTransformer, Writer], subtests: pytest.Subtests
) -> None:
    """Bit for bit: several positions at once, the last of them taken back, others in their place,
    one by one.
    """
    model = models[0]
    ids, others = drawn(2, 9), drawn(2, 9)[:, ::-1] + 7
    undone = np.concatenate([ids[:, 3:5], others[:, 5:]], 1)
    for kind in bindings.KINDS:
        with subtests.test(kind=kind):
            writer = Writer(causal_weights_of(model), kind)
            cache, expected = writer.prefill(ids[:, :0]), []
            for place in range(9):
                logits, cache = writer.decode(ids[:, place : place + 1], cache)
                expected.append(logits)
            first, cache = writer.decode(undone, writer.prefill(ids[:, :3]))
            second, cache = writer.decode(ids[:, 5:], cache.until(5))
            found = np.concatenate([first[:, :2], second], 1)
            assert np.array_equal(found, np.concatenate(expected[3:], 1))
            assert not np.array_equal(first[:, 2:], second)
            assert np.array_equal(cache.ids, ids)


def test_the_models_own_cache_forgets_too(
    models: tuple[CausalTransformer, Writer],
) -> None:
    model, ids = models[0], torch.from_numpy(drawn(3, 9))
    with torch.inference_mode():
        expected, whole = model.decode(ids[:, 4:], model.prefill(ids[:, :4]))
        _, longer = model.decode(ids.flip(1)[:, :6], model.prefill(ids[:, :4]))
        found, again = model.decode(ids[:, 4:], longer.until(4))
    torch.testing.assert_close(found, expected)
    assert torch.equal(again.ids, whole.ids)
    assert again.length == 9


def test_reading_nothing_changes_nothing(
    models: tuple[CausalTransformer, Writer],
) -> None:
    writer, ids = models[1], drawn(2, 4)
    expected, _ = writer.decode(ids, writer.prefill(ids[:, :0]))
    nothing, cache = writer.decode(ids[:, 2:2], writer.prefill(ids[:, :2]))
    assert nothing.shape == (2, 0, V)
    found, _ = writer.decode(ids[:, 2:], cache)
    assert np.array_equal(found, expected[:, 2:])


def test_there_is_none_on_a_gpu_or_in_float16(
    models: tuple[CausalTransformer, Writer],
) -> None:
    assert build_writer(models[0], "cuda", "float32") is None
    assert build_writer(models[0], "cpu", "float16") is None
