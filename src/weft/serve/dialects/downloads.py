"""Files that wait for their download: in a private folder, for a while, within a size."""

import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

_MINUTES = 30
_MAX_BYTES = 256 * 2**20
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class _Waiting:
    path: Path
    name: str
    size: int
    until: float


@dataclass(eq=False)
class Downloads:
    """Files under names that nobody guesses. Each waits for `seconds`; the oldest go before that
    where all together would have more than `max_bytes`. The folder goes with the server.
    """

    seconds: float = 60.0 * _MINUTES
    max_bytes: int = _MAX_BYTES
    clock: Callable[[], float] = time.monotonic
    folder: Path | None = None  # which only its owner may read; made for the first file
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, content: bytes) -> str:
        """Keep a file; return the name by which it is asked for, which ends in its own."""
        asked = f"{secrets.token_urlsafe(_TOKEN_BYTES)}.{name}"
        with self._lock:
            self._make_room(len(content))
            path = self._place() / secrets.token_hex(_TOKEN_BYTES)
            path.write_bytes(content)
            until = self.clock() + self.seconds
            self._waiting[asked] = _Waiting(path, name, len(content), until)
        return asked

    def find(self, asked: str) -> tuple[str, bytes] | None:
        """Return the own name and the bytes of a file; None where it is gone or never was."""
        with self._lock:
            self._make_room(0)
            found = self._waiting.get(asked)
            if found is None:
                return None
            return found.name, found.path.read_bytes()

    def _place(self) -> Path:
        if self.folder is None:
            self.folder = Path(mkdtemp(prefix="weft-files-"))
            finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        return self.folder

    def _make_room(self, size: int) -> None:
        """Delete what has waited long enough, and the oldest until so many bytes more fit."""
        now = self.clock()
        room = self.max_bytes - size - sum(one.size for one in self._waiting.values())
        for asked, one in list(self._waiting.items()):  # the oldest first
            if one.until > now and room >= 0:
                break
            room += one.size
            del self._waiting[asked]
            one.path.unlink(missing_ok=True)
