import hashlib
import importlib.util
import math
import socket

import numpy as np
import pytest
import sacrebleu

from weft.errors import DataError
from weft.evaluation import metrics
from weft.evaluation.metrics import pair_scores, perplexity, translation_scores

HYPOTHESES = [
    "The cat sat on the mat.",
    "He says, it is 3.5 miles to the town hall.",
    "We like the new house",
]
REFERENCES = [
    "The cat is on the mat.",
    "He says it is 3.5 miles to the Town Hall.",
    "We like the new house a lot.",
]
CHINESE = (
    ["我喜欢这只小猫。", "他昨天去了北京。"],
    ["我很喜欢这只猫。", "他昨天去了上海。"],
)


@pytest.fixture
def without_mecab(monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)


def test_the_scores_are_those_of_sacrebleu():
    scores = translation_scores(HYPOTHESES, REFERENCES, "en")
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert (
        scores.bleu_lc
        == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True).score
    )
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    # "Town Hall" counts only in lower case
    assert 0 < scores.bleu < scores.bleu_lc < 100


def test_every_score_has_its_signature():
    scores = translation_scores(HYPOTHESES, REFERENCES, "en")
    version = sacrebleu.__version__
    assert (
        scores.bleu_signature
        == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert (
        scores.bleu_lc_signature
        == f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert (
        scores.chrf_signature
        == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    )


def test_identical_text_scores_100_and_text_without_a_common_word_0():
    same = translation_scores(REFERENCES, REFERENCES, "en")
    assert (same.bleu, same.chrf) == pytest.approx((100, 100))
    assert translation_scores(["aaa bbb"], ["ccc ddd"], "en").bleu == 0


@pytest.mark.parametrize("language", ["zh", "zh-Hant", "ZH_cn", "yue"])
def test_chinese_is_counted_by_sacrebleus_tokenizer_for_chinese(language):
    scores = translation_scores(*CHINESE, language)
    assert "tok:zh|" in scores.bleu_signature
    assert (
        scores.bleu
        == sacrebleu.corpus_bleu(CHINESE[0], [CHINESE[1]], tokenize="zh").score
        > 0
    )
    assert scores.notes == ()


@pytest.mark.parametrize("language", ["ja", "ko", "ja-JP"])
def test_without_mecab_japanese_and_korean_are_counted_by_characters_and_a_note_says_so(
    language, without_mecab
):
    scores = translation_scores(["猫が好き"], ["犬が好き"], language)
    assert "tok:char|" in scores.bleu_signature
    assert "MeCab" in scores.notes[0]


@pytest.mark.skipif(
    not importlib.util.find_spec("ipadic"), reason="MeCab with ipadic is not installed"
)
def test_with_mecab_japanese_is_counted_by_words():
    assert (
        "tok:ja-mecab"
        in translation_scores(["猫が好き"], ["犬が好き"], "ja").bleu_signature
    )


def test_with_its_packages_mecab_is_chosen(monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: object())
    assert metrics._choose_tokenizer("ja") == ("ja-mecab", [])
    assert metrics._choose_tokenizer("ko-KR") == ("ko-mecab", [])


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("th", "char"),
        ("lo", "char"),
        ("km-KH", "char"),
        ("my", "char"),
        ("de", "13a"),
        ("und", "13a"),
        ("", "13a"),
    ],
)
def test_other_languages(language, tokenizer):
    scores = translation_scores(HYPOTHESES, REFERENCES, language)
    assert f"tok:{tokenizer}|" in scores.bleu_signature
    assert scores.notes == ()


def test_the_references_are_known_by_their_hash():
    scores = translation_scores(HYPOTHESES, REFERENCES, "en")
    assert (
        scores.references_sha256
        == hashlib.sha256("\n".join(REFERENCES).encode()).hexdigest()
    )
    assert (
        translation_scores(REFERENCES, HYPOTHESES, "en").references_sha256
        != scores.references_sha256
    )


def test_scoring_opens_no_connection(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with socket.socket() as probe, pytest.raises(AssertionError, match="was opened"):
        probe.connect(("127.0.0.1", 9))
    for language in ("en", "zh", "ja", "ko", "th"):
        translation_scores(HYPOTHESES, REFERENCES, language)


def test_perplexity_is_the_exponential_of_the_mean_loss():
    assert perplexity(10 * math.log(7), 10) == pytest.approx(7)
    assert perplexity(0.0, 3) == 1
    assert perplexity(1e9, 3) == math.inf
    with pytest.raises(DataError, match="at least one target token"):
        perplexity(0.0, 0)


PAIRED = [
    *HYPOTHESES,
    *REFERENCES,
    CHINESE[0][0],
    "",
    " ",
    "a",
    "ab",
    "The  cat sat on\u3000the mat.",
    "cat " * 40,
]


def test_scores_of_pairs_are_sacrebleus_of_sentences():
    chrf, bleu = (pair_scores("en")[name](PAIRED) for name in ("chrf", "bleu"))
    own = sacrebleu.BLEU(effective_order=True)
    for i, text in enumerate(PAIRED):
        for j, reference in enumerate(PAIRED):
            assert chrf[i, j] == pytest.approx(
                sacrebleu.sentence_chrf(text, [reference]).score, abs=1e-9
            )
            assert bleu[i, j] == own.sentence_score(text, [reference]).score
    assert len(np.unique(chrf.round(6))) > 30


def test_pairs_are_compared_by_the_words_of_the_language():
    texts = [CHINESE[0][0], CHINESE[1][0]]
    own = sacrebleu.BLEU(effective_order=True, tokenize="zh")
    assert (
        pair_scores("zh")["bleu"](texts)[0, 1]
        == own.sentence_score(texts[0], texts[1:]).score
    )
