"""The files by which transformers' `AutoTokenizer`, and what reads the same files, tokenizes as
Weft does: `tokenizer.json` and `tokenizer_config.json`.

Weft's own `tokenizer.json` has all but the special ids, which a template puts around a text here.
The settings beside it are those with which transformers 4 and 5 and transformers.js read it alike:

- `PreTrainedTokenizerFast` is the name that all know. Version 5 writes another, which 4 refuses.
- By `split_special_tokens` the names of special pieces in a text stay text, as in Weft.
  transformers.js does not know that key, but looks for names of `added_tokens` alone, and there are
  none. By `additional_special_tokens` it leaves special pieces out of what it decodes.
- `add_bos_token` and `add_eos_token` must not be set: version 5 would build the template anew, and
  cut the names of special pieces at their space.

Two vocabularies become one tokenizer: it encodes as the source's and decodes as the target's. Its
target pieces are called "t " and their name, which no pre-token equals, as it has a space inside;
the decoder takes the prefix off again.

What is left: transformers.js drops a byte order mark (U+FEFF) from what it decodes by byte pieces,
of the kinds `word` and `character`, and cannot decode no ids at all.
"""

import json
from collections.abc import Sequence
from typing import Any

from weft.data.normalize import has_spaced_words
from weft.data.pipeline import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Tree
from weft.data.tokenizer import Tokenizer
from weft.errors import UsageError
from weft.ship.tokenizers.ids import IdMap

Files = dict[str, bytes]

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"

_TGT = "t "  # before the name of a target piece
_SRC = "s "  # before the name of a special piece that is the source's own

# White space as Python has it: no other program's `\s` is the same.
_SPACE = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
# A text as Weft's translators and classifiers read it: line breaks and the white space around them
# become one space, and none is left at the ends. Each run is looked at once, from its first
# character.
_ONE_LINE: list[Tree] = [
    {
        "type": "Replace",
        "pattern": {"Regex": rf"(?<!{_SPACE}){_SPACE}*[\r\n]{_SPACE}*"},
        "content": " ",
    },
    {
        "type": "Replace",
        "pattern": {"Regex": rf"^{_SPACE}+|(?<!{_SPACE}){_SPACE}+$"},
        "content": "",
    },
]
# JavaScript puts the leading space before a text that has become empty, too.
_NOTHING_LEFT: Tree = {"type": "Replace", "pattern": {"Regex": "^ $"}, "content": ""}
# Letters are lower-cased one by one, whereas JavaScript looks at what follows a sigma.
_SIGMA: Tree = {"type": "Replace", "pattern": {"String": "Σ"}, "content": "σ"}


def translator_files(
    src: Tokenizer,
    tgt: Tokenizer,
    ids: IdMap,
    max_len: int,
    *,
    one_line: bool = True,
) -> Files:
    """Return the files of a translator, names to contents: a text gets eos behind it, and outputs
    decode as Weft's.

    `ids` is `same` for one tokenizer, `joined` for two; it encodes the source's text alone then.
    `max_len` counts the ids of a row, eos included. With `one_line` a text is read as
    `predict.text.one_line` makes it, as it is in Weft; a text of one line is the same either way.
    Raises UsageError where the source has steps that no `tokenizer.json` has.
    """
    refuse_steps(src, "tokenizer.src" if ids.is_joined else "tokenizer")
    tree = _joined_tree(src, tgt, ids) if ids.is_joined else _tree(src)
    name = _SRC + SPECIALS[EOS_ID] if ids.has_own_eos else SPECIALS[EOS_ID]
    tree["post_processor"] = _template([], [(name, ids.src_eos)])
    tree["normalizer"] = _normalizer(tree["normalizer"], one_line)
    return _files(tree, _config(max_len, bos=BOS_ID))


def language_model_files(tokenizer: Tokenizer, start_id: int, max_len: int) -> Files:
    """Return the files of a language model, names to contents: a text begins with `start_id`, bos
    or eos, as `LanguageModel.start_id` says.

    Nothing is taken off what is decoded, so that a continuation keeps its first space: a text that
    is decoded from its beginning has the leading space, where the tokenizer puts one. Rows are
    filled up and cut on the left. Raises UsageError as `translator_files`.
    """
    refuse_steps(tokenizer, "tokenizer")
    tree = _tree(tokenizer)
    tree["post_processor"] = _template([(SPECIALS[start_id], start_id)], [])
    tree["normalizer"] = _normalizer(tree["normalizer"], one_line=False)
    decoders = tree["decoder"]["decoders"]
    tree["decoder"]["decoders"] = [d for d in decoders if d["type"] != "Strip"]
    sides = {"padding_side": "left", "truncation_side": "left"}
    return _files(tree, _config(max_len, bos=start_id) | sides)


def classifier_files(
    tokenizer: Tokenizer,
    max_len: int,
    *,
    first_token: bool,
    one_line: bool = True,
) -> Files:
    """Return the files of a classifier, names to contents: a text gets bos before it with
    `first_token`, else nothing.

    `max_len` counts the ids of a row, bos included. `one_line` and errors are as in
    `translator_files`.
    """
    refuse_steps(tokenizer, "tokenizer")
    tree = _tree(tokenizer)
    first = [(SPECIALS[BOS_ID], BOS_ID)] if first_token else []
    tree["post_processor"] = _template(first, [])
    tree["normalizer"] = _normalizer(tree["normalizer"], one_line)
    return _files(tree, _config(max_len, bos=BOS_ID))


def refuse_steps(tokenizer: Tokenizer, key: str) -> None:
    """Raise UsageError where a text goes through a step before the tokenizer's own file, which no
    other program has. `key` names the tokenizer's section in the recipe.
    """
    if reason := steps_in_the_way(tokenizer, key):
        raise UsageError(reason)


def steps_in_the_way(tokenizer: Tokenizer, key: str) -> str:
    """Say which step that is; "" where the file is all."""
    settings = tokenizer.settings
    if has_spaced_words(settings):
        return (
            f'{key}.words = "{settings.words}": only Weft cuts text so; '
            'train with words = "unicode", or use the model with Weft'
        )
    if settings.simplified:
        return (
            f"{key}.simplified = true: only Weft converts text so; "
            "train with simplified = false, or use the model with Weft"
        )
    return ""


def _tree(tokenizer: Tokenizer) -> Tree:
    tree: Tree = json.loads(tokenizer.to_json())
    return tree


def _joined_tree(src: Tokenizer, tgt: Tokenizer, ids: IdMap) -> Tree:
    """Return the source's tree with the target's pieces and decoder."""
    tree = _tree(src)
    other = _tree(tgt)
    src_pieces = _pieces(tree["model"])
    tgt_pieces = _pieces(other["model"])
    names = [""] * ids.size
    for place, (name, _) in zip(ids.src.tolist(), src_pieces, strict=True):
        is_own_special = ids.has_own_eos and name in SPECIALS
        names[place] = _SRC + name if is_own_special else name
    for place, (name, _) in zip(ids.tgt.tolist(), tgt_pieces, strict=True):
        names[place] = name if name in SPECIALS else _TGT + name
    tree["model"]["vocab"] = {name: place for place, name in enumerate(names)}
    if tree["model"]["type"] == "Unigram":
        scores = dict(src_pieces)
        tree["model"]["vocab"] = [[name, scores.get(name, 0.0)] for name in names]
    prefix = {"type": "Replace", "pattern": {"Regex": f"^{_TGT}"}, "content": ""}
    tree["decoder"]["decoders"] = [prefix, *other["decoder"]["decoders"]]
    return tree


def _pieces(model: Tree) -> list[tuple[str, float]]:
    """Return the pieces in order of id, each with its score, if it has one."""
    vocab = model["vocab"]
    if isinstance(vocab, list):
        return [(piece, score) for piece, score in vocab]
    return [(piece, 0.0) for piece in sorted(vocab, key=vocab.__getitem__)]


def _template(
    before: Sequence[tuple[str, int]], behind: Sequence[tuple[str, int]]
) -> Tree:
    """Return the `post_processor` that puts special pieces, names and ids, around a text."""

    def around(letter: str, number: int) -> list[Tree]:
        text = {"Sequence": {"id": letter, "type_id": number}}
        first = [_special(name, number) for name, _ in before]
        last = [_special(name, number) for name, _ in behind]
        return [*first, text, *last]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [place], "tokens": [name]}
            for name, place in (*before, *behind)
        },
    }


def _special(name: str, number: int) -> Tree:
    return {"SpecialToken": {"id": name, "type_id": number}}


def _normalizer(normalizer: Tree | None, one_line: bool) -> Tree | None:
    """Return a normalizer that does the same everywhere, and first makes one line of a text."""
    steps: list[Tree] = [] if normalizer is None else normalizer["normalizers"]
    kinds = [step["type"] for step in steps]
    if "Lowercase" in kinds:
        steps.insert(kinds.index("Lowercase"), _SIGMA)
    if one_line:
        steps = [*_ONE_LINE, *steps, _NOTHING_LEFT]
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _config(max_len: int, bos: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_len,
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "right",
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
        "pad_token": SPECIALS[PAD_ID],
        "unk_token": SPECIALS[UNK_ID],
        "bos_token": SPECIALS[bos],
        "eos_token": SPECIALS[EOS_ID],
        "additional_special_tokens": list(SPECIALS),
    }


def _files(tree: Tree, config: dict[str, Any]) -> Files:
    compact = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    readable = json.dumps(config, ensure_ascii=False, indent=2)
    return {TOKENIZER: compact.encode(), CONFIG: f"{readable}\n".encode()}
