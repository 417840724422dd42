"""The files of a page that computes with a model by itself.

Its weights are in files of their own, as scripts: a page that is opened as a file may load these,
and nothing else.
"""

import base64
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import UsageError
from weft.inspection.assets import asset, fingerprint
from weft.inspection.browser import (
    BrowserModel,
    browser_model,
    engine_source,
)
from weft.tasks.task import Portrait, Task

# weights; a browser needs six bytes for each, and holds arrays of a gigabyte
MOST_WEIGHTS = 250_000_000
_PART = 6 * 2**20  # bytes of weights in a file, of which base64 makes a third more
PAGE = "index.html"
MODEL = "model.js"
ENGINE = "engine.js"
KNOWN = "known words"
_BEGUN = "const weftModel = "


def write_page(
    task: Task[Any, Any], place: Path, title: str = "", licence: str = ""
) -> int:
    """Write the page of a model into a new folder; return the number of its weights.

    `title` stands in the place of the page's own, `licence` is said at its end. Raises UsageError
    for a model that no browser computes.
    """
    model = browser_model(task)
    if model.count > MOST_WEIGHTS:
        raise UsageError(
            f"the model has {model.count:,} weights, more than a browser holds ({MOST_WEIGHTS:,}); "
            "train a smaller one (model.d_model, model.ngram_buckets), or use weft serve"
        )
    about = {"title": title, "about": _about(task), "licence": licence}
    for name, text in _files(model, about):
        (place / name).write_bytes(text.encode("utf-8"))
    return model.count


@dataclass(frozen=True, eq=False)
class Read:
    """A model as its page has it: the card, the bytes of weights, and the files that have them."""

    card: dict[str, Any]
    data: bytes
    files: list[str]

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield each array by its name, and the hashes of known words."""
        for name, entry in self.card["arrays"]:
            yield name, self._array(entry)
        if known := self.card.get("known"):
            yield KNOWN, self._array(known)

    def _array(self, entry: Mapping[str, Any]) -> NDArray[Any]:
        kind = np.dtype(entry["dtype"]).newbyteorder("<")
        shape = tuple(entry["shape"])
        count = math.prod(shape)
        found = np.frombuffer(self.data, kind, count, entry["offset"])
        return found.reshape(shape)


def read_page(place: Path) -> Read:
    """Read a model back from the files of its page."""
    text = (place / MODEL).read_text("utf-8")
    described = json.loads(text.removeprefix(_BEGUN).removesuffix(";\n"))
    parts = []
    for name in described["files"]:
        script = (place / name).read_text("ascii")
        _, base, _ = script.split('"')
        parts.append(base64.b64decode(base))
    return Read(described["card"], b"".join(parts), described["files"])


def _files(model: BrowserModel, about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of all files and their contents."""
    names = []
    for number, start in enumerate(range(0, len(model.data), _PART)):
        name = f"weights-{number + 1:03}.js"
        part = base64.b64encode(model.data[start : start + _PART]).decode()
        names.append(name)
        yield name, f'weftWeights({number}, "{part}");\n'
    described = {**about, "card": model.card, "files": names, "size": len(model.data)}
    yield MODEL, f"{_BEGUN}{_json(described)};\n"
    yield ENGINE, engine_source()
    yield "page.js", asset("web/words.js") + asset("web/web.js")
    style = asset("base.css") + asset("web/web.css")
    # scripts are files beside the page, which alone may start a worker, by a blob
    policy = (
        f"default-src 'none'; style-src '{fingerprint(style)}'; script-src 'self'; worker-src blob:; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = asset("web/index.html").replace("{{policy}}", policy)
    yield PAGE, page.replace("{{style}}", style)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _about(task: Task[Any, Any]) -> dict[str, str]:
    """Say in English and Chinese what the model is."""
    portrait = task.portrait()
    return {"en": f"{portrait.shape}.", "zh": _in_chinese(portrait)}


def _in_chinese(portrait: Portrait) -> str:
    sizes = portrait.sizes
    kinds = {
        "transformer": "Transformer",
        "causal": "因果 Transformer",
        "encoder": "Transformer 编码器",
        "mean": "词元与 n 元组的均值",
        "encoder-mean": "Transformer 编码器与 n 元组的均值",
    }
    parts = []
    if sizes.get("layers"):
        parts.append(f"{sizes['layers']} 层")
    parts.append(f"宽度 {sizes['width']}")
    if sizes.get("heads"):
        parts.append(f"{sizes['heads']} 个头")
    return f"{kinds[str(sizes['kind'])]}（{'，'.join(parts)}）。"
