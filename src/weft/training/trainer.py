"""The order of events: take a step; log, evaluate and save when due; stop when done.

It is handed model, batches, loss and optimizer ready-made and knows nothing of text.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Generic, Protocol, TypeVar

import torch
from torch import nn

from weft.config import TrainingSection
from weft.errors import DivergedError, FolderError, Interrupted, OutOfMemoryError
from weft.training.checkpoint import Checkpoints, Progress, State, random_tensors, set_random_tensors
from weft.training.log import Log, StepFacts
from weft.training.loss import LossSums
from weft.training.optimizer import load_optimizer_tensors, optimizer_tensors, set_learning_rate


class Batch(Protocol):
    """One micro-batch; its tokens are counted without padding."""

    @property
    def num_src_tokens(self) -> int: ...
    @property
    def num_tgt_tokens(self) -> int: ...
    def describe(self) -> str: ...


B = TypeVar("B", bound=Batch)
B_co = TypeVar("B_co", bound=Batch, covariant=True)


class Batches(Protocol[B_co]):
    """Micro-batches by (epoch, position)."""

    def num_batches(self, epoch: int) -> int: ...
    def batch(self, epoch: int, position: int) -> B_co: ...


@dataclass(frozen=True)
class Plan:
    """A run's lengths, in optimizer steps, with nothing left to choose."""

    max_steps: int
    eval_every: int
    save_every: int


# Step -> scores: the first decides, and between equal ones the second; of a loss, less is better.
Evaluate = Callable[[int], Mapping[str, float]]


class Trainer(Generic[B]):
    """Trains until `plan.max_steps`, or until dev scores have not improved for `patience` evaluations."""

    def __init__(
        self,
        *,
        model: nn.Module,
        batches: Batches[B],
        compute_loss: Callable[[B], LossSums],
        optimizer: torch.optim.Optimizer,
        settings: TrainingSection,
        plan: Plan,
        rate: Callable[[int], float],
        checkpoints: Checkpoints,
        log: Log,
        evaluate: Evaluate | None = None,
    ) -> None:
        self.model, self.batches, self.compute_loss, self.optimizer = model, batches, compute_loss, optimizer
        self.settings, self.plan, self.rate = settings, plan, rate
        self.checkpoints, self.log, self.evaluate = checkpoints, log, evaluate
        self.progress = Progress()
        self._stop_asked = False

    def run(self) -> str:
        """Go on from the latest checkpoint, or begin; returns why it ended: "done" or "stopped early".

        Raises Interrupted after a first SIGINT or SIGTERM, with everything saved; DivergedError before a
        non-finite gradient touches the weights; OutOfMemoryError with the batch that did not fit.
        """
        if (state := self.checkpoints.load_latest()) is not None:
            self.restore(state)
        self.log.rewind(self.progress.step)
        if self._out_of_patience():  # stopped after its last checkpoint, before it could say so
            return "stopped early"
        self.model.train()
        with self._asking_signals(), self.log.running(self.progress, self.plan.max_steps):
            while self.progress.step < self.plan.max_steps:
                self._take_step()
                last = self.progress.step == self.plan.max_steps
                improved = self._evaluate() if self._due(self.plan.eval_every) or last else False
                stop_early = self._out_of_patience()
                stop = self._stop_asked or stop_early
                if improved or stop or last or self._due(self.plan.save_every):
                    self.checkpoints.save(self.state(), best=improved)
                if stop_early:
                    return "stopped early"
                if self._stop_asked and not last:
                    raise Interrupted(
                        f"interrupted after step {self.progress.step}; the same command goes on from there"
                    )
        return "done"

    def state(self) -> State:
        """What a checkpoint holds now."""
        weights = {name: p.detach().contiguous() for name, p in self.model.named_parameters()}
        return State(weights, optimizer_tensors(self.optimizer), random_tensors(), self.progress)

    def restore(self, state: State) -> None:
        """Stand where `state` was taken. Raises FolderError where it is not this model's, or not whole."""
        shapes = {name: p.shape for name, p in self.model.named_parameters()}
        if {name: t.shape for name, t in state.model.items()} != shapes or "cpu" not in state.random:
            raise FolderError(
                f"{self.checkpoints.folder}: weights or random state are not this run's; restore the folder"
            )
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(state.model[name])
        load_optimizer_tensors(self.optimizer, state.optimizer)
        set_random_tensors(state.random)
        self.progress = state.progress

    def _take_step(self) -> None:
        started = time.perf_counter()
        rate = self.rate(self.progress.step + 1)
        set_learning_rate(self.optimizer, rate)
        micro_batches = [self._next_batch() for _ in range(self.settings.grad_accum_steps)]
        num_tgt_tokens = sum(b.num_tgt_tokens for b in micro_batches)
        sums = [self._forward_backward(b, num_tgt_tokens) for b in micro_batches]
        norm = self._clip()
        loss = sum(float(s.loss_sum.detach()) for s in sums) / max(num_tgt_tokens, 1)
        self._refuse_non_finite(loss, norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        tokens = num_tgt_tokens + sum(b.num_src_tokens for b in micro_batches)
        self.progress.step += 1
        self.progress.tokens += tokens
        seconds = time.perf_counter() - started
        self.progress.seconds += seconds
        self.log.step(self.progress, StepFacts(loss, rate, norm, tokens, seconds))

    def _forward_backward(self, batch: B, num_tgt_tokens: int) -> LossSums:
        try:
            sums = self.compute_loss(batch)
            (sums.loss_sum / max(num_tgt_tokens, 1)).backward()  # type: ignore[no-untyped-call]
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise self._out_of_memory(batch) from error
        except RuntimeError as error:
            if "can't allocate memory" not in str(error):
                raise
            raise self._out_of_memory(batch) from error
        return sums

    def _next_batch(self) -> B:
        here = self.progress
        while here.position >= self.batches.num_batches(here.epoch):
            here.epoch, here.position = here.epoch + 1, 0
        batch = self.batches.batch(here.epoch, here.position)
        here.position += 1
        return batch

    def _clip(self) -> float:
        limit = self.settings.grad_clip_norm
        return float(nn.utils.clip_grad_norm_(self.model.parameters(), limit or float("inf")))

    def _refuse_non_finite(self, loss: float, norm: float) -> None:
        if torch.tensor([loss, norm]).isfinite().all():
            return
        here = self.progress
        raise DivergedError(
            f"step {here.step + 1} (epoch {here.epoch}, batch {here.position - 1}): loss {loss}, gradient "
            f"norm {norm}; the weights before it are kept; lower training.learning_rate or raise "
            "training.warmup_steps"
        )

    def _out_of_memory(self, batch: B) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"out of memory at step {self.progress.step + 1} in a batch of {batch.describe()}; lower "
            "batches.tokens_per_batch and raise training.grad_accum_steps by as much"
        )

    def _evaluate(self) -> bool:
        """Score on dev where there is one; True where the deciding score is the best so far."""
        if self.evaluate is None:
            return False
        self.model.eval()
        scores = dict(self.evaluate(self.progress.step))
        self.model.train()
        best = self.progress.best_scores
        improved = not best or _rank(scores) > _rank(best)
        if improved:
            self.progress.best_step, self.progress.best_scores = self.progress.step, scores
        self.progress.evaluations_since_best = 0 if improved else self.progress.evaluations_since_best + 1
        self.log.evaluation(self.progress, scores, improved)
        return improved

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.progress.evaluations_since_best >= patience

    def _due(self, every: int) -> bool:
        return self.progress.step % every == 0

    @contextlib.contextmanager
    def _asking_signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM asks to stop after the step; a second SIGINT leaves at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self._stop_asked and number == signal.SIGINT:
                raise KeyboardInterrupt
            self._stop_asked = True
            self.log.note("stopping after this step; press Ctrl-C again to leave at once")

        previous = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _rank(scores: Mapping[str, float]) -> tuple[float, ...]:
    """What is greater is better. A young model's BLEU is zero each time, and its loss alone tells progress."""
    return tuple(-value if name.endswith("loss") else value for name, value in [*scores.items()][:2])
