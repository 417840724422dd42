"""A run that was stopped becomes a model of what it has saved, and still goes on as if nothing had
happened.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import FolderError, Interrupted, UsageError
from weft.folder.durable import held
from weft.folder.layout import newer_state
from weft.folder.model_folder import RunFolder
from weft.training.log import Log
from weft.training.trainer import Trainer

Train = Callable[..., Any]
Write = Callable[[int], str]
LENGTH = ("training.max_steps=12", "training.save_every=4", "training.eval_every=4")


@contextmanager
def interrupted_before(step: int) -> Iterator[None]:
    """Let Ctrl-C be pressed before a step (0: never)."""
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step + 1 == step:
            os.kill(os.getpid(), signal.SIGINT)
        take_step(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_take_step", taking)
        yield


@pytest.fixture
def train(tmp_path: Path, tiny_settings: tuple[str, ...], write_pairs: Write) -> Train:
    """Train on a text of the test's own, beside the folder; `stop` interrupts before that step."""
    text = tmp_path / "pairs.en-de.tsv"
    shutil.copy(write_pairs(216), text)

    def call(
        *settings: str, out: Path = tmp_path / "out", stop: int = 0, **request: Any
    ) -> Any:
        request = {"train": str(text), **request}
        with interrupted_before(stop):
            return weft.train(
                out=out,
                settings=(*tiny_settings, *LENGTH, *settings),
                quiet=True,
                **request,
            )

    return call


def verdict_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RunFolder(out).verdict.read_bytes())
    return found


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_a_stopped_run_is_finished_with_its_best_step_and_goes_on_to_the_same_weights(
    train: Train, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    train(out=tmp_path / "whole")
    with pytest.raises(
        Interrupted,
        match=r'the same call continues it; to use what is saved: weft\.finish\(".*out"\)',
    ):
        train(stop=10)
    with pytest.raises(
        FolderError, match=r"the same call continues it; to use what is saved"
    ):
        weft.load(out)
    before = {p.name for p in RunFolder(out).checkpoints.iterdir()}
    found = weft.finish(out, quiet=True)
    assert (found.outcome, found.exit_code, found.step) == ("finished early", 0, 10)
    assert found.reason == "finished early at step 10 of 12"
    assert found.best_step in (4, 8)
    assert weights(out) == weights(
        RunFolder(out).checkpoints / f"step-{found.best_step}"
    )
    assert found.test["num_sentences"] == 20
    assert verdict_of(out)["reason"] == found.reason
    card = (out / "README.md").read_text()
    assert f"those of step {found.best_step}, the best on dev" in card
    assert "20 sentences, references sha256" in card
    assert weft.load(out).translate("cat sees dog.")[0].score is not None
    assert {p.name for p in RunFolder(out).checkpoints.iterdir()} == before
    # again, to the same
    assert weft.finish(out, quiet=True).outcome == "finished early"
    assert train().outcome == "done"
    for name in (
        "model.safetensors",
        "run/checkpoints/step-12/optimizer.safetensors",
        "run/samples.jsonl",
    ):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), (
            name
        )
    assert verdict_of(out)["outcome"] == "done"


def test_the_model_that_another_replaces_is_named(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Interrupted):
        train(stop=6)
    first = weft.finish(tmp_path / "out")
    assert "replaces" not in capfd.readouterr().err
    assert newer_state(tmp_path / "out") == ""
    with pytest.raises(Interrupted):
        train(stop=10)
    saved = verdict_of(tmp_path / "out")["saved_step"]
    assert newer_state(tmp_path / "out") == (
        f"the model is of step {first.step}, and its run has saved step {saved}; "
        f"to use that: weft finish {tmp_path / 'out'}"
    )
    weft.finish(tmp_path / "out")
    assert newer_state(tmp_path / "out") == ""
    bleu = f"{first.test['bleu']:.2f}"
    assert first.best_step == 4
    card = (tmp_path / "out" / "README.md").read_text()
    said = f"replaces the model of step 4 (test BLEU {bleu})\n"
    assert said in capfd.readouterr().err
    # of its card, too, when the newer one is replaced
    step = card.partition("those of step ")[2].partition(",")[0]
    weft.finish(tmp_path / "out")
    assert f"replaces the model of step {step} (" in capfd.readouterr().err


def test_what_a_stopped_run_still_takes_is_what_is_left_of_it(
    train: Train,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At step 9 of 12 a third of what it took is left: 1,200 of 3,600 seconds."""
    with pytest.raises(Interrupted):
        train("training.save_every=1", "training.eval_every=9", stop=9)
    monkeypatch.setattr("weft.run.publication._take_best", lambda *given: 3600.0)
    weft.finish(tmp_path / "out")
    said = " ".join(capfd.readouterr().err.split())
    assert (
        "try next, about 20 minutes more: the same call, which continues the run"
        in said
    )


def test_a_run_that_begins_anew_takes_twice_as_long_as_it_took_and_not_so_much_more(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes all steps again, and twice as many: 7,200 seconds after 3,600."""
    said: list[str] = []
    monkeypatch.setattr(Log, "note", lambda log, text: said.append(text))
    monkeypatch.setattr("weft.run.publication._take_best", lambda *given: 3600.0)
    train("training.warmup_steps=400")
    (place,) = [i for i, line in enumerate(said) if line.startswith("try next")]
    assert said[place] == "try next, about 2 h 00 min:"
    assert "fresh=True, training.max_steps=24" in said[place + 1]


def test_a_stopped_run_is_told_that_it_was_stopped_not_to_have_more_steps(
    train: Train, tmp_path: Path
) -> None:
    """Also by diagnose, later; no loss was logged since the step before."""
    from weft.inspection.diagnosis import diagnose
    from weft.kernels.machine import Machine

    out = tmp_path / "out"
    with pytest.raises(Interrupted):
        train(
            "training.save_every=1",
            "training.eval_every=9",
            "training.warmup_steps=400",
            stop=9,
        )
    helps = weft.finish(out, quiet=True).judgement["helps"]
    assert helps[0] == "stopped at step 9 of 12; the same command continues the run"
    assert not any("max_steps" in line for line in helps)
    found = diagnose(out, [], Machine("cpu", "float32", 1, "", "torch"))
    assert (found[0].code, found[0].evidence) == (
        "too-few-steps",
        "stopped at step 9 of 12",
    )


def test_a_run_that_had_made_all_its_steps_is_done_when_it_is_finished(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to train, so that nothing is proposed that would train nothing."""
    train(out=tmp_path / "whole")

    def stop(*given: object, **named: object) -> None:
        raise Interrupted("while scoring")

    with monkeypatch.context() as patch:
        patch.setattr("weft.run.train.publish", stop)
        with pytest.raises(Interrupted):
            train()
    found = weft.finish(tmp_path / "out", quiet=True)
    assert (found.outcome, found.reason) == ("done", "done after 12 steps")
    whole = verdict_of(tmp_path / "whole")
    assert verdict_of(tmp_path / "out")["test"] == whole["test"]
    assert found.judgement == whole["judgement"]
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")
    assert not any("same command continues" in one for one in found.judgement["helps"])
    assert train().outcome == "done"


def test_without_dev_the_newest_step_is_taken(train: Train, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train("data.dev_size=0", "data.test_size=0", stop=7)
    found = weft.finish(tmp_path / "out", quiet=True)
    assert (found.step, found.best_step, found.test) == (6 + 1, 0, {})
    assert weights(tmp_path / "out") == weights(
        RunFolder(tmp_path / "out").checkpoints / "step-7"
    )


@pytest.mark.parametrize("change", ["moved", "changed"])
def test_where_the_text_is_gone_the_model_is_finished_without_scores(
    train: Train, tmp_path: Path, change: str
) -> None:
    with pytest.raises(Interrupted):
        train(stop=6)
    text = tmp_path / "pairs.en-de.tsv"
    if change == "moved":
        text.rename(tmp_path / "elsewhere.tsv")
    else:
        text.write_text(text.read_text().replace("cat", "cow"))
    found = weft.finish(tmp_path / "out", quiet=True)
    assert found.outcome == "finished early"
    assert found.test == {}
    why = {
        "moved": "pairs.en-de.tsv",
        "changed": "it has changed since training began",
    }[change]
    (note,) = (
        note
        for note in found.notes
        if note.startswith("no scores on test: the text was not found again")
    )
    assert why in note
    # without its folder
    assert (
        note.replace(f"{tmp_path}/", "") in (tmp_path / "out" / "README.md").read_text()
    )
    assert weft.load(tmp_path / "out").translate("cat sees dog.")[0].text is not None


def test_a_text_named_from_another_folder_is_found_again(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two aligned files, named from where training began."""
    pairs = [
        line.split("\t")
        for line in (tmp_path / "pairs.en-de.tsv").read_text().split("\n")[:-1]
    ]
    for name, side in (("a.en", 0), ("a.de", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Interrupted):
        train(stop=6, train="a.en,a.de")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert weft.finish(tmp_path / "out", quiet=True).test["num_sentences"] == 20


def test_a_run_that_was_refused_says_why_and_not_that_its_command_continues_it(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise UsageError("tokenizer.src: the text has no letter")

    monkeypatch.setattr("weft.run.preparing._choose_tokenizers", refuse)
    with pytest.raises(UsageError):
        train()
    for use in (weft.finish, weft.load):
        with pytest.raises(FolderError, match="the text has no letter") as error:
            use(tmp_path / "out")
        assert "continues it" not in str(error.value)


def test_what_cannot_be_finished_is_said(train: Train, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(FolderError, match="no such folder"):
        weft.finish(tmp_path / "none")
    with pytest.raises(FolderError, match="holds no run"):
        weft.finish(tmp_path)
    with pytest.raises(Interrupted):
        train(stop=6)
    with (
        held(RunFolder(out).lock, out),
        pytest.raises(UsageError, match="is in use by process"),
    ):
        weft.finish(out)
    RunFolder(out).config.unlink()
    with pytest.raises(FolderError, match=r"training\.max_steps=N"):
        weft.finish(out)
    shutil.rmtree(RunFolder(out).checkpoints)
    with pytest.raises(
        FolderError, match="no step is saved yet; the same call continues it"
    ):
        weft.finish(out)


def test_a_finished_run_is_left_as_it_is(train: Train, tmp_path: Path) -> None:
    train()
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    assert weft.finish(tmp_path / "out", quiet=True).outcome == "done"
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("recipe", ["classify-fast", "causal-lm"])
def test_models_of_other_tasks_are_finished_too(tmp_path: Path, recipe: str) -> None:
    text, out = tmp_path / "text.tsv", tmp_path / "out"
    if recipe == "causal-lm":
        text.write_text("\n\n".join(f"a document of number {i}" for i in range(60)))
        more = [
            "model.d_model=16",
            "model.d_ff=24",
            "model.num_heads=2",
            "model.num_decoder_layers=1",
        ]
    else:
        rows = (
            f"{'good' if i % 2 else 'bad'} thing {i}\tl{i % 2}\n" for i in range(60)
        )
        text.write_text("text\tlabel\n" + "".join(rows))
        more = ["model.ngram_buckets=1000"]
    settings = (
        "training.max_steps=8",
        "training.precision=float32",
        "training.threads=1",
        *more,
    )
    with interrupted_before(3), pytest.raises(Interrupted):
        weft.train(
            out=out, recipe=recipe, train=str(text), settings=settings, quiet=True
        )
    assert weft.finish(out, quiet=True).reason == "finished early at step 3 of 8"
    assert type(weft.load(out)).__name__ in ("Classifier", "LanguageModel")
