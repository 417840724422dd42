"""A browser without a window, where one can be started: Chromium, by playwright."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from weft.ship.target import load

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# what the scripts of an export find in a page: weights come one file after the other
_WEIGHTS = "const weftParts = []; function weftWeights(number, base64) { weftParts[number] = base64; }"


@dataclass(frozen=True)
class Page:
    """A page of a browser; `version` is the browser's."""

    page: Any
    version: str
    _started: Any

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Call a function of JavaScript with an argument; return what it returns."""
        return self.page.evaluate(script, argument)

    def close(self) -> None:
        """End the browser."""
        self.page.context.browser.close()
        self._started.stop()


def open_scripts(scripts: Sequence[Path]) -> Page | None:
    """Open an empty page with scripts; None where no browser can be started."""
    if find_spec("playwright") is None:
        return None
    playwright = load("playwright.sync_api")
    try:
        started = playwright.sync_playwright().start()
    except playwright.Error:  # an event loop runs here already
        return None
    try:
        browser = started.chromium.launch(executable_path=_installed())
        page = browser.new_page()
    except playwright.Error:
        started.stop()
        return None
    page.add_script_tag(content=_WEIGHTS)
    for script in scripts:
        page.add_script_tag(path=script)
    return Page(page, browser.version, started)


def _installed() -> str | None:
    """Return the browser of this machine; None for the one that playwright may have brought."""
    found = (shutil.which(name) for name in _NAMES)
    return next((path for path in found if path), None)
