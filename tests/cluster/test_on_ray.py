"""Ray as the executor, as far as it can be seen without Ray: what is refused, and how the actors
tell their errors.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
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
    UsageError,
    WeftError,
)


def echoing() -> Answers:
    def answers(lines: Sequence[str], first: int) -> Iterator[tuple[str, Any]]:
        for line in lines:
            yield f"{line}\n", {"lines": 1}

    return answers


WORK = Work("echo", {}, {}, {}, echoing)


class RayHere:
    """Ray's calls as far as they are used, each done at once in this process."""

    exceptions = SimpleNamespace(RayError=ZeroDivisionError)
    util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.environment: dict[str, str] = {}

    def init(self, **settings: Any) -> None:
        self.calls.append(settings)
        self.environment = dict(os.environ)

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 4.0}

    def remote(self, num_cpus: int) -> Any:
        assert num_cpus == 0
        return lambda kind: SimpleNamespace(remote=partial(self._started, kind))

    def _started(self, kind: type, *arguments: Any) -> Any:
        self.calls.append(kind.__name__)
        made = kind(*arguments)
        names = [name for name in ("begin", "next") if hasattr(made, name)]
        methods = {name: SimpleNamespace(remote=getattr(made, name)) for name in names}
        return SimpleNamespace(**methods)

    def get(self, reference: Any) -> Any:
        return reference

    def kill(self, actor: Any) -> None:
        self.calls.append("kill")


class DataHere:
    """The same of Ray Data: its actors are one, which takes the last row first."""

    DataContext = SimpleNamespace(get_current=SimpleNamespace)

    def __init__(self) -> None:
        self.pool: dict[str, int] = {}

    def ActorPoolStrategy(self, **pool: int) -> dict[str, int]:
        self.pool = pool
        return pool

    def from_items(self, rows: list[Any], override_num_blocks: int) -> Any:
        assert override_num_blocks == len(rows)
        return SimpleNamespace(map=partial(self._mapped, rows))

    def _mapped(
        self, rows: list[Any], kind: type, fn_constructor_args: Any, **settings: Any
    ) -> Any:
        assert settings == {"compute": self.pool, "num_cpus": fn_constructor_args[1]}
        actor: Any = kind(*fn_constructor_args)
        return SimpleNamespace(iter_rows=lambda: map(actor, rows[::-1]))


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> RayHere:
    """Ray in this process; the number of threads is put back."""
    ray = RayHere()
    modules = {"ray": ray, "ray.data": DataHere()}
    monkeypatch.setattr(on_ray, "import_module", modules.__getitem__)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    return ray


class Counted:
    """A handle of the actor that counts, called as Ray's handles are."""

    def __init__(self) -> None:
        self.begin = SimpleNamespace(remote=Attempts().begin)


def row_of(path: Path, text: bytes = b"a\nb\n") -> dict[str, str]:
    path.write_bytes(text)
    (block,) = divided([path], 99).blocks
    return {"block": json.dumps(asdict(block))}


@pytest.mark.parametrize("address", [None, "ray://10.0.0.1:10001"])
def test_every_block_is_answered_and_ray_is_left(
    ray: RayHere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str | None
) -> None:
    monkeypatch.setattr(on_ray, "loaded", lambda *names: ray)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "in.txt").write_bytes(b"a\nb\nc\n")
    blocks = divided([tmp_path / "in.txt"], 1).blocks
    before = dict(os.environ)
    answered = list(OnRay(address, 2, 1).run(WORK, blocks))
    assert [(each.number, each.text) for each in answered] == [
        (2, "c\n"),
        (1, "b\n"),
        (0, "a\n"),
    ]
    assert dict(os.environ) == before
    settings, *calls = ray.calls
    if address is None:
        assert calls == ["Attempts", "kill", "shutdown"]
        assert (settings["address"], settings["include_dashboard"]) == ("local", False)
        assert not Path(settings["_temp_dir"]).exists()
        assert ray.environment["RAY_AUTH_MODE"] == "token"
        assert len(ray.environment["RAY_AUTH_TOKEN"]) == 64
        assert ray.environment["RAY_USAGE_STATS_ENABLED"] == "0"
        assert ray.environment["OMP_NUM_THREADS"] == "1"
    else:
        assert calls == ["Driver", "Attempts", "kill", "shutdown"]
        assert settings["address"] == address
        assert settings["runtime_env"]["env_vars"]["OMP_NUM_THREADS"] == "1"


def test_several_works_share_a_ray_that_is_started_once(
    ray: RayHere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_ray, "loaded", lambda *names: ray)
    (tmp_path / "in.txt").write_bytes(b"a\nb\n")
    blocks = divided([tmp_path / "in.txt"], 1).blocks
    with OnRay(None, 2, 1).staying() as workers:
        for _ in range(2):
            assert [each.number for each in workers.run(WORK, blocks)] == [1, 0]
        assert ray.calls[1:] == ["Attempts", "kill"] * 2
    assert ray.calls[-1] == "shutdown"


def test_more_workers_than_there_are_cpus_for_are_refused(
    ray: RayHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "loaded", lambda *names: ray)
    with pytest.raises(UsageError, match="has 4 CPUs, and 3 workers of 2 threads"):
        list(OnRay("ray://10.0.0.1:10001", 3, 2).run(WORK, []))
    assert ray.calls[-1] == "shutdown"


def test_a_ray_that_does_not_start_is_told_in_one_line(
    ray: RayHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**settings: Any) -> None:
        raise RuntimeError("many\nlines\n\nand the cause\n")

    monkeypatch.setattr(on_ray, "loaded", lambda *names: ray)
    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(UsageError) as caught:
        list(OnRay().run(WORK, []))
    assert str(caught.value) == "--on ray: Ray cannot be started (and the cause)"


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
