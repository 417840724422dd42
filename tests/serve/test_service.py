"""The service: what a request still needs once its work is done is never refused."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.serve.catalogue import Catalogue, Named, open_model
from weft.serve.jobs import Caller, Job
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.refusals import Overloaded
from weft.serve.running import Runner
from weft.serve.service import Service

# put together by a thread of the pool
LONG = [" ".join(f"The cat sees {n} dogs." for n in range(150))]


class FullSoon(Pool):
    """A pool whose line is full as soon as texts have been translated."""

    async def run(self, runner: Runner, jobs: Sequence[Job]) -> list[Any]:
        results = await super().run(runner, jobs)
        if len(jobs) > 1:
            self.line.max_waiting = -1
        return results


def test_a_translation_is_put_together_however_full_the_line_is(
    tiny_folder: Path,
) -> None:
    model = open_model(Named("en-de", tiny_folder))
    pool = FullSoon(1)
    service = Service(Catalogue([model]), pool, Limits())

    async def ask() -> None:
        caller = Caller("one", time.monotonic() + 60)
        (found,) = await service.translate(LONG, model.src, model.tgt, caller)
        assert found.prediction.segments > 1
        assert pool.line.max_waiting == -1, "the line was not full"
        other = Caller("one", time.monotonic() + 60)
        with pytest.raises(Overloaded):
            await service.translate(LONG, model.src, model.tgt, other)

    try:
        asyncio.run(ask())
    finally:
        pool.stop()
