"""A student from a teacher: the teacher translates the source side, the student is trained on what
it wrote.

This is sequence-level knowledge distillation (Kim and Rush 2016, "Sequence-Level Knowledge
Distillation", section 3.2): the best output of a beam search stands in for the teacher's whole
distribution. What the teacher wrote lies in the student's own folder, so that the same command goes
on where it was stopped, translating or training.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.config import TranslationRecipe
from weft.data.corpus import SourceText, read_pairs, read_sources
from weft.data.languages import UNKNOWN, canonical
from weft.data.normalize import replace_surrogates
from weft.data.train_text import TrainText
from weft.errors import DataError, FolderError, UsageError
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.recipes.file import with_values
from weft.run.origin import refuse_foreign
from weft.run.record import Verdict, keeping_record
from weft.run.request import Request
from weft.run.train import ending_clearly, train
from weft.run.translations import (
    Maker,
    Progress,
    Search,
    Writer,
    count_reasons,
    fault,
    left_out_notes,
    no_bar,
    read_translations,
    reading_notes,
    write_translations,
)
from weft.training.log import Log


def distill(
    request: Request,
    folder: Path,
    data: Sequence[str],
    beam_size: int | None = None,
    log: Log | None = None,
    progress: Progress = no_bar,
    to: str | None = None,
    write: Writer = write_translations,
) -> Verdict:
    """Train the student that `request` asks for on what the teacher in `folder` makes of the
    sources in `data`.

    `request` names no training text. A pair is left out where the translation is empty, cut or
    repeats itself. Pairs that are held out for dev are the teacher's too; for test none are, unless
    the recipe says how many. `progress` is told the number of sentences and of those that are done;
    what it hands out is called after each. Raises WeftError, by kind, as `weft.run.train.train`
    does. A teacher of several directions is told into which language (`to`).
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "torchrun: weft distill is for one process; give it without torchrun"
        )
    files, log = RunFolder(request.out), log or Log(RunFolder(request.out).metrics)
    refuse_foreign(request.out)
    teacher = Maker.open(folder, Search(beam_size), "teach a translator", to)
    recipe = _recipe_of_student(request, teacher)
    langs = (teacher.config.src_lang, teacher.config.tgt_lang)
    for given in filter(None, (request.dev, request.test)):
        # what is wrong with it, now rather than after translating
        read_pairs([given], *langs)
    text = read_sources(data, *langs)
    facts = _facts(teacher, text)
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
            durable.write_json(files.teacher, facts)
            with durable.growing(files.translations, facts) as growing:
                write(teacher, text, growing, log.note, progress)
        left_out = _write_pairs(files, text)
    pairs = f"{files.distilled_src},{files.distilled_tgt}"
    notes = [
        f"the target side was written by the teacher in {teacher.folder}, {teacher.search.describe()}"
    ]
    notes += [
        *reading_notes(text),
        *left_out_notes(left_out, len(text.lines)),
        *_held_out_notes(request, recipe),
    ]
    return train(
        replace(
            request,
            recipe=recipe,
            train=(TrainText(pairs),),
            teacher=facts,
            notes=tuple(notes),
        ),
        log,
    )


def _facts(teacher: Maker, text: SourceText) -> dict[str, Any]:
    """Return what a teacher's translations of a text depend on."""
    return {
        "teacher": teacher.sha256,
        "beam_size": teacher.search.beam_size,
        "source": text.sha256(),
        "sentences": len(text.lines),
    }


def _recipe_of_student(request: Request, teacher: Maker) -> TranslationRecipe:
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


def _write_pairs(files: RunFolder, text: SourceText) -> Counter[str]:
    """Write the pairs that are of use into two aligned files; return how many are not, by why.

    Raises FolderError where the translations are damaged, DataError where none is of use.
    """
    translations = read_translations(files.translations, len(text.lines))
    both = zip(text.lines, translations, strict=True)
    pairs = [
        (replace_surrogates(src), found["text"])
        for src, found in both
        if fault(found) is None
    ]
    left_out = count_reasons(map(fault, translations))
    if not pairs:
        reasons = "; ".join(left_out_notes(left_out, len(text.lines)))
        raise DataError(
            f"nothing to train on: {reasons}; is the text in the teacher's source language? then it has learned too "
            "little (weft diagnose)"
        )
    for path, side in zip(
        (files.distilled_src, files.distilled_tgt),
        zip(*pairs, strict=True),
        strict=True,
    ):
        durable.write_text(path, "".join(f"{line}\n" for line in side))
    return left_out


def _held_out_notes(request: Request, recipe: TranslationRecipe) -> Iterator[str]:
    parts = {
        "dev": (request.dev, recipe.data.dev_size),
        "test": (request.test, recipe.data.test_size),
    }
    if names := [
        name for name, (given, size) in parts.items() if not given and size != 0
    ]:
        yield f"what is held out for {' and '.join(names)} has the teacher's translations as references"
