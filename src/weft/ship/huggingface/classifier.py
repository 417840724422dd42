"""Classifiers as classes of transformers: the parts that all these classes have alike."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.config import ClassifierSection
from weft.folder.model_folder import ClassificationConfig
from weft.ship.huggingface.home import Home, Reasons, differing
from weft.ship.huggingface.takes import Takes
from weft.ship.huggingface.tokens import input_table, loose_table
from weft.ship.source import Source
from weft.ship.tensors import Tensor
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap

_TOKENS = "encoder.embedding.tokens.weight"


class ClassifierHome(Home):
    """A class of classifiers.

    `takes` are the layers that it computes, `poolings` what a text's vector may be. `table` is its
    name of the table of tokens.
    """

    task: ClassVar[str] = "classification"
    auto_class: ClassVar[str] = "AutoModelForSequenceClassification"
    takes: ClassVar[Takes]
    poolings: ClassVar[tuple[str, ...]]
    table: ClassVar[str]

    def reasons(self, source: Source) -> Reasons:
        shape = shape_of(source)
        yield from differing(shape, ngrams=(1,))
        if not shape.num_encoder_layers:
            yield "it needs layers, and model.num_encoder_layers = 0 (recipe classify-modern has them)"
            return
        yield from differing(shape, pooling=self.poolings)
        yield from self.takes.reasons(shape)

    def ids(self, source: Source) -> IdMap:
        (tokenizer,) = source.tokenizers
        return id_maps.same(tokenizer)

    def config(self, source: Source) -> Mapping[str, Any]:
        sizes = self.sizes(shape_of(source))
        return {"vocab_size": self.ids(source).size, **sizes}

    @abstractmethod
    def sizes(self, shape: ClassifierSection) -> Mapping[str, Any]:
        """Return what the class' config says of the layers."""

    def tensors(self, source: Source) -> list[Tensor]:
        shape = shape_of(source)
        table = input_table(self.table, _TOKENS, shape, has_copy=False)
        return [table, *self.stack(source, shape)]

    @abstractmethod
    def stack(self, source: Source, shape: ClassifierSection) -> Iterator[Tensor]:
        """Yield all arrays but the table of tokens."""

    def loose(self, source: Source) -> tuple[Mapping[str, float], str]:
        array = source.arrays[_TOKENS]
        return loose_table(self.table, array, shape_of(source), has_copy=False)

    def notes(self, source: Source) -> Iterator[str]:
        config = source.config
        assert isinstance(config, ClassificationConfig)
        if config.too_long == "windows":
            yield (
                f"a text of more than {config.max_len} tokens is cut with truncation=True; "
                "Weft reads it in windows and takes the mean of their probabilities"
            )
        if config.model.pooling == "mean":
            yield (
                "leave out texts that are empty or white space alone: they have no tokens, and transformers, "
                "which takes the mean of none, raises an error, or in a batch gives NaN as their score"
            )
        if config.multi_label:
            yield "a text has any number of labels: top_k=None gives all, and those of at least 0.5 hold"


def shape_of(source: Source) -> ClassifierSection:
    """Return the shape of a classifier."""
    config = source.config
    assert isinstance(config, ClassificationConfig)
    return config.model
