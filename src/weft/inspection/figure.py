"""The look and the fonts of all pictures, and how they are written.

Needs matplotlib (the extra `plot`), so it is imported only where a picture is asked for. Figures
are made and written without pyplot: no window, no state, the same file each time.
"""

import io
import warnings
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import (
    FontProperties,
    findSystemFonts,
    fontManager,
    get_font,
)
from matplotlib.text import Text

from weft.folder import durable
from weft.inspection.suffixes import PICTURES, refuse_other_suffixes

# Lines that colour-blind eyes tell apart (Okabe and Ito 2008), and on a grey print dashes and
# markers do.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
# A hue is a role, as in the page of an inspection.
ROLES = {"source": "#23488c", "target": "#b4540a", "given": "#6e6e6e"}
SHADES = "magma_r"  # perceptually uniform, and zero is pale, so that a print saves ink
FAINT = "#d9d9d9"
PIXELS = 40_000_000  # of a picture, at most

# On top of matplotlib's defaults, whatever its user has set up; `$` in a text is a dollar.
_LOOK = {
    "figure.dpi": 150,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],  # which comes with matplotlib
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.edgecolor": "none",
    "legend.framealpha": 1.0,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "weft",
}
_NAMED = {"<bos>": "start", "<eos>": "end"}
_SIGNS = {"▁": "␣", "\r\n": "↵", "\n": "↵", "\r": "↵", "\t": "⇥"}
LONGEST_LABEL = 24  # characters of a name or a piece in a picture
styled = style.context(["default", _LOOK])  # decorates whatever draws

# What the families begin with that may draw what the first font lacks, the best first.
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK",
    "Source Han Sans",
    "Noto Sans SC",
    "PingFang",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi",
    "SimHei",
    "SimSun",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Noto Sans",
)


def count_steps(axes: Axes) -> None:
    """Label the axis of a picture over steps."""
    axes.set_xlabel("step")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def color_of(place: int) -> str:
    """Return the colour of the line at a place, from 0."""
    return COLORS[place % len(COLORS)]


def ramp(role: str) -> LinearSegmentedColormap:
    """Return the colours of amounts from 0 to 1: white to the hue of a role."""
    return LinearSegmentedColormap.from_list(role, ["#ffffff", ROLES[role]])


def piece_label(piece: str) -> str:
    """Return a piece of a vocabulary in one short line: without the mark of the space before it,
    and with signs for what has no shape.
    """
    if piece in _NAMED:
        return _NAMED[piece]
    begins = piece.startswith("▁") and len(piece) > 1
    shown = piece.removeprefix("▁") if begins else piece
    for character, sign in _SIGNS.items():
        shown = shown.replace(character, sign)
    return short_label(shown)


def short_label(text: str) -> str:
    """Return a piece or name in one short line; what has no shape is written as its number."""
    shown = "".join(map(_visible, text))
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}…"


def _visible(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def short_path(path: Path) -> str:
    """Return the end of a path, which tells runs apart; matplotlib hides a name that begins with an
    underscore.
    """
    name = str(Path(*map(short_label, path.parts[-3:])))
    return f"./{name}" if name.startswith("_") else name


def write_figure(figure: Figure, path: Path) -> str:
    """Write a .png or .svg, whole or not at all; returns the characters that no installed font
    could draw.

    An SVG holds its texts as texts, and is drawn with the fonts of whoever looks at it: there none
    is missing. Raises UsageError for another suffix, FolderError where it cannot be written.
    """
    refuse_other_suffixes(path, PICTURES)
    kind = path.suffix.lower().removeprefix(".")
    content, missing = rendered(figure, kind)
    durable.write_bytes(path, content)
    return missing if kind == "png" else ""


@styled
def rendered(figure: Figure, kind: str) -> tuple[bytes, str]:
    """Return a figure as "png" or "svg", and the characters that no installed font draws."""
    metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[kind]
    content = io.BytesIO()
    with warnings.catch_warnings():
        # we say it ourselves, in one line
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # the page grows instead
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        missing = _give_fonts(figure)
        figure.savefig(
            content,
            format=kind,
            metadata=metadata,
            bbox_inches="tight",
            pad_inches=0.12,
        )
    return content.getvalue(), missing


def _give_fonts(figure: Figure) -> str:
    """Let installed fonts draw what the first one lacks; returns the characters that are in none of
    them.
    """
    figure.draw_without_rendering()  # some labels are only made by it
    texts = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    lacking = {
        c for text in texts for c in text.get_text() if not c.isspace()
    } - _characters("sans-serif")
    if not lacking:
        return ""
    families, missing = _fallbacks(lacking)
    if missing:
        _list_new_fonts()
        families, missing = _fallbacks(lacking)
    for text in texts:
        if lacking & set(text.get_text()):
            text.set_fontfamily(["sans-serif", *families])
    return "".join(sorted(missing))


def _fallbacks(lacking: set[str]) -> tuple[list[str], set[str]]:
    """Choose families that draw the lacking characters between them; also what even they lack."""
    installed = sorted({font.name for font in fontManager.ttflist})
    chosen: list[str] = []
    families = [
        name for start in _FALLBACKS for name in installed if name.startswith(start)
    ]
    for family in dict.fromkeys(families):
        if not lacking:
            break
        characters = _characters(family)
        if lacking & characters:
            chosen.append(family)
            lacking = lacking - characters
    return chosen, lacking


def _characters(family: str) -> set[str]:
    """Return the characters that a family's font has a glyph for."""
    path = fontManager.findfont(FontProperties(family=[family]))
    return {chr(code) for code in get_font(path).get_charmap()}


def _list_new_fonts() -> None:
    """Add the fonts that were installed after matplotlib had made its list."""
    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            try:
                fontManager.addfont(path)
            # a damaged font, or of a kind that cannot be drawn
            except (OSError, RuntimeError, ValueError):
                continue
