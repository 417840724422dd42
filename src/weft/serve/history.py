"""The training of the server's models: their scores, curves and, if asked for, samples."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from weft.folder.layout import RunFolder
from weft.folder.model_files import read_card
from weft.serve.catalogue import Catalogue
from weft.serve.refusals import UnknownModel

Row = dict[str, Any]

_MOST_POINTS = 200  # of a curve
_MOST_SAMPLES = 3  # sentences whose samples are shown
_MOST_STEPS = 8  # of a sentence
_MOST_BYTES = 16 * 2**20  # of a log
_CURVES = ("loss", "dev_loss")


def history_route(catalogue: Catalogue, show_samples: bool) -> Route:
    """Return the route `GET /v1/history/MODEL`."""

    async def history(request: Request) -> Response:
        name = request.path_params["model"]
        model = catalogue.models.get(name)
        if model is None:
            raise UnknownModel(name)
        found = await asyncio.to_thread(history_of, model.folder, show_samples)
        return JSONResponse(found)

    return Route("/v1/history/{model:path}", history, methods=["GET"])


def history_of(folder: Path, show_samples: bool) -> Row:
    """Return what a model's folder says of its training.

    `rows` are points of its curves, empty where the folder has no run; `scores` and `good_for` are
    lines of its model card. `verdict` is the word that the latter begin with, `figures` are the
    numbers behind it, where the run has them.
    """
    run = RunFolder(folder)
    card = read_card(folder)
    rows = list(_rows(run.metrics))
    end = _object_of(run.verdict)
    good_for = _section(card, "What it is good for")
    found: Row = {
        "rows": _thinned(rows),
        "best": _best_step(end),
        "scores": _section(card, "Scores on test"),
        "good_for": good_for,
        "verdict": good_for[0].partition(":")[0] if good_for else "",
        "figures": _figures(end),
    }
    if show_samples:
        found["samples"] = _samples(run.samples)
    return found


def _samples(path: Path) -> list[Row]:
    """Return the first texts that a run tried its model on, and what they became step by step."""
    became: dict[str, list[Row]] = {}
    for row in _rows(path):
        src, tgt = _made_of(row)
        given = row.get(src)
        made = row.get(tgt)
        if isinstance(given, str) and isinstance(made, str):
            steps = became.setdefault(given, [])
            steps.append({"step": row["step"], "text": made})
    shown = list(became.items())[:_MOST_SAMPLES]
    return [{"text": text, "steps": _evenly(steps)} for text, steps in shown]


def _made_of(row: Row) -> tuple[str, str]:
    """Return the names of what was given and what became of it."""
    return ("src", "translation") if "src" in row else ("prompt", "text")


def _evenly(steps: list[Row]) -> list[Row]:
    """Return some of the steps, the last one always."""
    stride = -(-len(steps) // _MOST_STEPS)
    latest = steps[::-1][::stride]
    return latest[::-1]


def _text_of(path: Path) -> str:
    """Return the text of a file, or none where it cannot be read or is no small file."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a log; a line that is no object, as the last of a killed run, is left
    out.
    """
    for line in _text_of(path).split("\n"):
        try:
            row = json.loads(line, parse_constant=_no_number)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if isinstance(row.get("step"), int):
            yield row


def _no_number(name: str) -> float:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def _thinned(rows: Sequence[Row]) -> list[Row]:
    """Return the points of the curves: evenly fewer where there are many, the last one always."""
    points = [_point(row) for row in rows]
    for key in _CURVES:
        places = [i for i, point in enumerate(points) if key in point]
        stride = -(-len(places) // _MOST_POINTS) or 1
        kept = places[::-1][::stride]
        left_out = set(places) - set(kept)
        points = [point for i, point in enumerate(points) if i not in left_out]
    return [point for point in points if len(point) > 1]


def _point(row: Row) -> Row:
    return {key: row[key] for key in ("step", *_CURVES) if key in row}


def _object_of(path: Path) -> Row:
    """Return the object of a file of JSON; an empty one where there is none."""
    try:
        found = json.loads(_text_of(path) or "{}", parse_constant=_no_number)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _best_step(end: Row) -> int | None:
    """Return the step whose weights the model has."""
    step = end.get("best_step")
    return step if isinstance(step, int) else None


def _figures(end: Row) -> Row:
    """Return the numbers behind the verdict of a run."""
    judgement = end.get("judgement")
    figures = judgement.get("figures") if isinstance(judgement, dict) else None
    if not isinstance(figures, dict):
        return {}
    return {name: value for name, value in figures.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _section(card: str, title: str) -> list[str]:
    """Return the lines of a section of a model card, without their marks."""
    section = rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)"
    found = re.search(section, card, re.M | re.S)
    lines = found[1].split("\n") if found else []
    return [re.sub(r"^(- |    )", "", line) for line in lines if line.strip()]
