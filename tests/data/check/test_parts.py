"""What training, dev and test share, and what is said of each of them."""

import random

import pytest

from weft.data.check.finding import Finding, Rows
from weft.data.check.parts import (
    View,
    examine_documents,
    examine_pairs,
    examine_rows,
    overlap,
)
from weft.data.corpus import ParallelText, from_pairs, read_pairs
from weft.data.documents import from_documents
from weft.data.labelled import from_rows
from weft.data.split import fold

Pairs = list[tuple[str, str]]


def text(pairs: Pairs, name: str = "train.tsv") -> ParallelText:
    return from_pairs(pairs, name, "en", "de")


def view(rows: list[tuple[str, ...]]) -> View:
    return View(
        rows,
        [tuple(map(fold, row)) for row in rows],
        Rows(len(rows), "rows", str, rows.__getitem__),
    )


def by_code(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.code: finding for finding in findings}


def test_exact_folded_and_half() -> None:
    train = view([("Hello.", "Hallo."), ("One", "Eins"), ("Two", "Zwei")])
    test = view(
        [
            ("Hello.", "Hallo."),
            ("hello", "hallo!"),
            ("One", "Uno"),
            ("Dos", "Zwei"),
            ("x", "y"),
        ]
    )
    found = overlap(train, test)
    assert (found.exact, found.folded, found.first, found.one_side) == (
        [0],
        [0, 1],
        [0, 0],
        [2, 3],
    )
    nothing = overlap(view([("a", "b")]), view([("c", "d")]))
    assert (nothing.exact, nothing.folded, nothing.one_side) == ([], [], [])
    alone = overlap(view([("a b",), ("c",)]), view([("A, B",), ("d",)]))
    assert (alone.exact, alone.folded, alone.one_side) == ([], [0], [])


@pytest.mark.parametrize(
    ("copied", "severity"),
    [
        (0, None),
        (1, "note"),
        (3, "warning"),
        (99, "warning"),
        (100, "fatal"),
        (200, "fatal"),
    ],
)
def test_a_test_in_training_is_as_grave_as_its_share(
    german: Pairs, copied: int, severity: str | None
) -> None:
    train, test = german[:1500], german[1500:1700]
    shouted = [(src.upper(), tgt.replace(".", " !")) for src, tgt in test[:copied]]
    found = by_code(
        examine_pairs(text([*train, *shouted]), test=text(test, "test.tsv"))
    )
    finding = found.get("test-in-training")
    assert (finding and finding.severity) == severity
    if finding:
        assert (finding.part, finding.count, finding.rows) == (
            "test",
            copied,
            tuple(range(copied)),
        )
        assert finding.message.startswith(f"test.tsv:1: {copied} of 200 pairs of test ")
        assert "train.tsv:1501" in finding.message
        assert ", 0 of them exactly" in finding.message


def test_dev_and_test_the_same_is_warned_of_and_no_more(german: Pairs) -> None:
    same = text(german[1500:1700], "dev.tsv")
    findings = examine_pairs(text(german[:1500]), same, same)
    assert {
        finding.severity for finding in findings if finding.code == "test-in-dev"
    } == {"warning"}
    assert not [finding for finding in findings if finding.severity == "fatal"]


def test_one_side_in_training_is_noted(german: Pairs) -> None:
    test = [(src, f"{tgt} Wirklich.") for src, tgt in german[:20]] + german[1500:1700]
    found = by_code(examine_pairs(text(german[:1500]), test=text(test, "test.tsv")))
    assert (
        found["test-half-in-training"].severity,
        found["test-half-in-training"].count,
    ) == ("note", 20)
    assert found["test-half-in-training"].part == "test"


def test_a_small_dev_text_is_no_reason_to_complain(german: Pairs) -> None:
    findings = examine_pairs(text(german[:1500]), text(german[1500:1520], "dev.tsv"))
    assert "too-small" not in by_code(findings)
    assert "too-small" in by_code(examine_pairs(text(german[:20])))


def test_damage_in_dev_says_that_it_is_in_dev(german: Pairs) -> None:
    dev = [*german[1500:1700], ("to\x07day", "heute")]
    found = by_code(examine_pairs(text(german[:1500]), text(dev, "dev.tsv")))
    assert found["control-characters"].part == "dev"
    assert found["control-characters"].message.startswith("dev.tsv:201: ")


def test_a_shuffled_test_text_is_fatal(german: Pairs) -> None:
    targets = [tgt for _, tgt in german[1000:]]
    random.Random(5).shuffle(targets)
    test = [(src, tgt) for (src, _), tgt in zip(german[1000:], targets, strict=True)]
    found = by_code(examine_pairs(text(german[:1000]), test=text(test, "test.tsv")))
    assert (found["unrelated-sides"].severity, found["unrelated-sides"].part) == (
        "fatal",
        "test",
    )


def test_lines_of_documents_are_compared() -> None:
    book = "\n".join(
        f"In chapter {i} nothing happens that is worth a word." for i in range(400)
    )
    page = "\n".join(
        f"In chapter {i} nothing happens that is worth a word." for i in range(390, 410)
    )
    found = by_code(
        examine_documents(
            from_documents([book], "b.txt"), test=from_documents([page], "p.txt")
        )
    )
    finding = found["test-in-training"]
    assert (finding.severity, finding.count) == ("fatal", 10)
    assert finding.message.startswith("p.txt:1: 10 of 20 lines of test (50.0 %)")
    assert "b.txt:391" in finding.message
    apart = from_documents(
        ["Quite another page, which has never been in any book."], "q.txt"
    )
    assert "test-in-training" not in by_code(
        examine_documents(from_documents([book], "b.txt"), test=apart)
    )


def test_labels_that_only_one_part_has() -> None:
    train = from_rows(
        [(f"the text number {i}", ["a" if i % 2 else "b"]) for i in range(300)], "train"
    )
    test = from_rows([("one more text", ["a"]), ("and another one", ["c"])], "test")
    found = by_code(examine_rows(train, None, test))
    assert (found["unknown-label"].severity, found["unknown-label"].rows) == (
        "fatal",
        (1,),
    )
    assert found["unknown-label"].message.startswith(
        "test:2: the label 'c' (1 row of test)"
    )
    assert (found["missing-label"].severity, found["missing-label"].part) == (
        "warning",
        "test",
    )
    assert "no row of test has the label 'b'" in found["missing-label"].message


class TestRealCorpora:
    """The public corpora are sound: honest warnings at most, and nothing fatal."""

    def test_known_overlap(self, corpora) -> None:
        train, dev = (
            read_pairs([f"{corpora}/en-cn/{name}.txt"]) for name in ("train", "dev")
        )
        found = overlap(view(list(train.rows())), view(list(dev.rows())))
        assert (len(found.exact), len(found.one_side)) == (0, 176)

    @pytest.mark.long
    def test_multi30k_with_dev_and_test(self, corpora) -> None:
        folder = f"{corpora}/multi30k"
        for a, b in (("en", "de"), ("de", "en")):
            parts = [
                read_pairs([f"{folder}/{name}.{a},{folder}/{name}.{b}"])
                for name in ("train", "val", "test_2016_flickr")
            ]
            assert {finding.severity for finding in examine_pairs(*parts)} == {"note"}
