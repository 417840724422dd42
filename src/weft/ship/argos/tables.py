"""The arrays of a translator as a package of Argos Translate has them.

They are those of CTranslate2, with two differences. A piece may have a second name there, and then
its row stands twice. And ids that are never written have a bias that keeps them from it, as Argos
Translate does not.

Shapes: V ids, A second names, D d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.predict.settings import BANNED
from weft.ship.ctranslate2.layout import tensors_of
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, hidden
from weft.ship.tokenizers.sentencepiece_file import SentencePieceFile
from weft.ship.written import NEVER

# a sentence is cut behind so many pieces there, and gets its end
_LONGEST = 1025
_SRC = "encoder/embeddings_0/weight"
_TGT = ("decoder/embeddings/weight", "decoder/projection/weight")
_BIAS = "decoder/projection/bias"


@dataclass(frozen=True)
class Vocabulary:
    """The names of a package's ids on both sides, with Weft's id of each.

    Where both sides have one vocabulary, the target has the second names too, so that both have one
    table; it never writes them.
    """

    src: Sequence[str]
    tgt: Sequence[str]
    src_rows: Sequence[int]
    tgt_rows: Sequence[int]


def vocabulary_of(file: SentencePieceFile, is_joint: bool) -> Vocabulary:
    """Return the vocabulary of a package whose pieces are those of a file."""
    src = file.src_vocabulary
    rows = file.src_rows
    if is_joint:
        return Vocabulary(src, src, rows, rows)
    own = range(len(file.tgt_names))
    return Vocabulary(src, file.tgt_names, rows, own)


def package_tensors(source: Source, vocabulary: Vocabulary) -> list[Tensor]:
    """Return all arrays of a package's `model.bin` but the settings."""
    size = source.tokenizers[-1].vocab_size
    tensors = {tensor.name: tensor for tensor in tensors_of(source, _LONGEST)}
    if _BIAS not in tensors:
        tensors[_BIAS] = constant(_BIAS, np.zeros(size, np.float32))
    tensors[_SRC] = _with_rows(tensors[_SRC], vocabulary.src_rows)
    for name in _TGT:
        tensors[name] = _with_rows(tensors[name], vocabulary.tgt_rows)
    bias = hidden(tensors[_BIAS], BANNED, NEVER)
    tensors[_BIAS] = _filled(bias, size, len(vocabulary.tgt_rows))
    return list(tensors.values())


def _with_rows(tensor: Tensor, rows: Sequence[int]) -> Tensor:
    """Return a table with rows of another one (V, D): all of them in order, then some again."""
    order = np.array(rows)
    size = len(set(rows))
    return replace(
        tensor,
        make=lambda *arrays: tensor.make(*arrays)[order],
        back=lambda table: tensor.back(table[:size]),
    )


def _filled(tensor: Tensor, size: int, longer: int) -> Tensor:
    """Return a bias (V) with one for each second name, which is never written."""
    missing = np.full(longer - size, NEVER, np.float32)
    return replace(
        tensor,
        make=lambda *arrays: np.concatenate([tensor.make(*arrays), missing]),
        back=lambda bias: tensor.back(bias[:size]),
    )
