"""The models of a server, and their folders."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.folder import durable
from weft.serve.catalogue import Catalogue, ServedModel, when_written
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.service import Service


def test_a_folder_that_is_moved_away_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "plays"
    folder.mkdir()
    (folder / durable.MANIFEST).write_text("{}")
    task: Any = SimpleNamespace(name="language-modelling")
    created = when_written(folder)
    model = ServedModel("plays", folder, task, None, created, {})
    service = Service(Catalogue([model]), Pool(1, 9), Limits())

    def look(times: int) -> int:
        """Return how often it was told until now."""
        for _ in range(times):
            assert asyncio.run(service.renew()) == []
        return sum("plays: its folder is gone" in line for line in caplog.messages)

    with caplog.at_level(logging.WARNING, "weft.serve"):
        assert look(4) == 0
        folder.rename(tmp_path / "elsewhere")
        assert look(2) == 0  # it may be written anew
        assert look(8) == 1
        (tmp_path / "elsewhere").rename(folder)
        assert look(3) == 1
        folder.rename(tmp_path / "elsewhere")
        assert look(3) == 2
    service.pool.stop()
