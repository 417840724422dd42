"""weft average: the mean of checkpoints or of models that are alike, and nothing else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import weft
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.durable import sha256_of
from weft.folder.model_folder import CARD, CONFIG, WEIGHTS, RunFolder
from weft.kernels.machine import Machine
from weft.run.card import test_score as score_on_card
from weft.ship.averaging import about_starts, average
from weft.tasks.choice import load_trainable
from weft.tasks.trainable_translation import TrainableTranslation

PLAIN = Machine("cpu", "float32", 1, "tests are small")


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    write_pairs: Callable[[int], str],
    tiny_settings: Any,
) -> Path:
    """A run that keeps four checkpoints."""
    out = tmp_path_factory.mktemp("run") / "model"
    steps = (
        "training.max_steps=40",
        "training.save_every=10",
        "training.eval_every=10",
    )
    settings = (
        *tiny_settings,
        *steps,
        "training.keep_checkpoints=4",
        "training.patience=99",
    )
    weft.train(out=out, train=write_pairs(90), settings=settings, quiet=True)
    return out


def with_new_manifest(folder: Path) -> None:
    """As if the folder had been written as it is."""
    durable.write_manifest(
        folder, list(json.loads((folder / durable.MANIFEST).read_text())["files"]), {}
    )


def rewritten(
    folder: Path, out: Path, change: Callable[[dict[str, Any]], None]
) -> Path:
    """A copy with another config.json, its manifest made anew."""
    shutil.copytree(folder, out)
    config = json.loads((out / CONFIG).read_text())
    change(config)
    durable.write_json(out / CONFIG, config)
    with_new_manifest(out)
    return out


@pytest.mark.parametrize("last", [None, 2, 3])
def test_the_mean_of_the_newest_checkpoints(
    run: Path, tmp_path: Path, last: int | None
) -> None:
    names = average([run], tmp_path / "out", last)
    steps = [40, 30, 20, 10][:last]
    assert names == [str(RunFolder(run).checkpoints / f"step-{step}") for step in steps]
    parts = [load_file(Path(name) / "model.safetensors") for name in names]
    found = load_file(tmp_path / "out" / WEIGHTS)
    assert found.keys() == parts[0].keys()
    for name, tensor in found.items():
        expected = torch.stack([part[name].double() for part in parts]).mean(0).float()
        assert torch.equal(tensor, expected)
    assert not all(torch.equal(found[name], parts[0][name]) for name in found)


def test_the_mean_is_a_model_that_says_what_it_is(run: Path, tmp_path: Path) -> None:
    average([run], tmp_path / "out")
    assert (
        TrainableTranslation.load(tmp_path / "out", PLAIN)
        .predictor()
        .translate("the cat sees the dog.")
    )
    card = (tmp_path / "out" / CARD).read_text()
    own, of_run = card.split(f"## The card of {run.name}\n")
    hashes = {
        path.name: sha256_of(path / WEIGHTS)[:16]
        for path in RunFolder(run).checkpoints.glob("step-*")
    }
    for name, digest in hashes.items():
        assert f"- {name} (its weights' sha256 {digest})\n" in own
    assert "The mean itself was not scored" in own
    assert "weft translate" in own
    for heading in ("What it is good for", "Training", "Scores on dev", "Notes"):
        assert f"## {heading}\n" not in own
        assert f"\n### {heading}\n" in of_run
        assert f"\n## {heading}\n" not in of_run
    assert "the weights are those of step" not in own
    assert score_on_card(tmp_path / "out" / CARD) == ""
    assert (
        RunFolder(tmp_path / "out").train_hashes.read_bytes()
        == RunFolder(run).train_hashes.read_bytes()
    )


def test_the_mean_of_models_that_are_alike(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    weights = load_file(run / WEIGHTS)
    save_file({name: tensor + 1 for name, tensor in weights.items()}, other / WEIGHTS)
    with_new_manifest(other)
    assert average([run, other], tmp_path / "out") == [str(run), str(other)]
    for name, tensor in load_file(tmp_path / "out" / WEIGHTS).items():
        torch.testing.assert_close(tensor, weights[name] + 0.5)
    card = (tmp_path / "out" / CARD).read_text()
    for folder in (run, other):
        digest = sha256_of(folder / WEIGHTS)[:16]
        assert f"- {folder.name} (its weights' sha256 {digest})\n" in card
    (other / CARD).unlink()
    with_new_manifest(other)
    average([other, run], tmp_path / "without")
    assert "The card of" not in (tmp_path / "without" / CARD).read_text()


def test_a_language_model_too(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(
        "\n\n".join(f"{word} is {word}" for word in "abcdefghij")
    )
    shape = (
        "model.d_model=8",
        "model.d_ff=8",
        "model.num_heads=2",
        "model.num_decoder_layers=1",
    )
    steps = (
        "training.max_steps=4",
        "training.save_every=2",
        "training.precision=float32",
        "training.threads=1",
    )
    settings = (
        "task=language-modelling",
        "data.dev_share=0.0",
        "batches.window_len=8",
        *shape,
        *steps,
    )
    weft.train(
        out=tmp_path / "run",
        train=str(tmp_path / "text.txt"),
        settings=settings,
        quiet=True,
    )
    assert len(average([tmp_path / "run"], tmp_path / "out")) == 2
    assert load_trainable(tmp_path / "out", PLAIN).predictor().score(["a is a"])


def test_what_cannot_be_averaged_is_refused(
    run: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="holds 4 checkpoints of a run"):
        average([run], out, 5)
    with pytest.raises(UsageError, match="at least 2"):
        average([run], out, 1)
    with pytest.raises(UsageError, match="of one run"):
        average([run, run], out, 2)
    (tmp_path / "text.txt").write_text("a is a\n\nb is b")
    steps = (
        "training.max_steps=1",
        "training.precision=float32",
        "training.threads=1",
        "data.dev_share=0.0",
    )
    settings = (
        "task=language-modelling",
        "model.d_model=8",
        "model.num_heads=2",
        *steps,
    )
    weft.train(
        out=tmp_path / "other",
        train=str(tmp_path / "text.txt"),
        settings=settings,
        quiet=True,
    )
    with pytest.raises(
        FolderError,
        match=r"other: holds a model for language-modelling, .* one for translation;",
    ):
        average([run, tmp_path / "other"], out)
    with pytest.raises(
        FolderError, match=r"has model\.d_model = 32, .* has 16; only like models"
    ):
        average([run, tiny_folder], out)
    longer = rewritten(
        run, tmp_path / "longer", lambda config: config.update(max_src_len=99)
    )
    with pytest.raises(FolderError, match="has max_src_len = 99, "):
        average([run, longer], out)
    int8 = rewritten(
        run, tmp_path / "int8", lambda config: config.update(weights="int8")
    )
    with pytest.raises(UsageError, match="is in int8"):
        average([int8, run], out)
    damaged = shutil.copytree(run, tmp_path / "damaged")
    path = RunFolder(damaged).checkpoints / "step-30" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FolderError, match="step-30"):
        average([damaged], out)
    assert not out.exists()
    average([run], out)
    with pytest.raises(UsageError, match="holds something already"):
        average([run], out)


@pytest.mark.parametrize(
    ("starts", "is_doubted"),
    [
        ((None, None), True),
        (("x", "x"), False),
        (("x", "y"), True),
        (("x",), False),
        (("x", None), True),
    ],
)
def test_models_from_different_starts_are_doubted(
    tmp_path: Path, starts: tuple[str | None, ...], is_doubted: bool
) -> None:
    folders = [tmp_path / f"{number}" for number in range(len(starts))]
    for folder, start in zip(folders, starts, strict=True):
        RunFolder(folder).folder.mkdir(parents=True)
        durable.write_json(RunFolder(folder).recipe, {"from": start})
    assert (about_starts(folders) is not None) == is_doubted
    RunFolder(folders[0]).recipe.unlink()
    assert about_starts(folders) is None  # not known
