"""Numbers that a text has and its translation has not, or the other way round.

Digits are compared, whatever marks and spaces are between them: 1,234.5 may become 1.234,5, and
2026-11-24 a date with the name of its month. Small numbers and round ones may become words, and
years of eras those of the usual calendar.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal
from unicodedata import decimal

from weft.data.dates import EraYear, era_years
from weft.data.languages import UNKNOWN, primary

Role = Literal["", "name", "month", "era"]
"""What a number is a part of: nothing, a name such as SHA512, 9月, or a date such as 建保2年."""

_MYRIADS = {
    "千": 3,
    "천": 3,
    "万": 4,
    "萬": 4,
    "만": 4,
    "億": 8,
    "亿": 8,
    "억": 8,
    "兆": 12,
}
# digits, and single marks or the spaces of thousands between them: 1,000.5 and 12:30 and 10 000;
# or parts of one number, each but the last with its power of ten: 3万3000
_DIGITS = re.compile(
    rf"(?:\d[\d,，]{{0,6}}[{''.join(_MYRIADS)}]){{1,3}}\d[\d,，]{{0,6}}[{''.join(_MYRIADS)}]?"
    r"(?![\d.,，百十])"
    r"|(?:\d{1,3}(?: \d{3}(?!\d))++|\d++)(?:[.,:/'’٫٬，．：\u00a0\u202f-]\d++)*+"
)
_PART = re.compile(rf"([\d,，]+)([{''.join(_MYRIADS)}]?)")
_SPANS = re.compile("[-/:：]")  # marks between numbers that are several: 2-3
_RUN = re.compile(r"\d+")
_SHORT_SPAN = re.compile(r"[12]\d{3}[-/]\d\d")  # of years
# what makes a number a part of a name, such as SHA512 or COVID-19
_NAME_BEFORE = re.compile(r"(?:[A-Za-z_\d]|[A-Za-z]-)$")
_NAME_BEHIND = re.compile(r"[A-Za-z_]|['’]s\b")
_FEW = 2  # digits of a number that may well be written in words
_LAST_MONTH = 12
_MONTH = re.compile(r"\s?[月월]")
_HALF_DAY = 12  # hours by which two clocks differ
_MOST_PAIRS = 1_000  # that are looked at one by one
_MOST_NAMED = 10
_MOST_SHOWN = 40  # characters of one
_LONGEST = 18  # digits of a number that has a value
_HALF_HOUR = re.compile(r"\d\d?[.:]30")
_CLOCK = re.compile(
    r"\b[ap]\.?\s?m\b|o['’]clock|\bUhr\b|[時时点點]|\d:\d|\d\s?h\b", re.I
)

# Words of numbers from ten on, by languages (BCP-47), as far as they tell these from other words.
_HAN = r"[十百千万萬亿億廿〇零]|[一二三四五六七八九两]{2}"
_WORDS = {
    "de": r"zehn|\belf|zwölf|(?:zwan|vier|fünf|sech|sieb|acht|neun)zig|dreißig|dreissig"
    r"|hundert|tausend|million|milliard|dutzend",
    "en": r"\b(?:ten|tenth|eleven|twel|dozen|score)|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ie)|hundred|thousand|[mbtr]illion",
    "es": r"\b(?:diez|once|doce|trece|catorce|quince|dieci|veint|treint|cuarent|cincuent|sesent"
    r"|setent|ochent|novent|cien|mil\b|mill|docen|decen)|cient|quinient",
    "fr": r"\b(?:dix|onz|douz|treiz|quatorz|quinz|seiz|vingt|trent|quarant|cinquant|soixant"
    r"|septant|huitant|nonant|cent|mill)",
    "it": r"\b(?:dieci|dici|undici|dodici|tredici|quattordici|quindici|sedici|vent|trent|quarant"
    r"|cinquant|sessant|settant|ottant|novant|cent|mill|dozzin)|cento|mila",
    "ja": _HAN,
    "ko": r"[십백천만억]",
    "nl": r"tien|\belf|twaalf|(?:twin|der|veer|vijf|zes|zeven|tach|negen)tig|honderd|duizend"
    r"|miljoen|miljard|dozijn",
    "pt": r"\b(?:dez|onze|doze|treze|catorze|quatorze|quinze|vinte|trinta|quarenta|cinquenta"
    r"|sessenta|setenta|oitenta|noventa|cem\b|cent|mil\b|milh|dúzi)|cento|zento",
    "ru": r"десят|надцат|сорок|девяност|\bст[оа]\b|сот|тысяч|миллион|миллиард|дюжин",
    "zh": _HAN,
}
# and words behind a number that make it larger; a billion is of two sizes
_SCALES = {
    r"thousand|tausend|mill?e\b|mil\b|duizend|тыс|千": (3,),
    r"万|萬|만": (4,),
    r"million|millón|milion|milhã|milhõ|miljoen|mio\b|миллион|млн|百万": (6,),
    r"亿|億|억": (8,),
    r"milliard|miljard|mrd\b|миллиард|млрд": (9,),
    r"billion|billón|bilion|bilhã|bilhõ|biljoen": (9, 12),
}
_LARGER = [
    (re.compile(rf"[\s-]?(?:{words})", re.I), tens) for words, tens in _SCALES.items()
]


@dataclass(frozen=True)
class Number:
    """A number of a text, which is its characters from `start` to before `end`.

    `scales` are powers of ten of a word behind it; `is_decade` is that of 1930s.
    """

    text: str
    start: int
    end: int
    role: Role = ""
    scales: Sequence[int] = (0,)
    is_decade: bool = False

    @property
    def is_alone(self) -> bool:
        """Return whether it is no part of a name or of a date."""
        return not self.role

    @cached_property
    def groups(self) -> Sequence[str]:
        """Return its digits between marks, without the zeros before each, and without full hours
        and cents: 9:00 is 9.
        """
        if self._is_in_myriads:
            return [self.digits]
        runs = [_plain(found) for found in _RUN.findall(self.text)]
        if len(runs) == 2 and runs[1] == "00":
            del runs[1]
        return [run.lstrip("0") or "0" for run in runs]

    @cached_property
    def digits(self) -> str:
        """Return its digits, of whatever script, without marks."""
        if self._is_in_myriads:
            return str(_value_in_myriads(self.text))
        return "".join(map(_plain, _RUN.findall(self.text)))

    @property
    def _is_in_myriads(self) -> bool:
        return not _MYRIADS.keys().isdisjoint(self.text)

    @property
    def years(self) -> Sequence[str]:
        """Return both years of a span whose second is cut short: 1338 and 1358 of 1338-58."""
        if _SHORT_SPAN.fullmatch(self.text) is None:
            return ()
        first, last = _RUN.findall(self.text)
        return [_plain(first), _plain(first)[:2] + _plain(last)]

    @property
    def parts(self) -> Sequence[str]:
        """Return the groups, or what may say a decade: 30, and the number of its century."""
        if self.years:
            return [*self.groups, self.years[1]]
        if not self.is_decade:
            return self.groups
        century = int(self.digits[:2]) + 1
        return [self.digits, self.digits[2:], str(century)]

    @property
    def size(self) -> int:
        """Return how many digits it has that say something; of several numbers, the longest."""
        lengths = map(len, self.groups)
        return max(lengths) if _SPANS.search(self.text) else sum(lengths)

    @property
    def is_round(self) -> bool:
        """Return whether it is easily said in words: with two zeros at its end, or a half hour."""
        return self.digits.endswith("00") or _HALF_HOUR.fullmatch(self.text) is not None

    @property
    def values(self) -> set[int]:
        """Return its values in thousandths. Up to two digits behind a mark are decimals."""
        if len(self.digits) > _LONGEST:
            return set()
        if self._is_in_myriads:
            return {int(self.digits) * 10**3}
        *before, last = _RUN.findall(self.text)
        places = len(last) if before and len(last) <= _FEW else 0
        value = int(self.digits) * 10 ** (3 - places)
        return {value * 10**scale for scale in self.scales}


def _plain(digits: str) -> str:
    return "".join(str(decimal(digit)) for digit in digits)


def _value_in_myriads(text: str) -> int:
    """Return the value of a number in parts: 33,000 of 3万3000."""
    value = 0
    for digits, myriad in _PART.findall(text):
        part = int(_plain("".join(filter(str.isdecimal, digits))))
        value += part * 10 ** _MYRIADS.get(myriad, 0)
    return value


@dataclass(frozen=True)
class Difference:
    """The numbers of a source that its translation lacks, and those that it has for no reason."""

    missing: Sequence[Number] = ()
    added: Sequence[Number] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.added)

    def to_json(self) -> dict[str, list[str]]:
        """Return the numbers as they stand."""
        return {
            "missing": [number.text for number in self.missing],
            "added": [number.text for number in self.added],
        }

    def __str__(self) -> str:
        return how_they_differ(**self.to_json())


def how_they_differ(missing: Sequence[str], added: Sequence[str]) -> str:
    """Say which numbers differ."""
    if missing and added:
        return f"the source has {listed(missing)}, the translation {listed(added)}"
    if missing:
        return f"the source has {listed(missing)}, the translation does not"
    return f"the translation has {listed(added)}, the source does not"


def listed(numbers: Sequence[str]) -> str:
    """Name the first numbers, and say how many more there are."""
    named = list(map(_shortened, numbers[:_MOST_NAMED]))
    if len(numbers) > _MOST_NAMED:
        named.append(f"{len(numbers) - _MOST_NAMED} more")
    *most, last = named
    return f"{', '.join(most)} and {last}" if most else last


def _shortened(number: str) -> str:
    return number if len(number) <= _MOST_SHOWN else f"{number[: _MOST_SHOWN - 1]}…"


def difference(
    source: str, translation: str, languages: tuple[str, str] = ("", "")
) -> Difference:
    """Compare the numbers of a text and of its translation; languages are BCP-47, empty or `und`
    where unknown.
    """
    if not _RUN.search(source) and not _RUN.search(translation):
        return Difference()
    src = numbers_of(source)
    tgt = numbers_of(translation)
    alone: tuple[Role, ...] = ("",)
    missing = left(src, tgt, alone, years_of(translation))
    added = left(tgt, src, alone, years_of(source))
    drop_same(missing, added, source, translation)
    src_lang, tgt_lang = languages
    return Difference(
        tuple(telling(missing, added, translation, tgt_lang)),
        tuple(telling(added, missing, source, src_lang)),
    )


def years_of(text: str) -> frozenset[int]:
    """Return the years that a text counts by eras."""
    return frozenset().union(*(era.years for era in era_years(text)))


def numbers_of(text: str) -> list[Number]:
    """Return the numbers of a text, those in names too."""
    eras = era_years(text)
    return [_number(text, *found.span(), eras) for found in _DIGITS.finditer(text)]


def _number(text: str, start: int, end: int, eras: Sequence[EraYear]) -> Number:
    before = _NAME_BEFORE.search(text[max(0, start - 2) : start])
    role: Role = ""
    if any(era.start <= start < era.end for era in eras) and end - start <= _FEW:
        role = "era"
    elif _MONTH.match(text, end):
        role = "month"
    elif before or _NAME_BEHIND.match(text, end):
        role = "name"
    found = (tens for word, tens in _LARGER if word.match(text, end))
    is_decade = end - start == 4 and text.startswith("0s", end - 1)
    scales = next(found, (0,))
    return Number(text[start:end], start, end, role, scales, is_decade)


def left(
    own: Sequence[Number],
    others: Sequence[Number],
    roles: Sequence[Role],
    years: frozenset[int] = frozenset(),
) -> list[Number]:
    """Return those numbers of a side, of these roles, that the other has not; counted.

    A number with marks may stand there in parts, and parts in one number; `years` are those that
    the other side has by eras.
    """
    there = Counter(number.digits for number in others)
    rest = []
    for number in own:
        if number.role not in roles:
            continue
        if there[number.digits] > 0:
            there[number.digits] -= 1
        else:
            rest.append(number)
    parts: Counter[str] = Counter()
    for number in others:
        if there[number.digits] > 0:
            there[number.digits] -= 1
            parts.update(number.parts)
    if years:
        rest = [
            n for n in rest if len(n.digits) > _LONGEST or int(n.digits) not in years
        ]
    return [number for number in rest if not _takes(number, parts)]


def _takes(number: Number, parts: Counter[str]) -> bool:
    """Take the groups of a number out of some parts; return whether all were there. The month of a
    date may be a word.
    """
    groups = number.groups
    if _HALF_HOUR.fullmatch(number.text):
        groups = groups[:1]
    elif len(groups) == 3:
        groups = [group for group in groups if not _may_be_month(group)] or groups
    for wanted in filter(None, (Counter(groups), Counter(number.years))):
        if not wanted - parts:
            parts.subtract(wanted)
            return True
    return False


def _may_be_month(group: str) -> bool:
    return len(group) <= _FEW and int(group) <= _LAST_MONTH


def drop_same(
    missing: list[Number], added: list[Number], source: str, translation: str
) -> None:
    """Remove the numbers that say the same on both sides, each once."""
    if not 0 < len(missing) * len(added) <= _MOST_PAIRS:
        return
    is_clock = bool(_CLOCK.search(source) or _CLOCK.search(translation))
    for one, other in product(tuple(missing), tuple(added)):
        if one in missing and other in added and _are_same(one, other, is_clock):
            missing.remove(one)
            added.remove(other)


def _are_same(one: Number, other: Number, is_clock: bool) -> bool:
    """Return whether two numbers say the same by a word behind one, or on two clocks."""
    if one.scales != other.scales and one.values & other.values:
        return True
    hour, *minutes = one.groups
    other_hour, *other_minutes = other.groups
    if (
        not is_clock
        or minutes != other_minutes
        or max(map(len, (hour, other_hour))) > _FEW
    ):
        return False
    return abs(int(hour) - int(other_hour)) == _HALF_DAY


def telling(
    own: Sequence[Number], others: Sequence[Number], text: str, language: str
) -> Iterator[Number]:
    """Yield the numbers of a side that cannot be words of the other side's `text`."""
    if not own:
        return
    words = _words(language)
    has_no_word = words is not None and words.search(text) is None
    has_small = any(other.size <= _FEW for other in others)
    for number in own:
        if number.size == 1:
            # it is told where another stands for it, not where it may have become a word
            is_telling = has_small
        elif number.size > _FEW and (words is None or not number.is_round):
            is_telling = True
        else:
            is_telling = has_no_word or bool(others)
        if is_telling:
            yield number


def _words(language: str) -> re.Pattern[str] | None:
    """Return what the words of a language's numbers have, of all languages where it is unknown;
    None where they are not known.
    """
    code = primary(language) if language else UNKNOWN
    if code == UNKNOWN:
        return _ANY
    return _OF.get(code)


_OF = {code: re.compile(words, re.I) for code, words in _WORDS.items()}
_ANY = re.compile("|".join(_WORDS.values()), re.I)
