"""Does a translation depend on what stands beside it? `python benchmarks/batch_independence.py
--folder FOLDER`.

Every sentence of Multi30k's test_2016_flickr is translated alone, then in shuffled batches of 2 to
128 sentences, again and again; the outputs that are not the same are counted, and the scores of
those that are: for Weft's engine in float32, bfloat16 and int8, for Weft over PyTorch's operations,
and for CTranslate2 and transformers with the same weights. Nothing is timed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from decoding_peers import CORES, TEST, contestants, prepared
from side_by_side import refuse_missing, say


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True, help="a model folder")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument(
        "--limit", type=float, default=3600, help="seconds for one of them"
    )
    default = [f"Weft {kind}" for kind in ("float32", "bfloat16", "int8")] + [
        "Weft, PyTorch's operations"
    ]
    default += [f"CTranslate2 {kind}, {CORES} x 1" for kind in ("float32", "int8")]
    default.append("transformers")
    parser.add_argument("--names", nargs="+", default=default)
    asked = parser.parse_args()
    refuse_missing(*TEST)
    asked.forced, asked.alone, asked.batch_tokens = None, 0, 4096
    print(
        f"| beam {asked.beam} | decodings | other ids | other scores | by at most |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        job, _ = prepared(asked, "", Path(scratch))
        job |= {"beam": asked.beam, "shuffles": asked.shuffles}
        for contestant in contestants(job, Path(scratch), asked.names):
            try:
                found = contestant.measure(asked.limit)
            except RuntimeError as error:
                say(f"{contestant.name}: failed: {error}")
                continue
            counts = f"{found['decoded']:,} | {found['differ']:,} | {found['other_scores']:,}"
            print(f"| {contestant.name} | {counts} | {found['largest']:.1g} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
