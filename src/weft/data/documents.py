"""Documents for a language model: read from text files, kept with their origin, held out,
fingerprinted.

DATA is UTF-8 text, plain or packed with gzip. One chooses what ends a document: blank lines, lines,
or files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Literal

from weft.console import stages
from weft.data.base import Corpus, join
from weft.data.formats.filetype import accepted_type
from weft.data.formats.lines import read_lines, read_text
from weft.data.formats.named_sides import text_in
from weft.data.formats.registry import FILE_TYPES
from weft.data.formats.shards import shards_of
from weft.data.formats.table import is_parquet, read_table
from weft.data.split import fold, keyed_hash
from weft.errors import DataError, UsageError

Ends = Literal["blank-line", "file", "line"]

BLANK = "blank"
TEXT_COLUMN = "text"  # of files of columns
_WANTED = "plain text for a language model"
MIN_DOCUMENTS = 20  # below this whole documents would make too rough a share
_NEAR_CHARS = 1_000  # within which a cut is put off to a line end
_REPEATS_SHARE = 20  # repeats of one text may fill a twentieth of a held-out part


@dataclass(frozen=True, kw_only=True)
class Documents(Corpus):
    """Texts with their origin; lines inside a text end with LF, and none is of white space alone.

    A document's line is the first of its text.
    """

    COLUMNS = ("texts",)

    texts: list[str]

    @property
    def num_bytes(self) -> int:
        """Count the UTF-8 bytes of all texts."""
        return sum(
            len(text) if text.isascii() else len(_utf8(text)) for text in self.texts
        )


def read_documents(
    data: str | Path | Sequence[str | Path], documents: Ends, raw: bool = False
) -> Documents:
    """Read and join every DATA.

    "blank-line": a document is a run of lines that have more than white space. "file": all of a
    file, its final line end included. "line": every line that has more than white space. `raw`:
    HTML, JSON and the like are the text itself. Raises DataError, with the place where it has one,
    for whatever cannot be read as text, and for a file without any.
    """
    items = [data] if isinstance(data, str | Path) else data
    if not items:
        raise UsageError("no data given; name a file of text")
    if not all(str(item).strip() for item in items):
        raise UsageError("an empty name among the data; name a file")
    files = [file for item in items for file in shards_of(Path(item)) or [Path(item)]]
    return join([_read_file(file, documents, raw) for file in files])


def from_documents(texts: Iterable[str], name: str) -> Documents:
    """Make documents of texts that come from no file, by the same rules; line n is the n-th
    text.
    """
    lines = (text.replace("\r\n", "\n") for text in texts)
    return _keep(enumerate(lines, start=1), name)


def fingerprint_documents(documents: Documents) -> str:
    """Hash the texts, their bounds and their order (SHA-256); file names and line numbers do not
    count.
    """
    digest = sha256(f"{len(documents)}\n".encode())
    for text in documents.texts:
        content = _utf8(text)
        digest.update(f"{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def split_documents(
    documents: Documents, dev_share: float, test_share: float, seed: int
) -> tuple[Documents, Documents | None, Documents | None]:
    """Split the text into training, dev and test, by shares of all characters; None for a share of
    0 and where no text is left.

    Of 20 documents or more whole ones are held out, by seed and content alone, and repeats stay
    together: so the shares are rough. Of fewer the beginning of the text is dev and its end test,
    so that the text goes on from training into test; the cuts go after a line end where one follows
    within 1,000 characters (and leaves dev at most twice its size), else to that very character,
    inside a document or not. Raises UsageError if nothing would be left to train on.
    """
    divide = _hold_out if len(documents) >= MIN_DOCUMENTS else _cut_off
    train, dev, test = divide(documents, dev_share, test_share, seed)
    if train is None:
        raise UsageError(
            f"data.dev_share = {dev_share} and data.test_share = {test_share} leave no text for training"
        )
    return train, dev, test


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read_file(path: Path, documents: Ends, raw: bool) -> Documents:
    stages.enter(f"reading {path}")
    if is_parquet(path):
        return _keep(_texts_of_column(path), str(path))
    learn = "or add --set data.raw=true to train on it unchanged"
    readable = [kind for kind in FILE_TYPES.values() if kind.documents != "no"]
    accepted = [kind.name for kind in readable if raw or kind.documents == "yes"]
    remedies = {kind.name: f"{kind.remedy}, {learn}" for kind in readable}
    accepted_type(path, accepted, _WANTED, remedies)
    readers = {"blank-line": _runs_of_lines, "file": _whole, "line": _single_lines}
    text = _keep(readers[documents](path), str(path))
    if documents == "blank-line" and len(text) == 1 and "\n" in text.texts[0]:
        text.notes.append(
            f"{path}: no blank line between its lines: it is one document"
        )
    return text


def _texts_of_column(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each row of a file of columns, and its text: a document."""
    for number, row in read_table(path, [TEXT_COLUMN], Counter(), []):
        text = text_in(f"{path}:{number}", row[TEXT_COLUMN], TEXT_COLUMN)
        yield number, text.replace("\r\n", "\n")


def _runs_of_lines(path: Path) -> Iterator[tuple[int, str]]:
    run: list[str] = []
    for number, line in enumerate(chain(read_lines(path), [""]), start=1):
        if line and not line.isspace():
            run.append(line)
        elif run:
            yield number - len(run), "\n".join(run)
            run = []


def _whole(path: Path) -> Iterator[tuple[int, str]]:
    yield 1, "".join(read_text(path)).replace("\r\n", "\n")


def _single_lines(path: Path) -> Iterator[tuple[int, str]]:
    return enumerate(read_lines(path), start=1)


def _keep(numbered: Iterable[tuple[int, str]], name: str) -> Documents:
    """Collect the texts that are not blank; raises DataError if all are."""
    texts: list[str] = []
    lines: list[int] = []
    num_blank = 0
    for line, text in stages.counted(numbered, "documents"):
        if text and not text.isspace():
            texts.append(text)
            lines.append(line)
        else:
            num_blank += 1
    if not texts:
        raise DataError(
            f"{name}: holds no text, only white space; give a file with text"
        )
    return Documents(
        texts=texts,
        lines=lines,
        files=[name],
        file_of=[0] * len(texts),
        dropped={BLANK: num_blank} if num_blank else {},
    )


Parts = tuple[Documents | None, Documents | None, Documents | None]


def _hold_out(
    whole: Documents, dev_share: float, test_share: float, seed: int
) -> Parts:
    """Hold out whole documents, in the order of a keyed hash of their folded text, which repeats
    have in common.
    """
    groups: dict[bytes, list[int]] = {}
    for i, text in enumerate(whole.texts):
        groups.setdefault(keyed_hash(seed, fold(text)), []).append(i)
    sizes = [len(text) for text in whole.texts]
    order = [groups[key] for key in sorted(groups)]
    test, order = _take(order, sizes, test_share * sum(sizes))
    dev, order = _take(order, sizes, dev_share * sum(sizes))
    train = [i for group in order for i in group]
    return _selected(whole, train), _selected(whole, dev), _selected(whole, test)


def _selected(whole: Documents, indices: Sequence[int]) -> Documents | None:
    return whole.select(sorted(indices)) if indices else None


def _take(
    order: list[list[int]], sizes: Sequence[int], wanted: float
) -> tuple[list[int], list[list[int]]]:
    """Fill one part with groups from the front, each that brings it nearer to its size; return it,
    and what is left.

    Large groups of repeats are taken only where the part stays unfilled without them.
    """
    taken: list[int] = []
    room = wanted
    for largest in (wanted / _REPEATS_SHARE, wanted):
        left = []
        for group in order:
            size = sum(sizes[i] for i in group)
            if size < 2 * room and (len(group) == 1 or size <= largest):
                taken += group
                room -= size
            else:
                left.append(group)
        order = left
    return taken, order


def _cut_off(
    whole: Documents, dev_share: float, test_share: float, _seed: int
) -> Parts:
    """Cut stretches off the text as it stands; positions count the characters of all documents in a
    row.
    """
    total = sum(map(len, whole.texts))
    dev_size = int(total * dev_share)
    dev_end = _cut_near(whole.texts, dev_size, min(_NEAR_CHARS, dev_size))
    train_end = int(total * (1 - test_share))
    test_start = max(dev_end, _cut_near(whole.texts, train_end, _NEAR_CHARS))
    return (
        _stretch(whole, dev_end, test_start),
        _stretch(whole, 0, dev_end),
        _stretch(whole, test_start, total),
    )


def _cut_near(texts: Sequence[str], position: int, near: int) -> int:
    """Find where a line or a document, but the last, ends less than `near` after a position; else
    return the position.
    """
    start = 0
    for number, text in enumerate(texts, start=1):
        inside = position - start
        if inside <= 0:  # before the first character nothing is cut off
            return 0
        if inside <= len(text):
            line_end = text.find("\n", inside - 1, inside + near)
            if line_end >= 0:
                return start + line_end + 1
            ends_near = len(text) - inside < near and number < len(texts)
            return start + len(text) if ends_near else position
        start += len(text)
    return position


def _stretch(whole: Documents, first: int, last: int) -> Documents | None:
    """Cut out the text between two positions, and the documents at its ends; return None where that
    is no text.
    """
    part = Documents(texts=[], lines=[], files=whole.files, file_of=[], dropped={})
    start = 0
    for text, line, file in zip(whole.texts, whole.lines, whole.file_of, strict=True):
        begin = max(first - start, 0)
        end = max(last - start, 0)
        piece = text[begin:end]
        if piece and not piece.isspace():
            part.texts.append(piece)
            part.lines.append(line + text.count("\n", 0, begin))
            part.file_of.append(file)
        start += len(text)
    return part if part.texts else None
