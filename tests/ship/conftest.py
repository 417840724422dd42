"""The options of the tables: where `make interop` has them written, and where models are kept."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--interop",
        metavar="FILE",
        type=Path,
        help="write what exports gave into FILE",
    )
    parser.addoption(
        "--interop-models",
        metavar="DIR",
        type=Path,
        help="keep the models that are exported in DIR, and take those that are there",
    )
