"""What training costs, beside a count of the products that torch really does."""

from itertools import product
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from weft.config import CausalSection, ClassifierSection, Seq2SeqSection
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.flops import Cost, causal_cost, classifier_cost, seq2seq_cost
from weft.model.transformer import Seq2SeqTransformer

SHAPE: dict[str, Any] = {
    "d_model": 10,
    "d_ff": 14,
    "num_heads": 3,
    "head_dim": 6,
    "dropout": 0.0,
}
B, S, T, V = 2, 7, 5, 13


def counted(model: torch.nn.Module, *ids: torch.Tensor) -> int:
    """By torch, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        model(*ids).sum().backward()
    return counter.get_total_flops()


def ids(length: int) -> torch.Tensor:
    return torch.randint(4, V, (B, length))


def lens(length: int) -> torch.Tensor:
    return torch.full((B,), length)


@pytest.mark.parametrize(("tied", "joint"), [*product([True, False], repeat=2)])
def test_translation(tied: bool, joint: bool) -> None:
    shape = Seq2SeqSection(
        **SHAPE, num_encoder_layers=2, num_decoder_layers=3, tie_embeddings=tied
    )
    model = Seq2SeqTransformer(shape, V, V, joint)
    assert seq2seq_cost(model).of(lens(S), lens(T)) == counted(model, ids(S), ids(T))


def test_language_modelling() -> None:
    shape = CausalSection(
        **SHAPE, num_decoder_layers=2, ngrams=3, ngram_buckets=50, match_lengths=(2,)
    )
    model = CausalTransformer(shape, V)
    assert causal_cost(model).of(tgt_lens=lens(T)) == counted(model, ids(T))


def test_classification() -> None:
    model = TransformerClassifier(
        ClassifierSection(**SHAPE, num_encoder_layers=2), V, num_labels=4
    )
    assert classifier_cost(model).of(lens(S)) == counted(model, ids(S))


def test_of_a_bag_nothing_is_counted() -> None:
    model = TransformerClassifier(
        ClassifierSection(**SHAPE, num_encoder_layers=0), V, num_labels=4
    )
    assert classifier_cost(model).of(lens(S)) == 0


def test_each_part_grows_with_what_it_belongs_to() -> None:
    cost = Cost(
        src=1, tgt=10, text=100, src_pair=1000, tgt_pair=10_000, cross_pair=100_000
    )
    src, tgt = torch.tensor([2, 3]), torch.tensor([1, 4])
    assert (
        cost.of(src, tgt) == 5 + 10 * 5 + 200 + 1000 * 13 + 10_000 * 17 + 100_000 * 14
    )
    assert Cost(src=1, text=100, src_pair=1000).of(src) == 5 + 200 + 13_000
    assert Cost(tgt=10, tgt_pair=10_000).of(tgt_lens=tgt) == 50 + 170_000
