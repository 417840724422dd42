"""Comments on paragraphs of a Word document whose translation is doubtful.

Source: ECMA-376, part 1, section 17.13.4.
"""

import posixpath
from collections.abc import Callable, Sequence

from weft.documents.document import Written
from weft.documents.formats.office.opc import RELATIONSHIPS, Package
from weft.documents.formats.office.word import WORD
from weft.documents.formats.xml.elements import read_elements
from weft.documents.formats.xml.tokens import written_as_xml
from weft.documents.formats.xml.tree import prefix_of

_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
_TYPES = "[Content_Types].xml"
_NAME = "weft-comments.xml"
_AUTHOR = "Weft"
_NUMBER_LENGTH = 9


class WordComments:
    """Collects comments while a document is written, and writes them at its end."""

    def __init__(self, package: Package, main: str) -> None:
        """Find the comments that the document has already."""
        self._package = package
        self._main = main
        self._found: list[str] = []
        self._part = next(iter(package.related(main, "comments")), "")
        self._first = 1 + self._highest()

    def begin(self) -> None:
        """Drop the comments of an earlier writing."""
        self._found = []

    def around(self, content: str, written: Sequence[Written], prefix: str) -> str:
        """Return a paragraph's content with a comment on it, if it is doubtful."""
        told = [_told(entry) for entry in written if entry.doubt.remarks]
        if not told or not prefix:
            return content
        number = f'{prefix}id="{self._first + len(self._found)}"'
        self._found.append(" ".join(told))
        mark = f"<{prefix}r><{prefix}commentReference {number}/></{prefix}r>"
        end = f"<{prefix}commentRangeEnd {number}/>{mark}"
        return f"<{prefix}commentRangeStart {number}/>{content}{end}"

    def members(self) -> dict[str, bytes]:
        """Return the members that the comments change or add, with what these have then."""
        if not self._found:
            return {}
        if self._part:
            return {self._part: self._with(self._part, self._comments)}
        folder, base = posixpath.split(self._main)
        part = posixpath.join(folder, _NAME)
        rels = posixpath.join(folder, "_rels", f"{base}.rels")
        (space,) = {space for space in WORD if "schemas" in space}
        whole = f'<w:comments xmlns:w="{space}">{self._comments("w:")}</w:comments>'
        changed = {part: whole.encode()}
        changed[_TYPES] = self._with(_TYPES, _override(part))
        if rels in self._package.archive.members:
            changed[rels] = self._with(rels, _relation)
        else:
            row = _relation("")
            whole = f'<Relationships xmlns="{RELATIONSHIPS}">{row}</Relationships>'
            changed[rels] = whole.encode()
        return changed

    def _highest(self) -> int:
        """Return the highest number of a comment; 0 where there is none."""
        if not self._part:
            return 0
        elements = self._package.elements(self._part)
        numbers = [0]
        for place in elements.named({"comment"}, WORD):
            for name, value in elements.tokens[place].attributes.items():
                is_number = value.isdecimal() and len(value) <= _NUMBER_LENGTH
                if name.endswith(" id") and is_number:
                    numbers.append(int(value))
        return max(numbers)

    def _comments(self, prefix: str) -> str:
        return "".join(
            _comment(number, text, prefix or "w:")
            for number, text in enumerate(self._found, self._first)
        )

    def _with(self, member: str, added: Callable[[str], str]) -> bytes:
        """Return a member with more in its root."""
        content = self._package.archive.members[member]
        elements = read_elements(content, member)
        root = elements.root
        end = elements.ends[root]
        tag = elements.tokens[root].raw
        prefix = prefix_of(tag)
        head = elements.raw(0, end)
        tail = elements.raw(end, len(elements.tokens))
        if end == root:  # an element that is one tag
            name = tag.removeprefix("<").split("/")[0].split()[0]
            head = elements.raw(0, root) + tag.removesuffix("/>") + ">"
            tail = f"</{name}>" + elements.raw(root + 1, len(elements.tokens))
        return (head + added(prefix) + tail).encode(elements.encoding)


def _told(written: Written) -> str:
    text = " ".join(written.doubt.remarks)
    if written.doubt.confidence is not None:
        text += f" ({written.doubt.confidence:.0%})"
    return written_as_xml(text)


def _comment(number: int, text: str, prefix: str) -> str:
    told = f'{prefix}id="{number}" {prefix}author="{_AUTHOR}"'
    run = f"<{prefix}r><{prefix}t>{text}</{prefix}t></{prefix}r>"
    return f"<{prefix}comment {told}><{prefix}p>{run}</{prefix}p></{prefix}comment>"


def _override(part: str) -> Callable[[str], str]:
    def row(prefix: str) -> str:
        return f'<{prefix}Override PartName="/{part}" ContentType="{_TYPE}"/>'

    return row


def _relation(prefix: str) -> str:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"  # fmt: skip
    return f'<{prefix}Relationship Id="weftComments" Type="{kind}" Target="{_NAME}"/>'
