"""The example in one file gives the losses, weights, translations and BLEU of `weft train`.

`weft train` computes the loss in chunks, the example in its plain form. Both differ in the last
bits, which training makes larger. With the plain form in both, all is equal.
"""

import importlib.util
import json
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import weft
from weft.data import builtin
from weft.data.train_text import TrainText
from weft.recipes.file import load_recipe
from weft.run.train import Request, train
from weft.training import loss
from weft.training.log import Log

SOON = 40  # steps, after which the last bits do not yet show
EXAMPLE = Path(__file__).parent.parent / "examples" / "translate_in_one_file.py"
NUM_TRAIN, NUM_TEST, STEPS, WARMUP = 64, 12, 80, 120
SETTINGS = {
    "data.src_lang": "en",
    "data.tgt_lang": "de",
    "data.dev_size": 0,
    "data.test_size": 0,
    "tokenizer.joint": "true",
    "tokenizer.src.kind": "bpe",
    "tokenizer.tgt.kind": "bpe",
    "tokenizer.src.vocab_size": 500,
    "tokenizer.tgt.vocab_size": 500,
    "batches.tokens_per_batch": 512,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "model.num_encoder_layers": 2,
    "model.num_decoder_layers": 2,
    "model.dropout": 0.1,
    "model.norm_first": "false",
    "training.warmup_steps": WARMUP,
    "training.schedule": "noam",
    "training.learning_rate": 1.0,
    "training.label_smoothing": 0.1,
    "training.grad_clip_norm": "none",
    "training.seed": 3,
    "training.precision": "float32",
    "training.kernels": "torch",
    "training.threads": 1,
    "decoding.beam_size": 4,
    "decoding.length_penalty": 0.6,
    "decoding.max_len_ratio": 1.0,
    "decoding.max_len_extra": 50,
}


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("translate_in_one_file", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def train_weft(folder: Path, name: str, steps: int) -> tuple[Any, list[float]]:
    """Run `weft train`; its verdict, and the loss of each step."""
    settings = {**SETTINGS, "training.max_steps": steps}
    request = Request.by_name(
        None,
        [f"{key}={value}" for key, value in settings.items()],
        out=folder / name,
        train=(TrainText(str(folder / "train.tsv")),),
        test=str(folder / "test.tsv") if steps == STEPS else None,
        allow_bad_data=True,
    )
    metrics = folder / f"{name}.jsonl"
    verdict = train(request, Log(metrics, every=1, quiet=True), quiet=True)
    logged = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()]
    return verdict, [line["loss"] for line in logged if "loss" in line]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("example")
    text = builtin.pairs("everyday", "en", "de")
    parts = {"train": text.train[:NUM_TRAIN], "test": text.train[:NUM_TEST]}
    for name, pairs in parts.items():
        lines = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
        (folder / f"{name}.tsv").write_text(lines, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss._ChunkedCrossEntropy, "apply", loss.smoothed_cross_entropy)
        verdict, losses = train_weft(folder, "run", STEPS)
    _, as_used = train_weft(folder, "as-used", SOON)

    module = example()
    recipe = module.Recipe(
        vocab_size=500,
        tokens_per_batch=512,
        d_model=32,
        d_ff=64,
        max_steps=STEPS,
        warmup_steps=WARMUP,
        seed=3,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    result = module.run(
        recipe,
        module.read_pairs(str(folder / "train.tsv")),
        module.read_pairs(str(folder / "test.tsv")),
    )
    torch.set_num_threads(threads)
    model = weft.load(folder / "run", kernels="torch")
    sources = [src for src, _ in parts["test"]]
    weights = load_file(folder / "run" / "model.safetensors")
    return module, result, (losses, as_used, weights), verdict, model, sources


def test_losses_and_weights_are_those_of_weft_train(results: tuple[Any, ...]) -> None:
    _, result, (losses, as_used, weights), _, _, _ = results
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 1  # something was learned
    assert [round(value, 6) for value in result.losses] == losses
    assert result.losses[:SOON] == pytest.approx(as_used, abs=1e-4)
    own = result.model.state_dict()
    assert weights.keys() == dict(result.model.named_parameters()).keys()
    assert all(torch.equal(own[name], weight) for name, weight in weights.items())


def test_tokenizer_is_that_of_weft_train(results: tuple[Any, ...]) -> None:
    _, result, _, _, model, sources = results
    for source in [*sources, "Zoë's 1234 ☃ <pad token"]:
        ids = model.src_tokenizer.encode(source)
        assert result.tokenizer.encode(source).ids == ids


def test_translations_and_bleu_are_those_of_weft_train(
    results: tuple[Any, ...],
) -> None:
    module, result, _, verdict, model, sources = results
    beam = [prediction.text for prediction in model.translate(sources)]
    greedy = [p.text for p in model.translate(sources, beam_size=1)]
    recipe = module.Recipe(beam_size=1)
    own = module.translate(result.model, result.tokenizer, sources, recipe)
    assert len(set(beam)) > 1
    assert result.translations == beam
    assert own == greedy
    assert result.bleu == pytest.approx(verdict.test["bleu"], abs=1e-9)


def test_the_command_of_the_lessons_has_the_settings_of_the_example() -> None:
    """With the example's sizes, the settings of the runs above are those of the command."""
    recipe = example().Recipe()
    sizes = {
        "tokenizer.src.vocab_size": recipe.vocab_size,
        "tokenizer.tgt.vocab_size": recipe.vocab_size,
        "batches.tokens_per_batch": recipe.tokens_per_batch,
        "model.d_model": recipe.d_model,
        "model.d_ff": recipe.d_ff,
        "model.num_heads": recipe.num_heads,
        "model.num_encoder_layers": recipe.num_layers,
        "model.num_decoder_layers": recipe.num_layers,
        "model.dropout": recipe.dropout,
        "training.max_steps": recipe.max_steps,
        "training.eval_every": recipe.max_steps,
        "training.warmup_steps": recipe.warmup_steps,
        "training.label_smoothing": recipe.label_smoothing,
        "training.seed": recipe.seed,
        "training.threads": "none",
        "training.keep_checkpoints": "doublings",
        "decoding.beam_size": recipe.beam_size,
        "decoding.length_penalty": recipe.length_penalty,
    }
    compared = {**SETTINGS, **sizes}
    expected = load_recipe(None, [f"{key}={value}" for key, value in compared.items()])
    lessons = (EXAMPLE.parent.parent / "docs" / "lessons.md").read_text("utf-8")
    (command,) = (line for line in lessons.split("\n") if "runs/one-file" in line)
    flags = pairwise(shlex.split(command))
    own = load_recipe("demo", [value for flag, value in flags if flag == "--set"])
    assert own.data.builtin == "everyday"
    assert (own.data.src_lang, own.data.tgt_lang) == ("en", "de")
    for section in ("tokenizer", "batches", "model", "training", "decoding"):
        assert getattr(own, section) == getattr(expected, section)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--help"], "usage: translate_in_one_file.py [train.tsv test.tsv"),
        (["lines.tsv"], "usage: translate_in_one_file.py [train.tsv test.tsv"),
        (
            ["lines.tsv", "lines.tsv", "zho"],
            "BLEU has no tokenizer 'zho': none, zh, 13a",
        ),
        (["lines.en", "lines.tsv"], "lines.en:2: write source, tab, target"),
        (["gone.tsv", "lines.tsv"], "gone.tsv: [Errno 2] No such file or directory"),
    ],
)
def test_a_wrong_command_of_the_example_is_told(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.en").write_text("a\tb\nno tab\n", "utf-8")
    Path("lines.tsv").write_text("a\tb\n", "utf-8")
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, *arguments])
    with pytest.raises(SystemExit) as stopped:
        example().main()
    assert str(stopped.value).startswith(said)


def test_a_text_that_has_no_positions_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    module = example()
    tokenizer = module.build_tokenizer(["a b"], 400)
    monkeypatch.setattr(module, "MAX_LEN", 7)
    assert [len(ids) for ids in module.encode(tokenizer, ["a b c"])] == [6]
    with pytest.raises(SystemExit) as stopped:
        module.encode(tokenizer, ["a", "a b c d"])
    assert str(stopped.value).startswith("a text has 8 tokens: at most 6 fit")


def test_a_target_without_eos_has_another_token_in_its_place() -> None:
    module = example()
    recipe = module.Recipe(d_model=8, d_ff=8, num_heads=2, num_layers=1)
    model = module.Seq2SeqTransformer(recipe, 30).eval()
    with torch.no_grad():
        model.projection.bias[module.EOS_ID] = -1e4
    source = [5, 6, 7]
    # the source and its eos, and 50 more
    assert len(module.beam_search(model, source, recipe)) == len(source) + 1 + 50
