"""Translations that begin as a person wrote them, and other words that may come next.

A text that is read in several rows has its beginning divided among them: what is the translation of
a row, or has as many sentences as it, belongs to the row; the last part is gone on with.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from weft.data.scripts import count_scripts, is_spaceless
from weft.data.segment import split_sentences
from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.decoding.decoder import Engine, Hypothesis
from weft.decoding.sampling import Sampling
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, SampleSettings, Sentence
from weft.errors import OutOfMemoryError, UsageError
from weft.predict.prediction import Prediction
from weft.predict.rows import Planned, Resolved
from weft.predict.segments import Plan, SourceRow
from weft.predict.settings import BANNED
from weft.predict.stems import LetterStem, Spellings
from weft.predict.text import LINE_BREAKS

# letters and digits, also around an apostrophe or hyphen; or marks
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]+")
_LEAST_CANDIDATES = 8


@dataclass(frozen=True)
class NextWord:
    """Another word that may come next: its text, its probability, and the translation with it.

    A word that the beginning has half is whole here. `probability` is that of what is new of it,
    after the beginning.
    """

    text: str
    probability: float
    translation: str


@dataclass(frozen=True)
class Completion:
    """A translation that begins with a given text, and other words that may come after it.

    `text` begins with the given text, character for character; `prediction` has everything else
    that is known of it. The most probable of the `alternatives` is the first.
    """

    text: str
    prediction: Prediction
    alternatives: list[NextWord]

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain dictionary."""
        alternatives = [asdict(word) for word in self.alternatives]
        return self.prediction.to_json() | {
            "text": self.text,
            "alternatives": alternatives,
        }


@runtime_checkable
class Translating(Protocol):
    """The part of a translator that goes on with texts."""

    src_lang: str
    tgt_lang: str
    tgt_tokenizer: Tokenizer
    max_len: int

    @property
    def searcher(self) -> Engine: ...

    @property
    def spellings(self) -> Spellings: ...

    def find(self, planned: Planned, /) -> Mapping[SourceRow, list[Hypothesis]]: ...

    def bound(
        self,
        found: Mapping[SourceRow, list[Hypothesis]],
        settings: Resolved,
        before: Mapping[SourceRow, SourceRow] | None = None,
        /,
    ) -> Mapping[SourceRow, SourceRow]: ...

    def sentence(
        self, row: SourceRow, settings: Resolved, number: int = 0, /
    ) -> Sentence: ...

    def assemble(
        self, planned: Planned, found: Mapping[SourceRow, list[Hypothesis]], /
    ) -> list[Prediction]: ...

    def text_of(self, hypothesis: Hypothesis, /) -> str: ...


@dataclass(frozen=True)
class _Begun:
    """A row that is gone on with: the ids of its whole words, and the letters after them.

    `shown` is how its translation begins, as the tokenizer knows it.
    """

    number: int
    row: SourceRow
    stem: LetterStem | None
    shown: str


class Completer:
    """Goes on with the translation of one text."""

    def __init__(self, translator: Translating, planned: Planned) -> None:
        """Set the text, which is planned alone."""
        self.translator = translator
        self.tokenizer = translator.tgt_tokenizer
        self.language = translator.tgt_lang
        self.planned = planned
        (self.source,) = planned.texts
        self.plan = planned.plans[self.source]
        self.settings: Resolved = planned.settings
        self.found: dict[SourceRow, list[Hypothesis]] = {}

    def complete(self, prefix: str, alternatives: int) -> Completion:
        """Return the translation that begins with the prefix, and so many other next words."""
        if not self.plan.rows:
            (nothing,) = self.translator.assemble(self.planned, {})
            return Completion(prefix, replace(nothing, text=prefix), [])
        if len(self.plan.rows) > 1:
            self.found = dict(self.translator.find(self.planned))
        begun = self._divide(prefix)
        main = self._sentence(0, begun, begun.row)
        candidates: list[int] = []
        if alternatives:
            candidates = self._candidates(begun, alternatives)
        # one is nearly always the translation's own, most often but not always the first
        first = candidates[: alternatives + 1]
        best, *others = self._search([main, *self._branching(main, first)])
        as_sentence = partial(self._sentence, 0, begun)
        self.found |= self._with_terms({begun.row: best}, as_sentence)
        best = self.found[begun.row]
        others = self._branches_with_terms(begun, others)
        word = self._next_word(begun, best[0])
        words = self._other_words([word.text], begun, prefix, others)
        if 2 * len(words) < alternatives:
            rest = candidates[alternatives + 1 :]
            more = self._search(self._branching(main, rest))
            more = self._branches_with_terms(begun, more)
            known = [word.text, *(other.text for other in words)]
            words += self._other_words(known, begun, prefix, more)
        words.sort(key=lambda other: -other.probability)
        text = self._shown(begun, prefix, best[0])
        return Completion(text, self._prediction(text), words[:alternatives])

    def _divide(self, prefix: str) -> _Begun:
        """Find the row that the prefix ends in; those before it become what it says of them."""
        indent = self.plan.indent
        rest = prefix
        if indent and prefix.startswith(indent):
            rest = prefix[len(indent) :]
        rest = rest.lstrip()
        rows = self.plan.rows
        for number, row in enumerate(rows[:-1]):
            shown = self._text_of(self.found[row][0])
            gap = self._gap(number + 1) if shown else ""
            if (shown + gap).startswith(rest) and rest != shown + gap:
                return self._begin(number, rest)
            if rest.startswith(shown + gap):
                rest = rest[len(shown + gap) :]
                continue
            own = self._sentences_of(number, rest)
            if not own:
                return self._begin(number, rest)
            self._say(number, own.rstrip())
            rest = rest[len(own) :]
        return self._begin(len(rows) - 1, rest)

    def _sentences_of(self, number: int, rest: str) -> str:
        """Return as many sentences as a row has, with the white space after them.

        Nothing where no more than these are there: then the text ends in this row.
        """
        line = self.plan.texts[number]
        count = len(split_sentences(line, self.translator.src_lang))
        sentences = split_sentences(rest, self.language)
        if len(sentences) <= count:
            return ""
        return "".join(sentences[:count])

    def _gap(self, number: int) -> str:
        return self.plan.gap(self.plan.before[number], self.language)

    def _say(self, number: int, text: str) -> None:
        """Let a row become this text, from beginning to end."""
        ids = self.tokenizer.encode(text)
        row = replace(self.plan.rows[number], prefix=tuple(ids))
        self._refuse_long(len(ids))
        sentence = self.translator.sentence(row, self.settings)
        whole = replace(
            sentence, prefix=[*ids, EOS_ID], max_len=len(ids) + 1, terms=None
        )
        self._replace(number, row)
        self.found[row] = self._search([whole])[0]

    def _begin(self, number: int, shown: str) -> _Begun:
        """Let a row begin with this text."""
        forced: list[int] = []
        letters = b""
        if shown:
            forced, letters = self.tokenizer.encode_begun(shown)
        self._refuse_long(len(forced) + len(letters))
        stem = None
        if letters:
            stem = LetterStem(letters, self.translator.spellings)
        row = replace(self.plan.rows[number], prefix=tuple(forced))
        self._replace(number, row)
        normal = self.tokenizer.normalize(shown) if shown else ""
        return _Begun(number, row, stem, normal)

    def _replace(self, number: int, row: SourceRow) -> None:
        rows = list(self.plan.rows)
        rows[number] = row
        self.plan = replace(self.plan, rows=rows)

    def _refuse_long(self, num_tokens: int) -> None:
        most = self.translator.max_len - 2
        if num_tokens > most:
            raise UsageError(
                f"prefix: it has about {num_tokens} tokens, and the model writes {most} in all; shorten it"
            )

    def _branches_with_terms(
        self, begun: _Begun, found: list[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Search again for branches that lack terms, each with its first token as prefix."""
        if begun.row.found is None:
            return found
        num_begun = len(begun.row.prefix)
        branches: dict[SourceRow, list[Hypothesis]] = {}
        for branch in chain.from_iterable(found):
            prefix = tuple(branch.ids[: num_begun + 1])
            branches[replace(begun.row, prefix=prefix)] = [branch]
        bound = self._with_terms(branches, partial(self._branch, begun))
        return [best[:1] for best in bound.values()]

    def _with_terms(
        self,
        found: Mapping[SourceRow, list[Hypothesis]],
        as_sentence: Callable[[SourceRow], Sentence],
    ) -> dict[SourceRow, list[Hypothesis]]:
        """Search again for what lacks terms of the glossary, as `Translator.find` does."""
        found = dict(found)
        again: Mapping[SourceRow, SourceRow] = {}
        while again := self.translator.bound(found, self.settings, again):
            more = self._search(list(map(as_sentence, again.values())))
            found |= zip(again, more, strict=True)
        return found

    def _branch(self, begun: _Begun, row: SourceRow) -> Sentence:
        """Return the search for a row that goes on with a token behind what is begun."""
        sentence = self._sentence(0, begun, row)
        stem = begun.stem and begun.stem.behind(row.prefix[-1])
        return replace(sentence, stem=stem)

    def _sentence(self, number: int, begun: _Begun, row: SourceRow) -> Sentence:
        """Return a row in the form of a search; its limit has room for what is begun."""
        sentence = self.translator.sentence(row, self.settings, number)
        if begun.stem is None:
            return sentence
        room = self.translator.max_len - 1
        max_len = min(room, sentence.max_len + len(begun.stem.letters))
        allowed = sentence.allowed
        if len(allowed):
            allowed = sorted({*map(int, allowed), *begun.stem.possible})
        return replace(sentence, max_len=max_len, allowed=allowed, stem=begun.stem)

    def _candidates(self, begun: _Begun, count: int) -> list[int]:
        """List the most probable tokens after the prefix: a beam that ends there keeps them.

        None writes a word that must not be used.
        """
        size = max(_LEAST_CANDIDATES, 2 * count + 2)
        beams = BeamSettings(BOS_ID, EOS_ID, size, 0.0, size, BANNED)
        bound = self._sentence(0, begun, begun.row.bound())
        only = replace(bound, max_len=len(bound.prefix) + 1, settings=beams, terms=None)
        (found,) = self._search([only])
        return [other.ids[-1] for other in found if not other.finished]

    def _branching(self, main: Sentence, tokens: Sequence[int]) -> list[Sentence]:
        """Return the sentence with each of these tokens after its prefix, then greedily; none for
        no tokens.
        """
        if not tokens:
            return []
        beams = self.settings.beams
        count = len(tokens)
        greedy = SampleSettings(
            BOS_ID,
            EOS_ID,
            count,
            beams.length_penalty,
            count,
            BANNED,
            beams.no_repeat_ngrams,
            Sampling(temperature=0.0),
        )
        max_len = min(main.max_len + 1, self.translator.max_len - 1)
        allowed = main.allowed
        if len(allowed):
            allowed = sorted({*map(int, allowed), *tokens})
        branching = replace(main, branches=tokens, max_len=max_len)
        return [replace(branching, settings=greedy, allowed=allowed)]

    def _search(self, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, as one batch."""
        numbered = [replace(sentence, number=i) for i, sentence in enumerate(sentences)]
        engine = self.translator.searcher
        budget = self.settings.requested.batch_tokens
        try:
            found = search_all(
                engine, numbered, self.settings.beams, batch_tokens=budget
            )
        except MemoryError:
            raise OutOfMemoryError(
                f"no memory to go on with {len(self.plan.rows[0].ids)} source tokens; use shorter texts"
            ) from None
        return [found[i] for i in range(len(sentences))]

    def _other_words(
        self,
        known: Sequence[str],
        begun: _Begun,
        prefix: str,
        found: Sequence[list[Hypothesis]],
    ) -> list[NextWord]:
        """Return the next words of these hypotheses, each once and none that is known."""
        words: list[NextWord] = []
        seen = set(known)
        for hypothesis in chain.from_iterable(found):
            word = self._next_word(begun, hypothesis)
            if word.text and word.text not in seen:
                seen.add(word.text)
                shown = self._shown(begun, prefix, hypothesis)
                words.append(replace(word, translation=shown))
        return words

    def _next_word(self, begun: _Begun, hypothesis: Hypothesis) -> NextWord:
        """Return the word after the beginning, and its probability; its translation is open."""
        spelled = self._spelled(hypothesis.ids)
        text = b"".join(spelled).decode("utf-8", "replace")
        num_begun = len(begun.row.prefix)
        first = b"".join(spelled[: num_begun + 1]).decode("utf-8", "ignore")
        start, end = _word_after(text, len(begun.shown), len(first))
        if start == end:
            return NextWord("", 0.0, "")
        size = len(text[:end].encode())
        total = 0.0
        said = 0
        for place, letters in enumerate(spelled):
            if place >= num_begun:
                if said >= size:
                    break
                total += hypothesis.token_log_probs[place]
            said += len(letters)
        return NextWord(text[start:end], math.exp(total), "")

    def _spelled(self, ids: Sequence[int]) -> list[bytes]:
        """Return the bytes of each token; those joined are what is shown."""
        return [
            self.tokenizer.spell([token], begins=place == 0)
            for place, token in enumerate(ids)
        ]

    def _shown(self, begun: _Begun, prefix: str, hypothesis: Hypothesis) -> str:
        """Return the whole translation: the prefix as it was given, and what comes after it."""
        text = b"".join(self._spelled(hypothesis.ids))
        letters = begun.shown.encode()
        after = ""
        if text.startswith(letters):
            after = text[len(letters) :].decode("utf-8", "replace")
        if not prefix:
            after = self.plan.indent + after.lstrip()
        elif prefix[-1].isspace() and not begun.shown[-1:].isspace():
            after = (
                after.lstrip()
            )  # the space is there, or the prefix ends between rows
        shown = prefix + LINE_BREAKS.sub(" ", after).rstrip()
        return shown + self._rows_after(begun.number, shown)

    def _rows_after(self, number: int, shown: str) -> str:
        """Return the translations of the rows behind a row, with the gaps between them."""
        after = ""
        for later in range(number + 1, len(self.plan.rows)):
            text = self._text_of(self.found[self.plan.rows[later]][0])
            if text and (shown.strip() or after):
                after += self._gap(later)
            after += text
        return after

    def _prediction(self, text: str) -> Prediction:
        """Return the translation of all rows; its text is what is shown."""
        plans: dict[str, Plan] = {self.source: self.plan}
        planned = replace(self.planned, plans=plans)
        (prediction,) = self.translator.assemble(planned, self.found)
        first = replace(prediction.n_best[0], text=text)
        words = prediction.words
        if prediction.text != text:
            words = None  # they are found in the text that the tokenizer knows
        return replace(
            prediction, text=text, n_best=[first, *prediction.n_best[1:]], words=words
        )

    def _text_of(self, hypothesis: Hypothesis) -> str:
        return self.translator.text_of(hypothesis)


def _word_after(text: str, place: int, least_end: int) -> tuple[int, int]:
    """Return where the word that stands at a place, or after it, begins and ends.

    It has all letters up to `least_end`, which the first new token writes: without it a language
    without spaces would have the whole sentence as a word.
    """
    for match in _WORD.finditer(text):
        if match.end() <= place:
            continue
        start = match.start()
        if _is_spaceless(match.group()):
            start = max(start, place)
            return start, min(match.end(), max(least_end, start + 1))
        return start, match.end()
    return place, place


def _is_spaceless(word: str) -> bool:
    """Return whether the word is of a script that has no spaces between words."""
    return is_spaceless(count_scripts([word]))
