"""Structure and words survive any translation: 500 samples, and fragments that hypothesis makes."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_samples import (  # tools/
    READ,
    RULES,
    faults_of,
    nested,
    samples,
    sentence,
    tree,
)
from weft.documents.document import Kind
from weft.documents.driver import translate_document

SAMPLES = samples()


@pytest.mark.parametrize("rule", RULES)
def test_samples_keep_their_structure_and_the_words_of_the_translation(
    rule: str,
) -> None:
    wrong = {
        sample.text: faults
        for sample in SAMPLES
        if (faults := list(faults_of(sample, RULES[rule])))
    }
    assert wrong == {}


def test_the_samples_have_what_they_are_for() -> None:
    assert len(SAMPLES) == 500
    items = [
        item.kind
        for sample in SAMPLES
        for segment in READ[sample.format](sample.text).segments
        for item in segment.items
    ]
    assert min(Counter(items)[kind] for kind in Kind) > 50
    assert len({sample.text for sample in SAMPLES}) > 490


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rule=st.sampled_from(sorted(RULES)),
    depth=st.integers(1, 6),
)
def test_nested_tags_stay_nested(seed: int, rule: str, depth: int) -> None:
    chance = random.Random(seed)
    words = [word for _ in range(3) for word in sentence(chance)]
    inner = " ".join(nested(words, chance, 1, depth))
    source = f"<div>Well, {inner}.</div>"
    document = READ["html"](source)
    written = translate_document(document, lambda texts: list(map(RULES[rule], texts)))
    assert tree(written) == tree(source)
    assert (
        re.sub("<[^>]*>", "", written).split()
        == RULES[rule](document.segments[0].text).text.split()
    )
