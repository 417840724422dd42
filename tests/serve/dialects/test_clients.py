"""Clients as they are published, unchanged, on a server of its own that speaks HTTP."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
import uvicorn

import weft
from served import in_thread
from tiny_server import Running
from weft.serve.dialects.suggestions import Suggestions
from weft.serve.keys import new_key

from .conftest import LABELS, StandIn, all_dialects, small_app

deep_translator = pytest.importorskip("deep_translator")
deepl = pytest.importorskip("deepl")
huggingface_hub = pytest.importorskip("huggingface_hub")
libretranslate_aio = pytest.importorskip("libretranslate_aio")
libretranslatepy = pytest.importorskip("libretranslatepy")


@pytest.fixture
def address(service: StandIn, suggestions: Suggestions) -> Iterator[str]:
    """The address of a server, without a slash at its end."""
    app = small_app(service, all_dialects(suggestions))
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    with in_thread(config) as (host, port):
        yield f"http://{host}:{port}"


def test_libretranslatepy(address: str) -> None:
    for key in (None, "a key"):
        client = libretranslatepy.LibreTranslateAPI(address, key)
        assert client.translate("schöner Tag", "de", "en") == "TAG SCHÖNER"
        assert client.detect("der Hund")[0] == {"confidence": 75.0, "language": "de"}
        assert [one["code"] for one in client.languages()] == ["en", "de", "zh"]
    with pytest.raises(HTTPError) as caught:
        client.translate("a", "de", "zh")
    with caught.value:
        assert caught.value.code == 400
        assert "Chinese (zh)" in json.load(caught.value)["error"]


def test_deep_translator(address: str) -> None:
    client = deep_translator.LibreTranslator(
        source="de", target="en", custom_url=f"{address}/", api_key="a key"
    )
    assert client.translate("schöner Tag & mehr") == "MEHR & TAG SCHÖNER"
    assert client.translate_batch(["ein Tag", "zwei"]) == ["TAG EIN", "ZWEI"]


def test_libretranslate_aio(address: str, tmp_path: Path) -> None:
    client = libretranslate_aio.LibreTranslate(address, api_key="a key")
    with client:
        one = client.translate("der Hund", "auto", "en", alternatives=3)
        assert one.translated_text == "HUND DER"
        assert one.detected_language.language == "de"
        assert one.alternatives == ["HUND DER!", "HUND DER?"]
        several = client.translate(["a b", "c d"], "en", "de")
        assert several.translated_text == ["B A", "D C"]
        assert client.translate("<p>a b</p>", "en", "de", format="html") == (
            libretranslate_aio.Translation("<p>B A</p>")
        )
        assert client.languages()[0].targets == ["de", "zh"]
        assert client.detect("der Hund")[0].confidence == 75.0
        assert client.frontend_settings().char_limit == 20_000
        assert client.suggest("a", "b", "en", "de") is True
        path = tmp_path / "letter.txt"
        path.write_text("good day\n", "utf-8")
        url = client.translate_file(path, "en", "de").translated_file_url
        assert client._client.get(url).content == b"DAY GOOD\n"
        with pytest.raises(libretranslate_aio.BadRequestError, match="fr is not"):
            client.translate("a", "en", "fr")


def test_libretranslate_aio_without_waiting(address: str) -> None:
    async def both() -> list[str]:
        async with libretranslate_aio.AsyncLibreTranslate(address) as client:
            asked = (client.translate(text, "en", "de") for text in ("a b", "c d"))
            return [one.translated_text for one in await asyncio.gather(*asked)]

    assert asyncio.run(both()) == ["B A", "D C"]


def test_deepl_python(address: str) -> None:
    client = deepl.DeepLClient("a key", server_url=address)
    try:
        one = client.translate_text("der Hund", target_lang="EN-GB")
        assert (one.text, one.detected_source_lang) == ("HUND DER", "DE")
        assert one.billed_characters == 8
        several = client.translate_text(
            ["<x>no</x> a b", "c"],
            source_lang="EN",
            target_lang="DE",
            tag_handling="xml",
            ignore_tags="x",
        )
        assert several[0].text.replace(" <x>no</x> ", " ") == "B A"
        assert several[1].text == "C"
        assert [str(one) for one in client.get_source_languages()] == ["EN", "DE"]
        targets = [str(one) for one in client.get_target_languages()]
        assert targets == ["DE", "EN-GB", "EN-US", "ZH", "ZH-HANS"]
        assert not client.get_usage().any_limit_reached
        assert client.list_glossaries() == []
        with pytest.raises(deepl.DeepLException, match="'target_lang' not supported"):
            client.translate_text("a", target_lang="FR")
    finally:
        client.close()


def test_huggingface_hub(address: str) -> None:
    client = huggingface_hub.InferenceClient(model=address, token="a key")
    assert client.translation("good day").translation_text == "DAY GOOD"
    turned = client.translation("ein Tag", src_lang="de_DE", tgt_lang="en_XX")
    assert turned.translation_text == "TAG EIN"
    labels = client.text_classification("a", model=f"{address}/models/stars")
    assert {one.label: one.score for one in labels} == LABELS
    best = client.text_classification("a", model=f"{address}/models/stars", top_k=1)
    assert [one.label for one in best] == ["good"]
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError) as caught:
        client.translation("a", src_lang="en", tgt_lang="fr")
    assert caught.value.response.status_code == 400


def test_clients_with_keys_on_real_models(
    launch: Callable[..., Running], tmp_path: Path
) -> None:
    key, line = new_key("laptop")
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(f"{line}\n")
    server = launch("--keys", str(path), names=("en-de",))
    text = "The weather is fine."
    direct = weft.load(server.models["en-de"]).translate(text)[0].text

    simple = libretranslatepy.LibreTranslateAPI(server.url, key)
    assert simple.translate(text, "en", "de") == direct
    assert simple.languages()[0]["targets"] == ["de"]
    for other, status in ((None, 400), ("wrong", 403)):
        stranger = libretranslatepy.LibreTranslateAPI(server.url, other)
        with pytest.raises(HTTPError) as caught:
            stranger.translate(text, "en", "de")
        with caught.value:
            assert caught.value.code == status

    deep = deep_translator.LibreTranslator(
        source="en", target="de", custom_url=f"{server.url}/", api_key=key
    )
    assert deep.translate(text) == direct
    with libretranslate_aio.LibreTranslate(server.url, api_key=key) as client:
        assert client.health()
        assert client.frontend_settings().key_required
        assert client.translate([text] * 2, "en", "de").translated_text == [direct] * 2
    for other, is_known in ((key, True), ("wrong", False)):
        translator = deepl.DeepLClient(other, server_url=server.url)
        try:
            if is_known:
                done = translator.translate_text(text, target_lang="DE")
                assert done.text == direct
            else:
                with pytest.raises(deepl.AuthorizationException):
                    translator.get_usage()
        finally:
            translator.close()
    inference = huggingface_hub.InferenceClient(model=server.url, token=key)
    assert inference.translation(text).translation_text == direct
    assert text not in server.said()
    assert key not in server.said()


PROGRAM = """
import translate from "translate";
translate.engine = "libre";
translate.url = process.argv[2] + "/translate";
const texts = ["schöner Tag", "a b"];
const done = [];
for (const text of texts) done.push(await translate(text, { from: "de", to: "en" }));
console.log(JSON.stringify(done));
"""


@pytest.mark.long
def test_translate_of_npm(address: str, tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        pytest.skip("npm is not installed")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask.js").write_text(PROGRAM, "utf-8")
    install = [npm, "install", "--no-audit", "--no-fund", "translate@3.1.0"]
    got = subprocess.run(
        install, cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    if got.returncode:
        pytest.skip("npm cannot get the package translate")
    done = subprocess.run(
        [node, "ask.js", address],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == ["TAG SCHÖNER", "B A"]
