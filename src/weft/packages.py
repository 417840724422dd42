"""Optional packages: the versions that are needed, and whether those that are there will do."""

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from weft.errors import MissingPackage, UnfitPackage, how_to_install

# by the name of a package's distribution, with "_" for "-", as the extras of pyproject.toml have it
NEEDED = {
    "torch": ">=2.10",
    "jaxtyping": ">=0.3",
    "opencc": ">=1.1.9",
    "nltk": ">=3.9",
    "spacy": ">=3.8",
    "matplotlib": ">=3.9",
    "tensorboard": ">=2.20",
    "fastapi": ">=0.165",
    "starlette": ">=1.6",
    "uvicorn": ">=0.54",
    "h11": ">=0.16",
    "python_multipart": ">=0.0.34",
    "prometheus_client": ">=0.26",
    "ctranslate2": ">=4.6",
    "sentencepiece": ">=0.2.2",
    "onnx": ">=1.17",
    "onnxruntime": ">=1.20",
    "fluent.syntax": ">=0.19",
    "markdown_it_py": ">=4",
    "rapidfuzz": ">=3.14",
    "transformers": ">=5.23",
    "huggingface_hub": ">=1.0",
    "gguf": ">=0.17",
    "xllamacpp": "==2026.10.11549",
    "ray": ">=2.60",
    "pyarrow": ">=17",
    "pandas": ">=2.2.3",
    "fsspec": ">=2023.1",
    "grpcio": ">=1.60",
}
_CALLED = {"torch": "PyTorch"}
_MOST_SHOWN = 200  # characters of another package's error


def require(what: str, package: str, extra: str) -> None:
    """Raise MissingPackage where a package is not installed that `what` needs and an extra brings,
    UnfitPackage where it has another version than is needed.
    """
    called = _CALLED.get(package, package)
    if find_spec(package) is None:
        raise MissingPackage(what, called, extra)
    installed = _installed(package)
    if not _will_do(installed, NEEDED[package]):
        raise UnfitPackage(
            f"{what} needs {called} {_wanted(package)}, and {installed} is installed: {how_to_install(extra)}"
        )


def loaded(what: str, package: str, extra: str) -> Any:
    """Return a package, loaded. Raises as `require` does, and UnfitPackage where it cannot be
    loaded.
    """
    require(what, package, extra)
    try:
        return import_module(package)
    except Exception as error:  # a package that is broken may raise anything
        raise UnfitPackage(
            f"{what} needs {package} {_wanted(package)}, and {_installed(package)}, which is installed, cannot be "
            f"loaded ({_in_short(error)}): pip install --force-reinstall '{package}{NEEDED[package]}'"
        ) from error


def require_torch(what: str) -> None:
    """Raise as `require` does for PyTorch, which `what` needs."""
    require(what, "torch", "train")


def require_matplotlib() -> None:
    """Raise as `require` does for matplotlib, which a picture needs."""
    require("a picture", "matplotlib", "plot")


def _installed(package: str) -> str:
    """Return the version that is installed; "" where it is not known."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _will_do(installed: str, needed: str) -> bool:
    """Return whether a version is one that is needed; one that is not known may be."""
    sign, wanted = needed[:2], needed[2:]
    if not installed:
        return True
    if sign == "==":
        return installed == wanted
    return _numbers(installed) >= _numbers(wanted)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers with which a version begins: (2, 13, 0) of 2.13.0+cpu."""
    begun = re.match(r"\d+(\.\d+)*", text)
    parts = begun[0].split(".") if begun else []
    return tuple(int(part) for part in parts)


def _wanted(package: str) -> str:
    """Return the versions that are needed, in words."""
    needed = NEEDED[package]
    later = " or later" if needed.startswith(">=") else ""
    return f"{needed[2:]}{later}"


def _in_short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_MOST_SHOWN]
