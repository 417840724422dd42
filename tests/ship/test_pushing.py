"""What goes to the Hub, and what is refused: with a server that stands in for it."""

import json
import logging
import re
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import transformers
import yaml
from huggingface_hub import constants

import random_models
import weft
from cards import code_in
from stand_in_hub import StandInHub
from weft.__main__ import main
from weft.data.memory import read_units
from weft.errors import FolderError, UsageError, WeftError
from weft.folder import durable
from weft.predict.rows import most_tokens
from weft.ship.ctranslate2.target import CTranslate2
from weft.ship.exporting import export
from weft.ship.huggingface.target import HuggingFace
from weft.ship.pack import pack
from weft.ship.pushing import Pushed, push
from weft.ship.target import Asked

TOKEN = "hf_canary0123456789"
SECRET = b"what the model has learned from"
UNCERTIFIED = Asked(is_certified=False)

# of the library about itself
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandInHub]:
    """The stand-in, as the Hub of this process; whoever asks has the token."""
    found = StandInHub(TOKEN)
    with found.serving() as address:
        place = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose folder has more than is to leave."""
    folder = random_models.write_folder("en-de", tmp_path_factory.mktemp("m") / "model")
    run = folder / "run"
    run.mkdir()
    (run / "recipe.json").write_bytes(SECRET)
    (folder / "train.tsv").write_bytes(SECRET)
    return folder


@pytest.fixture(scope="module")
def exported(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What weft export wrote of it, with a file that somebody put there."""
    folder = tmp_path_factory.mktemp("e") / "out"
    export(model, HuggingFace(), folder, asked=Asked("mit", is_certified=False))
    (folder / "notes.txt").write_bytes(SECRET)
    return folder


def test_a_pushed_model_is_loaded_by_its_name(
    hub: StandInHub, model: Path, tmp_path: Path
) -> None:
    asked = Asked("cc-by-4.0", "free", is_certified=False)
    made = push(model, "en-de", asked=asked, is_public=True)
    assert made.repository == "me/en-de"
    assert made.address == f"{hub.address}/me/en-de"
    kept = hub.repositories["me/en-de"]
    assert (len(kept.commits), kept.is_private) == (2, False)
    assert made.commit.endswith(f"/commit/{kept.newest}")
    assert {name: len(content) for name, content in kept.files.items()} == made.files
    assert not any(SECRET in content for content in kept.files.values())
    # its own manifest is right of what is there
    down = huggingface_hub.snapshot_download("me/en-de", cache_dir=tmp_path)
    assert durable.read_manifest(Path(down))["format"] == "weft-export-huggingface"
    # and so are the commands of the card, by which the model is the same
    card = kept.files["README.md"].decode()
    assert "THIS_FOLDER" not in card
    name = re.findall(r'Tokenizer\.from_pretrained\("(.+)"\)', card)[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, cache_dir=tmp_path)
    there = transformers.AutoModelForSeq2SeqLM.from_pretrained(name, cache_dir=tmp_path)
    ids = tokenizer("Ein Hund.", return_tensors="pt")
    translator = weft.load(model)
    limit = most_tokens(translator.decoding, ids["input_ids"].shape[1], 200)
    (found,) = there.generate(**ids, num_beams=1, max_length=limit + 1).tolist()
    (own,) = translator.translate(["Ein Hund."], beam_size=1)
    assert tokenizer.decode(found, skip_special_tokens=True) == own.text


def test_what_was_exported_goes_as_it_is(hub: StandInHub, exported: Path) -> None:
    made = push(exported, "team/de", is_public=True)
    kept = hub.repositories["team/de"]
    assert sorted(made.files) == sorted(kept.files)
    assert "notes.txt" not in kept.files
    weights = (exported / "model.safetensors").read_bytes()
    assert kept.files["model.safetensors"] == weights
    assert b'from_pretrained("team/de")' in kept.files["README.md"]
    with pytest.raises(UsageError, match="exported already"):
        push(exported, "team/de", asked=Asked("mit"))


def test_a_form_that_no_name_loads_is_downloaded_first(
    hub: StandInHub, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(model, CTranslate2(), out, asked=UNCERTIFIED)
    push(out, "team/de")
    card = hub.repositories["team/de"].files["README.md"].decode()
    assert code_in(card, "bash")[0] == "hf download team/de --local-dir de\n"
    assert "that this card is in" not in card
    assert 'ctranslate2.Translator("de")' in card
    assert "THIS_FOLDER" not in card


def test_a_pack_goes_as_its_folder_does(
    hub: StandInHub, model: Path, tmp_path: Path
) -> None:
    pack(model, tmp_path / "model.weft")
    push(tmp_path / "model.weft", "packed", asked=UNCERTIFIED)
    push(model, "folder", asked=UNCERTIFIED)
    packed, folder = (hub.repositories[f"me/{n}"].files for n in ("packed", "folder"))
    assert packed.keys() == folder.keys()
    assert packed["model.safetensors"] == folder["model.safetensors"]


def test_a_model_without_a_home_goes_as_weft_opens_it(
    hub: StandInHub, tmp_path: Path
) -> None:
    folder = random_models.write_folder("classify-fast", tmp_path / "model")
    (folder / "run").mkdir()
    (folder / "run" / "train.txt").write_bytes(SECRET)
    made = push(folder, "words", asked=Asked("mit"))
    assert made.form == "the folder of Weft"
    assert any("note: so it goes as Weft opens it" in line for line in made.found)
    kept = hub.repositories["me/words"].files
    assert "run/train.txt" not in kept
    assert not any(SECRET in content for content in kept.values())
    card = kept["README.md"].decode()
    head = yaml.safe_load(card.split("---\n")[1])
    assert (head["library_name"], head["license"]) == ("weft", "mit")
    assert "hf download me/words --local-dir words\n" in card
    assert 'weft classify words "A text."' in card
    down = huggingface_hub.snapshot_download("me/words", local_dir=tmp_path / "words")
    text = random_models.TEXTS[0]
    assert weft.load(Path(down)).classify(text) == weft.load(folder).classify(text)


def test_text_that_a_pack_has_along_stays_here(hub: StandInHub, tmp_path: Path) -> None:
    # without a home, so that its own files go
    setting = "model.num_key_value_heads=2"
    folder = random_models.write_folder("en-de", tmp_path / "model", setting)
    (tmp_path / "memory.tsv").write_bytes(SECRET + b"\t" + SECRET + b"\n")
    units, *_ = read_units([str(tmp_path / "memory.tsv")], "de", "en")
    pack(folder, tmp_path / "model.weft", memory=units)
    made = push(tmp_path / "model.weft", "packed")
    assert made.found[-1] == (
        "note: text is not sent: memory.jsonl of the pack stays here"
    )
    kept = hub.repositories["me/packed"].files
    assert not any(SECRET in content for content in kept.values())
    down = huggingface_hub.snapshot_download("me/packed", local_dir=tmp_path / "down")
    (found,) = weft.load(Path(down)).translate(["Ein Hund."])
    (own,) = weft.load(folder).translate(["Ein Hund."])
    assert found.text == own.text


def test_a_repository_that_has_files_is_written_over_only_if_that_is_said(
    hub: StandInHub, exported: Path
) -> None:
    kept = hub.make("me/mine", **{"old.bin": b"old", "README.md": b"# Old"})
    with pytest.raises(UsageError, match=r"old\.bin, README\.md.*--replace"):
        push(exported, "mine")
    assert kept.messages == ["initial commit"]
    push(exported, "mine", replaces=True)
    assert "old.bin" not in kept.files
    assert kept.files["README.md"].startswith(b"---")
    assert len(kept.commits) == 2
    # what was there is in its history
    assert next(iter(kept.commits.values()))["old.bin"] == b"old"
    # one without files is as a new one
    hub.make("me/empty")
    push(exported, "empty")
    assert hub.asked.count("POST /api/repos/create") == 0


def test_who_may_see_a_model_is_never_changed_by_the_way(
    hub: StandInHub, model: Path, exported: Path
) -> None:
    hub.make("me/seen", is_private=False)
    hub.make("me/unseen", is_private=True)
    refused = {"seen": (False, "is public: give --public"), "unseen": (True, "private")}
    for name, (is_public, said) in refused.items():
        with pytest.raises(UsageError, match=said):
            push(exported, name, is_public=is_public)
    with pytest.raises(UsageError, match="--public needs the license"):
        push(model, "new", is_public=True)
    made = push(exported, "new")
    assert not made.is_public
    assert hub.repositories["me/new"].is_private


def test_an_export_without_a_license_is_made_again_to_be_public(
    hub: StandInHub, model: Path, tmp_path: Path
) -> None:
    export(model, HuggingFace(), tmp_path / "out", asked=UNCERTIFIED)
    with pytest.raises(UsageError, match="export it again with --license"):
        push(tmp_path / "out", "new", is_public=True)


FAULTS: dict[str, tuple[str, int, str]] = {
    "who it is": ("whoami", 401, "does not accept the token: make one"),
    "too many": ("whoami", 429, "too many requests"),
    "its own fault": ("whoami", 503, "a fault of its own .503."),
    "no page": ("whoami", 418, "refuses"),
    "looking": ("GET /api/models", 403, "may not write there"),
    "making": ("create", 403, "may not write there"),
    "made meanwhile": ("create", 409, "by another at this moment"),
    "the card": ("validate", 400, "refuses"),
    "before": ("preupload", 404, "no such owner or repository"),
    "large files": ("batch", 403, "may not write there"),
    "a large file": ("PUT", 403, "may not write there"),
    "no room": ("PUT", 413, "finds it too large"),
    "committing": (" /api/models.*/commit", 403, "may not write there"),
    "changed meanwhile": (" /api/models.*/commit", 412, "by another at this moment"),
    "looking again": ("tree", 401, "does not accept the token"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refusal_of_the_hub_is_one_line_without_the_token(
    fault: str,
    hub: StandInHub,
    exported: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    pattern, status, said = FAULTS[fault]
    hub.faults[pattern] = status
    with pytest.raises(FolderError, match=said) as caught:
        push(exported, "en-de")
    _has_no_token(caught.value, capfd, caplog)
    # the token was sent, and came back in the answer
    assert any(re.search(pattern, asked) for asked in hub.asked)


def _has_no_token(
    error: WeftError,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = traceback.format_exception(error)
    assert TOKEN not in "".join([str(error), *told, *capfd.readouterr(), caplog.text])
    assert "\n" not in str(error)


def test_without_a_token_or_a_network_nothing_is_begun(
    hub: StandInHub,
    exported: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FolderError, match="HF_HUB_OFFLINE is set"):
        push(exported, "en-de")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(FolderError, match="no connection to http://127") as caught:
        push(exported, "en-de")
    _has_no_token(caught.value, capfd, caplog)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match=r"no token .* `hf auth login`, or set HF_"):
        push(exported, "en-de")
    assert hub.asked == []


def test_a_wrong_token_is_said_to_be_one(
    hub: StandInHub,
    exported: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub.token = "another"
    with pytest.raises(FolderError, match="does not accept the token") as caught:
        push(exported, "en-de")
    _has_no_token(caught.value, capfd, caplog)


def test_a_name_is_looked_at_before_anything_else(
    hub: StandInHub, exported: Path
) -> None:
    for name in ("https://huggingface.co/me/x", "a/b/c", "me/", "-x", "a b", "x--y"):
        with pytest.raises(UsageError, match="is no name of a repository; give OWNER"):
            push(exported, name)
    with pytest.raises(FolderError, match="stranger/x: the token may not write"):
        push(exported, "stranger/x")
    assert hub.repositories == {}


def test_a_push_that_failed_is_given_again(hub: StandInHub, exported: Path) -> None:
    hub.faults["/commit/"] = 403
    with pytest.raises(FolderError, match="; the repository was made, and stays"):
        push(exported, "en-de")
    assert hub.repositories["me/en-de"].files == {}
    hub.faults.clear()
    push(exported, "en-de")
    assert "config.json" in hub.repositories["me/en-de"].files


def test_what_is_there_is_compared_with_what_was_sent(
    hub: StandInHub, exported: Path
) -> None:
    hub.ignored = ("parity.json", "config.json")
    with pytest.raises(FolderError, match=r"config\.json was sent and is not there"):
        push(exported, "en-de")
    hub.ignored = ()
    hub.damages = True
    with pytest.raises(FolderError, match="is there, but not as it was sent"):
        push(exported, "other")


def test_a_changed_folder_is_not_sent(
    hub: StandInHub, exported: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(exported, folder)
    with (folder / "config.json").open("a") as file:
        file.write(" ")
    with pytest.raises(FolderError, match=r"config\.json"):
        push(folder, "en-de")
    assert hub.repositories == {}


def test_a_certificate_needs_text_and_is_sent(hub: StandInHub, tmp_path: Path) -> None:
    folder = random_models.write_folder("toy-de-en", tmp_path / "m", "model.head_dim=4")
    with pytest.raises(UsageError, match="give DATA"):
        push(folder, "toy")
    assert hub.repositories == {}
    dev = random_models.write_dev("translation", tmp_path)
    made: Pushed = push(folder, "toy", [dev])
    assert "logits: " in "".join(made.found)
    told = json.loads(hub.repositories["me/toy"].files["parity.json"])
    checks: list[Any] = told["checks"]
    assert [check["name"] for check in checks[:3]] == ["weights", "ids", "logits"]


def test_the_verb_says_where_the_model_is(
    hub: StandInHub,
    exported: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def weft_push(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["weft", "push", str(exported), *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        return (int(left.value.code or 0), *capsys.readouterr())

    code, out, err = weft_push("mine")
    assert code == 0
    assert re.search(r"^model\.safetensors +[\d,]+$", out, re.M)
    assert f"weft: pushed to {hub.address}/me/mine (private): huggingface, " in err
    assert f"{hub.address}/me/mine/commit/" in err
    code, out, err = weft_push("mine")
    assert (code, out) == (2, "")
    assert "--replace" in err
    code, out, _ = weft_push("mine", "--replace", "--json")
    assert json.loads(out)["repository"] == "me/mine"
    hub.faults["whoami"] = 401
    code, out, err = weft_push("mine", "--replace")
    assert (code, out) == (5, "")
    assert "weft: the Hugging Face Hub: the Hub does not accept the token" in err
    assert TOKEN not in err
