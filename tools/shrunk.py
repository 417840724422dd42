"""Packaged recipes made tiny, their structure kept: for tests and comparisons that run all of
them.
"""

from weft.config import LayerShape, Recipe

RUN = {
    "training.eval_every": 2,
    "training.save_every": 2,
    "training.keep_checkpoints": 3,
    "training.num_samples": 1,
    "training.warmup_steps": 1,
    "training.precision": "float32",
    "training.threads": 1,
}


def sizes_shrunk(recipe: Recipe) -> dict[str, object]:
    """Values that leave a recipe's structure and make its sizes tiny."""
    tree = recipe.model_dump(mode="json")
    model, batches = tree["model"], tree["batches"]
    found: dict[str, object] = dict(RUN)
    if isinstance(recipe.model, LayerShape):
        heads = recipe.model.num_heads
        width = heads * (8 if heads < 4 else 4)
        found |= {
            "model.d_model": width,
            "model.d_ff": 2 * width,
            "model.max_len": min(model["max_len"], 300),
        }
        found |= {"model.head_dim": 2 * width // heads} if recipe.model.head_dim else {}
    else:
        found |= {"model.d_model": 16, "model.d_hidden": 24}
    for key in ("num_encoder_layers", "num_decoder_layers"):
        found |= {f"model.{key}": min(model[key], 2)} if key in model else {}
    found |= {"model.ngram_buckets": 500} if model.get("ngrams", 1) > 1 else {}
    tokenizer = tree["tokenizer"]
    sides = (
        {"tokenizer.src": tokenizer["src"], "tokenizer.tgt": tokenizer["tgt"]}
        if "src" in tokenizer
        else {}
    )
    for where, side in (sides or {"tokenizer": tokenizer}).items():
        found |= {f"{where}.vocab_size": 300} if side["kind"] == "bpe" else {}
    if "window_len" in batches:
        found |= {
            "batches.window_len": min(batches["window_len"], 48),
            "batches.batch_size": 2,
        }
    elif batches["batch_size"]:
        found |= {"batches.batch_size": min(batches["batch_size"], 16)}
    else:
        found |= {"batches.tokens_per_batch": 400}
    found |= {
        "translation": {"decoding.max_len_ratio": 0.5, "decoding.max_len_extra": 4},
        "language-modelling": {"decoding.max_new_tokens": 12},
        "classification": {},
    }[recipe.task]
    return found
