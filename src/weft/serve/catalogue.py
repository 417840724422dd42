"""The models of the server: found by name, by task, or by a pair of languages."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from weft.data.check.finding import counted
from weft.data.detection import Detector
from weft.data.glossary import Glossary
from weft.data.languages import UNKNOWN, canonical, pair_of, primary
from weft.data.memory import Memory
from weft.documents.units import parts_for
from weft.errors import FolderError, UsageError, WeftError
from weft.folder import durable
from weft.folder.layout import is_folder_or_pack, is_pack, model_name
from weft.folder.model_files import files_of
from weft.folder.model_folder import open_model_folder
from weft.predict.language_model import LanguageModel
from weft.serve.examples import examples_for
from weft.serve.glossaries import ServedGlossary
from weft.serve.refusals import (
    NoModelFor,
    UnknownLanguage,
    UnknownModel,
    UnknownPair,
)
from weft.serve.running import Calls
from weft.serve.searching import Searcher
from weft.serve.writing import TextWriter
from weft.tasks.detecting import languages_in
from weft.tasks.opening import load_task
from weft.tasks.packed import packed_glossary, packed_memory
from weft.tasks.task import Task
from weft.tasks.translation import Translation

_LOG = logging.getLogger("weft.serve")


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model as the server has it; `src` and `tgt` are its languages, of a translator alone.

    `card` is what strangers may know of it; `created` is when its folder was written, in seconds
    since 1970. `calls` run what its batches have no rows for.
    """

    id: str
    folder: Path
    task: Task[Any, Any]
    predictor: Any
    created: int
    card: dict[str, Any]
    src: str = ""
    tgt: str = ""
    calls: Calls = field(default_factory=lambda: Calls("calls"))
    writer: TextWriter | None = None
    searcher: Searcher | None = None
    detector: Detector | None = None  # of its languages
    doubt: str = ""  # what stands against telling them apart
    said: tuple[str, str] | None = None  # its languages, by whoever serves it
    memory: Memory | None = None  # of translations, by whoever serves it
    packed: str = ""  # what its pack has with it, in words
    glossary: Glossary | None = None  # that of its pack

    @property
    def kind(self) -> str:
        """Return the name of its task, "translation" and so on."""
        return self.task.name

    def described(self) -> str:
        """Say in a line what is served: name, task, languages, what computes it, and what its pack
        has with it.
        """
        languages = f" {self.src}-{self.tgt}" if self.src else ""
        along = f", with {self.packed}" if self.packed else ""
        computed = self.task.what_computes()
        return f"{self.id}: {self.kind}{languages}, by {computed}{along}"


@dataclass(frozen=True)
class Named:
    """A folder or a pack and the name under which it is served; its languages where they are
    said.
    """

    name: str
    folder: Path
    languages: tuple[str, str] | None = None


class Catalogue:
    """The models in the order of the command line: of two that serve a pair, the first is taken."""

    def __init__(self, models: Sequence[ServedModel], pivot: str = "") -> None:
        """Set the models; their ids differ.

        Pairs that no model serves are translated over the language `pivot`. Raises UsageError where
        no model has it.
        """
        self._take({model.id: model for model in models})
        self.pivot = self._pivot(pivot) if pivot else ""

    def model(self, name: str | None, kind: str) -> ServedModel:
        """Return the model of a name, or the first of a kind.

        Raises UnknownModel, and NoModelFor where there is none of the kind.
        """
        if name is not None:
            found = self.models.get(name)
            if found is None or found.kind != kind:
                raise UnknownModel(name, kind if found else "")
            return found
        for model in self.of(kind):
            return model
        raise NoModelFor(kind, (model.kind for model in self.models.values()))

    def of(self, kind: str) -> Iterator[ServedModel]:
        """Yield the models of a kind."""
        return (model for model in self.models.values() if model.kind == kind)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the language pairs, each once."""
        return list(self._by_pair)

    def languages(self) -> list[str]:
        """Return every language that a translator reads or writes, each once."""
        return list(self._languages)

    def language(
        self, code: str, param: str, among: Sequence[str] | None = None
    ) -> str:
        """Return a language of the models as they write it: `en` for `EN-gb`.

        Raises UnknownLanguage where no model has it.
        """
        known = self.languages() if among is None else among
        asked = canonical(code)
        if asked in known:
            return str(asked)
        for other in known:
            if asked and primary(other) == primary(asked):
                return other
        raise UnknownLanguage(code, param)

    def route(self, src: str, tgt: str, pivot: bool = False) -> tuple[ServedModel, ...]:
        """Return the model that translates a pair, else two over a third language.

        That is the catalogue's own, if it has one, or with `pivot` any. Raises UnknownPair where
        there are none.
        """
        by_pair = self._by_pair
        if direct := by_pair.get((src, tgt)):
            return (direct,)
        ways = self.languages() if pivot else [self.pivot]
        for between in ways:
            if between == UNKNOWN:  # two models' unknown languages need not be the same
                continue
            first = by_pair.get((src, between))
            second = by_pair.get((between, tgt))
            if first and second:
                return (first, second)
        raise UnknownPair(src, tgt)

    def is_same(self, src: str, tgt: str) -> bool:
        """Return whether a text is in the target's language already, and no model rewrites it: of
        two unknown languages nobody can say that they are the same.
        """
        return src == tgt != UNKNOWN and (src, tgt) not in self._by_pair

    def targets(self, src: str, pivot: bool = False) -> list[str]:
        """Return the languages into which a language is translated."""
        return [other for other in self.languages() if self._has(src, other, pivot)]

    def sources(self, tgt: str, pivot: bool = False) -> list[str]:
        """Return the languages from which a language is translated."""
        return [other for other in self.languages() if self._has(other, tgt, pivot)]

    def replace(self, model: ServedModel) -> None:
        """Put a model in the place of that of its name; what runs on the other ends there."""
        self._take({**self.models, model.id: model})

    def changed(self) -> list[ServedModel]:
        """Return the models whose folders hold another one by now."""
        return [
            model
            for model in self.models.values()
            if when_written(model.folder) not in (0, model.created)
        ]

    def away(self) -> dict[str, str]:
        """Return the models whose folders are gone, or not whole: why, by their names."""
        return {
            model.id: why_away(model.folder)
            for model in self.models.values()
            if not when_written(model.folder)
        }

    def packed_glossaries(self) -> Iterator[ServedGlossary]:
        """Yield the glossaries that packs have with them, by the names of their models."""
        for model in self.of("translation"):
            if model.glossary is not None:
                own = {(model.src, model.tgt): model.glossary}
                yield ServedGlossary(
                    model.id, model.folder, own, model.created, model.id
                )

    def _take(self, models: dict[str, ServedModel]) -> None:
        """Serve these models, and note what every request asks of them."""
        self.models = models
        self._by_pair: dict[tuple[str, str], ServedModel] = {}
        for model in self.of("translation"):
            self._by_pair.setdefault((model.src, model.tgt), model)
        self._languages = dict.fromkeys(chain.from_iterable(self._by_pair))
        self.detector = self._joined_detector()

    def _pivot(self, code: str) -> str:
        try:
            return self.language(code, "pivot")
        except UnknownLanguage:
            raise UsageError(
                f"--pivot {code}: no translator has this language; they have {', '.join(self.languages())}"
            ) from None

    def _joined_detector(self) -> Detector:
        """Return what tells the languages of all translators apart."""
        own = (model.detector for model in self.of("translation"))
        return Detector.joined(detector for detector in own if detector is not None)

    def _has(self, src: str, tgt: str, pivot: bool) -> bool:
        try:
            return not self.is_same(src, tgt) and bool(self.route(src, tgt, pivot))
        except UnknownPair:
            return False


def named(words: Sequence[str]) -> list[Named]:
    """Read the folders and packs of a command line: `FOLDER`, `NAME=FOLDER` or `NAME:en-de=FOLDER`.

    Raises UsageError where two have one name, or languages cannot be read.
    """
    found: dict[str, Named] = {}
    for word in words:
        languages = None
        name, equals, rest = word.partition("=")
        if not equals or is_folder_or_pack(word):
            folder = Path(word)
            name = model_name(folder)
        else:
            folder = Path(rest)
            name, languages = _name_and_languages(name, folder)
        if name in found:
            raise UsageError(
                f"{word}: another model is named {name} already; give it a name by NAME={folder}"
            )
        found[name] = Named(name, folder, languages)
    return list(found.values())


def of_directions(asked: Named) -> list[Named]:
    """Return a model of several directions once for each, under the name `NAME-en-de`; any other,
    and one whose languages are said, as it is.
    """
    config: Any = open_model_folder(asked.folder).config
    directions = getattr(config, "directions", ())
    if asked.languages or not directions:
        return [asked]
    return [
        Named(f"{asked.name}-{src}-{tgt}", asked.folder, (src, tgt))
        for src, tgt in directions
    ]


def _name_and_languages(word: str, folder: Path) -> tuple[str, tuple[str, str] | None]:
    """Read `NAME` or `NAME:en-de`; without a name the folder's own."""
    name, colon, pair = word.partition(":")
    if not colon:
        return word, None
    languages = pair_of(pair)
    if languages is None:
        raise UsageError(
            f"{word}={folder}: {pair!r} names no two languages; write them as in {name}:en-de={folder}"
        )
    return name or model_name(folder), languages


def open_model(asked: Named, max_beam: int = 8) -> ServedModel:
    """Open a folder for serving, with beams of so many hypotheses. Raises as `weft.load` does."""
    created = when_written(asked.folder)
    task = load_task(asked.folder)
    if isinstance(task, Translation) and task.config.directions and asked.languages:
        src_lang, tgt_lang = asked.languages
        task = task.toward(tgt_lang, src_lang)
    config: Any = task.config
    is_translator = task.name == "translation"
    predictor = task.predictor()
    is_writer = isinstance(predictor, LanguageModel)
    known = languages_in(asked.folder) if is_translator else None
    src, tgt = _languages(asked, config, is_translator)
    doubt = known.note() if known else ""
    if UNKNOWN in (src, tgt):
        doubt = f"{asked.name}: its languages are not known; say them, as in {asked.name}:en-de={asked.folder}"
    elif asked.languages:
        doubt = ""
    glossary = packed_glossary(asked.folder) if is_translator else None
    opened = ServedModel(
        id=asked.name,
        folder=asked.folder,
        task=task,
        predictor=predictor,
        created=created,
        card=_card(task, asked.folder),
        src=src,
        tgt=tgt,
        writer=TextWriter(predictor) if is_writer else None,
        searcher=Searcher(predictor, most_hypotheses=max_beam)
        if is_translator
        else None,
        detector=Detector.of(known.profiles) if known else None,
        doubt=doubt,
        said=asked.languages,
        glossary=glossary,
    )
    return _with_packed_memory(opened)


def _with_packed_memory(model: ServedModel) -> ServedModel:
    """Return a model with the memory of its pack, and with what the pack has in words."""
    memory = None
    if model.searcher is not None:
        forms = tuple(model.predictor.kept_forms)
        memory = packed_memory(model.folder, parts_for(forms))
    parts = []
    if model.glossary is not None:
        terms = counted(len(model.glossary.entries), "terms")
        parts.append(f"its glossary ({terms})")
    if memory is not None:
        memory.prepare()
        parts.append(f"its memory ({counted(memory.num_whole, 'units')})")
    remembered = remembering(model, memory)
    return replace(remembered, memory=None, packed=" and ".join(parts))


def _languages(asked: Named, config: Any, is_translator: bool) -> tuple[str, str]:
    """Return the languages of a translator: its own, and those that are said where it has none.

    Raises UsageError where it has others, or is no translator.
    """
    said = asked.languages
    if not is_translator:
        if said:
            raise UsageError(
                f"{asked.name}: this model does not translate; give {asked.name}={asked.folder}"
            )
        return "", ""
    own = (config.src_lang, config.tgt_lang)
    if said is None:
        return own
    for code, other in zip(own, said, strict=True):
        if code not in (UNKNOWN, other):
            raise UsageError(
                f"{asked.name}: this model translates {own[0]} to {own[1]}, not {said[0]} to {said[1]}"
            )
    return said


def reopened(model: ServedModel, max_beam: int) -> ServedModel | None:
    """Open the folder of a model anew; None, with a line in the log, where that fails."""
    try:
        opened = open_model(Named(model.id, model.folder, model.said), max_beam)
        return remembering(opened, model.memory)
    except WeftError as error:
        _LOG.warning("%s goes on as it was: %s", model.id, error)
        return None


def remembering(model: ServedModel, memory: Memory | None) -> ServedModel:
    """Return a translator with a memory; any other model, and None, change nothing."""
    if memory is None or model.searcher is None:
        return model
    translator = model.predictor.with_memory(memory)
    searcher = replace(model.searcher, translator=translator)
    return replace(model, predictor=translator, searcher=searcher, memory=memory)


def _card(task: Task[Any, Any], folder: Path) -> dict[str, Any]:
    """Return what strangers may know of a model."""
    portrait = task.portrait()
    config: Any = task.config
    card: dict[str, Any] = {
        "title": portrait.title,
        "shape": portrait.shape,
        "sizes": dict(portrait.sizes),
        "computed_by": task.what_computes(),
        "computer": task.computer(),
        "weights": config.weights,
        "weft_version": config.weft_version,
    }
    if hasattr(config, "lang"):
        card["language"] = config.lang
    if task.labels:
        card["labels"] = list(task.labels)
    if task.name == "translation" and (known := examples_for(folder, config.src_lang)):
        card["examples"] = known
    return card


def why_away(folder: Path) -> str:
    """Say why a folder or a pack is not read."""
    if is_pack(folder):
        return f"{folder} is no pack that can be read, so it is not whole"
    if not folder.is_dir():
        return f"{folder} is gone"
    return f"{folder} has no {durable.MANIFEST} that can be read, so it is not whole"


def when_written(folder: Path) -> int:
    """Return when a folder or a pack was written, in seconds since 1970; 0 where it is not
    whole.
    """
    try:
        return int(files_of(folder).written())
    except (FolderError, OSError):
        return 0
