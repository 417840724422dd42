"""The one form of a pack: what other programs read of it, and that nothing else is taken."""

import io
import random
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weft.folder.archive import (
    ALIGNMENT,
    Layout,
    Member,
    read_archive,
    write_archive,
)
from weft.folder.mapped import mapped

CONTENTS = {
    "manifest.json": b"{}\n",
    "README.md": "# Größe\n".encode() * 9,
    "empty": b"",
    "model.safetensors": random.Random(1).randbytes(1000),
}


def archive_of(contents: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    write_archive(file, {name: memoryview(own) for name, own in contents.items()})
    return file.getvalue()


ARCHIVE = archive_of(CONTENTS)


def refusal(archive: bytes) -> str:
    with pytest.raises(ValueError, match=r"^(its?|a file|'.*' is) ") as caught:
        read_archive(memoryview(archive))
    return str(caught.value)


def test_another_program_reads_the_same() -> None:
    with zipfile.ZipFile(io.BytesIO(ARCHIVE)) as file:
        assert file.testzip() is None
        assert {name: file.read(name) for name in file.namelist()} == CONTENTS
        for entry in file.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert stat.S_ISREG(entry.external_attr >> 16)


def test_contents_come_back_where_they_lie_at_multiples_of_64_bytes() -> None:
    archive = memoryview(ARCHIVE)
    found = read_archive(archive)
    assert {name: bytes(own) for name, (_, own) in found.items()} == CONTENTS
    starts = Layout([member for member, _ in found.values()]).starts
    for name, start in starts.items():
        assert start % ALIGNMENT == 0
        assert ARCHIVE[start:].startswith(CONTENTS[name])
        assert found[name][1].obj is archive.obj


def test_the_fields_of_headers_are_well_formed() -> None:
    """A reader that walks the fields behind a name ends where the content begins."""
    for member, content in read_archive(memoryview(ARCHIVE)).values():
        place = ARCHIVE.index(b"PK\3\4" + struct.pack("<2H", 20, 0))
        while ARCHIVE[place + 30 :][: len(member.name)] != member.name.encode():
            place = ARCHIVE.index(b"PK\3\4", place + 1)
        length, extra = struct.unpack_from("<2H", ARCHIVE, place + 26)
        end = place + 30 + length + extra
        place += 30 + length
        while place < end:
            _, size = struct.unpack_from("<2H", ARCHIVE, place)
            place += 4 + size
        assert place == end
        assert ARCHIVE[end:].startswith(content)


def test_the_order_and_nothing_else_changes_the_bytes() -> None:
    assert archive_of(CONTENTS) == ARCHIVE
    assert archive_of(dict(reversed(CONTENTS.items()))) != ARCHIVE


def test_every_byte_that_is_no_content_counts() -> None:
    """Each of them, changed, makes an archive that is refused: no field has two meanings."""
    found = read_archive(memoryview(ARCHIVE))
    layout = Layout([member for member, _ in found.values()])
    places = [place + i for place, piece in layout.pieces for i in range(len(piece))]
    assert len(places) + sum(map(len, CONTENTS.values())) == len(ARCHIVE)
    for place in places:
        for bit in (1, 0x80):
            changed = bytearray(ARCHIVE)
            changed[place] ^= bit
            try:
                other = read_archive(memoryview(changed))
            except ValueError:
                continue
            # a name is of a member in both places, or none
            pytest.fail(f"byte {place} may be {changed[place]}: {[*other]}")


def test_a_shorter_or_longer_archive_is_refused() -> None:
    for end in range(len(ARCHIVE)):
        refusal(ARCHIVE[:end])
    assert "its end is missing" in refusal(ARCHIVE + b"\0")
    assert "its end is missing" in refusal(b"")
    assert "its directory is damaged" in refusal(b"\0" + ARCHIVE)
    assert "it has" in refusal(ARCHIVE + ARCHIVE)


def by_zipfile(compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in CONTENTS.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def test_an_archive_of_another_program_is_refused() -> None:
    refusal(by_zipfile())
    assert "compressed" in refusal(by_zipfile(zipfile.ZIP_DEFLATED))


def test_a_name_twice_is_refused() -> None:
    members = [Member("a", 0, 0), Member("a", 0, 0)]
    archive = b"".join(piece for _, piece in Layout(members).pieces)
    assert "twice" in refusal(archive)


def with_directory(change: Callable[[bytearray, int], None]) -> bytes:
    """The archive with the directory, which begins at a place, changed."""
    changed = bytearray(ARCHIVE)
    change(changed, ARCHIVE.index(b"PK\1\2"))
    return bytes(changed)


def test_entries_that_point_to_the_same_bytes_are_refused() -> None:
    """So no archive is larger inside than outside."""

    def overlap(archive: bytearray, place: int) -> None:
        second = archive.index(b"PK\1\2", place + 1)
        archive[second + 42 : second + 46] = archive[place + 42 : place + 46]

    def grow(archive: bytearray, place: int) -> None:
        struct.pack_into("<2L", archive, place + 20, 2**31, 2**31)

    assert "differ from its directory" in refusal(with_directory(overlap))
    assert "its directory says" in refusal(with_directory(grow))


def test_a_directory_without_end_is_refused_soon() -> None:
    end = struct.Struct("<4s4H2LH")
    for count, size, place in [
        (0xFFFF, 0xFFFF, 0),
        (3, 2**32 - 2, 0),
        (3, 100, 2**32 - 2),
        (3, 0, 0),
        (0xFFFF, 0, 0xFFFF_FFFF),
    ]:
        tail = end.pack(b"PK\5\6", 0, 0, count, count, size, place, 0)
        refusal(ARCHIVE[:-22] + tail)
        refusal(tail)


LARGE = (
    Member("manifest.json", 10, 1),
    Member("model.safetensors", 5 * 2**30, 2),
    Member("behind", 7, 3),
    Member("memory", 2**32 - 1, 4),
)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Path]:
    """An archive of nine gigabytes, of which nearly nothing is on the disk."""
    path = tmp_path / "large"
    layout = Layout(LARGE)
    with path.open("wb") as file:
        file.truncate(layout.size)
        for place, piece in layout.pieces:
            file.seek(place)
            file.write(piece)
    assert path.stat().st_blocks * 512 < 2**20
    yield path
    path.unlink()


def test_an_archive_of_more_than_four_gigabytes(large: Path) -> None:
    with zipfile.ZipFile(large) as file:
        said = [(one.filename, one.file_size, one.CRC) for one in file.infolist()]
    assert said == [(one.name, one.size, one.crc) for one in LARGE]
    assert [member for member, _ in read_archive(mapped(large)).values()] == [*LARGE]
    with large.open("r+b") as file:
        file.truncate(large.stat().st_size - 1)
    with pytest.raises(ValueError, match="its end is missing"):
        read_archive(mapped(large))
