"""Attention: scaled dot products, the masks they work under, and the heads around them.

Shapes, here and in every room of the model: B batch, S source length, T target length, L any
length, D d_model, H heads, J heads of keys and values, K head_dim, F d_ff, V vocabulary, N rows
while decoding (B x beam_size); of a classifier: C labels, E width of the vector of a text, G
n-grams. Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
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

    Each list holds one tensor a layer, first layer first, of shape (B, H, queries, keys); a row
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

    All masks of a Transformer are made here.

    `key_padding_mask` is True at padding, as `nn.MultiheadAttention` has it. With `num_keys`, a
    query may not see the future: the last query stands at the last key, the one before it one key
    earlier, and so on. With `segments`, which numbers texts side by side in a row, queries and keys
    are the row's positions, and none sees another text; padding, numbered 0, is one of them. None
    means that everything may be attended.
    """
    visible = None if key_padding_mask is None else ~key_padding_mask[:, None, None, :]
    if segments is not None:
        same = segments[:, None, :, None] == segments[:, None, None, :]
        visible = same if visible is None else visible & same
    if num_keys is None or num_queries == 1:
        return visible
    device = None if visible is None else visible.device
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    past = ones.tril(num_keys - num_queries)
    return past if visible is None else visible & past


def attention(
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"]]:
    """Compute softmax(QK^T / sqrt(K)) V and its weights (equation 1): the formula.

    A query that may attend to nothing gets zeros.

    Each pass over the scores costs time, so the smaller queries are scaled, and masked scores get a
    large negative number added, which costs nothing in backward.
    """
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        # finite: a row of -inf alone would become NaN
        least = torch.finfo(scores.dtype).min / 2
        added = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, least)
        weights = (scores + added).softmax(-1)
        sees_something = mask.any(-1, keepdim=True)
        if not sees_something.all():
            weights = weights.masked_fill(~sees_something, 0.0)
    return F.dropout(weights, dropout, training=dropout > 0) @ value, weights


def attend(
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Mask = None,
    dropout: float = 0.0,
    maps: list[Tensor] | None = None,
    plain: bool = False,
) -> Float[Tensor, "B H T K"]:
    """Compute softmax(QK^T / sqrt(K)) V in one of three ways, which differ by rounding alone.

    All attention of a Transformer comes through here, and here alone the way is chosen:

    - `attention`, the formula, where it is asked for: `plain`, or with `maps`, to which the weights
      before dropout are appended. Also for gradients on a CPU without the next.
    - The native kernel for gradients on a CPU, where `operations` has one for these tensors.
    - PyTorch's fused kernel for all else. On a CPU its backward is slower than the formula's.
    """
    if maps is not None or plain:
        context, weights = attention(query, key, value, mask, dropout)
        if maps is not None:
            maps.append(weights.detach())
        return context
    if query.requires_grad and operations.fits_attention(query, key, value):
        return operations.attention(query, key, value, mask, dropout)
    if query.requires_grad and query.device.type == "cpu":
        return attention(query, key, value, mask, dropout)[0]
    return F.scaled_dot_product_attention(query, key, value, mask, dropout)


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own projection of width K (section 3.2.2).

    K is free of d_model: the heads' outputs, H x K wide together, are projected back to D. With
    `rotary`, queries and keys are turned by their positions. With fewer `key_value_heads`, each of
    these J serves H / J heads (Ainslie et al. 2023, "GQA"). With `query_key_norm`, each query and
    key is divided by its root mean square and multiplied by learned gains before it is turned
    (Henry et al. 2020, "Query-Key Normalization for Transformers", where it was divided by its
    length).
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
        # whether `attend` takes the formula even where a kernel computes the same sooner
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
        memory: KeysValues | None = None,
        past: KeysValues | None = None,
        mask: Mask = None,
        maps: list[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], KeysValues]:
        """Attend from each position of x; return the output, and the keys and values it is made of.

        With a `memory`, the keys and values of another text, it is cross-attention. Else it is
        self-attention, over x and the `past`, the cached keys and values of the positions before x:
        what is returned is then the longer past. With `maps`, the weights (before dropout) are
        appended.
        """
        if memory is None:
            query, memory = self.queries_keys_values(x, past)
        else:
            query = self.queries(x)
        context = attend(
            query,
            self._for_all_heads(memory.key),
            self._for_all_heads(memory.value),
            mask,
            self.dropout if self.training else 0.0,
            maps,
            self.plain,
        )
        joined = context.transpose(1, 2).flatten(2)
        return operations.linear(joined, self.output), memory

    def queries(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T K"]:
        """Project x, which begins at position 0, to queries."""
        query = operations.linear(x, self.query)
        return self._placed_heads(query, 0, self.query_norm)

    def keys_values(self, memory: Float[Tensor, "B S D"]) -> KeysValues:
        """Project a memory, which begins at position 0, to keys and values."""
        key, value = operations.linears(memory, self.key, self.value)
        key_heads = self._placed_heads(key, 0, self.key_norm)
        return KeysValues(key_heads, self._split_heads(value))

    def queries_keys_values(
        self, x: Float[Tensor, "B L D"], past: KeysValues | None = None
    ) -> tuple[Float[Tensor, "B H L K"], KeysValues]:
        """Project x, which stands behind the `past`, to queries, keys and values in one product.

        The keys and values returned are those of the past and of x.
        """
        first = 0 if past is None else past.length
        query, key, value = operations.linears(x, self.query, self.key, self.value)
        queries = self._placed_heads(query, first, self.query_norm)
        key_heads = self._placed_heads(key, first, self.key_norm)
        new = KeysValues(key_heads, self._split_heads(value))
        return queries, new if past is None else past.extended(new)

    def _placed_heads(
        self, x: Float[Tensor, "B L _"], first: int, norm: nn.RMSNorm | None
    ) -> Float[Tensor, "B _ L K"]:
        """Split queries or keys into heads, norm them, and turn them by their positions."""
        if norm is not None:
            precise = torch.promote_types(x.dtype, torch.float32)
            heads = self._split_heads(x).transpose(1, 2).to(precise)  # B L _ K
            x = operations.normed(heads, norm).type_as(x).flatten(2)
        heads = self._split_heads(x)
        return rotate(heads, first) if self.rotary else heads

    def _split_heads(self, x: Float[Tensor, "B L _"]) -> Float[Tensor, "B _ L K"]:
        batch, length, width = x.shape
        heads = width // self.head_dim
        return x.view(batch, length, heads, self.head_dim).transpose(1, 2)

    def _for_all_heads(self, x: Float[Tensor, "B J S K"]) -> Float[Tensor, "B H S K"]:
        """Repeat each key and value for every head that it serves."""
        if self.key_value_heads == self.num_heads:
            return x
        return x.repeat_interleave(self.num_heads // self.key_value_heads, dim=1)


def attend_plainly(model: nn.Module) -> None:
    """Let all attention of a model take the formula, `attention`, where a reader can watch it."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.plain = True
