"""The settings that repeat a run: of all its steps, or of each length that it had.

The learning rate and the evaluations follow a run's length. No single recipe repeats a run that was
lengthened, but one command for each length does. A run by the clock is repeated without it, by the
plan that the clock has decided.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.config import Recipe, TranslationRecipe
from weft.data.check.finding import counted
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.recipes.file import build_recipe, with_values
from weft.recipes.problems import as_written
from weft.recipes.written import as_toml, written_value
from weft.run.begun import read_record
from weft.run.record import Verdict, read_verdict
from weft.training.budget import TimePlan, read_time_plan
from weft.training.schedule import learning_rate
from weft.training.trainer import OPEN

# as in the progress of a checkpoint
Length = dict[str, int | None]


@dataclass(frozen=True)
class Part:
    """The steps of a run up to `last`, which were those of a run of `max_steps`.

    `settings` are the keys of `training` that its command sets.
    """

    max_steps: int
    last: int
    settings: Mapping[str, int | None]

    @property
    def is_cut(self) -> bool:
        """Return whether the part ended before its last step was reached."""
        return self.last < self.max_steps


@dataclass(frozen=True)
class Repetition:
    """The settings that repeat a run: those of its first part, then those of each later one.

    `recipe` is that of the first part, `planned` the keys in which it differs from the run's latest
    recipe, those of `training` without that name before them. Without `parts` no settings repeat
    the run: some steps were taken before the clock had decided its length, and are not those of the
    length that came.
    """

    recipe: Recipe
    planned: Mapping[str, Any]
    parts: Sequence[Part]
    by_clock: bool

    def note(self) -> str:
        """Say what repeats a run that was lengthened or by the clock; "" for other runs."""
        if not self.parts:
            return ""
        first = _options(self.planned)
        if len(self.parts) == 1:
            said = f"planned by the clock; the same without it: {first}"
            return said if self.by_clock else ""
        clock = "planned by the clock, then " if self.by_clock else ""
        without = " without the clock" if self.by_clock else ""
        later = [_options(part.settings) for part in self.parts[1:]]
        then = "".join(f", then the same command with {options}" for options in later)
        return f"{clock}{self._lengths()}; to repeat it{without}: first {first}{then}"

    def seeds(self) -> str:
        """Return the seeds of the run in words, those that are the defaults too."""
        data: Any = self.recipe.data  # of any task
        return f"training.seed {self.recipe.training.seed}, data.seed {data.seed}"

    def section(self) -> str:
        """Return the section of the card that holds the settings."""
        return f"\n## Recipe\n\n{self._how()}\n\n```toml\n{as_toml(self.recipe)}\n```\n"

    def _how(self) -> str:
        """Say how the settings of the card repeat the run."""
        differ = "These settings of the run differ from the defaults."
        if not self.parts:
            return (
                f"{differ} They do not repeat it: it took steps before the clock had decided\n"
                "how many there are."
            )
        replaced = "`--recipe` and `--set`"
        if self.by_clock:
            differ += " They hold what the clock has decided."
            replaced = "`--recipe`, `--set` and `--minutes`"
        how = (
            f"{differ} To repeat the training with the same text, save them as\n"
            f"`recipe.toml`; `--recipe recipe.toml` takes the place of the command's {replaced}."
        )
        if len(self.parts) == 1:
            return how
        commands = "\n".join(self._commands())
        return (
            f"The run was {self._lengths()}. Its learning rate and its evaluations followed its length,\n"
            f"and no single recipe repeats it.\n\n{how}\n"
            f"Give the command once for each length, in this order, with the same `--output`:\n\n{commands}"
        )

    def _commands(self) -> Iterator[str]:
        """Yield a numbered line for the command of each part."""
        last = len(self.parts)
        for number, part in enumerate(self.parts, start=1):
            options = f"with `{_options(part.settings)}`"
            if number == 1:
                options = f"as it is, for {counted(part.max_steps, 'steps')}"
            until = ""
            if part.is_cut and number < last:
                until = f", left after step {part.last:,}"
            yield f"{number}. {options}{until}"

    def _lengths(self) -> str:
        """Say that the run was lengthened or shortened, and which lengths it had."""
        first, latest = self.parts[0], self.parts[-1]
        said = []
        for part in self.parts:
            steps = f"{part.max_steps:,}"
            if part is first:
                steps = counted(part.max_steps, "steps")
            if part.is_cut and part is not latest:
                steps += f" (left after step {part.last:,})"
            said.append(steps)
        is_longer = latest.max_steps > first.max_steps
        changed = "lengthened" if is_longer else "shortened"
        return f"{changed}: {', then '.join(said)}"


def repetition_of(folder: RunFolder, verdict: Verdict) -> Repetition | None:
    """Return what repeats a run that has come as far as its verdict says.

    None where its recipe is lost.
    """
    if not folder.recipe.is_file():
        return None
    recipe = build_recipe(read_record(folder)["recipe"], str(folder.recipe))
    by_clock = read_time_plan(folder.plan)
    lengths: Sequence[Length] = verdict.lengths or lengths_before(folder)
    if by_clock is not None:
        lengths = _joined(lengths, recipe, by_clock)
    rhythm_follows = by_clock is None and recipe.training.eval_every is None
    parts = _parts(lengths, verdict, rhythm_follows)
    planned: dict[str, Any] = {}
    if by_clock is not None:
        max_steps = parts[0].max_steps if parts else None
        wanted = by_clock.as_settings(max_steps) | _machine_choices(folder, recipe)
        if lengths and (eval_every := lengths[0].get("eval_every")):
            wanted["eval_every"] = eval_every
        for key, value in wanted.items():
            if getattr(recipe.training, key) != value:
                planned[key] = value
        if parts and (mixtures := _mixtures_by(by_clock, recipe, parts[0].max_steps)):
            planned["data.mixtures"] = mixtures
    if len(parts) > 1:
        planned |= parts[0].settings
    values = {_full_key(key): value for key, value in planned.items()}
    repeated = with_values(recipe, values)
    return Repetition(repeated, planned, parts, by_clock is not None)


def lengths_before(folder: RunFolder) -> list[Length]:
    """Return the lengths of a run whose checkpoints, of an older version, do not say them.

    They are those of its plan by the clock, else that of its verdict, as far as it has one.
    """
    by_clock = read_time_plan(folder.plan)
    steps: list[int | None] = []
    if by_clock is not None:
        decided = [decision["max_steps"] for decision in by_clock.decisions]
        steps = [*filter(None, decided), by_clock.max_steps]
    elif (verdict := read_verdict(folder.verdict)) is not None and verdict.max_steps:
        steps = [verdict.max_steps]
    lengths: list[Length] = []
    after: int | None = 0
    for max_steps in dict.fromkeys(steps):
        lengths.append({"after": after, "max_steps": max_steps})
        after = max_steps
    return lengths


def _joined(
    lengths: Sequence[Length], recipe: Recipe, by_clock: TimePlan
) -> Sequence[Length]:
    """Return the lengths, a first one that was open joined to the next where its steps are the
    same.

    They are where they had the rates that the steps of the next have.
    """
    if len(lengths) < 2 or lengths[0]["max_steps"] is not None:
        return lengths
    settings = by_clock.applied(recipe.training)
    after = lengths[1]["after"] or 0
    max_steps = lengths[1]["max_steps"] or OPEN
    # d_model does not count: the schedule is wsd
    if learning_rate(settings, 1, after, max_steps) != learning_rate(
        settings, 1, after, OPEN
    ):
        return lengths
    return [{**lengths[1], "after": 0}, *lengths[2:]]


def _parts(
    lengths: Sequence[Length], verdict: Verdict, rhythm_follows: bool
) -> list[Part]:
    """Return the parts of a run with these lengths; none where one of them was never decided.

    `rhythm_follows` says that evaluations follow each length of themselves.
    """
    if not lengths:
        return [Part(verdict.max_steps, verdict.step, {})]
    ends = [length["after"] or 0 for length in lengths[1:]]
    patience = {length["patience"] for length in lengths if "patience" in length}
    rhythms = {length["eval_every"] for length in lengths if "eval_every" in length}
    parts = []
    for length, last in zip(lengths, [*ends, verdict.step], strict=True):
        if length["max_steps"] is None:
            return []
        settings: Length = {"max_steps": length["max_steps"]}
        if len(patience) > 1 and "patience" in length:
            settings["patience"] = length["patience"]
        if len(rhythms) > 1 and not rhythm_follows and "eval_every" in length:
            settings["eval_every"] = length["eval_every"]
        parts.append(Part(length["max_steps"], last, settings))
    return parts


def _machine_choices(folder: RunFolder, recipe: Recipe) -> dict[str, Any]:
    """Return what the recipe left open and the machine chose; nothing where that is lost."""
    if not folder.machine.is_file():
        return {}
    machine = durable.read_json(folder.machine)
    choices = ("precision", "kernels", "threads")
    opened = [key for key in choices if getattr(recipe.training, key) in ("auto", None)]
    return {key: machine[key] for key in opened}


def _mixtures_by(
    by_clock: TimePlan, recipe: Recipe, max_steps: int
) -> list[dict[str, Any]]:
    """Return the mixtures of a run, each ending where the clock has ended it, if it has some.

    A mixture that no step was taken of is left out.
    """
    if not isinstance(recipe, TranslationRecipe):
        return []
    borders = [*by_clock.borders, max_steps]
    found: list[dict[str, Any]] = []
    before = 0
    for mixture, border in zip(recipe.data.mixtures, borders, strict=False):
        if border > before:
            kept = mixture.model_dump(mode="json")
            found.append({**kept, "until": min(border / max_steps, 1.0)})
        before = max(before, border)
    return found


def _options(settings: Mapping[str, Any]) -> str:
    """Return keys as --set options."""
    return " ".join(_option(key, value) for key, value in settings.items())


def _option(key: str, value: Any) -> str:
    """Return a key as a --set option."""
    shown = str(value)
    if isinstance(value, list):
        return f"--set {shlex.quote(f'{_full_key(key)}={written_value(value)}')}"
    if value is None:
        shown = as_written(value)
    return f"--set {_full_key(key)}={shown}"


def _full_key(key: str) -> str:
    """Return a key of `training` with that name before it."""
    return key if "." in key else f"training.{key}"
