"""The page of `weft translate --review`: sources and translations side by side, and what is
doubtful about them, in one file that needs only a browser.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from weft.errors import UsageError
from weft.folder import durable
from weft.inspection.assets import asset, bare_style, fingerprint
from weft.inspection.suffixes import refuse_other_suffixes
from weft.predict.quality import DOUBTFUL

_PAGE = {".html": "a page"}
_VERY_DOUBTFUL = DOUBTFUL / 2
_OURS = b'content="weft translate --review"'  # in the head of the page
_HEAD = 2048  # bytes
# of the legend, where the model can tell it
_OMITTED = '<mark class="omitted">perhaps left out</mark> '


@dataclass(frozen=True)
class Reviewed:
    """A text and its translation, with what is said of them.

    `place` is where the text stands. `confidence` is a probability. `doubts` are sentences. `words`
    of the translation, `omitted` words of the source, `terms` and `memory` are as in JSON.
    """

    place: str
    source: str
    text: str
    confidence: float | None = None
    doubts: Sequence[str] = ()
    words: Sequence[Mapping[str, Any]] = ()
    omitted: Sequence[Mapping[str, Any]] = ()
    unknown_words: Sequence[str] = ()
    terms: Sequence[Mapping[str, Any]] = ()
    memory: Sequence[Mapping[str, Any]] = ()

    @property
    def doubtful(self) -> int:
        """Count the words that are rather wrong than right."""
        return sum(map(_is_doubtful, self.words))


@dataclass(frozen=True)
class _Mark:
    """Characters of a text that stand out, and why."""

    start: int
    end: int
    kind: str
    why: str


@dataclass
class Review:
    """The page, row by row. `title` is what was translated, the languages are BCP-47 codes.

    Without `is_learned`, the words have their plain probability alone. Words that a memory or a
    glossary said are not counted.
    """

    path: Path
    title: str
    languages: tuple[str, str]
    is_learned: bool
    rows: list[str] = field(default_factory=list)
    doubted: int = 0
    wordy: int = 0
    num_words: int = 0
    doubtful: int = 0

    def __post_init__(self) -> None:
        refuse_other_suffixes(self.path, _PAGE)

    def add(self, one: Reviewed) -> None:
        """Add a row."""
        self.doubted += bool(one.doubts)
        self.wordy += bool(one.doubtful)
        self.num_words += sum(map(_is_judged, one.words))
        self.doubtful += one.doubtful
        self.rows.append(_row(len(self.rows) + 1, one, self.languages))

    def write(self) -> None:
        """Write the page, whole or not at all. Raises FolderError where it cannot be written."""
        durable.write_text(self.path, self.page())

    def page(self) -> str:
        """Return the whole page; no script, and no style but its own, known by its hash."""
        style = bare_style("review.css")
        policy = f"default-src 'none'; style-src '{fingerprint(style)}'; base-uri 'none'; form-action 'none'"
        parts = {
            "policy": policy,
            "style": style,
            "title": escape(f"Review of {self.title}"),
            "summary": self._summary(),
            "omitted": _OMITTED if self.is_learned else "",
            "all": f"{len(self.rows):,}",
            "doubted": f"{self.doubted:,}",
            "wordy": f"{self.wordy:,}",
            "rows": "\n".join(self.rows) or "<p>Nothing was translated.</p>",
        }
        return re.sub(
            r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("review.html")
        )

    def _summary(self) -> str:
        """Say how much is doubtful, and what the numbers mean."""
        counts = f"{self.doubtful:,} of the {self.num_words:,} words that the model chose itself are doubtful."
        meaning = (
            "The share of a word is the probability that it stands so in a reference translation, as the model "
            "has learned of itself in training: a good word that a reference has otherwise counts as wrong."
        )
        if not self.is_learned:
            meaning = (
                "The share of a word is its plain probability: this model has not learned to tell its own "
                "mistakes, and nothing is said of omissions."
            )
        return f"<p><b>{counts}</b> {meaning}</p>"


def refuse_review(path: Path, others: Iterable[Path | None]) -> None:
    """Raise UsageError for a path that is no page, or that is one of the other files or of a file
    that is there and no page of a review.
    """
    refuse_other_suffixes(path, _PAGE)
    taken = {other.absolute() for other in others if other is not None}
    if path.absolute() in taken:
        raise UsageError(f"--review {path}: is another file of this command; name one")
    if path.is_file() and not _is_review(path):
        raise UsageError(
            f"--review {path}: exists already and is no page of a review; give another name"
        )


def _is_review(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _OURS in file.read(_HEAD)
    except OSError:
        return False


def _row(number: int, one: Reviewed, languages: tuple[str, str]) -> str:
    kinds = ["row", *(["doubted"] if one.doubts else [])]
    if one.doubtful:
        kinds.append("wordy")
    share = "" if one.confidence is None else f"{one.confidence:.0%}"
    quality = f'<span class="share">{share}</span>' if share else ""
    source, target = map(escape, languages)
    src = _marked(one.source, _of_source(one))
    tgt = _marked(one.text, _of_translation(one))
    listed = "".join(f"<li>{escape(doubt)}</li>" for doubt in one.doubts)
    listed += "".join(f'<li class="more">{text}</li>' for text in _more(one))
    below = f"<ul>{listed}</ul>" if listed else ""
    return (
        f'<article class="{" ".join(kinds)}" id="row-{number}">'
        f'<h3><a href="#row-{number}">{escape(one.place)}</a>{quality}</h3>'
        f'<p class="text" lang="{source}" dir="auto">{src}</p>'
        f'<p class="text" lang="{target}" dir="auto">{tgt}</p>{below}</article>'
    )


def _quality(word: Mapping[str, Any]) -> float:
    quality = word.get("quality")
    return float(word["probability"] if quality is None else quality)


def _is_judged(word: Mapping[str, Any]) -> bool:
    """Return whether the model chose a word itself."""
    # what a memory has is certain
    return not word.get("term") and _quality(word) < 1.0


def _is_doubtful(word: Mapping[str, Any]) -> bool:
    return _is_judged(word) and _quality(word) < DOUBTFUL


def _of_translation(one: Reviewed) -> Iterator[_Mark]:
    """Yield the doubtful words of the translation, and those that a glossary demands."""
    for word in one.words:
        if word.get("term"):
            why = f"by the glossary, for: {word['term']}"
            yield _Mark(word["start"], word["end"], "term", why)
            continue
        if not _is_doubtful(word):
            continue
        quality = _quality(word)
        kind = "very" if quality < _VERY_DOUBTFUL else "doubtful"
        said = " ".join(source["text"] for source in word["sources"])
        origin = f"from: {said}" if said else "from no word of the source"
        yield _Mark(word["start"], word["end"], kind, f"{quality:.0%}; {origin}")


def _of_source(one: Reviewed) -> Iterator[_Mark]:
    """Yield what stands out in the source: omitted words first, which hide the others."""
    run: _Mark | None = None
    for word in one.omitted:
        is_next = run is not None and not one.source[run.end : word["start"]].strip()
        start = run.start if run is not None and is_next else word["start"]
        if run is not None and not is_next:
            yield run
        why = "nothing seems to be written from this"
        run = _Mark(start, word["end"], "omitted", why)
    if run is not None:
        yield run
    for start, end in _places(one.unknown_words, one.source):
        yield _Mark(start, end, "unknown", "never seen in training")
    for term in one.terms:
        wanted = " or ".join(term["wanted"])
        why = f"term: {term['status']}; {wanted}"
        yield _Mark(term["start"], term["end"], "term", why)


def _places(words: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield where words stand in a text: as whole words, or where none does, in others, too."""
    for word in words:
        pattern = re.escape(word)
        whole = list(re.finditer(rf"(?<!\w){pattern}(?!\w)", text))
        for found in whole or re.finditer(pattern, text):
            yield found.span()


def _marked(text: str, marks: Iterable[_Mark]) -> str:
    """Write a text with its marks; of those that overlap, the first that is given."""
    kept: list[_Mark] = []
    for mark in marks:
        is_free = all(mark.end <= one.start or mark.start >= one.end for one in kept)
        if is_free and 0 <= mark.start < mark.end <= len(text):
            kept.append(mark)
    written = ""
    place = 0
    for mark in sorted(kept, key=lambda one: one.start):
        inner = escape(text[mark.start : mark.end])
        written += escape(text[place : mark.start])
        written += (
            f'<mark class="{mark.kind}" title="{escape(mark.why)}">{inner}</mark>'
        )
        place = mark.end
    return written + escape(text[place:])


def _more(one: Reviewed) -> Iterator[str]:
    """Yield what is no doubt, in HTML: the doubtful words in order, and what a memory has."""
    words = [
        f"{escape(word['text'])} {_quality(word):.0%}"
        for word in one.words
        if _is_doubtful(word) and any(map(str.isalnum, word["text"]))
    ]
    if words:
        yield f"doubtful: {', '.join(words)}"
    for use in one.memory:
        how = "taken" if use["taken"] else f"near, {use['score']:.0%}"
        if use["taken"] and use["kind"] == "repaired":
            how = "taken with the numbers of the text"
        pair = f"{escape(use['source'])} → {escape(use['target'])}"
        yield f"memory, {how} ({escape(use['where'])}): {pair}"
