"""A package in use: by Argos Translate itself, or step by step as it does, which needs less.

Argos Translate 1.11 divides a text into lines and a line into sentences, and searches for each with
a beam of 4, whose scores it divides by the length to the power of 0.2. It decodes the pieces of all
sentences of a line together, and turns underscores into spaces.
"""

from collections.abc import Sequence
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weft.ship.argos.package import MODEL, PIECES, RULES, Package
from weft.ship.argos.sentences import Sentences
from weft.ship.target import load

ARGOS = "argostranslate"
_SPACE = "▁"
_SEARCH = {
    "replace_unknowns": True,
    "max_batch_size": 32,
    "batch_type": "tokens",
    "beam_size": 4,
    "num_hypotheses": 1,
    "length_penalty": 0.2,
}


def is_installed() -> bool:
    """Return whether Argos Translate itself is there."""
    return find_spec(ARGOS) is not None


def distribution() -> str:
    """Return the name by which it was installed, which LibreTranslate's variant has otherwise."""
    return packages_distributions()[ARGOS][0]


def use(package: Package, texts: Sequence[str]) -> list[str]:
    """Translate texts with a package."""
    if is_installed():
        return _by_argos_translate(package, texts)
    runner = Runner(package)
    return [runner.translate(text) for text in texts]


def loaded(package: Package, compute_type: str) -> Any:
    """Return the package's translator."""
    files = package.read_all(MODEL)
    translator = load("ctranslate2").Translator
    return translator(package.folder, files=files, compute_type=compute_type)


class Runner:
    """The steps of Argos Translate, by the libraries that it takes."""

    def __init__(self, package: Package) -> None:
        # it has the library choose the fastest way to compute, which may be int8
        self.translator = loaded(package, "auto")
        pieces = load("sentencepiece").SentencePieceProcessor
        self.pieces: Any = pieces(model_proto=package.read(PIECES))
        self.sentences = Sentences(package.read(RULES))

    def translate(self, text: str) -> str:
        """Translate a text of one or more lines."""
        lines = [self._line(line) for line in text.split("\n")]
        return "\n".join(lines).lstrip("\n")

    def _line(self, line: str) -> str:
        sentences = self.sentences.split(line)
        tokens = [self.pieces.encode(one, out_type=str) for one in sentences]
        written: list[str] = []
        for found in self.translator.translate_batch(tokens, **_SEARCH):
            written += found.hypotheses[0]
        text: str = self.pieces.decode_pieces(written)
        return text.replace(_SPACE, " ").replace("_", " ").removeprefix(" ")


def _by_argos_translate(package: Package, texts: Sequence[str]) -> list[str]:
    """Translate by Argos Translate, without installing the package."""
    packages = load(f"{ARGOS}.package")
    languages = load(f"{ARGOS}.translate")
    with TemporaryDirectory() as place:
        package.unpack(Path(place))
        opened = packages.Package(Path(place) / package.folder)
        translation = languages.PackageTranslation(None, None, opened)
        return [translation.translate(text) for text in texts]
