"""Every packaged recipe in every form: exported with a certificate, or refused with a reason.

`make interop` writes what is found into docs/interop.md.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import interop
import weft
from weft.errors import MissingPackage, UsageError
from weft.ship.exporting import export
from weft.ship.target import Asked
from weft.ship.targets import TARGETS, target_named

pytestmark = pytest.mark.long
CASES = {case.name: case for case in interop.CASES}


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> Iterator[list[interop.Cell]]:
    """Collect what is found, and write it where a page was named."""
    found: list[interop.Cell] = []
    yield found
    if (page := request.config.getoption("--interop", None)) is not None:
        order = {name: number for number, name in enumerate(TARGETS)}
        found.sort(key=lambda cell: order[cell.form])
        interop.write(page, found)


@pytest.fixture(scope="module")
def trained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Train a case's model when it is first asked for."""
    kept = request.config.getoption("--interop-models", None)
    place = kept or tmp_path_factory.mktemp("models")
    models: dict[str, Path] = {}

    def train(name: str) -> Path:
        if name not in models:
            case = CASES[name]
            out = place / case.folder
            settings = interop.settings_of(case)
            weft.train(recipe=case.recipe, out=out, settings=settings, quiet=True)
            models[name] = out
        return models[name]

    return train


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", TARGETS)
def test_a_recipe_has_a_home_or_a_reason(
    form: str,
    name: str,
    trained: Callable[[str], Path],
    cells: list[interop.Cell],
    tmp_path: Path,
) -> None:
    target = target_named(form)
    folder = trained(name)
    for precision in target.precisions:
        out = tmp_path / precision
        try:
            made = export(folder, target, out, asked=Asked(precision=precision))
        except MissingPackage as missing:
            pytest.skip(str(missing))
        except UsageError as error:
            refused = str(error)
        else:
            refused = ""
        assert out.exists() == (not refused)
        if refused:
            where, reason = refused.split(": ", maxsplit=1)
            assert where == str(folder)
            reason = reason.removeprefix(f"has no home in {form}: ")
            cells.append(interop.Cell(name, form, precision, refused=reason))
            return  # in every precision
        told = interop.read_told(out)
        cells.append(interop.Cell(name, form, precision, told=told, size=made.size))
