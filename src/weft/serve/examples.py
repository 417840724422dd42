"""Sentences that a model of the built-in corpus knows, which the page offers."""

import re
import tomllib
from pathlib import Path

from weft.data.builtin.examples import EXAMPLES
from weft.folder.layout import CARD

_RECIPE = re.compile(r"^```toml\n(.*?)^```", re.M | re.S)
_CORPUS = "everyday"


def examples_for(folder: Path, src: str) -> list[str]:
    """Return examples in a translator's source language; none where its card has another text."""
    if _corpus_of(folder) != _CORPUS:
        return []
    return [example[src] for example in EXAMPLES if src in example]


def _corpus_of(folder: Path) -> str | None:
    """Return the built-in corpus that a model card's recipe names, if it names one."""
    try:
        card = (folder / CARD).read_text("utf-8")
        recipe = tomllib.loads(found[1]) if (found := _RECIPE.search(card)) else {}
        return str(recipe["data"]["builtin"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
