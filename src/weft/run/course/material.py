"""The text of a course: pairs, split once for all of its steps, and text in each language."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from weft.config import TokenizerSection, TranslationRecipe
from weft.data.base import spread
from weft.data.check.finding import counted
from weft.data.corpus import ParallelText, fold
from weft.data.detection import Detector
from weft.data.formats.lines import read_lines
from weft.data.languages import UNKNOWN
from weft.data.learning import learn_tokenizers
from weft.data.masked import MASK, masked
from weft.data.mono import Sentences, read_mono
from weft.data.normalize import replace_surrogates
from weft.data.profile import learn_profiles
from weft.data.split import keyed_hash
from weft.data.texts import Texts, gather_pairs
from weft.data.train_text import MonoText, TrainText, refuse_other_languages
from weft.errors import DataError, UsageError
from weft.folder import durable
from weft.run.request import Request
from weft.tasks.trainable import write_tokenizers

# sentences of the text in one language for each pair: what more teaches is not worth its time
MOST_MADE = 20
_WAYS = 2  # in which a sentence is masked
_SAMPLED = 3_000  # pairs that tell the two languages apart
_LOOKED_AT = 200  # sentences of a text
_MOST_OF_THE_OTHER = 0.5
_FOR_MASKS = 4  # what random numbers are drawn for, beside those of hints and tags


@dataclass(frozen=True)
class MonoUse:
    """Text in one language, and how it is used.

    A model that translates the other way round writes sources for it, by a beam or as a `sample`
    each, in so many `rounds`, each with the models of the one before. With `denoise`, a model that
    has learned to restore text with masked spans is one to start from.
    """

    texts: tuple[MonoText, ...]
    rounds: int = 1
    sample: bool = False
    denoise: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for what cannot be."""
        if self.rounds < 1:
            raise UsageError(f"rounds = {self.rounds}: it must be at least 1")


@dataclass(frozen=True)
class Direction:
    """A direction of translation, and the text for a model of it.

    `sentences` are the target side of the pairs, `mono` more text in the target's language, if
    there is any; each file has a sentence a line. `tokenizers` is the folder of those that all
    models have, so that one can start from another.
    """

    src_lang: str
    tgt_lang: str
    pairs: tuple[TrainText, ...]
    dev: str | None
    test: str | None
    sentences: Path
    mono: Path | None
    tokenizers: Path


@dataclass(frozen=True)
class Material:
    """The text of a course, as its steps read it from files in the run's folder.

    `num_mono` are the sentences of the text in each language, by language.
    `masked` is text of both languages with masked spans, each beside the whole.
    """

    forward: Direction
    reverse: Direction
    masked: tuple[TrainText, ...]
    num_pairs: int
    num_mono: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gathered:
    """The text of a course as it was read: the split pairs, and more text in each language, source
    and target.
    """

    texts: Texts[ParallelText]
    mono: tuple[Sentences, Sentences]

    @property
    def languages(self) -> tuple[str, str]:
        """Return source and target."""
        return self.texts.train.src_lang, self.texts.train.tgt_lang

    def facts(self) -> dict[str, Any]:
        """Return what tells whether two courses have the same text."""
        parts = self.texts.facts().items()
        worths = self.texts.train.worths
        return {
            "pairs": {name: part["sha256"] for name, part in parts},
            "worths": [[worth.weight, worth.tag, worth.made] for worth in worths],
            "mono": [keyed_hash(0, *text.lines).hex() for text in self.mono],
        }

    def written(
        self, folder: Path, recipe: TranslationRecipe, denoise: bool
    ) -> Material:
        """Write the files that the steps read; masked text where they `denoise`.

        Raises FolderError where that fails.
        """
        durable.make_folder(folder)
        seed = recipe.data.seed
        forward, reverse = _written(self, folder, seed)
        more = [MASK] if denoise else []
        _learn_tokenizers(recipe.tokenizer, forward, reverse, more)
        masked_text = _write_masked(forward, reverse, folder, seed) if denoise else ()
        counts = (len(text.lines) for text in self.mono)
        return Material(
            forward,
            reverse,
            masked_text,
            len(self.texts.train),
            dict(zip(self.languages, counts, strict=True)),
            (*self.texts.notes, *_notes(self.languages, self.mono)),
        )


def gather(request: Request, mono: Sequence[MonoText]) -> Gathered:
    """Read pairs and text in one language.

    Raises UsageError where the languages do not fit each other, or nothing is held out to compare
    the steps on; DataError where the text is not fit for training.
    """
    assert isinstance(request.recipe, TranslationRecipe)
    texts = gather_pairs(request.recipe.data, request.sources())
    texts = texts.accepted(request.allow_bad_data)
    langs = (texts.train.src_lang, texts.train.tgt_lang)
    _refuse_languages(langs)
    refuse_other_languages(mono, langs)
    if texts.dev is None:
        raise UsageError(
            "--mono: the steps are compared on dev, and these pairs are too few to hold some out; give --dev"
        )

    def of(side: int) -> Sentences:
        own = [text for text in mono if text.is_in(langs[side])]
        return read_mono(own, *_known(texts, side))

    read = (of(0), of(1))
    if not request.allow_bad_data:
        _refuse_text_of_the_other(texts.train, read)
    return Gathered(texts, read)


def _refuse_languages(langs: tuple[str, str]) -> None:
    """Raise UsageError for pairs of unknown languages, or of one."""
    if UNKNOWN in langs:
        raise UsageError(
            "--mono: the languages of the pairs are not known; name them with --set data.src_lang=... "
            "--set data.tgt_lang=..."
        )
    if langs[0] == langs[1]:
        raise UsageError(
            f"--mono: both sides of the pairs are {langs[0]}, and more text of it teaches no translating; leave it out"
        )


def _refuse_text_of_the_other(
    pairs: ParallelText, mono: tuple[Sentences, Sentences]
) -> None:
    """Raise DataError for a text of which most sentences look like the other side of the pairs."""
    few = pairs.sample(_SAMPLED)
    langs = (pairs.src_lang, pairs.tgt_lang)
    detector = Detector.of(learn_profiles([(langs[0], few.src), (langs[1], few.tgt)]))
    for lang, other, text in zip(langs, langs[::-1], mono, strict=True):
        lines = [text.lines[i] for i in spread(len(text.lines), _LOOKED_AT)]
        count = sum(detector.best(line)[0] == other for line in lines)
        if lines and count > _MOST_OF_THE_OTHER * len(lines):
            raise DataError(
                f"--mono {lang}=...: {count} of {len(lines)} sentences that were looked at are like the {other} of "
                f"the pairs; is it --mono {other}=...? To use it all the same, add --allow-bad-data"
            )


def _known(texts: Texts[ParallelText], side: int) -> tuple[set[str], set[str]]:
    """Return the folded sentences of one side that are held out, and those of training."""

    def of(part: ParallelText | None) -> Iterator[str]:
        if part is not None:
            yield from map(fold, part.tgt if side else part.src)

    return {*of(texts.dev), *of(texts.test)}, set(of(texts.train))


def _notes(langs: Sequence[str], read: Sequence[Sentences]) -> Iterator[str]:
    for lang, text in zip(langs, read, strict=True):
        yield from text.notes
        for why, count in text.left_out.items():
            if count:
                yield f"left out: {counted(count, 'lines')} of the text in {lang} ({why})"
        if text.left_out and not text.lines:
            yield f"nothing is left of the text in {lang}: the steps go without it"


def _written(
    gathered: Gathered, folder: Path, seed: int
) -> tuple[Direction, Direction]:
    """Write the files of both directions."""
    texts = gathered.texts
    src, tgt = langs = gathered.languages
    parts = {"dev": texts.dev, "test": texts.test}
    held_out = {
        name: _write_sides(folder / name, part, langs)
        for name, part in parts.items()
        if part is not None
    }
    pairs = list(_write_pairs(texts.train, folder, langs))
    sides = (texts.train.src, texts.train.tgt)
    mono: list[Path | None] = []
    for lang, side, text in zip(langs, sides, gathered.mono, strict=True):
        _write_lines(folder / f"sentences.{lang}", side)
        # those that the time suffices for are then taken from everywhere
        chosen = sorted(text.lines, key=lambda line: keyed_hash(seed, line))
        path = folder / f"mono.{lang}"
        if chosen:
            _write_lines(path, chosen)
        mono.append(path if chosen else None)

    def direction(first: str, second: str, is_turned: bool) -> Direction:
        names = {name: _joined(of, is_turned) for name, of in held_out.items()}
        trained = tuple(
            TrainText(_joined(of, is_turned), worth.weight, worth.tag, worth.made)
            for of, worth in pairs
        )
        sentences = folder / f"sentences.{second}"
        own = mono[0] if is_turned else mono[1]
        test = None if is_turned else names.get("test")
        tokenizers = folder / f"tokenizers-{first}-{second}"
        return Direction(
            first, second, trained, names["dev"], test, sentences, own, tokenizers
        )

    return direction(src, tgt, False), direction(tgt, src, True)


def _learn_tokenizers(
    section: TokenizerSection,
    forward: Direction,
    reverse: Direction,
    more: Sequence[str],
) -> None:
    """Learn the tokenizers of all models from the pairs, the text in one language and `more`,
    unless that is done.
    """
    if reverse.tokenizers.is_dir():
        return
    src, tgt = ([*_sentences(of), *more] for of in (reverse, forward))
    learned = learn_tokenizers(section, src, tgt)
    if not forward.tokenizers.is_dir():
        write_tokenizers(forward.tokenizers, learned)
    write_tokenizers(reverse.tokenizers, learned[::-1])


def _sentences(direction: Direction) -> Iterator[str]:
    """Yield the sentences of the target's language, as many as a machine may translate."""
    own = list(read_lines(direction.sentences))
    yield from own
    if direction.mono is not None:
        yield from islice(read_lines(direction.mono), MOST_MADE * len(own))


def _write_masked(
    forward: Direction, reverse: Direction, folder: Path, seed: int
) -> tuple[TrainText, ...]:
    """Write the text of both languages, each sentence masked in two ways."""
    rng = np.random.default_rng([seed, _FOR_MASKS])
    masks: list[str] = []
    whole: list[str] = []
    for direction in (forward, reverse):
        lines = list(_sentences(direction))
        for _ in range(_WAYS):
            masks += (masked(line, rng) for line in lines)
            whole += lines
    sides = folder / "masked.txt", folder / "whole.txt"
    for path, text in zip(sides, (masks, whole), strict=True):
        _write_lines(path, text)
    return (TrainText(_joined(sides, is_turned=False)),)


def _write_pairs(
    text: ParallelText, folder: Path, langs: tuple[str, str]
) -> Iterator[tuple[tuple[Path, Path], Any]]:
    """Write the pairs, those of equal worth together; yield their files and worth."""
    rows: dict[Any, list[int]] = defaultdict(list)
    for row, file in enumerate(text.file_of):
        rows[text.worth_of(file)].append(row)
    for number, (worth, chosen) in enumerate(rows.items(), start=1):
        yield (
            _write_sides(folder / f"pairs-{number}", text.select(chosen), langs),
            worth,
        )


def _write_sides(
    path: Path, text: ParallelText, langs: tuple[str, str]
) -> tuple[Path, Path]:
    src, tgt = (path.with_name(f"{path.name}.{lang}") for lang in langs)
    _write_lines(src, text.src)
    _write_lines(tgt, text.tgt)
    return src, tgt


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    content = "".join(f"{replace_surrogates(line)}\n" for line in lines)
    if not path.is_file() or path.read_text("utf-8") != content:
        durable.write_text(path, content)


def _joined(sides: tuple[Path, Path], is_turned: bool) -> str:
    first, second = reversed(sides) if is_turned else sides
    return f"{first},{second}"
