"""A recurrent encoder-decoder at work on a text, layer by layer; PyTorch alone computes it.

Shapes: S source and T target tokens; R d_hidden; V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.data.tokenizer import BOS_ID
from weft.engine.stream import Row
from weft.engine.torch_steps import calling
from weft.engine.weights import Floats
from weft.inspection.model_map import Box, ModelMap
from weft.model.attention import AttentionRecord
from weft.model.recurrent import Seq2SeqRecurrent


@dataclass(frozen=True, eq=False)
class RecurrentPass:
    """The logits (T, V) after each part that `rows` name, the model's own at last; the attention
    `weights` (1, 1, T, S); and the states: the encoder's as the `memory` (S, R), and those of the
    decoder's last layer, `hidden` (T, R).
    """

    rows: list[Row]
    logits: list[Floats]
    weights: Floats
    memory: Floats
    hidden: Floats


def recurrent_pass(
    model: Seq2SeqRecurrent,
    src: Sequence[int],
    tgt: Sequence[int],
    device: torch.device | str,
) -> RecurrentPass:
    """Read a source, and what the decoder reads as it writes a translation.

    After each layer of the decoder the logits are those of a model that ends with it, and has seen
    nothing of the source but its own first state; `cross` is what the attention makes of the last.
    """
    record = AttentionRecord()
    tgt_in = [BOS_ID, *tgt[:-1]]
    read = torch.tensor([src], device=device)
    ids = torch.tensor([tgt_in], device=device)
    said = []
    with calling(model):
        cache = model.prefill(read)
        states, _ = model.decode(ids, cache, record)
        for hidden in _layers(model, ids, cache.state):
            nothing = torch.zeros_like(hidden)
            joined = torch.cat([nothing, hidden], -1)
            alone = torch.tanh(model.combine(joined))
            said.append(model.output(alone))
        said.append(model.output(states))
    rows = [Row("recurrent", number) for number in range(len(said) - 1)]
    return RecurrentPass(
        [*rows, Row("cross")],
        [array_of(each[0]) for each in said],
        array_of(record.cross[0]),
        array_of(cache.memory[0]),
        array_of(hidden[0]),
    )


def _layers(
    model: Seq2SeqRecurrent, ids: Tensor, first: tuple[Tensor, ...]
) -> Iterator[Tensor]:
    """Yield the states (1, T, R) of each layer of the decoder, from its first ones on."""
    x = model.tgt_embedding(ids) * model.scale
    for number in range(model.decoder.num_layers):
        end = number + 1
        own = tuple(part[number:end].contiguous() for part in first)
        begin = own if len(own) > 1 else own[0]
        layer = _layer(model.decoder, number)
        x, _ = layer(x, begin)
        yield x


def _layer(layers: nn.GRU | nn.LSTM, number: int) -> nn.GRU | nn.LSTM:
    """Return one of several layers alone, with its weights."""
    size = layers.input_size if number == 0 else layers.hidden_size
    one = type(layers)(size, layers.hidden_size, batch_first=True)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(one, f"{name}_l0", getattr(layers, f"{name}_l{number}"))
    return one


def map_of_recurrent(model: Seq2SeqRecurrent) -> ModelMap:
    """Return the map of a recurrent encoder-decoder."""
    src = model.src_embedding.weight
    tgt = model.tgt_embedding.weight
    width = model.projection.in_features
    hidden = model.decoder.hidden_size
    tied = ["decoder.embedding"]
    of_tgt = tgt.numel()
    of_output = _count(model.projection)
    if src is tgt:
        tied.insert(0, "encoder.embedding")
        of_tgt = 0
    if model.projection.weight is tgt:
        tied.append("output")
        of_output -= tgt.numel()
    of_cross = _count(model.attention) + _count(model.combine)
    boxes = [
        _embedding("encoder", src, src.numel()),
        *_boxes("encoder", model.encoder, _count(model.memory)),
        _embedding("decoder", tgt, of_tgt),
        *_boxes("decoder", model.decoder, _count(model.bridge)),
        _box("decoder", "cross", (hidden, width), of_cross),
        _box("output", "output", (width, len(tgt)), of_output),
    ]
    cell = "lstm" if isinstance(model.decoder, nn.LSTM) else "gru"
    shape = {"d_model": width, "d_hidden": hidden, "cell": cell}
    sizes = {"source": len(src), "target": len(tgt)}
    groups = [tied] if len(tied) > 1 else []
    return ModelMap(boxes, groups, shape, sizes)


def _box(
    tower: str,
    part: str,
    ends: tuple[int, int],
    numbers: int,
    layer: int | None = None,
) -> Box:
    places = [tower, part]
    if layer is not None:
        places.insert(1, str(layer))
    name = "output" if part == "output" else ".".join(places)
    return Box(name, tower, layer, part, *ends, None, numbers)


def _embedding(tower: str, table: Tensor, numbers: int) -> Box:
    count, width = table.shape
    return _box(tower, "embedding", (count, width), numbers)


def _boxes(tower: str, layers: nn.GRU | nn.LSTM, beside: int) -> list[Box]:
    """Return a box for each recurrent layer; what lies beside them is the last one's of an encoder
    and the first one's of a decoder.
    """
    found = []
    count = layers.num_layers
    with_others = count - 1 if tower == "encoder" else 0
    directions = 2 if layers.bidirectional else 1
    left = directions * layers.hidden_size
    entered = layers.input_size
    for number in range(count):
        numbers = beside if number == with_others else 0
        for name, parameter in layers.named_parameters():
            if f"_l{number}" in name:
                numbers += parameter.numel()
        ends = entered, left
        found.append(_box(tower, "recurrent", ends, numbers, number))
        entered = left
    return found


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def array_of(tensor: Tensor) -> Floats:
    """Return a tensor as an array in float32."""
    array: Floats = tensor.detach().float().cpu().numpy()
    return array
