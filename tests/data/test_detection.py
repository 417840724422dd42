"""The language of a text among a few: what is learned of each, and what is then told of a text."""

import math
import random
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from weft.data.builtin import pairs
from weft.data.detection import Detector
from weft.data.grams import UNKNOWN_LETTERS, grams_of, script_of, without_accents
from weft.data.profile import (
    ALL_LETTERS,
    DIFFERENT_LETTERS,
    MOST_GRAMS,
    MOST_ROWS,
    Profile,
    key_of_script,
    learn_profiles,
    profile_of_pieces,
)
from weft.errors import FolderError

ENGLISH = ["the dog sees a cat", "a man knows the house", "she wants the key"]
GERMAN = ["der Hund sieht eine Katze", "ein Mann kennt das Haus", "sie will den Weg"]


@cache
def builtin(tgt: str) -> Detector:
    text = pairs("everyday", "en", tgt).train
    sides = [("en", [a for a, _ in text]), (tgt, [b for _, b in text])]
    return Detector.of(learn_profiles(sides))


@cache
def three() -> Detector:
    """Of two models, as a server with two folders has them."""
    return Detector.joined([builtin("de"), builtin("zh")])


def counts_of(profile: Profile) -> dict[int, float]:
    return dict(zip(profile.keys.tolist(), profile.counts.tolist(), strict=True))


def languages(detector: Detector, *texts: str) -> list[str]:
    return [detector.best(text)[0] for text in texts]


# What is told


def test_sentences_that_were_held_out_are_told_apart() -> None:
    wrong: list[tuple[str, str]] = []
    for lang in ("de", "zh"):
        for src, tgt in pairs("everyday", "en", lang).test[:150]:
            found = languages(three(), src, tgt)
            wrong += [(src, found[0])] * (found[0] != "en")
            wrong += [(tgt, found[1])] * (found[1] != lang)
    assert wrong == []


def test_a_word_is_enough() -> None:
    assert languages(three(), "dog", "Hund", "狗") == ["en", "de", "zh"]
    assert languages(three(), "the", "und", "我") == ["en", "de", "zh"]


def test_case_marks_and_missing_accents_change_little() -> None:
    texts = ("MÜDE", "„schön“!", "schon", "WIR GEHEN", "über", "uber")
    assert languages(three(), *texts) == ["de"] * len(texts)
    assert languages(three(), "THE HOUSE", "(where?)") == ["en", "en"]
    full_width = "".join(chr(ord(letter) + 0xFEE0) for letter in "where")
    assert languages(three(), full_width) == ["en"]


def test_the_best_comes_first_and_confidences_are_shares() -> None:
    for text in ("the dog", "der Hund", "我们走吧", "xyzzy", "привет", "", "a"):
        found = three().detect(text)
        shares = [share for _, share in found]
        assert sorted(shares, reverse=True) == shares
        assert all(0 <= share <= 1 for share in shares)
        assert sum(shares) <= 1 + 1e-9
        assert sorted(code for code, _ in found) == ["de", "en", "zh"]


def test_what_has_no_letters_is_in_no_language() -> None:
    for text in ("", " ", "12,5 % + 3 = ?", "🙂🙂", "\n\n", "https://example.org/the"):
        assert three().detect(text) == [("de", 0.0), ("en", 0.0), ("zh", 0.0)]
        assert three().best(text) == ("und", 1.0)


def test_tags_and_addresses_say_nothing() -> None:
    plain = three().detect("der Hund sieht uns")
    marked = "<p class='the dog and the cat'>der Hund</p> sieht <br/>uns"
    assert three().detect(marked) == plain
    assert three().detect("der Hund sieht the.dog@children.example uns") == plain
    # no tag, so it is read
    assert three().best("1 < the house > 2")[0] == "en"


def test_another_script_is_another_language_at_once() -> None:
    texts = ("привет", "こんにちは", "안녕하세요", "γειά σου", "مرحبا")
    for text in texts:
        found, confidence = three().best(text)
        assert (found, confidence > 0.9) == ("und", True), text
    # of a letter that was never seen, all the same
    assert "鑫" not in "".join(b for _, b in pairs("everyday", "en", "zh").train)
    assert languages(three(), "鑫") == ["zh"]


def test_a_foreign_name_outvotes_nothing() -> None:
    assert languages(three(), "我用 Python 写程序") == ["zh"]
    assert languages(three(), "The house of Αθήνα is in the garden") == ["en"]
    assert languages(three(), "Die Kinder von Dvořák sind im Garten") == ["de"]


def test_a_text_in_another_language_of_the_same_script_is_in_none() -> None:
    for text in (
        "Toute la famille voulait manger du fromage de chèvre hier soir.",
        "Ogni mattina preferisco bere un bicchiere di succo d'arancia.",
        "Kaksi lasta leikkii pihalla ja heidän äitinsä keittää kahvia.",
    ):
        assert languages(three(), text) == ["und"], text


def test_two_regions_of_a_language_are_two_languages() -> None:
    simplified = [("zh-Hans", ["这个国家的学生们", "我们爱学习汉语"] * 20)]
    traditional = [("zh-Hant", ["這個國家的學生們", "我們愛學習漢語"] * 20)]
    profiles = learn_profiles(simplified) | learn_profiles(traditional)
    detector = Detector.of(profiles)
    assert languages(detector, "学生", "學生", "们", "們") == ["zh-Hans", "zh-Hant"] * 2
    # what is written alike in both is as likely in both
    assert dict(detector.detect("我"))["zh-Hans"] == pytest.approx(0.5, abs=0.02)


def test_the_beginning_of_a_long_text_says_its_language() -> None:
    text = "the dog is in the house and " * 200
    assert three().detect(text + "Hund " * 100_000) == three().detect(text)
    assert three().best("x" * 1_000_000)[0]


def test_a_detector_without_languages_says_none() -> None:
    empty = Detector.of({})
    assert (empty.detect("the"), empty.best("the")) == ([], ("und", 1.0))
    assert Detector.joined([]).best("the") == ("und", 1.0)


def test_lone_surrogates_and_any_letters_are_read() -> None:
    draw = random.Random(1)
    for _ in range(300):
        codes = [*draw.choices(range(0x3000), k=9), draw.randrange(0x110000)]
        shares = [share for _, share in three().detect("".join(map(chr, codes)))]
        assert all(math.isfinite(share) for share in shares)


# By what it is told


class Slow:
    """The score of a text by the formulas, a letter at a time; the text has Latin letters alone."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.counts = {code: counts_of(one) for code, one in profiles.items()}

    def score(self, code: str, text: str) -> float:
        return sum(self._of_word(code, f" {word} ") for word in text.split())

    def _of_word(self, code: str, word: str) -> float:
        own = none = 0.0
        for end in range(2, len(word) + 1):
            own += math.log(self._chance(code, word[:end]))
            none += math.log(self._in_none(word[end - 1]))
        share = self.counts[code][key_of_script("LATIN")]
        share /= self.counts[code][ALL_LETTERS]
        foreign = 0.02 * (share + 1e-6) / (share + 1e-3)
        return math.log(0.98 * math.exp(own) + foreign * math.exp(none))

    def _chance(self, code: str, begun: str) -> float:
        """Return the chance of the last letter after those before it."""
        chance = self._alone(code, begun[-1])
        for length in range(2, min(len(begun), 4) + 1):
            before = self._count(code, begun[-length:-1])
            seen = min(self._count(code, begun[-length:]), before)
            chance = (seen + 8 * chance) / (before + 8)
        return chance

    def _alone(self, code: str, letter: str) -> float:
        if letter == " ":
            return 0.1
        counts = self.counts[code]
        total = counts[ALL_LETTERS]
        different = counts[DIFFERENT_LETTERS]
        unseen = (counts[key_of_script("LATIN")] + 1 / 30) / total / 100
        return (self._count(code, letter) + different * unseen) / (total + different)

    def _in_none(self, letter: str) -> float:
        if letter == " ":
            return 0.1
        likeliest = max(self._alone(code, letter) for code in self.counts)
        return 0.98 * likeliest + 0.02 / 30 / 100

    def _count(self, code: str, letters: str) -> float:
        return self.counts[code].get(key_of(letters), 0.0)


def key_of(letters: str) -> int:
    """Return the key of an n-gram; a space is the edge of its word."""
    word = letters.strip() or "a"
    place = len(word) - (not letters.endswith(" "))
    return int(grams_of(word).keys[len(letters) - 1, place])


def test_the_scores_are_those_of_the_formulas() -> None:
    profiles = learn_profiles([("en", ENGLISH), ("de", GERMAN)])
    slow = Slow(profiles)
    for text in ("the key", "ein Hund", "a man", "den cat", "wolf"):
        shares = dict(Detector.of(profiles).detect(text))
        wanted = slow.score("en", text.lower()) - slow.score("de", text.lower())
        odds = math.log(shares["en"] / shares["de"])
        assert odds == pytest.approx(wanted, abs=1e-6), text


def test_the_grams_of_a_word_begin_at_the_space_before_it() -> None:
    grams = grams_of("Ab, c")
    assert len(grams) == 5  # a, b, space, c, space
    assert grams.words.tolist() == [0, 0, 0, 1, 1]
    lengths = (grams.keys >= 0).sum(0)
    assert lengths.tolist() == [2, 3, 4, 2, 3]
    assert (grams.keys == grams_of("aB c").keys).all()
    # the n-gram before a letter is the one that ends at the letter before
    assert grams.contexts[2, 1] == grams.keys[1, 0]
    assert len({*grams.keys[:, :2].ravel().tolist()} - {-1}) == 5


def test_letters_of_scripts_without_spaces_are_words_of_their_own() -> None:
    assert grams_of("我们 go").words.tolist() == [0, 1, 1, 2, 2, 2]
    assert [script_of(letter) for letter in "a我ひ1'́"] == [
        "LATIN",
        "CJK",
        "HIRAGANA",
        "",
        "",
        "COMBINING",
    ]


def test_unknown_letters_are_in_no_gram() -> None:
    known = grams_of(f"{UNKNOWN_LETTERS}ab{UNKNOWN_LETTERS}")
    lengths = (known.keys >= 0).sum(0)
    assert lengths.tolist() == [0, 1, 2, 0, 0]
    assert known.keys[1, 2] == grams_of("ab").keys[1, 1]


# What is learned


def test_counts_are_those_of_the_text() -> None:
    counts = counts_of(learn_profiles([("en", ["a cat", "a Cat!"])])["en"])
    grams = grams_of("cat")
    assert [counts[int(key)] for key in grams.keys[1]] == [2, 2, 2, 2]
    assert counts[int(grams.keys[0, 1])] == 4  # a, also alone
    assert counts[ALL_LETTERS] == 12
    assert counts[key_of_script("LATIN")] == 8


def test_rows_that_are_the_same_on_both_sides_do_not_count() -> None:
    names = ["Berlin", "OK"]
    sides = [("en", [*ENGLISH, *names]), ("de", [*GERMAN, *names])]
    found = learn_profiles(sides)
    without = learn_profiles([("en", ENGLISH), ("de", GERMAN)])
    for code in ("en", "de"):
        assert counts_of(found[code]) == counts_of(without[code])


def test_words_that_were_left_in_the_other_script_do_not_count() -> None:
    chinese = ["我们用 GNU 写程序", "他在家里看书", "我们不喜欢吃面包"] * 9
    english = ["We write programs for GNU", "He reads a book", "We hate bread"] * 9
    found = learn_profiles([("zh", chinese), ("en", english)])
    gnu = int(grams_of("gnu").keys[2, 2])
    assert gnu in counts_of(found["en"])
    assert gnu not in counts_of(found["zh"])
    # but how many there are is known
    share = counts_of(found["zh"])[key_of_script("LATIN")]
    share /= counts_of(found["zh"])[ALL_LETTERS]
    assert share == pytest.approx(3 / 22, abs=0.02)
    # a side that has much of it is written so, too
    mixed = learn_profiles([("ja", ["漢字とかな", "見る"]), ("zh", ["看漢字", "我們"])])
    assert key_of_script("CJK") in counts_of(mixed["ja"])


def test_both_sides_of_one_language_are_learned_together() -> None:
    found = learn_profiles([("en", ENGLISH[:2]), ("en", [*ENGLISH[2:], "a"])])
    assert [*found] == ["en"]
    together = learn_profiles([("en", [*ENGLISH, "a"])])
    assert counts_of(found["en"])[ALL_LETTERS] == counts_of(together["en"])[ALL_LETTERS]


def test_of_an_unknown_language_nothing_is_learned() -> None:
    found = learn_profiles([("und", ENGLISH), ("de", GERMAN)])
    assert [*found] == ["de"]
    assert learn_profiles([("en", ["1 2", ""])]) == {}


def test_text_without_accents_counts_a_little() -> None:
    assert without_accents("Mädchen é ẹ́ ß") == "Madchen e e ß"
    counts = counts_of(learn_profiles([("de", ["Mädchen"])])["de"])
    bare = grams_of("madchen").keys
    assert counts[int(bare[1, 1])] == 0.125
    assert counts[ALL_LETTERS] == 8


def test_profiles_of_one_language_add_up() -> None:
    one = learn_profiles([("en", ENGLISH)])
    two = learn_profiles([("en", ["the bird"] * 3), ("de", GERMAN)])
    joined = Detector.joined([Detector.of(one), Detector.of(two)])
    assert joined.languages == ("de", "en")
    own = counts_of(one["en"])
    other = counts_of(two["en"])
    for key, count in counts_of(joined.profiles["en"]).items():
        assert count == own.get(key, 0) + other.get(key, 0)
    assert counts_of(joined.profiles["de"]) == counts_of(two["de"])
    again = Detector.joined([Detector.of(two), Detector.of(one)])
    assert again.detect("the bird") == joined.detect("the bird")


def test_the_same_text_gives_the_same_bytes() -> None:
    text = [a for a, _ in pairs("everyday", "en", "de").train]
    first, second = (learn_profiles([("en", text)])["en"].to_array() for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert 5_000 < first.nbytes < 30_000


def test_a_profile_is_small_whatever_the_text_is() -> None:
    draw = random.Random(1)
    letters = [chr(code) for code in range(0x4E00, 0x8E00)]
    texts = ["".join(draw.choices(letters, k=40)) for _ in range(4000)]
    profile = learn_profiles([("zh", texts)])["zh"]
    assert len(profile.keys) > 10 * MOST_GRAMS
    rows = profile.to_array()
    assert rows.nbytes < 40_000
    kept = Profile.from_array(rows, "x")
    assert len(kept.keys) == MOST_GRAMS
    counts = counts_of(profile)
    assert kept.counts[kept.keys == ALL_LETTERS] == pytest.approx(
        counts[ALL_LETTERS], rel=0.05
    )
    # the rarest are left out
    least = min(counts[key] for key in kept.keys.tolist())
    left_out = counts.keys() - {*kept.keys.tolist()}
    assert max(counts[key] for key in left_out) <= max(least, 1)


def test_an_array_gives_the_profile_again() -> None:
    profile = learn_profiles([("de", GERMAN)])["de"]
    again = Profile.from_array(profile.to_array(), "x")
    assert (again.keys == profile.keys).all()
    assert again.counts == pytest.approx(profile.counts, rel=0.1)
    assert again.to_array().tobytes() == profile.to_array().tobytes()


def test_wide_gaps_between_keys_are_kept() -> None:
    facts = (ALL_LETTERS, DIFFERENT_LETTERS)
    keys = np.sort(np.array([0, 254, 255, 509, 2**20 - 1, *facts]))
    profile = Profile(keys, np.ones(len(keys)))
    again = Profile.from_array(profile.to_array(), "x")
    assert again.keys.tolist() == keys.tolist()
    assert again.counts.tolist() == [1.0] * len(keys)


def test_an_array_that_is_no_profile_is_refused(
    subtests: pytest.Subtests,
) -> None:
    rows = learn_profiles([("de", GERMAN)])["de"].to_array()
    still = rows.copy()
    still[5, 0] = 0
    too_far = np.full((MOST_ROWS, 2), 254, np.uint8)
    bad = {
        "floats": np.full((9, 2), np.nan, np.float32),
        "wide": rows.astype(np.int64),
        "flat": rows.reshape(-1),
        "three columns": np.zeros((9, 3), np.uint8),
        "empty": rows[:0],
        "long": np.ones((MOST_ROWS + 1, 2), np.uint8),
        "a key twice": still,
        "keys beyond the last": too_far,
        "no end": np.full((9, 2), 255, np.uint8),
        "no letters": np.ones((9, 2), np.uint8),
        "none of its letters": rows * np.array([1, 0], np.uint8),
    }
    for name, array in bad.items():
        with subtests.test(name), pytest.raises(FolderError, match=r"^here: ") as found:
            Profile.from_array(array, "here")
        assert "\n" not in str(found.value)


# Vocabularies


def test_the_pieces_of_a_vocabulary_stand_for_a_text() -> None:
    gap = UNKNOWN_LETTERS
    english = profile_of_pieces(["the", "and", "dog", "with", f"{gap}ing", "house"])
    german = profile_of_pieces(["der", "und", "Hund", "mit", f"{gap}ung", "Haus"])
    assert english is not None
    assert german is not None
    detector = Detector.of({"en": english, "de": german})
    texts = ("the dog", "der Hund", "doing", "Mitung", "WITH")
    assert languages(detector, *texts) == ["en", "de", "en", "de", "en"]
    # the first are the most frequent
    counts = counts_of(english)
    words = [int(grams_of(word).keys[3, 3]) for word in ("the", "and", "dog")]
    assert counts[words[0]] > counts[words[1]] > counts[words[2]] > 0


def test_a_vocabulary_of_letters_tells_scripts_and_little_more() -> None:
    gap = UNKNOWN_LETTERS
    letters = [f"{gap}{letter}{gap}" for letter in "的一是我们在他这了"]
    chinese = profile_of_pieces(letters)
    english = profile_of_pieces(["the", "and", "dog"])
    assert chinese is not None
    assert english is not None
    detector = Detector.of({"zh": chinese, "en": english})
    assert languages(detector, "我们在", "狗", "the dog") == ["zh", "zh", "en"]


def test_a_vocabulary_without_letters_says_nothing() -> None:
    assert profile_of_pieces([]) is None
    assert profile_of_pieces(["1", "...", "<b>", "a-b", ""]) is None


def test_of_the_languages_asked_for_others_do_not_count() -> None:
    text = "the house"
    found = dict(three().detect(text, ["en", "zh"]))
    assert [*found] == ["en", "zh"]
    assert found["en"] >= dict(three().detect(text))["en"]
    # a text in one that was not asked for is in none
    assert sum(dict(three().detect("der große Hund sieht uns", ["zh"])).values()) < 0.1
    assert three().detect(text, []) == []
