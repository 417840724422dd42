"""Which source token a written token hangs on: `python benchmarks/switch_off.py MODEL TEXTS
[--lines 200] [--resamples 2000]`.

The model translates the first lines of a file. Then each source token but the end symbol is left
out, in two ways: its key is masked in all looks of the decoder at the source, or the encoder never
reads it, too. The translation stands: each of its tokens is foretold again from the same tokens
before it. A token counts as changed where another is now the most probable; those that were not
the most probable before (beam search may choose such) and the end symbol are not asked.

Printed is how often that token is changed by leaving out the one on which it hangs most: by its
exact share in the logit (`weft.engine.stream.source_shares`), by the attention of the last layer,
the mean of its heads, and by that of all layers and heads. Beside these, the expectation of a
random token, and how often any does it. Intervals of 95 % are of a bootstrap over sentences.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.engine.plain import Cache, PlainTransformer, Record
from weft.engine.stream import source_shares
from weft.engine.weights import Weights
from weft.predict.rows import written
from weft.tasks.opening import load_task
from weft.tasks.translation import Translation

WAYS = ("masked for the decoder", "never read")
SHARE, LAST, ALL, RANDOM, ANY = (
    "largest share of the logit",
    "largest attention, last layer",
    "largest attention, all layers",
    "a random token",
    "any token",
)


@dataclass(frozen=True)
class Effects:
    """What leaving out each source token did to each token asked, of one sentence: `changed` and
    `lost` nats (ways, asked, source tokens), and what each choice by a measure picks (asked).
    """

    changed: NDArray[np.bool_]
    lost: NDArray[np.float64]
    picks: dict[str, NDArray[np.intp]]

    def of(self, chosen: str) -> NDArray[np.float64]:
        """Return for each way how often a token was changed, and the nats that it lost (ways, 2,
        asked).
        """
        both = np.stack([self.changed, self.lost], 1).astype(np.float64)
        if chosen == RANDOM:
            return both.mean(-1)
        if chosen == ANY:
            return both.max(-1)
        place = self.picks[chosen][None, None, :, None]
        return np.take_along_axis(both, place, -1)[..., 0]


def main() -> None:
    """Leave out every token of every sentence once, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=2000)
    asked = parser.parse_args()
    if not asked.texts.is_file():
        raise SystemExit(f"{asked.texts}: there is no such file; give one of sentences")
    with asked.texts.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in islice(file, asked.lines)]
    task = load_task(asked.model)
    if not isinstance(task, Translation) or task.weights is None:
        raise SystemExit(f"{asked.model}: holds no Transformer that translates")
    found = [effects(task, task.weights, line) for line in lines]
    report([one for one in found if one is not None], asked.resamples)


def effects(task: Translation, weights: Weights, line: str) -> Effects | None:
    """Translate a line and leave out each of its tokens; None where there is nothing to ask."""
    src_tokenizer, _ = task.tokenizers
    src = [*src_tokenizer.encode(line)[: task.config.max_src_len - 1], EOS_ID]
    tgt = written(task.predictor().search(src))
    tgt_in = np.array([[BOS_ID, *tgt[:-1]]])
    model = PlainTransformer(weights)
    record = Record()
    cache = model.prefill(np.array([src]), record)
    states, _ = model.decode(tgt_in, cache, record=record)
    before = log_probs(model, states)[0]
    is_asked = (before.argmax(-1) == tgt) & (np.array(tgt) != EOS_ID)
    if not is_asked.any() or len(src) < 3:
        return None
    after = np.stack(
        [masked(model, cache, tgt_in), never_read(model, src, tgt_in)]
    )  # ways, source tokens, target tokens, vocabulary
    places = np.arange(len(tgt))
    own = after[:, :, places, tgt]
    changed = after.argmax(-1) != np.array(tgt)
    lost = before[places, tgt] - own
    cross = np.stack([layer[0] for layer in record.cross])
    by = {
        SHARE: source_shares(weights, src, tgt),
        LAST: cross[-1].mean(0),
        ALL: cross.mean((0, 1)),
    }
    picks = {name: table[is_asked, :-1].argmax(-1) for name, table in by.items()}
    return Effects(
        changed[..., is_asked].swapaxes(1, 2), lost[..., is_asked].swapaxes(1, 2), picks
    )


def masked(
    model: PlainTransformer, cache: Cache, tgt_in: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Hide each source token but the last from all looks of the decoder, one a row."""
    assert cache.padding is not None
    count = cache.padding.shape[1] - 1
    rows = cache.select(np.zeros(count, np.int64))
    hidden = np.eye(count, count + 1, dtype=np.bool_)
    rows = replace(rows, padding=hidden)
    return log_probs(model, model.decode(tgt_in.repeat(count, 0), rows)[0])


def never_read(
    model: PlainTransformer, src: Sequence[int], tgt_in: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Take each source token but the last out of the text, one a row."""
    texts = [[*src[:place], *src[place + 1 :]] for place in range(len(src) - 1)]
    cache = model.prefill(np.array(texts))
    return log_probs(model, model.decode(tgt_in.repeat(len(texts), 0), cache)[0])


def log_probs(
    model: PlainTransformer, states: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the logarithms of the probabilities of all tokens."""
    logits = model.output(states)
    largest = logits.max(-1, keepdims=True)
    total = np.log(np.exp(logits - largest).sum(-1, keepdims=True))
    difference: NDArray[np.float32] = logits - largest - total
    return difference


def report(found: Sequence[Effects], resamples: int) -> None:
    """Print a row for each choice of a token, and how far shares are ahead of attention."""
    counts = np.array([one.changed.shape[1] for one in found])
    print(f"{len(found)} sentences, {counts.sum():,} written tokens\n")
    sums = {name: sums_of(found, name) for name in (SHARE, LAST, ALL, RANDOM, ANY)}
    draws = np.random.default_rng(1).integers(len(found), size=(resamples, len(found)))
    print(
        "| left out | "
        + " | ".join(f"{way}: changed | nats lost" for way in WAYS)
        + " |"
    )
    print("|---|" + "---|" * 2 * len(WAYS))
    for name, table in sums.items():
        cells = cells_of(table, counts, draws)
        print(f"| {name} | {' | '.join(cells)} |")
    for name in (LAST, ALL, RANDOM):
        cells = cells_of(sums[SHARE] - sums[name], counts, draws, sign="+")
        print(f"| {SHARE}, less {name} | {' | '.join(cells)} |")


def sums_of(found: Sequence[Effects], name: str) -> NDArray[np.float64]:
    """Return the sums of each sentence (sentences, ways, 2)."""
    return np.stack([one.of(name).sum(-1) for one in found])


def cells_of(
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    draws: NDArray[np.int64],
    sign: str = "",
) -> list[str]:
    """Return the mean of each way and measure, a token, with its interval."""
    means = sums.sum(0) / counts.sum()
    drawn = sums[draws].sum(1) / counts[draws].sum(1)[:, None, None]
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    cells = []
    for way in range(len(WAYS)):
        a, b, c = (100 * table[way, 0] for table in (means, low, high))
        cells.append(f"{a:{sign}.1f} % ({b:{sign}.1f} to {c:{sign}.1f})")
        a, b, c = (table[way, 1] for table in (means, low, high))
        cells.append(f"{a:{sign}.2f} ({b:{sign}.2f} to {c:{sign}.2f})")
    return cells


if __name__ == "__main__":
    main()
