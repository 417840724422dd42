"""The words that belong together are those that Weft finds: their bounds, and their pairs."""

import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
import weft.demo
from weft.data.scripts import count_scripts, is_mark, is_spaceless
from weft.inspection.browser import rounded_task
from weft.inspection.look import inspect_text
from weft.predict.alignment import words_of
from weft.tasks.opening import load_task

INSIDE = """([text, asked]) => {
    const { alignment, source } = engine.insideOf(model, text, asked);
    return { alignment, pieces: source.pieces };
}"""
WORDS = "(all) => all.map(spelled => { const { words, wordOf } = engine.wordsOf(spelled); return [words, wordOf]; })"
KINDS = """(all) => all.map(one => {
    const { isAlone, isMark } = engine.pieceThatSpells(one);
    return Number(isAlone) + 2 * isMark;
})"""
SENTENCES = (
    "My sister is drinking tea in the kitchen.",
    "I am reading a book!",
    "The children are playing football; where is the red car?",
    "Xylophone 123 — “tea”",
)
TEXTS = (
    ["The", " cat", "s", ",", " (", "12", ".", ")", " ", " sat"],
    ["\u201c", "Tee", "!", "\u201d", " ", "  "],
    ["我", "喝", "茶", "。", "tea", "茶"],
    ["ภาษา", "ไทย", " ", "ok", "カ", "ー", "ｱ"],
    ["...", " !", "a-b", "—", "c", "\u00a0d\x1c"],
    [" ", "  "],
    [],
)


def in_bytes(text: str) -> list[list[int]]:
    return [[byte] for byte in text.encode()]


def test_words_have_the_same_bounds(scripts: Any) -> None:
    whole = [[list(piece.encode()) for piece in text] for text in TEXTS]
    apart = [in_bytes("".join(text)) for text in TEXTS]
    broken = [
        [[0xE4], [0xBD], [0x41], [0xA0]],
        [[0xF0, 0x9F], [0x98], [0x80], [0x20], [0xE0, 0x80]],
        [[0xED], [0xA0], [0x80], [0xF4, 0x90], [0xC3]],
        [[0xE4, 0xBD, 0xA0, 0x20], [0xE5], [0xA5, 0xBD], [0x2E]],
    ]
    every = [*whole, *apart, *broken]
    expected = [words_of([bytes(piece) for piece in spelled]) for spelled in every]
    found = scripts.evaluate(WORDS, every)
    assert found == [list(each) for each in expected]


@pytest.mark.long
def test_every_character_is_of_the_same_kind(scripts: Any) -> None:
    """What stands alone or is a mark, of all characters that this Python knows."""
    known = [
        one
        for one in map(chr, range(0x21, sys.maxunicode + 1))
        if unicodedata.category(one) not in ("Cn", "Cs", "Co") and not one.isspace()
    ]
    found = scripts.evaluate(KINDS, known)
    expected = [is_spaceless(count_scripts([one])) + 2 * is_mark(one) for one in known]
    other = [
        f"{ord(one):x}"
        for one, ours, theirs in zip(known, found, expected, strict=True)
        if ours != theirs
    ]
    assert other == []


@pytest.mark.parametrize("name", ["demo", "en-de", "en-zh"])
def test_pairs_of_words_are_those_of_weft(load: Any, name: str) -> None:
    is_demo = name == "demo"
    folder = Path(weft.demo.__path__[0])
    task = load_task(folder) if is_demo else tiny.tiny_task(name)
    page = load(task)
    rounded = rounded_task(task)
    pairs = 0
    for text in SENTENCES if is_demo else tiny.TEXTS[:2]:
        expected = inspect_text(rounded, text).to_json()["alignment"]
        limits = {"tokens": 128, "tgt_tokens": 512}
        asked = {"limits": limits, "constant": {}, "off": {}}
        found = page.evaluate(INSIDE, [text, asked])["alignment"]
        assert found == expected
        pairs += len(found["pairs"])
    assert pairs > 10 or not is_demo
