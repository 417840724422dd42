"""The page in a real browser: what it says, in both languages, safely, and without a request to any
network.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from weft.inspection.classification import ClassificationInspection, Contributions
from weft.inspection.language import LanguageInspection
from weft.inspection.report import write_report
from weft.inspection.tokens import Choice, Vectors

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
)


@pytest.fixture
def page(open_page, inspection):
    return open_page(inspection)


def test_everything_that_can_be_used_has_a_name(page):
    used = page.locator(
        "button, input, [tabindex='0'], [role=grid], [role=radiogroup], [role=application]"
    )
    names = used.evaluate_all(
        "all => all.map(e => e.ariaLabel || e.labels?.[0]?.innerText || e.innerText)"
    )
    assert len(names) > 20
    assert all(name.strip() for name in names)


@pytest.mark.long
def test_dark_and_light_differ(open_page, inspection):
    colours = [
        open_page(inspection, scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(251, 250, 247)", "rgb(20, 23, 28)"]


@pytest.mark.long
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


def test_words_that_training_never_had_are_named(open_page, inspection):
    words = [f"w{i}" for i in range(12)]
    page = open_page(replace(inspection, unknown_words=words[:2]))
    said = page.locator("#notes").inner_text()
    assert "Never seen in training: “w0”, “w1”. " in said
    choose(page, "中文")
    assert "从未见过：“w0”、“w1”。" in page.locator("#notes").inner_text()
    many = open_page(replace(inspection, unknown_words=words)).locator("#notes")
    assert "“w9” and 2 more. " in many.inner_text()


def test_hostile_text_is_shown_and_not_run(open_page, inspection):
    hostile = replace(
        inspection,
        text=HOSTILE,
        translation=HOSTILE,
        src_pieces=[HOSTILE] * len(inspection.src_ids),
        tgt_pieces=[HOSTILE] * len(inspection.tgt_ids),
    )
    page = open_page(hostile)
    assert page.locator("#ribbon-source bdi").first.inner_text() == HOSTILE
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


def choose(page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).check(force=True)


def test_both_languages_say_the_same_things(page):
    keys = page.evaluate("[Object.keys(WORDS.en), Object.keys(WORDS.zh)]")
    assert keys[0] == keys[1]
    values = "language => Object.values(WORDS[language]).map(text => (text.match(/{\\w+}/g) ?? []).sort().join())"
    assert page.evaluate(values, "en") == page.evaluate(values, "zh")


def test_words_that_belong_together(page, inspection):
    assert (
        page.locator("#alignment-words dt").all_inner_texts()
        == inspection.alignment.tgt
    )


def test_the_texts_stand_at_the_top(page, inspection):
    assert page.title() == f"How the model translated this: {inspection.text}"
    assert page.locator("#texts dd").all_inner_texts() == [
        inspection.text,
        inspection.translation,
    ]
    assert page.locator("#texts dd").nth(1).get_attribute("lang") == "zh"


def test_the_page_speaks_chinese(page, inspection):
    choose(page, "中文")
    assert page.title() == f"模型是怎样翻译的: {inspection.text}"
    assert page.locator("html").get_attribute("lang") == "zh"
    shown = page.locator("main").inner_text()
    assert "交叉注意力" in page.locator("#looks-name").inner_text()
    english = ("The model", "All looks", "Layer ", "Each row", "Show", "Colour", "of ")
    assert not [word for word in english if word in shown]
    choose(page, "English")
    assert "Each row" in page.locator("main").inner_text()


def test_vectors_of_each_side_and_part(page, inspection):
    script = """canvas => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return [...data].filter((_, i) => i % 4 === 3);
    }"""
    for side, vectors in (
        ("source", inspection.src_vectors),
        ("target", inspection.tgt_vectors),
    ):
        page.locator(f"#ribbon-{side} button").nth(1).click()
        for part, numbers in (
            ("token", vectors.tokens),
            ("sum", vectors.tokens + vectors.positions),
        ):
            choose(page, part)
            sizes = np.abs(numbers)
            expected = 255 * np.sqrt(sizes / sizes.max())
            page.locator("#numbers-all").scroll_into_view_if_needed()
            page.evaluate("new Promise(requestAnimationFrame)")
            page.evaluate("new Promise(requestAnimationFrame)")
            drawn = page.locator("#numbers-all .track canvas").evaluate(script)
            assert drawn == pytest.approx(expected.flatten().tolist(), abs=4)


def test_a_vector_is_read_number_by_number(page, inspection):
    """Token + position = sum, of the token that is chosen."""
    page.locator("#ribbon-source button").nth(2).click()
    tokens, positions = inspection.src_vectors.tokens, inspection.src_vectors.positions
    page.locator("#numbers-strips").focus()
    for column in range(1, 5):
        page.keyboard.press("ArrowRight")
        said = page.locator("#numbers-reading").inner_text()
        assert said.startswith(f"Number {column + 1} of {tokens.shape[1]}: token ")
        parts = said.replace("−", "-").split(": ")[1].split(", ")
        own, position, total = (float(part.split(" ")[1]) for part in parts)
        assert own == pytest.approx(tokens[2, column], abs=2e-3)
        assert position == pytest.approx(positions[2, column], abs=2e-3)
        assert total == pytest.approx(own + position, abs=1e-9)
    page.keyboard.press("End")
    assert (
        f"Number {tokens.shape[1]} of" in page.locator("#numbers-reading").inner_text()
    )


def test_what_was_written_last_has_no_vector_that_enters(page, inspection):
    last = len(inspection.tgt_ids) - 1
    marked = "() => getComputedStyle(byId('numbers-all'), '::after').display"
    for side, token, is_read in (
        ("target", last, False),
        ("target", last - 1, True),
        ("source", len(inspection.src_ids) - 1, True),
    ):
        page.evaluate("place => go(place)", {"side": side, "token": token})
        said = page.locator("#numbers-prose").inner_text()
        assert ("enters as a vector of" in said) == is_read
        assert ("was written, and is not read again" in said) != is_read
        assert page.locator("#numbers-strips").is_visible() == is_read
        assert page.locator("#numbers-reading").is_visible() == is_read
        assert (page.evaluate(marked) != "none") == is_read
    page.get_by_role("radio", name="中文").check(force=True)
    page.evaluate("place => go(place)", {"side": "target", "token": last})
    assert "不会再被读入" in page.locator("#numbers-prose").inner_text()


def test_a_row_of_the_vectors_chooses_its_token(page, inspection):
    """The decoder reads the start first: row 2 is target token 1."""
    page.locator("#numbers-all").scroll_into_view_if_needed()
    for _ in range(2):  # what comes into sight is laid out first
        page.evaluate("new Promise(requestAnimationFrame)")
    box = page.locator("#numbers-all").bounding_box()
    rows = len(inspection.tgt_ids)
    page.mouse.click(box["x"] + 200, box["y"] + box["height"] * 2.5 / rows)
    assert page.evaluate("[place.side, place.token]") == ["target", 1]
    name = inspection.tgt_pieces[1].removeprefix("▁")
    assert f"“{name}”" in page.locator("#numbers-prose").inner_text()


@pytest.fixture(scope="module")
def language(unseen: dict[str, Any]) -> LanguageInspection:
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
        **unseen,
    )


def test_what_is_added_to_vectors_and_what_the_text_begins_with_is_said(
    open_page, language
):
    page = open_page(language)
    shown = page.locator("#numbers").inner_text()
    assert "reads it before every document" in shown
    assert "has added" not in shown
    assert "Nothing is added for its position" in shown
    assert "norm" not in shown
    normed = 3 * language.vectors.tokens
    vectors = replace(language.vectors, beside=("ngrams", "matches"), normed=normed)
    page = open_page(replace(language, vectors=vectors, start="between"))
    shown = page.locator("#numbers").inner_text()
    assert "the vectors of the n-grams that end with it and that of the token" in shown
    assert "one token has other numbers at other places" in shown
    assert "it stands between the documents of the training text" in shown
    assert "brought to one scale (norm) before the first layer reads it" in shown
    strips = page.locator("#numbers-strips .strip span").all_inner_texts()
    assert strips == ["token", "→ normed"]
    said = page.locator("#numbers-reading").inner_text().replace("−", "-")
    own, read = (float(part.split(" ")[1]) for part in said.split(": ")[1].split(", "))
    assert (own, read) == pytest.approx((own, 3 * own), abs=3e-3)
    # what a model of a book says after it means nothing: the next place is shown
    second = language.pieces[2].removeprefix("▁")
    assert page.locator("#ribbon [aria-current]").inner_text() == second


def test_a_language_model_has_the_sections_of_its_task(open_page, language):
    page = open_page(language, width=360)
    assert page.title() == "How the model reads this: To be, or"
    hidden = ["reasons", "lanes", "alignment"]
    assert all(page.locator(f"#{section}").count() == 0 for section in hidden)
    assert "to foretell “To”" in page.locator("#looks-reading").inner_text()
    shown = page.locator("main").inner_text()
    assert "<eos>" not in shown
    assert "▁" not in shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("layers", [pytest.param(0, marks=pytest.mark.long), 2])
def test_a_classifier_shows_its_reasons(open_page, layers, unseen):
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
        **unseen,
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
    little = [replace(reasons[0], left_out=[0.0, -0.0002, 0.0005]), reasons[1]]
    noise = open_page(replace(inspection, contributions=little))
    said = noise.locator("#reasons-prose").inner_text()
    assert "No single token matters here" in said
    assert "speaks" not in said
    depth = "token => Number(token.style.getPropertyValue('--depth'))"
    film = noise.locator("#reasons-text span").last
    assert film.evaluate(depth) == pytest.approx(np.sqrt(0.0005 / 0.1), abs=0.001)
    assert noise.evaluate("Math.max(...ribbonTints().tints.text)") < 0.01
    apart = [replace(reasons[0], agreement=-0.7), reasons[1]]
    said = open_page(replace(inspection, contributions=apart)).locator("#reasons")
    assert "do not agree (correlation −0.70): the gradient" in said.inner_text()
    assert page.locator("#numbers-grams").is_hidden()
    grams = open_page(replace(inspection, ngrams=3))
    assert "n-grams of up to 3" in grams.locator("#numbers-grams").inner_text()
    choose(page, "bad")
    assert page.evaluate(read, [1, 2]) == "gradient × vector: “film” −1.0000."
    assert "cannot be compared" in page.locator("#reasons").inner_text()
    assert page.locator("#reasons-text span").all_inner_texts() == ["a", "warm", "film"]
    below = page.locator("#reasons-text span.below").all_inner_texts()
    assert below == ["a", "film"]
    assert page.locator("#looks").count() == (layers > 0)
    cited = page.locator("#limits-cited").inner_text()
    assert ("Joulin et al. 2017" in cited) == (layers == 0)
    assert ("Vaswani" in cited) == (layers > 0)
    page.evaluate("go({ label: 0 })")
    tokens = page.locator("#ribbon-text button")  # tinted by its reasons
    assert "below" in tokens.nth(1).get_attribute("class").split()
    shade = "token => Number(token.style.getPropertyValue('--shade'))"
    assert [tokens.nth(i).evaluate(shade) for i in range(3)] == pytest.approx(
        np.sqrt(np.abs([0.0, -0.2, 0.9]) / 0.9).tolist(), abs=0.01
    )
    assert "first 128 tokens" in page.locator("#notes").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
