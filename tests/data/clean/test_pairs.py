"""Pairs are cleaned of what was planted, are recorded, and are not changed when cleaned again."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.data import builtin
from weft.data.check.alignment import Shift
from weft.data.check.pairs import look_over
from weft.data.clean.cleaned import Cleaned
from weft.data.clean.pairs import clean_pairs
from weft.data.clean.realigning import join_again
from weft.data.clean.rules import BY_NAME, Choice
from weft.data.clean.writing import Destination, pairs_as_files
from weft.data.corpus import ParallelText, from_pairs, read_pairs
from weft.errors import DataError, UsageError

Pairs = list[tuple[str, str]]


def changes_of(cleaned: Cleaned[ParallelText]) -> list[list[str]]:
    """The cells of the list of changes, without its head."""
    lines = list(cleaned.record.lines(("source", "target")))
    return [line.rstrip("\n").split("\t") for line in lines[1:]]


@pytest.fixture(scope="module")
def sound() -> Pairs:
    """Pairs in which the check finds nothing that cleaning acts on."""
    pairs = builtin.pairs("everyday", "en", "de").train[:900]
    text = clean(pairs).text
    return list(zip(text.src, text.tgt, strict=True))


def clean(
    pairs: Pairs, folder: Path | None = None, **asked: list[str]
) -> Cleaned[ParallelText]:
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        path = Path(folder or made) / "made.en-de.tsv"
        lines = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
        path.write_bytes(lines.encode("utf-8", "surrogatepass"))
        choice = Choice.of("translation", asked.get("keep", []), asked.get("drop", []))
        return clean_pairs([str(path)], (None, None), choice, {})


def rows(cleaned: Cleaned[ParallelText]) -> Pairs:
    return list(zip(cleaned.text.src, cleaned.text.tgt, strict=True))


def cyrillic(text: str) -> str:
    return "".join("абвгдежзик"[ord(c) % 10] if c.isalpha() else c for c in text)


# what is planted beside a pair, and the rule that drops it
PLANTED = {
    "empty": lambda src, tgt: (src, " "),
    "control-characters": lambda src, tgt: (f"{src} caf\ufffd", tgt),
    "untranslated": lambda src, tgt: (src, src),
    "wrong-script": lambda src, tgt: (src, cyrillic(tgt)),
    "length-ratio": lambda src, tgt: (src, tgt[:4]),
    "duplicates": lambda src, tgt: (src.upper(), f"{tgt} !"),
}
MENDED = {
    "markup": lambda src, tgt: (f"<i>{src}</i>", tgt),
    "misread-encoding": lambda src, tgt: (
        src,
        tgt.encode().decode("cp1252", "replace"),
    ),
    "spaces": lambda src, tgt: (src.replace(" ", "  ", 1), tgt),
    "swapped-languages": lambda src, tgt: (tgt, src),
}


def test_what_was_planted_is_dropped_and_the_rest_stays(sound: Pairs) -> None:
    places = random.Random(3).sample(range(200, 800), len(PLANTED))
    pairs = list(sound)
    for place, (rule, change) in zip(
        sorted(places, reverse=True), PLANTED.items(), strict=True
    ):
        pairs.insert(place + 1, change(*sound[place]))
        assert rule in BY_NAME
    cleaned = clean(pairs)
    assert rows(cleaned) == sound
    counts = cleaned.record.counts()
    assert {rule: n["dropped"] for rule, n in counts.items()} == dict.fromkeys(
        PLANTED, 1
    )
    assert cleaned.num_read == len(sound) + len(PLANTED)
    lines = list(cleaned.record.lines(("source", "target")))
    assert len(lines) == 1 + len(PLANTED)
    assert all(line.count("\t") == 6 and line.endswith("\n") for line in lines)


def test_what_can_be_mended_is_as_it_was(sound: Pairs) -> None:
    german = [i for i, (_, tgt) in enumerate(sound) if "ü" in tgt and " " in tgt]
    places = german[10 : 10 + len(MENDED)]
    pairs = list(sound)
    for place, change in zip(places, MENDED.values(), strict=True):
        pairs[place] = change(*sound[place])
        assert pairs[place] != sound[place]
    cleaned = clean(pairs)
    assert rows(cleaned) == sound
    changes = {cells[1].split()[0]: cells for cells in changes_of(cleaned)}
    for place, rule in zip(places, MENDED, strict=True):
        _, _, where, *both = changes[rule]
        assert where.endswith(f"made.en-de.tsv:{place + 1}")
        assert tuple(both[:2]) == pairs[place] or rule == "spaces"
        assert tuple(both[2:]) == sound[place]


@pytest.mark.parametrize("by", [1, -1, 2])
def test_a_shifted_stretch_is_in_step_again(sound: Pairs, by: int) -> None:
    first, last = 300, 360
    targets = [tgt for _, tgt in sound]
    if by > 0:  # strange targets push the others down, and as many are lost at the end
        stray = [f"Das gehört nicht hierher, Nummer {n}." for n in range(by)]
        targets[first : last + 1] = [*stray, *targets[first : last + 1 - by]]
    else:
        targets[first : last + 1] = [*targets[first - by : last + 1], "Ein Fremder!"]
    pairs = [(src, tgt) for (src, _), tgt in zip(sound, targets, strict=True)]
    cleaned = clean(pairs)
    found = rows(cleaned)
    true = set(sound)
    counts = cleaned.record.counts()["shifted-lines"]
    # as many sources as targets are left over, and both together are the rows that are missing
    assert counts["dropped"] == len(sound) - len(found)
    of_shift = [cells for cells in changes_of(cleaned) if cells[0] == "dropped"]
    sources, targets = (sum(bool(cells[side]) for cells in of_shift) for side in (3, 4))
    assert sources == targets == counts["dropped"]
    assert all(pair in true for pair in found)
    assert len(found) >= len(sound) - 3 * abs(by)
    assert counts["mended"] >= last - first - 3 * abs(by)


def test_a_line_that_one_file_lacks_puts_nothing_else_out_of_step(
    sound: Pairs, tmp_path: Path
) -> None:
    for name, side in (("a.en", 0), ("a.de", 1)):
        lines = [
            f"{pair[side]}\n" for i, pair in enumerate(sound) if (side, i) != (1, 400)
        ]
        (tmp_path / name).write_text("".join(lines))
    item = f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}"
    cleaned = clean_pairs([item], (None, None), Choice.of("translation", [], []), {})
    assert set(rows(cleaned)) <= set(sound)
    assert len(cleaned.text) >= len(sound) - 3
    (tmp_path / "a.de").write_text("zu wenig\n")
    with pytest.raises(DataError, match="lines but"):
        clean_pairs([item], (None, None), Choice.of("translation", [], []), {})


@pytest.mark.parametrize(
    "name", ["out.tsv", "out.csv", "out.jsonl", "o.en,o.de", "out.tsv.gz"]
)
def test_what_is_written_is_read_again_and_nothing_is_left_to_clean(
    sound: Pairs, tmp_path: Path, name: str
) -> None:
    pairs = [*sound[:300], *sound[100:120], ("a", "b" * 90), *sound[300:]]
    cleaned = clean(pairs)
    output = ",".join(str(tmp_path / part) for part in name.split(","))
    place = Destination.of(output, None, [])
    place.write(pairs_as_files(cleaned.text, place.texts))
    again = read_pairs([output])
    assert list(zip(again.src, again.tgt, strict=True)) == rows(cleaned)
    assert (again.src_lang, again.tgt_lang) == ("en", "de")
    choice = Choice.of("translation", [], [])
    twice = clean_pairs([output], (None, None), choice, {})
    assert twice.record.num_changes == 0
    assert rows(twice) == rows(cleaned)
    codes = {finding.code for finding in look_over(again)}
    assert not codes & {
        name for name in choice.actions if not choice.does(name, "keep")
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_text_with_any_damage_is_cleaned_once_for_all(
    sound: Pairs, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    pairs = chance.sample(sound, 400)
    first = chance.randrange(50, 150)
    targets = [tgt for _, tgt in pairs]
    targets[first : first + 40] = [targets[7], *targets[first : first + 39]]
    pairs = [(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=True)]
    changes = [*PLANTED.values(), *MENDED.values()]
    for place in chance.sample(range(200, 400), 30):
        pairs[place] = chance.choice(changes)(*pairs[place])
    cleaned = clean(pairs)
    assert cleaned.record.num_changes
    dropped = sum(n["dropped"] for n in cleaned.record.counts().values())
    assert cleaned.num_read == len(pairs) == len(cleaned.text) + dropped
    again = clean(rows(cleaned))
    assert again.record.num_changes == 0
    assert rows(again) == rows(cleaned)


def test_rules_are_kept_or_dropped_as_asked(sound: Pairs) -> None:
    pairs = [*sound, sound[0], (f"{sound[1][0]}<br>", sound[1][1][::-1])]
    kept = clean(pairs, keep=["duplicates"], drop=["markup"])
    counts = kept.record.counts()
    assert counts["markup"] == {"mended": 0, "dropped": 1}
    assert "duplicates" not in counts
    for keep, drop, said in (
        (["dupes"], [], "--keep dupes: no such rule"),
        ([], ["duplicate"], "did you mean duplicates"),
        (["markup"], ["markup"], "leave one out"),
        (["empty"], [], "nothing can be learned"),
        (["no-label"], [], "no such rule"),
    ):
        with pytest.raises(UsageError, match=said):
            Choice.of("translation", keep, drop)


def test_rows_of_dev_and_test_are_dropped(sound: Pairs, tmp_path: Path) -> None:
    path = tmp_path / "made.en-de.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in sound))
    test = from_pairs([(src.upper(), tgt) for src, tgt in sound[:7]], "t", "en", "de")
    cleaned = clean_pairs(
        [str(path)],
        (None, None),
        Choice.of("translation", [], []),
        {"test-in-training": test},
    )
    assert cleaned.record.counts() == {"test-in-training": {"mended": 0, "dropped": 7}}
    assert rows(cleaned) == sound[7:]


def test_text_of_which_nothing_is_left_is_an_error() -> None:
    with pytest.raises(DataError, match="no pair is left"):
        clean([("same", "same"), ("a", "")])


class OneToOne:
    """Scores by the numbers that lines stand for: a right pair 2, a wrong one -6."""

    def __init__(self, src: Sequence[int], tgt: Sequence[int]) -> None:
        self._src = np.array(src)
        self._tgt = np.array(tgt)

    def score(self, src: Any, tgt: Any) -> Any:
        return np.where(self._src[src] == self._tgt[tgt], 2.0, -6.0)


@pytest.mark.parametrize("early", range(-3, 4))
@pytest.mark.parametrize("late", range(-3, 4))
def test_an_end_that_is_told_wrongly_leaves_no_wrong_pair(
    early: int, late: int
) -> None:
    src = list(range(120))
    # two strange lines before 30, and two that are missing from 80 on
    tgt = [*range(30), -1, -2, *range(30, 80), *range(82, 120)]
    files = [0] * len(src)
    shift = Shift(30 + early, 79 + late, 2)
    joins = join_again(OneToOne(src, tgt), [shift], files)  # type: ignore[arg-type]
    assert [(src[i], tgt[j]) for i, j in zip(joins.src, joins.tgt, strict=True)] == [
        (n, n) for n in range(120) if n not in (80, 81)
    ]
    assert joins.left_src == [80, 81]
    assert joins.left_tgt == [30, 31]


def test_lines_are_joined_within_a_file() -> None:
    src = list(range(40))
    tgt = [-1, *range(19), *range(20, 40)]
    files = [0] * 20 + [1] * 20
    joins = join_again(
        OneToOne(src, tgt),  # type: ignore[arg-type]
        [Shift(0, 19, 1)],
        files,
    )
    assert joins.left_src == [19]
    assert joins.left_tgt == [0]
    assert [(src[i], tgt[j]) for i, j in zip(joins.src, joins.tgt, strict=True)] == [
        (n, n) for n in range(40) if n != 19
    ]
