"""What the checks' tests share: where the public corpora are, and a sound corpus of Weft's own."""

import os
from pathlib import Path

import pytest

from weft.data import builtin

Pairs = list[tuple[str, str]]


@pytest.fixture(scope="session")
def corpora() -> Path:
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get("WEFT_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


@pytest.fixture(scope="session")
def german() -> Pairs:
    """English and German sentences with nothing wrong in them. Tests must copy before they
    change.
    """
    return builtin.pairs("everyday", "en", "de").train[:2000]


@pytest.fixture(scope="session")
def chinese() -> Pairs:
    """English and Chinese sentences, likewise."""
    return builtin.pairs("everyday", "en", "zh").train[:2000]
