"""The form of a verb: its options, and its help."""

import enum
import shutil
import sys
import typing
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from weft.cli.examples import EXAMPLES, FIRST_STEPS, GROUPS, PAGES, RESEARCH, VALUES
from weft.cli.hints import about_order, about_verb
from weft.console.wording import WIDEST, columns, painted, wrapped
from weft.errors import UsageError

SECOND_NAMES = {"--out": "--output"}  # taken as well, and not shown
PLACEHOLDERS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}


class Command(TyperCommand):
    """A verb; an option may be given by its second name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments, names of options being their first ones; what follows `--` is
        text.
        """
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(
            ctx, [*map(self._first_name, args[:end]), *args[end:]]
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Raises UsageError where the model's folder stands behind what it is to work
        on.
        """
        arguments = [p for p in self.params if p.param_type_name == "argument"]
        if arguments and self._is_path(arguments[0]):
            words = [
                word for p in arguments for word in _words(ctx.params[p.name or ""])
            ]
            several = ctx.info_name in (
                "compare",
                "average",
            )  # whose folders are several
            if not several and (said := about_order(ctx.command_path, words)):
                raise UsageError(said)
        return super().invoke(ctx)

    def _is_path(self, parameter: Any) -> bool:
        return Path in parts_of(
            typing.get_type_hints(self.callback).get(parameter.name, str)
        )

    def _first_name(self, word: str) -> str:
        name, equals, value = word.partition("=")
        known = {option for parameter in self.params for option in parameter.opts}
        first = SECOND_NAMES.get(name, name)
        return first + equals + value if name not in known and first in known else word

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, what the verb does, examples, and arguments and options under their
        headings.
        """
        width = _width()
        shown: list[Any] = [
            p for p in self.get_params(ctx) if not getattr(p, "hidden", False)
        ]
        arguments = [p for p in shown if p.param_type_name == "argument"]
        usage = " ".join([ctx.command_path, *map(_argument, arguments), "[OPTIONS]"])
        lines = [
            *wrapped(f"Usage: {usage}", width),
            "",
            *wrapped(self.help or "", width, 0),
        ]
        lines += [
            "",
            _heading("Examples"),
            *(f"  {example}" for example in EXAMPLES.get(self.name or "", ())),
        ]
        if arguments:
            rows = [(_argument(p), p.help or "") for p in arguments]
            lines += ["", _heading("Arguments"), *columns(rows, width)]
        options = [p for p in shown if p.param_type_name == "option"]
        for heading, part in _under_headings(
            options, RESEARCH.get(self.name or "", set())
        ):
            rows = [(self._names(p), _explained(p)) for p in part]
            lines += ["", _heading(heading), *columns(rows, width)]
        if page := PAGES.get(self.name or ""):
            lines += ["", *wrapped(f"More: {page}", width)]
        formatter.write("\n".join(lines) + "\n")

    def _names(self, parameter: Any) -> str:
        names = "/".join(
            [", ".join(sorted(parameter.opts, key=len)), *parameter.secondary_opts]
        )
        if parameter.is_flag or parameter.secondary_opts:
            return names
        return f"{names} {parameter.metavar or VALUES.get(parameter.opts[0]) or self._placeholder(parameter.name)}"

    def _placeholder(self, name: str) -> str:
        """Return the placeholder of an option's value, by the type that the verb's function
        gives it.
        """
        wanted = typing.get_type_hints(self.callback).get(name, str)
        parts = [part for part in parts_of(wanted) if part is not type(None)]
        kind = parts[0] if parts else str
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return "|".join(str(member.value) for member in kind)
        return PLACEHOLDERS.get(kind, "VALUE")


class Group(TyperGroup):
    """The verbs, under headings."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb and its arguments.

        Raises UsageError, with what there is instead, for a word that is none.
        """
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise UsageError(about_verb(args[0], self.commands))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write what Weft is, the first steps, and the verbs in the order of use."""
        width = _width()
        lines = [
            "Usage: weft VERB ...",
            "",
            *wrapped(self.help or "", width, 0),
            "",
            _heading("First steps"),
        ]
        lines += [*columns(FIRST_STEPS, width, most=40)]
        for heading, verbs in GROUPS.items():
            rows = [
                (name, self.commands[name].short_help or "")
                for name in verbs
                if name in self.commands
            ]
            lines += ["", _heading(heading), *columns(rows, width)]
        own: list[Any] = self.get_params(ctx)
        rows = [(", ".join(sorted(p.opts, key=len)), p.help or "") for p in own]
        lines += ["", _heading("Options"), *columns(rows, width)]
        lines += [
            "",
            *wrapped(
                "weft VERB --help explains a verb; README.md and docs/ explain the rest",
                width,
            ),
        ]
        formatter.write("\n".join(lines) + "\n")


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def parts_of(wanted: Any) -> Iterator[Any]:
    """Yield the plain types that a hint is made of: int of `list[int] | None`."""
    inner = typing.get_args(wanted)
    if not inner:
        yield wanted
    for part in inner:
        yield from parts_of(part)


def _words(value: Any) -> list[str]:
    """Return what was given for an argument, which may take several words or none."""
    return (
        []
        if value is None
        else [str(word) for word in (value if isinstance(value, list) else [value])]
    )


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name or "").upper() + (
        "..." if parameter.nargs == -1 else ""
    )
    return name if parameter.required else f"[{name}]"


def _under_headings(
    options: Iterable[Any], research: Set[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the options that everybody needs, then those for research."""
    apart: list[Any] = []
    usual: list[Any] = []
    for option in options:
        (apart if research & {*option.opts} else usual).append(option)
    yield "Options", usual
    if apart:
        yield "For research", apart


def _heading(text: str) -> str:
    return painted(f"{text}:", "bold", sys.stdout)


def _explained(parameter: Any) -> str:
    """Return an option's help; its default, where it has one that says something; whether it must
    be given.
    """
    default = parameter.default
    says = (
        default is not None
        and not isinstance(default, bool)
        and default != ""
        and parameter.show_default
    )
    extra = (
        ["required"] if parameter.required else [f"default: {default}"] if says else []
    )
    return " ".join([parameter.help or "", *(f"[{part}]" for part in extra)]).strip()
