"""A model of sentencepiece that tokenizes as one of Weft's tokenizers, and decodes as the same or
another one.

`bpe`, `unigram`, `character` and `byte` can be the source's, every kind the target's. How a text
and an output are rewritten, so that the pieces are the same, is in `charsmap.py`. Two vocabularies
are one list of pieces: those of the target alone are never used for a text. Where two pieces of one
vocabulary are the same bytes, as a character and a byte may be, the byte is called `<0xNN>`.

What sentencepiece reads otherwise (`ReadBySentencePiece.reads_otherwise` tells): more marks on a
letter, or in another order, than any character has; more than 31 spaces at a time where the
vocabulary has pieces of spaces; numbers of several scripts; with unigram pieces a long run of one
mark, which can be cut in several ways that are as probable. NUL and characters that Unicode has not
are decoded as U+FFFD.
"""

import dataclasses
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from weft.data.pipeline import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    SPECIALS,
    UNK_ID,
    has_leading_space,
    is_byte_level,
    piece_bytes,
)
from weft.data.tokenizer import Tokenizer
from weft.errors import UsageError
from weft.packages import loaded
from weft.ship.tokenizers.charsmap import (
    Rules,
    is_known,
    rules_of_output,
    rules_of_text,
)
from weft.ship.tokenizers.hub import refuse_steps
from weft.ship.tokenizers.letters import (
    LETTERS,
    SPACE,
    SPACE_LETTER,
    Endings,
    letters_of,
)
from weft.ship.tokenizers.protobuf import Value, field, message

# the types of a piece
_NORMAL = 1
_UNKNOWN = 2
_CONTROL = 3
_UNUSED = 5
_BYTE = 6
# the types of a model
_UNIGRAM = 1
_BPE = 2

_BYTE_NAMES = tuple(f"<0x{byte:02X}>" for byte in range(256))
# Bytes of characters without a rule: NUL, and those beyond the first plane.
_SPELLED = (0, *range(0x80, 0xC0), *range(0xF0, 0xF5))
_LEVEL_OF_ERRORS = 2


@dataclass(frozen=True)
class SentencePieceFile:
    """The content of a `.model`, and the names of pieces in it.

    `src_names` and `tgt_names` are in the order of Weft's ids of each side. A text may have further
    names, `aliases`, each with Weft's id: a program that knows pieces by their names needs a row
    for each, the same as that of the id. So its source has `src_vocabulary`, and the rows
    `src_rows` of Weft's table.
    """

    content: bytes = dataclasses.field(repr=False)
    src_names: tuple[str, ...]
    tgt_names: tuple[str, ...]
    aliases: dict[str, int]

    @property
    def src_vocabulary(self) -> list[str]:
        """Return all names of source pieces, in the order of ids in the file."""
        return [*self.src_names, *self.aliases]

    @property
    def src_rows(self) -> list[int]:
        """Return Weft's id of each name of `src_vocabulary`."""
        return [*range(len(self.src_names)), *self.aliases.values()]


def sentencepiece_file(src: Tokenizer, tgt: Tokenizer) -> SentencePieceFile:
    """Return the model that encodes as `src` and decodes as `tgt`; one tokenizer is given twice.

    Raises UsageError for a source that sentencepiece cannot tokenize, MissingPackage.
    """
    _refuse_others(src)
    pieces = _Pieces.of(src)
    tgt_pieces = pieces if tgt is src else _Pieces.of(tgt)
    aliases = pieces.aliases()
    rows = [
        message({1: name, 2: score, 3: _type_of(place, name)})
        for place, (name, score) in enumerate(pieces.scored)
    ]
    rows += [
        message({1: alias, 2: pieces.scored[place][1], 3: _type_of(place, alias)})
        for alias, place in aliases.items()
    ]
    taken = {*pieces.names, *aliases}
    for names, kind in ((tgt_pieces.names, _UNUSED), (_BYTE_NAMES, _BYTE)):
        for name in names:
            if name not in taken:
                taken.add(name)
                rows.append(message({1: name, 2: pieces.least, 3: _type(name, kind)}))
    content = b"".join(field(1, row) for row in rows)
    content += field(2, _trainer(src, len(rows)))
    reading = _compiled(rules_of_text(src.settings, pieces.endings))
    content += field(3, reading + _flags(src, tgt)) + field(5, _writing())
    return SentencePieceFile(content, pieces.names, tgt_pieces.names, aliases)


class ReadBySentencePiece:
    """A file as sentencepiece reads it, in Weft's ids."""

    def __init__(self, file: SentencePieceFile, src: Tokenizer) -> None:
        """Open the content of a file that was written for a source's tokenizer."""
        self._file = file
        self._src = src
        self._rows = file.src_rows
        self._model = _library().SentencePieceProcessor(model_proto=file.content)

    def encode(self, text: str) -> list[int]:
        """Return the source's ids of a text, without eos; unk for a piece that is none of them."""
        ids = []
        for place in self._model.encode(text, out_type=int):
            is_known_piece = place < len(self._rows)
            ids.append(self._rows[place] if is_known_piece else UNK_ID)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the target's ids."""
        names = [self._file.tgt_names[i] for i in ids]
        text: str = self._model.decode_pieces(names)
        return text

    def differing(self, texts: Sequence[str]) -> list[str]:
        """Return those of the texts whose ids are not Weft's."""
        return [text for text in texts if self.encode(text) != self._src.encode(text)]

    def reads_otherwise(self, text: str) -> str:
        """Say why a text has other ids than Weft's; "" where it has the same."""
        if not self.differing([text]):
            return ""
        if not all(map(is_known, text)):
            return "characters of no known script"
        if "  " in text:
            return "several spaces at a time"
        if any(map(unicodedata.combining, text)):
            return "marks that no character has"
        if any(map(str.isnumeric, text)) and not text.isascii():
            return "numbers of several scripts"
        return "several cuts that are as probable"

    def writes_otherwise(self, text: str) -> str:
        """Say why what the target writes may be decoded as another text; "" where it must be this
        one.
        """
        return "" if all(map(is_known, text)) else "characters of no known script"


@dataclass(frozen=True)
class _Pieces:
    """The pieces of a tokenizer in the order of ids, each with its name and its score."""

    tokenizer: Tokenizer
    scored: tuple[tuple[str, float], ...]
    contents: tuple[bytes, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "_Pieces":
        kind = tokenizer.settings.kind
        scored = _scored(tokenizer)
        contents = tuple(piece_bytes(piece, kind) for piece, _ in scored)
        names = _names(tokenizer, [piece for piece, _ in scored], contents)
        pairs = zip(names, scored, strict=True)
        return cls(
            tokenizer, tuple((name, score) for name, (_, score) in pairs), contents
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.scored)

    @property
    def least(self) -> float:
        """Return a score below all others."""
        return min(score for _, score in self.scored) - 1.0

    @cached_property
    def endings(self) -> Endings:
        """Return the places that need other letters: where words are cut by a pattern."""
        has_pattern = self.tokenizer.settings.kind in ("bpe", "unigram")
        contents = self.contents[len(SPECIALS) :] if has_pattern else ()
        return Endings.of(_space_of(self.tokenizer), contents)

    def aliases(self) -> dict[str, int]:
        """Return the further names of pieces, with their ids."""
        places = {name: place for place, name in enumerate(self.names)}
        found = {}
        for name in self.names[len(SPECIALS) :]:
            if alias := self.endings.second_name(name):
                found[alias] = places[name]
        for byte in _SPELLED:
            if _BYTE_NAMES[byte] not in places:
                found[_BYTE_NAMES[byte]] = places[LETTERS[byte]]
        return found


def _scored(tokenizer: Tokenizer) -> list[tuple[str, float]]:
    """Return the pieces in order of id, with their scores.

    Of byte-pair encoding the earlier pair scores higher; a character scores higher than its bytes.
    """
    model = json.loads(tokenizer.to_json())["model"]
    vocab = model["vocab"]
    if isinstance(vocab, list):
        return [(piece, float(score)) for piece, score in vocab]
    scores: dict[str, float] = {}
    for rank, (left, right) in enumerate(model["merges"], start=1):
        scores.setdefault(left + right, -float(rank))
    pieces = sorted(vocab, key=vocab.__getitem__)
    single = 0.0 if is_byte_level(tokenizer.settings.kind) else -1.0
    is_byte = set(_BYTE_NAMES).__contains__
    return [
        (piece, -10.0 if is_byte(piece) else scores.get(piece, single))
        for piece in pieces
    ]


def _names(
    tokenizer: Tokenizer, pieces: Sequence[str], contents: Sequence[bytes]
) -> list[str]:
    """Return the name of each piece: its letters; of a byte its own, where a character has them."""
    space = _space_of(tokenizer)
    written = [letters_of(content, space) for content in contents[len(SPECIALS) :]]
    names = [*SPECIALS, *written]
    if is_byte_level(tokenizer.settings.kind):
        return names
    first = len(SPECIALS) + len(_BYTE_NAMES)
    characters = set(names[first:])
    for place in range(len(SPECIALS), first):
        if names[place] in characters:
            names[place] = pieces[place]
    return names


def _space_of(tokenizer: Tokenizer) -> str:
    """Return how a side's spaces are written."""
    return SPACE if has_leading_space(tokenizer.settings) else SPACE_LETTER


def _refuse_others(src: Tokenizer) -> None:
    refuse_steps(src, "tokenizer.src")
    if src.settings.kind == "word":
        raise UsageError(
            'tokenizer.src.kind = "word": sentencepiece does not cut text into words; '
            'train with tokenizer.src.kind = "bpe"'
        )


def _type_of(place: int, name: str) -> int:
    """Return the type of a source's piece."""
    if place == UNK_ID:
        return _UNKNOWN
    return _type(name, _CONTROL if place < len(SPECIALS) else _NORMAL)


def _type(name: str, other: int) -> int:
    return _BYTE if name in _BYTE_NAMES else other


def _trainer(src: Tokenizer, size: int) -> bytes:
    """Return what sentencepiece keeps of the training: type, size and the special pieces."""
    is_bpe = src.settings.kind == "bpe"
    fields: dict[int, Value] = {3: _BPE if is_bpe else _UNIGRAM, 4: size, 35: True}
    for number, place in ((40, UNK_ID), (41, BOS_ID), (42, EOS_ID), (43, PAD_ID)):
        fields[number] = place
        fields[number + 5] = SPECIALS[place]
    return message(fields)


def _flags(src: Tokenizer, tgt: Tokenizer) -> bytes:
    """Return what sentencepiece does with spaces: whether it puts one before a text, and takes off
    those that are too many.

    Either makes it leave out the first space where it decodes. The second changes no text of a
    source whose spaces are letters.
    """
    before = has_leading_space(src.settings)
    takes_off = has_leading_space(tgt.settings) and not before
    return message({3: before, 4: takes_off, 5: True})


@cache
def _writing() -> bytes:
    """Return how an output is rewritten; its spaces stay as they are."""
    return _compiled(rules_of_output()) + message({3: False, 4: False, 5: False})


def _compiled(rules: Rules) -> bytes:
    """Return rules as sentencepiece compiles them."""
    builder = _library().SentencePieceNormalizer(norm_map=list(rules.items()))
    compiled: bytes = builder.serialized_normalizer_spec()
    return compiled + field(1, "weft")


def _library() -> Any:
    library = loaded("a sentencepiece model", "sentencepiece", "argos")
    library.set_min_log_level(_LEVEL_OF_ERRORS)
    return library
