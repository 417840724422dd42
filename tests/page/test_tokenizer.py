"""The tokenizer in JavaScript does what Weft's own does, whatever the text."""

import random
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from hostile_texts import texts
from weft.data.segment import sentence_rules, split_sentences
from weft.errors import UsageError
from weft.inspection.browser import browser_tokenizer
from weft.predict.segments import RowLengths, plan_rows
from weft.predict.text import one_line

KINDS: list[dict[str, Any]] = [
    {"kind": "bpe"},
    {"kind": "bpe", "unicode": "NFKC", "lowercase": True},
    {"kind": "unigram"},
    {"kind": "byte", "unicode": "raw"},
    {"kind": "character"},
    {"kind": "character", "unicode": "NFKC"},
    {"kind": "word"},
    {"kind": "word", "words": "whitespace", "lowercase": True},
    {"kind": "word", "unicode": "raw"},
    {"kind": "bpe", "leading_space": False},
    {"kind": "word", "words": "whitespace", "leading_space": False},
]


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_a_text_has_the_same_ids_and_they_the_same_text(
    scripts: Any, settings: dict[str, Any]
) -> None:
    tokenizer = tiny.tokenizer_of(**settings)
    given = texts(400)
    generator = random.Random(8)
    some = [
        [generator.randrange(tokenizer.vocab_size) for _ in range(9)]
        for _ in range(200)
    ]
    encoded = [tokenizer.encode(text) for text in given]
    found = scripts.evaluate(
        """([data, texts, some]) => {
            const tokenizer = new engine.Tokenizer(data);
            const ids = texts.map((text) => tokenizer.encode(text));
            return {
                ids,
                texts: [...ids, ...some].map((each) => tokenizer.decode(each)),
                labels: [...ids, ...some].map((each) => tokenizer.labels(each)),
                bytes: some.map((each) => each.flatMap((id) => tokenizer.bytes(id))),
            };
        }""",
        [browser_tokenizer(tokenizer), given, some],
    )
    assert found["ids"] == encoded
    everything = [*encoded, *some]
    assert found["texts"] == [tokenizer.decode(ids) for ids in everything]
    assert found["labels"] == [tokenizer.pieces(ids) for ids in everything]
    assert found["bytes"] == [list(tokenizer.spell(ids, begins=False)) for ids in some]


def test_a_step_of_another_package_is_refused() -> None:
    tokenizer = tiny.tokenizer_of(kind="word", words="nltk")
    with pytest.raises(UsageError, match="nltk NLTKWordTokenizer"):
        browser_tokenizer(tokenizer)


RUNNING = [
    "Mr. J. Smith met Dr. U.S. Grant. They left at 3. It rained! Why?",
    "Am 3. Mai war es kalt. 12. Zeile. 1. Erstens.",
    "「はい。」と言った。そうです。次？",
    "One.\nTwo\r\n\r\n  three… four?!  Five” (six.) Seven",
    "   indented.  Wide   gap.    End",
    "no end",
    "who? me?! you? “what?” no",
    "Il dit : « Oui. » Puis « non. »",
    "17 h. Il. é. È. ß. Um 5 p.m. Er. ǅ. Ⅷ. 3 ª. X. - a. - Ja. — iA.",
    "... ... a.b.c. D",
    "\u0085x. Y\u00a0Z! À propos? Ok",
    "",
    "  \n ",
]


CASES = Path(__file__).parent.parent / "data" / "sentences.txt"


@pytest.mark.parametrize("language", ["en", "de", "el", "zh"])
def test_sentences_end_at_the_same_places(scripts: Any, language: str) -> None:
    lines = CASES.read_text("utf-8").replace("‖", "").split("\n")
    given = [*RUNNING, *lines, *texts(200)]
    given += [". ".join(texts(30)[i:]) for i in range(20)]
    found = scripts.evaluate(
        """([rules, texts]) => {
            const sentences = new engine.Sentences(rules);
            return texts.map((text) => [sentences.split(text), engine.oneLine(text)]);
        }""",
        [sentence_rules(language), given],
    )
    whole = [text.encode("utf-16", "surrogatepass") for text in given]
    assert len(whole) == len(found)
    for text, (sentences, line) in zip(given, found, strict=True):
        assert sentences == split_sentences(text, language), repr(text)
        assert line == one_line(text)


@pytest.mark.parametrize("by_sentence", [False, True])
def test_a_text_becomes_the_same_rows(scripts: Any, by_sentence: bool) -> None:
    tokenizer = tiny.tokenizer_of(kind="bpe")
    lengths = RowLengths(14, 9, by_sentence)
    given = [*RUNNING, " ".join(RUNNING), "x " * 40, "A b. C d! " * 9]
    found = scripts.evaluate(
        """([data, rules, lengths, texts]) => {
            const tokenizer = new engine.Tokenizer(data);
            const sentences = new engine.Sentences(rules);
            return texts.map((text) => {
                const plan = engine.planRows(text, tokenizer, lengths, sentences);
                return [plan.rows, plan.cut, plan.texts, engine.joinRows(plan, plan.texts, " ")];
            });
        }""",
        [
            browser_tokenizer(tokenizer),
            sentence_rules("en"),
            {"limit": 14, "usual": 9, "bySentence": by_sentence},
            given,
        ],
    )
    plans = plan_rows(given, tokenizer, lengths, "en")
    for text, (rows, cut, own, joined) in zip(given, found, strict=True):
        plan = plans[text]
        assert rows == [list(row.ids) for row in plan.rows]
        assert (cut, own) == (plan.cut, list(plan.texts))
        assert joined == plan.join(plan.texts, "en")
