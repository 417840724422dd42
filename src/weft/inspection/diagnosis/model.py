"""Causes that lie in the model: what it does with a text like that of its training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.evidence import POOR_BLEU, Evidence
from weft.inspection.diagnosis.from_source import (
    share_of_repeats,
    share_of_unsupported,
)
from weft.inspection.diagnosis.labelling import LabelCount
from weft.inspection.diagnosis.sampling import FEW_GIVEN
from weft.inspection.diagnosis.weights import MOST_NAMED, Weighing
from weft.inspection.probe import Probe
from weft.predict.prediction import HOW_TO_END_REPETITION
from weft.tasks.classification import Classification
from weft.tasks.translation import in_forms_of

FAR_OFF = 0.2  # surplus answers of some labels, as a share of all rows
# of the translations, from which on a fault is no exception
OFTEN = 0.1


def knows_nothing(evidence: Evidence) -> Cause | None:
    """Find that a translator does no better than guessing."""
    if evidence.probe is None:
        return None
    loss, _ = evidence.probe.loss_and_end
    is_guessing = loss > 0.95 * evidence.task.loss_of_guessing
    if not is_guessing:
        return None
    return Cause(
        "knows-nothing-of-this",
        f"a loss of {loss:.2f} nats a token, where guessing has {evidence.task.loss_of_guessing:.2f}",
        "is this text in the languages, and of the kind, that the model was trained on?",
    )


def source_ignored(evidence: Evidence) -> Cause | None:
    """Find that targets are nearly as likely beside the sources of other pairs."""
    probe = evidence.probe
    if probe is None or probe.bleu >= POOR_BLEU:
        return None
    loss, _ = probe.loss_and_end
    gain = probe.by_other_sources - loss
    is_small = gain < 0.1 * loss + 0.1
    if not is_small:
        return None
    return Cause(
        "source-ignored",
        f"with the source of another pair a target costs only {gain:.2f} nats a token more ({loss:.2f}): "
        "the model writes in the target language, but not what the source says"
        f"{_and(share_of_unsupported(probe))}",
        "are the lines of the training text misaligned (weft check finds where)? otherwise train for longer",
    )


def no_end_symbol(evidence: Evidence) -> Cause | None:
    """Find that the model knows the targets' tokens, but not where they end."""
    if evidence.probe is None:
        return None
    loss, end = evidence.probe.loss_and_end
    goes_on = end < 0.1 and loss < 0.9 * evidence.task.loss_of_guessing
    if not goes_on:
        return None
    return Cause(
        "no-end-symbol",
        f"where a target ends, the model gives the end a probability of {end:.3f} on average",
        "it has not learned to stop: train on pairs whose targets end where their sources do, without what "
        "belongs to the next sentence",
    )


def empty_translations(evidence: Evidence) -> Cause | None:
    """Find that many translations are empty."""
    if evidence.probe is None:
        return None
    count = len(evidence.probe.predictions)
    empty = _translations(evidence.probe).count("")
    if empty < OFTEN * count:
        return None
    penalty = evidence.probe.task.config.decoding.length_penalty
    return Cause(
        "empty-translations",
        f"{empty:,} of {count:,} translations are empty: the model takes the end for likeliest at once",
        "train for longer or on more text; if weft translate --beam-size 1 gives text, so may "
        f"--length-penalty above {penalty:g}",
    )


def one_translation(evidence: Evidence) -> Cause | None:
    """Find that many sources get the same translation, far more than have the same target."""
    if evidence.probe is None:
        return None
    texts = _translations(evidence.probe)
    count = len(texts)
    common, often = Counter(texts).most_common(1)[0]
    _, expected = Counter(evidence.probe.text.tgt).most_common(1)[0]
    is_unremarkable = often < 0.3 * count or expected >= 0.5 * often
    if not common or count < FEW_GIVEN or is_unremarkable:
        return None
    # not shown where it breaks off inside characters
    shown = "" if "\ufffd" in common else f': "{common[:60]}"'
    return Cause(
        "one-translation",
        f"{often:,} of {count:,} sources get the same translation{shown}",
        "does the training text have that target too often (weft check finds it)? else train for longer, or "
        "with a smaller training.learning_rate",
    )


def repetition(evidence: Evidence) -> Cause | None:
    """Find that many translations repeat themselves."""
    if evidence.probe is None:
        return None
    predictions = evidence.probe.predictions
    count = len(predictions)
    again = sum(prediction.repetition for prediction in predictions)
    if again < OFTEN * count:
        return None
    return Cause(
        "repetition",
        f"{again:,} of {count:,} translations say the same again and again"
        f"{_and(share_of_repeats(evidence.probe))}",
        HOW_TO_END_REPETITION,
    )


def cut_at_limit(evidence: Evidence) -> Cause | None:
    """Find that many translations were cut at the most tokens that the recipe allows.

    A source that was cut is another matter (`longer_than_read`).
    """
    if evidence.probe is None:
        return None
    predictions = evidence.probe.predictions
    count = len(predictions)
    limits = [one.output_limit for one in predictions if one.output_cut]
    cut = len(limits)
    if cut < OFTEN * count:
        return None
    config = evidence.probe.task.config
    ratio = config.decoding.max_len_ratio
    where = f"{ratio:g} times the tokens of their source and {config.decoding.max_len_extra:,} more"
    key = "decoding.max_len_ratio"
    if 2 * limits.count("model.max_len") > cut:
        # as `most_tokens` has it
        where = f"the {config.model.max_len - 1:,} tokens that the model can write"
        key = "model.max_len"
    return Cause(
        "cut-at-limit",
        f"{cut:,} of {count:,} translations were cut at {where}",
        f"train with a larger {key}; what does not end even so has not learned to",
    )


def too_short_or_long(evidence: Evidence) -> Cause | None:
    """Find that the translations, empty ones aside, are not as long as the references."""
    if evidence.probe is None:
        return None
    texts = _translations(evidence.probe)
    targets = in_forms_of(evidence.probe.task.tokenizers[1:], evidence.probe.text.tgt)
    pairs = [pair for pair in zip(texts, targets, strict=True) if pair[0]]
    written = sum(len(text) for text, _ in pairs)
    wanted = sum(len(target) for _, target in pairs)
    if not pairs or 0.75 <= written / wanted <= 1.35:
        return None
    decoding = evidence.probe.task.config.decoding
    penalty, beam_size = decoding.length_penalty, decoding.beam_size
    search = " --beam-size 5" if beam_size == 1 else ""
    how, direction = "long", "below"
    if written < wanted:
        how, direction = "short", "above"
    return Cause(
        f"too-{how}",
        f"the translations have {100 * written / wanted:.0f} % of the references' characters; the recipe's "
        f"length_penalty is {penalty:g}, its beam_size {beam_size}",
        f"are the targets of the training text so {how}, or was it trained too "
        f"briefly? then correct it or train longer; otherwise weft translate{search} --length-penalty "
        f"{direction} {penalty:g}",
    )


def _and(more: str) -> str:
    return f"; {more}" if more else ""


def _translations(probe: Probe) -> list[str]:
    return [prediction.text.strip() for prediction in probe.predictions]


def one_label(evidence: Evidence) -> Cause | None:
    """Find that a classifier gives nearly every text the same label."""
    labelling = evidence.labelling
    if labelling is None or not labelling.answers:
        return None
    count = len(labelling.rows)
    answered = Counter(answer.label for answer in labelling.answers)
    label, often = answered.most_common(1)[0]
    if often < 0.95 * count or labelling.most_frequent > 0.8 * count:
        return None
    weighing = weighing_of(evidence, labelling.counts)
    return Cause(
        "one-label",
        f'{often:,} of {count:,} texts are called "{label}", {labelling.accuracy:.0%} of all rightly',
        for_one_label(label, weighing),
    )


def for_one_label(label: str, weighing: Weighing) -> str:
    """Say what to do about a label that nearly every text is given."""
    if weighing.weights is None:
        return (
            "check the labels of the training text (weft check); if one of them is far more frequent, give "
            "training.class_weights a table in which each label has the inverse of its rows"
        )
    others = [other for other in weighing.rows if other != label]
    rarest = min(others, key=weighing.rows.__getitem__, default="")
    return weighing.advice([rarest], label)


def labels_out_of_balance(evidence: Evidence) -> Cause | None:
    """Find a label that the model names far too often, and one that it names far too seldom."""
    labelling = evidence.labelling
    if labelling is None or len(labelling.rows) < FEW_GIVEN:
        return None
    counts = labelling.counts
    return out_of_balance(counts, len(labelling.rows), weighing_of(evidence, counts))


def over_and_under(
    counts: Sequence[LabelCount], num_rows: int
) -> tuple[LabelCount, LabelCount] | None:
    """Return the labels that most rows too many, and too few, are given; None where few are."""
    surplus = [count.given - count.wanted for count in counts]
    if sum(more for more in surplus if more > 0) < FAR_OFF * num_rows:
        return None
    return counts[surplus.index(max(surplus))], counts[surplus.index(min(surplus))]


def out_of_balance(
    counts: Sequence[LabelCount], num_rows: int, weighing: Weighing
) -> Cause | None:
    """Compare how often each label is given with how often it is wanted, by rows."""
    both = over_and_under(counts, num_rows)
    if both is None:
        return None
    over, under = both
    missed = [count.label for count in counts if count.is_missed]
    remedy = weighing.advice(missed or [under.label], over.label)
    if not remedy:
        remedy = _without_weights(over, under, weighing, bool(missed))
    return Cause(
        "labels-out-of-balance",
        f'"{over.label}" is named {over.given:,} times and is the label of {over.wanted:,} of {num_rows:,} rows, '
        f'"{under.label}" is named {under.given:,} times and is the label of {under.wanted:,}',
        remedy,
    )


def _without_weights(
    over: LabelCount, under: LabelCount, weighing: Weighing, is_missed: bool
) -> str:
    """Say what to do about labels out of balance that the rows of training do not explain."""
    if is_missed:
        return weighing.unexplained()
    if over.wanted < under.wanted:
        return "check whether that label is as rare in the training text as in this text (weft check)"
    if weighing.is_known or weighing.weights is not None:
        return weighing.unexplained()
    return "train with training.class_weights=balanced as well, which gives rare labels more weight"


def labels_missed(evidence: Evidence) -> Cause | None:
    """Find labels whose rows in the text never get them, or hardly ever."""
    labelling = evidence.labelling
    if labelling is None or len(labelling.rows) < FEW_GIVEN:
        return None
    counts = labelling.counts
    both = over_and_under(counts, len(labelling.rows))
    over = both[0].label if both else ""
    return missed_labels(counts, [], weighing_of(evidence, counts), over)


def labels_missed_in_run(evidence: Evidence) -> Cause | None:
    """Find labels that are missed, by the run's test and dev text, where no text is given."""
    if evidence.labelling is not None:
        return None
    verdict = evidence.run.verdict or {}
    counts = counts_of_test(verdict.get("test") or {})
    right = {count.label for count in counts if count.right and not count.is_missed}
    figures = (verdict.get("judgement") or {}).get("figures") or {}
    never = [label for label in figures.get("never") or () if label not in right]
    return missed_labels(counts, never, weighing_of(evidence, counts))


def counts_of_test(scores: Mapping[str, Any]) -> list[LabelCount]:
    """Return the labels' rows in the scores of a run on test; none where they are not known.

    Where a text may have several labels, the scores do not say how many rows were given each.
    """
    counts = []
    confusion = scores.get("confusion") or []
    columns = [sum(column) for column in zip(*confusion, strict=True)]
    for place, score in enumerate(scores.get("per_class") or ()):
        wanted = score["support"]
        right = round(score["recall"] * wanted)
        given = columns[place] if columns else max(right, 1)
        counts.append(LabelCount(score["label"], wanted, given, right))
    return counts


def missed_labels(
    counts: Sequence[LabelCount],
    never_on_dev: Sequence[str],
    weighing: Weighing,
    over: str = "",
) -> Cause | None:
    """Say which labels are missed, by their rows on test, or as never answered on dev.

    `over` is a label that is named far too often.
    """
    missed = [count for count in counts if count.is_missed]
    said = [
        f'"{one.label}" ({one.right:,} of {one.wanted:,} rows right)' for one in missed
    ]
    labels = [count.label for count in missed]
    for label in never_on_dev:
        if label not in labels:
            labels.append(label)
            said.append(f'"{label}" (never answered on dev)')
    if not said:
        return None
    more = ""
    if len(said) > MOST_NAMED:
        more = f" and {len(said) - MOST_NAMED:,} more"
    return Cause(
        "labels-missed",
        f"labels whose rows never get them, or hardly ever: {', '.join(said[:MOST_NAMED])}{more}"
        f"{weighing.rows_in_words(labels)}",
        weighing.advice(labels, over) or weighing.unexplained(),
    )


def weighing_of(evidence: Evidence, counts: Sequence[LabelCount]) -> Weighing:
    """Return how the run weighed its labels, and their rows in its training text.

    Of a run that did not write these down its own test tells them, or else `counts` of a text.
    """
    task = evidence.task
    run = evidence.run
    weights = run.training.get("class_weights")
    is_multi = isinstance(task, Classification) and task.config.multi_label
    verdict = run.verdict or {}
    figures = (verdict.get("judgement") or {}).get("figures") or {}
    if rows := figures.get("rows"):
        return Weighing(rows, True, weights, is_multi)
    counts = counts_of_test(verdict.get("test") or {}) or counts
    rows = {count.label: count.wanted for count in counts}
    return Weighing(rows, False, weights, is_multi)
