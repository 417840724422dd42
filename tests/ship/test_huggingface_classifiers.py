"""Classifiers as classes of transformers: the same model, labels and probabilities."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import random_models
import weft
from homes import BERT, SEVERAL
from homes import CLASSIFIERS as CASES
from weft.errors import FolderError, UsageError
from weft.ship.exporting import export
from weft.ship.huggingface.classes import why_no_home
from weft.ship.huggingface.target import HuggingFace
from weft.ship.source import Source
from weft.ship.target import Asked

REFUSED = {
    "classify-fast": (
        ("classify-fast",),
        r"model\.ngrams = 1, not 3; .* \(recipe classify-modern has them\)",
    ),
    "imdb-classifier": (
        ("imdb-classifier",),
        r'BertForSequenceClassification, .* model\.pooling = "first", not "mean"; .* model\.embedding_norm = true',
    ),
    "a norm of queries": (
        ("classify-modern", "model.query_key_norm=true"),
        r"UltrabertForSequenceClassification, .* model\.query_key_norm = false, not true",
    ),
}


def exported(place: Path, name: str, *settings: str, asked: Any = None) -> Any:
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = random_models.write_dev("classification", place)
    return export(folder, HuggingFace(), place / "out", [dev], asked)


def pipeline_of(place: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    folder = str(place / "out")
    return transformers.pipeline("text-classification", folder, truncation=True)


@pytest.mark.parametrize("case", CASES)
def test_a_classifier_is_the_same_in_its_class(case: str, tmp_path: Path) -> None:
    home, name, *settings = CASES[case]
    made = exported(tmp_path, name, *settings)
    assert made.form == f"{home}ForSequenceClassification"
    checks = {check.name: check for check in made.certificate.checks}
    assert [*checks] == ["weights", "ids", "logits", "use"]
    assert checks["logits"].largest < 2e-5
    assert checks["use"].equal == checks["use"].compared == 5
    classify = pipeline_of(tmp_path)
    answers = weft.load(tmp_path / "model").classify(random_models.TEXTS[:3])
    for text, own in zip(random_models.TEXTS, answers, strict=False):
        found = {given["label"]: given["score"] for given in classify(text, top_k=None)}
        assert found == pytest.approx(own.probabilities, abs=1e-5)
        # the pipeline as it comes has the label that is most probable
        assert classify(text)[0]["label"] == max(found, key=lambda label: found[label])


def test_a_longer_text_is_cut_as_in_weft(tmp_path: Path) -> None:
    exported(tmp_path, *BERT, asked=Asked(is_certified=False))
    text = " ".join(random_models.TEXTS)
    own = weft.load(tmp_path / "model").classify(text)[0]
    assert own.truncated
    (found,) = pipeline_of(tmp_path)(text, top_k=1)
    assert found["label"] == own.label
    assert found["score"] == pytest.approx(own.probability, abs=1e-5)


def test_what_weft_does_more_is_told(tmp_path: Path) -> None:
    settings = ('data.too_long="windows"', SEVERAL)
    unproved = Asked(is_certified=False)
    made = exported(tmp_path, "classify-modern", *settings, asked=unproved)
    windows, empty, labels = made.notes
    assert "windows" in windows
    assert "empty or white space alone" in empty
    assert "top_k=None" in labels
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert f"- {windows}\n" in card


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_home_is_refused_with_what_has(what: str, tmp_path: Path) -> None:
    case, reason = REFUSED[what]
    with pytest.raises(UsageError, match=reason):
        exported(tmp_path, *case)
    assert not (tmp_path / "out").exists()


def test_words_of_another_package_are_refused() -> None:
    task = random_models.tiny_task(*BERT)
    source = Source(Path("model"), task, task, {})
    assert why_no_home(source) == ""
    (tokenizer,) = source.tokenizers
    tokenizer.settings = tokenizer.settings.model_copy(update={"words": "spacy"})
    assert why_no_home(source).startswith('tokenizer.words = "spacy": ')


def test_a_library_without_the_class_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As versions before 5.20 are."""
    old = SimpleNamespace()
    monkeypatch.setattr("weft.ship.huggingface.target.load", lambda package: old)
    with pytest.raises(UsageError, match=r"has no Ultrabert.* --uncertified"):
        exported(tmp_path, "classify-modern")
    assert not (tmp_path / "out").exists()


def test_a_changed_number_of_a_multiplied_table_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is mapped back with a tolerance, which lets no change through."""
    real = HuggingFace.write

    def write(self: Any, source: Any, place: Path, asked: Any) -> Any:
        written = real(self, source, place, asked)
        assert written.loose
        path = place / "model.safetensors"
        content = path.read_bytes()
        (name,) = written.loose
        tensor = next(tensor for tensor in written.tensors if tensor.name == name)
        array = tensor.made(source.arrays)
        changed = array.copy()
        changed.view("u4")[7, 3] ^= 1
        assert content.count(array.tobytes()) == 1
        path.write_bytes(content.replace(array.tobytes(), changed.tobytes()))
        return written

    monkeypatch.setattr(HuggingFace, "write", write)
    with pytest.raises(FolderError, match=r"word_embeddings\.weight\[7, 3\] is"):
        exported(tmp_path, *BERT)
    assert not (tmp_path / "out").exists()
