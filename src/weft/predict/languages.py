"""The languages that a model in use can tell apart: those of its training text."""

from collections.abc import Callable
from functools import cached_property

from weft.data.detection import Detector


class TellsLanguages:
    """A model that says in which of its own languages a text is.

    `find_detector` gives the detector of the folder that it was loaded from; it is called once,
    when a language is first asked for.
    """

    find_detector: Callable[[], Detector] | None = None

    @cached_property
    def detector(self) -> Detector:
        """Return what tells the languages apart; it knows none where the model has no folder."""
        return self.find_detector() if self.find_detector else Detector.of({})

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return each language of the model with the confidence that a text is in it, the best
        first; see `Detector.detect`.
        """
        return self.detector.detect(text)
