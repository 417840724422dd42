"""The errors of a verb's arguments, found by the option parser and said in our words."""

import enum
import re
import typing
from typing import Any

from weft.cli.command import parts_of
from weft.cli.hints import about_option

MOST_SHOWN = 60  # characters of a value


def about_arguments(error: Exception, asked: str) -> str:
    """Say what is wrong and what to do; `asked` is the verb where the parser does not say it.

    The parser is known by the names of its errors and their parts alone: its module moves between
    versions.
    """
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    asked = getattr(context, "command_path", asked)
    kind, message = type(error).__name__, str(getattr(error, "message", error))
    if hasattr(error, "possibilities") and context is not None:
        known = [name for one in context.command.params for name in one.opts]
        return about_option(asked, getattr(error, "option_name", ""), known)
    if kind == "MissingParameter" and parameter is not None:
        said = f"{asked} needs {_name(parameter)}{_help(parameter)}"
    elif kind == "BadParameter" and parameter is not None:
        said = _wrong_value(error, parameter, context)
    elif kind == "BadOptionUsage":
        said = f"{getattr(error, 'option_name', '')} {'takes no' if 'not take' in message else 'needs a'} value"
    elif (
        extra := re.search(r"unexpected extra argument\S* \((.*)\)", message)
    ) and context is not None:
        taken = [
            _name(one)
            for one in context.command.params
            if one.param_type_name == "argument"
        ]
        said = f"unexpected {extra[1]!r}: {asked} takes {' '.join(taken)}; a text with spaces stands in quotes"
    else:
        said = message.rstrip(".")
    return f"{said}; see {asked} --help"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name).upper()
    return str(max(parameter.opts, key=len))


def _help(parameter: Any) -> str:
    text = (parameter.help or "").rstrip(".")
    return f" ({text[0].lower()}{text[1:]})" if text else ""


def _wrong_value(error: Exception, parameter: Any, context: Any) -> str:
    """Say what was given and what the parameter takes, else what the parser says."""
    from weft.recipes.problems import meant, takes

    schema = _schema(parameter, context.command.callback)
    if not schema:
        return (
            f"{_name(parameter)}: {str(getattr(error, 'message', error)).rstrip('.')}"
        )
    given = _given(error)
    return f"{_name(parameter)} {given:.{MOST_SHOWN}}: must be {takes(schema)}{meant(schema, given)}"


def _schema(parameter: Any, callback: Any) -> dict[str, Any]:
    """Return what the verb's function declares: the kind of number and its bounds, or the words."""
    hint = typing.get_type_hints(callback, include_extras=True).get(parameter.name)
    declared = next(
        (part for part in getattr(hint, "__metadata__", ()) if hasattr(part, "min")),
        None,
    )
    bounds = {
        "minimum": getattr(declared, "min", None),
        "maximum": getattr(declared, "max", None),
    }
    for kind in parts_of(typing.get_type_hints(callback).get(parameter.name)):
        if kind in (int, float):
            number = "integer" if kind is int else "number"
            return {
                "type": number,
                **{key: bound for key, bound in bounds.items() if bound is not None},
            }
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [str(member.value) for member in kind]}
    return {}


def _given(error: Exception) -> str:
    """Return the value that was given: it stands in the error's cause, or in its message."""
    problems: list[Any] = getattr(error.__cause__, "errors", list)()
    if problems:
        return str(problems[0]["input"])
    found = re.match(r"(['\"]?)(.*?)\1 is not ", str(getattr(error, "message", "")))
    return found[2] if found else ""
