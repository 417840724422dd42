"""The machine as PyTorch sees it: what it is good at, measured once, and set for training."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from weft.errors import UsageError
from weft.kernels import native, operations, training
from weft.kernels.machine import (
    Machine,
    refuse_for_use,
    threads_asked,
    usable_cores,
)

# the type of products; weights are float32 always
LOW = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# another precision must be this many times as fast as float32 to be chosen
WORTHWHILE = 1.3
# times float32's speed: what is slower than this the CPU only imitates
IMITATED = 0.1


def measured(machine: Machine) -> Machine:
    """Return the same with its matrix peak, which a run needs and the use of a model does not."""
    torch.set_num_threads(machine.threads)
    peak = matrix_peak(machine.device, machine.precision, machine.threads)
    return replace(machine, peak_flops=peak)


def prepare(machine: Machine) -> torch.device:
    """Set the thread count of the process, for training, and hand out the device.

    On a GPU attention is not cuDNN's: it plans each shape anew, and batches have many. Raises
    UsageError where native kernels were chosen and cannot be had.
    """
    torch.set_num_threads(machine.threads)
    if machine.device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        if machine.kernels == "native":
            native.load()
    except native.UnavailableError as error:
        raise UsageError(
            f"native kernels were chosen when the run began, and here {error} (or start over with --fresh)"
        ) from error
    return torch.device(machine.device)


def computing(machine: Machine) -> contextlib.AbstractContextManager[None]:
    """Open the context of training steps, forward and backward: by the kernels chosen.

    It holds for the thread that opens it. Raises UnavailableError where they cannot be had.
    """
    return operations.using(machine.kernels == "native", machine.products)


def autocast(machine: Machine) -> torch.autocast:
    """Open the context of a forward pass: products in half precision where chosen, float32
    weights.
    """
    is_low = machine.precision in LOW
    return torch.autocast(machine.device, LOW.get(machine.precision), enabled=is_low)


def choose_machine(
    precision: str = "auto", threads: int | None = None, kernels: str = "torch"
) -> Machine:
    """Choose a GPU where there is one, else the CPU; what is "auto", a short measurement decides.

    `kernels`, "native", "torch" or "auto", are those of training steps on a CPU. Without `threads`,
    OMP_NUM_THREADS says how many; without that, a measurement. Raises UsageError where bfloat16 is
    asked of a GPU without it, and native kernels where they cannot be had.
    """
    device = _device()
    cores = usable_cores()
    threads = threads or threads_asked()
    is_measured = threads is None
    threads = threads or _useful_threads(device)
    crowd = ""
    if threads > cores:
        crowd = f"; more threads than its {cores} cores make it slow"
    if is_measured and device == "cpu" and threads < cores:
        crowd = f"; {cores} threads were no faster than {threads}, as other work keeps the cores busy"
    torch.set_num_threads(threads)
    precision, reason = _choose_precision(precision, device)
    machine = Machine(device, precision, threads, reason + crowd)
    if kernels == "native" and precision == "float16":
        raise UsageError(
            "training.kernels = native: they have no float16; use bfloat16, float32 or auto"
        )
    if kernels == "torch" or device != "cpu" or precision == "float16":
        return machine
    return _with_kernels(machine, kernels)


def machine_for_torch(
    precision: str = "float32", kernels: str = "auto", sets_threads: bool = False
) -> Machine:
    """Choose the machine of a model in use whose steps PyTorch takes; a GPU where there is one.

    `kernels`: "auto", or "torch": the model's own steps in plain operations, which are slower and
    can be watched. With `sets_threads`, for a command whose process is its own, PyTorch has as many
    threads as are chosen; else it keeps those that it has. Raises UsageError for other kernels and
    a precision that there is not.
    """
    refuse_for_use(precision, kernels)
    if precision == "float16" and not torch.cuda.is_available():
        raise UsageError(
            "precision = float16: only GPUs have it; use bfloat16 or float32"
        )
    plain = kernels == "torch"
    wanted = "float32" if plain else precision
    if sets_threads:
        return replace(choose_machine(wanted), plain=plain)
    device = _device()
    chosen, reason = _choose_precision(wanted, device)
    threads = threads_asked() or usable_cores()
    return Machine(device, chosen, threads, reason, plain=plain)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _choose_precision(precision: str, device: str) -> tuple[str, str]:
    """Return the one asked for, or the fastest for "auto", and why.

    Raises UsageError where the device has none such.
    """
    if precision == "auto":
        return _best_precision(torch.device(device))
    if precision == "bfloat16" and device == "cuda" and not _gpu_has_bfloat16():
        raise UsageError(
            "training.precision = bfloat16: this GPU has none; use float16 or auto"
        )
    reason = "as the recipe says"
    if precision == "float16" and device == "cpu":
        gain = _gain(torch.device(device), precision)
        reason += f"; its products measured at {gain:.1f} times float32's speed, native kernels have none"
    return precision, reason


@cache
def matrix_peak(device: str, precision: str, threads: int) -> float:
    """Return the best rate of square matrix products, in FLOP/s (2 n^3 for n rows), by as many
    threads as are set.

    `threads` is only remembered, so that each number of them is measured once in a process. Sizes
    are doubled up to one that takes a while; the best of all counts: where others compute too,
    short products are disturbed less.
    """
    where = torch.device(device)
    kind = LOW.get(precision, torch.float32)
    best = 0.0
    size = 256
    seconds = 0.0
    while seconds < 0.005 and size <= 8192:
        a, b = torch.randn(2, size, size, device=where, dtype=kind)
        seconds = _seconds(lambda a=a, b=b: a @ b, where)  # type: ignore[misc]
        if device == "cpu" and kind == torch.float32 and training.HAS_ONEDNN:
            by_onednn = _seconds(lambda a=a, b=b: training.onednn_product(a, b), where)  # type: ignore[misc]
            seconds = min(seconds, by_onednn)
        best = max(best, 2 * size**3 / seconds)
        size *= 2
    return best


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory, of a GPU or of the machine, did not suffice."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        m in str(error) for m in ("can't allocate memory", "bad_alloc")
    )


@cache
def _useful_threads(device: str) -> int:
    """Count all cores, or 1 where other work keeps them so busy that one thread is as fast.

    Measured once in a process.
    """
    cores = usable_cores()
    if device != "cpu" or cores == 1:
        return cores
    # 30 ms of an old core: no command waits long for it
    x, w = torch.randn(1024, 512), torch.randn(512, 1024)
    seconds = {}
    for threads in (1, cores):
        torch.set_num_threads(threads)
        seconds[threads] = _seconds(lambda: x @ w, torch.device(device), 3)
    return cores if seconds[cores] < seconds[1] else 1


def _best_precision(device: torch.device) -> tuple[str, str]:
    """Return the fastest precision worth having, and why.

    Of GPUs those without bfloat16 may have float16, which asks for more care.
    """
    half = "bfloat16" if device.type == "cpu" or _gpu_has_bfloat16() else "float16"
    gain = _gain(device, half)
    reason = f"{half} products measured at {gain:.1f} times float32's speed"
    if gain >= WORTHWHILE:
        return half, reason
    return "float32", reason


def _gpu_has_bfloat16() -> bool:
    return torch.cuda.is_bf16_supported(including_emulation=False)


def _gain(device: torch.device, precision: str) -> float:
    """Measure how many times as fast as in float32 a product of typical size is, casts included.

    A small one is tried first: where the CPU has to imitate the type, a large one takes a minute.
    """
    small = _gain_of(128, 128, 128, device, precision)
    return small if small < IMITATED else _gain_of(2048, 512, 2048, device, precision)


def _gain_of(
    rows: int, inputs: int, outputs: int, device: torch.device, precision: str
) -> float:
    # a run in another thread may be drawing from the process's
    own = torch.Generator(device).manual_seed(1)
    x, w = (
        torch.randn(*size, device=device, generator=own)
        for size in ((rows, inputs), (inputs, outputs))
    )
    low = w.to(LOW.get(precision, torch.float32))

    def other() -> None:
        x.to(low.dtype) @ low

    return _times_as_fast(other, lambda: x @ w, device)


def _with_kernels(machine: Machine, wanted: str) -> Machine:
    """Choose native kernels where they were asked for, or can be had with all threads; say why.

    No clock decides: native dropout draws other masks, so that the choice is one between two runs,
    and the same command on the same machine must be the same run, whatever else the machine does.
    """
    try:
        has_threads = native.has_threads()
    except native.UnavailableError as error:
        if wanted == "native":
            raise UsageError(
                f"training.kernels = native: {error} (or use auto)"
            ) from error
        return replace(machine, reason=f"{machine.reason}; no native kernels: {error}")
    if wanted != "native" and machine.threads > 1 and not has_threads:
        return replace(
            machine,
            reason=f"{machine.reason}; native kernels, as compiled here, have one thread",
        )
    products = (
        "onednn" if machine.precision == "float32" and _prefers_onednn() else "blas"
    )
    return replace(machine, kernels="native", products=products)


@cache
def _prefers_onednn() -> bool:
    """Tell whether oneDNN's float32 products are faster than those of PyTorch's default BLAS.

    The default is Intel's library, which is slow on AMD's CPUs: there oneDNN was measured at
    1.6 to 3.2 times its speed. On an Intel Xeon whole steps took 4 to 8 % longer with it.
    """
    try:
        about = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return training.HAS_ONEDNN and "AuthenticAMD" in about


def _times_as_fast(
    work: Callable[[], object], other: Callable[[], object], device: torch.device
) -> float:
    """Measure how many times as fast one is as the other.

    They take turns, so that what else runs disturbs both alike.
    """
    seconds = []
    other_seconds = []
    for _ in range(9):
        seconds.append(_seconds(work, device, 1))
        other_seconds.append(_seconds(other, device, 1))
    return min(other_seconds) / min(seconds)


def _seconds(
    work: Callable[[], object], device: torch.device, rounds: int = 5
) -> float:
    """Return the fastest of some rounds, after one to warm up; of a single one, the faster of
    both.
    """
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times[1:] if rounds > 1 else times)
