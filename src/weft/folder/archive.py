"""An archive of files in one exact form: a zip whose members are stored as they are, each at a
multiple of 64 bytes, so that it is used where it lies.

Names, sizes and CRCs of the members determine every other byte of it. A reader takes these three
from the directory at the end, writes the headers and the directory anew, and compares: no archive
has members that overlap, are compressed, encrypted, links or twice there, bytes between or behind
them, or a header that says something else than the directory.

Source: APPNOTE.TXT of PKWARE, version 6.3.10, sections 4.3 to 4.5.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

ALIGNMENT = 64
_FIRST_DAY = (0, 0x21)  # time and date of all members: midnight, 1 January 1980
_LARGE = 0xFFFF_FFFF  # in the place of a number that 4 bytes do not hold
_PLAIN, _ZIP64 = 20, 45  # the versions of the format that reading needs
_UNIX = 3 << 8
_REGULAR_FILE = 0o100644 << 16
_IN_ZIP64 = 0x0001
_PADDING = 0xA11E  # what begins a field that aligns the data behind it
_LEAST_PADDING = 6  # bytes of such a field: its name, its length, the alignment
_MOST_MEMBERS = 100
_MOST_DIRECTORY = 2**16

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")


@dataclass(frozen=True)
class Member:
    """A file of an archive by what is known of it without its place."""

    name: str
    size: int
    crc: int


class Layout:
    """The places of members, and all bytes that are around them.

    `starts` are where their contents begin, by name; `pieces` the other bytes, with their places;
    `size` is that of the archive.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.starts: dict[str, int] = {}
        self.pieces: list[tuple[int, bytes]] = []
        directory = b""
        place = 0
        for member in members:
            header = _local_header(member, place)
            self.pieces.append((place, header))
            directory += _entry(member, place)
            self.starts[member.name] = place + len(header)
            place += len(header) + member.size
        directory += _end(len(members), len(directory), place)
        self.pieces.append((place, directory))
        self.size = place + len(directory)


def write_archive(file: BinaryIO, contents: Mapping[str, memoryview]) -> None:
    """Write an archive of contents by their names, in their order."""
    members = [
        Member(name, len(content), zlib.crc32(content))
        for name, content in contents.items()
    ]
    *headers, (_, directory) = Layout(members).pieces
    for (_, header), content in zip(headers, contents.values(), strict=True):
        file.write(header)
        file.write(content)
    file.write(directory)


def read_archive(archive: memoryview) -> dict[str, tuple[Member, memoryview]]:
    """Return the members of an archive with their contents, which are not read, by name.

    Raises ValueError, with what is wrong, where it is not as `write_archive` writes it.
    """
    try:
        members = list(_directory(archive))
    except struct.error:
        raise ValueError("its directory is cut short") from None
    layout = Layout(members)
    if len(layout.starts) < len(members):
        raise ValueError("a file is in it twice")
    if layout.size != len(archive):
        said = f"it has {len(archive):,} bytes, and its directory says {layout.size:,}"
        raise ValueError(said)
    for place, piece in layout.pieces:
        if archive[place : place + len(piece)] != piece:
            raise ValueError(f"its headers differ from its directory at byte {place:,}")
    found = {}
    for member in members:
        start = layout.starts[member.name]
        found[member.name] = (member, archive[start : start + member.size])
    return found


def _local_header(member: Member, place: int) -> bytes:
    """Return what stands before a member, whose header begins at `place`."""
    is_large = member.size >= _LARGE
    extra = b""
    if is_large:
        extra = struct.pack("<2H2Q", _IN_ZIP64, 16, member.size, member.size)
    name = member.name.encode("ascii")
    before = place + _LOCAL.size + len(name) + len(extra) + _LEAST_PADDING
    padding = _LEAST_PADDING + -before % ALIGNMENT
    extra += struct.pack("<3H", _PADDING, padding - 4, ALIGNMENT)
    extra += bytes(padding - _LEAST_PADDING)
    size = min(member.size, _LARGE)
    needed = _ZIP64 if is_large else _PLAIN
    sizes = (member.crc, size, size, len(name), len(extra))
    header = _LOCAL.pack(b"PK\3\4", needed, 0, 0, *_FIRST_DAY, *sizes)
    return header + name + extra


def _entry(member: Member, place: int) -> bytes:
    """Return a member's entry in the directory; its header is at `place`."""
    large = []
    if member.size >= _LARGE:
        large += [member.size, member.size]
    if place >= _LARGE:
        large.append(place)
    extra = b""
    if large:
        extra = struct.pack(f"<2H{len(large)}Q", _IN_ZIP64, 8 * len(large), *large)
    name = member.name.encode("ascii")
    size = min(member.size, _LARGE)
    needed = _ZIP64 if large else _PLAIN
    sizes = (member.crc, size, size, len(name), len(extra))
    made = _UNIX | needed
    rest = (0, 0, 0, _REGULAR_FILE, min(place, _LARGE))
    entry = _CENTRAL.pack(b"PK\1\2", made, needed, 0, 0, *_FIRST_DAY, *sizes, *rest)
    return entry + name + extra


def _end(count: int, size: int, place: int) -> bytes:
    """Return what stands behind a directory of so many entries and bytes at `place`."""
    numbers = (0, 0, count, count)
    end = _END.pack(b"PK\5\6", *numbers, size, min(place, _LARGE), 0)
    if place < _LARGE:
        return end
    made = _UNIX | _ZIP64
    rest = _END64.size - 12  # of the record, behind its own length
    record = _END64.pack(b"PK\6\6", rest, made, _ZIP64, *numbers, size, place)
    locator = _LOCATOR.pack(b"PK\6\7", 0, place + size, 1)
    return record + locator + end


def _directory(archive: memoryview) -> Iterator[Member]:
    """Yield the members that a directory names. Raises ValueError, struct.error."""
    count, size, place = _place_of_directory(archive)
    if count > _MOST_MEMBERS or size > _MOST_DIRECTORY:
        raise ValueError(f"its directory has {count:,} entries, {size:,} bytes")
    if place + size > len(archive):
        raise ValueError(f"its directory, at byte {place:,}, ends behind it")
    for _ in range(count):
        member, length = _member(archive[place:])
        yield member
        place += length


def _place_of_directory(archive: memoryview) -> tuple[int, int, int]:
    """Return how many entries the directory has, how many bytes, and where it begins."""
    start = len(archive) - _END.size
    if start < 0 or bytes(archive[start : start + 4]) != b"PK\5\6":
        raise ValueError("its end is missing")
    *_, count, size, place, _ = _END.unpack_from(archive, start)
    if place == _LARGE:
        start -= _LOCATOR.size + _END64.size
        *_, count, size, place = _END64.unpack_from(archive, max(start, 0))
    return count, size, place


def _member(entry: memoryview) -> tuple[Member, int]:
    """Return the member of an entry of the directory, and how long the entry is."""
    fields = _CENTRAL.unpack_from(entry)
    method = fields[4]
    crc, _, size, name_length, extra_length = fields[7:12]
    end = _CENTRAL.size + name_length
    name = bytes(entry[_CENTRAL.size : end]).decode("ascii", "backslashreplace")
    if fields[0] != b"PK\1\2":
        raise ValueError("its directory is damaged")
    if method:
        raise ValueError(f"{name[:60]!r} is compressed in it")
    if size == _LARGE:
        (size,) = struct.unpack_from("<Q", entry, end + 4)
    return Member(name, size, crc), end + extra_length
