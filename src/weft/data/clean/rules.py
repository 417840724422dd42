"""The rules of cleaning: rows with a finding of the check are kept, mended or dropped."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from weft.data.clean.mending import MENDS, mend
from weft.errors import UsageError

Action = Literal["keep", "mend", "drop"]

EMPTY = "empty"
SHIFTED = "shifted-lines"
SWAPPED = "swapped-languages"
VARIANTS = "label-variants"
LOST = "control-characters"
NO_LABEL = "no-label"

_ALL: tuple[str, ...] = ("translation", "language-modelling", "classification")
_PAIRS: tuple[str, ...] = ("translation",)
_ROWS: tuple[str, ...] = ("classification",)
_NO_DOCUMENTS: tuple[str, ...] = ("translation", "classification")


@dataclass(frozen=True)
class Rule:
    """A finding of the check, and what is done about it unless the user says otherwise.

    `mends` and `drops` say it of rows that are mended and dropped; "" where that cannot be done.
    """

    name: str
    action: Action
    mends: str = ""
    drops: str = ""
    tasks: tuple[str, ...] = _ALL


# A row that breaks several rules is dropped by the first of them.
RULES = (
    Rule("misread-encoding", "mend", "misread UTF-8 is read rightly"),
    Rule("markup", "mend", "tags are taken out, references are the characters"),
    Rule(
        LOST,
        "mend",
        "characters that nobody reads are taken out",
        "letters are lost: U+FFFD stands for them",
    ),
    Rule("spaces", "mend", "one space for several", tasks=_NO_DOCUMENTS),
    Rule(EMPTY, "drop", drops="there is no text, or none on one side"),
    Rule(NO_LABEL, "drop", drops="there is no label", tasks=_ROWS),
    Rule(
        SHIFTED,
        "mend",
        "each source is beside the target that fits it",
        "no line of the other side is left for it",
        _PAIRS,
    ),
    Rule(
        SWAPPED,
        "mend",
        "source and target are exchanged",
        "source and target are the wrong way round",
        _PAIRS,
    ),
    Rule("untranslated", "drop", drops="source and target are the same", tasks=_PAIRS),
    Rule("same-language", "drop", drops="both sides are in one language", tasks=_PAIRS),
    Rule("wrong-script", "drop", drops="it is in another script than the rest"),
    Rule(
        "long-lines", "drop", drops="it is longer than 2,000 characters", tasks=_PAIRS
    ),
    Rule(
        "length-ratio",
        "drop",
        drops="one side is far longer or shorter than usual",
        tasks=_PAIRS,
    ),
    Rule(
        "strangers",
        "drop",
        drops="the sides hardly translate each other",
        tasks=_PAIRS,
    ),
    Rule("one-text", "drop", drops="one text stands beside many", tasks=_PAIRS),
    Rule("duplicates", "drop", drops="it has occurred before"),
    Rule("near-duplicates", "drop", drops="it has occurred but for a word or a few"),
    Rule("dev-in-training", "drop", drops="it is in dev", tasks=_NO_DOCUMENTS),
    Rule("test-in-training", "drop", drops="it is in test", tasks=_NO_DOCUMENTS),
    Rule(VARIANTS, "mend", "a label is written as most rows have it", tasks=_ROWS),
    Rule("numbers-differ", "keep", drops="the numbers are not the same", tasks=_PAIRS),
    Rule(
        "several-translations",
        "keep",
        drops="the source has another translation before",
        tasks=_PAIRS,
    ),
    Rule(
        "contradictions", "keep", drops="the text has another label before", tasks=_ROWS
    ),
)
BY_NAME = {rule.name: rule for rule in RULES}
_NEVER_KEPT = (EMPTY, NO_LABEL)


@dataclass(frozen=True)
class Choice:
    """The actions about findings, by the names of these, in the order of the rules."""

    actions: Mapping[str, Action]

    @classmethod
    def of(cls, task: str, keep: Sequence[str], drop: Sequence[str]) -> "Choice":
        """Choose by the rules of a task, but for those of which the user says otherwise.

        Raises UsageError for a name that is none of them, and for what cannot be done.
        """
        actions: dict[str, Action] = {
            rule.name: rule.action for rule in RULES if task in rule.tasks
        }
        for option, names in (("--keep", keep), ("--drop", drop)):
            for name in names:
                _refuse_unknown(option, name, actions)
        for name in keep:
            if name in drop:
                raise UsageError(f"--keep {name} and --drop {name}: leave one out")
            if name in _NEVER_KEPT:
                raise UsageError(
                    f"--keep {name}: nothing can be learned from such rows; leave it out"
                )
            actions[name] = "keep"
        actions.update(dict.fromkeys(drop, "drop"))
        return cls(actions)

    def does(self, name: str, action: Action) -> bool:
        """Return whether this is what is done about a finding."""
        return self.actions.get(name) == action

    def mends(self) -> tuple[str, ...]:
        """Return the rules by which single texts are mended, or rows dropped for them."""
        return tuple(name for name in MENDS if self.actions.get(name, "keep") != "keep")

    def mend_row(self, row: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the texts of a row mended, and the rules that changed any, in their order."""
        rules = self.mends()
        texts = []
        changed = set[str]()
        for text in row:
            mended, by = mend(text, rules)
            texts.append(mended)
            changed.update(by)
        return tuple(texts), tuple(rule for rule in rules if rule in changed)

    def reason_to_drop(self, changed: Sequence[str]) -> str:
        """Return the first of the rules that changed a row which is to drop it; "" for none."""
        return next((rule for rule in changed if self.does(rule, "drop")), "")


def _refuse_unknown(option: str, name: str, known: Mapping[str, Action]) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"{option} {name}: no such rule; {meant}rules: {', '.join(known)}")
