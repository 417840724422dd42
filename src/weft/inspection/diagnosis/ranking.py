"""The causes in the order of their rank, and which of them keep others from being told.

To add a cause, write a function `(evidence) -> Cause | None` in the module of its kind and put it
into CAUSES.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.data import (
    label_variants,
    labels_not_in_dev,
    labels_with_few_rows,
    too_little_text,
)
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.model import (
    cut_at_limit,
    empty_translations,
    knows_nothing,
    labels_missed,
    labels_missed_in_run,
    labels_out_of_balance,
    no_end_symbol,
    one_label,
    one_translation,
    repetition,
    source_ignored,
    too_short_or_long,
)
from weft.inspection.diagnosis.training import (
    few_of_usual_steps,
    few_passes,
    long_warm_up,
    not_judged,
    not_learning,
    over_fitting,
    too_few_steps,
    unstable,
)
from weft.inspection.diagnosis.use import (
    contaminated_test,
    few_rows_given,
    labels_not_in_text,
    longer_than_read,
    unknown_labels,
    unknown_target_words,
    unknown_words,
    wrong_direction,
)

Find = Callable[[Evidence], Cause | None]

# By the run's own figures.
OF_RUN: Sequence[Find] = (
    too_few_steps,
    not_learning,
    unstable,
    long_warm_up,
    over_fitting,
    few_passes,
    too_little_text,
)
# The gravest first.
CAUSES: Sequence[Find] = (
    label_variants,
    labels_not_in_dev,
    not_judged,
    wrong_direction,
    contaminated_test,
    unknown_words,
    unknown_target_words,
    *OF_RUN,
    few_of_usual_steps,
    knows_nothing,
    source_ignored,
    no_end_symbol,
    empty_translations,
    one_translation,
    repetition,
    cut_at_limit,
    too_short_or_long,
    longer_than_read,
    unknown_labels,
    one_label,
    labels_out_of_balance,
    labels_missed,
    labels_missed_in_run,
    labels_with_few_rows,
    labels_not_in_text,
    few_rows_given,
)

# Rule 1. The run's figures explain bad results, so they are not held against a model that has none;
# nor against one that does badly on a text of another kind than that of its training, which these
# causes tell. Where the run was scored on dev or test, that decides, and not the text.
OF_OTHER_TEXT: Sequence[Find] = (
    unknown_words,
    unknown_target_words,
    longer_than_read,
    unknown_labels,
)

# What any model does that has learned little.
_UNTRAINED = {knows_nothing, source_ignored, no_end_symbol}
# Rule 2. A cause that explains others keeps them from being told. Each stands in CAUSES before
# those that it hides.
HIDES: Mapping[Find, Collection[Find]] = {
    # how far a loss has come says nothing of a run that was not at its end
    too_few_steps: {
        *(not_learning, unstable, few_passes, few_of_usual_steps),
        *_UNTRAINED,
    },
    not_learning: {unstable, few_passes, *_UNTRAINED},
    # where the losses say what is wrong, the number of passes is beside the point
    unstable: {few_passes},
    long_warm_up: {few_passes},
    # one of them says it
    few_passes: {few_of_usual_steps},
    over_fitting: {few_passes},
    # who knows nothing of a target knows nothing of its source
    knows_nothing: {source_ignored},
    # what repeats itself goes on up to the limit
    repetition: {cut_at_limit},
    # one label everywhere is named too often
    one_label: {labels_out_of_balance, labels_missed, labels_missed_in_run},
}

# Rule 3. What an earlier cause says in the same words is not said again: a run that ended in its
# warm-up had too few steps by that evidence, and its long warm-up is no second cause.

# Rule 4 stands in Evidence, for it changes what all causes are told from: where a text's sides are
# the wrong way round, that is said, and all else is told of the text with its sides exchanged.


def find_causes(evidence: Evidence) -> list[Cause]:
    """Return the causes found, the gravest first."""
    # the model is tried in any case
    is_poor = evidence.is_poor_on_text and not _is_other_text(evidence)
    if evidence.is_poor_by_run is not None:
        is_poor = evidence.is_poor_by_run
    causes = CAUSES
    if not is_poor:
        causes = [find for find in CAUSES if find not in OF_RUN]
    return _find(causes, evidence)


def find_causes_by_run(evidence: Evidence) -> list[Cause]:
    """Return what the run's figures alone say of a model that does badly, the gravest first."""
    return _find(OF_RUN, evidence)


def _find(causes: Sequence[Find], evidence: Evidence) -> list[Cause]:
    """Return those of the causes that are found and that no earlier one keeps from being told."""
    found: list[Cause] = []
    hidden: set[Find] = set()
    for find in causes:
        cause = None if find in hidden else find(evidence)
        if cause is None or any(cause.evidence in other.evidence for other in found):
            continue
        found.append(cause)
        hidden.update(HIDES.get(find, ()))
    return found


def _is_other_text(evidence: Evidence) -> bool:
    """Return whether the text is of another kind than the one that the model was trained on."""
    return any(find(evidence) is not None for find in OF_OTHER_TEXT)
