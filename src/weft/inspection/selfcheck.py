"""The proofs of `weft selfcheck`: tests hold them for small random models, this for a user's own.

Texts and outputs are made of random tokens: a proof says whether the model computes what it should,
not how well it has learned.

Two ways of computing one thing in float32 round differently, and a model magnifies what was
rounded: one with large weights by thousands. How far rounding carries in this very model is
measured against the same in float64; that many nats, several times over, and a thousandth at least,
two ways may be apart.
"""

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Hypothesis
from weft.inspection.tokens import padded
from weft.model.mode import evaluating
from weft.predict.classifier import Classification as Answer
from weft.predict.classifier import Classifier
from weft.predict.language_model import LanguageModel
from weft.predict.settings import BANNED
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation

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
# of each label, (texts, C)
Probabilities = NDArray[np.float64]
# logits at all positions at once
Read = Callable[[Sequence[Pair]], Float[Tensor, "B T V"]]


def selfcheck(task: TrainableTask[Any, Any, Any], seed: int = 1) -> list[Proof]:
    """Try every proof that the model's task has, on random tokens drawn from the seed.

    Where a weight is not a number, no other proof is tried.
    """
    draw = random.Random(seed)
    proofs = [_finite(task.model)]
    if not proofs[0].holds:
        return proofs
    with evaluating(task.model):
        if isinstance(task, TrainableTranslation):
            proofs += _of_translator(task, draw)
        elif isinstance(task, TrainableLanguageModelling):
            proofs += _of_language_model(task, draw)
        elif isinstance(task, TrainableClassification):
            proofs += _of_classifier(task, draw)
    return proofs


def _finite(model: torch.nn.Module) -> Proof:
    wrong = [
        name for name, weight in model.named_parameters() if not weight.isfinite().all()
    ]
    return Proof("every weight is a number", not wrong, ", ".join(wrong) or "all are")


def _of_translator(task: TrainableTranslation, draw: random.Random) -> Iterator[Proof]:
    model: Any = task.model  # of two kinds, each with a cache of its own
    device = torch.device(task.machine.device)
    translator = task.predictor()
    config = task.config
    src_rows = _rows(draw, config.src_vocab_size, config.max_src_len - 1)
    tgt_rows = _rows(draw, config.tgt_vocab_size, model.max_len - 1)
    sources = [[*ids, EOS_ID] for ids in src_rows]
    outputs = [[BOS_ID, *ids] for ids in tgt_rows]

    def read(pairs: Sequence[Pair], by: Any = model) -> Float[Tensor, "B T V"]:
        src = padded([src for src, _ in pairs]).to(_device_of(by))
        tgt = padded([tgt for _, tgt in pairs]).to(_device_of(by))
        return by(src, tgt)

    pairs = list(zip(sources, outputs, strict=True))
    allowed = _allowed(read, model, pairs)
    yield from _of_steps(
        model,
        pairs,
        read,
        lambda src: model.prefill(padded([src]).to(device)),
        allowed,
    )
    is_int8 = config.weights == "int8" and translator.engine is not None
    limit = ROUNDED if is_int8 else allowed
    yield from _of_searches(task, sources, read, limit)
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
    task: TrainableTranslation, sources: Sequence[Ids], read: Read, limit: float
) -> Iterator[Proof]:
    """Try what a search gives against what the model gives for its output, read at once."""
    without_shortlist = task.config.model_copy(update={"shortlist": "off"})
    translator = replace(task, config=without_shortlist).predictor()

    def logits(src: Ids, hypothesis: Hypothesis) -> Float[Tensor, "T V"]:
        return read([(src, [BOS_ID, *hypothesis.ids])])[0]

    greedy = [(src, translator.search(src, 1)) for src in sources]
    gap = max(_gap(logits(*pair), pair[1]) for pair in greedy)
    yield _close(
        "beam 1 = greedy: each token is the most probable one",
        gap,
        limit,
        sum(map(_size, greedy)),
    )
    best = [(src, translator.search(src)) for src in sources]
    error = max(_error(logits(*pair), pair[1]) for pair in best)
    yield _close(
        "probabilities of a search = the model's own",
        error,
        limit,
        sum(map(_size, best)),
    )


def _of_language_model(
    task: TrainableLanguageModelling, draw: random.Random
) -> Iterator[Proof]:
    model = task.model
    writer = task.predictor()
    longest = task.config.window_len - 1
    drawn = _rows(draw, task.config.vocab_size, longest)
    rows = [[writer.start_id, *ids] for ids in drawn]

    def read(pairs: Sequence[Pair], by: Any = model) -> Float[Tensor, "B T V"]:
        return by(padded([ids for _, ids in pairs]).to(_device_of(by)))

    pairs: list[Pair] = [([], ids) for ids in rows]
    allowed = _allowed(read, model, pairs)
    yield from _of_steps(model, pairs, read, lambda _: model.start(1), allowed)
    prompts = [task.tokenizers[0].decode(ids[1 : 1 + longest // 2]) for ids in rows]
    errors = [
        _greedy_error(writer, prompt, lambda ids: read([([], ids)])[0, -1], allowed)
        for prompt in prompts
    ]
    count = sum(count for _, count in errors)
    yield _close(
        "text written greedily is the model's own",
        max(error for error, _ in errors),
        allowed,
        count,
    )


def _of_classifier(
    task: TrainableClassification, draw: random.Random
) -> Iterator[Proof]:
    by_torch = replace(task, machine=replace(task.machine, plain=True))
    rows = _rows(draw, task.config.vocab_size, task.config.max_len)
    texts = [task.tokenizers[0].decode(ids) for ids in rows]
    alone, together = _probabilities(task.predictor(), texts)
    own_alone, own_together = _probabilities(by_torch.predictor(), texts)
    apart = max(_furthest(alone, together), _furthest(own_alone, own_together))
    how = f"{len(texts)} texts alone and together: probabilities differ by at most {apart:.1g}"
    yield Proof("padding and the batch change nothing", apart <= TOLERANCE, how)
    error = _furthest(alone, own_alone)
    how = f"{len(texts)} texts: probabilities differ by at most {error:.1g}"
    yield Proof("probabilities are the model's own", error <= TOLERANCE, how)


def _probabilities(
    classifier: Classifier, texts: Sequence[str]
) -> tuple[Probabilities, Probabilities]:
    """Return the probabilities of each text, each read alone, and all read together."""
    together = classifier.classify(texts)
    alone = [classifier.classify(text)[0] for text in texts]
    return _stacked(alone), _stacked(together)


def _stacked(answers: Sequence[Answer]) -> Probabilities:
    return np.array([list(answer.probabilities.values()) for answer in answers])


def _furthest(a: Probabilities, b: Probabilities) -> float:
    return float(np.abs(a - b).max())


def _allowed(
    read: Callable[[Sequence[Pair], Any], Float[Tensor, "B T V"]],
    model: Any,
    pairs: list[Pair],
) -> float:
    """Return the nats that two ways of computing one thing may be apart in this model, by what
    rounding does to it.
    """
    exact = copy.deepcopy(model).cpu().double()
    moved = 0.0
    for pair in pairs:
        rounded = _log_probs(read([pair], model))
        moved = max(moved, _largest(rounded - _log_probs(read([pair], exact))))
    return min(max(TOLERANCE, MAGNIFIED * moved), ROUNDED)


def _of_steps(
    model: Any,
    pairs: Sequence[Pair],
    read: Read,
    start: Callable[[Ids], Any],
    allowed: float,
) -> Iterator[Proof]:
    """Try what holds of every decoder, against each row read alone and at once."""
    at_once = [_log_probs(read([pair])[0]) for pair in pairs]
    count = sum(map(len, at_once))
    steps = [_log_probs(_step_by_step(model, start(src), ids)) for src, ids in pairs]
    yield _close(
        "cached = uncached: token by token as all at once",
        _apart(at_once, steps),
        allowed,
        count,
    )
    in_batch = [
        _log_probs(row[: len(ids)])
        for row, (_, ids) in zip(read(pairs), pairs, strict=True)
    ]
    yield _close(
        "padding and the batch change nothing",
        _apart(at_once, in_batch),
        allowed,
        count,
    )
    halves = [(len(ids) + 1) // 2 for _, ids in pairs]
    other = [
        (src, ids[:half] + ids[half:][::-1])
        for (src, ids), half in zip(pairs, halves, strict=True)
    ]
    before = [row[:half] for row, half in zip(at_once, halves, strict=True)]
    again = [
        _log_probs(read([pair])[0, :half])
        for pair, half in zip(other, halves, strict=True)
    ]
    yield _close(
        "what comes later is not seen", _apart(before, again), allowed, sum(halves)
    )


def _step_by_step(model: Any, cache: Any, ids: Ids) -> Float[Tensor, "T V"]:
    logits = []
    for i in ids:
        newest = torch.tensor([[i]], device=_device_of(model))
        states, cache = model.decode(newest, cache)
        logits.append(model.output(states)[0, 0])
    return torch.stack(logits)


def _greedy_error(
    writer: LanguageModel,
    prompt: str,
    logits: Callable[[Ids], Float[Tensor, " V"]],
    allowed: float,
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
        row = _log_probs(logits(ids))
        row[list(BANNED)] = -torch.inf
        top = row.topk(2)
        first, second = top.values.tolist()
        best = int(top.indices[0])
        error = max(error, abs(first - log_prob))
        if first - second < allowed:
            return error, place + 1
        ids.append(best)
    return error, len(log_probs)


def _gap(logits: Float[Tensor, "T V"], hypothesis: Hypothesis) -> float:
    """Return how much more probable than the chosen token another one is, at most, in nats."""
    rows = _log_probs(logits)
    rows[:, list(BANNED)] = -torch.inf
    chosen = _chosen(rows, hypothesis)
    return _largest(rows[: len(chosen)].amax(-1) - chosen) if len(chosen) else 0.0


def _error(logits: Float[Tensor, "T V"], hypothesis: Hypothesis) -> float:
    """Return how far the log-probabilities that a search gives are from the model's, at most."""
    chosen = _chosen(_log_probs(logits), hypothesis)
    if not len(chosen):
        return 0.0
    return _largest(chosen - torch.tensor(hypothesis.token_log_probs))


def _chosen(
    log_probs: Float[Tensor, "T V"], hypothesis: Hypothesis
) -> Float[Tensor, " T"]:
    """Return the log-probabilities of the tokens that a search chose."""
    ids = hypothesis.ids
    if hypothesis.finished:
        ids = [*ids, EOS_ID]
    return log_probs[torch.arange(len(ids)), torch.tensor(ids, dtype=torch.int64)]


def _size(pair: tuple[Ids, Hypothesis]) -> int:
    return len(pair[1].token_log_probs)


def _close(what: str, apart: float, limit: float, count: int) -> Proof:
    return Proof(
        what,
        apart <= limit,
        f"{count} tokens, apart by at most {apart:.1g} nats, {limit:.2g} allowed",
    )


def _apart(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    return max(_largest(a - b) for a, b in zip(first, second, strict=True))


def _largest(differences: Float[Tensor, "*N"]) -> float:
    """Return the largest difference; what is not a number is infinitely far from all."""
    return float(differences.abs().nan_to_num(torch.inf, torch.inf).max())


def _log_probs(logits: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    return logits.float().log_softmax(-1).cpu()


def _rows(draw: random.Random, vocab_size: int, longest: int) -> list[Ids]:
    """Draw rows of random tokens, of all lengths up to a sentence's."""
    ids = range(EOS_ID + 1, vocab_size)
    step = min(_LONGEST, longest) - 1
    lengths = [1 + place * step // (_COUNT - 1) for place in range(_COUNT)]
    return [draw.choices(ids, k=length) for length in lengths]


def _device_of(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device
