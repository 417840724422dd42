"""The scores of a language model on a text: loss, perplexity, bits per byte."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from weft.errors import DataError, DivergedError


@dataclass(frozen=True)
class LanguageScores:
    """Cross-entropy of a text in nats a token, its perplexity, and bits per byte of its UTF-8.

    Perplexity depends on what a token is, and stops at e^700; bits per byte compares models with
    different tokenizers.
    """

    loss: float
    perplexity: float
    bits_per_byte: float
    num_tokens: int
    num_bytes: int

    def summary(self) -> str:
        """Return the scores in one line."""
        return (
            f"loss {self.loss:.4f} nats a token  perplexity {self.perplexity:.2f}  "
            f"{self.bits_per_byte:.3f} bits per byte"
        )

    def lines(self) -> list[str]:
        """Return the scores for a person, in lines."""
        return [
            f"loss            {self.loss:9.4f}  nats a token",
            f"perplexity      {self.perplexity:9.2f}  a token",
            f"bits per byte   {self.bits_per_byte:9.4f}",
            f"{self.num_tokens:,} tokens, {self.num_bytes:,} bytes",
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return asdict(self)


def language_scores(nll_sum: float, num_tokens: int, num_bytes: int) -> LanguageScores:
    """Compute the scores from the summed negative log-likelihood in nats.

    Raises DataError where there is nothing to score, DivergedError where the sum is not a finite
    number.
    """
    if num_tokens < 1 or num_bytes < 1:
        raise DataError("there is nothing to score: the text has no token")
    if not math.isfinite(nll_sum):
        raise DivergedError(
            f"scoring: the loss is {nll_sum}; the model's output is not a number"
        )
    loss = nll_sum / num_tokens
    perplexity = math.exp(min(700.0, loss))  # JSON has no infinity
    return LanguageScores(
        loss, perplexity, nll_sum / math.log(2) / num_bytes, num_tokens, num_bytes
    )
