"""How a verb takes its options, and how it is explained."""

from typing import Any

from typer.core import TyperCommand

SECOND_NAMES = {"--out": "--output"}  # taken as well, and not shown


class Command(TyperCommand):
    """A verb; an option may be given by its second name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, names of options being their first ones; what follows `--` is text."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*map(self._first_name, args[:end]), *args[end:]])

    def _first_name(self, word: str) -> str:
        name, equals, value = word.partition("=")
        known = {option for parameter in self.params for option in parameter.opts}
        first = SECOND_NAMES.get(name, name)
        return first + equals + value if name not in known and first in known else word
