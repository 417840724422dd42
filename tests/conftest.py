"""What several rooms' tests share: made sentence pairs, and one tiny trained model folder a
session.
"""

import gc
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from torch import Tensor

import shapes

gc.disable()  # until all tests are collected: every syntax tree stays in use, which costs a quarter
shapes.check_modules("weft.model", "weft.decoding")

import tiny_server  # noqa: E402
import weft  # noqa: E402
from weft.engine import bindings  # noqa: E402
from weft.kernels import native, operations  # noqa: E402
from weft.model import attention  # noqa: E402

# A push is judged by the same examples each time; by hand every run draws new ones.
settings.register_profile("push", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("push")


def pytest_collection_finish() -> None:
    gc.freeze()  # what was collected stays to the end: no search for garbage need look it over
    gc.set_threshold(
        50_000, 20, 100
    )  # nor look so often for the little that tests leave
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-shapes",
        action="store_true",
        help="check the shapes of every call, not of a function's first in a test",
    )


NOUNS = {
    "cat": "Katze",
    "dog": "Hund",
    "bird": "Vogel",
    "fish": "Fisch",
    "horse": "Pferd",
    "mouse": "Maus",
}
VERBS = {
    "sees": "sieht",
    "hears": "hört",
    "finds": "findet",
    "likes": "mag",
    "knows": "kennt",
    "wants": "will",
}
TINY = (
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.dropout=0.1",
    "tokenizer.joint=false",
    "tokenizer.src.kind=word",
    "tokenizer.tgt.kind=word",
    "batches.tokens_per_batch=400",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)


def sentence_pairs(count: int) -> list[tuple[str, str]]:
    """The first of 216 different English and German sentences; a noun, a verb, a noun."""
    words = product(NOUNS.items(), VERBS.items(), NOUNS.items())
    made = [(f"{a} {v} {b}.", f"{x} {w} {y}.") for (a, x), (v, w), (b, y) in words]
    return made[:count]


@pytest.fixture(scope="session")
def write_pairs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """Give the path of a file with so many English-German pairs."""

    def write(count: int) -> str:
        path = tmp_path_factory.mktemp("pairs") / "pairs.en-de.tsv"
        path.write_bytes(
            "".join(f"{a}\t{b}\n" for a, b in sentence_pairs(count)).encode()
        )
        return str(path)

    return write


@pytest.fixture(scope="session")
def decomposed(
    tmp_path_factory: pytest.TempPathFactory, write_pairs: Callable[[int], str]
) -> Callable[[int], str]:
    """Give the path of a file with the same pairs in NFD: `ö` is two code points there."""

    def write(count: int) -> str:
        path = tmp_path_factory.mktemp("decomposed") / "pairs.en-de.tsv"
        text = Path(write_pairs(count)).read_text("utf-8")
        path.write_bytes(unicodedata.normalize("NFD", text).encode())
        return str(path)

    return write


@pytest.fixture
def large_from(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let texts of so many rows count as large, and be worked on in stretches of so many."""
    from weft.data import base, column, measures
    from weft.data.check import stretches as of_check
    from weft.data.clean import stretches as of_clean

    def count(rows: int, stretch: int) -> None:
        for module in (column, base):
            monkeypatch.setattr(module, "LARGE", rows)
        monkeypatch.setattr(column, "_BLOCK", max(rows // 4, 1))
        for module in (measures, of_check, of_clean):
            monkeypatch.setattr(module, "STRETCH", stretch)

    return count


@pytest.fixture(scope="session")
def tiny_settings() -> tuple[str, ...]:
    """--set values of a model that trains in a moment, the same way every time."""
    return TINY


@pytest.fixture(scope="session")
def tiny_folder(
    tmp_path_factory: pytest.TempPathFactory, write_pairs: Callable[[int], str]
) -> Path:
    """A trained model of two word tokenizers. Tests must not change it; copy it first."""
    out = tmp_path_factory.mktemp("tiny") / "model"
    settings = (
        *TINY,
        "training.max_steps=120",
        "training.eval_every=60",
        "model.d_model=32",
    )
    weft.train(out=out, train=write_pairs(216), settings=settings, quiet=True)
    return out


@pytest.fixture(scope="session")
def both_ways(
    tmp_path_factory: pytest.TempPathFactory, write_pairs: Callable[[int], str]
) -> Path:
    """A model that has learned a little of English to German and back."""
    out = tmp_path_factory.mktemp("both") / "model"
    settings = [one for one in TINY if not one.startswith("tokenizer.")]
    settings += ["data.directions=both", "training.max_steps=60", "model.d_model=32"]
    settings += ["training.eval_every=30"]
    weft.train(out=out, train=write_pairs(216), settings=settings, quiet=True)
    return out


@pytest.fixture
def save_recipe(tmp_path: Path) -> Callable[[Path], tuple[str, list[list[str]]]]:
    """Does what a card says: saves its recipe, and gives the settings of each of its commands."""

    def save(folder: Path) -> tuple[str, list[list[str]]]:
        card = (folder / "README.md").read_text("utf-8")
        _, _, section = card.partition("\n## Recipe\n")
        how, _, block = section.partition("```toml\n")
        path = tmp_path / f"{folder.name}.toml"
        path.write_text(block[: block.index("```")], "utf-8")
        lines = [line for line in how.split("\n") if line[:1].isdecimal()]
        commands = [re.findall(r"--set ([^\s`]+)", line) for line in lines]
        return str(path), commands or [[]]

    return save


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks() -> Iterator[None]:
    """Flush nothing: a tiny training would wait for the disk longer than it computes.

    Tests of flushing put their own `os.fsync` in place of this one; processes have the real one.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True)
def _checked_shapes(request: pytest.FixtureRequest) -> None:
    """Check the shapes of each function's first calls in a test."""
    shapes.limit(shapes.ALL if request.config.getoption("--all-shapes") else 10)


@pytest.fixture
def take_kernels() -> Iterator[Callable[..., None]]:
    """Takes native kernels for the rest of a test, or PyTorch's operations in their place.

    Skips the test where there are no kernels.
    """
    with ExitStack() as stack:

        def take(wanted: bool = True, products: str = "blas") -> None:
            try:
                stack.enter_context(operations.using(wanted, products))
            except native.UnavailableError as error:
                pytest.skip(f"no native kernels here: {error}")

        yield take


@pytest.fixture
def attention_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of queries whenever `weft.model.attention.attention` is called."""
    written, calls = attention.attention, []

    def counted(query: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
        calls.append(query.shape[2])
        return written(query, *others)

    monkeypatch.setattr(attention, "attention", counted)
    return calls


@pytest.fixture(scope="session")
def need_engine() -> None:
    """Skip where the engine has no library: for whole files, by `pytest.mark.usefixtures`."""
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give the folders of tiny models of every task, by name: see tools/tiny_server.py."""
    return tiny_server.train_models(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def server(
    tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tiny_server.Running]:
    """Give the server of all tests, which none of them stops."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    running = tiny_server.launch(tiny_models, log)
    yield running
    running.stop()


@pytest.fixture
def launch(
    tiny_models: dict[str, Path], tmp_path: Path
) -> Iterator[Callable[..., tiny_server.Running]]:
    """Start servers with options of the test's own: `launch("--deadline", "1")`."""
    started: list[tiny_server.Running] = []

    def start(
        *options: str, names: tuple[str, ...] = ("en-de",), slow: bool = False
    ) -> tiny_server.Running:
        log = tmp_path / f"log-{len(started)}.txt"
        running = tiny_server.launch(tiny_models, log, options, names, slow=slow)
        started.append(running)
        return started[-1]

    yield start
    for running in started:
        running.stop()


# in a browser


CHROMIUM = Path("/usr/bin/chromium")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
REFUSED = "Failed to load resource"  # how the browser's console has a refusal


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Give a browser that asks for nothing by itself; without Chromium the test is skipped.

    It is a module's, as nothing else can run an event loop in this thread while it is open.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Iterator[Callable[..., None]]:
    """Watch pages: at the end nothing may have gone wrong in them, or been asked of another host.

    Their requests are to addresses that begin with one of `own`. With `refused` the browser may
    have said that requests failed.
    """
    problems: list[str] = []

    def watching(page: Any, *own: str, refused: bool = False) -> None:
        def told(message: Any) -> None:
            if not (refused and message.text.startswith(REFUSED)):
                problems.append(message.text)

        def asked(request: Any) -> None:
            if not request.url.startswith(own):
                problems.append(request.url)

        page.on("console", told)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", asked)

    yield watching
    assert problems == []
