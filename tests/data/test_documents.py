"""Documents: where one ends, where it came from, and which are held out."""

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.check.documents import look_over_documents
from weft.data.check.finding import Finding
from weft.data.corpus import fold
from weft.data.documents import (
    BLANK,
    Documents,
    fingerprint_documents,
    from_documents,
    read_documents,
    split_documents,
)
from weft.data.formats import lines
from weft.errors import DataError, UsageError

TEXT = "\n\nOne\r\n  two \n \t \nthree\n\n\n\nfour\u2028five\rsix\n\u3000\nseven"


@pytest.fixture
def corpora() -> Path:
    folder = Path(
        os.environ.get("WEFT_DATA")
        or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


def write(path: Path, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def refusal(path: str, documents: str = "blank-line") -> str:
    with pytest.raises(DataError) as caught:
        read_documents(path, documents)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def one(text: str) -> Documents:
    return from_documents([text], "one")


class TestReading:
    @pytest.mark.parametrize("ending", ["", ".gz"])
    def test_blank_lines_separate_documents(self, tmp_path: Path, ending: str) -> None:
        path = write(tmp_path / f"t.txt{ending}", TEXT)
        found = read_documents(path, "blank-line")
        assert found.texts == ["One\n  two ", "three", "four\u2028five\rsix", "seven"]
        assert [found.where(i) for i in range(4)] == [
            f"{path}:{n}" for n in (3, 6, 10, 12)
        ]
        assert (found.files, found.file_of, found.dropped, found.notes) == (
            [path],
            [0] * 4,
            {},
            [],
        )

    def test_every_line_can_be_a_document(self, tmp_path: Path) -> None:
        found = read_documents(write(tmp_path / "t", TEXT), "line")
        assert found.texts == ["One", "  two ", "three", "four\u2028five\rsix", "seven"]
        assert found.lines == [3, 4, 6, 10, 12]
        assert found.dropped == {BLANK: 7}

    @pytest.mark.parametrize("end", ["", "\n", "\r\n"])
    def test_a_file_is_kept_with_all_but_its_carriage_returns(
        self, tmp_path: Path, end: str
    ) -> None:
        content = f"\r\n{TEXT}{end}"
        found = read_documents([write(tmp_path / "t.gz", content)], "file")
        assert found.texts == [content.replace("\r\n", "\n")]
        assert (found.lines, found.num_bytes) == ([1], len(found.texts[0].encode()))

    def test_a_file_may_have_lines_of_any_length(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lines, "MAX_LINE_CHARS", 10)
        path = write(tmp_path / "t", "short\n" + "x" * 11)
        assert read_documents(path, "file").num_bytes == 17
        assert "t:2: longer than 10" in refusal(path)

    def test_several_files_are_joined(self, tmp_path: Path) -> None:
        first, second = write(tmp_path / "a", "x\n\ny"), write(tmp_path / "b,c", "z")
        found = read_documents((first, Path(second), first), "blank-line")
        assert found.texts == ["x", "y", "z", "x", "y"]
        assert [found.where(i) for i in (1, 2, 4)] == [
            f"{first}:3",
            f"{second}:1",
            f"{first}:3",
        ]
        assert found.num_bytes == 5
        assert read_documents([first, second], "line").dropped == {BLANK: 1}

    def test_a_file_that_never_has_a_blank_line_is_said(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t", "one\ntwo\n")
        assert read_documents(path, "blank-line").notes == [
            f"{path}: no blank line between its lines: it is one document"
        ]
        assert read_documents(path, "file").notes == []

    @pytest.mark.parametrize(
        "name", ["a.csv", "a.jsonl", "a.zip", "a.json.gz", "a.docx"]
    )
    def test_formats_that_are_not_read_are_named(
        self, tmp_path: Path, name: str
    ) -> None:
        message = refusal(write(tmp_path / name, "text"))
        assert f"{name}: is " in message
        assert ", not plain text for a language model; " in message
        assert "TAB" not in message

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.html", "<!DOCTYPE html>\n<p>ä</p>\n"),
            ("a.json", '{"a": 1}\n'),
            ("a.txt", "WEBVTT\n"),
            ("a.csv", "a,b\n"),
        ],
    )
    def test_text_of_another_kind_is_learned_as_it_stands_where_asked(
        self, tmp_path: Path, name: str, content: str
    ) -> None:
        path = write(tmp_path / name, content.encode())
        assert refusal(path, "file").endswith(
            "add --set data.raw=true to train on it unchanged"
        )
        assert read_documents(path, "file", raw=True).texts == [content]
        packed = write(tmp_path / "a.docx", b"PK\x03\x04")
        with pytest.raises(DataError, match="is an office document") as caught:
            read_documents(packed, "file", raw=True)
        assert "data.raw" not in str(caught.value)

    @pytest.mark.parametrize("documents", ["blank-line", "file", "line"])
    def test_what_is_no_text_is_refused_with_its_place(
        self, tmp_path: Path, documents: str
    ) -> None:
        assert "bad:2: not UTF-8 at the text's byte 3" in refusal(
            write(tmp_path / "bad", b"ok\n\xff"), documents
        )
        assert "nul:2: NUL at the text's byte 6" in refusal(
            write(tmp_path / "nul", b"words\n\0"), documents
        )
        assert "a zip archive" in refusal(
            write(tmp_path / "zip", b"PK\x03\x04"), documents
        )
        assert "is empty (0 bytes)" in refusal(
            write(tmp_path / "empty", b""), documents
        )
        assert "only white space" in refusal(
            write(tmp_path / "blank", " \n\n\t"), documents
        )
        (tmp_path / "empty-one").mkdir()
        assert "is a folder" in refusal(str(tmp_path / "empty-one"), documents)
        assert f"did you mean {tmp_path / 'blank'}?" in refusal(
            str(tmp_path / "blanc"), documents
        )

    def test_two_files_joined_by_a_comma_are_pairs(self, tmp_path: Path) -> None:
        both = ",".join(write(tmp_path / name, "words\n") for name in "ab")
        assert refusal(both).startswith(
            f"{both}: two files joined by a comma are pairs, for translation; "
        )

    def test_no_data_or_an_empty_name_is_wrong_usage(self) -> None:
        for data in ([], "", [" "]):
            with pytest.raises(UsageError):
                read_documents(data, "file")

    def test_texts_that_come_from_no_file(self) -> None:
        found = from_documents(["a\r\nb ", " ", "", "語"], "made")
        assert (found.texts, found.lines, found.where(1)) == (
            ["a\nb ", "語"],
            [1, 4],
            "made:4",
        )
        assert (found.dropped, found.num_bytes, len(found)) == ({BLANK: 2}, 7, 2)
        chosen = found.select([1])
        assert (chosen.texts, chosen.where(0), chosen.dropped) == (["語"], "made:4", {})
        with pytest.raises(DataError, match="made: holds no text"):
            from_documents([], "made")


class TestFingerprint:
    def test_it_changes_with_content_order_and_bounds_but_not_with_place(self) -> None:
        parts = [
            ["a", "b"],
            ["b", "a"],
            ["ab"],
            ["a\nb"],
            ["a"],
            ["a", "b", "b"],
            ["a\n1\nb"],
            ["ab", "c"],
            ["a", "bc"],
        ]
        assert len(
            {fingerprint_documents(from_documents(texts, "x")) for texts in parts}
        ) == len(parts)
        whole = from_documents(["a", "b"], "x")
        moved = replace(whole, files=["elsewhere"], lines=[7, 9])
        assert fingerprint_documents(moved) == fingerprint_documents(whole)
        assert len(fingerprint_documents(whole)) == 64


class TestTails:
    """Of few documents the beginning and the end are held out, as they stand."""

    def test_a_text_without_line_ends_is_cut_at_the_very_character(self) -> None:
        text = "".join(chr(0x4E00 + i) for i in range(101))
        train, dev, test = split_documents(one(text), 0.1, 0.2, seed=1)
        assert dev is not None
        assert test is not None
        assert (dev.texts, train.texts, test.texts) == (
            [text[:10]],
            [text[10:80]],
            [text[80:]],
        )

    def test_a_cut_is_put_off_to_the_next_line_end(self) -> None:
        text = "".join(f"{i:09}\n" for i in range(100))  # lines of 10 characters
        # cuts at 99 and 896
        train, dev, test = split_documents(one(text), 0.099, 0.104, seed=1)
        assert dev is not None
        assert test is not None
        assert list(map(len, (dev.texts[0], train.texts[0], test.texts[0]))) == [
            100,
            800,
            100,
        ]
        assert dev.texts[0] + train.texts[0] + test.texts[0] == text
        assert (dev.where(0), train.where(0), test.where(0)) == (
            "one:1",
            "one:11",
            "one:91",
        )
        # cuts at 100 and 900, after line ends already
        again = split_documents(one(text), 0.1, 0.1, seed=1)
        assert again == (train, dev, test)

    @pytest.mark.parametrize(("distance", "start"), [(999, 5500), (1000, 4500)])
    def test_a_line_end_further_off_than_1000_characters_is_too_far(
        self, distance: int, start: int
    ) -> None:
        text = ("x" * (4500 + distance) + "\n").ljust(9000, "y")
        _, _, test = split_documents(one(text), 0.0, 0.5, seed=1)
        assert test is not None
        assert len(test.texts[0]) == 9000 - start

    def test_a_long_first_line_is_not_all_dev(self) -> None:
        text = "x" * 600 + "\n" + "y" * 400
        for share, size in ((0.2, 200), (0.4, 601)):
            _, dev, _ = split_documents(one(text), share, 0.0, seed=1)
            assert dev is not None
            assert len(dev.texts[0]) == size

    def test_a_share_of_nought_or_no_text_left_is_none(self) -> None:
        text = "some words\n" * 50
        assert split_documents(one(text), 0.0, 0.0, seed=1) == (one(text), None, None)
        train, dev, test = split_documents(one(text), 0.1, 0.0, seed=1)
        assert (len(train.texts[0]), dev and len(dev.texts[0]), test) == (495, 55, None)
        assert split_documents(one("a line\n"), 0.0, 0.2, seed=1)[1:] == (None, None)
        assert split_documents(one("x" * 90 + " " * 10), 0.0, 0.1, seed=1)[2] is None
        with pytest.raises(UsageError, match="leave no text for training"):
            split_documents(one(text), 0.5, 0.5, seed=1)

    def test_cuts_fall_between_documents_or_into_one(self) -> None:
        texts = ["a" * 2000, "b\n" * 1000, "c" * 5000, "d" * 1000]
        whole = from_documents(texts, "few")
        # cuts at 4500 and 8500
        train, dev, test = split_documents(whole, 0.45, 0.15, seed=1)
        assert dev is not None
        assert test is not None
        assert dev.texts == [*texts[:2], "c" * 500]
        assert (train.texts, test.texts) == (["c" * 4500], ["d" * 1000])
        assert (dev.lines, train.where(0), test.where(0)) == (
            [1, 2, 3],
            "few:3",
            "few:4",
        )

    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(
            st.text("ab\n", min_size=1, max_size=40).filter(str.strip),
            min_size=1,
            max_size=4,
        ),
        st.sampled_from([0.0, 0.1, 0.3, 0.5]),
        st.sampled_from([0.0, 0.05, 0.4]),
    )
    def test_nothing_is_lost_but_white_space(
        self, texts: list[str], dev_share: float, test_share: float
    ) -> None:
        try:
            parts = split_documents(
                from_documents(texts, "x"), dev_share, test_share, seed=1
            )
        except UsageError:
            return
        train, dev, test = parts
        joined = "".join(
            text for part in (dev, train, test) if part for text in part.texts
        )
        assert joined.replace("\n", "") == "".join(texts).replace("\n", "")


class TestHoldOut:
    """Of many documents whole ones are held out, by the hash of their text."""

    @staticmethod
    def many(count: int) -> Documents:
        return from_documents(
            [f"Document {i}. " * (1 + i * 7 % 10) for i in range(count)], "many"
        )

    @pytest.mark.parametrize(
        ("count", "tolerance"), [(20, 0.06), (300, 0.01), (3000, 0.001)]
    )
    def test_shares_are_of_characters(self, count: int, tolerance: float) -> None:
        whole = self.many(count)
        parts = split_documents(whole, 0.05, 0.1, seed=1)
        sizes = [sum(map(len, part.texts)) if part else 0 for part in parts]
        assert [size / sum(sizes) for size in sizes] == pytest.approx(
            [0.85, 0.05, 0.1], abs=tolerance
        )
        found = sorted(
            (part.lines[i], text)
            for part in parts
            if part
            for i, text in enumerate(part.texts)
        )
        assert found == sorted(zip(whole.lines, whole.texts, strict=True))
        assert all(part.lines == sorted(part.lines) for part in parts if part)

    def test_nineteen_are_too_few(self) -> None:
        train, dev, _ = split_documents(self.many(19), 0.2, 0.0, seed=1)
        assert dev is not None
        assert (dev.texts[0], train.texts[-1]) == (
            "Document 0. ",
            self.many(19).texts[-1],
        )

    def test_a_share_of_nought_is_none(self) -> None:
        assert split_documents(self.many(50), 0.0, 0.0, seed=1) == (
            self.many(50),
            None,
            None,
        )
        _, dev, test = split_documents(self.many(50), 0.0, 0.2, seed=1)
        assert dev is None
        assert test is not None

    @pytest.mark.parametrize(
        ("share", "held_out"), [(0.02, 0), (0.03, 1), (0.07, 1), (0.08, 2)]
    )
    def test_a_part_is_as_near_to_its_share_as_whole_documents_allow(
        self, share: float, held_out: int
    ) -> None:
        whole = from_documents([f"{i:0100}" for i in range(20)], "x")
        _, dev, _ = split_documents(whole, share, 0.0, seed=1)
        assert (len(dev) if dev else 0) == held_out

    def test_an_enormous_document_is_never_held_out(self) -> None:
        whole = from_documents([*self.many(100).texts, "x" * 100_000], "x")
        for seed in range(5):
            train, dev, _ = split_documents(whole, 0.05, 0.0, seed)
            assert "x" * 100_000 in train.texts
            assert dev is not None

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.integers(0, 30), min_size=20, max_size=80), st.integers(0, 9))
    def test_repeats_stay_together(self, numbers: list[int], seed: int) -> None:
        texts = [f"Text {n}" + "!" * (i % 3) for i, n in enumerate(numbers)]
        try:
            parts = [
                p
                for p in split_documents(from_documents(texts, "x"), 0.2, 0.2, seed)
                if p
            ]
        except UsageError:
            return
        folded = [set(map(fold, part.texts)) for part in parts]
        assert sum(map(len, parts)) == len(texts)
        assert sum(map(len, folded)) == len(set().union(*folded))

    def test_a_frequent_text_stays_in_training(self) -> None:
        whole = from_documents(["OK."] * 100 + [f"text {i}" for i in range(1000)], "x")
        for seed in range(20):
            assert split_documents(whole, 0.1, 0.1, seed)[0].texts.count("OK.") == 100

    def test_it_depends_on_seed_and_content_alone(self) -> None:
        whole = self.many(200)
        again = split_documents(whole, 0.1, 0.1, seed=7)
        assert split_documents(whole, 0.1, 0.1, seed=7) == again
        assert split_documents(whole, 0.1, 0.1, seed=8)[1] != again[1]
        backwards = split_documents(whole.select(range(199, -1, -1)), 0.1, 0.1, seed=7)
        for part, turned in zip(again, backwards, strict=True):
            assert part is not None
            assert turned is not None
            assert sorted(part.texts) == sorted(turned.texts)


class TestLookOver:
    @staticmethod
    def found(documents: Documents) -> dict[str, Finding]:
        findings = look_over_documents(documents)
        assert len({finding.code for finding in findings}) == len(findings)
        assert not any(
            "\n" in finding.message or not finding.remedy for finding in findings
        )
        return {finding.code: finding for finding in findings}

    def test_a_sound_text_gives_none(self) -> None:
        assert (
            self.found(
                from_documents([f"line {i}\tof text\n" * 10 for i in range(200)], "x")
            )
            == {}
        )

    def test_too_small(self) -> None:
        finding = self.found(one("x" * 9_999))["too-small"]
        assert (finding.severity, finding.count) == ("warning", 9_999)
        assert self.found(one("x" * 10_000)) == {}

    def test_duplicates(self) -> None:
        texts = [f"text {i} " * 20 for i in range(100)]
        few = self.found(from_documents([*texts, "TEXT 7. " * 20], "x"))["duplicates"]
        assert (few.severity, few.count, few.message.split(": ")[0]) == (
            "note",
            1,
            "x:101",
        )
        assert (
            self.found(from_documents(texts * 2, "x"))["duplicates"].severity
            == "warning"
        )

    def test_control_characters(self) -> None:
        few = self.found(one("words\nand more\n" * 5000 + "\x85 \x07"))[
            "control-characters"
        ]
        assert (few.severity, few.count) == ("note", 2)
        assert few.message.startswith("one:10001: ")
        many = self.found(
            from_documents(["sound " * 2000, "a\nb\rc\ufffd" * 1000], "x")
        )["control-characters"]
        assert (many.severity, many.count) == ("warning", 2000)
        assert many.message.startswith("x:3: ")

    def test_one_enormous_document(self) -> None:
        finding = self.found(from_documents(["small", "x" * 1_000_001], "x"))[
            "enormous-document"
        ]
        assert (finding.severity, finding.message) == (
            "note",
            "x:2: a document of 1,000,001 characters (1 document over 1,000,000)",
        )

    def test_what_reading_left_out_and_took_for_granted(self, tmp_path: Path) -> None:
        read = read_documents(write(tmp_path / "t", "a\n\n\nb\n" * 3000), "line")
        assert self.found(read)["dropped-documents"].count == 6000
        whole = read_documents(write(tmp_path / "u", "a line\n" * 3000), "blank-line")
        assert "one document" in self.found(whole)["as-read"].message

    def test_the_gravest_come_first(self) -> None:
        texts = [f"text {i}\x07 " * 20 for i in range(100)]
        severities = [
            f.severity
            for f in look_over_documents(from_documents([*texts, texts[7]], "x"))
        ]
        assert severities == ["warning", "note"]


class TestRealCorpora:
    def test_tinyshakespeare_is_one_file_or_many_speeches(self, corpora: Path) -> None:
        path = f"{corpora}/tinyshakespeare/input.txt"
        whole = read_documents(path, "file")
        assert (len(whole), whole.num_bytes) == (1, 1_115_394)
        train, _, test = split_documents(whole, 0.0, 0.1, seed=1)
        assert test is not None
        assert 0 <= len(train.texts[0]) - 1_003_854 <= 1_000
        assert train.texts[0] + test.texts[0] == whole.texts[0]
        assert train.texts[0].endswith("\n")
        assert len(read_documents(path, "blank-line")) > 7_000

    def test_one_review_a_line(self, corpora: Path) -> None:
        reviews = read_documents(f"{corpora}/imdb_lm/valid.txt", "line")
        assert (len(reviews), reviews.dropped) == (1_000, {})
        train, dev, _ = split_documents(reviews, 0.05, 0.0, seed=1)
        assert dev is not None
        assert sum(map(len, dev.texts)) == pytest.approx(
            0.05 * sum(map(len, reviews.texts)), rel=0.02
        )
        warned = {
            finding.code
            for finding in look_over_documents(train)
            if finding.severity != "note"
        }
        assert warned == {"markup"}  # their <br /> is in more than half of the reviews
