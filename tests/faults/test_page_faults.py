"""The page of a real server in a real browser, and what should not be typed into it: row X4."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiny_server import Running

MARKUP = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
NAME = "<script>hacked()<script>"


def test_X4_markup_is_shown_and_nothing_is_asked_elsewhere(
    browser: Any, launch: Callable[..., Running], tiny_models: dict[str, Path]
) -> None:
    model = tiny_models["en-de"]
    server = launch(f"{NAME}={model}", names=("languages", "plays"))
    page = browser.new_page(viewport={"width": 360, "height": 740}, locale="en-US")
    page.set_default_timeout(30_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(server.url)
    page.locator("#text").fill(MARKUP)
    page.wait_for_selector("#result .line")
    assert page.locator("#text").input_value() == MARKUP
    page.goto(f"{server.url}/#models")
    page.wait_for_function("name => document.body.innerText.includes(name)", arg=NAME)
    assert page.evaluate("window.hacked") is None
    assert wrong == []
    assert {url.removeprefix(server.url)[:1] for url in asked} <= {"/", ""}
    assert all(url.startswith((server.url, "data:", "blob:")) for url in asked)
    # the name of the model is in an address, what was typed is not
    assert "window.hacked" not in "".join(asked)
    assert "onerror" not in server.said()

    page.goto(f"{server.url}/#translate")
    page.locator("#text").wait_for()
    sent = len(asked)
    page.evaluate(
        """() => {
            const field = document.querySelector("#text");
            field.value = "long text ".repeat(100_000);
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    page.wait_for_function("() => document.querySelector('.over') !== null")
    page.wait_for_timeout(500)
    assert [url for url in asked[sent:] if "/v1/translate" in url] == []

    server.stop()
    page.locator("#text").fill("A man.")
    page.wait_for_function("() => /does not answer/.test(document.body.innerText)")
    port = str(server.address[1])
    launch("--port", port, names=("en-de", "languages", "plays"))
    page.wait_for_selector("#result .line")
    page.close()
