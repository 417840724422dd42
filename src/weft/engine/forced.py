"""Whole hypotheses read by the engine in one step: what the decoder attended to as it wrote them,
and what it wrote from each source token.

Shapes: B rows, S source and T target tokens; R target tokens of all rows.
"""

from collections.abc import Callable

import numpy as np

from weft.decoding.decoder import Floats, Indices, StepInput
from weft.engine.batched import PAD_ID
from weft.engine.bindings import Engine, Shares

_NO_ROW = np.empty(0, np.int64)


def forced_attention_of(engine: Engine) -> Callable[[Indices, Indices], Floats]:
    """Return what computes the last layer's cross-attention (B, T, S) after each target token, the
    mean of its heads, from source ids (B, S) and target ids (B, T).

    It is 0 where either side is padding. Raises MemoryError.
    """

    def cross_attention(src: Indices, tgt_in: Indices) -> Floats:
        num_rows, src_len = src.shape
        session = engine.session(num_rows, 1)
        session.read(range(num_rows), _without_padding(src))
        inputs = _all_positions(tgt_in)
        found = np.empty((len(inputs), src_len), np.float32)
        session.step(inputs, 0, wanted=_NO_ROW, attention=found)
        attention = np.zeros((*tgt_in.shape, src_len), np.float32)
        attention[inputs.sentences, inputs.positions] = found
        return attention

    return cross_attention


def forced_shares_of(
    engine: Engine,
) -> Callable[[Indices, Indices, Indices], tuple[Floats, Floats]]:
    """Return what computes what each source token wrote into the logit of each target token, above
    the mean of the vocabulary, by the looks of all layers (B, T, S), and how even these looks were
    (B, T): the mean entropy of their weights, each counted by what its head carried, of the most
    possible.

    It takes source ids (B, S), the target ids that the decoder reads (B, T), and those that it
    writes (B, T). A source that the engine's `memories` have is not encoded again. Every norm's
    scale is taken as it is in this pass, so that shares add up. Both are 0 where either side is
    padding. Raises MemoryError.
    """

    def source_shares(
        src: Indices, tgt_in: Indices, tgt: Indices
    ) -> tuple[Floats, Floats]:
        num_rows, src_len = src.shape
        session = engine.session(num_rows, 1)
        session.read_again(_without_padding(src))
        inputs = _all_positions(tgt_in)
        places = inputs.sentences, inputs.positions
        found = Shares(
            engine.readout(tgt[places]),
            np.empty((len(inputs), src_len), np.float32),
            np.empty(len(inputs), np.float32),
        )
        session.step(inputs, 0, wanted=_NO_ROW, shares=found)
        shares = np.zeros((*tgt_in.shape, src_len), np.float32)
        evenness = np.zeros(tgt_in.shape, np.float32)
        shares[places] = found.values
        evenness[places] = found.evenness
        return shares, evenness

    return source_shares


def _without_padding(rows: Indices) -> list[list[int]]:
    return [row[row != PAD_ID].tolist() for row in rows]


def _all_positions(tgt_in: Indices) -> StepInput:
    """Return the rows of a step that reads every token of hypotheses, which are alone in their
    beams.
    """
    sentences, positions = np.nonzero(tgt_in != PAD_ID)
    tokens = tgt_in[sentences, positions]
    beams = np.zeros_like(sentences)
    none_moved = np.zeros(tgt_in.shape[1], np.int32)
    shape = len(tokens), len(none_moved)
    ancestors = np.broadcast_to(none_moved, shape)
    return StepInput(
        sentences,
        beams,
        positions,
        tokens.astype(np.int32),
        ancestors,
    )
