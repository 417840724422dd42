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
# in a pack, if they were put there, which is listed in its manifest alone
GLOSSARY, MEMORY = "glossary.jsonl", "memory.jsonl"
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
PACK = ".weft"  # the ending of a pack, a model in one file
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
        self.checked = folder / "checked.json"  # what was found in a large text
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
        # the steps of a command with text in one language
        self.course = folder / "course"


def is_pack(path: str | Path) -> bool:
    """Return whether a path is that of a pack, by its name; it may still be damaged."""
    # unlike Path.is_file, False for a text that is too long for a name
    return os.path.splitext(path)[1] == PACK and os.path.isfile(path)


def refuse_pack_name(out: Path) -> None:
    """Raise UsageError where a new folder is to be called as packs are."""
    if out.suffix == PACK and not out.is_dir():
        raise UsageError(
            f"--output {out}: {PACK} is the ending of packs, and this writes a folder; give {out.with_suffix('')}, "
            "of which weft pack makes a pack"
        )


def is_folder_or_pack(path: str | Path) -> bool:
    """Return whether a word names what may hold a model: a folder that is there, or a pack."""
    return os.path.isdir(path) or is_pack(path)


def model_name(path: Path) -> str:
    """Return what a model is called without its place: by its folder, or its pack."""
    if is_pack(path):
        return path.stem
    return path.name or path.resolve().name


def is_finished(folder: Path) -> bool:
    """Return whether a model was published in a folder, or a path is that of a pack; the model may
    still be damaged.
    """
    return (folder / durable.MANIFEST).is_file() or is_pack(folder)


def holds_model_or_run(folder: Path) -> bool:
    """Return whether a model was published in a folder, or a run has begun there."""
    return is_finished(folder) or RunFolder(folder).recipe.is_file()


def refuse_no_folder(folder: Path) -> None:
    """Raise FolderError where a folder is missing, and no pack is there.

    The message suggests models of similar names beside it and in `runs/`.
    """
    if is_folder_or_pack(folder):
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
    if not path.is_file():
        return ""
    run = durable.read_json(path)
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
        return f"is an archive; unpack it first, or name it {folder.stem}{PACK} if weft pack wrote it"
    return f"is no folder, and no pack, whose name ends in {PACK}"


def run_of_steps(folder: Path) -> Path | None:
    """Return the newest run among the steps of a folder that has such (`weft train --mono`); None
    where it has none.
    """
    recipes = list(RunFolder(folder).course.glob("*/run/recipe.json"))
    if not recipes:
        return None
    newest = max(recipes, key=lambda path: path.stat().st_mtime_ns)
    return newest.parent.parent


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
    if files.course.is_dir() and not files.recipe.is_file():
        return "its steps are not finished; run the same `weft train` with --mono again to continue"
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
