"""What must hold of the classifier: of an encoder, of a bag of n-grams, and of both side by
side.
"""

from copy import deepcopy
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from weft.config import ClassifierSection
from weft.model.attention import AttentionRecord, MultiHeadAttention
from weft.model.classifier import TransformerClassifier, masked_mean
from weft.model.layers import EncoderLayer
from weft.model.ngrams import ngram_hashes

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
LENGTHS, VOCAB, LABELS, MAX_LEN = (7, 3, 5, 1), 29, 5, 13
D, H, F, BUCKETS = 26, 2, 17, 97

KINDS: dict[str, dict[str, object]] = {
    "encoder": {"num_encoder_layers": 2},
    "post-norm": {
        "num_encoder_layers": 1,
        "norm_first": False,
        "positions": "learned",
        "activation": "gelu",
    },
    "first": {"num_encoder_layers": 1, "pooling": "first", "scale_embeddings": False},
    "both": {"num_encoder_layers": 1, "ngrams": 2},
    "both, first": {
        "num_encoder_layers": 1,
        "ngrams": 3,
        "pooling": "first",
        "bias": False,
    },
    "n-grams": {"num_encoder_layers": 0, "ngrams": 4},
    "tokens": {"num_encoder_layers": 0},
    "weighted": {
        "num_encoder_layers": 0,
        "ngrams": 3,
        "ngram_weights": "log-count-ratio",
    },
    "weighted, both": {
        "num_encoder_layers": 1,
        "ngrams": 2,
        "ngram_weights": "log-count-ratio",
    },
    "weighted tokens": {"num_encoder_layers": 0, "ngram_weights": "log-count-ratio"},
}
WEIGHTED = [name for name in KINDS if name.startswith("weighted")]
WITH_LAYERS = [name for name, values in KINDS.items() if values["num_encoder_layers"]]


def classifier(
    vocab_size: int = VOCAB, num_labels: int = LABELS, **values: object
) -> TransformerClassifier:
    shape = {
        "d_model": D,
        "num_heads": H,
        "d_ff": F,
        "max_len": MAX_LEN,
        "dropout": 0.0,
        "ngram_buckets": BUCKETS,
    }
    return TransformerClassifier(
        ClassifierSection(**{**shape, **values}), vocab_size, num_labels
    )  # type: ignore[arg-type]


@cache
def build(kind: str) -> TransformerClassifier:
    """Far from its start values, so that no bias and no row is zero, and no gain is one."""
    torch.manual_seed(31)
    model = classifier(**KINDS[kind])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
            if not parameter.requires_grad:  # weights of rows
                parameter.abs_().add_(0.5)
    return model.eval()


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> TransformerClassifier:
    return deepcopy(build(request.param))


@pytest.fixture
def ids() -> Tensor:
    drawn = torch.randint(
        1,
        VOCAB,
        (len(LENGTHS), max(LENGTHS)),
        generator=torch.Generator().manual_seed(4),
    )
    return drawn.masked_fill(
        torch.arange(max(LENGTHS))[None] >= torch.tensor(LENGTHS)[:, None], 0
    )


def test_forward_is_output_of_states(model: TransformerClassifier, ids: Tensor) -> None:
    logits, states = model(ids), model.states(ids)
    assert logits.shape == (len(LENGTHS), LABELS)
    assert states.shape == (len(LENGTHS), model.projection.in_features)
    assert torch.equal(model.output(states), logits)
    assert logits.isfinite().all()
    assert logits.std() > 0.1


@pytest.mark.parametrize(
    ("kind", "width"),
    [("encoder", D), ("first", D), ("both", 2 * D), ("n-grams", D), ("tokens", D)],
)
def test_the_width_is_that_of_its_parts(kind: str, width: int) -> None:
    assert build(kind).projection.in_features == width
    assert (build(kind).encoder is None) == (kind in ("n-grams", "tokens"))
    assert (build(kind).bag is None) == (kind in ("encoder", "first"))


def test_more_padding_changes_nothing(
    model: TransformerClassifier, ids: Tensor
) -> None:
    wider = nn.functional.pad(ids, (0, 5))
    torch.testing.assert_close(model(wider), model(ids), **CLOSE)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(
            model(ids[row : row + 1, :length]), model(ids)[row : row + 1], **CLOSE
        )


def test_content_of_padding_is_never_looked_at(
    model: TransformerClassifier, ids: Tensor
) -> None:
    before = model(ids)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                module.weight[0] = torch.linspace(-3, 5, D)
    torch.testing.assert_close(model(ids), before, **CLOSE)


def test_every_token_counts(model: TransformerClassifier, ids: Tensor) -> None:
    before = model(ids)
    for row, length in enumerate(LENGTHS):
        for place in range(length):
            changed = ids.clone()
            changed[row, place] = changed[row, place] % (VOCAB - 1) + 1
            difference = (model(changed) - before).abs().amax(-1)
            assert difference[row] > 1e-4
            assert difference[[r for r in range(len(LENGTHS)) if r != row]].max() < 1e-5


def test_permuted_batch_permutes_the_output(
    model: TransformerClassifier, ids: Tensor
) -> None:
    order, logits = torch.tensor([2, 0, 3, 1]), model(ids)
    torch.testing.assert_close(model(ids[order]), logits[order], **CLOSE)
    assert (logits[order] - logits).abs().amax(1).min() > 1e-2


def test_a_text_of_padding_alone(model: TransformerClassifier, ids: Tensor) -> None:
    """Finite logits and gradients, and the other rows as they were."""
    expected = model(ids)
    empty = ids.clone()
    empty[1] = 0
    logits = model(empty)
    torch.testing.assert_close(logits[[0, 2, 3]], expected[[0, 2, 3]], **CLOSE)
    assert logits.isfinite().all()
    logits.square().mean().backward()
    assert all(
        p.grad is not None and p.grad.isfinite().all()
        for p in model.parameters()
        if p.requires_grad
    )
    assert model(torch.zeros(2, 3, dtype=torch.long)).isfinite().all()


def test_every_parameter_learns(model: TransformerClassifier, ids: Tensor) -> None:
    """Each gets a gradient; the bias of keys alone does not, as a constant added to all scores
    cancels out.
    """
    model(ids).logsumexp(-1).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name
        assert (
            name.endswith("_weights")
            or name.endswith("key.bias")
            or parameter.grad.abs().max() > 1e-6
        ), name


@pytest.mark.parametrize("kind", ["both", "n-grams"])
def test_hashed_rows_learn_from_the_first_step_though_they_start_at_zero(
    kind: str, ids: Tensor
) -> None:
    torch.manual_seed(32)
    model = classifier(**KINDS[kind])
    table = model.bag.hashed.weight
    assert (table == 0).all()
    model(ids).logsumexp(-1).sum().backward()
    hashes, valid = ngram_hashes(ids, 2, BUCKETS)
    assert (table.grad[hashes[valid]].abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("kind", WITH_LAYERS)
def test_recorded_path_equals_fast_path(kind: str, ids: Tensor) -> None:
    model, record = deepcopy(build(kind)), AttentionRecord()
    parameters = [p for p in model.parameters() if p.requires_grad]
    fast, slow = model(ids), model(ids, record)
    with torch.no_grad():
        torch.testing.assert_close(model(ids), fast, **CLOSE)
    torch.testing.assert_close(slow, fast, **CLOSE)
    of_fast = torch.autograd.grad(fast.square().sum(), parameters)
    of_slow = torch.autograd.grad(slow.square().sum(), parameters)
    for a, b in zip(of_slow, of_fast, strict=True):
        torch.testing.assert_close(a, b, **CLOSE)
    shape = (len(LENGTHS), H, max(LENGTHS), max(LENGTHS))
    assert [w.shape for w in record.encoder] == [shape] * len(model.encoder.layers)
    assert (record.decoder, record.cross) == ([], [])


def test_masked_mean_by_hand() -> None:
    x = torch.tensor([[[1.0, 2.0], [5.0, 4.0], [9.0, 9.0]], [[1.0, 1.0]] * 3])
    chosen = torch.tensor([[True, True, False], [False] * 3])
    assert masked_mean(x, chosen).tolist() == [[3.0, 3.0], [0.0, 0.0]]


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_pooling_by_hand(pooling: str, ids: Tensor) -> None:
    """The states of one layer, pooled row by row."""
    torch.manual_seed(33)
    model = classifier(num_encoder_layers=1, pooling=pooling)
    encoder = model.encoder
    for row, length in enumerate(LENGTHS):
        states = encoder.norm(
            encoder.layers[0](encoder.embedding(ids[row : row + 1, :length]))
        )[0]
        expected = states.mean(0) if pooling == "mean" else states[0]
        torch.testing.assert_close(model.states(ids)[row], expected, **CLOSE)


def copy_layer(ours: nn.Module, theirs: nn.TransformerEncoderLayer) -> None:
    """Theirs stacks the projections of queries, keys and values into one matrix."""
    assert isinstance(ours, EncoderLayer)
    heads = ours.self_attention
    assert isinstance(heads, MultiHeadAttention)
    inputs = (heads.query, heads.key, heads.value)
    theirs.self_attn.load_state_dict(
        {
            "in_proj_weight": torch.cat([m.weight for m in inputs]),
            "in_proj_bias": torch.cat([m.bias for m in inputs]),
            "out_proj.weight": heads.output.weight,
            "out_proj.bias": heads.output.bias,
        }
    )
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for residual, norm in zip(
        ours.residuals, (theirs.norm1, theirs.norm2), strict=True
    ):
        norm.load_state_dict(residual.norm.state_dict())


@pytest.mark.parametrize("kind", ["encoder", "post-norm"])
def test_the_same_as_torchs_encoder_and_a_mean(kind: str, ids: Tensor) -> None:
    model, post = deepcopy(build(kind)).double(), kind == "post-norm"
    layer = nn.TransformerEncoderLayer(
        D,
        H,
        F,
        0.0,
        "gelu" if post else "relu",
        batch_first=True,
        norm_first=not post,
        dtype=torch.float64,
    )
    norm = None if post else nn.LayerNorm(D, dtype=torch.float64)
    theirs = nn.TransformerEncoder(
        layer, len(model.encoder.layers), norm, enable_nested_tensor=False
    )
    for mine, other in zip(model.encoder.layers, theirs.layers, strict=True):
        copy_layer(mine, other)
    if norm is not None:
        norm.load_state_dict(model.encoder.norm.state_dict())
    states = theirs(model.encoder.embedding(ids), src_key_padding_mask=ids == 0)
    means = torch.stack(
        [row[:length].mean(0) for row, length in zip(states, LENGTHS, strict=True)]
    )
    torch.testing.assert_close(
        model(ids), model.projection(means), rtol=1e-9, atol=1e-9
    )


def test_a_bag_of_tokens_is_torchs_embedding_bag(ids: Tensor) -> None:
    model = build("tokens")
    theirs = nn.EmbeddingBag.from_pretrained(
        model.bag.tokens.weight.detach(), mode="mean", padding_idx=0
    )
    torch.testing.assert_close(model(ids), model.projection(theirs(ids)), **CLOSE)
    backwards = torch.stack([row[:n].flip(0) for row, n in [(ids[0], max(LENGTHS))]])
    torch.testing.assert_close(model(backwards), model(ids[:1]), **CLOSE)


def test_the_bag_by_hand(ids: Tensor) -> None:
    """The mean over single tokens and the hashes of all longer n-grams together."""
    model = build("n-grams")
    tokens, rows = model.bag.tokens.weight, model.bag.hashed.weight
    for row, length in enumerate(LENGTHS):
        text = ids[row, :length].tolist()
        vectors = [tokens[token] for token in text]
        for n in (2, 3, 4):
            vectors += [
                rows[h]
                for h in ngram_hashes(ids[row : row + 1, :length], n, BUCKETS)[0][0]
            ]
        torch.testing.assert_close(
            model.states(ids)[row], torch.stack(vectors).mean(0), **CLOSE
        )


@pytest.mark.parametrize("kind", WEIGHTED)
def test_the_weighted_bag_by_hand(kind: str, ids: Tensor) -> None:
    bag = build(kind).bag
    for row, length in enumerate(LENGTHS):
        text = ids[row, :length]
        vectors, weights = [bag.tokens.weight[text]], [bag.token_weights[text]]
        for n in range(2, KINDS[kind].get("ngrams", 1) + 1):
            hashes = ngram_hashes(text[None], n, BUCKETS)[0][0]
            vectors.append(bag.hashed.weight[hashes])
            weights.append(bag.hashed_weights[hashes])
        each = torch.cat(weights)[:, None]
        expected = (torch.cat(vectors) * each).sum(0) / each.sum()
        torch.testing.assert_close(bag(ids)[row], expected, **CLOSE)


def test_rows_that_all_weigh_the_same_are_a_plain_mean(ids: Tensor) -> None:
    plain, weighted = (
        build("n-grams").bag,
        classifier(**KINDS["n-grams"], ngram_weights="log-count-ratio").bag,
    )
    weighted.load_state_dict(
        {
            **plain.state_dict(),
            "token_weights": torch.full((VOCAB,), 3.0),
            "hashed_weights": torch.full((BUCKETS,), 3.0),
        }
    )
    torch.testing.assert_close(weighted(ids), plain(ids), **CLOSE)


def test_only_the_rows_in_the_batch_have_a_gradient(ids: Tensor) -> None:
    model = deepcopy(build("both"))
    model(ids).square().sum().backward()
    gradient = model.bag.hashed.weight.grad
    hashes, valid = ngram_hashes(ids, 2, BUCKETS)
    assert set(gradient.abs().amax(1).nonzero().flatten().tolist()) == set(
        hashes[valid].tolist()
    )


@pytest.mark.parametrize(
    "kind", ["dropout", "attention_dropout", "activation_dropout", "head_dropout"]
)
def test_dropout_acts_in_training_alone(ids: Tensor, kind: str) -> None:
    torch.manual_seed(34)
    model = classifier(**{kind: 0.5})
    assert not torch.equal(model(ids), model(ids))
    assert torch.equal(model.states(ids), model.states(ids)) == (kind == "head_dropout")
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_max_len_limits_the_encoder_alone() -> None:
    too_long = torch.ones(1, MAX_LEN + 2, dtype=torch.long)
    with pytest.raises(
        ValueError, match=r"15 positions needed, but model.max_len is 13"
    ):
        build("encoder")(too_long)
    assert build("n-grams")(too_long).isfinite().all()


def test_init_range_draws_embeddings_and_output_evenly() -> None:
    torch.manual_seed(35)
    model = classifier(401, 31, num_encoder_layers=1, ngrams=2, init_range=0.5)
    for weight in (
        model.encoder.embedding.tokens.weight,
        model.bag.tokens.weight,
        model.projection.weight,
    ):
        assert 0.49 < weight.abs().max().item() <= 0.5
        assert weight.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.05)
    assert (model.projection.bias == 0).all()
    assert (model.bag.hashed.weight == 0).all()


def test_state_is_every_parameter_and_nothing_else(
    model: TransformerClassifier,
) -> None:
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}


def test_no_memory_is_taken_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = classifier(num_encoder_layers=1, ngrams=2, ngram_buckets=2**24)
    assert all(p.is_meta for p in model.parameters())


ORDERS: dict[str, dict[str, object]] = {
    "positions": {"num_encoder_layers": 1},
    "n-grams": {"num_encoder_layers": 0, "ngrams": 2, "ngram_buckets": 10_007},
    "tokens": {"num_encoder_layers": 0},
}


def share_right(kind: str, steps: int) -> float:
    """Texts of 3 to 9 tokens that hold "1 2" or "2 1" somewhere: which is it? Learned, then asked
    of new ones.
    """
    torch.manual_seed(37)
    model = classifier(num_labels=2, **ORDERS[kind])
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    ids, labels = ordered_texts(48 * steps)
    for batch, right in zip(ids.split(48), labels.split(48), strict=True):
        loss = nn.functional.cross_entropy(model(batch), right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, labels = ordered_texts(500, seed=38)
    return (model.eval()(ids).argmax(-1) == labels).float().mean().item()


def ordered_texts(count: int, seed: int = 36) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (count,), generator=generator)
    lengths = torch.randint(3, 10, (count, 1), generator=generator)
    places = (torch.rand(count, 1, generator=generator) * (lengths - 1)).long()
    ids = torch.randint(3, VOCAB, (count, 9), generator=generator)
    ids = ids.masked_fill(torch.arange(9)[None] >= lengths, 0)
    first = torch.where(labels == 0, 1, 2)[:, None]
    return ids.scatter(1, places, first).scatter(1, places + 1, 3 - first), labels


@pytest.mark.parametrize(("kind", "steps"), [("positions", 160), ("n-grams", 60)])
def test_learns_the_order_of_two_tokens(kind: str, steps: int) -> None:
    assert share_right(kind, steps) > 0.95


def test_a_bag_of_tokens_cannot_learn_an_order() -> None:
    assert share_right("tokens", 60) < 0.6
