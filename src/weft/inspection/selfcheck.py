"""The proofs of `weft selfcheck`: tests hold them for small random models, this for a user's own.

Texts and outputs are made of random tokens: a proof says whether the model computes what it should,
not how well it has learned. What it should compute is said by a reference: the plain pass of the
model's weights in NumPy, or where PyTorch decodes the PyTorch model's own steps.

Two ways of computing one thing in float32 round differently, and a model magnifies what was
rounded: one with large weights by thousands. How far rounding carries in this very model is
measured against the reference in float64; that many nats, several times over, and a thousandth at
least, two ways may be apart.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.config import MarksSection
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Hypothesis
from weft.engine.batched import padded
from weft.inspection.reference import Decoder, Floats, Reference, plain_reference_of
from weft.predict.classifier import Classification as Answer
from weft.predict.classifier import Classifier
from weft.predict.language_model import LanguageModel
from weft.predict.settings import BANNED
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

# nats, or of a probability; far above rounding in any model that is well trained
TOLERANCE = 1e-3
# times what rounding was seen to do, to be allowed: an upper end of chance, seen in few rows
MAGNIFIED = 16.0
# nats, never more; an int8 engine rounds activations too, the model beside it does not
ROUNDED = 0.5
_COUNT, _LONGEST = 12, 24
_NEW_TOKENS = 16


@dataclass(frozen=True)
class Proof:
    """A claim about a model, whether it holds, and the numbers that say so."""

    what: str
    holds: bool
    evidence: str

    def lines(self) -> list[str]:
        """Return the claim for a person to read, and below it the numbers."""
        return [
            f"{'holds' if self.holds else 'FAILS'}  {self.what}",
            f"{'':7}{self.evidence}",
        ]


Ids = list[int]
# a source, none for a language model, and what was written, its start symbol first
Pair = tuple[Ids, Ids]
# of each label, (texts, C); log-probabilities or logits of each token, (T, V) of a row
Doubles = NDArray[np.float64]


def selfcheck(
    task: Task[Any, Any], reference: Reference | None = None, seed: int = 1
) -> list[Proof]:
    """Try every proof that the model's task has, on random tokens drawn from the seed.

    The reference is the plain NumPy pass where none is given. Where a weight is not a number, no
    other proof is tried.
    """
    draw = random.Random(seed)
    own = reference or plain_reference_of(task)
    all_named = ", ".join(own.broken) or "all are"
    proofs = [Proof("every weight is a number", not own.broken, all_named)]
    if own.broken:
        return proofs
    # what is broken enough gives infinities, which the proofs report
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(task, Translation):
            proofs += _of_translator(task, own, draw)
        elif isinstance(task, LanguageModelling):
            proofs += _of_language_model(task, own, draw)
        elif isinstance(task, Classification):
            proofs += _of_classifier(task, own, draw)
    return proofs


def _of_translator(
    task: Translation, reference: Reference, draw: random.Random
) -> Iterator[Proof]:
    own = reference.decoder
    assert own is not None
    # rows drawn by chance have whatever stands before them
    unmarked = {"marks": MarksSection(), "directions": ()}
    task = replace(task, config=task.config.model_copy(update=unmarked))
    translator = task.predictor()
    config = task.config
    src_rows = _rows(draw, config.src_vocab_size, config.max_src_len - 1)
    tgt_rows = _rows(draw, config.tgt_vocab_size, translator.max_len - 1)
    sources = [[*ids, EOS_ID] for ids in src_rows]
    outputs = [[BOS_ID, *ids] for ids in tgt_rows]
    pairs = list(zip(sources, outputs, strict=True))
    allowed = _allowed(reference, pairs)
    yield from _of_steps(own, pairs, allowed)
    is_int8 = config.weights == "int8" and translator.engine is not None
    limit = ROUNDED if is_int8 else allowed
    yield from _of_searches(task, own, sources, limit)
    decoded = [task.tokenizers[0].decode(src[:-1]) for src in sources]
    texts = list(dict.fromkeys(decoded))
    together = translator.translate(texts)
    alone = [translator.translate(text)[0] for text in texts]
    pairs_of_texts = list(zip(together, alone, strict=True))
    differ = sum(a.text != b.text for a, b in pairs_of_texts)
    apart = max(abs((a.score or 0.0) - (b.score or 0.0)) for a, b in pairs_of_texts)
    how = f"{len(texts)} texts alone and together: {differ} translations differ, scores by at most {apart:.1g}"
    holds = not differ and apart <= allowed
    yield Proof("a translation does not depend on its batch", holds, how)


def _of_searches(
    task: Translation, own: Decoder, sources: Sequence[Ids], limit: float
) -> Iterator[Proof]:
    """Try what a search gives against what the model gives for its output, read at once."""
    without_shortlist = task.config.model_copy(update={"shortlist": "off"})
    translator = replace(task, config=without_shortlist).predictor()

    def log_probs(src: Ids, hypothesis: Hypothesis) -> Doubles:
        return _read(own, (src, [BOS_ID, *hypothesis.ids]))

    greedy = [(src, translator.search(src, 1)) for src in sources]
    gap = max(_gap(log_probs(*pair), pair[1]) for pair in greedy)
    yield _close(
        "beam 1 = greedy: each token is the most probable one",
        gap,
        limit,
        sum(map(_size, greedy)),
    )
    best = [(src, translator.search(src)) for src in sources]
    error = max(_error(log_probs(*pair), pair[1]) for pair in best)
    yield _close(
        "probabilities of a search = the model's own",
        error,
        limit,
        sum(map(_size, best)),
    )


def _of_language_model(
    task: LanguageModelling, reference: Reference, draw: random.Random
) -> Iterator[Proof]:
    own = reference.decoder
    assert own is not None
    writer = task.predictor()
    longest = task.config.window_len - 1
    drawn = _rows(draw, task.config.vocab_size, longest)
    rows = [[writer.start_id, *ids] for ids in drawn]
    pairs: list[Pair] = [([], ids) for ids in rows]
    allowed = _allowed(reference, pairs)
    yield from _of_steps(own, pairs, allowed)
    prompts = [task.tokenizers[0].decode(ids[1 : 1 + longest // 2]) for ids in rows]
    errors = [_greedy_error(writer, own, prompt, allowed) for prompt in prompts]
    count = sum(count for _, count in errors)
    yield _close(
        "text written greedily is the model's own",
        max(error for error, _ in errors),
        allowed,
        count,
    )


def _of_classifier(
    task: Classification, reference: Reference, draw: random.Random
) -> Iterator[Proof]:
    assert reference.classifier is not None
    classifier = task.predictor()
    own = copy(classifier)
    own.model = reference.classifier
    rows = _rows(draw, task.config.vocab_size, task.config.max_len)
    texts = [task.tokenizers[0].decode(ids) for ids in rows]
    alone, together = _probabilities(classifier, texts)
    own_alone, own_together = _probabilities(own, texts)
    apart = max(_furthest(alone, together), _furthest(own_alone, own_together))
    how = f"{len(texts)} texts alone and together: probabilities differ by at most {apart:.1g}"
    yield Proof("padding and the batch change nothing", apart <= TOLERANCE, how)
    error = _furthest(alone, own_alone)
    how = f"{len(texts)} texts: probabilities differ by at most {error:.1g}"
    yield Proof("probabilities are the model's own", error <= TOLERANCE, how)


def _probabilities(
    classifier: Classifier, texts: Sequence[str]
) -> tuple[Doubles, Doubles]:
    """Return the probabilities of each text, each read alone, and all read together."""
    together = classifier.classify(texts)
    alone = [classifier.classify(text)[0] for text in texts]
    return _stacked(alone), _stacked(together)


def _stacked(answers: Sequence[Answer]) -> Doubles:
    return np.array([list(answer.probabilities.values()) for answer in answers])


def _furthest(a: Doubles, b: Doubles) -> float:
    return float(np.abs(a - b).max())


def _allowed(reference: Reference, pairs: Sequence[Pair]) -> float:
    """Return the nats that two ways of computing one thing may be apart in this model, by what
    rounding does to it.
    """
    assert reference.decoder is not None
    assert reference.exact is not None
    exact = reference.exact()
    moved = 0.0
    for pair in pairs:
        rounded = _read(reference.decoder, pair)
        moved = max(moved, _largest(rounded - _read(exact, pair)))
    return min(max(TOLERANCE, MAGNIFIED * moved), ROUNDED)


def _of_steps(own: Decoder, pairs: Sequence[Pair], allowed: float) -> Iterator[Proof]:
    """Try what holds of every decoder, against each row read alone and at once."""
    at_once = [_read(own, pair) for pair in pairs]
    count = sum(map(len, at_once))
    steps = [_read_step_by_step(own, pair) for pair in pairs]
    yield _close(
        "cached = uncached: token by token as all at once",
        _apart(at_once, steps),
        allowed,
        count,
    )
    yield _close(
        "padding and the batch change nothing",
        _apart(at_once, _read_together(own, pairs)),
        allowed,
        count,
    )
    halves = [(len(ids) + 1) // 2 for _, ids in pairs]
    before = [row[:half] for row, half in zip(at_once, halves, strict=True)]
    again = []
    for (src, ids), half in zip(pairs, halves, strict=True):
        other = ids[:half] + ids[half:][::-1]
        again.append(_read(own, (src, other))[:half])
    yield _close(
        "what comes later is not seen", _apart(before, again), allowed, sum(halves)
    )


def _read(own: Decoder, pair: Pair) -> Doubles:
    """Return the log-probabilities (T, V) after each token of a row, read at once."""
    (log_probs,) = _read_together(own, [pair])
    return log_probs


def _read_together(own: Decoder, pairs: Sequence[Pair]) -> list[Doubles]:
    """Return the log-probabilities (T, V) after each token of each row, all read at once."""
    rows = [ids for _, ids in pairs]
    start = own.start([src for src, _ in pairs])
    logits, _ = own.decode(padded(rows), start)
    together = zip(logits, rows, strict=True)
    return [_log_probs(row[: len(ids)]) for row, ids in together]


def _read_step_by_step(own: Decoder, pair: Pair) -> Doubles:
    """Return the log-probabilities (T, V) after each token of a row, read one after another."""
    src, ids = pair
    cache = own.start([src])
    found = []
    for token in ids:
        logits, cache = own.decode(np.array([[token]]), cache)
        found.append(logits[0, 0])
    return _log_probs(np.stack(found))


def _greedy_error(
    writer: LanguageModel, own: Decoder, prompt: str, allowed: float
) -> tuple[float, int]:
    """Return how far the writer's log-probabilities are from those of a model that reads all anew
    for each token, at most, and of how many tokens.

    Where two tokens are equally probable either may be chosen, and the rest is not compared.
    """
    ids = [writer.start_id, *writer.tokenizer.encode(prompt)]
    room = min(_NEW_TOKENS, writer.window_len - len(ids) + 1)
    more: Any = {
        "temperature": 0.0,
        "repetition_penalty": 1.0,
        "top_k": None,
        "top_p": None,
        "min_p": None,
    }
    written = writer.generate(prompt, max_new_tokens=max(room, 1), **more)
    log_probs = written.token_log_probs
    error = 0.0
    for place, log_prob in enumerate(log_probs if room > 0 else []):
        row = _read(own, ([], ids))[-1]
        row[list(BANNED)] = -np.inf
        second, first = np.partition(row, -2)[-2:]
        error = max(error, _largest(first - log_prob))
        if first - second < allowed:
            return error, place + 1
        ids.append(int(row.argmax()))
    return error, len(log_probs)


def _gap(log_probs: Doubles, hypothesis: Hypothesis) -> float:
    """Return how much more probable than the chosen token another one is, at most, in nats."""
    rows = log_probs.copy()
    rows[:, list(BANNED)] = -np.inf
    chosen = _chosen(rows, hypothesis)
    best = rows[: len(chosen)].max(-1)
    return _largest(best - chosen) if len(chosen) else 0.0


def _error(log_probs: Doubles, hypothesis: Hypothesis) -> float:
    """Return how far the log-probabilities that a search gives are from the model's, at most."""
    chosen = _chosen(log_probs, hypothesis)
    if not len(chosen):
        return 0.0
    return _largest(chosen - np.array(hypothesis.token_log_probs))


def _chosen(log_probs: Doubles, hypothesis: Hypothesis) -> Doubles:
    """Return the log-probabilities (T) of the tokens that a search chose."""
    ids = hypothesis.ids
    if hypothesis.finished:
        ids = [*ids, EOS_ID]
    return log_probs[np.arange(len(ids)), np.array(ids, np.int64)]


def _size(pair: tuple[Ids, Hypothesis]) -> int:
    return len(pair[1].token_log_probs)


def _close(what: str, apart: float, limit: float, count: int) -> Proof:
    return Proof(
        what,
        apart <= limit,
        f"{count} tokens, apart by at most {apart:.1g} nats, {limit:.2g} allowed",
    )


def _apart(first: Iterable[Doubles], second: Iterable[Doubles]) -> float:
    return max(_largest(a - b) for a, b in zip(first, second, strict=True))


def _largest(differences: Floats) -> float:
    """Return the largest difference; what is not a number is infinitely far from all."""
    sizes = np.abs(differences)
    return float(np.nan_to_num(sizes, nan=np.inf, posinf=np.inf).max())


def _log_probs(logits: Floats) -> Doubles:
    """Return the log-softmax of each row, in float64."""
    doubles = logits.astype(np.float64)
    below = doubles - doubles.max(-1, keepdims=True)
    total = np.exp(below).sum(-1, keepdims=True)
    return below - np.log(total)


def _rows(draw: random.Random, vocab_size: int, longest: int) -> list[Ids]:
    """Draw rows of random tokens, of all lengths up to a sentence's."""
    ids = range(EOS_ID + 1, vocab_size)
    step = min(_LONGEST, longest) - 1
    lengths = [1 + place * step // (_COUNT - 1) for place in range(_COUNT)]
    return [draw.choices(ids, k=length) for length in lengths]
