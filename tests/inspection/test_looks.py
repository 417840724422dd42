"""All looks: what each head does by rule, the map on its canvas, read by pointer and by key."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pushed import of_which
from weft.inspection.tokens import Vectors
from weft.inspection.translation import TranslationInspection
from weft.predict.alignment import WordAlignment

# The colours in a part of a canvas; it is copied, as the browser complains of reading one often.
READ = """(canvas, x, y, width, height) => {
    const copy = new OffscreenCanvas(width, height);
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, -x, -y);
    return [...pen.getImageData(0, 0, width, height).data];
}"""
BLUE = [35, 72, 140]  # the colour of the source
RED = [163, 35, 43]  # of what is below zero
INK = [29, 34, 41]


@pytest.fixture
def page(open_page: Any, inspection: TranslationInspection) -> Any:
    return open_page(inspection)


def come_into_sight(page: Any, what: str) -> None:
    """Scroll to a picture, and wait until it is painted."""
    page.locator(what).last.evaluate(
        """async element => {
            element.scrollIntoView({ block: "center" });
            for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
        }"""
    )


def pixel(page: Any, row: int, key: int) -> list[int]:
    """The colour in the middle of a cell of the large map."""
    come_into_sight(page, "#looks-own canvas")
    found: list[int] = page.evaluate(
        f"""([row, key]) => {{
            const canvas = [...document.querySelectorAll("#looks-maps canvas")].at(-1);
            const box = canvas.closest(".map-box");
            const {{ left, top, cell }} = heatmaps.get(box);
            const x = left + (key + 0.5) * cell - box.scrollLeft;
            const y = top + (row + 0.5) * cell - box.scrollTop;
            return ({READ})(canvas, Math.round(x), Math.round(y), 1, 1);
        }}""",
        [row, key],
    )
    return found


def cell_at(page: Any, row: int, key: int) -> tuple[float, float]:
    """Where a cell is on the screen."""
    page.locator("#looks-maps .map-box").last.scroll_into_view_if_needed()
    x, y = page.evaluate(
        """([row, key]) => {
            const canvas = [...document.querySelectorAll("#looks-maps canvas")].at(-1);
            canvas.scrollIntoView({ block: "center" });
            const { left, top, cell } = heatmaps.get(canvas.closest(".map-box"));
            const box = canvas.getBoundingClientRect();
            return [box.left + left + (key + 0.5) * cell, box.top + top + (row + 0.5) * cell];
        }""",
        [row, key],
    )
    return x, y


def choose(page: Any, name: str) -> None:
    page.locator("#looks").get_by_role("radio", name=name, exact=True).check(force=True)


def reading(page: Any) -> str:
    found: str = page.locator("#looks-reading").inner_text()
    return found


def weight_in(text: str) -> float:
    return float(re.findall(r": (\d\.\d+)\.", text)[-1])


def test_every_head_of_every_layer_is_there_in_true_proportion(
    page: Any, inspection: TranslationInspection
) -> None:
    layers, heads, queries, keys = inspection.cross.shape
    assert page.locator(".head").count() == layers * (heads + 1)
    box = page.locator(".head canvas").first.bounding_box()
    assert box["width"] / box["height"] == pytest.approx(keys / queries, rel=0.1)


def test_thumbnails_show_their_weights(
    page: Any, inspection: TranslationInspection
) -> None:
    script = """canvas => {
        const { shape } = mapOf("cross", 2, 1);
        const size = canvas.width / shape[1];
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return [...Array(shape[0] * shape[1]).keys()].map((i) =>
            data[4 * (Math.floor(i / shape[1]) * size * canvas.width + (i % shape[1]) * size) + 3]);
    }"""
    come_into_sight(page, ".head[data-layer='2'][data-head='1']")
    canvas = page.locator(".head[data-layer='2'][data-head='1'] canvas")
    expected = 255 * np.sqrt(inspection.cross[2, 1].flatten())
    assert canvas.evaluate(script) == pytest.approx(expected.tolist(), abs=3)


def test_the_large_map_shows_the_weights_of_the_head_that_is_chosen(
    page: Any, inspection: TranslationInspection
) -> None:
    page.locator(".head[data-layer='1'][data-head='2']").click()
    assert "Layer 2, head 3" in page.locator("#looks-name").inner_text()
    for row, key in ((1, 0), (2, 3), (4, 5)):
        depth = float(np.sqrt(inspection.cross[1, 2, row, key]))
        *colour, alpha = pixel(page, row, key)
        assert alpha == pytest.approx(255 * depth, abs=4)
        if alpha > 100:
            assert colour == pytest.approx(BLUE, abs=4)


def test_heads_are_chosen_by_keyboard(page: Any) -> None:
    page.locator(".head[data-layer='1'][data-head='1']").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[place.layer, place.head]") == [2, 2]
    assert page.evaluate("document.activeElement.ariaChecked") == "true"
    assert page.locator(".head[tabindex='0']").count() == 1


def test_what_is_pointed_at_is_read_and_stays_when_it_is_chosen(
    page: Any, inspection: TranslationInspection
) -> None:
    layer, head = page.evaluate("[place.layer, place.head]")
    weights = inspection.cross[layer, head]
    page.mouse.move(*cell_at(page, 2, 1))
    assert weight_in(reading(page)) == pytest.approx(weights[2, 1], abs=6e-4)
    page.mouse.click(*cell_at(page, 3, 2))
    page.mouse.move(1, 1)
    assert page.evaluate("[place.step, place.key]") == [3, 2]
    assert weight_in(reading(page)) == pytest.approx(weights[3, 2], abs=6e-4)
    marked = "all => all.flatMap((token, i) => token.ariaCurrent ? [i] : [])"
    assert page.locator("#ribbon-source button").evaluate_all(marked) == [2]


def test_a_mean_carries_nothing_but_its_heads_do(
    page: Any, inspection: TranslationInspection
) -> None:
    written = np.array(inspection.to_data()["shares"]["written"]["cross"])
    page.evaluate("go({ kind: 'cross', layer: 1, head: MEAN, step: 1, key: 2 })")
    carried = written[1, :, 1, 2].sum()
    found = re.search(r"Its heads together carried ([−+]?[\d.]+) into", reading(page))
    assert found
    value = float(found[1].replace("−", "-"))
    assert value == pytest.approx(carried, abs=0.0051)
    caption = page.locator("#looks-caption")
    assert "which the model itself never forms" in caption.inner_text()
    choose(page, "written")
    assert "Shown is the sum over the layer’s heads." in caption.inner_text()
    assert "never forms" not in caption.inner_text()


def test_arrow_keys_read_every_number(
    page: Any, inspection: TranslationInspection
) -> None:
    layer, head = page.evaluate("[place.layer, place.head]")
    weights = inspection.cross[layer, head]
    page.locator("#looks-maps .map-box").last.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    for key in range(weights.shape[1]):
        assert weight_in(reading(page)) == pytest.approx(weights[1, key], abs=6e-4)
        page.keyboard.press("ArrowRight")


def test_what_cannot_be_seen_is_hatched_and_not_read(page: Any) -> None:
    choose(page, "Looks back")
    come_into_sight(page, "#looks-own canvas")
    several = page.evaluate(
        f"""() => {{
            const canvas = [...document.querySelectorAll("#looks-maps canvas")].at(-1);
            const {{ left, top, cell }} = heatmaps.get(canvas.closest(".map-box"));
            const found = ({READ})(canvas, left + 2 * cell, top + 2, 2 * cell, cell - 4);
            return new Set(found.filter((_, i) => i % 4 === 3)).size;
        }}"""
    )
    assert several > 1  # lines, no even colour
    page.mouse.move(*cell_at(page, 1, 4))
    assert "Hatched" in page.locator("#looks-caption").inner_text()
    assert page.evaluate("isVisible('decoder', 1, 4)") is False


def maps_of(queries: int, keys: int) -> dict[str, Any]:
    """Heads of which it is known what they do."""
    flat = np.full((queries, keys), 1 / keys)
    first = np.full((queries, keys), 0.1 / (keys - 1))
    first[:, 0] = 0.9
    diagonal = np.full((queries, keys), 0.2 / (keys - 1))
    for row in range(queries):
        diagonal[row, round(row * (keys - 1) / (queries - 1))] = 0.8
    return {"flat": flat, "first": first, "diagonal": diagonal}


def test_each_head_has_a_sentence_by_rule_with_its_number(
    open_page: Any, inspection: TranslationInspection
) -> None:
    maps = maps_of(*inspection.cross.shape[2:])
    cross = np.stack([[maps["flat"], maps["first"], maps["diagonal"]]])
    cross = cross.astype(np.float32)
    page = open_page(replace(inspection, cross=cross))
    said = page.locator(".head:not([data-head='-1'])").all_inner_texts()
    assert said[0].startswith("1 flat: everything alike, 1.00")
    assert said[1] == "2 first token, 0.90"
    assert said[2].startswith("3 the diagonal, 0.8")
    # what these labels mean is told, and no other
    caption = page.locator("#looks-caption").inner_text()
    told = ("“The diagonal”", "“Flat”", "“One token at a time”", "“Mixed”")
    assert [name in caption for name in told] == [True, True, False, False]
    # a page begins with a head that tells something
    assert page.evaluate("place.head") == 1
    assert "flat" not in page.locator("#looks-prose").inner_text()
    page.locator(".head[data-head='0']").click()
    assert "looks at everything alike" in page.locator("#looks-prose").inner_text()
    row = [pixel(page, 2, key)[3] for key in range(cross.shape[-1])]
    assert page.evaluate("isFlat('cross', 0, 0)")
    assert min(row) > 0


def test_labels_of_heads_that_follow_no_rule_are_told(
    open_page: Any, inspection: TranslationInspection
) -> None:
    queries, keys = inspection.cross.shape[2:]
    sharp = np.full((queries, keys), 0.2 / (keys - 1))
    sharp[range(queries), [3 * row % keys for row in range(queries)]] = 0.8
    mixed = np.full((queries, keys), 0.7 / (keys - 1))
    mixed[:, 2] = 0.3
    cross = np.stack([[sharp, mixed]]).astype(np.float32)
    page = open_page(replace(inspection, cross=cross))
    for language, names in {
        "en": ["“One token at a time”", "“Mixed”", "“The diagonal”", "far more weight"],
        "zh": ["“每次一个词元”", "“混合”", "“对角线”", "远多于"],
    }.items():
        page.evaluate("chosen => { language = chosen; draw(); drawAll(); }", language)
        labels = page.locator("#looks-heads").inner_text()
        caption = page.locator("#looks-caption").inner_text()
        there = [name in caption for name in names]
        assert there == [True, True, False, False], (labels, caption)


def test_a_head_that_follows_the_words_is_told_from_one_that_follows_the_corners(
    open_page: Any, inspection: TranslationInspection
) -> None:
    src = [piece.replace("▁", "") for piece in inspection.src_pieces[:-1]]
    places = [place for place, word in enumerate(src) if word]
    tgt = list(inspection.tgt_pieces)
    tgt = tgt[:-1] if tgt[-1] == "<eos>" else tgt
    queries, keys = inspection.cross.shape[2:]
    words = [places[-1 - row % len(places)] for row in range(len(tgt))]
    pairs = [(places.index(place), row) for row, place in enumerate(words)]
    alignment = WordAlignment([word for word in src if word], tgt, pairs)
    follows = np.full((queries, keys), 0.1 / (keys - 1))
    follows[range(len(tgt)), words] = 0.9
    slope = (keys - 1) / (queries - 1)
    band = np.abs(np.arange(keys) - np.arange(queries)[:, None] * slope) <= 1
    chance = band.mean()
    weak = np.where(band, 0.45 / band.sum(1)[:, None], 0.55 / (~band).sum(1)[:, None])
    cross = np.stack([[follows, weak]]).astype(np.float32)
    page = open_page(replace(inspection, cross=cross, alignment=alignment))
    assert page.evaluate("ruleOf('cross', 0, 0).rule") == "translated"
    value = page.evaluate("ruleOf('cross', 0, 0).value")
    mean = follows[range(len(tgt)), words].sum() / queries
    assert value == pytest.approx(mean, abs=1e-4)
    # of the band's weight so much is not more than even looks have there
    assert (0.45 - chance) / (1 - chance) < 0.4
    assert page.evaluate("ruleOf('cross', 0, 1).rule") != "diagonal"
    caption = page.locator("#looks-caption").inner_text()
    assert "one token to each side" not in caption  # no head is said to be at it
    assert "“Word by word”" in caption


def test_a_translators_decoder_is_at_what_was_just_written(
    open_page: Any, inspection: TranslationInspection
) -> None:
    size = inspection.decoder.shape[-1]
    own = np.eye(size)
    before = np.eye(size, k=-1)
    before[0, 0] = 1
    decoder = np.stack([[own, before]]).astype(np.float32)
    page = open_page(replace(inspection, decoder=decoder))
    choose(page, "Looks back")
    said = page.locator(".head:not([data-head='-1'])").all_inner_texts()
    assert said == [
        "1 what was just written, 1.00",
        "2 the one before what was just written, 1.00",
    ]


def test_a_flat_head_is_not_said_to_be_flat_where_its_row_is_not(
    open_page: Any, inspection: TranslationInspection
) -> None:
    queries, keys = inspection.cross.shape[2:]
    flat = np.full((queries, keys), 1 / keys)
    flat[1] = 0.65 / (keys - 1)
    flat[1, 0] = 0.35
    cross = np.broadcast_to(flat, (1, 2, *flat.shape)).astype(np.float32)
    page = open_page(replace(inspection, cross=cross))
    prose = page.locator("#looks-prose")
    assert page.evaluate("isFlat('cross', 0, 0)")
    assert "This head is flat" in prose.inner_text()
    page.evaluate("go({ step: 1 })")
    assert "layer 1, head 1 looks most at" in prose.inner_text()
    assert "On average over all rows" in prose.inner_text()


@pytest.mark.parametrize(
    ("rule", "shift", "said"),
    of_which(
        [
            ("previous", -1, "previous token"),
            ("itself", 0, "itself"),
            ("next", 1, "next token"),
        ],
        ("previous", -1, "previous token"),
    ),
)
def test_rules_of_looks_at_the_same_text(
    open_page: Any, inspection: TranslationInspection, rule: str, shift: int, said: str
) -> None:
    size = inspection.encoder.shape[-1]
    weights = np.full((size, size), 0.05)
    for row in range(size):
        weights[row, min(max(row + shift, 0), size - 1)] += 1
    weights /= weights.sum(1, keepdims=True)
    encoder = np.broadcast_to(weights, (1, 2, size, size)).astype(np.float32)
    page = open_page(replace(inspection, encoder=encoder))
    found = page.evaluate("ruleOf('encoder', 0, 0)")
    assert found["rule"] == rule
    rows = [r for r in range(size) if 0 <= r + shift < size]
    mean = sum(weights[r, r + shift] for r in rows) / size
    assert found["value"] == pytest.approx(mean, abs=1e-4)
    choose(page, "Looks around")
    assert page.locator(".head[data-head='0']").inner_text().startswith(f"1 {said}")


def test_a_kept_map_stands_beside_and_the_difference_is_shown(
    page: Any, inspection: TranslationInspection
) -> None:
    page.locator(".head[data-layer='0'][data-head='0']").click()
    page.get_by_role("button", name="Keep to compare").click()
    page.locator(".head[data-layer='0'][data-head='1']").click()
    boxes = [box.bounding_box() for box in page.locator("#looks-maps .map-box").all()]
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=30)
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    choose(page, "difference")
    apart = inspection.cross[0, 1] - inspection.cross[0, 0]
    largest = np.abs(apart).max()
    row, key = np.unravel_index(np.abs(apart).argmax(), apart.shape)
    *colour, alpha = pixel(page, int(row), int(key))
    assert alpha == pytest.approx(255, abs=3)
    assert colour == pytest.approx(INK if apart[row, key] > 0 else RED, abs=4)
    page.evaluate("([row, key]) => go({ step: row, key })", [int(row), int(key)])
    assert f"{largest:.3f} against the kept one" in reading(page)
    page.get_by_role("button", name="Put away").click()
    assert page.locator("#looks-maps .map-box").first.is_hidden()


@pytest.mark.long
def test_a_map_may_have_a_scale_of_its_own(
    page: Any, inspection: TranslationInspection
) -> None:
    layer, head = page.evaluate("[place.layer, place.head]")
    weights = inspection.cross[layer, head]
    row, key = np.unravel_index(weights.argmax(), weights.shape)
    before = pixel(page, int(row), int(key))[3]
    assert before == pytest.approx(255 * float(np.sqrt(weights.max())), abs=4)
    choose(page, "the largest here")
    assert pixel(page, int(row), int(key))[3] == pytest.approx(255, abs=3)


def of_many_words(
    inspection: TranslationInspection, count: int
) -> TranslationInspection:
    """The same with a source of many tokens, which are all looked at alike."""
    steps = len(inspection.tgt_ids)
    vectors = Vectors(np.ones((count, 8), np.float32), None)
    longer = {
        "src_ids": [5] * count,
        "src_pieces": ["▁word"] * count,
        "src_vectors": vectors,
        "encoder": np.full((1, 1, count, count), 1 / count, np.float32),
        "cross": np.full((1, 1, steps, count), 1 / count, np.float32),
    }
    return replace(inspection, **longer)


def test_a_map_that_fits_is_seen_whole(
    open_page: Any, inspection: TranslationInspection
) -> None:
    """On a beamer its column letters would scroll away; nothing scrolls by the last few pixels."""
    page = open_page(of_many_words(inspection, 27))
    page.evaluate("go({kind: 'encoder'})")
    box = page.locator("#looks-own .map-box")
    come_into_sight(page, "#looks-own canvas")
    assert box.evaluate("box => box.scrollHeight") == box.bounding_box()["height"]
    ribbon = page.locator("#ribbon").bounding_box()
    assert box.bounding_box()["height"] < 800 - ribbon["height"]
    assert box.evaluate("box => heatmaps.get(box).cell") > 15


def test_paper_has_every_map_in_its_own_shape(
    open_page: Any, inspection: TranslationInspection
) -> None:
    page = open_page(of_many_words(inspection, 27))
    page.evaluate("go({kind: 'encoder'})")
    page.emulate_media(media="print")
    page.wait_for_function("() => document.documentElement.dataset.printing === ''")
    shape = page.locator("#looks-own canvas").evaluate(
        "canvas => [canvas.width / canvas.clientWidth, canvas.height / canvas.clientHeight]"
    )
    assert shape[0] == pytest.approx(shape[1], rel=0.01)
    assert shape[0] >= 2  # points of paper are small


@pytest.mark.parametrize("heads", of_which([6, 8], 8))
def test_no_head_is_left_alone_in_a_row(
    open_page: Any, inspection: TranslationInspection, heads: int
) -> None:
    maps = {
        kind: np.repeat(getattr(inspection, kind)[:, :1], heads, axis=1)
        for kind in ("cross", "encoder", "decoder")
    }
    page = open_page(replace(inspection, **maps), width=1280)
    rows = """() => {
        const tops = [...document.querySelector(".of-heads").children].map((head) => head.offsetTop);
        return [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
    }"""
    for width in (1440, 1280, 1180, 1024, 900, 820):
        page.set_viewport_size({"width": width, "height": 800})
        found = page.evaluate(rows)
        assert sum(found) == heads + 1
        assert 1 not in found, width


def test_full_size_has_cells_of_24_pixels_and_says_that_there_is_more(
    open_page: Any, inspection: TranslationInspection
) -> None:
    page = open_page(of_many_words(inspection, 40), width=360)
    choose(page, "full")
    come_into_sight(page, "#looks-own canvas")
    box = page.locator("#looks-maps .map-box").last
    assert box.evaluate("box => heatmaps.get(box).cell") == 24
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    shadow = f"""box => {{
        const canvas = box.querySelector("canvas");
        const y = heatmaps.get(box).top + 12;
        return ({READ})(canvas, canvas.width - 2, y, 1, 1)[3];
    }}"""
    assert box.evaluate(shadow) > 60
    box.focus()
    page.keyboard.press("End")
    assert box.evaluate("box => box.scrollLeft") > 0
    choose(page, "fit")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth + 1")


@pytest.mark.long
def test_a_model_with_one_head_is_shown_without_a_choice(
    open_page: Any, inspection: TranslationInspection, unseen: dict[str, Any]
) -> None:
    """A recurrent model: one map, no word of heads or of their mean in either language, and its own
    papers.
    """
    nothing = inspection.encoder[:0]
    maps = {"encoder": nothing, "decoder": nothing, "cross": inspection.cross[-1:, :1]}
    for family, paper, other in (
        ("additive", "Bahdanau", "Luong"),
        ("dot", "Luong", "Bahdanau"),
    ):
        page = open_page(replace(inspection, **maps, **unseen, family=family))
        assert page.locator("#looks-heads").is_hidden()
        assert page.locator("#looks-keep").count() == 0
        for language in ("English", "中文"):
            page.get_by_role("radio", name=language, exact=True).check(force=True)
            looks = page.locator("#looks").inner_text()
            for word in ("mean", "head", "平均", "各头", "个头"):
                assert word not in looks
            cited = page.locator("#limits-cited").inner_text()
            assert "Cho" in cited
            assert paper in cited
            for section in ("model", "numbers", "looks", "limits"):
                own = page.locator(f"#{section}")
                shown = own.inner_text() if own.count() else ""
                assert "Vaswani" not in shown
                assert other not in shown


@pytest.mark.long
def test_layers_of_one_head_are_chosen_without_a_mean(
    open_page: Any, inspection: TranslationInspection
) -> None:
    kinds = ("cross", "encoder", "decoder")
    one = {kind: getattr(inspection, kind)[:, :1] for kind in kinds}
    page = open_page(replace(inspection, **one))
    assert page.locator(".head").count() == len(inspection.cross)
    assert "mean" not in page.locator("#looks-heads").inner_text()


def test_lines_lead_to_what_is_looked_at(
    page: Any, inspection: TranslationInspection
) -> None:
    come_into_sight(page, ".lines-box")
    lines = page.locator(".lines-box canvas")
    before = lines.evaluate("canvas => canvas.toDataURL()")
    page.evaluate("go({ step: 2 })")
    assert lines.evaluate("canvas => canvas.toDataURL()") != before
    lines.scroll_into_view_if_needed()
    box = lines.bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 10)
    assert page.evaluate("place.step") == 0
