"""A loop that classifies texts by the graph of a folder: onnxruntime, numpy and tokenizers suffice.

python classify.py "A text." "Another."
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

Rows = Sequence[Sequence[int]]
Probabilities = dict[str, float]


class Classifier:
    """A classifier: its graph, its tokenizer, and its settings, the content of config.json."""

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        settings: Mapping[str, Any],
    ) -> None:
        self.model = onnxruntime.InferenceSession(model)
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.settings = settings

    def classify(self, texts: Sequence[str]) -> list[Probabilities]:
        """Return the probability of each label for each text."""
        found = []
        for text in texts:
            ids = self.tokenizer.encode(text).ids
            logits = self.logits(self.windows(ids))
            logits = logits.astype(np.float64)
            if self.settings["multi_label"]:  # each holds or not
                probabilities = 1 / (1 + np.exp(-logits))
            else:  # one of them holds
                best = logits.max(-1, keepdims=True)
                powers = np.exp(logits - best)
                total = powers.sum(-1, keepdims=True)
                probabilities = powers / total
            means = probabilities.mean(0).tolist()
            labels = self.settings["labels"]
            found.append(dict(zip(labels, means, strict=True)))
        return found

    def labels(self, found: Probabilities) -> list[str]:
        """Return the labels that hold: of several all of at least one half, else the likeliest."""
        if self.settings["multi_label"]:
            return [label for label, value in found.items() if value >= 0.5]
        best = max(found, key=lambda label: found[label])
        return [best]

    def windows(self, ids: Sequence[int]) -> list[list[int]]:
        """Return the rows that a text is read in: its beginning, or all of it in windows."""
        before = self.tokenizer.encode("").ids  # every text
        rest = ids[len(before) :]
        size = self.settings["max_len"]
        rows = [
            [*before, *rest[start : start + size]]
            for start in range(0, max(1, len(rest)), size)
        ]
        is_cut = self.settings["too_long"] == "cut"
        return rows[:1] if is_cut else rows

    def logits(self, rows: Rows) -> Any:
        """Return the logits of rows of ids."""
        longest = max(map(len, rows))
        # of a text without ids padding is left, which has no part in it
        ids = np.zeros((len(rows), max(1, longest)), np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            end = len(row)
            ids[place, :end] = row
            mask[place, :end] = 1
        given = {"input_ids": ids, "attention_mask": mask}
        (logits,) = self.model.run(None, given)
        return logits


def main() -> None:
    """Classify what the command line has, by the files beside this one."""
    parser = argparse.ArgumentParser(description="Classify texts.")
    parser.add_argument("text", nargs="+", help="a text")
    texts = parser.parse_args().text
    here = Path(__file__).parent
    try:
        settings = json.loads((here / "config.json").read_text("utf-8"))
        classifier = Classifier(here / "model.onnx", here / "tokenizer.json", settings)
    except Exception as error:  # each library has its own
        parser.error(f"the files in {here} cannot be opened: {error}")
    for found in classifier.classify(texts):
        labels = classifier.labels(found)
        print(", ".join(labels), found)


if __name__ == "__main__":
    main()
