"""Weft for decoding_peers.py: `python benchmarks/decoding_weft.py JOB`."""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from decoding_clock import Ids, Output, Translate, by_length, measure, padded

from weft.config import Seq2SeqSection
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from weft.decoding.search import continuous_search, search_all
from weft.decoding.sentences import BeamSettings, Sentence, Waiting
from weft.engine.bindings import Engine
from weft.engine.from_model import weights_of
from weft.engine.torch_steps import engine_of_steps
from weft.kernels.machine import Machine
from weft.model.transformer import Seq2SeqTransformer
from weft.tasks.trainable_translation import TrainableTranslation


def by_engine(job: dict[str, Any]) -> Translate:
    """Weft's search over its engine: `kind` of products, `workers` threads."""
    engine, beams = Engine(weights_of(_weft_model(job)), job["kind"]), _beams(job)
    shortlist = _task(job).shortlist if job.get("shortlist") else None

    def translate(sources: Sequence[Ids]) -> list[Output]:
        sentences = _sentences(job, sources)
        if shortlist is not None:
            sentences = [
                replace(sentence, allowed=shortlist.of(sentence.ids))
                for sentence in sentences
            ]
        if count := job.get("listed"):  # as many ids, drawn at random
            draw = random.Random(1)
            ids = range(EOS_ID, job["entries"])
            sentences = [
                replace(sentence, allowed=sorted(draw.sample(ids, count)))
                for sentence in sentences
            ]
        found = search_all(
            engine, sentences, beams, job["workers"], job["batch_tokens"]
        )
        return [(found[i][0].ids, found[i][0].score) for i in range(len(sources))]

    return translate


def by_torch(job: dict[str, Any]) -> Translate:
    """The same search over PyTorch's operations, with as many threads as `threads` says."""
    torch.set_num_threads(job["threads"])
    model, beams = _weft_model(job), _beams(job)

    def step(newest: Any, cache: Any) -> Any:
        states, cache = model.decode(newest[:, None], cache)
        return model.output(states[:, -1]), cache

    def prefill(sources: Sequence[Ids]) -> Any:
        return model.prefill(torch.tensor(padded(sources, PAD_ID)))

    def batch(sources: Sequence[Ids]) -> list[Output]:
        engine = engine_of_steps(prefill, step)
        decoder = engine.session(len(sources), job["beam"])
        with torch.inference_mode():
            found = dict(
                continuous_search(
                    decoder, Waiting(_sentences(job, sources)), beams, sys.maxsize
                )
            )
        return [(found[i][0].ids, found[i][0].score) for i in range(len(sources))]

    return lambda sources: by_length(batch, sources)


def _beams(job: dict[str, Any]) -> BeamSettings:
    banned = (
        (PAD_ID, UNK_ID, BOS_ID, EOS_ID) if job["forced"] else (PAD_ID, UNK_ID, BOS_ID)
    )
    return BeamSettings(BOS_ID, EOS_ID, job["beam"], 1.0, 1, banned)


def _sentences(job: dict[str, Any], sources: Sequence[Ids]) -> list[Sentence]:
    return [
        Sentence(i, ids, job["forced"] or job["limit"]) for i, ids in enumerate(sources)
    ]


def _weft_model(job: dict[str, Any]) -> Any:
    """From a model folder; else of the shape given, with random weights of a fixed seed."""
    if job["folder"]:
        return _task(job).model
    torch.manual_seed(1)
    shape = Seq2SeqSection(**job["shape"])
    return Seq2SeqTransformer(shape, job["entries"], job["entries"], joint=True).eval()


def _task(job: dict[str, Any]) -> TrainableTranslation:
    return TrainableTranslation.load(
        Path(job["folder"]), Machine("cpu", "float32", 1, "")
    )


if __name__ == "__main__":
    measure(sys.argv[1], lambda job: by_engine(job) if job["kind"] else by_torch(job))
