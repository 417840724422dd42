"""An inspection as a file: a page that needs nothing but a browser, or its data."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import UsageError
from weft.folder import durable
from weft.inspection.assets import (
    NEEDED,
    SCRIPTS,
    SEVERAL_SCRIPTS,
    SEVERAL_STYLES,
    STYLES,
    asset,
    bare,
    bare_style,
    fingerprint,
    packed,
)
from weft.inspection.look import Inspection
from weft.inspection.packing import packed as packed_data
from weft.inspection.packing import plain
from weft.inspection.several import Several
from weft.inspection.suffixes import ALIGNMENTS, FORMATS, refuse_other_suffixes
from weft.inspection.translation import TranslationInspection

# Letters that could end a script element, open a comment or be no string to a script; JSON knows
# them as escapes.
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def write_report(inspection: Inspection | Several, path: Path) -> None:
    """Write a page (.html), data (.json) or, of a translation, word alignments, whole or not at
    all.

    Raises UsageError for another suffix and for alignments of what is no translation, FolderError
    where it cannot be written.
    """
    refuse_other_suffixes(path, FORMATS | ALIGNMENTS)
    suffix = path.suffix.lower()
    if suffix in ALIGNMENTS and isinstance(inspection, Several):
        raise UsageError(
            f"{path}: a word alignment is of one text and one model; write a page (.html) or data (.json)"
        )
    if suffix in ALIGNMENTS:
        durable.write_text(path, _alignment(inspection, path))
    else:
        if suffix == ".html":
            content = page_of(inspection)
        else:
            content = _json(plain(inspection.to_data())) + "\n"
        durable.write_text(path, content)


def page_of(inspection: Inspection | Several) -> str:
    """Return an inspection as a page that needs nothing but a browser."""
    return _page(packed_data(inspection.to_data()))


def _alignment(inspection: Inspection | Several, path: Path) -> str:
    if not isinstance(inspection, TranslationInspection):
        raise UsageError(
            f"{path}: only translations have word alignments; write a page (.html) or data (.json)"
        )
    alignment = inspection.alignment
    lines = [alignment.pharaoh()]
    if path.suffix.lower() == ".txt":
        lines = alignment.lines()
    return "".join(f"{line}\n" for line in lines)


def _page(data: dict[str, Any]) -> str:
    """Return the page with style, script and data inside; only these, known by their hashes, may
    act in it. All three are packed, and one more script unpacks them.
    """
    styles, scripts = _parts_of(data)
    style = bare_style(*styles)
    script = bare("".join(asset(name) for name in scripts))
    loader = bare(asset("unpack.js"))
    allowed = f"'{fingerprint(loader)}' '{fingerprint(script)}'"
    policy = (
        f"default-src 'none'; style-src '{fingerprint(style)}'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "packed": packed(style, script),
        "script": loader,
        "data": packed(_UNSAFE.sub(_escaped, _json(data))),
    }
    return re.sub(
        r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("inspect.html")
    )


def _parts_of(data: dict[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """Name the styles and scripts of a page: one of several inspections has more, and none has
    sections of what its data do not have.
    """
    inspections = data.get("inspections", [data])
    known = {key for one in inspections for key, value in one.items() if value}
    scripts = [name for name in SCRIPTS if NEEDED.get(name) in {None, *known}]
    if "inspections" not in data:
        return STYLES, scripts
    *most, last = scripts
    return (*STYLES, *SEVERAL_STYLES), (*most, *SEVERAL_SCRIPTS, last)


def _json(data: dict[str, Any]) -> str:
    """Write JSON without indents, where a list of weights would have a line for each of them."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
