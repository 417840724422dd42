"""Translations over a third language: what is asked for concerns the last model alone."""

import asyncio
import time
from collections.abc import Sequence

from weft.predict.prediction import Prediction
from weft.predict.settings import DecodingSettings
from weft.serve.catalogue import ServedModel
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.service import Service

from .conftest import MODELS, StandIn, predicted


class Noting(StandIn):
    """A service whose models note the settings with which they are asked."""

    translate = Service.translate

    def __init__(self) -> None:
        super().__init__(MODELS, Limits())
        self.noted: list[tuple[str, DecodingSettings]] = []

    async def _predict(
        self,
        model: ServedModel,
        texts: Sequence[str],
        caller: Caller,
        settings: DecodingSettings,
    ) -> list[Prediction]:
        self.noted.append((model.id, settings))
        return [predicted(text, settings) for text in texts]


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
