"""A file or a folder is written whole or not at all.

Everything goes to a temporary name beside its target (the same file system), is flushed to the
disk, and only then takes the target's name; a reader never sees a half-written state, whenever the
machine stops. A folder carries a manifest with the size and SHA-256 of each of its files.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError

from weft.errors import FolderError, UsageError

try:
    import fcntl
except ImportError:  # a system without them, as Windows
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
TEMPORARY = ".weft-tmp-"


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all. Raises FolderError where it cannot be
    written.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path` as UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Put `value` at `path` as JSON; NaN and infinity are refused, since JSON has none."""
    write_text(path, to_json(value))


def to_json(value: Any) -> str:
    """Write JSON as every file of a model folder has it: indented, Unicode kept, strict."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, which may be new, and flush it to the disk. Raises FolderError where
    that fails.
    """
    with _as_folder_error(path), path.open("ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a temporary path beside `path`; what is written there takes its name at the end."""
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with _as_folder_error(path):
            mode = _usual_mode(temporary)
            yield temporary
            # as any new file, whoever wrote it: some make private ones
            temporary.chmod(mode)
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        with contextlib.suppress(OSError):  # gone already, or its folder is none
            temporary.unlink()


def refuse_no_place(path: Path) -> None:
    """Raise FolderError where the folder is missing in which a file is to be written."""
    if not path.parent.is_dir():
        raise FolderError(
            f"{path}: cannot be written (there is no folder {path.parent}); make it first"
        )


def _usual_mode(path: Path) -> int:
    """Return the mode of a new file here, found by making one.

    The umask cannot be asked for without being set.
    """
    path.touch()
    mode = stat.S_IMODE(path.stat().st_mode)
    path.unlink()
    return mode


def refuse_begun(path: Path) -> None:
    """Raise UsageError where an interrupted writer (see `growing`) would later bury what is written
    at `path`.
    """
    partial = _partial(path)
    if partial.exists():
        raise UsageError(
            f"{partial}: what an interrupted command left; give that one again, or remove it"
        )


@contextlib.contextmanager
def growing(path: Path, facts: Mapping[str, Any]) -> Iterator[tuple[BinaryIO, int]]:
    """Hand out a file that grows beside `path`, and how many lines it has; at the end it takes that
    name.

    What an interrupted writer left is gone on with, up to its last whole line. Raises UsageError
    where that one began with other `facts`, or another process writes it; FolderError where it
    cannot be written.
    """
    partial = _partial(path)
    record = partial.with_name(f"{partial.name}.json")
    with _as_folder_error(path):
        with partial.open("a+b") as file:
            _refuse_second_writer(file, partial)
            if file.seek(0, os.SEEK_END):
                _refuse_other_facts(partial, record, facts)
            else:
                write_json(record, facts)
            lines = _cut_to_whole_lines(file)
            try:
                yield file, lines
            except BaseException:
                if not file.seek(0, os.SEEK_END):  # nothing to go on with
                    partial.unlink()
                    record.unlink()
                raise
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        record.unlink()
        sync(path.parent)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _refuse_second_writer(file: BinaryIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: another process is writing it; wait for it, or give another --output"
        ) from None
    except OSError:  # some network file systems have no locks
        return


def _refuse_other_facts(partial: Path, record: Path, facts: Mapping[str, Any]) -> None:
    remedy = f"remove {partial.name} to begin anew"
    try:
        old = read_json(record)
        new = json.loads(to_json(facts))
    except FolderError:
        raise UsageError(
            f"{partial}: what it was begun with is not known; {remedy}"
        ) from None
    unlike = [
        key
        for key in new
        if not isinstance(old, dict) or key not in old or old[key] != new[key]
    ]
    if unlike:
        raise UsageError(
            f"{partial}: was begun with another {', '.join(unlike)}; give the same, or {remedy}"
        )


def _cut_to_whole_lines(file: BinaryIO) -> int:
    """Cut a file behind its last whole line; return how many whole lines there are."""
    file.seek(0)
    lines = end = place = 0
    while block := file.read(2**20):
        lines += block.count(b"\n")
        if (last := block.rfind(b"\n")) >= 0:
            end = place + last + 1
        place += len(block)
    file.truncate(end)
    return lines


@contextlib.contextmanager
def writing_folder(
    path: Path, facts: Mapping[str, Any] | None = None, replace: bool = False
) -> Iterator[Path]:
    """Hand out a temporary folder beside `path`; with a manifest added, it takes its name at the
    end.

    `facts` are kept in the manifest beside the list of files. A folder that stands there goes, if
    `replace`, once the new one is whole; else it is never written over. Raises FolderError where it
    may not be replaced or cannot be written; nothing is left behind.
    """
    if path.exists() and not replace:
        raise FolderError(f"{path}: exists already; a folder is never written over")
    temporary, old = (
        path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}") for _ in range(2)
    )
    try:
        with _as_folder_error(path):
            temporary.mkdir(parents=True)
            yield temporary
            inside = sorted(temporary.rglob("*"))
            for entry in inside:
                sync(entry)
            names = [p.relative_to(temporary).as_posix() for p in inside if p.is_file()]
            write_manifest(
                temporary, [name for name in names if name != MANIFEST], facts
            )
            sync(temporary)
            if path.exists():
                os.replace(path, old)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        for folder in (temporary, old):
            shutil.rmtree(folder, ignore_errors=True)


def write_manifest(
    folder: Path, names: Iterable[str], facts: Mapping[str, Any] | None = None
) -> None:
    """List the named files of a folder with size and SHA-256, and `facts` about it."""
    listed = {
        name: {
            "size": (folder / name).stat().st_size,
            "sha256": sha256_of(folder / name),
        }
        for name in names
    }
    write_json(folder / MANIFEST, {**(facts or {}), "files": listed})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, each listed file checked against it.

    Raises FolderError naming the first file that is missing, of another size or of another content.
    """
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise FolderError(
            f"{folder / MANIFEST}: does not list any files; the folder is damaged"
        )
    for name, entry in files.items():
        _check_file(folder, name, entry)
    return dict(manifest)


def read_json(path: Path, limit: int = 64 * 2**20) -> Any:
    """Read JSON of at most `limit` bytes.

    Raises FolderError where it is missing, too large or malformed.
    """
    try:
        if path.stat().st_size > limit:
            raise FolderError(
                f"{path}: {path.stat().st_size:,} bytes; expected at most {limit:,}"
            )
        return json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise FolderError(
            f"{path}: missing; the folder is incomplete or not Weft's"
        ) from None
    except (ValueError, RecursionError) as error:
        raise FolderError(
            f"{path}: not valid JSON ({str(error)[:80]}); the file is damaged, restore it"
        ) from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Remove what an interrupted write left in `folder` under a temporary name."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_file(folder: Path, name: str, entry: Any) -> None:
    path = folder / name
    if (
        not isinstance(entry, dict)
        or Path(name).is_absolute()
        or ".." in Path(name).parts
    ):
        raise FolderError(
            f"{folder / MANIFEST}: entry {name!r} is malformed; the folder is damaged"
        )
    if not os.path.isfile(path):
        raise FolderError(
            f"{path}: missing, though the manifest lists it; restore it, or give the training command again"
        )
    try:
        same = path.stat().st_size == entry.get("size") and sha256_of(
            path
        ) == entry.get("sha256")
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    if not same:
        raise FolderError(
            f"{path}: differs from the manifest (damaged or edited); restore the original file"
        )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@contextlib.contextmanager
def held(path: Path, folder: Path) -> Iterator[bool]:
    """Hold the lock file `path` of a folder; process and host are written in it.

    False where the operating system or the file system has no locks: then nothing keeps a second
    process out. The system frees a lock when its process ends, however it ends, so a dead one never
    has to be removed. Raises UsageError, naming who holds it, where that is another process.
    """
    with _as_folder_error(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _lock(descriptor, path, folder)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, folder: Path) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = (
            os.read(descriptor, 1000).decode("utf-8", "replace").strip()
            or "another process"
        )
        raise UsageError(
            f"{folder} is in use by {who}; wait for it, stop it, or give another --output"
        ) from None
    except OSError:  # some network file systems have none
        return False
    with _as_folder_error(path):
        os.ftruncate(descriptor, 0)
        os.pwrite(
            descriptor, f"process {os.getpid()} on {platform.node()}\n".encode(), 0
        )
    return True


def rename(path: Path, other: Path) -> None:
    """Give a file or folder another name on its file system. Raises FolderError where that cannot
    be.
    """
    with _as_folder_error(path):
        path.rename(other)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where they are missing. Raises FolderError where that
    cannot be.
    """
    with _as_folder_error(path):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _as_folder_error(path: Path) -> Iterator[None]:
    try:
        yield
    # a full disk under safetensors' own writing is the latter
    except (OSError, SafetensorError) as error:
        if isinstance(error, FileNotFoundError):
            refuse_no_place(path)
        reason = getattr(error, "strerror", None) or str(error)
        full = any(word in reason for word in ("No space", "too large", "quota"))
        remedy = (
            "make room, and give the same command again"
            if full
            else "what was there before is untouched"
        )
        raise FolderError(f"{path}: cannot be written ({reason}); {remedy}") from error
