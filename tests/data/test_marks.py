"""Marks: ids that no text becomes, behind all others, before the rows of their files alone."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from weft.config import MarksSection, SideSection
from weft.data.corpus import ParallelText, from_pairs
from weft.data.marks import (
    MADE,
    UNTAGGED,
    Marking,
    language_mark,
    marks_among,
    marks_needed,
    pieces_of,
    tag_mark,
    with_marks,
)
from weft.data.store import prepare_store
from weft.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from weft.data.train_text import Worth
from weft.errors import FolderError

MARKS = MarksSection(languages=("de", "zh-Hant"), made=True, tags=("bible", "新闻"))
LINES = ["the cat <to de> sees", "a dog <made by machine>", "<tag bible> finds a dog"]
KINDS = ("word", "character", "bpe", "unigram", "byte")


def _trained(kind: str) -> Tokenizer:
    settings = SideSection(kind=kind, vocab_size=320, words="unicode")  # type: ignore[arg-type]
    return train_tokenizer(LINES * 20, settings)


@pytest.fixture(scope="module")
def plain() -> dict[str, Tokenizer]:
    return {kind: _trained(kind) for kind in KINDS}


def test_marks_change_nothing_of_text(plain: dict[str, Tokenizer]) -> None:
    for kind, tokenizer in plain.items():
        marked, same = with_marks((tokenizer, tokenizer), MARKS)
        assert same is marked
        pieces = pieces_of(MARKS)
        assert list(marked.marks) == pieces
        assert marked.vocab_size == tokenizer.vocab_size + len(pieces)
        assert list(marked.mark_ids) == [marked.mark_id(piece) for piece in pieces]
        for line in (*LINES, *pieces, " ".join(pieces), "".join(pieces)):
            ids = marked.encode(line)
            assert ids == tokenizer.encode(line), kind
            assert not set(ids) & set(marked.mark_ids)
            assert marked.decode([*marked.mark_ids, *ids]) == marked.normalize(line)
        assert marked.pieces(list(marked.mark_ids)) == pieces
        assert marked.spell(list(marked.mark_ids)) == b""


def test_a_file_keeps_them_and_is_checked(plain: dict[str, Tokenizer]) -> None:
    for tokenizer in plain.values():
        marked, _ = with_marks((tokenizer, tokenizer), MARKS)
        again = load_tokenizer(marked.to_json(), marked.settings, "x")
        assert again.marks == marked.marks
        assert marks_among(again.marks) == MARKS
        assert again.sha256 == marked.sha256 != tokenizer.sha256
    # a mark between pieces is none of Weft's making
    content = _trained("word").with_marks([MADE]).to_json()
    moved = content.replace('" the"', '"<to en>"')
    assert moved != content
    loaded = load_tokenizer(moved, SideSection(kind="word"), "x")
    assert loaded.marks == (MADE,)
    assert "<to en>" not in loaded.marks
    with pytest.raises(FolderError):
        load_tokenizer(
            content.replace(MADE, "<made by hand>", 1) + "}",
            SideSection(kind="word"),
            "x",
        )


def test_more_marks_stand_behind_those_that_are_there(
    plain: dict[str, Tokenizer],
) -> None:
    tokenizer = plain["bpe"]
    first, _ = with_marks((tokenizer, tokenizer), MarksSection(tags=("a",)))
    both, _ = with_marks((first, first), MarksSection(made=True, tags=("b", "a")))
    assert both.marks == (tag_mark("a"), MADE, tag_mark("b"))
    assert both.mark_id(tag_mark("a")) == first.mark_id(tag_mark("a"))
    assert with_marks((both, tokenizer), MarksSection(made=True))[0] is both


def _text(*worths: Worth, rows: int = 400) -> ParallelText:
    """Return a text of as many files, in turn."""
    pairs = [(f"the cat {i}", f"die Katze {i}") for i in range(rows)]
    text = from_pairs(pairs, "a", "en", "de")
    files = [i % len(worths) for i in range(rows)]
    names = [f"{n}.tsv" for n in range(len(worths))]
    return replace(text, files=names, file_of=files, worths=worths)


def test_rows_have_the_marks_of_their_files(plain: dict[str, Tokenizer]) -> None:
    text = _text(Worth(), Worth(tag="bible"), Worth(tag="bible", made=True))
    marks = marks_needed(text)
    assert marks == MarksSection(made=True, tags=("bible",))
    tokenizer, _ = with_marks((plain["bpe"], plain["bpe"]), marks)
    marking = Marking(text, tokenizer, seed=7)
    made, tag = tokenizer.mark_id(MADE), tokenizer.mark_id(tag_mark("bible"))
    found = [Counter(marking.of(row) for row in range(n, 400, 3)) for n in range(3)]
    assert found[0] == {(): 134}
    assert set(found[1]) == {(), (tag,)}
    assert set(found[2]) == {(made,), (made, tag)}
    tagged = found[1][(tag,)] + found[2][(made, tag)]
    assert abs(tagged / 266 - (1 - UNTAGGED)) < 0.1
    # a function of the seed and of the row's number alone
    again = Marking(text, tokenizer, seed=7)
    assert [again.of(row) for row in (399, 7, 3)] == [
        marking.of(row) for row in (399, 7, 3)
    ]
    other = Marking(text, tokenizer, seed=8)
    assert [other.of(row) for row in range(400)] != [
        marking.of(row) for row in range(400)
    ]


def test_a_store_has_them_before_the_sources(
    tmp_path: Path, plain: dict[str, Tokenizer]
) -> None:
    text = _text(Worth(made=True), Worth(), rows=10)
    tokenizer, _ = with_marks((plain["bpe"], plain["bpe"]), marks_needed(text))
    longest = max(len(tokenizer.encode(line)) for line in (*text.src, *text.tgt))

    def store(marking: Marking | None, name: str):  # type: ignore[no-untyped-def]
        return prepare_store(
            tmp_path,
            name,
            (text.src, text.tgt),
            (tokenizer, tokenizer),
            max_len=longest,  # the mark does not count
            text_key="k",
            marking=marking,
        )

    marked = store(Marking(text, tokenizer, 1), "marked")
    without = store(None, "plain")
    assert len(marked) == len(without) == 10
    for row in range(10):
        before = [] if row % 2 else [tokenizer.mark_id(MADE)]
        assert marked.src(row).tolist() == [*before, *without.src(row).tolist()]
        assert marked.tgt(row).tolist() == without.tgt(row).tolist()
    assert store(Marking(text, tokenizer, 1), "marked").key == marked.key
    turned = replace(text, worths=text.worths[::-1])
    assert store(Marking(turned, tokenizer, 1), "marked").key != marked.key


def test_names_of_marks() -> None:
    assert pieces_of(MARKS) == [
        language_mark("de"),
        language_mark("zh-Hant"),
        MADE,
        tag_mark("bible"),
        tag_mark("新闻"),
    ]
    assert MARKS.most == 3
    assert not MarksSection()
