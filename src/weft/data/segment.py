"""Sentences of running text, found by line breaks and punctuation, for any language.

Used where a text is too long for a model, and where a model has learned from single sentences: it
is given one at a time.
"""

import re
from typing import Any

from weft.data.languages import UNKNOWN, primary

# Marks that end a sentence without a space behind them: CJK and Khmer.
_WIDE = "。！？｡．។៕"
# Marks that end one where a space follows; of these only the dot has other uses as well.
_NARROW = ".!?…؟۔।॥։።‼⁇⁈⁉\u037e" + _WIDE
_CLOSING = re.escape("\"'”’»›)]}」』）】〉》〕＂＇")
# Marks that close a quotation in some languages and open it in others.
_EITHER = "“«‘‹"
# Letters of Chinese and Japanese, between which no space stands.
_UNSPACED = "\u3041-\u30ff\u3400-\u9fff"
_QUESTIONS = frozenset("!?…؟‼⁇⁈⁉！？\u037e")
_ASKS = frozenset("?؟？")
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«„¿¡-]+$")
_LETTER = r"[^\W\d_][\u0900-\u0903\u093a-\u094f]{0,2}"  # also an akshara
_INITIAL = re.compile(
    rf"{_LETTER}(?:\.{_LETTER})*"
)  # "J", and "U.S" before its last dot
# A small letter that is a word: with an accent ("é"), or the unit of a number ("17 h").
_SMALL_WORD = re.compile("[\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
_UNIT = re.compile(r"\d\s?[^\W\d_]$")
# A year or a longer number may well end a sentence.
_SHORT_NUMBER = re.compile(r"\d{1,2}")
_ITEM = re.compile(r"\s*+\d{1,2}")
_DASH = re.compile(r"[—–―-]\s*")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 40

# Languages that write an ordinal as a number and a dot: "am 3. Mai". Unicode's CLDR has that dot in
# their dates; Basque, Low German, Polish and Turkish have it, too. Where the language is unknown,
# "She is 12. He is ..." is divided: a model of single sentences would drop the second one, while of
# "Am 3. Mai ..." all is translated, in two parts.
_WITH_DOT = """
bs cnr cs da de dsb et eu fi fo gsw hr hsb hu is lb lv nb nds nn no pl sh sk sl sr tr
"""
_DOTTED_ORDINALS = frozenset(_WITH_DOT.split())

# Languages that write nouns with a capital, so that one may follow an ordinal; and words that no
# ordinal stands before: there the dot ends a sentence.
_WITH_CAPITALS = frozenset({"de", "gsw", "lb", "nds"})
_BEGINNERS = """
aber als alle am an auf aus bei beide da dabei danach dann daher darum das dass dem den der des deshalb dich die
dies diese dieser dieses dir doch dort du durch ein eine einer er es für hier ich ihm ihn ihr ihre im in ist jede
jeder jetzt kein keine man mein meine mit nach nicht niemand noch nun nur ob oder schon sein seine seit sich sie
sind so über um und uns unser unsere unter viele vom von vor wann warum was weil wenn wer wie wir wird wo zu zum
zur zwischen
"""
_BEGINNERS_SET = frozenset(_BEGINNERS.split())

# Words whose dot seldom ends a sentence, without the dot.
_ABBREVIATIONS = """
mr mrs ms dr prof sr jr rev gen col capt lt sgt gov sen rep hon mt vol vols fig figs eq sec pp vs
inc ltd corp dept univ approx cf al eds jan feb mar apr aug sept oct nov dec bzw usw evtl ggf inkl zzgl vgl nr
hrn hrsg mme mlle mgr cie sra dra uds ee núm pág avda dott dhr mevr bijv enz blz zob ul ул стр рис им проф डॉ
"""
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())
# Words whose dot ends none where a number follows.
_BEFORE_NUMBER = """
no nos abb abs anm app art arts aufl az bd ca cap cca ch chap chs circa cl fol fn jg kap kl lfd max min num obr odst p
pag par para paras pt pts pos r rys sect sez sig sv tab tabl tav taf teil tel tom ust ziff §
гл кн пп рис ст стр табл см тел
"""
_NUMBERED = frozenset(_BEFORE_NUMBER.split())
_STREET = "str"  # of "Hauptstr. 5"
_CLOCK = ("a.m", "p.m")  # may be the last words


def _end_of(narrow: str) -> re.Pattern[str]:
    """Return what may be the end of a sentence, with the marks that need a space behind them.

    Possessive repeats and the look-behind keep this linear on long runs of marks or spaces.
    """
    closing = rf"(?:[{_CLOSING}{_EITHER}]|[ \u00a0\u202f](?=[»›](?:\s|$)))*+"
    return re.compile(
        rf"(?P<wide>[{_WIDE}][{narrow}]*+[{_CLOSING}]*+\s*+|(?<![!?])[!?]++(?=[{_UNSPACED}]))"
        rf"|(?<![{narrow}])(?P<narrow>[{narrow}]++{closing}\s++)"
        r"|[\r\n]\s*+"
    )


_END = _end_of(_NARROW)
_GREEK_NARROW = _NARROW + ";"
_GREEK_END = _end_of(_GREEK_NARROW)


def sentence_rules(language: str = UNKNOWN) -> dict[str, Any]:
    """Return what `split_sentences` goes by in a language, for a program that does the same: marks,
    each the inside of a set of a regular expression, words whose dot ends no sentence, or none
    where a number follows, whether a number with a dot is an ordinal, and the words that follow
    none.
    """
    code = primary(language)
    return {
        "wide": _WIDE,
        "narrow": _GREEK_NARROW if code == "el" else _NARROW,
        "closing": _CLOSING,
        "either": _EITHER,
        "unspaced": _UNSPACED,
        "questions": "".join(sorted(_QUESTIONS)),
        "abbreviations": sorted(_NEVER_LAST),
        "numbered": sorted(_NUMBERED),
        "ordinals": code in _DOTTED_ORDINALS,
        "beginners": _BEGINNERS.split() if code in _WITH_CAPITALS else [],
    }


def split_sentences(text: str, language: str = UNKNOWN) -> list[str]:
    """Cut a text after each sentence; white space stays with the sentence before, so joining gives
    the text back.

    A line break always ends a sentence. So does a CJK or Khmer mark, but before a comma, colon or
    semicolon, and in a quotation that と or って follows; and `!` or `?` before a letter of Chinese
    or Japanese. Any other mark needs white space behind it, and no small letter after that, or
    after a dash there; a question mark alone may have one after it. A dot ends none after an
    initial or a common abbreviation, or within a number; nor after a number of one or two digits
    with which the sentence begins, as in a list, or which is an ordinal in the text's `language`
    (BCP-47).
    """
    pieces = []
    start = 0
    end = _GREEK_END if primary(language) == "el" else _END
    for match in end.finditer(text):
        stop = match.end()
        if (
            stop < len(text)
            and _ends_sentence(text, start, match, language)
            and not text[start:stop].isspace()
        ):
            pieces.append(text[start:stop])
            start = stop
    return [*pieces, text[start:]] if text else []


def _ends_sentence(text: str, start: int, match: re.Match[str], language: str) -> bool:
    """Return whether the sentence that begins at `start` ends with what matched."""
    if "\n" in match[0] or "\r" in match[0]:
        return True
    stop = match.end()
    if match["wide"]:
        following = text[stop]
        quoted = match["wide"][-1] in "」』”’"
        # 「はい。」と言った goes on
        return not (following in "、，；：,;:" or (quoted and following in "とっ"))
    marks = match["narrow"].rstrip()
    if text[stop].islower() and _ASKS.issuperset(marks):  # of a chat without capitals
        return True
    if _goes_on(text, stop):
        return False
    is_dot = marks[0] == "." and not marks.startswith("..")
    if not is_dot or not _QUESTIONS.isdisjoint(marks):
        return True
    return _dot_ends(text, start, match.start(), stop, language)


def _goes_on(text: str, stop: int) -> bool:
    """Return whether a small letter follows, or a dash and one: "Stop! — he said"."""
    dash = _DASH.match(text, stop)
    first = dash.end() if dash else stop
    is_small = text[first : first + 1].islower()
    is_name = text[first + 1 : first + 2].isupper()  # iPad
    return is_small and not is_name


def _dot_ends(text: str, start: int, dot: int, stop: int, language: str) -> bool:
    """Return whether the word before a single dot is of the kind that needs none itself; what
    follows begins at `stop`.
    """
    before = text[max(start, dot - _LONGEST_WORD) : dot]
    found = _LAST_WORD.search(before)
    word = found[0] if found else ""
    last = word.lower()
    is_before_number = text[stop].isdecimal()
    if is_before_number and (last in _NUMBERED or last.endswith(_STREET)):
        return False
    if last in _NEVER_LAST:
        return False
    if _INITIAL.fullmatch(word):
        return _is_no_initial(word, before)
    if not _SHORT_NUMBER.fullmatch(last):
        return True
    # such a number is an ordinal, or that of an item, or the last word
    if primary(language) in _DOTTED_ORDINALS:
        return _begins_sentence(text, stop, language)
    return not _ITEM.fullmatch(text, start, dot)


def _is_no_initial(word: str, before: str) -> bool:
    """Return whether a word that looks like an initial may as well be the last: a unit, a time."""
    if word in _CLOCK or _SMALL_WORD.fullmatch(word):
        return True
    return word.islower() and _UNIT.search(before) is not None


def _begins_sentence(text: str, stop: int, language: str) -> bool:
    """Return whether a word follows that stands after no ordinal, in a language where nouns have
    capitals.
    """
    word = _WORD.match(text, stop)
    if word is None or primary(language) not in _WITH_CAPITALS:
        return False
    return word[0].lower() in _BEGINNERS_SET
