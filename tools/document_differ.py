"""What a translation of a document has changed that it should not: for each format a function from
the bytes of both files to sentences, none where all is well.

The files are read by others' readers where there is one.
"""

import re
from collections.abc import Iterable

import pysubs2


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
