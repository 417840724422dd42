"""The errors of Weft, by kind; each has the exit code that the command line ends with.

A message is one line: what is wrong, where (file:line, key or row), and what to do about it.
"""


class WeftError(Exception):
    """The base of every error that a user can mend; printed as one line, never as a traceback."""

    exit_code = 1


class UsageError(WeftError):
    """A wrong argument, recipe key or value."""

    exit_code = 2


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
