"""The layers that all stacks are built of: feed-forward, residual, and the encoder, causal and
decoder layer.

Shapes: the legend in `weft.model.attention`. Source: Vaswani et al. 2017, sections 3.1, 3.3 and
5.4.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.config import LayerShape
from weft.kernels import operations
from weft.kernels.activations import ACTIVATIONS, GATES, NORMS, AnyNorm
from weft.model.attention import NORM_EPS, AttentionRecord, Mask, MultiHeadAttention
from weft.model.cache import KeysValues, LayerCache


class GatedFeedForward(nn.Module):
    """outer(f(gate(x)) * inner(x)): one linear map says how much of another goes through.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        d_model = shape.d_model
        d_ff = shape.d_ff
        bias = shape.bias
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[GATES[shape.activation]].module()
        self.dropout = nn.Dropout(shape.activation_dropout)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        inner, gate = operations.linears(x, self.inner, self.gate)
        between = operations.gated(gate, inner, self.activation)
        return operations.linear(self.dropout(between), self.outer)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, the same at every position.

    Source: Vaswani et al. 2017, section 3.3, equation 2, whose activation is ReLU.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        d_model = shape.d_model
        d_ff = shape.d_ff
        bias = shape.bias
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[shape.activation].module()
        self.dropout = nn.Dropout(shape.activation_dropout)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        return operations.feed_forward(
            x, self.inner, self.activation, self.dropout, self.outer
        )


class Residual(nn.Module):
    """x + dropout(f(norm(x))) with `norm_first`, else the paper's norm(x + dropout(f(x))).

    With `sandwich_norm` x + dropout(norm'(f(norm(x)))): what is added has a norm of its own (Ding
    et al. 2021, "CogView", section 2.4).
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm = build_norm(shape)
        self.after = build_norm(shape) if shape.sandwich_norm else None
        self.dropout = nn.Dropout(shape.dropout)
        self.norm_first = shape.norm_first

    def forward(
        self, x: Float[Tensor, "B L D"], f: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B L D"]:
        if not self.norm_first:
            return self.norm(operations.add_dropped(x, f(x), self.dropout))
        y = f(operations.normed(x, self.norm))
        if self.after is not None:
            precise = torch.promote_types(y.dtype, torch.float32)
            y = operations.normed(y.to(precise), self.after)
        return operations.add_dropped(x, y, self.dropout)


class EncoderLayer(nn.Module):
    """Self-attention over the source, then feed-forward."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = build_attention(shape)
        self.feed_forward = build_feed_forward(shape)
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        mask: Mask = None,
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B S D"]:
        maps = None if record is None else record.encoder

        def self_attention(y: Tensor) -> Tensor:
            out, _ = self.self_attention(y, mask=mask, maps=maps)
            return out

        x = self.residuals[0](x, self_attention)
        return self.residuals[1](x, self.feed_forward)


class CausalLayer(nn.Module):
    """A decoder layer without a memory: causal self-attention, then feed-forward."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = build_attention(shape)
        self.feed_forward = build_feed_forward(shape)
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "N T D"],
        past: KeysValues,
        mask: Mask = None,
        record: AttentionRecord | None = None,
    ) -> tuple[Float[Tensor, "N T D"], KeysValues]:
        """Compute the states of the new positions x; return them and the longer past."""
        maps = None if record is None else record.decoder

        def self_attention(y: Tensor) -> Tensor:
            nonlocal past
            out, past = self.self_attention(y, past=past, mask=mask, maps=maps)
            return out

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, self.feed_forward)
        return x, past


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention over the memory, then feed-forward."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = build_attention(shape)
        # two texts have no positions in common
        self.cross_attention = build_attention(shape, rotary=False)
        self.feed_forward = build_feed_forward(shape)
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(3))

    def start(self, memory: Float[Tensor, "B S D"]) -> LayerCache:
        """Make the cache before the first target position: an empty past, and the memory."""
        keys_values = self.cross_attention.keys_values(memory)
        return LayerCache(past=keys_values.until(0), memory=keys_values)

    def forward(
        self,
        x: Float[Tensor, "N T D"],
        cache: LayerCache,
        mask: Mask = None,
        memory_mask: Mask = None,
        record: AttentionRecord | None = None,
    ) -> tuple[Float[Tensor, "N T D"], LayerCache]:
        """Compute the states of the new positions x; return them and the longer cache."""
        self_maps = None if record is None else record.decoder
        cross_maps = None if record is None else record.cross
        past = cache.past
        memory = cache.memory

        def self_attention(y: Tensor) -> Tensor:
            nonlocal past
            out, past = self.self_attention(y, past=past, mask=mask, maps=self_maps)
            return out

        def cross_attention(y: Tensor) -> Tensor:
            out, _ = self.cross_attention(y, memory, mask=memory_mask, maps=cross_maps)
            return out

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, cross_attention)
        x = self.residuals[2](x, self.feed_forward)
        return x, LayerCache(past, memory)


def build_norm(shape: LayerShape) -> AnyNorm:
    """Build a norm of D numbers a position."""
    return NORMS[shape.norm].build(shape.d_model, NORM_EPS, shape.bias)


def build_feed_forward(shape: LayerShape) -> FeedForward | GatedFeedForward:
    """Build a feed-forward part, with a gate where the activation is one of a gate."""
    return GatedFeedForward(shape) if shape.activation in GATES else FeedForward(shape)


def build_attention(shape: LayerShape, rotary: bool = True) -> MultiHeadAttention:
    """Build an attention as the recipe describes it; `rotary` only where the recipe has it too."""
    rotary = rotary and shape.positions == "rotary"
    return MultiHeadAttention(
        shape.d_model,
        shape.num_heads,
        shape.dim_of_head,
        shape.attention_dropout,
        shape.bias,
        rotary,
        shape.key_value_heads,
        shape.query_key_norm,
    )
