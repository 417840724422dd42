"""A loop that continues texts by the graph of a folder: onnxruntime, numpy and tokenizers suffice.

    python generate.py "A beginning"

It takes the most probable token each time; with a temperature above 0 it draws.
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
Inputs = dict[str, Any]


class Writer:
    """A language model: its graph, its tokenizer, and its settings, the content of config.json."""

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        settings: Mapping[str, Any],
    ) -> None:
        self.model = onnxruntime.InferenceSession(model)
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.settings = settings
        self.drawing = np.random.default_rng()

    def generate(
        self,
        texts: Sequence[str],
        max_new_tokens: int,
        temperature: float = 0.0,
    ) -> list[str]:
        """Continue texts; a text and what is new must fit into the model together."""
        rows = [self.tokenizer.encode(text).ids for text in texts]
        limits = [max_new_tokens] * len(rows)
        found = self.search(rows, limits, temperature)
        return [self.tokenizer.decode(ids) for ids in found]

    def search(
        self,
        rows: Rows,
        limits: Sequence[int],
        temperature: float = 0.0,
    ) -> list[list[int]]:
        """Return the ids that follow each row, at most so many."""
        inputs = self.begun(rows)
        end = self.settings["eos_token_id"]
        never = self.settings["suppress_tokens"]
        found: list[list[int]] = [[] for _ in rows]
        ongoing = list(range(len(rows)))
        while ongoing:
            logits = self.step(inputs)[:, -1]
            logits[:, never] = -np.inf
            if temperature > 0:  # the largest is then a draw from the softmax
                noise = self.drawing.gumbel(size=logits.shape)
                logits = logits / temperature + noise
            newest = logits.argmax(-1)
            inputs["input_ids"] = newest[:, None]
            for place in ongoing.copy():
                token = int(newest[place])
                if token != end:
                    found[place].append(token)
                if token == end or len(found[place]) == limits[place]:
                    ongoing.remove(place)
        return found

    def begun(self, rows: Rows) -> Inputs:
        """Return what a step takes: rows of ids, which end together, and an empty cache."""
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            start = longest - len(row)
            ids[place, start:] = row
            mask[place, start:] = 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        for port in self.model.get_inputs()[2:]:
            if port.name == "past_ids":
                inputs[port.name] = ids[:, :0]
            else:
                _, heads, _, width = port.shape
                shape = (len(rows), heads, 0, width)
                inputs[port.name] = np.zeros(shape, np.float32)
        return inputs

    def step(self, inputs: Inputs) -> Any:
        """Return the logits after each new id, and keep what is now the cache."""
        logits, *cache = self.model.run(None, inputs)
        ports = self.model.get_inputs()[2:]
        for port, array in zip(ports, cache, strict=True):
            inputs[port.name] = array
        mask = inputs["attention_mask"]
        one_more = ((0, 0), (0, 1))
        inputs["attention_mask"] = np.pad(mask, one_more, constant_values=1)
        return logits


def main() -> None:
    """Continue what the command line has, by the files beside this one."""
    parser = argparse.ArgumentParser(description="Continue texts.")
    parser.add_argument("text", nargs="+", help="a beginning")
    texts = parser.parse_args().text
    here = Path(__file__).parent
    try:
        settings = json.loads((here / "config.json").read_text("utf-8"))
        writer = Writer(here / "model.onnx", here / "tokenizer.json", settings)
    except Exception as error:  # each library has its own
        parser.error(f"the files in {here} cannot be opened: {error}")
    found = writer.generate(
        texts,
        settings["max_new_tokens"],
        settings["temperature"],
    )
    for text, continuation in zip(texts, found, strict=True):
        print(f"{text}{continuation}")


if __name__ == "__main__":
    main()
