"""Stretches of text that no translation may change: placeholders of messages, addresses, names.

They are found by their form alone, in any kind of text.
"""

import re
from collections.abc import Iterator

# an entity of HTML, which stands for a mark that ends an address
_MARKS = r"&(?:quot|lt|gt|nbsp|amp;nbsp);"
# no white space, quotes, brackets of tags; no letter of a script that has no spaces around words
_ADDRESS = rf"(?:(?!{_MARKS})[^\s<>\"'`\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])++"
_FORMS = (
    r"``[^`\n]++``|`[^`\n]++`",  # code in Markdown and reStructuredText
    rf"(?<![\w/])(?:https?|ftp)://{_ADDRESS}",
    rf"(?<![\w/.@])www\.{_ADDRESS}",
    r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]++(?:\.[\w-]++)++",  # an e-mail address
    r"(?<![\w.@])@[A-Za-z0-9_]++(?:@[\w-]++(?:\.[\w-]++)++)?+",  # a user, on a server
    r"(?<![\w&/#])#(?=\w*[^\W\d])\w++",
    r"(?<![\w:]):[a-z0-9_+-]{2,64}+:(?!\w)",  # :smile:
    r"\[X\d++X\]",  # Weblate's own, for what it highlights
    r"\{\{[^{}\n]{0,200}+\}\}",
    r"\{%(?:[^{}%\n]|%(?!\})){0,200}+%\}",
    r"[$#%]\{[^{}\s]{0,100}+\}",
    r"\{[\w.\[\]]*+(?:[!:][^{}\s]{0,40}+)?\}",
    r"\$t?\([^()\n]{0,100}+\)",
    r"(?<![\w$])\$[A-Za-z_]\w*+(?:\$(?!\w))?+",
    r"%\(\w++\)[-+#0]?\d*+(?:\.\d++)?[a-zA-Z]",
    r"(?<![\w%])%[A-Za-z_]\w*+%(?!%)",
    r"(?<![\d%])%(?:\d++\$)?[-+#0]?\d*+(?:\.\d++)?(?:hh?|ll?|[Lqjzt])?[sdifuxXoeEgGcp@](?:%%)?+(?![a-zA-Z]{3})",
    r"&#(?:\d{8,}+|[xX][0-9a-fA-F]{7,}+);?",  # a character's number that is none
)
_FORM = re.compile("|".join(f"(?:{form})" for form in _FORMS))
# a character that every form has
_SIGN = re.compile(r"[`/@#:\[{$%&]|www")
# marks that may be between two placeholders which are one thing: {0}/{1}
_LINK = re.compile(r"[^\w\s<>&]{0,3}")
# Messages with a choice inside, as ICU writes them: {n, plural, one {# day} other {# days}}
_CHOICE = re.compile(r"\{\s*+[\w.]++\s*+,\s*+[a-zA-Z]++\s*+[,}]")
_BRACE = re.compile(r"[{}]")
_ENDINGS = ".,;:!?)]}*_~'\""


def find_kept(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the stretches begin and end."""
    if not _SIGN.search(text):
        return
    start = stop = -1
    for begin, end in _single(text):
        if start >= 0 and _LINK.fullmatch(text, stop, begin):
            stop = end
            continue
        if start >= 0:
            yield start, stop
        start = begin
        stop = end
    if start >= 0:
        yield start, stop


def _single(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    for start, stop in find_choices(text):
        yield from _forms(text, place, start)
        yield start, stop
        place = stop
    yield from _forms(text, place, len(text))


def _forms(text: str, place: int, limit: int) -> Iterator[tuple[int, int]]:
    while match := _FORM.search(text, place, limit):
        place = _without_endings(match)
        yield match.start(), place


def find_choices(text: str) -> Iterator[tuple[int, int]]:
    """Yield the messages with a choice inside, the outer one of nested ones."""
    if not _CHOICE.search(text):
        return
    closing = _closing_braces(text)
    stop = 0
    for match in _CHOICE.finditer(text):
        if match.start() >= stop and match.start() in closing:
            stop = closing[match.start()]
            yield match.start(), stop


def _closing_braces(text: str) -> dict[int, int]:
    """Return for each opening brace the place after the one that closes it."""
    closing = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.end()
    return closing


def _without_endings(match: re.Match[str]) -> int:
    """Return where an address ends, without the marks of the sentence that it ends."""
    found = match[0]
    if not found.startswith(("http", "ftp", "www")):
        return match.end()
    bare = found.rstrip(_ENDINGS)
    if bare.count("(") > bare.count(")") and found[len(bare) :].startswith(")"):
        bare += ")"
    return match.start() + len(bare)
