"""The doubts about an answer: words that training never had, and too little confidence."""

from dataclasses import dataclass

from weft.data.known import KnownWords
from weft.predict.quality import Quality


@dataclass(frozen=True)
class Doubts:
    """The words of the training text, the confidence below which an answer is unsure, and how the
    quality of a translation is estimated.
    """

    known: KnownWords | None = None
    low_confidence: float | None = None
    quality: Quality | None = None

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that training never had; none where its words are not kept."""
        return [] if self.known is None else self.known.unknown(text)

    def is_unsure(self, confidence: float | None) -> bool:
        """Return whether an answer is less sure than nearly all of dev; False if not known."""
        if confidence is None or self.low_confidence is None:
            return False
        return confidence < self.low_confidence
