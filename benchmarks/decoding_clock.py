"""The clock of decoding_peers.py: what a decoder, a process of its own, does with its job and
prints.

A job is a JSON file: sources as ids, the end symbol included; beam size; how many tokens each
output must have, or none; and what its decoder needs to know. Printed is one JSON line: sentences a
second over the whole job, the median milliseconds of one sentence alone, seconds from the start of
the process to the first translation, peak memory, and the output's ids.
"""

import json
import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

STARTED = time.time()
Ids = Sequence[int]
Output = tuple[list[int], float]  # ids, and their score where it is asked for
Translate = Callable[[Sequence[Ids]], list[Output]]


def by_length(batch: Translate, sources: Sequence[Ids], size: int = 64) -> list[Output]:
    """What `batch` gives for so many sources of like length at once."""
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    found: dict[int, Output] = {}
    for first in range(0, len(order), size):
        some = order[first : first + size]
        found |= zip(some, batch([sources[i] for i in some]), strict=True)
    return [found[i] for i in range(len(sources))]


def padded(sources: Sequence[Ids], pad: int) -> list[list[int]]:
    """All as long as the longest."""
    width = max(map(len, sources))
    return [[*row, *[pad] * (width - len(row))] for row in sources]


def differences(
    translate: Translate, sources: Sequence[Ids], shuffles: int
) -> dict[str, float]:
    """How many outputs in shuffled batches of 2 to 128 sentences are not those of the same
    sentences alone.

    Also how many scores, where the ids are the same, and by how much at most.
    """
    alone = [translate([source])[0] for source in sources]
    draw, differ, decoded, other_scores, largest = random.Random(1), 0, 0, 0, 0.0
    for _ in range(shuffles):
        order = draw.sample(range(len(sources)), len(sources))
        while order:
            size = draw.randint(2, 128)
            some, order = order[:size], order[size:]
            outputs = translate([sources[i] for i in some])
            decoded += len(some)
            for i, (ids, score) in zip(some, outputs, strict=True):
                if ids != alone[i][0]:
                    differ += 1
                elif score != alone[i][1]:
                    other_scores += 1
                    largest = max(largest, abs(score - alone[i][1]))
    return {
        "differ": differ,
        "decoded": decoded,
        "other_scores": other_scores,
        "largest": largest,
    }


def measure(path: str, load: Callable[[dict[str, Any]], Translate]) -> None:
    """Measure the decoder that `load` gives for a job, and print."""
    job = json.loads(Path(path).read_text("utf-8"))
    translate = load(job)
    sources = job["sources"]
    if job.get("shuffles"):
        print(json.dumps(differences(translate, sources, job["shuffles"])), flush=True)
        return
    translate(sources[:1])
    ready = time.time() - STARTED
    alone = []
    for source in sources[: job["alone"]]:
        began = time.perf_counter()
        translate([source])
        alone.append(time.perf_counter() - began)
    translate(sources[:128])
    began = time.perf_counter()
    outputs = [ids for ids, _ in translate(sources)]
    seconds = time.perf_counter() - began
    facts = {
        "sentences_per_s": len(sources) / seconds,
        "tokens_per_s": sum(map(len, outputs)) / seconds,
        "alone_ms": 1000 * statistics.median(alone) if alone else None,
        "ready_s": ready,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "outputs": outputs,
    }
    print(json.dumps(facts), flush=True)
