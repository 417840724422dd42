"""Sentences that a model of the built-in corpus knows, which the page offers."""

import re
import tomllib
from pathlib import Path

from weft.data.builtin.examples import EXAMPLES
from weft.folder.model_files import read_card

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
        found = _RECIPE.search(read_card(folder))
        recipe = tomllib.loads(found[1]) if found else {}
        return str(recipe["data"]["builtin"])
    except (ValueError, LookupError, TypeError):
        return None
