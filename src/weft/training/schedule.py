"""The learning rate of each step: a pure function, so that nothing of it needs to be saved."""

import math

from weft.config import TrainingSection


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


def about_long_warmup(warmup_steps: int, max_steps: int) -> str:
    """Say that a warm-up takes more than half of a run; "" for a shorter one."""
    if 2 * warmup_steps <= max_steps:
        return ""
    taken = f"{min(warmup_steps, max_steps):,} of the {max_steps:,} steps"
    return f"the warm-up ({warmup_steps:,}) takes {taken}, and the learning rate only rises in it"


def shorter_warmup(max_steps: int) -> str:
    """Return the setting of a warm-up that leaves most of a run to what follows it."""
    return f"--set training.warmup_steps={max_steps // 10}"


def twice_with_shorter_warmup(steps: int) -> dict[str, int]:
    """Return the settings of a run of twice as many steps whose warm-up is a tenth of them."""
    twice = 2 * steps
    return {"training.max_steps": twice, "training.warmup_steps": twice // 10}
