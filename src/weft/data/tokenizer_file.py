"""The reading of a `tokenizer.json` that may be damaged, or made by somebody else to do harm.

Only the vocabulary and the merges are data. All else, regular expressions above all, must equal
what `pipeline` builds for the settings; so no foreign pattern ever runs, and the Rust library sees
nothing unchecked.
"""

import json
from typing import Any

from weft.config import SideSection
from weft.data.pipeline import (
    BYTE_LETTERS,
    MAX_PIECE_BYTES,
    Tree,
    is_byte_level,
    num_marks,
    smallest_pieces,
    tokenizer_tree,
)
from weft.errors import FolderError

MAX_BYTES = 64 * 2**20
_BYTE_LETTERS = frozenset(BYTE_LETTERS)


def read_tokenizer_tree(text: str | bytes, settings: SideSection, where: str) -> Tree:
    """Parse and check the content of a tokenizer file. Raises FolderError, of one line, for all
    else.
    """
    if settings.kind == "auto":
        raise FolderError(
            f"{where}: the settings saved with it do not say which kind it is; restore config.json"
        )
    tree = _parse(text, where)
    model = tree.get("model")
    if not isinstance(model, dict):
        raise _refusal(where, "it has no model")
    _check_vocab(_pieces(model, settings, where), settings, where)
    vocab = model["vocab"]
    merges = model.get("merges", [])
    if settings.kind != "unigram":
        _check_merges(vocab, merges, settings, where)
    expected = tokenizer_tree(settings, vocab, merges)
    for part in sorted(expected.keys() | tree.keys()):
        is_in_both = part in tree and part in expected
        if not is_in_both or not _equal(_fixed(tree[part]), _fixed(expected[part])):
            raise _refusal(
                where,
                f"{part[:40]!r} is not what Weft writes for a {settings.kind} tokenizer",
            )
    return expected


def _parse(text: str | bytes, where: str) -> Tree:
    size = len(text)
    if size > MAX_BYTES:
        raise _refusal(where, f"{size:,} bytes are more than the {MAX_BYTES:,} allowed")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        tree = json.loads(
            decoded, parse_constant=_no_constant, object_pairs_hook=_no_repeated_key
        )
    except (ValueError, RecursionError) as error:
        raise _refusal(where, f"not valid JSON ({str(error)[:80]})") from None
    if not isinstance(tree, dict):
        raise _refusal(where, "not a JSON object")
    return tree


def _pieces(model: Tree, settings: SideSection, where: str) -> list[str]:
    """Return the pieces in order of id.

    Unigram: the list's order; else the ids given must be exactly 0 .. n - 1.
    """
    vocab = model.get("vocab")
    if settings.kind == "unigram":
        if not isinstance(vocab, list) or not all(map(_is_scored_piece, vocab)):
            raise _refusal(
                where, "model.vocab is not a list of [piece, log-probability]"
            )
        return [entry[0] for entry in vocab]
    if not isinstance(vocab, dict) or not all(
        type(number) is int for number in vocab.values()
    ):
        raise _refusal(where, "model.vocab does not give each piece an id")
    pieces = sorted(vocab, key=vocab.__getitem__)
    if [vocab[piece] for piece in pieces] != list(range(len(pieces))):
        raise _refusal(
            where, f"the ids of model.vocab are not exactly 0 to {len(pieces) - 1}"
        )
    return pieces


def _check_vocab(pieces: list[str], settings: SideSection, where: str) -> None:
    first = smallest_pieces(settings.kind)
    if len(set(pieces)) != len(pieces):
        raise _refusal(where, "model.vocab has a piece twice")
    pieces = pieces[: len(pieces) - num_marks(pieces)]
    if pieces[: len(first)] != first:
        raise _refusal(
            where,
            "model.vocab does not begin with the special pieces and one piece for each byte",
        )
    if settings.kind == "byte" and len(pieces) > len(first):
        raise _refusal(
            where,
            "model.vocab has more than the special pieces and one piece for each byte",
        )
    for piece in pieces[len(first) :]:
        problem = _problem_of(piece, settings.kind)
        if problem:
            raise _refusal(where, f"piece {piece[:20]!r} of model.vocab {problem}")


def _problem_of(piece: str, kind: str) -> str | None:
    if not piece:
        return "is empty"
    try:
        size = len(piece.encode("utf-8"))
    except UnicodeEncodeError:
        return "has a lone surrogate"
    if size > MAX_PIECE_BYTES:
        return f"has {size:,} bytes, more than the {MAX_PIECE_BYTES:,} allowed"
    if kind == "character" and len(piece) > 1:
        return "is more than one character"
    if is_byte_level(kind) and not _BYTE_LETTERS.issuperset(piece):
        return "is not written in the byte-level alphabet"
    return None


def _check_merges(
    vocab: dict[str, int], merges: Any, settings: SideSection, where: str
) -> None:
    """Check that each merge joins two pieces of the vocabulary into a third; so none can be cyclic
    or out of range.
    """
    if not isinstance(merges, list) or (merges and settings.kind != "bpe"):
        raise _refusal(
            where, f"model.merges is not what a {settings.kind} tokenizer has"
        )
    seen = set()
    for number, merge in enumerate(merges):
        if not (
            isinstance(merge, list)
            and len(merge) == 2
            and all(type(part) is str for part in merge)
        ):
            raise _refusal(where, f"model.merges[{number}] is not a pair of pieces")
        left, right = merge
        if left not in vocab or right not in vocab or left + right not in vocab:
            raise _refusal(
                where,
                f"model.merges[{number}] joins or makes a piece outside model.vocab",
            )
        seen.add((left, right))
    if len(seen) != len(merges):
        raise _refusal(where, "model.merges has a pair twice")


def _is_scored_piece(entry: Any) -> bool:
    if not (isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is str):
        return False
    return type(entry[1]) in (int, float) and -1e6 < entry[1] <= 0.0


def _fixed(part: Any) -> Any:
    """Return a part of the tree without what was learned."""
    if not isinstance(part, dict):
        return part
    learned = ("vocab", "merges")
    fixed = {key: value for key, value in part.items() if key not in learned}
    return fixed | {"keys": sorted(part)}


def _equal(a: Any, b: Any) -> bool:
    """Compare JSON values, where 1, 1.0 and true are three different things."""
    try:
        return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    except RecursionError:
        return False


def _no_repeated_key(pairs: list[tuple[str, Any]]) -> Tree:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("an object has a key twice")
    return tree


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _refusal(where: str, problem: str) -> FolderError:
    return FolderError(f"{where}: {problem}; restore the original file")
