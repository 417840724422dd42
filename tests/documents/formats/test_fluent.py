"""Fluent: patterns and variants are translated, placeables, keys and comments stay."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_fluent  # tools/
from document_samples import RULES, reverse, upper
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.programs.fluent import open_fluent
from weft.documents.formats.text.values import ValuesDocument
from weft.errors import UsageError

FTL = """\
### About
# for { $x }
hello = Hello { $x }, see { -brand }
    and more { NUMBER($n, digits: 2) }
    words.
    .title = A <a href="{ $u }">title</a>

# a comment
block =
    The first line <a { $link }>here</a>

    Another paragraph { "{" }
mails = You have { $n ->
        [one] one mail from { $who }
       *[other] { $n } mails { $sex ->
            [m] of his
           *[f] of hers
        }
    } now
-brand = The Fox
    .case = lower
empty = { "" }
no text here
"""


def opened(text: str) -> ValuesDocument:
    return open_fluent(text.encode(), Reading("a.ftl"))


def written(text: str, rule: str = "upper") -> str:
    return translate_document(
        opened(text), lambda found: list(map(RULES[rule], found))
    ).decode()


def test_patterns_and_variants_are_segments() -> None:
    document = opened(FTL)
    assert [segment.text for segment in document.segments] == [
        "Hello, see and more words.",
        "A title",
        "The first line here",
        "Another paragraph",
        "You have now",
        "one mail from",
        "mails",
        *("of his", "of hers", "The Fox", "lower"),
    ]
    assert document.place(4) == "line 13"
    (note,) = document.notes
    assert note.place == "line 23"


def test_placeables_keys_and_comments_stay() -> None:
    loud = written(FTL)
    for part in (
        "# for { $x }\nhello = HELLO { $x }, SEE { -brand }\n    AND MORE { NUMBER($n, digits: 2) }\n    WORDS.\n",
        '    .title = A <a href="{ $u }">TITLE</a>\n\n# a comment\n',
        'block =\n    THE FIRST LINE <a { $link }>HERE</a>\n\n    ANOTHER PARAGRAPH { "{" }\n',
        "[one] ONE MAIL FROM { $who }\n       *[other] { $n } MAILS { $sex ->\n            [m] OF HIS\n",
        "    } NOW\n-brand = THE FOX\n    .case = LOWER\n",
    ):
        assert part in loud


@pytest.mark.parametrize("rule", RULES)
def test_the_structure_is_that_of_the_original(rule: str) -> None:
    assert diff_fluent(FTL.encode(), written(FTL, rule).encode()) == []


def test_marks_in_a_translation_are_text() -> None:
    for answer, expected in (
        ("{ $no } [x]", '{"{"} $no {"}"} [x]'),
        ("[x] y", '{"["}x] y'),
        (".x = y", '{"."}x = y'),
        ("*x", '{"*"}x'),
        ("a\nb = c", "a b = c"),
    ):
        text = "key =\n    Some words\n"
        new = translate_document(
            opened(text), lambda _, a=answer: [Translated(a)]
        ).decode()
        assert new == text.replace("Some words", expected)
        assert diff_fluent(text.encode(), new.encode(), by_words=True) == []


def folder() -> Path:
    found = Path(
        os.environ.get("WEFT_DATA", Path(__file__).parents[4] / "shared" / "data")
    )
    if not (found / "formats" / "ftl").is_dir():
        pytest.skip(f"the public corpora are not at {found}; set WEFT_DATA")
    return found / "formats" / "ftl"


def test_real_files_keep_all_but_their_words() -> None:
    for path in sorted(folder().rglob("*.ftl")):
        content = path.read_bytes()
        document = open_fluent(content, Reading(path.name))
        assert unchanged(document) == content
        assert len(document.segments) > 20
        for rule in (upper, reverse):
            new = translate_document(
                document, lambda texts, rule=rule: list(map(rule, texts))
            )
            assert diff_fluent(content, new) == []


PARTS = [
    *("key = ", "-term = ", "\n", "\n    ", "    .attr = ", "{ $x }", "{ $n ->\n", "  [one] ", " *[other] ", "}\n"),
    *("{", "}", '{ "" }', "word", "two words", "<b>", "</b>", "# c\n", "\r\n", "\t", "[x]", "漢字", "\ufeff"),
    "\n\n    ",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=16), rule=st.sampled_from(sorted(RULES)))  # fmt: skip
def test_any_file_comes_back_as_it_is(parts: list[str], rule: str) -> None:
    text = "".join(parts)
    document = opened(text)
    assert unchanged(document) == text.encode()
    same = translate_document(document, lambda found: list(map(Translated, found)))
    assert same == text.encode()
    assert diff_fluent(text.encode(), written(text, rule).encode()) == []


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    for part in ("{ $x } a ", "<b>", "a\n    ", "}\nb = c\n"):
        text = "key = " + part * 2_000
        assert unchanged(opened(text)) == text.encode()
    nested = "key = " + "{ $x ->\n *[a] " * 15 + "word" + "\n }" * 15 + "\n"
    assert "WORD" in written(nested)
    with pytest.raises(UsageError, match=r"^a\.ftl: placeables are nested deeper"):
        opened("key = " + "{" * 5_000)


def test_a_mark_after_a_placeable_at_the_head_of_a_message_stays_with_it() -> None:
    source = b"a = { -brand }, the browser, and { -brand }: hello\n"
    document = open_fluent(source, Reading("a.ftl"))
    assert [one.text for one in document.segments] == ["the browser, and: hello"]
    written = translate_document(document, lambda texts: list(map(upper, texts)))
    assert written == b"a = { -brand }, THE BROWSER, AND { -brand }: HELLO\n"
