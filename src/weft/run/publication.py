"""The end of a run, which becomes a model: its best weights, scored on test, with a card."""

import re
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import torch

from weft.data.known import KnownWords
from weft.data.overlap import TextHashes
from weft.data.texts import Texts
from weft.folder import durable
from weft.folder.layout import PACK, model_name
from weft.folder.model_folder import RunFolder, read_words
from weft.folder.profiles import read_profiles
from weft.kernels.machine import counted_threads
from weft.run.card import model_card, names_alone
from weft.run.judging.judgement import NOT_JUDGED, USABLE, Judgement
from weft.run.judging.verdict import judge_run
from weft.run.record import RunRecord, Verdict
from weft.run.repetition import Repetition, repetition_of
from weft.tasks.trainable import TrainableTask
from weft.training.budget import TimePlan, read_time_plan, settings_to_go_on
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log, evaluation_seconds, roughly
from weft.training.schedule import as_options

AnyTask = TrainableTask[Any, Any, Any]
Settings = Mapping[str, int | float]


@dataclass(frozen=True)
class TrainedRun:
    """A run that a model is made of: where it is, what it has kept, and what trains it.

    `is_stopped` says that it is not at its end, `is_step` that it is one of several, and what comes
    next is not for it to say.
    """

    folder: RunFolder
    command: str
    checkpoints: Checkpoints
    record: RunRecord
    log: Log
    is_stopped: bool = False
    is_step: bool = False

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of the run's record."""
        return self.record.verdict


def publish(
    run: TrainedRun, task: AnyTask, texts: Texts[Any] | None, facts: Mapping[str, Any]
) -> None:
    """Write the model folder from the best checkpoint; its scores go into the record's verdict.

    `facts` have what is to be known of the `texts`, and of a teacher; without the texts themselves
    nothing is scored.
    """
    folder = run.folder
    out = folder.model_folder
    record = run.record
    verdict = run.verdict
    began = time.monotonic()
    repetition = repetition_of(folder, verdict)
    _tell_settings(repetition, verdict, run.log)
    record.enter("scoring")
    seconds = _take_best(task, run.checkpoints, verdict)
    task = task.as_used()  # so that `weft evaluate` gives the scores of the card
    test_lines = _score_on_test(task, texts, folder, verdict)
    record.enter("judging")
    judged = judge_run(out, task, texts, verdict.dev, run.is_stopped)
    verdict.judgement = judged.to_json()
    known_words = _known_words(task, folder, texts)
    task = task.knowing(known_words, judged.low_confidence, judged.quality)
    record.enter("publishing")
    known = {**facts, "steps": verdict.step, "best_step": verdict.best_step}
    computed = [machine_in_words(folder)]
    if repetition:
        computed.append(repetition.seeds())
    card = model_card(
        task,
        known,
        asdict(verdict),
        judged.summary(),
        test_lines,
        run.command,
        ", ".join(filter(None, computed)),
        repetition.section() if repetition else "",
    )
    profiles = {}
    if folder.languages.is_file():
        profiles = read_profiles(folder.languages)
    task.save(out, names_alone(known), card, profiles)
    if seconds:
        seconds += sum(evaluation_seconds(folder.metrics))
        seconds *= _share_ahead(run, judged.anew)
        seconds += time.monotonic() - began
    if not run.is_step:
        for line in [*judged.lines(), *_advice(run, judged, seconds)]:
            run.log.note(line)


def _tell_settings(repetition: Repetition | None, verdict: Verdict, log: Log) -> None:
    """Say and keep what repeats the run, where its last command does not."""
    note = repetition.note() if repetition else ""
    if not note:
        return
    log.note(f"note: {note}")
    if note not in verdict.notes:  # of an earlier `weft finish`
        verdict.notes.append(note)


def _take_best(task: AnyTask, checkpoints: Checkpoints, verdict: Verdict) -> float:
    """Give the model the weights of the best checkpoint; if damaged, of the newest sound one.

    Return the seconds that the run's steps have taken, as far as is known.
    """
    seconds = 0.0
    if (best := checkpoints.load_best(verdict.best_step)) is not None:
        seconds = best.progress.seconds * verdict.step / max(best.progress.step, 1)
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                parameter.copy_(best.weights_to_use[name])
        if verdict.best_step and best.progress.step != verdict.best_step:
            verdict.best_step = best.progress.best_step
            verdict.dev = dict(best.progress.best_scores)
    verdict.notes += checkpoints.notes
    task.model.eval()
    return seconds


def _score_on_test(
    task: AnyTask, texts: Texts[Any] | None, folder: RunFolder, verdict: Verdict
) -> list[str]:
    """Score the model on the test text, if there is one, and return the scores in lines."""
    if texts is None or texts.test is None:
        return []
    hashes = TextHashes.load(folder.train_hashes)
    scored = task.scored(texts.test, task.evaluate(texts.test), hashes)
    verdict.test = scored.to_json()
    verdict.test_summary = scored.summary()
    verdict.notes += scored.contamination
    return scored.lines()


def machine_in_words(folder: RunFolder) -> str:
    """Return how the run computed, as it was written down; "" where that is lost."""
    if not folder.machine.is_file():
        return ""
    machine = durable.read_json(folder.machine)
    kernels = f"{machine['kernels']} kernels"
    if machine["device"] != "cpu":
        kernels = "a GPU"
    threads = counted_threads(machine["threads"])
    return f"products in {machine['precision']}, {kernels}, {threads}"


def _share_ahead(run: TrainedRun, anew: Settings) -> float:
    """Return the length of the run to try next, relative to this one.

    A stopped run has its rest ahead; one that goes on as many steps again, or those that the clock
    left out; one that begins anew all of its own.
    """
    verdict = run.verdict
    if run.is_stopped:
        return max(verdict.max_steps - verdict.step, 0) / max(verdict.step, 1)
    if anew:
        return anew.get("training.max_steps", verdict.step) / max(verdict.step, 1)
    settings = _to_go_on(read_time_plan(run.folder.plan), verdict)
    max_steps = settings.get("training.max_steps")
    if max_steps is None:  # it ran out of patience
        return 1.0
    return max_steps / max(verdict.step, 1) - 1


def _to_go_on(by_clock: TimePlan | None, verdict: Verdict) -> Settings:
    return settings_to_go_on(
        by_clock,
        verdict.step,
        verdict.max_steps,
        verdict.evaluations_since_best,
        verdict.patience,
    )


def _known_words(
    task: AnyTask, folder: RunFolder, texts: Texts[Any] | None
) -> KnownWords | None:
    """Return the words that the model was trained to read, by this run and that of its start."""
    if texts is None or not task.keeps_words:
        return None
    own = KnownWords.of(row[0] for row in task.overlap_rows(texts.train))
    if not folder.words.is_file():
        return own
    return own.joined(KnownWords(read_words(folder.words)))


def _advice(run: TrainedRun, judged: Judgement, seconds: float) -> Iterator[str]:
    """Say what to try next, which takes so many `seconds` (0: not known), and what not to hand
    on.
    """
    folder = run.folder
    is_poor = judged.verdict not in (USABLE, NOT_JUDGED)
    may_help = run.is_stopped or not judged.is_flat or judged.anew
    if judged.figures.get("alike") and not run.is_stopped:
        yield "try next: unify the labels in the text, then give the same command with --fresh"
    elif judged.still_improves or (is_poor and may_help):
        by_clock = read_time_plan(folder.plan)
        is_known = seconds and (run.verdict.max_steps or not run.is_stopped)
        more = "" if judged.anew else " more"
        yield f"try next, {roughly(seconds)}{more}:" if is_known else "try next:"
        command = _settable(run)
        yield f"  {_longer(command, run.verdict, run.is_stopped, by_clock, judged.anew)}"
    yield about_handing_on(folder)


def about_handing_on(folder: RunFolder) -> str:
    """Say what of a model's folder is not for others, and what is."""
    held = "the checkpoints and your training text"
    if _is_builtin(folder):
        held = "the checkpoints"
    name = model_name(folder.model_folder) + PACK
    command = shlex.join(["weft", "pack", str(folder.model_folder), "--output", name])
    return f"{folder.folder} holds {held}: do not hand that on; {command} makes one file without it"


def _is_builtin(folder: RunFolder) -> bool:
    """Return whether the run trains on the package's own text, which anyone may see."""
    if not folder.recipe.is_file():
        return False
    recipe = durable.read_json(folder.recipe).get("recipe", {})
    return bool(recipe.get("data", {}).get("builtin"))


def _settable(run: TrainedRun) -> str:
    """Return the command of the run; of one that has ended, one that takes settings, which `weft
    demo` does not.
    """
    is_demo = run.command.startswith("weft demo")
    if run.is_stopped or not is_demo:
        return run.command
    folder = run.folder
    recipe = ["--recipe", str(folder.recipe)]
    return shlex.join(["weft", "train", *recipe, "--output", str(folder.model_folder)])


def _longer(
    command: str,
    verdict: Verdict,
    is_stopped: bool,
    by_clock: TimePlan | None = None,
    anew: Settings = MappingProxyType({}),
) -> str:
    """Return the command that resumes a stopped run, begins one anew with the settings of `anew`,
    or trains for more steps.
    """
    command = command.replace(" --fresh", "")
    without_minutes = re.sub(r" --minutes[ =]\S+", "", command)
    if is_stopped:
        if by_clock is not None and by_clock.max_steps:  # they no longer count
            command = without_minutes
        return command or "the same call, which continues the run"
    settings = anew or _to_go_on(by_clock, verdict)
    without = ""
    if by_clock is not None and "training.max_steps" in settings:
        # a number of steps takes the place of the clock
        command = without_minutes
        without = " without minutes and"
    if not command:
        pairs = [f"{key}={value}" for key, value in settings.items()]
        if anew:
            pairs.insert(0, "fresh=True")
        return f"the same call{without} with {', '.join(pairs)}"
    if anew:
        command += " --fresh"
    for key in settings:
        command = re.sub(rf" --set {re.escape(key)}=\S+", "", command)
    return f"{command} {as_options(settings)}"
