"""Languages named the wrong way round, or by a name that is not theirs; with both, one or none that
is known.
"""

import gzip
from pathlib import Path

import pytest

from weft.data import builtin
from weft.data.check.finding import Finding, Rows
from weft.data.check.language_identification import (
    is_close,
    look_at_languages,
    wrong_way_round,
)
from weft.data.check.pairs import PairText, look_over_pairs
from weft.data.corpus import from_pairs

Pairs = list[tuple[str, str]]
CODES = {
    "swapped-files",
    "other-language",
    "language-not-named",
    "languages-not-recognized",
}

# The first article of the declaration of human rights and the like, in languages that the package
# has no text of.
DANISH = [
    "Alle mennesker er født frie og lige i værdighed og rettigheder.",
    "Enhver har ret til liv, frihed og personlig sikkerhed.",
    "Ingen må holdes i slaveri eller trældom.",
    "Vi spiser gerne rødgrød med fløde om sommeren.",
    "Hvad hedder den lille pige, der bor ved siden af?",
    "Jeg har ikke set min bror siden i går aftes.",
]
NORWEGIAN = [
    "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter.",
    "Enhver har rett til liv, frihet og personlig sikkerhet.",
    "Ingen må holdes i slaveri eller trelldom.",
    "Vi spiser gjerne rømmegrøt med sukker og kanel om sommeren.",
    "Hva heter den lille jenta som bor ved siden av?",
    "Jeg har ikke sett broren min siden i går kveld.",
]


def found(pairs: Pairs, src: str, tgt: str) -> dict[str, Finding]:
    """What is said of the languages of a text."""
    text = from_pairs(pairs, "made.tsv", src, tgt)
    rows = Rows(len(text), "pairs", text.where, lambda i: (text.src[i],))
    return {finding.code: finding for finding in look_at_languages(text, rows)}


def turned(pairs: Pairs) -> Pairs:
    return [(tgt, src) for src, tgt in pairs]


def in_no_language(text: str) -> str:
    """The text's letters in the script of Cherokee, of which no detector of languages knows a
    word.
    """
    return "".join(
        chr(0x13A0 + ord(letter.lower()) % 80) if letter.isalpha() else letter
        for letter in text
    )


def test_the_right_way_round_nothing_is_said(german: Pairs, chinese: Pairs) -> None:
    assert found(german, "en", "de") == found(turned(german), "de", "en") == {}
    assert (
        found(chinese, "en", "zh-Hans") == found(turned(chinese), "zh", "en-GB") == {}
    )


def test_the_wrong_way_round_is_fatal(german: Pairs) -> None:
    finding = found(german, "de", "en")["swapped-files"]
    assert finding.severity == "fatal"
    assert (
        finding.message == "made.tsv: the source looks like en and the target like de"
    )


@pytest.mark.parametrize(
    "turn", [False, True], ids=["known in the source", "known in the target"]
)
def test_one_known_language_on_the_other_side_is_enough(
    german: Pairs, turn: bool
) -> None:
    pairs = [(src, in_no_language(tgt)) for src, tgt in german]
    right, langs = (turned(pairs), ("chr", "en")) if turn else (pairs, ("en", "chr"))
    assert found(right, *langs) == {}
    finding = found(right, *langs[::-1])["swapped-files"]
    assert finding.severity == "fatal"
    assert "en" in finding.message
    assert "does not" in finding.message


def test_where_neither_language_is_known_that_is_said(german: Pairs) -> None:
    pairs = [(in_no_language(src), in_no_language(tgt)[::-1]) for src, tgt in german]
    finding = found(pairs, "chr", "kos")["languages-not-recognized"]
    assert finding.severity == "note"
    assert "neither chr nor kos" in finding.message
    assert found(german, "en", "de") == {}


def test_another_language_than_was_said_is_a_warning(german: Pairs) -> None:
    finding = found(german, "en", "fr")["other-language"]
    assert finding.severity == "warning"
    assert "the target is declared as fr but looks like de" in finding.message
    assert "data.tgt_lang=de" in finding.remedy
    assert "data.src_lang" not in finding.remedy
    both = found(german, "ja", "ko")["other-language"]
    assert "--set data.src_lang=en --set data.tgt_lang=de" in both.remedy
    assert set(found(german, "ja", "de")) == {"other-language"}
    assert found(german, "en", "sw").keys() == {"other-language"}, (
        "and these have not changed places"
    )


def test_one_language_on_the_other_side_is_enough_where_both_can_be_recognized(
    chinese: Pairs,
) -> None:
    assert (
        "the target looks like zh, but the source does not"
        in found(chinese, "zh", "de")["swapped-files"].message
    )


def test_what_is_close_is_no_other_language(german: Pairs) -> None:
    assert is_close("de", "lb")
    assert is_close("gl", "es")
    assert not is_close("ru", "en")
    assert found(german, "pcm", "lb") == {}


def test_close_languages_the_wrong_way_round_are_a_warning() -> None:
    pairs = [
        (f"{a} {b}", f"{x} {y}")
        for a, x in zip(DANISH, NORWEGIAN, strict=True)
        for b, y in zip(DANISH, NORWEGIAN, strict=True)
    ]
    assert found(pairs, "da", "nb") == {}
    swapped = found(pairs, "nb", "da")
    assert set(swapped) <= {"swapped-files"}
    assert all(finding.severity == "warning" for finding in swapped.values())
    assert swapped


def test_languages_that_nobody_named_are_guessed_in_a_note(german: Pairs) -> None:
    finding = found(german, "und", "und")["language-not-named"]
    assert finding.severity == "note"
    assert "the source looks like en and the target looks like de" in finding.message
    assert finding.remedy == "if so, add --set data.src_lang=en --set data.tgt_lang=de"
    half = found(german, "en", "und")["language-not-named"]
    assert half.remedy == "if so, add --set data.tgt_lang=de"
    unsure = [(in_no_language(src), in_no_language(tgt)) for src, tgt in german]
    assert found(unsure, "und", "und") == {}


def test_a_side_of_two_languages_is_not_taken_for_one(german: Pairs) -> None:
    mixed = [
        (src if i % 2 else tgt, tgt if i % 2 else src)
        for i, (src, tgt) in enumerate(german)
    ]
    assert not {"swapped-files", "other-language"} & set(found(mixed, "en", "de"))
    assert not {"swapped-files", "other-language"} & set(found(mixed, "de", "en"))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_of_hardly_any_lines_nothing_is_said(german: Pairs, count: int) -> None:
    text = [*german[:count], *[("12", "34")] * 40]
    assert found(text, "de", "en") == {}


def test_numbers_and_interjections_are_in_no_language() -> None:
    assert found([("Ok.", "OK!"), ("1 + 1", "2"), ("", "…")] * 30, "fr", "ja") == {}


def test_dev_and_test_text_is_not_asked_for_names(german: Pairs) -> None:
    text = PairText(from_pairs(german, "dev.tsv", "und", "und"))
    assert not CODES & {
        finding.code for finding in look_over_pairs(text, in_training=False)
    }
    assert CODES & {finding.code for finding in look_over_pairs(text)} == {
        "language-not-named"
    }


def lines_of(path: Path) -> list[str]:
    raw = (
        gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
    )
    return raw.decode().split("\n")[:-1]


CORPORA = [
    ("multi30k/val", "en", "de"),
    ("multi30k/val", "en", "fr"),
    ("tatoeba-de-en/dev", "de", "en"),
    ("kftt/dev", "en", "ja"),
    ("menyo20k/dev", "en", "yo"),
    ("chren/dev", "chr", "en"),
    ("python-docs-en-zh/dev", "en", "zh"),
    ("small_parallel_enja/dev", "en", "ja"),
    ("ebible/en-kos/dev", "en", "kos"),
]


@pytest.mark.parametrize(("stem", "src", "tgt"), CORPORA)
def test_public_text_is_recognized_either_way_round(
    corpora: Path, stem: str, src: str, tgt: str
) -> None:
    paths = [corpora / f"{stem}.{lang}" for lang in (src, tgt)]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"{stem} is not among the corpora")
    pairs = list(zip(*map(lines_of, paths), strict=True))
    assert found(pairs, src, tgt) == found(turned(pairs), tgt, src) == {}
    assert found(turned(pairs), src, tgt)["swapped-files"].severity == "fatal"
    assert found(pairs, tgt, src)["swapped-files"].severity == "fatal"


@pytest.mark.parametrize("tgt", ["de", "zh"])
def test_the_packages_own_text_is_recognized(tgt: str) -> None:
    pairs = builtin.pairs("everyday", "en", tgt).train
    assert found(pairs, "en", tgt) == {}
    assert found(pairs, tgt, "en")["swapped-files"].severity == "fatal"


def test_a_text_to_score_is_seen_the_wrong_way_round() -> None:
    pairs = builtin.pairs("everyday", "en", "de").test[:60]
    text = from_pairs(pairs, "made.tsv", "und", "und")
    back = from_pairs(turned(pairs), "made.tsv", "und", "und")
    assert wrong_way_round(text, "en", "de") == ""
    assert (
        wrong_way_round(back, "en", "de")
        == "the source looks like de and the target like en"
    )
    assert wrong_way_round(back.select(range(2)), "en", "de") == ""
