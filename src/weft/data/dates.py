"""Dates as texts write them: the years of Japanese eras, and months.

建保2年 is the year 1214; by the old calendar its last weeks are in 1215. The years in which eras
began are those of the usual tables, those of both courts of the fourteenth century among them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from weft.data.languages import primary

# eras in their order, with the year that their first one mostly falls in
_ERAS = """
大化 645 白雉 650 朱鳥 686 大宝 701 慶雲 704 和銅 708 霊亀 715 養老 717 神亀 724 天平 729
天平感宝 749 天平勝宝 749 天平宝字 757 天平神護 765 神護景雲 767 宝亀 770 天応 781 延暦 782
大同 806 弘仁 810 天長 824 承和 834 嘉祥 848 仁寿 851 斉衡 854 天安 857 貞観 859 元慶 877
仁和 885 寛平 889 昌泰 898 延喜 901 延長 923 承平 931 天慶 938 天暦 947 天徳 957 応和 961
康保 964 安和 968 天禄 970 天延 973 貞元 976 天元 978 永観 983 寛和 985 永延 987 永祚 989
正暦 990 長徳 995 長保 999 寛弘 1004 長和 1012 寛仁 1017 治安 1021 万寿 1024 長元 1028
長暦 1037 長久 1040 寛徳 1044 永承 1046 天喜 1053 康平 1058 治暦 1065 延久 1069 承保 1074
承暦 1077 永保 1081 応徳 1084 寛治 1087 嘉保 1094 永長 1096 承徳 1097 康和 1099 長治 1104
嘉承 1106 天仁 1108 天永 1110 永久 1113 元永 1118 保安 1120 天治 1124 大治 1126 天承 1131
長承 1132 保延 1135 永治 1141 康治 1142 天養 1144 久安 1145 仁平 1151 久寿 1154 保元 1156
平治 1159 永暦 1160 応保 1161 長寛 1163 永万 1165 仁安 1166 嘉応 1169 承安 1171 安元 1175
治承 1177 養和 1181 寿永 1182 元暦 1184 文治 1185 建久 1190 正治 1199 建仁 1201 元久 1204
建永 1206 承元 1207 建暦 1211 建保 1213 承久 1219 貞応 1222 元仁 1224 嘉禄 1225 安貞 1227
寛喜 1229 貞永 1232 天福 1233 文暦 1234 嘉禎 1235 暦仁 1238 延応 1239 仁治 1240 寛元 1243
宝治 1247 建長 1249 康元 1256 正嘉 1257 正元 1259 文応 1260 弘長 1261 文永 1264 建治 1275
弘安 1278 正応 1288 永仁 1293 正安 1299 乾元 1302 嘉元 1303 徳治 1306 延慶 1308 応長 1311
正和 1312 文保 1317 元応 1319 元亨 1321 正中 1324 嘉暦 1326 元徳 1329 元弘 1331 正慶 1332
建武 1334 延元 1336 暦応 1338 興国 1340 康永 1342 貞和 1345 正平 1346 観応 1350 文和 1352
延文 1356 康安 1361 貞治 1362 応安 1368 建徳 1370 文中 1372 天授 1375 永和 1375 康暦 1379
弘和 1381 永徳 1381 元中 1384 至徳 1384 嘉慶 1387 康応 1389 明徳 1390 応永 1394 正長 1428
永享 1429 嘉吉 1441 文安 1444 宝徳 1449 享徳 1452 康正 1455 長禄 1457 寛正 1460 文正 1466
応仁 1467 文明 1469 長享 1487 延徳 1489 明応 1492 文亀 1501 永正 1504 大永 1521 享禄 1528
天文 1532 弘治 1555 永禄 1558 元亀 1570 天正 1573 文禄 1592 慶長 1596 元和 1615 寛永 1624
正保 1644 慶安 1648 承応 1652 明暦 1655 万治 1658 寛文 1661 延宝 1673 天和 1681 貞享 1684
元禄 1688 宝永 1704 正徳 1711 享保 1716 元文 1736 寛保 1741 延享 1744 寛延 1748 宝暦 1751
明和 1764 安永 1772 天明 1781 寛政 1789 享和 1801 文化 1804 文政 1818 天保 1830 弘化 1844
嘉永 1848 安政 1854 万延 1860 文久 1861 元治 1864 慶応 1865 明治 1868 大正 1912 昭和 1926
平成 1989 令和 2019
"""
_BEGAN = {era: int(year) for era, year in re.findall(r"(\w+) (\d+)", _ERAS)}
_DIGIT = {sign: value for value, sign in enumerate("〇一二三四五六七八九")}
_COUNT = r"\d{1,2}|元|[一二三四五六七八九十廿]{1,4}"
_SAME = "同翌"  # era as that of the year before
_ERA_YEAR = re.compile(
    rf"(?P<era>{'|'.join(sorted(_BEGAN, key=len, reverse=True))}|[{_SAME}])"
    # by which some texts tell an era from a word
    r"\s?(?:[(（](?:元号|日本|年号)[)）])?\s?"
    rf"(?P<count>{_COUNT})(?:年(?P<decade>代)?|(?=[)）]))"
    # the month and the day of the same calendar
    r"(?:\s?(?:[(（][^()（）]{2,12}[)）])?\s?閏?\d{1,2}月(?:\s?\d{1,2}日)?)?"
    # any other reign's year, which is said to be that year
    rf"|(?<=[一-鿿])(?:{_COUNT})年(?=\s?[(（]\s?(?P<year>\d{{3,4}})年)"
)
_MAY_HAVE_ERA = re.compile(r"年|\d[)）]")
_DECADE = 10  # years
# The months as dates have them, by languages (BCP-47).
_MONTHS = {
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "en": "January February March April May June July August September October November December",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre"
    " dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października"
    " listopada grudnia",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro"
    " dezembro",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
}
_SHORTEST = 3  # letters of a month that is cut short: Sep., Sept.
_LONGEST = 4
_BY_NUMBER = re.compile(
    r"(?<!\d)(?P<month>1[0-2]|[1-9])\s?[月월]"
    r"(?:\s?(?:[(（]旧暦[)）])?\s?(?P<day>\d{1,2})\s?[日일])?"
)
# days by which the old calendar of East Asia is behind: its new year is in January or February
_LEAST_BEHIND = 14
_MOST_BEHIND = 55
_NEAR = 12  # characters before the name of a month in which its day ends
_DAY_BEFORE = re.compile(
    r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th|er|[.º°])?\s?(?:(?:of|de)\s)?$"
)
_NUMBER_BEHIND = re.compile(r"[.,]?\s?(?:(?:of|de)\s)?(?:(?P<day>\d{1,2})(?!\d)|\d)")
_DAYS = 365.25  # of a year
_MONTH_DAYS = 30.5


@dataclass(frozen=True)
class EraYear:
    """A year of an era, from `start` to before `end`, and the years that it may be.

    The month and day that follow it belong to it; they are of its calendar.
    """

    start: int
    end: int
    years: frozenset[int]


@lru_cache(maxsize=4)  # asked for several times of both sides of a pair
def era_years(text: str) -> tuple[EraYear, ...]:
    """Return the years that a text counts by eras."""
    if not _MAY_HAVE_ERA.search(text):
        return ()
    found: list[EraYear] = []
    began = 0
    for match in _ERA_YEAR.finditer(text):
        if match["year"]:
            found.append(EraYear(*match.span(), frozenset({int(match["year"])})))
            continue
        began = _BEGAN.get(match["era"], began)
        if not began:  # its era stands in another text
            found.append(EraYear(*match.span(), frozenset()))
            continue
        first = began + _count(match["count"]) - 1
        years = {first, first + 1}
        if match["decade"]:
            start = first - first % _DECADE
            years = {start, start + _DECADE}
        found.append(EraYear(*match.span(), frozenset(years)))
    return tuple(found)


def _count(written: str) -> int:
    """Return the number of a year in an era: digits, 元 for the first, or 二十三."""
    if written.isdecimal():
        return int(written)
    if written == "元":
        return 1
    tens, ten, ones = written.replace("廿", "二十").rpartition("十")
    value = _DECADE * _DIGIT.get(tens, 1) if ten else 0
    return value + _DIGIT.get(ones, 0)


@dataclass(frozen=True)
class Date:
    """A month from `start` to before `end`, and perhaps the day of it; 0 for none.

    `day_start` is where the day begins. `by_number` says that the month is written so, as 9月 is.
    """

    month: int
    start: int
    end: int
    day: int
    day_start: int
    by_number: bool

    def is_later(self, old: "Date") -> bool:
        """Return whether this may be the date that another is by the old calendar."""
        months = (self.month - old.month) % 12
        if not self.day or not old.day:
            return months in (1, 2)
        days = (months * _MONTH_DAYS + self.day - old.day) % _DAYS
        return _LEAST_BEHIND <= days <= _MOST_BEHIND


def dates_of(text: str, language: str) -> list[Date]:
    """Return the months of a text beside a day or a year: 9月4日, 4. September, Sep. 2001.

    Their names are known of some languages alone.
    """
    found = []
    if "月" in text or "월" in text:
        for match in _BY_NUMBER.finditer(text):
            start, end = match.span("month")
            day = int(match["day"] or 0)
            date = Date(int(match["month"]), start, end, day, match.start("day"), True)
            found.append(date)
    names = _names(primary(language))
    for match in names.finditer(text) if names else ():
        month = match.lastindex or 0
        start, end = match.span()
        before = _DAY_BEFORE.search(text[max(0, start - _NEAR) : start])
        behind = _NUMBER_BEHIND.match(text, end)
        if before is not None:
            place = max(0, start - _NEAR) + before.start("day")
            found.append(Date(month, start, end, int(before["day"]), place, False))
        elif behind is not None:
            day = int(behind["day"] or 0)
            place = behind.start("day")
            found.append(Date(month, start, end, day, place, False))
    return found


def in_old_calendar(
    src: Sequence[Date], tgt: Sequence[Date]
) -> tuple[list[Date], list[Date]]:
    """Return the dates of each side that may be one of the other's by the old calendar."""
    found: tuple[list[Date], list[Date]] = ([], [])
    for one in src:
        for other in tgt:
            if one.by_number == other.by_number:
                continue
            old, new = (one, other) if one.by_number else (other, one)
            if new.is_later(old):
                found[0].append(one)
                found[1].append(other)
    return found


@cache
def _names(language: str) -> re.Pattern[str] | None:
    """Return what finds the names of the months, each in a group of its own."""
    if language not in _MONTHS:
        return None
    groups = []
    for name in _MONTHS[language].split():
        forms = [name]
        if len(name) > _LONGEST:
            forms += [name[:_LONGEST], name[:_SHORTEST]]
        elif len(name) > _SHORTEST:
            forms.append(name[:_SHORTEST])
        groups.append(f"({'|'.join(forms)})")
    return re.compile(rf"\b(?:{'|'.join(groups)})\b")
