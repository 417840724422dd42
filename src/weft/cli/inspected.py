"""The arguments of `weft inspect`: a text, several, two models, or a model while it learned."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from weft import DEMO
from weft.cli.hints import about_order
from weft.cli.models import naming_options, opened, toward
from weft.errors import UsageError
from weft.folder.layout import (
    is_finished,
    is_folder_or_pack,
    is_pack,
    refuse_no_model,
)

if TYPE_CHECKING:
    from weft.inspection.look import Inspection
    from weft.inspection.several import Several
    from weft.tasks.task import Task

# from here on are the scripts that write no spaces: Thai and its neighbours, those of East Asia
_SPACELESS = "\u0e00"

Found: TypeAlias = Union["Inspection", "Several"]


def folder_and_texts(
    first: str | None, others: list[str], demo: bool, checkpoints: bool
) -> tuple[Path, list[str]]:
    """Return the folder of the model and what was given after it.

    Raises UsageError where one of them is missing, or does not stand in its place.
    """
    if demo:
        texts = others if first is None else [first, *others]
        _refuse_no_demo(texts, checkpoints)
        return DEMO, texts
    if first is None:
        raise UsageError(
            "weft inspect needs FOLDER (a model folder), or --demo; see weft inspect --help"
        )
    if not others:
        raise UsageError(
            f"weft inspect needs TEXTS (a sentence, or several) after {first:.60}; see weft inspect --help"
        )
    if said := about_order("weft inspect", [first, *others]):
        raise UsageError(said)
    return Path(first), others


def _refuse_no_demo(texts: list[str], checkpoints: bool) -> None:
    """Raise UsageError for what the demo's model is not, or does not have."""
    model = next((text for text in texts if text and is_folder_or_pack(text)), None)
    if model is not None:
        raise UsageError(
            f"--demo takes the model that comes with Weft, and {model} is a {_kind(model)}: leave out one of them"
        )
    if checkpoints:
        raise UsageError(
            "the model of --demo has kept no steps of its run: leave out --checkpoints, or train one "
            "that does (weft demo)"
        )
    if not texts:
        raise UsageError(
            'weft inspect --demo needs a sentence in English: weft inspect --demo "My sister is drinking tea."'
        )


def _kind(model: str | Path) -> str:
    return "pack" if is_pack(model) else "folder"


def split_texts(given: list[str], checkpoints: bool) -> tuple[Path | None, list[str]]:
    """Return the folder of a second model, if the first of what was given is one, and the texts.

    Raises UsageError where a sentence is missing or too many are given, FolderError for a folder
    without a model.
    """
    first = Path(given[0])
    is_model = is_folder_or_pack(first)
    if is_model and len(given) == 1 and is_finished(first):
        raise UsageError(
            f"{first} is the {_kind(first)} of a model; give a sentence after it, to compare the two models"
        )
    if not is_model or len(given) == 1:
        if checkpoints and len(given) > 1:
            raise UsageError(
                f"--checkpoints takes one sentence; {len(given)} are given"
            )
        return None, given
    if checkpoints:
        raise UsageError(f"--checkpoints is of one model; leave out {first}")
    refuse_no_model(first)
    if len(given) > 2:
        raise UsageError(
            f"two models are compared on one sentence; {len(given) - 1} are given"
        )
    return first, given[1:]


def refuse_words(texts: list[str]) -> None:
    """Raise UsageError where texts are words of one sentence that lacks its quotes."""
    are_words = [len(text.split()) == 1 and max(text) < _SPACELESS for text in texts]
    if len(texts) > 1 and all(are_words):
        raise UsageError(
            f"unexpected {texts[1]!r}: weft inspect takes FOLDER TEXTS...; put a text with spaces in quotes; "
            "see weft inspect --help"
        )


def inspected(
    folder: Path,
    other: Path | None,
    texts: list[str],
    beam_size: int | None,
    checkpoints: bool,
    to: str | None = None,
) -> Found:
    """Run the model, or both models, on what is asked for."""
    from weft.inspection.look import inspect_text
    from weft.inspection.several import compare_models, inspect_sentences

    task = _toward(opened(folder), to)
    with naming_options(["beam_size"]):
        if checkpoints:
            from weft.inspection.learned import inspect_learning

            return inspect_learning(folder, task, texts[0], beam_size)
        if other is not None:
            names = [str(folder), str(other)]
            return compare_models(
                [task, _toward(opened(other), to)], names, texts[0], beam_size
            )
        if len(texts) > 1:
            return inspect_sentences(task, texts, beam_size)
        return inspect_text(task, texts[0], beam_size=beam_size)


def _toward(task: "Task[Any, Any]", to: str | None) -> "Task[Any, Any]":
    """Return a translator as it translates into a language; another model as it is."""
    from weft.tasks.translation import Translation

    if isinstance(task, Translation):
        return toward(task, to)
    if to is not None:
        raise UsageError(f"--to: this is a model for {task.name}; leave it out")
    return task
