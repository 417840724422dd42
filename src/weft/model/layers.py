"""The layers that all stacks are built of: feed-forward, residual, and the encoder, causal and
decoder layer.

What `operations` computes stands there in plain PyTorch, beside the call of the native kernel that
training on a CPU takes. Shapes: the legend in `weft.model.attention`. Source: Vaswani et al. 2017,
sections 3.1, 3.3 and 5.4.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.config import LayerShape
from weft.kernels import operations
from weft.kernels.activations import GATES
from weft.kernels.modules import ACTIVATION_MODULES, NORM_MODULES, AnyNorm
from weft.model.attention import NORM_EPS, AttentionRecord, Mask, MultiHeadAttention
from weft.model.cache import KeysValues, LayerCache


class GatedFeedForward(nn.Module):
    """outer(activation(gate(x)) * inner(x)): one linear map says how much of another goes through.

    The paper has no gate. Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        d_model = shape.d_model
        d_ff = shape.d_ff
        bias = shape.bias
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATION_MODULES[GATES[shape.activation]]()
        self.dropout = nn.Dropout(shape.activation_dropout)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        inner, gate = operations.linears(x, self.inner, self.gate)
        between = operations.gated(gate, inner, self.activation)
        return operations.linear(self.dropout(between), self.outer)


class FeedForward(nn.Module):
    """outer(activation(inner(x))), two linear maps, the same at every position (section 3.3).

    With ReLU it is the paper's equation 2, max(0, x W_1 + b_1) W_2 + b_2. The dropout in between,
    `activation_dropout`, is not in the paper; it is 0 unless the recipe sets it.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        d_model = shape.d_model
        d_ff = shape.d_ff
        bias = shape.bias
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATION_MODULES[shape.activation]()
        self.dropout = nn.Dropout(shape.activation_dropout)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        return operations.feed_forward(
            x, self.inner, self.activation, self.dropout, self.outer
        )


class Residual(nn.Module):
    """The connection around a sublayer: the paper's norm(x + dropout(sublayer(x))).

    It is LayerNorm(x + Sublayer(x)) of section 3.1 with the dropout of section 5.4. Two other forms
    are later work. With `norm_first` it is x + dropout(sublayer(norm(x))), which can be trained
    without warm-up (Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture").
    With `sandwich_norm` it is x + dropout(after(sublayer(norm(x)))): what is added has a norm of
    its own (Ding et al. 2021, "CogView", section 2.4).
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm = build_norm(shape)
        self.after = build_norm(shape) if shape.sandwich_norm else None
        self.dropout = nn.Dropout(shape.dropout)
        self.norm_first = shape.norm_first

    def forward(
        self, x: Float[Tensor, "B L D"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B L D"]:
        # the paper's form: what the norm gives is also the next x of the residuals, so it must stay
        # in float32 and cannot be `operations.normed`, whose result has the dtype of matrix
        # products, such as bfloat16
        if not self.norm_first:
            return self.norm(operations.add_dropped(x, sublayer(x), self.dropout))
        y = sublayer(operations.normed(x, self.norm))
        # what half precision gave is normed in float32, as x is
        if self.after is not None:
            precise = torch.promote_types(y.dtype, torch.float32)
            y = operations.normed(y.to(precise), self.after)
        return operations.add_dropped(x, y, self.dropout)


class EncoderLayer(nn.Module):
    """Self-attention over the source, then feed-forward (section 3.1)."""

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
    """A decoder layer without a memory: causal self-attention, then feed-forward.

    Language models, which the paper does not have, are built from it.
    """

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

        # A residual takes a function of one tensor that returns one. The longer past, a second
        # result, is assigned to `past` of the method.
        def self_attention(y: Tensor) -> Tensor:
            nonlocal past
            out, past = self.self_attention(y, past=past, mask=mask, maps=maps)
            return out

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, self.feed_forward)
        return x, past


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention over the memory, then feed-forward (section 3.1).

    The memory is the encoder's output, the paper's z. The same layer decodes all positions at once
    in training, and the next one while translating: its `cache` has keys and values of all before.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = build_attention(shape)
        # never rotary: a position of the target means nothing in the source
        self.cross_attention = build_attention(shape, rotary=False)
        self.feed_forward = build_feed_forward(shape)
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(3))

    def start(self, memory: Float[Tensor, "B S D"]) -> LayerCache:
        """Make the cache before the first target position: an empty past, and the memory."""
        keys_values = self.cross_attention.keys_values(memory)
        # An empty slice of the source's keys and values: it has no positions, only the right rows,
        # heads, width, type and device.
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
        memory_keys_values = cache.memory

        # A residual takes a function of one tensor that returns one. The longer past, a second
        # result, is assigned to `past` of the method.
        def self_attention(y: Tensor) -> Tensor:
            nonlocal past
            out, past = self.self_attention(y, past=past, mask=mask, maps=self_maps)
            return out

        def cross_attention(y: Tensor) -> Tensor:
            out, _ = self.cross_attention(
                y, memory_keys_values, mask=memory_mask, maps=cross_maps
            )
            return out

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, cross_attention)
        x = self.residuals[2](x, self.feed_forward)
        return x, LayerCache(past, memory_keys_values)


def build_norm(shape: LayerShape) -> AnyNorm:
    """Build a norm over the D numbers of each position."""
    return NORM_MODULES[shape.norm].build(shape.d_model, NORM_EPS, shape.bias)


def build_feed_forward(shape: LayerShape) -> FeedForward | GatedFeedForward:
    """Build a feed-forward part, with a gate where the activation is one of a gate."""
    return GatedFeedForward(shape) if shape.activation in GATES else FeedForward(shape)


def build_attention(shape: LayerShape, rotary: bool = True) -> MultiHeadAttention:
    """Build an attention as the recipe describes it, or without the recipe's rotary positions."""
    rotary = rotary and shape.positions == "rotary"
    return MultiHeadAttention(
        d_model=shape.d_model,
        num_heads=shape.num_heads,
        head_dim=shape.dim_of_head,
        dropout=shape.attention_dropout,
        bias=shape.bias,
        rotary=rotary,
        key_value_heads=shape.key_value_heads,
        query_key_norm=shape.query_key_norm,
    )
