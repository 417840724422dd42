"""A format that only the table knows is read wherever pairs are, by its content and by its name."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from weft.cli.recipe import usual_folder
from weft.config import TranslationRecipe
from weft.data.checkup import check_up
from weft.data.corpus import read_pairs, read_sources
from weft.data.documents import read_documents
from weft.data.formats.filenames import pair_from_name
from weft.data.formats.filetype import type_of, type_of_content, type_of_name
from weft.data.formats.json_object import parse_object
from weft.data.formats.lines import filled_lines
from weft.data.formats.pairs import OpenPairs, Sides, choose_direction, doubt_name
from weft.data.formats.registry import FILE_TYPES, FileType
from weft.data.formats.row import PairRow
from weft.data.formats.xml_walk import XmlWalk
from weft.data.kind import guess_task
from weft.data.texts import Sources, gather_pairs
from weft.data.train_text import TrainText
from weft.errors import DataError
from weft.recipes.file import load_recipe

COUNT = 240


class BookWalk(XmlWalk):
    """Phrases of a made-up XML format: `<phrase><said>..</said><meant>..</meant></phrase>`."""

    root = "phrasebook"
    format_name = "a phrasebook"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.parser.CharacterDataHandler = self.text
        self.sides: list[str] = []
        self.rows: list[PairRow] = []

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "phrase":
            self.sides = []
        elif name in ("said", "meant"):
            self.sides.append("")

    def close_tag(self, name: str) -> None:
        if name == "phrase":
            src, tgt = self.sides
            self.rows.append((self.parser.CurrentLineNumber, src, tgt))

    def text(self, data: str) -> None:
        if self.sides:
            self.sides[-1] += data


def read_book(path: Path, notes: list[str]) -> Iterator[PairRow]:
    walk = BookWalk(path)
    for _ in walk.steps():
        yield from walk.rows
        walk.rows = []
    notes.append("read to its end")


def open_book(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    pair = choose_direction(asked, named)
    notes = doubt_name(pair, named)
    return OpenPairs(
        rows=read_book(path, notes),
        languages=pair,
        dropped=Counter(),
        notes=notes,
    )


BOOK = FileType(
    name="book",
    words="a phrasebook",
    remedy="it holds pairs: for translation, by itself",
    endings=("madeupbook",),
    root="phrasebook",
    task="translation",
    read_pairs=open_book,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    phrases = [
        f"<phrase><said>Chapter {n} of the book</said><meant>Kapitel {n} des Buches</meant></phrase>"
        for n in range(COUNT)
    ]
    path = tmp_path / "talk.en-de.madeupbook"
    path.write_text("\n".join(["<phrasebook>", *phrases, "</phrasebook>"]))
    return path


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILE_TYPES, "book", BOOK)


def test_it_is_unknown_without_its_row(path: Path) -> None:
    assert type_of(path) is None
    with pytest.raises(DataError, match="madeupbook:1: no TAB"):
        read_pairs(str(path))


@pytest.mark.usefixtures("known")
def test_it_is_recognized(path: Path, tmp_path: Path) -> None:
    for content in (b"<phrasebook/>", b'<?xml version="1.0"?>\n<x:phrasebook/>'):
        assert type_of_content(content) is BOOK
    empty = tmp_path / "a.madeupbook.gz"
    empty.write_bytes(b" ")
    assert type_of(empty) is BOOK
    assert guess_task(str(path)) == "translation"


@pytest.mark.usefixtures("known")
def test_its_pairs_are_read(path: Path) -> None:
    text = read_pairs(str(path))
    assert (text.src_lang, text.tgt_lang) == ("en", "de")
    assert (text.src[7], text.tgt[7]) == (
        "Chapter 7 of the book",
        "Kapitel 7 des Buches",
    )
    assert (len(text), text.where(7)) == (COUNT, f"{path}:9")
    assert read_sources([str(path)]).lines == text.src
    assert read_pairs(str(path), "de", "en").notes == [
        f"{path}: named en to de, but read as de to en; is that right?",
        f"{path}: read to its end",
    ]


@pytest.mark.usefixtures("known")
def test_it_is_trained_on_and_checked(path: Path) -> None:
    recipe = load_recipe(None)
    assert isinstance(recipe, TranslationRecipe)
    sources = Sources((TrainText(str(path)),))
    texts = gather_pairs(recipe.data, sources)
    sizes = [len(part) for part in (texts.train, texts.dev, texts.test) if part]
    assert (len(sizes), sum(sizes)) == (3, COUNT)
    checkup = check_up(recipe, sources)
    assert checkup.parts["train"]["rows"] == COUNT


@pytest.mark.usefixtures("known")
def test_whatever_takes_something_else_refuses_it_by_its_row(
    path: Path, tmp_path: Path
) -> None:
    sides = f"{path},{path}"
    with pytest.raises(
        DataError, match=r"is a phrasebook, not lines .*; name each by itself: "
    ):
        read_pairs(sides)
    with pytest.raises(
        DataError, match=r"is a phrasebook, not plain text .*; it holds"
    ):
        read_documents(path, "line")
    other = tmp_path / "a.pdf"
    other.write_bytes(b"%PDF-")
    with pytest.raises(
        DataError, match=r"not pairs \(.*, \.madeupbook or source<TAB>target"
    ):
        read_pairs(str(other))


def test_a_name_counts_before_a_content_like_another_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_talk(path: Path, asked: Sides, named: Sides) -> OpenPairs:
        dropped = Counter[str]()
        objects = (
            (number, parse_object(f"{path}:{number}", line or ""))
            for number, line in filled_lines(path, dropped)
        )
        return OpenPairs(
            rows=((number, talk["q"], talk["a"]) for number, talk in objects),
            languages=choose_direction(asked, named),
            dropped=dropped,
            notes=[],
        )

    talk = replace(
        BOOK, name="talk", endings=("madeuptalk",), root="", read_pairs=open_talk
    )
    path = tmp_path / "a.madeuptalk"
    path.write_text('{"q": "one\\r\\n two ", "a": "eins"}\n\n')
    monkeypatch.setitem(FILE_TYPES, "talk", talk)
    assert type_of(path) is FILE_TYPES["jsonl"]
    monkeypatch.setitem(FILE_TYPES, "talk", replace(talk, named_first=True))
    text = read_pairs(str(path))
    # a blank line is told as in TSV
    assert (text.src, text.dropped) == (["one two"], {"both sides empty": 1})
    lines = tmp_path / "a.tsv"
    lines.write_text("one two\teins\n\n")
    assert read_pairs(str(lines)).dropped == text.dropped
    path.write_text('\n["q"]\n')
    with pytest.raises(DataError, match=r"a\.madeuptalk:2: JSON, but not an object"):
        read_pairs(str(path))


def test_an_ending_of_two_parts_is_no_part_of_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The longer ending counts, and what else the name says stays."""
    talk = replace(BOOK, name="talk", endings=("talk.json",))
    name = "mine.en-de.talk.json"
    assert type_of_name(Path(name)) is FILE_TYPES["json"]
    monkeypatch.setitem(FILE_TYPES, "talk", talk)
    for other in (name, name.upper(), f"{name}.gz", "a.talk.json"):
        assert type_of_name(Path(other)) is talk, other
    for other in ("a.json", "talk.json", "a.talk.en.json"):
        assert type_of_name(Path(other)) is FILE_TYPES["json"], other
    assert pair_from_name(f"{name}.gz") == ("en", "de")
    assert usual_folder([f"data/{name}.gz"], None) == Path("runs/mine.en-de")


@pytest.mark.usefixtures("known")
def test_its_walk_refuses_another_root(tmp_path: Path) -> None:
    path = tmp_path / "a.madeupbook"
    path.write_text('<?xml version="1.0"?>\n<feed/>')
    with pytest.raises(
        DataError, match=r"a\.madeupbook:2: XML with the root <feed>, not a ph"
    ):
        list(open_book(path, (None, None), (None, None)).rows)
