"""Sentences by a graph of rules, found as Argos Translate has them found.

Shapes: L characters.
"""

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np

from weft.ship.argos.characters import UNKNOWN
from weft.ship.target import load

_LAST = 2  # the class of a sentence's last character
_SPACE = re.compile(r"\s+")


class Sentences:
    """A graph, which onnxruntime computes, and its vocabulary."""

    def __init__(self, content: bytes) -> None:
        runtime = load("onnxruntime")
        self.session: Any = runtime.InferenceSession(content)
        facts = self.session.get_modelmeta().custom_metadata_map
        self.ids: dict[str, int] = json.loads(facts["vocab"])["_unit2id"]

    def split(self, text: str) -> list[str]:
        """Return the sentences of a text without line breaks, and without the space around them."""
        kept = text.rstrip()
        # runs of white space count as one
        places = [
            place
            for place, character in enumerate(kept)
            if not (character.isspace() and kept[place - 1 : place].isspace())
        ]
        if not places:
            return []
        units = [self._id(kept[place]) for place in places]
        inputs = {
            "units": np.array([units], np.int64),
            "features": np.zeros((1, len(units), 0), np.float32),
        }
        (scores,) = self.session.run(None, inputs)[0]
        ends = np.flatnonzero(scores.argmax(-1) == _LAST)
        stops = [0, *(places[end] + 1 for end in ends), len(kept)]
        sentences = (kept[start:stop].strip() for start, stop in pairwise(stops))
        return [sentence for sentence in sentences if sentence]

    def _id(self, character: str) -> int:
        shown = " " if character.isspace() else character
        return self.ids.get(shown, self.ids[UNKNOWN])
