"""The models of a server, and their folders."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.data.glossary import Entry, Glossary
from weft.data.memory import Memory, Units
from weft.errors import UsageError
from weft.folder import durable
from weft.serve.catalogue import (
    Catalogue,
    Named,
    ServedModel,
    named,
    of_directions,
    open_model,
    remembering,
    reopened,
    when_written,
    why_away,
)
from weft.serve.glossaries import NONE, USUAL, Binding, open_glossaries
from weft.serve.history import history_of
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.service import Service
from weft.ship.pack import pack


def test_a_folder_that_is_moved_away_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "plays"
    folder.mkdir()
    (folder / durable.MANIFEST).write_text("{}")
    task: Any = SimpleNamespace(name="language-modelling")
    created = when_written(folder)
    model = ServedModel("plays", folder, task, None, created, {})
    service = Service(Catalogue([model]), Pool(1, 9), Limits())

    def look(times: int) -> int:
        """Return how often it was told until now."""
        for _ in range(times):
            assert asyncio.run(service.renew()) == []
        return sum(f"plays: {folder} is gone" in line for line in caplog.messages)

    with caplog.at_level(logging.WARNING, "weft.serve"):
        assert look(4) == 0
        folder.rename(tmp_path / "elsewhere")
        assert look(2) == 0  # it may be written anew
        assert look(8) == 1
        (tmp_path / "elsewhere").rename(folder)
        assert look(3) == 1
        folder.rename(tmp_path / "elsewhere")
        assert look(3) == 2
        (tmp_path / "elsewhere").rename(folder)
        assert look(1) == 2
        (folder / durable.MANIFEST).unlink()
        (folder / "config.json").write_text("junk")
        assert look(3) == 2
    service.pool.stop()
    assert f"plays: {folder} has no manifest.json that can be read" in caplog.text


def test_a_translator_that_does_not_know_its_languages_is_told_them(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_bytes(Path(write_pairs(60)).read_bytes())
    folder = tmp_path / "mine"
    settings = (*tiny_settings, "training.max_steps=2")
    more: dict[str, Any] = {"allow_bad_data": True, "quiet": True}
    weft.train(out=folder, train=str(pairs), settings=settings, **more)

    unsaid = open_model(Named("mine", folder))
    assert (unsaid.src, unsaid.tgt) == ("und", "und")
    assert f"mine:en-de={folder}" in unsaid.doubt
    catalogue = Catalogue([unsaid])
    assert catalogue.targets("und") == catalogue.sources("und") == ["und"]
    assert not catalogue.is_same("und", "und")

    (asked,) = named([f"mine:en-de={folder}"])
    model = open_model(asked)
    assert (model.src, model.tgt, model.doubt) == ("en", "de", "")
    again = reopened(model, 8)
    assert again is not None
    assert (again.src, again.tgt) == ("en", "de")


def test_languages_before_a_folder_are_read() -> None:
    for word, name, languages in (
        ("runs/a", "a", None),
        ("b=runs/a", "b", None),
        ("b:en-de=runs/a", "b", ("en", "de")),
        (":zh-Hans-en=runs/a", "a", ("zh-Hans", "en")),
        ("b:en-pt-BR=runs/a", "b", ("en", "pt-BR")),
        ("b:quc-es=runs/a", "b", ("quc", "es")),
    ):
        (found,) = named([word])
        assert found == Named(name, Path("runs/a"), languages)
    for wrong in ("b:en=runs/a", "b:=runs/a", "b:en-pt-br=runs/a", "b:en de=runs/a"):
        with pytest.raises(UsageError, match="names no two languages"):
            named([wrong])


def test_a_third_language_is_never_an_unknown_one() -> None:
    task: Any = SimpleNamespace(name="translation")
    pairs = (("en", "und"), ("und", "de"))
    models = [
        ServedModel(src + tgt, Path(), task, None, 0, {}, src, tgt)
        for src, tgt in pairs
    ]
    catalogue = Catalogue(models)
    assert catalogue.targets("en", pivot=True) == ["und"]
    assert catalogue.sources("de", pivot=True) == ["und"]


def test_a_pack_is_served_and_opened_anew_when_it_is_another(
    tiny_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tiny.weft"
    pack(tiny_folder, path)
    (asked,) = named([str(path)])
    assert (asked.name, named([f"other={path}"])[0].name) == ("tiny", "other")
    model = open_model(asked)
    assert (model.src, model.tgt, model.created) == ("en", "de", when_written(path))
    assert model.card == open_model(Named("tiny", tiny_folder)).card
    assert history_of(path, True)["scores"] == history_of(tiny_folder, True)["scores"]
    service = Service(Catalogue([model]), Pool(1, 9), Limits())
    assert asyncio.run(service.renew()) == []
    pack(tiny_folder, path, replaces=True)
    os.utime(path, (5, 5))
    assert asyncio.run(service.renew()) == ["tiny"]
    assert service.catalogue.models["tiny"].created == 5
    with caplog.at_level(logging.WARNING, "weft.serve"):
        with durable.replacing(path) as temporary:
            temporary.write_bytes(b"half of it")
        for _ in range(9):
            assert asyncio.run(service.renew()) == []
        said = [line for line in caplog.messages if "no pack that can be read" in line]
        assert len(said) == 1
        path.unlink()
        assert why_away(path) == f"{path} is gone"
    assert service.catalogue.models["tiny"].predictor.translate("cat sees dog.")
    service.pool.stop()


def test_what_a_pack_has_with_it_is_served_and_goes_with_it(
    tiny_folder: Path, tmp_path: Path
) -> None:
    """Until another glossary or memory is given, or asked for; a new pack brings its own."""
    path = tmp_path / "tiny.weft"
    term = Entry(("cat",), ("Kater",))
    units = Units(["m"])
    units.add("fish wants mouse.", "Zwölf.", 0, 1)
    pack(tiny_folder, path, Glossary((term,)), units)
    model = open_model(named([str(path)])[0])
    assert "with its glossary (1 term) and its memory (1 unit)" in model.described()
    service = Service(Catalogue([model]), Pool(1, 9), Limits())
    served = service.glossaries
    (own,) = served.served.values()
    assert (own.name, list(own.by_pair)) == ("tiny", [("en", "de")])

    def usual(model: str = "tiny") -> tuple[str, ...] | None:
        found = service.glossaries.find(USUAL, ("en", "de"), model)
        return found.entries[0].targets if found else None

    assert usual() == ("Kater",)
    assert usual("another model of the pair") is None
    assert served.find(Binding("tiny"), ("en", "de")) is not None
    assert served.find(NONE, ("en", "de"), "tiny") is None
    (found,) = model.predictor.translate(["fish wants mouse."])
    assert found.text == "Zwölf."
    other = Memory(units, "de")
    assert remembering(model, other).memory is other
    pack(tiny_folder, path, Glossary((Entry(("cat",), ("Kätzchen",)),)), replaces=True)
    os.utime(path, (5, 5))
    assert asyncio.run(service.renew()) == ["tiny"]
    assert usual() == ("Kätzchen",)
    (found,) = service.catalogue.models["tiny"].predictor.translate(
        ["fish wants mouse."]
    )
    assert found.text != "Zwölf."
    terms = tmp_path / "given.tsv"
    terms.write_text("cat\tMieze\n", "utf-8")
    given = open_glossaries([str(terms)], [("en", "de")], lambda line: None)
    service.pool.stop()
    again = Service(service.catalogue, Pool(1, 9), Limits(), given)
    assert [*again.glossaries.served] == ["tiny", "given"]
    first = again.glossaries.find(USUAL, ("en", "de"), "tiny")
    assert first is not None
    assert first.entries[0].targets == ("Mieze",)
    again.pool.stop()


def test_a_model_of_several_directions_is_served_once_for_each(
    both_ways: Path,
) -> None:
    (asked,) = named([f"mine={both_ways}"])
    models = [open_model(one) for one in of_directions(asked)]
    assert [model.id for model in models] == ["mine-en-de", "mine-de-en"]
    catalogue = Catalogue(models)
    assert catalogue.pairs() == [("en", "de"), ("de", "en")]
    (model,) = catalogue.route("de", "en")
    text = "Katze sieht Hund."
    wanted = weft.load(both_ways).translate(text, to="en")
    assert model.predictor.translate(text) == wanted
    again = reopened(model, 8)
    assert again is not None
    assert (again.src, again.tgt) == ("de", "en")
    (only,) = named([f"mine:de-en={both_ways}"])
    assert of_directions(only) == [only]
