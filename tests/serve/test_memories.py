"""weft serve --memory: what a memory has is taken in every dialect, and told where it is asked
for.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from starlette.testclient import TestClient

from tiny_server import Running
from weft import DEMO
from weft.errors import DataError, UsageError
from weft.serve.app import build_app
from weft.serve.catalogue import Catalogue, Named, open_model, remembering, reopened
from weft.serve.dialects.own import own
from weft.serve.limits import Limits
from weft.serve.memories import open_memories
from weft.serve.pool import Pool
from weft.serve.service import Service

TEA = "Anna drinks tea in the library."
BOOK = "The teacher bought a book."
BOTH = {"source": "en", "target": "zh"}
TMX = """<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de"><seg>Eins</seg></tuv></tu>
</body></tmx>
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.tsv"
    path.write_text(f"{TEA}\t喝茶。\n{BOOK}\t买书。\n", "utf-8")
    return path


def sizes(words: list[str], *pairs: tuple[str, str]) -> dict[tuple[str, str], int]:
    said: list[str] = []
    found = open_memories(words, {pair: [()] for pair in pairs}, said.append)
    assert len(said) >= len(found)
    return {pair: len(memory) for pair, memory in found.items()}


def test_files_are_for_the_languages_that_they_say(old: Path, tmp_path: Path) -> None:
    tmx = tmp_path / "a.tmx"
    tmx.write_text(TMX, "utf-8")
    named = tmp_path / "pairs.en-de.tsv"
    named.write_text("One\tEins\n", "utf-8")
    en_de, de_en, en_zh = ("en", "de"), ("de", "en"), ("en", "zh-Hans")
    assert sizes([]) == {}
    assert sizes([str(tmx)], en_de, de_en, en_zh) == {en_de: 1, de_en: 1}
    assert sizes([str(named), str(tmx)], en_de, en_zh) == {en_de: 2}
    assert sizes([str(old)], en_zh) == {en_zh: 2}
    assert sizes([f"en-zh={old}"], en_de, en_zh) == {en_zh: 2}


def test_the_start_says_how_many_units_a_file_has(old: Path) -> None:
    with old.open("a", encoding="utf-8") as file:
        file.write("Press {0} now.\t按{0}。\n")
    said: list[str] = []
    pair = ("en", "zh")
    found = open_memories([str(old)], {pair: [()]}, said.append)
    assert said == [f"memory en-zh: 3 units of {old}"]
    # one of them also without its placeholder
    assert (found[pair].num_whole, len(found[pair])) == (3, 4)


def test_what_is_for_nobody_or_for_who_knows_whom_is_refused(
    old: Path, tmp_path: Path
) -> None:
    tmx = tmp_path / "a.tmx"
    tmx.write_text(TMX, "utf-8")
    for word, said in (
        (str(old), f"say which languages it is for, as in en-de={old}"),
        (str(tmx), "it is for none of the languages here, which are en-zh, zh-en"),
        (f"fr-en={old}", "it is for none of the languages here"),
        (f"xx={old}", "'xx' names no two languages"),
    ):
        with pytest.raises(UsageError, match=f"^--memory .*{said}"):
            sizes([word], ("en", "zh"), ("zh", "en"))
    with pytest.raises(DataError, match="no such file"):
        sizes([str(tmp_path / "none.tmx")], ("en", "zh"))


def test_a_model_that_is_opened_anew_keeps_its_memory(
    old: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    plain = open_model(Named("demo", folder))
    assert remembering(plain, None) is plain
    (memory,) = open_memories(
        [str(old)], {("en", "zh"): [()]}, lambda line: None
    ).values()
    model = remembering(plain, memory)
    again = reopened(model, 8)
    assert again is not None
    for one in (model, again):
        assert one.searcher is not None
        assert one.searcher.translator is one.predictor
        assert one.predictor.translate(TEA)[0].text == "喝茶。"
    assert plain.predictor.translate(TEA)[0].text != "喝茶。"


def test_units_are_read_as_any_model_of_a_pair_reads(tmp_path: Path) -> None:
    old = tmp_path / "old.tsv"
    old.write_text("Use *the* {name} now\tNimm *das* {name} jetzt\n", "utf-8")
    pair = ("en", "de")
    forms: list[tuple[str, ...]] = [(), ("{a",), ("{a",)]
    memory = open_memories([str(old)], {pair: forms}, lambda line: None)[pair]
    for text in ("Use the now", "Use the {name} now"):
        (found,) = memory.in_files(text)
        assert found == ("Use *the* {name} now", "Nimm *das* {name} jetzt")


def test_an_exact_unit_is_the_whole_answer_with_its_markup(tmp_path: Path) -> None:
    old = tmp_path / "old.tsv"
    source = "Anna drinks <b>tea</b> in {0} the library."
    target = "{0} 喝 <b>茶</b> 安娜。"
    old.write_text(f"{source}\t{target}\n", "utf-8")
    pair = ("en", "zh")
    memory = open_memories([str(old)], {pair: [()]}, lambda line: None)[pair]
    model = remembering(open_model(Named("demo", DEMO)), memory)
    pool = Pool(1)
    app = build_app(Service(Catalogue([model]), pool, Limits()), [own()])
    with TestClient(app, base_url="http://localhost") as client:
        body = {"text": source, "words": True, **BOTH}
        (found,) = client.post("/v1/translate", json=body).json()["translations"]
    pool.stop()
    assert found["text"] == target
    for word in found["words"]:
        assert target[word["start"] : word["end"]] == word["text"]


def test_every_dialect_takes_units_and_one_tells_of_them(
    launch: Callable[..., Running], old: Path, tmp_path: Path
) -> None:
    server = launch("--demo", "--memory", str(old), names=())
    text = f"<p>Anna drinks <b>tea</b> in the library.</p><p>{BOOK[:-5]}bicycle.</p>"
    asked = {"q": text, "format": "html", **BOTH}
    translated = server.asked("/translate", asked)["translatedText"]
    first = translated.split("</p>")[0]
    assert first.replace("<b>", "").replace("</b>", "") == "<p>喝茶。"
    assert "<b>" in first
    other = "The teacher bought a bicycle."
    own = {"texts": [TEA, other, f"{TEA} {other}"], **BOTH}
    (taken, near, both) = server.asked("/v1/translate", {**own, "memory": True})[
        "translations"
    ]
    assert (taken["text"], taken["score"]) == ("喝茶。", 0)
    assert taken["memory"] == [
        {
            "source": TEA,
            "target": "喝茶。",
            "score": 1.0,
            "kind": "exact",
            "taken": True,
            "where": "old.tsv:1",
        }
    ]
    (unit,) = near["memory"]
    assert (unit["source"], unit["taken"]) == (BOOK, False)
    shares = [found["from_memory"] for found in (taken, near, both)]
    assert shares == ["all", "nothing", "part"]
    assert str(tmp_path) not in json.dumps(taken)
    (quiet, *_) = server.asked("/v1/translate", own)["translations"]
    assert quiet["text"] == "喝茶。"
    assert "memory" not in quiet
    po = f'msgid ""\nmsgstr ""\n\nmsgid "{TEA}"\nmsgstr ""\n'.encode()
    assert 'msgstr "喝茶。"'.encode() in translated_file(server, "app.po", po)


def translated_file(server: Running, name: str, content: bytes) -> bytes:
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    parts = [f"--x\r\n{head}\r\n\r\n".encode() + content + b"\r\n"]
    for key, value in BOTH.items():
        field = f'Content-Disposition: form-data; name="{key}"'
        parts.append(f"--x\r\n{field}\r\n\r\n{value}\r\n".encode())
    body = b"".join(parts) + b"--x--\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    request = Request(f"{server.url}/translate_file", body, kind)
    with urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
    try:
        with urlopen(found["translatedFileUrl"]) as file:
            written: bytes = file.read()
    except HTTPError as error:
        raise AssertionError(error.read()) from None
    return written
