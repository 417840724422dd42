"""The beginning of a run: its folder decides whether it starts, resumes or has ended."""

import contextlib
from collections.abc import Mapping
from typing import Any

from weft.config import Recipe
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import STOPPED_EARLY, RunFolder, is_finished
from weft.run.origin import SET_ASIDE, begin_or_resume, set_aside
from weft.run.record import ENDED, Verdict, read_verdict
from weft.run.request import Request
from weft.training.budget import read_time_plan, settings_to_go_on
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log
from weft.training.schedule import as_options


def take_folder(
    request: Request,
    recipe: Recipe,
    origin: Mapping[str, Any],
    locks: contextlib.ExitStack,
    log: Log,
) -> bool:
    """Take the folder's lock for this process and begin a run; return True where it resumes one.

    An earlier run is set aside where `request.fresh` asks for it. Raises UsageError where the
    folder holds another run, FolderError where its checkpoints are lost.
    """
    out = request.out
    folder = RunFolder(out)
    overrides = []
    if request.fresh and folder.recipe.is_file():
        with durable.held(folder.lock, out):
            aside = set_aside(out)
        overrides.append(f"{SET_ASIDE}{aside}")
        log.note(overrides[0])
    durable.make_folder(folder.folder)
    if not locks.enter_context(durable.held(folder.lock, out)):
        log.note(
            f"note: {out} cannot be locked (this system, or this disk, has no locks); start no second run in it"
        )
    for place in (out, folder.folder, folder.stores):
        durable.remove_leftovers(place)
    latest = {"sources": request.source_facts(), "command": request.command}
    allow_data_change = request.allow_data_change
    is_resumed = begin_or_resume(
        folder, recipe, origin, latest, overrides, allow_data_change, log.note
    )
    if is_resumed and ended_verdict(folder, recipe) is None:
        _refuse_lost_checkpoints(request, folder)
        if Checkpoints(folder.checkpoints, 1).holds_any:
            log.note(f"continuing the run in {out}")
        else:
            log.note(
                f"the run in {out} has saved no step: it begins again at the first"
            )
    return is_resumed


def ended_verdict(folder: RunFolder, recipe: Recipe) -> Verdict | None:
    """Return the verdict of a run that has nothing left to do; None where there is more to train.

    A published model that is damaged counts as not published: it is written again.
    """
    verdict = read_verdict(folder.verdict)
    if verdict is None or verdict.outcome not in ENDED or not _is_sound(folder):
        return None
    if verdict.outcome == STOPPED_EARLY:
        patience = recipe.training.patience
        has_patience = patience is None or patience > verdict.evaluations_since_best
        return None if has_patience else verdict
    by_clock = read_time_plan(folder.plan)
    steps = recipe.training.max_steps
    if by_clock is not None and steps == by_clock.recipe_steps:
        return verdict  # the clock has decided
    is_longer = steps is not None and steps > verdict.step
    return None if is_longer else verdict


def how_to_extend(request: Request, verdict: Verdict) -> str:
    """Say that a run is finished, and which setting trains it further."""
    by_clock = request.minutes is not None
    ignored = ", and --minutes does not lengthen a finished run" if by_clock else ""
    settings = settings_to_go_on(
        read_time_plan(RunFolder(request.out).plan),
        verdict.step,
        verdict.max_steps,
        verdict.evaluations_since_best,
        request.recipe.training.patience,
    )
    is_longer = "training.max_steps" in settings
    instead = " in place of --minutes" if by_clock and is_longer else ""
    return (
        f"{request.out} is finished ({verdict.reason}){ignored}; to train it further, give the same command "
        f"with {as_options(settings)}{instead}"
    )


def _refuse_lost_checkpoints(request: Request, folder: RunFolder) -> None:
    """Raise FolderError where a run saved steps and its checkpoints are gone."""
    finished = is_finished(request.out)
    before = read_verdict(folder.verdict)
    has_saved = finished or (before is not None and before.saved_step > 0)
    if not has_saved or Checkpoints(folder.checkpoints, 1).holds_any:
        return
    anew = "start over with --fresh"
    if request.teacher:
        anew = "give another --output"
    further = ""
    if finished:
        further = f", or train its model further with --from {request.out} and another --output"
    raise FolderError(
        f"{request.out}: its checkpoints are gone; restore them, {anew}{further}"
    )


def _is_sound(folder: RunFolder) -> bool:
    """Return whether the published model is whole."""
    try:
        durable.read_manifest(folder.model_folder)
    except FolderError:
        return False
    return True
