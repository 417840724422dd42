"""The report on a translator in int8: what it loses, and what a shortlist gains it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FEW = 100  # pairs below which scores prove nothing
# how much faster a shortlist must be, on how many pairs, to be used unasked
WORTHWHILE = 1.1
ENOUGH = 200


@dataclass(frozen=True)
class Parity:
    """The losses of int8, on a text of `sentences` pairs.

    `token_agreement` is the share of positions in the original's own translations at which both
    find the same token most probable; `largest_error` the largest difference of log-probabilities
    there, in nats, over all entries of the vocabulary, `mean_error` their mean difference for the
    token that stands there. `same_translations` is the share of sentences that both translate
    alike. `directions` has the BLEU before and after of each of several. Sizes are of the weights,
    in bytes. `shortlist` is what a shortlist changes for the int8 model, if one was learned.
    `notes` say what stands against the figures: pairs that were trained on, or left out, or too
    few.
    """

    sentences: int
    tokens: int
    token_agreement: float
    largest_error: float
    mean_error: float
    same_translations: float
    bleu: float
    bleu_int8: float
    bleu_signature: str
    bytes: int = 0
    bytes_int8: int = 0
    shortlist: "ShortlistParity | None" = None
    notes: tuple[str, ...] = ()
    directions: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def worst(self) -> tuple[str, float, float]:
        """Return the direction that loses most, "" where there is one alone, and its BLEU before
        and after.
        """
        ways = self.directions or {"": (self.bleu, self.bleu_int8)}
        return max(
            ((name, *bleu) for name, bleu in ways.items()),
            key=lambda way: way[1] - way[2],
        )

    @property
    def bleu_loss(self) -> float:
        """Return the BLEU that is lost, of several directions in the one that loses most; negative
        where int8 happens to score higher.
        """
        _, before, after = self.worst
        return before - after

    def card_lines(self) -> list[str]:
        """Return the lines of the card, whose reader takes a score for the model's quality.

        A score of too few pairs is left out.
        """
        if self.sentences >= FEW:
            return self.lines()
        return [*self._about_weights(), *self._notes()]

    def lines(self) -> list[str]:
        """Return the report for a person, in lines."""
        agreement, *weights = self._about_weights()
        return [
            f"BLEU {self.bleu:.2f} -> {self.bleu_int8:.2f}  {self.bleu_signature}",
            *self._of_directions(),
            agreement,
            f"{100 * self.same_translations:.1f} % of {self.sentences:,} translations are the same",
            *weights,
            *(self.shortlist.lines() if self.shortlist else ()),
            *self._notes(),
        ]

    def _of_directions(self) -> list[str]:
        return [
            f"{name}: BLEU {before:.2f} -> {after:.2f}"
            for name, (before, after) in self.directions.items()
        ]

    def _about_weights(self) -> list[str]:
        return [
            f"{100 * self.token_agreement:.2f} % of {self.tokens:,} tokens agree",
            f"log-probabilities differ by {self.mean_error:.4f} nats on average, {self.largest_error:.2f} at most",
            f"weights {self.bytes / 2**20:,.1f} MiB -> {self.bytes_int8 / 2**20:,.1f} MiB",
        ]

    def _notes(self) -> list[str]:
        return [f"note: {note}" for note in self.notes]


@dataclass(frozen=True)
class ShortlistParity:
    """The gains of a shortlist: BLEU, the share of translations that stay, its mean number of
    ids.

    It is used where BLEU is no lower, on enough pairs to tell, and translating some of the text,
    both forms in turns, was so much faster that one notices.
    """

    bleu: float
    same_translations: float
    times_as_fast: float
    size: float
    vocab_size: int
    is_used: bool

    def lines(self) -> list[str]:
        """Return the report for a person, in lines."""
        verdict = (
            "used, unless --no-shortlist is given"
            if self.is_used
            else "not used, unless --shortlist is given"
        )
        same = f"{100 * self.same_translations:.1f} % of translations the same"
        size = f"{self.size:,.0f} of {self.vocab_size:,} ids a sentence"
        return [
            f"with the shortlist, {size}: BLEU {self.bleu:.2f}, {same}, {self.times_as_fast:.2f} times as fast",
            f"the shortlist is {verdict} (asked: no lower BLEU on {ENOUGH} pairs, {WORTHWHILE:g} times as fast)",
        ]
