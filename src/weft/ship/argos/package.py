"""A package of Argos Translate: a zip archive of one folder.

translate-en_de-1_0/
  metadata.json          the languages, by which it is found
  model/                 a translator of CTranslate2
  sentencepiece.model    how a sentence becomes pieces, and pieces text
  minisbd/rules.onnx     where sentences end
  README.md              the card
"""

import json
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from weft.data.languages import canonical, english_name, primary
from weft.folder.model_folder import TranslationConfig

ENDING = ".argosmodel"
METADATA = "metadata.json"
MODEL = "model"
PIECES = "sentencepiece.model"
RULES = "minisbd/rules.onnx"
CARD = "README.md"

_VERSION = "1.0"
_ARGOS = "1.11"  # the first that reads rules of sentences from a package
# codes that Argos Translate has for variants
_VARIANTS = {
    "zh-Hant": "zt",
    "zh-TW": "zt",
    "zh-HK": "zt",
    "pt-BR": "pb",
}
_LONG_AGO = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the same package has the same bytes whenever it is made
_MODE = 0o644 << 16  # of a file: all may read it


def code_of(language: str) -> str:
    """Return the code that Argos Translate has for a language (BCP-47)."""
    return _VARIANTS.get(canonical(language) or language, primary(language))


def name_of(config: TranslationConfig) -> str:
    """Return the name of the folder in the package, which is the file's, too."""
    src, tgt = code_of(config.src_lang), code_of(config.tgt_lang)
    return f"translate-{src}_{tgt}-{_VERSION.replace('.', '_')}"


def metadata_of(config: TranslationConfig) -> Mapping[str, str]:
    """Return the content of `metadata.json`."""
    return {
        "package_version": _VERSION,
        "argos_version": _ARGOS,
        "from_code": code_of(config.src_lang),
        "from_name": english_name(config.src_lang),
        "to_code": code_of(config.tgt_lang),
        "to_name": english_name(config.tgt_lang),
        "type": "translate",
    }


class Package:
    """A package file, whose folder has the file's own name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.name.removesuffix(ENDING)

    def pack(self, place: Path) -> None:
        """Write the package of the files in a folder."""
        files = sorted(path for path in place.rglob("*") if path.is_file())
        for path in files:
            self.add(path.relative_to(place).as_posix(), path.read_bytes())

    def add(self, name: str, content: bytes) -> None:
        """Add a file; those that are there stay as they are."""
        info = ZipInfo(f"{self.folder}/{name}", _LONG_AGO)
        info.compress_type = ZIP_DEFLATED
        info.external_attr = _MODE
        with ZipFile(self.path, "a") as archive:
            archive.writestr(info, content)

    def unpack(self, place: Path) -> None:
        """Write the package's folder into another one."""
        with ZipFile(self.path) as archive:
            archive.extractall(place)

    def read(self, name: str) -> bytes:
        """Read a file."""
        with ZipFile(self.path) as archive:
            return archive.read(f"{self.folder}/{name}")

    def read_all(self, folder: str) -> dict[str, bytes]:
        """Read all files of a folder in the package, by their names in it."""
        start = f"{self.folder}/{folder}/"
        with ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if name.startswith(start)]
            return {name.removeprefix(start): archive.read(name) for name in names}


def metadata_file(config: TranslationConfig) -> bytes:
    """Return `metadata.json` as a file."""
    text = json.dumps(metadata_of(config), indent=2, ensure_ascii=False)
    return f"{text}\n".encode()
