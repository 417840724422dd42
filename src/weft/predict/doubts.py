"""The doubts about an answer: words that training never had, and too little confidence."""

from dataclasses import dataclass

from weft.data.known import KnownWords


@dataclass(frozen=True)
class Doubts:
    """The words of the training text, and the confidence below which an answer is unsure."""

    known: KnownWords | None = None
    low_confidence: float | None = None

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that training never had; none where its words are not kept."""
        return [] if self.known is None else self.known.unknown(text)

    def is_unsure(self, confidence: float | None) -> bool:
        """Return whether an answer is less sure than nearly all of dev; False if not known."""
        if confidence is None or self.low_confidence is None:
            return False
        return confidence < self.low_confidence
