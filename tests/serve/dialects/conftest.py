"""The dialects before a stand-in for the models, whose answers can be worked out by hand.

A translation is the text's words in reverse order, in capitals: of "a b" it is "B A". Word n of it
(from 0) has the probability 1 / (n + 2). Other translations end in "!" and "?".
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.predict.classifier import Classification
from weft.predict.completion import Completion, NextWord
from weft.predict.prediction import Alternative, Prediction
from weft.predict.settings import DecodingSettings
from weft.predict.words import SourceWord, WordReport
from weft.serve.bodies import close_files
from weft.serve.catalogue import Catalogue, ServedModel
from weft.serve.dialects.classification import classify, predict
from weft.serve.dialects.deepl import deepl
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.huggingface import huggingface
from weft.serve.dialects.immersive import immersive
from weft.serve.dialects.libretranslate import libretranslate
from weft.serve.dialects.opuscat import opuscat
from weft.serve.dialects.own import own
from weft.serve.dialects.suggestions import Suggestions
from weft.serve.glossaries import USUAL, Binding, Glossaries
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.refusals import Refusal, UnknownModel
from weft.serve.service import Service, Translated
from weft.serve.visits import current_visit

GERMAN = {"der", "die", "das", "ein", "eine", "hund", "und", "guten", "tag"}
LABELS = {"good": 0.7, "fair": 0.2, "bad": 0.1}


class StandIn(Service):
    """A service whose models are made up. It notes what it was asked for."""

    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        self.catalogue = Catalogue(models)
        self.know("en", "de", "zh")
        self.limits = limits
        self.glossaries = Glossaries()
        self.bindings: list[Binding] = []  # of the translations
        self.num_tokens = 0  # that each translation reads
        self.asked: list[tuple[list[str], str, str, DecodingSettings]] = []

    def know(self, *codes: str) -> None:
        """Set of which languages something is known."""
        known: Any = SimpleNamespace(languages=codes)
        self.catalogue.detector = known

    async def translate(
        self,
        texts: Sequence[str],
        src: str | None,
        tgt: str,
        caller: Caller,
        *,
        settings: DecodingSettings | None = None,
        model: str | None = None,
        pivot: bool = False,
        binding: Binding = USUAL,
    ) -> list[Translated]:
        assert src is not None
        assert len(texts) <= self.limits.max_texts
        settings = settings or DecodingSettings()
        if model is None:
            names = tuple(one.id for one in self.catalogue.route(src, tgt, pivot))
        else:
            names = (self.catalogue.model(model, "translation").id,)
        self.asked.append((list(texts), src, tgt, settings))
        self.bindings.append(binding)
        if (visit := current_visit()) is not None:
            visit.note(read=self.num_tokens)
        return [
            Translated(predicted(text, settings), src, None, names) for text in texts
        ]

    def detect(
        self, text: str, among: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        known = self.catalogue.languages() if among is None else among
        words = text.lower().replace("<", " ").replace(">", " ").split()
        best = "de" if GERMAN.intersection(words) else "en"
        if best not in self.catalogue.detector.languages:
            return [("und", 0.0)]
        if best not in known:
            return [(known[0], 0.0)] if known else [("und", 0.0)]
        sure = 0.75 if len(words) > 1 else 0.25
        others = [code for code in known if code != best]
        return [(best, sure), *((code, 0.0) for code in others)]

    async def classify(
        self, model: str | None, texts: Sequence[str], caller: Caller
    ) -> tuple[list[Any], int]:
        self.catalogue.model(model, "classification")
        answer = Classification("good", ["good"], 0.7, dict(LABELS), False, 1)
        return [answer for _ in texts], sum(len(text.split()) for text in texts)

    async def complete(
        self,
        text: str,
        prefix: str,
        model: ServedModel,
        caller: Caller,
        *,
        alternatives: int = 0,
        settings: DecodingSettings | None = None,
        binding: Binding = USUAL,
    ) -> Completion:
        self.bindings.append(binding)
        prediction = predicted(text, settings or DecodingSettings())
        others = [NextWord("X", 0.5, f"{prefix} X")] * alternatives
        return Completion(f"{prefix}{prediction.text}", prediction, others)

    async def inspect(
        self,
        model: str,
        text: str,
        caller: Caller,
        is_packed: bool = False,
        parts: Sequence[str] = (),
    ) -> dict[str, Any]:
        if model not in self.catalogue.models:
            raise UnknownModel(model)
        return {"format": "weft-inspection"}


def reversed_words(text: str) -> str:
    return " ".join(map(written, reversed(text.split())))


def written(word: str) -> str:
    """A word in capitals; a placeholder that is read is written as it is."""
    return word if word.startswith("{") else word.upper()


def predicted(text: str, settings: DecodingSettings) -> Prediction:
    """What the stand-in answers to one segment."""
    best = reversed_words(text)
    others = [best, best, f"{best}!", f"{best}?", f"{best}?!", f"{best}!!"]
    return Prediction(
        text=best,
        score=-1.0,
        segments=1,
        n_best=[Alternative(one, -1.0, False) for one in others[: settings.n_best]],
        token_log_probs=[-0.5],
        unknown_words=[word for word in text.split() if word == "qwx"],
        short=text.startswith("short"),
        words=reported(text) if settings.alignments else None,
    )


def reported(text: str) -> list[WordReport]:
    """The words of a translation; each comes from one word of the text."""
    places = [match.span() for match in re.finditer(r"\S+", text)]
    sources = [
        SourceWord(number, text[start:end], start, end)
        for number, (start, end) in enumerate(places)
    ]
    found: list[WordReport] = []
    end = -1
    for number, source in enumerate(reversed(sources)):
        start = end + 1
        word = written(source.text)
        end = start + len(word)
        log_prob = -math.log(number + 2)
        found.append(WordReport(word, start, end, log_prob, [source]))
    return found


def model(
    name: str,
    kind: str,
    src: str = "",
    tgt: str = "",
    forms: Sequence[str] = (),
    **more: Any,
) -> ServedModel:
    predictor = SimpleNamespace(
        kept_forms=tuple(forms),
        decoding=SimpleNamespace(beam_size=4),
        can_align=True,
        multi_label=False,
    )
    task: Any = SimpleNamespace(name=kind)
    return ServedModel(
        name, Path(name), task, predictor, 1_700_000_000, {}, src, tgt, **more
    )


MODELS = (
    model("en-de", "translation", "en", "de"),
    model("de-en", "translation", "de", "en"),
    model("en-zh", "translation", "en", "zh"),
    model("law", "translation", "en", "de"),
    model("stars", "classification"),
)


def all_dialects(suggestions: Suggestions | None = None) -> list[Dialect]:
    return [
        libretranslate(suggestions),
        deepl(),
        opuscat(),
        huggingface(),
        immersive(),
        classify(),
        predict(),
        own(),
    ]


def small_app(service: Service, dialects: Sequence[Dialect]) -> ASGIApp:
    """The routes of dialects, and refusals in the shape of the one that owns the path."""

    async def refuse(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refusal)
        path = request.url.path
        owners = [dialect for dialect in dialects if dialect.owns(path)]
        assert len(owners) == 1, path
        return owners[0].refuse(refusal)

    app = FastAPI(openapi_url=None, exception_handlers={Refusal: refuse})
    for dialect in dialects:
        app.include_router(dialect.routes(service))

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            close_files(scope)

    return closing


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def service(limits: Limits) -> StandIn:
    return StandIn(MODELS, limits)


@pytest.fixture
def suggestions(tmp_path: Path) -> Suggestions:
    return Suggestions(tmp_path / "corrections.tsv")


@pytest.fixture
def ask(service: StandIn, suggestions: Suggestions) -> Iterator[TestClient]:
    """A client of the dialects, on the stand-in."""
    with TestClient(small_app(service, all_dialects(suggestions))) as client:
        yield client
