"""Several processes that train one model, as `torchrun` starts them: who does what, and how tensors
meet.

The run is the same whatever their number. An update has `grad_accum_steps` micro-batches, which the
processes share; gradients are sums over all of them, divided once. Two ways: `ddp` keeps the whole
model in each process (Li et al. 2020, "PyTorch Distributed"), `fsdp` a part of it (Zhao et al.
2023, "PyTorch FSDP", in its second form, which shards each parameter). Checkpoints hold whole
tensors, so any number of processes can resume from them.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from weft.errors import UsageError
from weft.kernels import operations
from weft.training.loss import LossSums

Parallel = Literal["ddp", "fsdp"]
# for the others, while the first encodes a large corpus
PATIENCE = timedelta(minutes=60)

T = TypeVar("T")
B = TypeVar("B")


@dataclass
class World:
    """The processes of a run; this one is number `rank` of `size`. One alone is a world as well."""

    rank: int = 0
    size: int = 1
    local_size: int = 1
    parallel: Parallel = "ddp"
    _reducer: DistributedDataParallel | None = None

    @property
    def is_first(self) -> bool:
        """Return whether this process is the one that writes and speaks."""
        return self.rank == 0

    def describe(self) -> str:
        """Say behind a run's length how many processes there are; "" of one alone."""
        return f", by {self.size} processes ({self.parallel})" if self.size > 1 else ""

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """Return this process's part of what all of them share."""
        return items[self.rank :: self.size]

    def all_reduce(self, *numbers: float) -> list[float]:
        """Sum each number over all processes."""
        if self.size == 1:
            return list(numbers)
        added = torch.tensor(numbers, dtype=torch.float64, device=_device())
        dist.all_reduce(added)
        return [float(number) for number in added]

    def any(self, flag: bool) -> bool:
        """Return whether a flag is set in at least one process; all get the same answer."""
        return self.all_reduce(flag)[0] > 0

    @contextlib.contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let the first process go through the block before the others do: what it writes, they
        find.
        """
        if self.size > 1 and not self.is_first:
            dist.barrier()
        yield
        if self.size > 1 and self.is_first:
            dist.barrier()

    def shard(self, model: nn.Module) -> None:
        """Shard every parameter over the processes, with `fsdp`; before an optimizer is built
        over them.
        """
        if self.size == 1 or self.parallel == "ddp":
            return
        from weft.training import sharding

        parts = (*outermost_layers(model), model)
        sharding.shard(parts, _device().type, self.size)
        self._sharded: Any = model

    def joined(
        self, model: nn.Module, compute_loss: Callable[[B], LossSums]
    ) -> Callable[[B], LossSums]:
        """Wrap `compute_loss` so that backward leaves the mean of all processes' gradients in
        each.
        """
        if self.size == 1 or self.parallel == "fsdp":
            return compute_loss
        self._reducer = DistributedDataParallel(_LossOf(model, compute_loss))
        return self._reducer

    @contextlib.contextmanager
    def adding_up(self, last: bool) -> Iterator[None]:
        """Wrap forward and backward of one micro-batch: gradients meet at the `last` of an
        update.
        """
        if self.size == 1 or last:
            self._meet(True)
            yield
        elif self.parallel == "ddp":
            assert self._reducer is not None
            with self._reducer.no_sync():
                yield
        else:
            self._meet(False)
            yield

    def release(self) -> None:
        """Release what joins gradients, while the process group is still there.

        Were it the last to hold the group, its end would wait, holding Python's lock, for a thread
        that wants it.
        """
        if self._reducer is not None:
            self._reducer.logger = None
            del self._reducer.reducer

    def _meet(self, whether: bool) -> None:
        if self.size > 1 and self.parallel == "fsdp":
            self._sharded.set_requires_gradient_sync(whether)


@contextlib.contextmanager
def joined_world(parallel: Parallel = "ddp") -> Iterator[World]:
    """Join the world that torchrun's environment describes; one process alone where there is
    none.
    """
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        yield World()
        return
    local_rank, local_size = (
        int(os.environ.get(n, d))
        for n, d in (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1"))
    )
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    dist.init_process_group(
        "nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE
    )
    world = World(dist.get_rank(), dist.get_world_size(), local_size, parallel)
    try:
        yield world
    finally:
        world.release()
        dist.destroy_process_group()


def is_lost_process(error: BaseException) -> bool:
    """Return whether another process of the run has gone, or did not answer in time."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and "gloo" in str(error)
    )


def refuse_shares(grad_accum_steps: int, world: World, size_keys: str) -> None:
    """Raise UsageError where the micro-batches of an update cannot be shared by the processes.

    Each needs one at least; with `fsdp` all need as many, for each forward pass brings parameters
    together. `size_keys` change the size of a micro-batch.
    """
    uneven = world.parallel == "fsdp" and grad_accum_steps % world.size
    if grad_accum_steps < world.size or uneven:
        raise UsageError(
            f"training.grad_accum_steps = {grad_accum_steps}: {world.size} processes ({world.parallel}) share the "
            f"micro-batches of an update; set it to a multiple of {world.size}, and for an update as large as now "
            f"change {size_keys} by as much"
        )


def full_tensor(tensor: Tensor) -> Tensor:
    """Gather a tensor, sharded or not, on its device.

    Collective: every process must call it.
    """
    full: Tensor = tensor.full_tensor() if operations.is_spread(tensor) else tensor  # type: ignore[attr-defined]
    return full.detach().contiguous()


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Return a whole tensor on the parameter's device, and in its parts where the parameter is
    sharded.
    """
    if not operations.is_spread(parameter):
        return tensor
    from weft.training import sharding

    return sharding.in_parts(tensor, parameter)


def copy_into(parameter: Tensor, tensor: Tensor) -> None:
    """Give a parameter, sharded or not, the values of a whole tensor."""
    with torch.no_grad():
        parameter.copy_(like(tensor, parameter))


def reshard(model: nn.Module) -> None:
    """Reshard the parameters that a forward pass without backward, as an evaluation, left gathered.

    Otherwise the next forward pass would not see what is written into the shards.
    """
    modules: Iterator[Any] = model.modules()
    for module in modules:
        if hasattr(module, "reshard"):  # an FSDPModule
            module.reshard()


def clip_gradients(model: nn.Module, limit: float | None, scale: float = 1.0) -> float:
    """Scale all gradients down to a common norm of at most `limit`; return the norm before.

    `scale` is what the loss was multiplied by; the gradients are divided by it first.
    """
    parameters = [p for p in model.parameters() if p.grad is not None]
    gradients = [p.grad for p in parameters if p.grad is not None]
    if scale != 1 and gradients:
        torch._foreach_div_(gradients, scale)
    norm = operations.total_norm(gradients)
    length = float(full_tensor(norm))
    if limit is not None and length > limit:
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    return length


def outermost_layers(module: nn.Module) -> list[nn.Module]:
    """Return the layers: the modules in the outermost lists of modules."""
    if isinstance(module, nn.ModuleList):
        return list(module)
    return [layer for child in module.children() for layer in outermost_layers(child)]


class _LossOf(nn.Module):
    """A loss wrapped as a module: DDP joins gradients only through a module's forward pass.

    It has the model's parameters and not its buffers, which are tables that are the same in every
    process.
    """

    def __init__(
        self, model: nn.Module, compute_loss: Callable[[Any], LossSums]
    ) -> None:
        super().__init__()
        self.parameters_of_model = nn.ParameterList(model.parameters())
        self.compute_loss = compute_loss

    def forward(self, batch: Any) -> LossSums:
        return self.compute_loss(batch)


def _device() -> torch.device:
    return (
        torch.device("cuda", torch.cuda.current_device())
        if torch.cuda.is_available()
        else torch.device("cpu")
    )
