"""First rows of CSV and TSV that name languages which are not known, and rows that are pairs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft.data.corpus import ParallelText, read_pairs
from weft.data.formats.header import are_sentences, find_header, looks_like_a_pair
from weft.data.kind import guess_task
from weft.data.labelled import read_labelled
from weft.errors import DataError

SENTENCES = [
    (f"Number {i} of the men went home.", f"Mukul {i} el folokla nu lohm.")
    for i in range(12)
]
WORDS = [(f"dog{i}", f"hund{i}") for i in range(12)]


def write(
    path: Path, head: str, rows: list[tuple[str, str]], between: str = "\t"
) -> str:
    lines = [head, *(between.join(row) for row in rows)] if head else []
    lines = lines or [between.join(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def langs_of(text: ParallelText) -> tuple[str, str]:
    return text.src_lang, text.tgt_lang


def refusal(path: str, *langs: str) -> str:
    with pytest.raises(DataError) as caught:
        read_pairs(path, *langs)
    return str(caught.value)


class TestCsv:
    @pytest.mark.parametrize("head", ["kos;en", "KOS;EN", "kos;chr", "Igbo;Eng"])
    def test_a_header_of_codes_names_any_language(
        self, tmp_path: Path, head: str
    ) -> None:
        text = read_pairs(write(tmp_path / "p.csv", head, SENTENCES, ";"))
        named = {"Igbo": "ig", "Eng": "en"}
        src, tgt = (named.get(name, name.lower()) for name in head.split(";"))
        assert (len(text), langs_of(text)) == (len(SENTENCES), (src, tgt))

    @pytest.mark.parametrize(
        ("head", "settings"),
        [
            ("English;Kosraean", "--set data.src_lang=en --set data.tgt_lang=kos"),
            ("Kosraean;English", "--set data.src_lang=kos --set data.tgt_lang=en"),
        ],
    )
    def test_the_unknown_name_and_the_settings_that_help_are_said(
        self, tmp_path: Path, head: str, settings: str
    ) -> None:
        path = write(tmp_path / "p.csv", head, SENTENCES, ";")
        message = refusal(path)
        assert "; say the codes of both languages (" in message
        assert ": Weft knows no language by the name or code Kosraean; say" in message
        own = "kos stands for the code of Kosraean"
        assert f"({settings}; {own}), or name two" in message
        langs = [part.split("=")[1] for part in settings.split() if "=" in part]
        text = read_pairs(path, *langs)
        assert (len(text), langs_of(text)) == (len(SENTENCES), tuple(langs))
        assert text.src[0] == SENTENCES[0][0]

    def test_the_language_that_is_named_decides_which_column_is_the_source(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.csv", "Kosraean,English", WORDS, ",")
        text = read_pairs(path, "en", "kos")
        assert (text.src[0], text.tgt[0]) == (WORDS[0][1], WORDS[0][0])
        assert (
            f"{path}: its columns are turned round and read as en to kos"
            in (text.notes[0])
        )
        text = read_pairs(path, "kos")
        assert (text.src[0], langs_of(text)) == (WORDS[0][0], ("kos", "en"))
        assert "Weft knows no language" in refusal(path, "en")

    def test_two_columns_of_any_names_are_read_by_the_settings(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.csv", "Kosraean,Cherokee", WORDS, ",")
        text = read_pairs(path, "kos", "chr")
        assert (len(text), langs_of(text)) == (len(WORDS), ("kos", "chr"))
        assert "name two of its columns by languages (English,Deutsch)" in refusal(path)

    def test_a_header_of_other_codes_than_asked_is_doubted(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.csv", "de,en", WORDS, ",")
        text = read_pairs(path, "fr", "en")
        assert (len(text), text.src[0]) == (len(WORDS), WORDS[0][0])
        doubt = f"{path}: its columns are named de to en, but read as fr to en; is that right?"
        assert doubt in text.notes

    def test_three_columns_are_not_guessed(self, tmp_path: Path) -> None:
        path = tmp_path / "p.csv"
        path.write_text("No,English,Kosraean\n1,a,b\n")
        message = refusal(str(path), "en", "kos")
        assert "by the name or code No and Kosraean; name two of its columns" in message
        path.write_text("No,English,kos\n1,a,b\n")
        assert read_pairs(str(path), "en", "kos").tgt == ["b"]

    def test_pairs_without_a_header(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.csv", "", SENTENCES, ";")
        message = refusal(path)
        assert "looks like pairs of sentences without a header; add a first" in message
        assert message.endswith("their languages (English;Deutsch), or source;target")
        text = read_pairs(path, "en", "kos")
        assert (len(text), text.src[0]) == (len(SENTENCES), SENTENCES[0][0])
        assert any("names no languages and is read as a pair" in n for n in text.notes)


class TestMoreThanTwoColumns:
    """`#` stands for a number, `+` for one of three words, `-` for a source, `=` for a target."""

    @pytest.fixture
    def table(self, tmp_path: Path, ending: str) -> Callable[[str, str], str]:
        def write(head: str, kinds: str) -> str:
            between = "\t" if ending == "tsv" else ","
            lines = [head.replace(",", between)]
            for i, (src, tgt) in enumerate(SENTENCES):
                cells = {"#": str(i), "+": "abc"[i % 3], "-": src, "=": tgt}
                lines.append(between.join(cells[kind] for kind in kinds))
            path = tmp_path / f"p.{ending}"
            path.write_text("\n".join(lines) + "\n", "utf-8")
            return str(path)

        return write

    @pytest.mark.parametrize("ending", ["csv", "tsv"])
    @pytest.mark.parametrize(
        ("head", "kinds", "langs"),
        [
            ("No,en,chr", "#-=", ("en", "chr")),
            ("ID,en,kos,Speaker", "#-=+", ("en", "kos")),
            ("kos,English,Domain", "-=+", ("kos", "en")),
            ("tag,EN,url,KOS", "+-+=", ("en", "kos")),
            ("S/N,English,Yoruba (translated)", "#-=", ("en", "yo")),
            ("Igbo (by hand),English (draft),Note", "-=+", ("ig", "en")),
        ],
    )
    def test_a_code_that_nobody_knows_and_a_name_that_is_explained(
        self,
        table: Callable[[str, str], str],
        head: str,
        kinds: str,
        langs: tuple[str, str],
    ) -> None:
        path = table(head, kinds)
        assert guess_task(path) == "translation"
        text = read_pairs(path)
        assert langs_of(text) == langs
        assert (text.src[0], text.tgt[0]) == SENTENCES[0]
        src, tgt = langs
        turned = read_pairs(path, tgt, src)
        assert (turned.src[0], langs_of(turned)) == (SENTENCES[0][1], (tgt, src))

    @pytest.mark.parametrize("ending", ["csv"])
    @pytest.mark.parametrize(
        ("head", "kinds"),
        [
            ("ID,English,tag", "#-+"),
            ("ID,mos,kos", "#-="),
            ("English (draft),English (final),label", "-=+"),
            ("English,kos,label", "-=+"),
        ],
    )
    def test_other_tables_are_rows(
        self, table: Callable[[str, str], str], head: str, kinds: str
    ) -> None:
        assert guess_task(table(head, kinds)) == "classification"

    @pytest.mark.parametrize("ending", ["csv"])
    def test_both_ways_out_are_said_where_it_stays_unclear(
        self, table: Callable[[str, str], str]
    ) -> None:
        path = table("ID,Tsalagi,English,Note", "#-=+")
        with pytest.raises(DataError) as caught:
            read_labelled([path])
        assert "--set data.text_column=... --set data.label_column=" in str(
            caught.value
        )
        pairs = "if these are pairs, name two columns by their languages or codes (English,Deutsch or en,kos)"
        assert pairs in str(caught.value)
        assert "languages (English,Deutsch) or their codes (en,kos), or" in refusal(
            path
        )


class TestTsv:
    def test_one_known_language_beside_another_name_is_said(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.tsv", "English\tOur language", SENTENCES)
        text = read_pairs(path)
        assert len(text) == len(SENTENCES) + 1
        note = (
            f"{path}: the first row (English, Our language) is read as a pair; if it names the columns, "
            "add --set data.src_lang=en --set data.tgt_lang=kos (kos stands for the code of Our language), "
            "or name them source and target"
        )
        assert text.notes == [note]
        text = read_pairs(path, "en", "kos")
        assert (len(text), langs_of(text)) == (len(SENTENCES), ("en", "kos"))
        text = read_pairs(path, "kos", "en")
        assert (text.tgt[0], len(text)) == (SENTENCES[0][0], len(SENTENCES))

    def test_the_language_asked_for_above_sentences_is_a_name(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "p.tsv", "Our language\tEnglish", SENTENCES)
        text = read_pairs(path, tgt_lang="en")
        assert (len(text), langs_of(text)) == (len(SENTENCES), ("und", "en"))
        text = read_pairs(path, "en")
        assert (len(text), langs_of(text)) == (len(SENTENCES), ("en", "und"))
        words = write(tmp_path / "w.tsv", "Our language\tEnglish", WORDS)
        assert len(read_pairs(words, tgt_lang="en")) == len(WORDS) + 1

    def test_a_code_that_nobody_knows_beside_another(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tsv", "en\tkos", SENTENCES)
        text = read_pairs(path)
        assert (len(text), langs_of(text)) == (len(SENTENCES), ("en", "kos"))
        words = write(tmp_path / "w.tsv", "en\tkos", WORDS)
        assert len(read_pairs(words)) == len(WORDS) + 1
        assert len(read_pairs(words, "en", "kos")) == len(WORDS)
        both = write(tmp_path / "b.tsv", "mos\tkos", SENTENCES)
        assert len(read_pairs(both)) == len(SENTENCES) + 1
        assert len(read_pairs(both, "kos", "mos")) == len(SENTENCES)

    @pytest.mark.parametrize(
        "row", ["English\tEnglisch", "English\tAnglais", "no\tnie", "German\tDeutsch"]
    )
    def test_the_words_of_a_dictionary_are_a_pair(
        self, tmp_path: Path, row: str
    ) -> None:
        path = write(tmp_path / "p.tsv", row, WORDS)
        for langs in ((), ("en", "de")):
            text = read_pairs(path, *langs)
            assert (len(text), text.notes) == (len(WORDS) + 1, [])

    def test_a_pair_of_two_words_over_sentences_is_a_pair(self, tmp_path: Path) -> None:
        for row in ("Hi\tSut", "No\tMo", "God\tElos", "he\tel uh"):
            path = write(tmp_path / "p.tsv", row, SENTENCES)
            text = read_pairs(path, "en", "kos")
            assert (len(text), text.notes) == (len(SENTENCES) + 1, []), row


def test_sentences_are_told_from_words_and_labels() -> None:
    assert are_sentences(SENTENCES)
    assert are_sentences([("一个男人在走路", "A man is walking")])
    assert not are_sentences(WORDS)
    assert not are_sentences([(text, "good") for text, _ in SENTENCES])
    assert not are_sentences([(text, "a good text indeed") for text, _ in SENTENCES])
    assert not are_sentences([])
    assert not are_sentences([("a b c", "d e f", "g h i")])


def test_a_pair_is_told_from_names() -> None:
    for pair in (("Run!", "Cours"), ("a b c d e f", "x" * 41), ("你好。", "Hello")):
        assert looks_like_a_pair(pair)
    for names in (("Kosraean", "Our language"), ("x" * 41, "English")):
        assert not looks_like_a_pair(names)


def test_what_must_be_known_of_a_header() -> None:
    assert find_header(["kos", "en"], None, None) is None
    assert find_header(["kos", "en"], None, None, least_known=1) is not None
    assert find_header(["kos", "mos"], None, None, least_known=1) is None
    assert find_header(["kos", "mos"], None, None, least_known=0) is not None
    assert find_header(["kos", "mos"], "kos", "mos") is not None
    assert find_header(["kos", "chr"], None, None, least_known=1) is not None
    assert find_header(["Kosraean", "en"], None, None, least_known=0) is None
