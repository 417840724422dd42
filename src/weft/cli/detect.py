"""The verb that tells languages apart: detect."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import AsJson, Folder, Input, Output
from weft.cli.streams import progress, reading_lines, sink
from weft.console.wording import remark
from weft.folder.layout import is_folder_or_pack, refuse_no_folder, refuse_no_model

if TYPE_CHECKING:
    from weft.data.detection import Detector


def detect(
    folder: Folder,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="More models, then texts. Default: read --input or standard input."
        ),
    ] = None,
    input_file: Input = None,
    output_file: Output = None,
    as_json: AsJson = False,
) -> None:
    """Tell in which of its models' languages each text is: code and confidence; und for none."""
    more, texts = _divided(text or [])
    folders = [folder, *more]
    for one in folders:
        refuse_no_model(one)
    with (
        reading_lines(texts, input_file, output_file) as source,
        sink(output_file) as out,
        progress(source.count, 0) as advance,
    ):
        detector = _detector(folders)
        for line in source.lines:
            out.write(_answer(detector, line, as_json) + "\n")
            advance()
            if source.chunk == 1:  # a person waits for it
                out.flush()


def _divided(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the folders that come first, and the texts behind them.

    Raises FolderError for a missing folder in a folder that exists.
    """
    folders: list[Path] = []
    for word in words:
        if not is_folder_or_pack(word):
            break
        folders.append(Path(word))
    texts = list(words[len(folders) :])
    if texts and _looks_like_folder(texts[0]):
        refuse_no_folder(Path(texts[0]))
    return folders, texts


def _looks_like_folder(word: str) -> bool:
    """Return whether a word is a path in a folder that exists, and not a file there."""
    parent = os.path.dirname(word)
    is_inside = parent.strip(os.sep) != "" and " " not in word
    return is_inside and os.path.isdir(parent) and not os.path.exists(word)


def _detector(folders: Sequence[Path]) -> "Detector":
    """Return the detector of all folders, and say where one tells its languages badly."""
    from weft.data.detection import Detector
    from weft.tasks.detecting import languages_in

    detectors = []
    for folder in folders:
        found = languages_in(folder)
        if note := found.note():
            remark(f"weft: {note}")
        detectors.append(Detector.of(found.profiles))
    return Detector.joined(detectors)


def _answer(detector: "Detector", line: str, as_json: bool) -> str:
    language, confidence = detector.best(line)
    if not as_json:
        return f"{language}\t{confidence:.4f}"
    value = {
        "language": language,
        "confidence": confidence,
        "languages": dict(detector.detect(line)),
    }
    return json.dumps(value, ensure_ascii=False)
