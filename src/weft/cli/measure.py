"""Verbs that measure a model: evaluate, score."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.streams import reading_lines, sink
from weft.cli.use import AsJson, BeamSize, Folder
from weft.errors import UsageError


def evaluate(
    folder: Folder,
    data: Annotated[list[str], typer.Argument(help="Text of the kind that the model was trained on.")],
    beam_size: BeamSize = None,
    as_json: AsJson = False,
) -> None:
    """Score a model on text: BLEU and chrF; or loss and perplexity; or accuracy and F1."""
    from weft.data.overlap import TextHashes
    from weft.machine import choose_machine
    from weft.model_folder import run_files
    from weft.tasks.choice import load_task
    from weft.tasks.translation import Translation

    task = load_task(folder, choose_machine("float32"))
    text = task.read(data)
    if isinstance(task, Translation):
        scores: Any = task.evaluate(text, beam_size=beam_size)
    elif beam_size is not None:
        raise UsageError(f"--beam-size: {folder} holds a model for {task.name}, which searches nothing")
    else:
        scores = task.evaluate(text)
    hashes = run_files(folder).train_hashes
    scored = task.scored(text, scores, TextHashes.load(hashes) if hashes.is_file() else None)
    found = scored.to_json()
    notes = [*_reading_notes(text, task.unit), *found.get("notes", ())]
    if not hashes.is_file():
        notes.append("not checked for overlap with training: the folder has no run/train-hashes.npy")
    if as_json:
        print(json.dumps({**found, "notes": [*scored.contamination, *notes]}, ensure_ascii=False))
        return
    for line in [*scored.lines(), *(f"note: {note}" for note in notes)]:
        print(line)


def score(
    folder: Folder,
    data: Annotated[Path | None, typer.Argument(help="One text a line; else standard input.")] = None,
    as_json: AsJson = False,
) -> None:
    """How likely a language model finds each line: log-probability, perplexity and text, by tabs."""
    from weft.machine import choose_machine
    from weft.tasks.language_modelling import LanguageModelling

    if data is not None and not data.is_file():
        raise UsageError(f"{data}: no such file")
    model = LanguageModelling.load(folder, choose_machine("float32")).predictor()
    total, num_tokens = 0.0, 0
    with reading_lines(None, data, None) as source, sink(None) as out:
        for line in source.lines:
            (found,) = model.score(line)
            total, num_tokens = total + found.log_prob, num_tokens + found.num_tokens
            shown = f"{found.log_prob:.4f}\t{found.perplexity:.2f}\t{line}"
            out.write((json.dumps(found.to_json(), ensure_ascii=False) if as_json else shown) + "\n")
            if source.chunk == 1:  # somebody waits for it
                out.flush()
    if num_tokens:
        print(f"{num_tokens:,} tokens, mean {total / num_tokens:.4f} nats a token", file=sys.stderr)


def _reading_notes(text: Any, unit: str) -> list[str]:
    from weft.data.check.finding import counted

    return [*text.notes, *(f"left out: {counted(n, unit)} ({why})" for why, n in text.dropped.items() if n)]
