"""Argos Translate and LibreTranslate themselves, with a package and without a network.

`WEFT_ARGOS` names a Python that has argostranslate (tested: 1.11.0, with minisbd 0.9.5 and stanza
1.10.1), `WEFT_LIBRETRANSLATE` one that has libretranslate (tested: 1.9.6, with argos-translate-lt
1.12.1 and numpy 1.26.4), each as pip chooses what it needs; both have ctranslate2 4.8.5.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import interop
import weft
from weft.config import PairsSection
from weft.data.texts import Sources, gather_pairs
from weft.ship.argos.package import Package
from weft.ship.argos.running import Runner
from weft.ship.argos.target import Argos
from weft.ship.exporting import export
from weft.ship.lengths import penalty_by_length
from weft.ship.source import open_source

ARGOS = os.environ.get("WEFT_ARGOS", "")
LIBRETRANSLATE = os.environ.get("WEFT_LIBRETRANSLATE", "")
PROGRAM = Path(interop.__file__).with_name("argos.py")
SERVER = "from libretranslate.main import main; main()"
NOWHERE = "http://127.0.0.1:9/"  # nothing listens there
STARTS = 120  # seconds that a server may take to start

pytestmark = pytest.mark.long
needs_argos = pytest.mark.skipif(
    not ARGOS, reason="WEFT_ARGOS names no Python that has argostranslate"
)
needs_libretranslate = pytest.mark.skipif(
    not LIBRETRANSLATE,
    reason="WEFT_LIBRETRANSLATE names no Python that has libretranslate",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator from English into German that has learned the built-in sentences a little."""
    case = interop.Case("en-de", ('tokenizer.kind="unigram"',))
    out = tmp_path_factory.mktemp("model") / "model"
    settings = interop.settings_of(case)
    weft.train(recipe=case.recipe, out=out, settings=settings, quiet=True)
    return out


@pytest.fixture(scope="module")
def package(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Package:
    out = tmp_path_factory.mktemp("package") / "out"
    made = export(model, Argos(), out)
    assert made.certificate is not None
    assert made.certificate.failed is None
    (path,) = out.glob("*.argosmodel")
    return Package(path)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences that were not trained on, alone, together, and in lines."""
    section = PairsSection(builtin="everyday", src_lang="en", tgt_lang="de")
    pairs = gather_pairs(section, Sources())
    test = list(pairs.test.src[:60])
    return [
        *test[:50],
        *(" ".join(test[i : i + 3]) for i in range(0, 9, 3)),
        "\n".join(test[:4]),
        "Dr. Miller left at 5 p.m. on 3 May. She said: \u201cWait!\u201d Then he came.",
        "",
        "   ",
    ]


def alone(place: Path) -> dict[str, str]:
    """Return the environment of a program that has a home of its own and finds nothing to
    download.
    """
    folders = {
        name: str(place / name.lower())
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    }
    nowhere = {f"{kind}_proxy": NOWHERE for kind in ("http", "https")}
    kept = {name: os.environ[name] for name in ("PATH",)}
    index = {"ARGOS_PACKAGE_INDEX": NOWHERE, "no_proxy": "127.0.0.1"}
    return {**kept, **folders, **nowhere, **index}


def translate(
    python: str, place: Path, package: Package, texts: Sequence[str]
) -> dict[str, Any]:
    """Install the package in another Python's Argos Translate, and have it translate."""
    asked = {"package": str(package.path), "texts": texts, "src": "en", "tgt": "de"}
    done = subprocess.run(
        [python, str(PROGRAM)],
        input=json.dumps(asked),
        env=alone(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@needs_argos
def test_argos_translate_gives_what_was_compared(
    package: Package, texts: list[str], tmp_path: Path
) -> None:
    told = translate(ARGOS, tmp_path, package, texts)
    runner = Runner(package)
    assert told["translations"] == [runner.translate(text) for text in texts]
    data = tmp_path / "xdg_data_home" / "argos-translate"
    installed = [path.name for path in (data / "packages").iterdir()]
    assert installed == [package.folder]
    # nothing was downloaded for it
    assert not (data / "minisbd").exists()
    assert not (data / "index.json").exists()


def equal_to_weft(model: Path, texts: Sequence[str], translated: Sequence[str]) -> int:
    """Count the translations that are Weft's, too, by the same search: the beam of Argos Translate,
    and the penalty that is nearest to its own.
    """
    tokenizer = open_source(model).tokenizers[-1]
    usual = median(len(tokenizer.encode(text)) + 1 for text in translated)
    penalty = 0.2 / penalty_by_length(1.0, round(usual))
    found = weft.load(model).translate(texts, beam_size=4, length_penalty=penalty)
    own = [one.text.replace("_", " ") for one in found]
    return sum(one == other for one, other in zip(own, translated, strict=True))


@needs_argos
def test_argos_translate_gives_what_weft_gives_by_the_same_search(
    model: Path, package: Package, texts: list[str], tmp_path: Path
) -> None:
    """But for what int8 changes, in which it computes."""
    single = texts[:50]
    told = translate(ARGOS, tmp_path, package, single)
    equal = equal_to_weft(model, single, told["translations"])
    print(f"Argos Translate: {equal} of {len(single)} are Weft's")
    assert equal >= 30


@needs_libretranslate
def test_the_argos_translate_of_libretranslate_gives_what_weft_gives(
    model: Path, package: Package, texts: list[str], tmp_path: Path
) -> None:
    """It computes in float32, as the package has the model; a loop may end elsewhere."""
    single = texts[:50]
    told = translate(LIBRETRANSLATE, tmp_path, package, single)
    equal = equal_to_weft(model, single, told["translations"])
    print(f"LibreTranslate's Argos Translate: {equal} of {len(single)} are Weft's")
    assert equal >= 45


@needs_argos
def test_a_certificate_takes_argos_translate_where_it_is_installed(
    model: Path, package: Package, texts: list[str], tmp_path: Path
) -> None:
    """The other Python's packages that this one lacks stand in its path, argostranslate too."""
    said = "import site; print(site.getsitepackages()[0])"
    told = subprocess.run(
        [ARGOS, "-c", said], capture_output=True, text=True, check=True
    )
    beside = tmp_path / "beside"
    beside.mkdir()
    here = {path.name.lower() for path in Path(np.__file__).parents[1].iterdir()}
    for path in Path(told.stdout.strip()).iterdir():
        if path.name.lower() not in here:
            (beside / path.name).symlink_to(path)
    paths = [str(Path(weft.__file__).parents[1]), str(beside)]
    options = ["--to", "argos", "--json", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "weft", "export", str(model), *options],
        env=alone(tmp_path) | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert "argostranslate" in made["certificate"]["versions"]
    assert not any("was not installed" in note for note in made["notes"])
    used = made["certificate"]["checks"][-1]
    parity = json.loads((package.path.parent / "parity.json").read_text("utf-8"))
    step_by_step = parity["checks"][-1]
    assert {name: used[name] for name in step_by_step} == step_by_step


@needs_libretranslate
def test_libretranslate_answers_with_the_same_texts(
    package: Package, texts: list[str], tmp_path: Path
) -> None:
    """The server has this package alone, which its own Argos Translate has installed."""
    asked = [text for text in texts if text.strip()]
    told = translate(LIBRETRANSLATE, tmp_path, package, asked)
    with serving(tmp_path) as address:
        languages = ask(f"{address}/languages")
        (english,) = (one for one in languages if one["code"] == "en")
        assert english["targets"] == ["de", "en"]
        question = {"q": asked, "source": "en", "target": "de"}
        answer = ask(f"{address}/translate", question)
    assert answer["translatedText"] == told["formatted"]
    data = tmp_path / "xdg_data_home" / "argos-translate"
    assert not list((data / "minisbd").glob("*.onnx"))


@contextmanager
def serving(place: Path) -> Iterator[str]:
    """Start LibreTranslate's own server on the loopback; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--load-only", "en,de"]
    with (place / "server.log").open("w") as log:
        server = subprocess.Popen(
            [LIBRETRANSLATE, "-c", SERVER, *options],
            env=alone(place),
            cwd=place,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(server, address, place / "server.log")
        yield address
    finally:
        server.terminate()
        server.wait(20)


def wait_for(server: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    end = time.monotonic() + STARTS
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text("utf-8")
        try:
            ask(f"{address}/languages")
        except urllib.error.URLError:
            time.sleep(0.5)
        else:
            return
    pytest.fail(f"the server did not start: {log.read_text('utf-8')}")


def ask(address: str, question: Mapping[str, Any] | None = None) -> Any:
    """Return the answer to a request, with a question a POST."""
    content = None if question is None else json.dumps(question).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, content, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
