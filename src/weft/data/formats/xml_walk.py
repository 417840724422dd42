"""XML read as a stream, for every format that is XML.

A document type that only names the format is passed over: what it points to is never opened. One
with declarations of its own is refused as soon as it is seen, and so is a reference to an entity
that XML itself does not define: nothing is ever expanded, and no text is lost without a word.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NoReturn
from xml.parsers import expat

from weft.data.formats.source import read_chunks
from weft.errors import DataError

MAX_DEPTH = 64
MAX_TAG_BYTES = 16 << 20  # the parser holds one tag or comment whole
_ENCODINGS = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|us-ascii|iso-8859-\d{1,2}|windows-125\d|cp125\d",
    re.IGNORECASE,
)


class XmlWalk(ABC):
    """A walk over the tags of one XML file, safe against declarations, depth and size.

    A subclass names the tag that the file begins with, and the format for messages. It takes tags
    in `open_tag` and `close_tag`; for text it sets `parser.CharacterDataHandler`.
    """

    root: ClassVar[str]
    format_name: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path
        self.depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = self._declare
        self.parser.StartDoctypeDeclHandler = self._pass_doctype
        self.parser.EntityDeclHandler = self._refuse_declaration
        self.parser.SkippedEntityHandler = self._refuse_entity
        self.parser.StartElementHandler = self._open
        self.parser.EndElementHandler = self._close

    def steps(self) -> Iterator[None]:
        """Parse piece by piece, pausing after each.

        Raises DataError with the line for malformed XML, declarations and encodings that are not
        read.
        """
        fed = 0
        try:
            for chunk in read_chunks(self.path):
                self.parser.Parse(chunk, False)
                fed += len(chunk)
                if fed - max(self.parser.CurrentByteIndex, 0) > MAX_TAG_BYTES:
                    self.refuse(
                        f"a tag or comment of more than {MAX_TAG_BYTES:,} bytes"
                    )
                yield
            self.parser.Parse(b"", True)
            yield
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            self.refuse(
                f"malformed XML at byte {self.parser.ErrorByteIndex}: {what}",
                error.lineno,
            )

    @abstractmethod
    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""

    @abstractmethod
    def close_tag(self, name: str) -> None:
        """Take an end tag."""

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.depth == 0 and name != self.root:
            self.refuse(f"XML with the root <{name[:40]}>, not {self.format_name}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"tags nested deeper than {MAX_DEPTH}")
        self.open_tag(name, attributes)

    def _close(self, name: str) -> None:
        self.depth -= 1
        self.close_tag(name)

    def _declare(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            self.refuse(
                f"XML in the encoding {encoding[:40]!r}, which is not read; save it as UTF-8"
            )

    def _pass_doctype(
        self, name: str, system: str | None, public: str | None, has_declarations: bool
    ) -> None:
        if has_declarations:
            self._refuse_declaration()

    def _refuse_declaration(self, *_: object) -> NoReturn:
        self.refuse(
            "a document type with declarations of its own, which are not read; remove the contents of its [...]"
        )

    def _refuse_entity(self, name: str, *_: object) -> NoReturn:
        self.refuse(
            f"the entity &{name[:40]};, which XML does not define; write the character itself"
        )

    def refuse(self, what: str, line: int | None = None) -> NoReturn:
        """Raise DataError with the file and line, by default of the current tag."""
        raise DataError(
            f"{self.path}:{line or self.parser.CurrentLineNumber}: {what}"
        ) from None
