"""The page in a real browser: by pointer and by keyboard, on any width, and without a request to
any network.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from weft.inspection.classification import ClassificationInspection, Contributions
from weft.inspection.language import LanguageInspection
from weft.inspection.report import write_report
from weft.inspection.tokens import Choice, Vectors
from weft.inspection.translation import TranslationInspection

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
)


@pytest.fixture
def open_page(browser, watch, tmp_path):
    """Write an inspection and open it; at the end nothing may have gone wrong or been asked for."""
    contexts = []

    def opened(
        inspection: TranslationInspection, width: int = 1280, scheme: str = "light"
    ):
        write_report(inspection, tmp_path / "page.html")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        address = (tmp_path / "page.html").as_uri()
        watch(page, address)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page, inspection):
    return open_page(inspection)


def shades(page) -> list[float]:
    """The colours of the large map, row by row."""
    script = "cells => cells.map(c => Number(c.style.getPropertyValue('--shade')))"
    return page.locator("#map td:not(.corner)").evaluate_all(script)


def weight_in(text: str):
    """The weight that a reading ends with."""
    # rounded to four decimals, then to three
    return pytest.approx(float(text.rsplit(": ", 1)[1]), abs=0.0006)


def expected_shades(weights) -> list[float]:
    return np.sqrt(weights).flatten().tolist()


def test_page_starts_with_the_mean_of_the_last_layer(page, inspection):
    assert page.title() == f"How the model translated this: {inspection.text}"
    labels = page.locator("#source button bdi").all_inner_texts()
    assert labels == inspection.src_pieces
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[-1].mean(0)), abs=0.01
    )


def test_head_and_layer_change_by_keyboard(page, inspection):
    page.get_by_role("radio", name="mean", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[-1, 1]), abs=0.01
    )
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowLeft")
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[-2, 1]), abs=0.01
    )


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_kind_changes_by_keyboard_and_keeps_the_focus(page, inspection, kind):
    page.get_by_role("radio", name="Cross", exact=True).focus()
    for _ in range(["cross", "encoder", "decoder"].index(kind)):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.value") == kind
    maps = getattr(inspection, kind)
    # the way led past the encoder, which has fewer layers than the decoder
    last = len(inspection.encoder) - 1
    assert shades(page) == pytest.approx(expected_shades(maps[last].mean(0)), abs=0.01)
    assert "section 3.2.3" in page.locator("#map-caption").inner_text()


def test_overview_has_every_head_of_every_layer_and_chooses(page, inspection):
    pictures = page.locator("#overview button")
    layers, heads = inspection.cross.shape[:2]
    assert pictures.count() == layers * (heads + 1)
    page.get_by_role("radio", name="Layer 2, head 3", exact=True).click()
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[1, 2]), abs=0.01
    )
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.title") == "Layer 1, head 3"
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[0, 2]), abs=0.01
    )


def test_thumbnails_show_their_weights(page, inspection):
    script = """canvas => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]
        .filter((_, i) => i % 4 === 3)"""
    canvas = page.get_by_role("radio", name="Layer 3, head 2", exact=True).locator(
        "canvas"
    )
    expected = [255 * shade for shade in expected_shades(inspection.cross[2, 1])]
    assert canvas.evaluate(script) == pytest.approx(expected, abs=3)


def test_pointing_at_a_cell_tells_its_weight_and_marks_both_tokens(page, inspection):
    page.locator("#map tbody tr").nth(2).locator("td").nth(1).hover()
    weight = inspection.cross[-1].mean(0)[2, 1].item()
    assert weight == weight_in(page.locator("#reading").inner_text())
    marked = page.locator("#sentences .token.marked").evaluate_all(
        "all => all.map(t => [t.parentNode.id, [...t.parentNode.children].indexOf(t)])"
    )
    assert marked == [["source", 1], ["target", 2]]


def test_arrow_keys_move_through_the_map(page, inspection):
    page.locator("#map td[tabindex='0']").focus()
    for key in (
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
        "ArrowLeft",
        "ArrowUp",
        "ArrowUp",
    ):
        page.keyboard.press(key)
    weight = inspection.cross[-1].mean(0)[0, 1].item()
    cell = page.locator("#map td:focus")
    assert weight == weight_in(cell.get_attribute("aria-label"))
    assert page.locator("#map td[tabindex='0']").count() == 1
    assert page.locator("#reading").inner_text() == cell.get_attribute("aria-label")


def test_chosen_cell_stays_when_the_pointer_leaves(page, inspection):
    page.locator("#map tbody tr").nth(3).locator("td").nth(2).click()
    page.mouse.move(1, 1)
    weight = inspection.cross[-1].mean(0)[3, 2].item()
    assert weight == weight_in(page.locator("#reading").inner_text())
    page.keyboard.press("ArrowDown")
    below = inspection.cross[-1].mean(0)[4, 2].item()
    assert below == weight_in(page.locator("#map td:focus").get_attribute("aria-label"))


def test_target_token_shows_what_else_the_model_considered(page, inspection):
    page.locator("#target button").nth(1).focus()
    numbers = page.locator("#considered li span:not(.bar, .space)").all_inner_texts()
    listed = [c.probability for c in inspection.alternatives[1]]
    assert numbers[:5] == [
        "< 0.001" if p < 0.001 else f"{p:.3f}" for p in (round(p, 4) for p in listed)
    ]
    assert page.locator("#considered li.chosen").count() == 1
    page.locator("#target button").nth(2).hover()
    title = page.locator("#considered-title").inner_text()
    assert inspection.tgt_pieces[2].strip() in title
    assert (
        page.locator("#target button")
        .nth(2)
        .text_content()
        .startswith(inspection.tgt_pieces[2])
    )


@pytest.mark.parametrize("kind", ["Cross", "Encoder", "Decoder"])
def test_every_token_can_be_pointed_at_in_every_kind(page, kind):
    page.get_by_role("radio", name=kind, exact=True).check(force=True)
    tokens = page.locator("#sentences .token")
    for index in range(tokens.count()):
        tokens.nth(index).focus()
        assert page.locator("#sentences .token.marked").count() >= (kind == "Cross")


def test_the_tab_key_comes_to_one_token_of_a_side_and_arrows_lead_on(page, inspection):
    source, target = page.locator("#source button"), page.locator("#target button")
    focused = "(at => at.parentNode.id + [...at.parentNode.children].indexOf(at))(document.activeElement)"
    source.nth(0).focus()
    for key, place in {
        "ArrowRight": "source1",
        "ArrowDown": "source1",
        "End": f"source{source.count() - 1}",
        "ArrowLeft": f"source{source.count() - 2}",
        "Tab": "target0",
    }.items():
        page.keyboard.press(key)
        assert page.evaluate(focused) == place
    target.nth(1).click()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused) == f"source{source.count() - 2}"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "target1"


def test_everything_that_can_be_used_has_a_name(page):
    used = page.locator(
        "button, input, [tabindex='0'], [role=grid], [role=radiogroup], [role=tree]"
    )
    names = used.evaluate_all(
        "all => all.map(e => e.ariaLabel || e.closest('label')?.innerText || e.innerText)"
    )
    assert len(names) > 20
    assert all(name.strip() for name in names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screen_scrolls_downwards_only(open_page, inspection, scheme):
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 3
    sides = {
        "src_pieces": [long] * len(inspection.src_ids),
        "tgt_pieces": [long] * len(inspection.tgt_ids),
    }
    alternatives = [
        [Choice(long, c.id, c.probability) for c in row]
        for row in inspection.alternatives
    ]
    page = open_page(
        replace(inspection, **sides, alternatives=alternatives),
        width=360,
        scheme=scheme,
    )
    for kind in ("Cross", "Encoder", "Decoder"):
        page.get_by_role("radio", name=kind, exact=True).check(force=True)
        widths = page.evaluate(
            "[document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        assert max(widths) <= 360
    page.locator("#map td").last.scroll_into_view_if_needed()
    assert page.evaluate("window.scrollX") == 0


def test_dark_and_light_differ(open_page, inspection):
    colours = [
        open_page(inspection, scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(251, 250, 247)", "rgb(20, 23, 28)"]


def test_what_was_cut_is_said(open_page, inspection):
    assert (
        open_page(replace(inspection, cut=False, finished=True))
        .locator("#notes")
        .is_hidden()
    )
    notes = (
        open_page(replace(inspection, cut=True, finished=False, segments=3))
        .locator("#notes")
        .inner_text()
    )
    assert "the answer too, is of its first 127 tokens alone" in notes
    assert "no end" in notes
    assert "is translated in 3 segments" in notes
    count = len(inspection.tgt_ids)
    longer = open_page(replace(inspection, tgt_cut=True)).locator("#notes")
    assert f"is of its first {count} tokens alone" in longer.inner_text()


def test_hostile_text_is_shown_and_not_run(open_page, inspection):
    hostile = replace(
        inspection,
        text=HOSTILE,
        translation=HOSTILE,
        src_pieces=[HOSTILE] * len(inspection.src_ids),
        tgt_pieces=[HOSTILE] * len(inspection.tgt_ids),
    )
    page = open_page(hostile)
    assert page.locator("#source button bdi").first.inner_text() == HOSTILE
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_policy_stops_what_is_added_to_the_page(browser, inspection, tmp_path):
    write_report(inspection, tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    script = """() => new Promise(done => {
        addEventListener("securitypolicyviolation", event => done(event.violatedDirective));
        const added = document.createElement("script");
        added.textContent = "window.hacked = 1";
        document.body.append(added);
        setTimeout(() => done("nothing"), 1000);
    })"""
    assert page.evaluate(script).startswith("script-src")
    assert page.evaluate("window.hacked") is None
    page.close()


def test_a_model_that_looks_across_alone_offers_nothing_else(open_page, inspection):
    nothing = inspection.encoder[:0]
    page = open_page(replace(inspection, encoder=nothing, decoder=nothing))
    kinds = page.locator("input[name=kind]").evaluate_all(
        "inputs => inputs.map(i => i.value)"
    )
    assert kinds == ["cross"]
    assert shades(page) == pytest.approx(
        expected_shades(inspection.cross[-1].mean(0)), abs=0.01
    )


@pytest.mark.parametrize(
    ("family", "paper", "others"),
    [
        (
            "additive",
            ("Bahdanau et al. 2015, section 3.1", "Bahdanau 等 2015，3.1 节"),
            "Luong",
        ),
        (
            "dot",
            ("Luong et al. 2015, section 3.1", "Luong 等 2015，3.1 节"),
            "Bahdanau",
        ),
    ],
)
def test_one_head_has_no_mean_and_its_own_paper(
    open_page, inspection, family, paper, others
):
    """A recurrent model: one map, so there is nothing to choose, and no word of heads in either
    language.
    """
    nothing = inspection.encoder[:0]
    vectors = {
        side: replace(getattr(inspection, side), positions=None)
        for side in ("src_vectors", "tgt_vectors")
    }
    maps = {"encoder": nothing, "decoder": nothing, "cross": inspection.cross[-1:, :1]}
    alone = replace(inspection, **maps, **vectors, family=family)
    page = open_page(alone)
    for words, cited in zip(
        (["mean", "head", "Head"], ["平均", "各头", "个头", "的头"]), paper, strict=True
    ):
        shown = page.locator("main").inner_text()
        assert not [word for word in words if word in shown]
        assert cited in page.locator("#map-caption").inner_text()
        captions = [
            page.locator(f"#{name}-caption").inner_text()
            for name in ("tokens", "vectors", "map")
        ]
        assert not [
            caption for caption in captions if "Vaswani" in caption or others in caption
        ]
        choose(page, "中文")
    assert page.locator("#overview-box").is_hidden()
    assert page.locator("#keep").is_hidden()
    assert shades(page) == pytest.approx(expected_shades(alone.cross[0, 0]), abs=0.01)


def test_layers_of_one_head_are_chosen_without_a_mean(open_page, inspection):
    one = {
        kind: getattr(inspection, kind)[:, :1]
        for kind in ("cross", "encoder", "decoder")
    }
    page = open_page(replace(inspection, **one))
    assert page.locator("#overview button").count() == len(inspection.cross)
    assert page.locator("input[name=head]").count() == 0
    page.locator("#overview button").first.click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.title") == "Layer 2"
    assert shades(page) == pytest.approx(expected_shades(one["cross"][1, 0]), abs=0.01)
    assert "mean" not in page.locator("#attention-section").inner_text()
    choose(page, "Encoder")
    assert page.locator("#overview-caption").inner_text().startswith("Every layer")


def choose(page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).check(force=True)


def test_the_page_speaks_chinese(page, inspection):
    choose(page, "中文")
    assert page.title() == f"模型是怎样翻译的: {inspection.text}"
    assert page.locator("html").get_attribute("lang") == "zh"
    shown = page.locator("main").inner_text()
    assert "交叉注意力" in page.locator("#map").get_attribute("aria-label")
    assert not [
        word
        for word in ("Vectors", "Attention", "Each row", "Step ", "Show")
        if word in shown
    ]
    choose(page, "English")
    assert "Each row" in page.locator("main").inner_text()


def test_both_languages_say_the_same_things(page):
    keys = page.evaluate("[Object.keys(WORDS.en), Object.keys(WORDS.zh)]")
    assert keys[0] == keys[1]
    values = "language => Object.values(WORDS[language]).map(text => (text.match(/{\\w+}/g) ?? []).sort().join())"
    assert page.evaluate(values, "en") == page.evaluate(values, "zh")


def test_vectors_of_each_side_and_part(page, inspection):
    script = """canvases => canvases.map(canvas =>
        [...canvas.getContext("2d").getImageData(0, 0, canvas.width, 1).data].filter((_, i) => i % 4 === 3))"""
    for side, vectors in (
        ("source", inspection.src_vectors),
        ("target", inspection.tgt_vectors),
    ):
        for part, numbers in (
            ("token", vectors.tokens),
            ("sum", vectors.tokens + vectors.positions),
        ):
            choose(page, side)
            choose(page, part)
            sizes = np.abs(numbers)
            expected = 255 * np.sqrt(sizes / sizes.max())
            drawn = page.locator("#vectors canvas").evaluate_all(script)
            assert [number for row in drawn for number in row] == pytest.approx(
                expected.flatten().tolist(), abs=4
            )
    assert "arrow keys" in page.locator("#vectors-reading").inner_text()
    page.locator("#vectors canvas").first.hover()
    assert "number" in page.locator("#vectors-reading").inner_text()


def test_vectors_are_read_by_keyboard(page, inspection):
    page.locator("#vectors-box").focus()
    numbers = (
        inspection.src_vectors.tokens + inspection.src_vectors.positions
    ).tolist()
    row, column = 0, 0
    for key, down, right in (
        ("ArrowDown", 1, 0),
        ("ArrowRight", 0, 1),
        ("ArrowUp", -1, 0),
        ("End", 0, 20),
    ):
        page.keyboard.press(key)
        row, column = row + down, column + right
        reading = page.locator("#vectors-reading").inner_text()
        assert f"number {column + 1}: " in reading
        value = float(reading.rsplit(": ", 1)[1])
        # two summands, each of three decimals
        assert value == pytest.approx(numbers[row][column], abs=0.0021)
    frame = page.locator("#vectors .frame").bounding_box()
    canvas = page.locator("#vectors canvas").first.bounding_box()
    assert frame["x"] + frame["width"] == pytest.approx(
        canvas["x"] + canvas["width"], abs=1
    )
    page.keyboard.press("Home")
    assert "number 1: " in page.locator("#vectors-reading").inner_text()


def test_many_vectors_scroll_in_a_box(open_page, inspection):
    count = 47
    vectors = Vectors(
        np.random.default_rng(4).standard_normal((count, 30), np.float32), None
    )
    source = {
        "src_ids": [5] * count,
        "src_pieces": ["▁word"] * count,
        "src_vectors": vectors,
    }
    maps = {
        "encoder": np.full((1, 1, count, count), 1 / count),
        "cross": np.full((1, 1, len(inspection.tgt_ids), count), 1 / count),
    }
    page = open_page(replace(inspection, **source, **maps))
    assert page.locator("#vectors-box").bounding_box()["height"] <= 520
    assert page.locator("#vectors-box").evaluate("box => box.scrollHeight") > 700
    page.locator("#vectors-box").focus()
    for _ in range(count):
        page.keyboard.press("ArrowDown")
    assert is_inside(
        page.locator("#vectors .frame").bounding_box(),
        page.locator("#vectors-box").bounding_box(),
    )


def is_inside(inner, outer) -> bool:
    return all(
        outer[at] - 3 <= inner[at]
        and inner[at] + inner[size] <= outer[at] + outer[size] + 3
        for at, size in (("x", "width"), ("y", "height"))
    )


def test_a_map_is_kept_beside_another(page, inspection):
    page.locator("#keep").click()
    page.get_by_role("radio", name="Layer 2, head 3", exact=True).click()
    kept = page.locator("#kept td:not(.corner)").evaluate_all(
        "cells => cells.map(c => Number(c.style.getPropertyValue('--shade')))"
    )
    assert kept == pytest.approx(
        expected_shades(inspection.cross[-1].mean(0)), abs=0.01
    )
    assert shades(page) != pytest.approx(kept, abs=0.01)
    page.locator("#map tbody tr").nth(1).locator("td").nth(2).hover()
    assert (
        page.locator("#kept td.here").count()
        == page.locator("#map td.here").count()
        == 1
    )
    page.locator("#keep").click()
    assert page.locator("#kept-box").is_hidden()


@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_a_map_is_kept_beside_one_of_another_kind(page, inspection, kind):
    page.locator("#keep").click()
    choose(page, kind)
    assert page.locator("#kept-box").is_visible()
    assert "Cross-attention, Layer 4" in page.locator("#kept-caption").inner_text()
    kept = page.locator("#kept td:not(.corner)").evaluate_all(
        "cells => cells.map(c => Number(c.style.getPropertyValue('--shade')))"
    )
    assert kept == pytest.approx(
        expected_shades(inspection.cross[-1].mean(0)), abs=0.01
    )
    names = "all => all.map(e => e.title)"
    assert (
        page.locator("#kept th[scope=row]").evaluate_all(names) == inspection.tgt_pieces
    )
    assert (
        page.locator("#kept th[scope=col]").evaluate_all(names) == inspection.src_pieces
    )
    page.locator("#map tbody tr").nth(3).locator("td").nth(2).click()
    marked = page.locator("#kept th.marked").evaluate_all(names)
    assert marked == [
        inspection.src_pieces[2] if kind == "Encoder" else inspection.tgt_pieces[3]
    ]
    choose(page, "中文")
    assert "交叉注意力" in page.locator("#kept-caption").inner_text()
    page.locator("#keep").click()
    assert page.locator("#kept-box").is_hidden()
    assert page.locator("#kept-caption").inner_text() == ""


def places(page) -> dict[str, list[int]]:
    """Which tokens are marked above, and which steps are shown below."""
    script = "all => all.map(t => [...t.parentNode.children].indexOf(t))"
    return {
        side: page.locator(f"#{side} .marked").evaluate_all(script)
        for side in ("source", "target")
    }


def test_all_pictures_speak_of_the_same_place(page, inspection):
    page.locator("#target button").nth(2).click()
    for kind in ("Encoder", "Decoder", "Cross"):
        choose(page, kind)
        page.mouse.move(1, 1)
        assert places(page)["target"] == [2]
        assert (
            f"“{inspection.tgt_pieces[2]}”"
            in page.locator("#considered-title").inner_text()
        )
        if kind != "Encoder":
            assert (
                page.locator("#reading")
                .inner_text()
                .startswith(f"“{inspection.tgt_pieces[2]}” looks")
            )
    choose(page, "Encoder")
    page.locator("#target button").nth(4).click()
    assert places(page)["target"] == [4]


def test_a_source_token_is_carried_to_the_encoder(page, inspection):
    page.locator("#source button").nth(3).click()
    choose(page, "Encoder")
    page.mouse.move(1, 1)
    assert places(page) == {"source": [3], "target": [0]}


def test_the_texts_stand_at_the_top(page, inspection):
    assert page.locator("#texts dd").all_inner_texts() == [
        inspection.text,
        inspection.translation,
    ]
    assert page.locator("#texts dd").nth(1).get_attribute("lang") == "zh"
    assert (
        "The stronger the colour of a token"
        in page.locator("#tokens-caption").inner_text()
    )


def test_words_that_belong_together(page, inspection):
    assert (
        page.locator("#alignment-words dt").all_inner_texts()
        == inspection.alignment.tgt
    )


@pytest.fixture(scope="module")
def language() -> LanguageInspection:
    pieces, generator = (
        ["<eos>", "▁To", "▁be", ",", "▁or"],
        torch.Generator().manual_seed(1),
    )
    choices = [
        Choice(f"▁{word}", i, 0.4 / (i + 1))
        for i, word in enumerate(("not", "to", "be"), start=10)
    ]
    return LanguageInspection(
        text="To be, or",
        lang="en",
        ids=[3, 20, 21, 22, 23],
        pieces=pieces,
        chosen=[Choice(piece, i, 0.3) for i, piece in enumerate(pieces[1:], start=20)],
        alternatives=[choices] * 4,
        next=choices,
        decoder=torch.rand(2, 3, 5, 5, generator=generator)
        .tril()
        .softmax(-1)
        .tril()
        .numpy(),
        vectors=Vectors(torch.randn(5, 7, generator=generator).numpy(), None),
        max_len=128,
        cut=False,
    )


def test_what_is_added_to_vectors_and_what_the_text_begins_with_is_said(
    open_page, language
):
    page = open_page(language)
    assert (
        "reads it before every document" in page.locator("#tokens-caption").inner_text()
    )
    assert "has added" not in page.locator("#vectors-caption").inner_text()
    vectors = replace(language.vectors, beside=("ngrams", "matches"))
    page = open_page(replace(language, vectors=vectors, start="between"))
    shown = page.locator("#vectors-caption").inner_text()
    assert "the vectors of the n-grams that end with it and that of the token" in shown
    assert "one token has other numbers at other places" in shown
    shown = page.locator("#tokens-caption").inner_text()
    assert "it stands between the documents of the training text" in shown
    # what a model of a book says after it means nothing: the next place is shown
    second = language.pieces[2].removeprefix("▁")
    assert page.locator("#considered-title").inner_text().endswith(f"“{second}”")


def test_a_language_model_shows_what_comes_next(open_page, language):
    page = open_page(language, width=360)
    assert page.title() == "How the model reads this: To be, or"
    assert page.locator("#text .marked bdi").all_inner_texts() == ["▁To"]
    assert page.locator("#considered-title").inner_text() == "Most probable at “To”"
    shown = [
        "<bos>",
        *language.pieces[1:],
    ]  # a text's start, whatever the model calls it
    assert page.locator("#text button bdi").all_inner_texts() == shown
    assert page.locator("#text .bar").count() == 4  # the first token is given
    assert shades(page) == pytest.approx(
        expected_shades(language.decoder[-1].mean(0)), abs=0.01
    )
    page.locator("#text button").nth(2).focus()
    assert "be" in page.locator("#considered-title").inner_text()
    page.locator("#text button").first.focus()
    assert (
        page.locator("#considered-title").inner_text()
        == "“start” is given: the model did not choose it"
    )
    assert page.locator("#considered li").count() == 0
    hidden = ["reasons", "lanes", "alignment"]
    assert all(page.locator(f"#{section}").count() == 0 for section in hidden)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_small_probability_is_not_shown_as_none(open_page, language):
    chosen = [replace(choice, probability=0.00003) for choice in language.chosen]
    page = open_page(replace(language, chosen=chosen))
    name = page.locator("#text button").nth(1).text_content()
    assert name.endswith("probability < 0.001")
    shown = page.locator("main").inner_text()
    assert "0.000" not in shown.replace("< 0.001", "")


@pytest.mark.parametrize("layers", [0, 2])
def test_a_classifier_shows_its_reasons(open_page, layers):
    reasons = [
        Contributions("good", [0.1, -0.4, 1.2], [0.0, -0.2, 0.9], 0.97),
        Contributions("bad", [-0.1, 0.5, -1.0], [0.1, 0.3, -0.8], None),
    ]
    inspection = ClassificationInspection(
        text="a warm film",
        lang="en",
        ids=[7, 8, 9],
        pieces=["▁a", "▁warm", "▁film"],
        labels=["good", "bad"],
        probabilities=[0.8, 0.2],
        contributions=reasons,
        encoder=torch.rand(layers, 2, 3, 3, generator=torch.Generator().manual_seed(2))
        .softmax(-1)
        .numpy(),
        vectors=Vectors(np.ones((3, 5)), np.zeros((3, 5))),
        max_len=128,
        cut=True,
    )
    page = open_page(inspection, width=360)
    table = page.locator("#choosing-table tbody tr").all_inner_texts()
    assert [row.split() for row in table] == [["good", "0.800"], ["bad", "0.200"]]
    read = "([row, column]) => woven.get('reasons-grid').picture.read(row, column)"
    assert page.evaluate(read, [1, 1]) == "gradient × vector: “warm” −0.4000."
    assert page.evaluate(read, [0, 2]) == "left out: “film” +0.9000."
    assert "“film” speaks most for it, +0.900" in page.locator("#reasons").inner_text()
    assert "agree with a correlation of 0.97" in page.locator("#reasons").inner_text()
    page.get_by_role("radio", name="gradient × vector").check(force=True)
    assert "“film” speaks most for it, +1.20" in page.locator("#reasons").inner_text()
    apart = [replace(reasons[0], agreement=-0.7), reasons[1]]
    said = open_page(replace(inspection, contributions=apart)).locator("#reasons")
    assert "do not agree (correlation −0.70): the gradient" in said.inner_text()
    assert "n-gram" not in page.locator("main").inner_text()
    grams = open_page(replace(inspection, ngrams=3))
    assert "n-grams of up to 3" in grams.locator("#vectors-caption").inner_text()
    choose(page, "bad")
    assert page.evaluate(read, [1, 2]) == "gradient × vector: “film” −1.0000."
    assert "cannot be compared" in page.locator("#reasons").inner_text()
    assert page.locator("#reasons-text span").all_inner_texts() == ["a", "warm", "film"]
    below = page.locator("#reasons-text span.below").all_inner_texts()
    assert below == ["a", "film"]
    assert page.locator("#attention-none").is_visible() == (layers == 0)
    assert page.locator("#map").is_visible() == (layers > 0)
    if not layers:
        attention = page.locator("#attention-section").inner_text()
        assert attention.split("\n\n")[1:] == ["This model has no attention layers."]
    assert "first 128 tokens" in page.locator("#notes").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
