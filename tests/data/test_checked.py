"""A large text that a run has checked is not checked again, and another one is."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from weft.config import PairsSection
from weft.data import corpus, crew, texts
from weft.data.builtin import everyday
from weft.data.check.finding import Finding
from weft.data.checked import write_checked
from weft.data.column import Column
from weft.data.corpus import ParallelText, read_pairs, split_off
from weft.data.measures import Measures, measure
from weft.data.texts import Sources, Texts, gather_pairs
from weft.data.train_text import TrainText

DATA = PairsSection(src_lang="de", tgt_lang="en", dev_size=20, test_size=20)


@pytest.fixture
def file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> Path:
    """Write pairs that are a large text here, one of them with markup."""
    large_from(100, 400)
    monkeypatch.setenv(crew.VARIABLE, "1")
    pairs = [(triple.de, triple.en) for triple in everyday()][:400]
    pairs[30:60] = [pairs[30]] * 30
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), "utf-8")
    return path


def gathered(file: Path, kept: Path) -> Texts[ParallelText]:
    return gather_pairs(DATA, Sources((TrainText(str(file)),), checked=kept))


def test_a_large_text_is_measured_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []

    def counted(columns: Sequence[Column], seed: int) -> Measures:
        times.append(seed)
        return measure(columns, seed)

    monkeypatch.setattr(corpus, "measure", counted)
    found = gathered(file, tmp_path / "checked.json")
    assert times == [DATA.seed]
    (near,) = (f for f in found.findings if f.code == "duplicates")
    assert near.count == 29
    alone = split_off(read_pairs([TrainText(str(file))], "de", "en"), 20, 20, DATA.seed)
    parts = (found.train, found.dev, found.test)
    assert [part and list(part.rows()) for part in parts] == [
        part and list(part.rows()) for part in alone
    ]


def test_the_same_text_is_not_checked_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "checked.json"
    first = gathered(file, kept)
    assert first.train.is_large
    assert not kept.exists()
    write_checked(kept, first.check_key, first.findings)
    checks: list[int] = []

    def counted(*parts: ParallelText | None) -> list[Finding]:
        checks.append(1)
        return examine(*parts)

    examine = texts.examine_directions
    monkeypatch.setattr(texts, "examine_directions", counted)
    again = gathered(file, kept)
    assert not checks
    assert again.notes == first.notes
    assert len(again.findings) >= 2
    said = [(f.severity, f.code, f.message, f.part, f.count) for f in again.findings]
    assert said == [
        (f.severity, f.code, f.message, f.part, f.count) for f in first.findings
    ]
    # a damaged file, another text of as many pairs, the same one in another place
    content = kept.read_text("utf-8")
    kept.write_text(content[:-9], "utf-8")
    gathered(file, kept)
    kept.write_text(content, "utf-8")
    lines = file.read_text("utf-8")
    file.write_text(lines.replace("\n", "!\n", 1), "utf-8")
    gathered(file, kept)
    file.write_text("\n" + lines, "utf-8")
    gathered(file, kept)
    assert len(checks) == 3
