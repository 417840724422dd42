"""The export to Argos Translate and LibreTranslate: a package that both install."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from weft.data.languages import UNKNOWN, primary
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.folder.model_folder import TranslationConfig
from weft.predict.settings import BANNED
from weft.predict.text import one_line
from weft.ship.argos import package as packages
from weft.ship.argos import running
from weft.ship.argos.opened import OpenedPackage
from weft.ship.argos.package import ENDING, Package, metadata_file, name_of
from weft.ship.argos.sentence_rules import write_rules
from weft.ship.argos.tables import package_tensors, vocabulary_of
from weft.ship.ctranslate2.model import WHY_LOOSE, ModelWritten, write_model
from weft.ship.ctranslate2.reasons import reasons_of
from weft.ship.ctranslate2.spec import Tokens
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap
from weft.ship.tokenizers.sentencepiece_file import (
    ReadBySentencePiece,
    SentencePieceFile,
    sentencepiece_file,
)
from weft.ship.written import Written

_SHOWN = 60  # characters of a text in a message


class Argos(Target):
    """A package, `.argosmodel`, and what is beside it."""

    name = "argos"
    extra = "argos"
    packages = ("onnxruntime",)
    writers = ("ctranslate2", "sentencepiece", "onnx")
    precisions = ("float32", "int8")
    library = "argostranslate"
    divides_texts = True

    def why_not(self, source: Source) -> str:
        return "; ".join(_reasons(source))

    def why_not_for(self, source: Source, texts: Sequence[str]) -> str:
        src = source.tokenizers[0]
        if src.settings.kind == "unigram":
            return ""
        lines = [one_line(text) for text in texts]
        pieces = ReadBySentencePiece(_pieces(source), src)
        different = pieces.differing(lines)
        if not different:
            return ""
        text = different[0][:_SHOWN]
        return (
            f'tokenizer.kind = "{src.settings.kind}": {len(different):,} of {len(lines):,} lines have other '
            f'pieces there, such as "{text}"; train with tokenizer.kind = "unigram"'
        )

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        config = source.config
        assert isinstance(config, TranslationConfig)
        pieces = _pieces(source)
        package = _package_in(place, source)
        with TemporaryDirectory(dir=place) as inside:
            folder = Path(inside)
            model = _write_model(source, pieces, folder / packages.MODEL, asked)
            (folder / packages.METADATA).write_bytes(metadata_file(config))
            (folder / packages.PIECES).write_bytes(pieces.content)
            rules = folder / packages.RULES
            rules.parent.mkdir()
            write_rules(rules, config.src_lang)
            package.pack(folder)
        return Written(
            "Argos Translate package",
            model.tensors,
            _ids(source, pieces),
            after=(EOS_ID,),
            precision=asked.precision,
            loose=model.loose,
            why_loose=WHY_LOOSE,
            banned=BANNED,
            notes=tuple(_notes(asked)),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        package = _package_in(place, source)
        content = package.read(packages.PIECES)
        pieces = replace(_pieces(source), content=content)
        return OpenedPackage(package, ReadBySentencePiece(pieces, source.tokenizers[0]))

    def finish(self, place: Path) -> None:
        (path,) = place.glob(f"*{ENDING}")
        card = (place / packages.CARD).read_bytes()
        Package(path).add(packages.CARD, card)

    def used_otherwise(self, source: Source) -> str:
        return (
            "Argos Translate always searches with a beam of 4 and divides the log-probability of a translation by "
            "length^0.2, whatever the model's settings are."
        )

    def how_to_use(self, source: Source, written: Written) -> str:
        config = source.config
        assert isinstance(config, TranslationConfig)
        return _USE.format(
            name=name_of(config) + ENDING,
            src=packages.code_of(config.src_lang),
            tgt=packages.code_of(config.tgt_lang),
        )


_USE = """\
With Argos Translate, `pip install argostranslate`, which downloads nothing for it:

```python
from argostranslate import package, translate

package.install_from_path("THIS_FOLDER/{name}")
print(translate.translate("A text.", "{src}", "{tgt}"))
```

With LibreTranslate, `pip install libretranslate`, which takes it from where Argos Translate has its packages:

```bash
mkdir -p ~/.local/share/argos-translate/packages
unzip THIS_FOLDER/{name} -d ~/.local/share/argos-translate/packages
echo "[]" > ~/.local/share/argos-translate/index.json  # only where there is no network
libretranslate --load-only {src},{tgt}
```"""


def _reasons(source: Source) -> Iterator[str]:
    config = source.config
    if not isinstance(config, TranslationConfig):
        yield "it has translators alone"
        return
    if reasons := reasons_of(source):
        yield reasons
    for side, language in (("src", config.src_lang), ("tgt", config.tgt_lang)):
        if primary(language) == UNKNOWN:
            yield (
                f"it finds models by their languages; train with data.{side}_lang = "
                'a code such as "en"'
            )
    if source.tokenizers[0].settings.kind == "word":
        key = "tokenizer" if source.is_joint else "tokenizer.src"
        yield (
            f'{key}.kind = "word": sentencepiece does not cut text into words; '
            f'train with {key}.kind = "unigram"'
        )


def _pieces(source: Source) -> SentencePieceFile:
    return _made(source.tokenizers[0], source.tokenizers[-1])


@lru_cache(maxsize=1)
def _made(src: Tokenizer, tgt: Tokenizer) -> SentencePieceFile:
    """Keep the file of one export, which is long in the making."""
    return sentencepiece_file(src, tgt)


def _package_in(place: Path, source: Source) -> Package:
    config = source.config
    assert isinstance(config, TranslationConfig)
    return Package(place / f"{name_of(config)}{ENDING}")


def _write_model(
    source: Source, pieces: SentencePieceFile, place: Path, asked: Asked
) -> ModelWritten:
    vocabulary = vocabulary_of(pieces, source.is_joint)
    tokens = Tokens(vocabulary.src, vocabulary.tgt, adds_eos=True)
    tensors = package_tensors(source, vocabulary)
    place.mkdir()
    return write_model(source, tensors, tokens, place, asked.precision)


def _ids(source: Source, pieces: SentencePieceFile) -> IdMap:
    """Say where Weft's ids stand: where they are, before second names of pieces."""
    src, tgt = source.tokenizers[0], source.tokenizers[-1]
    longer = len(pieces.aliases)
    if source.is_joint:
        return replace(id_maps.same(src), size=src.vocab_size + longer)
    size = max(src.vocab_size + longer, tgt.vocab_size)
    return IdMap(np.arange(src.vocab_size), np.arange(tgt.vocab_size), size)


def _notes(asked: Asked) -> list[str]:
    """Say what Argos Translate does otherwise than Weft."""
    notes = [
        "Argos Translate searches with a beam of 4 and a length penalty of 0.2, whatever the model's settings are",
        "Argos Translate turns every underscore of a translation into a space",
        "Argos Translate cuts a sentence behind 1,024 pieces, and a translation behind 256",
    ]
    if asked.precision == "float32":
        notes.append(
            "Argos Translate has CTranslate2 compute as fast as it can, in int8 on most machines; "
            "LibreTranslate computes in float32"
        )
    if asked.is_certified and not running.is_installed():
        notes.append(
            "Argos Translate was not installed: CTranslate2, sentencepiece and onnxruntime took its steps"
        )
    return notes
