"""A peer on PyTorch for decoding_peers.py: `python benchmarks/decoding_torch.py JOB`.

Runs the peers' own scripts, and prints what they measure as decoding_clock.py would. Their weights
are random ones of the same size, or of a few updates of training; the number of tokens of each
output is forced.
"""

import json
import subprocess
import sys
from pathlib import Path

from side_by_side import INSTALLED, PEERS


def main() -> None:
    """Decode once."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    python, count = str(INSTALLED / "base" / "bin" / "python"), str(len(job["sources"]))
    size = "base" if job["shape"]["d_model"] == 512 else "small"
    more = [
        "--beam",
        str(job["beam"]),
        "--steps",
        str(job["forced"]),
        "--n",
        count,
        "--repeat",
        "1",
    ]
    command = [python, str(PEERS / "decode_peer.py"), job["peer"], size, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(
        next(line for line in done.stdout.split("\n")[::-1] if line.startswith("{"))
    )
    if "sent_per_s" not in found:
        raise SystemExit(f"{job['peer']}: {found.get('last', done.stderr[-300:])}")
    facts = {
        "sentences_per_s": found["sent_per_s"],
        "tokens_per_s": found["out_tok_per_s"],
        "alone_ms": None,
    }
    print(
        json.dumps(
            {
                **facts,
                "ready_s": 0.0,
                "peak_rss_mib": found["peak_rss_mib"] or 0,
                "outputs": [],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
