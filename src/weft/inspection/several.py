"""Several inspections for one page: of sentences, of two models, of a model while it learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from weft.data.tokenizer import EOS_ID
from weft.decoding.decoder import Hypothesis
from weft.errors import UsageError
from weft.inspection.look import Inspection, inspect_text
from weft.inspection.packing import plain
from weft.inspection.tokens import HEAD, USUAL, Limits
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.tasks.task import Task
from weft.tasks.translation import Translation

Kind: TypeAlias = Literal["sentences", "models", "checkpoints"]
AnyTask: TypeAlias = Task[Any, Any]


@dataclass(frozen=True, eq=False)
class Several:
    """Inspections that one page turns through, each with its name.

    `facts` are what a kind has besides. `left_out` are keys that all inspections but number `whole`
    do without, so that the page stays small.
    """

    kind: Kind
    names: Sequence[str]
    inspections: Sequence[Inspection]
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    left_out: frozenset[str] = frozenset()
    whole: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, as docs/inspection.md describes it."""
        found: dict[str, Any] = plain(self.to_data())
        return found

    def to_data(self) -> dict[str, Any]:
        """Return the same as a dictionary with arrays, which `weft.inspection.packing` writes."""
        each = [inspection.to_data() for inspection in self.inspections]
        for number, data in enumerate(each):
            if number != self.whole:
                each[number] = {k: data[k] for k in data if k not in self.left_out}
        return {
            **HEAD,
            "format": "weft-inspections",
            "kind": self.kind,
            "names": [*self.names],
            "notes": [*self.notes],
            **self.facts,
            "inspections": each,
        }


def inspect_sentences(
    task: AnyTask,
    texts: Sequence[str],
    beam_size: int | None = None,
    limits: Limits = USUAL,
) -> Several:
    """Inspect several texts with one model. Raises UsageError for one with nothing in it."""
    found = [inspect_text(task, text, limits, beam_size) for text in texts]
    notes = [
        f"text {number}: {note}"
        for number, inspection in enumerate(found, start=1)
        for note in inspection.notes
    ]
    names = [inspection.text for inspection in found]
    return Several("sentences", names, found, notes=notes)


def compare_models(
    tasks: Sequence[AnyTask],
    names: Sequence[str],
    text: str,
    beam_size: int | None = None,
    limits: Limits = USUAL,
) -> Several:
    """Inspect a text with two models.

    Where both translate with the same tokenizers and differently, a third inspection is that of the
    second model while it writes the first one's translation, so that the same tokens are compared;
    `pair` names the two inspections whose tokens are the same, None where there are none.

    Raises UsageError for models of two tasks, for a text with nothing in it and for an impossible
    beam_size.
    """
    first, second = tasks
    if first.name != second.name:
        raise UsageError(
            f"{names[0]} holds a model for {first.name}, {names[1]} one for {second.name}: "
            "give two models of one task"
        )
    found = [inspect_text(task, text, limits, beam_size) for task in tasks]
    shown = [*names]
    pair = [0, 1] if _tokens(found[0]) == _tokens(found[1]) else None
    is_alike = have_same_tokens(first, second)
    if pair is not None and not is_alike:
        pair = None  # the same numbers, of other tokens
    if is_alike and pair is None:
        found.append(inspect_again(second, found[0], limits))
        shown.append(names[1])
        pair = [0, 2]
    notes = [
        f"{name}: {note}"
        for name, inspection in zip(shown, found[:2], strict=False)
        for note in inspection.notes
    ]
    return Several("models", shown, found, {"pair": pair}, notes)


def have_same_tokens(first: AnyTask, second: AnyTask) -> bool:
    """Return whether two models cut text alike: then a place, and an id, is the same in both."""
    pairs = zip(first.tokenizers, second.tokenizers, strict=True)
    return all(a.to_json() == b.to_json() for a, b in pairs)


def inspect_again(
    task: AnyTask, like: Inspection, limits: Limits = USUAL
) -> Inspection:
    """Inspect the text of an inspection with another model of the same tokenizers; a translator
    while it writes the same translation.
    """
    if not isinstance(like, TranslationInspection):
        return inspect_text(task, like.text, limits)
    assert isinstance(task, Translation)
    ids = [i for i in like.tgt_ids if i != EOS_ID]
    given = Hypothesis(ids, 0.0, 0.0, [], like.finished and not like.tgt_cut)
    return inspect_translation(task, like.text, None, limits, given)


def _tokens(inspection: Inspection) -> list[int]:
    """Return the ids of what is looked at: of a translation those of both sides."""
    if isinstance(inspection, TranslationInspection):
        return [*inspection.src_ids, *inspection.tgt_ids]
    return inspection.ids
