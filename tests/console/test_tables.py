"""Tables that fit, whatever the letters: `rich` measures them with a table of its own."""

from rich.cells import cell_len

from weft.console.tables import columns_of, fitted, table

LETTERS = [
    "喝" * 40,
    "é" * 70,
    "กำ" * 30,
    "한국어" * 20,
    "a\u200bb" * 40,
    "Kapitän" * 9,
]


def test_letters_are_as_wide_as_a_terminal_has_them() -> None:
    for letters in ("喝茶", "é", "e\u0301", "tea", "한", "Ａ", "a\u200bb"):
        assert columns_of(letters) == cell_len(letters)
        assert fitted(letters, 4) == letters
    for letters in LETTERS:
        for width in (1, 2, 7, 20):
            cut = fitted(letters, width)
            assert width - 1 <= cell_len(cut) <= width
            assert cut.endswith("…")


def test_a_table_fits_and_its_columns_stand_under_each_other() -> None:
    rows = [("name", "p", "other"), *((one, "0.5", one) for one in LETTERS)]
    lines = list(table(rows, 40, {1}))
    assert max(map(cell_len, lines)) <= 40
    ends = {cell_len(line[: line.index("0.5")]) for line in lines[1:]}
    assert len(ends) == 1
    assert list(table([("a", "b"), ("喝", "c")], 40)) == ["a   b", "喝  c"]
    assert list(table([("a", "nine"), ("b", "10")], 40, {1})) == ["a  nine", "b    10"]


def test_numbers_are_cut_where_names_are_short() -> None:
    lines = list(table([("a", "1" * 50), ("b", "2")], 20, {1}))
    assert max(map(cell_len, lines)) <= 20
    assert lines[0].startswith("a  111")
