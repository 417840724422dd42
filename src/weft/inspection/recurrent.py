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
    ids = [torch.tensor([row], device=device) for row in (src, [BOS_ID, *tgt[:-1]])]
    with calling(model):
        cache = model.prefill(ids[0])
        states, _ = model.decode(ids[1], cache, record)
        said = []
        for hidden in _layers(model, ids[1], cache.state):
            nothing = torch.zeros_like(hidden)
            joined = torch.cat([nothing, hidden], -1)
            said.append(model.output(torch.tanh(model.combine(joined))))
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
        own = tuple(part[number : number + 1].contiguous() for part in first)
        layer = _layer(model.decoder, number)
        x, _ = layer(x, own if len(own) > 1 else own[0])
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
    src, tgt = model.src_embedding.weight, model.tgt_embedding.weight
    is_one = src is tgt
    ties = model.projection.weight is tgt
    boxes = [_embedding("encoder", src, src.numel())]
    boxes += _boxes("encoder", model.encoder, _count(model.memory))
    boxes.append(_embedding("decoder", tgt, 0 if is_one else tgt.numel()))
    boxes += _boxes("decoder", model.decoder, _count(model.bridge))
    width, hidden = model.projection.in_features, model.decoder.hidden_size
    own = _count(model.attention) + _count(model.combine)
    boxes.append(
        Box("decoder.cross", "decoder", None, "cross", hidden, width, None, own)
    )
    numbers = _count(model.projection) - (tgt.numel() if ties else 0)
    size = len(tgt)
    boxes.append(Box("output", "output", None, "output", width, size, None, numbers))
    tied = [["encoder.embedding"] * is_one + ["decoder.embedding"] + ["output"] * ties]
    cell = "lstm" if isinstance(model.decoder, nn.LSTM) else "gru"
    shape = {"d_model": width, "d_hidden": hidden, "cell": cell}
    sizes = {"source": len(src), "target": size}
    return ModelMap(boxes, [each for each in tied if len(each) > 1], shape, sizes)


def _embedding(tower: str, table: Tensor, numbers: int) -> Box:
    count, width = table.shape
    name = f"{tower}.embedding"
    return Box(name, tower, None, "embedding", count, width, None, numbers)


def _boxes(tower: str, layers: nn.GRU | nn.LSTM, beside: int) -> list[Box]:
    """Return a box for each recurrent layer; what lies beside them is the last one's of an encoder
    and the first one's of a decoder.
    """
    found = []
    directions = 2 if layers.bidirectional else 1
    for number in range(layers.num_layers):
        own = [p for name, p in layers.named_parameters() if f"_l{number}" in name]
        numbers = sum(parameter.numel() for parameter in own)
        last = layers.num_layers - 1 if tower == "encoder" else 0
        numbers += beside if number == last else 0
        entered = layers.input_size if number == 0 else directions * layers.hidden_size
        name = f"{tower}.{number}.recurrent"
        ends = entered, directions * layers.hidden_size
        found.append(Box(name, tower, number, "recurrent", *ends, None, numbers))
    return found


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def array_of(tensor: Tensor) -> Floats:
    """Return a tensor as an array in float32."""
    array: Floats = tensor.detach().float().cpu().numpy()
    return array
