"""Translation memories: units from every format of pairs, found exactly, repaired or near."""

import gzip
from pathlib import Path

import pytest

from weft.data.corpus import from_pairs, read_pairs
from weft.data.memory import Match, Memory, Texts, read_memory
from weft.errors import DataError

TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>Press <bpt i="1">&lt;b></bpt>Start<ept i="1">&lt;/b></ept>.</seg></tuv>
<tuv xml:lang="de-DE"><seg><bpt i="1">&lt;b></bpt>Start<ept i="1">&lt;/b></ept> drücken.</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>Close the door.</seg></tuv>
<tuv xml:lang="de-DE"><seg>Schließen Sie die Tür.</seg></tuv></tu>
</body></tmx>
"""
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "Close the door."
msgstr "Tür zu."

msgid "Not yet"
msgstr ""

#, fuzzy
msgid "A guess"
msgstr "Vermutung"
"""


def memory_of(*pairs: tuple[str, str], tgt_lang: str = "de") -> Memory:
    return Memory.from_text(from_pairs(pairs, "pairs", "en", tgt_lang))


def written(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.write_text(content, "utf-8")
    return str(path)


def source(match: Match | None) -> str | None:
    return None if match is None else match.source


def test_tmx_has_its_text_without_tags_and_its_lines(tmp_path: Path) -> None:
    name = written(tmp_path, "old.tmx", TMX)
    memory = read_memory([name], "en", "de")
    assert len(memory) == 2
    assert memory.exact("Press Start.") == Match(
        "Press Start.", "Start drücken.", 1.0, f"{name}:4", "exact", 0
    )
    found = memory.exact("Close the door.")
    assert found is not None
    assert found.where == f"{name}:6"
    # the other direction
    back = read_memory([name], "de", "en").exact("Start drücken.")
    assert back is not None
    assert back.target == "Press Start."


def test_every_format_of_pairs_is_read(tmp_path: Path) -> None:
    rows = "Close the door.\tTür zu.\n"
    files = [
        written(tmp_path, "old.tsv", rows),
        written(tmp_path, "old.csv", "source,target\nClose the door.,Tür zu.\n"),
        written(
            tmp_path,
            "old.jsonl",
            '{"source": "Close the door.", "target": "Tür zu."}\n',
        ),
        written(tmp_path, "old.po", PO),
        ",".join(
            written(tmp_path, name, f"{text}\n")
            for name, text in (("a.en", "Close the door."), ("a.de", "Tür zu."))
        ),
    ]
    packed = tmp_path / "packed.tsv.gz"
    packed.write_bytes(gzip.compress(rows.encode()))
    for name in [*files, str(packed)]:
        memory = read_memory([name], "en", "de")
        assert len(memory) == 1, name
        found = memory.exact("Close the door.")
        assert found is not None, name
        assert found.target == "Tür zu.", name


def test_a_file_without_a_unit_is_refused(tmp_path: Path) -> None:
    untranslated = 'msgid "Not yet"\nmsgstr ""\n'
    for name, content in (("a.po", untranslated), ("a.tsv", "a\t\n"), ("b.tsv", "")):
        path = written(tmp_path, name, content)
        with pytest.raises(DataError, match=rf"{name}: (no|.*empty)"):
            read_memory([path], "en", "de")
    with pytest.raises(DataError, match="no segments in fr"):
        read_memory([written(tmp_path, "old.tmx", TMX)], "en", "fr")


def test_spaces_and_unicode_do_not_hinder_an_exact_match_but_case_does() -> None:
    memory = memory_of(("Caf\u00e9  au lait", "Milchkaffee"), ("polish", "polieren"))
    for text in (" Café au lait\n", "Cafe\u0301 au\u00a0 lait"):
        match = memory.exact(text)
        assert match is not None, text
        assert match.target == "Milchkaffee"
    assert memory.exact("Polish") is None
    assert memory.exact("") is None
    near = memory.best("Polish")
    assert near is not None
    assert (near.kind, near.score) == ("near", 0.99)


def test_the_latest_of_several_targets_counts_and_is_named(tmp_path: Path) -> None:
    first = written(tmp_path, "a.tsv", "Yes\tJa\nNo\tNein\nYes\tDoch\nNo\tNein\n")
    second = written(tmp_path, "b.tsv", "Yes \tJawohl\n")
    memory = read_memory([first, second], "en", "de")
    match = memory.exact("Yes")
    assert match is not None
    assert (match.target, match.where) == ("Jawohl", f"{second}:1")
    assert memory.doubts == (
        f"{first}:1: {second}:1 has another target for its source, which is taken",
        f"{first}:3: {second}:1 has another target for its source, which is taken",
    )
    many = memory_of(*[("Yes", str(number)) for number in range(20)])
    assert len(many.doubts) == 6
    assert many.doubts[-1].startswith("14 more")


def test_near_units_come_with_their_scores() -> None:
    memory = memory_of(
        ("Open the red door.", "Öffne die rote Tür."),
        ("Open the old red door.", "Öffne die alte rote Tür."),
        ("Something else", "Etwas anderes"),
    )
    near = memory.near("Open the old door.", 3, 0.6)
    assert [(match.source, match.score, match.kind) for match in near] == [
        ("Open the old red door.", pytest.approx(5 / 6), "near"),
        ("Open the red door.", pytest.approx(4 / 5), "near"),
    ]
    assert memory.near("Open the old door.", 1) == near[:1]
    assert near[0].to_json() == {
        "source": "Open the old red door.",
        "target": "Öffne die alte rote Tür.",
        "score": near[0].score,
        "kind": "near",
        "where": "pairs:2",
    }


def test_training_leaves_out_the_pair_itself_and_its_doubles() -> None:
    texts = ["a b c d", "a b c e", "a b c d", "x y"]
    memory = memory_of(*[(text, "t") for text in texts])
    best = list(memory.best_of_each(texts, 0.5, exclude=range(4)))
    assert list(map(source, best)) == ["a b c e", "a b c d", "a b c e", None]
    best = list(memory.best_of_each(texts, 0.5))
    assert [match and match.score for match in best] == [1, 1, 1, 1]
    assert [match and match.number for match in best] == [2, 1, 2, 3]


def test_numbers_are_repaired_and_said_so() -> None:
    memory = memory_of(
        ("See page 4.", "Siehe Seite 4."), ("See page 8.", "Siehe S. acht.")
    )
    match = memory.repaired("See page  12.")
    assert match is not None
    assert (match.source, match.target) == ("See page 4.", "Siehe Seite 12.")
    assert (match.kind, match.score, match.where) == ("repaired", 0.75, "pairs:1")
    for text in ("See page 1.", "See page.", "See page A.", "Say page 12."):
        assert memory.repaired(text) is None, text


def test_texts_are_given_back() -> None:
    texts = Texts()
    wanted = ["", "a", "日本語", "half \ud800", "🐈"]
    for text in wanted:
        texts.append(text)
    assert len(texts) == 5
    assert [texts[number] for number in range(5)] == wanted


def test_units_of_a_file_with_one_line_have_numbers(tmp_path: Path) -> None:
    name = written(tmp_path, "one.tmx", TMX.replace("\n", " "))
    memory = read_memory([name], "en", "de")
    match = memory.exact("Close the door.")
    assert match is not None
    assert match.where == f"{name}: unit 2"
    text = read_pairs(name, "en", "de")
    again = Memory.from_text(text).exact("Close the door.")
    assert again is not None
    assert again.where == match.where


def test_units_left_out_for_their_state_are_counted(tmp_path: Path) -> None:
    old = tmp_path / "old.xlf"
    units = "".join(
        f"<trans-unit id='{name}'><source>{name}</source><target{state}>x</target></trans-unit>"
        for name, state in (
            ("one", ""),
            ("two", " state='needs-review-translation'"),
            ("three", " state='translated' state-qualifier='leveraged-mt'"),
        )
    )
    languages = "source-language='en' target-language='de'"
    old.write_text(
        f"<xliff version='1.2'><file {languages}><body>{units}</body></file></xliff>",
        "utf-8",
    )
    memory = read_memory([str(old)], "en", "de")
    assert memory.exact("one") is not None
    assert memory.exact("three") is None
    said = "unit by a machine that nobody has approved: 1, unit to be translated or reviewed: 1"
    assert memory.notes == (f"{old}: left out for their state: {said}",)
