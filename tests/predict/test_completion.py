"""Translations that begin as a person wrote them, over models whose answer is plain to see."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pushed import of_which
from weft.config import DecodingSection, Seq2SeqSection, SideSection
from weft.data.glossary import Entry, Glossary
from weft.data.tokenizer import EOS_ID, SMALLEST, Tokenizer, train_tokenizer
from weft.decoding.shortlist import Shortlist
from weft.engine.from_model import build_engine
from weft.engine.torch_steps import steps_of
from weft.errors import UsageError
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.rows import Member
from weft.predict.segments import RowLengths
from weft.predict.settings import DecodingSettings
from weft.predict.stems import LetterStem, Spellings
from weft.predict.translator import Translator

SENTENCES = [
    "the cat sat on the mat.",
    "the cats saw a dog, and the dog saw them!",
    "a man in a blue shirt reads 1234 books.",
    "Zwei Männer laufen über die Straße.",
    "猫好。犬好。",
]
# the last without a leading space
KINDS = ("bpe", "unigram", "word", "character", "byte", "bpe bare")


@cache
def tokenizer(kind: str, **more: object) -> Tokenizer:
    size = 280 if kind == "byte" else 400
    kind, _, bare = kind.partition(" ")
    more |= {"leading_space": not bare}
    side = SideSection(kind=kind, vocab_size=size, **more)  # type: ignore[arg-type]
    return train_tokenizer(SENTENCES * 4, side)


@dataclass
class Rows:
    """A cache of source rows and the target ids fed so far."""

    rows: list[tuple[tuple[int, ...], tuple[int, ...]]]

    def select(self, rows: Tensor) -> "Rows":
        return Rows([self.rows[i] for i in rows.tolist()])


class Echo(nn.Module):
    """Says the letters of the source that were not said yet: the longest token of them."""

    max_len = 300

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        ordinary = range(EOS_ID + 1, tokenizer.vocab_size)
        self.letters = {i: tokenizer.spell([i], begins=False) for i in ordinary}
        self.by_first: dict[int, list[int]] = {}
        self.no_text = torch.zeros(tokenizer.vocab_size)
        for i, letters in self.letters.items():
            self.by_first.setdefault(letters[0], []).append(i)
            # half a character, or a piece of bytes, of which text with letters has none
            is_byte = i < SMALLEST and tokenizer.settings.kind in ("character", "word")
            if is_byte or "\ufffd" in letters.decode("utf-8", "replace"):
                self.no_text[i] = -40.0

    def prefill(self, src: Tensor) -> Rows:
        rows = [tuple(i for i in row if i) for row in src.tolist()]
        return Rows([(row, ()) for row in rows])

    def decode(self, ids: Tensor, cache: Rows) -> tuple[Tensor, Rows]:
        fed = zip(cache.rows, ids.tolist(), strict=True)
        longer = Rows([(src, (*seen, i)) for (src, seen), (i,) in fed])
        logits = [self.next_logits(src, seen[1:]) for src, seen in longer.rows]
        return torch.stack(logits)[:, None], longer

    def output(self, states: Tensor) -> Tensor:
        return states

    def next_logits(self, src: tuple[int, ...], seen: tuple[int, ...]) -> Tensor:
        whole = self.tokenizer.spell(src, begins=False)
        num_said = len(self.tokenizer.spell(seen, begins=False))
        rest = whole[num_said:]
        logits = torch.zeros(self.tokenizer.vocab_size)
        logits[EOS_ID] = 0.0 if rest else 30.0
        for i in self.by_first.get(rest[0], ()) if rest else ():
            if rest.startswith(self.letters[i]):
                logits[i] = 10.0 + len(self.letters[i])
        return logits


class Whim(Echo):
    """Random, but always the same for the same source and tokens; whole characters alone."""

    def next_logits(self, src: tuple[int, ...], seen: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash((src, seen)) % 2**31)
        logits = torch.randn(self.tokenizer.vocab_size, generator=generator)
        logits[EOS_ID] += 2.0 if len(seen) > 5 else -9.0
        return logits * 2 + self.no_text


def translator(
    kind: str, model: type[Echo] = Echo, by_sentence: bool = False, **more: object
) -> Translator:
    own = tokenizer(kind, **more)
    return Translator(
        Member(300, steps_of(model(own))), own, own, decoding=DecodingSection(beam_size=2),
        languages=("en", "en"), lengths=RowLengths(200, 200, by_sentence),
    )  # fmt: skip


@pytest.mark.parametrize("kind", of_which(KINDS, "bpe", "unigram", "character"))
def test_cut_anywhere_a_translation_is_gone_on_with_as_it_went_on(kind: str) -> None:
    """Inside of words, before and after spaces; the space at the end is the next word's."""
    here = translator(kind)
    for text in SENTENCES[1:4]:
        whole = here.translate(text)[0].text
        assert whole == text
        for place in range(0, len(text) + 1, 7 if kind in ("character", "byte") else 3):
            found = here.complete(text, text[:place], beam_size=1)
            assert found.text == whole, text[:place]
            assert found.prediction.text == whole


@pytest.mark.parametrize("kind", KINDS)
def test_every_completion_begins_with_exactly_what_was_written(kind: str) -> None:
    """Whatever the model thinks of it, also with letters that no token of it has."""
    here, draw = translator(kind, Whim), random.Random(4)
    letters = "the cat  sämä好,. 1x€🙂"
    for number in range(12):
        prefix = "".join(draw.choices(letters, k=draw.randint(1, 9))).lstrip()
        found = here.complete("the cat", prefix, beam_size=1 + number % 2)
        assert found.text.startswith(prefix)
        assert found.prediction.text == found.text


def test_without_a_beginning_it_is_the_translation() -> None:
    for by_sentence in (False, True):
        here = translator("bpe", Whim, by_sentence)
        for text in ("the cat", "  the cat sat. the dog saw.", "", " \n "):
            found = here.complete(text, alternatives=2)
            assert [found.prediction] == here.translate(text)
            assert found.text == found.prediction.text


def test_a_beginning_that_the_tokenizer_would_change_stays_as_it_was_written() -> None:
    here = translator("bpe", lowercase=True)
    found = here.complete("the cat sat on the mat.", "The Cat s")
    assert found.text == "The Cat sat on the mat."


def test_alternatives_are_the_most_probable_other_words_each_with_its_own_rest() -> (
    None
):
    """By letters, greedy: an alternative's rest is what its first letter alone would have too."""
    here = translator("character", Whim)
    model, own = Whim(tokenizer("character")), tokenizer("character")
    src = (*own.encode("the cat"), EOS_ID)
    for prefix in ("", "th", "the ca", "the "):
        found = here.complete("the cat", prefix, alternatives=4, beam_size=1)
        logits = model.next_logits(src, tuple(own.encode(prefix)))
        logits[:EOS_ID] = -torch.inf
        likeliest = logits.argsort(descending=True)[:10].tolist()
        firsts = [own.spell([i]).decode("utf-8", "replace") for i in likeliest]
        place = len(prefix)
        assert found.text[place] == firsts[0]
        assert 2 <= len(found.alternatives) <= 4
        words = [word.text for word in found.alternatives]
        assert len(set(words)) == len(words)
        chances = [word.probability for word in found.alternatives]
        assert chances == sorted(chances, reverse=True)
        for word in found.alternatives:
            assert word.translation.startswith(prefix)
            assert word.text in word.translation
            first = word.translation[place : place + 1]
            alone = here.complete("the cat", prefix + first, beam_size=1)
            assert alone.text == word.translation
            assert first.strip() == "" or first in firsts[1:]


def test_the_probability_of_a_word_is_that_of_its_letters_after_the_beginning() -> None:
    here = translator("character", Whim)
    (word, *_) = here.complete(
        "the cat", "th", alternatives=1, beam_size=1
    ).alternatives
    end = word.translation.index(word.text, 0) + len(word.text)
    same = here.complete("the cat", word.translation[:end], beam_size=1)
    log_probs = same.prediction.token_log_probs[2:end]
    assert word.probability == pytest.approx(np.exp(sum(log_probs)), rel=1e-5)


def test_half_a_word_is_whole_in_the_alternatives() -> None:
    found = translator("bpe").complete("the cat sat.", "the ca", alternatives=3)
    assert found.text == "the cat sat."
    for word in found.alternatives:
        assert word.text.startswith("ca")
        assert word.translation.startswith("the ca")
        assert word.text != "cat"


def test_of_several_sentences_the_right_one_is_gone_on_with() -> None:
    """Also where a person has changed one before it; what comes after it is translated anew."""
    text = "The cat sat. A dog saw. The man reads."
    here = translator("bpe", by_sentence=True)
    assert here.translate(text)[0].segments == 3
    for place in range(0, len(text) + 1, 2):
        assert here.complete(text, text[:place], beam_size=1).text == text
    for prefix, expected in (
        ("The dog s", "The dog sat. A dog saw. The man reads."),
        ("The dog slept! A d", "The dog slept! A dog saw. The man reads."),
        ("A cat!  One dog. The m", "A cat!  One dog. The man reads."),
    ):
        assert here.complete(text, prefix).text == expected


def test_a_shortlist_has_room_for_what_a_person_writes() -> None:
    here = translator("bpe", Whim)
    empty = Shortlist(
        np.array([EOS_ID, 50, 51], np.int32), np.zeros(0, np.int32), np.zeros(400, np.int64)
    )  # fmt: skip
    own = tokenizer("bpe")
    listed = Translator(
        Member(300, steps_of(Whim(own))), own, own, decoding=DecodingSection(),
        languages=("en", "en"), lengths=RowLengths(200, 200), shortlist=empty, uses_shortlist=True,
    )  # fmt: skip
    found = listed.complete("the cat", "the dog s", alternatives=2, beam_size=1)
    assert found.text.startswith("the dog s")
    assert found.text != here.complete("the cat", "the dog s", beam_size=1).text


def test_what_cannot_be_gone_on_with_is_refused() -> None:
    here = translator("character")
    for options in (
        {"temperature": 1.0},
        {"mbr": 4},
        {"exhaustive": 3},
        {"settings": DecodingSettings(prefix="a")},
    ):
        with pytest.raises(UsageError, match="complete goes on with a search"):
            here.complete("the cat", "the", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="alternatives = -1"):
        here.complete("the cat", "the", alternatives=-1)
    with pytest.raises(UsageError, match="prefix: it has about 299 tokens"):
        here.complete("the cat", "x" * 299)


def test_letters_are_said_by_every_token_that_can_be_part_of_them() -> None:
    own = tokenizer("bpe")
    spellings = Spellings(own)
    stem = LetterStem(b" ca", spellings)
    banned = set(stem.banned([]).tolist())  # type: ignore[union-attr]
    for i in range(own.vocab_size):
        letters = own.spell([i], begins=False)
        is_part = letters != b"" and (
            b" ca".startswith(letters) or letters.startswith(b" ca")
        )
        assert (i not in banned) == (is_part and i > EOS_ID), letters
    for i in set(range(own.vocab_size)) - banned:
        said = own.spell([i], begins=False)
        assert (stem.banned([i]) is None) == (len(said) >= 3)
        assert i in stem.possible


def over_engine(precision: str) -> Translator:
    """Return a translator by letters, of random weights, whose searches the engine runs."""
    torch.manual_seed(5)
    own = tokenizer("character")
    shape = Seq2SeqSection(
        d_model=24, d_ff=40, num_heads=3, num_encoder_layers=1, num_decoder_layers=2, max_len=64
    )  # fmt: skip
    size = own.vocab_size
    model = Seq2SeqTransformer(shape, size, size, joint=False).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(2.5)
        model.projection.bias += Whim(own).no_text
        model.projection.bias[EOS_ID] += 3.0
    engine = build_engine(model, "cpu", precision)
    if engine is None:
        pytest.skip("no compiler")
    return Translator(
        Member(64, steps_of(model), engine), own, own, decoding=DecodingSection(max_len_extra=64),
        languages=("en", "en"), lengths=RowLengths(60, 60),
    )  # fmt: skip


class Wavering(Whim):
    """As Whim, but of many next tokens none is much more probable: beams are often not greedy."""

    def next_logits(self, src: tuple[int, ...], seen: tuple[int, ...]) -> Tensor:
        return super().next_logits(src, seen) * 0.4


@pytest.mark.parametrize("has_engine", [False, True])
def test_the_most_probable_word_is_an_alternative_where_a_beam_does_not_take_it(
    has_engine: bool,
) -> None:
    """Greedy search says which letter is the most probable."""
    here = over_engine("float32") if has_engine else translator("character", Wavering)
    num_left = 0
    for text in SENTENCES[:4]:
        whole = here.translate(text, beam_size=1)[0].text[:12]
        for place in range(0, len(whole), 2):
            begun = whole[:place]
            found = here.complete(text, begun, alternatives=3, beam_size=4)
            is_left = found.text[place : place + 1] != whole[place]
            if is_left and not whole[max(place - 1, 0) : place + 1].isspace():
                others = [word.translation[place] for word in found.alternatives]
                assert whole[place] in others
                num_left += 1
    assert num_left > 2


def test_after_the_end_the_most_probable_letter_is_an_alternative() -> None:
    here = translator("character", Whim)
    model, own = Whim(tokenizer("character")), tokenizer("character")
    whole = here.translate("the cat", beam_size=1)[0].text
    found = here.complete("the cat", whole, alternatives=3, beam_size=1)
    assert found.text == whole
    src = (*own.encode("the cat"), EOS_ID)
    logits = model.next_logits(src, tuple(own.encode(whole)))
    logits[:EOS_ID] = -torch.inf
    assert logits.argmax() == EOS_ID
    logits[EOS_ID] = -torch.inf
    likeliest = whole + own.spell([int(logits.argmax())]).decode()
    others = [word.translation[: len(likeliest)] for word in found.alternatives]
    assert likeliest in others


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_over_the_engine_it_is_the_translation_bit_for_bit(precision: str) -> None:
    """Greedy, cut after any letter: a prefix that is read at once changes no log-probability."""
    here = over_engine(precision)
    settings = DecodingSettings(beam_size=1)
    num_cut = 0
    for text in SENTENCES[:4]:
        (whole,) = here.translate(text, settings)
        for place in range(0, len(whole.text), 5):
            begun = whole.text[:place]
            found = here.complete(text, begun, settings=settings).prediction
            assert found.token_log_probs == whole.token_log_probs
            num_cut += 1
    assert num_cut > 20


# an echo of words takes bytes for letters
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "word"])
def test_a_term_that_is_half_written_goes_on_and_stands_once(kind: str) -> None:
    """An echo says what it reads, but for the term."""
    glossary = Glossary((Entry(("sat",), ("tas",)),))
    here = translator(kind).with_glossary(glossary)
    wanted = "the cat tas on the mat."
    for cut in range(wanted.index("tas") + 1, wanted.index("tas") + 4):
        completed = here.complete(SENTENCES[0], wanted[:cut], alternatives=2)
        assert completed.text == wanted
        for other in completed.alternatives:
            assert other.translation.startswith(wanted[:cut])
            assert "tas" in other.translation
