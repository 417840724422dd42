"""A model while it learned: the same text through the steps that its run has kept.

What a run keeps is decided by `training.keep_checkpoints`. A model learns fast at first and slowly
later, so steps are chosen evenly by their logarithms.
"""

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

from weft.errors import FolderError
from weft.folder.durable import MANIFEST
from weft.folder.layout import RunFolder
from weft.folder.model_files import files_of
from weft.folder.snapshots import Kept, kept_weights, read_kept
from weft.inspection.classification import ClassificationInspection
from weft.inspection.history import History, read_history
from weft.inspection.look import Inspection, inspect_text
from weft.inspection.own_pass import with_weights
from weft.inspection.several import AnyTask, Several, inspect_again
from weft.inspection.tokens import USUAL, Limits
from weft.inspection.translation import TranslationInspection
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.translation import Translation

MOST_STEPS = 8  # in a page, the finished model's among them
MOST_POINTS = 200  # of the curve of the training loss
MOST_SAMPLES = 2  # texts of run/samples.jsonl
NEW_TOKENS = 24  # that a language model writes on at each step
# What all but the finished model do without; the first row is the same for all.
LEFT_OUT = frozenset(
    ("model", "cuts", "beam", "alignment", "looks", "nearest", "choices", "states")
)
REMEDY = 'a run keeps steps of its way with --set training.keep_checkpoints="doublings"'


def inspect_learning(
    folder: Path,
    task: AnyTask,
    text: str,
    beam_size: int | None = None,
    limits: Limits = USUAL,
) -> Several:
    """Inspect a text with the model in a folder and with what its run has kept of earlier steps.

    A translator writes the translation of the finished model at every step, so that the same tokens
    are compared; `own` is what it would have written by itself, by greedy search. Steps that cannot
    be read are left out, with a note. Raises UsageError for a text with nothing in it.
    """
    final = inspect_text(task, text, limits, beam_size)
    last = _step_of(folder)
    kept = [one for one in kept_weights(RunFolder(folder)) if one.step != last]
    kept = spread(kept, last, MOST_STEPS)
    steps = [last]
    found = [final]
    own = [own_answer(task, final)]
    notes = [*final.notes]
    for one in kept:
        try:
            earlier = with_weights(task, read_kept(folder, one))
        except FolderError as error:
            notes.append(f"step {one.step:,} is left out: {error}")
            continue
        steps.append(one.step)
        found.append(inspect_again(earlier, final, limits))
        own.append(own_answer(earlier, found[-1]))
    if len(found) == 1:
        notes.append(f"the run in {folder} has kept no earlier step; {REMEDY}")
    order = sorted(range(len(steps)), key=lambda i: steps[i])
    facts = {
        "steps": [steps[i] for i in order],
        "finished": order.index(0),
        "own": [own[i] for i in order],
        **_curves(folder),
        "samples": samples_of(folder),
    }
    return Several(
        "checkpoints",
        [f"{step:,}" for step in facts["steps"]],
        [found[i] for i in order],
        facts,
        notes,
        LEFT_OUT,
        order.index(0),
    )


def spread(kept: Sequence[Kept], finished: int, count: int) -> list[Kept]:
    """Choose so many of them that with the `finished` step they are `count`, evenly by the
    logarithm of their steps; the first one and the last one stay.
    """
    left = [*kept]
    while len(left) >= count:
        steps = sorted([finished, *(one.step for one in left)])
        inner = [one for one in left if steps[0] < one.step < steps[-1]]
        if not inner:
            break
        left.remove(min(inner, key=lambda one: _gap(steps, one.step)))
    return left


def _gap(steps: Sequence[int], step: int) -> float:
    """Return how far the neighbours of a step are apart: where it is least, a step is missed the
    least.
    """
    place = steps.index(step)
    return log(steps[place + 1] + 1) - log(steps[place - 1] + 1)


def own_answer(task: AnyTask, found: Inspection) -> str:
    """Return what a model makes by itself of the text that it was inspected with: its greedy
    translation, what it writes next, or its label.
    """
    if isinstance(task, Translation):
        assert isinstance(found, TranslationInspection)
        marks = task.tokenizers[0].mark_ids
        plain = [i for i in found.src_ids if i not in marks]
        ids = task.predictor().search(plain, 1).ids
        return " ".join(task.tokenizers[1].decode(ids).split())
    if isinstance(task, LanguageModelling):
        answer = task.predictor().generate(
            found.text, max_new_tokens=NEW_TOKENS, temperature=0.0
        )
        return str(answer.text)
    assert isinstance(found, ClassificationInspection)
    return found.labels[0]


def samples_of(folder: Path) -> list[dict[str, Any]]:
    """Return what a run wrote of its first dev texts while it trained, each with its step; nothing
    where it kept none.
    """
    path = RunFolder(folder).samples
    rows: list[dict[str, Any]] = []
    texts: list[str] = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            row = json.loads(line)
            text = row.get("src") or row.get("prompt") or row["text"]
            answer = row.get("translation", row.get("predicted", row.get("text")))
            sample = {"step": int(row["step"]), "text": str(text), "answer": answer}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # an incomplete line of a run that was killed
        if text not in texts and len(texts) < MOST_SAMPLES:
            texts.append(text)
        if text in texts:
            if not isinstance(answer, str):
                sample["answer"] = ", ".join(map(str, answer))
            rows.append(sample)
    return rows


def _step_of(folder: Path) -> int:
    """Return the step whose weights the model in a folder has; that of the run's end where that is
    not known.
    """
    manifest = files_of(folder).json(MANIFEST)
    facts = manifest if isinstance(manifest, dict) else {}
    steps = (facts.get("best_step"), facts.get("steps"))
    return next((step for step in steps if isinstance(step, int) and step), 0)


def _curves(folder: Path) -> dict[str, Any]:
    """Return the losses that a run has logged: `losses` on dev, `training` in training, and `score`
    by which the best step was chosen, all with their steps.
    """
    try:
        history = read_history(folder)
    except FolderError:
        return {"losses": [], "training": []}
    return {"losses": _dev_losses(history), "training": _thinned(history.losses)}


def _dev_losses(history: History) -> list[list[float]]:
    key = history.loss_key
    if key is None:
        return []
    return [[step, round(y, 4)] for step, y in zip(*history.values(key), strict=True)]


def _thinned(losses: Sequence[tuple[int, float]]) -> list[list[float]]:
    every = -(-len(losses) // MOST_POINTS) or 1
    return [[step, round(loss, 4)] for step, loss in losses[::every]]
