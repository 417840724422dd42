"""Pieces as people can read them: the labels of attention pictures."""

from collections.abc import Sequence

from weft.data.pipeline import SPECIALS, piece_bytes

_LONGEST_RUN = 8  # pieces that may spell one character together


def readable_pieces(pieces: Sequence[str], kind: str) -> list[str]:
    """Label each piece for people to read; see `Tokenizer.pieces`."""
    labels: list[str] = []
    while len(labels) < len(pieces):
        start = len(labels)
        labels += _next_labels(pieces[start : start + _LONGEST_RUN], kind)
    return labels


def _next_labels(pieces: Sequence[str], kind: str) -> list[str]:
    """Label the first piece, or the first few where only together they are characters."""
    if pieces[0] in SPECIALS:
        return [f"<{pieces[0].strip('<>').removesuffix(' token')}>"]
    spelled = b""
    for used, piece in enumerate(pieces, start=1):
        if piece in SPECIALS:
            break
        spelled += piece_bytes(piece, kind)
        try:
            text = spelled.decode("utf-8").replace(" ", "▁")
        except UnicodeDecodeError:
            continue
        if used == 1:
            return [text]
        return [f"{text}[{part}/{used}]" for part in range(1, used + 1)]
    text = piece_bytes(pieces[0], kind).decode("utf-8", "backslashreplace")
    return [text.replace(" ", "▁")]
