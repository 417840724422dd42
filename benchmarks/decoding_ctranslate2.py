"""CTranslate2 for decoding_peers.py: `python benchmarks/decoding_ctranslate2.py JOB`. Needs nothing
of Weft's.
"""

import sys
from collections.abc import Sequence
from typing import Any

import ctranslate2 as ct2
from decoding_clock import Ids, Output, Translate, measure


def load(job: dict[str, Any]) -> Translate:
    """CTranslate2 on a converted model: `kind` of computation, `inter` translators of `intra`
    threads each.
    """

    translator = ct2.Translator(
        job["converted"],
        device="cpu",
        compute_type=job["kind"],
        inter_threads=job["inter"],
        intra_threads=job["intra"],
    )
    more: dict[str, Any] = {"max_decoding_length": job["forced"] or job["limit"]}
    if job["forced"]:
        more["min_decoding_length"] = job["forced"]
    if job.get("shuffles"):
        more["return_scores"] = True

    def translate(sources: Sequence[Ids]) -> list[Output]:
        tokens = [[str(i) for i in ids] for ids in sources]
        found = translator.translate_batch(
            tokens,
            beam_size=job["beam"],
            length_penalty=1.0,
            max_batch_size=64,
            batch_type="examples",
            **more,
        )
        return [
            (
                [int(token) for token in r.hypotheses[0]],
                r.scores[0] if r.scores else 0.0,
            )
            for r in found
        ]

    return translate


if __name__ == "__main__":
    measure(sys.argv[1], load)
