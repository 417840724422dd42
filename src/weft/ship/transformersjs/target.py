"""The export to transformers.js: the folder that this JavaScript library loads.

Its graphs are those of `weft.ship.onnx`, in its layout. The library searches greedily and leaves
nothing out by itself, so the graphs give ids that are never written no probability.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from weft.folder import durable
from weft.folder.model_folder import ClassificationConfig, LanguageConfig
from weft.predict.settings import BANNED
from weft.ship.lengths import of_no_beam
from weft.ship.onnx.models import DECODER, ids_of, names_of
from weft.ship.onnx.opened import (
    OPENED,
    Files,
    OpenedByOnnxruntime,
    OpenedTranslator,
)
from weft.ship.onnx.settings import settings_of
from weft.ship.onnx.target import why_no_graph, write_graphs
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.tokenizers import hub
from weft.ship.tokenizing import ids_around, tokenizer_files
from weft.ship.transformersjs.config import config_of, generation_of
from weft.ship.written import Written


class _GreedyTranslator(OpenedTranslator):
    """A translator, as the library uses it."""

    unchecked: ClassVar[Mapping[str, str]] = {
        "beam": "transformers.js has no beam search"
    }


_OPENED: Mapping[str, type[OpenedByOnnxruntime]] = {
    **OPENED,
    "translation": _GreedyTranslator,
}
_GRAPHS = "onnx"
NOT_RUN = (
    "transformers.js itself was not run: onnxruntime and tokenizers read its files"
)
_CUT = "a text too long for the model is cut there; Weft reads it in windows"
_RENAMED = {DECODER: "decoder_model_merged"}


class TransformersJs(Target):
    """A folder that transformers.js loads, in Node and in browsers."""

    name = "transformers.js"
    extra = "onnx"
    packages = ("onnxruntime",)
    writers = ("onnx",)
    library = "transformers.js"

    def why_not(self, source: Source) -> str:
        return why_no_graph(source) or _why_no_cache(source)

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        ids = ids_of(source)
        (place / _GRAPHS).mkdir()
        tensors = write_graphs(source, _graph_files(source, place), bans=True)
        for name, content in tokenizer_files(source, ids).items():
            (place / name).write_bytes(content)
        durable.write_json(place / "config.json", config_of(source, ids))
        if settings := generation_of(source, ids):
            durable.write_json(place / "generation_config.json", settings)
        if isinstance(source.config, LanguageConfig):
            _begin_every_text(place / hub.CONFIG)
        banned = () if isinstance(source.config, ClassificationConfig) else BANNED
        return Written(
            "ONNX for transformers.js",
            tensors,
            ids,
            *ids_around(source, ids),
            banned=banned,
            notes=_notes(source),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        # the graphs leave out what is never written
        settings = {**settings_of(source, written.ids), "suppress_tokens": []}
        files = Files(_graph_files(source, place), place / hub.TOKENIZER, settings)
        return _OPENED[source.task.name](files)

    def used_otherwise(self, source: Source) -> str:
        return of_no_beam("transformers.js", source.config)

    def how_to_use(self, source: Source, written: Written) -> str:
        settings = generation_of(source, ids_of(source))
        limit = settings.get("max_new_tokens")
        lines = _LINES[source.task.name].format(limit=limit)
        return _USE.format(lines=lines)


_TRANSLATE = """\
const translate = await pipeline("translation", "./THIS_FOLDER");
const [answer] = await translate("A sentence.", {{ max_new_tokens: {limit} }});
console.log(answer.translation_text);"""
_WRITE = """\
const write = await pipeline("text-generation", "./THIS_FOLDER");
const wishes = {{ max_new_tokens: {limit}, return_full_text: false }};
const [answer] = await write("A beginning", wishes);
console.log("A beginning" + answer.generated_text);"""
_CLASSIFY = """\
const classify = await pipeline("text-classification", "./THIS_FOLDER");
console.log(await classify("A text."));"""
_LINES = {
    "translation": _TRANSLATE,
    "language-modelling": _WRITE,
    "classification": _CLASSIFY,
}
# 4.3.2 is the version that Weft's tests run
_USE = """\
`npm install @huggingface/transformers` (tried with 4.3.2), then in JavaScript:

```javascript
import {{ pipeline }} from "@huggingface/transformers";

{lines}
```"""


def _why_no_cache(source: Source) -> str:
    """Say why the library cannot keep what a model remembers; "" where it can."""
    config = source.config
    if not isinstance(config, LanguageConfig):
        return ""
    shape = config.model
    if shape.ngrams == 1 and not shape.match_lengths:
        return ""
    return (
        "its n-grams and matches reach back to what was read, which the library does not keep "
        "(model.ngrams = 1 and model.match_lengths = [] have a home; --to web has it as it is)"
    )


def _graph_files(source: Source, place: Path) -> Mapping[str, Path]:
    folder = place / _GRAPHS
    return {
        name: folder / f"{_RENAMED.get(name, name)}.onnx" for name in names_of(source)
    }


def _begin_every_text(path: Path) -> None:
    """Say that a text begins with the start symbol: for a language model the library asks."""
    config = json.loads(path.read_text("utf-8"))
    durable.write_json(path, {**config, "add_bos_token": True})


def _notes(source: Source) -> tuple[str, ...]:
    """Return what to know of a folder."""
    config = source.config
    if isinstance(config, ClassificationConfig) and config.too_long == "windows":
        return NOT_RUN, _CUT
    return (NOT_RUN,)
