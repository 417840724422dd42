"""A CPU gets the best library that it can run, the wheel's or compiled; all compute the same."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from weft.errors import UsageError
from weft.kernels import compiling, levels, native
from weft.kernels.levels import LEVELS, Level

TRAINING, DECODING = levels.SOURCES
ROOT = Path(__file__).parents[2]
HERE = [level.name for level in levels.levels_of(levels.instructions())]
on_x86 = pytest.mark.skipif(not HERE, reason="this CPU has none of the levels")

# What Linux says of CPUs, as far as it matters, and the level that each has.
NEHALEM = "fpu sse sse2 pni ssse3 sse4_1 sse4_2 popcnt"
SANDY_BRIDGE = f"{NEHALEM} avx"
HASWELL = f"{SANDY_BRIDGE} f16c fma avx2 bmi1 bmi2"
ALDER_LAKE = f"{HASWELL} avx_vnni"
KNIGHTS_LANDING = f"{HASWELL} avx512f avx512cd avx512er avx512pf"
SKYLAKE_SERVER = f"{HASWELL} avx512f avx512dq avx512cd avx512bw avx512vl"
ICE_LAKE = f"{SKYLAKE_SERVER} avx512_vnni"
SAPPHIRE_RAPIDS = f"{ICE_LAKE} avx_vnni avx512_bf16"
CPUS = {
    "fpu sse sse2 pni ssse3": None,
    NEHALEM: "sse4.1",
    SANDY_BRIDGE: "sse4.1",
    HASWELL: "avx2",
    ALDER_LAKE: "avx2",
    KNIGHTS_LANDING: "avx2",
    SKYLAKE_SERVER: "avx512",
    ICE_LAKE: "avx512-vnni",
    SAPPHIRE_RAPIDS: "avx512-bf16",
}


def level_of(cpu: str) -> Level:
    return levels.levels_of(frozenset(cpu.split()))[0]


def test_a_cpu_has_the_highest_level_whose_instructions_are_all_there() -> None:
    for cpu, name in CPUS.items():
        found = [level.name for level in levels.levels_of(frozenset(cpu.split()))]
        names = [level.name for level in LEVELS]
        known = names[: names.index(name) + 1] if name else []
        assert found == known[::-1], cpu


def test_instructions_are_read_as_linux_writes_them(tmp_path: Path) -> None:
    about = tmp_path / "cpuinfo"
    assert levels.instructions(about) == frozenset()
    about.write_text("processor\t: 0\nflags\t\t: fpu avx2\nvmx flags\t: ept\n\n" * 2)
    assert levels.instructions(about) == {"fpu", "avx2"}
    about.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert levels.instructions(about) == frozenset()


def test_a_name_belongs_to_one_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of an older source is not taken for that of the one beside it."""
    source, shared = tmp_path / "training.cpp", tmp_path / "vectors.h"
    monkeypatch.setattr(levels, "SHARED", shared)
    names = set()
    for text, header in (("a", "b"), ("ab", ""), ("", "ab"), ("a", "c")):
        source.write_text(text)
        shared.write_text(header)
        names.add(levels.file_name(source, LEVELS[0], False))
    assert len(names) == 4
    every = {
        levels.file_name(DECODING, level, threads)
        for level in LEVELS
        for threads in (False, True)
    }
    assert len(every) == 2 * len(LEVELS)


def test_cmake_is_told_of_every_library() -> None:
    """By the file alone, as where a wheel is made: with nothing of Weft's installed."""
    command = [sys.executable, "-I", str(Path(levels.__file__))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert lines == list(levels.plan())
    assert len(lines) == len({line.split()[1] for line in lines})
    for level in LEVELS:
        for source, has_threads in (
            (DECODING, False),
            (TRAINING, False),
            (TRAINING, True),
        ):
            name = levels.file_name(source, level, has_threads)
            assert any(f" {name} " in line for line in lines), level
    for line in lines:
        source, name, *flags = line.split()
        assert Path(source) in levels.SOURCES
        assert ("-fopenmp" in flags) == ("-threads-" in name)
        assert not any("native" in flag for flag in flags)


@on_x86
@pytest.mark.long
@pytest.mark.parametrize(
    "level", [level for level in LEVELS if level.wide], ids=lambda level: level.name
)
def test_a_level_shares_a_library_that_is_the_same(
    level: Level, tmp_path: Path
) -> None:
    """Code that a compiler makes of the training source, with and without narrow products."""
    (compilers := compiling._compilers()) or pytest.skip("no compiler")
    (wide,) = (one for one in LEVELS if one.name == level.wide)
    made = []
    for flags in (wide.flags, level.flags):
        out = tmp_path / "training.o"
        command = [
            compilers[0],
            *levels.flags_of(TRAINING),
            *flags,
            "-c",
            str(TRAINING),
        ]
        subprocess.run([*command, "-o", str(out)], check=True)
        made.append(out.read_bytes())
    assert made[0] == made[1]
    assert levels.file_name(TRAINING, level, False) == levels.file_name(
        TRAINING, wide, False
    )


# ---- which library is taken ------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a wheel's libraries, still empty, on a Sapphire Rapids without a compiler."""
    folder = tmp_path / "built"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(levels, "BUILT", folder)
    monkeypatch.setattr(
        levels, "instructions", lambda: frozenset(SAPPHIRE_RAPIDS.split())
    )
    monkeypatch.setattr(native, "_openmp_runtime", lambda: "runtime.so")
    monkeypatch.setattr(native, "_loaded", lambda path, runtime="": (path, runtime))
    monkeypatch.setattr(compiling, "_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(native.VARIABLE, raising=False)
    return folder


def build(folder: Path, source: Path, level: str, has_threads: bool = False) -> Path:
    """Put something whole where a library of the wheel would be."""
    (one,) = (one for one in LEVELS if one.name == level)
    path = folder / levels.file_name(source, one, has_threads)
    path.write_bytes(b"code")
    path.chmod(0o644)
    levels.seal(path)
    return path


def take(source: Path = DECODING) -> tuple[Path, str]:
    """The library that is loaded, and whose threads it takes."""
    runtime = native._openmp_runtime if source == TRAINING else str
    loaded = native._library(source, runtime)
    assert isinstance(loaded, tuple)
    return loaded


def let_compile(monkeypatch: pytest.MonkeyPatch, made: Path) -> list[tuple[str, ...]]:
    """There is a compiler; the flags that it gets."""
    calls = []

    def compiled(source: Path, runtime: str, flags: tuple[str, ...]) -> Path:
        calls.append(flags)
        return made

    monkeypatch.setattr(native, "compiled", compiled)
    return calls


def test_the_best_library_of_the_wheel_is_taken_and_nothing_compiled(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {level.name: build(wheel, DECODING, level.name) for level in LEVELS}
    calls = let_compile(monkeypatch, wheel)
    assert take() == (built["avx512-bf16"], "")
    monkeypatch.setattr(levels, "instructions", lambda: frozenset(HASWELL.split()))
    assert take() == (built["avx2"], "")
    assert calls == []


def test_training_takes_threads_where_there_is_a_runtime(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = build(wheel, TRAINING, "avx512-bf16")
    threaded = build(wheel, TRAINING, "avx512-bf16", has_threads=True)
    assert take(TRAINING) == (threaded, "runtime.so")
    monkeypatch.setattr(native, "_openmp_runtime", lambda: "")
    assert take(TRAINING) == (alone, "")


@pytest.mark.parametrize(
    ("cpu", "source", "is_surpassed"),
    [
        (HASWELL, DECODING, False),
        (ALDER_LAKE, DECODING, True),
        (ALDER_LAKE, TRAINING, False),
        (ICE_LAKE, DECODING, False),
        (ICE_LAKE, TRAINING, False),
        (SAPPHIRE_RAPIDS, DECODING, False),
    ],
)
def test_a_compiler_is_asked_only_where_the_cpu_has_more_than_the_wheel(
    cpu: str,
    source: Path,
    is_surpassed: bool,
    wheel: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(levels, "instructions", lambda: frozenset(cpu.split()))
    built = build(wheel, source, level_of(cpu).name, has_threads=source == TRAINING)
    assert take(source)[0] == built, "there is no compiler"
    calls = let_compile(monkeypatch, wheel / "compiled.so")
    expected = wheel / "compiled.so" if is_surpassed else built
    assert take(source)[0] == expected
    assert calls == [compiling.native_flags()] * is_surpassed


def test_without_its_level_a_cpu_takes_a_lower_one_if_none_can_be_compiled(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower = build(wheel, DECODING, "avx2")
    assert take() == (lower, "")
    calls = let_compile(monkeypatch, wheel / "compiled.so")
    assert take() == (wheel / "compiled.so", "")
    assert len(calls) == 1


def test_a_library_that_cannot_be_loaded_is_compiled(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build(wheel, DECODING, "avx512-bf16")

    def loaded(path: Path, runtime: str = "") -> tuple[Path, str]:
        if path == built:
            raise native.UnavailableError("it is for another libc")
        return path, runtime

    monkeypatch.setattr(native, "_loaded", loaded)
    with pytest.raises(native.UnavailableError, match="no C\\+\\+ compiler"):
        take()
    let_compile(monkeypatch, wheel / "compiled.so")
    assert take() == (wheel / "compiled.so", "")


# ---- which is not taken ------------------------------------------------------------------------


def open_to_all(path: Path) -> None:
    path.chmod(0o646)


def open_to_a_group(path: Path) -> None:
    path.chmod(0o664)


def open_its_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def of_another(path: Path) -> None:
    os.chown(path, 12345, 12345)


def in_the_folder_of_another(path: Path) -> None:
    os.chown(path.parent, 12345, 12345)


def behind_the_link_of_another(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    os.lchown(path, 12345, 12345)


def of_another_text(path: Path) -> None:
    path.rename(path.with_name(path.name.replace("-bf16-", "-bf16-0")))


def damaged(path: Path) -> None:
    path.write_bytes(b"c0de" + path.read_bytes()[4:])


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


HARMS = (
    *(open_to_all, open_to_a_group, open_its_folder),
    *(of_another, in_the_folder_of_another, behind_the_link_of_another),
    *(of_another_text, damaged, half),
)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_what_others_may_have_planted_or_damaged_is_not_loaded(
    harm: Callable[[Path], None], wheel: Path
) -> None:
    """Its code would run here, as this user."""
    if "another" in harm.__name__ and harm is not of_another_text and os.geteuid():
        pytest.skip("only root can give files away")
    path = build(wheel, DECODING, "avx512-bf16")
    assert take() == (path, ""), "it is taken before"
    harm(path)
    with pytest.raises(native.UnavailableError, match="no C\\+\\+ compiler"):
        take()


def test_what_can_be_replaced_by_those_alone_who_can_replace_the_package_is_loaded(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip installs where the umask is 002, or where another user made the environment."""
    path = build(wheel, DECODING, "avx512-bf16")
    module = tmp_path / "package" / "native.py"
    module.parent.mkdir()
    module.write_text("")
    monkeypatch.setattr(native, "__file__", str(module))
    for one in (path, module):
        one.chmod(0o664)
        one.parent.chmod(0o775)
    assert take() == (path, "")
    if os.geteuid() == 0:
        for one in (path, path.parent, module, module.parent):
            os.chown(one, 12345, 12345)
        assert take() == (path, "")
        os.chown(path, -1, 54321)
        with pytest.raises(native.UnavailableError):
            take()


# ---- a level that is asked for -------------------------------------------------------------------


def test_a_level_may_be_asked_for(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in LEVELS:
        monkeypatch.setenv(native.VARIABLE, level.name)
        calls = let_compile(monkeypatch, wheel / "compiled.so")
        assert take() == (wheel / "compiled.so", "")
        assert calls == [level.flags]
        built = build(wheel, DECODING, level.name)
        assert take() == (built, "")
        assert len(calls) == 1
    monkeypatch.setenv(native.VARIABLE, native.NATIVE)
    calls = let_compile(monkeypatch, wheel / "compiled.so")
    assert take() == (wheel / "compiled.so", "")
    assert calls == [compiling.native_flags()]


@pytest.mark.parametrize("name", ["avx512", "avx512-bf16", "avx1024", "AVX2"])
def test_a_level_that_this_cpu_does_not_have_is_refused_in_a_line(
    name: str, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(wheel, DECODING, "avx2")
    monkeypatch.setenv(native.VARIABLE, name)
    monkeypatch.setattr(levels, "instructions", lambda: frozenset(HASWELL.split()))
    known = name in [level.name for level in LEVELS]
    why = "this CPU has no avx512f, " if known else "it must be one of sse4.1, avx2, "
    with pytest.raises(UsageError, match=f"^WEFT_KERNELS = {name}: {why}.+$"):
        take()


# ---- what they compute -------------------------------------------------------------------------


def test_threads_are_those_of_the_runtime_that_is_loaded(tmp_path: Path) -> None:
    """The library names no runtime of its own, and its sum is made by two threads."""
    (compilers := compiling._compilers()) or pytest.skip("no compiler")
    source, library = tmp_path / "threads.cpp", tmp_path / "threads.so"
    source.write_text(
        "#include <omp.h>\n"
        'extern "C" int most() {\nint most = 0;\n'
        "#pragma omp parallel num_threads(2) reduction(max : most)\n"
        "most = omp_get_thread_num();\nreturn most; }\n"
    )
    command = [compilers[0], "-shared", "-fPIC", "-fopenmp", "-c", str(source)]
    subprocess.run([*command, "-o", f"{library}.o"], check=True)
    subprocess.run([compilers[0], "-shared", f"{library}.o", "-o", library], check=True)
    runtime = native._openmp_runtime()
    assert runtime
    before = runtimes_in(Path("/proc/self/maps").read_text())
    assert native._loaded(library, runtime).most() == 1
    assert runtimes_in(Path("/proc/self/maps").read_text()) == before | {runtime}


def test_the_runtime_of_pytorch_comes_before_that_of_another_package(
    tmp_path: Path,
) -> None:
    maps = tmp_path / "maps"
    line = "7f31a5000000-7f31a5040000 r-xp 00008000 08:01 2490417    /packages/"
    files = ("other.libs/libgomp-a34b.so.1", "torch/lib/libgomp.so.1", "x/libgomp.txt")
    for count, expected in ((3, files[1]), (1, files[0])):
        maps.write_text("".join(f"{line}{name}\n" for name in files[:count]), "utf-8")
        assert native._openmp_runtime(maps) == f"/packages/{expected}"
    maps.write_text("7f31a0000000-7f31a0021000 rw-p 00000000 00:00 0 \n", "utf-8")
    assert native._openmp_runtime(maps) == ""


def runtimes_in(maps: str) -> set[str]:
    """The OpenMP runtimes that a process has loaded."""
    paths = {line.split(maxsplit=5)[5] for line in maps.split("\n") if "/" in line}
    return {path for path in paths if re.search(r"/lib[gi]?omp[^/]*$", path)}


@pytest.mark.long
@on_x86
@pytest.mark.parametrize("level", HERE)
def test_each_level_computes_what_pytorch_does(level: str) -> None:
    """The tests of the kernels and of the engine hold, tolerances and all, at every level."""
    rooms = (
        "kernels/test_operations.py",
        "kernels/test_activations.py",
        "model/test_inference.py",
    )
    tests = [str(ROOT / "tests" / name) for name in rooms]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, native.VARIABLE: level}
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " skipped" not in done.stdout.strip().split("\n")[-1]


# Saves what a level computes of tiny models: scores of translators, loss and gradients.
COMPUTE = """
import sys
import numpy as np
import torch
sys.path.insert(0, sys.argv[1])
from test_inference import SHAPES, SOURCES, TARGET, V_SRC, V_TGT, decoded
from weft.config import Seq2SeqSection
from weft.engine import bindings, packed
from weft.engine.bindings import Engine
from weft.engine.from_model import weights_of
from weft.kernels import operations
from weft.model.transformer import Seq2SeqTransformer
from weft.training.loss import CrossEntropy

results = {"lanes": np.array(packed._lanes())}
for number, shape in enumerate(SHAPES):
    torch.manual_seed(3)
    section = Seq2SeqSection(
        **shape, num_encoder_layers=2, num_decoder_layers=2, max_len=40, dropout=0.1
    )
    model = Seq2SeqTransformer(section, V_SRC, V_TGT, joint=False)
    src = torch.tensor([row + [0] * (21 - len(row)) for row in SOURCES])
    tgt = torch.tensor([TARGET] * len(SOURCES))
    with operations.using(True):
        states = model.train().states(src, tgt[:, :-1])
        loss, _ = operations.cross_entropy(
            states.flatten(0, 1), model.projection, tgt[:, 1:].flatten(), 0.1, 0
        )
        loss.backward()
    grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    results[f"loss {number}"] = loss.detach().numpy()
    results[f"grads {number}"] = torch.cat(grads).numpy()
    for kind in bindings.KINDS:
        engine = Engine(weights_of(model.eval()), kind)
        results[f"{kind} {number}"] = decoded(engine, SOURCES, TARGET)
np.savez(sys.argv[2], **results)
"""
LANES = {"sse4.1": 4, "avx2": 8}  # else 16
# By how much the others may be off, of the largest number: a rounding to fewer digits may fall to
# the other side.
BETWEEN = {"bfloat16": 0.02, "int8": 0.02}


@pytest.mark.long
@on_x86
def test_all_levels_compute_the_same_up_to_rounding(tmp_path: Path) -> None:
    results = {}
    for level in HERE:
        path = tmp_path / f"{level}.npz"
        command = [
            sys.executable,
            "-c",
            COMPUTE,
            str(ROOT / "tests" / "model"),
            str(path),
        ]
        env = {**os.environ, native.VARIABLE: level, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=env, check=True)
        results[level] = dict(np.load(path))
        assert int(results[level].pop("lanes")) == LANES.get(level, 16)
    first = results[HERE[0]]
    for level in HERE[1:]:
        for what, expected in first.items():
            close = BETWEEN.get(what.split()[0], 1e-5) * max(
                1.0, np.abs(expected).max()
            )
            off = np.abs(results[level][what] - expected).max()
            assert off <= close, (level, what)
