"""The loss: cross-entropy with label smoothing, summed over real target tokens.

Sums, never means: the trainer divides once, by the tokens of the whole update.

Shapes: the legend in `weft.model.attention`, but N here is the target tokens of a batch, B x T.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.kernels import operations


@dataclass(frozen=True)
class LossSums:
    """Sums over the target tokens that are not padding, in nats; perplexity comes from `nll_sum`
    alone.
    """

    loss_sum: Tensor
    nll_sum: Tensor
    num_tokens: int


# rows of logits that are converted to float32 at a time: they fit into a CPU's cache
CHUNK_ROWS = 256
# on a GPU, where starting a kernel takes longer than what it does for so few
GPU_CHUNK_ROWS = 16_384


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy against a smoothed target (Vaswani et al. 2017, section 5.4).

    The true token has 1 - label_smoothing, padding has nothing, and the V - 2 other tokens share
    the rest (after Szegedy et al. 2016, section 7, where all labels share it, the true one too).
    The gradient is that of the Kullback-Leibler divergence to the same target; the values differ by
    the target's entropy.

    It has three forms, which differ by rounding alone. Training on a CPU takes the native kernel,
    `operations.cross_entropy`. Everywhere else (with training.kernels=torch, without native
    libraries, on a GPU and without gradients) it is `_chunk`. `smoothed_cross_entropy` is the plain
    form, the reference of the tests.

    With `r_drop` the batch has every row twice (`twice`), and `r_dropped` adds a term for how much
    the two predictions differ.
    """

    label_smoothing: float = 0.0
    pad_id: int = 0
    r_drop: float = 0.0

    def __call__(
        self,
        states: Float[Tensor, "B T D"],
        output: Callable[[Tensor], Tensor],
        tgt_out: Int[Tensor, "B T"],
        projection: nn.Linear | None = None,
    ) -> LossSums:
        """Compute the loss of the logits that `output` makes of the states.

        Pass the `projection` too where `output` only applies it: the native kernel needs its
        weights.
        """
        labels = tgt_out.flatten()
        num_tokens = int((tgt_out != self.pad_id).sum())
        if (
            projection
            and states.requires_grad
            and operations.is_native(states, projection.weight)
        ):
            rows = states.flatten(0, -2)
            loss, nll = operations.cross_entropy(
                rows,
                projection,
                labels,
                self.label_smoothing,
                self.pad_id,
                self.r_drop,
            )
            return LossSums(loss, nll, num_tokens // 2 if self.r_drop else num_tokens)
        logits = output(states).flatten(0, -2)
        loss, nll = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            logits, labels, self.label_smoothing, self.pad_id
        )
        sums = LossSums(loss, nll, num_tokens)
        if not self.r_drop:
            return sums
        return r_dropped(
            sums, _apart_in_chunks(logits, labels != self.pad_id), self.r_drop
        )


def twice(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Repeat the rows of each tensor after themselves; dropout will differ in the two copies."""
    return tuple(torch.cat([tensor, tensor]) for tensor in tensors)


def r_dropped(both: LossSums, apart: Tensor, weight: float) -> LossSums:
    """Return the loss of rows that are in the batch twice.

    It is the mean of both copies' losses, plus weight / 4 times `apart`.

    `apart` is the sum of both Kullback-Leibler divergences between the copies. This term is
    half of that of Wu et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equation 4,
    so that a loss is of the usual size.
    """
    return LossSums(
        both.loss_sum / 2 + apart * (weight / 4), both.nll_sum / 2, both.num_tokens // 2
    )


def divergence(
    first: Float[Tensor, "*N V"], second: Float[Tensor, "*N V"]
) -> Float[Tensor, "*N"]:
    """Compute KL(P || Q) + KL(Q || P) for two tensors of logits.

    It is the sum of (p - q)(log p - log q).
    """
    log_p = first.float().log_softmax(-1)
    log_q = second.float().log_softmax(-1)
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)


def _chunk_rows(logits: Tensor) -> int:
    return CHUNK_ROWS if logits.device.type == "cpu" else GPU_CHUNK_ROWS


def _apart_in_chunks(logits: Float[Tensor, "N V"], real: Tensor) -> Float[Tensor, ""]:
    """Return the divergence between the first half of the rows and the second, summed where they
    are `real`.

    Some rows at a time, computed again in backward: their probabilities never exist all at once.
    """
    first, second = logits.chunk(2)
    real, _ = real.chunk(2)

    def of(a: Tensor, b: Tensor, counted: Tensor) -> Tensor:
        return (divergence(a, b) * counted).sum()

    sums = []
    size = _chunk_rows(logits)
    for start in range(0, len(first), size):
        part = (x[start : start + size] for x in (first, second, real))
        sums.append(
            checkpoint(of, *part, use_reentrant=False, preserve_rng_state=False)
        )
    return torch.stack(sums).sum()


def smoothed_cross_entropy(
    logits: Float[Tensor, "N V"],
    labels: Int[Tensor, " N"],
    label_smoothing: float,
    pad_id: int = 0,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the loss and the unsmoothed loss, summed: the plain form, which the fast one is
    compared with.
    """
    log_probs = logits.float().log_softmax(-1)
    true = log_probs.gather(-1, labels[:, None]).squeeze(-1)
    others = log_probs.sum(-1) - log_probs[:, pad_id] - true
    share = label_smoothing / (logits.shape[-1] - 2)
    real = labels != pad_id
    nll = -true[real].sum()
    return (1 - label_smoothing) * nll - share * others[real].sum(), nll


class _ChunkedCrossEntropy(torch.autograd.Function):
    """`smoothed_cross_entropy` some rows at a time, its gradient made in the same pass over the
    logits.

    The float32 logits of a whole batch never exist, and no exponential is taken twice.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, label_smoothing: float, pad_id: int
    ) -> tuple[Tensor, Tensor]:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        sums = torch.zeros(2, device=logits.device)
        size = _chunk_rows(logits)
        for first in range(0, len(logits), size):
            rows = slice(first, first + size)
            sums += _chunk(
                logits[rows], labels[rows], label_smoothing, pad_id, gradient, rows
            )
        ctx.save_for_backward(*([] if gradient is None else [gradient]))
        ctx.mark_non_differentiable(nll := sums[1].clone())
        return sums[0].clone(), nll

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * scale, None, None, None


def _chunk(
    logits: Tensor,
    labels: Tensor,
    label_smoothing: float,
    pad_id: int,
    gradient: Tensor | None,
    rows: slice,
) -> Tensor:
    """Compute the loss and the unsmoothed loss of some rows.

    With `gradient`, write the gradient of these rows there, the probabilities less the
    `smoothed_target`.
    """
    share = label_smoothing / (logits.shape[-1] - 2)
    real = (labels != pad_id).float()
    x = logits.float()
    log_total = x.logsumexp(-1)
    true = x.gather(-1, labels[:, None]).squeeze(-1)
    # each of the V - 2 others is a logit less the logarithm of the total
    others = x.sum(-1) - x[:, pad_id] - true - (x.shape[-1] - 2) * log_total
    nll = ((log_total - true) * real).sum()
    if gradient is not None:
        # the probabilities, less what the target gives any other token
        p = (x - log_total[:, None]).exp_().sub_(share)
        # the target gives padding nothing: `share` is added again
        p[:, pad_id] += share
        # the target gives the true token 1 - label_smoothing, and `share` is already subtracted
        p.scatter_add_(
            -1,
            labels[:, None],
            p.new_full((len(labels), 1), share - 1 + label_smoothing),
        )
        # a row whose label is padding has no part in the loss
        gradient[rows] = p.mul_(real[:, None])
    return torch.stack(
        [(1 - label_smoothing) * nll - share * (others * real).sum(), nll]
    )


def smoothed_target(
    tgt_out: Int[Tensor, " N"], vocab_size: int, label_smoothing: float, pad_id: int = 0
) -> Float[Tensor, "N V"]:
    """Return the smoothed target distribution of each token; all zeros for padding.

    Source: Vaswani et al. 2017, section 5.4; the true token has no share of what is taken from it,
    as `CrossEntropy` says.
    """
    target = torch.full((len(tgt_out), vocab_size), label_smoothing / (vocab_size - 2))
    target[torch.arange(len(tgt_out)), tgt_out] = 1 - label_smoothing
    target[:, pad_id] = 0.0
    target[tgt_out == pad_id] = 0.0
    return target


@dataclass(frozen=True)
class ClassLoss:
    """Cross-entropy of whole texts, summed; the number of texts takes the place of that of tokens.

    One label per text: softmax, smoothed over all labels. The whole loss of a text, to its smoothed
    target, is multiplied by the weight of its own label: so that target is the best answer whatever
    the weights, which say only how much each text counts. (torch.nn.functional.cross_entropy weighs
    each label's share of the target by that label's weight; the best answer to a text is then a
    rare label, which it does not have.)

    Several labels: one yes or no for each, smoothed towards one half (Szegedy et al. 2016, section
    7, with two classes), summed over the labels, each times its weight, yes and no alike.

    `weights` should be 1 on average over the training texts. `nll_sum` is neither smoothed nor
    weighted. With `r_drop` the batch has every text twice, as for `CrossEntropy`.
    """

    label_smoothing: float = 0.0
    multi_label: bool = False
    weights: Tensor | None = None
    r_drop: float = 0.0

    def __call__(
        self,
        states: Float[Tensor, "B D"],
        output: Callable[[Tensor], Tensor],
        labels: Tensor,
    ) -> LossSums:
        logits = output(states).float()
        weights = None if self.weights is None else self.weights.to(logits.device)
        if self.multi_label:
            smooth = labels * (1 - self.label_smoothing) + self.label_smoothing / 2
            loss = F.binary_cross_entropy_with_logits(
                logits, smooth, weights, reduction="sum"
            )
            nll = F.binary_cross_entropy_with_logits(
                logits.detach(), labels, reduction="sum"
            )
        else:
            each = F.cross_entropy(
                logits, labels, reduction="none", label_smoothing=self.label_smoothing
            )
            loss = each.sum() if weights is None else (each * weights[labels]).sum()
            nll = F.cross_entropy(logits.detach(), labels, reduction="sum")
        sums = LossSums(loss, nll, len(labels))
        return (
            r_dropped(sums, self._apart(logits), self.r_drop) if self.r_drop else sums
        )

    def _apart(self, logits: Float[Tensor, "B C"]) -> Float[Tensor, ""]:
        """Compute how far both copies of the texts differ.

        Of a yes or no, the logits are those of yes against no's 0.
        """
        if self.multi_label:
            logits = torch.stack([logits, torch.zeros_like(logits)], dim=-1)
        first, second = logits.chunk(2)
        return divergence(first, second).sum()
