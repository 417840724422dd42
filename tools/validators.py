"""What validators have against a document; and files of two languages without translations."""

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile

import polib
from lxml import etree

from document_differ import gettext_says
from plain_readers import READERS


@dataclass(frozen=True)
class Validators:
    """The validators that there are: EPUBCheck, and schemas of XLIFF, each of one version."""

    epubcheck: Path | None = None
    schemas: Sequence[Path] = field(default_factory=list)

    def complaints(self, content: bytes, ending: str) -> list[str]:
        """Return what is wrong with a document."""
        if ending in (".po", ".pot"):
            return [line for line in gettext_says(content) if line]
        if ending == ".epub" and self.epubcheck:
            return book_complaints(content, self.epubcheck)
        if ending in (".xlf", ".xliff"):
            return self._against_schema(content)
        if ending in (".tmx", ".ts"):
            return parse_complaints(content)
        try:
            READERS[ending](content)
        except Exception as error:  # a reader by others, which may raise anything
            return [f"{type(error).__name__}: {error}"]
        return []

    def _against_schema(self, content: bytes) -> list[str]:
        root = etree.fromstring(content)
        for path in self.schemas:
            schema, target = _schema(path)
            if target == etree.QName(root).namespace:
                schema.validate(root)
                return [error.message for error in schema.error_log]
        return []


@cache
def _schema(path: Path) -> tuple[etree.XMLSchema, str]:
    """A schema with the name of what it is for; what it imports is the file of that name beside it,
    and nothing is fetched.
    """
    text = re.sub(
        r'schemaLocation="[^"]*/', 'schemaLocation="', path.read_text("utf-8")
    )
    document = etree.parse(
        BytesIO(text.encode()),
        etree.XMLParser(no_network=True),
        base_url=path.resolve().as_uri(),
    )
    return etree.XMLSchema(document), document.getroot().get("targetNamespace", "")


def parse_complaints(content: bytes) -> list[str]:
    """Say why a file is no XML."""
    try:
        etree.fromstring(
            content, etree.XMLParser(resolve_entities=False, no_network=True)
        )
    except etree.XMLSyntaxError as error:
        return [str(error)]
    return []


def book_complaints(content: bytes, jar: Path) -> list[str]:
    """Return the errors that EPUBCheck finds in a book, without their places."""
    with NamedTemporaryFile(suffix=".epub") as book, NamedTemporaryFile() as out:
        book.write(content)
        book.flush()
        command = ["java", "-jar", str(jar), book.name, "--json", out.name, "-q"]
        subprocess.run(command, capture_output=True, check=False)
        told = json.loads(Path(out.name).read_bytes())["messages"]
    return [
        f"{one['ID']}: {one['message']}"
        for one in told
        if one["severity"] in ("ERROR", "FATAL")
    ]


def emptied(content: bytes, ending: str) -> bytes:
    """Take the translations out of a file of two languages; any other stays as it is."""
    if ending == ".po":
        return _without_messages(content)
    if ending in (".xliff", ".xlf"):
        return re.sub(
            rb"\s*<target\b[^>]*?(?:/>|>.*?</target>)", b"", content, flags=re.S
        )
    if ending == ".tmx":
        return re.sub(rb"(</tuv>)\s*<tuv\b.*?</tuv>", rb"\1", content, flags=re.S)
    return content


def _without_messages(content: bytes) -> bytes:
    catalogue = polib.pofile(content.decode())
    for entry in catalogue:
        entry.msgstr = ""
        for number in entry.msgstr_plural:
            entry.msgstr_plural[number] = ""
    return str(catalogue).encode()
