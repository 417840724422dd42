"""The modern translator as T5Gemma: written, opened there, and the same model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import random_models
from weft.errors import FolderError, UsageError
from weft.ship.exporting import export
from weft.ship.huggingface import t5gemma
from weft.ship.huggingface.t5gemma import most_lost
from weft.ship.huggingface.target import HuggingFace
from weft.ship.tensors import same, shifted

VARIANTS = {
    "as it is": (),
    "shared keys and values, swish, two vocabularies": (
        "model.num_key_value_heads=2",
        'model.activation="swiglu"',
        "tokenizer.joint=false",
    ),
    "untied, one vocabulary, wide heads": (
        "model.tie_embeddings=false",
        "model.head_dim=6",
    ),
}
REFUSED = {
    "norm = rms with sandwich_norm": "model.sandwich_norm=false",
    "model.query_key_norm": "model.query_key_norm=true",
    "model.embedding_norm": "model.embedding_norm=true",
    "takes geglu and swiglu": 'model.activation="relu"',
    "takes rotary": 'model.positions="learned"',
    "bias = true .it has no biases": "model.bias=true",
    "projection_bias = true .it has no biases": "model.projection_bias=true",
    "always scales": "model.scale_embeddings=false",
}


def exported(place: Path, *settings: str) -> Any:
    folder = random_models.write_folder("en-de-modern", place / "model", *settings)
    dev = random_models.write_dev("translation", place)
    return export(folder, HuggingFace(), place / "out", [dev])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_modern_translator_is_the_same_model_there(
    variant: str, tmp_path: Path
) -> None:
    made = exported(tmp_path, *VARIANTS[variant])
    assert made.form == "T5GemmaForConditionalGeneration"
    assert made.certificate.failed is None
    checks = {check.name: check for check in made.certificate.checks}
    assert [*checks] == ["weights", "ids", "logits", "greedy", "beam", "use"]
    assert checks["logits"].largest < 5e-5
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    sizes = [config[side]["vocab_size"] for side in ("encoder", "decoder")]
    assert (sizes[0] > sizes[1]) == ("two vocabularies" in variant)


def test_what_t5gemma_has_not_is_refused_with_the_setting(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (reason, setting) in enumerate(REFUSED.items()):
        with subtests.test(setting):
            with pytest.raises(UsageError, match=f"T5Gemma.*{reason}"):
                exported(tmp_path / str(number), setting)
            assert not (tmp_path / str(number) / "out").exists()


def test_only_gains_below_a_half_lose_anything_and_how_much_is_known() -> None:
    generator = np.random.default_rng(1)
    small = generator.uniform(0.0, 0.5, 10_000).astype(np.float32)
    assert 0 < most_lost(small) <= 2.0**-25
    large = generator.uniform(0.5, 16.0, 10_000).astype(np.float32)
    assert most_lost(large) == 0.0
    negative = generator.uniform(-1.0, 0.0, 10_000).astype(np.float32)
    assert 2.0**-25 < most_lost(negative) <= 2.0**-24


def test_a_gain_that_moves_more_than_rounding_moves_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault X1 where the certificate is not exact: the map itself is wrong."""

    def gain(name: str, of: str) -> Any:
        there = shifted(same(f"{name}.weight", f"{of}.weight"), -1.0)
        back = shifted(same(f"{name}.weight", f"{of}.weight"), -1.0 - 2.0**-22)
        return type(there)(there.name, there.of, there.make, back.back)

    monkeypatch.setattr(t5gemma, "_gain", gain)
    with pytest.raises(FolderError, match=r"numbers of the weights: .*after\.weight"):
        exported(tmp_path)
