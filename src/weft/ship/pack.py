"""A model in one file, to be handed on: what is needed to use it, and nothing of its run.

Reading is in `weft.folder.model_files`.
"""

from pathlib import Path

from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.archive import write_archive
from weft.folder.layout import CARD, PACK
from weft.folder.model_files import MEMBERS, ModelFiles, PackFiles
from weft.folder.model_folder import StoredModel, open_model_folder
from weft.run.card import without_run

_FOLDER = "THIS_FOLDER"  # in the commands of a card


def pack(model: Path, output: Path) -> int:
    """Write `output`, a pack of the model in a folder or a pack, and return its size in bytes.

    The same model gives the same bytes. Raises UsageError for an output that is not called a pack,
    FolderError where the model is damaged or the pack cannot be written.
    """
    if output.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file in it")
    if output.suffix != PACK:
        better = output.with_suffix(PACK) if output.name else f"model{PACK}"
        raise UsageError(
            f"--output {output}: a pack is a file whose name ends in {PACK}; give {better}"
        )
    durable.refuse_no_place(output)
    held = _contents(open_model_folder(model))
    with durable.replacing(output) as temporary:
        with temporary.open("wb") as file:
            write_archive(file, held)
        _refuse_changed(model, PackFiles(temporary))
    return output.stat().st_size


def _contents(stored: StoredModel) -> dict[str, memoryview]:
    """Return what goes into a pack: the files that the manifest lists, itself, and the card."""
    files = stored.files
    listed = {durable.MANIFEST, *stored.card["files"]}
    held = {}
    for name in MEMBERS:
        if name == CARD and name in files:
            held[name] = memoryview(_card(files))
        elif name in listed:
            held[name] = files.mapped(name)
    return held


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
