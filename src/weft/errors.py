"""The errors of Weft, by kind; each has the exit code that the command line ends with.

A message is one line: what is wrong, where (file:line, key or row), and what to do about it.
"""


class WeftError(Exception):
    """The base of every error that a user can mend; printed as one line, never as a traceback."""

    exit_code = 1


class UsageError(WeftError):
    """A wrong argument, recipe key or value."""

    exit_code = 2


class MissingPackage(UsageError):
    """An optional package that is not installed, with the command that installs it."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        """Say that `what` needs the package, which an extra of Weft brings."""
        super().__init__(f"{what} needs {package}: {how_to_install(extra)}")
        self._needed = (what, package, extra)

    def within(self, folder: object) -> "MissingPackage":
        """Return the same of a model's folder, which it names."""
        what, package, extra = self._needed
        return MissingPackage(f"{folder}: {what}", package, extra)


class UnfitPackage(UsageError):
    """An optional package that has another version than is needed, or that cannot be loaded."""


class DataError(WeftError):
    """Text that cannot be read, paired or learned from."""

    exit_code = 3


class DivergedError(WeftError):
    """A loss or gradient that is not a finite number; the weights before it are kept."""

    exit_code = 4


class FolderError(WeftError):
    """A checkpoint or model folder that is missing, damaged, foreign or cannot be written."""

    exit_code = 5


class OutOfMemoryError(WeftError):
    """The memory of the machine or device is used up."""

    exit_code = 6


class Interrupted(WeftError):
    """A stop by a signal, after saving; the same command continues from there."""

    exit_code = 75


class LeftAtOnce(WeftError):
    """A Ctrl-C that a verb answers with a line of its own."""

    exit_code = 130


class OtherVersion(UserWarning):
    """The package that splits a model's text into words has another version than in training."""


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    where = "in the folder of Weft's source"
    if extra != "train":
        return f"pip install '.[{extra}]' {where}, or of a wheel pip install 'FILE.whl[{extra}]'"
    cpu = "--extra-index-url https://download.pytorch.org/whl/cpu"
    why = "the address has the smaller build for CPUs; leave it out for a GPU"
    return f"pip install '.[train]' {cpu} {where} ({why})"
