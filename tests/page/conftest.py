"""The scripts of `page/live` in a browser."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.inspection.browser import browser_model, engine_source

# what other tests of this folder have as well, so that the quick suite can do without
REPEATED = (
    "annotated-en-zh",
    "en-zh",
    "en-de-fast",
    "toy-de-en",
    "imdb-classifier",
    "short ones",
    "long ones",
    "seq2seq-transformer",
    "tiny-shakespeare",
    "filtered",
    "NFKC'}",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these to the long tests."""
    for item in items:
        is_ours = item.path.parent == Path(__file__).parent
        if is_ours and any(name in item.name for name in REPEATED):
            item.add_marker(pytest.mark.long)


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
