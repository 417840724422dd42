"""A model on its way to the Hugging Face Hub: as transformers opens it, or as Weft does."""

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.durable import MANIFEST
from weft.folder.exported import exported_form
from weft.folder.layout import CARD, GLOSSARY, MEMORY
from weft.folder.model_folder import open_model_folder
from weft.packages import loaded
from weft.ship.card import HERE, card_for_weft
from weft.ship.contents import contents
from weft.ship.exporting import export
from weft.ship.head import head
from weft.ship.hub import Content, Hub, Repository, refuse_malformed
from weft.ship.huggingface.target import HuggingFace
from weft.ship.licenses import LICENSE, license_of
from weft.ship.own_card import read_own_card
from weft.ship.source import NoHome
from weft.ship.target import Asked
from weft.tasks.opening import load_task

_FOLDER = "THIS_FOLDER"  # in the commands of a card
_USE = "## Use\n\n"
# of a card whose program loads models by their names at the Hub
_LOADED = re.compile(r"^library_name: transformers(\.js)?$", re.MULTILINE)
_WEFT = "the folder of Weft"
_LICENSE = re.compile(r"^license: ", re.MULTILINE)
_TEXT = (GLOSSARY, MEMORY)  # of a pack: what may have been trained on
_MOST_NAMED = 3  # files that a message lists


@dataclass(frozen=True)
class Goods:
    """The files that go up, by their names there, in a form; `found` says what a comparison of the
    form with the model found, and what to know of it.
    """

    form: str
    files: Mapping[str, Content]
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pushed:
    """A model that is on the Hub: its repository and commit, by their addresses, and the bytes of
    each file.
    """

    repository: str
    address: str
    commit: str
    is_public: bool
    form: str
    found: tuple[str, ...]
    files: Mapping[str, int]

    def lines(self) -> list[str]:
        """Return what is there, for a person, in lines."""
        width = max(map(len, self.files))
        sizes = (f"{name:{width}}  {size:,}" for name, size in self.files.items())
        return [*self.found, *sizes]

    def to_json(self) -> dict[str, Any]:
        """Return the same for a program."""
        return asdict(self)


def push(
    model: Path,
    name: str,
    data: Sequence[str] = (),
    asked: Asked | None = None,
    is_public: bool = False,
    replaces: bool = False,
) -> Pushed:
    """Put a model into a repository of the Hub, in one commit: that in a folder or a pack as
    transformers opens it, with a certificate (see `exporting.export`), or what `weft export` wrote
    as it is. A model that no class of transformers computes goes as Weft opens it.

    The repository is made, private unless `is_public`; one that has files is written over only if
    this `replaces` them. Raises UsageError where that, a license or a token is missing, and
    FolderError where the Hub refuses.
    """
    asked = asked or Asked()
    loaded("weft push", "huggingface_hub", "huggingface")
    refuse_malformed(name)
    is_exported = bool(exported_form(model))
    _refuse_wishes(model, data, asked, is_exported, is_public)
    hub = Hub()
    repository = hub.full_name(name)
    before = hub.look(repository)
    _refuse_there(repository, before, is_public, replaces)
    with tempfile.TemporaryDirectory(prefix="weft-push-") as temporary:
        place = Path(temporary) / "out"
        if is_exported:
            goods = _of_export(model)
        else:
            goods = _of_model(model, data, asked, repository, place)
        goods = _called(goods, repository)
        sizes = {name: _size(content) for name, content in goods.files.items()}
        stages.enter(f"sending {sum(sizes.values()) / 1e6:,.1f} MB")
        commit = _send(hub, repository, goods, before, is_public)
    address = hub.address(repository)
    return Pushed(
        repository, address, commit, is_public, goods.form, goods.found, sizes
    )


def _send(
    hub: Hub,
    repository: str,
    goods: Goods,
    before: Repository | None,
    is_public: bool,
) -> str:
    """Make a repository where there is none, and a commit in it; return that one's address."""
    message = f"{goods.form}, by Weft"
    if before is not None:
        return hub.upload(repository, goods.files, message, before)
    hub.create(repository, is_public)
    try:
        return hub.upload(repository, goods.files, message, None)
    except FolderError as error:
        raise FolderError(f"{error}; the repository was made, and stays") from None


# Refusals
# --------------------------------------------------------------------------------------


def _refuse_wishes(
    model: Path, data: Sequence[str], asked: Asked, is_exported: bool, is_public: bool
) -> None:
    """Raise UsageError for what cannot be done with this model, before anything is sent."""
    license = license_of(asked.license)
    if is_exported and (data or asked != Asked()):
        raise UsageError(
            f"{model}: is exported already, and goes as it is: license, terms and text are for weft export"
        )
    stated = license is not None
    if is_exported:
        stated = bool(_LICENSE.search(_head(model)))
    if is_public and not stated and is_exported:
        raise UsageError(
            f"{model}: was exported without a license, which --public needs: export it again with --license"
        )
    if is_public and not stated:
        raise UsageError(
            "--public needs the license under which others may use the model: --license, such as cc-by-4.0"
        )


def _refuse_there(
    name: str, before: Repository | None, is_public: bool, replaces: bool
) -> None:
    """Raise UsageError where the repository that is there is not to be written to."""
    if before is None:
        return
    if before.is_public and not is_public:
        raise UsageError(
            f"{name}: is public: give --public too, or another name for a private model"
        )
    if is_public and not before.is_public:
        raise UsageError(
            f"{name}: is private: leave out --public, and make it public on its own page"
        )
    if before.files and not replaces:
        named = ", ".join(before.files[:_MOST_NAMED])
        more = ", ..." if len(before.files) > _MOST_NAMED else ""
        raise UsageError(
            f"{name}: has files already ({named}{more}): --replace puts the model in their place, in a commit of its own"
        )


# What goes up
# --------------------------------------------------------------------------------------


def _of_export(folder: Path) -> Goods:
    """Return the files that the manifest of an exported folder lists, and itself."""
    manifest = durable.read_manifest(folder)
    names = [*manifest["files"], MANIFEST]
    if CARD not in names:
        raise FolderError(
            f"{folder}: has no {CARD}, the card of the model; export it anew"
        )
    return Goods(exported_form(folder), {name: folder / name for name in names})


def _of_model(
    model: Path, data: Sequence[str], asked: Asked, repository: str, place: Path
) -> Goods:
    """Return a model as transformers opens it, or else as Weft does."""
    try:
        made = export(model, HuggingFace(), place, data, asked)
    except NoHome as reason:
        goods = _as_it_is(model, asked, repository, place, str(reason))
    else:
        found = tuple(made.lines())
        goods = replace(_of_export(place), form=made.form, found=found)
    return goods


def _as_it_is(
    model: Path, asked: Asked, repository: str, place: Path, reason: str
) -> Goods:
    """Return the files of a model that Weft needs, and a card."""
    stored = open_model_folder(model)
    listed = {
        name: entry for name, entry in stored.card["files"].items() if name not in _TEXT
    }
    place.mkdir()
    for name in listed:
        (place / name).write_bytes(stored.files.mapped(name))
    durable.write_json(place / MANIFEST, {**stored.card, "files": listed})
    files: dict[str, Content] = {name: place / name for name in (*listed, MANIFEST)}
    license = license_of(asked.license)
    if license is not None and license.file is not None:
        files[LICENSE] = license.file.read_bytes()
    own = read_own_card(model, stored.config.task)
    short = repository.rpartition("/")[2]
    use = [
        f"hf download {repository} --local-dir {short}",
        *load_task(model).portrait().use,
    ]
    body = card_for_weft(own, use, asked).replace(_FOLDER, short)
    top = head(stored.config, stored.card, own, asked, "weft")
    files[CARD] = f"{top}{body}".encode()
    notes = [
        f"note: {reason}",
        f"note: so it goes as Weft opens it: {contents(place)}",
    ]
    kept = [name for name in _TEXT if name in stored.card["files"]]
    if kept:
        stay = "stay" if len(kept) > 1 else "stays"
        notes.append(
            f"note: text is not sent: {' and '.join(kept)} of the pack {stay} here"
        )
    return Goods(_WEFT, files, tuple(notes))


def _called(goods: Goods, repository: str) -> Goods:
    """Return the same with the repository's name in the commands of the card, or, of a form whose
    program loads nothing by that name, with the folder that a command before them makes.
    """
    files = dict(goods.files)
    text = _text(files[CARD]).replace(f"{HERE}\n\n", "")
    if _LOADED.search(text):
        text = text.replace(f"./{_FOLDER}", repository).replace(_FOLDER, repository)
    elif _FOLDER in text:
        short = repository.rpartition("/")[2]
        fetch = f"```bash\nhf download {repository} --local-dir {short}\n```"
        text = text.replace(_USE, f"{_USE}{fetch}\n\n", 1).replace(_FOLDER, short)
    card = text.encode()
    files[CARD] = card
    manifest = json.loads(_text(files[MANIFEST]))
    if CARD in manifest["files"]:
        digest = hashlib.sha256(card).hexdigest()
        manifest["files"][CARD] = {"size": len(card), "sha256": digest}
        files[MANIFEST] = durable.to_json(manifest).encode()
    return replace(goods, files=dict(sorted(files.items())))


def _head(folder: Path) -> str:
    """Return the head of an exported folder's card; "" where it has none."""
    card = folder / CARD
    text = card.read_text("utf-8") if card.is_file() else ""
    top, _, _ = text.removeprefix("---\n").partition("\n---\n")
    return top if text.startswith("---\n") else ""


def _text(content: Content) -> str:
    data = content if isinstance(content, bytes) else content.read_bytes()
    return data.decode("utf-8")


def _size(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size
