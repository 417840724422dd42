"""The verdict on a classifier: its answers on dev, beside those of a linear model."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.data.base import spread
from weft.data.check.rows import alike_in_words, alike_labels
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
from weft.run.judging.linear import LinearAnswers, linear_answers
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
    linear = None
    if not task.config.multi_label:
        linear = linear_answers(task.config.labels, train, dev)
    judgement = judge(dev.texts, dev.labels, answers, linear)
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
    linear: LinearAnswers | None,
) -> Judgement:
    """Return the verdict on some answers, beside those of a linear model, where a text has one
    label.
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
    by_words = None
    beside = ""
    if linear is not None:
        by_words = _right(linear.labels, wanted)
        beside = f", a linear model of words and pairs {by_words} (C = {linear.cost:g}, chosen by them)"
    missing = _never_given(labels, answers)
    verdict, first = _verdict(count, right, frequent, by_words, missing)
    says = [
        first,
        f'{right} of {count} rows of dev are labelled rightly; always saying "{most}" gives {frequent}{beside}',
        *_without_labels(labels, answers),
    ]
    figures = {
        "count": count,
        "right": right,
        "most_frequent": frequent,
        "by_words": by_words,
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
    count: int, right: int, frequent: int, by_words: int | None, missing: Sequence[str]
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
    if by_words is not None and right < by_words:
        doubts.append("a linear model of its words does better")
    if count - right > HALVED * (count - frequent):
        doubts.append(f"{count - right} of {count} answers are wrong")
    if doubts:
        return DRAFT, f"to be reviewed: {'; '.join(doubts)}"
    return (
        USABLE,
        f"for text like the training text; {count - right} of {count} answers are wrong",
    )
