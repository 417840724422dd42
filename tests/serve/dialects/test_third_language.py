"""Translations over a third language: what is asked for concerns the last model alone."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from weft.predict.prediction import Prediction
from weft.predict.settings import DecodingSettings
from weft.serve.catalogue import ServedModel
from weft.serve.glossaries import USUAL, Binding
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.refusals import InvalidRequest
from weft.serve.service import Service

from .conftest import MODELS, StandIn, predicted


class Noting(StandIn):
    """A service whose models note the settings with which they are asked."""

    translate = Service.translate

    def __init__(self) -> None:
        super().__init__(MODELS, Limits())
        self.noted: list[tuple[str, DecodingSettings]] = []

    async def _predict(
        self, model: ServedModel, texts: Sequence[str], work: Any
    ) -> list[Prediction]:
        self.noted.append((model.id, work.settings))
        return [predicted(text, work.settings) for text in texts]


def test_terms_of_a_request_are_for_one_model() -> None:
    service = Noting()
    service.catalogue.pivot = "en"

    async def asked(binding: Binding) -> None:
        caller = Caller("c", time.monotonic() + 60)
        await service.translate(["a"], "de", "zh", caller, binding=binding)

    asyncio.run(asked(USUAL))
    for binding in (Binding("law"), Binding(rows=(("a", "b"),))):
        with pytest.raises(InvalidRequest, match="a glossary is for one model"):
            asyncio.run(asked(binding))


def test_a_prefix_and_alternatives_are_for_the_last_model() -> None:
    service = Noting()
    service.catalogue.pivot = "en"
    settings = DecodingSettings(
        beam_size=4, n_best=3, prefix="P", alignments=True, length_penalty=0.5
    )

    async def ask() -> str:
        caller = Caller("c", time.monotonic() + 60)
        asked = service.translate(["a b"], "de", "zh", caller, settings=settings)
        (found,) = await asked
        return found.prediction.text

    assert asyncio.run(ask()) == "A B"
    first = DecodingSettings(beam_size=4, length_penalty=0.5)
    assert service.noted == [("de-en", first), ("en-zh", settings)]


def test_every_dialect_gives_what_two_models_can(
    ask: TestClient, service: StandIn
) -> None:
    """The words of the middle language are no client's: no word is said to come from them."""
    service.catalogue.pivot = "en"
    pair = {"source": "de", "target": "zh"}
    for path, body, read in (
        ("/translate", {"q": "a b", **pair}, lambda one: one["translatedText"]),
        (
            "/",
            {"inputs": "a b", "parameters": {"src_lang": "de", "tgt_lang": "zh"}},
            lambda one: one[0]["translation_text"],
        ),
        (
            "/v2/translate",
            {"text": ["a b"], "source_lang": "DE", "target_lang": "ZH"},
            lambda one: one["translations"][0]["text"],
        ),
        (
            "/immersive",
            {"text_list": ["a b"], "source_lang": "de", "target_lang": "zh"},
            lambda one: one["translations"][0]["text"],
        ),
    ):
        assert read(ask.post(path, json=body).json()) == "B A", path
    plain = {"input": "a b", "srcLangCode": "de", "trgLangCode": "zh"}
    reply = ask.get("/MtRestService/TranslateJson", params=plain).json()
    assert reply["SegmentedTranslation"] == ["B▁A"]
    asked = {"q": "a b", "alternatives": 2, "words": True, **pair}
    found = ask.post("/translate", json=asked).json()
    assert found["alternatives"] == ["B A!"]
    assert [word["source"] for word in found["words"]] == [[], []]


def test_a_translation_over_a_third_language_is_gone_on_with(
    ask: TestClient, service: StandIn
) -> None:
    service.catalogue.pivot = "en"
    asked = {"text": "a b", "source": "de", "target": "zh", "alternatives": 1}
    found = ask.post("/v1/complete", json={**asked, "prefix": "P"})
    assert found.status_code == 200
    answer = found.json()
    assert answer["models"] == ["de-en", "en-zh"]
    assert answer["text"] == "PA B", "the second model reads what the first wrote"
    assert [word["source"] for word in answer["words"]] == [[], []]
    assert len(answer["alternatives"]) == 1
