"""The text of a run in its three parts: training, dev and test; given, generated, or split off by seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft import samples
from weft.config import DataSection
from weft.data.check import look_over
from weft.data.corpus import ParallelText, fingerprint, from_pairs, read_pairs, split_off
from weft.data.split import MIN_PAIRS
from weft.errors import UsageError

SMALL = 5_000  # pairs; below it a model learns phrases rather than a language


@dataclass(frozen=True)
class Texts:
    """The three parts; `notes` say what was split off, left out or noticed."""

    train: ParallelText
    dev: ParallelText | None
    test: ParallelText | None
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Fingerprint, size and files of each part."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: {"sha256": fingerprint(part), "pairs": len(part), "files": part.files}
            for name, part in parts.items()
            if part is not None
        }


def gather_texts(data: DataSection, train: Sequence[str], dev: str | None, test: str | None, seed: int) -> Texts:
    """Read or generate the text of a run.

    Raises UsageError where there is none or two kinds of it, DataError where it cannot be read.
    """
    if data.builtin and (train or dev or test):
        raise UsageError(
            f"the recipe brings its own text ({data.builtin}): leave --train, --dev and --test away, "
            "or add --set data.builtin=none"
        )
    if data.builtin:
        return _builtin(data.builtin, data.src_lang, data.tgt_lang)
    if not train:
        raise UsageError("no text to train on: give --train FILE, or a recipe with built-in text")
    whole = read_pairs(train, data.src_lang, data.tgt_lang)
    given_dev = read_pairs([dev], whole.src_lang, whole.tgt_lang) if dev else None
    given_test = read_pairs([test], whole.src_lang, whole.tgt_lang) if test else None
    sizes = (0 if dev else data.dev_size, 0 if test else data.test_size)
    kept, split_dev, split_test = split_off(whole, *sizes, seed)
    notes = [
        *whole.notes,
        *(f"left out: {count:,} pairs ({why})" for why, count in whole.dropped.items() if count),
        *_split_notes(split_dev, split_test),
        *_size_notes(kept, given_dev or split_dev, given_test or split_test),
        *(f"{f.message}; {f.remedy}" for f in look_over(kept) if f.severity != "note"),
    ]
    return Texts(kept, given_dev or split_dev, given_test or split_test, tuple(notes))


def _builtin(name: str, src_lang: str | None, tgt_lang: str | None) -> Texts:
    default = ("de", "en") if name == "toy-de-en" else ("en", "zh")
    langs = (src_lang or default[0], tgt_lang or default[1])
    splits = samples.pairs(name, *langs)
    train, dev, test = (
        from_pairs(part, f"{name}/{label}", *langs)
        for label, part in (("train", splits.train), ("dev", splits.dev), ("test", splits.test))
    )
    alike = f"{name} is scored on the sentences that it learns from"
    return Texts(train, dev, test, (alike,) if splits.test == splits.train else ())


def _split_notes(dev: ParallelText | None, test: ParallelText | None) -> Iterator[str]:
    held = [f"{len(part):,} pairs for {name}" for name, part in (("dev", dev), ("test", test)) if part]
    if held:
        yield f"held out of the text by seed: {' and '.join(held)}"


def _size_notes(train: ParallelText, dev: ParallelText | None, test: ParallelText | None) -> Iterator[str]:
    if dev is None:
        why = f": {len(train):,} pairs are too few to hold some out" if len(train) < MIN_PAIRS else ""
        yield f"no dev set{why}; nothing says which step is the best, so the last is taken"
    if test is None:
        yield "no test set" + (": the score on dev is too hopeful, since dev chose the model" if dev else "")
    if MIN_PAIRS <= len(train) < SMALL:  # below it, the look at the text says so
        yield f"small data: {len(train):,} pairs teach known phrases, not free translation; 10,000 or more help"
