"""How wrong the logits are: cross-entropy with label smoothing, summed over real target tokens.

Sums, never means: the trainer divides once, by the tokens of the whole update.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class LossSums:
    """Sums over the target tokens that are not padding, in nats; perplexity comes from `nll_sum` alone."""

    loss_sum: Tensor
    nll_sum: Tensor
    num_tokens: int


Loss = Callable[[Tensor, Callable[[Tensor], Tensor], Tensor], LossSums]


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy against a smoothed target.

    The true token has 1 - label_smoothing, padding has nothing, and the V - 2 other tokens share the rest
    (Szegedy et al. 2016, section 7, with padding left out). The gradient is that of the Kullback-Leibler
    divergence to the same target; the values differ by the target's entropy.
    """

    label_smoothing: float = 0.0
    pad_id: int = 0

    def __call__(
        self,
        states: Float[Tensor, "B T D"],
        output: Callable[[Tensor], Tensor],
        tgt_out: Int[Tensor, "B T"],
    ) -> LossSums:
        real = tgt_out != self.pad_id
        log_probs = output(states).float().log_softmax(-1)
        true = log_probs.gather(-1, tgt_out[..., None]).squeeze(-1)
        nll = -true.masked_fill(~real, 0.0).sum()
        loss = nll
        if self.label_smoothing:
            others = log_probs.sum(-1) - log_probs[..., self.pad_id] - true
            share = self.label_smoothing / (log_probs.shape[-1] - 2)
            loss = (1 - self.label_smoothing) * nll - share * others.masked_fill(~real, 0.0).sum()
        return LossSums(loss, nll.detach(), int(real.sum()))


def smoothed_target(
    tgt_out: Int[Tensor, " N"], vocab_size: int, label_smoothing: float, pad_id: int = 0
) -> Float[Tensor, "N V"]:
    """The target distribution itself, a row a token; a padded row is all zeros."""
    target = torch.full((len(tgt_out), vocab_size), label_smoothing / (vocab_size - 2))
    target[torch.arange(len(tgt_out)), tgt_out] = 1 - label_smoothing
    target[:, pad_id] = 0.0
    target[tgt_out == pad_id] = 0.0
    return target
