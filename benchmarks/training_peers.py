"""How fast translation models train in Weft and in its peers: `python
benchmarks/training_peers.py`.

All read the same pieces of Multi30k, English to German, one joint vocabulary of 8,000, in batches
of about 4,096 source and target tokens, padding included, with label smoothing and dropout of 0.1.
Counted are source and target tokens that are not padding, by the peers' meter.py, which watches
each program's own training from outside. Weft is the command `weft train` at its defaults: its
tokenizer takes the pieces for words, and its vocabulary has 148 entries more than the others'.

Needs the peers' scripts (WEFT_PEERS, else ../shared/peers beside the project), what they install
(PEERS_ROOT) and the data that they prepare. PEERS_THREADS is the peers' number of threads, else the
number of cores; Weft chooses. What is not installed is skipped, saying so. Nothing else should run
meanwhile.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from side_by_side import (
    INSTALLED,
    PEER_ENV,
    PEERS,
    PEERS_DATA,
    THREADS,
    Contestant,
    as_settings,
    in_turns,
    print_table,
    say,
    weft,
)

LIMIT = 600  # seconds of one measurement, at most
SIZES = {
    "small": (),
    "base": (
        "model.d_model=512",
        "model.d_ff=2048",
        "model.num_encoder_layers=6",
        "model.num_decoder_layers=6",
    ),
}
PIECES = [
    f"tokenizer.{side}.{setting}"
    for side in ("src", "tgt")
    for setting in ("kind=word", "words=whitespace", "vocab_size=8256")
]
# Plain loops in one environment, by the name that bench_base.py has for them, and toolkits with a
# script each.
LOOPS = {
    "nn.Transformer": "nn",
    "transformers": "hf",
    "x-transformers": "xt",
    "tutorial": "tutorial",
}
TOOLKITS = {
    "EOLE": "eole",
    "OpenNMT-py": "opennmt",
    "fairseq": "fairseq",
    "Sockeye": "sockeye",
    "Joey NMT": "joeynmt",
}


@dataclass(frozen=True)
class Timing:
    """Seconds before the first window, and of each of three windows."""

    warm: float
    window: float

    def arguments(self) -> list[str]:
        """As the peers' meter takes them."""
        return [
            "--warm",
            f"{self.warm:g}",
            "--win",
            f"{self.window:g}",
            "--windows",
            "3",
        ]


def contestants(size: str, timing: Timing) -> list[Contestant]:
    """Weft, then the peers, each at its default precision and, where it has one, in bfloat16."""
    found = [
        ours("Weft", size, timing),
        ours("Weft float32", size, timing, "training.precision=float32"),
    ]
    for name, loop in LOOPS.items():
        python = str(INSTALLED / "base" / "bin" / "python")
        command = [
            python,
            str(PEERS / "bench_base.py"),
            "train",
            "--peer",
            loop,
            "--size",
            size,
        ]
        found.append(Contestant(name, [*command, *timing.arguments()], PEER_ENV))
        if loop != "tutorial":
            found.append(
                Contestant(
                    f"{name} bf16", [*command, *timing.arguments(), "--bf16"], PEER_ENV
                )
            )
    for name, script in TOOLKITS.items():
        command, meter = (
            ["bash", str(PEERS / f"{script}.sh"), "train", size],
            " ".join(timing.arguments()),
        )
        found.append(Contestant(name, command, {**PEER_ENV, "METER": meter}))
        if script == "eole":
            found.append(
                Contestant(
                    f"{name} bf16",
                    command,
                    {**PEER_ENV, "METER": meter, "DTYPE": "bf16"},
                )
            )
        # none has bfloat16 on a processor; put around Sockeye's traced model, it fails
        elif script != "sockeye":
            low = {**PEER_ENV, "METER": f"--autocast {meter}"}
            found.append(Contestant(f"{name} autocast", command, low))
    return [*found, marian(size, timing)]


def ours(name: str, size: str, timing: Timing, *more: str) -> Contestant:
    """Weft's own command line under the peers' meter."""
    text = ",".join(str(PEERS_DATA / "tok" / f"train.{lang}") for lang in ("en", "de"))
    meter = [
        sys.executable,
        str(PEERS / "meter.py"),
        "--pad",
        "0",
        "--tag",
        "weft",
        *timing.arguments(),
    ]
    settings = as_settings(
        "tokenizer.joint=true",
        *PIECES,
        "data.dev_size=0",
        "data.test_size=0",
        *SIZES[size],
        *more,
    )
    return Contestant(name, [*meter, "--module", *weft("--train", text, *settings)])


def marian(size: str, timing: Timing) -> Contestant:
    """Marian reports its speed itself, here after every update; it is given some seconds to
    begin.
    """
    seconds = timing.warm + 3 * timing.window + 30
    command = [
        sys.executable,
        str(PEERS / "marian.py"),
        "train",
        size,
        "--threads",
        str(THREADS),
        "--omp",
        "1",
    ]
    given = [
        "--seconds",
        f"{seconds:g}",
        "--warm",
        f"{timing.warm:g}",
        "--disp",
        "5u" if size == "small" else "1u",
    ]
    return Contestant("Marian", [*command, *given], PEER_ENV)


def missing(name: str) -> str:
    """What a peer lacks, if anything."""
    peer = name.removesuffix(" bf16").removesuffix(" autocast")
    folder = TOOLKITS.get(peer) or ("base" if peer in LOOPS else "marian")
    needed = [] if peer.startswith("Weft") else [INSTALLED / folder / "bin" / "python"]
    return next((f"{path} is absent" for path in needed if not path.exists()), "")


def present(
    asked: Sequence[str] | None, also: Sequence[str], size: str, timing: Timing
) -> list[Contestant]:
    """Weft, also with other settings, and those peers asked for that are installed."""
    found = [ours(f"Weft {setting}", size, timing, setting) for setting in also]
    for contestant in contestants(size, timing):
        wanted = (
            asked is None
            or contestant.name.startswith("Weft")
            or contestant.name in asked
        )
        if wanted and (lack := missing(contestant.name)):
            say(f"{contestant.name}: skipped: {lack}")
        elif wanted:
            found.append(contestant)
    if (
        any(c.name.startswith("fairseq") for c in found)
        and not (INSTALLED / "work" / "fairseq_bin").is_dir()
    ):
        command = ["bash", str(PEERS / "fairseq.sh"), "prep"]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    return found


def main() -> None:
    """Print a table for each size."""
    names = [contestant.name for contestant in contestants("small", Timing(0, 0))]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="SETTING",
        help="Weft with each of these as well",
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=names,
        metavar="NAME",
        help=f"of {', '.join(names)}",
    )
    parser.add_argument(
        "--warm", type=float, default=8, help="seconds before the first window"
    )
    parser.add_argument(
        "--window", type=float, help="seconds; else 5 for small, 10 for base"
    )
    asked = parser.parse_args()
    for needed in (PEERS / "meter.py", PEERS_DATA / "tok" / "train.en"):
        if not needed.is_file():
            parser.exit(0, f"skipped: {needed} is absent\n")
    for size in asked.sizes:
        timing = Timing(asked.warm, asked.window or (5 if size == "small" else 10))
        found = in_turns(
            present(asked.peers, asked.also, size, timing), asked.rounds, LIMIT
        )
        print_table(f"{size}, {THREADS} threads", found)


if __name__ == "__main__":
    main()
