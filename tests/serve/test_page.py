"""The page of the server in a real browser, over a server that answers with made-up translations:
by pointer and by keyboard, on any width, and without a request to any other host.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pushed import of_which
from stand_in import LANGUAGES, MODELS, Refused, StandIn
from weft.documents.registry import endings

TEXT = "Ein Hund rennt im Schnee."
HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
VIEWS = ("translate", "generate", "classify", "inside", "models")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.fixture(scope="module")
def running() -> Iterator[StandIn]:
    server = StandIn()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running: StandIn) -> StandIn:
    running.reset()
    return running


@pytest.fixture
def open_page(
    browser: Any, server: StandIn, watch: Callable[..., None]
) -> Iterator[Callable[..., Any]]:
    """Open the page; at the end nothing may have gone wrong, or been asked of another host.

    With `refused` the browser may have said that requests failed.
    """
    contexts = []

    def opened(
        view: str = "translate",
        width: int = 1100,
        refused: bool = False,
        waits_for: str = "main > section",
        **more: Any,
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            locale=more.pop("locale", "en-US"),
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        own = (server.address, "data:", f"blob:{server.address}")
        watch(page, *own, refused=refused)
        page.goto(f"{server.address}#{view}")
        page.wait_for_selector(waits_for)
        return page

    yield opened
    for context in contexts:
        context.close()


def result_of(page: Any, text: str) -> None:
    """Wait until the translation reads so."""
    page.wait_for_function(
        "text => [...document.querySelectorAll('#result .line')].map(l => l.textContent).join('\\n') === text",
        arg=text,
    )


def translate(page: Any, text: str, answer: str) -> None:
    page.locator("#text").fill(text)
    result_of(page, answer)


def last_translation(server: StandIn) -> dict[str, Any]:
    """The fields of the last request for a translation; a language may be asked for after it."""
    asked = [fields for path, fields in server.asked if path == "/v1/translate"]
    return asked[-1]


def lit(page: Any, kind: str) -> list[str]:
    return page.locator(f"{kind}.lit").all_inner_texts()


# translating


def test_a_text_is_translated_as_one_types(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#text").press_sequentially("Ein Hund rennt", delay=5)
    result_of(page, "a dog runs")
    page.wait_for_function(
        "() => document.querySelector('#detected').innerText === 'detected: German'"
    )
    page.wait_for_function(
        "() => document.querySelector('#notes').innerText === 'Model: de-en.'"
    )
    texts = [
        fields["texts"] for path, fields in server.asked if path == "/v1/translate"
    ]
    assert texts[-1] == ["Ein Hund rennt"]
    # the first letter is sent, and the whole; on a busy machine a pause of some others
    assert len(texts) < len("Ein Hund rennt") / 2


def test_an_older_request_never_wins(open_page: Any, server: StandIn) -> None:
    page = open_page()
    server.delay = 0.4
    page.locator("#text").fill("Ein Hund")
    page.wait_for_timeout(250)
    server.delay = 0.0
    page.locator("#text").fill("Eine Katze")
    result_of(page, "a cat")
    page.wait_for_timeout(500)
    result_of(page, "a cat")
    assert page.locator(".busy").count() == 0


def test_line_breaks_stay_and_known_lines_are_not_asked_again(
    open_page: Any, server: StandIn
) -> None:
    page = open_page()
    translate(page, "Ein Hund\n\n  \nEine Katze", "a dog\n\n\na cat")
    assert [len(page.locator(rows).all()) for rows in (".line", ".mirror-line")] == [
        4,
        4,
    ]
    server.asked.clear()
    translate(page, "Ein Hund\n\n  \nEine Katze schläft", "a dog\n\n\na cat sleeps")
    texts = [
        fields["texts"] for path, fields in server.asked if path == "/v1/translate"
    ]
    assert texts == [["Eine Katze schläft"]]


@pytest.mark.long
def test_no_text_is_kept_or_in_an_address(open_page: Any) -> None:
    page = open_page()
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    translate(page, "Ein Hund", "a dog")
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    for text in (*addresses, kept, page.url):
        assert "Hund" not in text
    page.reload()
    page.wait_for_selector("#text")
    assert page.locator("#text").input_value() == ""


def test_words_say_how_probable_they_are(open_page: Any) -> None:
    page = open_page()
    translate(page, TEXT, "a dog runs in snow.")
    words = page.locator(".word[role=button]")
    assert words.nth(1).get_attribute("aria-label") == "dog, probability 0.21"
    words.nth(1).hover()
    assert page.locator(".tip").inner_text() == "probability 0.21"
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()
    assert "confidence" not in page.locator("body").inner_text()
    width = "e => parseFloat(getComputedStyle(e).textDecorationThickness)"
    assert words.nth(1).evaluate(width) > words.nth(3).evaluate(width)


def test_words_that_belong_together_light_up_both_ways(open_page: Any) -> None:
    page = open_page()
    translate(page, f"Ein Hund\n{TEXT}", "a dog\na dog runs in snow.")
    page.locator(".word", has_text="runs").hover()
    assert lit(page, ".source-word") == ["rennt"]
    box = page.locator(".source-word", has_text="Schnee.").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    assert lit(page, ".word") == ["snow."]
    assert lit(page, ".source-word") == ["Schnee."]
    page.locator("#text").press("Control+Home")
    page.locator("#text").press("ArrowRight")
    assert lit(page, ".word") == ["a"]


@pytest.mark.long
def test_places_are_counted_in_characters_of_unicode(open_page: Any) -> None:
    page = open_page()
    translate(page, "😀 😀 Ein Hund", "😀 😀 a dog")
    page.locator(".word", has_text="dog").hover()
    assert lit(page, ".source-word") == ["Hund"]


@pytest.mark.long
def test_the_words_lie_under_what_was_typed(open_page: Any) -> None:
    page = open_page(width=360)
    long = " ".join(["Ein Hund rennt im Schnee"] * 6)
    translate(page, long, " ".join(["a dog runs in snow"] * 6))
    places = """["mirror", "text"].map(name => document.getElementById(name) ?? document.querySelector(`.${name}`))
        .map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.width, b.height])"""
    mirror, text = page.evaluate(places)
    assert mirror == text
    assert page.locator("#text").evaluate("e => e.scrollHeight <= e.clientHeight")


@pytest.mark.long
def test_a_text_in_another_language_and_a_swap_that_is_off_say_so(
    open_page: Any, server: StandIn
) -> None:
    server.models = [one for one in MODELS if one["id"] == "en-zh"]
    page = open_page()
    page.locator("#source").select_option("en")
    page.locator("#target").select_option("zh")
    swap = page.locator(".swap")
    assert swap.is_disabled()
    said = "Swapping is off: no model translates Chinese to English."
    assert swap.get_attribute("title") == said
    assert swap.get_attribute("aria-label") == said
    page.locator("#text").fill("猫在看狗。先生")
    page.locator("#looks").wait_for()
    said = "This looks like Chinese, and is read as English."
    assert page.locator("#looks").inner_text() == said
    page.locator("#text").fill("Nothing")
    page.get_by_text("NOTHING", exact=True).wait_for()
    assert page.locator("#looks").count() == 0


@pytest.mark.long
def test_languages_swap(open_page: Any, server: StandIn) -> None:
    page = open_page()
    translate(page, "Ein Hund", "a dog")
    page.get_by_role("button", name="Swap languages").click()
    assert page.locator("#text").input_value() == "a dog"
    assert page.locator("#source").input_value() == "en"
    assert page.locator("#target").input_value() == "de"
    result_of(page, "A DOG")
    assert last_translation(server)["source"] == "en"


@pytest.mark.long
def test_a_pair_that_is_not_there_gives_way(open_page: Any) -> None:
    page = open_page()
    assert page.locator("#target").input_value() == "en"
    page.locator("#text").fill("no german here")
    page.wait_for_function("() => document.getElementById('target').value === 'de'")
    result_of(page, "NO GERMAN HERE")


@pytest.mark.long
def test_a_pivot_is_named_and_a_model_chosen(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    translate(page, "Ein Hund", "a dog")
    page.locator("select#model").select_option("de-en-small")
    page.wait_for_function(
        "() => document.getElementById('notes').innerText === 'Model: de-en-small.'"
    )
    assert last_translation(server)["model"] == "de-en-small"
    page.locator("#target").select_option("zh")
    page.wait_for_function(
        "() => document.getElementById('notes').innerText === 'By way of English: de-en, en-zh.'"
    )
    assert "model" not in last_translation(server)


@pytest.mark.long
def test_what_may_be_wrong_is_said(open_page: Any) -> None:
    page = open_page()
    text = "Ein Hund?\nEin Ein Quast Aquast\nZahl"
    translate(page, text, "a dog?\na a QUAST AQUAST\nZAHL")
    notes = page.locator("#notes li").all_inner_texts()
    assert notes == [
        "Line 2: the same again and again.",
        "Line 1: less certain than usual.",
        "Line 3: the source has 512, the translation does not.",
        "Never seen in training: “quast”.",
        "Model: de-en.",
    ]
    assert page.locator(".source-word.unknown").all_inner_texts() == ["Quast"]


@pytest.mark.long
def test_hostile_text_is_shown_and_not_run(open_page: Any) -> None:
    page = open_page()
    page.locator("#text").fill(f"Ein {HOSTILE}")
    page.wait_for_selector(".word")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hacked") is None


@pytest.mark.long
def test_a_text_above_the_limit_is_counted_and_not_sent(
    open_page: Any, server: StandIn
) -> None:
    page = open_page()
    page.locator("#text").fill("x" * 2001)
    page.wait_for_selector("#complaint:not([hidden])")
    assert (
        "2,001 characters, and the limit is 2,000"
        in page.locator("#complaint").inner_text()
    )
    assert page.locator("#count").inner_text() == "2,001 of 2,000"
    assert server.asked == []
    page.locator("#text").fill("line\n" * 500)
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    place = page.locator("#complaint").bounding_box()
    assert 0 <= place["y"] < 100  # seen wherever one is
    page.locator("#text").fill("Ein Hund")
    result_of(page, "a dog")
    assert page.locator("#complaint").is_hidden()


@pytest.mark.long
def test_copy_and_clear(open_page: Any) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    translate(page, "Ein Hund\n\nEine Katze", "a dog\n\na cat")
    page.locator("#copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "a dog\n\na cat"
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#text").input_value() == ""
    page.get_by_text("The translation appears here").wait_for()
    assert page.locator("#notes li").count() == 0


@pytest.mark.parametrize("locale", of_which(["en-US", "zh-CN"], "zh-CN"))
def test_a_model_that_knows_little_comes_with_sentences_to_try(
    open_page: Any, server: StandIn, locale: str
) -> None:
    narrow = {**MODELS[0], "card": {**MODELS[0]["card"], "examples": ["Ein Hund", "Eine Katze"]}}  # fmt: skip
    server.models = [narrow, *MODELS[1:]]
    page = open_page(locale=locale)
    examples = page.locator("#examples button")
    page.locator("#source").select_option("de")
    page.locator("#target").select_option("en")
    assert examples.all_inner_texts() == ["Ein Hund", "Eine Katze"]
    assert examples.first.get_attribute("lang") == "de"
    said = "knows only" if locale == "en-US" else "只认识"
    assert said in page.locator("#examples p").inner_text()
    examples.nth(1).click()
    result_of(page, "a cat")
    assert page.locator("#text").input_value() == "Eine Katze"
    assert page.locator("#examples").is_hidden()
    assert page.locator("#notes li", has_text=said).count() == 1
    page.locator("#text").fill("")
    page.locator("select#model").select_option("de-en-small")
    assert examples.count() == 0


# other words


def test_another_word_is_chosen_by_keyboard_alone(
    open_page: Any, server: StandIn
) -> None:
    page = open_page()
    translate(page, TEXT, "a dog runs in snow.")
    while not page.evaluate("document.activeElement.matches('.word')"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=option]")
    options = page.locator("[role=option]").all_text_contents()
    assert options[:2] == ["dog runs in snow.0.21", "big runs in snow.0.05"]
    assert server.asked[-1][1]["prefix"] == "a "
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.text_content() == options[1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    result_of(page, "a small runs in snow.")
    page.wait_for_function("() => document.activeElement.textContent === 'small'")
    assert server.asked[-1][1]["prefix"] == "a small runs in snow."
    result_of(page, "a small runs in snow.")
    assert page.locator("#result .word").all_text_contents()[-1] == "snow."
    page.locator("#undo").click()
    result_of(page, "a dog runs in snow.")
    assert page.locator("#undo").is_hidden()


def open_list_before_its_language(page: Any) -> Any:
    """Come back to a text and open other words; return the request for its language, held back."""
    translate(page, TEXT, "a dog runs in snow.")
    held: list[Any] = []

    def hold(request: Any) -> None:
        held.append(request)

    page.route("**/v1/detect", hold)
    page.evaluate("location.hash = 'models'")
    page.wait_for_selector(".models")
    page.evaluate("location.hash = 'translate'")
    page.locator(".word").nth(1).click()
    page.wait_for_selector("[role=option]")
    while not held:
        page.wait_for_timeout(10)
    return held[0]


@pytest.mark.long
def test_a_list_of_words_stays_open_while_its_line_does(open_page: Any) -> None:
    page = open_page()
    request = open_list_before_its_language(page)
    with page.expect_response("**/v1/detect"):
        request.continue_()
    page.wait_for_selector(".busy", state="detached")
    assert page.locator("[role=option]").all_inner_texts()[0].startswith("dog")
    page.keyboard.press("Enter")
    result_of(page, "a big runs in snow.")


def test_a_list_of_words_closes_where_its_line_is_drawn_anew(open_page: Any) -> None:
    page = open_page()
    request = open_list_before_its_language(page)
    english = {"language": "en", "confidence": 0.99}
    request.fulfill(json={"languages": [english]})
    page.wait_for_selector(".busy", state="detached")
    page.wait_for_selector(".popup", state="detached")


@pytest.mark.long
def test_the_list_of_words_closes(open_page: Any, server: StandIn) -> None:
    page = open_page()
    translate(page, TEXT, "a dog runs in snow.")
    word = page.locator(".word").nth(1)
    word.click()
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Escape")
    assert page.locator(".popup").count() == 0
    assert page.evaluate("document.activeElement.textContent") == "dog"
    word.click()
    page.wait_for_selector("[role=option]")
    page.locator("#text").click()
    assert page.locator(".popup").count() == 0
    result_of(page, "a dog runs in snow.")


@pytest.mark.long
def test_a_refused_list_of_words_says_why(open_page: Any, server: StandIn) -> None:
    page = open_page(refused=True)
    translate(page, TEXT, "a dog runs in snow.")
    server.refusals.append(Refused(400, "this model cannot complete"))
    page.locator(".word").nth(1).click()
    page.locator(".popup .refused").wait_for()
    assert page.locator(".popup .refused").inner_text() == "this model cannot complete"


@pytest.mark.long
def test_a_model_without_alignment_translates_all_the_same(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    server.refusals.append(Refused(400, "no alignment", code="unsupported"))
    translate(page, "Ein Hund", "a dog")
    assert last_translation(server)["words"] is False


# a glossary


INSTEAD = "They take the place of house, the server's glossary."


def test_what_a_memory_has_is_said(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    lines = ("Exact Hund", "Ein Hund", "Near Hund", "Repaired Hund", "Part Hund")
    written = "EXACT dog\na dog\nNEAR dog\nREPAIRED dog\nPART dog"
    translate(page, "\n".join(lines), written)
    notes = page.locator("#notes li").all_inner_texts()
    assert notes[:4] == [
        "Line 1: taken from the translation memory.",
        "Line 5: in part from the translation memory, which has some of the sentences.",
        "Line 3: 83 % alike in the translation memory: “Ein <b>” is “A <b>”.",
        "Line 4: taken from the translation memory, with the numbers of this text; there it is “Ein <b>”.",
    ]
    assert not any("memory" in note for note in notes[4:])


def test_terms_are_typed_dropped_and_chosen(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    translate(page, "Ein Hund\nEine Katze", "a dog\na cat")
    assert "glossary" not in last_translation(server)
    assert page.locator("#terms-panel").is_hidden()
    page.locator("#book").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'terms'")
    page.keyboard.type("hund = pup\nkatze = kitten|puss\n")
    result_of(page, "a pup\na cat")
    rows = [["hund", "pup"], ["katze", "kitten|puss"]]
    assert last_translation(server)["glossary"] == rows
    assert page.locator("#terms-count").inner_text() == f"Terms: 2. {INSTEAD}"
    assert page.locator("#served-terms").is_disabled()  # one's own are in its place
    marked = page.locator(".word.term")
    assert marked.all_inner_texts() == ["pup"]
    assert marked.get_attribute("aria-label").endswith(", term for hund")
    doubt = "element => getComputedStyle(element).getPropertyValue('--doubt')"
    assert marked.evaluate(doubt).strip() == "0"
    notes = page.locator("#notes")
    assert "Terms translated as the glossary has them: 1 of 2." in notes.inner_text()
    said = "“katze” should be translated as “kitten|puss”, which is not in the translation."
    assert said in notes.inner_text()
    drop_terms = {"name": "t.tsv", "mimeType": "text/plain", "buffer": b"katze\tpus"}
    page.locator("#terms-panel input[type=file]").set_input_files([drop_terms])
    result_of(page, "a dog\na pus")
    drop(page, "brief.docx", b"PK")
    page.get_by_text("Translated.").wait_for()
    asked = [fields for path, fields in server.asked if path == "/translate_file"]
    assert asked[-1]["glossary"] == "katze\tpus"
    page.locator("#terms-panel").get_by_role("button", name="Clear").click()
    result_of(page, "a dog\na cat")
    for choice, sent in (("law", "law"), ("-", "")):
        page.locator("#served-terms").select_option(choice)
        page.wait_for_function("() => !document.querySelector('.busy')")
        assert last_translation(server)["glossary"] == sent
    page.locator("#target").select_option("zh")
    page.locator("#served-terms").wait_for(state="detached")


def load_terms(page: Any, name: str, content: str) -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
    page.locator("#terms-panel input[type=file]").set_input_files([file])


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("t.csv", "hund,pup\nMax,\n", "hund = pup\nMax"),
        ("t.csv", "sep=;\nde;en\nhund;pup\n", "hund = pup"),
        ("t.tsv", "source\ttarget\tavoid\nhund\tpup\thound\n",
         "source\ttarget\tcase\tinflection\tavoid\nhund\tpup\t\t\thound"),
    ],
)  # fmt: skip
def test_a_file_of_terms_is_read_as_commands_read_it(
    open_page: Any, server: StandIn, name: str, content: str, shown: str
) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    translate(page, "Ein Hund", "a dog")
    page.locator("#book").click()
    load_terms(page, name, content)
    page.wait_for_function("shown => document.querySelector('#terms').value === shown", arg=shown)  # fmt: skip
    page.wait_for_function("() => document.querySelector('#terms-count').innerText")
    rows = [line.split("\t" if "\t" in line else " = ") for line in shown.split("\n")]
    page.wait_for_function("() => !document.querySelector('.busy')")
    assert last_translation(server)["glossary"] == rows
    asked = [fields for path, fields in server.asked if path == "/v1/terms"]
    assert asked == [{"source": "de", "target": "en"}]


def test_what_is_read_of_terms_is_told(open_page: Any, server: StandIn) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    page.locator("#book").click()
    status = page.locator("#terms-count")
    for typed, said in (
        ("hund = pup\nwindow: Luke\n", "Terms: 2. Without a translation, so kept as they are: “window: Luke”. {}"),
        ("hund\tpup", "Terms: 1. {}"),
        # as it is copied from a file
        ("hund;pup\nkatze;puss", "Terms: 2. {}"),
        ("New York, NY", "Terms: 1. Without a translation, so kept as they are: “New York, NY”. {}"),
    ):  # fmt: skip
        page.locator("#terms").fill(typed)
        page.locator("#terms").blur()
        status.get_by_text(said.format(INSTEAD), exact=True).wait_for()
    load_terms(page, "t.csv", "source,note,target\nhund,a dog,pup\nkatze,,puss\n")
    status.get_by_text(f"Terms: 2. {INSTEAD}", exact=True).wait_for()
    load_terms(page, "t.csv", "hund,pup\n")
    status.get_by_text(f"Terms: 1. {INSTEAD}", exact=True).wait_for()
    load_terms(page, "t.tsv", "source\ttarget\tcase\nhund\tpup\tperhaps\n")
    page.wait_for_function("() => document.querySelector('#terms-count.refused')")
    assert status.inner_text() == "t.tsv:2: case is 'perhaps'; write yes or no"
    assert page.locator("#terms").input_value() == "hund = pup"


def test_lines_that_are_no_terms_are_named_and_not_sent(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    translate(page, "Ein Hund", "a dog")
    page.locator("#book").click()
    status = page.locator("#terms-count.refused")
    unread = "Not read, so not used: “= Köter”, “Hund = Köter = x”."
    page.locator("#terms").fill("hund = pup\n= Köter\nHund = Köter = x")
    page.locator("#terms").blur()
    result_of(page, "a pup")
    assert f"Terms: 1. {unread}" in status.inner_text()
    assert last_translation(server)["glossary"] == [["hund", "pup"]]
    assert page.locator("#complaint").is_hidden()
    # where none is left, the server's glossary counts again
    page.locator("#terms").fill("= Köter")
    page.locator("#terms").blur()
    result_of(page, "a dog")
    assert status.inner_text().startswith("Not read, so not used: “= Köter”.")
    assert page.locator("#served-terms").is_enabled()


def test_of_a_table_that_cannot_be_read_nothing_counts(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    translate(page, "Ein Hund", "a dog")
    page.locator("#book").click()
    page.locator("#terms").fill("hund = pup")
    page.locator("#terms").blur()
    result_of(page, "a pup")
    page.locator("#terms").fill("source;target;case\nhund;pup;perhaps")
    page.locator("#terms").blur()
    result_of(page, "a dog")
    said = page.locator("#terms-count.refused").inner_text()
    assert said.startswith("terms.csv:2: case is 'perhaps'; write yes or no")
    assert said.endswith(" None of these terms is used.")


def test_terms_are_named_no_other_glossary_where_none_is_used(open_page: Any) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    page.locator("#book").click()
    for choice, said in (("law", INSTEAD.replace("house", "law")), ("-", "")):
        page.locator("#served-terms").select_option(choice)
        page.locator("#terms").fill(f"hund = {choice}")
        page.locator("#terms").blur()
        page.wait_for_function("() => document.querySelector('#served-terms').disabled")
        told = page.locator("#terms-count").inner_text()
        assert told == f"Terms: 1. {said}".strip()
        page.locator("#terms").fill("")
        page.locator("#terms").blur()
        page.wait_for_function("() => !document.querySelector('#served-terms').disabled")  # fmt: skip


def test_learned_doubt_is_shown(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    translate(page, "Learned Hund Katze\nEin Hund", "LEARNED dog cat\na dog")
    notes = page.locator("#notes").inner_text()
    assert "Words expected to be right: 70 %." in notes
    assert "Line 1: something of the text may be left out." in notes
    assert "Line 1: something may be said twice." in notes
    words = page.locator(".word")
    label = words.nth(1).get_attribute("aria-label")
    assert label == "dog, right with probability 0.50"
    doubt = "element => element.style.getPropertyValue('--doubt')"
    assert [words.nth(n).evaluate(doubt) for n in (0, 1)] == ["0.100", "0.500"]
    words.nth(1).hover()
    assert page.locator(".tip").inner_text() == "right with probability 0.50"


# files


def drop(page: Any, name: str, content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    file = {"name": name, "mimeType": "text/plain", "buffer": data}
    page.locator(".side input[type=file]").set_input_files([file])


def downloaded(page: Any) -> tuple[str, str]:
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download").click()
    download = waiting.value
    return download.suggested_filename, Path(download.path()).read_bytes().decode()


def test_a_file_is_translated_as_the_text_box_does_it(open_page: Any) -> None:
    page = open_page()
    drop(page, "zwei.txt", "\ufeffEin Hund\r\n\r\n  Eine Katze\nEin Mann")
    page.get_by_text("Translated.").wait_for()
    name, text = downloaded(page)
    assert name == "zwei.en.txt"
    assert text == "\ufeffa dog\r\n\r\n  a cat\na man"
    translate(page, "Ein Hund\n\nEine Katze\nEin Mann", "a dog\n\na cat\na man")


@pytest.mark.long
def test_a_file_stops_and_goes_on_where_it_stopped(
    open_page: Any, server: StandIn
) -> None:
    page = open_page()
    server.delay = 0.4
    lines = [f"Ein Hund {number}" for number in range(60)]
    drop(page, "viele.txt", "\n".join(lines))
    page.get_by_text(re.compile("^[1-9][0-9] of 60 texts · about")).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped; what is done is kept.").wait_for()
    done = int(page.locator("progress").evaluate("bar => bar.value"))
    assert 16 <= done < 60
    with page.expect_download() as some:
        page.get_by_role("link", name="Download what is done").click()
    text = Path(some.value.path()).read_text("utf-8").split("\n")
    assert text[done - 1 : done + 1] == [f"a dog {done - 1}", lines[done]]
    server.delay = 0.0
    server.asked.clear()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Translated.").wait_for()
    sent = [
        t for path, f in server.asked if path == "/v1/translate" for t in f["texts"]
    ]
    assert sent == lines[done:]
    assert downloaded(page)[1] == "\n".join(f"a dog {number}" for number in range(60))
    page.get_by_role("button", name="Remove: viele.txt").click()
    assert page.locator(".job").count() == 0


@pytest.mark.long
def test_a_file_of_any_other_format_is_translated_as_a_whole(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    server.refusals.append(Refused(400, "not today"))
    drop(page, "brief.docx", b"PK 1234")
    page.get_by_text("Stopped: not today").wait_for()
    server.delay = 1.5
    page.locator("#source").select_option("de")
    page.get_by_role("button", name="Resume").click()
    waits = re.compile(r"^The server translates the whole file \(\d+ s\) …$")
    page.get_by_text(waits).wait_for()
    assert page.locator("progress:indeterminate").count() == 1
    page.get_by_text("Translated.").wait_for()
    assert downloaded(page) == ("brief.en.docx", "4321 KP")
    asked = [fields for path, fields in server.asked if path == "/translate_file"]
    assert asked == [
        {"source": "auto", "target": "en"},
        {"source": "de", "target": "en"},
    ]


@pytest.mark.long
def test_a_web_page_keeps_its_tags(open_page: Any, server: StandIn) -> None:
    page = open_page()
    source = (
        "<!DOCTYPE html>\n<html class=x lang='de-AT'><head><title>Hund</title><style>p {color: red}</style></head>"
        "<body><p style='color: red'>Ein <b>Hund</b> und</p><pre>nicht</pre><div>Eine<ul><li>Katze</li></ul></div>"
        "<script>let nicht = 1;</script></body></html>"
    )
    drop(page, "seite.html", source)
    page.get_by_text("Translated.").wait_for()
    asked = [f for path, f in server.asked if path == "/v1/translate"]
    assert asked[0]["texts"] == ["Hund", "Ein <b>Hund</b> und", "Eine", "Katze"]
    assert asked[0]["format"] == "html"
    name, text = downloaded(page)
    assert name == "seite.en.html"
    assert text.startswith(
        '<!DOCTYPE html>\n<html class=x lang="en"><head><title>HUND</title><style>p {color: red}'
    )
    assert (
        "EIN <b>HUND</b> UND</p><pre>nicht</pre><div>EINE<ul><li>KATZE</li></ul></div>"
        in text
    )


@pytest.mark.long
def test_a_web_page_in_ascii_stays_in_ascii(open_page: Any) -> None:
    page = open_page()
    drop(page, "seite.htm", "<p>Ein <b>Maedchen</b></p>")
    page.get_by_text("Translated.").wait_for()
    assert downloaded(page) == ("seite.en.htm", "<p>EIN <b>M&#196;DCHEN</b></p>")


@pytest.mark.long
def test_files_that_cannot_be_read_say_why(open_page: Any, server: StandIn) -> None:
    page = open_page(refused=True)
    for name, content, reason in (
        (
            "old.PDF",
            "x",
            ".pdf is not translated here. Open it in Word, LibreOffice or the like, save it as .docx, and",
        ),
        ("a.exe", "x", f"not translated here; these are: {', '.join(endings())}."),
        (
            "b.txt",
            b"\xff\xfe\x00",
            "the file: byte 1 is not UTF-8; save the file as UTF-8",
        ),
        ("c.txt", "x" * 100_001, "0.1 MiB; the limit is 0.1 MiB."),
        ("d.txt", " \n \n", "There is no text in it."),
    ):
        drop(page, name, content)
        job = page.locator(".job", has_text=name)
        job.locator(".refused", has_text=reason).wait_for()
        assert job.get_by_role("button").count() == 1
    server.refusals.append(Refused(400, "not today"))
    page.locator("#source").select_option("de")
    drop(page, "e.txt", "Ein Hund")
    page.get_by_text("Stopped: not today").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Translated.").wait_for()


def report_lines(page: Any, name: str) -> list[str]:
    job = page.locator(".job", has_text=name)
    job.locator(".notes li").first.wait_for()
    lines: list[str] = job.locator(".notes li").all_inner_texts()
    return lines


def test_what_came_of_a_file_is_said(open_page: Any, server: StandIn) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    term = {"source": "Hund", "wanted": ["hound"], "used": "", "status": "missing"}
    numbers = {"put_back": ["512"], "missing": [], "added": []}
    first = [
        {"text": "Zahl 512", "marks": ["numbers", "unsure"], "numbers": numbers},
        {"text": "Ein <b>Hund", "terms": [term]},
    ]  # fmt: skip
    server.report = {
        "texts": 1200,
        "memory": {"whole": 30, "part": 2, "repaired": 1, "near": 4},
        "terms": {"used": 5, "missing": 1},
        "numbers": {"put_back": 1, "missing": 0, "added": 0},
        "doubtful": 7,
        "first": first,
    }
    drop(page, "brief.docx", b"PK")
    summary = (
        "Texts: 1,200. From the translation memory: 30 whole, 2 in part, 1 with other numbers; near matches for 4 more. "
        "Terms translated as the glossary has them: 5 of 6. Numbers put back: 1; missing: 0; added: 0. "
        "Places to look at: 7."
    )
    assert report_lines(page, "brief.docx") == [
        summary,
        "“Zahl 512”: put back: 512.",
        "“Zahl 512”: less certain than usual.",
        "“Ein <b>Hund”: “Hund” should be translated as “hound”, which is not in the translation.",
        "and 5 more places",
    ]
    server.report = None  # of an older server, or of a file with no text
    drop(page, "leer.docx", b"PK")
    page.locator(".job", has_text="leer.docx").get_by_text("Translated.").wait_for()
    assert page.locator(".job", has_text="leer.docx").locator("li").count() == 0


def test_of_a_text_file_the_page_counts_itself(open_page: Any, server: StandIn) -> None:
    page = open_page(locale="zh-CN")
    page.locator("#source").select_option("de")
    page.locator("#target").select_option("en")
    page.locator("#book").click()
    page.locator("#terms").fill("hund = pup\nkatze = kitten")
    page.locator("#terms").blur()
    page.wait_for_function("() => document.querySelector('#served-terms').disabled")
    lines = ["Exact Hund", "Part Hund", "Repaired Mann", "Near Mann", "Zahl Katze"]
    lines += ["Hund Hund ja?"] * 2
    drop(page, "a.txt", "\n".join([*lines, *(f"Ein Mann {n}" for n in range(20))]))
    said = report_lines(page, "a.txt")
    assert said[0] == (
        "共 27 段文字。 取自翻译记忆：整段 2，部分 1，换了数字 1；另有 1 段有相近的。 按术语表翻译的术语：3 / 4。 "
        "补回的数字：0；缺少：1；多出：0。 需要查看的地方：3 处。"
    )
    assert said[1:] == [
        "“Repaired Mann”：取自翻译记忆，并换成了本文的数字；原为“Ein <b>”。",
        "“Zahl Katze”：“katze” 应译为 “kitten”，译文里没有。",
        "“Zahl Katze”：原文中有 512，译文中没有。",
        "“Hund Hund ja?”：一再重复。",
        "“Hund Hund ja?”：不如平时有把握。",
    ]
    asked = [fields for path, fields in server.asked if path == "/v1/translate"]
    assert asked[-1]["memory"] is True
    drop(page, "b.txt", "Ein Mann")
    assert report_lines(page, "b.txt") == ["共 1 段文字。 没有明显可疑的地方。"]


# the other views


def test_a_text_is_written_on(open_page: Any, server: StandIn) -> None:
    page = open_page("generate")
    page.locator("#prompt").fill("To be")
    page.locator("#set-max_tokens").fill("7")
    page.locator("#set-seed").fill("5")
    page.locator("#prompt").press("Control+Enter")
    page.get_by_text("The limit is reached. (seed 5)").wait_for()
    assert page.locator("#written").inner_text() == "To be" + "".join(
        f" word{i}" for i in range(7)
    )
    sent = server.asked[-1][1]
    assert (sent["model"], sent["prompt"], sent["seed"]) == ("plays", "To be", 5)
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.8, 0.95, 7)
    tokens = page.locator("#written .written-token")
    tokens.nth(1).hover()
    assert page.locator(".tip").inner_text() == "probability 0.61"
    page.locator("nav a[href='#models']").click()
    page.wait_for_selector("section.models")
    page.go_back()
    page.wait_for_selector(".written-token")
    assert page.locator("#written .written-token").count() == 7


@pytest.mark.long
def test_writing_stops_at_once(open_page: Any, server: StandIn) -> None:
    page = open_page("generate")
    page.locator("#set-max_tokens").fill("100")
    page.locator("#write").click()
    page.wait_for_selector(".written-token")
    page.keyboard.press("Enter")  # the button that stops has the focus
    page.get_by_text(re.compile(r"^Stopped\. \(seed \d+\)$")).wait_for()
    assert page.locator(".written-token").count() < 100
    assert page.evaluate("document.activeElement.id") == "write"
    until = time.monotonic() + 30
    while not server.left and time.monotonic() < until:
        time.sleep(0.02)
    assert server.left == 1


@pytest.mark.long
def test_a_setting_out_of_range_is_not_sent(open_page: Any, server: StandIn) -> None:
    page = open_page("generate")
    for name, value in (("max_tokens", "101"), ("top_p", "2"), ("temperature", "")):
        page.locator(f"#set-{name}").fill(value)
        page.locator("#write").click()
        assert page.locator(f"#set-{name}").evaluate("e => e.matches(':invalid')")
        page.locator(f"#set-{name}").fill("1")
    assert server.asked == []


def test_a_text_is_classified_as_one_types(open_page: Any, server: StandIn) -> None:
    page = open_page("classify", refused=True)
    page.locator("#sample").fill("Where is the Quix museum?")
    page.wait_for_selector(".reason")
    labels = page.locator("#labels li").all_inner_texts()
    assert [label.split() for label in labels] == [
        ["place", "0.81"],
        ["person", "0.15"],
        ["number", "0.04"],
    ]
    assert page.locator("#notes").inner_text() == "Never seen in training: “Quix”."
    reasons = page.locator(".reason")
    assert reasons.nth(0).inner_text().split("\n") == ["Where", "+0.23"]
    assert "above" in reasons.nth(0).get_attribute("class")
    page.get_by_label("Labels").last.select_option("person")
    assert reasons.nth(0).inner_text().split("\n") == ["Where", "−0.23"]
    asked = [fields for path, fields in server.asked if path == "/v1/inspect"]
    assert asked[-1]["parts"] == ["left_out"]
    page.locator("#sample").fill("A tiny small thing")
    shown = page.locator(".reason small")
    shown.nth(3).wait_for()
    assert shown.all_inner_texts()[1:3] == ["> −0.001", "+0.012"]
    assert page.locator("#cut").count() == 0
    server.delay = 0.5
    page.locator("#sample").fill("word " * 25)
    assert shown.count() == 0  # they were another text's
    page.locator("#reasons", has_text="Computing what speaks").wait_for()
    page.locator("#cut", has_text="its first 25 tokens").wait_for()
    server.delay = 0.0
    page.locator("#sample").fill("word " * 41)
    page.get_by_text("Why is not shown: more than 40 tokens").wait_for()
    page.locator("#sample").fill("")
    assert page.locator("#labels li").count() == 0


@pytest.mark.long
def test_the_pictures_of_an_inspection_follow_what_is_typed(open_page: Any) -> None:
    page = open_page("inside")
    page.locator("select#model").select_option("de-en")
    page.locator("#look-text").fill("Ein Hund rennt")
    page.wait_for_selector("#looks-own canvas")
    tokens = page.locator("#ribbon-source button")
    assert tokens.all_inner_texts() == ["Ein", "Hund", "rennt"]
    page.get_by_role("radio", name="; Layer 1, head 2").click()
    page.locator("#look-text").fill("Ein Hund rennt im Schnee")
    page.wait_for_function(
        "() => document.querySelector('#pictures').shadowRoot.querySelectorAll('#ribbon-source button').length === 5"
    )
    # another text is seen as the one before
    chosen = page.locator(".head[aria-checked=true]")
    assert chosen.get_attribute("title") == "Layer 1, head 2"
    tokens.nth(1).click()
    said = "After “start”, to write “a”, layer 1, head 2 looks at “Hund”: "
    page.locator("#looks-reading", has_text=said).wait_for()  # a moment later
    page.get_by_role("button", name="Next step").click()
    assert page.locator("#step-count").inner_text() == "2 of 5"
    # it is drawn, and follows, when it comes near
    page.locator("#lanes").scroll_into_view_if_needed()
    page.locator("#lanes-grid-cell[aria-label^='Step 2,']").wait_for(state="attached")
    page.locator("#speak").click()
    page.wait_for_function(
        "() => document.getElementById('pictures')?.shadowRoot.getElementById('step-count')?.innerText[0] === '第'"
    )
    assert page.title() == "看内部 · Weft"


@pytest.mark.long
def test_pictures_change_with_the_task_of_the_model(open_page: Any) -> None:
    page = open_page("inside")
    page.locator("#look-text").fill("Ein Hund")
    page.wait_for_selector("#lanes")
    page.locator("select#model").select_option("questions")
    page.wait_for_selector("#reasons")
    assert page.locator("#lanes").count() == 0
    page.locator("select#model").select_option("plays")
    page.wait_for_selector("#reasons", state="detached")


@pytest.mark.long
def test_a_translation_leads_to_its_inside(open_page: Any) -> None:
    page = open_page()
    translate(page, "\nEin Hund", "\na dog")
    page.locator("#look").click()
    page.wait_for_selector("#looks-own canvas")
    assert page.locator("#look-text").input_value() == "Ein Hund"
    assert page.locator("select#model").input_value() == "de-en"
    assert page.locator("#way").is_hidden()
    page.locator("#look-text").fill("Eine Katze")
    for view in ("models", "inside"):
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_selector(f"section.{view}")
    assert page.locator("#look-text").input_value() == "Eine Katze"


def test_inside_of_a_translation_with_other_words_it_says_whose_is_shown(
    open_page: Any,
) -> None:
    page = open_page()
    translate(page, "Ein Hund", "a dog")
    page.locator(".word", has_text="dog").click()
    page.locator(".popup li", has_text="big").click()
    result_of(page, "a big")
    page.locator("#look").click()
    way = page.locator("#way:not([hidden])")
    way.wait_for()
    assert "the model's own translation" in way.inner_text()
    page.locator("#look-text").fill("Eine Katze")
    page.wait_for_selector("#way", state="hidden")


@pytest.mark.long
def test_inside_of_a_translation_by_two_models_it_says_which_is_shown(
    open_page: Any,
) -> None:
    page = open_page()
    page.locator("#source").select_option("de")
    page.locator("#target").select_option("zh")
    translate(page, "Ein Hund", "a dog")
    page.locator("#look").click()
    way = page.locator("#way:not([hidden])")
    way.wait_for()
    assert way.inner_text().startswith("de-en, en-zh translated this one after the")
    page.locator("select#model").select_option("en-zh")
    page.wait_for_selector("#way", state="hidden")


@pytest.mark.long
def test_what_was_typed_is_looked_at_from_the_menu_too(open_page: Any) -> None:
    page = open_page()
    translate(page, "\nEin Hund rennt", "\na dog runs")
    page.locator("nav a[href='#inside']").click()
    page.wait_for_selector("#lanes")
    assert page.locator("#look-text").input_value() == "Ein Hund rennt"
    assert page.locator("select#model").input_value() == "de-en"
    options = page.locator("#model option").all_inner_texts()
    assert "plays · language model" in options
    page.locator("#look-text").fill("Eine Katze")
    page.locator("nav a[href='#translate']").click()
    page.locator("nav a[href='#inside']").click()
    assert page.locator("#look-text").input_value() == "Eine Katze"


@pytest.mark.long
def test_the_colours_of_pictures_follow_the_look(open_page: Any) -> None:
    page = open_page("inside", color_scheme="light")
    page.locator("#look-text").fill("Ein Hund")
    page.wait_for_selector(".head canvas")
    pixel = "c => [...c.getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3)"
    before = page.locator(".head canvas").first.evaluate(pixel)
    page.locator("#theme").click()
    after = page.locator(".head canvas").first.evaluate(pixel)
    assert before != after


def test_models_show_their_cards_and_curves(open_page: Any) -> None:
    page = open_page("models")
    cards = page.locator(".model")
    page.wait_for_selector(".curve")
    assert cards.locator("h2").all_inner_texts() == [model["id"] for model in MODELS]
    first = cards.first.inner_text()
    for part in (
        "German → English",
        "3+3 layers",
        "BLEU   27.21",
        "captions of photographs",
    ):
        assert part in first
    assert "loss on dev: 4.00 at step 200, 2.25 at step 1,800" in first
    assert cards.first.locator(".curve path").count() == 3
    ticks = cards.first.locator(".curve text").all_text_contents()
    assert ticks == ["6.00", "0.96", "0", "Step 1,950"]
    page.get_by_text("Samples while it learned").click()
    assert "A dog ." in cards.first.inner_text()
    assert "Its folder holds no record of the training." in cards.nth(1).inner_text()
    page.get_by_text("loss in training: 6.25 at step 6", exact=True).wait_for()
    assert "h-" in cards.nth(2).locator(".curve path").get_attribute("d")
    assert cards.nth(1).locator("details").count() == 0


@pytest.mark.long
def test_what_the_server_says_is_said_in_chinese(
    open_page: Any, server: StandIn
) -> None:
    page = open_page("models", locale="zh-CN", refused=True)
    card = page.locator(".model").first
    card.locator(".curve").wait_for()
    seen = card.inner_text()
    for part in (
        "Transformer，3+3 层（宽度 192，6 个头）",
        "本机引擎",
        "可作草稿，需要校对",
        "评判了开发集的 1,200 条",
        "BLEU 27.21",
    ):
        assert part in seen
    assert "captions of photographs" not in seen
    card.get_by_text("英文原文").click()
    assert card.get_by_text("captions of photographs").is_visible()
    page.locator("nav a[href='#translate']").click()
    page.locator("#source").select_option("de")
    for code, said in (
        ("unknown_pair", "没有模型翻译这两种语言。"),
        ("unsupported", "这个模型做不到：it is so"),
        ("of another server", "it is so"),
    ):
        server.refusals = [Refused(400, "it is so", code=code)] * 2
        page.locator("#text").fill(f"Ein Hund {code}")
        page.locator("#complaint", has_text=said).wait_for()
        server.refusals = []


# the server


@pytest.mark.parametrize(
    "task", ["translation", "language-modelling", "classification"]
)
@pytest.mark.long
def test_only_what_the_models_can_do_is_offered(
    open_page: Any, server: StandIn, task: str
) -> None:
    server.models = [model for model in MODELS if model["task"] == task]
    view = {
        "translation": "translate",
        "language-modelling": "generate",
        "classification": "classify",
    }[task]
    page = open_page("nowhere")
    links = page.locator("nav a").evaluate_all("all => all.map(a => a.hash)")
    assert links == [f"#{view}", "#inside", "#models"]
    assert page.locator(f"section.{view}").count() == 1


@pytest.mark.long
def test_a_model_of_unknown_languages_is_offered_by_its_name(
    open_page: Any, server: StandIn
) -> None:
    mine = {**MODELS[0], "id": "mine", "source": "und", "target": "und"}
    unknown = {"code": "und", "name": "und", "targets": ["und"]}
    server.models, server.known = [mine], [unknown]
    page = open_page()
    translate(page, "Ein Hund", "a dog")
    for picker in ("#source", "#target"):
        assert page.locator(f"{picker} option").all_inner_texts() == ["unknown (mine)"]
    assert page.locator(".swap").is_disabled()
    server.models, server.known = [*MODELS, mine], [*LANGUAGES, unknown]
    page = open_page()
    page.locator("#source").select_option("und")
    translate(page, "Eine Katze", "a cat")
    fields = last_translation(server)
    assert (fields["source"], fields["target"]) == ("und", "und")
    assert page.locator("#looks").count() == 0


def test_every_view_has_one_heading_of_its_own_and_one_main_part(
    open_page: Any,
) -> None:
    page = open_page()
    for view, name in (("translate", "Translate"), ("inside", "Look inside")):
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_selector(f"section.{view} h1")
        assert page.get_by_role("heading", level=1).all_inner_texts() == [name]
    page.locator("#look-text").fill("Ein Hund")
    page.wait_for_selector("#looks-own canvas")
    assert page.locator("main").count() == 1  # also in what stands in a shadow
    assert page.locator("section#page").count() == 1


@pytest.mark.long
def test_a_server_without_models_says_so(open_page: Any, server: StandIn) -> None:
    server.models = []
    page = open_page(waits_for=".notice")
    assert page.locator("main").inner_text() == "This server has no models."


@pytest.mark.long
def test_a_server_that_stops_is_waited_for(open_page: Any, server: StandIn) -> None:
    page = open_page(refused=True)
    translate(page, "Ein Hund", "a dog")
    server.stop()
    try:
        page.locator("#text").fill("Eine Katze")
        page.locator(
            "#status", has_text="The server does not answer; trying again."
        ).wait_for()
    finally:
        server.start()
    result_of(page, "a cat")
    assert page.locator("#status").is_hidden()


@pytest.mark.long
def test_a_refusal_is_said_in_the_words_of_the_server(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    server.refusals.append(Refused(400, "a word of the server"))
    page.locator("#text").fill("Ein Hund")
    page.locator("#complaint", has_text="a word of the server").wait_for()
    translate(page, "Eine Katze", "a cat")
    assert page.locator("#complaint").is_hidden()


@pytest.mark.long
def test_a_busy_server_is_asked_again(open_page: Any, server: StandIn) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    server.refusals.append(Refused(503, "busy", retry_after="1"))
    page.locator("#text").fill("Ein Hund")
    page.locator(
        "#status", has_text="The server is busy; trying again in 1 s."
    ).wait_for()
    result_of(page, "a dog")
    assert page.locator("#status").is_hidden()


@pytest.mark.long
def test_a_limit_of_requests_is_waited_out_also_while_one_types(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    page.locator("#source").select_option("de")
    limit = Refused(429, "too many", code="rate_limited", retry_after="2")
    server.refusals.append(limit)
    page.locator("#text").fill("Ein Hund")
    page.locator("#status", has_text="Your limit of requests a minute").wait_for()
    asked = len(server.asked)
    for letter in " rennt":
        page.locator("#text").press_sequentially(letter)
        page.wait_for_timeout(100)
    assert len(server.asked) == asked
    result_of(page, "a dog runs")
    assert page.locator("#status").is_hidden()


def test_a_key_is_asked_for_and_kept_for_the_tab_alone(
    open_page: Any, server: StandIn
) -> None:
    server.key = "weft-123"
    page = open_page(refused=True, waits_for="dialog")
    page.locator("#key").fill("wrong")
    page.keyboard.press("Enter")
    page.locator("dialog", has_text="does not know this key").wait_for()
    page.locator("#key").fill("weft-123")
    page.get_by_role("button", name="Use it").click()
    page.wait_for_selector("#text")
    translate(page, "Ein Hund", "a dog")
    kept = page.evaluate(
        "[localStorage.getItem('weft-key'), sessionStorage.getItem('weft-key'), document.cookie]"
    )
    assert kept == [None, "weft-123", ""]
    page.reload()
    page.wait_for_selector("#text")
    assert page.locator("dialog").count() == 0


@pytest.mark.long
def test_a_server_that_comes_back_may_want_a_key(
    open_page: Any, server: StandIn
) -> None:
    page = open_page(refused=True)
    translate(page, "Ein Hund", "a dog")
    server.stop()
    page.locator("#text").fill("Eine Katze")
    page.locator("#status", has_text="does not answer").wait_for()
    server.key = "weft-123"
    server.start()
    page.locator("dialog").wait_for()
    page.keyboard.press("Escape")
    page.locator("#complaint", has_text="answers only with a key").wait_for()
    page.locator("#give-key").click()
    page.locator("#key").fill("weft-123")
    page.keyboard.press("Enter")
    result_of(page, "a cat")


def test_a_page_without_a_key_says_so_and_asks_again(
    open_page: Any, server: StandIn
) -> None:
    server.key = "weft-123"
    page = open_page(refused=True, waits_for="dialog")
    page.keyboard.press("Escape")
    page.locator(".refused", has_text="answers only with a key").wait_for()
    assert "Bearer" not in page.locator("body").inner_text()
    page.get_by_role("button", name="Enter key").click()
    page.locator("#key").fill("weft-123")
    page.keyboard.press("Enter")
    page.wait_for_selector("#text")
    assert page.locator("#status").is_hidden()


# everyone


@pytest.mark.long
def test_the_language_of_the_browser_comes_first_and_a_choice_stays(
    open_page: Any,
) -> None:
    page = open_page(locale="zh-CN")
    assert page.locator("nav").inner_text().split() == [
        "翻译",
        "续写",
        "分类",
        "看内部",
        "模型",
    ]
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    translate(page, "Ein Hund", "a dog")
    assert page.locator("#detected").inner_text() == "检测到：德语"
    page.locator("#speak").click()
    page.get_by_role("link", name="Look inside").wait_for()
    assert page.locator("#text").input_value() == "Ein Hund"
    result_of(page, "a dog")
    page.reload()
    page.get_by_role("link", name="Look inside").wait_for()


@pytest.mark.long
def test_light_and_dark(open_page: Any) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(251, 250, 247)", "rgb(20, 23, 28)"
    page = open_page(color_scheme="dark")
    assert page.evaluate(colour) == dark
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(colour) == light
    page.reload()
    page.wait_for_selector("#text")
    assert page.evaluate(colour) == light
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(colour) == dark


def filled(page: Any, view: str) -> None:
    """Fill a view with what it can show."""
    field = {
        "translate": "#text",
        "generate": "#prompt",
        "classify": "#sample",
        "inside": "#look-text",
    }.get(view)
    if field:
        page.locator(field).fill("Ein Hund rennt mit einem roten Hut im Schnee")
    if view == "generate":
        page.locator("#set-max_tokens").fill("5")
        page.locator("#write").click()
    done = {
        "translate": ".word",
        "generate": "#ended:not(:empty)",
        "classify": ".reason",
        "inside": "#looks-own canvas",
        "models": ".curve",
    }
    page.wait_for_selector(done[view])


def test_a_long_text_scrolls_in_its_pane(open_page: Any) -> None:
    page = open_page()
    translate(page, TEXT, "a dog runs in snow.")
    assert page.locator(".tall").count() == 0
    count = 60
    translate(
        page, "\n".join([TEXT] * count), "\n".join(["a dog runs in snow."] * count)
    )
    page.wait_for_selector(".tall")
    heights = "[...document.querySelectorAll('.stack')].map(e => [e.clientHeight, e.scrollHeight])"
    for shown, whole in page.evaluate(heights):
        assert shown <= 0.7 * 800 < whole
    page.locator("#result .word").last.click()
    page.wait_for_selector("[role=option]")
    pane = page.locator("#result").locator("..").bounding_box()
    option = page.locator("[role=option]").first.bounding_box()
    assert pane["y"] <= option["y"] < pane["y"] + pane["height"]
    page.locator("#text").press_sequentially("x")
    page.locator("#text").fill(TEXT)
    page.wait_for_selector(".tall", state="detached")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.long
def test_a_narrow_screen_scrolls_downwards_only(open_page: Any, locale: str) -> None:
    page = open_page(width=360, locale=locale)
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_selector(f"section.{view}")
        filled(page, view)
        widths = page.evaluate(
            "[document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        assert max(widths) <= 360, view
    page.evaluate("location.hash = 'translate'")
    page.wait_for_selector(".word")
    for word in (0, 4, 8):
        page.locator(".word").nth(word).click()
        page.wait_for_selector("[role=option]")
        box = page.locator(".popup").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        page.keyboard.press("Escape")


def test_the_tab_key_leads_through_everything(open_page: Any) -> None:
    page = open_page()
    translate(page, TEXT, "a dog runs in snow.")
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    come = []
    name = "(e => e.id || e.hash || e.className)(document.activeElement)"
    page.locator("#skip").focus()
    for _ in range(30):
        come.append(page.evaluate(name))
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
    ways = [
        "skip",
        "#translate",
        "#generate",
        "#classify",
        "#inside",
        "#models",
        "speak",
        "theme",
        "source",
        "text",
        "swap",
        "target",
        "model",
        "word",
        "copy",
        "look",
    ]
    places = [come.index(way) for way in ways]
    assert places == sorted(places)
    assert come.count("word") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_axe_finds_nothing_serious(open_page: Any, scheme: str) -> None:
    axe = Path(os.environ.get("WEFT_AXE", ""))
    if not axe.is_file():
        pytest.skip("WEFT_AXE names no axe.min.js (npm package axe-core)")
    page = open_page(color_scheme=scheme, bypass_csp=True)
    script = axe.read_text("utf-8")
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_selector(f"section.{view}")
        filled(page, view)
        page.wait_for_timeout(400)
        page.evaluate(script)
        found = page.evaluate(
            "rules => axe.run(document, {runOnly: rules}).then(r => r.violations)",
            RULES,
        )
        named = [
            (
                fault["id"],
                fault["nodes"][0]["target"],
                fault["nodes"][0]["failureSummary"],
            )
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]
        assert named == [], view
