"""The works of the verbs that take --on: what a worker opens, and answers lines by, as the verb
itself does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.answer_lines import classified_line, scored_line, translated_line
from weft.cli.answers import note_on
from weft.cli.doubts import doubts_of
from weft.cli.models import Translators, opened
from weft.data.train_text import split_at_comma
from weft.folder.durable import sha256_of
from weft.folder.model_files import files_of

if TYPE_CHECKING:
    from weft.cluster.work import Answers, Sums, Work
    from weft.predict.settings import DecodingSettings

# of what an output depends on: what the manifest has elsewhere, or what changes nothing
_ELSEWHERE = {
    "version",
    "model",
    "input",
    "names of glossaries",
    "names of memories",
}


def translating(
    models: Translators, settings: "DecodingSettings", as_json: bool
) -> "Work":
    """Return the work of translating lines. Raises as the models do that are opened for it."""
    from weft.cluster.work import Work

    found = models.open()
    facts = models.facts("", settings, found)
    facts["json"] = as_json
    for name in _ELSEWHERE:
        facts.pop(name, None)
    models = _everywhere(models)
    if found.model.engine is not None:
        # the precision that "auto" is here, on every machine
        models = replace(models, precision=found.task.machine.precision)
    files = list(models.glossaries)
    for data in models.memories:
        files += split_at_comma(data)
    return Work(
        "translate",
        _digests([models.folder, *models.others]),
        {path: sha256_of(path) for path in files},
        facts,
        partial(open_translating, models, settings, as_json),
    )


def open_translating(
    models: Translators, settings: "DecodingSettings", as_json: bool
) -> "Answers":
    """Open translators; return what translates lines by them."""
    found = models.open()
    config = found.task.config
    n_best = settings.n_best

    def answers(lines: Sequence[str], first: int) -> "Iterator[tuple[str, Sums]]":
        predictions = found.model.translate_stream(lines, settings)
        for number, prediction in enumerate(predictions, start=first):
            line = lines[number - first]
            doubts = doubts_of(prediction, line, config, settings)
            text = translated_line(number, prediction, n_best, as_json)
            yield text, {"doubtful": bool(doubts)}

    return answers


def classifying(folder: Path, kernels: str, all_labels: bool, as_json: bool) -> "Work":
    """Return the work of classifying lines."""
    settings = {"all": all_labels, "json": as_json}
    arguments = (kernels, all_labels, as_json)
    return _of_one_model("classify", folder, settings, open_classifying, arguments)


def open_classifying(
    folder: Path, kernels: str, all_labels: bool, as_json: bool
) -> "Answers":
    """Open a classifier; return what classifies lines by it."""
    model = opened(folder, kernels=kernels).predictor()

    def answers(lines: Sequence[str], first: int) -> "Iterator[tuple[str, Sums]]":
        found = model.classify_stream(lines)
        for answer, line in zip(found, lines, strict=True):
            text = classified_line(answer, all_labels, as_json)
            yield text, {"doubtful": bool(note_on(answer, line))}

    return answers


def scoring(folder: Path, kernels: str, as_json: bool) -> "Work":
    """Return the work of scoring lines."""
    settings = {"json": as_json}
    arguments = (kernels, as_json)
    return _of_one_model("score", folder, settings, open_scoring, arguments)


def open_scoring(folder: Path, kernels: str, as_json: bool) -> "Answers":
    """Open a language model; return what scores lines by it."""
    model = opened(folder, kernels=kernels).predictor()

    def answers(lines: Sequence[str], first: int) -> "Iterator[tuple[str, Sums]]":
        for line in lines:
            yield scored_line(model, line, as_json)

    return answers


def _of_one_model(
    verb: str,
    folder: Path,
    settings: dict[str, Any],
    opener: Callable[..., "Answers"],
    arguments: Iterable[Any],
) -> "Work":
    """Return the work of a verb that reads one model and no other file."""
    from weft.cluster.work import Work

    whole = folder.resolve()
    opening = partial(opener, whole, *arguments)
    return Work(verb, _digests([whole]), {}, settings, opening)


def _digests(folders: Iterable[Path]) -> dict[Path, str]:
    return {folder: files_of(folder).digest() for folder in folders}


def _everywhere(models: Translators) -> Translators:
    """Return the same with whole paths, for processes in other folders."""
    memories = []
    for data in models.memories:
        whole = [str(path.resolve()) for path in split_at_comma(data)]
        memories.append(",".join(whole))
    return replace(
        models,
        folder=models.folder.resolve(),
        others=[other.resolve() for other in models.others],
        glossaries=tuple(path.resolve() for path in models.glossaries),
        memories=tuple(memories),
    )
