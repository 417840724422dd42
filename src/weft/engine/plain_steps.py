"""The steps of the plain NumPy pass for a search, where there is no native engine."""

from collections.abc import Callable, Sequence

from weft.decoding.decoder import Floats, Indices
from weft.engine.batched import Steps, padded
from weft.engine.plain import Cache, PlainTransformer
from weft.engine.record import Record


def steps_of(model: PlainTransformer) -> Steps[Cache]:
    """Return the model's own steps."""

    def prefill(sources: Sequence[Sequence[int]]) -> Cache:
        return model.prefill(padded(sources))

    def step(newest: Indices, cache: Cache) -> tuple[Floats, Cache]:
        ids = newest[:, None]  # N -> N 1
        states, longer = model.decode(ids, cache)
        last = states[:, -1]
        return model.output(last), longer

    return Steps(prefill, step)


def cross_attention_of(
    model: PlainTransformer,
) -> Callable[[Indices, Indices], Floats]:
    """Return what computes the last layer's cross-attention (B, T, S) after each target token, the
    mean of its heads, from source ids (B, S) and target ids (B, T).
    """

    def cross_attention(src: Indices, tgt_in: Indices) -> Floats:
        record = Record()
        cache = model.prefill(src)
        model.decode(tgt_in, cache, record=record)
        of_heads = record.cross[-1]  # B H T S
        mean: Floats = of_heads.mean(1)
        return mean

    return cross_attention
