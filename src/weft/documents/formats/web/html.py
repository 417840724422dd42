"""HTML, whole pages and pieces: text between block tags, with inline tags inside.

Only text is translated. Attributes stay, and so do scripts, code, forms' content and whatever the
page itself excludes, with `translate="no"` or the class `notranslate`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from html import unescape

from weft.documents.document import (
    FileDocument,
    Kind,
    Reading,
    TextDocument,
    decode_file,
)
from weft.documents.formats.web.markup import (
    RAW,
    Markup,
    Token,
    attributes,
    scan,
    with_value,
)
from weft.documents.formats.web.native import native_kind, native_name
from weft.documents.inline import Builder, Piece, Syntax
from weft.errors import UsageError

_BLOCK_NAMES = """
address article aside base basefont blockquote body button caption center col colgroup dd
details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4
h5 h6 head header hgroup hr html legend li link main menu menuitem meta nav noscript ol optgroup
option p param pre search section select summary table tbody td template textarea tfoot th thead
title tr ul xmp plaintext
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_VOID_NAMES = """
area base basefont bgsound br col embed frame hr img input keygen link meta param source track
wbr
"""
_VOID = frozenset(_VOID_NAMES.split())
# elements that stay as they are: those that stand for words, and those that do not
_KEPT = {"code", "kbd", "samp", "var", "math", "pre", "xmp", "plaintext", "textarea"}
_HIDDEN = {"svg", "video", "audio", "object", "canvas", "map", "rt", "rp"}
_HIDDEN |= RAW - _KEPT
# of posts on Mastodon: users and topics, which are links
_KEPT_CLASSES = {"notranslate", "mention", "hashtag"}
_EMPTIED = re.compile(r"(?:[\s\"']|^<[^\s/>=]++)/>$")
_ADDRESS = re.compile(r"\s*+(?:https?|ftp|mailto)://\S++\s*+")
_LONGEST_LINK = 20  # tokens of a link whose text may be an address
# the label of a note: a number, a letter, a mark, perhaps in brackets
_LABEL = re.compile(
    r"[\[(]?(?:[^\W_]|\d{1,4}|[ivxlc]{1,7}|[*†‡§¶^↑↩↵⤴\ufe0e]{1,3})[\])]?", re.I
)
_SENTENCE_END = re.compile(r"[.!?…:。！？：][\"'”’»)\]」』]*$")
_LONGEST_END = 10

_WHITE = re.compile(
    r"(?:\s|&(?:nbsp|ensp|emsp|thinsp|#160|#[xX][aA]0);"
    r"|&#0*(?:9|10|13|32)(?![0-9]);?|&#[xX]0*(?:9|[aAdD]|20)(?![0-9a-fA-F]);?)++"
)
_ENTITY = re.compile(
    r"&(?:#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[A-Za-z][A-Za-z0-9]{1,31}+);?"
)
_ENTITY_OR_ANY = re.compile(rf"{_ENTITY.pattern}|.", re.DOTALL)
_ALWAYS = {"&": "&amp;", "<": "&lt;"}
_DECLARED = re.compile(rb"<meta\s[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_HEAD_BYTES = 4096
_LANGUAGE_NAMES = ("lang", "xml:lang")


def read_html(text: str, kept: Collection[str] = ()) -> TextDocument:
    """Read HTML, a whole page or pieces of one. Elements with `kept` names stay as they are."""
    return read_markup(scan(text), kept)


def read_markup(tokens: Iterable[Token], kept: Collection[str] = ()) -> TextDocument:
    """Read the tokens of a page, as `read_html` does its text."""
    return _Reader(list(tokens), kept).document()


def open_html(content: bytes, reading: Reading) -> FileDocument:
    """Read a file of HTML; raises UsageError if it is not UTF-8.

    A file in ASCII that does not say that it is UTF-8 stays in ASCII.
    """
    text = decode_file(content, reading.name)
    found = _DECLARED.search(content[:_HEAD_BYTES])
    declared = found[1].decode("latin-1").lower() if found else ""
    document = _in_language(read_html(text), reading.target)
    if text.isascii() and declared not in ("utf-8", "utf8"):
        return FileDocument(document, "ascii", has_references=True)
    if declared not in ("", "utf-8", "utf8"):
        raise UsageError(
            f"{reading.name}: says that its charset is {declared}, but it is UTF-8; correct the meta tag"
        )
    return FileDocument(document)


def _in_language(document: TextDocument, code: str) -> TextDocument:
    """Return a page that says that it is in a language, where it said so of one."""
    if not code:
        return document
    head, *rest = document.skeleton
    told = [
        with_value(token.raw, _LANGUAGE_NAMES, code)
        if token.kind is Markup.START and token.name == "html"
        else token.raw
        for token in scan(head)
    ]
    return replace(document, skeleton=("".join(told), *rest))


def decode(raw: str) -> str:
    """Read the entities of a stretch of text; marks where a word may be divided go."""
    text = _ENTITY.sub(lambda match: unescape(match[0]), raw)
    text = text.replace("\xad", "")
    return re.sub(r"\s", " ", text)


def decoded_spans(raw: str) -> tuple[str, list[tuple[int, int]]]:
    """Return what `decode` does, and from where to where each character is written."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _ENTITY_OR_ANY.finditer(raw):
        part = decode(match[0])
        parts.append(part)
        spans += [match.span()] * len(part)
    return "".join(parts), spans


def escapes_of(source: str) -> Mapping[str, str]:
    """Return how a stretch writes characters: an entity that it has for one, unless it also has the
    character itself.
    """
    escapes = {">": "&gt;"}
    for match in _ENTITY.finditer(source):
        character = decode(match[0])
        if len(character) == 1 and not character.isspace():
            escapes[character] = match[0].rstrip(";") + ";"
    bare = _ENTITY.sub("", source)
    kept = {mark: entity for mark, entity in escapes.items() if mark not in bare}
    return _ALWAYS | kept


SYNTAX = Syntax(_WHITE, decode, escapes_of, collapses=True)


class _Reader:
    """Goes through the tokens of a text once."""

    def __init__(self, tokens: list[Token], kept: Collection[str]) -> None:
        self._tokens = tokens
        self._kept = {name.lower() for name in kept} | _KEPT
        self._ends = _ends(self._tokens)
        self._blocks = [0]  # how many block tags there are before each token
        for token in self._tokens:
            self._blocks.append(self._blocks[-1] + _is_block(token))
        self._next_block = _next_blocks(self._tokens)
        self._builder = Builder(SYNTAX)
        self._pieces: list[Piece] = []

    def document(self) -> TextDocument:
        """Read all tokens."""
        place = 0
        while place < len(self._tokens):
            place = self._take(place)
        self._end_run()
        return self._builder.document()

    def _take(self, place: int) -> int:
        """Read a token, or an element that is kept whole; return the place after it."""
        token = self._tokens[place]
        if token.kind is Markup.START:
            kind = self._kept_kind(place)
            if kind is not None:
                return self._keep_element(place, kind)
        if _is_block(token):
            self._end_run()
            self._builder.keep(token.raw)
        elif token.name == "br":
            self._add_break(token)
        else:
            self._pieces.append(Piece(token.raw, _kind(token), token.name))
        return place + 1

    def _kept_kind(self, place: int) -> Kind | None:
        """Return as what an element is kept; None where it is read."""
        token = self._tokens[place]
        if token.name in _VOID or _EMPTIED.search(token.raw):
            return None
        if token.name in _HIDDEN:
            return Kind.EMPTY
        if token.name in self._kept or _is_excluded(token) or self._is_address(place):
            return Kind.KEPT
        if place not in self._ends:
            return None
        if token.name in ("a", "sup") and self._is_label(place):
            return Kind.EMPTY
        return native_kind(token.name, token.raw)

    def _is_address(self, place: int) -> bool:
        """Return whether an element is a link whose text is an address."""
        end = self._ends.get(place)
        name = self._tokens[place].name
        if name != "a" or end is None or end - place > _LONGEST_LINK:
            return False
        inside = self._tokens[place:end]
        text = "".join(token.raw for token in inside if token.kind is Markup.TEXT)
        return _ADDRESS.fullmatch(text) is not None

    def _is_label(self, place: int) -> bool:
        """Return whether an element is the label of a note, or raised and without a letter."""
        inside = self._tokens[place : self._ends[place]]
        if len(inside) > _LONGEST_LINK:
            return False
        raw = "".join(token.raw for token in inside if token.kind is Markup.TEXT)
        text = decode(raw).strip()
        is_raised = any(token.name == "sup" for token in inside)
        if is_raised and text and not any(map(str.isalpha, text)):
            return True
        if not _LABEL.fullmatch(text):
            return False
        return any(_is_of_note(token, is_raised) for token in inside)

    def _keep_element(self, place: int, kind: Kind) -> int:
        """Keep a whole element; one without an end ends at the next block."""
        token = self._tokens[place]
        last = self._ends.get(place)
        after = self._next_block[place + 1] if last is None else last + 1
        raw = "".join(inner.raw for inner in self._tokens[place:after])
        has_block = self._blocks[after] > self._blocks[place]
        if has_block or (last is None and token.name not in RAW):
            self._end_run()
            self._builder.keep(raw)
        else:
            self._pieces.append(Piece(raw, kind, native_name(token.raw)))
        return after

    def _add_break(self, token: Token) -> None:
        """Add a line break; after another one, or a sentence, it ends the segment."""
        before = next(
            (piece for piece in reversed(self._pieces) if not _is_white(piece)), None
        )
        ends = before is not None and _ends_line(before)
        if ends:
            self._end_run()
            self._builder.keep(token.raw)
        else:
            self._pieces.append(Piece(token.raw, Kind.BREAK))

    def _end_run(self) -> None:
        self._builder.run(self._pieces)
        self._pieces = []


def _ends(tokens: list[Token]) -> dict[int, int]:
    """Return for each start tag the place of its end tag, the next one of its name that no other
    has.
    """
    ends = {}
    opened: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        if token.kind is Markup.START and token.name not in _VOID:
            opened.setdefault(token.name, []).append(place)
        elif token.kind is Markup.END and opened.get(token.name):
            ends[opened[token.name].pop()] = place
    return ends


def _next_blocks(tokens: list[Token]) -> list[int]:
    """Return for each place, and that after the last, where the next block tag is."""
    found = [len(tokens)]
    for place in reversed(range(len(tokens))):
        found.append(place if _is_block(tokens[place]) else found[-1])
    return found[::-1]


def _is_block(token: Token) -> bool:
    return token.name in _BLOCKS


def _kind(token: Token) -> Kind | None:
    """Return what a token of a run is; None for text."""
    if token.kind is Markup.TEXT:
        return None
    if token.kind is Markup.OTHER or token.name in _VOID:
        return Kind.EMPTY
    if token.kind is Markup.END:
        return Kind.CLOSE
    return Kind.EMPTY if _EMPTIED.search(token.raw) else Kind.OPEN


def _is_excluded(token: Token) -> bool:
    """Return whether a tag says that its element is not to be translated."""
    lowered = token.raw.lower()
    if "translate" not in lowered and "class" not in lowered:
        return False
    found = attributes(token.raw)
    classes = set(found.get("class", "").split())
    return found.get("translate", "").lower() == "no" or bool(classes & _KEPT_CLASSES)


def _is_of_note(token: Token, is_raised: bool) -> bool:
    """Return whether a tag is a link to a note, or back from there; one that is not raised says
    that it is.
    """
    if token.name != "a" or token.kind is not Markup.START:
        return False
    found = attributes(token.raw)
    told = (found.get(name, "") for name in ("class", "role", "epub:type"))
    return "#" in found.get("href", "") and (is_raised or "note" in " ".join(told))


def _is_white(piece: Piece) -> bool:
    return piece.kind is None and _WHITE.fullmatch(piece.raw) is not None


def _ends_line(piece: Piece) -> bool:
    """Return whether a piece before a line break ends a line or a sentence itself."""
    if piece.kind is not None:
        return piece.kind is Kind.BREAK
    end = piece.raw.rstrip()[-_LONGEST_END:]
    return _SENTENCE_END.search(end) is not None
