"""The arguments of weft translate that name a document, and those that are texts."""

import os
from collections.abc import Sequence
from pathlib import Path

from weft.cli.named_files import why_missing
from weft.errors import UsageError

_PLAIN = (".txt",)  # endings of files that may as well be lines


def document_of(
    texts: Sequence[str],
    input_file: Path | None,
    columns: Sequence[str],
    is_asked: bool,
) -> Path | None:
    """Return the file that is translated as a document; None for texts, lines and tables.

    Without being asked, that is a file whose ending says a format, but for plain text and tables.
    Raises UsageError where a document stands among other texts.
    """
    if texts and input_file is not None:
        raise UsageError("give texts or --input, not both")
    paths = [Path(text) for text in texts]
    if input_file is not None:
        paths = [input_file]
    if is_asked:
        if len(paths) != 1:
            raise UsageError("--document takes one file; give its name")
        if not os.path.isfile(paths[0]):
            raise UsageError(f"--document {paths[0]}: {why_missing(paths[0])}")
        return paths[0]
    found = [path for path in paths if _is_document(path, columns)]
    if found and len(paths) > 1:
        raise UsageError(
            f"{found[0]} is a document: give it alone, and further ones with commands of their own"
        )
    return found[0] if found else None


def _is_document(path: Path, columns: Sequence[str]) -> bool:
    from weft.documents.registry import FORMATS

    if not os.path.isfile(path):  # which takes any text
        return False
    ending = path.suffix.lower()
    is_known = any(ending in row.endings for row in FORMATS.values())
    return is_known and not _is_rather_lines(path, columns)


def _is_rather_lines(path: Path, columns: Sequence[str] = ()) -> bool:
    """Return whether a file is read as lines, or rows of a table, unless it is said to be a
    document. JSON is, where a column is asked for.
    """
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path)
    if kind is None:
        return path.suffix.lower() in _PLAIN
    return kind.table != "" and (kind.name != "json" or bool(columns))


def about_documents() -> str:
    """Say for the help which files are documents."""
    from weft.documents.registry import FORMATS

    taken: list[str] = []
    asked: list[str] = []
    lacking: list[str] = []
    for row in FORMATS.values():
        for ending in row.endings:
            if row.missing:
                lacking.append(ending)
            elif _is_rather_lines(Path(f"a{ending}")):
                asked.append(ending)
            else:
                taken.append(ending)
    said = f"{', '.join(taken)}; with --document also {', '.join(asked)}"
    if lacking:
        said += f"; with the extra documents {', '.join(lacking)}"
    return f"Documents have one of these endings: {said}."
