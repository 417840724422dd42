"""Training a language model as a whole, with tiny ones: what a run leaves behind, and that its
numbers agree.
"""

import json
import math
import os
import re
import shutil
import signal
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft
from pushed import of_which
from weft.data.documents import read_documents
from weft.errors import DataError, FolderError, Interrupted, UsageError
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.kernels.machine import Machine
from weft.recipes.file import load_recipe
from weft.run.record import Verdict
from weft.tasks import trainable_language_modelling
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training.trainer import Trainer

Train = Callable[..., Verdict]
PLAIN = Machine("cpu", "float32", 1, "")
TINY = (
    "task=language-modelling",
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.num_decoder_layers=1",
    "batches.window_len=17",
    "batches.batch_size=5",
    "training.learning_rate=0.01",
    "training.warmup_steps=3",
    "training.max_steps=12",
    "training.eval_every=5",
    "training.save_every=4",
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
    "training.num_samples=0",
    "decoding.max_new_tokens=20",
)
ENDS = {"blank-line": "\n\n", "file": "\n", "line": "\n"}
CHARACTERS = "tokenizer.kind=character"
NGRAMS = (
    "model.ngrams=3",
    "model.ngram_buckets=97",
    "model.ngram_dropout=0.3",
    "model.match_lengths=[2,4]",
    "model.positions=rotary",
    "model.activation=relu2",
)


def sentences(count: int) -> list[str]:
    """The first of 210 different ones, none of white space alone."""
    words = product(
        ("the cat", "a dog", "one bird", "no fish", "my horse"),
        ("sees", "hears", "finds", "likes", "knows", "é wants"),
        ("it.", "you?", "them!", "us;", "me, and says so.", "the end.", "a mouse"),
    )
    return [" ".join(three) for three in words][:count]


def write(path: Path, documents: str, texts: list[str]) -> str:
    path.write_bytes((ENDS[documents].join(texts) + "\n").encode())
    return str(path)


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train for 12 steps on 150 lines, each a document, into `out`, unless told otherwise."""

    def call(
        *settings: str,
        out: Path = tmp_path / "out",
        documents: str = "line",
        text: str | None = None,
        **request: Any,
    ) -> Verdict:
        text = text or write(tmp_path / "train.txt", documents, sentences(150))
        every = (*TINY, f"data.documents={documents}", *settings)
        return weft.train(out=out, train=text, settings=every, quiet=True, **request)

    return call


def logged(out: Path, key: str) -> dict[int, float]:
    lines = [
        json.loads(line)
        for line in RunFolder(out).metrics.read_bytes().decode().split("\n")[:-1]
    ]
    return {line["step"]: line[key] for line in lines if key in line}


def evaluate(folder: Path, *data: str) -> Any:
    task = TrainableLanguageModelling.load(folder, PLAIN)
    return task.evaluate(task.read(data))


def weights(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize("packing", ["stream", "packed"])
def test_without_dropout_r_drop_changes_nothing(
    train: Train, tmp_path: Path, packing: str
) -> None:
    for name, weight in (("plain", 0.0), ("twice", 5.0)):
        settings = (
            "training.max_steps=3",
            f"batches.packing={packing}",
            f"training.r_drop={weight}",
        )
        train(
            *settings,
            "model.dropout=0.0",
            "training.optimizer=sgd",
            out=tmp_path / name,
        )
    plain, both = (
        load_file(tmp_path / name / "model.safetensors") for name in ("plain", "twice")
    )
    torch.testing.assert_close(both, plain, rtol=0, atol=2e-5)


# What a run leaves behind


@pytest.mark.parametrize(
    ("documents", "packing", "kind"),
    of_which(
        [
            ("blank-line", "stream", "bpe"),
            ("file", "stream", "character"),
            ("file", "packed", "bpe"),
            ("line", "packed", "byte"),
            ("line", "stream", "word"),
            ("blank-line", "packed", "unigram"),
        ],
        ("file", "stream", "character"),
        ("line", "packed", "byte"),
        ("blank-line", "packed", "unigram"),
    ),
)
def test_every_kind_of_text_becomes_a_model(
    train: Train, tmp_path: Path, documents: str, packing: str, kind: str
) -> None:
    text = write(tmp_path / "train.txt", documents, sentences(150))
    verdict = train(
        f"batches.packing={packing}",
        f"tokenizer.kind={kind}",
        "data.test_share=0.1",
        "data.lang=en",
        documents=documents,
        text=text,
    )
    assert (verdict.outcome, verdict.exit_code, verdict.step) == ("done", 0, 12)
    numbers = {"loss", "perplexity", "bits_per_byte", "num_tokens", "num_bytes"}
    assert set(verdict.test) == {*numbers, "data_signature", "contaminated", "computed"}
    assert set(verdict.dev) == {"dev_loss", "dev_bits_per_byte", "dev_perplexity"}
    assert verdict.dev["dev_perplexity"] == pytest.approx(
        math.exp(verdict.dev["dev_loss"])
    )
    assert verdict.test_summary.startswith("loss ")
    assert sorted(logged(tmp_path / "out", "dev_loss")) == [5, 10, 12]
    config = durable.read_json(tmp_path / "out" / "config.json")
    assert [config[key] for key in ("task", "lang", "documents", "packing", "window_len")] == [
        "language-modelling", "en", documents, packing, 17,
    ]  # fmt: skip
    model = weft.load(tmp_path / "out")
    assert isinstance(model, weft.LanguageModel)
    assert (model.packed, model.window_len) == (packing == "packed", 17)
    assert model.generate("the cat", max_new_tokens=3) == model.generate(
        "the cat", max_new_tokens=3
    )
    assert model.score("the cat sees it.")[0].num_bytes == 16
    card = (tmp_path / "out" / "README.md").read_text()
    assert "weft generate" in card
    assert "A causal Transformer of 1 layer (width" in card


def test_the_packaged_modern_recipe_scores_and_begins_with_nothing(
    train: Train, tmp_path: Path
) -> None:
    """Normed queries and keys of no position at all: a score begins so, and without the engine a
    text too.
    """
    small = (
        "model.head_dim=8",
        "model.num_key_value_heads=1",
        "model.ngrams=2",
        "model.ngram_buckets=50",
    )
    text = write(tmp_path / "train.txt", "line", sentences(150))
    settings = (*TINY[1:], *small, "data.documents=line", CHARACTERS)
    weft.train(
        recipe="lm-modern",
        out=tmp_path / "out",
        train=text,
        settings=settings,
        quiet=True,
    )
    model = weft.load(tmp_path / "out")
    plain = weft.load(tmp_path / "out", kernels="torch")
    (score,) = model.score("the cat")
    ids = torch.tensor([[model.start_id, *model.tokenizer.encode("the cat")]])
    with torch.inference_mode():
        log_probs = plain.model.model(ids)[0].log_softmax(-1)
    expected = log_probs[:-1].gather(1, ids[0, 1:, None])[:, 0]
    assert score.token_log_probs[: len(expected)] == pytest.approx(
        expected.tolist(), abs=1e-5
    )
    assert plain.engine is None
    for each in (model, plain):
        found = each.generate(max_new_tokens=3, temperature=0)
        assert len(found.token_log_probs) in (1, 2, 3)


@pytest.mark.long
def test_the_built_in_sentences(tmp_path: Path) -> None:
    settings = (
        *TINY,
        CHARACTERS,
        "data.builtin=everyday",
        "data.lang=zh",
        "batches.packing=packed",
    )
    verdict = weft.train(
        out=tmp_path / "out", settings=(*settings, "training.max_steps=2"), quiet=True
    )
    assert verdict.outcome == "done"
    assert not any("contaminated" in note for note in verdict.notes)
    texts = durable.read_json(RunFolder(tmp_path / "out").recipe)["texts"]
    assert {name: part["size"] for name, part in texts.items() if name != "train"} == {
        "dev": "500 documents",
        "test": "502 documents",
    }
    # Chinese characters and marks have three bytes each, and each sentence an end.
    assert verdict.test["num_bytes"] == 3 * (verdict.test["num_tokens"] - 502)


def test_the_weights_are_those_of_the_lowest_loss_on_dev(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {4: 3.0, 8: 1.0, 12: 2.0}
    monkeypatch.setattr(
        trainable_language_modelling.DevEvaluation,
        "__call__",
        lambda self, step: {
            "dev_loss": scores[step],
            "dev_bits_per_byte": -scores[step],
        },
    )
    verdict = train(CHARACTERS, "training.eval_every=4")
    assert (verdict.step, verdict.best_step, verdict.dev["dev_loss"]) == (12, 8, 1.0)
    checkpoints = RunFolder(tmp_path / "out").checkpoints
    best, last = (
        (checkpoints / f"step-{step}" / "model.safetensors").read_bytes()
        for step in (8, 12)
    )
    assert weights(tmp_path / "out") == best != last


def test_without_dev_the_last_step_is_taken_and_said(
    train: Train, tmp_path: Path
) -> None:
    verdict = train(CHARACTERS, "data.dev_share=0.0")
    assert (verdict.best_step, verdict.dev, verdict.test) == (0, {}, {})
    assert any(
        note.startswith("no dev set; nothing says which step is the best")
        for note in verdict.notes
    )
    assert not (RunFolder(tmp_path / "out").samples).exists()


def test_what_was_held_out_and_left_out_is_said(train: Train, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes("\n \n".join(sentences(150)).encode())
    verdict = train(CHARACTERS, "data.test_share=0.1", text=str(path))
    (held,) = [
        note for note in verdict.notes if note.startswith("held out of the text: ")
    ]
    assert "% for dev and " in held
    assert "left out: 149 documents (blank)" in verdict.notes


def test_a_test_text_that_was_trained_on_is_marked(
    train: Train, tmp_path: Path
) -> None:
    test = write(
        tmp_path / "test.txt",
        "line",
        ["something new", sentences(9)[3].upper(), "another new one"],
    )
    verdict = train(CHARACTERS, "data.dev_share=0.0", test=test)
    (note,) = [note for note in verdict.notes if note.startswith("contaminated")]
    assert "1 of 3 documents" in note
    assert f"{test}:2" in note


def test_samples_go_on_from_the_beginnings_of_dev(train: Train, tmp_path: Path) -> None:
    texts = ["a dog " * 40, "my horse", "one bird"]
    dev = write(tmp_path / "dev.txt", "line", texts)
    train(CHARACTERS, "training.num_samples=2", "training.eval_every=6", dev=dev)
    lines = RunFolder(tmp_path / "out").samples.read_bytes().decode().split("\n")[:-1]
    samples = [json.loads(line) for line in lines]
    assert [(s["step"], s["prompt"]) for s in samples] == [
        (step, t[:80]) for step in (6, 12) for t in texts[:2]
    ]
    # In training as afterwards: the last ones were written with the weights that the folder may
    # have.
    model = weft.load(tmp_path / "out")
    if read_verdict(tmp_path / "out")["best_step"] == 12:
        assert (
            samples[-1]["text"]
            == model.generate("my horse", max_new_tokens=60, seed=1).text
        )


def read_verdict(out: Path) -> dict[str, Any]:
    return json.loads(RunFolder(out).verdict.read_bytes())


def test_two_runs_of_one_seed_are_the_same_and_of_another_not(
    train: Train, tmp_path: Path
) -> None:
    text = write(tmp_path / "book.txt", "file", sentences(150))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(
            CHARACTERS,
            f"training.seed={seed}",
            out=tmp_path / name,
            documents="file",
            text=text,
        )
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert a == b != c


# Numbers that must agree


@pytest.mark.parametrize("packing", ["stream", "packed"])
@pytest.mark.parametrize(
    ("kind", "shape"),
    of_which(
        [("character", ()), ("bpe", ()), ("character", NGRAMS)],
        ("bpe", ()),
        ("character", NGRAMS),
    ),
)
def test_the_loss_on_dev_is_what_evaluate_finds_afterwards(
    train: Train, tmp_path: Path, packing: str, kind: str, shape: tuple[str, ...]
) -> None:
    dev = write(tmp_path / "dev.txt", "line", [line.upper() for line in sentences(60)])
    verdict = train(
        f"batches.packing={packing}",
        f"tokenizer.kind={kind}",
        *shape,
        dev=dev,
        test=dev,
    )
    scores = evaluate(tmp_path / "out", dev)
    assert (
        logged(tmp_path / "out", "dev_loss")[verdict.best_step]
        == scores.loss
        == verdict.test["loss"]
    )
    assert (
        verdict.dev["dev_bits_per_byte"]
        == scores.bits_per_byte
        == verdict.test["bits_per_byte"]
    )
    assert verdict.test.items() >= scores.to_json().items()


def test_what_is_held_out_of_a_text_scores_the_same_as_a_file_of_its_own(
    train: Train, tmp_path: Path
) -> None:
    text = "\n".join(sentences(200)) + "\n"
    (tmp_path / "book.txt").write_bytes(text.encode())
    verdict = train(
        "tokenizer.kind=bpe", documents="file", text=str(tmp_path / "book.txt")
    )
    files = durable.read_json(RunFolder(tmp_path / "out").recipe)["texts"]
    assert files["dev"]["size"] == "1 document"
    cut = text.index("\n", int(len(text) * 0.05) - 1) + 1
    (tmp_path / "dev.txt").write_bytes(text[:cut].encode())
    assert (
        evaluate(tmp_path / "out", str(tmp_path / "dev.txt")).loss
        == verdict.dev["dev_loss"]
    )


@pytest.fixture(scope="module")
def barely_trained(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str], Path]:
    """A model by packing and kind of tokenizer. Tests must not change it."""

    @cache
    def folder(packing: str, kind: str) -> Path:
        here = tmp_path_factory.mktemp("barely")
        text = write(here / "train.txt", "line", sentences(150))
        steps = ("data.documents=line", "data.dev_share=0.0", "training.max_steps=3")
        settings = (
            *TINY,
            *steps,
            f"batches.packing={packing}",
            f"tokenizer.kind={kind}",
        )
        weft.train(out=here / "model", train=text, settings=settings, quiet=True)
        return here / "model"

    return folder


@pytest.mark.parametrize("packing", ["stream", "packed"])
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("character", 16),
        ("character", 17),
        ("character", 18),
        ("character", 400),
        ("bpe", 400),
        ("byte", 40),
    ],
)
def test_evaluate_gives_the_mean_of_the_scores_of_all_tokens(
    barely_trained: Callable[[str, str], Path],
    tmp_path: Path,
    packing: str,
    kind: str,
    size: int,
) -> None:
    """Of a single document: one window, just more than one, and many."""
    text = "\n".join(sentences(40))[:size]
    assert len(text) == size
    path = tmp_path / "one.txt"
    path.write_bytes(text.encode())
    task = TrainableLanguageModelling.load(barely_trained(packing, kind), PLAIN)
    scores = task.evaluate(read_documents(path, "file"))
    (score,) = task.predictor().score(text)
    assert scores.num_tokens == score.num_tokens == len(score.token_log_probs)
    assert scores.num_bytes == score.num_bytes
    assert scores.loss == pytest.approx(
        -sum(score.token_log_probs) / score.num_tokens, rel=1e-5
    )
    assert scores.perplexity == pytest.approx(score.perplexity, rel=1e-4)
    assert scores.bits_per_byte == pytest.approx(score.bits_per_byte, rel=1e-5)


def test_a_text_of_many_parts_is_encoded_the_same_to_train_to_evaluate_and_to_score(
    train: Train, tmp_path: Path
) -> None:
    """More than 65,536 characters are encoded part by part."""
    text = " ".join(sentences(210)) * 24
    assert len(text) > 100_000
    (tmp_path / "book.txt").write_bytes(text.encode())
    settings = (
        "tokenizer.kind=bpe",
        "data.dev_share=0.0",
        "training.max_steps=1",
        "batches.window_len=500",
    )
    train(*settings, documents="file", text=str(tmp_path / "book.txt"))
    task = TrainableLanguageModelling.load(tmp_path / "out", PLAIN)
    trained_on = np.load(
        RunFolder(tmp_path / "out").stores / "train" / "ids.npy", allow_pickle=False
    ).tolist()
    assert trained_on == task.tokenizers[0].encode(text)
    scores, (score,) = (
        evaluate(tmp_path / "out", str(tmp_path / "book.txt")),
        task.predictor().score(text),
    )
    assert scores.num_tokens == score.num_tokens == len(trained_on)
    assert scores.loss == pytest.approx(-score.log_prob / score.num_tokens, rel=1e-5)


@pytest.mark.parametrize("packing", ["stream", "packed"])
def test_documents_in_any_company_have_every_token_and_end_counted_once(
    barely_trained: Callable[[str, str], Path], tmp_path: Path, packing: str
) -> None:
    folder = barely_trained(packing, "character")
    texts = [text for text in sentences(30) if len(text) < 17]
    scores = evaluate(folder, write(tmp_path / "some.txt", "line", texts))
    assert scores.num_tokens == sum(map(len, texts)) + len(texts)
    assert scores.num_bytes == sum(len(text.encode()) for text in texts)
    if packing == "packed":  # where none sees another
        found = weft.load(folder).score(texts)
        assert scores.loss == pytest.approx(
            -sum(s.log_prob for s in found) / scores.num_tokens, rel=1e-5
        )


def test_bfloat16_on_the_way_is_close_to_float32_afterwards(
    train: Train, tmp_path: Path
) -> None:
    dev = write(tmp_path / "dev.txt", "line", sentences(60))
    verdict = train(CHARACTERS, "training.precision=bfloat16", dev=dev)
    assert evaluate(tmp_path / "out", dev).loss == pytest.approx(
        verdict.dev["dev_loss"], rel=0.02
    )


# Stopped and gone on


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step + 1 == step:
            os.kill(os.getpid(), signal.SIGINT)
        take_step(self)

    monkeypatch.setattr(Trainer, "_take_step", taking)


@pytest.mark.parametrize(
    ("documents", "packing", "kind", "shape"),
    [
        pytest.param("file", "stream", "character", (), marks=pytest.mark.long),
        pytest.param("line", "stream", "bpe", (), marks=pytest.mark.long),
        ("line", "packed", "byte", ()),
        ("file", "stream", "character", NGRAMS),
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_weights(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    documents: str,
    packing: str,
    kind: str,
    shape: tuple[str, ...],
) -> None:
    """Bit for bit, over the end of an epoch and with dropout and samples between."""
    text = write(tmp_path / "train.txt", documents, sentences(60))
    settings = (
        f"batches.packing={packing}",
        f"tokenizer.kind={kind}",
        "batches.batch_size=20",
        "training.num_samples=1",
        *shape,
    )
    request = {"documents": documents, "text": text}
    train(*settings, out=tmp_path / "whole", **request)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 7)
        with pytest.raises(Interrupted):
            train(*settings, **request)
    with pytest.raises(FolderError, match="training has not finished"):
        weft.load(tmp_path / "out")
    assert train(*settings, **request).step == 12
    ours, whole = tmp_path / "out", tmp_path / "whole"
    assert weights(ours) == weights(whole)
    assert RunFolder(ours).samples.read_bytes() == RunFolder(whole).samples.read_bytes()
    assert logged(ours, "dev_loss") == logged(whole, "dev_loss")
    assert max(logged(whole, "epoch").values()) > 0


def test_changed_keys_are_refused_with_the_difference(
    train: Train, tmp_path: Path
) -> None:
    train(CHARACTERS)
    before = weights(tmp_path / "out")
    for setting, difference in (
        ("batches.window_len=18", "batches.window_len was 17, is 18"),
        ("batches.packing=packed", "batches.packing was stream, is packed"),
        ("data.dev_share=0.1", "data.dev_share was 0.05, is 0.1"),
    ):
        with pytest.raises(UsageError, match=difference):
            train(CHARACTERS, setting)
    with pytest.raises(
        UsageError,
        match=r"holds a run of language-modelling, and this is translation; give another --output",
    ):
        weft.train(out=tmp_path / "out", recipe="demo", quiet=True)
    assert weights(tmp_path / "out") == before


# Starting from an own model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests must not change it."""
    folder = tmp_path_factory.mktemp("trained")
    text = write(folder / "train.txt", "line", sentences(150))
    settings = (
        *TINY,
        CHARACTERS,
        "data.documents=line",
        "model.max_len=64",
        "data.dev_share=0.0",
    )
    weft.train(out=folder / "model", train=text, settings=settings, quiet=True)
    return folder / "model"


@pytest.mark.parametrize(
    "settings",
    [(), TINY[1:5], (CHARACTERS,), ("model.max_len=64", CHARACTERS)],
    ids=str,
)
def test_from_keeps_weights_shape_and_tokenizer(
    trained: Path, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    """Also where the recipe asks for what the model has, in part or in all."""
    text = write(
        tmp_path / "more.txt", "line", [line.upper() for line in sentences(40)]
    )
    some = (
        TINY[0],
        *TINY[5:],
        "data.documents=line",
        "training.max_steps=1",
        "data.dev_share=0.0",
        *settings,
    )
    verdict = weft.train(
        out=tmp_path / "out", train=text, start_from=trained, settings=some, quiet=True
    )
    assert any("starts from" in note for note in verdict.notes)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (
        trained / "tokenizer.json"
    ).read_bytes()
    ours, theirs = (
        load_file(folder / "model.safetensors")
        for folder in (tmp_path / "out", trained)
    )
    assert ours.keys() == theirs.keys()
    moved = max(float((ours[name] - theirs[name]).abs().max()) for name in ours)
    assert 0 < moved < 0.02  # one step away, not drawn anew


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "model.d_model=48",
            "--from keeps the model of .*, but model.d_model is 16 there and 48 here",
        ),
        (
            "tokenizer.kind=bpe",
            "--from keeps the tokenizer of .*, but tokenizer.kind is character there and bpe here",
        ),
        (
            "batches.window_len=65",
            "batches.window_len = 65 is longer than the 64 positions of",
        ),
    ],
)
def test_from_refuses_what_the_model_has_not(
    trained: Path, tmp_path: Path, setting: str, message: str
) -> None:
    text = write(tmp_path / "more.txt", "line", sentences(40))
    with pytest.raises(UsageError, match=message) as caught:
        weft.train(
            out=tmp_path / "out",
            train=text,
            start_from=trained,
            settings=[TINY[0], setting],
            quiet=True,
        )
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_from_refuses_a_model_of_another_task(
    tmp_path: Path, tiny_folder: Path
) -> None:
    text = write(tmp_path / "train.txt", "line", sentences(40))
    with pytest.raises(
        UsageError,
        match="holds a model for translation, the recipe is for language-modelling",
    ):
        weft.train(
            out=tmp_path / "out",
            train=text,
            start_from=tiny_folder,
            settings=TINY,
            quiet=True,
        )
    assert not (tmp_path / "out").exists()


# What is refused


def refusal(folder: Path) -> str:
    with pytest.raises(FolderError) as caught:
        weft.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window_len": 65}, "model: .*max_len = 64 is less than window_len"),
        ({"window_len": 0}, "window_len = 0: must be a whole number from "),
        ({"vocab_size": 400}, "a tokenizer has .* pieces, the model 400|expected F32"),
        ({"packing": "loose"}, "packing = 'loose': must be '"),
        ({"more": 1}, "unknown key 'more'$"),
        ({"model": {"d_model": "x"}}, "model.d_model = 'x': must be a whole number"),
        (
            {"tokenizer": None},
            "tokenizer = none: must be a section with keys of its own",
        ),
        (
            {"decoding": {"temperature": -1.0}},
            "decoding.temperature = -1.0: must be a number from 0 to 100",
        ),
        ({"task": "translation"}, "not a config of this version"),
        ({"task": "poetry"}, "task: poetry is none of"),
        (
            {"vocab_size": 2_000_000, "model": {"d_model": 65_536}},
            "describes over|d_model|expected",
        ),
    ],
    ids=str,
)
def test_a_damaged_config_is_refused_in_one_line(
    trained: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = shutil.copytree(
        trained, tmp_path / "copy", ignore=shutil.ignore_patterns("run")
    )
    files = ["model.safetensors", "config.json", "tokenizer.json"]
    durable.write_manifest(folder, files)
    # it is the change that is refused
    assert weft.load(folder).generate(max_new_tokens=1)
    config = durable.read_json(folder / "config.json")
    durable.write_json(folder / "config.json", {**config, **change})
    durable.write_manifest(folder, files)
    said = refusal(folder)
    assert re.search(message, said)
    assert not re.search("Input should|Field required|Extra inputs|valid ", said), (
        "words of ours"
    )


def test_a_config_that_lacks_a_key_is_refused_by_its_name(
    trained: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(
        trained, tmp_path / "copy", ignore=shutil.ignore_patterns("run")
    )
    config = durable.read_json(folder / "config.json")
    del config["window_len"]
    durable.write_json(folder / "config.json", config)
    durable.write_manifest(
        folder, ["model.safetensors", "config.json", "tokenizer.json"]
    )
    assert refusal(folder).endswith(
        "config.json: not a config of this version: lacks window_len"
    )


def test_a_model_of_one_task_is_refused_by_another(
    trained: Path, tiny_folder: Path
) -> None:
    with pytest.raises(
        UsageError, match="holds a model for language-modelling, which cannot translate"
    ):
        TrainableTranslation.load(trained, PLAIN)
    with pytest.raises(
        UsageError,
        match="holds a model for translation, which cannot generate or score text",
    ):
        TrainableLanguageModelling.load(tiny_folder, PLAIN)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", DataError, "is empty"),
        (b" \n\n", DataError, "holds no text"),
        (b"a", DataError, "the training text is a single token"),
        (b"a\xff", DataError, "not UTF-8"),
    ],
)
def test_text_that_nothing_can_be_learned_from(
    train: Train, tmp_path: Path, content: bytes, error: type[Exception], message: str
) -> None:
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        train(CHARACTERS, "data.dev_share=0.0", text=str(tmp_path / "bad.txt"))
    assert "\n" not in str(caught.value)


def test_a_window_longer_than_the_model_is_refused() -> None:
    with pytest.raises(
        UsageError,
        match=r"recipe: batches\.window_len = 65 is more than model\.max_len = 64",
    ):
        load_recipe(None, [*TINY, "model.max_len=64", "batches.window_len=65"])


def test_too_small_a_text_still_trains(train: Train, tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_bytes(b"ab")
    verdict = train(CHARACTERS, "data.dev_share=0.0", text=str(tmp_path / "two.txt"))
    assert verdict.outcome == "done"
    assert any("too small" in note for note in verdict.notes)
