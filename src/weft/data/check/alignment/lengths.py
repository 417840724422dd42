"""The lengths of lines that belong together: their ratio, and how far it varies."""

import numpy as np
import numpy.typing as npt

from weft.data.check.words import Ids

Floats = npt.NDArray[np.float64]

_BANDS = 8  # of length, each with a spread of its own: short lines vary more


class Lengths:
    """The length ratios of lines, beside those of the pairs as they stand; made of the logarithms
    of all lengths.

    `log_ratio` is 0 where a pair's ratio is the corpus's own; `deviation` is the same in spreads of
    it.
    """

    def __init__(self, src: Floats, tgt: Floats) -> None:
        self._src = src
        self._tgt = tgt
        ratio = src - tgt
        self._centre = float(np.median(ratio))
        self.log_ratio = ratio - self._centre
        self._band = _bands(src)
        self._spread = _spreads(self._band, self.log_ratio)
        spread = self._spread[self._band]
        self.deviation = self.log_ratio / spread

    def deviations(self, src: Ids, tgt: Ids) -> Floats:
        """Return how far the length ratios of lines are from the corpus's own, in spreads."""
        src_length = self._src[src]
        tgt_length = self._tgt[tgt]
        ratio = src_length - tgt_length - self._centre
        band = self._band[src]
        return ratio / self._spread[band]

    def misfit(self, src: Ids, tgt: Ids) -> Floats:
        """Return the squared deviations of the lines' length ratios, in spreads; 9 at most."""
        deviation = self.deviations(src, tgt)
        return np.minimum(deviation**2, 9.0)


def _bands(length: Floats) -> Ids:
    """Divide the lines into bands of length, about as many lines in each."""
    shares = np.arange(1, _BANDS) / _BANDS
    quantiles = np.quantile(length, shares)
    edges = np.unique(quantiles)
    return np.digitize(length, edges)


def _spreads(band: Ids, log_ratio: Floats) -> Floats:
    """Return the spread of the length ratios in each band of length.

    A band of fewer than 50 lines has the spread of all of them.
    """
    distance = np.abs(log_ratio)
    overall = max(_spread(distance), 0.1)
    num_bands = int(band.max()) + 1
    spreads = np.full(num_bands, overall)
    for number in range(len(spreads)):
        inside = distance[band == number]
        if len(inside) >= 50:
            own = _spread(inside)
            spreads[number] = max(own, overall / 2)
    return spreads


def _spread(distance: Floats) -> float:
    """Scale the median distance so that it is the standard deviation where all is normal."""
    return 1.4826 * float(np.median(distance))
