"""The page whose model is inside of it, in a browser: what is typed is computed and drawn there."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from pushed import of_which
from weft.data.known import KnownWords
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


@pytest.mark.parametrize(
    "name", of_which(NAMES, "en-de-modern", "tiny-shakespeare", "classify-fast")
)
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


@pytest.mark.parametrize("name", ["en-de", "classify-modern"])
def test_words_that_training_never_had_are_named(open_page: Any, name: str) -> None:
    """Of whatever is typed; nothing is said where all words were there."""
    text, other = tiny.TEXTS[:2]
    task = replace(tiny.tiny_task(name), known=KnownWords.of([text]))
    page = open_page(task, text)
    assert "Never seen" not in named(page, "#notes")
    typed(page, other)
    finished(page, other)
    expected = inspect_text(task, other).to_json()["unknown_words"]
    assert expected
    assert page.evaluate("() => data.unknown_words") == expected
    assert f"Never seen in training: “{expected[0]}”" in named(page, "#notes")
    typed(page, f"Qwx <b>QWX</b> {text.split()[0]}")
    page.wait_for_function("() => /“Qwx”[.]/.test(byId('notes').textContent)")
    page.get_by_role("radio", name="中文").dispatch_event("click")
    page.wait_for_function("() => /从未见过：“Qwx”/.test(byId('notes').textContent)")


@pytest.mark.parametrize("name", ["en-de", "tiny-shakespeare"])
def test_where_no_words_of_training_are_kept_nothing_is_said(
    open_page: Any, name: str
) -> None:
    page = open_page(tiny.tiny_task(name), tiny.TEXTS[0])
    typed(page, "Qwx")
    finished(page, "Qwx")
    assert page.evaluate("() => data.unknown_words") is None
    assert "Never seen" not in named(page, "#notes")


def test_what_is_switched_off_changes_the_numbers_and_comes_back(
    open_page: Any,
) -> None:
    task = tiny.tiny_task("en-de")
    page = open_page(task, tiny.TEXTS[1])
    typed(page, tiny.TEXTS[0])
    logits = "() => [...(data.choices?.logits.values ?? [])]"
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
    task = replace(tiny.tiny_task("en-de"), known=KnownWords.of(tiny.TEXTS))
    page = open_page(task, tiny.TEXTS[0], width=360)
    typed(page, tiny.TEXTS[1])
    page.get_by_role("radio", name="中文").check(force=True)
    page.wait_for_function("() => /贪心/.test(document.body.textContent)")
    assert re.match(r"在本机用 [\d.]+ 秒算出$", named(page, "#live-said"))
    assert f"在“{tiny.TEXTS[0]}”上" in named(page, "#live-proof")
    parts = page.locator("#live-switches option").all_text_contents()
    assert "第 1 层 · 看源文（交叉注意力）" in parts
    page.fill("#live-text", "x" * 90)
    page.wait_for_function(
        "() => /秒/.test(document.querySelector('#live-said').textContent)"
    )
    page.wait_for_function("() => /“x{90}”/.test(byId('notes').textContent)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_in_english_nothing_is_cut_on_a_narrow_screen(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0], width=360)
    page.evaluate("() => go({ kind: 'cross', layer: 1, head: MEAN, step: 2 })")
    assert page.locator("#live-switches select").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    said = page.locator("#ribbon-said")
    assert said.inner_text().endswith("by Layer 2, mean of heads")
    assert said.evaluate("said => said.scrollHeight - said.clientHeight") <= 0
    room = "() => parseFloat(getComputedStyle(byId('looks-title')).scrollMarginTop)"
    assert page.locator("#ribbon").bounding_box()["height"] < page.evaluate(room)


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
    assert rounding.answers() == "and its answer stays the same"
    run = tmp_path / "run"
    run.mkdir()
    lines = [f'{{"step": 1, "text": "{text}", "label": ["a"]}}' for text in "abca"]
    (run / "samples.jsonl").write_text("\n".join(lines), "utf-8")
    weights = task.weights
    weights.projection.stored[:] += 1e-4
    rounding = live.live_page(task, tmp_path, tiny.TEXTS[0]).rounding
    assert 0 < rounding.logit < 0.1
    assert rounding.count == 4


@pytest.mark.parametrize(
    ("count", "changed", "said"),
    [
        (1, 1, "its answer is another one"),
        (9, 2, "of 9 sentences 2 have another answer"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (1, 0, "its answer stays the same"),
                (9, 1, "of 9 sentences (1|one) has another answer"),
            )
        ),
    ],
)
def test_how_many_answers_changed_is_said_in_the_right_number(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, count: int, changed: int, said: str
) -> None:
    rounding = live.Rounding(0.5, count, changed)
    assert re.fullmatch(f"(and )?{said}", rounding.answers())
    monkeypatch.setattr(live, "measure_rounding", lambda *given: rounding)
    page = open_page(tiny.tiny_task("classify-fast"), tiny.TEXTS[0])
    shown = named(page, "#live-proof")
    assert re.search(f"changes a logit by [0-9.]+ at most; {said}[.]$", shown)


def test_a_large_model_is_refused_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_WEIGHTS", 1000)
    with pytest.raises(UsageError, match=r"weights, and a page .* holds 1,000: .*web"):
        live.live_page(tiny.tiny_task("en-de"), tmp_path, tiny.TEXTS[0])


def named(page: Any, name: str) -> str:
    text: str = page.locator(name).text_content()
    return text


def finished(page: Any, text: str) -> None:
    """Wait until all of a text is drawn."""
    script = "(text) => data.text === text && !isHeld && undrawn.size === 0"
    page.wait_for_function(script, arg=text)


SAYS_WHOLE = (
    "() => /^with all of it: ./.test(document.querySelector('#live-whole').textContent)"
)


def test_what_the_model_says_with_all_of_it_is_of_the_text_that_stands_there(
    open_page: Any,
) -> None:
    """A part that is switched off before anything is typed, and then another text."""
    task = tiny.tiny_task("en-de")
    page = open_page(task, tiny.TEXTS[1])
    page.locator("#live-switches select").select_option("decoder.0.cross")
    page.wait_for_function(SAYS_WHOLE)
    first = inspect_text(task, tiny.TEXTS[1]).to_json()["translation"]
    assert named(page, "#live-whole") == f"with all of it: {first}"
    other = inspect_text(task, tiny.TEXTS[0]).to_json()["translation"]
    assert other != first
    page.fill("#live-text", tiny.TEXTS[0])
    # what belongs to the text before is gone at once
    assert named(page, "#live-whole") in ("", f"with all of it: {other}")
    page.wait_for_function(SAYS_WHOLE)
    assert named(page, "#live-whole") == f"with all of it: {other}"


@pytest.mark.long
def test_the_address_keeps_the_text_and_what_is_switched_off(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[1])
    page.fill("#live-text", tiny.TEXTS[0])
    finished(page, tiny.TEXTS[0])
    page.locator("#live-switches select").select_option("decoder.1.cross")
    page.evaluate("() => go({ kind: 'encoder', layer: 0, head: 1 })")
    page.get_by_role("button", name="head 2 of layer 1").click()
    page.wait_for_function("() => /off=/.test(location.hash)")
    page.wait_for_function(
        "() => new URLSearchParams(location.hash.slice(1)).get('off') === 'decoder.2.cross encoder.1.2'"
    )
    page.reload()
    page.wait_for_function(PROVEN)
    finished(page, tiny.TEXTS[0])
    assert page.locator("#live-text").input_value() == tiny.TEXTS[0]
    assert page.locator("#live-switches button.off").count() == 2
    assert page.evaluate("() => place.kind") == "encoder"
    page.evaluate("() => { location.hash = '#off=decoder.9.self+nonsense+encoder.1'; }")
    finished(page, tiny.TEXTS[1])
    assert page.locator("#live-switches button.off").count() == 0
    # a layer or a head 0 there is not, nor one without a number; a key that comes twice is one
    wrong = "encoder.0.1+encoder.1.0+cross..+cross.1.1.9+toString.1.1"
    twice = "token.3+token.03+cross.1.2+cross.1.2"
    page.evaluate("(off) => { location.hash = `#off=${off}`; }", f"{wrong}+{twice}")
    page.wait_for_function("() => data.off?.source.length && undrawn.size === 0")
    off = {"parts": [], "heads": ["cross.0.1"], "source": [2]}
    assert page.evaluate("() => data.off") == off
    assert page.locator("#live-switches button.off").count() == 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["en-de", "classify-modern"])
def test_the_ribbon_keeps_its_colours_until_the_reader_chooses_a_head(
    open_page: Any, name: str
) -> None:
    page = open_page(tiny.tiny_task(name), tiny.TEXTS[1])
    before = named(page, "#ribbon-said").split("“")[0]
    assert before in ("Colour: what each token brought to ", "Colour: what speaks for ")
    for text in (tiny.TEXTS[0], tiny.TEXTS[1]):
        page.fill("#live-text", text)
        finished(page, text)
        assert "by=shares" in page.url
        assert named(page, "#ribbon-said").startswith(before)
    page.evaluate("() => go({ layer: 1, head: 1 })")
    page.fill("#live-text", tiny.TEXTS[0])
    finished(page, tiny.TEXTS[0])
    assert named(page, "#ribbon-said").endswith("by Layer 2, head 2")
    assert "by=head" in page.url


def test_a_text_that_is_emptied_after_its_translation_leaves_the_last_one(
    open_page: Any,
) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[1])
    typed(page, tiny.TEXTS[0])
    finished(page, tiny.TEXTS[0])
    emptied = """(text) => new Promise(done => {
        const field = document.querySelector("#live-text");
        const put = (text) => { field.value = text; field.dispatchEvent(new Event("input")); };
        const texts = () => [...document.querySelectorAll("#texts dd")].map(dd => dd.textContent);
        document.addEventListener("weft-live", ({ detail }) => {
            const said = texts();
            put("");
            done([detail, said, texts()]);
        }, { once: true });
        put(text);
    })"""
    before = page.locator("#texts dd").all_text_contents()
    detail, said, after = page.evaluate(emptied, tiny.TEXTS[2])
    assert detail == "said"
    assert said[1] != before[1]
    assert after == before


@pytest.mark.long
def test_map_and_paper_show_what_is_switched_off(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0])
    page.locator("#live-switches select").select_option("decoder.0.feed-forward")
    page.evaluate("() => go({ kind: 'cross', layer: 0, head: 0 })")
    page.get_by_role("button", name="head 1 of layer 1").click()
    page.wait_for_function("() => data.off?.heads.length === 1 && undrawn.size === 0")
    off = page.locator("#model-box .part.off")
    assert off.count() == 1
    assert "switched off" in off.inner_text()
    assert "switched off: head 1" in named(page, "#model-box")
    page.emulate_media(media="print")
    assert page.locator("#live-paper").inner_text() == (
        "Switched off: head 1 of layer 1, looks at the source; layer 1 · feed-forward."
    )
    assert page.locator("#texts dd").first.is_visible()
    assert page.locator("#texts dd").first.inner_text() == tiny.TEXTS[0]
    assert not page.locator("#live-text").is_visible()


def in_one_look(page: Any, *names: str) -> list[str]:
    """Return what the section says in these of its places, once it is drawn."""
    page.evaluate("drawAll()")
    return [named(page, f"#onelook-{name}") for name in names]


OFF = "(count) => data.off?.source.length === count && data.looks && undrawn.size === 0"


@pytest.mark.long
def test_one_look_leaves_out_a_token_that_is_switched_off(open_page: Any) -> None:
    """Its weight is 0, no other takes its place in words, and no rounding is blamed."""
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0])
    page.evaluate("() => { location.hash = '#off=token.2&k=cross&l=1&h=1&c=2&t=2'; }")
    page.wait_for_function(OFF, arg=1)
    summed, softmax, value, wrote, check = in_one_look(
        page, "sum", "softmax", "value", "wrote", "check"
    )
    token = page.evaluate("quoted(SIDES.source.pieces[1])")
    assert "would be the score" in summed
    assert f"{token} is switched off, and gets 0." in softmax
    assert value.startswith(f"{token} is switched off: nothing of its")
    assert wrote == ""
    assert check.startswith("Query and key give the weights that were recorded, to ")
    assert (
        page.evaluate("readKey(1)") == f"{token} is switched off: nothing looks at it."
    )
    page.evaluate("() => { onelook.temperature = 4; }")
    assert page.evaluate("weightsAt(4)[1]") == 0
    page.evaluate("() => { go({ key: 0 }); followAll(); }")
    weight = page.evaluate("number(within(mapOf('cross', 0, 0), 1).values[0])")
    other = page.evaluate("quoted(SIDES.source.pieces[0])")
    said = in_one_look(page, "softmax", "check")
    assert said[0].endswith(
        f"{other} gets {weight}. Switched off, and without a weight: {token}."
    )
    assert re.search(r"recorded, to (0|\d × 10⁻[⁵-⁹])\.$", said[1])


def test_where_all_tokens_are_switched_off_there_is_nothing_to_look_at(
    open_page: Any,
) -> None:
    page = open_page(tiny.tiny_task("en-de"), "a")
    count = page.evaluate("SIDES.source.pieces.length")
    off = "+".join(f"token.{i + 1}" for i in range(count))
    page.evaluate("(off) => { location.hash = `#off=${off}&k=cross`; }", off)
    page.wait_for_function(OFF, arg=count)
    assert page.evaluate("Math.max(...data.attention.cross.values)") == 0
    softmax, check = in_one_look(page, "softmax", "check")
    assert softmax.startswith("All keys are switched off")
    assert check.endswith("recorded, to 0.")


@pytest.mark.long
@pytest.mark.parametrize(
    ("off", "said"),
    [
        ("cross.1.1", "This head is switched off: its output is not added."),
        ("decoder.1.cross", "These looks are switched off: their output is not added."),
    ],
)
def test_a_head_that_is_switched_off_is_said_to_be_where_it_looks(
    open_page: Any, off: str, said: str
) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[0])
    page.evaluate("(off) => { location.hash = `#off=${off}&k=cross&l=1&h=1`; }", off)
    page.wait_for_function("() => data.off && data.shares && undrawn.size === 0")
    assert in_one_look(page, "wrote") == [said]
    assert named(page, "#looks-reading").endswith(f". {said}")
    heads = page.locator(".head[data-layer='0']").all_text_contents()
    count = sum("switched off" in each for each in heads)
    assert count == (1 if off.startswith("cross") else len(heads))
    page.evaluate("() => { go({ layer: 1 }); followAll(); }")
    assert "off" not in named(page, "#onelook-wrote") + named(page, "#looks-reading")


def test_the_looks_are_drawn_before_all_else(open_page: Any) -> None:
    page = open_page(tiny.tiny_task("en-de"), tiny.TEXTS[1])
    seen = """(text) => new Promise(done => {
        const seen = [];
        document.addEventListener("weft-live", ({ detail }) => {
            const waits = byId("loom").inert;
            seen.push([detail, data.text, Boolean(data.lens), waits]);
            if (detail === "drawn") done(seen);
        });
        const field = document.querySelector("#live-text");
        field.value = text;
        field.dispatchEvent(new Event("input"));
    })"""
    text = tiny.TEXTS[0]
    assert page.evaluate(seen, text) == [
        ["said", tiny.TEXTS[1], True, False],
        ["looks", text, False, True],
        ["shares", text, True, False],
        ["drawn", text, True, False],
    ]
    assert page.title().endswith(f": {text}")
    # a text that is emptied before all of it came leaves the last one that was whole
    page.fill("#live-text", "another cat")
    page.wait_for_function("() => data.text === 'another cat'")
    page.fill("#live-text", "")
    page.wait_for_function("() => data.lens && !document.querySelector('[inert]')")
