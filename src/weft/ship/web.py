"""A folder for a static web host or a USB stick: a page that computes with a model by itself.

Its weights are in files of their own, as scripts: a page that is opened as a file may load these,
and nothing else.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import UsageError
from weft.folder import durable
from weft.inspection.assets import asset, fingerprint
from weft.inspection.browser import (
    BrowserModel,
    browser_model,
    engine_source,
    refuse_no_browser,
)
from weft.tasks.opening import load_task
from weft.tasks.task import Portrait, Task

# weights; a browser needs six bytes for each, and holds arrays of a gigabyte
MOST_WEIGHTS = 250_000_000
_PART = 6 * 2**20  # bytes of weights in a file, of which base64 makes a third more
PAGE = "index.html"


@dataclass(frozen=True)
class Exported:
    """The size of an export: its weights, and the bytes of all files."""

    weights: int
    size: int


def export_web(
    folder: Path, output: Path, title: str = "", licence: str = ""
) -> Exported:
    """Write `output`, a folder with a page for translating, generating or classifying with the
    model in `folder`.

    `title` stands in the place of the page's own, `licence` is said at its end. Raises UsageError
    for a model that no browser computes, FolderError where the output exists.
    """
    refuse_no_browser(folder)
    return write_web(load_task(folder), output, title, licence)


def write_web(
    task: Task[Any, Any], output: Path, title: str = "", licence: str = ""
) -> Exported:
    """Write the page of a model that is loaded. Raises as `export_web`."""
    model = browser_model(task)
    if model.count > MOST_WEIGHTS:
        raise UsageError(
            f"the model has {model.count:,} weights, more than a browser holds ({MOST_WEIGHTS:,}); "
            "train a smaller one (model.d_model, model.ngram_buckets), or use weft serve"
        )
    about = {"title": title, "about": _about(task), "licence": licence}
    facts = {"format": "weft-web", "version": 1, "task": task.name}
    with durable.writing_folder(output, facts) as place:
        size = 0
        for name, text in _files(model, about):
            content = text.encode("utf-8")
            size += len(content)
            (place / name).write_bytes(content)
    return Exported(model.count, size)


def _files(model: BrowserModel, about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of all files and their contents."""
    names = []
    for number, start in enumerate(range(0, len(model.data), _PART)):
        name = f"weights-{number + 1:03}.js"
        part = base64.b64encode(model.data[start : start + _PART]).decode()
        names.append(name)
        yield name, f'weftWeights({number}, "{part}");\n'
    described = {**about, "card": model.card, "files": names, "size": len(model.data)}
    yield "model.js", f"const weftModel = {_json(described)};\n"
    yield "engine.js", engine_source()
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
