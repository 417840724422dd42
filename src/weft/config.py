"""The recipe: one validated section for each room of the house, read from TOML, saved as JSON.

A recipe says everything that decides the result of a run. Every problem in it is listed at once, and an
unknown key names its nearest neighbour. TOML has no null: the word "none" stands for it.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from weft.errors import UsageError

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Amount = Annotated[int, Field(ge=0, lt=2**63)]
Share = Annotated[float, Field(ge=0.0, le=0.5)]
Layers = Annotated[int, Field(ge=1, le=1024)]


class Section(BaseModel):
    """A part of the recipe: frozen, closed to unknown keys, and strict about types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class PairsSection(Section):
    """Which pairs: files are given on the command line, built-in corpora here."""

    builtin: str | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None
    dev_size: Amount | None = None
    test_size: Amount | None = None
    max_len: Annotated[int, Field(ge=1, le=100_000)] = 256


class DocumentsSection(Section):
    """Which documents: where one ends, and which share is held out where no dev or test text is given."""

    builtin: str | None = None
    lang: str | None = None
    documents: Literal["blank-line", "file", "line"] = "blank-line"
    dev_share: Share = 0.05
    test_share: Share = 0.0


class RowsSection(Section):
    """Which labelled rows: the columns of a table, and what becomes of a text that is too long."""

    builtin: str | None = None
    lang: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    label_separator: Annotated[str, Field(min_length=1, max_length=8)] | None = None
    dev_size: Amount | None = None
    test_size: Amount | None = None
    max_len: Annotated[int, Field(ge=1, le=100_000)] = 256
    too_long: Literal["cut", "windows"] = "cut"


class SideSection(Section):
    """How text becomes ids; `auto` chooses by script and size. `words`: what the kind `word` takes for one."""

    kind: Literal["auto", "word", "character", "bpe", "unigram", "byte"] = "auto"
    words: Literal["unicode", "whitespace", "nltk", "spacy"] = "unicode"
    vocab_size: Annotated[int, Field(ge=8, le=1_000_000)] | None = None
    min_frequency: Count = 1
    unicode: Literal["NFC", "NFKC", "raw"] = "NFC"
    lowercase: bool = False
    simplified: bool = False

    @model_validator(mode="after")
    def _words_need_the_word_kind(self) -> "SideSection":
        if self.words != "unicode" and self.kind != "word":
            raise ValueError(f"words = {self.words!r} needs kind = 'word', not {self.kind!r}")
        return self


class TokenizerSection(Section):
    """One tokenizer for both sides (`joint`) or one each; a joint one is described by `src`."""

    joint: Literal["auto", True, False] = "auto"
    src: SideSection = SideSection()
    tgt: SideSection = SideSection()

    @field_validator("joint", mode="before")
    @classmethod
    def _word_or_boolean(cls, value: Any) -> Any:
        if not isinstance(value, bool | str):  # 1 == True would pass for it
            raise ValueError(f"{value!r:.60} is none of 'auto', true and false")
        return value

    @model_validator(mode="after")
    def _one_description_when_joint(self) -> "TokenizerSection":
        if self.joint is True and self.src != self.tgt:
            raise ValueError("a joint tokenizer needs tokenizer.src and tokenizer.tgt to be equal")
        return self


class BatchesSection(Section):
    """The size of one micro-batch: sentences, or padded source and target tokens (4,096 by default)."""

    tokens_per_batch: Count | None = None
    batch_size: Count | None = None

    @model_validator(mode="after")
    def _one_measure(self) -> "BatchesSection":
        if self.tokens_per_batch and self.batch_size:
            raise ValueError("set batches.tokens_per_batch or batches.batch_size, not both")
        return self


class WindowsSection(Section):
    """How documents become windows of `window_len` tokens.

    `stream` joins all documents, cuts the whole into `batch_size` parallel streams and reads them in order;
    `packed` puts documents side by side into shuffled windows, and none sees another.
    """

    packing: Literal["stream", "packed"] = "stream"
    window_len: Annotated[int, Field(ge=1, le=100_000)] = 128
    batch_size: Count = 32


class LayerShape(Section):
    """The shape of a Transformer's layers, in the words of the paper and of torch.nn.Transformer."""

    d_model: Annotated[int, Field(ge=1, le=65_536)] = 256
    d_ff: Annotated[int, Field(ge=1, le=1_048_576)] = 1024
    num_heads: Annotated[int, Field(ge=1, le=1024)] = 8
    head_dim: Annotated[int, Field(ge=1, le=65_536)] | None = None
    dropout: Fraction = 0.1
    attention_dropout: Fraction = 0.0
    activation_dropout: Fraction = 0.0
    norm_first: bool = True
    bias: bool = True
    activation: Literal["relu", "gelu", "relu2"] = "relu"
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    scale_embeddings: bool = True
    init_range: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    max_len: Annotated[int, Field(ge=2, le=1_000_000)] = 1024

    @model_validator(mode="after")
    def _width_fits(self) -> "LayerShape":
        problems = []
        if self.head_dim is None and self.d_model % self.num_heads:
            problems.append(
                f"num_heads = {self.num_heads} does not divide d_model = {self.d_model}; "
                "change one, or set model.head_dim"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.positions == "rotary" and self.dim_of_head % 2:
            problems.append(
                f"rotary positions need heads of an even width, not {self.dim_of_head}; set model.head_dim"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def dim_of_head(self) -> int:
        """K: the width of one head's queries, keys and values."""
        return self.head_dim or self.d_model // self.num_heads


class Seq2SeqSection(LayerShape):
    """An encoder-decoder Transformer."""

    kind: Literal["transformer"] = "transformer"
    num_encoder_layers: Layers = 3
    num_decoder_layers: Layers = 3
    tie_embeddings: bool = True


class RecurrentSection(Section):
    """An encoder-decoder of recurrent layers with attention over the encoder's states."""

    kind: Literal["recurrent"]
    cell: Literal["gru", "lstm"] = "gru"
    attention: Literal["dot", "additive"] = "additive"
    d_model: Annotated[int, Field(ge=1, le=65_536)] = 256
    d_hidden: Annotated[int, Field(ge=1, le=65_536)] = 256
    num_encoder_layers: Layers = 1
    num_decoder_layers: Layers = 1
    dropout: Fraction = 0.2
    tie_embeddings: bool = True
    max_len: Annotated[int, Field(ge=2, le=1_000_000)] = 1024


class CausalSection(LayerShape):
    """A decoder-only Transformer: each position sees those before it.

    `ngrams` above 1 adds hashed embeddings of the n-grams up to that length that end at each position; in training
    each is left out with probability `ngram_dropout`. For each of `match_lengths` n, an embedding is added of
    what followed when the newest n tokens stood in the window before.
    """

    num_decoder_layers: Layers = 4
    tie_embeddings: bool = True
    ngrams: Annotated[int, Field(ge=1, le=8)] = 1
    ngram_buckets: Annotated[int, Field(ge=1, le=2**24)] = 65_536
    ngram_dropout: Fraction = 0.0
    match_lengths: tuple[Annotated[int, Field(ge=1, le=64)], ...] = ()


class ClassifierSection(LayerShape):
    """An encoder whose states are pooled into one vector a text.

    `ngrams` above 1 adds the mean of hashed n-gram embeddings up to that length beside the encoder
    (Joulin et al. 2017, section 2); `num_encoder_layers` may be 0 then.
    """

    num_encoder_layers: Annotated[int, Field(ge=0, le=1024)] = 2
    pooling: Literal["mean", "first"] = "mean"
    ngrams: Annotated[int, Field(ge=1, le=8)] = 1
    ngram_buckets: Annotated[int, Field(ge=1, le=2**24)] = 500_000
    head_dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _something_to_pool(self) -> "ClassifierSection":
        if not self.num_encoder_layers and self.ngrams == 1 and self.pooling == "first":
            raise ValueError("num_encoder_layers = 0 leaves the first token without the text; set pooling to mean")
        return self


def _kind_of_model(value: Any) -> str:
    kind = value.get("kind", "transformer") if isinstance(value, Mapping) else getattr(value, "kind", "")
    return "recurrent" if kind == "recurrent" else "transformer"  # of another kind the section itself complains


ModelSection = Annotated[
    Annotated[Seq2SeqSection, Tag("transformer")] | Annotated[RecurrentSection, Tag("recurrent")],
    Discriminator(_kind_of_model),
]


class TrainingSection(Section):
    """Loss, optimizer, schedule and the order of events; lengths are in optimizer steps."""

    max_steps: Count | None = None
    eval_every: Count | None = None
    save_every: Count | None = None
    patience: Count | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    optimizer: Literal["adam", "adamw", "sgd", "muon"] = "adam"
    learning_rate: Annotated[float, Field(gt=0.0)] = 0.001
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0.0)] = 1e-9
    momentum: Fraction = 0.0
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    schedule: Literal["noam", "cosine", "step", "constant"] = "cosine"
    warmup_steps: Amount = 400
    decay_every: Count = 1000
    decay_factor: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    final_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.02
    label_smoothing: Fraction = 0.1
    grad_clip_norm: Annotated[float, Field(gt=0.0)] | None = 1.0
    grad_accum_steps: Count = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    threads: Count | None = None
    parallel: Literal["ddp", "fsdp"] = "ddp"
    keep_checkpoints: Count = 2
    num_samples: Amount = 4


class ClassifierTrainingSection(TrainingSection):
    """As every training; `class_weights` weigh the loss of each label, "balanced" inversely to its frequency."""

    class_weights: Literal["balanced"] | dict[str, Annotated[float, Field(gt=0.0)]] | None = None


class DecodingSection(Section):
    """How translations are searched for when the command line says nothing else."""

    beam_size: Annotated[int, Field(ge=1, le=1024)] = 5
    length_penalty: Annotated[float, Field(ge=-10.0, le=10.0)] = 1.0
    max_len_ratio: Annotated[float, Field(gt=0.0, le=1000.0)] = 2.0
    max_len_extra: Amount = 20


class SamplingSection(Section):
    """How text is generated when the command line says nothing else; temperature 0 is greedy."""

    max_new_tokens: Count = 200
    temperature: Annotated[float, Field(ge=0.0, le=100.0)] = 0.8
    top_k: Count | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    min_p: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0


class Recipe(Section):
    """Everything that decides the result of a run, but the text itself; each task has sections of its own."""

    task: str = ""
    data: Section = Section()
    tokenizer: Section = Section()
    batches: Section = Section()
    model: Section = Section()
    training: TrainingSection = TrainingSection()


R = TypeVar("R", bound=Recipe)


class TranslationRecipe(Recipe):
    """Pairs to an encoder-decoder."""

    task: Literal["translation"] = "translation"
    data: PairsSection = PairsSection()
    tokenizer: TokenizerSection = TokenizerSection()
    batches: BatchesSection = BatchesSection()
    model: ModelSection = Seq2SeqSection()
    decoding: DecodingSection = DecodingSection()


class LanguageRecipe(Recipe):
    """Documents to a causal language model."""

    task: Literal["language-modelling"] = "language-modelling"
    data: DocumentsSection = DocumentsSection()
    tokenizer: SideSection = SideSection()
    batches: WindowsSection = WindowsSection()
    model: CausalSection = CausalSection()
    decoding: SamplingSection = SamplingSection()

    @model_validator(mode="after")
    def _windows_fit(self) -> "LanguageRecipe":
        if self.batches.window_len > self.model.max_len:
            raise ValueError(
                f"batches.window_len = {self.batches.window_len} is more than model.max_len = {self.model.max_len}"
            )
        return self


class ClassificationRecipe(Recipe):
    """Labelled rows to an encoder with a label for each text."""

    task: Literal["classification"] = "classification"
    data: RowsSection = RowsSection()
    tokenizer: SideSection = SideSection()
    batches: BatchesSection = BatchesSection()
    model: ClassifierSection = ClassifierSection()
    training: ClassifierTrainingSection = ClassifierTrainingSection()


RECIPES: dict[str, type[Recipe]] = {
    "translation": TranslationRecipe,
    "language-modelling": LanguageRecipe,
    "classification": ClassificationRecipe,
}


def recipe_names() -> list[str]:
    """The packaged recipes, sorted."""
    folder = resources.files("weft") / "recipes"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))


def load_recipe(name_or_file: str | None = None, settings: Sequence[str] = ()) -> Recipe:
    """Read a packaged recipe by name or a TOML file, apply `section.key=value` settings, validate.

    Its `task` decides which recipe it is; without one it is a translation.

    Raises UsageError naming every problem, with the file or setting that it comes from.
    """
    tree: dict[str, Any] = {} if name_or_file is None else _read_toml(name_or_file)
    for setting in settings:
        _apply_setting(tree, setting)
    return build_recipe(tree, name_or_file or "recipe")


def build_recipe(tree: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Validate a plain mapping. Raises UsageError with one line for each problem."""
    try:
        recipe, problems = _validated(_without_none(tree))
    except (ValueError, RecursionError):
        raise UsageError(f"{where}: nested too deeply, or a number of too many digits") from None
    if recipe is None:
        raise UsageError("\n".join(f"{where}: {problem}" for problem in problems))
    return recipe


def recipe_difference(old: Recipe, new: Recipe) -> dict[str, tuple[Any, Any]]:
    """Dotted keys whose values differ, each with the old and the new value."""
    a, b = _flatten(old.model_dump(mode="json")), _flatten(new.model_dump(mode="json"))
    return {key: (a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)}


def with_values(recipe: R, values: Mapping[str, Any]) -> R:
    """The recipe with some dotted keys replaced, validated anew."""
    tree = recipe.model_dump(mode="json")
    for key, value in values.items():
        _place(tree, key, value)
    changed = build_recipe(tree)
    assert isinstance(changed, type(recipe))
    return changed


def _read_toml(name_or_file: str) -> dict[str, Any]:
    if name_or_file in recipe_names():
        text = (resources.files("weft") / "recipes" / f"{name_or_file}.toml").read_text(encoding="utf-8")
    else:
        if not os.path.isfile(name_or_file):  # unlike Path.is_file, False for a name that is too long
            near = difflib.get_close_matches(name_or_file, recipe_names(), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(recipe_names())
            raise UsageError(
                f"recipe {name_or_file!r:.80} is neither a file nor a packaged recipe ({known}){hint}"
            )
        try:
            text = Path(name_or_file).read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{name_or_file}: not UTF-8 at byte {error.start}; save the recipe as UTF-8"
            ) from None
        except OSError as error:
            raise UsageError(f"{name_or_file}: cannot be read ({error.strerror})") from None
    try:
        return tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # not only TOMLDecodeError: an endless number, endless nesting
        raise UsageError(f"{name_or_file}: not valid TOML: {error}") from None


def _apply_setting(tree: dict[str, Any], setting: str) -> None:
    """Place one `section.key=value`; the value is TOML, or else a bare word taken as a string."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {setting!r}: write section.key=value, for example training.max_steps=2000")
    _place(tree, key.strip(), _parse_value(text.strip()))


def _parse_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text  # a second line would be a second key


def _place(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, key = dotted.split(".")
    for section in sections:
        inner = tree.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{dotted}: {section} is a value, not a section")
        tree = inner
    tree[key] = value


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items()}
    return None if value == "none" else value


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _validated(tree: Any) -> tuple[Recipe | None, list[str]]:
    """The recipe, or else every problem in it.

    How the keys of a section fit together is checked only where all are known: hence once more without
    the unknown ones.
    """
    task = tree.get("task", "translation") if isinstance(tree, Mapping) else "translation"
    if not isinstance(task, str) or task not in RECIPES:
        return None, [f"task = {task!r:.60}: known tasks: {', '.join(RECIPES)}"]
    try:
        return RECIPES[task].model_validate_json(json.dumps(tree, default=str)), []
    except ValidationError as error:
        found = error.errors()
    keys = _known_keys(RECIPES[task], tree)
    problems = [_explain(problem, keys) for problem in found]
    unknown = {_path(problem) for problem in found if problem["type"] == "extra_forbidden"}
    more = _validated(_without_keys(tree, unknown))[1] if unknown else []
    return None, [*problems, *(problem for problem in more if problem not in problems)]


def _known_keys(recipe: type[Recipe], tree: Any) -> list[str]:
    """Every dotted key of the recipe; of the model's section, those of the kind that the tree asks for."""
    tree = recipe().model_dump(mode="json") | _kind_keys(recipe, tree)
    return list(_flatten(tree))


def _kind_keys(recipe: type[Recipe], tree: Any) -> dict[str, Any]:
    model = tree.get("model") if isinstance(tree, Mapping) else None
    if recipe is TranslationRecipe and isinstance(model, Mapping) and model.get("kind") == "recurrent":
        return {"model": RecurrentSection(kind="recurrent").model_dump(mode="json")}
    return {}


def _path(problem: Any) -> tuple[str, ...]:
    """Where a problem is, without the tag that pydantic adds for the kind of model."""
    path = tuple(str(part) for part in problem["loc"])
    tagged = len(path) > 1 and path[0] == "model" and path[1] in ("transformer", "recurrent")
    return path[:1] + path[2:] if tagged else path


def _without_keys(tree: Any, paths: Set[tuple[str, ...]], here: tuple[str, ...] = ()) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {
        key: _without_keys(inner, paths, (*here, key)) for key, inner in tree.items() if (*here, key) not in paths
    }


def _explain(error: Any, keys: Sequence[str]) -> str:
    path = _path(error)
    key, message = ".".join(path), error["msg"].removeprefix("Value error, ")
    if not key.isprintable():
        key = repr(key)
    if error["type"] == "extra_forbidden":
        return f"unknown key {key or repr(key)}; {_nearest(path, keys)}"
    if error["type"] == "value_error":
        return f"{key}: {message}" if key else message
    message = f"{message[0].lower()}{message[1:]}"
    if error["type"] in ("missing", "json_invalid"):
        return f"{key}: {message}" if key else message
    given = repr(error["input"])
    given = given if len(given) <= 60 else f"{given[:60]}..."
    return f"{key} = {given}: {message}" if key else f"{given}: {message}"


def _nearest(path: Sequence[str], keys: Sequence[str]) -> str:
    """Name the nearest known key: the same word elsewhere, a like path, a like word; else all of the section."""
    wanted = ".".join(path)
    leaves = {key.rsplit(".", 1)[-1]: key for key in keys}
    same = [key for key in keys if key.endswith(f".{path[-1]}")]
    close = sorted(same, key=lambda key: -difflib.SequenceMatcher(None, wanted, key).ratio())
    close = close or difflib.get_close_matches(wanted, keys, n=1, cutoff=0.75)
    close = close or [leaves[leaf] for leaf in difflib.get_close_matches(path[-1], leaves, n=1, cutoff=0.6)]
    if close:
        return f"did you mean {close[0]}?"
    sections = dict.fromkeys(key.split(".")[0] for key in keys)
    section = path[0] if path[0] in sections and len(path) > 1 else None
    known = [key for key in keys if key.startswith(f"{section}.")] if section else list(sections)
    return f"known {'keys' if section else 'sections'}: {', '.join(known)}"
