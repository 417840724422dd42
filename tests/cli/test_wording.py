"""Lines for a person: wrapped at words with a hanging indent and coloured on a terminal, untouched in a pipe."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.cli.wording import columns, painted, say_lines, wrapped

LINE = (
    "FATAL    shifted-lines (train): from here on each source line fits the target one line before its own better"
)


class Terminal(io.StringIO):
    """A stream that says that somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_words_stay_whole_and_the_rest_hangs(width: int) -> None:
    lines = list(wrapped(LINE, width, 9))
    assert max(map(len, lines)) <= width
    assert [line[:9] for line in lines[1:]] == [" " * 9] * (len(lines) - 1)
    assert [len(line) - len(line.lstrip()) for line in lines[1:]] == [9] * (len(lines) - 1)
    assert " ".join(line.strip() for line in lines) == LINE
    deep = list(wrapped("    " + "word " * 30, width, 2))
    assert {len(line) - len(line.lstrip()) for line in deep[1:]} == {6}


def test_a_pipe_gets_the_line_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    pipe = io.StringIO()
    say_lines([LINE, "weft: wrong"], pipe)
    assert pipe.getvalue() == f"{LINE}\nweft: wrong\n"


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    say_lines([LINE, "no mark"], terminal, 9)
    assert terminal.getvalue().startswith("\x1b[1;31mFATAL\x1b[0m    shifted-lines")
    assert terminal.getvalue().count("\x1b") == 2
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert painted("x", "bold", Terminal()) == "x"
    assert painted("x", "bold", io.StringIO()) == "x"


def test_columns_stand_beside_each_other() -> None:
    rows = [("a", "one two three four five six seven"), ("much-too-long-a-name", "x"), ("bcd", "y")]
    assert list(columns(rows, 27, most=5)) == [
        "  a    one two three four",
        "       five six seven",
        "  much-too-long-a-name",
        "       x",
        "  bcd  y",
    ]


def test_a_terminal_shows_few_examples_and_says_where_the_others_are(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    rows = "".join(f"the text <b>number</b> {i} is like this\t{'good' if i % 2 else 'bad'}\n" for i in range(300))
    (tmp_path / "r.tsv").write_text(f"text\tlabel\n{rows}" + "the same text again\tgood\n" * 9)
    ended = command("check", tmp_path / "r.tsv")
    blocks = "\n".join(ended.lines).split("\n\n")[1:-1]
    assert blocks
    for block in blocks:
        examples = [line for line in block.split("\n") if line.startswith(" " * 11)]
        assert len(examples) <= (1 if block.startswith("NOTE") else 3), block
    assert " more examples, lengths and scripts: --output report.html" in ended.lines[-2]
