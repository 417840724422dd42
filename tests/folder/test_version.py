"""One version, one name of the distribution, in all the places that say it."""

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.folder import version

ROOT = Path(__file__).resolve().parents[2]


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    return found


def test_the_distribution_has_the_name_that_is_asked_for() -> None:
    assert project()["name"] == version.DISTRIBUTION
    assert project()["scripts"] == {"weft": "weft.__main__:main"}
    assert all(
        name.startswith(f"{version.DISTRIBUTION}[")
        for name in project()["optional-dependencies"]["all"]
    )


def test_every_place_says_the_same_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project()['version']}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## {project()['version']}" in changes
    is_released = f"## {project()['version']}, unreleased" not in changes
    assert ("date-released" in citation) == is_released


def test_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert version.installed_version() == weft.__version__ == "source tree"
    monkeypatch.setattr(metadata, "version", {"weft-text": "7.8.9"}.__getitem__)
    assert version.installed_version() == weft.__version__ == "7.8.9"


def test_another_distribution_called_weft_is_not_taken_for_it(tmp_path: Path) -> None:
    foreign = tmp_path / "weft-99.dist-info"
    foreign.mkdir()
    (foreign / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: weft\nVersion: 99\n"
    )
    code = "import sys, json; sys.path.insert(0, sys.argv[1]); import weft; print(json.dumps(weft.__version__))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == version.installed_version() != "99"
