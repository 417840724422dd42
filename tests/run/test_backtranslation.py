"""weft backtranslate: text of one language becomes pairs, whatever stops it on the way."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.cluster.executor import Here
from weft.data.corpus import read_pairs
from weft.errors import DataError, UsageError
from weft.predict.prediction import Prediction
from weft.predict.translator import Translator
from weft.run.backtranslation import MadePairs, backtranslate
from weft.run.by_workers import ByWorkers
from weft.run.translations import Search, is_copy

DRAWN = Search(temperature=1.0, seed=7, times=2)


class KilledError(BaseException):
    """Ends a start at once, as nothing that is caught does."""


@pytest.fixture(scope="module")
def mono(write_pairs: Callable[[int], str], tmp_path_factory: Any) -> Path:
    """English sentences, a line each."""
    path = tmp_path_factory.mktemp("mono") / "mono.en.txt"
    rows = Path(write_pairs(40)).read_text("utf-8").split("\n")[:-1]
    path.write_text("".join(row.split("\t")[0] + "\n" for row in rows), "utf-8")
    return path


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def stopping(after: int) -> Callable[[int, int], Any]:
    """A bar that kills its start when so many sentences are written."""

    @contextmanager
    def bar(count: int, done: int) -> Iterator[Callable[[], None]]:
        numbers = iter(range(done + 1, count + 1))

        def advance() -> None:
            if next(numbers) == after:
                raise KilledError

        yield advance

    return bar


def writing(texts: dict[int, dict[str, Any]]) -> Callable[..., Iterator[Prediction]]:
    """The translator with other answers at these places, and a text of its own at all others."""
    translate = Translator.translate_stream

    def stream(self: Translator, sources: Any, **settings: Any) -> Iterator[Prediction]:
        sound = {"output_limit": None, "repetition": False}
        for i, found in enumerate(translate(self, sources, **settings)):
            fields = {"text": f"Hund Nummer {i}", **sound, **texts.get(i, {})}
            yield replace(found, **fields)

    return stream


def test_the_machine_writes_the_source_and_people_the_target(
    tiny_folder: Path, mono: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made.tsv"
    made = backtranslate(tiny_folder, [str(mono)], out, Search(2))
    written = weft.load(tiny_folder).translate(lines(mono), beam_size=2)
    pairs = zip((found.text for found in written), lines(mono), strict=True)
    assert lines(out) == ["de\ten", *map("\t".join, pairs)]
    text = read_pairs(str(out))
    assert (text.src_lang, text.tgt_lang, len(text)) == ("de", "en", 40)
    assert (made.count, made.src_lang, made.tgt_lang) == (40, "de", "en")
    assert sorted(tmp_path.iterdir()) == [out]


def test_samples_are_drawn_as_often_as_asked_each_time_by_another_seed(
    tiny_folder: Path, mono: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made.tsv"
    made = backtranslate(tiny_folder, [str(mono)], out, DRAWN)
    model = weft.load(tiny_folder)
    drawn = [
        (found.text, sentence)
        for seed in (7, 8)
        for sentence, found in zip(
            lines(mono),
            model.translate(lines(mono), temperature=1.0, seed=seed),
            strict=True,
        )
        if found.text.strip() and not found.truncated and not found.repetition
    ]
    assert lines(out)[1:] == ["\t".join(pair) for pair in dict.fromkeys(drawn)]
    assert made.count + sum(made.left_out.values()) == 80


def test_by_workers_they_are_the_same_pairs_and_no_block_is_made_twice(
    tiny_folder: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, out = tmp_path / "alone.tsv", tmp_path / "made.tsv"
    made = backtranslate(tiny_folder, [str(mono)], alone, DRAWN)
    by_workers = ByWorkers(Here(), 9, "this process")
    with pytest.raises(KilledError):
        backtranslate(
            tiny_folder,
            [str(mono)],
            out,
            DRAWN,
            progress=stopping(50),
            write=by_workers,
        )
    asked: list[str] = []
    translate = Translator.translate_stream

    def watched(self: Translator, texts: Any, **settings: Any) -> Iterator[Prediction]:
        asked.extend(texts)
        return translate(self, texts, **settings)

    monkeypatch.setattr(Translator, "translate_stream", watched)
    again = backtranslate(tiny_folder, [str(mono)], out, DRAWN, write=by_workers)
    assert out.read_bytes() == alone.read_bytes()
    assert (again.count, again.left_out) == (made.count, made.left_out)
    # of 5 blocks each time, all of the first and two of the second were done
    assert asked == lines(mono)[18:]
    assert sorted(tmp_path.iterdir()) == [alone, out]


@pytest.mark.parametrize("after", [1, 40, 57])
def test_stopped_anywhere_it_goes_on_to_the_same_pairs(
    tiny_folder: Path,
    mono: Path,
    tmp_path: Path,
    after: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, out = tmp_path / "whole.tsv", tmp_path / "made.tsv"
    backtranslate(tiny_folder, [str(mono)], whole, DRAWN)
    with pytest.raises(KilledError):
        backtranslate(tiny_folder, [str(mono)], out, DRAWN, progress=stopping(after))
    assert not out.exists()
    partial = tmp_path / "made.tsv.partial"
    assert len(lines(partial)) == after
    with partial.open("ab") as file:  # as a disk may have it
        file.write(b'{"text": "Kat')
    asked: list[str] = []
    translate = Translator.translate_stream

    def watched(self: Translator, texts: Any, **settings: Any) -> Iterator[Prediction]:
        asked.extend(texts := list(texts))
        return translate(self, texts, **settings)

    monkeypatch.setattr(Translator, "translate_stream", watched)
    backtranslate(tiny_folder, [str(mono)], out, DRAWN)
    assert len(asked) == 80 - after
    assert out.read_bytes() == whole.read_bytes()
    assert not partial.exists()


def test_what_is_not_to_be_learned_from_is_left_out_and_counted(
    tiny_folder: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        1: {"text": " "},
        2: {"output_limit": "decoding.max_len_ratio"},
        3: {"repetition": True},
        4: {"text": lines(mono)[4].upper()},
        5: {"text": "eine\tKatze\nhier\0"},
    }
    monkeypatch.setattr(Translator, "translate_stream", writing(answers))
    out = tmp_path / "made.tsv"
    made: MadePairs = backtranslate(tiny_folder, [str(mono), str(mono)], out)
    assert made.left_out == {
        "its translation is empty": 1,
        "its translation is cut": 1,
        "its translation repeats itself": 1,
        "its translation is a copy of it, or nearly": 1,
    }
    rows = [row.split("\t") for row in lines(out)[1:]]
    assert [row[1] for row in rows] == [
        sentence
        for i, sentence in enumerate([*lines(mono), *lines(mono)])
        if i not in (1, 2, 3, 4)
    ]
    assert rows[1][0] == "eine Katze hier"
    assert "left out: 1 of 80 sentences (its translation is cut)" in made.notes
    monkeypatch.setattr(
        Translator, "translate_stream", writing({40: {"text": "Hund Nummer 0"}})
    )
    again = backtranslate(tiny_folder, [str(mono), str(mono)], out)
    assert again.left_out == {"the same pair as before": 1}


def test_a_copy_has_hardly_another_word() -> None:
    text = "Abraham begat Isaac and Isaac begat Jacob"
    assert is_copy(text, text.lower())
    assert is_copy(text, "Abraham begat Isaac and Isaac begat Jakob")
    assert not is_copy(text, "Abraham zeugte Isaak, Isaak zeugte Jakob")
    assert not is_copy("1945 – 1949", "1945 – 1949")


def test_with_nothing_left_to_learn_it_ends_and_leaves_no_file(
    tiny_folder: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = {i: {"text": ""} for i in range(40)}
    monkeypatch.setattr(Translator, "translate_stream", writing(nothing))
    out = tmp_path / "made.tsv"
    with pytest.raises(DataError, match=r"no pair to learn from: left out: 40 of 40"):
        backtranslate(tiny_folder, [str(mono)], out)
    assert [*tmp_path.iterdir()] == []


def test_what_was_begun_otherwise_is_refused(
    tiny_folder: Path, mono: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made.tsv"
    with pytest.raises(KilledError):
        backtranslate(tiny_folder, [str(mono)], out, DRAWN, progress=stopping(3))
    with pytest.raises(UsageError, match="was started with another search"):
        backtranslate(tiny_folder, [str(mono)], out, replace(DRAWN, seed=8))
    other = tmp_path / "other.txt"
    other.write_text("the cat sleeps.\n", "utf-8")
    with pytest.raises(UsageError, match="was started with another text; give"):
        backtranslate(tiny_folder, [str(other)], out, DRAWN)
    record = json.loads((tmp_path / "made.tsv.partial.json").read_text("utf-8"))
    assert record["search"] == "samples at temperature 1, seed 7, 2 of each"


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="--times is for samples"):
        Search(times=2)
    with pytest.raises(UsageError, match="top_k is for samples"):
        Search(top_k=5)
    with pytest.raises(UsageError, match="beam_size is for a search"):
        Search(4, temperature=1.0)


def test_languages_that_no_reader_knows_by_their_code_are_not_named(
    tiny_folder: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above phrases `kos` may be a word; the columns are then source and target."""
    monkeypatch.setattr("weft.run.backtranslation.find_header_of", lambda *asked: None)
    out = tmp_path / "made.tsv"
    backtranslate(tiny_folder, [str(mono)], out)
    assert lines(out)[0] == "source\ttarget"
    text = read_pairs(str(out), "de", "en")
    assert len(text) == 40
