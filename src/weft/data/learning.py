"""The tokenizers of a run's two sides, learned from its text.

Those of a large text are learned from a sample of it, each in a process of its own: the sample is
read there, and what was learned is the same whatever the number of processes.
"""

import json
from collections.abc import Sequence
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
    size = sum(column.size for column in columns)
    every = -(-size // MOST_BYTES) or 1
    sample = [text for column in columns for text in column[::every]]
    total = sum(map(len, columns))
    settings = SideSection(**task["settings"])
    learned = learn_sample(sample, total, settings, task["requested"], task["key"])
    content = {"tree": json.loads(learned.to_json()), "notes": learned.notes}
    with told_of_disk():
        Path(task["output"]).write_text(json.dumps(content), "utf-8")


def _read(task: Task) -> Tokenizer:
    content = json.loads(Path(task["output"]).read_text("utf-8"))
    settings = SideSection(**task["settings"])
    return Tokenizer(content["tree"], settings, content["notes"])
