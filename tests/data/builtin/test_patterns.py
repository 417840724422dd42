import re
from itertools import islice
from random import Random

import pytest

from weft.data.builtin.lexicon import PATTERN_FILES, Lexicon, load_lexicon, read_tables
from weft.data.builtin.patterns import compile_pattern, derive, shuffled
from weft.data.builtin.splits import held_out

TABLES = {
    "people": {"someone": ["1s | I | 我 | ich", "f | my aunt | 我阿姨 | meine Tante"]},
    "relations": {
        "relative": ["aunt | 阿姨 | die Tante/Tanten", "uncle | 叔叔 | der Onkel/Onkel"]
    },
    "nouns": {"drink": ["tea | 茶 | der Tee", "milk | 牛奶 | die Milch"]},
    "groups": {},
    "adjectives": {},
    "phrases": {},
    "verbs": {
        "do": ["drink | 喝 | trinken trinkst trinkt getrunken | drink:bare"],
        "call": ["call | 给_打电话 | an-rufen rufst ruft angerufen | relative:poss"],
    },
    "unions": {"all": "do call"},
}
PARADIGMS = {"en": {"be": "am are is is are are"}, "zh": {}, "de": {}}


def pattern(
    slots, en="{s} {v.pres@s}.", zh="{s}{v@s}。", de="{s} {v.fin@s} {v.obj@s} {v.pre}."
):
    table = {"id": "a", "slots": slots, "en": en, "zh": zh, "de": de}
    return compile_pattern(table, Lexicon(TABLES), PARADIGMS, 10)


def test_all_combinations_are_derived_and_agree():
    sentences = {
        s.en: (s.zh, s.de)
        for s in derive(pattern({"s": "someone", "v": "do"}), Random(0))
    }
    assert sentences == {
        "I drink tea.": ("我喝茶。", "Ich trinke Tee."),
        "I drink milk.": ("我喝牛奶。", "Ich trinke Milch."),
        "My aunt drinks tea.": ("我阿姨喝茶。", "Meine Tante trinkt Tee."),
        "My aunt drinks milk.": ("我阿姨喝牛奶。", "Meine Tante trinkt Milch."),
    }


def test_no_content_word_comes_in_twice():
    texts = {
        sentence.en
        for sentence in derive(pattern({"s": "someone", "v": "all"}), Random(0))
    }
    assert "My aunt calls her uncle." in texts
    assert "I call my aunt." in texts
    assert "My aunt calls her aunt." not in texts


def test_paradigm_needs_a_person():
    with pytest.raises(ValueError, match="agree"):
        pattern({"s": "someone"}, en="{s} {=be}.")


def test_shuffled_keeps_its_argument_and_every_item():
    items = list(range(50))
    mixed = shuffled(items, Random(3))
    assert items == list(range(50))
    assert mixed != items
    assert sorted(mixed) == items


def test_every_pattern_of_the_corpus_compiles_and_its_names_are_unique():
    lexicon, paradigms = load_lexicon(), read_tables("people.toml")["paradigms"]
    tables = [table for name in PATTERN_FILES for table in read_tables(name)["pattern"]]
    assert len({table["id"] for table in tables}) == len(tables)
    for table in tables:
        compiled = compile_pattern(table, lexicon, paradigms, 10)
        assert len(list(islice(derive(compiled, Random(1)), 20))) == 20, table["id"]
        templates = " ".join(table[lang] for lang in ("en", "zh", "de"))
        unused = [
            name
            for name in table["slots"]
            if not re.search(rf"[{{@+]{name}\b", templates)
        ]
        assert not unused, table["id"]


def test_nothing_is_held_out_where_words_would_get_too_rare():
    sentences = list(derive(pattern({"s": "someone", "v": "do"}), Random(0)))
    assert held_out(sentences, 2, Random(0)) == [set(), set()]
