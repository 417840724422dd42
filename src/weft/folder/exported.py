"""Folders that `weft export` wrote, which Weft itself does not open; their manifests tell them."""

from pathlib import Path

from weft.errors import FolderError
from weft.folder import durable

FORMAT = "weft-export-"  # begins the format that the manifest of such a folder states
# by form, what opens it
PROGRAMS = {
    "web": "a browser",
    "huggingface": "transformers",
    "onnx": "onnxruntime",
    "ctranslate2": "CTranslate2",
    "gguf": "llama.cpp",
    "transformers.js": "transformers.js",
    "argos": "Argos Translate",
}


def exported_form(folder: Path) -> str:
    """Return the form of a folder that `weft export` wrote; "" of any other, and of one whose
    manifest cannot be read.
    """
    try:
        manifest = durable.read_json(folder / durable.MANIFEST)
    except FolderError:
        return ""
    stated = manifest.get("format") if isinstance(manifest, dict) else ""
    if not isinstance(stated, str) or not stated.startswith(FORMAT):
        return ""
    return stated.removeprefix(FORMAT)


def refuse_exported(folder: Path) -> None:
    """Raise FolderError for a folder that `weft export` wrote."""
    form = exported_form(folder)
    if not form:
        return
    program = PROGRAMS.get(form, "another program")
    raise FolderError(
        f"{folder}: is an export of a model in the form {form}, which {program} opens; "
        "Weft opens the model's folder that it was made from"
    )
