"""The languages of the two sides of parallel text: whether they are named the wrong way round, or
by another name.

Lines are told apart by py3langid (Barbaresi, a fork of Lui and Baldwin 2012, "langid.py: An
off-the-shelf language identification tool"), which knows some 140 languages. It answers something
to everything, so a line counts only where it is sure, a side only where most of a sample agrees,
and a language that it does not know is never held against a text.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from weft.data.check.finding import Finding, Rows
from weft.data.corpus import ParallelText
from weft.data.languages import UNKNOWN, primary

_SAMPLE = 300  # lines of a side, spread over all of it
_LEAST_LETTERS = 8  # of a line: an interjection is in any language
_FEWEST_LINES = 5  # that say something, below which nothing is said
_SURE = 0.5  # of a line: the least probability
_SIDES = ("source", "target")
# of a side's lines: plainly in a language, mostly, hardly
_PLAIN, _MOST, _FEW = 0.8, 0.5, 0.2
# What the detector calls by another code, or knows a close relative of.
_ALIASES = {"nb": "no", "fil": "tl", "ki": "kik", "gn": "gug", "ff": "fuv"}
# Languages so alike that short lines of one pass for another's.
_CLOSE = [
    frozenset(group.split())
    for group in (
        "en pcm",
        "zh wuu yue lzh",
        "no nn da",
        "cs sk",
        "hr bs sr",
        "id ms",
        "es gl ast an ext",
        "pt gl",
        "ca oc",
        "ar ary arz",
        "de lb gsw nds",
        "nl af fy nds li",
        "it lij vec fur lmo pms scn la",
        "fr wa",
        "gcf gcr ht",
        "bg mk",
        "lv ltg",
        "is fo",
        "el grc",
        "he hbo",
        "ku sdh ckb",
        "tr az crh",
        "uz uzs",
        "tt ba",
        "kk ky",
        "xh zu ss nr",
        "st nso tn",
        "rw rn",
        "tl bcl ceb war",
        "hi mr ne sa gom mai",
        "ga gd",
    )
]


@dataclass(frozen=True)
class Identified:
    """The languages of a sample of one side: how many lines are in each, and how many lines there
    are.
    """

    lines: Counter[str]
    size: int

    @property
    def main(self) -> str | None:
        """Return the language that the side plainly is in, if any; lines in others that are close
        to it count for it.
        """
        best = max(self.lines, key=lambda lang: (self.lines[lang], lang), default=None)
        if best is None or self.size < _FEWEST_LINES:
            return None
        return best if self.share(best) >= _PLAIN else None

    def share(self, lang: str, beside: str | None = None) -> float:
        """Return the share of lines in a language or one close to it; those in the language
        `beside` it, or close to that, do not count.
        """
        if self.size < _FEWEST_LINES:
            return 0.0
        lines = sum(n for seen, n in self.lines.items() if _belongs(seen, lang, beside))
        return lines / self.size


def look_at_languages(
    text: ParallelText, rows: Rows, in_training: bool = True
) -> Iterator[Finding]:
    """Find sides that have changed places, that are in another language than was said, or of which
    nothing was said.
    """
    sides = _identify(text.src), _identify(text.tgt)
    langs = _known_as(text.src_lang), _known_as(text.tgt_lang)
    if min(side.size for side in sides) < _FEWEST_LINES:
        return
    if swapped := _swapped(text, sides, langs, rows):
        yield swapped
        return
    yield from _other(text, sides, langs)
    if in_training:
        yield from _unnamed(text, sides, langs)
        yield from _untold(text, langs)


def _swapped(
    text: ParallelText,
    sides: tuple[Identified, Identified],
    langs: tuple[str, str],
    rows: Rows,
) -> Finding | None:
    """Report sides that have changed places: fatal where the languages are well apart, a warning
    where they pass for each other.
    """
    said = _wrong_way_round(*sides, *langs)
    if not said:
        return None
    return Finding(
        "warning" if is_close(*langs) else "fatal",
        "swapped-files",
        f"{', '.join(text.files)}: {said.format(src=text.src_lang, tgt=text.tgt_lang)}",
        "exchange data.src_lang and data.tgt_lang, or give the two files in the other order, or add a "
        "first row to the TSV that names its columns (en<TAB>de)",
        rows.size,
        (),
        rows.examples([0]),
    )


def wrong_way_round(text: ParallelText, src_lang: str, tgt_lang: str) -> str:
    """Say what shows that the sides of a text are not in these languages but the other way round.

    "" where nothing does, or where there are too few lines to tell.
    """
    src, tgt = _identify(text.src), _identify(text.tgt)
    if min(src.size, tgt.size) < _FEWEST_LINES:
        return ""
    said = _wrong_way_round(src, tgt, _known_as(src_lang), _known_as(tgt_lang))
    return said.format(src=src_lang, tgt=tgt_lang)


def _wrong_way_round(
    src: Identified, tgt: Identified, src_lang: str, tgt_lang: str
) -> str:
    """Say what shows that the sides have changed places; return an empty text where nothing does.

    Either both languages mostly stand on the other side; or one plainly does, and hardly stands on
    its own, which is seen also where the other language cannot be recognized.
    """
    if src_lang == tgt_lang or UNKNOWN in (src_lang, tgt_lang):
        return ""
    # each language on the other side, and on its own
    src_other = src.share(tgt_lang, src_lang)
    tgt_other = tgt.share(src_lang, tgt_lang)
    src_own = src.share(src_lang, tgt_lang)
    tgt_own = tgt.share(tgt_lang, src_lang)
    if min(src_other, tgt_other) >= _MOST and max(src_own, tgt_own) <= _FEW:
        return "the source looks like {tgt} and the target like {src}"
    if src_other >= _PLAIN and tgt_own <= _FEW:
        return "the source looks like {tgt}, but the target does not"
    if tgt_other >= _PLAIN and src_own <= _FEW:
        return "the target looks like {src}, but the source does not"
    return ""


def _other(
    text: ParallelText, sides: tuple[Identified, Identified], langs: tuple[str, str]
) -> Iterator[Finding]:
    """Report sides that are plainly in another language than they are said to be."""
    said = (text.src_lang, text.tgt_lang)
    seen = [side.main for side in sides]
    wrong = [
        n
        for n in (0, 1)
        if langs[n] in _labels() and sides[n].share(langs[n]) <= _FEW and seen[n]
    ]
    if wrong:
        looks = " and ".join(
            f"the {_SIDES[n]} is declared as {said[n]} but looks like {seen[n]}"
            for n in wrong
        )
        yield Finding(
            "warning",
            "other-language",
            f"{', '.join(text.files)}: {looks}",
            f"if so, add {_settings(wrong, seen)}; otherwise check whether these are the right files",
            len(wrong),
        )


def _unnamed(
    text: ParallelText, sides: tuple[Identified, Identified], langs: tuple[str, str]
) -> Iterator[Finding]:
    """Report the languages of sides whose language nobody has named."""
    seen = [side.main for side in sides]
    unnamed = [n for n in (0, 1) if langs[n] == UNKNOWN and seen[n]]
    if unnamed:
        looks = " and ".join(f"the {_SIDES[n]} looks like {seen[n]}" for n in unnamed)
        message = f"{', '.join(text.files)}: {looks}"
        yield Finding(
            "note",
            "language-not-named",
            message,
            f"if so, add {_settings(unnamed, seen)}",
            1,
        )


def _settings(numbers: Sequence[int], langs: Sequence[str | None]) -> str:
    """Write the settings that name the languages of these sides."""
    return " ".join(
        f"--set data.{('src_lang', 'tgt_lang')[n]}={langs[n]}" for n in numbers
    )


def _untold(text: ParallelText, langs: tuple[str, str]) -> Iterator[Finding]:
    """Report that neither language can be recognized, so that nobody can say whether they are named
    the right way round.
    """
    recognized = any(is_close(label, lang) for label in _labels() for lang in langs)
    if UNKNOWN in langs or langs[0] == langs[1] or recognized:
        return
    yield Finding(
        "note",
        "languages-not-recognized",
        f"{', '.join(text.files)}: neither {text.src_lang} nor {text.tgt_lang} can be recognized, "
        "so the order of the sides cannot be checked",
        "check the first lines of both sides yourself",
        1,
    )


def is_close(one: str, other: str) -> bool:
    """Return whether two languages pass for each other in short lines."""
    return one == other or any({one, other} <= group for group in _CLOSE)


def _belongs(seen: str, lang: str, beside: str | None = None) -> bool:
    """Return whether a line recognized as `seen` speaks for a language, not for the one it stands
    beside.
    """
    if seen == lang or beside is None:
        return is_close(seen, lang)
    return is_close(seen, lang) and not is_close(seen, beside)


def _known_as(tag: str) -> str:
    """Return a language by the code that the detector has for it."""
    lang = primary(tag)
    return _ALIASES.get(lang, lang)


def _identify(texts: Sequence[str]) -> Identified:
    """Classify an evenly spaced sample of lines; lines of hardly any letters are passed over."""
    stride = -(-len(texts) // _SAMPLE) or 1
    sample = [text for text in texts[::stride] if _letters(text) >= _LEAST_LETTERS]
    classified = [_detector().classify(text) for text in sample]
    lines = Counter(lang for lang, sure in classified if sure >= _SURE)
    return Identified(lines, len(sample))


def _letters(text: str) -> int:
    """Count the letters; one that is a syllable or a word, as in Chinese, counts for three."""
    return sum(
        (3 if ord(letter) >= 0x2E80 else 1) for letter in text if letter.isalpha()
    )


@cache
def _detector() -> LanguageIdentifier:
    """Load the detector once, which takes half a second."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _labels() -> frozenset[str]:
    return frozenset(_detector().labels)
