"""Pictures as `weft.plot` gives them: the figure, the numbers in it, and how it shows itself.

Needs matplotlib (the extra `plot`).
"""

import base64
import math
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from weft.inspection.figure import rendered, write_figure
from weft.inspection.shown import Shown

_COLORBAR = "<colorbar>"  # the label that matplotlib gives to the axes of one


class Picture(Shown):
    """A picture of Weft's: `figure` is matplotlib's, `what` its name.

    In a notebook it shows itself, as an SVG.
    """

    def __init__(self, what: str, figure: Figure) -> None:
        self.what = what
        self.figure = figure

    def save(self, path: str | Path) -> None:
        """Write it as .png or .svg, whole or not at all.

        Raises UsageError for another suffix, FolderError where it cannot be written.
        """
        write_figure(self.figure, Path(path))

    def lines(self) -> list[str]:
        """Return its name, and a line on each of its panels."""
        return [f"picture: {self.what}", *(f"  {title}" for title in self._titles())]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that are drawn, by panel: `lines` with their x and y, `images` as
        rows, `bars` by their lengths.

        A number that is not finite is None.
        """
        panels = [_numbers_of(axes) for axes in self._panels()]
        return {"what": self.what, "panels": panels}

    def _repr_html_(self) -> str:
        content, _ = rendered(self.figure, "svg")
        coded = base64.b64encode(content).decode("ascii")
        alt = escape("; ".join([self.what, *self._titles()]), quote=True)
        source = f"data:image/svg+xml;base64,{coded}"
        return f'<img alt="{alt}" style="max-width: 100%" src="{source}">'

    def _panels(self) -> list[Axes]:
        axes = self.figure.get_axes()
        return [panel for panel in axes if panel.get_label() != _COLORBAR]

    def _titles(self) -> Iterator[str]:
        if above := self.figure.get_suptitle():
            yield above
        for panel in self._panels():
            if title := panel.get_title() or panel.get_title(loc="left"):
                yield title


def _numbers_of(axes: Axes) -> dict[str, Any]:
    lines = [
        {
            "label": str(line.get_label()),
            "x": _plain(line.get_xdata()),
            "y": _plain(line.get_ydata()),
        }
        for line in axes.get_lines()
    ]
    images = [_plain(image.get_array()) for image in axes.get_images()]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    return {
        "title": axes.get_title() or axes.get_title(loc="left"),
        "x": axes.get_xlabel(),
        "y": axes.get_ylabel(),
        "lines": lines,
        "images": images,
        "bars": [_plain(bar.get_width()) for bar in bars],
    }


def _plain(values: Any) -> Any:
    """Return numbers as lists that JSON can hold."""
    return _finite(np.asarray(values).tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(each) for each in value]
    is_lost = isinstance(value, float) and not math.isfinite(value)
    return None if is_lost else value
