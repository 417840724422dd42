"""What a model folder knows of its languages: kept by what is made from it, refused where damaged,
made up for where an earlier version kept nothing.
"""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import weft
from weft.config import SideSection
from weft.data.scripts import usual_scripts
from weft.data.tokenizer import build_tokenizer
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import LANGUAGES, RunFolder
from weft.folder.model_folder import open_model_folder
from weft.folder.profiles import read_profiles, write_profiles
from weft.ship.averaging import average
from weft.ship.quantization import quantize
from weft.tasks.detecting import detector_of, languages_in

OLD = Path(__file__).parent / "old"


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def with_file(folder: Path, content: bytes) -> Path:
    """Put a file of languages into a folder, and a manifest that is true of it."""
    (folder / LANGUAGES).write_bytes(content)
    files = durable.read_json(folder / durable.MANIFEST)["files"]
    durable.write_manifest(folder, [*files])
    return folder


def without_file(folder: Path) -> Path:
    """Make a folder one of an earlier version, which had no such file."""
    (folder / LANGUAGES).unlink()
    files = durable.read_json(folder / durable.MANIFEST)["files"]
    durable.write_manifest(folder, [name for name in files if name != LANGUAGES])
    return folder


def test_a_trained_model_has_the_profiles_of_both_sides(tiny_folder: Path) -> None:
    assert LANGUAGES in durable.read_manifest(tiny_folder)["files"]
    profiles = read_profiles(tiny_folder / LANGUAGES)
    assert [*profiles] == ["de", "en"]
    assert (tiny_folder / LANGUAGES).stat().st_size < 100_000
    own = RunFolder(tiny_folder).languages.read_bytes()
    assert own == (tiny_folder / LANGUAGES).read_bytes()


def test_what_is_made_from_a_model_keeps_them(
    tiny_folder: Path, tmp_path: Path, write_pairs: Callable[[int], str]
) -> None:
    content = (tiny_folder / LANGUAGES).read_bytes()
    average([tiny_folder, tiny_folder], tmp_path / "mean")
    assert (tmp_path / "mean" / LANGUAGES).read_bytes() == content
    quantize(tiny_folder, [write_pairs(40)], tmp_path / "small", max_bleu_loss=100)
    assert (tmp_path / "small" / LANGUAGES).read_bytes() == content
    assert LANGUAGES in durable.read_manifest(tmp_path / "small")["files"]


def test_what_is_made_from_an_earlier_model_has_none(
    folder: Path, tmp_path: Path
) -> None:
    without_file(folder)
    average([folder, folder], tmp_path / "mean")
    assert not (tmp_path / "mean" / LANGUAGES).exists()
    assert weft.load(tmp_path / "mean").detect("Hund")[0][0] == "de"


def test_a_model_trained_further_knows_the_text_of_both(
    tiny_folder: Path, tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    text = tmp_path / "more.en-de.tsv"
    rows = (f"zebra walks {i}.\tZebra geht {i}.\n" for i in range(40))
    text.write_text("".join(rows))
    settings = [
        one for one in tiny_settings if not one.startswith(("model.", "tokenizer."))
    ]
    weft.train(
        out=tmp_path / "out",
        train=str(text),
        start_from=tiny_folder,
        settings=[*settings, "training.max_steps=1"],
        quiet=True,
    )
    before = languages_in(tiny_folder).profiles["en"]
    after = languages_in(tmp_path / "out").profiles["en"]
    assert set(before.keys.tolist()) < set(after.keys.tolist())
    assert weft.load(tmp_path / "out").detect("walks")[0] > ("en", 0.9)
    assert weft.load(tmp_path / "out").detect("the mouse")[0] > ("en", 0.9)


def test_a_resumed_run_keeps_what_its_first_start_learned(
    folder: Path, tiny_settings: tuple[str, ...], write_pairs: Callable[[int], str]
) -> None:
    kept = RunFolder(folder).languages
    marked = {"fr": np.array([[9, 9]], np.uint8)}
    write_profiles(kept, marked)
    settings = [*tiny_settings, "training.eval_every=60", "model.d_model=32"]
    weft.train(
        out=folder,
        train=write_pairs(216),
        settings=[*settings, "training.max_steps=121"],
        quiet=True,
    )
    assert [*read_profiles(folder / LANGUAGES)] == ["fr"]
    # of a run of an earlier version they are learned when it goes on
    kept.unlink()
    weft.train(
        out=folder,
        train=write_pairs(216),
        settings=[*settings, "training.max_steps=122"],
        quiet=True,
    )
    assert [*read_profiles(folder / LANGUAGES)] == ["de", "en"]


# Files that are not ours


def test_a_poisoned_file_is_refused_in_a_line(
    folder: Path, subtests: pytest.Subtests
) -> None:
    sound = (folder / LANGUAGES).read_bytes()
    (length,) = struct.unpack("<Q", sound[:8])
    header = json.loads(sound[8 : 8 + length])
    header["en"]["shape"] = [2**60, 2]
    hostile = json.dumps(header).encode()
    bad = {
        "empty": b"",
        "no safetensors": b"nothing" * 9,
        "a header of 2^60 bytes": struct.pack("<Q", 2**60) + sound[8:],
        "a size of 2^61": struct.pack("<Q", len(hostile)) + hostile,
        "cut": sound[:-1],
        "two megabytes": sound + bytes(2**21),
    }
    for name, content in bad.items():
        with subtests.test(name), pytest.raises(FolderError, match=LANGUAGES) as found:
            languages_in(with_file(folder, content))
        assert "\n" not in str(found.value)
        assert len(str(found.value)) < 600
        assert found.value.exit_code == 5


def test_arrays_that_are_no_profiles_are_refused(
    folder: Path, subtests: pytest.Subtests
) -> None:
    (rows, _) = read_profiles(folder / LANGUAGES).values()
    bad = {
        "NaN": {"en": np.full((9, 2), np.nan, np.float32)},
        "another shape": {"en": np.zeros((9, 3), np.uint8)},
        "nothing in it": {"en": np.zeros((0, 2), np.uint8)},
        "no order": {"en": np.zeros((9, 2), np.uint8)},
        "no language code": {"english!": rows},
        "not its usual code": {"EN_us": rows},
        "no language": {"und": rows},
        "a hundred and one": {
            f"a{chr(97 + n // 26)}{chr(97 + n % 26)}": rows[:1] for n in range(101)
        },
    }
    for name, arrays in bad.items():
        save_file(arrays, folder / "made")
        content = (folder / "made").read_bytes()
        with subtests.test(name), pytest.raises(FolderError, match=LANGUAGES) as found:
            languages_in(with_file(folder, content))
        assert "\n" not in str(found.value)


def test_a_file_that_the_manifest_lists_must_be_there(folder: Path) -> None:
    (folder / LANGUAGES).unlink()
    with pytest.raises(FolderError, match=LANGUAGES):
        open_model_folder(folder)
    # one that it does not list is not read
    (folder / LANGUAGES).write_bytes(b"nothing")
    without_file(folder)
    (folder / LANGUAGES).write_bytes(b"nothing")
    assert languages_in(folder).is_guessed


# Folders of an earlier version


def test_old_folders_say_what_their_vocabularies_tell() -> None:
    found = languages_in(OLD / "translation")
    assert (found.named, found.is_guessed) == (["de", "en"], True)
    assert "told by its vocabulary alone" in found.note()
    detector = detector_of([OLD / "translation"])
    assert detector.best("ich mochte ein bier")[0] == "de"
    assert detector.best("i want a beer")[0] == "en"
    assert detector.best("рыба")[0] == "und"
    for task in ("language", "classifier"):
        assert languages_in(OLD / task).profiles == {}
        assert "names no language" in languages_in(OLD / task).note()
        assert detector_of([OLD / task]).best("beer") == ("und", 1.0)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "character", "byte"])
def test_vocabularies_of_every_kind(folder: Path, kind: str) -> None:
    """A folder as it was before, with tokenizers of this kind in place of its own."""
    from weft.data.builtin import pairs

    without_file(folder)
    text = pairs("everyday", "en", "de").train[:1500]
    config = durable.read_json(folder / "config.json")
    for number, side in enumerate(("src", "tgt")):
        settings = SideSection(kind=kind, vocab_size=900 if kind != "byte" else None)
        tokenizer = build_tokenizer(settings, [row[number] for row in text])
        durable.write_bytes(
            folder / f"tokenizer.{side}.json", tokenizer.to_json().encode()
        )
        config["tokenizer"][side] = tokenizer.settings.model_dump(mode="json")
        config[f"{side}_vocab_size"] = tokenizer.vocab_size
    durable.write_json(folder / "config.json", config)
    durable.write_manifest(
        folder, [*durable.read_json(folder / "manifest.json")["files"]]
    )
    detector = detector_of([folder])
    test = pairs("everyday", "en", "de").test[:100]
    found = [detector.best(text)[0] for row in test for text in row]
    right = sum(
        code == lang for code, lang in zip(found, ["en", "de"] * 100, strict=True)
    )
    least = {"byte": 0, "character": 130}.get(kind, 190)
    assert least <= right
    if kind == "byte":
        assert {*found} == {"und"}


def joint_folder(
    tmp_path: Path,
    settings: tuple[str, ...],
    langs: tuple[str, str],
    rows: list[tuple[str, str]],
) -> Path:
    """Train a model whose sides share a tokenizer, as an earlier version had it."""
    text = tmp_path / "pairs.tsv"
    text.write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    own = [one for one in settings if not one.startswith("tokenizer.")]
    tokenizer = [
        "tokenizer.joint=true",
        "tokenizer.src.kind=bpe",
        "tokenizer.tgt.kind=bpe",
    ]
    names = [f"data.src_lang={langs[0]}", f"data.tgt_lang={langs[1]}"]
    weft.train(
        out=tmp_path / "joint",
        train=str(text),
        settings=[*own, *tokenizer, *names, "training.max_steps=1"],
        quiet=True,
        allow_bad_data=True,
    )
    return without_file(tmp_path / "joint")


def test_a_vocabulary_of_both_sides_tells_scripts_alone(
    tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    words = [("the dog", "собака"), ("a cat", "кошка"), ("my house", "мой дом")]
    rows = [(f"{a} and {c}", f"{b} и {d}") for a, b in words for c, d in words] * 5
    folder = joint_folder(tmp_path, tiny_settings, ("en", "ru"), rows)
    detector = detector_of([folder])
    assert [detector.best(one)[0] for one in ("dog", "дом", "猫")] == [
        "en",
        "ru",
        "und",
    ]
    assert "less surely" in languages_in(folder).note()


def test_a_vocabulary_of_both_sides_in_one_script_tells_nothing(
    tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    words = [
        ("the dog", "der Hund"),
        ("a cat", "eine Katze"),
        ("my house", "mein Haus"),
    ]
    rows = [(f"{a} and {c}", f"{b} und {d}") for a, b in words for c, d in words] * 5
    folder = joint_folder(tmp_path, tiny_settings, ("en", "de"), rows)
    assert "does not tell en from de" in languages_in(folder).note()
    assert detector_of([folder]).best("the dog") == ("und", 1.0)


def test_the_scripts_of_languages() -> None:
    assert usual_scripts("en") == usual_scripts("pt-BR") == {"LATIN"}
    assert usual_scripts("ru") == usual_scripts("uk") == {"CYRILLIC"}
    assert usual_scripts("zh-Hant") == {"CJK"}
    assert usual_scripts("ja") == {"CJK", "HIRAGANA", "KATAKANA"}
