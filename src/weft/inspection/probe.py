"""A translator tried with some pairs: its translations, and the loss of their targets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.console import stages
from weft.data.corpus import ParallelText
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from weft.engine.batched import padded
from weft.model.mode import evaluating
from weft.predict.prediction import Prediction
from weft.tasks.trainable_translation import TrainableTranslation

Ids = list[int]

_BATCH = 32


@dataclass(frozen=True)
class Probe:
    """A translator and some pairs; each figure is computed when it is first asked for."""

    task: TrainableTranslation
    text: ParallelText

    @cached_property
    def predictions(self) -> list[Prediction]:
        """Translate the sources, as `weft translate` does."""
        stages.enter(f"translating {len(self.text):,} pairs")
        translator = self.task.predictor()
        stream = translator.translate_stream(self.text.src, chunk=_BATCH)
        return list(stages.counted(stream, "pairs", every=1))

    @cached_property
    def bleu(self) -> float:
        """Score these translations."""
        return self.task.scores_of(self.text, self.predictions).bleu

    @cached_property
    def loss_and_end(self) -> tuple[float, float]:
        """Return the loss in nats a token, and the mean probability of eos at the true end."""
        src, tgt = self._encode()
        return self._loss(src, tgt)

    @cached_property
    def by_other_sources(self) -> float:
        """Return the loss of the targets beside the sources of other pairs."""
        src, tgt = self._encode()
        loss, _ = self._loss(src[1:] + src[:1], tgt)
        return loss

    @cached_property
    def exchanged(self) -> "Probe":
        """Return the same with each side taken for the other."""
        return Probe(self.task, exchanged(self.text))

    def _encode(self) -> tuple[list[Ids], list[Ids]]:
        """Encode both sides, cut to what the model reads, each row with its end symbol."""
        src_tokenizer, tgt_tokenizer = self.task.tokenizers
        src_limit = self.task.config.max_src_len - 1
        tgt_limit = self.task.model.max_len - 2
        marks = self.task.predictor().row_marks
        plain = _rows(src_tokenizer, self.text.src, src_limit)
        src = [[*marks, *row] for row in plain]
        tgt = _rows(tgt_tokenizer, self.text.tgt, tgt_limit)
        return src, tgt

    def _loss(self, src: Sequence[Ids], tgt: Sequence[Ids]) -> tuple[float, float]:
        """Return the loss in nats a target token, and the mean probability of the end symbols."""
        total = 0.0
        count = 0
        ends: list[float] = []
        stages.enter(f"finding what {len(tgt):,} targets cost")
        with evaluating(self.task.model):
            for first in range(0, len(src), _BATCH):
                stages.count(first, "pairs")
                last = first + _BATCH
                src_batch = src[first:last]
                tgt_batch = tgt[first:last]
                tgt_out = self._padded(tgt_batch)
                log_probs = self._log_probs(src_batch, tgt_batch, tgt_out)
                is_token = tgt_out != PAD_ID
                is_end = tgt_out == EOS_ID
                total -= float(log_probs[is_token].sum())
                count += int(is_token.sum())
                ends += log_probs[is_end].exp().tolist()
        loss = total / max(count, 1)
        end = sum(ends) / max(len(ends), 1)
        return loss, end

    def _log_probs(
        self, src: Sequence[Ids], tgt: Sequence[Ids], tgt_out: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        """Return the log-probability of each target token."""
        tgt_in = self._padded([[BOS_ID, *row[:-1]] for row in tgt])
        logits = self.task.model(self._padded(src), tgt_in)
        log_probs = logits.float().log_softmax(-1)
        chosen = log_probs.gather(-1, tgt_out[..., None])
        return chosen.squeeze(-1)

    def _padded(self, rows: Sequence[Ids]) -> Int[Tensor, "B L"]:
        return torch.from_numpy(padded(rows)).to(self.task.machine.device)


def exchanged(text: ParallelText) -> ParallelText:
    """Return the same with its sides exchanged."""
    return replace(text, src=text.tgt, tgt=text.src)


def _rows(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[Ids]:
    encoded = tokenizer.encode_batch(list(texts))
    return [[*ids[:limit], EOS_ID] for ids in encoded]
