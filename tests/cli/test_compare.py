"""weft compare: two models of each task on one text; refusals."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import weft
from weft.data.labelled import from_rows
from weft.folder import durable
from weft.inspection import comparison
from weft.inspection.comparison import ONE_SEED
from weft.run.begun import held_out
from weft.tasks.task import NOT_CHECKED

Command = Callable[..., Any]
SIZE = (
    "training.eval_every=1000",
    "training.precision=float32",
    "training.threads=1",
    "training.warmup_steps=1",
)


@pytest.fixture(scope="module")
def other(
    tmp_path_factory: pytest.TempPathFactory,
    write_pairs: Callable[[int], str],
    tiny_settings: Any,
) -> Path:
    """As the tiny folder, but hardly trained."""
    out = tmp_path_factory.mktemp("other") / "model"
    settings = (
        *tiny_settings,
        "training.max_steps=3",
        "training.eval_every=3",
        "model.d_model=32",
    )
    weft.train(out=out, train=write_pairs(216), settings=settings, quiet=True)
    return out


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two language models of one text: trained, and hardly."""
    here = tmp_path_factory.mktemp("writers")
    (here / "train.txt").write_text(
        "".join(f"the {a} was {b}.\n" for a in ["cat", "dog", "bird"] for b in WORDS)
        * 3
    )
    return [written(here, steps) for steps in (60, 1)]


WORDS = ["red", "blue", "small", "large", "warm", "cold", "old", "new"]
SHAPE = ("model.d_model=16", "model.d_ff=16", "model.num_heads=2", *SIZE)


def written(here: Path, steps: int) -> Path:
    out = here / f"model-{steps}"
    more = ("task=language-modelling", "tokenizer.kind=character", "model.num_decoder_layers=1",
            "data.dev_share=0.0", "data.test_share=0.0",
            "batches.window_len=24", "batches.batch_size=8", f"training.max_steps={steps}")  # fmt: skip
    weft.train(
        out=out, train=str(here / "train.txt"), settings=(*SHAPE, *more), quiet=True
    )
    return out


def labelled(begin: str) -> list[tuple[str, str]]:
    warm = ("red", "warm", "large")
    return [
        (f"{begin} {a} was {b}", "warm" if b in warm else "cold")
        for a in WORDS
        for b in WORDS
    ]


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two classifiers of one text: trained, and hardly."""
    here = tmp_path_factory.mktemp("judges")
    rows = labelled("the")
    (here / "train.csv").write_text(
        "text,label\n" + "".join(f"{a},{b}\n" for a, b in rows * 3)
    )
    found = []
    for steps in (60, 1):
        found.append(here / f"model-{steps}")
        more = ("task=classification", "tokenizer.kind=word", "model.num_encoder_layers=1",
                "data.dev_size=0", "data.test_size=0", f"training.max_steps={steps}")  # fmt: skip
        settings = (*SHAPE, *more)
        weft.train(
            out=found[-1], train=str(here / "train.csv"), settings=settings, quiet=True
        )
    return found


def test_translators(
    command: Command,
    tiny_folder: Path,
    other: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    data = write_pairs(90)
    ended = command(
        "compare",
        tiny_folder,
        other,
        data,
        "--samples",
        200,
        "--show",
        3,
        "--json",
        "--train",
        data,
    )
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    pairs = [
        line.split("\t") for line in Path(data).read_text("utf-8").split("\n")[:-1]
    ]
    texts = [
        [p.text for p in weft.load(m).translate([a for a, _ in pairs])]
        for m in (tiny_folder, other)
    ]
    wanted = [b for _, b in pairs]
    bleu, chrf = found["figures"]
    for figure, metric in ((bleu, BLEU()), (chrf, CHRF())):
        scores = [metric.corpus_score(some, [wanted]).score for some in texts]
        assert [figure["first"], figure["second"]] == pytest.approx(scores)
        assert figure["verdict"] == "the first is better"
        assert figure["p_value"] < 0.05
    assert found["names"] == [str(tiny_folder), str(other)]
    by_length = [
        group for group in found["groups"] if group["figure"].startswith("BLEU")
    ]
    assert sum(group["count"] for group in by_length) == found["num_rows"] == 90
    by_count = [
        group for group in found["groups"] if group["figure"].startswith("words")
    ]
    assert sum(group["count"] for group in by_count) == sum(
        len(b.replace(".", "").split()) for b in wanted
    )
    assert all(group["first"] >= group["second"] for group in by_count)
    gains = [each["gain"] for each in found["differences"]]
    assert len([gain for gain in gains if gain < 0]) == 3
    worst = min(CHRF().sentence_score(b, [c]).score - CHRF().sentence_score(a, [c]).score
                for a, b, c in zip(*texts, wanted, strict=True))  # fmt: skip
    assert min(gains) == pytest.approx(worst)
    assert any("contaminated" in note for note in found["notes"])
    lines = command("compare", tiny_folder, other, data, "--samples", 50).lines
    assert any(
        re.fullmatch(r"BLEU: the first is better \(p 0\.\d{3}\)", line)
        for line in lines
    )
    assert lines.count(ONE_SEED) == 1
    head, *rows = lines[lines.index("") + 1 : lines.index("") + 4]
    assert all(len(line) <= 60 for line in (head, *rows)), "a terminal of 60 columns"
    for name in ("first", "second", "difference"):
        ends = re.search(rf"\b{name}\b", head)
        assert ends is not None
        assert {
            row[ends.end() - 1].isdigit() and row[ends.end() :][:1] in ("", " ")
            for row in rows
        } == {True}, name


def test_what_is_done_is_said_meanwhile(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    writers: list[Path],
    judges: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.console.stages.SLOW", 0.0)
    (tmp_path / "new.txt").write_text("".join(f"the dog was {b}.\n" for b in WORDS))
    (tmp_path / "new.csv").write_text(
        "text,label\n" + "".join(f"{a},{b}\n" for a, b in labelled("a"))
    )
    for folders, data, stages in (
        (
            (tiny_folder, tiny_folder),
            write_pairs(9),
            ["translating 9 pairs by the first", "translating 9 pairs by the second"],
        ),
        (
            writers,
            tmp_path / "new.txt",
            ["scoring 8 rows by the first", "scoring 8 rows by the second"],
        ),
        (judges, tmp_path / "new.csv", ["classifying 64 texts by both"]),
    ):
        said = command("compare", *folders, data).err.split("\n")
        wanted = [
            "loading PyTorch",
            "loading the models",
            f"reading {data}",
            *stages,
            "comparing",
        ]
        found = [
            next((i for i, line in enumerate(said) if line.startswith(stage)), -1)
            for stage in wanted
        ]
        assert -1 not in found, (wanted, said)
        assert found == sorted(found)


def test_a_model_does_not_differ_from_itself(
    command: Command, tiny_folder: Path, write_pairs: Callable[[int], str]
) -> None:
    found = json.loads(
        command("compare", tiny_folder, tiny_folder, write_pairs(30), "--json").lines[0]
    )
    assert found["differences"] == []
    assert "both models have the same weights" in found["notes"]
    assert {figure["verdict"] for figure in found["figures"]} == {
        "no difference beyond chance"
    }


def test_language_models(command: Command, writers: list[Path], tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text(
        "".join(f"the {a} was {b}.\n\n" for a in ("dog", "bird") for b in WORDS)
    )
    ended = command("compare", *writers, tmp_path / "new.txt", "--json", "--show", 2)
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    assert [figure["name"] for figure in found["figures"]] == [
        "bits a byte",
        "nats a token",
    ]
    check_against_evaluate(command, writers, tmp_path / "new.txt", found)
    assert {figure["verdict"] for figure in found["figures"]} == {"the first is better"}
    assert len(found["differences"]) == 2
    assert found["num_rows"] == 16


def check_against_evaluate(
    command: Command, models: list[Path], data: Path, found: dict[str, Any]
) -> None:
    """The figures of each language model are those of weft evaluate, and so are its settings."""
    bits, nats = found["figures"]
    for number, model in enumerate(models):
        scores = json.loads(command("evaluate", model, data, "--json").lines[0])
        place = ("first", "second")[number]
        assert bits[place] == pytest.approx(scores["bits_per_byte"], rel=1e-5)
        assert nats[place] == pytest.approx(scores["loss"], rel=1e-5)
        assert found["data_signatures"][number] == scores["data_signature"]
        assert found["computed"][number] == scores["computed"]


@pytest.mark.parametrize("num_documents", [1, 2, 25])
def test_language_models_score_a_text_as_evaluate_does(
    command: Command, writers: list[Path], tmp_path: Path, num_documents: int
) -> None:
    """The context of a row and the end symbols count, in lines and in documents."""
    document = "".join(f"the dog was {b}.\n" for b in WORDS) + "\n"
    (tmp_path / "new.txt").write_text(document * num_documents)
    ended = command("compare", *writers, tmp_path / "new.txt", "--json")
    found = json.loads(ended.lines[0])
    check_against_evaluate(command, writers, tmp_path / "new.txt", found)
    rows = 25 if num_documents == 25 else num_documents * len(WORDS)
    assert found["num_rows"] == rows
    assert {each["signature"] for each in found["figures"]} == {"bs:1000|seed:1"}


def test_the_settings_of_both_translators_are_shown_and_may_be_set(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    writers: list[Path],
    tmp_path: Path,
) -> None:
    greedy = shutil.copytree(tiny_folder, tmp_path / "greedy")
    config = json.loads((greedy / "config.json").read_bytes())
    beam_size = config["decoding"]["beam_size"]
    assert beam_size != 1
    config["decoding"]["beam_size"] = 1
    durable.write_json(greedy / "config.json", config)
    files = json.loads((greedy / durable.MANIFEST).read_text())["files"]
    durable.write_manifest(greedy, list(files), {})
    data = write_pairs(12)
    ended = command("compare", tiny_folder, greedy, data, "--json", "--samples", 20)
    found = json.loads(ended.lines[0])
    for number, model in enumerate((tiny_folder, greedy)):
        scores = json.loads(command("evaluate", model, data, "--json").lines[0])
        assert found["computed"][number] == scores["computed"]
        assert found["data_signatures"][number] == scores["data_signature"]
        for figure, name in zip(found["figures"], ("bleu", "chrf"), strict=True):
            own = set(scores[f"{name}_signature"].split("|"))
            assert set(figure["signature"].split("|")) == own | {"bs:20", "seed:12345"}
    note = (
        f"the models are compared with different settings: beam size {beam_size} and 1; "
        "--beam-size would set one for both"
    )
    assert note in found["notes"]
    lines = command("compare", tiny_folder, greedy, data, "--samples", 20).lines
    by = [line.split("  ", 1) for line in lines if line.startswith("by")]
    assert [name for name, _ in by] == ["by, first", "by, second"]
    assert f"beam size {beam_size}" in by[0][1]
    assert "beam size 1" in by[1][1]
    assert any(line.startswith("chrF2  ") and "|seed:" in line for line in lines)
    assert any(line.startswith("text  ") and "data:" in line for line in lines)

    same = ("--samples", 20, "--beam-size", 1, "--length-penalty", 0.5, "--json")
    found = json.loads(command("compare", tiny_folder, greedy, data, *same).lines[0])
    assert [settings["beam_size"] for settings in found["computed"]] == [1, 1]
    assert [settings["length_penalty"] for settings in found["computed"]] == [0.5, 0.5]
    assert not [note for note in found["notes"] if "different settings" in note]
    assert found["differences"] == []

    ended = command("compare", *writers, data, "--beam-size", 2)
    assert ended.code == 2
    assert "--beam-size: " in ended.messages[0]
    assert "searches nothing" in ended.messages[0]


def test_classifiers(command: Command, judges: list[Path], tmp_path: Path) -> None:
    rows = labelled("a")
    (tmp_path / "new.csv").write_text(
        "text,label\n" + "".join(f"{a},{b}\n" for a, b in rows)
    )
    ended = command("compare", *judges, tmp_path / "new.csv", "--json", "--show", 1)
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    accuracy, macro_f1 = found["figures"]
    assert macro_f1["name"] == "macro-F1"
    for place, model in (("first", judges[0]), ("second", judges[1])):
        scores = command("evaluate", model, tmp_path / "new.csv", "--json").lines[0]
        assert macro_f1[place] == pytest.approx(json.loads(scores)["macro_f1"])
        answers = weft.load(model).classify([a for a, _ in rows])
        share = sum(
            answer.label == b for answer, (_, b) in zip(answers, rows, strict=True)
        ) / len(rows)
        assert accuracy[place] == pytest.approx(share)
    assert accuracy["first"] > accuracy["second"]
    by_label = [
        group for group in found["groups"] if group["what"].startswith("by label")
    ]
    assert [group["count"] for group in by_label] == [40, 24]
    mean = sum(group["count"] * group["first"] for group in by_label) / len(rows)
    assert mean == pytest.approx(accuracy["first"])


def test_what_cannot_be_compared_is_refused(
    command: Command,
    tiny_folder: Path,
    writers: list[Path],
    judges: list[Path],
    write_pairs: Any,
    tmp_path: Path,
) -> None:
    data = write_pairs(5)
    ended = command("compare", tiny_folder, writers[0], data)
    assert ended.code == 2
    assert ended.messages[0].endswith(
        "one for language-modelling; compare models of one task"
    )
    (tmp_path / "one.tsv").write_text("cat.\tkatze.\n")
    ended = command("compare", tiny_folder, tiny_folder, tmp_path / "one.tsv")
    assert (ended.code, ended.messages) == (
        3,
        ["weft: 1 row: nothing can be drawn from fewer than 2; give more text"],
    )
    (tmp_path / "new.txt").write_text("a\nb\n")
    ended = command("compare", *writers, judges[0], tmp_path / "new.txt")
    assert ended.code == 2
    assert f"{judges[0]}: is a third model, and two are compared" in ended.messages[0]
    assert (
        "--train counts the words"
        in command("compare", *writers, tmp_path / "new.txt", "--train", data).err
    )


def test_models_of_other_labels_are_told_apart_by_what_one_alone_knows() -> None:
    assert comparison._other_labels(["a", "b"], ["b", "a"]) == ""
    said = comparison._other_labels(["Acq", "acq", "earn"], ["acq", "earn", "trade"])
    assert (
        said == "only the first model knows 'Acq', only the second model knows 'trade'"
    )


def test_a_missing_first_folder_is_not_an_order(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "none"
    for verb in (
        ["compare", missing, tiny_folder, tmp_path],
        ["average", missing, tiny_folder, "--output", tmp_path / "m"],
    ):
        ended = command(*verb)
        assert ended.code != 0
        assert f"{missing}: no such folder" in ended.err
        assert "comes first" not in ended.err


def test_empty_translations_are_counted() -> None:
    rows = [
        comparison.Difference("a:1", "x", "y", first, second, 0.0, "chrF")
        for first, second in (("", "b"), ("a", " "), ("", "c"))
    ]
    assert list(comparison._empty_notes(rows)) == [
        "2 of 3 translations by the first model are empty",
        "1 of 3 translations by the second model are empty",
    ]
    assert list(comparison._empty_notes(rows[:0])) == []


def test_without_text_the_first_run_gives_what_it_held_out(
    command: Command, tiny_folder: Path, other: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(other, alone, ignore=shutil.ignore_patterns("run"))
    ended = command("compare", tiny_folder, alone, "--json", "--samples", 20)
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    test = json.loads((tiny_folder / "run" / "verdict.json").read_bytes())["test"]
    assert found["num_rows"] == test["num_sentences"]
    assert found["figures"][0]["first"] == pytest.approx(test["bleu"])
    unchecked = f"{alone}: {NOT_CHECKED}"
    own = "no text was given: this is the test text of the first model's run"
    assert found["notes"] == [own, unchecked]
    ended = command("compare", alone, tiny_folder)
    refused = (
        f"weft: {alone} holds no run whose held-out text could be taken; give DATA"
    )
    assert (ended.code, ended.messages) == (2, [refused])


def test_held_out_text_that_the_second_model_has_seen_is_called_so(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: Any,
    tmp_path: Path,
) -> None:
    seen = tmp_path / "seen"
    settings = (*tiny_settings, "training.max_steps=2")
    shares = ("data.dev_size=0", "data.test_size=0")
    weft.train(
        out=seen, train=write_pairs(216), settings=(*settings, *shares), quiet=True
    )
    ended = command("compare", tiny_folder, seen, "--json", "--samples", 20)
    _, *notes = json.loads(ended.lines[0])["notes"]
    count = len(held_out(tiny_folder)[1])
    (note,) = (note for note in notes if "contaminated" in note)
    assert note.startswith(f"{seen}: contaminated: {count} of {count} pairs")


def test_runs_of_a_builtin_corpus_are_compared_without_text(
    command: Command, tiny_settings: Any, tmp_path: Path
) -> None:
    out = tmp_path / "builtin"
    settings = ("data.builtin=toy-de-en", "training.max_steps=2")
    weft.train(out=out, settings=(*tiny_settings, *settings), quiet=True)
    part, text = held_out(out)
    found = json.loads(command("compare", out, out, "--json", "--samples", 20).lines[0])
    assert f"this is the {part} text of the first model's run" in found["notes"][0]
    assert found["num_rows"] == len(text)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of the judges' labels and one more, "none", which it nearly always answers."""
    here = tmp_path_factory.mktemp("grown")
    rows = [*labelled("the"), *((f"the {a} one", "none") for a in WORDS * 60)]
    table = "".join(f"{a},{b}\n" for a, b in rows)
    (here / "train.csv").write_text("text,label\n" + table)
    more = ("task=classification", "tokenizer.kind=word", "model.num_encoder_layers=1",
            "data.dev_size=0", "data.test_size=0", "training.max_steps=5")  # fmt: skip
    data = str(here / "train.csv")
    weft.train(out=here / "m", train=data, settings=(*SHAPE, *more), quiet=True)
    return here / "m"


def test_classifiers_of_unlike_labels_are_compared_where_both_know_them(
    command: Command, judges: list[Path], grown: Path, tmp_path: Path
) -> None:
    file = tmp_path / "new.csv"
    rows = labelled("a")
    table = "text,label\n" + "".join(f"{a},{b}\n" for a, b in rows)
    file.write_text(table)
    knows = "only the second model knows 'none'; such an answer counts as wrong"
    answers = weft.load(grown).classify([a for a, _ in rows])
    right = sum(x.label == b for x, (_, b) in zip(answers, rows, strict=True))
    assert "none" in {answer.label for answer in answers}
    for more, notes in (
        ("", [knows]),
        (
            "new,none\nold,none\n",
            [knows, "left out: 2 of 66 rows (not both models know 'none')"],
        ),
    ):
        file.write_text(table + more)
        ended = command("compare", judges[0], grown, file, "--json", "--samples", 20)
        assert (ended.code, ended.messages) == (0, [])
        found = json.loads(ended.lines[0])
        assert found["num_rows"] == len(rows)
        assert found["figures"][0]["second"] == pytest.approx(right / len(rows))
        assert [note for note in found["notes"] if "know" in note] == notes
    file.write_text("text,label\nnew,none\nold,none\n")
    ended = command("compare", judges[0], grown, file)
    refused = "weft: no row has labels that both models know (only the second model knows 'none'); score each with"
    assert (ended.code, ended.messages) == (2, [f"{refused} weft evaluate"])


def test_rows_of_several_labels_are_left_out_where_one_is_not_known_to_both() -> None:
    rows = [("a", ["x", "y"]), ("b", ["x", "z"]), ("c", []), ("d", ["x"])]
    text = from_rows(rows, "rows", multi_label=True)
    kept, notes = comparison._keep_shared_labels(["x", "y", "z"], ["x", "y"], text)
    assert kept.texts == ["a", "c", "d"]
    assert notes[1] == "left out: 1 of 4 rows (not both models know 'z')"


def test_both_are_compared_in_the_form_that_they_write(
    command: Command,
    tiny_folder: Path,
    other: Path,
    write_pairs: Callable[[int], str],
    decomposed: Callable[[int], str],
) -> None:
    composed, found = (
        json.loads(
            command(
                "compare", tiny_folder, other, data, "--json", "--train", data
            ).lines[0]
        )
        for data in (write_pairs(90), decomposed(90))
    )
    assert found["figures"] == composed["figures"]
    assert found["groups"] == composed["groups"]
    assert any("were brought to NFC, as" in note for note in found["notes"])
    assert not any("were brought to" in note for note in composed["notes"])


def test_models_of_two_forms_are_compared_on_equal_terms(
    command: Command,
    tiny_folder: Path,
    decomposed: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
) -> None:
    """A model that writes its text as it was given writes `ö` as two code points here."""
    data = decomposed(216)
    settings = (
        *tiny_settings,
        "tokenizer.unicode=raw",
        "model.d_model=32",
        "training.max_steps=120",
        "training.eval_every=60",
    )
    raw = tmp_path / "raw"
    weft.train(out=raw, train=data, settings=settings, quiet=True)
    found = json.loads(command("compare", tiny_folder, raw, data, "--json").lines[0])
    bleu, _ = found["figures"]
    alone = [
        json.loads(command("evaluate", folder, data, "--json").lines[0])["bleu"]
        for folder in (tiny_folder, raw)
    ]
    assert [bleu["first"], bleu["second"]] == pytest.approx(alone)
    assert min(alone) > 50
