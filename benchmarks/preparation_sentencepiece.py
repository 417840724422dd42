"""SentencePiece for preparation_peers.py: `python benchmarks/preparation_sentencepiece.py JOB`.

Needs nothing of Weft. The job is JSON: the two files, a folder to write to, the kind and size of
the vocabulary, the sentences to learn from (0: all), threads, and whether the ids are to be written
as arrays here, as they are where no other program does it. Prints the name of each stage when it
begins.
"""

import json
import sys
from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece

CHUNK = 10_000  # lines that are encoded together


def main() -> None:
    """Learn one vocabulary for both files, and encode them."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    files = list(map(Path, job["files"]))
    print("learning the tokenizers", flush=True)
    sentencepiece.SentencePieceTrainer.train(
        input=job["files"],
        model_prefix=str(folder / "joint"),
        model_type=job["kind"],
        vocab_size=job["vocab_size"],
        input_sentence_size=job["sentences"],
        shuffle_input_sentence=True,
        num_threads=job["threads"],
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "joint.model"))
    print("encoding the text", flush=True)
    write = write_arrays if job["arrays"] else write_pieces
    for file, name in zip(files, ("train.src", "train.tgt"), strict=True):
        write(model, file, folder / name, job["threads"])
    print("done", flush=True)


def chunks(file: Path) -> Iterator[list[str]]:
    """Yield the lines of a file in lists."""
    with file.open(encoding="utf-8", newline="\n") as lines:
        while chunk := [line.rstrip("\n") for line in islice(lines, CHUNK)]:
            yield chunk


def write_pieces(model: Any, file: Path, path: Path, threads: int) -> None:
    """Write the pieces of each line, with spaces between them, as other programs read them."""
    with path.open("w", encoding="utf-8", newline="\n") as written:
        for chunk in chunks(file):
            for pieces in model.encode(chunk, out_type=str, num_threads=threads):
                written.write(" ".join(pieces) + "\n")


def write_arrays(model: Any, file: Path, path: Path, threads: int) -> None:
    """Write the ids of all lines one behind the other, and where each line ends."""
    ends = array("q")
    total = 0
    with path.open("wb") as written:
        for chunk in chunks(file):
            for ids in model.encode(chunk, num_threads=threads):
                array("H", ids).tofile(written)
                total += len(ids)
                ends.append(total)
    path.with_suffix(f"{path.suffix}.ends").write_bytes(ends.tobytes())


if __name__ == "__main__":
    main()
