"""The directions in which a run reads its pairs: that of its text, the reverse of it, that of each
of several texts, or all of these both ways.

What is held out is chosen before a text is turned: a run and its reverse hold out the same pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from weft.config import PairsSection
from weft.data.corpus import ParallelText, join_pairs, read_pairs, split_at_comma
from weft.data.formats.filetype import type_of_name
from weft.data.formats.pairs import other_way
from weft.data.formats.tmx import read_contents
from weft.data.languages import UNKNOWN, canonical, direction, primary
from weft.data.train_text import TrainText
from weft.errors import DataError, UsageError

Direction = tuple[str, str]


def read_directions(texts: Sequence[TrainText], data: PairsSection) -> ParallelText:
    """Read texts as their files have them, in one direction or in that of each.

    Raises DataError as `read_pairs` does, UsageError where a language of several is not known.
    """
    if data.directions == "one":
        return read_pairs(texts, data.src_lang, data.tgt_lang)
    if data.directions == "reverse":
        read = read_pairs(texts, data.tgt_lang, data.src_lang)
        return _without_advice(read)
    parts: list[ParallelText] = []
    for text in texts:
        parts += map(_without_advice, _parts_of(text, data))
    for part in parts:
        _refuse_unknown(part)
    languages = {(part.src_lang, part.tgt_lang) for part in parts}
    if len(languages) > 1:
        return _joined(parts)
    return parts[0] if len(parts) == 1 else join_pairs(parts, *languages.pop())


def _without_advice(text: ParallelText) -> ParallelText:
    """Return a text without the advice in its notes on how to train the other direction, about
    which the recipe has said something already.
    """
    advice = f"; {other_way((text.src_lang, text.tgt_lang))}"
    return replace(text, notes=[note.removesuffix(advice) for note in text.notes])


def read_held_out(item: str, train: ParallelText, data: PairsSection) -> ParallelText:
    """Read a text to score on as the training text was read."""
    if train.pairs:
        return read_directions([TrainText(item)], data)
    return read_pairs(item, train.src_lang, train.tgt_lang)


def turned(text: ParallelText, data: PairsSection) -> ParallelText:
    """Return a text as the model reads it: turned round, or both ways, where the recipe says so.

    Pairs whose source a machine made are never turned: nobody is to learn to write that.
    """
    if data.directions == "reverse":
        return _reverse(text)
    if data.directions != "both":
        return text
    real = text
    if text.worths:
        made = [worth.made for worth in text.worths]
        rows = [i for i, file in enumerate(text.file_of) if not made[file]]
        real = text.select(rows)
    return _joined([text, _reverse(real)])


def describe(directions: Sequence[Direction]) -> str:
    """Name directions in words: `en to de, de to en`."""
    return ", ".join(direction(*pair) for pair in directions)


def _joined(parts: Sequence[ParallelText]) -> ParallelText:
    """Join texts of whatever languages; those of the first stand for the whole."""
    first = parts[0]
    pairs: list[Direction] = []
    for part in parts:
        pairs += map(part.direction_of, range(len(part.files)))
    joined = join_pairs(parts, first.src_lang, first.tgt_lang)
    return replace(joined, pairs=tuple(pairs))


def _reverse(text: ParallelText) -> ParallelText:
    """Return a text with its sides exchanged."""
    return replace(
        text,
        src=text.tgt,
        tgt=text.src,
        src_lang=text.tgt_lang,
        tgt_lang=text.src_lang,
        pairs=tuple((tgt, src) for src, tgt in text.pairs),
        measures=None,
    )


def _parts_of(text: TrainText, data: PairsSection) -> Iterator[ParallelText]:
    """Yield what a text has in each of its pairs of languages.

    A translation memory of more than two languages has those of one of them with all others:
    `data.src_lang`, else that of its header, else its first.
    """
    asked = (data.src_lang, data.tgt_lang)
    held = [] if all(asked) else _languages_of(text)
    if len(held) <= 2:
        yield read_pairs([text], *asked)
        return
    if data.tgt_lang:
        pairs = [(other, data.tgt_lang) for other in held]
    else:
        hub = data.src_lang or held[0]
        pairs = [(hub, other) for other in held]
    for src, tgt in pairs:
        if primary(src) != primary(tgt):
            yield read_pairs([text], src, tgt)


def _languages_of(text: TrainText) -> list[str]:
    """Return the languages of a translation memory, its header's first; none of another text."""
    paths = split_at_comma(text.data)
    kind = type_of_name(paths[0])
    if len(paths) > 1 or kind is None or kind.name != "tmx":
        return []
    contents = read_contents(paths[0])
    held: dict[str, str] = {}
    for tag in contents.languages:
        held.setdefault(primary(tag), tag)
    first = primary(contents.header or "")
    return sorted(held.values(), key=lambda tag: primary(tag) != first)


def choose_pair(
    known: Sequence[Direction], to: str, source: str | None = None
) -> Direction:
    """Return the direction of those that a model knows that writes a language, from a source if one
    is said.

    A language matches by its primary subtag if not exactly. Raises UsageError where none does.
    """
    asked = [pair for pair in known if _is_like(pair[1], to)]
    if source is not None:
        asked = [pair for pair in asked if _is_like(pair[0], source)]
    if not asked:
        wanted = direction(source, to) if source else f"to {to}"
        raise UsageError(
            f"{wanted}: the model does not translate so; its directions are {describe(known)}"
        )
    exact = [pair for pair in asked if pair[1] == canonical(to)]
    return (exact or asked)[0]


def _is_like(tag: str, asked: str) -> bool:
    return primary(tag) == primary(canonical(asked) or asked)


def _refuse_unknown(part: ParallelText) -> None:
    """Raise UsageError for a text whose languages are not known, DataError for one of a single
    language.
    """
    files = ",".join(part.files)
    if UNKNOWN in (part.src_lang, part.tgt_lang):
        raise UsageError(
            f"{files}: which languages are these? a model of several directions must know; name them in the file's "
            "name (pairs.en-de.tsv, or train.en,train.de), in its first row, or by data.src_lang and data.tgt_lang"
        )
    if canonical(part.src_lang) == canonical(part.tgt_lang):
        raise DataError(
            f"{files}: both sides are {part.src_lang}; name another language"
        )
