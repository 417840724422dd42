"""A request for a run: a recipe, the text beside it, and the folder to write to."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.config import Recipe
from weft.data.texts import Sources
from weft.data.train_text import TrainText
from weft.errors import UsageError
from weft.folder.layout import RunFolder
from weft.recipes.file import load_recipe, own_keys
from weft.run.origin import refuse_foreign, with_own_split


@dataclass(frozen=True)
class Request:
    """A recipe, the text beside it, where to write, and the model to start from, if any.

    `fresh` begins anew where the folder holds a run, which is set aside. `allow_data_change` goes
    on with other text. `teacher` says what wrote the text (`weft.run.distillation`); it is kept
    with the run and the model. `notes` are said and kept beside those of the text. `minutes` is
    how long the run may take, counted from `began` (time.monotonic): the clock then plans its
    steps and its schedule (`weft.training.budget`). The run `is_step` of something longer, which
    says what comes next. `own_keys` are the recipe's keys that a person set, where the others may
    be chosen by the text and the time (`weft.run.sizing`); None where a recipe was named.
    `tokenizers` is a folder of tokenizers that were learned before, for several runs.
    """

    recipe: Recipe
    out: Path
    train: tuple[TrainText, ...] = ()
    dev: str | None = None
    test: str | None = None
    glossary: str | None = None
    start_from: Path | None = None
    command: str = ""
    fresh: bool = False
    allow_data_change: bool = False
    allow_bad_data: bool = False
    teacher: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    minutes: float | None = None
    began: float = field(default_factory=time.monotonic)
    is_step: bool = False
    own_keys: frozenset[str] | None = None
    tokenizers: Path | None = None

    @classmethod
    def by_name(
        cls, recipe: str | None, settings: Sequence[str], **options: Any
    ) -> "Request":
        """Make a request for a recipe by name or file, with `section.key=value` settings.

        Raises UsageError.
        """
        own = own_keys(settings) if recipe is None else None
        return cls(load_recipe(recipe, settings), own_keys=own, **options)

    def checked(self) -> "Request":
        """Return the request, with the split of the run that its folder holds, if any.

        Raises UsageError where the folder holds something else than a run, or a teacher's
        translations that another command began.
        """
        refuse_foreign(self.out)
        folder = RunFolder(self.out)
        is_distilled = folder.distilled.is_dir() and not folder.recipe.is_file()
        if is_distilled and self.teacher is None:
            raise UsageError(
                f"{self.out} holds a teacher's translations; continue with weft distill, or give another --output"
            )
        if folder.course.is_dir() and not folder.recipe.is_file():
            raise UsageError(
                f"{self.out} holds the steps of a command with --mono; continue with that, or give another --output"
            )
        if self.fresh:
            return self
        return replace(self, recipe=with_own_split(self.out, self.recipe))

    def sources(self) -> Sources:
        """Return the files to read, as they were named."""
        checked = None if self.fresh else RunFolder(self.out).checked
        return Sources(self.train, self.dev, self.test, self.glossary, checked)

    def source_facts(self) -> dict[str, Any]:
        """Return what the run reads, as it was named, and the directory of these names."""
        start = None if self.start_from is None else str(self.start_from)
        return {
            "train": [text.to_json() for text in self.train],
            "dev": self.dev,
            "test": self.test,
            **({"glossary": self.glossary} if self.glossary else {}),
            "from": start,
            "directory": os.getcwd(),
        }

    def teacher_facts(self) -> dict[str, Any]:
        """Return what is kept of the teacher; empty where there is none."""
        return {} if self.teacher is None else {"teacher": dict(self.teacher)}
