"""A model folder, written and read back, and what is said where it is none."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import weft
from weft.errors import FolderError
from weft.folder import durable, model_folder
from weft.folder.model_folder import RunFolder, open_model_folder
from weft.kernels.machine import Machine
from weft.tasks.trainable_translation import TrainableTranslation

PLAIN = Machine("cpu", "float32", 1, "")
FILES = {
    "model.safetensors",
    "config.json",
    "tokenizer.src.json",
    "tokenizer.tgt.json",
    "words.safetensors",
    "languages.safetensors",
}


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy of the trained folder without its run."""
    return Path(
        shutil.copytree(
            tiny_folder, tmp_path / "model", ignore=shutil.ignore_patterns("run")
        )
    )


def refusal(folder: Path) -> str:
    with pytest.raises(FolderError) as caught:
        weft.load(folder)
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_files_and_what_the_manifest_lists(tiny_folder: Path) -> None:
    assert {p.name for p in tiny_folder.iterdir()} == FILES | {
        "README.md",
        "manifest.json",
        "run",
    }
    assert set(durable.read_manifest(tiny_folder)["files"]) == FILES


def test_a_model_needs_nothing_of_its_run(folder: Path, tiny_folder: Path) -> None:
    texts = ["cat sees dog.", "fish wants mouse."]
    assert weft.load(folder).translate(texts) == weft.load(tiny_folder).translate(texts)


def test_saved_again_it_is_the_same(folder: Path, tmp_path: Path) -> None:
    task = TrainableTranslation.load(folder, PLAIN)
    profiles = open_model_folder(folder).profiles()
    task.save(tmp_path / "again", {"steps": 1}, "the card", profiles)
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (
            folder / name
        ).read_bytes(), name
    assert (tmp_path / "again" / "README.md").read_text() == "the card"
    assert durable.read_manifest(tmp_path / "again")["steps"] == 1


def test_saving_over_a_model_leaves_what_else_is_there(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    task = TrainableTranslation.load(folder, PLAIN)
    with torch.no_grad():
        next(task.model.parameters()).add_(1.0)
    task.save(folder, {}, "")
    again = TrainableTranslation.load(folder, PLAIN)
    assert all(
        torch.equal(a, b)
        for a, b in zip(task.model.parameters(), again.model.parameters(), strict=True)
    )
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_save_that_stops_halfway_leaves_no_model_that_claims_to_be_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TrainableTranslation.load(folder, PLAIN)

    def stop(path: Path, content: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(durable, "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        task.save(folder, {}, "")
    assert "has no manifest.json" in refusal(folder)


def test_a_joint_tokenizer_is_one_file(
    tmp_path: Path, write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...]
) -> None:
    joint = ("tokenizer.joint=true", "training.max_steps=1")
    weft.train(
        out=tmp_path / "m",
        train=write_pairs(40),
        settings=(*tiny_settings, *joint),
        quiet=True,
    )
    assert (tmp_path / "m" / "tokenizer.json").is_file()
    assert not (tmp_path / "m" / "tokenizer.src.json").exists()
    task = TrainableTranslation.load(tmp_path / "m", PLAIN)
    assert task.tokenizers[0] is task.tokenizers[1]


def test_no_such_folder_an_empty_one_a_file_an_unfinished_run(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "none")
    assert "not a Weft model folder" in refusal(tmp_path)
    (tmp_path / "file").write_text("")
    assert "is no folder" in refusal(tmp_path / "file")
    RunFolder(tmp_path).folder.mkdir()
    RunFolder(tmp_path).recipe.write_text("{}")
    assert "training has not finished; the same call continues it" in refusal(tmp_path)
    RunFolder(tmp_path).recipe.write_text(
        '{"command": "weft train a.tsv --fresh --output x"}'
    )
    assert (
        "training has not finished; the same command continues it: weft train a.tsv --output x"
        in refusal(tmp_path)
    )
    (RunFolder(tmp_path).checkpoints / "step-3").mkdir(parents=True)
    assert f"x; to use what is saved: weft finish {tmp_path}" in refusal(tmp_path)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in refusal(folder)


@pytest.mark.parametrize("name", sorted(FILES - {"languages.safetensors"}))
def test_a_manifest_that_lists_less_is_refused(folder: Path, name: str) -> None:
    """Else a file that nothing vouches for would be read."""
    durable.write_manifest(folder, sorted(FILES - {name}))
    assert f"does not list {name}" in refusal(folder)


def test_the_config_says_what_the_model_is(tiny_folder: Path) -> None:
    config = open_model_folder(tiny_folder).config
    assert (config.src_lang, config.tgt_lang, config.joint) == ("en", "de", False)
    assert config.model.d_model == 32
    assert config.weft_version == model_folder.VERSION
    assert (config.tokenizer.src.kind, config.tokenizer.tgt.kind) == ("word", "word")


def test_the_card_says_how_it_was_made_and_what_it_scores(tiny_folder: Path) -> None:
    card = (tiny_folder / "README.md").read_text()
    verdict = json.loads(RunFolder(tiny_folder).verdict.read_bytes())
    assert "Translation, en to de" in card
    assert "pairs.en-de.tsv" in card
    assert (
        f"BLEU  {verdict['test']['bleu']:6.2f}  {verdict['test']['bleu_signature']}"
        in card
    )
    assert all(note in card for note in verdict["notes"])


def test_a_folder_of_a_later_format_says_so(folder: Path) -> None:
    """And not which of its keys is unknown: a later format may differ in anything."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {
        "format": model_folder.FORMAT + 1,
        "weft_version": "9.9",
        "unheard_of": True,
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    durable.write_manifest(folder, sorted(FILES))
    said = refusal(folder)
    assert "written by Weft 9.9 in folder format 2" in said
    assert "install a newer weft-text" in said
    assert "unheard_of" not in said
