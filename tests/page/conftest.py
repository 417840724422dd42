"""The scripts of `page/live` in a browser."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weft.inspection.browser import browser_model, engine_source


@pytest.fixture(scope="module")
def scripts(browser: Any) -> Iterator[Any]:
    """Give a page where `engine` has the parts of the scripts, and `bytesOf` reads base64."""
    page = browser.new_page()
    page.add_script_tag(content=f"{engine_source()}\nconst engine = weftEngine();")
    yield page
    page.close()


@pytest.fixture
def load(scripts: Any) -> Callable[[Any], Any]:
    """Load a task's model as `model` in the page, and give the page."""

    def loaded(task: Any) -> Any:
        made = browser_model(task)
        packed = base64.b64encode(made.data).decode()
        scripts.evaluate(
            "([card, data]) => { window.model = engine.loadModel(card, engine.bytesOf(data).buffer); }",
            [made.card, packed],
        )
        return scripts

    return loaded
