"""The engine computes what the model computes, in every kind of product, and each row for
itself.
"""

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pushed import of_which
from weft.config import Seq2SeqSection
from weft.decoding.decoder import StepInput
from weft.decoding.reference import beam_search
from weft.decoding.search import continuous_search, search_all
from weft.decoding.sentences import BeamSettings, Sentence, Waiting
from weft.engine import bindings
from weft.engine.bindings import Engine
from weft.engine.from_model import build_engine, weights_of
from weft.engine.packed import SOURCE, Heads, quantized, to_bfloat16
from weft.engine.torch_steps import TorchCache, numpy_step, steps_of
from weft.engine.weights import Linear
from weft.kernels import levels, native
from weft.model.attention import MultiHeadAttention
from weft.model.cache import KeysValues
from weft.model.layers import DecoderLayer
from weft.model.transformer import Seq2SeqTransformer

V_SRC, V_TGT, BOS, EOS = 53, 131, 1, 2
POST = {"norm_first": False}
UNTIED, LEARNED = {"tie_embeddings": False}, {"positions": "learned"}
SHAPES: list[dict[str, Any]] = [
    {"d_model": 64, "d_ff": 96, "num_heads": 8},
    {"d_model": 26, "d_ff": 17, "num_heads": 3, "head_dim": 13, **POST, **LEARNED, "activation": "gelu",
     "embedding_norm": True},
    {"d_model": 30, "d_ff": 41, "num_heads": 5, "activation": "relu2", "bias": False, "projection_bias": True,
     "positions": "rotary"},
    {"d_model": 48, "d_ff": 50, "num_heads": 20, "head_dim": 4, **POST, **UNTIED, "positions": "rotary"},
    {"d_model": 34, "d_ff": 33, "num_heads": 1, "activation": "gelu", "scale_embeddings": False,
     "projection_bias": False},
    {"d_model": 32, "d_ff": 24, "num_heads": 4, "num_key_value_heads": 2, "norm": "rms", "activation": "swiglu",
     "query_key_norm": True, "sandwich_norm": True, "bias": False, "positions": "rotary"},
    {"d_model": 36, "d_ff": 20, "num_heads": 3, "num_key_value_heads": 1, "head_dim": 6, "activation": "geglu",
     "query_key_norm": True, **POST},
    {"d_model": 40, "d_ff": 33, "num_heads": 20, "num_key_value_heads": 5, "head_dim": 4, "sandwich_norm": True,
     "norm": "rms", "positions": "rotary", "tie_embeddings": False, "embedding_norm": True},
]  # fmt: skip
SOURCES = [
    [5, 7, 9, EOS],
    [3, EOS],
    [11, 12, 13, 14, 15, 16, 17, EOS],
    [8] * 20 + [EOS],
]
TARGET = [BOS, 4, 6, 8, 100, 20, 4]

Shake = Callable[[nn.Module], Any]


pytestmark = pytest.mark.usefixtures("need_engine")


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape['num_heads']} heads")
def model(request: pytest.FixtureRequest, shake: Shake) -> Seq2SeqTransformer:
    torch.manual_seed(3)
    shape = Seq2SeqSection(
        **request.param,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_len=40,
        dropout=0.0,
    )
    built: Seq2SeqTransformer = shake(
        Seq2SeqTransformer(shape, V_SRC, V_TGT, joint=False)
    )
    return built.eval()


def log_probs_of(
    model: Seq2SeqTransformer, sources: list[list[int]], target: list[int]
) -> np.ndarray:
    width = max(map(len, sources))
    src = torch.tensor([row + [0] * (width - len(row)) for row in sources])
    with torch.inference_mode():
        return model(src, torch.tensor([target] * len(sources))).log_softmax(-1).numpy()


def decoded(engine: Engine, sources: list[list[int]], target: list[int]) -> np.ndarray:
    """Log-probabilities after each token, all sentences side by side; tokens stand in another place
    each time.
    """
    count, places = len(sources), 3
    session = engine.session(count + 2, places)
    slots = np.arange(count)[::-1] + 1
    session.read(slots.tolist(), sources)
    ancestors, found = np.zeros((count, len(target)), np.int32), []
    for time, token in enumerate(target):
        here = np.full(count, time % places)
        rows = StepInput(
            slots,
            here,
            np.full(count, time),
            np.full(count, token, np.int32),
            ancestors,
        )
        best, ids, whole = session.step(rows, 5, all_log_probs=True)
        assert whole is not None
        assert np.array_equal(
            best, np.take_along_axis(whole, ids.astype(np.int64), 1), equal_nan=True
        )
        assert np.array_equal(best, -np.sort(-whole, 1)[:, :5], equal_nan=True)
        ancestors[:, time] = here
        found.append(whole)
    return np.stack(found, 1)


def test_in_float32_it_gives_the_models_log_probabilities(
    model: Seq2SeqTransformer,
) -> None:
    found = decoded(Engine(weights_of(model)), SOURCES, TARGET)
    np.testing.assert_allclose(
        found, log_probs_of(model, SOURCES, TARGET), atol=2e-5, rtol=1e-5
    )


def rounded(
    model: Seq2SeqTransformer, change: Callable[[Tensor], Tensor]
) -> Seq2SeqTransformer:
    """The model with the matrices of its products changed, those of its embeddings not."""
    tokens = {
        id(model.src_embedding.tokens.weight),
        id(model.tgt_embedding.tokens.weight),
    }
    # no longer tied
    model.projection.weight = nn.Parameter(model.projection.weight.detach().clone())
    with torch.no_grad():
        for parameter in model.parameters():
            if (
                parameter.dim() == 2
                and id(parameter) not in tokens
                and parameter.shape[0] != model.max_len
            ):
                parameter.copy_(change(parameter))
    return model


def test_in_bfloat16_weights_are_rounded_and_inputs_too(
    model: Seq2SeqTransformer,
) -> None:
    found = decoded(Engine(weights_of(model), "bfloat16"), SOURCES, TARGET)
    exact = log_probs_of(model, SOURCES, TARGET)
    near = log_probs_of(
        rounded(model, lambda weight: weight.bfloat16().float()), SOURCES, TARGET
    )
    assert 0 < np.abs(found - near).max() < 0.02 * np.abs(exact).max()
    assert np.abs(found - exact).max() < 0.03 * np.abs(exact).max()


def test_in_int8_weights_are_rounded_by_rows_and_inputs_too(
    model: Seq2SeqTransformer,
) -> None:
    """Against products of the very integers, in PyTorch.

    A number that lies between two integers may be rounded up here and down there, which changes
    all that follows in its text. So most texts agree, and the others by far less than int8 costs.
    """
    engine = Engine(weights_of(model), "int8")
    texts = unlike_texts()
    found = [decoded(engine, [source], target) for source, target in texts]
    exact = [log_probs_of(model, [source], target) for source, target in texts]
    quantize_linears(model)
    round_what_is_kept(model)
    near = [log_probs_of(model, [source], target) for source, target in texts]
    error = np.abs(np.stack(found) - near)
    cost = np.abs(np.stack(exact) - near)
    assert np.median(error) < 0.01 * np.median(cost), "int8 of the engine is another"
    assert error.mean() < 0.5 * cost.mean(), "int8 of the engine is another in some"


def unlike_texts() -> list[tuple[list[int], list[int]]]:
    """Sources and targets; no two have the same token at a position, so that none shares a rounding
    with another.
    """
    texts = []
    for first in range(3, 15):
        source = [*range(first, 2 * first), EOS]
        target = [first + 20 * number for number in range(6)]
        texts.append((source, target))
    return texts


def quantize_linears(model: nn.Module) -> None:
    """Let every linear map round its weights and its inputs to int8, and multiply these."""

    def forward(self: nn.Linear, x: Tensor) -> Tensor:
        parts = quantized(self.weight.detach().numpy())
        weights, scales = map(torch.from_numpy, parts)
        ours = x.abs().amax(-1, keepdim=True) / 127
        whole = (x / ours.clamp(min=1e-30)).round()
        product = whole.double() @ weights.double().T  # exact
        return (product * ours.double() * scales.double()).float() + (
            0 if self.bias is None else self.bias
        )

    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = forward.__get__(module)  # type: ignore[method-assign]


def round_what_is_kept(model: Seq2SeqTransformer) -> None:
    """Let a decoder's keys and values be rounded to bfloat16, as the engine keeps them."""

    def rounded(keys_values: KeysValues) -> KeysValues:
        key, value = keys_values.key, keys_values.value
        return KeysValues(key.bfloat16().float(), value.bfloat16().float())

    def rounds(attention: MultiHeadAttention) -> None:
        project, project_memory = attention.queries_keys_values, attention.keys_values

        def queries_keys_values(
            x: Tensor, past: KeysValues | None = None
        ) -> tuple[Tensor, KeysValues]:
            query, keys_values = project(x, past)
            return query, rounded(keys_values)

        attention.queries_keys_values = queries_keys_values  # type: ignore[method-assign]
        attention.keys_values = lambda memory: rounded(project_memory(memory))  # type: ignore[method-assign]

    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        rounds(layer.self_attention)
        rounds(layer.cross_attention)


def test_a_row_is_the_same_bit_for_bit_whatever_stands_beside_it(
    model: Seq2SeqTransformer, subtests: pytest.Subtests
) -> None:
    for kind in bindings.KINDS:
        with subtests.test(kind=kind):
            engine = Engine(weights_of(model), kind)
            together = decoded(engine, SOURCES * 5, TARGET)  # more rows than one tile
            for i, source in enumerate(SOURCES):
                alone = decoded(engine, [source], TARGET)
                for copy in range(i, len(together), len(SOURCES)):
                    assert np.array_equal(together[copy], alone[0])


def test_several_positions_at_once_are_the_same_as_one_by_one(
    model: Seq2SeqTransformer, subtests: pytest.Subtests
) -> None:
    count = len(TARGET)
    zeros, tokens = np.zeros(count, np.int64), np.array(TARGET, np.int32)
    ancestors = np.zeros((count, count), np.int32)
    rows = StepInput(zeros, zeros, np.arange(count), tokens, ancestors)
    wanted = np.array([count - 1, 0, 2])
    for kind in bindings.KINDS:
        with subtests.test(kind=kind):
            engine = Engine(weights_of(model), kind)
            expected = decoded(engine, SOURCES, TARGET)
            session = engine.session(1, 1)
            for i, source in enumerate(SOURCES):
                session.read([0], [source])
                _, _, whole = session.step(rows, 1, wanted=wanted, all_log_probs=True)
                assert whole is not None
                assert np.array_equal(whole, expected[i][wanted])


def test_banned_ids_are_not_among_the_best_and_keep_their_probability(
    model: Seq2SeqTransformer,
) -> None:
    session = Engine(weights_of(model)).session(2, 1)
    session.read([0, 1], SOURCES[:2])
    zeros, begun = np.zeros(2, np.int64), np.full(2, BOS, np.int32)
    rows = np.arange(2), zeros, zeros, begun, np.zeros((2, 1), np.int32)
    _, ids, whole = session.step(StepInput(*rows), 4, all_log_probs=True)
    bans = np.array([ids[0, 0], ids[0, 2], ids[1, 1]], np.int32)
    _, others, same = session.step(
        StepInput(*rows, bans, np.array([2, 3])), 2, all_log_probs=True
    )
    assert others.tolist() == [[ids[0, 1], ids[0, 3]], [ids[1, 0], ids[1, 2]]]
    assert np.array_equal(whole, same)


def test_of_equal_logits_the_lower_id_stands_first(model: Seq2SeqTransformer) -> None:
    with torch.no_grad():
        model.projection.weight = nn.Parameter(
            torch.zeros_like(model.projection.weight)
        )
        if model.projection.bias is not None:
            model.projection.bias.zero_()
    session = Engine(weights_of(model)).session(1, 1)
    session.read([0], SOURCES[:1])
    zero = np.zeros(1, np.int64)
    best, ids, _ = session.step(
        StepInput(zero, zero, zero, zero.astype(np.int32), np.zeros((1, 1), np.int32)),
        200,
    )
    assert ids[0, :V_TGT].tolist() == list(range(V_TGT))
    assert np.isneginf(best[0, V_TGT:]).all()


def test_what_is_no_number_stays_none(
    model: Seq2SeqTransformer, subtests: pytest.Subtests
) -> None:
    with torch.no_grad():
        model.tgt_embedding.tokens.weight[BOS, 3] = float("nan")
    for kind in bindings.KINDS:
        with subtests.test(kind=kind):
            engine = Engine(weights_of(model), kind)
            assert np.isnan(decoded(engine, SOURCES[:1], [BOS])).all()


@pytest.mark.parametrize(
    ("beam_size", "n_best", "alpha"),
    of_which([(1, 1, 0.0), (5, 3, 1.0), (4, 4, 0.6)], (5, 3, 1.0)),
)
def test_both_searches_find_the_same(
    model: Seq2SeqTransformer, beam_size: int, n_best: int, alpha: float
) -> None:
    generator = torch.Generator().manual_seed(4)
    lens = torch.randint(1, 20, (17,), generator=generator).tolist()
    sources = [
        [*torch.randint(3, V_SRC, (n,), generator=generator).tolist(), EOS]
        for n in lens
    ]
    limits = [n // 2 + 3 for n in lens]
    banned = (0, BOS, 3)
    sentences = [
        Sentence(i, row, limit)
        for i, (row, limit) in enumerate(zip(sources, limits, strict=True))
    ]
    beams = BeamSettings(BOS, EOS, beam_size, alpha, n_best, banned)
    found = search_all(
        build_engine(model, "cpu", "float32"),
        sentences,
        beams,
        workers=2,
        batch_tokens=80,
    )  # type: ignore[arg-type]
    width = max(map(len, sources))
    src = torch.tensor([row + [0] * (width - len(row)) for row in sources])

    def step(newest: Tensor, cache: Any) -> tuple[Tensor, Any]:
        states, cache = model.decode(newest[:, None], cache)
        return model.output(states[:, -1]), cache

    with torch.inference_mode():
        expected = beam_search(
            numpy_step(step), TorchCache(model.prefill(src), "cpu"), bos_id=BOS, eos_id=EOS, max_lens=limits,
            beam_size=beam_size, length_penalty=alpha, n_best=n_best, banned_ids=banned,
        )  # fmt: skip
    for i, hypotheses in enumerate(expected):
        assert [h.ids for h in found[i]] == [h.ids for h in hypotheses]
        assert [h.finished for h in found[i]] == [h.finished for h in hypotheses]
        assert [h.score for h in found[i]] == pytest.approx(
            [h.score for h in hypotheses], abs=1e-3
        )


ALLOWED = [[4, 6, 8, 20, 99, 100, 130], [], [2], list(range(0, 131, 3))]


@pytest.mark.parametrize("kind", bindings.KINDS)
def test_a_sentence_with_a_shortlist_has_no_other_ids(
    model: Seq2SeqTransformer, kind: str
) -> None:
    """Their probabilities are the whole vocabulary's, made to add up to 1; other sentences stay as
    they are.
    """
    engine, count = Engine(weights_of(model), kind), len(SOURCES)
    plain, short = engine.session(count, 2), engine.session(count, 2)
    plain.read(range(count), SOURCES)
    short.read(range(count), SOURCES, ALLOWED)
    slots, places = np.repeat(np.arange(count), 2), np.tile([0, 1], count)
    tokens, ancestors = (
        np.array([4, BOS] * count, np.int32),
        np.zeros((2 * count, 1), np.int32),
    )
    banned, ends = np.full(2 * count, 8, np.int32), np.arange(1, 2 * count + 1)
    rows = slots, places, 0 * slots, tokens, ancestors
    _, _, everything = plain.step(StepInput(*rows), 0, all_log_probs=True)
    best, ids, found = short.step(StepInput(*rows, banned, ends), 9, all_log_probs=True)
    assert everything is not None
    assert found is not None
    for row, slot in enumerate(slots):
        own = ALLOWED[slot] or list(range(V_TGT))
        expected = np.full(V_TGT, -np.inf, np.float32)
        expected[own] = torch.from_numpy(everything[row, own]).log_softmax(0).numpy()
        np.testing.assert_allclose(found[row], expected, atol=1e-5)
        ranked = sorted((i for i in own if i != 8), key=lambda i: -found[row, i])[:9]
        assert ids[row, : len(ranked)].tolist() == ranked
        assert np.array_equal(best[row, : len(ranked)], found[row, ranked])
        assert np.isneginf(best[row, len(ranked) :]).all()
    assert np.array_equal(found[2:4], everything[2:4])
    short.read([0], SOURCES[:1])  # a slot's next sentence does not inherit the list
    _, _, again = short.step(
        StepInput(*(part[:2] for part in rows)), 0, all_log_probs=True
    )
    assert np.array_equal(again, everything[:2])


def test_a_shortlist_too_leaves_each_row_to_itself(
    model: Seq2SeqTransformer, subtests: pytest.Subtests
) -> None:
    draw = np.random.default_rng(3)
    sentences = [
        Sentence(
            i,
            SOURCES[i % 4],
            11,
            (),
            sorted({EOS, *draw.integers(0, V_TGT, 37).tolist()}),
        )
        for i in range(23)
    ]
    beams = BeamSettings(BOS, EOS, 3, 1.0, 2)
    for kind in bindings.KINDS:
        with subtests.test(kind=kind):
            engine = Engine(weights_of(model), kind)
            found = search_all(engine, sentences, beams, workers=2, batch_tokens=60)
            for sentence in sentences:
                hypotheses = found[sentence.number]
                alone = search_all(engine, [sentence], beams)[sentence.number]
                assert hypotheses == alone
                ids = {i for h in hypotheses for i in h.ids}
                assert ids <= set(sentence.allowed)


@pytest.fixture
def choosy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine as GCC from 13 on compiles it for some CPUs: it joins products and sums where it
    may in some copies of a loop and not in others.
    """
    flags = (*levels.FLAGS, "--param=avoid-fma-max-bits=512")
    monkeypatch.setattr(levels, "FLAGS", flags)
    monkeypatch.setenv("WEFT_KERNELS", "native")
    loaded = (native.library, bindings.library)
    for function in loaded:
        function.cache_clear()
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"not compiled here: {error}")
    yield
    for function in loaded:
        function.cache_clear()


@pytest.mark.long
def test_rows_stay_apart_however_a_compiler_joins_products_and_sums(
    choosy: None, model: Seq2SeqTransformer, subtests: pytest.Subtests
) -> None:
    test_a_shortlist_too_leaves_each_row_to_itself(model, subtests)


def test_models_own_steps_take_a_shortlist_too(model: Seq2SeqTransformer) -> None:
    sentences = [
        Sentence(i, row, 9, (), allowed)
        for i, (row, allowed) in enumerate(zip(SOURCES, ALLOWED, strict=True))
    ]

    beams = BeamSettings(BOS, EOS, 3, 1.0, 2)
    with torch.inference_mode():
        found = dict(
            continuous_search(
                steps_of(model).session(4, 3),
                Waiting(sentences),
                beams,
                1000,
            )
        )
    expected = search_all(Engine(weights_of(model)), sentences, beams)
    for number, hypotheses in expected.items():
        assert [h.ids for h in found[number]] == [h.ids for h in hypotheses]
        assert [h.score for h in found[number]] == pytest.approx(
            [h.score for h in hypotheses], abs=1e-3
        )


@pytest.mark.parametrize(
    ("lanes", "steps", "groups"), [(16, 8, 2), (8, 4, 3), (4, 4, 5)]
)
def test_heads_are_laid_out_dimension_after_dimension(
    lanes: int, steps: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In registers of so many numbers."""
    monkeypatch.setattr("weft.engine.packed._lanes", lambda: lanes)
    rows = np.arange(6 * 3, dtype=np.float32).reshape(
        6, 3
    )  # two heads of three dimensions
    heads = Heads(2, 3)
    assert (heads.groups, heads.lanes, heads.steps) == (1, 2, steps)
    assert heads.laid_out(rows)[:6].tolist() == rows[[0, 3, 1, 4, 2, 5]].tolist()
    assert not heads.laid_out(rows)[6:].any()
    many = Heads(20, 4)
    assert (many.groups, many.lanes, many.steps) == (groups, lanes, 4)
    rng = np.random.default_rng(0)
    linear = Linear(rng.standard_normal((5, 80), np.float32), None)
    x = rng.standard_normal(80, np.float32)
    np.testing.assert_allclose(
        many.out_of(linear).weight @ many.laid_out(x), linear.weight @ x, rtol=1e-5
    )


def test_bfloat16_is_rounded_as_pytorch_does() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 100_000, np.uint32)  # of any numbers
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    numbers = np.concatenate([bits.view(np.float32), special])
    expected = torch.from_numpy(numbers).bfloat16()
    found = to_bfloat16(numbers).view(np.int16)
    is_number = ~expected.isnan()
    assert torch.equal(
        torch.from_numpy(found)[is_number], expected.view(torch.int16)[is_number]
    )
    again = torch.from_numpy(found).view(torch.bfloat16)
    assert torch.equal(again.isnan(), expected.isnan())


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Callable[[str], ctypes.CDLL]]:
    """The engine compiled for a lesser processor, which this one must be able to be."""
    compiler = shutil.which("c++")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("needs a compiler for x86-64")

    def build(processor: str) -> ctypes.CDLL:
        made, source = tmp_path / f"{processor}.so", SOURCE
        flags = [*levels.FLAGS, "-shared", f"-march={processor}", "-O1"]
        flags += ["-Wno-psabi", "-I", str(levels.SHARED.parent)]
        subprocess.run([compiler, *flags, str(source), "-o", str(made)], check=True)
        return ctypes.CDLL(str(made))

    yield build
    bindings.library.cache_clear()


@pytest.mark.parametrize(
    "processor",
    [
        pytest.param("x86-64", marks=pytest.mark.long),
        pytest.param("x86-64-v3", marks=pytest.mark.long),
        pytest.param("x86-64-v4", marks=pytest.mark.long),
    ],
)
def test_lesser_processors_compute_the_same(
    processor: str,
    others: Callable[[str], ctypes.CDLL],
    monkeypatch: pytest.MonkeyPatch,
    shake: Shake,
) -> None:
    torch.manual_seed(3)
    shape = Seq2SeqSection(
        **SHAPES[0], num_encoder_layers=2, num_decoder_layers=2, max_len=40, dropout=0.0
    )
    model = shake(Seq2SeqTransformer(shape, V_SRC, V_TGT, joint=False)).eval()
    here = {
        kind: decoded(Engine(weights_of(model), kind), SOURCES, TARGET)
        for kind in bindings.KINDS
    }
    needs = {"x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}.get(processor, "sse2")
    if f" {needs} " not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip(f"this processor has no {needs}")
    library = others(processor)
    monkeypatch.setattr(native, "library", lambda name: library)
    bindings.library.cache_clear()
    for kind, expected in here.items():
        found = decoded(Engine(weights_of(model), kind), SOURCES, TARGET)
        # a last bit may round to another integer
        close = {"float32": 2e-5, "bfloat16": 0.02, "int8": 0.05}[kind]
        assert np.abs(found - expected).max() < close * np.abs(expected).max()


def test_without_a_compiler_there_is_no_engine(
    monkeypatch: pytest.MonkeyPatch, model: Seq2SeqTransformer
) -> None:
    def refuse(name: str) -> ctypes.CDLL:
        raise native.UnavailableError("there is no C++ compiler; install one")

    monkeypatch.setattr(native, "library", refuse)
    bindings.library.cache_clear()
    try:
        assert build_engine(model, "cpu", "float32") is None
    finally:
        bindings.library.cache_clear()
    assert build_engine(model, "cuda", "float32") is None
    assert build_engine(model, "cpu", "float16") is None
