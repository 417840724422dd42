"""Messages of Qt (`.ts`): those without a translation, or with an unfinished one, get one.

Source: Qt Linguist Manual, "TS File Format" (Qt 6).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.data.languages import primary
from weft.documents.document import Doubt, Kind, Note, Reading, TextDocument, Written
from weft.documents.formats.bilingual.choices import Part
from weft.documents.formats.bilingual.content import (
    Wording,
    parts_of,
    read_parts,
    syntax_of,
)
from weft.documents.formats.bilingual.plurals import qt_forms
from weft.documents.formats.bilingual.units import (
    Bilingual,
    Unit,
    language_of,
    refuse_other_languages,
    remark_of,
)
from weft.documents.formats.xml.tokens import written_as_xml
from weft.documents.formats.xml.tree import (
    Edit,
    Element,
    XmlTree,
    opened,
    read_tree,
    with_attribute,
)
from weft.documents.inline import Builder, Piece
from weft.errors import UsageError

_WORDING = Wording(kept=r"%L?\d{1,2}+(?!\$)|%L?n(?![A-Za-z$])")
_GONE = ("vanished", "obsolete")
_BEFORE_TRANSLATION = ("source", "oldsource", "comment", "oldcomment", "extracomment")
# the key that a letter stands for, marked by an ampersand before it; two of them are one in a text
_KEY = re.compile(r"(?<!&amp;)(?<!\w)([^\W\d_]*+)&amp;(?!&amp;|#?\w{2,31};)(\w)(\w*+)")
_ENDING = re.compile(r"\s*(?:\.\.\.|…|:)\s*$")
# where a key is named in brackets behind the text: 打开(&O)
_BRACKETED = ("zh", "ja", "ko")
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*<|\xff\xfe|\xfe\xff")


def open_qt(content: bytes, reading: Reading) -> Bilingual:
    """Read messages of Qt.

    Raises UsageError for what is none, such as a source of TypeScript, and for messages in other
    languages than the reading's.
    """
    if not _HEAD.match(content):
        raise UsageError(
            f"{reading.name}: is not XML as messages of Qt are; a .ts of TypeScript or of a film is not translated"
        )
    tree = read_tree(content, reading.name)
    root = tree.root
    line = tree.line(root.start)
    if root.name != "TS":
        raise UsageError(
            f"{reading.name}:{line}: begins with <{root.name}>; messages of Qt begin with <TS>"
        )
    stated = root.get("language")
    language = language_of(stated, reading.target.replace("-", "_"))
    reader = _Reader(tree, language)
    for element in root.below():
        if element.name == "message":
            reader.read_message(element)
    in_use = stated if reader.has_translations else ""
    refuse_other_languages(reading, line, root.get("sourcelanguage"), in_use)
    edits = []
    if language != stated:
        tag = with_attribute(root.token.raw, "language", language)
        edits.append(Edit(root.start, root.inner, tag))
    return Bilingual(tree, tuple(reader.units), tuple(edits), tuple(reader.notes))


class _Reader:
    """Collects the messages that have no finished translation."""

    def __init__(self, tree: XmlTree, language: str) -> None:
        self._tree = tree
        self._language = language
        self.units: list[Unit] = []
        self.notes: list[Note] = []
        self.has_translations = False

    def read_message(self, message: Element) -> None:
        """Read a message, if it is in use and has something to translate."""
        source = message.child("source")
        target = message.child("translation")
        state = "" if target is None else target.get("type")
        if source is None or state in _GONE:
            return
        is_plural = message.get("numerus") == "yes"
        forms = [] if target is None else target.all("numerusform")
        if target is not None and state != "unfinished":
            forms = [form for form in forms if self._tree.is_blank(form)]
            if not self._tree.is_blank(target) and not forms:
                self.has_translations |= not self._is_empty(target)
                return
        content = self._content(source)
        if not content.segments and not "".join(content.skeleton).strip():
            return
        if target is not None and target.all("lengthvariant"):
            self._note(message, "has variants by length, which are not translated")
            return
        number = len(forms)
        if is_plural and not forms:
            number = qt_forms(self._language)
        if number > 1:
            self._note(
                message, f"its {number} plural forms are one translation; check them"
            )
        writer = _Writer(
            self._tree, message, source, target, forms, number if is_plural else 0
        )
        self.units.append(Unit((content,), message.start, writer.edits))

    def _is_empty(self, target: Element) -> bool:
        return not re.sub("<[^<>]*>", "", self._tree.content(target)).strip()

    def _content(self, source: Element) -> TextDocument:
        parts = parts_of(self._tree, source, self._role, _WORDING, is_exact=True)
        is_bracketed = primary(self._language) in _BRACKETED
        builder = Builder(syntax_of(self._tree, source, _WORDING, is_exact=True))
        read_parts(builder, _with_key(list(parts), is_bracketed))
        return builder.document()

    def _role(self, element: Element) -> Piece:
        """Return the part of an element: a character that XML cannot hold."""
        return Piece(self._tree.raw(element), Kind.EMPTY)

    def _note(self, message: Element, text: str) -> None:
        self.notes.append(Note(f"line {self._tree.line(message.start)}", text))


def _with_key(parts: list[Part], is_bracketed: bool) -> Iterable[Part]:
    """Return parts in which the mark of a key goes with its word, or into brackets at the end.

    Texts with several marks, and those with tags, stay as they are.
    """
    texts = [part for part in parts if isinstance(part, Piece) and part.kind is None]
    found = [match for part in texts for match in _KEY.finditer(part.raw)]
    if len(found) != 1 or any(isinstance(part, str) for part in parts):
        return parts
    if any(isinstance(part, Piece) and part.name for part in parts):
        return parts
    if is_bracketed:
        return list(_in_brackets(parts, found[0]))
    return list(_before_word(parts, found[0]))


def _word_of(match: re.Match[str]) -> tuple[str, str]:
    """Return the word that has a key, and the key."""
    before, key, after = match.groups()
    return before + key + after, key


def _before_word(parts: list[Part], match: re.Match[str]) -> Iterator[Part]:
    """Yield parts with the mark around its word: before it, and nothing after."""
    word, _ = _word_of(match)
    for part in parts:
        if isinstance(part, Piece) and part.raw == match.string and part.kind is None:
            yield Piece(part.raw[: match.start()])
            yield Piece("&amp;", Kind.OPEN, "key")
            yield Piece(word)
            yield Piece("", Kind.CLOSE, "key")
            yield Piece(part.raw[match.end() :])
        else:
            yield part


def _in_brackets(parts: list[Part], match: re.Match[str]) -> Iterator[Part]:
    """Yield parts without the mark, and its key in brackets before the marks at the end."""
    word, key = _word_of(match)
    last = len(parts) - 1
    ending = ""
    for number, part in enumerate(parts):
        raw = part if isinstance(part, str) else part.raw
        if raw == match.string:
            raw = raw[: match.start()] + word + raw[match.end() :]
        is_text = isinstance(part, Piece) and part.kind is None
        if number == last and is_text and (end := _ENDING.search(raw)):
            ending = end[0]
            raw = raw[: end.start()]
        yield Piece(raw) if is_text else part
    yield f"(&amp;{key.upper()}){ending}"


@dataclass(frozen=True)
class _Writer:
    """Writes the translation of a message; `number` is that of its plural forms, 0 without any."""

    tree: XmlTree
    message: Element
    source: Element
    target: Element | None
    forms: Sequence[Element]
    number: int

    def edits(self, targets: Sequence[Written]) -> Iterator[Edit]:
        """Yield what puts a translation into the file, with a comment of doubt."""
        (written,) = targets
        if written.doubt.remarks:
            yield self._commented(written.doubt)
        is_finished = not written.doubt.remarks and self.number < 2
        yield from self._written(written.text, None if is_finished else "unfinished")

    def _written(self, text: str, state: str | None) -> Iterator[Edit]:
        tag = "<translation>" if self.target is None else self.target.token.raw
        tag = opened(with_attribute(tag, "type", state))
        if self.target is not None and self.forms:
            yield Edit(self.target.start, self.target.inner, tag)
            for form in self.forms:
                yield Edit(form.start, form.after, _form(text))
            return
        indent = self.tree.indent(self.target or self.source)
        if self.number:
            deeper = f"{indent}    " if indent else ""
            text = "".join([deeper + _form(text)] * self.number) + indent
        whole = f"{tag}{text}</translation>"
        if self.target is None:
            place = self.message.all(*_BEFORE_TRANSLATION, "translatorcomment")[
                -1
            ].after
            yield Edit(place, place, indent + whole)
        else:
            yield Edit(self.target.start, self.target.after, whole)

    def _commented(self, doubt: Doubt) -> Edit:
        """Return the edit that adds a comment of the translator."""
        remark = written_as_xml(remark_of(doubt))
        there = self.message.child("translatorcomment")
        if there is not None:
            kept = self.tree.content(there)
            both = "\n".join(filter(None, [kept, remark]))
            whole = f"<translatorcomment>{both}</translatorcomment>"
            return Edit(there.start, there.after, whole)
        place = self.message.all(*_BEFORE_TRANSLATION)[-1].after
        indent = self.tree.indent(self.source)
        whole = f"{indent}<translatorcomment>{remark}</translatorcomment>"
        return Edit(place, place, whole)


def _form(text: str) -> str:
    return f"<numerusform>{text}</numerusform>"
