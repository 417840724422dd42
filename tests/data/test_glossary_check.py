"""A glossary by itself: which files are one, and what contradicts itself in it."""

from pathlib import Path

import pytest

from weft.data.glossary_check import check_glossary, is_glossary
from weft.errors import UsageError

TBX = """<martif type="TBX"><text><body>
<termEntry><langSet xml:lang="de"><tig><term>Katze</term></tig></langSet>
<langSet xml:lang="en"><tig><term>cat</term></tig></langSet>
<langSet xml:lang="fr"><tig><term>chat</term></tig></langSet></termEntry>
</body></text></martif>
"""


def test_files_that_can_be_nothing_else_are_glossaries(tmp_path: Path) -> None:
    contents = {
        "a.csv": "source,target,avoid\na,b,c\n",
        "b.csv": "German;English;inflection\nKatze;cat;yes\n",
        "c.tbx": TBX,
        "pairs.csv": "source,target\na,b\n",
        "labels.csv": "text,label,case\na,b,c\n",
        "d.txt": "source\ttarget\tavoid\n",
        "open.csv": '"source,target,avoid\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    found = {name for name in contents if is_glossary(tmp_path / name)}
    assert found == {"a.csv", "b.csv", "c.tbx"}
    assert not is_glossary(tmp_path / "none.csv")


def test_terms_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    path.write_text(
        "English;German;inflection;avoid;Bereich\n"
        "cat;Katze;yes;Kater|katze;\n"
        "Cat|kitty;Mieze;;;\n"
        "dog;Hund;yes;;\n"
        "dog;Hund;;;\n",
        "utf-8",
    )
    found = check_glossary(path, ())
    assert (found.num_terms, found.num_inflected) == (4, 2)
    assert found.notes[0].startswith("not read: bereich")
    assert found.doubts == (
        f"{path}:2: katze is wanted and to be avoided",
        f"{path}:3: Cat stands in {path}:2, too: either of Katze, Mieze is taken",
        f"{path}:5: dog stands in {path}:4, too, with the same target",
    )


def test_a_term_base_of_three_languages_needs_two_of_them(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    path.write_text(TBX)
    with pytest.raises(UsageError, match=r"choose two languages .* from de, en, fr"):
        check_glossary(path, ())
    assert check_glossary(path, ("fr", "de")).num_terms == 1
    path.write_text(TBX.replace('"fr"', '"de"'))
    assert check_glossary(path, ()).num_terms == 1
