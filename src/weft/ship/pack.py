"""A model in one file, to be handed on: what is needed to use it, and nothing of its run.

Reading is in `weft.folder.model_files`.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from weft.data.glossary import Glossary
from weft.data.json_lines import glossary_lines, memory_lines
from weft.data.memory import Units
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.archive import write_archive
from weft.folder.layout import CARD, GLOSSARY, MEMORY, PACK
from weft.folder.model_files import MEMBERS, ModelFiles, PackFiles
from weft.folder.model_folder import StoredModel, open_model_folder
from weft.run.card import without_run

_FOLDER = "THIS_FOLDER"  # in the commands of a card


def pack(
    model: Path,
    output: Path,
    glossary: Glossary | None = None,
    memory: Units | None = None,
    replaces: bool = False,
) -> int:
    """Write `output`, a pack of the model in a folder or a pack, and return its size in bytes.

    A glossary and the units of a memory, for its languages, come along, and take the place of those
    that a pack has. The same model gives the same bytes. Raises UsageError for an output that is
    not called a pack, or that is there unless this `replaces` it; FolderError where the model is
    damaged or the pack cannot be written.
    """
    if output.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file in it")
    if output.suffix != PACK:
        better = output.with_suffix(PACK) if output.name else f"model{PACK}"
        raise UsageError(
            f"--output {output}: a pack is a file whose name ends in {PACK}; give {better}"
        )
    if output.exists() and not replaces:
        raise UsageError(
            f"--output {output}: exists already; give another name, or --replace"
        )
    durable.refuse_no_place(output)
    stored = open_model_folder(model)
    along = {}
    if glossary is not None:
        along[GLOSSARY] = b"".join(glossary_lines(glossary))
    if memory is not None:
        along[MEMORY] = b"".join(memory_lines(memory))
    held = _contents(stored, along)
    with durable.replacing(output) as temporary:
        with temporary.open("wb") as file:
            write_archive(file, held)
        _refuse_changed(model, PackFiles(temporary))
    return output.stat().st_size


def _contents(stored: StoredModel, along: Mapping[str, bytes]) -> dict[str, memoryview]:
    """Return what goes into a pack: the files that the manifest lists, itself, the card, and what
    comes along.
    """
    files = stored.files
    own = dict(along)
    if CARD in files:
        own[CARD] = _card(files)
    if along:
        own[durable.MANIFEST] = _manifest(stored, along)
    listed = {durable.MANIFEST, *stored.card["files"]}
    held = {}
    for name in MEMBERS:
        if name in own:
            held[name] = memoryview(own[name])
        elif name in listed:
            held[name] = files.mapped(name)
    return held


def _manifest(stored: StoredModel, along: Mapping[str, bytes]) -> bytes:
    """Return the manifest with what comes along, which is listed last."""
    listed = dict(stored.card["files"])
    for name in (GLOSSARY, MEMORY):
        entry = listed.pop(name, None)
        if name in along:
            digest = sha256(along[name]).hexdigest()
            entry = {"size": len(along[name]), "sha256": digest}
        if entry is not None:
            listed[name] = entry
    return durable.to_json({**stored.card, "files": listed}).encode("utf-8")


def _card(files: ModelFiles) -> bytes:
    """Return the card of a pack, which names no folder."""
    card = files.mapped(CARD).tobytes().decode("utf-8", "replace")
    return without_run(card).replace(_FOLDER, "THIS_PACK").encode("utf-8")


def _refuse_changed(model: Path, written: ModelFiles) -> None:
    """Raise FolderError where what was written is not what the manifest lists."""
    try:
        written.manifest()
    except FolderError:
        raise FolderError(
            f"{model}: was changed while it was packed; pack it again"
        ) from None
