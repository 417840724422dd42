"""The verdict on a classifier: its answers on dev, beside those of naive Bayes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from weft.data.base import spread
from weft.data.check.rows import alike_in_words, alike_labels
from weft.data.known import words_of
from weft.data.labelled import LabelledText, label_counts, named, quoted
from weft.data.normalize import replace_surrogates
from weft.predict.classifier import Classification as Answer
from weft.run.judging.judgement import (
    DRAFT,
    FEW_JUDGED,
    NOT_YET,
    NUM_EXAMPLES,
    USABLE,
    Judgement,
    not_judged,
)
from weft.tasks.classification import Classification

# rows of dev, and of training text, spread over all
MOST_JUDGED, MOST_COUNTED = 1000, 50_000
# of what could be won over the most frequent label; below it the model has learned next to nothing
GAINED = 0.25
# of the most frequent label's errors are gone: then the answers are of use
HALVED = 0.5
# rows of dev that a label has, none of which gets it, from which on the model does not know it
NEVER = 3
SHOWN_CHARS, MOST_LABELS = 120, 5
FEW_ROWS = 10  # of a label in training, below which it can hardly be learned
OUT_OF_BALANCE = 10  # times as many rows of one label as of another


def judge_classifier(
    task: Classification, train: LabelledText, dev: LabelledText
) -> Judgement:
    """Classify some of dev and judge."""
    train_counts = label_counts(train)
    dev_counts = label_counts(dev)
    dev = dev.sample(MOST_JUDGED)
    train = train.sample(MOST_COUNTED)
    answers = task.predictor().classify(dev.texts)
    by_words = None
    if not task.config.multi_label:
        by_words = _by_words(task.config.labels, train, dev)
    judgement = judge(dev.texts, dev.labels, answers, by_words)
    return with_labels(judgement, train_counts, dev_counts)


def with_labels(
    judgement: Judgement, train_counts: Mapping[str, int], dev_counts: Mapping[str, int]
) -> Judgement:
    """Return the judgement with what the labels leave open, by their numbers of rows."""
    alike = alike_labels(train_counts)
    absent = [label for label in train_counts if label not in dev_counts]
    says = [*judgement.says]
    if alike:
        says.append(
            f"labels that differ in case, spaces or marks alone count as different: {alike_in_words(alike)}; "
            "unify them and train again"
        )
    if absent:
        says.append(
            f"dev has no row of {named(absent)} ({len(absent):,} of {len(train_counts):,} labels): how well such texts "
            "are labelled is not known"
        )
    few = {label: count for label, count in train_counts.items() if count < FEW_ROWS}
    counts = {
        "alike": alike,
        "not_in_dev": absent,
        "few_rows": few,
        "rows": dict(train_counts),
    }
    figures = {**judgement.figures, **counts}
    helps = [] if alike else _what_rows_help(train_counts)
    return replace(judgement, says=says, figures=figures, helps=helps)


def _what_rows_help(counts: Mapping[str, int]) -> list[str]:
    """Say which rows would make a classifier better, by those that it was trained on."""
    total = sum(counts.values())
    most = max(counts, key=counts.__getitem__)
    least = min(counts, key=counts.__getitem__)
    if counts[most] < OUT_OF_BALANCE * counts[least]:
        return [f"more rows: it was trained on {total:,}"]
    rows = f"{quoted(most)} has {counts[most]:,}, {quoted(least)} {counts[least]:,}"
    return [f"more rows of the rare labels ({rows})"]


def judge(
    texts: Sequence[str],
    labels: Sequence[Sequence[str]],
    answers: Sequence[Answer],
    by_words: Sequence[str] | None,
) -> Judgement:
    """Return the verdict on some answers.

    `by_words` are those of naive Bayes, where a text has one label.
    """
    count = len(labels)
    if count < FEW_JUDGED:
        return not_judged(
            f"dev has {count} rows, too few to judge; {FEW_JUDGED} are needed"
        )
    wanted = [", ".join(sorted(some)) for some in labels]
    given = [", ".join(sorted(answer.labels)) for answer in answers]
    right = _right(given, wanted)
    most, frequent = Counter(wanted).most_common(1)[0]
    counted = None if by_words is None else _right(by_words, wanted)
    missing = _never_given(labels, answers)
    verdict, first = _verdict(count, right, frequent, counted, missing)
    words = "" if counted is None else f", counting words (naive Bayes) {counted}"
    says = [
        first,
        f'{right} of {count} rows of dev are labelled rightly; always saying "{most}" gives {frequent}{words}',
        *_without_labels(labels, answers),
    ]
    figures = {
        "count": count,
        "right": right,
        "most_frequent": frequent,
        "by_words": counted,
        "never": missing,
    }
    shown = [
        {
            "text": replace_surrogates(texts[i][:SHOWN_CHARS]),
            "answer": given[i],
            "label": wanted[i],
        }
        for i in _shown(given, wanted)
    ]
    sure = sorted(answer.probability for answer in answers)
    return Judgement(
        verdict,
        says,
        figures,
        examples=shown,
        low_confidence=round(sure[count // 20], 4),
    )


def _shown(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the rows to show: as large a share of errors as in all, and one at least."""
    is_right = [answer == label for answer, label in zip(given, wanted, strict=True)]
    right = [i for i, is_so in enumerate(is_right) if is_so]
    wrong = [i for i, is_so in enumerate(is_right) if not is_so]
    num_wrong = round(NUM_EXAMPLES * len(wrong) / len(wanted))
    num_wrong = min(max(num_wrong, 1), len(wrong))
    shown = [wrong[i] for i in spread(len(wrong), num_wrong)]
    shown += [right[i] for i in spread(len(right), NUM_EXAMPLES - num_wrong)]
    return sorted(shown)


def naive_bayes(
    rows: Sequence[Sequence[int]],
    labels: Sequence[int],
    num_labels: int,
    vocab_size: int,
) -> tuple[
    np.ndarray[tuple[int, int], np.dtype[np.float64]],
    np.ndarray[tuple[int], np.dtype[np.float64]],
]:
    """Return log-probabilities of words by label, (V, C), and of labels, (C,).

    Each counts once more than it was seen.
    """
    counts = np.ones((vocab_size, num_labels))
    for row, label in zip(rows, labels, strict=True):
        np.add.at(counts[:, label], list(set(row)), 1.0)
    prior = np.bincount(np.array(labels), minlength=num_labels) + 1.0
    return np.log(counts / counts.sum(0)), np.log(prior / prior.sum())


def _by_words(
    labels: Sequence[str], train: LabelledText, dev: LabelledText
) -> list[str]:
    """Return the labels that naive Bayes gives to dev."""
    number = {label: i for i, label in enumerate(labels)}
    targets = [number[label] for (label,) in train.labels]
    # whole words, whatever the model's own tokens are: two recipes have the same bar
    ids: dict[str, int] = {}
    rows = [
        [ids.setdefault(word, len(ids)) for word in words_of(text)]
        for text in train.texts
    ]
    by_label, prior = naive_bayes(rows, targets, len(labels), len(ids))
    answers = []
    for text in dev.texts:
        known = {ids[word] for word in words_of(text) if word in ids}
        scores = by_label[list(known)].sum(0) + prior
        answers.append(labels[int(scores.argmax())])
    return answers


def _without_labels(
    labels: Sequence[Sequence[str]], answers: Sequence[Answer]
) -> list[str]:
    """Say how many rows are given no label though they have one, if a model may do so."""
    pairs = zip(labels, answers, strict=True)
    missed = sum(bool(some) and not answer.labels for some, answer in pairs)
    if not missed:
        return []
    given = f"{missed} of {len(labels)} rows are given no label though they have one"
    return [f"{given}: none has a probability of one half"]


def _right(answers: Sequence[str], wanted: Sequence[str]) -> int:
    return sum(answer == label for answer, label in zip(answers, wanted, strict=True))


def _never_given(
    labels: Sequence[Sequence[str]], answers: Sequence[Answer]
) -> list[str]:
    """Return the labels that dev has at least `NEVER` times and no answer has."""
    answered = {label for answer in answers for label in answer.labels}
    counts = Counter(label for row in labels for label in row)
    frequent = {label for label, count in counts.items() if count >= NEVER}
    return sorted(frequent - answered)


def _verdict(
    count: int, right: int, frequent: int, counted: int | None, missing: Sequence[str]
) -> tuple[str, str]:
    """Return the word, and the sentence that explains it."""
    if right <= frequent:
        than = "worse than" if right < frequent else "no better than"
        return NOT_YET, f"it is {than} always giving the most frequent label"
    if right - frequent < GAINED * (count - frequent):
        return NOT_YET, "it is hardly better than always giving the most frequent label"
    doubts = []
    if missing:
        more = ""
        if len(missing) > MOST_LABELS:
            more = f" and {len(missing) - MOST_LABELS} more"
        doubts.append(f"it never answers {', '.join(missing[:MOST_LABELS])}{more}")
    if counted is not None and right < counted:
        doubts.append("counting words does better")
    if count - right > HALVED * (count - frequent):
        doubts.append(f"{count - right} of {count} answers are wrong")
    if doubts:
        return DRAFT, f"to be reviewed: {'; '.join(doubts)}"
    return (
        USABLE,
        f"for text like the training text; {count - right} of {count} answers are wrong",
    )
