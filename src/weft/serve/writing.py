"""Texts that a language model writes or scores for clients, in batches of rows."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import UsageError
from weft.predict.generation import Finish, Generation
from weft.predict.language_model import LanguageModel
from weft.predict.writing import Order, Text, Token, Writing
from weft.serve.jobs import Job
from weft.serve.running import as_refusal

_PLACES = 32  # texts that a thread writes together


@dataclass(frozen=True)
class Part:
    """A part of a text, as it became certain: its characters, and the tokens that begin in them.

    The first part has the tokens of the prompt, where they are asked for.
    """

    text: str
    tokens: Sequence[Token]
    prompt: Sequence[Token] = ()


@dataclass(frozen=True)
class WrittenText:
    """A text that was written, and its prompt as it was scored, where that was asked for.

    `tokens` are those that begin in `text`, and the end symbol, but not the stop string's.
    `num_tokens` counts all that were chosen, and `mean_log_prob` is the mean of their
    log-probabilities. `first_token` is when the first one was there, by `time.monotonic`.
    """

    text: str
    finish: Finish
    tokens: Sequence[Token]
    prompt: Sequence[Token]
    num_read: int
    num_tokens: int
    mean_log_prob: float
    first_token: float | None


@dataclass(frozen=True, eq=False)
class TextWriter:
    """A language model, as the pool has it: its rows are orders, their results written texts.

    What a job emits are parts.
    """

    model: LanguageModel

    def new_batch(self) -> "WritingBatch":
        """Create an empty batch."""
        return WritingBatch(self.model)

    def sizes(self, order: Order) -> tuple[float, float]:
        """Return what an order costs to read, and in all. Raises UsageError for no limit."""
        num_read = len(order.ids)
        if not order.scored:
            num_read = min(num_read, self.model.window_len)
        limit = self.model.limit_of(order.settings) if order.writes else 0
        return float(num_read), float(num_read + limit)


@dataclass
class _Running:
    """A text under way, how many of its tokens were handed out, and when it had the first."""

    text: Text
    num_sent: int = 0
    is_new: bool = True
    first_token: float | None = None


class WritingBatch:
    """The texts that a thread writes together, a token each in a step."""

    def __init__(self, model: LanguageModel) -> None:
        """Create an empty batch, with an engine's session of its own."""
        self.writing = Writing(model, _PLACES)
        self.running: dict[Job, _Running] = {}

    def room(self) -> int:
        return self.writing.free

    def begin(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            try:
                text = self.writing.begin(job.row)
            except UsageError as error:
                job.fail(as_refusal(error))
                continue
            self.running[job] = _Running(text)
            self._hand_out(job)

    def step(self, jobs: Sequence[Job]) -> None:
        texts = {self.running[job].text: job for job in jobs if job in self.running}
        for text in self.writing.step(texts):
            self._hand_out(texts[text])

    def drop(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            running = self.running.pop(job, None)
            if running is not None:
                self.writing.drop(running.text)

    def _hand_out(self, job: Job) -> None:
        """Hand out what became certain of a text, and its result where it is over."""
        running = self.running[job]
        text = running.text
        outcome = text.outcome
        if isinstance(outcome, Exception):
            del self.running[job]
            job.fail(as_refusal(outcome))
            return
        if text.tokens and running.first_token is None:
            running.first_token = time.monotonic()
        if text.tokens or outcome is not None:
            job.emit(_part_of(running))
        if outcome is not None:
            del self.running[job]
            job.finish(_result_of(running, outcome))


def _part_of(running: _Running) -> Part:
    """Return what became certain since the last part."""
    text = running.text
    piece = text.piece()
    tokens = visible(text)[running.num_sent :]
    running.num_sent += len(tokens)
    prompt = text.prompt if running.is_new else ()
    running.is_new = False
    return Part(piece, tokens, prompt)


def _result_of(running: _Running, outcome: Generation) -> WrittenText:
    text = running.text
    log_probs = outcome.token_log_probs
    return WrittenText(
        text=outcome.text,
        finish=outcome.finish,
        tokens=visible(text),
        prompt=text.prompt,
        num_read=text.num_given,
        num_tokens=len(log_probs),
        mean_log_prob=sum(log_probs) / max(1, len(log_probs)),
        first_token=running.first_token,
    )


def visible(text: Text) -> list[Token]:
    """Return the tokens that begin in what is certain of a text."""
    tokens = text.tokens
    outcome = text.outcome
    if not isinstance(outcome, Generation):
        certain = len(text.written.certain())
    elif outcome.finish == "stop":
        certain = len(outcome.text)
    else:
        return tokens
    return tokens[: bisect_left(tokens, certain, key=_offset)]


def _offset(token: Token) -> int:
    return token.offset
