"""Packages of Argos Translate: written, read from their zip, and the same models."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import random_models
from weft.errors import FolderError, UsageError
from weft.recipes.file import load_recipe
from weft.ship.argos import target as argos_target
from weft.ship.argos.package import Package, code_of
from weft.ship.argos.running import Runner
from weft.ship.argos.target import Argos
from weft.ship.ctranslate2.model_file import arrays_in
from weft.ship.exporting import Export, export
from weft.ship.source import open_source
from weft.ship.target import Asked
from weft.ship.tokenizers.sentencepiece_file import ReadBySentencePiece

pytest.importorskip("ctranslate2", reason="ctranslate2 writes the model")
pytest.importorskip("sentencepiece", reason="sentencepiece compiles its rules")
pytest.importorskip("onnx", reason="onnx writes the rules of sentences")

NAME = "translate-de_en-1_0"
UNIGRAM = 'tokenizer.kind="unigram"'
CASES: dict[str, tuple[str, ...]] = {
    "bpe, modern, no bias, int8": ("en-de-modern",),
    "two vocabularies, learned positions": (
        "demo",
        'model.positions="learned"',
        'tokenizer.src.kind="unigram"',
    ),
}
REFUSED: dict[str, tuple[str, ...]] = {
    "it has translators alone": ("lm-modern",),
    'tokenizer.src.kind = "word": .* train with tokenizer.src.kind = "unigram"': (
        "demo",
    ),
    "model.query_key_norm = true: .*": ("en-de", "model.query_key_norm=true"),
}


def exported(
    place: Path, name: str, *settings: str, precision: str = "float32"
) -> Export:
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = random_models.write_dev(load_recipe(name).task, place)
    return export(folder, Argos(), place / "out", [dev], Asked(precision=precision))


def package_in(place: Path) -> Package:
    return Package(place / "out" / f"{NAME}.argosmodel")


def arrays_of(package: Package) -> dict[str, Any]:
    content = np.frombuffer(package.read("model/model.bin"), np.uint8)
    return arrays_in(content, "model.bin")


def test_every_vocabulary_and_option_with_a_home_is_the_same_model_there(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (case, (name, *settings)) in enumerate(CASES.items()):
        with subtests.test(case):
            place = tmp_path / str(number)
            precision = "int8" if "int8" in case else "float32"
            made = exported(place, name, *settings, precision=precision)
            assert made.certificate is not None
            assert made.certificate.failed is None
            checks = {check.name: check for check in made.certificate.checks}
            assert [*checks] == ["weights", "ids", "logits", "greedy", "beam", "use"]
            arrays = arrays_of(package_in(place))
            hidden = "projection.bias" in open_source(place / "model").arrays
            assert ("of which 3 are not there" in checks["weights"].about) == hidden
            assert (arrays["decoder/projection/bias"][:3] == -1e9).all()
            for side in ("encoder", "decoder"):
                table = arrays.get(f"{side}/position_encodings/encodings")
                assert table is None or len(table) == 1025


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator with unigram pieces, and its package."""
    place = tmp_path_factory.mktemp("shared")
    made = exported(place, "en-de", UNIGRAM)
    assert made.certificate is not None
    assert made.certificate.failed is None
    return place


def test_a_package_is_a_folder_in_a_zip(shared: Path) -> None:
    package = package_in(shared)
    with ZipFile(package.path) as archive:
        assert archive.testzip() is None
        names = {name.removeprefix(f"{NAME}/") for name in archive.namelist()}
    assert names >= {
        "metadata.json",
        "model/model.bin",
        "model/config.json",
        "sentencepiece.model",
        "minisbd/rules.onnx",
        "README.md",
    }
    assert json.loads(package.read("metadata.json")) == {
        "package_version": "1.0",
        "argos_version": "1.11",
        "from_code": "de",
        "from_name": "German",
        "to_code": "en",
        "to_name": "English",
        "type": "translate",
    }
    assert json.loads(package.read("model/config.json"))["add_source_eos"] is True
    card = package.read("README.md").decode("utf-8")
    assert card == (shared / "out" / "README.md").read_text("utf-8")
    assert "is not the same" not in card
    assert "underscore" in card
    assert f'package.install_from_path("THIS_FOLDER/{NAME}.argosmodel")' in card
    beside = {path.name for path in (shared / "out").iterdir()}
    assert beside >= {package.path.name, "parity.json", "README.md"}
    assert not any(name.startswith("tmp") for name in beside)


def test_second_names_have_the_rows_of_their_pieces_and_are_never_written(
    shared: Path,
) -> None:
    package = package_in(shared)
    names = json.loads(package.read("model/shared_vocabulary.json"))
    size = open_source(shared / "model").tokenizers[0].vocab_size
    assert len(names) > size
    arrays = arrays_of(package)
    table = arrays["encoder/embeddings_0/weight"]
    assert len(table) == len(names)
    assert arrays["decoder/embeddings/weight"] is table
    own = {row.tobytes() for row in table[:size]}
    assert all(row.tobytes() in own for row in table[size:])
    assert (arrays["decoder/projection/bias"][size:] == -1e9).all()


@pytest.mark.parametrize(
    ("array", "place", "said"),
    [
        ("decoder/embeddings/weight", -1, r"embeddings/weight\["),
        ("decoder/projection/bias", 0, r"projection/bias\[0\] is .*, not -1"),
    ],
)
def test_one_other_number_in_a_package_is_found(
    array: str,
    place: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fault X1 in this form: a row of a second name, a bias that is not the model's."""
    real = argos_target.write_model

    def write(source: Any, tensors: Any, tokens: Any, folder: Path, asked: str) -> Any:
        written = real(source, tensors, tokens, folder, asked)
        path = folder / "model.bin"
        content = bytearray(path.read_bytes())
        kept = arrays_in(np.frombuffer(bytes(content), np.uint8), "")[array]
        start = content.index(kept.tobytes())
        number = np.ravel_multi_index(
            (place % len(kept), *[0] * (kept.ndim - 1)), kept.shape
        )
        content[start + 4 * int(number)] ^= 1
        path.write_bytes(content)
        return written

    monkeypatch.setattr(argos_target, "write_model", write)
    with pytest.raises(FolderError, match=f"numbers of the weights: .*{said}"):
        exported(tmp_path, "en-de")
    assert not (tmp_path / "out").exists()


def test_what_has_no_home_is_refused_with_the_setting_that_has_one(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (said, (name, *settings)) in enumerate(REFUSED.items()):
        with subtests.test(said):
            with pytest.raises(UsageError, match=f"has no home in argos: {said}"):
                exported(tmp_path / str(number), name, *settings)
            assert not (tmp_path / str(number) / "out").exists()


def test_byte_pairs_that_are_cut_otherwise_are_refused_with_their_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such line is known; the newest version of sentencepiece may have one."""

    def differing(self: Any, texts: Sequence[str]) -> list[str]:
        return [text for text in texts if text.startswith("Ein")]

    monkeypatch.setattr(ReadBySentencePiece, "differing", differing)
    said = (
        '"bpe": 1 of 5 lines have other pieces there, such as "Ein .*kind = "unigram"'
    )
    with pytest.raises(UsageError, match=said):
        exported(tmp_path, "en-de")
    assert not (tmp_path / "out").exists()


def test_languages_that_nobody_named_are_asked_for(tmp_path: Path) -> None:
    source = open_source(random_models.write_folder("en-de", tmp_path / "model"))
    config = source.config.model_copy(update={"src_lang": "und"})
    unnamed = replace(source, task=replace(source.task, config=config))
    reason = Argos().why_not(unnamed)
    assert "train with data.src_lang" in reason
    assert "data.tgt_lang" not in reason


def test_languages_have_the_codes_of_argos_translate() -> None:
    codes = {"de": "de", "de-AT": "de", "zh-Hans": "zh", "zh-hant": "zt", "pt-br": "pb"}
    assert {language: code_of(language) for language in codes} == codes


def test_a_text_is_translated_line_by_line_and_sentence_by_sentence(
    shared: Path,
) -> None:
    runner = Runner(package_in(shared))
    real = runner.pieces
    read: list[str] = []

    class Pieces:
        """The package's pieces; every output is the same."""

        def encode(self, text: str, out_type: type) -> list[str]:
            read.append(text)
            return real.encode(text, out_type=out_type)

        def decode_pieces(self, pieces: list[str]) -> str:
            return " a_b▁c"

    runner.pieces = Pieces()
    assert runner.translate("One. Two!\n\nThree") == "a b c\na b c\na b c"
    assert read == ["One.", "Two!", "Three"]
