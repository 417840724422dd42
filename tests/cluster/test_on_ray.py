"""Ray as the executor, as far as it can be seen without Ray: what is refused, and how the actors
tell their errors.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft import packages
from weft.cluster import on_ray
from weft.cluster.block import divided
from weft.cluster.on_ray import Actor, Attempts, OnRay
from weft.cluster.work import Answers, Work
from weft.errors import (
    DataError,
    FolderError,
    MissingPackage,
    OutOfMemoryError,
    WeftError,
)


def echoing() -> Answers:
    def answers(lines: Sequence[str], first: int) -> Iterator[tuple[str, Any]]:
        for line in lines:
            yield f"{line}\n", {"lines": 1}

    return answers


WORK = Work("echo", {}, {}, {}, echoing)


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own calls, done at once; the number of threads is put back."""
    attempts = SimpleNamespace(get=lambda reference: reference)
    monkeypatch.setattr(on_ray, "import_module", lambda name: attempts)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))


class Counted:
    """A handle of the actor that counts, called as Ray's handles are."""

    def __init__(self) -> None:
        self.begin = SimpleNamespace(remote=Attempts().begin)


def row_of(path: Path, text: bytes = b"a\nb\n") -> dict[str, str]:
    path.write_bytes(text)
    (block,) = divided([path], 99).blocks
    return {"block": json.dumps(asdict(block))}


def test_an_actor_answers_a_row_by_a_row(tmp_path: Path) -> None:
    row = row_of(tmp_path / "in.txt")
    answered = on_ray._told(Actor(WORK, 3, Counted())(row))
    assert (answered.number, answered.text, answered.sums) == (
        0,
        "a\nb\n",
        {"lines": 2},
    )
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_an_error_of_weft_travels_by_its_kind(tmp_path: Path) -> None:
    row = row_of(tmp_path / "in.txt")
    (tmp_path / "in.txt").write_bytes(b"a\nc\n")
    with pytest.raises(DataError, match="has changed since the work began"):
        on_ray._told(Actor(WORK, 1, Counted())(row))
    lost = Work("echo", {}, {tmp_path / "terms.tsv": "0" * 64}, {}, echoing)
    with pytest.raises(FolderError, match="missing or another one on"):
        on_ray._told(Actor(lost, 1, Counted())(row))
    for kind in (MissingPackage.__name__, "str", "Path"):
        said = {"error": kind, "message": "no"}
        with pytest.raises(WeftError, match=r"^no$"):
            on_ray._told({"said": json.dumps(said)})


def test_a_block_that_kills_worker_after_worker_is_given_up(tmp_path: Path) -> None:
    row = row_of(tmp_path / "in.txt")
    counted = Counted()
    for _ in range(3):  # each dies there, before it can answer
        counted.begin.remote(0)
    with pytest.raises(OutOfMemoryError, match=r"in\.txt: lines 1 to 2: 3 workers"):
        on_ray._told(Actor(WORK, 1, counted)(row))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    before = dict(os.environ)
    with pytest.raises(MissingPackage, match=r"--on ray needs ray: .*\[ray\]"):
        list(OnRay().run(WORK, []))
    assert dict(os.environ) == before


def test_a_token_that_the_user_has_is_shown_to_a_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("RAY_AUTH_MODE", *on_ray._TOKENS):
        monkeypatch.delenv(name, raising=False)
    assert on_ray._shown_token() == {}
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("f" * 64)
    assert on_ray._shown_token() == {"RAY_AUTH_MODE": "token"}
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert on_ray._shown_token() == {}


def test_a_ray_that_others_can_reach_is_not_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    util = SimpleNamespace(get_node_ip_address=lambda: "192.0.2.2")
    monkeypatch.setattr(on_ray, "loaded", lambda *names: SimpleNamespace(util=util))
    with pytest.raises(WeftError, match=r"would listen on 192\.0\.2\.2"):
        list(OnRay().run(WORK, []))
