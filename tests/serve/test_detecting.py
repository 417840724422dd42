"""The languages of texts, as the server tells them by all models that it serves."""

import asyncio
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from weft.data.detection import Detector
from weft.data.profile import learn_profiles
from weft.serve.catalogue import Catalogue, Named, ServedModel, open_model
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.refusals import Undetected
from weft.serve.service import Service
from weft.serve.starting import opened

OLD = Path(__file__).parents[1] / "folder" / "old" / "translation"


@pytest.fixture
def served(tiny_folder: Path) -> ServedModel:
    return open_model(Named("en-de", tiny_folder))


def service_of(*models: ServedModel) -> Service:
    return Service(Catalogue(models), Pool(1, 9), Limits())


def caller() -> Caller:
    return Caller("someone", time.monotonic() + 60)


def into_french(model: ServedModel) -> ServedModel:
    """Return a model that says it translates German to French, and knows both languages."""
    text = ["le chat voit la souris", "un chien veut le cheval", "cette maison"] * 9
    assert model.detector is not None
    german = {"de": model.detector.profiles["de"]}
    detector = Detector.of(german | learn_profiles([("fr", text)]))
    return replace(model, id="de-fr", src="de", tgt="fr", detector=detector)


def test_the_language_of_a_text_is_told_by_all_models(served: ServedModel) -> None:
    service = service_of(served, into_french(served))
    texts = ("the cat", "der Hund", "le chat")
    found = [service.detect(text) for text in texts]
    assert [guesses[0][0] for guesses in found] == ["en", "de", "fr"]
    assert all(guesses[0][1] > 0.9 for guesses in found)
    assert all(len(guesses) == 3 for guesses in found)


def test_of_a_folder_of_an_earlier_version_the_start_says_what_is_doubtful(
    tiny_folder: Path,
) -> None:
    said: list[str] = []
    opened(Named("old", OLD), 8, said.append)
    assert len(said) == 2
    assert said[1].startswith(f"{OLD}: was trained by an earlier version")
    said.clear()
    opened(Named("new", tiny_folder), 8, said.append)
    assert len(said) == 1


def test_only_the_languages_that_are_asked_for_are_told(served: ServedModel) -> None:
    service = service_of(served, into_french(served))
    found = service.detect("der Hund", ["en", "fr"])
    assert {code for code, _ in found} == {"en", "fr"}
    assert sum(share for _, share in found) <= 1
    assert service.detect("der Hund", ["de"])[0][1] > 0.9


def test_what_says_nothing_is_in_any_language_without_confidence(
    served: ServedModel,
) -> None:
    assert service_of(served).detect("12") == [("de", 0.0), ("en", 0.0)]
    without = replace(served, detector=None)
    nothing = [("und", 0.0), ("en", 0.0), ("de", 0.0)]
    assert service_of(without).detect("der Hund") == nothing
    assert service_of().detect("der Hund") == [("und", 0.0)]


def test_a_source_of_which_nothing_is_known_is_never_taken_among_several(
    served: ServedModel,
) -> None:
    without = replace(served, detector=None)
    alone = service_of(without)
    assert alone.source_of("the cat", ["en"], ["de"]) == ("en", 0.0)
    french = replace(into_french(served), id="fr-de", src="fr", tgt="de")
    blind = service_of(without, replace(french, detector=None))
    assert blind.source_of("le chat", ["en", "fr"], ["de"]) == ("und", 0.0)
    half = service_of(without, french)
    assert half.source_of("кот видит дом", ["en", "fr"], ["de"]) == ("und", 0.0)
    assert half.source_of("le chat", ["en", "fr"], ["de"])[0] == "fr"
    assert half.source_of("der Hund", ["en", "fr"], ["de"])[0] == "de"

    with pytest.raises(Undetected, match="give the source"):
        asyncio.run(blind.translate(["le chat"], None, "de", caller()))


def test_a_model_in_the_place_of_another_brings_its_own_languages(
    served: ServedModel,
) -> None:
    service = service_of(replace(served, detector=None))
    service.catalogue.replace(served)
    assert service.detect("Katze")[0] > ("de", 0.9)


def test_a_text_without_a_source_is_translated_from_its_own_language(
    served: ServedModel, tmp_path: Path, tiny_folder: Path
) -> None:
    """Two models write German; which one is taken is a matter of the text."""
    other = Path(shutil.copytree(tiny_folder, tmp_path / "fr-de"))
    french = into_french(open_model(Named("fr-de", other)))
    french = replace(french, id="fr-de", src="fr", tgt="de")
    service = service_of(served, french)

    async def translated() -> list[tuple[str, float | None]]:
        texts = ["the cat sees", "le chat voit"]
        found = await service.translate(texts, None, "de", caller())
        return [(one.src, one.confidence) for one in found]

    first, second = asyncio.run(translated())
    assert (first[0], second[0]) == ("en", "fr")
    assert min(first[1] or 0, second[1] or 0) > 0.9
