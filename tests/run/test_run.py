"""Training as a whole, with a tiny model: what it leaves behind, how it goes on, and what it
refuses.
"""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import weft
from pushed import of_which
from weft.config import TrainingSection, TranslationRecipe
from weft.data import crew
from weft.data.corpus import fingerprint, from_pairs
from weft.data.overlap import TextHashes
from weft.data.texts import Texts
from weft.errors import (
    DataError,
    DivergedError,
    FolderError,
    Interrupted,
    OutOfMemoryError,
    UsageError,
)
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.kernels import native
from weft.kernels.machine import Machine
from weft.kernels.torch_machine import choose_machine
from weft.recipes.file import build_recipe, with_values
from weft.run import preparing
from weft.run import train as run_train
from weft.run.origin import begin_or_resume
from weft.run.planning import Planned, make_plan
from weft.run.record import RunRecord, Verdict
from weft.tasks import trainable_translation
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training import trainer
from weft.training.budget import Costs, usual_save_every
from weft.training.distributed import World
from weft.training.log import Log
from weft.training.trainer import Plan, Trainer

Train = Callable[..., Verdict]
Write = Callable[[int], str]
SHORT = ("training.max_steps=1", "training.precision=float32", "training.threads=1")


@pytest.fixture
def train(tmp_path: Path, write_pairs: Write, tiny_settings: tuple[str, ...]) -> Train:
    """Train for 12 steps on 60 pairs into `out`, unless told otherwise."""

    def call(
        *settings: str,
        out: Path = tmp_path / "out",
        text: str | None = None,
        **request: Any,
    ) -> Verdict:
        steps = ("training.max_steps=12", "training.save_every=4")
        text = text or write_pairs(60)
        request = {"quiet": True, **request}
        return weft.train(
            out=out, train=text, settings=(*tiny_settings, *steps, *settings), **request
        )

    return call


def read_verdict(out: Path) -> dict[str, Any]:
    return json.loads(RunFolder(out).verdict.read_bytes())


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its content, but TensorBoard's, of which each start has its own."""
    files = (
        p for p in folder.rglob("*") if p.is_file() and p.parent.name != "tensorboard"
    )
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def logged_steps(out: Path, key: str) -> list[int]:
    lines = RunFolder(out).metrics.read_bytes().decode().split("\n")[:-1]
    return [json.loads(line)["step"] for line in lines if key in json.loads(line)]


def at_step(
    monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]
) -> None:
    """Let something happen before the given step."""
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step + 1 == step:
            act()
        take_step(self)

    monkeypatch.setattr(Trainer, "_take_step", taking)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    "kernels", ["native", pytest.param("torch", marks=pytest.mark.long)]
)
def test_models_loaded_and_used_meanwhile_leave_a_run_as_it_would_be_alone(
    train: Train, tmp_path: Path, tiny_folder: Path, kernels: str
) -> None:
    """A notebook that trains in a thread: the weights are the same, bit for bit, kernels and
    dropout masks too.
    """
    try:
        native.load()
    except native.UnavailableError as error:
        pytest.skip(f"no native kernels here: {error}")
    settings = (
        f"training.kernels={kernels}",
        "training.max_steps=30",
        "model.dropout=0.3",
    )
    train(*settings, out=tmp_path / "alone")
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(train, *settings, out=tmp_path / "beside")
        loads = 0
        while not beside.done():
            assert weft.load(tiny_folder).translate("The cat sees the dog.")[0].text
            loads += 1
        assert beside.result().outcome == "done"
    assert loads > 1
    alone, other = (
        load_file(tmp_path / name / "model.safetensors") for name in ("alone", "beside")
    )
    assert [
        name for name, tensor in alone.items() if not tensor.equal(other[name])
    ] == []


# What a run leaves behind


def test_tensorboard_shows_what_is_logged_also_after_a_stop(
    train: Train, tmp_path: Path, write_pairs: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    at_step(monkeypatch, 9, interrupt)
    settings, text = ("training.eval_every=3", "data.test_size=0"), write_pairs(210)
    with pytest.raises(Interrupted):
        train(*settings, text=text)
    train(*settings, text=text)
    folder = RunFolder(tmp_path / "out").tensorboard
    assert len([*folder.iterdir()]) == 2
    events = accumulator.EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("dev/loss")] == logged_steps(
        tmp_path / "out", "dev_loss"
    )
    assert [event.step for event in events.Scalars("training/loss")] == logged_steps(
        tmp_path / "out", "loss"
    )


def test_a_run_begun_before_the_peak_was_measured_goes_on_without(
    train: Train, tmp_path: Path
) -> None:
    train()
    files = RunFolder(tmp_path / "out")
    facts = durable.read_json(files.machine)
    assert facts.pop("peak_flops") > 0
    durable.write_json(files.machine, facts)
    train("training.max_steps=13")
    before, after = (
        json.loads(line) for line in files.metrics.read_bytes().split(b"\n")[:-1]
    )
    assert (0 < before["peak_share"] < 1, "peak_share" in after) == (True, False)
    assert durable.read_json(files.machine) == facts


def test_how_long_training_will_take(tmp_path: Path) -> None:
    planned = Planned(TrainingSection(), Plan(100, 30, 9), Costs(6.0, 30.0, 60.0))
    assert planned.length(0, None, evaluates=False) == "about 11 minutes"
    # four times on dev
    assert planned.length(0, tmp_path / "m", evaluates=True) == "about 13 minutes"
    (tmp_path / "m").write_text(
        '{"step": 30, "dev_bleu": 1.0, "evaluation_seconds": 60}\n'
    )
    assert planned.length(50, tmp_path / "m", evaluates=True) == "about 9 minutes left"


def test_a_short_run_is_not_evaluated_after_each_step() -> None:
    batches: Any = SimpleNamespace(num_batches=lambda epoch: 100)
    train, dev = (
        from_pairs([("abcd", "efgh")] * 1000, "t", "en", "de"),
        from_pairs([("abcd", "efgh")] * 50, "d", "en", "de"),
    )

    def evaluations(steps: int, text: Any = dev) -> int:
        recipe = with_values(TranslationRecipe(), {"training.max_steps": steps})
        plan = make_plan(
            recipe, batches, Texts(train, text, None, "pairs", fingerprint)
        )
        return -(-plan.max_steps // plan.eval_every)

    # 5 steps' worth each
    assert [evaluations(steps) for steps in (20, 70, 200, 3000)] == [1, 2, 6, 15]
    assert evaluations(20, None) == 10
    recipe = with_values(
        TranslationRecipe(), {"training.max_steps": 20, "training.eval_every": 1}
    )
    assert (
        make_plan(
            recipe, batches, Texts(train, dev, None, "pairs", fingerprint)
        ).eval_every
        == 1
    )


@pytest.mark.parametrize(
    ("steps", "eval_every", "expected"),
    [(62, 58, 7), (20, 20, 2), (3, 3, 1), (3000, 200, 200), (50_000, 3000, 500)],
)
def test_a_kill_costs_a_tenth_of_a_run_at_most(
    steps: int, eval_every: int, expected: int
) -> None:
    assert usual_save_every(steps, eval_every) == expected


def test_a_run_that_had_a_tracker_that_is_gone_is_continued(
    train: Train, tmp_path: Path
) -> None:
    train()
    path = RunFolder(tmp_path / "out").recipe
    record = durable.read_json(path)
    record["recipe"]["training"]["trackio"] = "essays"
    record["recipe"]["training"]["precision"] = "tf32"
    durable.write_json(path, record)
    train("training.precision=float32")
    assert read_verdict(tmp_path / "out")["step"] == 12
    train("training.precision=float32", "training.max_steps=14")
    assert read_verdict(tmp_path / "out")["step"] == 14
    assert "trackio" not in durable.read_json(path)["recipe"]["training"]


def test_a_run_that_was_trained_with_a_key_that_is_gone_is_refused_in_one_line(
    train: Train, tmp_path: Path
) -> None:
    train()
    path = RunFolder(tmp_path / "out").recipe
    record = durable.read_json(path)
    record["recipe"]["model"]["layer_dropout"] = 0.2
    durable.write_json(path, record)
    with pytest.raises(UsageError) as caught:
        train("training.max_steps=14")
    message = str(caught.value)
    assert message.startswith(
        f"{tmp_path / 'out'}: model.layer_dropout = 0.2: no longer"
    )
    assert message.endswith("continues in the version that docs/experiments.md names")
    assert "\n" not in message


def test_a_finished_run_says_so(train: Train, tmp_path: Path) -> None:
    verdict = train()
    written = read_verdict(tmp_path / "out")
    assert (written["outcome"], written["exit_code"], written["reason"]) == (
        "done",
        0,
        "done after 12 steps",
    )
    assert (written["step"], written["best_step"], written["dev"], written["test"]) == (
        12,
        0,
        {},
        {},
    )
    assert verdict.notes == written["notes"]
    assert weft.load(tmp_path / "out").translate("cat sees dog.")[0].segments == 1
    assert logged_steps(tmp_path / "out", "loss") == [12]


def test_too_few_pairs_to_hold_any_out(train: Train, tmp_path: Path) -> None:
    verdict = train()
    assert any(
        "no dev set: 60 pairs are too few to hold some out" in note
        for note in verdict.notes
    )
    assert any("no test set" in note for note in verdict.notes)
    facts = durable.read_json(RunFolder(tmp_path / "out").recipe)
    assert set(facts["texts"]) == {"train"}
    assert facts["texts"]["train"]["size"] == "60 pairs"


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        (("data.max_len=5", "model.max_len=64"), "data.max_len"),
        (("data.max_len=256", "model.max_len=6"), "model.max_len"),
        (("data.max_len=5", "model.max_len=6"), "model.max_len"),
    ],
)
def test_the_key_that_allows_no_longer_pairs_is_named(
    train: Train, tmp_path: Path, limits: tuple[str, str], key: str
) -> None:
    text = tmp_path / "pairs.en-de.tsv"
    pairs = [(f"a{i % 9} b", f"c{i % 7} d") for i in range(60)]
    pairs += [("a b c d e f g h", "a b c d e f g h")] * 4
    text.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs))
    verdict = train(*limits, text=str(text))
    (note,) = (note for note in verdict.notes if "longer than" in note)
    assert f"4 pairs (longer than {key})" in note
    config = TrainableTranslation.load(
        tmp_path / "out", choose_machine("float32")
    ).config
    assert (config.max_src_len, config.limiting_key) == (6, key)


def test_dev_and_test_are_held_out_of_enough(
    train: Train, tmp_path: Path, write_pairs: Write
) -> None:
    verdict = train("training.eval_every=6", text=write_pairs(210))
    assert (
        "held out of the text by data.seed = 1: 20 pairs for dev and 20 pairs for test"
        in verdict.notes
    )
    assert verdict.test["num_sentences"] == 20
    assert set(verdict.dev) == {"dev_bleu", "dev_loss", "dev_perplexity"}
    assert verdict.best_step in (6, 12)
    assert logged_steps(tmp_path / "out", "dev_bleu") == [6, 12]
    samples = RunFolder(tmp_path / "out").samples.read_bytes().decode().split("\n")[:-1]
    assert [json.loads(line)["step"] for line in samples] == [6] * 4 + [12] * 4


def test_the_published_weights_are_the_best_ones(
    train: Train, tmp_path: Path, write_pairs: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {4: 1.0, 8: 7.0, 12: 3.0}
    monkeypatch.setattr(
        trainable_translation.DevEvaluation,
        "__call__",
        lambda self, step: {"dev_bleu": scores[step]},
    )
    verdict = train("training.eval_every=4", text=write_pairs(210))
    assert (verdict.step, verdict.best_step, verdict.dev) == (12, 8, {"dev_bleu": 7.0})
    best = tmp_path / "out" / "run" / "checkpoints" / "step-8" / "model.safetensors"
    last = tmp_path / "out" / "run" / "checkpoints" / "step-12" / "model.safetensors"
    assert (
        (tmp_path / "out" / "model.safetensors").read_bytes()
        == best.read_bytes()
        != last.read_bytes()
    )
    assert (
        "those of step 8, the best on dev"
        in (tmp_path / "out" / "README.md").read_text()
    )


def test_two_runs_of_one_seed_are_the_same_and_of_another_not(
    train: Train, tmp_path: Path
) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(f"training.seed={seed}", out=tmp_path / name)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def held_out(out: Path) -> list[str]:
    texts = json.loads((out / "run" / "recipe.json").read_bytes())["texts"]
    return [texts[part]["sha256"] for part in ("dev", "test")]


def test_the_seed_of_training_does_not_move_what_is_held_out(
    train: Train, tmp_path: Path, write_pairs: Write
) -> None:
    text = write_pairs(216)
    for name, setting in (
        ("a", "training.seed=1"),
        ("b", "training.seed=2"),
        ("c", "data.seed=2"),
    ):
        train("training.max_steps=1", setting, out=tmp_path / name, text=text)
    a, b, c = (held_out(tmp_path / name) for name in "abc")
    assert a == b
    assert all(mine != other for mine, other in zip(a, c, strict=True))


def test_a_run_from_before_the_split_had_its_own_seed_keeps_its_split(
    train: Train, tmp_path: Path, write_pairs: Write
) -> None:
    text, record = write_pairs(216), tmp_path / "out" / "run" / "recipe.json"
    train("training.seed=7", "data.seed=7", "training.max_steps=2", text=text)
    before, written = held_out(tmp_path / "out"), json.loads(record.read_bytes())
    del written["recipe"]["data"]["seed"]
    record.write_text(json.dumps(written))
    for steps in (4, 6):  # the second start finds the record as the first has left it
        assert (
            train("training.seed=7", f"training.max_steps={steps}", text=text).step
            == steps
        )
        assert held_out(tmp_path / "out") == before
    with pytest.raises(UsageError, match=r"training\.seed was 7, is 8"):
        train("training.seed=8", text=text)


AGAINST_LEARNING_BY_HEART = (
    "training.r_drop=1.0",
    "training.ema_decay=0.8",
    "model.attention_dropout=0.2",
    "model.activation_dropout=0.2",
)


def test_with_every_kind_of_dropout_an_interrupted_run_ends_with_the_same_weights(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(*AGAINST_LEARNING_BY_HEART, out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        at_step(patch, 7, interrupt)
        with pytest.raises(Interrupted):
            train(*AGAINST_LEARNING_BY_HEART)
    assert train(*AGAINST_LEARNING_BY_HEART).step == 12
    ours, whole = (tmp_path / name / "model.safetensors" for name in ("out", "whole"))
    assert ours.read_bytes() == whole.read_bytes()
    step = RunFolder(tmp_path / "out").checkpoints / "step-12"
    assert ours.read_bytes() == (step / "average.safetensors").read_bytes()
    assert ours.read_bytes() != (step / "model.safetensors").read_bytes()


@pytest.mark.parametrize("setting", AGAINST_LEARNING_BY_HEART)
def test_each_kind_of_dropout_makes_another_model(
    train: Train, tmp_path: Path, setting: str
) -> None:
    found = []
    for name, settings in (("plain", ()), ("dropping", (setting,))):
        train("training.max_steps=3", *settings, out=tmp_path / name)
        found.append((tmp_path / name / "model.safetensors").read_bytes())
    assert found[0] != found[1]


PLAIN = ("model.dropout=0.0", "training.optimizer=sgd")


def test_without_dropout_r_drop_changes_nothing(train: Train, tmp_path: Path) -> None:
    for name, weight in (("plain", 0.0), ("twice", 5.0)):
        train(
            "training.max_steps=3",
            *PLAIN,
            f"training.r_drop={weight}",
            out=tmp_path / name,
        )
    plain, both = (
        load_file(tmp_path / name / "model.safetensors") for name in ("plain", "twice")
    )
    torch.testing.assert_close(both, plain, rtol=0, atol=2e-5)


# How a run ends badly


def test_only_the_command_that_set_a_run_aside_says_so(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train()
    capfd.readouterr()
    train(fresh=True, quiet=False)
    said = "--fresh: an earlier run was set aside as"
    assert capfd.readouterr().err.count(said) == 1
    ended = train("training.max_steps=13", quiet=False)
    assert said not in capfd.readouterr().err
    assert any(note.startswith(said) for note in ended.notes)


def test_an_interrupted_run_says_so_and_goes_on(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        at_step(patch, 7, interrupt)
        with pytest.raises(Interrupted):
            train()
    written = read_verdict(tmp_path / "out")
    assert (written["outcome"], written["exit_code"], written["step"]) == (
        "interrupted",
        75,
        7,
    )
    with pytest.raises(FolderError, match="training has not finished"):
        weft.load(tmp_path / "out")
    assert train().step == 12
    assert read_verdict(tmp_path / "out")["outcome"] == "done"
    ours, whole = (
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("out", "whole")
    )
    assert ours == whole


def test_a_run_that_diverges_says_so(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_step(
        monkeypatch,
        6,
        lambda: monkeypatch.setattr(trainer, "clip_gradients", lambda *_: float("nan")),
    )
    with pytest.raises(DivergedError):
        train()
    written = read_verdict(tmp_path / "out")
    assert (written["outcome"], written["exit_code"], written["step"]) == (
        "failed",
        4,
        5,
    )
    assert "step 6" in written["reason"]
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("error", "outcome", "exit_code"),
    [
        (OutOfMemoryError("no memory"), "failed", 6),
        (FolderError("no space"), "failed", 5),
        (DataError("no text"), "failed", 3),
        (KeyboardInterrupt(), "interrupted", 130),
        (ZeroDivisionError("a bug"), "failed", 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_bad_end_is_in_the_verdict(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    outcome: str,
    exit_code: int,
) -> None:
    def fail() -> None:
        raise error

    at_step(monkeypatch, 3, fail)
    with pytest.raises(type(error)):
        train()
    written = read_verdict(tmp_path / "out")
    assert (written["outcome"], written["exit_code"], written["step"]) == (
        outcome,
        exit_code,
        2,
    )
    assert written["reason"]
    assert not (tmp_path / "out" / "manifest.json").exists()


# The same folder again


def test_a_finished_run_is_left_as_it_is(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train()
    before = tree(tmp_path / "out")
    settings = ("training.max_steps=12",)
    verdict = train(*settings)
    assert verdict.outcome == "done"
    assert tree(tmp_path / "out") == before


def test_it_says_how_to_extend(
    train: Train,
    tmp_path: Path,
    write_pairs: Write,
    tiny_settings: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    train()
    settings = (*tiny_settings, "training.max_steps=12", "training.save_every=4")
    capfd.readouterr()
    weft.train(out=tmp_path / "out", train=write_pairs(60), settings=settings)
    out, err = capfd.readouterr()
    assert out == ""
    (said,) = [line for line in err.split("\n")[:-1] if " ..." not in line]
    assert "is finished (done after 12 steps)" in said
    assert "--set training.max_steps=24" in err


def test_max_steps_may_grow(train: Train, tmp_path: Path) -> None:
    constant = ("training.schedule=constant", "training.eval_every=99")
    train(*constant, "training.max_steps=20", out=tmp_path / "whole")
    train(*constant)
    assert train(*constant, "training.max_steps=20").step == 20
    assert read_verdict(tmp_path / "out")["reason"] == "done after 20 steps"
    ours, whole = (
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("out", "whole")
    )
    assert ours == whole
    assert train(*constant, "training.max_steps=15").step == 20


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("training.label_smoothing=0",), "  "),
        (("training.label_smoothing=0.1",), " (smoothed)  "),
        (("training.label_smoothing=0", "training.r_drop=1"), " (R-Drop)  "),
        (("training.r_drop=1",), " (smoothed, R-Drop)  "),
    ],
)
def test_the_log_names_what_the_loss_has_and_that_on_dev_has_not(
    train: Train,
    capfd: pytest.CaptureFixture[str],
    settings: tuple[str, ...],
    named: str,
) -> None:
    train(*settings, "training.max_steps=2", quiet=False)
    (line,) = re.findall(r"step 2/2: .*  (loss .*)tokens/s", capfd.readouterr().err)
    assert re.match(rf"loss [\d.]+{re.escape(named)}[\d,]+ $", line)


@pytest.mark.parametrize(
    ("schedule", "rises"),
    [
        ("cosine", True),
        ("noam", False),
        pytest.param("wsd", True, marks=pytest.mark.long),
        pytest.param("constant", False, marks=pytest.mark.long),
    ],
)
def test_a_longer_run_says_where_its_learning_rate_rises(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    schedule: str,
    rises: bool,
) -> None:
    def interrupt() -> None:
        raise Interrupted("killed")

    settings = (f"training.schedule={schedule}", "training.eval_every=99")
    with monkeypatch.context() as patch:
        # in the warm-up, where it rises in any case
        at_step(patch, 5, interrupt)
        with pytest.raises(Interrupted):
            train(*settings)
    train(*settings, quiet=False)
    assert "from the checkpoint of step 4\n" in (err := capfd.readouterr().err)
    assert "rises" not in err
    train(*settings, "training.max_steps=24", quiet=False)
    said = [line for line in capfd.readouterr().err.split("\n") if "rises" in line]
    assert len(said) == rises
    if rises:
        numbers = re.findall(r"from (\S+) to (\S+): the loss may rise", said[0])
        before, after = (float(number) for number in numbers[0])
        assert before < 0.002
        assert after > 0.005
        assert "in a run of 24 steps the learning rate rises here" in said[0]


def test_patience_may_grow(
    train: Train, tmp_path: Path, write_pairs: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        trainable_translation.DevEvaluation,
        "__call__",
        lambda self, step: {"dev_bleu": -float(step)},
    )
    text, settings = (
        write_pairs(210),
        ("training.eval_every=2", "training.max_steps=10"),
    )
    verdict = train(*settings, "training.patience=2", text=text)
    assert (verdict.outcome, verdict.step, verdict.best_step) == ("stopped early", 6, 2)
    assert train(*settings, "training.patience=2", text=text).step == 6
    assert train(*settings, "training.patience=3", text=text).step == 8
    assert read_verdict(tmp_path / "out")["reason"] == "stopped early after 8 steps"


@pytest.mark.parametrize(
    ("setting", "difference"),
    [
        ("training.learning_rate=0.02", "training.learning_rate was 0.01, is 0.02"),
        ("model.d_model=32", "model.d_model was 16, is 32"),
        ("data.tgt_lang=fr", "data.tgt_lang was de, is fr"),
        *(
            pytest.param(
                f"{key}={new}", f"{key} was {old}, is {new}", marks=pytest.mark.long
            )
            for key, old, new in (
                ("training.seed", 1, 5),
                ("tokenizer.tgt.kind", "word", "bpe"),
                ("batches.tokens_per_batch", 400, 500),
            )
        ),
    ],
)
def test_a_changed_key_is_refused_with_the_difference(
    train: Train, tmp_path: Path, setting: str, difference: str
) -> None:
    """C2: nothing in the folder is touched."""
    train()
    before = tree(tmp_path / "out")
    with pytest.raises(UsageError, match="holds a run that differs") as caught:
        train(setting)
    assert difference in str(caught.value)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path / "out") == before


def test_another_run_that_saved_nothing_is_named_where_this_one_takes_its_place(
    train: Train, tmp_path: Path
) -> None:
    train()
    kept = json.loads((tmp_path / "out" / "run" / "recipe.json").read_text("utf-8"))
    folder = RunFolder(tmp_path / "begun")
    origin = {key: kept[key] for key in ("texts", "from")}
    notes: list[str] = []
    recipe = build_recipe(kept["recipe"])
    assert isinstance(recipe, TranslationRecipe)
    for value in (3, 4, 4):
        one = with_values(recipe, {"training.seed": value})
        begin_or_resume(folder, one, origin, {}, (), False, notes.append)
    (note,) = notes
    assert "had saved no step and differs (training.seed was 3, is 4)" in note


def test_many_differences_are_shown_in_part(train: Train, tmp_path: Path) -> None:
    train()
    changed = (
        "dropout=0.3",
        "d_ff=20",
        "num_heads=1",
        "bias=false",
        "norm_first=false",
        "activation=gelu",
    )
    settings = [f"model.{c}" for c in changed] + [
        f"training.{c}" for c in ("seed=3", "betas=[0.5,0.5]", "eps=0.1")
    ]
    with pytest.raises(
        UsageError, match=r"; and 1 more; continue with the same"
    ) as caught:
        train(*settings)
    assert str(caught.value).count(" was ") == 8


def test_the_card_counts_layers_and_heads(train: Train, tmp_path: Path) -> None:
    for heads, words in ((1, "1 head"), (2, "2 heads")):
        out = tmp_path / str(heads)
        train(f"model.num_heads={heads}", out=out)
        card = (out / "README.md").read_text("utf-8")
        assert re.search(rf"A Transformer of 1\+1 layers \(width \d+, {words}\)", card)


def test_a_folder_of_another_task_is_refused_in_few_words(
    train: Train, tmp_path: Path
) -> None:
    train()
    table = tmp_path / "rows.csv"
    table.write_text(
        "text,label\n" + "".join(f"a text {i},{i % 2}\n" for i in range(20)), "utf-8"
    )
    wanted = f"{tmp_path / 'out'} holds a run of translation, and this is classification; give another --output"
    with pytest.raises(UsageError) as caught:
        weft.train(recipe="classify-fast", train=str(table), out=str(tmp_path / "out"))
    assert str(caught.value) == wanted


def test_a_folder_that_cannot_be_made_is_one_line(train: Train, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="cannot be written"):
        train(out=tmp_path / "file" / "x")


def test_changed_data_is_refused(
    train: Train, tmp_path: Path, write_pairs: Write
) -> None:
    text = Path(write_pairs(60))
    train(text=str(text))
    before = tree(tmp_path / "out")
    text.write_bytes(text.read_bytes().replace(b"Hund", b"Hase", 1))
    with pytest.raises(
        UsageError,
        match=r"the train text was 60 pairs \(sha256 .{8}\), is 60 pairs \(sha256",
    ):
        train(text=str(text))
    assert tree(tmp_path / "out") == before


def test_the_same_text_under_another_name_is_the_same_run(
    train: Train, tmp_path: Path, write_pairs: Write
) -> None:
    train(text=write_pairs(60))
    other = shutil.copy(write_pairs(60), tmp_path / "renamed.en-de.tsv")
    assert train(text=str(other)).step == 12


@pytest.mark.parametrize("content", ["file", "folder", "hidden", "run"])
def test_a_foreign_folder_is_refused_and_untouched(
    train: Train, tmp_path: Path, content: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    path = {
        "file": "thesis.txt",
        "folder": "photos/a.jpg",
        "hidden": ".git/config",
        "run": "run/notes.txt",
    }[content]
    (out / path).parent.mkdir(exist_ok=True)
    (out / path).write_text("precious")
    before = tree(out)
    with pytest.raises(UsageError, match="is not empty and holds no run") as caught:
        train()
    assert caught.value.exit_code == 2
    assert tree(out) == before


def test_a_file_as_the_folder_is_refused(train: Train, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with pytest.raises(UsageError, match="is a file"):
        train()
    assert (tmp_path / "out").read_text() == "precious"


def test_killed_before_its_first_file_a_run_can_begin_again(
    train: Train, tmp_path: Path
) -> None:
    (tmp_path / "out" / "run").mkdir(parents=True)
    (tmp_path / "out" / "run" / f"{durable.TEMPORARY}abc").write_text("half a recipe")
    assert train().outcome == "done"
    assert not list((tmp_path / "out" / "run").glob(f"{durable.TEMPORARY}*"))


def test_wrong_data_leaves_no_folder(train: Train, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        train(text=str(tmp_path / "none.tsv"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content", of_which(["[]", "{}", "{", '{"recipe": {}}'], "{", '{"recipe": {}}')
)
def test_a_damaged_record_of_the_run_is_named(
    train: Train, tmp_path: Path, content: str
) -> None:
    train()
    RunFolder(tmp_path / "out").recipe.write_text(content)
    with pytest.raises(FolderError, match=r"recipe\.json"):
        train("training.max_steps=13")


@pytest.mark.parametrize("stage", ["scoring", "judging", "publishing"])
def test_ctrl_c_behind_the_last_step_says_that_none_is_lost(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    stage: str,
) -> None:
    enter = RunRecord.enter

    def entering(record: RunRecord, entered: str) -> None:
        enter(record, entered)
        if entered == stage:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunRecord, "enter", entering)
        with pytest.raises(KeyboardInterrupt):
            train(quiet=False)
    said = " ".join(capfd.readouterr().err.split())
    finish = f'to use what is saved: weft.finish("{tmp_path / "out"}")'
    assert (
        f"left while {stage}; all 12 steps are saved; the same call continues it; {finish}"
        in said
    )
    assert train().step == 12


def test_a_damaged_best_checkpoint_is_not_published(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: killed before it was published, then a bit of the weights flips."""
    with monkeypatch.context() as patch:
        patch.setattr(
            run_train, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            train()
    path = RunFolder(tmp_path / "out").checkpoints / "step-12" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    verdict = train()
    assert any(
        "checkpoint set aside as damaged-step-12" in note for note in verdict.notes
    )
    train(out=tmp_path / "whole")
    ours, whole = (
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("out", "whole")
    )
    assert ours == whole


# Starting from an own model


def test_from_keeps_weights_shape_and_tokenizers_and_says_so(
    tmp_path: Path, write_pairs: Write, tiny_folder: Path
) -> None:
    verdict = weft.train(
        out=tmp_path / "out",
        train=write_pairs(40),
        start_from=tiny_folder,
        settings=SHORT,
        quiet=True,
    )
    assert any(
        f"starts from {tiny_folder}" in n and "tokenizers are kept" in n
        for n in verdict.notes
    )
    for name in ("tokenizer.src.json", "tokenizer.tgt.json"):
        assert (tmp_path / "out" / name).read_bytes() == (
            tiny_folder / name
        ).read_bytes()
    ours, theirs = (
        load_file(folder / "model.safetensors")
        for folder in (tmp_path / "out", tiny_folder)
    )
    assert ours.keys() == theirs.keys()
    moved = max(float((ours[name] - theirs[name]).abs().max()) for name in ours)
    assert 0 < moved < 0.01  # one step away, not drawn anew
    assert durable.read_json(RunFolder(tmp_path / "out").recipe)["from"] is not None


def test_a_few_corrections_alone_are_doubted_and_beside_the_old_text_are_not(
    tmp_path: Path, write_pairs: Write, tiny_folder: Path
) -> None:
    """The corrections have a header, as a server writes it."""
    corrections = str(tmp_path / "corrections.en-de.tsv")
    rows = [f"A {number} walks.\tEin {number} geht.\n" for number in range(30)]
    Path(corrections).write_text("".join(["en\tde\n", *rows]))
    for train, is_doubted in (
        (corrections, True),
        ([write_pairs(216), corrections], False),
    ):
        verdict = weft.train(
            out=tmp_path / f"{is_doubted}", train=train, start_from=tiny_folder,
            settings=SHORT, quiet=True,
        )  # fmt: skip
        doubts = [note for note in verdict.notes if "make a model forget" in note]
        assert [note.split(" ")[1] for note in doubts] == ["pairs"] * is_doubted


def test_what_the_model_to_start_from_was_trained_on_is_no_honest_test(
    tmp_path: Path, write_pairs: Write, tiny_folder: Path
) -> None:
    """Its weights have seen those sentences, though this run's own training text has not."""
    pairs = [
        line.split("\t")
        for line in Path(write_pairs(216)).read_text("utf-8").split("\n")[:-1]
    ]
    parts = {"train": pairs[:40], "test": pairs[40:]}
    for name, rows in parts.items():
        (tmp_path / f"{name}.en-de.tsv").write_text(
            "".join(f"{a}\t{b}\n" for a, b in rows)
        )
    files = {name: str(tmp_path / f"{name}.en-de.tsv") for name in parts}
    verdict = weft.train(
        out=tmp_path / "out",
        start_from=tiny_folder,
        settings=SHORT,
        quiet=True,
        **files,
    )
    (note,) = [note for note in verdict.notes if "were trained on by" in note]
    seen = len(
        TextHashes.load(RunFolder(tiny_folder).train_hashes).shared(parts["test"])
    )
    assert 0 < seen < 176
    assert note.startswith(
        f"{seen} of the 176 pairs of test were trained on by {tiny_folder}"
    )
    assert f"contaminated: {seen} of 176" in verdict.test["contaminated"]


def test_other_text_for_a_finished_run_is_never_said_to_be_learned(
    tmp_path: Path, write_pairs: Write
) -> None:
    weft.train(out=tmp_path / "out", train=write_pairs(40), settings=SHORT, quiet=True)
    with pytest.raises(
        UsageError, match=r"is finished, and the new text was not trained on; .*--fresh"
    ):
        weft.train(
            out=tmp_path / "out",
            train=write_pairs(60),
            settings=SHORT,
            quiet=True,
            allow_data_change=True,
        )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.d_model=48", "--from keeps the model"),
        ("tokenizer.src.kind=bpe", "--from keeps the tokenizer"),
        ("data.tgt_lang=fr", "translates en to de, the text is en to fr"),
    ],
)
def test_from_refuses_another_shape(
    tmp_path: Path, write_pairs: Write, tiny_folder: Path, setting: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        weft.train(
            out=tmp_path / "out",
            train=write_pairs(40),
            start_from=tiny_folder,
            settings=[setting],
            quiet=True,
        )
    assert not (tmp_path / "out").exists()


def test_from_another_model_is_another_run(
    tmp_path: Path, write_pairs: Write, tiny_folder: Path
) -> None:
    task = TrainableTranslation.load(tiny_folder, Machine("cpu", "float32", 1, ""))
    with torch.no_grad():
        next(task.model.parameters()).add_(0.5)
    task.save(tmp_path / "other", {}, "")
    request = {
        "out": tmp_path / "out",
        "train": write_pairs(40),
        "settings": SHORT,
        "quiet": True,
    }
    weft.train(start_from=tiny_folder, **request)
    before = rf"the model to start from was {tiny_folder} \(weights sha256 [0-9a-f]{{8}}\), is "
    with pytest.raises(
        UsageError,
        match=rf"{before}{tmp_path / 'other'} \(weights sha256 [0-9a-f]{{8}}\)",
    ):
        weft.train(start_from=tmp_path / "other", **request)


# With other threads


def test_another_number_of_threads_goes_on_with_a_note(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(Log, "note", lambda self, text: notes.append(text))
    files = RunFolder(tmp_path / "out")
    train()
    train("training.max_steps=13", "training.threads=2")
    assert (
        "note: resumed with 2 threads, started with 1 thread: the last bits of its sums may differ"
        in notes
    )
    assert durable.read_json(files.machine)["threads"] == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notes.clear()
    train("training.max_steps=14", "training.threads=none")
    assert (
        "note: resumed with 1 thread, started with 2 threads: the last bits of its sums may differ"
        in notes
    )
    monkeypatch.delenv("OMP_NUM_THREADS")
    durable.write_json(
        files.machine, {**durable.read_json(files.machine), "threads": 64}
    )
    monkeypatch.setattr(preparing, "usable_cores", lambda: 1)
    train("training.max_steps=15", "training.threads=none")
    assert durable.read_json(files.machine)["threads"] == 1


@pytest.mark.parametrize(
    ("step", "said"), [(1, "done after 1 step"), (1200, "done after 1,200 steps")]
)
def test_steps_are_counted_as_people_do(step: int, said: str) -> None:
    verdict = Verdict(step=step)
    RunRecord(None, verdict).end("done")
    assert verdict.reason == said


def test_processes_of_a_run_share_the_cores_where_all_read_the_text(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(crew.VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {*range(8)})
    for local_size, number in ((1, 8), (3, 2), (16, 1)):
        world = World(local_size=local_size)
        monkeypatch.setattr(
            run_train, "joined_world", lambda _, w=world: nullcontext(w)
        )
        numbers: list[int] = []

        def read(request: Any, world: Any, numbers: list[int] = numbers) -> Any:
            numbers.append(crew.num_processes())
            raise Interrupted("stopped")

        monkeypatch.setattr(run_train, "read_material", read)
        with pytest.raises(Interrupted):
            train()
        # the first alone prepares, for all
        assert [*numbers, crew.num_processes()] == [number, 8]
