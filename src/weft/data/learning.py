"""The tokenizers of a run's two sides, learned from its text.

Those of a large text are learned from a sample of it, each in a process of its own: the sample is
read there, and what was learned is the same whatever the number of processes.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, filterfalse
from pathlib import Path

from weft.config import SideSection, TokenizerSection
from weft.data.column import Column
from weft.data.crew import Task, work
from weft.data.home import Home, told_of_disk
from weft.data.measures import describe, open_column
from weft.data.tokenizer import (
    Tokenizer,
    build_tokenizers,
    choose_settings,
    learn_sample,
)

# of UTF-8, of a large text, that a tokenizer is learned from
MOST_BYTES = 24_000_000
# and of its different words together, each counted once, which take the time and the memory; where
# no spaces divide them, what stands between two marks is a word, and hardly one recurs
MOST_DISTINCT = 4_000_000
_WORD = re.compile(r"[^\W\d_]+")


def learn_tokenizers(
    section: TokenizerSection,
    src: Sequence[str],
    tgt: Sequence[str],
    *,
    needs_joint: bool = False,
) -> tuple[Tokenizer, Tokenizer]:
    """Choose what is open and learn the tokenizers of both sides, as `build_tokenizers` does; of a
    large text from evenly spaced rows.
    """
    if not isinstance(src, Column) or not isinstance(tgt, Column):
        return build_tokenizers(section, src, tgt, needs_joint=needs_joint)
    chosen = choose_settings(section, src, tgt, needs_joint=needs_joint)
    home = Home()
    columns = describe((src, tgt), home.path)
    asked = section.src, section.tgt
    settings = chosen.src, chosen.tgt
    sides = [[0, 1]] if chosen.joint else [[0], [1]]
    tasks = [
        {
            "columns": [columns[side] for side in own],
            "settings": settings[own[0]].model_dump(mode="json"),
            "requested": asked[own[0]].vocab_size,
            "key": f"tokenizer.{('src', 'tgt')[own[0]]}",
            "output": str(home.path / f"tokenizer{own[0]}.json"),
        }
        for own in sides
    ]
    work("learn", learn_side, tasks)
    learned = list(map(_read, tasks))
    return learned[0], learned[-1]


def learn_side(task: Task) -> None:
    """Learn a tokenizer from columns, and write it. Raises DataError where they have no text."""
    columns = list(map(open_column, task["columns"]))
    settings = SideSection(**task["settings"])
    sides = _sampled(columns, settings.kind in ("bpe", "unigram"))
    sample = list(chain.from_iterable(sides))
    total = sum(map(len, columns))
    learned = learn_sample(sample, total, settings, task["requested"], task["key"])
    content = {"tree": json.loads(learned.to_json()), "notes": learned.notes}
    with told_of_disk():
        Path(task["output"]).write_text(json.dumps(content), "utf-8")


def _sampled(columns: Sequence[Column], has_subwords: bool) -> list[list[str]]:
    """Return evenly spaced texts of each column, as many as can be learned from."""
    size = sum(column.size for column in columns)
    every = -(-size // MOST_BYTES) or 1
    sides = [column[::every] for column in columns]
    while has_subwords and len(sides[0]) > 1 and _are_many(chain(*sides)):
        sides = [side[::2] for side in sides]
    return sides


def _are_many(texts: Iterable[str]) -> bool:
    """Return whether the different words of texts are more than can be learned from."""
    words = set[str]()
    size = 0
    for text in texts:
        for word in filterfalse(words.__contains__, _WORD.findall(text)):
            words.add(word)
            size += len(word.encode("utf-8", "surrogatepass"))
        if size > MOST_DISTINCT:
            return True
    return False


def _read(task: Task) -> Tokenizer:
    content = json.loads(Path(task["output"]).read_text("utf-8"))
    settings = SideSection(**task["settings"])
    return Tokenizer(content["tree"], settings, content["notes"])
