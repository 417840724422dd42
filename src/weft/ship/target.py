"""A form that models are written in for another program, and what is asked of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from weft.folder.exported import FORMAT
from weft.packages import loaded
from weft.ship.opened import Opened
from weft.ship.source import Source
from weft.ship.written import Written


@dataclass(frozen=True)
class Asked:
    """The wishes of a person who exports a model.

    `license` is a name as SPDX or the Hub has it, `data_terms` says under which terms the text was
    had that the model learned from; both are empty where nobody said so, and are never guessed.
    `precision` is that of the weights; `int8` only where the target has it.
    """

    license: str = ""
    data_terms: str = ""
    precision: str = "float32"
    is_certified: bool = True


class Target(ABC):
    """A form for another program.

    `name` is that of the command line; `extra` brings its `packages`, each with the name that it is
    imported by, which the certificate needs, and `writers`, which the files are written by, without
    a certificate too. Without `needs_text` a certificate may have the weights alone, where there is
    no text to compare on. `library` is what the Hub calls the program; of a form without one the
    card has no head. A form that `divides_texts` translates each sentence of a text; for the others
    it is one.
    """

    name: ClassVar[str]
    extra: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    writers: ClassVar[tuple[str, ...]] = ()
    precisions: ClassVar[tuple[str, ...]] = ("float32",)
    needs_text: ClassVar[bool] = True
    library: ClassVar[str] = ""
    divides_texts: ClassVar[bool] = False

    @abstractmethod
    def why_not(self, source: Source) -> str:
        """Say why a model has no home in this form, and which setting or recipe has one; "" where
        it has.
        """

    def compared(self, source: Source) -> Source:
        """Return the model that the form must be the same as: the one that is written, or it with
        weights of fewer bits.
        """
        return source

    def why_not_for(self, source: Source, texts: Sequence[str]) -> str:
        """Say why a model that has a home should have none, as it reads some texts otherwise there,
        and which setting helps; "" where it may have it.
        """
        return ""

    @abstractmethod
    def write(self, source: Source, place: Path, asked: Asked) -> Written:
        """Write all files but the card into a new folder."""

    @abstractmethod
    def open(self, source: Source, place: Path, written: Written) -> Opened:
        """Open what was written, by the other program's own library; `source` is the model that it
        must be the same as.
        """

    def facts(self, source: Source) -> Mapping[str, Any]:
        """Return what the folder's manifest says of the form."""
        return {"format": f"{FORMAT}{self.name}", "version": 1}

    @abstractmethod
    def how_to_use(self, source: Source, written: Written) -> str:
        """Return the lines of Markdown that say how the form is used, for the card."""

    def used_otherwise(self, source: Source) -> str:
        """Say in a sentence how the form, used as it was shipped, comes to an output otherwise than
        Weft; "" where it does as Weft does.
        """
        return ""

    def finish(self, place: Path) -> None:  # noqa: B027
        """Finish the folder when all has been compared and the card is in it."""


def refuse_unfit(target: Target, is_certified: bool) -> None:
    """Raise MissingPackage for a package that is needed and not installed, UnfitPackage for one of
    another version or that cannot be loaded.
    """
    for package in target.writers:
        what = f"weft export --to {target.name}"
        if not is_certified:
            what += ", with --uncertified too,"
        loaded(what, package, target.extra)
    if not is_certified:
        return
    for package in target.packages:
        what = f"the certificate of weft export --to {target.name} (--uncertified writes without one)"
        loaded(what, package, target.extra)


def load(package: str) -> Any:
    """Load a package of an extra by its name."""
    return import_module(package)


def versions_of(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages, by their names."""
    return {package: version(package) for package in packages}
