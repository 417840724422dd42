"""The card that a model has from its training, taken apart."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.folder.model_files import read_card
from weft.run.card import without_run

# of a card: what would help in training, and how Weft uses the folder that it was written for
_HELPS = re.compile(r"^- what would help: .*\n", re.MULTILINE)
_USE = "Use"
ON_TEST = "Scores on test"
# the scores of every task by the names that `lines` of `weft.evaluation` gives them
SCORES = (
    "BLEU",
    "chrF",
    "accuracy",
    "macro-F1",
    "micro-F1",
    "perplexity",
    "bits per byte",
)
_SCORE = re.compile(rf"^ {{4}}({'|'.join(SCORES)}) +(\d+\.\d+)(?:  (.+))?$")
_BY = re.compile(r"^ {4}by +(.+)$", re.MULTILINE)
_SIGNATURE = re.compile(r"^ {4}text +(data:.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Score:
    """A score on test: its name, its value, and what stands behind it, such as the signature of
    sacreBLEU.
    """

    name: str
    value: float
    about: str = ""


@dataclass(frozen=True)
class OwnCard:
    """A card: its title, what stands below that, and its sections by their headings; without what
    it says of the folder, its run, and its use by Weft.
    """

    title: str
    about: str
    sections: Mapping[str, str]

    def scores(self) -> Iterator[Score]:
        """Yield the scores on test; those of single labels are not among them."""
        summary, *_ = re.split(r"\n *\n", self._on_test)
        for line in summary.split("\n"):
            if found := _SCORE.match(line):
                yield Score(found[1], float(found[2]), found[3] or "")

    @property
    def scored_by(self) -> str:
        """Return how the model was used for the scores on test; "" where that is not said."""
        found = _BY.search(self._on_test)
        return found[1] if found else ""

    @property
    def scored_text(self) -> str:
        """Return the signature of the test text; "" where that is not said."""
        found = _SIGNATURE.search(self._on_test)
        return found[1] if found else ""

    @property
    def _on_test(self) -> str:
        return self.sections.get(ON_TEST, "")


def read_own_card(model: Path, task: str) -> OwnCard:
    """Read the card of the model in a folder or a pack; one without a card is called by its
    `task`.
    """
    text = read_card(model) or f"# {task}\n"
    text = _HELPS.sub("", without_run(text))
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, about = head.strip().partition("\n")
    sections = {}
    for part in parts:
        heading, _, content = part.partition("\n")
        sections[heading] = content.strip("\n")
    sections.pop(_USE, None)
    return OwnCard(title.lstrip("# "), about.strip(), sections)
