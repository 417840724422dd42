"""Parallel text: every format gives the same pairs, every wrong file a one-line reason with its
place.
"""

import gzip
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.data.corpus import (
    ParallelText,
    SourceText,
    fingerprint,
    fold,
    from_pairs,
    read_lines,
    read_pairs,
    read_sources,
    split_off,
)
from weft.data.formats import lines, source
from weft.errors import DataError, UsageError

PAIRS = [
    ("Hello.", "Hallo."),
    ("Two beers, please.", "Zwei Bier, bitte."),
    ("你好。", "Guten Tag."),
]
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="{header}"/><body>
{units}
</body></tmx>
"""


@pytest.fixture
def corpora() -> Path:
    folder = Path(
        os.environ.get("WEFT_DATA")
        or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


def write(path: Path, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def unit(**sides: str) -> str:
    inside = (
        f'<tuv xml:lang="{tag.replace("_", "-")}"><seg>{seg}</seg></tuv>'
        for tag, seg in sides.items()
    )
    return f"<tu>{''.join(inside)}</tu>"


def tmx(*units: str, header: str = "en") -> str:
    return TMX.format(header=header, units="\n".join(units))


def pairs_of(text: ParallelText) -> list[tuple[str, str]]:
    return list(zip(text.src, text.tgt, strict=True))


def refusal(data: str | list[str], **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read_pairs(data, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def many(count: int) -> ParallelText:
    return from_pairs(
        [(f"source number {i}", f"target number {i}") for i in range(count)],
        "made",
        "en",
        "de",
    )


class TestFormats:
    @pytest.mark.parametrize("ending", ["", ".gz"])
    def test_tsv_aligned_and_tmx_give_the_same_pairs(
        self, tmp_path: Path, ending: str
    ) -> None:
        tsv = write(
            tmp_path / f"p.en-de.tsv{ending}", "".join(f"{s}\t{t}\n" for s, t in PAIRS)
        )
        src = write(tmp_path / f"p.en{ending}", "".join(f"{s}\n" for s, _ in PAIRS))
        tgt = write(tmp_path / f"p.de{ending}", "".join(f"{t}\r\n" for _, t in PAIRS))
        xml = write(
            tmp_path / f"p.tmx{ending}", tmx(*(unit(en=s, de=t) for s, t in PAIRS))
        )
        texts = [read_pairs([item]) for item in (tsv, f"{src},{tgt}", xml)]
        assert [pairs_of(text) for text in texts] == [PAIRS] * 3
        assert {(text.src_lang, text.tgt_lang) for text in texts} == {("en", "de")}
        assert {fingerprint(text) for text in texts} == {
            fingerprint(from_pairs(PAIRS, "x", "en", "de"))
        }
        assert [text.where(2) for text in texts] == [f"{tsv}:3", f"{src}:3", f"{xml}:5"]

    def test_several_data_are_joined_and_every_pair_knows_its_place(
        self, tmp_path: Path
    ) -> None:
        one = write(tmp_path / "one.tsv", "a\tb\n\nc\td\n")
        two = f"{write(tmp_path / 'x.en', 'e')},{write(tmp_path / 'x.de', 'f')}"
        three = write(tmp_path / "three.txt", "\tleft\ng\th\n")
        text = read_pairs([one, two, three])
        assert pairs_of(text) == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
        assert [text.where(i) for i in range(4)] == [
            f"{one}:1", f"{one}:3", f"{tmp_path / 'x.en'}:1", f"{three}:2",
        ]  # fmt: skip
        assert text.dropped == {"both sides empty": 1, "empty side": 1}
        assert (text.src_lang, text.tgt_lang) == ("en", "de")

    def test_a_name_with_a_comma_is_one_file_if_it_exists(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a,b.tsv", "x\ty\n")
        assert pairs_of(read_pairs([path])) == [("x", "y")]
        aligned = f"{write(tmp_path / 'c,d.en', 'x')},{write(tmp_path / 'e.de', 'y')}"
        assert pairs_of(read_pairs([aligned])) == [("x", "y")]

    def test_further_columns_are_said_and_ragged_ones_refused(
        self, tmp_path: Path
    ) -> None:
        three = write(
            tmp_path / "tatoeba.tsv", "Hi.\tHallo.\tCC-BY 1\nGo.\tGeh.\tCC-BY 2\n"
        )
        text = read_pairs([three])
        assert pairs_of(text) == [("Hi.", "Hallo."), ("Go.", "Geh.")]
        assert len(text.notes) == 1
        assert "3 columns" in text.notes[0]
        ragged = write(tmp_path / "ragged.tsv", "a\tb\n\nc\td\te\n")
        assert "ragged.tsv:3: 3 columns where the lines before have 2" in refusal(
            [ragged]
        )

    def test_a_line_without_tab_is_named(self, tmp_path: Path) -> None:
        assert "p.tsv:2: no TAB" in refusal(
            [write(tmp_path / "p.tsv", "a\tb\nno tab here\n")]
        )

    def test_outer_space_goes_and_inner_text_stays(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "p.tsv", " </s>  a\x0bb\u2028c \t \u3000d\re\x85f\x0cg <pad>\r\n"
        )
        assert pairs_of(read_pairs([path])) == [
            ("</s>  a\x0bb\u2028c", "d\re\x85f\x0cg <pad>")
        ]

    def test_csv_with_two_languages_in_its_first_row(self, tmp_path: Path) -> None:
        rows = 'ID;English;Deutsch\r\n1;"a; ""b""";c\r\n2;d;"e\r\nf"\r\n'
        text = read_pairs([write(tmp_path / "p.csv", rows)])
        assert pairs_of(text) == [('a; "b"', "c"), ("d", "e f")]
        assert (text.src_lang, text.tgt_lang) == ("en", "de")

    @pytest.mark.parametrize(
        "name",
        ["a.json.gz", "a.xlsx", "a.zip", "a.tar.gz"],
    )
    def test_formats_that_are_not_read_are_named(
        self, tmp_path: Path, name: str
    ) -> None:
        message = refusal([write(tmp_path / name, "a\tb\n")])
        assert f"{name}: is " in message
        # the formats of the table, whichever there are
        assert re.search(
            r", not pairs \(.*\.tmx, .*or source<TAB>target lines\); ", message
        )
        assert ("labelled rows" in message) is (name == "a.json.gz")

    def test_a_table_that_does_not_name_its_sides(self, tmp_path: Path) -> None:
        message = refusal([write(tmp_path / "a.csv", "a;b\nc;d\n")])
        assert (
            "a.csv: is a table whose first row does not name the two sides" in message
        )

    @pytest.mark.parametrize("name", ["a.tmx", "a.po", "a.xliff", "a.html"])
    def test_two_files_that_are_no_lines_are_not_read_as_aligned(
        self, tmp_path: Path, name: str
    ) -> None:
        content = tmx(unit(en="a", de="b")) if name == "a.tmx" else "text\n"
        paths = [write(tmp_path / f"{n}{name}", content) for n in "12"]
        message = refusal(",".join(paths))
        assert f"1{name}: is " in message
        assert ", not lines of text, as two aligned files are; " in message
        if name == "a.tmx":
            assert message.endswith(f"name each by itself: {paths[0]} {paths[1]}")
            assert len(read_pairs(paths)) == 2

    def test_missing_files_name_near_matches_and_empty_folders_are_refused(
        self, tmp_path: Path
    ) -> None:
        write(tmp_path / "train.en", "a")
        assert f"did you mean {tmp_path / 'train.en'}?" in refusal(
            [str(tmp_path / "trian.en")]
        )
        assert "no such file" in refusal(
            [f"{tmp_path / 'train.en'},{tmp_path / 'train.de'}"]
        )
        assert "no such files" in refusal(["a,b,c"])
        assert "next to the comma" in refusal(["a.en,"])
        (tmp_path / "empty").mkdir()
        assert "is a folder" in refusal([str(tmp_path / "empty")])
        assert "does not exist" in refusal([str(tmp_path / "gone" / "train.en")])
        assert "cannot be opened" in refusal(["a\0b"])
        assert "cannot be opened" in refusal(["x" * 5000])

    def test_no_data_or_an_empty_name_is_wrong_usage(self) -> None:
        for data in ([], [" "]):
            with pytest.raises(UsageError):
                read_pairs(data)


class TestLanguages:
    def test_given_languages_win_over_file_names(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.en-de.tsv", "a\tb\n")
        text = read_pairs([path], src_lang="EN_us", tgt_lang="deu")
        assert (text.src_lang, text.tgt_lang) == ("en-US", "de")
        assert (
            read_pairs([path], tgt_lang="fr").src_lang,
            read_pairs([path], tgt_lang="fr").tgt_lang,
        ) == (
            "en",
            "fr",
        )

    def test_unknown_languages_are_und(self, tmp_path: Path) -> None:
        text = read_pairs([write(tmp_path / "train.txt", "a\tb\n")])
        assert (text.src_lang, text.tgt_lang) == ("und", "und")

    def test_what_is_no_language_code_is_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", "a\tb\n")
        with pytest.raises(UsageError, match=r"data\.src_lang = 'English'"):
            read_pairs([path], src_lang="English")

    def test_data_that_differ_in_language_are_refused(self, tmp_path: Path) -> None:
        german = write(tmp_path / "p.en-de.tsv", "a\tb\n")
        french = write(tmp_path / "p.en-fr.tsv", "a\tb\n")
        assert "differ in language" in refusal([german, french])
        assert read_pairs([german, french], tgt_lang="de").tgt_lang == "de"


class TestTmx:
    @pytest.mark.parametrize(
        ("segment", "text"),
        [
            (
                'A<bpt i="1">&lt;b&gt;</bpt> <hi>big</hi><ept i="1">q</ept> dog<ut>z</ut>',
                "A big dog",
            ),
            ("First line<ph>&lt;br/&gt;</ph>Second line", "First line Second line"),
            ("a<bpt/><ph/><ept/>b<ph/>, c<ph/>", "a b, c"),
            ("un<bpt>&lt;b&gt;</bpt>believ<ept>&lt;/b&gt;</ept>able", "unbelievable"),
            ("You have <ph>{0}</ph> files", "You have {0} files"),
            (
                "<ph> %1$s </ph>: <it>%(name)s</it> <ph>{{who}}</ph> <ph>%d</ph>",
                "%1$s: %(name)s {{who}} %d",
            ),
            (
                "You have <ph>&lt;x/&gt;</ph> <bpt>{1}</bpt> <ph>100 %</ph> files",
                "You have files",
            ),
            ("Note<ph>fn<sub>a <ph>{0}</ph> footnote</sub></ph> here", "Note here"),
            ("किताब<ph>x</ph>घर की<ph>x</ph>बात", "किताब घर की बात"),
            ("<hi>un</hi>done <hi>now<ph>x</ph>here</hi>", "undone now here"),
        ],
    )
    def test_codes_are_taken_out_and_words_stay_apart(
        self, tmp_path: Path, segment: str, text: str
    ) -> None:
        path = write(
            tmp_path / "p.tmx",
            tmx(unit(en=segment, de="Hund\nund\r\nKatze &amp; M&#228;use")),
        )
        assert pairs_of(read_pairs([path])) == [(text, "Hund und Katze & Mäuse")]

    def test_units_with_codes_are_counted_on_either_side(self, tmp_path: Path) -> None:
        code = "a<ph>x</ph>b"
        units = [
            unit(en="a", de=code),
            unit(en=code, de="b"),
            unit(en="c<ph>{0}</ph>", de="d"),
            unit(en=code, de=""),
        ]
        path = write(tmp_path / "p.tmx", tmx(*units))
        read = read_pairs([path])
        assert read.coded == {path: 2}, (
            "a placeholder that stays is no code, and a unit that is dropped does not count"
        )
        assert read.notes == []  # the check of the pairs names them
        assert read_pairs([path, path]).coded == {path: 4}

    def test_files_without_codes_are_not_named_for_them(self, tmp_path: Path) -> None:
        coded = write(tmp_path / "p.tmx", tmx(unit(en="a<ph>x</ph>b", de="a b")))
        plain = write(tmp_path / "q.tsv", "a\tb\nc\td\n")
        assert read_pairs([plain, coded]).coded == {coded: 1}

    @pytest.mark.long
    def test_a_million_codes_in_a_row_pass_in_seconds(self, tmp_path: Path) -> None:
        start = time.perf_counter()
        path = write(
            tmp_path / "p.tmx",
            tmx(unit(en=f"a {'<bpt/>' * 1_000_000}b", de="<ph/> " * 100_000 + "c")),
        )
        assert pairs_of(read_pairs([path])) == [("a b", "c")]
        assert time.perf_counter() - start < 20

    @pytest.mark.parametrize(
        "doctype",
        [
            "<!DOCTYPE tmx>",
            '<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
            '<!DOCTYPE tmx PUBLIC "-//LISA OSCAR:1998//DTD for Translation Memory eXchange//EN" "tmx14.dtd">',
        ],
    )
    def test_a_document_type_that_only_names_the_format_is_passed_over(
        self, tmp_path: Path, doctype: str
    ) -> None:
        content = tmx(unit(en="a", de="b &amp; c")).replace(
            "?>\n", f"?>\n{doctype}\n", 1
        )
        for name in ("p.tmx", "no_suffix"):
            assert pairs_of(read_pairs([write(tmp_path / name, content)])) == [
                ("a", "b & c")
            ]

    def test_a_place_is_the_line_where_the_unit_begins(self, tmp_path: Path) -> None:
        note = "<note>about\nthe next\nunit</note>"
        units = [
            unit(en="a", de="b").replace("<tuv", f"{note}\n<tuv", 1),
            unit(en="c", de=""),
            unit(en="d", de="e"),
        ]
        path = write(tmp_path / "p.tmx", tmx(*units))
        text = read_pairs([path])
        content = Path(path).read_text().split("\n")
        assert [content[line - 1][:4] for line in text.lines] == ["<tu>", "<tu>"]
        assert [text.where(i) for i in range(2)] == [f"{path}:3", f"{path}:8"]

    def test_where_units_share_a_line_a_place_is_the_number_of_the_unit(
        self, tmp_path: Path
    ) -> None:
        units = [unit(en="a", de="b"), unit(en="c", de=""), unit(en="d", de="e")]
        path = write(tmp_path / "one.tmx", tmx(*units).replace("\n", ""))
        table = write(tmp_path / "p.tsv", "f\tg\n")
        text = read_pairs([table, path, table])
        assert [text.where(i) for i in range(4)] == [
            f"{table}:1", f"{path}: unit 1", f"{path}: unit 3", f"{table}:1",
        ]  # fmt: skip
        assert text.select([2, 0]).where(0) == f"{path}: unit 3"

    def test_languages_match_by_primary_subtag_and_may_be_turned_round(
        self, tmp_path: Path
    ) -> None:
        path = write(
            tmp_path / "p.tmx", tmx(unit(de_DE="Hund", en_US="dog"), header="EN-us")
        )
        text = read_pairs([path])
        assert (text.src, text.src_lang, text.tgt_lang) == (["dog"], "en-US", "de-DE")
        text = read_pairs([path], src_lang="de", tgt_lang="en")
        assert (pairs_of(text), text.src_lang) == ([("Hund", "dog")], "de")
        assert read_pairs([path], src_lang="de").tgt == ["dog"]

    def test_a_direction_against_the_header_is_said(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "p.tmx", tmx(unit(en_US="dog", de_DE="Hund"), header="EN-gb")
        )
        assert read_pairs(path).notes == read_pairs(path, "en", "de").notes == []
        header = f"{path}: its header names en-GB as the source language"
        (note,) = read_pairs(path, "de", "en").notes
        other = "to train en to de, add --set data.src_lang=en --set data.tgt_lang=de"
        assert note == f"{header}, but it is read as de to en; {other}"
        any_language = write(
            tmp_path / "all.tmx", tmx(unit(en="dog", de="Hund"), header="*all*")
        )
        assert read_pairs(any_language, "de", "en").notes == []

    def test_a_header_that_turns_the_units_round_is_said(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tmx", tmx(unit(en="dog", de="Hund"), header="de"))
        text = read_pairs(path)
        header = f"{path}: its header names de as the source language, though its units begin with en"
        other = "to train en to de, add --set data.src_lang=en --set data.tgt_lang=de"
        assert pairs_of(text) == [("Hund", "dog")]
        assert text.notes == [f"{header}: it is read as de to en; {other}"]
        assert read_pairs(path, "de", "en").notes == []

    def test_more_than_two_languages_must_be_chosen(self, tmp_path: Path) -> None:
        units = [unit(en="dog", de="Hund", fr="chien"), unit(en="cat", fr="chat")]
        path = write(tmp_path / "p.tmx", tmx(*units))
        message = refusal([path])
        assert all(
            part in message for part in ("de (1)", "en (2)", "fr (2)", "data.src_lang")
        )
        assert "no segments in ja" in refusal([path], src_lang="ja", tgt_lang="en")
        text = read_pairs([path], src_lang="en", tgt_lang="de")
        assert pairs_of(text) == [("dog", "Hund")]
        assert text.dropped == {"unit without both languages": 1}
        assert pairs_of(read_pairs([path], src_lang="fr", tgt_lang="en"))[1] == (
            "chat",
            "cat",
        )

    def test_the_name_chooses_among_many_languages(self, tmp_path: Path) -> None:
        path = write(tmp_path / "de-en.tmx", tmx(unit(en="dog", de="Hund", fr="chien")))
        assert pairs_of(read_pairs([path])) == [("Hund", "dog")]

    def test_two_kinds_of_one_language_are_two_sides(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "p.tmx", tmx(unit(zh_CN="软件", zh_TW="軟體"), header="zh-CN")
        )
        assert pairs_of(read_pairs([path], src_lang="zh-TW", tgt_lang="zh-CN")) == [
            ("軟體", "软件")
        ]
        assert pairs_of(read_pairs([path])) == [("软件", "軟體")]

    def test_utf_16_is_read_and_other_encodings_are_refused(
        self, tmp_path: Path
    ) -> None:
        wide = tmx(unit(en="dog", de="Mäuse")).replace("UTF-8", "UTF-16")
        assert pairs_of(
            read_pairs([write(tmp_path / "p.tmx", wide.encode("utf-16"))])
        ) == [("dog", "Mäuse")]
        assert pairs_of(
            read_pairs([write(tmp_path / "no_suffix", wide.encode("utf-16"))])
        ) == [("dog", "Mäuse")]
        for name, codec in (("ISO-8859-1", "latin-1"), ("windows-1250", "cp1250")):
            narrow = (
                tmx(unit(en="dog", de="Mäuse")).replace("UTF-8", name).encode(codec)
            )
            assert pairs_of(read_pairs([write(tmp_path / "narrow.tmx", narrow)])) == [
                ("dog", "Mäuse")
            ]
        many_bytes = (
            tmx(unit(zh="中", de="Mitte")).replace("UTF-8", "GB18030").encode("gb18030")
        )
        assert "encoding 'GB18030', which is not read; save it as UTF-8" in refusal(
            [write(tmp_path / "gb.tmx", many_bytes)]
        )

    def test_malformed_cut_off_or_foreign_xml_is_refused_with_its_line(
        self, tmp_path: Path
    ) -> None:
        whole = tmx(unit(en="a", de="b"))
        assert "cut.tmx:" in refusal(
            [write(tmp_path / "cut.tmx", whole[: len(whole) // 2])]
        )
        assert "bad.tmx:3: malformed XML" in refusal(
            [write(tmp_path / "bad.tmx", whole.replace("</seg>", "", 1))]
        )
        broken = whole.encode().replace(b"<seg>b", b"<seg>\xe4b")
        assert f"malformed XML at byte {broken.index(0xE4)}" in refusal(
            [write(tmp_path / "l1.tmx", broken)]
        )
        assert "not TMX" in refusal(
            [write(tmp_path / "p.xml", "<?xml version='1.0'?><feed/>")]
        )

    def test_depth_and_tag_size_are_bounded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deep = tmx(unit(en="<hi>" * 100 + "a" + "</hi>" * 100, de="b"))
        assert "nested deeper" in refusal([write(tmp_path / "deep.tmx", deep)])
        monkeypatch.setattr("weft.data.formats.xml_walk.MAX_TAG_BYTES", 10_000)
        monkeypatch.setattr(source, "CHUNK_BYTES", 1000)
        big = tmx(f"<!--{'x' * 30_000}-->", unit(en="a", de="b"))
        assert "more than 10,000 bytes" in refusal([write(tmp_path / "big.tmx", big)])

    def test_a_segment_longer_than_a_line_may_be_is_dropped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lines, "MAX_LINE_CHARS", 100)
        path = write(
            tmp_path / "p.tmx",
            tmx(unit(en="a" * 101, de="b"), unit(en="a" * 100, de="c")),
        )
        text = read_pairs([path])
        assert (text.tgt, text.dropped, text.lines) == (
            ["c"],
            {"line too long": 1},
            [4],
        )


class TestLines:
    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        max_examples=150,
        deadline=None,
    )
    @given(
        text=st.text(
            st.sampled_from("ab é語\U0001f600\n\r\u2028\u0085\x0b\x0c\t"), max_size=60
        ),
        chunk=st.integers(8, 20),
        bom=st.booleans(),
    )
    def test_lines_are_those_between_line_feeds(
        self, tmp_path: Path, text: str, chunk: int, bom: bool
    ) -> None:
        path = tmp_path / "text"
        path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
        expected = [piece.removesuffix("\r") for piece in text.split("\n")[:-1]]
        expected += (
            [text.rsplit("\n", maxsplit=1)[-1]]
            if not text.endswith("\n") and text
            else []
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "CHUNK_BYTES", chunk)
            assert list(read_lines(path)) == expected

    def test_error_places_are_right_in_any_chunk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "CHUNK_BYTES", 9)
        data = "één\r\nzwei\n三三三\n".encode()
        for tail, fault in (
            (b"vier \xff", "not UTF-8"),
            (b"vier \0", "NUL"),
            (b"vier \xe4\xb8", "not UTF-8"),
        ):
            path = write(tmp_path / "bad", data + tail)
            with pytest.raises(DataError) as caught:
                list(read_lines(path))
            assert f"bad:4: {fault} at the text's byte {len(data) + 5}" in str(
                caught.value
            )

    def test_a_long_line_is_an_error_when_nothing_may_be_dropped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lines, "MAX_LINE_CHARS", 10)
        with pytest.raises(DataError, match=r"text:2: longer than 10"):
            list(
                read_lines(write(tmp_path / "text", "short\n" + "x" * 11 + "\nshort\n"))
            )

    def test_an_empty_file_has_no_lines(self, tmp_path: Path) -> None:
        assert list(read_lines(write(tmp_path / "empty", b""))) == []
        assert list(read_lines(write(tmp_path / "bom", b"\xef\xbb\xbf"))) == []


class TestFold:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Hello, world!", "hello world"),
            ("I can't .", "i can 't"),
            ("Cafe\u0301  au\tlait", "CAFÉ au lait"),
            ("STRASSE", "straße"),
            ("你好，世界。", "你好 世界"),
            ("zero\u200bwidth", "zerowidth"),
        ],
    )
    def test_case_space_and_punctuation_do_not_count(
        self, one: str, other: str
    ) -> None:
        assert fold(one) == fold(other)

    def test_ascii_is_folded_as_any_text_is(self) -> None:
        """Behind a letter that is not ASCII and stays what it is."""
        for code in range(128):
            text = f"a{chr(code)}B{chr(code)}"
            assert f"{fold(text)} 字".split() == fold(f"{text} 字").split()

    @pytest.mark.parametrize(
        ("one", "other"),
        [("3.5", "35"), ("?", "!"), ("5 $", "5 €"), ("कि", "का"), ("a b", "ab")],
    )
    def test_what_differs_in_meaning_stays_different(
        self, one: str, other: str
    ) -> None:
        assert fold(one) != fold(other)


class TestFromPairs:
    def test_the_rules_of_files_hold(self) -> None:
        text = from_pairs(
            [(" a\r\nb ", "c\nd"), ("", "x"), (" ", "\t"), ("e", "f")],
            "demo",
            "en",
            "zh",
        )
        assert pairs_of(text) == [("a b", "c d"), ("e", "f")]
        assert (text.lines, text.where(1)) == ([1, 4], "demo:4")
        assert text.dropped == {"empty side": 1, "both sides empty": 1}

    def test_select_keeps_places(self) -> None:
        text = many(10).select([7, 2])
        assert (text.src, text.where(0), len(text)) == (
            ["source number 7", "source number 2"],
            "made:8",
            2,
        )


class TestFingerprint:
    def test_it_changes_with_content_order_and_language_but_not_with_place(
        self,
    ) -> None:
        text = many(5)
        others = [
            text.select([1, 0, 2, 3, 4]),
            text.select([0, 1, 2, 3]),
            replace(text, src=text.tgt, tgt=text.src),
            replace(text, src_lang="fr"),
            from_pairs([("source number 0 source number 1", "x")], "m", "en", "de"),
        ]
        assert len({fingerprint(text), *map(fingerprint, others)}) == 6
        moved = replace(text, files=["elsewhere"], lines=[9] * 5)
        assert fingerprint(moved) == fingerprint(text)
        assert len(fingerprint(text)) == 64


class TestSplit:
    def test_below_200_pairs_nothing_is_held_out(self) -> None:
        text = many(199)
        assert split_off(text, None, None, seed=1) == (text, None, None)
        assert split_off(many(200), None, None, seed=1)[1] is not None

    @pytest.mark.parametrize(("count", "size"), [(200, 20), (2000, 80), (40_000, 1000)])
    def test_default_sizes(self, count: int, size: int) -> None:
        whole = many(count)
        train, dev, test = split_off(whole, None, None, seed=1)
        assert dev is not None
        assert test is not None
        assert (len(train), len(dev), len(test)) == (count - 2 * size, size, size)
        places = [
            part.where(i) for part in (train, dev, test) for i in range(len(part))
        ]
        assert sorted(places) == sorted(whole.where(i) for i in range(count))

    def test_a_size_of_nought_splits_nothing_off(self) -> None:
        train, dev, test = split_off(many(300), 30, 0, seed=1)
        assert (len(train), dev and len(dev), test) == (270, 30, None)
        assert split_off(many(300), 0, 0, seed=1)[1:] == (None, None)

    def test_nothing_left_to_train_on_is_wrong_usage(self) -> None:
        with pytest.raises(UsageError, match=r"leave none of 300 pairs"):
            split_off(many(300), 200, 100, seed=1)

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(
            st.tuples(st.integers(0, 150), st.integers(0, 150)),
            min_size=200,
            max_size=260,
        ),
        st.integers(0, 9),
    )
    def test_no_source_or_target_stands_on_both_sides(
        self, numbers: list[tuple[int, int]], seed: int
    ) -> None:
        pairs = [
            (f"Source {a}" + "!" * (i % 2), f"target {b}" + "." * (i % 3))
            for i, (a, b) in enumerate(numbers)
        ]
        parts = [
            part
            for part in split_off(from_pairs(pairs, "x", "en", "de"), 30, 30, seed)
            if part
        ]
        assert sum(map(len, parts)) == len(pairs)
        for key in ("src", "tgt"):
            folded = [set(map(fold, getattr(part, key))) for part in parts]
            assert sum(map(len, folded)) == len(set().union(*folded))

    def test_a_frequent_sentence_stays_in_training(self) -> None:
        pairs = [("OK.", f"answer {i}") for i in range(400)] + [
            (f"source {i}", f"target {i}") for i in range(600)
        ]
        train, dev, test = split_off(
            from_pairs(pairs, "x", "en", "de"), None, None, seed=3
        )
        assert train.src.count("OK.") == 400
        assert (dev and len(dev), test and len(test)) == (40, 40)

    def test_small_groups_of_repeats_are_held_out_whole(self) -> None:
        pairs = [(f"source {i // 2}", f"target {i}") for i in range(2000)]
        _, dev, _ = split_off(from_pairs(pairs, "x", "en", "de"), 100, 0, seed=1)
        assert dev is not None
        assert (len(dev), len(set(dev.src))) == (100, 50)

    def test_it_depends_on_seed_and_content_alone(self) -> None:
        text = many(1000)
        again = split_off(text, None, None, seed=7)
        assert split_off(text, None, None, seed=7) == again
        assert split_off(text, None, None, seed=8)[1] != again[1]
        backwards = split_off(text.select(range(999, -1, -1)), None, None, seed=7)[1]
        assert again[1] is not None
        assert backwards is not None
        assert sorted(backwards.src) == sorted(again[1].src)
        assert set(split_off(text, 60, None, seed=7)[2].src) == set(again[2].src)  # type: ignore[union-attr]

    def test_it_does_not_depend_on_the_hash_seed(self) -> None:
        code = (
            "from weft.data.corpus import *; "
            "t = from_pairs([(f'a {i}', f'b {i // 3}') for i in range(900)], 'x', 'en', 'de'); "
            "print([fingerprint(p) for p in split_off(t, None, None, 1)])"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True, text=True, check=True,
            ).stdout
            for seed in ("1", "2")
        }  # fmt: skip
        assert len(outputs) == 1


class TestRealCorpora:
    def test_counts_languages_and_speed(self, corpora: Path) -> None:
        start = time.perf_counter()
        text = read_pairs([f"{corpora}/multi30k/train.en,{corpora}/multi30k/train.de"])
        assert time.perf_counter() - start < 0.5
        assert (len(text), text.src_lang, text.tgt_lang, text.dropped) == (
            29_000,
            "en",
            "de",
            {},
        )
        chinese = read_pairs([f"{corpora}/en-cn/train.txt"])
        assert (len(chinese), chinese.dropped, chinese.notes) == (14_533, {}, [])

    def test_fifty_thousand_pairs_are_split_in_two_seconds(self, corpora: Path) -> None:
        folder = corpora / "small_parallel_enja"
        text = read_pairs([f"{folder}/train.en,{folder}/train.ja"])
        start = time.process_time()  # what else runs here does not count
        train, dev, test = split_off(text, None, None, seed=1)
        assert time.process_time() - start < 2
        assert [len(part) for part in (train, dev, test) if part] == [
            48_000,
            1000,
            1000,
        ]


def test_languages_the_other_way_round_are_said(tmp_path: Path) -> None:
    """The settings, or a model's languages, decide; a name that says the opposite is worth a
    note.
    """
    aligned = f"{write(tmp_path / 'a.de', 'Hund')},{write(tmp_path / 'a.en-GB', 'dog')}"
    (note,) = read_pairs([aligned], "en", "de").notes
    assert note == f"{aligned}: named de to en-GB, but read as en to de; is that right?"
    assert read_pairs([aligned], "de", "en").notes == []
    assert read_pairs([aligned]).notes == []
    assert read_pairs([aligned], "fr", "it").notes == []
    table = write(tmp_path / "pairs.de-en.tsv", "Hund\tdog")
    assert "named de to en" in read_pairs([table], "en", "de").notes[0]


# Sources alone


def test_sources_of_every_form(tmp_path: Path) -> None:
    sides = [
        write(tmp_path / f"a.{lang}", f"{lang} one\n\n{lang} three\n")
        for lang in ("en", "de")
    ]
    table = write(tmp_path / "b.tsv", "two\tzwei\nthree\t\n")
    units = write(tmp_path / "c.tmx", tmx(unit(en="four", de="vier")))
    plain = write(
        tmp_path / "d.en.gz", "\n  five \r\n\nsix\tand tab\n" + "x" * 1_000_001 + "\n"
    )
    cells = write(tmp_path / "e.csv", "German,English\nsieben,seven\n")
    items = [",".join(sides), table, units, plain, cells]
    text = read_sources(items, "en", "de")
    assert text.lines == [
        "en one",
        "en three",
        "two",
        "four",
        "five",
        "six\tand tab",
        "seven",
    ]
    assert text.dropped == {
        "both sides empty": 1,
        "empty side": 1,
        "empty line": 2,
        "line too long": 1,
    }
    turned, names = text.notes
    assert f"{cells}: its columns are turned round and read as en to de" in turned
    assert f"{cells}: the first row names the columns" in names


def test_sources_depend_on_sentences_and_order(tmp_path: Path) -> None:
    first, other, joined = (
        write(tmp_path / name, s)
        for name, s in zip("abc", ("p\nq\n", "q\np\n", "pq\n"), strict=True)
    )
    assert len({read_sources([path]).sha256() for path in (first, other, joined)}) == 3
    assert (
        read_sources([first]).sha256()
        == read_sources([write(tmp_path / "t.tsv", "p\tP\nq\tQ\n")]).sha256()
    )


def test_sources_may_hold_half_a_character() -> None:
    """As the escapes of JSON can, and UTF-8 cannot."""
    halves = ("a \ud800", "a \udc00")
    assert len({SourceText([line], {}, []).sha256() for line in halves}) == 2


def test_a_plain_text_named_otherwise_is_noted(tmp_path: Path) -> None:
    path = write(tmp_path / "train.de", "Hallo.\n")
    assert read_sources([path], "en", "de").notes == [
        f"{path}: named de, but read as en; is that right?"
    ]
    assert read_sources([path], "de-AT", "en").notes == []
    assert read_sources([path]).notes == []


def test_a_table_whose_later_line_has_no_tab_is_no_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "one\teins\ntwo\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: no TAB"):
        read_sources([path])
