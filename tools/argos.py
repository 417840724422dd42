"""A program for another Python, one that has Argos Translate: it installs a package and translates.

Its input is an object of JSON: the `package`, the codes `src` and `tgt`, the `texts`. Its output is
another one: the `translations`, and the versions of the packages that made them; where
LibreTranslate is there, too, `formatted` are the translations as it would answer with them. Nothing
of Weft is imported: only what a stranger has who got the package.
"""

import json
import sys
from html import unescape
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from argostranslate import package, translate

NAMES = (
    "argostranslate",
    "argos-translate-lt",
    "ctranslate2",
    "sentencepiece",
    "minisbd",
)


def main() -> None:
    """Answer one request."""
    asked = json.load(sys.stdin)
    package.install_from_path(asked["package"])
    codes = asked["src"], asked["tgt"]
    found = [translate.translate(text, *codes) for text in asked["texts"]]
    told: dict[str, Any] = {"translations": found, "versions": dict(versions())}
    if find_spec("libretranslate"):
        from libretranslate.language import improve_translation_formatting as formatted

        pairs = zip(asked["texts"], found, strict=True)
        told["formatted"] = [unescape(formatted(*pair)) for pair in pairs]
    json.dump(told, sys.stdout)


def versions() -> list[tuple[str, str]]:
    """The packages that are there."""
    told = []
    for name in NAMES:
        try:
            told.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return told


if __name__ == "__main__":
    main()
