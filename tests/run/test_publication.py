"""What a run leaves at its end: a plain verdict, and what using the model needs to say where it
guesses.
"""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.config import TrainingSection, TranslationRecipe
from weft.data.corpus import fingerprint, from_pairs
from weft.data.known import KnownWords
from weft.data.texts import Texts
from weft.data.tokenizer import build_tokenizers
from weft.data.train_text import TrainText
from weft.errors import FolderError
from weft.folder.durable import sha256_of
from weft.folder.model_folder import WORDS, RunFolder
from weft.kernels.machine import Machine
from weft.kernels.torch_machine import machine_for_torch
from weft.predict.evidence import WORD_FEATURES
from weft.recipes.file import build_recipe, load_recipe
from weft.recipes.written import as_toml
from weft.run.card import without_folders
from weft.run.planning import _factor_notes, _warmup_notes
from weft.run.publication import _longer
from weft.run.record import Verdict
from weft.run.repetition import repetition_of
from weft.run.request import Request
from weft.run.train import train
from weft.ship.averaging import average
from weft.tasks.choice import load_trainable
from weft.tasks.task import training_hashes
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training.budget import TimePlan
from weft.training.log import Log
from weft.training.trainer import Plan

Write = Callable[[int], str]
PLAIN_MACHINE = Machine("cpu", "float32", 1, "tests are small")


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
) -> Path:
    """A tiny translator whose run held out dev and test."""
    out = tmp_path_factory.mktemp("run") / "model"
    steps = (
        "training.max_steps=40",
        "training.eval_every=10",
        "data.dev_size=24",
        "data.test_size=20",
    )
    weft.train(
        out=out, train=write_pairs(216), settings=(*tiny_settings, *steps), quiet=True
    )
    return out


def verdict_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RunFolder(folder).verdict.read_bytes())
    return found


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
    return found


def test_the_verdict_stands_in_verdict_json_and_without_any_text_in_the_card(
    run: Path,
) -> None:
    judged, card = verdict_of(run)["judgement"], (run / "README.md").read_text()
    assert judged["verdict"] in ("usable", "draft", "not usable yet")
    assert judged["figures"]["count"] == 24
    assert len(judged["examples"]) == 5
    assert f"- {judged['verdict']}: {judged['says'][0]}" in card
    assert f"- {judged['says'][1]}" in card
    assert not any(row["reference"] in card for row in judged["examples"])
    assert "1 thread, training.seed 1, data.seed 1); the weights are those of" in card
    assert "holds checkpoints and the training text" in card


def test_it_is_said_at_the_end_with_what_to_try_next_and_what_not_to_hand_on(
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
    capfd: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    settings = (
        *tiny_settings,
        "training.max_steps=4",
        "data.dev_size=24",
        "data.test_size=0",
    )
    weft.train(out=out, train=write_pairs(216), settings=settings)
    said = " ".join(capfd.readouterr().err.split())
    examples = verdict_of(out)["judgement"]["examples"]
    assert "verdict: not usable yet: " in said
    assert "copying the translation of the nearest training sentence gives BLEU" in said
    assert f"5 rows of dev: source: {examples[0]['source']} translation:" in said
    assert "the warm-up (5) takes 4 of the 4 steps" in said
    assert (
        "try next, a few seconds: the same call with fresh=True, "
        "training.max_steps=8, training.warmup_steps=0" in said
    )
    assert (
        f"{out}/run holds the checkpoints and your training text: do not hand that on; "
        f"weft pack {out} --output out.weft makes one file without it" in said
    )


def test_text_that_all_may_see_is_not_called_yours(
    tmp_path: Path, tiny_settings: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    short = ("data.builtin=toy-de-en", "training.max_steps=2", "data.test_size=0")
    weft.train(out=tmp_path / "m", settings=(*tiny_settings, *short))
    said = " ".join(capfd.readouterr().err.split())
    assert "m/run holds the checkpoints: do not hand that on; weft pack" in said


def files_of(folder: Path) -> str:
    """All text that whoever gets the folder can read."""
    kept = (
        path
        for path in folder.rglob("*")
        if path.suffix in (".md", ".json") and "run" not in path.parts
    )
    return "".join(path.read_text("utf-8") for path in kept)


def test_the_folder_names_files_and_not_where_they_lie(
    run: Path, tmp_path: Path, write_pairs: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "for a client"
    here.mkdir()
    shutil.copy(write_pairs(216), here / "memory.en-de.tsv")
    shutil.copytree(run, here / "before")
    settings = (
        "training.max_steps=2",
        "training.save_every=1",
        "training.threads=1",
        "training.kernels=torch",
    )
    recipe = load_recipe(None, settings)
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("whole", here / "memory.en-de.tsv"),
        ("near", Path("for a client/memory.en-de.tsv")),
    ):
        command = shlex.join(
            ["weft", "train", str(text), "--from", str(here / "before")]
        )
        request = Request(
            recipe,
            here / name,
            (TrainText(str(text)),),
            start_from=here / "before",
            command=command,
        )
        train(request, Log(quiet=True))
        average([here / name], here / f"mean-{name}")
        for folder in (here / name, here / f"mean-{name}"):
            assert "for a client" not in files_of(folder)
            assert "memory.en-de.tsv" in (folder / "README.md").read_text("utf-8")
        assert "starts from before: its weights" in (
            here / name / "README.md"
        ).read_text("utf-8")
    assert "checkpoints and the training text" not in (
        here / "mean-near" / "README.md"
    ).read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (
            "weft train /home/jane/a.en,/home/jane/a.de --output ~/models/x",
            "weft train a.en,a.de --output x",
        ),
        (
            "--from=/a/b/c (first: /a/b.tsv:3); /b/c: gone",
            "--from=c (first: b.tsv:3); c: gone",
        ),
        (
            "and/or, 1/2, https://x.org/a/b, runs/mine, ../a/b",
            "and/or, 1/2, https://x.org/a/b, runs/mine, ../a/b",
        ),
    ],
)
def test_paths_from_the_root_are_cut_to_their_last_names(text: str, cut: str) -> None:
    assert without_folders(text) == cut


def test_without_dev_nothing_is_judged(
    tmp_path: Path, tiny_settings: tuple[str, ...], write_pairs: Write
) -> None:
    settings = (*tiny_settings, "training.max_steps=2")
    weft.train(out=tmp_path, train=write_pairs(60), settings=settings, quiet=True)
    judged = verdict_of(tmp_path)["judgement"]
    assert (judged["verdict"], judged["says"]) == (
        "not judged",
        ["there is no dev text; give one with --dev, or more text"],
    )
    assert config_of(tmp_path)["low_confidence"] is None
    assert weft.load(tmp_path).translate("boy sees cat.")[0].unknown_words == ["boy"]


@pytest.mark.parametrize(
    ("command", "step", "is_stopped", "expected"),
    [
        ("weft train a", 9, False, "weft train a --set training.max_steps=18"),
        (
            "weft train a --fresh --set training.max_steps=9",
            9,
            False,
            "weft train a --set training.max_steps=18",
        ),
        (
            "weft train a --set training.patience=2",
            6,
            False,
            "weft train a --set training.patience=4",
        ),
        (
            "weft train a --set training.max_steps=9",
            6,
            True,
            "weft train a --set training.max_steps=9",
        ),
        ("", 9, False, "the same call with training.max_steps=18"),
        ("", 6, True, "the same call, which continues the run"),
    ],
)
def test_what_trains_for_longer(
    command: str, step: int, is_stopped: bool, expected: str
) -> None:
    assert (
        _longer(
            command,
            Verdict(step=step, max_steps=9, evaluations_since_best=2),
            is_stopped,
        )
        == expected
    )


def test_what_trains_a_run_by_the_clock_for_longer_leaves_the_clock_out() -> None:
    plan, done = (
        TimePlan(5.0, 18, 3, 3, 2, 0.1, 9),
        Verdict(step=9, max_steps=9, evaluations_since_best=2),
    )
    for minutes in ("--minutes 5", "--minutes=5"):
        found = _longer(f"weft train a {minutes} --output b", done, False, plan)
        # 18 would leave it to the clock
        assert found == "weft train a --output b --set training.max_steps=19"
    assert (
        _longer("", done, False, plan)
        == "the same call without minutes and with training.max_steps=19"
    )
    impatient = Verdict(step=6, max_steps=9, evaluations_since_best=2)
    expected = "weft train a --minutes 5 --set training.patience=4"
    assert _longer("weft train a --minutes 5", impatient, False, plan) == expected
    # a stopped run takes minutes as long as the clock has not decided
    command = "weft train a --minutes 5"
    assert _longer(command, impatient, True, plan) == command
    decided = replace(plan, max_steps=9)
    assert _longer(command, impatient, True, decided) == "weft train a"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "weft train a --output b --set training.max_steps=9",
            "weft train a --output b --fresh --set training.max_steps=18 --set training.warmup_steps=1",
        ),
        (
            "",
            "the same call with fresh=True, training.max_steps=18, training.warmup_steps=1",
        ),
    ],
)
def test_a_run_that_begins_anew_has_the_settings_for_it(
    command: str, expected: str
) -> None:
    anew = {"training.max_steps": 18, "training.warmup_steps": 1}
    assert _longer(command, Verdict(step=9, max_steps=9), False, None, anew) == expected
    impatient = Verdict(step=6, max_steps=9)
    assert _longer(command, impatient, False, None, anew) == expected
    # one that is not at its end goes on
    assert "fresh" not in _longer(command, impatient, True, None, anew)


def test_two_notes_on_noam_give_one_factor() -> None:
    """A shorter warm-up has its own; by the clock the warm-up is the clock's."""
    settings = TrainingSection(schedule="noam", warmup_steps=400)
    (by_clock,) = _factor_notes(settings)
    assert by_clock.endswith("--set training.learning_rate=1")
    assert _factor_notes(settings, Plan(1000, 100, 100)) == (by_clock,)
    short = Plan(100, 100, 100)
    (warmup,), (factor,) = (
        _warmup_notes(settings, short),
        _factor_notes(settings, short),
    )
    assert warmup.endswith("warmup_steps=10 --set training.learning_rate=0.158")
    assert "--set" not in factor
    assert _factor_notes(TrainingSection()) == ()


def test_a_rate_taken_for_noams_factor_is_told_before_the_first_step_and_replaced_at_the_end(
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What did not learn is not given twice the steps: it begins anew with the paper's factor."""
    settings = (
        *tiny_settings,
        "training.schedule=noam",
        "training.learning_rate=0.001",
        "training.max_steps=60",
        "training.eval_every=20",
        "data.test_size=0",
    )
    found = weft.train(out=tmp_path / "out", train=write_pairs(216), settings=settings)
    said = capfd.readouterr().err
    before, _ = said.split("step 20: ")
    note = (
        "0.001 makes every rate 0.001 of the paper's; --set training.learning_rate=1\n"
    )
    assert note in before
    assert any(line.endswith(note.strip()) for line in found.notes)
    (first, *_) = found.judgement["helps"]
    assert first.endswith("0.001 makes every rate 0.001 of the paper's: try 1")
    assert "the same call with fresh=True, training.learning_rate=1.0\n" in said
    assert "max_steps" not in said


# What using the model needs to know


def test_the_folder_knows_the_words_of_its_training_text(
    run: Path, tmp_path: Path
) -> None:
    model = weft.load(run)
    found = model.translate(["CAT sees (dog).", "a boy sees the key.", ""])
    assert [one.unknown_words for one in found] == [[], ["a", "boy", "the", "key"], []]
    average([run], tmp_path / "mean")
    assert weft.load(tmp_path / "mean").translate("boy")[0].unknown_words == ["boy"]
    shutil.copytree(run, tmp_path / "alone", ignore=shutil.ignore_patterns("run"))
    assert weft.load(tmp_path / "alone").translate("boy")[0].unknown_words == ["boy"]


def test_a_model_trained_further_knows_the_words_of_both_texts(
    run: Path, tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    text = tmp_path / "more.tsv"
    text.write_text(
        "".join(
            f"boy{chr(97 + i)} sees cat.\tJunge sieht Katze {i}.\n" for i in range(26)
        )
    )
    settings = [
        one for one in tiny_settings if not one.startswith(("model.", "tokenizer."))
    ]
    weft.train(
        out=tmp_path / "out",
        train=str(text),
        start_from=run,
        settings=[*settings, "training.max_steps=1"],
        quiet=True,
    )
    assert weft.load(tmp_path / "out").translate("boya knows the horse.")[
        0
    ].unknown_words == ["the"]


def test_how_sure_the_model_was_on_dev_is_the_measure_of_what_is_unsure(
    run: Path,
) -> None:
    low = config_of(run)["low_confidence"]
    assert low == verdict_of(run)["judgement"]["low_confidence"] < 0
    model = weft.load(run)
    for text in ("cat sees dog.", "xyz xyz xyz xyz"):
        (found,) = model.translate(text)
        assert found.confidence == pytest.approx(
            sum(found.token_log_probs) / len(found.token_log_probs)
        )
        assert found.unsure == (found.confidence < low)


@pytest.fixture(scope="module")
def judging_run(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
) -> Path:
    """A tiny translator with enough dev to learn from it where it is wrong."""
    out = tmp_path_factory.mktemp("judging") / "model"
    steps = (
        "training.max_steps=80",
        "training.eval_every=80",
        "data.dev_size=110",
        "data.test_size=0",
    )
    weft.train(
        out=out, train=write_pairs(216), settings=(*tiny_settings, *steps), quiet=True
    )
    return out


def test_a_model_learns_on_dev_which_of_its_words_are_right(judging_run: Path) -> None:
    kept = config_of(judging_run)["quality"]
    figures = verdict_of(judging_run)["judgement"]["figures"]
    assert figures["word_auc"] >= figures["plain_word_auc"] > 0.5
    assert kept["words"]["weights"].keys() >= {"log_odds"}
    assert kept["omission"] is None  # its sentences are too short to lack a phrase
    model = weft.load(judging_run)
    (found,) = model.translate("cat sees dog.", doubts=True)
    assert 0 < found.quality < 1
    assert all(0 < word.quality < 1 for word in found.words)
    assert (found.omitted, found.doubled) == ([], [])
    one = model.doubts.quality
    again = load_trainable(judging_run, PLAIN_MACHINE).predictor().doubts.quality
    assert again.words.named(WORD_FEATURES) == one.words.named(WORD_FEATURES)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("weights", {"colour": 1.0}, "'colour' is no feature of this version"),
        ("bias", "much", "config.json: not a config of this version"),
    ],
)
def test_a_quality_of_another_version_is_refused(
    judging_run: Path, tmp_path: Path, key: str, value: object, why: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(judging_run, other)
    config = config_of(judging_run)
    config["quality"]["words"][key] = value
    write_config(other, config)
    with pytest.raises(FolderError, match=why):
        weft.load(other)


def test_a_folder_from_before_it_says_nothing_of_quality(
    judging_run: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(judging_run, other)
    config = config_of(judging_run)
    del config["quality"]
    write_config(other, config)
    (found,) = weft.load(other).translate("cat sees dog.", doubts=True)
    assert found.quality is found.words is found.omitted is None


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write the config, and its size and hash into the manifest."""
    (folder / "config.json").write_text(json.dumps(config))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["config.json"] = {
        "size": (folder / "config.json").stat().st_size,
        "sha256": sha256_of(folder / "config.json"),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_sentences_and_lengths_of_the_training_text_are_learned(run: Path) -> None:
    config = config_of(run)
    assert config["single_sentences"] is True
    assert config["least_ratio"] == 0.0  # no source has ten ids
    (found,) = weft.load(run).translate("Cat sees dog. Bird hears fish.")
    assert found.segments == 2


def test_a_text_of_several_sentences_a_line_is_translated_by_lines(
    tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    text = tmp_path / "two.en-de.tsv"
    words = [f"w{chr(97 + i)}" for i in range(26)]
    one = "A {0} sees the dog. The dog {0} knows it well now.\tEin {0} sieht ihn. Der Hund.\n"
    text.write_text("".join(one.format(a + b) for a in words for b in words[:8]))
    settings = (*tiny_settings, "training.max_steps=1")
    weft.train(out=tmp_path / "out", train=str(text), settings=settings, quiet=True)
    config = config_of(tmp_path / "out")
    assert config["single_sentences"] is False
    assert 0.4 < config["least_ratio"] < 0.8
    assert weft.load(tmp_path / "out").translate("A cat. A dog.")[0].segments == 1


@pytest.mark.parametrize(("language", "is_single"), [("de", True), ("en", False)])
def test_training_sources_are_divided_as_texts_are(
    language: str, is_single: bool
) -> None:
    pairs = [("Am 3. Mai", "On May 3"), ("Im 2. Jahr", "In the second year")] * 10
    recipe = TranslationRecipe.model_validate(
        {
            "tokenizer": {"joint": True, "kind": "byte"},
            "model": {"d_model": 8, "d_ff": 8, "num_heads": 1, "head_dim": 8},
            "data": {"src_lang": language, "tgt_lang": "und"},
        }
    )
    text = from_pairs(pairs, "text", language, "und")
    task = TrainableTranslation.build(
        recipe,
        Texts(text, None, None, "pairs", fingerprint),
        build_tokenizers(recipe.tokenizer, text.src, text.tgt),
        Machine("cpu", "float32", 1, "tests are small"),
    )
    assert task.config.single_sentences is is_single


def test_a_folder_from_before_opens_and_reads_sentence_by_sentence(
    run: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(run, old)
    config = {
        k: v
        for k, v in config_of(run).items()
        if k not in ("known_words", "low_confidence", "single_sentences")
    }
    del config["least_ratio"]
    manifest = json.loads((old / "manifest.json").read_bytes())
    (old / "config.json").write_text(json.dumps(config))
    for name in (WORDS, "config.json"):
        del manifest["files"][name]
    content = (old / "config.json").read_bytes()
    manifest["files"]["config.json"] = {
        "size": len(content),
        "sha256": sha256_of(old / "config.json"),
    }
    (old / "manifest.json").write_text(json.dumps(manifest))
    (found,) = weft.load(old).translate("A boy. A dog.")
    assert (found.unknown_words, found.unsure, found.segments) == ([], False, 2)


def test_a_damaged_list_of_words_is_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    (tmp_path / "copy" / WORDS).write_bytes(b"nothing")
    with pytest.raises(FolderError, match=WORDS):
        weft.load(tmp_path / "copy")


def test_a_classifier_says_where_nothing_is_known(tmp_path: Path) -> None:
    text = tmp_path / "rows.csv"
    rows = (
        f"{'good' if i % 2 else 'bad'} thing w{chr(97 + i % 26)},l{i % 2}\n"
        for i in range(120)
    )
    text.write_text("text,label\n" + "".join(dict.fromkeys(rows)))
    settings = (
        "model.ngram_buckets=1000",
        "training.max_steps=30",
        "training.precision=float32",
        "training.threads=1",
        "data.dev_size=10",
    )
    weft.train(
        out=tmp_path / "out",
        recipe="classify-fast",
        train=str(text),
        settings=settings,
        quiet=True,
    )
    model = weft.load(tmp_path / "out")
    found = model.classify(["good thing", "asdf qwer zxcv", "", "asdf thing"])
    assert [one.nothing_known for one in found] == [False, True, True, False]
    assert [one.unknown_words for one in found] == [
        [],
        ["asdf", "qwer", "zxcv"],
        [],
        ["asdf"],
    ]
    assert isinstance(model.doubts.known, KnownWords)


def test_a_run_in_bfloat16_is_scored_as_its_model_is_used(
    tmp_path: Path, tiny_settings: tuple[str, ...], write_pairs: Write
) -> None:
    """`weft evaluate` must give the scores of the card; and the card says in what the run
    computed.
    """
    settings = [*tiny_settings, "training.max_steps=40", "training.precision=bfloat16"]
    pairs = write_pairs(60)
    # the test is a part of training
    more = {"settings": settings, "quiet": True, "allow_bad_data": True}
    verdict = weft.train(out=tmp_path / "m", train=write_pairs(216), test=pairs, **more)
    assert verdict.test["computed"] == {
        "precision": "float32",
        "beam_size": 5,
        "length_penalty": 1.0,
    }
    task = load_trainable(tmp_path / "m", machine_for_torch())
    text = task.read([pairs])
    again = task.scored(text, task.evaluate(text), training_hashes(tmp_path / "m"))
    assert again.to_json() == verdict.test
    assert "(products in bfloat16, torch kernels, 1 thread, " in (
        tmp_path / "m" / "README.md"
    ).read_text("utf-8")


def test_a_warm_up_that_takes_the_whole_run_is_named_before_the_first_step_and_at_the_end(
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
    capfd: pytest.CaptureFixture[str],
) -> None:
    length = (
        "training.max_steps=20",
        "training.eval_every=10",
        "training.warmup_steps=400",
        "data.test_size=0",
    )
    found = weft.train(
        out=tmp_path / "out", train=write_pairs(216), settings=(*tiny_settings, *length)
    )
    before, _ = capfd.readouterr().err.split("step 10: ")
    said = "the warm-up (400) takes 20 of the 20 steps, and the learning rate only rises in it"
    assert f"note: {said}; --set training.warmup_steps=2\n" in before
    assert f"{said}; --set training.warmup_steps=2" in found.notes
    assert any(line.startswith(said) for line in found.judgement["helps"])


@pytest.mark.parametrize(("eval_every", "is_said"), [(1300, True), (4, False)])
def test_a_run_that_ends_before_its_first_evaluation_is_due_is_told_so(
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    write_pairs: Write,
    eval_every: int,
    is_said: bool,
) -> None:
    length = ("training.max_steps=4", f"training.eval_every={eval_every}")
    settings = (*tiny_settings, *length, "data.test_size=0")
    ended = weft.train(
        out=tmp_path / "out", train=write_pairs(216), settings=settings, quiet=True
    )
    said = (
        "training.eval_every (1,300) is beyond the 4 steps: dev is scored once, at the end; "
        "--set training.eval_every=2"
    )
    assert (said in ended.notes) == is_said


def test_the_card_alone_gives_the_recipe_again(
    tmp_path: Path, tiny_settings: tuple[str, ...], write_pairs: Write
) -> None:
    file = tmp_path / "small.toml"
    file.write_text("[training]\nmax_steps = 2\n[decoding]\nbeam_size = 3\n")
    recipe = load_recipe(str(file), tiny_settings)
    out = tmp_path / "out"
    request = Request(
        recipe,
        out,
        (TrainText(write_pairs(90)),),
        command="weft train --recipe small.toml",
    )
    train(request, Log(quiet=True))
    record = json.loads(RunFolder(out).recipe.read_bytes())
    begun = record["recipe"]
    tracked = {**begun, "training": {**begun["training"], "trackio": "project"}}
    older = json.dumps({**record, "recipe": tracked})
    RunFolder(out).recipe.write_text(older, "utf-8")
    repeated = repetition_of(RunFolder(out), Verdict(step=2, max_steps=2))
    assert repeated is not None
    assert repeated.recipe == build_recipe(begun)
    shutil.rmtree(RunFolder(out).folder)
    _, block = (out / "README.md").read_text("utf-8").split("```toml\n")
    again = tmp_path / "recipe.toml"
    again.write_text(block[: block.index("```")], "utf-8")
    assert load_recipe(str(again)).model_dump(mode="json") == begun
    assert "beam_size = 3" in again.read_text("utf-8")
    assert "beam_size = 3" not in as_toml(load_recipe(None, tiny_settings))
