"""Texts that are written together: any number take each step side by side, each with settings of
its own, and begin and leave when they like.

A text is what `LanguageModel.generate` writes alone, and its prompt is scored as
`LanguageModel.score` does, to the last bit, whatever stands beside it.

Shapes: L positions, K tokens at the top, V vocabulary.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from weft.data.streams import overlap, scoring_starts
from weft.decoding.best import best_tokens
from weft.decoding.sampling import (
    Choice,
    Logits,
    Place,
    choose_together,
    log_probs_of,
)
from weft.engine.writer import Reading, Slots, Writer
from weft.errors import DivergedError
from weft.predict.generation import Finish, Generation, GenerationSettings, Written
from weft.predict.language_model import NO_PROBABILITY, CausalModel, LanguageModel

# tokens of beginnings that one step reads, so that texts under way wait for no long ones
_MOST_AT_ONCE = 256
_PLACES = 32

Top = Sequence[tuple[int, float]]
"""Ids and log-probabilities of the most probable tokens, best first, the lower id among equals."""


@dataclass(frozen=True)
class Order:
    """An order to write on after `ids`, which begin with the start symbol
    (`LanguageModel.start`).

    `top` is the number of most probable tokens that are given with each. `scored` asks for the
    probabilities of the prompt too, `writes` False for nothing else. Samples of one prompt have
    numbers: sample 0 is what `generate` writes.
    """

    ids: Sequence[int]
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    sample: int = 0
    top: int = 0
    scored: bool = False
    writes: bool = True


@dataclass(frozen=True)
class Token:
    """A token of a prompt or of a text: its log-probability by the model itself, in nats, and the
    most probable ones in its place.

    `offset` counts the characters of the new text that were complete before it.
    """

    id: int
    log_prob: float
    top: Top
    offset: int = 0


class Room(Protocol):
    """Slots in which texts are read."""

    reads_in_parts: bool

    def read(self, readings: Sequence[Reading], /) -> list[Logits]:
        """Read tokens of several texts; return for each the logits that it wants (L, V)."""
        ...

    def leave(self, slot: int, /) -> None:
        """Drop a text."""
        ...


class OneByOne:
    """Texts of a model without the native engine, which reads each for itself and in one piece."""

    reads_in_parts = False

    def __init__(self, model: CausalModel[Any]) -> None:
        self.model = model
        self.caches: dict[int, Any] = {}

    def read(self, readings: Sequence[Reading]) -> list[Logits]:
        """Read each text as `LanguageModel` does; where memory runs out, none has gone on."""
        found = [self._read(reading) for reading in readings]
        for reading, (_, cache) in zip(readings, found, strict=True):
            self.caches[reading.slot] = cache
        return [logits for logits, _ in found]

    def leave(self, slot: int) -> None:
        """Drop a text."""
        self.caches.pop(slot, None)

    def _read(self, reading: Reading) -> tuple[Logits, Any]:
        ids = np.array([reading.ids[reading.begin : reading.end]], np.int64)
        if reading.begin > reading.first:
            cache = self.caches[reading.slot]
        elif reading.is_whole:
            cache = self.model.prefill(ids[:, :0])
        else:
            cache = self.model.prefill(ids[:, :-1])
            ids = ids[:, -1:]
        logits, cache = self.model.decode(ids, cache)
        first = logits.shape[1] - reading.num_wanted
        return logits[0, first:], cache


class Text:
    """A text under way: `prompt` has the scored tokens of its prompt, `tokens` what was chosen.

    Its `outcome`, once it is over, is the text or the error that ended it.
    """

    def __init__(self, model: LanguageModel, order: Order, slot: int) -> None:
        """Begin. Raises UsageError for impossible settings."""
        settings = order.settings
        self.order = order
        self.slot = slot
        self.ids = list(order.ids)
        self.num_given = len(self.ids)
        self.window_len = model.window_len
        self.limit = model.limit_of(settings) if order.writes else 0
        self.choose = model.chooser_of(settings, order.ids, order.sample)
        self.written = Written(model.tokenizer, self.num_given == 1, settings.stop)
        self.prompt: list[Token] = []
        self.tokens: list[Token] = []
        self.outcome: Generation | Exception | None = None
        # where the windows begin in which the prompt is yet to be scored
        self._starts: list[int] = []
        self._first = 0  # the first token in sight
        self._read = 0  # what is in sight before this was read
        self._shown = 0
        if order.scored:
            self._starts += scoring_starts(self.num_given - 1, self.window_len)
        if not self._starts:
            self._begin_writing()

    def piece(self) -> str:
        """Return what became certain of the text since the last call."""
        is_over = self.outcome is not None
        text = self.written.text if is_over else self.written.certain()
        shown = self._shown
        self._shown = max(shown, len(text))
        return text[shown:]

    def waiting(self) -> int:
        """Count the tokens that are to be read before the text can go on."""
        return self._goal() - self._read

    def reading(self, room: int) -> Reading:
        """Return what is read next, at most `room` tokens."""
        goal = self._goal()
        begin = self._read
        end = min(goal, begin + room)
        wanted = int(end == goal)
        if self._starts:
            wanted = end - max(begin, self._first_label())
            wanted = max(0, wanted)
        is_whole = bool(self._starts)
        return Reading(self.slot, self.ids, self._first, begin, end, wanted, is_whole)

    def take(self, reading: Reading, logits: Logits, keeps: bool) -> Logits | None:
        """Take the logits of what was read; return those (V) of a token that is to be chosen.

        `keeps`: what was read to be scored is of use for what is written.
        """
        self._read = reading.end
        if not self._starts:
            return logits[0] if len(logits) else None
        self._score(reading, logits)
        if self.outcome is None and reading.end == self._goal():
            self._next_window(keeps)
        return None

    def add(self, choice: Choice, top: Top) -> None:
        """Go on by a token."""
        offset = len(self.written.text)
        is_over = self.written.add(choice.token)
        self.ids.append(choice.token)
        is_over = is_over or len(self.ids) - self.num_given == self.limit
        if is_over and self.written.end() and self.written.finish == "end":
            offset = len(self.written.text)
        self.tokens.append(Token(choice.token, choice.log_prob, top, offset))
        if is_over:
            self._end(self.written.finish)
        elif len(self.ids) - self._first > self.window_len:
            self._cut()

    def place(self) -> Place:
        """Return where the next token is chosen."""
        return Place(self.ids, self._first, len(self.tokens))

    def _goal(self) -> int:
        """Return up to where tokens are read before the next are scored or chosen."""
        if not self._starts:
            return len(self.ids)
        return min(self._first + self.window_len, self.num_given - 1)

    def _first_label(self) -> int:
        """Return the first token of a window whose follower no window before it has scored."""
        return self._first + (overlap(self.window_len) if self._first else 0)

    def _score(self, reading: Reading, logits: Logits) -> None:
        """Add the tokens of the prompt that follow what was read."""
        if not len(logits):
            return
        begin = reading.end - len(logits) + 1
        labels = self.ids[begin : reading.end + 1]
        log_probs = log_probs_of(logits, np.array(labels)[:, None])[:, 0]
        if not np.isfinite(log_probs).all():
            self.outcome = DivergedError(NO_PROBABILITY)
            return
        tops = tops_of(logits, self.order.top)
        for label, log_prob, top in zip(labels, log_probs.tolist(), tops, strict=True):
            self.prompt.append(Token(label, log_prob, top))

    def _next_window(self, keeps: bool) -> None:
        """Go to the next window that is scored, or to what is to be written."""
        del self._starts[0]
        if self._starts:
            self._first = self._read = self._starts[0]
            return
        if not keeps:
            self._read = 0
        self._begin_writing()

    def _begin_writing(self) -> None:
        if not self.limit:
            self._end("length")
        elif self.num_given > self.window_len:
            self._cut()

    def _cut(self) -> None:
        """Go on with half a window in sight: later positions were never trained."""
        self._first = len(self.ids) - max(1, self.window_len // 2)
        self._read = self._first

    def _end(self, finish: Finish) -> None:
        self.outcome = Generation(
            text=self.written.text,
            finish=finish,
            token_log_probs=[token.log_prob for token in self.tokens],
            prompt_cut=self.num_given > self.window_len,
        )


class Writing:
    """Texts under way in a number of places; for one thread at a time."""

    def __init__(self, model: LanguageModel, places: int = _PLACES) -> None:
        """Make room for so many texts."""
        self.model = model
        self.room: Room = room_of(model.model, places)
        self.texts: list[Text] = []
        self._free = list(reversed(range(places)))

    @property
    def free(self) -> int:
        """Count the places where a text may begin."""
        return len(self._free)

    def begin(self, order: Order) -> Text:
        """Begin a text, at a place that is free. Raises UsageError for impossible settings."""
        text = Text(self.model, order, self._free[-1])
        if text.outcome is None:
            self._free.pop()
            self.texts.append(text)
        return text

    def drop(self, text: Text) -> None:
        """Drop a text before its end; its place is free."""
        self.texts.remove(text)
        self.room.leave(text.slot)
        self._free.append(text.slot)

    def step(self, turn: Collection[Text] | None = None) -> list[Text]:
        """Take one step of all texts, or of those whose turn it is; return those that went on, of
        which some may be over.

        A beginning is read in one or several steps. Where the logits of a text are not numbers, or
        memory does not suffice for it, it alone ends, with the error as its outcome.
        """
        readings = self._readings(self.texts if turn is None else turn)
        choosing: list[tuple[Text, Logits]] = []
        keeps = self.room.reads_in_parts
        found = self._read([reading for _, reading in readings])
        for (text, reading), logits in zip(readings, found, strict=True):
            if isinstance(logits, MemoryError):
                text.outcome = logits
                continue
            row = text.take(reading, logits, keeps)
            if row is not None:
                choosing.append((text, row))
        _choose(choosing)
        advanced = [text for text, _ in readings]
        for text in advanced:
            if text.outcome is not None:
                self.drop(text)
        return advanced

    def _readings(self, turn: Collection[Text]) -> list[tuple[Text, Reading]]:
        """Choose what is read: the newest token of each text, and beginnings, the oldest first."""
        readings = []
        room = _MOST_AT_ONCE
        for text in self.texts:
            if text not in turn:
                continue
            waiting = text.waiting()
            if waiting > 1 and self.room.reads_in_parts:
                waiting = min(waiting, room)
                room -= waiting
            if waiting:
                readings.append((text, text.reading(waiting)))
        return readings

    def _read(self, readings: Sequence[Reading]) -> Sequence[Logits | MemoryError]:
        """Read; where memory does not suffice for all, each for itself."""
        try:
            return self.room.read(readings) if readings else []
        except MemoryError as error:
            if len(readings) == 1:
                return [error]
        return [self._read([reading])[0] for reading in readings]


def room_of(model: CausalModel[Any], places: int) -> Room:
    """Return the slots of the native engine, or, where there is none, what reads one by one."""
    if isinstance(model, Writer):
        return Slots(model, places)
    return OneByOne(model)


def write_all(
    model: LanguageModel,
    prompts: Sequence[str],
    settings: GenerationSettings | None = None,
    **options: Any,
) -> Iterator[Generation]:
    """Continue prompts together; yield what `generate` gives for each, in their order.

    Raises as `generate`.
    """
    chosen = replace(settings or GenerationSettings(), **options)
    writing = Writing(model, max(1, min(_PLACES, len(prompts))))
    texts: list[Text] = []
    for place in range(len(prompts)):
        while len(texts) < len(prompts) and writing.free:
            ids = model.start(prompts[len(texts)])
            texts.append(writing.begin(Order(ids, chosen)))
        while texts[place].outcome is None:
            writing.step()
        outcome = texts[place].outcome
        if isinstance(outcome, Exception):
            raise outcome
        assert outcome is not None
        yield outcome


def tops_of(logits: Logits, count: int) -> list[Top]:
    """Return the most probable tokens of each row (L, V), at most `count`."""
    known = min(count, logits.shape[1])
    if not known:
        return [()] * len(logits)
    _, ids = best_tokens(logits, known)
    log_probs = log_probs_of(logits, ids.astype(np.int64))
    rows = zip(ids.tolist(), log_probs.tolist(), strict=True)
    return [list(zip(*row, strict=True)) for row in rows]


def _choose(choosing: Sequence[tuple[Text, Logits]]) -> None:
    """Choose the next token of each text by its logits (V)."""
    if not choosing:
        return
    logits = np.stack([row for _, row in choosing])
    texts = [text for text, _ in choosing]
    places = [text.place() for text in texts]
    choices = choose_together([text.choose for text in texts], logits, places)
    for row, (text, choice) in enumerate(zip(texts, choices, strict=True)):
        if isinstance(choice, DivergedError):
            text.outcome = choice
            continue
        (top,) = tops_of(logits[row : row + 1], text.order.top)
        text.add(choice, top)
