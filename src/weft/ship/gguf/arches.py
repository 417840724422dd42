"""The architectures of llama.cpp, by which of Weft's options each computes, and the choice.

What a model of one of them looks like in a file is in `layers.py`. Source of the rows: the files
of `src/models/` in llama.cpp, b11549.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from weft.config import CausalSection

Reasons = Iterator[str]


@dataclass(frozen=True)
class Arch:
    """An architecture: `name` is that of the file's keys.

    Each linear map may have biases or must, or none has; norms of the kind `layer` always have.
    With `turns = "neighbours"` the two numbers that rotary positions turn together stand side by
    side in a head; in Weft, and by `halves`, one is in each half. `has_table`: positions are a
    table, not rotary. `any_head_dim`: heads together may be wider than the model. `needs_output`:
    the projection to logits is an array of its own, a tied one too. `one_map`: queries, keys and
    values are made by one matrix.
    """

    name: str
    norm: Literal["rms", "layer"]
    activation: Literal["swiglu", "relu2", "gelu"]
    biases: Literal["none", "may", "must"] = "none"
    turns: Literal["halves", "neighbours"] = "halves"
    query_key_norm: bool = False
    sandwich_norm: bool = False
    has_table: bool = False
    any_head_dim: bool = True
    needs_output: bool = False
    one_map: bool = False


ARCHES = (
    Arch("llama", "rms", "swiglu", "may", turns="neighbours"),
    Arch("qwen3", "rms", "swiglu", query_key_norm=True),
    Arch("glm4", "rms", "swiglu", turns="neighbours", sandwich_norm=True),
    Arch("arcee", "rms", "relu2", turns="neighbours"),
    Arch("nemotron", "layer", "relu2", "may", any_head_dim=False, needs_output=True),
    Arch("stablelm", "layer", "swiglu", any_head_dim=False, needs_output=True),
    Arch("starcoder2", "layer", "gelu", "must", any_head_dim=False),
    Arch("gpt2", "layer", "gelu", "must", has_table=True, any_head_dim=False, one_map=True),
)  # fmt: skip


def arch_of(shape: CausalSection) -> Arch | None:
    """Return the architecture that computes a model; None where none does."""
    for arch in ARCHES:
        if not list(reasons(arch, shape)):
            return arch
    return None


def why_no_arch(shape: CausalSection) -> str:
    """Say why no architecture computes a model, by the one that lacks least; "" where one does."""
    why = {arch: list(reasons(arch, shape)) for arch in ARCHES}
    nearest = min(why, key=lambda arch: len(why[arch]))
    if not why[nearest]:
        return ""
    return f"the nearest architecture is {nearest.name}, but {'; '.join(why[nearest])}"


def reasons(arch: Arch, shape: CausalSection) -> Reasons:
    """Yield why a model does not fit an architecture, each reason with what would."""
    taken: dict[str, list[Any]] = {
        "norm_first": [True],
        "norm": [arch.norm],
        "activation": [arch.activation],
        "positions": ["learned", "sinusoidal"] if arch.has_table else ["rotary"],
        "query_key_norm": [arch.query_key_norm],
        "sandwich_norm": [arch.sandwich_norm],
        "embedding_norm": [False],
        "bias": [False] if arch.biases == "none" else [True, False],
        "ngrams": [1],
        "match_lengths": [()],
    }
    for key, values in taken.items():
        own = getattr(shape, key)
        if own not in values:
            listed = " or ".join(json.dumps(value) for value in values)
            yield f"it needs model.{key} = {listed}, not {json.dumps(own)}"
    if shape.has_projection_bias:
        yield "it needs model.projection_bias = false"
    if not arch.any_head_dim and shape.dim_of_head * shape.num_heads != shape.d_model:
        yield "it needs model.head_dim = model.d_model / model.num_heads"
