"""Kernels are compiled once, and where that cannot be, training goes on without them and says so."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from weft.errors import UsageError
from weft.kernels import native, operations
from weft.machine import Machine, choose_machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for compiled kernels that nobody has used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    native.load.cache_clear()
    yield tmp_path / "cache" / "weft"
    operations.enable(False)
    native.load.cache_clear()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels, compiled once for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.mktemp("compiled")
        patch.setenv("XDG_CACHE_HOME", str(base))
        native.load.cache_clear()
        try:
            native.load()
        except native.UnavailableError as error:
            pytest.skip(f"no native kernels here: {error}")
    (kept,) = (base / "weft").iterdir()
    return kept


@pytest.fixture
def kept(compiled: Path, cache: Path) -> Path:
    """The library where this test's own cache has it."""
    cache.mkdir(mode=0o700, parents=True)
    return Path(shutil.copy(compiled, cache))


def compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """The only compiler in the path is this script."""
    folder.mkdir()
    for name in ("c++", "g++", "clang++"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


LOAD = [sys.executable, "-c", "import torch; from weft.kernels import native; native.load()"]


def copying(compiled: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes a moment and knows one library; writes down how often it made it."""
    made = folder.with_name("made")
    script = (
        f'for last; do :; done\nsleep 0.2\ncp "{compiled}" "$last"\ncase $last in *.so) echo >> "{made}";; esac'
    )
    compiler(folder, monkeypatch, script)
    return made


def test_kernels_are_kept_for_the_next_time_and_for_this_user_alone(
    compiled: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled.suffix == ".so"
    assert stat.S_IMODE(compiled.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(native, "_compile", lambda *a: pytest.fail("compiled again"))
    native.load()


def test_several_processes_may_compile_at_once(
    compiled: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying(compiled, tmp_path / "bin", monkeypatch)
    several = [subprocess.Popen(LOAD, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in several] == [b"", b"", b""]
    assert [path.name for path in cache.iterdir()] == [compiled.name]


def test_without_a_compiler_it_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = choose_machine("float32", 1, "auto")
    assert machine.kernels == "torch"
    assert "no native kernels: there is no C++ compiler" in machine.describe()
    with pytest.raises(
        UsageError, match=r"training.kernels = native: there is no C\+\+ compiler; install one \(or use auto\)"
    ):
        choose_machine("float32", 1, "native")


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    compiler(tmp_path / "bin", monkeypatch, "echo 'training.cpp:1: error: not today' >&2; exit 1")
    assert "c++ failed: training.cpp:1: error: not today" in choose_machine("float32", 1, "auto").describe()
    assert list(cache.iterdir()) == []


def test_a_compiler_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    compiler(tmp_path / "bin", monkeypatch, "exec sleep 60")
    monkeypatch.setattr(native, "SECONDS", 0.2)
    with pytest.raises(native.UnavailableError, match="took more than"):
        native.load()


def test_a_compiler_that_cannot_be_run_is_named_and_not_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    compiler(tmp_path / "bin", monkeypatch, "")
    for name in ("c++", "g++", "clang++"):
        (tmp_path / "bin" / name).write_text("#!/no/such/interpreter\n", "utf-8")
    with pytest.raises(native.UnavailableError, match=r"bin/c\+\+ cannot be run: No such file or directory"):
        native.load()
    assert not list(cache.glob("*.so"))


def test_a_cache_that_cannot_be_written_is_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    machine = choose_machine("float32", 1, "auto")
    assert machine.kernels == "torch"
    assert "no native kernels: they cannot be kept in" in machine.describe()
    assert "XDG_CACHE_HOME" in machine.describe()


def test_kept_kernels_need_no_compiler(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    native.load()


@pytest.mark.parametrize("damage", ["none of it", "half", "a byte"])
def test_a_damaged_library_is_made_again(
    damage: str, compiled: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a library would be loaded, and crash the process."""
    content = kept.read_bytes()
    half = len(content) // 2
    other = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    kept.write_bytes({"none of it": b"not a library", "half": content[:half], "a byte": other}[damage])
    made = copying(compiled, tmp_path / "bin", monkeypatch)
    subprocess.run(LOAD, check=True)
    assert made.read_text() == "\n"
    assert kept.read_bytes().startswith(content)


def test_a_run_begun_with_kernels_does_not_go_on_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = replace(Machine("cpu", "float32", 1, ""), kernels="native")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError, match=r"native kernels were chosen when the run began.*no C\+\+ compiler; install"
    ):
        chosen.prepare()


def test_kernels_are_chosen_by_measuring_and_set_by_prepare(kept: Path) -> None:
    machine = choose_machine("float32", 1, "native")
    assert machine.kernels == "native"
    assert not operations.is_native(torch.ones(1))
    assert "native kernels, 1 thread" in machine.describe()
    assert "times PyTorch's" in machine.describe()
    machine.prepare()
    assert operations.is_native(torch.ones(1))
    assert (machine.products == "onednn") == ("oneDNN's float32 products at" in machine.reason)
    replace(machine, kernels="torch").prepare()
    assert not operations.is_native(torch.ones(1))
