"""The export to llama.cpp: a GGUF file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.config import CausalSection
from weft.data.pipeline import has_leading_space
from weft.folder.model_folder import LanguageConfig, TranslationConfig
from weft.ship.card import title_of
from weft.ship.certificate.trial import LONGEST
from weft.ship.gguf.arches import Arch, arch_of, why_no_arch
from weft.ship.gguf.keys import (
    Keys,
    context_length,
    general_keys,
    search_keys,
    shape_keys,
)
from weft.ship.gguf.layers import TABLE, loss_by_scale, tensors_of
from weft.ship.gguf.opened import OpenedByLlamaCpp
from weft.ship.gguf.precisions import (
    PRECISIONS,
    Precision,
    largest_loss,
    precision_of,
    quantized,
    type_of,
)
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target, load
from weft.ship.tensors import Array, Arrays, Tensor
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.gguf_tokens import token_keys, why_not_read
from weft.ship.tokenizing import ids_around
from weft.ship.written import Written

_ELSEWHERE = "--to onnx has a home for every Transformer"
_GELU = (
    "llama.cpp computes GELU by its approximation with tanh, from a table in float16"
)


class Gguf(Target):
    """A file that llama.cpp reads, and what is built on it."""

    name = "gguf"
    extra = "gguf"
    packages = ("xllamacpp",)
    writers = ("gguf",)
    precisions = tuple(PRECISIONS)
    library = "gguf"

    def why_not(self, source: Source) -> str:
        config = source.config
        if isinstance(config, LanguageConfig):
            reasons = why_no_arch(config.model), why_not_read(source.tokenizers[0])
            lacking = [reason for reason in reasons if reason]
            return "; ".join([*lacking, _ELSEWHERE]) if lacking else ""
        if isinstance(config, TranslationConfig):
            return f"it is a translator, and llama.cpp's only translators are T5; {_ELSEWHERE}"
        return f"it is a classifier, and llama.cpp has language models; {_ELSEWHERE}"

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        config, arch = _config_and_arch(source)
        precision = PRECISIONS[asked.precision]
        parts = _parts(arch, config.model, source.arrays, precision)
        ids = id_maps.same(source.tokenizers[0])
        before, after = ids_around(source, ids)
        keys = {
            **general_keys(config, asked, title_of(source), precision.file_type),
            **shape_keys(config, arch),
            **search_keys(config),
            **token_keys(source.tokenizers[0], before[0]),
        }
        _write(place / _file_name(precision), arch, keys, parts)
        return Written(
            f"GGUF ({arch.name})",
            [part.tensor for part in parts],
            ids,
            before,
            after,
            precision=asked.precision,
            loose={part.tensor.name: part.loss for part in parts if part.loss},
            why_loose=f"matrices are in {precision.name}",
            approximate=_GELU if config.model.activation == "gelu" else "",
            notes=tuple(_notes(source, config, parts, precision)),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        config, _ = _config_and_arch(source)
        length = min(config.model.max_len, LONGEST)
        path = place / _file_name(PRECISIONS[written.precision])
        return OpenedByLlamaCpp(
            path, source.tokenizers[0], length, source.task.machine.threads
        )

    def used_otherwise(self, source: Source) -> str:
        return (
            "llama.cpp keeps keys and values in float16, if it is not asked for more."
        )

    def how_to_use(self, source: Source, written: Written) -> str:
        file = _file_name(PRECISIONS[written.precision])
        # what the program leaves out
        space = " " if has_leading_space(source.tokenizers[0].settings) else ""
        return _USE.format(file=file, beginning=f"{space}A beginning")


@dataclass(frozen=True)
class _Part:
    """An array of the file, with its type, and how far its numbers may be from Weft's."""

    tensor: Tensor
    array: Array
    precision: Precision
    loss: float


def _parts(
    arch: Arch, shape: CausalSection, arrays: Arrays, asked: Precision
) -> list[_Part]:
    """Return all arrays of a model, in the type that is asked for or the nearest that they have."""
    parts = []
    for tensor in tensors_of(arch, shape):
        exact = tensor.made(arrays)
        precision = precision_of(tensor.name, exact, asked)
        loss = largest_loss(exact, precision)
        if tensor.name == TABLE:
            loss += loss_by_scale(shape, exact)
        written = quantized(tensor, precision)
        parts.append(_Part(written, written.made(arrays), precision, loss))
    return parts


def _notes(
    source: Source, config: LanguageConfig, parts: Sequence[_Part], asked: Precision
) -> Iterator[str]:
    """Yield what a person should know of the file."""
    if has_leading_space(source.tokenizers[0].settings):
        yield (
            "llama.cpp puts no space before a text, and this model has learned with one: begin each prompt with a "
            "space (a model trained with tokenizer.leading_space = false needs none)"
        )
    num_positions = context_length(config)
    if num_positions > config.window_len:
        yield (
            f"of the {num_positions:,} positions in the file {config.window_len:,} were trained: "
            f"give llama.cpp -c {config.window_len}"
        )
    others = [part for part in parts if part.precision.name != asked.name]
    halves = [part.tensor.name for part in others if part.precision.name == "F16"]
    if halves:
        yield (
            f"{len(halves)} matrices, such as {halves[0]}, are in F16, as the rows of {asked.name} "
            f"have a multiple of {asked.block} numbers"
        )


def _write(path: Path, arch: Arch, keys: Keys, parts: Sequence[_Part]) -> None:
    gguf: Any = load("gguf")
    writer = gguf.GGUFWriter(path, arch.name)
    writers = {
        bool: writer.add_bool,
        str: writer.add_string,
        int: writer.add_uint32,
        float: writer.add_float32,
        list: writer.add_array,
    }
    for name, value in keys.items():
        writers[type(value)](name, value)
    for part in parts:
        kind = type_of(part.precision)
        content = part.array.view(np.uint8)
        writer.add_tensor(part.tensor.name, content, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _file_name(precision: Precision) -> str:
    """Return the name of the file, from which others see the type of its numbers."""
    return f"model-{precision.name}.gguf"


def _config_and_arch(source: Source) -> tuple[LanguageConfig, Arch]:
    config = source.config
    assert isinstance(config, LanguageConfig)
    arch = arch_of(config.model)
    assert arch is not None, "why_not has refused the model"
    return config, arch


_USE = """\
```bash
llama-completion -m THIS_FOLDER/{file} -no-cnv -p "{beginning}"
llama-server -m THIS_FOLDER/{file}
curl http://127.0.0.1:8080/completion -d '{{"prompt": "{beginning}", "n_predict": 100}}'
```

It continues texts and is no model for chats: `-no-cnv` keeps `llama-completion`, and the `llama-cli` of older versions,
from beginning one. The `llama-cli` of newer ones and the page of `llama-server` do nothing else.

Or in Python, `pip install xllamacpp`:

```python
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = "THIS_FOLDER/{file}"
server = xllamacpp.Server(params)
answer = server.handle_completions({{"prompt": "{beginning}", "max_tokens": 100}})
print(answer["choices"][0]["text"])
```"""
