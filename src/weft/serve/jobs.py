"""The work of clients: jobs, each a row of one model, and whom they are for."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.serve.refusals import Gone, Refusal, TooLate


@dataclass(eq=False)
class Caller:
    """The sender of one request.

    `client` is the name of a key, or an address: what is fair is fair between clients. `deadline`
    and `began` are times of `time.monotonic`. `left` is set when nobody waits for the answer any
    more. Once much has been done for it (`is_under_way`), it is not told to come again later.
    """

    client: str
    deadline: float
    began: float = field(default_factory=time.monotonic)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    is_under_way: bool = False

    def why_over(self) -> Refusal | None:
        """Return why the work for it is of no use any more; None while it is."""
        if self.left.is_set():
            return Gone()
        if time.monotonic() >= self.deadline:
            return TooLate()
        return None


class Job:
    """A row of one model that a caller waits for. Threads of the pool work on it.

    `row` is what the model's batch takes. A step of the batch computes `width` rows for it; `cost`
    and `expected` are in units of such a row: to read it, and in all, by estimate.
    """

    def __init__(
        self,
        row: Any,
        caller: Caller,
        *,
        width: int = 1,
        cost: float = 1.0,
        expected: float = 1.0,
        listen: Callable[[Any], None] | None = None,
    ) -> None:
        """Create a job in the running event loop; `listen` is called there with what it emits."""
        self.row = row
        self.caller = caller
        self.width = width
        self.cost = cost
        self.rest = max(expected, cost)  # units still to be worked, by estimate
        self.is_done = False
        self.began = 0.0
        self.entered = time.monotonic()
        self._listen = listen
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()

    @property
    def client(self) -> str:
        return self.caller.client

    def finish(self, result: Any) -> None:
        """Hand over the result; called by a thread of the pool."""
        self.is_done = True
        self._call(self._set_result, result)

    def fail(self, error: Exception) -> None:
        """Hand over why there is no result."""
        self.is_done = True
        self._call(self._set_error, error)

    def emit(self, part: Any) -> None:
        """Hand over a part of the result, before its end."""
        if self._listen is not None:
            self._call(self._listen, part)

    def why_over(self) -> Refusal | None:
        """Return why the job is of no use any more: others of its request failed, or its caller."""
        if self.future.cancelled():
            return Gone()
        return self.caller.why_over()

    def _call(self, function: Callable[[Any], None], value: Any) -> None:
        # the loop of a server that has been stopped is closed
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, value)

    def _set_result(self, result: Any) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def _set_error(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
