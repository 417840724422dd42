"""Language codes as files and people write them."""

import pytest

from weft.data.languages import (
    canonical,
    direction,
    how_to_name,
    primary,
)


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
