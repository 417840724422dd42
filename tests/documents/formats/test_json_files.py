"""JSON and JSON Lines: strings are translated in their places, as the file writes them."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_json  # tools/
from document_samples import RULES, upper
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.programs.json_files import open_json, open_json_lines
from weft.documents.formats.programs.json_tree import nodes_of
from weft.documents.formats.text.values import ValuesDocument
from weft.errors import UsageError

CONFIG = r"""{
  "name": "demo", "version": "1.0",
  "info": {"about": "A \"small\" program.\nIt does {count} things",
    "pages": [{"text": "see <b>this</b> \u0026 that"}, 5, null]},
  "path": "a/b c"
}
"""


def opened(text: str, *columns: str, target: str = "") -> ValuesDocument:
    return open_json(text.encode(), Reading("a.json", target=target, columns=columns))


def texts(text: str, *columns: str) -> list[str]:
    return [segment.text for segment in opened(text, *columns).segments]


def loud(text: str, *columns: str, target: str = "") -> str:
    return translate_document(
        opened(text, *columns, target=target), lambda found: list(map(upper, found))
    ).decode()


def test_sentences_of_any_file_are_translated() -> None:
    assert texts(CONFIG) == [
        'A "small" program.',
        "It does things",
        "see this & that",
        "a/b c",
    ]
    document = opened(CONFIG)
    assert document.place(2) == "line 4, info.pages.0.text"
    (note,) = document.notes
    assert note.place == "line 2"
    assert "(1 from here on, the first one is name)" in note.text


def test_keys_or_their_paths_name_the_strings() -> None:
    assert texts(CONFIG, "text") == ["see this & that"]
    assert texts(CONFIG, "info.pages.text", "name") == ["demo", "see this & that"]
    assert texts(CONFIG, "info.pages.0.text") == ["see this & that"]
    assert texts(CONFIG, "info.about")[0] == 'A "small" program.'
    with pytest.raises(UsageError, match=r"^a\.json: no string has the key pages;"):
        opened(CONFIG, "pages")


def test_only_what_is_between_the_quotes_changes() -> None:
    assert loud(CONFIG) == CONFIG.replace(
        r'A \"small\" program.\nIt does {count} things', r'A \"SMALL\" PROGRAM.\nIT DOES {count} THINGS'
    ).replace(r"see <b>this</b> \u0026 that", r"SEE <b>THIS</b> \u0026 THAT").replace("a/b c", "A/B C")  # fmt: skip
    for rule in RULES:
        new = translate_document(
            opened(CONFIG), lambda found, rule=rule: list(map(RULES[rule], found))
        )
        assert diff_json(CONFIG.encode(), new) == []


def test_escapes_are_those_of_the_file() -> None:
    assert loud(r'{"a": "sch\u00f6n und gut"}') == r'{"a": "SCH\u00d6N UND GUT"}'
    assert loud('{"a": "schön und gut"}') == '{"a": "SCHÖN UND GUT"}'
    assert loud(r'{"a": "a <i>b<\/i> c"}') == r'{"a": "A <i>B<\/i> C"}'
    half = translate_document(opened('{"a": "b c"}'), lambda _: [Translated("\ud800")])
    assert half == rb'{"a": "\ud800"}'


def test_messages_of_i18next_have_single_words_too() -> None:
    items = '"item_one": "{{count}} item", "item_other": "{{count}} items"'
    names = '"url": "https://a.b/c", "id": "main_menu"'
    text = f'{{"menu": {{"open": "Open", {items}}}, {names}}}'
    assert texts(text) == ["Open", "item", "items"]
    assert opened(text).notes == ()


def test_arb_keeps_what_is_said_of_a_message() -> None:
    text = """{"@@locale": "en", "hello": "Hello {name}", "@hello": {"description": "A greeting here",
 "placeholders": {"name": {"type": "String"}}},
 "cats": "{n, plural, =0{No cats} one{# cat and {name}} other{# cats of {k, select, a{Ann} other{them}}}}"}"""
    assert texts(text) == ["Hello", "No cats", "cat and", "cats of", "Ann", "them"]
    new = loud(text, target="pt-BR")
    assert '"@@locale": "pt_BR"' in new
    assert (
        "{n, plural, =0{NO CATS} one{# CAT AND {name}} other{# CATS OF {k, select, a{ANN} other{THEM}}}}"
        in new
    )
    assert '"A greeting here"' in new
    assert loud(text).replace("en", "pt_BR", 1) == new


def test_extensions_of_browsers_have_their_messages_translated() -> None:
    title = '"title": {"message": "Title", "description": "Shown on top"}'
    who = '"message": "$WHO$ is here", "placeholders": {"who": {"content": "$1"}}'
    text = f'{{{title}, "b": {{{who}}}}}'
    assert texts(text) == ["Title", "is here"]


def test_json_lines_need_the_names_of_keys() -> None:
    content = (
        b'{"id": "a b", "text": "one two", "n": {"t": "three"}}\r\n\n{"text": "four"}'
    )
    reading = Reading("a.jsonl", columns=("text", "n.t"))
    document = open_json_lines(content, reading)
    new = translate_document(document, lambda found: list(map(upper, found)))
    assert (
        new
        == b'{"id": "a b", "text": "ONE TWO", "n": {"t": "THREE"}}\r\n\n{"text": "FOUR"}'
    )
    assert document.place(2) == "line 3, text"
    with pytest.raises(UsageError, match=r"^a\.jsonl: which keys have the text\?"):
        open_json_lines(content, Reading("a.jsonl"))
    with pytest.raises(UsageError, match=r"^a\.jsonl: no string has the key x;"):
        open_json_lines(content, Reading("a.jsonl", columns=("x",)))
    with pytest.raises(UsageError, match=r"^a\.jsonl:2:1: not JSON"):
        open_json_lines(b'{"text": ""}\n{text', reading)


def test_other_files_are_refused_with_their_line() -> None:
    for text, said in (
        ('{"a": 1,\n}', r"a\.json:2: not JSON: "),
        ("", r"a\.json:1: not JSON"),
        ("[" * 300 + "]" * 300, r"a\.json:1: nested more than 256 deep"),
        ("[" * 100_000, r"a\.json:1: nested more than 256 deep"),
    ):
        with pytest.raises(UsageError, match=f"^{said}"):
            opened(text)


PARTS = [
    *('{"a b": "c d"', "}", "[", "]", ",", '"e f"', ":", "1", "\\", '"', "\n", " "),
    *("NaN", "\ufeff", '"\\ud800 x y"'),
]
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=12),
              st.sampled_from(["two words", "<b>a</b> c", "{n, plural, one {# a} other {b c}}", "a &amp; b", "x"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    value=VALUES,
    escaped=st.booleans(),
    indent=st.sampled_from([None, 2]),
    rule=st.sampled_from(sorted(RULES)),
)
def test_any_file_comes_back_and_keeps_its_keys(
    value: object, escaped: bool, indent: int | None, rule: str
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    content = text.encode("utf-8", "replace")
    document = open_json(content, Reading("a.json"))
    assert unchanged(document) == content
    same = translate_document(document, lambda found: list(map(Translated, found)))
    assert same == content
    new = translate_document(document, lambda found: list(map(RULES[rule], found)))
    assert diff_json(content, new) == []


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=10))
def test_damaged_files_are_refused_or_come_back(parts: list[str]) -> None:
    content = "".join(parts).encode()
    with suppress(UsageError):
        assert unchanged(open_json(content, Reading("a.json"))) == content


def test_the_places_of_nodes_are_those_of_their_values() -> None:
    for node in nodes_of(CONFIG, "a.json"):
        found = json.loads(CONFIG)
        for key in node.path:
            found = found[int(key)] if isinstance(found, list) else found[key]
        assert json.loads(CONFIG[node.start : node.end]) == found


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    many = json.dumps([{"text": "some words"}] * 5_000)
    translate_document(opened(many), lambda found: list(map(upper, found)))
    for part in ("\\u0041", "<b>", "{n, plural, a {", "{", "&amp;", "[b]"):
        text = json.dumps({"a": part * 3_000 + " x"})
        assert unchanged(opened(text)) == text.encode()
