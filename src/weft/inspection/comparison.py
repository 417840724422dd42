"""Which of two models is better, by how much, where, and whether it is chance: `weft compare`.

Both answer the same rows of a text. Translations are compared by sacreBLEU's own paired bootstrap,
labels and language models by ours.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.console import stages
from weft.data.check.rows import check_against
from weft.data.corpus import ParallelText
from weft.data.documents import Documents
from weft.data.labelled import LabelledText, named
from weft.errors import DataError, UsageError
from weft.evaluation.bootstrap import Figure, paired_bootstrap
from weft.evaluation.metrics import paired_scores, sentence_chrf, translation_scores
from weft.kernels.machine import Machine
from weft.predict.classifier import Classification as Answer
from weft.predict.language_model import TextScore
from weft.predict.segments import joiner
from weft.tasks.choice import load_task
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import training_hashes
from weft.tasks.translation import Translation

_LENGTHS = (10, 20, 30, 50)  # upper ends of groups, in words
_COUNTS = {0: "never in the training text", 4: "1 to 4 times", 49: "5 to 49 times"}
_OFTEN = "50 times or more"
ONE_SEED = "this compares two models: it says nothing of other seeds; train several"
_AT_A_TIME = 256  # texts that are translated before they are counted
_FEWEST_DOCUMENTS = 20  # fewer are taken apart into lines


@dataclass(frozen=True)
class Group:
    """Some of the rows, or of their words: how many, and a figure of either model on them."""

    what: str
    count: int
    figure: str
    first: float
    second: float

    def cells(self) -> tuple[str, ...]:
        """For a person to read: which, how many, both figures and their difference."""
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
        """For a person to read."""
        given = {"text": self.text, "wanted": self.wanted}
        shown = {name: text for name, text in given.items() if text}
        shown |= {"first": self.first or "(empty)", "second": self.second or "(empty)"}
        return [
            f"{self.where}  {self.gain:+.2f} {self.unit}",
            *(f"  {name:7}{text}" for name, text in shown.items()),
        ]


@dataclass(frozen=True)
class Comparison:
    """Two models on the rows of a text."""

    names: tuple[str, str]
    num_rows: int
    figures: tuple[Figure, ...]
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """For a person to read."""
        first, second = self.names
        found = [
            f"first: {first}",
            f"second: {second}",
            f"{self.num_rows:,} rows; each figure ± 95 % of resamples; difference: the second less the first",
            "",
        ]
        found += _table(
            [
                ("", "first", "second", "difference"),
                *(figure.cells() for figure in self.figures),
            ]
        )
        found += [
            f"{figure.name}: {figure.verdict} (p {figure.p_value:.3f})"
            for figure in self.figures
        ]
        found += [ONE_SEED]
        for name in dict.fromkeys(group.figure for group in self.groups):
            rows = [group.cells() for group in self.groups if group.figure == name]
            found += [
                "",
                name,
                *_table([("", "count", "first", "second", "difference"), *rows]),
            ]
        if self.differences:
            found += [
                "",
                "what differs most, and how much better the second is",
                *(line for each in self.differences for line in each.lines()),
            ]
        return [*found, *(f"note: {note}" for note in self.notes)]

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, a verdict beside each figure."""
        found = asdict(self)
        for shown, figure in zip(found["figures"], self.figures, strict=True):
            shown["verdict"] = figure.verdict
        return found


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells under each other: first what it is, then numbers, which end where their heads end."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    placed = (
        [
            cell.rjust(w) if i else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in placed]


def compare(
    first: Path,
    second: Path,
    data: Sequence[str],
    machine: Machine,
    *,
    train: Sequence[str] = (),
    samples: int = 1000,
    show: int = 5,
) -> Comparison:
    """Return the models of two folders on the text in `data`; translators by rare words too, of the
    text in `train`.

    `show` is how many rows that differ most are given in each direction. Raises UsageError for
    models of two tasks, languages or label sets; DataError for fewer than 2 rows; FolderError and
    DataError as `evaluate`.
    """
    stages.enter("loading the models")
    one, other = (load_task(folder, machine) for folder in (first, second))
    if type(one) is not type(other):
        kinds = f"{first} holds a model for {one.name}, {second} one for {other.name}"
        raise UsageError(f"{kinds}; compare models of one task")
    if train and not isinstance(one, Translation):
        raise UsageError(
            "--train counts the words that a translation has; leave it out"
        )
    if samples < 1 or show < 0:
        raise UsageError(f"samples = {samples}, show = {show}: at least 1 and 0")
    text = one.read(data)
    if isinstance(one, Translation) and isinstance(other, Translation):
        found = _translators(one, other, text, train, samples)
    elif isinstance(one, Classification) and isinstance(other, Classification):
        found = _classifiers(one, other, text, samples)
    else:
        assert isinstance(one, LanguageModelling)
        assert isinstance(other, LanguageModelling)
        found = _language_models(one, other, text, samples)
    figures, groups, differences, rows = found
    notes = list(one.doubts(text, training_hashes(first)))
    for folder, task in ((first, one), (second, other)):
        notes += [
            f"{folder}: {note}"
            for note in task.shared_rows(text, training_hashes(folder))
        ]
    if isinstance(one, Translation):
        notes += _empty_notes(differences)
    chosen = _outermost(differences, show)
    names = str(first), str(second)
    return Comparison(
        names, rows, tuple(figures), tuple(groups), chosen, tuple(dict.fromkeys(notes))
    )


_Found = tuple[Sequence[Figure], Sequence[Group], list[Difference], int]


def _translators(
    one: Translation,
    other: Translation,
    text: ParallelText,
    train: Sequence[str],
    samples: int,
) -> _Found:
    langs = [(task.config.src_lang, task.config.tgt_lang) for task in (one, other)]
    if langs[0] != langs[1]:
        first, second = (" to ".join(pair) for pair in langs)
        raise UsageError(
            f"the models translate {first} and {second}; compare models of the same languages"
        )
    _refuse_too_few(len(text))
    src_lang, lang = langs[0]
    ours, theirs = (
        _translated(task, text.src, which)
        for task, which in ((one, "first"), (other, "second"))
    )
    stages.enter("comparing")
    groups = []
    for what, rows in _by_length([len(_words(line, src_lang)) for line in text.src]):
        bleu, other_bleu = (
            _bleu(some, text.tgt, rows, lang) for some in (ours, theirs)
        )
        groups.append(
            Group(
                what,
                len(rows),
                "BLEU by the length of the source, in words",
                bleu,
                other_bleu,
            )
        )
    if train:
        counts = Counter(_all_words(one.read(train).tgt, lang))
        groups += _by_count((ours, theirs), text.tgt, counts, lang)
    gains = np.subtract(
        sentence_chrf(theirs, text.tgt), sentence_chrf(ours, text.tgt)
    ).tolist()
    differences = [
        Difference(
            text.where(i), text.src[i], text.tgt[i], ours[i], theirs[i], gain, "chrF"
        )
        for i, gain in enumerate(gains)
    ]
    return (
        paired_scores((ours, theirs), text.tgt, lang, samples),
        groups,
        differences,
        len(text),
    )


def _translated(task: Translation, texts: Sequence[str], which: str) -> list[str]:
    stages.enter(f"translating {len(texts):,} pairs by the {which} model")
    found = task.predictor().translate_stream(texts, chunk=_AT_A_TIME)
    return [prediction.text for prediction in stages.counted(found, "pairs", every=1)]


def _classifiers(
    one: Classification, other: Classification, text: LabelledText, samples: int
) -> _Found:
    if difference := _other_labels(one.config.labels, other.config.labels):
        raise UsageError(
            f"{difference}; compare models of the same labels, or score each with weft evaluate"
        )
    _refuse_too_few(len(text))
    check_against(one.config.labels, text, "the text")
    stages.enter(f"classifying {len(text):,} texts by both models")
    ours, theirs = (task.predictor().classify(text.texts) for task in (one, other))
    stages.enter("comparing")
    right, also_right = (
        np.array(
            [
                set(a.labels) == set(labels)
                for a, labels in zip(some, text.labels, strict=True)
            ],
            float,
        )
        for some in (ours, theirs)
    )
    parts = [
        (f"by words: {what}", rows)
        for what, rows in _by_length([len(t.split()) for t in text.texts])
    ]
    parts += [
        (
            f"by label: {name}",
            [i for i, labels in enumerate(text.labels) if name in labels],
        )
        for name in one.config.labels
    ]
    groups = [
        Group(
            what,
            len(rows),
            "accuracy",
            float(right[rows].mean()),
            float(also_right[rows].mean()),
        )
        for what, rows in parts
        if rows
    ]
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
        for i, (a, b, labels) in enumerate(zip(ours, theirs, text.labels, strict=True))
        if a.labels != b.labels
    ]
    figure = paired_bootstrap(
        "accuracy", (right, also_right), np.ones(len(text)), samples=samples
    )
    return [figure], groups, differences, len(text)


def _scored(
    task: LanguageModelling, rows: Sequence[str], which: str
) -> list[TextScore]:
    stages.enter(f"scoring {len(rows):,} rows by the {which} model")
    predictor = task.predictor()
    return [
        score
        for row in stages.counted(rows, "rows", every=1)
        for score in predictor.score(row)
    ]


def _language_models(
    one: LanguageModelling, other: LanguageModelling, text: Documents, samples: int
) -> _Found:
    rows, where = text.texts, text.where
    if len(rows) < _FEWEST_DOCUMENTS:
        rows = [
            line for document in rows for line in document.split("\n") if line.strip()
        ]
        where = _numbered
    _refuse_too_few(len(rows))
    scores, others = (
        _scored(task, rows, which)
        for task, which in ((one, "first"), (other, "second"))
    )
    stages.enter("comparing")
    bits, other_bits = (
        np.array([-s.log_prob for s in some]) / np.log(2) for some in (scores, others)
    )
    sizes = np.array([score.num_bytes for score in scores], float)
    how: Any = {"samples": samples, "lower_is_better": True}
    figures = [paired_bootstrap("bits a byte", (bits, other_bits), sizes, **how)]
    if one.tokenizers[0].sha256 == other.tokenizers[0].sha256:
        tokens = np.array([score.num_tokens for score in scores], float)
        nats = bits * np.log(2), other_bits * np.log(2)
        figures.append(paired_bootstrap("nats a token", nats, tokens, **how))
    groups = []
    for what, some in _by_length([len(row.split()) for row in rows]):
        shares = (
            float(each[some].sum() / sizes[some].sum()) for each in (bits, other_bits)
        )
        groups.append(
            Group(what, len(some), "bits a byte by length, in words", *shares)
        )
    differences = [
        Difference(
            where(i),
            row,
            "",
            f"{a:.3f} bits a byte",
            f"{b:.3f} bits a byte",
            a - b,
            "bits a byte",
        )
        for i, (row, a, b) in enumerate(
            zip(
                rows,
                (bits / sizes).tolist(),
                (other_bits / sizes).tolist(),
                strict=True,
            )
        )
    ]
    return figures, groups, differences, len(rows)


def _numbered(i: int) -> str:
    return f"line {i + 1:,}"


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
    """Of a language without spaces, its characters."""
    return re.findall(r"\w+" if joiner(lang) else r"\w", text.lower())


def _all_words(texts: Sequence[str], lang: str) -> Iterator[str]:
    return (word for text in texts for word in _words(text, lang))


def _by_length(lengths: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Groups of rows that have any, by how many words they have."""
    low = 0
    for high in (*_LENGTHS, max([*lengths, _LENGTHS[-1] + 1])):
        rows = [i for i, length in enumerate(lengths) if low <= length <= high]
        if rows:
            yield (f"{low} to {high}" if high in _LENGTHS else f"{low} and more"), rows
        low = high + 1


def _bleu(
    hypotheses: Sequence[str], references: Sequence[str], rows: Sequence[int], lang: str
) -> float:
    return translation_scores(
        [hypotheses[i] for i in rows], [references[i] for i in rows], lang
    ).bleu


def _by_count(
    texts: tuple[Sequence[str], Sequence[str]],
    references: Sequence[str],
    counts: Counter[str],
    lang: str,
) -> Iterator[Group]:
    """How many of the references' words each model has found, by how often training had them, in
    percent.
    """
    head = "words of the references that were found, in percent, by how often training had them"
    wanted = [Counter(_words(text, lang)) for text in references]
    found = [
        [a & Counter(_words(b, lang)) for a, b in zip(wanted, some, strict=True)]
        for some in texts
    ]
    groups = {what: [0, 0, 0] for what in (*_COUNTS.values(), _OFTEN)}
    for place, some in enumerate((wanted, *found)):
        for words in some:
            for word, count in words.items():
                what = next(
                    (what for most, what in _COUNTS.items() if counts[word] <= most),
                    _OFTEN,
                )
                groups[what][place] += count
    for what, (total, ours, theirs) in groups.items():
        if total:
            yield Group(what, total, head, 100 * ours / total, 100 * theirs / total)


def _sureness(answer: Answer, labels: Sequence[str]) -> float:
    """Return the probability of what is right: of several labels, of the least sure one."""
    mine = answer.probabilities
    return (
        min([p if label in labels else 1 - p for label, p in mine.items()])
        if len(labels) != 1
        else mine[labels[0]]
    )


def _outermost(differences: Sequence[Difference], count: int) -> tuple[Difference, ...]:
    """Where the second is better by most, then where the first is."""
    ranked = sorted(differences, key=lambda each: -each.gain)
    better = [each for each in ranked if each.gain > 0][:count]
    worse = [each for each in ranked[::-1] if each.gain < 0][:count]
    return (*better, *worse)
