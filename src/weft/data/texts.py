"""The text of a run in its three parts: training, dev and test; given, generated, or split off by
seed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from weft.config import DocumentsSection, PairsSection, RowsSection
from weft.console import stages
from weft.data import builtin as samples
from weft.data.check.finding import Finding, counted
from weft.data.check.parts import examine_documents, examine_pairs, examine_rows
from weft.data.corpus import (
    ParallelText,
    fingerprint,
    from_pairs,
    read_pairs,
    split_off,
)
from weft.data.documents import (
    Documents,
    fingerprint_documents,
    from_documents,
    read_documents,
    split_documents,
)
from weft.data.labelled import (
    LabelledText,
    fingerprint_labelled,
    from_rows,
    read_labelled,
    split_labelled,
)
from weft.data.signature import signature
from weft.data.split import MIN_PAIRS
from weft.errors import DataError, UsageError

SMALL = 5_000  # pairs; below it a model learns phrases rather than a language


class Corpus(Protocol):
    """What every kind of text knows of itself."""

    @property
    def files(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def dropped(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...
    def rows(self, /) -> Iterator[tuple[str, ...]]: ...
    def where(self, i: int, /) -> str: ...
    def select(self, indices: Iterable[int], /) -> Any: ...  # the same kind


C = TypeVar("C", bound=Corpus)


@dataclass(frozen=True)
class Texts(Generic[C]):
    """The three parts; `unit` is what they are counted in; `notes` say what was split off, left out
    or noticed.

    `findings` are what the data doctor says of the files that were given; `overridden` the codes of
    the fatal ones that the run goes on in spite of.
    """

    train: C
    dev: C | None
    test: C | None
    unit: str
    fingerprint: Callable[[C], str]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    overridden: tuple[str, ...] = ()

    def accepted(self, in_spite_of_fatal: bool) -> "Texts[C]":
        """Return the same, once nothing fatal stands against training, or the person trains in
        spite of it: then noted.

        Raises DataError with a line for each fatal finding.
        """
        fatal = [finding for finding in self.findings if finding.severity == "fatal"]
        if fatal and not in_spite_of_fatal:
            how = "to train all the same, and have it recorded, add --allow-bad-data; weft check shows more"
            raise DataError(
                "\n".join([*(f"{f.message}; {f.remedy}" for f in fatal), how])
            )
        notes = tuple(
            f"trained all the same (--allow-bad-data): {finding.message}"
            for finding in fatal
        )
        codes = tuple(dict.fromkeys(finding.code for finding in fatal))
        return replace(self, notes=(*self.notes, *notes), overridden=codes)

    def facts(self) -> dict[str, Any]:
        """Fingerprint, signature, size and files of each part; of training also what was
        overridden.
        """
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        facts: dict[str, dict[str, Any]] = {
            name: {
                "sha256": self.fingerprint(part),
                "signature": signature(part.rows()),
                "size": counted(len(part), self.unit),
                "files": part.files,
            }
            for name, part in parts.items()
            if part is not None
        }
        if self.overridden:
            facts["train"]["overridden"] = list(self.overridden)
        return facts


@dataclass(frozen=True)
class Sources:
    """The files that a person named."""

    train: tuple[str, ...] = ()
    dev: str | None = None
    test: str | None = None

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
        return _builtin_pairs(data.builtin, data.src_lang, data.tgt_lang)
    whole = read_pairs(given.train, data.src_lang, data.tgt_lang)
    dev = read_pairs([given.dev], whole.src_lang, whole.tgt_lang) if given.dev else None
    test = (
        read_pairs([given.test], whole.src_lang, whole.tgt_lang) if given.test else None
    )
    sizes = (0 if dev else data.dev_size, 0 if test else data.test_size)
    kept, split_dev, split_test = split_off(whole, *sizes, data.seed)
    stages.enter("looking the text over")
    findings = examine_pairs(whole, dev, test)
    notes = [
        *_read_notes(whole.notes, whole.dropped, "pairs"),
        *_split_notes(split_dev, split_test, "pairs", data.seed),
        *_dev_notes(kept, dev or split_dev, test or split_test, "pairs"),
        *_small_notes(kept),
        *_finding_notes(findings),
    ]
    parts = (kept, dev or split_dev, test or split_test)
    return Texts(*parts, "pairs", fingerprint, tuple(notes), tuple(findings))


def gather_documents(data: DocumentsSection, given: Sources) -> Texts[Documents]:
    """Read or generate the documents of a language model. Raises as `gather_pairs`."""
    given.refuse_beside(data.builtin)
    if data.builtin:
        return _builtin_documents(data.builtin, data.lang or "en")
    whole = read_documents(given.train, data.documents, data.raw)
    dev = read_documents(given.dev, data.documents, data.raw) if given.dev else None
    test = read_documents(given.test, data.documents, data.raw) if given.test else None
    shares = (0.0 if dev else data.dev_share, 0.0 if test else data.test_share)
    kept, split_dev, split_test = split_documents(whole, *shares, data.seed)
    stages.enter("looking the text over")
    findings = examine_documents(whole, dev, test)
    notes = [
        *_read_notes(whole.notes, whole.dropped, "documents"),
        *_share_notes(whole, split_dev, split_test),
        *_dev_notes(kept, dev or split_dev, test or split_test, "documents"),
        *_finding_notes(findings),
    ]
    parts = (kept, dev or split_dev, test or split_test)
    return Texts(
        *parts, "documents", fingerprint_documents, tuple(notes), tuple(findings)
    )


def gather_rows(data: RowsSection, given: Sources) -> Texts[LabelledText]:
    """Read or generate the labelled rows of a classification run. Raises as `gather_pairs`."""
    given.refuse_beside(data.builtin)
    if data.builtin:
        return _builtin_rows(data.builtin, data.label_separator is not None)
    columns = (data.text_column, data.label_column, data.label_separator)
    whole = read_labelled(given.train, *columns)
    dev = read_labelled(given.dev, *columns) if given.dev else None
    test = read_labelled(given.test, *columns) if given.test else None
    sizes = (0 if dev else data.dev_size, 0 if test else data.test_size)
    kept, split_dev, split_test = split_labelled(whole, *sizes, data.seed)
    stages.enter("looking the text over")
    findings = examine_rows(whole, dev, test)
    notes = [
        *_read_notes(whole.notes, whole.dropped, "rows"),
        *_split_notes(split_dev, split_test, "rows", data.seed),
        *_dev_notes(kept, dev or split_dev, test or split_test, "rows"),
        *_finding_notes(findings),
    ]
    parts = (kept, dev or split_dev, test or split_test)
    return Texts(*parts, "rows", fingerprint_labelled, tuple(notes), tuple(findings))


def _builtin_pairs(
    name: str, src_lang: str | None, tgt_lang: str | None
) -> Texts[ParallelText]:
    default = ("de", "en") if name == "toy-de-en" else ("en", "zh")
    langs = (src_lang or default[0], tgt_lang or default[1])
    splits = samples.pairs(name, *langs)
    train, dev, test = (
        from_pairs(part, f"{name}/{label}", *langs)
        for label, part in (
            ("train", splits.train),
            ("dev", splits.dev),
            ("test", splits.test),
        )
    )
    alike = f"{name} is scored on the sentences that it learns from"
    return Texts(
        train,
        dev,
        test,
        "pairs",
        fingerprint,
        (alike,) if splits.test == splits.train else (),
    )


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
    rows = {
        label: [
            (text, [lang]) for lang, parts in langs.items() for text in parts[label]
        ]
        for label in ("train", "dev", "test")
    }
    train, dev, test = (
        from_rows(part, f"{name}/{label}", multi_label) for label, part in rows.items()
    )
    return Texts(train, dev, test, "rows", fingerprint_labelled)


def _builtin_sentences(name: str, lang: str) -> dict[str, list[str]]:
    splits = samples.pairs(name, lang, "en" if lang == "de" else "de")
    parts = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    return {label: [src for src, _ in part] for label, part in parts.items()}


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
        why = (
            f": {counted(len(train), unit)} are too few to hold some out" if few else ""
        )
        yield f"no dev set{why}; nothing says which step is the best, so the last is taken"
    if test is None:
        yield "no test set" + (
            ": the score on dev is too hopeful, since dev chose the model"
            if dev
            else ""
        )


def _small_notes(train: ParallelText) -> Iterator[str]:
    if MIN_PAIRS <= len(train) < SMALL:  # below it, the look at the text says so
        yield f"small data: {len(train):,} pairs teach known phrases, not free translation; 10,000 or more help"


def _finding_notes(findings: Sequence[Finding]) -> Iterator[str]:
    """Return the warnings but those that are said already; what is fatal stops the run."""
    said = ("dropped-", "missing-label")
    return (
        f"{f.message}; {f.remedy}"
        for f in findings
        if f.severity == "warning" and not f.code.startswith(said)
    )
