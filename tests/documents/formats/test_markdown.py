"""Markdown: the words of blocks are translated, and every mark is read as it was."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_markdown  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.text.markdown import open_markdown
from weft.documents.formats.text.values import ValuesDocument
from weft.errors import UsageError

PAGE = """\
---
title: A page
tags: [a, b]
---

# A *big* title {#id}

Some **bold** text with `code` and a [link to *it*](http://x.org/a_b "T") or
[ref][r], [short], ![an image](a.png) here.\x20\x20
A hard break, snake_case, \\*not\\* &copy; 2 * 3 <b>html</b> <kbd>Ctrl</kbd> <https://a.b>.

> quoted text goes
> on here
> > deeper words
> [!NOTE]

- item one
  goes on
  1. ~~sub~~ item
- [ ] task item

| Name | Price \\| x |
|:-----|------|
| red *car* | `a` |
last cell

Setext title
============

```python
code here
```

    indented code

<div>
<p>Some html <b>text</b></p>
</div>

[![Build](b.svg)](link) ![Doc](d.svg)

[short]: http://a.b
[r]: http://a.c "title"
[^1]: A footnote text.

Text with a note[^1] and $x_i = y$ in it.

:::tip
Inside words
:::

$$
a = \\text{words}
$$
"""


def opened(text: str) -> ValuesDocument:
    return open_markdown(text.encode(), Reading("a.md"))


def texts(text: str) -> list[str]:
    return [segment.text for segment in opened(text).segments]


def written(text: str, rule: str = "upper") -> str:
    return translate_document(
        opened(text), lambda found: list(map(RULES[rule], found))
    ).decode()


def answered(text: str, *answers: str) -> str:
    return translate_document(
        opened(text), lambda _: [Translated(answer) for answer in answers]
    ).decode()


def test_the_words_of_blocks_are_segments() -> None:
    assert texts(PAGE) == [
        "A big title",
        ("Some bold text with and a link to it or ref, short, here. "
        "A hard break, snake_case, *not* © 2 * 3 html."),
        "an image",
        "quoted text goes on here",
        "deeper words",
        "item one goes on",
        "sub item",
        "task item",
        *("Name", "Price | x", "red car", "last cell", "Setext title"),
        "Some html text",
        *("Build", "Doc", "A footnote text.", "Text with a note and in it.", "Inside words"),
    ]  # fmt: skip
    document = opened(PAGE)
    assert document.place(0) == "line 6"
    assert document.place(3) == "line 12"
    assert [note.place for note in document.notes] == ["line 1"]
    assert document.notes[0].text == "the front matter stays, its title too"


def test_marks_addresses_and_code_stay() -> None:
    loud = written(PAGE)
    for part in (
        "---\ntitle: A page\ntags: [a, b]\n---\n\n# A *BIG* TITLE {#id}\n",
        (
            'SOME **BOLD** TEXT WITH `code` AND A [LINK TO *IT*](http://x.org/a_b "T") OR [REF][r],\n'
            "[SHORT][short], ![AN IMAGE](a.png) HERE.  \nA HARD BREAK, SNAKE_CASE, \\*NOT\\* &copy; 2 * 3 "
            "<b>HTML</b> <kbd>Ctrl</kbd> <https://a.b>.\n"
        ),
        "> QUOTED TEXT GOES ON HERE\n> > DEEPER WORDS\n> [!NOTE]\n",
        "- ITEM ONE GOES ON\n  1. ~~SUB~~ ITEM\n- [ ] TASK ITEM\n",
        "| NAME | PRICE \\| X |\n|:-----|------|\n| RED *CAR* | `a` |\nLAST CELL\n",
        "SETEXT TITLE\n====",
        "<div>\n<p>SOME HTML <b>TEXT</b></p>\n</div>\n",
        "[![BUILD](b.svg)](link) ![DOC](d.svg)\n",
        '[r]: http://a.c "title"\n[^1]: A FOOTNOTE TEXT.\n\nTEXT WITH A NOTE[^1] AND $x_i = y$ IN IT.\n',
        ":::tip\nINSIDE WORDS\n:::\n\n$$\na = \\text{words}\n$$\n",
    ):
        assert part in loud


@pytest.mark.parametrize("rule", RULES)
def test_a_translation_is_parsed_into_the_same_tokens(rule: str) -> None:
    shown = PAGE.replace("[short]", "[a][short]")  # a label stands for words there
    assert diff_markdown(shown.encode(), written(shown, rule).encode()) == []


def test_the_differ_sees_what_is_lost() -> None:
    for old, new in (
        ("**bold**", "bold"),
        ("a_b", "a_c"),
        ("- item", "item"),
        ("`a`", "`b`"),
    ):
        assert diff_markdown(PAGE.encode(), PAGE.replace(old, new).encode()) != []


def test_nothing_becomes_a_mark_by_accident() -> None:
    for answer, expected in (
        ("# no title", "\\# no title"),
        ("1. no list", "1\\. no list"),
        ("12) no list", "12\\) no list"),
        ("- no item", "\\- no item"),
        ("+ no item", "\\+ no item"),
        ("* no item", "\\* no item"),
        ("> no quote", "\\> no quote"),
        ("*no* emphasis, 2 * 3", "\\*no\\* emphasis, 2 * 3"),
        ("_no_ snake_case", "\\_no\\_ snake_case"),
        ("`no` code", "\\`no\\` code"),
        ("no [link](x)", "no \\[link\\](x)"),
        ("this [sic] is [fine]", "this [sic] is [fine]"),
        ("not [r]", "not \\[r\\]"),
        ("<b>no</b> 3 < 4", "\\<b>no\\</b> 3 < 4"),
        ("~~no~~ ~5", "\\~\\~no\\~\\~ ~5"),
        ("AT&T &amp; &", "AT&T \\&amp; &"),
        ("C:\\no \\", "C:\\no \\\\"),
        ("=== ---", "=== ---"),
        ("---", "\\---"),
    ):
        text = "Some words\n\n[r]: http://a.b\n"
        assert answered(text, answer) == text.replace("Some words", expected)
        assert texts(answered(text, answer)) in ([answer], [])
    assert answered("# A\n", "B #") == "# B \\#\n"
    assert answered("| A |\n|---|\n", "b | c") == "| b \\| c |\n|---|\n"


def test_emphasis_beside_letters_is_still_emphasis() -> None:
    alignment = [(0, 3, 0, 1), (4, 10, 1, 5), (11, 14, 5, 6)]
    answer = [Translated("看“这个”后", alignment)]
    for mark in ("**", "_", "~~"):
        source = f"see {mark}“this”{mark} now\n"
        new = translate_document(opened(source), lambda _: answer).decode()
        shown = mark.replace("_", "*")
        assert new == f"看 {shown}“这个”{shown} 后\n"
        assert new.count(shown) == 2


def test_a_footnote_of_one_word_is_no_definition_of_a_link() -> None:
    assert texts("[^1]: Word\n\nText[^1].\n") == ["Word", "Text."]


def test_prefixes_and_line_ends_stay() -> None:
    text = "> 1. one  \r\n>    two\r\n>\r\n> - a\\\r\n>   b\r\n"
    assert written(text) == "> 1. ONE  \r\n>    TWO\r\n>\r\n> - A\\\r\n>   B\r\n"
    assert written("\ufeff# title #\n") == "\ufeff# TITLE #\n"


def test_a_paragraph_in_lines_is_filled_to_their_width() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    text = f'> - {words}\n>   `a b` {words}\n>   [x](y "z z") - {words}.\n'
    new = written(text)
    lines = new.split("\n")
    assert max(map(len, lines)) <= max(map(len, text.split("\n")))
    assert lines[0].startswith("> - ONE TWO")
    assert all(line.startswith(">   ") for line in lines[1:-1])
    assert len(lines) == 4
    assert "`a b`" in new
    assert diff_markdown(text.encode(), new.encode()) == []
    for code in (40, 80, 120):
        long = f"word `{'a ' * code}b`\nand - 1. # more words\n"
        assert diff_markdown(long.encode(), written(long, "reverse").encode()) == []
    assert written("one line of words") == "ONE LINE OF WORDS"


def test_only_utf_8_is_read() -> None:
    with pytest.raises(UsageError, match=r"^a\.md: byte 1 is not UTF-8"):
        open_markdown(b"\xff", Reading("a.md"))


PARTS = [
    *("# ", "## a\n", "- ", "* ", "1. ", "> ", "\n", "\n\n", "    ", "  \n", "\\\n", "```\n", "~~~", "---\n", "===\n"),
    *("| a | b |\n|---|---|\n", "| c |", "**", "*", "_", "__", "~~", "`", "``", "[a](b)", "[", "](c \"d\")", "![x](y)"),
    *("[r]", "[r][]", "[r]: u\n", "[^1]", "[^1]: ", "<b>", "</b>", "<div>\n", "<!-- c -->", "<https://a.b>", "&amp;"),
    *("\\*", "\\", "{#i}", "{: .c}", "$x_1$", "$$\n", "word", "two words", "漢字", "\t", "\r\n", "\r", "\0", "\ufeff"),
    *("<br>", "<code>", "</code>", "\u2028", "[ ] ", "+++\na = 1\n+++\n", ":::\n", "{0}", ". "),
]  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=16), rule=st.sampled_from(sorted(RULES)))  # fmt: skip
def test_any_file_comes_back_as_it_is(parts: list[str], rule: str) -> None:
    text = "".join(parts)
    document = opened(text)
    assert unchanged(document) == text.encode()
    same = translate_document(document, lambda found: list(map(Translated, found)))
    assert same == text.encode()
    for segment in document.segments:
        assert any(map(str.isalpha, segment.text))
    written(text, rule)


def test_the_pages_of_this_project_keep_their_tokens() -> None:
    root = Path(__file__).parents[3]
    for page in (root / "README.md", root / "docs" / "documents.md"):
        content = page.read_bytes()
        document = open_markdown(content, Reading(page.name))
        assert unchanged(document) == content
        assert len(document.segments) > 40
        new = translate_document(document, lambda found: list(map(reverse, found)))
        assert diff_markdown(content, new) == []


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    for part in (
        *("*", "**a ", "_a", "[", "![", "](", "[a](", "`", "`a", "<", "<a ", "<!--", "&", "\\", "~~", "> ", "- a\n"),
        *("| a ", "{#", "$a_", "[^", "[a]", "<code>", "a  \n", "# a\n", "\n"),
    ):  # fmt: skip
        text = part * (2_000 // len(part)) + " word"
        document = opened(text)
        assert unchanged(document) == text.encode()
        translate_document(document, lambda found: list(map(upper, found)))
