"""Writing a model folder, and reading one without trusting it.

Nothing in it is a pickle and nothing can run code: weights are safetensors, everything else is JSON
with a closed schema. A folder is read in the order manifest, config, tokenizers, weights; sizes are
checked before anything is allocated. A pack is read in the same way (`weft.folder.model_files`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, ValidationInfo, field_validator
from safetensors.numpy import save_file

from weft.config import (
    CausalSection,
    ClassifierSection,
    DecodingSection,
    LayerShape,
    LimitingKey,
    MarksSection,
    ModelSection,
    RecurrentSection,
    SamplingSection,
    Section,
    SideSection,
    TokenizerSection,
    recipe_difference,
)
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.arrays import Arrays, StoredArray, arrays_of, is_finite, stored_arrays
from weft.folder.layout import (
    CARD,
    CONFIG,
    LANGUAGES,
    SHORTLIST,
    SRC_TOKENIZER,
    TGT_TOKENIZER,
    TOKENIZER,
    WEIGHTS,
    WORDS,
    RunFolder,
    is_finished,
)
from weft.folder.mapped import mapped
from weft.folder.model_files import ModelFiles, files_of
from weft.folder.profiles import profiles_of, write_profiles
from weft.folder.version import installed_version
from weft.recipes.problems import problems_of, unknown_keys
from weft.recipes.retired import without_training_keys

__all__ = [
    "CARD",
    "CONFIG",
    "LANGUAGES",
    "PARAMETER_LIMIT",
    "POSITIONS_LIMIT",
    "SHORTLIST",
    "SRC_TOKENIZER",
    "TGT_TOKENIZER",
    "TOKENIZER",
    "VERSION",
    "WEIGHTS",
    "WORDS",
    "ClassificationConfig",
    "Contents",
    "FolderConfig",
    "LanguageConfig",
    "RunFolder",
    "StoredModel",
    "TranslationConfig",
    "VocabularySize",
    "config_in",
    "is_finished",
    "is_model_folder",
    "keep_train_hashes",
    "open_model_folder",
    "read_config",
    "read_words",
    "save_model_folder",
]

VERSION = installed_version()
# the folder's format, kept in config.json; docs/reliability.md says what it promises
FORMAT = 1
PARAMETER_LIMIT = 20_000_000_000
# numbers in a table of sinusoidal positions, which is not among the weights
POSITIONS_LIMIT = 2**27
_MOST_CONFIG = 2**20  # bytes
_MOST_TOKENIZER = 2**30

VocabularySize = Annotated[int, Field(ge=4, le=2_000_000)]


class FolderConfig(Section):
    """The content of config.json: a model's shape, tokenizers and defaults.

    `known_words`: the folder has hashes of the words of its training text.

    `low_confidence`: 5 % of the answers on dev were below it. It is a mean log-probability a token,
    or a classifier's probability.

    `weights` = "int8": the matrices of linear maps are int8, each row to be multiplied by its own
    scale (`layout.SCALES`).
    """

    format: Literal[1] = 1
    weft_version: str
    task: str
    tokenizer_steps: dict[str, str]
    weights: Literal["float32", "int8"]
    known_words: bool = False
    low_confidence: float | None = None

    @property
    def is_recurrent(self) -> bool:
        """Return whether the model is made of recurrent layers."""
        return False

    def tokenizer_files(self) -> dict[str, SideSection]:
        """Return each tokenizer's file name with its settings."""
        raise NotImplementedError

    def files(self) -> list[str]:
        """Return the files that the folder must hold beside weights and config."""
        return [*self.tokenizer_files(), *([WORDS] if self.known_words else [])]

    def parameter_bound(self) -> int:
        """Return an estimate of the number of parameters, to refuse enormous models."""
        raise NotImplementedError

    def position_bound(self) -> int:
        """Return the size of the table of sinusoidal positions, which no file holds."""
        return 0

    def differences(self, other: "FolderConfig") -> dict[str, tuple[Any, Any]]:
        """Return the dotted keys in which another model is unlike this one, with both values.

        Aside from what does not change how a model computes.
        """
        unlike = ("weft_version", "known_words", "low_confidence", "quality")
        return {
            key: values
            for key, values in recipe_difference(self, other).items()
            if key.split(".")[0] not in unlike
        }


class LogisticSection(Section):
    """A logistic regression: a bias, and weights by the names of features."""

    bias: float
    weights: Annotated[dict[str, float], Field(max_length=100)]


class QualitySection(Section):
    """The quality that a translator has learned of itself (`weft.predict.quality.Quality`)."""

    words: LogisticSection
    sentences: LogisticSection
    omission: LogisticSection | None = None
    least_omission: Annotated[float, Field(ge=0, le=1)] = 1.0


class TranslationConfig(FolderConfig):
    """The config of a translator, Transformer or recurrent.

    `shortlist`: whether the folder has a lexical shortlist, and whether it is used by default.

    `usual_src_len`: hardly any training source has more tokens, eos included. `least_ratio`: hardly
    any training pair has fewer target tokens for each source token (0: not known).

    `single_sentences`: nearly every training source is one sentence, so that a text is translated
    sentence by sentence. Folders from before this key are treated so, too.

    `kept_forms`: the forms of placeholders and the like that the model has learned to write as the
    source has them (`weft.data.kept`); of a folder without the key, none.

    `takes_terms`, `takes_match`: the model has learned to read target words of terms in the source,
    or the translation of a similar sentence behind it (`weft.data.hints`).

    `quality`: how it estimates the quality of its translations; None where it has not learned that.

    `directions`: source and target of each direction, where there are several; `src_lang` and
    `tgt_lang` are those of the first.

    `marks`: those that it has learned to read before a source (`weft.data.marks`); the source
    tokenizer has their ids.
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
    kept_forms: tuple[str, ...] = ()
    takes_terms: bool = False
    takes_match: bool = False
    quality: QualitySection | None = None
    marks: MarksSection = MarksSection()
    directions: tuple[tuple[str, str], ...] = ()
    model: ModelSection
    tokenizer: TokenizerSection
    decoding: DecodingSection

    @property
    def is_recurrent(self) -> bool:
        return isinstance(self.model, RecurrentSection)

    @property
    def limiting_key(self) -> LimitingKey:
        """Return the recipe key that allows no longer sentence, in training and in use."""
        is_full = self.max_src_len + self.marks.most >= self.model.max_len
        return "model.max_len" if is_full else "data.max_len"

    def tokenizer_files(self) -> dict[str, SideSection]:
        if self.joint:
            return {TOKENIZER: self.tokenizer.src}
        return {SRC_TOKENIZER: self.tokenizer.src, TGT_TOKENIZER: self.tokenizer.tgt}

    def files(self) -> list[str]:
        return [*super().files(), *([] if self.shortlist == "none" else [SHORTLIST])]

    def parameter_bound(self) -> int:
        shape = self.model
        tables = (self.src_vocab_size + 2 * self.tgt_vocab_size) * shape.d_model
        num_layers = shape.num_encoder_layers + shape.num_decoder_layers
        if isinstance(shape, RecurrentSection):
            widest = max(shape.d_model, 2 * shape.d_hidden)
            return tables + 16 * widest * widest * num_layers
        cross_attention = shape.num_decoder_layers * _attention_parameters(shape)
        return tables + cross_attention + _stack_parameters(shape, num_layers)

    def position_bound(self) -> int:
        if isinstance(self.model, RecurrentSection):
            return 0
        return _computed_positions(self.model)


class LanguageConfig(FolderConfig):
    """The config of a causal language model; it was trained on windows of `window_len` tokens."""

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
        shape = self.model
        matches = len(shape.match_lengths) * self.vocab_size
        rows = 2 * self.vocab_size + _buckets(shape) + matches
        layers = _stack_parameters(shape, shape.num_decoder_layers)
        return rows * shape.d_model + layers

    def position_bound(self) -> int:
        return _computed_positions(self.model)


class ClassificationConfig(FolderConfig):
    """The config of a classifier; `labels` are in the order of the output layer's rows."""

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
            raise ValueError("a label occurs twice")
        return labels

    def tokenizer_files(self) -> dict[str, SideSection]:
        return {TOKENIZER: self.tokenizer}

    def parameter_bound(self) -> int:
        shape = self.model
        rows = 2 * self.vocab_size + _buckets(shape) + 2 * len(self.labels)
        layers = _stack_parameters(shape, shape.num_encoder_layers)
        return rows * shape.d_model + layers

    def position_bound(self) -> int:
        return _computed_positions(self.model)


CONFIGS: dict[str, type[FolderConfig]] = {
    "translation": TranslationConfig,
    "language-modelling": LanguageConfig,
    "classification": ClassificationConfig,
}


Shape: TypeAlias = tuple[tuple[int, ...], str]
"""The shape of a stored array, and its type: "F32" or "I8"."""


@dataclass(frozen=True)
class StoredModel:
    """The checked content of a model folder or a pack; the model itself is not built yet.

    `tokenizers` are JSON files by name, `card` is the manifest.
    """

    files: ModelFiles
    config: FolderConfig
    tokenizers: Mapping[str, bytes]
    card: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """Return the folder or the pack."""
        return self.files.path

    def weights(self, shapes: Mapping[str, Shape]) -> Arrays:
        """Map the weights, which must have these names and shapes; int8 ones as they are stored.

        Raises FolderError where they do not fit or are not finite. Nothing is allocated before the
        file's own names, shapes and types are checked.
        """
        path = self.files.place(WEIGHTS)
        content = self.files.mapped(WEIGHTS)
        found = stored_arrays(content, path)
        _refuse_names(path, shapes.keys() - found.keys(), found.keys() - shapes.keys())
        for name, shape in shapes.items():
            _refuse_tensor(path, name, shape, found[name])
        arrays = arrays_of(content, path)
        for name, array in arrays.items():
            if array.dtype == np.float32 and not is_finite(array):
                raise FolderError(
                    f"{path}: {name} holds NaN or infinity; the file is damaged"
                )
        return arrays

    def own_arrays(self) -> Arrays:
        """Map the weights by their names, whatever they are."""
        return arrays_of(self.files.mapped(WEIGHTS), self.files.place(WEIGHTS))

    def words(self) -> NDArray[np.int32] | None:
        """Return the hashes of the words of its training text; None where they were not kept.

        Raises FolderError where they are damaged.
        """
        if not self.config.known_words:
            return None
        return words_of(self.files.mapped(WORDS), self.files.place(WORDS))

    def profiles(self) -> dict[str, NDArray[Any]]:
        """Return what is known of its languages, by code; nothing where it was not kept.

        Raises FolderError where that is damaged.
        """
        if LANGUAGES not in self.card["files"]:
            return {}
        return profiles_of(self.files.mapped(LANGUAGES), self.files.place(LANGUAGES))

    def shortlist(self) -> Arrays | None:
        """Return the arrays of a translator's shortlist; None where it has none.

        Raises FolderError where they do not fit the model.
        """
        config = self.config
        if not isinstance(config, TranslationConfig) or config.shortlist == "none":
            return None
        path = self.files.place(SHORTLIST)
        arrays = arrays_of(self.files.mapped(SHORTLIST), path)
        if not _is_shortlist(arrays, config):
            raise FolderError(f"{path}: not the shortlist of the model in {CONFIG}")
        return {name: np.array(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class Contents:
    """The learned parts of a model: weights by name, and each tokenizer by the name of its file.

    `words` are hashes of the words of the training text, `profiles` what is known of its languages.
    """

    weights: Arrays
    tokenizers: Mapping[str, bytes]
    shortlist: Arrays | None = None
    words: NDArray[np.int32] | None = None
    profiles: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)


def save_model_folder(
    folder: Path,
    config: FolderConfig,
    contents: Contents,
    card: str,
    facts: Mapping[str, Any],
) -> None:
    """Write the model into `folder`, the manifest last; other files in the folder stay."""
    durable.make_folder(folder)
    (folder / durable.MANIFEST).unlink(missing_ok=True)
    with durable.replacing(folder / WEIGHTS) as temporary:
        save_file(_contiguous(contents.weights), temporary)
    durable.write_json(folder / CONFIG, config.model_dump(mode="json"))
    for name, content in contents.tokenizers.items():
        durable.write_bytes(folder / name, content)
    if contents.shortlist is not None:
        with durable.replacing(folder / SHORTLIST) as temporary:
            save_file(_contiguous(contents.shortlist), temporary)
    if contents.words is not None:
        write_words(folder / WORDS, contents.words)
    files = [WEIGHTS, CONFIG, *config.files()]
    if contents.profiles:
        write_profiles(folder / LANGUAGES, contents.profiles)
        files.append(LANGUAGES)
    durable.write_text(folder / CARD, card)
    durable.write_manifest(folder, files, facts)


def _contiguous(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return arrays whose numbers lie in one piece, as they are saved."""
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def write_words(path: Path, words: NDArray[np.int32]) -> None:
    """Write the sorted hashes of words."""
    with durable.replacing(path) as temporary:
        save_file(_contiguous({"words": words}), temporary)


def read_words(path: Path) -> NDArray[np.int32]:
    """Read hashes of words, as `words_of` does."""
    return words_of(mapped(path), path)


def words_of(content: memoryview, path: Path) -> NDArray[np.int32]:
    """Return the hashes of words in a file that is mapped.

    Raises FolderError, with the name `path`, where they are not sorted or not int32.
    """
    words = arrays_of(content, path).get("words")
    is_list = words is not None and words.dtype == np.int32 and words.ndim == 1
    if words is None or not is_list or not _rises(words):
        raise FolderError(f"{path}: not a sorted list of hashes; the file is damaged")
    return np.array(words)


def _rises(words: NDArray[np.int32]) -> bool:
    return bool((np.diff(words.astype(np.int64)) > 0).all())


def keep_train_hashes(folder: Path, out: Path) -> None:
    """Copy the hashes of a model's training text, if any, to the folder of a model made from it."""
    hashes = RunFolder(folder).train_hashes
    if hashes.is_file():
        run = RunFolder(out)
        durable.make_folder(run.folder)
        durable.write_bytes(run.train_hashes, hashes.read_bytes())


def open_model_folder(folder: Path) -> StoredModel:
    """Check a model folder or a pack and read everything but the weights.

    Raises FolderError where it is missing, unfinished, damaged or not a model folder of this
    version.
    """
    files = files_of(folder)
    manifest = files.manifest()
    _refuse_unlisted(files, manifest["files"])
    config = config_in(files)
    _refuse_unlisted(files, manifest["files"], config.files())
    names = config.tokenizer_files()
    tokenizers = {name: files.read(name, _MOST_TOKENIZER) for name in names}
    return StoredModel(files, config, tokenizers, manifest)


def _is_shortlist(arrays: Arrays, config: TranslationConfig) -> bool:
    if arrays.keys() != {"always", "targets", "ends"}:
        return False
    targets = arrays["targets"]
    return (
        _are_ids(arrays["always"], config.tgt_vocab_size)
        and _are_ids(targets, config.tgt_vocab_size)
        and _are_ends(arrays["ends"], config.src_vocab_size, len(targets))
    )


def _are_ids(ids: NDArray[Any], vocab_size: int) -> bool:
    if ids.dtype != np.int32 or ids.ndim != 1:
        return False
    if not len(ids):
        return True
    return int(ids.min()) >= 0 and int(ids.max()) < vocab_size


def _are_ends(ends: NDArray[Any], count: int, last: int) -> bool:
    """Return whether `ends` are `count` numbers that rise from 0 or more to `last`."""
    if ends.dtype != np.int64 or ends.shape != (count,):
        return False
    steps = np.diff(ends, prepend=0)
    return bool((steps >= 0).all()) and int(ends[-1]) == last


def is_model_folder(folder: Path) -> bool:
    """Return whether Weft wrote a folder: it holds a model, or a run that has begun."""
    return (folder / durable.MANIFEST).is_file() or RunFolder(folder).recipe.is_file()


def read_config(path: Path) -> FolderConfig:
    """Read a file as config.json, as `config_in` does."""
    return _config_of(durable.read_json(path, _MOST_CONFIG), path)


def config_in(files: ModelFiles) -> FolderConfig:
    """Read config.json. Raises FolderError where it is not a config of this version."""
    return _config_of(files.json(CONFIG, _MOST_CONFIG), files.place(CONFIG))


def _config_of(tree: Any, path: Path) -> FolderConfig:
    """Return the config of a file's JSON."""
    _refuse_newer(path, tree)
    task = tree.get("task") if isinstance(tree, dict) else None
    if not isinstance(task, str) or task not in CONFIGS:
        raise FolderError(
            f"{path}: not a config of this version: task: {task!s:.40} is none of {[*CONFIGS]}"
        )
    kind = CONFIGS[task]
    tree = without_training_keys(tree)
    try:
        # not indented, as the tree may be deep
        config = kind.model_validate_json(json.dumps(tree, allow_nan=False))
    except (ValidationError, ValueError, RecursionError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            why = _why_refused(error, kind, tree)
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
    """Return the first problem of a config."""
    if unknown := unknown_keys(error):
        return f"unknown key {'.'.join(min(unknown))!r}"
    return problems_of(error, kind, tree)[0]


def _refuse_newer(path: Path, tree: Any) -> None:
    """Raise FolderError where a later Weft wrote the folder, in a newer format."""
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
    """Estimate the number of parameters of a stack: self-attention, feed-forward, positions."""
    layer = _attention_parameters(shape) + 2 * shape.d_model * shape.d_ff
    return num_layers * layer + 2 * shape.max_len * shape.d_model


def _buckets(shape: CausalSection | ClassifierSection) -> int:
    return shape.ngram_buckets if shape.ngrams > 1 else 0


def _computed_positions(shape: LayerShape) -> int:
    return shape.max_len * shape.d_model if shape.positions == "sinusoidal" else 0


def _refuse_unlisted(
    files: ModelFiles, listed: Mapping[str, Any], names: list[str] | None = None
) -> None:
    for name in names or [WEIGHTS, CONFIG]:
        if name not in listed:
            raise FolderError(
                f"{files.place(durable.MANIFEST)}: does not list {name}; the folder is not a whole model"
            )


def _refuse_names(path: Path, missing: set[str], unknown: set[str]) -> None:
    if missing or unknown:
        name = min(missing or unknown)
        kind = "lacks" if missing else "has an unknown tensor"
        raise FolderError(
            f"{path}: {kind} {name[:100]!r}; the weights are not of the model in {CONFIG}"
        )


def _refuse_tensor(path: Path, name: str, wanted: Shape, stored: StoredArray) -> None:
    shape, kind = wanted
    if stored.shape != shape or stored.kind != kind:
        actual = f"{stored.kind} {stored.shape}"
        raise FolderError(
            f"{path}: {name} is {actual}, expected {kind} {shape}; the weights are another model's"
        )
