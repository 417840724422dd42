"""A model folder: every file name in it, how it is written, and how it is read without trusting it.

Nothing here is a pickle and nothing can run code: weights are safetensors, everything else is JSON
with a closed schema. A folder is read in the order manifest, config, tokenizers, weights; sizes are
checked before anything is allocated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, ValidationError, ValidationInfo, field_validator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from weft.config import (
    CausalSection,
    ClassifierSection,
    DecodingSection,
    LayerShape,
    ModelSection,
    RecurrentSection,
    SamplingSection,
    Section,
    SideSection,
    TokenizerSection,
)
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import (
    CARD,
    CONFIG,
    SCALES,
    SHORTLIST,
    SRC_TOKENIZER,
    TGT_TOKENIZER,
    TOKENIZER,
    WEIGHTS,
    WORDS,
    RunFolder,
    is_finished,
    refuse_no_model,
)
from weft.folder.version import installed_version
from weft.recipes.problems import problems_of, unknown_keys

__all__ = [
    "CARD",
    "CONFIG",
    "PARAMETER_LIMIT",
    "POSITIONS_LIMIT",
    "SCALES",
    "SHORTLIST",
    "SRC_TOKENIZER",
    "TGT_TOKENIZER",
    "TOKENIZER",
    "VERSION",
    "WEIGHTS",
    "WORDS",
    "ClassificationConfig",
    "FolderConfig",
    "LanguageConfig",
    "RunFolder",
    "StoredModel",
    "TranslationConfig",
    "VocabularySize",
    "is_finished",
    "is_model_folder",
    "keep_train_hashes",
    "open_model_folder",
    "quantized_names",
    "read_config",
    "read_shortlist",
    "read_words",
    "save_model_folder",
]

VERSION = installed_version()
# of the folder, kept in config.json; docs/reliability.md says what it promises
FORMAT = 1
PARAMETER_LIMIT = 20_000_000_000
# numbers in a table of sinusoidal positions, which the weights do not hold
POSITIONS_LIMIT = 2**27

VocabularySize = Annotated[int, Field(ge=4, le=2_000_000)]


class FolderConfig(Section):
    """config.json: what the weights are and how text meets them. Closed: an unknown key is an
    error.

    `known_words`: the folder has hashes of the words of its training text; `low_confidence` is what
    one in twenty answers on dev was below: mean log-probability a token, of a classifier the
    probability. With `weights` = "int8" the matrices of linear maps are int8, each row times its
    own of their `SCALES`.
    """

    format: Literal[1] = 1
    weft_version: str
    task: str
    tokenizer_steps: dict[str, str]
    weights: Literal["float32", "int8"]
    known_words: bool = False
    low_confidence: float | None = None

    def tokenizer_files(self) -> dict[str, SideSection]:
        """Return each tokenizer's file name, with its settings."""
        raise NotImplementedError

    def files(self) -> list[str]:
        """Return what the folder must hold beside weights and config."""
        return [*self.tokenizer_files(), *([WORDS] if self.known_words else [])]

    def parameter_bound(self) -> int:
        """Return about how many parameters the shape asks for."""
        raise NotImplementedError

    def position_bound(self) -> int:
        """Return how many numbers the computed positions have, which no file holds."""
        return 0


class TranslationConfig(FolderConfig):
    """An encoder-decoder, Transformer or recurrent, and its tokenizers.

    `shortlist` says whether the folder has a lexical shortlist, and whether it is used unless asked
    otherwise. Hardly a source that it was trained on has more than `usual_src_len` ids, eos
    counted, and hardly a pair fewer target ids for each source id than `least_ratio` (0: not
    known). `single_sentences`: nearly all sources are one sentence each, so that texts are
    translated a sentence at a time; of folders from before it was known, too.
    """

    task: Literal["translation"]
    shortlist: Literal["none", "off", "on"]
    src_lang: str
    tgt_lang: str
    joint: bool
    src_vocab_size: VocabularySize
    tgt_vocab_size: VocabularySize
    max_src_len: Annotated[int, Field(ge=2, le=1_000_000)]
    usual_src_len: Annotated[int, Field(ge=2, le=1_000_000)]
    single_sentences: bool = True
    least_ratio: Annotated[float, Field(ge=0, le=1000)] = 0.0
    model: ModelSection
    tokenizer: TokenizerSection
    decoding: DecodingSection

    def tokenizer_files(self) -> dict[str, SideSection]:
        if self.joint:
            return {TOKENIZER: self.tokenizer.src}
        return {SRC_TOKENIZER: self.tokenizer.src, TGT_TOKENIZER: self.tokenizer.tgt}

    def files(self) -> list[str]:
        return [*super().files(), *([] if self.shortlist == "none" else [SHORTLIST])]

    def parameter_bound(self) -> int:
        shape = self.model
        tables = (self.src_vocab_size + 2 * self.tgt_vocab_size) * shape.d_model
        if isinstance(shape, RecurrentSection):
            widest = max(shape.d_model, 2 * shape.d_hidden)
            return tables + 16 * widest * widest * (
                shape.num_encoder_layers + shape.num_decoder_layers
            )
        cross = shape.num_decoder_layers * _attention_parameters(shape)
        return (
            tables
            + cross
            + _stack_parameters(
                shape, shape.num_encoder_layers + shape.num_decoder_layers
            )
        )

    def position_bound(self) -> int:
        return (
            0
            if isinstance(self.model, RecurrentSection)
            else _computed_positions(self.model)
        )


class LanguageConfig(FolderConfig):
    """A causal Transformer; `window_len` is how far it has learned to look back."""

    task: Literal["language-modelling"]
    lang: str
    vocab_size: VocabularySize
    documents: Literal["blank-line", "file", "line"]
    raw: bool = False
    packing: Literal["stream", "packed"]
    window_len: Annotated[int, Field(ge=1, le=1_000_000)]
    model: CausalSection
    tokenizer: SideSection
    decoding: SamplingSection

    @field_validator("model")
    @classmethod
    def _has_a_window_of_positions(
        cls, model: CausalSection, others: ValidationInfo
    ) -> CausalSection:
        if others.data.get("window_len", 0) > model.max_len:
            raise ValueError(f"max_len = {model.max_len} is less than window_len")
        return model

    def tokenizer_files(self) -> dict[str, SideSection]:
        return {TOKENIZER: self.tokenizer}

    def parameter_bound(self) -> int:
        matches = len(self.model.match_lengths) * self.vocab_size
        tables = (
            2 * self.vocab_size + _buckets(self.model) + matches
        ) * self.model.d_model
        return tables + _stack_parameters(self.model, self.model.num_decoder_layers)

    def position_bound(self) -> int:
        return _computed_positions(self.model)


class ClassificationConfig(FolderConfig):
    """An encoder and its labels; label i is what row i of the output stands for."""

    task: Literal["classification"]
    lang: str
    vocab_size: VocabularySize
    text_column: str
    label_column: str
    label_separator: str | None
    labels: Annotated[list[str], Field(min_length=1, max_length=100_000)]
    multi_label: bool
    max_len: Annotated[int, Field(ge=1, le=1_000_000)]
    too_long: Literal["cut", "windows"]
    model: ClassifierSection
    tokenizer: SideSection

    @field_validator("labels")
    @classmethod
    def _each_label_once(cls, labels: list[str]) -> list[str]:
        if len(set(labels)) < len(labels):
            raise ValueError("a label stands there twice")
        return labels

    def tokenizer_files(self) -> dict[str, SideSection]:
        return {TOKENIZER: self.tokenizer}

    def parameter_bound(self) -> int:
        shape = self.model
        tables = (
            2 * self.vocab_size + _buckets(shape) + 2 * len(self.labels)
        ) * shape.d_model
        return tables + _stack_parameters(shape, shape.num_encoder_layers)

    def position_bound(self) -> int:
        return _computed_positions(self.model)


CONFIGS: dict[str, type[FolderConfig]] = {
    "translation": TranslationConfig,
    "language-modelling": LanguageConfig,
    "classification": ClassificationConfig,
}


@dataclass(frozen=True)
class StoredModel:
    """A folder's content, checked but not yet built: config, tokenizer JSON by file name,
    weights.
    """

    folder: Path
    config: FolderConfig
    tokenizers: Mapping[str, bytes]
    card: Mapping[str, Any]

    def load_weights(self, model: nn.Module) -> None:
        """Copy the weights into `model`. Raises FolderError where they do not fit or are not
        finite.
        """
        self.refuse_unfit(model)
        tensors = dict(load_file(self.folder / WEIGHTS))
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise FolderError(
                    f"{self.folder / WEIGHTS}: {name} holds NaN or infinity; the file is damaged"
                )
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(tensors[name])
                if name + SCALES in tensors:
                    parameter.mul_(tensors[name + SCALES][:, None])

    def refuse_unfit(self, model: nn.Module) -> None:
        """Raise FolderError where names, shapes and types in the file's header are not the model's.

        The model may be on torch's meta device: then nothing that the config claims has been
        allocated yet.
        """
        path = self.folder / WEIGHTS
        wanted = {name: (tuple(p.shape), "F32") for name, p in model.named_parameters()}
        if self.config.weights == "int8":
            for name in quantized_names(model):
                shape, _ = wanted[name]
                wanted |= {name: (shape, "I8"), name + SCALES: (shape[:1], "F32")}
        try:
            with safe_open(path, framework="pt") as file:
                names = set(file.keys())
                _refuse_names(path, wanted.keys() - names, names - wanted.keys())
                for name, (shape, kind) in wanted.items():
                    _refuse_tensor(path, name, shape, kind, file.get_slice(name))
        except (SafetensorError, ValueError, KeyError, OSError) as error:
            raise FolderError(
                f"{path}: not a sound safetensors file ({str(error)[:100]})"
            ) from None


def save_model_folder(
    folder: Path,
    config: FolderConfig,
    weights: Mapping[str, Tensor],
    tokenizers: Mapping[str, bytes],
    card: str,
    facts: Mapping[str, Any],
    shortlist: Mapping[str, Tensor] | None = None,
    words: Tensor | None = None,
) -> None:
    """Write the model into `folder`, the manifest last; what else the folder holds stays."""
    durable.make_folder(folder)
    (folder / durable.MANIFEST).unlink(missing_ok=True)
    with durable.replacing(folder / WEIGHTS) as temporary:
        save_file(
            {name: t.detach().contiguous() for name, t in weights.items()}, temporary
        )
    durable.write_json(folder / CONFIG, config.model_dump(mode="json"))
    for name, content in tokenizers.items():
        durable.write_bytes(folder / name, content)
    if shortlist is not None:
        with durable.replacing(folder / SHORTLIST) as temporary:
            save_file(dict(shortlist), temporary)
    if words is not None:
        write_words(folder / WORDS, words)
    durable.write_text(folder / CARD, card)
    durable.write_manifest(folder, [WEIGHTS, CONFIG, *config.files()], facts)


def write_words(path: Path, words: Tensor) -> None:
    """Write hashes of words, int32."""
    with durable.replacing(path) as temporary:
        save_file({"words": words.contiguous()}, temporary)


def read_words(path: Path) -> Tensor:
    """Read what `write_words` wrote.

    Raises FolderError where it is no sorted list of hashes.
    """
    try:
        words = load_file(path)["words"]
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise FolderError(
            f"{path}: not a sound list of words ({str(error)[:100]})"
        ) from None
    if (
        words.dtype != torch.int32
        or words.ndim != 1
        or not bool((words.long().diff() > 0).all())
    ):
        raise FolderError(f"{path}: not a sorted list of hashes; the file is damaged")
    return words


def keep_train_hashes(folder: Path, out: Path) -> None:
    """Let a model made from that of `folder` know, too, what it was trained on, where that is
    known.
    """
    hashes = RunFolder(folder).train_hashes
    if hashes.is_file():
        durable.make_folder(RunFolder(out).folder)
        durable.write_bytes(RunFolder(out).train_hashes, hashes.read_bytes())


def open_model_folder(folder: Path) -> StoredModel:
    """Check a model folder and read everything but the weights.

    Raises FolderError where it is missing, unfinished, damaged or not a model folder of this
    version.
    """
    refuse_no_model(folder)
    manifest = durable.read_manifest(folder)
    _refuse_unlisted(folder, manifest["files"])
    config = read_config(folder / CONFIG)
    _refuse_unlisted(folder, manifest["files"], config.files())
    tokenizers = {
        name: (folder / name).read_bytes() for name in config.tokenizer_files()
    }
    return StoredModel(folder, config, tokenizers, manifest)


def read_shortlist(folder: Path, config: TranslationConfig) -> dict[str, Tensor] | None:
    """Return the tensors of a shortlist, if the folder has one.

    Raises FolderError where they do not fit its model.
    """
    if config.shortlist == "none":
        return None
    path = folder / SHORTLIST
    try:
        found = load_file(path)
        always, targets, ends = (found[name] for name in ("always", "targets", "ends"))
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise FolderError(
            f"{path}: not a sound shortlist ({str(error)[:100]})"
        ) from None
    limits = torch.cat([torch.zeros(1, dtype=torch.int64), ends.long().flatten()])
    is_fit = (
        len(found) == 3
        and (always.dtype, targets.dtype, ends.dtype)
        == (torch.int32, torch.int32, torch.int64)
        and (always.ndim, targets.ndim, tuple(ends.shape))
        == (1, 1, (config.src_vocab_size,))
        and bool((limits.diff() >= 0).all())
        and int(ends[-1]) == len(targets)
        and all(
            0 <= int(i) < config.tgt_vocab_size
            for ids in (always, targets)
            if len(ids)
            for i in ids.aminmax()
        )
    )
    if not is_fit:
        raise FolderError(f"{path}: not the shortlist of the model in {CONFIG}")
    return found


def quantized_names(model: nn.Module) -> list[str]:
    """Return the names of the parameters that an int8 folder has as int8.

    They are the matrices of linear maps, shared with embeddings or not.
    """
    matrices = {
        id(module.weight) for module in model.modules() if isinstance(module, nn.Linear)
    }
    return [
        name
        for name, parameter in model.named_parameters()
        if id(parameter) in matrices
    ]


def is_model_folder(folder: Path) -> bool:
    """Return whether something here was written by Weft: a model, or a run that has begun."""
    return (folder / durable.MANIFEST).is_file() or RunFolder(folder).recipe.is_file()


def read_config(path: Path) -> FolderConfig:
    """Read what a model is.

    Raises FolderError where the file is not a config of this version.
    """
    tree = durable.read_json(path, limit=2**20)
    _refuse_newer(path, tree)
    task = tree.get("task") if isinstance(tree, dict) else None
    if not isinstance(task, str) or task not in CONFIGS:
        raise FolderError(
            f"{path}: not a config of this version: task: {task!s:.40} is none of {[*CONFIGS]}"
        )
    try:
        config = CONFIGS[task].model_validate_json(
            json.dumps(tree, allow_nan=False)
        )  # never indented: may be deep
    except (ValidationError, ValueError, RecursionError) as error:
        why = (
            _why_refused(error, CONFIGS[task], tree)
            if isinstance(error, ValidationError)
            else str(error)
        )
        raise FolderError(
            f"{path}: not a config of this version: {why[:200]}"
        ) from None
    if config.parameter_bound() > PARAMETER_LIMIT:
        raise FolderError(
            f"{path}: describes over {PARAMETER_LIMIT:,} parameters; refused before building it"
        )
    if config.position_bound() > POSITIONS_LIMIT:
        raise FolderError(
            f"{path}: its max_len is too long for positions that are computed"
        )
    return config


def _why_refused(error: ValidationError, kind: type[FolderConfig], tree: Any) -> str:
    """Return the first thing that is wrong with a config."""
    if unknown := unknown_keys(error):
        return f"unknown key {'.'.join(min(unknown))!r}"
    return problems_of(error, kind, tree)[0]


def _refuse_newer(path: Path, tree: Any) -> None:
    """Raise FolderError where a later Weft wrote a folder that this one cannot know how to read."""
    wanted = tree.get("format") if isinstance(tree, dict) else None
    if isinstance(wanted, int) and wanted > FORMAT:
        writer = f"Weft {tree.get('weft_version')!s:.20}"
        raise FolderError(
            f"{path}: written by {writer} in folder format {wanted}, and this version ({VERSION}) reads "
            f"format {FORMAT}; install a newer weft-text"
        )


def _attention_parameters(shape: LayerShape) -> int:
    return 4 * shape.d_model * shape.num_heads * shape.dim_of_head


def _stack_parameters(shape: LayerShape, num_layers: int) -> int:
    """Count the parameters of a stack: self-attention, feed-forward, and learned positions."""
    layer = _attention_parameters(shape) + 2 * shape.d_model * shape.d_ff
    return num_layers * layer + 2 * shape.max_len * shape.d_model


def _buckets(shape: CausalSection | ClassifierSection) -> int:
    return shape.ngram_buckets if shape.ngrams > 1 else 0


def _computed_positions(shape: LayerShape) -> int:
    return shape.max_len * shape.d_model if shape.positions == "sinusoidal" else 0


def _refuse_unlisted(
    folder: Path, files: Mapping[str, Any], names: list[str] | None = None
) -> None:
    for name in names or [WEIGHTS, CONFIG]:
        if name not in files:
            raise FolderError(
                f"{folder / durable.MANIFEST}: does not list {name}; the folder is not a whole model"
            )


def _refuse_names(path: Path, missing: set[str], unknown: set[str]) -> None:
    if missing or unknown:
        name = min(missing or unknown)
        kind = "lacks" if missing else "has an unknown tensor"
        raise FolderError(
            f"{path}: {kind} {name[:100]!r}; the weights are not of the model in {CONFIG}"
        )


def _refuse_tensor(
    path: Path, name: str, shape: tuple[int, ...], kind: str, stored: Any
) -> None:
    if tuple(stored.get_shape()) != shape or stored.get_dtype() != kind:
        found = f"{stored.get_dtype()} {tuple(stored.get_shape())}"
        raise FolderError(
            f"{path}: {name} is {found}, expected {kind} {shape}; the weights are another model's"
        )
