"""The checks of rows, one short function each: what in labelled rows would spoil a classifier."""

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from weft.data.check.finding import Finding, Rows, as_read, counted, gravest_first
from weft.data.check.repeats import near_repeats, repeats
from weft.data.check.words import Vocabulary, Words
from weft.data.check.writing import control_characters, markup, misread, wrong_script
from weft.data.labelled import (
    LabelledText,
    label_counts,
    named,
    quoted,
    with_several_labels,
)
from weft.data.split import MIN_PAIRS
from weft.errors import DataError

LABELS_SHARE = 0.5  # different labels for each row, from which on they are no labels
# of the texts, from which on bare numbers and ids are hardly what is meant
NUMBERS_SHARE = 0.9
FEW_ROWS = 5
_IMBALANCE = 10
_WEIGHTS = (
    ", and also train with training.class_weights=balanced, which gives rare labels more weight: "
    "it often helps, but not always"
)
_TOO_FEW = "or merge them with other labels: so few can be neither learned nor scored"
_SEPARATORS = (";", ",", "|", "/", "+")  # of labels in one cell
_FEWEST_JOINED = 3  # such labels, that tell of a separator
_MOST_GROUPS = 3  # of labels written in several ways, that a message names
# likeness (Ratcliff and Obershelp) of a rare label to a common one that it may be a slip for
_SPELLING = 0.84
_SLIP_LETTERS = 2  # at most so many differ
_SLIP_SHARE = 0.02  # of the common label's rows, which a slip has at most
_LEAST_LETTERS = 4  # of a label that may be misspelled


def look_over_labelled(
    text: LabelledText, words: Words | None = None, in_training: bool = True
) -> list[Finding]:
    """Check labelled text; findings come gravest first. Of dev and test, what concerns learning
    alone is left out.
    """
    rows = Rows(
        len(text),
        "rows",
        text.where,
        lambda i: (", ".join(text.labels[i]), text.texts[i]),
    )
    sides = (text.texts,)
    words = words or Words(text.texts, Vocabulary())
    findings = [
        # how it was read, before what that may have caused
        *as_read(rows, text.files, text.dropped, text.notes),
        *(_unfit_to_learn(text, rows) if in_training else ()),
        *_label_variants(text, rows),
        *_contradictions(text, rows, words),
        *_repeated(text, rows, words, in_training),
        *wrong_script(rows, sides),
        *misread(rows, sides),
        *control_characters(rows, sides),
        *markup(rows, sides, is_written=False),
    ]
    return gravest_first(findings)


def refuse_untrainable(text: LabelledText) -> None:
    """Raise DataError where there is nothing to learn: one label alone, or the same labels in every
    row.
    """
    for finding in _nothing_to_tell_apart(text):
        raise DataError(f"{finding.message}; {finding.remedy}")


def check_against(
    train_labels: Sequence[str], part: LabelledText, name: str
) -> list[str]:
    """Compare the labels of a dev or test text with those of training; return messages on labels
    that it lacks.

    Raises DataError naming the first label that training has not, and where it stands.
    """
    for finding in unknown_labels(train_labels, part, name):
        raise DataError(f"{finding.message}; {finding.remedy}")
    return [finding.message for finding in missing_labels(train_labels, part, name)]


def unknown_labels(
    train_labels: Sequence[str], part: LabelledText, name: str
) -> Iterator[Finding]:
    """Yield the labels of a dev or test text that training has not: a model of it cannot give
    them.
    """
    counts = label_counts(part)
    unknown = counts.keys() - set(train_labels)
    rows = Rows(len(part), "rows", part.where, lambda i: (part.texts[i],))
    for label in sorted(unknown, key=lambda label: _first_with(part, label)):
        near = _nearest(label, train_labels)
        found = [i for i, labels in enumerate(part.labels) if label in labels]
        yield Finding(
            "fatal",
            "unknown-label",
            f"{part.where(found[0])}: the label {quoted(label)} ({counted(counts[label], 'rows')} of {name}) is "
            f"not among those of training: {named(train_labels)}",
            f"did you mean {quoted(near)}?"
            if near is not None
            else "add rows with it to the training text, or remove these",
            counts[label],
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )


def _nearest(label: str, train_labels: Sequence[str]) -> str | None:
    """Return the label of training that is the same but for case, or else is spelled nearly so."""
    same = [other for other in train_labels if other.casefold() == label.casefold()]
    if same:
        return same[0]
    near = difflib.get_close_matches(label, train_labels, n=1, cutoff=0.8)
    return near[0] if near else None


def missing_labels(
    train_labels: Sequence[str], part: LabelledText, name: str
) -> Iterator[Finding]:
    """Yield the labels of training that a dev or test text lacks."""
    counts = label_counts(part)
    absent = [label for label in train_labels if label not in counts]
    if absent:
        yield Finding(
            "warning",
            "missing-label",
            f"{', '.join(part.files)}: no row of {name} has the label {named(absent)}; "
            "its scores say nothing about it",
            f"add rows with it to {name}, or do not judge it by this score",
            len(absent),
        )


def _unfit_to_learn(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    yield from _nothing_to_tell_apart(text)
    yield from _labels_are_texts(text, rows)
    yield from _numbers_as_texts(text, rows)
    yield from _too_small(text)
    yield from _joined_labels(text, rows)
    yield from _rare(text, rows)
    yield from _imbalance(text)


def _nothing_to_tell_apart(text: LabelledText) -> Iterator[Finding]:
    different = set(text.labels)
    if len(different) == 1:
        (labels,) = different
        which = f"the label {named(labels)}" if labels else "no label"
        yield Finding(
            "fatal",
            "one-label",
            f"{', '.join(text.files)}: every row has {which}: there is nothing to distinguish",
            "add rows with other labels, or name another column with data.label_column",
            len(text),
        )


def _labels_are_texts(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    """Report that there is nearly a label for each row: most likely another column is meant."""
    counts = label_counts(text)
    if len(text) >= MIN_PAIRS and len(counts) > LABELS_SHARE * len(text):
        yield Finding(
            "fatal",
            "labels-are-texts",
            f"{rows.where(0)}: {len(counts):,} different labels in {counted(len(text), 'rows')}: probably not labels",
            "name the right columns with data.label_column and data.text_column",
            len(counts),
            (),
            rows.examples([0, 1, 2]),
        )


def _numbers_as_texts(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    """Report texts that are running numbers, ids or dates: most likely another column is meant."""
    found = [i for i, one in enumerate(text.texts) if _is_number_or_id(one)]
    if len(found) >= max(NUMBERS_SHARE * len(text), FEW_ROWS):
        many = f"{len(found):,} of {counted(len(text), 'texts')}"
        yield Finding(
            "warning",
            "numbers-as-texts",
            f"{rows.where(found[0])}: {many} are only numbers or ids, such as {quoted(text.texts[found[0]])}: "
            "there is hardly anything to learn from them",
            "name the column that holds the text with data.text_column; nothing to do if codes are what you mean",
            len(found),
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )


def _is_number_or_id(text: str) -> bool:
    """Return whether a text is digits without letters, or one word of ASCII letters with digits in
    it.
    """
    if not any(map(str.isdigit, text)):
        return False
    is_one_word = not any(map(str.isspace, text))
    return (text.isascii() and is_one_word) or not any(map(str.isalpha, text))


def _too_small(text: LabelledText) -> Iterator[Finding]:
    if len(text) < MIN_PAIRS:
        yield Finding(
            "warning",
            "too-small",
            f"{', '.join(text.files)}: too small: {counted(len(text), 'rows')} are too few to learn from",
            f"bring at least {MIN_PAIRS} rows to try things out, and some hundreds of each label for use",
            len(text),
        )


def _label_variants(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    """Find labels that differ in case, spaces and the like alone, and rare ones spelled nearly like
    a common one.
    """
    counts = label_counts(text)
    groups = [
        ("differ in case, spaces or marks alone", variants)
        for variants in alike_labels(counts)
    ]
    groups += [
        ("differ in a letter or two", [common, slip])
        for slip, common in _slips(counts).items()
    ]
    for how, variants in groups:
        others = set(variants[1:])
        found = [
            i for i, labels in enumerate(text.labels) if not others.isdisjoint(labels)
        ]
        listing = " and ".join(
            f"{quoted(label)} ({counted(counts[label], 'rows')})" for label in variants
        )
        yield Finding(
            "warning",
            "label-variants",
            f"{text.where(_first_with(text, variants[1]))}: labels that {how} count as different labels: "
            f"{listing}",
            "unify them if they mean the same",
            sum(counts[label] for label in variants[1:]),
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )


def alike_labels(counts: Mapping[str, int]) -> list[list[str]]:
    """Group the labels that differ in case, spaces or marks alone; the one with most rows comes
    first in its group.
    """
    alike: dict[str, list[str]] = {}
    for label in counts:
        alike.setdefault(_plain(label), []).append(label)
    groups = [
        sorted(group, key=lambda label: (-counts[label], label))
        for group in alike.values()
        if len(group) > 1
    ]
    return sorted(groups, key=lambda group: group[0])


def alike_in_words(groups: Sequence[Sequence[str]]) -> str:
    """Write the groups of `alike_labels` for a message."""
    written = (" and ".join(map(quoted, group)) for group in groups[:_MOST_GROUPS])
    more = ""
    if len(groups) > _MOST_GROUPS:
        more = f" and {len(groups) - _MOST_GROUPS:,} more"
    return "; ".join(written) + more


def _variants(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the labels that are probably another one written otherwise, with that one."""
    alike = {label: group[0] for group in alike_labels(counts) for label in group[1:]}
    return alike | _slips(counts)


def _alike_first(labels: Mapping[str, str]) -> str:
    """Write the remedy for labels that are variants of others."""
    shown = [
        f"{quoted(label)} as {quoted(other)}"
        for label, other in list(labels.items())[:_MOST_GROUPS]
    ]
    more = ""
    if len(labels) > _MOST_GROUPS:
        more = f" and {len(labels) - _MOST_GROUPS:,} more"
    return f"first unify labels that mean the same: {', '.join(shown)}{more}"


def _plain(label: str) -> str:
    """Return a label without what a slip of the hand changes: case, width, spaces, hyphens, quotes,
    1 for 1.0.
    """
    folded = unicodedata.normalize("NFKC", label).casefold()
    try:
        return str(float(folded))
    except ValueError:
        kept = "".join(letter for letter in folded if letter not in " -_.'\"’`")
        return kept or folded


def _slips(counts: Mapping[str, int]) -> dict[str, str]:
    """Find rare labels that may be a slip for a common one, and that one; those that are alike are
    left out.

    Returns none where there are so many labels that they are hardly labels.
    """
    if len(counts) > LABELS_SHARE * sum(counts.values()):
        return {}
    known = {label for group in alike_labels(counts) for label in group}
    words = [
        label
        for label in counts
        if len(label) >= _LEAST_LETTERS and not any(map(str.isdigit, label))
    ]
    slips: dict[str, str] = {}
    for label in words:
        common = [
            other for other in words if counts[label] <= _SLIP_SHARE * counts[other]
        ]
        for near in difflib.get_close_matches(label, common, n=1, cutoff=_SPELLING):
            if label not in known and _letters_apart(label, near) <= _SLIP_LETTERS:
                slips[label] = near
    return slips


def _letters_apart(label: str, other: str) -> int:
    """Count the letters of the longer label that the other does not have in their order."""
    matcher = difflib.SequenceMatcher(None, label, other, autojunk=False)
    alike = sum(block.size for block in matcher.get_matching_blocks())
    return max(len(label), len(other)) - alike


def _joined(text: LabelledText) -> tuple[str, list[str]]:
    """Find labels that are several in one cell; return what stands between them, and the labels.

    These are at least three labels, of all whose parts others consist too; and most labels with the
    separator are so. Returns "" and none where there are none.
    """
    counts = label_counts(text)
    for separator in () if text.multi_label else _SEPARATORS:
        with_it = [label for label in counts if separator in label]
        parts = {label: _parts(label, separator) for label in with_it}
        occurrences = Counter(part for own in parts.values() for part in set(own))
        occurrences.update(label for label in counts if label not in parts)
        joined = [
            label
            for label, own in parts.items()
            if own and all(occurrences[part] > 1 for part in own)
        ]
        if len(joined) >= _FEWEST_JOINED and 2 * len(joined) > len(with_it):
            return separator, joined
    return "", []


def _parts(label: str, separator: str) -> list[str]:
    """Return the parts of a label between separators; none where one of them is empty."""
    parts = [part.strip() for part in label.split(separator)]
    return parts if all(parts) else []


def _joined_labels(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    """Report labels that are several in one cell, and count as one each."""
    separator, joined = _joined(text)
    if not joined:
        return
    those = set(joined)
    found = [i for i, labels in enumerate(text.labels) if not those.isdisjoint(labels)]
    yield Finding(
        "warning",
        "joined-labels",
        f"{text.where(found[0])}: {counted(len(joined), 'labels')} look like several in one cell, and count as "
        f"one each: {named(joined)}",
        f'where a text may have several labels, give --set "data.label_separator={separator}"',
        len(joined),
        tuple(found),
        rows.examples(found),
        places=rows.places(found),
    )


def _rare(text: LabelledText, rows: Rows) -> Iterator[Finding]:
    counts = label_counts(text)
    _, joined = _joined(text)
    rare = sorted(
        (label for label in counts.keys() - joined if counts[label] < FEW_ROWS),
        key=lambda label: (counts[label], _first_with(text, label)),
    )
    if rare:
        has = "1 label has" if len(rare) == 1 else f"{len(rare)} labels have"
        those = set(rare)
        found = [
            i for i, labels in enumerate(text.labels) if not those.isdisjoint(labels)
        ]
        variants = {
            label: other for label, other in _variants(counts).items() if label in those
        }
        remedies = []
        if variants:
            remedies.append(_alike_first(variants))
        if those - set(variants):
            others = "the others" if variants else "them"
            remedies.append(f"add more rows of {others}, {_TOO_FEW}")
        yield Finding(
            "warning",
            "rare-labels",
            f"{text.where(_first_with(text, rare[0]))}: {has} fewer than {FEW_ROWS} rows: {named(rare)}",
            "; ".join(remedies),
            len(rare),
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )


def _contradictions(text: LabelledText, rows: Rows, words: Words) -> Iterator[Finding]:
    several = with_several_labels(words.folded, text.labels)
    if several:
        again = min(several.values())
        first = words.folded.index(words.folded[again])
        found = sorted(several.values())
        yield Finding(
            "warning",
            "contradictions",
            f"{text.where(again)}: the same text as {text.where(first)}, labelled {named(text.labels[again])} "
            f"instead of {named(text.labels[first])} ({len(several):,} such texts; the first is shown)",
            "check which label is right; such texts are not held out",
            len(several),
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )


def _repeated(
    text: LabelledText, rows: Rows, words: Words, also_nearly: bool
) -> Iterator[Finding]:
    """Find rows that occur again with the same labels, as they are or but for a word."""
    again, before = repeats(zip(words.folded, text.labels, strict=True))
    remedy = "remove duplicates, unless they should have more weight in training"
    first = rows.first_at(dict(zip(again, before, strict=True)))
    yield from rows.shares(
        again, "duplicates", "the row has occurred before", remedy, 0.2, evidence=first
    )
    likes = near_repeats(words) if also_nearly else {}
    alike = {i for i, other in likes.items() if text.labels[i] == text.labels[other]}
    near = sorted(alike - set(again))
    what = "the row has occurred before, with a few words different"
    yield from rows.shares(
        near, "near-duplicates", what, remedy, 0.2, evidence=rows.first_at(likes)
    )


def _imbalance(text: LabelledText) -> Iterator[Finding]:
    counts = label_counts(text)
    if len(counts) < 2:
        return
    most = max(counts, key=counts.__getitem__)
    least = min(counts, key=counts.__getitem__)
    if counts[most] > _IMBALANCE * counts[least]:
        variants = _variants(counts)
        if least in variants:
            remedy = f"{_alike_first(variants)}; then check again"
        else:
            remedy = "judge by macro-F1 rather than accuracy"
            remedy += "" if text.multi_label else _WEIGHTS
        yield Finding(
            "note",
            "imbalance",
            f"{', '.join(text.files)}: {quoted(most)} has {counted(counts[most], 'rows')}, {quoted(least)} "
            f"{counted(counts[least], 'rows')}",
            remedy,
            counts[least],
        )


def _first_with(text: LabelledText, label: str) -> int:
    return next(i for i, labels in enumerate(text.labels) if label in labels)
