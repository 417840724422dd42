"""The clock of decoding_peers.py: what a decoder, a process of its own, does with its job and prints.

A job is a JSON file: sources as ids, the end symbol included; beam size; how many tokens each output must have,
or none; and what its decoder needs to know. Printed is one JSON line: sentences a second over the whole job, the
median milliseconds of one sentence alone, seconds from the start of the process to the first translation, peak
memory, and the output's ids.
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
Translate = Callable[[Sequence[Ids]], list[list[int]]]


def differences(translate: Translate, sources: Sequence[Ids], shuffles: int) -> dict[str, int]:
    """How many outputs in shuffled batches of 2 to 128 sentences are not those of the same sentences alone."""
    alone = [translate([source])[0] for source in sources]
    draw, differ, decoded = random.Random(1), 0, 0
    for _ in range(shuffles):
        order = draw.sample(range(len(sources)), len(sources))
        while order:
            size = draw.randint(2, 128)
            some, order = order[:size], order[size:]
            outputs = translate([sources[i] for i in some])
            differ += sum(output != alone[i] for i, output in zip(some, outputs, strict=True))
            decoded += len(some)
    return {"differ": differ, "decoded": decoded}


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
    outputs = translate(sources)
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
