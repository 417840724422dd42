"""Inflected words of three languages, which fill the slots of a sentence pattern.

Every filler keeps, for each language, a table from the name of a form to its text. A form that
depends on the person it agrees with ("his coat", "trinkst") is a tuple with one text for each entry
of `AGREEMENT`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

Form = str | tuple[str, ...]
Forms = dict[str, Form]

LANGUAGES = ("en", "zh", "de")
AGREEMENT = ("1s", "2s", "m", "f", "1p", "3p")  # I, you, he, she, we, they
POSSESSIVE = {
    "en": ("my", "your", "his", "her", "our", "their"),
    "zh": ("我", "你", "他", "她", "我们", "他们"),
    "de": ("mein", "dein", "sein", "ihr", "unser", "ihr"),
}
FUNCTION_WORDS = frozenset(  # words whose combinations are not worth holding out
    [
        *(
            "a",
            "an",
            "the",
            "this",
            "that",
            "these",
            "those",
            "it",
            "some",
            "not",
            "very",
            "too",
            "and",
            "or",
            "but",
        ),
        *(
            "of",
            "to",
            "in",
            "on",
            "at",
            "for",
            "with",
            "about",
            "up",
            "down",
            "from",
            "by",
            "next",
            "front",
            "near",
        ),
        *(
            "i",
            "you",
            "he",
            "she",
            "we",
            "they",
            "me",
            "my",
            "your",
            "his",
            "her",
            "our",
            "their",
        ),
        *(
            "be",
            "am",
            "is",
            "are",
            "was",
            "were",
            "do",
            "does",
            "did",
            "have",
            "has",
            "had",
            "will",
        ),
        *(
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "twenty",
            "thirty",
            "fifty",
            "hundred",
        ),
    ]
)


@dataclass(frozen=True, eq=False)
class Filler:
    """A word or phrase that a slot can hold.

    `units` are its content words, grouped by the part of the grammar that chose them (verb,
    object): two words of different units make a combination that can be held out. `agr` indexes
    `AGREEMENT`. `adjective_slots` has, for each language and form that can take an adjective, what
    stands around it: article, ending of the adjective, noun.
    """

    key: str
    forms: dict[str, Forms]
    units: tuple[frozenset[str], ...] = ()
    agr: int = 2
    adjective_slots: dict[str, dict[str, tuple[str, str, str]]] = field(
        default_factory=dict
    )


def content_words(text: str) -> frozenset[str]:
    """Return the lower-cased words of an English text without its function words."""
    return frozenset(word.lower() for word in text.split()) - FUNCTION_WORDS


def with_article(words: str) -> str:
    """Return an English noun phrase with its indefinite article."""
    vowel = words[0] in "aeiou" and not words.startswith(("uni", "use", "eu"))
    return ("an " if vowel or words.startswith("hour") else "a ") + words


# --- English
# --------------------------------------------------------------------------------------


def english_s(word: str) -> str:
    """Return the regular plural of a noun, or third person of a verb."""
    if word.endswith(("s", "x", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def english_verb(text: str) -> Forms:
    """Return the forms of "base/ing/past/participle rest"; what is left out follows the regular
    rules.
    """
    head, _, rest = text.partition(" ")
    base, *given = head.split("/")
    stem = base[:-1] if base.endswith("e") else base
    regular_past = stem + "ed"
    if base.endswith("y") and base[-2] not in "aeiou":
        regular_past = base[:-1] + "ied"
    ing = given[0] if given else stem + "ing"
    past = given[1] if len(given) > 1 else regular_past
    participle = given[2] if len(given) > 2 else past
    third = "has" if base == "have" else english_s(base)
    forms = {"": base, "s": third, "ing": ing, "past": past, "pp": participle}
    return {name: f"{form} {rest}".strip() for name, form in forms.items()}


# --- German
# --------------------------------------------------------------------------------------

GENDERS = {"der": 0, "die": 1, "das": 2, "pl": 3}
CASES = ("nom", "acc", "dat")
DEFINITE = {
    "nom": "der die das die",
    "acc": "den die das die",
    "dat": "dem der dem den",
}
EIN_ENDINGS = {
    "nom": ("", "e", "", "e"),
    "acc": ("en", "e", "", "e"),
    "dat": ("em", "er", "em", "en"),
}
AFTER_EIN = {
    "nom": ("er", "e", "es", "en"),
    "acc": ("en", "e", "es", "en"),
    "dat": ("en",) * 4,
}
AFTER_DER = {
    "nom": ("e", "e", "e", "en"),
    "acc": ("en", "e", "e", "en"),
    "dat": ("en",) * 4,
}
NEGATION = re.compile(r"\b(nicht|kein)")
PRONOUN = {"nom": ("er", "sie", "es", "sie"), "acc": ("ihn", "sie", "es", "sie")}


def dative_plural(noun: str) -> str:
    """Return the dative plural of a noun given in the plural."""
    return noun if noun.endswith(("n", "s")) else noun + "n"


def german_present(tokens: list[str]) -> tuple[str, ...]:
    """Return the six present forms of "infinitive du-form er-form", prefix left out.

    "ich=" overrides the first.
    """
    infinitive = tokens[0].replace("-", " ").split()[-1]
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    first = next(
        (token[4:] for token in tokens if token.startswith("ich=")), stem + "e"
    )
    second, third = [token for token in tokens[1:] if "=" not in token][:2]
    return (first, second, third, third, infinitive, infinitive)


def german_imperative(first: str, tokens: list[str]) -> str:
    """Return the imperative: given after "!", else the first person, its e kept only where it is
    spoken.
    """
    given = next((token[1:] for token in tokens if token.startswith("!")), "")
    stem = first[:-1]
    heavy = stem.endswith(("t", "d", "ig", "er", "el")) or (
        stem[-1] in "nm" and stem[-2] not in "aeiouäöürlnmhe"
    )
    return given or (first if heavy else stem)


def german_verb(text: str) -> Forms:
    """Return the forms of "pre-infinitive du-form er-form [ist] participle"; the participle stands
    last.
    """
    tokens = text.split()
    prefix = tokens[0].partition("-")[0] if "-" in tokens[0] else ""
    present = german_present(tokens)
    plain = tokens[0].replace("-", "")
    auxiliary = (
        "bin bist ist ist sind sind"
        if "ist" in tokens
        else "habe hast hat hat haben haben"
    ).split()
    return {
        "fin": present,
        "end": tuple(prefix + form for form in present),
        "pre": prefix,
        "inf": plain,
        "zu": prefix + "zu" + present[4] if prefix else "zu " + plain,
        "part": tokens[-1],
        "aux": tuple(auxiliary),
        "imp": german_imperative(present[0], tokens),
    }


# --- nouns
# --------------------------------------------------------------------------------------


def noun(row: str, people: bool = False) -> Filler:
    """Return a noun of the row "english/plural | chinese measure | gender German/Plural".

    "+" before the English word marks one that has a plural only (trousers); without a German plural
    the noun is a mass; "=" before the German plural gives the form of the weak declension. `people`
    are possessed without 的 by one person (我妈妈, but 我们的妈妈).
    """
    english, chinese, german = (column.strip() for column in row.split("|"))
    zh_noun, _, measure = chinese.partition(" ")
    gender, _, names = german.partition(" ")
    agr = AGREEMENT.index({"der": "m", "die": "f", "das": "m", "pl": "3p"}[gender])
    en_forms, en_slots = _english_noun(english, "/" in names or gender == "pl")
    zh_forms, zh_slots = _chinese_noun(zh_noun, measure or "个", people)
    de_forms, de_slots = _german_noun(GENDERS[gender], names)
    key = english.split("/")[0].lstrip("+")
    slots = {"en": en_slots, "zh": zh_slots, "de": de_slots}
    forms = {"en": en_forms, "zh": zh_forms, "de": de_forms}
    return Filler(key, forms, (content_words(key),), agr, slots)


def _english_noun(
    text: str, countable: bool
) -> tuple[Forms, dict[str, tuple[str, str, str]]]:
    plural_only = text.startswith("+")
    singular, _, plural = text.lstrip("+").partition("/")
    plural = singular if plural_only or plural == "-" else plural or english_s(singular)
    bare = plural if countable else singular
    forms: Forms = {
        "": singular,
        "pl": plural,
        "bare": bare,
        "indef": singular if plural_only else with_article(singular),
        "def": "the " + singular,
        "defpl": "the " + plural,
        "this": ("these " if plural_only else "this ") + singular,
        "that": ("those " if plural_only else "that ") + singular,
        "poss": tuple(f"{owner} {singular}" for owner in POSSESSIVE["en"]),
        "be": "are" if plural_only else "is",
        "was": "were" if plural_only else "was",
        "it_is": "they are" if plural_only else "it is",
        "it": "them" if plural_only else "it",
        "s": "" if plural_only else "s",
        "do": "do" if plural_only else "does",
    }
    slots = {
        "indef": ("" if plural_only else "a", "", singular),
        "def": ("the", "", singular),
        "this": (str(forms["this"]).split(" ")[0], "", singular),
        "bare": ("", "", bare),
    }
    return forms, slots


def _chinese_noun(
    word: str, measure: str, people: bool
) -> tuple[Forms, dict[str, tuple[str, str, str]]]:
    links = ("", "", "", "", "的", "的") if people else ("的",) * 6
    forms: Forms = dict.fromkeys(("", "pl", "bare", "def", "defpl"), word)
    forms |= {
        "indef": f"一{measure}{word}",
        "this": f"这{measure}{word}",
        "that": f"那{measure}{word}",
        "count": measure + word,
        "poss": tuple(
            owner + link + word
            for owner, link in zip(POSSESSIVE["zh"], links, strict=True)
        ),
    }
    slots = {"indef": ("一" + measure, "", word), "this": ("这" + measure, "", word)}
    return forms, slots | {"def": ("", "", word), "bare": ("", "", word)}


def _german_noun(
    gender: int, text: str
) -> tuple[Forms, dict[str, tuple[str, str, str]]]:
    singular, _, plural = text.partition("/")
    oblique = singular
    if plural.startswith("="):
        oblique = plural = plural[1:]
    forms: Forms = {"": singular, "bare": plural or singular, "pl": plural}
    slots = {"bare": ("", "e", plural or singular)}
    for case in CASES:
        word = singular if case == "nom" else oblique
        word = dative_plural(word) if gender == 3 and case == "dat" else word
        article = DEFINITE[case].split()[gender]
        ending = EIN_ENDINGS[case][gender]
        dies = "dies" + {"der": "er", "die": "e", "das": "es"}.get(article, article[1:])
        stems = ("kein", *POSSESSIVE["de"])
        # "unser" keeps its e before an ending
        kein, *owned = (f"{stem}{ending} {word}" for stem in stems)
        indefinite = word if gender == 3 else f"ein{ending} {word}"
        forms |= {
            f"def.{case}": f"{article} {word}",
            f"this.{case}": f"{dies} {word}",
            f"that.{case}": f"{article} {word} da",
        }
        forms |= {
            f"indef.{case}": indefinite,
            f"kein.{case}": kein,
            f"poss.{case}": tuple(owned),
        }
        slots[f"def.{case}"] = (article, AFTER_DER[case][gender], word)
        slots[f"this.{case}"] = (dies, AFTER_DER[case][gender], word)
        slots[f"indef.{case}"] = ("ein" + ending, AFTER_EIN[case][gender], word)
        if case != "dat":
            forms[f"pron.{case}"] = PRONOUN[case][gender]
            forms[f"rel.{case}"] = article
    forms["bare.dat"] = dative_plural(plural) if plural else singular
    forms |= {
        "kommt": "kommen" if gender == 3 else "kommt",
        "spricht": "sprechen" if gender == 3 else "spricht",
    }
    forms |= {
        "defpl.nom": "die " + (plural or singular),
        "defpl.acc": "die " + (plural or singular),
    }
    forms["nopl"] = "keine " + plural if plural else str(forms["kein.acc"])
    forms |= {
        "be": "sind" if gender == 3 else "ist",
        "en": "en" if gender == 3 else "t",
    }
    return forms, slots


# --- adjectives, people, adverbs
# --------------------------------------------------------------------------------------


def adjective(row: str) -> Filler:
    """Return an adjective of "english | predicate/attribute | german/stem [| comparative | german
    comparative]".
    """
    english, chinese, german, *comparative = (
        column.strip() for column in row.split("|")
    )
    predicate, _, attribute = chinese.partition("/")
    form, _, stem = german.partition("/")
    more, mehr = comparative or ("", "")
    forms: dict[str, Forms] = {
        "en": {"": english, "attr": english, "more": more},
        "zh": {"": predicate, "attr": attribute or predicate + "的"},
        "de": {"": form, "attr": stem or form, "more": mehr},
    }
    return Filler(english, forms, (content_words(english),))


def described(lang: str, thing: Filler, form: str, by: Filler) -> str:
    """Return the noun phrase `form` of `thing` with the adjective `by` before the noun."""
    article, ending, word = thing.adjective_slots[lang][form]
    stem = str(by.forms[lang]["attr"])
    if lang == "zh":
        return article + stem + word
    if lang == "en" and article == "a":
        return with_article(f"{stem} {word}")
    return f"{article} {stem}{ending} {word}".strip()


def person(row: str) -> Filler:
    """Return a subject of the row "agreement | english | chinese | german"."""
    agr, english, chinese, german = (column.strip() for column in row.split("|"))
    forms: dict[str, Forms] = {
        "en": {"": english},
        "zh": {"": chinese},
        "de": {"": german},
    }
    words = content_words(english)
    named = english[0].isupper()
    return Filler(
        english, forms, (words,) if words and not named else (), AGREEMENT.index(agr)
    )


def phrase(row: str, names: Iterable[str], content: bool) -> Filler:
    """Return a fixed phrase, one column for each of `names`, each column "english | chinese |
    german".
    """
    forms: dict[str, Forms] = {lang: {} for lang in LANGUAGES}
    columns = [column.strip() for column in row.split("|")]
    triples = [columns[start : start + 3] for start in range(0, len(columns), 3)]
    for name, texts in zip(names, triples, strict=True):
        for lang, text in zip(LANGUAGES, texts, strict=True):
            forms[lang][name] = text
    if "f" in forms["de"]:  # a job, said of a man or a woman
        male, female = str(forms["de"]["m"]), str(forms["de"]["f"])
        forms["de"]["as"] = (male, male, male, female, male, male)
    key = columns[0]
    return Filler(key, forms, (content_words(key),) if content else ())


# --- verb phrases
# --------------------------------------------------------------------------------------


def verb_phrase(row: str, thing: Filler | None = None, kind: str = "") -> Filler:
    """Return a verb of "english | chinese/past | german [: complement, negated] [+prep.case]" with
    its object.

    `kind` says how the object appears: bare, indef, def, defpl, this, poss, or dir (a place gone
    to). In the Chinese column "_" stands where the object goes if not at the end, and "+" where 了
    goes in a verb that has an object of its own.
    """
    english, chinese, german = (column.strip() for column in row.split("|")[:3])
    complement, _, without = german.partition(" : ")[2].partition(", ")
    verb, _, rule = german.partition(" : ")[0].partition(" +")
    preposition, _, case = rule.partition(".")
    obj, negative = _german_object(
        thing, kind, preposition, case or "acc", complement, without
    )
    forms = {
        "en": _english_phrase(english_verb(english), thing, kind),
        "zh": _chinese_phrase(chinese, thing, kind),
        "de": german_verb(verb)
        | {"obj": obj, "neg": negative, "yet": _not_yet(negative)},
    }
    key = english.replace("/", " ").split()[0] + " " + english.partition(" ")[2]
    units = (content_words(key), *(thing.units if thing else ()))
    return Filler(f"{key} {thing.key}" if thing else key, forms, units)


def _joined(before: str, value: Form, after: str = "") -> Form:
    if isinstance(value, tuple):
        return tuple(before + text + after for text in value)
    return before + value + after


def _english_phrase(verb: Forms, thing: Filler | None, kind: str) -> Forms:
    obj: Form = thing.forms["en"][kind] if thing else ""
    forms = {
        name: _joined(f"{form} " if thing else str(form), obj)
        for name, form in verb.items()
    }
    base, third = forms[""], forms["s"]
    present = []
    for index in range(6):
        value = third if index in (2, 3) else base
        present.append(value if isinstance(value, str) else value[index])
    return forms | {"pres": tuple(present)}


def _chinese_phrase(text: str, thing: Filler | None, kind: str) -> Forms:
    base, _, past = text.partition("/")
    # 过 marks experience and stands where 了 does.
    done = past or (base.replace("+", "了") if "+" in base else base + "了")
    base = base.replace("+", "")
    experienced = done.replace("了", "过")
    if thing is None:
        return {"": base, "past": done, "neg": base, "exp": experienced}
    chinese = thing.forms["zh"]
    bare = chinese["" if kind == "indef" else kind]
    return {
        "": _placed(base, chinese[kind]),
        "past": _placed(done, chinese[kind]),
        "neg": _placed(base, bare),
        "exp": _placed(experienced, bare),
    }


def _placed(frame: str, obj: Form) -> Form:
    before, _, after = frame.partition("_")
    return _joined(before, obj, after)


def _not_yet(negative: Form) -> Form:
    """Turn "nicht" and "kein" into "noch nicht" and "noch kein"."""
    if isinstance(negative, tuple):
        return tuple(NEGATION.sub(r"noch \1", text, count=1) for text in negative)
    return NEGATION.sub(r"noch \1", negative, count=1)


def _german_object(
    thing: Filler | None,
    kind: str,
    preposition: str,
    case: str,
    complement: str,
    without: str,
) -> tuple[Form, Form]:
    """Return the object of a German verb and its negation, which for a complement may be given
    (`without`).
    """
    if thing is None:
        return complement, without or f"nicht {complement}".strip()
    german = thing.forms["de"]
    name = kind if kind in ("bare", "dir") else f"{kind}.{case}"
    obj = german[name]
    if kind == "dir" or preposition:
        obj = _joined(f"{preposition} " if preposition else "", obj)
        return obj, _joined("nicht ", obj)
    if kind == "bare":
        return obj, german["nopl"]
    if kind == "indef":
        return obj, german[f"kein.{case}"]
    return obj, _joined("", obj, " nicht")
