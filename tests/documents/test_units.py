"""Units of a memory without their markup, as documents have their segments; and with it, where the
document has the same.
"""

from pathlib import Path

import pytest

from weft.data.memory import Memory, read_memory
from weft.documents.document import Doubt, Translated
from weft.documents.driver import mended_segment, translate_document
from weft.documents.formats.programs.restructured import read_restructured
from weft.documents.formats.text.messages import read_message
from weft.documents.formats.web.html import read_html
from weft.documents.kept import read_by
from weft.documents.standing import as_it_stood
from weft.documents.units import parts_for, words_of_unit

FORMS = ("``a",)


def test_markup_is_taken_out_on_both_sides() -> None:
    for source, target, expected in (
        ("Hello {0}!", "Hallo {0}!", ("Hello!", "Hallo!")),
        ("Click <b>here</b>", "<b>Hier</b> klicken", ("Click here", "Hier klicken")),
        ("See {0} the cats", "看{0}貓 {1} 狗", ("See the cats", "看貓 狗")),
        ("Tom &amp; Ann", "Tom &amp; Anna", ("Tom & Ann", "Tom & Anna")),
        ("A *red* door", "Eine *rote* Tür", ("A red door", "Eine rote Tür")),
        ("See :ref:`p <x>`.", "Siehe :ref:`q <x>`.", ("See p.", "Siehe q.")),
    ):
        parts = words_of_unit(source, target)
        assert expected in [(part.source, part.target) for part in parts], source
        (part,) = [part for part in parts if part.source == expected[0]]
        assert (part.raw_source, part.raw_target) == (source, target)


def test_what_a_model_reads_stays_in_the_words() -> None:
    source = "Use *the* ``x`` now"
    target = "Nimm *das* ``x`` jetzt"
    for forms, expected in (
        ((), ("Use the now", "Nimm das jetzt")),
        (FORMS, ("Use the ``x`` now", "Nimm das ``x`` jetzt")),
    ):
        parts = parts_for(forms)(source, target)
        assert expected in [(part.source, part.target) for part in parts]
        assert {(part.raw_source, part.raw_target) for part in parts} == {
            (source, target)
        }
    # several models of a pair know different forms
    both = parts_for((), FORMS)(source, target)
    assert {"Use the now", "Use the ``x`` now"} <= {part.source for part in both}
    # a unit that is its own text says still how it stands
    parts = parts_for(FORMS)("Use ``x``", "Nimm ``x``")
    assert ("Use ``x``", "Nimm ``x``") in [
        (part.source, part.raw_target) for part in parts
    ]


def test_what_has_none_or_does_not_go_together_is_left_out() -> None:
    assert words_of_unit("Plain text.", "Klartext.") == []
    assert words_of_unit("{0}", "{0}") == []
    assert words_of_unit("Hello {0}", "{0}") == []


@pytest.mark.parametrize(
    ("read", "source", "target", "kept"),
    [
        (read_message, "Hi {0} and {1}!", "{1} und {0}: hallo!", True),
        (read_message, "Hi {0} and {0}!", "{0} und {0}: hallo!", True),
        (read_html, "A <b>cat</b>", "Eine <b>Katze</b>", True),
        (read_restructured, "In :ref:`this`, {0}", "{0} in :ref:`this`", True),
        # a placeholder less, one more, another one
        (read_message, "Hi {0} and {1}!", "{1}: hallo!", False),
        (read_message, "Hi {0}!", "{0}, {1}: hallo!", False),
        (read_message, "Hi {0}!", "{1}: hallo!", False),
        # without markup it is written as any text
        (read_message, "A cat", "Eine Katze", False),
    ],
)
def test_a_target_stands_as_it_stood_where_it_has_the_same_markup(
    read, source: str, target: str, kept: bool
) -> None:  # type: ignore[no-untyped-def]
    (segment,) = read(source).segments
    found = as_it_stood(segment, {source: target})
    assert (found and found.text) == (target if kept else None)


def test_a_target_stands_as_it_stood_with_what_the_model_reads() -> None:
    source = "Use ``x``"
    (segment,) = read_by(read_restructured(source), FORMS).segments
    assert segment.text == source
    for target, kept in (
        ("``x`` nimm", True),
        ("``y`` nimm", False),
        ("nimm", False),
        ("*nimm* ``x``", False),
    ):
        found = as_it_stood(segment, {source: target})
        assert (found and found.text) == (target if kept else None)


def test_a_document_takes_the_target_with_its_markup() -> None:
    document = read_message("Hi {0} and {1}!")

    def translate(texts: list[str]) -> list[Translated]:
        stands = {"Hi {0} and {1}!": "{1} und {0}: hallo!"}
        return [Translated("hallo", stands=stands) for _ in texts]

    assert translate_document(document, translate) == "{1} und {0}: hallo!"


MARKED_TMX = """<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>Press <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> to \
keep it.</seg></tuv><tuv xml:lang="de"><seg>Auf <bpt i="1">&lt;b&gt;</bpt>Speichern\
<ept i="1">&lt;/b&gt;</ept> klicken, um es zu behalten.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Sell <bpt i="1">x</bpt>cats<ept i="1">y</ept> and \
<bpt i="2">x</bpt>dogs<ept i="2">y</ept>.</seg></tuv><tuv xml:lang="de"><seg><bpt i="2">x</bpt>\
Hunde<ept i="2">y</ept> und <bpt i="1">x</bpt>Katzen<ept i="1">y</ept> verkaufen.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Run <ph x="1">`a b`</ph> to begin.</seg></tuv>\
<tuv xml:lang="de"><seg>Beginnen mit <ph x="1">`a b`</ph>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>It is in the <hi>hall</hi>, there.</seg></tuv>\
<tuv xml:lang="de"><seg>Es ist dort im <hi>Saal</hi>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>All <it pos="begin">q</it> 12 of them.</seg></tuv>\
<tuv xml:lang="de"><seg><it pos="begin">q</it>Alle 12 davon.</seg></tuv></tu>
</body></tmx>"""

MARKED_XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>Press <g id="1">Save</g> to keep it.</source>
<target>Auf <g id="1">Speichern</g> klicken, um es zu behalten.</target></trans-unit>
<trans-unit id="2"><source>Sell <g id="1">cats</g> and <g id="2">dogs</g>.</source>
<target><g id="2">Hunde</g> und <g id="1">Katzen</g> verkaufen.</target></trans-unit>
<trans-unit id="3"><source>Run <x id="4"/> to begin.</source>
<target>Beginnen mit <x id="4"/>.</target></trans-unit>
<trans-unit id="4"><source>It is in the <bx id="1"/>hall<ex id="1"/>, there.</source>
<target>Es ist dort im <bx id="1"/>Saal<ex id="1"/>.</target></trans-unit>
<trans-unit id="5"><source>All <ph id="1"/> 12 of them.</source>
<target><ph id="1"/>Alle 12 davon.</target></trans-unit>
</body></file></xliff>"""

PAIRS = (
    (
        "Press <b>Save</b> to keep it.",
        "Auf <b>Speichern</b> klicken, um es zu behalten.",
    ),
    ("Sell <i>cats</i> and <a>dogs</a>.", "<a>Hunde</a> und <i>Katzen</i> verkaufen."),
    ("Run <code>a b</code> to begin.", "Beginnen mit <code>a b</code>."),
    ("It is in the <u>hall</u>, there.", "Es ist dort im <u>Saal</u>."),
    ("All <img> 12 of them.", "<img>Alle 12 davon."),
)


def stood_in(memory: Memory, text: str, read=read_html) -> str | None:  # type: ignore[no-untyped-def]
    """Return what a document of one segment becomes by the units that are its text."""
    (segment,) = read(text).segments
    match = memory.exact(segment.text) or memory.repaired(segment.text)
    assert match is not None, segment.text
    stands = dict(reversed(memory.in_files(match.source)))
    found = as_it_stood(segment, stands)
    return found and found.text


@pytest.mark.parametrize(
    ("name", "content"), [("old.tmx", MARKED_TMX), ("old.xlf", MARKED_XLIFF)]
)
def test_tags_go_where_the_codes_of_a_unit_are_whatever_is_written(
    tmp_path: Path, name: str, content: str
) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    memory = read_memory([str(path)], "en", "de", parts_for(()))
    for source, target in PAIRS:
        assert stood_in(memory, source) == target
    assert stood_in(memory, "All <img> 34 of them.") == "<img>Alle 34 davon."
    # codes at other words, or of another kind
    assert stood_in(memory, "Press Save <b>to keep it</b>.") is None
    assert stood_in(memory, "Press <b>Save <br></b> to keep it.") is None
    # the other way round
    turned = read_memory([str(path)], "de", "en", parts_for(()))
    assert stood_in(turned, PAIRS[0][1]) == PAIRS[0][0]
    # nothing but units with codes has parts, and training reads the same as before
    assert memory.num_whole == len(PAIRS)
    assert memory.unit(len(memory) - 1).target == "Alle 12 davon."


def test_tags_of_a_unit_of_text_may_be_written_in_another_way(tmp_path: Path) -> None:
    path = tmp_path / "old.tsv"
    path.write_text(
        "Press *Save* or {0}\t{0} oder *Sichern* & los\n"
        'Press <b>Save</b> or {0}!\t"{0}" oder <b>Sichern</b> & los!\n',
        "utf-8",
    )
    memory = read_memory([str(path)], "en", "de", parts_for((), ("{0",)))
    html = stood_in(memory, "Press <i class=k>Save</i> or {0}")
    assert html == "{0} oder <i class=k>Sichern</i> &amp; los"
    # what is read as kept, too
    read = lambda text: read_by(read_html(text), ("{0",))  # noqa: E731
    kept = stood_in(memory, "Press <i>Save</i> or {0}", read)
    assert kept == "{0} oder <i>Sichern</i> &amp; los"


def test_tags_of_one_unit_alike_are_told_apart_by_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "old.tsv"
    path.write_text("A <b>x</b> or <b>y</b>\tEin <b>y</b> oder <b>x</b>\n", "utf-8")
    memory = read_memory([str(path)], "en", "de", parts_for(()))
    assert stood_in(memory, "A <i>x</i> or <i>y</i>") == "Ein <i>y</i> oder <i>x</i>"
    assert stood_in(memory, "A <i>x</i> or <a>y</a>") is None


def test_what_the_alignment_placed_for_a_unit_is_told() -> None:
    (segment,) = read_html("Press <b>Save</b> now").segments
    target = "Jetzt Sichern drücken"
    remark = "Tags of a unit of the memory were placed by the alignment."
    for stands, said in (
        ({"Press <i>Save</i> now": "Jetzt <i>Sichern</i> drücken"}, ()),
        ({"<i>Press</i> Save now": "Jetzt Sichern <i>drücken</i>"}, (remark,)),
        ({}, (remark,)),
    ):
        taken = Translated(target, doubt=Doubt(taken="exact"), stands=stands)
        assert mended_segment(segment, taken).doubt.remarks == said
    assert mended_segment(segment, Translated(target)).doubt.remarks == ()


def test_a_number_of_a_unit_that_stands_is_put_right() -> None:
    (segment,) = read_html("It is <b>at 800</b> now").segments
    stands = {"It is <i>at 800</i> now": "Es ist jetzt <i>um 900</i>"}
    taken = Translated("Es ist jetzt um 900", doubt=Doubt(taken="exact"), stands=stands)
    mended = mended_segment(segment, taken)
    assert "800" in mended.text()
    assert "900" not in mended.text()
    assert mended.numbers.put_back == ("800",)


def test_a_unit_with_another_number_is_named_and_not_exact() -> None:
    for source, target, taken, where in (
        ("It costs 800 now", "Es kostet jetzt 900", "repaired", "old.tmx:25"),
        ("It costs 900 now", "Es kostet jetzt 900", "exact", ""),
    ):
        (segment,) = read_message(source).segments
        doubt = Doubt(taken="exact", where="old.tmx:25")
        found = mended_segment(segment, Translated(target, doubt=doubt)).doubt
        assert found.taken == taken
        said = [remark for remark in found.remarks if "old.tmx:25" in remark]
        assert bool(said) == bool(where)
    plain = mended_segment(segment, Translated("Es kostet jetzt 800")).doubt
    assert plain.taken == ""
    assert not any("memory" in remark for remark in plain.remarks)
