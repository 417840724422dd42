"""The encoder-decoder before the Transformer: recurrent layers, and attention over the encoder's
states.

It has the doors of the Transformer beside it, so that training, decoding and inspection tell no
difference. An encoder reads the source in both directions (Bahdanau et al. 2015, section 3.2). The
decoder attends after its recurrent layers have moved on (global attention, Luong et al. 2015,
section 3.1) and does not feed what it saw into its next step, so that all target positions of a
training batch run in one call.

Shapes: the legend in `weft.model.attention`; also R d_hidden, E the encoder's layers times two
directions.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from weft.config import RecurrentSection
from weft.model.attention import AttentionRecord

# What recurrent layers hand on: h of a GRU; h and c of an LSTM.
State: TypeAlias = tuple[Float[Tensor, "layers N R"], ...]


def attention_weights(
    scores: Float[Tensor, "N T S"], padding: Bool[Tensor, "N S"]
) -> Float[Tensor, "N T S"]:
    """Compute the softmax over what is not padding (True); a row that sees nothing gets zeros."""
    hidden = padding[:, None, :]
    return (
        scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    )


class DotAttention(nn.Module):
    """Scores q . k / sqrt(R): the dot of Luong et al. 2015 (section 3.1), scaled as in Vaswani et
    al. 2017.

    It learns nothing of its own: memory, its own key, is already a learned projection of the
    encoder's states.
    """

    def keys(self, memory: Float[Tensor, "N S R"]) -> Float[Tensor, "N S R"]:
        """Compute what queries are compared with, once for each source."""
        return memory

    def forward(
        self,
        query: Float[Tensor, "N T R"],
        key: Float[Tensor, "N S R"],
        padding: Bool[Tensor, "N S"],
    ) -> Float[Tensor, "N T S"]:
        """Compute the weight of each position of the memory for each query."""
        return attention_weights(
            query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]), padding
        )


class AdditiveAttention(nn.Module):
    """Scores v . tanh(W_q q + W_k k) (Bahdanau et al. 2015, appendix A.1.2).

    The sum is a block of N x T x S x R numbers, and training keeps it: fine for sentences, much for
    pages.
    """

    def __init__(self, d_hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_hidden, d_hidden, bias=False)
        self.key = nn.Linear(d_hidden, d_hidden, bias=False)
        self.energy = nn.Linear(d_hidden, 1, bias=False)

    def keys(self, memory: Float[Tensor, "N S R"]) -> Float[Tensor, "N S R"]:
        """Compute what queries are compared with, once for each source."""
        return self.key(memory)

    def forward(
        self,
        query: Float[Tensor, "N T R"],
        key: Float[Tensor, "N S R"],
        padding: Bool[Tensor, "N S"],
    ) -> Float[Tensor, "N T S"]:
        """Compute the weight of each position of the memory for each query."""
        sums = self.query(query)[:, :, None] + key[:, None]  # N T R, N S R -> N T S R
        return attention_weights(self.energy(torch.tanh(sums)).squeeze(-1), padding)


@dataclass(frozen=True)
class RecurrentCache:
    """The cache of a recurrent decoder: its state, the memory with keys and padding; never
    changed.

    `length` counts the target positions that the state has seen.
    """

    state: State
    memory: Float[Tensor, "N S R"]
    memory_key: Float[Tensor, "N S R"]
    memory_padding: Bool[Tensor, "N S"]
    length: int = 0

    def select(self, rows: Int[Tensor, " M"]) -> "RecurrentCache":
        """Keep, reorder or repeat rows."""
        return RecurrentCache(
            tuple(part.index_select(1, rows) for part in self.state),
            self.memory[rows],
            self.memory_key[rows],
            self.memory_padding[rows],
            self.length,
        )


class Seq2SeqRecurrent(nn.Module):
    """Recurrent encoder and decoder; `forward` gives the logits of every target position.

    With `joint` both sides share one vocabulary. `tie_embeddings` then makes source embedding,
    target embedding and output projection one matrix; two vocabularies tie the last two. Padding
    stands at the end of a row.

    `max_len` is there for those who plan lengths. The model itself has no positions to run out of,
    but what it remembers fades; so longer rows are not refused here.
    """

    def __init__(
        self,
        shape: RecurrentSection,
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
        d_model = shape.d_model
        d_hidden = shape.d_hidden
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, d_model)
        shared = joint and shape.tie_embeddings
        self.src_embedding = (
            self.tgt_embedding if shared else nn.Embedding(src_vocab_size, d_model)
        )
        self.scale = math.sqrt(d_model)
        self.dropout = nn.Dropout(shape.dropout)
        self.encoder = build_layers(shape, shape.num_encoder_layers, bidirectional=True)
        self.memory = nn.Linear(2 * d_hidden, d_hidden)
        self.bridge = nn.ModuleDict(
            {
                part: nn.Linear(2 * d_hidden, shape.num_decoder_layers * d_hidden)
                for part in _state_parts(shape)
            }
        )
        self.decoder = build_layers(
            shape, shape.num_decoder_layers, bidirectional=False
        )
        self.attention: DotAttention | AdditiveAttention = (
            DotAttention() if shape.attention == "dot" else AdditiveAttention(d_hidden)
        )
        self.combine = nn.Linear(2 * d_hidden, d_model)
        self.projection = nn.Linear(d_model, tgt_vocab_size)
        if shape.tie_embeddings:
            self.projection.weight = self.tgt_embedding.weight
        init_recurrent_weights(self)

    def forward(
        self,
        src: Int[Tensor, "B S"],
        tgt_in: Int[Tensor, "B T"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the token after each target position."""
        return self.output(self.states(src, tgt_in, record))

    def states(
        self,
        src: Int[Tensor, "B S"],
        tgt_in: Int[Tensor, "B T"],
        record: AttentionRecord | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the decoder's attentional states: all target positions decoded in one go."""
        return self.decode(tgt_in, self.prefill(src, record), record)[0]

    def output(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N V"]:
        """Project attentional states to logits."""
        return self.projection(states)

    def encode(self, src: Int[Tensor, "B S"]) -> Float[Tensor, "B S R"]:
        """Encode source ids to memory; padding is never read."""
        return self._read(src)[0]

    def prefill(
        self, src: Int[Tensor, "B S"], record: AttentionRecord | None = None
    ) -> RecurrentCache:
        """Read the source; return the cache that decoding starts from.

        An encoder without attention records nothing.
        """
        memory, state = self._read(src)
        return RecurrentCache(
            state, memory, self.attention.keys(memory), src == self.pad_id
        )

    def decode(
        self,
        ids: Int[Tensor, "N L"],
        cache: RecurrentCache,
        record: AttentionRecord | None = None,
    ) -> tuple[Float[Tensor, "N L D"], RecurrentCache]:
        """Decode new target positions after the cache; return their states and the newer cache."""
        x = self._embedded(self.tgt_embedding, ids)
        with _full_precision(ids.device):
            hidden, ends = self.decoder(x, _for_layers(cache.state))
        weights = self.attention(hidden, cache.memory_key, cache.memory_padding)
        if record is not None:
            record.cross.append(weights[:, None].detach())
        context = weights @ cache.memory
        # Luong et al. 2015, equation 5
        states = torch.tanh(self.combine(torch.cat([context, hidden], -1)))
        return self.dropout(states), replace(
            cache, state=_from_layers(ends), length=cache.length + ids.shape[1]
        )

    def _read(self, src: Int[Tensor, "B S"]) -> tuple[Float[Tensor, "B S R"], State]:
        """Read the source; return the memory and the state that the decoder starts with."""
        packed = self._packed(src)
        with _full_precision(src.device):
            states, ends = self.encoder(packed)
        both, _ = pad_packed_sequence(
            states, batch_first=True, total_length=src.shape[1]
        )
        return self.memory(both), self._first_state(_from_layers(ends))

    def _packed(self, src: Int[Tensor, "B S"]) -> PackedSequence:
        """Return the embedded source without its padding.

        A row of padding alone keeps one, as none may be empty.
        """
        lengths = (src != self.pad_id).sum(1).clamp(min=1)
        x = self._embedded(self.src_embedding, src)
        return pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )

    def _embedded(
        self, table: nn.Embedding, ids: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L D"]:
        """Embed ids, times sqrt(D), for unit variance at the start; unscaled ones learn far
        slower.
        """
        return self.dropout(table(ids) * self.scale)

    def _first_state(self, ends: tuple[Float[Tensor, "E B R"], ...]) -> State:
        """Project the ends of the last encoder layer's two directions to the decoder's first
        state.
        """
        first = []
        for linear, end in zip(self.bridge.values(), ends, strict=True):
            bridged = torch.tanh(linear(torch.cat([end[-2], end[-1]], -1))).to(
                end.dtype
            )
            by_layer = bridged.view(end.shape[1], self.decoder.num_layers, end.shape[2])
            # B layers R -> layers B R
            first.append(by_layer.transpose(0, 1).contiguous())
        return tuple(first)


def build_layers(
    shape: RecurrentSection, num_layers: int, bidirectional: bool
) -> nn.GRU | nn.LSTM:
    """Build recurrent layers over embedded ids.

    Dropout acts between layers alone (Zaremba et al. 2014).
    """
    kind = nn.LSTM if shape.cell == "lstm" else nn.GRU
    return kind(
        shape.d_model,
        shape.d_hidden,
        num_layers,
        batch_first=True,
        dropout=shape.dropout if num_layers > 1 else 0.0,
        bidirectional=bidirectional,
    )


@torch.no_grad()
def init_recurrent_weights(model: nn.Module) -> None:
    """Initialize with Glorot-uniform matrices, zero biases, normal embeddings of deviation
    D^-0.5.

    Embeddings may be tied.

    Recurrent layers: see `_init_layers`.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.GRU | nn.LSTM):
            _init_layers(module)
    # after the linear ones, one of which may share their weights
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)


def _init_layers(layers: nn.GRU | nn.LSTM) -> None:
    """Initialize gate by gate: Glorot-uniform from the input, orthogonal from the state, zero
    biases.

    An LSTM's forget gate starts with bias 1, so that it remembers (Jozefowicz et al. 2015). torch
    adds two biases and orders the gates input, forget, cell, output: the first of the two bears it.
    """
    num_gates = 4 if isinstance(layers, nn.LSTM) else 3
    for name, parameter in layers.named_parameters():
        gates = parameter.chunk(num_gates)
        for gate in gates:
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(gate)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(gate)
        if name.startswith("bias_ih") and num_gates == 4:
            nn.init.ones_(gates[1])


def _state_parts(shape: RecurrentSection) -> tuple[str, ...]:
    """Return the names of what a state is made of."""
    return ("hidden", "cell") if shape.cell == "lstm" else ("hidden",)


def _for_layers(state: State) -> Tensor | State:
    """Convert states to what torch takes: a GRU's h bare, an LSTM's h and c as a pair."""
    return state if len(state) > 1 else state[0]


def _from_layers(state: Tensor | State) -> State:
    return state if isinstance(state, tuple) else (state,)


def _full_precision(device: torch.device) -> torch.autocast:
    """Keep recurrent layers in the precision of their weights, whatever runs around them.

    A state is rounded at each step anew, and bfloat16's 8 bits would lose what one step adds to it;
    besides, not every CPU has bfloat16 kernels for an LSTM.
    """
    return torch.autocast(device.type, enabled=False)
