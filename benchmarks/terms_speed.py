"""The time of a search that keeps to a glossary, beside the search without one:
`python benchmarks/terms_speed.py FOLDER GLOSSARY TEXT [--lines N] [--rounds N]`.

TEXT has a sentence a line, of which those with a term are taken. They are translated all at once
and one at a time, in turns with and without the glossary, with a beam of 5 and greedily. The table
has sentences a second, and the ratio of both speeds: its median over rounds, the lowest and the
highest. Nothing else should run meanwhile.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from side_by_side import refuse_missing

from weft.data.glossary import read_glossary
from weft.predict.translator import Translator
from weft.tasks.opening import load_task

ALONE = 100  # sentences that are translated one at a time


def speed(
    model: Translator, sentences: Sequence[str], beam: int, at_once: bool
) -> float:
    """Return how many sentences a second a model translates."""
    pieces = [list(sentences)] if at_once else [[one] for one in sentences]
    began = time.perf_counter()
    for piece in pieces:
        model.translate(piece, beam_size=beam)
    return len(sentences) / (time.perf_counter() - began)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("glossary", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    refuse_missing(asked.glossary, asked.text)
    task: Any = load_task(asked.folder, "float32", "auto")
    plain = task.predictor()
    pair = task.config.src_lang, task.config.tgt_lang
    glossary = read_glossary(asked.glossary, *pair)
    bound = plain.with_glossary(glossary, "search")
    lines = asked.text.read_text("utf-8").split("\n")
    sentences = [line for line in lines if glossary.find(line)][: asked.lines]
    terms = sum(len(glossary.find(line)) for line in sentences)
    print(f"{len(sentences)} sentences, {terms} terms\n")
    print(
        "| translated | without, /s | with, /s | with / without | lowest to highest |"
    )
    print("|---|---|---|---|---|")
    for beam in (5, 1):
        for at_once in (True, False):
            some = sentences if at_once else sentences[:ALONE]
            speeds: list[tuple[float, float]] = []
            speed(bound, some[:20], beam, at_once)
            for _ in range(asked.rounds):
                without = speed(plain, some, beam, at_once)
                speeds.append((without, speed(bound, some, beam, at_once)))
            ratios = [there / here for here, there in speeds]
            print(row(beam, at_once, speeds, ratios), flush=True)


def row(
    beam: int,
    at_once: bool,
    speeds: Sequence[tuple[float, float]],
    ratios: Sequence[float],
) -> str:
    """Return a row of the table."""
    how = "at once" if at_once else "one at a time"
    without, bound = (statistics.median(each) for each in zip(*speeds, strict=True))
    span = f"{min(ratios):.2f} to {max(ratios):.2f}"
    cells = [f"beam {beam}, {how}", f"{without:,.0f}", f"{bound:,.0f}"]
    return f"| {' | '.join(cells)} | {statistics.median(ratios):.2f} | {span} |"


if __name__ == "__main__":
    main()
