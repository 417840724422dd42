"""The record and the text that a run was begun from, read back from its folder."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.config import Recipe
from weft.data.texts import GLOSSARY, Sources, Texts
from weft.data.train_text import TrainText
from weft.errors import DataError, FolderError, UsageError, WeftError
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.recipes.file import build_recipe
from weft.run.card import without_folders
from weft.tasks.opening import kind_of

# what is said of scores on the part of the text that `held_out` took
HELD_OUT = {
    "test": "no text was given: this is the run's own test text",
    "dev": "no text was given, and the run has no test text: this is its dev text, which chose the best step",
}
HELD_OUT_BY_FIRST = {
    "test": "no text was given: this is the test text of the first model's run",
    "dev": "no text was given, and the first model's run has no test text: this is its dev text, which chose its best "
    "step",
}


def read_record(folder: RunFolder) -> dict[str, Any]:
    """Read what the run was begun from. Raises FolderError where that is missing or damaged."""
    record = durable.read_json(folder.recipe)
    keys = {"recipe", "texts", "from"}
    if not isinstance(record, dict) or not keys <= record.keys():
        raise FolderError(
            f"{folder.recipe}: does not say what the run was started from; restore the file"
        )
    return _without_tracker(record)


def _without_tracker(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record without the key of a tracker that is gone: it decided no result."""
    recipe = record["recipe"]
    training = recipe.get("training") if isinstance(recipe, dict) else None
    if not isinstance(training, dict) or "trackio" not in training:
        return record
    kept = {key: value for key, value in training.items() if key != "trackio"}
    return {**record, "recipe": {**recipe, "training": kept}}


def held_out(model: Path) -> tuple[str, Any]:
    """Read again what the run in a folder holds out; return which part, and its text.

    The test text, or else dev. Raises UsageError, with the reason, where there is none.
    """
    folder = RunFolder(model)
    if not folder.recipe.is_file():
        raise UsageError(
            f"{model} holds no run whose held-out text could be taken; give DATA"
        )
    origin = read_record(folder)
    recipe = build_recipe(origin["recipe"], str(folder.recipe))
    texts, doubt = texts_again(origin, recipe)
    parts = {} if texts is None else {"test": texts.test, "dev": texts.dev}
    for name, part in parts.items():
        if part is not None and len(part):
            return name, part
    why = doubt.removeprefix("no scores on test: ") or "it has none"
    raise UsageError(f"the run in {model} gives no held-out text: {why}; give DATA")


def texts_again(
    origin: Mapping[str, Any], recipe: Recipe
) -> tuple[Texts[Any] | None, str]:
    """Return the run's text, read once more from where it was; else why not, in a sentence."""
    why = "where they lay is not known"
    for sources in _sources(origin):
        try:
            texts = kind_of(recipe.task).gather(recipe, sources)
        except (DataError, FolderError, UsageError) as error:
            why = _without_folders(error)
            continue
        if _hashes(texts.facts()) == _hashes(origin["texts"]):
            return texts, ""
        why = "it has changed since training began"
    return None, f"no scores on test: the text was not found again ({why})"


def _without_folders(error: WeftError) -> str:
    """Return the first line of an error about a text, without the folders of who trained the model,
    which may be another person's.
    """
    line = str(error).split("\n", maxsplit=1)[0]
    return without_folders(line.partition("; the folder ")[0])


def _sources(origin: Mapping[str, Any]) -> Iterator[Sources]:
    """Yield the files as they were named: from here, then from where training was begun."""
    named = origin.get("sources")
    if not isinstance(named, dict):
        return
    for folder in (Path(), Path(str(named.get("directory", "")))):
        texts = map(TrainText.from_json, named.get("train", ()))
        train = tuple(replace(text, data=_within(folder, text.data)) for text in texts)
        parts = {
            part: _within(folder, named[part])
            for part in ("dev", "test")
            if named.get(part)
        }
        yield Sources(train, parts.get("dev"), parts.get("test"))


def _within(folder: Path, name: str) -> str:
    """Return a name of one file, or of two joined by a comma, as it stands in a folder."""
    path = folder / name
    if path.is_file():
        return str(path)
    return ",".join(str(folder / part) for part in name.split(","))


def _hashes(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the hash of each text; a glossary is none."""
    return {part: about["sha256"] for part, about in facts.items() if part != GLOSSARY}
