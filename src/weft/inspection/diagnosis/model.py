"""Causes that lie in the model: what it does with a text like that of its training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weft.data.check.rows import alike_in_words, alike_labels
from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.evidence import POOR_BLEU, Evidence
from weft.inspection.diagnosis.labelling import LabelCount
from weft.inspection.diagnosis.run import Run
from weft.inspection.diagnosis.sampling import FEW_GIVEN
from weft.inspection.probe import Probe
from weft.predict.prediction import HOW_TO_END_REPETITION
from weft.tasks.classification import Classification
from weft.tasks.translation import in_forms_of

_TABLE = (
    "a table of training.class_weights in which each label has the inverse of its rows"
)
FAR_OFF = 0.2  # surplus answers of some labels, as a share of all rows
# labels that are named
MOST_MISSED = 5
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
        "the model writes in the target language, but not what the source says",
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
        f"{again:,} of {count:,} translations say the same again and again",
        HOW_TO_END_REPETITION,
    )


def cut_at_limit(evidence: Evidence) -> Cause | None:
    """Find that many translations were cut at the most tokens that the recipe allows.

    A source that was cut is another matter (`longer_than_trained`).
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
        # bos takes a position
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
    remedy = (
        "check the labels of the training text (weft check); if one of them is far more frequent, give "
        "training.class_weights a table in which each label has the inverse of its rows"
    )
    return Cause(
        "one-label",
        f'{often:,} of {count:,} texts are called "{label}", {labelling.accuracy:.0%} of all rightly',
        _about_weights(evidence.run, label) or remedy,
    )


def labels_out_of_balance(evidence: Evidence) -> Cause | None:
    """Find a label that the model names far too often, and one that it names far too seldom."""
    labelling = evidence.labelling
    if labelling is None or len(labelling.rows) < FEW_GIVEN:
        return None
    return out_of_balance(labelling.given, labelling.wanted, evidence.run)


def out_of_balance(
    given: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], run: Run
) -> Cause | None:
    """Compare how often each label is given with how often it is wanted, by rows."""
    named = Counter(label for labels in given for label in labels)
    true = Counter(label for labels in wanted for label in labels)
    more = {label: named[label] - true[label] for label in sorted(named | true)}
    over = max(more, key=more.__getitem__)
    under = min(more, key=more.__getitem__)
    if sum(surplus for surplus in more.values() if surplus > 0) < FAR_OFF * len(wanted):
        return None
    alike = alike_labels(dict.fromkeys(more, 1))
    if any({over, under} & set(group) for group in alike):
        remedy = f"first unify labels that mean the same: {alike_in_words(alike)}"
    elif weighted := _about_weights(run, over, under):
        remedy = weighted
    elif true[over] < true[under]:
        remedy = "check whether that label is as rare in the training text as in this text (weft check)"
    else:
        remedy = "train with training.class_weights=balanced as well, which gives rare labels more weight"
    return Cause(
        "labels-out-of-balance",
        f'"{over}" is named {named[over]:,} times and is the label of {true[over]:,} of {len(wanted):,} rows, '
        f'"{under}" is named {named[under]:,} times and is the label of {true[under]:,}',
        remedy,
    )


def labels_missed(evidence: Evidence) -> Cause | None:
    """Find labels whose rows in the text never get them, or hardly ever."""
    labelling = evidence.labelling
    if labelling is None or len(labelling.rows) < FEW_GIVEN:
        return None
    return missed_labels(labelling.counts, [], evidence)


def labels_missed_in_run(evidence: Evidence) -> Cause | None:
    """Find labels that are missed, by the run's test and dev text, where no text is given."""
    if evidence.labelling is not None:
        return None
    verdict = evidence.run.verdict or {}
    counts = counts_of_test(verdict.get("test") or {})
    right = {count.label for count in counts if count.right and not count.is_missed}
    figures = (verdict.get("judgement") or {}).get("figures") or {}
    never = [label for label in figures.get("never") or () if label not in right]
    return missed_labels(counts, never, evidence)


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
    counts: Sequence[LabelCount], never_on_dev: Sequence[str], evidence: Evidence
) -> Cause | None:
    """Say which labels are missed, by their rows on test, or as never answered on dev."""
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
    if len(said) > MOST_MISSED:
        more = f" and {len(said) - MOST_MISSED:,} more"
    # the run's own test is like its training text, what is given need not be
    rows = _held_out_rows(evidence.run) or {one.label: one.wanted for one in counts}
    most = max(rows.values(), default=0)
    is_rare = all(2 * rows.get(count.label, 0) <= most for count in missed)
    return Cause(
        "labels-missed",
        f"labels whose rows never get them, or hardly ever: {', '.join(said[:MOST_MISSED])}{more}",
        _for_missed(labels, is_rare, evidence),
    )


def _for_missed(labels: Sequence[str], is_rare: bool, evidence: Evidence) -> str:
    """Say what to do about labels that are missed; `is_rare` where others have far more rows."""
    task = evidence.task
    alike = alike_labels(dict.fromkeys(task.labels, 1))
    if any(set(labels) & set(group) for group in alike):
        return f"first unify labels that mean the same: {alike_in_words(alike)}"
    if not is_rare:
        return _without_weights(evidence.run) or (
            "others do not have far more rows: are equal texts labelled otherwise (weft check finds them)? "
            "else train for longer, or on more such rows"
        )
    more = "train on more rows with these labels"
    if isinstance(task, Classification) and task.config.multi_label:
        return f"{more}, or for longer"
    weights = evidence.run.training.get("class_weights")
    if weights is None:
        return f"train with training.class_weights=balanced; where that is too mild, with {_TABLE}; or {more}"
    return _with_more_weight(evidence.run, more)


def _with_more_weight(run: Run, more: str) -> str:
    """Say what to do about rare labels that their weights do not help enough; `more` is the last
    resort.
    """
    if run.training.get("class_weights") == "balanced":
        return f"train with {_TABLE}: balanced is too mild here; or {more}"
    return more


def _held_out_rows(run: Run) -> dict[str, int]:
    """Count the rows of each label in the run's own test; none where that is not known."""
    test = (run.verdict or {}).get("test") or {}
    return {count.label: count.wanted for count in counts_of_test(test)}


def _about_weights(run: Run, over: str, under: str = "") -> str:
    """Say what to do about weights where one label is named too often, and perhaps another too
    seldom.

    Weights make rare labels more frequent: if the label that is named too often is a frequent one,
    they are too mild. Returns "" where there are none.
    """
    rows = _held_out_rows(run)
    others = [rows[label] for label in rows if label != over]
    least = rows.get(under, min(others, default=0))
    if rows.get(over, 0) > 2 * least and run.training.get("class_weights") is not None:
        of_them = f'the label "{under}"' if under else "the other labels"
        return _with_more_weight(run, f"train on more rows with {of_them}")
    return _without_weights(run)


def _without_weights(run: Run) -> str:
    """Say what to do about a label that is named too often where weights may be the cause.

    Returns "" where there are none.
    """
    weights = run.training.get("class_weights")
    if weights is None:
        return ""
    said = "balanced" if weights == "balanced" else "a table"
    return f"train without training.class_weights ({said} now), or with weights that differ less"
