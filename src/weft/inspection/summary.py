"""An inspection in a terminal: a table of the tokens, in at most 60 columns whatever their letters.

Shapes: S source and T target tokens, L tokens of a text; H heads.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from weft.console.tables import fitted, table
from weft.inspection.look import Inspection
from weft.inspection.several import Several
from weft.predict.flatness import is_flat

WIDTH = 60  # columns
MOST_ROWS = 60  # tokens that are shown
MOST_LABELS = 5
MOST_COMPARED = 2  # labels to which tokens add
MOST_NEXT = 5
LEAST_SHARE = 0.25  # nats: a word that wrote less of a token did not write it
FLAT = "(flat)"
NOTHING = "-"
OF_SOURCE = "all of source"
BROKEN = "\ufffd"
WHAT_IS_BROKEN = f"{BROKEN}: bytes that make no letter, or a sign without a shape"
# how a table says what no letter is
NAMES = {
    "<bos>": "start",
    "<eos>": "end",
    "<pad>": "padding",
    "▁": "␣",
}
SIGNS = str.maketrans({"▁": " ", "\n": "↵", "\t": "⇥"})

Cells = Sequence[str]


def summary(inspection: Inspection | Several) -> list[str]:
    """Return lines of at most 60 columns about one inspection, or each of several; of a model while
    it learned only what it said at each step.
    """
    if not isinstance(inspection, Several):
        return summary_of(inspection.to_data())
    if inspection.kind == "checkpoints":
        return _learned(inspection)
    count = 2 if inspection.kind == "models" else len(inspection.inspections)
    lines: list[str] = []
    for name, one in zip(
        inspection.names, inspection.inspections[:count], strict=False
    ):
        if inspection.kind == "models":
            lines.append(f"— {fitted(name, WIDTH - 2)}")
        lines += [*summary_of(one.to_data()), ""]
    return lines


def _learned(several: Several) -> list[str]:
    """Return a line for each step: what the model would have said by itself."""
    rows: list[Cells] = [("step", "its own answer")]
    for step, own in zip(several.names, several.facts["own"], strict=True):
        rows.append((step, " ".join(own.split()) or "(nothing)"))
    text = several.inspections[0].text
    return [*_with_signs([_line(text), "", *table(rows, WIDTH, {0})]), ""]


def summary_of(data: Mapping[str, Any]) -> list[str]:
    """Return lines of at most 60 columns about an inspection's data, as docs/inspection.md has
    them.
    """
    told = {
        "translation": _translation,
        "language-modelling": _language,
        "classification": _classification,
    }[data["task"]]
    return _with_signs([line.rstrip() for line in told(data)])


def _with_signs(lines: list[str]) -> list[str]:
    """Add what the sign for a broken letter means, where it stands there."""
    return [*lines, WHAT_IS_BROKEN] if BROKEN in "".join(lines) else lines


# By task
# --------------------------------------------------------------------------------------


def _translation(data: Mapping[str, Any]) -> Iterator[str]:
    yield _line(data["text"])
    yield _line(data["translation"])
    yield ""
    target = data["target"]
    count = len(target["pieces"])
    writers = _writers(data)
    rows: list[Cells] = [("token", "p", "best other", "p", "written by", OF_SOURCE)]
    for place in range(min(count, MOST_ROWS)):
        cells = _token(target, place)
        rows.append((*cells, writers[place], _of_source(data, place)))
    if not data.get("shares"):
        rows = [row[:-1] for row in rows]
    yield from table(rows, WIDTH, {1, 3, 5})
    yield from _left(count, MOST_ROWS, "tokens")
    yield ""
    read = len(data["source"]["pieces"])
    yield f"{read} tokens read, {count} written (the end counted)"
    if FLAT in writers:
        yield f"{FLAT}: every look at the source takes in all of it alike"
    if data.get("shares"):
        yield from _shares_said([row[-2:] for row in rows[1:]])


def _shares_said(cells: Sequence[Cells]) -> Iterator[str]:
    """Say what is written and meant in the last two columns."""
    writers, shares = zip(*cells, strict=True)
    yield f"{OF_SOURCE}: the share of the token's logit that all"
    yield "source words together brought, not that word alone"
    if any(share.startswith("-") and share != NOTHING for share in shares):
        yield "below 0%: the source spoke against it"
    if NOTHING in writers:
        yield f"{NOTHING} under written by: no source word wrote much of it"
    if NOTHING in shares:
        yield f"{NOTHING} under {OF_SOURCE}: its logit is below the mean of all"


def _language(data: Mapping[str, Any]) -> Iterator[str]:
    yield _line(data["text"])
    yield ""
    tokens = data["tokens"]
    later = {
        **tokens,
        "pieces": tokens["pieces"][1:],
        "ids": tokens["ids"][1:],
    }
    count = len(later["pieces"])
    looked = _looked_at(data)
    rows: list[Cells] = [("token", "p", "best other", "p", "looked at")]
    for place in range(min(count, MOST_ROWS)):
        rows.append((*_token(later, place), looked[place]))
    yield from table(rows, WIDTH, {1, 3})
    yield from _left(count, MOST_ROWS, "tokens")
    yield ""
    yield "the most probable next tokens"
    rows = [("token", "p")]
    for following in data["next"][:MOST_NEXT]:
        rows.append(_choice(following))
    yield from table(rows, WIDTH, {1})
    yield ""
    yield "p: of the token that stands there, before it was read"


def _classification(data: Mapping[str, Any]) -> Iterator[str]:
    yield _line(data["text"])
    yield ""
    labels = data["labels"]
    rows: list[Cells] = [("label", "p")]
    for label in labels[:MOST_LABELS]:
        rows.append((label["label"], _share(label["probability"])))
    yield from table(rows, WIDTH, {1})
    yield from _left(len(labels), MOST_LABELS, "labels")
    yield ""
    added = data["contributions"][:MOST_COMPARED]
    pieces = data["tokens"]["pieces"]
    rows = [("token", *(each["label"] for each in added))]
    for place, piece in enumerate(pieces[:MOST_ROWS]):
        numbers = [each["left_out"][place] for each in added]
        rows.append((shown(piece), *map(_signed, numbers)))
    yield from table(rows, WIDTH, {1, 2})
    yield from _left(len(pieces), MOST_ROWS, "tokens")
    yield ""
    yield "by how much a label's log-probability falls without it"


def _line(text: str) -> str:
    """Return a text as one line that fits."""
    words = text.split()
    return fitted(" ".join(words), WIDTH)


def _left(count: int, most: int, what: str) -> Iterator[str]:
    """Say how many are not shown."""
    if count > most:
        yield f"… and {count - most} more {what}"


def _token(tokens: Mapping[str, Any], place: int) -> Cells:
    """Return a token, its probability, and the best of the others with its own."""
    own = tokens["ids"][place]
    other: Cells = (NOTHING, "")
    for candidate in tokens["alternatives"][place]:
        if candidate["id"] != own:
            other = _choice(candidate)
            break
    piece = shown(tokens["pieces"][place])
    probability = tokens["probabilities"][place]
    return (piece, _share(probability), *other)


def _choice(choice: Mapping[str, Any]) -> Cells:
    return shown(choice["piece"]), _share(choice["probability"])


def _share(probability: float) -> str:
    """Write a probability in five columns at most."""
    return "<.001" if probability < 0.0005 else f"{probability:.3f}"


def _signed(number: float) -> str:
    """Write a number of nats with its sign, of which nothing has none."""
    return "0.00" if abs(number) < 0.005 else f"{number:+.2f}"


# The tokens behind a token
# --------------------------------------------------------------------------------------


def _writers(data: Mapping[str, Any]) -> list[str]:
    """Name for each target token the source word that wrote most of it, or that none did: by
    shares, or by attention where the data have no shares.
    """
    cross = np.asarray(data["attention"]["cross"])
    if not cross.size:
        return [NOTHING] * len(data["target"]["pieces"])
    by_token = cross
    least = 0.0
    if shares := data.get("shares"):
        by_token = np.asarray(shares["written"]["cross"])
        least = LEAST_SHARE
    words = _words(data["source"]["pieces"])
    edges = [first for first, _ in words]
    by_word = np.add.reduceat(by_token.sum((0, 1)), edges, axis=-1)
    flat = np.logical_and.reduce(is_flat(cross), axis=(0, 1))
    named = []
    for place, amounts in enumerate(by_word):
        _, name = words[amounts.argmax()]
        if amounts.max() <= least:
            name = NOTHING
        named.append(FLAT if flat[place] else name)
    return named


def _of_source(data: Mapping[str, Any], place: int) -> str:
    """Return the share of a target token's logit that came from the source, as a percentage."""
    shares = data.get("shares")
    if not shares:
        return ""
    logit = float(shares["logit"][place])
    source = float(shares["source"][place])
    if logit <= 0:
        return NOTHING
    return f"{round(100 * source / logit)}%"


def _words(pieces: Sequence[str]) -> list[tuple[int, str]]:
    """Join source pieces to words: the place of each word's first piece, and its letters.

    Where pieces mark the space before them, those without a mark go on with a word, signs aside.
    """
    is_marked = any(piece.startswith("▁") for piece in pieces)
    begins = [0]
    for place, (before, piece) in enumerate(pairwise(pieces), start=1):
        is_inside = before[-1:].isalnum() and piece[:1].isalnum()
        if not (is_marked and is_inside):
            begins.append(place)
    words = []
    for first, end in pairwise([*begins, len(pieces)]):
        word = "".join(pieces[first:end])
        words.append((first, shown(word).strip()))
    return words


def _looked_at(data: Mapping[str, Any]) -> list[str]:
    """Name for each token but the first what the model looked at most when it foretold it: the mean
    of all heads that are not flat there.
    """
    pieces = data["tokens"]["pieces"]
    decoder = np.asarray(data["attention"]["decoder"])
    if not decoder.size:
        return [NOTHING] * (len(pieces) - 1)
    maps = decoder[:, :, :-1]
    visible = np.arange(1, maps.shape[2] + 1)
    flat = is_flat(maps, visible)
    alive = np.where(flat[..., None], 0, maps)
    names = [NAMES["<bos>"], *map(shown, pieces[1:])]
    named = []
    for amounts in alive.sum((0, 1)):
        name = names[amounts.argmax()]
        named.append(name if amounts.any() else FLAT)
    return named


def shown(piece: str) -> str:
    """Return a piece as a table has it: its space as a gap, what has no shape by a sign."""
    if piece in NAMES:
        return NAMES[piece]
    letters = piece.translate(SIGNS)
    if not letters.strip():
        return "␣" * len(letters)
    return "".join(map(_printable, letters))


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else BROKEN
