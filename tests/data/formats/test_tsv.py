"""Pairs in TSV as people have them: quoted by a spreadsheet or by a person, with a row of names or
without.
"""

import csv
import io
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.corpus import ParallelText, read_pairs
from weft.data.formats.cells import find_quoting
from weft.data.formats.header import find_header
from weft.errors import DataError

# Sentences with quotes of their own, as people write them.
SPOKEN = [
    ('"Yes," he said.', "« Oui », dit-il."),
    ('He said "yes".', '"Oui", dit-il.'),
    ('"Yes."', '"Oui."'),
    ('"Come', "« Viens"),
    ("here, Tom.", 'ici, Tom".'),
    ('"', '"'),
    ('5" wide, 3" high', "large"),
    ("plain, with a comma", "simple"),
    ("plain", "simple"),
]
SPREADSHEET = [
    ('He said "yes".', 'Il a dit "oui".'),
    ("One, two, three.", "Un, deux, trois."),
    ("plain", "simple"),
    ('"Quoted."', "« Cité. »"),
    ('"', "guillemet"),
]


@pytest.fixture
def corpora() -> Path:
    folder = Path(
        os.environ.get("WEFT_DATA")
        or Path(__file__).resolve().parents[3].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


def write(path: Path, content: str) -> str:
    path.write_bytes(content.encode())
    return str(path)


def plain(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)


def as_excel(pairs: list[tuple[str, ...]]) -> str:
    """Text separated by TABs as Excel saves it: cells with a comma, a quote, a TAB or a line end
    are quoted.
    """

    def cell(text: str) -> str:
        return (
            '"{}"'.format(text.replace('"', '""'))
            if set(text) & set(',"\t\n')
            else text
        )

    return "".join("\t".join(map(cell, row)) + "\r\n" for row in pairs)


def by_library(pairs: list[tuple[str, str]], quoting: int = csv.QUOTE_MINIMAL) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter="\t", lineterminator="\n", quoting=quoting).writerows(
        pairs
    )  # type: ignore[arg-type]
    return buffer.getvalue()


def pairs_of(text: ParallelText) -> list[tuple[str, str]]:
    return list(zip(text.src, text.tgt, strict=True))


class TestQuoting:
    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (as_excel(list(SPREADSHEET)), "cells"),
            (by_library(SPREADSHEET), "cells"),
            (by_library(SPREADSHEET, csv.QUOTE_ALL), "cells"),
            (
                by_library([(f"a{i}", f"b{i}") for i in range(5)], csv.QUOTE_ALL),
                "cells",
            ),
            (as_excel([(f"{i}, a", "b") for i in range(5)]), "cells"),
        ],
        ids=["Excel", "minimal", "all", "all without quotes", "commas alone"],
    )
    def test_what_a_spreadsheet_wrote_is_read_without_its_quotes(
        self, tmp_path: Path, content: str, kind: str
    ) -> None:
        path = write(tmp_path / "p.tsv", content)
        assert find_quoting(Path(path)).kind == kind
        text = read_pairs(path)
        assert not any('""' in side or side.startswith('"a') for side in text.src)
        assert any(
            "cells are quoted, as spreadsheets write TSV; they are read without" in n
            for n in text.notes
        )
        if "yes" in content:
            assert pairs_of(text) == SPREADSHEET

    def test_cells_that_go_over_lines_are_one_cell(self, tmp_path: Path) -> None:
        rows = [("a", "b"), ("one\ntwo", 'three "four"'), ("c", "d\n\ne"), ("f", "g")]
        path = write(tmp_path / "p.tsv", as_excel(list(rows)))
        text = read_pairs(path)
        assert pairs_of(text) == [
            ("a", "b"),
            ("one two", 'three "four"'),
            ("c", "d e"),
            ("f", "g"),
        ]
        assert text.lines == [1, 2, 4, 7]
        assert "some go over several lines" in text.notes[0]

    def test_a_cell_may_hold_a_tab(self, tmp_path: Path) -> None:
        rows = [("a", "b"), ("one\ttwo", 'three "four"'), ("c", "d")]
        assert (
            pairs_of(read_pairs(write(tmp_path / "p.tsv", as_excel(list(rows)))))
            == rows
        )

    def test_quotes_of_people_are_never_touched(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", plain(SPOKEN))
        text = read_pairs(path)
        assert pairs_of(text) == SPOKEN
        assert text.notes == []

    @pytest.mark.parametrize("left_out", range(len(SPOKEN)))
    def test_not_in_a_part_of_such_text_either(
        self, tmp_path: Path, left_out: int
    ) -> None:
        some = SPOKEN[:left_out] + SPOKEN[left_out + 1 :]
        assert pairs_of(read_pairs(write(tmp_path / "p.tsv", plain(some)))) == some

    def test_two_quotes_far_apart_hold_no_rows_between_them(
        self, tmp_path: Path
    ) -> None:
        """A quote that opens in one pair and closes in a later one is sound as a quoted cell over
        many lines.
        """
        spoken = [
            ('"I am coming.', "« J'arrive."),
            ('Wait for me."', "Attends-moi. »"),
            ("a", "b"),
        ]
        assert pairs_of(read_pairs(write(tmp_path / "p.tsv", plain(spoken)))) == spoken

    @pytest.mark.parametrize(("doubled", "kind"), [(39, "none"), (40, "cells")])
    def test_a_few_exceptions_are_left_as_they_are(
        self, tmp_path: Path, doubled: int, kind: str
    ) -> None:
        content = (
            as_excel([(f'{i} "a"', "b") for i in range(doubled)])
            + 'He said "c".\td\n"Yes," he said.\te\n'
        )
        path = write(tmp_path / "p.tsv", content)
        assert find_quoting(Path(path)).kind == kind
        text = read_pairs(path)
        assert text.src[-2:] == ['He said "c".', '"Yes," he said.']
        assert text.src[0] == ('0 "a"' if kind == "cells" else '"0 ""a"""')
        assert len(text.notes) == 1

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_whatever_the_library_writes_is_read_back(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        cell = st.text(st.sampled_from('ab",; é\u2028'), min_size=1, max_size=8).filter(
            str.strip
        )
        table = data.draw(st.lists(st.tuples(cell, cell), min_size=1, max_size=8))
        table.append(('he said "a"', "b"))  # without any quote within, nothing tells
        content = by_library(
            table, data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        )
        path = write(tmp_path_factory.mktemp("tsv") / "p.tsv", content)
        assert pairs_of(read_pairs(path)) == [
            (src.strip(), tgt.strip()) for src, tgt in table
        ]

    def test_real_text_through_a_spreadsheet(
        self, corpora: Path, tmp_path: Path
    ) -> None:
        folder = corpora / "menyo20k"
        if not folder.is_dir():
            pytest.skip(
                f"{folder} is absent; set WEFT_DATA to a folder that holds menyo20k"
            )
        whole = read_pairs(f"{folder / 'train.en'},{folder / 'train.yo'}")
        pairs = pairs_of(whole)
        assert sum('"' in src for src in whole.src) > 100
        untouched = read_pairs(write(tmp_path / "plain.tsv", plain(pairs)))
        assert pairs_of(untouched) == pairs
        for some in (pairs, random.Random(1).sample(pairs, 500)):
            for content in (
                as_excel(list(some)),
                by_library(some),
                by_library(some, csv.QUOTE_ALL),
            ):
                assert pairs_of(read_pairs(write(tmp_path / "p.tsv", content))) == some


class TestHeader:
    @pytest.mark.parametrize(
        ("header", "langs"),
        [
            ("en\tyor", ("en", "yo")),
            ("EN\tzh-CN", ("en", "zh-CN")),
            ("English\tYorùbá", ("en", "yo")),
            ("english\tDeutsch", ("en", "de")),
            ("source\ttarget", ("und", "und")),
            ("SRC\tTRG", ("und", "und")),
            ("Source text\tTranslation", ("und", "und")),
            ("source_en\ttarget_de", ("en", "de")),
            ("sentence_eng\tsentence_yor", ("en", "yo")),
            ('"en"\t"de"', ("en", "de")),
        ],
    )
    def test_a_row_of_names_is_no_pair(
        self, tmp_path: Path, header: str, langs: tuple[str, str]
    ) -> None:
        row = '"a ""b"""\t"c"\n' if header.startswith('"') else "a\tc\n"
        path = write(tmp_path / "p.tsv", f"\n{header}\n{row}")
        text = read_pairs(path)
        assert (len(text), text.tgt, text.lines) == (1, ["c"], [3])
        assert (text.src_lang, text.tgt_lang) == langs
        assert "the first row names the columns (" in text.notes[-1]

    @pytest.mark.parametrize(
        "row",
        [
            "German\tDeutsch",  # the same language, in two
            "no\tno",
            "Text\ttext",
            "source\tQuelle",
            "English is hard.\tEnglisch ist schwer.",
            "No\tEs",
            "Hi\tHallo",
            "a\tb",
            "the original\tl'original",
        ],
    )
    def test_a_pair_is_no_row_of_names(self, tmp_path: Path, row: str) -> None:
        text = read_pairs(write(tmp_path / "p.tsv", f"{row}\nx\ty\n"))
        assert (len(text), text.notes) == (2, [])

    def test_two_codes_that_are_words_are_a_pair_where_the_languages_are_others(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.tsv", "to\tzu\nx\ty\n")  # Tongan and Zulu
        assert len(read_pairs(path, "en", "de")) == 2
        assert len(read_pairs(write(tmp_path / "p.en-de.tsv", "to\tzu\nx\ty\n"))) == 2
        assert (
            len(read_pairs(path, "to", "zu")) == len(read_pairs(path, "zu", "to")) == 1
        )

    def test_columns_are_taken_by_their_names(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", "id\ten\tde\tfr\n1\tdog\tHund\tchien\n")
        assert pairs_of(read_pairs(path)) == [("dog", "Hund")]
        assert pairs_of(read_pairs(path, "fr", "en")) == [("chien", "dog")]
        assert pairs_of(read_pairs(path, tgt_lang="fr-CA")) == [("dog", "chien")]
        assert (
            f"{path}: 4 columns in every line; columns 2 and 3 are used"
            in read_pairs(path).notes
        )
        turned = write(tmp_path / "t.tsv", "target\tsource\nHund\tdog\n")
        assert pairs_of(read_pairs(turned)) == [("dog", "Hund")]

    def test_the_direction_and_how_to_have_the_other_are_said(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.tsv", "en\tyor\na\tb\n")
        named = f"{path}: the first row names the columns (en and yor) and is no pair"
        other = "to train yo to en, add --set data.src_lang=yo --set data.tgt_lang=en"
        assert read_pairs(path).notes == [f"{path}: read as en to yo; {other}", named]
        text = read_pairs(path, "yo", "en")
        other = "to train en to yo, add --set data.src_lang=en --set data.tgt_lang=yo"
        assert pairs_of(text) == [("b", "a")]
        assert (
            text.notes[0]
            == f"{path}: its columns are turned round and read as yo to en; {other}"
        )
        assert read_pairs(path, "en", "yo").notes == [named]

    @pytest.mark.parametrize(
        ("head", "src", "tgt"),
        [
            ("Source\tEnglish\tYoruba", "English", "Yoruba"),
            ("No\tEnglish\tYoruba\tSource", "English", "Yoruba"),
            ("src\ttgt\ten\tyo", "en", "yo"),
            ("no\tEnglish\tYoruba", "English", "Yoruba"),
            ("source\ttarget\tEnglish", "source", "target"),
            ("Source\ttarget_yo\tsource_en", "source_en", "target_yo"),
        ],
    )
    def test_languages_are_taken_before_columns_called_source(
        self, tmp_path: Path, head: str, src: str, tgt: str
    ) -> None:
        path = write(tmp_path / "p.tsv", f"{head}\n{head.upper()} x\n")
        names = head.split("\t")
        [pair] = pairs_of(read_pairs(path))
        wanted = [f"{head.upper()} x".split("\t")[names.index(n)] for n in (src, tgt)]
        assert list(pair) == wanted

    def test_a_language_asked_for_is_never_beside_a_column_called_source(
        self, tmp_path: Path
    ) -> None:
        rows = "No;English;Yoruba;Source\n1;dog;aja;book\n"
        path = write(tmp_path / "p.csv", rows)
        assert pairs_of(read_pairs(path)) == [("dog", "aja")]
        assert pairs_of(read_pairs(path, tgt_lang="en")) == [("aja", "dog")]
        assert pairs_of(read_pairs(path, "yo", "en")) == [("aja", "dog")]

    def test_names_of_other_languages_than_asked_are_said(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", "English\tYoruba\na\tb\n")
        text = read_pairs(path, "en", "de")
        assert (text.src, text.tgt_lang) == (["a"], "de")
        assert (
            f"{path}: its columns are named en to yo, but read as en to de; is that right?"
            in text.notes
        )
        assert read_pairs(path, "en", "yo").notes == [
            f"{path}: the first row names the columns (English and Yoruba) and is no pair"
        ]
        assert pairs_of(read_pairs(path, "yo", "en")) == [("b", "a")]

    @pytest.mark.parametrize(
        ("header", "langs"),
        [
            ("English (United States)\tFrench (France)", ("en", "fr")),
            ("English (US)\tFrench (FR)", ("en-US", "fr-FR")),
            ("Portuguese [Brazil]\tChinese（Simplified）", ("pt", "zh")),
            ("Anglais\tFrançais", ("en", "fr")),
            ("Cherokee\tEnglish", ("chr", "en")),
        ],
    )
    def test_a_language_is_known_with_its_region_and_in_other_languages(
        self, tmp_path: Path, header: str, langs: tuple[str, str]
    ) -> None:
        rows = "".join(f"The dog {i}\tLe chien {i}\n" for i in range(9))
        text = read_pairs(write(tmp_path / "p.tsv", f"{header}\n{rows}"))
        assert len(text) == 9
        assert (text.src_lang, text.tgt_lang) == langs
        more = "".join(f"{i}\tThe dog {i}\tLe chien {i}\tok\n" for i in range(9))
        wide = write(tmp_path / "w.tsv", f"Segment\t{header}\tStatus\n{more}")
        text = read_pairs(wide)
        assert (len(text), text.src[0]) == (9, "The dog 0")
        assert (text.src_lang, text.tgt_lang) == langs

    def test_what_else_stands_in_brackets_is_no_region(self, tmp_path: Path) -> None:
        for header in ("English (draft)\tFrench (draft)", "Dog (US)\tCat (FR)"):
            path = write(tmp_path / "p.tsv", f"{header}\nx\ty\n")
            assert len(read_pairs(path)) == 2

    @pytest.mark.parametrize(
        ("header", "texts", "langs"),
        [
            ("Segment\tUnsere\tEure\tWer", (1, 2), ("und", "und")),
            ("Segment\tUnsere\tEnglish\tWer", (1, 2), ("und", "en")),
            ("Nr.\tWer\tUnsere\tEnglish", (1, 3), ("und", "en")),
        ],
    )
    def test_a_column_of_numbers_is_no_side_and_what_stands_above_it_a_name(
        self,
        tmp_path: Path,
        header: str,
        texts: tuple[int, int],
        langs: tuple[str, str],
    ) -> None:
        rows = [[f"{i}", f"one {i}", f"two {i}", f"three {i}"] for i in range(9)]
        lines = "".join("\t".join(row) + "\n" for row in rows)
        path = write(tmp_path / "p.tsv", f"{header}\n{lines}")
        text = read_pairs(path)
        src, tgt = texts
        assert pairs_of(text) == [(row[src], row[tgt]) for row in rows]
        assert (text.src_lang, text.tgt_lang) == langs
        used = f"4 columns in every line; columns {src + 1} and {tgt + 1} are used"
        assert f"{path}: {used}" in text.notes
        # without a header, nothing is lost
        text = read_pairs(write(tmp_path / "bare.tsv", lines))
        assert pairs_of(text) == [(row[1], row[2]) for row in rows]
        assert text.notes[0].endswith(
            "columns 2 and 3 are used, the first two that do not hold numbers alone"
        )

    def test_two_columns_of_numbers_and_words_are_pairs(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", "1\tone\n2\ttwo\n3\tthree\n")
        assert pairs_of(read_pairs(path))[0] == ("1", "one")

    def test_unknown_names_above_sentences_are_doubted(self, tmp_path: Path) -> None:
        rows = "".join(f"The dog saw {i} men\tDen hund {i} sa\n" for i in range(30))
        path = write(tmp_path / "p.tsv", f"Quelltext\tZieltext\n{rows}")
        doubt = (
            f"{path}: the first row (Quelltext, Zieltext) is read as a pair; if it names the columns, "
            "name them by languages (English, Deutsch), or source and target"
        )
        for langs in ((), ("en", "da")):
            assert doubt in read_pairs(path, *langs).notes
        short = "".join(f"Dog {i}\tHund {i}\n" for i in range(5))
        text = read_pairs(write(tmp_path / "s.tsv", f"Hello\tHallo\n{rows}{short}"))
        assert text.notes == []

    def test_a_header_alone_holds_no_pair(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no pair with text on both sides"):
            read_pairs(write(tmp_path / "p.tsv", "source\ttarget\n"))

    @pytest.mark.long
    def test_real_first_rows_are_pairs(self, corpora: Path) -> None:
        seen = 0
        for path in corpora.rglob("*.en"):
            for other in path.parent.glob(f"{path.stem}.*"):
                with (
                    path.open(encoding="utf-8") as src,
                    other.open(encoding="utf-8", errors="replace") as tgt,
                ):
                    rows = [
                        (a.rstrip("\n"), b.rstrip("\n"))
                        for a, b in zip(src, tgt, strict=False)
                    ]
                assert not any(
                    find_header(row, None, None)
                    for row in rows
                    if "\t" not in "".join(row)
                )
                seen += len(rows)
        assert seen > 10_000
