"""XLIFF, the exchange format of translators' tools, in the version that the file states."""

from weft.documents.document import Reading
from weft.documents.formats.bilingual.units import Bilingual
from weft.documents.formats.bilingual.xliff_1 import read_xliff_1
from weft.documents.formats.bilingual.xliff_2 import read_xliff_2
from weft.documents.formats.xml.tree import read_tree
from weft.errors import UsageError

_READERS = {"1.2": read_xliff_1, "2.0": read_xliff_2, "2.1": read_xliff_2}


def open_xliff(content: bytes, reading: Reading) -> Bilingual:
    """Read a file of XLIFF 1.2, 2.0 or 2.1.

    Raises UsageError for another version, for what is no XLIFF, and for one of other languages
    than the reading's.
    """
    tree = read_tree(content, reading.name)
    where = f"{reading.name}:{tree.line(tree.root.start)}"
    if tree.root.name != "xliff":
        raise UsageError(
            f"{where}: begins with <{tree.root.name}>; XLIFF begins with <xliff>"
        )
    version = tree.root.get("version")
    if version not in _READERS:
        stated = version[:40] or "without a version"
        listed = ", ".join(_READERS)
        raise UsageError(f"{where}: is XLIFF {stated}; the versions {listed} are read")
    return _READERS[version](tree, reading)
