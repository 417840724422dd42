"""Rows that a translator searches for clients, in running batches."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from weft.decoding.running import Search
from weft.decoding.sentences import BeamSettings, Sentence
from weft.decoding.slots import Outcome
from weft.errors import UsageError
from weft.predict.rows import Resolved
from weft.predict.segments import SourceRow
from weft.predict.translator import Translator
from weft.serve.jobs import Caller, Job
from weft.serve.running import as_refusal


@dataclass(frozen=True)
class Asked:
    """A row as a job has it, with the settings of its search."""

    row: SourceRow
    settings: Resolved


@dataclass(frozen=True, eq=False)
class Searcher:
    """A translator, as the pool has it: its rows are asked for, their results hypotheses.

    A thread searches for `most_rows` at once, of `most_tokens` source tokens together; a row may
    have at most `most_hypotheses`.
    """

    translator: Translator
    most_rows: int = 32
    most_hypotheses: int = 8
    most_tokens: int = 4096

    def new_batch(self) -> "SearchBatch":
        """Create an empty batch."""
        return SearchBatch(self)

    def jobs(
        self, rows: Sequence[SourceRow], settings: Resolved, caller: Caller
    ) -> list[Job]:
        """Return a job for each of some rows. Raises UsageError for what cannot run here."""
        width = settings.beams.beam_size
        if width > self.most_hypotheses:
            raise UsageError(
                f"{width} hypotheses of a text: here there are at most {self.most_hypotheses}"
            )
        jobs = []
        for row in rows:
            sentence = self.translator.sentence(row, settings)
            num_read = len(row.read)
            # a translation is about as long as its source
            num_written = min(num_read, sentence.max_len)
            job = Job(
                Asked(row, settings),
                caller,
                width=width,
                cost=float(num_read),
                expected=float(num_read + width * num_written),
            )
            jobs.append(job)
        return jobs


class SearchBatch:
    """The rows that a thread searches for together, a token of each in a step.

    Rows of more hypotheses than a beam of the recipe run in a search of their own, because every
    row of a search holds the memory of its widest.
    """

    def __init__(self, searcher: Searcher) -> None:
        """Create an empty batch; its searches begin with their first rows."""
        self.translator = searcher.translator
        usual = min(self.translator.decoding.beam_size, searcher.most_hypotheses)
        few_rows = max(1, searcher.most_rows * usual // searcher.most_hypotheses)
        self.usual = _Lane(searcher, usual, searcher.most_rows)
        self.wide = _Lane(searcher, searcher.most_hypotheses, few_rows)
        self._numbers = count()
        self._jobs: dict[int, Job] = {}

    def room(self) -> int:
        return self.usual.room()

    def begin(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            asked: Asked = job.row
            number = next(self._numbers)
            try:
                sentence = self.translator.sentence(asked.row, asked.settings, number)
                self._lane(asked.settings.beams).put(sentence)
            except (UsageError, MemoryError) as error:
                job.fail(as_refusal(error))
                continue
            self._jobs[number] = job
        for lane in (self.usual, self.wide):
            lane.fill()

    def step(self, jobs: Sequence[Job]) -> None:
        numbers: set[int] | None = None
        if len(jobs) < len(self._jobs):
            chosen = set(jobs)
            numbers = {number for number, job in self._jobs.items() if job in chosen}
        for lane in (self.usual, self.wide):
            for number, outcome in lane.step(numbers).items():
                job = self._jobs.pop(number)
                if isinstance(outcome, Exception):
                    job.fail(as_refusal(outcome))
                else:
                    job.finish(outcome)

    def drop(self, jobs: Sequence[Job]) -> None:
        gone = set(jobs)
        for number, job in list(self._jobs.items()):
            if job in gone:
                del self._jobs[number]
                self.usual.drop(number)
                self.wide.drop(number)

    def _lane(self, settings: BeamSettings) -> "_Lane":
        return self.usual if settings.beam_size <= self.usual.places else self.wide


class _Lane:
    """A running search, and the sentences that wait until it has room for them."""

    at_once = True

    def __init__(self, searcher: Searcher, places: int, most_rows: int) -> None:
        """Set how many rows there may be, and hypotheses of each."""
        self.searcher = searcher
        self.places = places
        self.most_rows = most_rows
        self.waiting: deque[Sentence] = deque()
        self.search: Search | None = None

    def room(self) -> int:
        """Return how many more sentences could begin, by the indices that are free."""
        if self.search is None:
            return self.most_rows
        if self.search.decoder.begins_together and self.search.active:
            return 0
        return max(0, self.search.free - len(self.waiting))

    def put(self, sentence: Sentence) -> None:
        """Let a sentence wait; the first one makes the search. Raises MemoryError."""
        if self.search is None:
            engine = self.searcher.translator.searcher
            decoder = engine.session(self.most_rows, self.places)
            settings = sentence.settings
            assert settings is not None
            self.search = Search(decoder, settings, self.searcher.most_tokens)
        self.waiting.append(sentence)

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        """Take the first ones, as `weft.decoding.sentences.Line`."""
        taken: list[Sentence] = []
        while self.waiting and len(taken) < count:
            room -= len(self.waiting[0].ids)
            if room < 0 and (taken or not at_least_one):
                break
            taken.append(self.waiting.popleft())
        return taken

    def fill(self) -> None:
        """Begin what there is room for."""
        if self.search is not None:
            self.search.fill(self)

    def step(self, numbers: set[int] | None) -> Mapping[int, Outcome]:
        """Begin what there is room for, and take a step of these sentences, or of all.

        Return what becomes of those that are done.
        """
        if self.search is None:
            return {}
        if self.waiting or not self.search.active:
            self.search.fill(self)
        return dict(self.search.advance(numbers))

    def drop(self, number: int) -> None:
        """Let a sentence leave."""
        if self.search is not None and not self.search.drop(number):
            kept = (each for each in self.waiting if each.number != number)
            self.waiting = deque(kept)
