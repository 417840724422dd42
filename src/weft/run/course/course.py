"""A course: a translator from pairs and from text in one or both of its languages.

1. A model of the pairs alone, and one of the reverse direction.
2. The reverse model writes other sources for the targets of the pairs, drawn at random (Nguyen et
   al. 2020, "Data Diversification"), and sources for text in the target language:
   back-translation (Sennrich et al. 2016). A new model learns from both and the pairs, and is told
   what a machine wrote (Caswell et al. 2019).
3. Where there is text in the source language, that model translates it, and the next one learns
   from its own translations, too (He et al. 2020, "Revisiting Self-Training").

With `denoise`, a model learns to restore masked text (`weft.data.masked`), and the models of the
direction that was asked for start from it, where that helps on the pairs alone.

In further rounds the reverse model is improved likewise, by the best model so far. What is
published is the best model on dev, which is the same text for all steps.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weft.config import TranslationRecipe
from weft.data.mono import refuse_beside
from weft.errors import UsageError
from weft.folder import durable
from weft.folder.layout import DONE, RunFolder, is_finished
from weft.run.course.material import Gathered, MonoUse, gather
from weft.run.course.plan import USUAL_MINUTES, Clock, in_minutes, steps_of
from weft.run.course.record import CourseRecord
from weft.run.course.steps import Learned, Steps
from weft.run.origin import SET_ASIDE, refuse_foreign, set_aside
from weft.run.publication import about_handing_on
from weft.run.record import Verdict, keeping_record, read_verdict
from weft.run.request import Request
from weft.run.translations import Progress, Search, no_bar
from weft.training.log import Log

# of the search for sources; where pairs are few, a beam's teach more than samples do (Edunov et al.
# 2018, "Understanding Back-Translation at Scale", section 5.2)
BEAM = 2


def train_in_steps(
    request: Request,
    use: MonoUse,
    log: Log | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
    progress: Progress = no_bar,
) -> Verdict:
    """Take the steps of a course, or those that an earlier start has left, and publish the best
    model on dev in `request.out`.

    The other options are those of `weft.run.train.train`, and `progress` that of translating.
    Raises WeftError, by kind; `run/verdict.json` then says at which step.
    """
    refuse_beside(request.recipe, request.start_from, request.allow_data_change)
    out = request.out
    files = RunFolder(out)
    log = log or Log(quiet=quiet, verbose=verbose)
    if request.fresh and files.course.is_dir():
        with durable.held(files.lock, out):
            aside = set_aside(out)
        log.note(f"{SET_ASIDE}{aside}")
    _refuse_other_run(files)
    gathered = gather(request, use.texts)
    durable.make_folder(files.course)
    with durable.held(files.lock, out):
        # the verdict of a published model is that of its run
        path = None if is_finished(out) else files.verdict
        with keeping_record(path) as verdict:
            facts = _facts(request, use, gathered)
            record = CourseRecord.open(files.course / "record.json", facts)
            text = files.course / "text"
            for place in (out, files.folder, files.course, text):
                durable.remove_leftovers(place)
            assert isinstance(request.recipe, TranslationRecipe)
            material = gathered.written(text, request.recipe, use.denoise)
            clock = Clock(_minutes(request), steps_of(material, use))
            notes = (*request.notes, *material.notes)
            updates = request.recipe.training.max_steps
            _announce(clock, updates, record, notes, log)
            steps = Steps(request, material, record, clock, verdict, log, progress)
            best = _go(steps, use)
            verdict.enter("publishing")
            verdict.verdict.end(DONE, 0, f"{DONE}: the best step is {best.step}")
        _publish(best.folder, out)
    published = read_verdict(files.verdict)
    assert published is not None
    for line in [*_judged(published), about_handing_on(files)]:
        log.note(line)
    return published


def _judged(verdict: Verdict) -> Iterator[str]:
    """Yield what the run of the published model says of it."""
    word = verdict.judgement.get("verdict")
    says = verdict.judgement.get("says")
    if word and says:
        yield f"verdict: {word}: {says[0]}"


def _facts(request: Request, use: MonoUse, gathered: Gathered) -> dict[str, Any]:
    """Return what a course is begun with, and goes on with alone."""
    return {
        "recipe": request.recipe.model_dump(mode="json"),
        "minutes": request.minutes,
        "rounds": use.rounds,
        "sample": use.sample,
        "denoise": use.denoise,
        **gathered.facts(),
    }


def _minutes(request: Request) -> float | None:
    """Return the time of all steps; None where the recipe says how many updates each run has."""
    if request.minutes is None and request.recipe.training.max_steps is None:
        return USUAL_MINUTES
    return request.minutes


def _refuse_other_run(files: RunFolder) -> None:
    """Raise UsageError where the folder holds a run without steps, or something else."""
    refuse_foreign(files.model_folder)
    if files.recipe.is_file() and not files.course.is_dir():
        raise UsageError(
            f"{files.model_folder} holds a run without --mono; give another --output, or continue without it"
        )
    if files.distilled.is_dir():
        raise UsageError(
            f"{files.model_folder} holds a teacher's translations; give another --output"
        )


def _announce(
    clock: Clock,
    updates: int | None,
    record: CourseRecord,
    notes: Sequence[str],
    log: Log,
) -> None:
    """Say the steps before the first, and how long they will take."""
    whole = f"each model learns in {updates or 0:,} training steps (training.max_steps)"
    if clock.minutes is not None:
        whole = f"{in_minutes(60 * clock.minutes)} in all; --minutes says otherwise"
    log.note(f"{len(clock.steps)} steps, {whole}:")
    for line in clock.lines(record):
        log.note(line)
    log.note("what is best on dev is published")
    for note in notes:
        log.note(f"note: {note}")


def _go(steps: Steps, use: MonoUse) -> Learned:
    """Take every step; return the best model of the direction that was asked for."""
    material = steps.material
    best = steps.learn("pairs", material.forward, material.forward.pairs)
    if use.denoise:
        start = steps.restore("denoised", material.masked)
        pairs = material.forward.pairs
        new = steps.learn("pairs-denoised", material.forward, pairs, start, best)
        best = new if new.is_better(best) else best
    reverse = steps.learn("reverse", material.reverse, material.reverse.pairs)
    for number in range(1, use.rounds + 1):
        if number > 1:
            reverse = _improved(steps, use, number, "reverse", reverse, best)
        best = _improved(steps, use, number, "forward", best, reverse)
        if material.reverse.mono is not None:
            best = _taught_by_itself(steps, number, best)
    return best


def _improved(
    steps: Steps,
    use: MonoUse,
    number: int,
    name: str,
    model: Learned,
    other: Learned,
) -> Learned:
    """Return a model that learned also from text whose sources the model of the `other` direction
    wrote; the model itself where it is better on dev.
    """
    direction = model.direction
    drawn = Search(temperature=1.0, seed=number)
    again = f"{name}-again-{number}"
    texts = steps.make(again, other, direction.sentences, None, drawn)
    if direction.mono is not None:
        search = drawn if use.sample else Search(BEAM)
        made = f"{name}-made-{number}"
        texts += steps.make(made, other, None, direction.mono, search)
    if not texts:
        return steps.without(f"{name}-{number}", model)
    texts = steps.together(direction.pairs, texts)
    new = steps.learn(f"{name}-{number}", direction, texts, model.folder, model)
    return new if new.is_better(model) else model


def _taught_by_itself(steps: Steps, number: int, model: Learned) -> Learned:
    """Return a model that learned also from the translations of `model`, or that where it is better
    on dev.
    """
    mono = steps.material.reverse.mono
    made = steps.make(
        f"self-made-{number}", model, None, mono, Search(BEAM), is_turned=True
    )
    if not made:
        return steps.without(f"self-{number}", model)
    direction = model.direction
    texts = steps.together(direction.pairs, (*model.made, *made))
    new = steps.learn(f"self-{number}", direction, texts, model.folder, model)
    return new if new.is_better(model) else model


def _publish(step: Path, out: Path) -> None:
    """Give the folder the model of a step and its run, the manifest last; weights and checkpoints
    are linked where the disk can.
    """
    manifest = step / durable.MANIFEST
    target = out / durable.MANIFEST
    if target.is_file() and target.read_bytes() == manifest.read_bytes():
        return
    run = RunFolder(step)
    left_out = (run.lock, run.recipe, manifest)
    files = [path for path in sorted(step.rglob("*")) if path.is_file()]
    # the run's record first, by which the folder is known as one that may be written to
    for path in [run.recipe, *(p for p in files if p not in left_out), manifest]:
        place = out / path.relative_to(step)
        durable.make_folder(place.parent)
        durable.remove_leftovers(place.parent)
        with durable.replacing(place) as temporary:
            _put(path, temporary)


def _put(path: Path, place: Path) -> None:
    """Copy a file, or link one of tensors, which is never written again."""
    if path.suffix == ".safetensors":
        try:
            os.link(path, place)
        except OSError:  # the disk has no links
            shutil.copyfile(path, place)
    else:
        shutil.copyfile(path, place)
