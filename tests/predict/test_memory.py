"""Translations with a translation memory: what is taken, what is offered, and that nothing else
changes.
"""

import pytest

import weft
from weft.data.corpus import from_pairs
from weft.data.glossary import Entry, Glossary
from weft.data.memory import Memory
from weft.predict.memory_use import MemoryUse
from weft.predict.translator import Translator

TEA = "Anna drinks tea in the library."
BOOK = "The teacher bought a book."
PAGES = "The teacher reads 12 books."


@pytest.fixture(scope="module")
def demo() -> Translator:
    found = weft.load(weft.DEMO)
    assert isinstance(found, Translator)
    return found


def memory_of(*pairs: tuple[str, str]) -> Memory:
    return Memory.from_text(from_pairs(pairs, "old", "en", "zh"))


def uses(prediction: weft.Prediction) -> list[MemoryUse]:
    assert prediction.memory is not None
    return prediction.memory


def test_an_exact_match_is_taken_to_the_letter(demo: Translator) -> None:
    target = "安娜 在图书馆喝茶 ①。"  # normalization of tokens would change it
    model = demo.with_memory(memory_of((TEA, target)))
    taken, searched = model.translate([f"  {TEA} ", BOOK])
    assert taken.text == f"  {target}"
    assert uses(taken) == [
        MemoryUse(2, 2 + len(TEA), TEA, target, 1.0, "exact", "old:1", True)
    ]
    assert taken.is_taken
    assert (taken.score, taken.confidence) == (0.0, 0.0)
    assert len(taken.tokens) == len(taken.token_log_probs)
    (plain,) = demo.translate(BOOK)
    assert searched.text == plain.text
    assert searched.score == plain.score
    assert (searched.memory, plain.memory) == ([], None)
    assert "memory" not in plain.to_json()
    assert taken.to_json()["memory"] == [use.to_json() for use in uses(taken)]
    assert demo.translate(TEA)[0].text != target
    assert model.with_memory(None).translate(TEA) == demo.translate(TEA)


def test_sentences_of_a_text_are_taken_each(demo: Translator) -> None:
    model = demo.with_memory(memory_of((TEA, "喝茶。")))
    text = f"{BOOK}  {TEA} {BOOK}\n{BOOK}"
    (prediction,) = model.translate(text)
    (book,) = demo.translate(BOOK)
    assert prediction.text == f"{book.text}  喝茶。{book.text}{book.text}"
    (use,) = uses(prediction)
    assert text[use.start : use.end] == TEA
    assert not prediction.is_taken
    # the whole text is looked up before its sentences
    whole = demo.with_memory(memory_of((TEA, "喝茶。"), (f"{TEA} {BOOK}", "全部")))
    assert whole.translate(f"{TEA} {BOOK}")[0].text == "全部"


def test_other_numbers_are_put_into_the_target(demo: Translator) -> None:
    model = demo.with_memory(memory_of((PAGES, "老师读12本书。")))
    (prediction,) = model.translate(PAGES.replace("12", "37"))
    assert prediction.text == "老师读37本书。"
    (use,) = uses(prediction)
    assert (use.kind, use.taken, use.source) == ("repaired", True, PAGES)
    assert 0.7 < use.score < 1


def test_near_ones_are_offered_and_change_nothing(demo: Translator) -> None:
    model = demo.with_memory(memory_of((BOOK, "买书。")))
    near = "The teacher bought a bicycle."
    text = f"{near} {TEA}"
    prediction, both = model.translate([near, text])
    assert prediction.text == demo.translate(near)[0].text
    (use,) = uses(prediction)
    assert (use.source, use.target, use.taken, use.kind) == (
        BOOK,
        "买书。",
        False,
        "near",
    )
    assert use.score == pytest.approx(5 / 6)
    (use,) = uses(both)
    assert text[use.start : use.end] == near
    stricter = demo.with_memory(memory_of((BOOK, "买书。")), least=0.9)
    assert uses(stricter.translate(near)[0]) == []


def test_a_taken_text_has_alignments(demo: Translator) -> None:
    (plain,) = demo.translate(BOOK, alignments=True)
    model = demo.with_memory(memory_of((BOOK, plain.text)))
    text = f"{TEA} {BOOK}"
    (prediction,) = model.translate(text, alignments=True)
    assert prediction.words is not None
    start = text.index(BOOK)
    begin = prediction.text.index(plain.text)
    taken = [
        (word.text, source.text)
        for word in prediction.words
        for source in word.sources
        if word.start >= begin
    ]
    for word in prediction.words:
        assert prediction.text[word.start : word.end] == word.text
        for source in word.sources:
            assert text[source.start : source.end] == source.text
            assert (source.start >= start) == (word.start >= begin)
    # forced along the same words, the model looks where it looked when it wrote them
    assert plain.words is not None
    assert taken == [
        (word.text, source.text) for word in plain.words for source in word.sources
    ]
    assert len(prediction.tokens) == len(prediction.token_log_probs)


def test_streams_completions_and_samples(demo: Translator) -> None:
    model = demo.with_memory(memory_of((TEA, "喝茶。")))
    text = f"{BOOK} {TEA}"
    assert "".join(model.stream(text)) == model.translate(text, beam_size=1)[0].text
    # a translation with a given beginning is searched
    assert model.complete(TEA, "安").text == demo.complete(TEA, "安").text
    assert model.translate(TEA, prefix="安")[0].text.startswith("安")
    (best,) = model.translate(text, n_best=3)
    assert all(one.text.endswith("喝茶。") for one in best.n_best)
    (sampled,) = model.translate(TEA, mbr=4, seed=1)
    assert sampled.text == "喝茶。"
    assert model.segments(TEA) == demo.segments(TEA)


def test_a_unit_counts_more_than_a_glossary_which_says_so(demo: Translator) -> None:
    glossary = Glossary((Entry(("tea",), ("茶水",)),))
    model = demo.with_glossary(glossary).with_memory(memory_of((TEA, "安娜喝茶。")))
    (prediction,) = model.translate(TEA)
    assert prediction.text == "安娜喝茶。"
    assert prediction.terms is not None
    (use,) = prediction.terms
    assert (use.status, use.reason) == ("missing", "the unit of the memory has it so")


def test_text_without_words_and_text_longer_than_the_model(demo: Translator) -> None:
    long = " ".join(["book"] * 3000)
    model = demo.with_memory(memory_of((long, "长" * 3000), ("...", "……")))
    taken, dots, nothing = model.translate([long, "...", " "], alignments=True)
    assert taken.text == "长" * 3000
    assert not taken.truncated
    assert dots.text == "……"
    assert (nothing.text, nothing.memory) == ("", [])
