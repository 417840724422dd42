"""Text in, text out: the one place where ids and text meet after training.

A translator loads nothing; it is given a built model and its tokenizers. What a text becomes depends on that text
and the settings alone, never on the other texts beside it.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.config import DecodingSection
from weft.data.segment import split_sentences
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.search import Cache, Hypothesis, beam_search, greedy_search
from weft.errors import OutOfMemoryError, UsageError
from weft.predict.text import LINE_BREAKS, evaluating, one_line

# Languages that put no space between sentences.
_SPACELESS = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my"}
_BANNED = (PAD_ID, UNK_ID, BOS_ID)

C = TypeVar("C", bound=Cache)


class TranslationModel(Protocol[C]):
    """What a translator asks of a model: source rows end with eos, target rows start with bos, padding is 0."""

    training: bool

    @property
    def max_len(self) -> int:
        """How many positions it has, on either side."""
        ...

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...

    def prefill(self, src: Int[Tensor, "B S"], /) -> C:
        """Read the source."""
        ...

    def decode(self, ids: Int[Tensor, "N L"], cache: C, /) -> tuple[Float[Tensor, "N L D"], C]:
        """States of the newest target positions."""
        ...

    def output(self, states: Float[Tensor, "N D"], /) -> Float[Tensor, "N V"]:
        """Logits of the token after each state."""
        ...


@dataclass(frozen=True)
class Alternative:
    """One of several translations of a text."""

    text: str
    score: float


@dataclass(frozen=True)
class Prediction:
    """A translation.

    `score` is the length-normalised log-probability that translations were ranked by, the mean over `segments`
    where a long text was translated in several; None for a text with nothing in it. `truncated` says that source
    or translation was cut at a limit. `n_best` starts with the translation itself; of several segments its j-th
    entry joins the j-th of each. `token_log_probs` are in nats, one for each target token, end symbols included.
    """

    text: str
    score: float | None
    truncated: bool
    segments: int
    n_best: list[Alternative]
    token_log_probs: list[float]

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class _Settings:
    beam_size: int
    length_penalty: float
    n_best: int
    batch_tokens: int
    exhaustive: int | None = None


@dataclass(frozen=True)
class _Plan:
    """The source rows that one text becomes, each with eos; `cut` where some of the text did not fit."""

    rows: list[tuple[int, ...]]
    cut: bool


class Translator:
    """Translates with a built model and its two tokenizers (one object twice where joint)."""

    def __init__(
        self,
        model: TranslationModel[Any],
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        *,
        decoding: DecodingSection,
        src_lang: str,
        tgt_lang: str,
        max_src_len: int,
        device: torch.device | str = "cpu",
    ) -> None:
        """`max_src_len` limits a source row, eos counted; languages are BCP-47 codes."""
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.decoding = decoding
        self.src_lang = src_lang
        self.tgt_lang = tgt_lang
        self.max_src_len = min(max_src_len, model.max_len)
        self.device = torch.device(device)

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        exhaustive: int | None = None,
        batch_tokens: int = 4096,
    ) -> list[Prediction]:
        """Translate one text or several: one prediction for each, in the same order.

        A text too long for the model is translated in segments that end where sentences end. `batch_tokens` limits
        the padded source tokens that are searched at a time, times beam_size. `exhaustive` tries every translation
        of at most so many tokens instead of a beam. What is not given comes from the recipe. Raises UsageError for
        impossible settings, DivergedError for a model whose output is not a number, OutOfMemoryError where a
        single row does not fit into memory.
        """
        settings = self._settle(beam_size, length_penalty, n_best, batch_tokens, exhaustive)
        return self._translate([texts] if isinstance(texts, str) else texts, settings)

    def translate_stream(
        self,
        texts: Iterable[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        exhaustive: int | None = None,
        batch_tokens: int = 4096,
        chunk: int = 1024,
    ) -> Iterator[Prediction]:
        """As `translate`, `chunk` texts at a time: any number of texts in the memory of one chunk."""
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        settings = self._settle(beam_size, length_penalty, n_best, batch_tokens, exhaustive)
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self._translate(some, settings) for some in chunks)

    def search(self, row: Sequence[int], beam_size: int | None = None) -> Hypothesis:
        """The best hypothesis for one row of source ids, eos at its end, as `translate` finds it."""
        settings = self._settle(beam_size, None, 1, len(row))
        with evaluating(self.model):
            return self._search([tuple(row)], settings)[0][0]

    def _settle(
        self,
        beam_size: int | None,
        length_penalty: float | None,
        n_best: int,
        batch_tokens: int,
        exhaustive: int | None = None,
    ) -> _Settings:
        beam_size = self.decoding.beam_size if beam_size is None else beam_size
        length_penalty = self.decoding.length_penalty if length_penalty is None else length_penalty
        if beam_size < 1:
            raise UsageError(f"beam_size = {beam_size}: it must be at least 1")
        if exhaustive is not None and exhaustive < 1:
            raise UsageError(f"exhaustive = {exhaustive}: it must be at least 1")
        if not 1 <= n_best <= beam_size and not exhaustive:
            raise UsageError(f"n_best = {n_best}: it must be from 1 to beam_size, which is {beam_size}")
        if not math.isfinite(length_penalty):
            raise UsageError(f"length_penalty = {length_penalty}: it must be a finite number")
        if batch_tokens < 1:
            raise UsageError(f"batch_tokens = {batch_tokens}: it must be at least 1")
        return _Settings(beam_size, length_penalty, n_best, batch_tokens, exhaustive)

    def _translate(self, texts: Sequence[str], settings: _Settings) -> list[Prediction]:
        """Plan, search every different row once, and put the texts together again."""
        plans = self._plan(list(dict.fromkeys(texts)))
        rows = dict.fromkeys(row for plan in plans.values() for row in plan.rows)
        found: dict[tuple[int, ...], list[Hypothesis]] = {}
        with evaluating(self.model):
            for batch in _batches(rows, settings):
                found |= zip(batch, self._search(batch, settings), strict=True)
        predictions = {text: self._assemble(plan, found) for text, plan in plans.items()}
        return [predictions[text] for text in texts]

    def _plan(self, texts: list[str]) -> dict[str, _Plan]:
        """The rows of each text: one, where it fits; none, where there is nothing to translate."""
        lines = [one_line(text) for text in texts]
        encoded = self.src_tokenizer.encode_batch(lines)
        return {
            text: _Plan([(*ids, EOS_ID)] if line and ids else [], cut=False)
            if len(ids) < self.max_src_len
            else self._plan_long(text)
            for text, line, ids in zip(texts, lines, encoded, strict=True)
        }

    def _plan_long(self, text: str) -> _Plan:
        """Pack as many whole sentences into each row as fit; a sentence that alone is too long is cut."""
        sentences = split_sentences(LINE_BREAKS.sub("\n", text))
        encoded = self.src_tokenizer.encode_batch([LINE_BREAKS.sub(" ", sentence) for sentence in sentences])
        room = self.max_src_len - 1
        rows = [
            self._encode_pack([sentences[i] for i in pack], [encoded[i] for i in pack])
            for pack in _packs([len(ids) for ids in encoded], room)
        ]
        return _Plan([(*ids[:room], EOS_ID) for ids in rows if ids], cut=any(len(ids) > room for ids in rows))

    def _encode_pack(self, sentences: list[str], encoded: list[list[int]]) -> list[int]:
        """The sentences as one line; if that should need more ids than one by one, their own ids in a row."""
        together = self.src_tokenizer.encode(one_line("".join(sentences)))
        return together if len(together) < self.max_src_len else list(chain.from_iterable(encoded))

    def _search(self, rows: list[tuple[int, ...]], settings: _Settings) -> list[list[Hypothesis]]:
        """The hypotheses of each row; where memory does not suffice for all, half of them at a time."""
        try:
            return self._search_batch(rows, settings)
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise OutOfMemoryError(
                    f"no memory to translate {len(rows[0])} source tokens with beam_size = {settings.beam_size}; "
                    "use a smaller beam_size or shorter texts"
                ) from None
        half = len(rows) // 2  # outside of the handler, which would keep the failed attempt's tensors alive
        return self._search(rows[:half], settings) + self._search(rows[half:], settings)

    def _search_batch(self, rows: list[tuple[int, ...]], settings: _Settings) -> list[list[Hypothesis]]:
        if settings.exhaustive is not None:
            return [self._search_exhaustively(row, settings.exhaustive, settings) for row in rows]
        cache = self.model.prefill(_padded(rows).to(self.device))
        max_lens = torch.tensor([self._output_limit(len(row)) for row in rows], device=self.device)
        if settings.beam_size == 1:
            best = greedy_search(
                self._step,
                cache,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                max_lens=max_lens,
                banned_ids=_BANNED,
                length_penalty=settings.length_penalty,
            )
            return [[hypothesis] for hypothesis in best]
        return beam_search(
            self._step,
            cache,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_lens=max_lens,
            beam_size=settings.beam_size,
            length_penalty=settings.length_penalty,
            n_best=settings.n_best,
            banned_ids=_BANNED,
        )

    def _search_exhaustively(self, row: tuple[int, ...], max_len: int, settings: _Settings) -> list[Hypothesis]:
        return exhaustive_search(
            self._step,
            self.model.prefill(_padded([row]).to(self.device)),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_len=min(max_len, self._output_limit(len(row))),
            length_penalty=settings.length_penalty,
            n_best=settings.n_best,
            banned_ids=_BANNED,
            device=self.device,
        )

    def _step(self, newest: Int[Tensor, "N"], cache: Any) -> tuple[Float[Tensor, "N V"], Any]:
        states, cache = self.model.decode(newest[:, None], cache)  # N -> N 1 D
        return self.model.output(states[:, -1]), cache

    def _output_limit(self, src_len: int) -> int:
        """New tokens, eos counted, for a source row of `src_len`, eos counted."""
        wanted = math.ceil(self.decoding.max_len_ratio * src_len) + self.decoding.max_len_extra
        return max(1, min(self.model.max_len - 1, wanted))

    def _assemble(self, plan: _Plan, found: dict[tuple[int, ...], list[Hypothesis]]) -> Prediction:
        """The segments of one text, joined."""
        segments = [found[row] for row in plan.rows]
        if not segments:
            return Prediction("", None, plan.cut, 0, [], [])
        places = range(max(map(len, segments)))
        n_best = [self._join([segment[min(j, len(segment) - 1)] for segment in segments]) for j in places]
        best = [segment[0] for segment in segments]
        return Prediction(
            text=n_best[0].text,
            score=n_best[0].score,
            truncated=plan.cut or not all(hypothesis.finished for hypothesis in best),
            segments=len(segments),
            n_best=n_best,
            token_log_probs=list(chain.from_iterable(hypothesis.token_log_probs for hypothesis in best)),
        )

    def _join(self, segments: list[Hypothesis]) -> Alternative:
        texts = [one_line(self.tgt_tokenizer.decode(segment.ids)) for segment in segments]
        score = sum(segment.score for segment in segments) / len(segments)
        return Alternative(_joiner(self.tgt_lang).join(text for text in texts if text), score)


def _joiner(language: str) -> str:
    """What stands between two sentences of a language (BCP-47)."""
    return "" if re.split("[-_]", language.lower())[0] in _SPACELESS else " "


def _packs(lengths: list[int], room: int) -> list[list[int]]:
    """Which neighbours stand together: as many as fit into `room`, and never less than one."""
    packs: list[list[int]] = []
    filled = room
    for i, length in enumerate(lengths):
        if filled + length > room or not packs:
            packs.append([])
            filled = 0
        packs[-1].append(i)
        filled += length
    return packs


def _batches(rows: Iterable[tuple[int, ...]], settings: _Settings) -> Iterator[list[tuple[int, ...]]]:
    """Rows of similar length together, the longest first, within the budget of padded tokens."""
    batch: list[tuple[int, ...]] = []
    for row in sorted(rows, key=len, reverse=True):
        longest = len(batch[0] if batch else row)
        if batch and (len(batch) + 1) * longest * settings.beam_size > settings.batch_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(rows: list[tuple[int, ...]]) -> Int[Tensor, "B S"]:
    width = max(map(len, rows))
    return torch.tensor([row + (PAD_ID,) * (width - len(row)) for row in rows])
