"""Pieces as people can read them: the labels of attention pictures."""

from collections.abc import Sequence
from functools import lru_cache

from weft.data.pipeline import SPECIALS, is_mark, piece_bytes

_CACHED = 100_000  # labels that are remembered
_LONGEST_RUN = 8  # pieces that may spell one character together


def readable_pieces(pieces: Sequence[str], kind: str) -> list[str]:
    """Label each piece for people to read; see `Tokenizer.pieces`."""
    labels: list[str] = []
    while len(labels) < len(pieces):
        start = len(labels)
        label = _label_alone(pieces[start], kind)
        if label is None:
            labels += _next_labels(pieces[start : start + _LONGEST_RUN], kind)
        else:
            labels.append(label)
    return labels


@lru_cache(maxsize=_CACHED)
def _label_alone(piece: str, kind: str) -> str | None:
    """Label a piece that is whole characters by itself; None for any other."""
    if piece in SPECIALS:
        return f"<{piece.strip('<>').removesuffix(' token')}>"
    if is_mark(piece):
        return piece
    try:
        return piece_bytes(piece, kind).decode("utf-8").replace(" ", "▁")
    except UnicodeDecodeError:
        return None


def _next_labels(pieces: Sequence[str], kind: str) -> list[str]:
    """Label the first few pieces, which only together are characters, or the first by its bytes."""
    spelled = b""
    for used, piece in enumerate(pieces, start=1):
        if piece in SPECIALS or is_mark(piece):
            break
        spelled += piece_bytes(piece, kind)
        try:
            text = spelled.decode("utf-8").replace(" ", "▁")
        except UnicodeDecodeError:
            continue
        return [f"{text}[{part}/{used}]" for part in range(1, used + 1)]
    text = piece_bytes(pieces[0], kind).decode("utf-8", "backslashreplace")
    return [text.replace(" ", "▁")]
