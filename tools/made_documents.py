"""Documents with all that a person's documents have, some written by hand, others by LibreOffice:
`python tools/made_documents.py FOLDER`.

The sources are in `tools/documents`. Of the flat files of OpenDocument there `soffice` makes
Word, PowerPoint, Excel, its own formats, a book and a page.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCES = Path(__file__).resolve().parent / "documents"
_MADE_OF = {
    ".fodt": ("odt", "docx", "epub", "html"),
    ".fodp": ("odp", "pptx"),
    ".fods": ("ods", "xlsx"),
}


def make(folder: Path) -> list[Path]:
    """Make all documents in a folder; return their paths."""
    found: list[Path] = []
    for source in sorted(SOURCES.iterdir()):
        if source.suffix not in _MADE_OF:
            found.append(Path(shutil.copy(source, folder)))
            continue
        for name in _MADE_OF[source.suffix]:
            found += convert([source], name, folder).values()
    return found


def convert(paths: Sequence[Path], ending: str, folder: Path) -> Mapping[Path, Path]:
    """Let LibreOffice write files in another format; return those that it wrote, by their sources.

    Raises RuntimeError where it is not there, or says that something is wrong.
    """
    program = shutil.which("soffice")
    if program is None:
        raise RuntimeError("LibreOffice is not installed")
    with TemporaryDirectory() as profile:
        command = [program, f"-env:UserInstallation=file://{profile}", "--headless"]
        command += ["--convert-to", ending, "--outdir", str(folder), *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or re.search("(?m)^Error:", done.stderr + done.stdout):
        raise RuntimeError(f"soffice: {done.stdout}{done.stderr}")
    written = {path: folder / f"{path.stem}.{ending}" for path in paths}
    return {path: out for path, out in written.items() if out.is_file()}


if __name__ == "__main__":
    for made in make(Path(sys.argv[1])):
        print(made)
