"""Encoded text on disk: flat arrays of ids plus offsets, memory-mapped, so memory stays flat.

A `ParallelStore` holds pairs, a `TextStore` single texts. A store is made once and reused while
text, tokenizers and limits are the same: they are its key. It is written whole or not at all; one
that is damaged or from other text is made anew.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from weft.console import stages
from weft.data.column import Column
from weft.data.encoding import (
    EncodedSide,
    encode_large,
    encode_side,
    forget_encoded,
)
from weft.data.hinting import Hinting
from weft.data.marks import Marking
from weft.data.rows import IdRows
from weft.data.tokenizer import Tokenizer
from weft.errors import DataError, FolderError
from weft.folder.durable import read_manifest, remove_leftovers, writing_folder

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]
Lens = npt.NDArray[np.int32]
TooLong = Literal["cut", "windows", "keep"]

FORMAT = 1
EMPTY = "empty"
LONG_TEXT = 100_000  # characters; a longer text is encoded by itself, in bounded memory
_CHUNK = 10_000


class ParallelStore:
    """Pairs of id sequences, without bos and eos at their ends. `rows` are their numbers in the
    text that was given; `hinted` counts the hints in the sources.
    """

    def __init__(self, folder: Path) -> None:
        """Map the arrays of a store folder. Raises FolderError where they are damaged."""
        facts = read_manifest(folder)
        self._folder = folder
        self.key = str(facts.get("key"))
        self.dropped: dict[str, int] = dict(facts.get("dropped", {}))
        self.hinted: dict[str, int] = dict(facts.get("hinted", {}))
        self.rows: Positions = _map(folder / "rows.npy")
        self.src_ids: Ids = _map(folder / "src_ids.npy")
        self.tgt_ids: Ids = _map(folder / "tgt_ids.npy")
        self.src_offsets: Positions = _map(folder / "src_offsets.npy")
        self.tgt_offsets: Positions = _map(folder / "tgt_offsets.npy")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def src_lens(self) -> Lens:
        """Count the source ids of each pair; what is read for it does not stay in memory."""
        return _lens_between(_map(self._folder / "src_offsets.npy"))

    @property
    def tgt_lens(self) -> Lens:
        """Count the target ids of each pair, likewise."""
        return _lens_between(_map(self._folder / "tgt_offsets.npy"))

    def src(self, i: int) -> Ids:
        """Return the source ids of pair i."""
        return self.src_ids[self.src_offsets[i] : self.src_offsets[i + 1]]

    def tgt(self, i: int) -> Ids:
        """Return the target ids of pair i."""
        return self.tgt_ids[self.tgt_offsets[i] : self.tgt_offsets[i + 1]]

    @property
    def num_src_tokens(self) -> int:
        """Count the source ids of all pairs, without bos and eos."""
        return len(self.src_ids)

    @property
    def num_tgt_tokens(self) -> int:
        """Count the target ids of all pairs, without bos and eos."""
        return len(self.tgt_ids)


class TextStore:
    """Id sequences of single texts, without bos and eos.

    `rows` are the numbers of their texts among those given; a text that became several windows has
    several rows. `num_cut` counts the texts that did not fit. `num_bytes` is the UTF-8 of the kept
    texts as they were given, of those that were cut as well: what bits per byte are counted over.
    """

    def __init__(self, folder: Path) -> None:
        """Map the arrays of a store folder. Raises FolderError where they are damaged."""
        facts = read_manifest(folder)
        self.key = str(facts.get("key"))
        self.dropped: dict[str, int] = dict(facts.get("dropped", {}))
        self.num_cut = int(facts.get("num_cut", 0))
        self.num_bytes = int(facts.get("num_bytes", 0))
        self.rows: Positions = _map(folder / "rows.npy")
        self.ids: Ids = _map(folder / "ids.npy")
        self.offsets: Positions = _map(folder / "offsets.npy")
        self.lens: Positions = np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.rows)

    def ids_of(self, i: int) -> Ids:
        """Return the ids of row i."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def num_tokens(self) -> int:
        """Count the ids of all rows, without bos and eos."""
        return len(self.ids)


def prepare_store(
    folder: Path,
    name: str,
    texts: tuple[Iterable[str], Iterable[str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    max_len: int,
    limiting_key: str = "data.max_len",
    text_key: str,
    hinting: Hinting | None = None,
    marking: Marking | None = None,
) -> ParallelStore:
    """Return the store `folder/name` of these pairs, made now or reused; `text_key` stands for the
    text's content.

    `texts` and `tokenizers` are those of source and target. A pair is dropped, and counted, when
    one side has nothing but white space, or more than `max_len` ids, as many as the recipe's
    `limiting_key` allows. With `hinting`, hints are written into the sources, and with `marking`
    marks before them.

    Raises DataError where the sides have different numbers of lines, FolderError where nothing can
    be written.
    """
    src, tgt = tokenizers
    too_long = f"longer than {limiting_key}"
    dropped = {too_long: 0, EMPTY: 0}
    facts = {
        "key": _key(text_key, src.sha256, tgt.sha256, max_len),
        "dropped": dropped,
    }
    if hinting is not None:
        facts["key"] = _key(facts["key"], *hinting.key)
        facts["hinted"] = hinting.counts
    path = folder / name
    limit = _Limit(max_len, too_long)
    if isinstance(texts[0], Column) and isinstance(texts[1], Column):
        whole = _key(text_key, src.sha256, tgt.sha256)
        sides = encode_large((texts[0], texts[1]), tokenizers, path, whole)
    else:
        sides = _encoded_sides(_pair_chunks(*texts, name), tokenizers)
    encoded = _encoded_pairs(sides, limit, dropped)
    if hinting is not None:
        encoded = _with_hints(encoded, hinting)
    if marking is not None:
        facts["key"] = _key(facts["key"], *marking.key)
        encoded = _with_marks(encoded, marking)
    by_name = {"src_": src, "tgt_": tgt}
    store = _prepare(ParallelStore, path, facts, by_name, encoded, "pair")
    forget_encoded(path)
    return store


def prepare_text_store(
    folder: Path,
    name: str,
    texts: Iterable[str],
    tokenizer: Tokenizer,
    *,
    max_len: int | None,
    too_long: TooLong,
    text_key: str,
) -> TextStore:
    """Return the store `folder/name` of these texts, made now or reused; `text_key` stands for the
    text's content.

    A text of more than `max_len` ids is cut off there ("cut"), becomes consecutive rows of at most
    `max_len` ids ("windows"), or stays whole ("keep": `max_len` means nothing then). One of white
    space alone is dropped, and counted. Raises DataError where no text is left, FolderError where
    nothing can be written.
    """
    limit = None if too_long == "keep" else max_len
    facts: dict[str, Any] = {
        "key": _key(text_key, tokenizer.sha256, limit, too_long),
        "dropped": {EMPTY: 0},
        "num_cut": 0,
        "num_bytes": 0,
    }
    encoded = _encoded_texts(_text_chunks(texts), tokenizer, limit, too_long, facts)
    return _prepare(TextStore, folder / name, facts, {"": tokenizer}, encoded, "text")


@dataclass(frozen=True)
class _Encoded:
    """Rows to be written: the numbers of their texts, and their ids by side."""

    rows: npt.ArrayLike
    sides: list[IdRows]


S = TypeVar("S", ParallelStore, TextStore)


def _prepare(
    kind: type[S],
    path: Path,
    facts: Mapping[str, Any],
    tokenizers: Mapping[str, Tokenizer],
    encoded: Iterator[_Encoded],
    unit: str,
) -> S:
    """Open the store if it can be reused, else write it. `facts` are completed while `encoded` is
    read, for a new one alone.
    """
    old = _reusable(kind, path, facts["key"])
    if old is not None:
        return old
    _make_room(path.parent, path)
    with writing_folder(path, facts) as temporary:
        with _Writer(temporary, tokenizers) as writer:
            for part in encoded:
                writer.append(part)
        if not writer.num_rows:
            counts = ", ".join(
                f"{count:,} {reason}"
                for reason, count in facts["dropped"].items()
                if count
            )
            raise DataError(
                f"{path.name}: no {unit} is left to use ({counts or 'there is none'}); check the data"
            )
    return kind(path)


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()


def _reusable(kind: type[S], path: Path, key: str) -> S | None:
    """Return the store that lies there, if it is whole and has this key."""
    try:
        store = kind(path)
    except FolderError:
        return None
    return store if store.key == key else None


def _make_room(folder: Path, path: Path) -> None:
    """Remove an old store and what an interrupted write left behind."""
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise FolderError(
            f"{path}: an old store cannot be removed ({error.strerror})"
        ) from None
    if folder.exists():
        remove_leftovers(folder)


def _pair_chunks(
    src_texts: Iterable[str], tgt_texts: Iterable[str], name: str
) -> Iterator[list[tuple[str, str]]]:
    """Yield pairs in lists of bounded length. Raises DataError where one side ends before the
    other.
    """
    pairs = zip_longest(src_texts, tgt_texts)
    while chunk := list(islice(pairs, _CHUNK)):
        if None in chunk[-1]:
            raise DataError(
                f"{name}: source and target have different numbers of lines; align them first"
            )
        yield chunk


def _text_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in lists of bounded length and size; one of more than LONG_TEXT characters is
    alone.
    """
    chunk: list[str] = []
    size = 0
    for text in texts:
        if chunk and (len(chunk) == _CHUNK or size + len(text) > LONG_TEXT):
            yield chunk
            chunk = []
            size = 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk


@dataclass(frozen=True)
class _Limit:
    """The most ids of a side, and the reason for which a pair with more is dropped."""

    max_len: int
    reason: str


def _encoded_sides(
    chunks: Iterable[Sequence[tuple[str, str]]], tokenizers: Sequence[Tokenizer]
) -> Iterator[list[EncodedSide]]:
    """Yield the sides of each chunk of pairs as ids."""
    for chunk in chunks:
        sides = zip(zip(*chunk, strict=True), tokenizers, strict=True)
        yield [encode_side(texts, tokenizer) for texts, tokenizer in sides]


def _encoded_pairs(
    parts: Iterable[Sequence[EncodedSide]], limit: _Limit, dropped: dict[str, int]
) -> Iterator[_Encoded]:
    """Yield the pairs that fit."""
    num_seen = 0
    for sides in parts:
        kept = np.flatnonzero(_fit(sides, limit, dropped))
        chosen = [side.rows.chosen(kept) for side in sides]
        yield _Encoded(num_seen + kept, chosen)
        num_seen += len(sides[0].rows)
        stages.count(num_seen, "pairs")


def _with_hints(encoded: Iterable[_Encoded], hinting: Hinting) -> Iterator[_Encoded]:
    """Yield the same rows, the hints of each in its source."""
    for part in encoded:
        src, tgt = part.sides
        numbers = np.asarray(part.rows).tolist()
        written = hinting.write(numbers, src.lists(), tgt.lists())
        yield _Encoded(part.rows, [IdRows.of(written), tgt])


def _with_marks(encoded: Iterable[_Encoded], marking: Marking) -> Iterator[_Encoded]:
    """Yield the same rows, the marks of each before its source."""
    for part in encoded:
        src, tgt = part.sides
        numbers = np.asarray(part.rows).tolist()
        written = marking.write(numbers, src.lists())
        yield _Encoded(part.rows, [IdRows.of(written), tgt])


def _fit(
    sides: Sequence[EncodedSide], limit: _Limit, dropped: dict[str, int]
) -> npt.NDArray[np.bool_]:
    """Say of each pair whether it is kept; count those that are not."""
    empty, too_long = np.zeros((2, len(sides[0].rows)), np.bool_)
    for rows, has_text in sides:
        empty |= (rows.lens == 0) | ~has_text
        too_long |= rows.lens > limit.max_len
    dropped[EMPTY] += int(empty.sum())
    dropped[limit.reason] += int((too_long & ~empty).sum())
    return ~(empty | too_long)


def _encoded_texts(
    chunks: Iterable[Sequence[str]],
    tokenizer: Tokenizer,
    limit: int | None,
    too_long: TooLong,
    facts: dict[str, Any],
) -> Iterator[_Encoded]:
    """Yield the rows of every text that is not empty."""
    number = 0
    for chunk in chunks:
        rows: list[int] = []
        kept: list[Sequence[int]] = []
        for text, ids in zip(chunk, _encode(chunk, tokenizer), strict=True):
            if len(ids) and text and not text.isspace():
                pieces = _pieces(ids, limit, too_long)
                rows.extend([number] * len(pieces))
                kept.extend(pieces)
                facts["num_cut"] += len(ids) > len(pieces[0])
                facts["num_bytes"] += len(text.encode("utf-8", "surrogatepass"))
            else:
                facts["dropped"][EMPTY] += 1
            number += 1
        stages.count(number, "texts")
        yield _Encoded(rows, [IdRows.of(kept)])


def _encode(chunk: Sequence[str], tokenizer: Tokenizer) -> Sequence[Sequence[int]]:
    if len(chunk) == 1 and len(chunk[0]) > LONG_TEXT:
        return [tokenizer.encode_long(chunk[0])]
    return tokenizer.encode_rows(chunk).lists()


def _pieces(
    ids: Sequence[int], limit: int | None, too_long: TooLong
) -> list[Sequence[int]]:
    """Cut a text's ids into the rows that they become.

    The first is shorter than the ids exactly where they do not fit.
    """
    if limit is None or len(ids) <= limit:
        return [ids]
    end = limit if too_long == "cut" else len(ids)
    return [ids[start : start + limit] for start in range(0, end, limit)]


class _Writer:
    """The arrays of a store while they grow; a side is known by the beginning of its files'
    names.
    """

    def __init__(self, folder: Path, tokenizers: Mapping[str, Tokenizer]) -> None:
        self._rows = _FlatArray(folder / "rows.npy", np.int64)
        self._ids: list[_FlatArray] = []
        self._offsets: list[_FlatArray] = []
        for side, tokenizer in tokenizers.items():
            width = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
            self._ids.append(_FlatArray(folder / f"{side}ids.npy", width))
            self._offsets.append(_FlatArray(folder / f"{side}offsets.npy", np.int64))
            self._offsets[-1].append([0])

    @property
    def num_rows(self) -> int:
        """Return how many rows were written."""
        return self._rows.length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for array in (self._rows, *self._ids, *self._offsets):
            array.close()

    def append(self, part: _Encoded) -> None:
        """Write rows behind those that are there."""
        self._rows.append(part.rows)
        sides = zip(self._ids, self._offsets, part.sides, strict=True)
        for ids, offsets, rows in sides:
            offsets.append(ids.length + np.cumsum(rows.lens))
            ids.append(rows.ids)


class _FlatArray:
    """A .npy file of one dimension that grows; its header is written again at the end, in the same
    place.
    """

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.file = path.open("wb")
        self.dtype = np.dtype(dtype)
        self.length = 0
        self._write_header()

    def append(self, values: npt.ArrayLike) -> None:
        array = np.asarray(values, dtype=self.dtype)
        self.file.write(array.tobytes())
        self.length += len(array)

    def close(self) -> None:
        self.file.seek(0)
        self._write_header()
        self.file.close()

    def _write_header(self) -> None:
        header = {
            "descr": self.dtype.str,
            "fortran_order": False,
            "shape": (self.length,),
        }
        np.lib.format.write_array_header_1_0(self.file, header)


def _lens_between(offsets: Positions) -> Lens:
    """Return how many ids stand between each two offsets."""
    lens = np.empty(len(offsets) - 1, np.int32)
    return np.subtract(offsets[1:], offsets[:-1], out=lens, casting="same_kind")


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise FolderError(
            f"{path}: not an array of a store ({str(error)[:80]})"
        ) from None
