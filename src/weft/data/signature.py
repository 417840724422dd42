"""A short name for what a score was measured on: the text, the rules it was read by, tokenizer and
order.

Two scores compare where their signatures are equal. Where they differ, the part that differs says
why.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b, sha256

from weft.data.tokenizer import Tokenizer

# of reading: line ends, stripping, what is dropped; a change that alters any text read counts it up
RULES = 2
_SHOWN = 8  # hexadecimal digits


def signature(
    rows: Iterable[Sequence[str]], tokenizers: Iterable[Tokenizer] = ()
) -> str:
    """`data:…|rules:2|tok:…|order:…` of a text's rows; without tokenizers the third part is left
    out.

    `data` is the same for the same rows in another order, `order` is not. Names of files do not
    count.
    """
    hashes = [_hash(row) for row in rows]
    parts = {"data": _short(sorted(hashes)), "rules": str(RULES)}
    named = [_of_tokenizer(tokenizer) for tokenizer in dict.fromkeys(tokenizers)]
    if named:
        parts["tok"] = _short(named)
    parts["order"] = _short(hashes)
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def _hash(row: Sequence[str]) -> bytes:
    """Of one row; lengths are hashed too, so that no text can stand for a border between two."""
    digest = blake2b(digest_size=16)
    for text in row:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()


def _of_tokenizer(tokenizer: Tokenizer) -> bytes:
    """Of its whole pipeline, with the steps before it and their versions."""
    steps = "".join(
        f"\n{name} {version}" for name, version in sorted(tokenizer.steps.items())
    )
    return sha256(
        f"{tokenizer.to_json()}{steps}".encode("utf-8", "surrogatepass")
    ).digest()


def _short(hashes: Iterable[bytes]) -> str:
    return sha256(b"".join(hashes)).hexdigest()[:_SHOWN]
