"""The steps of the plain NumPy pass for a search, where there is no native engine."""

from collections.abc import Callable, Sequence

import numpy as np

from weft.decoding.decoder import Floats, Indices
from weft.engine.batched import Steps, padded
from weft.engine.plain import Cache, PlainTransformer
from weft.engine.record import Record
from weft.engine.stream import source_looks
from weft.engine.weights import Weights


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


def source_shares_of(
    weights: Callable[[], Weights],
) -> Callable[[Indices, Indices, Indices], tuple[Floats, Floats]]:
    """Return what computes the shares of source tokens and how even the looks were that wrote them,
    as `weft.engine.forced.forced_shares_of`, from the weights as they are at a call.
    """

    def source_shares(
        src: Indices, tgt_in: Indices, tgt: Indices
    ) -> tuple[Floats, Floats]:
        now = weights()
        shares = np.zeros((*tgt_in.shape, src.shape[1]), np.float32)
        evenness = np.zeros(tgt_in.shape, np.float32)
        for row, (src_ids, tgt_ids) in enumerate(zip(src, tgt, strict=True)):
            src_len = np.count_nonzero(src_ids)
            tgt_len = np.count_nonzero(tgt_ids)
            found, even = source_looks(
                now, src_ids[:src_len].tolist(), tgt_ids[:tgt_len].tolist()
            )
            shares[row, :tgt_len, :src_len] = found
            evenness[row, :tgt_len] = even
        return shares, evenness

    return source_shares
