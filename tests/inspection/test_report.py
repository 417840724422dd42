"""The written page depends on nothing else, and no text can act in it."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from weft.errors import FolderError, UsageError
from weft.inspection.assets import asset, bare
from weft.inspection.packing import packed
from weft.inspection.report import write_report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> <!-- & \u2028\u2029 {{style}} ]]>"


@pytest.fixture
def page(inspection, tmp_path):
    write_report(inspection, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def data_of(page: str) -> str:
    return unpacked_text(page, "data")


def unpacked_text(page: str, name: str) -> str:
    (block,) = re.findall(
        rf'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL
    )
    return zlib.decompress(base64.b64decode(block), -zlib.MAX_WBITS).decode()


def program_of(page: str) -> tuple[str, str]:
    """The style and the script that the page unpacks."""
    style, script = unpacked_text(page, "packed").split("\0")
    return style, script


def digest_of(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def test_page_refers_to_nothing_outside(page):
    # what is packed may spell anything
    shell = re.sub(r'(<script type="[^>]*>).*?</script>', r"\1</script>", page)
    content = "\n".join([shell, *program_of(page)])
    # a namespace is a name
    content = content.replace("http://www.w3.org/2000/svg", "")
    assert len(content) > 50_000
    assert not re.search(
        r"https?:|//[a-z]|\bsrc=|\bhref=|@import|url\(|fetch\(|XMLHttp", content
    )


def test_comments_are_left_out_and_strings_are_kept():
    code = """/* of a
       file */
    let far = 3; // a page's width
    // of a line
    const where = "a, // b"; // said "so"
    f({ // of a brace
    });
    """
    kept = ["let far = 3;", 'const where = "a, // b"; // said "so"', "f({", "});"]
    assert bare(code).splitlines() == kept


def test_a_page_has_no_section_of_what_its_data_do_not_have(
    inspection, recurrent, tmp_path
):
    found = {}
    for name, one in (("transformer", inspection), ("recurrent", recurrent)):
        write_report(one, tmp_path / "page.html")
        found[name] = program_of((tmp_path / "page.html").read_text("utf-8"))[1]
    for section in ("states", "reasons", "lanes", "alignment", "loom"):
        spoken = f'"{section}-title":'
        assert (spoken in found["recurrent"]) == (section != "reasons")
        assert (spoken in found["transformer"]) == (
            section not in ("states", "reasons")
        )


def test_page_may_run_only_its_own_style_and_script(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[
        1
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    style, script = program_of(page)
    (loader,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert rules["style-src"] == digest_of(style)
    assert rules["script-src"].split() == [digest_of(loader), digest_of(script)]
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert "{{" not in page


def test_page_holds_the_data(page, inspection):
    assert json.loads(data_of(page)) == packed(inspection.to_data())


def test_hostile_text_stays_text(inspection, tmp_path):
    hostile = replace(
        inspection,
        text=HOSTILE,
        translation=HOSTILE,
        src_pieces=[HOSTILE] * len(inspection.src_pieces),
        tgt_pieces=[HOSTILE] * len(inspection.tgt_pieces),
    )
    write_report(hostile, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script") == 3
    assert not re.search("[<>&\u2028\u2029]", data_of(page))
    assert json.loads(data_of(page))["source"]["pieces"][0] == HOSTILE


@pytest.mark.parametrize("name", ["data.json", "DATA.JSON"])
def test_json_round_trip(inspection, tmp_path, name):
    write_report(inspection, tmp_path / name)
    assert json.loads((tmp_path / name).read_bytes()) == inspection.to_json()


@pytest.mark.parametrize("name", ["page.png", "page", "page.html.gz", ".html"])
def test_other_formats_are_refused_and_nothing_is_written(inspection, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.html .*\.json"):
        write_report(inspection, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_one_line(inspection, tmp_path):
    with pytest.raises(FolderError, match="cannot be written"):
        write_report(inspection, tmp_path / "nowhere" / "page.html")


def test_pages_that_are_files_begin_alike() -> None:
    folder = Path(str(resources.files("weft"))) / "page"
    head = (folder / "head.html").read_text("utf-8")
    assert "Content-Security-Policy" in head
    pages = [path.relative_to(folder).as_posix() for path in folder.rglob("*.html")]
    alone = sorted(set(pages) - {"head.html", "serve/index.html"})
    assert alone == ["check.html", "inspect.html", "review.html", "web/index.html"]
    for name in alone:
        page = asset(name)
        assert page.startswith(f"{head}<")
        assert page.count("<!doctype") == page.count("{{policy}}") == 1
