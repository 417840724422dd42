"""The words of training in JavaScript are those that Weft knows, whatever the text."""

import random
import re
import sys
import unicodedata
from typing import Any

import random_models as tiny
from hostile_texts import HOSTILE, assigned, texts
from weft.data.known import KnownWords, _hash, words_of
from weft.data.normalize import replace_surrogates

MARKED = [
    "The boy's key, (beer)! E-Gitarre für 5 Euro und 2nd",
    "Press <b>OK</b> <x id='1'/>now, 3<4 a<b <ſ>x</K> <İ y> <<b>b> <a<b>c>",
    f"<b {'ß' * 100}>eins <b {'ß' * 101}>zwei <b {'x' * 201}>drei",
    "Die STRAßE und die «Straße» ΟΔΌΣ οδός ΣΊΣΥΦΟΣ ﬁnd ΌΧΙ Ꭰꭰ ıİ ᾳ ŉ",
    "e\u0301te\u0301 ọ̀rẹ́ हिन्दी में। \u0301x x\u0301 x\u0301! !!a!!b!!",
    "猫好 abc。日本語テスト ภาษาไทย 한국어 עִבְרִית العربية",
    "x² ①st ⅷ ½ ٣ x½ 〇",
]


def hostile() -> list[str]:
    """Words of several scripts among marks, tags and digits."""
    generator = random.Random(3)
    parts = [*(" ".join(MARKED).split()), *"<>/'’.-‐ \n0²", "<b>", "</I x>"]
    made = [
        "".join(generator.choices([*parts, assigned(generator)], k=12))
        for _ in range(300)
    ]
    return [*MARKED, *HOSTILE, *made, *texts(300)]


def test_a_text_has_the_same_words_and_those_the_same_hashes(scripts: Any) -> None:
    given = hostile()
    found = scripts.evaluate(
        "(texts) => texts.map((text) => engine.foldedWords(text).map((word) => [word, engine.hashOfWord(word)]))",
        given,
    )
    for text, pairs in zip(given, found, strict=True):
        expected = [[word, _hash(replace_surrogates(word))] for word in words_of(text)]
        assert pairs == expected, repr(text)


def test_each_character_is_folded_and_sorted_alike(scripts: Any) -> None:
    """Each that Python's tables have, between two letters and at either end, in one text."""
    kinds = ("Cn", "Cs", "Co")
    characters = [
        each
        for each in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(each) not in kinds
        and not re.match("[<>\u3400-\u9fff\uac00-\ud7af\U00017000-\U0003ffff]", each)
    ]
    lines = "\n".join(f"x{each}x\nx{each}\n{each}x" for each in characters)
    found = scripts.evaluate("(text) => engine.foldedWords(text).join(' ')", lines)
    assert found.split() == list(words_of(lines))


def test_the_same_words_are_unknown(scripts: Any) -> None:
    given = hostile()
    known = KnownWords.of([*given[::2], *tiny.TEXTS])
    found = scripts.evaluate(
        """([hashes, texts]) => {
            const known = new engine.KnownWords(Int32Array.from(hashes));
            return texts.map((text) => [known.unknown(text), known.extentOf(text)]);
        }""",
        [known.hashes.tolist(), given],
    )
    extents = set()
    for text, (unknown, extent) in zip(given, found, strict=True):
        assert unknown == known.unknown(text), repr(text)
        words = set(words_of(text))
        share = sum(not known.knows(word) for word in words) / max(1, len(words))
        assert (extent == "all") == known.knows_nothing_of(text)
        if extent != "all":
            assert extent == (
                "none" if not share else "most" if share > 0.5 else "some"
            )
        extents.add(extent)
    assert extents == {"none", "some", "most", "all"}
    assert sum(map(len, (unknown for unknown, _ in found))) > 100
