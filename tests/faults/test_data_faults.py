"""Bad data, row by row of the fault table: refused in one line with its place and exit code 3, or
counted.
"""

import gzip
import io
import os
import random
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from weft.data import builtin
from weft.data.check.pairs import look_over
from weft.data.checkup import check_up
from weft.data.corpus import ParallelText, read_lines, read_pairs
from weft.data.formats import source
from weft.data.texts import Sources
from weft.data.train_text import TrainText
from weft.errors import DataError
from weft.recipes.file import load_recipe

WORDS = ("red", "green", "a", "wonderful", "house", "stands", "incomprehensibly")


def sentences(count: int) -> list[str]:
    chance = random.Random(1)
    return [
        " ".join(chance.choices(WORDS, k=chance.randint(3, 20))) for _ in range(count)
    ]


def write_aligned(folder: Path, src: list[str], tgt: list[str]) -> str:
    for name, side in (("train.en", src), ("train.de", tgt)):
        (folder / name).write_bytes("".join(f"{line}\n" for line in side).encode())
    return f"{folder / 'train.en'},{folder / 'train.de'}"


def write(path: Path, data: bytes | str) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def refusal(data: str) -> str:
    """The one-line reason why data is refused, with exit code 3."""
    with pytest.raises(DataError) as caught:
        read_pairs([data])
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return str(caught.value)


def warnings(text: ParallelText) -> dict[str, str]:
    return {
        finding.code: finding.message
        for finding in look_over(text)
        if finding.severity == "warning"
    }


def tree(folder: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(top, name), folder)
        for top, *inner in os.walk(folder)
        for names in inner
        for name in names
    }


def test_D1_unequal_files_are_refused_with_both_counts(tmp_path: Path) -> None:
    lines = sentences(1000)
    message = refusal(write_aligned(tmp_path, lines, lines[:499] + lines[500:]))
    assert "train.en has 1000 lines" in message
    assert "train.de has 999" in message
    assert "has 1000" in refusal(write_aligned(tmp_path, lines[1:], lines))


def test_D1_pairs_with_an_empty_side_are_dropped_together_and_counted(
    tmp_path: Path,
) -> None:
    src = [f"source {i}" for i in range(300)]
    tgt = [f"target {i}" for i in range(300)]
    src[10], src[20], tgt[30], src[40], tgt[40] = "", " \t", "\u3000", "", ""
    text = read_pairs([write_aligned(tmp_path, src, tgt)])
    assert text.dropped == {"empty side": 3, "both sides empty": 1}
    assert len(text) == 296
    assert all(
        s.split()[1] == t.split()[1] for s, t in zip(text.src, text.tgt, strict=True)
    )
    assert text.where(text.src.index("source 299")).endswith("train.en:300")


@pytest.mark.parametrize(
    "start", [0, 900, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 600))]
)
def test_D1_a_shift_by_one_line_is_fatal_and_named_with_its_first_line(
    tmp_path: Path, start: int
) -> None:
    src = sentences(1000)
    tgt = [line.replace("e", "ee") for line in src]
    assert warnings(read_pairs([write_aligned(tmp_path, src, tgt)])).keys() == {
        "other-language"
    }, "as it is made up"
    rotated = tgt[:start] + tgt[start + 1 :] + tgt[start : start + 1]
    found = look_over(read_pairs([write_aligned(tmp_path, src, rotated)]))
    (finding,) = [finding for finding in found if finding.severity == "fatal"]
    assert finding.code == "shifted-lines"
    line = int(finding.message.split("train.en:")[1].split(":")[0])
    assert abs(line - (start + 1)) <= 3, (
        "only the lengths say where; lines count from 1"
    )


@pytest.mark.parametrize("start", [pytest.param(200, marks=pytest.mark.long), 1234])
@pytest.mark.parametrize("lang", ["de", "zh"])
def test_D1_in_sentences_the_very_line_is_named(
    tmp_path: Path, start: int, lang: str
) -> None:
    src, tgt = map(
        list, zip(*builtin.pairs("everyday", "en", lang).train[:2000], strict=True)
    )
    del tgt[start]
    found = look_over(read_pairs([write_aligned(tmp_path, src[:-1], tgt)]))
    (finding,) = [finding for finding in found if finding.severity == "fatal"]
    assert finding.code == "shifted-lines"
    assert f"train.en:{start + 1}: from here to " in finding.message
    assert finding.examples[0].text.startswith(src[start])
    (finding,) = check_up(
        load_recipe(None), Sources((TrainText(write_aligned(tmp_path, src, tgt)),))
    ).findings
    assert finding.code == "unequal-lines"
    assert finding.message.endswith(f"train.en:{start + 1}")


def test_D1_a_few_shifted_lines_are_warned_of_and_each_stretch_is_known(
    tmp_path: Path,
) -> None:
    src = sentences(3000)
    tgt = [line.replace("e", "ee") for line in src]
    for start, end in ((500, 540), (2000, 2030)):
        tgt[start:end] = [*tgt[start + 1 : end], "a stray line"]
    (finding,) = [
        f
        for f in look_over(read_pairs([write_aligned(tmp_path, src, tgt)]))
        if f.code == "shifted-lines"
    ]
    assert finding.severity == "warning"
    assert "train.en:501: from here" in finding.message
    assert "and 1 more range" in finding.message
    truly = {*range(500, 540), *range(2000, 2030)}
    assert len(truly.symmetric_difference(finding.rows)) <= 4
    (lines,) = finding.lines().values()
    assert lines == [row + 1 for row in finding.rows]
    ends = [line for line in lines if line + 1 not in lines]
    about = [example.about for example in finding.examples]
    assert about == [f"to line {end}, 1 line earlier" for end in ends]


def test_D1_of_unequal_files_the_place_where_they_part_is_named(tmp_path: Path) -> None:
    src = sentences(1000)
    tgt = [line.replace("e", "ee") for line in src]
    data = write_aligned(tmp_path, src, tgt[:499] + tgt[500:])
    with pytest.raises(DataError):
        read_pairs([data])
    (finding,) = check_up(load_recipe(None), Sources((TrainText(data),))).findings
    assert (finding.severity, finding.code) == ("fatal", "unequal-lines")
    assert "train.en has 1,000 lines but" in finding.message
    line = int(finding.message.rsplit(":", 1)[1])
    assert abs(line - 500) <= 3


@pytest.mark.parametrize(
    "character",
    ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"],
)
def test_D2_only_line_feeds_end_a_line_equally_in_all_readers(
    tmp_path: Path, character: str
) -> None:
    side = f"one{character}two"
    assert len(side.splitlines()) == 2, (
        "the character must be one that careless readers split at"
    )
    tsv = read_pairs([write(tmp_path / "p.tsv", f"{side}\tx\r\nlast\ty\n")])
    aligned = read_pairs([write_aligned(tmp_path, [side, "last"], ["x", "y"])])
    assert (
        tsv.src
        == aligned.src
        == list(read_lines(tmp_path / "train.en"))
        == [side, "last"]
    )
    assert tsv.tgt == aligned.tgt == ["x", "y"]
    if character in "\r\u2028\u2029\x85":  # XML 1.0 does not admit the others
        written = side.replace("\r", "&#13;")
        units = f'<tu><tuv xml:lang="en"><seg>{written}</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>'
        assert read_pairs(
            [write(tmp_path / "p.tmx", f"<tmx><body>{units}</body></tmx>")]
        ).src == [side]


def test_D2_a_byte_order_mark_and_crlf_leave_no_trace(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", b"\xef\xbb\xbf" + b"a\tb\r\nc\td\r\n")
    text = read_pairs([path])
    assert (text.src, text.tgt, text.lines) == (["a", "c"], ["b", "d"], [1, 2])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_D2_wide_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    message = refusal(
        write(tmp_path / "p.tsv", "hello\thallo\nworld\twelt\n".encode(encoding))
    )
    assert f"UTF-{encoding[4:6]}" in message
    assert "byte" in message


def test_D2_latin_1_and_invalid_bytes_are_refused_with_offset_and_line(
    tmp_path: Path,
) -> None:
    data = "dog\tHund\nmouse\tMäuse\n".encode("latin-1")
    assert (
        f"p.tsv:2: not UTF-8 at the text's byte {data.index(0xE4)} (0xE4)"
        in refusal(write(tmp_path / "p.tsv", data))
    )
    good = "".join(f"{i}\té\n" for i in range(300_000)).encode()
    assert len(good) > 2 * source.CHUNK_BYTES
    message = refusal(write(tmp_path / "p.tsv", good + b"x\t\xc3\x28\n"))
    assert f"p.tsv:300001: not UTF-8 at the text's byte {len(good) + 2}" in message
    assert f"at the text's byte {len(good) + 2}" in refusal(
        write(tmp_path / "p.tsv", good + b"x\t\xe2\x82")
    )


def test_D2_nul_is_refused_with_its_offset(tmp_path: Path) -> None:
    assert "p.tsv:2: NUL at the text's byte 7" in refusal(
        write(tmp_path / "p.tsv", b"ab\tcd\nx\0\ty\n")
    )


def test_D5_test_pairs_in_training_are_counted_and_mark_the_score(
    tmp_path: Path, write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...]
) -> None:
    """A third of the test pairs are in the training text: half to the letter, half in other case
    and marks.
    """
    lines = Path(write_pairs(216)).read_text().split("\n")[:-1]
    train, test = lines[:156], lines[156:]
    shouted = [line.upper().replace(".", " !") for line in test[10:20]]
    clean = write(tmp_path / "clean.tsv", "".join(f"{line}\n" for line in train))
    leaky = write(
        tmp_path / "leaky.tsv",
        "".join(f"{line}\n" for line in [*train, *test[:10], *shouted]),
    )
    held = write(tmp_path / "test.tsv", "".join(f"{line}\n" for line in test))

    found = {
        f.code: f
        for f in check_up(
            load_recipe(), Sources((TrainText(leaky),), test=held)
        ).findings
    }
    overlap = found["test-in-training"]
    assert (overlap.count, overlap.rows) == (20, tuple(range(20)))
    assert "20 of 60 pairs of test (33.3 %)" in overlap.message
    assert "10 of them exactly" in overlap.message
    assert overlap.examples[0][0] == f"{held}:1"
    sound = check_up(load_recipe(), Sources((TrainText(clean),), test=held)).findings
    assert "test-in-training" not in {f.code for f in sound}

    settings = (*tiny_settings, "training.max_steps=2")
    mark = "contaminated: 20 of 60 pairs (33.3 %) are in the training text as well"
    verdict = weft.train(
        out=tmp_path / "leaky", train=leaky, test=held, settings=settings, quiet=True
    )
    assert verdict.test["contaminated"].startswith(mark)
    assert mark in verdict.test_summary
    assert mark in (tmp_path / "leaky" / "README.md").read_text()
    verdict = weft.train(
        out=tmp_path / "clean", train=clean, test=held, settings=settings, quiet=True
    )
    assert verdict.test["contaminated"] is None
    assert "contaminated" not in (tmp_path / "clean" / "README.md").read_text()


def test_D6_a_line_of_50_mb_is_dropped_in_bounded_memory(tmp_path: Path) -> None:
    size = 50 << 20
    with (tmp_path / "train.en").open("wb") as file:
        file.write(b"first\n")
        for _ in range(50):
            file.write(b"x" * (1 << 20))
        file.write(b"\nthird\n")
    write(tmp_path / "train.de", "erster\nzweiter\ndritter\n")
    assert (tmp_path / "train.en").stat().st_size > size
    tracemalloc.start()
    text = read_pairs([f"{tmp_path / 'train.en'},{tmp_path / 'train.de'}"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (text.src, text.tgt, text.lines) == (
        ["first", "third"],
        ["erster", "dritter"],
        [1, 3],
    )
    assert text.dropped == {"line too long": 1}
    assert peak < 16 << 20


def test_D6_a_million_empty_lines_pass_in_seconds(tmp_path: Path) -> None:
    start = time.perf_counter()
    text = read_pairs([write(tmp_path / "p.tsv", "\n" * 1_000_000 + "a\tb\n")])
    assert time.perf_counter() - start < 5
    assert (text.dropped, text.lines) == ({"both sides empty": 1_000_000}, [1_000_001])
    assert "no pair with text" in refusal(write(tmp_path / "p.tsv", "\n" * 1_000_000))


def test_D6_empty_files_are_refused(tmp_path: Path) -> None:
    for name in ("p.tsv", "p.tmx", "p.xlf", "p.po", "p.jsonl", "p.tsv.gz"):
        data = gzip.compress(b"") if name.endswith("gz") else b""
        assert "is empty (0 bytes)" in refusal(write(tmp_path / name, data))
    assert "train.en: is empty" in refusal(write_aligned(tmp_path, [], []))
    assert "no pair with text" in refusal(write(tmp_path / "p.tsv", "\ufeff"))


def test_D6_three_pairs_are_said_to_be_too_small(tmp_path: Path) -> None:
    text = read_pairs([write(tmp_path / "p.tsv", "a b\tc d\ne\tf\ng h\ti\n")])
    assert "3 pairs" in warnings(text)["too-small"]


def _tar(mode: str) -> bytes:
    """An archive whose members would climb out of their folder if they were extracted."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        climbing = tarfile.TarInfo("../escaped.tsv")
        climbing.size = 4
        archive.addfile(climbing, io.BytesIO(b"a\tb\n"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return buffer.getvalue()


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../escaped.tsv", "a\tb\n")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "p.tsv",
        "p.tsv.gz",
        "p.tmx",
        "p.xlf",
        "p.po",
        "p.jsonl",
        "p.tar",
        "p.zip",
        "p.tgz",
    ],
)
@pytest.mark.parametrize(
    "make",
    [_zip, lambda: _tar("w"), lambda: _tar("w:gz")],
    ids=["zip", "tar", "tar.gz"],
)
def test_D9_archives_are_refused_by_content_and_nothing_is_written(
    tmp_path: Path, name: str, make
) -> None:  # type: ignore[no-untyped-def]
    inner = tmp_path / "inner"
    inner.mkdir()
    path = write(inner / name, make())
    before = tree(tmp_path)
    assert "archive" in refusal(path)
    assert tree(tmp_path) == before == {"inner", f"inner/{name}"}


def test_D9_a_decompression_bomb_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tsv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(160):
            file.write(b"ab\tcd\n" * 200_000)
    assert path.stat().st_size * source.MAX_RATIO < 160 * 1_200_000, (
        "the bomb must exceed the ratio"
    )
    start = time.perf_counter()
    tracemalloc.start()
    assert "decompression bomb" in refusal(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20, "no text may be kept before the refusal"
    assert time.perf_counter() - start < 5


def test_D9_the_unpacked_size_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = "".join(f"{line}\t{line}\n" for line in sentences(5000)).encode()
    path = write(tmp_path / "p.tsv.gz", gzip.compress(data))
    assert len(read_pairs([path])) == 5000
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", len(data) - 1)
    assert "unpacks to more than" in refusal(path)


def test_D9_a_ratio_that_text_reaches_is_no_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RATIO_FREE_BYTES", 1000)
    data = "".join(f"{line}\t{line}\n" for line in sentences(5000)).encode()
    assert len(read_pairs([write(tmp_path / "p.tsv.gz", gzip.compress(data))])) == 5000


def test_D9_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(
        "".join(f"{line}\t{line}\n" for line in sentences(5000)).encode()
    )
    with pytest.raises(EOFError):
        gzip.decompress(whole[: len(whole) // 2])
    assert "truncated" in refusal(
        write(tmp_path / "p.tsv.gz", whole[: len(whole) // 2])
    )
    assert "truncated" in refusal(write(tmp_path / "p.tsv.gz", whole[:-4]))
    middle = len(whole) // 2
    flipped = (
        whole[:middle]
        + bytes(byte ^ 0xFF for byte in whole[middle : middle + 8])
        + whole[middle + 8 :]
    )
    assert "damaged" in refusal(
        write(tmp_path / "p.tsv.gz", flipped)
    ) or "truncated" in refusal(str(tmp_path / "p.tsv.gz"))
    assert "damaged" in refusal(write(tmp_path / "p.tsv.gz", whole + b"garbage"))
    assert "twice" in refusal(write(tmp_path / "p.tsv.gz", gzip.compress(whole)))


UNITS = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>'


def test_D9_external_entities_are_never_opened(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.txt", "top secret")
    for declaration in (
        f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "file://{secret}">]>',
        f'<!DOCTYPE tmx [<!ENTITY % x SYSTEM "file://{secret}"> %x;]>',
        f'<!DOCTYPE tmx SYSTEM "file://{secret}" [<!ENTITY x "y">]>',
        f'<!DOCTYPE tmx SYSTEM "file://{secret}" [ ]>',
        '<!DOCTYPE tmx [<!ATTLIST tuv xml:lang CDATA "en">]>',
    ):
        content = f"<?xml version='1.0'?>\n{declaration}<tmx><body>{UNITS.format('&x;')}</body></tmx>"
        message = refusal(write(tmp_path / "p.tmx", content))
        assert "p.tmx:2: a document type with declarations of its own" in message
        assert "top secret" not in message


def test_D9_what_a_document_type_names_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declarations = write(tmp_path / "tmx14.dtd", '<!ENTITY x "top secret">')
    monkeypatch.setattr(
        "socket.socket.connect", lambda *_: pytest.fail("a connection was asked for")
    )
    opened: list[object] = []

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event == "open":
            opened.append(arguments[0])

    listening = True
    sys.addaudithook(listen)  # it stays for as long as the process lives
    for place in (
        declarations,
        f"file://{declarations}",
        "http://127.0.0.1:9/tmx14.dtd",
        "tmx14.dtd",
    ):
        doctype = f'<!DOCTYPE tmx SYSTEM "{place}">'
        path = write(
            tmp_path / "p.tmx", f"{doctype}<tmx><body>{UNITS.format('a')}</body></tmx>"
        )
        assert read_pairs([path]).src == ["a"]
        for reference in ("&x;", "&nbsp;"):
            path = write(
                tmp_path / "p.tmx",
                f"{doctype}\n<tmx><body>{UNITS.format(f'b{reference}c')}</body></tmx>",
            )
            assert (
                f"p.tmx:2: the entity {reference}, which XML does not define"
                in refusal(path)
            )
    listening = False
    assert str(tmp_path / "p.tmx") in map(str, opened), "the hook does listen"
    assert not any(str(name).endswith(".dtd") for name in opened)


def test_D9_a_billion_laughs_end_at_the_declaration(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    content = f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{laughs}]><tmx><body>{UNITS.format("&l9;")}</body></tmx>'
    start = time.perf_counter()
    assert "declarations of its own" in refusal(write(tmp_path / "p.tmx", content))
    assert time.perf_counter() - start < 1


def test_D9_a_large_xliff_is_read_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.xlf"
    unit = "<trans-unit id='1'><source>{}</source><target state='new'>{}</target></trans-unit>\n"
    with path.open("w", encoding="utf-8") as file:
        file.write(
            "<xliff version='1.2'>\n<file source-language='en' target-language='de'>"
        )
        for _ in range(4000):
            file.write(unit.format("word " * 400, "Wort " * 400))
        file.write(unit.format("a", "b").replace("new", "final") + "</file></xliff>")
    assert path.stat().st_size > 15 << 20
    tracemalloc.start()
    text = read_pairs([str(path)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (text.src, text.lines) == (["a"], [4002])
    assert peak < 10 << 20


def test_D9_a_large_tmx_is_read_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.tmx"
    foreign = UNITS.replace('"de"', '"fr"').format("word " * 400)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"<tmx><body>{UNITS.format('a')}")
        for _ in range(8000):
            file.write(foreign)
        file.write("</body></tmx>")
    assert path.stat().st_size > 15 << 20
    tracemalloc.start()
    text = read_pairs([str(path)], src_lang="en", tgt_lang="de")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (text.src, text.dropped) == (["a"], {"unit without both languages": 8000})
    assert peak < 10 << 20
