"""The names of the files in a model folder and of its run, and why a folder holds no model."""

import difflib
import os
import shlex
from pathlib import Path

from weft.errors import FolderError, UsageError
from weft.folder import durable

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
SHORTLIST = "shortlist.safetensors"
WORDS = "words.safetensors"
# the outcomes of a run that came to its end
DONE, STOPPED_EARLY = "done", "stopped early"
# of one that a person stopped and had a model made of
FINISHED_EARLY = "finished early"
RUNS = Path("runs")  # where a model goes whose folder was not named
# by task, what a model of another one cannot do
WORK = {
    "translation": "translate",
    "classification": "classify",
    "language-modelling": "generate or score text; weft evaluate scores it",
}
SCALES = ".scales"  # behind the name of an int8 matrix: one number a row
TOKENIZER, SRC_TOKENIZER, TGT_TOKENIZER = (
    "tokenizer.json",
    "tokenizer.src.json",
    "tokenizer.tgt.json",
)


class RunFolder:
    """The folder `run/` in a model folder: what training keeps; using the model needs none."""

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
        self.stores = folder / "stores"
        # of the model that the run starts from
        self.words = folder / "words.safetensors"
        self.tokenizers = folder / "tokenizers"
        self.train_hashes = folder / "train-hashes.npy"
        # what a teacher wrote, where there was one
        self.distilled = folder / "distilled"
        self.teacher = self.distilled / "teacher.json"
        self.translations = self.distilled / "translations.jsonl"
        self.distilled_src = self.distilled / "source.txt"
        self.distilled_tgt = self.distilled / "target.txt"


def is_finished(folder: Path) -> bool:
    """Return whether a model was published here (its files may still turn out damaged)."""
    return (folder / durable.MANIFEST).is_file()


def holds_model_or_run(folder: Path) -> bool:
    """Return whether a verb could take this folder: a model was published in it, or a run has begun
    there.
    """
    return is_finished(folder) or RunFolder(folder).recipe.is_file()


def refuse_no_folder(folder: Path) -> None:
    """Raise FolderError where a folder is missing, naming the like ones beside it and in
    `runs/`.
    """
    # unlike Path.is_dir, False for a text that is too long for a name
    if not os.path.isdir(folder):
        near = _near_models(folder)
        remedy = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "give the folder that `weft train` wrote"
        )
        raise FolderError(f"{folder!s:.200}: {_why_no_folder(folder)}; {remedy}")


def refuse_no_model(folder: Path) -> None:
    """Raise FolderError where a folder is missing, or nothing in it was published as a model."""
    refuse_no_folder(folder)
    if not is_finished(folder):
        raise FolderError(f"{folder}: {_why_no_model(folder)}")


def refuse_other_task(folder: Path, task: str) -> None:
    """Raise as `refuse_no_model`, and UsageError where a folder's model is for another task.

    What else is wrong with a folder is said where its model is loaded.
    """
    own = task_of(folder)
    if own in WORK and own != task:
        raise UsageError(
            f"{folder}: holds a model for {own}, which cannot {WORK[task]}"
        )


def task_of(folder: Path) -> str:
    """Return the task of the model in a folder, as its config says. Raises FolderError where there
    is none.
    """
    refuse_no_model(folder)
    config = durable.read_json(folder / CONFIG, limit=2**20)
    return str(config.get("task")) if isinstance(config, dict) else ""


def command_of(folder: Path) -> str:
    """Return the command that a folder's run was begun by; empty where there is no run, or Python
    began it.
    """
    recipe = RunFolder(folder).recipe
    facts = durable.read_json(recipe) if recipe.is_file() else {}
    return str(facts.get("command", "")) if isinstance(facts, dict) else ""


def going_on(command: str, folder: Path, is_saved: bool) -> str:
    """Say which command goes on with a stopped run, and what makes a model of what it has saved."""
    if command:
        again = f"the same command goes on: {command.replace(' --fresh', '')}"
        use = shlex.join(["weft", "finish", str(folder)])
    else:
        again = "the same call goes on"
        use = f'weft.finish("{folder}")'
    return f"{again}; to use what there is: {use}" if is_saved else again


def _near_models(folder: Path) -> list[str]:
    """Return folders with a model or a run whose names are like this one's."""
    found: dict[str, Path] = {}
    for place in (RUNS, folder.parent):
        try:
            found |= {
                name: place / name
                for name in os.listdir(place)
                if holds_model_or_run(place / name)
            }
        except (OSError, ValueError):  # it is not there, or cannot be a name
            continue
    return [
        str(found[name])
        for name in difflib.get_close_matches(folder.name, found, n=2, cutoff=0.6)
    ]


def _why_no_folder(folder: Path) -> str:
    if not os.path.exists(folder):
        return "no such folder"
    if folder.suffix == ".zip":
        return "is an archive; unpack it first"
    return "is no folder"


def _why_no_model(folder: Path) -> str:
    files = RunFolder(folder)
    if files.distilled.is_dir() and not files.recipe.is_file():
        return "its model is not finished; run the same `weft distill` again to go on"
    if files.recipe.is_file():
        is_saved = any(files.checkpoints.glob("step-*"))
        return f"training has not finished; {going_on(command_of(folder), folder, is_saved)}"
    pickles = [
        p.name
        for p in folder.iterdir()
        if p.suffix in {".pt", ".bin", ".pth", ".pkl", ".ckpt"}
    ]
    if pickles:
        return f"not a Weft model; {pickles[0]} may be a pickle, which Weft never reads"
    return f"not a Weft model folder (it has no {durable.MANIFEST})"
