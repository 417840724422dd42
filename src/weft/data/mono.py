"""Text in one language, beside pairs: `yo=news.txt` on the command line."""

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.config import Recipe, TranslationRecipe
from weft.data.corpus import fold, open_pairs, read_sources
from weft.data.formats.shards import shards_of
from weft.data.languages import UNKNOWN
from weft.data.train_text import MonoText, refuse_other_languages
from weft.errors import UsageError

HELD_OUT, KNOWN, REPEATED = (
    "held out of the pairs, for dev or test",
    "in the pairs already",
    "there before",
)


@dataclass(frozen=True)
class Sentences:
    """Sentences of one language, each another one, and how many were left out, by why."""

    lines: list[str]
    left_out: dict[str, int]
    notes: tuple[str, ...]


def refuse_beside(
    recipe: Recipe, start_from: Path | None, allow_data_change: bool
) -> None:
    """Raise UsageError for what has no meaning beside text in one language."""
    if not isinstance(recipe, TranslationRecipe):
        raise UsageError(
            f"--mono is for translators, the recipe is for {recipe.task}; leave it out"
        )
    if recipe.data.builtin:
        raise UsageError(
            f"--mono: the recipe brings its own text ({recipe.data.builtin}); add --set data.builtin=none"
        )
    if recipe.data.directions in ("each", "both"):
        raise UsageError(
            "--mono: its steps are those of one direction; leave out data.directions"
        )
    if start_from is not None:
        raise UsageError(
            "--from and --mono: the steps begin with the pairs; leave one out"
        )
    if allow_data_change:
        raise UsageError(
            "--allow-data-change: the steps need one text from first to last; leave it out"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "torchrun: weft train --mono is for one process; give it without torchrun"
        )


def refuse_foreign(texts: Sequence[MonoText], pairs: str, recipe: Recipe) -> None:
    """Raise UsageError for text in a language that a DATA of pairs has not, as far as its name and
    its beginning tell.
    """
    assert isinstance(recipe, TranslationRecipe)
    shards = shards_of(Path(pairs))
    asked = (recipe.data.src_lang, recipe.data.tgt_lang)
    if recipe.data.directions == "reverse":
        asked = asked[::-1]
    first = shards[0] if shards else pairs
    found = open_pairs(str(first), *asked).languages
    if UNKNOWN not in found:
        refuse_other_languages(texts, found)


def read_mono(
    texts: Sequence[MonoText], held_out: Collection[str], known: Collection[str]
) -> Sentences:
    """Read and join texts in one language.

    A line is left out whose folded form (`weft.data.split.fold`) is among those that are `held_out`
    of the pairs, or is `known` from the pairs, or was there before. Raises DataError for what is no
    text.
    """
    lines: list[str] = []
    notes: list[str] = []
    left_out = Counter[str]()
    seen: set[str] = set()
    for text in texts:
        read = read_sources([text.data], text.lang)
        left_out.update(read.dropped)
        notes += read.notes
        for line in read.lines:
            form = fold(line)
            if why := _why_not(form, held_out, known, seen):
                left_out[why] += 1
                continue
            seen.add(form)
            lines.append(line)
    return Sentences(lines, dict(left_out), tuple(notes))


def _why_not(
    form: str, held_out: Collection[str], known: Collection[str], seen: Collection[str]
) -> str:
    """Return why a line is left out; "" where it is not."""
    if form in held_out:
        return HELD_OUT
    if form in known:
        return KNOWN
    return REPEATED if form in seen else ""
