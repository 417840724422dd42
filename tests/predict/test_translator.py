"""A translator of fake models whose answer is plain to see, and of a small real one with random
weights.
"""

import hashlib
import itertools
import json
from dataclasses import dataclass, replace
from functools import cache as memo
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import weft
from pushed import of_which
from weft.config import DecodingSection, Seq2SeqSection, SideSection
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer, train_tokenizer
from weft.decoding.sampling import Sampling
from weft.engine.bindings import Engine
from weft.engine.forced import forced_attention_of
from weft.engine.from_model import build_engine, weights_of
from weft.engine.plain import PlainTransformer
from weft.engine.plain_steps import cross_attention_of
from weft.engine.torch_steps import steps_of
from weft.errors import DivergedError, OutOfMemoryError, UsageError
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.prediction import Alternative, Prediction, repeats
from weft.predict.rows import Member
from weft.predict.segments import RowLengths
from weft.predict.settings import DecodingSettings
from weft.predict.translator import Translator

ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.!?\n猫好。"
TEXTS = [
    "a",
    "the cat",
    "Abc. Defg. Hijk lmn.",
    "zebra",
    "",
    "q r s t",
    "A cat. A dog.",
    "猫好。",
    "the cat",
    "x" * 50,
]


@memo
def letters() -> Tokenizer:
    return train_tokenizer(
        [ALPHABET] * 3, SideSection(kind="character", vocab_size=512)
    )


@dataclass
class Rows:
    """A cache of source rows, without padding, and the target ids fed so far."""

    rows: list[tuple[tuple[int, ...], tuple[int, ...]]]

    def select(self, rows: Tensor) -> "Rows":
        return Rows([self.rows[i] for i in rows.tolist()])


class FakeModel(nn.Module):
    """Says what comes next by `next_logits(src, prefix)`; its states are the logits."""

    def __init__(self, max_len: int = 200) -> None:
        super().__init__()
        self.max_len = max_len
        self.batches: list[list[int]] = []

    def prefill(self, src: Tensor) -> Rows:
        assert not self.training
        assert torch.is_inference_mode_enabled()
        rows = [tuple(i for i in row if i != PAD_ID) for row in src.tolist()]
        assert all(row[-1] == EOS_ID for row in rows)
        self.batches.append([len(row) for row in rows])
        return Rows([(row, ()) for row in rows])

    def decode(self, ids: Tensor, cache: Rows) -> tuple[Tensor, Rows]:
        cache = Rows(
            [
                (src, (*seen, i))
                for (src, seen), (i,) in zip(cache.rows, ids.tolist(), strict=True)
            ]
        )
        assert max(len(seen) for _, seen in cache.rows) < self.max_len
        return torch.stack(
            [self.next_logits(src, seen[1:]) for src, seen in cache.rows]
        )[:, None], cache

    def output(self, states: Tensor) -> Tensor:
        return states

    def next_logits(self, src: tuple[int, ...], prefix: tuple[int, ...]) -> Tensor:
        raise NotImplementedError


class Echo(FakeModel):
    """Says the source again, surely enough that every search finds it."""

    def next_logits(self, src, prefix):
        logits = torch.zeros(letters().vocab_size)
        logits[src[min(len(prefix), len(src) - 1)]] = 12.0
        return logits


class Endless(FakeModel):
    """Says the first source token for ever; it knows no end."""

    def next_logits(self, src, prefix):
        logits = torch.zeros(letters().vocab_size)
        logits[src[0]] = 12.0
        logits[EOS_ID] = -torch.inf
        return logits


class Whim(FakeModel):
    """Random, but always the same for the same source and prefix."""

    def next_logits(self, src, prefix):
        seed = int.from_bytes(hashlib.sha256(repr((src, prefix)).encode()).digest()[:4])
        logits = 2 * torch.randn(
            letters().vocab_size, generator=torch.Generator().manual_seed(seed)
        )
        logits[EOS_ID] += 4
        return logits


class Speller(Whim):
    """As Whim, in whole letters: its text spells its ids."""

    def next_logits(self, src, prefix):
        said = [EOS_ID, *letters().encode(ALPHABET.replace(" ", "").replace("\n", ""))]
        logits = super().next_logits(src, prefix)
        logits[EOS_ID] -= 4
        return torch.full_like(logits, -torch.inf).index_put(
            (torch.tensor(said),), logits[said]
        )


def translator(
    model: FakeModel, *, max_src_len=40, usual_src_len=None, tgt_lang="en", utilities=None, cross_attention=None,
    source_shares=None, by_sentence=False, least_ratio=0.0, src_lang="en", **decoding
):  # fmt: skip
    tokenizer = letters()
    return Translator(
        Member(model.max_len, steps_of(model), None, cross_attention, source_shares), tokenizer, tokenizer,
        decoding=DecodingSection(**decoding), languages=(src_lang, tgt_lang),
        lengths=RowLengths(max_src_len, usual_src_len or max_src_len, by_sentence), utilities=utilities,
        least_ratio=least_ratio,
    )  # fmt: skip


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_one_prediction_for_each_text_in_its_order(beam_size):
    texts = [
        "a cat",
        "b",
        "The longest of them all.",
        "",
        "cat a",
        "b",
        "  \t ",
        "c d e",
    ]
    found = translator(Echo()).translate(texts, beam_size=beam_size)
    assert [p.text for p in found] == [text.strip() for text in texts]
    assert all(not p.truncated for p in found)
    assert (
        translator(Echo()).translate((text for text in texts), beam_size=beam_size)
        == found
    )


def test_one_text_needs_no_list():
    (found,) = translator(Echo()).translate("a cat")
    assert found.text == "a cat"
    assert found.segments == 1
    assert len(found.token_log_probs) == len("a cat") + 1
    assert found.score == pytest.approx(sum(found.token_log_probs) / (11 / 6))
    assert found.n_best[0].text == "a cat"
    assert len(found.n_best) == 1


@pytest.mark.parametrize("text", ["", " ", "\n", "\t \r\n", "\u3000"])
def test_a_text_with_nothing_in_it_gives_nothing_and_the_model_is_not_asked(text):
    model = Echo()
    assert translator(model).translate([text]) == [Prediction("", None, 0, [], [])]
    assert model.batches == []


def test_no_text_gives_no_prediction():
    assert translator(Echo()).translate([]) == []
    assert list(translator(Echo()).translate_stream([])) == []


@pytest.mark.parametrize(
    "text",
    [
        "emoji 👩‍👩‍👧 here",
        "lone \ud800 surrogate",
        "nul \x00 byte",
        "שלום abc",
        "e" + "\u0301" * 20,
        "</s><pad>",
    ],
)
def test_odd_text_comes_through(text):
    (found,) = translator(Echo(), max_src_len=150).translate([text])
    assert found.text == letters().normalize(text)


def test_odd_long_text_is_cut_and_says_so():
    for text in ("e" + "\u0301" * 10_000, "x" * 100_000):
        (found,) = translator(Echo()).translate([text], beam_size=1)
        assert found.truncated
        assert 0 < len(found.text) < 40


def test_line_breaks_become_spaces_on_both_sides():
    assert translator(Echo()).translate(["a \r\n b\nc\n"])[0].text == "a b c"

    class Breaks(Echo):
        def next_logits(self, src, prefix):
            return super().next_logits((*letters().encode("a\n\nb\n"), EOS_ID), prefix)

    assert translator(Breaks()).translate(["x"])[0].text == "a b"


def test_n_best_are_alternatives_by_score_the_translation_first():
    (found,) = translator(Whim()).translate(["a cat"], beam_size=6, n_best=4)
    assert len(found.n_best) == 4
    assert found.n_best[0] == Alternative(found.text, found.score, False)
    scores = [alternative.score for alternative in found.n_best]
    assert scores == sorted(scores, reverse=True)
    assert len({alternative.text for alternative in found.n_best}) == 4


def test_a_prediction_becomes_plain_json():
    (found,) = translator(Echo()).translate(["a"])
    line = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert set(line) == {
        "text", "score", "truncated", "segments", "n_best", "tokens", "token_log_probs", "repetition",
        "short", "empty", "source_cut", "output_limit", "unsure", "unknown_words",
    }  # fmt: skip
    assert line["tokens"] == ["a", "<eos>"]
    assert line["n_best"] == [{"text": "a", "score": found.score, "truncated": False}]


# Long texts
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "between"),
    [("en", " "), ("zh", ""), ("ZH-hant", ""), ("ja", ""), ("ko", " ")],
)
def test_a_long_text_is_translated_in_whole_sentences(language, between):
    sentences = [
        "The cat sleeps.",
        "A dog barks!",
        "Who sees it?",
        "Nobody does.",
        "The end.",
    ]
    model = Echo()
    (found,) = translator(model, max_src_len=32, tgt_lang=language).translate(
        [" ".join(sentences)]
    )
    assert found.text == between.join(
        [" ".join(sentences[:2]), " ".join(sentences[2:4]), sentences[4]]
    )
    assert (found.segments, found.truncated) == (3, False)
    assert sorted(itertools.chain(*model.batches)) == [9, 26, 29]
    assert len(found.token_log_probs) == 9 + 26 + 29


@pytest.mark.parametrize(
    ("text", "expected", "segments"),
    [
        ("Two dogs. A cat.", "Two dogs. A cat.", 2),
        ("  Two dogs.   A cat!\tWho? ", "  Two dogs.   A cat!\tWho?", 3),
        ("A cat.\n\nA dog.", "A cat. A dog.", 2),
        ("A cat.\na dog.", "A cat. a dog.", 2),
        ("A cat\r\na dog", "A cat a dog", 2),
        ("Only Mr.\nSmith", "Only Mr. Smith", 2),
        ("\n A cat.", "A cat.", 1),
        ("\tA cat", "\tA cat", 1),
        (
            "Mr. Smith has 3.5 dogs, z. B. Nr. 5.",
            "Mr. Smith has 3.5 dogs, z. B. Nr. 5.",
            1,
        ),
        ("猫好。猫好。", "猫好。 猫好。", 2),
        ("a cat. a dog.", "a cat. a dog.", 1),
        ("   ", "", 0),
    ],
)
def test_a_model_of_single_sentences_gets_one_at_a_time_and_white_space_stays(
    text, expected, segments
):
    here = translator(Echo(), by_sentence=True)
    (found,) = here.translate(text)
    assert (found.text, found.segments, found.truncated) == (expected, segments, False)
    assert "".join(here.stream(text)) == expected


@pytest.mark.parametrize(("src_lang", "segments"), [("en", 2), ("de", 1), ("und", 2)])
def test_a_number_with_a_dot_is_an_ordinal_in_some_source_languages(src_lang, segments):
    """Also where a text is divided for its length alone."""
    single = translator(Echo(), by_sentence=True, src_lang=src_lang)
    assert single.translate("She is 12. He left.")[0].segments == segments
    short = translator(Echo(), max_src_len=14, src_lang=src_lang)
    (found,) = short.translate("She is 12. He left.")
    assert (found.segments, found.source_cut) == (segments, segments == 1)


def test_between_sentences_of_a_language_without_spaces_only_wide_white_space_stays():
    here = translator(Echo(), by_sentence=True, tgt_lang="zh")
    assert here.translate("A cat. A dog.  A bird.")[0].text == "A cat.A dog.  A bird."


def test_sentences_keep_alternatives_prefix_and_score():
    here = translator(Whim(), by_sentence=True)
    found = here.translate("Abc. Defg.", n_best=3, beam_size=3)[0]
    alone = [
        here.translate(text, n_best=3, beam_size=3)[0] for text in ("Abc.", "Defg.")
    ]
    assert found.score == pytest.approx((alone[0].score + alone[1].score) / 2)
    assert [a.text for a in found.n_best] == [
        " ".join(filter(None, texts))
        for texts in zip(*([a.text for a in one.n_best] for one in alone), strict=True)
    ]
    assert here.translate("Abc. Defg.", prefix="Xy")[0].text.startswith("Xy")


@pytest.mark.parametrize(
    ("letters_said", "expected"), [(4, True), (7, False), (10, False)]
)
def test_a_translation_far_shorter_than_any_in_training_is_told(letters_said, expected):
    """Of ten letters with a least ratio of 0.9, fewer than 6.3 are suspicious."""

    class Brief(Echo):
        def next_logits(self, src, prefix):
            return super().next_logits((*src[:letters_said], EOS_ID), prefix)

    (found,) = translator(Brief(), least_ratio=0.9).translate("abcdefghij")
    assert (len(found.text), found.short) == (letters_said, expected)
    assert not translator(Brief()).translate("abcdefghij")[0].short
    assert not translator(Brief(), least_ratio=0.9).translate("abcdefghi")[0].short


def test_a_line_for_each_sentence_brings_back_what_a_short_translation_lacks():
    """It is the remedy that weft translate names."""

    class First(Echo):
        """Ends after the first sentence."""

        def next_logits(self, src, prefix):
            stop = letters().encode(".")[-1]
            end = src.index(stop) + 1
            return super().next_logits((*src[:end], EOS_ID), prefix)

    here = translator(First(), by_sentence=True, least_ratio=0.9)
    texts = ["A cat.A dog.A bird.", "A cat.\nA dog.\nA bird."]
    together, apart = here.translate(texts)
    assert (together.text, together.short) == ("A cat.", True)
    assert (apart.text, apart.short) == ("A cat. A dog. A bird.", False)


def test_a_sentence_that_comes_back_empty_is_told_among_others():
    class Silent(Echo):
        def next_logits(self, src, prefix):
            is_second = src[0] == letters().encode("Defg.")[0]
            return super().next_logits((EOS_ID,) if is_second else src, prefix)

    here = translator(Silent(), by_sentence=True)
    found, whole, one = here.translate(["Abc. Defg.", "Abc. Hij.", "Defg."])
    assert (found.text, found.segments, found.empty) == ("Abc.", 2, True)
    assert (whole.text, whole.empty) == ("Abc. Hij.", False)
    assert (one.text, one.empty) == ("", True)
    assert not here.translate("  ")[0].empty


def test_a_text_that_just_fits_is_one_segment_and_one_more_letter_makes_two():
    assert translator(Echo(), max_src_len=11).translate(["Abc. Defg."])[0].segments == 1
    found = translator(Echo(), max_src_len=10).translate(["Abc. Defg."])[0]
    assert (found.text, found.segments, found.truncated) == ("Abc. Defg.", 2, False)


def test_a_text_of_more_than_the_usual_length_is_read_in_rows_of_it():
    """One sentence alone may be longer, up to the limit, and is one row like any text."""
    model = Echo()
    here = translator(model, usual_src_len=11)
    found = here.translate(
        [
            "Abc. Defg.",
            "Abc. Defg. Hij.",
            "A very long sentence. No.",
            "Abcdefghijklmnopq",
        ]
    )
    assert [p.text for p in found] == [
        "Abc. Defg.",
        "Abc. Defg. Hij.",
        "A very long sentence. No.",
        "Abcdefghijklmnopq",
    ]
    assert [p.segments for p in found] == [1, 2, 2, 1]
    assert not any(p.truncated for p in found)
    assert sorted(itertools.chain(*model.batches)) == [4, 5, 11, 11, 18, 22]


def test_a_sentence_over_the_limit_is_cut_there_and_says_so():
    (found,) = translator(Echo(), max_src_len=10).translate(
        ["Yes. " + "X" * 30 + ". No."]
    )
    assert found.text == "Yes. XXXXXXXXX No."
    assert (found.segments, found.truncated) == (3, True)


def test_sentences_that_need_more_ids_together_than_apart_still_fit():
    class Stretched:
        """One text at a time, every letter is doubled."""

        def encode(self, text: str) -> list[int]:
            return [i for i in letters().encode(text) for _ in range(2)]

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return letters().encode_batch(texts)

    here = translator(Echo(), max_src_len=12)
    here.src_tokenizer = Stretched()
    (found,) = here.translate(["Abc. Def. Ghi. Jkl."])
    assert (found.text, found.segments, found.truncated) == (
        "Abc. Def. Ghi. Jkl.",
        2,
        False,
    )


def test_a_sentence_without_a_translation_leaves_no_gap():
    class Sparing(Echo):
        def next_logits(self, src, prefix):
            silent = (*letters().encode("Defg."), EOS_ID)
            return super().next_logits((EOS_ID,) if src == silent else src, prefix)

    (found,) = translator(Sparing(), max_src_len=8).translate(["Abc. Defg. Hij."])
    assert (found.text, found.segments, found.truncated) == ("Abc. Hij.", 3, False)


def test_the_score_of_segments_is_their_mean():
    long = translator(Whim(), max_src_len=8).translate(["Abc. Defg."])[0]
    alone = translator(Whim(), max_src_len=8).translate(["Abc.", "Defg."])
    assert long.score == pytest.approx((alone[0].score + alone[1].score) / 2)
    assert long.text == " ".join(p.text for p in alone if p.text)


def test_no_more_source_positions_are_used_than_the_model_has():
    model = Echo(max_len=12)
    translator(model, max_src_len=40).translate(["Abc. Defg. Hij. Klmnopqrstuvwxyz."])
    assert max(itertools.chain(*model.batches)) <= 12


# Limits
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_endless_output_stops_at_a_limit_tied_to_the_input_and_says_so(beam_size):
    found = translator(Endless(), max_len_ratio=1.5, max_len_extra=3).translate(
        ["ab", "abcdefg"], beam_size=beam_size
    )
    # ceil(1.5 × 3) + 3 and 1.5 × 8 + 3; the end counts
    assert [p.text for p in found] == ["a" * 8, "a" * 15]
    assert all(p.truncated and p.output_cut and not p.source_cut for p in found)
    assert {p.output_limit for p in found} == {"decoding.max_len_ratio"}


def test_the_output_never_outgrows_the_model():
    (found,) = translator(Endless(max_len=16)).translate(["abcdefghijklm"])
    assert (len(found.text), found.truncated) == (15, True)
    assert found.output_limit == "model.max_len"


def test_the_limit_that_allows_least_is_named():
    # 3 source ids: 3 new tokens by the recipe, 2 more with the prefix, 4 by the positions
    def limit_of(max_len, text="ab", **settings):
        here = translator(Endless(max_len), max_len_ratio=1.0, max_len_extra=0)
        (found,) = here.translate([text], **settings)
        return len(found.token_log_probs), found.output_limit

    assert limit_of(20) == (3, "decoding.max_len_ratio")
    assert limit_of(20, prefix="cc") == (5, "decoding.max_len_ratio")
    assert limit_of(5) == (3, "decoding.max_len_ratio")
    assert limit_of(3) == (2, "model.max_len")
    assert limit_of(5, prefix="cc") == (4, "model.max_len")
    assert limit_of(20, "a", exhaustive=1) == (1, "exhaustive")
    assert limit_of(20, "a", exhaustive=4) == (2, "decoding.max_len_ratio")


def test_of_limits_that_allow_the_same_the_one_that_is_harder_to_change_is_named():
    # raising the other alone leaves the translation as it is: its remedy would do nothing
    def limit_of(max_len, ratio=1.0, exhaustive=None):
        here = translator(Endless(max_len), max_len_ratio=ratio, max_len_extra=0)
        (found,) = here.translate(["a"], exhaustive=exhaustive)  # 2 source ids
        return len(found.token_log_probs), found.output_limit

    assert limit_of(3) == limit_of(3, ratio=9.0) == (2, "model.max_len")
    assert limit_of(3, 9.0, 2) == limit_of(3, 9.0, 9) == (2, "model.max_len")
    assert limit_of(9, 1.0, 2) == limit_of(9, 1.0, 9) == (2, "decoding.max_len_ratio")
    assert limit_of(3, 1.0, 2) == limit_of(3, 9.0, 9) == (2, "model.max_len")


def test_source_and_translation_are_cut_each_for_itself():
    here = translator(Echo(), max_src_len=10, max_len_ratio=0.5, max_len_extra=0)
    (found,) = here.translate(["abcdefghijklmnop"], beam_size=1)
    assert (found.source_cut, found.output_limit) == (True, "decoding.max_len_ratio")
    (whole,) = translator(Echo(), max_src_len=10).translate(["abcdefghijklmnop"])
    assert (whole.truncated, whole.source_cut, whole.output_cut) == (True, True, False)


class Hesitant(FakeModel):
    """Says "a" likelier than the end, twice; then it ends."""

    def next_logits(self, src, prefix):
        (a,) = letters().encode("a")
        logits = torch.full((letters().vocab_size,), -torch.inf)
        logits[EOS_ID] = 3.0 if len(prefix) > 1 else -3.0
        logits[a] = 0.0
        return logits


def test_what_ended_stands_before_what_was_cut_whatever_the_scores():
    """Under a tight limit a poor translation that ends hides a better one, and is not marked."""
    tight = translator(Hesitant(), max_len_ratio=1.0, max_len_extra=0)
    (found,) = tight.translate(["a"], beam_size=3, n_best=3)
    assert [(one.text, one.truncated) for one in found.n_best] == [
        ("a", False),
        ("", False),
        ("aa", True),
    ]
    assert found.score < found.n_best[-1].score
    assert not found.truncated
    (free,) = translator(Hesitant()).translate(["a"], beam_size=2)
    assert (free.text, free.truncated) == ("aa", False)
    # a stream stops without a mark
    assert "".join(tight.stream("a")) == "aa"


@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 0},
        {"n_best": 0},
        {"beam_size": 2, "n_best": 3},
        {"batch_tokens": 0},
        {"length_penalty": float("nan")},
    ],
)
def test_impossible_settings_are_refused_before_any_text_is_read(settings):
    def unreadable():
        raise AssertionError("a text was read")
        yield

    for call in (translator(Echo()).translate, translator(Echo()).translate_stream):
        with pytest.raises(UsageError, match="it must be"):
            call(unreadable(), **settings)
    with pytest.raises(UsageError, match="chunk = 0"):
        translator(Echo()).translate_stream(["a"], chunk=0)


def test_a_model_whose_output_is_not_a_number_is_an_error():
    class Broken(Echo):
        def next_logits(self, src, prefix):
            return super().next_logits(src, prefix) * float("nan")

    with pytest.raises(DivergedError):
        translator(Broken()).translate(["a"])


class Cramped(Echo):
    """Has memory for so many rows only."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def decode(self, ids, cache):
        if len(ids) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return super().decode(ids, cache)


def test_where_memory_does_not_suffice_fewer_rows_are_searched_at_a_time():
    texts = [ALPHABET[i : i + 3] for i in range(20)]
    model = Cramped(8)
    assert [p.text for p in translator(model).translate(texts, beam_size=2)] == [
        text.strip() for text in texts
    ]
    assert len(model.batches) > 1
    with pytest.raises(OutOfMemoryError, match="4 source tokens with beam_size = 2"):
        translator(Cramped(0)).translate(["abc"], beam_size=2)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([5] * 6, False),
        ([9] + [5] * 7, True),
        ([1, 2] * 3, False),
        ([7, *[1, 2] * 4], True),
        ([1, 2, 3] * 3, True),
        ([1, 2, 3] * 2 + [1, 2], False),
        (list(range(16)) * 3, True),
        (list(range(17)) * 3, False),
        ([], False),
    ],
)
def test_what_says_the_same_again_and_again(ids, expected):
    assert repeats(ids) is expected


def test_every_translation_begins_with_the_prefix():
    here = translator(Whim(), max_len_extra=4)
    for text in ("abc", "Abc. Defg. Hijk lmn. " * 4):
        (found,) = here.translate([text], prefix="Xy", n_best=2, beam_size=3)
        assert all(alternative.text.startswith("Xy") for alternative in found.n_best)
        assert found.text.count("Xy") == 1


@pytest.mark.parametrize(
    "settings",
    [{"no_repeat_ngrams": -1}, {"prefix": "a", "exhaustive": 2}, {"prefix": "a" * 500}],
    ids=str,
)
def test_impossible_wishes_are_refused(settings):
    with pytest.raises(UsageError):
        translator(Echo()).translate(["abc"], **settings)


# Samples
# --------------------------------------------------------------------------------------


def test_samples_are_drawn_the_same_whatever_stands_beside_them():
    here, settings = (
        translator(Whim(), max_src_len=12, max_len_extra=2),
        DecodingSettings(temperature=1.0, n_best=3),
    )
    together = here.translate(TEXTS, settings)
    for text, found in list(zip(TEXTS, together, strict=True))[1:5]:
        assert here.translate([text], settings) == [found]
        (fewer,) = here.translate([text], settings, n_best=1)
        assert (fewer.text, fewer.n_best) == (found.text, found.n_best[:1])
        assert len(found.n_best) == (3 if text else 0)
    assert here.translate(TEXTS, settings, batch_tokens=1) == together
    assert here.translate(TEXTS, settings, seed=1) == together
    assert here.translate(TEXTS, settings, seed=2) != together
    assert [p.text for p in here.translate(TEXTS, temperature=0)] == [
        p.text for p in here.translate(TEXTS, beam_size=1)
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature = -1.0: it must be"),
        ({"temperature": 1, "top_p": 0.0}, "top_p = 0.0: it must be"),
        ({"temperature": 1, "beam_size": 3}, "beam_size is for a search"),
        ({"temperature": 1, "exhaustive": 3}, "exhaustive is for a search"),
        ({"top_k": 3}, "top_k is for samples"),
        ({"seed": 3}, "seed is for samples"),
        ({"temperature": 1, "seed": 2**63}, "below 2"),
        (
            {"temperature": 1, "seed": 1.5},
            "seed = 1.5: it must be a whole number, at least 0",
        ),
        ({"beam_size": 2.5}, "beam_size = 2.5: it must be a whole number, at least 1"),
        ({"n_best": "3"}, "n_best = 3: it must be a whole number, at least 1"),
        (
            {"no_repeat_ngrams": -1},
            "no_repeat_ngrams = -1: it must be a whole number, at least 0",
        ),
        (
            {"temperature": 1, "top_k": 0},
            "top_k = 0: it must be a whole number, at least 1",
        ),
        ({"mbr": 1}, "mbr = 1: it must be a whole number, at least 2"),
        ({"mbr": 1025}, "mbr = 1025: it must be from 2 to 1,024"),
        ({"mbr": 4, "beam_size": 2}, "beam_size is for a search, and mbr draws"),
        ({"mbr": 4, "temperature": 0}, "with temperature = 0 all are alike"),
        ({"temperature": 1, "length_penalty": 1.0}, "length_penalty is for a search"),
        ({"length_penalty": 50.0}, "length_penalty = 50.0: it must be from -10 to 10"),
        (
            {"coverage_penalty": float("nan")},
            "coverage_penalty = nan: it must be from 0 to 1,000",
        ),
        ({"mbr": 4, "n_best": 5}, "n_best = 5: it must be from 1 to mbr"),
        ({"utility": "chrf"}, "utility is what mbr compares"),
        (
            {"mbr": 4, "utility": "meteor"},
            "utility = meteor: it must be one of letters",
        ),
    ],
    ids=str,
)
def test_a_search_and_samples_are_not_asked_for_together(settings, message):
    with pytest.raises(UsageError, match=message):
        translator(
            Echo(), utilities={"letters": lambda texts: np.zeros((len(texts), 1))}
        ).translate(["abc"], **settings)


def test_what_is_drawn_for_minimum_bayes_risk_keeps_its_least_probability_at_another_temperature():
    def drawn(**settings: object) -> Sampling | None:
        return DecodingSettings(**settings).sampling

    assert drawn(mbr=4) == Sampling(min_p=0.02)
    assert drawn(mbr=4, temperature=0.5) == Sampling(0.5, min_p=0.02)
    assert drawn(mbr=4, top_k=3) == Sampling(top_k=3)
    assert drawn(mbr=4, min_p=0.0) == Sampling(min_p=0.0)
    assert drawn(temperature=0.5) == Sampling(0.5)
    assert drawn() is None


def test_settings_of_another_kind_are_refused():
    with pytest.raises(
        UsageError,
        match="settings are DecodingSettings, not a dict; options are given by name",
    ):
        translator(Echo()).translate("a", {"beam_size": 2})


def test_minimum_bayes_risk_gives_the_samples_most_like_the_others():
    """By a utility that can be counted: letters in common."""

    def in_common(texts):
        return np.array([[float(len(set(a) & set(b))) for b in texts] for a in texts])

    here = translator(
        Whim(), max_src_len=12, max_len_extra=2, utilities={"chrf": in_common}
    )
    for text in TEXTS[1:5]:
        (found,) = here.translate([text], mbr=6, n_best=4, top_k=30, seed=3)
        (drawn,) = here.translate([text], temperature=1, n_best=6, top_k=30, seed=3)
        if found.segments == 1:
            texts = [a.text for a in drawn.n_best]
            gains = in_common(texts)
            means = {t: (gains[i].sum() - gains[i, i]) / 5 for i, t in enumerate(texts)}
            assert found.score == max(means.values())
            assert [a.score for a in found.n_best] == sorted(
                means.values(), reverse=True
            )[:4]
            assert all(means[a.text] == a.score for a in found.n_best)


# Ensembles
# --------------------------------------------------------------------------------------


class OtherSpeller(Speller):
    def next_logits(self, src, prefix):
        return super().next_logits(src, (*prefix, 0))


def test_an_ensemble_of_a_model_with_itself_translates_as_it_does_alone():
    settings = DecodingSettings(beam_size=3, n_best=3)
    alone = translator(Whim(), max_src_len=12, max_len_extra=2)
    together = alone.ensemble(
        translator(Whim(), max_src_len=30, max_len_extra=2), alone
    )
    assert together.translate(TEXTS, settings) == alone.translate(TEXTS, settings)
    assert together.translate(TEXTS, temperature=1) == alone.translate(
        TEXTS, temperature=1
    )


@pytest.mark.parametrize("beam_size", of_which([1, 4], 4))
def test_an_ensembles_scores_are_those_of_the_mean_probabilities(beam_size):
    one, other = (
        translator(kind(), max_len_extra=2) for kind in (Speller, OtherSpeller)
    )
    for together in (one.ensemble(other), one.ensemble(other, one).ensemble(other)):
        lens = []
        for text, found in zip(
            TEXTS[:-1], together.translate(TEXTS[:-1], beam_size=beam_size), strict=True
        ):
            src, ids = (
                (*letters().encode(text), EOS_ID),
                [*letters().encode(found.text), EOS_ID],
            )
            expected = []
            for t, token in enumerate(ids[: len(found.token_log_probs)]):
                models = [
                    model.next_logits(src, (*ids[:t],)).softmax(-1)[token]
                    for model in (Speller(), OtherSpeller())
                ]
                expected.append(float(torch.stack(models).mean().log()))
            if found.segments == 1:
                lens.append(len(expected))
                assert found.token_log_probs == pytest.approx(expected, abs=1e-5)
        assert max(lens) > 3
    assert [p.text for p in one.translate(TEXTS)] != [
        p.text for p in together.translate(TEXTS)
    ]


def test_models_that_do_not_go_together_are_refused_with_what_differs():
    one = translator(Whim())
    with pytest.raises(
        UsageError,
        match="model 3 of the ensemble: it translates en to de, not en to en",
    ):
        one.ensemble(one, translator(Whim(), tgt_lang="de"))
    stranger = train_tokenizer(
        ["abc"] * 3, SideSection(kind="character", vocab_size=512)
    )
    for name, side in (("src_tokenizer", "source"), ("tgt_tokenizer", "target")):
        other = translator(Whim())
        setattr(other, name, stranger)
        with pytest.raises(
            UsageError,
            match=f"model 2 of the ensemble: its {side} tokenizer is another",
        ):
            one.ensemble(other)
    with pytest.raises(UsageError, match="exhaustive is for one model"):
        one.ensemble(one).translate(["a"], exhaustive=1)


# Attention
# --------------------------------------------------------------------------------------


def backwards(src, tgt_in):
    """Each target token looks at the source from its end; half as much at the first token."""
    attention = np.zeros((len(src), tgt_in.shape[1], src.shape[1]), np.float32)
    for b, length in enumerate((src != PAD_ID).sum(1).tolist()):
        for t in range(tgt_in.shape[1]):
            attention[b, t, (length - 1 - t) % length] += 2 / 3
            attention[b, t, 0] += 1 / 3
    return attention


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_alignments_are_those_of_the_translation_over_all_segments(batch_tokens):
    here = translator(Echo(), max_src_len=10, cross_attention=backwards)
    texts = ["a cat", "", "Yes. Defghijk. No.", "a cat"]
    found = here.translate(texts, alignments=True, batch_tokens=batch_tokens)
    plain = here.translate(texts)
    assert [replace(p, alignments=None, words=None) for p in found] == plain
    assert "alignments" not in plain[0].to_json()
    pairs = [(link.target_token, link.source_token) for link in found[0].alignments]
    # nothing comes from the end, to which the first token looks most, but at the source's first
    assert pairs == [
        ("a", "a"),
        ("▁", "t"),
        ("c", "a"),
        ("a", "c"),
        ("t", "▁"),
        ("<eos>", "a"),
    ]
    assert [(link.target, link.source) for link in found[0].alignments] == [
        (0, 0),
        *((t, 5 - t) for t in range(1, 6)),
    ]
    assert found[1].alignments == []
    assert found[1].words == []
    assert found[2].segments == 3
    targets = [link.target for link in found[2].alignments]
    sources = [link.source for link in found[2].alignments]
    assert targets == list(range(5 + 10 + 4))
    assert sources == [0, *range(3, -1, -1), 5, *range(13, 4, -1), 15, 17, 16, 15]
    assert [link.target_token for link in found[2].alignments] == found[2].tokens
    assert found[3] == found[0]
    assert json.loads(json.dumps(found[0].to_json()))["alignments"][0] == {
        "target": 0, "source": 0, "target_token": "a", "source_token": "a",
    }  # fmt: skip


def test_words_come_with_alignments_and_stand_in_the_users_text():
    """Of three segments, read backwards: a word comes from those at the same distance from the end
    of its segment.
    """
    here = translator(Echo(), max_src_len=10, cross_attention=backwards)
    text = "\n Yes.   Defghijk.\n猫好。 "
    (found,) = here.translate(text, alignments=True)
    assert found.segments == 3
    assert found.text == "Yes.   Defghijk. 猫好。"
    words = [(word.text, word.start, word.end) for word in found.words]
    assert words == [
        ("Yes", 0, 3),
        (".", 3, 4),
        ("Defghijk", 7, 15),
        (".", 15, 16),
        ("猫", 17, 18),
        ("好", 18, 19),
        ("。", 19, 20),
    ]
    sources = [[(s.number, s.start, s.end) for s in w.sources] for w in found.words]
    # the first token looks at eos, which is no word, and then at the first letter; a stop looks
    # at the second letter of its sentence
    assert sources == [
        [(0, 2, 5)],
        [(0, 2, 5)],
        [(2, 9, 17)],
        [(2, 9, 17)],
        [(4, 19, 20)],
        [(6, 21, 22)],
        [(5, 20, 21)],
    ]
    ends = [4, 4 + 1 + 9, 4 + 1 + 9 + 1 + 3]
    all_log_probs = sum(found.token_log_probs)
    of_ends = sum(found.token_log_probs[end] for end in ends)
    of_words = sum(word.log_prob for word in found.words)
    assert of_words == pytest.approx(all_log_probs - of_ends)
    (value,) = [w for w in found.to_json()["words"] if w["text"] == "好"]
    assert value["sources"] == [{"number": 6, "text": "。", "start": 21, "end": 22}]
    assert "words" not in here.translate(text)[0].to_json()


def test_a_coverage_penalty_ranks_the_whole_beam_anew():
    """By hand, from the scores without it and the attention of each; the more of it, the longer
    they look.
    """
    here = translator(
        Speller(), max_len_extra=100, cross_attention=backwards
    )  # room to end in
    plain, text = here.translate("the cat", beam_size=6, n_best=6)[0], "the cat"
    src = np.array([[*letters().encode(text), EOS_ID]])
    for beta in (0.1, 5.0):
        (found,) = here.translate(text, beam_size=6, n_best=3, coverage_penalty=beta)
        expected = {}
        for other in plain.n_best:
            fed = np.zeros((1, len(letters().encode(other.text)) + 1), np.int64)
            in_all = backwards(src, fed)[0].sum(0)
            limited = np.clip(in_all, np.finfo(np.float32).tiny, 1)
            passed_over = float(np.log(limited.astype(np.float64)).sum())
            expected[other.text] = other.score + beta * passed_over
        best = sorted(expected, key=lambda other: -expected[other])[:3]
        assert [other.text for other in found.n_best] == best
        assert [other.score for other in found.n_best] == pytest.approx(
            [expected[other] for other in best], abs=1e-3
        )
    assert found.text != plain.text
    assert here.translate(text, beam_size=6, n_best=6, coverage_penalty=0.0) == [plain]


def test_attention_is_needed_for_what_is_read_from_it():
    for settings in ({"alignments": True}, {"coverage_penalty": 0.2}):
        with pytest.raises(UsageError, match="need the attention of a model"):
            translator(Echo()).translate("a", **settings)
    for settings in ({"temperature": 1}, {"mbr": 4}, {"exhaustive": 3}):
        with pytest.raises(
            UsageError, match="coverage_penalty ranks what a beam finds"
        ):
            translator(Echo(), cross_attention=backwards).translate(
                "a", coverage_penalty=0.2, **settings
            )
    with pytest.raises(UsageError, match="coverage_penalty = nan: it must be"):
        translator(Echo(), cross_attention=backwards).translate(
            "a", coverage_penalty=float("nan")
        )


def test_only_translators_make_an_ensemble():
    with pytest.raises(
        UsageError, match="model 3 of the ensemble is a list, not a Translator"
    ):
        translator(Echo()).ensemble(translator(Echo()), [translator(Echo())])


def test_white_space_at_the_ends_of_a_prefix_is_left_out():
    here = translator(Speller(), max_src_len=12, max_len_extra=2)
    assert here.translate(TEXTS, prefix=" Ab \n") == here.translate(TEXTS, prefix="Ab")
    assert here.translate(TEXTS, prefix=" ") == here.translate(TEXTS)


def test_attention_that_does_not_fit_into_memory_is_found_for_half_of_the_rows_at_a_time():
    sizes: list[int] = []

    def small(src, tgt_in):
        sizes.append(len(src))
        if len(src) > 2:
            raise MemoryError
        return backwards(src, tgt_in)

    texts = ["a", "b", "c", "d", "e"]
    whole = translator(Echo(), cross_attention=backwards).translate(
        texts, alignments=True
    )
    assert (
        translator(Echo(), cross_attention=small).translate(texts, alignments=True)
        == whole
    )
    assert sorted(sizes) == [1, 2, 2, 3, 5]


def test_an_ensemble_looks_where_its_models_look_on_average():
    def forwards(src, tgt_in):
        attention = torch.zeros(len(src), tgt_in.shape[1], src.shape[1])
        attention[:, :, 0] = 1.0
        return attention

    one, other = (
        translator(Echo(), cross_attention=each) for each in (backwards, forwards)
    )
    (found,) = one.ensemble(other).translate("ab", alignments=True)
    assert [link.source for link in found.alignments] == [0, 0, 0]
    (found,) = one.ensemble(one, one, one, other).translate("ab", alignments=True)
    assert [link.source for link in found.alignments] == [0, 1, 0]


def test_shares_come_before_attention_where_all_models_have_them():
    """They are read for what was written; where looks are even nothing is aligned."""
    seen = []

    def shares(src, tgt_in, tgt):
        seen.append((tgt_in.tolist(), tgt.tolist()))
        found = np.zeros((len(src), tgt.shape[1], src.shape[1]), np.float32)
        found[:, :, 1] = 0.3
        evenness = np.zeros(tgt.shape, np.float32)
        evenness[:, 0] = 0.98
        return found, evenness

    here = translator(Echo(), cross_attention=backwards, source_shares=shares)
    (found,) = here.translate("abc", alignments=True)
    a, b, c = letters().encode("abc")
    assert seen == [([[BOS_ID, a, b, c]], [[a, b, c, EOS_ID]])]
    assert [(link.target, link.source) for link in found.alignments] == [
        (1, 1),
        (2, 1),
        (3, 1),
    ]
    without = translator(Echo(), cross_attention=backwards)
    (both,) = here.ensemble(without).translate("abc", alignments=True)
    assert both.alignments == without.translate("abc", alignments=True)[0].alignments
    (again,) = here.ensemble(here).translate("abc", alignments=True)
    assert again.alignments == found.alignments
    # a penalty for what was passed over is by attention in any case
    penalized = here.translate("abc", coverage_penalty=0.5)[0].score
    assert penalized == without.translate("abc", coverage_penalty=0.5)[0].score


def test_only_sources_whose_words_are_to_be_aligned_are_kept_for_that():
    foreseen = []

    def shares(src, tgt_in, tgt):
        shape = len(src), tgt.shape[1], src.shape[1]
        return np.ones(shape, np.float32), np.zeros(tgt.shape, np.float32)

    here = translator(Echo(), cross_attention=backwards, source_shares=shares)
    (member,) = here._rows.members
    member = replace(member, foresee=lambda ids: foreseen.append(list(ids)))
    here._rows = replace(here._rows, members=(member,))
    here.translate("ab")
    here.translate("ab", coverage_penalty=0.5)
    assert foreseen == []
    here.translate(["ab", "c", "ab"], alignments=True)
    encode = letters().encode
    assert foreseen == [[*encode("ab"), EOS_ID], [*encode("c"), EOS_ID]]


def test_shares_that_a_search_recorded_are_not_read_again():
    read = []

    def shares(src, tgt_in, tgt):
        read.append(len(src))
        shape = len(src), tgt.shape[1], src.shape[1]
        return np.ones(shape, np.float32), np.zeros(tgt.shape, np.float32)

    here = translator(Echo(), cross_attention=backwards, source_shares=shares)
    planned = here.plan(["abc", "b"], alignments=True)
    found = here.find(planned)
    first = planned.rows[0]
    recorded = np.zeros((4, 4), np.float32)
    recorded[[0, 1, 2, 3], [1, 1, 0, 3]] = 2.0
    even = np.zeros(4, np.float32)
    (best,) = found[first]
    found[first] = [replace(best, shares=(recorded, even))]
    predictions = here.assemble(planned, found)
    assert read == [1]
    links = [(link.target, link.source) for link in predictions[0].alignments]
    assert links == [(0, 1), (1, 1), (2, 0), (3, 3)]


def test_a_model_that_looks_nowhere_in_particular_aligns_nothing():
    def everywhere(src, tgt_in):
        shape = len(src), tgt_in.shape[1], src.shape[1]
        return np.full(shape, 1 / src.shape[1], np.float32)

    here = translator(Echo(), cross_attention=everywhere)
    (found,) = here.translate("ab cd", alignments=True)
    assert found.alignments == []
    assert [word.sources for word in found.words] == [[], []]


# Streams
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "search"),
    [
        ({}, {"beam_size": 1}),
        ({"temperature": 1.0, "seed": 5}, {}),
        ({"prefix": "Ab"}, {"beam_size": 1}),
    ],
    ids=str,
)
def test_the_pieces_of_a_stream_are_the_translation(settings, search, subtests):
    here = translator(Speller(), max_src_len=12, max_len_extra=2)
    for text in (*TEXTS, "Yes. " + "X" * 30 + ". No."):
        with subtests.test(text=text):
            pieces = list(here.stream(text, **settings))
            expected = here.translate(text, **settings, **search)
            assert "".join(pieces) == expected[0].text
            assert all(pieces)


def test_a_stream_gives_each_letter_as_soon_as_the_model_has_said_it():
    model = Echo()
    pieces = translator(model).stream("a  b\nc")
    said = []
    model.next_logits = lambda src, prefix: (
        said.append(len(prefix)) or Echo.next_logits(model, src, prefix)
    )
    # no space at the end
    assert [(piece, len(said)) for piece in pieces] == [("a", 1), ("  b", 4), (" c", 6)]
    assert not torch.is_inference_mode_enabled()


def test_a_character_of_several_tokens_comes_whole():
    tokenizer = train_tokenizer(
        [ALPHABET] * 3, SideSection(kind="byte", vocab_size=260)
    )
    here = translator(Echo())
    here.src_tokenizer = here.tgt_tokenizer = tokenizer
    assert list(here.stream("é猫x")) == ["é", "猫", "x"]


@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 2},
        {"n_best": 2},
        {"mbr": 4},
        {"exhaustive": 3},
        {"alignments": True},
    ],
    ids=str,
)
def test_a_stream_is_refused_at_the_call_what_needs_several_hypotheses(settings):
    here = translator(Echo(), cross_attention=backwards, utilities={"chrf": None})
    with pytest.raises(UsageError):
        here.stream("abc", **settings)


def test_an_option_that_does_not_exist_is_an_error():
    with pytest.raises(TypeError, match="beamsize"):
        translator(Echo()).translate(["abc"], beamsize=3)


# Batches
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_a_text_is_translated_the_same_whatever_stands_beside_it(
    beam_size, batch_tokens
):
    here = translator(Whim(), max_src_len=12, max_len_extra=2)
    alone = [here.translate(text, beam_size=beam_size)[0] for text in TEXTS]
    assert (
        here.translate(TEXTS, beam_size=beam_size, batch_tokens=batch_tokens) == alone
    )
    backwards = here.translate(
        TEXTS[::-1], beam_size=beam_size, batch_tokens=batch_tokens
    )
    assert backwards == alone[::-1]


def test_batches_hold_rows_of_similar_length_within_the_budget():
    model = Echo()
    texts = ["abcdefg"[: 1 + i % 7] + "ABCDEFGHIJ"[i // 7] for i in range(70)]
    translator(model).translate(texts, beam_size=2, batch_tokens=96)
    assert sum(map(len, model.batches)) == 70
    assert all(2 * len(batch) * max(batch) <= 96 for batch in model.batches)
    assert list(itertools.chain(*model.batches)) == sorted(
        itertools.chain(*model.batches), reverse=True
    )
    assert len(model.batches) < 12


def test_what_stands_there_twice_is_translated_once():
    model = Echo()
    found = translator(model, max_src_len=16).translate(
        ["A cat."] * 50 + ["A cat. A cat. A cat. A cat."]
    )
    assert [p.text for p in found] == ["A cat."] * 50 + ["A cat. A cat. A cat. A cat."]
    assert sorted(itertools.chain(*model.batches)) == [7, 14]


def test_a_stream_keeps_the_order_and_holds_one_chunk():
    taken = []

    def source():
        for i in range(1000):
            taken.append(i)
            yield "abc"[i % 3] * (1 + i % 5)

    stream = translator(Echo()).translate_stream(source(), chunk=10)
    assert taken == []
    found = [next(stream).text for _ in range(25)]
    assert found == ["abc"[i % 3] * (1 + i % 5) for i in range(25)]
    assert len(taken) == 30


def test_a_model_in_training_is_not_disturbed():
    model = Echo().train()
    translator(model).translate(["a"])
    assert model.training
    assert not torch.is_inference_mode_enabled()
    model.eval()
    translator(model).translate(["a"])
    assert not model.training


# A real model
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("norm_first", of_which([True, False], True))
def test_a_real_model_translates_a_batch_as_one_by_one_and_its_scores_are_its_own(
    beam_size, norm_first
):
    torch.manual_seed(5)
    shape = Seq2SeqSection(
        d_model=24,
        d_ff=40,
        num_heads=3,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_len=64,
        norm_first=norm_first,
    )
    size = letters().vocab_size
    model = Seq2SeqTransformer(shape, size, size, joint=True).double()
    with torch.no_grad():
        for weights in model.parameters():
            # strong enough opinions to say different things of different texts
            weights.mul_(2.5)
    decoding = DecodingSection(max_len_ratio=1.0, max_len_extra=2)
    here = Translator(
        Member(model.max_len, steps_of(model)), letters(), letters(), decoding=decoding, languages=("en", "en"),
        lengths=RowLengths(30, 30),
    )  # fmt: skip
    together = here.translate(TEXTS, beam_size=beam_size, n_best=beam_size)
    assert len({p.text for p in together}) > 3
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = here.translate([text], beam_size=beam_size, n_best=beam_size)
        assert [a.text for a in alone.n_best] == [a.text for a in found.n_best]
        assert alone.token_log_probs == pytest.approx(found.token_log_probs, abs=1e-5)
        assert alone.score == pytest.approx(found.score, abs=1e-5)


def test_where_memory_does_not_suffice_the_engine_has_fewer_sentences_at_a_time():
    torch.manual_seed(7)
    size = letters().vocab_size
    shape = Seq2SeqSection(
        d_model=24,
        d_ff=40,
        num_heads=3,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_len=64,
    )
    model = Seq2SeqTransformer(shape, size, size, joint=True).eval()
    asked: list[int] = []

    class Small(Engine):
        def session(self, slots, places):
            asked.append(slots)
            if slots > 2:
                raise MemoryError
            return super().session(slots, places)

    def build(kind):
        return Translator(
            Member(model.max_len, steps_of(model), kind(weights_of(model), "float32")), letters(), letters(),
            decoding=DecodingSection(), languages=("en", "en"), lengths=RowLengths(30, 30),
        )  # fmt: skip

    texts = [text for text in TEXTS if len(text) < 12]
    whole = [found.text for found in build(Engine).translate(texts, beam_size=2)]
    assert [found.text for found in build(Small).translate(texts, beam_size=2)] == whole
    assert asked[-1] in (1, 2)
    assert sorted(asked, reverse=True) == asked

    class None_(Engine):
        def session(self, slots, places):
            raise MemoryError

    with pytest.raises(
        OutOfMemoryError,
        match="no memory to translate 4 source tokens with beam_size = 2",
    ):
        build(None_).translate(["abc"], beam_size=2)
    with pytest.raises(OutOfMemoryError, match="with beam_size = 1; use shorter texts"):
        list(build(None_).stream("abc"))


def test_over_the_engine_words_are_the_same_for_any_number_of_workers_and_any_memory():
    """As those by the plain pass, which reads all at once."""
    torch.manual_seed(6)
    size = letters().vocab_size
    shape = Seq2SeqSection(
        d_model=24,
        d_ff=40,
        num_heads=3,
        num_encoder_layers=1,
        num_decoder_layers=2,
        max_len=64,
    )
    model = Seq2SeqTransformer(shape, size, size, joint=True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    engine = build_engine(model, "cpu", "float32")
    if engine is None:
        pytest.skip("no compiler")
    sizes: list[int] = []

    def small(src, tgt_in):
        sizes.append(len(src))
        if len(src) > 1:
            raise MemoryError
        return forced_attention_of(engine)(src, tgt_in)

    def build(cross_attention, workers):
        member = Member(model.max_len, steps_of(model), engine, cross_attention)
        return Translator(
            member,
            letters(),
            letters(),
            decoding=DecodingSection(max_len_ratio=1.0, max_len_extra=2),
            languages=("en", "en"),
            lengths=RowLengths(30, 30),
            workers=workers,
        )

    plain = build(cross_attention_of(PlainTransformer(weights_of(model))), 1)
    expected = plain.translate(TEXTS, alignments=True, beam_size=3)
    assert sum(len(found.alignments) for found in expected) > 20
    assert any(found.words for found in expected)
    for cross_attention in (forced_attention_of(engine), small):
        for workers in (1, 3):
            here = build(cross_attention, workers)
            for batch_tokens in (60, 4096):
                found = here.translate(
                    TEXTS, alignments=True, beam_size=3, batch_tokens=batch_tokens
                )
                assert found == expected
    assert {1, 2} <= set(sizes)


def test_over_the_engine_samples_are_the_same_for_any_number_of_workers_and_any_batch():
    torch.manual_seed(6)
    size = letters().vocab_size
    shape = Seq2SeqSection(
        d_model=24,
        d_ff=40,
        num_heads=3,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_len=64,
    )
    model = Seq2SeqTransformer(shape, size, size, joint=True).eval()
    engine = build_engine(model, "cpu", "float32")
    if engine is None:
        pytest.skip("no compiler")
    decoding = DecodingSection(max_len_ratio=1.0, max_len_extra=2)
    one, three = (
        Translator(
            Member(model.max_len, steps_of(model), engine), letters(), letters(), decoding=decoding,
            languages=("en", "en"), lengths=RowLengths(30, 30), workers=workers,
        )
        for workers in (1, 3)
    )  # fmt: skip
    settings = DecodingSettings(temperature=1.1, top_p=0.95, n_best=5)
    found = one.translate(TEXTS, settings)
    assert three.translate(TEXTS, settings, batch_tokens=60) == found
    assert [one.translate(text, settings)[0] for text in TEXTS] == found
    assert len({a.text for a in found[1].n_best}) > 1


def test_kernels_torch_takes_the_steps_that_are_written(
    tiny_folder: Path, attention_calls: list[int]
) -> None:
    """One encoder layer, and for each new token the one decoder layer's two looks, at itself and at
    the source.
    """
    (usual,) = weft.load(tiny_folder).translate(["cat sees dog."], beam_size=1)
    assert not attention_calls
    (watched,) = weft.load(tiny_folder, kernels="torch").translate(
        ["cat sees dog."], beam_size=1
    )
    num_tokens = len(watched.token_log_probs)
    queries_of_source = 5  # three words, the dot and eos
    assert attention_calls == [queries_of_source] + [1, 1] * num_tokens
    assert watched.text == usual.text
    assert watched.token_log_probs == pytest.approx(usual.token_log_probs, abs=1e-4)
    with pytest.raises(UsageError, match="kernels = native: it must be auto or torch"):
        weft.load(tiny_folder, kernels="native")
