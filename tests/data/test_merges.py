"""The pairs that are joined in a word lead to the pieces that the tokenizer has."""

from weft.config import SideSection
from weft.data.merges import merge_ranks, merges_of
from weft.data.tokenizer import train_tokenizer

TEXTS = ["the red hats were warm", "the reds had a warmer hat", "größer größe"] * 9


def joined(word: str, pairs: list[tuple[str, str]]) -> list[str]:
    pieces = list(word)
    for pair in pairs:
        places = range(len(pieces) - 1)
        place = next(i for i in places if (pieces[i], pieces[i + 1]) == pair)
        pieces[place : place + 2] = ["".join(pair)]
    return pieces


def test_the_pair_that_was_learned_first_is_joined_first() -> None:
    ranks = merge_ranks([("b", "c"), ("a", "b"), ("a", "bc")])
    assert merges_of("abc", ranks) == [("b", "c"), ("a", "bc")]
    assert merges_of("ab", ranks) == [("a", "b")]
    assert merges_of("abab", ranks) == [("a", "b"), ("a", "b")]
    assert merges_of("cba", ranks) == []
    assert merges_of("", ranks) == []


def test_cuts_end_with_the_tokens_of_the_text() -> None:
    settings = SideSection(kind="bpe", vocab_size=300)
    tokenizer = train_tokenizer(TEXTS, settings)
    text = "the warm red hat"
    words = tokenizer.cuts(text)
    assert words is not None
    assert [word for word, _ in words] == ["▁the", "▁warm", "▁red", "▁hat"]
    pieces = [piece for word, pairs in words for piece in joined(word, pairs)]
    assert pieces == tokenizer.pieces(tokenizer.encode(text))
    assert any(len(pairs) > 1 for _, pairs in words)


def test_other_tokenizers_join_nothing() -> None:
    for kind in ("character", "word", "byte", "unigram"):
        settings = SideSection(kind=kind, vocab_size=300)
        assert train_tokenizer(TEXTS, settings).cuts("the hat") is None
