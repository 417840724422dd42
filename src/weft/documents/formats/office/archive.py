"""Documents that are zip archives: their members read within bounds, and written as they stood.

Nothing is ever unpacked to the disk. Sizes are bounded before a byte is unpacked: an archive says
how large its members are, and the library reads no more of one than that.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

from weft.errors import UsageError

MOST_MEMBERS = 10_000
MOST_BYTES = 512 << 20  # unpacked, all members together
MOST_RATIO = 200  # of a member of more than _SMALL bytes, unpacked to packed
_SMALL = 1 << 20
_ENCRYPTED = 0x1
_MACROS = ("vbaproject.bin", "basic/script-lc.xml")


@dataclass(frozen=True)
class Archive:
    """The members of an archive, by name, in their order."""

    infos: tuple[ZipInfo, ...]
    members: Mapping[str, bytes]
    comment: bytes = b""

    def written(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with some members' content replaced; new ones are added at its end."""
        buffer = BytesIO()
        with ZipFile(buffer, "w") as out:
            out.comment = self.comment
            for info in self.infos:
                content = changed.get(info.filename, self.members[info.filename])
                out.writestr(_as_before(info), content)
            for name in changed:
                if name not in self.members:
                    added = ZipInfo(name, self.infos[0].date_time)
                    added.compress_type = ZIP_DEFLATED
                    out.writestr(added, changed[name])
        return buffer.getvalue()


def read_archive(content: bytes, name: str) -> Archive:
    """Read an archive; `name` is what messages call it.

    Raises UsageError for what is no archive, is damaged, encrypted or has macros, and beyond the
    bounds on members, sizes and ratios.
    """
    try:
        with ZipFile(BytesIO(content)) as archive:
            infos = archive.infolist()
            _refuse_hostile(infos, name)
            members = {info.filename: archive.read(info) for info in infos}
            return Archive(tuple(infos), members, archive.comment)
    except (
        BadZipFile,
        ZlibError,
        EOFError,
        NotImplementedError,
        OverflowError,
        ValueError,
    ) as error:
        raise UsageError(
            f"{name}: is not a whole archive of this format ({error}); save it again in the program that made it"
        ) from None


def _refuse_hostile(infos: list[ZipInfo], name: str) -> None:
    if len(infos) > MOST_MEMBERS:
        raise UsageError(
            f"{name}: has {len(infos):,} members; at most {MOST_MEMBERS:,} are read"
        )
    size = sum(info.file_size for info in infos)
    if size > MOST_BYTES:
        raise UsageError(
            f"{name}: is {size:,} bytes unpacked; at most {MOST_BYTES:,} are read"
        )
    counts = Counter(info.filename for info in infos)
    for info in infos:
        shown = info.filename[:80]
        if counts[info.filename] > 1:
            raise UsageError(f"{name}: has the member {shown} twice; save it again")
        if info.flag_bits & _ENCRYPTED:
            raise UsageError(f"{name}: is encrypted; save it without a password")
        if info.filename.lower().endswith(_MACROS):
            raise UsageError(
                f"{name}: has macros ({shown}); save it in the format without them"
            )
        if info.filename.startswith(("/", "\\")) or ".." in info.filename.split("/"):
            raise UsageError(
                f"{name}: a member's name leads out of the archive: {shown}"
            )
        ratio = info.file_size / max(info.compress_size, 1)
        if info.file_size > _SMALL and ratio > MOST_RATIO:
            raise UsageError(
                f"{name}: {shown} is {ratio:,.0f} times as large unpacked; at most {MOST_RATIO} times are read"
            )


def _as_before(info: ZipInfo) -> ZipInfo:
    """Return how a member is written: its name, time, rights and compression as they were."""
    again = ZipInfo(info.filename, info.date_time)
    is_stored = info.compress_type == ZIP_STORED
    again.compress_type = ZIP_STORED if is_stored else ZIP_DEFLATED
    again.external_attr = info.external_attr
    again.create_system = info.create_system
    again.comment = info.comment
    return again
