"""The forms that languages have for numbers of things.

Sources: Qt 6, `numerus.cpp` of Qt Linguist, for its messages; Unicode CLDR, "Language Plural
Rules", for the categories of others, those of whole numbers.
"""

from weft.data.languages import primary

_QT_FORMS = {
    1: "bi bo dz fa fj gn hu id ja jv ko ms my om su th tr tt vi yo za zh",
    3: "be bs cs dv fil ga gv hr iu lt lv mi mk pl ro ru sa se sk sm sr uk",
    4: "gd mt sl",
    5: "cy",
    6: "ar",
}
_USUAL = ("one", "other")
_CATEGORIES = {
    ("other",): "bo dz id ja jv km ko lo ms my su th vi yo zh",
    ("one", "few", "other"): "bs hr ro sr",
    ("one", "few", "many", "other"): "be cs lt pl ru sk uk",
    ("one", "two", "other"): "he",
    ("one", "two", "few", "other"): "gd sl",
    ("one", "two", "few", "many", "other"): "ga mt",
    ("zero", "one", "other"): "lv",
    ("zero", "one", "two", "few", "many", "other"): "ar cy",
}


def qt_forms(language: str) -> int:
    """Return how many forms a message of Qt has in a language; two where that is not known."""
    code = primary(language)
    for number, codes in _QT_FORMS.items():
        if code in codes.split():
            return number
    return 2


def plural_categories(language: str) -> tuple[str, ...]:
    """Return the categories of a language; those of English where they are not known."""
    code = primary(language)
    for categories, codes in _CATEGORIES.items():
        if code in codes.split():
            return categories
    return _USUAL
