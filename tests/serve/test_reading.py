"""Documents in processes of their own: what goes wrong there is said here, and nothing stays."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.documents.document import Doubt, Reading, Translated
from weft.documents.registry import FORMATS
from weft.errors import UsageError
from weft.serve import reading
from weft.serve.reading import Apart, Here, Reader

CATALOGUE = b'msgid "one <b>two</b>"\nmsgstr ""\n'


def opened(
    format_name: str, content: bytes, use: Callable[[Any], Any], name: str = "the file"
) -> Any:
    """What a use of a document gives."""

    async def run() -> Any:
        asked = Reading(name, "en", "de")
        async with Reader().open(FORMATS[format_name], content, asked) as document:
            return await use(document)

    return asyncio.run(run())


def test_a_document_is_written_by_its_own_process() -> None:
    async def use(document: Apart) -> bytes:
        assert isinstance(document, Apart)
        assert document.process.pid != os.getpid()
        assert document.texts == ["one two"]
        assert document.needs_alignment
        alignment = [(0, 3, 5, 8), (4, 7, 0, 4)]
        doubt = Doubt(("Look it over.",), 0.5)
        return (
            await document.written([Translated("zwei eins", alignment, doubt)])
        ).content

    written = opened("po", CATALOGUE, use).decode()
    assert 'msgstr "<b>zwei</b> eins"' in written
    assert "#, fuzzy" in written
    assert "Look it over." in written


def test_a_document_may_stay_as_it_is() -> None:
    async def use(document: Apart) -> bytes:
        return (await document.written(None)).content

    assert opened("po", CATALOGUE, use) == CATALOGUE


def test_text_is_read_here() -> None:
    async def use(document: Here) -> bytes:
        assert isinstance(document, Here)
        return (await document.written([Translated("zwei")])).content

    assert opened("text", b"two\n", use) == b"zwei\n"


def test_what_is_wrong_with_a_file_is_said() -> None:
    async def use(document: Apart) -> None:
        raise AssertionError

    with pytest.raises(UsageError, match=r"^the file.*archive"):
        opened("docx", b"no zip", use)


def pids_of_readers() -> set[int]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"weft.documents.apart" in line and int(parent) == os.getpid():
            found.add(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc").exists(), reason="no /proc here")
def test_no_process_stays() -> None:
    async def use(document: Apart) -> None:
        assert pids_of_readers() == {document.process.pid}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opened("po", CATALOGUE, use)
    assert pids_of_readers() == set()


def test_a_reader_that_ends_or_is_slow_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def use(document: Apart) -> None:
        raise AssertionError

    for line in ("raise SystemExit(1)", "import time; time.sleep(60)"):
        package = tmp_path / "weft" / "documents"
        package.mkdir(parents=True, exist_ok=True)
        (package.parent / "__init__.py").write_text("")
        (package / "__init__.py").write_text("")
        (package / "apart.py").write_text(line)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(reading, "SECONDS", 3.0)
        with pytest.raises(UsageError, match="too much time or memory"):
            opened("po", CATALOGUE, use)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of memory are of Linux")
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader that takes more than it may is ended or says so; the server goes on."""
    hungry = tmp_path / "sitecustomize.py"
    hungry.write_text(
        "import weft.documents.apart as apart\n"
        "apart.MOST_MEMORY = 64 << 20\n"
        "import runpy, sys\n"
        "sys.modules['weft.documents.apart'] = apart\n"
        "if 'weft.documents.apart' in sys.orig_argv:\n"
        "    apart.main()\n"
        "    sys.exit()\n"
    )
    old = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{old}")

    async def use(document: Apart) -> None:
        raise AssertionError

    large = b"".join(
        b'msgid "a %d"\nmsgstr ""\n\n' % number for number in range(200_000)
    )
    with pytest.raises(UsageError, match=r"too much (time or )?memory"):
        opened("po", large, use)
