"""Sentences of running text, found by punctuation alone, for any language.

Used where a text is too long for a model.
"""

import re

# Marks that end a sentence without a space behind them: CJK and Khmer.
_WIDE = "。！？｡．។៕"
# Marks that end one where a space follows; of these only the dot has other uses as well.
_NARROW = ".!?…؟۔।॥։።‼⁇⁈⁉" + _WIDE
_CLOSING = re.escape("\"'”’»›)]}」』）】〉》〕＂＇")

# Possessive repeats and the look-behind keep this linear on long runs of marks or spaces.
_END = re.compile(
    rf"(?P<wide>[{_WIDE}][{_NARROW}]*+[{_CLOSING}]*+\s*+)"
    rf"|(?<![{_NARROW}])(?P<narrow>[{_NARROW}]++[{_CLOSING}]*+\s++)"
    r"|(?P<paragraph>\n\s*+)"
)
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«„¿¡-]+$")
_INITIAL = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")  # "J", and "U.S" before its last dot
# "am 3. Mai"; a year or a longer number may well end a sentence
_ORDINAL = re.compile(r"\d{1,2}")
_LONGEST_WORD = 40

# Words whose dot seldom ends a sentence, without the dot.
_ABBREVIATIONS = """
mr mrs ms dr prof sr jr rev gen col capt lt sgt gov sen rep hon mt vol vols fig figs eq sec pp vs
inc ltd corp dept univ approx cf al eds jan feb mar apr aug sept oct nov dec bzw usw evtl ggf inkl zzgl vgl nr
hrsg mme mlle mgr cie sra uds núm pág avda ecc dott dhr mevr bijv enz blz ул стр рис им проф
"""
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())


def split_sentences(text: str) -> list[str]:
    """Cut a text after each sentence; white space stays with the sentence before, so joining gives
    the text back.

    A dot ends no sentence after an initial or a common abbreviation, within a number, or before a
    small letter.
    """
    pieces = []
    start = 0
    for match in _END.finditer(text):
        stop = match.end()
        if (
            stop < len(text)
            and _ends_sentence(text, match)
            and not text[start:stop].isspace()
        ):
            pieces.append(text[start:stop])
            start = stop
    return [*pieces, text[start:]] if text else []


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if match["paragraph"]:
        return True
    following = text[match.end()]
    if match["wide"]:
        quoted = match["wide"][-1] in "」』”’"
        # 「はい。」と言った goes on
        return not (following in "、，；：,;:" or (quoted and following in "とっ"))
    if following.islower():
        return False
    marks = match["narrow"].rstrip()
    return marks[0] != "." or marks.startswith("..") or _dot_ends(text, match.start())


def _dot_ends(text: str, dot: int) -> bool:
    """Return whether the word before a single dot is of the kind that needs none itself."""
    word = _LAST_WORD.search(text[max(0, dot - _LONGEST_WORD) : dot])
    last = word[0].lower() if word else ""
    return not (
        last in _NEVER_LAST or _INITIAL.fullmatch(last) or _ORDINAL.fullmatch(last)
    )
