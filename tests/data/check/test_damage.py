"""Each check of pairs names the rows that were damaged, all and no other, and is silent about sound
text.
"""

import random
from collections.abc import Callable

import pytest

from weft.data.check.finding import Finding
from weft.data.check.pairs import look_over
from weft.data.check.sides import SideModel
from weft.data.corpus import from_pairs

Pairs = list[tuple[str, str]]
Change = Callable[[str, str], tuple[str, str]]


def findings(pairs: Pairs, langs: tuple[str, str] = ("en", "de")) -> dict[str, Finding]:
    found = look_over(from_pairs(pairs, "made.tsv", *langs))
    assert len({finding.code for finding in found}) == len(found)
    return {finding.code: finding for finding in found}


@pytest.fixture(scope="module")
def sound(german: Pairs) -> dict[str, Finding]:
    """What is found in the pairs as they are."""
    return findings(german)


def changed(pairs: Pairs, rows: list[int], change: Change) -> Pairs:
    return [change(*pair) if i in rows else pair for i, pair in enumerate(pairs)]


def misread(text: str) -> str:
    return text.encode().decode("cp1252", "replace")


def cyrillic(text: str) -> str:
    return "".join(
        "абвгдежзик"[ord(letter) % 10] if letter.isalpha() else letter
        for letter in text
    )


CHANGES: dict[str, Change] = {
    "untranslated": lambda src, tgt: (src, src.upper()),
    "swapped-languages": lambda src, tgt: (tgt, src),
    "same-language": lambda src, tgt: (
        src,
        "My brother wants to buy the old house near the river.",
    ),
    "wrong-script": lambda src, tgt: (src, cyrillic(tgt)),
    "misread-encoding": lambda src, tgt: (src, misread(f"Grüße, {tgt}")),
    "control-characters": lambda src, tgt: (f"{src[:5]}\x07{src[5:]}", tgt),
    "markup": lambda src, tgt: (src, f"{tgt}<br />"),
    "long-lines": lambda src, tgt: (f"{src} " * 200, f"{tgt} " * 200),
    "numbers-differ": lambda src, tgt: (f"{src} 1,000 and 12", f"{tgt} 1.000 und 13"),
    "length-ratio": lambda src, tgt: (src, tgt[:6]),
}
ROWS = [7, 400, 1999]


@pytest.mark.parametrize("code", CHANGES)
def test_the_damaged_rows_are_named_and_no_other(
    german: Pairs, sound: dict[str, Finding], code: str
) -> None:
    assert code not in sound
    finding = findings(changed(german, ROWS, CHANGES[code]))[code]
    assert (finding.severity, finding.rows, finding.count) == ("note", tuple(ROWS), 3)
    assert finding.remedy
    places = ["made.tsv:8", "made.tsv:401", "made.tsv:2000"]
    if code == "length-ratio":
        assert "(3 pairs, 0.1 %; the worst is shown)" in finding.message
        assert sorted(example.where for example in finding.examples) == sorted(places)
        return
    assert finding.message.startswith("made.tsv:8: ")
    assert "(3 pairs, 0.1 %; the first is shown)" in finding.message
    assert [example.where for example in finding.examples] == places


def test_of_odd_lengths_the_worst_is_named_and_shown_first_by_how_much(
    german: Pairs,
) -> None:
    pairs = changed(
        german, list(range(20, 30)), lambda src, tgt: (src, f"{tgt} {tgt} {tgt}")
    )
    pairs[1500] = (pairs[1500][0], " ".join(["Wort"] * 400))
    finding = findings(pairs)["length-ratio"]
    assert finding.message.startswith("made.tsv:1501: ")
    worst = finding.examples[0]
    assert worst.text.startswith(pairs[1500][0])
    assert "Wort Wort" in worst.text
    longer, times = worst.about.split()[:2]
    assert longer == "target"
    assert float(times) == pytest.approx(2000 / len(german[1500][1]), rel=0.3)


def test_the_numbers_that_differ_are_shown_on_both_sides(german: Pairs) -> None:
    src, tgt = (" ".join([word] * 100) for word in ("word", "Wort"))
    pairs = [
        *german,
        (f"in 1,999: {src} 12 dogs {src}", f"im 1.999: {tgt} 21 Hunde {tgt}"),
        ("3 of 7", "3 von 3"),
        ("2 dogs and 512 cats", "2 Hunde und Katzen"),
        ("2 dogs and 5 cats", "2 Hunde und fünf Katzen"),
    ]
    long, short, alone = findings(pairs)["numbers-differ"].examples
    assert alone.about == "512 in the source alone"
    assert long.about == "12 against 21"
    assert all(part in long.text for part in ("word 12 dogs", "Wort 21 Hunde"))
    assert (short.text, short.about) == ("3 of 7  |  3 von 3", "7 against 3")


def test_short_pairs_the_wrong_way_round_are_named_too(german: Pairs) -> None:
    order = sorted(range(len(german)), key=lambda i: len(german[i][0]))
    rows = sorted(order[:40])  # such as "Tom likes camping."
    pairs = changed(german, rows, CHANGES["swapped-languages"])
    assert findings(pairs)["swapped-languages"].rows == tuple(rows)


def test_what_one_side_has_is_shown_beside_the_same_stretch_of_the_other(
    german: Pairs,
) -> None:
    src = " ".join(f"word{letter * 3}" for letter in "abcdefghijklmnopqrstuvwxyz")
    tgt = " ".join(
        f"Wort{letter * 3}" if letter != "t" else "Wortttt<br>"
        for letter in "abcdefghijklmnopqrstuvwxyz"
    )
    (example,) = findings([*german, (src, tgt)])["markup"].examples
    assert "Wortttt<br>" in example.text
    assert "wordttt" in example.text


@pytest.mark.parametrize("code", ["swapped-languages", "wrong-script", "untranslated"])
def test_also_where_the_scripts_differ(chinese: Pairs, code: str) -> None:
    assert code not in findings(chinese, ("en", "zh"))
    finding = findings(changed(chinese, ROWS, CHANGES[code]), ("en", "zh"))[code]
    assert finding.rows == tuple(ROWS)


def test_sound_text_has_nothing_worse_than_a_note(
    german: Pairs, chinese: Pairs
) -> None:
    for pairs, lang in ((german, "de"), (chinese, "zh")):
        found = findings(pairs, ("en", lang))
        assert {finding.severity for finding in found.values()} <= {"note"}
        assert set(found) <= {"near-duplicates", "strangers"}


@pytest.mark.parametrize(("share", "severity"), [(0.03, "warning"), (0.08, "fatal")])
def test_many_swapped_pairs_are_worse_than_a_few(
    german: Pairs, share: float, severity: str
) -> None:
    rows = random.Random(1).sample(range(2000), int(2000 * share))
    finding = findings(changed(german, rows, CHANGES["swapped-languages"]))[
        "swapped-languages"
    ]
    assert finding.severity == severity
    assert len(set(rows) & set(finding.rows)) >= 0.95 * len(rows)


def test_the_other_side_shuffled_is_fatal(german: Pairs) -> None:
    targets = [tgt for _, tgt in german]
    random.Random(3).shuffle(targets)
    finding = findings(
        [(src, tgt) for (src, _), tgt in zip(german, targets, strict=True)]
    )["unrelated-sides"]
    assert (finding.severity, finding.count) == ("fatal", 2000)


def test_exchanged_targets_look_like_strangers(german: Pairs) -> None:
    """Most of them: that a pair does not belong together is told from a few words."""
    rows = sorted(random.Random(4).sample(range(2000), 20))
    targets = {a: german[b][1] for a, b in zip(rows, rows[1:] + rows[:1], strict=True)}
    finding = findings(
        [(src, targets.get(i, tgt)) for i, (src, tgt) in enumerate(german)]
    )["strangers"]
    assert len(set(rows) & set(finding.rows)) >= 10
    assert len(set(finding.rows) - set(rows)) <= 5


@pytest.mark.parametrize(
    "langs",
    [
        ("de", "en"),
        pytest.param(("zh", "en"), marks=pytest.mark.long),
        pytest.param(("zh", "de"), marks=pytest.mark.long),
    ],
)
def test_files_in_the_wrong_order_are_fatal(
    german: Pairs, chinese: Pairs, langs: tuple[str, str]
) -> None:
    pairs = german if langs == ("de", "en") else chinese
    assert findings(pairs, langs)["swapped-files"].severity == "fatal"
    assert "swapped-files" not in findings(pairs, langs[::-1])
    assert "swapped-files" not in findings(pairs, ("und", "und"))
    assert "swapped-files" not in findings(pairs, ("fr", "sw"))


def test_the_training_text_tells_the_sides_of_a_small_dev_text_apart(
    german: Pairs,
) -> None:
    model = SideModel(*map(list, zip(*german[:1900], strict=True)))
    dev = [(tgt, src) for src, tgt in german[1900:]]
    codes = {
        f.code: f for f in look_over(from_pairs(dev, "dev.tsv", "en", "de"), model)
    }
    assert codes["swapped-languages"].severity == "fatal"
    sound = look_over(from_pairs(german[1900:], "dev.tsv", "en", "de"), model)
    assert "swapped-languages" not in {finding.code for finding in sound}


def test_sides_in_one_language_are_not_told_apart(german: Pairs) -> None:
    pairs = [(src, f"{src[:-1]}, I think.") for src, _ in german]
    assert not {"swapped-languages", "same-language"} & set(
        findings(pairs, ("en", "en"))
    )


def test_one_source_with_two_translations_is_noted(german: Pairs) -> None:
    found = findings([*german, (german[5][0], "Etwas ganz anderes.")])[
        "several-translations"
    ]
    assert (found.severity, found.rows) == ("note", (2000,))


def test_numbers_alike_in_other_forms_do_not_differ(german: Pairs) -> None:
    forms = [
        ("1,000", "1.000"),
        ("12 and 7", "7 und 12"),
        ("2 000 000", "2.000.000"),
        ("٣", "3"),
    ]
    pairs = [*german, *((f"There are {a}.", f"Es gibt {b}.") for a, b in forms)]
    assert "numbers-differ" not in findings(pairs)
