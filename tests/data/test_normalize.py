"""Steps that a tokenizer file cannot hold: their names, their absence, and what they do to
lines.
"""

import sys
import time
from importlib import metadata

import pytest

from weft.config import SideSection
from weft.data.normalize import Step, has_spaced_words, load_steps, replace_surrogates
from weft.errors import UsageError

PACKAGES = ("nltk", "spacy")


def _words(package: str, **more: object) -> SideSection:
    return SideSection.model_validate({"kind": "word", "words": package, **more})


def _step(package: str) -> Step:
    pytest.importorskip(
        package, reason=f"{package} is not installed (pip install '.[classic]')"
    )
    return load_steps(_words(package))[1][0]


@pytest.mark.parametrize("words", ["unicode", "whitespace"])
def test_what_needs_no_package_needs_no_step(words: str) -> None:
    settings = _words(words)
    assert load_steps(settings) == ({}, [])
    assert not has_spaced_words(settings)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_step_is_named_with_the_version_of_its_package(package: str) -> None:
    _step(package)
    versions, functions = load_steps(_words(package))
    assert list(versions.values()) == [metadata.version(package)]
    assert next(iter(versions)).startswith(package)
    assert len(functions) == 1
    assert has_spaced_words(_words(package))


def test_simplified_comes_before_words() -> None:
    pytest.importorskip("opencc", reason="opencc is not installed")
    _step("nltk")
    versions, (simplify, words) = load_steps(_words("nltk", simplified=True))
    assert [name.split(" ")[0] for name in versions] == ["opencc", "nltk"]
    assert words(simplify("漢語, 學習!")) == "汉语 , 学习 !"


@pytest.mark.parametrize(
    ("settings", "module", "message"),
    [
        (
            _words("nltk"),
            "nltk",
            r"words = .nltk. needs nltk: .* '\.\[classic\]'",
        ),
        (
            _words("spacy"),
            "spacy",
            r"words = .spacy. needs spacy: .* '\.\[classic\]'",
        ),
        (
            SideSection(simplified=True),
            "opencc",
            r"simplified = true needs opencc: .* '\.\[zh\]'",
        ),
    ],
)
def test_without_its_package_the_error_names_the_extra(
    settings: SideSection, module: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=message):
        load_steps(settings)


def test_nltk_takes_each_line_for_a_sentence() -> None:
    step = _step("nltk")
    assert step("I can't, Mr. Fox.") == "I ca n't , Mr. Fox ."
    assert step("He left. She stayed.") == "He left. She stayed ."
    assert step("He left.\nShe stayed.") == "He left . \n She stayed ."
    assert step('"Yes," he said.') == "`` Yes , '' he said ."


def test_spacy_parts_punctuation_and_leaves_contractions() -> None:
    step = _step("spacy")
    assert step("I don't, (really) know!") == "I don't , ( really ) know !"
    assert step("Ja, morgen.\nNein.") == "Ja , morgen . \n Nein ."
    assert (
        step("see https://example.org/a?b=c now") == "see https://example.org/a?b=c now"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_white_space_is_one_space_and_an_end_of_line_is_a_word(package: str) -> None:
    step = _step(package)
    assert step("") == step(" \t ") == step("\u2028\u00a0") == ""
    assert step("  a \t b\u00a0c\r\nd  ") == "a b c \n d"
    assert step("\n") == "\n"
    assert step("a\n \n\nb\n") == "a \n \n \n b \n"


@pytest.mark.parametrize("package", PACKAGES)
def test_steps_go_by_lines(package: str) -> None:
    step = _step(package)
    lines = [
        "“One, two”",
        "",
        "  can't stop. ",
        "(3.5%) of it...",
        "it's 'quoted'",
        "$5",
        "x",
    ]
    words = [word for line in lines for word in ("\n", step(line)) if word]
    assert step("\n".join(lines)) == " ".join(words[1:])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_run_that_is_no_word_stays_whole(package: str) -> None:
    step = _step(package)
    run = "a-(b)." * 50
    assert step(f"so, {run} it\nis, {run}") == f"so , {run} it \n is , {run}"


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "unit",
    ["(", ".", "'", "-", "a", " ", "( ", ". ", ".)", "\t", '"', "a.", "/", ":) ", "1,"],
)
def test_runs_take_linear_time(package: str, unit: str) -> None:
    step = _step(package)
    text = unit * (60_000 // len(unit)) + "b"
    start = time.perf_counter()
    assert step(text).replace(" ", "")
    assert time.perf_counter() - start < 4


def test_lone_surrogates_are_replaced() -> None:
    assert replace_surrogates("a\ud800b\udfff") == "a\ufffdb\ufffd"
    assert replace_surrogates("a\U0001f600") == "a\U0001f600"
