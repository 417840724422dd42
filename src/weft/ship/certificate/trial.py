"""The trial of a certificate: texts, rows of ids, and sources to search for.

All ids are Weft's own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from weft.predict.rows import most_tokens
from weft.predict.text import one_line
from weft.ship.opened import Row, Wanted
from weft.ship.source import Source
from weft.ship.tokenizers.odd_texts import ODD_TEXTS
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.translation import Translation

T = TypeVar("T")

# of a text of any size: rows whose logits are compared, and texts that are searched for and used
ROWS = 64
SEARCHED = 200
# the longest row of positions that is tried, as attention takes the square of it
LONGEST = 2048
_PROMPT = 16  # ids of a document that are continued
_NEW = 48  # ids that continue them
_USED = 50  # texts that a language model continues


@dataclass(frozen=True)
class Trial:
    """The texts and rows that are compared.

    `texts` have the ids that the source's tokenizer gives them, `written` are ids with the text
    that the target's makes of them. `rows` are of the text, `probes` touch every id and the last
    position that is tried. `searched` are searched for, `used` are texts that are used as a person
    does, with `references` where the task has some.
    """

    texts: Mapping[str, Sequence[int]]
    written: Mapping[tuple[int, ...], str]
    rows: tuple[Row, ...]
    probes: tuple[Row, ...]
    searched: tuple[Wanted, ...]
    used: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Return the texts but the odd ones."""
        odd = {one.text for one in ODD_TEXTS}
        return [text for text in self.texts if text not in odd]


def trial_of(source: Source, text: Any) -> Trial:
    """Return what to compare the model on; `text` is what its task has read."""
    task = source.task
    if isinstance(task, Translation):
        return _of_pairs(task, text)
    if isinstance(task, LanguageModelling):
        return _of_documents(task, text)
    assert isinstance(task, Classification)
    return _of_rows(task, text)


def _of_pairs(task: Translation, text: Any) -> Trial:
    src, tgt = task.tokenizers
    config = task.config
    max_len = config.model.max_len
    longest = min(max_len, LONGEST)
    longest_src = min(config.max_src_len, longest)
    longest_tgt = longest - 1
    lines = tuple(map(one_line, text.src))
    targets = tuple(map(one_line, text.tgt))
    sources = src.encode_batch(lines)
    written = tgt.encode_batch(targets)
    pairs = [
        ((*ids, EOS_ID), tuple(more))
        for ids, more in zip(sources, written, strict=True)
        if len(ids) < longest_src and len(more) < longest_tgt
    ]
    compared = spread(pairs, ROWS)
    rows = [Row(ids, (BOS_ID, *more)) for ids, more in compared]
    wanted = [
        Wanted(ids, most_tokens(config.decoding, len(ids), max_len)) for ids, _ in pairs
    ]
    both = list(zip(lines, targets, strict=True))
    chosen = spread(both, SEARCHED)
    return Trial(
        texts=_encoded(src, text.src, one_line),
        written=_decoded(tgt, targets, Tokenizer.decode),
        rows=tuple(rows),
        probes=tuple(_pair_probes(src, tgt, longest_src, longest_tgt)),
        searched=tuple(spread(wanted, SEARCHED)),
        used=tuple(line for line, _ in chosen),
        references=tuple(target for _, target in chosen),
    )


def _of_documents(task: LanguageModelling, text: Any) -> Trial:
    (tokenizer,) = task.tokenizers
    config = task.config
    start = task.predictor().start_id
    longest = min(config.model.max_len, LONGEST)
    window = config.window_len
    documents = map(tokenizer.encode_long, text.texts)
    parts = [
        (start, *ids[first : first + window - 1])
        for ids in documents
        for first in range(0, max(len(ids), 1), window - 1)
    ]
    limit = max(1, min(_NEW, window - _PROMPT))
    begun = [part[:_PROMPT] for part in parts if len(part) > 1]
    prompts = [Wanted(ids, limit) for ids in begun]
    used = spread(prompts, _USED)
    compared = spread(parts, ROWS)
    probes = _every_id(tokenizer, longest - 1)
    return Trial(
        texts=_encoded(tokenizer, text.texts, str),
        written=_decoded(tokenizer, text.texts, _going_on),
        rows=tuple(Row(part) for part in compared),
        probes=tuple(Row((start, *ids)) for ids in probes),
        searched=tuple(spread(prompts, SEARCHED)),
        used=tuple(tokenizer.decode(wanted.ids[1:]) for wanted in used),
        references=(),
    )


def _of_rows(task: Classification, text: Any) -> Trial:
    (tokenizer,) = task.tokenizers
    config = task.config
    first = [BOS_ID] if config.model.pooling == "first" else []
    longest = min(config.model.max_len, LONGEST) - len(first)
    lines = tuple(map(one_line, text.texts))
    encoded = tokenizer.encode_batch(lines)
    rows = [Row((*first, *ids[: config.max_len])) for ids in encoded]
    rows = [row for row in rows if row.ids]
    return Trial(
        texts=_encoded(tokenizer, text.texts, one_line),
        written={},
        rows=tuple(spread(rows, ROWS)),
        probes=tuple(Row((*first, *ids)) for ids in _every_id(tokenizer, longest)),
        searched=(),
        used=tuple(spread(lines, SEARCHED)),
        references=(),
    )


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most so many of the items, evenly spaced."""
    if len(items) <= most:
        return list(items)
    places = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[place] for place in places]


def _pair_probes(
    src: Tokenizer, tgt: Tokenizer, longest_src: int, longest_tgt: int
) -> Iterator[Row]:
    """Yield rows with every id of either side, the first of each side as long as may be."""
    sources = list(_every_id(src, longest_src - 1))
    targets = list(_every_id(tgt, longest_tgt - 1))
    count = max(len(sources), len(targets))
    for number in range(count):
        first = number % len(sources)
        second = number % len(targets)
        ids = sources[first]
        written = targets[second]
        yield Row((*ids, EOS_ID), (BOS_ID, *written))


def _every_id(tokenizer: Tokenizer, length: int) -> Iterator[tuple[int, ...]]:
    """Yield rows that have every id but that of padding; the first has the full length.

    The others have 100 ids, as a long row takes the square of its length.
    """
    every = range(tokenizer.vocab_size)
    ids = tuple(number for number in every if number != PAD_ID)
    times = length // len(ids) + 1
    repeated = ids * times
    yield repeated[:length]
    size = min(length, 100)
    for start in range(0, len(ids), size):
        end = start + size
        yield ids[start:end]


def _encoded(
    tokenizer: Tokenizer, texts: Sequence[str], read: Callable[[str], str]
) -> dict[str, list[int]]:
    """Return the ids of texts and of the odd texts, as Weft `read`s them."""
    every = [*texts, *(odd.text for odd in ODD_TEXTS)]
    ids = tokenizer.encode_batch([read(text) for text in every])
    return dict(zip(every, ids, strict=True))


def _decoded(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    decode: Callable[[Tokenizer, Sequence[int]], str],
) -> dict[tuple[int, ...], str]:
    """Return what becomes of the ids of texts and of the odd texts."""
    every = [*texts, *(odd.text for odd in ODD_TEXTS)]
    rows = map(tuple, tokenizer.encode_batch(every))
    return {row: decode(tokenizer, row) for row in rows}


def _going_on(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Return the text of ids that go on from other text, with their first space."""
    return tokenizer.spell(ids, begins=False).decode("utf-8", "replace")
