"""Several inspections for one page: sentences, two models, and a model while it learned."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import load_file

import weft
from weft.errors import UsageError
from weft.folder.layout import RunFolder
from weft.folder.snapshots import Kept, kept_weights
from weft.inspection.classification import ClassificationInspection
from weft.inspection.language import LanguageInspection
from weft.inspection.learned import LEFT_OUT, inspect_learning, spread
from weft.inspection.look import inspect_text
from weft.inspection.report import write_report
from weft.inspection.several import compare_models, inspect_again, inspect_sentences
from weft.inspection.translation import TranslationInspection
from weft.kernels.machine import Machine
from weft.tasks.choice import load_trainable
from weft.tasks.opening import load_task

PLAIN = Machine("cpu", "float32", 1, "tests are small")
TEXT = "the cat sees the dog."
RUN = (
    "training.max_steps=20",
    "training.eval_every=10",
    "training.save_every=10",
    'training.keep_checkpoints="doublings"',
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
OTHERS = {
    "language": ("task=language-modelling", "batches.window_len=24"),
    "classifier": ("task=classification", "data.dev_size=4", "data.test_size=0"),
    "recurrent": ("model.kind=recurrent", "model.d_model=16", "model.d_hidden=16"),
}


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    write_pairs: Callable[[int], str],
    tiny_settings: Any,
) -> Path:
    """A translator of 20 steps that has kept what it was."""
    out = tmp_path_factory.mktemp("run") / "model"
    settings = (*tiny_settings, *RUN, "training.learning_rate=0.03", "data.dev_size=8")
    weft.train(out=out, train=write_pairs(216), settings=settings, quiet=True)
    return out


@pytest.fixture(scope="module")
def other_of(
    tmp_path_factory: pytest.TempPathFactory, write_pairs: Callable[[int], str]
) -> Callable[[str], Path]:
    here, made = tmp_path_factory.mktemp("others"), {}
    (here / "train.txt").write_text("the red one was warm\n\n" * 40)
    rows = [f"{word} one,{word}\n" for word in ("red", "blue")] * 20
    (here / "train.csv").write_text("text,label\n" + "".join(rows))
    files = {"language": here / "train.txt", "classifier": here / "train.csv"}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = here / kind
            file = str(files[kind]) if kind in files else write_pairs(40)
            small = ("model.d_model=16", "model.d_ff=16", "model.num_heads=2")
            shape = () if kind == "recurrent" else small
            settings = (*OTHERS[kind], *shape, *RUN, "training.learning_rate=0.03")
            weft.train(out=made[kind], train=file, settings=settings, quiet=True)
        return made[kind]

    return folder


def probabilities_by_torch(folder: Path, kept: Kept, found: Any) -> list[float]:
    """Those of a translation's tokens by PyTorch, with the weights of a step."""
    model = load_trainable(folder, PLAIN).model
    arrays = load_file(kept.weights)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[name]).float())
        rows = [[found.src_ids], [[2, *found.tgt_ids[:-1]]]]
        logits = model(*(torch.tensor(row) for row in rows))[0]
    places = torch.arange(len(found.tgt_ids))
    chosen = logits.softmax(-1)[places, torch.tensor(found.tgt_ids)]
    return [float(value) for value in chosen]


def test_every_step_writes_the_finished_models_translation(run: Path) -> None:
    task = load_task(run)
    found = inspect_learning(run, task, TEXT)
    steps = found.facts["steps"]
    assert steps == [0, 1, 2, 4, 8, 10, 16, 20]
    last = found.facts["finished"]
    kept = {one.step: one for one in kept_weights(RunFolder(run))}
    final = found.inspections[last]
    assert isinstance(final, TranslationInspection)
    alone = inspect_text(task, TEXT).to_json()
    assert final.to_json() == alone
    for step, earlier in zip(steps, found.inspections, strict=True):
        assert isinstance(earlier, TranslationInspection)
        assert earlier.tgt_ids == final.tgt_ids
        assert earlier.translation == final.translation
        if earlier is not final:
            assert earlier.beam is None
            expected = probabilities_by_torch(run, kept[step], earlier)
            ours = [choice.probability for choice in earlier.chosen]
            assert ours == pytest.approx(expected, rel=1e-4)
    for one, next_one in pairwise(found.inspections):
        assert one.to_json()["attention"] != next_one.to_json()["attention"]


def test_each_step_says_what_it_would_have_written_itself(run: Path) -> None:
    task = load_task(run)
    facts = inspect_learning(run, task, TEXT).facts
    (alone,) = task.predictor().translate([TEXT], beam_size=1)
    assert facts["own"][facts["finished"]] == alone.text
    assert len(set(facts["own"])) > 1
    assert len(facts["own"]) == len(facts["steps"])
    assert [step for step, _ in facts["losses"]] == [10, 20]
    assert all(sample["step"] in (10, 20) for sample in facts["samples"])
    assert len({sample["text"] for sample in facts["samples"]}) == 2


def test_python_has_the_steps_as_a_sequence(run: Path) -> None:
    """With all that the data of a page leave out of earlier steps."""
    found = weft.inspect_checkpoints(str(run), TEXT, tokens=12)
    data = found.to_dict()
    assert found.steps == data["steps"] == [int(name) for name in found.names]
    assert (found.own, found.notes) == (data["own"], data["notes"])
    final = found[found.finished]
    alone = weft.load(run).inspect(TEXT, tokens=12)
    assert final.to_dict() == alone.to_dict()
    for one in found:
        assert one.target.ids == final.target.ids
        assert one.shares.values.sizes == final.shares.values.sizes
        assert one.looks.cross.query.sizes == final.looks.cross.query.sizes
    rows = [line.split()[0] for line in found.lines() if line[:6].strip().isdigit()]
    assert rows == found.names
    assert "while it learned" in found._repr_html_()


def test_only_the_finished_model_is_there_whole(run: Path, tmp_path: Path) -> None:
    found = inspect_learning(run, load_task(run), TEXT)
    data = found.to_json()
    assert data["format"] == "weft-inspections"
    assert data["kind"] == "checkpoints"
    whole = set(data["inspections"][data["finished"]])
    for number, each in enumerate(data["inspections"]):
        expected = whole if number == data["finished"] else whole - LEFT_OUT
        assert set(each) == expected
    assert whole & LEFT_OUT
    write_report(found, tmp_path / "learned.json")
    assert json.loads((tmp_path / "learned.json").read_bytes()) == data
    with pytest.raises(UsageError, match="one text and one model"):
        write_report(found, tmp_path / "words.txt")


def test_a_step_that_is_damaged_is_left_out_and_named(
    run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    snapshots = RunFolder(folder).snapshots
    (snapshots / "step-4.safetensors").write_bytes(b"\0" * 90)
    other = load_file(snapshots / "step-8.safetensors")
    assert other.pop(min(other)) is not None
    from safetensors.numpy import save_file

    save_file(other, snapshots / "step-8.safetensors")
    found = inspect_learning(folder, load_task(folder), TEXT)
    assert found.facts["steps"] == [0, 1, 2, 10, 16, 20]
    steps = [note for note in found.notes if "is left out" in note]
    assert len(steps) == 2
    assert "step 4 is left out" in steps[0]
    assert "not weights of the model" in steps[1]


def test_a_run_that_has_kept_nothing_says_what_would_keep_it(
    tiny_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "run")
    shutil.rmtree(RunFolder(folder).folder)
    found = inspect_learning(folder, load_task(folder), "cat sees dog.")
    assert len(found.inspections) == 1
    assert 'keep_checkpoints="doublings"' in found.notes[-1]
    assert found.facts["losses"] == found.facts["samples"] == []


@pytest.mark.parametrize("kind", OTHERS)
def test_every_kind_of_model_is_seen_while_it_learned(
    other_of: Callable[[str], Path], kind: str
) -> None:
    folder = other_of(kind)
    text = {"language": "the red one", "classifier": "red one"}.get(kind, "cat sees")
    found = inspect_learning(folder, load_task(folder), text)
    assert found.facts["steps"][:4] == [0, 1, 2, 4]
    shown = []
    for one in found.inspections:
        if isinstance(one, LanguageInspection):
            shown.append([choice.probability for choice in one.chosen])
        elif isinstance(one, ClassificationInspection):
            by_label = dict(zip(one.labels, one.probabilities, strict=True))
            shown.append([by_label[label] for label in sorted(by_label)])
        else:
            shown.append([choice.probability for choice in one.chosen])
    assert all(one != next_one for one, next_one in pairwise(shown))
    assert all(isinstance(one, str) for one in found.facts["own"])


def test_steps_are_spread_by_their_logarithms() -> None:
    def chosen(steps: list[int], finished: int, count: int) -> list[int]:
        kept = [Kept(step, Path()) for step in steps]
        return [one.step for one in spread(kept, finished, count)]

    demo = [0, 4, 8, 16, 32, 64, 128, 256, 405]
    assert chosen(demo, 450, 10) == demo
    assert chosen(demo, 450, 9) == demo[:-1]
    assert chosen(demo, 450, 8) == [0, 4, 16, 32, 64, 128, 256]
    # the finished model is that of an earlier step
    assert chosen([0, 100, 200, 300], 150, 3) == [0, 300]
    many = chosen([*range(0, 1000, 100)], 1000, 4)
    assert (len(many), many[0]) == (3, 0)
    assert chosen([7], 9, 8) == [7]
    assert chosen([], 9, 8) == []


def test_several_sentences_are_those_that_are_shown_alone(tiny_folder: Path) -> None:
    task = load_task(tiny_folder)
    texts = ["cat sees dog.", "bird likes mouse."]
    found = inspect_sentences(task, texts, beam_size=2).to_json()
    assert found["kind"] == "sentences"
    assert found["names"] == texts
    assert found["inspections"] == [
        inspect_text(task, text, beam_size=2).to_json() for text in texts
    ]
    assert found["inspections"][0]["beam"]["beam_size"] == 2


def test_two_models_are_compared_on_the_same_tokens(run: Path, tmp_path: Path) -> None:
    """The second has the weights of an early step, and writes something else."""
    early = shutil.copytree(run, tmp_path / "early")
    final = load_task(run)
    found = inspect_learning(run, final, TEXT)
    from weft.folder.snapshots import read_kept
    from weft.inspection.own_pass import with_weights

    kept = {one.step: one for one in kept_weights(RunFolder(early))}
    young = with_weights(final, read_kept(early, kept[2]))
    both = compare_models([final, young], ["old", "young"], TEXT)
    first, second, forced = both.inspections
    assert both.facts == {"pair": [0, 2]}
    assert both.names == ["old", "young", "young"]
    assert isinstance(first, TranslationInspection)
    assert isinstance(second, TranslationInspection)
    assert isinstance(forced, TranslationInspection)
    assert second.translation != first.translation == forced.translation
    assert forced.to_json() == inspect_again(young, first).to_json()
    assert forced.to_json()["target"] == found.inspections[2].to_json()["target"]
    same = compare_models([final, final], ["a", "b"], TEXT)
    assert same.facts == {"pair": [0, 1]}
    assert len(same.inspections) == 2


def test_models_of_other_vocabularies_or_tasks(
    run: Path, tiny_folder: Path, other_of: Callable[[str], Path]
) -> None:
    task, other = load_task(run), load_task(tiny_folder)
    found = compare_models([task, other], ["a", "b"], "cat sees dog.")
    assert found.facts == {"pair": None}
    assert len(found.inspections) == 2
    language = load_task(other_of("language"))
    with pytest.raises(UsageError, match=r"a holds a model for translation, b one for"):
        compare_models([task, language], ["a", "b"], "cat sees dog.")
    with pytest.raises(UsageError, match=r"^beam_size is for translation"):
        inspect_text(language, "the red one", beam_size=2)
