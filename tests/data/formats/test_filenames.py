"""Languages in file names: whatever the format, its ending is no part of the name."""

import pytest

from weft.data import languages
from weft.data.formats.filenames import from_name, from_two_names, pair_from_name
from weft.data.formats.registry import FILE_TYPES


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("train.en", "en"),
        ("train.de.gz", "de"),
        ("en.txt", "en"),
        ("train.zh-CN", "zh-CN"),
        ("Tatoeba.deu", "de"),
        ("corpus.cmn.txt.gz", "zh"),
        ("train.cn", "zh"),
        ("train.jp", "ja"),
        ("train.yue", "yue"),
        ("train.src", None),
        ("train.tgt", None),
        ("train.txt", None),
        ("train", None),
        ("train.val", None),
        ("train.de.xlf", "de"),
        (".gz", None),
        ("", None),
    ],
)
def test_the_suffix_names_the_language(name: str, language: str | None) -> None:
    assert from_name(name) == language


@pytest.mark.parametrize(
    ("src", "tgt", "langs"),
    [
        ("train.en", "train.chr", ("en", "chr")),
        ("train.en", "train.kos", ("en", "kos")),
        ("a.kos.txt.gz", "b.en.gz", ("kos", "en")),
        ("kos.txt", "en.txt", ("kos", "en")),
        ("train.kos", "train.mos", (None, None)),
        ("train.en", "train.src", ("en", None)),
        ("train.hyp", "train.de", (None, "de")),
        ("train.en", "train.kosr", ("en", None)),
        ("train.en", "new.txt", ("en", None)),
        ("train.en", "abc.txt", ("en", None)),
        ("train.en", "", ("en", None)),
    ],
)
def test_beside_a_known_language_a_code_of_three_letters_is_one(
    src: str, tgt: str, langs: tuple[str | None, str | None]
) -> None:
    assert from_two_names(src, tgt) == langs


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("pairs.en-zh.tsv", ("en", "zh")),
        ("en-zh.tsv.gz", ("en", "zh")),
        ("train_en-de.txt", ("en", "de")),
        ("en_zh-TW.tmx", ("en", "zh-TW")),
        ("pairs.en-de.csv", ("en", "de")),
        ("pairs.en-de.MD.gz", ("en", "de")),
        ("pt-BR-en.tsv", ("pt-BR", "en")),
        ("en-chr.tsv", ("en", "chr")),
        ("eng-deu.tsv", ("en", "de")),
        ("train.tsv", None),
        ("two-words.tsv", None),
        ("my-data.tsv", None),
    ],
)
def test_the_name_of_one_file_may_hold_both(
    name: str, pair: tuple[str, str] | None
) -> None:
    assert pair_from_name(name) == pair


def test_no_ending_is_a_language() -> None:
    endings = [ending for kind in FILE_TYPES.values() for ending in kind.endings]
    assert "xlf" in endings
    assert [ending for ending in endings if languages.known(ending)] == []
