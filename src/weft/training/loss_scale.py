"""The scale of a loss whose products are computed in float16.

Gradients of float16 products are computed from a multiple of the loss, or small ones would be 0.
The multiple is halved, and the update computed again, where large ones overflow (Micikevicius et
al. 2018, "Mixed Precision Training", section 3.2).
"""

import math

from weft.training.checkpoint import Progress

LARGEST_SCALE = 2.0**16
GROW_AFTER = 2000  # updates without overflow until the scale is doubled


class LossScaler:
    """The scale of the loss, which stands in the progress with the step that set it.

    So a checkpoint holds it. In other precisions than float16 it is 1 and stays 1.
    """

    def __init__(self, is_float16: bool) -> None:
        self.is_float16 = is_float16

    def new_progress(self) -> Progress:
        """Return the progress of a run that begins, with the largest scale where one is needed."""
        return Progress(loss_scale=LARGEST_SCALE if self.is_float16 else 1.0)

    def has_overflowed(self, progress: Progress, loss: float, norm: float) -> bool:
        """Return whether a smaller scale may mend an update with this loss and gradient norm."""
        is_scaled = progress.loss_scale > 1
        return is_scaled and math.isfinite(loss) and not math.isfinite(norm)

    def halve(self, progress: Progress) -> None:
        """Halve the scale, after an overflow."""
        self._set(progress, progress.loss_scale / 2)

    def grow(self, progress: Progress) -> None:
        """Double the scale after an update, if none has overflowed for long."""
        is_due = progress.step - progress.scale_set >= GROW_AFTER
        if self.is_float16 and is_due:
            self._set(progress, min(2 * progress.loss_scale, LARGEST_SCALE))

    def _set(self, progress: Progress, scale: float) -> None:
        progress.loss_scale = scale
        progress.scale_set = progress.step
