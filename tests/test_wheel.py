"""The wheel, installed where there is no compiler, translates and trains with its own libraries."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from weft.kernels import levels

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not levels.levels_of(levels.instructions()),
        reason="a wheel has libraries for Linux on x86-64 alone",
    ),
]
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CORE_HAS_TORCH = any(re.match("torch\\b", need) for need in PROJECT["dependencies"])
LARGEST = 10 * 2**20  # bytes of a wheel
TEXT = "cat sees dog."

# Each prints what its process has loaded: the native libraries, the OpenMP runtimes.
MAPS = """
import re, sys
names = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(*sorted(name for name in names if re.search(r"/weft/|/lib[gi]?omp[^/]*$", name)), sep="\\n")
print("torch" if "torch" in sys.modules else "no torch")
"""
TRANSLATE = f"""
import sys, weft
print(weft.load(sys.argv[1]).translate([{TEXT!r}])[0].text)
{MAPS}
"""
TRAIN = f"""
import sys, weft
weft.train(out=sys.argv[1], train=sys.argv[2], settings=sys.argv[3:], quiet=True)
{MAPS}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` makes."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("wheel")
    order = ["make", "wheel", f"WHEEL={folder / 'work'}", f"DIST={folder / 'dist'}"]
    run([*order, f"PYTHON={sys.executable}"])
    (path,) = (folder / "dist").iterdir()
    return path


class Environment:
    """A fresh environment without a compiler in its path, and a cache that nobody has used."""

    def __init__(self, folder: Path, *needs: str) -> None:
        self.bin = folder / "environment" / "bin"
        self.cache = folder / "cache"
        run(pip_of(folder, "install", "-c", ROOT / "constraints.txt", *needs))
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            **{"PATH": str(self.bin), "XDG_CACHE_HOME": str(self.cache)},
        }
        assert not shutil.which("c++", path=self.env["PATH"])

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            arguments,
            env=self.env,
            cwd=self.bin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "without native kernels" not in done.stderr
        return done.stdout

    def python(self, code: str, *arguments: str) -> list[str]:
        """The lines that a program prints."""
        printed = self.run(str(self.bin / "python"), "-c", code, *arguments)
        return printed.strip().split("\n")


def run(command: list[str], env: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    if "No matching distribution found" in done.stderr:
        pytest.skip(f"no package index answers: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr[-3000:]


def pip_of(folder: Path, verb: str, *arguments: str | Path) -> list[str]:
    """A command of pip in a fresh environment, with what `make` was given for it."""
    run([sys.executable, "-m", "venv", str(folder / "environment")])
    pip = [str(folder / "environment" / "bin" / "python"), "-m", "pip"]
    more = os.environ.get("PIP_ARGS", "").split()
    return [*pip, verb, "--quiet", *more, *map(str, arguments)]


@pytest.fixture(scope="module")
def with_training(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with all that training needs."""
    return Environment(tmp_path_factory.mktemp("training"), f"{wheel}[train]")


def loaded(lines: list[str], what: str) -> list[str]:
    return [line for line in lines if what in line.rpartition("/")[2]]


def assert_translates(environment: Environment, folder: Path) -> list[str]:
    """The command line and Python give the text that this environment gives; what was loaded."""
    (expected,) = weft.load(folder).translate([TEXT])
    weft_here = str(environment.bin / "weft")
    assert (
        environment.run(weft_here, "translate", str(folder), TEXT)
        == f"{expected.text}\n"
    )
    text, *lines = environment.python(TRANSLATE, str(folder))
    assert text == expected.text
    (library,) = loaded(lines, "decoding-")
    best, *_ = levels.levels_of(levels.instructions())
    assert Path(library).parts[-4:-1] == ("weft", "kernels", "built")
    assert Path(library).name == levels.file_name(levels.SOURCES[1], best, False)
    assert not list(environment.cache.glob("**/*.so")), "nothing was compiled"
    return lines


def test_it_is_small_and_names_the_glibc_that_it_needs(wheel: Path) -> None:
    assert re.fullmatch(
        r"weft_text-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name
    )
    assert wheel.stat().st_size <= LARGEST


def test_it_has_the_package_and_every_library(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.glob("weft/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    built = {f"weft/kernels/built/{line.split()[1]}" for line in levels.plan()}
    assert {name for name in names if name.startswith("weft/")} == expected | built


def test_without_a_compiler_it_is_made_without_libraries(tmp_path: Path) -> None:
    """And for every system: there, too, they are compiled on first use."""
    programs = tmp_path / "programs"
    programs.mkdir()
    env = {**os.environ, "PATH": str(programs)}
    run(pip_of(tmp_path, "wheel", "--no-deps", "-w", tmp_path / "made", ROOT), env)
    (path,) = (tmp_path / "made").iterdir()
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert "weft/kernels/training.cpp" in names
    assert not [name for name in names if name.endswith(".so")]


def test_an_editable_install_builds_nothing_and_yields_to_other_sources(
    tmp_path: Path,
) -> None:
    """As `make test` needs it in a fresh clone, and `tools/same.py` in two."""
    run(pip_of(tmp_path, "install", "--no-deps", "-e", ROOT))
    assert not levels.BUILT.exists()
    other = tmp_path / "other" / "weft"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    where = [tmp_path / "environment" / "bin" / "python"]
    where += ["-c", "import weft; print(weft.__file__)"]
    for path, expected in (("", ROOT / "src" / "weft"), (str(other.parent), other)):
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            where, env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{expected / '__init__.py'}\n"


@pytest.mark.skipif(CORE_HAS_TORCH, reason="the package still needs PyTorch to be used")
def test_without_pytorch_it_translates(
    wheel: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    environment = Environment(tmp_path, str(wheel))
    assert not list(environment.bin.parent.glob("lib/*/site-packages/torch"))
    lines = assert_translates(environment, tiny_folder)
    assert lines[-1] == "no torch"
    assert not loaded(lines, "omp")


def test_with_pytorch_it_translates(
    with_training: Environment, tiny_folder: Path
) -> None:
    assert_translates(with_training, tiny_folder)


@pytest.mark.parametrize("threads", [1, 2])
def test_it_trains_with_its_library_and_the_one_runtime_of_pytorch(
    threads: int,
    with_training: Environment,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
) -> None:
    own = ("training.kernels=", "training.threads=")
    settings = [one for one in tiny_settings if not one.startswith(own)]
    more = ["training.max_steps=4", "training.eval_every=4", "training.kernels=native"]
    out = tmp_path / "model"
    lines = with_training.python(
        TRAIN,
        *(str(out), write_pairs(216), *settings, *more, f"training.threads={threads}"),
    )
    best, *_ = levels.levels_of(levels.instructions())
    (library,) = loaded(lines, "training-")
    assert Path(library).name == levels.file_name(levels.SOURCES[0], best, True)
    assert len(loaded(lines, "omp")) == 1
    assert not list(with_training.cache.glob("**/*.so")), "nothing was compiled"
    assert weft.load(out).translate([TEXT])
