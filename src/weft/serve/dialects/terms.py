"""The field `glossary` of a request: the name of one that the server has, "" for none, or terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.data.glossary import Entry
from weft.data.glossary_columns import COLUMNS
from weft.serve.bodies import Fields
from weft.serve.glossaries import NONE, USUAL, Binding
from weft.serve.limits import Limits
from weft.serve.refusals import InvalidRequest, TooLarge

GLOSSARY = "glossary"
_KINDS = (
    "a name, or a list of terms: [source, target] or objects with source and target"
)
SCHEMA: Mapping[str, Any] = {
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": ["array", "object"]}},
    ]
}


def binding_of(fields: Fields, limits: Limits) -> Binding:
    """Return which terms a request wants: the usual ones where it does not say.

    A text with a TAB, as a form has it, is a table. Raises InvalidRequest and TooLarge.
    """
    value = fields.value(GLOSSARY)
    if value is None:
        return USUAL
    if value in ("", []):
        return NONE
    if isinstance(value, str):
        if "\t" not in value:
            return Binding(name=value)
        value = [line.rstrip("\r").split("\t") for line in value.split("\n")]
    if not isinstance(value, list):
        raise InvalidRequest(f"{GLOSSARY} must be {_KINDS}", GLOSSARY)
    refuse_many(len(value), limits)
    return Binding(rows=tuple(map(_row, value)))


def refuse_many(count: int, limits: Limits) -> None:
    """Raise TooLarge for more terms than a request may have."""
    if count > limits.max_terms:
        raise TooLarge(
            f"{count:,} terms: at most {limits.max_terms:,} are taken with a request"
        )


def row_of(term: Entry) -> dict[str, Any]:
    """Return a term as an object, the form in which a request may send it."""
    return {
        "source": "|".join(term.sources),
        "target": "|".join(term.targets),
        "case": term.exact_case,
        "inflection": term.inflected,
        "avoid": "|".join(term.avoided),
    }


def _row(value: Any) -> tuple[str, ...]:
    """Return the cells of a term."""
    if isinstance(value, dict):
        for name in value:
            if name not in COLUMNS:
                raise InvalidRequest(
                    f"a term of the {GLOSSARY} has {', '.join(COLUMNS)}", GLOSSARY
                )
        value = [_cell(value.get(name, "")) for name in COLUMNS]
    if not _is_row(value):
        raise InvalidRequest(f"{GLOSSARY} must be {_KINDS}", GLOSSARY)
    return tuple(value)


def _cell(value: Any) -> Any:
    """Return the text of a cell; a rule may also be true or false."""
    words = {True: "yes", False: "no"}
    return words[value] if isinstance(value, bool) else value


def _is_row(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(isinstance(cell, str) for cell in value)
