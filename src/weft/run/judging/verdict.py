"""The judgement of a model when its run ends, by its task and by what the run wrote down."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.data.corpus import ParallelText
from weft.data.labelled import label_counts
from weft.data.languages import direction
from weft.data.texts import Texts
from weft.data.tokenizer import Tokenizer
from weft.errors import FolderError, WeftError
from weft.folder.layout import FINISHED_EARLY
from weft.inspection.diagnosis import Cause, Run, explain_run
from weft.inspection.diagnosis.training import left_few_steps
from weft.inspection.diagnosis.use import spelled_share
from weft.inspection.history import History, read_history
from weft.run.judging.classification import judge_classifier
from weft.run.judging.curve import (
    FEWEST,
    deciding,
    has_room,
    learned_by_heart,
)
from weft.run.judging.judgement import USABLE, Judgement, not_judged
from weft.run.judging.language import judge_language_model
from weft.run.judging.translation import judge_translator
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.trainable import TrainableTask
from weft.tasks.translation import Translation

LEAST_ROWS = 2  # of dev that a better classifier labels rightly; one may be chance
# of the bytes of dev: subwords help a classifier by words that spells more
MUCH_SPELLED = 0.1
MOST_SPELLED = 1000  # rows of dev that are looked at
# the causes whose remedy is a longer run
TOO_SHORT = ("too-few-steps", "few-passes")


def judge_run(
    folder: Path,
    task: TrainableTask[Any, Any, Any],
    texts: Texts[Any] | None,
    scores: Mapping[str, float],
    is_stopped: bool = False,
) -> Judgement:
    """Return the verdict on the model that the run in `folder` publishes; `scores` are those of its
    step on dev.

    `is_stopped` says that the run is not at its end: its command goes on.
    """
    try:
        return _judge(folder, task, texts, scores, is_stopped)
    except WeftError as error:  # a run that is done is not to fail here
        return not_judged(str(error))


def _judge(
    folder: Path,
    task: TrainableTask[Any, Any, Any],
    texts: Texts[Any] | None,
    scores: Mapping[str, float],
    is_stopped: bool,
) -> Judgement:
    if texts is None:
        return not_judged("the text is not there")
    if texts.dev is None:
        unjudged = not_judged("there is no dev text; give one with --dev, or more text")
        if isinstance(task, Classification):  # for weft diagnose
            return replace(unjudged, figures={"rows": dict(label_counts(texts.train))})
        return unjudged
    history = _history(folder)
    evaluations = history.evaluations if history else []
    values, _ = deciding(evaluations)
    least = LEAST_ROWS / len(texts.dev) if isinstance(task, Classification) else 0.0
    improves = history is not None and has_room(evaluations, history.rates, least)
    run = Run.of(folder)
    if is_stopped:  # what stands in the folder is of a run that is being published
        run = replace(run, verdict={**(run.verdict or {}), "outcome": FINISHED_EARLY})
    causes = explain_run(task, run)
    how = "rises"
    if isinstance(task, Translation):
        found = _judged_in_first(task, texts.train, texts.dev)
    elif isinstance(task, Classification):
        found = judge_classifier(task, texts.train, texts.dev)
        found = _by_unknown_words(found, task.tokenizers[0], texts.dev.texts)
    else:
        assert isinstance(task, LanguageModelling)
        by_heart = history is not None and learned_by_heart(
            values, [loss for _, loss in history.losses]
        )
        found = judge_language_model(
            task, texts.train, texts.dev, scores.get("dev_loss"), by_heart
        )
        how = "falls"
    needs_steps = any(cause.code in TOO_SHORT for cause in causes)
    is_flat = len(values) >= FEWEST and not improves and not needs_steps
    # a curve that still improves says that longer helps, but not that the warm-up is too long
    said = improves and not is_stopped and not run.long_warmup
    if said:
        causes = [cause for cause in causes if cause.code not in TOO_SHORT]
    helps = [f"{cause.evidence}; {cause.remedy}" for cause in causes]
    anew = _settings_of_new_run(causes, found)
    found = _of_few_steps(found, run)
    return found.with_curve(how if improves else "", helps, is_flat, anew)


def _judged_in_first(
    task: Translation, train: ParallelText, dev: ParallelText
) -> Judgement:
    """Return the judgement of a translator; of one of several directions that of the first, from
    which nothing is learned of doubts about the others.
    """
    if not task.config.directions:
        return judge_translator(task, train, dev)
    first = task.directions[0]
    src_lang, tgt_lang = first
    chosen = task.toward(tgt_lang, src_lang)
    found = judge_translator(chosen, train.of(first), dev.of(first))
    which = f"judged from {direction(*first)}, the first of its directions"
    says = [*found.says, which]
    return replace(found, says=says, low_confidence=None, quality=None)


def _by_unknown_words(
    found: Judgement, tokenizer: Tokenizer, texts: Sequence[str]
) -> Judgement:
    """Say first that subwords would help a classifier that a linear model of words beats, where its
    own words spell much of dev byte by byte.
    """
    by_words = found.figures.get("by_words")
    if by_words is None or by_words <= found.figures["right"]:
        return found
    share = spelled_share(tokenizer, texts[:MOST_SPELLED])
    if tokenizer.settings.kind != "word" or share < MUCH_SPELLED:
        return found
    spelled = f"{share:.0%} of the bytes of dev are in words that it has not learned"
    helps = f"{spelled}; a new run with --set tokenizer.kind=bpe reads their parts"
    return replace(found, helps=[helps, *found.helps])


def _settings_of_new_run(
    causes: Sequence[Cause], found: Judgement
) -> Mapping[str, int | float]:
    """Return the settings by which the gravest cause begins a run anew; {} where it does not.

    What is usable has learned, and only a long warm-up keeps it from being trained for longer.
    """
    if found.verdict == USABLE:
        causes = [cause for cause in causes if cause.code in TOO_SHORT]
    return causes[0].settings if causes else {}


def _of_few_steps(found: Judgement, run: Run) -> Judgement:
    """Add that the clock left a run far fewer steps than it would have had without one."""
    few = left_few_steps(run)
    if not few:
        return found
    return replace(found, says=[*found.says, f"{few}: train it for longer"])


def _history(folder: Path) -> History | None:
    try:
        return read_history(folder)
    except FolderError:
        return None
