import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.errors import FolderError, UsageError
from weft.folder import durable

Write = Callable[[Path], None]


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished folder of two files, one of them in a folder of its own."""
    path = tmp_path / "model"
    with durable.writing_folder(path, {"step": 7}) as temporary:
        (temporary / "weights.bin").write_bytes(bytes(range(256)))
        (temporary / "run").mkdir()
        (temporary / "run" / "说明.txt").write_text("文字", encoding="utf-8")
    return path


def no_space(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("content", [b"", b"\x00\xff\r\n\r", "文".encode()])
def test_bytes_as_they_are(tmp_path: Path, content: bytes) -> None:
    durable.write_bytes(tmp_path / "a", content)
    assert (tmp_path / "a").read_bytes() == content
    assert names(tmp_path) == ["a"]


def test_text_is_utf8_and_line_ends_stay(tmp_path: Path) -> None:
    durable.write_text(tmp_path / "a", "a\r\nb\n\u2028文")
    assert (tmp_path / "a").read_bytes() == "a\r\nb\n\u2028文".encode()


def test_writing_again_replaces(tmp_path: Path) -> None:
    durable.write_text(tmp_path / "a", "a long first text")
    durable.write_text(tmp_path / "a", "short")
    assert (tmp_path / "a").read_text() == "short"


def test_json_keeps_unicode_and_reads_back(tmp_path: Path) -> None:
    value = {"text": "你好\u2028", "list": [1, 2.5, None, True], "empty": {}}
    durable.write_json(tmp_path / "a.json", value)
    assert "你好" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert (tmp_path / "a.json").read_bytes().endswith(b"}\n")
    assert durable.read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_has_no_nan(tmp_path: Path, number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        durable.write_json(tmp_path / "a.json", {"loss": number})
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    durable.write_text(tmp_path / "a", "old")
    monkeypatch.setattr(os, step, no_space)
    with pytest.raises(
        FolderError,
        match=r"a: cannot be written \(No space left on device\); make room",
    ):
        durable.write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_content_is_on_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is: flush the content, take the name, flush the folder's entries."""
    events: list[str] = []
    sync, replace = durable.sync, os.replace

    def seen_sync(path: Path) -> None:
        events.append("sync folder" if path.is_dir() else f"sync {path.read_text()}")
        sync(path)

    def seen_replace(source: Path, target: Path) -> None:
        events.append("replace")
        replace(source, target)

    monkeypatch.setattr(durable, "sync", seen_sync)
    monkeypatch.setattr(os, "replace", seen_replace)
    durable.write_text(tmp_path / "a", "new")
    assert events == ["sync new", "replace", "sync folder"]


def test_every_entry_of_a_folder_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    sync = durable.sync

    def seen_sync(path: Path) -> None:
        flushed.append(path.name)
        sync(path)

    monkeypatch.setattr(durable, "sync", seen_sync)
    with durable.writing_folder(tmp_path / "model") as temporary:
        (temporary / "run").mkdir()
        (temporary / "run" / "state").write_text("x")
    assert {"run", "state"} <= set(flushed)
    assert flushed[-1] == tmp_path.name


@pytest.mark.parametrize(
    "place",
    ["missing/a", "file/a", "folder"],
    ids=["no such folder", "inside a file", "a folder"],
)
def test_impossible_places(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FolderError, match="cannot be written"):
        durable.write_text(tmp_path / place, "new")
    assert names(tmp_path) == ["file", "folder"]


def test_error_inside_replacing_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with durable.replacing(tmp_path / "a") as temporary:
            temporary.write_text("half")
            assert names(tmp_path) == [temporary.name]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


def test_what_a_killed_writer_left_goes_with_the_next_and_nothing_of_another_file(
    tmp_path: Path,
) -> None:
    pytest.importorskip("fcntl")
    path, other = tmp_path / "made.tsv", tmp_path / "other.tsv"
    left = {}
    for one in (path, other):
        with durable.replacing(one) as temporary:
            temporary.write_text("whole")
        left[one] = temporary
        temporary.write_text("half")
    with durable.collecting(path, {}):
        assert {*tmp_path.glob(f"{durable.TEMPORARY}*")} == {left[other]}
        durable.write_text(path, "new")
    assert {*tmp_path.iterdir()} == {path, other, left[other]}


def test_every_file_has_the_usual_mode(tmp_path: Path) -> None:
    """Whoever wrote it: a library that makes its file private must not lock colleagues out."""
    (tmp_path / "plain").touch()
    with durable.replacing(tmp_path / "a") as temporary:
        temporary.touch(mode=0o600)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_write_leaves_the_umask_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to the whole process: what another thread makes meanwhile would be open to
    everybody.
    """
    monkeypatch.setattr(
        os, "umask", lambda mask: pytest.fail("set the umask of the process")
    )
    durable.write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_has_the_mode_that_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    script = (
        "import os, sys; from pathlib import Path; from weft.folder import durable; "
        f"os.umask({mask}); durable.write_text(Path(sys.argv[1]), 'new')"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], check=True)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_system_without_file_locks_can_write_and_says_that_nothing_is_locked(
    tmp_path: Path,
) -> None:
    """As Windows, which has no fcntl: the module is hidden from a process of its own."""
    script = """
import sys
from pathlib import Path
sys.modules["fcntl"] = None
from weft.folder import durable
folder = Path(sys.argv[1])
with durable.held(folder / "lock", folder) as locked:
    durable.write_text(folder / "a", "new")
with durable.growing(folder / "b", {}) as (file, lines):
    file.write(b"line")
print(locked)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True
    )
    assert done.stdout == b"False\n"
    assert (tmp_path / "a").read_text() + (tmp_path / "b").read_text() == "newline"


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b")
    durable.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(
        FolderError, match=r"file/x: cannot be written \(Not a directory\)"
    ):
        durable.make_folder(tmp_path / "file" / "x")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        FolderError,
        match=r"new/a\.txt: cannot be written \(there is no folder .*new\); make it first",
    ):
        durable.write_text(tmp_path / "new" / "a.txt", "x")


def test_nothing_written_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(FolderError, match="cannot be written"),
        durable.replacing(tmp_path / "a"),
    ):
        pass
    assert names(tmp_path) == []


def test_folder_lists_its_files(folder: Path) -> None:
    manifest = durable.read_manifest(folder)
    assert manifest["step"] == 7
    assert list(manifest["files"]) == ["run/说明.txt", "weights.bin"]
    assert manifest["files"]["weights.bin"] == {
        "size": 256,
        "sha256": hashlib.sha256(bytes(range(256))).hexdigest(),
    }
    assert names(folder) == ["manifest.json", "run", "weights.bin"]
    assert names(folder.parent) == ["model"]


def test_facts_cannot_hide_the_files(tmp_path: Path) -> None:
    with durable.writing_folder(tmp_path / "model", {"files": {}}) as temporary:
        (temporary / "a").write_text("x")
    assert list(durable.read_manifest(tmp_path / "model")["files"]) == ["a"]


def test_an_old_manifest_is_not_listed_in_the_new(tmp_path: Path, folder: Path) -> None:
    with durable.writing_folder(tmp_path / "copy") as temporary:
        for name in ("manifest.json", "weights.bin"):
            (temporary / name).write_bytes((folder / name).read_bytes())
    assert list(durable.read_manifest(tmp_path / "copy")["files"]) == ["weights.bin"]


def test_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    with durable.writing_folder(tmp_path / "runs" / "en-zh") as temporary:
        (temporary / "a").write_text("x")
    assert names(tmp_path / "runs" / "en-zh") == ["a", "manifest.json"]


def test_folder_is_never_written_over(folder: Path) -> None:
    with (
        pytest.raises(FolderError, match="model: exists already"),
        durable.writing_folder(folder) as temporary,
    ):
        temporary.joinpath("a").write_text("x")
    assert durable.read_manifest(folder)["step"] == 7
    assert names(folder.parent) == ["model"]


def test_folder_appears_only_at_the_end(tmp_path: Path) -> None:
    def failing() -> None:
        with durable.writing_folder(tmp_path / "model") as temporary:
            (temporary / "a").write_text("x")
            assert not (tmp_path / "model").exists()
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        failing()
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def write() -> None:
        with durable.writing_folder(tmp_path / "model") as temporary:
            (temporary / "a").write_text("x")
            monkeypatch.setattr(os, step, no_space)

    with pytest.raises(FolderError, match=r"No space left on device"):
        write()
    assert names(tmp_path) == []


def damage(folder: Path, how: str) -> None:
    weights = folder / "weights.bin"
    content = weights.read_bytes()
    if how == "missing":
        weights.unlink()
    elif how == "shorter":
        weights.write_bytes(content[:-1])
    elif how == "one bit":
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how == "a folder instead":
        weights.unlink()
        weights.mkdir()


@pytest.mark.parametrize("how", ["missing", "shorter", "one bit", "a folder instead"])
def test_damage_is_found_and_named(folder: Path, how: str) -> None:
    damage(folder, how)
    with pytest.raises(FolderError, match=r"weights\.bin: (missing|differs)") as caught:
        durable.read_manifest(folder)
    assert "\n" not in str(caught.value)


def test_unlisted_files_are_left_alone(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    assert durable.read_manifest(folder)["step"] == 7


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {},
        {"files": []},
        {"files": {"weights.bin": 3}},
        {"files": {"weights.bin": {}}},
        {"files": {"weights.bin": {"size": "256", "sha256": None}}},
        {"files": {"../model/weights.bin": {"size": 256}}},
        {"files": {"/etc/hostname": {"size": 256}}},
        {"files": {"": {}}},
        {"files": {"x" * 5000: {}}},
        {"files": {"a\0b": {}}},
    ],
    ids=lambda value: json.dumps(value)[:30],
)
def test_malformed_manifest(folder: Path, manifest: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FolderError):
        durable.read_manifest(folder)


def test_manifest_may_not_reach_outside(folder: Path, tmp_path: Path) -> None:
    """A right size and hash do not help a file that is not in the folder."""
    outside = tmp_path / "outside"
    outside.write_text("x")
    for name in ("../outside", str(outside)):
        entry = {"size": 1, "sha256": durable.sha256_of(outside)}
        (folder / "manifest.json").write_text(json.dumps({"files": {name: entry}}))
        with pytest.raises(FolderError, match="malformed"):
            durable.read_manifest(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"9" * 5000, "not valid JSON"),
    ],
    ids=["empty", "cut", "nan", "infinity", "not UTF-8", "deep", "long number"],
)
def test_damaged_json(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FolderError, match=message) as caught:
        durable.read_json(tmp_path / "a.json")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_json_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"gone\.json: missing"):
        durable.read_json(tmp_path / "gone.json")
    with pytest.raises(FolderError, match="cannot be read"):
        durable.read_json(tmp_path)
    (tmp_path / "big.json").write_text(json.dumps("x" * 100))
    with pytest.raises(FolderError, match="102 bytes; expected at most 101"):
        durable.read_json(tmp_path / "big.json", limit=101)
    assert durable.read_json(tmp_path / "big.json", limit=102) == "x" * 100


def test_sha256_of_a_known_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")  # the example of FIPS 180-2, appendix B.1
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert durable.sha256_of(tmp_path / "a") == digest


STOP = """
import os, sys
from pathlib import Path
from weft.folder import durable
folder = Path(sys.argv[1])
if sys.argv[2] == "file":
    with durable.replacing(folder / "a") as temporary:
        temporary.write_text("new")
        os._exit(9)
with durable.writing_folder(folder / "model") as temporary:
    (temporary / "a").write_text("new")
    os._exit(9)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_killed_writer_leaves_the_old_state(tmp_path: Path, what: str) -> None:
    (tmp_path / "a").write_text("old")
    code = subprocess.run(
        [sys.executable, "-c", STOP, str(tmp_path), what], timeout=60, check=False
    ).returncode
    assert code == 9
    assert (tmp_path / "a").read_text() == "old"
    assert not (tmp_path / "model").exists()
    (leftover,) = (p for p in tmp_path.iterdir() if p.name != "a")
    assert leftover.name.startswith(durable.TEMPORARY)
    durable.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["a"]


def test_leftovers_of_a_missing_folder(tmp_path: Path) -> None:
    durable.remove_leftovers(tmp_path / "none")
    assert names(tmp_path) == []


# A file that grows
# --------------------------------------------------------------------------------------


class StoppedError(Exception):
    """What ends a writer before its file is whole."""


def grown(
    path: Path, lines: list[str], facts: dict[str, Any], stop_after: int | None = None
) -> int:
    """Write the lines that are not there yet; how many were. Stops in the midst of a line, where
    asked.
    """
    with durable.growing(path, facts) as (file, done):
        for number, line in enumerate(lines[done:], start=done):
            if number == stop_after:
                file.write(line.encode()[:2])
                file.flush()
                raise StoppedError
            file.write(f"{line}\n".encode())
    return done


LINES = ["eins", "zwei", "文字", "vier", "fünf"]


@pytest.mark.parametrize("stop_after", range(5))
def test_a_growing_file_goes_on_after_its_last_whole_line(
    tmp_path: Path, stop_after: int
) -> None:
    with pytest.raises(StoppedError):
        grown(tmp_path / "a", LINES, {"of": 1}, stop_after)
    assert names(tmp_path) == ["a.partial", "a.partial.json"]
    assert grown(tmp_path / "a", LINES, {"of": 1}) == stop_after
    assert (tmp_path / "a").read_text("utf-8") == "".join(f"{line}\n" for line in LINES)
    assert names(tmp_path) == ["a"]


def test_what_it_began_with_is_named_where_that_is_known(tmp_path: Path) -> None:
    begun = {"names of memories": ["a.tmx", "b.tmx"], "memories": ["1", "2"]}
    with pytest.raises(StoppedError):
        grown(tmp_path / "a", LINES, begun, 3)
    other = {"names of memories": ["c.tmx"], "memories": ["3"]}
    said = r"started with another memory \(it was a.tmx, b.tmx\); give the same, or"
    with pytest.raises(UsageError, match=said):
        grown(tmp_path / "a", LINES, other)
    # the name alone does not count
    assert grown(tmp_path / "a", LINES, begun | {"names of memories": ["c"]}) == 3


@pytest.mark.parametrize("damage", ["another", "broken", "absent", "list"])
def test_what_began_with_other_facts_is_kept_and_said(
    tmp_path: Path, damage: str
) -> None:
    with pytest.raises(StoppedError):
        grown(tmp_path / "a", LINES, {"of": 1, "by": 2}, 3)
    partial, record = tmp_path / "a.partial", tmp_path / "a.partial.json"
    before, facts = (
        partial.read_bytes(),
        {"of": 1, "by": 3 if damage == "another" else 2},
    )
    if damage == "absent":
        record.unlink()
    elif damage != "another":
        record.write_text("{" if damage == "broken" else "[]", "utf-8")
    said = {
        "another": "started with another by; give the same, or",
        "list": "another of, by",
    }
    with pytest.raises(
        UsageError, match=said.get(damage, "what it was started with is not known")
    ):
        grown(tmp_path / "a", LINES[::-1], facts)
    assert partial.read_bytes() == before
    partial.unlink()
    assert grown(tmp_path / "a", LINES[::-1], facts) == 0
    assert (tmp_path / "a").read_text("utf-8") == "".join(
        f"{line}\n" for line in LINES[::-1]
    )
    assert names(tmp_path) == ["a"]


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    with durable.growing(tmp_path / "a", {}) as (file, _):
        file.write(b"mine\n")
        with pytest.raises(
            UsageError,
            match="another process is writing it; wait for it, or give another --output",
        ):
            grown(tmp_path / "a", LINES, {})
    assert (tmp_path / "a").read_bytes() == b"mine\n"


def test_a_full_disk_leaves_what_is_there_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_space)
        with pytest.raises(
            FolderError, match=r"cannot be written \(No space left on device\)"
        ):
            grown(tmp_path / "a", LINES, {})
    assert not (tmp_path / "a").exists()


def test_a_writer_that_never_wrote_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoppedError), durable.growing(tmp_path / "a", {}):
        raise StoppedError
    assert names(tmp_path) == []
