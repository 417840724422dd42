"""weft train --mono: steps that are each taken once, whatever stops the command, and the best of
them.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data.split import fold
from weft.data.train_text import MonoText, TrainText
from weft.errors import DataError, FolderError, UsageError
from weft.folder import durable
from weft.folder.model_folder import CARD, WEIGHTS, RunFolder
from weft.inspection.diagnosis.run import Run
from weft.inspection.diagnosis.training import unfinished
from weft.inspection.history import read_history
from weft.kernels import torch_machine
from weft.recipes.file import load_recipe
from weft.run.course import course as courses
from weft.run.course.course import train_in_steps
from weft.run.course.material import Direction, MonoUse, gather
from weft.run.course.plan import Clock, Step
from weft.run.course.record import CourseRecord
from weft.run.course.steps import OF_ALL, OF_RUN, Learned, Steps
from weft.run.record import Verdict, read_verdict
from weft.run.request import Request
from weft.run.sizing import DROPOUT_OF_FEW, TOKENS_OF_MANY
from weft.training.log import Log
from weft.training.trainer import Trainer

STEPS = (
    "training.max_steps=40",
    "training.save_every=20",
    "training.eval_every=40",
    "training.num_samples=1",
)
NAMES = ["pairs", "reverse", "forward-again-1", "forward-made-1", "forward-1"]


class KilledError(BaseException):
    """Ends a start at once, as nothing that is caught does."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Else each run measures anew how many threads are worth while."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch_machine, "_useful_threads", lambda device: 1)
        yield


@pytest.fixture(scope="module")
def pairs(write_pairs: Callable[[int], str]) -> str:
    return write_pairs(216)


@pytest.fixture(scope="module")
def mono(pairs: str, tmp_path_factory: Any) -> Path:
    """German sentences: all of the pairs', and 30 others, the last one twice."""
    path = tmp_path_factory.mktemp("mono") / "news.txt"
    known = [line.split("\t")[1] for line in lines(Path(pairs))]
    new = [f"{line[:-1]} {number}." for number, line in enumerate(known[:30])]
    path.write_text("\n".join([*known, *new, new[-1]]) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def call(pairs: str, mono: Path, tiny_settings: tuple[str, ...]) -> Callable[..., Any]:
    """Train in steps of forty updates."""

    def start(
        out: Path,
        *settings: str,
        progress: Any = None,
        rounds: int = 1,
        denoise: bool = False,
        **asked: Any,
    ) -> Verdict:
        recipe = load_recipe(None, (*tiny_settings, *STEPS, *settings))
        asked = {"train": (TrainText(pairs),), **asked}
        request = Request(recipe, out, **asked)
        shown = {"progress": progress} if progress else {}
        use = MonoUse((MonoText("de", str(mono)),), rounds, denoise=denoise)
        return train_in_steps(request, use, Log(quiet=True), **shown)

    return start


@pytest.fixture(scope="module")
def whole(call: Callable[..., Any], tmp_path_factory: Any) -> Path:
    """A course that nothing disturbed. Tests must not change it; copy it first."""
    out: Path = tmp_path_factory.mktemp("course") / "out"
    call(out)
    return out


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def record_of(out: Path) -> dict[str, Any]:
    record: dict[str, Any] = durable.read_json(RunFolder(out).course / "record.json")
    return record


def outcomes(out: Path) -> dict[str, dict[str, Any]]:
    """What came of each step, but for its time."""
    steps = record_of(out)["steps"]
    return {
        name: {key: value for key, value in step.items() if key != "seconds"}
        for name, step in steps.items()
    }


def best_of(out: Path) -> str:
    steps = record_of(out)["steps"]
    return max(
        ("pairs", "forward-1"),
        key=lambda name: (steps[name]["bleu"], steps[name]["chrf"], name == "pairs"),
    )


def test_each_step_is_a_run_or_a_text_and_the_best_is_published(whole: Path) -> None:
    course = RunFolder(whole).course
    assert [*record_of(whole)["steps"]] == NAMES
    best = course / best_of(whole)
    for name in (durable.MANIFEST, WEIGHTS, CARD):
        assert (whole / name).read_bytes() == (best / name).read_bytes()
    durable.read_manifest(whole)
    assert RunFolder(whole).recipe.read_bytes() == RunFolder(best).recipe.read_bytes()
    assert weft.load(whole).translate("cat sees dog.")
    reverse = durable.read_json(course / "reverse" / "config.json")
    assert (reverse["src_lang"], reverse["tgt_lang"]) == ("de", "en")


def test_what_is_left_open_goes_by_the_text(
    call: Callable[..., Any], tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    keys = frozenset(setting.partition("=")[0] for setting in tiny_settings)
    own = keys - {"batches.tokens_per_batch", "model.dropout"}
    call(tmp_path / "out", "training.max_steps=2", own_keys=own)
    for step in ("pairs", "reverse", "forward-1"):
        run = RunFolder(RunFolder(tmp_path / "out").course / step)
        record = durable.read_json(run.recipe)
        chosen = record["chosen"]
        tokens = record["recipe"]["batches"]["tokens_per_batch"]
        assert tokens == chosen["batches.tokens_per_batch"] == TOKENS_OF_MANY
        assert record["recipe"]["model"]["dropout"] == DROPOUT_OF_FEW


def test_models_have_the_same_tokenizers_and_the_last_starts_from_the_first(
    whole: Path,
) -> None:
    course = RunFolder(whole).course
    files = {
        step: [*sorted((course / step).glob("tokenizer*.json"))]
        for step in ("pairs", "reverse", "forward-1")
    }
    contents = {step: [path.read_bytes() for path in files[step]] for step in files}
    assert sorted(contents["pairs"]) == sorted(contents["reverse"])
    record = durable.read_json(RunFolder(course / "forward-1").recipe)
    assert record["sources"]["from"] == str(course / "pairs")
    assert record["recipe"]["data"]["mixtures"] == [
        {"until": OF_ALL, "weights": {}},
        {"until": 1.0, "weights": {"made": 0.0}},
    ]
    vocabulary = json.loads(contents["pairs"][-1])["model"]["vocab"]
    # which only the text in one language has
    assert any("29" in piece for piece in vocabulary)


def test_one_dev_set_is_in_no_text_that_is_learned_from(
    whole: Path, pairs: str, mono: Path
) -> None:
    text = RunFolder(whole).course / "text"
    held_out = {*map(fold, lines(text / "dev.de") + lines(text / "test.de"))}
    known = {*map(fold, lines(text / "pairs-1.de"))}
    assert len(held_out) + len(known) == 216
    assert len(lines(text / "mono.de")) == 30
    assert not {*map(fold, lines(text / "mono.de"))} & (held_out | known)
    course = RunFolder(whole).course
    made = lines(course / "forward-made-1.tsv")[1:]
    made += lines(course / "forward-again-1.tsv")[1:]
    targets = {fold(line.split("\t")[1]) for line in made}
    assert targets
    assert not targets & held_out
    recipes = [
        durable.read_json(RunFolder(RunFolder(whole).course / name).recipe)
        for name in ("pairs", "forward-1")
    ]
    assert len({recipe["texts"]["dev"]["sha256"] for recipe in recipes}) == 1


def test_what_a_machine_wrote_is_marked_and_noted(whole: Path) -> None:
    folder = RunFolder(whole).course / "forward-1"
    config = durable.read_json(folder / "config.json")
    assert config["marks"]["made"] is True
    card = (folder / CARD).read_text("utf-8")
    assert "was written by a model (forward-made-1)" in card
    assert "left out: 1 line of the text in de (there before)" in card


def test_the_same_command_leaves_a_finished_course_as_it_is(
    call: Callable[..., Any],
    whole: Path,
    pairs: str,
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    before = (out / WEIGHTS).stat().st_mtime_ns
    monkeypatch.setattr("weft.run.course.steps.train", None)
    monkeypatch.setattr("weft.run.course.steps.make_pairs", None)
    assert call(out).outcome == "done"
    assert (out / WEIGHTS).stat().st_mtime_ns == before
    with pytest.raises(UsageError, match="begun with something else: the recipe;"):
        call(out, "training.seed=2")
    heavy = (TrainText(pairs, weight=2.0),)
    with pytest.raises(UsageError, match="something else: the weights and tags of"):
        call(out, train=heavy)
    with pytest.raises(UsageError, match="something else: --rounds and --denoise;"):
        call(out, rounds=2, denoise=True)


def stopping(after: int) -> Callable[[int, int], Any]:
    """A bar that kills its start when so many sentences are written."""

    @contextmanager
    def bar(count: int, done: int) -> Iterator[Callable[[], None]]:
        numbers = iter(range(done + 1, count + 1))

        def advance() -> None:
            if next(numbers) == after:
                raise KilledError

        yield advance

    return bar


def killing_update(number: int) -> Callable[[Any], None]:
    """An update of the weights that kills its start, when it is the so many-th."""
    take_step = Trainer._take_step
    left = iter(range(number))

    def taking(self: Any) -> None:
        if next(left, None) is None:
            raise KilledError
        take_step(self)

    return taking


def killed_putting(number: int) -> Callable[[Path, Path], None]:
    """A file of the published model that kills its start."""
    put = courses._put
    left = iter(range(number))

    def putting(path: Path, place: Path) -> None:
        if next(left, None) is None:
            raise KilledError
        put(path, place)

    return putting


@pytest.mark.parametrize(
    ("where", "stage"),
    [
        pytest.param(4, "step 1 of 5, pairs", marks=pytest.mark.long),
        pytest.param(70, "step 2 of 5, reverse", marks=pytest.mark.long),
        ("made", "step 3 of 5, forward-again-1"),
        pytest.param(110, "step 5 of 5, forward-1", marks=pytest.mark.long),
        pytest.param("put", "publishing", marks=pytest.mark.long),
    ],
)
def test_stopped_in_any_step_it_goes_on_to_the_same_model(
    call: Callable[..., Any],
    whole: Path,
    tmp_path: Path,
    where: Any,
    stage: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        if where == "put":
            patched.setattr(courses, "_put", killed_putting(5))
        elif where != "made":
            patched.setattr(Trainer, "_take_step", killing_update(where))
        with pytest.raises(KilledError):
            call(out, progress=stopping(100) if where == "made" else None)
    verdict = read_verdict(RunFolder(out).verdict)
    assert verdict is not None
    assert verdict.stage == stage
    assert not (out / durable.MANIFEST).exists()
    call(out)
    assert outcomes(out) == outcomes(whole)
    for made in ("forward-again-1.tsv", "forward-made-1.tsv"):
        text = Path("run/course") / made
        assert (out / text).read_bytes() == (whole / text).read_bytes()
    for step in ("reverse", "forward-1"):
        name = Path("run/course") / step / WEIGHTS
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert (out / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()


def test_what_does_not_help_is_left_out(
    call: Callable[..., Any], whole: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """A later step is better in one course, and worse in another that is the same else."""
    said: list[str] = []
    monkeypatch.setattr(Log, "note", lambda self, text: said.append(text))
    for later, best in ((9.0, "forward-1"), (2.0, "pairs")):
        out = tmp_path / best
        shutil.copytree(whole, out)
        (out / durable.MANIFEST).unlink()
        record = record_of(out)
        record["steps"]["pairs"]["bleu"] = 3.0
        record["steps"]["forward-1"]["bleu"] = later
        durable.write_json(RunFolder(out).course / "record.json", record)
        said.clear()
        call(out)
        chosen = RunFolder(out).course / best
        assert (out / WEIGHTS).read_bytes() == (chosen / WEIGHTS).read_bytes()
        gain = next(line for line in said if line.startswith("forward-1: "))
        assert f"{later - 3:+.2f} BLEU" in gain
        assert gain.endswith("so that it is left out") == (best == "pairs")


def test_nothing_of_use_was_made(
    call: Callable[..., Any], whole: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Of a poor model all may be left out; then the pairs alone are learned from."""
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    (out / durable.MANIFEST).unlink()
    record = record_of(out)
    for name in NAMES[2:]:
        del record["steps"][name]
    durable.write_json(RunFolder(out).course / "record.json", record)

    def nothing(*asked: Any) -> Any:
        raise DataError("no pair to learn from: all are cut")

    monkeypatch.setattr("weft.run.course.steps.make_pairs", nothing)
    call(out)
    steps = record_of(out)["steps"]
    assert steps["forward-made-1"]["notes"] == ["no pair to learn from: all are cut"]
    assert steps["forward-1"] == {"seconds": 0.0}
    pairs = RunFolder(out).course / "pairs" / WEIGHTS
    assert (out / WEIGHTS).read_bytes() == pairs.read_bytes()


def test_a_failed_step_is_named_and_taken_again(
    call: Callable[..., Any], whole: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    (out / durable.MANIFEST).unlink()
    record = record_of(out)
    for name in ("forward-made-1", "forward-1"):
        del record["steps"][name]
    durable.write_json(RunFolder(out).course / "record.json", record)
    (RunFolder(out).course / "forward-made-1.tsv").unlink()

    def failing(*asked: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("weft.run.course.steps.make_pairs", failing)
        with pytest.raises(OSError, match="No space"):
            call(out)
    verdict = read_verdict(RunFolder(out).verdict)
    assert verdict is not None
    assert (verdict.outcome, verdict.stage) == ("failed", "step 4 of 5, forward-made-1")
    call(out)
    assert outcomes(out) == outcomes(whole)


def test_the_clock_divides_what_is_left_by_shares(tmp_path: Path) -> None:
    steps = [Step("a", "", 2.0), Step("b", "", 1.0), Step("c", "", 1.0)]
    record = CourseRecord.open(tmp_path / "record.json", {"minutes": 40})
    clock = Clock(40.0, steps)
    assert [clock.foreseen(record, name) for name in "abc"] == [20.0, 10.0, 10.0]
    record.note("a", minutes=20.0, seconds=16 * 60.0)  # four minutes less than it had
    assert clock.foreseen(record, "b") == 12.0
    record.note("b", minutes=11.0)  # begun, by another start
    again = CourseRecord.open(tmp_path / "record.json", {"minutes": 40})
    assert clock.foreseen(again, "b") == 11.0
    assert Clock(None, steps).foreseen(again, "c") is None
    again.note("b", seconds=100 * 60.0)
    assert clock.foreseen(again, "c") == 0.1


def test_too_few_minutes_are_said_and_more_may_be_given(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    def refusing(request: Request, log: Log) -> None:
        raise UsageError("--minutes is too short")

    monkeypatch.setattr("weft.run.course.steps.train", refusing)
    out = tmp_path / "out"
    for minutes in (10, 20):  # nothing was saved, so that another number may be given
        own = f"{round(OF_RUN * minutes * 2 / 13, 2):.3g} of {minutes}"
        with pytest.raises(UsageError, match=rf"step pairs \({own} minutes\): --min"):
            call(out, minutes=minutes)
    (RunFolder(out).course / "forward-made-1.tsv.partial").touch()
    with pytest.raises(UsageError, match="begun with something else: --minutes"):
        call(out, minutes=30)


def test_the_time_left_says_how_many_sentences_are_translated(
    monkeypatch: Any, tmp_path: Path
) -> None:
    file = tmp_path / "mono.de"
    file.write_text("".join(f"Satz {n}\n" for n in range(5000)), "utf-8")
    record = CourseRecord.open(tmp_path / "record.json", {})
    monkeypatch.setattr("weft.run.course.steps._seconds_each", lambda *asked: 0.1)
    material: Any = type("Material", (), {"num_pairs": 200})
    unused: Any = None
    steps = Steps(unused, material, record, unused, unused, unused, unused)

    def affordable(before: Sequence[str], minutes: float | None) -> int:
        return len(steps._affordable("made", unused, file, before, minutes))

    assert affordable([], None) == 4000  # twenty for each pair
    assert affordable(["Satz"] * 50, 0.5) == 250
    assert affordable(["Satz"] * 50, 9.0) == 250  # as when it was begun
    record.steps.clear()
    assert affordable(["Satz"] * 500, 0.5) == 100


def test_pairs_are_a_quarter_of_what_is_read_beside_what_a_machine_made(
    tmp_path: Path,
) -> None:
    record = CourseRecord.open(tmp_path / "record.json", {})
    material: Any = type("Material", (), {"num_pairs": 200})
    unused: Any = None
    steps = Steps(unused, material, record, unused, unused, unused, unused)
    pairs = TrainText("pairs-1.en,pairs-1.de", weight=0.5, tag="bible")
    for name, count, weight in (("few", 400, 0.5), ("many", 3000, 2.5)):
        record.note(name, pairs=count)
        made = TrainText(f"{name}.tsv", made=True)
        assert steps.together([pairs], [made]) == (replace(pairs, weight=weight), made)


def test_pairs_stay_a_quarter_beside_a_model_s_own_translations(
    tmp_path: Path, monkeypatch: Any
) -> None:
    record = CourseRecord.open(tmp_path / "record.json", {})
    record.note("forward-made-1", pairs=3000)
    record.note("self-made-1", pairs=4200)
    unused: Any = None
    pairs = TrainText("pairs-1.en,pairs-1.de")
    made = TrainText("forward-made-1.tsv", made=True)
    own = TrainText("self-made-1.tsv")
    forward = Direction("en", "de", (pairs,), None, None, tmp_path, None, tmp_path)
    material: Any = type("Material", (), {"num_pairs": 200, "reverse": forward})
    steps = Steps(unused, material, record, unused, unused, unused, unused)
    learned: list[tuple[TrainText, ...]] = []

    def learn(
        self: Steps, name: str, direction: Direction, texts: Any, *rest: Any
    ) -> Learned:
        learned.append(texts)
        return Learned(name, tmp_path, direction, texts, 1.0, 1.0)

    monkeypatch.setattr(Steps, "make", lambda *asked, **how: (own,))
    monkeypatch.setattr(Steps, "learn", learn)
    texts = steps.together([pairs], [made])
    assert texts[0].weight == 5
    model = Learned("forward-1", tmp_path, forward, texts, 0.0, 0.0)
    assert courses._taught_by_itself(steps, 1, model).step == "self-1"
    assert learned == [(replace(pairs, weight=12), made, own)]


def test_what_has_no_meaning_is_refused(
    call: Callable[..., Any], tmp_path: Path, tiny_folder: Path, pairs: str, mono: Path
) -> None:
    out = tmp_path / "out"
    for asked, said in (
        ({"start_from": tiny_folder}, "--from and --mono"),
        ({"allow_data_change": True}, "--allow-data-change"),
    ):
        with pytest.raises(UsageError, match=said):
            call(out, **asked)
    german = MonoUse((MonoText("de", str(mono)),))
    french = MonoUse((MonoText("fr", str(mono)),))
    recipe = load_recipe("classify-fast")
    with pytest.raises(UsageError, match="--mono is for translators"):
        train_in_steps(Request(recipe, out), german)
    request = Request(load_recipe(), out, train=(TrainText(pairs),))
    with pytest.raises(UsageError, match="the pairs are en to de; give text in one"):
        train_in_steps(request, french)
    english = MonoUse((MonoText("en", str(mono)),))
    with pytest.raises(
        DataError, match="are like the de of the pairs; is it --mono de"
    ):
        train_in_steps(request, english)
    same = replace(request, train=(TrainText(f"{mono},{mono}"),))
    paraphrases = load_recipe(None, ["data.src_lang=de", "data.tgt_lang=de"])
    with pytest.raises(UsageError, match="both sides of the pairs are de"):
        train_in_steps(replace(same, recipe=paraphrases, allow_bad_data=True), german)
    few = tmp_path / "few.en-de.tsv"
    few.write_text("a horse\tein Pferd\ntwo mice\tzwei Mäuse\n", "utf-8")
    few_asked = replace(request, train=(TrainText(str(few)),), allow_bad_data=True)
    with pytest.raises(UsageError, match="too few to hold some out; give --dev"):
        train_in_steps(few_asked, german)
    assert not out.exists()
    shutil.copytree(tiny_folder, out)
    with pytest.raises(UsageError, match="holds a run without --mono"):
        call(out)


def test_a_text_of_which_nothing_is_left_is_said(tmp_path: Path, pairs: str) -> None:
    known = tmp_path / "known.txt"
    german = [line.split("\t")[1] for line in lines(Path(pairs))]
    known.write_text("".join(f"{line}\n" for line in german), "utf-8")
    request = Request(load_recipe(), tmp_path / "out", train=(TrainText(pairs),))
    gathered = gather(request, (MonoText("de", str(known)),))
    notes = gathered.written(tmp_path / "text", request.recipe, denoise=False).notes
    said = [note for note in notes if "nothing is left" in note]
    assert said == ["nothing is left of the text in de: the steps go without it"]


def test_steps_that_were_begun_are_not_taken_for_something_else(
    whole: Path, pairs: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(RunFolder(whole).course, RunFolder(out).course)
    with pytest.raises(UsageError, match="holds the steps of a command with --mono"):
        weft.train(out=out, train=pairs, quiet=True)
    with pytest.raises(weft.WeftError, match="run the same `weft train` with --mono"):
        weft.load(out)
    last = RunFolder(out).course / "forward-1"
    with pytest.raises(FolderError, match=re.escape(f"weft finish {last}")):
        weft.finish(out)
    with pytest.raises(FolderError, match=re.escape(f"such as {last}")):
        read_history(out)
    remedy = unfinished(Run.of(out), last).remedy
    assert remedy.endswith(f"what the last step has saved (weft finish {last})")


@pytest.mark.long
def test_from_text_masked_out(
    call: Callable[..., Any], tmp_path: Path, pairs: str
) -> None:
    """A model that restores text is one to start from; both languages are in its tokenizers."""
    out = tmp_path / "out"
    call(out, rounds=2, denoise=True)
    text = RunFolder(out).course / "text"
    whole, masks = lines(text / "whole.txt"), lines(text / "masked.txt")
    assert len(whole) == len(masks) == 2 * (2 * 176 + 30)
    assert sum("▒" in line for line in masks) == 2 * 30  # the pairs have three words
    steps = [*record_of(out)["steps"]]
    assert steps == [
        "pairs",
        "denoised",
        "pairs-denoised",
        "reverse",
        "forward-again-1",
        "forward-made-1",
        "forward-1",
        "reverse-again-2",
        "reverse-2",
        "forward-again-2",
        "forward-made-2",
        "forward-2",
    ]
    started = durable.read_json(RunFolder(RunFolder(out).course / steps[2]).recipe)
    assert started["from"] is not None
