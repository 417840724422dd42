"""Strings of Apple's programs: values are translated, keys and comments stay."""

import json
import plistlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_stringsdict  # tools/
from document_samples import RULES, same, upper
from weft.documents.document import Document, Doubt, Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.programs.apple_strings import open_strings, open_stringsdict
from weft.documents.formats.programs.xcstrings import open_xcstrings
from weft.errors import UsageError

STRINGS = r"""/* Title of "the" window; a = b */
"title" = "Open %@ \"now\"\nor never";
// plain
bare.key = "One word";
"same text";
"id" = "%d";
"multi" = "first line
second";
"u" = "caf\U00e9 x";
"""
DICT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>%d files</key>
    <dict>
        <key>NSStringLocalizedFormatKey</key>
        <string>There are %#@files@ here</string>
        <key>files</key>
        <dict>
            <key>NSStringFormatSpecTypeKey</key>
            <string>NSStringPluralRuleType</string>
            <key>one</key>
            <string>%d file &amp; more</string>
            <key>other</key>
            <string>%d files</string>
        </dict>
    </dict>
</dict>
</plist>
"""
CATALOGUE = """{
  "sourceLanguage" : "en",
  "strings" : {
    "" : {
      "shouldTranslate" : false
    },
    "Hello, %@" : {

    },
    "done" : {
      "comment" : "a note here",
      "localizations" : {
        "de" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Fertig"
          }
        },
        "en" : {
          "stringUnit" : {
            "state" : "new",
            "value" : "All is done"
          }
        }
      }
    },
    "files" : {
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : { "stringUnit" : { "state" : "translated", "value" : "%lld file" } },
              "other" : { "stringUnit" : { "state" : "translated", "value" : "%lld files" } }
            }
          }
        },
        "fr" : { "stringUnit" : { "state" : "needs_review", "value" : "x" } }
      }
    }
  },
  "version" : "1.0"
}"""


def loud(document: Document[bytes]) -> str:
    return translate_document(document, lambda found: list(map(upper, found))).decode()


def catalogue(target: str, text: str = CATALOGUE) -> Document[bytes]:
    return open_xcstrings(text.encode(), Reading("a.xcstrings", target=target))


def test_values_of_strings_are_translated() -> None:
    document = open_strings(STRINGS.encode(), Reading("a.strings"))
    assert [segment.text for segment in document.segments] == [
        *('Open "now"', "or never", "One word", "same text", "first line", "second", "café x"),
    ]  # fmt: skip
    assert document.place(0) == "line 2, title"
    assert loud(document) == (
        STRINGS.replace(r"Open %@ \"now\"\nor never", r"OPEN %@ \"NOW\"\nOR NEVER")
        .replace("One word", "ONE WORD")
        .replace("same text", "SAME TEXT")
        .replace("first line\nsecond", "FIRST LINE\nSECOND")
        .replace(r"caf\U00e9 x", "CAFÉ X")
    )


def test_strings_stay_in_their_encoding() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        content = '"a" = "grün und blau";\r\n'.encode(encoding)
        document = open_strings(content, Reading("a.strings"))
        assert unchanged(document) == content
        new = translate_document(document, lambda found: list(map(upper, found)))
        assert new.decode(encoding) == '"a" = "GRÜN UND BLAU";\r\n'
        assert new[:4] == content[:4]


def test_other_files_are_refused_in_a_line() -> None:
    for content, said in (
        (
            b'"a" = "b"\n"c" = "d";',
            r"a\.strings:2: not what a file of strings has here",
        ),
        (b'"a" = "b";\n"c', r"a\.strings:2: not what"),
        (b'"a" = ', r"a\.strings:1: not what"),
        (b"bplist00", r"a\.strings: is a compiled property list"),
        (b"\xff\xfea", r"a\.strings: byte 3 is not UTF-16"),
        (b"\xff", r"a\.strings: byte 1 is not UTF-8"),
    ):
        with pytest.raises(UsageError, match=f"^{said}"):
            open_strings(content, Reading("a.strings"))


PARTS = ['"a"', " = ", '"b c"', *';\n"\\\0', "/* x */", "//", "k.e"]


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
def test_damaged_strings_are_refused_or_come_back(parts: list[str]) -> None:
    content = "".join(parts).encode()
    document = None
    with suppress(UsageError):
        document = open_strings(content, Reading("a"))
    if document is None:
        return
    assert unchanged(document) == content
    for rule in RULES.values():
        new = translate_document(
            document, lambda found, rule=rule: list(map(rule, found))
        )
        again = open_strings(new, Reading("a"))
        assert len(again.segments) == len(document.segments) or rule is RULES["chinese"]


def test_forms_of_plurals_are_translated() -> None:
    document = open_stringsdict(DICT.encode(), Reading("a.stringsdict"))
    assert [segment.text for segment in document.segments] == [
        "There are here",
        "file & more",
        "files",
    ]
    new = loud(document)
    assert "<string>THERE ARE %#@files@ HERE</string>" in new
    found = plistlib.loads(new.encode())
    assert found["%d files"]["files"]["one"] == "%d FILE & MORE"
    for rule in RULES:
        new = translate_document(
            document, lambda found, rule=rule: list(map(RULES[rule], found))
        ).decode()
        assert diff_stringsdict(DICT.encode(), new.encode()) == []


def test_a_catalogue_gets_the_localizations_that_it_lacks() -> None:
    document = catalogue("de")
    assert [segment.text for segment in document.segments] == ["Hello,", "file", "files"]  # fmt: skip
    new = loud(document)
    found = json.loads(new)["strings"]
    unit = {"state": "translated", "value": "HELLO, %@"}
    assert found["Hello, %@"]["localizations"] == {"de": {"stringUnit": unit}}
    forms = found["files"]["localizations"]["de"]["variations"]["plural"]
    assert forms["other"]["stringUnit"]["value"] == "%lld FILES"
    assert list(found["files"]["localizations"]) == ["de", "en", "fr"]
    assert found["done"] == json.loads(CATALOGUE)["strings"]["done"]
    assert (
        '    "Hello, %@" : {\n      "localizations" : {\n        "de" : {\n          "stringUnit" : {\n'
        '            "state" : "translated",\n            "value" : "HELLO, %@"\n          }\n        }\n      }\n'
        in new
    )


def test_an_unfinished_localization_is_made_anew() -> None:
    new = loud(catalogue("fr"))
    found = json.loads(new)["strings"]
    assert "plural" in found["files"]["localizations"]["fr"]["variations"]
    unit = {"state": "translated", "value": "ALL IS DONE"}
    assert found["done"]["localizations"]["fr"] == {"stringUnit": unit}
    assert list(found["done"]["localizations"]) == ["de", "en", "fr"]
    assert found[""] == {"shouldTranslate": False}


def test_doubt_is_a_state() -> None:
    doubt = Doubt(("A number is missing.",), 0.2)
    text = '{"sourceLanguage": "en", "strings": {"a b": {}}}'
    new = translate_document(
        catalogue("de", text), lambda _: [Translated("x", doubt=doubt)]
    )
    unit = {"state": "needs_review", "value": "x"}
    found = json.loads(new)["strings"]["a b"]
    assert found == {"localizations": {"de": {"stringUnit": unit}}}


def test_a_catalogue_comes_back_as_it_is() -> None:
    for target in ("de", "fr", "en", "zh-Hans"):
        document = catalogue(target)
        assert unchanged(document) == CATALOGUE.encode()
        assert translate_document(document, lambda found: list(map(same, found))) == CATALOGUE.encode()  # fmt: skip
    assert catalogue("en").segments == ()
    with pytest.raises(UsageError, match=r"^a\.xcstrings: into which language\?"):
        catalogue("")
    with pytest.raises(UsageError, match=r"^a\.xcstrings:1: no string catalogue"):
        catalogue("de", "{}")
