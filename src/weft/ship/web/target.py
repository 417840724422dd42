"""The export to a page, and its certificate: the weights read back, and the page's own scripts at
work, where a browser can be started.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.config import LayerShape
from weft.engine.halves import stored_arrays
from weft.inspection.browser import rounded_task, why_no_browser
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.tensors import same
from weft.ship.tokenizers.ids import IdMap
from weft.ship.web.browser import open_scripts
from weft.ship.web.opened import OpenedFiles, OpenedInBrowser
from weft.ship.web.page import ENGINE, KNOWN, MODEL, PAGE, read_page, write_page
from weft.ship.written import Written

_NOTE = (
    "logits and searches are compared with the model whose weights are rounded to 16 bits, as the page "
    "has them; what a person gets, with the model as it is"
)


class Web(Target):
    """A page for a static web host; `title` stands in the place of its own."""

    name = "web"
    extra = "web"
    packages: ClassVar[tuple[str, ...]] = ()
    needs_text = False
    divides_texts = True

    def __init__(self, title: str = "") -> None:
        self.title = title

    def facts(self, source: Source) -> Mapping[str, Any]:
        return {**super().facts(source), "task": source.task.name}

    def why_not(self, source: Source) -> str:
        return why_no_browser(source.config)

    def compared(self, source: Source) -> Source:
        """Return the model with its weights rounded to 16 bits, in the arrays of the page."""
        task: Any = source.own  # which keeps the steps of an int8 model
        shape = task.config.model
        assert isinstance(shape, LayerShape)
        sinusoidal = shape.positions == "sinusoidal"
        stored = stored_arrays(task.weights, shape.key_value_heads, sinusoidal)
        arrays = dict(stored)
        if task.known is not None:
            arrays[KNOWN] = task.known.hashes.astype(np.int32)
        return replace(source, task=rounded_task(task), arrays=arrays)

    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        count = write_page(source.own, place, self.title, asked.license)
        names = self.compared(source).arrays
        return Written(
            f"a page, {count:,} weights in 16 bits",
            [same(name, name) for name in names],
            _ids_of(source),
            precision="float16",
            notes=(_NOTE,),
        )

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        read = read_page(place)
        weights = sorted(place / name for name in read.files)
        scripts = [place / ENGINE, place / MODEL, *weights]
        if (page := open_scripts(scripts)) is not None:
            return OpenedInBrowser(source, place, page)
        return OpenedFiles(source, place)

    def used_otherwise(self, source: Source) -> str:
        return "The page has the weights in 16 bits; it searches as Weft does."

    def how_to_use(self, source: Source, written: Written) -> str:
        return f"Open `{PAGE}` in a browser, or put the folder on any web host."


def _ids_of(source: Source) -> IdMap:
    """Say where Weft's ids stand: each side has its own list, as in Weft."""
    sizes = [tokenizer.vocab_size for tokenizer in source.tokenizers]
    return IdMap(np.arange(sizes[0]), np.arange(sizes[-1]), max(sizes))
