"""The file names of a model folder and of its run, and the checks that a folder holds a model."""

import difflib
import os
import shlex
from pathlib import Path

from weft.errors import DataError, FolderError, UsageError
from weft.folder import durable

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
SHORTLIST = "shortlist.safetensors"
AVERAGE = "average.safetensors"  # where a run keeps a moving average of its weights
WORDS = "words.safetensors"
LANGUAGES = "languages.safetensors"  # listed in the manifest alone
# the outcomes of a run that came to its end: after all its steps, or out of patience
DONE, STOPPED_EARLY = "done", "stopped early"
# the outcome of an unfinished run that `weft finish` made a model of
FINISHED_EARLY = "finished early"
# exit codes of a run whose command or text has to be changed: the same would be refused again
REFUSALS = (UsageError.exit_code, DataError.exit_code)
RUNS = Path("runs")  # the parent of a model folder that the user has not named
# by task, what a model of another task cannot do
WORK = {
    "translation": "translate",
    "classification": "classify",
    "language-modelling": "generate or score text; weft evaluate scores it",
}
SCALES = ".scales"  # suffix to the name of an int8 matrix: one number a row
TOKENIZER = "tokenizer.json"
SRC_TOKENIZER = "tokenizer.src.json"
TGT_TOKENIZER = "tokenizer.tgt.json"
_MOST_NAMED = 3  # models that a message lists
PICKLES = {".pt", ".bin", ".pth", ".pkl", ".ckpt"}  # suffixes of other programs' models


class RunFolder:
    """The paths under `run/` in a model folder: training needs them, using the model does not."""

    def __init__(self, model_folder: Path) -> None:
        self.model_folder = model_folder
        self.folder = folder = model_folder / "run"
        self.lock = folder / "lock"
        self.recipe = folder / "recipe.json"
        self.config = folder / "config.json"  # of the model that the run will publish
        self.machine = folder / "machine.json"
        self.plan = folder / "plan.json"
        self.metrics = folder / "metrics.jsonl"
        self.samples = folder / "samples.jsonl"
        self.tensorboard = folder / "tensorboard"
        self.verdict = folder / "verdict.json"
        self.checkpoints = folder / "checkpoints"
        self.snapshots = folder / "snapshots"  # weights of its way, to look back at
        self.stores = folder / "stores"
        # copied from the model that the run starts from
        self.words = folder / "words.safetensors"
        self.tokenizers = folder / "tokenizers"
        self.train_hashes = folder / "train-hashes.npy"
        self.languages = folder / LANGUAGES  # learned at the first start
        # the translations of a teacher, in distillation
        self.distilled = folder / "distilled"
        self.teacher = self.distilled / "teacher.json"
        self.translations = self.distilled / "translations.jsonl"
        self.distilled_src = self.distilled / "source.txt"
        self.distilled_tgt = self.distilled / "target.txt"


def is_finished(folder: Path) -> bool:
    """Return whether a model was published in a folder; its files may still be damaged."""
    return (folder / durable.MANIFEST).is_file()


def holds_model_or_run(folder: Path) -> bool:
    """Return whether a model was published in a folder, or a run has begun there."""
    return is_finished(folder) or RunFolder(folder).recipe.is_file()


def refuse_no_folder(folder: Path) -> None:
    """Raise FolderError where a folder is missing.

    The message suggests models of similar names beside it and in `runs/`.
    """
    # unlike Path.is_dir, False for a text that is too long for a name
    if os.path.isdir(folder):
        return
    remedy = "give the folder that `weft train` wrote"
    if near := _near_models(folder):
        remedy = f"did you mean {' or '.join(near)}?"
    raise FolderError(f"{folder!s:.200}: {_why_no_folder(folder)}; {remedy}")


def refuse_no_model(folder: Path) -> None:
    """Raise FolderError where a folder is missing or no model was published in it."""
    refuse_no_folder(folder)
    if not is_finished(folder):
        raise FolderError(f"{folder}: {_why_no_model(folder)}")


def refuse_other_task(folder: Path, task: str, verb: str | None = None) -> None:
    """Raise UsageError where a folder's model is for another task, FolderError where it has none.

    `verb` says what it cannot do, by default the work of the task.
    Other problems of a folder are found when its model is loaded.
    """
    own = task_of(folder)
    if own in WORK and own != task:
        raise UsageError(
            f"{folder}: holds a model for {own}, which cannot {verb or WORK[task]}"
        )


def task_of(folder: Path) -> str:
    """Return the task of a folder's model, from its config; raise FolderError without a model."""
    refuse_no_model(folder)
    config = durable.read_json(folder / CONFIG, limit=2**20)
    return str(config.get("task")) if isinstance(config, dict) else ""


def command_of(folder: Path) -> str:
    """Return the command that began a folder's run.

    It is empty without a run, and for a run that was begun from Python.
    """
    recipe = RunFolder(folder).recipe
    facts = durable.read_json(recipe) if recipe.is_file() else {}
    return str(facts.get("command", "")) if isinstance(facts, dict) else ""


def newer_state(folder: Path) -> str:
    """Say that a folder's run has saved steps after its model, and how to make a model of them; ""
    where it has not, or that is not known.
    """
    path = RunFolder(folder).verdict
    run = durable.read_json(path) if path.is_file() else {}
    model = durable.read_json(folder / durable.MANIFEST)
    if not isinstance(run, dict) or not isinstance(model, dict):
        return ""
    saved = run.get("saved_step")
    step = model.get("steps")
    if run.get("outcome") in (DONE, STOPPED_EARLY) or not isinstance(step, int):
        return ""
    if not isinstance(saved, int) or saved <= step:
        return ""
    use = shlex.join(["weft", "finish", str(folder)])
    return f"the model is of step {step:,}, and its run has saved step {saved:,}; to use that: {use}"


def how_to_resume(command: str, folder: Path, is_saved: bool) -> str:
    """Return how to continue a stopped run and, if it has saved, how to make a model of it."""
    if command:
        again = f"the same command continues it: {command.replace(' --fresh', '')}"
        use = shlex.join(["weft", "finish", str(folder)])
    else:
        again = "the same call continues it"
        use = f'weft.finish("{folder}")'
    if not is_saved:
        return again
    return f"{again}; to use what is saved: {use}"


def _near_models(folder: Path) -> list[str]:
    """Return the folders with a model or a run whose names are similar to this one's."""
    models: dict[str, Path] = {}
    for parent in (RUNS, folder.parent):
        try:
            paths = [parent / name for name in os.listdir(parent)]
            models |= {path.name: path for path in paths if holds_model_or_run(path)}
        except (OSError, ValueError):  # missing, or not a possible name
            continue
    near = difflib.get_close_matches(folder.name, models, n=2, cutoff=0.6)
    return [str(models[name]) for name in near]


def _why_no_folder(folder: Path) -> str:
    if not os.path.exists(folder):
        return "no such folder"
    if folder.suffix == ".zip":
        return "is an archive; unpack it first"
    return "is no folder"


def why_refused(verdict: Path) -> str:
    """Return why a run was refused, by its verdict; "" where it was not, or that is not known."""
    facts = durable.read_json(verdict) if verdict.is_file() else {}
    is_refused = isinstance(facts, dict) and facts.get("exit_code") in REFUSALS
    return str(facts["reason"]) if is_refused else ""


def _why_no_model(folder: Path) -> str:
    files = RunFolder(folder)
    if files.distilled.is_dir() and not files.recipe.is_file():
        return (
            "its model is not finished; run the same `weft distill` again to continue"
        )
    if files.recipe.is_file():
        is_saved = any(files.checkpoints.glob("step-*"))
        if not is_saved and (reason := why_refused(files.verdict)):
            return f"no model was trained: {reason}"
        return f"training has not finished; {how_to_resume(command_of(folder), folder, is_saved)}"
    for path in folder.iterdir():
        if path.suffix in PICKLES:
            return (
                f"not a Weft model; {path.name} may be a pickle, which Weft never reads"
            )
    return f"not a Weft model folder (it has no {durable.MANIFEST}){_where_instead(folder)}"


def _where_instead(folder: Path) -> str:
    """Name the model that a folder is a part of, or models in it; return "" without any."""
    if is_finished(folder.parent):
        return f"; it is a part of {folder.parent}: give that"
    inside = sorted(path for path in folder.iterdir() if is_finished(path))
    if not inside:
        return ""
    named = " and ".join(map(str, inside[:_MOST_NAMED]))
    more = f", or another of {len(inside)}" if len(inside) > _MOST_NAMED else ""
    return f"; there are models in it: give {named}{more}"
