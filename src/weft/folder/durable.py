"""Atomic writes: a file or folder is written completely or not at all.

Everything is written under a temporary name beside its target (on the same file system), flushed to
the disk, and only then renamed; a reader never sees a half-written state, whenever the machine
stops. A folder has a manifest with the size and SHA-256 of each of its files.
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
from weft.folder.unfinished import being_written

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
TEMPORARY = ".weft-tmp-"


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically. Raises FolderError where it cannot be written."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, atomically."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as JSON, atomically; NaN and infinity are refused."""
    write_text(path, to_json(value))


def to_json(value: Any) -> str:
    """Return JSON in the form of a model folder's files: indented, Unicode unescaped, strict."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def append_line(path: Path, line: bytes) -> None:
    """Append a line to a file, which may be new, and flush it to the disk.

    Raises FolderError where it cannot be written.
    """
    with _as_folder_error(path), path.open("ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file written there replaces `path` at the end."""
    temporary = path.with_name(f"{_prefix(path)}{uuid.uuid4().hex}")
    try:
        with _as_folder_error(path):
            mode = _usual_mode(temporary)
            yield temporary
            # the usual mode of a new file: some libraries make their files private
            temporary.chmod(mode)
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        with contextlib.suppress(OSError):  # renamed already, or the folder is missing
            temporary.unlink()


def _prefix(path: Path) -> str:
    """Begin the names of a path's temporary files; its own name may be as long as names can be."""
    return f"{TEMPORARY}{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


def refuse_no_place(path: Path) -> None:
    """Raise FolderError where the parent folder of a file to write is missing."""
    if not path.parent.is_dir():
        raise FolderError(
            f"{path}: cannot be written (there is no folder {path.parent}); make it first"
        )


def _usual_mode(path: Path) -> int:
    """Return the mode of a new file here, found by creating one.

    The umask cannot be read without being set.
    """
    path.touch()
    mode = stat.S_IMODE(path.stat().st_mode)
    path.unlink()
    return mode


def refuse_begun(path: Path) -> None:
    """Raise UsageError where an interrupted writer (see `growing`) would later overwrite `path`."""
    partial = _partial(path)
    if partial.exists():
        raise UsageError(
            f"{partial}: what an interrupted command left; give that one again, or remove it"
        )


def is_begun(path: Path) -> bool:
    """Return whether a writer of `path` (see `growing`, `collecting`) has begun and not ended."""
    return _record(path).is_file()


@contextlib.contextmanager
def growing(path: Path, facts: Mapping[str, Any]) -> Iterator[tuple[BinaryIO, int]]:
    """Yield a partial file beside `path` and its number of lines; it replaces `path` at the end.

    The partial file of an interrupted writer is continued after its last complete line. Raises
    UsageError where it was begun with other `facts` or another process is writing it, FolderError
    where it cannot be written.
    """
    with _as_folder_error(path):
        with _continued(path, facts) as (file, lines):
            yield file, lines
            file.flush()
            os.fsync(file.fileno())
        os.replace(_partial(path), path)
        _record(path).unlink()
        sync(path.parent)


@contextlib.contextmanager
def collecting(path: Path, facts: Mapping[str, Any]) -> Iterator[tuple[BinaryIO, int]]:
    """Yield a file of lines beside `path` and their number: what is collected before `path` can be
    written.

    It goes at the end of the block, in which `path` is written; an interrupted writer's is
    continued. Raises as `growing` does.
    """
    with _as_folder_error(path):
        with _continued(path, facts) as found:
            yield found
        _partial(path).unlink()
        _record(path).unlink()


@contextlib.contextmanager
def _continued(path: Path, facts: Mapping[str, Any]) -> Iterator[tuple[BinaryIO, int]]:
    """Yield the partial file of `path` and its number of lines; an empty one goes on errors."""
    partial = _partial(path)
    record = _record(path)
    with partial.open("a+b") as file:
        if _is_only_writer(file, partial):
            _remove_temporary(path, record)
        if file.seek(0, os.SEEK_END):
            _refuse_other_facts(partial, record, facts)
        else:
            write_json(record, facts)
        lines = _cut_to_whole_lines(file)
        try:
            yield file, lines
        except BaseException:
            if not file.seek(0, os.SEEK_END):  # there is nothing to continue
                partial.unlink()
                record.unlink()
            raise


def _record(path: Path) -> Path:
    partial = _partial(path)
    return partial.with_name(f"{partial.name}.json")


_NAMES = "names of "  # begins what is known of a fact, and is none itself
_ONE_OF = {"memories": "memory", "glossaries": "glossary"}


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _is_only_writer(file: BinaryIO, path: Path) -> bool:
    """Return whether this is known. Raises UsageError where another process is writing the file."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: another process is writing it; wait for it, or give another --output"
        ) from None
    except OSError:  # some network file systems have no locks
        return False
    return True


def _remove_temporary(*paths: Path) -> None:
    """Remove what a writer of these files left that was killed."""
    for path in paths:
        for temporary in path.parent.glob(f"{_prefix(path)}*"):
            temporary.unlink(missing_ok=True)


def _refuse_other_facts(partial: Path, record: Path, facts: Mapping[str, Any]) -> None:
    remedy = f"remove {partial.name} to start over"
    new = json.loads(to_json(facts))
    try:
        old = read_json(record)
    except FolderError:
        raise UsageError(
            f"{partial}: what it was started with is not known; {remedy}"
        ) from None
    if not isinstance(old, dict):
        old = {}
    changed = [key for key in new if key not in old or old[key] != new[key]]
    changed = [key for key in changed if not key.startswith(_NAMES)]
    if changed:
        listed = ", ".join(_what_it_was(key, old) for key in changed)
        raise UsageError(
            f"{partial}: was started with another {listed}; give the same, or {remedy}"
        )


def _what_it_was(key: str, old: Mapping[str, Any]) -> str:
    """Return a fact that is another one now, with what it was where that says something."""
    word = _ONE_OF.get(key, key)
    names = old.get(_NAMES + key)
    if not isinstance(names, list):
        return word
    return f"{word} (it was {', '.join(map(str, names)) or 'none'})"


def _cut_to_whole_lines(file: BinaryIO) -> int:
    """Cut a file after its last line end and return its number of lines."""
    file.seek(0)
    lines = end = position = 0
    while block := file.read(2**20):
        lines += block.count(b"\n")
        if (last := block.rfind(b"\n")) >= 0:
            end = position + last + 1
        position += len(block)
    file.truncate(end)
    return lines


@contextlib.contextmanager
def writing_folder(
    path: Path, facts: Mapping[str, Any] | None = None, replace: bool = False
) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; at the end it gets a manifest and the name `path`.

    `facts` are kept in the manifest beside the list of files. With `replace`, an existing folder is
    removed once the new one is complete; otherwise it is an error. Raises FolderError where the
    folder exists or cannot be written; no temporary file is left.
    """
    if path.exists() and not replace:
        raise FolderError(f"{path}: exists already; a folder is never written over")
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    old = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with _as_folder_error(path), being_written(temporary):
            yield temporary
            entries = sorted(temporary.rglob("*"))
            for entry in entries:
                sync(entry)
            files = [entry for entry in entries if entry.is_file()]
            names = [file.relative_to(temporary).as_posix() for file in files]
            write_manifest(temporary, [n for n in names if n != MANIFEST], facts)
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
    """Write a manifest: size and SHA-256 of the named files of a folder, and `facts`."""
    entries = {}
    for name in names:
        path = folder / name
        size = path.stat().st_size
        entries[name] = {"size": size, "sha256": sha256_of(path)}
    write_json(folder / MANIFEST, {**(facts or {}), "files": entries})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder and check each listed file against it.

    Raises FolderError for the first file that is missing or differs in size or content.
    """
    manifest = read_json(folder / MANIFEST)
    for name, entry in listed_files(manifest, folder).items():
        _check_file(folder, name, entry)
    return dict(manifest)


def listed_files(manifest: Any, folder: Path) -> dict[str, Any]:
    """Return the entries of the files that a folder's manifest lists. Raises FolderError."""
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise FolderError(
            f"{folder / MANIFEST}: does not list any files; the folder is damaged"
        )
    for name, entry in files.items():
        is_outside = Path(name).is_absolute() or ".." in Path(name).parts
        if is_outside or not isinstance(entry, dict):
            raise FolderError(
                f"{folder / MANIFEST}: entry {name!r} is malformed; the folder is damaged"
            )
    return files


def missing_file(path: Path) -> FolderError:
    """Return what is said of a file that a manifest lists and that is not there."""
    return FolderError(
        f"{path}: missing, though the manifest lists it; restore it, or give the training command again"
    )


def changed_file(path: Path) -> FolderError:
    """Return what is said of a file that is not as its manifest has it."""
    return FolderError(
        f"{path}: differs from the manifest (damaged or edited); restore the original file"
    )


def read_json(path: Path, limit: int = 64 * 2**20) -> Any:
    """Read JSON of at most `limit` bytes.

    Raises FolderError where it is missing, too large or malformed.
    """
    try:
        if path.stat().st_size > limit:
            raise FolderError(
                f"{path}: {path.stat().st_size:,} bytes; expected at most {limit:,}"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise FolderError(
            f"{path}: missing; the folder is incomplete or not Weft's"
        ) from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    return parse_json(content, path)


def parse_json(content: bytes, path: Path) -> Any:
    """Parse the content of a file. Raises FolderError, with its name, where it is no JSON."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FolderError(
            f"{path}: not valid JSON ({str(error)[:80]}); the file is damaged, restore it"
        ) from None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders of interrupted writes in `folder`."""
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


def _check_file(folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    path = folder / name
    if not os.path.isfile(path):
        raise missing_file(path)
    try:
        has_size = path.stat().st_size == entry.get("size")
        is_same = has_size and sha256_of(path) == entry.get("sha256")
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    if not is_same:
        raise changed_file(path)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@contextlib.contextmanager
def held(path: Path, folder: Path) -> Iterator[bool]:
    """Hold the lock file `path` of a folder while the block runs; write process and host into it.

    Yields False where the operating system or the file system has no locks: then a second process
    is not kept out. The system frees a lock when its process ends, however it ends, so a stale lock
    never has to be removed. Raises UsageError where another process holds it, naming that process.
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
        content = os.read(descriptor, 1000).decode("utf-8", "replace")
        holder = content.strip() or "another process"
        raise UsageError(
            f"{folder} is in use by {holder}; wait for it, stop it, or give another --output"
        ) from None
    except OSError:  # some network file systems have no locks
        return False
    with _as_folder_error(path):
        os.ftruncate(descriptor, 0)
        holder = f"process {os.getpid()} on {platform.node()}\n"
        os.pwrite(descriptor, holder.encode(), 0)
    return True


def rename(path: Path, other: Path) -> None:
    """Move a file or folder within its file system. Raises FolderError where that fails."""
    with _as_folder_error(path):
        path.rename(other)


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents. Raises FolderError where that fails."""
    with _as_folder_error(path):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _as_folder_error(path: Path) -> Iterator[None]:
    try:
        yield
    # safetensors reports a full disk as its own error
    except (OSError, SafetensorError) as error:
        if isinstance(error, FileNotFoundError):
            refuse_no_place(path)
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "what was there before is untouched"
        if any(word in reason for word in ("No space", "too large", "quota")):
            remedy = "make room, and give the same command again"
        raise FolderError(f"{path}: cannot be written ({reason}); {remedy}") from error
