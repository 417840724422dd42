"""A model in one file: what is in it, that it computes what its folder does, and how it is used."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data.glossary import Glossary, read_glossary
from weft.data.memory import read_memory, read_units
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.archive import write_archive
from weft.folder.layout import CARD, GLOSSARY, LANGUAGES, MEMORY, WEIGHTS, WORDS
from weft.folder.model_files import MEMBERS, PackFiles, files_of
from weft.folder.model_folder import open_model_folder
from weft.predict.parameters import stored_shapes
from weft.ship.contents import contents
from weft.ship.pack import pack
from weft.tasks.opening import load_task
from weft.tasks.packed import packed_glossary
from weft.tasks.translation import parameters_of

TEXTS = ["cat sees dog.", "fish wants mouse.", "an unknown word"]
Train = Callable[..., Path]


@pytest.fixture(scope="module")
def packed(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of the trained folder. Tests must not change it."""
    path = tmp_path_factory.mktemp("pack") / "tiny.weft"
    assert pack(tiny_folder, path) == path.stat().st_size
    return path


def test_it_holds_the_files_of_the_model_and_nothing_of_its_run(
    packed: Path, tiny_folder: Path
) -> None:
    listed = durable.read_manifest(tiny_folder)["files"]
    with zipfile.ZipFile(packed) as file:
        assert file.testzip() is None
        assert {*file.namelist()} == {*listed, durable.MANIFEST, CARD}
        for name in (*listed, durable.MANIFEST):
            assert file.read(name) == (tiny_folder / name).read_bytes()
    assert not any("run" in name for name in MEMBERS)
    row = next(iter((tiny_folder / "run").rglob("*.jsonl")), None)
    assert row is not None
    assert b"cat sees" not in packed.read_bytes()


def test_its_card_names_no_folder(packed: Path, tiny_folder: Path) -> None:
    own = (tiny_folder / CARD).read_text("utf-8")
    card = files_of(packed).read(CARD).decode("utf-8")
    assert "weft translate THIS_FOLDER" in own
    assert "weft translate THIS_PACK" in card
    assert "`run/`" in own
    assert "`run/`" not in card
    assert card.replace("THIS_PACK", "THIS_FOLDER").rstrip() in own


def test_the_same_model_gives_the_same_bytes_wherever_it_lies(
    packed: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    for model in (tiny_folder, packed):
        again = tmp_path / f"{model.name}.weft"
        pack(model, again)
        assert again.read_bytes() == packed.read_bytes()


def test_it_translates_as_its_folder_does(packed: Path, tiny_folder: Path) -> None:
    folder, one = weft.load(tiny_folder), weft.load(packed)
    options = {"n_best": 3, "alignments": folder.can_align}
    assert one.translate(TEXTS, **options) == folder.translate(TEXTS, **options)
    assert one.detect("der Hund") == folder.detect("der Hund")
    assert files_of(packed).digest() == files_of(tiny_folder).digest()


def test_its_weights_are_used_where_they_lie(packed: Path) -> None:
    """Each array is a part of the mapped file, as in a folder."""
    stored = open_model_folder(packed)
    arrays = stored.weights(stored_shapes(parameters_of(stored.config)))
    whole = packed.read_bytes()
    start = whole.index(stored.files.mapped(WEIGHTS).tobytes())
    for array in arrays.values():
        base = array
        while getattr(base, "base", None) is not None:
            base = base.base
        assert isinstance(base, memoryview)
        assert base.obj is stored.files.mapped(WEIGHTS).obj
        assert array.ctypes.data % array.itemsize == 0
    assert start % 64 == 0


def test_using_it_writes_nothing(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = packed.read_bytes()
    weft.load(packed).translate(TEXTS)
    assert [*packed.parent.iterdir()] == [packed]
    assert [*tmp_path.iterdir()] == []
    assert packed.read_bytes() == before


def test_one_that_is_replaced_goes_on_as_it_was(packed: Path, tmp_path: Path) -> None:
    """What is mapped is the file that was opened."""
    path = tmp_path / "a.weft"
    path.write_bytes(packed.read_bytes())
    model = weft.load(path)
    before = model.translate(TEXTS)
    with durable.replacing(path) as temporary:
        temporary.write_bytes(bytes(path.stat().st_size))
    assert model.translate(TEXTS) == before
    with pytest.raises(FolderError, match="not a pack"):
        weft.load(path)


def test_a_file_that_no_manifest_lists_stays_out(
    tiny_folder: Path, tmp_path: Path
) -> None:
    folder = copied(tiny_folder, tmp_path)
    (folder / "shortlist.safetensors").write_bytes(b"secret")
    (folder / "notes.txt").write_bytes(b"secret")
    pack(folder, tmp_path / "a.weft")
    assert b"secret" not in (tmp_path / "a.weft").read_bytes()
    (folder / CARD).unlink()
    pack(folder, tmp_path / "a.weft", replaces=True)
    assert CARD not in files_of(tmp_path / "a.weft")
    assert weft.load(tmp_path / "a.weft").translate(TEXTS)


def copied(folder: Path, to: Path) -> Path:
    """The files of a model without its run."""
    out = to / "copy"
    out.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            (out / path.name).write_bytes(path.read_bytes())
    return out


def test_a_damaged_folder_is_not_packed(tiny_folder: Path, tmp_path: Path) -> None:
    folder = copied(tiny_folder, tmp_path)
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(FolderError, match="differs from the manifest"):
        pack(folder, tmp_path / "a.weft")
    assert not (tmp_path / "a.weft").exists()


def test_one_that_changes_meanwhile_is_not_packed(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(tiny_folder, tmp_path)
    (tmp_path / "a.weft").write_bytes(b"before")

    def other(path: Path) -> Any:
        stored = open_model_folder(path)
        (folder / "config.json").write_bytes(b"{}")
        return stored

    monkeypatch.setattr("weft.ship.pack.open_model_folder", other)
    with pytest.raises(FolderError, match="was changed while it was packed"):
        pack(folder, tmp_path / "a.weft", replaces=True)
    assert (tmp_path / "a.weft").read_bytes() == b"before"
    assert {path.name for path in tmp_path.iterdir()} == {"copy", "a.weft"}


def test_only_a_file_with_its_ending_is_written(
    tiny_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"model\.zip: .* give .*model\.weft"):
        pack(tiny_folder, tmp_path / "model.zip")
    (tmp_path / "a.weft").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        pack(tiny_folder, tmp_path / "a.weft")
    with pytest.raises(FolderError, match="there is no folder"):
        pack(tiny_folder, tmp_path / "none" / "a.weft")


def test_what_it_holds_is_said_by_what_is_in_it(
    packed: Path, tiny_folder: Path
) -> None:
    said = contents(packed)
    assert {LANGUAGES, WORDS} <= {*durable.read_manifest(tiny_folder)["files"]}
    assert "letter groups" in said
    assert "hashes that detect unseen words" in said
    assert "overlap" not in said
    assert "overlap with a test text and unseen words" in contents(tiny_folder)
    assert said.endswith("no training text, but README.md names its files")


HELD = {
    "classifier": "weights and vocabularies; ",
    "language": "weights (which may write what they were trained on) and vocabularies; ",
}


@pytest.mark.parametrize("name", HELD)
def test_other_tasks_have_packs_too(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "folder" / "old" / name
    pack(folder, tmp_path / "a.weft")
    of_folder, of_pack = load_task(folder), load_task(tmp_path / "a.weft")
    if name == "classifier":
        assert of_pack.predictor().classify(TEXTS) == of_folder.predictor().classify(
            TEXTS
        )
        return
    said = contents(tmp_path / "a.weft")
    assert said.startswith(HELD[name])
    for prompt in TEXTS:
        asked = {"max_new_tokens": 8, "temperature": 1.0, "seed": 3}
        one = of_pack.predictor().generate(prompt, **asked)
        assert one == of_folder.predictor().generate(prompt, **asked)


def test_a_flipped_bit_anywhere_is_refused(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    path = tmp_path / "a.weft"
    step = len(whole) // 150
    for place in range(0, len(whole), step):
        changed = bytearray(whole)
        changed[place] ^= 4
        path.write_bytes(changed)
        with pytest.raises(FolderError, match=r"a\.weft"):
            open_model_folder(path)


def test_a_manifest_of_its_own_is_no_way_out(packed: Path, tmp_path: Path) -> None:
    """The names that it lists are those of the pack's files."""
    files = PackFiles(packed)
    held = {name: files.mapped(name) for name in MEMBERS if name in files}
    manifest = json.loads(bytes(held[durable.MANIFEST]))
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    sha256 = hashlib.sha256(b"secret").hexdigest()
    for name in ("../secret", str(secret), "secret"):
        manifest["files"][name] = {"size": 6, "sha256": sha256}
        content = json.dumps(manifest).encode()
        held[durable.MANIFEST] = memoryview(content)
        with (tmp_path / "a.weft").open("wb") as file:
            write_archive(file, held)
        with pytest.raises(FolderError, match=r"malformed|missing"):
            open_model_folder(tmp_path / "a.weft")
        del manifest["files"][name]


TERMS = "source\ttarget\tcase\tinflection\tavoid\ncat|kitty\tKater\t\t\tKatze\nDog\tHund|Rüde\tyes\t\t\n"
UNITS = "fish wants mouse.\tEs ist 12 Uhr.\nIt is 7.\tEs ist 7.\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    here = tmp_path_factory.mktemp("along")
    (here / "terms.tsv").write_text(TERMS, "utf-8")
    (here / "old.en-de.tsv").write_text(UNITS, "utf-8")
    return here / "terms.tsv", here / "old.en-de.tsv"


@pytest.fixture(scope="module")
def along(
    tiny_folder: Path,
    files: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A pack with a glossary and a memory. Tests must not change it."""
    path = tmp_path_factory.mktemp("along") / "along.weft"
    glossary = read_glossary(files[0], "en", "de")
    units, *_ = read_units([str(files[1])], "en", "de")
    pack(tiny_folder, path, glossary, units)
    return path


def without_places(predictions: list[Any]) -> list[dict[str, Any]]:
    """Predictions as data, but for the rows of files that they name."""
    found = [one.to_json() for one in predictions]
    for one in found:
        for row in (*(one.get("terms") or ()), *(one.get("memory") or ())):
            row.pop("where", None)
    return found


TRANSLATED = ["cat sees dog.", "fish wants mouse.", "It is 9.", "kitty hears Dog."]


def test_what_comes_along_is_used_as_the_files_are(
    along: Path, tiny_folder: Path, files: tuple[Path, Path]
) -> None:
    model = weft.load(tiny_folder)
    glossary = read_glossary(files[0], "en", "de")
    memory = read_memory([str(files[1])], "en", "de")
    wanted = model.with_glossary(glossary).with_memory(memory).translate(TRANSLATED)
    packed = weft.load(along)
    found = packed.translate(TRANSLATED)
    assert without_places(found) == without_places(wanted)
    assert found[1].text == "Es ist 12 Uhr."
    assert found[2].text == "Es ist 9."
    assert {use.where for one in found for use in one.terms or ()} <= {
        f"{along / GLOSSARY}:1",
        f"{along / GLOSSARY}:2",
    }
    plain = packed.with_glossary(None).with_memory(None)
    assert plain.translate(TRANSLATED) == model.translate(TRANSLATED)


def test_the_manifest_lists_what_comes_along(along: Path, packed: Path) -> None:
    manifest = files_of(along).manifest()
    own = files_of(packed).manifest()
    assert manifest["files"].keys() - own["files"].keys() == {GLOSSARY, MEMORY}
    assert files_of(along).digest() != files_of(packed).digest()
    for name, entry in own["files"].items():
        assert manifest["files"][name] == entry
    said = contents(along)
    assert "; as text a glossary of 2 lines and a memory of 2 lines; no" in said


def test_a_pack_of_a_pack_keeps_it_unless_another_is_given(
    along: Path, packed: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    glossary = read_glossary(files[0], "en", "de")
    units, *_ = read_units([str(files[1])], "en", "de")
    pack(along, tmp_path / "again.weft")
    assert (tmp_path / "again.weft").read_bytes() == along.read_bytes()
    pack(packed, tmp_path / "memory.weft", memory=units)
    assert GLOSSARY not in files_of(tmp_path / "memory.weft")
    pack(tmp_path / "memory.weft", tmp_path / "both.weft", glossary)
    assert (tmp_path / "both.weft").read_bytes() == along.read_bytes()
    other = Glossary(glossary.entries[:1])
    pack(along, tmp_path / "other.weft", other)
    found = packed_glossary(tmp_path / "other.weft")
    assert found is not None
    assert found.sha256 == other.sha256


def test_an_unpacked_pack_is_a_folder(along: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(along) as file:
        file.extractall(tmp_path / "folder")
    texts = weft.load(tmp_path / "folder").translate(TRANSLATED)
    assert without_places(texts) == without_places(
        weft.load(along).translate(TRANSLATED)
    )


def test_a_file_of_that_name_in_a_folder_is_none_of_the_model(
    tiny_folder: Path, tmp_path: Path
) -> None:
    folder = copied(tiny_folder, tmp_path)
    (folder / GLOSSARY).write_text("mine", "utf-8")
    assert packed_glossary(folder) is None
    assert weft.load(folder).glossary is None


@pytest.mark.parametrize("name", [GLOSSARY, MEMORY])
def test_what_comes_along_damaged_is_refused(
    along: Path, name: str, tmp_path: Path
) -> None:
    """The manifest matches: the lines themselves are read with distrust."""
    files = PackFiles(along)
    held = {one: files.mapped(one) for one in MEMBERS if one in files}
    content = b'{"source": "a"}\n'
    held[name] = memoryview(content)
    manifest = files.json(durable.MANIFEST)
    entry = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["files"][name] = entry
    held[durable.MANIFEST] = memoryview(json.dumps(manifest).encode())
    with (tmp_path / "a.weft").open("wb") as file:
        write_archive(file, held)
    with pytest.raises(
        FolderError, match=rf"a\.weft/{name}:1: .*; the pack is damaged"
    ):
        weft.load(tmp_path / "a.weft")
