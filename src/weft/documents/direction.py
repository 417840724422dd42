"""The direction and the kind of script that a language is written in, by its code (BCP-47)."""

_LANGUAGES = "ar arc ckb dv fa he iw ku ks nqo pnb prs ps sd syr ug ur yi"
_SCRIPTS = "adlm arab aran hebr mand nkoo rohg samr syrc thaa"
_OTHER_SCRIPTS = {"latn", "cyrl", "deva", "guru"}
_EAST_ASIAN = {"zh", "ja", "ko", "yue", "lzh", "wuu"}


def is_right_to_left(code: str) -> bool:
    """Return whether a language is written from right to left; a script in its code counts more."""
    language, *rest = code.lower().split("-")
    if not _OTHER_SCRIPTS.isdisjoint(rest):
        return False
    is_told = not set(_SCRIPTS.split()).isdisjoint(rest)
    return is_told or language in _LANGUAGES.split()


def is_east_asian(code: str) -> bool:
    """Return whether office programs count a language's script to the Asian ones."""
    return code.lower().split("-")[0] in _EAST_ASIAN
