"""A large text is checked in stretches, and the same is found as in one that is held in memory."""

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.data import crew
from weft.data.builtin import everyday
from weft.data.check import pairs as pair_checks
from weft.data.check import stretches
from weft.data.check.finding import Finding
from weft.data.check.pairs import CLOSE, PairText
from weft.data.check.parts import examine_pairs
from weft.data.corpus import ParallelText, from_pairs, read_pairs, split_off
from weft.data.measures import hash_texts
from weft.data.signature import signature
from weft.data.texts import text_signature

NUMBERED = "das ist der Satz mit der Nummer {} und allem was dazu gehört ."
ROWS = 900


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write pairs of the corpus with some of all that is looked for."""
    draw = random.Random(1)
    sentences = everyday()
    pairs = []
    for n in range(ROWS):
        chosen = draw.choices(sentences, k=2)
        src = " ".join(triple.de for triple in chosen)
        tgt = " ".join(triple.en for triple in chosen)
        pairs.append((f"{src} {n}", f"{tgt} {n}"))
    pairs[50] = pairs[10]
    pairs[60] = (pairs[20][0], "another translation of it")
    pairs[70] = pairs[70][::-1]
    pairs[80] = (pairs[80][0], pairs[80][0])
    pairs[90] = (pairs[90][0] + " <br>", pairs[90][1])
    pairs[100] = ("Ã© " + pairs[100][0], pairs[100][1])
    pairs[110] = (pairs[110][0] + "\u200b", pairs[110][1])
    pairs[120] = ("все эти слова по-русски", pairs[120][1])
    pairs[130] = (pairs[130][0], pairs[130][1] * 9)
    pairs[140] = (NUMBERED.format("eins"), NUMBERED.format("one"))
    pairs[150] = (NUMBERED.format("zwei"), NUMBERED.format("two"))
    targets = [tgt for _, tgt in pairs]
    targets[400:500] = [*targets[402:500], *targets[400:402]]
    file = tmp_path_factory.mktemp("damaged") / "pairs.de-en.tsv"
    lines = [f"{src}\t{tgt}\n" for (src, _), tgt in zip(pairs, targets, strict=True)]
    file.write_text("".join(lines), "utf-8")
    return file


def examined(file: Path) -> tuple[ParallelText, list[Finding]]:
    train, dev, test = split_off(read_pairs([file]), 40, 30, 1)
    return train, examine_pairs(train, dev, test)


def test_one_stretch_has_what_is_found_in_memory(
    damaged: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    held, in_memory = examined(damaged)
    large_from(300, ROWS)
    text, found = examined(damaged)
    assert text.is_large
    assert text_signature(text) == signature(held.rows()) == signature(text.rows())
    assert len(in_memory) >= 12
    assert found == in_memory


def test_stretches_find_the_same_in_any_number_of_processes(
    damaged: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    _, in_memory = examined(damaged)
    large_from(300, 300)
    _, alone = examined(damaged)
    monkeypatch.setenv(crew.VARIABLE, "2")
    _, side_by_side = examined(damaged)
    assert side_by_side == alone
    rows = {finding.code: set(finding.rows) for finding in alone}
    expected = {finding.code: set(finding.rows) for finding in in_memory}
    assert rows.keys() == expected.keys()
    # a row alone is the same in every stretch
    for code in ("duplicates", "near-duplicates", "several-translations", "markup"):
        assert rows[code] == expected[code]
    for code in ("untranslated", "misread-encoding", "control-characters"):
        assert rows[code] == expected[code]
    assert len(rows["shifted-lines"] & expected["shifted-lines"]) > 80


def test_some_stretches_of_a_larger_text_are_looked_at_closely(
    damaged: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    large_from(300, 100)
    _, every = examined(damaged)
    assert not any("looked at" in finding.message for finding in every)
    expected = {f.code: f for f in every if f.part == "train"}
    # of nine the first, the middle and the last; then the first and the last
    for chosen, is_found in (((0, 4, 8), True), ((0, 8), False)):
        monkeypatch.setattr(stretches, "MOST_CLOSE", 100 * len(chosen))
        text, some = examined(damaged)
        ends = [len(text) * n // 9 for n in range(10)]
        close = {row for n in chosen for row in range(ends[n], ends[n + 1])}
        found = {f.code: f for f in some if f.part == "train"}
        note = found.pop("looked-at")
        assert note.count == len(close)
        assert f"{len(close)} of {len(text)} pairs" in note.message
        assert ("shifted-lines" in found) == is_found
        for code in CLOSE:
            if code in found:
                finding = found.pop(code)
                assert set(finding.rows) == set(expected[code].rows) & close
                assert f"{len(close)}" in finding.message
                assert "looked at for this" in finding.message
        assert found == {c: f for c, f in expected.items() if c not in CLOSE}


@pytest.mark.parametrize("times", [19, 20, 25, 60])
def test_a_text_beside_many_others_is_found_by_hashes(times: int) -> None:
    pairs = [(f"source {n}", "the same") for n in range(times)] * 2
    pairs += [("another", f"target {n}") for n in range(60)]
    pairs += [(f"other {n}", f"different {n % 150}") for n in range(190)]
    text = from_pairs(pairs, "pairs", "de", "en")
    held = PairText(text)
    sides = [hash_texts(words.folded) for words in (held.src, held.tgt)]
    both = zip(held.src.folded, held.tgt.folded, strict=True)
    hashes: Any = SimpleNamespace(
        row=hash_texts(map("\t".join, both)), side=sides.__getitem__
    )
    found = list(stretches._one_text(hashes, held.rows))
    assert found == list(pair_checks._one_text(held))
    assert len(found) == 1 + (times > 27)


def test_what_a_process_cannot_do_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(crew.VARIABLE, "2")
    done: list[int] = []
    tasks = [{"first": n, "last": n + 1} for n in range(3)]
    crew.work("unknown to it", lambda task: done.append(task["first"]), tasks)
    assert sorted(done) == [0, 1, 2]
