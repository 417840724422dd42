"""A model folder: every file name in it, how it is written, and how it is read without trusting it.

Nothing here is a pickle and nothing can run code: weights are safetensors, everything else is JSON with a closed
schema. A folder is read in the order manifest, config, tokenizers, weights; sizes are checked before anything is
allocated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from weft import durable
from weft.config import DecodingSection, ModelSection, Section, TokenizerSection
from weft.errors import FolderError

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
JOINT_TOKENIZER, SRC_TOKENIZER, TGT_TOKENIZER = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"
VERSION = metadata.version("weft")
PARAMETER_LIMIT = 20_000_000_000
POSITIONS_LIMIT = 2**27  # numbers in a table of sinusoidal positions, which the weights do not hold

VocabularySize = Annotated[int, Field(ge=4, le=2_000_000)]


@dataclass(frozen=True)
class RunFiles:
    """What training keeps under `run/`; translating needs none of it."""

    folder: Path

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.json"

    @property
    def machine(self) -> Path:
        return self.folder / "machine.json"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def samples(self) -> Path:
        return self.folder / "samples.jsonl"

    @property
    def verdict(self) -> Path:
        return self.folder / "verdict.json"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def stores(self) -> Path:
        return self.folder / "stores"

    @property
    def tokenizers(self) -> Path:
        return self.folder / "tokenizers"

    @property
    def train_hashes(self) -> Path:
        return self.folder / "train-hashes.npy"


def run_files(folder: Path) -> RunFiles:
    """The training files of a model folder."""
    return RunFiles(folder / "run")


class FolderConfig(Section):
    """config.json: what the weights are and how text meets them. Closed: an unknown key is an error."""

    format: Literal[1] = 1
    weft_version: str
    task: Literal["translation"]
    src_lang: str
    tgt_lang: str
    joint: bool
    src_vocab_size: VocabularySize
    tgt_vocab_size: VocabularySize
    max_src_len: Annotated[int, Field(ge=2, le=1_000_000)]
    model: ModelSection
    tokenizer: TokenizerSection
    tokenizer_steps: dict[str, str]
    decoding: DecodingSection


@dataclass(frozen=True)
class StoredModel:
    """A folder's content, checked but not yet built: config, tokenizer JSON by file name, weights."""

    folder: Path
    config: FolderConfig
    tokenizers: Mapping[str, bytes]
    card: Mapping[str, Any]

    def load_weights(self, model: nn.Module) -> None:
        """Copy the weights into `model`. Raises FolderError where they do not fit or are not finite."""
        self.refuse_unfit(model)
        tensors = dict(load_file(self.folder / WEIGHTS))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if not tensors[name].isfinite().all():
                    raise FolderError(
                        f"{self.folder / WEIGHTS}: {name} holds NaN or infinity; the file is damaged"
                    )
                parameter.copy_(tensors[name])

    def refuse_unfit(self, model: nn.Module) -> None:
        """Raise FolderError where names, shapes and types in the file's header are not the model's.

        The model may be on torch's meta device: then nothing that the config claims has been allocated yet.
        """
        path = self.folder / WEIGHTS
        wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
        try:
            with safe_open(path, framework="pt") as file:
                names = set(file.keys())
                _refuse_names(path, wanted.keys() - names, names - wanted.keys())
                for name, shape in wanted.items():
                    _refuse_tensor(path, name, shape, file.get_slice(name))
        except (SafetensorError, ValueError, KeyError, OSError) as error:
            raise FolderError(f"{path}: not a sound safetensors file ({str(error)[:100]})") from None


def save_model_folder(
    folder: Path,
    config: FolderConfig,
    weights: Mapping[str, Tensor],
    tokenizers: Mapping[str, bytes],
    card: str,
    facts: Mapping[str, Any],
) -> None:
    """Write the model into `folder`, the manifest last; what else the folder holds stays."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / durable.MANIFEST).unlink(missing_ok=True)
    with durable.replacing(folder / WEIGHTS) as temporary:
        save_file({name: t.detach().contiguous() for name, t in weights.items()}, temporary)
    durable.write_json(folder / CONFIG, config.model_dump(mode="json"))
    for name, content in tokenizers.items():
        durable.write_bytes(folder / name, content)
    durable.write_text(folder / CARD, card)
    durable.write_manifest(folder, [WEIGHTS, CONFIG, *tokenizers], facts)


def open_model_folder(folder: Path) -> StoredModel:
    """Check a model folder and read everything but the weights.

    Raises FolderError where it is missing, unfinished, damaged or not a model folder of this version.
    """
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such folder; give the folder that `weft train --out` wrote")
    if not (folder / durable.MANIFEST).is_file():
        raise FolderError(_why_no_model(folder))
    manifest = durable.read_manifest(folder)
    _refuse_unlisted(folder, manifest["files"])
    config = _read_config(folder / CONFIG)
    names = [JOINT_TOKENIZER] if config.joint else [SRC_TOKENIZER, TGT_TOKENIZER]
    _refuse_unlisted(folder, manifest["files"], names)
    return StoredModel(folder, config, {name: (folder / name).read_bytes() for name in names}, manifest)


def is_model_folder(folder: Path) -> bool:
    """Whether something here was written by Weft: a model, or a run that has begun."""
    return (folder / durable.MANIFEST).is_file() or run_files(folder).recipe.is_file()


def _read_config(path: Path) -> FolderConfig:
    tree = durable.read_json(path, limit=2**20)
    try:
        config = FolderConfig.model_validate_json(
            json.dumps(tree, allow_nan=False)
        )  # never indented: it may be deep
    except (ValidationError, ValueError, RecursionError) as error:
        problems = error.errors() if isinstance(error, ValidationError) else []
        first = ".".join(map(str, problems[0]["loc"])) + ": " + problems[0]["msg"] if problems else str(error)
        raise FolderError(f"{path}: not a config of this version: {first[:200]}") from None
    if _parameter_bound(config) > PARAMETER_LIMIT:
        raise FolderError(f"{path}: describes over {PARAMETER_LIMIT:,} parameters; refused before building it")
    if config.model.positions == "sinusoidal" and config.model.max_len * config.model.d_model > POSITIONS_LIMIT:
        raise FolderError(
            f"{path}: max_len = {config.model.max_len:,} is too long for positions that are computed"
        )
    return config


def _parameter_bound(config: FolderConfig) -> int:
    """About how many parameters the config asks for."""
    shape = config.model
    attention = 4 * shape.d_model * shape.num_heads * shape.dim_of_head
    feed_forward = 2 * shape.d_model * shape.d_ff
    layers = shape.num_encoder_layers * (attention + feed_forward)
    layers += shape.num_decoder_layers * (2 * attention + feed_forward)
    tables = config.src_vocab_size + 2 * config.tgt_vocab_size + 2 * shape.max_len
    return layers + tables * shape.d_model


def _refuse_unlisted(folder: Path, files: Mapping[str, Any], names: list[str] | None = None) -> None:
    for name in names or [WEIGHTS, CONFIG]:
        if name not in files:
            raise FolderError(
                f"{folder / durable.MANIFEST}: does not list {name}; the folder is not a whole model"
            )


def _refuse_names(path: Path, missing: set[str], unknown: set[str]) -> None:
    if missing or unknown:
        name = min(missing or unknown)
        kind = "lacks" if missing else "has an unknown tensor"
        raise FolderError(f"{path}: {kind} {name[:100]!r}; the weights are not of the model in {CONFIG}")


def _refuse_tensor(path: Path, name: str, shape: tuple[int, ...], stored: Any) -> None:
    if tuple(stored.get_shape()) != shape or stored.get_dtype() != "F32":
        found = f"{stored.get_dtype()} {tuple(stored.get_shape())}"
        raise FolderError(f"{path}: {name} is {found}, expected F32 {shape}; the weights are another model's")


def _why_no_model(folder: Path) -> str:
    if run_files(folder).recipe.is_file():
        return f"{folder}: training has not finished; run the same `weft train --out {folder}` again to go on"
    pickles = [p.name for p in folder.iterdir() if p.suffix in {".pt", ".bin", ".pth", ".pkl", ".ckpt"}]
    if pickles:
        return f"{folder}: not a Weft model; {pickles[0]} may be a pickle, which Weft never reads"
    return f"{folder}: not a Weft model folder (it has no {durable.MANIFEST})"


def is_finished(folder: Path) -> bool:
    """Whether a model was published here (its files may still turn out damaged)."""
    return (folder / durable.MANIFEST).is_file()


def model_card(config: FolderConfig, facts: Mapping[str, Any], verdict: Mapping[str, Any], command: str) -> str:
    """README.md of a model folder: what it is, how it was made, what it scores, how to use it."""
    langs = f"{config.src_lang} to {config.tgt_lang}"
    shape = config.model
    texts = "\n".join(
        f"- {name}: {part['pairs']:,} pairs from {', '.join(part['files'])} (sha256 {part['sha256'][:16]})"
        for name, part in facts["texts"].items()
    )
    layers, best = f"{shape.num_encoder_layers}+{shape.num_decoder_layers}", verdict["best_step"]
    which = f"those of step {best:,}, the best on dev" if best else "the last"
    return f"""# Translation, {langs}

A Transformer of {layers} layers (width {shape.d_model}, {shape.num_heads} heads), trained
with Weft {config.weft_version}.

## Use

    weft translate THIS_FOLDER "A sentence."
    weft evaluate THIS_FOLDER source.{config.src_lang},reference.{config.tgt_lang}

## Text

{texts}

## Training

    {command or "weft.train(...)"}

{verdict["step"]:,} steps; the weights are {which}.

## Scores

{_bullets(_dev_lines(verdict["dev"]) + _test_lines(verdict["test"]))}

## Notes

{_bullets(verdict["notes"])}
"""


def _dev_lines(scores: Mapping[str, Any]) -> list[str]:
    return [f"{name.replace('_', ' ')} (greedy): {value:.2f}" for name, value in scores.items()]


def _test_lines(scores: Mapping[str, Any]) -> list[str]:
    if not scores:
        return []
    names = (("BLEU", "bleu"), ("BLEU, lower-cased", "bleu_lc"), ("chrF", "chrf"))
    lines = [f"test {name}: {scores[key]:.2f} ({scores[f'{key}_signature']})" for name, key in names]
    return [*lines, f"test: {scores['num_sentences']:,} sentences, sha256 {scores['references_sha256'][:16]}"]


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- none"
