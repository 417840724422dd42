"""The page of the data check: one file, nothing of the text acts in it, and in a real browser it
fits any width.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weft.data.check.finding import MOST_PLACES, Example, Finding
from weft.data.checkup import Checkup, check_up
from weft.data.texts import Sources
from weft.data.train_text import TrainText
from weft.errors import UsageError
from weft.inspection.check_page import page, write_checkup
from weft.recipes.file import load_recipe

HOSTILE = "</style><script>window.hacked=1</script><img src=x onerror=hack()>{{parts}}"


@pytest.fixture(scope="module")
def checkup(tmp_path_factory: pytest.TempPathFactory) -> Checkup:
    """Of text in which some lines are hostile to a page, and one is of a kilobyte without a
    space.
    """
    path = tmp_path_factory.mktemp("text") / "p.en-de.tsv"
    rows = [(f"{HOSTILE} {i % 3}", f"{HOSTILE} {i % 3}") for i in range(9)] + [
        ("x" * 1000, "y" * 2500)
    ]
    path.write_bytes("".join(f"{a}\t{b}\n" for a, b in rows).encode())
    return check_up(load_recipe(None), Sources((TrainText(str(path)),), test=str(path)))


def test_it_holds_all_that_was_found(checkup: Checkup) -> None:
    html = page(checkup)
    assert checkup.is_fatal
    assert html.count("<article") == len(checkup.findings) >= 4
    assert all(f"<code>{finding.code}</code>" in html for finding in checkup.findings)
    assert "This text would spoil training." in html
    assert "10 rows" in html
    assert all(numbers["signature"] in html for numbers in checkup.parts.values())


def test_it_lists_every_line_of_a_finding() -> None:
    places = ("a.tsv:3", "a.tsv:7", "a.tsv:8", "a.tsv:9", "b.tmx: unit 2")
    one = Finding(
        "note", "markup", "m", "r", 5, (2, 6, 7, 8, 10), places=places, part="train"
    )
    html = page(Checkup("translation", findings=[one]))
    assert "<summary>5 lines</summary>" in html
    assert "<p>a.tsv: 3, 7 to 9</p><p>b.tmx (units): 2</p>" in html
    many = replace(one, places=("a.tsv:1",) * MOST_PLACES)
    assert "<summary>the first 5,000 lines" in page(
        Checkup("translation", findings=[many])
    )


def test_what_an_example_is_about_is_marked() -> None:
    example = Example("a.tsv:1", "a <br> & b", "<br>", ((2, 6), (9, 10)))
    one = Finding("note", "markup", "m", "r", 1, (0,), (example,))
    html = page(Checkup("translation", findings=[one]))
    assert "<dd>a <mark>&lt;br&gt;</mark> &amp; <mark>b</mark></dd>" in html


def test_sound_text_is_said_to_be_sound() -> None:
    html = page(Checkup("translation"))
    assert "Ready for training" in html
    assert "Nothing was found." in html


def test_it_refers_to_nothing_outside_and_runs_nothing(checkup: Checkup) -> None:
    html = page(checkup)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert policy[1] == rules
    assert not re.search(r"https?:|@import|url\(|<script|<img|<link|\bstyle=", html)


def test_text_that_looks_like_a_part_of_the_page_is_text(checkup: Checkup) -> None:
    html = re.sub("</?mark>", "", page(checkup))
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in html
    assert "{{parts}}" in html
    assert html.count("<h2>Training text</h2>") == 1


@pytest.mark.parametrize("name", ["r.json", "R.JSON"])
def test_as_data(checkup: Checkup, tmp_path: Path, name: str) -> None:
    write_checkup(checkup, tmp_path / name)
    assert json.loads((tmp_path / name).read_bytes()) == json.loads(
        json.dumps(checkup.to_json())
    )


def test_another_suffix_is_refused(checkup: Checkup, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.html .*\.json"):
        write_checkup(checkup, tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser_it_fits_and_asks_for_nothing(
    browser: Any,
    watch: Callable[..., None],
    checkup: Checkup,
    tmp_path: Path,
    width: int,
) -> None:
    write_checkup(checkup, tmp_path / "page.html")
    address, colours = (tmp_path / "page.html").as_uri(), []
    for scheme in ("light", "dark"):
        opened = browser.new_page(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        watch(opened, address)
        opened.goto(address)
        widths = opened.evaluate(
            "[document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        assert max(widths) <= width
        assert opened.evaluate("window.hacked") is None
        assert opened.locator("article.fatal .severity").first.inner_text() == "Fatal"
        bars = opened.locator("rect").evaluate_all(
            "all => all.map(r => r.getBoundingClientRect().width)"
        )
        assert max(bars) > 20
        heights = opened.locator("td:last-child").evaluate_all(
            "all => all.map(t => t.clientHeight)"
        )
        assert max(heights) < 40, "a number stands on one line"
        colours.append(
            opened.evaluate("getComputedStyle(document.body).backgroundColor")
        )
        opened.close()
    assert colours == ["rgb(251, 250, 247)", "rgb(20, 23, 28)"]
