"""What a model did with one text, to be printed: attention by layer, or what each token adds to a
label.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from weft.data.languages import UNKNOWN
from weft.inspection.classification import ClassificationInspection
from weft.inspection.figure import PIXELS, SHADES, color_of, short_label, styled
from weft.inspection.language import LanguageInspection
from weft.inspection.look import Inspection


def draw_inspection(inspection: Inspection) -> Figure:
    """What the decoder looks at in the source, what a language model looks back at, or a
    classifier's reasons.
    """
    if isinstance(inspection, ClassificationInspection):
        return draw_contributions(inspection)
    if isinstance(inspection, LanguageInspection):
        title = f"What {_side('the model', inspection.lang)} attends to after reading each token"
        return draw_maps(
            inspection.decoder, inspection.pieces, inspection.pieces, title
        )
    looker, seen = (
        _side("target token", inspection.tgt_lang),
        _side("source", inspection.src_lang),
    )
    title = f"What each {looker} attends to in the {seen}"
    return draw_maps(
        inspection.cross, inspection.src_pieces, inspection.tgt_pieces, title
    )


@styled
def draw_maps(
    maps: Float[Tensor, "layers H T S"],
    keys: Sequence[str],
    queries: Sequence[str],
    title: str,
) -> Figure:
    """Return the mean of the heads of each layer, or its only head, a panel a layer."""
    means, several = maps.mean(1).numpy(), maps.shape[1] > 1
    src, tgt = ([short_label(piece) for piece in pieces] for pieces in (keys, queries))
    figure, panels = _page(len(means), src, tgt)
    for layer, (panel, weights) in enumerate(zip(panels, means, strict=True), start=1):
        image = panel.imshow(
            weights, cmap=SHADES, vmin=0, vmax=means.max(), interpolation="nearest"
        )
        panel.set_title(f"Layer {layer}" if len(means) > 1 else "")
        panel.set_xticks(range(len(src)), src, rotation=90)
        panel.set_yticks(range(len(tgt)), tgt)
        panel.tick_params(labelsize=9 * _cell(src, tgt) / WIDEST, length=0)
        panel.spines[:].set_visible(False)
    figure.colorbar(image, ax=panels, label="attention weight", shrink=0.6, aspect=30)
    figure.suptitle(f"{title}: the mean of the heads" if several else title)
    return figure


@styled
def draw_contributions(inspection: ClassificationInspection) -> Figure:
    """What each token adds to the most probable label, by gradient times vector and by leaving it
    out.
    """
    found, names = (
        inspection.contributions[0],
        [short_label(piece) for piece in inspection.pieces],
    )
    figure = Figure(
        figsize=(7.2, max(2.4, 0.24 * len(names) + 1.2)), layout="compressed"
    )
    panel, places = figure.subplots(), np.arange(len(names))
    for i, (values, how) in enumerate(
        [(found.gradient, "gradient x vector"), (found.left_out, "left out")]
    ):
        panel.barh(
            places + 0.4 * i - 0.2, values, height=0.36, color=color_of(i), label=how
        )
    panel.axvline(0, color="0.5", linewidth=0.8)
    panel.set_yticks(places, names)
    panel.invert_yaxis()
    panel.set_xlabel(f"added to the log-probability of {short_label(found.label)}")
    panel.legend()
    figure.suptitle(f"{short_label(found.label)}: {inspection.probabilities[0]:.0%}")
    return figure


def _side(name: str, lang: str) -> str:
    return name if lang == UNKNOWN else f"{name} ({lang})"


WIDEST, NARROWEST = 0.21, 0.12  # inches that a token takes
PAGE = 11.0  # inches across


def _cell(src: Sequence[str], tgt: Sequence[str]) -> float:
    """Inches a token: fewer where there are many, so that a panel fits a page, but never too few to
    read.
    """
    return min(WIDEST, max(NARROWEST, 0.9 * PAGE / max(len(src), len(tgt))))


def _page(
    layers: int, src: Sequence[str], tgt: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel a layer, each as large as its tokens need, side by side as far as a
    page is wide.
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
