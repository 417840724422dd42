"""The page of a review: everything that is doubtful is marked, nothing of the text acts in it, and
in a real browser it fits and filters.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weft.errors import UsageError
from weft.inspection.review import Review, Reviewed, refuse_review

HOSTILE = "</style><script>window.hacked=1</script><img src=x onerror=hack()>{{rows}}"
SOURCE = "The zorb and the red hat fell down."
TRANSLATION = "Der Ball fiel um."


def word(text: str, quality: float | None, *sources: str) -> dict[str, Any]:
    start = TRANSLATION.index(text)
    found = {"text": text, "start": start, "end": start + len(text)}
    found["probability"] = 0.9
    found["sources"] = [{"text": source} for source in sources]
    return found if quality is None else found | {"quality": quality}


def at(text: str) -> dict[str, Any]:
    start = SOURCE.index(text)
    return {"text": text, "start": start, "end": start + len(text)}


DOUBTFUL = Reviewed(
    "line 3",
    SOURCE,
    TRANSLATION,
    0.456,
    ["omission: nothing seems to be written from: red hat"],
    [
        word("Der", 0.9, "The"),
        word("Ball", 0.12, "zorb"),
        word("fiel", 0.4, "fell"),
        word("um", 0.49),
    ],
    [at("red"), at("hat")],
    ["zorb", "hat"],
    [{"start": 4, "end": 8, "status": "missing", "wanted": ["Kugel", "Zorb"]}],
    [
        {
            "taken": False,
            "score": 0.81,
            "where": "a.tmx:3",
            "source": "The <hat>",
            "target": "Der Hut",
        }
    ],
)
SURE = Reviewed("line 4", "Yes.", "Ja.", 0.9)


def review(
    *rows: Reviewed, path: Path = Path("r.html"), learned: bool = True
) -> Review:
    page = Review(path, "brief.txt", ("en", "de"), learned)
    for row in rows:
        page.add(row)
    return page


def test_doubtful_words_are_marked_with_the_reason() -> None:
    html = review(DOUBTFUL, SURE).page()
    assert '<mark class="very" title="12%; from: zorb">Ball</mark>' in html
    assert '<mark class="doubtful" title="40%; from: fell">fiel</mark>' in html
    assert 'title="49%; from no word of the source">um</mark>' in html
    assert "Der <mark" in html  # what is sure is not marked
    assert "doubtful: Ball 12%, fiel 40%, um 49%" in html
    assert "<b>3 of the 4 words that the model chose itself are doubtful.</b>" in html
    assert '<span class="share">46%</span>' in html


def test_the_source_shows_what_was_left_out_and_what_is_unknown() -> None:
    html = review(DOUBTFUL).page()
    assert ">red hat</mark>" in html  # one run, which hides what is in it
    assert html.count('class="omitted" title=') == 1
    assert html.count('<mark class="unknown" title="never seen in training">') == 1
    assert ">zorb</mark>" in html
    assert "term: missing" not in html  # it stands in what is marked already
    assert "memory, near, 81% (a.tmx:3): The &lt;hat&gt; → Der Hut" in html


def test_a_term_is_marked_and_an_unknown_word_only_where_it_is_whole() -> None:
    term = {"start": 0, "end": 3, "status": "used", "wanted": ["die", "Kunst"]}
    row = Reviewed("1", "art of a party", "x", None, (), (), (), ["art"], [term])
    html = review(row).page()
    assert html.count('class="unknown" title') == 1
    assert "p<mark" not in html
    row = Reviewed("1", "art of a party", "x", None, (), (), (), (), [term])
    html = review(row).page()
    assert '<mark class="term" title="term: used; die or Kunst">art</mark>' in html


def test_rows_are_counted_for_the_filter() -> None:
    html = review(DOUBTFUL, SURE, Reviewed("5", "a", "b", None, ["cut"])).page()
    assert re.findall(r"<label[^>]*>[^<]*<b>(\d+)</b>", html) == ["3", "1", "2"]
    assert re.findall(r'<article class="([^"]*)"', html) == [
        "row doubted wordy",
        "row",
        "row doubted",
    ]


def test_without_learned_quality_it_says_what_the_numbers_are() -> None:
    plain = word("Der", None, "The") | {"probability": 0.3}
    html = review(Reviewed("1", SOURCE, TRANSLATION, None, (), [plain]), learned=False)
    assert "plain probability" in html.page()
    assert '<mark class="doubtful" title="30%; from: The">Der</mark>' in html.page()


def test_the_legend_has_omissions_only_where_they_can_be_told() -> None:
    said = "perhaps left out"
    assert said in review(SURE).page()
    assert said not in review(SURE, learned=False).page()


def test_marks_of_punctuation_are_not_listed_among_doubtful_words() -> None:
    row = replace(DOUBTFUL, words=[word("Ball", 0.12), word(".", 0.2)])
    html = review(row).page()
    assert ">doubtful: Ball 12%<" in html
    assert '<mark class="very" title="20%; from no word of the source">.</mark>' in html


def test_nothing_of_a_text_acts_in_it() -> None:
    bad = word("Der", 0.1) | {"text": HOSTILE, "sources": [{"text": HOSTILE}]}
    memory = {**DOUBTFUL.memory[0], "source": HOSTILE, "where": HOSTILE}
    term = {"start": 0, "end": 3, "status": HOSTILE, "wanted": [HOSTILE]}
    row = Reviewed(
        HOSTILE, HOSTILE, HOSTILE, 0.1, [HOSTILE], [bad], (), ["img"], [term], [memory]
    )
    page = Review(Path("r.html"), HOSTILE, ('"><b>', "de"), True)
    page.add(row)
    html = page.page()
    assert not re.search(r"https?:|@import|url\(|<script|<img|<link|\bstyle=", html)
    assert "&lt;script&gt;" in html
    assert html.count("</style>") == 1
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'content="{rules}"' in html


def test_places_beyond_the_text_are_left_out() -> None:
    bad = {**word("Der", 0.1), "start": 2, "end": 99}
    html = review(Reviewed("1", "a", "Der", None, (), [bad])).page()
    assert ">Der</p>" in html


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.html"):
        refuse_review(tmp_path / "a.txt", [])
    with pytest.raises(UsageError, match="another file of this command"):
        refuse_review(tmp_path / "a.html", [None, tmp_path / "a.html"])


@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser_it_fits_and_filters(
    browser: Any, watch: Callable[..., None], tmp_path: Path, width: int
) -> None:
    long = Reviewed("line 5", "x" * 900, "y" * 900, None, ["cut"])
    hostile = Reviewed("line 6", HOSTILE, HOSTILE)
    page = review(DOUBTFUL, SURE, long, hostile, path=tmp_path / "r.html")
    page.write()
    address = (tmp_path / "r.html").as_uri()
    colours = []
    for scheme in ("light", "dark"):
        opened = browser.new_page(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        watch(opened, address)
        opened.goto(address)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.evaluate("window.hacked") is None
        shown = opened.locator(".row:visible")
        assert shown.count() == 4
        opened.get_by_label("With a doubtful word").check()
        assert shown.count() == 1
        opened.get_by_label("With a doubt about the whole").check()
        assert shown.count() == 2
        colours.append(
            opened.evaluate(
                "getComputedStyle(document.querySelector('mark.very')).backgroundColor"
            )
        )
        opened.close()
    assert colours[0] != colours[1]


def test_what_is_taken_with_other_numbers_is_no_quotation() -> None:
    use = {
        "taken": True,
        "kind": "repaired",
        "score": 1.0,
        "where": "a.tmx:3",
        "source": "in 30 days",
        "target": "in 45 Tagen",
    }
    row = Reviewed("line 1", "in 45 days", "in 45 Tagen", memory=[use])
    html = review(row).page()
    assert "memory, taken with the numbers of the text (a.tmx:3): in 30 days" in html
