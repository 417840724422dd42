"""Scores as functions of sums over the rows of a text, so that a row can be left out.

Shapes: N rows, S sums of a score; `...` is whatever several texts or models are numbered by.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.evaluation.metrics import bleu_of_sentences

Array = NDArray[np.float64]

_ORDERS = 4  # of BLEU
BLEU_SUMS = 2 * _ORDERS + 2
_CHRF_ORDERS = 6
CHRF_SUMS = 3 * _CHRF_ORDERS
_RECALL_COUNTS = 2  # times as much as precision: chrF2 (Popović 2015)


def bleu_rows(
    hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str
) -> Array:
    """Return what each translation adds to the sums of BLEU (N, 10): matches and n-grams by order,
    its length and that of its reference.
    """
    bleu = bleu_of_sentences(tgt_lang)
    rows = []
    for pair in zip(hypotheses, references, strict=True):
        hypothesis, reference = pair
        found = bleu.sentence_score(hypothesis, [reference])
        lengths = [found.sys_len, found.ref_len]
        rows.append([*found.counts, *found.totals, *lengths])
    return np.array(rows, np.float64)


def bleu_of_sums(sums: Array) -> Array:
    """Return BLEU (Papineni et al. 2002) of sums (..., 10), as sacreBLEU smooths it."""
    matches, totals, lengths = np.split(sums, [_ORDERS, 2 * _ORDERS], axis=-1)
    written = lengths[..., 0]
    wanted = lengths[..., 1]
    # an order without a match counts as half of one, the next such order as a quarter
    is_none = matches == 0
    smooth = 0.5 ** is_none.cumsum(-1)
    smoothed = np.where(is_none, smooth, matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(smoothed / totals)
        brevity = 1 - wanted / written
        penalty = np.minimum(brevity, 0)
        score = 100 * np.exp(logs.mean(-1) + penalty)
    is_any = matches.any(-1) & totals.all(-1)
    return np.where(is_any, score, 0.0)


def chrf_rows(hypotheses: Sequence[str], references: Sequence[str]) -> Array:
    """Return what each translation adds to the sums of chrF (N, 18): its n-grams of characters by
    order, those of its reference, and those that both have.
    """
    rows = []
    for pair in zip(hypotheses, references, strict=True):
        hypothesis, reference = ("".join(text.split()) for text in pair)
        row = np.zeros((3, _CHRF_ORDERS))
        for place in range(_CHRF_ORDERS):
            written = _ngrams(hypothesis, place + 1)
            wanted = _ngrams(reference, place + 1)
            if not wanted:  # sacreBLEU does not count what was written either
                break
            shared = written & wanted
            row[0, place] = written.total()
            row[1, place] = wanted.total()
            row[2, place] = shared.total()
        rows.append(row.reshape(-1))
    return np.array(rows)


def chrf_of_sums(sums: Array) -> Array:
    """Return chrF2 of sums (..., 18): the F of the mean precision and the mean recall."""
    written, wanted, shared = np.split(sums, 3, axis=-1)
    precision = shared / np.maximum(written, 1)
    recall = shared / np.maximum(wanted, 1)
    is_counted = (written > 0) & (wanted > 0)
    orders = np.maximum(is_counted.sum(-1), 1)
    return _f_score(precision.sum(-1) / orders, recall.sum(-1) / orders)


def _f_score(precision: Array, recall: Array) -> Array:
    """Return F of 0 to 100, in which recall counts more."""
    weight = _RECALL_COUNTS**2
    product = precision * recall
    below = weight * precision + recall
    score = 100 * (1 + weight) * product
    return score / np.where(below > 0, below, 1.0)


def ratio_of_sums(sums: Array) -> Array:
    """Return the first of two sums (..., 2) over the second."""
    return sums[..., 0] / sums[..., 1]


OF_SUMS: dict[str, Callable[[Array], Array]] = {
    "bleu": bleu_of_sums,
    "chrf": chrf_of_sums,
    "accuracy": ratio_of_sums,
    "loss": ratio_of_sums,
    "bits_per_byte": ratio_of_sums,
}


def _ngrams(text: str, order: int) -> Counter[str]:
    count = len(text) - order + 1
    return Counter(text[place : place + order] for place in range(count))
