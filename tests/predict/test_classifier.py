"""A classifier of fake models whose answer is plain to see, and of small real ones with random
weights.
"""

import hashlib
import itertools
import json
import math
import re
import time
from collections.abc import Sequence
from functools import cache as memo

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from weft.config import ClassifierSection, SideSection
from weft.data.labelled import from_rows
from weft.data.tokenizer import BOS_ID, PAD_ID, Tokenizer, train_tokenizer
from weft.engine.torch_steps import TorchClassifier
from weft.errors import DivergedError, OutOfMemoryError, UsageError
from weft.model.classifier import TransformerClassifier
from weft.predict import classifier as module
from weft.predict.classifier import Classification, Classifier, ClassifierModel
from weft.predict.text import LINE_BREAKS, one_line

ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.!?猫好。"
LABELS = ["ham", "none", "spam"]


@memo
def letters() -> Tokenizer:
    return train_tokenizer(
        [ALPHABET] * 3, SideSection(kind="character", vocab_size=512)
    )


class FakeModel:
    """Logits by `row_logits(ids without padding)`; it keeps what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[int, ...]]] = []
        self.widths: list[int] = []

    def logits(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        assert ids.dtype == np.int64
        rows = [tuple(i for i in row if i != PAD_ID) for row in ids.tolist()]
        assert all(
            row[: len(real)] == list(real)
            for row, real in zip(ids.tolist(), rows, strict=True)
        )
        self.batches.append(rows)
        self.widths.append(ids.shape[1])
        logits = [self.row_logits(row) for row in rows]
        return np.array(logits, np.float32)

    def row_logits(self, row: tuple[int, ...]) -> Sequence[float]:
        raise NotImplementedError


class Whim(FakeModel):
    """Random, but always the same for the same row."""

    def row_logits(self, row):
        seed = int.from_bytes(hashlib.sha256(repr(row).encode()).digest()[:4])
        return (2 * np.random.default_rng(seed).standard_normal(3)).tolist()


class ByFirst(FakeModel):
    """Knows only the first letter of a row, by this table of logits; of others it thinks
    nothing.
    """

    def __init__(self, **table: list[float]) -> None:
        super().__init__()
        self.table = {letters().encode(letter)[0]: row for letter, row in table.items()}

    def row_logits(self, row):
        return self.table.get(row[0] if row else PAD_ID, [0.0] * len(LABELS))


def classifier(
    model: ClassifierModel,
    *,
    multi_label=False,
    max_len=40,
    too_long="cut",
    first_token=False,
) -> Classifier:
    return Classifier(
        model, letters(), labels=LABELS, multi_label=multi_label, max_len=max_len, too_long=too_long,
        first_token=first_token,
    )  # fmt: skip


def logs(*probabilities: float) -> list[float]:
    return np.log(probabilities).tolist()


def odds(*probabilities: float) -> list[float]:
    return [math.log(p / (1 - p)) for p in probabilities]


SURE = {"h": [8.0, 0.0, 0.0], "n": [0.0, 8.0, 0.0], "s": [0.0, 0.0, 8.0]}


# Answers
# --------------------------------------------------------------------------------------


def test_one_answer_for_each_text_in_its_order():
    texts = ["spam spam", "h", "nothing at all in it", "s", "ham"]
    found = classifier(ByFirst(**SURE)).classify(texts)
    assert [answer.label for answer in found] == ["spam", "ham", "none", "spam", "ham"]
    assert [answer.labels for answer in found] == [[answer.label] for answer in found]
    assert all((answer.windows, answer.truncated) == (1, False) for answer in found)


def test_one_text_needs_no_list_and_no_text_gives_no_answer():
    model = ByFirst(**SURE)
    (found,) = classifier(model).classify("ham")
    assert found.label == "ham"
    assert len(model.batches) == 1
    assert classifier(model).classify([]) == []
    assert list(classifier(model).classify_stream([])) == []
    assert len(model.batches) == 1


def test_probabilities_are_a_softmax_by_label():
    (found,) = classifier(ByFirst(a=logs(0.2, 0.5, 0.3))).classify("abc")
    assert found.probabilities == pytest.approx(
        {"ham": 0.2, "none": 0.5, "spam": 0.3}, rel=1e-6
    )
    assert (found.label, found.probability) == ("none", found.probabilities["none"])
    assert list(found.probabilities) == LABELS


@pytest.mark.parametrize(
    ("logits", "label"), [([1.0, 3.0, 3.0], "none"), ([2.0, 2.0, 2.0], "ham")]
)
def test_of_equals_the_first_label_is_given(logits, label):
    (found,) = classifier(ByFirst(a=logits)).classify("a")
    assert (found.label, found.labels) == (label, [label])


def test_of_several_labels_all_of_one_half_or_more():
    model = ByFirst(a=[3.0, -1.0, 0.0], b=[-2.0, -1.0, -0.001], c=odds(0.9, 0.6, 0.7))
    both, nothing, every = classifier(model, multi_label=True).classify(["a", "b", "c"])
    assert (both.label, both.labels, both.probability) == (
        "ham, spam",
        ["ham", "spam"],
        0.5,
    )
    assert both.probabilities == pytest.approx(
        {"ham": 1 / (1 + math.e**-3), "none": 1 / (1 + math.e), "spam": 0.5}
    )
    assert (nothing.label, nothing.labels, nothing.probability) == ("", [], 0.0)
    assert every.labels == LABELS
    assert every.probability == pytest.approx(0.6)


def test_an_answer_becomes_plain_json():
    (found,) = classifier(ByFirst(**SURE)).classify("spam")
    line = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert line == {
        "label": "spam",
        "labels": ["spam"],
        "probability": found.probability,
        "probabilities": found.probabilities,
        "truncated": False,
        "windows": 1,
        "unknown_words": [],
        "nothing_known": False,
        "unsure": False,
    }


@pytest.mark.parametrize(
    ("multi_label", "value"), [(False, "nan"), (False, "inf"), (True, "nan")]
)
def test_a_model_whose_output_is_not_a_number_is_an_error(multi_label, value):
    model = ByFirst(**SURE, a=[0.0, float(value), 0.0])
    with pytest.raises(DivergedError, match="not a number"):
        classifier(model, multi_label=multi_label).classify(["ham", "a", "spam"])


def test_a_model_in_training_is_not_disturbed():
    seen = []

    class Watched(nn.Module):
        def forward(self, ids):
            seen.append((self.training, torch.is_inference_mode_enabled()))
            return torch.zeros(len(ids), len(LABELS))

    module = Watched().train()
    classifier(TorchClassifier(module)).classify(["a"])
    assert module.training
    assert not torch.is_inference_mode_enabled()
    module.eval()
    classifier(TorchClassifier(module)).classify(["a"])
    assert not module.training
    assert seen == [(False, True)] * 2


# Texts
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n", "\t \r\n", "\u3000"])
def test_a_text_with_nothing_in_it_has_an_answer_too(text):
    model = Whim()
    found = classifier(model).classify(["ham", text])
    assert model.batches[-1][-1] == ()
    own = np.array([Whim().row_logits(())])
    assert found[1].probabilities == pytest.approx(
        dict(zip(LABELS, module.softmax(own)[0].tolist(), strict=True))
    )
    assert (found[1].windows, found[1].truncated) == (1, False)
    alone = Whim()
    assert classifier(alone).classify(text) == found[1:]
    assert alone.widths == [1]


@pytest.mark.parametrize(
    "text",
    [
        "emoji 👩‍👩‍👧 here",
        "lone \ud800 surrogate",
        "nul \x00 byte",
        "שלום abc",
        "e" + "\u0301" * 20,
        "</s><pad>",
    ],
)
def test_odd_text_comes_through(text):
    model = Whim()
    classifier(model, max_len=150).classify([text])
    assert letters().decode(model.batches[0][0]) == letters().normalize(text)


def test_line_breaks_become_spaces():
    model = Whim()
    classifier(model).classify(["  a \r\n b\nc\n", "a b c"])
    assert model.batches == [[tuple(letters().encode("a b c"))] * 2]


@given(
    st.lists(
        st.sampled_from(
            [" ", "\n", "\r", "\t", "\x0b", "\u3000", "\x85", "\u2028", "a", "猫"]
        ),
        max_size=12,
    ).map("".join)
)
def test_a_text_on_one_line_is_what_training_text_is(text):
    """As the plain, slow pattern has it, and as the reader of tables does."""
    assert one_line(text) == re.sub(r"\s*[\r\n]\s*", " ", text).strip()
    assert LINE_BREAKS.sub("|", text) == re.sub(r"\s*[\r\n]\s*", "|", text)
    if one_line(text):
        assert from_rows([(text, ["x"])], "made").texts == [one_line(text)]


@pytest.mark.parametrize(
    ("around", "line"),
    [
        ("{}", ""),
        ("x{}x", None),
        ("x{}\nx", "x x"),
        ("\n{}x", "x"),
        ("x\n{}y\n", "x y"),
    ],
)
def test_long_white_space_is_passed_over_once(around, line):
    """In quadratic time 20,000 spaces would take a second, and a megabyte of them half an hour."""
    for length, seconds in ((20_000, 0.1), (1_000_000, 1.0)):
        text = around.format(" " * length)
        started = time.process_time()
        found = one_line(text), LINE_BREAKS.sub(" ", text).strip()
        assert time.process_time() - started < seconds
        assert found == ((text if line is None else line),) * 2


# Long texts
# --------------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_says_so():
    model = Whim()
    just, over = classifier(model, max_len=5).classify(["abcde", "abcdef"])
    assert model.batches == [[tuple(letters().encode("abcde"))] * 2]
    assert (just.truncated, just.windows) == (False, 1)
    assert (over.truncated, over.windows) == (True, 1)
    assert over.probabilities == just.probabilities


def test_a_long_text_is_read_in_windows_whose_probabilities_are_averaged():
    model = ByFirst(
        a=logs(0.9, 0.05, 0.05), b=logs(0.2, 0.5, 0.3), c=logs(0.1, 0.8, 0.1)
    )
    short, long = classifier(model, max_len=3, too_long="windows").classify(
        ["abc", "axxbxxc"]
    )
    assert (short.windows, long.windows) == (1, 3)
    assert not long.truncated
    assert long.probabilities == pytest.approx(
        {"ham": 0.4, "none": 0.45, "spam": 0.15}, rel=1e-6
    )
    assert (long.label, long.probability) == ("none", long.probabilities["none"])
    assert sorted(map(len, itertools.chain(*model.batches))) == [1, 3, 3, 3]


def test_a_text_that_fills_its_windows_has_no_empty_one():
    model = Whim()
    found = classifier(model, max_len=3, too_long="windows").classify(
        ["abcdef", "abc", ""]
    )
    assert [answer.windows for answer in found] == [2, 1, 1]
    assert sorted(map(len, itertools.chain(*model.batches))) == [0, 3, 3, 3]


def test_of_several_labels_windows_are_averaged_before_the_threshold():
    model = ByFirst(a=odds(0.9, 0.4, 0.1), b=odds(0.2, 0.4, 0.8))
    (found,) = classifier(
        model, multi_label=True, max_len=2, too_long="windows"
    ).classify("axb")
    assert found.probabilities == pytest.approx(
        {"ham": 0.55, "none": 0.4, "spam": 0.45}, rel=1e-6
    )
    assert found.labels == ["ham"]


@pytest.mark.parametrize("too_long", ["cut", "windows"])
def test_a_first_token_stands_before_every_row_and_does_not_count(too_long):
    model = Whim()
    texts = ["abcd", "", "abcdefg"]
    found = classifier(model, max_len=4, too_long=too_long, first_token=True).classify(
        texts
    )
    rows = {row for batch in model.batches for row in batch}
    whole = [(BOS_ID, *letters().encode(text)) for text in ("abcd", "", "efg")]
    assert rows == set(whole if too_long == "windows" else whole[:2])
    assert [answer.truncated for answer in found] == [False, False, too_long == "cut"]
    assert [answer.windows for answer in found] == [
        1,
        1,
        2 if too_long == "windows" else 1,
    ]


# Batches
# --------------------------------------------------------------------------------------

TEXTS = [
    "a",
    "the cat",
    "Abc. Defg. Hijk lmn.",
    "zebra",
    "",
    "q r s t",
    "猫好。",
    "the cat",
    "x" * 50,
]


@pytest.mark.parametrize("first_token", [False, True])
@pytest.mark.parametrize("too_long", ["cut", "windows"])
@pytest.mark.parametrize("batch_tokens", [1, 40, 8192])
def test_a_text_is_classified_the_same_whatever_stands_beside_it(
    batch_tokens, too_long, first_token
):
    here = classifier(Whim(), max_len=12, too_long=too_long, first_token=first_token)
    alone = [here.classify(text)[0] for text in TEXTS]
    assert len({answer.probability for answer in alone}) == 8
    assert here.classify(TEXTS, batch_tokens=batch_tokens) == alone
    assert here.classify(TEXTS[::-1], batch_tokens=batch_tokens) == alone[::-1]
    assert list(here.classify_stream(TEXTS, chunk=2)) == alone


@pytest.mark.parametrize("first_token", [False, True])
def test_batches_hold_rows_of_similar_length_within_the_budget(first_token):
    model = Whim()
    texts = ["abcdefg"[: i % 8] + "ABCDEFGHIJ"[: i % 3] for i in range(70)]
    classifier(model, first_token=first_token).classify(texts, batch_tokens=48)
    lengths = [[len(row) for row in batch] for batch in model.batches]
    assert sum(map(len, lengths)) == 70
    assert list(itertools.chain(*lengths)) == sorted(
        itertools.chain(*lengths), reverse=True
    )
    assert all(
        len(batch) * width <= 48
        for batch, width in zip(lengths, model.widths, strict=True)
    )
    assert all(
        width == max(1, *batch)
        for batch, width in zip(lengths, model.widths, strict=True)
    )
    assert len(lengths) < 70 * (sum(map(sum, lengths)) / 70 + 3) / 48


def test_a_row_above_the_budget_is_a_batch_of_its_own():
    model = Whim()
    classifier(model).classify(["abcdefghij", "a", "b", "abcdefghi"], batch_tokens=4)
    assert [[len(row) for row in batch] for batch in model.batches] == [
        [10],
        [9],
        [1, 1],
    ]


def test_empty_texts_are_within_the_budget_too():
    model = Whim()
    classifier(model).classify([""] * 10, batch_tokens=4)
    assert [len(batch) for batch in model.batches] == [4, 4, 2]


def test_text_is_encoded_a_bounded_part_at_a_time(monkeypatch):
    """And one that alone is more than that, part by part."""

    class Watched:
        def __init__(self):
            self.batches, self.long = [], []

        def encode_batch(self, texts):
            self.batches.append(sum(map(len, texts)))
            return letters().encode_batch(texts)

        def encode_long(self, text):
            self.long.append(len(text))
            return letters().encode_long(text)

    texts = ["abc " * (1 + i % 5) + "x" for i in range(40)]
    texts[17] = "a cat. " * 30
    whole = classifier(Whim(), max_len=300).classify(texts)
    here = classifier(Whim(), max_len=300)
    here.tokenizer = Watched()
    monkeypatch.setattr(module, "_CHUNK", 60)
    assert here.classify(texts) == whole
    assert max(here.tokenizer.batches) <= 60
    assert len(here.tokenizer.batches) < 20
    assert here.tokenizer.long == [7 * 30 - 1]


def test_a_stream_keeps_the_order_and_holds_one_chunk():
    taken = []

    def source():
        for i in range(1000):
            taken.append(i)
            yield "hns"[i % 3] * (1 + i % 5)

    stream = classifier(ByFirst(**SURE)).classify_stream(source(), chunk=10)
    assert taken == []
    found = [next(stream).label for _ in range(25)]
    assert found == [LABELS[i % 3] for i in range(25)]
    assert len(taken) == 30


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"chunk": 0}, "chunk = 0"), ({"batch_tokens": 0}, "batch_tokens = 0")],
)
def test_impossible_settings_are_refused_before_any_text_is_read(setting, message):
    def unreadable():
        raise AssertionError("a text was read")
        yield

    here = classifier(Whim())
    with pytest.raises(UsageError, match=f"{message}: it must be at least 1"):
        here.classify_stream(
            unreadable(), **setting
        ) if "chunk" in setting else here.classify(unreadable(), **setting)


class Cramped(Whim):
    """Has memory for so many rows only."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def logits(self, ids):
        if len(ids) > self.most:
            raise MemoryError
        return super().logits(ids)


def test_where_memory_does_not_suffice_fewer_rows_are_read_at_a_time():
    assert classifier(Cramped(3)).classify(TEXTS) == classifier(Whim()).classify(TEXTS)
    with pytest.raises(OutOfMemoryError, match="no memory to classify 3 tokens"):
        classifier(Cramped(0)).classify("abc")


@pytest.mark.parametrize("too_long", ["cut", "windows"])
def test_several_threads_give_the_same_answers(too_long):
    texts = TEXTS * 5
    expected = classifier(Whim(), max_len=12, too_long=too_long).classify(texts)
    model = Whim()
    here = classifier(model, max_len=12, too_long=too_long)
    here.workers = 3
    assert here.classify(texts, batch_tokens=16) == expected
    assert len(model.batches) > 20
    here = classifier(Cramped(0))
    here.workers = 3
    with pytest.raises(OutOfMemoryError, match="no memory to classify"):
        here.classify(texts, batch_tokens=16)


def test_a_device_without_memory_reads_fewer_rows_too():
    sizes = []

    class Small(nn.Module):
        def forward(self, ids):
            sizes.append(len(ids))
            if len(ids) > 2:
                raise torch.OutOfMemoryError("no memory left")
            return torch.zeros(len(ids), len(LABELS))

    found = classifier(TorchClassifier(Small())).classify(["a"] * 6)
    assert [answer.label for answer in found] == ["ham"] * 6
    assert sizes == [6, 3, 1, 2, 3, 1, 2]


# Real models
# --------------------------------------------------------------------------------------

SHAPES: dict[str, dict[str, object]] = {
    "encoder": {"num_encoder_layers": 2},
    "first": {"num_encoder_layers": 1, "pooling": "first", "norm_first": False},
    "n-grams": {"num_encoder_layers": 0, "ngrams": 3},
    "both": {"num_encoder_layers": 1, "ngrams": 2},
}


@pytest.mark.parametrize("too_long", ["cut", "windows"])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_real_model_reads_a_batch_as_one_by_one_and_its_probabilities_are_its_own(
    kind, too_long
):
    torch.manual_seed(7)
    section = ClassifierSection(
        d_model=26, num_heads=2, d_ff=17, max_len=13, ngram_buckets=97, **SHAPES[kind]
    )
    model = TransformerClassifier(section, letters().vocab_size, len(LABELS)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    first = kind == "first"
    adapted = TorchClassifier(model)
    here = classifier(adapted, max_len=12, too_long=too_long, first_token=first)
    alone = [here.classify(text)[0] for text in TEXTS]
    together = here.classify(TEXTS)
    for a, b in zip(alone, together, strict=True):
        assert (a.label, a.truncated, a.windows) == (b.label, b.truncated, b.windows)
        assert a.probabilities == pytest.approx(b.probabilities, rel=1e-9)
    row = [*([BOS_ID] if first else []), *letters().encode("zebra")]
    model.eval()
    own = model(torch.tensor([row])).softmax(-1)[0].tolist()
    assert list(alone[3].probabilities.values()) == pytest.approx(own, rel=1e-9)
    assert isinstance(alone[3], Classification)
