"""Any Unicode text through every kind of tokenizer: what comes back is what went in, up to
normalization.
"""

import unicodedata
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pushed import of_which
from weft.config import SideSection
from weft.data.pipeline import BYTE_LETTERS, BYTE_PIECES, SPECIALS
from weft.data.tokenizer import Tokenizer, train_tokenizer

WORDS = ("nltk", "spacy")  # tokenizers that rewrite the text as their words
# without a leading space
BARE = ("bpe bare", "unigram bare", "word bare", "whitespace bare")
EXACT = ("bpe", "unigram", "character", "word", "byte", "whitespace", *BARE)
KINDS = (*EXACT, *WORDS, "nltk bare")
TEXTS = (
    "Der Hund läuft, und die Katze läuft auch.",
    "Der Hund schläft; die Katze sieht den Hund.",
    "中文也有字。 ภาษาไทย <pad> </s> 12 123  x",
)
MARKUP = ("</s>", "<pad>", "<s>", "<unk>", "<0xab>", "<0x+1>", "don't", "@-@")
ODD = (
    " ",
    "  ",
    "\n",
    "\r\n",
    "\0",
    "\u0301",
    "\u200d",
    "👩‍🔬",
    "語",
    "▁",
    "Ġ",
    "ﬁ",
    "İ",
    "\t",
    "\u2028",
    "\x1c",
    "\u00a8",
)
SURROGATE = "\ud800"


@cache
def _tokenizer(kind: str, unicode: str = "NFC", lowercase: bool = False) -> Tokenizer:
    kind, _, bare = kind.partition(" ")
    if kind in WORDS:
        pytest.importorskip(
            kind, reason=f"{kind} is not installed (pip install '.[classic]')"
        )
    words = (
        {"kind": "word", "words": kind}
        if kind in (*WORDS, "whitespace")
        else {"kind": kind}
    )
    forms = {"unicode": unicode, "lowercase": lowercase, "leading_space": not bare}
    section = SideSection.model_validate({**words, "vocab_size": 400, **forms})
    return train_tokenizer(TEXTS * 3, section)


any_text = st.text(alphabet=st.characters(), max_size=30)
names = st.sampled_from(
    [*SPECIALS, *BYTE_PIECES, *BYTE_LETTERS, *MARKUP, *ODD, *TEXTS[0].split(" ")]
)
# Names of pieces side by side, with and without anything between them.
made_of_names = st.lists(st.one_of(names, st.text(max_size=2)), max_size=8).map("".join)
texts = st.one_of(any_text, made_of_names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("unicode", "lowercase"),
    of_which(
        [("NFC", False), ("raw", False), ("NFKC", True)], ("NFC", False), ("NFKC", True)
    ),
)
@settings(max_examples=40, deadline=None)
@given(text=texts)
@example(text="")
@example(text=" ")
@example(text="  leading and trailing  ")
@example(text="<pad token><unk token> <bos token>\n<eos token>")
@example(text="<0x41><0xFF></s>")
@example(text="\u0301\u0327 lone marks \u0301")
@example(text="a\0b\ud800c")
def test_decoding_gives_back_the_normalized_text(
    kind: str, unicode: str, lowercase: bool, text: str
) -> None:
    tokenizer = _tokenizer(kind, unicode, lowercase)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.normalize(text)
    assert all(4 <= i < tokenizer.vocab_size for i in ids)
    assert len(tokenizer.pieces(ids)) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("unicode", "lowercase"), [("raw", False), ("NFKC", True)])
@settings(max_examples=30, deadline=None)
@given(text=texts)
@example(text="")
@example(text="a\0b\ud800c")
@example(text="\u0301\u0327 lone marks \u0301")
def test_every_character_of_the_normalized_text_has_a_place(
    kind: str, unicode: str, lowercase: bool, text: str
) -> None:
    tokenizer = _tokenizer(kind, unicode, lowercase)
    normal = tokenizer.normalize(text)
    starts = tokenizer.starts(text)
    assert len(starts) == len(normal)
    assert starts == sorted(starts)
    assert all(0 <= start < max(len(text), 1) for start in starts)
    if kind in EXACT and unicode == "raw":
        assert starts == list(range(len(text)))


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=40, deadline=None)
@given(text=texts)
def test_normalization_changes_nothing_it_is_not_asked_to(kind: str, text: str) -> None:
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert _tokenizer(kind, "raw").normalize(text) == text
    if text.isascii():
        assert _tokenizer(kind).normalize(text) == unicodedata.normalize("NFC", text)
        assert _tokenizer(kind, "NFKC", True).normalize(text) == text.lower()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(text=texts)
@example(text="a ")
@example(text="The words")
def test_what_is_whole_of_a_beginning_and_what_is_not_are_all_of_it(
    kind: str, text: str
) -> None:
    tokenizer = _tokenizer(kind)
    ids, letters = tokenizer.encode_begun(text)
    whole = tokenizer.encode(text)
    assert whole[: len(ids)] == ids
    assert tokenizer.spell(whole, begins=False) == (
        tokenizer.spell(ids, begins=False) + letters
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(batch=st.lists(texts, max_size=6))
def test_a_batch_is_encoded_as_its_texts_one_by_one(
    kind: str, batch: list[str]
) -> None:
    tokenizer = _tokenizer(kind)
    assert tokenizer.encode_batch(batch) == [tokenizer.encode(text) for text in batch]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_ids_decode_and_have_labels(kind: str, data: st.DataObject) -> None:
    tokenizer = _tokenizer(kind)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    text = tokenizer.decode(ids)
    text.encode("utf-8")
    assert text == tokenizer.decode([i for i in ids if i >= 4])
    assert len(tokenizer.pieces(ids)) == len(ids)
    assert all(tokenizer.pieces(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_lone_surrogates_are_read_as_the_replacement_character(kind: str) -> None:
    tokenizer = _tokenizer(kind)
    assert tokenizer.normalize(f"a{SURROGATE}b") == tokenizer.normalize("a\ufffdb")
    assert "\ufffd" in tokenizer.normalize(SURROGATE)
    assert tokenizer.encode(f"a{SURROGATE}b") == tokenizer.encode("a\ufffdb")
