import hashlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import combinations, pairwise

import pytest

from weft.data import builtin
from weft.data.builtin.words import FUNCTION_WORDS
from weft.errors import UsageError

TENS = {"ten", "twenty", "thirty", "fifty", "hundred"}
NUMBERS = {"two", "three", "four", "five", "six", "seven", "eight", "nine"} | TENS
PRONOUNS = {
    "i",
    "you",
    "he",
    "she",
    "we",
    "they",
    "me",
    "my",
    "your",
    "his",
    "her",
    "our",
    "their",
    "them",
}
LANGUAGES = ("en", "zh", "de")


@pytest.fixture(scope="module")
def triples():
    return builtin.everyday()


@pytest.fixture(scope="module")
def splits():
    """The three splits as triples of texts, English first."""
    chinese, german = (
        builtin.pairs("everyday", "en", "zh"),
        builtin.pairs("everyday", "en", "de"),
    )
    joined = {}
    for part in ("train", "dev", "test"):
        rows = zip(getattr(chinese, part), getattr(german, part), strict=True)
        joined[part] = [(one[0], one[1], other[1]) for one, other in rows]
    return joined


def words(text):
    return [word.strip(".,?!").lower() for word in text.split()]


def symbols(text, lang):
    return list(text) if lang == "zh" else words(text)


def without_numbers_and_names(text):
    """The text with every number, and every capitalised word but the first and "I", put out of
    sight.
    """
    kept = []
    for position, word in enumerate(text.rstrip(".?").replace(",", "").split()):
        named = word[0].isupper() and word != "I" and (position or word in NAMES)
        kept.append("#" if named or word.lower() in NUMBERS else word.lower())
    return " ".join(kept)


NAMES = {"Anna", "Tom", "Maria", "Paul", "Lena", "David"}


def test_corpus_is_as_large_as_promised(triples):
    assert 20_000 <= len(triples) <= 30_000
    assert len({triple.pattern for triple in triples}) >= 90
    assert len({word for triple in triples for word in words(triple.en)}) >= 750


def test_every_pattern_gives_many_sentences(triples):
    assert min(Counter(triple.pattern for triple in triples).values()) >= 40


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_text_occurs_twice(triples, lang):
    texts = [getattr(triple, lang).lower() for triple in triples]
    assert len(set(texts)) == len(texts)


def test_few_triples_differ_only_by_number_or_name(triples):
    masked = Counter(without_numbers_and_names(triple.en) for triple in triples)
    assert any("#" in text for text in masked)
    assert sum(count for count in masked.values() if count > 1) <= 0.2 * len(triples)


def test_sentences_are_short(triples):
    lengths = [len(triple.en.split()) for triple in triples]
    assert sum(lengths) / len(lengths) <= 9
    assert max(lengths) <= 20


def test_european_texts_are_cleanly_written(triples):
    for text in (text for triple in triples for text in (triple.en, triple.de)):
        assert re.fullmatch(
            r"[A-ZÄÖÜ][A-Za-zäöüßÄÖÜéÉ'-]*(,? [A-Za-zäöüßÄÖÜé'-]+)*[.?]", text
        ), text


def test_chinese_texts_are_cleanly_written(triples):
    for triple in triples:
        assert re.fullmatch(
            r"[\u4e00-\u9fff]+(，[\u4e00-\u9fff]+)*[。？]", triple.zh
        ), triple.zh


def test_end_marks_agree(triples):
    for triple in triples:
        question = triple.en.endswith("?")
        assert question == triple.zh.endswith("？") == triple.de.endswith("?"), triple


def test_english_articles(triples):
    for triple in triples:
        for article, following in re.findall(r"\b([Aa]n?) (\w)\w*", triple.en):
            exceptional = re.search(r"\b[Aa]n? (hour|uni)", triple.en)
            assert exceptional or (following in "aeiou") == (article.lower() == "an"), (
                triple.en
            )


def test_chinese_counts_two_with_liang(triples):
    assert any("两" in triple.zh for triple in triples)
    assert not any(re.search("二[只头匹辆个]", triple.zh) for triple in triples)


def test_german_nouns_after_an_article_have_capitals(triples):
    for triple in triples:
        for following in re.findall(
            r"\b(?:der|den|dem|einem|einer|einen) ([^\s.,?]+)", triple.de
        ):
            inflected = following.endswith(("e", "en", "er"))
            pronoun = following in {"mein", "ich", "du", "sie", "wir"}
            assert following[0].isupper() or inflected or pronoun, triple.de


def test_names_are_translated_alike(triples):
    chinese = {
        "Anna": "安娜",
        "Tom": "汤姆",
        "Maria": "玛丽亚",
        "Paul": "保罗",
        "Lena": "莱娜",
        "David": "大卫",
    }
    for triple in triples:
        english, german = words_cased(triple.en), words_cased(triple.de)
        for name, translated in chinese.items():
            assert (name in english) == (translated in triple.zh) == (name in german), (
                triple
            )


def words_cased(text):
    return re.findall(r"\w+", text)


def test_splits_partition_the_corpus(triples, splits):
    rows = [row for part in splits.values() for row in part]
    assert sorted(rows) == sorted(
        (triple.en, triple.zh, triple.de) for triple in triples
    )
    assert 480 <= len(splits["dev"]) <= 530
    assert 480 <= len(splits["test"]) <= 530


@pytest.mark.parametrize("part", ["dev", "test"])
def test_held_out_sentences_hold_a_pair_of_words_never_trained_together(splits, part):
    where = defaultdict(set)
    for index, row in enumerate(splits["train"]):
        for word in words(row[0]):
            where[word].add(index)
    idle = FUNCTION_WORDS | NUMBERS | PRONOUNS | {name.lower() for name in NAMES}
    for row in splits[part]:
        content = set(words(row[0])) - idle
        assert any(
            where[one].isdisjoint(where[other])
            for one, other in combinations(content, 2)
        ), row[0]


@pytest.mark.parametrize("column", range(3))
def test_held_out_words_and_characters_are_all_trained(splits, column):
    lang = LANGUAGES[column]
    counts = Counter(
        symbol for row in splits["train"] for symbol in symbols(row[column], lang)
    )
    for part in ("dev", "test"):
        for row in splits[part]:
            assert min(counts[symbol] for symbol in symbols(row[column], lang)) >= 5, (
                row[column]
            )


def test_held_out_sentences_are_spread_over_patterns(triples, splits):
    pattern = {triple.en: triple.pattern for triple in triples}
    for part in ("dev", "test"):
        counts = Counter(pattern[row[0]] for row in splits[part])
        assert len(counts) >= 90
        assert max(counts.values()) <= 0.05 * len(splits[part])


def test_train_is_shuffled(triples, splits):
    order = {triple.en: index for index, triple in enumerate(triples)}
    positions = [order[row[0]] for row in splits["train"]]
    rising = sum(one < other for one, other in pairwise(positions))
    assert 0.45 < rising / len(positions) < 0.55


def test_sides_follow_the_languages():
    forward, back = (
        builtin.pairs("everyday", "de", "zh"),
        builtin.pairs("everyday", "zh", "de"),
    )
    assert forward.test == [(source, target) for target, source in back.test]
    assert builtin.pairs("everyday").dev == builtin.pairs("everyday", "en", "zh").dev


def test_callers_cannot_spoil_the_corpus():
    builtin.pairs("everyday").test.clear()
    builtin.everyday().clear()
    builtin.pairs("toy-de-en", "de", "en").train.clear()
    assert builtin.pairs("everyday").test
    assert builtin.everyday()
    assert builtin.pairs("toy-de-en", "de", "en").train


@pytest.mark.long
def test_same_corpus_in_every_process():
    code = (
        "import hashlib; from weft.data import builtin as samples; "
        "print(hashlib.sha256(repr((samples.everyday(), samples.pairs('everyday'))).encode()).hexdigest())"
    )
    here = hashlib.sha256(
        repr((builtin.everyday(), builtin.pairs("everyday"))).encode()
    ).hexdigest()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            check=True,
        )
        assert run.stdout.decode().strip() == here


def test_toy_is_exact():
    rows = [
        ("ich mochte ein bier", "i want a beer ."),
        ("ich mochte ein cola", "i want a coke ."),
    ]
    assert builtin.pairs("toy-de-en", "de", "en") == builtin.Splits(rows, rows, rows)
    assert builtin.pairs("toy-de-en", "en", "de").test == [(en, de) for de, en in rows]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "everyday, toy-de-en"),
        (("everyday", "fr", "en"), "en, zh, de"),
        (("everyday", "en", "fr"), "en, zh, de"),
        (("everyday", "en", "en"), "en, zh, de"),
        (("toy-de-en",), "de, en"),
    ],
)
def test_unknown_choices_list_the_known(arguments, message):
    with pytest.raises(UsageError, match=message):
        builtin.pairs(*arguments)
