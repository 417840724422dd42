"""The frame of the page: the ribbon, the one place that everything is about, paper and forced
colours.
"""

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pushed import of_which
from weft.inspection.coding import Form, coded, unpacked
from weft.inspection.language import LanguageInspection
from weft.inspection.report import write_report
from weft.inspection.tokens import Choice, Vectors
from weft.inspection.translation import TranslationInspection

TINTS = "all => all.map(token => Number(token.style.getPropertyValue('--shade')))"


def tints(page: Any, side: str) -> list[float]:
    found: list[float] = page.locator(f"#ribbon-{side} button").evaluate_all(TINTS)
    return found


def chosen(page: Any, side: str) -> list[int]:
    script = "all => all.flatMap((token, i) => token.ariaCurrent ? [i] : [])"
    found: list[int] = page.locator(f"#ribbon-{side} button").evaluate_all(script)
    return found


def by_head(page: Any) -> None:
    """Tint the ribbon by the head that is chosen, whatever else could tint it."""
    page.evaluate("go({ tint: 'head' })")


def expected(weights: Any) -> Any:
    return pytest.approx(np.sqrt(weights).tolist(), abs=0.01)


@pytest.fixture
def page(open_page: Any, inspection: TranslationInspection) -> Any:
    return open_page(inspection)


def test_both_sentences_stay_in_view_with_the_place_in_them(
    page: Any, inspection: TranslationInspection
) -> None:
    assert page.locator("#ribbon-source button").count() == len(inspection.src_ids)
    assert page.locator("#ribbon-target button").count() == len(inspection.tgt_ids)
    assert page.locator("#ribbon-source button").last.inner_text() == "end"
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    box = page.locator("#ribbon").bounding_box()
    assert box["y"] == pytest.approx(0, abs=1)
    assert chosen(page, "target") == [0]


def test_the_step_moves_by_buttons_keys_and_tokens(
    page: Any, inspection: TranslationInspection
) -> None:
    by_head(page)
    before, after = page.locator("#ribbon .step").all()
    assert before.is_disabled()
    after.click()
    assert chosen(page, "target") == [1]
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    assert chosen(page, "target") == [2]
    assert page.locator("#step-count").inner_text() == f"3 of {len(inspection.tgt_ids)}"
    layer, head = page.evaluate("[place.layer, place.head]")
    assert tints(page, "source") == expected(inspection.cross[layer, head, 2])
    page.keyboard.press("ArrowLeft")
    assert chosen(page, "target") == [1]
    page.locator("#ribbon-target button").last.click()
    assert chosen(page, "target") == [len(inspection.tgt_ids) - 1]
    assert after.is_disabled()
    page.locator("#ribbon-target button").last.press("Home")
    assert chosen(page, "target") == [0]


def test_arrows_in_a_line_lead_from_token_to_token(page: Any) -> None:
    page.locator("#ribbon-source button").nth(1).click()
    page.keyboard.press("ArrowRight")
    assert chosen(page, "source") == [2]
    assert chosen(page, "target") == [0]
    assert page.evaluate("document.activeElement.dataset.index") == "2"
    assert page.locator("#ribbon-source [tabindex='0']").count() == 1


def test_the_address_holds_the_place(
    page: Any, open_page: Any, inspection: TranslationInspection
) -> None:
    page.evaluate("go({ step: 3, layer: 1, head: 2, key: 1 })")
    address = page.url
    fields = dict(re.findall(r"(\w+)=([^&]+)", address.partition("#")[2]))
    assert fields["t"] == "4"
    assert (fields["l"], fields["h"], fields["c"]) == ("2", "3", "2")
    other = open_page(inspection)
    other.goto(address)
    other.reload()
    other.wait_for_selector("#rail a", state="attached")
    assert other.evaluate("[place.step, place.layer, place.head, place.key]") == [
        3,
        1,
        2,
        1,
    ]
    assert chosen(other, "target") == [3]


@pytest.mark.long
def test_the_address_holds_the_language_that_was_chosen(page: Any) -> None:
    page.evaluate("go({ step: 2 })")
    assert "lang=" not in page.url
    for name, language in (("中文", "zh"), ("English", "en")):
        page.get_by_role("radio", name=name, exact=True).check(force=True)
        assert f"lang={language}" in page.url
        page.reload()
        page.wait_for_selector("#rail a", state="attached")
        assert page.evaluate("[document.documentElement.lang, place.step]") == [
            language,
            2,
        ]
    page.evaluate("() => { location.hash = '#lang=zh&t=1'; }")
    page.wait_for_function("() => document.documentElement.lang === 'zh'")
    page.evaluate("() => { location.hash = '#lang=constructor&t=2'; }")
    page.wait_for_function("() => place.step === 1")
    assert page.evaluate("document.documentElement.lang") == "zh"


@pytest.mark.parametrize(
    "wrong",
    of_which(
        ["s=toString", "k=constructor", "k=x&l=99&h=-7", "t=99&s=__proto__"],
        "k=x&l=99&h=-7",
    ),
)
def test_an_address_of_what_is_not_there_opens_the_page(
    browser: Any,
    watch: Any,
    inspection: TranslationInspection,
    tmp_path: Path,
    wrong: str,
) -> None:
    write_report(inspection, tmp_path / "page.html")
    page = browser.new_page()
    watch(page, (tmp_path / "page.html").as_uri())
    page.goto(f"{(tmp_path / 'page.html').as_uri()}#{wrong}")
    page.wait_for_selector("#rail a", state="attached")
    assert page.evaluate("[place.side, place.kind]") == ["target", "cross"]
    page.close()


def test_a_place_that_is_not_there_is_the_nearest_one(
    open_page: Any, inspection: TranslationInspection
) -> None:
    page = open_page(inspection)
    page.goto(page.url.partition("#")[0] + "#t=999&l=99&h=77&k=nothing&c=500&s=none")
    page.reload()
    page.wait_for_selector("#rail a", state="attached")
    steps = len(inspection.tgt_ids)
    layers, heads = inspection.cross.shape[:2]
    assert page.evaluate(
        "[place.step, place.layer, place.head, place.kind, place.key]"
    ) == [steps - 1, layers - 1, heads - 1, "cross", None]


def language(unseen: dict[str, Any], start: str = "document") -> LanguageInspection:
    pieces = ["<eos>", "▁To", "▁be", ",", "▁or"]
    choices = [Choice("▁not", 10, 0.4), Choice("▁to", 11, 0.2)]
    generator = np.random.default_rng(1)
    maps = np.tril(generator.random((2, 3, 5, 5)) + 0.01)
    return LanguageInspection(
        text="To be, or",
        lang="en",
        ids=[3, 20, 21, 22, 23],
        pieces=pieces,
        chosen=[Choice(piece, i, 0.3) for i, piece in enumerate(pieces[1:], start=20)],
        alternatives=[choices] * 4,
        next=choices,
        decoder=(maps / maps.sum(-1, keepdims=True)).astype(np.float32),
        vectors=Vectors(generator.normal(size=(5, 7)).astype(np.float32), None),
        max_len=128,
        cut=False,
        start=start,
        **unseen,
    )


def test_a_language_models_tint_is_the_row_that_foretold_the_token(
    open_page: Any, unseen: dict[str, Any]
) -> None:
    """The row of “be” has seen “be” itself: what foretold it is the row before."""
    inspection = language(unseen)
    page = open_page(inspection)
    by_head(page)
    page.locator("#ribbon-text button").nth(2).click()
    layer, head = page.evaluate("[place.layer, place.head]")
    weights = inspection.decoder[layer, head, 1]
    assert weights[2] == 0
    assert tints(page, "text") == expected([*weights, 0])
    assert (
        page.locator("#ribbon-said")
        .inner_text()
        .startswith("Colour: where the model looks to foretell “be”")
    )
    # one hue: what is read is what was written
    assert page.locator("#ribbon-text.of-target").count() == 1
    hues = "[roleOfSide('text'), roleOf({ part: 'self' }), KINDS.decoder.cols]"
    assert page.evaluate(hues) == ["target", "target", "text"]


def test_red_in_the_ribbon_is_explained_where_there_is_some(page: Any) -> None:
    kinds = set()
    for step in range(page.evaluate("numSteps()")):
        page.evaluate("step => go({ step, tint: 'shares' })", step)
        is_red = page.locator("#ribbon-source .below").count() > 0
        kinds.add(is_red)
        assert ("red:" in page.locator("#ribbon-said").inner_text()) == is_red
    page.evaluate("data.shares.tokens = arrayOf([[0, 1, 2]]); go({ step: 0 })")
    assert "red:" not in page.locator("#ribbon-said").inner_text()
    assert True in kinds


def test_a_text_begins_with_start_and_goes_on_with_what_is_most_probable(
    open_page: Any, unseen: dict[str, Any]
) -> None:
    page = open_page(language(unseen))
    tokens = page.locator("#ribbon-text button")
    assert tokens.first.inner_text() == "start"
    assert tokens.last.inner_text() == "not"
    tokens.first.click()  # it is given: nothing wrote it
    assert chosen(page, "text") == [1]
    tokens.last.click()
    assert page.evaluate("place.step") == 4
    # of a book the model may never have read what stands between documents
    assert chosen(open_page(language(unseen, "between")), "text") == [2]


@pytest.mark.long
def test_the_rail_leads_to_the_top_of_a_section_that_was_out_of_sight(
    open_page: Any, inspection: TranslationInspection
) -> None:
    """Sections above it have their true heights only when they come near."""
    page = open_page(inspection, width=360)
    page.reload()  # what is out of sight has not been laid out then
    page.wait_for_selector("#rail a", state="attached")
    page.evaluate("drawAll()")
    for section in ("looks", "choosing", "loom"):
        page.evaluate("scrollTo(0, 0)")
        page.locator(f"#rail a[data-to={section}]").click(force=True)
        for _ in range(6):
            page.evaluate("new Promise(requestAnimationFrame)")
        heading = page.locator(f"#{section}-title").bounding_box()
        ribbon = page.locator("#ribbon").bounding_box()
        assert 0 <= heading["y"] - ribbon["y"] - ribbon["height"] < 80


def test_the_rail_leads_to_sections_and_says_where_one_is(page: Any) -> None:
    page.evaluate("go({ step: 1 })")
    links = page.locator("#rail a")
    assert links.count() > 1
    last = links.last
    last.click()
    section = last.get_attribute("data-to")
    assert page.evaluate("document.activeElement.id") == f"{section}-title"
    heading = page.locator(f"#{section}-title").bounding_box()
    ribbon = page.locator("#ribbon").bounding_box()
    assert heading["y"] >= ribbon["y"] + ribbon["height"]
    assert "t=2" in page.url  # the place stays
    page.wait_for_function(
        "() => document.querySelectorAll('#rail [aria-current]').length === 1"
    )


def test_every_section_has_a_heading_and_prose_before_its_picture(page: Any) -> None:
    for name in page.locator("#sections > section").evaluate_all(
        "all => all.map(section => section.id)"
    ):
        order = page.locator(f"#{name} > *").evaluate_all(
            "all => all.map(element => element.localName)"
        )
        assert order[:3] == ["h2", "p", "div"], name
    size = page.locator("#sections h2").first.evaluate(
        "heading => getComputedStyle(heading).fontSize"
    )
    assert size == "20px"


def colours_in(browser: Any, picture: bytes) -> int:
    """The number of different colours in a screenshot."""
    page = browser.new_page()
    script = """async text => {
        const blob = await (await fetch(`data:image/png;base64,${text}`)).blob();
        const image = await createImageBitmap(blob);
        const canvas = new OffscreenCanvas(image.width, image.height);
        const pen = canvas.getContext("2d");
        pen.drawImage(image, 0, 0);
        const { data } = pen.getImageData(0, 0, image.width, image.height);
        const found = new Set();
        for (let i = 0; i < data.length; i += 4) found.add(data[i] + 256 * data[i + 1] + 65536 * data[i + 2]);
        return found.size;
    }"""
    found: int = page.evaluate(script, base64.b64encode(picture).decode())
    page.close()
    return found


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_keeps_every_picture_and_no_control(
    browser: Any, open_page: Any, inspection: TranslationInspection, scheme: str
) -> None:
    page = open_page(inspection, scheme=scheme)
    page.emulate_media(media="print")
    page.wait_for_function("() => document.documentElement.dataset.printing === ''")
    assert page.locator("#looks-modes").is_hidden()
    assert page.locator("#ribbon .step").first.is_hidden()
    # it says what the screen's controls do, and nothing of them
    counted = f"1 of {len(inspection.tgt_ids)}"
    assert f"token {counted}, " in page.locator("#paper-place").inner_text()
    assert page.locator("#numbers-named").inner_text() == "All tokens: sum"
    said = page.locator("#sections").inner_text()
    for control in ("Choose a", "Left and right lead", "temperature"):
        assert control not in said
    picture = page.locator("#looks-maps canvas").last
    assert colours_in(browser, picture.screenshot()) > 20
    assert page.evaluate("css('paper')") == "#fff"
    page.emulate_media(media="screen")
    assert page.locator("#looks-modes").is_visible()
    assert page.locator("#paper-place").is_hidden()
    said = page.locator("#sections").inner_text()
    for control in ("Choose a", "Left and right lead", "The temperature"):
        assert control in said


BLANK = """() => [...document.querySelectorAll("#sections canvas")].filter((canvas) => {
    if (!canvas.checkVisibility() || canvas.width * canvas.height === 0) return false;
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    return !pen.getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean);
}).map((canvas) => canvas.parentNode.className)"""


@pytest.mark.long
def test_a_printed_page_has_pictures_that_were_never_in_sight(
    open_page: Any, inspection: TranslationInspection
) -> None:
    page = open_page(inspection)
    assert page.evaluate(BLANK) != []
    page.evaluate("dressForPaper(true)")
    assert page.evaluate(BLANK) == []
    pdf = page.pdf(print_background=False)
    assert len(re.findall(rb"/Subtype\s*/Image", pdf)) >= inspection.cross.shape[0]
    # sections follow each other; a page of its own for each would be 13
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 11
    tallest = """() => Math.max(...[...document.querySelectorAll("#sections canvas")]
        .map((canvas) => canvas.getBoundingClientRect().height))"""
    page.emulate_media(media="print")
    assert page.evaluate(tallest) < 900


@pytest.mark.long
def test_forced_colours_keep_the_maps_and_border_what_is_chosen(
    browser: Any, tmp_path: Any, inspection: TranslationInspection
) -> None:
    write_report(inspection, tmp_path / "page.html")
    context = browser.new_context(forced_colors="active")
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    picture = page.locator("#looks-own canvas")
    picture.scroll_into_view_if_needed()
    painted = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    page.wait_for_function(
        f"() => ({painted})(document.querySelector('#looks-own canvas'))"
    )
    assert colours_in(browser, picture.screenshot()) > 20
    border = "element => getComputedStyle(element).borderTopWidth"
    assert page.locator("#ribbon [aria-current]").first.evaluate(border) == "3px"
    assert page.locator(".head[aria-checked=true]").evaluate(border) == "3px"
    checked = page.locator("input:checked + span").first
    assert checked.evaluate(border) == "2px"
    context.close()


def test_nothing_is_written_twice_in_the_words(page: Any) -> None:
    missing = page.evaluate(
        "allSections.filter(({ id }) => !WORDS.en[`${id}-title`] || !WORDS.zh[`${id}-title`]).map(({ id }) => id)"
    )
    assert missing == []


ONE_SCHEME = {
    "en": r"\b(dark|darker|light|lighter|black|white|ink|pale|paler)\b",
    "zh": "[深浅黑白墨亮暗](?!度)",
}


def test_captions_hold_in_the_dark_as_well(page: Any) -> None:
    """What is dark on light paper is light on dark: they name hues, and what is stronger."""
    for language, words in ONE_SCHEME.items():
        script = f"Object.entries(WORDS.{language}).filter(([, said]) => /{words}/i.test(said.replaceAll('空白', '')))"
        assert page.evaluate(script) == []


def test_another_text_is_seen_at_the_same_place(
    page: Any, inspection: TranslationInspection
) -> None:
    page.evaluate("go({ layer: 1, head: 0, kind: 'cross' })")
    page.evaluate("begin(structuredClone(data), document)")
    assert page.evaluate("[place.layer, place.head, place.kind]") == [1, 0, "cross"]
    assert len(page.locator("#ribbon-target button").all()) == len(inspection.tgt_ids)


def test_what_is_packed_is_read_as_it_was_written(page: Any) -> None:
    """Arrays in every form that a file has them in."""
    generator = np.random.default_rng(3)
    values = generator.normal(size=(2, 3, 4)).astype(np.float32)

    def packed(array: Any, dtype: str, **more: Any) -> dict[str, Any]:
        content = np.ascontiguousarray(array).tobytes()
        text = base64.b64encode(content).decode()
        return {"shape": list(values.shape), "dtype": dtype, "data": text, **more}

    def read(leaf: dict[str, Any]) -> Any:
        found = page.evaluate(
            "leaf => ({ shape: arrayOf(leaf).shape, values: [...arrayOf(leaf).values] })",
            leaf,
        )
        return np.array(found["values"]).reshape(found["shape"])

    halves = values.astype(np.float16)
    np.testing.assert_array_equal(read(packed(halves, "float16")), halves)
    np.testing.assert_array_equal(read(packed(values, "float32")), values)
    roots = np.sign(values) * np.sqrt(np.abs(values) / 4)
    rooted = np.rint(roots * 127).astype(np.int8)
    leaf = packed(rooted, "int8", scale=2 / 127, root=True)
    np.testing.assert_allclose(read(leaf), values, atol=0.1)
    ids = generator.integers(0, 60_000, values.shape).astype(np.uint16)
    np.testing.assert_array_equal(read(packed(ids, "uint16")), ids)
    np.testing.assert_array_equal(read(values.tolist()), values)  # type: ignore[arg-type]
    square = np.tril(generator.random((2, 5, 5)))
    rows, columns = np.tril_indices(5)
    content = square[:, rows, columns].astype(np.float32).tobytes()
    triangle = {
        "shape": [2, 5, 5],
        "dtype": "float32",
        "causal": True,
        "data": base64.b64encode(content).decode(),
    }
    np.testing.assert_allclose(read(triangle), square, atol=1e-6)
    for form in (
        Form("int6"),
        Form("float16", sums=True),
        Form("int8", root=True, sums=True),
    ):
        leaf = coded(square, form, is_causal=True)
        np.testing.assert_allclose(read(leaf), unpacked(leaf), atol=1e-6)
    waves = {"shape": [4, 6], "dtype": "sinusoids", "width": 10}
    np.testing.assert_allclose(read(waves), unpacked(waves), atol=1e-6)


@pytest.mark.parametrize("width", of_which([360, 1400], 360))
def test_no_width_scrolls_sideways(
    open_page: Any, inspection: TranslationInspection, width: int
) -> None:
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 3
    sides = {
        "src_pieces": [long] * len(inspection.src_ids),
        "tgt_pieces": [long] * len(inspection.tgt_ids),
    }
    page = open_page(replace(inspection, **sides), width=width)
    for kind in ("cross", "encoder", "decoder"):
        page.evaluate("kind => go({ kind })", kind)
        widths = page.evaluate(
            "[document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        assert max(widths) <= width, kind


def test_the_model_is_drawn_to_its_sizes_and_its_parts_lead_on(page: Any) -> None:
    boxes = page.evaluate("data.model.boxes")
    parts = page.locator("#model-box .part")
    assert parts.count() == len(boxes) == page.locator("#rail-map i").count()
    side = "area => parseFloat(area.style.getPropertyValue('--side'))"
    sides = page.locator("#model-box .area").evaluate_all(f"all => all.map({side})")
    drawn = sorted(side**2 for side in sides)
    numbers = sorted(box["numbers"] for box in boxes)
    shares = [number / sum(numbers) for number in numbers]
    assert [area / 25 for area in drawn] == pytest.approx(shares, abs=2e-3)
    wanted = [b for b in boxes if (b["part"], b["layer"]) == ("cross", 1)]
    assert len(wanted) == 1
    page.locator("#model-box [data-name='decoder.1.cross']").click()
    assert page.evaluate("[place.kind, place.layer]") == ["cross", 1]
    assert page.evaluate("document.activeElement.id") == "looks-title"
    for where in ("#model-box", "#rail-map"):
        assert page.locator(f"{where} [aria-current]").count() == 1


LED = """name => {
    document.querySelector(`#model-box [data-name='${name}']`).click();
    const marked = where => [...document.querySelectorAll(`${where} [aria-current]`)].map(each => each.dataset.name);
    return [marked("#model-box"), marked("#rail-map"), document.activeElement.id, place.side, place.part];
}"""


def test_a_part_of_the_model_leads_to_itself_and_is_marked(page: Any) -> None:
    ways = {
        "encoder.embedding": ("numbers-title", "source", None),
        "decoder.positions": ("numbers-title", "target", None),
        "encoder.0.self": ("looks-title", "target", None),
        "decoder.1.feed-forward": ("loom-title", "target", "feed-forward-1"),
        "output": ("choosing-title", "target", "feed-forward-1"),
    }
    for name, (section, side, part) in ways.items():
        expected = [[name], [name], section, side, part]
        assert page.evaluate(LED, name) == expected
    page.evaluate("go({ kind: 'cross', layer: 0 })")
    marked = page.locator("#model-box [aria-current]")
    assert marked.evaluate_all("all => all.map(each => each.dataset.name)") == [
        "decoder.0.cross"
    ]
    # what an encoder adds is not in the loom, which is of the decoder
    unled = page.locator("#model-box div.part")
    names = unled.evaluate_all("all => all.map(each => each.dataset.name)")
    layers = [f"encoder.{layer}.feed-forward" for layer in range(2)]
    assert sorted(names) == sorted([*layers, "encoder.norm"])


@pytest.mark.long
def test_parts_have_the_names_of_papers_and_tables_their_rows(page: Any) -> None:
    said = {
        "encoder.0.self": "self-attention",
        "decoder.0.self": "masked self-attention",
        "decoder.0.cross": "cross-attention",
        "decoder.norm": "LayerNorm",
        "decoder.1.feed-forward": "MLP22 → 29 → 22",
        "encoder.positions": "positional encoding",
    }
    for name, term in said.items():
        text = page.locator(f"#model-box [data-name='{name}']").text_content()
        assert term in text
    rows = page.evaluate("data.model.vocabulary.source")
    table = page.locator("#model-box [data-name='encoder.embedding']").text_content()
    assert f"embedding{rows} × 22" in table


@pytest.mark.long
def test_the_map_says_which_tables_are_one(page: Any) -> None:
    names = ["encoder.embedding", "decoder.embedding", "output"]
    said = {
        0: "share one matrix",
        1: "The encoder has a table of token vectors of its own",
        3: "",
    }
    for left_out, sentence in said.items():
        tied = [names[left_out:]] if left_out < 3 else []
        page.evaluate("tied => { data.model.tied = tied; draw(); }", tied)
        text = page.locator("#model-prose").text_content()
        assert sentence in text
        assert ("turns a vector back" in text) == bool(tied)


NO_LEISURE = "window.requestIdleCallback = () => {}"
EMPTY = "[...document.querySelectorAll('.box')].filter(box => !box.children.length).map(box => box.id)"


def opened_by_itself(browser: Any, path: Path, *scripts: str) -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    for script in scripts:
        page.add_init_script(script)
    page.goto(path.as_uri())
    page.wait_for_selector("#rail a", state="attached")
    return page


def test_what_is_out_of_sight_is_drawn_when_it_comes_near_and_for_paper(
    browser: Any, inspection: TranslationInspection, tmp_path: Path
) -> None:
    write_report(inspection, tmp_path / "page.html")
    page = opened_by_itself(browser, tmp_path / "page.html", NO_LEISURE)
    assert {"lanes-box", "limits-box"} <= set(page.evaluate(EMPTY))
    page.evaluate("() => document.getElementById('limits').scrollIntoView()")
    page.wait_for_function("() => document.querySelector('#limits-box li')")
    page.evaluate("() => goToSection('lanes')")
    assert "lanes-box" not in page.evaluate(EMPTY)
    page.context.close()
    page = opened_by_itself(browser, tmp_path / "page.html", NO_LEISURE)
    assert page.evaluate(EMPTY)
    page.evaluate("() => { dispatchEvent(new Event('beforeprint')); }")
    assert page.evaluate(EMPTY) == []
    page.context.close()


def test_all_is_drawn_in_time(
    browser: Any, inspection: TranslationInspection, tmp_path: Path
) -> None:
    write_report(inspection, tmp_path / "page.html")
    page = opened_by_itself(browser, tmp_path / "page.html")
    page.wait_for_function(f"() => {EMPTY}.length === 0")
    page.context.close()


SAID = "document.getElementById('choosing-prose').textContent"


def test_what_is_out_of_sight_follows_a_choice_when_it_comes_near_and_for_paper(
    browser: Any, inspection: TranslationInspection, tmp_path: Path
) -> None:
    write_report(inspection, tmp_path / "page.html")
    page = opened_by_itself(browser, tmp_path / "page.html", NO_LEISURE)
    page.evaluate("drawAll()")
    first = page.evaluate(SAID)
    page.evaluate("go({ step: 1 })")
    assert page.evaluate(SAID) == first
    page.evaluate("() => document.getElementById('choosing').scrollIntoView()")
    page.wait_for_function(f"first => {SAID} !== first", arg=first)
    second = page.evaluate(SAID)
    page.evaluate("go({ step: 0 })")
    assert page.evaluate(SAID) == first
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("() => !isSeen(document.getElementById('choosing'))")
    page.evaluate("go({ step: 1 })")
    assert page.evaluate(SAID) == first
    page.evaluate("() => { dispatchEvent(new Event('beforeprint')); }")
    assert page.evaluate(SAID) == second
    page.context.close()


def test_all_follows_a_choice_in_time(
    browser: Any, inspection: TranslationInspection, tmp_path: Path
) -> None:
    write_report(inspection, tmp_path / "page.html")
    page = opened_by_itself(browser, tmp_path / "page.html")
    page.evaluate("drawAll()")
    first = page.evaluate(SAID)
    page.evaluate("go({ step: 1 })")
    page.wait_for_function(f"first => {SAID} !== first", arg=first)
    page.context.close()
