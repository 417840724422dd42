"""Given translations, read as if the model had written them."""

from dataclasses import replace
from pathlib import Path

import pytest

import weft
from weft.data.tokenizer import EOS_ID
from weft.errors import UsageError
from weft.predict.doubts import Doubts
from weft.predict.evidence import (
    OMISSION_FEATURES,
    SENTENCE_FEATURES,
    WORD_FEATURES,
)
from weft.predict.quality import Logistic, Quality
from weft.predict.translator import Translator

SOURCES = ["cat sees dog.", "bird hears fish. Horse likes mouse.", "dog wants cat."]
ALWAYS = Quality(
    Logistic.of(WORD_FEATURES, 0.5, {}),
    Logistic.of(SENTENCE_FEATURES, 0.0, {"mean_probability": 1.0}),
    Logistic.of(OMISSION_FEATURES, 9.0, {}),
)


@pytest.fixture(scope="module")
def translator(tiny_folder: Path) -> Translator:
    model = weft.load(tiny_folder)
    assert isinstance(model, Translator)
    return model


def judging(translator: Translator) -> Translator:
    """Suspect an omission wherever one can be told."""
    found = translator.ensemble()
    found.doubts = Doubts(quality=replace(ALWAYS, least_omission=0.5))
    return found


def test_what_the_model_wrote_is_read_as_it_was_written(translator: Translator) -> None:
    wanted = translator.translate(SOURCES, alignments=True)
    texts = [one.text for one in wanted]
    found = translator.score(SOURCES, texts, alignments=True)
    for one, other in zip(found, wanted, strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.alignments == other.alignments
        assert one.segments == other.segments


def test_pairs_are_read_each_for_itself(translator: Translator) -> None:
    """Equal sources may have different translations."""
    source = SOURCES[0]
    texts = ["Katze sieht Hund.", "Hund sieht.", "Katze sieht Hund."]
    together = translator.score([source] * 3, texts)
    assert [one.text for one in together] == texts
    alone = [translator.score([source], [text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-5)
    assert together[0].score == together[2].score != together[1].score


def test_the_models_own_steps_read_as_its_engine_does(
    tiny_folder: Path, translator: Translator
) -> None:
    plain = weft.load(tiny_folder, kernels="torch")
    texts = ["Katze sieht Hund.", "Vogel hört Fisch. Pferd mag Maus.", "Hund."]
    one = translator.score(SOURCES, texts)
    other = plain.score(SOURCES, texts)
    for mine, its in zip(one, other, strict=True):
        assert mine.token_log_probs == pytest.approx(its.token_log_probs, abs=1e-4)


def test_sentences_are_given_to_the_rows_of_their_text(translator: Translator) -> None:
    text = SOURCES[1]
    assert len(translator.segments(text)) == 2
    equal, joined, none = translator.score(
        [text] * 3, ["Vogel hört Fisch. Pferd mag Maus.", "Vogel hört Fisch.", ""]
    )
    assert equal.tokens.count(translator.tgt_tokenizer.pieces([EOS_ID])[0]) == 2
    assert joined.text == "Vogel hört Fisch."
    assert joined.segments == 2
    assert joined.empty
    assert none.text == ""
    assert len(none.token_log_probs) == 2


def test_a_translation_longer_than_the_model_is_cut_and_says_so(
    translator: Translator,
) -> None:
    (found,) = translator.score([SOURCES[0]], ["Katze " * 5000])
    assert found.output_limit is not None
    assert len(found.tokens) == translator.max_len - 1


def test_what_cannot_be_read_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="1 translations for 2 texts"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(UsageError, match="not searched for"):
        translator.score(["a"], ["c"], n_best=2)


def test_doubts_are_told_by_a_model_that_knows_itself(translator: Translator) -> None:
    knowing = judging(translator)
    source = "cat sees dog and bird hears fish and horse likes mouse."
    (found,) = knowing.score(
        [source], ["Katze sieht Hund Katze sieht Hund."], doubts=True
    )
    assert found.words is not None
    qualities = [word.quality for word in found.words]
    assert qualities == pytest.approx([0.62246] * len(qualities), abs=1e-4)
    assert found.doubled == ["Katze sieht Hund"]
    assert found.omitted
    assert found.alignments is None
    for word in found.omitted:
        assert source[word.start : word.end] == word.text
    facts = found.to_json()
    assert facts["omitted"][0] == vars(found.omitted[0])
    assert facts["words"][0]["quality"] == found.words[0].quality
    mean = sum(found.token_log_probs) / len(found.token_log_probs)
    assert found.confidence == pytest.approx(mean)
    assert 0.5 < found.quality < 0.7311
    (plain,) = knowing.translate([source])
    assert (plain.words, plain.omitted, plain.doubled) == (None, None, None)
    assert plain.quality is not None
    (unasked,) = translator.translate([source], doubts=True)
    assert unasked.words is unasked.omitted is unasked.quality is None
    assert "quality" not in unasked.to_json()


def test_doubts_of_a_translation_are_those_of_reading_it(
    translator: Translator,
) -> None:
    knowing = judging(translator)
    sources = ["cat sees dog and bird hears fish and horse likes mouse.", *SOURCES]
    wanted = knowing.translate(sources, doubts=True)
    found = knowing.score(sources, [one.text for one in wanted], doubts=True)
    for one, other in zip(found, wanted, strict=True):
        assert one.omitted == other.omitted
        assert one.doubled == other.doubled
        assert one.quality == pytest.approx(other.quality, abs=1e-5)
