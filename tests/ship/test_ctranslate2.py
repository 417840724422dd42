"""Models as CTranslate2 has them: written, loaded there, and the same models."""

import json
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tokenizers

import random_models
import weft
from cards import code_in
from weft.config import RecurrentSection
from weft.errors import FolderError, UsageError
from weft.folder.model_folder import TranslationConfig
from weft.recipes.file import load_recipe
from weft.ship.ctranslate2.model_file import read_model
from weft.ship.ctranslate2.opened import OpenedClassifier, OpenedTranslator
from weft.ship.ctranslate2.quantized import numbers_of, scales_of, steps_of
from weft.ship.ctranslate2.target import CTranslate2
from weft.ship.exporting import export
from weft.ship.source import Source, open_source
from weft.ship.target import Asked

CASES: dict[str, tuple[str, ...]] = {
    "en-de": ("en-de",),
    "no biases, nothing tied, learned positions": (
        "en-de",
        "model.bias=false",
        "model.tie_embeddings=false",
        "model.scale_embeddings=false",
        'model.positions="learned"',
    ),
    "wide heads, one of keys and values": (
        "en-de",
        "model.head_dim=6",
        "model.num_key_value_heads=1",
        "model.projection_bias=false",
    ),
    "norms last, norm of embeddings, gelu": (
        "en-de",
        "model.norm_first=false",
        "model.embedding_norm=true",
        'model.activation="gelu"',
    ),
    "two vocabularies": ("en-zh",),
    "words and characters": ("demo",),
    "norms last, two vocabularies": ("toy-de-en", "model.head_dim=4"),
    "seq2seq-transformer": ("seq2seq-transformer",),
    "en-de-modern": ("en-de-modern",),
    "swish, shared keys and values": (
        "en-de-modern",
        'model.activation="swiglu"',
        "model.num_key_value_heads=2",
        "model.sandwich_norm=false",
    ),
    "layer norms around, biases": (
        "en-de-modern",
        'model.norm="layer"',
        "model.bias=true",
        'model.activation="geglu"',
    ),
    "rms norms last": (
        "en-de-modern",
        "model.sandwich_norm=false",
        "model.norm_first=false",
        "model.num_decoder_layers=1",
        "model.num_encoder_layers=1",
    ),
    "lm-modern": ("lm-modern",),
    "norms around, norm of embeddings": (
        "lm-modern",
        "model.query_key_norm=false",
        "model.sandwich_norm=true",
        "model.embedding_norm=true",
    ),
    "causal-lm": ("causal-lm",),
    "learned positions, biases": (
        "causal-lm",
        "model.norm_first=true",
        'model.positions="learned"',
        "model.projection_bias=true",
    ),
    "tiny-shakespeare": (
        "tiny-shakespeare",
        "model.ngrams=1",
        "model.match_lengths=[]",
        'model.activation="relu"',
    ),
    "classify-modern": ("classify-modern",),
    "first state, several labels": (
        "classify-modern",
        'model.pooling="first"',
        'data.label_separator=","',
        "model.query_key_norm=true",
    ),
    "imdb-classifier": ("imdb-classifier",),
}
REFUSED = {
    "train with model.query_key_norm = false": ("en-de", "model.query_key_norm=true"),
    'train with "relu", "gelu"': ("en-de", 'model.activation="relu2"'),
    "train with model.ngrams = 1.*train with model.match_lengths": (
        "tiny-shakespeare",
    ),
    "train with the recipe": ("classify-fast",),
    "train with model.ngrams = 1": ("classify-modern", "model.ngrams=2"),
}
SEARCHED = {"translation": ["greedy", "beam"], "language-modelling": ["greedy"]}


def exported(place: Path, name: str, *settings: str, precision: str = "float32") -> Any:
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = random_models.write_dev(load_recipe(name).task, place)
    asked = Asked(precision=precision)
    return export(folder, CTranslate2(), place / "out", [dev], asked)


def test_every_recipe_and_option_with_a_home_is_the_same_model_there(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (case, (name, *settings)) in enumerate(CASES.items()):
        with subtests.test(case):
            made = exported(tmp_path / str(number), name, *settings)
            checks = {check.name: check for check in made.certificate.checks}
            searched = SEARCHED.get(load_recipe(name).task, [])
            assert [*checks] == ["weights", "ids", "logits", *searched, "use"]
            assert made.certificate.failed is None
            assert checks["weights"].compared > 1000


@pytest.mark.parametrize("name", ["en-de", "lm-modern", "classify-modern"])
def test_in_int8_every_number_is_the_nearest_step(name: str, tmp_path: Path) -> None:
    made = exported(tmp_path, name, precision="int8")
    weights, _, logits, *_ = made.certificate.checks
    assert made.certificate.failed is None
    source = open_source(tmp_path / "model")
    own = sum(array.size for array in source.arrays.values())
    # tables that stand twice, scales and settings are among the numbers of the files
    assert weights.compared > own
    said = rf"255: at most \S+ from the model's {own:,}$"
    assert re.search(said, weights.about)
    assert (
        "numbers as rounding to int8 gives them, within half a step" in weights.line()
    )
    # without such instructions CTranslate2 adds two products in 16 bits, which are too few
    most = 1.0 if "vnni" in Path("/proc/cpuinfo").read_text("utf-8") else 20.0
    assert 1e-4 < logits.largest < most
    assert logits.tolerance is None
    stored = read_model(tmp_path / "out" / "model.bin")
    matrices = [name for name in stored if name.endswith("/weight")]
    assert {stored[name].dtype for name in matrices} == {np.dtype(np.int8)}
    others = [name for name in stored if name.endswith(("/gamma", "/encodings"))]
    assert {stored[name].dtype for name in others} == {np.dtype(np.float32)}


def test_rows_are_quantized_by_their_largest_number() -> None:
    matrix = np.array([[1, -2, 0.5, 0], [0, 0, 0, 0]], np.float32)
    assert scales_of(matrix).tolist() == [63.5, 1]
    # 63.5 is as near to 63 as to 64, which is even
    assert steps_of(matrix).tolist() == [[64, -127, 32, 0], [0, 0, 0, 0]]
    stored = {"a/weight": steps_of(matrix), "a/weight_scale": scales_of(matrix)}
    numbers = numbers_of(stored)["a/weight"]
    assert np.abs(numbers - matrix).max() <= 0.5 / 63.5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("encoder/layer_0/ffn/linear_0/weight", r"linear_0/weight\[0, 0\] is .*, not"),
        ("decoder/projection/bias", r"projection/bias\[0\] is .*, not"),
        ("decoder/layer_1/attention/linear_1/weight_scale", r"linear_1/weight\[0, ."),
        ("decoder/position_encodings/encodings", r"encodings\[0, 0\] is"),
        ("decoder/num_heads", r"decoder/num_heads\[\] is .*, not 6"),
    ],
)
def test_one_other_step_scale_position_or_setting_is_found(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault X1 in this form, in int8."""
    real = CTranslate2.write

    def write(self: Any, source: Any, place: Path, asked: Any) -> Any:
        written = real(self, source, place, asked)
        path = place / "model.bin"
        content = bytearray(path.read_bytes())
        kept = read_model(path)[name].tobytes()
        named = content.index(name.encode() + b"\0")
        content[content.index(kept, named)] ^= 1
        path.write_bytes(content)
        return written

    monkeypatch.setattr(CTranslate2, "write", write)
    with pytest.raises(FolderError, match=f"numbers of the weights: .*{said}"):
        exported(tmp_path, "en-de", precision="int8")
    assert not (tmp_path / "out").exists()


def test_a_file_is_read_by_its_bytes(tmp_path: Path) -> None:
    def text(word: bytes) -> bytes:
        return struct.pack("<H", len(word) + 1) + word + b"\0"

    numbers = np.array([[1, 2], [3, -4]], np.int8).tobytes()
    scales = np.array([2, 4], np.float32).tobytes()
    parts = [
        struct.pack("<I", 6),
        text(b"TransformerSpec"),
        struct.pack("<II", 7, 3),
        text(b"a/weight") + struct.pack("<BIIBI", 2, 2, 2, 1, 4) + numbers,
        text(b"a/weight_scale") + struct.pack("<BIBI", 1, 2, 0, 8) + scales,
        text(b"heads") + struct.pack("<BBI", 0, 2, 2) + struct.pack("<h", -3),
        struct.pack("<I", 1),
        text(b"b/weight") + text(b"a/weight"),
    ]
    path = tmp_path / "model.bin"
    path.write_bytes(b"".join(parts))
    found = {name: array.tolist() for name, array in read_model(path).items()}
    assert found == {
        "a/weight": [[1, 2], [3, -4]],
        "a/weight_scale": [2, 4],
        "heads": -3,
        "b/weight": [[1, 2], [3, -4]],
        "b/weight_scale": [2, 4],
    }
    assert numbers_of(read_model(path))["b/weight"].tolist() == [[0.5, 1], [0.75, -1]]
    path.write_bytes(struct.pack("<I", 5) + b"".join(parts[1:]))
    with pytest.raises(FolderError, match="version 5 of its format, not 6"):
        read_model(path)


def test_each_side_has_its_vocabulary(tmp_path: Path) -> None:
    exported(tmp_path, "en-de", "tokenizer.joint=false", "tokenizer.src.vocab_size=320")
    place = tmp_path / "out"
    sizes = {}
    for side, file in (("source", "tokenizer"), ("target", "target_tokenizer")):
        names = json.loads((place / f"{side}_vocabulary.json").read_text("utf-8"))
        tokenizer = tokenizers.Tokenizer.from_file(str(place / f"{file}.json"))
        assert names == [tokenizer.id_to_token(i) for i in range(len(names))]
        sizes[side] = len(names)
    assert sizes["target"] == 300 < sizes["source"]


def test_what_has_no_home_is_refused_with_the_setting_that_has_one(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (said, (name, *settings)) in enumerate(REFUSED.items()):
        with subtests.test(said):
            with pytest.raises(
                UsageError, match=f"has no home in ctranslate2: .*{said}"
            ):
                exported(tmp_path / str(number), name, *settings)
            assert not (tmp_path / str(number) / "out").exists()


def test_a_recurrent_model_has_no_home() -> None:
    shape = RecurrentSection(kind="recurrent")
    config = TranslationConfig.model_construct(model=shape)
    source = Source(Path("model"), SimpleNamespace(config=config), None, {})  # type: ignore[arg-type]
    assert 'train with a recipe of model.kind = "transformer"' in CTranslate2().why_not(
        source
    )


@pytest.mark.parametrize("name", ["en-de", "en-zh", "lm-modern", "classify-modern"])
def test_the_lines_of_the_card_do_what_was_compared(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(tmp_path, name)
    place = tmp_path / "out"
    card = (place / "README.md").read_text("utf-8")
    (code,) = code_in(card, "python", str(place))
    assert len([line for line in code.split("\n") if line]) <= 17
    capsys.readouterr()
    exec(code, {})
    kinds = {"en-de": OpenedTranslator, "en-zh": OpenedTranslator}
    if name in kinds:
        wanted = OpenedTranslator(place).use(["A sentence.", "Another one."])
    elif name == "classify-modern":
        (wanted,) = OpenedClassifier(place).use(["A text."])
    else:
        wanted = []
    shown = capsys.readouterr().out
    if name == "classify-modern":
        # a text without ids has a label, too
        exec(code.replace("A text.", " "), {})
        (label,) = weft.load(tmp_path / "model").classify([" "])[0].labels
        assert capsys.readouterr().out == f"{label}\n"
    assert wanted == [] or shown == "".join(f"{text}\n" for text in wanted)
    assert shown


def test_a_text_without_tokens_has_a_label_too(tmp_path: Path) -> None:
    texts = ["", "A small dog", "word " * 60]
    for pooling in ("mean", "first"):
        place = tmp_path / pooling
        exported(place, "classify-modern", f'model.pooling="{pooling}"')
        found = OpenedClassifier(place / "out").use(texts)
        answers = weft.load(place / "model").classify(texts)
        assert found == [answer.labels for answer in answers]


def test_what_is_used_otherwise_is_noted(tmp_path: Path) -> None:
    made = exported(tmp_path / "a", "lm-modern", "decoding.min_p=0.1")
    assert made.notes == ("CTranslate2 has no min_p: its samples are drawn without it",)
    made = exported(tmp_path / "b", "classify-modern", 'data.too_long="windows"')
    assert "Weft reads it in windows" in made.notes[0]


def test_the_limit_is_that_of_the_longest_source(tmp_path: Path) -> None:
    """60 ids, of which each may become one and a half, and ten more."""
    ratio = "decoding.max_len_ratio=1.51"
    made = exported(tmp_path, "en-de", ratio, "decoding.max_len_extra=10")
    settings = json.loads((tmp_path / "out" / "weft.json").read_text("utf-8"))
    assert settings["search"]["max_decoding_length"] == 101  # 90.6 is 91
    assert "behind 101 tokens" in made.notes[0]
