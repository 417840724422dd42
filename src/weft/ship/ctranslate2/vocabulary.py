"""The names of ids: CTranslate2 takes and gives tokens by their names."""

import json
from pathlib import Path

from weft.data.tokenizer import Tokenizer


def names_of(tokenizer: Tokenizer) -> list[str]:
    """Return the name of each id, in their order, as the tokenizer's own file has them."""
    tree = json.loads(tokenizer.to_json())
    vocab = tree["model"]["vocab"]
    if isinstance(vocab, list):
        return [name for name, _ in vocab]
    return sorted(vocab, key=vocab.__getitem__)


def read_names(place: Path, side: str) -> list[str]:
    """Return the names of the ids of a side, source or target, as a folder's files have them; a
    model that has no sides has one file.
    """
    files = [
        place / f"{side}_vocabulary.json",
        place / "shared_vocabulary.json",
        place / "vocabulary.json",
    ]
    path = next(file for file in files if file.is_file())
    names: list[str] = json.loads(path.read_text("utf-8"))
    return names
