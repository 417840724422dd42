"""The plan of a course: its steps, and how the time is divided among them."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.data.check.finding import counted
from weft.run.course.material import MOST_MADE, Direction, Material, MonoUse
from weft.run.course.record import CourseRecord

# shares of the time: of a run on pairs alone, of the one that writes what others learn from, of one
# on all text, of translating one's text and the pairs' targets
ALONE, WRITER, ON_ALL, MADE, AGAIN = 2.0, 3.0, 6.0, 1.5, 0.5
# of the minutes left, which a run needs at least
LEAST_MINUTES = 0.1
# minutes of a course that says neither minutes nor steps
USUAL_MINUTES = 110.0


@dataclass(frozen=True)
class Step:
    """A step: its name, which is that of its folder or file, what it does, and its share of the
    time.
    """

    name: str
    does: str
    share: float


def steps_of(material: Material, use: MonoUse) -> list[Step]:
    """Return the steps of a course in their order."""
    forward = material.forward
    reverse = material.reverse
    pairs = counted(material.num_pairs, "pairs")
    there, back = _languages(forward), _languages(reverse)
    steps = [Step("pairs", f"{there}, from the {pairs} alone", ALONE)]
    if use.denoise:
        restored = f"{forward.src_lang} and {forward.tgt_lang}"
        does = f"a model that restores text with masked spans, {restored}"
        steps.append(Step("denoised", does, ALONE))
        steps.append(Step("pairs-denoised", f"{there}, the same from there", ALONE))
    steps.append(Step("reverse", f"{back}, from the {pairs} alone", WRITER))
    for number in range(1, use.rounds + 1):
        if number > 1:
            steps += _improving(number, "reverse", reverse, forward, material)
        steps += _improving(number, "forward", forward, reverse, material)
        if reverse.mono is not None:
            sentences = _sentences(material, forward.src_lang)
            does = f"the {there} model translates {sentences}"
            steps.append(Step(f"self-made-{number}", does, MADE))
            does = f"{there}, from its own translations, too"
            steps.append(Step(f"self-{number}", does, ON_ALL))
    return steps


def _improving(
    number: int, name: str, to: Direction, by: Direction, material: Material
) -> list[Step]:
    """Return the steps that improve one direction by the model of the other."""
    targets = f"the targets of the {counted(material.num_pairs, 'pairs')}"
    writer = f"the {_languages(by)} model translates"
    steps = [Step(f"{name}-again-{number}", f"{writer} {targets}, drawn", AGAIN)]
    if to.mono is not None:
        sentences = _sentences(material, to.tgt_lang)
        steps.append(Step(f"{name}-made-{number}", f"{writer} {sentences}", MADE))
    trained = f"{_languages(to)}, from the pairs and what was made"
    return [*steps, Step(f"{name}-{number}", trained, ON_ALL)]


def _sentences(material: Material, lang: str) -> str:
    count = min(material.num_mono[lang], MOST_MADE * material.num_pairs)
    return f"{counted(count, 'sentences')} of the text in {lang}"


def _languages(direction: Direction) -> str:
    return f"{direction.src_lang} to {direction.tgt_lang}"


@dataclass(frozen=True)
class Clock:
    """The time of a course and how its steps divide it; without `minutes` each takes what it
    takes.
    """

    minutes: float | None
    steps: Sequence[Step]

    def foreseen(self, record: CourseRecord, name: str) -> float | None:
        """Return the minutes of a step: those that it began with, else its share of what is left;
        None where no clock divides the time.
        """
        if self.minutes is None:
            return None
        begun = record.begun(name).get("minutes")
        if begun is not None:
            return float(begun)
        open_steps = [step for step in self.steps if not record.is_done(step.name)]
        whole = sum(step.share for step in open_steps)
        own = sum(step.share for step in open_steps if step.name == name)
        left = self.minutes - record.seconds() / 60
        return max(left * own / whole, LEAST_MINUTES)

    def lines(self, record: CourseRecord) -> list[str]:
        """Say the steps, and how long each will take or has taken."""
        said = []
        whole = sum(step.share for step in self.steps)
        for number, step in enumerate(self.steps, start=1):
            time = ""
            if record.is_done(step.name):
                time = ": done"
            elif self.minutes is not None:
                time = f": about {in_minutes(60 * self.minutes * step.share / whole)}"
            said.append(f"  {number}. {step.name}: {step.does}{time}")
        return said


def in_minutes(seconds: float) -> str:
    """Return a time in minutes, for a person."""
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes >= 9.5 else f"{minutes:.1f} minutes"
