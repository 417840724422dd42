"""Text in, text out: the one place where ids and text meet after training.

A translator loads nothing; it is given a built model and its tokenizers. What a text becomes depends on that text
and the settings alone, never on the other texts beside it.
"""

import codecs
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.config import DecodingSection
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from weft.decoding.batched import BatchedEngine
from weft.decoding.continuous import (
    Beams,
    Engine,
    Sentence,
    Waiting,
    continuous_search,
    search_all,
    streamed_search,
)
from weft.decoding.ensemble import EnsembleEngine
from weft.decoding.exhaustive import exhaustive_search
from weft.decoding.risk import Utility, rank_by_utility
from weft.decoding.search import Cache, Hypothesis
from weft.decoding.shortlist import Shortlist
from weft.errors import OutOfMemoryError, UsageError
from weft.predict.alignment import Link, Look, coverage, links
from weft.predict.segments import Plan, Row, joiner, plan_rows
from weft.predict.settings import BANNED, DecodingSettings
from weft.predict.text import evaluating, one_line

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

    `score` is what translations were ranked by: the length-normalised log-probability, with the coverage penalty
    if one was given, or the mean utility of minimum Bayes risk; the mean over `segments` where a long text was
    translated in several; None for a text with nothing in it. Samples are not ranked, and have the first.
    `truncated` says that source or translation was cut at a limit, `repetition` that the translation says the same
    again and again (`repeats`). `n_best` starts with the translation itself; of several segments its j-th entry
    joins the j-th of each. `tokens` are the target tokens in readable form, end symbols included;
    `token_log_probs` are theirs, in nats. `alignments`, where they were asked for, have one link for each target
    token; the tokens of segments are counted one after the other.
    """

    text: str
    score: float | None
    truncated: bool
    segments: int
    n_best: list[Alternative]
    token_log_probs: list[float]
    tokens: list[str] = field(default_factory=list)
    repetition: bool = False
    alignments: list[Link] | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary; `alignments` only where they were asked for."""
        found = asdict(self)
        if self.alignments is None:
            del found["alignments"]
        return found


@dataclass(frozen=True)
class _Settings:
    """What was asked for, the search that it means, and the ids of its prefix."""

    asked: DecodingSettings
    beams: Beams
    prefix: tuple[int, ...] = ()
    is_short: bool = False


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
        engine: Engine | None = None,
        workers: int = 1,
        utilities: Mapping[str, Utility] | None = None,
        look: Look | None = None,
        shortlist: Shortlist | None = None,
        is_short: bool = False,
    ) -> None:
        """`max_src_len` limits a source row, eos counted; languages are BCP-47 codes.

        `engine` has the same model, and searches in its place, by so many `workers` at once. `utilities` are
        what minimum Bayes risk can compare translations by; `look` gives the model's attention. A `shortlist` is
        used where `is_short`, unless asked otherwise.
        """
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.decoding = decoding
        self.src_lang = src_lang
        self.tgt_lang = tgt_lang
        self.max_len = model.max_len
        self.max_src_len = min(max_src_len, model.max_len)
        self.device = torch.device(device)
        self.engine, self.workers = engine, workers
        self.utilities, self.look = utilities or {}, look
        self.shortlist, self.is_short = shortlist, is_short
        self._members: tuple[Translator, ...] = ()

    def ensemble(self, *others: "Translator") -> "Translator":
        """This model and others as one: every next token by the mean of their probabilities.

        Settings of the recipe are this model's. By engines, if all have one. Raises UsageError where a model has
        other languages or tokenizers than this one.
        """
        for number, other in enumerate(others, start=2):
            if reason := self.difference(other):
                raise UsageError(f"model {number} of the ensemble: {reason}")
        together = copy(self)
        members = tuple(member for model in (self, *others) for member in model.members)
        engines = [member.engine for member in members if member.engine is not None]
        together._members = members
        together.engine = EnsembleEngine(engines) if len(engines) == len(members) else None
        together.max_len = min(member.max_len for member in members)
        together.max_src_len = min(member.max_src_len for member in members)
        return together

    @property
    def members(self) -> "tuple[Translator, ...]":
        """The models of an ensemble; else this one alone."""
        return self._members or (self,)

    def difference(self, other: "Translator") -> str:
        """Why another model cannot translate together with this one; empty where it can."""
        needs = "the models of an ensemble need the same"
        mine, theirs = (f"{model.src_lang} to {model.tgt_lang}" for model in (self, other))
        if mine != theirs:
            return f"it translates {theirs}, not {mine}; {needs} languages"
        if self.src_tokenizer.sha256 != other.src_tokenizer.sha256:
            return f"its source tokenizer is another; {needs} one"
        if self.tgt_tokenizer.sha256 != other.tgt_tokenizer.sha256:
            return f"its target tokenizer is another; {needs} one"
        return ""

    def translate(
        self, texts: str | Iterable[str], settings: DecodingSettings | None = None, **options: Any
    ) -> list[Prediction]:
        """Translate one text or several: one prediction for each, in the same order.

        `options` are what `DecodingSettings` takes, by name, and change `settings`. A text too long for the model
        is translated in segments that end where sentences end. Raises UsageError for impossible settings,
        DivergedError for a model whose output is not a number, OutOfMemoryError where a single row does not fit
        into memory.
        """
        settled = self._settle(replace(settings or DecodingSettings(), **options))
        return self._translate([texts] if isinstance(texts, str) else list(texts), settled)

    def translate_stream(
        self,
        texts: Iterable[str],
        settings: DecodingSettings | None = None,
        *,
        chunk: int = 1024,
        **options: Any,
    ) -> Iterator[Prediction]:
        """As `translate`, `chunk` texts at a time: any number of texts in the memory of one chunk."""
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        settled = self._settle(replace(settings or DecodingSettings(), **options))
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self._translate(some, settled) for some in chunks)

    def stream(self, text: str, settings: DecodingSettings | None = None, **options: Any) -> Iterator[str]:
        """As `translate` of one text, piece by piece as it is written; the pieces joined are its text.

        (But for bytes that are no UTF-8: here each is shown by itself.) Greedy, or with a temperature a sample.
        What is impossible is refused at the call, before the first piece.
        """
        asked = replace(settings or DecodingSettings(), **options)
        if asked.sampling is None and asked.beam_size is None:
            asked = replace(asked, beam_size=1)
        settled = self._settle(asked)
        if settled.beams.beam_size > 1 or asked.exhaustive or asked.alignments:
            raise UsageError("a stream is one hypothesis, greedy or drawn; leave out what needs more than that")
        (plan,) = self._plan([text], settled.prefix).values()
        return self._pieces(plan.rows, settled)

    def hypotheses(self, texts: Sequence[str]) -> dict[tuple[int, ...], Hypothesis]:
        """The best hypothesis for each row of source ids, eos at its end, that the texts become."""
        settings = self._settle(DecodingSettings())
        rows = dict.fromkeys(row for plan in self._plan(list(texts)).values() for row in plan.rows)
        return {row.ids: found[0] for row, found in self._find(list(rows), settings).items()}

    def search(self, row: Sequence[int], beam_size: int | None = None) -> Hypothesis:
        """The best hypothesis for one row of source ids, eos at its end, as `translate` finds it."""
        settings = self._settle(DecodingSettings(beam_size, batch_tokens=len(row)))
        (found,) = self._find([Row(tuple(row))], settings).values()
        return found[0]

    def _settle(self, asked: DecodingSettings) -> _Settings:
        forced = tuple(self.tgt_tokenizer.encode(asked.prefix)) if asked.prefix else ()
        if len(forced) >= self.max_len - 1:
            raise UsageError(f"the prefix has {len(forced)} tokens, and the model writes {self.max_len - 1}")
        if (asked.alignments or asked.coverage_penalty) and not all(member.look for member in self.members):
            raise UsageError("alignments and coverage_penalty need the attention of a model, which was not given")
        if asked.exhaustive is not None and self._members:
            raise UsageError("exhaustive is for one model; leave it out, or translate without an ensemble")
        if asked.mbr is not None and _utility(asked) not in self.utilities:
            raise UsageError(f"utility = {_utility(asked)}: it must be one of {', '.join(self.utilities)}")
        is_short = self.is_short if asked.shortlist is None else asked.shortlist
        if is_short and self.shortlist is None:
            raise UsageError("this model has no shortlist; weft quantize --shortlist learns one")
        return _Settings(asked, asked.beams(self.decoding), forced, is_short)

    def _translate(self, texts: Sequence[str], settings: _Settings) -> list[Prediction]:
        """Plan, search every different row once, and put the texts together again."""
        plans = self._plan(list(dict.fromkeys(texts)), settings.prefix)
        rows = dict.fromkeys(row for plan in plans.values() for row in plan.rows)
        found = self._find(list(rows), settings)
        best = {row: ranked[:1] for row, ranked in found.items()}
        looked = self._look_at(best, settings) if settings.asked.alignments else None
        predictions = {text: self._assemble(plan, found, looked) for text, plan in plans.items()}
        return [predictions[text] for text in texts]

    def _find(self, rows: list[Row], settings: _Settings) -> dict[Row, list[Hypothesis]]:
        """The hypotheses of every row, ranked."""
        found = self._search_all(rows, settings)
        if settings.asked.mbr is not None:
            found = {row: self._least_risk(samples, settings.asked) for row, samples in found.items()}
        if settings.asked.coverage_penalty:
            looked = self._look_at(found, settings)
            found = {row: _by_coverage(ranked, looked[row], settings.asked) for row, ranked in found.items()}
        return found

    def _look_at(
        self, found: Mapping[Row, list[Hypothesis]], settings: _Settings
    ) -> dict[Row, list[Float[Tensor, "T S"]]]:
        """The attention while each hypothesis was written, the mean over an ensemble: one forced pass of each."""
        looked: dict[Row, list[Tensor]] = {}
        with self._evaluating():
            for batch in _batches(found, settings):
                looked |= self._look_at_batch({row: found[row] for row in batch})
        return looked

    def _look_at_batch(self, found: Mapping[Row, list[Hypothesis]]) -> dict[Row, list[Float[Tensor, "T S"]]]:
        pairs = [(row.ids, _fed(hypothesis)) for row, ranked in found.items() for hypothesis in ranked]
        src, tgt = (_padded(side).to(self.device) for side in zip(*pairs, strict=True))
        maps = [member.look(src, tgt).float() for member in self.members if member.look is not None]
        attention = torch.stack(maps).mean(0).cpu()  # B T S
        parts = (part[: len(fed), : len(ids)] for part, (ids, fed) in zip(attention, pairs, strict=True))
        return {row: list(islice(parts, len(ranked))) for row, ranked in found.items()}

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """As `evaluating`, of all models."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(evaluating(member.model))
            yield

    def _pieces(self, rows: list[Row], settings: _Settings) -> Iterator[str]:
        between = ""
        for row in rows:
            before = between
            for piece in self._pieces_of_segment(row, settings):
                yield before + piece
                before, between = "", joiner(self.tgt_lang)

    def _pieces_of_segment(self, row: Row, settings: _Settings) -> Iterator[str]:
        """What each token adds to the text, held back while it is no whole character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text, shown = "", 0
        for number, token in enumerate(chain(self._tokens(row, settings), [EOS_ID])):
            spelled = self.tgt_tokenizer.spell([token], begins=number == 0)
            text += decoder.decode(spelled, final=token == EOS_ID)
            whole = one_line(text)
            if len(whole) > shown:
                yield whole[shown:]
                shown = len(whole)

    def _tokens(self, row: Row, settings: _Settings) -> Iterator[int]:
        engine = self._own_steps() if self.engine is None else self.engine
        (sentence,) = self._sentences([row], settings)
        steps = streamed_search(engine.session(1, 1), sentence, settings.beams)
        while (token := self._next(steps)) is not None:
            yield token

    def _next(self, steps: Iterator[int]) -> int | None:
        with self._evaluating():
            return next(steps, None)

    def _least_risk(self, samples: list[Hypothesis], asked: DecodingSettings) -> list[Hypothesis]:
        """Those most like the others, their mean utility as their score."""
        texts = [self._text_of(sample) for sample in samples]
        ranked = rank_by_utility(texts, [sample.log_prob for sample in samples], self.utilities[_utility(asked)])
        return [replace(samples[number], score=mean) for number, mean in ranked[: asked.n_best]]

    def _search_all(self, rows: list[Row], settings: _Settings) -> dict[Row, list[Hypothesis]]:
        """The hypotheses of every row."""
        if self.engine is not None and settings.asked.exhaustive is None:
            return self._find_with(self.engine, rows, settings)
        found: dict[Row, list[Hypothesis]] = {}
        with self._evaluating():
            for batch in _batches(rows, settings):
                found |= zip(batch, self._search(batch, settings), strict=True)
        return found

    def _find_with(self, engine: Engine, rows: list[Row], settings: _Settings) -> dict[Row, list[Hypothesis]]:
        try:
            found = search_all(
                engine, self._sentences(rows, settings), settings.beams, self.workers, settings.asked.batch_tokens
            )
        except MemoryError:
            raise _too_large(max(len(row.ids) for row in rows), settings) from None
        return {row: found[i] for i, row in enumerate(rows)}

    def _sentences(self, rows: Sequence[Row], settings: _Settings) -> list[Sentence]:
        return [
            Sentence(i, row.ids, self._limit_of(row), row.prefix, self._allowed(row) if settings.is_short else ())
            for i, row in enumerate(rows)
        ]

    def _allowed(self, row: Row) -> NDArray[np.int32]:
        """What the shortlist lets a row become."""
        assert self.shortlist is not None
        ids = self.shortlist.of(row.ids)
        return np.union1d(ids, np.array(row.prefix, np.int32)) if row.prefix else ids

    def _plan(self, texts: list[str], prefix: tuple[int, ...] = ()) -> dict[str, Plan]:
        return plan_rows(texts, self.src_tokenizer, self.max_src_len, prefix)

    def _search(self, rows: list[Row], settings: _Settings) -> list[list[Hypothesis]]:
        """The hypotheses of each row; where memory does not suffice for all, half of them at a time."""
        try:
            return self._search_batch(rows, settings)
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise _too_large(len(rows[0].ids), settings) from None
        half = len(rows) // 2  # outside of the handler, which would keep the failed attempt's tensors alive
        return self._search(rows[:half], settings) + self._search(rows[half:], settings)

    def _search_batch(self, rows: list[Row], settings: _Settings) -> list[list[Hypothesis]]:
        if settings.asked.exhaustive is not None:
            return [self._search_exhaustively(row.ids, settings.asked.exhaustive, settings.beams) for row in rows]
        decoder = self._own_steps().session(len(rows), settings.beams.beam_size)
        waiting = Waiting(self._sentences(rows, settings))
        found = dict(continuous_search(decoder, waiting, settings.beams, sys.maxsize))
        return [found[i] for i in range(len(rows))]

    def _own_steps(self) -> Engine:
        """The models' own, where there is no engine."""
        engines = [BatchedEngine(member._prefill, member._step, member.device) for member in self.members]
        return EnsembleEngine(engines) if self._members else engines[0]

    def _search_exhaustively(self, row: tuple[int, ...], max_len: int, beams: Beams) -> list[Hypothesis]:
        return exhaustive_search(
            self._step,
            self._prefill([row]),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_len=min(max_len, self._output_limit(len(row))),
            length_penalty=beams.length_penalty,
            n_best=beams.n_best,
            banned_ids=BANNED,
            device=self.device,
        )

    def _prefill(self, rows: Sequence[Sequence[int]]) -> Any:
        return self.model.prefill(_padded(rows).to(self.device))

    def _step(self, newest: Int[Tensor, "N"], cache: Any) -> tuple[Float[Tensor, "N V"], Any]:
        states, cache = self.model.decode(newest[:, None], cache)  # N -> N 1 D
        return self.model.output(states[:, -1]), cache

    def _limit_of(self, row: Row) -> int:
        """New tokens, eos and prefix counted."""
        return max(self._output_limit(len(row.ids)), len(row.prefix) + 1)

    def _output_limit(self, src_len: int) -> int:
        """New tokens, eos counted, for a source row of `src_len`, eos counted."""
        wanted = math.ceil(self.decoding.max_len_ratio * src_len) + self.decoding.max_len_extra
        return max(1, min(self.max_len - 1, wanted))

    def _assemble(
        self,
        plan: Plan,
        found: dict[Row, list[Hypothesis]],
        looked: dict[Row, list[Float[Tensor, "T S"]]] | None,
    ) -> Prediction:
        """The segments of one text, joined."""
        segments = [found[row] for row in plan.rows]
        if not segments:
            return Prediction("", None, plan.cut, 0, [], [], alignments=None if looked is None else [])
        places = range(max(map(len, segments)))
        n_best = [self._join([segment[min(j, len(segment) - 1)] for segment in segments]) for j in places]
        best = [segment[0] for segment in segments]
        tokens = [self.tgt_tokenizer.pieces(_written(hypothesis)) for hypothesis in best]
        return Prediction(
            text=n_best[0].text,
            score=n_best[0].score,
            truncated=plan.cut or not all(hypothesis.finished for hypothesis in best),
            segments=len(segments),
            n_best=n_best,
            token_log_probs=list(chain.from_iterable(hypothesis.token_log_probs for hypothesis in best)),
            tokens=list(chain.from_iterable(tokens)),
            repetition=any(repeats(hypothesis.ids) for hypothesis in best),
            alignments=None if looked is None else self._links(plan.rows, tokens, looked),
        )

    def _links(
        self, rows: list[Row], tokens: list[list[str]], looked: dict[Row, list[Float[Tensor, "T S"]]]
    ) -> list[Link]:
        """Those of all segments; `tokens` are the target's."""
        found: list[Link] = []
        num_src = 0
        for row, tgt in zip(rows, tokens, strict=True):
            found += links(looked[row][0], tgt, self.src_tokenizer.pieces(row.ids), (len(found), num_src))
            num_src += len(row.ids)
        return found

    def _join(self, segments: list[Hypothesis]) -> Alternative:
        texts = [self._text_of(segment) for segment in segments]
        score = sum(segment.score for segment in segments) / len(segments)
        return Alternative(joiner(self.tgt_lang).join(text for text in texts if text), score)

    def _text_of(self, hypothesis: Hypothesis) -> str:
        return one_line(self.tgt_tokenizer.decode(hypothesis.ids))


def repeats(ids: Sequence[int], longest: int = 16) -> bool:
    """Whether up to `longest` tokens stand three times right behind each other, and single ones seven times."""
    for period in range(1, longest + 1):
        run = 0
        for here, before in zip(ids[period:], ids, strict=False):
            run = run + 1 if here == before else 0
            if run >= max(2 * period, 6):
                return True
    return False


def _written(hypothesis: Hypothesis) -> list[int]:
    """All of its tokens, eos too."""
    return [*hypothesis.ids, EOS_ID] if hypothesis.finished else hypothesis.ids


def _fed(hypothesis: Hypothesis) -> list[int]:
    """What the model had before it at each of them."""
    return [BOS_ID, *_written(hypothesis)[:-1]]


def _by_coverage(
    found: list[Hypothesis], attention: Sequence[Float[Tensor, "T S"]], asked: DecodingSettings
) -> list[Hypothesis]:
    """The `n_best` by score and coverage, those that were cut after all others."""
    scored = [
        replace(hypothesis, score=hypothesis.score + asked.coverage_penalty * coverage(part))
        for hypothesis, part in zip(found, attention, strict=True)
    ]
    return sorted(scored, key=lambda other: (not other.finished, -other.score))[: asked.n_best]


def _utility(asked: DecodingSettings) -> str:
    return asked.utility or "chrf"


def _too_large(src_len: int, settings: _Settings) -> OutOfMemoryError:
    size = settings.beams.beam_size
    found, less = (
        (f"beam_size = {size}", "a smaller beam_size")
        if settings.asked.sampling is None
        else (f"{size} samples", "fewer samples")
    )
    return OutOfMemoryError(
        f"no memory to translate {src_len} source tokens with {found}; use {less} or shorter texts"
    )


def _batches(rows: Iterable[Row], settings: _Settings) -> Iterator[list[Row]]:
    """Rows of similar length together, the longest first, within the budget of padded tokens."""
    batch: list[Row] = []
    for row in sorted(rows, key=lambda row: len(row.ids), reverse=True):
        longest = len((batch[0] if batch else row).ids)
        if batch and (len(batch) + 1) * longest * settings.beams.beam_size > settings.asked.batch_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "B S"]:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD_ID] * (width - len(row))] for row in rows])
