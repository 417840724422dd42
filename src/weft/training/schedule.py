"""The learning rate of each step: a pure function, so that nothing of it needs to be saved."""

import math
from collections.abc import Mapping

from weft.config import TrainingSection

# a factor of noam's formula that is no larger was meant as the rate of another schedule
SMALL_FACTOR = 0.01


def learning_rate(
    settings: TrainingSection, d_model: int, step: int, max_steps: int
) -> float:
    """Return the rate of optimizer step `step`, counted from 1.

    `noam` is learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al.
    2017, section 5.3, equation 3). The others rise linearly to learning_rate over the warm-up,
    then: `cosine` falls to final_fraction of it at max_steps (Loshchilov and Hutter 2017), `step`
    is multiplied by decay_factor every decay_every steps, `constant` stays, and `wsd` (warm-up,
    stable, decay) stays until the last decay_fraction of max_steps, in which it falls to
    final_fraction of it as 1 - sqrt does (Haegele et al. 2024, "Scaling Laws and Compute-Optimal
    Training Beyond Fixed Training Durations").
    """
    warmup = settings.warmup_steps
    if settings.schedule == "noam":
        rising = step * warmup**-1.5 if warmup else math.inf
        return settings.learning_rate * d_model**-0.5 * min(step**-0.5, rising)
    if step <= warmup:
        return settings.learning_rate * step / warmup
    return settings.learning_rate * _after_warmup(
        settings, step - warmup, max(max_steps - warmup, 1)
    )


def _after_warmup(settings: TrainingSection, step: int, steps: int) -> float:
    """Return the factor of the learning rate; `step` and `steps` are counted from the end of the
    warm-up.
    """
    if settings.schedule == "cosine":
        half_wave = 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0)))
        return settings.final_fraction + (1 - settings.final_fraction) * half_wave
    if settings.schedule == "step":
        return settings.decay_factor ** (step // settings.decay_every)
    if settings.schedule == "wsd":
        # decay_fraction is one of all steps, those of the warm-up included
        stable = max(
            steps - settings.decay_fraction * (steps + settings.warmup_steps), 0.0
        )
        fallen = math.sqrt(
            min(max(step - stable, 0.0) / max(steps - stable, 1e-9), 1.0)
        )
        return settings.final_fraction + (1 - settings.final_fraction) * (1 - fallen)
    return 1.0


def follows_length(settings: TrainingSection) -> bool:
    """Return whether the rate falls towards the last step: it rises again where a run gets more."""
    return settings.schedule in ("cosine", "wsd")


def peak_rate(settings: TrainingSection, d_model: int) -> float:
    """Return the rate at the end of the warm-up, the highest of a run that gets there."""
    if settings.schedule != "noam":
        return settings.learning_rate
    return settings.learning_rate * (d_model * max(settings.warmup_steps, 1)) ** -0.5


def about_small_factor(settings: TrainingSection) -> str:
    """Say that noam's factor is as small as the rates of the other schedules; "" for any other."""
    factor = settings.learning_rate
    if settings.schedule != "noam" or factor > SMALL_FACTOR:
        return ""
    return (
        "noam takes training.learning_rate as the factor of the paper's formula, which has 1; "
        f"{factor:g} makes every rate {factor:g} of the paper's"
    )


def about_long_warmup(warmup_steps: int, max_steps: int) -> str:
    """Say that a warm-up takes more than half of a run; "" for a shorter one."""
    if 2 * warmup_steps <= max_steps:
        return ""
    taken = f"{min(warmup_steps, max_steps):,} of the {max_steps:,} steps"
    return f"the warm-up ({warmup_steps:,}) takes {taken}, and the learning rate only rises in it"


def shorter_warmup(settings: TrainingSection, max_steps: int) -> dict[str, int | float]:
    """Return the settings of a warm-up that leaves most of a run to what follows it.

    The peak of noam is factor * (d_model * warmup)^-0.5, so that a shorter warm-up alone would
    raise it: a smaller factor keeps it, that of the paper's factor where this one is too small.
    """
    warmup = max_steps // 10
    shorter: dict[str, int | float] = {"training.warmup_steps": warmup}
    if settings.schedule == "noam":
        factor = 1.0 if about_small_factor(settings) else settings.learning_rate
        share = max(warmup, 1) / max(settings.warmup_steps, 1)
        shorter["training.learning_rate"] = rounded_rate(factor * share**0.5)
    return shorter


def twice_with_shorter_warmup(
    settings: TrainingSection, steps: int
) -> dict[str, int | float]:
    """Return the settings of a run of twice as many steps whose warm-up is a tenth of them."""
    twice = 2 * steps
    return {"training.max_steps": twice, **shorter_warmup(settings, twice)}


def rounded_rate(rate: float) -> float:
    """Round a rate that is proposed to three digits."""
    return float(f"{rate:.3g}")


def as_options(settings: Mapping[str, int | float]) -> str:
    """Return settings as options of the command line."""
    return " ".join(f"--set {key}={value}" for key, value in settings.items())
