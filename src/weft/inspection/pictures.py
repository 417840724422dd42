"""Pictures of a model at work on a text: attention by layer, or what each token adds to a label."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import NDArray

from weft.data.languages import UNKNOWN
from weft.engine.weights import Floats
from weft.errors import UsageError
from weft.inspection.classification import ClassificationInspection
from weft.inspection.figure import (
    PIXELS,
    ROLES,
    piece_label,
    ramp,
    short_label,
    styled,
)
from weft.inspection.language import LanguageInspection
from weft.inspection.look import Inspection
from weft.predict.flatness import is_flat_map


def draw_inspection(inspection: Inspection) -> Figure:
    """Draw a translator's cross-attention, a language model's attention or a classifier's
    contributions.
    """
    if isinstance(inspection, ClassificationInspection):
        return draw_contributions(inspection)
    if isinstance(inspection, LanguageInspection):
        title = f"What {_side('the model', inspection.lang)} attends to after reading each token"
        pieces = [
            "<bos>",
            *inspection.pieces[1:],
        ]  # its start, whatever the model calls it
        return draw_maps(inspection.decoder, pieces, pieces, title, is_causal=True)
    query = _side("target token", inspection.tgt_lang)
    source = _side("source", inspection.src_lang)
    title = f"What each {query} attends to in the {source}"
    keys = inspection.src_pieces
    queries = inspection.tgt_pieces
    return draw_maps(inspection.cross, keys, queries, title)


@styled
def draw_maps(
    maps: Floats,
    keys: Sequence[str],
    queries: Sequence[str],
    title: str,
    is_causal: bool = False,
) -> Figure:
    """Return the mean of the heads of each layer, or its only head, a panel a layer; the maps are
    of shape (layers, H, T, S).

    Depth grows with the root of a weight, up to 1, whatever the largest is. Cells that a causal
    query cannot see are hatched, and so is a layer whose heads are all flat.

    Raises UsageError where there is no layer or no head.
    """
    if not maps.size:
        raise UsageError(
            "there is no such layer or head to draw; a classifier that is a bag of n-grams has none, "
            "one of --recipe classify-modern has"
        )
    means = maps.mean(1)
    num_heads = maps.shape[1]
    src = [piece_label(piece) for piece in keys]
    tgt = [piece_label(piece) for piece in queries]
    figure, panels = _page(len(means), src, tgt)
    label_size = 9 * _cell(src, tgt) / WIDEST
    shades: dict[str, Any] = {"cmap": ramp("source"), "norm": PowerNorm(0.5, 0, 1)}
    for layer, panel in enumerate(panels):
        image = panel.imshow(means[layer], interpolation="nearest", **shades)
        panel.set_title(_panel_title(maps, layer, is_causal))
        panel.set_xticks(range(len(src)), src, rotation=90)
        panel.set_yticks(range(len(tgt)), tgt)
        panel.tick_params(labelsize=label_size, length=0)
        panel.spines[:].set_visible(False)
        if is_causal:
            _hatch(panel, _future(len(tgt)))
        if _flat_heads(maps[layer], is_causal) == num_heads:
            _hatch(panel, _whole(len(tgt), len(src)))
    figure.colorbar(image, ax=panels, label="attention weight", shrink=0.6, aspect=30)
    if num_heads > 1:
        title = f"{title}: the mean of the heads"
    figure.suptitle(title)
    return figure


def _panel_title(maps: Floats, layer: int, is_causal: bool) -> str:
    """Name a layer, where there are several, and say how many of its heads are flat."""
    heads = maps[layer]
    count = _flat_heads(heads, is_causal)
    named = f"Layer {layer + 1}" if len(maps) > 1 else ""
    if not count:
        return named
    said = "flat" if count == len(heads) else f"{count} of {len(heads)} heads flat"
    return f"{named}: {said}" if named else said


def _flat_heads(heads: Floats, is_causal: bool) -> int:
    """Count the heads (H, T, S) that look at everything alike."""
    _, num_queries, num_keys = heads.shape
    visible = (
        np.arange(1, num_queries + 1) if is_causal else np.full(num_queries, num_keys)
    )
    return int(is_flat_map(heads, visible).sum())


def _hatch(panel: Axes, corners: NDArray[np.float64]) -> None:
    """Draw hatches inside of the corners (N, 2)."""
    panel.add_patch(
        Polygon(
            corners, fill=False, hatch="////", linewidth=0, edgecolor=ROLES["given"]
        )
    )


def _future(length: int) -> NDArray[np.float64]:
    """Return the corners of the cells above the diagonal, stair by stair."""
    stairs = [(place + end, place) for place in range(length) for end in (0, 1)]
    top = [(length, 0.0)]
    corners = np.array([*stairs[1:], *top], np.float64)
    return corners - 0.5


def _whole(num_queries: int, num_keys: int) -> NDArray[np.float64]:
    """Return the corners of a map."""
    corners = [(0, 0), (num_keys, 0), (num_keys, num_queries), (0, num_queries)]
    return np.array(corners, np.float64) - 0.5


@styled
def draw_contributions(inspection: ClassificationInspection) -> Figure:
    """Draw what each token adds to the most probable label, by gradient times vector and by leaving
    it out.
    """
    shown = inspection.contributions[0]
    label = short_label(shown.label)
    names = [piece_label(piece) for piece in inspection.pieces]
    height = max(2.4, 0.24 * len(names) + 1.2)
    figure = Figure(figsize=(7.2, height), layout="compressed")
    panel = figure.subplots()
    places = np.arange(len(names))
    above = places - 0.2
    below = places + 0.2
    panel.barh(
        above, shown.gradient, 0.36, color=ROLES["source"], label="gradient x vector"
    )
    panel.barh(below, shown.left_out, 0.36, color=ROLES["given"], label="left out")
    panel.axvline(0, color="0.5", linewidth=0.8)
    panel.set_yticks(places, names)
    panel.invert_yaxis()
    panel.set_xlabel(f"added to the log-probability of {label}")
    panel.legend()
    figure.suptitle(f"{label}: {inspection.probabilities[0]:.0%}")
    return figure


def _side(name: str, lang: str) -> str:
    return name if lang == UNKNOWN else f"{name} ({lang})"


WIDEST, NARROWEST = 0.21, 0.12  # inches that a token takes
PAGE = 11.0  # inches across


def _cell(src: Sequence[str], tgt: Sequence[str]) -> float:
    """Return the inches that a token takes.

    They are fewer where there are many tokens, so that a panel fits a page, but never too few to
    read.
    """
    most = max(len(src), len(tgt))
    return min(WIDEST, max(NARROWEST, 0.9 * PAGE / most))


def _page(
    layers: int, src: Sequence[str], tgt: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """Make a figure with a panel a layer, each as large as its tokens need.

    They stand side by side as far as a page is wide.
    """
    cell = _cell(src, tgt)
    # a letter of a label is at most so wide
    width = cell * (len(src) + 0.6 * max(map(len, tgt))) + 0.3
    height = cell * (len(tgt) + 0.6 * max(map(len, src))) + 0.6
    rows = math.ceil(layers / max(1, int(PAGE / width)))
    columns = math.ceil(layers / rows)
    size = (max(columns * width + 1.2, 7.2), max(rows * height + 0.6, 2.4))
    dpi = min(150.0, (PIXELS / (size[0] * size[1])) ** 0.5)
    figure = Figure(figsize=size, dpi=dpi, layout="compressed")
    panels = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for panel in panels[layers:]:
        panel.remove()
    return figure, panels[:layers]
