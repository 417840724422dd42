"""X7, `weft clean`: killed at any of its file operations, it leaves old files, none, or new ones,
and the same command makes them all.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weft.data import builtin

pytestmark = pytest.mark.long

# runs weft, counts operations that change files, and kills itself at one of them
PROGRAM = """
import os, runpy, signal, sys
at, count = int(sys.argv.pop(1)), 0
def counted(real):
    def operation(*args, **named):
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **named)
    return operation
for name in ("replace", "unlink", "fsync", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
try:
    runpy.run_module("weft", run_name="__main__", alter_sys=True)
finally:
    print(f"operations: {count}")
"""
OLD = "done\trule\twhere\n"  # as a list of changes begins
OUTPUTS = ("clean.en", "clean.de", "clean.changes.tsv")


def clean(folder: Path, at: int = 0) -> subprocess.CompletedProcess[str]:
    output = f"{folder / 'clean.en'},{folder / 'clean.de'}"
    given = ["clean", str(folder / "made.en-de.tsv"), "--output", output]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(at), *given],
        capture_output=True,
        text=True,
        check=False,
    )


def prepared(folder: Path) -> Path:
    """A folder with text to clean, and with files that an earlier command wrote."""
    folder.mkdir()
    pairs = builtin.pairs("everyday", "en", "de").train[:60]
    lines = [f"{src}<br>\t{tgt}\n" for src, tgt in [*pairs, pairs[0]]]
    (folder / "made.en-de.tsv").write_text("".join(lines), "utf-8")
    for name in OUTPUTS:
        (folder / name).write_text(OLD)
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text("utf-8") for p in folder.iterdir() if p.is_file()}


def test_X7_weft_clean_killed_anywhere_leaves_nothing_half_written(
    tmp_path: Path,
) -> None:
    whole = prepared(tmp_path / "whole")
    ended = clean(whole)
    assert ended.returncode == 0, ended.stderr
    count = int(ended.stdout.rpartition(": ")[2])
    assert count >= 2 * len(OUTPUTS)
    new = contents(whole)
    for at in range(1, count + 1):
        folder = prepared(tmp_path / str(at))
        assert clean(folder, at).returncode == -signal.SIGKILL
        found = [contents(folder).get(name, "") for name in OUTPUTS]
        wanted = [new[name].replace("/whole/", f"/{at}/") for name in OUTPUTS]
        is_old = {text == OLD for text in found if text}
        assert len(is_old) <= 1, f"old beside new after operation {at}"
        if is_old == {False}:
            assert all(one in ("", two) for one, two in zip(found, wanted, strict=True))
        assert clean(folder).returncode == 0
        assert [contents(folder)[name] for name in OUTPUTS] == wanted
        assert [path.name for path in folder.glob(".weft-tmp-*")] == []
