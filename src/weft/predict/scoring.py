"""Given translations, by whomever, read by a model as if it had written them itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from weft.config import DecodingSection
from weft.data.segment import split_sentences
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.decoder import Engine, Hypothesis, length_penalties
from weft.errors import OutOfMemoryError, UsageError
from weft.predict.batching import in_batches, in_halves
from weft.predict.forcing import forced_log_probs
from weft.predict.prediction import Prediction
from weft.predict.rows import Planned
from weft.predict.segments import Plan, SourceRow
from weft.predict.text import one_line

Pair = tuple[SourceRow, tuple[int, ...]]
"""A row, and the target ids that are read for it: with eos, unless they were cut."""

_BATCH_TOKENS = 2048


class Reads(Protocol):
    """The part of a translator that reads translations."""

    tgt_lang: str
    tgt_tokenizer: Tokenizer
    max_len: int
    decoding: DecodingSection

    @property
    def searcher(self) -> Engine: ...

    def assemble(
        self, planned: Planned, found: dict[SourceRow, list[Hypothesis]], /
    ) -> list[Prediction]: ...


def score_translations(
    translator: Reads, planned: Planned, translations: Sequence[str]
) -> Iterator[Prediction]:
    """Yield for each planned text and its translation what the model thinks of it.

    Raises UsageError where there is not one for each text, OutOfMemoryError for a single row that
    does not fit into memory.
    """
    if len(planned.texts) != len(translations):
        raise UsageError(
            f"{len(translations)} translations for {len(planned.texts)} texts; give one for each"
        )
    divided = [
        _divided(translator, planned.plans[text], translation)
        for text, translation in zip(planned.texts, translations, strict=True)
    ]
    pairs = list(chain.from_iterable(divided))
    read = read_pairs(translator, pairs)
    for text, parts in zip(planned.texts, divided, strict=True):
        found = {pair[0]: [read[pair]] for pair in parts}
        plans = {text: planned.plans[text]}
        alone = Planned((text,), plans, planned.settings)
        yield from translator.assemble(alone, found)


def read_pairs(translator: Reads, pairs: Iterable[Pair]) -> dict[Pair, Hypothesis]:
    """Return each pair's target as a hypothesis of its row."""
    read: dict[Pair, Hypothesis] = {}
    alpha = translator.decoding.length_penalty

    def force(batch: list[Pair]) -> list[list[float]]:
        sources = [row.read for row, _ in batch]
        return forced_log_probs(translator.searcher, sources, [ids for _, ids in batch])

    for batch in in_batches(dict.fromkeys(pairs), _length, _BATCH_TOKENS):
        parts = in_halves(batch, force, _too_large)
        for pair, log_probs in zip(batch, chain.from_iterable(parts), strict=True):
            read[pair] = _hypothesis(pair[1], log_probs, alpha)
    return read


def _length(pair: Pair) -> int:
    row, ids = pair
    return max(len(row.read), len(ids))


def _too_large(pair: Pair) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"no memory to read {_length(pair)} tokens at once; use shorter texts"
    )


def _hypothesis(
    ids: tuple[int, ...], log_probs: list[float], alpha: float
) -> Hypothesis:
    log_prob = sum(log_probs)
    score = log_prob / length_penalties(alpha, len(ids))[-1]
    is_ended = ids[-1] == EOS_ID
    written = ids[:-1] if is_ended else ids
    return Hypothesis(list(written), log_prob, score, log_probs, is_ended)


def _divided(translator: Reads, plan: Plan, translation: str) -> list[Pair]:
    """Divide a translation among the rows of its text: by sentences where these are as many, else
    by their share of the length.
    """
    if not plan.rows:
        return []
    parts = [one_line(translation)]
    if len(plan.rows) > 1:
        sentences = split_sentences(translation, translator.tgt_lang)
        lengths = [len(text) for text in plan.texts]
        parts = list(map(one_line, _by_length(sentences, lengths)))
    tokenizer = translator.tgt_tokenizer
    most = translator.max_len - 1
    encoded = tokenizer.encode_batch(parts)
    return [
        (row, (*ids, EOS_ID)[:most])
        for row, ids in zip(plan.rows, encoded, strict=True)
    ]


def _by_length(sentences: Sequence[str], lengths: Sequence[int]) -> list[str]:
    """Give each row the sentences whose middle lies in its part of the whole."""
    if len(sentences) == len(lengths):
        return list(sentences)
    parts = [""] * len(lengths)
    total = sum(map(len, sentences)) or 1
    scale = sum(lengths) / total
    done = 0
    number = 0
    end = lengths[0]
    for sentence in sentences:
        middle = (done + len(sentence) / 2) * scale
        while middle > end and number < len(lengths) - 1:
            number += 1
            end += lengths[number]
        parts[number] += sentence
        done += len(sentence)
    return parts
