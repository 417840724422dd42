"""Kernels are compiled once, and where that cannot be, training goes on without them and says
so.
"""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from weft.errors import UsageError
from weft.kernels import (
    compiling,
    levels,
    native,
    operations,
    torch_machine,
    training,
)
from weft.kernels.machine import Machine
from weft.kernels.torch_machine import choose_machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for compiled kernels that nobody has used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    native.load.cache_clear()
    yield tmp_path / "cache" / "weft"
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


LOAD = [
    sys.executable,
    "-c",
    "import torch; from weft.kernels import native; native.load()",
]


def copying(compiled: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes a moment and knows one library; writes down how often it made it."""
    made = folder.with_name("made")
    script = f'for last; do :; done\nsleep 0.2\ncp "{compiled}" "$last"\ncase $last in *.so) echo >> "{made}";; esac'
    compiler(folder, monkeypatch, script)
    return made


@pytest.mark.long
def test_kernels_are_kept_for_the_next_time_and_for_this_user_alone(
    compiled: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled.suffix == ".so"
    assert stat.S_IMODE(compiled.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(compiling, "_compile", lambda *a: pytest.fail("compiled again"))
    native.load()


@pytest.mark.long
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
        UsageError,
        match=r"training.kernels = native: there is no C\+\+ compiler; install one \(or use auto\)",
    ):
        choose_machine("float32", 1, "native")


def test_a_machine_that_does_not_tell_its_cpu_goes_on_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setattr(compiling, "_CPU_FACTS", tmp_path / "cpuinfo")
    machine = choose_machine("float32", 1, "auto")
    assert machine.kernels == "torch"
    assert "no native kernels: they are kept by the CPU's facts:" in machine.describe()


def test_a_compiler_that_fails_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    compiler(
        tmp_path / "bin",
        monkeypatch,
        "echo 'training.cpp:1: error: not today' >&2; exit 1",
    )
    assert (
        "c++ failed: training.cpp:1: error: not today"
        in choose_machine("float32", 1, "auto").describe()
    )
    assert [path.suffix for path in cache.iterdir()] == [".failed"]


def counting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compilers that fail, and write a line for each time that one is called."""
    calls = folder.with_name("calls")
    compiler(
        folder,
        monkeypatch,
        f"echo $0 >> '{calls}'; echo 'error: not today' >&2; exit 1",
    )
    return calls


def test_what_failed_is_not_tried_at_every_start_but_when_asked_or_with_another_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    calls = counting(tmp_path / "bin", monkeypatch)
    with pytest.raises(native.UnavailableError, match="not today"):
        native.load()
    assert len(calls.read_text().split()) == 3, "each compiler has had its try"
    with pytest.raises(
        native.UnavailableError,
        match=r"not today.*at an earlier start; to try again, remove",
    ) as said:
        native.load()
    assert len(calls.read_text().split()) == 3
    (record,) = cache.iterdir()
    assert str(record) in str(said.value)
    record.unlink()
    with pytest.raises(native.UnavailableError, match="not today"):
        native.load()
    assert len(calls.read_text().split()) == 6
    (tmp_path / "bin" / "g++").write_text(
        "#!/bin/sh\necho 'error: nor tomorrow' >&2; exit 1\n"
    )
    with pytest.raises(native.UnavailableError, match="nor tomorrow"):
        native.load()


def test_after_a_compiler_that_fails_another_is_tried(
    compiled: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying(compiled, tmp_path / "bin", monkeypatch)
    for name in ("c++", "g++"):
        (tmp_path / "bin" / name).write_text(
            "#!/bin/sh\necho 'error: too old' >&2; exit 1\n"
        )
    native.load()
    assert [path.suffix for path in cache.iterdir()] == [".so"]


def test_names_of_one_compiler_are_one_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = counting(tmp_path / "bin", monkeypatch)
    for name in ("c++", "clang++"):
        (tmp_path / "bin" / name).unlink()
        (tmp_path / "bin" / name).symlink_to("g++")
    with pytest.raises(native.UnavailableError, match="not today"):
        native.load()
    assert calls.read_text() == f"{tmp_path / 'bin' / 'c++'}\n"


@pytest.mark.parametrize(
    "harm",
    [
        "folder open to all",
        "folder open to a group",
        "folder of another",
        "link of another",
    ],
)
def test_a_folder_where_others_could_put_a_library_is_refused(
    harm: str, kept: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code would run here, as this user."""
    monkeypatch.setattr(native, "_loaded", lambda path: pytest.fail("loaded"))
    if "open" in harm:
        cache.chmod(0o777 if "all" in harm else 0o770)
    if "link" in harm:
        cache.rename(cache.with_name("elsewhere"))
        cache.symlink_to("elsewhere")
    if "another" in harm:
        if (own := os.geteuid()) == 0:  # root's files are everybody's to trust
            os.lchown(cache, 12345, 12345)
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(
        native.UnavailableError, match="belongs to another user, or others can write it"
    ) as said:
        native.load()
    assert "of your own that nobody else can write" in str(said.value)


def test_a_library_that_others_can_write_is_made_again(
    compiled: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.chmod(0o777)
    made = copying(compiled, tmp_path / "bin", monkeypatch)
    native.load()
    assert made.read_text() == "\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_a_cache_named_relatively_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the XDG base directory specification; else it would be whatever lies in the folder that
    one stands in.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert compiling._folder() == tmp_path / "home" / ".cache" / "weft"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert compiling._folder() == tmp_path / "home" / ".cache" / "weft"


def test_a_runtime_whose_path_has_spaces_is_found_and_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my venv").mkdir()
    runtime = shutil.copy(native._openmp_runtime(), tmp_path / "my venv")
    maps = tmp_path / "maps"
    lines = (
        "7f31a0000000-7f31a0021000 rw-p 00000000 00:00 0 \n"
        "7f31a4c00000-7f31a4c9a000 r--p 00000000 08:01 2490416    /opt/a b/libgomp-notes.txt\n"
        f"7f31a5000000-7f31a5040000 r-xp 00008000 08:01 2490417    {runtime}\n"
    )
    maps.write_text(lines, "utf-8")
    assert native._openmp_runtime(maps) == runtime
    (compilers := compiling._compilers()) or pytest.skip("no compiler")
    source = tmp_path / "training.cpp"
    source.write_text('extern "C" int sum() {\nint s = 0;\n#pragma omp parallel for reduction(+ : s)\n'
                      "for (int i = 0; i < 5; i++) s += i;\nreturn s; }\n")  # fmt: skip
    flags = ("-O2", "-fPIC")
    compiling._compile(compilers[0], source, runtime, flags, tmp_path / "sum.so")
    assert native._loaded(tmp_path / "sum.so").sum() == 10


def test_lanes_are_shuffled_alike_whatever_the_compiler_knows(tmp_path: Path) -> None:
    """GCC below 12 has no `__builtin_shufflevector`; its own form is asked for here."""
    (compilers := compiling._compilers()) or pytest.skip("no compiler")
    source = tmp_path / "lanes.cpp"
    source.write_text(
        f"""#include "{levels.SHARED}"
extern "C" void lanes(float* x, float* total) {{
    *total = across(read(x), sum_of);
    write(x, rotated<1>(read(x), std::make_index_sequence<LANES>()));
}}
""",
        "utf-8",
    )
    found = []
    for more in ((), ("-DPLAIN_SHUFFLES",)):
        library = tmp_path / f"lanes{len(more)}.so"
        flags = (*levels.FLAGS, *compiling.native_flags(), *more)
        compiling._compile(compilers[0], source, "", flags, library)
        numbers, total = (ctypes.c_float * 16)(*range(16)), ctypes.c_float()
        native._loaded(library).lanes(numbers, ctypes.byref(total))
        found.append([*numbers, total.value])
    lanes = int(found[0][:16].index(0.0)) + 1
    assert lanes in (4, 8, 16)
    assert (
        found[0]
        == found[1]
        == [*range(1, lanes), 0, *range(lanes, 16), sum(range(lanes))]
    )


@pytest.mark.long
def test_compilers_without_shufflevector_make_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiled: Path
) -> None:
    """As GCC below 12: their own form of it is asked for, and what shuffles lanes computes the
    same.
    """
    x = torch.randn(
        3, 2, 37, 19, generator=torch.Generator().manual_seed(1), requires_grad=True
    )

    def results() -> list[torch.Tensor]:
        native.load.cache_clear()
        rows = x.detach().view(222, 19)
        across = torch.empty(19, 222)
        with operations.using(True):
            out = operations.attention(x, x, x)
            training.call("transposed", rows, rows, across, 222, 19, 19)
            (grad,) = torch.autograd.grad(out.square().sum(), x)
        assert torch.equal(across, rows.T)
        return [out.detach(), grad, across]

    shutil.copytree(compiled.parent, tmp_path / "cache" / "weft")
    expected = results()
    monkeypatch.setattr(levels, "FLAGS", (*levels.FLAGS, "-DPLAIN_SHUFFLES"))
    assert all(torch.equal(a, b) for a, b in zip(expected, results(), strict=True))
    assert len(list((tmp_path / "cache" / "weft").glob("*.so"))) == 2


def test_a_compiler_that_hangs_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    compiler(tmp_path / "bin", monkeypatch, "exec sleep 60")
    monkeypatch.setattr(compiling, "SECONDS", 0.2)
    with pytest.raises(native.UnavailableError, match="took more than"):
        native.load()


def test_a_compiler_that_cannot_be_run_is_named_and_not_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    compiler(tmp_path / "bin", monkeypatch, "")
    for name in ("c++", "g++", "clang++"):
        (tmp_path / "bin" / name).write_text("#!/no/such/interpreter\n", "utf-8")
    with pytest.raises(
        native.UnavailableError,
        match=r"bin/c\+\+ cannot be run: No such file or directory",
    ):
        native.load()
    assert not list(cache.glob("*.so"))


def test_a_cache_that_cannot_be_written_is_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    machine = choose_machine("float32", 1, "auto")
    assert machine.kernels == "torch"
    assert "no native kernels: they cannot be kept in" in machine.describe()
    assert "XDG_CACHE_HOME" in machine.describe()


def test_kept_kernels_need_no_compiler(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    native.load()


@pytest.mark.parametrize(
    "damage",
    [
        "half",
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in ("none of it", "a byte")
        ),
    ],
)
def test_a_damaged_library_is_made_again(
    damage: str,
    compiled: Path,
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a library would be loaded, and crash the process."""
    content = kept.read_bytes()
    half = len(content) // 2
    other = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    kept.write_bytes(
        {"none of it": b"not a library", "half": content[:half], "a byte": other}[
            damage
        ]
    )
    made = copying(compiled, tmp_path / "bin", monkeypatch)
    subprocess.run(LOAD, check=True)
    assert made.read_text() == "\n"
    assert kept.read_bytes().startswith(content)


def test_a_run_begun_with_kernels_does_not_go_on_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = replace(Machine("cpu", "float32", 1, ""), kernels="native")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError,
        match=r"native kernels were chosen when the run began.*no C\+\+ compiler; install",
    ):
        torch_machine.prepare(chosen)


def test_no_clock_chooses_the_kernels(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the same command would be one of two runs, by what else the machine does."""

    def refuse(*work: object) -> float:
        raise AssertionError("the clock was asked")

    monkeypatch.setattr("weft.kernels.torch_machine._seconds", refuse)
    chosen = [choose_machine("float32", 1, kernels) for kernels in ("auto", "native")]
    assert {machine.kernels for machine in chosen} == {"native"}
    assert len({machine.products for machine in chosen}) == 1


def test_without_threads_auto_takes_them_for_one_alone(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "has_threads", lambda: False)
    assert choose_machine("float32", 1, "auto").kernels == "native"
    several = choose_machine("float32", 2, "auto")
    assert several.kernels == "torch"
    assert "as compiled here, have one thread" in several.describe()
    assert choose_machine("float32", 2, "native").kernels == "native"


def test_the_kernels_chosen_are_taken_while_computing(kept: Path) -> None:
    machine = choose_machine("float32", 1, "native")
    assert machine.kernels == "native"
    assert not operations.is_native(torch.ones(1))
    assert "native kernels, 1 thread" in machine.describe()
    with torch_machine.computing(machine):
        assert operations.is_native(torch.ones(1))
        with torch_machine.computing(replace(machine, kernels="torch")):
            assert not operations.is_native(torch.ones(1))
        assert operations.is_native(torch.ones(1))
    assert not operations.is_native(torch.ones(1))


def test_the_kernels_of_one_thread_are_not_those_of_another(kept: Path) -> None:
    """A model is trained by PyTorch's operations beside one that the kernels train."""
    layer = torch.nn.LayerNorm(8)
    x = torch.ones(2, 8, requires_grad=True)

    def name_of_backward() -> str:
        return type(operations.normed(x, layer).grad_fn).__name__

    with torch_machine.computing(choose_machine("float32", 1, "native")):
        with ThreadPoolExecutor(1) as other:
            assert other.submit(name_of_backward).result() == "NativeLayerNormBackward0"
        assert name_of_backward() == "NormBackward"
        graph = operations.normed(x, layer).sum()
    with pytest.raises(RuntimeError, match="no kernels are in use"):
        graph.backward()
