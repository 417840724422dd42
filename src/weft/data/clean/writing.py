"""The files that cleaned text is written to: each as a whole, in the form that its name says."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from weft.data.clean.documents import with_ends
from weft.data.clean.labelled import Table
from weft.data.clean.record import HEAD
from weft.data.corpus import ParallelText, split_at_comma
from weft.data.documents import Documents, Ends
from weft.data.formats.filenames import pair_from_name
from weft.data.formats.filetype import type_of_name
from weft.data.languages import UNKNOWN
from weft.errors import UsageError
from weft.folder import durable
from weft.folder.together import written_together

_PAIR_FORMS = {"": "tsv", "tsv": "tsv", "csv": "csv", "jsonl": "jsonl"}
_ROLES = ("source", "target")
_CHANGES = ".changes.tsv"

Contents = dict[Path, Iterable[str]]


@dataclass(frozen=True)
class Destination:
    """The files to write: the text, of aligned pairs in two, and the record of changes.

    In the place of the text it may be a `folder` of shards.
    """

    texts: tuple[Path, ...]
    changes: Path
    folder: Path | None = None

    @classmethod
    def of(
        cls,
        output: str,
        changes: Path | None,
        data: Sequence[str],
        may_be_folder: bool = False,
    ) -> "Destination":
        """Return the files that are named; a name without an ending may be that of a folder.

        Raises UsageError where one of them is one that is read, or another of them; FolderError
        where there is no folder for it.
        """
        texts = tuple(Path(name.strip()) for name in output.split(","))
        if len(texts) > 2 or not all(map(str, texts)) or "" in output.split(","):
            raise UsageError(
                f"--output {output}: name one file, or two for aligned lines: clean.en,clean.de"
            )
        if changes is None:
            stem = texts[0].name.removesuffix(".gz")
            changes = texts[0].with_name(f"{stem.rpartition('.')[0] or stem}{_CHANGES}")
        is_folder = may_be_folder and len(texts) == 1 and not texts[0].suffix
        files = (*texts, changes)
        read = [path for item in data for path in split_at_comma(item)]
        for i, path in enumerate(files):
            durable.refuse_no_place(path)
            if path.is_dir() and not is_folder:
                raise UsageError(f"{path}: is a folder; name a file")
            if any(_is_same(path, other) for other in read):
                raise UsageError(
                    f"{path}: would be written over what is read; give another --output"
                )
            if any(_is_same(path, other) for other in files[:i]):
                raise UsageError(f"{path}: is named twice; give each file a name")
        if is_folder:
            return cls((), changes, texts[0])
        return cls(texts, changes)

    def refuse_existing(self) -> None:
        """Raise UsageError where a file would be lost that no cleaning wrote: beside one that a
        cleaning wrote is its list of changes. A folder has to be a new one.
        """
        if self.folder is not None and self.folder.exists():
            raise UsageError(
                f"{self.folder}: is there already; give a new folder for the shards"
            )
        if _is_list(self.changes):
            return
        for path in (*self.texts, self.changes):
            if path.exists():
                raise UsageError(
                    f"{path}: exists already, and weft clean did not write it; name another file, or remove this one"
                )

    @property
    def named(self) -> tuple[Path, ...]:
        """Return where the text goes."""
        return self.texts if self.folder is None else (self.folder,)

    def write(
        self,
        contents: Mapping[Path, Iterable[str]],
        manifest: Mapping[str, Any] | None = None,
    ) -> None:
        """Write files of lines, each as a whole or none at all; those of a folder with a
        manifest.
        """
        with ExitStack() as stack:
            together = list(contents)
            if self.folder is not None:
                writing = durable.writing_folder(self.folder, manifest)
                folder = stack.enter_context(writing)
                together = [self.changes]
            temporary = stack.enter_context(written_together(together))
            places = dict(zip(together, temporary, strict=True))
            for path, lines in contents.items():
                _write(places[path] if path in places else folder / path.name, lines)


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, packed where its name says so."""
    with ExitStack() as stack:
        file: BinaryIO = stack.enter_context(path.open("wb"))
        if path.name.endswith(".gz"):
            # without name and time, so that the same text is the same file
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            file = cast(BinaryIO, stack.enter_context(packed))
        for line in lines:
            file.write(line.encode("utf-8", "replace"))


def _is_list(path: Path) -> bool:
    """Return whether a file is the list of changes of a cleaning."""
    head = "\t".join(HEAD).encode()
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _is_same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def refuse_form_of_pairs(texts: Sequence[Path]) -> None:
    """Raise UsageError for a form in which pairs are not written."""
    if len(texts) == 1:
        _form_of_pairs(texts[0])


def refuse_form_of_documents(texts: Sequence[Path], ends: Ends, num_files: int) -> None:
    """Raise UsageError for what documents are not written to."""
    kind = type_of_name(texts[0])
    if len(texts) > 1 or (kind is not None and kind.documents != "yes"):
        raise UsageError(
            f"--output {','.join(map(str, texts))}: documents are written as text; name one .txt file"
        )
    if ends == "file" and num_files > 1:
        raise UsageError(
            "with data.documents=file each file is a document; clean one at a time"
        )


def refuse_form_of_rows(texts: Sequence[Path], data: Sequence[str]) -> None:
    """Raise UsageError for what labelled rows are not written to: JSON lines of cells, or the other
    way round.
    """
    output = _table_of(texts[0])
    wanted = _table_of(Path(data[0]))
    if len(texts) > 1 or not output or (output == "json") != (wanted == "json"):
        names = ".jsonl" if wanted == "json" else ".csv or .tsv"
        raise UsageError(
            f"--output {','.join(map(str, texts))}: the rows of {data[0]} are written as {names}"
        )


def _table_of(path: Path) -> str:
    kind = type_of_name(path)
    return kind.table if kind is not None else ""


def _form_of_pairs(path: Path) -> str:
    """Return the form in which a file of pairs is written. Raises UsageError for any other."""
    kind = type_of_name(path)
    form = _PAIR_FORMS.get("" if kind is None else kind.name)
    if form is None:
        raise UsageError(
            f"--output {path}: pairs are written as .tsv, .csv or .jsonl, or as two files of aligned lines "
            "(clean.en,clean.de)"
        )
    return form


def pairs_as_files(text: ParallelText, texts: Sequence[Path]) -> Contents:
    """Return the lines of each file of pairs."""
    if len(texts) == 2:
        src = (f"{line}\n" for line in text.src)
        tgt = (f"{line}\n" for line in text.tgt)
        return {texts[0]: src, texts[1]: tgt}
    forms = {"tsv": _tab_separated, "csv": _comma_separated, "jsonl": _objects}
    return {texts[0]: forms[_form_of_pairs(texts[0])](text, texts[0])}


def pairs_as_shards(text: ParallelText, folder: Path, rows: int) -> Contents:
    """Return the lines of each shard of so many pairs, in a folder."""
    contents: Contents = {}
    for name, part in shards_of(len(text), rows).items():
        contents[folder / name] = _tab_separated(text.select(part), folder / name)
    return contents


def shards_of(count: int, rows: int) -> dict[str, range]:
    """Return the names of shards of so many rows, and which of all rows each of them has."""
    starts = range(0, count, rows)
    return {
        f"{number:06}.tsv": range(start, min(start + rows, count))
        for number, start in enumerate(starts)
    }


def _names(text: ParallelText) -> tuple[str, str]:
    """Return names of both sides by which the pairs are read again as they are."""
    pair = text.src_lang, text.tgt_lang
    return _ROLES if UNKNOWN in pair or pair[0] == pair[1] else pair


def _tab_separated(text: ParallelText, path: Path) -> Iterator[str]:
    """Yield lines of pairs; below their languages, where the file's name does not say them."""
    names = _names(text)
    if names != _ROLES and pair_from_name(path.name) is None:
        yield "\t".join(names) + "\n"
    for pair in zip(text.src, text.tgt, strict=True):
        src, tgt = (side.replace("\t", " ") for side in pair)
        yield f"{src}\t{tgt}\n"


def _comma_separated(text: ParallelText, _: Path) -> Iterator[str]:
    yield _csv_row(_names(text))
    yield from map(_csv_row, zip(text.src, text.tgt, strict=True))


def _csv_row(cells: Sequence[str]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _objects(text: ParallelText, _: Path) -> Iterator[str]:
    names = _names(text)
    for pair in zip(text.src, text.tgt, strict=True):
        row = dict(zip(names, pair, strict=True))
        yield json.dumps(row, ensure_ascii=False) + "\n"


def documents_as_file(text: Documents, ends: Ends, path: Path) -> Contents:
    """Return the lines of a file of documents."""
    return {path: with_ends(text, ends)}


def rows_as_file(table: Table, path: Path) -> Contents:
    """Return the lines of a table."""
    return {path: _table_lines(table, path)}


def _table_lines(table: Table, path: Path) -> Iterator[str]:
    form = table.form
    if form is None:
        for row in table.rows:
            yield json.dumps(row, ensure_ascii=False) + "\n"
        return
    kind = _table_of(path)
    if (form.delimiter == "\t") != (kind == "tsv"):
        form = form.as_kind(kind)
    yield form.lead + form.row(form.header)
    yield from (form.row(list(row)) for row in table.rows)
