"""The models that a verb opens, and what makes an output depend on them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from weft.cli.named_files import refuse_missing
from weft.console.wording import remark
from weft.errors import FolderError, UsageError
from weft.folder.durable import sha256_of
from weft.folder.layout import newer_state
from weft.folder.model_files import files_of, refuse_other_task

if TYPE_CHECKING:
    from weft.data.glossary import Entry, Glossary
    from weft.data.memory import Memory, PartsOf, Units
    from weft.predict.settings import DecodingSettings
    from weft.predict.translator import Translator
    from weft.tasks.task import Task
    from weft.tasks.translation import Translation


@dataclass(frozen=True)
class Translators:
    """The translator in a folder, together with those in `others`, as the options ask for them.

    What a pack has with it is used where no file of that kind is given, and it is not left out.
    """

    folder: Path
    others: list[Path]
    precision: str
    kernels: str
    glossaries: tuple[Path, ...] = ()
    memories: tuple[str, ...] = ()
    leaves_glossary: bool = False
    leaves_memory: bool = False
    tag: str | None = None
    to: str | None = None

    def open(self, of_document: bool = False) -> "Opened":
        """Load them; the units of the memory also as segments of documents are.

        Raises UsageError where they cannot translate together.
        """
        from weft.tasks.translation import Translation

        task = opened(self.folder, self.precision, self.kernels)
        assert isinstance(task, Translation)
        task = toward(task, self.to)
        model = together(task, self.others, self.precision, self.kernels)
        refuse_idle(self.precision, model.engine)
        model = tagged(model, self.tag)
        if self.glossaries:
            model = model.with_glossary(glossary_for(model, self.glossaries))
        parts_of = None
        if of_document:
            from weft.documents.units import parts_for

            parts_of = parts_for(model.kept_forms)
        if self.memories:
            model = model.with_memory(memory_for(model, self.memories, parts_of))
        return self._with_packed(Opened(task, model), parts_of)

    def _with_packed(self, found: "Opened", parts_of: "PartsOf | None") -> "Opened":
        """Return the translator with what its pack has with it, and say so."""
        from weft.data.check.finding import counted
        from weft.tasks.packed import packed_glossary, packed_memory

        model = found.model
        used = {}
        if not (self.glossaries or self.leaves_glossary):
            glossary = packed_glossary(self.folder)
            if glossary is not None:
                model = model.with_glossary(glossary)
                used["glossary"] = counted(len(glossary.entries), "terms")
        if not (self.memories or self.leaves_memory):
            memory = packed_memory(self.folder, parts_of)
            if memory is not None:
                memory.prepare()
                model = model.with_memory(memory)
                used["memory"] = counted(memory.num_whole, "units")
        if used:
            said = [f"its {name} ({size})" for name, size in used.items()]
            remark(f"weft: {self.folder}: translates with {' and '.join(said)}")
        return Opened(found.task, model, tuple(used))

    def refuse_missing(self) -> None:
        """Raise UsageError where a file of terms or of units is missing, or two memories are named
        as aligned files are, or an option takes back another one.
        """
        refuse_both("glossary", self.glossaries, self.leaves_glossary)
        refuse_both("memory", self.memories, self.leaves_memory)
        refuse_missing_files(self.glossaries, self.memories)

    def facts(
        self, sha256: str, settings: "DecodingSettings", found: "Opened"
    ) -> dict[str, Any]:
        """Return what the translations of an input depend on: the models and the settings."""
        return {
            **facts_of(self.folder, sha256),
            **asdict(settings),
            "names of glossaries": [str(path) for path in self.glossaries],
            "names of memories": [str(path) for path in _files_of(self.memories)],
            "glossaries": found.own("glossary")
            or list(map(sha256_of, self.glossaries)),
            "memories": found.own("memory")
            or list(map(sha256_of, _files_of(self.memories))),
            "engine": found.model.engine is not None,
            "ensemble": [files_of(other).digest() for other in self.others],
            "precision": found.task.machine.precision,
            "tag": found.model.tag,
            "to": found.model.tgt_lang,
        }


@dataclass(frozen=True)
class Opened:
    """A loaded translator, and the task that it is in use; `packed` says what of its pack it has:
    a glossary, a memory.
    """

    task: "Translation"
    model: "Translator"
    packed: tuple[str, ...] = ()

    def own(self, name: str) -> list[str]:
        """Return what stands for the hash of what the pack has, which the model's own tells; empty
        where it is not used.
        """
        return ["the pack's"] if name in self.packed else []


def refuse_both(name: str, files: Sequence[object], leaves: bool) -> None:
    """Raise UsageError where files of a kind are given, and none of that kind is to be used."""
    if files and leaves:
        raise UsageError(f"--{name} and --no-{name} exclude each other")


def refuse_missing_files(glossaries: Sequence[Path], memories: Sequence[str]) -> None:
    """Raise UsageError where a file of terms or of units is missing, or two memories are named as
    aligned files are.
    """
    refuse_missing_terms(glossaries)
    for data in memories:
        paths = _files_of([data])
        for path in paths:
            refuse_missing(path, "--memory")
        if len(paths) > 1 and any(map(_holds_pairs_alone, paths)):
            each = " ".join(f"--memory {path}" for path in paths)
            raise UsageError(f"--memory {data}: these are two memories; give {each}")


def refuse_missing_terms(glossaries: Iterable[Path]) -> None:
    """Raise UsageError where the file of a glossary is missing."""
    for path in glossaries:
        refuse_missing(path, "--glossary")


class Languages(Protocol):
    """The languages of a translator, of whom or of whose config they are asked."""

    @property
    def src_lang(self) -> str: ...
    @property
    def tgt_lang(self) -> str: ...


def glossary_for(model: Languages, paths: Sequence[Path]) -> "Glossary":
    """Read glossaries for a translator's languages as one, and say what is doubtful."""
    from weft.data.glossary import Glossary, read_glossary
    from weft.data.glossary_check import alternatives

    entries: list[Entry] = []
    for path in paths:
        glossary = read_glossary(path, model.src_lang, model.tgt_lang)
        for note in glossary.notes:
            remark(f"weft: {path}: {note}")
        entries += glossary.entries
    together = Glossary(tuple(entries))
    doubled = list(alternatives(together))
    if doubled:
        rest = len(doubled) - 1
        terms = "term" if rest == 1 else "terms"
        more = f"; {rest:,} more such {terms}" if rest else ""
        remark(f"weft: glossary: {doubled[0]}{more}")
    return together


def memory_for(
    model: "Translator", data: Sequence[str], parts_of: "PartsOf | None" = None
) -> "Memory":
    """Read the memory in files for a translator's languages, and say what is doubtful."""
    from weft.console import stages
    from weft.data.memory import read_memory

    with stages.showing(""):
        memory = read_memory(data, model.src_lang, model.tgt_lang, parts_of)
        memory.prepare()
    for note in (*memory.notes, *memory.doubts):
        remark(f"weft: {note}")
    return memory


def units_for(model: Languages, data: Sequence[str]) -> "Units":
    """Read the units of a memory for a translator's languages, and say what is doubtful."""
    from weft.console import stages
    from weft.data.memory import Memory, read_units

    with stages.showing(""):
        units, language, notes = read_units(data, model.src_lang, model.tgt_lang)
        doubts = Memory(units, language).doubts
    for note in (*notes, *doubts):
        remark(f"weft: {note}")
    return units


def _files_of(memories: Sequence[str]) -> list[Path]:
    from weft.data.corpus import split_at_comma

    return [path for data in memories for path in split_at_comma(data)]


def _holds_pairs_alone(path: Path) -> bool:
    """Return whether a file's name says pairs and nothing else, as .tmx does."""
    from weft.data.formats.filetype import type_of_name

    kind = type_of_name(path)
    return kind is not None and kind.task == "translation"


def facts_of(folder: Path, sha256: str) -> dict[str, Any]:
    """Return what an output depends on, apart from the settings: `sha256` is that of the input."""
    from weft.folder.model_folder import VERSION

    return {"version": VERSION, "model": files_of(folder).digest(), "input": sha256}


def together(
    task: "Translation", folders: list[Path], precision: str, kernels: str
) -> "Translator":
    """Return the model, as an ensemble with those in the folders."""
    from weft.tasks.opening import load_predictor

    for folder in folders:
        refuse_other_task(folder, task.name)
    model = task.predictor()
    others = [load_predictor(folder, precision, kernels) for folder in folders]
    if not model.directions:
        others = [
            other.toward(model.tgt_lang, model.src_lang) if other.directions else other
            for other in others
        ]
    for folder, other in zip(folders, others, strict=True):
        if reason := model.difference(other):
            raise UsageError(f"--ensemble {folder}: {reason}")
    return model.ensemble(*others) if others else model


def opened(
    folder: Path, precision: str = "float32", kernels: str = "auto"
) -> "Task[Any, Any]":
    """Load the model in a folder, and say so where it has no engine on this machine."""
    from weft.tasks.opening import load_task

    with naming_options(["precision", "kernels"]):
        task = load_task(folder, precision, kernels, is_command=True)
    if reason := task.why_no_engine():
        remark(f"weft: without native kernels ({reason}) this takes longer")
    with suppress(FolderError):  # the model itself is sound
        if newer := newer_state(folder):
            remark(f"weft: note: {newer}")
    return task


def toward(task: "Translation", to: str | None) -> "Translation":
    """Return the model as it translates into a language.

    Raises UsageError where it does not, or writes several and none is said.
    """
    try:
        task = task.toward(to)
    except UsageError as error:
        raise UsageError(f"--to {error}".replace("--to to ", "--to ")) from None
    if task.config.directions:
        known = ", ".join(dict.fromkeys(tgt for _, tgt in task.directions))
        raise UsageError(f"the model writes {known}; say which by --to")
    return task


def refuse_unsaid_language(folder: Path, to: str | None) -> None:
    """Raise UsageError for a model of several directions that is not told the language to write."""
    from weft.folder.model_folder import TranslationConfig, config_in

    config = None if to is not None else config_in(files_of(folder))
    if isinstance(config, TranslationConfig) and config.directions:
        known = ", ".join(dict.fromkeys(tgt for _, tgt in config.directions))
        raise UsageError(f"the model in {folder} writes {known}; say which by --to")


def tagged(model: "Translator", tag: str | None) -> "Translator":
    """Return the translator as it translates text with a tag. Raises UsageError."""
    try:
        return model.with_tag(tag)
    except UsageError as error:
        raise UsageError(f"--tag: {error}") from None


def refuse_idle(precision: str, engine: object | None) -> None:
    """Raise UsageError for a precision without effect: without an engine, all is float32."""
    if engine is None and precision not in ("float32", "auto"):
        raise UsageError(
            f"--precision {precision}: this model has no engine on this machine; leave it out"
        )


@contextmanager
def naming_options(names: Iterable[str]) -> Iterator[None]:
    """Replace the names of settings in a UsageError by those of options.

    A name of one word is replaced at the beginning of the message only.
    """
    try:
        yield
    except UsageError as error:
        pattern = "|".join(_name_in_message(name) for name in names)
        message = re.sub(pattern, _as_option, str(error))
        raise UsageError(message) from None


def _name_in_message(name: str) -> str:
    return rf"\b{name}\b" if "_" in name else rf"^{name}\b"


def _as_option(name: re.Match[str]) -> str:
    return "--" + name[0].replace("_", "-")
