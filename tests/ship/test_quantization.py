"""weft quantize: an int8 folder is small, is read back as it was, and is written only with little
lost.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import weft
from weft.data.overlap import TextHashes
from weft.decoding.decoder import StepInput
from weft.engine import bindings
from weft.engine.packed import quantized
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.layout import SCALES, SHORTLIST, WEIGHTS
from weft.kernels import native
from weft.kernels.machine import Machine
from weft.ship import quantization
from weft.ship.quantization import quantize
from weft.tasks.trainable_translation import TrainableTranslation

PLAIN = Machine("cpu", "float32", 1, "")


pytestmark = pytest.mark.usefixtures("need_engine")


@pytest.fixture(scope="module")
def pairs(write_pairs: Callable[[int], str]) -> str:
    return write_pairs(210)


@pytest.fixture(scope="module")
def small(
    tiny_folder: Path, pairs: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tiny model in int8."""
    out = tmp_path_factory.mktemp("int8") / "model"
    # so small a model is easily disturbed
    quantize(tiny_folder, [pairs], out, max_bleu_loss=10)
    return out


def test_it_knows_what_it_was_trained_on(tiny_folder: Path, small: Path) -> None:
    name = Path("run", "train-hashes.npy")
    assert (small / name).read_bytes() == (tiny_folder / name).read_bytes()


def test_matrices_of_products_are_int8_and_the_rest_is_as_it_was(
    tiny_folder: Path, small: Path
) -> None:
    before, after = load_file(tiny_folder / WEIGHTS), load_file(small / WEIGHTS)
    int8 = {name for name, tensor in after.items() if tensor.dtype == torch.int8}
    assert (
        len(int8) == 6 + 4 + 6 + 1
    )  # the encoder's layer, the decoder's two attentions, its feed-forward, output
    assert set(after) == set(before) | {name + SCALES for name in int8}
    for name in set(before) - int8:
        assert torch.equal(before[name], after[name]), name
    for name in int8:
        error = (after[name] * after[name + SCALES][:, None] - before[name]).abs()
        assert (error <= 0.51 * after[name + SCALES][:, None]).all(), name
    assert (small / WEIGHTS).stat().st_size < 0.7 * (
        tiny_folder / WEIGHTS
    ).stat().st_size


def test_loaded_it_has_the_very_integers_of_the_file(small: Path) -> None:
    task, stored = TrainableTranslation.load(small, PLAIN), load_file(small / WEIGHTS)
    parameters = dict(task.model.named_parameters())
    for name in (name for name, tensor in stored.items() if tensor.dtype == torch.int8):
        parts = quantized(parameters[name].detach().numpy())
        again, scales = map(torch.from_numpy, parts)
        assert torch.equal(again, stored[name])
        assert torch.equal(scales, stored[name + SCALES])
    engine = task.predictor().engine
    assert isinstance(engine, bindings.Engine)
    assert engine.kind == "int8"
    low = weft.load(small, precision="bfloat16").engine
    assert isinstance(low, bindings.Engine)
    assert low.kind == "bfloat16"


def test_the_report_is_what_was_measured(
    tiny_folder: Path, small: Path, pairs: str
) -> None:
    report = json.loads((small / "parity.json").read_text())
    folders = {"": tiny_folder, "_int8": small}
    text = TrainableTranslation.load(small, PLAIN).read([pairs])
    texts = {}
    for suffix, folder in folders.items():
        task = TrainableTranslation.load(folder, PLAIN)
        assert report[f"bleu{suffix}"] == task.evaluate(text).bleu
        texts[suffix] = [p.text for p in task.predictor().translate(text.src)]
    assert report["same_translations"] == np.mean(
        [a == b for a, b in zip(*texts.values(), strict=True)]
    )
    assert report["sentences"] == 210
    assert report["bytes_int8"] < 0.7 * report["bytes"]
    card, origin = (
        (small / "README.md").read_text(),
        (tiny_folder / "model.safetensors").read_bytes(),
    )
    assert (
        f"Made from the model model (its weights' sha256 {sha256(origin).hexdigest()[:16]})"
        in card
    )


def test_the_report_says_what_was_trained_on_and_what_was_left_out(
    tiny_folder: Path, tmp_path: Path
) -> None:
    folder, train = tmp_path / "model", tmp_path / "train"
    shutil.copytree(tiny_folder, folder)
    for lang, lines in {
        "en": ["cat sees dog.", "cat.", ""],
        "de": ["die katze sieht den hund.", "katze.", "x"],
    }.items():
        (tmp_path / f"train.{lang}").write_text(
            "".join(f"{line}\n" for line in lines), "utf-8"
        )
    pairs = f"{train}.en,{train}.de"
    (folder / "run" / "train-hashes.npy").unlink(missing_ok=True)
    found = quantize(folder, [pairs], tmp_path / "unknown", max_bleu_loss=100)
    assert (
        found.notes[-1]
        == "not checked for overlap with training: there is no run/train-hashes.npy beside the model"
    )
    assert found.notes[-2].startswith("left out: 1 pair (")
    assert (
        found.notes[0]
        == "2 pairs prove nothing: to show that int8 translates as well takes 100 or more"
    )
    (folder / "run").mkdir(exist_ok=True)
    TextHashes.of([("cat.", "katze.")]).save(folder / "run" / "train-hashes.npy")
    found = quantize(folder, [pairs], tmp_path / "known", max_bleu_loss=100)
    assert found.notes[0].startswith(
        "contaminated: 1 of 2 pairs (50.0 %) are in the training text as well (first: "
    )
    named = found.notes[0].replace(f"{tmp_path}/", "")
    assert "train.en:2" in named
    assert f"note: {named}" in (tmp_path / "known" / "README.md").read_text("utf-8")
    report = json.loads((tmp_path / "known" / "parity.json").read_text("utf-8"))
    assert report["notes"] == [named, *found.notes[1:]]


def test_the_card_does_not_say_what_would_help_in_training(
    tiny_folder: Path, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    card = folder / "README.md"
    helps = "- what would help: stopped at step 5 of 9; the same command continues the run\n"
    before, heading, after = card.read_text("utf-8").partition("\n## Text\n")
    card.write_text(f"{before}{helps}{heading}{after}", "utf-8")
    out = tmp_path / "out"
    quantize(folder, [write_pairs(3)], out, max_bleu_loss=100)
    written = (out / "README.md").read_text("utf-8")
    assert written.startswith(f"{before}{heading}")
    assert "continues the run" not in written


def test_the_card_has_no_score_of_few_pairs_and_nothing_of_what_is_not_there(
    tiny_folder: Path, small: Path, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    out = tmp_path / "few"
    found = quantize(tiny_folder, [write_pairs(3)], out, max_bleu_loss=100)
    cards = [
        (folder / "README.md").read_text("utf-8").split("## int8")
        for folder in (out, small)
    ]
    assert ["BLEU" in int8 for _, int8 in cards] == [False, True]
    assert "3 pairs prove nothing" in cards[0][1]
    assert "3 pairs prove nothing" in "".join(found.lines())
    assert "checkpoints and the training text" in (tiny_folder / "README.md").read_text(
        "utf-8"
    )
    assert not any(
        "checkpoints and the training text" in before + int8 for before, int8 in cards
    )
    held = {str(path.relative_to(small)) for path in small.rglob("*") if path.is_file()}
    assert {name for name in held if name.startswith("run")} == {"run/train-hashes.npy"}


def test_the_reports_tokens_are_those_of_pytorchs_model(
    tiny_folder: Path, small: Path, pairs: str
) -> None:
    """Teacher-forced on the original's own translations, by the engine's int8 against the model in
    float32.
    """
    report = json.loads((small / "parity.json").read_text())
    exact, int8 = (
        TrainableTranslation.load(folder, PLAIN) for folder in (tiny_folder, small)
    )
    engine = int8.predictor().engine
    assert isinstance(engine, bindings.Engine)
    same, errors, largest = [], [], 0.0
    for row, found in exact.predictor().hypotheses(exact.read([pairs]).src).items():
        tokens = [*found.ids, *[3] * found.finished]
        with torch.inference_mode():
            ours = (
                exact.model(torch.tensor([row]), torch.tensor([[2, *tokens[:-1]]]))[0]
                .log_softmax(-1)
                .numpy()
            )
        session, count = engine.session(1, 1), len(tokens)
        session.read([0], [row])
        zeros, inputs = np.zeros(count, np.int64), np.array([2, *tokens[:-1]], np.int32)
        table = np.zeros((count, count), np.int32)
        _, _, theirs = session.step(
            StepInput(zeros, zeros, np.arange(count), inputs, table),
            1,
            all_log_probs=True,
        )
        assert theirs is not None
        same += (ours.argmax(1) == theirs.argmax(1)).tolist()
        errors += np.abs(ours - theirs)[np.arange(count), tokens].tolist()
        largest = max(largest, float(np.abs(ours - theirs).max()))
    assert report["tokens"] == len(same)
    assert report["token_agreement"] == pytest.approx(np.mean(same), abs=2 / len(same))
    assert report["mean_error"] == pytest.approx(np.mean(errors), rel=0.01)
    assert report["largest_error"] == pytest.approx(largest, rel=0.01)
    assert largest > 0


@pytest.fixture(scope="module")
def listed(
    tiny_folder: Path, pairs: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tiny model in int8, with a shortlist learned from the very pairs that it is tried on."""
    out = tmp_path_factory.mktemp("listed") / "model"
    quantize(tiny_folder, [pairs], out, max_bleu_loss=10, shortlist=[pairs])
    return out


def test_a_shortlist_is_on_where_it_pays_and_the_report_says_so(
    small: Path, listed: Path, pairs: str
) -> None:
    report = json.loads((listed / "parity.json").read_text())["shortlist"]
    task, plain = (
        TrainableTranslation.load(listed, PLAIN),
        TrainableTranslation.load(small, PLAIN),
    )
    text = task.read([pairs])
    assert report["bleu"] == task.evaluate(text, shortlist=True).bleu
    assert plain.evaluate(text) == task.evaluate(text, shortlist=False)
    assert report["times_as_fast"] > 0
    assert report["is_used"] is (
        report["bleu"] >= plain.evaluate(text).bleu and report["times_as_fast"] >= 1.1
    )
    assert task.config.shortlist == ("on" if report["is_used"] else "off")
    assert task.evaluate(text) == task.evaluate(text, shortlist=report["is_used"])
    assert 1 < report["size"] < report["vocab_size"] == task.config.tgt_vocab_size
    translated = (
        task.predictor().translate(text.src, shortlist=uses_shortlist)
        for uses_shortlist in (False, True)
    )
    assert report["same_translations"] == np.mean(
        [a.text == b.text for a, b in zip(*translated, strict=True)]
    )


def test_few_pairs_switch_no_shortlist_on(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quantization, "_times_as_fast", lambda *_: 9.0)
    for count in (199, 200):
        out, pairs = tmp_path / str(count), write_pairs(count)
        found = quantize(
            tiny_folder, [pairs], out, max_bleu_loss=100, shortlist=[pairs]
        )
        assert found.shortlist is not None
        is_worse = found.shortlist.bleu < found.bleu_int8
        assert found.shortlist.is_used is (count == 200 and not is_worse)
        assert any(line.startswith("the shortlist is ") for line in found.lines())


def test_nothing_but_what_the_shortlist_has_is_written(
    listed: Path, pairs: str
) -> None:
    task = TrainableTranslation.load(listed, PLAIN)
    assert task.shortlist is not None
    few = replace(
        task.shortlist, always=np.array([3], np.int32), ends=0 * task.shortlist.ends
    )
    model = replace(task, shortlist=few).predictor()
    text = task.read([pairs]).src[0]
    assert model.translate(text, shortlist=True)[0].text == ""
    assert model.translate(text, shortlist=True, prefix="die")[0].text == "die"
    assert model.translate(text, shortlist=False)[0].text != ""


def test_a_shortlist_holds_in_an_ensemble_as_well(listed: Path, pairs: str) -> None:
    model, again = (
        TrainableTranslation.load(listed, PLAIN).predictor() for _ in range(2)
    )
    texts, together = (
        TrainableTranslation.load(listed, PLAIN).read([pairs]).src,
        model.ensemble(again),
    )
    for uses_shortlist in (True, False):
        alone = [
            found.text for found in model.translate(texts, shortlist=uses_shortlist)
        ]
        assert [
            found.text for found in together.translate(texts, shortlist=uses_shortlist)
        ] == alone


def test_without_a_shortlist_none_can_be_asked_for(small: Path) -> None:
    with pytest.raises(
        UsageError,
        match="this model has no shortlist; weft quantize --shortlist learns one",
    ):
        weft.load(small).translate("cat sees dog.", shortlist=True)


@pytest.mark.parametrize("fault", ["short", "beyond", "falling", "type", "absent"])
def test_a_shortlist_of_another_model_is_refused(
    listed: Path, tmp_path: Path, fault: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(listed, folder)
    tensors = load_file(folder / SHORTLIST)
    changes = {
        "short": {"ends": tensors["ends"][:-1]},
        "beyond": {"targets": tensors["targets"] + 10_000},
        "falling": {"ends": tensors["ends"].flip(0)},
        "type": {"always": tensors["always"].float()},
    }
    if fault == "absent":
        del tensors["always"]
    save_file(
        {
            name: t.contiguous()
            for name, t in {**tensors, **changes.get(fault, {})}.items()
        },
        folder / SHORTLIST,
    )
    config = json.loads((folder / "manifest.json").read_text())
    durable.write_manifest(folder, list(config["files"]), {})
    with pytest.raises(
        FolderError, match=r"shortlist\.safetensors: not (a sound|the) shortlist"
    ):
        TrainableTranslation.load(folder, PLAIN)


def test_where_too_much_is_lost_nothing_is_written(
    tiny_folder: Path, pairs: str, tmp_path: Path
) -> None:
    with pytest.raises(
        FolderError, match=r"int8 loses -?\d+\.\d\d BLEU here .*; nothing was written"
    ):
        quantize(tiny_folder, [pairs], tmp_path / "out", max_bleu_loss=-100)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_quantized_is_refused(
    tiny_folder: Path,
    small: Path,
    pairs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="is in int8 already"):
        quantize(small, [pairs], tmp_path / "out")
    with pytest.raises(
        UsageError, match="--max-bleu-loss nan: it must be a finite number"
    ):
        quantize(tiny_folder, [pairs], tmp_path / "out", max_bleu_loss=float("nan"))
    with pytest.raises(UsageError, match="holds something already; give a new folder"):
        quantize(tiny_folder, [pairs], small)

    def refuse(name: str) -> None:
        raise native.UnavailableError("there is no C++ compiler; install one")

    monkeypatch.setattr(native, "library", refuse)
    bindings.library.cache_clear()
    try:
        with pytest.raises(
            UsageError,
            match=r"int8 needs the native engine: there is no C\+\+ compiler; install",
        ):
            quantize(tiny_folder, [pairs], tmp_path / "out")
        # An int8 folder is still of use: its weights, in float32 products.
        assert weft.load(small).engine is None
        assert weft.load(small).translate("cat sees dog.")[0].text
    finally:
        bindings.library.cache_clear()
    assert not (tmp_path / "out").exists()


def test_a_damaged_int8_folder_is_refused(small: Path, tmp_path: Path) -> None:
    whole = load_file(small / WEIGHTS)
    scales = next(name for name in whole if name.endswith(SCALES))
    matrix = scales.removesuffix(SCALES)
    damages: dict[str, dict[str, torch.Tensor]] = {
        f"lacks '{scales}'": {
            name: tensor for name, tensor in whole.items() if name != scales
        },
        f"{matrix} is F32": {**whole, matrix: whole[matrix].float()},
        f"{scales} is F32 \\(1,\\), expected F32": {**whole, scales: whole[scales][:1]},
        f"{scales} holds NaN": {**whole, scales: whole[scales] * float("nan")},
    }
    for number, (message, tensors) in enumerate(damages.items()):
        copy = Path(shutil.copytree(small, tmp_path / str(number)))
        save_file(tensors, copy / WEIGHTS)
        facts = {"quantized_from": "x"}
        durable.write_manifest(copy, list(durable.read_manifest(small)["files"]), facts)
        with pytest.raises(FolderError, match=message):
            weft.load(copy)


def test_the_engine_takes_int8_matrices_as_they_are_stored(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is quantized anew at every start, and nothing of it is made float32 first."""
    text = "the cat sees the dog."
    expected = weft.load(small).translate(text)

    def refuse(*_: object) -> None:
        raise AssertionError("quantized again")

    monkeypatch.setattr("weft.engine.packed.quantized", refuse)
    model = weft.load(small)
    assert model.engine is not None
    assert model.translate(text) == expected


def test_references_are_compared_in_the_form_that_the_model_writes(
    tiny_folder: Path, small: Path, decomposed: Callable[[int], str], tmp_path: Path
) -> None:
    report = json.loads((small / "parity.json").read_text())
    found = quantize(tiny_folder, [decomposed(210)], tmp_path / "small", 100)
    assert (found.bleu, found.bleu_int8) == (report["bleu"], report["bleu_int8"])
    assert "were brought to NFC, as the translations are written" in found.notes[-1]
