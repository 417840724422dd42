"""Term bases of both versions of TBX."""

from pathlib import Path

import pytest

from weft.data.glossary import read_glossary
from weft.errors import DataError

OLD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1">
  <langSet xml:lang="en-US"><tig><term>hard  disk</term></tig><tig><term>disk drive</term></tig></langSet>
  <langSet xml:lang="de">
    <tig><term>Festplatte</term><termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig>
    <ntig><termGrp><term>Harddisk</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote>
    </termGrp></ntig>
  </langSet>
</termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>mouse</term></tig></langSet></termEntry>
</body></text></martif>
"""
NEW = """<tbx type="TBX-Min" style="dca" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="a"><langSec xml:lang="en"><termSec><term>key <hi>board</hi></term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Tastatur</term></termSec></langSec></conceptEntry>
</body></text></tbx>
"""


def read(folder: Path, content: str) -> list[tuple[object, ...]]:
    path = folder / "terms.tbx"
    path.write_text(content, "utf-8")
    rows = read_glossary(path, "en", "de").entries
    return [(row.sources, row.targets, row.avoided, row.where) for row in rows]


def test_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    assert read(tmp_path, OLD) == [
        (("hard disk", "disk drive"), ("Festplatte",), ("Harddisk",), f"{path}:4")
    ]
    assert read(tmp_path, NEW) == [
        (("key board",), ("Tastatur",), (), f"{path}:2"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (OLD.replace('"de"', '"fr"'), "no terms in de; the languages are en, fr"),
        ("<tbx><text/></tbx>", "there is no entry in it"),
        ("<tmx/>", "XML with the root <tmx>, not a term base (TBX)"),
        ("<tbx><a></tbx>", "malformed XML"),
        ('<!DOCTYPE tbx [<!ENTITY a "b">]><tbx>&a;</tbx>', "declarations of its own"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    assert said in str(caught.value)
