"""A loop that translates by the graphs of a folder: onnxruntime, numpy and tokenizers suffice.

    python translate.py "A sentence." "Another."

It takes the most probable token each time.
"""

import argparse
import json
from collections.abc import Sequence
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
        self, encoder: Path, decoder: Path, tokenizer: Path, settings: Any
    ) -> None:
        self.encoder = onnxruntime.InferenceSession(encoder)
        self.decoder = onnxruntime.InferenceSession(decoder)
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.settings = settings

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate texts of one sentence each; what is too long for the model is cut off."""
        settings = self.settings
        most = settings["max_src_len"] - 1
        rows = [self.tokenizer.encode(text).ids for text in texts]
        rows = [row[:-1][:most] + row[-1:] for row in rows]  # the end stays
        lengths = np.array([len(row) for row in rows])
        limits = np.ceil(settings["max_len_ratio"] * lengths)
        limits += settings["max_len_extra"]
        longest = settings["max_len"] - 1
        found = self.search(rows, np.clip(limits, 1, longest))
        return [self.tokenizer.decode(ids) for ids in found]

    def search(self, rows: Rows, limits: Any) -> list[list[int]]:
        """Return the ids that each row becomes, at most so many."""
        inputs = self.begun(rows)
        end = self.settings["eos_token_id"]
        never = self.settings["suppress_tokens"]
        begin = self.settings["bos_token_id"]
        ids = np.full((len(rows), 1), begin)
        ended = np.zeros(len(rows), bool)
        while not ended.all():
            logits = self.step(ids[:, -1:], inputs)[:, -1]
            logits[:, never] = -np.inf
            likeliest = logits.argmax(-1)
            newest = np.where(ended, end, likeliest)
            ended |= newest == end
            ended |= limits <= ids.shape[1]
            ids = np.column_stack([ids, newest])
        found = []
        for row in ids[:, 1:].tolist():
            found.append([number for number in row if number != end])
        return found

    def begun(self, rows: Rows) -> Inputs:
        """Encode rows of ids; return what a step takes, with an empty cache."""
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate(rows)
        as_ids = mask.astype(np.int64)
        given = {"input_ids": ids, "attention_mask": as_ids}
        (states,) = self.encoder.run(None, given)
        inputs = {"encoder_attention_mask": as_ids, "encoder_hidden_states": states}
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
        names = [port.name for port in ports]
        inputs.update(zip(names, cache, strict=True))
        return logits


def main() -> None:
    """Translate what the command line has, by the files beside this one."""
    parser = argparse.ArgumentParser(description="Translate sentences.")
    parser.add_argument("text", nargs="+", help="one sentence")
    texts = parser.parse_args().text
    here = Path(__file__).parent
    try:
        settings = json.loads((here / "config.json").read_text("utf-8"))
        translator = Translator(
            here / "encoder_model.onnx",
            here / "decoder_model.onnx",
            here / "tokenizer.json",
            settings,
        )
    except Exception as error:  # each library has its own
        parser.error(f"the files in {here} cannot be opened: {error}")
    for translation in translator.translate(texts):
        print(translation)


if __name__ == "__main__":
    main()
