"""Texts that are written together, compared with the same texts alone: on the engine, in NumPy and
in PyTorch, whatever stands beside them and whenever they begin and leave.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.config import CausalSection, SamplingSection, SideSection
from weft.data.tokenizer import PAD_ID, Tokenizer, train_tokenizer
from weft.engine import bindings
from weft.engine.from_model import build_writer, causal_weights_of
from weft.engine.plain_models import PlainWriter
from weft.engine.torch_steps import TorchWriter
from weft.engine.writer import Reading, Writer
from weft.errors import DivergedError, UsageError
from weft.kernels import native
from weft.model.causal import CausalTransformer
from weft.predict import writing as under_way
from weft.predict.generation import Generation, GenerationSettings
from weft.predict.language_model import LanguageModel
from weft.predict.writing import Order, Text, Writing, tops_of, write_all

LINES = [
    "The cat sat on the mat.",
    "A dog sees the cat and the bird.",
    "the END of it, says the fish: 1, 2, 3!",
]
WINDOW = 24
PROMPTS = (
    "",
    "The",
    "A dog sees",
    "the cat and the bird. The cat sat on the mat, says the fish.",
    "猫",
)


@cache
def tokenizer() -> Tokenizer:
    return train_tokenizer(LINES * 5, SideSection(kind="bpe", vocab_size=330))


@cache
def model_of(computed_by: str, ngrams: int = 1, packed: bool = False) -> LanguageModel:
    """A model of random weights, strong enough to have opinions."""
    torch.manual_seed(7)
    shape = CausalSection(
        d_model=22,
        d_ff=34,
        num_heads=2,
        num_decoder_layers=2,
        max_len=WINDOW,
        dropout=0.0,
        norm_first=True,
        head_dim=12,
        positions="rotary" if ngrams > 1 else "sinusoidal",
        ngrams=ngrams,
        ngram_buckets=97,
        match_lengths=(1, 2) if ngrams > 1 else (),
    )
    model = CausalTransformer(shape, tokenizer().vocab_size, PAD_ID).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.4)
    return LanguageModel(
        causal_model(model, computed_by),
        tokenizer(),
        decoding=SamplingSection(max_new_tokens=9),
        packed=packed,
        window_len=WINDOW,
    )


def causal_model(model: CausalTransformer, computed_by: str) -> Any:
    if computed_by == "torch":
        return TorchWriter(model)
    if computed_by == "numpy":
        return PlainWriter(causal_weights_of(model))
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")
    return build_writer(model, "cpu", computed_by)


MODELS = (
    ("float32", 1, False),
    ("float32", 3, True),
    ("int8", 1, True),
    ("numpy", 3, False),
    ("torch", 1, False),
)
each_model = pytest.mark.parametrize("which", MODELS, ids=str)

BIASES = st.dictionaries(st.integers(4, 300), st.sampled_from([-9.0, 6.0]), max_size=3)
SETTINGS = st.fixed_dictionaries(
    {
        "max_new_tokens": st.sampled_from([1, 2, 7, 40]),
        "temperature": st.sampled_from([0, 0.5, 1.3]),
        "seed": st.integers(0, 3),
    },
    optional={
        "top_k": st.sampled_from([1, 5, 400]),
        "top_p": st.sampled_from([0.3, 0.9]),
        "min_p": st.just(0.05),
        "repetition_penalty": st.sampled_from([1.3, 0.8]),
        "stop": st.sampled_from(["e", ["th", "a"], ["says the"]]),
        "logit_bias": BIASES,
        "presence_penalty": st.sampled_from([1.0, -1.0]),
        "frequency_penalty": st.sampled_from([0.5, -0.2]),
    },
)
COMERS = st.lists(
    st.tuples(
        st.integers(0, 12),  # the step before which it may begin
        st.sampled_from(PROMPTS),
        SETTINGS,
        st.sampled_from([None, None, 1, 3]),  # after so many steps it leaves
        st.sampled_from([0, 0, 2]),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


def written_beside(
    model: LanguageModel, comers: Sequence[tuple[Any, ...]], places: int
) -> list[Text]:
    """Write what comes, each when it comes and a place is free; some leave."""
    writing = Writing(model, places)
    waiting = sorted(comers, key=lambda comer: comer[0])
    texts = []
    leaving: dict[int, list[Text]] = {}
    step = 0
    while waiting or writing.texts:
        while waiting and waiting[0][0] <= step and writing.free:
            _, prompt, settings, leaves, top, scored = waiting.pop(0)
            ids = model.start(prompt)
            order = Order(ids, GenerationSettings(**settings), top=top, scored=scored)
            texts.append(writing.begin(order))
            if leaves is not None:
                leaving.setdefault(step + leaves, []).append(texts[-1])
        # every third step some stand still
        turn = writing.texts[step % 2 :] if step % 3 == 2 else None
        went_on = writing.step(turn)
        assert turn is None or set(went_on) <= set(turn)
        step += 1
        for text in leaving.pop(step, []):
            if text in writing.texts:
                writing.drop(text)
    assert writing.free == places
    return texts


@each_model
@tried(deadline=None, max_examples=8)
@given(comers=COMERS, places=st.integers(1, 5), most=st.sampled_from([3, 256]))
def test_a_text_is_what_it_is_alone(
    which: tuple[str, int, bool], comers: list[Any], places: int, most: int
) -> None:
    model = model_of(*which)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(under_way, "_MOST_AT_ONCE", most)
        texts = written_beside(model, comers, places)
    assert len(texts) == len(comers)
    for text in texts:
        prompt = [*text.order.ids]
        alone = model.generate(tokenizer().decode(prompt[1:]), text.order.settings)
        log_probs = [token.log_prob for token in text.tokens]
        if text.outcome is None:
            assert log_probs == alone.token_log_probs[: len(log_probs)]
            assert text.written.certain() == alone.text[: len(text.written.certain())]
        else:
            assert text.outcome == alone
            assert log_probs == alone.token_log_probs
        if text.prompt and text.tokens:
            assert_scored(model, text)


def assert_scored(model: LanguageModel, text: Text) -> None:
    prompt = [*text.order.ids]
    (score,) = model.score([tokenizer().decode(prompt[1:])])
    end = -1 if model.packed else None
    assert [token.id for token in text.prompt] == prompt[1:]
    expected = score.token_log_probs[:end]
    assert [token.log_prob for token in text.prompt] == expected
    for token in text.prompt:
        best = dict(token.top)
        assert len(best) == text.order.top
        assert best.get(token.id, token.log_prob) == token.log_prob


@pytest.mark.parametrize("computed_by", ["float32", "numpy"])
def test_a_prompt_is_scored_alone_too(computed_by: str) -> None:
    model = model_of(computed_by, 3)
    writing = Writing(model, 4)
    long = PROMPTS[3] * 3
    orders = [
        Order(model.start(long), scored=True, writes=False, top=top) for top in (0, 3)
    ]
    texts = [writing.begin(order) for order in orders]
    nothing = writing.begin(Order(model.start(""), writes=False))
    assert isinstance(nothing.outcome, Generation)
    assert nothing.outcome.text == ""
    while writing.texts:
        writing.step()
    for text in texts:
        assert text.tokens == []
        assert isinstance(text.outcome, Generation)
        assert text.outcome.prompt_cut
        assert_scored(model, text)


def test_the_top_are_the_most_probable_and_their_probabilities_the_models_own() -> None:
    model = model_of("float32")
    writing = Writing(model, 1)
    settings = GenerationSettings(temperature=0, max_new_tokens=5)
    text = writing.begin(Order(model.start("The"), settings, top=400))
    while writing.texts:
        writing.step()
    for token in text.tokens:
        log_probs = [log_prob for _, log_prob in token.top]
        assert len(token.top) == tokenizer().vocab_size
        assert log_probs == sorted(log_probs, reverse=True)
        assert math.fsum(map(math.exp, log_probs)) == pytest.approx(1)
        assert dict(token.top)[token.id] == token.log_prob
    tied = np.array([[1.0, 3.0, 2.0, 3.0]], np.float32)
    ((best, second, third),) = tops_of(tied, 3)
    assert (best[0], second[0], third[0]) == (1, 3, 2)
    assert best[1] == second[1]


def test_samples_of_one_prompt_differ_and_the_first_is_the_text_alone() -> None:
    model = model_of("float32")
    writing = Writing(model, 4)
    settings = GenerationSettings(temperature=1.5, max_new_tokens=12, seed=5)
    ids = model.start("The")
    texts = [writing.begin(Order(ids, settings, sample)) for sample in range(4)]
    while writing.texts:
        writing.step()
    assert texts[0].outcome == model.generate("The", settings)
    assert len({text.written.text for text in texts}) == 4


@pytest.mark.parametrize("computed_by", ["float32", "numpy"])
def test_prompts_of_a_list_become_what_each_becomes_alone(computed_by: str) -> None:
    model = model_of(computed_by)
    prompts = [*PROMPTS * 8, "The end"]
    found = list(write_all(model, prompts, max_new_tokens=5, seed=3))
    alone = [model.generate(prompt, max_new_tokens=5, seed=3) for prompt in prompts]
    assert found == alone
    assert list(write_all(model, [])) == []
    with pytest.raises(UsageError, match="min_p"):
        list(write_all(model, ["a"], min_p=2.0))


def test_offsets_and_pieces_are_those_of_the_text() -> None:
    model = model_of("float32")
    writing = Writing(model, 3)
    texts = []
    for seed in range(3):
        settings = GenerationSettings(
            temperature=3.0, max_new_tokens=40, seed=seed, stop="e"
        )
        texts.append(writing.begin(Order(model.start("猫"), settings)))
    pieces: dict[int, str] = {}
    while writing.texts:
        for text in writing.step():
            pieces[text.slot] = pieces.get(text.slot, "") + text.piece()
    for text in texts:
        assert isinstance(text.outcome, Generation)
        assert pieces[text.slot] == text.outcome.text
        assert text.piece() == ""
        offsets = [token.offset for token in text.tokens]
        assert offsets == sorted(offsets)
        ids = [token.id for token in text.tokens]
        for place, offset in enumerate(offsets):
            spelled = tokenizer().spell(ids[:place], begins=False)
            known = spelled.decode("utf-8", "replace")
            assert known.rstrip("\ufffd") == known[:offset].rstrip("\ufffd")


class Poisoned:
    """The room of an engine, in which one text's logits are not numbers from some step on."""

    reads_in_parts = True

    def __init__(self, inner: Any, slot: int, after: int) -> None:
        self.inner, self.slot, self.after = inner, slot, after

    def read(self, readings: Sequence[Reading]) -> list[NDArray[np.float32]]:
        found = [logits.copy() for logits in self.inner.read(readings)]
        self.after -= 1
        for reading, logits in zip(readings, found, strict=True):
            if reading.slot == self.slot and self.after < 0:
                logits[:, 5] = math.nan
        return found

    def leave(self, slot: int) -> None:
        self.inner.leave(slot)


@pytest.mark.parametrize("after", [0, 3])
def test_a_text_without_numbers_ends_alone(after: int) -> None:
    model = model_of("float32")
    writing = Writing(model, 3)
    settings = GenerationSettings(max_new_tokens=8, temperature=1.1)
    texts = [writing.begin(Order(model.start("The"), settings, i)) for i in range(3)]
    scored = Order(model.start("A dog sees"), scored=True, writes=False)
    writing.room = Poisoned(writing.room, texts[1].slot, after)
    while writing.texts:
        writing.step()
    assert isinstance(texts[1].outcome, DivergedError)
    assert len(texts[1].tokens) == after
    assert texts[0].outcome == model.generate("The", settings)
    assert isinstance(texts[2].outcome, Generation)
    last = writing.begin(scored)
    writing.room = Poisoned(writing.room, last.slot, 0)
    writing.step()
    assert isinstance(last.outcome, DivergedError)
    assert "scoring" in str(last.outcome)
    assert writing.free == 3


class Narrow:
    """A room without memory for a long reading, or for more than so many rows."""

    reads_in_parts = True

    def __init__(self, inner: Any, most: int) -> None:
        self.inner, self.most, self.refused = inner, most, 0

    def read(self, readings: Sequence[Reading]) -> list[NDArray[np.float32]]:
        if sum(map(len, readings)) > self.most:
            self.refused += 1
            raise MemoryError
        found: list[NDArray[np.float32]] = self.inner.read(readings)
        return found

    def leave(self, slot: int) -> None:
        self.inner.leave(slot)


def test_where_memory_is_short_only_what_does_not_fit_ends() -> None:
    model = model_of("float32", 3)
    writing = Writing(model, 3)
    room = Narrow(writing.room, 6)
    writing.room = room
    settings = GenerationSettings(max_new_tokens=8, temperature=1.1)
    prompts = ["The", "the cat and the bird. The", "A dog"]
    texts = [writing.begin(Order(model.start(prompt), settings)) for prompt in prompts]
    while writing.texts:
        writing.step()
    assert room.refused >= 2
    assert isinstance(texts[1].outcome, MemoryError)
    for place in (0, 2):
        assert texts[place].outcome == model.generate(prompts[place], settings)


def test_impossible_settings_take_no_place() -> None:
    model = model_of("float32")
    writing = Writing(model, 1)
    ids = model.start("The")
    for values in (
        {"max_new_tokens": 0},
        {"top_k": 0},
        {"stop": ["a", ""]},
        {"seed": -1},
        {"logit_bias": {4000: 1.0}},
        {"logit_bias": {5: math.nan}},
    ):
        with pytest.raises(UsageError):
            writing.begin(Order(ids, GenerationSettings(**values)))
    assert writing.free == 1


def test_ids_may_begin_with_the_start_symbol_and_must_be_known() -> None:
    for packed in (False, True):
        model = model_of("float32", 3, packed)
        ids = tokenizer().encode("The cat")
        assert model.start("The cat") == model.start(ids) == [model.start_id, *ids]
        assert model.start([model.start_id, *ids]) == model.start(ids)
        assert model.start([]) == model.start("") == [model.start_id]
        for wrong in (-1, tokenizer().vocab_size):
            with pytest.raises(UsageError, match="an id of the prompt"):
                model.start([5, wrong])


def test_the_engine_reads_texts_of_any_lengths_in_one_step() -> None:
    model = model_of("float32", 3)
    assert isinstance(model.model, Writer)
    writing = Writing(model, 5)
    counts = []
    read = writing.room.read

    def counted(readings: Sequence[Reading]) -> Any:
        counts.append(len(readings))
        return read(readings)

    writing.room.read = counted  # type: ignore[method-assign]
    settings = GenerationSettings(max_new_tokens=4, temperature=0)
    for prompt in PROMPTS:
        writing.begin(Order(model.start(prompt), settings))
    while writing.texts:
        writing.step()
    assert counts[0] == 5
    assert len(counts) <= 4
