"""Text in, text out: where texts become ids, and ids a translation.

A translator loads nothing; it is given a built model and its tokenizers. What a text becomes
depends on that text and the settings alone, never on the other texts beside it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from operator import getitem
from typing import Any, Literal, TypeAlias

from weft.config import DecodingSection, MarksSection
from weft.data.directions import choose_pair
from weft.data.glossary import Glossary
from weft.data.hints import Hints, TermHint
from weft.data.kept import places_of
from weft.data.marks import language_mark, tag_mark
from weft.data.memory import Memory
from weft.data.numbers import Difference, difference
from weft.data.tokenizer import Tokenizer
from weft.decoding.decoder import Engine, Hypothesis
from weft.decoding.risk import Utility
from weft.decoding.sentences import Sentence
from weft.decoding.shortlist import Shortlist
from weft.errors import UsageError
from weft.predict.alignment import Floats, Link, links
from weft.predict.completion import Completer, Completion
from weft.predict.doubts import Doubts
from weft.predict.evidence import Evidence
from weft.predict.inside import LooksInside
from weft.predict.languages import TellsLanguages
from weft.predict.memory import LEAST, MemoryFinder
from weft.predict.pieces import pieces
from weft.predict.prediction import Alternative, OutputLimit, Prediction, repeats
from weft.predict.ranking import by_coverage, least_risk
from weft.predict.rows import Member, Planned, Resolved, RowSearch, written
from weft.predict.scoring import read_pairs, score_translations
from weft.predict.segments import Plan, RowLengths, SourceRow, joiner, plan_rows
from weft.predict.settings import USUAL, DecodingSettings
from weft.predict.stems import Spellings
from weft.predict.terms import TermFinder, TermUse
from weft.predict.text import one_line
from weft.predict.words import (
    Segment,
    WordReporter,
    quality_of_all,
    with_quality_of_all,
)

# ids from which on the length of a source predicts that of its translation
LONG_SOURCE = 10
# times the least ratio of lengths in training: a translation below it may have left something out
FAR_BELOW = 0.7

NO_MARKS = MarksSection()

TermsBy: TypeAlias = Literal["search", "source", "both"]
"""What has a translation have the terms of a glossary: the search, the source that the model reads,
or both.
"""

Support = dict[SourceRow, list[Floats]]
"""How much each source token supports each token of each row's hypotheses, (T, S)."""


class Translator(TellsLanguages, LooksInside):
    """Translates with a built model and its two tokenizers (one object twice where joint)."""

    def __init__(
        self,
        member: Member,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        *,
        decoding: DecodingSection,
        languages: tuple[str, str],
        lengths: RowLengths,
        workers: int = 1,
        utilities: Mapping[str, Utility] | None = None,
        utilities_of: Callable[[str], Mapping[str, Utility]] | None = None,
        shortlist: Shortlist | None = None,
        uses_shortlist: bool = False,
        least_ratio: float = 0.0,
        doubts: Doubts | None = None,
        takes_terms: bool = False,
        takes_match: bool = False,
        kept_forms: tuple[str, ...] = (),
        marks: MarksSection = NO_MARKS,
        directions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Set the model, its tokenizers and how it is used.

        `languages` are source and target, BCP-47 codes. The model's engine searches for so many
        `workers` at once. `utilities` are what minimum Bayes risk can compare translations by,
        without them `utilities_of` the target language. With `uses_shortlist`, `shortlist` is used
        unless a call says otherwise. Nearly all pairs of training have at least `least_ratio`
        target ids for each source id. It `takes_terms` or `takes_match` if it has learned to read
        these hints in a row. It writes again what has one of the `kept_forms` (`weft.data.kept`).
        `marks` are those that it has learned to read before a row (`weft.data.marks`). Of several
        `directions` one is to be chosen (`toward`).
        """
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.src_lang, self.tgt_lang = languages
        self.decoding = decoding
        self.max_len = member.max_len
        self.lengths = lengths.within(RowLengths(self.max_len, self.max_len))
        self._utilities = utilities
        self._utilities_of = utilities_of
        self.directions = tuple(directions)
        self.uses_shortlist = uses_shortlist
        self.least_ratio = least_ratio
        self.doubts = doubts or Doubts()
        self._rows = RowSearch((member,), decoding, self.max_len, workers, shortlist)
        self.takes_terms = takes_terms
        self.takes_match = takes_match
        self.kept_forms = kept_forms
        self.marks = marks
        self.tag: str | None = None
        self._finder: TermFinder | None = None
        self._memory: MemoryFinder | None = None

    @property
    def engine(self) -> Engine | None:
        """Return what searches in the place of the model's own steps."""
        return self._rows.engine

    @property
    def searcher(self) -> Engine:
        """Return what searches for rows in any case: `engine`, else the model's own steps."""
        return self._rows.searcher

    @property
    def can_align(self) -> bool:
        """Return whether it knows which words belong together; a recurrent model does not."""
        return all(member.cross_attention for member in self._rows.members)

    @property
    def glossary(self) -> Glossary | None:
        """Return the glossary by which it is bound, as it finds the terms of a text."""
        return self._finder.glossary if self._finder else None

    def with_glossary(
        self, glossary: Glossary | None, terms: TermsBy | None = None
    ) -> "Translator":
        """Return this translator with a glossary, by which every translation is bound; None: with
        none.

        Its terms are written where their source words are translated, if the model looks at these
        (a recurrent one and an ensemble do not say so); `Prediction.terms` says what became of
        each.

        By the `search`, a translation that lacks terms is searched for again, bound by them. By the
        `source`, the model reads them beside their source words, which it must have learned
        (`data.terms`). Usual is `both` for a model that has, and `search` for others. Raises
        UsageError for a model that cannot read them.
        """
        terms = terms or ("both" if self.takes_terms else "search")
        if glossary is not None and terms != "search" and not self.takes_terms:
            raise UsageError(
                f"terms = {terms}: the model was not trained with data.terms, so that it reads none; use search"
            )
        bound = copy(self)
        bound._finder = None
        if glossary is not None:
            bound._finder = TermFinder(
                replace(glossary, kept_forms=self.kept_forms),
                self.src_tokenizer,
                self.tgt_tokenizer,
                self.max_len // 2,
                has_spaces=bool(joiner(self.tgt_lang)),
                binds=terms != "source",
                marks=terms != "search",
            )
        return bound

    def with_memory(self, memory: Memory | None, least: float = LEAST) -> "Translator":
        """Return this translator with a translation memory; None: with none.

        What is a unit's source, or that with other numbers, is not searched for: the unit's target
        is its translation. Units whose sources are near, by a score of at least `least`, are
        offered. `Prediction.memory` has both. Where the beginning of a translation is given,
        nothing is taken.
        """
        remembering = copy(self)
        remembering._memory = None
        if memory is not None:
            remembering._memory = MemoryFinder(
                memory, self.src_tokenizer, self.src_lang, self.lengths.limit, least
            )
        return remembering

    def with_tag(self, tag: str | None) -> "Translator":
        """Return this translator as it translates text like that with a tag in training; None: like
        that without.

        Raises UsageError for a tag that the model has not learned.
        """
        if tag is not None and tag not in self.marks.tags:
            known = ", ".join(self.marks.tags) or "none"
            raise UsageError(
                f"the model knows no tag {tag!r} (it knows: {known}); leave it out, or name one that it knows"
            )
        tagged = copy(self)
        tagged.tag = tag
        return tagged

    def toward(self, to: str | None, source: str | None = None) -> "Translator":
        """Return this translator as it translates into one of its languages; None: as it is.

        Where it does so from several, `source` says from which.

        Raises UsageError for a direction that the model does not know.
        """
        if to is None:
            return self
        known = self.directions or ((self.src_lang, self.tgt_lang),)
        turned = copy(self)
        turned.src_lang, turned.tgt_lang = choose_pair(known, to, source)
        turned.directions = ()
        if self.look_inside is not None:
            turned.look_inside = partial(self.look_inside, to=turned.tgt_lang)
        return turned

    @property
    def utilities(self) -> Mapping[str, Utility]:
        """Return what minimum Bayes risk can compare translations by."""
        if self._utilities is None and self._utilities_of is not None:
            return self._utilities_of(self.tgt_lang)
        return self._utilities or {}

    @property
    def row_marks(self) -> tuple[int, ...]:
        """Return the ids of the marks that stand before each row.

        Raises UsageError where it is not said into which language to translate.
        """
        if self.directions:
            known = ", ".join(dict.fromkeys(tgt for _, tgt in self.directions))
            raise UsageError(f"to: the model writes {known}; say which")
        pieces = []
        if self.tgt_lang in self.marks.languages:
            pieces.append(language_mark(self.tgt_lang))
        if self.tag is not None:
            pieces.append(tag_mark(self.tag))
        return tuple(self.src_tokenizer.mark_id(piece) for piece in pieces)

    def row_of(self, ids: Iterable[int]) -> SourceRow:
        """Return a row of source ids, eos at their end, with the marks before it."""
        return SourceRow(tuple(ids), marks=self.row_marks)

    def ensemble(self, *others: "Translator") -> "Translator":
        """Return this model and others as one, which takes the mean of their probabilities.

        The recipe's settings are this model's. Engines search if every model has one. Raises
        UsageError where a model has other languages or tokenizers than this one.
        """
        for number, other in enumerate(others, start=2):
            if not isinstance(other, Translator):
                raise UsageError(
                    f"model {number} of the ensemble is a {type(other).__name__}, not a Translator"
                )
            if reason := self.difference(other):
                raise UsageError(f"model {number} of the ensemble: {reason}")
        models = (self, *others)
        together = copy(self)
        together.look_inside = None
        together.max_len = min(model.max_len for model in models)
        together.takes_terms = all(model.takes_terms for model in models)
        together.takes_match = all(model.takes_match for model in models)
        known = [set(model.kept_forms) for model in models]
        together.kept_forms = tuple(sorted(set.intersection(*known)))
        for model in others:
            together.lengths = together.lengths.within(model.lengths)
        members = tuple(member for model in models for member in model._rows.members)
        together._rows = replace(self._rows, members=members, max_len=together.max_len)
        return together

    def difference(self, other: "Translator") -> str:
        """Say why another model cannot translate together with this one; empty where it can."""
        needs = "the models of an ensemble need the same"
        pair = f"{self.src_lang} to {self.tgt_lang}"
        other_pair = f"{other.src_lang} to {other.tgt_lang}"
        if pair != other_pair:
            return f"it translates {other_pair}, not {pair}; {needs} languages"
        if self.src_tokenizer.sha256 != other.src_tokenizer.sha256:
            return f"its source tokenizer is another; {needs} one"
        if self.tgt_tokenizer.sha256 != other.tgt_tokenizer.sha256:
            return f"its target tokenizer is another; {needs} one"
        return ""

    def translate(
        self,
        texts: str | Iterable[str],
        settings: DecodingSettings | None = None,
        *,
        to: str | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """Translate one text or several: one prediction for each, in the same order.

        A model of several directions is told into which language (`to`). `options` are what
        `DecodingSettings` takes, by name, and change `settings`. A text longer than the model has
        learned from is translated in segments that end where sentences end. Raises UsageError for
        impossible settings, DivergedError for a model whose output is not a number,
        OutOfMemoryError where a single row does not fit into memory.
        """
        if to is not None:
            return self.toward(to).translate(texts, settings, **options)
        resolved = self._resolve(_requested(settings, options))
        return self._translate(
            [texts] if isinstance(texts, str) else list(texts), resolved
        )

    def plan(
        self,
        texts: Sequence[str],
        settings: DecodingSettings | None = None,
        **options: Any,
    ) -> Planned:
        """Return the rows that `translate` searches for these texts, with their settings.

        What is found for each of them, here by `find` or elsewhere for its `sentence`, becomes the
        translations in `assemble`. Raises UsageError for impossible settings.
        """
        return self._planned(texts, self._resolve(_requested(settings, options)))

    def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        settings: DecodingSettings | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """Read given translations of texts, by whomever, as if they were the model's own: their
        probabilities, and with `doubts` or `alignments` what is suspected of each.

        `text` is the translation in the form that the model would have written. Raises UsageError
        where there is not one translation for each text, and for settings of a search; else as
        `translate`.
        """
        requested = _requested(settings, options)
        is_search = requested.n_best > 1 or requested.prefix or requested.exhaustive
        if requested.sampling or is_search or requested.coverage_penalty:
            raise UsageError(
                "given translations are read, not searched for; leave out what a search needs"
            )
        resolved = self._resolve(requested)
        planned = self._planned(texts, resolved, takes=False)
        return list(score_translations(self, planned, translations))

    def evidence(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[Evidence]:
        """Return what the model knows of rows of source ids and targets, eos at the end of both."""
        settings = self._resolve(USUAL)
        rows = [(self.row_of(src), tuple(tgt)) for src, tgt in pairs]
        read = read_pairs(self, rows)
        ranked: dict[SourceRow, list[Hypothesis]] = {}
        for (row, _), hypothesis in read.items():
            ranked.setdefault(row, []).append(hypothesis)
        support = self._rows.support(ranked, settings)
        found: dict[tuple[int, ...], Floats] = {}
        tokenizers = self.src_tokenizer, self.tgt_tokenizer
        for row, hypotheses in ranked.items():
            for hypothesis, of_tokens in zip(hypotheses, support[row], strict=True):
                found[(*row.ids, *hypothesis.ids)] = of_tokens
        return [
            Evidence.of(
                tokenizers,
                row.ids,
                ids,
                read[row, ids].token_log_probs,
                found[(*row.ids, *read[row, ids].ids)],
            )
            for row, ids in rows
        ]

    def find(self, planned: Planned) -> dict[SourceRow, list[Hypothesis]]:
        """Search for planned rows: the hypotheses of each, best first, or all of its samples.

        Raises DivergedError and OutOfMemoryError as `translate`.
        """
        found = self._rows.find(planned.rows, planned.settings)
        again: dict[SourceRow, SourceRow] = {}
        while again := self.bound(found, planned.settings, again):
            more = self._rows.find(list(again.values()), planned.settings)
            found |= {row: more[bound] for row, bound in again.items()}
        return found

    def bound(
        self,
        found: Mapping[SourceRow, list[Hypothesis]],
        settings: Resolved,
        before: Mapping[SourceRow, SourceRow] | None = None,
    ) -> dict[SourceRow, SourceRow]:
        """Return the rows whose translations lack terms of the glossary, each as it is to be
        searched again: bound by those that it lacks, so that the beam is divided as little as can
        be. What was bound so `before` and lacks a term still is bound by all of its terms.
        """
        if before:
            return self._bound_by_all(found, before)
        lacking = {
            row: hypotheses[:1]
            for row, hypotheses in found.items()
            if self._lacks_terms(row, hypotheses)
        }
        if not self.can_align:
            return {row: row.bound() for row in lacking}
        support = self._rows.support(lacking, settings)
        bound = {}
        for row, (best,) in lacking.items():
            assert row.found is not None
            rivals = row.found.rivals(best.ids, support[row][0])
            bound[row] = row.bound(rivals, row.found.lacking(self.text_of(best)))
        return bound

    def _bound_by_all(
        self,
        found: Mapping[SourceRow, list[Hypothesis]],
        before: Mapping[SourceRow, SourceRow],
    ) -> dict[SourceRow, SourceRow]:
        """Return those rows bound by all of their terms that lack some, though they were bound."""
        bound = {}
        for row, was in before.items():
            by_all = row.bound(was.avoided)
            if by_all != was and self._lacks_terms(row, found[row]):
                bound[row] = by_all
        return bound

    def _lacks_terms(self, row: SourceRow, hypotheses: Sequence[Hypothesis]) -> bool:
        terms = row.found
        if terms is None or not terms.finder.binds:
            return False
        return terms.lacks(self.text_of(hypotheses[0]))

    def sentence(self, row: SourceRow, settings: Resolved, number: int = 0) -> Sentence:
        """Return a planned row with its settings, in the form that a running search takes.

        Raises UsageError for exhaustive search, which never runs beside others.
        """
        if settings.requested.exhaustive is not None:
            raise UsageError(
                "exhaustive: it takes no part in a running search; leave it out"
            )
        return self._rows.sentence(number, row, settings)

    def assemble(
        self, planned: Planned, found: Mapping[SourceRow, list[Hypothesis]]
    ) -> list[Prediction]:
        """Return the translations of planned texts, in their order, from what their rows became."""
        settings = planned.settings
        given = {row: [self._as_found(row)] for row in planned.given}
        hypotheses = {**self._ranked(found, settings), **given}
        support: Support | None = None
        if settings.needs_support:
            best = {row: hypotheses[row][:1] for row in [*planned.rows, *given]}
            support = self._rows.support(best, settings)
        predictions: dict[str, Prediction] = {}
        for text, plan in planned.plans.items():
            predictions[text] = self._assemble(
                text, plan, hypotheses, support, settings
            )
        return [predictions[text] for text in planned.texts]

    def translate_stream(
        self,
        texts: Iterable[str],
        settings: DecodingSettings | None = None,
        *,
        chunk: int = 1024,
        to: str | None = None,
        **options: Any,
    ) -> Iterator[Prediction]:
        """Translate any number of texts as `translate` does, in the memory of `chunk` texts."""
        if to is not None:
            turned = self.toward(to)
            return turned.translate_stream(texts, settings, chunk=chunk, **options)
        if chunk < 1:
            raise UsageError(f"chunk = {chunk}: it must be at least 1")
        resolved = self._resolve(_requested(settings, options))
        rest = iter(texts)
        chunks = iter(lambda: list(islice(rest, chunk)), [])
        return chain.from_iterable(self._translate(part, resolved) for part in chunks)

    def stream(
        self, text: str, settings: DecodingSettings | None = None, **options: Any
    ) -> Iterator[str]:
        """Translate one text and yield it piece by piece as it is written.

        The pieces joined are what `translate` gives, except where bytes are no valid UTF-8: here
        each is shown by itself. The search is greedy; with a temperature a sample is drawn. What is
        impossible is refused at the call, before the first piece.

        A stream carries no marks. Where a sentence is longer than the model reads, its end is not
        translated; where the translation comes to no end before its limit, the pieces just stop.
        `translate` with `beam_size=1`, or the same temperature and seed, says which (`source_cut`,
        `output_limit`).
        """
        requested = _requested(settings, options)
        if requested.sampling is None and requested.beam_size is None:
            requested = replace(requested, beam_size=1)
        resolved = self._resolve(requested)
        if resolved.beams.beam_size > 1 or requested.exhaustive or requested.alignments:
            raise UsageError(
                "a stream is one hypothesis, greedy or drawn; leave out what needs more than that"
            )
        (plan,) = self._planned([text], resolved).plans.values()
        return self._pieces(plan.bound, resolved)

    def complete(
        self,
        source: str,
        prefix: str = "",
        *,
        alternatives: int = 0,
        settings: DecodingSettings | None = None,
        **options: Any,
    ) -> Completion:
        """Translate one text so that the translation begins with exactly this text.

        The prefix may end inside a word: then the next tokens are those that say the rest of its
        letters, and perhaps more. White space at its end begins the next word. Up to so many
        `alternatives` are other words that may come next, each with the translation that follows
        from it greedily. `settings` and `options` are those of `translate`, without those that
        need more than one search.

        Raises UsageError for impossible settings, else as `translate`.
        """
        if alternatives < 0:
            raise UsageError(
                f"alternatives = {alternatives}: it must be a whole number, at least 0"
            )
        requested = _requested(settings, options)
        is_more = requested.sampling or requested.exhaustive or requested.prefix
        if is_more or requested.coverage_penalty:
            raise UsageError(
                "complete goes on with a search; leave out samples, exhaustive, coverage_penalty and another prefix"
            )
        planned = self._planned([source], self._resolve(requested), takes=False)
        return Completer(self, planned).complete(prefix, alternatives)

    @cached_property
    def spellings(self) -> Spellings:
        """Return the letters of every token of the target."""
        return Spellings(self.tgt_tokenizer)

    def support(self, row: Sequence[int], hypothesis: Hypothesis) -> Floats:
        """Return how much each source token supports each token of a row's hypothesis, (T, S): what
        `alignments` are read from.
        """
        settings = self._resolve(DecodingSettings(batch_tokens=len(row)))
        source = self.row_of(row)
        (found,) = self._rows.support({source: [hypothesis]}, settings)[source]
        return found

    def source_shares(
        self, texts: Sequence[str]
    ) -> list[tuple[Hypothesis, Floats]] | None:
        """Translate texts as `translate` does; return for each of their rows what was found, and
        what each source token wrote into the logits (T, S), in nats above the mean of the
        vocabulary. None where a model has no shares.
        """
        if not self._rows.has_shares:
            return None
        planned = self.plan(texts)
        found = self._ranked(self.find(planned), planned.settings)
        best = {row: found[row][:1] for row in planned.rows}
        shares = self._rows.shares(best, planned.settings)
        return [(best[row][0], shares[row][0]) for row in planned.rows]

    def segments(self, text: str) -> tuple[str, ...]:
        """Return the parts in which `translate` translates a text, each a single line."""
        (plan,) = self._plan([text]).values()
        return plan.texts

    def rows(self, text: str) -> list[SourceRow]:
        """Return the rows in which `translate` translates a text."""
        (plan,) = self._plan([text]).values()
        return plan.rows

    def hypotheses(self, texts: Sequence[str]) -> dict[tuple[int, ...], Hypothesis]:
        """Return the best hypothesis of each row that the texts are divided into.

        The keys are the rows' source ids, eos at their end.
        """
        settings = self._resolve(DecodingSettings())
        plans = self._plan(list(texts))
        rows = chain.from_iterable(plan.rows for plan in plans.values())
        ranked = self._find(list(dict.fromkeys(rows)), settings)
        return {row.ids: hypotheses[0] for row, hypotheses in ranked.items()}

    def search(self, row: Sequence[int], beam_size: int | None = None) -> Hypothesis:
        """Return the hypothesis that `translate` finds for a row of source ids, eos at its end."""
        settings = self._resolve(DecodingSettings(beam_size, batch_tokens=len(row)))
        (ranked,) = self._find([self.row_of(row)], settings).values()
        return ranked[0]

    def _resolve(self, requested: DecodingSettings) -> Resolved:
        """Return the settings, completed for this model.

        Raises UsageError for what this model cannot do.
        """
        prefix = one_line(requested.prefix)
        members = self._rows.members
        forced = tuple(self.tgt_tokenizer.encode(prefix)) if prefix else ()
        if len(forced) >= self.max_len - 1:
            raise UsageError(
                f"prefix: it has {len(forced)} tokens, and the model writes {self.max_len - 1}; shorten it"
            )
        needs_attention = requested.alignments or requested.coverage_penalty
        if needs_attention and not self.can_align:
            raise UsageError(
                "alignments and coverage_penalty need the attention of a model, which was not given"
            )
        binds = self._finder is not None and self._finder.binds
        if binds and (requested.sampling or requested.exhaustive):
            raise UsageError(
                "a glossary is for a beam; leave it out, or samples and exhaustive"
            )
        if requested.exhaustive is not None and len(members) > 1:
            raise UsageError(
                "exhaustive is for one model; leave it out, or translate without an ensemble"
            )
        if requested.mbr is not None and _utility(requested) not in self.utilities:
            raise UsageError(
                f"utility = {_utility(requested)}: it must be one of {', '.join(self.utilities)}"
            )
        uses_shortlist = (
            self.uses_shortlist if requested.shortlist is None else requested.shortlist
        )
        if uses_shortlist and self._rows.shortlist is None:
            raise UsageError(
                "this model has no shortlist; weft quantize --shortlist learns one"
            )
        judges = requested.doubts and self.doubts.quality is not None
        return Resolved(
            requested,
            requested.beams(self.decoding),
            forced,
            uses_shortlist,
            requested.alignments or (judges and self.can_align),
        )

    def _translate(self, texts: Sequence[str], settings: Resolved) -> list[Prediction]:
        """Plan, search every different row once, and put the texts together again."""
        planned = self._planned(texts, settings)
        return self.assemble(planned, self.find(planned))

    def _planned(
        self, texts: Sequence[str], settings: Resolved, takes: bool = True
    ) -> Planned:
        """Plan each text alone: a translation depends on its own text, whatever is beside it.

        With `takes`, what the memory has is not to be searched.
        """
        different = list(dict.fromkeys(texts))
        plans = self._plan(different, settings.prefix, takes)
        return Planned(tuple(texts), plans, settings)

    def _as_found(self, row: SourceRow) -> Hypothesis:
        """Return the translation that a row has already as if it had been found, for certain."""
        assert row.given is not None
        ids = self.tgt_tokenizer.encode(one_line(row.given))[: self.max_len - 1]
        return Hypothesis(ids, 0.0, 0.0, [0.0] * (len(ids) + 1), True)

    def _with_doubts(
        self, text: str, plan: Plan, prediction: Prediction, log_probs: Sequence[float]
    ) -> Prediction:
        """Add the words of what was searched that training never had, and whether the model is less
        sure than on dev, by the log-probabilities of what no glossary demands.
        """
        searched = text if plan.memory is None else plan.searched
        unknown = self._unknown_words(text, searched, prediction.terms or ())
        mean = sum(log_probs) / len(log_probs) if log_probs else None
        unsure = self.doubts.is_unsure(mean)
        quality = None
        if self.doubts.quality is not None and not prediction.is_taken:
            quality = self.doubts.quality.of_sentence(log_probs)
            if prediction.words and quality is not None:
                quality = quality_of_all(prediction.words, quality)
                words = with_quality_of_all(prediction.words, quality)
                prediction = replace(prediction, words=words)
        return replace(
            prediction,
            unknown_words=unknown,
            unsure=unsure,
            quality=quality,
            numbers=self._numbers(text, prediction),
        )

    def _unknown_words(
        self, text: str, searched: str, terms: Sequence[TermUse]
    ) -> list[str]:
        """Return the words of what was searched that training never had, but for those whose
        translation a glossary said, and for what the model writes again as it is.
        """
        unknown = self.doubts.unknown_words(searched)
        if not unknown:
            return []
        said = [(use.start, use.end) for use in terms if use.used]
        said += places_of(text, self.kept_forms).items()
        rest = text
        for start, end in said:
            rest = rest[:start] + " " * (end - start) + rest[end:]
        own = set(self.doubts.unknown_words(rest))
        return [word for word in unknown if word in own]

    def _numbers(self, text: str, prediction: Prediction) -> Difference | None:
        """Return the numbers that differ, also from what a person once wrote; None where none does,
        or there is no translation.
        """
        if not prediction.text.strip():
            return None
        languages = self.src_lang, self.tgt_lang
        return difference(text, prediction.text, languages) or None

    def _find(
        self, rows: list[SourceRow], settings: Resolved
    ) -> Mapping[SourceRow, list[Hypothesis]]:
        """Return the hypotheses of every row, ranked."""
        return self._ranked(self._rows.find(rows, settings), settings)

    def _ranked(
        self, found: Mapping[SourceRow, list[Hypothesis]], settings: Resolved
    ) -> Mapping[SourceRow, list[Hypothesis]]:
        """Return what was found, ranked by risk or coverage where that was asked for."""
        requested = settings.requested
        if requested.mbr is not None:
            utility = self.utilities[_utility(requested)]
            return {
                row: least_risk(samples, self.text_of, utility, requested.n_best)
                for row, samples in found.items()
            }
        if requested.coverage_penalty:
            attention = self._rows.attend(found, settings)
            return {
                row: by_coverage(ranked, attention[row], requested)
                for row, ranked in found.items()
            }
        return found

    def _pieces(self, plan: Plan, settings: Resolved) -> Iterator[str]:
        """Yield the translation of a text piece by piece, with the gaps between its segments."""
        is_begun = False
        for white, row in zip(plan.before, plan.rows, strict=True):
            before = plan.gap(white, self.tgt_lang) if is_begun else plan.indent
            for piece in self._pieces_of(row, settings):
                yield before + piece
                before = ""
                is_begun = True

    def _pieces_of(self, row: SourceRow, settings: Resolved) -> Iterator[str]:
        if row.given is not None:
            return iter([row.given])
        return pieces(self._rows.tokens(row, settings), self.tgt_tokenizer)

    def _plan(
        self, texts: list[str], prefix: tuple[int, ...] = (), takes: bool = False
    ) -> dict[str, Plan]:
        """Return the rows of texts, with the terms of the glossary that are found in them, and
        what is taken from the memory.
        """

        def plan_rest(texts: list[str]) -> dict[str, Plan]:
            tokenizer = self.src_tokenizer
            return plan_rows(texts, tokenizer, self.lengths, self.src_lang, prefix)

        if self._memory is None or prefix or not takes:
            plans = plan_rest(texts)
        else:
            plans = self._memory.plan(texts, plan_rest)
        if marks := self.row_marks:
            for plan in plans.values():
                plan.rows[:] = [replace(row, marks=marks) for row in plan.rows]
        if self._finder is None and not self._reads_matches:
            return plans
        return {
            text: replace(plan, rows=list(map(self._helped, plan.rows, plan.texts)))
            for text, plan in plans.items()
        }

    @property
    def _reads_matches(self) -> bool:
        """Return whether the model reads what the memory has for a row."""
        return self.takes_match and self._memory is not None

    def _helped(self, row: SourceRow, line: str) -> SourceRow:
        """Return the row of a line with the terms that are found in it, and with those hints that
        the model has learned to read.
        """
        if self._finder is not None:
            row = replace(row, found=self._finder.find(row.ids, line))
        if row.given is not None:
            return row
        terms: tuple[TermHint, ...] = ()
        if row.found is not None and row.found.finder.marks:
            terms = row.found.hints
        match: tuple[int, ...] = ()
        if self._reads_matches and self._memory is not None:
            match = self._memory.hint(line)
        room = self.lengths.limit - len(row.ids)
        return replace(row, hints=Hints(terms, match).within(room))

    def _assemble(
        self,
        text: str,
        plan: Plan,
        hypotheses: Mapping[SourceRow, list[Hypothesis]],
        support: Support | None,
        settings: Resolved,
    ) -> Prediction:
        """Return the translation of one text: its segments joined, and the marks on them."""
        segments = [hypotheses[row] for row in plan.rows]
        if not segments:
            nothing = Prediction("", None, 0, [], [])
            if self._finder is not None:
                nothing = replace(nothing, terms=[])
            if support is not None:
                nothing = replace(nothing, alignments=[], words=[])
            if plan.memory is not None:
                nothing = replace(nothing, memory=list(plan.memory))
            return nothing
        texts = list(map(self._texts_of, plan.rows, segments))
        count = max(map(len, segments))
        n_best = [self._join(plan, segments, texts, j) for j in range(count)]
        best = [segment[0] for segment in segments]
        tokens = [self.tgt_tokenizer.pieces(written(hypothesis)) for hypothesis in best]
        log_probs = [hypothesis.token_log_probs for hypothesis in best]
        alignments = None
        uses = self._term_uses(text, plan, best, support)
        words: WordReporter | None = None
        if support is not None:
            none: list[list[TermUse]] = [[] for _ in plan.rows]
            words = self._words(text, n_best[0].text, plan, best, support, uses or none)
            if settings.requested.alignments:
                alignments = self._links(plan.rows, tokens, best, support)
        judges = words is not None and words.quality is not None
        prediction = Prediction(
            text=n_best[0].text,
            score=n_best[0].score,
            segments=len(segments),
            n_best=n_best,
            token_log_probs=list(chain.from_iterable(log_probs)),
            tokens=list(chain.from_iterable(tokens)),
            source_cut=plan.cut,
            output_limit=self._output_limit(plan.rows, best, settings),
            empty=not all(ranked[0].strip() for ranked in texts),
            repetition=any(map(_repeats, plan.rows, best)),
            short=any(map(self._is_too_short, plan.rows, best)),
            alignments=alignments,
            words=words.reports if words else None,
            omitted=words.omitted if words and judges else None,
            doubled=words.doubled if words and judges else None,
            terms=None if uses is None else list(chain.from_iterable(uses)),
            memory=None if plan.memory is None else list(plan.memory),
        )
        free = words.free_log_probs if words else prediction.token_log_probs
        return self._with_doubts(text, plan, prediction, free)

    def _term_uses(
        self,
        text: str,
        plan: Plan,
        best: Sequence[Hypothesis],
        support: Support | None,
    ) -> list[list[TermUse]] | None:
        """Return what became of the glossary's terms in each row of a text; None without a
        glossary. Places are those in the text, and in the row's own translation.
        """
        if self._finder is None:
            return None
        every: list[list[TermUse]] = []
        for row, start, hypothesis in zip(plan.rows, plan.starts, best, strict=True):
            uses: list[TermUse] = []
            every.append(uses)
            if row.found is None:
                continue
            found = support[row][0] if support is not None else None
            (translation,) = self._texts_of(row, [hypothesis])
            place = start
            is_given = row.given is not None
            for use in row.found.uses(translation, hypothesis.ids, found, is_given):
                begin = text.find(use.source, place)
                place = begin if begin >= 0 else place
                end = place + len(use.source)
                uses.append(replace(use, start=place, end=end))
                place = end
        return every

    def _output_limit(
        self, rows: list[SourceRow], hypotheses: list[Hypothesis], settings: Resolved
    ) -> OutputLimit | None:
        """Return the limit at which the first of the hypotheses was cut; None where all ended."""
        for row, hypothesis in zip(rows, hypotheses, strict=True):
            if not hypothesis.finished:
                return self._rows.name_limit(row, settings)
        return None

    def _links(
        self,
        rows: list[SourceRow],
        tokens: list[list[str]],
        best: Sequence[Hypothesis],
        support: Support,
    ) -> list[Link]:
        """Return the links of all segments; `tokens` are the target's."""
        joined: list[Link] = []
        before = (0, 0)
        for row, tgt, hypothesis in zip(rows, tokens, best, strict=True):
            src = self.src_tokenizer.pieces(row.ids)
            joined += links(support[row][0], tgt, src, hypothesis.finished, before)
            before = (before[0] + len(tgt), before[1] + len(src))
        return joined

    def _words(
        self,
        text: str,
        translation: str,
        plan: Plan,
        best: Sequence[Hypothesis],
        support: Support,
        uses: Sequence[Sequence[TermUse]],
    ) -> WordReporter:
        """Report the words of the translation of a text, in each of whose rows some terms stand at
        their places in the row's own translation.
        """
        reporter = WordReporter(
            self.src_tokenizer,
            self.tgt_tokenizer,
            text,
            translation,
            self.doubts.quality,
        )
        place = 0
        rows = zip(plan.rows, plan.texts, plan.starts, best, uses, strict=True)
        for row, line, start, hypothesis, terms in rows:
            (own,) = self._texts_of(row, [hypothesis])
            place = translation.find(own, place)
            segment = Segment(
                line,
                start,
                row.ids,
                written(hypothesis),
                hypothesis.token_log_probs,
                support[row][0],
                is_given=row.given is not None,
                terms=[_behind(use, place) for use in terms if use.used],
            )
            reporter.add(segment)
            place += len(own)
        return reporter

    def _is_too_short(self, row: SourceRow, hypothesis: Hypothesis) -> bool:
        """Return whether a translation has far fewer ids for its source than pairs in training."""
        if row.given is not None:
            return False
        num_src = len(row.ids) - 1
        least = FAR_BELOW * self.least_ratio * num_src
        return num_src >= LONG_SOURCE and len(hypothesis.ids) < least

    def _join(
        self,
        plan: Plan,
        segments: Sequence[Sequence[Hypothesis]],
        texts: Sequence[Sequence[str]],
        place: int,
    ) -> Alternative:
        """Join the hypothesis at a place of each segment, its last where there are fewer."""
        places = [min(place, len(segment) - 1) for segment in segments]
        chosen = list(map(getitem, segments, places))
        joined = plan.join(list(map(getitem, texts, places)), self.tgt_lang)
        score = sum(hypothesis.score for hypothesis in chosen) / len(chosen)
        is_cut = plan.cut or not all(hypothesis.finished for hypothesis in chosen)
        return Alternative(joined, score, is_cut)

    def _texts_of(self, row: SourceRow, found: Sequence[Hypothesis]) -> list[str]:
        """Return the translations of a row: what was found, or what it is given, to the letter."""
        if row.given is not None:
            return [row.given]
        return list(map(self.text_of, found))

    def text_of(self, hypothesis: Hypothesis) -> str:
        """Return a hypothesis of a row as text."""
        return one_line(self.tgt_tokenizer.decode(hypothesis.ids))


def _behind(use: TermUse, place: int) -> TermUse:
    """Return a term at its place in a translation that has some characters before it."""
    start, end = use.place
    return replace(use, place=(place + start, place + end))


def _repeats(row: SourceRow, hypothesis: Hypothesis) -> bool:
    """Return whether a translation that was searched says the same again and again."""
    return row.given is None and repeats(hypothesis.ids)


def _requested(
    settings: DecodingSettings | None, options: Mapping[str, Any]
) -> DecodingSettings:
    """Return the settings with what the options change."""
    if not isinstance(settings, DecodingSettings | None):
        raise UsageError(
            f"settings are DecodingSettings, not a {type(settings).__name__}; options are given by name"
        )
    settings = settings or USUAL
    return replace(settings, **options) if options else settings


def _utility(requested: DecodingSettings) -> str:
    return requested.utility or "chrf"
