"""The page of several inspections in a browser: what turns from one to another, how a model
learned, two models beside each other.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.inspection.learned import LEFT_OUT
from weft.inspection.look import inspect_text
from weft.inspection.report import write_report
from weft.inspection.several import Several, compare_models, inspect_again
from weft.inspection.trained import filled
from weft.inspection.translation import TranslationInspection
from weft.tasks.opening import load_task
from weft.tasks.trainable_translation import TrainableTranslation

FACTS: dict[str, Any] = {
    "steps": [0, 4, 1250],
    "finished": 2,
    "own": ["\ufffd\ufffd", "", "我想要一杯茶。"],
    "losses": [[600, 4.0], [1250, 2.5]],
    "training": [[100, 6.0], [1200, 3.0]],
    "samples": [
        {"step": 600, "text": "Der Tee .", "answer": "茶"},
        {"step": 1250, "text": "Der Tee .", "answer": "茶。"},
    ],
}


def with_scale(task: TrainableTranslation, scale: float) -> Any:
    """The same model with smaller weights."""
    arrays = {
        name: parameter.detach().numpy() * np.float32(scale)
        for name, parameter in task.model.named_parameters()
    }
    return filled(task, arrays)


@pytest.fixture(scope="module")
def steps(
    task: TrainableTranslation, inspection: TranslationInspection
) -> list[TranslationInspection]:
    young = [inspect_again(with_scale(task, scale), inspection) for scale in (0.1, 0.6)]
    found = [*young, inspection]
    assert all(isinstance(one, TranslationInspection) for one in found)
    return found  # type: ignore[return-value]


@pytest.fixture
def learned(open_page: Any, steps: list[TranslationInspection]) -> Any:
    left_out = frozenset(("beam", "alignment"))
    names = ["0", "4", "1,250"]
    return open_page(Several("checkpoints", names, steps, FACTS, (), left_out, 2))


def tints(page: Any) -> list[float]:
    page.evaluate("go({ tint: 'head', kind: 'cross', layer: 3, head: 0 })")
    script = "all => all.map(token => Number(token.style.getPropertyValue('--shade')))"
    found: list[float] = page.locator("#ribbon-source button").evaluate_all(script)
    return found


def tints_of(inspection: TranslationInspection, step: int = 0) -> Any:
    return pytest.approx(np.sqrt(inspection.cross[3, 0, step]).tolist(), abs=0.01)


def test_the_slider_moves_every_picture_to_a_step(
    learned: Any, steps: list[TranslationInspection]
) -> None:
    slider = learned.locator("#turner-step")
    said = learned.locator("#turner-said")
    assert said.inner_text() == "step 1,250: the finished model"
    assert tints(learned) == tints_of(steps[2])
    learned.evaluate("go({ step: 2 })")
    slider.press("Home")
    assert said.inner_text() == "step 0 of 1,250"
    assert slider.get_attribute("aria-valuetext") == "step 0 of 1,250"
    assert tints(learned) == tints_of(steps[0], 2)
    slider.press("ArrowRight")
    assert tints(learned) == tints_of(steps[1], 2)
    assert learned.evaluate("document.activeElement.id") == "turner-step"
    assert learned.evaluate("place.step") == 2
    assert learned.evaluate("new URLSearchParams(location.hash.slice(1)).get('i')") == (
        "2"
    )


def test_what_the_steps_and_losses_are_is_said(learned: Any) -> None:
    assert "greedy search" in learned.locator("#learned-prose").inner_text()
    both = "the one on dev has neither" in learned.locator("#learned-box").inner_text()
    assert both == (learned.locator(".curve-key").count() == 2)
    said = learned.evaluate("WORDS.zh['learned-losses']")
    assert "dropout" in said
    assert "标签平滑" in said


def test_a_step_without_choices_knows_how_many_tokens_there_are(
    learned: Any, steps: list[TranslationInspection]
) -> None:
    learned.evaluate("delete whole.inspections[0].choices; turn(0)")
    count = steps[2].model.to_data()["vocabulary"]["target"]
    prose = learned.locator("#wrote-prose").inner_text()
    assert f"the mean of all {count:,} tokens" in prose


def test_a_link_opens_one_step_and_play_leads_to_the_end(learned: Any) -> None:
    learned.goto(f"{learned.url.split('#')[0]}#t=3&i=2")
    learned.reload()
    learned.wait_for_selector("#turner-step")
    assert learned.evaluate("[numberShown(), place.step]") == [1, 2]
    play = learned.locator("#turner-play")
    play.click()
    assert learned.evaluate("numberShown()") == 2
    assert play.get_attribute("aria-label") == "Play"  # it has come to the end
    play.click()
    assert learned.evaluate("numberShown()") == 0
    assert play.get_attribute("aria-label") == "Stop"
    play.click()
    assert play.get_attribute("aria-label") == "Play"
    learned.locator("#turner-step").press("Home")
    play.click()
    learned.wait_for_function("() => numberShown() === 2 && !playing")


def test_what_is_in_view_stays_where_it_is(learned: Any) -> None:
    learned.evaluate("byId('learned-title').scrollIntoView()")
    before = learned.locator("#learned").bounding_box()["y"]
    learned.locator("#turner-step").press("Home")
    assert learned.locator("#learned").bounding_box()["y"] == pytest.approx(
        before, abs=2
    )


def test_every_step_says_what_it_would_have_written(learned: Any) -> None:
    rows = learned.locator(".moment-row")
    assert rows.locator(".moment-own").all_inner_texts() == [
        "\ufffd\ufffd",
        "(nothing)",
        "我想要一杯茶。",
    ]
    assert "bytes that make no letter" in learned.locator("#learned").inner_text()
    rows.nth(1).click()
    assert learned.evaluate("numberShown()") == 1
    assert learned.locator("#learned-now").inner_text() == (
        "At step 4 of 1,250: by itself it writes “(nothing)”"
    )
    assert learned.evaluate("document.activeElement.dataset.number") == "1"
    learned.keyboard.press("ArrowUp")
    assert learned.evaluate("numberShown()") == 0
    assert learned.locator(".curve .moment.now").count() == 1
    assert learned.locator(".curve text.now").text_content() == "0"
    label = learned.locator(".curve").get_attribute("aria-label")
    assert label == (
        "Loss on dev: 4.00 at step 600, 2.50 at step 1,250. The chosen step is 0."
    )
    assert learned.locator(".samples li.now").count() == 0
    rows.nth(2).click()
    assert learned.locator(".samples li.now").inner_text() == "step 1,250: 茶。"


def test_a_model_without_kept_steps_says_so(
    open_page: Any, inspection: TranslationInspection
) -> None:
    facts = {**FACTS, "steps": [1250], "finished": 0, "own": ["茶"]}
    page = open_page(Several("checkpoints", ["1,250"], [inspection], facts))
    assert not page.locator("#turner").is_visible()
    assert 'keep_checkpoints = "doublings"' in page.locator("#learned").inner_text()


def test_both_languages_have_the_same_words(learned: Any) -> None:
    keys = learned.evaluate("[Object.keys(WORDS.en), Object.keys(WORDS.zh)]")
    assert set(keys[0]) == set(keys[1])
    script = (
        "(chosen) => Object.entries(WORDS[chosen]).sort()"
        ".map(([key, said]) => [key, [...said.matchAll(/\\{\\w+\\}/g)].map(String).sort()])"
    )
    assert learned.evaluate(script, "en") == learned.evaluate(script, "zh")
    learned.locator('input[name="language"][value="zh"]').check()
    assert learned.locator("#turner label").inner_text() == "训练步数"
    assert learned.locator("#learned h2").inner_text() == "它是怎样学会的"


def test_sentences_are_chosen_by_name(
    open_page: Any, steps: list[TranslationInspection]
) -> None:
    other = replace(steps[0], text="Der Tee ist heiß .")
    names = [steps[2].text, other.text]
    page = open_page(Several("sentences", names, [steps[2], other]))
    labels = page.locator("#turner label")
    assert labels.all_inner_texts() == names
    labels.nth(1).click()
    assert page.locator("#texts dd").first.inner_text() == other.text
    assert page.locator("#turner input:checked").get_attribute("value") == "1"
    assert page.locator("#learned").count() == page.locator("#compared").count() == 0


def test_two_models_stand_beside_each_other(
    open_page: Any, task: TrainableTranslation, inspection: TranslationInspection
) -> None:
    young = with_scale(task, 0.6)
    found = compare_models([task, young], ["runs/old", "runs/young/"], inspection.text)
    first, second, forced = found.inspections
    assert isinstance(first, TranslationInspection)
    assert isinstance(second, TranslationInspection)
    assert isinstance(forced, TranslationInspection)
    page = open_page(found)
    names = ["old", "young", "young, made to write what old wrote"]
    assert page.locator("#turner label").all_inner_texts() == names
    prose = page.locator("#compared-prose").inner_text()
    if first.translation == second.translation:  # bytes that make no letter
        assert f"Both write “{first.translation}”, in different tokens" in prose
    else:
        assert f"old writes “{first.translation}”" in prose
        assert f"young writes “{second.translation}”" in prose
    lines = page.locator(".compared-line")
    kept = [
        lines.nth(side).locator(".said:not(.only)").all_inner_texts() for side in (0, 1)
    ]
    assert kept[0] == kept[1]
    assert lines.locator(".only").count() > 0
    page.evaluate("go({ step: 1 })")
    read = page.locator("#compared-likely-cell").get_attribute("aria-label")
    assert read.endswith(f"old: {first.chosen[1].probability:.3f}")
    page.locator("#compared-likely").press("ArrowDown")
    read = page.locator("#compared-likely-cell").get_attribute("aria-label")
    assert read.endswith(f"young: {forced.chosen[1].probability:.3f}")
    said = page.locator("#compared-loom-0-cell").get_attribute("aria-label")
    is_written = page.evaluate(
        """() => { const { ids } = whole.inspections[0].lens, { shape, values } = arrayOf(ids);
        const last = values[((shape[0] - 1) * shape[1] + place.step) * shape[2]];
        return last === whole.inspections[0].target.ids[place.step]; }"""
    )
    assert (" has " in said) != is_written  # what it has is not said twice
    page.evaluate("go({ kind: 'cross', layer: 2, head: 1, key: 3 })")
    difference = float(first.cross[2, 1, 1, 3] - forced.cross[2, 1, 1, 3])
    said = page.locator("#compared-map-said").inner_text()
    sign = "−" if difference < 0 else "+"
    assert said.endswith(f"old − young = {sign}{abs(difference):.3f}")


def test_models_of_other_vocabularies_are_not_compared_token_by_token(
    open_page: Any, steps: list[TranslationInspection]
) -> None:
    facts = {"pair": None}
    page = open_page(Several("models", ["a", "b"], [steps[2], steps[0]], facts))
    assert "into different tokens" in page.locator("#compared-prose").inner_text()
    assert page.locator("#compared-likely").count() == 0
    page.locator("#turner label").nth(1).click()
    assert tints(page) == tints_of(steps[0])


def test_eight_steps_of_the_demo_fit_in_half_a_megabyte(tmp_path: Path) -> None:
    text = "My sister is drinking tea in the kitchen."
    task = load_task(Path(weft.__file__).parent / "demo")
    final = inspect_text(task, text)
    assert isinstance(final, TranslationInspection)
    assert len(final.tgt_ids) > 10
    # other texts stand for other steps, whose numbers are others too
    who = ("brother", "mother", "father", "friend", "uncle", "aunt", "teacher")
    earlier = [inspect_text(task, text.replace("sister", one)) for one in who]
    each = [*earlier, final]
    facts = {**FACTS, "steps": [*range(8)], "finished": 7, "own": [text] * 8}
    names = [str(step) for step in range(8)]
    found = Several("checkpoints", names, each, facts, (), LEFT_OUT, 7)
    write_report(found, tmp_path / "page.html")
    alone = tmp_path / "alone.html"
    write_report(final, alone)
    size = (tmp_path / "page.html").stat().st_size
    assert alone.stat().st_size + 100_000 < size < 500_000
