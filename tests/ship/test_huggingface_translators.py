"""Translators as classes of transformers: written, opened there, and the same model."""

import json
from pathlib import Path
from typing import Any

import pytest

import random_models
from cards import code_in
from pushed import of_which
from weft.errors import UsageError
from weft.ship import exporting
from weft.ship.exporting import export
from weft.ship.huggingface.target import HuggingFace

CASES = {
    "en-de": "BlenderbotForConditionalGeneration",
    "en-zh": "BlenderbotForConditionalGeneration",
    "annotated-en-zh": "BlenderbotForConditionalGeneration",
    "toy-de-en": "MarianMTModel",
    "seq2seq-transformer": "MarianMTModel",
}
VARIANTS = {
    "learned positions": ("en-de", 'model.positions="learned"'),
    "no biases": ("en-de", "model.bias=false"),
    "untied, one vocabulary": ("en-de", "model.tie_embeddings=false"),
    "norms last, one table": ("en-de", "model.norm_first=false"),
    "many positions": ("en-zh", "model.max_len=2049"),
    "gelu": ("demo", 'model.activation="gelu"'),
}


def exported(name: str, place: Path, *settings: str) -> Any:
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = random_models.write_dev("translation", place)
    return export(folder, HuggingFace(), place / "out", [dev])


@pytest.mark.parametrize("name", CASES)
def test_every_recipe_of_a_home_is_the_same_model_there(
    name: str, tmp_path: Path
) -> None:
    # made tiny, this recipe has heads of another width than its own
    settings = ("model.head_dim=4",) if name == "toy-de-en" else ()
    made = exported(name, tmp_path, *settings)
    assert made.form == CASES[name]
    checks = {check.name: check for check in made.certificate.checks}
    assert [*checks] == ["weights", "ids", "logits", "greedy", "beam", "use"]
    assert checks["logits"].largest < 2e-5
    told = json.loads((tmp_path / "out" / "parity.json").read_text("utf-8"))
    assert told["checks"][0]["compared"] == checks["weights"].compared > 1000


@pytest.mark.parametrize(
    "variant", of_which(VARIANTS, *(VARIANTS.keys() - {"many positions", "gelu"}))
)
def test_every_option_of_a_home_is_taken_over(variant: str, tmp_path: Path) -> None:
    name, *settings = VARIANTS[variant]
    made = exported(name, tmp_path, *settings)
    assert made.certificate.failed is None
    expected = "Pegasus" if variant == "many positions" else ""
    assert expected in made.form


def test_what_has_no_home_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="num_key_value_heads"):
        exported("en-de", tmp_path, "model.num_key_value_heads=2")
    assert not (tmp_path / "out").exists()


def test_the_card_says_what_was_found_and_invents_no_license(tmp_path: Path) -> None:
    exported("en-de", tmp_path)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    head, body = card.removeprefix("---\n").split("---\n", maxsplit=1)
    assert "pipeline_tag: translation" in head
    assert "language:\n  - de\n  - en\n" in head
    assert "license" not in head
    assert "License of the model: none was stated" in body
    assert "on 5 pairs that the exporter named (trained on: not known):" in body
    assert "logits: " in body


def test_what_is_handed_on_quotes_none_of_the_text(tmp_path: Path) -> None:
    made = exported("en-de", tmp_path)
    # a random model writes other things there, and whoever exports it sees what
    assert "Ein kleiner Hund" in made.certificate.checks[-1].first
    for path in (tmp_path / "out").iterdir():
        assert b"kleiner Hund" not in path.read_bytes()


def test_the_lines_of_the_card_translate_a_text_of_any_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is too long is cut behind 60 ids, the end among them, as in Weft."""
    folder = random_models.write_folder("en-de", tmp_path / "model", "model.max_len=61")
    asked = exporting.Asked(is_certified=False)
    export(folder, HuggingFace(), tmp_path / "out", asked=asked)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "one sentence at a time" in card
    assert "beyond 60 tokens is cut off" in card
    (code,) = code_in(card, "python", str(tmp_path / "out"))
    names: dict[str, Any] = {}
    exec(code.replace("A sentence.", "A small dog runs. " * 60), names)
    assert capsys.readouterr().out.strip()
    (ids,) = names["row"]["input_ids"].tolist()
    assert len(ids) == 60
    assert ids[-1] == 3


def test_without_a_comparison_the_card_says_so(tmp_path: Path) -> None:
    folder = random_models.write_folder("en-de", tmp_path / "model")
    asked = exporting.Asked(is_certified=False)
    export(folder, HuggingFace(), tmp_path / "out", asked=asked)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "was not compared" in card
    assert not (tmp_path / "out" / "parity.json").exists()
