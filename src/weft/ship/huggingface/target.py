"""The export to the transformers library: a folder as the Hugging Face Hub has them."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from weft.errors import UsageError
from weft.folder import durable
from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.ship.huggingface.classes import home_of, why_no_home
from weft.ship.huggingface.generation import generation_of, of_pipelines
from weft.ship.huggingface.home import Home
from weft.ship.huggingface.opened import (
    WEIGHTS,
    OpenedByTransformers,
    OpenedClassifier,
    OpenedTranslator,
    OpenedWriter,
)
from weft.ship.lengths import of_other_lengths
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target, load
from weft.ship.tensors import make_all
from weft.ship.tokenizers.ids import IdMap
from weft.ship.tokenizing import ids_around, tokenizer_files
from weft.ship.written import Written

_OPENED: Mapping[str, type[OpenedByTransformers]] = {
    "translation": OpenedTranslator,
    "language-modelling": OpenedWriter,
    "classification": OpenedClassifier,
}


class HuggingFace(Target):
    """A folder that transformers opens without code of our own."""

    name = "huggingface"
    extra = "huggingface"
    packages = ("transformers", "torch")
    library = "transformers"

    def why_not(self, source: Source) -> str:
        return why_no_home(source)

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        home = _home(source)
        ids = home.ids(source)
        tensors = home.tensors(source)
        arrays = make_all(tensors, source.arrays)
        with durable.replacing(place / WEIGHTS) as temporary:
            save_file(arrays, temporary, metadata={"format": "pt"})
        config = _config(source, home, ids)
        if not isinstance(source.config, ClassificationConfig):
            config["task_specific_params"] = of_pipelines(source)
            settings = generation_of(source, ids)
            _write_json(place / "generation_config.json", settings)
        _write_json(place / "config.json", config)
        for name, content in tokenizer_files(source, ids).items():
            (place / name).write_bytes(content)
        before, after = ids_around(source, ids)
        loose, why_loose = home.loose(source)
        return Written(
            home.architecture,
            tensors,
            ids,
            before,
            after,
            loose=loose,
            why_loose=why_loose,
            notes=tuple(home.notes(source)),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        if not hasattr(load("transformers"), written.form):
            raise UsageError(
                f"transformers {version('transformers')} has no {written.form}; install a newer one "
                "(pip install --upgrade transformers), or give --uncertified"
            )
        kind = _OPENED[source.task.name]
        return kind(place, _home(source).auto_class)

    def used_otherwise(self, source: Source) -> str:
        return of_other_lengths("transformers", source.config)

    def how_to_use(self, source: Source, written: Written) -> str:
        lines = _LINES[source.task.name]
        return _USE.format(since=_home(source).since, lines=lines)


def _home(source: Source) -> Home:
    home = home_of(source)
    assert home is not None, "why_not has refused the model"
    return home


def _config(source: Source, home: Home, ids: IdMap) -> dict[str, Any]:
    config: dict[str, Any] = {
        "architectures": [home.architecture],
        "model_type": home.model_type,
        "dtype": "float32",
        "pad_token_id": ids.pad,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        **home.config(source),
    }
    own = source.config
    if isinstance(own, TranslationConfig):
        config["decoder_start_token_id"] = ids.bos
    if isinstance(own, LanguageConfig):
        config["bos_token_id"] = source.start_id
    if isinstance(own, ClassificationConfig):
        several = "multi_label" if own.multi_label else "single_label"
        config["problem_type"] = f"{several}_classification"
        config["id2label"] = {str(i): label for i, label in enumerate(own.labels)}
        config["label2id"] = {label: i for i, label in enumerate(own.labels)}
    return config


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(f"{text}\n", "utf-8")


_TRANSLATE = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("THIS_FOLDER")
row = tokenizer("A sentence.", return_tensors="pt", truncation=True)
ids = model.generate(**row)
print(tokenizer.decode(ids[0], skip_special_tokens=True))"""
# version 4 would take out spaces before marks
_WRITE = """\
from transformers import pipeline

write = pipeline("text-generation", "THIS_FOLDER", clean_up_tokenization_spaces=False)
print(write("A beginning")[0]["generated_text"])"""
_CLASSIFY = """\
from transformers import pipeline

classify = pipeline("text-classification", "THIS_FOLDER", truncation=True)
print(classify("A text."))"""
_LINES = {
    "translation": _TRANSLATE,
    "language-modelling": _WRITE,
    "classification": _CLASSIFY,
}
_USE = """\
`pip install torch 'transformers>={since}'`, then in Python:

```python
{lines}
```"""
