"""The page whose model is inside of it, in a browser: what is typed is computed and drawn there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft.errors import UsageError
from weft.inspection import live
from weft.inspection.look import inspect_text

DONE = "() => /computed here/.test(document.querySelector('#live-said').textContent)"
PROVEN = "() => /apart/.test(document.querySelector('#live-proof').textContent)"


@pytest.fixture
def open_page(browser: Any, watch: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write the live page of a model, open it, and wait until it has proven itself."""
    contexts = []

    def opened(task: Any, text: str, width: int = 1200, **more: Any) -> Any:
        path = tmp_path / "live.html"
        made = live.live_page(task, tmp_path, text)
        path.write_text(made.html, "utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **more)
        contexts.append(context)
        page = context.new_page()
        watch(page, path.as_uri(), "blob:")
        page.goto(path.as_uri())
        page.wait_for_function(PROVEN)
        return page

    yield opened
    for context in contexts:
        context.close()


def typed(page: Any, text: str) -> None:
    page.fill("#live-text", text)
    page.wait_for_function(DONE)


NAMES = ("en-de-modern", "tiny-shakespeare", "classify-modern", "classify-fast")


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_computes_what_weft_computed(open_page: Any, name: str) -> None:
    task = tiny.tiny_task(name)
    page = open_page(task, tiny.TEXTS[1])
    said = page.locator("#live-proof").inner_text()
    assert said.startswith("This browser computes what Weft computed")
    page.evaluate("() => { window.before = data; }")
    typed(page, tiny.TEXTS[0])
    assert page.evaluate("() => data !== window.before")
    expected = inspect_text(task, tiny.TEXTS[0]).to_json()
    found = page.evaluate("() => data")
    for side in ("source", "target", "tokens"):
        for key in ("ids", "pieces"):
            assert found.get(side, {}).get(key) == expected.get(side, {}).get(key)
    pairs = zip(found.get("labels", []), expected.get("labels", []), strict=True)
    for ours, theirs in pairs:
        assert ours["label"] == theirs["label"]
        assert ours["probability"] == pytest.approx(theirs["probability"], abs=2e-4)
    assert page.locator("#sections section").count() >= 2
    assert page.evaluate("document.activeElement.id") == "live-text"


def test_what_is_switched_off_changes_the_numbers_and_comes_back(
    open_page: Any,
) -> None:
    task = tiny.tiny_task("en-de")
    page = open_page(task, tiny.TEXTS[1])
    typed(page, tiny.TEXTS[0])
    logits = "() => [...data.choices.logits.values]"
    whole = page.evaluate(logits)
    page.locator("#live-switches select").select_option("decoder.0.cross")
    page.wait_for_function(f"(whole) => ({logits})()[0] !== whole", arg=whole[0])
    chip = page.locator("#live-switches button.off")
    assert chip.count() == 1
    assert "with all of it" in page.locator("#live-whole").inner_text()
    chip.click()
    page.wait_for_function(f"(whole) => ({logits})()[0] === whole", arg=whole[0])
    assert page.evaluate(logits) == whole
    page.evaluate("() => go({ side: 'source', token: 1 })")
    page.get_by_role("button", name="the token").click()
    page.wait_for_function(f"(whole) => ({logits})()[0] !== whole", arg=whole[0])
    head = page.get_by_role("button", name="head 1 of layer")
    head.click()
    page.wait_for_function(
        "() => document.querySelectorAll('#live-switches button.off').length === 2"
    )
    # another text has other tokens
    typed(page, "Tea 123")
    page.wait_for_function(
        "() => document.querySelectorAll('#live-switches button.off').length === 1"
    )


def test_the_page_speaks_chinese_and_fits_a_narrow_screen(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0], width=360)
    page.get_by_role("radio", name="中文").check(force=True)
    page.wait_for_function("() => /贪心/.test(document.body.textContent)")
    page.fill("#live-text", "x" * 90)
    page.wait_for_function(
        "() => /秒/.test(document.querySelector('#live-said').textContent)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_nothing_typed_is_said(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("classify-fast"), tiny.TEXTS[0])
    page.fill("#live-text", "   ")
    page.wait_for_function(
        "() => /no text/.test(document.querySelector('#live-said').textContent)"
    )


def test_a_recorded_number_that_is_wrong_is_told(
    open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = live._numbers

    def wrong(task: Any, data: Any) -> Iterator[tuple[str, Any]]:
        for path, array in exact(task, data):
            yield path, array + 0.01 * (path == "choices.logits")

    monkeypatch.setattr(live, "_numbers", wrong)
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0])
    said = page.locator("#live-proof").inner_text()
    assert said.startswith("This browser does not compute what Weft computed")


def test_the_rounding_is_measured(tmp_path: Path) -> None:
    """Weights that 16 bits hold change nothing; others change logits, and answers of a run."""
    task = tiny.tiny_task("classify-fast")
    rounding = live.live_page(task, tmp_path, tiny.TEXTS[0]).rounding
    assert (rounding.logit, rounding.count, rounding.changed) == (0, 1, 0)
    run = tmp_path / "run"
    run.mkdir()
    lines = [f'{{"step": 1, "text": "{text}", "label": ["a"]}}' for text in "abca"]
    (run / "samples.jsonl").write_text("\n".join(lines), "utf-8")
    weights = task.weights
    weights.projection.stored[:] += 1e-4
    rounding = live.live_page(task, tmp_path, tiny.TEXTS[0]).rounding
    assert 0 < rounding.logit < 0.1
    assert rounding.count == 4


def test_a_large_model_is_refused_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_WEIGHTS", 1000)
    with pytest.raises(UsageError, match=r"weights, and a page .* holds 1,000: .*web"):
        live.live_page(tiny.tiny_task("en-de"), tmp_path, tiny.TEXTS[0])
