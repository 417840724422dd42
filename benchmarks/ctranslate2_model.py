"""A Weft translator for CTranslate2, the same weights: `python benchmarks/ctranslate2_model.py
WEIGHTS OUTPUT`.

WEIGHTS is what decoding_peers.py writes of `weft.engine.weights.Weights`: an .npz file whose names
are the paths of its fields. Token ids become words of that spelling, so that both read and write
the same ids. Needs CTranslate2 and nothing of Weft's. Pre-norm models with relu and tables of
positions alone.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import TransformerSpec


class Part:
    """The fields below one path."""

    def __init__(self, arrays: dict[str, Any], path: str = "") -> None:
        self.arrays, self.path = arrays, path

    def __getattr__(self, name: str) -> "Part":
        return Part(self.arrays, f"{self.path}.{name}" if self.path else name)

    def __getitem__(self, number: int) -> "Part":
        return Part(self.arrays, f"{self.path}.{number}")

    @property
    def array(self) -> Any:
        return self.arrays[self.path]

    def __len__(self) -> int:
        begin = f"{self.path}."
        return len(
            {
                name[len(begin) :].split(".")[0]
                for name in self.arrays
                if name.startswith(begin)
            }
        )


def set_linear(spec: Any, *parts: Part) -> None:
    """One map, or several of one input behind each other."""
    spec.weight = np.concatenate([part.stored.array for part in parts])
    spec.bias = np.concatenate([part.bias.array for part in parts])


def set_norm(spec: Any, part: Part) -> None:
    spec.gamma, spec.beta = part.gain.array, part.bias.array


def set_layer(spec: Any, layer: Part, has_memory: bool) -> None:
    own, across = layer.self_attention, layer.cross_attention
    set_norm(spec.self_attention.layer_norm, layer.norms[0])
    set_linear(spec.self_attention.linear[0], own.query, own.key, own.value)
    set_linear(spec.self_attention.linear[1], own.output)
    if has_memory:
        set_norm(spec.attention.layer_norm, layer.norms[1])
        set_linear(spec.attention.linear[0], across.query)
        set_linear(spec.attention.linear[1], across.key, across.value)
        set_linear(spec.attention.linear[2], across.output)
    set_norm(spec.ffn.layer_norm, layer.norms[2 if has_memory else 1])
    set_linear(spec.ffn.linear_0, layer.inner)
    set_linear(spec.ffn.linear_1, layer.outer)


def build(weights: Part) -> TransformerSpec:
    """The whole model."""
    spec = TransformerSpec.from_config(
        (len(weights.encoder), len(weights.decoder)),
        int(weights.num_heads.array),
        pre_norm=True,
    )
    scale = float(weights.embedding_scale.array) != 1.0
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = scale
    spec.encoder.embeddings[0].weight = weights.src.tokens.array
    spec.decoder.embeddings.weight = weights.tgt.tokens.array
    spec.encoder.position_encodings.encodings = weights.src.positions.array
    spec.decoder.position_encodings.encodings = weights.tgt.positions.array
    for side in ("encoder", "decoder"):
        part = getattr(weights, side)
        for number, layer in enumerate(getattr(spec, side).layer):
            set_layer(layer, part[number], side == "decoder")
        set_norm(getattr(spec, side).layer_norm, getattr(weights, f"{side}_norm"))
    set_linear(spec.decoder.projection, weights.projection)
    names = [str(i) for i in range(len(weights.tgt.tokens.array))]
    sources = [str(i) for i in range(len(weights.src.tokens.array))]
    spec.register_source_vocabulary(sources)
    spec.register_target_vocabulary(names)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (
        names[1],
        names[2],
        names[3],
    )
    spec.config.decoder_start_token = names[2]
    return spec


def main() -> None:
    """Convert."""
    spec = build(Part(dict(np.load(sys.argv[1]))))
    spec.validate()
    spec.optimize()
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    spec.save(sys.argv[2])


if __name__ == "__main__":
    main()
