"""A loop that translates by the graphs of a folder: onnxruntime, numpy and tokenizers suffice.

    python translate.py "A sentence." "Another."

It takes the most probable token each time.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

Rows = Sequence[Sequence[int]]
Inputs = dict[str, Any]


class Translator:
    """A translator: its graphs, its tokenizer, and its settings, the content of config.json."""

    def __init__(
        self,
        encoder: Path,
        decoder: Path,
        tokenizer: Path,
        settings: Mapping[str, Any],
    ) -> None:
        self.encoder = onnxruntime.InferenceSession(encoder)
        self.decoder = onnxruntime.InferenceSession(decoder)
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.settings = settings

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate texts of one sentence each; what is too long for the model is cut off."""
        most = self.settings["max_src_len"] - 1
        rows = []
        for text in texts:
            *ids, end = self.tokenizer.encode(text).ids
            rows.append([*ids[:most], end])
        limits = [self.limit(len(row)) for row in rows]
        found = self.search(rows, limits)
        return [self.tokenizer.decode(ids) for ids in found]

    def limit(self, length: int) -> int:
        """Return how many tokens a source of that length may become, the end among them."""
        settings = self.settings
        by_source = math.ceil(settings["max_len_ratio"] * length)
        most = by_source + settings["max_len_extra"]
        by_positions = settings["max_len"] - 1
        return max(1, min(by_positions, most))

    def search(self, rows: Rows, limits: Sequence[int]) -> list[list[int]]:
        """Return the ids that each row becomes, at most so many."""
        inputs = self.begun(rows)
        end = self.settings["eos_token_id"]
        never = self.settings["suppress_tokens"]
        newest = np.full(len(rows), self.settings["bos_token_id"])
        found: list[list[int]] = [[] for _ in rows]
        ongoing = list(range(len(rows)))
        while ongoing:
            logits = self.step(newest[:, None], inputs)[:, -1]
            logits[:, never] = -np.inf
            newest = logits.argmax(-1)
            for place in ongoing.copy():
                token = int(newest[place])
                if token != end:
                    found[place].append(token)
                if token == end or len(found[place]) == limits[place]:
                    ongoing.remove(place)
        return found

    def begun(self, rows: Rows) -> Inputs:
        """Encode rows of ids; return what a step takes, with an empty cache."""
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            end = len(row)
            ids[place, :end] = row
            mask[place, :end] = 1
        given = {"input_ids": ids, "attention_mask": mask}
        (states,) = self.encoder.run(None, given)
        inputs = {
            "encoder_attention_mask": mask,
            "encoder_hidden_states": states,
        }
        for port in self.decoder.get_inputs()[3:]:
            _, heads, _, width = port.shape
            shape = (len(rows), heads, 0, width)
            inputs[port.name] = np.zeros(shape, np.float32)
        return inputs

    def step(self, ids: Any, inputs: Inputs) -> Any:
        """Read new ids (N, L); return the logits after each, and keep what is now the cache."""
        given = {**inputs, "input_ids": ids}
        logits, *cache = self.decoder.run(None, given)
        ports = self.decoder.get_inputs()[3:]
        for port, array in zip(ports, cache, strict=True):
            inputs[port.name] = array
        return logits


def main() -> None:
    """Translate what the command line has, by the files beside this one."""
    here = Path(__file__).parent
    settings = json.loads((here / "config.json").read_text("utf-8"))
    translator = Translator(
        here / "encoder_model.onnx",
        here / "decoder_model.onnx",
        here / "tokenizer.json",
        settings,
    )
    for translation in translator.translate(sys.argv[1:]):
        print(translation)


if __name__ == "__main__":
    main()
