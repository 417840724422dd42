"""Language codes as BCP-47 (RFC 5646): `en`, `zh-Hant`, `pt-BR`.

Three-letter codes become the two-letter code of the same language where there is one, as RFC 5646,
section 2.2.1 asks. A few country codes that many corpora use for their language are understood as
well.
"""

import re
from functools import lru_cache

UNKNOWN = "und"
_LONG_CODE = 3  # letters of a code of ISO 639-3

# ISO 639-1 with the ISO 639-2 codes of the same language (terminological, then bibliographic).
_CODES = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel bg:bul
bi:bis bm:bam bn:ben bo:bod:tib br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces:cze cu:chu cv:chv
cy:cym:wel da:dan de:deu:ger dv:div dz:dzo ee:ewe el:ell:gre en:eng eo:epo es:spa et:est eu:eus:baq
fa:fas:per:pes ff:ful fi:fin fj:fij fo:fao fr:fra:fre fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv
ha:hau he:heb hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:hye:arm hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk
io:ido is:isl:ice it:ita iu:iku ja:jpn jv:jav ka:kat:geo kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan
ko:kor kr:kau ks:kas ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit lu:lub
lv:lav mg:mlg mh:mah mi:mri:mao mk:mkd:mac ml:mal mn:mon mr:mar ms:msa:may:zsm mt:mlt my:mya:bur na:nau
nb:nob nd:nde ne:nep ng:ndo nl:nld:dut nn:nno no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm or:ori os:oss
pa:pan pi:pli pl:pol ps:pus pt:por qu:que rm:roh rn:run ro:ron:rum ru:rus rw:kin sa:san sc:srd sd:snd se:sme
sg:sag si:sin sk:slk:slo sl:slv sm:smo sn:sna so:som sq:sqi:alb sr:srp ss:ssw st:sot su:sun sv:swe sw:swa
ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi ty:tah ug:uig
uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid yo:yor za:zha zh:zho:chi:cmn zu:zul
"""
_LONGER = """
ast ber ceb chr ckb fil fur gsw haw hmn hsb ilo jbo kab lfn lij lmo lzh mai mhr nah nds pap pms scn szl tlh
tpi vec war wuu yue
"""
# What people call their languages at the head of a column, in English and in the language itself.
_NAMES = """
af:afrikaans am:amharic ar:arabic az:azerbaijani be:belarusian bg:bulgarian bn:bengali:bangla bs:bosnian
ca:catalan:català ckb:sorani cs:czech:čeština cy:welsh:cymraeg da:danish:dansk de:german:deutsch el:greek
en:english eo:esperanto es:spanish:español et:estonian:eesti eu:basque:euskara fa:persian:farsi
fi:finnish:suomi fr:french:français ga:irish:gaeilge gl:galician:galego gn:guarani gu:gujarati ha:hausa
he:hebrew hi:hindi hr:croatian:hrvatski hu:hungarian:magyar hy:armenian id:indonesian ig:igbo is:icelandic
it:italian:italiano ja:japanese ka:georgian kk:kazakh km:khmer kn:kannada ko:korean ku:kurdish ky:kyrgyz
lg:luganda lo:lao lt:lithuanian lv:latvian mg:malagasy mi:māori mk:macedonian ml:malayalam mn:mongolian
mr:marathi ms:malay mt:maltese my:burmese ne:nepali nl:dutch:nederlands no:norwegian:norsk pa:punjabi
pl:polish:polski ps:pashto pt:portuguese:português qu:quechua ro:romanian:română ru:russian rw:kinyarwanda
si:sinhala sk:slovak sl:slovene sn:shona so:somali sq:albanian sr:serbian st:sesotho sv:swedish:svenska
sw:swahili:kiswahili ta:tamil te:telugu tg:tajik th:thai ti:tigrinya tk:turkmen tl:tagalog tn:setswana
tr:turkish:türkçe ug:uyghur uk:ukrainian ur:urdu uz:uzbek vi:vietnamese wo:wolof xh:xhosa yo:yoruba:yorùbá
zh:chinese:中文 zu:zulu
as:assamese ay:aymara ba:bashkir bo:tibetan br:breton:brezhoneg ceb:cebuano chr:cherokee cv:chuvash
ff:fulfulde fj:fijian fo:faroese fy:frisian:frysk haw:hawaiian hmn:hmong ilo:ilocano iu:inuktitut
jv:javanese lb:luxembourgish:lëtzebuergesch ln:lingala nah:nahuatl nv:navajo ny:chichewa om:oromo
or:odia sd:sindhi sm:samoan su:sundanese to:tongan tt:tatar ty:tahitian yi:yiddish yue:cantonese
ar:العربية el:ελληνικά fa:فارسی he:עברית hi:हिन्दी ja:日本語 ko:한국어 ru:русский uk:українська
zh:汉语:漢語:简体中文:繁體中文
"""
# The same in French, German, Spanish, Italian, Portuguese, Russian, Chinese and Japanese.
_NAMES_ELSEWHERE = """
ar:arabe:arabisch:árabe:arabo:арабский:阿拉伯语 de:allemand:alemán:tedesco:alemão:немецкий:德语:德文:ドイツ語
en:anglais:englisch:inglés:inglese:inglês:английский:英语:英文:英語
es:espagnol:spanisch:spagnolo:espanhol:испанский:西班牙语:スペイン語
fr:französisch:francés:francese:francês:французский:法语:法文:フランス語
it:italien:italienisch:итальянский:意大利语:イタリア語 ja:japonais:japanisch:japonés:giapponese:japonês:日语:日文
ko:coréen:koreanisch:coreano:корейский:韩语:韓国語 nl:néerlandais:niederländisch:neerlandés:olandese
pl:polonais:polnisch:polaco:polacco:польский pt:portugais:portugiesisch:portugués:portoghese:葡萄牙语
ru:russe:russisch:ruso:russo:俄语:ロシア語 tr:turc:türkisch:turco:турецкий
zh:chinois:chinesisch:chino:cinese:chinês:китайский:中国語
"""
# What no header of a column says, but a list of languages must: variants that are known by a name.
_VARIANTS = {
    "nb": "Norwegian Bokmål",
    "nn": "Norwegian Nynorsk",
    "pt-BR": "Portuguese (Brazil)",
    "zh-Hans": "Chinese (simplified)",
    "zh-Hant": "Chinese (traditional)",
}
_COUNTRIES = {"cn": "zh", "jp": "ja", "cz": "cs", "dk": "da", "gr": "el", "ua": "uk"}


def _known_codes() -> dict[str, str]:
    known = {code: code for code in _LONGER.split()} | _COUNTRIES
    for entry in _CODES.split():
        short, *longer = entry.split(":")
        known |= dict.fromkeys((short, *longer), short)
    return known


def _codes_by_name() -> dict[str, str]:
    by_name: dict[str, str] = {}
    for entry in f"{_NAMES} {_NAMES_ELSEWHERE}".split():
        code, *names = entry.split(":")
        by_name |= dict.fromkeys(names, code)
    return by_name


def _names_by_code() -> dict[str, str]:
    names: dict[str, str] = {}
    for entry in _NAMES.split():
        code, first, *_ = entry.split(":")
        names.setdefault(code, first.title())
    return names


_KNOWN = _known_codes()
_BY_NAME = _codes_by_name()
_ENGLISH = _names_by_code()
# A language with its region or script: "English (United States)", "French [FR]".
_WITH_REGION = re.compile(r"\s*(\S+)\s*[(\[（]([^()\[\]（）]{2,40})[)\]）]\s*")
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,6}")


@lru_cache(maxsize=4096)
def canonical(tag: str) -> str | None:
    """Write the tag as BCP-47 does (`en-US` for `EN_us`, `de` for `deu`); return None if it has not
    that form.
    """
    if not _TAG.fullmatch(tag):
        return None
    first, *rest = tag.replace("_", "-").lower().split("-")
    if first not in _COUNTRIES:
        first = _KNOWN.get(first, first)
    return "-".join([first, *map(_cased, rest)])


def _cased(subtag: str) -> str:
    """Write a subtag in its usual case: a region `BR`, a script `Hant`, any other `small`."""
    if len(subtag) == 2:
        return subtag.upper()
    return subtag.title() if len(subtag) == 4 else subtag


@lru_cache(maxsize=4096)
def primary(tag: str) -> str:
    """Return the language without script and region: `zh` of `zh-Hant-TW`."""
    return (canonical(tag) or UNKNOWN).split("-")[0]


def english_name(tag: str) -> str:
    """Return what a language is called in English, `German` or `Chinese (traditional)`; its code
    where no name is known.
    """
    code = canonical(tag) or tag
    first, _, rest = code.partition("-")
    name = _ENGLISH.get(first)
    if code in _VARIANTS or name is None:
        return _VARIANTS.get(code, code)
    return f"{name} ({rest})" if rest else name


def direction(src: str, tgt: str) -> str:
    """Say from which language into which: `en to de`."""
    if src == tgt == UNKNOWN:
        return "languages unknown"
    return " to ".join(
        "an unknown language" if tag == UNKNOWN else tag for tag in (src, tgt)
    )


def how_to_name(src: str, tgt: str) -> str:
    """Say how to name the languages that are not known, in brackets behind a space; return "" where
    both are known.
    """
    keys = []
    if src == UNKNOWN:
        keys.append("--set data.src_lang=...")
    if tgt == UNKNOWN:
        keys.append("--set data.tgt_lang=...")
    if not keys:
        return ""
    them = "them" if len(keys) == 2 else "it"
    return f" (name {them} by {' '.join(keys)})"


def pair_of(text: str) -> tuple[str, str] | None:
    """Return the two languages of `en-de`, `zh-Hans-en` or `en-pt-BR`; None where they are not told
    apart. Each begins in lower case, so that `BR` is no language.
    """
    subtags = text.replace("_", "-").split("-")
    halves = [
        ("-".join(subtags[:i]), "-".join(subtags[i:]))
        for i in range(1, len(subtags))
        if subtags[0].islower() and subtags[i].islower()
    ]
    codes = [(canonical(src), canonical(tgt)) for src, tgt in halves]
    found = [(src, tgt) for src, tgt in codes if src and tgt]
    return found[0] if len(found) == 1 else None


def from_header(cell: str) -> tuple[str, bool] | None:
    """Return the language that heads a column (`en`, `EN`, `yor`, `English`), and whether it is a
    code, not a name.
    """
    word = cell.strip()
    if code := _BY_NAME.get(word.casefold()):
        return code, False
    first, *rest = re.split("[-_]", word)
    if not (first.islower() or first.isupper()) or not _TAG.fullmatch(word):
        return None
    code = known("-".join([first.lower(), *rest]))
    return (code, True) if code else None


def from_header_with_region(cell: str) -> str | None:
    """Return the language that heads a column with its region or script in brackets.

    `English (United States)` is en, `English (US)` en-US; None for any other cell, such as
    `English (draft)`.
    """
    match = _WITH_REGION.fullmatch(cell)
    code = from_header_with_explanation(cell)
    if match is None or code is None:
        return None
    region = match[2].strip()
    if len(region) == 2 and region.isupper():
        return canonical(f"{code}-{region}")
    return code if region[0].isupper() or not region.isascii() else None


def from_header_with_explanation(cell: str) -> str | None:
    """Return the language that heads a column with anything in brackets: yo of `Yoruba
    (translated)`.
    """
    match = _WITH_REGION.fullmatch(cell)
    named = from_header(match[1]) if match else None
    return named[0] if named else None


def code_of(cell: str) -> str | None:
    """Return the language code that a cell holds and nothing else, known or not; None for a word
    that is none. `Eng` is one as well, if it is known.
    """
    word = cell.strip()
    first = re.split("[-_]", word)[0]
    if first.islower() or first.isupper():
        return canonical(word)
    return known(word.lower()) if len(word) == _LONG_CODE else None


def known(tag: str) -> str | None:
    """Return a language code in canonical form; None for one of no language that is known here."""
    first, *rest = re.split("[-_]", tag)
    if first not in _KNOWN:
        return None
    return canonical("-".join([_KNOWN[first], *rest]))
