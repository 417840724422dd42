"""Texts that are hard to cut alike twice: several scripts, marks, halves of characters."""

import random
import sys
import unicodedata

import random_models as tiny

HOSTILE = [
    "",
    " ",
    "\n",
    "  two  spaces  ",
    "\ufeffmark",
    "a\u0085b\u00a0c\u2028d\u3000e\u200bf",
    "<0x41><pad token>< 0x41> <0x0A>",
    "\n<0x41>\t<0x42>",
    "e\u0301 \u0301\u0300 ẛ̣ ﬁ ① ㋿ Å",
    "\ud800 half \udfff",
    "ΑΣ İI ßẞ ŉ",
    "👩‍👩‍👧‍👦🇩🇪",
    "กขค ພາສາ 日本語テスト한국어",
    "١٢٣٤ ⅷ ²³ 1234567",
    "x" * 3000,
    "ab" * 2000,
    "\x00\x01\x1f",
    "don't — won’t… “quoted”",
]


def assigned(generator: random.Random) -> str:
    """Any character that this Python's tables know; later ones the browser may know better."""
    while True:
        character = chr(generator.randrange(sys.maxunicode + 1))
        if unicodedata.category(character) not in ("Cn", "Cs", "Co"):
            return character


def texts(count: int) -> list[str]:
    generator = random.Random(7)
    common = " \n\t\u0301aeßÄ漢字กあ1２٣.,!?'\"-<>0x" + "".join(tiny.TEXTS[:5])
    made = []
    for _ in range(count):
        size = generator.randrange(1, 30)
        rare = generator.random() < 0.5
        letters = [
            assigned(generator)
            if rare and generator.random() < 0.5
            else generator.choice(common)
            for _ in range(size)
        ]
        made.append("".join(letters))
    return [*HOSTILE, *tiny.TEXTS[:5], *made]
