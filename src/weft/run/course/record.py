"""The record of a course, `run/course/record.json`: what it was begun with, and each step that is
done or under way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import FolderError, UsageError
from weft.folder import durable

_NAMES = {
    "recipe": "the recipe",
    "pairs": "the pairs",
    "worths": "the weights and tags of the pairs",
    "mono": "the text in one language",
    "minutes": "--minutes",
    "rounds": "--rounds",
    "sample": "--sample",
    "denoise": "--denoise",
}


@dataclass
class CourseRecord:
    """The facts that a course was begun with and, by step, what was chosen and what came of it.

    A step that is done has `seconds`; one that was only begun has not.
    """

    path: Path
    facts: Mapping[str, Any]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, facts: Mapping[str, Any]) -> "CourseRecord":
        """Read the record of a course that was begun, or begin one.

        Raises UsageError, with the differences, where it was begun with other facts and something
        would be lost; FolderError where it is damaged.
        """
        if not path.is_file():
            record = cls(path, facts)
            record.write()
            return record
        kept = durable.read_json(path)
        if not isinstance(kept, dict) or not {"facts", "steps"} <= kept.keys():
            raise FolderError(
                f"{path}: does not say how far the steps came; restore the file"
            )
        record = cls(path, kept["facts"], kept["steps"])
        unlike = [key for key, now in facts.items() if record.facts.get(key) != now]
        if unlike and not record.has_something():
            record = cls(path, facts)
            record.write()
        elif unlike:
            shown = " and ".join(_NAMES.get(key, key) for key in unlike)
            raise UsageError(
                f"{path.parent}: was begun with something else: {shown}; continue with the same, give another "
                "--output, or start over with --fresh"
            )
        return record

    def has_something(self) -> bool:
        """Return whether a step is done, or has saved something of its work."""
        folder = self.path.parent
        saved = [*folder.glob("*/run/checkpoints/step-*"), *folder.glob("*.partial")]
        return bool(saved) or any(map(self.is_done, self.steps))

    def begun(self, step: str) -> dict[str, Any]:
        """Return what was chosen for a step when it began; empty where it has not."""
        return self.steps.get(step, {})

    def is_done(self, step: str) -> bool:
        """Return whether a step has come to its end."""
        return "seconds" in self.begun(step)

    def seconds(self) -> float:
        """Return how long the steps that are done have taken."""
        return sum(step.get("seconds", 0.0) for step in self.steps.values())

    def note(self, step: str, **facts: Any) -> None:
        """Write down facts of a step."""
        self.steps[step] = {**self.begun(step), **facts}
        self.write()

    def write(self) -> None:
        """Write the record."""
        durable.write_json(
            self.path, {"facts": dict(self.facts), "steps": dict(self.steps)}
        )
