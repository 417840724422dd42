"""Text in one language: its name on the command line, and the lines that are left out."""

from pathlib import Path

import numpy as np
import pytest

from weft.data.masked import MASK, masked
from weft.data.mono import HELD_OUT, KNOWN, REPEATED, read_mono
from weft.data.train_text import MonoText
from weft.errors import UsageError


def test_a_language_and_a_file() -> None:
    assert MonoText.parse("yo=a=b.txt") == MonoText("yo", "a=b.txt")
    assert MonoText.parse("deu = news.txt") == MonoText("de", "news.txt")
    assert MonoText.parse("pt_br=x").is_in("pt-PT")
    for wrong, why in (
        ("news.txt", "write the language"),
        ("=news.txt", "'' is no language"),
        ("yo=", "the file is missing"),
        ("Yoruba!=news.txt", "'Yoruba!' is no language"),
    ):
        with pytest.raises(UsageError, match=rf"{why}.* such as yo=news\.txt"):
            MonoText.parse(wrong)


def test_a_weight_means_nothing_there(tmp_path: Path) -> None:
    news = tmp_path / "news.txt"
    news.write_text("One.\n", "utf-8")
    for behind in ("@2", "@0.5:news", "@:news", "@two", "@"):
        with pytest.raises(UsageError, match=f"are for the pairs .* give {news} alone"):
            MonoText.parse(f"en={news}{behind}")
    odd = tmp_path / "news.txt@2"
    odd.write_text("One.\n", "utf-8")
    assert MonoText.parse(f"en={odd}") == MonoText("en", str(odd))


def test_lines_that_are_known_or_held_out_are_left_out(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("One.\n\ntwo\nTHREE!\n", "utf-8")
    second.write_text("Four\nfour.\nfive\n", "utf-8")
    texts = [MonoText("en", str(first)), MonoText("en", str(second))]
    read = read_mono(texts, {"three"}, {"one"})
    assert read.lines == ["two", "Four", "five"]
    assert read.left_out == {"empty line": 1, KNOWN: 1, HELD_OUT: 1, REPEATED: 1}


def test_spans_of_about_a_third_are_masked() -> None:
    rng = np.random.default_rng(1)
    for count in (4, 7, 20, 100):
        text = " ".join(f"w{n}" for n in range(count))
        for _ in range(20):
            words = masked(text, rng).split()
            kept = [word for word in words if word != MASK]
            hidden = count - len(kept)
            assert hidden == max(round(0.3 * count), 1)
            assert words.count(MASK) == max(round(hidden / 3), 1)
            # in their order, and no span beside another
            assert kept == [word for word in text.split() if word in kept]
            assert f"{MASK} {MASK}" not in " ".join(words)


def test_short_texts_stay_and_scripts_without_spaces_lose_letters() -> None:
    rng = np.random.default_rng(1)
    assert masked("three short words", rng) == "three short words"
    assert masked("", rng) == ""
    text = masked("我們今天去學校學習中文", rng)
    assert (text.count(MASK), len(text)) == (1, 11 - 3 + 1)
