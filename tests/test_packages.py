"""Optional packages: the versions that are needed, and what is said where those do not serve."""

import sys
import tomllib
from pathlib import Path

import pytest

from weft import packages
from weft.errors import MissingPackage, UnfitPackage, UsageError
from weft.packages import NEEDED, loaded, require
from weft.ship.gguf import library

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
OWN = [name for name in EXTRAS if name not in ("all", "dev")]


def test_the_versions_are_those_of_the_extras() -> None:
    stated = {row for name in OWN for row in EXTRAS[name]}
    assert stated == {
        f"{name}{needed}".replace("_", "-") for name, needed in NEEDED.items()
    }
    assert NEEDED["xllamacpp"] == f"=={library.KNOWN}"


@pytest.mark.parametrize(
    ("installed", "will_do"),
    [
        ("5.23", True),
        ("5.23.0", True),
        ("5.100.0.dev3", True),
        ("6.0+local", True),
        ("", True),
        ("4.30.2", False),
        ("5.9.1", False),
        ("5", False),
    ],
)
def test_a_version_is_compared_by_its_numbers(installed: str, will_do: bool) -> None:
    assert packages._will_do(installed, ">=5.23") == will_do
    assert packages._will_do(installed, f"=={installed}")
    assert packages._will_do(installed, "==7") == (not installed)


def test_another_version_is_named_with_the_one_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "version", lambda package: "1.0.6")
    with pytest.raises(UnfitPackage) as caught:
        require("simplified = true", "opencc", "zh")
    assert str(caught.value) == (
        "simplified = true needs opencc 1.1.9 or later, and 1.0.6 is installed: "
        "pip install '.[zh]' in the folder of Weft's source, or of a wheel pip install 'FILE.whl[zh]'"
    )
    with pytest.raises(
        UsageError, match=r"weft train needs PyTorch 2\.10 or later, and"
    ):
        packages.require_torch("weft train")


def test_a_package_that_is_not_there_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"it needs onnx: .*\[onnx\]"):
        require("it", "onnx", "onnx")


@pytest.mark.parametrize(
    "error",
    [
        "OSError('libctranslate2.so.4:\\n  cannot open shared object file')",
        "ImportError('numpy.core.multiarray failed to import')",
        "ValueError('numpy.dtype size changed')",
    ],
)
def test_a_package_that_cannot_be_loaded_is_named_with_the_reason(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "ctranslate2"
    broken.mkdir()
    (broken / "__init__.py").write_text(f"raise {error}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    monkeypatch.setattr(packages, "version", lambda package: "4.8.5")
    with pytest.raises(UnfitPackage) as caught:
        loaded("an export", "ctranslate2", "ctranslate2")
    kind, _, text = error.removesuffix("')").partition("('")
    told = " ".join(text.replace("\\n", " ").split())
    assert str(caught.value) == (
        "an export needs ctranslate2 4.6 or later, and 4.8.5, which is installed, cannot be loaded "
        f"({kind}: {told}): pip install --force-reinstall 'ctranslate2>=4.6'"
    )
