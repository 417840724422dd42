"""transformers for decoding_peers.py: `python benchmarks/decoding_transformers.py JOB`. Needs
nothing of Weft's.

Its classes for Pegasus are pre-norm layers like Weft's; all weights are copied, the table of
positions too.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from decoding_clock import Ids, Output, Translate, by_length, measure, padded
from transformers import PegasusConfig, PegasusForConditionalGeneration

PAD, UNK, BOS, EOS = range(4)
ATTENTION = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
Arrays = Mapping[str, Any]


def layers_of(arrays: Arrays, side: str) -> int:
    """How many a side has."""
    return len({path.split(".")[1] for path in arrays if path.startswith(f"{side}.")})


def named(arrays: Arrays) -> Iterator[tuple[str, str]]:
    """Their name of each tensor, and our path."""
    for side, embedding in (("encoder", "src"), ("decoder", "tgt")):
        yield f"model.{side}.embed_tokens.weight", f"{embedding}.tokens"
        yield f"model.{side}.embed_positions.weight", f"{embedding}.positions"
        yield from norm(f"model.{side}.layer_norm", f"{side}_norm")
        for number in range(layers_of(arrays, side)):
            theirs, ours = f"model.{side}.layers.{number}", f"{side}.{number}"
            attentions = {"self_attn": "own"} | (
                {"encoder_attn": "across"} if side == "decoder" else {}
            )
            for place, (name, path) in enumerate(attentions.items()):
                for path_part, name_part in ATTENTION.items():
                    yield from linear(
                        f"{theirs}.{name}.{name_part}", f"{ours}.{path}.{path_part}"
                    )
                yield from norm(f"{theirs}.{name}_layer_norm", f"{ours}.norms.{place}")
            yield from norm(
                f"{theirs}.final_layer_norm", f"{ours}.norms.{len(attentions)}"
            )
            yield from linear(f"{theirs}.fc1", f"{ours}.inner")
            yield from linear(f"{theirs}.fc2", f"{ours}.outer")
    yield "lm_head.weight", "projection.weight"


def linear(name: str, path: str) -> Iterator[tuple[str, str]]:
    """A map."""
    yield from ((f"{name}.{part}", f"{path}.{part}") for part in ("weight", "bias"))


def norm(name: str, path: str) -> Iterator[tuple[str, str]]:
    """A norm."""
    yield from ((f"{name}.weight", f"{path}.gain"), (f"{name}.bias", f"{path}.bias"))


def build(arrays: Arrays) -> PegasusForConditionalGeneration:
    """The whole model."""
    heads, scale = int(arrays["num_heads"]), float(arrays["embedding_scale"]) != 1.0
    entries, width = arrays["tgt.tokens"].shape
    shape = {
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (
            ("layers", layers_of(arrays, side)),
            ("attention_heads", heads),
            ("ffn_dim", len(arrays[f"{side}.0.inner.weight"])),
        )
    }
    config = PegasusConfig(
        **shape,
        vocab_size=entries,
        d_model=width,
        max_position_embeddings=len(arrays["src.positions"]),
        activation_function="relu",
        scale_embedding=scale,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model = PegasusForConditionalGeneration(config)
    state = {name: torch.from_numpy(arrays[path]) for name, path in named(arrays)}
    state["final_logits_bias"] = torch.from_numpy(arrays["projection.bias"])[None]
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"model.shared.weight"}:
        raise SystemExit(f"not the same tensors: {missing}, {unexpected}")
    return model.eval()


def load(job: dict[str, Any]) -> Translate:
    """Its `generate` on sentences of like length, 64 at once."""
    torch.set_num_threads(job["threads"])
    model, beam = build(dict(np.load(job["weights"]))), job["beam"]
    more: dict[str, Any] = {"min_new_tokens": job["forced"]} if job["forced"] else {}
    if job.get("shuffles"):
        more["output_scores"] = True

    def batch(sources: Sequence[Ids]) -> list[Output]:
        ids = torch.tensor(padded(sources, PAD))
        with torch.inference_mode():
            found = model.generate(
                input_ids=ids,
                attention_mask=(ids != PAD).long(),
                num_beams=beam,
                do_sample=False,
                max_new_tokens=job["forced"] or job["limit"],
                suppress_tokens=[PAD, UNK, BOS],
                return_dict_in_generate=True,
                **more,
            )
        scores = getattr(found, "sequences_scores", None)
        rows = found.sequences[:, 1:].tolist()
        each = [0.0] * len(rows) if scores is None else scores.tolist()
        return [
            ([i for i in row if i not in (PAD, EOS)], score)
            for row, score in zip(rows, each, strict=True)
        ]

    return lambda sources: by_length(batch, sources)


if __name__ == "__main__":
    measure(sys.argv[1], load)
