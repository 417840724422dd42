"""A program for another Python, one that has transformers 4: it opens exported folders there, and
answers in JSON what that version makes of them.

A request is a line on its input, an object with what to `do` and the arguments; the answer is a
line on its output. Nothing of Weft is imported: only what a stranger has who got the folder.
"""

import json
import sys
from typing import Any

import torch
import transformers

PIPELINES = {
    "AutoModelForSeq2SeqLM": "translation",
    "AutoModelForCausalLM": "text-generation",
    "AutoModelForSequenceClassification": "text-classification",
}


class Folder:
    """An exported folder, open."""

    def __init__(self, place: str, auto_class: str) -> None:
        auto = getattr(transformers, auto_class)
        self.model = auto.from_pretrained(place).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        # by the folder alone, as a stranger has it
        self.pipeline = transformers.pipeline(PIPELINES[auto_class], place)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return self.tokenizer(text)["input_ids"]

    def decode(self, ids: list[int]) -> str:
        """The text of ids."""
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def logits(self, ids: list[int], tgt_in: list[int]) -> list[Any]:
        """The logits of one row."""
        inputs = {"input_ids": torch.tensor([ids])}
        if tgt_in:
            inputs["decoder_input_ids"] = torch.tensor([tgt_in])
        with torch.inference_mode():
            return self.model(**inputs).logits[0].tolist()

    def search(self, ids: list[int], limit: int, beam_size: int) -> list[int]:
        """The new ids of one row, without the end."""
        row = torch.tensor([ids])
        with torch.inference_mode():
            (found,) = self.model.generate(
                input_ids=row,
                attention_mask=torch.ones_like(row),
                num_beams=beam_size,
                length_penalty=0.0,
                max_new_tokens=limit,
                do_sample=False,
                repetition_penalty=1.0,
            ).tolist()
        before = 1 if self.model.config.is_encoder_decoder else len(ids)
        end = self.model.generation_config.eos_token_id
        new = found[before:]
        return new[: new.index(end)] if end in new else new

    def settings(self, names: list[str]) -> dict[str, Any]:
        """The settings of the pipeline."""
        config = self.pipeline.generation_config
        return {name: getattr(config, name) for name in names}

    def use(self, text: str, settings: dict[str, Any]) -> Any:
        """The answer of the version's own pipeline."""
        return self.pipeline(text, **settings)


def main() -> None:
    """Answer requests until there are no more."""
    transformers.logging.set_verbosity_error()
    folder: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        if do == "open":
            folder = Folder(**request)
            answer = transformers.__version__
        else:
            answer = getattr(folder, do)(**request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
