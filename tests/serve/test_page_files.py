"""The files of the page, and what it is told of a model's training."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from weft.run.judging.judgement import DRAFT, NOT_JUDGED, NOT_YET, USABLE
from weft.serve.files import page_files, page_routes
from weft.serve.history import history_of
from weft.serve.refusals import Refusal, UnknownModel

FIRST_LOAD = 98_000  # bytes at most, uncompressed, until a text can be translated
WHOLE = 420_000  # the pictures of an inspection included, which one view alone loads
LATER = (
    "generate", "classify", "inside", "asker", "models", "curve", "key", "terms",
    "files", "report",
)  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    models = {"runs/en de": SimpleNamespace(folder=tmp_path)}

    async def say(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, UnknownModel)
        return JSONResponse({"error": refusal.message}, refusal.status)

    routes = page_routes(SimpleNamespace(models=models))
    return TestClient(Starlette(routes=routes, exception_handlers={UnknownModel: say}))


def own_texts(ending: str) -> dict[str, str]:
    return {
        name.removeprefix("serve/"): file.content.decode()
        for name, file in page_files().items()
        if name.startswith("serve/") and name.endswith(ending)
    }


def test_every_file_has_its_type_and_is_sent_once(client: TestClient) -> None:
    types = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
    for name in page_files():
        answer = client.get(f"/page/{name}")
        assert answer.status_code == 200
        kind = types.get(name.rpartition(".")[2], "image/svg+xml")
        assert answer.headers["content-type"].startswith(kind)
        tag = answer.headers["etag"]
        again = client.get(f"/page/{name}", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get("/").text == page_files()["serve/index.html"].content.decode()


def test_nothing_else_is_sent(client: TestClient) -> None:
    for name in ("", "serve", "../__init__.py", "serve/../../config.py", "check.html"):
        assert client.get(f"/page/{name}").status_code == 404
    assert client.post("/page/base.css").status_code == 405


def test_what_a_file_names_is_there() -> None:
    files = page_files()
    for name, text in own_texts(".js").items():
        for named in re.findall(r'(?:from|import\()\s*"\.\./?([^"]+)"', text):
            place = (
                "serve/" + named.removeprefix("/")
                if "../" + named not in text
                else named
            )
            assert place in files, f"{name}: {named}"
    for named in re.findall(
        r'(?:href|src)="(page/[^"]+)"', own_texts(".html")["index.html"]
    ):
        assert named.removeprefix("page/") in files


def test_what_the_first_view_needs_is_asked_for_at_once() -> None:
    """Else one file after the other would be found to be needed."""
    scripts, front = own_texts(".js"), own_texts(".html")["index.html"]
    needed, found = ["app.js", "translate.js"], set()
    while needed:
        name = needed.pop()
        found.add(name)
        named = re.findall(r'from "\./([^"]+)"', scripts[name])
        needed += [other for other in named if other not in found]
    loaded = re.findall(r'<(?:link rel="modulepreload"|script).*serve/(\w+\.js)', front)
    assert found == set(loaded) - {"theme.js"}


def test_nothing_is_asked_of_other_servers() -> None:
    namespaces = ("http://www.w3.org/2000/svg",)
    for name, file in page_files().items():
        addresses = re.findall(
            r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+[^\s\"')]*", file.content.decode()
        )
        assert [a for a in addresses if a not in namespaces] == [], name


def test_the_page_is_small() -> None:
    sizes = {name: len(file.content) for name, file in page_files().items()}
    first = sum(
        size
        for name, size in sizes.items()
        if not name.startswith(("inspect", "sections"))
        and not any(f"serve/{view}." in name for view in LATER)
        and name not in ("serve/zh.js", "serve/said.zh.js")
    )
    assert first <= FIRST_LOAD
    assert sum(sizes.values()) <= WHOLE


def words_in(language: str) -> dict[str, str]:
    text = own_texts(".js")[f"{language}.js"]
    return dict(re.findall(r'^  "?([\w-]+)"?: "(.*)",$', text, re.M))


def test_both_languages_say_the_same_things() -> None:
    english, chinese = words_in("en"), words_in("zh")
    assert len(english) > 100
    assert english.keys() == chinese.keys()
    for key, sentence in english.items():
        values = set(re.findall(r"\{\w+\}", sentence))
        assert values == set(re.findall(r"\{\w+\}", chinese[key])), key
        alike = ("weft-version", "top-p", "comma")
        assert key in alike or re.search("[\u4e00-\u9fff]|^\\{", chinese[key]), key


def kinds_of(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    yield refusal
    for kind in refusal.__subclasses__():
        yield from kinds_of(kind)


def test_all_that_the_server_says_by_a_code_is_there_in_chinese() -> None:
    chinese = re.findall(r'^  "([^"]+)": ".+",$', own_texts(".js")["said.zh.js"], re.M)
    codes = {f"code-{kind.code}" for kind in kinds_of(Refusal)}
    codes |= {f"verdict-{one}" for one in (USABLE, DRAFT, NOT_YET, NOT_JUDGED)}
    codes |= {f"computer-{one}" for one in ("engine", "numpy", "torch")}
    assert codes - set(chinese) == set()


def test_every_sentence_is_there_and_is_said() -> None:
    texts = {
        name: text
        for name, text in own_texts(".js").items()
        if name not in ("en.js", "zh.js", "said.zh.js")
    }
    script = "".join(texts.values())
    english = words_in("en")
    said = set(re.findall(r'say\("([\w-]+)"', script))
    assert said <= english.keys()
    parts = re.findall(r"say\(`([\w-]*)\$\{\w+(?:\.\w+)*\}([\w-]*)`", script)
    for key in english.keys() - said:
        is_made = any(key.startswith(a) and key.endswith(b) for a, b in parts if a or b)
        assert is_made or f'"{key}"' in script or re.search(rf"\b{key}\b", script), key


# how a model was trained


def test_a_folder_without_a_run_says_so(client: TestClient) -> None:
    answer = client.get("/v1/history/runs/en de")
    assert answer.json() == {
        "rows": [], "best": None, "scores": [], "good_for": [], "verdict": "", "figures": {},
    }  # fmt: skip
    refused = client.get("/v1/history/other")
    assert refused.status_code == 404
    assert "there is no model other" in refused.json()["error"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    rows = [{"step": step, "loss": 9 / step, "seconds": 1} for step in range(1, 1002)]
    rows += [{"step": step, "dev_loss": 5.0, "dev_bleu": 2.0} for step in (100, 200)]
    lines = [json.dumps(row) for row in rows]
    lines += [
        "[1]",
        '{"step": 7, "loss": NaN}',
        '{"step": "x", "loss": 1}',
        '{"step": 1',
    ]
    (run / "metrics.jsonl").write_text("\n".join(lines))
    samples = [
        {"step": step, "src": f"text {number}", "translation": f"{number} at {step}"}
        for step in range(1, 21)
        for number in range(4)
    ]
    (run / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    figures = {"count": 20, "bleu": 1.5, "never": ["label"], "is": True}
    end = {"best_step": 200, "judgement": {"figures": figures}}
    (run / "verdict.json").write_text(json.dumps(end))
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "README.md").write_text(
        "# Translation\n\n## What it is good for\n\n- draft: captions\n- tests\n\n"
        "## Text\n\n- train.en\n\n## Scores on test\n\n    BLEU   27.21  x\n    chrF   49.77\n"
    )
    return tmp_path


def test_the_curves_of_a_run(trained: Path) -> None:
    found = history_of(trained, show_samples=False)
    losses = [(row["step"], row["loss"]) for row in found["rows"] if "loss" in row]
    assert 100 < len(losses) <= 200
    assert losses[-1] == (1001, 9 / 1001)
    assert all(loss == 9 / step for step, loss in losses)
    on_dev = [row for row in found["rows"] if "dev_loss" in row]
    assert on_dev == [{"step": step, "dev_loss": 5.0} for step in (100, 200)]
    assert found["best"] == 200
    assert found["scores"] == ["BLEU   27.21  x", "chrF   49.77"]
    assert found["good_for"] == ["draft: captions", "tests"]
    assert found["verdict"] == "draft"
    assert found["figures"] == {"count": 20, "bleu": 1.5}


def test_samples_are_shown_only_if_asked_for(trained: Path) -> None:
    assert "samples" not in history_of(trained, show_samples=False)
    samples = history_of(trained, show_samples=True)["samples"]
    assert [sample["text"] for sample in samples] == ["text 0", "text 1", "text 2"]
    steps = [2, 5, 8, 11, 14, 17, 20]
    assert [row["step"] for row in samples[1]["steps"]] == steps
    assert samples[1]["steps"][-1]["text"] == "1 at 20"


def test_samples_of_a_language_model_begin_with_its_prompt(trained: Path) -> None:
    row = {"step": 3, "prompt": "To be", "text": ", or not"}
    (trained / "run" / "samples.jsonl").write_text(json.dumps(row))
    samples = history_of(trained, show_samples=True)["samples"]
    assert samples == [
        {"text": "To be", "steps": [{"step": 3, "text": ", or not"}]},
    ]


@pytest.mark.parametrize("verdict", ["", "[]", "{", '{"best_step": "x"}', "null"])
def test_a_verdict_that_cannot_be_read_names_no_step(
    trained: Path, verdict: str
) -> None:
    (trained / "run" / "verdict.json").write_text(verdict)
    found = history_of(trained, show_samples=False)
    assert found["best"] is None
    assert found["figures"] == {}
