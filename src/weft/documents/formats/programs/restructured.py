"""Inline markup of reStructuredText, as catalogues of Sphinx have it in their messages.

Source: reStructuredText Markup Specification (Docutils), "Inline Markup".
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping

from weft.documents.document import Kind, TextDocument
from weft.documents.inline import Builder, Piece, Syntax

_BEFORE = r"(?:(?<=[\s\-:/'\"<(\[{‘“«„¡¿（「『【《，。：；、！？—–])|(?<=\\ )|^)"
_AFTER = r"(?=$|[\s\-.,:;!?\\/'\")\]}>’”»“）」』】》，。：；、！？…—–（])"
# none has more characters in it than these: a search for its end has one, too
_LITERAL = r"``(?=\S)[^\n]{1,1000}?(?<=\S)``"
_ROLE = r"(?::[A-Za-z][\w.+-]*+)+:`[^`\n]++`"
_PHRASE = r"_?`[^`\n]++`_{0,2}"
_STRONG = r"\*\*(?=[^\s*])[^\n]{1,1000}?(?<=[^\s\\])\*\*"
_EMPHASIS = r"\*(?=[^\s*])(?:[^*\n\\]|\\.){1,1000}?(?<=\S)\*"
_SUBSTITUTION = r"\|(?=[^\s|])[^|\n]{1,200}?(?<=\S)\|_{0,2}"
_FOOTNOTE = r"\[(?:\d++|[#*]|#?[A-Za-z][\w.-]*+)\]_"
_NAME = r"[A-Za-z0-9]++(?:[_.:+-][A-Za-z0-9]++)*+_{1,2}"
_FORMS = (_LITERAL, _ROLE, _PHRASE, _STRONG, _EMPHASIS, _SUBSTITUTION, _FOOTNOTE)
_MARKUP = re.compile(
    rf"\\.|{_BEFORE}(?:({'|'.join(_FORMS)})|(?<!\w){_NAME}(?!\w)){_AFTER}", re.DOTALL
)
_ANYWHERE = re.compile(rf"\\.|({'|'.join(_FORMS)})", re.DOTALL)
# text, and where it leads
_TITLED = re.compile(r"((?::[\w.+-]++)*:?`)([^`<]*[^`<\s])(\s*<[^`<>]+>`_{0,2})")
# roles whose text is words for the reader
_WORDED = re.compile(
    r"(:(?:dfn|emphasis|strong|sub|sup|subscript|superscript|guilabel):`)([^`<>]+)(`)"
)
_CODE = re.compile(r"[!~]?[\w.]*[._(]\S*")  # a title that is a name of a program
_BREAK = re.compile(r"\n++|\t++")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SIGN = re.compile(
    r"(?m)^#: .*\.(?:rst|txt)\b|(?::[\w.+-]++)+:`[^`\n]+`|``[^`\n]+``|`[^`\n]+ <[^`\n]+>`__?"
)


def is_restructured(catalogue: str) -> bool:
    """Return whether the messages of a catalogue are reStructuredText, by what is in it."""
    return _SIGN.search(catalogue) is not None


def _decode(raw: str) -> str:
    return _ESCAPE.sub(r"\1", raw)


def _escapes_of(source: str) -> Mapping[str, str]:
    """Return how marks are written; one that stands bare in the text stays bare."""
    bare = _ESCAPE.sub("", source)
    return {mark: f"\\{mark}" for mark in "\\*`|" if mark not in bare}


SYNTAX = Syntax(re.compile(r"\s++"), _decode, _escapes_of, collapses=False)


def read_restructured(text: str) -> TextDocument:
    """Read a message; its lines are segments."""
    builder = Builder(SYNTAX)
    place = 0
    for match in _BREAK.finditer(text):
        builder.run(list(_pieces(text[place : match.start()])))
        builder.keep(match[0])
        place = match.end()
    builder.run(list(_pieces(text[place:])))
    return builder.document()


def _pieces(line: str) -> Iterator[Piece]:
    place = 0
    for match in _MARKUP.finditer(line):
        raw = match[0]
        is_joint = raw.startswith("\\") and raw[1:].isspace()
        if raw.startswith("\\") and not is_joint:
            continue
        if match.start() > place:
            yield Piece(line[place : match.start()])
        place = match.end()
        if is_joint:
            yield Piece(raw, Kind.EMPTY)
        else:
            yield from _marked(raw)
    if place < len(line):
        yield Piece(line[place:])


def _marked(raw: str) -> Iterator[Piece]:
    """Divide a stretch with markup: words between two marks, or what is kept whole."""
    titled = _TITLED.fullmatch(raw) or _WORDED.fullmatch(raw)
    if titled and not _CODE.fullmatch(titled[2]):
        opening, inside, closing = titled[1], titled[2], titled[3]
    elif raw.startswith("*"):
        length = 2 if raw.startswith("**") else 1
        opening, closing = raw[:length], raw[-length:]
        inside = raw[length:-length]
    else:
        yield Piece(raw, Kind.KEPT)
        return
    yield Piece(opening, Kind.OPEN, opening)
    yield Piece(inside)
    yield Piece(closing, Kind.CLOSE, opening)


def with_spaces(text: str) -> str:
    """Put a space before and after markup where it would not be read as such without one."""
    parts: list[str] = []
    place = 0
    for match in _ANYWHERE.finditer(text):
        if not match[1]:
            continue
        start, end = match.span()
        parts.append(text[place:start])
        before = text[start - 1] if start else " "
        parts.append("" if _may_stand(before, "-:/'\"<([{", "PsPiPfPdPo") else " ")
        parts.append(match[0])
        after = text[end] if end < len(text) else " "
        parts.append(
            "" if _may_stand(after, "-.,:;!?\\/'\")]}>", "PePiPfPdPo") else " "
        )
        place = end
    return "".join([*parts, text[place:]])


def _may_stand(character: str, marks: str, categories: str) -> bool:
    if character.isspace() or character in marks:
        return True
    return not character.isascii() and unicodedata.category(character) in categories
