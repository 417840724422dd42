"""A translation memory in use: what is taken from it in the place of a search, and what is offered.

A text is looked up as a whole, then by its sentences.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from weft.data.hinting import LEAST_SCORE
from weft.data.memory import Match, Memory
from weft.data.segment import split_sentences
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.predict.memory_use import MemoryUse
from weft.predict.segments import Plan, SourceRow, indent, white_before
from weft.predict.text import one_line

LEAST = 0.7  # the score from which on a near match is offered
_MOST = 3  # near matches that are offered for a text, or a sentence of several


@dataclass(frozen=True)
class _Part:
    """A run of sentences of a text: where it begins, the white space before it, and the unit that
    is taken for it, if there is one.
    """

    text: str
    start: int
    before: str
    match: Match | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Return where its words begin and end in the text."""
        start = self.start + len(self.text) - len(self.text.lstrip())
        return start, self.start + len(self.text.rstrip())


@dataclass(frozen=True)
class MemoryFinder:
    """Plans texts with a memory, for a source language (BCP-47) and for rows of at most `limit`
    ids, eos among them. Near matches have a score of at least `least`.
    """

    memory: Memory
    tokenizer: Tokenizer
    language: str
    limit: int
    least: float = LEAST

    def plan(
        self, texts: Sequence[str], plan_rest: Callable[[list[str]], dict[str, Plan]]
    ) -> dict[str, Plan]:
        """Plan texts: rows that are given their translations for all that is taken, and for the
        rest of each text those of `plan_rest`.
        """
        parts = {text: self._parts(text) for text in texts}
        every = chain.from_iterable(parts.values())
        rest = dict.fromkeys(part.text for part in every if part.match is None)
        planned = plan_rest(list(rest))
        plans = {}
        for text, own in parts.items():
            plan = _joined([self._planned(part, planned) for part in own])
            uses = tuple(self._uses(text, own))
            plans[text] = replace(plan, memory=uses)
        return plans

    def hint(self, line: str) -> tuple[int, ...]:
        """Return the target ids of the unit that is nearest to a line, for a model that has learned
        to read such; none where nothing is near enough.
        """
        match = self.memory.best(line, LEAST_SCORE)
        return tuple(self.tokenizer.encode(match.target)) if match else ()

    def _parts(self, text: str) -> list[_Part]:
        """Divide a text into what is taken and the runs of sentences between."""
        whole = self._taken(text)
        if whole is not None:
            return [_Part(text, 0, "", whole)]
        sentences = split_sentences(text, self.language)
        matches = list(map(self._taken, sentences)) if len(sentences) > 1 else []
        if not any(matches):
            return [_Part(text, 0, "")]
        starts = list(accumulate(map(len, sentences), initial=0))
        parts: list[_Part] = []
        for number, match in enumerate(matches):
            before = white_before(sentences, number)
            part = _Part(sentences[number], starts[number], before, match)
            last = parts[-1] if parts else None
            if last is not None and not (last.match or match):
                parts[-1] = replace(last, text=last.text + part.text)
            else:
                parts.append(part)
        return parts

    def _taken(self, text: str) -> Match | None:
        return self.memory.exact(text) or self.memory.repaired(text)

    def _planned(self, part: _Part, planned: dict[str, Plan]) -> Plan:
        """Return the rows of a part, their places counted in the whole text."""
        if part.match is None:
            plan = planned[part.text]
        else:
            line = one_line(part.text)
            ids = self.tokenizer.encode(line)[: self.limit - 1]
            row = SourceRow((*ids, EOS_ID), given=part.match.target)
            plan = Plan([row], False, (indent(part.text),), (line,), (0,))
        if not plan.rows:
            return plan
        before = (part.before or plan.before[0], *plan.before[1:])
        starts = tuple(part.start + start for start in plan.starts)
        return replace(plan, before=before, starts=starts)

    def _uses(self, text: str, parts: Sequence[_Part]) -> Iterator[MemoryUse]:
        """Yield what is taken, and near matches of the rest: of the whole text and of each of
        several sentences.
        """
        if not any(part.match for part in parts):
            yield from self._near(_Part(text, 0, ""))
        for part in parts:
            if part.match is not None:
                use = _use(part, part.match, taken=True)
                stands = self.memory.in_files(part.match.source)
                yield replace(use, stands=tuple(stands))
                continue
            sentences = split_sentences(part.text, self.language)
            if len(sentences) == 1 and len(parts) == 1:
                return  # it is the whole text
            starts = accumulate(map(len, sentences), initial=part.start)
            for sentence, start in zip(sentences, starts, strict=False):
                yield from self._near(_Part(sentence, start, ""))

    def _near(self, part: _Part) -> Iterator[MemoryUse]:
        for match in self.memory.near(part.text, _MOST, self.least):
            yield _use(part, match, taken=False)


def _use(part: _Part, match: Match, taken: bool) -> MemoryUse:
    start, end = part.place
    return MemoryUse(
        start,
        end,
        match.source,
        match.target,
        match.score,
        match.kind,
        match.where,
        taken,
    )


def _joined(plans: Sequence[Plan]) -> Plan:
    """Join the plans of a text's parts."""
    if len(plans) == 1:
        return plans[0]
    rows = chain.from_iterable(plan.rows for plan in plans)
    before = chain.from_iterable(plan.before for plan in plans)
    texts = chain.from_iterable(plan.texts for plan in plans)
    starts = chain.from_iterable(plan.starts for plan in plans)
    return Plan(
        list(rows),
        any(plan.cut for plan in plans),
        tuple(before),
        tuple(texts),
        tuple(starts),
    )
