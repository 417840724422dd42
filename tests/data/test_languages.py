"""Language codes as file names, files and people write them."""

import pytest

from weft.data.languages import (
    canonical,
    direction,
    from_name,
    how_to_name,
    pair_from_name,
    primary,
)


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
        (".gz", None),
        ("", None),
    ],
)
def test_the_suffix_names_the_language(name: str, language: str | None) -> None:
    assert from_name(name) == language


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("pairs.en-zh.tsv", ("en", "zh")),
        ("en-zh.tsv.gz", ("en", "zh")),
        ("train_en-de.txt", ("en", "de")),
        ("en_zh-TW.tmx", ("en", "zh-TW")),
        ("pt-BR-en.tsv", ("pt-BR", "en")),
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


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("EN_us", "en-US"),
        ("deu", "de"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("und", "und"),
        ("English", None),
        ("", None),
    ],
)
def test_the_canonical_form(written: str, tag: str | None) -> None:
    assert canonical(written) == tag


def test_the_primary_subtag() -> None:
    assert [primary(tag) for tag in ("zh-Hant-TW", "eng", "*all*")] == [
        "zh",
        "en",
        "und",
    ]


@pytest.mark.parametrize(
    ("langs", "words"),
    [
        (("de", "en"), "de to en"),
        (
            ("und", "und"),
            "languages unknown (name them by --set data.src_lang=... --set data.tgt_lang=...)",
        ),
        (
            ("und", "en"),
            "an unknown language to en (name it by --set data.src_lang=...)",
        ),
        (
            ("de", "und"),
            "de to an unknown language (name it by --set data.tgt_lang=...)",
        ),
    ],
)
def test_languages_that_nobody_named_are_said_to_be_unknown(
    langs: tuple[str, str], words: str
) -> None:
    assert direction(*langs) + how_to_name(*langs) == words
