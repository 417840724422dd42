"""A language model of fakes whose next token is plain to see, and of a small real one with random
weights.
"""

import codecs
import hashlib
import json
import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache as memo
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import RepetitionPenaltyLogitsProcessor

from pushed import of_which
from weft.config import CausalSection, SamplingSection, SideSection
from weft.data.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    train_tokenizer,
)
from weft.decoding.draws import Draws
from weft.decoding.sampling import Sampling, filtered_log_probs
from weft.engine import bindings
from weft.engine.from_model import build_writer, causal_weights_of
from weft.engine.plain_models import PlainWriter
from weft.engine.torch_steps import TorchWriter
from weft.errors import DivergedError, UsageError
from weft.kernels import native
from weft.model.causal import CausalTransformer
from weft.predict.language_model import (
    Generation,
    GenerationSettings,
    LanguageModel,
)

LINES = [
    "The cat sat on the mat.",
    "A dog sees the cat and the bird.",
    "the END of it, says the fish: 1, 2, 3!",
]
# the last without a leading space
KINDS = ("character", "byte", "bpe", "unigram", "word", "bpe bare")
each_kind = pytest.mark.parametrize("kind", KINDS)
either_packing = pytest.mark.parametrize(
    "packed", [True, False], ids=["packed", "stream"]
)


@memo
def tokenizer_of(kind: str) -> Tokenizer:
    kind, _, bare = kind.partition(" ")
    side = {"kind": kind, "vocab_size": 330, "leading_space": not bare}
    return train_tokenizer(LINES * 5, SideSection.model_validate(side))


@dataclass(frozen=True)
class Seen:
    """A cache: all ids that each row has been fed."""

    rows: list[tuple[int, ...]]

    def until(self, length: int) -> "Seen":
        return Seen([row[:length] for row in self.rows])


class FakeModel:
    """Says what comes next by `next_logits(ids so far)`. It has `max_len` positions."""

    def __init__(self, vocab_size: int, max_len: int = 1000) -> None:
        self.vocab_size, self.max_len = vocab_size, max_len
        self.beginnings: list[tuple[int, ...]] = []  # what each cache began with
        self.longest = 0

    def prefill(self, ids: NDArray[np.int64]) -> Seen:
        self._look(ids)
        self.beginnings += [tuple(row) for row in ids.tolist()]
        return Seen([tuple(row) for row in ids.tolist()])

    def decode(
        self, ids: NDArray[np.int64], cache: Seen
    ) -> tuple[NDArray[np.float32], Seen]:
        longer = [
            (*seen, *row) for seen, row in zip(cache.rows, ids.tolist(), strict=True)
        ]
        self._look(np.array(longer))
        width = ids.shape[1]
        logits = [
            [
                self.next_logits(row[: len(row) - width + place])
                for place in range(1, width + 1)
            ]
            for row in longer
        ]
        return np.array(logits, np.float32), Seen(longer)

    def next_logits(self, seen: tuple[int, ...]) -> NDArray[Any]:
        raise NotImplementedError

    def _look(self, ids: NDArray[np.int64]) -> None:
        assert ids.dtype == np.int64
        length = ids.shape[1]
        assert length <= self.max_len
        self.longest = max(self.longest, length)


class Scripted(FakeModel):
    """Says these ids one after the other, then the end, whatever it is fed."""

    def __init__(self, vocab_size: int, script: Sequence[int], **values: Any) -> None:
        super().__init__(vocab_size, **values)
        self.script = iter([*script, *[EOS_ID] * 99])

    def next_logits(self, seen):
        logits = np.zeros(self.vocab_size)
        logits[next(self.script)] = 50.0
        return logits


class Whim(FakeModel):
    """Random, but always the same after the same ids."""

    def next_logits(self, seen):
        seed = int.from_bytes(hashlib.sha256(repr(seen).encode()).digest()[:4])
        return 3 * np.random.default_rng(seed).standard_normal(self.vocab_size)


def whim(
    kind: str = "character",
    *,
    window_len: int = 20,
    packed: bool = False,
    **decoding: Any,
) -> LanguageModel:
    """It fails where a position beyond the window is fed."""
    tokenizer = tokenizer_of(kind)
    model = Whim(tokenizer.vocab_size, max_len=window_len)
    return language_model(model, kind, window_len=window_len, packed=packed, **decoding)


def scripted(
    script: str | Sequence[int], kind: str = "character", *, window_len: int = 1000
) -> LanguageModel:
    """A model that says a text, or ids, and then ends."""
    tokenizer = tokenizer_of(kind)
    ids = tokenizer.encode(script) if isinstance(script, str) else script
    model = Scripted(tokenizer.vocab_size, ids, max_len=window_len)
    return language_model(
        model, kind, window_len=window_len, packed=False, max_new_tokens=500
    )


def language_model(
    model: Any, kind: str, *, window_len: int, packed: bool, **decoding: Any
) -> LanguageModel:
    return LanguageModel(
        model,
        tokenizer_of(kind),
        decoding=SamplingSection(**decoding),
        packed=packed,
        window_len=window_len,
    )


@memo
def real(
    kind: str = "character",
    window_len: int = 30,
    packed: bool = False,
    ngrams: int = 1,
    positions: str = "sinusoidal",
) -> LanguageModel:
    """Random weights, strong enough to have opinions, in double precision.

    That of characters says neither its end nor single bytes: its text is read again as it was
    written.
    """
    torch.manual_seed(7)
    shape = CausalSection(
        d_model=22,
        d_ff=34,
        num_heads=2,
        num_decoder_layers=2,
        max_len=max(2, window_len),
        dropout=0.2,
        norm_first=True,
        head_dim=12,
        positions=positions,
        ngrams=ngrams,
        ngram_buckets=97,
        match_lengths=(1, 2) if ngrams > 3 else (),
    )
    model = (
        CausalTransformer(shape, tokenizer_of(kind).vocab_size, PAD_ID).double().eval()
    )
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.4)
        if kind == "character":
            model.projection.bias[EOS_ID:260] -= 30
    return language_model(
        TorchWriter(model), kind, window_len=window_len, packed=packed
    )


def module_of(model: LanguageModel) -> CausalTransformer:
    """The PyTorch model behind one of `real`."""
    assert isinstance(model.model, TorchWriter)
    return model.model.model


# Writing on
# --------------------------------------------------------------------------------------

OPTIONS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1.7},
    {"top_k": 5},
    {"top_p": 0.7},
    {"min_p": 0.1},
    {"repetition_penalty": 1.5},
    {
        "temperature": 2.5,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.01,
        "repetition_penalty": 1.2,
    },
    {"stop": ["e", "th", "a"]},
    {"stop": "o"},
    {"max_new_tokens": 1},
    {"temperature": 100.0, "max_new_tokens": 50, "seed": 4},
]
PROMPTS = ("", "a prompt longer than the window of it, 猫")


@pytest.mark.parametrize("kind", ["character", "bpe"])
def test_the_pieces_of_a_stream_are_the_text(
    kind: str, subtests: pytest.Subtests
) -> None:
    model = whim(kind)
    for options, prompt, seed in product(OPTIONS, PROMPTS, range(2)):
        asked = {"max_new_tokens": 24, "seed": seed, **options}
        with subtests.test(prompt=prompt, **asked):
            pieces = list(model.stream(prompt, **asked))
            found = model.generate(prompt, **asked)
            assert "".join(pieces) == found.text
            assert all(pieces)
            assert 1 <= len(found.token_log_probs) <= asked["max_new_tokens"]
            assert all(log_prob < 0 for log_prob in found.token_log_probs)


def test_greedy_takes_the_likeliest_and_its_log_probs_are_the_models_own() -> None:
    for prompt in ("", "The cat"):
        model = real()
        ids = [EOS_ID, *model.tokenizer.encode(prompt)]
        written, log_probs = [], []
        for _ in range(15):
            with torch.inference_mode():
                log_p = (
                    module_of(model)(torch.tensor([[*ids, *written]]))[0, -1]
                    .float()
                    .log_softmax(-1)
                )
            allowed = log_p.clone()
            allowed[[PAD_ID, UNK_ID, BOS_ID]] = -math.inf
            written.append(int(allowed.argmax()))
            log_probs.append(float(log_p[written[-1]]))
        assert EOS_ID not in written
        found = model.generate(prompt, temperature=0, max_new_tokens=15)
        assert found.text == model.tokenizer.decode(written)
        assert found.token_log_probs == pytest.approx(log_probs, abs=1e-5)
        assert (
            model.generate(prompt, top_k=1, max_new_tokens=15, seed=9).text
            == found.text
        )
        assert model.generate(prompt, temperature=0, max_new_tokens=15, seed=9) == found


def test_the_same_seed_writes_the_same_and_another_something_else() -> None:
    model = whim()
    texts = [
        model.generate("The", seed=seed, max_new_tokens=15).text
        for seed in (1, 2, 3, 1, 2**63 - 1, 0)
    ]
    assert texts[0] == texts[3]
    assert len(set(texts)) == 5
    assert model.generate("The", max_new_tokens=15).text == texts[0]


def test_what_is_not_given_comes_from_the_recipe() -> None:
    model = whim(max_new_tokens=7, temperature=0.0)
    found = model.generate("The")
    assert len(found.token_log_probs) == 7
    assert found == model.generate("The", temperature=0, max_new_tokens=7, seed=5)
    drawn = whim(
        max_new_tokens=7,
        temperature=3.0,
        top_k=50,
        top_p=0.9,
        min_p=0.001,
        repetition_penalty=1.3,
    )
    same = {
        "temperature": 3.0,
        "top_k": 50,
        "top_p": 0.9,
        "min_p": 0.001,
        "repetition_penalty": 1.3,
    }
    assert drawn.generate("The") == model.generate("The", max_new_tokens=7, **same)
    assert drawn.generate("The", top_k=1) == model.generate(
        "The", max_new_tokens=7, **same | {"top_k": 1}
    )
    settings = GenerationSettings(max_new_tokens=7, **same)
    assert model.generate("The", settings) == drawn.generate("The")
    assert "".join(model.stream("The", settings, top_k=1)) == (
        drawn.generate("The", top_k=1).text
    )


def test_a_repetition_penalty_keeps_from_saying_the_same() -> None:
    class Stubborn(FakeModel):
        def next_logits(self, seen):
            logits = np.linspace(2.0, 1.0, self.vocab_size)
            logits[EOS_ID] = 1.7
            return logits

    model = language_model(
        Stubborn(tokenizer_of("byte").vocab_size), "byte", window_len=99, packed=True
    )
    first, second = (model.tokenizer.decode([i]) for i in (4, 5))
    assert model.generate(temperature=0, max_new_tokens=2).text == first + first
    assert (
        model.generate(temperature=0, max_new_tokens=2, repetition_penalty=9.0).text
        == first + second
    )
    assert (
        model.generate(
            first, temperature=0, max_new_tokens=1, repetition_penalty=9.0
        ).text
        == second
    )


def with_engine(plain: LanguageModel, kind: str = "character") -> LanguageModel:
    """The same model in float32, writing with the engine of this processor."""
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")
    model = deepcopy(module_of(plain)).float()
    writer = build_writer(model, "cpu", "float32")
    assert writer is not None
    other = language_model(
        writer, kind, window_len=plain.window_len, packed=plain.packed
    )
    assert other.engine is writer.engine
    return other


def penalised(model: LanguageModel, ids: list[int], penalty: float) -> Tensor:
    """Logits of the next token as the transformers library penalises them; special ones banned."""
    given = torch.tensor([ids])
    with torch.inference_mode():
        logits = module_of(model)(given)[:, -1].float()
    logits = RepetitionPenaltyLogitsProcessor(penalty)(given, logits)
    return logits[0].index_fill(0, torch.tensor([PAD_ID, UNK_ID, BOS_ID]), -math.inf)


@pytest.mark.parametrize("penalty", [1.3, 2.0, 0.7])
@pytest.mark.parametrize("engine", [False, True], ids=["plain", "engine"])
def test_a_repetition_penalty_is_that_of_transformers(
    engine: bool, penalty: float
) -> None:
    """Greedily, drawn, and with a draft; it depends on the logits' sign, so log-probabilities would
    not do.
    """
    plain = real(window_len=40)
    model = with_engine(plain) if engine else plain
    prompt = "The cat sat on the"
    start = ids = [model.start_id, *model.tokenizer.encode(prompt)]
    for _ in range(12):
        ids = [*ids, int(penalised(plain, ids, penalty).argmax())]
    asked = {"max_new_tokens": 12, "temperature": 0, "repetition_penalty": penalty}
    assert (
        model.generate(prompt, **asked).text
        == plain.tokenizer.decode(ids)[len(prompt) :]
    )
    assert (
        model.generate(prompt, **asked, draft="prompt").text
        == plain.tokenizer.decode(ids)[len(prompt) :]
    )
    bounds = penalised(plain, start, penalty).double().softmax(-1).cumsum(0)
    cache = model.model.prefill(np.array([start[:-1]]))
    logits, _ = model.model.decode(np.array([start[-1:]]), cache)
    settled = Sampling(repetition_penalty=penalty)
    banned = (PAD_ID, UNK_ID, BOS_ID)
    history = np.array([start])
    found = filtered_log_probs(logits[:, -1], settled, history, banned)[0]
    np.testing.assert_allclose(np.exp(found).cumsum(), bounds.numpy(), atol=1e-5)
    for seed in range(20):
        number = Draws(seed, start).at(0)
        drawn = model.generate(
            prompt,
            max_new_tokens=1,
            temperature=1.0,
            repetition_penalty=penalty,
            seed=seed,
        )
        expected = int((bounds > number).int().argmax())
        assert (
            drawn.text == plain.tokenizer.decode([*start[1:], expected])[len(prompt) :]
        )


@either_packing
def test_no_special_token_is_ever_said_but_the_end(packed: bool) -> None:
    class Specials(FakeModel):
        def next_logits(self, seen):
            logits = np.zeros(self.vocab_size)
            logits[[PAD_ID, UNK_ID, BOS_ID]] = 60.0
            logits[7] = 1.0
            return logits

    size = tokenizer_of("byte").vocab_size
    model = language_model(Specials(size), "byte", window_len=9, packed=packed)
    found = model.generate(temperature=0, max_new_tokens=3)
    assert found.text == model.tokenizer.decode([7, 7, 7])
    # the model's own, banned ones counted
    assert all(log_prob < -50 for log_prob in found.token_log_probs)


# With a draft
# --------------------------------------------------------------------------------------


def without_counts(found: Generation) -> Generation:
    return replace(found, proposed=0, accepted=0)


@pytest.mark.parametrize(("kind", "window_len"), [("character", 3), ("bpe", 20)])
def test_a_draft_changes_nothing_but_the_steps(
    kind: str, window_len: int, subtests: pytest.Subtests
) -> None:
    model = whim(kind, window_len=window_len)
    for options, prompt in product(OPTIONS, PROMPTS):
        asked = {"max_new_tokens": 24, **options}
        with subtests.test(prompt=prompt, **asked):
            expected = model.generate(prompt, **asked)
            assert (expected.proposed, expected.accepted) == (0, 0)
            found = model.generate(prompt, **asked, draft="prompt")
            assert without_counts(found) == expected
            assert 0 <= found.accepted <= found.proposed
            pieces = model.stream(prompt, **asked, draft="prompt")
            assert "".join(pieces) == expected.text
            assert model.model.longest <= window_len


def test_the_counts_say_what_a_draft_was_worth() -> None:
    class Echo(FakeModel):
        """Says what it said nine ids ago."""

        def next_logits(self, seen):
            logits = np.zeros(self.vocab_size)
            logits[seen[-9:][0]] = 50.0
            return logits

    echo = language_model(
        Echo(tokenizer_of("byte").vocab_size), "byte", window_len=99, packed=False
    )
    again = echo.generate(
        "the cat, the", temperature=0, max_new_tokens=20, draft="prompt"
    )
    assert again.text == " cat, the cat, the c"
    # 1 and one, 3 and one, 7 and one, 5 and one
    assert (again.proposed, again.accepted) == (16, 16)


@pytest.mark.parametrize(("ngrams", "positions"), [(1, "sinusoidal"), (4, "rotary")])
def test_a_real_model_writes_the_same_with_a_draft(
    ngrams: int, positions: str, subtests: pytest.Subtests
) -> None:
    """Its log-probabilities differ in rounding: products of several positions are not those of
    one.
    """
    model = real(ngrams=ngrams, positions=positions)
    prompt = "The cat sat on the mat. The cat"
    for options in (OPTIONS[i] for i in (0, 1, 6, 7)):
        asked = {"max_new_tokens": 40, **options}
        expected = model.generate(prompt, **asked)
        with subtests.test(**asked):
            found = model.generate(prompt, **asked, draft="prompt")
            assert (found.text, found.finish) == (expected.text, expected.finish)
            log_probs = pytest.approx(expected.token_log_probs, abs=1e-5)
            assert found.token_log_probs == log_probs


def test_another_draft_is_refused_at_the_call() -> None:
    model = whim("bpe")
    for call in (model.generate, model.stream):
        with pytest.raises(
            UsageError, match="draft = 'source': it must be \"prompt\""
        ) as caught:
            call("The", draft="source")
        assert "\n" not in str(caught.value)
    assert model.model.beginnings == []


# How it ends
# --------------------------------------------------------------------------------------


def test_why_it_ended() -> None:
    assert scripted("the cat").generate().finish == "end"
    assert scripted("the cat").generate(max_new_tokens=7).finish == "length"
    assert scripted("the cat").generate(max_new_tokens=8).finish == "end"
    assert scripted("the cat").generate(stop=["ca"]).finish == "stop"


def test_the_end_has_a_probability_and_no_text() -> None:
    found = scripted("the cat").generate("A dog. ")
    assert (found.text, len(found.token_log_probs)) == ("the cat", 8)
    at_once = scripted("").generate("A dog.")
    assert (at_once.text, at_once.finish, len(at_once.token_log_probs)) == (
        "",
        "end",
        1,
    )
    assert list(scripted("").stream("A dog.")) == []


STOPPED: list[tuple[str | list[str], str, str]] = [
    (["END"], "the ", "stop"),
    ("END", "the ", "stop"),
    (["of it"], "the END ", "stop"),
    (["t"], "", "stop"),
    (["it", "END", "fish"], "the ", "stop"),
    (["ENDED", "of itself"], "the END of it", "end"),
    (["e EN", "END"], "th", "stop"),
    (["it"], "the END of ", "stop"),
    (["says"], "the END of it", "end"),
]


@each_kind
def test_a_stop_string_ends_the_text_before_it(
    kind: str, subtests: pytest.Subtests
) -> None:
    """Whether it is a token, begins and ends inside tokens, or goes over several of them."""
    for stop, text, finish in STOPPED:
        with subtests.test(stop=stop):
            found = scripted("the END of it", kind).generate(stop=stop)
            assert (found.text, found.finish) == (text, finish)
            assert "".join(scripted("the END of it", kind).stream(stop=stop)) == text


def test_tokens_and_stop_strings_do_begin_and_end_in_different_places() -> None:
    """What the test above takes for granted."""
    tokenizer = tokenizer_of("bpe")
    pieces = [
        tokenizer.spell([i], begins=False) for i in tokenizer.encode("the END of it")
    ]
    assert b" the" in pieces
    assert len(pieces) < 10
    assert len(tokenizer_of("byte").encode("the END of it")) == 13


def test_a_stop_string_counts_only_in_what_is_new() -> None:
    found = scripted("the cat").generate("END of EN")
    assert found.finish == "end"
    assert scripted("D the cat").generate("END of EN", stop=["END"]).text == "D the cat"


def test_what_may_become_a_stop_string_waits_until_it_cannot() -> None:
    pieces = list(scripted("aENbENDc").stream(stop=["END", "bEx"]))
    assert pieces == ["a", "EN", "b"]
    assert list(scripted("aEN").stream(stop=["END"])) == ["a", "EN"]
    assert list(scripted("aEN").stream(stop=["END"], max_new_tokens=2)) == ["a", "E"]


def test_tokens_of_the_stop_string_are_counted_among_the_log_probs() -> None:
    assert len(scripted("the END of it").generate(stop=["END"]).token_log_probs) == 7


# The window
# --------------------------------------------------------------------------------------


def test_a_text_that_outgrows_the_window_goes_on_with_half_of_it() -> None:
    text = "abcdefghijklmnopqrstuvwxyz"
    model = scripted(text, window_len=8)
    found = model.generate("The", temperature=0)
    assert (found.text, found.finish, found.prompt_cut) == (text, "end", False)
    ids = [EOS_ID, *model.tokenizer.encode("The" + text)]
    # With 4 ids in sight 5 more are written, until 8 are fed; the last of the 4 is fed with the
    # first step.
    ends = [4, *range(9, len(ids), 5)]
    assert model.model.beginnings == [
        tuple(ids[max(0, end - 4) : end - 1]) for end in ends
    ]
    assert model.model.longest == 8


@pytest.mark.parametrize("window_len", [1, 2, 3, 5, 8, 200])
def test_no_position_beyond_the_window_is_fed_and_all_of_it_is_used(
    window_len: int, subtests: pytest.Subtests
) -> None:
    """The fake refuses more positions than it has."""
    text = "a dog sees the cat and the bird. " * 3
    for prompt in ("", "T", "The cat sat on the mat."):
        with subtests.test(prompt=prompt):
            model = scripted(text, window_len=window_len)
            found = model.generate(prompt)
            assert (found.text, found.finish) == (text, "end")
            fed = 1 + len(prompt) + len(text)
            assert model.model.longest == min(window_len, fed)
            assert "".join(scripted(text, window_len=window_len).stream(prompt)) == text
            cut = scripted(text, window_len=window_len)
            shorter = cut.generate(prompt, max_new_tokens=50)
            assert len(shorter.token_log_probs) == 50


def test_a_prompt_longer_than_the_window_is_cut_and_said_so() -> None:
    model = scripted("x", window_len=8)
    found = model.generate("The cat sat")
    assert found.prompt_cut
    assert model.model.beginnings == [tuple(model.tokenizer.encode(" sat")[:-1])]
    assert [model.fits(prompt) for prompt in ("", "The cat", "The cat ")] == [
        True,
        True,
        False,
    ]
    assert not scripted("x", window_len=8).generate("The cat").prompt_cut
    assert scripted("x", window_len=8).generate("The cat ").prompt_cut


@either_packing
def test_what_a_window_begins_with(packed: bool) -> None:
    model = whim(packed=packed)
    model.generate("The", max_new_tokens=1)
    model.generate("", max_new_tokens=1)
    start = BOS_ID if packed else EOS_ID
    assert model.model.beginnings == [(start, *model.tokenizer.encode("The")[:-1]), ()]


@pytest.mark.parametrize(
    ("ngrams", "positions"),
    [(1, "sinusoidal"), (1, "rotary"), (4, "rotary"), (3, "learned")],
)
@pytest.mark.parametrize("window_len", of_which([1, 8, 9], 1, 9))
def test_a_real_model_with_a_cache_says_what_it_would_without(
    window_len: int, ngrams: int, positions: str
) -> None:
    """Each token has the log-probability that a forward pass over what is in sight gives it."""
    model = real(window_len=window_len, ngrams=ngrams, positions=positions)
    for prompt in ("", "The cat", "The cat sat on the mat."):
        found = model.generate(prompt, temperature=4.0, max_new_tokens=25)
        written, seen, expected = (
            model.tokenizer.encode(found.text),
            [EOS_ID, *model.tokenizer.encode(prompt)],
            [],
        )
        for token in written:
            seen = seen if len(seen) <= window_len else seen[-max(1, window_len // 2) :]
            with torch.inference_mode():
                expected.append(
                    float(
                        module_of(model)(torch.tensor([seen]))[0, -1].log_softmax(-1)[
                            token
                        ]
                    )
                )
            seen = [*seen, token]
        assert len(set(written)) > 5
        assert found.token_log_probs == pytest.approx(expected, abs=1e-5)


# Spaces and characters
# --------------------------------------------------------------------------------------

WRITTEN = [
    "The cat sat",
    "The cat",
    " a dog",
    "  two",
    "\nline",
    "é 猫好。",
    "👩‍👩‍👧",
    "1, 2!",
    "x",
    "",
]


@each_kind
def test_prompt_and_text_are_what_all_ids_stand_for(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    prompts = ["", "The", "The cat ", " ", "猫", "é", "line\n", "\ufffd"]
    wrong = []
    for prompt, text in product(prompts, WRITTEN):
        ids = tokenizer.encode(text)
        generated = prompt + scripted(ids, kind).generate(prompt).text
        if generated != tokenizer.decode([*tokenizer.encode(prompt), *ids]):
            wrong.append((prompt, text, generated))
    assert wrong == []


@each_kind
@settings(max_examples=30, deadline=None)
@given(prompt=st.text(max_size=9), text=st.text(max_size=9))
def test_so_are_they_of_any_text(kind: str, prompt: str, text: str) -> None:
    tokenizer = tokenizer_of(kind)
    ids = tokenizer.encode(text)
    found = scripted(ids, kind).generate(prompt)
    assert tokenizer.normalize(prompt) + found.text == tokenizer.decode(
        [*tokenizer.encode(prompt), *ids]
    )
    assert "".join(scripted(ids, kind).stream(prompt)) == found.text


@each_kind
def test_ids_are_spelled_as_they_are_decoded(
    kind: str, subtests: pytest.Subtests
) -> None:
    tokenizer = tokenizer_of(kind)
    space = "" if kind in ("character", "byte", "bpe bare") else " "
    for text in WRITTEN:
        with subtests.test(text=text):
            ids = tokenizer.encode(text)
            spelled = tokenizer.spell([BOS_ID, *ids, EOS_ID]).decode()
            assert spelled == tokenizer.decode(ids) == text
            one_by_one = b"".join(tokenizer.spell([i], begins=False) for i in ids)
            assert one_by_one == tokenizer.spell(ids, begins=False)
            assert one_by_one.decode().removeprefix(space) == text


@each_kind
def test_words_that_go_on_keep_their_space_and_the_first_of_a_text_has_none(
    kind: str,
) -> None:
    tokenizer = tokenizer_of(kind)
    ids, begun = tokenizer.encode("The cat sat"), tokenizer.encode("The cat")
    assert ids[: len(begun)] == begun
    assert scripted(ids[len(begun) :], kind).generate("The cat").text == " sat"
    assert scripted(ids, kind).generate("").text == "The cat sat"


@each_kind
def test_a_character_of_several_tokens_is_shown_when_it_is_whole(kind: str) -> None:
    text = "日本語 👍é"
    pieces = list(scripted(text, kind).stream("The "))
    assert "".join(pieces).strip() == text
    assert not any("\ufffd" in piece for piece in pieces)
    assert len(tokenizer_of(kind).encode(text)) > 15


BROKEN = {
    b"\xe8\xaa": "\ufffd",
    b"a\xf0\x9f\x91": "a\ufffd",
    b"\xe8a": "\ufffda",
    b"\xc3\xa9\xe8x": "é\ufffdx",
    b"\xc3\xa9\xffx": "é\ufffdx",
    b"\xe7\x8c\xab\xe7": "猫\ufffd",
    "a\ufffdb".encode(): "a\ufffdb",
    "a\ufffd".encode(): "a\ufffd",
}


@pytest.mark.parametrize("kind", ["character", "byte", "bpe"])
def test_broken_bytes_become_a_replacement_character_and_spoil_nothing_beside_them(
    kind: str, subtests: pytest.Subtests
) -> None:
    tokenizer = tokenizer_of(kind)
    id_of = {
        tokenizer.spell([i], begins=False): i
        for i in reversed(range(4, tokenizer.vocab_size))
    }
    for spelled, text in BROKEN.items():
        with subtests.test(spelled=spelled):
            ids = [id_of[bytes([byte])] for byte in spelled]
            found = scripted(ids, kind).generate("x")
            assert (found.text, found.finish) == (text, "end")
            assert text == codecs.decode(spelled, "utf-8", "replace")
            assert "".join(scripted(ids, kind).stream("x")) == text
            at_the_limit = scripted(ids, kind).generate("x", max_new_tokens=len(ids))
            assert (at_the_limit.text, at_the_limit.finish) == (text, "length")


# Scoring
# --------------------------------------------------------------------------------------


def log_probs_by_hand(
    model: LanguageModel, inputs: list[int], labels: list[int]
) -> list[float]:
    """One window: the whole of it at once, no cache."""
    with torch.inference_mode():
        log_probs = module_of(model)(torch.tensor([inputs]))[0].log_softmax(-1)
    return [float(log_probs[place, label]) for place, label in enumerate(labels)]


@either_packing
@pytest.mark.parametrize("kind", ["character", "bpe", "byte"])
def test_a_score_is_the_sum_over_all_tokens(kind: str, packed: bool) -> None:
    model, text = real(kind, 90, packed), "the cat, é!"
    ids = model.tokenizer.encode(text)
    inputs, labels = (
        ([BOS_ID, *ids], [*ids, EOS_ID]) if packed else ([EOS_ID, *ids[:-1]], ids)
    )
    expected = log_probs_by_hand(model, inputs, labels)
    (found,) = model.score(text)
    assert found.token_log_probs == pytest.approx(expected, abs=1e-5)
    assert found.log_prob == pytest.approx(sum(expected), abs=1e-4)
    assert (found.num_tokens, found.num_bytes) == (len(labels), len(text.encode()))
    assert found.perplexity == pytest.approx(
        math.exp(-sum(expected) / len(labels)), rel=1e-4
    )
    assert found.bits_per_byte == pytest.approx(
        -sum(expected) / math.log(2) / len(text.encode()), rel=1e-5
    )
    assert found.pieces == model.tokenizer.pieces(labels)
    assert (found.pieces[-1] == "<eos>") is packed
    assert found.text == text


@either_packing
def test_a_text_longer_than_the_window_is_read_in_windows_that_overlap(
    packed: bool, subtests: pytest.Subtests
) -> None:
    model = real("character", 5, packed)
    for length in (4, 5, 6, 9, 10, 11, 23):
        with subtests.test(length=length):
            text = "The cat sat on the mat."[:length]
            ids = model.tokenizer.encode(text)
            labels = [*ids, EOS_ID] if packed else ids
            inputs = [BOS_ID if packed else EOS_ID, *labels[:-1]]
            expected = []
            for i in range(len(labels)):
                # two of the five are shared
                begin = 0 if i < 5 else 3 * ((i - 5) // 3 + 1)
                window = inputs[begin : i + 1], labels[begin : i + 1]
                expected.append(log_probs_by_hand(model, *window)[-1])
            (found,) = model.score(text)
            assert found.token_log_probs == pytest.approx(expected, abs=1e-5)
            assert found.num_tokens == length + packed


def test_what_is_generated_scores_as_it_said() -> None:
    model = real(packed=True)
    found = model.generate("The", temperature=3.0, max_new_tokens=20, seed=2)
    assert found.finish == "length"
    (score,) = model.score("The" + found.text)
    assert score.token_log_probs[3:-1] == pytest.approx(found.token_log_probs, abs=1e-5)


def test_many_texts_one_text_and_none() -> None:
    model = real()
    texts = ["the cat", "", "a", "the cat"]
    together = model.score(texts)
    assert together == [model.score(text)[0] for text in texts]
    assert model.score([]) == []


@either_packing
def test_an_empty_text(packed: bool) -> None:
    (found,) = real(packed=packed).score("")
    assert (found.num_bytes, found.num_tokens, len(found.pieces)) == (
        0,
        int(packed),
        int(packed),
    )
    if packed:
        assert found.log_prob == pytest.approx(
            log_probs_by_hand(real(packed=True), [BOS_ID], [EOS_ID])[0], abs=1e-5
        )
    else:
        assert json.dumps(found.to_json()).count("0.0") == 2  # and no -0.0
        assert (found.log_prob, found.perplexity, found.bits_per_byte) == (
            0.0,
            1.0,
            0.0,
        )


def test_a_lone_surrogate_counts_as_the_character_that_it_is_read_as() -> None:
    model = real()
    lone, mark = model.score(["a\ud800", "a\ufffd"])
    assert lone.num_bytes == mark.num_bytes == 4
    assert lone.log_prob == mark.log_prob
    assert model.generate("a\ud800", max_new_tokens=9) == model.generate(
        "a\ufffd", max_new_tokens=9
    )


def test_an_impossible_text_has_a_perplexity_that_json_can_hold() -> None:
    class Sure(FakeModel):
        def next_logits(self, seen):
            logits = np.zeros(self.vocab_size)
            logits[5] = 5000.0
            return logits

    (found,) = language_model(Sure(330), "byte", window_len=9, packed=True).score("xyz")
    assert found.log_prob == -4 * 5000.0
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))[
        "perplexity"
    ] == math.exp(700)


# What goes wrong
# --------------------------------------------------------------------------------------


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"temperature": -0.1}, "temperature = -0.1: it must be"),
    ({"temperature": math.nan}, "temperature = nan: it must be"),
    ({"top_k": 0}, "top_k = 0: it must be"),
    ({"top_p": 0.0}, "top_p = 0.0: it must be"),
    ({"top_p": 1.1}, "top_p = 1.1: it must be"),
    ({"min_p": 1.0}, "min_p = 1.0: it must be"),
    ({"repetition_penalty": 0.0}, "repetition_penalty = 0.0: it must be"),
    ({"max_new_tokens": 0}, "max_new_tokens = 0: it must be"),
    ({"stop": ["a", ""]}, "a stop string is empty"),
    ({"stop": ""}, "a stop string is empty"),
    ({"seed": -1}, "seed = -1: it must be"),
    ({"seed": 2**63}, f"seed = {2**63}: it must be"),
]


def test_impossible_settings_are_refused_at_the_call(subtests: pytest.Subtests) -> None:
    """Of `stream` too, where nothing has been written yet."""
    model = whim()
    for (asked, message), call in product(IMPOSSIBLE, (model.generate, model.stream)):
        with subtests.test(call=call.__name__, **asked):
            with pytest.raises(UsageError, match=message) as caught:
                call("The", **asked)
            assert "\n" not in str(caught.value)
            assert model.model.beginnings == []


def test_a_model_whose_output_is_not_a_number_is_an_error() -> None:
    class Broken(FakeModel):
        def next_logits(self, seen):
            return np.full(self.vocab_size, math.nan)

    model = language_model(Broken(330), "byte", window_len=9, packed=False)
    for call in (
        lambda: model.generate("a"),
        lambda: list(model.stream("a")),
        lambda: model.score("a"),
    ):
        with pytest.raises(DivergedError):
            call()


@pytest.mark.parametrize("kind", ["character", "bpe"])
def test_the_engine_scores_as_the_model_does(kind: str) -> None:
    for packed in (False, True):
        plain = real(kind, 7, packed, ngrams=4, positions="rotary")
        for text in ("", "The cat sat on the mat."):
            (expected,) = plain.score(text)
            (found,) = with_engine(plain, kind).score(text)
            log_probs = pytest.approx(expected.token_log_probs, abs=1e-4)
            assert found.token_log_probs == log_probs


@either_packing
def test_plain_numpy_writes_and_scores_as_the_model_does(packed: bool) -> None:
    own = real("character", 9, packed, ngrams=4, positions="rotary")
    weights = causal_weights_of(deepcopy(module_of(own)).float())
    plain = language_model(
        PlainWriter(weights), "character", window_len=9, packed=packed
    )
    for text in ("", "The cat", "The cat sat on the mat."):
        expected = own.score(text)[0].token_log_probs
        found = plain.score(text)[0].token_log_probs
        assert found == pytest.approx(expected, abs=1e-4)
        for draft in (None, "prompt"):
            asked = {"temperature": 0, "max_new_tokens": 20, "draft": draft}
            assert (
                plain.generate(text, **asked).text == own.generate(text, **asked).text
            )


# Beside other work
# --------------------------------------------------------------------------------------


def test_between_the_pieces_the_caller_can_train_and_stream_again() -> None:
    model = real()
    module = module_of(model)
    weight = nn.Parameter(torch.ones(3))
    alone = [list(model.stream("The", seed=seed, max_new_tokens=9)) for seed in (1, 2)]
    first, second = (
        model.stream("The", seed=seed, max_new_tokens=9) for seed in (1, 2)
    )
    woven: list[list[str]] = [[], []]
    module.train()
    try:
        for one, other in zip(first, second, strict=False):
            woven[0].append(one)
            woven[1].append(other)
            assert not torch.is_inference_mode_enabled()
            assert torch.is_grad_enabled()
            assert module.training
            (weight * 2).sum().backward()
    finally:
        module.eval()
    assert [pieces[: len(w)] for pieces, w in zip(alone, woven, strict=True)] == woven
    assert len(woven[0]) > 5


def test_a_model_in_training_is_not_disturbed_and_one_that_is_not_stays_so() -> None:
    model = real()
    module = module_of(model)
    quiet = model.generate("The", max_new_tokens=9), model.score("The cat")
    module.train()
    try:
        abandoned = model.stream("The", max_new_tokens=9)
        next(abandoned)
        assert module.training
        assert all(part.training for part in module.modules())
        # without dropout
        assert (
            model.generate("The", max_new_tokens=9),
            model.score("The cat"),
        ) == quiet
        assert module.training
    finally:
        module.eval()
    model.generate("The", max_new_tokens=2)
    assert not module.training


def test_a_device_without_memory_is_an_error_of_memory() -> None:
    """And the mode is what it was."""

    class Cramped(nn.Module):
        def prefill(self, prompt):
            return None

        def decode(self, ids, cache):
            assert not self.training
            raise torch.OutOfMemoryError("no memory left")

    module = Cramped().train()
    model = language_model(TorchWriter(module), "byte", window_len=9, packed=False)
    for call in (model.generate, model.score):
        with pytest.raises(MemoryError, match="no memory left"):
            call("a")
    assert module.training
    assert not torch.is_inference_mode_enabled()


def test_generating_leaves_the_random_state_of_a_run_alone() -> None:
    before = torch.get_rng_state()
    real().generate("The", max_new_tokens=9)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_answer_becomes_plain_json() -> None:
    found = json.loads(
        json.dumps(whim().generate("The", max_new_tokens=3).to_json(), allow_nan=False)
    )
    assert set(found) == {
        "text",
        "finish",
        "token_log_probs",
        "prompt_cut",
        "proposed",
        "accepted",
    }
    score = json.loads(json.dumps(real().score("The")[0].to_json(), allow_nan=False))
    fields = {
        "text",
        "log_prob",
        "num_tokens",
        "num_bytes",
        "perplexity",
        "bits_per_byte",
        "pieces",
    }
    assert set(score) == fields | {"token_log_probs"}
