"""Executors, which have the work done; and the simplest, the reference of all others."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from weft.cluster.block import Block
from weft.cluster.work import Answered, Work, Worker


class Executor(Protocol):
    """Workers that answer blocks."""

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        """Yield every block as it is done, in any order. Raises WeftError, by kind."""
        ...


class Here:
    """This process, which answers one block after another."""

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        """Yield the blocks in their order."""
        worker = Worker(work)
        for block in blocks:
            yield worker.answer(block)

    def staying(self) -> AbstractContextManager[Executor]:
        """Yield itself, for several works."""
        return nullcontext(self)
