"""The decoder-only Transformer: ids in, logits of the next token out; each position sees those
before it.

Shapes: the legend in `weft.model.attention`. Source: Radford et al. 2018, "Improving Language
Understanding by Generative Pre-Training", section 3.1; the layers are those of Vaswani et al. 2017
without the memory. What may stand beside the tokens, n-grams and matches, is explained in
`weft.model.ngrams`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.config import CausalSection
from weft.kernels import operations
from weft.model.attention import AttentionRecord, attention_mask
from weft.model.cache import CausalCache, KeysValues
from weft.model.layers import CausalLayer
from weft.model.ngrams import MatchEmbedding, NgramEmbedding
from weft.model.positions import segment_positions
from weft.model.transformer import Embedding, final_norm, init_weights


class CausalTransformer(nn.Module):
    """A stack of causal layers; `forward` gives the logits of the token after each position.

    `tie_embeddings` makes embedding and output projection one matrix. With `ngrams` above 1 a
    token's vector has those of the n-grams that end there added to it, with `match_lengths` those
    of what followed their like before.
    """

    def __init__(self, shape: CausalSection, vocab_size: int, pad_id: int = 0) -> None:
        super().__init__()
        self.max_len = shape.max_len
        self.pad_id = pad_id
        self.num_heads = shape.num_heads
        self.key_value_heads = shape.key_value_heads
        self.head_dim = shape.dim_of_head
        self.embedding = Embedding(shape, nn.Embedding(vocab_size, shape.d_model))
        self.ngrams = NgramEmbedding(shape, pad_id) if shape.ngrams > 1 else None
        self.matches = (
            MatchEmbedding(shape, vocab_size, pad_id) if shape.match_lengths else None
        )
        self.decoder = nn.ModuleList(
            CausalLayer(shape) for _ in range(shape.num_decoder_layers)
        )
        self.decoder_norm = final_norm(shape)
        self.projection = nn.Linear(
            shape.d_model, vocab_size, bias=shape.has_projection_bias
        )
        if shape.tie_embeddings:
            self.projection.weight = self.embedding.tokens.weight
        init_weights(
            self, not (shape.scale_embeddings or shape.tie_embeddings), shape.init_range
        )

    def forward(
        self,
        tgt_in: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the token after each position."""
        return self.output(self.states(tgt_in, segments, record))

    def states(
        self,
        tgt_in: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states of all positions; padding on the right needs no mask.

        `segments` numbers the documents that lie side by side in a row, from 1, with 0 for padding:
        each is then read as if it stood alone. A document lies in one piece, and two neighbours
        differ in number.
        """
        return self._read(tgt_in, self.start(len(tgt_in)), segments, record)[0]

    def output(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N V"]:
        """Project hidden states to logits."""
        return operations.linear(states, self.projection)

    def start(self, num_rows: int) -> CausalCache:
        """Make the cache of rows without a position."""
        nothing = self.projection.weight.new_empty(
            num_rows, self.key_value_heads, 0, self.head_dim
        )
        ids = torch.empty(num_rows, 0, dtype=torch.int64, device=nothing.device)
        return CausalCache(
            tuple(KeysValues(nothing, nothing) for _ in self.decoder), ids
        )

    def prefill(
        self, prompt: Int[Tensor, "B L"], record: AttentionRecord | None = None
    ) -> CausalCache:
        """Make the cache of prompts of one length, without padding; L may be 0."""
        return self.decode(prompt, self.start(len(prompt)), record)[1]

    def decode(
        self,
        ids: Int[Tensor, "N L"],
        cache: CausalCache,
        record: AttentionRecord | None = None,
    ) -> tuple[Float[Tensor, "N L D"], CausalCache]:
        """Decode new positions after the cache; return their states and the longer cache."""
        return self._read(ids, cache, None, record)

    def _read(
        self,
        ids: Int[Tensor, "N L"],
        cache: CausalCache,
        segments: Int[Tensor, "N L"] | None,
        record: AttentionRecord | None,
    ) -> tuple[Float[Tensor, "N L D"], CausalCache]:
        first = cache.length
        length = ids.shape[1]
        mask = attention_mask(None, length, first + length, segments)
        mask = None if mask is None else mask.to(ids.device)
        read = torch.cat([cache.ids, ids], dim=1)
        x = self._embed(ids, first, read, segments)
        layers = []
        for layer, past in zip(self.decoder, cache.layers, strict=True):
            x, extended = layer(x, past, mask, record)
            layers.append(extended)
        return self.decoder_norm(x), CausalCache(tuple(layers), read)

    def _embed(
        self,
        ids: Int[Tensor, "N L"],
        first: int,
        read: Int[Tensor, "N _"],
        segments: Int[Tensor, "N L"] | None,
    ) -> Float[Tensor, "N L D"]:
        """Embed `ids`, the last of what was `read`, and add their n-grams' and matches' vectors."""
        places = None if segments is None else segment_positions(segments)
        embeddings = (e for e in (self.ngrams, self.matches) if e is not None)
        beside = [embed(read, ids.shape[1], segments) for embed in embeddings]
        return self.embedding(ids, first, places, beside)
