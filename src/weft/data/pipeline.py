"""The content of a `tokenizer.json`: everything but the vocabulary follows from the settings.

Four kinds, one file format (that of the `tokenizers` library). Nothing is ever unknown: `bpe` and `unigram` work
on the byte-level alphabet (Radford et al. 2019, section 2.2), `word` and `character` spell what they have not seen
by byte pieces `<0x00>` ... `<0xFF>`.

No text can produce a special piece or a byte piece. None of them is an "added token", which the library would look
for in the text; they are plain entries of the vocabulary under names that no pre-token equals: the names of
special pieces have an inner space, byte pieces mix punctuation, digits and letters.
"""

from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from weft.config import SideSection

Tree = dict[str, Any]

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SPECIALS = ("<pad token>", "<unk token>", "<bos token>", "<eos token>")
BYTE_LETTERS = tuple(sorted(ByteLevel.alphabet()))
BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))

# Printable bytes of Latin-1 stand for themselves, the others in order for the letters from U+0100 on.
_PLAIN = {letter for letter in BYTE_LETTERS if letter < "\u0100"}
_LETTER_OF_BYTE = dict(
    zip((byte for byte in range(256) if chr(byte) not in _PLAIN), range(0x100, 0x200), strict=False)
)
_BYTE_OF_LETTER = {letter: byte for byte, letter in _LETTER_OF_BYTE.items()}
SMALLEST = len(SPECIALS) + 256

# Scripts written without spaces: the `word` kind takes each of their characters as a word of its own.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# A run of white space leaves its last space to the word behind it. Each pattern is one pass over disjoint classes,
# so that matching is linear in the length of any text.
_WHITE_SPACE = r"\s+(?!\S)|\s+"
ANY_CHARACTER = r"[\s\S]"
PIECE_PATTERN = r" ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|" + _WHITE_SPACE
WORD_PATTERN = (
    rf"[{_SPACELESS}]\p{{M}}*| ?[\p{{L}}\p{{M}}&&[^{_SPACELESS}]]+"
    rf"| ?[\p{{N}}&&[^{_SPACELESS}]]+| ?[^\s\p{{L}}\p{{M}}\p{{N}}{_SPACELESS}]|{_WHITE_SPACE}"
)


def tokenizer_tree(settings: SideSection, vocab: Any, merges: list[list[str]] | None = None) -> Tree:
    """The whole file as a JSON tree. `vocab` is pieces to ids; for unigram, a list of [piece, log-probability]."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": _normalizer(settings),
        "pre_tokenizer": _pre_tokenizer(settings.kind),
        "post_processor": None,
        "decoder": _decoder(settings.kind),
        "model": _model(settings.kind, vocab, merges or []),
    }


def byte_letters(text: str) -> str:
    """Text in the byte-level alphabet, one letter for each byte of its UTF-8."""
    return text.encode("utf-8").decode("latin-1").translate(_LETTER_OF_BYTE)


def piece_bytes(piece: str, kind: str) -> bytes:
    """What a piece stands for; it need not be whole UTF-8."""
    if kind in ("bpe", "unigram"):
        return piece.translate(_BYTE_OF_LETTER).encode("latin-1")
    if len(piece) == 6 and piece in BYTE_PIECES:
        return bytes([int(piece[1:5], 16)])
    return piece.encode("utf-8")


def has_leading_space(kind: str) -> bool:
    """Whether the kind puts one space before a text, so that its first word is written like any other."""
    return kind != "character"


def smallest_pieces(kind: str) -> list[str]:
    """The pieces that every vocabulary of this kind begins with: specials, then one for each byte."""
    return [*SPECIALS, *(BYTE_LETTERS if kind in ("bpe", "unigram") else BYTE_PIECES)]


def _normalizer(settings: SideSection) -> Tree | None:
    steps: list[Tree] = []
    if settings.unicode != "raw":
        steps.append({"type": settings.unicode})
    if settings.lowercase:
        steps.append({"type": "Lowercase"})
    if has_leading_space(settings.kind):
        steps.append({"type": "Prepend", "prepend": " "})
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _pre_tokenizer(kind: str) -> Tree | None:
    if kind == "character":
        return None
    if kind == "word":
        return _split(WORD_PATTERN)
    return {"type": "Sequence", "pretokenizers": [_split(PIECE_PATTERN), _byte_level()]}


def _decoder(kind: str) -> Tree:
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    by_kind: dict[str, list[Tree]] = {
        "character": [{"type": "ByteFallback"}, {"type": "Fuse"}],
        "word": [{"type": "ByteFallback"}, {"type": "Fuse"}, strip],
    }
    return {"type": "Sequence", "decoders": by_kind.get(kind, [_byte_level(), strip])}


def _model(kind: str, vocab: Any, merges: list[list[str]]) -> Tree:
    if kind == "unigram":
        return {"type": "Unigram", "unk_id": UNK_ID, "vocab": vocab, "byte_fallback": False}
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": kind in ("word", "character"),
        "ignore_merges": kind == "word",
        "vocab": vocab,
        "merges": merges,
    }


def _split(pattern: str) -> Tree:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _byte_level() -> Tree:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
