"""An inspection for Python and notebooks: all that a model did with a text, as named arrays; and
several of them, as one sequence.

The numbers are those of the page and of docs/inspection.md, none of them rounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from weft.inspection import look
from weft.inspection.named import Group, Named
from weft.inspection.packing import plain
from weft.inspection.report import page_of, write_report
from weft.inspection.several import Kind, Several
from weft.inspection.shown import Shown
from weft.inspection.suffixes import (
    ALIGNMENTS,
    FORMATS,
    PICTURES,
    refuse_other_suffixes,
)
from weft.inspection.summary import summary, summary_of
from weft.packages import require_matplotlib

if TYPE_CHECKING:
    from weft.inspection.drawn import Picture

_WRITTEN = ("part", "target")
_MAP = ("layer", "head", "query", "key")
_CROSS = ("layer", "head", "target", "source")
# The axes of the arrays, by their place in the data. Tokens of a translation are "target", with the
# end, or "source"; a text's own are "token".
_AXES: Mapping[str, tuple[str, ...]] = {
    "attention.cross": _CROSS,
    "attention.encoder": _MAP,
    "attention.decoder": _MAP,
    "lens.ids": (*_WRITTEN, "rank"),
    "lens.probabilities": (*_WRITTEN, "rank"),
    "lens.written": _WRITTEN,
    "shares.values": _WRITTEN,
    "shares.logit": ("target",),
    "shares.source": ("target",),
    "shares.written.cross": _CROSS,
    "shares.written.decoder": _MAP,
    "choices.ids": ("target", "rank"),
    "choices.logits": ("target", "rank"),
    "choices.rest": ("target",),
    "choices.rests": ("target", "temperature"),
    "states.encoder": ("source", "number"),
    "states.decoder": ("target", "number"),
}
_AXES_OF_LABELS: Mapping[str, tuple[str, ...]] = {
    "attention.encoder": _MAP,
    "lens.probabilities": ("part", "label"),
    "shares.values": ("label", "part"),
    "shares.logit": ("label",),
    "shares.places": ("label", "token"),
    "shares.tokens": ("label", "token"),
    "shares.written.encoder": _MAP,
}
_LOOK = ("layer", "query", "head", "number")
_KEY = ("layer", "key", "head", "number")
_FRAME = (
    "width: 100%; height: min(85vh, 760px); border: 1px solid #8886; border-radius: 6px"
)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text: pieces and ids, and the probability of each, where it was written."""

    pieces: list[str]
    ids: list[int]
    probabilities: list[float] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Tokens({' '.join(self.pieces)})"


class Inspection(Shown):
    """A text seen through a model, as `model.inspect(text)` gives it.

    Every array is a `Named`: `inspection.attention.cross.axes` are ("layer", "head", "target",
    "source"), `.at(layer=0)` takes a place, `numpy.asarray` gives the plain array. Layers, heads
    and tokens count from 0.

    - `source` and `target` (translation) or `tokens` (other tasks): pieces, ids, probabilities.
    - `attention`: the weights of `cross`, `encoder`, `decoder`; a row sums to 1.
    - `lens`: what would be written if the model stopped at a part (`parts`): `ids` and
      `probabilities` of the three best, and the probability of what was `written` in the end; of a
      classifier `probabilities` of the labels.
    - `shares`: by how much each part (`parts`) raised the logit of the written token above the mean
      of the vocabulary, in nats: `values`, which add up to `logit` within `error`; of a translation
      also `source`, all that came from looks at it; `cross` and `decoder`: by head and key. Of a
      classifier all of it is by label. Recurrent models have none.
    - `looks`: `query`, `key` and `value` of each attention, as they enter its product.
    - `logits`: the highest ones at each place, their `ids`, and `rest`: log-sum-exp of all others.
    - `nearest`, `cuts`, `states` and whatever else docs/inspection.md names: in `data`.

    In a notebook it shows itself as the page. What a model does not have is an empty group.
    """

    def __init__(self, found: look.Inspection) -> None:
        self.found = found
        self.data: dict[str, Any] = found.to_data()
        axes = _AXES
        if self.task == "classification":
            axes = _AXES_OF_LABELS
        self._axes = axes
        self.attention = self._group("attention")
        self.lens = self._group("lens", self._parts("lens"))
        self.shares = self._group("shares", self._shares())
        self.logits = self._group("choices", {"count": self._of("choices", "count")})
        self.looks = Group("looks", dict(self._looks()))

    @property
    def task(self) -> str:
        """Return the model's task: translation, language-modelling or classification."""
        return str(self.data["task"])

    @property
    def text(self) -> str:
        """Return the text that was read."""
        return str(self.data["text"])

    @property
    def translation(self) -> str:
        """Return the translation. Raises AttributeError for another task."""
        return str(self._side("translation"))

    @property
    def source(self) -> Tokens:
        """Return the source's tokens, with its end. Raises AttributeError for another task."""
        return _tokens(self._side("source"))

    @property
    def target(self) -> Tokens:
        """Return the translation's tokens. Raises AttributeError for another task."""
        return _tokens(self._side("target"))

    @property
    def tokens(self) -> Tokens:
        """Return the text's tokens, its beginning among them. Raises AttributeError for a
        translation, which has a source and a target.
        """
        return _tokens(self._side("tokens"))

    @property
    def labels(self) -> dict[str, float]:
        """Return a classifier's labels with their probabilities, the most probable first."""
        labels = self._side("labels")
        return {label["label"]: label["probability"] for label in labels}

    @property
    def notes(self) -> list[str]:
        """Say what must be known beside it: what was cut, for example."""
        return list(self.found.notes)

    def pieces(self, ids: Named | Any, side: str | None = None) -> Any:
        """Return the pieces of ids of `lens`, `logits` or `nearest`, in lists as deep as axes.

        `side` is that of the vocabulary: "source", "target" or, where there is one, "text"; without
        it that of what is written.
        """
        side = side or ("target" if self.task == "translation" else "text")
        known = {int(key): piece for key, piece in self.data["pieces"][side].items()}
        return _replaced(np.asarray(ids).tolist(), known)

    def lines(self) -> list[str]:
        """Return what `weft inspect` shows in a terminal: at most 60 columns."""
        return summary_of(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the data that docs/inspection.md describes: plain lists, rounded."""
        found: dict[str, Any] = plain(self.data)
        return found

    def save(self, path: str | Path) -> None:
        """Write a page (.html), data (.json), a picture (.png, .svg) or, of a translation, its word
        alignment (.txt, .pharaoh), whole or not at all.

        Raises UsageError for another suffix, MissingPackage for a picture without matplotlib,
        FolderError where it cannot be written.
        """
        path = Path(path)
        refuse_other_suffixes(path, FORMATS | PICTURES | ALIGNMENTS)
        if path.suffix.lower() in PICTURES:
            self.picture().save(path)
        else:
            write_report(self.found, path)

    def picture(self) -> "Picture":
        """Draw the attention of each layer, or what each token adds to a classifier's best label.

        Raises MissingPackage without matplotlib, UsageError for a model without attention.
        """
        require_matplotlib()
        from weft.inspection.drawn import Picture
        from weft.inspection.pictures import draw_inspection

        return Picture("attention", draw_inspection(self.found))

    def _repr_html_(self) -> str:
        return _framed(self.found, f"What the model does with: {self.text}")

    def _side(self, name: str) -> Any:
        if name not in self.data:
            raise AttributeError(f"an inspection of {self.task} has no {name}")
        return self.data[name]

    def _of(self, *names: str) -> Any:
        """Return what lies in the data under names; None where it does not."""
        found: Any = self.data
        for name in names:
            found = (found or {}).get(name)
        return found

    def _group(self, name: str, more: Mapping[str, Any] | None = None) -> Group:
        """Name the arrays that lie in the data under a name."""
        content: dict[str, Any] = {}
        for key, value in (self._of(name) or {}).items():
            axes = self._axes.get(f"{name}.{key}")
            if axes is not None and isinstance(value, np.ndarray) and value.size:
                content[key] = Named(value, axes)
        for key, value in (more or {}).items():
            if value is not None:
                content[key] = value
        return Group("logits" if name == "choices" else name, content)

    def _parts(self, name: str) -> dict[str, Any]:
        rows = self._of(name, "rows")
        return {"parts": rows and list(map(_part, rows))}

    def _shares(self) -> dict[str, Any]:
        found = self._parts("shares")
        found |= {name: self._of("shares", name) for name in ("error", "above")}
        for kind, carried in (self._of("shares", "written") or {}).items():
            found[kind] = Named(carried, self._axes[f"shares.written.{kind}"])
        return found

    def _looks(self) -> Iterator[tuple[str, Group]]:
        for kind, look_ in (self._of("looks") or {}).items():
            if kind == "left_out":
                continue
            named = {
                "query": Named(look_["query"], _LOOK),
                "key": Named(look_["key"], _KEY),
                "value": Named(look_["value"], _KEY),
            }
            yield kind, Group(f"looks.{kind}", named)


class Inspections(Shown, Sequence[Inspection]):
    """Several texts seen through a model, or a text through two models or the steps of a run.

    It is a sequence of `Inspection`, each whole; `names` has a name for each: its text, the model's
    folder, the step. What a `kind` has besides are attributes: of "models" `pair`, of "checkpoints"
    `steps`, `finished`, `own`, `losses`, `training` and `samples`, as docs/inspection.md describes
    them. In a notebook it shows itself as the page that turns through them.
    """

    def __init__(self, found: Several) -> None:
        self.found = found
        self._each = [Inspection(one) for one in found.inspections]

    @property
    def kind(self) -> Kind:
        """Return what they are: sentences, models or checkpoints."""
        return self.found.kind

    @property
    def names(self) -> list[str]:
        """Return a name for each."""
        return [*self.found.names]

    @property
    def notes(self) -> list[str]:
        """Say what must be known beside them: what was cut or left out, for example."""
        return [*self.found.notes]

    def __len__(self) -> int:
        return len(self._each)

    @overload
    def __getitem__(self, place: int) -> Inspection: ...

    @overload
    def __getitem__(self, place: slice) -> list[Inspection]: ...

    def __getitem__(self, place: int | slice) -> Inspection | list[Inspection]:
        return self._each[place]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "found":  # where it is not set yet: a copy
            raise AttributeError(name)
        if name not in self.found.facts:
            raise AttributeError(f"inspections of {self.kind} have no {name}")
        return self.found.facts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.found.facts]

    def lines(self) -> list[str]:
        """Return what `weft inspect` shows in a terminal: at most 60 columns."""
        return summary(self.found)

    def to_dict(self) -> dict[str, Any]:
        """Return the data that docs/inspection.md describes: plain lists, rounded."""
        return self.found.to_json()

    def save(self, path: str | Path) -> None:
        """Write a page (.html) or data (.json), whole or not at all.

        Raises UsageError for another suffix, FolderError where it cannot be written.
        """
        path = Path(path)
        refuse_other_suffixes(path, FORMATS)
        write_report(self.found, path)

    def _repr_html_(self) -> str:
        texts = f"{len(self)} texts" if len(self) > 1 else self[0].text
        title = {
            "sentences": f"What the model does with {texts}",
            "models": f"What two models do with: {self[0].text}",
            "checkpoints": f"What the model did while it learned with: {self[0].text}",
        }[self.kind]
        return _framed(self.found, title)


def _framed(found: look.Inspection | Several, title: str) -> str:
    """Return the page as HTML for a cell of a notebook, in a frame of its own."""
    page = escape(page_of(found), quote=True)
    return (
        f'<iframe title="{escape(title, quote=True)}" style="{_FRAME}" '
        f'sandbox="allow-scripts" srcdoc="{page}"></iframe>'
    )


def _tokens(side: Mapping[str, Any]) -> Tokens:
    return Tokens(side["pieces"], side["ids"], side.get("probabilities"))


def _replaced(ids: Any, known: Mapping[int, str]) -> Any:
    if isinstance(ids, list):
        return [_replaced(each, known) for each in ids]
    return known[ids]


def _part(row: Mapping[str, Any]) -> str:
    """Name a part in a few words; its layer counts from 1, as in the page."""
    before = "" if row.get("layer") is None else f"{row['layer'] + 1} · "
    after = "" if row.get("n") is None else f" of {row['n']}"
    return f"{before}{row['part']}{after}"
