"""Weft's preparation beside its peers': `python benchmarks/preparation_peers.py PYTHON`.

PYTHON is that of an environment with sentencepiece, and with opusfilter for the check. Weft learns
the tokenizers and encodes the text as `preparation.py` has it run; then SentencePiece learns a
vocabulary of the same kind and size from as many sentences and encodes the same files, and
fairseq-preprocess makes arrays of them (`--fairseq` names it; without it, SentencePiece's ids are
written as arrays at once). Weft's whole way is shown too, with the split and the check.

With `--check`, `weft check` and OpusFilter look at the same text: OpusFilter by the filters that
opusfilter-autogen proposes by default, each of them for every pair (`score`), since of pairs that
one filter drops the others see nothing; with its identification of languages and without. All have
the machine's cores, one after the other; each round gives a row for each.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from preparation import Spent, Watch, files_in, stages_of, write_corpus

from weft.data.crew import num_processes

SAME = ("learning the tokenizers", "encoding the text")
_SAMPLE = re.compile(r"learned from ([\d,]+) evenly spaced")
_OUTPUTS = re.compile(r"outputs:\n(?:\s+- .*\n)+(?=\s+filters:)")


def main() -> None:
    """Write the files, and let each prepare or check them in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--recipe", default="en-de-fast")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--fairseq", type=Path, help="fairseq-preprocess")
    parser.add_argument("--check", action="store_true", help="OpusFilter as well")
    parser.add_argument("--keep", type=Path, help="write the files here and keep them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        folder = asked.keep or Path(scratch)
        if not (folder / "text.tgt").is_file():
            folder.mkdir(exist_ok=True)
            write_corpus(folder, asked.pairs)
        print("   clock  processors  memory  stage", flush=True)
        for _ in range(asked.rounds):
            for spent in contestants(folder, asked):
                print(spent.row(), flush=True)


def contestants(folder: Path, asked: argparse.Namespace) -> Iterator[Spent]:
    """Yield what each takes for the whole, and SentencePiece for its parts."""
    own = list(stages_of(folder, asked.recipe))
    yield joined("Weft, from files to the first step", own)
    yield joined("Weft, tokenizers and encoding", [s for s in own if s.stage in SAME])
    work = folder / "peers"
    work.mkdir(exist_ok=True)
    peer = list(prepared_by_peers(folder, work, asked))
    yield from peer
    yield joined("SentencePiece and its binariser", peer)
    if asked.check:
        yield checked_by_weft(folder)
        yield checked_by_opusfilter(folder, work, asked.python, ["ja", "en"])
        yield checked_by_opusfilter(folder, work, asked.python, [])


def prepared_by_peers(
    folder: Path, work: Path, asked: argparse.Namespace
) -> Iterator[Spent]:
    """Yield what the stages of SentencePiece and of the binariser take, for the work that Weft has
    done by the record of its run.
    """
    run = folder / "run" / "run"
    config = json.loads((run / "config.json").read_text("utf-8"))
    if not config["joint"]:
        raise SystemExit("the recipe must have one tokenizer for both sides")
    sample = _SAMPLE.search((run / "verdict.json").read_text("utf-8"))
    job = {
        "files": list(map(str, files_in(folder))),
        "folder": str(work),
        "kind": config["tokenizer"]["src"]["kind"],
        "vocab_size": config["src_vocab_size"],
        "sentences": int(sample[1].replace(",", "")) if sample else 0,
        "threads": num_processes(),
        "arrays": asked.fairseq is None,
    }
    script = Path(__file__).with_name("preparation_sentencepiece.py")
    yield from used([asked.python, script, json.dumps(job)], "SentencePiece")
    if asked.fairseq is not None:
        yield from used(
            [
                *(asked.fairseq, "--source-lang", "src", "--target-lang", "tgt"),
                *("--trainpref", work / "train", "--destdir", work / "binary"),
                *("--joined-dictionary", "--workers", num_processes()),
            ],
            "fairseq-preprocess",
        )


def checked_by_weft(folder: Path) -> Spent:
    """Return what `weft check` takes."""
    files = ",".join(map(str, files_in(folder)))
    langs = ("--set", "data.src_lang=ja", "--set", "data.tgt_lang=en")
    spent = used([sys.executable, "-m", "weft", "check", files, *langs], "weft check")
    return joined("weft check", list(spent))


def checked_by_opusfilter(
    folder: Path, work: Path, python: Path, languages: Sequence[str]
) -> Spent:
    """Return what OpusFilter takes to score all pairs by its filters, among them the identification
    of languages where they are named.
    """
    config = work / "opusfilter.yaml"
    named = ["--langs", *languages] if languages else []
    order = [
        *(python.with_name("opusfilter-autogen"), "--method", "defaults"),
        *("--files", *files_in(folder), *named, "--work-dir", work, "-o", config),
        "--overwrite",
    ]
    subprocess.run(list(map(str, order)), check=True, stderr=subprocess.DEVNULL)
    proposed = config.read_text("utf-8").replace("type: filter", "type: score")
    config.write_text(_OUTPUTS.sub("output: scores.jsonl.gz\n", proposed), "utf-8")
    name = f"OpusFilter, languages {'identified' if languages else 'left out'}"
    jobs = ("--n-jobs", num_processes(), config)
    command = (python.with_name("opusfilter"), "--overwrite", *jobs)
    return joined(name, list(used(command, name)))


def used(command: Sequence[object], name: str) -> Iterator[Spent]:
    """Run a program; yield what each stage takes that it prints, or all of it together."""
    words = list(map(str, command))
    stage = name
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        watch = Watch(run.pid)
        for line in run.stdout:
            if line.strip() in SAME:
                yield watch.taken(stage)
                stage = f"{name}, {line.strip()}"
        spent = watch.taken(stage)
        watch.end()
    if run.returncode not in (0, 3):  # 3: weft check has found something fatal
        raise SystemExit(f"{name} ended with {run.returncode}")
    yield spent


def joined(name: str, spent: Sequence[Spent]) -> Spent:
    """Add up what stages take; the memory is that of the largest."""
    first, *others = spent
    total = replace(first, stage=name)
    for other in others:
        total = Spent(
            name,
            total.seconds + other.seconds,
            total.processors + other.processors,
            max(total.resident, other.resident),
            max(total.unique, other.unique),
        )
    return total


if __name__ == "__main__":
    main()
