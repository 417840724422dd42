"""Lines for a person: wrapped at words with a hanging indent and coloured on a terminal, untouched
in a pipe.
"""

import io

import pytest

from weft.console.wording import columns, painted, remark, say_lines, wrapped

LINE = "FATAL    shifted-lines (train): from here on each source line fits the target one line before its own better"


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
    assert [len(line) - len(line.lstrip()) for line in lines[1:]] == [9] * (
        len(lines) - 1
    )
    assert " ".join(line.strip() for line in lines) == LINE
    deep = list(wrapped("    " + "word " * 30, width, 2))
    assert {len(line) - len(line.lstrip()) for line in deep[1:]} == {6}


@pytest.mark.parametrize("width", [40, 80])
def test_a_command_is_never_broken(width: int) -> None:
    command = (
        f'  weft translate runs/demo "{"She has a new bicycle. " * 4}" --output a.txt'
    )
    assert list(wrapped(command, width)) == [command]


def test_remarks_are_wrapped_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for stream, count in ((Terminal(), 2), (io.StringIO(), 1)):
        monkeypatch.setattr("sys.stderr", stream)
        remark(LINE)
        said = stream.getvalue().split("\n")[:-1]
        assert " ".join(line.strip() for line in said) == LINE
        assert len(said) == count
        assert said[0] == said[0].rstrip()


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
    rows = [
        ("a", "one two three four five six seven"),
        ("much-too-long-a-name", "x"),
        ("bcd", "y"),
    ]
    assert list(columns(rows, 27, most=5)) == [
        "  a    one two three four",
        "       five six seven",
        "  much-too-long-a-name",
        "       x",
        "  bcd  y",
    ]
