"""The forms in which the table of a sweep can be had."""

from enum import StrEnum


class Form(StrEnum):
    """A form of a table, by its name on the command line."""

    TEXT = "text"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"
