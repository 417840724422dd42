"""The encoder-decoder Transformer: source ids and target ids in, logits out.

Shapes: the legend in `weft.model.attention`. Source: Vaswani et al. 2017, section 3.
"""

import math
from collections.abc import Iterator, Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.config import LayerShape, Seq2SeqSection
from weft.kernels import operations
from weft.model.attention import AttentionRecord, attention_mask
from weft.model.cache import DecoderCache
from weft.model.layers import DecoderLayer, EncoderLayer, build_norm
from weft.model.positions import (
    LearnedPositions,
    NoPositions,
    Positions,
    SinusoidalPositions,
)

_POSITIONS = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "rotary": NoPositions,  # attention turns queries and keys instead
}


class Embedding(nn.Module):
    """Token vectors times sqrt(D), plus positions, then dropout (sections 3.4, 3.5 and 5.4).

    Without `scale_embeddings` the vectors are taken as they are. With `embedding_norm` the sum has
    a norm before the dropout, as in BERT (Devlin et al. 2019).
    """

    def __init__(self, shape: LayerShape, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions: Positions = _POSITIONS[shape.positions](
            shape.max_len, shape.d_model
        )
        self.scale = math.sqrt(shape.d_model) if shape.scale_embeddings else 1.0
        self.norm = build_norm(shape) if shape.embedding_norm else None
        self.dropout = nn.Dropout(shape.dropout)

    def forward(
        self,
        ids: Int[Tensor, "B L"],
        first: int = 0,
        places: Int[Tensor, "B L"] | None = None,
        beside: Sequence[Float[Tensor, "B L D"]] = (),
    ) -> Float[Tensor, "B L D"]:
        """Embed ids.

        They stand at the positions from `first` on. With `places` each stands at the position given
        there: texts that are packed into one row begin at 0 each. `beside` has the vectors of a
        language model's n-grams and matches, which are added to those of the tokens before scaling.
        """
        if places is None:
            positions = self.positions(ids.shape[1], first)
        else:
            positions = self.positions.at(places)
        tokens = sum(beside, self.tokens(ids))
        x = tokens * self.scale + positions
        # the first x of the residuals, in float32 as a post-norm layer's: not `operations.normed`
        if self.norm is not None:
            x = self.norm(x)
        return operations.dropped(x, self.dropout)


class Seq2SeqTransformer(nn.Module):
    """Encoder and decoder (section 3.1); `forward` computes the logits of each target position.

    The softmax over the logits (section 3.4) is a part of the loss (`weft.training.loss`), and of
    the search for a translation.

    With `joint` both sides share one vocabulary. `tie_embeddings` then makes source embedding,
    target embedding and output projection one matrix, as in the paper; two vocabularies tie the
    last two.
    """

    def __init__(
        self,
        shape: Seq2SeqSection,
        src_vocab_size: int,
        tgt_vocab_size: int,
        joint: bool,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        if joint and src_vocab_size != tgt_vocab_size:
            raise ValueError(
                f"one vocabulary cannot have {src_vocab_size} and {tgt_vocab_size} entries"
            )
        self.max_len = shape.max_len
        self.pad_id = pad_id
        tgt_tokens = nn.Embedding(tgt_vocab_size, shape.d_model)
        shared = joint and shape.tie_embeddings
        src_tokens = (
            tgt_tokens if shared else nn.Embedding(src_vocab_size, shape.d_model)
        )
        self.src_embedding = Embedding(shape, src_tokens)
        self.tgt_embedding = Embedding(shape, tgt_tokens)
        self.encoder = nn.ModuleList(
            EncoderLayer(shape) for _ in range(shape.num_encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(shape) for _ in range(shape.num_decoder_layers)
        )
        self.encoder_norm = final_norm(shape)
        self.decoder_norm = final_norm(shape)
        self.projection = nn.Linear(
            shape.d_model, tgt_vocab_size, bias=shape.has_projection_bias
        )
        if shape.tie_embeddings:
            self.projection.weight = tgt_tokens.weight
        init_weights(
            self, not (shape.scale_embeddings or shape.tie_embeddings), shape.init_range
        )

    def forward(
        self,
        src: Int[Tensor, "B S"],
        tgt_in: Int[Tensor, "B T"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the token after each target position.

        `tgt_in` is the target shifted right: its first token is bos (section 3.1).
        """
        return self.output(self.states(src, tgt_in, record))

    def states(
        self,
        src: Int[Tensor, "B S"],
        tgt_in: Int[Tensor, "B T"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the decoder's last hidden states of all target positions at once."""
        return self.decode(tgt_in, self.prefill(src, record), record)[0]

    def output(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N V"]:
        """Project hidden states to logits."""
        return operations.linear(states, self.projection)

    def encode(
        self, src: Int[Tensor, "B S"], record: AttentionRecord | None = None
    ) -> Float[Tensor, "B S D"]:
        """Encode source ids to the memory, z of section 3; padding is never attended to."""
        mask = attention_mask(src == self.pad_id)
        x = self.src_embedding(src)
        for layer in self.encoder:
            x = layer(x, mask, record)
        return self.encoder_norm(x)

    def prefill(
        self, src: Int[Tensor, "B S"], record: AttentionRecord | None = None
    ) -> DecoderCache:
        """Encode the source; return the cache that decoding starts from.

        (In a language model, `prefill` reads the prompt; here what is read first is the source.)
        The cache has the memory's keys and values of each decoder layer, projected once, and no
        target position yet.
        """
        memory = self.encode(src, record)
        return DecoderCache(
            tuple(layer.start(memory) for layer in self._decoder_layers()),
            src == self.pad_id,
        )

    def decode(
        self,
        ids: Int[Tensor, "N T"],
        cache: DecoderCache,
        record: AttentionRecord | None = None,
    ) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
        """Decode new target positions after the cache; return their states and the longer cache.

        In training these are all positions at once, while translating the newest one.
        """
        first = cache.length
        length = ids.shape[1]
        # Each position sees itself and those before it. Padding of the target needs no mask: it
        # stands on the right, where no real position looks, and the loss leaves it out.
        mask = attention_mask(None, length, first + length)
        mask = None if mask is None else mask.to(ids.device)
        memory_mask = attention_mask(cache.memory_padding)
        x = self.tgt_embedding(ids, first)
        layers = []
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            x, extended = layer(x, layer_cache, mask, memory_mask, record)
            layers.append(extended)
        return self.decoder_norm(x), DecoderCache(tuple(layers), cache.memory_padding)

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        """Yield the decoder's layers by their own type, which a ModuleList does not keep."""
        return (layer for layer in self.decoder if isinstance(layer, DecoderLayer))


def init_weights(
    model: nn.Module, unit_embeddings: bool, init_range: float | None = None
) -> None:
    """Initialize weights: Glorot-uniform matrices, zero biases, normal embeddings.

    Embeddings have deviation D^-0.5, so that scaled ones start with unit variance and tied logits
    too; `unit_embeddings` gives those that are neither scaled nor tied unit variance instead.
    `init_range` r draws them, and the matrix of the output projection, evenly from -r to r. The
    rows of an EmbeddingBag, hashed n-grams, start at zero, so that one which training never meets
    adds nothing.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for name, module in model.named_modules():
        if init_range is not None and (
            isinstance(module, nn.Embedding) or name == "projection"
        ):
            nn.init.uniform_(module.get_parameter("weight"), -init_range, init_range)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(
                module.weight,
                std=1.0 if unit_embeddings else module.embedding_dim**-0.5,
            )
        elif isinstance(module, nn.EmbeddingBag):
            nn.init.zeros_(module.weight)
        elif isinstance(module, LearnedPositions):
            nn.init.normal_(module.table, std=0.02)


def count_parameters(model: nn.Module) -> int:
    """Count the learned numbers, shared ones once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def final_norm(shape: LayerShape) -> nn.Module:
    """Build the norm after a stack: pre-norm ones have one, post-norm ones have just had one."""
    return build_norm(shape) if shape.norm_first else nn.Identity()
