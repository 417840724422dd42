"""Functions of `import weft` that look at models: inspect, compare, diagnose, plot.

What they need is loaded when they are called, PyTorch and matplotlib among it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UsageError
from weft.folder.layout import refuse_no_folder, refuse_no_model
from weft.packages import require_matplotlib, require_torch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weft.inspection.comparison import Comparison
    from weft.inspection.diagnosis.findings import Diagnosis
    from weft.inspection.drawn import Picture
    from weft.inspection.inspected import Inspection, Inspections
    from weft.inspection.tokens import Limits
    from weft.tasks.task import Task

# the pictures of `plot`, and what each takes
PICTURES: dict[str, set[str]] = {
    "positions": {"d_model", "max_len"},
    "mask": set(),
    "smoothing": set(),
    "schedule": {"recipe"},
    "history": {"folders"},
}
_DECODING = ("beam_size", "length_penalty")  # settings of the search of both models


def inspect_task(
    task: "Task[Any, Any]",
    text: str | Sequence[str],
    beam_size: int | None = None,
    to: str | None = None,
    **limits: int,
) -> "Inspection | Inspections":
    """Return what a model does with a text, or with several; see `LooksInside.inspect`."""
    from weft.inspection.inspected import Inspection, Inspections
    from weft.inspection.look import inspect_text
    from weft.inspection.several import inspect_sentences

    bounds = _limits(limits)
    task = _toward(task, to)
    if isinstance(text, str):
        return Inspection(inspect_text(task, text, bounds, beam_size))
    if not text:
        raise UsageError("there is no text to inspect; give a sentence, or several")
    return Inspections(inspect_sentences(task, text, beam_size, bounds))


def inspect_models(
    first: str | Path,
    second: str | Path,
    text: str,
    beam_size: int | None = None,
    **limits: int,
) -> "Inspections":
    """Inspect a text with the models of two folders, as `weft inspect FIRST SECOND TEXT` does.

    The answer has an Inspection of each, in this order. Where both translate with the same
    tokenizers and write something else, a third one is the second model's while it writes the first
    one's translation. `.pair` are the places of two whose tokens are the same one by one, so that
    their arrays have the same axes but for parts, layers and heads; None where there are none.

    `beam_size` and `limits` are those of `model.inspect`. Raises weft.errors.UsageError as it does
    and for models of two tasks, FolderError as `load` does.
    """
    from weft.inspection.inspected import Inspections
    from weft.inspection.several import compare_models as inspect_both
    from weft.tasks.opening import load_task

    _refuse_several(text)
    bounds = _limits(limits)
    names = [str(first), str(second)]
    tasks = [load_task(Path(folder)) for folder in names]
    return Inspections(inspect_both(tasks, names, text, beam_size, bounds))


def inspect_checkpoints(
    folder: str | Path, text: str, beam_size: int | None = None, **limits: int
) -> "Inspections":
    """Inspect a text with a model at each step that its run has kept, as `weft inspect FOLDER TEXT
    --checkpoints` does.

    The answer has an Inspection for each step, eight at most, from the first to the last: `.steps`.
    A translator writes at each of them the translation of the finished model, whose place is
    `.finished`, so that all arrays have the same shapes; `.own` is what it would have written by
    itself. `.notes` say which steps could not be read, and where there are none but the last.

    `beam_size` and `limits` are those of `model.inspect`. Raises weft.errors.UsageError as it does,
    FolderError as `load` does.
    """
    from weft.inspection.inspected import Inspections
    from weft.inspection.learned import inspect_learning
    from weft.tasks.opening import load_task

    _refuse_several(text)
    bounds = _limits(limits)
    task = load_task(Path(folder))
    return Inspections(inspect_learning(Path(folder), task, text, beam_size, bounds))


def _toward(task: "Task[Any, Any]", to: str | None) -> "Task[Any, Any]":
    """Return a translator of several directions as it translates into a language."""
    from weft.tasks.translation import Translation

    return task.toward(to) if isinstance(task, Translation) else task


def _refuse_several(text: object) -> None:
    """Raise UsageError for a list of texts, which `model.inspect` takes."""
    if not isinstance(text, str):
        raise UsageError(
            "text: give one text here, as a str; a list of texts is for model.inspect"
        )


def _limits(given: Mapping[str, int]) -> "Limits":
    """Return limits. Raises UsageError for a name that is none."""
    from weft.inspection.tokens import USUAL, Limits

    known = vars(USUAL)
    if strays := sorted(given.keys() - known.keys()):
        raise UsageError(
            f"inspect takes no {strays[0]}; its limits are {', '.join(known)}"
        )
    return Limits(**given)


def diagnose(folder: str | Path, data: str | Sequence[str] = ()) -> "Diagnosis":
    """Find out why the model in a folder is bad, as `weft diagnose` does.

    `data` names files with text like that of its training, to try the model on. The answer is a
    sequence of causes, the gravest first, and shows itself in a notebook.

    Raises weft.errors.MissingPackage without PyTorch, FolderError for a folder that holds neither a
    model nor a run, DataError for text that cannot be read.
    """
    return diagnose_folder(Path(folder), _listed(data))


def diagnose_folder(
    folder: Path, data: Sequence[str], sets_threads: bool = False
) -> "Diagnosis":
    """Find out what `diagnose` does; with `sets_threads` in a process of its own."""
    refuse_no_folder(folder)
    require_torch("a diagnosis")
    from weft.inspection.diagnosis import diagnose as find
    from weft.inspection.diagnosis.findings import Diagnosis
    from weft.kernels.torch_machine import machine_for_torch
    from weft.run.own_verdict import own_verdict

    causes = find(folder, data, machine_for_torch(sets_threads=sets_threads))
    return Diagnosis(str(folder), tuple(causes), bool(data), own_verdict(folder))


def compare(
    first: str | Path,
    second: str | Path,
    data: str | Sequence[str] = (),
    *,
    train: str | Sequence[str] = (),
    samples: int = 1000,
    show: int = 5,
    to: str | None = None,
    **decoding: Any,
) -> "Comparison":
    """Compare the models of two folders on a text, as `weft compare` does: the better one, by how
    much, where, and whether it is chance.

    `data` names files; without it, it is the text that the first model's run held out. `train`
    names the training pairs, for figures by rare words. `samples` is how many resamples are drawn,
    `show` how many rows that differ most are given in each direction. Of models that translate into
    several languages, `to` says which. `decoding` are `beam_size`
    and `length_penalty` in the place of each model's own.

    Raises weft.errors.MissingPackage without PyTorch; UsageError for models of two tasks or
    languages, and for other settings; FolderError and DataError as `load` and `train` do.
    """
    if strays := sorted(decoding.keys() - set(_DECODING)):
        raise UsageError(f"weft.compare takes no {strays[0]}; leave it out")
    return compare_models(
        (Path(first), Path(second)),
        _listed(data),
        train=_listed(train),
        samples=samples,
        show=show,
        decoding=decoding,
        to=to,
    )


def compare_models(
    folders: tuple[Path, Path],
    data: Sequence[str],
    *,
    train: Sequence[str],
    samples: int,
    show: int,
    decoding: Mapping[str, Any],
    to: str | None = None,
    sets_threads: bool = False,
) -> "Comparison":
    """Compare as `compare` does; with `sets_threads` in a process of its own."""
    for folder in folders:
        refuse_no_model(folder)
    require_torch("a comparison")
    from weft.inspection.comparison import compare as run
    from weft.kernels.torch_machine import machine_for_torch
    from weft.run.begun import HELD_OUT_BY_FIRST, held_out

    text: Any = data
    own = []
    if not data:
        part, text = held_out(folders[0])
        own.append(HELD_OUT_BY_FIRST[part])
    comparison = run(
        *folders,
        text,
        machine_for_torch(sets_threads=sets_threads),
        train=train,
        samples=samples,
        show=show,
        decoding=decoding,
        to=to,
    )
    return replace(comparison, notes=(*own, *comparison.notes))


def plot(
    what: "str | Inspection | Inspections",
    *folders: str | Path,
    recipe: str | None = None,
    d_model: int | None = None,
    max_len: int | None = None,
) -> "Picture":
    """Draw a picture, as `weft plot` does; it shows itself in a notebook.

    `what` is "history", of the runs in `folders`: their losses and scores; "schedule": the paper's
    learning rates, or those of a `recipe`, by its name or file; "positions": `max_len` sinusoidal
    vectors (100) of `d_model` numbers (128); "mask": the decoder's; "smoothing": targets
    smoothed by 0.1. Of an inspection it is the attention of each layer, or what each token adds to
    a label; of several, give one of them.

    Raises weft.errors.MissingPackage without matplotlib or, for all but the history, PyTorch;
    UsageError for another `what` and for what that picture does not take; FolderError for a run
    that has logged nothing.
    """
    if not isinstance(what, str):
        if isinstance(what, Sequence):
            raise UsageError(
                "a picture is of one inspection; give found[0], or another"
            )
        return what.picture()
    if what not in PICTURES:
        raise UsageError(f"there is no picture {what!r}: choose {', '.join(PICTURES)}")
    sizes = {"d_model": d_model, "max_len": max_len}
    given = {"folders": folders or None, "recipe": recipe, **sizes}
    for name, value in given.items():
        if value is not None and name not in PICTURES[what]:
            raise UsageError(f"weft.plot({what!r}) takes no {name}; leave it out")
    for name, size in sizes.items():
        if size is not None and size < 2:
            raise UsageError(f"{name} = {size}: it must be at least 2")
    if what == "history" and not folders:
        raise UsageError("weft.plot('history') needs the folder of a run, or several")
    paths = [Path(folder) for folder in folders]
    require_matplotlib()
    from weft.inspection.drawn import Picture

    figure = drawn(what, paths, recipe, d_model or 128, max_len or 100)
    return Picture(what, figure)


def drawn(
    what: str, folders: Sequence[Path], recipe: str | None, d_model: int, max_len: int
) -> "Figure":
    """Return the figure of a picture of `PICTURES`."""
    if what == "history":
        from weft.inspection import curves, history

        runs = [history.read_history(folder) for folder in dict.fromkeys(folders)]
        return curves.draw_history(runs)
    require_torch(f"a picture of {what}")
    from weft.inspection import plots

    if what == "positions":
        return plots.draw_positions(d_model, max_len)
    if what == "mask":
        return plots.draw_mask()
    if what == "smoothing":
        return plots.draw_smoothing()
    if recipe is None:
        return plots.draw_schedule(plots.paper_schedules())
    from weft.recipes.file import load_recipe

    schedule, max_steps = plots.recipe_schedule(load_recipe(recipe), recipe)
    return plots.draw_schedule([schedule], max_steps)


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
