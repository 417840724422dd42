"""Why CTranslate2 does not compute a model, and which setting of its recipe it does compute."""

from collections.abc import Iterator

from weft.config import CausalSection, ClassifierSection, LayerShape, Seq2SeqSection
from weft.kernels.activations import GATES
from weft.ship.ctranslate2.spec import ACTIVATIONS
from weft.ship.source import Source


def reasons_of(source: Source) -> str:
    """Return them in one line; "" for a model that it computes."""
    shape = source.shape
    if not isinstance(shape, LayerShape):
        return 'it has no recurrent models; train with a recipe of model.kind = "transformer"'
    return "; ".join(_of_shape(shape))


def _of_shape(shape: LayerShape) -> Iterator[str]:
    if isinstance(shape, ClassifierSection) and not shape.num_encoder_layers:
        yield 'it has no bags of n-grams; train with the recipe "classify-modern"'
        return
    if isinstance(shape, ClassifierSection | CausalSection) and shape.ngrams > 1:
        yield f"model.ngrams = {shape.ngrams}: it adds no n-grams; train with model.ngrams = 1"
    if isinstance(shape, CausalSection) and shape.match_lengths:
        yield "model.match_lengths: it adds no matches; train with model.match_lengths = []"
    if GATES.get(shape.activation, shape.activation) not in ACTIVATIONS:
        yield (
            f'model.activation = "{shape.activation}": it has no such activation; '
            'train with "relu", "gelu", "swiglu" or "geglu"'
        )
    if isinstance(shape, Seq2SeqSection) and shape.query_key_norm:
        # process_cross_attention in its src/layers/attention.cc
        yield (
            "model.query_key_norm = true: over a source it norms queries before it cuts them into heads, "
            "which gives other numbers; train with model.query_key_norm = false"
        )
