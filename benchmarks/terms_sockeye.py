"""Sockeye's constrained search for terms_peer.py: `python benchmarks/terms_sockeye.py JOB ANSWERS`.

JOB is a JSON file: `weights`, an .npz file whose names are the paths of `weft.engine.weights`,
`sources` and `terms` as ids, and the `runs` wanted. ANSWERS gets the ids and the seconds of CPU of
each run. The model, its search and its translator are Sockeye's; but its attention has no biases,
and its norms another epsilon, so that both are set. Needs Sockeye 2.3.24, the last that has
constraints, and its MXNet; nothing of Weft's. Pre-norm models with relu and tables of positions
alone. Runs on Python 3.8, the last that MXNet's NumPy knows.
"""

import json
import logging
import sys
import time
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from sockeye import constants, data_io, encoder, inference, model, quantization
from sockeye.beam_search import CandidateScorer
from sockeye.transformer import TransformerConfig

WARM_UP = 5  # sentences translated before a clock runs
LONGEST = 200  # tokens of a source


def give_biases() -> None:
    """Let every map have a bias, those of attention, too."""
    dense = quantization.QuantizableDense
    build = dense.__init__

    def build_with_bias(self: Any, *arguments: Any, **options: Any) -> None:
        build(self, *arguments, **{**options, "use_bias": True})

    dense.__init__ = build_with_bias


def set_epsilon(block: Any, epsilon: float) -> None:
    """Let every norm below a block have this epsilon."""
    if isinstance(block, mx.gluon.nn.LayerNorm):
        block._kwargs["eps"] = epsilon
    for child in block._children.values():
        set_epsilon(child, epsilon)


def empty_model(arrays: Any, num_heads: int) -> Any:
    """Return a model of the weights' shape."""
    entries, width = arrays["tgt.tokens"].shape
    length = len(arrays["tgt.positions"])
    embedding = encoder.EmbeddingConfig(entries, width, 0.0)
    statistics = dict.fromkeys(signature(data_io.DataStatistics).parameters, 0)
    statistics["max_observed_len_source"] = LONGEST
    statistics["max_observed_len_target"] = LONGEST
    data = data_io.DataConfig(
        data_statistics=data_io.DataStatistics(**statistics),
        max_seq_len_source=length,
        max_seq_len_target=length,
        num_source_factors=1,
        num_target_factors=1,
    )
    sides = []
    for side in ("encoder", "decoder"):
        layers = {name.split(".")[1] for name in arrays if name.startswith(side + ".")}
        config = TransformerConfig(
            model_size=width,
            attention_heads=num_heads,
            feed_forward_num_hidden=len(arrays["encoder.0.inner.stored"]),
            act_type="relu",
            num_layers=len(layers),
            dropout_attention=0.0,
            dropout_act=0.0,
            dropout_prepost=0.0,
            positional_embedding_type="learned",
            preprocess_sequence="n",
            postprocess_sequence="r",
            max_seq_len_source=length,
            max_seq_len_target=length,
            depth_key_value=width,
        )
        sides.append(config)
    config = model.ModelConfig(
        data,
        len(arrays["src.tokens"]),
        entries,
        embedding,
        embedding,
        *sides,
        weight_tying_type=constants.WEIGHT_TYING_NONE,
    )
    return model.SockeyeModel(config, inference_only=True)


def interleaved(key: Any, value: Any, num_heads: int) -> Any:
    """Return the rows of both maps, head by head: of the key, then of the value."""
    shape = (num_heads, -1, *key.shape[1:])
    pairs = np.concatenate([key.reshape(shape), value.reshape(shape)], axis=1)
    return pairs.reshape(-1, *key.shape[1:])


def layer_parameters(arrays: Any, side: str, number: str, num_heads: int) -> Any:
    """Yield the parameters of a layer by their names in Sockeye."""
    here = f"{side}.{number}."
    there = f"{side}_transformer_{number}_"
    norms = ["att_self_pre", "att_enc_pre", "ff_pre"]
    if side == "encoder":
        norms.remove("att_enc_pre")
    for place, norm in enumerate(norms):
        yield f"{there}{norm}_norm_gamma", arrays[f"{here}norms.{place}.gain"]
        yield f"{there}{norm}_norm_beta", arrays[f"{here}norms.{place}.bias"]
    for ours, theirs in (("stored", "weight"), ("bias", "bias")):
        own = {
            part: arrays[f"{here}self_attention.{part}.{ours}"]
            for part in ("query", "key", "value", "output")
        }
        pairs = interleaved(own["key"], own["value"], num_heads)
        together = np.concatenate([own["query"], pairs])
        yield f"{there}att_self_i2h_{theirs}", together
        yield f"{there}att_self_h2o_{theirs}", own["output"]
        yield f"{there}ff_i2h_{theirs}", arrays[f"{here}inner.{ours}"]
        yield f"{there}ff_h2o_{theirs}", arrays[f"{here}outer.{ours}"]
        if side == "encoder":
            continue
        across = {
            part: arrays[f"{here}cross_attention.{part}.{ours}"]
            for part in ("query", "key", "value", "output")
        }
        pairs = interleaved(across["key"], across["value"], num_heads)
        yield f"{there}att_enc_q2h_{theirs}", across["query"]
        yield f"{there}att_enc_kv2h_{theirs}", pairs
        yield f"{there}att_enc_h2o_{theirs}", across["output"]


def parameters(arrays: Any, num_heads: int, scale: float) -> Any:
    """Yield all parameters by their names in Sockeye, which always scales embeddings."""
    factor = scale / np.sqrt(arrays["tgt.tokens"].shape[1])
    sides = ("src", "source", "encoder"), ("tgt", "target", "decoder")
    for side, name, coder in sides:
        yield f"{name}_embed_weight", arrays[f"{side}.tokens"] * factor
        positions = arrays[f"{side}.positions"]
        yield f"{coder}_transformer_{name}_pos_embed_weight", positions
    yield "target_output_weight", arrays["projection.stored"]
    yield "target_output_bias", arrays["projection.bias"]
    for side in ("encoder", "decoder"):
        last = f"{side}_transformer_final_process_norm_"
        yield last + "gamma", arrays[f"{side}_norm.gain"]
        yield last + "beta", arrays[f"{side}_norm.bias"]
        layers = {name.split(".")[1] for name in arrays if name.startswith(side + ".")}
        for number in sorted(layers):
            yield from layer_parameters(arrays, side, number, num_heads)


def loaded(job: Any) -> Any:
    """Return Sockeye's model with the job's weights."""
    arrays = dict(np.load(job["weights"]))
    give_biases()
    empty = empty_model(arrays, job["num_heads"])
    set_epsilon(empty, job["eps"])
    empty.initialize()
    missing = dict(empty.collect_params())
    for name, values in parameters(arrays, job["num_heads"], job["scale"]):
        missing.pop(name).set_data(mx.nd.array(values))
    if missing:
        raise SystemExit(f"no weights for {', '.join(missing)}")
    for parameter in empty.collect_params().values():
        parameter.grad_req = "null"
    empty.hybridize(static_alloc=True)
    return empty


def vocabulary(entries: int) -> Any:
    """Return the words that ids are written as."""
    special = {
        constants.PAD_SYMBOL: constants.PAD_ID,
        constants.UNK_SYMBOL: constants.UNK_ID,
        constants.BOS_SYMBOL: constants.BOS_ID,
        constants.EOS_SYMBOL: constants.EOS_ID,
    }
    return {**special, **{str(number): number for number in range(4, entries)}}


def translator(found: Any, words: Any, run: Any, length_penalty: float) -> Any:
    """Return Sockeye's translator with the settings of a run, else those of its command."""
    return inference.Translator(
        context=mx.cpu(),
        ensemble_mode="linear",
        scorer=CandidateScorer(length_penalty, 5.0),
        batch_size=run["batch"],
        beam_search_stop=constants.BEAM_SEARCH_STOP_ALL,
        models=[found],
        source_vocabs=[words],
        target_vocabs=[words],
        beam_size=run["beam"],
        max_output_length_num_stds=-1,  # twice the length of the source
        prevent_unk=True,
    )


def answered(search: Any, job: Any, run: Any) -> Any:
    """Return the ids of each translation, and the seconds of CPU of all."""
    inputs = []
    for number, source in enumerate(job["sources"]):
        line = {"text": " ".join(map(str, source))}
        if run["terms"]:
            terms = job["terms"][number]
            line["constraints"] = [" ".join(map(str, term)) for term in terms]
        inputs.append(inference.make_input_from_dict(number, line, search))
    search.translate(inputs[:WARM_UP], fill_up_batches=False)
    begin = time.process_time()
    found = search.translate(inputs, fill_up_batches=False)
    seconds = time.process_time() - begin
    ids = [list(map(int, one.tokens)) for one in found]
    return {"ids": ids, "seconds": seconds}


def main() -> None:
    """Answer a job."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")  # of parameters that a search has used already
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    found = loaded(job)
    words = vocabulary(found.output_layer_vocab_size)
    answers = []
    for run in job["runs"]:
        search = translator(found, words, run, job["length_penalty"])
        answers.append(answered(search, job, run))
        print(f"{run}: {answers[-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
    Path(sys.argv[2]).write_text(json.dumps(answers), "utf-8")


if __name__ == "__main__":
    main()
