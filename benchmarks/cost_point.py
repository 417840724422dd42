"""One point of training_cost.py, a process of its own.

`cost_point.py model --width ... ` trains on random ids until the meter ends it; `cost_point.py
corpus FILE,FILE` prepares a text as a run does before its first step, and prints the seconds of
each part and the peak of memory.
"""

import argparse
import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from weft.config import Seq2SeqSection, TrainingSection
from weft.data.batches import DEFAULT_TOKENS, Batch
from weft.data.overlap import TextHashes
from weft.data.texts import Sources
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.kernels import torch_machine
from weft.kernels.torch_machine import choose_machine
from weft.model.transformer import Seq2SeqTransformer
from weft.recipes.file import load_recipe
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training.checkpoint import Checkpoints
from weft.training.log import Log
from weft.training.loss import CrossEntropy, LossSums
from weft.training.optimizer import build_optimizer
from weft.training.trainer import Plan, Trainer

MANY = 10**9  # steps
FIRST_BATCHES = 10


@dataclass(frozen=True)
class RandomBatches:
    """As many pairs of sentences of one length as make a batch of the usual size, all of random
    ids.
    """

    length: int
    entries: int

    def num_batches(self, epoch: int) -> int:
        """There is no end."""
        return MANY

    def batch(self, epoch: int, position: int) -> Batch:
        """Other ids each time."""
        rows = max(1, DEFAULT_TOKENS // (2 * self.length))
        src, tgt = (
            torch.randint(EOS_ID + 1, self.entries, (rows, self.length))
            for _ in range(2)
        )
        tgt_in = torch.cat([torch.full((rows, 1), BOS_ID), tgt[:, :-1]], dim=1)
        return Batch(
            src, tgt_in, tgt, torch.arange(rows).numpy(), src.numel(), tgt.numel()
        )


def train(asked: argparse.Namespace) -> None:
    """Weft's trainer, with the settings that a run has by default."""
    shape = Seq2SeqSection(
        d_model=asked.width,
        d_ff=4 * asked.width,
        num_encoder_layers=asked.layers,
        num_decoder_layers=asked.layers,
    )
    settings = TrainingSection()
    machine = choose_machine(settings.precision, settings.threads, settings.kernels)
    torch.manual_seed(settings.seed)
    model = Seq2SeqTransformer(shape, asked.entries, asked.entries, joint=True).to(
        torch_machine.prepare(machine)
    )
    loss = CrossEntropy(settings.label_smoothing)

    def compute_loss(batch: Batch) -> LossSums:
        with torch_machine.autocast(machine):
            return loss(
                model.states(batch.src, batch.tgt_in),
                model.output,
                batch.tgt_out,
                model.projection,
            )

    with tempfile.TemporaryDirectory() as scratch, torch_machine.computing(machine):
        Trainer(
            model=model,
            batches=RandomBatches(asked.length, asked.entries),
            compute_loss=compute_loss,
            optimizer=build_optimizer(model, settings),
            settings=settings,
            plan=Plan(MANY, MANY, MANY),
            rate=lambda step, last: settings.learning_rate,
            checkpoints=Checkpoints(Path(scratch), 1),
            log=Log(quiet=True),
        ).run()


def prepare(files: str) -> None:
    """Read and check, learn the tokenizer, encode, plan an epoch and make its first batches."""
    seconds: dict[str, float] = {}
    last = time.perf_counter()

    def note(part: str) -> None:
        nonlocal last
        seconds[part], last = round(time.perf_counter() - last, 2), time.perf_counter()

    recipe = load_recipe(None, ["data.dev_size=0", "data.test_size=0"])
    texts = TrainableTranslation.gather(recipe, Sources((files,))).accepted(True)
    recipe = TrainableTranslation.resolve(recipe, texts, None, "")
    TextHashes.of(TrainableTranslation.overlap_rows(texts.train))
    note("read and check")
    tokenizers = TrainableTranslation.learn_tokenizers(recipe, texts)
    note("learn the tokenizer")
    machine = choose_machine()
    task = TrainableTranslation.build(recipe, texts, tokenizers, machine)
    last = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch, torch_machine.computing(machine):
        batches = task.prepare(Path(scratch), texts, recipe).batches
        note("encode")
        for position in range(min(FIRST_BATCHES, batches.num_batches(0))):
            batches.batch(0, position)
        note("plan an epoch")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": seconds, "peak_rss_mib": peak}))


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    model = kinds.add_parser("model")
    for name in ("width", "layers", "length", "entries"):
        model.add_argument(f"--{name}", type=int, required=True)
    kinds.add_parser("corpus").add_argument("files")
    asked = parser.parse_args()
    if asked.kind == "model":
        train(asked)
    else:
        prepare(asked.files)


if __name__ == "__main__":
    main()
