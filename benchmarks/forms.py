"""How far the forms of one computation are apart: `python benchmarks/forms.py [--draws 6]`.

For each option of a layer, small models of random and odd sizes with random weights read random
sentences, of which one is empty: by PyTorch, by plain NumPy, and by the native library as built for
each level of this CPU. Printed for each option: the largest error of a log-probability, in nats,
over all draws, positions and tokens, which is its difference from the plain pass with all numbers
in float64; then the largest difference between two levels, and between any two forms. Below it:
whether a row has the same bits alone and beside others, and whether a weight that is not a number
makes every form say so.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from weft.config import LayerShape, Seq2SeqSection
from weft.decoding.best import LogSoftmax
from weft.decoding.decoder import StepInput
from weft.engine.batched import padded
from weft.engine.bindings import Engine
from weft.engine.from_model import weights_of
from weft.engine.plain import PlainTransformer
from weft.engine.weights import in_float64
from weft.kernels.levels import instructions, levels_of
from weft.model.transformer import Seq2SeqTransformer

_DEFAULT, *_ACTIVATIONS = get_args(LayerShape.model_fields["activation"].annotation)
OPTIONS: dict[str, dict[str, Any]] = {
    "the recipe's default": {},
    "norm after": {"norm_first": False},
    "norm after a sublayer too": {"sandwich_norm": True},
    "RMSNorm": {"norm": "rms"},
    "no biases": {"bias": False},
    "learned positions": {"positions": "learned"},
    "rotary positions": {"positions": "rotary"},
    "queries and keys normed": {"query_key_norm": True},
    "fewer heads of keys": {"num_key_value_heads": 1},
    "nothing tied or scaled": {"tie_embeddings": False, "scale_embeddings": False},
    **{f"`{name}`": {"activation": name} for name in _ACTIVATIONS},
}
BOS, EOS = 2, 3
Floats = NDArray[np.float32]


def main() -> None:
    """Measure every level in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=6, help="models of each option")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        np.savez(asked.child, **measured(asked.draws))
        return
    found: dict[str, Mapping[str, Floats]] = {}
    with tempfile.TemporaryDirectory(prefix="weft-forms-") as scratch:
        for level in levels_of(instructions()):
            file = Path(scratch, f"{level.name}.npz")
            order = [sys.executable, __file__, "--draws", str(asked.draws)]
            environment = {**os.environ, "WEFT_KERNELS": level.name}
            subprocess.run([*order, "--child", file], check=True, env=environment)
            found[level.name] = dict(np.load(file))
    print_table(found, asked.draws)


def print_table(found: Mapping[str, Mapping[str, Floats]], draws: int) -> None:
    """Print a row for each option."""
    first = next(iter(found.values()))
    levels = " | ".join(found)
    print(f"| option | PyTorch | NumPy | {levels} | two levels | two forms |")
    print("|---|---|---|" + "---|" * (len(found) + 2))
    for option in OPTIONS:
        names = [f"{option}: {draw}" for draw in range(draws)]
        cells = [
            furthest(first, first, names, form, "exact") for form in ("torch", "numpy")
        ]
        levels_apart, forms_apart = (
            [],
            [furthest(first, first, names, "numpy", "torch")],
        )
        for own in found.values():
            cells.append(furthest(own, own, names, "native", "exact"))
            for form in ("numpy", "torch"):
                forms_apart.append(furthest(own, own, names, "native", form))
            for other in found.values():
                levels_apart.append(furthest(own, other, names, "native", "native"))
        cells += [max(levels_apart), max(levels_apart + forms_apart)]
        print(f"| {option} | {' | '.join(f'{cell:.1e}' for cell in cells)} |")
    alone = {name: bool(own["same bits"]) for name, own in found.items()}
    broken = {name: bool(own["broken is told"]) for name, own in found.items()}
    print(f"rows alone and beside others have the same bits: {alone}")
    print(f"a weight that is not a number is told: {broken}")


def furthest(
    one: Mapping[str, Floats],
    other: Mapping[str, Floats],
    names: list[str],
    form: str,
    beside: str,
) -> float:
    """Return the largest difference over some models."""
    return max(
        float(np.abs(one[f"{name}: {form}"] - other[f"{name}: {beside}"]).max())
        for name in names
    )


def measured(draws: int) -> dict[str, Any]:
    """Return the log-probabilities of every form, by "option: draw: form"."""
    found: dict[str, Any] = {}
    same_bits = True
    for number, (option, settings) in enumerate(OPTIONS.items()):
        for draw in range(draws):
            model, sources, targets = drawn(settings, 1000 * number + draw)
            weights = weights_of(model)
            name = f"{option}: {draw}"
            engine = Engine(weights)
            together = by_engine(engine, sources, targets)
            found[f"{name}: native"] = together
            found[f"{name}: numpy"] = by_numpy(
                PlainTransformer(weights), sources, targets
            )
            found[f"{name}: exact"] = by_numpy(
                PlainTransformer(in_float64(weights)), sources, targets
            )
            found[f"{name}: torch"] = by_torch(model, sources, targets)
            for i, source in enumerate(sources):
                alone = by_engine(engine, [source], targets[i : i + 1])
                same_bits &= bool(np.array_equal(alone[0], together[i]))
    found["same bits"] = same_bits
    found["broken is told"] = tells_broken()
    return found


def drawn(
    settings: Mapping[str, Any], seed: int
) -> tuple[Seq2SeqTransformer, list[list[int]], NDArray[np.int64]]:
    """Return a model of random size and weights, sources that end with eos, and target ids."""
    generator = np.random.default_rng(seed)
    torch.manual_seed(seed)
    heads = int(generator.choice([1, 2, 3, 5]))
    head_dim = 2 * int(generator.integers(1, 9))
    is_even = settings.get("positions", "sinusoidal") == "sinusoidal"
    d_model = int(generator.integers(3, 40))
    shape = Seq2SeqSection(
        d_model=d_model + (d_model % 2 if is_even else 0),
        d_ff=int(generator.integers(1, 70)),
        num_heads=heads,
        head_dim=head_dim,
        num_encoder_layers=int(generator.integers(1, 3)),
        num_decoder_layers=int(generator.integers(1, 3)),
        max_len=40,
        **settings,
    )
    vocab_size = int(generator.integers(5, 90))
    model = Seq2SeqTransformer(shape, vocab_size, vocab_size, joint=True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    lengths = [0, 1, *generator.integers(1, 30, 4).tolist()]
    sources = [[*generator.integers(4, vocab_size, n).tolist(), EOS] for n in lengths]
    targets = generator.integers(4, vocab_size, (len(sources), 7))
    targets[:, 0] = BOS
    return model, sources, targets


def by_engine(
    engine: Engine, sources: list[list[int]], targets: NDArray[np.int64]
) -> Floats:
    """Return the log-probabilities (N, T, V) of the native library."""
    count, length = targets.shape
    session = engine.session(count, 1)
    session.read(range(count), sources)
    rows = np.repeat(np.arange(count), length)
    times = np.tile(np.arange(length), count)
    ancestors = np.zeros((len(rows), length), np.int32)
    tokens = targets.ravel().astype(np.int32)
    inputs = StepInput(rows, np.zeros_like(rows), times, tokens, ancestors)
    _, _, found = session.step(inputs, 0, all_log_probs=True)
    assert found is not None
    return found.reshape(count, length, -1)


def by_numpy(
    model: PlainTransformer, sources: list[list[int]], targets: NDArray[np.int64]
) -> Floats:
    """Return those of the plain NumPy pass."""
    states, _ = model.decode(targets, model.prefill(padded(sources)))
    logits = model.output(states)
    flat = logits.reshape(-1, logits.shape[-1])
    return LogSoftmax.of(flat).log_probs(flat).reshape(logits.shape)


def by_torch(
    model: Seq2SeqTransformer, sources: list[list[int]], targets: NDArray[np.int64]
) -> Floats:
    """Return those of PyTorch."""
    with torch.inference_mode():
        logits = model(torch.from_numpy(padded(sources)), torch.from_numpy(targets))
        found: Floats = logits.log_softmax(-1).numpy()
    return found


def tells_broken() -> bool:
    """Tell whether every form gives NaN where a weight is NaN."""
    model, sources, targets = drawn({}, 7)
    with torch.no_grad():
        model.get_parameter("encoder.0.feed_forward.inner.weight")[0, 0] = torch.nan
    weights = weights_of(model)
    forms = (
        by_engine(Engine(weights), sources, targets),
        by_numpy(PlainTransformer(weights), sources, targets),
        by_torch(model, sources, targets),
    )
    return all(bool(np.isnan(found).any(axis=(1, 2)).all()) for found in forms)


if __name__ == "__main__":
    main()
