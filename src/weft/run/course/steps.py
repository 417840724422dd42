"""The steps of a course: a run that learns a model, and a text that a model makes."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from weft.config import TranslationRecipe
from weft.console import stages
from weft.data.check.finding import counted
from weft.data.corpus import SourceText, read_pairs
from weft.data.formats.lines import read_lines
from weft.data.train_text import MADE, TrainText
from weft.errors import DataError, UsageError
from weft.folder.layout import RunFolder
from weft.recipes.file import with_values
from weft.run.backtranslation import make_pairs
from weft.run.course.material import MOST_MADE, Direction, Material
from weft.run.course.plan import Clock, in_minutes
from weft.run.course.record import CourseRecord
from weft.run.record import RunRecord
from weft.run.request import Request
from weft.run.train import ending_clearly, train
from weft.run.translations import Maker, Progress, Search
from weft.tasks.opening import load_task
from weft.tasks.translation import Translation
from weft.training.log import Log

OF_RUN = 0.95  # of a step's time, the rest being for its scores on dev
# of the rows that an epoch reads, those of people's pairs; beside many that a machine made they are
# read more than once
LEAST_OF_PEOPLE = 0.25
# of the training steps, those on all text; what comes last are the pairs of people alone
OF_ALL = 0.65
_TRIED = 48  # sentences that tell how long translating takes
_LEAST_MADE = 100


@dataclass(frozen=True)
class Learned:
    """A model of a course: the step that it is of, what it learned from, and its scores on dev, by
    beam search as it is used.
    """

    step: str
    folder: Path
    direction: Direction
    texts: tuple[TrainText, ...]
    bleu: float
    chrf: float

    @property
    def made(self) -> tuple[TrainText, ...]:
        """Return what a machine made of the texts, which stands behind the pairs."""
        return self.texts[len(self.direction.pairs) :]

    def is_better(self, other: "Learned") -> bool:
        """Return whether it is better on dev: by BLEU, where that is the same by chrF."""
        return (self.bleu, self.chrf) > (other.bleu, other.chrf)


@dataclass(frozen=True)
class Steps:
    """The taking of the steps of a course: each once, whatever stops it and how often.

    A step that is done is only read back.
    """

    request: Request
    material: Material
    record: CourseRecord
    clock: Clock
    verdict: RunRecord
    log: Log
    progress: Progress

    @property
    def folder(self) -> Path:
        """Return the folder of the steps."""
        return RunFolder(self.request.out).course

    def learn(
        self,
        name: str,
        direction: Direction,
        texts: tuple[TrainText, ...],
        start: Path | None = None,
        beside: Learned | None = None,
    ) -> Learned:
        """Train a model of a direction on texts, and score it on dev; say what it gains `beside`
        another.
        """
        folder = self.folder / name
        if not self.record.is_done(name):
            minutes = self._enter(name)
            began = time.monotonic()
            self._train(self._request(folder, direction, texts, start, minutes))
            scores = self._scores(folder, direction)
            took = round(time.monotonic() - began, 1)
            self.record.note(name, seconds=took, **scores)
        known = self.record.begun(name)
        learned = Learned(name, folder, direction, texts, known["bleu"], known["chrf"])
        self.log.note(self._gain(learned, beside))
        return learned

    def restore(self, name: str, texts: tuple[TrainText, ...]) -> Path:
        """Train a model that restores text with masked spans, for others to start from."""
        folder = self.folder / name
        if not self.record.is_done(name):
            minutes = self._enter(name)
            began = time.monotonic()
            # it is compared with no other: its dev is some of this text
            own = replace(self.material.forward, dev=None, test=None)
            self._train(self._request(folder, own, texts, None, minutes))
            self.record.note(name, seconds=round(time.monotonic() - began, 1))
        took = in_minutes(self.record.begun(name)["seconds"])
        self.log.note(f"{name}: {took}")
        return folder

    def without(self, name: str, model: Learned) -> Learned:
        """Leave a step out that has nothing more to learn from than `model` had."""
        self.record.note(name, seconds=0.0)
        self.log.note(f"{name}: there is nothing new to learn from; left out")
        return model

    def make(
        self,
        name: str,
        model: Learned,
        sentences: Path | None,
        mono: Path | None,
        search: Search,
        is_turned: bool = False,
    ) -> tuple[TrainText, ...]:
        """Let a model translate sentences, and as many of those of `mono` as there is time for; the
        pairs have the translation as their source, or `is_turned` as their target. Return the text,
        or nothing where none of it is of use.
        """
        output = self.folder / f"{name}.tsv"
        if not self.record.is_done(name):
            minutes = self._enter(name)
            began = time.monotonic()
            work = "translate text to learn from"
            maker = Maker.open(model.folder, search, work)
            lines = [] if sentences is None else list(read_lines(sentences))
            lines += self._affordable(name, maker, mono, lines, minutes)
            text = SourceText(lines, {}, [])
            out = self.request.out
            stages.enter("")  # from here on the bar speaks
            with ending_clearly(self.verdict.verdict, self.request.command, out):
                facts = self._made(maker, text, output, is_turned)
            took = round(time.monotonic() - began, 1)
            self.record.note(name, seconds=took, **facts)
        known = self.record.begun(name)
        left_out = "".join(f"; {note}" for note in known["notes"])
        pairs = counted(known["pairs"], "pairs")
        self.log.note(f"{name}: {pairs}, {in_minutes(known['seconds'])}{left_out}")
        if not known["pairs"]:
            return ()
        return (TrainText(str(output), made=not is_turned),)

    def together(
        self, pairs: Sequence[TrainText], made: Sequence[TrainText]
    ) -> tuple[TrainText, ...]:
        """Return pairs and what a machine made, with the pairs' weights raised where these are
        few.
        """
        wanted = LEAST_OF_PEOPLE / (1 - LEAST_OF_PEOPLE) * self._num_made(made)
        factor = max(round(wanted / self.material.num_pairs, 2), 1.0)
        raised = (replace(text, weight=factor * text.weight) for text in pairs)
        return (*raised, *made)

    def _made(
        self, maker: Maker, text: SourceText, output: Path, is_turned: bool
    ) -> dict[str, Any]:
        """Make pairs; return their number and notes. Of a poor model there may be none of use."""
        try:
            made = make_pairs(
                maker, text, output, self.log.note, self.progress, is_turned
            )
        except DataError as error:
            return {"pairs": 0, "notes": [str(error)]}
        return {"pairs": made.count, "notes": [*made.notes]}

    def _enter(self, name: str) -> float | None:
        """Say and write down which step is next; return its minutes, if the clock ends it."""
        minutes = self.clock.foreseen(self.record, name)
        self.record.note(name, minutes=minutes)
        names = [step.name for step in self.clock.steps]
        number = names.index(name) + 1
        time_left = "" if minutes is None else f", about {in_minutes(60 * minutes)}"
        does = self.clock.steps[number - 1].does
        where = f"step {number} of {len(names)}"
        self.verdict.enter(f"{where}, {name}")
        self.log.note(f"{where}, {name}: {does}{time_left}")
        return minutes

    def _train(self, request: Request) -> None:
        metrics = RunFolder(request.out).metrics
        log = Log(metrics, quiet=self.log.quiet, verbose=self.log.verbose)
        try:
            train(request, log)
        except UsageError as error:
            share = ""
            if request.minutes is not None:
                share = f" ({request.minutes:.3g} of {self.clock.minutes:g} minutes)"
            raise UsageError(f"step {request.out.name}{share}: {error}") from None

    def _request(
        self,
        folder: Path,
        direction: Direction,
        texts: tuple[TrainText, ...],
        start: Path | None,
        minutes: float | None,
    ) -> Request:
        """Return the request for the run of a step."""
        recipe = self.request.recipe
        assert isinstance(recipe, TranslationRecipe)
        is_turned = direction is self.material.reverse
        tokenizer = recipe.tokenizer
        values: dict[str, Any] = {
            "data.src_lang": direction.src_lang,
            "data.tgt_lang": direction.tgt_lang,
            "data.test_size": 0,
            # the texts of a step stand in its own direction
            "data.directions": "one",
        }
        if any(text.made for text in texts) and not recipe.data.mixtures:
            values["data.mixtures"] = [
                {"until": OF_ALL},
                {"until": 1.0, "weights": {MADE: 0.0}},
            ]
        if is_turned and tokenizer.src != tokenizer.tgt:
            sides = tokenizer.model_dump(mode="json", include={"src", "tgt"})
            values |= {"tokenizer.src": sides["tgt"], "tokenizer.tgt": sides["src"]}
        is_pairs = texts == direction.pairs
        notes = self.request.notes
        if not is_turned:
            notes += (*self.material.notes, *self._notes(texts))
        return replace(
            self.request,
            recipe=with_values(recipe, values),
            out=folder,
            train=texts,
            dev=direction.dev,
            test=direction.test,
            glossary=None if is_turned else self.request.glossary,
            start_from=start,
            tokenizers=direction.tokenizers,
            # of pairs that a machine made, no fault stops the others
            allow_bad_data=self.request.allow_bad_data or not is_pairs,
            notes=notes,
            minutes=None if minutes is None else round(OF_RUN * minutes, 2),
            began=time.monotonic(),
            is_step=True,
        )

    def _num_made(self, texts: Sequence[TrainText]) -> int:
        """Return how many pairs of these texts a machine made."""
        steps = (self.record.begun(Path(text.data).stem) for text in texts)
        return sum(step.get("pairs", 0) for step in steps)

    def _notes(self, texts: Sequence[TrainText]) -> Iterator[str]:
        """Say in the card what a machine made of the text."""
        for text in texts:
            name = Path(text.data).stem
            known = self.record.begun(name)
            if "pairs" in known:
                side = "source" if text.made else "target"
                pairs = counted(known["pairs"], "pairs")
                yield f"the {side} side of {pairs} was written by a model ({name})"

    def _affordable(
        self,
        name: str,
        maker: Maker,
        mono: Path | None,
        before: Sequence[str],
        minutes: float | None,
    ) -> list[str]:
        """Return as many sentences of a text as are worth while, and as there is time for after
        those `before`.
        """
        if mono is None:
            return []
        most = MOST_MADE * self.material.num_pairs
        lines = list(islice(read_lines(mono), most))
        if minutes is None:
            return lines
        chosen = self.record.begun(name).get("sentences")
        if chosen is None:
            affordable = int(60 * minutes / _seconds_each(maker, lines))
            chosen = max(affordable - len(before), _LEAST_MADE)
            self.record.note(name, sentences=chosen)
        return lines[:chosen]

    def _scores(self, folder: Path, direction: Direction) -> dict[str, float]:
        """Score a model on dev, as it is used."""
        assert direction.dev is not None
        dev = read_pairs([direction.dev], direction.src_lang, direction.tgt_lang)
        task = load_task(folder, is_command=True)
        assert isinstance(task, Translation)
        scores = task.evaluate(dev)
        return {"bleu": round(scores.bleu, 3), "chrf": round(scores.chrf, 3)}

    def _gain(self, learned: Learned, beside: Learned | None) -> str:
        """Say what a step came to."""
        took = in_minutes(self.record.begun(learned.step)["seconds"])
        said = f"{learned.step}: {took}, dev BLEU {learned.bleu:.2f}, chrF {learned.chrf:.2f}"
        if beside is None:
            return said
        bleu = learned.bleu - beside.bleu
        chrf = learned.chrf - beside.chrf
        said += f": {bleu:+.2f} BLEU and {chrf:+.2f} chrF beside {beside.step}"
        kept = "" if learned.is_better(beside) else ", so that it is left out"
        return f"{said}{kept}"


def _seconds_each(maker: Maker, lines: Sequence[str]) -> float:
    """Measure how long a sentence takes to translate."""
    tried = lines[:_TRIED]
    translator = maker.load().predictor()
    began = time.perf_counter()
    translator.translate(tried, maker.search.settings(1))
    return max(time.perf_counter() - began, 1e-6) / max(len(tried), 1)
