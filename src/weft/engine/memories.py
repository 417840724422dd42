"""Sources that were read for a search and are read once more for what was found: the second time
costs a copy.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Key: TypeAlias = tuple[int, ...]

MOST_BYTES = 64 << 20
MOST_WANTED = 100_000  # sources; a search that was given up leaves its own behind


class Memories:
    """The keys and values that an engine's encoder gave for some sources, the `wanted` ones alone.

    Each is taken once. Where there are too many bytes the oldest are dropped. Any threads use it.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._wanted: OrderedDict[Key, None] = OrderedDict()
        self._kept: OrderedDict[Key, Bytes] = OrderedDict()
        self._num_bytes = 0
        self._lock = Lock()

    def want(self, source: Sequence[int]) -> None:
        """Say that a source is read once more after its next reading."""
        with self._lock:
            self._wanted[tuple(source)] = None
            if len(self._wanted) > MOST_WANTED:
                self._wanted.popitem(last=False)

    def wanted(self, sources: Iterable[Sequence[int]]) -> dict[int, Key]:
        """Return the keys of those that are wanted, by their numbers."""
        if not self._wanted:
            return {}
        found = {}
        for number, source in enumerate(sources):
            key = tuple(int(i) for i in source)
            if key in self._wanted:
                found[number] = key
        return found

    def put(self, key: Key, memory: Bytes) -> None:
        """Keep what was read of a source, until it is taken."""
        with self._lock:
            self._wanted.pop(key, None)
            self._drop(key)
            self._kept[key] = memory
            self._num_bytes += memory.nbytes
            while self._num_bytes > self.most_bytes:
                self._drop(next(iter(self._kept)))

    def take(self, source: Sequence[int]) -> Bytes | None:
        """Return what was kept of a source, and keep it no longer; None where it was not."""
        with self._lock:
            key = tuple(source)
            self._wanted.pop(key, None)
            return self._drop(key)

    def _drop(self, key: Key) -> Bytes | None:
        memory = self._kept.pop(key, None)
        if memory is not None:
            self._num_bytes -= memory.nbytes
        return memory
