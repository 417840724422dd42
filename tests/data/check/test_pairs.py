"""The data check finds what is wrong, near where it is wrong, and is silent about sound
corpora.
"""

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pushed import of_which
from weft.data.check.finding import Finding
from weft.data.check.pairs import look_over
from weft.data.corpus import ParallelText, from_pairs, read_pairs


def made(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs whose lengths go together as translations' do, without any number or question mark."""
    chance = random.Random(seed)
    pairs = []
    for _ in range(count):
        size = chance.randint(3, 25)
        src = " ".join(
            chance.choice(("red", "green", "a", "wonderful", "house"))
            for _ in range(size)
        )
        tgt = " ".join(
            chance.choice(("rot", "und", "ein", "wunderbar", "hause"))
            for _ in range(size)
        )
        pairs.append((src, tgt))
    return pairs


def corpus(pairs: list[tuple[str, str]]) -> ParallelText:
    return from_pairs(pairs, "made.tsv", "en", "de")


def shifted(pairs: list[tuple[str, str]], at: int) -> list[tuple[str, str]]:
    """Line `at` (from 0) of the target lost, all later ones one line early."""
    targets = [tgt for _, tgt in pairs]
    del targets[at]
    return [(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=False)]


def found(text: ParallelText, code: str) -> Finding:
    findings = [finding for finding in look_over(text) if finding.code == code]
    assert len(findings) == 1, look_over(text)
    assert "\n" not in findings[0].message
    assert findings[0].remedy
    return findings[0]


def codes(text: ParallelText, *severities: str) -> set[str]:
    return {
        finding.code
        for finding in look_over(text)
        if finding.severity in (severities or ("warning", "fatal"))
    }


def line_of(finding: Finding) -> int:
    return int(finding.message.removeprefix("made.tsv:").split(":", 1)[0])


class TestShift:
    @pytest.mark.parametrize("at", [0, 100, 500, 900])
    def test_a_lost_line_is_found_near_its_place(self, at: int) -> None:
        finding = found(corpus(shifted(made(1000), at)), "shifted-lines")
        assert finding.severity == "fatal"
        assert abs(line_of(finding) - (at + 1)) <= 4, "only the lengths say where"
        assert finding.count > 0.95 * (1000 - at) - 5

    def test_a_line_too_much_that_is_made_up_for_later(self) -> None:
        pairs = made(1000)
        targets = [tgt for _, tgt in pairs]
        targets.insert(300, "nichts")
        del targets[700]
        finding = found(
            corpus([(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=True)]),
            "shifted-lines",
        )
        assert 290 <= line_of(finding) <= 320
        assert 350 <= finding.count <= 450

    def test_numbers_and_question_marks_alone_show_a_shift(self) -> None:
        pairs = [
            (
                f"line {i} is here" + "?" * (i % 3 == 0),
                f"Zeile {i} liegt hier" + "？" * (i % 3 == 0),
            )
            for i in range(400)
        ]
        assert codes(corpus(pairs)) == set()
        assert (
            190 <= line_of(found(corpus(shifted(pairs, 200)), "shifted-lines")) <= 210
        )

    def test_one_side_in_another_order(self) -> None:
        pairs = made(1000)
        targets = [tgt for _, tgt in pairs]
        random.Random(2).shuffle(targets)
        text = corpus(
            [(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=True)]
        )
        assert "unrelated-sides" in codes(text)
        assert "shifted-lines" not in codes(text)

    @pytest.mark.parametrize("seed", of_which(range(8), 0, 1, 2))
    def test_sound_text_is_not_suspected(self, seed: int) -> None:
        pairs = made(600, seed)
        for order in (
            pairs,
            sorted(pairs),
            sorted(pairs, key=lambda pair: len(pair[0])),
        ):
            assert codes(corpus(order)) == set()

    def test_lines_all_alike_in_length_are_not_suspected(self) -> None:
        chance = random.Random(1)
        pairs = [
            (
                "".join(chance.choices("abcdefgh", k=8)),
                "".join(chance.choices("xyzuvw", k=8)),
            )
            for _ in range(500)
        ]
        assert codes(corpus(pairs)) == set()

    def test_numbers_of_any_length_and_script(self) -> None:
        assert codes(
            corpus([("9" * 6000, "9" * 6000), ("٣ cats", "3 Katzen")] * 150)
        ) <= {
            "untranslated",
            "duplicates",
            "long-lines",
        }


class TestFindings:
    def test_too_small(self) -> None:
        finding = found(corpus(made(3)), "too-small")
        assert (finding.severity, finding.count) == ("warning", 3)
        assert "3 pairs" in finding.message
        assert "too-small" not in codes(corpus(made(200)), "note", "warning")

    def test_untranslated_pairs(self) -> None:
        pairs = made(300)
        pairs[7] = ("the same", "the same")
        finding = found(corpus(pairs), "untranslated")
        assert (finding.severity, finding.count, line_of(finding)) == ("note", 1, 8)
        pairs[100:130] = [(src, src) for src, _ in pairs[100:130]]
        assert found(corpus(pairs), "untranslated").severity == "warning"

    def test_duplicates_after_folding(self) -> None:
        pairs = [*made(300), ("Same, here!", "Gleich."), ("same here", "gleich")]
        finding = found(corpus(pairs), "duplicates")
        assert (finding.severity, finding.count, line_of(finding)) == ("note", 1, 302)
        assert found(corpus(made(300) * 2), "duplicates").severity == "warning"

    def test_one_text_beside_many_others(self) -> None:
        pairs = [(src, "Das ist alles.") for src, _ in made(300)]
        finding = found(corpus(pairs), "one-text")
        assert (finding.severity, finding.count, line_of(finding)) == ("fatal", 300, 1)
        assert "the same target occurs with 300 different sources" in finding.message
        turned = found(corpus([(tgt, src) for src, tgt in pairs]), "one-text")
        assert "the same source occurs with 300 different targets" in turned.message
        some = made(300)
        some[100:160] = pairs[100:160]
        finding = found(corpus(some), "one-text")
        assert (finding.severity, finding.count, line_of(finding)) == (
            "warning",
            60,
            101,
        )
        some[115:160] = made(300)[115:160]
        assert "one-text" not in codes(corpus(some), "note", "warning", "fatal")

    def test_the_same_pair_again_and_again_is_no_text_beside_many(self) -> None:
        same = corpus([*made(200), *[("Hello.", "Hallo.")] * 200])
        assert "one-text" not in codes(same, "note", "warning", "fatal")

    @pytest.mark.parametrize(
        "character", ["\x07", "\r", "\x85", "\u2028", "\ufffd", "\x7f", chr(0xD800)]
    )
    def test_control_characters(self, character: str) -> None:
        pairs = made(300)
        pairs[41] = (pairs[41][0], f"eins{character}{pairs[41][1]}")
        finding = found(corpus(pairs), "control-characters")
        assert (finding.count, line_of(finding)) == (1, 42)

    def test_long_lines_and_odd_lengths(self) -> None:
        pairs = made(300)
        pairs[20] = ("a " * 1500, "b " * 1500)
        pairs[30] = ("a " * 100, "b")
        assert line_of(found(corpus(pairs), "long-lines")) == 21
        assert line_of(found(corpus(pairs), "length-ratio")) == 31

    def test_what_reading_dropped_and_took_for_granted(self, tmp_path: Path) -> None:
        path = tmp_path / "p.tsv"
        path.write_text(
            "".join(f"{s}\t{t}\tby me\n" for s, t in made(300)) + "x\t\tby me\n",
            encoding="utf-8",
        )
        text = read_pairs([str(path)])
        assert (
            found(text, "dropped-pairs").severity,
            found(text, "dropped-pairs").count,
        ) == ("note", 1)
        assert "3 columns" in found(text, "as-read").message

    def test_how_it_was_read_stands_before_what_came_of_it(
        self, tmp_path: Path
    ) -> None:
        """A header that is taken for a pair is a defect of the text only in the second place."""
        path = tmp_path / "p.tsv"
        lines = ["Our language\tEnglish", "The same here\tThe same here"]
        lines += [f"Our dog {i} is here\tThe dog {i} was there" for i in range(300)]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        notes = [f for f in look_over(read_pairs(path)) if f.severity == "note"]
        assert "the first row (Our language, English)" in notes[0].message
        assert len(notes) > 1

    def test_the_gravest_comes_first(self) -> None:
        severities = [
            finding.severity
            for finding in look_over(corpus([("a", "a"), *made(20), *made(20)[:1]]))
        ]
        assert severities == sorted(severities, key=["fatal", "warning", "note"].index)
        assert len(set(severities)) == 2


class TestRealCorpora:
    def load(self, corpora: Path, name: str) -> ParallelText:
        return read_pairs([name.format(corpora)])

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(
                "{0}/multi30k/train.en,{0}/multi30k/train.de", marks=pytest.mark.long
            ),
            pytest.param(
                "{0}/multi30k/train.en,{0}/multi30k/train.fr", marks=pytest.mark.long
            ),
            "{0}/multi30k/val.de,{0}/multi30k/val.fr",
            "{0}/en-cn/train.txt",
            "{0}/en-cn/dev.txt",
            pytest.param(
                "{0}/small_parallel_enja/train.en,{0}/small_parallel_enja/train.ja",
                marks=pytest.mark.long,
            ),
            "{0}/small_parallel_enja/dev.en,{0}/small_parallel_enja/dev.ja",
        ],
    )
    def test_clean_corpora_give_no_warning(self, corpora: Path, name: str) -> None:
        assert codes(self.load(corpora, name)) == set()

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(
                "{0}/multi30k/train.en,{0}/multi30k/train.de", marks=pytest.mark.long
            ),
            "{0}/en-cn/train.txt",
            pytest.param(
                "{0}/small_parallel_enja/train.en,{0}/small_parallel_enja/train.ja",
                marks=pytest.mark.long,
            ),
        ],
    )
    def test_a_shift_from_the_middle_on_is_found_near_it(
        self, corpora: Path, name: str
    ) -> None:
        whole = self.load(corpora, name)
        middle = len(whole) // 2
        pairs = list(zip(whole.src, whole.tgt, strict=True))
        assert (
            abs(
                line_of(found(corpus(shifted(pairs, middle)), "shifted-lines"))
                - (middle + 1)
            )
            <= 2
        )
        assert (
            abs(
                line_of(found(corpus(shifted(pairs[:400], 200)), "shifted-lines")) - 201
            )
            <= 5
        )

    @pytest.mark.long
    def test_29_000_pairs_take_seconds(self, corpora: Path) -> None:
        """By the processor's time, whatever else runs: training on them takes a quarter of an
        hour.
        """
        text = self.load(corpora, "{0}/multi30k/train.en,{0}/multi30k/train.de")
        start = time.process_time()
        look_over(text)
        assert time.process_time() - start < 10


@pytest.mark.parametrize(("num_coded", "severity"), [(20, "note"), (21, "warning")])
def test_units_with_inline_codes_are_named(num_coded: int, severity: str) -> None:
    text = replace(corpus(made(100)), coded={"made.tmx": num_coded})
    finding = found(text, "inline-codes")
    assert finding.severity == severity
    share = f"{num_coded}.0 % of the text"
    assert "a translation memory keeps them" in finding.remedy
    counted = f"made.tmx: {num_coded} pairs ({share}) had inline codes"
    assert finding.message.startswith(counted)


def test_a_month_that_one_side_names_is_no_other_number() -> None:
    months = [("On 9 January 2020.", "2020 年 1 月 9 日。"), ("May 4.", "5월 4일.")]
    odd = [("On 9 January 2020.", "2020 年 1 月 8 日。"), ("5 cases.", "5 月 33.")]
    for pairs, count in ((months, 0), (odd, 2)):
        rows = [*made(100), *pairs, *[pair[::-1] for pair in pairs]]
        findings = look_over(corpus(rows))
        counts = [one.count for one in findings if one.code == "numbers-differ"]
        assert sum(counts) == 2 * count


def test_no_inline_codes_are_no_finding() -> None:
    assert "inline-codes" not in codes(corpus(made(100)))
