"""The page over a real server of tiny models: what they write means nothing, but every view is
filled, and nothing is refused or goes wrong.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tiny_server import Running

pytestmark = pytest.mark.long


@pytest.fixture
def page(server: Running, browser: Any, watch: Callable[..., None]) -> Iterator[Any]:
    """Open the page; at the end the browser may have had nothing to say."""
    page = browser.new_page(locale="en-US")
    watch(page, server.url, "data:", f"blob:{server.url}")
    page.goto(f"{server.url}/")
    page.wait_for_selector("#text")
    yield page
    page.close()


def go(page: Any, view: str) -> None:
    page.locator(f"nav a[href='#{view}']").click()
    page.wait_for_selector(f"section.{view}")


def test_every_view_is_filled(page: Any) -> None:
    page.locator("#source").select_option("en")
    page.locator("#target").select_option("de")
    page.locator("#text").fill("Maria is at home.\n\nTom is here.")
    page.wait_for_function("() => document.querySelectorAll('.line').length === 3")
    page.get_by_text("Model: en-de.").wait_for()
    assert page.locator("#complaint").is_hidden()
    go(page, "generate")
    page.locator("#prompt").fill("To be")
    page.locator("#set-max_tokens").fill("5")
    page.locator("#write").click()
    page.wait_for_selector("#ended:not(:empty)")
    assert page.locator("#complaint").is_hidden()
    go(page, "classify")
    page.locator("#sample").fill("Maria is at home.")
    page.wait_for_selector(".reason")
    assert page.locator("#labels li").count() > 1
    go(page, "inside")
    page.locator("#look-text").fill("Maria is at home.")
    for model, section, state in (
        ("en-de", "lanes", "visible"),
        ("languages", "reasons", "visible"),
        ("plays", "reasons", "detached"),
    ):
        page.locator("select#model").select_option(model)
        page.wait_for_selector(f"#{section}", state=state)
    assert page.locator("#complaint").is_hidden()
    go(page, "models")
    page.wait_for_function("() => document.querySelectorAll('.history h3').length >= 5")
    assert page.locator(".refused").count() == 0


def test_files_are_translated(page: Any) -> None:
    page.locator("#source").select_option("en")
    page.locator("#target").select_option("de")
    for name, content in (
        ("a.txt", "Maria is at home.\r\n\r\nTom is here."),
        ("b.html", "<p>Maria is <b>at home</b>.</p><pre>left</pre>"),
    ):
        file = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
        page.locator("input[type=file]").set_input_files([file])
        page.locator(".job", has_text=name).get_by_text("Translated.").wait_for()
    with page.expect_download() as waiting:
        page.locator(".job", has_text="b.html").get_by_role("link").click()
    written = Path(waiting.value.path()).read_text("utf-8")
    assert written.startswith("<p>")
    assert written.endswith("</p><pre>left</pre>")
    assert written.count("<b>") == written.count("</b>") == 1
