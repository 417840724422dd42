"""README.md of a model folder: what it is, how it was made, what it scores, how to use it."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.data.check.finding import counted
from weft.tasks.task import Task

ABOUT_RUN = """\
The folder `run/`, where it is here, holds checkpoints and the training text; the model needs none of it. Hand on the
one file that `weft pack` makes of the folder, which is without it.
"""
# what cards of earlier versions say in its place
_BEFORE = """\
The folder `run/`, where it is here, holds checkpoints and the training text; the model needs none of it. Delete it
before the folder is handed on.
"""


# of a path from the root
_FOLDERS = re.compile(r"(?<![\w:/.~-])~?/(?:[^\s/,;:()\"']+/)+")


# of the lines below that heading
_FIRST_SCORE = re.compile(r"^## Scores on test\n\n {4}(\S+) +([\d.]+)", re.MULTILINE)


def without_folders(text: str, files: Iterable[str] = ()) -> str:
    """Return the text with paths cut to their last names: who gets a model need not learn where its
    maker keeps things.

    Cut are `files`, as they were named, and all paths from the root.
    """
    for name in sorted(set(files), key=len, reverse=True):
        text = text.replace(name, Path(name).name or name)
    return _FOLDERS.sub("", text)


def without_run(card: str) -> str:
    """Return a card without what it says of its folder's run, and without folders: that of a model
    which has none.
    """
    for said in (ABOUT_RUN, _BEFORE):
        card = card.replace(said, "")
    return without_folders(card)


def _paths(command: str) -> list[str]:
    """Return what in a command may be a path, also of a folder with spaces in its name."""
    try:
        words = shlex.split(command)
    except ValueError:  # written by hand
        return []
    parts = (part for word in words for part in re.split("[=,]", word))
    return [part for part in parts if part.startswith(("/", "~/"))]


def names_alone(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts, the files of each text by their last names."""
    texts = {
        part: {**about, "files": [Path(name).name for name in about["files"]]}
        for part, about in facts["texts"].items()
    }
    if worths := texts["train"].get("worths"):
        texts["train"]["worths"] = [
            {**worth, "file": Path(worth["file"]).name} for worth in worths
        ]
    return {**facts, "texts": texts}


def model_card(
    task: Task[Any, Any],
    facts: Mapping[str, Any],
    verdict: Mapping[str, Any],
    judged: Sequence[str],
    test_lines: Sequence[str],
    command: str,
    computed: str = "",
    recipe: str = "",
) -> str:
    """Return the card as Markdown, without the folders that its files lay in; `judged` says what
    the model is good for.

    `test_lines` are the scores of the test set as a person reads them; `computed` says in which
    precision, by which kernels and from which seeds the run computed; `recipe` is the section of
    what repeats it.
    """
    texts = [
        f"{name}: {part['size']} from {', '.join(part['files'])} ({_identity(part)})"
        for name, part in facts["texts"].items()
    ]
    overridden = facts["texts"]["train"].get("overridden", ())
    texts += (
        [f"trained in spite of: {', '.join(overridden)} (--allow-bad-data)"]
        if overridden
        else []
    )
    texts += [_teacher_line(facts["teacher"])] if "teacher" in facts else []
    portrait = task.portrait()
    best = verdict["best_step"]
    which = f"those of step {best:,}, the best on dev" if best else "the last"
    dev = [
        f"{name.replace('_', ' ')}: {value:.4g}"
        for name, value in verdict["dev"].items()
    ]
    test = "\n".join(f"    {line}" for line in test_lines) or "No test set."
    files = [name for part in facts["texts"].values() for name in part["files"]]
    card = f"""# {portrait.title}

{portrait.shape}, trained with Weft {task.config.weft_version}.

Weft is a program that makes a Transformer of a person's own text, and uses it: `weft --help`.

## Use

{_indented(portrait.use)}

## What it is good for

{_bullets(judged)}

## Text

{_bullets(texts)}

## Training

    {command or "weft.train(...)"}

{counted(verdict["step"], "steps")}{f" ({computed})" if computed else ""}; the weights are {which}.
{recipe}
## Scores on dev

{_bullets(dev)}

## Scores on test

{test}

## Notes

{_bullets(verdict["notes"])}

{ABOUT_RUN}"""
    return without_folders(card, [*files, *_paths(command)])


def test_score(card: Path) -> str:
    """Read the first score on test from a card, with its name; "" where it has none."""
    try:
        text = card.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    found = _FIRST_SCORE.search(text)
    return f"{found[1]} {found[2]}" if found else ""


def _teacher_line(teacher: Mapping[str, Any]) -> str:
    """Say what wrote the target side of the text."""
    return (
        f"target side: the translations of a teacher (its manifest's sha256 {teacher['teacher']}) by beam search, "
        f"beam size {teacher['beam_size']}, of {teacher['sentences']:,} source sentences "
        f"(sha256 {teacher['source'][:16]})"
    )


def _identity(part: Mapping[str, Any]) -> str:
    """Say by what a text is known; a glossary has no signature."""
    names = (f"sha256 {part['sha256'][:16]}", part.get("signature"))
    return "; ".join(filter(None, names))


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- none"
