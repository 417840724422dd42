"""The weights of a model of `weft.model`, as they are now, handed to an engine.

Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from weft.decoding.decoder import StepInput
from weft.engine import bindings as engine
from weft.engine import weights
from weft.kernels import native
from weft.kernels.activations import activation_name, norm_name
from weft.model.attention import NORM_EPS, MultiHeadAttention
from weft.model.causal import CausalTransformer
from weft.model.layers import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    GatedFeedForward,
    Residual,
)
from weft.model.positions import NoPositions, angles
from weft.model.transformer import Embedding, Seq2SeqTransformer


def build_engine(
    model: Seq2SeqTransformer, device: str, precision: str
) -> engine.Engine | None:
    """Return the engine with this model's weights as they are now; None where this device or
    precision has none.

    Nor has a model whose weights are shared out among processes.
    """
    if device != "cpu" or precision not in engine.KINDS or is_sharded(model):
        return None
    try:
        refuse_missing_code(model)
        return engine.Engine(weights_of(model), precision)
    except native.UnavailableError:
        return None


def build_writer(
    model: CausalTransformer, device: str, precision: str
) -> "Writer | None":
    """Return a language model of the engine, for texts that grow; None where `build_engine` gives
    none.
    """
    if device != "cpu" or precision not in engine.KINDS or is_sharded(model):
        return None
    try:
        refuse_missing_code(model)
        return Writer(model, engine.Engine(causal_weights_of(model), precision))
    except native.UnavailableError:
        return None


def is_sharded(model: nn.Module) -> bool:
    """Return whether weights are shared out among processes."""
    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


@dataclass(frozen=True)
class WriterCache:
    """Texts under way, each in a slot of a session, which holds their keys and values.

    A cache is good until something else is decoded after it: the slot then holds the longer text.
    """

    session: engine.Session
    slots: Int[Tensor, " N"]
    ids: Int[Tensor, "N L"]

    def until(self, length: int) -> "WriterCache":
        """Cut to the first `length` positions; later ones are overwritten as decoding goes on."""
        return WriterCache(self.session, self.slots, self.ids[:, :length])

    def select(self, rows: Int[Tensor, " M"]) -> "WriterCache":
        """Keep or reorder rows. Raises ValueError where one is repeated: a slot holds one text."""
        if len(set(rows.tolist())) < len(rows):
            raise ValueError("a text in a slot cannot continue in two ways")
        return WriterCache(self.session, self.slots[rows], self.ids[rows])


class Writer:
    """The engine behind a causal model's `prefill`, `decode` and `output`; states are logits."""

    training = False

    def __init__(self, model: CausalTransformer, own: engine.Engine) -> None:
        """Wrap an engine; `own` has the model's weights and its n-grams and matches."""
        self.model, self.engine = model, own

    def train(self, mode: bool = True) -> None:
        """Leave everything as it is: there is nothing to train."""

    def prefill(self, prompt: Int[Tensor, "B L"]) -> WriterCache:
        """Read prompts of one length, without padding; L may be 0."""
        count = len(prompt)
        start = WriterCache(
            self.engine.session(count, 1), torch.arange(count), prompt[:, :0]
        )
        return self.decode(prompt, start, whole=False)[1] if prompt.shape[1] else start

    def decode(
        self, ids: Int[Tensor, "N L"], cache: WriterCache, whole: bool = True
    ) -> tuple[Float[Tensor, "N L V"], WriterCache]:
        """Decode new positions after those in the cache: logits of what follows each, the longer
        cache.

        Unless `whole`, nothing is computed of them but the cache.
        """
        count, length = ids.shape
        first = cache.ids.shape[1]
        read = torch.cat([cache.ids, ids], dim=1)
        slots = cache.slots[:, None].expand(count, length).flatten().numpy()
        times = torch.arange(first, first + length).repeat(count).numpy()
        table = np.zeros((count * length, first + length), np.int32)
        wanted = None if whole else np.zeros(0, np.int64)
        inputs = StepInput(
            slots, np.zeros_like(slots), times, ids.flatten().int().numpy(), table
        )
        beside = self._beside(read, length)
        _, _, rows = cache.session.step(
            inputs, 0, wanted=wanted, beside=beside, all_log_probs=True, as_logits=True
        )
        logits = torch.empty(count, length, 0)
        if whole:
            logits = torch.from_numpy(rows).reshape(count, length, -1)
        return logits, WriterCache(cache.session, cache.slots, read)

    def output(self, states: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
        """Return the logits, which `decode` gives already."""
        return states

    def _beside(
        self, read: Int[Tensor, "N T"], length: int
    ) -> NDArray[np.float32] | None:
        """Return the vectors of n-grams and matches of the last positions, if the model has any."""
        embeddings = self.model.ngrams, self.model.matches
        parts = [part(read, length) for part in embeddings if part is not None]
        if not parts:
            return None
        rows = torch.stack(parts).sum(0).detach().flatten(0, 1)
        return rows.float().contiguous().numpy()


def why_no_engine(
    model: Seq2SeqTransformer | CausalTransformer, device: str, precision: str
) -> str:
    """Say why a model has no engine on this CPU; "" where it has one, or the device has none."""
    if device != "cpu" or precision not in engine.KINDS:
        return ""
    try:
        refuse_missing_code(model)
        engine.library()
    except native.UnavailableError as error:
        return str(error)
    return ""


def refuse_missing_code(model: Seq2SeqTransformer | CausalTransformer) -> None:
    """Raise UnavailableError where the engine has no code for a part of the model.

    Such a part may have other weights than the engine knows, so this comes before they are read.
    """
    layer = cast(DecoderLayer | CausalLayer, model.decoder[0])
    residual = cast(Residual, layer.residuals[0])
    activation = activation_name(layer.feed_forward.activation)
    engine.refuse_missing(activation, norm_name(residual.norm))


def weights_of(model: Seq2SeqTransformer) -> weights.Weights:
    """Return the weights of an encoder-decoder, as the engine takes them."""
    return replace(
        _weights(model, model.tgt_embedding),
        src=_side(model.src_embedding),
        encoder=tuple(_layer(layer) for layer in model.encoder),
        encoder_norm=_final(model.encoder_norm),
    )


def _weights(
    model: Seq2SeqTransformer | CausalTransformer, tgt: Embedding
) -> weights.Weights:
    """Return the weights of a decoder."""
    first = cast(DecoderLayer | CausalLayer, model.decoder[0])
    attention = first.self_attention
    residual = cast(Residual, first.residuals[0])
    rotary = None
    if attention.rotary:
        positions = torch.arange(model.max_len).float()
        cosines, sines = angles(positions, attention.head_dim)
        rotary = _array(cosines), _array(sines)
    return weights.Weights(
        num_heads=attention.num_heads,
        head_dim=attention.head_dim,
        norm_first=residual.norm_first,
        norm=norm_name(residual.norm),
        activation=activation_name(first.feed_forward.activation),
        eps=NORM_EPS,
        embedding_scale=tgt.scale,
        src=None,
        tgt=_side(tgt),
        encoder=(),
        decoder=tuple(_layer(layer) for layer in model.decoder),
        encoder_norm=None,
        decoder_norm=_final(model.decoder_norm),
        projection=_linear(model.projection),
        rotary=rotary,
    )


def causal_weights_of(model: CausalTransformer) -> weights.Weights:
    """Return the weights of a decoder-only model, n-grams and matches left out."""
    return _weights(model, model.embedding)


def _side(embedding: Embedding) -> weights.Side:
    positions = embedding.positions
    return weights.Side(
        _array(embedding.tokens.weight),
        None if isinstance(positions, NoPositions) else _array(positions.table),
    )


def _layer(layer: nn.Module) -> weights.Layer:
    assert isinstance(layer, EncoderLayer | CausalLayer | DecoderLayer)
    residuals = [cast(Residual, residual) for residual in layer.residuals]
    norms = tuple(_norm(residual.norm) for residual in residuals)
    after = tuple(
        _norm(residual.after) for residual in residuals if residual.after is not None
    )
    cross = None
    if isinstance(layer, DecoderLayer):
        cross = _attention(layer.cross_attention)
    part = layer.feed_forward
    return weights.Layer(
        norms=norms,
        self_attention=_attention(layer.self_attention),
        cross_attention=cross,
        inner=_linear(part.inner),
        outer=_linear(part.outer),
        gate=_linear(part.gate) if isinstance(part, GatedFeedForward) else None,
        after=after,
    )


def _attention(attention: MultiHeadAttention) -> weights.Attention:
    return weights.Attention(
        query=_linear(attention.query),
        key=_for_all_heads(attention.key, attention),
        value=_for_all_heads(attention.value, attention),
        output=_linear(attention.output),
        query_gain=_gain(attention.query_norm),
        key_gain=_gain(attention.key_norm),
    )


def _gain(norm: nn.RMSNorm | None) -> weights.Floats | None:
    return None if norm is None else _array(norm.weight)


def _for_all_heads(linear: nn.Linear, attention: MultiHeadAttention) -> weights.Linear:
    """Repeat keys or values for each head that shares them: the engine has some for every head."""
    times = attention.num_heads // attention.key_value_heads
    return _linear(linear).repeated(attention.head_dim, times)


def _linear(linear: nn.Linear) -> weights.Linear:
    bias = None if linear.bias is None else _array(linear.bias)
    return weights.Linear(_array(linear.weight), bias)


def _norm(norm: nn.LayerNorm | nn.RMSNorm) -> weights.Norm:
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    return weights.Norm(_array(norm.weight), None if bias is None else _array(bias))


def _final(norm: nn.Module) -> weights.Norm | None:
    return _norm(norm) if isinstance(norm, nn.LayerNorm | nn.RMSNorm) else None


def _array(tensor: Tensor) -> weights.Floats:
    """Return a parameter as it is now, in float32; it shares the parameter's memory if it can."""
    return cast(weights.Floats, tensor.detach().float().numpy())
