"""The export to ONNX: graphs, a tokenizer, and a script that uses them without Weft."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from weft.folder import durable
from weft.ship.lengths import of_no_beam
from weft.ship.onnx.graph import MOST_BYTES
from weft.ship.onnx.models import graphs_of, ids_of, names_of
from weft.ship.onnx.opened import OPENED, Files, name_in
from weft.ship.onnx.settings import settings_of
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.tensors import Tensor
from weft.ship.tokenizers import hub
from weft.ship.tokenizing import ids_around, tokenizer_files
from weft.ship.written import Written

_CONFIG = "config.json"
# the script of a task
_LOOPS = {
    "translation": "translate.py",
    "language-modelling": "generate.py",
    "classification": "classify.py",
}
_TEXTS = {
    "translation": "A sentence.",
    "language-modelling": "A beginning",
    "classification": "A text.",
}


class Onnx(Target):
    """A folder with graphs, which onnxruntime computes."""

    name = "onnx"
    extra = "onnx"
    packages = ("onnxruntime",)
    writers = ("onnx",)
    library = "onnx"

    def why_not(self, source: Source) -> str:
        return why_no_graph(source)

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        ids = ids_of(source)
        tensors = write_graphs(source, graph_files(source, place), bans=False)
        for name, content in tokenizer_files(source, ids).items():
            (place / name).write_bytes(content)
        durable.write_json(place / _CONFIG, settings_of(source, ids))
        loop = _LOOPS[source.task.name]
        script = files("weft.ship.onnx.loops").joinpath(loop).read_bytes()
        (place / loop).write_bytes(script)
        return Written("ONNX", tensors, ids, *ids_around(source, ids))

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        settings = settings_of(source, written.ids)
        graphs = graph_files(source, place)
        return OPENED[source.task.name](Files(graphs, place / hub.TOKENIZER, settings))

    def used_otherwise(self, source: Source) -> str:
        loop = _LOOPS[source.task.name]
        return of_no_beam(f"`{loop}`", source.config)

    def how_to_use(self, source: Source, written: Written) -> str:
        task = source.task.name
        return _USE.format(loop=_LOOPS[task], text=_TEXTS[task])


_USE = """\
`{loop}` shows how the graphs are used, and needs nothing of Weft:

```bash
pip install onnxruntime numpy tokenizers
python THIS_FOLDER/{loop} "{text}"
```"""


def why_no_graph(source: Source) -> str:
    """Say why a model has no graph; "" where it has."""
    if source.config.is_recurrent:
        return 'it is recurrent; train a Transformer (model.kind = "transformer")'
    graphs = graphs_of(source)
    largest = max(graph.num_bytes() for graph in graphs.values())
    if largest > MOST_BYTES:
        size = f"{largest / 2**30:.1f} GiB"
        return f"its weights take {size}, more than the 2 GiB of a file of ONNX; train a smaller model"
    return ""


def graph_files(source: Source, place: Path) -> Mapping[str, Path]:
    """Return the file of each graph of a model."""
    return {name: place / f"{name}.onnx" for name in names_of(source)}


def write_graphs(source: Source, paths: Mapping[str, Path], bans: bool) -> list[Tensor]:
    """Write all graphs; return all their arrays."""
    tensors: list[Tensor] = []
    for name, graph in graphs_of(source, bans).items():
        graph.write(paths[name], name)
        tensors += [
            replace(tensor, name=name_in(name, tensor.name))
            for tensor in graph.tensors.values()
        ]
    return tensors
