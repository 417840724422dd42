"""The parsing of a verb's options, and the layout of the help."""

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

SECOND_NAMES = {"--out": "--output"}  # accepted, but not shown
TAKE_SEVERAL = ("compare", "average")  # verbs with several models' folders
PLACEHOLDERS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
MORE = "weft VERB --help explains a verb; README.md and docs/ explain the rest"


class Command(TyperCommand):
    """A verb: it takes second names of options, and writes its own help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments with second names replaced; what follows `--` is text."""
        end = args.index("--") if "--" in args else len(args)
        named = [self._first_name(word) for word in args[:end]]
        _, _, given = self.make_parser(ctx).parse_args([*named, *args[end:]])
        _refuse_twice(given)
        return super().parse_args(ctx, named + args[end:])

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Raises UsageError where the model's folder is not the first argument."""
        arguments = _of_kind("argument", self.params)
        takes_several = ctx.info_name in TAKE_SEVERAL
        if arguments and self._is_path(arguments[0]) and not takes_several:
            words: list[str] = []
            for argument in arguments:
                words += _words(ctx.params[argument.name or ""])
            if said := about_order(ctx.command_path, words):
                raise UsageError(said)
        return super().invoke(ctx)

    def _is_path(self, parameter: Any) -> bool:
        hints = typing.get_type_hints(self.callback)
        return Path in parts_of(hints.get(parameter.name, str))

    def _first_name(self, word: str) -> str:
        """Return an option by its first name; any other word as it is."""
        name, equals, value = word.partition("=")
        options: set[str] = set()
        for parameter in self.params:
            options |= {*parameter.opts}
        first = SECOND_NAMES.get(name, name)
        if name in options or first not in options:
            return word
        return first + equals + value

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, description, examples, arguments and options."""
        width = _width()
        verb = self.name or ""
        parameters: list[Any] = self.get_params(ctx)
        shown = [p for p in parameters if not _is_hidden(p)]
        arguments = _of_kind("argument", shown)
        options = _of_kind("option", shown)
        words = [_argument(argument) for argument in arguments]
        usage = " ".join(["Usage:", ctx.command_path, *words, "[OPTIONS]"])
        lines = [*wrapped(usage, width), ""]
        lines += wrapped(self.help or "", width, 0)
        lines += _heading("Examples")
        lines += [f"  {example}" for example in EXAMPLES.get(verb, ())]
        if arguments:
            helps = [argument.help or "" for argument in arguments]
            lines += _heading("Arguments")
            lines += columns(zip(words, helps, strict=True), width)
        if verb == "translate":
            lines += ["", *wrapped(_about_documents(), width)]
        research = RESEARCH.get(verb, set())
        for heading, part in _under_headings(options, research):
            rows = [(self._names(p), _explained(p)) for p in part]
            lines += _heading(heading)
            lines += columns(rows, width)
        page = PAGES.get(verb)
        if page:
            lines.append("")
            lines += wrapped(f"More: {page}", width)
        formatter.write("\n".join(lines) + "\n")

    def _names(self, parameter: Any) -> str:
        """Return the names of an option and the placeholder of its value."""
        names = _sorted_names(parameter)
        for opposite in parameter.secondary_opts:
            names += f"/{opposite}"
        if parameter.is_flag or parameter.secondary_opts:
            return names
        value = parameter.metavar or VALUES.get(parameter.opts[0])
        value = value or self._placeholder(parameter.name)
        return f"{names} {value}"

    def _placeholder(self, name: str) -> str:
        """Return the placeholder for the type of an option's value."""
        hint = typing.get_type_hints(self.callback).get(name, str)
        kinds = [part for part in parts_of(hint) if part is not type(None)]
        kind = kinds[0] if kinds else str
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return "|".join(str(member.value) for member in kind)
        return PLACEHOLDERS.get(kind, "VALUE")


class Group(TyperGroup):
    """The command `weft`, whose help lists the verbs under headings."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb and its arguments; raise UsageError for a word that is not a verb."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise UsageError(about_verb(args[0], self.commands))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write what Weft is, the first steps, and the verbs in the order of use."""
        width = _width()
        lines = ["Usage: weft VERB ...", ""]
        lines += wrapped(self.help or "", width, 0)
        lines += _heading("First steps")
        lines += columns(FIRST_STEPS, width, most=40)
        for heading, names in GROUPS.items():
            verbs = [self.commands[name] for name in names]
            rows = [(verb.name or "", verb.short_help or "") for verb in verbs]
            lines += _heading(heading)
            lines += columns(rows, width)
        options: list[Any] = self.get_params(ctx)
        rows = [(_sorted_names(option), option.help or "") for option in options]
        lines += _heading("Options")
        lines += columns(rows, width)
        lines.append("")
        lines += wrapped(MORE, width)
        formatter.write("\n".join(lines) + "\n")


def _refuse_twice(given: Iterable[Any]) -> None:
    """Raise UsageError for an option that takes one value and has several: all but the last would
    be dropped.
    """
    seen: set[str] = set()
    for parameter in _of_kind("option", given):
        if parameter.multiple or parameter.is_flag or parameter.count:
            continue
        name = max(parameter.opts, key=len)
        if name in seen:
            raise UsageError(
                f"{name} is given twice and takes one value; leave one out"
            )
        seen.add(name)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def parts_of(hint: Any) -> Iterator[Any]:
    """Yield the plain types in a type hint: int and None of `list[int] | None`."""
    inner = typing.get_args(hint)
    if not inner:
        yield hint
    for part in inner:
        yield from parts_of(part)


def _words(value: Any) -> list[str]:
    """Return the words of an argument, which may be one, several or none."""
    if value is None:
        return []
    if isinstance(value, list):
        return [str(word) for word in value]
    return [str(value)]


def _of_kind(kind: str, parameters: Iterable[Any]) -> list[Any]:
    """Return the parameters that are of the kind "argument" or "option"."""
    return [p for p in parameters if p.param_type_name == kind]


def _is_hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False))


def _sorted_names(parameter: Any) -> str:
    return ", ".join(sorted(parameter.opts, key=len))


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name or "").upper()
    if parameter.nargs == -1:
        name += "..."
    return name if parameter.required else f"[{name}]"


def _under_headings(
    options: Iterable[Any], research: Set[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the usual options, then those named in `research`, each with a heading."""
    usual: list[Any] = []
    special: list[Any] = []
    for option in options:
        part = usual if research.isdisjoint(option.opts) else special
        part.append(option)
    yield "Options", usual
    if special:
        yield "For research", special


def _about_documents() -> str:
    from weft.cli.document_names import about_documents

    return about_documents()


def _heading(text: str) -> list[str]:
    """Return the lines of a heading: a blank one before it."""
    return ["", painted(f"{text}:", "bold", sys.stdout)]


def _explained(parameter: Any) -> str:
    """Return an option's help, with its default, or that it is required."""
    text = parameter.help or ""
    default = parameter.default
    is_empty = default is None or default == "" or isinstance(default, bool)
    if parameter.required:
        text += " [required]"
    elif parameter.show_default and not is_empty:
        text += f" [default: {default}]"
    return text.strip()
