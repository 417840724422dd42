"""A page whose model is inside of it: it computes by itself what `weft inspect` shows.

The weights are rounded to 16 bits. What Weft computes with them in float32 is kept in the page,
which computes it again and says how far apart the two are; what the rounding itself changes is
measured here.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.tokenizer import BOS_ID
from weft.engine.labels import label_pass, label_shares
from weft.engine.stream import Pass, language_pass, lens, shares, translation_pass
from weft.errors import UsageError
from weft.folder.layout import RunFolder
from weft.inspection.assets import (
    SCRIPTS,
    STYLES,
    asset,
    bare,
    bare_style,
    fingerprint,
    packed,
)
from weft.inspection.browser import (
    BrowserModel,
    browser_model,
    engine_source,
    rounded_task,
)
from weft.inspection.look import inspect_text
from weft.inspection.packing import packed as packed_data
from weft.inspection.tokens import USUAL
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

# The page is one file, 2.7 MB for each million, and computes all pictures anew while one types:
# with 4 million in half a second.
MOST_WEIGHTS = 10_000_000
_SENTENCES = 50  # on which the rounding is tried
_NEW_TOKENS = 30  # of a language model's text on which it is
_CHOICES = 50
_NO_BUDGET = 2**40  # bytes of an inspection beside those of a model
# what no text changes
_CONSTANT = (
    "format",
    "version",
    "task",
    "family",
    "src_lang",
    "tgt_lang",
    "lang",
    "ngrams",
    "model",
)
_UNSAFE = re.compile("[<>&\u2028\u2029]")


@dataclass(frozen=True)
class Rounding:
    """The effect of rounding the weights: by how much a `logit` of the text changes at most, and
    how many of `count` sentences have another answer.
    """

    logit: float
    count: int
    changed: int

    def answers(self) -> str:
        """Say how many sentences have another answer."""
        if self.count == 1:
            return f"and its answer {'is another one' if self.changed else 'stays the same'}"
        has = "has" if self.changed == 1 else "have"
        return f"of {self.count:,} sentences {self.changed:,} {has} another answer"


@dataclass(frozen=True)
class LivePage:
    """A page, and what its writer is told of it."""

    html: str
    weights: int
    rounding: Rounding
    notes: list[str]


def live_page(
    task: Task[Any, Any], folder: Path, text: str, beam_size: int | None = None
) -> LivePage:
    """Return the page of a model, which shows this text at first.

    Raises UsageError for a model that no browser computes, or of more than MOST_WEIGHTS weights.
    """
    model = browser_model(task)
    if model.count > MOST_WEIGHTS:
        raise UsageError(
            f"the model has {model.count:,} weights, and a page with a model inside holds {MOST_WEIGHTS:,}: "
            "leave out --live, or use weft export --to web for a folder without the pictures"
        )
    rounded = rounded_task(task)
    inspection = inspect_text(rounded, text, beam_size=beam_size)
    data = inspection.to_data()
    measured = measure_rounding(task, rounded, data, folder)
    numbers = recorded_numbers(rounded, data)
    size = None
    if isinstance(task, Translation):
        size = beam_size or task.config.decoding.beam_size
    settings = {
        "card": model.card,
        "asked": {"limits": {"tokens": USUAL.tokens, "tgt_tokens": USUAL.tgt_tokens}},
        "constant": {key: data[key] for key in _CONSTANT if key in data},
        "beamSize": size,
        "proof": {"text": text, "beamSize": size, "numbers": numbers},
        "rounding": asdict(measured),
    }
    html = _page(data, settings, model)
    return LivePage(html, model.count, measured, inspection.notes)


# The proof
# --------------------------------------------------------------------------------------


def recorded_numbers(task: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Compute by the plain pass what a browser is to compute too, in float32, by the paths that the
    numbers have in the data of an inspection.
    """
    found = dict(_numbers(task, data))
    return {path: _packed(np.asarray(array)) for path, array in found.items()}


def _numbers(task: Any, data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(task, Classification):
        yield from _numbers_of_labels(task, data)
        return
    passed, written = _passed(task, data)
    best = -np.sort(-passed.logits, axis=-1)
    kept = min(_CHOICES, best.shape[1] - 1)
    yield "choices.logits", best[:, :kept]
    yield "lens.written", lens(passed, written).written
    yield "shares.values", shares(passed, written).values
    for kind in ("encoder", "decoder", "cross"):
        maps = getattr(passed.record, kind)
        if maps:
            yield f"attention.{kind}", np.stack([layer[0] for layer in maps])


def _passed(task: Any, data: dict[str, Any]) -> tuple[Pass, list[int]]:
    """Return the pass over an inspection's text, and the tokens that it wrote."""
    if isinstance(task, Translation):
        assert task.weights is not None
        written = data["target"]["ids"]
        read = [BOS_ID, *written[:-1]]
        passed = translation_pass(task.weights, data["source"]["ids"], read)
        return passed, written
    assert isinstance(task, LanguageModelling)
    assert task.weights is not None
    ids = data["tokens"]["ids"]
    passed = language_pass(task.weights, ids)
    return passed, [*ids[1:], int(passed.logits[-1].argmax())]


def _numbers_of_labels(
    task: Classification, data: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    assert task.weights is not None
    config = task.config
    passed = label_pass(task.weights, data["tokens"]["ids"], config.multi_label)
    order = [config.labels.index(each["label"]) for each in data["labels"]]
    found = label_shares(passed, order[: USUAL.labels])
    yield "shares.values", found.values
    yield "shares.logit", found.logit
    if passed.record.encoder:
        yield "attention.encoder", np.stack([m[0] for m in passed.record.encoder])


def _packed(array: Any) -> dict[str, Any]:
    content = array.astype("<f4").tobytes()
    return {
        "shape": list(array.shape),
        "dtype": "float32",
        "data": base64.b64encode(content).decode("ascii"),
    }


# The rounding
# --------------------------------------------------------------------------------------


def measure_rounding(
    task: Any, rounded: Any, data: dict[str, Any], folder: Path
) -> Rounding:
    """Measure what the rounding changes: the logits of an inspection's text, and the answers to
    sentences of the run, if it kept any, and to this text.
    """
    logits = [_logits(each, data) for each in (task, rounded)]
    largest = float(np.abs(logits[0] - logits[1]).max())
    texts = list(dict.fromkeys([data["text"], *_sentences(folder)]))
    pairs = zip(_answers(task, texts), _answers(rounded, texts), strict=True)
    changed = sum(before != after for before, after in pairs)
    return Rounding(largest, len(texts), changed)


def _logits(task: Any, data: dict[str, Any]) -> Any:
    if isinstance(task, Classification):
        ids = data["tokens"]["ids"]
        assert task.weights is not None
        return label_pass(task.weights, ids, task.config.multi_label).logits
    return _passed(task, data)[0].logits


def _answers(task: Any, texts: list[str]) -> list[str]:
    """Return what the model makes of each text; of a language model a greedy text."""
    used = task.predictor()
    if isinstance(task, Translation):
        return [answer.text for answer in used.translate(texts)]
    if isinstance(task, Classification):
        return [answer.label for answer in used.classify(texts)]
    greedy = {"temperature": 0.0, "max_new_tokens": _NEW_TOKENS}
    return [used.generate(text, **greedy).text for text in texts]


def _sentences(folder: Path) -> list[str]:
    """Return different sentences that the run tried its model on, if it has kept them."""
    path = RunFolder(folder).samples
    if not path.is_file():
        return []
    found: dict[str, None] = {}
    for line in path.read_text("utf-8").split("\n"):
        try:
            row = json.loads(line) if line.strip() else {}
        except ValueError:
            continue
        text = row.get("src") or row.get("text" if "label" in row else "prompt")
        if isinstance(text, str) and text.strip():
            found[text] = None
    return list(found)[:_SENTENCES]


# The page
# --------------------------------------------------------------------------------------


def _page(data: dict[str, Any], settings: dict[str, Any], model: BrowserModel) -> str:
    """Return the page; only its style and its script, known by their hashes, may act in it, and a
    worker that is made of the same script.
    """
    style = bare_style(*STYLES, "live/live.css")
    parts = [*map(asset, SCRIPTS), engine_source(), asset("live/live.js")]
    script = bare("".join(parts))
    loader = bare(asset("unpack.js"))
    filled = {
        "policy": f"default-src 'none'; style-src '{fingerprint(style)}'; "
        f"script-src '{fingerprint(loader)}' '{fingerprint(script)}'; worker-src blob:; "
        "base-uri 'none'; form-action 'none'",
        "packed": packed(style, script),
        "script": loader,
        "data": packed(_json(packed_data(data, _NO_BUDGET))),
    }
    blocks = (
        f'<script type="application/json" id="live-settings">{_json(settings)}</script>\n'
        f'<script type="text/plain" id="weights">{base64.b64encode(model.data).decode()}</script>\n'
    )
    template = asset("inspect.html").replace("<script>{{", f"{blocks}<script>{{{{")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], template)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
