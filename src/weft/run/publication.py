"""How a run becomes a model: the best weights, scored on test where there is one, with card and
verdict.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from weft.data.known import KnownWords
from weft.data.overlap import TextHashes
from weft.data.texts import Texts
from weft.folder import durable
from weft.folder.model_folder import RunFolder, read_words
from weft.kernels.machine import counted_threads
from weft.run.card import model_card, names_alone
from weft.run.judging.judgement import NOT_JUDGED, USABLE, Judgement
from weft.run.judging.verdict import judge_run
from weft.run.record import Verdict, enter_stage
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation
from weft.training.budget import TimePlan, more_steps, read_time_plan
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log, evaluation_seconds, roughly


def publish(
    out: Path,
    task: Task[Any, Any, Any],
    checkpoints: Checkpoints,
    verdict: Verdict,
    texts: Texts[Any] | None,
    facts: Mapping[str, Any],
    command: str,
    log: Log,
    goes_on: bool = False,
) -> None:
    """Write the model folder from the best checkpoint; its scores go into the verdict.

    `facts` have what is to be known of the `texts`, and of a teacher; without the texts themselves
    nothing is scored. `command` is what trains the model; `goes_on` says that the run is not at its
    end.
    """
    files, began = RunFolder(out), time.monotonic()
    enter_stage(files.verdict, verdict, "scoring")
    seconds = _take_best(task, checkpoints, verdict)
    task = task.as_used()  # so that `weft evaluate` gives the scores of the card
    test_lines: list[str] = []
    if texts is not None and texts.test is not None:
        scored = task.scored(
            texts.test, task.evaluate(texts.test), TextHashes.load(files.train_hashes)
        )
        verdict.test, verdict.test_summary, test_lines = (
            scored.to_json(),
            scored.summary(),
            scored.lines(),
        )
        verdict.notes += scored.contamination
    enter_stage(files.verdict, verdict, "judging")
    judged = judge_run(out, task, texts, verdict.dev, goes_on)
    verdict.judgement = judged.to_json()
    task = task.knowing(_known_words(task, files, texts), judged.low_confidence)
    enter_stage(files.verdict, verdict, "publishing")
    known = {**facts, "steps": verdict.step, "best_step": verdict.best_step}
    computed = machine_in_words(files)
    card = model_card(
        task.config,
        known,
        asdict(verdict),
        judged.summary(),
        test_lines,
        command,
        computed,
    )
    task.save(out, names_alone(known), card)
    if seconds:
        seconds += sum(evaluation_seconds(files.metrics))
        seconds = seconds * _share_ahead(verdict, goes_on) + time.monotonic() - began
    for line in [
        *judged.lines(),
        *_next(out, task, judged, verdict, command, goes_on, seconds),
    ]:
        log.note(line)


def _take_best(
    task: Task[Any, Any, Any], checkpoints: Checkpoints, verdict: Verdict
) -> float:
    """Give the model the weights of the best checkpoint; where that is damaged, of the newest sound
    one.

    Gives the seconds that the run's steps have taken, as far as is known.
    """
    seconds = 0.0
    if (best := checkpoints.load_best(verdict.best_step)) is not None:
        seconds = best.progress.seconds * verdict.step / max(best.progress.step, 1)
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                parameter.copy_(best.best_weights[name])
        if verdict.best_step and best.progress.step != verdict.best_step:
            verdict.best_step, verdict.dev = (
                best.progress.best_step,
                dict(best.progress.best_scores),
            )
    verdict.notes += checkpoints.notes
    task.model.eval()
    return seconds


def machine_in_words(files: RunFolder) -> str:
    """Return how the run computed, as it was written down; "" where that is lost."""
    if not files.machine.is_file():
        return ""
    found = durable.read_json(files.machine)
    kernels = f"{found['kernels']} kernels" if found["device"] == "cpu" else "a GPU"
    return f"products in {found['precision']}, {kernels}, {counted_threads(found['threads'])}"


def _share_ahead(verdict: Verdict, goes_on: bool) -> float:
    """What is still to be trained, as a share of what has been: as long again, or what a stopped
    run has left.
    """
    return (
        max(verdict.max_steps - verdict.step, 0) / max(verdict.step, 1)
        if goes_on
        else 1.0
    )


def _known_words(
    task: Task[Any, Any, Any], files: RunFolder, texts: Texts[Any] | None
) -> KnownWords | None:
    """Return the words that the model reads in its training text, and in that of the model that it
    starts from.
    """
    if texts is None or isinstance(task, LanguageModelling):
        return None
    before = (
        KnownWords(read_words(files.words).numpy()) if files.words.is_file() else None
    )
    return KnownWords.of(row[0] for row in task.overlap_rows(texts.train)).joined(
        before
    )


def _next(
    out: Path,
    task: Task[Any, Any, Any],
    judged: Judgement,
    verdict: Verdict,
    command: str,
    goes_on: bool,
    seconds: float,
) -> Iterator[str]:
    """What to try next, and what not to hand on."""
    if judged.still_improves or judged.verdict not in (USABLE, NOT_JUDGED):
        planned = read_time_plan(RunFolder(out).plan)
        is_known = seconds and (verdict.max_steps or not goes_on)
        yield f"try next, {roughly(seconds)} more:" if is_known else "try next:"
        yield f"  {_longer(command, verdict, goes_on, planned)}"
    instead = (
        ", or hand on what weft quantize writes"
        if isinstance(task, Translation)
        else ""
    )
    yield (
        f"{RunFolder(out).folder} holds the checkpoints and your training text: delete it before you hand the "
        f"folder on{instead}"
    )


def _longer(
    command: str, verdict: Verdict, goes_on: bool, planned: TimePlan | None = None
) -> str:
    """What goes on with a run that was stopped, or trains as long again."""
    command = command.replace(" --fresh", "")
    if goes_on:
        return command or "the same call, which goes on"
    key, value, without = "training.max_steps", more_steps(planned, verdict.step), ""
    if verdict.step < verdict.max_steps:  # it ran out of patience
        key, value = "training.patience", 2 * max(verdict.evaluations_since_best, 1)
    elif planned is not None:  # a number of steps takes the place of the clock
        command, without = (
            re.sub(r" --minutes[ =]\S+", "", command),
            " without minutes and",
        )
    if not command:
        return f"the same call{without} with {key}={value}"
    return (
        re.sub(rf" --set {re.escape(key)}=\S+", "", command) + f" --set {key}={value}"
    )
