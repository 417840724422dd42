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
_NARROW = ".!?…؟۔।॥։።‼⁇⁈⁉" + _WIDE
_CLOSING = re.escape("\"'”’»›)]}」』）】〉》〕＂＇")

# Possessive repeats and the look-behind keep this linear on long runs of marks or spaces.
_END = re.compile(
    rf"(?P<wide>[{_WIDE}][{_NARROW}]*+[{_CLOSING}]*+\s*+)"
    rf"|(?<![{_NARROW}])(?P<narrow>[{_NARROW}]++[{_CLOSING}]*+\s++)"
    r"|[\r\n]\s*+"
)
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«„¿¡-]+$")
_INITIAL = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")  # "J", and "U.S" before its last dot
# A year or a longer number may well end a sentence.
_SHORT_NUMBER = re.compile(r"\d{1,2}")
_ITEM = re.compile(r"\s*+\d{1,2}")
_LONGEST_WORD = 40

# Languages that write an ordinal as a number and a dot: "am 3. Mai". Unicode's CLDR has that dot in
# their dates; Basque, Low German, Polish and Turkish have it, too. Where the language is unknown,
# "She is 12. He is ..." is divided: a model of single sentences would drop the second one, while of
# "Am 3. Mai ..." all is translated, in two parts.
_WITH_DOT = """
bs cnr cs da de dsb et eu fi fo gsw hr hsb hu is lb lv nb nds nn no pl sh sk sl sr tr
"""
_DOTTED_ORDINALS = frozenset(_WITH_DOT.split())

# Words whose dot seldom ends a sentence, without the dot.
_ABBREVIATIONS = """
mr mrs ms dr prof sr jr rev gen col capt lt sgt gov sen rep hon mt vol vols fig figs eq sec pp vs
inc ltd corp dept univ approx cf al eds jan feb mar apr aug sept oct nov dec bzw usw evtl ggf inkl zzgl vgl nr
hrsg mme mlle mgr cie sra uds núm pág avda ecc dott dhr mevr bijv enz blz ул стр рис им проф
"""
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())


def sentence_rules(language: str = UNKNOWN) -> dict[str, Any]:
    """Return what `split_sentences` goes by in a language, for a program that does the same: marks,
    each the inside of a set of a regular expression, words whose dot ends no sentence, and whether
    a number with a dot is an ordinal.
    """
    return {
        "wide": _WIDE,
        "narrow": _NARROW,
        "closing": _CLOSING,
        "abbreviations": sorted(_NEVER_LAST),
        "ordinals": primary(language) in _DOTTED_ORDINALS,
    }


def split_sentences(text: str, language: str = UNKNOWN) -> list[str]:
    """Cut a text after each sentence; white space stays with the sentence before, so joining gives
    the text back.

    A line break always ends a sentence. So does a CJK or Khmer mark, but before a comma, colon or
    semicolon, and in a quotation that と or って follows. Any other mark needs white space behind
    it, and no small letter after that. A dot ends none after an initial or a common abbreviation,
    or within a number; nor after a number of one or two digits with which the sentence begins, as
    in a list, or which is an ordinal in the text's `language` (BCP-47).
    """
    pieces = []
    start = 0
    for match in _END.finditer(text):
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
    following = text[match.end()]
    if match["wide"]:
        quoted = match["wide"][-1] in "」』”’"
        # 「はい。」と言った goes on
        return not (following in "、，；：,;:" or (quoted and following in "とっ"))
    if following.islower():
        return False
    marks = match["narrow"].rstrip()
    if marks[0] != "." or marks.startswith(".."):
        return True
    return _dot_ends(text, start, match.start(), language)


def _dot_ends(text: str, start: int, dot: int, language: str) -> bool:
    """Return whether the word before a single dot is of the kind that needs none itself."""
    word = _LAST_WORD.search(text[max(0, dot - _LONGEST_WORD) : dot])
    last = word[0].lower() if word else ""
    if last in _NEVER_LAST or _INITIAL.fullmatch(last):
        return False
    if not _SHORT_NUMBER.fullmatch(last):
        return True
    # such a number is an ordinal, or that of an item, or the last word
    if primary(language) in _DOTTED_ORDINALS:
        return False
    return not _ITEM.fullmatch(text, start, dot)
