"""The option of the tables: where `make interop` has them written."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--interop",
        metavar="FILE",
        type=Path,
        help="write what exports gave into FILE",
    )
