"""Causes that lie in the use: text that the model was not made for, or too little of it."""

from collections import Counter
from collections.abc import Sequence

from weft.data.base import spread
from weft.data.check.finding import counted
from weft.data.check.parts import WARN_SHARE
from weft.data.labelled import label_counts
from weft.data.tokenizer import SMALLEST, UNK_ID, Tokenizer
from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.data import labels_not_judged
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.sampling import FEW_GIVEN, MOST_ROWS

# of a text's bytes; more is suspicious
SPELLED = {"word": 0.15, "character": 0.05, "bpe": 0.5, "unigram": 0.5}

OTHER_LANGUAGE = 0.5  # above it, the text may be of another language


def wrong_direction(evidence: Evidence) -> Cause | None:
    """Find that a text's sides stand the other way round than a translator has them."""
    if not evidence.is_exchanged or evidence.probe_as_given is None:
        return None
    loss, _ = evidence.probe_as_given.loss_and_end
    swapped, _ = evidence.probe_as_given.exchanged.loss_and_end
    config = evidence.probe_as_given.task.config
    return Cause(
        "wrong-direction",
        f"with its sides exchanged the text costs {swapped:.2f} nats a token, not {loss:.2f}",
        f"the model translates {config.src_lang} to {config.tgt_lang}; give the text in that order. The other "
        "causes are about the text with its sides exchanged",
    )


def contaminated_test(evidence: Evidence) -> Cause | None:
    """Find that more than 1 % of the text was trained on: below that no score moves by a point.

    It is the share from which on weft check warns of it.
    """
    if evidence.given is None or evidence.trained_on is None:
        return None
    task = evidence.task
    rows = task.overlap_rows(evidence.text)
    shared = evidence.trained_on.shared(rows)
    lengths = [sum(map(len, row)) for row in rows]
    share_of_rows = len(shared) / max(len(rows), 1)
    # one document may be most of a text
    share_of_text = sum(lengths[i] for i in shared) / max(sum(lengths), 1)
    if max(share_of_rows, share_of_text) <= WARN_SHARE:
        return None
    notes = task.shared_rows(evidence.text, evidence.trained_on)
    return Cause(
        "contaminated-test",
        notes[0].removeprefix("contaminated: "),
        "score the model on text that was not trained on; weft check finds such rows before training",
    )


def unknown_words(evidence: Evidence) -> Cause | None:
    """Find that a text, or its source side, is mostly spelled byte by byte."""
    return _unknown_words_of_side(evidence, 0)


def unknown_target_words(evidence: Evidence) -> Cause | None:
    """Find that a text's target side is mostly spelled byte by byte."""
    return _unknown_words_of_side(evidence, 1)


def _unknown_words_of_side(evidence: Evidence, number: int) -> Cause | None:
    if evidence.given is None:
        return None
    sides = evidence.task.sides(evidence.text)
    if number >= len(sides):
        return None
    name, tokenizer, texts = sides[number]
    kind = tokenizer.settings.kind
    places = spread(len(texts), MOST_ROWS)
    share = spelled_share(tokenizer, [texts[i] for i in places])
    if not share > SPELLED.get(kind, 1):
        return None
    remedy = "train with tokenizer.kind=bpe, which cuts rare words into pieces that it has learned"
    if kind in ("bpe", "unigram"):
        remedy = "train with text of this kind too"
    if share > OTHER_LANGUAGE:
        remedy += "; or is this another language than the model was trained on?"
    return Cause(
        "unknown-words",
        f"{share:.0%} of the bytes of the {name} are spelled one by one: the tokenizer ({kind}, "
        f"{tokenizer.vocab_size:,} entries) has not learned these words",
        remedy,
    )


def spelled_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Return the share of the texts' bytes that are tokens of their own."""
    counts = Counter(i for row in tokenizer.encode_batch(list(texts)) for i in row)
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    num_bytes = max(sum(map(len, encoded)), 1)
    if tokenizer.settings.kind == "character":
        spelled = [i for i in counts if UNK_ID < i < SMALLEST]
    else:
        spelled = [i for i in counts if len(tokenizer.spell([i]).strip()) == 1]
    return sum(counts[i] for i in spelled) / num_bytes


def unknown_labels(evidence: Evidence) -> Cause | None:
    """Find labels of the text that a classifier does not have."""
    if evidence.labelling is None or not evidence.labelling.unknown:
        return None
    first, *others = evidence.labelling.unknown
    more = ""
    if others:
        more = f"; the same holds for {counted(len(others), 'other labels')}"
    return Cause("unknown-labels", f"{first.message}{more}", first.remedy)


def longer_than_read(evidence: Evidence) -> Cause | None:
    """Find sources that are longer than a translator reads at once."""
    if evidence.probe is None:
        return None
    task, sources = evidence.probe.task, evidence.probe.text.src
    limit = task.config.max_src_len - 1
    encoded = task.tokenizers[0].encode_batch(sources)
    long = sum(len(ids) > limit for ids in encoded)
    if long <= 0.05 * len(sources):
        return None
    return Cause(
        "longer-than-read",
        f"{long:,} of {len(sources):,} sources have more than the {limit:,} tokens that the model reads at once",
        f"train with a larger {task.config.limiting_key}, or split the text into sentences",
    )


def labels_not_in_text(evidence: Evidence) -> Cause | None:
    """Find labels of a classifier that the text has no row of.

    A text with labels that the model does not have is of another kind, which is said.
    """
    task = evidence.task
    if evidence.given is None or not task.labels:
        return None
    counts = label_counts(evidence.text)
    known = task.labels
    absent = [label for label in known if label not in counts]
    if not absent or not counts.keys() <= set(known):
        return None
    remedy = "give text with rows of each label"
    return labels_not_judged(absent, task, "the text", remedy)


def few_rows_given(evidence: Evidence) -> Cause | None:
    """Find that the text has few rows; of a language model's documents one may be enough."""
    task = evidence.task
    if evidence.given is None or not task.few_rows:
        return None
    count = len(evidence.given)
    if count >= FEW_GIVEN:
        return None
    return Cause(
        "few-rows-given",
        f"the text has {counted(count, task.unit)}: what they show, or do not show, may be chance",
        "give 100 or more",
    )
