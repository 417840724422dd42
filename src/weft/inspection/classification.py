"""A classifier at work on a text: its vectors, the attention of all layers and heads, and what each
token adds.

Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.tokenizer import BOS_ID
from weft.inspection.tokens import (
    MAX_TOKENS,
    Vectors,
    embedded,
    rounded,
    some_text,
    stacked,
)
from weft.model.attention import AttentionRecord
from weft.model.classifier import TransformerClassifier
from weft.model.mode import evaluating
from weft.predict.text import one_line
from weft.tasks.trainable_classification import TrainableClassification

MAX_LABELS = 5  # whose contributions are computed


@dataclass(frozen=True, eq=False)
class Contributions:
    """The amounts that the tokens of a text add to the log-probability of a label.

    `gradient` is the sum of gradient times vector over the token's numbers, wherever its vector
    enters; that of an n-gram is shared by its tokens (Simonyan et al. 2013, "Deep Inside
    Convolutional Networks"; Denil et al. 2014, "Extraction of Salient Sentences"). `left_out` is by
    how much the log-probability falls where the token is not there; `agreement` is the correlation
    of the two, None where it is not defined. Of a symbol at the beginning, which cannot be left
    out, `left_out` is 0.
    """

    label: str
    gradient: list[float]
    left_out: list[float]
    agreement: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, rounded to four decimals."""
        return {
            "label": self.label,
            "gradient": rounded(self.gradient),
            "left_out": rounded(self.left_out),
            "agreement": None if self.agreement is None else round(self.agreement, 4),
        }


@dataclass(frozen=True, eq=False)
class ClassificationInspection:
    """A text and its label.

    `labels` and `probabilities` are all of them, the most probable first; `contributions` are those
    of the first ones. `encoder` has the maps, of shape (layers, H, L, L), none for a model that is
    a bag of n-grams alone.
    """

    text: str
    lang: str
    ids: list[int]
    pieces: list[str]
    labels: list[str]
    probabilities: list[float]
    contributions: list[Contributions]
    encoder: Float[Tensor, "layers H L L"]
    vectors: Vectors
    max_len: int
    cut: bool
    # the tokens of the longest n-grams that have vectors of their own; 1 for none
    ngrams: int = 1

    @property
    def notes(self) -> list[str]:
        """Say what a reader must know beside it."""
        alone = f"the text was cut after {self.max_len} tokens; what is shown, the label too, is of these alone"
        return [alone] if self.cut else []

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; numbers are rounded to four decimals."""
        return {
            "task": "classification",
            "text": self.text,
            "lang": self.lang,
            "cut": self.cut,
            "max_len": self.max_len,
            "ngrams": self.ngrams,
            "tokens": {
                "pieces": self.pieces,
                "ids": self.ids,
                "vectors": self.vectors.to_json(),
            },
            "labels": [
                {"label": label, "probability": round(p, 4)}
                for label, p in zip(self.labels, self.probabilities, strict=True)
            ],
            "contributions": [c.to_json() for c in self.contributions],
            "attention": {"encoder": rounded(self.encoder.tolist())},
        }


def inspect_classification(
    task: TrainableClassification, text: str
) -> ClassificationInspection:
    """Classify a text and look at the model meanwhile.

    A text of more than `MAX_TOKENS` tokens is cut there, or where the model's own limit comes
    first. Raises UsageError for a text with nothing in it.
    """
    (tokenizer,) = task.tokenizers
    model = task.model
    config = task.config
    line, ids = some_text(one_line(text), tokenizer)
    first = [BOS_ID] if task.predictor().first_token else []
    limit = min(MAX_TOKENS, config.max_len)
    row = [*first, *ids[:limit]]
    record = AttentionRecord()
    # not below, where gradients could not be taken
    batch = torch.tensor([row], device=task.machine.device)
    with evaluating(model):
        logits = model(batch, record)
        shares = logits.sigmoid() if config.multi_label else logits.softmax(-1)
        probabilities = shares[0].float().cpu()
        order = probabilities.argsort(descending=True, stable=True).tolist()
        left_out = _left_out(task, row, len(first))
        vectors = _vectors(model, batch)
    with torch.enable_grad():
        gradients = [_gradient(task, batch, label) for label in order[:MAX_LABELS]]
    return ClassificationInspection(
        text=line,
        lang=config.lang,
        ids=row,
        pieces=tokenizer.pieces(row),
        labels=[config.labels[i] for i in order],
        probabilities=[float(probabilities[i]) for i in order],
        contributions=[
            Contributions(
                config.labels[i],
                g.tolist(),
                left_out[:, i].tolist(),
                _agreement(g, left_out[:, i]),
            )
            for i, g in zip(order, gradients, strict=False)
        ],
        encoder=stacked(record.encoder),
        vectors=vectors,
        max_len=limit,
        cut=len(ids) > limit,
        ngrams=1 if model.bag is None else config.model.ngrams,
    )


def _log_probs(
    task: TrainableClassification, logits: Float[Tensor, "B C"]
) -> Float[Tensor, "B C"]:
    """Return each label's log-probability: to be the one, or, of several, to hold."""
    logits = logits.float()
    if task.config.multi_label:
        return torch.nn.functional.logsigmoid(logits)
    return logits.log_softmax(-1)


def _left_out(
    task: TrainableClassification, row: list[int], fixed: int
) -> Float[Tensor, "L C"]:
    """Compute how far each label's log-probability falls where a token is missing.

    The first `fixed` tokens cannot be left out.
    """
    device = torch.device(task.machine.device)
    full = _log_probs(task, task.model(torch.tensor([row], device=device)))
    falls = torch.zeros(len(row), full.shape[1])
    if len(row) > 1:
        rows = [row[:i] + row[i + 1 :] for i in range(fixed, len(row))]
        shorter = torch.tensor(rows, device=device)
        falls[fixed:] = (full - _log_probs(task, task.model(shorter))).cpu()
    return falls


def _gradient(
    task: TrainableClassification, ids: Int[Tensor, "1 L"], label: int
) -> Float[Tensor, " L"]:
    """Compute gradient times vector of each token, through the layers and through the bag."""
    model = task.model
    seen: list[Tensor] = []
    hooks = []
    if model.encoder is not None:
        hooks.append(
            model.encoder.embedding.tokens.register_forward_hook(
                lambda *call: seen.append(call[2])
            )
        )
    was_training = model.training
    model.eval()
    try:
        states = model.states(ids)
        value = _log_probs(task, model.output(states))[0, label]
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    total = torch.zeros(ids.shape[1])
    if seen:
        (to_vectors,) = torch.autograd.grad(value, seen, retain_graph=True)
        total += (to_vectors * seen[0])[0].sum(-1).float().cpu().detach()
    if model.bag is not None:
        (to_states,) = torch.autograd.grad(value, states)
        total += _of_bag(model, ids, to_states[0, -model.bag.tokens.embedding_dim :])
    return total


def _of_bag(
    model: TransformerClassifier, ids: Int[Tensor, "1 L"], gradient: Float[Tensor, " D"]
) -> Float[Tensor, " L"]:
    """Return each token's share in the bag; that of an n-gram is divided among its tokens.

    The bag is a mean, so that each vector's share is exact. Where none of the n-grams has a weight,
    as in a text of unknown words, nothing has a share.
    """
    bag = model.bag
    assert bag is not None
    total = torch.zeros(ids.shape[1], device=ids.device)
    sum_of_weights = torch.zeros((), device=ids.device)
    for lookup in bag.lookups(ids):
        weights = lookup.weights()[0]
        shares = (lookup.table[lookup.rows[0]] @ gradient).detach() * weights
        sum_of_weights += weights.sum()
        for offset in range(lookup.n):
            total[offset : offset + len(shares)] += shares / lookup.n
    return total.float().cpu() / (float(sum_of_weights) or 1.0)


def _vectors(model: TransformerClassifier, ids: Int[Tensor, "1 L"]) -> Vectors:
    if model.encoder is not None:
        return embedded(model.encoder.embedding, ids)
    assert model.bag is not None
    return Vectors(model.bag.tokens(ids)[0].float().cpu(), None)


def _agreement(a: Float[Tensor, " L"], b: Float[Tensor, " L"]) -> float | None:
    """Compute Pearson's correlation; None where it is not defined, or of too few tokens."""
    if len(a) < 3 or a.std() == 0 or b.std() == 0:
        return None
    return float(torch.corrcoef(torch.stack([a, b]))[0, 1])
