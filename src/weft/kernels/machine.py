"""The machine that computes: device, precision and threads, without PyTorch.

A model in use on a CPU needs no more. What PyTorch measures and sets is in `torch_machine.py`.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from weft.errors import UsageError

_CPU_FACTS = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    """The device, precision, threads and kernels of a run; `reason` says why, for a person.

    `products` is whose products in float32 native kernels use: "blas", PyTorch's default, or
    "onednn". `peak_flops` is the best rate of a large matrix product, in multiplications and
    additions a second; 0: unknown. `parts` is into how many a run cuts each batch, so that it fits
    into memory; 0: not decided yet. With `plain` a model in use takes the steps of `weft.model` as
    they are written: no engine, no fused attention.
    """

    device: str
    precision: str
    threads: int
    reason: str
    kernels: str = "torch"
    products: str = "blas"
    peak_flops: float = 0.0
    parts: int = 1
    plain: bool = False

    def __post_init__(self) -> None:
        """Read the TF32 of an older run as float32."""
        if self.precision == "tf32":
            object.__setattr__(self, "precision", "float32")

    def as_used(self) -> "Machine":
        """Return the same with products in float32, as a model has them in use where nothing else
        is said.
        """
        return replace(self, precision="float32")

    def in_short(self) -> str:
        """Say where a run computes: "a GPU", "2 threads"."""
        return "a GPU" if self.device == "cuda" else counted_threads(self.threads)

    def describe(self) -> str:
        """Describe all that was chosen, and why, in one line."""
        kernels = "native" if self.kernels == "native" else "PyTorch's"
        kernels += " kernels"
        peak = f", {self.peak_flops / 1e9:,.0f} billion operations a second in matrix products"
        shown = peak if self.peak_flops else ""
        where = f"{self.device}, {self.precision}, {kernels}, {counted_threads(self.threads)}"
        return f"{where}{shown} ({self.reason})"


def machine_for_use(precision: str = "float32") -> Machine:
    """Choose the CPU as the machine of a model in use; products in `precision`, "auto" the fastest.

    Its threads are those of the engine, which has its own: OMP_NUM_THREADS or as many as there are
    cores. Raises UsageError for a precision that there is not.
    """
    refuse_for_use(precision)
    if precision == "float16":
        raise UsageError(
            "precision = float16: only GPUs have it; use bfloat16 or float32"
        )
    reason = "as asked"
    if precision == "auto":
        is_fast = has_bfloat16_products()
        precision = "bfloat16" if is_fast else "float32"
        reason = f"this CPU {'has' if is_fast else 'has no'} products of bfloat16"
    threads = threads_asked() or usable_cores()
    return Machine("cpu", precision, threads, reason)


def refuse_for_use(precision: str, kernels: str = "auto") -> None:
    """Raise UsageError for kernels and a precision that a model in use cannot have."""
    if kernels not in ("auto", "torch"):
        raise UsageError(f"kernels = {kernels}: it must be auto or torch")
    if kernels == "torch" and precision not in ("float32", "auto"):
        raise UsageError(
            f"kernels = torch: they compute in float32, not in {precision}; leave the precision out"
        )
    if precision not in ("float32", "bfloat16", "float16", "auto"):
        raise UsageError(
            f"precision = {precision}: it must be float32, bfloat16, float16 or auto"
        )


def has_bfloat16_products() -> bool:
    """Return whether this CPU multiplies bfloat16 by an instruction of its own."""
    try:
        facts = _CPU_FACTS.read_text("utf-8", "replace")
    except OSError:
        return False
    return "avx512_bf16" in facts


def counted_threads(threads: int) -> str:
    """Say a number of threads."""
    return "1 thread" if threads == 1 else f"{threads} threads"


def threads_asked() -> int | None:
    """Return the threads that OMP_NUM_THREADS asks for; None where it is not set."""
    number = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(number) if number.isdecimal() and int(number) > 0 else None


def usable_cores() -> int:
    """Count the CPUs that this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
