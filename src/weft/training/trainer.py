"""The order of events: take a step; log, evaluate and save when due; stop when done.

It is handed model, batches, loss and optimizer ready-made and knows nothing of text. Several
processes may train one model together (`World`): they share the micro-batches of every update, and
each does the same as the others.
"""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from weft.config import TrainingSection
from weft.errors import DivergedError, FolderError, Interrupted, OutOfMemoryError
from weft.folder.layout import DONE, STOPPED_EARLY
from weft.kernels.torch_machine import is_out_of_memory
from weft.training.checkpoint import Checkpoints, Progress, State
from weft.training.distributed import World, clip_gradients, copy_into, full_tensor
from weft.training.log import Log, StepFacts
from weft.training.loss import LossSums
from weft.training.loss_scale import LossScaler
from weft.training.mixtures import AnyBatches, Stage, borders_of, stage_after
from weft.training.moving_average import MovingAverage
from weft.training.optimizer import (
    load_optimizer_tensors,
    optimizer_tensors,
    set_learning_rate,
)
from weft.training.scores import is_better, is_decided_by_loss
from weft.training.snapshots import Snapshots

OPEN = 2**40  # more steps than any run has
# times the last learning rate: above it a next one is said to rise
WORTH_SAYING = 1.1
CALMER = "start over (--fresh) with a lower training.learning_rate or a higher training.warmup_steps"


class AnyBatch(Protocol):
    """A micro-batch of any task; its tokens are counted without padding."""

    @property
    def num_src_tokens(self) -> int: ...
    @property
    def num_tgt_tokens(self) -> int: ...
    def describe(self) -> str: ...
    def parts(self, count: int) -> "Sequence[Self]": ...


B = TypeVar("B", bound=AnyBatch)


@dataclass(frozen=True)
class Plan:
    """A run's lengths, in optimizer steps; of an open plan `max_steps` is only what is expected."""

    max_steps: int
    eval_every: int
    save_every: int
    is_open: bool = False

    @property
    def last(self) -> int:
        """Return the last step; while that is open, one that is never reached."""
        return OPEN if self.is_open else self.max_steps


class Timekeeper(Protocol):
    """A keeper of the time, which decides when an open plan ends (`weft.training.budget`)."""

    def begin(self, used: float, evaluations: list[float]) -> None: ...
    def evaluated(self, seconds: float) -> None: ...
    def decide(self, step: int) -> int: ...
    def passed(self, step: int, shares: Sequence[float]) -> list[int]: ...
    def reconsider(self, step: int) -> int: ...


# Step -> scores: the first decides, and between equal ones the second; for a loss, lower is better.
Evaluate = Callable[[int], Mapping[str, float]]


class Trainer(Generic[B]):
    """Trains until `plan.max_steps`, or until dev scores have not improved for `patience`
    evaluations.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        batches: AnyBatches[B],
        compute_loss: Callable[[B], LossSums],
        optimizer: torch.optim.Optimizer,
        settings: TrainingSection,
        plan: Plan,
        rate: Callable[[int, int], float],
        checkpoints: Checkpoints,
        log: Log,
        evaluate: Evaluate | None = None,
        seconds_at_peak: Callable[[B], float] = lambda batch: 0.0,
        saved: Callable[[Progress], None] = lambda progress: None,
        world: World | None = None,
        parts: int = 1,
        scales_loss: bool = False,
        timekeeper: Timekeeper | None = None,
        lengths_before: Sequence[Mapping[str, int | None]] = (),
        size_keys: str = "batches.tokens_per_batch",
        snapshots: Snapshots | None = None,
        stages: Sequence[Stage[B]] = (),
        borders: Sequence[int] = (),
    ) -> None:
        """Set up the trainer.

        `rate` gives the learning rate of a step in a run of so many. Each micro-batch is cut into
        `parts`, where memory asks for it. `scales_loss` is for products in float16
        (`weft.training.loss_scale`). `lengths_before` are the lengths of a run whose checkpoints do
        not say them. `size_keys` make a micro-batch smaller. In the place of `batches`, each of the
        `stages` has its own; `borders` are those between them that a clock has decided.
        """
        self.model = model
        self.stages = stages or (Stage(1.0, batches),)
        self.borders = list(borders)
        self.optimizer = optimizer
        self.settings = settings
        self.plan = plan
        self.rate = rate
        self.checkpoints = checkpoints
        self.log = log
        self.evaluate = evaluate
        self.seconds_at_peak = seconds_at_peak
        self.saved = saved
        self.world = world or World()
        self.parts = parts
        self.average: MovingAverage | None = None
        if settings.ema_decay:
            self.average = MovingAverage(model, settings.ema_decay)
        self.compute_loss = self.world.joined(model, compute_loss)
        self.timekeeper = timekeeper
        self.lengths_before = lengths_before
        self.size_keys = size_keys
        self.snapshots = snapshots
        self.loss_scaler = LossScaler(scales_loss)
        self.progress = self.loss_scaler.new_progress()
        self._stop_asked = self._evaluating = False

    def run(self) -> str:
        """Train to the end, from the latest checkpoint or from the start.

        Returns why training ended: "done" or "stopped early".

        Raises Interrupted after a first SIGINT or SIGTERM, with everything saved; DivergedError
        before a non-finite gradient touches the weights; OutOfMemoryError with the batch that did
        not fit.
        """
        with self.world.in_turn():  # the first sets damaged checkpoints aside
            state = self.checkpoints.load_latest()
        for note in self.checkpoints.notes:
            self.log.note(f"note: {note}")
        if state is not None:
            self.restore(state)
            self.log.note(f"from the checkpoint of step {self.progress.step:,}")
            self._note_rising_rate()
        max_steps = None if self.plan.is_open else self.plan.max_steps
        self.progress.begin_length(
            max_steps, self.plan.eval_every, self.settings.patience
        )
        self.log.rewind(self.progress.step)
        # stopped after its last checkpoint, before it could say so
        if self._out_of_patience():
            return STOPPED_EARLY
        self.model.train()
        if self.snapshots is not None and self.world.is_first:
            self.snapshots.begin_at(self.progress.step)
        if self.timekeeper is not None:
            before = self.log.evaluations
            self.timekeeper.begin(self.progress.seconds + sum(before), before)
        eval_every = self.plan.eval_every if self.evaluate is not None else None
        with (
            self._asking_signals(),
            self.log.running(self.progress, self.plan.max_steps, eval_every),
        ):
            # a run that was stopped before an evaluation makes up for it first
            if self.progress.evaluation_due:
                self._finish_step()
            if self.progress.step == 0:
                self._keep_weights()
            while not self._finished():
                self._take_step()
                self._keep_weights()
                self._finish_step()
        return STOPPED_EARLY if self._out_of_patience() else DONE

    def state(self) -> State:
        """Return what a checkpoint holds now.

        Every process must call it: where each holds a part of every weight, they gather the parts.
        """
        average = self.average.tensors() if self.average else {}
        optimizer = optimizer_tensors(self.optimizer)
        return State(self._weights(), optimizer, self.progress, average)

    def _weights(self) -> dict[str, Tensor]:
        return {name: full_tensor(p) for name, p in self.model.named_parameters()}

    def restore(self, state: State) -> None:
        """Reset everything to where `state` was taken.

        Raises FolderError where it is not this model's, or not whole.
        """
        shapes = {name: p.shape for name, p in self.model.named_parameters()}
        if {name: t.shape for name, t in state.model.items()} != shapes:
            raise FolderError(
                f"{self.checkpoints.folder}: its weights are not this run's; restore the folder"
            )
        for name, parameter in self.model.named_parameters():
            copy_into(parameter, state.model[name])
        load_optimizer_tensors(
            self.optimizer, state.optimizer, begun=state.progress.step > 0
        )
        if self.average:
            self.average.restore(state.average)
        self.progress = state.progress
        if not self.progress.lengths:
            self.progress.lengths = [dict(length) for length in self.lengths_before]

    def _note_rising_rate(self) -> None:
        """Say that the learning rate rises, where it does so by another length of the run."""
        before = self.progress.lengths[-1]["max_steps"] if self.progress.lengths else 0
        step = self.progress.step
        # without a step, or a length that the clock has decided, there is nothing to compare with
        if not before or not step:
            return
        last = self.rate(step, before)
        now = self.rate(step + 1, self.plan.last)
        rises = max(last, self.rate(step + 1, before)) * WORTH_SAYING < now
        if rises:
            self.log.note(
                f"note: in a run of {self.plan.max_steps:,} steps the learning rate rises here, from {last:.3g} to "
                f"{now:.3g}: the loss may rise at first"
            )

    def _finished(self) -> bool:
        return self.progress.step >= self.plan.last or self._out_of_patience()

    def _finish_step(self) -> None:
        """Evaluate and save after a step, where due; stop where a signal asked for it.

        Raises Interrupted once what is there is saved.
        """
        stopping = self.world.any(self._stop_asked)
        if self.plan.is_open:
            self._ask_the_clock()
        due = self._due(self.plan.eval_every) or self.progress.step == self.plan.last
        self.progress.evaluation_due |= due and self.evaluate is not None
        improved = (
            self._evaluate() if self.progress.evaluation_due and not stopping else False
        )
        # an evaluation that is due still was put off by a signal
        stop = self.progress.evaluation_due or (stopping and not self._finished())
        if improved or stop or self._finished() or self._due(self.plan.save_every):
            self._save()
        if stop:
            raise Interrupted(
                f"interrupted after step {self.progress.step}, which is saved"
            )

    def _ask_the_clock(self) -> None:
        """Decide whether a mixture ends now, and whether the decay begins.

        The first process decides for all.
        """
        keeper, step = self.timekeeper, self.progress.step
        decided = num_passed = 0
        if keeper is not None and self.world.is_first:
            num_passed = len(keeper.passed(step, self._shares))
            decided = keeper.decide(step)
        decided, num_passed = map(int, self.world.all_reduce(decided, num_passed))
        self.borders += [step] * (num_passed - len(self.borders))
        if steps := decided:
            self.borders = borders_of(self._shares, steps, self.borders, step)
            self.plan = replace(self.plan, max_steps=steps, is_open=False)
            self.progress.decide_length(steps)
            self.log.planned(step, steps)
        elif (
            keeper is not None
            and self._due(self.plan.eval_every)
            and self.world.is_first
        ):
            self.log.expected(step, keeper.reconsider(step))

    def _keep_weights(self) -> None:
        """Keep the weights that an evaluation would score, where that is due; nothing else of the
        run depends on it.
        """
        step = self.progress.step
        if self.snapshots is None or not self.snapshots.is_due(step):
            return
        weights = self.average.tensors() if self.average else self._weights()
        if self.world.is_first:
            self.snapshots.save(step, weights)

    def _save(self) -> None:
        state = self.state()
        broken = [
            name for name, tensor in state.model.items() if not tensor.isfinite().all()
        ]
        if broken:
            raise DivergedError(
                f"after step {self.progress.step}, {broken[0]} holds numbers that are not finite, which were not "
                f"saved; {CALMER}"
            )
        if self.world.is_first:
            self.checkpoints.save(state)
            self.saved(self.progress)

    @property
    def batches(self) -> AnyBatches[B]:
        """Return the batches of the mixture that is being read."""
        return self.stages[self.progress.mixture].batches

    @property
    def _shares(self) -> list[float]:
        return [stage.until for stage in self.stages]

    def _choose_mixture(self) -> None:
        """Begin an epoch of another mixture where the next step is of one."""
        here = self.progress
        found = self.borders
        if not self.plan.is_open:
            found = borders_of(self._shares, self.plan.max_steps, self.borders)
        number = stage_after(here.step, found)
        if number == here.mixture:
            return
        here.mixture = number
        if here.position:
            here.epoch, here.position = here.epoch + 1, 0
        which = f"mixture {number + 1} of {len(self.stages)}"
        self.log.note(
            f"step {here.step:,}: {which} begins: {self.stages[number].description}"
        )

    def _take_step(self) -> None:
        self._choose_mixture()
        started = time.perf_counter()
        places = [self._next_place() for _ in range(self.settings.grad_accum_steps)]
        mine = [
            (place, self.batches.batch(*place)) for place in self.world.share(places)
        ]
        waited = time.perf_counter() - started
        rate = self.rate(self.progress.step + 1, self.plan.last)
        set_learning_rate(self.optimizer, rate)
        tokens, num_tgt_tokens = self.world.all_reduce(
            sum(b.num_src_tokens + b.num_tgt_tokens for _, b in mine),
            sum(b.num_tgt_tokens for _, b in mine),
        )
        work = [part for place, batch in mine for part in self._parts(place, batch)]
        loss, norm = self._make_gradients(work, num_tgt_tokens)
        # repeated with half the scale, not skipped with its batch: every step is an update
        while self.loss_scaler.has_overflowed(self.progress, loss, norm):
            self.loss_scaler.halve(self.progress)
            self.optimizer.zero_grad()
            loss, norm = self._make_gradients(work, num_tgt_tokens)
        self._refuse_non_finite(loss, norm, places)
        with self._naming_memory("the optimizer's step"):
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.step += 1
        if self.average:
            self.average.update(self.progress.step)
        self.loss_scaler.grow(self.progress)
        self.progress.tokens += int(tokens)
        seconds = time.perf_counter() - started
        self.progress.seconds += seconds
        facts = StepFacts(
            loss=loss,
            learning_rate=rate,
            grad_norm=norm,
            tokens=int(tokens),
            seconds=seconds,
            waited=waited,
            at_peak=sum(self.seconds_at_peak(batch) for _, batch in mine),
        )
        self.log.step(self.progress, facts)

    def _parts(
        self, place: tuple[int, ...], batch: B
    ) -> list[tuple[tuple[int, ...], B]]:
        """Return a micro-batch, or what it is cut into for want of memory.

        The first part keeps the place; of each later one, its number is appended.
        """
        if self.parts == 1:
            return [(place, batch)]
        return [
            ((*place, number) if number else place, part)
            for number, part in enumerate(batch.parts(self.parts))
        ]

    def _make_gradients(
        self, work: Sequence[tuple[tuple[int, ...], B]], num_tgt_tokens: float
    ) -> tuple[float, float]:
        """Compute the gradients of an update, and clip them.

        Returns the loss per target token, and the norm of the gradients before clipping.
        """
        loss_sum = 0.0
        for number, (place, part) in enumerate(work, start=1):
            with self.world.adding_up(last=number == len(work)):
                loss_sum += self._forward_backward(place, part, num_tgt_tokens)
        norm = clip_gradients(
            self.model, self.settings.grad_clip_norm, self.progress.loss_scale
        )
        return self.world.all_reduce(loss_sum)[0] / max(num_tgt_tokens, 1), norm

    def _forward_backward(
        self, place: tuple[int, ...], batch: B, num_tgt_tokens: float
    ) -> float:
        """Add the gradients of one micro-batch, or of a part of it; return its summed loss."""
        # dropout depends on seed and place alone, so there is no generator state to save
        seed_random(self.settings.seed, *place)
        with self._naming_memory(f"a batch of {batch.describe()}"):
            sums = self.compute_loss(batch)
            # Divided by the tokens of the whole update, the gradients of all micro-batches add up
            # to those of one batch. Of several processes DDP and FSDP take the mean of the
            # gradients, and the sum is wanted: so each multiplies by their number.
            scale = self.progress.loss_scale * self.world.size / max(num_tgt_tokens, 1)
            (sums.loss_sum * scale).backward()  # type: ignore[no-untyped-call]
        return float(sums.loss_sum.detach())

    def _next_place(self) -> tuple[int, int]:
        """Return epoch and position of the next micro-batch, which counts as taken."""
        here = self.progress
        while here.position >= self.batches.num_batches(here.epoch):
            here.epoch, here.position = here.epoch + 1, 0
        here.position += 1
        return here.epoch, here.position - 1

    def _refuse_non_finite(
        self, loss: float, norm: float, places: list[tuple[int, int]]
    ) -> None:
        if torch.tensor([loss, norm]).isfinite().all():
            return
        step = self.progress.step + 1
        if self.world.is_first:
            self.checkpoints.keep_failure(
                {
                    "step": step,
                    "loss": str(loss),
                    "grad_norm": str(norm),
                    "batches": places,
                }
            )
        epoch, position = places[-1]
        raise DivergedError(
            f"step {step} (epoch {epoch}, batch {position}): loss {loss}, gradient norm {norm}; the weights "
            f"were not touched; {CALMER}"
        )

    @contextlib.contextmanager
    def _naming_memory(self, what: str) -> Iterator[None]:
        """Say at which step, and in what, the memory did not suffice."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"out of memory at step {self.progress.step + 1} in {what}; lower {self.size_keys} and "
                "raise training.grad_accum_steps by as much"
            ) from error

    def _evaluate(self) -> bool:
        """Score on dev; True where the deciding score is the best so far. A signal puts it off to a
        next start.
        """
        assert self.evaluate is not None
        started = time.perf_counter()
        self.model.eval()
        try:
            self._evaluating = True
            averaged = (
                self.average.in_place() if self.average else contextlib.nullcontext()
            )
            with self._naming_memory("the evaluation on dev"), averaged:
                scores = dict(self.evaluate(self.progress.step))
        except _PutOff:
            return False
        finally:
            self._evaluating = False
            self.model.train()
        self.progress.evaluation_due = False
        for name, value in scores.items():
            if not math.isfinite(value):
                raise DivergedError(
                    f"after step {self.progress.step}, {name} is {value}; {CALMER}"
                )
        improved = is_better(scores, self.progress.best_scores)
        if improved:
            self.progress.best_step = self.progress.step
            self.progress.best_scores = scores
        self.progress.evaluations_since_best = (
            0 if improved else self.progress.evaluations_since_best + 1
        )
        seconds = time.perf_counter() - started
        if self.timekeeper is not None:
            self.timekeeper.evaluated(seconds)
        by_loss = is_decided_by_loss(scores)
        self.log.evaluation(self.progress, scores, improved, seconds, by_loss)
        return improved

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.progress.evaluations_since_best >= patience

    def _due(self, every: int) -> bool:
        return self.progress.step % every == 0

    @contextlib.contextmanager
    def _asking_signals(self) -> Iterator[None]:
        """Let the first SIGINT or SIGTERM ask to stop after the step; a second SIGINT leaves at
        once.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self._stop_asked and number == signal.SIGINT:
                raise KeyboardInterrupt
            self._stop_asked = True
            leave = (
                "; press Ctrl-C again to leave at once"
                if number == signal.SIGINT
                else ""
            )
            self.log.note(f"stopping after this step{leave}")
            # it may outlast the time before SIGKILL; but several processes must leave it together
            if self._evaluating and self.world.size == 1:
                raise _PutOff

        previous = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class _PutOff(Exception):
    """An evaluation that is to be done at the next start instead."""


def seed_random(seed: int, *place: int) -> None:
    """Set torch's random generators, on every device, for one micro-batch, at (epoch, position), or
    a part of it.

    What is drawn in it (dropout) depends on nothing else: not on how often the run was stopped, nor
    on which of how many processes does it.
    """
    drawn = np.random.SeedSequence([seed, *place]).generate_state(1, np.uint64)
    # 63 bits: a seed that is positive as a signed 64-bit number, too
    number = int(drawn[0] >> np.uint64(1))
    # torch.manual_seed takes a millisecond to ask for GPUs
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(number)
