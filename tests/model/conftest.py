"""Small models of every shape for the tests of this room.

Sizes are distinct, and prime where they can be, so that a wrong axis cannot cancel out; weights are
far from their start values, so that no bias is zero and no gain is one.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from weft.config import Seq2SeqSection
from weft.model.transformer import Seq2SeqTransformer

SRC_VOCAB, TGT_VOCAB = 23, 29
SRC_LENGTHS, TGT_LEN = (7, 3, 4), 5


@dataclass(frozen=True)
class Case:
    """One shape of model: eight switches, each either way."""

    norm_first: bool
    bias: bool
    gelu: bool
    learned: bool
    free_head_dim: bool
    scaled: bool
    tied: bool
    joint: bool

    @property
    def section(self) -> Seq2SeqSection:
        return Seq2SeqSection(
            d_model=10 if self.free_head_dim else 26,
            num_heads=3 if self.free_head_dim else 2,
            head_dim=7 if self.free_head_dim else None,
            d_ff=17,
            num_encoder_layers=1,
            num_decoder_layers=2,
            norm_first=self.norm_first,
            bias=self.bias,
            activation="gelu" if self.gelu else "relu",
            positions="learned" if self.learned else "sinusoidal",
            scale_embeddings=self.scaled,
            tie_embeddings=self.tied,
            max_len=13,
        )

    @cache  # noqa: B019 - sixteen small models
    def build(self) -> Seq2SeqTransformer:
        torch.manual_seed(20)
        src_vocab = TGT_VOCAB if self.joint else SRC_VOCAB
        return shaken(
            Seq2SeqTransformer(self.section, src_vocab, TGT_VOCAB, self.joint)
        ).eval()


def half_of_all() -> list[Case]:
    """Sixteen of the 256 cases, in which any three switches take all of their eight settings."""
    switches = product((False, True), repeat=4)
    return [
        Case(a, b, c, d, a ^ b ^ c, a ^ b ^ d, a ^ c ^ d, b ^ c ^ d)
        for a, b, c, d in switches
    ]


def shaken(module: Seq2SeqTransformer) -> Seq2SeqTransformer:
    """The module with noise added to every parameter."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return module


@dataclass(frozen=True)
class Batch:
    """Ids of three sentence pairs; the source is padded with 0, the target is not."""

    src: Tensor
    tgt_in: Tensor


@pytest.fixture(
    params=half_of_all(), ids=lambda case: "".join("01"[v] for v in vars(case).values())
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def model(case: Case) -> Seq2SeqTransformer:
    return deepcopy(case.build())


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(4)
    src = torch.randint(
        1, SRC_VOCAB, (len(SRC_LENGTHS), max(SRC_LENGTHS)), generator=generator
    )
    for row, length in enumerate(SRC_LENGTHS):
        src[row, length:] = 0
    return Batch(
        src,
        torch.randint(1, TGT_VOCAB, (len(SRC_LENGTHS), TGT_LEN), generator=generator),
    )


@pytest.fixture
def all_cases() -> list[Case]:
    return half_of_all()


@pytest.fixture
def shake() -> Callable[[nn.Module], nn.Module]:
    return shaken
