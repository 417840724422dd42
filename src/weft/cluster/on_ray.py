"""Ray as the executor: actors hold the model, Ray Data hands them blocks.

A Ray that is started here listens on this machine alone, asks for a token that only this process
knows, reports nothing and has no dashboard; it ends with the work. A cluster that runs already is
joined as it is: whether it asks who comes is up to who started it.
"""

import contextlib
import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from weft import errors
from weft.cluster.block import Block
from weft.cluster.executor import Executor
from weft.cluster.work import Answered, Work, Worker
from weft.errors import UsageError, WeftError
from weft.folder.unfinished import being_written, remove_abandoned
from weft.packages import loaded

LOOPBACK = ("127.0.0.1", "::1")
_ATTEMPTS = 3  # of a block whose workers die
_STORE_BYTES = 128 * 2**20  # in which blocks pass: they are text
_MODE = "RAY_AUTH_MODE"
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
# How a Ray that is started here is kept to this machine. The first makes it use the loopback
# address, on every system.
_PRIVATE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    _MODE: "token",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}
_FOLDERS = "weft-ray-"
_MOST_SHOWN = 300  # characters of an error of Ray's


@dataclass(frozen=True)
class OnRay:
    """Workers on Ray, each of so many `threads`: as many as asked for, or as there are CPUs for.

    `address` is that of a cluster, ray://HOST:PORT; None starts one on this machine for the work.
    """

    address: str | None = None
    workers: int | None = None
    threads: int = 1

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        """Yield the blocks as they are done.

        Raises UsageError where Ray is missing or cannot be reached, else as the workers do.
        """
        with self.staying() as joined:
            yield from joined.run(work, blocks)

    @contextlib.contextmanager
    def staying(self) -> Iterator[Executor]:
        """Yield the same, joined to the cluster for several works as long as the block runs."""
        with self._joined() as ray:
            yield _Joined(self, ray)

    def answers(
        self, ray: Any, work: Work, blocks: Sequence[Block]
    ) -> Iterator[Answered]:
        """Yield the blocks as workers of a cluster answer them, which this process has joined."""
        workers = self._num_workers(ray, len(blocks))
        arguments = (work, blocks, self.threads, workers)
        try:
            if self.address is None:
                yield from map(_told, Driver(*arguments).rows)
            else:
                driver = ray.remote(num_cpus=0)(Driver).remote(*arguments)
                while row := ray.get(driver.next.remote()):
                    yield _told(row)
        except ray.exceptions.RayError as error:
            raise WeftError(f"{self._name}: {_in_short(error)}") from error

    @property
    def _name(self) -> str:
        return f"--on {self.address or 'ray'}"

    def _num_workers(self, ray: Any, most: int) -> int:
        """Return how many workers there are: never more than blocks. Raises UsageError where the
        cluster has not the CPUs.
        """
        cpus = int(ray.cluster_resources().get("CPU", 0))
        room = cpus // self.threads
        wanted = self.workers or room
        if room < wanted or not room:
            raise UsageError(
                f"{self._name}: the cluster has {cpus} CPUs, and {max(wanted, 1)} workers of {self.threads} "
                "threads need more; give fewer --workers, or OMP_NUM_THREADS=1 in front of the command"
            )
        return min(wanted, most)

    @contextlib.contextmanager
    def _joined(self) -> Iterator[Any]:
        """Yield Ray, joined to the cluster; leave it at the end, or stop the one started here."""
        with contextlib.ExitStack() as stack:
            threads = _threads_of(self.threads)
            if self.address is None:
                token = {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
                stack.enter_context(_environment(_PRIVATE | token | threads))
                folder = stack.enter_context(_private_folder())
            else:
                stack.enter_context(_environment(_shown_token()))
            ray = loaded("--on ray", "ray", "ray")
            if self.address is None:
                _refuse_open(ray)
                where = self._started_here(folder)
                begun = "started"
            else:
                environment = {"env_vars": threads}
                where = {"address": self.address, "runtime_env": environment}
                begun = "joined"
            try:
                stack.callback(ray.shutdown)
                with _silenced():
                    ray.init(**where, log_to_driver=False, logging_level="ERROR")
            except Exception as error:  # of many kinds, also Ray's own
                raise UsageError(
                    f"{self._name}: Ray cannot be {begun} ({_in_short(error)})"
                ) from error
            yield ray

    def _started_here(self, folder: Path) -> dict[str, Any]:
        """Return with what a Ray on this machine is started."""
        cpus = os.cpu_count() or 1
        return {
            "address": "local",
            "num_cpus": max(cpus, (self.workers or 1) * self.threads),
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
            "_temp_dir": str(folder),
        }


@dataclass(frozen=True)
class _Joined:
    """Workers on a cluster that this process has joined, which is `ray`."""

    own: OnRay
    ray: Any

    def run(self, work: Work, blocks: Sequence[Block]) -> Iterator[Answered]:
        """Yield the blocks as they are done."""
        return self.own.answers(self.ray, work, blocks)


class Driver:
    """The hand that gives blocks to workers, by Ray Data; `rows` are what they answer.

    Ray Data does not work through Ray's client: a command that joins a cluster has a driver there,
    and asks it for one row after another.
    """

    def __init__(
        self, work: Work, blocks: Sequence[Block], threads: int, workers: int
    ) -> None:
        ray = import_module("ray")
        data = import_module("ray.data")
        _be_quiet(data)
        attempts = ray.remote(num_cpus=0)(Attempts).remote()
        pool = data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1)
        rows = [{"block": json.dumps(asdict(block))} for block in blocks]
        answered = data.from_items(rows, override_num_blocks=len(rows)).map(
            Actor,
            fn_constructor_args=(work, threads, attempts),
            compute=pool,
            num_cpus=threads,
        )
        self.rows = _until_done(ray, attempts, answered)

    def next(self) -> dict[str, str] | None:
        """Return the next row; None after the last."""
        return next(self.rows, None)


def _until_done(ray: Any, attempts: Any, answered: Any) -> Iterator[dict[str, str]]:
    """Yield the rows of a data set; then the actor that counts its attempts has done."""
    try:
        yield from answered.iter_rows()
    finally:
        ray.kill(attempts)


class Attempts:
    """A count of the beginnings of each block, in an actor that outlives the workers."""

    def __init__(self) -> None:
        self.begun: dict[int, int] = {}

    def begin(self, number: int) -> int:
        """Count the beginning of a block; return its number of beginnings."""
        self.begun[number] = self.begun.get(number, 0) + 1
        return self.begun[number]


class Actor:
    """A worker in a process of Ray's. Errors of Weft travel as rows: Ray would retell them at
    length.
    """

    def __init__(self, work: Work, threads: int, attempts: Any) -> None:
        os.environ.update(_threads_of(threads))
        self._attempts = attempts
        self._failed: WeftError | None = None
        try:
            self._worker = Worker(work)
        except WeftError as error:
            self._failed = error

    def __call__(self, row: Mapping[str, str]) -> dict[str, str]:
        """Answer the block in a row."""
        block = Block(**json.loads(row["block"]))
        try:
            if self._failed is not None:
                raise self._failed
            self._refuse_deadly(block)
            said = self._worker.answer(block).to_json()
        except WeftError as error:
            said = {"error": type(error).__name__, "message": str(error)}
        return {"said": json.dumps(said)}

    def _refuse_deadly(self, block: Block) -> None:
        """Raise OutOfMemoryError for a block at which workers died again and again."""
        ray = import_module("ray")
        if ray.get(self._attempts.begin.remote(block.number)) > _ATTEMPTS:
            raise errors.OutOfMemoryError(
                f"{block.name}: {_ATTEMPTS} workers in turn were killed there, probably for want of memory; "
                "give fewer --workers or a smaller --block"
            )


def _told(row: Mapping[str, str]) -> Answered:
    """Return what an actor said. Raises the error that it met, by its kind."""
    said = json.loads(row["said"])
    if "error" in said:
        kind = getattr(errors, said["error"], WeftError)
        known = kind if kind.__init__ is WeftError.__init__ else WeftError
        raise known(said["message"])
    return Answered(**said)


def _threads_of(threads: int) -> dict[str, str]:
    """Return the variables that give a process so many threads."""
    return {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}


def _shown_token() -> dict[str, str]:
    """Return the variable by which Ray's client shows a cluster the token that the user has, if
    any: `ray start` asks for it where there is one, and the client does not look for it by itself.
    """
    own = Path.home() / ".ray" / "auth_token"
    has_token = own.is_file() or any(name in os.environ for name in _TOKENS)
    if not has_token or _MODE in os.environ:
        return {}
    return {_MODE: "token"}


def _be_quiet(data: Any) -> None:
    """Let Ray Data say nothing on its own, and wait for a block as long as that takes."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Drop what Ray's native code writes on standard error while it starts."""
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _refuse_open(ray: Any) -> None:
    """Raise WeftError where Ray would listen on another address than this machine's own."""
    address = ray.util.get_node_ip_address()
    if address not in LOOPBACK:
        raise WeftError(
            f"--on ray: this version of Ray would listen on {address}, where others may come; "
            "it is not started"
        )


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables while the block runs: what is started in it has them too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """Yield a folder for Ray's sockets and logs, whose names must be short; it goes at the end, and
    with it those of commands that were killed.
    """
    parent = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    remove_abandoned(Path(parent), _FOLDERS)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS, dir=parent))
    try:
        with being_written(folder, 0o700):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_short(error: Exception) -> str:
    """Return the last line of an error, which is what Ray says of its cause."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return (lines or [type(error).__name__])[-1][:_MOST_SHOWN]
