"""Text in, more text out; or how likely a text is.

What a text becomes depends on that text, the settings and the seed alone, never on the other texts
beside it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.config import SamplingSection
from weft.data.streams import overlap, scoring_starts
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from weft.decoding.draws import Draws
from weft.decoding.sampling import (
    Chooser,
    Logits,
    log_probs_of,
    sample_tokens,
)
from weft.decoding.speculative import (
    Cache,
    Draft,
    PromptLookup,
    Tally,
    speculative_tokens,
)
from weft.engine.bindings import Engine
from weft.engine.writer import Writer
from weft.errors import DivergedError, UsageError
from weft.predict.generation import (
    Generation,
    GenerationSettings,
    Written,
    pieces_of,
    refuse_seed,
)
from weft.predict.inside import LooksInside
from weft.predict.languages import TellsLanguages

C = TypeVar("C", bound=Cache)
Ids: TypeAlias = NDArray[np.int64]

NO_PROBABILITY = "scoring: a token has no finite probability (NaN or infinite logits)"
_BANNED = (PAD_ID, UNK_ID, BOS_ID)


class CausalModel(Protocol[C]):
    """A model as a generator of text needs it: rows start with bos or eos.

    It is in use whatever its caller does with it meanwhile: one that is being trained computes
    without dropout here. Raises MemoryError.
    """

    def prefill(self, ids: Ids, /) -> C:
        """Read beginnings of one length (N, L), without padding; L may be 0."""
        ...

    def decode(self, ids: Ids, cache: C, /) -> tuple[Logits, C]:
        """Read new tokens (N, L) after those in the cache; return the logits of what follows each
        (N, L, V), and the longer cache.
        """
        ...


@dataclass(frozen=True)
class TextScore:
    """The log-probability of a text in nats: of all of it, and of each token.

    `pieces` are the tokens in readable form.
    """

    text: str
    log_prob: float
    num_tokens: int
    num_bytes: int
    perplexity: float
    bits_per_byte: float
    pieces: list[str]
    token_log_probs: list[float]

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return asdict(self)


class LanguageModel(TellsLanguages, LooksInside):
    """Generates and scores text with a built model and its tokenizer."""

    def __init__(
        self,
        model: CausalModel[Any],
        tokenizer: Tokenizer,
        *,
        decoding: SamplingSection,
        packed: bool,
        window_len: int,
    ) -> None:
        """Set the model and its tokenizer.

        `window_len` is how many tokens the model has learned to attend to. `packed`: documents
        begin with bos, else with the eos of the one before.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding
        self.start_id = BOS_ID if packed else EOS_ID
        self.packed = packed
        self.window_len = window_len

    @property
    def engine(self) -> Engine | None:
        """Return the native engine that computes the model, if one does."""
        return self.model.engine if isinstance(self.model, Writer) else None

    def generate(
        self,
        prompt: str = "",
        settings: GenerationSettings | None = None,
        **options: Any,
    ) -> Generation:
        """Continue a prompt.

        `options` are what `GenerationSettings` takes, by name, and change `settings`. A text that
        outgrows the window goes on with half a window of it in sight; so does a prompt that is
        longer from the start, and the answer says so (`prompt_cut`). Raises UsageError for
        impossible settings, DivergedError for a model whose output is not a number.
        """
        ids = self.start(prompt)
        request = self._request(ids, settings, options)
        written = Written(self.tokenizer, len(ids) == 1, request.stop)
        log_probs: list[float] = []
        for token, log_prob in self._tokens(ids, request):
            log_probs.append(log_prob)
            if written.add(token):
                break
        return Generation(
            text=written.end(),
            finish=written.finish,
            token_log_probs=log_probs,
            prompt_cut=len(ids) > self.window_len,
            proposed=request.tally.proposed,
            accepted=request.tally.accepted,
        )

    def stream(
        self,
        prompt: str = "",
        settings: GenerationSettings | None = None,
        **options: Any,
    ) -> Iterator[str]:
        """Continue a prompt as `generate` does, and yield the text piece by piece as it is written.

        The pieces joined are its text. Impossible settings are refused at the call, before the
        first piece.
        """
        ids = self.start(prompt)
        request = self._request(ids, settings, options)
        written = Written(self.tokenizer, len(ids) == 1, request.stop)
        tokens = self._tokens(ids, request)
        return pieces_of(written, (token for token, _ in tokens))

    def fits(self, prompt: str) -> bool:
        """Return whether a prompt is no longer than the window, so that all of it is read."""
        return len(self.start(prompt)) <= self.window_len

    def score(self, texts: str | Sequence[str]) -> list[TextScore]:
        """Return the log-probability of each text, every token of it counted once.

        A text longer than the window is read in windows that overlap by half, so that each token
        has half a window before it, where there is so much. The end symbol of packed documents is
        counted. Raises DivergedError as `generate`.
        """
        texts = [texts] if isinstance(texts, str) else texts
        return [self._score(text) for text in texts]

    def _request(
        self,
        ids: Sequence[int],
        settings: GenerationSettings | None,
        options: Mapping[str, Any],
    ) -> "_Request":
        """Return all that one generation needs to continue ids; what is None comes from the
        recipe.
        """
        chosen = replace(settings or GenerationSettings(), **options)
        limit = self.limit_of(chosen)
        choose = self.chooser_of(chosen, ids)
        if chosen.draft not in (None, "prompt"):
            raise UsageError(f'draft = {chosen.draft!r}: it must be "prompt"')
        draft = None if chosen.draft is None else PromptLookup()
        return _Request(limit, chosen.stop, choose, draft, Tally())

    def limit_of(self, settings: GenerationSettings) -> int:
        """Return how many tokens may be written. Raises UsageError for none."""
        limit = settings.max_new_tokens
        if limit is None:
            limit = self.decoding.max_new_tokens
        if limit < 1:
            raise UsageError(f"max_new_tokens = {limit}: it must be at least 1")
        return limit

    def chooser_of(
        self, settings: GenerationSettings, ids: Sequence[int], sample: int = 0
    ) -> Chooser:
        """Return what chooses the tokens after ids, which begin with the start symbol.

        Samples of one text, by their numbers, have other random numbers. Raises UsageError for
        impossible settings.
        """
        sampling = settings.sampling(self.decoding)
        refuse_seed(settings.seed)
        vocab_size = self.tokenizer.vocab_size
        for token, bias in sampling.logit_bias:
            if not (0 <= token < vocab_size and math.isfinite(bias)):
                raise UsageError(
                    f"logit_bias: {token}: {bias}: the id must be from 0 to {vocab_size - 1} and the bias finite"
                )
        return Chooser(sampling, Draws(settings.seed, ids, sample), _BANNED)

    def start(self, prompt: str | Sequence[int]) -> list[int]:
        """Return the ids of a text, which begin with the start symbol; so may ids that are given.

        Raises UsageError for ids that the model does not know.
        """
        if isinstance(prompt, str):
            return [self.start_id, *self.tokenizer.encode_long(prompt)]
        ids = list(prompt)
        vocab_size = self.tokenizer.vocab_size
        if any(not 0 <= token < vocab_size for token in ids):
            raise UsageError(f"an id of the prompt is not from 0 to {vocab_size - 1}")
        has_start = ids[:1] == [self.start_id]
        return ids if has_start else [self.start_id, *ids]

    def _tokens(
        self, prompt: Sequence[int], request: "_Request"
    ) -> Iterator[tuple[int, float]]:
        """Yield new ids and their log-probabilities, eos included, until the end or the limit."""
        ids = list(prompt)
        limit = request.limit
        while limit > 0:
            first = 0
            if len(ids) > self.window_len:
                # positions beyond the window were never trained, so only its last half is kept
                first = len(ids) - max(1, self.window_len // 2)
            room = min(limit, self.window_len - (len(ids) - first) + 1)
            place = len(ids) - len(prompt)
            for token, log_prob in self._run(ids, first, place, room, request):
                yield token, log_prob
                if token == EOS_ID:
                    return
                ids.append(token)
            limit -= room

    def _run(
        self, ids: list[int], first: int, place: int, room: int, request: "_Request"
    ) -> Iterator[tuple[int, float]]:
        """Yield at most `room` tokens from one cache, which knows the ids from `first` on; `place`
        of them are new.
        """
        cache = self.model.prefill(np.array([ids[first:-1]], np.int64))
        where: dict[str, Any] = {
            "text": ids,
            "first": first,
            "place": place,
            "max_new_tokens": room,
            "eos_id": EOS_ID,
        }
        choose = request.choose
        if request.draft is None:
            yield from sample_tokens(self._steps, cache, choose, **where)
        else:
            drafting = (request.draft, choose, request.tally)
            yield from speculative_tokens(self._steps, cache, *drafting, **where)

    def _steps(self, ids: Sequence[int], cache: Any) -> tuple[Logits, Any]:
        """Return the logits of what follows each of several new positions, and the longer cache."""
        logits, cache = self.model.decode(np.array([ids], np.int64), cache)
        return logits[0], cache

    def _score(self, text: str) -> TextScore:
        ids = self.tokenizer.encode_long(text)
        labels = [*ids, EOS_ID] if self.packed else ids
        inputs = [self.start_id, *labels[:-1]]
        log_probs: list[float] = []
        for start in scoring_starts(len(labels), self.window_len):
            window = slice(start, start + self.window_len)
            scored = self.label_log_probs(inputs[window], labels[window])
            num_seen = overlap(self.window_len) if start else 0
            log_probs += scored[num_seen:].tolist()
        total = math.fsum(log_probs)
        num_bytes = len(text.encode("utf-8", "surrogatepass"))
        if not math.isfinite(total):
            raise DivergedError(NO_PROBABILITY)
        return TextScore(
            text=text,
            log_prob=total,
            num_tokens=len(labels),
            num_bytes=num_bytes,
            perplexity=math.exp(min(700.0, abs(total) / max(len(labels), 1))),
            bits_per_byte=abs(total) / math.log(2) / max(num_bytes, 1),
            pieces=self.tokenizer.pieces(labels),
            token_log_probs=log_probs,
        )

    def label_log_probs(
        self, inputs: Sequence[int], labels: Sequence[int]
    ) -> NDArray[np.float64]:
        """Return the log-probability (L) of each of L labels after the inputs up to its place.

        The model reads a window at a time: L is at most `window_len`.
        """
        start = self.model.prefill(np.zeros((1, 0), np.int64))
        logits, _ = self._steps(inputs, start)
        ids = np.asarray(labels, np.int64)
        return log_probs_of(logits, ids[:, None])[:, 0]


@dataclass(frozen=True)
class _Request:
    """The settings of one generation, and what chooses its tokens."""

    limit: int
    stop: str | Sequence[str]
    choose: Chooser
    draft: Draft | None
    tally: Tally
