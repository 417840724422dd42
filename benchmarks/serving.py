"""How fast and how fair `weft serve` is, beside LibreTranslate's own server over CTranslate2 with
the same weights: `python benchmarks/serving.py FOLDER --peer PYTHON [--only NAME ...]`.

FOLDER holds a translator whose weights CTranslate2 can have (ctranslate2_model.py says which).
Sentences are the first column of --text, each a request of its own. Both servers run beside each
other, and take turns, round after round; who is not asked stands still. PYTHON has LibreTranslate's
packages; without --peer Weft is measured alone. Both search with LibreTranslate's beam of 4. The
client is this process: it costs both servers alike. How many of their translations are equal is
printed first. Nothing else should run meanwhile.

    throughput  sentences a second of 1, 8, 32 and 128 clients, and of the engine on a file
    latency     a lone client, and the engine called directly
    fairness    one client's single sentences while another sends thousands
    overload    ten times what can be done: what is accepted and what refused
    leavers     clients that leave: what is still worked on
    same        20,000 sentences served, beside what the engine gives alone
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from serving_measures import MEASURES, Bench, alike
from serving_servers import serving, with_beam_of_peer
from side_by_side import DATA, refuse_missing

import weft

TEXT = DATA / "multi30k" / "test_2016_flickr.en"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--served", type=Path, help="its int8 form, for Weft to serve")
    parser.add_argument("--peer", type=Path, help="a Python with LibreTranslate")
    parser.add_argument("--kind", default="int8", help="the peer's products")
    parser.add_argument("--text", type=Path, default=TEXT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    asked = parser.parse_args()
    refuse_missing(asked.text)
    lines = asked.text.read_text("utf-8").split("\n")[:1000]
    sentences = [line.split("\t")[0] for line in lines if line.strip()]
    with tempfile.TemporaryDirectory(prefix="weft-served-") as scratch:
        served = with_beam_of_peer(asked.served or asked.folder, Path(scratch))
        with serving(asked.folder, served, asked.peer, asked.kind) as servers:
            bench = Bench(sentences, servers, asked.rounds, weft.load(served))
            if asked.peer is not None:
                asyncio.run(alike(bench))
            for name in asked.only:
                asyncio.run(MEASURES[name](bench))


if __name__ == "__main__":
    main()
