"""A student from a teacher: the teacher translates the source side, the student is trained on what
it wrote.

This is sequence-level knowledge distillation (Kim and Rush 2016, "Sequence-Level Knowledge
Distillation", section 3.2): the best output of a beam search stands in for the teacher's whole
distribution. What the teacher wrote lies in the student's own folder, so that the same command goes
on where it was stopped, translating or training.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from weft.config import TranslationRecipe
from weft.data.check.finding import counted
from weft.data.corpus import SourceText, read_lines, read_pairs, read_sources
from weft.data.languages import UNKNOWN, canonical
from weft.data.normalize import replace_surrogates
from weft.errors import DataError, FolderError, UsageError
from weft.folder import durable
from weft.folder.model_files import files_of
from weft.folder.model_folder import (
    RunFolder,
    TranslationConfig,
    open_model_folder,
)
from weft.predict.prediction import Prediction
from weft.recipes.file import with_values
from weft.run.origin import refuse_foreign
from weft.run.record import Verdict, keeping_record
from weft.run.request import Request
from weft.run.train import ending_clearly, train
from weft.tasks.opening import load_task
from weft.tasks.task import config_of
from weft.tasks.translation import Translation
from weft.training.log import Log

Progress = Callable[[int, int], AbstractContextManager[Callable[[], None]]]
EMPTY, CUT, REPEATS = (
    "its translation is empty",
    "its translation is cut",
    "its translation repeats itself",
)


@dataclass(frozen=True)
class Teacher:
    """A translator in a folder; `sha256` is that of its manifest, and so of everything it consists
    of.
    """

    folder: Path
    config: TranslationConfig
    sha256: str
    beam_size: int

    @classmethod
    def open(cls, folder: Path, beam_size: int | None) -> "Teacher":
        """Open a teacher without loading its weights; `beam_size` is by default its own.

        Raises FolderError for any other model.
        """
        config = config_of(
            open_model_folder(folder), TranslationConfig, "teach a translator"
        )
        sha256 = files_of(folder).digest()
        return cls(
            folder,
            config,
            sha256,
            config.decoding.beam_size if beam_size is None else beam_size,
        )

    def facts(self, text: SourceText) -> dict[str, Any]:
        """Return what its translations of a text depend on."""
        return {
            "teacher": self.sha256,
            "beam_size": self.beam_size,
            "source": text.sha256(),
            "sentences": len(text.lines),
        }


@contextmanager
def _no_bar(count: int, done: int) -> Iterator[Callable[[], None]]:
    yield lambda: None


def distill(
    request: Request,
    folder: Path,
    data: Sequence[str],
    beam_size: int | None = None,
    log: Log | None = None,
    progress: Progress = _no_bar,
) -> Verdict:
    """Train the student that `request` asks for on what the teacher in `folder` makes of the
    sources in `data`.

    `request` names no training text. A pair is left out where the translation is empty, cut or
    repeats itself. Pairs that are held out for dev are the teacher's too; for test none are, unless
    the recipe says how many. `progress` is told the number of sentences and of those that are done;
    what it hands out is called after each. Raises WeftError, by kind, as `weft.run.train.train`
    does.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "torchrun: weft distill is for one process; give it without torchrun"
        )
    files, log = RunFolder(request.out), log or Log(RunFolder(request.out).metrics)
    refuse_foreign(request.out)
    teacher = Teacher.open(folder, beam_size)
    recipe = _recipe_of_student(request, teacher)
    langs = (teacher.config.src_lang, teacher.config.tgt_lang)
    for given in filter(None, (request.dev, request.test)):
        # what is wrong with it, now rather than after translating
        read_pairs([given], *langs)
    text = read_sources(data, *langs)
    facts = teacher.facts(text)
    durable.make_folder(files.folder)
    # which is training's, once that has begun
    path = None if files.recipe.is_file() else files.verdict
    with (
        durable.held(files.lock, request.out),
        keeping_record(path) as record,
        ending_clearly(record.verdict, request.command, request.out),
    ):
        _refuse_other(request.out, facts)
        durable.make_folder(files.distilled)
        durable.remove_leftovers(files.distilled)
        record.enter("translating")
        if not files.translations.is_file():
            _translate(files, teacher, text, log, progress)
        left_out = _write_pairs(files, text)
    pairs = f"{files.distilled_src},{files.distilled_tgt}"
    notes = [
        f"the target side was written by the teacher in {teacher.folder}, beam size {teacher.beam_size}"
    ]
    notes += [
        *_reading_notes(text),
        *_left_out_notes(left_out, text),
        *_held_out_notes(request, recipe),
    ]
    return train(
        replace(
            request, recipe=recipe, train=(pairs,), teacher=facts, notes=tuple(notes)
        ),
        log,
    )


def _recipe_of_student(request: Request, teacher: Teacher) -> TranslationRecipe:
    """Return the recipe in the teacher's languages, which holds out no test set unless it says how
    large.

    Raises UsageError where the recipe is for another task, other languages or text of its own.
    """
    recipe, config = request.recipe, teacher.config
    if not isinstance(recipe, TranslationRecipe):
        raise UsageError(
            f"the recipe is for {recipe.task}, and the teacher in {teacher.folder} translates"
        )
    if recipe.data.builtin:
        raise UsageError(
            f"the recipe brings its own text ({recipe.data.builtin}); add --set data.builtin=none"
        )
    values: dict[str, Any] = (
        {}
        if request.test or recipe.data.test_size is not None
        else {"data.test_size": 0}
    )
    for key, own in (("src_lang", config.src_lang), ("tgt_lang", config.tgt_lang)):
        asked = getattr(recipe.data, key)
        if UNKNOWN not in (own, asked or UNKNOWN) and canonical(asked) != own:
            raise UsageError(
                f"data.{key} is {asked}, and the teacher in {teacher.folder} translates {config.src_lang} to "
                f"{config.tgt_lang}; add --set data.{key}={own}"
            )
        values |= {f"data.{key}": own} if own != UNKNOWN else {}
    return with_values(recipe, values)


def _refuse_other(out: Path, facts: Mapping[str, Any]) -> None:
    """Raise UsageError where the folder holds a run without a teacher, or translations made
    otherwise.
    """
    files = RunFolder(out)
    if not files.teacher.is_file():
        if files.recipe.is_file():
            raise UsageError(
                f"{out} holds a run that has no teacher; give another --output"
            )
        return
    old = durable.read_json(files.teacher)
    if not isinstance(old, dict):
        raise FolderError(
            f"{files.teacher}: does not say what made the translations; restore the file"
        )
    unlike = [key for key, now in facts.items() if old.get(key) != now]
    partial = files.translations.with_name(f"{files.translations.name}.partial")
    begun = any(
        path.is_file() and path.stat().st_size for path in (files.translations, partial)
    )
    if unlike and begun:
        shown = "; ".join(
            f"{_NAMES[key]} was {str(old.get(key))[:16]}, is {str(facts[key])[:16]}"
            for key in unlike
        )
        raise UsageError(
            f"{out} holds translations made otherwise: {shown}; continue with the same, or give another --output"
        )


_NAMES = {
    "teacher": "the teacher (sha256 of its manifest)",
    "beam_size": "the beam size",
    "source": "the source text (sha256)",
    "sentences": "the number of sentences",
}


def _translate(
    files: RunFolder, teacher: Teacher, text: SourceText, log: Log, progress: Progress
) -> None:
    """Write a JSON object a sentence, from where an earlier start was stopped."""
    facts = teacher.facts(text)
    durable.write_json(files.teacher, facts)
    task = load_task(teacher.folder, is_command=True)
    assert isinstance(task, Translation)
    why = task.why_no_engine()
    slow = [f"without native kernels ({why}) translating takes longer"] if why else []
    for note in [*_reading_notes(text), *slow]:
        log.note(f"note: {note}")
    with durable.growing(files.translations, facts) as (file, done):
        where = f", from sentence {done + 1:,} on" if done else ""
        log.note(
            f"{teacher.folder} translates {counted(len(text.lines), 'sentences')}{where}"
        )
        rest = islice(text.lines, done, None)
        found = task.predictor().translate_stream(rest, beam_size=teacher.beam_size)
        with progress(len(text.lines), done) as advance:
            for prediction in found:
                file.write(_line(prediction))
                advance()


def _line(found: Prediction) -> bytes:
    kept = {
        "text": found.text,
        "truncated": found.truncated,
        "repetition": found.repetition,
    }
    return json.dumps(kept, ensure_ascii=False).encode() + b"\n"


def _write_pairs(files: RunFolder, text: SourceText) -> Counter[str]:
    """Write the pairs that are of use into two aligned files; return how many are not, by why.

    Raises FolderError where the translations are damaged, DataError where none is of use.
    """
    translations = list(_read_translations(files.translations))
    if len(translations) != len(text.lines):
        raise FolderError(
            f"{files.translations}: {len(translations):,} translations of {len(text.lines):,} sentences; the file "
            "is damaged, remove it to translate again"
        )
    both = zip(text.lines, translations, strict=True)
    pairs = [
        (replace_surrogates(src), found["text"])
        for src, found in both
        if _fault(found) is None
    ]
    left_out = Counter(filter(None, map(_fault, translations)))
    if not pairs:
        reasons = "; ".join(_left_out_notes(left_out, text))
        raise DataError(
            f"nothing to train on: {reasons}; is the text in the teacher's source language?"
        )
    for path, side in zip(
        (files.distilled_src, files.distilled_tgt),
        zip(*pairs, strict=True),
        strict=True,
    ):
        durable.write_text(path, "".join(f"{line}\n" for line in side))
    return left_out


def _read_translations(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            found = json.loads(line)
            yield {
                "text": str(found["text"]),
                **{flag: bool(found[flag]) for flag in ("truncated", "repetition")},
            }
        except (ValueError, KeyError, TypeError):
            raise FolderError(
                f"{path}:{number}: damaged; remove the file to translate again"
            ) from None


def _fault(found: Mapping[str, Any]) -> str | None:
    """Return why a translation is not to be learned from, if so."""
    if not found["text"].strip():
        return EMPTY
    if found["truncated"]:
        return CUT
    return REPEATS if found["repetition"] else None


def _reading_notes(text: SourceText) -> Iterator[str]:
    yield from text.notes
    yield from (
        f"left out: {counted(n, 'lines')} of the source ({why})"
        for why, n in text.dropped.items()
        if n
    )


def _left_out_notes(left_out: Mapping[str, int], text: SourceText) -> Iterator[str]:
    whole = counted(len(text.lines), "sentences")
    yield from (
        f"left out: {n:,} of {whole} ({why})" for why, n in sorted(left_out.items())
    )


def _held_out_notes(request: Request, recipe: TranslationRecipe) -> Iterator[str]:
    parts = {
        "dev": (request.dev, recipe.data.dev_size),
        "test": (request.test, recipe.data.test_size),
    }
    if names := [
        name for name, (given, size) in parts.items() if not given and size != 0
    ]:
        yield f"what is held out for {' and '.join(names)} has the teacher's translations as references"
