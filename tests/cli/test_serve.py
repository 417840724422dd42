"""`weft serve` before it serves: what is refused in a line, keys that are made; and no PyTorch."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from weft.errors import MissingPackage
from weft.serve.keys import Keys, new_key
from weft.serve.options import refuse_idle_options
from weft.tasks import task

Command = Callable[..., Any]
MODEL = "runs/does-not-matter"


def test_a_wrong_start_is_one_line(
    command: Command, tmp_path: Path, tiny_models: dict[str, Path]
) -> None:
    model = tiny_models["en-de"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for arguments, code, said in (
            ([], 2, "weft serve FOLDER"),
            ([tmp_path / "absent"], 5, "no such folder"),
            ([tmp_path], 5, "not a Weft model folder"),
            ([model.parent], 5, f"give {model.parent / 'de-en'}"),
            ([model / "run"], 5, f"it is a part of {model}"),
            ([model, "--port", 9150, "--also-port", 9150], 2, "given twice"),
            (
                [model, "--keys", "--port", "9150"],
                2,
                "--keys needs a value, and --port",
            ),
            (["--new-key", "--port"], 2, "--new-key needs a value"),
            ([model, f"en-de={model}"], 2, "NAME="),
            ([f"mine:english={model}"], 2, "as in mine:en-de="),
            ([f"mine:fr-de={model}"], 2, "en to de, not fr to de"),
            ([model, "--port", port], 2, f"port {port} is taken"),
            ([model, "--port", 0, "--also-port", port], 2, f"port {port} is taken"),
            ([model, "--host", "0.0.0.0"], 2, "--keys FILE"),
            ([model, "--host", "::"], 2, "--no-keys"),
            ([model, "--host", "203.0.113.1", "--no-keys"], 2, "no address"),
            ([model, "--host", "no such host", "--no-keys"], 2, "no address"),
            ([model, "--keys", tmp_path / "absent"], 5, "cannot be read"),
            ([model, "--keys", "k", "--no-keys"], 2, "exclude each other"),
            ([model, "--log-level", "debug"], 2, "error, warning, info"),
            ([model, "--max-text", "0"], 2, "--max-text"),
            ([model, "--port", 0, "--pivot", "fr"], 2, "--pivot fr"),
            ([model, "--cors-origin", "example.org"], 2, "as in https://example.org"),
            ([model, "--cors-origin", "https://a.org/app"], 2, "without a path"),
            ([model, "--allow-host", "http://a.org"], 2, "the name alone"),
            ([model, "--allow-host", "a.org:5000"], 2, "the name alone"),
            ([model, "--proxy", "caddy"], 2, "the proxy's address"),
            ([model, "--proxy", "10.0.0.5/8"], 2, "its network"),
            ([model, "--suggestions", "/no/such/c.tsv"], 2, "no folder /no/such"),
            ([model, "--suggestions", tmp_path], 2, "that is a folder"),
        ):
            ended = command("serve", *arguments)
            lines = [line for line in ended.messages if line.startswith("weft:")]
            assert (ended.code, len(lines)) == (code, 1), ended.err
            assert lines[0].startswith("weft: ")
            assert said in lines[0]
            assert ended.out == b""


def test_options_that_can_match_something_are_taken(tmp_path: Path) -> None:
    refuse_idle_options(
        ["https://example.org", "http://[::1]:8000", "chrome-extension://abc", "*"],
        ["translate.example.org", "box", "::1", "*"],
        ["127.0.0.1", "::1", "172.17.0.0/16", "*"],
        tmp_path / "corrections.tsv",
    )


def test_packages_that_are_missing_are_named_with_the_command(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = util.find_spec

    def without(name: str, *more: Any) -> Any:
        return None if name == "uvicorn" else find(name, *more)

    monkeypatch.setattr("weft.packages.find_spec", without)
    ended = command("serve", MODEL)
    assert ended.code == 2
    assert ended.messages == [
        (
            "weft: weft serve needs uvicorn: pip install '.[serve]' in the folder of Weft's source"
            ", or of a wheel pip install 'FILE.whl[serve]'"
        )
    ]


def test_a_package_that_a_model_needs_is_named_with_its_folder(
    command: Command, monkeypatch: pytest.MonkeyPatch, tiny_models: dict[str, Path]
) -> None:
    folder = tiny_models["en-de"]

    def without(*more: Any) -> Any:
        raise MissingPackage("simplified = true", "opencc", "zh")

    monkeypatch.setattr(task, "load_tokenizer", without)
    ended = command("serve", folder, "--port", 0)
    assert ended.code == 2
    assert ended.messages[-1] == (
        f"weft: {folder}: simplified = true needs opencc: pip install '.[zh]' in the folder of Weft's source"
        ", or of a wheel pip install 'FILE.whl[zh]'"
    )


def test_a_new_key_is_shown_once_beside_the_line_of_the_file(
    command: Command, tmp_path: Path
) -> None:
    ended = command("serve", "--new-key", "laptop")
    assert ended.code == 0
    (line,) = ended.lines
    said, _ = ended.messages
    key = said.rsplit(" ", 1)[1]
    file = tmp_path / "keys.txt"
    file.write_bytes(ended.out)
    file.chmod(0o600)
    found = Keys(file).find(key)
    assert found is not None
    assert found.name == "laptop"
    assert key not in line
    assert command("serve", "--new-key", "a b").code == 2
    assert new_key("laptop")[0] != key


WITHOUT_TORCH = """
import json, os, signal, sys, threading, time
from pathlib import Path
from urllib.request import Request, urlopen
sys.path.insert(0, sys.argv[1])
import without_torch
place = sys.meta_path.index(without_torch.importlib.machinery.PathFinder)
sys.meta_path[place] = without_torch.WithoutTorch
log = Path(sys.argv[2])
sys.stderr = log.open("w", buffering=1)

def use():
    while "open http" not in log.read_text():
        time.sleep(0.05)
    url = log.read_text().partition("open ")[2].partition("/\\n")[0]
    answers = []
    for path, body in (
        ("/translate", {"q": ["A man."], "source": "en", "target": "de"}),
        ("/v1/completions", {"model": "plays", "prompt": "A", "max_tokens": 3}),
        ("/classify", {"input": "A man."}),
        ("/v1/translate", {"texts": ["A man."], "source": "en", "target": "de", "words": True}),
    ):
        asked = Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
        answers.append(urlopen(asked).status)
    print(json.dumps([answers, "torch" in sys.modules]), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=use, daemon=True).start()
sys.argv = ["weft", "serve", *sys.argv[3:], "--port", "0"]
from weft.__main__ import main
main()
"""


def test_models_are_served_where_there_is_no_pytorch(
    tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    folders = [str(tiny_models[name]) for name in ("en-de", "plays", "languages")]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT_TORCH,
            str(Path(__file__).parent),
            str(log),
            *folders,
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, (done.stderr, log.read_text("utf-8"))
    assert json.loads(done.stdout) == [[200, 200, 200, 200], False]
