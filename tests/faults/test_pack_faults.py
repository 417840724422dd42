"""Packs made by somebody else to do harm, or damaged on the way: refused in one line, and nothing
is written or unpacked.
"""

import io
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from weft.errors import FolderError
from weft.folder.archive import Layout, Member, write_archive
from weft.folder.layout import CARD, CONFIG
from weft.folder.model_files import MEMBERS, PackFiles
from weft.ship.pack import pack

Held = dict[str, memoryview]


@pytest.fixture(scope="module")
def sound(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "sound.weft"
    pack(tiny_folder, path)
    return path


def held(sound: Path) -> Held:
    files = PackFiles(sound)
    return {name: files.mapped(name) for name in MEMBERS if name in files}


def refusal(content: bytes, folder: Path) -> str:
    """Why a pack with a content is refused; nothing is left but itself."""
    place = folder / "place"
    place.mkdir()
    path = place / "hostile.weft"
    path.write_bytes(content)
    with pytest.raises(FolderError) as caught:
        weft.load(path)
    assert caught.value.exit_code == 5
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 600
    assert said.startswith(str(path))
    assert [*folder.rglob("*")] == [place, path]
    path.unlink()
    place.rmdir()
    return said


def in_our_form(contents: Held) -> bytes:
    file = io.BytesIO()
    write_archive(file, contents)
    return file.getvalue()


ESCAPES = (
    "../escaped",
    "/tmp/escaped",
    "run/../../escaped",
    "C:\\escaped",
    "config.json/",
    "./config.json",
    "CONFIG.JSON",
    "run/train-hashes.npy",
    "pytorch_model.bin",
    "",
    "a\nb",
)


@pytest.mark.parametrize("name", ESCAPES)
def test_D9_a_name_that_no_model_has(sound: Path, tmp_path: Path, name: str) -> None:
    """Each is refused before anything is made of it, also where the archive is in our form."""
    contents = held(sound)
    assert "is no file of a model" in refusal(
        in_our_form({**contents, name: memoryview(b"x")}), tmp_path
    )
    first = {name: memoryview(b"x"), **contents}
    assert "is no file of a model" in refusal(in_our_form(first), tmp_path)


def by_zipfile(
    contents: Held, change: Callable[[zipfile.ZipInfo], object], method: int
) -> bytes:
    """What another program makes of the same files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name)
            change(entry)
            archive.writestr(entry, content, method)
    return file.getvalue()


def as_link(entry: zipfile.ZipInfo) -> None:
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16


def test_D9_links_folders_and_compression(sound: Path, tmp_path: Path) -> None:
    contents = {**held(sound), CARD: memoryview(b"/etc/passwd")}
    refusal(by_zipfile(contents, as_link, zipfile.ZIP_STORED), tmp_path)
    bomb = {**contents, CARD: memoryview(bytes(2**20))}
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        content = by_zipfile(bomb, lambda entry: None, method)
        assert len(content) < 2**20
        assert "is compressed in it" in refusal(content, tmp_path)


def test_D9_an_archive_that_repeats_or_overlaps_its_files(
    sound: Path, tmp_path: Path
) -> None:
    """A thousand entries of one content would be a bomb; two of one name, two truths."""
    contents = held(sound)
    many = Layout([Member(CONFIG, 0, 0)] * 60).pieces
    content = b"".join(piece for _, piece in many)
    assert "in it twice" in refusal(content, tmp_path)
    huge = Layout([Member(name, 2**40, 0) for name in MEMBERS]).pieces
    content = b"".join(piece for _, piece in huge)
    assert "ends behind it" in refusal(content, tmp_path)
    whole = in_our_form(contents)
    twice = bytearray(whole)
    start = whole.index(b"PK\1\2")
    other = whole.index(b"PK\1\2", start + 1)
    # the second file is where the first one is
    twice[other + 42 : other + 46] = whole[start + 42 : start + 46]
    assert "differ from its directory" in refusal(bytes(twice), tmp_path)


@pytest.mark.parametrize("byte", [6, 8, 26])
def test_D9_headers_that_differ_from_the_directory(
    sound: Path, tmp_path: Path, byte: int
) -> None:
    """Flags (encryption), the method, the length of the name."""
    content = bytearray(in_our_form(held(sound)))
    content[byte] ^= 1
    assert "differ from its directory" in refusal(bytes(content), tmp_path)


def test_D9_cut_short_grown_or_nothing_at_all(sound: Path, tmp_path: Path) -> None:
    whole = sound.read_bytes()
    for share in (0, 0.2, 0.5, 0.999):
        said = refusal(whole[: int(share * len(whole))], tmp_path)
        assert "its end is missing" in said
    refusal(whole[:-1], tmp_path)
    refusal(whole + b"\0", tmp_path)
    refusal(b"#!/bin/sh\n" + whole, tmp_path)
    refusal(whole + whole, tmp_path)
    refusal(b"\x80\x04\x95", tmp_path)
    refusal(os.urandom(3000), tmp_path)
    assert "copy it again, or pack the folder anew" in refusal(b"", tmp_path)


def test_D9_a_count_without_end(sound: Path, tmp_path: Path) -> None:
    whole = bytearray(sound.read_bytes())
    struct.pack_into("<2H", whole, len(whole) - 14, 0xFFFF, 0xFFFF)
    assert "its directory has 65,535 entries" in refusal(bytes(whole), tmp_path)


def test_D9_files_in_another_order(sound: Path, tmp_path: Path) -> None:
    """Of one model there is one pack."""
    other = dict(reversed(held(sound).items()))
    assert "in another order" in refusal(in_our_form(other), tmp_path)


def test_M5_a_card_that_was_edited(sound: Path, tmp_path: Path) -> None:
    """No manifest lists it; its CRC tells."""
    content = bytearray(sound.read_bytes())
    place = bytes(content).index(b"THIS_PACK")
    content[place] ^= 1
    assert f"{CARD} differs from its CRC" in refusal(bytes(content), tmp_path)


def test_M1_a_pickle_by_the_name_of_a_pack(tmp_path: Path) -> None:
    for content in (b"\x80\x04N.", b"PK\3\4\x80\x04N."):
        assert "not a pack as weft pack writes it" in refusal(content, tmp_path)
