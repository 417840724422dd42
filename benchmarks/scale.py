"""What an update costs on many GPUs, reckoned on paper: `python benchmarks/scale.py`.

Nothing here is measured. Flops are counted on tensors without storage (torch's FlopCounterMode over
a forward pass of the model; a backward pass has twice as many); seconds follow from them, from the
bytes that gradients or parameters have, and from the speeds in `Cluster`. What travels while the
backward pass still computes costs nothing; only what is left over when it ends does. docs/scale.md
says how far to trust the tables.
"""

import argparse
import math
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from weft.config import Seq2SeqSection
from weft.model.transformer import Seq2SeqTransformer, count_parameters

BUCKET = 25 * 2**20  # bytes of gradients that DistributedDataParallel sends together
FLOAT = 4  # bytes; parameters and gradients travel as float32
LATENCY = 10e-6  # seconds of one hop of a collective, kernel launch included
LENGTH = 32  # tokens of a sentence, for the counting


@dataclass(frozen=True)
class Cluster:
    """GPUs in nodes: `flops` a second that a GPU reaches in training, and bytes a second in and out
    of a node.
    """

    name: str
    flops: float
    within: float  # bytes a second between the GPUs of a node, each way, a GPU
    between: float  # bytes a second into and out of a node
    per_node: int = 8

    def bus(self, size: int) -> float:
        """Bytes a second that a collective over `size` GPUs moves through its narrowest place."""
        return self.within if size <= self.per_node else min(self.within, self.between)

    def gather(self, num_bytes: float, size: int) -> float:
        """Seconds of an all-gather or a reduce-scatter of so many bytes; an all-reduce is both."""
        if size == 1:
            return 0.0
        return (size - 1) / size * num_bytes / self.bus(size) + math.ceil(
            math.log2(size)
        ) * LATENCY


# NVIDIA H100 SXM: 989 TFLOP/s dense bfloat16 and 450 GB/s each way by NVLink (data sheet), of which
# training is taken to reach 40 % and a collective 80 %.
H100 = 0.4 * 989e12
FAST = Cluster("8 cards of 400 Gb/s a node", H100, 0.8 * 450e9, 0.8 * 8 * 50e9)
PLAIN = Cluster("1 card of 100 Gb/s a node", H100, 0.8 * 450e9, 0.8 * 12.5e9)

SIZES = {
    "base": (
        Seq2SeqSection(
            d_model=512, d_ff=2048, num_encoder_layers=6, num_decoder_layers=6
        ),
        32_000,
    ),
    "big": (
        Seq2SeqSection(
            d_model=1024,
            d_ff=4096,
            num_heads=16,
            num_encoder_layers=6,
            num_decoder_layers=6,
        ),
        32_000,
    ),
}


@dataclass(frozen=True)
class Cost:
    """A model's parameters and layers, and the flops of its forward pass for one source or target
    token.
    """

    parameters: int
    layers: int
    flops_a_token: float


def cost_of(section: Seq2SeqSection, vocab_size: int) -> Cost:
    """Count on tensors that have shapes and no numbers."""
    with torch.device("meta"):
        model = Seq2SeqTransformer(section, vocab_size, vocab_size, joint=True)
        src, tgt = (torch.ones(8, LENGTH, dtype=torch.long) for _ in range(2))
        with FlopCounterMode(display=False) as counter:
            model.output(model.states(src, tgt))
    layers = section.num_encoder_layers + section.num_decoder_layers
    return Cost(
        count_parameters(model),
        layers,
        counter.get_total_flops() / (src.numel() + tgt.numel()),
    )


def replicated(
    cost: Cost, cluster: Cluster, size: int, tokens: int, micro_batches: int
) -> float:
    """Seconds of an update where each process has the whole model; gradients meet in the last
    backward pass.
    """
    forward = cost.flops_a_token * tokens / cluster.flops
    backward = 2 * forward
    num_bytes = FLOAT * cost.parameters
    buckets = max(1, math.ceil(num_bytes / BUCKET))
    sent = 0.0
    for bucket in range(1, buckets + 1):  # ready one after another; sent in turn
        ready = backward * bucket / buckets
        sent = max(sent, ready) + 2 * cluster.gather(num_bytes / buckets, size)
    return (micro_batches - 1) * (forward + backward) + forward + max(sent, backward)


def sharded(
    cost: Cost, cluster: Cluster, size: int, tokens: int, micro_batches: int
) -> float:
    """Seconds of an update where each has a part: layers are gathered on the way forward, and again
    back.
    """
    forward = cost.flops_a_token * tokens / cluster.flops / cost.layers
    move = cluster.gather(FLOAT * cost.parameters / cost.layers, size)
    ahead = cost.layers * max(forward, move)
    back = cost.layers * max(2 * forward, move)
    last = cost.layers * max(2 * forward, 2 * move)  # gradients are scattered as well
    return move + micro_batches * ahead + (micro_batches - 1) * back + last


def memory(cost: Cost, share: int) -> float:
    """GiB of weights, gradients and Adam's two moments in float32, on each GPU."""
    return 4 * FLOAT * cost.parameters / share / 2**30


def table(cluster: Cluster) -> list[str]:
    """A row for each size, tokens a micro-batch, and number of GPUs; one micro-batch a GPU and
    update.
    """
    rows = [
        (
            f"| {cluster.name} | tokens a GPU | GPUs | tokens an update "
            "| ddp: ms, efficiency | fsdp: ms, efficiency |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for name, (section, vocab_size) in SIZES.items():
        cost = cost_of(section, vocab_size)
        for tokens in (4_096, 32_768):
            alone = replicated(cost, cluster, 1, tokens, 1)
            for size in (8, 64, 512):
                cells = [
                    f"{1000 * seconds:.1f}, {100 * alone / seconds:.0f} %"
                    for seconds in (
                        way(cost, cluster, size, tokens, 1)
                        for way in (replicated, sharded)
                    )
                ]
                rows.append(
                    f"| {name} | {tokens:,} | {size} | {size * tokens:,} | {' | '.join(cells)} |"
                )
    return rows


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0]
    ).parse_args()
    print(
        "| size | parameters | gradients, MB | GFLOP a token, forward and back | GiB with ddp | with fsdp on 8 |"
    )
    print("|---|---|---|---|---|---|")
    for name, (section, vocab_size) in SIZES.items():
        cost = cost_of(section, vocab_size)
        numbers = (
            f"{FLOAT * cost.parameters / 1e6:.0f} | {3 * cost.flops_a_token / 1e9:.3f}"
        )
        print(
            f"| {name} | {cost.parameters:,} | {numbers} | {memory(cost, 1):.2f} | {memory(cost, 8):.2f} |"
        )
    for cluster in (FAST, PLAIN):
        print("\n".join(["", *table(cluster)]))


if __name__ == "__main__":
    main()
