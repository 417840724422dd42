"""The odd texts are what they are said to be."""

import unicodedata

from weft.data.pipeline import SPECIALS
from weft.data.tokenizer import Tokenizer
from weft.ship.tokenizers.odd_texts import ODD_TEXTS


def test_each_has_a_name_and_a_text_of_its_own_that_utf_8_can_hold() -> None:
    names = [odd.name for odd in ODD_TEXTS]
    texts = [odd.text for odd in ODD_TEXTS]
    assert len(set(names)) == len(names)
    assert len(set(texts)) == len(texts)
    assert all(text.encode().decode() == text for text in texts)


def test_they_have_what_readers_stumble_over() -> None:
    texts = [odd.text for odd in ODD_TEXTS]
    together = "".join(texts)
    for found in (*SPECIALS, "</s>", "[CLS]", "<|endoftext|>", "<0x41>", *"▁\ufeff\0"):
        assert found in together, found
    assert "" in texts
    assert any(text.startswith(" ") and text.strip() for text in texts)
    forms = ("NFC", "NFKC", "NFD")
    for form in forms:
        assert any(unicodedata.normalize(form, text) != text for text in texts), form


def test_weft_gives_each_back(one: Tokenizer) -> None:
    for odd in ODD_TEXTS:
        assert one.decode(one.encode(odd.text)) == one.normalize(odd.text), odd.name
