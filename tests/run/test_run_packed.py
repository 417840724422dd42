"""A run that takes texts end to end, as on a GPU, learns what a run with padding learns, whatever
the task.
"""

from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import weft
from weft.kernels.machine import Machine
from weft.model.packing import Packing

COMMON = (
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.dropout=0",
    "training.optimizer=sgd",
    "training.learning_rate=0.1",
    "training.warmup_steps=0",
    "training.max_steps=8",
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
LANGUAGE = (
    "task=language-modelling",
    "data.documents=line",
    "tokenizer.kind=character",
    "model.num_decoder_layers=2",
    "batches.batch_size=3",
)
CASES = {
    "translation": (
        "model.num_encoder_layers=2",
        "model.num_decoder_layers=2",
        "tokenizer.joint=false",
        "tokenizer.src.kind=word",
        "tokenizer.tgt.kind=word",
        "batches.tokens_per_batch=150",
    ),
    "streams": (*LANGUAGE, "batches.packing=stream", "batches.window_len=17"),
    "documents": (*LANGUAGE, "batches.packing=packed", "batches.window_len=48"),
    "classification": (
        "task=classification",
        "tokenizer.kind=word",
        "model.num_encoder_layers=2",
        "model.ngrams=2",
        "model.ngram_buckets=97",
        "batches.tokens_per_batch=80",
    ),
}
WORDS = (
    ("the cat", "a dog", "one bird", "no fish"),
    ("sees", "hears", "finds"),
    ("it.", "you, too.", "us all now."),
)
SENTENCES = [" ".join(words) for words in product(*WORDS)]


def write(path: Path, case: str) -> str:
    rows = {
        "translation": [f"{text}\t{text[::-1]} {text[:5]}" for text in SENTENCES],
        "classification": [
            "text\tlabel",
            *(f"{text}\t{text[-3:]}" for text in SENTENCES),
        ],
    }
    text = path / ("train.en-de.tsv" if case == "translation" else "train.tsv")
    text.write_text("\n".join(rows.get(case, SENTENCES)) + "\n", "utf-8")
    return str(text)


@pytest.mark.parametrize("case", CASES)
def test_both_learn_the_same(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, settings, packed = write(tmp_path, case), (*COMMON, *CASES[case]), []
    weights = []
    for packs in (False, True):
        monkeypatch.setattr(Machine, "packs", property(lambda self, packs=packs: packs))
        made = Packing.of
        monkeypatch.setattr(
            Packing, "of", lambda *a, made=made, **m: packed.append(1) or made(*a, **m)
        )
        weft.train(out=tmp_path / str(packs), train=text, settings=settings, quiet=True)
        weights.append(load_file(tmp_path / str(packs) / "model.safetensors"))
        assert bool(packed) == packs
    begun = {name: tensor for name, tensor in weights[0].items() if tensor.std() > 0}
    assert begun
    for name, tensor in weights[0].items():
        torch.testing.assert_close(
            weights[1][name],
            tensor,
            rtol=1e-3,
            atol=1e-5,
            msg=lambda m, n=name: f"{n}: {m}",
        )
