"""The text of a run in its three parts, training, dev and test: given, generated, or split off by
seed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from weft.config import DocumentsSection, PairsSection, RowsSection
from weft.console import stages
from weft.data import builtin as samples
from weft.data.base import Corpus
from weft.data.check.finding import Finding, counted
from weft.data.check.parts import (
    examine_directions,
    examine_documents,
    examine_rows,
)
from weft.data.checked import key_of, read_checked
from weft.data.corpus import (
    ParallelText,
    fingerprint,
    from_pairs,
    measured,
    split_off,
)
from weft.data.directions import read_directions, read_held_out, turned
from weft.data.documents import (
    Documents,
    fingerprint_documents,
    from_documents,
    read_documents,
    split_documents,
)
from weft.data.glossary import Glossary, read_glossary
from weft.data.labelled import (
    LabelledText,
    fingerprint_labelled,
    from_rows,
    read_labelled,
    split_labelled,
)
from weft.data.signature import signature, signature_of
from weft.data.sources import mixtures_of
from weft.data.split import MIN_PAIRS
from weft.data.train_text import PLAIN, TrainText, names_of
from weft.errors import DataError, UsageError

GLOSSARY = "glossary"  # among the facts of texts
SMALL = 5_000  # pairs; below it a model learns phrases rather than a language


C = TypeVar("C", bound=Corpus)


@dataclass(frozen=True)
class Texts(Generic[C]):
    """The three parts; `unit` is what they are counted in; `notes` say what was split off, left out
    or noticed.

    `findings` are what the data check says of the files that were given; `overridden` the codes of
    the fatal ones that the user overrode. `glossary` has the terms to mark in the pairs. The
    findings of a large text can be kept by `check_key`.
    """

    train: C
    dev: C | None
    test: C | None
    unit: str
    fingerprint: Callable[[C], str]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    overridden: tuple[str, ...] = ()
    glossary: Glossary | None = None
    glossary_file: str = ""
    check_key: str = ""

    def accepted(self, in_spite_of_fatal: bool) -> "Texts[C]":
        """Return the same texts once nothing fatal stands against training, or the person trains in
        spite of it, which is noted.

        Raises DataError with a line for each fatal finding.
        """
        fatal = [finding for finding in self.findings if finding.severity == "fatal"]
        if fatal and not in_spite_of_fatal:
            how = "to train all the same, and have it recorded, add --allow-bad-data; weft check shows more"
            lines = [f"{finding.message}; {finding.remedy}" for finding in fatal]
            raise DataError("\n".join([*lines, how]))
        notes = tuple(
            f"trained all the same (--allow-bad-data): {finding.message}"
            for finding in fatal
        )
        codes = tuple(dict.fromkeys(finding.code for finding in fatal))
        return replace(self, notes=(*self.notes, *notes), overridden=codes)

    def facts(self) -> dict[str, Any]:
        """List the fingerprint, signature, size and files of each part; of training also what was
        overridden. A glossary has no signature.
        """
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        facts: dict[str, dict[str, Any]] = {
            name: {
                "sha256": self.fingerprint(part),
                "signature": text_signature(part),
                "size": counted(len(part), self.unit),
                "files": part.files,
            }
            for name, part in parts.items()
            if part is not None
        }
        if isinstance(self.train, ParallelText) and self.train.worths:
            facts["train"]["worths"] = self.train.worth_facts()
        if self.overridden:
            facts["train"]["overridden"] = list(self.overridden)
        if self.glossary is not None:
            facts[GLOSSARY] = {
                "sha256": self.glossary.sha256,
                "size": counted(len(self.glossary.entries), "terms"),
                "files": [self.glossary_file],
            }
        return facts


def text_signature(text: Corpus) -> str:
    """Write the signature of a text, by the hashes of its rows where they were measured."""
    if isinstance(text, ParallelText) and text.measures is not None:
        return signature_of(text.measures.signed)
    return signature(text.rows())


@dataclass(frozen=True)
class Sources:
    """The files that a person named; `glossary` has the terms to mark in the training text.
    `checked` is where a run keeps what was found in a large one.
    """

    train: tuple[TrainText, ...] = ()
    dev: str | None = None
    test: str | None = None
    glossary: str | None = None
    checked: Path | None = None

    @property
    def train_files(self) -> tuple[str, ...]:
        """Return the training text as it was named, for a task that takes all rows alike.

        Raises UsageError where a text is worth more or less than another.
        """
        for text in self.train:
            if text.worth != PLAIN:
                raise UsageError(
                    f"{text.data}: {text.worth.describe()}: weights and tags are for pairs; give the file alone"
                )
        return names_of(self.train)

    def refuse_beside(self, builtin: str | None) -> None:
        """Raise UsageError where a recipe brings its own text and files are named, or neither."""
        if builtin and (self.train or self.dev or self.test):
            raise UsageError(
                f"the recipe brings its own text ({builtin}): leave --train, --dev and --test away, "
                "or add --set data.builtin=none"
            )
        if not builtin and not self.train:
            raise UsageError(
                "no text to train on: name a file (weft train pairs.tsv), or a recipe with built-in text"
            )


def gather_pairs(data: PairsSection, given: Sources) -> Texts[ParallelText]:
    """Read or generate the pairs of a translation run.

    Raises UsageError where there are none or two kinds of them, DataError where they cannot be
    read.
    """
    given.refuse_beside(data.builtin)
    if data.builtin:
        texts = _turned(_builtin_pairs(data), data)
    else:
        texts = _read_pairs(data, given)
    # what is wrong with the mixtures, before anything is learned
    mixtures_of(texts.train, data.mixtures)
    return texts if given.glossary is None else _with_glossary(texts, data, given)


def _with_glossary(
    texts: Texts[ParallelText], data: PairsSection, given: Sources
) -> Texts[ParallelText]:
    """Return the texts with the terms to mark in them. Raises UsageError where none are to be."""
    assert given.glossary is not None
    if not data.terms:
        raise UsageError(
            "--glossary names terms to mark in the training text, of which data.terms is the share; add "
            "--set data.terms=0.3"
        )
    train = texts.train
    glossary = read_glossary(Path(given.glossary), train.src_lang, train.tgt_lang)
    notes = (*texts.notes, *glossary.notes)
    return replace(texts, notes=notes, glossary=glossary, glossary_file=given.glossary)


def _read_pairs(data: PairsSection, given: Sources) -> Texts[ParallelText]:
    train = read_directions(given.train, data)
    if train.is_large and not train.pairs:
        stages.enter("holding out dev and test")
        train = measured(train, data.seed)  # once, to be held out and to be checked
    dev, test = _read_held_out(given, lambda item: read_held_out(item, train, data))
    dev_size = 0 if dev else data.dev_size
    test_size = 0 if test else data.test_size
    split = _Split(train, *split_off(train, dev_size, test_size, data.seed))
    stages.enter("checking the text")
    key = key_of((train, dev, test)) if train.is_large else ""
    findings = read_checked(given.checked, key)
    if findings is None:
        found = examine_directions(train, dev, test)
        # a run tells no rows, of which there may be very many
        findings = [replace(finding, rows=()) for finding in found]
    how = _split_notes(split.dev, split.test, "pairs", data.seed)
    small = _small_notes(split.train)
    texts = split.texts(dev, test, "pairs", fingerprint, findings, (*how,), (*small,))
    texts = _turned(replace(texts, check_key=key), data)
    if data.has_hints and texts.train.pairs:
        raise UsageError(
            "data.terms and data.memory are for one direction; leave them out, or data.directions"
        )
    return texts


def _turned(texts: Texts[ParallelText], data: PairsSection) -> Texts[ParallelText]:
    """Return the parts in the directions in which the model reads them."""
    if data.directions in ("one", "each"):
        return texts
    dev = texts.dev and turned(texts.dev, data)
    test = texts.test and turned(texts.test, data)
    return replace(texts, train=turned(texts.train, data), dev=dev, test=test)


def gather_documents(data: DocumentsSection, given: Sources) -> Texts[Documents]:
    """Read or generate the documents of a language model. Raises as `gather_pairs`."""
    given.refuse_beside(data.builtin)
    if data.builtin:
        return _builtin_documents(data.builtin, data.lang or "en")
    train = read_documents(given.train_files, data.documents, data.raw)
    dev, test = _read_held_out(
        given, lambda item: read_documents(item, data.documents, data.raw)
    )
    dev_share = 0.0 if dev else data.dev_share
    test_share = 0.0 if test else data.test_share
    split = _Split(train, *split_documents(train, dev_share, test_share, data.seed))
    stages.enter("checking the text")
    findings = examine_documents(train, dev, test)
    how = _share_notes(train, split.dev, split.test)
    return split.texts(dev, test, "documents", fingerprint_documents, findings, (*how,))


def gather_rows(data: RowsSection, given: Sources) -> Texts[LabelledText]:
    """Read or generate the labelled rows of a classification run. Raises as `gather_pairs`."""
    given.refuse_beside(data.builtin)
    if data.builtin:
        return _builtin_rows(data.builtin, data.label_separator is not None)
    columns = (data.text_column, data.label_column, data.label_separator)
    train = read_labelled(given.train_files, *columns)
    dev, test = _read_held_out(given, lambda item: read_labelled(item, *columns))
    dev_size = 0 if dev else data.dev_size
    test_size = 0 if test else data.test_size
    split = _Split(train, *split_labelled(train, dev_size, test_size, data.seed))
    stages.enter("checking the text")
    findings = examine_rows(train, dev, test)
    how = _split_notes(split.dev, split.test, "rows", data.seed)
    return split.texts(dev, test, "rows", fingerprint_labelled, findings, (*how,))


def _read_held_out(
    given: Sources, read: Callable[[str], C]
) -> tuple[C | None, C | None]:
    """Read the dev and the test text that were named."""
    dev = read(given.dev) if given.dev else None
    test = read(given.test) if given.test else None
    return dev, test


@dataclass(frozen=True)
class _Split(Generic[C]):
    """A text that was read, and the parts into which it was split."""

    text: C
    train: C
    dev: C | None
    test: C | None

    def texts(
        self,
        dev: C | None,
        test: C | None,
        unit: str,
        fingerprint: Callable[[C], str],
        findings: Sequence[Finding],
        how_split: Sequence[str],
        more: Sequence[str] = (),
    ) -> Texts[C]:
        """Join the parts, of which the `dev` and `test` that were named come first, with notes."""
        dev = dev or self.dev
        test = test or self.test
        notes = (
            *_read_notes(self.text.notes, self.text.dropped, unit),
            *how_split,
            *_dev_notes(self.train, dev, test, unit),
            *more,
            *_finding_notes(findings),
        )
        return Texts(self.train, dev, test, unit, fingerprint, notes, tuple(findings))


def _builtin_pairs(data: PairsSection) -> Texts[ParallelText]:
    name = str(data.builtin)
    src_lang, tgt_lang = data.src_lang, data.tgt_lang
    if data.directions == "reverse":
        src_lang, tgt_lang = tgt_lang, src_lang
    default = ("de", "en") if name == "toy-de-en" else ("en", "zh")
    langs = (src_lang or default[0], tgt_lang or default[1])
    splits = samples.pairs(name, *langs)
    parts = (
        from_pairs(splits.train, f"{name}/train", *langs),
        from_pairs(splits.dev, f"{name}/dev", *langs),
        from_pairs(splits.test, f"{name}/test", *langs),
    )
    notes: tuple[str, ...] = ()
    if splits.test == splits.train:
        notes = (f"{name} is scored on the sentences that it learns from",)
    return Texts(*parts, "pairs", fingerprint, notes)


def _builtin_documents(name: str, lang: str) -> Texts[Documents]:
    """Return the sentences of one language, each a document."""
    parts = _builtin_sentences(name, lang)
    train, dev, test = (
        from_documents(part, f"{name}/{label}") for label, part in parts.items()
    )
    return Texts(train, dev, test, "documents", fingerprint_documents)


def _builtin_rows(name: str, multi_label: bool) -> Texts[LabelledText]:
    """Return the sentences of every language, each labelled with its language."""
    langs = {lang: _builtin_sentences(name, lang) for lang in ("de", "en", "zh")}

    def part(label: str) -> LabelledText:
        rows = [(text, [lang]) for lang in langs for text in langs[lang][label]]
        return from_rows(rows, f"{name}/{label}", multi_label)

    parts = (part("train"), part("dev"), part("test"))
    return Texts(*parts, "rows", fingerprint_labelled)


def _builtin_sentences(name: str, lang: str) -> dict[str, list[str]]:
    splits = samples.pairs(name, lang, "en" if lang == "de" else "de")
    return {
        "train": [src for src, _ in splits.train],
        "dev": [src for src, _ in splits.dev],
        "test": [src for src, _ in splits.test],
    }


def _read_notes(
    notes: Sequence[str], dropped: dict[str, int], unit: str
) -> Iterator[str]:
    yield from notes
    yield from (
        f"left out: {counted(count, unit)} ({why})"
        for why, count in dropped.items()
        if count
    )


def _split_notes(
    dev: Corpus | None, test: Corpus | None, unit: str, seed: int
) -> Iterator[str]:
    held = [
        f"{counted(len(part), unit)} for {name}"
        for name, part in (("dev", dev), ("test", test))
        if part
    ]
    if held:
        yield f"held out of the text by data.seed = {seed}: {' and '.join(held)}"


def _share_notes(
    whole: Documents, dev: Documents | None, test: Documents | None
) -> Iterator[str]:
    total = sum(map(len, whole.texts))
    held = [
        f"{100 * sum(map(len, part.texts)) / total:.1f} % for {name}"
        for name, part in (("dev", dev), ("test", test))
        if part
    ]
    if held:
        yield f"held out of the text: {' and '.join(held)}"


def _dev_notes(
    train: Corpus, dev: Corpus | None, test: Corpus | None, unit: str
) -> Iterator[str]:
    if dev is None:
        few = unit != "documents" and len(train) < MIN_PAIRS
        size = counted(len(train), unit)
        why = f": {size} are too few to hold some out" if few else ""
        yield f"no dev set{why}; nothing says which step is the best, so the last is taken"
    if test is None and dev:
        yield "no test set: the score on dev is too hopeful, since dev chose the model"
    elif test is None:
        yield "no test set"


def _small_notes(train: ParallelText) -> Iterator[str]:
    if MIN_PAIRS <= len(train) < SMALL:  # below it, the check of the text says so
        yield f"small data: {len(train):,} pairs teach known phrases, not free translation; 10,000 or more help"


def _finding_notes(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the warnings but those that are said already; what is fatal stops the run."""
    said = ("dropped-", "missing-label")
    return (
        f"{f.message}; {f.remedy}"
        for f in findings
        if f.severity == "warning" and not f.code.startswith(said)
    )
