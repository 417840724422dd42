"""The content of a model that is handed on: what its receiver could learn of the training text."""

from pathlib import Path

from weft.data.check.finding import counted
from weft.folder.layout import GLOSSARY, LANGUAGES, MEMORY, WORDS, RunFolder
from weft.folder.model_files import files_of, task_of

_PIECE = 2**20  # bytes that are looked through at once


def contents(model: Path) -> str:
    """Say what an int8 folder or a pack holds, and what of the training text its receiver could
    learn.
    """
    files = files_of(model)
    parts = ["weights", "vocabularies"]
    if task_of(model) == "language-modelling":
        parts[0] = "weights (which may write what they were trained on)"
    if LANGUAGES in files:
        parts.append(
            "hashes and counts of frequent letter groups, which tell its languages"
        )
    detected = []
    if RunFolder(model).train_hashes.is_file():
        detected.append("overlap with a test text")
    if WORDS in files:
        detected.append("unseen words")
    if detected:
        what = f"hashes that detect {' and '.join(detected)}"
        parts.append(f"{what} (readable only by guessing a whole sentence or word)")
    *first, last = parts
    comma = "," if len(first) > 1 else ""
    held = f"{', '.join(first)}{comma} and {last}"
    along = []
    for name, what in ((GLOSSARY, "glossary"), (MEMORY, "memory")):
        content = files.listed(name)
        if content is not None:
            along.append(f"a {what} of {counted(_num_lines(content), 'lines')}")
    text = f"as text {' and '.join(along)}; " if along else ""
    return f"{held}; {text}no training text, but README.md names its files"


def _num_lines(content: memoryview) -> int:
    parts = range(0, len(content), _PIECE)
    return sum(bytes(content[at : at + _PIECE]).count(b"\n") for at in parts)
