"""Glossaries: read from tables and term bases, found in texts of any script."""

from pathlib import Path

import pytest

from weft.data.glossary import Entry, Glossary, read_glossary
from weft.errors import DataError


def written(folder: Path, content: str, name: str = "terms.tsv") -> Path:
    path = folder / name
    path.write_text(content, "utf-8", newline="")
    return path


def entries(folder: Path, content: str, name: str = "terms.tsv") -> list[Entry]:
    glossary = read_glossary(written(folder, content, name), "en", "de")
    return list(glossary.entries)


def found(text: str, *rows: Entry) -> list[tuple[str, tuple[str, ...]]]:
    occurrences = Glossary(rows).find(text)
    for one in occurrences:
        assert text[one.start : one.end] == one.source
    return [(one.source, one.targets) for one in occurrences]


def term(source: str, target: str = "", **rules: bool) -> Entry:
    targets = (target,) if target else ()
    return Entry((source,), targets, **rules)  # type: ignore[arg-type]


def test_a_table_has_alternatives_and_rules(tmp_path: Path) -> None:
    rows = entries(
        tmp_path,
        "\ufeffSource\tTarget\tcase\tinflection\tavoid\n"
        "bike|bicycle\tRad | Fahrrad\t\tyes\tVelo|Drahtesel\r\n"
        "\n"
        "Apple\tApple\tyes\n"
        "IT\tEDV\n"
        "Weft\n",
    )
    path = tmp_path / "terms.tsv"
    assert rows == [
        Entry(
            ("bike", "bicycle"),
            ("Rad", "Fahrrad"),
            ("Velo", "Drahtesel"),
            inflected=True,
            where=f"{path}:2",
        ),
        Entry(("Apple",), ("Apple",), exact_case=True, where=f"{path}:4"),
        Entry(("IT",), ("EDV",), exact_case=True, where=f"{path}:5"),
        Entry(("Weft",), (), where=f"{path}:6"),
    ]


def test_a_header_may_name_languages_and_none_is_needed(tmp_path: Path) -> None:
    for head in ("en\tde-DE\n", "", "EN\tDE\n"):
        (row,) = entries(tmp_path, f"{head}cat\tKatze\n")
        assert (row.sources, row.targets) == (("cat",), ("Katze",))
    (row,) = entries(tmp_path, 'target,source\n"die ""Katze""",cat\n', "terms.csv")
    assert (row.sources, row.targets) == (("cat",), ('die "Katze"',))


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("source\ttarget\tcase\na\tb\tmaybe\n", "t.tsv", "t.tsv:2: case is 'maybe'; write yes or no"),
        ("source\ttarget\n\tb\n", "t.tsv", "t.tsv:2: the term has no source"),
        ("source\ttarget\n", "t.tsv", "t.tsv: there is no term in it"),
        ("", "t.csv", "t.csv: there is no term in it"),
        ("a\tb\n", "t.xlsx", "t.xlsx: a glossary is a .tsv, .csv or .tbx file"),
    ],
)  # fmt: skip
def test_what_is_no_glossary_is_said(
    tmp_path: Path, content: str, name: str, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_glossary(written(tmp_path, content, name), "en", "de")
    assert said in str(caught.value)


def test_terms_are_whole_words_the_longest_first() -> None:
    rows = (
        term("cat", "Katze"),
        term("cat food", "Katzenfutter"),
        term("food", "Essen"),
    )
    text = "Cat food, a cat's cat-food; concatenated cats. CAT"
    assert found(text, *rows) == [
        ("Cat food", ("Katzenfutter",)),
        ("cat", ("Katze",)),
        ("cat", ("Katze",)),
        ("food", ("Essen",)),
        ("CAT", ("Katze",)),
    ]


def test_case_counts_where_it_should() -> None:
    assert found("an apple of Apple", term("Apple", "Apple", exact_case=True)) == [
        ("Apple", ("Apple",))
    ]
    assert found("STRASSE, Straße, straße", term("straße", "road")) == [
        ("Straße", ("road",)),
        ("straße", ("road",)),
    ]


def test_endings_differ_where_they_may() -> None:
    row = term("company", "Firma", inflected=True)
    text = "company companies company's compass companionship"
    assert [source for source, _ in found(text, row)] == ["company", "companies", "company"]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "text", "there"),
    [
        ("interpreted", "the interpreter", False),
        ("interpreted", "two interpreters", False),
        ("importer", "an imported module", False),
        ("importer", "all importers", True),
        ("word", "many words", True),
    ],
)
def test_who_does_it_is_not_what_it_was_done_to(
    source: str, text: str, there: bool
) -> None:
    glossary = Glossary((term(source, "so", inflected=True),))
    assert bool(glossary.find(text)) == there


def test_scripts_without_spaces() -> None:
    rows = (
        term("京都", "Kyoto"),
        term("京都大学", "Kyoto University"),
        term("AI", "AI"),
    )
    assert found("私は京都大学と京都でAIを学ぶ。", *rows) == [
        ("京都大学", ("Kyoto University",)),
        ("京都", ("Kyoto",)),
        ("AI", ("AI",)),
    ]


def test_rows_of_one_term_are_alternatives_and_a_term_without_target_stays() -> None:
    rows = (
        Entry(("cat",), ("Katze",), ("Kater",)),
        Entry(("Cat",), ("Mieze", "Katze"), ("Vieh",)),
    )
    (occurrence,) = Glossary(rows).find("my cat")
    assert occurrence.targets == ("Katze", "Mieze")
    assert occurrence.avoided == ("Kater", "Vieh")
    assert found("use Weft", term("weft")) == [("Weft", ("Weft",))]


def test_a_large_glossary_is_looked_through_at_once() -> None:
    rows = tuple(term(f"term{number}x", f"Wort{number}") for number in range(50_000))
    glossary = Glossary((*rows, term("needle", "Nadel")))
    assert len(glossary.find("a needle in a haystack " * 2_000)) == 2_000


def test_no_term_stands_in_what_the_model_writes_as_it_is() -> None:
    entries = (Entry(("class",), ("Klasse",)), Entry(("list",), ("Liste",)))
    text = "This class is (:class:`list`), a class of ``class``."
    known = Glossary(entries, kept_forms=("``a", ":a:`a"))
    assert [one.start for one in known.find(text)] == [5, 33]
    assert len(Glossary(entries).find(text)) == 5


def test_a_header_without_a_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"terms\.tsv:1: .* none is target"):
        entries(tmp_path, "source\tnote\nwindow\tof a house\n")
    # a term that happens to be that word
    (only,) = entries(tmp_path, "source\tQuelle\n")
    assert only.targets == ("Quelle",)


@pytest.mark.parametrize(
    "head",
    ["Quelle;Ziel", "English;German", "Deutsch;Englisch", "EN-US;de-DE", "English (US);German", "term;translation"],
)  # fmt: skip
def test_a_header_names_its_sides_in_many_ways(tmp_path: Path, head: str) -> None:
    row = "Katze;cat" if head.startswith("Deutsch") else "cat;Katze"
    (only,) = entries(tmp_path, f"{head};note\n{row};a\n", "t.csv")
    assert (only.sources, only.targets) == (("cat",), ("Katze",))


def test_a_first_row_of_other_languages_is_a_term(tmp_path: Path) -> None:
    found = entries(tmp_path, "English;Chinese\ncat;Katze\n", "t.csv")
    assert [one.sources for one in found] == [("English",), ("cat",)]


def test_columns_that_are_not_read_are_said(tmp_path: Path) -> None:
    path = written(tmp_path, "source\ttarget\tDomain\tnote\ncat\tKatze\tzoo\tx\n")
    assert read_glossary(path, "en", "de").notes == (
        "not read: domain; the columns of a glossary are source, target, case, inflection, avoid",
    )
    path = written(tmp_path, "source\ttarget\tavod\ncat\tKatze\tKater\n")
    with pytest.raises(
        DataError, match=r":1: there is no column 'avod'; did you mean avoid\?"
    ):
        read_glossary(path, "en", "de")
    path = written(tmp_path, "source\ttargt\ncat\tKatze\n")
    with pytest.raises(
        DataError, match=r":1: there is no column 'targt'; did you mean target\?"
    ):
        read_glossary(path, "en", "de")


def test_a_third_column_without_a_name_is_said_to_be_case(tmp_path: Path) -> None:
    path = written(tmp_path, "cat\tKatze\tja\ndog\tHund\tnein\n")
    glossary = read_glossary(path, "en", "de")
    assert [one.exact_case for one in glossary.entries] == [True, False]
    assert "the third is read as case" in glossary.notes[0]
    path = written(tmp_path, "cat\tKatze\tan animal\n")
    with pytest.raises(
        DataError, match="or name the columns in a first row: source, target, note"
    ):
        read_glossary(path, "en", "de")
    assert not read_glossary(written(tmp_path, "cat\tKatze\n"), "en", "de").notes


def test_the_example_of_the_docs_is_a_glossary(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "translation.md"
    _, _, rest = page.read_text("utf-8").partition("```text\nsource,target")
    table, _, _ = rest.partition("```")
    path = written(tmp_path, f"source,target{table}", "terms.csv")
    first, second, third = read_glossary(path, "en", "de").entries
    assert (first.sources, first.avoided) == (("bike", "bicycle"), ("Velo",))
    assert (second.targets, second.inflected) == (("Rechnung",), True)
    assert (third.sources, third.targets) == (("Weft",), ())
