"""Folders for transformers.js: certified by onnxruntime, and at work in Node and in a browser."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import random_models
import weft
from shrunk import sizes_shrunk
from weft.errors import FolderError, UsageError
from weft.predict.rows import most_tokens
from weft.recipes.file import load_recipe
from weft.ship.exporting import Export, export
from weft.ship.source import open_source
from weft.ship.target import Asked
from weft.ship.transformersjs import target as js_target
from weft.ship.transformersjs.target import TransformersJs

SCRIPT = Path(__file__).parents[2] / "tools" / "transformersjs.mjs"
TASKS = {
    "en-de-modern tokenizer.joint=false": "translation",
    "lm-modern": "language-modelling",
    "classify-fast": "classification",
}
# Trained for a moment, as random weights write bytes that are no text; a classifier writes nothing.
WORDS = "two vocabularies of words"
MODELS = (WORDS, "en-de-modern", "lm-modern", "classify-fast", "classify-modern")
NUM_TEXTS = 20


def exported(recipe: str, place: Path, **asked: Any) -> Export:
    name, *settings = recipe.split(" ")
    folder = random_models.write_folder(name, place / "model", *settings)
    task = TASKS.get(recipe, "language-modelling")
    dev = random_models.write_dev(task, place)
    return export(folder, TransformersJs(), place / "out", [dev], Asked(**asked))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("recipe", TASKS)
def test_a_folder_of_each_task_is_the_same_model(recipe: str, tmp_path: Path) -> None:
    made = exported(recipe, tmp_path)
    assert made.certificate is not None
    checks = [check.name for check in made.certificate.checks]
    is_classifier = recipe == "classify-fast"
    searches = [] if is_classifier else ["greedy"]
    assert checks == ["weights", "ids", "logits", *searches, "use"]
    out = tmp_path / "out"
    assert made.notes == (js_target.NOT_RUN,)
    assert js_target.NOT_RUN in (out / "README.md").read_text("utf-8")
    config = read_json(out / "config.json")
    assert config["transformers.js_config"] == {"dtype": "fp32"}
    assert (out / "generation_config.json").exists() != is_classifier
    names = {path.name for path in (out / "onnx").iterdir()}
    if recipe.startswith("en-de"):
        assert names == {"encoder_model.onnx", "decoder_model_merged.onnx"}
        assert "no beam search" in made.certificate.unchecked["beam"]
    else:
        assert names == {"model.onnx"}


def test_a_language_models_text_begins_as_weft_begins_it(tmp_path: Path) -> None:
    exported("lm-modern", tmp_path, is_certified=False)
    config = read_json(tmp_path / "out" / "tokenizer_config.json")
    assert config["add_bos_token"] is True
    assert config["split_special_tokens"] is True


def test_n_grams_have_no_cache_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"n-grams and matches .*model.ngrams = 1 and"):
        exported("tiny-shakespeare", tmp_path)
    made = exported("tiny-shakespeare model.ngrams=1 model.match_lengths=[]", tmp_path)
    assert made.certificate is not None


def test_an_id_that_could_be_written_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library leaves nothing out: a graph that bans nothing is not the same model there."""
    real = js_target.write_graphs

    def write(source: Any, paths: Mapping[str, Path], bans: bool) -> Any:
        assert bans
        return real(source, paths, bans=False)

    monkeypatch.setattr(js_target, "write_graphs", write)
    with pytest.raises(FolderError, match="an id that Weft never writes"):
        exported("lm-modern", tmp_path)


# The library itself
# --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Path:
    """Give the folder node_modules that has the library; without it the test is skipped."""
    folder = Path(os.environ.get("WEFT_TRANSFORMERS_JS", "missing"))
    if not (folder / "@huggingface" / "transformers").is_dir():
        pytest.skip("WEFT_TRANSFORMERS_JS names no node_modules with transformers.js")
    return folder


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
) -> Callable[[str], Path]:
    """Train a model when it is first asked for; give the folder that has it and its export."""
    places: dict[str, Path] = {}

    def give(name: str) -> Path:
        if name in places:
            return places[name]
        place = places[name] = tmp_path_factory.mktemp("models")
        model = place / "model"
        if name == WORDS:
            shutil.copytree(tiny_folder, model)
        elif name.startswith("classify"):
            random_models.write_folder(name, model)
        else:
            train(name, write_pairs(216), model)
        asked = Asked(is_certified=False)
        export(model, TransformersJs(), place / "out", asked=asked)
        return place

    return give


def train(recipe: str, pairs: str, out: Path) -> None:
    """Train a tiny model on the pairs, or their first side, until it writes words."""
    settings = {
        **sizes_shrunk(load_recipe(recipe)),
        "training.max_steps": 150,
        "training.eval_every": 150,
        "training.learning_rate": 0.01,
    }
    text = pairs
    if recipe.startswith("lm"):
        text = str(out.with_name("text.txt"))
        sides = [line.split("\t")[0] for line in Path(pairs).read_text().split("\n")]
        Path(text).write_text(
            "\n\n".join(" ".join(sides[i : i + 3]) for i in range(214)), "utf-8"
        )
    changed = [f"{key}={value}" for key, value in settings.items()]
    weft.train(recipe=recipe, train=text, out=out, settings=changed, quiet=True)


CUTS = (3, 8, 15, 40)


def asked_of(folder: Path, pairs: str) -> tuple[list[tuple[str, int]], list[Any]]:
    """Texts, each with its limit on new tokens; and what Weft answers."""
    task: Any = open_source(folder).task
    predictor = task.predictor()
    if task.name == "classification":
        lines = [text[:cut] for text in random_models.TEXTS[:5] for cut in CUTS]
        answers = predictor.classify(lines)
        return [(line, 0) for line in lines], [answer.labels for answer in answers]
    sides = [line.split("\t")[0] for line in Path(pairs).read_text().split("\n")]
    lines = sides[::10][:NUM_TEXTS]
    if task.name == "translation":
        sizes = [len(ids) + 1 for ids in task.tokenizers[0].encode_batch(lines)]
        config = task.config
        limits = [most_tokens(config.decoding, n, config.model.max_len) for n in sizes]
        found = predictor.translate(lines, beam_size=1)
        return list(zip(lines, limits, strict=True)), [one.text for one in found]
    begun = [line[: 3 + number] for number, line in enumerate(lines)]
    return [(line, 12) for line in begun], [
        predictor.generate(line, temperature=0.0, max_new_tokens=12).text
        for line in begun
    ]


def without_ends(answers: list[Any]) -> list[Any]:
    """Answers as Weft gives them: a translation has no space at its ends."""
    return [answer.strip() if isinstance(answer, str) else answer for answer in answers]


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_node_gives_what_weft_gives(
    name: str,
    modules: Path,
    trained: Callable[[str], Path],
    write_pairs: Callable[[int], str],
) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    place = trained(name)
    asked, wanted = asked_of(place / "model", write_pairs(216))
    done = subprocess.run(
        [node, str(SCRIPT), str(modules), str(place / "out")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert len(wanted) == NUM_TEXTS
    assert without_ends(json.loads(done.stdout)) == without_ends(wanted)
    assert len({str(answer) for answer in wanted}) > 1


PAGE = """<!doctype html>
<link rel="icon" href="data:,">
<script type="importmap">{"imports": {
  "@huggingface/transformers": "/modules/@huggingface/transformers/dist/transformers.web.min.js",
  "onnxruntime-web/webgpu": "/modules/onnxruntime-web/dist/ort.webgpu.min.mjs",
  "onnxruntime-common": "/modules/onnxruntime-common/dist/esm/index.js"
}}</script>
<script type="module">
  import * as library from "@huggingface/transformers";
  import { answers } from "/tools/transformersjs.mjs";
  const path = "/modules/onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify";
  library.env.useBrowserCache = false;
  library.env.useWasmCache = false;
  Object.assign(library.env.backends.onnx.wasm, {
    numThreads: 1, wasmPaths: { mjs: path + ".mjs", wasm: path + ".wasm" },
  });
  window.ask = (folder, asked) => answers(library, folder, asked);
</script>
"""


@pytest.fixture
def site(modules: Path) -> Iterator[Callable[[Path], str]]:
    """Serve the library, the script and a folder on this machine alone."""
    roots = {"modules": modules, "tools": SCRIPT.parent}

    class Files(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            room, _, rest = path.lstrip("/").partition("/")
            return str(roots[room] / rest)

        def do_GET(self) -> None:
            if self.path != "/":
                super().do_GET()
                return
            content = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def served(place: Path) -> str:
        roots["models"] = place
        return f"http://127.0.0.1:{server.server_port}/"

    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_a_browser_gives_what_weft_gives(
    name: str,
    site: Callable[[Path], str],
    browser: Any,
    trained: Callable[[str], Path],
    write_pairs: Callable[[int], str],
) -> None:
    place = trained(name)
    address = site(place)
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_function("window.ask !== undefined")
    asked, wanted = asked_of(place / "model", write_pairs(216))
    found = page.evaluate("(asked) => ask('/models/out', asked)", asked)
    page.close()
    assert without_ends(found) == without_ends(wanted)
    assert all(url.startswith((address, "blob:", "data:")) for url in requests)
