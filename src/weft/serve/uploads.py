"""The files of a request: read within limits, kept in memory or on the disk until it ends."""

import re
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from weft.serve.limits import Limits, shown_size
from weft.serve.refusals import InvalidRequest, TooLarge

_IN_MEMORY = 2**20  # bytes of a file; a larger one lies on the disk
_MOST_FILES = 4
_MOST_CHARS = 100  # of a file's name
# Characters that a name may not have on some system, and those that make it a path.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*/\\]')


@dataclass
class Upload:
    """A file that a client sent: closed, and so deleted, when the request ends."""

    name: str  # as the client calls it, without folders: safe to write to a header or a folder
    file: IO[bytes]
    size: int = 0


def safe_name(name: str) -> str:
    """Return the last part of a path as a name that is safe on every system; `file` for nothing."""
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(c for c in _UNSAFE.sub("", last) if c.isprintable())
    plain = plain.strip(". ")
    if len(plain) > _MOST_CHARS:
        stem, dot, ending = plain.rpartition(".")
        ending = dot + ending if 0 < len(ending) <= 10 and stem else ""
        plain = plain[: _MOST_CHARS - len(ending)] + ending
    return plain or "file"


class MultipartReader:
    """Reads a multipart form as its bytes arrive: texts in order, files by name.

    What is too large is refused where it becomes so, not at the end.
    """

    def __init__(self, boundary: bytes, limits: Limits, most: int) -> None:
        """Begin a form with at most `most` fields. Raises InvalidRequest without a boundary."""
        self.texts: list[tuple[str, str]] = []
        self.files: dict[str, Upload] = {}
        self._limits = limits
        self._most = most
        self._room = limits.max_body  # bytes for texts and names
        self._header = [b"", b""]
        self._disposition = b""
        self._name = ""
        self._text = bytearray()
        self._upload: Upload | None = None
        self._is_over = False
        if not boundary:
            raise InvalidRequest("the form has no boundary")
        try:
            self._parser = self._started(boundary)
        except FormParserError:
            raise InvalidRequest("the form's boundary cannot be read") from None

    def _started(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._add_header_name,
                "on_header_value": self._add_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._open,
                "on_part_data": self._add,
                "on_part_end": self._end,
                "on_end": self._end_all,
            },
        )

    def write(self, piece: bytes) -> None:
        """Read the next bytes. Raises InvalidRequest and TooLarge."""
        try:
            self._parser.write(piece)
        except FormParserError:
            raise InvalidRequest("the form cannot be read") from None

    def finish(self) -> None:
        """Read the end. Raises InvalidRequest where the form is cut."""
        if not self._is_over:
            raise InvalidRequest("the form is cut")
        for upload in self.files.values():
            upload.file.seek(0)

    def close(self) -> None:
        """Delete the files."""
        for upload in self.files.values():
            upload.file.close()

    def _begin(self) -> None:
        self._disposition = b""
        self._text = bytearray()
        self._upload = None

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header[0] += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] += data[start:end]

    def _end_header(self) -> None:
        name, value = self._header
        self._spend(len(name) + len(value))
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def _open(self) -> None:
        """Begin the text or the file that a part's headers name."""
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise InvalidRequest("a part of the form has no name")
        self._name = _text_of(options[b"name"])
        if b"filename" in options:
            self._open_file(_text_of(options[b"filename"]))
        elif len(self.texts) >= self._most:
            raise TooLarge(f"the form has more than {self._most} fields")

    def _open_file(self, filename: str) -> None:
        if self._name in self.files or len(self.files) >= _MOST_FILES:
            raise InvalidRequest("the form has too many files")
        # Closed by `close`, when the request ends.
        file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._upload = Upload(safe_name(filename), file)
        self.files[self._name] = self._upload

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._upload is None:
            self._spend(end - start)
            self._text += data[start:end]
            return
        self._upload.size += end - start
        if self._upload.size > self._limits.max_file:
            raise TooLarge(
                f"the file is larger than {shown_size(self._limits.max_file)}"
            )
        self._upload.file.write(data[start:end])

    def _end(self) -> None:
        if self._upload is None:
            self.texts.append((self._name, _text_of(bytes(self._text))))

    def _end_all(self) -> None:
        self._is_over = True

    def _spend(self, count: int) -> None:
        self._room -= count
        if self._room < 0:
            raise TooLarge(
                f"the form is larger than {shown_size(self._limits.max_body)}"
            )


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the form is not UTF-8") from None
