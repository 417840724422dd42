"""The pieces that a tokenizer knows, learned from text. Every step is deterministic: ties go by
code point order.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from weft.config import SideSection
from weft.data.pipeline import (
    BYTE_LETTERS,
    MAX_PIECE_BYTES,
    PIECE_PATTERN,
    SMALLEST,
    SPECIALS,
    UNK_ID,
    Tree,
    cut_text,
    smallest_pieces,
    tokenizer_tree,
    word_pattern,
)
from weft.data.unigram import learn_unigram, unigram_vocabulary
from weft.errors import DataError

MAX_TRAINING_TEXTS = 2_000_000
# as many as a vocabulary of subwords needs; more takes longer and changes hardly a piece
MAX_TRAINING_CHARACTERS = 50_000_000
LONGEST_PART = 10_000  # characters of a document that are learned from as one text
# letters of a learned piece; longer ones would only repeat whole sentences
LONGEST_PIECE = 64
_CHUNK = 10_000  # texts, and
_CHUNK_CHARACTERS = 1_000_000  # that the library gets at a time


def sample_texts(
    texts: Iterable[str],
    limit: int = MAX_TRAINING_TEXTS,
    *,
    characters: int = MAX_TRAINING_CHARACTERS,
) -> tuple[list[str], int]:
    """Sample at most `limit` evenly spaced texts, in one pass and flat memory; return them, and how
    many there were.

    They have hardly more `characters` than that together: one text that is larger is kept all the
    same.
    """
    kept: list[str] = []
    stride = 1
    total = size = 0
    for text in texts:
        if total % stride == 0:
            if len(kept) == limit or (kept and size + len(text) > characters):
                kept = kept[::2]
                stride *= 2
                size = sum(map(len, kept))
            if total % stride == 0:
                kept.append(text)
                size += len(text)
        total += 1
    return kept, total


def document_parts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, long ones in parts of at most LONGEST_PART characters, cut before white
    space where possible.
    """
    for text in texts:
        parts: Iterable[str] = (text,)
        if len(text) > LONGEST_PART:
            parts = cut_text(text, LONGEST_PART // 2)
        for part in parts:
            for start in range(0, len(part) or 1, LONGEST_PART):
                yield part[start : start + LONGEST_PART]


def train_vocabulary(
    texts: Sequence[str], settings: SideSection, vocab_size: int
) -> Tree:
    """Learn at most `vocab_size` pieces from texts that went through the steps; return the tree of
    the whole file.
    """
    by_kind = {
        "bpe": _bpe,
        "unigram": _unigram,
        "character": _characters,
        "word": _words,
        "byte": _bytes,
    }
    with without_panics(DataError, "the tokenizer's training"):
        return by_kind[settings.kind](texts, settings, vocab_size)


@contextmanager
def without_panics(error: Callable[[str], Exception], where: str) -> Iterator[None]:
    """Turn a panic of the Rust library into an ordinary error.

    Panics arrive as PanicException, which cannot be imported and is no `Exception`: it is known by
    its name.
    """
    try:
        yield
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        raise error(
            f"{where}: the tokenizers library failed ({str(panic)[:120]})"
        ) from None


def _bpe(texts: Sequence[str], settings: SideSection, vocab_size: int) -> Tree:
    """Learn merges over bytes (Sennrich et al. 2016).

    A pair seen once is never merged: it would learn the text by heart.
    """
    tokenizer = _untrained(settings)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=max(2, settings.min_frequency),
        initial_alphabet=list(BYTE_LETTERS),
        special_tokens=list(SPECIALS),
        max_token_length=LONGEST_PIECE,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_chunks(texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return tokenizer_tree(settings, model["vocab"], model["merges"])


def _unigram(texts: Sequence[str], settings: SideSection, vocab_size: int) -> Tree:
    counter = _counter(settings, PIECE_PATTERN)
    words = _ranked(texts, counter, 1)
    counts = _count(texts, counter, len(words))
    pieces = learn_unigram(words, counts, vocab_size - SMALLEST, settings.min_frequency)
    return tokenizer_tree(settings, unigram_vocabulary(pieces))


def _characters(texts: Sequence[str], settings: SideSection, vocab_size: int) -> Tree:
    characters = _ranked_characters(texts, settings)
    return _numbered(settings, characters[: vocab_size - SMALLEST])


def _words(texts: Sequence[str], settings: SideSection, vocab_size: int) -> Tree:
    """Learn words and characters.

    Characters may take half of the room, or what the words leave: they spell the words that are not
    known.
    """
    characters = _ranked_characters(texts, settings)
    known = set(characters)
    counter = _counter(settings, word_pattern(settings))
    words = [
        word
        for word in _ranked(texts, counter, settings.min_frequency)
        if word not in known and len(word.encode()) <= MAX_PIECE_BYTES
    ]
    room = vocab_size - SMALLEST
    kept = characters[: max(room // 2, room - len(words))]
    return _numbered(settings, [*kept, *words[: room - len(kept)]])


def _bytes(texts: Sequence[str], settings: SideSection, vocab_size: int) -> Tree:
    """Return the bytes alone: there is nothing to learn."""
    return _numbered(settings, [])


def _numbered(settings: SideSection, learned: Sequence[str]) -> Tree:
    pieces = [*smallest_pieces(settings.kind), *learned]
    return tokenizer_tree(
        settings, {piece: number for number, piece in enumerate(pieces)}
    )


def _untrained(settings: SideSection) -> tokenizers.Tokenizer:
    vocab: Any = (
        [[SPECIALS[0], 0.0], [SPECIALS[1], 0.0]] if settings.kind == "unigram" else {}
    )
    return tokenizers.Tokenizer.from_str(json.dumps(tokenizer_tree(settings, vocab)))


def _counter(settings: SideSection, pattern: str) -> tokenizers.Tokenizer:
    """Build a tokenizer that normalizes as the settings say and takes each match of the pattern as
    a whole.
    """
    tokenizer = _untrained(settings)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        tokenizers.Regex(pattern), "isolated"
    )
    tokenizer.decoder = None
    tokenizer.model = models.WordLevel(unk_token=SPECIALS[UNK_ID])
    return tokenizer


def _ranked_characters(texts: Sequence[str], settings: SideSection) -> list[str]:
    """Rank the characters of the normalized texts, most frequent first, then in code point
    order.
    """
    normalizer = _untrained(settings).normalizer
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text if normalizer is None else normalizer.normalize_str(text))
    frequent = (
        character
        for character, count in counts.items()
        if count >= settings.min_frequency
    )
    return sorted(frequent, key=lambda character: (-counts[character], character))


def _ranked(
    texts: Sequence[str], counter: tokenizers.Tokenizer, min_frequency: int
) -> list[str]:
    """Rank the matches of the counter's pattern, most frequent first, then in code point order."""
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31,
        min_frequency=min_frequency,
        show_progress=False,
        special_tokens=[],
    )
    counter.train_from_iterator(_chunks(texts), trainer)
    ids = counter.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.__getitem__)


def _count(
    texts: Sequence[str], counter: tokenizers.Tokenizer, num_words: int
) -> npt.NDArray[np.int64]:
    """Count how often each word of a trained counter occurs."""
    counts = np.zeros(num_words, dtype=np.int64)
    for chunk in _chunks(texts):
        encodings = counter.encode_batch_fast(chunk, add_special_tokens=False)
        ids = list(chain.from_iterable(encoding.ids for encoding in encodings))
        counts += np.bincount(np.array(ids, dtype=np.int64), minlength=num_words)
    return counts


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield all texts in lists that the library may take into memory at once."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        if chunk and (len(chunk) == _CHUNK or size + len(text) > _CHUNK_CHARACTERS):
            yield chunk
            chunk = []
            size = 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk
