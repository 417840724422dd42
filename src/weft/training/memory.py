"""The memory of a step, and how it fits into what is free: a batch in parts, layers computed
twice.
"""

import math
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.kernels.training import counting_workspaces
from weft.training.distributed import outermost_layers
from weft.training.loss import LossSums
from weft.training.trainer import B

SPARE = 0.8  # the share of free memory that a plan may use
# a step takes this many times what its forward pass keeps: backward has results, too
BESIDE = 1.3
# bytes a parameter: gradient, two moments, a copy for products, and room for one more gradient
OF_WEIGHTS = 18


def parts_to_fit(
    model: nn.Module, compute_loss: Callable[[B], LossSums], batch: B, free: float
) -> int:
    """Return into how many parts to cut the batches of a run, the largest of which is given.

    As many as it has rows where nothing would suffice.

    The forward pass of an eighth of it is run, and what it keeps taken eight times. What the
    threads of native kernels have for themselves is there once, into however many parts a batch is
    cut.
    """
    probe = batch.parts(8)[0]
    share = (probe.num_src_tokens + probe.num_tgt_tokens) / (
        batch.num_src_tokens + batch.num_tgt_tokens
    )
    with counting_workspaces() as workspaces:
        needed = (
            BESIDE * kept_bytes(lambda: compute_loss(probe), model.parameters()) / share
        )
    room = (
        SPARE * free
        - OF_WEIGHTS * sum(p.numel() for p in model.parameters())
        - max(workspaces, default=0)
    )
    most = len(batch.parts(sys.maxsize))
    return min(max(math.ceil(needed / room), 1), most) if room > 0 else most


def kept_bytes(
    forward: Callable[[], object], parameters: Iterable[nn.Parameter]
) -> int:
    """Measure what a forward pass keeps for backward, in bytes.

    Each piece of memory counts once, parameters do not.
    """
    known = {p.untyped_storage().data_ptr() for p in parameters}
    sizes: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        kept = forward()
    del kept  # until here its memory was not taken for anything else
    return sum(sizes.values())


def recompute_layers(model: nn.Module) -> None:
    """Let every layer keep only its input and be computed again in backward.

    This is activation checkpointing.

    The gradients are the same, bit for bit, dropout included. Source: Chen et al. 2016, "Training
    Deep Nets with Sublinear Memory Cost", with each layer a segment.
    """
    for layer in outermost_layers(model):
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)


def free_bytes(device: torch.device) -> float:
    """Return the bytes that this process may still take: of the GPU, else of machine or control
    group.
    """
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return min(_machine_bytes(), _group_bytes(), _process_bytes())


def _machine_bytes() -> float:
    """Return what Linux says is available without swapping; elsewhere infinity: it is not known."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").split("\n")
        return next(
            int(line.split()[1]) * 1024.0
            for line in lines
            if line.startswith("MemAvailable:")
        )
    except (OSError, StopIteration):
        return math.inf


def _process_bytes(own: Path = Path("/proc/self")) -> float:
    """Return what is left of this process's limit of address space (ulimit -v); else infinity."""
    try:
        limits = (
            (own / "limits")
            .read_text("ascii")
            .partition("Max address space")[2]
            .split()
        )
        sizes = (own / "status").read_text("utf-8").partition("VmSize:")[2].split()
        return (
            math.inf
            if limits[0] == "unlimited"
            else float(limits[0]) - 1024 * float(sizes[0])
        )
    except (OSError, IndexError):
        return math.inf


def _group_bytes(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float:
    """Return what the control groups around this process leave, of either version; else
    infinity.

    In a container the path of its group may begin outside, and its own group is the root.
    """
    try:
        lines = [
            line.split(":", 2)
            for line in own.read_text("utf-8").split("\n")
            if line.count(":") >= 2
        ]
    except OSError:
        return math.inf
    left = [math.inf]
    for _, controllers, path in lines:
        if controllers == "":
            base = root
            limit = "memory.max"
            taken = "memory.current"
            cached = "inactive_file"
        elif "memory" in controllers.split(","):
            base = root / "memory"
            limit = "memory.limit_in_bytes"
            taken = "memory.usage_in_bytes"
            cached = "total_inactive_file"
        else:
            continue
        group = base / path.lstrip("/")
        for folder in {
            base,
            group,
            *(p for p in group.parents if p.is_relative_to(base)),
        }:
            left.append(
                _left_in(folder / limit, folder / taken, folder / "memory.stat", cached)
            )
    return min(left)


def _left_in(limit: Path, taken: Path, stat: Path, cached: str) -> float:
    """Return what one group leaves: its limit without what is taken.

    Files that are only kept for a next reading do not count.
    """
    try:
        most = float(limit.read_text("ascii").replace("max", "inf"))
        used = float(taken.read_text("ascii"))
        kept = [
            line
            for line in stat.read_text("ascii").split("\n")
            if line.startswith(f"{cached} ")
        ]
        return most - used + sum(float(line.split()[1]) for line in kept)
    except (OSError, ValueError):
        return math.inf
