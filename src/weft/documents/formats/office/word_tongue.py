"""The language of a Word document: what says which one it is, and in which direction it is written.

Source: ECMA-376, part 1, sections 17.3.1.6 (bidi), 17.3.2.20 (lang) and 17.3.2.30 (rtl).
"""

import re
from dataclasses import dataclass

from weft.documents.direction import is_east_asian, is_right_to_left
from weft.documents.formats.xml.tree import with_attribute

# what stands after bidi among a paragraph's properties, and after rtl among a run's
_AFTER_BIDI = """
adjustRightInd snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap jc
textDirection textAlignment textboxTightWrap outlineLvl divId cnfStyle rPr sectPr pPrChange
"""
_AFTER_RTL = "cs em lang eastAsianLayout specVanish oMath rPrChange"


@dataclass(frozen=True)
class Tongue:
    """The language that a document is translated to; "" where nothing of it is to be said."""

    code: str

    def run(self, raw: str, prefix: str) -> str:
        """Return the properties of a run in this language."""
        if not self.code:
            return raw
        return self._directed(self.told(raw, prefix), "rPr", "rtl", _AFTER_RTL, prefix)

    def paragraph(self, raw: str, prefix: str) -> str:
        """Return the properties of a paragraph in this language."""
        if not self.code:
            return raw
        return self._directed(raw, "pPr", "bidi", _AFTER_BIDI, prefix)

    def told(self, raw: str, prefix: str) -> str:
        """Return a stretch whose marks of language name this one."""
        if not self.code:
            return raw
        name = "val"
        if is_right_to_left(self.code):
            name = "bidi"
        elif is_east_asian(self.code):
            name = "eastAsia"
        return re.sub(
            rf"<{prefix}lang(?=[\s/>])[^>]*>",
            lambda found: with_attribute(found[0], f"{prefix}{name}", self.code),
            raw,
        )

    def _directed(
        self, raw: str, around: str, name: str, after: str, prefix: str
    ) -> str:
        """Return properties with a mark of direction, or without one."""
        mark = f"<{prefix}{name}/>"
        # what follows has such marks of its own: a section, and properties as they were
        later = re.search(rf"<{prefix}(?:sectPr|pPrChange|rPrChange)[\s/>]", raw)
        end = later.start() if later else len(raw)
        own = re.sub(
            rf"<{prefix}{name}(?:\s[^>]*)?(?:/>|></{prefix}{name}>)", "", raw[:end]
        )
        if not is_right_to_left(self.code):
            return own + raw[end:]
        if not raw or raw == f"<{prefix}{around}/>":
            return f"<{prefix}{around}>{mark}</{prefix}{around}>"
        names = "|".join(after.split())
        found = re.search(rf"<{prefix}(?:{names})[\s/>]|</{prefix}{around}>", own)
        place = found.start() if found else len(own)
        return own[:place] + mark + own[place:] + raw[end:]
