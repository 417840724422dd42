"""The proofs hold on sound models of each kind, and each fails on a model that breaks what it is
about.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from weft.data.tokenizer import PAD_ID
from weft.inspection.selfcheck import TOLERANCE, Proof, selfcheck
from weft.kernels.machine import Machine
from weft.model import attention, recurrent
from weft.model.cache import DecoderCache
from weft.ship.quantization import quantize
from weft.tasks.choice import load_trainable
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_translation import TrainableTranslation

Write = Callable[[int], str]
PLAIN = Machine("cpu", "float32", 1, "tests are small")
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


def shaken(
    task: TrainableTask[Any, Any, Any], by: float = 0.3
) -> TrainableTask[Any, Any, Any]:
    """Weights far from their start values."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in task.model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * by)
    return task


def failing(proofs: list[Proof]) -> list[str]:
    return [proof.what.partition(":")[0] for proof in proofs if not proof.holds]


@pytest.mark.parametrize("kind", KINDS)
def test_all_proofs_hold_on_a_sound_model(
    folders: Callable[[str], Path], kind: str
) -> None:
    task = shaken(load_trainable(folders(kind), PLAIN))
    proofs = selfcheck(task)
    assert failing(proofs) == []
    assert len(proofs) == {"classifier": 3, "bag": 3}.get(
        kind, 7 if isinstance(task, TrainableTranslation) else 5
    )
    assert not task.model.training


@pytest.mark.parametrize(("kind", "by"), [("n-grams", 30.0), ("transformer", 3.0)])
def test_rounding_that_large_weights_magnify_is_no_fault(
    folders: Callable[[str], Path], kind: str, by: float
) -> None:
    """Of such models two sums in another order are more than a thousandth of a nat apart."""
    proofs = selfcheck(shaken(load_trainable(folders(kind), PLAIN), by))
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
    if reason := TrainableTranslation.load(tiny_folder, PLAIN).why_no_engine():
        pytest.skip(reason)
    pairs = [write_pairs(20)]
    quantize(
        tiny_folder,
        pairs,
        tmp_path / "int8",
        max_bleu_loss=100.0,
        shortlist=pairs,
    )
    task: Any = load_trainable(tmp_path / "int8", PLAIN)
    for shortlist in ("off", "on"):
        listed = replace(
            task, config=task.config.model_copy(update={"shortlist": shortlist})
        )
        assert failing(selfcheck(listed)) == []


def test_a_weight_that_is_no_number(folders: Callable[[str], Path]) -> None:
    task = load_trainable(folders("transformer"), PLAIN)
    with torch.no_grad():
        task.model.get_parameter("decoder_norm.weight")[3] = torch.nan
    (proof,) = selfcheck(task)
    assert (proof.holds, proof.evidence) == (False, "decoder_norm.weight")


def test_a_decoder_that_sees_what_comes_later(
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
        found = failing(selfcheck(shaken(load_trainable(folders(kind), PLAIN))))
        assert "what comes later is not seen" in found
        assert "cached = uncached" in found


def test_padding_that_is_read(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = shaken(load_trainable(folders("recurrent"), PLAIN))
    monkeypatch.setattr(
        recurrent, "attention_weights", lambda scores, padding: scores.softmax(-1)
    )
    assert "padding and the batch change nothing" in failing(selfcheck(task))
    classifier = shaken(load_trainable(folders("classifier"), PLAIN))
    classifier.model.pad_id = classifier.model.encoder.pad_id = PAD_ID + 9  # type: ignore[assignment, union-attr]
    assert failing(selfcheck(classifier)) == ["padding and the batch change nothing"]


def test_a_cache_that_forgets(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task: Any = shaken(load_trainable(folders("transformer"), PLAIN))
    decode = type(task.model).decode

    def forgetful(
        model: Any, ids: torch.Tensor, cache: DecoderCache, record: Any = None
    ) -> Any:
        states, newer = decode(model, ids, cache, record)
        return states, replace(newer, layers=newer.layers[::-1]) if ids.shape[
            1
        ] == 1 else newer

    monkeypatch.setattr(type(task.model), "decode", forgetful)
    assert "cached = uncached" in failing(selfcheck(task))


def test_an_engine_of_another_model(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its searches are not those of the weights that are read."""
    task: Any = shaken(load_trainable(folders("transformer"), PLAIN))
    other = shaken(shaken(load_trainable(folders("transformer"), PLAIN)))
    predictor = other.predictor()
    monkeypatch.setattr(TrainableTranslation, "predictor", lambda self: predictor)
    found = failing(selfcheck(task))
    assert found == ["beam 1 = greedy", "probabilities of a search = the model's own"]


def test_a_classifier_of_other_weights(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task: Any = shaken(load_trainable(folders("classifier"), PLAIN))
    other: Any = shaken(shaken(load_trainable(folders("classifier"), PLAIN)))
    native, written = other.predictor(), TrainableClassification.predictor
    monkeypatch.setattr(
        TrainableClassification,
        "predictor",
        lambda self: written(self) if self.machine.plain else native,
    )
    assert failing(selfcheck(task)) == ["probabilities are the model's own"]
