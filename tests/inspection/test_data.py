"""The data of an inspection are what docs/inspection.md says, of every task, with PyTorch and
without, and no larger than the limits.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import weft
from weft.config import ClassifierSection
from weft.engine.from_model import classifier_weights_of
from weft.engine.plain_models import PlainClassifier
from weft.errors import UsageError
from weft.inspection.look import inspection_data
from weft.inspection.reasons import Reasons
from weft.inspection.tokens import Limits
from weft.kernels.machine import Machine, machine_for_use
from weft.model.classifier import TransformerClassifier
from weft.tasks.choice import load_trainable
from weft.tasks.opening import kind_of
from weft.tasks.task import Task

PAGE = Path(weft.__file__).parents[2] / "docs" / "inspection.md"
EVERY, WRITERS = "Of every task", "Translators and language models"
SECTIONS = {
    "translation": (EVERY, WRITERS, "Translation"),
    "language-modelling": (EVERY, WRITERS, "Language models"),
    "classification": (EVERY, "Classifiers"),
}
# what a model may not have
NULLS = (
    ".positions",
    ".normed",
    ".parent",
    ".score",
    ".agreement",
    ".layer",
    ".between",
    "shares.source",
    "shares.tokens",
    "unknown_words",
)
# what is no array: lists of any lengths, and pieces by their ids
LOOSE = ("unknown_words", ".beside", ".left_out", "cuts.source", "cuts.text")
TASKS = list(SECTIONS)
TEXT = "the red one was cold ."
SMALL = (
    "model.d_model=20",
    "model.d_ff=24",
    "model.num_heads=2",
    "training.precision=float32",
    "training.threads=1",
    "training.kernels=torch",
    "training.max_steps=3",
)
OWN = {
    "translation": (
        "model.num_encoder_layers=2",
        "model.num_decoder_layers=3",
        "data.src_lang=en",
        "data.tgt_lang=de",
        "decoding.beam_size=3",
        "decoding.max_len_ratio=1",
        "decoding.max_len_extra=3",
    ),
    "language-modelling": (
        "task=language-modelling",
        "model.num_decoder_layers=2",
        "model.ngrams=2",
        "model.ngram_buckets=50",
        "batches.window_len=24",
        "data.dev_share=0.0",
    ),
    "classification": (
        "task=classification",
        "model.num_encoder_layers=2",
        "model.ngrams=2",
        "model.ngram_buckets=50",
        "data.dev_size=0",
        "data.test_size=0",
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny model of each task."""
    here = tmp_path_factory.mktemp("tasks")
    words = ["red", "blue", "small", "large", "warm", "cold"]
    rows = [f"the {a} one was {b} ." for a in words for b in words]
    texts = {
        "translation": [f"{row}\t{row[::-1]}\n" for row in rows],
        "language-modelling": [f"{row}\n\n" for row in rows],
        "classification": ["text,label\n", *(f"{r},{r[4:7]}\n" for r in rows * 2)],
    }
    names = dict(zip(TASKS, ("pairs.tsv", "text.txt", "rows.csv"), strict=True))
    for task, lines in texts.items():
        (here / names[task]).write_text("".join(lines), "utf-8")
        weft.train(
            out=here / task,
            train=str(here / names[task]),
            settings=(*OWN[task], *SMALL),
            allow_bad_data=True,
            quiet=True,
        )
    return {task: here / task for task in TASKS}


def opened(task: str, folder: Path) -> Task[Any, Any]:
    """A model in use, without PyTorch."""
    return kind_of(task).load(folder, machine_for_use())


def documented(task: str) -> dict[str, str]:
    """The keys of a task's sections of the page, each with its shape."""
    page = PAGE.read_text("utf-8")
    rows = []
    for section in SECTIONS[task]:
        (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
        rows += re.findall(r"^\| `([^`]+)` \| ([^|]*)\|", part, re.M)
    return {key: shape.strip() for key, shape in rows}


def keys_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of the data by its path, each with its value; those in lists again and again."""
    if isinstance(value, dict):
        for key, inner in value.items():
            own = f"{path}.{key}" if path else key
            if path == "pieces":
                assert all(i.isdecimal() and inner[i] for i in inner)
                yield own, None
                continue
            if not isinstance(inner, dict):
                yield own, inner
            yield from keys_of(inner, own)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict | list):
                yield from keys_of(inner, f"{path}[]")


def shape_of(value: Any, depth: int) -> list[int]:
    """The lengths of lists in lists, all equal at each depth."""
    if not depth:
        assert not isinstance(value, list)
        return []
    inner = [shape_of(each, depth - 1) for each in value]
    assert all(one == inner[0] for one in inner)
    return [len(value), *(inner[0] if inner else [])]


@pytest.mark.parametrize("task", TASKS)
def test_the_page_lists_every_key_and_its_shape(
    task: str, folders: dict[str, Path]
) -> None:
    data = inspection_data(opened(task, folders[task]), TEXT)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert list(data)[:2] == ["format", "version"]
    known = documented(task)
    found = dict(keys_of(data))
    not_here = {key for key in known if key.endswith("rows[].n")}
    assert known.keys() - not_here == found.keys() - not_here
    sizes: dict[str, int] = {"2": 2, "3": 3}
    for key, value in keys_of(data):
        letters = known[key].split()
        if value is None:
            assert key.endswith(NULLS) or key.startswith("pieces.")
            continue
        if key.endswith(LOOSE):
            assert isinstance(value, list)
            continue
        shape = shape_of(_without_objects(value), len(letters))
        for letter, size in zip(letters, shape, strict=False):
            assert sizes.setdefault(letter, size) == size, key
    if "L" in sizes:
        assert sizes.get("L-1", sizes["L"] - 1) == sizes["L"] - 1
    assert sizes["D"] == 20
    assert sizes["d"] == 10
    assert sizes["P"] > 4
    assert sizes.get("A", 5) == 5


def _without_objects(value: Any) -> Any:
    """The same lists, each object in them as one number."""
    if isinstance(value, list):
        return [_without_objects(each) for each in value]
    return 0 if isinstance(value, dict) else value


@pytest.mark.parametrize("task", TASKS)
def test_with_pytorch_and_without_they_are_the_same(
    task: str, folders: dict[str, Path]
) -> None:
    plain = inspection_data(opened(task, folders[task]), TEXT)
    machine = Machine("cpu", "float32", 1, "tests are small", plain=True)
    trained = inspection_data(load_trainable(folders[task], machine), TEXT)
    assert_alike(plain, trained)


def assert_alike(one: Any, other: Any, path: str = "") -> None:
    """The same but for the last digit."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            assert_alike(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b, f"{path}[]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1.1e-3), path
    else:
        assert one == other, path


@pytest.mark.parametrize("task", TASKS)
def test_no_array_is_larger_than_the_limits(
    task: str, folders: dict[str, Path]
) -> None:
    model = opened(task, folders[task])
    limits = Limits(
        tokens=5,
        tgt_tokens=3,
        dimensions=4,
        alternatives=2,
        labels=1,
        choices=6,
        nearest=2,
    )
    whole = inspection_data(model, TEXT)
    data = inspection_data(model, TEXT, limits)
    assert data["cut"]
    assert not whole["cut"]
    known = documented(task)
    assert data.keys() == whole.keys()
    # a begin symbol of a classifier is beside its tokens
    most = {
        "S": 5,
        "L": 6,
        "L-1": 5,
        "D": 4,
        "A": 2,
        "labels-shown": 1,
        "N": 6,
        "nearest": 2,
    }
    most["T"] = 3 if task == "translation" else 6
    checked = 0
    for key, value in keys_of(data):
        letters = known[key].split()
        if value is None or not letters or key.endswith(LOOSE):
            continue
        shape = shape_of(_without_objects(value), len(letters))
        for letter, size in zip(letters, shape, strict=False):
            checked += letter in most
            assert size <= most.get(letter, 1000), key
    assert checked > 5
    if task == "translation":
        assert data["tgt_cut"]
        assert not whole["tgt_cut"]
        assert max(node["step"] for node in data["beam"]["nodes"]) == 3
        assert len(data["target"]["ids"]) == 3
        assert whole["target"]["ids"][:3] != []
    with pytest.raises(UsageError, match="no text"):
        inspection_data(model, " \n", limits)


@pytest.mark.parametrize("name", vars(Limits()))
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"limits: {name} = 0: it must be at least"):
        replace(Limits(), **{name: 0})


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_gradients_are_those_of_automatic_differentiation(
    pooling: str, multi_label: bool
) -> None:
    """By PyTorch in float64: gradient times vector, for each label and each token."""
    torch.manual_seed(5)
    shape = ClassifierSection(
        d_model=12,
        d_ff=20,
        num_heads=2,
        num_encoder_layers=2,
        dropout=0.0,
        pooling=pooling,
        ngrams=3,
        ngram_buckets=30,
    )
    model = TransformerClassifier(shape, 40, 3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    row = [2, 7, 9, 7, 30, 31]
    weights = classifier_weights_of(model)
    plain = PlainClassifier(weights)
    found = Reasons(weights, plain, multi_label, row).gradient()
    model.double()
    expected = [by_pytorch(model, row, label, multi_label) for label in range(3)]
    np.testing.assert_allclose(found.T, expected, atol=5e-6)
    assert np.abs(found).max() > 0.05


def by_pytorch(
    model: TransformerClassifier, row: list[int], label: int, multi_label: bool
) -> list[float]:
    """How the log-probability grows as the vectors at one place all do, the bag's too."""
    assert model.encoder is not None
    assert model.bag is not None
    scales = torch.ones(len(row), dtype=torch.float64, requires_grad=True)
    hook = model.encoder.embedding.tokens.register_forward_hook(
        lambda *call: call[2] * scales[:, None]
    )
    own = model.bag.forward
    model.bag.forward = lambda ids: scaled_bag(model.bag, ids, scales)  # type: ignore[assignment, method-assign]
    logits = model(torch.tensor([row]))[0]
    kind = nn.functional.logsigmoid if multi_label else nn.functional.log_softmax
    value = kind(logits) if multi_label else kind(logits, dim=-1)
    (gradient,) = torch.autograd.grad(value[label], [scales])
    hook.remove()
    model.bag.forward = own  # type: ignore[method-assign]
    numbers: list[float] = gradient.tolist()
    return numbers


def scaled_bag(bag: Any, ids: Tensor, scales: Tensor) -> Tensor:
    """The mean of a bag whose n-grams grow by the mean of their tokens' scales."""
    total: Any = 0
    count = 0.0
    for lookup in bag.lookups(ids):
        weights = lookup.weights()[0]
        grown = torch.stack(
            [scales[i : i + lookup.n].mean() for i in range(len(weights))]
        )
        total = total + (lookup.table[lookup.rows[0]] * (weights * grown)[:, None]).sum(
            0
        )
        count += float(weights.sum())
    mean: Tensor = (total / count)[None]
    return mean
