"""The schema of a recipe: sections of validated keys.

A recipe holds everything that decides the result of a run, except the text.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Amount = Annotated[int, Field(ge=0, lt=2**63)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(ge=0.0, le=0.5)]
Layers = Annotated[int, Field(ge=1, le=1024)]

# the keys that say how long a translator's sentences may be
LimitingKey: TypeAlias = Literal["data.max_len", "model.max_len"]

SIDES = ("src", "tgt")


class Section(BaseModel):
    """A part of the recipe: frozen, closed to unknown keys, and strict about types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )


class MixtureSection(Section):
    """A mixture of the sources, up to a share of the run's steps: the weights of texts by tags.

    `made` stands for those whose sources a machine made, `other` for all texts whose tag is not
    named. What is not named keeps its own weight.
    """

    until: Annotated[float, Field(gt=0.0, le=1.0)]
    weights: dict[str, Annotated[float, Field(ge=0.0, le=1000.0)]] = {}


class PairsSection(Section):
    """The sentence pairs to train on.

    Files are named on the command line, a built-in corpus here. `seed` chooses the held-out pairs.

    `terms` and `memory` are shares of the pairs in which the model reads, beside the source, the
    translations of a few words, or that of the sentence most like it among the others.

    `directions`: that of the text (`one`), the reverse of it, that of each of several texts, or all
    of these `both` ways. Of several, `temperature` above 1 has an epoch read more of those with
    little text.

    `mixtures` weigh the sources anew, one after the other, each until its share of the steps;
    behind the last one, the sources have their own weights again.
    """

    builtin: str | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None
    seed: Seed = 1
    dev_size: Amount | None = None
    test_size: Amount | None = None
    max_len: Annotated[int, Field(ge=1, le=100_000)] = 256
    terms: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    memory: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    directions: Literal["one", "reverse", "each", "both"] = "one"
    temperature: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.0
    mixtures: tuple[MixtureSection, ...] = ()

    @model_validator(mode="after")
    def _mixtures_follow_each_other(self) -> "PairsSection":
        ends = [mixture.until for mixture in self.mixtures]
        if any(end >= after for end, after in pairwise(ends)):
            raise ValueError(
                f"mixtures end at {', '.join(map(str, ends))}: give each a later end than the one before"
            )
        return self

    @property
    def has_hints(self) -> bool:
        """Return whether the model reads words of the target beside the source."""
        return self.terms > 0 or self.memory > 0


class MarksSection(Section):
    """The marks that a model reads before a source: the languages to write, that a machine made the
    source, and the tags of texts (`weft.data.marks`).
    """

    languages: tuple[str, ...] = ()
    made: bool = False
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.languages or self.made or self.tags)

    @property
    def most(self) -> int:
        """Return how many marks a row has at most."""
        return bool(self.languages) + self.made + bool(self.tags)


class DocumentsSection(Section):
    """The documents to train on: where one ends, and which share is held out.

    A share is held out where no dev or test text is given. With `raw`, markup such as HTML or JSON
    is read as plain text.
    """

    builtin: str | None = None
    lang: str | None = None
    documents: Literal["blank-line", "file", "line"] = "blank-line"
    raw: bool = False
    seed: Seed = 1
    dev_share: Share = 0.05
    test_share: Share = 0.0


class RowsSection(Section):
    """The labelled rows to train on: the columns of the table, and how a long text is read."""

    builtin: str | None = None
    lang: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    label_separator: Annotated[str, Field(min_length=1, max_length=8)] | None = None
    seed: Seed = 1
    dev_size: Amount | None = None
    test_size: Amount | None = None
    max_len: Annotated[int, Field(ge=1, le=100_000)] = 256
    too_long: Literal["cut", "windows"] = "cut"


class SideSection(Section):
    """A tokenizer: its kind, its size and the normalization before it.

    The kind `auto` is chosen by script and amount of text. `words` says how the kind `word` splits.
    With `leading_space` one is put before a text; of characters and bytes none ever is.
    """

    kind: Literal["auto", "word", "character", "bpe", "unigram", "byte"] = "auto"
    words: Literal["unicode", "whitespace", "nltk", "spacy"] = "unicode"
    # special pieces and bytes alone are 260
    vocab_size: Annotated[int, Field(ge=260, le=1_000_000)] | None = None
    min_frequency: Count = 1
    unicode: Literal["NFC", "NFKC", "raw"] = "NFC"
    lowercase: bool = False
    simplified: bool = False
    leading_space: bool = True

    @model_validator(mode="after")
    def _words_need_the_word_kind(self) -> "SideSection":
        if self.words != "unicode" and self.kind != "word":
            raise ValueError(
                f"words = {self.words!r} needs kind = 'word', not {self.kind!r}"
            )
        return self


def _add_shared_keys(schema: dict[str, Any]) -> None:
    """Add to the JSON schema of two sides' tokenizers the keys that stand for both."""
    schema["properties"] |= SideSection.model_json_schema()["properties"]


class TokenizerSection(Section):
    """The tokenizers of a translator: one for both sides (`joint`, described by `src`) or two.

    A key of `SideSection` in this section itself is for both sides; one in `src` or `tgt` is for
    that side alone.
    """

    model_config = ConfigDict(json_schema_extra=_add_shared_keys)

    joint: Literal["auto", True, False] = "auto"
    src: SideSection = SideSection()
    tgt: SideSection = SideSection()

    @model_validator(mode="before")
    @classmethod
    def _give_shared_keys_to_both_sides(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        names = SideSection.model_fields.keys()
        shared = {key: inner for key, inner in value.items() if key in names}
        own = {key: inner for key, inner in value.items() if key not in names}
        for side in SIDES if shared else ():
            settings = own.get(side, {})
            if isinstance(settings, SideSection):
                settings = settings.model_dump(exclude_unset=True)
            if isinstance(settings, Mapping):
                own[side] = {**shared, **settings}
        return own

    @field_validator("joint", mode="before")
    @classmethod
    def _word_or_boolean(cls, value: Any) -> Any:
        if not isinstance(value, bool | str):  # else 1 would pass, as 1 == True
            raise ValueError(f"{value!r:.60} is none of 'auto', true and false")
        return value

    @model_validator(mode="after")
    def _one_description_when_joint(self) -> "TokenizerSection":
        if self.joint is True and self.src != self.tgt:
            raise ValueError(
                "a joint tokenizer needs tokenizer.src and tokenizer.tgt to be equal"
            )
        return self


class BatchesSection(Section):
    """The size of a micro-batch, in sentences or in padded source and target tokens.

    Without either it is 4,096 tokens.
    """

    tokens_per_batch: Count | None = None
    batch_size: Count | None = None

    @model_validator(mode="after")
    def _one_measure(self) -> "BatchesSection":
        if self.tokens_per_batch and self.batch_size:
            raise ValueError(
                "set batches.tokens_per_batch or batches.batch_size, not both"
            )
        return self


class WindowsSection(Section):
    """The windows of `window_len` tokens that a language model reads.

    `stream` concatenates all documents, splits the result into `batch_size` parallel streams and
    reads them in order. `packed` packs several documents into each window, in random order; none
    attends to another.
    """

    packing: Literal["stream", "packed"] = "stream"
    window_len: Annotated[int, Field(ge=1, le=100_000)] = 128
    batch_size: Count = 32


class LayerShape(Section):
    """The shape of a Transformer's layers, named after the paper and torch.nn.Transformer."""

    d_model: Annotated[int, Field(ge=1, le=65_536)] = 256
    d_ff: Annotated[int, Field(ge=1, le=1_048_576)] = 1024
    num_heads: Annotated[int, Field(ge=1, le=1024)] = 8
    num_key_value_heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    head_dim: Annotated[int, Field(ge=1, le=65_536)] | None = None
    dropout: Fraction = 0.1
    attention_dropout: Fraction = 0.0
    activation_dropout: Fraction = 0.0
    norm: Literal["layer", "rms"] = "layer"
    norm_first: bool = True
    sandwich_norm: bool = False
    query_key_norm: bool = False
    embedding_norm: bool = False
    bias: bool = True
    activation: Literal["relu", "gelu", "relu2", "swiglu", "geglu"] = "relu"
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
        if self.num_heads % self.key_value_heads:
            problems.append(
                f"num_key_value_heads = {self.key_value_heads} does not divide num_heads = {self.num_heads}; "
                "change one"
            )
        if self.sandwich_norm and not self.norm_first:
            problems.append(
                "sandwich_norm adds to norm_first = true; set both, or neither"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(
                f"sinusoidal positions need an even d_model, not {self.d_model}"
            )
        if self.positions == "rotary" and self.dim_of_head % 2:
            problems.append(
                f"rotary positions need heads of an even width, not {self.dim_of_head}; set model.head_dim"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def dim_of_head(self) -> int:
        """Return d_k, the width of one head's queries, keys and values."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def key_value_heads(self) -> int:
        """Return J, the number of heads of keys and values."""
        return self.num_key_value_heads or self.num_heads


class WriterShape(LayerShape):
    """The shape of a Transformer that writes: its layers, and its projection to the vocabulary."""

    tie_embeddings: bool = True
    projection_bias: bool | None = None

    @property
    def has_projection_bias(self) -> bool:
        """Return whether the projection has biases: where it is not said, as the layers have."""
        return self.bias if self.projection_bias is None else self.projection_bias


class Seq2SeqSection(WriterShape):
    """An encoder-decoder Transformer."""

    kind: Literal["transformer"] = "transformer"
    num_encoder_layers: Layers = 3
    num_decoder_layers: Layers = 3


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


class CausalSection(WriterShape):
    """A decoder-only Transformer: each position attends to itself and those before it.

    `ngrams` above 1 adds hashed embeddings of the n-grams up to that length that end at each
    position; in training each is dropped with probability `ngram_dropout`.

    For each n in `match_lengths`, the embedding of one more token is added: the token that followed
    the previous occurrence of the last n tokens in the window.
    """

    num_decoder_layers: Layers = 4
    ngrams: Annotated[int, Field(ge=1, le=8)] = 1
    ngram_buckets: Annotated[int, Field(ge=1, le=2**24)] = 65_536
    ngram_dropout: Fraction = 0.0
    match_lengths: tuple[Annotated[int, Field(ge=1, le=64)], ...] = ()


class ClassifierSection(LayerShape):
    """An encoder whose states are pooled into one vector a text.

    `ngrams` above 1 adds the mean of hashed n-gram embeddings up to that length beside the encoder
    (Joulin et al. 2017, section 2); `num_encoder_layers` may be 0 then. With `ngram_weights =
    "log-count-ratio"` that mean is weighted: an n-gram counts by how much its frequency differs
    between texts with and without a label (Wang and Manning 2012, section 2.1).
    """

    num_encoder_layers: Annotated[int, Field(ge=0, le=1024)] = 2
    pooling: Literal["mean", "first"] = "mean"
    ngrams: Annotated[int, Field(ge=1, le=8)] = 1
    ngram_buckets: Annotated[int, Field(ge=1, le=2**24)] = 500_000
    ngram_weights: Literal["equal", "log-count-ratio"] = "equal"
    head_dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _something_to_pool(self) -> "ClassifierSection":
        if not self.num_encoder_layers and self.ngrams == 1 and self.pooling == "first":
            raise ValueError(
                "num_encoder_layers = 0 leaves the first token without the text; set pooling to mean"
            )
        return self


# the kinds of an encoder-decoder, by model.kind
MODEL_KINDS: dict[str, type[Section]] = {
    "transformer": Seq2SeqSection,
    "recurrent": RecurrentSection,
}


def _kind_of_model(value: Any) -> str:
    kind = (
        value.get("kind", "transformer")
        if isinstance(value, Mapping)
        else getattr(value, "kind", "")
    )
    # the section itself refuses any other kind
    return "recurrent" if kind == "recurrent" else "transformer"


ModelSection = Annotated[
    Annotated[Seq2SeqSection, Tag("transformer")]
    | Annotated[RecurrentSection, Tag("recurrent")],
    Discriminator(_kind_of_model),
]


class TrainingSection(Section):
    """Loss, optimizer, schedule and the order of events; lengths are in optimizer steps."""

    max_steps: Count | None = None
    eval_every: Count | None = None
    save_every: Count | None = None
    patience: Count | None = None
    ema_decay: Fraction = 0.0
    seed: Seed = 1
    optimizer: Literal["adam", "adamw", "sgd", "muon"] = "adam"
    learning_rate: Annotated[float, Field(gt=0.0)] = 0.001
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0.0)] = 1e-9
    momentum: Fraction = 0.0
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    schedule: Literal["noam", "cosine", "step", "constant", "wsd"] = "cosine"
    warmup_steps: Amount = 400
    decay_every: Count = 1000
    decay_factor: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    decay_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    final_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.02
    label_smoothing: Fraction = 0.1
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    grad_clip_norm: Annotated[float, Field(gt=0.0)] | None = 1.0
    grad_accum_steps: Count = 1
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    kernels: Literal["auto", "native", "torch"] = "auto"
    activation_checkpointing: bool = False
    threads: Count | None = None
    parallel: Literal["ddp", "fsdp"] = "ddp"
    keep_checkpoints: Count | Literal["doublings"] = 2
    num_samples: Amount = 4

    @property
    def newest_checkpoints(self) -> int:
        """Return how many of the newest checkpoints a run keeps."""
        kept = self.keep_checkpoints
        return 2 if isinstance(kept, str) else kept

    @property
    def keeps_doublings(self) -> bool:
        """Return whether a run keeps weights of its way, too, to look back at."""
        return self.keep_checkpoints == "doublings"


class ClassifierTrainingSection(TrainingSection):
    """The training of a classifier: `class_weights` weigh the loss of each label.

    "balanced" weighs by the inverse square root of a label's frequency.
    """

    class_weights: (
        Literal["balanced"] | dict[str, Annotated[float, Field(gt=0.0)]] | None
    ) = None


class DecodingSection(Section):
    """The defaults of beam search; options of the command line replace them."""

    beam_size: Annotated[int, Field(ge=1, le=1024)] = 5
    length_penalty: Annotated[float, Field(ge=-10.0, le=10.0)] = 1.0
    max_len_ratio: Annotated[float, Field(gt=0.0, le=1000.0)] = 2.0
    max_len_extra: Amount = 20


class SamplingSection(Section):
    """The defaults of text generation; options replace them. Temperature 0 is greedy."""

    max_new_tokens: Count = 200
    temperature: Annotated[float, Field(ge=0.0, le=100.0)] = 0.8
    top_k: Count | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    min_p: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0


class Recipe(Section):
    """Everything that decides the result of a run, except the text; a task has its own sections."""

    task: str = ""
    data: Section = Section()
    tokenizer: Section = Section()
    batches: Section = Section()
    model: Section = Section()
    training: TrainingSection = TrainingSection()


class TranslationRecipe(Recipe):
    """The recipe of a translator: sentence pairs and an encoder-decoder."""

    task: Literal["translation"] = "translation"
    data: PairsSection = PairsSection()
    tokenizer: TokenizerSection = TokenizerSection()
    batches: BatchesSection = BatchesSection()
    model: ModelSection = Seq2SeqSection()
    decoding: DecodingSection = DecodingSection()

    @model_validator(mode="after")
    def _one_tokenizer_for_hints(self) -> "TranslationRecipe":
        key = "data.terms" if self.data.terms else "data.memory"
        needs = f"{key} = {getattr(self.data, key.removeprefix('data.'))} writes words of the target into the source"
        tokenizer = self.tokenizer
        if self.data.has_hints and tokenizer.joint is False:
            raise ValueError(
                f"{needs}, which needs one tokenizer for both sides; set tokenizer.joint = true"
            )
        if self.data.has_hints and tokenizer.src != tokenizer.tgt:
            raise ValueError(
                f"{needs}, which needs tokenizer.src and tokenizer.tgt to be equal; leave one out"
            )
        return self


class LanguageRecipe(Recipe):
    """The recipe of a language model: documents and a causal decoder."""

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
    """The recipe of a classifier: labelled rows and an encoder."""

    task: Literal["classification"] = "classification"
    data: RowsSection = RowsSection()
    tokenizer: SideSection = SideSection()
    batches: BatchesSection = BatchesSection()
    model: ClassifierSection = ClassifierSection()
    training: ClassifierTrainingSection = ClassifierTrainingSection()

    @model_validator(mode="after")
    def _matrices_for_muon(self) -> "ClassificationRecipe":
        if self.training.optimizer == "muon" and not self.model.num_encoder_layers:
            raise ValueError(
                "training.optimizer = 'muon' is for the matrices of encoder layers, of which there are none "
                "(model.num_encoder_layers = 0); use 'adamw', or at least one layer"
            )
        return self


def size_keys(recipe: Recipe) -> str:
    """Return the keys that make a micro-batch of this recipe as large as it is, joined by or."""
    names = ("tokens_per_batch", "batch_size", "window_len")
    values = recipe.batches.model_dump()
    keys = [f"batches.{name}" for name in names if values.get(name)]
    return " or ".join(keys) or "batches.tokens_per_batch"


RECIPES: dict[str, type[Recipe]] = {
    "translation": TranslationRecipe,
    "language-modelling": LanguageRecipe,
    "classification": ClassificationRecipe,
}


# keys that another value may have where a run is continued
MAY_CHANGE = {
    "training.max_steps",
    "training.patience",
    "training.save_every",
    "training.parallel",
    "training.threads",
}
# evaluations follow the length of a run, and may change with it
FOLLOWS_LENGTH = "training.eval_every"


def recipe_difference(old: BaseModel, new: BaseModel) -> dict[str, tuple[Any, Any]]:
    """Return the dotted keys whose values differ, each with the old and the new value."""
    before = _flatten(old.model_dump(mode="json"))
    after = _flatten(new.model_dump(mode="json"))
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
