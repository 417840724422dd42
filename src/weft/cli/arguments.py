"""The errors that the option parser finds in a verb's arguments, in the words of Weft."""

import enum
import re
import typing
from typing import Any

from weft.cli.command import parts_of
from weft.cli.hints import PICTURES, about_option

MOST_SHOWN = 60  # characters of a value


def about_arguments(error: Exception, verb: str) -> str:
    """Return what is wrong and what to do, in one line.

    `verb` is "weft VERB", for an error that does not name it. The parser's classes are told by
    their names, as their module moves between versions.
    """
    context = getattr(error, "ctx", None)
    parameter = getattr(error, "param", None)
    verb = getattr(context, "command_path", verb)
    kind = type(error).__name__
    message = str(getattr(error, "message", error))
    if hasattr(error, "possibilities") and context is not None:
        options = [name for p in context.command.params for name in p.opts]
        return about_option(verb, getattr(error, "option_name", ""), options)
    extra = re.search(r"unexpected extra argument\S* \((.*)\)", message)
    if kind == "MissingParameter" and parameter is not None:
        said = f"{verb} needs {_name(parameter)}{_help(parameter)}"
    elif kind == "BadParameter" and parameter is not None:
        said = _wrong_value(error, parameter, context)
    elif kind == "BadOptionUsage":
        option = getattr(error, "option_name", "")
        fault = "takes no" if "not take" in message else "needs a"
        said = f"{option} {fault} value"
    elif extra and context is not None:
        parameters = context.command.params
        arguments = [p for p in parameters if p.param_type_name == "argument"]
        names = " ".join(_name(argument) for argument in arguments)
        said = f"unexpected {extra[1]!r}: {verb} takes {names}; put a text with spaces in quotes"
    else:
        said = message.rstrip(".")
    return f"{said}; see {verb} --help"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name).upper()
    return str(max(parameter.opts, key=len))


def _help(parameter: Any) -> str:
    text = (parameter.help or "").rstrip(".")
    return f" ({text[0].lower()}{text[1:]})" if text else ""


def _wrong_value(error: Exception, parameter: Any, context: Any) -> str:
    """Return the wrong value and what the parameter takes, or else the parser's own message."""
    from weft.recipes.problems import meant, takes

    name = _name(parameter)
    schema = _schema(parameter, context.command.callback)
    if not schema:
        message = str(getattr(error, "message", error)).rstrip(".")
        return f"{name}: {message}"
    value = _value_of(error)
    remedy = meant(schema, value)
    if name == "WHAT" and value in PICTURES:
        remedy = f"; {PICTURES[value]}"
    return f"{name} {value:.{MOST_SHOWN}}: must be {takes(schema)}{remedy}"


def _schema(parameter: Any, callback: Any) -> dict[str, Any]:
    """Return the JSON schema of a parameter's type: a number with its bounds, or an enum."""
    hint = typing.get_type_hints(callback, include_extras=True).get(parameter.name)
    bounds = {}
    for option in getattr(hint, "__metadata__", ()):
        bounds["minimum"] = getattr(option, "min", None)
        bounds["maximum"] = getattr(option, "max", None)
    bounds = {key: bound for key, bound in bounds.items() if bound is not None}
    for kind in parts_of(typing.get_type_hints(callback).get(parameter.name)):
        if kind is int:
            return {"type": "integer", **bounds}
        if kind is float:
            return {"type": "number", **bounds}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [str(member.value) for member in kind]}
    return {}


def _value_of(error: Exception) -> str:
    """Return the value that was given: it stands in the error's cause, or in its message."""
    problems: list[Any] = getattr(error.__cause__, "errors", list)()
    if problems:
        return str(problems[0]["input"])
    message = str(getattr(error, "message", ""))
    quoted = re.match(r"(['\"]?)(.*?)\1 is not ", message)
    return quoted[2] if quoted else ""
