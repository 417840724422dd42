"""JSON lines as training pairs: by the names of their keys, as a table by those of its columns."""

from pathlib import Path

import pytest

from weft.data.corpus import read_pairs
from weft.data.kind import guess_task
from weft.errors import DataError


def write(tmp_path: Path, *lines: str, name: str = "a.jsonl") -> str:
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("line", "languages"),
    [
        ('{"en": "one", "de": "eins"}', ("en", "de")),
        ('{"id": 1, "English": "one", "German": "eins"}', ("en", "de")),
        ('{"target": "eins", "source": "one"}', ("und", "und")),
        ('{"id": 7, "translation": {"en": "one", "de": "eins"}}', ("en", "de")),
        ('{"source_en": "one", "target_de": "eins", "score": 0.5}', ("en", "de")),
    ],
)
def test_the_keys_say_the_sides(
    tmp_path: Path, line: str, languages: tuple[str, str]
) -> None:
    path = write(tmp_path, line, "", line.replace("one", "two"))
    text = read_pairs(path)
    assert (text.src, text.tgt, text.lines) == (["one", "two"], ["eins"] * 2, [1, 3])
    assert (text.src_lang, text.tgt_lang) == languages
    assert guess_task(path) == "translation"


def test_the_other_way_and_nothing_on_a_side(tmp_path: Path) -> None:
    path = write(tmp_path, '{"en": "one", "de": "eins"}', '{"en": null, "de": "zwei"}')
    text = read_pairs(path, "de", "en")
    assert (text.src, text.tgt) == (["eins"], ["one"])
    assert text.dropped == {"empty side": 1}


def test_labelled_rows_are_labelled_rows(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "a", "label": "b", "source": "x", "target": "y"}')
    assert guess_task(path) == "classification"
    other = write(tmp_path, '{"q": "a", "x": "b"}')
    assert guess_task(other) == "classification"
    with pytest.raises(DataError) as caught:
        read_pairs(other)
    assert "its keys ('q', 'x') do not name the two sides" in str(caught.value)
    assert "labelled rows" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"en": "a"}', ":2: the key 'de' of the first line is missing"),
        ('{"en": "a", "de": 3}', ":2: 'de' is no text"),
        ('{"en": "a", "de": "b\\u0000"}', ":2: 'de' holds NUL"),
        ('["en"]', ":2: JSON, but not an object"),
        ("{", ":2: not JSON"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path, '{"en": "one", "de": "eins"}', line)
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert said in str(caught.value)
