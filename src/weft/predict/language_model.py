"""Text in, more text out; or how likely a text is.

What a text becomes depends on that text, the settings and the seed alone, never on the other texts beside it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.config import SamplingSection
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from weft.decoding.sampling import Sampling, sample_tokens
from weft.decoding.search import Cache
from weft.errors import UsageError
from weft.predict.text import evaluating

C = TypeVar("C", bound=Cache)

Finish = Literal["end", "stop", "length"]


class CausalModel(Protocol[C]):
    """What a language model is asked for: rows start with bos or eos, padding is 0."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...

    def prefill(self, prompt: Int[Tensor, "B L"], /) -> C:
        """Read the beginning."""
        ...

    def decode(self, ids: Int[Tensor, "N L"], cache: C, /) -> tuple[Float[Tensor, "N L D"], C]:
        """States of the newest positions."""
        ...

    def output(self, states: Float[Tensor, "*N D"], /) -> Float[Tensor, "*N V"]:
        """Logits of the token after each state."""
        ...


@dataclass(frozen=True)
class Generation:
    """What a model wrote on from a prompt, the prompt not repeated.

    `finish` says why it ended: the model's own end, a stop string (left out of `text`), or the length asked for.
    `token_log_probs` are the model's own, in nats, before temperature and the like, one for each token it chose.
    """

    text: str
    finish: Finish
    token_log_probs: list[float]
    prompt_cut: bool

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class TextScore:
    """How likely a text is: `log_prob` in nats, in all, and by token; `pieces` name the tokens."""

    text: str
    log_prob: float
    num_tokens: int
    num_bytes: int
    perplexity: float
    bits_per_byte: float
    pieces: list[str]
    token_log_probs: list[float]

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
        return asdict(self)


class LanguageModel:
    """Generates and scores text with a built model and its tokenizer."""

    def __init__(
        self,
        model: CausalModel[Any],
        tokenizer: Tokenizer,
        *,
        decoding: SamplingSection,
        packed: bool,
        window_len: int,
        device: torch.device | str = "cpu",
    ) -> None:
        """`window_len` is how many tokens the model has learned to look at. `packed`: documents begin with bos,
        else with the eos of the one before.
        """
        self.model, self.tokenizer, self.decoding = model, tokenizer, decoding
        self.start_id = BOS_ID if packed else EOS_ID
        self.packed, self.window_len = packed, window_len
        self.device = torch.device(device)

    def generate(
        self,
        prompt: str = "",
        *,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        stop: Sequence[str] = (),
        seed: int = 1,
    ) -> Generation:
        """Write on from a prompt. Temperature 0 is greedy; what is not given comes from the recipe.

        A text that outgrows the window goes on with half a window of it in sight; so does a prompt that is longer
        from the start, and the answer says so (`prompt_cut`). Raises UsageError for impossible settings, DivergedError for
        a model whose output is not a number.
        """
        settings = self._settle(temperature, top_k, top_p, min_p, repetition_penalty)
        ids = self._start(prompt)
        prompt_len = len(ids)
        written, log_probs = _Written(self.tokenizer, ids, stop), []
        for token, log_prob in self._tokens(ids, settings, self._limit(max_new_tokens), seed):
            log_probs.append(log_prob)
            if written.add(token):
                break
        return Generation(written.text, written.finish, log_probs, prompt_cut=prompt_len > self.window_len)

    def stream(
        self,
        prompt: str = "",
        *,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        stop: Sequence[str] = (),
        seed: int = 1,
    ) -> Iterator[str]:
        """As `generate`, piece by piece as it is written; the pieces joined are its text."""
        settings = self._settle(temperature, top_k, top_p, min_p, repetition_penalty)
        ids = self._start(prompt)
        written, shown = _Written(self.tokenizer, ids, stop), 0
        for token, _ in self._tokens(ids, settings, self._limit(max_new_tokens), seed):
            over = written.add(token)
            settled = len(written.text) if over else written.settled()
            if settled > shown:
                yield written.text[shown:settled]
                shown = settled
            if over:
                return
        if len(written.text) > shown:
            yield written.text[shown:]

    def score(self, texts: str | Sequence[str]) -> list[TextScore]:
        """The log-probability of each text, every token of it counted once.

        A text longer than the window is read in windows that do not overlap, each beginning with the last token
        of the one before. Where documents have an end symbol, it is counted.
        """
        texts = [texts] if isinstance(texts, str) else texts
        with evaluating(self.model):
            return [self._score(text) for text in texts]

    def _settle(
        self,
        temperature: float | None,
        top_k: int | None,
        top_p: float | None,
        min_p: float | None,
        repetition_penalty: float | None,
    ) -> Sampling:
        own = self.decoding
        return Sampling(
            temperature=own.temperature if temperature is None else temperature,
            top_k=own.top_k if top_k is None else top_k,
            top_p=own.top_p if top_p is None else top_p,
            min_p=own.min_p if min_p is None else min_p,
            repetition_penalty=own.repetition_penalty if repetition_penalty is None else repetition_penalty,
        )

    def _limit(self, max_new_tokens: int | None) -> int:
        limit = self.decoding.max_new_tokens if max_new_tokens is None else max_new_tokens
        if limit < 1:
            raise UsageError(f"max_new_tokens = {limit}: it must be at least 1")
        return limit

    def _start(self, prompt: str) -> list[int]:
        return [self.start_id, *self.tokenizer.encode_long(prompt)]

    def _tokens(self, ids: list[int], settings: Sampling, limit: int, seed: int) -> Iterator[tuple[int, float]]:
        """New ids and their log-probabilities, eos included, until the end or the limit."""
        generator, ids = torch.Generator().manual_seed(seed), list(ids)
        while limit > 0:
            seen = ids if len(ids) <= self.window_len else ids[-max(1, self.window_len // 2) :]
            room = min(limit, self.window_len - len(seen) + 1)
            for token, log_prob in self._run(seen, settings, room, generator):
                yield token, log_prob
                if token == EOS_ID:
                    return
                ids.append(token)
            limit -= room

    def _run(
        self, seen: list[int], settings: Sampling, room: int, generator: torch.Generator
    ) -> Iterator[tuple[int, float]]:
        """At most `room` tokens from one cache."""
        with evaluating(self.model):
            rows = torch.tensor([seen], device=self.device)
            cache = self.model.prefill(rows[:, :-1])
            steps = sample_tokens(
                self._step,
                cache,
                prompt=rows,
                max_new_tokens=room,
                eos_id=EOS_ID,
                settings=settings,
                generators=[generator],
                banned_ids=(PAD_ID, UNK_ID, BOS_ID),
            )
            for step in steps:
                yield int(step.ids[0]), float(step.log_probs[0])

    def _step(self, newest: Int[Tensor, " N"], cache: Any) -> tuple[Float[Tensor, "N V"], Any]:
        states, cache = self.model.decode(newest[:, None], cache)  # N -> N 1 D
        return self.model.output(states[:, -1]), cache

    def _score(self, text: str) -> TextScore:
        ids = self.tokenizer.encode_long(text)
        labels = [*ids, EOS_ID] if self.packed else ids
        inputs = [self.start_id, *labels[:-1]]
        log_probs: list[float] = []
        for start in range(0, len(labels), self.window_len):
            window = slice(start, start + self.window_len)
            log_probs += self._score_window(inputs[window], labels[window])
        total, num_bytes = math.fsum(log_probs), len(text.encode("utf-8", "replace"))
        return TextScore(
            text=text,
            log_prob=total,
            num_tokens=len(labels),
            num_bytes=num_bytes,
            perplexity=math.exp(min(700.0, -total / max(len(labels), 1))),
            bits_per_byte=-total / math.log(2) / max(num_bytes, 1),
            pieces=self.tokenizer.pieces(labels),
            token_log_probs=log_probs,
        )

    def _score_window(self, inputs: list[int], labels: list[int]) -> list[float]:
        rows = torch.tensor([inputs], device=self.device)
        states, _ = self.model.decode(rows, self.model.prefill(rows[:, :0]))
        log_probs = self.model.output(states[0]).float().log_softmax(-1)
        found: list[float] = log_probs[torch.arange(len(labels)), torch.tensor(labels)].tolist()
        return found


class _Written:
    """A text while it is being written, and whether it is over."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int], stop: Sequence[str]) -> None:
        """`before` are the ids that it goes on from."""
        if not all(stop):
            raise UsageError("a stop string is empty; leave it out")
        self.tokenizer, self.stop = tokenizer, stop
        self.anchor = _anchor(tokenizer, before)
        self.ids: list[int] = []
        self.text = ""
        self.finish: Finish = "length"

    def add(self, token: int) -> bool:
        """Take one more token; True where the text ends with it."""
        if token == EOS_ID:
            self.finish = "end"
            return True
        self.ids.append(token)
        # Beside an id of the prompt, for a first piece alone would lose its leading space.
        self.text = self.tokenizer.decode([*self.anchor, *self.ids])[len(self.tokenizer.decode(self.anchor)) :]
        found = [place for place in (self.text.find(stop) for stop in self.stop) if place >= 0]
        if found:
            self.text, self.finish = self.text[: min(found)], "stop"
        return bool(found)

    def settled(self) -> int:
        """How many characters can no longer change: no broken character, no beginning of a stop string."""
        whole = self.text.rstrip("\ufffd")
        begun = (size for stop in self.stop for size in range(1, len(stop)) if whole.endswith(stop[:size]))
        return len(whole) - max(begun, default=0)


def _anchor(tokenizer: Tokenizer, before: Sequence[int]) -> list[int]:
    """The fewest last ids that are whole characters."""
    ends = (list(before[-size:]) for size in range(1, min(9, len(before))))
    return next((ids for ids in ends if "\ufffd" not in tokenizer.decode(ids)), list(before))
