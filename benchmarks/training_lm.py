"""How fast language models and classifiers train in Weft and elsewhere: `python
benchmarks/training_lm.py`.

Language models read Tiny Shakespeare by characters: Weft, a plain loop in nanoGPT's manner, and
transformers' Trainer with a GPT-2 of the same size, each with as many windows a step. Classifiers
read IMDB and SST-2 in the same pieces, texts cut at 256: Weft, and transformers' Trainer with a
BERT of the same size. Counted are tokens that are not padding. Weft is the command `weft train` and
chooses its precision and threads; the others run in float32, their default, and in bfloat16, and
BERT also with texts of like length beside each other ("grouped").

Corpora are read from WEFT_DATA, else ../shared/data; the others need a Python with torch,
transformers and accelerate: PEERS_PYTHON, else base/bin/python below PEERS_ROOT. What is absent is
skipped, saying so. PEERS_THREADS is their number of threads, else the number of cores. Nothing else
should run meanwhile.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from side_by_side import (
    DATA,
    INSTALLED,
    METER,
    PEER_ENV,
    THREADS,
    Contestant,
    as_settings,
    in_turns,
    print_table,
    say,
    weft,
)

from weft.config import SideSection
from weft.data.labelled import read_labelled
from weft.data.tokenizer import build_tokenizer

PYTHON = Path(os.environ.get("PEERS_PYTHON", INSTALLED / "base" / "bin" / "python"))
MODELS = Path(__file__).with_name("peer_models.py")
SHAKESPEARE = DATA / "tinyshakespeare" / "input.txt"
LONGEST = 256  # pieces of a text to classify
LIMIT = 600  # seconds of one measurement, at most


@dataclass(frozen=True)
class Shape:
    """The size of a model, and of a step: windows of `context` tokens, or texts of at most so
    many.
    """

    layers: int
    width: int
    heads: int
    context: int
    batch: int

    def settings(self, layers: str) -> list[str]:
        """As Weft's recipe says it."""
        sizes = {
            layers: self.layers,
            "d_model": self.width,
            "d_ff": 4 * self.width,
            "num_heads": self.heads,
        }
        return [f"model.{key}={value}" for key, value in sizes.items()]

    def arguments(self) -> list[str]:
        """As peer_models.py takes it."""
        names = ("layers", "width", "heads", "context", "batch")
        return [
            part for name in names for part in (f"--{name}", str(getattr(self, name)))
        ]


LANGUAGE = {
    # nanoGPT's advice for a processor
    "nanogpt-cpu": Shape(layers=4, width=128, heads=4, context=64, batch=12),
    "short": Shape(layers=4, width=256, heads=8, context=64, batch=64),
    "long": Shape(layers=4, width=256, heads=8, context=256, batch=16),
    "large": Shape(layers=6, width=384, heads=6, context=256, batch=16),
}


@dataclass(frozen=True)
class Rows:
    """Labelled texts: a file, how many of its rows, and about how many tokens a step has."""

    file: Path
    most: int
    tokens: int


CLASSIFIERS = {
    "imdb": Rows(DATA / "imdb" / "train.tsv.gz", 8_000, 4096),
    "sst2": Rows(DATA / "sst2" / "train_phrases.tsv", 30_000, 1024),
}


@dataclass(frozen=True)
class Measured:
    """What is measured, and how: a model on data in `folder`, of so many entries in its
    vocabulary.
    """

    shape: Shape
    folder: Path
    entries: int
    timing: list[str]

    def meter(self, python: Path | str) -> list[str]:
        """The beginning of a command that measures itself."""
        return [str(python), str(METER), "--entries", str(self.entries), *self.timing]

    def ours(self, text: Path, *settings: str) -> Contestant:
        """Weft on a text."""
        return Contestant(
            "Weft",
            [
                *self.meter(sys.executable),
                *weft("--train", str(text), *as_settings(*settings)),
            ],
        )

    def theirs(self, name: str, model: str, *more: str) -> list[Contestant]:
        """A model of peer_models.py, without and with a flag of `more`, in float32 and bfloat16."""
        if not PYTHON.exists():
            say(f"{name}: skipped: {PYTHON} is absent")
            return []
        command = [
            *self.meter(PYTHON),
            str(MODELS),
            "--",
            model,
            "--data",
            str(self.folder),
        ]
        command += [
            *self.shape.arguments(),
            "--entries",
            str(self.entries),
            "--threads",
            str(THREADS),
        ]
        found = []
        for choice in product(("", *more), ("", "--bf16")):
            flags = [flag for flag in choice if flag]
            label = " ".join([name, *(flag.removeprefix("--") for flag in flags)])
            found.append(Contestant(label, [*command, *flags], PEER_ENV))
        return found


def language_models(shape: Shape, folder: Path, timing: list[str]) -> list[Contestant]:
    """On the same ids: those of Weft's tokenizer for characters."""
    text = SHAKESPEARE.read_text("utf-8")
    tokenizer = build_tokenizer(SideSection(kind="character"), [text])
    np.save(folder / "ids.npy", np.array(tokenizer.encode(text), dtype=np.uint16))
    measured = Measured(shape, folder, tokenizer.vocab_size, timing)
    ours = measured.ours(
        SHAKESPEARE,
        "task=language-modelling",
        "data.documents=file",
        "data.dev_share=0",
        "tokenizer.kind=character",
        f"batches.window_len={shape.context}",
        f"batches.batch_size={shape.batch}",
        *shape.settings("num_decoder_layers"),
    )
    return [
        ours,
        *measured.theirs("plain loop", "gpt"),
        *measured.theirs("Trainer, GPT-2", "gpt2"),
    ]


def classifiers(rows: Rows, folder: Path, timing: list[str]) -> list[Contestant]:
    """On the same pieces; Weft counts a batch in tokens, transformers in texts: as many as make
    equal batches.
    """
    entries, mean = prepare_rows(rows, folder)
    shape = Shape(
        layers=4, width=256, heads=8, context=LONGEST, batch=round(rows.tokens / mean)
    )
    say(f"{mean:.1f} pieces a text, {shape.batch} texts a batch")
    measured = Measured(shape, folder, entries, timing)
    ours = measured.ours(
        folder / "rows.tsv",
        "task=classification",
        "data.dev_size=0",
        "data.test_size=0",
        f"data.max_len={LONGEST}",
        "tokenizer.kind=bpe",
        "tokenizer.vocab_size=8000",
        f"batches.tokens_per_batch={rows.tokens}",
        *shape.settings("num_encoder_layers"),
    )
    return [ours, *measured.theirs("Trainer, BERT", "bert", "--grouped")]


def prepare_rows(rows: Rows, folder: Path) -> tuple[int, float]:
    """Write the first rows as text, and as the ids that Weft makes of it; entries, and mean number
    of ids.
    """
    read = read_labelled([str(rows.file)], "text", "label")
    texts, labels = (
        read.texts[: rows.most],
        [label for (label,) in read.labels[: rows.most]],
    )
    table = "".join(
        f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)
    )
    (folder / "rows.tsv").write_text(f"label\ttext\n{table}", "utf-8", newline="\n")
    tokenizer = build_tokenizer(SideSection(kind="bpe", vocab_size=8000), texts)
    ids = [some[:LONGEST] for some in tokenizer.encode_batch(texts)]
    numbers = sorted(set(labels))
    facts = {"ids": ids, "labels": [numbers.index(label) for label in labels]}
    (folder / "texts.json").write_text(json.dumps(facts), "utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), "utf-8")
    return tokenizer.vocab_size, sum(map(len, ids)) / len(ids)


def main() -> None:
    """Print a table for each model."""
    names = [*LANGUAGE, *CLASSIFIERS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; else all"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--warm", type=float, default=6, help="seconds before the first window"
    )
    parser.add_argument(
        "--window",
        type=float,
        help="seconds, of each of three; else 4, for classifiers 10",
    )
    asked = parser.parse_args()
    for name in asked.names or names:
        if name not in names:
            parser.error(f"{name!r} is none of {', '.join(names)}")
        corpus = CLASSIFIERS[name].file if name in CLASSIFIERS else SHAKESPEARE
        if not corpus.is_file():
            say(f"{name}: skipped: {corpus} is absent")
            continue
        # The Trainer's groups of like length go from long to short in 50 steps: a window has to see
        # most of them.
        timing = [
            "--warm",
            str(asked.warm),
            "--window",
            str(asked.window or (4 if name in LANGUAGE else 10)),
        ]
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
            if name in LANGUAGE:
                shape = LANGUAGE[name]
                what = f"{shape.layers} layers of {shape.width}, {shape.batch} windows of {shape.context}"
                contestants = language_models(shape, Path(scratch), timing)
            else:
                what = f"{name}, 4 layers of 256"
                contestants = classifiers(CLASSIFIERS[name], Path(scratch), timing)
            print_table(
                f"{what}, {THREADS} threads", in_turns(contestants, asked.rounds, LIMIT)
            )


if __name__ == "__main__":
    main()
