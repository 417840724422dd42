"""The content of a `tokenizer.json`: everything but the vocabulary follows from the settings.

Five kinds, one file format (that of the `tokenizers` library). Nothing is ever unknown: `bpe`,
`unigram` and `byte` work on the byte-level alphabet (Radford et al. 2019, section 2.2), `word` and
`character` spell what they have not seen by byte pieces `<0x00>` ... `<0xFF>`. `byte` is that
alphabet and nothing more.

No text can produce a special piece or a byte piece. None of them is an "added token", which the
library would look for in the text; they are plain entries of the vocabulary under names that no
pre-token equals: the names of special pieces have an inner space; byte pieces mix punctuation,
digits and letters, and where words are runs of anything, a word that begins like a byte piece is
cut behind its first character.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from weft.config import SideSection

Tree = dict[str, Any]

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SPECIALS = ("<pad token>", "<unk token>", "<bos token>", "<eos token>")
BYTE_LETTERS = tuple(sorted(ByteLevel.alphabet()))
BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
# the name of a mark (`weft.data.marks`): inside of it is a space, as in those of special pieces
_MARK = re.compile(r"<to [A-Za-z0-9-]{2,35}>|<made by machine>|<tag \w[\w.-]{0,39}>")
MAX_PIECE_BYTES = 1024  # of UTF-8; a file with a longer piece is refused

# Printable bytes of Latin-1 stand for themselves, the others in order for the letters from U+0100
# on.
_PLAIN = {letter for letter in BYTE_LETTERS if letter < "\u0100"}
_OTHER_BYTES = [byte for byte in range(256) if chr(byte) not in _PLAIN]
_LETTER_OF_BYTE = {byte: 0x100 + n for n, byte in enumerate(_OTHER_BYTES)}
_BYTE_OF_LETTER = {letter: byte for byte, letter in _LETTER_OF_BYTE.items()}
_BYTE_LEVEL = ("bpe", "unigram", "byte")
SMALLEST = len(SPECIALS) + 256

# Scripts written without spaces: the `word` kind takes each of their characters as a word of its
# own.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# A run of white space leaves its last space to the word behind it. Each pattern is one pass over
# disjoint classes, so that matching is linear in the length of any text. No match goes on from
# other text into white space, or looks behind itself; `cut_text` depends on that.
_WHITE_SPACE = r"\s+(?!\S)|\s+"
PIECE_PATTERN = r" ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|" + _WHITE_SPACE
_UNICODE_WORDS = (
    rf"[{_SPACELESS}]\p{{M}}*| ?[\p{{L}}\p{{M}}&&[^{_SPACELESS}]]+"
    rf"| ?[\p{{N}}&&[^{_SPACELESS}]]+| ?[^\s\p{{L}}\p{{M}}\p{{N}}{_SPACELESS}]|{_WHITE_SPACE}"
)
# Words as runs between white space; an end of line is a word, with the space before it. Behind
# white space that is no space, a word could equal the name of a byte piece, which the library's
# decoder would take for the byte.
_RUN_WORDS = r" ?\n|<(?=0x)| ?\S+|[^\S\n]+(?![\S\n])|[^\S\n]+"

_BEFORE_WHITE_SPACE = re.compile(r"(?<=\S)[ \t\r\n]")
_BEFORE_LINE_END = re.compile(r"(?<=\S)[ \t\r]*\n")


def tokenizer_tree(
    settings: SideSection, vocab: Any, merges: list[list[str]] | None = None
) -> Tree:
    """Build the whole file as a JSON tree.

    `vocab` is pieces to ids; for unigram, a list of [piece, log-probability].
    """
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": _normalizer(settings, has_leading_space(settings)),
        "pre_tokenizer": _pre_tokenizer(settings),
        "post_processor": None,
        "decoder": _decoder(settings),
        "model": _model(settings.kind, vocab, merges or []),
    }


def is_mark(piece: str) -> bool:
    """Return whether a piece is a mark, which stands before a row and is no text."""
    return piece[:1] == "<" and _MARK.fullmatch(piece) is not None


def pieces_of_tree(tree: Tree) -> list[str]:
    """Return the pieces of a tokenizer in the order of their ids."""
    vocab = tree["model"]["vocab"]
    if isinstance(vocab, list):
        return [piece for piece, _ in vocab]
    return sorted(vocab, key=vocab.__getitem__)


def num_marks(pieces: Sequence[str]) -> int:
    """Count the marks that a vocabulary ends with."""
    return sum(1 for _ in takewhile(is_mark, reversed(pieces)))


def with_more_pieces(tree: Tree, pieces: Sequence[str]) -> Tree:
    """Return the same file with pieces behind all others, which no text becomes."""
    vocab = tree["model"]["vocab"]
    more: Any
    if isinstance(vocab, list):
        more = [*vocab, *([piece, 0.0] for piece in pieces)]
    else:
        first = len(vocab)
        more = vocab | {piece: first + n for n, piece in enumerate(pieces)}
    return {**tree, "model": {**tree["model"], "vocab": more}}


def without_marks(tree: Tree) -> Tree:
    """Return the same file without the marks that its vocabulary ends with."""
    vocab = tree["model"]["vocab"]
    pieces = pieces_of_tree(tree)
    fewer: Any
    kept = len(pieces) - num_marks(pieces)
    if isinstance(vocab, list):
        fewer = vocab[:kept]
    else:
        fewer = {piece: vocab[piece] for piece in pieces[:kept]}
    return {**tree, "model": {**tree["model"], "vocab": fewer}}


def with_other_beginning(tree: Tree, settings: SideSection) -> Tree:
    """Return the same file for text that does not begin as the settings say: without a space before
    it where they put one, and with one where they put none.
    """
    leading_space = not has_leading_space(settings)
    return {**tree, "normalizer": _normalizer(settings, leading_space)}


def word_pattern(settings: SideSection) -> str:
    """Return the pattern of a word of the word kind: by Unicode's classes, or any run between white
    space.
    """
    return _UNICODE_WORDS if settings.words == "unicode" else _RUN_WORDS


def cut_text(text: str, length: int, at_line_ends: bool = False) -> Iterator[str]:
    """Cut a text into consecutive parts, of `length` characters or little more, that can be
    tokenized one by one.

    Each part but the first begins with the white space that ends a word, or with `at_line_ends` a
    line; where there is none for long, a part is longer. The ids of the whole are those of its
    parts, the later ones without the leading space. For no pre-token goes on from a word into white
    space, and no normalization sees over such a place: in NFC and NFKC these characters are stable
    and compose with nothing (Unicode Standard Annex 15, section 9.1), and lower-casing goes
    character by character. Steps that go by lines need cuts at line ends.
    """
    place = _BEFORE_LINE_END if at_line_ends else _BEFORE_WHITE_SPACE
    start = 0
    while cut := place.search(text, start + length):
        yield text[start : cut.start()]
        start = cut.start()
    yield text[start:]


def byte_letters(text: str) -> str:
    """Write a text in the byte-level alphabet, one letter for each byte of its UTF-8."""
    return text.encode("utf-8").decode("latin-1").translate(_LETTER_OF_BYTE)


def piece_bytes(piece: str, kind: str) -> bytes:
    """Return the bytes that a piece stands for, which need not be whole UTF-8."""
    if is_byte_level(kind):
        return piece.translate(_BYTE_OF_LETTER).encode("latin-1")
    if len(piece) == 6 and piece in BYTE_PIECES:
        return bytes([int(piece[1:5], 16)])
    return piece.encode("utf-8")


def is_byte_level(kind: str) -> bool:
    """Return whether the kind's pieces are written in the byte-level alphabet."""
    return kind in _BYTE_LEVEL


def has_leading_space(settings: SideSection) -> bool:
    """Return whether one space is put before a text, so that its first word is written like any
    other.
    """
    return settings.leading_space and joins_spaces(settings.kind)


def joins_spaces(kind: str) -> bool:
    """Return whether a space and the word behind it may be one piece of this kind."""
    return kind not in ("character", "byte")


def smallest_pieces(kind: str) -> list[str]:
    """Return the pieces that every vocabulary of this kind begins with: specials, then one for each
    byte.

    Those of `byte` are in the order of the bytes: the id of a byte is 4 more than its value.
    """
    if kind == "byte":
        letters = [chr(_LETTER_OF_BYTE.get(byte, byte)) for byte in range(256)]
        return [*SPECIALS, *letters]
    pieces = BYTE_LETTERS if is_byte_level(kind) else BYTE_PIECES
    return [*SPECIALS, *pieces]


def _normalizer(settings: SideSection, leading_space: bool) -> Tree | None:
    steps: list[Tree] = []
    if settings.unicode != "raw":
        steps.append({"type": settings.unicode})
    if settings.lowercase:
        steps.append({"type": "Lowercase"})
    if leading_space:
        steps.append({"type": "Prepend", "prepend": " "})
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _pre_tokenizer(settings: SideSection) -> Tree | None:
    if settings.kind == "character":
        return None
    if settings.kind == "word":
        return _split(word_pattern(settings))
    return {"type": "Sequence", "pretokenizers": [_split(PIECE_PATTERN), _byte_level()]}


def _decoder(settings: SideSection) -> Tree:
    decoders: list[Tree] = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if is_byte_level(settings.kind):
        decoders = [_byte_level()]
    if has_leading_space(settings):
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": decoders}


def _model(kind: str, vocab: Any, merges: list[list[str]]) -> Tree:
    if kind == "unigram":
        return {
            "type": "Unigram",
            "unk_id": UNK_ID,
            "vocab": vocab,
            "byte_fallback": False,
        }
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": not is_byte_level(kind),
        "ignore_merges": kind == "word",
        "vocab": vocab,
        "merges": merges,
    }


def _split(pattern: str) -> Tree:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def _byte_level() -> Tree:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
