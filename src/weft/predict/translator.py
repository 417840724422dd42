"""Text in, text out: the one place where ids and text meet after training.

A translator loads nothing; it is given a built model and its tokenizers. What a text becomes
depends on that text and the settings alone, never on the other texts beside it.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from weft.config import DecodingSection
from weft.data.known import KnownWords
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.decoder import Engine, Hypothesis
from weft.decoding.risk import Utility, rank_by_utility
from weft.decoding.shortlist import Shortlist
from weft.errors import UsageError
from weft.predict.alignment import Link, Look, coverage, links
from weft.predict.prediction import Alternative, Prediction, repeats
from weft.predict.rows import Member, RowSearch, Settled, TranslationModel, written
from weft.predict.segments import Plan, Row, plan_rows
from weft.predict.settings import DecodingSettings
from weft.predict.text import one_line

LONG_SOURCE = 10  # ids from which on a source says how long its translation should be
# times the least ratio of lengths in training: a translation below it has left something out
FAR_BELOW = 0.7


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
        usual_src_len: int | None = None,
        device: torch.device | str = "cpu",
        engine: Engine | None = None,
        workers: int = 1,
        utilities: Mapping[str, Utility] | None = None,
        look: Look | None = None,
        shortlist: Shortlist | None = None,
        is_short: bool = False,
        by_sentence: bool = False,
        least_ratio: float = 0.0,
        known: KnownWords | None = None,
        low_confidence: float | None = None,
    ) -> None:
        """`max_src_len` limits a source row, eos counted; languages are BCP-47 codes.

        A text of more than `usual_src_len` ids, eos counted, is read in rows of no more where its
        sentences allow. `engine` has the same model, and searches in its place, by so many
        `workers` at once. `utilities` are what minimum Bayes risk can compare translations by;
        `look` gives the model's attention. A `shortlist` is used where `is_short`, unless asked
        otherwise. `by_sentence`, each sentence is a row of its own. Hardly a pair that the model
        was trained on has fewer target ids for each source id than `least_ratio`. `known` are the
        words of its training text; a translation less sure than `low_confidence` is `unsure`.
        """
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.src_lang = src_lang
        self.tgt_lang = tgt_lang
        self.decoding = decoding
        self.max_len = model.max_len
        self.max_src_len = min(max_src_len, model.max_len)
        self.usual_src_len = min(usual_src_len or self.max_src_len, self.max_src_len)
        self.utilities = utilities or {}
        self.is_short = is_short
        self.by_sentence, self.least_ratio = by_sentence, least_ratio
        self.known, self.low_confidence = known, low_confidence
        members = (Member(model, torch.device(device), engine, look),)
        self._rows = RowSearch(members, decoding, self.max_len, workers, shortlist)

    @property
    def engine(self) -> Engine | None:
        """What searches in the place of the model's own steps."""
        return self._rows.engine

    def ensemble(self, *others: "Translator") -> "Translator":
        """This model and others as one: every next token by the mean of their probabilities.

        Settings of the recipe are this model's. By engines, if all have one. Raises UsageError
        where a model has other languages or tokenizers than this one.
        """
        for number, other in enumerate(others, start=2):
            if not isinstance(other, Translator):
                raise UsageError(
                    f"model {number} of the ensemble is a {type(other).__name__}, not a Translator"
                )
            if reason := self.difference(other):
                raise UsageError(f"model {number} of the ensemble: {reason}")
        together, models = copy(self), (self, *others)
        together.max_len = min(model.max_len for model in models)
        together.max_src_len = min(model.max_src_len for model in models)
        together.usual_src_len = min(model.usual_src_len for model in models)
        members = tuple(member for model in models for member in model._rows.members)
        together._rows = replace(self._rows, members=members, max_len=together.max_len)
        return together

    def difference(self, other: "Translator") -> str:
        """Why another model cannot translate together with this one; empty where it can."""
        needs = "the models of an ensemble need the same"
        mine, theirs = (
            f"{model.src_lang} to {model.tgt_lang}" for model in (self, other)
        )
        if mine != theirs:
            return f"it translates {theirs}, not {mine}; {needs} languages"
        if self.src_tokenizer.sha256 != other.src_tokenizer.sha256:
            return f"its source tokenizer is another; {needs} one"
        if self.tgt_tokenizer.sha256 != other.tgt_tokenizer.sha256:
            return f"its target tokenizer is another; {needs} one"
        return ""

    def translate(
        self,
        texts: str | Iterable[str],
        settings: DecodingSettings | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """Translate one text or several: one prediction for each, in the same order.

        `options` are what `DecodingSettings` takes, by name, and change `settings`. A text longer
        than the model has learned from is translated in segments that end where sentences end.
        Raises UsageError for impossible settings, DivergedError for a model whose output is not a
        number, OutOfMemoryError where a single row does not fit into memory.
        """
        settled = self._settle(_asked(settings, options))
        return self._translate(
            [texts] if isinstance(texts, str) else list(texts), settled
        )

    def translate_stream(
        self,
        texts: Iterable[str],
        settings: DecodingSettings | None = None,
        *,
        chunk: int = 1024,
        **options: Any,
    ) -> Iterator[Prediction]:
        """As `translate`, `chunk` texts at a time: any number of texts in the memory of one
        chunk.
        """
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        settled = self._settle(_asked(settings, options))
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self._translate(some, settled) for some in chunks)

    def stream(
        self, text: str, settings: DecodingSettings | None = None, **options: Any
    ) -> Iterator[str]:
        """As `translate` of one text, piece by piece as it is written; the pieces joined are its
        text.

        (But for bytes that are no UTF-8: here each is shown by itself.) Greedy, or with a
        temperature a sample. What is impossible is refused at the call, before the first piece.
        """
        asked = _asked(settings, options)
        if asked.sampling is None and asked.beam_size is None:
            asked = replace(asked, beam_size=1)
        settled = self._settle(asked)
        if settled.beams.beam_size > 1 or asked.exhaustive or asked.alignments:
            raise UsageError(
                "a stream is one hypothesis, greedy or drawn; leave out what needs more than that"
            )
        (plan,) = self._plan([text], settled.prefix).values()
        return self._pieces(plan, settled)

    def hypotheses(self, texts: Sequence[str]) -> dict[tuple[int, ...], Hypothesis]:
        """Return the best hypothesis for each row of source ids, eos at its end, that the texts
        become.
        """
        settings = self._settle(DecodingSettings())
        rows = dict.fromkeys(
            row for plan in self._plan(list(texts)).values() for row in plan.rows
        )
        return {
            row.ids: found[0] for row, found in self._find(list(rows), settings).items()
        }

    def search(self, row: Sequence[int], beam_size: int | None = None) -> Hypothesis:
        """Return the best hypothesis for one row of source ids, eos at its end, as `translate`
        finds it.
        """
        settings = self._settle(DecodingSettings(beam_size, batch_tokens=len(row)))
        (found,) = self._find([Row(tuple(row))], settings).values()
        return found[0]

    def _settle(self, asked: DecodingSettings) -> Settled:
        prefix, members = one_line(asked.prefix), self._rows.members
        forced = tuple(self.tgt_tokenizer.encode(prefix)) if prefix else ()
        if len(forced) >= self.max_len - 1:
            raise UsageError(
                f"prefix: it has {len(forced)} tokens, and the model writes {self.max_len - 1}; shorten it"
            )
        if (asked.alignments or asked.coverage_penalty) and not all(
            member.look for member in members
        ):
            raise UsageError(
                "alignments and coverage_penalty need the attention of a model, which was not given"
            )
        if asked.exhaustive is not None and len(members) > 1:
            raise UsageError(
                "exhaustive is for one model; leave it out, or translate without an ensemble"
            )
        if asked.mbr is not None and _utility(asked) not in self.utilities:
            raise UsageError(
                f"utility = {_utility(asked)}: it must be one of {', '.join(self.utilities)}"
            )
        is_short = self.is_short if asked.shortlist is None else asked.shortlist
        if is_short and self._rows.shortlist is None:
            raise UsageError(
                "this model has no shortlist; weft quantize --shortlist learns one"
            )
        return Settled(asked, asked.beams(self.decoding), forced, is_short)

    def _translate(self, texts: Sequence[str], settings: Settled) -> list[Prediction]:
        """Plan, search every different row once, and put the texts together again."""
        plans = self._plan(list(dict.fromkeys(texts)), settings.prefix)
        rows = dict.fromkeys(row for plan in plans.values() for row in plan.rows)
        found = self._find(list(rows), settings)
        best = {row: ranked[:1] for row, ranked in found.items()}
        looked = (
            self._rows.look_at(best, settings) if settings.asked.alignments else None
        )
        predictions = {
            text: self._with_doubts(text, self._assemble(plan, found, looked))
            for text, plan in plans.items()
        }
        return [predictions[text] for text in texts]

    def _with_doubts(self, text: str, found: Prediction) -> Prediction:
        """With the words of the text that training never had, and whether the model is less sure
        than on dev.
        """
        unknown = self.known.unknown(text) if self.known is not None else []
        sure, low = found.confidence, self.low_confidence
        unsure = sure is not None and low is not None and sure < low
        return (
            replace(found, unknown_words=unknown, unsure=unsure)
            if unknown or unsure
            else found
        )

    def _find(self, rows: list[Row], settings: Settled) -> dict[Row, list[Hypothesis]]:
        """Return the hypotheses of every row, ranked."""
        found = self._rows.find(rows, settings)
        if settings.asked.mbr is not None:
            found = {
                row: self._least_risk(samples, settings.asked)
                for row, samples in found.items()
            }
        if settings.asked.coverage_penalty:
            looked = self._rows.look_at(found, settings)
            found = {
                row: _by_coverage(ranked, looked[row], settings.asked)
                for row, ranked in found.items()
            }
        return found

    def _pieces(self, plan: Plan, settings: Settled) -> Iterator[str]:
        is_begun = False
        for white, row in zip(plan.before, plan.rows, strict=True):
            before = plan.gap(white, self.tgt_lang) if is_begun else plan.indent
            for piece in self._pieces_of_segment(row, settings):
                yield before + piece
                before, is_begun = "", True

    def _pieces_of_segment(self, row: Row, settings: Settled) -> Iterator[str]:
        """What each token adds to the text, held back while it is no whole character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text, shown = "", 0
        for number, token in enumerate(
            chain(self._rows.tokens(row, settings), [EOS_ID])
        ):
            spelled = self.tgt_tokenizer.spell([token], begins=number == 0)
            text += decoder.decode(spelled, final=token == EOS_ID)
            whole = one_line(text)
            if len(whole) > shown:
                yield whole[shown:]
                shown = len(whole)

    def _least_risk(
        self, samples: list[Hypothesis], asked: DecodingSettings
    ) -> list[Hypothesis]:
        """Those most like the others, their mean utility as their score."""
        texts = [self._text_of(sample) for sample in samples]
        ranked = rank_by_utility(
            texts,
            [sample.log_prob for sample in samples],
            self.utilities[_utility(asked)],
        )
        return [
            replace(samples[number], score=mean)
            for number, mean in ranked[: asked.n_best]
        ]

    def _plan(self, texts: list[str], prefix: tuple[int, ...] = ()) -> dict[str, Plan]:
        lens = self.max_src_len, self.usual_src_len
        return plan_rows(texts, self.src_tokenizer, *lens, prefix, self.by_sentence)

    def _assemble(
        self,
        plan: Plan,
        found: dict[Row, list[Hypothesis]],
        looked: dict[Row, list[Float[Tensor, "T S"]]] | None,
    ) -> Prediction:
        """Return the segments of one text, joined."""
        segments = [found[row] for row in plan.rows]
        if not segments:
            nothing: list[Link] | None = None if looked is None else []
            return Prediction(
                "", None, plan.cut, 0, [], [], source_cut=plan.cut, alignments=nothing
            )
        places = range(max(map(len, segments)))
        n_best = [
            self._join(
                plan, [segment[min(j, len(segment) - 1)] for segment in segments]
            )
            for j in places
        ]
        best = [segment[0] for segment in segments]
        tokens = [self.tgt_tokenizer.pieces(written(hypothesis)) for hypothesis in best]
        return Prediction(
            text=n_best[0].text,
            score=n_best[0].score,
            truncated=plan.cut or not all(hypothesis.finished for hypothesis in best),
            segments=len(segments),
            n_best=n_best,
            token_log_probs=list(
                chain.from_iterable(hypothesis.token_log_probs for hypothesis in best)
            ),
            tokens=list(chain.from_iterable(tokens)),
            source_cut=plan.cut,
            repetition=any(repeats(hypothesis.ids) for hypothesis in best),
            short=any(
                self._is_short(row, found)
                for row, found in zip(plan.rows, best, strict=True)
            ),
            alignments=None
            if looked is None
            else self._links(plan.rows, tokens, looked),
        )

    def _links(
        self,
        rows: list[Row],
        tokens: list[list[str]],
        looked: dict[Row, list[Float[Tensor, "T S"]]],
    ) -> list[Link]:
        """Those of all segments; `tokens` are the target's."""
        found: list[Link] = []
        num_src = 0
        for row, tgt in zip(rows, tokens, strict=True):
            found += links(
                looked[row][0],
                tgt,
                self.src_tokenizer.pieces(row.ids),
                (len(found), num_src),
            )
            num_src += len(row.ids)
        return found

    def _is_short(self, row: Row, found: Hypothesis) -> bool:
        """Return whether a translation is so short for its source as none in training."""
        num_src = len(row.ids) - 1
        return (
            num_src >= LONG_SOURCE
            and len(found.ids) < FAR_BELOW * self.least_ratio * num_src
        )

    def _join(self, plan: Plan, segments: list[Hypothesis]) -> Alternative:
        score = sum(segment.score for segment in segments) / len(segments)
        return Alternative(
            plan.join([self._text_of(segment) for segment in segments], self.tgt_lang),
            score,
        )

    def _text_of(self, hypothesis: Hypothesis) -> str:
        return one_line(self.tgt_tokenizer.decode(hypothesis.ids))


def _asked(
    settings: DecodingSettings | None, options: Mapping[str, Any]
) -> DecodingSettings:
    """Return the settings with what the options change."""
    if not isinstance(settings, DecodingSettings | None):
        raise UsageError(
            f"settings are DecodingSettings, not a {type(settings).__name__}; options are given by name"
        )
    return replace(settings or DecodingSettings(), **options)


def _by_coverage(
    found: list[Hypothesis],
    attention: Sequence[Float[Tensor, "T S"]],
    asked: DecodingSettings,
) -> list[Hypothesis]:
    """Return the `n_best` by score and coverage, those that were cut after all others."""
    scored = [
        replace(
            hypothesis, score=hypothesis.score + asked.coverage_penalty * coverage(part)
        )
        for hypothesis, part in zip(found, attention, strict=True)
    ]
    return sorted(scored, key=lambda other: (not other.finished, -other.score))[
        : asked.n_best
    ]


def _utility(asked: DecodingSettings) -> str:
    return asked.utility or "chrf"
