"""A translator tried with some pairs: what it writes, and what their targets cost it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from weft.console import stages
from weft.data.corpus import ParallelText
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from weft.predict.prediction import Prediction
from weft.predict.text import evaluating
from weft.tasks.translation import Translation

_BATCH = 32


@dataclass(frozen=True)
class Probe:
    """What a translator does with some pairs; each figure is found when it is first asked for."""

    task: Translation
    text: ParallelText

    @cached_property
    def predictions(self) -> list[Prediction]:
        """As `weft translate` gives them."""
        stages.enter(f"translating {len(self.text):,} pairs")
        found = self.task.predictor().translate_stream(self.text.src, chunk=_BATCH)
        return list(stages.counted(found, "pairs", every=1))

    @cached_property
    def bleu(self) -> float:
        """Of these translations."""
        return self.task.scores_of(self.text, self.predictions).bleu

    @cached_property
    def own(self) -> tuple[float, float]:
        """Loss in nats a token, and the mean probability of the end where it is."""
        return self._loss(self._rows(self.text.src, 0), self._rows(self.text.tgt, -1))

    @cached_property
    def by_other_sources(self) -> float:
        """The loss of the targets beside the sources of other pairs."""
        src = self._rows(self.text.src, 0)
        return self._loss(src[1:] + src[:1], self._rows(self.text.tgt, -1))[0]

    @cached_property
    def exchanged(self) -> "Probe":
        """The same with each side taken for the other."""
        return Probe(self.task, exchanged(self.text))

    def _rows(self, texts: Sequence[str], side: int) -> list[list[int]]:
        tokenizer = self.task.tokenizers[side]
        limit = (
            self.task.config.max_src_len - 1
            if side == 0
            else self.task.model.max_len - 2
        )
        return [[*ids[:limit], EOS_ID] for ids in tokenizer.encode_batch(list(texts))]

    def _loss(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]]
    ) -> tuple[float, float]:
        total, count, ends = 0.0, 0, []
        device = torch.device(self.task.machine.device)
        stages.enter(f"finding what {len(tgt):,} targets cost")
        with evaluating(self.task.model):
            for first in range(0, len(src), _BATCH):
                some = slice(first, first + _BATCH)
                stages.count(first, "pairs")
                out = _padded(tgt[some]).to(device)
                begun = _padded([[BOS_ID, *row[:-1]] for row in tgt[some]]).to(device)
                logits = self.task.model(_padded(src[some]).to(device), begun)
                found = (
                    logits.float().log_softmax(-1).gather(-1, out[..., None])[..., 0]
                )
                total -= float(found[out != PAD_ID].sum())
                count += int((out != PAD_ID).sum())
                ends += found[out == EOS_ID].exp().tolist()
        return total / max(count, 1), sum(ends) / max(len(ends), 1)


def exchanged(text: ParallelText) -> ParallelText:
    """Return the same with its sides exchanged."""
    return replace(text, src=text.tgt, tgt=text.src)


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD_ID] * (width - len(row))] for row in rows])
