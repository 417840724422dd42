"""The folder for a web host, in a browser: opened as files and served, it answers as Weft does."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft.data.known import KnownWords
from weft.errors import FolderError
from weft.folder import durable
from weft.inspection.browser import rounded_task
from weft.ship.exporting import export
from weft.ship.target import Asked
from weft.ship.web.page import PAGE, write_page
from weft.ship.web.target import Web
from weft.tasks.opening import load_task


@pytest.fixture
def open_page(browser: Any, watch: Any) -> Iterator[Callable[..., Any]]:
    """Open an address as the page of an export, and wait for its model."""
    contexts = []

    def opened(address: str, width: int = 1000, **more: Any) -> Any:
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, **more)
        contexts.append(context)
        page = context.new_page()
        watch(page, address.rsplit("/", 1)[0], "blob:", "data:")
        page.goto(address)
        page.wait_for_selector("#text")
        return page

    yield opened
    for context in contexts:
        context.close()


def page_of(folder: Path) -> str:
    return (folder / PAGE).as_uri()


def site_of(task: Any, place: Path) -> Path:
    """The page of a model that is in no folder."""
    out = place / "site"
    out.mkdir()
    write_page(task, out)
    return out


def answer_of(page: Any) -> str:
    """The answer when it is there."""
    page.wait_for_function(
        "() => document.querySelector('#answer').textContent && !document.querySelector('.stale')"
    )
    return str(page.locator("#answer").text_content())


@pytest.fixture(scope="module")
def exported(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, exported."""
    out = tmp_path_factory.mktemp("web") / "site"
    asked = Asked(license="CC BY 4.0", is_certified=False)
    export(tiny_folder, Web(), out, asked=asked)
    return out


def test_what_is_typed_is_translated_as_weft_does(
    exported: Path, tiny_folder: Path, open_page: Any
) -> None:
    page = open_page(page_of(exported))
    lines = [
        "cat sees dog. mouse wants fish.",
        "",
        "horse likes bird.",
        "fish sees cat",
    ]
    expected = rounded_task(load_task(tiny_folder)).predictor().translate(lines)
    for count in (len(lines), 3, len(lines)):
        page.fill("#text", "\n".join(lines[:count]))
        whole = "\n".join(line.text for line in expected[:count])
        page.wait_for_function(
            "(whole) => document.querySelector('#answer').textContent === whole",
            arg=whole,
        )
        assert page.locator("#answer").inner_text() == whole
    assert [len(line.text.split()) > 2 for line in expected] == [
        True,
        False,
        True,
        True,
    ]
    assert "CC BY 4.0" in page.locator("#about").inner_text()
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function("() => !document.querySelector('#answer').textContent")


def test_the_page_is_served_as_well(exported: Path, open_page: Any) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of each request."""

    handler = partial(Quiet, directory=str(exported))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        page = open_page(f"http://127.0.0.1:{server.server_port}/{PAGE}")
        page.fill("#text", "cat sees dog.")
        assert answer_of(page)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_missing_file_is_named(exported: Path, browser: Any, tmp_path: Path) -> None:
    for name in ("index.html", "engine.js", "model.js", "page.js"):
        (tmp_path / name).write_bytes((exported / name).read_bytes())
    page = browser.new_page()
    page.goto(page_of(tmp_path))
    page.wait_for_selector("#status.refused")
    assert "weights-001.js" in page.locator("#status").inner_text()
    page.close()


def test_a_language_model_writes_on(open_page: Any, tmp_path: Path) -> None:
    task = tiny.tiny_task("lm-modern")
    page = open_page(page_of(site_of(task, tmp_path)))
    prompt = "Ein Hund.\nEin kleiner"
    page.fill("#text", prompt)
    page.fill("#limit", "9")
    page.fill("#seed", "4")
    page.press("#text", "Control+Enter")
    written = task.predictor().generate(prompt, max_new_tokens=9, seed=4)
    assert written.text
    page.wait_for_function(
        "(whole) => document.querySelector('#answer').textContent === whole",
        arg=f"{prompt}{written.text}",
    )
    assert page.locator("#answer").inner_text().startswith(prompt)
    page.wait_for_function(
        "() => document.querySelector('#write').textContent === 'Write on'"
    )


def test_a_classifier_shows_its_labels_in_order(open_page: Any, tmp_path: Path) -> None:
    task = tiny.tiny_task("classify-fast")
    page = open_page(page_of(site_of(task, tmp_path)))
    page.fill("#text", tiny.TEXTS[0])
    (answer,) = task.predictor().classify(tiny.TEXTS[0])
    page.wait_for_selector("#answer li")
    rows = page.locator("#answer li")
    found = [tuple(text.split("\n")) for text in rows.all_inner_texts()]
    ordered = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    assert found == [(label, f"{value:.3f}") for label, value in ordered]


def unknown_of(page: Any, pattern: str) -> str:
    """What is said of words that training never had, when it is so."""
    said = "document.querySelector('#unknown').textContent"
    page.wait_for_function(f"() => /{pattern}/.test({said})")
    return str(page.evaluate(said))


def test_words_that_training_never_had_are_named(
    open_page: Any, tmp_path: Path
) -> None:
    lines = ["The Hund sieht a cat.", "Der hund (Maus)!", "die Maus"]
    known = KnownWords.of(["the cat sees a dog"])
    task = replace(tiny.tiny_task("en-de"), known=known)
    page = open_page(page_of(site_of(task, tmp_path)))
    page.fill("#text", "The cat sees a dog")
    answer_of(page)
    assert page.locator("#unknown").text_content() == ""
    page.fill("#text", "\n".join(lines))
    said = unknown_of(page, "die”")
    answers = task.predictor().translate(lines)
    words = dict.fromkeys(word for one in answers for word in one.unknown_words)
    named = ", ".join(f"“{word}”" for word in words)
    assert said.startswith(f"Never seen in training: {named}. What the model makes")
    page.get_by_role("button", name="中文").click()
    assert unknown_of(page, "从未").startswith("训练中从未见过：“Hund”、“sieht”、")
    page.fill("#text", " ".join("abcdefghijkl"))
    assert "“k”，另有 1 个。" in unknown_of(page, "另有")
    page.fill("#text", "a dog")
    unknown_of(page, "^$")


def test_a_label_of_unknown_words_is_a_guess(open_page: Any, tmp_path: Path) -> None:
    known = KnownWords.of(["the cat sees a dog"])
    task = replace(tiny.tiny_task("classify-fast"), known=known)
    page = open_page(page_of(site_of(task, tmp_path)))
    said = {
        "The cat sees Hunde": "“Hunde”. The model answers by the other words.",
        "Ein Hund sees": "“Ein”, “Hund”. They are most of the text’s words",
        "Ein Hund 12": "The model knows no word of this text: its label is a guess.",
        "The dog": "^$",
    }
    for text, pattern in said.items():
        page.fill("#text", text)
        unknown_of(page, pattern)


def test_a_page_of_a_model_without_such_words_says_nothing(
    open_page: Any, tmp_path: Path
) -> None:
    task = replace(tiny.tiny_task("classify-fast"), known=None)
    page = open_page(page_of(site_of(task, tmp_path)))
    page.fill("#text", "qwx")
    answer_of(page)
    assert page.locator("#unknown").text_content() == ""


def test_the_page_speaks_chinese_and_fits_a_narrow_screen(
    exported: Path, open_page: Any
) -> None:
    page = open_page(page_of(exported), width=360, locale="zh-CN")
    assert page.title() == "英语 → 德语"
    page.fill("#text", "cat " * 60 + "x" * 200)
    answer_of(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="English").click()
    assert page.title() == "English → German"
    assert page.locator("#text").input_value().startswith("cat cat")


def test_the_manifest_has_the_hash_of_each_file(exported: Path, tmp_path: Path) -> None:
    manifest = durable.read_manifest(exported)
    names = {path.name for path in exported.iterdir()}
    assert names == {*manifest["files"], durable.MANIFEST}
    assert manifest["format"] == "weft-export-web"
    (exported / "page.js").rename(tmp_path / "page.js")
    with pytest.raises(FolderError):
        durable.read_manifest(exported)
    (tmp_path / "page.js").rename(exported / "page.js")


def test_both_languages_have_the_same_words(exported: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto(page_of(exported))
    page.wait_for_selector("#text")
    english, chinese = page.evaluate("[Object.keys(WORDS.en), Object.keys(WORDS.zh)]")
    assert english == chinese
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(exported: Path, open_page: Any, scheme: str) -> None:
    axe = Path(os.environ.get("WEFT_AXE", ""))
    if not axe.is_file():
        pytest.skip("WEFT_AXE names no axe.min.js (npm package axe-core)")
    page = open_page(page_of(exported), bypass_csp=True, color_scheme=scheme)
    page.fill("#text", "cat sees dog.")
    answer_of(page)
    page.add_script_tag(path=str(axe))
    found = page.evaluate("axe.run().then((all) => all.violations.map((v) => v.id))")
    assert found == []
