"""A folder opened by transformers: its own classes compute, its own tokenizer reads."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.folder.arrays import read_arrays
from weft.predict.classifier import THRESHOLD
from weft.ship.certificate.used import NEW_TOKENS
from weft.ship.huggingface.batches import batches, padded, stop_at
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.target import load, versions_of
from weft.ship.tensors import Array

WEIGHTS = "model.safetensors"


class OpenedByTransformers(Opened):
    """A model that the library opens by its automatic classes; `auto_class` is the one for it."""

    def __init__(self, place: Path, auto_class: str) -> None:
        transformers = load("transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.torch = load("torch")
        self.place = place
        auto = getattr(transformers, auto_class)
        self.model: Any = auto.from_pretrained(place).eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(place)

    @property
    def versions(self) -> Mapping[str, str]:
        return versions_of("transformers", "tokenizers", "torch")

    def arrays(self) -> Iterator[tuple[str, Array]]:
        yield from read_arrays(self.place / WEIGHTS).items()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    def logits(self, row: Row) -> Floats:
        ids = self.torch.tensor([row.ids])
        inputs = {"input_ids": ids}
        if row.tgt_in:
            tgt_in = self.torch.tensor([row.tgt_in])
            inputs["decoder_input_ids"] = tgt_in
        with self.torch.inference_mode():
            (logits,) = self.model(**inputs).logits.numpy()
        found: Floats = logits
        return found

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        lens = [len(row.ids) for row in rows]
        # a decoder that is given its rows alone may count positions from their padding on
        may_pad = self.model.config.is_encoder_decoder
        found: dict[int, list[int]] = {}
        for places in batches(lens, may_pad):
            some = [rows[place] for place in places]
            outputs = self._search(some, beam_size)
            found |= zip(places, outputs, strict=True)
        return [found[place] for place in range(len(rows))]

    def _search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        """Search for rows in one batch, each up to its own limit."""
        limits = [row.limit for row in rows]
        pad = self.model.generation_config.pad_token_id
        inputs = padded([row.ids for row in rows], pad)
        lengths = self.torch.tensor(limits) + self._num_before(inputs)
        outputs = self._generate(
            inputs,
            num_beams=beam_size,
            length_penalty=0.0,
            max_new_tokens=max(limits),
            stopping_criteria=[stop_at(lengths)],
            do_sample=False,
            repetition_penalty=1.0,
        )
        pairs = zip(outputs, limits, strict=True)
        return [ids[:limit] for ids, limit in pairs]

    def use(self, texts: Sequence[str]) -> list[Any]:
        lens = [len(text) for text in texts]
        found: dict[int, Any] = {}
        for places in batches(lens, may_pad=True):
            some = [texts[place] for place in places]
            outputs = self._use(some)
            found |= zip(places, outputs, strict=True)
        return [found[place] for place in range(len(texts))]

    def _use(self, texts: list[str]) -> list[Any]:
        raise NotImplementedError

    def _pipeline(self, task: str, **settings: Any) -> Any:
        transformers = load("transformers")
        return transformers.pipeline(
            task,
            model=self.model,
            tokenizer=self.tokenizer,
            **settings,
        )

    def _generate(self, inputs: Mapping[str, Any], **settings: Any) -> list[list[int]]:
        """Return the new ids of each row, without the end."""
        with self.torch.inference_mode():
            outputs = self.model.generate(**inputs, **settings)
        config = self.model.generation_config
        num_before = self._num_before(inputs)
        rows = outputs[:, num_before:].tolist()
        return [_until(row, config.eos_token_id) for row in rows]

    def _num_before(self, inputs: Mapping[str, Any]) -> int:
        """Return how many ids stand before the new ones: a decoder begins with its start, a
        language model with the row itself.
        """
        is_seq2seq = self.model.config.is_encoder_decoder
        return 1 if is_seq2seq else int(inputs["input_ids"].shape[1])


class OpenedTranslator(OpenedByTransformers):
    """A translator."""

    def _use(self, texts: list[str]) -> list[Any]:
        inputs = self.tokenizer(texts, return_tensors="pt", padding=True)
        written = self._generate(inputs)
        return [self.decode(ids) for ids in written]


class OpenedWriter(OpenedByTransformers):
    """A language model: beginnings are continued by the library's pipeline, without chance."""

    def _use(self, texts: list[str]) -> list[Any]:
        pipeline = self._pipeline("text-generation")
        answers = pipeline(
            texts,
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            return_full_text=False,
        )
        return [found["generated_text"] for (found,) in answers]


class OpenedClassifier(OpenedByTransformers):
    """A classifier: texts become labels by the library's pipeline, which takes no text that is
    empty.
    """

    def _use(self, texts: list[str]) -> list[Any]:
        pipeline = self._pipeline(
            "text-classification",
            truncation=True,
        )
        found = []
        for text in texts:
            labels: list[str] = []
            if self.encode(text):
                answer = pipeline(text, top_k=None)
                labels = self._labels(answer)
            found.append(labels)
        return found

    def _labels(self, answer: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the labels that hold, in the model's order."""
        config = self.model.config
        scores = {found["label"]: found["score"] for found in answer}
        if config.problem_type != "multi_label_classification":
            return [max(scores, key=lambda label: scores[label])]
        held = [label for label, score in scores.items() if score >= THRESHOLD]
        return sorted(held, key=lambda label: config.label2id[label])


def _until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids
