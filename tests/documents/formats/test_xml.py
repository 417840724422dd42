"""XML is divided into tokens without a loss, and what is hostile in it is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.documents.formats.xml.tokens import (
    MAX_DEPTH,
    Xml,
    decode_xml,
    escapes_of_xml,
    read_xml,
    written_as_xml,
)
from weft.errors import UsageError

ODD = (
    '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<a x="1" xmlns:w="u" w:y="&lt;2"><w:b/>te&amp;x'
    "&#160;t<!-- c --> <?pi x?><c></c>\r\nx<![CDATA[<&]]>y<![CDATA[]]>漢😀</a>\n<!-- e -->\n"
)
PARTS = [
    "a",
    " ",
    "\r\n",
    "é😀",
    "<b>",
    "</b>",
    "<b/>",
    "<!-- x -->",
    "<?p?>",
    "<![CDATA[<b>]]>",
    "&amp;",
    "&#9;",
]


def is_nested(parts: list[str]) -> bool:
    depth = 0
    for part in parts:
        depth += (part == "<b>") - (part == "</b>")
        if depth < 0:
            return False
    return depth == 0


def raws(content: bytes) -> list[str]:
    return [token.raw for token in read_xml(content, "a.xml").tokens]


def test_every_character_belongs_to_a_token() -> None:
    assert "".join(raws(ODD.encode())) == ODD
    tokens = read_xml(ODD.encode(), "a.xml").tokens
    kinds = [token.kind.value for token in tokens]
    assert kinds == [
        *("other", "start", "empty", "text", "other", "text", "other", "start", "end", "text"),
        *("cdata", "text", "cdata", "text", "end", "other"),
    ]  # fmt: skip
    assert tokens[1].attributes == {"x": "1", "u y": "<2"}
    assert (tokens[2].name, tokens[2].space) == ("b", "u")
    assert tokens[7].opens
    assert tokens[2].opens
    assert not tokens[8].opens


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
def test_any_file_comes_back(parts: list[str]) -> None:
    source = f"<r>{''.join(parts)}</r>"
    if not is_nested(parts):
        with pytest.raises(UsageError, match="mismatched tag"):
            read_xml(source.encode(), "a.xml")
        return
    tokens = read_xml(source.encode(), "a.xml").tokens
    assert "".join(token.raw for token in tokens) == source
    assert sum(token.kind is Xml.EMPTY for token in tokens) == source.count("<b/>")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "cp1252"])
def test_encodings(encoding: str) -> None:
    head = (
        ""
        if encoding.startswith("utf")
        else f'<?xml version="1.0" encoding="{encoding}"?>'
    )
    source = f"{head}<a>é</a>"
    content = source.encode(encoding)
    file = read_xml(content, "a.xml")
    again = "".join(token.raw for token in file.tokens)
    assert again.encode(file.encoding) == content
    assert again.removeprefix("\ufeff") == source


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "a.xml:1: the document type has declarations"),
        ('<!DOCTYPE a SYSTEM "q" [ %p; ]><a/>', "a.xml:1: the document type has declarations"),
        ('<!DOCTYPE a SYSTEM "q">\n<a>&foo;</a>', "a.xml:2: the entity foo is declared elsewhere"),
        ("<a>&nbsp;</a>", "a.xml:1: not well-formed XML: undefined entity"),
        ("<a>\n<b></a>", "a.xml:2: not well-formed XML: mismatched tag"),
        ("<a>" * (MAX_DEPTH + 1), "a.xml:1: elements are nested more than"),
        ('<?xml version="1.0" encoding="utf-7"?><a/>', "a.xml:1: the encoding utf-7 is not read"),
        ('<?xml version="1.0" encoding="ascii"?><a>é</a>', "a.xml:1: the encoding ascii is not read"),
        ('<?xml version="1.0" encoding="us-ascii"?><a>é</a>', "a.xml: byte 45 is not us-ascii"),
        ("", "a.xml:1: not well-formed XML: no element found"),
    ],
)  # fmt: skip
def test_what_is_refused(source: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_xml(source.encode(), "a.xml")
    assert str(caught.value).startswith(said)


def test_entities_of_a_page_are_read_where_its_type_is_named() -> None:
    source = '<!DOCTYPE html PUBLIC "x" "y"><p>a&nbsp;b&eacute;</p>'
    assert "a&nbsp;b&eacute;" in raws(source.encode())


def test_text_is_read_and_written() -> None:
    assert decode_xml("a&#10;b &lt;&#x6f22;\n") == "a b <漢 "
    assert escapes_of_xml("&apos; &quot; and \" it's not") == {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
    }
    assert escapes_of_xml("&quot;x&quot;")['"'] == "&quot;"
    assert written_as_xml('<"&>') == "&lt;&quot;&amp;&gt;"
