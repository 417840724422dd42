"""Text to ids and back: one tokenizer for each side, or one for both.

`encode` and `decode` are exact inverses up to `normalize`: for every kind and any Unicode text,
`decode(encode(text)) == normalize(text)`. Lone surrogates, which UTF-8 cannot hold, are read as
U+FFFD.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, islice

import numpy as np
import tokenizers

from weft.config import SideSection, TokenizerSection
from weft.data.merges import Pair, merge_ranks, merges_of
from weft.data.normalize import Step, has_spaced_words, load_steps, replace_surrogates
from weft.data.pieces import readable_pieces
from weft.data.pipeline import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    SMALLEST,
    SPECIALS,
    UNK_ID,
    Tree,
    cut_text,
    has_leading_space,
    joins_spaces,
    num_marks,
    piece_bytes,
    pieces_of_tree,
    with_more_pieces,
    with_other_beginning,
    without_marks,
)
from weft.data.places import Characters, starts_after
from weft.data.rows import CharacterEncoder, IdRows, RowEncoder, WordEncoder
from weft.data.scripts import count_scripts, is_spaceless, main_script
from weft.data.tokenizer_file import read_tokenizer_tree
from weft.data.vocabulary import (
    document_parts,
    sample_texts,
    train_vocabulary,
    without_panics,
)
from weft.errors import DataError, FolderError

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "SMALLEST",
    "UNK_ID",
    "Tokenizer",
    "build_tokenizer",
    "build_tokenizers",
    "choose_settings",
    "learn_sample",
    "load_tokenizer",
    "train_tokenizer",
]

# About how many pieces a vocabulary should have for how many sentences; between them the logarithms
# are interpolated. Larger ones leave pieces too rare to learn from, smaller ones make sequences
# long; few pairs of sentences are learned sooner by larger ones (docs/experiments.md, "Size by text
# and time").
_LEAST = ((50, 500), (500, 1_000))
_MOST_PIECES = ((30_000, 8_000), (200_000, 16_000), (1_000_000, 32_000))
_SIZES = (*_LEAST, (10_000, 4_000), *_MOST_PIECES)
_SIZES_OF_PAIRS = (*_LEAST, (5_000, 8_000), *_MOST_PIECES)
_MOST = {"character": 8_000, "word": 32_000, "byte": SMALLEST}
_SENTENCE = 60  # characters of running text that say as much as one pair
_PART = 2**16  # characters of a long text that are encoded together
_PARTS_AT_ONCE = 8
_FORMS = {"NFC": tokenizers.normalizers.NFC(), "NFKC": tokenizers.normalizers.NFKC()}


class Tokenizer:
    """A trained tokenizer of any kind. Its ids are 0 to vocab_size - 1; 0 to 3 are pad, unk, bos,
    eos, and the last may be `marks` (`weft.data.marks`), which no text becomes.
    """

    def __init__(
        self, tree: Tree, settings: SideSection, notes: Sequence[str] = ()
    ) -> None:
        """Build from a checked tree of `pipeline`. Raises UsageError where a step's package is
        missing.
        """
        self.settings = settings
        # what a person should know about the training, one sentence each
        self.notes = list(notes)
        # names and versions of the steps before the JSON's own
        self.steps, self._functions = load_steps(settings)
        self._text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
        self._inner = tokenizers.Tokenizer.from_str(self._text)
        self._normalizer = self._inner.normalizer
        self.vocab_size: int = self._inner.get_vocab_size()
        pieces = pieces_of_tree(tree)
        self.marks = tuple(pieces[len(pieces) - num_marks(pieces) :])
        self._first_mark = self.vocab_size - len(self.marks)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without bos and eos; never a special id."""
        prepared = self._prepare(text)
        ids: list[int] = self._inner.encode(prepared, add_special_tokens=False).ids
        return ids

    def encode_begun(self, text: str) -> tuple[list[int], bytes]:
        """Encode the beginning of a text: the ids of its whole words, and the bytes of the last.

        That one may go on, and then has other ids; it is white space where the text ends with
        some. A character or a byte that has an id of its own never goes on.
        """
        encoding = self._inner.encode(self._prepare(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        if not joins_spaces(self.settings.kind) or not ids:
            return ids, b""
        words: list[int | None] = encoding.word_ids
        num_whole = words.index(words[-1])
        return ids[:num_whole], self.spell(ids[num_whole:], begins=False)

    def encode_going_on(self, text: str) -> list[int]:
        """Encode a text that goes on where other text stopped, without a space before it."""
        prepared = self._prepare(text)
        ids: list[int] = self._going_on.encode(prepared, add_special_tokens=False).ids
        return ids

    def encode_inside(self, text: str) -> list[int]:
        """Encode words as they stand inside of a text, behind others and a space: with that space,
        where a piece may be a space and a word.
        """
        prepared = self._prepare(text)
        ids: list[int] = self._inside.encode(prepared, add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text as `encode` does, in parallel."""
        prepared = list(map(self._prepare, texts))
        encodings = self._inner.encode_batch_fast(prepared, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def encode_rows(self, texts: Sequence[str]) -> IdRows:
        """Encode each text as `encode` does, many of them in less time than `encode_batch`."""
        return self._rows.encode(list(map(self._prepare, texts)))

    def encode_long(self, text: str) -> list[int]:
        """Encode a text of many megabytes as `encode` does, but part by part, in memory for the ids
        alone.

        Only a text without any white space is one part; for words of nltk and spaCy, one without
        ends of lines.
        """
        parts = cut_text(text, _PART, at_line_ends=has_spaced_words(self.settings))
        ids = self.encode(next(parts))
        encode = self._going_on.encode_batch_fast
        while batch := [self._prepare(part) for part in islice(parts, _PARTS_AT_ONCE)]:
            for encoding in encode(batch, add_special_tokens=False):
                ids += encoding.ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text; special ids are skipped, bytes that are no UTF-8 become U+FFFD."""
        ordinary = [int(i) for i in ids if self._is_ordinary(i)]
        text: str = self._inner.decode(ordinary, skip_special_tokens=False)
        return text

    def spell(self, ids: Sequence[int], *, begins: bool = True) -> bytes:
        """Return the UTF-8 of ids, which may break off inside a character; special ids are skipped.

        Where they go on from other text (not `begins`), the space before the first word belongs to
        them.
        """
        spelled = b"".join(self._spelled(int(i)) for i in ids)
        if begins and has_leading_space(self.settings):
            return spelled.removeprefix(b" ")
        return spelled

    def spell_each(self, ids: Iterable[int]) -> list[bytes]:
        """Return what each id spells as one that goes on, `spell([i], begins=False)`."""
        return [self._spelled(int(i)) for i in ids]

    def normalize(self, text: str) -> str:
        """Return the text as the model knows it: exactly what `decode(encode(text))` gives."""
        prepared = self._prepare(text)
        if self._normalizer is None:
            return prepared
        normal: str = self._normalizer.normalize_str(prepared)
        return normal[1:] if has_leading_space(self.settings) else normal

    def starts(self, text: str) -> list[int]:
        """Return for each character of `normalize(text)` where in the text it begins."""
        if text.isascii() and self.normalize(text) == text:
            return list(range(len(text)))
        shown = replace_surrogates(text)
        prepared = self._prepare(text)
        before = starts_after(shown, prepared)
        if self._characters is None:
            return before
        starts = [before[place] for place in self._characters.starts(prepared)]
        return starts[1:] if has_leading_space(self.settings) else starts

    @property
    def form(self) -> str:
        """Name the form of what `decode` gives, case and words aside; "" where it has none of its
        own.
        """
        simplified = "simplified Chinese" if self.settings.simplified else ""
        unicode = "" if self.settings.unicode == "raw" else self.settings.unicode
        return " and ".join(filter(None, (unicode, simplified)))

    def in_form(self, text: str) -> str:
        """Return the text in the form of what `decode` gives; its case and words stay."""
        # simplifying is the first step, where it is one
        num_steps = 1 if self.settings.simplified else 0
        prepared = _apply(self._functions[:num_steps], text)
        if self.settings.unicode == "raw":
            return prepared
        formed: str = _FORMS[self.settings.unicode].normalize_str(prepared)
        return formed

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Label each id for people to read: a space is shown as ▁, a special piece as <pad>, <unk>,
        <bos> or <eos>, a mark by its name, as <to de>.

        A character that is spelled by several byte pieces is shown on each of them with its part,
        `語[1/3]`; bytes that spell no character are shown in hexadecimal, `\\xe8`.
        """
        pieces = [self._inner.id_to_token(int(i)) or SPECIALS[UNK_ID] for i in ids]
        return readable_pieces(pieces, self.settings.kind)

    def cuts(self, text: str) -> list[tuple[str, list[Pair]]] | None:
        """Return the words of a text, each with the pairs of pieces that byte-pair encoding joined
        in it, in their order, in readable form; None for another kind of tokenizer.
        """
        if self.settings.kind != "bpe":
            return None
        prepared = self._prepare(text)
        if self._normalizer is not None:
            prepared = self._normalizer.normalize_str(prepared)
        words = self._inner.pre_tokenizer.pre_tokenize_str(prepared)
        return [(self._readable(word), self._joined(word)) for word, _ in words]

    def _joined(self, word: str) -> list[Pair]:
        joined = merges_of(word, self._ranks)
        return [(self._readable(a), self._readable(b)) for a, b in joined]

    def _readable(self, piece: str) -> str:
        return readable_pieces([piece], self.settings.kind)[0]

    def to_json(self) -> str:
        """Return the content of `tokenizer.json`; the same text and settings always give the same
        content.
        """
        return self._text

    @cached_property
    def sha256(self) -> str:
        """Hash of `to_json()` and of the steps before it: two tokenizers with one hash give the
        same ids.
        """
        steps = json.dumps(self.steps, sort_keys=True)
        return hashlib.sha256(f"{self._text}\n{steps}".encode()).hexdigest()

    def with_marks(self, marks: Sequence[str]) -> "Tokenizer":
        """Return the same tokenizer with more marks, behind all that it has."""
        tree = with_more_pieces(json.loads(self._text), marks)
        return Tokenizer(tree, self.settings, self.notes)

    def without_marks(self) -> "Tokenizer":
        """Return the same tokenizer without marks; itself where it has none."""
        if not self.marks:
            return self
        tree = without_marks(json.loads(self._text))
        return Tokenizer(tree, self.settings, self.notes)

    def mark_id(self, mark: str) -> int:
        """Return the id of a mark that the tokenizer has."""
        return self._first_mark + self.marks.index(mark)

    @property
    def mark_ids(self) -> range:
        """Return the ids of all marks."""
        return range(self._first_mark, self.vocab_size)

    def _is_ordinary(self, number: int) -> bool:
        """Return whether an id stands for text: no special piece, and no mark."""
        return len(SPECIALS) <= number and number not in self.mark_ids

    def _prepare(self, text: str) -> str:
        return _apply(self._functions, text)

    def _spelled(self, number: int) -> bytes:
        """Return what one id spells; nothing where it is special."""
        if number not in self._known:
            piece = ""
            if self._is_ordinary(number):
                piece = self._inner.id_to_token(number) or ""
            self._known[number] = piece_bytes(piece, self.settings.kind)
        return self._known[number]

    @cached_property
    def _ranks(self) -> dict[Pair, int]:
        """Keep the merges of byte-pair encoding by their order."""
        return merge_ranks(json.loads(self._text)["model"]["merges"])

    @cached_property
    def _known(self) -> dict[int, bytes]:
        """Keep what ids spell, which is asked for again and again."""
        return {}

    @cached_property
    def _characters(self) -> Characters | None:
        """Follow the characters through the pipeline's own normalization, if it has one."""
        return None if self._normalizer is None else Characters(self._normalizer)

    @cached_property
    def _rows(self) -> RowEncoder:
        """Keep what recurs in many texts."""
        if self.settings.kind == "character":
            return CharacterEncoder(self._inner)
        leading_space = has_leading_space(self.settings)
        return WordEncoder(self._inner, self._without_space, leading_space)

    @cached_property
    def _going_on(self) -> tokenizers.Tokenizer:
        """Build the pipeline for text that goes on where other text stopped; spaced words go on
        with a space.
        """
        return self._inside if has_spaced_words(self.settings) else self._without_space

    @cached_property
    def _without_space(self) -> tokenizers.Tokenizer:
        """Build the pipeline that puts no space before a text."""
        return self._other if has_leading_space(self.settings) else self._inner

    @cached_property
    def _inside(self) -> tokenizers.Tokenizer:
        """Build the pipeline that puts a space before a text, if a piece may be one and a word."""
        is_other = joins_spaces(self.settings.kind) and not self.settings.leading_space
        return self._other if is_other else self._inner

    @cached_property
    def _other(self) -> tokenizers.Tokenizer:
        tree = with_other_beginning(json.loads(self._text), self.settings)
        return tokenizers.Tokenizer.from_str(json.dumps(tree))


def load_tokenizer(text: str | bytes, settings: SideSection, where: str) -> Tokenizer:
    """Read the content of a `tokenizer.json` that was written with these (resolved) settings;
    `where` is its path.

    Raises FolderError for anything that is not exactly of our making, UsageError for a missing
    package.
    """
    tree = read_tokenizer_tree(text, settings, where)
    with without_panics(FolderError, where):
        try:
            return Tokenizer(tree, settings)
        except ValueError as error:
            raise FolderError(
                f"{where}: {str(error)[:120]}; restore the original file"
            ) from None


def train_tokenizer(texts: Iterable[str], settings: SideSection) -> Tokenizer:
    """Learn a tokenizer from texts of one side; settings that are still open are chosen by the
    texts.

    More pieces than the texts allow are not made: the tokenizer is smaller, and its `notes` say so.
    Raises DataError where there is no text.
    """
    sample, total = sample_texts(texts)
    # a line alone counts as a pair
    chosen = _choose(settings, count_scripts(sample), total)
    return learn_sample(sample, total, chosen, settings.vocab_size, "tokenizer")


def build_tokenizer(settings: SideSection, texts: Sequence[str]) -> Tokenizer:
    """Choose what is open and learn the tokenizer of a task with one text: documents, or rows of
    any length.

    The number of subwords goes by the amount of text, not by the number of rows. Raises as
    `train_tokenizer`.
    """
    sample, total = sample_texts(document_parts(texts))
    num_sentences = sum(map(len, texts)) // _SENTENCE
    chosen = _choose(settings, count_scripts(sample), num_sentences)
    return learn_sample(sample, total, chosen, settings.vocab_size, "tokenizer")


def build_tokenizers(
    section: TokenizerSection,
    src: Sequence[str],
    tgt: Sequence[str],
    *,
    needs_joint: bool = False,
) -> tuple[Tokenizer, Tokenizer]:
    """Choose what is open and learn the tokenizers of both sides; a joint one is the same object
    twice.

    Raises as `train_tokenizer`, naming the side.
    """
    chosen = choose_settings(section, src, tgt, needs_joint=needs_joint)
    src_size = section.src.vocab_size
    tgt_size = section.tgt.vocab_size
    if chosen.joint:
        both = sample_texts(chain(src, tgt))
        joint = learn_sample(*both, chosen.src, src_size, "tokenizer.src")
        return joint, joint
    return (
        learn_sample(*sample_texts(src), chosen.src, src_size, "tokenizer.src"),
        learn_sample(*sample_texts(tgt), chosen.tgt, tgt_size, "tokenizer.tgt"),
    )


def learn_sample(
    sample: Sequence[str],
    total: int,
    settings: SideSection,
    requested: int | None,
    key: str,
) -> Tokenizer:
    """Learn from a sample of `total` texts with settings that leave nothing open.

    `requested` is the vocabulary size that a person set, None if it was chosen here; `key` says
    where.
    """
    vocab_size = settings.vocab_size or SMALLEST
    functions = load_steps(settings)[1]
    prepared = [_apply(functions, text) for text in sample]
    if not any(prepared):
        raise DataError(
            f"{key}: there is no text to learn from, every line is empty; check the data"
        )
    tokenizer = Tokenizer(train_vocabulary(prepared, settings, vocab_size), settings)
    if requested is not None and tokenizer.vocab_size < requested:
        tokenizer.notes.append(
            f"{key}.vocab_size = {requested:,}: the text gives only {tokenizer.vocab_size:,} pieces; they are used"
        )
    if len(sample) < total:
        tokenizer.notes.append(
            f"{key}: learned from {len(sample):,} evenly spaced texts of {total:,}"
        )
    return tokenizer


def choose_settings(
    section: TokenizerSection,
    src: Sequence[str],
    tgt: Sequence[str],
    *,
    needs_joint: bool = False,
) -> TokenizerSection:
    """Choose what the section leaves open, by script and size of the text: joint or not, kinds and
    sizes.

    A side that mostly uses a script without spaces gets characters, any other BPE. Two sides share
    one subword tokenizer where they agree in all settings and in their main script, and any one
    where the model `needs_joint`.
    """
    src_scripts = count_scripts(src)
    tgt_scripts = count_scripts(tgt)
    num_pairs = (len(src) + len(tgt)) // 2
    if section.joint is True or (needs_joint and section.joint == "auto"):
        scripts = src_scripts + tgt_scripts
        both = _choose(section.src, scripts, num_pairs, _SIZES_OF_PAIRS)
        return TokenizerSection(joint=True, src=both, tgt=both)
    src_side = _choose(section.src, src_scripts, num_pairs, _SIZES_OF_PAIRS)
    tgt_side = _choose(section.tgt, tgt_scripts, num_pairs, _SIZES_OF_PAIRS)
    same_script = main_script(src_scripts) == main_script(tgt_scripts)
    are_alike = src_side == tgt_side and same_script
    has_subwords = src_side.kind in ("bpe", "unigram", "byte")
    joint = section.joint == "auto" and are_alike and has_subwords
    return TokenizerSection(joint=joint, src=src_side, tgt=tgt_side)


def _choose(
    side: SideSection,
    scripts: Counter[str],
    num_sentences: int,
    sizes: Sequence[tuple[int, int]] = _SIZES,
) -> SideSection:
    kind = side.kind
    if kind == "auto":
        kind = "character" if is_spaceless(scripts) else "bpe"
    size = side.vocab_size
    if size is None:
        size = _MOST.get(kind) or _subword_size(num_sentences, sizes)
    return side.model_copy(update={"kind": kind, "vocab_size": size})


def _subword_size(num_sentences: int, table: Sequence[tuple[int, int]]) -> int:
    counts, sizes = np.log(np.array(table, dtype=np.float64)).T
    size = math.exp(np.interp(math.log(max(num_sentences, 1)), counts, sizes))
    return 500 * max(1, round(size / 500))


def _apply(functions: Sequence[Step], text: str) -> str:
    text = replace_surrogates(text)
    for function in functions:
        text = function(text)
    return text
