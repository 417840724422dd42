"""Attention: scaled dot products, the masks they work under, and the heads around them.

Shapes, here and in every file of `model/`: B batch, S source length, T target length (in
`attention` T queries and S keys, of any text), L any length, D d_model, H heads, J heads of keys
and values, d_k head_dim (the paper's d_k and d_v), F d_ff, V vocabulary, N rows while decoding
(B x beam_size); of a classifier: C labels, E width of the vector of a text, G n-grams. "_" is any
number. In equation 1, softmax(Q K^T / sqrt(d_k)) V, the letters are the paper's: V is the values,
and K^T the keys turned over.

`operations.linear(x, layer)` is `layer(x)`, and `operations.linears` the same of several layers: in
training on a CPU a native kernel computes them where there is one.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.kernels import operations
from weft.model.cache import KeysValues
from weft.model.positions import rotate

NORM_EPS = 1e-5  # of every norm, as of PyTorch's LayerNorm

Mask = Bool[Tensor, "..."] | None
"""True where a query may attend to a key; None: everywhere."""


@dataclass
class AttentionRecord:
    """The attention weights of one forward pass; hand in an empty record to have it filled.

    Each list holds one tensor per layer, first layer first, of shape (B, H, queries, keys); a row
    sums to 1.
    """

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


def attention_mask(
    key_padding_mask: Bool[Tensor, "B L"] | None = None,
    num_queries: int = 1,
    num_keys: int | None = None,
    segments: Int[Tensor, "B L"] | None = None,
) -> Bool[Tensor, "..."] | None:
    """Make a mask: True = may attend, ready to broadcast to (B, H, queries, keys).

    All masks of a Transformer are made here (section 3.2.3).

    `key_padding_mask` is True at padding, as `nn.MultiheadAttention` has it. `num_keys` makes the
    mask causal, so that no query sees the future: the last query stands at the last key, the one
    before it one key earlier, and so on. With `segments`, which numbers texts side by side in a
    row, queries and keys are the row's positions, and none sees another text; padding, numbered 0,
    is one of them. None means that everything may be attended.

        >>> attention_mask(num_queries=3, num_keys=3).int()  # the triangle
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)

    One query stands at the last key, so that attention_mask(num_keys=3) masks nothing.
    """
    # no query attends to padding
    visible = None if key_padding_mask is None else ~key_padding_mask[:, None, None, :]
    # texts that were packed into one row do not see each other
    if segments is not None:
        same = segments[:, None, :, None] == segments[:, None, None, :]
        visible = same if visible is None else visible & same
    # an encoder may look ahead, and a single query stands at the last key: it has no future
    if num_keys is None or num_queries == 1:
        return visible
    # query i stands at key i + num_keys - num_queries, and sees that one and those before it
    device = None if visible is None else visible.device
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    past = ones.tril(num_keys - num_queries)
    return past if visible is None else visible & past


def attention(
    query: Float[Tensor, "B H T d_k"],
    key: Float[Tensor, "B H S d_k"],
    value: Float[Tensor, "B H S d_k"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "B H T d_k"], Float[Tensor, "B H T S"]]:
    """Compute softmax(Q K^T / sqrt(d_k)) V (equation 1), and the weights, which are the softmax.

    Q, K and V are `query`, `key` and `value`, those of all heads at once. A query that may attend
    to nothing gets zeros.
    """
    d_k = query.shape[-1]
    # Q K^T / sqrt(d_k); Q is divided, since it has fewer numbers than the product
    scores = (query / math.sqrt(d_k)) @ key.transpose(-2, -1)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        # Where a query may not attend, a large negative number makes its weight zero. It is added,
        # which costs nothing in backward, and finite: a row of -inf alone would become NaN. Half
        # of the least number, so that with a negative score it stays finite.
        least = torch.finfo(scores.dtype).min / 2
        added = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, least)
        weights = (scores + added).softmax(-1)
        # a query that may attend to nothing has so far spread its weight over all that is masked
        sees_something = mask.any(-1, keepdim=True)
        if not sees_something.all():
            weights = weights.masked_fill(~sees_something, 0.0)
    return F.dropout(weights, dropout, training=dropout > 0) @ value, weights


def attend(
    query: Float[Tensor, "B H T d_k"],
    key: Float[Tensor, "B H S d_k"],
    value: Float[Tensor, "B H S d_k"],
    mask: Mask = None,
    dropout: float = 0.0,
    maps: list[Tensor] | None = None,
    plain: bool = False,
) -> Float[Tensor, "B H T d_k"]:
    """Compute equation 1, softmax(Q K^T / sqrt(d_k)) V, by the fastest code for these tensors.

    There are three: the formula as it stands in `attention`, Weft's native kernel, and PyTorch's
    fused kernel. They differ by rounding, and in what dropout draws. All attention of a Transformer
    comes through here, and here alone one of them is chosen.

    `plain` asks for the formula. To `maps` the weights before dropout are appended.
    """
    # Only the formula has the weights, and only in it a reader can watch each step.
    if maps is not None or plain:
        context, weights = attention(query, key, value, mask, dropout)
        if maps is not None:
            maps.append(weights.detach())
        return context
    # Training on a CPU: the native kernel is the fastest, where it can be had.
    if query.requires_grad and operations.fits_attention(query, key, value):
        return operations.attention(query, key, value, mask, dropout)
    # Training on a CPU without it: PyTorch's kernel is slower in backward than the formula.
    if query.requires_grad and query.device.type == "cpu":
        return attention(query, key, value, mask, dropout)[0]
    # Training on a GPU, and everything without gradients.
    return F.scaled_dot_product_attention(query, key, value, mask, dropout)


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own projections of width d_k (section 3.2.2).

    `query`, `key`, `value` and `output` are the paper's W^Q, W^K, W^V and W^O; each of the first
    three holds the matrices of all heads. With `bias` they add vectors, which the paper's do not
    have. d_k may be any width: the heads' outputs, H x d_k wide together, are projected back to D.

    The other options are not in the paper. `dropout` is that of the weights. With `rotary`, queries
    and keys are turned by their positions. With fewer `key_value_heads`, each of these J serves H /
    J heads (Ainslie et al. 2023, "GQA"). With `query_key_norm`, each query and key is divided by
    its root mean square and multiplied by learned gains before it is turned (Henry et al. 2020,
    "Query-Key Normalization for Transformers", where it was divided by its length).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        head_dim: int,
        dropout: float,
        bias: bool,
        rotary: bool = False,
        key_value_heads: int | None = None,
        query_key_norm: bool = False,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.dropout = dropout
        self.rotary = rotary
        self.key_value_heads = key_value_heads or num_heads
        # whether `attend` takes the formula even where a kernel computes the same faster
        self.plain = False
        self.query = nn.Linear(d_model, num_heads * head_dim, bias=bias)
        self.key = nn.Linear(d_model, self.key_value_heads * head_dim, bias=bias)
        self.value = nn.Linear(d_model, self.key_value_heads * head_dim, bias=bias)
        self.output = nn.Linear(num_heads * head_dim, d_model, bias=bias)
        self.query_norm = nn.RMSNorm(head_dim, eps=NORM_EPS) if query_key_norm else None
        self.key_norm = nn.RMSNorm(head_dim, eps=NORM_EPS) if query_key_norm else None

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory_keys_values: KeysValues | None = None,
        past: KeysValues | None = None,
        mask: Mask = None,
        maps: list[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], KeysValues]:
        """Attend from each position of x; return the output, and the attended keys and values.

        With `memory_keys_values`, those of the encoder's output, it is cross-attention. Else it is
        self-attention, over x and the `past`, the cached keys and values of the positions before x:
        what is returned is then the longer past. To `maps` the weights before dropout are appended.
        """
        if memory_keys_values is None:
            # self-attention: queries, keys and values are all projections of x
            query, attended = self.queries_keys_values(x, past)
        else:
            # cross-attention: `keys_values` projected the memory once for all target positions
            query = self.queries(x)
            attended = memory_keys_values
        heads = attend(
            query,
            self._for_all_heads(attended.key),
            self._for_all_heads(attended.value),
            mask,
            self.dropout if self.training else 0.0,
            maps,
            self.plain,
        )
        # Concat(head_1, ..., head_h) W^O
        concatenated = heads.transpose(1, 2).flatten(2)
        return operations.linear(concatenated, self.output), attended

    def queries(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T d_k"]:
        """Project x to the queries of cross-attention."""
        query = operations.linear(x, self.query)
        # Position 0 stands for any: while decoding x begins at a later one, but only rotary
        # positions would use it, and cross-attention is never rotary.
        return self._placed_heads(query, 0, self.query_norm)

    def keys_values(self, memory: Float[Tensor, "B S D"]) -> KeysValues:
        """Project a memory, which begins at position 0, to keys and values."""
        key, value = operations.linears(memory, self.key, self.value)
        key_heads = self._placed_heads(key, 0, self.key_norm)
        return KeysValues(key_heads, self._split_heads(value))

    def queries_keys_values(
        self, x: Float[Tensor, "B L D"], past: KeysValues | None = None
    ) -> tuple[Float[Tensor, "B H L d_k"], KeysValues]:
        """Project x, which stands behind the `past`, to queries, keys and values in one product.

        The keys and values returned are those of the past and of x.
        """
        # the position of the first row of x
        first = 0 if past is None else past.length
        query, key, value = operations.linears(x, self.query, self.key, self.value)
        queries = self._placed_heads(query, first, self.query_norm)
        key_heads = self._placed_heads(key, first, self.key_norm)
        new = KeysValues(key_heads, self._split_heads(value))
        return queries, new if past is None else past.extended(new)

    def _placed_heads(
        self, x: Float[Tensor, "B L _"], first: int, norm: nn.RMSNorm | None
    ) -> Float[Tensor, "B _ L d_k"]:
        """Split queries or keys into heads, norm them, and turn them by their positions."""
        # each head's vectors by themselves, and in float32: the mean of squares needs it
        if norm is not None:
            precise = torch.promote_types(x.dtype, torch.float32)
            vectors = self._split_width(x).to(precise)
            x = operations.normed(vectors, norm).type_as(x).flatten(2)
        heads = self._split_heads(x)
        return rotate(heads, first) if self.rotary else heads

    def _split_heads(self, x: Float[Tensor, "B L _"]) -> Float[Tensor, "B _ L d_k"]:
        """Cut each position's vector into those of the heads, and order them by head."""
        return self._split_width(x).transpose(1, 2)

    def _split_width(self, x: Float[Tensor, "B L _"]) -> Float[Tensor, "B L _ d_k"]:
        """Cut each position's vector into those of the heads."""
        batch, length, width = x.shape
        return x.view(batch, length, width // self.head_dim, self.head_dim)

    def _for_all_heads(
        self, x: Float[Tensor, "B J S d_k"]
    ) -> Float[Tensor, "B H S d_k"]:
        """Repeat each key and value for every head that it serves."""
        # in the paper each serves one
        if self.key_value_heads == self.num_heads:
            return x
        return x.repeat_interleave(self.num_heads // self.key_value_heads, dim=1)


def attend_plainly(model: nn.Module) -> None:
    """Let all attention of a model take the formula, `attention`, where a reader can watch it."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.plain = True
