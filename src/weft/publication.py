"""How a run becomes a model: the best weights, scored on test where there is one, with card and verdict."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from weft.data.overlap import TextHashes
from weft.model_card import model_card
from weft.model_folder import run_files
from weft.run_record import Verdict, enter_stage
from weft.tasks.task import Task
from weft.texts import Texts
from weft.training.checkpoint import Checkpoints


def publish(
    out: Path,
    task: Task[Any, Any, Any],
    checkpoints: Checkpoints,
    verdict: Verdict,
    texts: Texts[Any] | None,
    facts: Mapping[str, Any],
    command: str,
) -> None:
    """Write the model folder from the best checkpoint; its scores go into the verdict.

    `facts` have what is to be known of the `texts`, and of a teacher; without the texts themselves nothing is
    scored. `command` is what trains the model.
    """
    files = run_files(out)
    enter_stage(files.verdict, verdict, "scoring")
    _take_best(task, checkpoints, verdict)
    test_lines: list[str] = []
    if texts is not None and texts.test is not None:
        scored = task.scored(texts.test, task.evaluate(texts.test), TextHashes.load(files.train_hashes))
        verdict.test, verdict.test_summary, test_lines = scored.to_json(), scored.summary(), scored.lines()
        verdict.notes += scored.contamination
    enter_stage(files.verdict, verdict, "publishing")
    known = {**facts, "steps": verdict.step, "best_step": verdict.best_step}
    task.save(out, known, model_card(task.config, known, asdict(verdict), test_lines, command))


def _take_best(task: Task[Any, Any, Any], checkpoints: Checkpoints, verdict: Verdict) -> None:
    """Give the model the weights of the best checkpoint; where that is damaged, of the newest sound one."""
    if (best := checkpoints.load_best(verdict.best_step)) is not None:
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                parameter.copy_(best.best_weights[name])
        if verdict.best_step and best.progress.step != verdict.best_step:
            verdict.best_step, verdict.dev = best.progress.best_step, dict(best.progress.best_scores)
    verdict.notes += checkpoints.notes
    task.model.eval()
