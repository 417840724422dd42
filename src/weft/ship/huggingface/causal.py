"""Language models as classes of transformers: the parts that all these classes have alike."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.config import CausalSection
from weft.folder.model_folder import LanguageConfig
from weft.ship.huggingface.home import Home, Reasons, differing
from weft.ship.huggingface.takes import Takes
from weft.ship.huggingface.tokens import input_table, loose_table
from weft.ship.source import Source
from weft.ship.tensors import Tensor, same
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap

_TOKENS = "embedding.tokens.weight"


class CausalHome(Home):
    """A class of language models.

    `takes` are the layers that it computes. `table` and `head` are its names of the table of tokens
    and of the projection to logits. `scales`: it multiplies the vectors of tokens by sqrt(D).
    """

    task: ClassVar[str] = "language-modelling"
    auto_class: ClassVar[str] = "AutoModelForCausalLM"
    takes: ClassVar[Takes]
    table: ClassVar[str]
    head: ClassVar[str] = "lm_head.weight"
    has_output_biases: ClassVar[bool] = False
    scales: ClassVar[bool] = False

    def reasons(self, source: Source) -> Reasons:
        shape = shape_of(source)
        yield from differing(shape, ngrams=(1,), match_lengths=((),))
        yield from self.takes.reasons(shape)
        if shape.has_projection_bias and not self.has_output_biases:
            yield "it needs model.projection_bias = false"

    def ids(self, source: Source) -> IdMap:
        (tokenizer,) = source.tokenizers
        return id_maps.same(tokenizer)

    def config(self, source: Source) -> Mapping[str, Any]:
        shape = shape_of(source)
        ids = self.ids(source)
        return {
            "vocab_size": ids.size,
            "tie_word_embeddings": self._is_tied(shape),
            **self.sizes(source, shape),
        }

    @abstractmethod
    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        """Return what the class' config says of the layers."""

    def tensors(self, source: Source) -> list[Tensor]:
        shape = shape_of(source)
        return [*self._tables(shape), *self.stack(shape)]

    @abstractmethod
    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        """Yield all arrays but the table of tokens and the projection to logits."""

    def loose(self, source: Source) -> tuple[Mapping[str, float], str]:
        shape = shape_of(source)
        if self.scales:
            return {}, ""
        array = source.arrays[_TOKENS]
        return loose_table(self.table, array, shape, shape.tie_embeddings)

    def notes(self, source: Source) -> Iterator[str]:
        yield (
            f"the model has learned windows of {window_of(source)} tokens: keep a beginning and what is new within "
            "them, as transformers goes on beyond; Weft forgets the beginning there"
        )

    def _tables(self, shape: CausalSection) -> Iterator[Tensor]:
        tied = shape.tie_embeddings
        if self.scales:
            yield same(self.table, _TOKENS)
        else:
            yield input_table(self.table, _TOKENS, shape, has_copy=tied)
        if not self._is_tied(shape):
            yield same(self.head, _TOKENS if tied else "projection.weight")

    def _is_tied(self, shape: CausalSection) -> bool:
        """Return whether the class has one table for input and output."""
        is_multiplied = shape.scale_embeddings and not self.scales
        return shape.tie_embeddings and not is_multiplied


def shape_of(source: Source) -> CausalSection:
    """Return the shape of a language model."""
    config = source.config
    assert isinstance(config, LanguageConfig)
    return config.model


def window_of(source: Source) -> int:
    """Return how many ids the model has learned to attend to."""
    config = source.config
    assert isinstance(config, LanguageConfig)
    return config.window_len
