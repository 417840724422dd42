"""The scripts in benchmarks/, without a corpus: one line that says what is absent, and exit code
1.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "arguments", "first_file"),
    [
        pytest.param(
            "batch_independence.py",
            ["--folder", "model"],
            "multi30k/test_2016_flickr.en",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "decoding_peers.py",
            ["--rounds", "1"],
            "multi30k/test_2016_flickr.en",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "ray_workers.py",
            ["model"],
            "multi30k/train.en",
            marks=pytest.mark.long,
        ),
        ("run.py", ["en-de"], "multi30k/train.en"),
        ("detection.py", ["--peer", "absent"], "multi30k/train.en"),
        ("terms_peer.py", ["model"], "multi30k/train.en"),
    ],
)
def test_where_a_corpus_is_absent_it_is_named(
    tmp_path: Path, script: str, arguments: list[str], first_file: str
) -> None:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    env = {**os.environ, "WEFT_DATA": str(tmp_path)}
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{tmp_path / first_file} is absent" in done.stdout + done.stderr
    assert "WEFT_DATA" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_that_weft_refuses_does_not_end_the_plan(tmp_path: Path) -> None:
    corpus = tmp_path / "tinyshakespeare" / "input.txt"
    corpus.parent.mkdir()
    corpus.write_text("A man reads a book.\n\n" * 200, "utf-8")
    plan = ["shakespeare:0.001", "imdb:5"]
    command = [sys.executable, str(BENCHMARKS / "minutes_kept.py"), *plan]
    env = {**os.environ, "WEFT_DATA": str(tmp_path)}
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "--minutes 0.001: must be a number of at least 0.1" in done.stderr
    refused, absent = done.stdout.splitlines()
    assert refused == "| shakespeare | 0.001 | failed: exit code 2 | | |"
    assert absent.startswith("| imdb | skipped: ")


@pytest.mark.long
def test_a_memory_of_a_million_units_keeps_to_its_bounds() -> None:
    command = [sys.executable, str(BENCHMARKS / "memories.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = done.stdout
    assert said.startswith("1,000,000 units")
    most = re.search(r"most memory: ([\d,]+) MiB", said)
    assert most is not None
    assert int(most[1].replace(",", "")) < 1024
    # of the processor, as other programs may run beside it
    seconds = re.search(r"processor time: ([\d.]+) s", said)
    assert seconds is not None
    assert float(seconds[1]) < 120
    rows = re.findall(r"\| (\d+) of (\d+) \| ([\d.]+) ms", said)
    assert len(rows) == 3
    for found, count, median in rows:
        assert int(found) > 0.98 * int(count)
        assert float(median) < 10
