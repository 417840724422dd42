"""Language models for llama.cpp: written, opened there, and the same model."""

import ctypes
import importlib.util
import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import random_models
from cards import code_in
from weft.errors import FolderError, MissingPackage, UsageError
from weft.ship.exporting import Asked, export
from weft.ship.gguf import library
from weft.ship.gguf.target import Gguf
from weft.tasks.opening import load_task

gguf = pytest.importorskip("gguf", reason="GGUF files are written by gguf")
pytest.importorskip("xllamacpp", reason="GGUF files are compared by llama.cpp")

WITHOUT_SPACE = "tokenizer.leading_space=false"
NO_NORM = "model.query_key_norm=false"
BIASES = ("model.bias=true", "model.projection_bias=false")
LAYER = (NO_NORM, 'model.norm="layer"')
GELU = (*LAYER, 'model.activation="gelu"')
RELU2 = 'model.activation="relu2"'
ARCHES = {
    "qwen3": (WITHOUT_SPACE,),
    "llama": (NO_NORM, *BIASES, "model.head_dim=10"),
    "glm4": (NO_NORM, "model.sandwich_norm=true"),
    "arcee": (NO_NORM, RELU2, "model.scale_embeddings=true"),
    "nemotron": (*LAYER, RELU2, *BIASES),
    "stablelm": (*LAYER, "model.num_key_value_heads=1", 'batches.packing="stream"'),
    "starcoder2": (*GELU, *BIASES),
    "gpt2": (*GELU, 'model.positions="sinusoidal"', "model.tie_embeddings=false",
             "model.scale_embeddings=true"),
}  # fmt: skip


def exported(place: Path, *settings: str, **asked: Any) -> Any:
    folder = random_models.write_folder(
        "lm-modern", place / "model", 'tokenizer.kind="bpe"', *settings
    )
    dev = random_models.write_dev("language-modelling", place)
    return export(folder, Gguf(), place / "out", [dev], Asked(**asked))


def file_in(folder: Path) -> Any:
    """What the package gguf reads in the one file of an export."""
    (path,) = (folder / "out").glob("*.gguf")
    return gguf.GGUFReader(path)


def value(reader: Any, key: str) -> Any:
    field = reader.fields.get(key)
    return None if field is None else field.contents()


@pytest.mark.parametrize("name", ARCHES)
def test_every_architecture_computes_the_same(name: str, tmp_path: Path) -> None:
    made = exported(tmp_path, *ARCHES[name])
    assert made.form == f"GGUF ({name})"
    checks = {check.name: check for check in made.certificate.checks}
    assert [*checks] == ["weights", "ids", "logits", "greedy", "use"]
    assert made.certificate.failed is None
    if name in ("starcoder2", "gpt2"):
        assert checks["logits"].about.startswith("llama.cpp computes GELU")
        assert 1e-4 < checks["logits"].largest < 0.05
    else:
        assert checks["logits"].largest < 5e-5
        assert checks["greedy"].equal == checks["greedy"].compared
    has_note = any("begin each prompt with a space" in note for note in made.notes)
    assert has_note == (WITHOUT_SPACE not in ARCHES[name])


@pytest.mark.parametrize("precision", ["f16", "bf16", "q8_0"])
def test_smaller_numbers_are_what_the_quantizer_gives(
    precision: str, tmp_path: Path
) -> None:
    sizes = ("model.d_model=32", "model.d_ff=20")
    made = exported(tmp_path, *sizes, precision=precision)
    assert made.certificate.failed is None
    weights, _, logits, *_ = made.certificate.checks
    assert weights.equal == weights.compared
    assert 1e-5 < logits.largest < 1
    kinds = {
        tensor.name: tensor.tensor_type.name for tensor in file_in(tmp_path).tensors
    }
    assert kinds["token_embd.weight"] == precision.upper()
    assert kinds["output_norm.weight"] == "F32"
    # rows of 20 numbers fill no block of 32
    is_odd = precision == "q8_0"
    assert kinds["blk.0.ffn_down.weight"] == ("F16" if is_odd else precision.upper())
    assert any("are in F16" in note for note in made.notes) == is_odd


def test_the_quantizer_is_llama_cpp_s_own() -> None:
    quantize = library.llama_cpp().functions.ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = (
        *(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p),
    )
    generator = np.random.default_rng(1)
    scales = np.exp2(generator.integers(-20, 12, (200, 1)))
    halves = generator.integers(-254, 255, (200, 64)) / 2  # ties of rounding
    for rows in (generator.normal(size=(200, 64)) * scales, halves, halves * 0):
        array = rows.astype(np.float32)
        for name in ("F16", "BF16", "Q8_0"):
            kind = gguf.GGMLQuantizationType[name]
            expected = np.ascontiguousarray(gguf.quants.quantize(array, kind))
            found = np.zeros(expected.nbytes, np.uint8)
            places = array.ctypes.data, found.ctypes.data
            assert quantize(kind, *places, 0, *array.shape, None) == expected.nbytes
            assert found.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("precision", ["float32", "q8_0"])
def test_one_changed_number_is_found_and_nothing_is_written(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault X1: what was written is not what was meant, by one bit or one step."""
    real = Gguf.write

    def write(self: Any, source: Any, place: Path, asked: Any) -> Any:
        written = real(self, source, place, asked)
        (path,) = place.glob("*.gguf")
        reader = gguf.GGUFReader(path, "r+")
        tensor = next(t for t in reader.tensors if t.name == "blk.1.attn_v.weight")
        tensor.data[1, 7:8].view(np.uint8)[0] ^= 1
        reader.data.flush()
        return written

    monkeypatch.setattr(Gguf, "write", write)
    with pytest.raises(FolderError, match=r"numbers of the weights: blk.1.attn_v.*not"):
        exported(tmp_path, "model.d_model=32", precision=precision)
    assert not (tmp_path / "out").exists()


REFUSED = {
    "llama.cpp's only translators are T5; --to onnx has a home": ("en-de",),
    "llama.cpp has language models; --to onnx has a home": ("classify-modern",),
    r"ngrams = 1, not 5.*\[\], not \[3, 6\].*tokenizer.kind = .character.*kind = .bpe": (
        "tiny-shakespeare",
    ),
    "norm_first = true, not false.*projection_bias = false": ("causal-lm",),
    "tokenizer.lowercase: .* train with tokenizer.lowercase = false": (
        "lm-modern",
        'tokenizer.kind="bpe"',
        "tokenizer.lowercase=true",
    ),
    "nearest architecture is qwen3, but it needs model.activation": (
        "lm-modern",
        'model.activation="geglu"',
    ),
    "head_dim = model.d_model / model.num_heads": (
        "lm-modern",
        *LAYER,
        *BIASES,
        RELU2,
        "model.head_dim=10",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_has_no_home_is_refused_with_the_reason(why: str, tmp_path: Path) -> None:
    name, *settings = REFUSED[why]
    folder = random_models.write_folder(name, tmp_path / "model", *settings)
    with pytest.raises(UsageError, match=f"has no home in gguf: .*{why}"):
        export(folder, Gguf(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_file_says_how_to_search_and_no_license_that_was_not_stated(
    tmp_path: Path,
) -> None:
    settings = (
        "decoding.temperature=0.7",
        "decoding.top_k=9",
        "decoding.repetition_penalty=1.25",
        "batches.window_len=33",
    )
    exported(tmp_path, *settings)
    reader = file_in(tmp_path)
    found = {name: value(reader, f"general.sampling.{name}") for name in
             ("sequence", "temp", "top_k", "top_p", "penalty_repeat", "penalty_last_n")}  # fmt: skip
    assert found == {
        "sequence": "penalties;temperature;top_k;top_p;min_p",
        "temp": np.float32(0.7),
        "top_k": 9,
        "top_p": 1.0,
        "penalty_repeat": 1.25,
        "penalty_last_n": 33,
    }
    assert value(reader, "qwen3.context_length") == 33
    assert value(reader, "general.languages") == ["de"]
    assert value(reader, "general.name") == "A model"
    assert value(reader, "general.license") is None


@pytest.mark.parametrize("space", ["true", "false"])
def test_the_lines_of_the_card_begin_as_the_model_has_learned(
    space: str, tmp_path: Path
) -> None:
    exported(tmp_path, f"tokenizer.leading_space={space}", is_certified=False)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    beginning = '" A beginning"' if space == "true" else '"A beginning"'
    shell, python = (code_in(card, language) for language in ("bash", "python"))
    *shell, _ = shell  # the last one looks for changed files
    for code in (*shell, *python):
        assert code.count("THIS_FOLDER/model-F32.gguf") >= 1
        assert code.count("A beginning") == code.count(beginning) >= 1
    assert "-no-cnv" in shell[0]
    assert "no model for chats" in card


def test_a_license_that_was_stated_is_in_the_file(tmp_path: Path) -> None:
    stated = "mine-1.0 https://example.org/terms"
    for number, license in enumerate(("CC BY 4.0", stated)):
        place = tmp_path / str(number)
        exported(place, license=license, is_certified=False)
        reader = file_in(place)
        told = [
            value(reader, f"general.license{end}") for end in ("", ".name", ".link")
        ]
        expected: list[Any] = ["cc-by-4.0", None, None]
        if license == stated:
            expected = ["other", *stated.split()]
        assert told == expected


def test_a_library_with_other_structures_is_refused_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(library._DEFAULTS, "type_k", 2)
    with pytest.raises(UsageError, match=r"other.*\(type_k is 1, not 2\): pip install"):
        library.LlamaCpp()


def test_without_llama_cpp_a_file_is_written_uncertified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "weft.packages.find_spec",
        lambda name: None if name == "xllamacpp" else real(name),
    )
    with pytest.raises(MissingPackage, match=r"xllamacpp.*\[gguf\]"):
        exported(tmp_path / "a")
    made = exported(tmp_path / "b", is_certified=False)
    assert made.certificate is None


@pytest.mark.long
@pytest.mark.parametrize("space", ["true", "false"])
def test_its_server_writes_what_weft_writes(space: str, tmp_path: Path) -> None:
    """As the card says: a person gets the settings of the recipe, and names of special pieces are
    text.
    """
    import xllamacpp

    setting = f"tokenizer.leading_space={space}"
    exported(tmp_path, setting, "decoding.temperature=0", "model.d_model=32")
    (path,) = (tmp_path / "out").glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.verbosity = -1
    server = xllamacpp.Server(params)
    before = " " if space == "true" else ""
    model = load_task(tmp_path / "model").predictor()
    for text in ("Ein kleiner", "A small <eos token> dog", "12 °C, naïve"):
        asked = {"prompt": before + text, "max_tokens": 20}
        answer = server.handle_completions(asked)["choices"][0]["text"]
        found = model.generate(text, max_new_tokens=20).text
        assert answer.strip("\ufffd") == found.strip("\ufffd")
        body = {"content": before + text, "add_special": True, "parse_special": True}
        request = urllib.request.Request(
            f"{server.listening_address}/tokenize", json.dumps(body).encode()
        )
        with urllib.request.urlopen(request) as response:
            ids = json.load(response)["tokens"]
        assert ids == model.start(text)
