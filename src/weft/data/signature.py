"""A short name for what a score was measured on: the text, the rules it was read by, tokenizer and
order.

Two scores compare where their signatures are equal. Where they differ, the part that differs says
why.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from weft.data.split import hash_row
from weft.data.tokenizer import Tokenizer

# of reading: line ends, stripping, what is dropped; a change that alters any text read counts it up
RULES = 2
_SHOWN = 8  # hexadecimal digits


def signature(
    rows: Iterable[Sequence[str]], tokenizers: Iterable[Tokenizer] = ()
) -> str:
    """Write the signature of a text's rows, `data:…|rules:2|tok:…|order:…`; without tokenizers the
    third part is left out.

    `data` is the same for the same rows in another order, `order` is not. Names of files do not
    count.
    """
    hashes = list(map(hash_row, rows))
    parts = {"data": _short(sorted(hashes)), "rules": str(RULES)}
    of_tokenizers = [_hash_tokenizer(each) for each in dict.fromkeys(tokenizers)]
    if of_tokenizers:
        parts["tok"] = _short(of_tokenizers)
    parts["order"] = _short(hashes)
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def signature_of(hashed: npt.NDArray[np.uint64]) -> str:
    """Write the same of rows whose hashes are known, two big-endian numbers each (rows, 2)."""
    together = np.ascontiguousarray(hashed)
    as_bytes = together.view("S16")
    as_bytes = as_bytes.ravel()
    in_order = np.sort(as_bytes)
    data = _short_of(in_order)
    order = _short_of(as_bytes)
    return f"data:{data}|rules:{RULES}|order:{order}"


def _hash_tokenizer(tokenizer: Tokenizer) -> bytes:
    """Hash the whole pipeline of a tokenizer, with the steps before it and their versions."""
    versions = sorted(tokenizer.steps.items())
    steps = "".join(f"\n{name} {version}" for name, version in versions)
    content = f"{tokenizer.to_json()}{steps}"
    return sha256(content.encode("utf-8", "surrogatepass")).digest()


def _short(hashes: Iterable[bytes]) -> str:
    return sha256(b"".join(hashes)).hexdigest()[:_SHOWN]


def _short_of(hashes: npt.NDArray[np.bytes_]) -> str:
    """Return the same of hashes in an array."""
    content = hashes.view(np.uint8)
    return sha256(content.data).hexdigest()[:_SHOWN]
