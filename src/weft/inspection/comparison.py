"""The comparison of two models: the better one, by how much, where, and whether it is chance.

Both answer the same rows of a text. Translations are compared by sacreBLEU's own paired bootstrap,
labels and language models by ours.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.console import stages
from weft.data.base import Corpus
from weft.data.check.finding import counted, excerpt
from weft.data.corpus import ParallelText
from weft.data.documents import Documents
from weft.data.labelled import LabelledText, named
from weft.data.signature import signature
from weft.errors import DataError, UsageError
from weft.evaluation.bootstrap import Figure, paired_bootstrap, paired_macro_f1
from weft.evaluation.metrics import paired_scores, sentence_chrf, translation_scores
from weft.folder.model_files import files_of
from weft.inspection.language_rows import losses_of_rows, rows_of
from weft.inspection.shown import Shown, lines_in_html, table_in_html
from weft.kernels.machine import Machine
from weft.predict.classifier import Classification as Answer
from weft.predict.segments import joiner
from weft.tasks.choice import load_trainable
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import NOT_CHECKED, in_words, training_hashes
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_translation import TrainableTranslation
from weft.tasks.translation import Translation, form_notes, in_forms_of

FloatArray = npt.NDArray[np.float64]

_LENGTHS = (10, 20, 30, 50)  # upper ends of groups, in words
_COUNTS = {0: "never in the training text", 4: "1 to 4 times", 49: "5 to 49 times"}
_OFTEN = "50 times or more"
ONE_SEED = "this compares two models: it says nothing of other seeds; train several"
_MOST_SHOWN = 400  # characters of a text for a person; --json has it whole
_FOR_BOTH = (
    "beam_size",
    "length_penalty",
)  # settings with an option
_AT_A_TIME = 256  # texts that are translated before they are counted


@dataclass(frozen=True)
class Group:
    """A number of rows, or of their words, and a figure of either model on them."""

    what: str
    count: int
    figure: str
    first: float
    second: float

    def cells(self) -> tuple[str, ...]:
        """Return for a person: which, how many, both figures and their difference."""
        gain = self.second - self.first
        return (
            self.what,
            f"{self.count:,}",
            f"{self.first:.2f}",
            f"{self.second:.2f}",
            f"{gain:+.2f}",
        )


@dataclass(frozen=True)
class Difference:
    """A row that the models answer differently; `gain` is how much better the second is, in
    `unit`.
    """

    where: str
    text: str
    wanted: str
    first: str
    second: str
    gain: float
    unit: str

    def lines(self) -> list[str]:
        """Return the row for a person to read, in lines."""
        row = {"text": self.text, "wanted": self.wanted}
        shown = {name: text for name, text in row.items() if text}
        shown |= {"first": self.first or "(empty)", "second": self.second or "(empty)"}
        shown = {name: excerpt(text, 0, _MOST_SHOWN) for name, text in shown.items()}
        return [
            f"{self.where}  {self.gain:+.2f} {self.unit}",
            *(f"  {name:7}{text}" for name, text in shown.items()),
        ]


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Two models on the rows of a text.

    `names` are their folders. `figures` are scores of both with the 95 % intervals of resamples,
    `groups` the same by parts of the text, `differences` the rows that they answer most
    differently.
    """

    names: tuple[str, str]
    num_rows: int
    figures: tuple[Figure, ...]
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    # of each model: the signature of the text, and what figures depend on besides model and text
    data_signatures: tuple[str, str]
    computed: tuple[Mapping[str, Any], Mapping[str, Any]]

    def lines(self) -> list[str]:
        """Return the comparison for a person to read, in lines."""
        first, second = self.names
        lines = [
            f"first: {first}",
            f"second: {second}",
            f"{self.num_rows:,} rows; each figure ± 95 % of resamples; difference: the second less the first",
            "",
        ]
        head = ("", "first", "second", "difference")
        lines += _table([head, *(figure.cells() for figure in self.figures)])
        lines += [
            f"{figure.name}: {figure.verdict} (p {figure.p_value:.3f})"
            for figure in self.figures
        ]
        lines += [ONE_SEED, "", *self._settings()]
        group_head = ("", "count", *head[1:])
        for name in dict.fromkeys(group.figure for group in self.groups):
            rows = [group.cells() for group in self.groups if group.figure == name]
            lines += ["", name, *_table([group_head, *rows])]
        if self.differences:
            lines += ["", "what differs most, and how much better the second is"]
        for difference in self.differences:
            lines += difference.lines()
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def _settings(self) -> Iterator[str]:
        """Yield the signature of each figure and of the text, and how the models computed; where
        these differ, a line for each model.
        """
        rows = [(figure.name, figure.signature) for figure in self.figures]
        rows += _for_each("text", self.data_signatures)
        first, second = (in_words(settings) for settings in self.computed)
        rows += _for_each("by", (first, second))
        width = max(len(name) for name, _ in rows)
        for name, setting in rows:
            yield f"{name:{width}}  {setting}"

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, a verdict beside each figure."""
        content = asdict(self)
        for shown, figure in zip(content["figures"], self.figures, strict=True):
            shown["verdict"] = figure.verdict
        return content

    def to_dict(self) -> dict[str, Any]:
        """Return the same as `to_json`."""
        return self.to_json()

    def _repr_html_(self) -> str:
        first, second = self.names
        lines = [f"first: {first}", f"second: {second}", f"{self.num_rows:,} rows"]
        figures = [(*figure.cells(), figure.verdict) for figure in self.figures]
        head = ("", "first", "second", "difference")
        parts = [lines_in_html(lines), table_in_html((*head, ""), figures)]
        for name in dict.fromkeys(group.figure for group in self.groups):
            rows = [group.cells() for group in self.groups if group.figure == name]
            parts.append(table_in_html((name, "count", *head[1:]), rows))
        below = [line for row in self.differences for line in row.lines()]
        below += [ONE_SEED, *self._settings(), *self.notes]
        return "".join([*parts, lines_in_html(below)])


def _for_each(name: str, settings: tuple[str, str]) -> list[tuple[str, str]]:
    """Name what both models have, or what each of them has."""
    first, second = settings
    if first == second:
        return [(name, first)]
    return [(f"{name}, first", first), (f"{name}, second", second)]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Put cells under each other: first a name, then numbers, which end where their heads end."""
    width, *widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for name, *numbers in rows:
        placed = [cell.rjust(w) for cell, w in zip(numbers, widths, strict=True)]
        lines.append("  ".join([name.ljust(width), *placed]).rstrip())
    return lines


def compare(
    first: Path,
    second: Path,
    data: Sequence[str] | Corpus,
    machine: Machine,
    *,
    train: Sequence[str] = (),
    samples: int = 1000,
    show: int = 5,
    decoding: Mapping[str, Any] = MappingProxyType({}),
    to: str | None = None,
) -> Comparison:
    """Return the models of two folders on the text in `data`; translators by rare words too, of the
    text in `train`.

    `data` names files, or is a text that was read already. `show` is how many rows that differ most
    are given in each direction. Of models that translate in several, `to` says into which language.
    `decoding` are settings of the search that take the place of each
    model's own. Raises UsageError for models of two tasks or languages, or where no row has labels
    that both know; DataError for fewer than 2 rows; FolderError and DataError as `evaluate`.
    """
    stages.enter("loading the models")
    one = _toward(load_trainable(first, machine), first, to)
    other = _toward(load_trainable(second, machine), second, to)
    if type(one) is not type(other):
        kinds = f"{first} holds a model for {one.name}, {second} one for {other.name}"
        raise UsageError(f"{kinds}; compare models of one task")
    if train and not isinstance(one, Translation):
        raise UsageError(
            "--train counts the words that a translation has; leave it out"
        )
    asked = {key: value for key, value in decoding.items() if value is not None}
    if asked and not isinstance(one, Translation):
        raise UsageError(
            f"{min(asked)}: {first} holds a model for {one.name}, which searches nothing"
        )
    if samples < 1 or show < 0:
        raise UsageError(f"samples = {samples}, show = {show}: at least 1 and 0")
    text: Any = data if isinstance(data, Corpus) else one.read(data)
    if isinstance(text, ParallelText) and text.pairs and isinstance(one, Translation):
        text = text.of(one.directions[0])
    notes = [note for note in one.doubts(text, None) if note != NOT_CHECKED]
    if isinstance(one, Classification) and isinstance(other, Classification):
        text, about_labels = _keep_shared_labels(one.labels, other.labels, text)
        notes += about_labels
    result = _compare_tasks(one, other, text, train, samples, asked)
    if files_of(first).weights_sha256() == files_of(second).weights_sha256():
        notes.append("both models have the same weights")
    for folder, task in ((first, one), (second, other)):
        trained_on = training_hashes(folder)
        overlap = task.shared_rows(text, trained_on)
        if trained_on is None:
            overlap.append(NOT_CHECKED)
        notes += [f"{folder}: {note}" for note in overlap]
    notes += result.notes
    computed = one.computed(asked), other.computed(asked)
    if note := _settings_note(*computed):
        notes.append(note)
    return Comparison(
        (str(first), str(second)),
        result.num_rows,
        tuple(result.figures),
        tuple(result.groups),
        _outermost(result.differences, show),
        tuple(dict.fromkeys(notes)),
        (_signature(one, text), _signature(other, text)),
        computed,
    )


def _toward(
    task: TrainableTask[Any, Any, Any], folder: Path, to: str | None
) -> TrainableTask[Any, Any, Any]:
    """Return a translator as it translates into a language; another model as it is."""
    if isinstance(task, TrainableTranslation):
        task = task.toward(to)
        if task.config.directions:
            known = ", ".join(dict.fromkeys(tgt for _, tgt in task.directions))
            raise UsageError(f"to: the model in {folder} writes {known}; say which")
    elif to is not None:
        raise UsageError(f"to: {folder} holds a model for {task.name}; leave it out")
    return task


def _signature(task: TrainableTask[Any, Any, Any], text: Corpus) -> str:
    return signature(text.rows(), task.tokenizers)


def _settings_note(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Say in which settings two models computed differently; "" where in none."""
    differing = [key for key in first if first[key] != second[key]]
    if not differing:
        return ""
    said = []
    for key in differing:
        said.append(f"{key.replace('_', ' ')} {first[key]} and {second[key]}")
    note = f"the models are compared with different settings: {', '.join(said)}"
    options = []
    for key in differing:
        if key in _FOR_BOTH:
            options.append(f"--{key.replace('_', '-')}")
    if options:
        note += f"; {' and '.join(options)} would set one for both"
    return note


@dataclass(frozen=True)
class _Result:
    """The figures of two models on a text and on groups of its rows, and all rows."""

    figures: Sequence[Figure]
    groups: Sequence[Group]
    differences: Sequence[Difference]
    num_rows: int
    notes: Sequence[str] = ()


def _compare_tasks(
    one: TrainableTask[Any, Any, Any],
    other: TrainableTask[Any, Any, Any],
    text: Any,
    train: Sequence[str],
    samples: int,
    decoding: Mapping[str, Any],
) -> _Result:
    """Compare two models of one task, each task in its own way."""
    if isinstance(one, Translation) and isinstance(other, Translation):
        return _compare_translators(one, other, text, train, samples, decoding)
    if isinstance(one, Classification) and isinstance(other, Classification):
        return _compare_classifiers(one, other, text, samples)
    assert isinstance(one, LanguageModelling)
    assert isinstance(other, LanguageModelling)
    return _compare_language_models(one, other, text, samples)


def _compare_translators(
    one: Translation,
    other: Translation,
    text: ParallelText,
    train: Sequence[str],
    samples: int,
    decoding: Mapping[str, Any],
) -> _Result:
    langs = [(task.config.src_lang, task.config.tgt_lang) for task in (one, other)]
    if langs[0] != langs[1]:
        first, second = (" to ".join(pair) for pair in langs)
        raise UsageError(
            f"the models translate {first} and {second}; compare models of the same languages"
        )
    _refuse_too_few(len(text))
    src_lang, lang = langs[0]
    outputs = (
        _translated(one, text.src, decoding, "first"),
        _translated(other, text.src, decoding, "second"),
    )
    stages.enter("comparing")
    writers = (one.tokenizers[1], other.tokenizers[1])
    references = in_forms_of(writers, text.tgt)
    if writers[0].form != writers[1].form:
        # what one model cannot write must not count against the other
        first_output, second_output = outputs
        outputs = (
            in_forms_of(writers, first_output),
            in_forms_of(writers, second_output),
        )
    groups = []
    for what, rows in _by_length([len(_words(line, src_lang)) for line in text.src]):
        bleu, other_bleu = (_bleu(output, references, rows, lang) for output in outputs)
        figure = "BLEU by the length of the source, in words"
        groups.append(Group(what, len(rows), figure, bleu, other_bleu))
    if train:
        trained = in_forms_of(writers, one.read(train).tgt)
        counts = Counter(_all_words(trained, lang))
        groups += _by_count(outputs, references, counts, lang)
    chrf, other_chrf = (sentence_chrf(output, references) for output in outputs)
    gains = np.subtract(other_chrf, chrf).tolist()
    differences = [
        Difference(
            text.where(i),
            text.src[i],
            references[i],
            outputs[0][i],
            outputs[1][i],
            gain,
            "chrF",
        )
        for i, gain in enumerate(gains)
    ]
    figures = paired_scores(outputs, references, lang, samples)
    notes = [*form_notes(writers, text.tgt), *_empty_notes(differences)]
    return _Result(figures, groups, differences, len(text), notes)


def _translated(
    task: Translation, texts: Sequence[str], decoding: Mapping[str, Any], which: str
) -> list[str]:
    stages.enter(f"translating {len(texts):,} pairs by the {which} model")
    predictor = task.predictor()
    stream = predictor.translate_stream(texts, chunk=_AT_A_TIME, **decoding)
    predictions = stages.counted(stream, "pairs", every=1)
    return [prediction.text for prediction in predictions]


def _compare_classifiers(
    one: Classification, other: Classification, text: LabelledText, samples: int
) -> _Result:
    _refuse_too_few(len(text))
    stages.enter(f"classifying {len(text):,} texts by both models")
    answers = one.predictor().classify(text.texts)
    other_answers = other.predictor().classify(text.texts)
    stages.enter("comparing")
    right = _right(answers, text.labels)
    other_right = _right(other_answers, text.labels)
    parts = []
    for what, rows in _by_length([len(one_text.split()) for one_text in text.texts]):
        parts.append((f"by words: {what}", rows))
    for name in one.labels:
        rows = [i for i, labels in enumerate(text.labels) if name in labels]
        parts.append((f"by label: {name}", rows))
    groups = []
    for what, rows in parts:
        if rows:
            accuracy = float(right[rows].mean())
            other_accuracy = float(other_right[rows].mean())
            group = Group(what, len(rows), "accuracy", accuracy, other_accuracy)
            groups.append(group)
    triples = zip(answers, other_answers, text.labels, strict=True)
    differences = [
        Difference(
            text.where(i),
            text.texts[i],
            ", ".join(labels),
            a.label,
            b.label,
            _sureness(b, labels) - _sureness(a, labels),
            "of probability",
        )
        for i, (a, b, labels) in enumerate(triples)
        if a.labels != b.labels
    ]
    even = np.ones(len(text))
    pair = (right, other_right)
    figures = [paired_bootstrap("accuracy", pair, even, samples=samples)]
    names = sorted({*one.labels, *other.labels})
    given = [answer.labels for answer in answers]
    other_given = [answer.labels for answer in other_answers]
    both = _marked(given, names), _marked(other_given, names)
    figures.append(paired_macro_f1(_marked(text.labels, names), both, samples=samples))
    return _Result(figures, groups, differences, len(text))


def _marked(
    rows: Sequence[Sequence[str]], names: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which of the names each row has, of shape (rows, names)."""
    places = {name: i for i, name in enumerate(names)}
    marked = np.zeros((len(rows), len(names)), bool)
    for row, labels in enumerate(rows):
        marked[row, [places[label] for label in labels]] = True
    return marked


def _right(answers: Sequence[Answer], labels: Sequence[Sequence[str]]) -> FloatArray:
    """Return 1.0 for each text that gets exactly its labels, else 0.0."""
    pairs = zip(answers, labels, strict=True)
    return np.array([set(answer.labels) == set(own) for answer, own in pairs], float)


def _keep_shared_labels(
    first: Sequence[str], second: Sequence[str], text: LabelledText
) -> tuple[LabelledText, list[str]]:
    """Return the rows whose labels both models know, and notes on the others and on the labels.

    Raises UsageError where there are none.
    """
    shared = set(first) & set(second)
    kept = [i for i, labels in enumerate(text.labels) if shared.issuperset(labels)]
    difference = _other_labels(first, second)
    if len(text) and not kept:
        why = difference or f"both know {named(sorted(shared))}"
        raise UsageError(
            f"no row has labels that both models know ({why}); score each with weft evaluate"
        )
    notes = []
    if difference:
        notes.append(f"{difference}; such an answer counts as wrong")
    if len(kept) < len(text):
        unknown = {label for labels in text.labels for label in labels} - shared
        left_out = f"{len(text) - len(kept):,} of {counted(len(text), 'rows')}"
        why = f"not both models know {named(sorted(unknown))}"
        notes.append(f"left out: {left_out} ({why})")
        text = text.select(kept)
    return text, notes


def _compare_language_models(
    one: LanguageModelling, other: LanguageModelling, text: Documents, samples: int
) -> _Result:
    rows = rows_of(text)
    _refuse_too_few(len(rows))
    stages.enter(f"scoring {len(rows):,} rows by the first model")
    nats, num_tokens = losses_of_rows(one, text, rows)
    stages.enter(f"scoring {len(rows):,} rows by the second model")
    other_nats, other_num_tokens = losses_of_rows(other, text, rows)
    stages.enter("comparing")
    bits, other_bits = nats / np.log(2), other_nats / np.log(2)
    sizes = np.array([row.num_bytes for row in rows], float)
    how: Any = {"samples": samples, "lower_is_better": True}
    figures = [paired_bootstrap("bits a byte", (bits, other_bits), sizes, **how)]
    if one.tokenizers[0].sha256 == other.tokenizers[0].sha256:
        tokens = np.stack([num_tokens, other_num_tokens])
        both = nats, other_nats
        figures.append(paired_bootstrap("nats a token", both, tokens, **how))
    groups = []
    for what, places in _by_length([len(row.text.split()) for row in rows]):
        num_bytes = sizes[places].sum()
        share = float(bits[places].sum() / num_bytes)
        other_share = float(other_bits[places].sum() / num_bytes)
        figure = "bits a byte by length, in words"
        groups.append(Group(what, len(places), figure, share, other_share))
    shares = zip((bits / sizes).tolist(), (other_bits / sizes).tolist(), strict=True)
    differences = [
        Difference(
            rows[i].where,
            rows[i].text,
            "",
            f"{a:.3f} bits a byte",
            f"{b:.3f} bits a byte",
            a - b,
            "bits a byte",
        )
        for i, (a, b) in enumerate(shares)
    ]
    return _Result(figures, groups, differences, len(rows))


def _other_labels(first: Sequence[str], second: Sequence[str]) -> str:
    """Say which labels only one of two models knows; "" where both know the same."""
    alone = {
        "first": sorted(set(first) - set(second)),
        "second": sorted(set(second) - set(first)),
    }
    said = []
    for which, labels in alone.items():
        if labels:
            said.append(f"only the {which} model knows {named(labels)}")
    return ", ".join(said)


def _empty_notes(differences: Sequence[Difference]) -> Iterator[str]:
    """Say of which model translations are empty, and how many."""
    count = f"{len(differences):,} translations"
    first = sum(not row.first.strip() for row in differences)
    second = sum(not row.second.strip() for row in differences)
    if first:
        yield f"{first:,} of {count} by the first model are empty"
    if second:
        yield f"{second:,} of {count} by the second model are empty"


def _refuse_too_few(count: int) -> None:
    if count < 2:
        raise DataError(
            f"{count} row: nothing can be drawn from fewer than 2; give more text"
        )


def _words(text: str, lang: str) -> list[str]:
    """Return the words of a text; of a language without spaces, its characters."""
    return re.findall(r"\w+" if joiner(lang) else r"\w", text.lower())


def _all_words(texts: Sequence[str], lang: str) -> Iterator[str]:
    return (word for text in texts for word in _words(text, lang))


def _by_length(lengths: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Group rows by how many words they have; groups without rows are left out."""
    low = 0
    for high in (*_LENGTHS, max([*lengths, _LENGTHS[-1] + 1])):
        rows = [i for i, length in enumerate(lengths) if low <= length <= high]
        if rows:
            yield (f"{low} to {high}" if high in _LENGTHS else f"{low} and more"), rows
        low = high + 1


def _bleu(
    hypotheses: Sequence[str], references: Sequence[str], rows: Sequence[int], lang: str
) -> float:
    chosen = [hypotheses[i] for i in rows]
    wanted = [references[i] for i in rows]
    return translation_scores(chosen, wanted, lang).bleu


def _by_count(
    texts: tuple[Sequence[str], Sequence[str]],
    references: Sequence[str],
    counts: Counter[str],
    lang: str,
) -> Iterator[Group]:
    """Compute the share of the references' words that each model has found, in percent, by how
    often training had them.
    """
    head = "words of the references that were found, in percent, by how often training had them"
    wanted = [Counter(_words(text, lang)) for text in references]
    columns = [wanted]
    for output in texts:
        written = [Counter(_words(text, lang)) for text in output]
        columns.append([a & b for a, b in zip(wanted, written, strict=True)])
    groups = {what: [0, 0, 0] for what in (*_COUNTS.values(), _OFTEN)}
    for place, column in enumerate(columns):
        for words in column:
            for word, count in words.items():
                groups[_how_often(counts[word])][place] += count
    for what, (total, first, second) in groups.items():
        if total:
            yield Group(what, total, head, 100 * first / total, 100 * second / total)


def _how_often(count: int) -> str:
    for most, what in _COUNTS.items():
        if count <= most:
            return what
    return _OFTEN


def _sureness(answer: Answer, labels: Sequence[str]) -> float:
    """Return the probability of what is right: of several labels, of the least sure one."""
    probabilities = answer.probabilities
    if len(labels) == 1:
        return probabilities[labels[0]]
    wrong = [1 - p for label, p in probabilities.items() if label not in labels]
    return min([*(probabilities[label] for label in labels), *wrong])


def _outermost(differences: Sequence[Difference], count: int) -> tuple[Difference, ...]:
    """Return the rows in which the second is better by most, then those in which the first is."""
    ranked = sorted(differences, key=lambda each: -each.gain)
    better = [each for each in ranked if each.gain > 0][:count]
    worse = [each for each in ranked[::-1] if each.gain < 0][:count]
    return (*better, *worse)
