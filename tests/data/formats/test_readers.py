"""Every reader against a writer that keeps the format's rules: whatever was written is what is
read.
"""

import codecs
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.data.corpus import ParallelText, read_pairs
from weft.data.documents import read_documents
from weft.data.formats.jsonl import open_jsonl
from weft.data.formats.parquet import open_parquet
from weft.data.formats.po import open_po
from weft.data.formats.registry import FILE_TYPES
from weft.data.formats.tmx import open_tmx
from weft.data.formats.tsv import open_csv, open_tsv
from weft.data.formats.xliff import open_xliff
from weft.data.labelled import read_labelled

# Letters of several scripts, marks on them, and whatever some format or some reader takes for more
# than a letter.
ODD = "aé中ה😀\u0301 \u00a0\u2028\x85\x0b\r\"',;&<>|\\{}%#=-0"
XML_NEVER = "\x0b\r"  # what XML cannot hold, or rewrites
SIDE = st.text(st.sampled_from(ODD), min_size=1, max_size=12).filter(
    lambda text: text == text.strip() != ""
)
PAIRS = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])
fuzz = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def write(
    path: Path, content: str, draw: Callable[..., object], encoding: str = "utf-8"
) -> str:
    """Write text, with a byte-order mark and packed or without, as drawn."""
    data = content.encode(encoding)
    if encoding == "utf-8" and draw(st.booleans()):
        data = codecs.BOM_UTF8 + data
    path.write_bytes(gzip.compress(data) if draw(st.booleans()) else data)
    return str(path)


def pairs_of(text: ParallelText) -> list[tuple[str, str]]:
    return list(zip(text.src, text.tgt, strict=True))


def is_plain(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether nothing in them looks like the doings of a spreadsheet, which is another test's
    matter.
    """
    sides = [side for pair in pairs for side in pair]
    # a cell in quotes may go over several lines: from one side to another
    begins = any(side.startswith('"') for side in sides)
    return not (begins and any(side.endswith('"') for side in sides))


@fuzz
@given(pairs=PAIRS.filter(is_plain), end=ENDS, data=st.data())
def test_tsv(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    last = data.draw(st.sampled_from([end, ""]))
    content = end.join(f"{src}\t{tgt}" for src, tgt in pairs) + last
    text = read_pairs(write(tmp_path / "p.tsv", content, data.draw))
    assert pairs_of(text) == pairs
    assert text.lines == list(range(1, len(pairs) + 1))


@fuzz
@given(pairs=PAIRS, end=ENDS, data=st.data())
def test_aligned_files(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    sides = [
        write(
            tmp_path / name, "".join(f"{side}{end}" for side in side_texts), data.draw
        )
        for name, side_texts in zip(
            ("p.en", "p.de"), zip(*pairs, strict=True), strict=True
        )
    ]
    text = read_pairs(",".join(sides))
    assert pairs_of(text) == pairs
    assert (text.src_lang, text.tgt_lang) == ("en", "de")


@fuzz
@given(pairs=PAIRS, end=ENDS, data=st.data())
def test_tmx(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    pairs = [
        tuple(side.translate(dict.fromkeys(map(ord, XML_NEVER), "_")) for side in pair)
        for pair in pairs
    ]  # type: ignore[misc]
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be"]))
    declared = "UTF-8" if encoding == "utf-8" else "UTF-16"
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""

    def segment(text: str) -> str:
        way = data.draw(st.sampled_from(["escaped", "cdata", "numbers", "hi"]))
        if way == "cdata":
            return f"<![CDATA[{text}]]>"
        if way == "numbers":
            return "".join(f"&#{ord(letter)};" for letter in text)
        return f"<hi>{escape(text)}</hi>" if way == "hi" else escape(text)

    units: list[str] = []
    for src, tgt in pairs:
        sides = [
            f'<tuv xml:lang="{lang}"><seg>{segment(t)}</seg></tuv>'
            for lang, t in (("en", src), ("de", tgt))
        ]
        is_turned = data.draw(st.booleans())
        if units and is_turned:  # the first unit says which language comes first
            sides.reverse()
        units.append(f"<tu>{end}<note>n</note>{''.join(sides)}</tu>")
    doctype = data.draw(
        st.sampled_from(["", f'<!DOCTYPE tmx SYSTEM "tmx14.dtd">{end}'])
    )
    head = f'{mark}<?xml version="1.0" encoding="{declared}"?>{end}{doctype}<tmx version="1.4"><header/><body>{end}'
    content = head + end.join(units) + "</body></tmx>"
    text = read_pairs(write(tmp_path / "p.tmx", content, data.draw, encoding))
    assert pairs_of(text) == pairs
    lines = content.split("\n")
    assert all("<tu>" in lines[line - 1] for line in text.lines)


@fuzz
@given(pairs=PAIRS, end=ENDS, data=st.data())
def test_xliff(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    pairs = [
        tuple(side.translate(dict.fromkeys(map(ord, XML_NEVER), "_")) for side in pair)
        for pair in pairs
    ]  # type: ignore[misc]
    is_second = data.draw(st.booleans())
    tags = ("segment", "pc") if is_second else ("trans-unit", "g")

    def side(name: str, text: str) -> str:
        inside = escape(text)
        if data.draw(st.booleans()):
            inside = f"<{tags[1]} id='1'>{inside}</{tags[1]}>"
        return f"<{name}>{inside}</{name}>"

    units = [
        f"<{tags[0]} id='1'>{end}{side('source', src)}{side('target', tgt)}</{tags[0]}>"
        for src, tgt in pairs
    ]
    head = "<xliff version='1.2'><file source-language='en' target-language='de'><body>"
    tail = "</body></file></xliff>"
    if is_second:
        head = "<xliff version='2.0' srcLang='en' trgLang='de'><file><unit>"
        tail = "</unit></file></xliff>"
    content = end.join([head, *units, tail])
    text = read_pairs(write(tmp_path / "p.xlf", content, data.draw))
    assert pairs_of(text) == pairs
    lines = content.split("\n")
    assert all(f"<{tags[0]} " in lines[line - 1] for line in text.lines)


@fuzz
@given(pairs=PAIRS, end=ENDS, data=st.data())
def test_po(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    def quoted(text: str) -> str:
        for character in ("\\", '"', "\r"):
            letter = "r" if character == "\r" else character
            text = text.replace(character, f"\\{letter}")
        if not data.draw(st.booleans()):
            return f'"{text}"'
        whole = re.findall(r"(?:\\.|[^\\])", text)
        return end.join(f'"{part}"' for part in ("", *whole))

    entries = [
        f"#: a.c:{n}{end}msgid {quoted(src)}{end}msgstr {quoted(tgt)}{end}"
        for n, (src, tgt) in enumerate(pairs)
    ]
    content = (end * data.draw(st.sampled_from([0, 1]))).join(entries)
    text = read_pairs(write(tmp_path / "p.po", content, data.draw))
    assert pairs_of(text) == pairs
    lines = content.split("\n")
    assert all(lines[line - 1].startswith("msgid ") for line in text.lines)


@fuzz
@given(pairs=PAIRS, end=ENDS, data=st.data())
def test_json_lines_of_pairs(
    tmp_path: Path, pairs: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    ascii_only = data.draw(st.booleans())
    is_nested = data.draw(st.booleans())
    rows: list[dict[str, object]] = [{"en": src, "de": tgt} for src, tgt in pairs]
    if is_nested:
        rows = [{"id": n, "translation": row} for n, row in enumerate(rows)]
    content = "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in rows)
    text = read_pairs(write(tmp_path / "p.jsonl", content, data.draw))
    assert pairs_of(text) == pairs
    assert text.lines == list(range(1, len(pairs) + 1))


CELL = st.text(st.sampled_from(ODD.replace("\r", "") + "\n\t"), max_size=12)
ROWS = st.lists(
    st.tuples(CELL.filter(str.strip), st.sampled_from(["x", "y", "a b"])),
    min_size=1,
    max_size=8,
)


def one_line(text: str) -> str:
    return " ".join(part.strip() for part in text.split("\n") if part.strip())


@fuzz
@given(rows=ROWS, end=ENDS, data=st.data())
def test_csv(
    tmp_path: Path, rows: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    delimiter = data.draw(st.sampled_from(",;\t"))
    buffer = io.StringIO()
    is_quoted = data.draw(st.booleans())
    quoting: Literal[0, 1] = csv.QUOTE_ALL if is_quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(
        buffer, delimiter=delimiter, lineterminator=end, quoting=quoting
    )
    writer.writerows(
        [("id", "text", "label"), *((str(i), *row) for i, row in enumerate(rows))]
    )
    named = data.draw(st.sampled_from(["", f"sep={delimiter}{end}"]))
    text = read_labelled(
        write(tmp_path / "t.csv", named + buffer.getvalue(), data.draw)
    )
    assert text.texts == [one_line(cell) for cell, _ in rows]
    assert text.labels == [(label,) for _, label in rows]
    before = 2 + bool(named)
    begins = [
        before + sum(cell.count("\n") for cell, _ in rows[:i]) + i
        for i in range(len(rows))
    ]
    assert text.lines == begins


@fuzz
@given(rows=ROWS, end=ENDS, data=st.data())
def test_json_lines(
    tmp_path: Path, rows: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    ascii_only = data.draw(st.booleans())
    objects = [
        {"label": label, "text": cell, "n": i} for i, (cell, label) in enumerate(rows)
    ]
    content = "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in objects)
    text = read_labelled(write(tmp_path / "t.jsonl", content, data.draw))
    assert text.texts == [one_line(cell) for cell, _ in rows]
    assert text.lines == list(range(1, len(rows) + 1))


LINE = st.text(
    st.sampled_from(ODD.replace("\r", "") + "\t"), min_size=1, max_size=12
).filter(str.strip)


@fuzz
@given(texts=st.lists(LINE, min_size=1, max_size=8), end=ENDS, data=st.data())
def test_documents_by_line(
    tmp_path: Path, texts: list[str], end: str, data: st.DataObject
) -> None:
    found = read_documents(
        write(tmp_path / "t", "".join(f"{t}{end}" for t in texts), data.draw), "line"
    )
    assert found.texts == texts


@fuzz
@given(
    texts=st.lists(st.lists(LINE, min_size=1, max_size=3), min_size=1, max_size=5),
    end=ENDS,
    data=st.data(),
)
def test_documents_by_blank_line_and_by_file(
    tmp_path: Path, texts: list[list[str]], end: str, data: st.DataObject
) -> None:
    blank = data.draw(st.sampled_from([end, end * 2, f" \t{end}"]))
    content = blank.join("".join(f"{line}{end}" for line in text) for text in texts)
    path = write(tmp_path / "t", content, data.draw)
    found = read_documents(path, "blank-line")
    assert found.texts == ["\n".join(text) for text in texts]
    lines = content.replace("\r\n", "\n").split("\n")
    assert [lines[line - 1] for line in found.lines] == [text[0] for text in texts]
    assert read_documents(path, "file").texts == [content.replace("\r\n", "\n")]


@fuzz
@given(pairs=PAIRS, size=st.integers(1, 9))
def test_columns(tmp_path: Path, pairs: list[tuple[str, str]], size: int) -> None:
    """Of a file by pyarrow, in groups of rows."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    src, tgt = zip(*pairs, strict=True)
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"en": src, "de": tgt}), path, row_group_size=size)
    text = read_pairs([str(path)])
    assert pairs_of(text) == [(one_line(a), one_line(b)) for a, b in pairs]
    assert text.lines == list(range(1, len(pairs) + 1))


def test_every_reader_of_pairs_is_among_those_above() -> None:
    """Of CSV its cells, as labelled rows."""
    readers = {kind.read_pairs for kind in FILE_TYPES.values() if kind.read_pairs}
    compared = {open_tsv, open_csv, open_tmx, open_xliff, open_po, open_jsonl}
    compared.add(open_parquet)
    missing = "compare the new reader with a writer, in a test here, and name it"
    assert readers == compared, missing


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_writers_do_write_what_is_hard(delimiter: str) -> None:
    """Else the tests above would read easy files only."""
    assert {'"', ",", ";", "<", "&", "\u2028", "\x85", "\r"} <= set(ODD)
    assert delimiter in ODD + "\t"
