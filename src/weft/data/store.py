"""Encoded pairs on disk: for each side one flat array of ids plus offsets, memory-mapped, so memory stays flat.

A store is made once and reused while text, tokenizers and limits are the same: they are its key. It is written
whole or not at all; one that is damaged or from other text is made anew.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from weft.data.tokenizer import Tokenizer
from weft.durable import read_manifest, remove_leftovers, writing_folder
from weft.errors import DataError, FolderError

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]

FORMAT = 1
TOO_LONG = "longer than data.max_len"
EMPTY = "empty"
_CHUNK = 10_000
_ARRAYS = ("src_ids", "src_offsets", "tgt_ids", "tgt_offsets", "rows")


class ParallelStore:
    """Pairs of id sequences, without bos and eos. `rows` are their numbers in the text that was given."""

    def __init__(self, folder: Path) -> None:
        """Map the arrays of a store folder. Raises FolderError where they are damaged."""
        facts = read_manifest(folder)
        arrays = {name: _map(folder / f"{name}.npy") for name in _ARRAYS}
        self.key = str(facts.get("key"))
        self.dropped: dict[str, int] = dict(facts.get("dropped", {}))
        self.rows: Positions = arrays["rows"]
        self.src_ids: Ids = arrays["src_ids"]
        self.tgt_ids: Ids = arrays["tgt_ids"]
        self.src_offsets: Positions = arrays["src_offsets"]
        self.tgt_offsets: Positions = arrays["tgt_offsets"]
        self.src_lens: Positions = np.diff(self.src_offsets)
        self.tgt_lens: Positions = np.diff(self.tgt_offsets)

    def __len__(self) -> int:
        return len(self.rows)

    def src(self, i: int) -> Ids:
        """Source ids of pair i."""
        return self.src_ids[self.src_offsets[i] : self.src_offsets[i + 1]]

    def tgt(self, i: int) -> Ids:
        """Target ids of pair i."""
        return self.tgt_ids[self.tgt_offsets[i] : self.tgt_offsets[i + 1]]

    @property
    def num_src_tokens(self) -> int:
        """Source ids of all pairs, without bos and eos."""
        return len(self.src_ids)

    @property
    def num_tgt_tokens(self) -> int:
        """Target ids of all pairs, without bos and eos."""
        return len(self.tgt_ids)


def prepare_store(
    folder: Path,
    name: str,
    src_texts: Iterable[str],
    tgt_texts: Iterable[str],
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    max_len: int,
    text_key: str,
) -> ParallelStore:
    """The store `folder/name` of these pairs, made now or reused; `text_key` stands for the text's content.

    A pair is dropped, and counted, when one side has more than `max_len` ids or nothing but white space.
    Raises DataError where the sides have different numbers of lines, FolderError where nothing can be written.
    """
    path = folder / name
    key = _key(text_key, src_tokenizer, tgt_tokenizer, max_len)
    old = _reusable(path, key)
    if old is not None:
        return old
    _make_room(folder, path)
    dropped = {TOO_LONG: 0, EMPTY: 0}
    facts = {"key": key, "dropped": dropped}  # counted while the folder is being written
    with writing_folder(path, facts) as temporary:
        kept = 0
        with _Writer(temporary, src_tokenizer, tgt_tokenizer, max_len, dropped) as writer:
            for chunk in _chunks(src_texts, tgt_texts, name):
                kept += writer.append(chunk)
        if not kept:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
            raise DataError(f"{name}: no pair is left to use ({counts or 'there is none'}); check the data")
    return ParallelStore(path)


def _key(text_key: str, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, max_len: int) -> str:
    parts = [FORMAT, text_key, src_tokenizer.sha256, tgt_tokenizer.sha256, max_len]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _reusable(path: Path, key: str) -> ParallelStore | None:
    """The store that lies there, if it is whole and has this key."""
    try:
        store = ParallelStore(path)
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
        raise FolderError(f"{path}: an old store cannot be removed ({error.strerror})") from None
    if folder.exists():
        remove_leftovers(folder)


def _chunks(src_texts: Iterable[str], tgt_texts: Iterable[str], name: str) -> Iterator[list[tuple[str, str]]]:
    """Pairs in lists of bounded length. Raises DataError where one side ends before the other."""
    pairs = zip_longest(src_texts, tgt_texts)
    while chunk := list(islice(pairs, _CHUNK)):
        if None in chunk[-1]:
            raise DataError(f"{name}: source and target have different numbers of lines; align them first")
        yield chunk


class _Writer:
    """The arrays of a store while they grow."""

    def __init__(
        self, folder: Path, src: Tokenizer, tgt: Tokenizer, max_len: int, dropped: dict[str, int]
    ) -> None:
        self._tokenizers, self._max_len, self._dropped = (src, tgt), max_len, dropped
        self._num_seen = 0
        self._rows = _FlatArray(folder / "rows.npy", np.int64)
        self._ids, self._offsets = [], []
        for side, tokenizer in (("src", src), ("tgt", tgt)):
            width = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
            self._ids.append(_FlatArray(folder / f"{side}_ids.npy", width))
            self._offsets.append(_FlatArray(folder / f"{side}_offsets.npy", np.int64))
            self._offsets[-1].append([0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for array in (self._rows, *self._ids, *self._offsets):
            array.close()

    def append(self, chunk: Sequence[tuple[str, str]]) -> int:
        """Encode and write the pairs that fit; returns how many did."""
        sides = list(zip(*chunk, strict=True))
        encoded = [t.encode_batch(texts) for t, texts in zip(self._tokenizers, sides, strict=True)]
        kept = [i for i, texts in enumerate(chunk) if self._fits(texts, (encoded[0][i], encoded[1][i]))]
        self._rows.append([self._num_seen + i for i in kept])
        for ids, offsets, sequences in zip(self._ids, self._offsets, encoded, strict=True):
            ends = np.cumsum([len(sequences[i]) for i in kept], dtype=np.int64)
            offsets.append(ids.length + ends)
            ids.append(list(chain.from_iterable(sequences[i] for i in kept)))
        self._num_seen += len(chunk)
        return len(kept)

    def _fits(self, texts: tuple[str, str], pair: tuple[list[int], list[int]]) -> bool:
        if any(not ids or not text.strip() for text, ids in zip(texts, pair, strict=True)):
            self._dropped[EMPTY] += 1
            return False
        if any(len(ids) > self._max_len for ids in pair):
            self._dropped[TOO_LONG] += 1
            return False
        return True


class _FlatArray:
    """A .npy file of one dimension that grows; its header is written again at the end, in the same place."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.file, self.dtype, self.length = path.open("wb"), np.dtype(dtype), 0
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
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self.file, header)


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise FolderError(f"{path}: not an array of a store ({str(error)[:80]})") from None
