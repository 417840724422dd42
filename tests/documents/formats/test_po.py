"""Catalogues of gettext: what is untranslated is, all else stays as it is."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_po  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Doubt, Offer, Reading, Translated, Written
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.programs.po import (
    _entries,
    _string,
    _width_of_file,
    open_po,
)
from weft.documents.formats.programs.restructured import read_restructured, with_spaces
from weft.documents.formats.text.lines import lines_of
from weft.errors import UsageError

HEADER = r"""# A program.
#
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Language: \n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

"""
PO = (
    HEADER
    + r"""# by a translator
#. for translators
#: src/a.c:12
msgid "Open the file"
msgstr ""

#: src/a.c:14
msgctxt "menu"
msgid "Done"
msgstr "Fertig"

#, python-format
msgid "%(count)d of %s files"
msgstr ""

#, c-format
msgid "%d%% of %s done\n"
msgstr ""

#, fuzzy, c-format
#| msgid "One %s"
msgid "Two %s words"
msgstr "Ein %s"

#, c-format
msgid "%d file was found"
msgid_plural "%d files were found"
msgstr[0] ""
msgstr[1] ""

msgid ""
"A \"quoted\" word, and a longer text that does not fit into one line of this "
"file.\n"
"\n"
"- a second line\twith a tab\n"
msgstr ""

msgid "<b>Bold</b> &amp; <a href=\"u\">a link</a>"
msgstr ""

#~ msgid "Old"
#~ msgstr "Alt"
"""
)


def opened(text: str, target: str = ""):  # type: ignore[no-untyped-def]
    return open_po(text.encode(), Reading("a.po", target=target))


def written(text: str, rule: str, target: str = "") -> str:
    answer = RULES[rule]
    return translate_document(
        opened(text, target), lambda texts: list(map(answer, texts))
    ).decode()


def test_what_has_no_translation_is_a_segment() -> None:
    document = opened(PO)
    assert [segment.text for segment in document.segments] == [
        "Open the file",
        "of files",
        "of done",
        "Two words",
        "file was found",
        "files were found",
        'A "quoted" word, and a longer text that does not fit into one line of this file.',
        "a second line",
        "with a tab",
        "Bold & a link",
    ]
    assert document.place(0) == "line 13"


def test_messages_of_which_some_is_a_percent_sign() -> None:
    text = HEADER + '#, c-format\nmsgid "about 5%% off, %s"\nmsgstr ""\n'
    (segment,) = opened(text).segments
    assert segment.text.startswith("about 5% off")
    assert 'msgstr "ABOUT 5%% OFF, %s"' in written(text, "upper")


def test_only_translations_change() -> None:
    loud = written(PO, "upper", "pt-BR")
    assert diff_po(PO.encode(), loud.encode()) == []
    assert '"Language: pt_BR\\n"' in loud
    assert '\n#: src/a.c:12\nmsgid "Open the file"\nmsgstr "OPEN THE FILE"\n' in loud
    assert '#, c-format\nmsgid "Two %s words"\nmsgstr "TWO %s WORDS"\n' in loud
    assert 'msgstr "%d%% OF %s DONE\\n"' in loud
    assert 'msgstr[1] "%d FILES WERE FOUND"' in loud
    assert 'msgstr "<b>BOLD</b> &amp; <a href=\\"u\\">A LINK</a>"' in loud
    assert loud.endswith(PO[PO.index("#~") :])
    lines = PO.split("\n")
    assert [line for line in loud.split("\n") if line.startswith("msgid")] == [
        line for line in lines if line.startswith("msgid")
    ]
    wrapped = loud[loud.index('msgstr ""\n"A \\"QUOTED') :].split("\n")
    assert wrapped[1:5] == [
        r'"A \"QUOTED\" WORD, AND A LONGER TEXT THAT DOES NOT FIT INTO ONE LINE OF THIS "',
        r'"FILE.\n"',
        r'"\n"',
        r'"- A SECOND LINE\tWITH A TAB\n"',
    ]


def test_every_rule_keeps_what_is_not_a_translation() -> None:
    for rule in RULES:
        new = written(PO, rule)
        same = rule not in ("silent", "chinese")  # without words, or other line ends
        if same:
            assert diff_po(PO.encode(), new.encode()) == [], rule
    assert diff_po(PO.encode(), PO.replace("%s files", "%d files").encode()) != []
    wrong = written(PO, "upper").replace("%d FILES", "%s FILES")
    if shutil.which("msgfmt"):
        said = " ".join(diff_po(PO.encode(), wrong.encode()))
        assert "format specifications" in said


def test_doubt_makes_a_fuzzy_entry_with_a_comment() -> None:
    doubt = Doubt(("A number is missing.",), 0.314)
    answer = [Translated("x", doubt=doubt)]
    text = '#. note\n#: a.c:1\n#, c-format\nmsgid "Open it"\nmsgstr ""\n'
    new = translate_document(opened(HEADER + text), lambda _: answer).decode()
    assert new == HEADER + (
        "# Machine translation (confidence 0.31): A number is missing.\n"
        '#. note\n#: a.c:1\n#, fuzzy, c-format\nmsgid "Open it"\nmsgstr "x"\n'
    )
    bare = 'msgid "Open it"\nmsgstr ""\n'
    new = translate_document(opened(HEADER + bare), lambda _: answer).decode()
    assert polib.pofile(new)[0].fuzzy
    assert new.endswith('#, fuzzy\nmsgid "Open it"\nmsgstr "x"\n')


def test_what_a_memory_offers_or_gave_is_a_comment() -> None:
    near = Offer("The\ncat", "Die Katze", 0.75, "old.po:12")
    text = 'msgid ""\nmsgstr ""\n\n# a hint\n#: a.c:1\nmsgid "A cat"\nmsgstr ""\n'
    document = opened(text)
    found = document.write([Written("Eine Katze", Doubt(offers=(near,)))]).decode()
    assert found.endswith(
        "# a hint\n# Translation memory, old.po:12 (75%): The cat = Die Katze\n#: a.c:1\n"
        'msgid "A cat"\nmsgstr "Eine Katze"\n'
    )
    doubt = Doubt(("With other numbers.",), taken="repaired")
    found = document.write([Written("Eine Katze", doubt)]).decode()
    assert "# Translation memory: With other numbers.\n#: a.c:1\n#, fuzzy\n" in found


def test_forms_of_the_plural_are_those_of_the_header() -> None:
    plural = 'msgid "%d cat"\nmsgid_plural "%d cats"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    header = HEADER.replace("nplurals=2; plural=(n != 1)", "nplurals=3; plural=n%3")
    new = written(header + plural, "upper")
    assert polib.pofile(new)[0].msgstr_plural == {0: "%d CAT", 1: "%d CATS", 2: "%d CATS"}  # fmt: skip
    (note,) = opened(header + plural).notes
    assert "3 in all" in note.text
    one = HEADER.replace("nplurals=2; plural=(n != 1)", "nplurals=1; plural=0")
    single = plural.replace('msgstr[1] ""\n', "")
    assert [s.text for s in opened(one + single).segments] == ["cats"]
    half = plural.replace('msgstr[0] ""', 'msgstr[0] "%d Katze"')
    new = written(HEADER + half, "upper")
    assert polib.pofile(new)[0].msgstr_plural == {0: "%d Katze", 1: "%d CATS"}


def test_a_file_that_is_not_wrapped_stays_so() -> None:
    long = "a word and " * 20 + "an end"
    text = f'{HEADER}msgid "{long}"\nmsgstr ""\n'
    assert f'msgstr "{long.upper()}"\n' in written(text, "upper")


def test_a_template_becomes_a_catalogue_in_utf_8() -> None:
    template = HEADER.replace("charset=UTF-8", "charset=CHARSET")
    body = 'msgid "a b"\nmsgstr ""\n'
    assert unchanged(opened(template + body)) == (template + body).encode()
    new = written(template + body, "chinese", "zh-Hans")
    assert "charset=UTF-8\\n" in new
    assert '"Language: zh_Hans\\n"' in new
    with pytest.raises(UsageError, match=r"^a\.po:1: says that its charset is KOI8-R"):
        opened(HEADER.replace("charset=UTF-8", "charset=KOI8-R"))


def test_markup_of_restructured_text_is_kept() -> None:
    source = (
        "Use :func:`open` or ``close``, see *the page* on :ref:`all files <x>` "
        "and `its site <https://a.org>`_ [1]_, |name| or \\*args; **Note** `a`_."
    )
    document = read_restructured(source)
    (segment,) = document.segments
    assert segment.text == (
        "Use or, see the page on all files and its site, or *args; Note."
    )
    loud = translate_document(document, lambda texts: list(map(upper, texts)))
    assert loud == (
        "USE :func:`open` OR ``close``, SEE *THE PAGE* ON :ref:`ALL FILES <x>` "
        "AND `ITS SITE <https://a.org>`_ [1]_, |name| OR \\*ARGS; **NOTE** `a`_."
    )
    turned = translate_document(document, lambda texts: list(map(reverse, texts)))
    assert turned.count(":func:`open`") == turned.count(" <https://a.org>`_") == 1


def test_code_in_a_catalogue_of_documentation_stays_and_is_listed() -> None:
    text = HEADER + '#: a.rst:1\nmsgid ""\n">>> print(a)\\n"\n"a b"\nmsgstr ""\n'
    document = opened(text)
    assert document.segments == ()
    assert [note.place for note in document.notes] == ["line 11"]
    (segment,) = read_restructured("see :func:`os.walk() <os.walk>` there").segments
    assert segment.text == "see there"


def test_markup_stands_apart_from_letters() -> None:
    assert with_spaces("使用:func:`a`和*词*。") == "使用 :func:`a` 和 *词*。"
    assert with_spaces("see (*x*), ``y``") == "see (*x*), ``y``"
    assert with_spaces("a\\*b\\*c") == "a\\*b\\*c"


def test_other_files_are_refused_with_their_line() -> None:
    for text, line in (
        ("hello", 1),
        ('msgid "a"\nmsgstr "b\n', 2),
        ('msgid "a"\n"b\n', 2),
        ('msgid "a"\nmsgid "b"\n', 2),
    ):
        with pytest.raises(UsageError, match=rf"^a\.po:{line}: not what a catalogue"):
            opened(text)


PARTS = [
    *('msgid "a b"\n', 'msgstr ""\n', 'msgstr "x"\n', '"more\\n"\n', '""\n', "#, fuzzy\n", "#| msgid \"c\"\n", "\n"),
    *('msgctxt "m"\n', 'msgid ""\n', 'msgid_plural "cs %d"\n', 'msgstr[0] ""\n', 'msgstr[1] "y"\n', "# c\n", "\r\n"),
    *('#~ msgid "q"\n', '"nplurals=3;"\n', '"Language: \\n"\n', '"\\x41\\101\\q \\000"\n', "#: a.rst:1\n", "\ufeff"),
    *('msgid "*a* `b` :c:`d` <i>e</i>"\n',),
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=14), rule=st.sampled_from(sorted(RULES)))  # fmt: skip
def test_damaged_files_come_back_or_are_refused(parts: list[str], rule: str) -> None:
    text = "".join(parts)
    document = None
    with suppress(UsageError):
        document = opened(text)
    if document is None:
        with pytest.raises(UsageError, match=r"^a\.po:\d+: "):
            opened(text)
        return
    assert unchanged(document) == text.encode()
    same = translate_document(document, lambda texts: list(map(Translated, texts)))
    assert same == text.encode()
    new = written(text, rule)
    opened(new)  # is a catalogue again


def folder() -> Path:
    found = Path(
        os.environ.get("WEFT_DATA", Path(__file__).parents[4] / "shared" / "data")
    )
    if not (found / "python-docs-en-zh" / "po").is_dir():
        pytest.skip(f"the public corpora are not at {found}; set WEFT_DATA")
    return found


def emptied(path: Path, share: int) -> bytes:
    """A catalogue without a share of its translations, as polib writes it."""
    catalogue = polib.pofile(str(path))
    for entry in catalogue[::share]:
        entry.msgstr = ""
        entry.msgstr_plural = dict.fromkeys(entry.msgstr_plural, "")
    return str(catalogue).encode()


@pytest.mark.long
def test_real_catalogues_keep_all_but_their_translations() -> None:
    data = folder()
    for name, share in (
        ("python-docs-en-zh/po/faq/general.po", 1),
        ("formats/po/godot-editor.eo.po", 60),
    ):
        path = data / name
        content = path.read_bytes()
        document = open_po(content, Reading(name))
        assert unchanged(document) == content
        content = emptied(path, share)
        document = open_po(content, Reading(name))
        assert len(document.segments) > 60
        new = translate_document(document, lambda texts: list(map(upper, texts)))
        assert diff_po(content, new) == []


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    for part in (
        "*",
        "`",
        ":a:`",
        "``x",
        "|",
        "[1]_",
        "\\\\",
        "a_ ",
        "**a ",
        "%%",
        "<b>",
    ):
        body = part * 2_000
        text = f'{HEADER}#: a.rst:1\nmsgid "{body} a b"\nmsgstr ""\n'
        assert unchanged(opened(text)) == text.encode()
        written(text, "upper")


def test_lines_are_divided_as_gettext_divides_them() -> None:
    data = folder()
    content = (data / "formats/po/godot-editor.eo.po").read_bytes()
    lines = lines_of(content.decode())
    entries = list(_entries(lines, "a.po"))
    width = _width_of_file(lines, entries)
    assert width == 79
    alike = []
    for entry in entries:
        found = entry.fields["msgid"]
        there = [line.text for line in lines[found.first : found.end]]
        alike.append(_string("msgid", found.text, width) == there)
    assert sum(alike) > 0.98 * len(alike) > 1_000


def test_a_reference_may_have_marks_in_its_name() -> None:
    """As the headings of an index: prog_ and prefix_chars_."""
    document = read_restructured("prefix_chars_ - See also a.b-c_ and snake_case.")
    (segment,) = document.segments
    assert segment.text == "See also and snake_case."
    assert [item.raw for item in segment.items] == ["a.b-c_"]
