"""Choices, nearest tokens, the map of a model, and the lens of a recurrent one."""

from typing import Any

import numpy as np
import pytest
import torch

from weft.config import (
    CausalSection,
    ClassifierSection,
    RecurrentSection,
    Seq2SeqSection,
)
from weft.engine.from_model import (
    causal_weights_of,
    classifier_weights_of,
    weights_of,
)
from weft.engine.stream import Row, lens_of
from weft.inspection.insides import TEMPERATURES, choices_of
from weft.inspection.model_map import (
    ModelMap,
    map_of_classifier,
    map_of_translator,
    map_of_writer,
)
from weft.inspection.recurrent import map_of_recurrent, recurrent_pass
from weft.inspection.translation import TranslationInspection
from weft.inspection.vocabulary import largest, nearest
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.recurrent import Seq2SeqRecurrent
from weft.model.transformer import Seq2SeqTransformer, count_parameters

V = 19
SMALL = {"d_model": 24, "d_ff": 40, "num_heads": 4, "max_len": 32}
SHAPES: list[dict[str, Any]] = [
    {},
    {"norm_first": False, "bias": False, "embedding_norm": True},
    {"tie_embeddings": False, "projection_bias": False, "positions": "learned"},
    {
        "norm": "rms",
        "positions": "rotary",
        "head_dim": 8,
        "num_key_value_heads": 2,
        "query_key_norm": True,
        "sandwich_norm": True,
        "embedding_norm": True,
        "activation": "swiglu",
    },
]


def test_choices_and_the_rest_are_the_whole_softmax() -> None:
    random = np.random.default_rng(1)
    logits = (random.standard_normal((4, 30)) * 4).astype(np.float32)
    found = choices_of(logits, 7)
    order = np.argsort(-logits, axis=1)[:, :7]
    assert found.ids.tolist() == order.tolist()
    for place, temperature in enumerate(TEMPERATURES):
        scaled = logits.astype(np.float64) / temperature
        whole = np.log(np.exp(scaled).sum(1))
        parts = [*(found.logits / temperature).T, found.rests[:, place]]
        np.testing.assert_allclose(np.logaddexp.reduce(parts), whole, rtol=1e-5)
    data = found.to_data()
    assert data["rest"].tolist() == found.rests[:, 4].tolist()
    assert (data["count"], data["temperatures"][4]) == (30, 1.0)


def test_of_a_small_vocabulary_one_token_is_left_for_the_rest() -> None:
    found = choices_of(np.zeros((2, 3), np.float32), 50)
    assert found.ids.shape == (2, 2)
    np.testing.assert_allclose(found.rests[:, 4], 0, atol=1e-6)


def test_the_largest_are_those_of_a_whole_sort() -> None:
    values = np.random.default_rng(2).standard_normal((5, 40))
    for count in (1, 6, 40):
        expected = np.argsort(-values, axis=1)[:, :count]
        assert largest(values, count).tolist() == expected.tolist()


def test_nearest_tokens_have_the_largest_cosines() -> None:
    table = np.array([[9, 9], [0, 0], [1, 0], [2, 0.1], [-1, 0], [0, 5]], np.float32)
    found = nearest(table, [2, 5, 2], 2)
    # not padding, which is 0, nor a token without a vector, nor the token itself
    assert found.ids.tolist() == [[3, 5], [3, 2], [3, 5]]
    expected = 2 / np.hypot(2, 0.1)
    np.testing.assert_allclose(found.cosines[0], [expected, 0], atol=1e-6)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_the_boxes_of_a_map_have_all_weights(options: dict[str, Any]) -> None:
    ties = options.get("tie_embeddings", True)
    for joint in (False, True):
        shape = Seq2SeqSection(**SMALL, **options)
        model = Seq2SeqTransformer(shape, V, V, joint)
        found = map_of_translator(shape, weights_of(model), ties, joint)
        assert found.parameters == count_parameters(model)
        names = [box.name for box in found.boxes]
        assert len(set(names)) == len(names)
        assert {name for group in found.tied for name in group} <= {*names}
        assert [len(group) for group in found.tied] == [2 + joint] * ties
    causal = CausalSection(
        **SMALL, **options, ngrams=3, ngram_buckets=50, match_lengths=(1, 2)
    )
    writer = CausalTransformer(causal, V)
    assert map_of_writer(causal, causal_weights_of(writer), ties).parameters == (
        count_parameters(writer)
    )
    known = ClassifierSection.model_fields
    options = {key: value for key, value in options.items() if key in known}
    for layers, ngrams in ((2, 1), (2, 2), (0, 3)):
        section = ClassifierSection(
            **SMALL,
            **options,
            num_encoder_layers=layers,
            ngrams=ngrams,
            ngram_buckets=50,
        )
        classifier = TransformerClassifier(section, V, 3)
        mapped = map_of_classifier(section, classifier_weights_of(classifier), V)
        assert mapped.parameters == count_parameters(classifier)
        assert ("d_model" in mapped.to_data()) == (layers > 0)


def test_a_box_says_what_comes_in_and_out() -> None:
    shape = Seq2SeqSection(**SMALL)
    model = Seq2SeqTransformer(shape, V, V + 2, joint=False)
    found = map_of_translator(shape, weights_of(model), True, False)
    boxes = {box["name"]: box for box in found.to_data()["boxes"]}
    feed = boxes["decoder.1.feed-forward"]
    assert (feed["in"], feed["between"], feed["out"]) == (24, 40, 24)
    assert (feed["tower"], feed["layer"], feed["part"]) == (
        "decoder",
        1,
        "feed-forward",
    )
    assert feed["numbers"] == 2 * 24 * 40 + 40 + 24 + 2 * 24
    assert (boxes["output"]["in"], boxes["output"]["out"]) == (24, V + 2)
    assert (
        boxes["output"]["numbers"] == V + 2
    )  # its bias: the matrix is the embedding's
    assert boxes["encoder.positions"]["numbers"] == 0
    assert found.to_data()["vocabulary"] == {"source": V, "target": V + 2}


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_the_lens_of_a_recurrent_model_ends_with_what_it_says(
    cell: str, attention: str
) -> None:
    torch.manual_seed(2)
    shape = RecurrentSection(
        kind="recurrent",
        cell=cell,  # type: ignore[arg-type]
        attention=attention,  # type: ignore[arg-type]
        d_model=12,
        d_hidden=14,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dropout=0.0,
    )
    model = Seq2SeqRecurrent(shape, V, V, joint=True).eval()
    src, tgt = [5, 7, 9, 3], [4, 8, 3]
    found = recurrent_pass(model, src, tgt, "cpu")
    with torch.no_grad():
        expected = model(torch.tensor([src]), torch.tensor([[2, 4, 8]]))[0].numpy()
    np.testing.assert_allclose(found.logits[-1], expected, atol=1e-6)
    assert found.rows == [*(Row("recurrent", n) for n in range(3)), Row("cross")]
    assert found.memory.shape == (4, 14)
    assert found.hidden.shape == (3, 14)
    assert found.weights.shape == (1, 1, 3, 4)
    seen = lens_of(found.logits, found.rows, tgt)
    softmax = torch.tensor(expected).softmax(-1).numpy()
    np.testing.assert_allclose(seen.written[-1], softmax[range(3), tgt], atol=1e-6)
    # the states of the last layer are those that the whole decoder has
    with torch.no_grad():
        cache = model.prefill(torch.tensor([src]))
        x = model.tgt_embedding(torch.tensor([[2, 4, 8]])) * model.scale
        first: Any = cache.state if cell == "lstm" else cache.state[0]
        hidden, _ = model.decoder(x, first)
    np.testing.assert_allclose(found.hidden, hidden[0].numpy(), atol=1e-6)
    mapped: ModelMap = map_of_recurrent(model)
    assert mapped.parameters == count_parameters(model)
    assert mapped.tied == [["encoder.embedding", "decoder.embedding", "output"]]


def test_every_id_that_is_named_has_its_piece(
    inspection: TranslationInspection,
) -> None:
    data = inspection.to_data()
    target = {str(i) for key in ("lens", "choices") for i in data[key]["ids"].flatten()}
    target |= {str(i) for i in data["nearest"]["target"]["ids"].flatten()}
    assert target <= data["pieces"]["target"].keys()
    source = {str(i) for i in data["nearest"]["source"]["ids"].flatten()}
    assert (
        source | {str(i) for i in inspection.src_ids} == data["pieces"]["source"].keys()
    )
    words = [word for word, _ in data["cuts"]["source"]]
    assert words == ["▁Ich", "▁möchte", "▁eine", "▁Tasse", "▁Tee", "▁."]
    assert "target" not in data["cuts"]
