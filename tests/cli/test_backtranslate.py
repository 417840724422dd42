"""weft backtranslate at the command line: what it says, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_pairs_from_the_command_line(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "made.tsv"
    ended = command(
        "backtranslate", tiny_folder, write_pairs(9), "--output", out, "--sample"
    )
    assert (ended.code, ended.out) == (0, b""), ended.err
    assert f"{tiny_folder} translates 9 sentences" in ended.messages
    assert ended.messages[-1].startswith(f"weft: wrote {out}: ")
    assert ended.messages[-1].endswith(
        "sources (de) by the model, targets (en) by people"
    )
    assert out.read_text("utf-8").startswith("de\ten\n")


def test_pairs_that_are_there_are_never_replaced(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "made.tsv"
    asked = ("backtranslate", tiny_folder, write_pairs(3), "--output", out)
    out.write_text("de\ten\ncorrected\tby hand\n", "utf-8")
    ended = command(*asked)
    said = (
        f"weft: --output {out}: exists already; give another name, or remove it first"
    )
    assert (ended.code, ended.messages) == (2, [said])
    assert out.read_text("utf-8") == "de\ten\ncorrected\tby hand\n"
    # but those of the same command that was killed before its last operation
    (tmp_path / "made.tsv.partial.json").write_text("{}", "utf-8")
    assert command(*asked).code == 0
    assert len(out.read_text("utf-8").split("\n")) == 5
    assert sorted(tmp_path.iterdir()) == [out]


def test_in_blocks_they_are_the_same_pairs(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    outputs = (tmp_path / "alone.tsv", tmp_path / "blocks.tsv")
    pairs = write_pairs(9)
    for out, on in zip(outputs, ((), ("--on", "local", "--block", 4)), strict=True):
        ended = command("backtranslate", tiny_folder, pairs, "--output", out, *on)
        assert ended.code == 0, ended.err
    assert f"{tiny_folder} translates 9 sentences, by this process" in ended.messages
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_usage_errors(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    pairs, out = write_pairs(9), tmp_path / "made.tsv"
    for arguments, said in (
        ([tiny_folder, pairs], "--output"),
        ([tiny_folder, pairs, "--output", tmp_path / "made.txt"], "ends in .tsv"),
        ([tiny_folder, pairs, "--output", out, "--temperature", "1"], "add --sample"),
        ([tiny_folder, pairs, "--output", out, "--times", "2"], "add --sample"),
        (
            [tiny_folder, pairs, "--output", out, "--sample", "--beam-size", "2"],
            "beam_size is for a search",
        ),
        ([tiny_folder, "none.txt", "--output", out], "none.txt: no such file"),
        ([tmp_path / "none", pairs, "--output", out], "no such folder"),
    ):
        ended = command("backtranslate", *arguments)
        assert ended.code in (2, 3, 5)
        assert len(ended.messages) == 1
        assert said in ended.err
    assert not out.exists()
