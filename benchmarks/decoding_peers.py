"""How fast Weft decodes beside its peers: `python benchmarks/decoding_peers.py`.

Weft's engine and CTranslate2 have the same weights: of a model folder (--folder), else random ones
of the sizes small (3+3 layers of width 256) and base (6+6 of 512), 8,000 entries. Sources are the
first sentences of Multi30k's test_2016_flickr in English, as the peers' preparation (or the
folder's own tokenizer) cuts them. "transformers" has them too. With --forced 16 each output has
exactly 16 tokens; then EOLE, Sockeye and fairseq can take part (--names), with weights of their own
of the same size, after a few updates (STEPS=12 bash eole.sh fit small, and so on). Each measurement
is a process of its own; they take turns. Loading does not count. Needs the peers' environment
(PEERS_ROOT); who is missing is skipped, saying so. Nothing else should run meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
import torch
from side_by_side import (
    CORES,
    DATA,
    INSTALLED,
    Contestant,
    in_turns,
    refuse_missing,
    say,
)

from weft.config import Seq2SeqSection
from weft.data.tokenizer import EOS_ID
from weft.engine.from_model import weights_of
from weft.kernels.machine import Machine
from weft.model.transformer import Seq2SeqTransformer
from weft.tasks.trainable_translation import TrainableTranslation

HERE = Path(__file__).resolve().parent
OTHER = INSTALLED / "base" / "bin" / "python"  # where CTranslate2 is
TEST = [DATA / "multi30k" / f"test_2016_flickr.{language}" for language in ("en", "de")]
ENTRIES = 8000
SIZES: dict[str, dict[str, Any]] = {
    "small": {
        "d_model": 256,
        "d_ff": 1024,
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        "max_len": 256,
    },
    "base": {
        "d_model": 512,
        "d_ff": 2048,
        "num_encoder_layers": 6,
        "num_decoder_layers": 6,
        "max_len": 256,
    },
}
LIMIT = 60  # tokens of an output, where none is forced


def flat(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of nested dataclasses and tuples that is not None, by its path."""
    begin = f"{path}." if path else ""
    if is_dataclass(part):
        for field in fields(part):
            yield from flat(getattr(part, field.name), begin + field.name)
    elif isinstance(part, tuple):
        for number, element in enumerate(part):
            yield from flat(element, f"{begin}{number}")
    elif part is not None:
        yield (
            path,
            np.asarray(part),
        )


def contestants(
    job: Mapping[str, Any], scratch: Path, names: Sequence[str]
) -> list[Contestant]:
    """Each a process that measures itself."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    known: dict[str, tuple[str, str, dict[str, Any]]] = {
        **{
            f"Weft {kind}": (sys.executable, "weft", {"kind": kind, "workers": CORES})
            for kind in ("int8", "bfloat16", "float32")
        },
        "Weft int8, shortlist": (
            sys.executable,
            "weft",
            {"kind": "int8", "workers": CORES, "shortlist": True},
        ),
        "Weft int8, one thread": (
            sys.executable,
            "weft",
            {"kind": "int8", "workers": 1},
        ),
        **{
            name: (sys.executable, "torch", {"peer": name.lower()})
            for name in ("EOLE", "Sockeye", "fairseq")
        },
        "transformers": (str(OTHER), "transformers", {"threads": CORES}),
        "Weft, PyTorch's operations": (
            sys.executable,
            "weft",
            {"kind": None, "threads": CORES},
        ),
        **{
            f"CTranslate2 {kind}, {inter} x {intra}": (
                str(OTHER),
                "ctranslate2",
                {"kind": kind, "inter": inter, "intra": intra},
            )
            for kind in ("int8", "int8_bfloat16", "bfloat16", "float32")
            for inter, intra in ((CORES, 1), (1, CORES))
        },
    }
    if unknown := set(names) - set(known):
        raise SystemExit(
            f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}"
        )
    found = []
    for name in names:
        program, kind, more = known[name]
        if not Path(program).is_file():
            say(f"{name}: skipped: {program} is absent")
            continue
        path = scratch / f"{len(found)}.json"
        path.write_text(json.dumps({**job, **more}), "utf-8")
        alone = (
            kind in ("torch", "transformers")
            or name == "Weft, PyTorch's operations"
            or "1 x" in name
        )
        env = {} if alone else threads
        found.append(
            Contestant(
                name, [program, str(HERE / f"decoding_{kind}.py"), str(path)], env
            )
        )
    return found


def prepared(
    asked: argparse.Namespace, size: str, scratch: Path
) -> tuple[dict[str, Any], Any]:
    """The job that all have in common, and what turns ids into text (None: nothing does)."""
    lines = TEST[0].read_text("utf-8").split("\n")[: asked.sentences]
    job: dict[str, Any] = {
        "beam": 0,
        "forced": asked.forced,
        "limit": LIMIT,
        "alone": asked.alone,
        "folder": asked.folder,
    }
    job |= {"batch_tokens": asked.batch_tokens, "converted": str(scratch / "converted")}
    job["weights"] = str(scratch / "weights.npz")
    if asked.folder:
        task = TrainableTranslation.load(
            Path(asked.folder), Machine("cpu", "float32", 1, "")
        )
        model, tokenizers = task.model, task.tokenizers
        ids = tokenizers[0].encode_batch([line.strip() for line in lines])
        decode = tokenizers[1].decode
    else:
        torch.manual_seed(1)
        job |= {"shape": SIZES[size], "entries": ENTRIES}
        model = Seq2SeqTransformer(
            Seq2SeqSection(**SIZES[size]), ENTRIES, ENTRIES, joint=True
        ).eval()
        pieces = (
            (INSTALLED / "data" / "tok" / "test_2016_flickr.en")
            .read_text("utf-8")
            .split("\n")[: asked.sentences]
        )
        entries: dict[str, int] = {}
        ids = [
            [
                4 + entries.setdefault(p, len(entries)) % (ENTRIES - 4)
                for p in line.split()
            ]
            for line in pieces
        ]
        decode = None
    job["sources"] = [[*row, EOS_ID] for row in ids]
    np.savez(job["weights"], **dict(flat(weights_of(model))))
    if OTHER.is_file():
        convert = [
            str(OTHER),
            str(HERE / "ctranslate2_model.py"),
            job["weights"],
            job["converted"],
        ]
        subprocess.run(convert, check=True)
    return job, decode


def table(
    title: str, found: Mapping[str, Sequence[Mapping[str, Any]]], decode: Any
) -> str:
    """Medians, fastest first; the ratio is the median over rounds of the first one's speed to this
    one's.
    """
    first = next(iter(found))
    speeds = {
        name: [turn["sentences_per_s"] for turn in turns]
        for name, turns in found.items()
        if turns
    }
    head = f"| {title} | sentences/s | lowest to highest | tokens/s | one alone, ms | ready after, s | peak MiB |"
    rows = [
        f"{head} {first}, times this | BLEU |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    references = TEST[1].read_text("utf-8").split("\n")
    for name in sorted(speeds, key=lambda name: -statistics.median(speeds[name])):
        turns, own = found[name], speeds[name]
        ratio = statistics.median(
            a / b for a, b in zip(speeds[first], own, strict=False)
        )
        alone = statistics.median(turn["alone_ms"] or 0 for turn in turns)
        tokens = statistics.median(turn["tokens_per_s"] for turn in turns)
        ready, peak = (
            statistics.median(turn[what] for turn in turns)
            for what in ("ready_s", "peak_rss_mib")
        )
        bleu = ""
        if decode is not None:
            texts = [decode(ids) for ids in turns[-1]["outputs"]]
            bleu = (
                f"{sacrebleu.corpus_bleu(texts, [references[: len(texts)]]).score:.2f}"
            )
        rows.append(
            f"| {name} | {statistics.median(own):,.0f} | {min(own):,.0f} to {max(own):,.0f} | {tokens:,.0f} | "
            f"{alone:.1f} | {ready:.1f} | {peak:,.0f} | {ratio:.2f} | {bleu} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Print a table for each size and beam."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--sizes", nargs="+", choices=SIZES, default=["small"], help="of random models"
    )
    parser.add_argument("--folder", help="a model folder instead")
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument(
        "--forced", type=int, help="tokens that each output has; else natural lengths"
    )
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument(
        "--alone", type=int, default=50, help="sentences translated one by one"
    )
    parser.add_argument("--batch-tokens", type=int, default=4096, help="Weft's budget")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds for one measurement"
    )
    default = ["Weft int8", "Weft bfloat16", "Weft float32"]
    default += [f"CTranslate2 {kind}, {CORES} x 1" for kind in ("int8", "float32")] + [
        f"CTranslate2 int8, 1 x {CORES}"
    ]
    parser.add_argument(
        "--names",
        nargs="+",
        default=default,
        help="who takes part, the first as the measure",
    )
    asked = parser.parse_args()
    refuse_missing(*TEST)
    for size in ["folder"] if asked.folder else asked.sizes:
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
            job, decode = prepared(asked, size, Path(scratch))
            for beam in asked.beams:
                found = in_turns(
                    contestants({**job, "beam": beam}, Path(scratch), asked.names),
                    asked.rounds,
                    asked.limit,
                )
                length = (
                    f"{asked.forced} tokens forced"
                    if asked.forced
                    else "natural lengths"
                )
                print(
                    f"\n{table(f'{size}, beam {beam}, {length}', found, decode)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
