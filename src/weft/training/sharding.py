"""Models of which each process holds a part: PyTorch's FSDP, and the tensors that it makes.

PyTorch takes about a second to load these, so that a run which shards nothing does not.
"""

import warnings
from collections.abc import Iterable

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

# the methods of a model or layer, besides forward, that are called from outside
DOORS = ("states", "output", "prefill", "decode", "start")


def shard(parts: Iterable[nn.Module], device: str, size: int) -> None:
    """Shard every parameter of these modules, the innermost first, over so many processes."""
    # of views, which nothing here writes to
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    mesh = init_device_mesh(device, (size,))
    for part in parts:
        fully_shard(part, mesh=mesh)
        for door in DOORS:
            if hasattr(part, door):
                register_fsdp_forward_method(part, door)


def in_parts(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Return a whole tensor on the device and in the parts of a sharded parameter."""
    assert isinstance(parameter, DTensor)
    placed = tensor.to(parameter.device)
    return distribute_tensor(
        placed, parameter.device_mesh, parameter.placements, src_data_rank=None
    )
