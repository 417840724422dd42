"""The signature of a text: the same for the same, another for whatever would change a score."""

from weft.config import SideSection
from weft.data.corpus import from_pairs
from weft.data.documents import from_documents
from weft.data.labelled import from_rows
from weft.data.signature import signature
from weft.data.tokenizer import train_tokenizer

PAIRS = [("a b", "c d"), ("e", "f"), ("g", "h")]


def parts(text: str) -> dict[str, str]:
    return dict(part.split(":") for part in text.split("|"))


def test_its_form() -> None:
    found = parts(signature(PAIRS))
    assert list(found) == ["data", "rules", "order"]
    assert len(found["data"]) == len(found["order"]) == 8
    assert found["rules"] == "2"


def test_another_order_is_the_same_data() -> None:
    here, there = parts(signature(PAIRS)), parts(signature(PAIRS[::-1]))
    assert here["data"] == there["data"]
    assert here["order"] != there["order"]


def test_any_change_is_other_data() -> None:
    whole = parts(signature(PAIRS))["data"]
    others = [
        PAIRS[:2],
        [*PAIRS, PAIRS[0]],
        [("a", "b c d"), *PAIRS[1:]],
        [("a b c d",), *PAIRS[1:]],
        [],
    ]
    assert len({whole, *(parts(signature(other))["data"] for other in others)}) == 6


def test_file_names_and_languages_do_not_count() -> None:
    texts = [
        from_pairs(PAIRS, "a.tsv", "en", "de"),
        from_pairs(PAIRS, "b.tsv", "und", "und"),
    ]
    assert len({signature(text.rows()) for text in texts}) == 1
    assert signature(texts[0].rows()) == signature(PAIRS)


def test_labels_count_and_documents_have_a_signature_too() -> None:
    one, other = (from_rows([("text", [label])], "r") for label in ("x", "y"))
    assert signature(one.rows()) != signature(other.rows())
    assert signature(from_documents(["text"], "d").rows()) == signature([("text",)])


def test_the_tokenizer_counts() -> None:
    texts = ["a b c", "b c d"]
    word, character = (
        train_tokenizer(texts, SideSection(kind=kind)) for kind in ("word", "character")
    )
    found = [
        parts(signature(PAIRS, some))
        for some in ([word], [word, word], [character], [word, character])
    ]
    assert list(found[0]) == ["data", "rules", "tok", "order"]
    assert found[0] == found[1], "a joint tokenizer is one"
    assert len({f["tok"] for f in found}) == 3
    assert len({f["data"] for f in found}) == 1
