"""Ray itself, with two workers: the output is that of the verb alone, whoever is killed meanwhile,
and nobody but this machine can reach it.

The Python of the tests has Ray, or `WEFT_RAY` names one that has it and what Weft needs (tested:
2.60.0).
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data.builtin import everyday

RAY = sys.executable if find_spec("ray") else os.environ.get("WEFT_RAY", "")
SOURCES = Path(weft.__file__).parents[1]
NUM_LINES = 12_000
BLOCK = 1_500
MODEL_OF = {"classify": "languages", "score": "plays"}
PATIENCE = 400  # seconds

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not RAY, reason="neither this Python nor WEFT_RAY's has Ray (the extra ray)"
    ),
]


ON_TWO = ("--on", "ray", "--workers", "2", "--block")
WEFT = ("-m", "weft")
# the command, to which a text is large from 10,000 pairs on
SMALL = """
from weft.data import base, column, measures
from weft.data.check import stretches as of_check
from weft.data.clean import stretches as of_clean
from weft.__main__ import main

base.LARGE = column.LARGE = 10_000
measures.STRETCH = of_check.STRETCH = of_clean.STRETCH = 1_000
main()
"""
WEFT_OF_SMALL = ("-c", SMALL)


def started(*arguments: object, program: Sequence[str] = WEFT) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCES),
        "OMP_NUM_THREADS": "1",
        "RAY_raylet_start_wait_time_s": str(PATIENCE),
    }
    command = [RAY, *program, *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(*arguments: object, program: Sequence[str] = WEFT) -> str:
    """What a command writes on standard output; it must end well."""
    process = started(*arguments, program=program)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many different lines that a worker is still at work when it is killed."""
    words = ("cat", "dog", "bird", "fish", "horse", "mouse", "and", "sees", "zebra")
    made = (" ".join(some) + "." for some in product(words, repeat=5))
    path = tmp_path_factory.mktemp("source") / "in.txt"
    with path.open("w", encoding="utf-8") as file:
        for _ in range(NUM_LINES):
            file.write(next(made) + "\n")
    return path


@pytest.fixture(scope="module")
def alone(
    tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, source: Path
) -> bytes:
    out = tmp_path_factory.mktemp("alone") / "out.txt"
    done("translate", tiny_folder, "--input", source, "--output", out)
    return out.read_bytes()


@pytest.mark.parametrize("verb", ["classify", "score"])
def test_other_verbs_say_the_same_with_and_without(
    tmp_path: Path, tiny_models: dict[str, Path], source: Path, verb: str
) -> None:
    model = tiny_models[MODEL_OF[verb]]
    text = tmp_path / "in.txt"
    with source.open(encoding="utf-8") as file:
        text.write_text("".join(islice(file, 200)), "utf-8")
    for options in ((), ("--json",)):
        out = tmp_path / "".join(("out", *options))
        on = (*ON_TWO, 64, "--output", out)
        given = ("--input", text) if verb == "classify" else (text,)
        alone = done(verb, model, *given, *options)
        assert done(verb, model, *given, *options, *on) == ""
        shards = sorted(path for path in out.iterdir() if path.stem.isdecimal())
        assert len(shards) == 4
        lines = [path.read_text("utf-8") for path in shards]
        assert "".join(lines) == alone
        assert alone.count("\n") == 200


def wait_for(what: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    """Wait until something is there, while a process lives."""
    for _ in range(PATIENCE * 10):
        if found := what():
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.terminate()
    _, err = process.communicate()
    pytest.fail(f"it never came: {err}")


def descendants(process: int) -> Iterator[int]:
    children = f"/proc/{process}/task/{process}/children"
    try:
        found = Path(children).read_text().split()
    except OSError:  # it has ended
        return
    for child in map(int, found):
        yield child
        yield from descendants(child)


def is_alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def addresses(processes: set[int]) -> set[str]:
    """The local addresses, in hexadecimal, on which the processes listen for TCP."""
    own = set()
    for process in processes:
        for entry in Path(f"/proc/{process}/fd").iterdir():
            try:
                own.add(os.readlink(entry))
            except OSError:  # closed meanwhile
                continue
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().split("\n")[1:-1]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.add(fields[1].partition(":")[0])
    return found


def own_folders() -> set[Path]:
    """The folders of a Ray that Weft has started."""
    return set(Path("/tmp").glob("weft-ray-*"))


LOOPBACK = {
    "0100007F",  # 127.0.0.1
    "00000000000000000000000001000000",  # ::1
    "0000000000000000FFFF00000100007F",  # 127.0.0.1 as IPv6 has it
}


def test_X9_a_killed_worker_costs_its_block_and_nothing_else(
    tmp_path: Path, tiny_folder: Path, source: Path, alone: bytes
) -> None:
    out = tmp_path / "out.txt"
    shards = tmp_path / "out.txt.shards"
    process = started(
        *("translate", tiny_folder, "--input", source, "--output", out),
        *(*ON_TWO, BLOCK),
    )
    wait_for(lambda: list(shards.glob("*.txt")), process)
    listening = addresses(set(descendants(process.pid)))
    assert listening
    assert listening <= LOOPBACK
    journal = (shards / "finished.jsonl").read_text("utf-8").split("\n")
    worker = int(json.loads(journal[1])["worker"].partition("@")[0])
    assert worker in set(descendants(process.pid))
    folders = {path for path in own_folders() if (path / "session_latest").exists()}
    os.kill(worker, signal.SIGKILL)
    killed = time.time()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert out.read_bytes() == alone
    manifest = json.loads((shards / "manifest.json").read_text("utf-8"))
    assert len(manifest["shards"]) == NUM_LINES // BLOCK
    later = [shard for shard in manifest["shards"] if shard["began"] > killed]
    assert later
    assert str(worker) not in {shard["worker"].partition("@")[0] for shard in later}
    assert len(folders) == 1
    assert folders.isdisjoint(own_folders())


def test_X9_a_killed_command_goes_on_where_it_was(
    tmp_path: Path, tiny_folder: Path, source: Path, alone: bytes
) -> None:
    out = tmp_path / "out"
    arguments = (
        *("translate", tiny_folder, "--input", source, "--output", out),
        *(*ON_TWO, BLOCK),
    )
    process = started(*arguments)
    wait_for(lambda: len(list(out.glob("*.txt"))) >= 2, process)
    children = set(descendants(process.pid))
    process.kill()
    process.communicate()
    journal = (out / "finished.jsonl").read_text("utf-8").split("\n")[1:-1]
    finished = {json.loads(line)["shard"] for line in journal}
    assert 0 < len(finished) < NUM_LINES // BLOCK
    before = {name: (out / name).stat().st_mtime_ns for name in finished}
    done(*arguments)
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == before
    written = [path.read_bytes() for path in sorted(out.glob("*.txt"))]
    assert b"".join(written) == alone
    for _ in range(PATIENCE):  # Ray looks for its parent now and then
        children = {child for child in children if is_alive(child)}
        if not children:
            break
        time.sleep(1)
    assert not children


def test_a_cluster_that_runs_already_is_joined_and_stays(
    tmp_path: Path,
    tiny_folder: Path,
    source: Path,
    alone: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    monkeypatch.setenv("RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S", str(PATIENCE))
    monkeypatch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", str(PATIENCE))
    program = str(Path(RAY).with_name("ray"))
    port = 20_031
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCES),
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    start = (
        *("start", "--head", "--num-cpus", "2", "--include-dashboard", "false"),
        *("--port", "20030", "--ray-client-server-port", port, "--block"),
    )
    cluster = subprocess.Popen(
        [program, *map(str, start)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out = tmp_path / "out.txt"
        arguments = (
            *("translate", tiny_folder, "--input", source, "--output", out),
            *("--on", f"ray://127.0.0.1:{port}", "--block", BLOCK),
        )
        for _ in range(6):  # until it listens
            process = started(*arguments)
            _, err = process.communicate(timeout=PATIENCE)
            if process.returncode == 0:
                break
            assert (process.returncode, err.count("Ray cannot be joined")) == (2, 1), (
                err
            )
            time.sleep(10)
        assert out.read_bytes() == alone
        assert cluster.poll() is None
    finally:
        os.killpg(cluster.pid, signal.SIGKILL)
        cluster.wait(60)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16,000 pairs with much to mend and to drop."""
    draw = random.Random(1)
    sentences = everyday()
    lines = []
    for number in range(16_000):
        one, other = draw.choices(sentences, k=2)
        sides = [f"{one.de} {other.de} {number}", f"{one.en} {other.en} {number}"]
        if number % 97 == 7:
            sides = sides[::-1]
        if number % 97 == 17:
            sides[0] = f"<b>{sides[0]}</b>"
        if number % 97 == 27:
            sides[1] = sides[0]
        lines.append("\t".join(sides) + "\n")
    lines[9_000] = lines[30]
    path = tmp_path_factory.mktemp("pairs") / "made.de-en.tsv"
    path.write_text("".join(lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory, pairs: Path) -> list[str]:
    """The lines of the cleaned text, by the verb alone."""
    out = tmp_path_factory.mktemp("cleaned") / "out.tsv"
    done("clean", pairs, "--output", out, program=WEFT_OF_SMALL)
    head, *lines = out.read_text("utf-8").split("\n")[:-1]
    assert head == "de\ten"
    assert 12_000 < len(lines) < 16_000
    return lines


def finished_checks(work: Path) -> list[Any]:
    """What the journals say of the blocks of a check that are finished."""
    found = []
    for journal in work.glob("*-check/finished.jsonl"):
        lines = journal.read_text("utf-8").split("\n")[1:-1]
        found += [json.loads(line) for line in lines]
    return found


def test_a_cleaning_outlives_a_worker_and_a_command(
    tmp_path: Path, pairs: Path, cleaned: list[str]
) -> None:
    out = tmp_path / "out"
    work = tmp_path / "out.work"
    arguments = ("clean", pairs, "--output", out, *ON_TWO, 1_000)
    process = started(*arguments, program=WEFT_OF_SMALL)
    wait_for(lambda: len(finished_checks(work)) >= 2, process)
    process.kill()
    process.communicate()
    finished = {entry["worker"] for entry in finished_checks(work)}
    process = started(*arguments, program=WEFT_OF_SMALL)
    others = wait_for(
        lambda: {entry["worker"] for entry in finished_checks(work)} - finished, process
    )
    worker = others.pop().partition("@")[0]
    os.kill(int(worker), signal.SIGKILL)
    killed = time.time()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "weft: mend: 16 blocks (16 finished before), by 2 workers" in err
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    lines = []
    for shard in manifest["shards"]:
        lines += (out / shard["shard"]).read_text("utf-8").split("\n")[1:-1]
    assert lines == cleaned
    later = [block for block in manifest["blocks"] if block["began"] > killed]
    assert later
    assert worker not in {block["worker"].partition("@")[0] for block in later}
    assert not work.exists()


def test_a_check_finds_the_same_with_and_without(pairs: Path) -> None:
    alone = done("check", pairs, "--json", program=WEFT_OF_SMALL)
    found = done("check", pairs, "--json", *ON_TWO, 2_000, program=WEFT_OF_SMALL)
    assert found == alone
    assert len(json.loads(found)["findings"]) > 3
