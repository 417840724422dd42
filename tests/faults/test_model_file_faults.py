"""Model folders that are damaged, or made by somebody else to do harm: refused in one line, and
nothing runs.

Unless a test says otherwise the manifest is made to match, so that it is the inner check which
refuses. A pack of the same files is refused by the same line.
"""

import json
import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import weft
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.archive import write_archive
from weft.folder.mapped import mapped
from weft.folder.model_files import MEMBERS
from weft.folder.model_folder import TranslationConfig

Change = Callable[[dict[str, Any]], object]
FILES = (
    "model.safetensors",
    "config.json",
    "tokenizer.src.json",
    "tokenizer.tgt.json",
    "words.safetensors",
)
# address space of a process that opens a hostile folder; torch alone takes about a third
MEMORY = 3 * 2**30


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(
            tiny_folder, tmp_path / "model", ignore=shutil.ignore_patterns("run")
        )
    )


def match(folder: Path) -> None:
    """Make the manifest true of the files as they are now."""
    durable.write_manifest(folder, FILES)


def packed(folder: Path) -> Path:
    """A pack of the files as they are; `weft pack` itself makes none of a damaged folder."""
    pack = folder.with_suffix(".weft")
    held = {name: folder / name for name in MEMBERS if (folder / name).is_file()}
    with pack.open("wb") as file:
        write_archive(file, {name: mapped(path) for name, path in held.items()})
    return pack


def refusal_of(model: Path) -> str:
    """Why a model is refused: one short line, soon, with the exit code of a bad folder."""
    started = time.monotonic()
    with pytest.raises(FolderError) as caught:
        weft.load(model)
    assert time.monotonic() - started < 20
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


def refusal(folder: Path) -> str:
    """Why the folder is refused, and a pack of its files."""
    said = refusal_of(folder)
    pack = packed(folder)
    assert refusal_of(pack) == said.replace(str(folder), str(pack))
    return said


def test_the_folder_itself_is_sound(folder: Path) -> None:
    """So that what is refused below is refused for the fault alone."""
    match(folder)
    assert weft.load(folder).translate("cat sees dog.")[0].text
    assert weft.load(packed(folder)).translate("cat sees dog.")[0].text


class Canary:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def canary(tmp_path: Path) -> bytes:
    """A pickle whose reading leaves a trace; that it would is proved first."""
    content = pickle.dumps(Canary(tmp_path / "canary"))
    pickle.loads(content)
    (tmp_path / "canary").rmdir()
    return content


@pytest.mark.parametrize("name", FILES)
def test_M1_a_pickle_in_place_of_a_file(folder: Path, canary: bytes, name: str) -> None:
    (folder / name).write_bytes(canary)
    match(folder)
    assert name in refusal(folder)
    assert not (folder.parent / "canary").exists()


def test_M1_a_pickle_in_place_of_the_manifest(folder: Path, canary: bytes) -> None:
    (folder / "manifest.json").write_bytes(canary)
    assert "manifest.json: not valid JSON" in refusal(folder)
    assert not (folder.parent / "canary").exists()


@pytest.mark.parametrize(
    "name",
    ["pytorch_model.bin", "model.pt", "checkpoint.pth", "weights.pkl", "last.ckpt"],
)
def test_M1_a_folder_of_pickles_is_named_as_such(
    tmp_path: Path, canary: bytes, name: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).write_bytes(canary)
    assert f"{name} may be a pickle, which Weft never reads" in refusal_of(folder)
    assert not (tmp_path / "canary").exists()


def test_M1_pickles_beside_a_sound_model_stay_untouched(
    folder: Path, canary: bytes
) -> None:
    (folder / "run").mkdir()
    for name in ("model.bin", "optimizer.pt", "run/random.pkl", "run/train-hashes.npy"):
        (folder / name).write_bytes(canary)
    weft.load(folder).translate("cat sees dog.")
    assert not (folder.parent / "canary").exists()


def test_M1_a_pickled_array_of_training_hashes(folder: Path, canary: bytes) -> None:
    """The one array that is read beside a model; an object array is a pickle inside."""
    import numpy as np

    from weft.data.overlap import TextHashes

    path = folder / "hashes.npy"
    np.save(
        path,
        np.array([Canary(folder.parent / "canary")], dtype=object),
        allow_pickle=True,
    )
    with pytest.raises(FolderError, match="cannot be read as hashes"):
        TextHashes.load(path)
    assert not (folder.parent / "canary").exists()


def header(content: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length])


def with_header(content: bytes, change: Change) -> bytes:
    """The file with its header changed and its data left as it is."""
    (length,) = struct.unpack("<Q", content[:8])
    tree = header(content)
    change(tree)
    new = json.dumps(tree).encode()
    return struct.pack("<Q", len(new)) + new + content[8 + length :]


def first(tree: dict[str, Any]) -> dict[str, Any]:
    """The entry whose data comes first."""
    return min(
        (e for n, e in tree.items() if n != "__metadata__"),
        key=lambda e: e["data_offsets"],
    )


def overlap(tree: dict[str, Any]) -> None:
    entries = sorted(
        (e for n, e in tree.items() if n != "__metadata__"),
        key=lambda e: e["data_offsets"],
    )
    size = entries[1]["data_offsets"][1] - entries[1]["data_offsets"][0]
    entries[1]["data_offsets"] = [0, size]


def many(tree: dict[str, Any]) -> None:
    tree.update(
        {
            f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
            for i in range(100_000)
        }
    )


MALFORMED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "seven bytes": lambda content: content[:7],
    "header of 2^60 bytes": lambda content: struct.pack("<Q", 2**60) + content[8:],
    "header of 2^64 - 1 bytes": lambda content: b"\xff" * 8 + content[8:],
    "header of 200 MB": lambda content: struct.pack("<Q", 200_000_000) + content[8:],
    "header beyond the end": lambda content: (
        struct.pack("<Q", len(content)) + content[8:]
    ),
    "header is a list": lambda content: struct.pack("<Q", 2) + b"[]" + content,
    "header is not UTF-8": lambda content: content[:9] + b"\xff" + content[10:],
    "header nested deeply": lambda content: struct.pack("<Q", 100_000) + b"[" * 100_000,
    "truncated by a byte": lambda content: content[:-1],
    "truncated in the middle": lambda content: content[: len(content) // 2],
    "a byte too many": lambda content: content + b"\0",
    "overlap": lambda content: with_header(content, overlap),
    "a hole": lambda content: with_header(
        content, lambda t: first(t).update(data_offsets=[4, 8], shape=[1])
    ),
    "end before start": lambda content: with_header(
        content, lambda t: first(t).update(data_offsets=[64, 0])
    ),
    "offsets beyond 2^63": lambda content: with_header(
        content, lambda t: first(t).update(data_offsets=[0, 2**64 - 1])
    ),
    "a negative offset": lambda content: with_header(
        content, lambda t: first(t).update(data_offsets=[-4, 0])
    ),
    "a shape that overflows": lambda content: with_header(
        content, lambda t: first(t).update(shape=[2**32, 2**32, 2**32])
    ),
    "an unknown dtype": lambda content: with_header(
        content, lambda t: first(t).update(dtype="PICKLE")
    ),
    "an entry that is no object": lambda content: with_header(
        content, lambda t: t.update(x=[1])
    ),
    "100,000 entries": lambda content: with_header(content, many),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_M2_malformed_safetensors(folder: Path, kind: str) -> None:
    path = folder / "model.safetensors"
    content = MALFORMED[kind](path.read_bytes())
    assert content != path.read_bytes()
    path.write_bytes(content)
    match(folder)
    assert "model.safetensors" in refusal(folder)


def change_tensors(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    match(folder)


NAME = "encoder.0.self_attention.query.weight"
MISFITS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "missing": (lambda t: t.pop(NAME), f"lacks '{NAME}'"),
    "extra": (lambda t: t.update(evil=torch.zeros(2)), "has an unknown tensor 'evil'"),
    "renamed": (lambda t: t.update({NAME.upper(): t.pop(NAME)}), f"lacks '{NAME}'"),
    "wider": (lambda t: t.update({NAME: torch.zeros(32, 33)}), "expected F32 (32, 32)"),
    "one number": (lambda t: t.update({NAME: torch.zeros(1)}), "expected F32 (32, 32)"),
    "flat": (lambda t: t.update({NAME: t[NAME].flatten()}), "expected F32 (32, 32)"),
    "half": (lambda t: t.update({NAME: t[NAME].half()}), "is F16"),
    "double": (lambda t: t.update({NAME: t[NAME].double()}), "is F64"),
    "integers": (lambda t: t.update({NAME: t[NAME].int()}), "is I32"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_M2_tensors_of_another_model(folder: Path, kind: str) -> None:
    change, expected = MISFITS[kind]
    change_tensors(folder, change)
    assert expected in refusal(folder)


def write_config(folder: Path, content: str | bytes) -> None:
    (folder / "config.json").write_bytes(
        content.encode() if isinstance(content, str) else content
    )
    match(folder)


def changed_config(folder: Path, dotted: str, value: Any) -> str:
    tree = json.loads((folder / "config.json").read_bytes())
    *sections, key = dotted.split(".")
    inner = tree
    for section in sections:
        inner = inner[section]
    inner[key] = value
    return json.dumps(tree)


HOSTILE: list[tuple[str, Any]] = [
    ("model.num_encoder_layers", 10**9),
    ("model.num_decoder_layers", 10**9),
    ("model.d_model", 2**40),
    ("model.d_model", 10**4000),
    ("model.d_model", -16),
    ("model.d_model", 16.0),
    ("model.d_model", "16"),
    ("model.d_model", True),
    ("model.max_len", 10**12),
    ("model.dropout", 1e999),
    ("model.dropout", float("nan")),
    ("src_vocab_size", 10**10),
    ("tgt_vocab_size", 0),
    ("max_src_len", 10**4000),
    ("usual_src_len", 1),
    ("_target_", "os.system"),
    ("model._target_", "os.system"),
    ("auto_map", {"AutoModel": "evil.Model"}),
    ("model.auto_map", {"AutoModel": "evil.Model"}),
    ("trust_remote_code", True),
    ("_attn_implementation_internal", "evil/kernel"),
    ("__class__", "weft.tasks.trainable_translation.Translation"),
    ("model.kind", "../../evil"),
    ("model.activation", "torch.load"),
    ("task", "/etc/passwd"),
    ("format", 2),
    ("format", "1"),
    ("tokenizer_steps", {"../../evil": "1"}),
    ("tokenizer_steps", {"os": "1"}),
    ("tokenizer.src.kind", "auto"),
    ("tokenizer.src.kind", "file:///etc/passwd"),
    ("tokenizer.src", "/etc/passwd"),
    ("decoding.beam_size", 10**6),
    ("decoding.max_len_ratio", float("inf")),
    ("joint", "no"),
    ("joint", True),
]


@pytest.mark.parametrize(
    ("key", "value"), HOSTILE, ids=[f"{k}={str(v)[:20]}" for k, v in HOSTILE]
)
def test_M3_a_hostile_value(folder: Path, key: str, value: Any) -> None:
    write_config(folder, changed_config(folder, key, value))
    assert "config.json" in refusal(folder) or key == "joint"


NOT_A_CONFIG: dict[str, str | bytes] = {
    "nested 100,000 deep": '{"model": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "nested objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a list": "[]",
    "null": "null",
    "empty": "",
    "an int of a million digits": '{"format": ' + "1" * 1_000_000 + "}",
    "over the size limit": '{"format": 1' + " " * 2**20 + "}",
    "not UTF-8": b'{"format": "\xff"}',
    "a bare word": "NaN",
}


@pytest.mark.parametrize("kind", NOT_A_CONFIG)
def test_M3_no_config_at_all(folder: Path, kind: str) -> None:
    write_config(folder, NOT_A_CONFIG[kind])
    assert "config.json" in refusal(folder)


def test_M3_a_config_without_a_key(folder: Path) -> None:
    """Those that came later have a default, which means what was meant before."""
    tree = json.loads((folder / "config.json").read_bytes())
    later = {
        key
        for key, field in TranslationConfig.model_fields.items()
        if not field.is_required()
    }
    assert later == {
        "format",
        "single_sentences",
        "least_ratio",
        "low_confidence",
        "quality",
        "kept_forms",
        "takes_terms",
        "takes_match",
        "known_words",
        "marks",
        "directions",
    }
    for key in tree:
        if key not in later:
            write_config(
                folder, json.dumps({k: v for k, v in tree.items() if k != key})
            )
            assert "config.json" in refusal(folder)
            assert key in refusal(folder)


LOAD = """
import resource, sys, time
import torch
import weft
import weft.tasks.trainable_translation
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
started = time.monotonic()
try:
    weft.load(sys.argv[1])
except weft.WeftError as error:
    print(f"{type(error).__name__}\\t{time.monotonic() - started:.1f}\\t{error}")
"""


def refusal_in_little_memory(folder: Path) -> str:
    """The same in a process of its own, which is killed where it takes more than a little
    memory.
    """
    assert resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", LOAD, str(folder), str(MEMORY)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    kind, seconds, message = done.stdout.rstrip("\n").split("\t")
    assert kind == "FolderError"
    assert float(seconds) < 20
    return message


BIG: dict[str, dict[str, Any]] = {
    "large but allowed": {
        "d_model": 8192,
        "d_ff": 8192,
        "num_encoder_layers": 9,
        "num_decoder_layers": 9,
    },
    "positions": {
        "max_len": 300_000,
        "d_model": 16384,
        "num_heads": 1,
        "head_dim": 1,
        "d_ff": 1,
    },
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param("large but allowed", marks=pytest.mark.long), "positions"],
)
def test_M3_a_size_within_the_schema_is_checked_before_memory_is_taken(
    folder: Path, kind: str
) -> None:
    """The weights beside it are small: what they do not hold must not be allocated."""
    tree = json.loads((folder / "config.json").read_bytes())
    tree["model"] |= BIG[kind]
    write_config(folder, json.dumps(tree))
    assert (
        "positions" if kind == "positions" else "weights"
    ) in refusal_in_little_memory(folder)


@pytest.mark.long
def test_M3_a_deep_list_does_not_grow_in_memory(folder: Path) -> None:
    """Indented, 900 levels around half a million numbers would take a gigabyte."""
    write_config(
        folder, '{"format": ' + "[" * 900 + ",".join("1" * 500_000) + "]" * 900 + "}"
    )
    assert "config.json" in refusal_in_little_memory(folder)


@pytest.fixture
def other(
    write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...], tmp_path: Path
) -> Path:
    """A model of the same shape from other text: fewer words, so smaller vocabularies."""
    out = tmp_path / "other"
    settings = (*tiny_settings, "training.max_steps=1", "model.d_model=32")
    weft.train(out=out, train=write_pairs(30), settings=settings, quiet=True)
    return out


@pytest.mark.parametrize(
    "matching", [False, True], ids=["manifest as it was", "manifest made to match"]
)
def test_M5_the_tokenizer_of_another_model(
    folder: Path, other: Path, matching: bool
) -> None:
    assert (folder / FILES[2]).read_bytes() != (other / FILES[2]).read_bytes()
    shutil.copy(other / FILES[2], folder / FILES[2])
    if matching:
        match(folder)
    expected = (
        "the files belong to different models"
        if matching
        else f"{FILES[2]}: differs from the manifest"
    )
    assert expected in refusal(folder)


@pytest.mark.parametrize(
    "matching", [False, True], ids=["manifest as it was", "manifest made to match"]
)
def test_M5_swapped_source_and_target_tokenizers(folder: Path, matching: bool) -> None:
    src, tgt = folder / FILES[2], folder / FILES[3]
    src_content, tgt_content = src.read_bytes(), tgt.read_bytes()
    assert src_content != tgt_content
    src.write_bytes(tgt_content)
    tgt.write_bytes(src_content)
    if matching:
        match(folder)
    expected = (
        "the files belong to different models"
        if matching
        else "differs from the manifest"
    )
    assert expected in refusal(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_M5_a_weight_that_is_no_number(folder: Path, value: float) -> None:
    change_tensors(folder, lambda tensors: tensors[NAME].view(-1)[-1:].fill_(value))
    assert f"{NAME} holds NaN or infinity" in refusal(folder)


@pytest.mark.parametrize("name", FILES)
def test_M5_a_file_edited_after_the_manifest(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    assert f"{name}: differs from the manifest" in refusal(folder)


def test_M5_the_weights_of_another_model(folder: Path, other: Path) -> None:
    shutil.copy(other / FILES[0], folder / FILES[0])
    match(folder)
    assert "the weights are another model's" in refusal(folder)


@pytest.mark.parametrize("target", ["outside", "/dev/zero"])
def test_M5_a_listed_path_outside_the_folder(folder: Path, target: str) -> None:
    (folder.parent / "outside").write_bytes(b"secret")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    path = f"../{target}" if target == "outside" else target
    manifest["files"][path] = {"size": 6, "sha256": "0" * 64}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "is malformed" in refusal(folder)
