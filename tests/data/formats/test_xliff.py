"""XLIFF of both versions as training text: what is translated, with its line and without codes."""

import time
from pathlib import Path

import pytest

from weft.data.corpus import ParallelText, read_pairs
from weft.data.formats.row import LANGUAGE_MISSING
from weft.data.formats.xliff import MACHINE_MADE, NOT_TRANSLATED, TO_BE_REVIEWED
from weft.data.kind import guess_task
from weft.errors import DataError

FIRST = """\
<?xml version="1.0"?>
<!DOCTYPE xliff PUBLIC "-//XLIFF//DTD XLIFF//EN" "http://127.0.0.1:9/xliff.dtd">
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" datatype="html" source-language="en-US" target-language="de"><body>
{}
</body></file></xliff>
"""
SECOND = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">
<file id="f"><unit id="1"><originalData><data id="d">x</data></originalData>
{}
</unit></file></xliff>
"""


def read(tmp_path: Path, content: str, *languages: str) -> ParallelText:
    path = tmp_path / "a.xlf"
    path.write_text(content, "utf-8")
    return read_pairs(str(path), *languages)


def pairs_of(text: ParallelText) -> list[tuple[str, str]]:
    return list(zip(text.src, text.tgt, strict=True))


def unit(source: str, target: str = "<target>T</target>", more: str = "") -> str:
    return f"<trans-unit id='1'{more}><source>{source}</source>{target}</trans-unit>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("plain &amp; 1 &lt; 2", "plain & 1 < 2"),
        ("Press <g id='1'>OK</g> now", "Press OK now"),
        ("un<g id='1'>real</g>", "unreal"),
        ("line<x id='1'/>break", "line break"),
        ("is <x id='1' equiv-text='{0}'/> here", "is {0} here"),
        ("is <ph id='1'>%s</ph> here", "is %s here"),
        ("<bpt id='1'>&lt;b></bpt>a<ept id='1'>&lt;/b></ept>b", "ab"),
        ("a<ph id='1'>x<sub>foot<g id='2'>note</g></sub></ph>", "a"),
        ("a <mrk mtype='term'>word</mrk>", "a word"),
        ("a<bx id='1'/>b<ex id='1'/>c", "abc"),
    ],
)
def test_codes_of_the_first_version(tmp_path: Path, inside: str, text: str) -> None:
    found = read(tmp_path, FIRST.format(unit(inside)))
    assert pairs_of(found) == [(text, "T")]
    is_kept = "%s" in inside or "{0}" in inside or "mrk" in inside
    assert bool(found.coded) is ("<" in inside and not is_kept)
    assert found.lines == [5]
    assert (found.src_lang, found.tgt_lang) == ("en-US", "de")


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("a <pc id='1'>b</pc>c", "a bc"),
        ("is <ph id='1' equiv='%d'/>.", "is %d."),
        ("is <ph id='1' disp='{name}'/>.", "is {name}."),
        ("a<ph id='1' dataRef='d'/>b", "a b"),
        ("a<sc id='1'/>b<ec startRef='1'/>", "ab"),
        ("a <mrk id='m' type='term'>b</mrk>", "a b"),
        ("a<cp hex='0001'/>b", "a b"),
    ],
)
def test_codes_of_the_second_version(tmp_path: Path, inside: str, text: str) -> None:
    segment = f"<segment><source>{inside}</source><target>T</target></segment>"
    content = SECOND.format(f"{segment}<ignorable><source> </source></ignorable>")
    assert pairs_of(read(tmp_path, content)) == [(text, "T")]


def test_what_is_not_translated_is_left_out_and_counted(tmp_path: Path) -> None:
    units = [
        unit("kept", "<target state='final'>gut</target>"),
        unit("a", "<target state='needs-translation'>x</target>"),
        unit("b", "<target state='new'>x</target>"),
        unit("c", "<target state='needs-review-l10n'>x</target>"),
        unit("d", "<target/>"),
        unit("e", ""),
        unit("f", more=" translate='no'"),
        f"<group translate='no'>{unit('g')}</group>",
        unit("h", "<target>H</target><alt-trans><source>i</source><target>I</target></alt-trans>"),
    ]  # fmt: skip
    found = read(tmp_path, FIRST.format("\n".join(units)))
    assert pairs_of(found) == [("kept", "gut"), ("h", "H")]
    assert found.lines == [5, 13]
    assert found.dropped == {TO_BE_REVIEWED: 3, NOT_TRANSLATED: 2}
    segments = "".join(
        f"<segment{state}><source>{n}</source><target>t</target></segment>\n"
        for n, state in enumerate(
            ["", " state='initial'", " state='translated'", " state='reviewed'"]
        )
    )
    found = read(tmp_path, SECOND.format(segments))
    assert found.src == ["0", "2", "3"]
    assert found.dropped == {TO_BE_REVIEWED: 1}


def test_segments_of_a_unit_are_pairs_where_both_sides_have_them(
    tmp_path: Path,
) -> None:
    def segments(*texts: str) -> str:
        return " ".join(
            f"<mrk mtype='seg' mid='{n}'>{text}</mrk>" for n, text in enumerate(texts)
        )

    divided = f"<seg-source>{segments('One.', '<g>Two</g>.')}</seg-source>"
    both = f"{divided}<target>{segments('Eins.', 'Zwei.')}</target>"
    lone = f"{divided}<target>{segments('Eins und zwei.')}</target>"
    content = FIRST.format(unit("One. Two.", both) + "\n" + unit("One. Two.", lone))
    assert pairs_of(read(tmp_path, content)) == [
        ("One.", "Eins."),
        ("Two.", "Zwei."),
        ("One. Two.", "Eins und zwei."),
    ]


def test_directions_and_languages(tmp_path: Path) -> None:
    content = FIRST.format(unit("one", "<target>eins</target>"))
    assert pairs_of(read(tmp_path, content, "de", "en")) == [("eins", "one")]
    assert pairs_of(read(tmp_path, content, "en")) == [("one", "eins")]
    assert guess_task(str(tmp_path / "a.xlf")) == "translation"
    second = content[content.index("<file") : content.index("</xliff>")]
    second = second.replace('"de"', '"fr"').replace("eins", "un")
    both = content.replace("</xliff>", f"{second}</xliff>")
    with pytest.raises(DataError, match="from en-US to de, en-US to fr"):
        read(tmp_path, both)
    found = read(tmp_path, both, "fr", "en")
    assert pairs_of(found) == [("un", "one")]
    assert found.dropped == {LANGUAGE_MISSING: 1}


def test_units_on_one_line_are_numbered(tmp_path: Path) -> None:
    found = read(tmp_path, FIRST.format(unit("a") + unit("b")))
    assert found.where(1) == f"{tmp_path / 'a.xlf'}: unit 2"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FIRST.format("<trans-unit>"), ":6: malformed XML"),
        ("<?xml version='1.0'?><xliff><!--", "malformed XML"),
        ('<!DOCTYPE xliff [<!ENTITY x "y">]><xliff/>', ":1: a document type with"),
        (FIRST.format(unit("&x;")), ":5: the entity &x;"),
        (FIRST.format("<group>" * 80), "nested deeper"),
        (FIRST.format(""), "no pair with text on both sides"),
    ],
)
def test_hostile_files_are_refused_with_their_line(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    assert said in str(caught.value)


def test_a_text_that_is_too_long_is_left_out_in_a_moment(tmp_path: Path) -> None:
    start = time.perf_counter()
    long = "<g>a</g>" * 200_000
    content = FIRST.format(f"{unit(long)}\n{unit('b')}")
    found = read(tmp_path, content)
    assert pairs_of(found) == [("b", "T")]
    assert time.perf_counter() - start < 7


def test_what_a_machine_wrote_is_left_out_until_a_person_approves(
    tmp_path: Path,
) -> None:
    by_machine = "state-qualifier='leveraged-mt'"
    units = [
        unit("a", f"<target state='translated' {by_machine}>A</target>"),
        unit("b", f"<target state='final' {by_machine}>B</target>"),
        unit("c", f"<target {by_machine}>C</target>", more=" approved='yes'"),
        unit("d", "<target state-qualifier='exact-match'>D</target>"),
        unit("e", "<target state-qualifier='mt-suggestion'>E</target>"),
    ]
    found = read(tmp_path, FIRST.format("\n".join(units)))
    assert pairs_of(found) == [("b", "B"), ("c", "C"), ("d", "D")]
    assert found.dropped == {MACHINE_MADE: 2}
