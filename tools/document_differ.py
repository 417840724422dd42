"""What a translation of a document has changed that it should not: for each format a function from
the bytes of both files to sentences, none where all is well.

The files are read by others' readers where there is one.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable
from tempfile import NamedTemporaryFile

import polib
import pysubs2

from weft.documents.placeholders import find_kept


def unlike(what: str, original: Iterable[object], translated: Iterable[object]) -> list[str]:  # fmt: skip
    """Say where two lists of things first differ."""
    old = list(original)
    new = list(translated)
    if old == new:
        return []
    number = next(
        (place for place, pair in enumerate(zip(old, new, strict=False)) if len(set(map(repr, pair))) > 1),
        min(len(old), len(new)),
    )  # fmt: skip
    return [f"{what} {number}: {old[number : number + 1]} has become {new[number : number + 1]}"]  # fmt: skip


def _cues(text: str, kind: str) -> list[pysubs2.SSAEvent]:
    return list(pysubs2.SSAFile.from_string(text, kind, keep_unknown_html_tags=True))


def diff_subtitles(original: bytes, translated: bytes, ending: str) -> list[str]:
    """Compare subtitles: cues, times, tags, and all lines of WebVTT that are of no cue."""
    old, new = original.decode(), translated.decode()
    kind = ending.removeprefix(".")
    cues = [_cues(text, kind) for text in (old, new)]
    times = [[(cue.start, cue.end) for cue in found] for found in cues]
    tags = [[sorted(re.findall(r"<[^<>]*>|\{[^{}]*\}", cue.text)) for cue in found] for found in cues]  # fmt: skip
    heads = [re.findall(r"(?m)^.*-->.*$", text) for text in (old, new)]
    others = [re.findall(r"(?ms)^(?:WEBVTT|NOTE|STYLE|REGION).*?\n\n", text) for text in (old, new)]  # fmt: skip
    return (
        unlike("times", *times)
        + unlike("tags of cue", *tags)
        + unlike("line", *heads)
        + unlike("block", *others)
    )


MARKUP = re.compile(
    r"(?::[\w:.+-]+:`[^`]+`|``[^`]+``|<[^<>`]+>`__?|\|[^|\s]+\||\[\d+\]_)"
)


def placeholders(text: str) -> list[str]:
    """The placeholders of a message, and the markup of reStructuredText that has no words."""
    text = re.sub(r"(:[\w:]+:)`[^`<]+(?=<)", r"\1`", text)
    text = re.sub(r":(?:dfn|guilabel):`[^`]+`", "", text)
    kept = [text[start:end] for start, end in find_kept(text)]
    return sorted([*MARKUP.findall(text), *(raw for raw in kept if "`" not in raw)])


def _key(entry: polib.POEntry) -> tuple[object, ...]:
    flags = sorted(set(entry.flags) - {"fuzzy"})
    message = (entry.msgctxt, entry.msgid, entry.msgid_plural)
    return (*message, entry.comment, entry.occurrences, entry.obsolete, flags)


def diff_po(original: bytes, translated: bytes) -> list[str]:
    """Compare catalogues: all of their messages but their translations, and the placeholders in
    these; what was translated is the same; gettext takes the file.
    """
    old, new = (polib.pofile(content.decode()) for content in (original, translated))
    keys = [list(map(_key, found)) for found in (old, new)]
    faults = unlike("entry", *keys)
    for before, after in zip(old, new, strict=True):
        if before.translated() and (before.msgstr, before.msgstr_plural) != (
            after.msgstr,
            after.msgstr_plural,
        ):
            faults.append(f"the translation of {before.msgid!r} has changed")
        elif not before.translated() and after.translated() and not before.msgid_plural:
            faults += unlike(
                f"placeholder of {after.msgid!r}",
                placeholders(after.msgid),
                placeholders(after.msgstr),
            )
    return faults + gettext_says(translated)


def gettext_says(catalogue: bytes) -> list[str]:
    """What msgfmt has against a catalogue; nothing where it is not installed."""
    program = shutil.which("msgfmt")
    if not program:
        return []
    with NamedTemporaryFile(suffix=".po") as file:
        file.write(catalogue)
        file.flush()
        command = [
            program,
            "--check-format",
            "--check-domain",
            "-o",
            "/dev/null",
            file.name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.split("\n") if done.returncode else []
