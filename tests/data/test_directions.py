"""Texts of several pairs of languages, turned round and both ways."""

from dataclasses import replace
from pathlib import Path

import pytest

from weft.config import PairsSection
from weft.data.corpus import ParallelText, fingerprint, from_pairs, split_off
from weft.data.directions import (
    choose_pair,
    describe,
    read_directions,
    read_held_out,
    turned,
)
from weft.data.sources import mixtures_of
from weft.data.texts import Sources, gather_pairs
from weft.data.train_text import TrainText, Worth
from weft.errors import DataError, UsageError

EACH = PairsSection(directions="each")
BOTH = PairsSection(directions="both")
REVERSE = PairsSection(directions="reverse")


def _tmx(*languages: str, units: int = 2, header: str = "en") -> str:
    rows = ""
    for n in range(units):
        sides = (f'<tuv xml:lang="{x}"><seg>{x} {n}</seg></tuv>' for x in languages)
        rows += f"<tu>{''.join(sides)}</tu>\n"
    return f'<tmx version="1.4"><header srclang="{header}"/><body>\n{rows}</body></tmx>'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in (
        ("p.en-de.tsv", "a\tA\nb\tB\n"),
        ("q.fr-en.tsv", "x\ta\n"),
        ("bare.tsv", "a\tA\n"),
        ("named.tsv", "en\tde\na\tA\n"),
        ("t.en", "a\n"),
        ("t.de", "A\n"),
        ("m.tmx", _tmx("en", "de")),
        ("many.tmx", _tmx("de", "en", "fr-CA")),
    ):
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


def _texts(*names: str) -> list[TrainText]:
    return list(map(TrainText, names))


@pytest.mark.usefixtures("files")
def test_every_form_is_read_in_reverse(subtests: pytest.Subtests) -> None:
    for name in ("p.en-de.tsv", "named.tsv", "t.en,t.de", "m.tmx"):
        with subtests.test(name):
            whole = gather_pairs(REVERSE, Sources(tuple(_texts(name)))).train
            forward = gather_pairs(PairsSection(), Sources(tuple(_texts(name)))).train
            assert (whole.src_lang, whole.tgt_lang) == ("de", "en")
            assert (whole.src, whole.tgt) == (forward.tgt, forward.src)
            assert [whole.where(0)] == [forward.where(0)]
            # and from a recipe that names what the model reads, as that of a run does
            named = PairsSection(directions="reverse", src_lang="de", tgt_lang="en")
            again = gather_pairs(named, Sources(tuple(_texts(name)))).train
            assert again.src == whole.src


@pytest.mark.usefixtures("files")
def test_each_file_has_its_own_direction() -> None:
    text = read_directions(_texts("p.en-de.tsv", "q.fr-en.tsv"), EACH)
    assert text.directions == [("en", "de"), ("fr", "en")]
    assert text.rows_of(("fr", "en")) == [2]
    part = text.of(("fr", "en"))
    assert (part.src, part.tgt, part.src_lang, part.pairs) == (["x"], ["a"], "fr", ())
    dev = read_held_out("q.fr-en.tsv", text, EACH)
    assert (dev.src_lang, dev.tgt_lang) == ("fr", "en")
    with pytest.raises(DataError, match="differ in language"):
        read_directions(_texts("p.en-de.tsv", "q.fr-en.tsv"), PairsSection())
    with pytest.raises(UsageError, match=r"bare\.tsv: which languages are these"):
        read_directions(_texts("p.en-de.tsv", "bare.tsv"), EACH)
    # one pair of languages is one direction, whose texts keep their worth
    one = read_directions([TrainText("p.en-de.tsv"), TrainText("t.en,t.de", 2.0)], EACH)
    assert one.pairs == ()
    assert [worth.weight for worth in one.worths] == [1.0, 2.0, 2.0]


@pytest.mark.usefixtures("files")
def test_a_memory_of_many_languages_has_those_of_its_header_with_all_others() -> None:
    text = read_directions(_texts("many.tmx"), EACH)
    assert text.directions == [("en", "de"), ("en", "fr-CA")]
    assert text.of(("en", "fr-CA")).tgt == ["fr-CA 0", "fr-CA 1"]
    from_de = PairsSection(directions="each", src_lang="de")
    assert read_directions(_texts("many.tmx"), from_de).directions == [
        ("de", "en"),
        ("de", "fr-CA"),
    ]
    into_de = PairsSection(directions="each", tgt_lang="de")
    assert read_directions(_texts("many.tmx"), into_de).directions == [
        ("en", "de"),
        ("fr-CA", "de"),
    ]


@pytest.mark.usefixtures("files")
def test_both_ways() -> None:
    text = turned(read_directions(_texts("p.en-de.tsv", "q.fr-en.tsv"), BOTH), BOTH)
    assert text.directions == [("en", "de"), ("fr", "en"), ("de", "en"), ("en", "fr")]
    assert list(zip(text.src, text.tgt, strict=True)) == [
        ("a", "A"),
        ("b", "B"),
        ("x", "a"),
        ("A", "a"),
        ("B", "b"),
        ("a", "x"),
    ]
    assert text.where(4) == text.where(1) == "p.en-de.tsv:2"
    assert describe(text.directions) == "en to de, fr to en, de to en, en to fr"
    assert fingerprint(text) != fingerprint(replace(text, pairs=()))


def _many(count: int = 600) -> ParallelText:
    """Half of the pairs English to German, half German to English of the same sentences."""
    pairs = [(f"cat {n}", f"Katze {n}") for n in range(count // 2)]
    pairs += [(tgt, src) for src, tgt in pairs]
    text = from_pairs(pairs, "x", "en", "de")
    file_of = [0] * (count // 2) + [1] * (count // 2)
    both = (("en", "de"), ("de", "en"))
    return replace(text, files=["a", "b"], file_of=file_of, pairs=both)


def test_no_sentence_is_in_two_parts_whatever_its_side() -> None:
    parts = [part for part in split_off(_many(), 40, 40, seed=1) if part]
    assert len(parts) == 3
    sentences = [{*part.src, *part.tgt} for part in parts]
    assert not sentences[0] & sentences[1]
    assert not sentences[0] & sentences[2]
    assert not sentences[1] & sentences[2]


def test_a_machines_sources_are_not_turned() -> None:
    text = from_pairs([("a", "A"), ("b", "B"), ("c", "C")], "x", "en", "de")
    text = replace(
        text, files=["x", "y"], file_of=[0, 1, 0], worths=(Worth(), Worth(made=True))
    )
    both = turned(text, BOTH)
    assert both.src == ["a", "b", "c", "A", "C"]
    assert [both.worth_of(file).made for file in both.file_of] == [
        False,
        True,
        False,
        False,
        False,
    ]


def test_temperature_evens_out_directions_and_keeps_an_epochs_size() -> None:
    pairs = [(f"a {n}", f"b {n}") for n in range(100)]
    text = from_pairs(pairs, "x", "en", "de")
    file_of = [0] * 90 + [1] * 10
    both = (("en", "de"), ("en", "fr"))
    text = replace(text, files=["a", "b"], file_of=file_of, pairs=both)
    assert mixtures_of(text, ())[0].weights == (1.0, 1.0)
    (at_two,) = mixtures_of(text, (), temperature=2.0)
    # shares by hand: sqrt(90) : sqrt(10) = 3 : 1
    assert at_two.weights == pytest.approx((75 / 90, 25 / 10))
    (even,) = mixtures_of(text, (), temperature=1000.0)
    assert even.weights == pytest.approx((50 / 90, 50 / 10), rel=0.01)


def test_a_direction_is_chosen_by_its_languages() -> None:
    known = [("en", "de"), ("de", "en"), ("fr", "en"), ("en", "pt-BR")]
    assert choose_pair(known, "de") == ("en", "de")
    assert choose_pair(known, "en") == ("de", "en")
    assert choose_pair(known, "en", "fr") == ("fr", "en")
    assert choose_pair(known, "pt") == ("en", "pt-BR")
    with pytest.raises(UsageError, match="to fr: the model does not translate so"):
        choose_pair(known, "fr")


def test_what_is_held_out_is_read_as_in_use_without_tags() -> None:
    whole = replace(_many(), worths=(Worth(tag="a"), Worth(2.0)))
    train, dev, test = split_off(whole, 40, 40, seed=1)
    assert train.worths == whole.worths
    assert dev is not None
    assert test is not None
    assert dev.worths == test.worths == ()


@pytest.mark.usefixtures("files")
def test_no_note_advises_a_direction_that_the_recipe_speaks_of(
    subtests: pytest.Subtests,
) -> None:
    advice = "to train de to en, add"
    for name in ("named.tsv", "m.tmx"):
        for section in (BOTH, EACH, REVERSE):
            with subtests.test(name, directions=section.directions):
                notes = read_directions(_texts(name), section).notes
                assert not any(advice in note for note in notes)
    notes = read_directions(_texts("named.tsv"), PairsSection()).notes
    assert any(advice in note for note in notes)
    notes = read_directions(_texts("named.tsv"), BOTH).notes
    assert any(note.endswith("read as en to de") for note in notes)
