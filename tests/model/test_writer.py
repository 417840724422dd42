"""The engine as a language model: what the model itself says of every position, however the text came in."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from weft.config import CausalSection
from weft.kernels import decoding, native
from weft.model.causal import CausalTransformer
from weft.model.inference import Writer, build_writer

V = 41
SHAPES: list[dict[str, Any]] = [
    {},
    {"norm_first": False, "positions": "learned", "activation": "gelu", "tie_embeddings": False},
    {"positions": "rotary", "num_heads": 3, "head_dim": 6, "bias": False},
    {"ngrams": 3, "ngram_buckets": 57, "match_lengths": (1, 2)},
]


@pytest.fixture(params=SHAPES, ids=str)
def models(request: pytest.FixtureRequest, shake: Callable[[nn.Module], Any]) -> tuple[CausalTransformer, Writer]:
    try:
        decoding.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")
    torch.manual_seed(5)
    values = {"d_model": 32, "d_ff": 40, "num_heads": 4, "num_decoder_layers": 2, "max_len": 23, "dropout": 0.0}
    model = shake(CausalTransformer(CausalSection(**{**values, **request.param}), V)).eval()
    writer = build_writer(model, "cpu", "float32")
    assert writer is not None
    return model, writer


def drawn(rows: int, length: int) -> torch.Tensor:
    return torch.randint(
        1, 6, (rows, length), generator=torch.Generator().manual_seed(6)
    )  # few, so that they match


@pytest.mark.parametrize("parts", [[9], [1] * 9, [4, 1, 3, 1], [0, 5, 4]], ids=str)
def test_it_says_what_the_model_says(models: tuple[CausalTransformer, Writer], parts: list[int]) -> None:
    model, writer = models
    ids = drawn(3, 9)
    with torch.inference_mode():
        expected = model(ids).log_softmax(-1)
        cache, found, first = writer.prefill(ids[:, : parts[0]]), [], parts[0]
        for size in parts[1:]:
            log_probs, cache = writer.decode(ids[:, first : first + size], cache)
            found.append(writer.output(log_probs))
            first += size
    if found:
        torch.testing.assert_close(torch.cat(found, 1), expected[:, parts[0] :], atol=3e-5, rtol=1e-5)
    assert torch.equal(cache.ids, ids)


def test_rows_may_leave_and_change_places_and_are_the_same_bit_for_bit(
    models: tuple[CausalTransformer, Writer],
) -> None:
    model, writer = models
    ids = drawn(5, 8)
    with torch.inference_mode():
        expected = model(ids).log_softmax(-1)[:, -1]
        alone = [writer.decode(ids[i : i + 1, 6:], writer.prefill(ids[i : i + 1, :6]))[0][0] for i in range(5)]
        some = torch.tensor([4, 0, 2])
        cache = writer.prefill(ids[:, :6]).select(some)
        _, cache = writer.decode(ids[some, 6:7], cache)
        log_probs, _ = writer.decode(ids[some[1:], 7:8], cache.select(torch.tensor([1, 2])))
    for row, i in enumerate(some[1:].tolist()):
        assert torch.equal(log_probs[row, 0], alone[i][-1])
        torch.testing.assert_close(log_probs[row, 0], expected[i], atol=3e-5, rtol=1e-5)


def test_a_text_cannot_go_on_in_two_ways(models: tuple[CausalTransformer, Writer]) -> None:
    cache = models[1].prefill(drawn(2, 3))
    with pytest.raises(ValueError, match="cannot go on in two ways"):
        cache.select(torch.tensor([1, 1]))


def test_there_is_none_on_a_gpu_or_in_float16(models: tuple[CausalTransformer, Writer]) -> None:
    assert build_writer(models[0], "cuda", "float32") is None
    assert build_writer(models[0], "cpu", "float16") is None
