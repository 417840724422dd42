"""The translations of a text by many workers, for who would else write them one after another: the
same, whoever makes them.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from weft.cluster.block import divided
from weft.cluster.executor import Executor
from weft.cluster.shards import Request, write_shards
from weft.cluster.work import Answers, Sums, Work
from weft.data.corpus import SourceText
from weft.folder import durable
from weft.folder.model_files import files_of
from weft.run.translations import (
    Maker,
    Progress,
    line_of,
    say_beginning,
)

_SHARDS = ".shards"
_SENTENCES = "sentences.jsonl"


@dataclass(frozen=True)
class ByWorkers:
    """A writer of translations, as `write_translations` is one, that has workers make them in
    blocks of `block_rows` sentences.

    Finished blocks lie in a folder beside the file until it is written.
    """

    executor: Executor
    block_rows: int
    described: str

    def __call__(
        self,
        maker: Maker,
        text: SourceText,
        growing: tuple[BinaryIO, int],
        note: Callable[[str], None],
        progress: Progress,
    ) -> None:
        """Write a JSON object for each translation; blocks that are finished are not made again."""
        file, _ = growing
        folder = Path(f"{file.name}{_SHARDS}")
        durable.make_folder(folder)
        sentences = folder / _SENTENCES
        rows = [json.dumps(line) for line in text.lines]
        durable.write_text(sentences, "".join(f"{row}\n" for row in rows))
        say_beginning(maker, text, f", by {self.described}", note)
        file.truncate(0)
        with progress(len(rows) * maker.search.times, 0) as advance:
            for time in range(1, maker.search.times + 1):
                self._write(folder / str(time), sentences, maker, time, file, advance)
        file.flush()
        shutil.rmtree(folder)

    def _write(
        self,
        folder: Path,
        sentences: Path,
        maker: Maker,
        time: int,
        file: BinaryIO,
        advance: Callable[[], None],
    ) -> None:
        """Append the translations of one time to the file."""
        division = divided([sentences], self.block_rows)
        work = _work(maker, time)
        request = Request(work, division, self.block_rows, ".jsonl")

        def several(count: int) -> None:
            for _ in range(count):
                advance()

        shards = write_shards(folder, request, self.executor, several)
        for content in shards.contents():
            file.write(content)


def _work(maker: Maker, time: int) -> Work:
    """Return the work of translating sentences for the n-th time."""
    there = replace(maker, folder=maker.folder.resolve())
    settings = {
        "search": maker.search.describe(),
        "time": time,
        "to": maker.config.tgt_lang,
    }
    opening = partial(open_making, there, time)
    digest = files_of(there.folder).digest()
    return Work("make", {there.folder: digest}, {}, settings, opening)


def open_making(maker: Maker, time: int) -> Answers:
    """Open a translator; return what makes lines of translations by it."""
    translator = maker.load().predictor()
    settings = maker.search.settings(time)

    def answers(lines: Sequence[str], first: int) -> Iterator[tuple[str, Sums]]:
        sentences = [json.loads(line) for line in lines]
        for found in translator.translate_stream(sentences, settings=settings):
            yield line_of(found), {}

    return answers
