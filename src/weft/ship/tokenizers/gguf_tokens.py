"""The part of a GGUF file by which llama.cpp tokenizes: its model `gpt2`, byte-pair encoding.

llama.cpp has byte-pair encoding over the same alphabet, and joins pairs in the same order. But it
puts no space before a text (`add_space_prefix` is for other models), normalizes nothing, and cuts a
text into words by one of the patterns in its list: GPT-2's is the nearest to Weft's. Where both cut
alike, the ids are the same, if a person begins the text with the space that the tokenizer puts
there. They may be others

- in a number of more than three digits, which Weft cuts in threes;
- in words with combining marks (`\\p{M}`), at which GPT-2's pattern cuts: those of Devanagari,
  Thai, Hebrew with points, and of letters that no single character has;
- where an apostrophe and s, t, m, d, re, ve or ll begin a longer word at the beginning of a line,
  as in 'tis;
- in a text that is not in NFC.

`ReadByLlamaCpp` says the ids that llama.cpp gives for any text, without it. (`llama_detokenize`
takes out spaces before marks; what llama.cpp writes piece by piece is exact.)
"""

import json
import unicodedata
from typing import Any

import tokenizers

from weft.data.pipeline import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tree,
    has_leading_space,
)
from weft.data.tokenizer import Tokenizer
from weft.errors import UsageError

Keys = dict[str, Any]

MODEL = "gpt2"
PATTERN = "gpt-2"
# Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; released code.
_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# the types of pieces in a GGUF file
_NORMAL = 1
_UNUSED = 5


def token_keys(tokenizer: Tokenizer, start_id: int) -> Keys:
    """Return the keys of a GGUF file that describe a tokenizer, with their values; a text begins
    with `start_id`, as `LanguageModel.start_id` says.

    pad, unk and bos, which Weft never writes, are named as those to suppress. Special pieces are
    `unused`: their names in a text stay text, whereas those of `control` pieces would become the
    pieces. Raises UsageError for a tokenizer that llama.cpp has not.
    """
    if reason := why_not_read(tokenizer):
        raise UsageError(reason)
    model = _tree(tokenizer)["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    num_specials = EOS_ID + 1
    num_others = len(pieces) - num_specials
    keys: Keys = {
        "model": MODEL,
        "pre": PATTERN,
        "tokens": pieces,
        "token_type": [_UNUSED] * num_specials + [_NORMAL] * num_others,
        "merges": [" ".join(pair) for pair in model["merges"]],
        "bos_token_id": start_id,
        "eos_token_id": EOS_ID,
        "unknown_token_id": UNK_ID,
        "padding_token_id": PAD_ID,
        "add_bos_token": True,
        "add_eos_token": False,
        "add_space_prefix": False,
        "suppress_tokens": [PAD_ID, UNK_ID, BOS_ID],
    }
    return {f"tokenizer.ggml.{name}": value for name, value in keys.items()}


def why_not_read(tokenizer: Tokenizer) -> str:
    """Say why llama.cpp has no tokenizer like one, and what to train with; "" where it has."""
    settings = tokenizer.settings
    if settings.kind != "bpe":
        return (
            f'llama.cpp has no tokenizer like tokenizer.kind = "{settings.kind}"; '
            'train with tokenizer.kind = "bpe"'
        )
    for key, value, remedy in (
        ("simplified", settings.simplified, "tokenizer.simplified = false"),
        ("lowercase", settings.lowercase, "tokenizer.lowercase = false"),
        ("unicode", settings.unicode == "NFKC", 'tokenizer.unicode = "NFC"'),
    ):
        if value:
            return f"tokenizer.{key}: llama.cpp changes no text before it tokenizes; train with {remedy}"
    return ""


class ReadByLlamaCpp:
    """The ids that llama.cpp gives for a text, by a tokenizer of the keys above; without bos.

    The text is `given` with the space before it that the tokenizer would put there.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Build the pipeline of llama.cpp for a tokenizer that it has."""
        self._tokenizer = tokenizer
        tree = _tree(tokenizer)
        split, letters = tree["pre_tokenizer"]["pretokenizers"]
        split["pattern"] = {"Regex": _PATTERN}
        tree["normalizer"] = None
        tree["pre_tokenizer"]["pretokenizers"] = [split, letters]
        self._inner = tokenizers.Tokenizer.from_str(json.dumps(tree))

    def given(self, text: str) -> str:
        """Return a text as llama.cpp must be given it."""
        is_spaced = has_leading_space(self._tokenizer.settings)
        return f" {text}" if is_spaced and text else text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, as it must be given."""
        given = self.given(text)
        ids: list[int] = self._inner.encode(given, add_special_tokens=False).ids
        return ids

    def reads_otherwise(self, text: str) -> str:
        """Say why llama.cpp gives other ids than Weft; "" where it gives the same."""
        if self.encode(text) == self._tokenizer.encode(text):
            return ""
        if self._tokenizer.normalize(text) != text:
            return "letters that another normal form of Unicode has"
        classes = "".join(unicodedata.category(character)[0] for character in text)
        if "NNNN" in classes:
            return "numbers of more than three digits"
        if "M" in classes:
            return "combining marks"
        return "words that an apostrophe begins"


def _tree(tokenizer: Tokenizer) -> Tree:
    tree: Tree = json.loads(tokenizer.to_json())
    return tree
