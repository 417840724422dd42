"""The encoding that bytes are probably in that are not UTF-8, and the command that converts
them.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable
from pathlib import Path

_SAMPLE_BYTES = 65_536
_TOO_FEW = 6  # bytes to tell a script by
# of the characters that are not ASCII: so many must be what text in the encoding is made of
_FEWEST = 0.7
_HIGH = re.compile(rb"[\x80-\xff]+")
# The commoner characters of a national encoding, by the first bytes of the rows in which they
# stand.
_CHINESE, _TAIWANESE, _KOREAN = (0xB0, 0xD7), (0xA4, 0xC6), (0xB0, 0xC8)
_SYMBOLS = "“”‘’„‚–—…•€£§°«»©®™·ºª¿¡´´×"


def probable_encoding(data: bytes) -> str:
    """Guess the encoding of bytes of text that are not UTF-8, by the name that iconv has for it.

    Returns "" where nothing speaks for any.
    """
    sample = _whole_lines(data)
    num_high = sum(map(len, _HIGH.findall(sample)))
    is_latin = num_high <= _num_ascii_letters(sample)
    if not num_high or (not is_latin and num_high < _TOO_FEW):
        return ""
    for name, codec, is_usual, fewest in _WIDE:
        if _share(sample, codec, is_usual) >= fewest:
            return name
    if not is_latin:
        shares = {
            name: _alphabet_share(sample, codec, script)
            for name, codec, script in _ALPHABETS
        }
    else:
        shares = {name: _latin_share(sample, codec) for name, codec in _LATIN}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= _FEWEST else ""


def conversion(path: Path | None, encoding: str) -> str:
    """Write the command that makes UTF-8 of a file, plain or packed with gzip, or of what comes by
    a pipe.
    """
    convert = f"iconv -f {encoding or 'ENCODING'} -t UTF-8"
    if path is None:
        return convert
    # in front: what a name says of languages and format is at its end
    new_name = f"utf8.{path.name.removesuffix('.gz')}"
    new = shlex.quote(str(path.with_name(new_name)))
    old = shlex.quote(str(path))
    if path.name.endswith(".gz"):
        return f"zcat {old} | {convert} > {new}"
    return f"{convert} {old} > {new}"


def saving(path: Path | None, encoding: str) -> str:
    """Say how text in another encoding becomes UTF-8: by the program that wrote it, or by a
    command.
    """
    if path is None or path.name.endswith(".gz"):
        return f"convert it: {conversion(path, encoding)}"
    return (
        "save it as UTF-8 where it was written (a spreadsheet: Save as, CSV UTF-8; Notepad: Save as, encoding "
        f"UTF-8), or convert it: {conversion(path, encoding)}"
    )


def remedy(path: Path | None, data: bytes) -> str:
    """Say what to do about text that is not UTF-8."""
    encoding = probable_encoding(data)
    probably = "it is in another encoding (iconv -l lists them)"
    if encoding:
        probably = f"it looks like {encoding}"
    return f"{probably}; {saving(path, encoding)}"


def _whole_lines(data: bytes) -> bytes:
    """Return the first of the lines that are not ASCII, so that no character is cut."""
    lines = data.split(b"\n")
    # the last one may be cut off
    foreign = [line for line in lines[:-1] if not line.isascii()]
    size = 0
    kept = []
    for line in foreign or lines:
        size += len(line) + 1
        kept.append(line)
        if size > _SAMPLE_BYTES:
            break
    return b"\n".join(kept)


def _num_ascii_letters(sample: bytes) -> int:
    """Count the letters of ASCII, which are more than the other bytes together where the script is
    Latin.
    """
    return sum(bytes([byte]).isalpha() * sample.count(byte) for byte in range(128))


def _share(sample: bytes, codec: str, is_usual: Callable[[str], bool]) -> float:
    """Return the share of characters beyond ASCII that are usual in the encoding; 0 where the bytes
    are not in it.
    """
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    foreign = [letter for letter in text if not letter.isascii()]
    return sum(map(is_usual, foreign)) / max(len(foreign), 1)


def _alphabet_share(sample: bytes, codec: str, script: str) -> float:
    """Return the share of characters beyond ASCII that are letters of a script as words have them:
    small, or the first of a word.
    """
    text = sample.decode(codec, "replace")
    foreign = [i for i, letter in enumerate(text) if not letter.isascii()]
    good = 0
    for i in foreign:
        letter = text[i]
        if unicodedata.name(letter, "").startswith(script):
            begins = i == 0 or not text[i - 1].isalpha()
            good += letter.islower() or begins or not letter.isupper()
    return good / max(len(foreign), 1)


def _latin_share(sample: bytes, codec: str) -> float:
    """Return the share of characters beyond ASCII that Latin text has: letters, and marks that do
    not stand between two letters.
    """
    text = f" {sample.decode(codec, 'replace')} "
    foreign = [i for i, letter in enumerate(text) if not letter.isascii()]
    good = 0
    for i in foreign:
        inside = text[i - 1].isalpha() and text[i + 1].isalpha()
        good += (
            text[i].isalpha()
            or (text[i] in _SYMBOLS and (not inside or text[i] in "’‘–—"))
            or text[i] == "\xa0"
        )
    return good / max(len(foreign), 1)


def _is_common(codec: str, rows: tuple[int, int]) -> Callable[[str], bool]:
    """Return a test whether a character stands in the rows of the encoding's commoner ones, or is
    punctuation.
    """

    def is_common(letter: str) -> bool:
        raw = letter.encode(codec, "ignore")
        is_in_rows = len(raw) == 2 and rows[0] <= raw[0] <= rows[1]
        return is_in_rows or letter in "，。、！？；：（）「」『』《》"

    return is_common


def _is_kana(letter: str) -> bool:
    return "\u3040" <= letter <= "\u30ff"


# Name, codec, what is usual, and the least share of it. Japanese is told by its kana, which no
# other text has.
_WIDE = (
    ("SHIFT_JIS", "cp932", _is_kana, 0.2),
    ("EUC-JP", "euc-jp", _is_kana, 0.2),
    ("EUC-KR", "cp949", _is_common("euc-kr", _KOREAN), 0.9),
    ("GB18030", "gb18030", _is_common("gb2312", _CHINESE), 0.8),
    ("BIG5", "big5", _is_common("big5", _TAIWANESE), 0.8),
)
_ALPHABETS = (
    # its letters are letters by the next one as well, not the other way round
    ("WINDOWS-1255", "cp1255", "HEBREW"),
    ("WINDOWS-1251", "cp1251", "CYRILLIC"),
    ("KOI8-R", "koi8-r", "CYRILLIC"),
    ("CP866", "cp866", "CYRILLIC"),
    ("WINDOWS-1253", "cp1253", "GREEK"),
    ("ISO-8859-5", "iso-8859-5", "CYRILLIC"),
    ("WINDOWS-1256", "cp1256", "ARABIC"),
)
_LATIN = (("WINDOWS-1252", "cp1252"), ("WINDOWS-1250", "cp1250"))
