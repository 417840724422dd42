"""Languages as clients call them, and as the models do."""

from collections.abc import Sequence
from functools import lru_cache

from weft.data.languages import canonical, primary
from weft.serve.catalogue import Catalogue, ServedModel
from weft.serve.refusals import OtherLanguages, UnknownLanguage

AUTO = "auto"  # the source language is to be found out

# Codes that BCP-47 has given up, that LibreTranslate made up, and regions that stand for a script.
_ALIASES = {
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "pb": "pt-BR",
    "zt": "zh-Hant",
    "zh-CN": "zh-Hans",
    "zh-SG": "zh-Hans",
    "zh-HK": "zh-Hant",
    "zh-MO": "zh-Hant",
    "zh-TW": "zh-Hant",
}
# What is as good, or the nearest, where a language itself is not served; the better one first.
_INSTEAD = {
    "zh": ("zh-Hans", "zh-CN"),
    "zh-Hans": ("zh-CN", "zh"),
    "zh-Hant": ("zh-TW", "zh-HK", "zh"),
    "pt": ("pt-PT",),
    "no": ("nb", "nn"),
    "nb": ("no",),
    "nn": ("no",),
    "fil": ("tl",),
    "tl": ("fil",),
}


def served_language(
    catalogue: Catalogue, code: str, param: str, among: Sequence[str] | None = None
) -> str:
    """Return the language of the models that a client's code means: `de` for `DE-AT` and `deu`.

    Raises UnknownLanguage where no model has it.
    """
    known = catalogue.languages() if among is None else among
    found = _meant(code, known)
    if found is None:
        raise UnknownLanguage(code, param)
    return found


def refuse_other(model: ServedModel, code: str, own: str, param: str) -> None:
    """Raise OtherLanguages where a code does not mean `own`, a language of the model."""
    if _meant(code, [own]) is None:
        raise OtherLanguages(model.id, model.src, model.tgt, param)


def by_model(
    catalogue: Catalogue, name: str, languages: tuple[str | None, str]
) -> tuple[str, str]:
    """Return the languages of a model that is named beside others. Raises UnknownModel, and
    OtherLanguages where they are not the same.
    """
    served = catalogue.model(name, "translation")
    own = (served.src, served.tgt)
    for code, known, param in zip(languages, own, ("source", "target"), strict=True):
        if code is not None:
            refuse_other(served, code, known, param)
    return own


def _meant(code: str, known: Sequence[str]) -> str | None:
    """Return that of the known languages that a code means."""
    wanted = _readings(code.strip())
    for reading in wanted:
        if reading in known:
            return reading
    for reading in wanted:
        for other in known:
            if primary(other) == primary(reading):
                return other
    return None


@lru_cache(maxsize=1000)
def _readings(code: str) -> tuple[str, ...]:
    """Return the canonical codes that a client's code may mean, the closest first."""
    asked = canonical(code)
    if asked is None:
        return ()
    meant = _ALIASES.get(asked, asked)
    return (asked, meant, *_INSTEAD.get(meant, ()))
