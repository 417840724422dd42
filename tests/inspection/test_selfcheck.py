"""The proofs hold on sound models of each kind, and each fails on a model that breaks what it is
about.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from pushed import of_which
from weft.data.tokenizer import PAD_ID
from weft.engine import plain
from weft.engine.bindings import engine_of
from weft.engine.classifier import native_classifier_of
from weft.engine.plain import PlainTransformer
from weft.engine.weights import changed
from weft.engine.writer import writer_of
from weft.folder.model_folder import open_model_folder
from weft.inspection.selfcheck import TOLERANCE, Proof, selfcheck
from weft.inspection.torch_reference import torch_reference_of
from weft.kernels.machine import machine_for_use
from weft.model import attention, recurrent
from weft.model.cache import DecoderCache
from weft.model.transformer import Seq2SeqTransformer
from weft.ship.quantization import quantize
from weft.tasks import classification, language_modelling, translation
from weft.tasks.opening import kind_of, load_task
from weft.tasks.translation import Translation

Write = Callable[[int], str]
SHAPE = ("model.d_model=16", "model.d_ff=24", "model.num_heads=2")
ONE_STEP = (
    "training.max_steps=1",
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
MODERN = (
    "model.norm=rms",
    "model.activation=swiglu",
    "model.positions=rotary",
    "model.num_key_value_heads=1",
    "model.query_key_norm=true",
    "model.embedding_norm=true",
    "model.bias=false",
)
WORDS = ["red", "blue", "small", "large", "warm", "cold"]
KINDS: dict[str, tuple[str, ...]] = {
    "transformer": (),
    "modern": MODERN,
    "recurrent": ("model.kind=recurrent", "model.d_model=12", "model.d_hidden=16"),
    "language model": ("batches.window_len=20",),
    "n-grams": (
        "batches.window_len=20",
        "model.ngrams=2",
        "model.ngram_buckets=50",
        "model.match_lengths=[2]",
    ),
    "packed": ("batches.window_len=20", "batches.packing=packed", *MODERN),
    "classifier": ("model.num_encoder_layers=1", "data.max_len=12"),
    "bag": ("model.num_encoder_layers=0", "model.ngrams=2", "model.ngram_buckets=50"),
}


def text_for(kind: str, here: Path, write_pairs: Write) -> tuple[str, tuple[str, ...]]:
    """A file, and what its task's recipe needs."""
    if kind in ("transformer", "modern", "recurrent"):
        shape = () if kind == "recurrent" else SHAPE
        return write_pairs(90), (*shape, "data.dev_size=0", "data.test_size=0")
    rows = [f"the {a} one was {b}" for a, b in product(WORDS, WORDS)]
    if kind in ("classifier", "bag"):
        (here / "train.csv").write_text(
            "text,label\n" + "".join(f"{row},{row[-3:]}\n" for row in rows * 2)
        )
        return str(here / "train.csv"), (
            "task=classification",
            *SHAPE,
            "data.dev_size=0",
            "data.test_size=0",
        )
    (here / "train.txt").write_text("".join(f"{row}\n\n" for row in rows))
    more = ("tokenizer.kind=character", "batches.batch_size=4", "data.dev_share=0.0")
    return str(here / "train.txt"), ("task=language-modelling", *SHAPE, *more)


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory, write_pairs: Write
) -> Callable[[str], Path]:
    """A model folder of each kind, hardly trained; made when first asked for."""
    here = tmp_path_factory.mktemp("kinds")

    def folder(kind: str) -> Path:
        out = here / kind / "model"
        if not out.is_dir():
            out.parent.mkdir(exist_ok=True)
            train, settings = text_for(kind, out.parent, write_pairs)
            weft.train(
                out=out,
                train=train,
                settings=(*settings, *KINDS[kind], *ONE_STEP),
                quiet=True,
            )
        return out

    return folder


def shaken_weights(weights: Any, by: float = 0.3) -> Any:
    """Weights far from their start values."""
    generator = np.random.default_rng(5)

    def shake(array: np.ndarray) -> np.ndarray:
        noise = generator.standard_normal(array.shape, np.float32)
        return array + noise * np.float32(by)

    return changed(weights, shake)


def task_in(folder: Path, by: float = 0.3) -> Any:
    """The task of a folder, as `weft selfcheck` has it, its weights shaken."""
    task = task_without_torch(folder)
    return replace(task, weights=shaken_weights(task.weights, by))


def task_without_torch(folder: Path) -> Any:
    """The task of a folder as a CPU has it, also where there is a GPU."""
    config = open_model_folder(folder).config
    return kind_of(config.task).load(folder, machine_for_use())


def torch_task_in(folder: Path) -> Any:
    """The same where PyTorch takes the model's steps."""
    task: Any = load_task(folder, kernels="torch")
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in task.model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.3)
    return brief(task)


def brief(task: Any) -> Any:
    """The same task, its translations no longer than their sources: without an engine they take
    their time, and those of random weights have no end.
    """
    if task.name != "translation":
        return task
    limits = {"max_len_ratio": 1.0, "max_len_extra": 2}
    decoding = task.config.decoding.model_copy(update=limits)
    config = task.config.model_copy(update={"decoding": decoding})
    return replace(task, config=config)


def failing(proofs: list[Proof]) -> list[str]:
    return [proof.what.partition(":")[0] for proof in proofs if not proof.holds]


def failing_of_torch(task: Any) -> list[str]:
    return failing(selfcheck(task, torch_reference_of(task)))


def number_of_proofs(task: Any) -> int:
    of_tasks = {"translation": 7, "language-modelling": 5, "classification": 3}
    return of_tasks[task.name]


@pytest.mark.parametrize(
    "kind",
    of_which(
        [kind for kind in KINDS if kind != "recurrent"],
        *("modern", "packed", "language model", "classifier", "bag"),
    ),
)
def test_all_proofs_hold_on_a_sound_model(
    folders: Callable[[str], Path], kind: str
) -> None:
    task = task_in(folders(kind))
    proofs = selfcheck(task)
    assert failing(proofs) == []
    assert len(proofs) == number_of_proofs(task)


@pytest.mark.parametrize(
    "kind",
    [
        "recurrent",
        pytest.param("modern", marks=pytest.mark.long),
        pytest.param("n-grams", marks=pytest.mark.long),
        "classifier",
        "bag",
    ],
)
def test_all_proofs_hold_where_pytorch_takes_the_steps(
    folders: Callable[[str], Path], kind: str
) -> None:
    task = torch_task_in(folders(kind))
    proofs = selfcheck(task, torch_reference_of(task))
    assert failing(proofs) == []
    assert len(proofs) == number_of_proofs(task)
    assert not task.model.training


def test_all_proofs_hold_without_an_engine(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "engine_of", lambda *given: None)
    task = brief(task_in(folders("transformer")))
    assert task.predictor().engine is None
    assert failing(selfcheck(task)) == []


@pytest.mark.parametrize(("kind", "by"), [("n-grams", 30.0), ("transformer", 3.0)])
def test_rounding_that_large_weights_magnify_is_no_fault(
    folders: Callable[[str], Path], kind: str, by: float
) -> None:
    """Of such models two sums in another order are more than a thousandth of a nat apart."""
    proofs = selfcheck(task_in(folders(kind), by))
    assert failing(proofs) == []
    apart = [
        float(found[1])
        for proof in proofs
        if (found := re.search(r"apart by at most (\S+) nats", proof.evidence))
    ]
    assert max(apart) > TOLERANCE


def test_an_int8_folder_holds(
    tiny_folder: Path, write_pairs: Write, tmp_path: Path
) -> None:
    tiny = task_without_torch(tiny_folder)
    if reason := tiny.why_no_engine():
        pytest.skip(reason)
    pairs = [write_pairs(20)]
    quantize(
        tiny_folder,
        pairs,
        tmp_path / "int8",
        max_bleu_loss=100.0,
        shortlist=pairs,
    )
    task = task_without_torch(tmp_path / "int8")
    for shortlist in ("off", "on"):
        listed = replace(
            task, config=task.config.model_copy(update={"shortlist": shortlist})
        )
        proofs = selfcheck(listed)
        assert failing(proofs) == []
        searched = [proof.evidence for proof in proofs if "search" in proof.what]
        assert len(searched) == 1
        assert "0.5 allowed" in searched[0]


def test_a_weight_that_is_no_number(folders: Callable[[str], Path]) -> None:
    task = task_in(folders("transformer"))
    task.weights.decoder_norm.gain[3] = np.nan
    (proof,) = selfcheck(task)
    assert (proof.holds, proof.evidence) == (False, "decoder_norm.gain")
    task = torch_task_in(folders("recurrent"))
    with torch.no_grad():
        task.model.get_parameter("combine.bias")[3] = torch.inf
    (proof,) = selfcheck(task, torch_reference_of(task))
    assert (proof.holds, proof.evidence) == (False, "combine.bias")


def attending_without(dimensions: int) -> Callable[..., Any]:
    """Attention in plain NumPy that ignores masks of so many dimensions: those of what comes later
    have two, those of padding four.
    """
    original = plain.attention

    def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
        is_ignored = mask is not None and mask.ndim == dimensions
        return original(query, key, value, None if is_ignored else mask)

    return attend


@pytest.mark.parametrize("kind", ["transformer", "language model"])
def test_a_decoder_that_sees_what_comes_later(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(plain, "attention", attending_without(2))
    found = failing(selfcheck(task_in(folders(kind))))
    assert "what comes later is not seen" in found
    assert "cached = uncached" in found


@pytest.mark.long
def test_a_pytorch_decoder_that_sees_what_comes_later(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("transformer", "causal"):
        original = attention.attention_mask
        monkeypatch.setattr(
            f"weft.model.{module}.attention_mask",
            lambda padding, *more, original=original: (
                None if padding is None else original(padding)
            ),
        )
    for kind in ("transformer", "language model"):
        found = failing_of_torch(torch_task_in(folders(kind)))
        assert "what comes later is not seen" in found
        assert "cached = uncached" in found


@pytest.mark.parametrize("kind", ["transformer", "classifier"])
def test_padding_that_is_read(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    task = task_in(folders(kind))
    if kind == "transformer" and task.predictor().engine is None:
        pytest.skip("no engine here: what searches is broken too")
    monkeypatch.setattr(plain, "attention", attending_without(4))
    assert failing(selfcheck(task)) == ["padding and the batch change nothing"]


def test_padding_that_pytorch_reads(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = torch_task_in(folders("recurrent"))
    monkeypatch.setattr(
        recurrent, "attention_weights", lambda scores, padding: scores.softmax(-1)
    )
    assert "padding and the batch change nothing" in failing_of_torch(task)
    classifier = torch_task_in(folders("classifier"))
    classifier.model.pad_id = classifier.model.encoder.pad_id = PAD_ID + 9
    found = failing_of_torch(classifier)
    assert found == ["padding and the batch change nothing"]


@pytest.mark.parametrize("kind", ["transformer", "language model"])
def test_a_cache_that_forgets(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    task = task_in(folders(kind))
    decode = PlainTransformer.decode

    def forgetful(model: Any, ids: Any, cache: Any, *more: Any, **named: Any) -> Any:
        states, newer = decode(model, ids, cache, *more, **named)
        if ids.shape[1] == 1:
            newer = replace(newer, past=tuple(part.until(1) for part in newer.past))
        return states, newer

    monkeypatch.setattr(PlainTransformer, "decode", forgetful)
    assert "cached = uncached" in failing(selfcheck(task))


def test_a_pytorch_cache_that_forgets(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = torch_task_in(folders("transformer"))
    decode = Seq2SeqTransformer.decode

    def forgetful(
        model: Any, ids: torch.Tensor, cache: DecoderCache, record: Any = None
    ) -> Any:
        states, newer = decode(model, ids, cache, record)
        if ids.shape[1] == 1:
            newer = replace(newer, layers=newer.layers[::-1])
        return states, newer

    monkeypatch.setattr(Seq2SeqTransformer, "decode", forgetful)
    assert "cached = uncached" in failing_of_torch(task)


def test_a_translator_of_another_model(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its searches are not those of the weights that are read."""
    task = task_in(folders("transformer"))
    other = replace(task, weights=shaken_weights(task.weights))
    predictor = other.predictor()
    monkeypatch.setattr(Translation, "predictor", lambda self: predictor)
    found = failing(selfcheck(task))
    assert found == ["beam 1 = greedy", "probabilities of a search = the model's own"]


# where an engine is made, what makes it there, and the proofs that hold it to the weights
ENGINES: dict[str, tuple[Any, Any, list[str]]] = {
    "transformer": (
        translation,
        engine_of,
        ["beam 1 = greedy", "probabilities of a search = the model's own"],
    ),
    "language model": (
        language_modelling,
        writer_of,
        ["text written greedily is the model's own"],
    ),
    "classifier": (
        classification,
        native_classifier_of,
        ["probabilities are the model's own"],
    ),
}


def with_other_gains(weights: Any) -> Any:
    """The same weights but for every other gain of the last norm."""
    if hasattr(weights, "encoder_norm"):
        name = "decoder_norm" if weights.decoder else "encoder_norm"
        norm = getattr(weights, name)
        gain = norm.gain.copy()
        gain[::2] *= 1.5
        return replace(weights, **{name: replace(norm, gain=gain)})
    return replace(weights, encoder=with_other_gains(weights.encoder))


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_with_other_weights(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is held to the weights of the folder."""
    task = task_in(folders(kind))
    room, make, expected = ENGINES[kind]
    engine = make(task.weights, *["float32"] * (kind != "classifier"))
    if engine is None:
        pytest.skip("no engine here")
    monkeypatch.setattr(
        room,
        make.__name__,
        lambda weights, *more: make(with_other_gains(weights), *more),
    )
    assert failing(selfcheck(task)) == expected
