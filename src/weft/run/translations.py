"""The translations that a model makes of a text for another model to learn from: a beam's, or
samples; each marked where it is not to be learned from.

They are written line by line into a file that grows, so that whoever is stopped goes on there.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from weft.data.check.finding import counted
from weft.data.corpus import SourceText, read_lines
from weft.data.directions import choose_pair, describe
from weft.data.nearness import nearness
from weft.errors import FolderError, UsageError
from weft.folder.model_files import files_of
from weft.folder.model_folder import TranslationConfig, open_model_folder
from weft.predict.prediction import Prediction
from weft.predict.settings import DecodingSettings
from weft.tasks.opening import load_task
from weft.tasks.task import config_of
from weft.tasks.translation import Translation

Progress = Callable[[int, int], AbstractContextManager[Callable[[], None]]]
Made = Mapping[str, Any]
"""A translation as the file has it: its text, and whether it is cut or repeats itself."""

EMPTY, CUT, REPEATS, COPIES = (
    "its translation is empty",
    "its translation is cut",
    "its translation repeats itself",
    "its translation is a copy of it, or nearly",
)
# of the words of a text: as many, in their order, are no translation
_NEAR_COPY = 0.8


@contextmanager
def no_bar(count: int, done: int) -> Iterator[Callable[[], None]]:
    """Show nothing of the sentences that are done."""
    yield lambda: None


@dataclass(frozen=True)
class Search:
    """The way to a translation: the best of a beam, or with a `temperature` a sample.

    A `beam_size` of None is the model's own. Each text is translated `times` over, which samples
    alone make different: those of the n-th time are drawn with `seed` + n - 1. From all tokens,
    samples make better text to learn from than a beam (Edunov et al. 2018, "Understanding
    Back-Translation at Scale").
    """

    beam_size: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    seed: int | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if self.times < 1:
            raise UsageError(f"times = {self.times}: it must be at least 1")
        if self.times > 1 and self.temperature is None:
            raise UsageError(
                "--times is for samples, as a beam finds the same each time; add --sample, or leave it out"
            )
        self.settings(self.times)

    def settings(self, time: int) -> DecodingSettings:
        """Return the settings of the n-th time. Raises UsageError where they contradict."""
        seed = None
        if self.temperature is not None:
            seed = (1 if self.seed is None else self.seed) + time - 1
        elif self.seed is not None:
            seed = self.seed
        return DecodingSettings(
            beam_size=self.beam_size,
            temperature=self.temperature,
            top_k=self.top_k,
            seed=seed,
        )

    def describe(self) -> str:
        """Say how translations are found."""
        if self.temperature is None:
            return f"beam size {self.beam_size}"
        among = f" of the {self.top_k} most probable tokens" if self.top_k else ""
        seed = 1 if self.seed is None else self.seed
        drawn = f"samples at temperature {self.temperature:g}{among}, seed {seed}"
        return f"{drawn}, {self.times} of each" if self.times > 1 else drawn


@dataclass(frozen=True)
class Maker:
    """A translator in a folder that makes text; `sha256` is that of its manifest, and so of
    everything it consists of.
    """

    folder: Path
    config: TranslationConfig
    sha256: str
    search: Search

    @classmethod
    def open(
        cls, folder: Path, search: Search, work: str, to: str | None = None
    ) -> "Maker":
        """Open a model without loading its weights; a beam is by default as large as its own.

        One of several directions is told into which language (`to`).

        Raises FolderError for any other model, which cannot do the `work`; UsageError where the
        direction is not said, or not known.
        """
        config = config_of(open_model_folder(folder), TranslationConfig, work)
        sha256 = files_of(folder).digest()
        if to is not None or config.directions:
            config, sha256 = _turned(folder, config, sha256, to)
        if search.temperature is None and search.beam_size is None:
            search = Search(config.decoding.beam_size)
        return cls(folder, config, sha256, search)

    def load(self) -> Translation:
        """Load the model."""
        task = load_task(self.folder, is_command=True)
        assert isinstance(task, Translation)
        return task.toward(self.config.tgt_lang, self.config.src_lang)


def _turned(
    folder: Path, config: TranslationConfig, sha256: str, to: str | None
) -> tuple[TranslationConfig, str]:
    """Return the config of a model as it translates into a language, and what stands for both."""
    known = config.directions or ((config.src_lang, config.tgt_lang),)
    if to is None:
        raise UsageError(
            f"{folder} translates {describe(known)}; say into which by --to"
        )
    src_lang, tgt_lang = choose_pair(known, to)
    if not config.directions:
        return config, sha256
    chosen = {"src_lang": src_lang, "tgt_lang": tgt_lang, "directions": ()}
    both = hashlib.sha256(f"{sha256} {src_lang} {tgt_lang}".encode()).hexdigest()
    return config.model_copy(update=chosen), both


Writer = Callable[
    [Maker, SourceText, tuple[BinaryIO, int], Callable[[str], None], Progress], None
]
"""Writes the translations of a text as `write_translations` does, by whomever."""


def write_translations(
    maker: Maker,
    text: SourceText,
    growing: tuple[BinaryIO, int],
    note: Callable[[str], None],
    progress: Progress,
) -> None:
    """Write a JSON object for each translation, from where an earlier start was stopped."""
    file, done = growing
    task = maker.load()
    why = task.why_no_engine()
    slow = [f"without native kernels ({why}) translating takes longer"] if why else []
    count = len(text.lines) * maker.search.times
    where = f", from sentence {done + 1:,} on" if done else ""
    say_beginning(maker, text, where, note, slow)
    with progress(count, done) as advance:
        for prediction in _translated(task, text, maker.search, done):
            file.write(line_of(prediction).encode())
            advance()


def say_beginning(
    maker: Maker,
    text: SourceText,
    how: str,
    note: Callable[[str], None],
    doubts: Sequence[str] = (),
) -> None:
    """Say what was noticed in reading a text, what is doubtful besides, and who translates it
    `how`.
    """
    for said in [*reading_notes(text), *doubts]:
        note(f"note: {said}")
    times = f" {maker.search.times} times" if maker.search.times > 1 else ""
    sentences = counted(len(text.lines), "sentences")
    note(f"{maker.folder} translates {sentences}{times}{how}")


def _translated(
    task: Translation, text: SourceText, search: Search, done: int
) -> Iterator[Prediction]:
    """Translate the sentences, all of them as often as is asked for; the first `done` translations
    are there already.
    """
    translator = task.predictor()
    time, within = divmod(done, len(text.lines))
    while time < search.times:
        time += 1
        rest = islice(text.lines, within, None)
        settings = search.settings(time)
        yield from translator.translate_stream(rest, settings=settings)
        within = 0


def line_of(found: Prediction) -> str:
    """Return the line of a translation: a JSON object."""
    kept = {
        "text": found.text,
        "truncated": found.truncated,
        "repetition": found.repetition,
    }
    return json.dumps(kept, ensure_ascii=False) + "\n"


def read_translations(path: Path, count: int) -> list[Made]:
    """Read what was made of so many sentences. Raises FolderError where it is damaged."""
    found = list(_read(path))
    if len(found) != count:
        raise FolderError(
            f"{path}: {len(found):,} translations of {count:,} sentences; the file "
            "is damaged, remove it to translate again"
        )
    return found


def _read(path: Path) -> Iterator[Made]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            found = json.loads(line)
            yield {
                # which byte tokens can write, and no reader of text takes
                "text": str(found["text"]).replace("\0", " "),
                **{flag: bool(found[flag]) for flag in ("truncated", "repetition")},
            }
        except (ValueError, KeyError, TypeError):
            raise FolderError(
                f"{path}:{number}: damaged; remove the file to translate again"
            ) from None


def fault(found: Made) -> str | None:
    """Return why a translation is not to be learned from, if so."""
    if not found["text"].strip():
        return EMPTY
    if found["truncated"]:
        return CUT
    return REPEATS if found["repetition"] else None


def is_copy(text: str, translation: str) -> bool:
    """Return whether a translation has hardly another word than the text; numbers and marks alone
    are no copy.
    """
    has_letters = any(map(str.isalpha, text))
    return has_letters and nearness(text, translation) >= _NEAR_COPY


def reading_notes(text: SourceText) -> Iterator[str]:
    """Say what was noticed in reading a text, and what of it was left out."""
    yield from text.notes
    yield from (
        f"left out: {counted(n, 'lines')} of the source ({why})"
        for why, n in text.dropped.items()
        if n
    )


def left_out_notes(left_out: Mapping[str, int], count: int) -> Iterator[str]:
    """Say how many of so many translations are left out, by why."""
    whole = counted(count, "sentences")
    yield from (
        f"left out: {n:,} of {whole} ({why})" for why, n in sorted(left_out.items())
    )


def count_reasons(reasons: Iterable[str | None]) -> Counter[str]:
    """Count why translations are left out; None where one is not."""
    return Counter(filter(None, reasons))
