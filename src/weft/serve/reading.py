"""Uploaded documents: read and written apart from the server where they could harm it."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from weft.documents import apart
from weft.documents.document import Document, Reading, Translated
from weft.documents.driver import mended, needs_alignment, unchanged, write_mended
from weft.documents.kept import ReadDocument
from weft.documents.numbers import Numbers
from weft.documents.registry import Format
from weft.errors import UsageError

SECONDS = 90.0  # for reading, and again for writing
AT_ONCE = 4  # processes


@dataclass(frozen=True)
class Filled:
    """A written document, and the numbers that differ in it, or did, by its segments."""

    content: bytes
    numbers: Mapping[int, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """A document that is open: the texts of its segments, and whether an alignment is of use."""

    texts: Sequence[str]
    needs_alignment: bool

    async def read_by(self, forms: Collection[str]) -> "Opened":
        """Return it as a model reads it that knows these forms of placeholders, in its stead."""
        raise NotImplementedError

    async def written(self, translated: Sequence[Translated] | None) -> Filled:
        """Return the document with the translations of its texts, each once in their order; None:
        as it is.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Here(Opened):
    """A document in this process."""

    document: Document[bytes]

    @classmethod
    def of(cls, document: Document[bytes]) -> "Here":
        """Return a document as it is read."""
        texts = [segment.text for segment in document.segments]
        return cls(texts, needs_alignment(document), document)

    async def read_by(self, forms: Collection[str]) -> "Here":
        """Return it as a model reads it."""
        if not forms:
            return self
        return await asyncio.to_thread(Here.of, ReadDocument(self.document, forms))

    async def written(self, translated: Sequence[Translated] | None) -> Filled:
        """Write it in a thread."""
        return await asyncio.to_thread(self._filled, translated)

    def _filled(self, translated: Sequence[Translated] | None) -> Filled:
        if translated is None:
            return Filled(unchanged(self.document))
        every = mended(self.document, translated)
        content = write_mended(self.document, every)
        numbers = {i: one.numbers for i, one in enumerate(every) if one.numbers}
        return Filled(content, numbers)


@dataclass(frozen=True)
class Apart(Opened):
    """A document in a process of its own."""

    process: Process

    @classmethod
    async def asked(cls, process: Process, message: bytes) -> "Apart":
        """Return what a process answers that it reads. Raises UsageError."""
        value, _ = await _answer(process, message)
        return cls(value["texts"], value["needs_alignment"], process)

    async def read_by(self, forms: Collection[str]) -> "Apart":
        """Let the process read it as a model does. Raises UsageError."""
        return await Apart.asked(self.process, apart.known(forms)) if forms else self

    async def written(self, translated: Sequence[Translated] | None) -> Filled:
        """Let the process write it. Raises UsageError."""
        value, content = await _answer(self.process, apart.told(translated))
        return Filled(content, apart.numbers_in(value))


class Reader:
    """Opens documents; the processes of at most `AT_ONCE` are there at a time."""

    def __init__(self) -> None:
        """Begin with none."""
        self._room = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def open(
        self, row: Format, content: bytes, reading: Reading
    ) -> AsyncIterator[Opened]:
        """Open a document for as long as it is used; its process ends with that.

        What is a text, or HTML, is read here: that is done in time and memory proportional to its
        size. Raises UsageError for what cannot be read, or not within the bounds.
        """
        if row.read is not None:
            document = await asyncio.to_thread(row.open, content, reading)
            yield Here.of(document)
            return
        async with self._room:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "weft.documents.apart",
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
            )
            try:
                yield await Apart.asked(
                    process, apart.asked(row.name, reading, content)
                )
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _answer(process: Process, message: bytes) -> tuple[Any, bytes]:
    """Send a message and read the answer. Raises UsageError for what it says is wrong, and where
    the process has ended or is too slow.
    """
    too_much = "the file takes too much time or memory to read; divide it"
    try:
        async with asyncio.timeout(SECONDS):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(message)
            await process.stdin.drain()
            size, rest = apart.lengths(await process.stdout.readexactly(apart.HEAD))
            value = json.loads(await process.stdout.readexactly(size))
            content = await process.stdout.readexactly(rest)
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
        raise UsageError(too_much) from None
    if "error" in value:
        raise UsageError(value["error"])
    return value, content
