"""The words of a translation: where each stands, how probable it was, and the source words that it
comes from.

Places are counted in characters (Unicode code points) of the source as the user gave it, and of the
whole translation. White space changes on the way from one to the other, other characters seldom:
words are found by counting the solid ones, which are those that are not white space.

Shapes: T target tokens, S source tokens, end symbols included.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, zip_longest
from operator import not_
from typing import Any

from weft.data.places import starts_after
from weft.data.tokenizer import Tokenizer
from weft.predict.alignment import Floats, word_pairs
from weft.predict.evidence import Evidence, without_end
from weft.predict.quality import DOUBTFUL, Quality
from weft.predict.terms import TermUse

_LEAST_OMITTED = 3  # words


@dataclass(frozen=True)
class SourceWord:
    """A word of the source: its number, from 0 over all segments, and its characters."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class WordReport:
    """A word of a translation, which is its characters from `start` to before `end`.

    Words are those of an alignment (`weft.predict.alignment.align_words`). `log_prob` is the sum of
    the log-probabilities of its tokens, in nats, each given all that stands before it. `sources`
    are the words that it comes from, in their order; none where no word of the source supports
    it. `quality` is the probability that it is right, as learned on dev; None where that was not.
    `term` is that of a glossary for which it stands, which is no question of quality; `looked_at`
    is then what the model has it come from, which may be elsewhere.
    """

    text: str
    start: int
    end: int
    log_prob: float
    sources: list[SourceWord]
    quality: float | None = None
    term: str = ""
    looked_at: Sequence[SourceWord] = ()

    @property
    def is_doubtful(self) -> bool:
        """Return whether it is rather wrong than right; False where that is not known."""
        return self.quality is not None and self.quality < DOUBTFUL

    @property
    def probability(self) -> float:
        """Return the probability of the whole word, given all that stands before it."""
        return math.exp(self.log_prob)

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, with `quality` where it is known, and `term`."""
        fields = {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "log_prob": self.log_prob,
            "probability": self.probability,
            "sources": [vars(word) for word in self.sources],
        }
        if self.term:
            fields["term"] = self.term
        return fields if self.quality is None else fields | {"quality": self.quality}


@dataclass(frozen=True)
class Segment:
    """A row that was translated.

    `line` is the text that it was read from, which begins in the user's at `start` or behind white
    space there. Source ids end with eos; target ids, too, where the translation came to its end.
    `support` (T, S) is how much each source token supports each target token. What `is_given`, by a
    translation memory, is not estimated. `terms` are those of a glossary that it has, with their
    places in the whole texts.
    """

    line: str
    start: int
    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    log_probs: Sequence[float]
    support: Floats
    is_given: bool = False
    terms: Sequence[TermUse] = ()

    def term_at(self, word: SourceWord) -> TermUse | None:
        """Return the term for which a word of the translation stands, if it does."""
        for use in self.terms:
            start, end = use.place
            if start < word.end and word.start < end:
                return use
        return None


@dataclass
class WordReporter:
    """Reports the words of one translation, segment after segment.

    With `quality`, it estimates that of each word, and collects the source words that may be
    `omitted`. `doubled` are phrases that a segment says twice, though its source does not.
    """

    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    text: str
    translation: str
    quality: Quality | None = None
    reports: list[WordReport] = field(default_factory=list)
    omitted: list[SourceWord] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    free_log_probs: list[float] = field(default_factory=list)
    num_src: int = 0  # words of the source before the next segment
    num_solids: int = 0  # of the translation before it

    def add(self, segment: Segment) -> None:
        """Report the words of the next segment."""
        evidence = self._evidence(segment)
        src, tgt = evidence.src_words, evidence.tgt_words
        sources = _placed(src, self.text, self._src_starts(segment), self.num_src)
        tgt_starts = self._tgt_starts(without_end(segment.tgt_ids), tgt)
        targets = _placed(tgt, self.translation, tgt_starts)
        log_probs = [0.0] * len(tgt)
        for number, log_prob in zip(evidence.tgt_of, segment.log_probs, strict=False):
            log_probs[number] += log_prob
        chosen: list[list[SourceWord]] = [[] for _ in tgt]
        for source, target in word_pairs(
            segment.support, evidence.tgt_of, evidence.src_of
        ):
            chosen[target].append(sources[source])
        qualities: Sequence[float | None] = [None] * len(tgt)
        if self.quality is not None and not segment.is_given:
            qualities = self._estimate(self.quality, evidence)
            self.omitted += _but_terms(
                [sources[place] for place in self.quality.omitted(evidence)],
                segment.terms,
            )
        terms = list(map(segment.term_at, targets))
        for word, log_prob, words, quality, term in zip(
            targets, log_probs, chosen, qualities, terms, strict=True
        ):
            report = WordReport(
                word.text, word.start, word.end, log_prob, words, quality
            )
            self.reports.append(_of_term(report, term, sources) if term else report)
        self.free_log_probs += [
            log_prob
            for number, log_prob in zip_longest(evidence.tgt_of, segment.log_probs)
            if number is None or terms[number] is None
        ]
        self.num_src += len(src)

    def _evidence(self, segment: Segment) -> Evidence:
        return Evidence.of(
            (self.src_tokenizer, self.tgt_tokenizer),
            segment.src_ids,
            segment.tgt_ids,
            segment.log_probs,
            segment.support,
        )

    def _estimate(self, quality: Quality, evidence: Evidence) -> Sequence[float]:
        """Return the quality of each word; note what the segment may say twice."""
        if doubled := evidence.doubled():
            self.doubled.append(doubled)
        return quality.of_words(evidence)

    @cached_property
    def _of_text(self) -> list[int]:
        return _solids(self.text)

    @cached_property
    def _of_translation(self) -> list[int]:
        return _solids(self.translation)

    def _src_starts(self, segment: Segment) -> list[int]:
        """Return where in the user's text each solid character begins that the model reads, and
        where the last ends.
        """
        line = segment.line
        of_line = self._of_text if line == self.text else _solids(line)
        first = bisect_left(self._of_text, segment.start)
        of_text = self._of_text[first : first + len(of_line)]
        normal = self.src_tokenizer.normalize(line)
        if normal == line and line.isascii() and len(of_text) == len(of_line):
            return [*of_text, of_text[-1] + 1]
        begins = self.src_tokenizer.starts(line)
        last = len(of_text) - 1
        numbers = (bisect_left(of_line, begins[place]) for place in _solids(normal))
        return [*(of_text[min(number, last)] for number in numbers), of_text[-1] + 1]

    def _tgt_starts(self, ids: Sequence[int], words: Sequence[str]) -> list[int]:
        """Return where in the translation each solid character of a segment's words begins, and
        where the last ends.
        """
        shown = _solid(self.tgt_tokenizer.decode(ids))
        first = self.num_solids
        self.num_solids += len(shown)
        places = self._of_translation[first : self.num_solids]
        if not places:
            return []
        written = _solid("".join(words))
        if written == shown:
            return [*places, places[-1] + 1]
        # bytes that are no characters are shown as more or fewer marks than words have
        numbers = starts_after(shown, written)
        return [*(places[number] for number in numbers), places[-1] + 1]


def _but_terms(
    omitted: Sequence[SourceWord], terms: Sequence[TermUse]
) -> Sequence[SourceWord]:
    """Return words that may be left out, but for those of terms that are written; none where these
    leave too few.
    """
    written = [word for use in terms for word in omitted if _is_of(word, use)]
    rest = [word for word in omitted if word not in written]
    is_whole = len(rest) == len(omitted)
    return rest if is_whole or len(rest) >= _LEAST_OMITTED else []


def _is_of(word: SourceWord, term: TermUse) -> bool:
    return word.start < term.end and term.start < word.end


def _of_term(
    report: WordReport, term: TermUse, sources: Sequence[SourceWord]
) -> WordReport:
    """Return a word that a glossary demands: it comes from the term, whatever the model looked
    at.
    """
    own = [word for word in sources if _is_of(word, term)]
    return replace(
        report,
        sources=own or report.sources,
        quality=None,
        term=term.source,
        looked_at=report.sources,
    )


def quality_of_all(words: Sequence[WordReport], quality: float) -> float:
    """Return the quality of a translation by that of the words that its model chose: those that a
    glossary demands are right.
    """
    demanded = sum(word.term != "" for word in words)
    return (quality * (len(words) - demanded) + demanded) / len(words)


def with_quality_of_all(
    words: Sequence[WordReport], quality: float
) -> list[WordReport]:
    """Return words of which a single one has the quality of the whole: what tells right words from
    wrong ones by their neighbours says little where there are none.
    """
    if len(words) != 1 or words[0].quality is None:
        return list(words)
    return [replace(words[0], quality=quality)]


def spelled(tokenizer: Tokenizer, ids: Sequence[int]) -> list[bytes]:
    """Return what each id spells, as `align_words` takes it."""
    return tokenizer.spell_each(ids)


def _solids(text: str) -> list[int]:
    """Return the places of the characters that are not white space."""
    are_solid = map(not_, map(str.isspace, text))
    return list(compress(range(len(text)), are_solid))


def _solid(text: str) -> str:
    return "".join(text.split())


def _placed(
    words: Sequence[str], text: str, starts: Sequence[int], num_before: int = 0
) -> list[SourceWord]:
    """Return the words of a text with their places, numbered from `num_before` on.

    `starts` says where each solid character begins that the words spell together, and where the
    last ends. A word ends where something else begins, white space left out.
    """
    placed = []
    used = 0
    last = len(starts) - 2
    for number, word in enumerate(words, start=num_before):
        start = starts[used if used < last else last]
        used += len(word) if word.isalpha() else len(_solid(word))
        place = used - 1 if used <= last else last
        # several may begin at one character
        behind = place + 1
        while starts[behind] == starts[place]:
            behind += 1
        shown = text[start : starts[behind]].rstrip()
        placed.append(SourceWord(number, shown, start, start + len(shown)))
    return placed
