"""The page of extras has what pyproject.toml has, and nothing of it is under the GPL."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
SHOWN = {name: rows for name, rows in EXTRAS.items() if name not in ("all", "dev")}


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[<>=\[;]", one)[0] for one in requirements]


def test_the_page_lists_every_package_of_every_extra() -> None:
    page = (ROOT / "docs" / "extras.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:`(\w+)`)? ?\|.*\| (.*) \|$", page, re.M)
    listed = {name: re.findall(r"([\w.-]+) \(", packages) for name, packages in rows}
    assert listed == {name: names(rows) for name, rows in SHOWN.items()}


@pytest.mark.parametrize("extra", SHOWN)
def test_no_package_is_under_the_gpl(extra: str) -> None:
    for name in names(SHOWN[extra]):
        try:
            found = metadata(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        fields = ("License", "License-Expression", "Classifier")
        said = [text for field in fields for text in found.get_all(field) or ()]
        assert said, name
        licence = " ".join(text[:100] for text in said if "::" not in text or "License" in text)  # fmt: skip
        assert "GPL" not in licence, name
