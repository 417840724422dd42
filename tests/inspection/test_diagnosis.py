"""Models broken on purpose, each by one known cause, and healthy ones: what diagnose says of
them.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

import weft
from weft.config import SideSection
from weft.data.overlap import TextHashes
from weft.data.tokenizer import build_tokenizer
from weft.errors import DivergedError, FolderError, Interrupted
from weft.folder.model_folder import RunFolder
from weft.inspection.diagnosis import Cause, Run, diagnose, explain_run, sampling
from weft.inspection.diagnosis.data import labels_with_few_rows
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.labelling import LabelCount, count_labels
from weft.inspection.diagnosis.model import (
    labels_missed_in_run,
    out_of_balance,
)
from weft.inspection.diagnosis.ranking import CAUSES
from weft.inspection.diagnosis.training import (
    ended_early,
    few_of_usual_steps,
    few_passes,
    long_warm_up,
    longer,
    not_learning,
)
from weft.inspection.diagnosis.use import contaminated_test, unknown_words
from weft.inspection.diagnosis.weights import BETWEEN, LESS, TABLE, Weighing
from weft.inspection.history import History, read_history
from weft.inspection.probe import Probe
from weft.kernels.machine import Machine
from weft.predict.prediction import Prediction
from weft.tasks.choice import load_trainable
from weft.tasks.task import training_hashes
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.training.budget import TimePlan, more_steps

Pair = tuple[str, str]

PLAIN = Machine("cpu", "float32", 1, "tests are small")
PLAIN_RUN = (
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
OTHER_WORDS = ("stone", "river", "cloud", "bread", "light", "house")


def shifted(pairs: list[Pair]) -> list[Pair]:
    """Every target one line too low."""
    return [(a, pairs[i - 1][1]) for i, (a, _) in enumerate(pairs)]


def with_one_target(pairs: list[Pair]) -> list[Pair]:
    """Most sources with the same target."""
    return [
        (a, b if i % 8 == 0 else "Maus mag Maus.") for i, (a, b) in enumerate(pairs)
    ]


def running_on(pairs: list[Pair]) -> list[Pair]:
    """Targets that never end where their sentence does."""
    return [(a, f"{b} {b}") for a, b in pairs]


def cut_off(pairs: list[Pair]) -> list[Pair]:
    """Targets of one word."""
    return [(a, b.split()[0]) for a, b in pairs]


def stammering(pairs: list[Pair]) -> list[Pair]:
    """Targets that say their last word seven times."""
    return [
        (a, " ".join([*b.rstrip(".").split(), *b.rstrip(".").split()[-1:] * 6]))
        for a, b in pairs
    ]


def few(pairs: list[Pair]) -> list[Pair]:
    """Hardly any pairs."""
    return pairs[:8]


def exchanged(pairs: list[Pair]) -> list[Pair]:
    """Each side where the other belongs."""
    return [(b, a) for a, b in pairs]


def of_other_words(pairs: list[Pair]) -> list[Pair]:
    """Sources of words that stand nowhere in training."""
    return [
        (f"{OTHER_WORDS[i % 6]} {OTHER_WORDS[i % 5]}", b)
        for i, (_, b) in enumerate(pairs)
    ]


def of_two_sentences(pairs: list[Pair]) -> list[Pair]:
    """Each pair twice in one line."""
    return [(f"{a} {a}", f"{b} {b}") for a, b in pairs]


def as_they_are(pairs: list[Pair]) -> list[Pair]:
    """The text itself."""
    return pairs


@dataclass(frozen=True)
class Broken:
    """A translator spoilt by what it was trained on or with, and what it is tried with."""

    train: Callable[[list[Pair]], list[Pair]] = as_they_are
    steps: int = 150
    settings: Sequence[str] = ()
    tried_with: Callable[[list[Pair]], list[Pair]] = as_they_are


BROKEN = {
    "too-few-steps": Broken(steps=8),
    "not-learning": Broken(steps=80, settings=["training.learning_rate=1e-7"]),
    "over-fitting": Broken(few),
    "too-little-text": Broken(few, steps=40),
    "source-ignored": Broken(shifted),
    "one-translation": Broken(with_one_target),
    "no-end-symbol": Broken(running_on),
    "repetition": Broken(stammering),
    "too-short": Broken(cut_off),
    "cut-at-limit": Broken(
        settings=["decoding.max_len_ratio=0.4", "decoding.max_len_extra=0"]
    ),
    "wrong-direction": Broken(tried_with=exchanged),
    "unknown-words": Broken(tried_with=of_other_words),
    "longer-than-read": Broken(
        settings=["data.max_len=5"], tried_with=of_two_sentences
    ),
}
# pushed are one cause of each kind: each trains a model of its own
LONG = {
    "longer-than-read",
    "no-end-symbol",
    "one-translation",
    "over-fitting",
    "too-short",
    "too-little-text",
    "unknown-words",
}
HELD_OUT = {"wrong-direction", "unknown-words", "longer-than-read"}
OF_RUNS = {
    "too-few-steps",
    "not-learning",
    "unstable",
    "over-fitting",
    "too-little-text",
}


def write(path: Path, pairs: list[Pair]) -> str:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    return str(path)


@pytest.fixture(scope="module")
def parts(write_pairs: Callable[[int], str]) -> tuple[list[Pair], ...]:
    """Pairs for training, for dev and to try the model with."""
    lines = Path(write_pairs(216)).read_text().split("\n")[:-1]
    Random(1).shuffle(lines)
    pairs = [(src, tgt) for src, tgt in (line.split("\t") for line in lines)]
    return pairs[:170], pairs[170:186], pairs[186:]


def codes(causes: list[Cause]) -> list[str]:
    return [cause.code for cause in causes]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, marks=pytest.mark.long) if code in LONG else code
        for code in BROKEN
    ],
)
def test_names_the_cause_of_a_broken_translator(
    code: str,
    tmp_path: Path,
    parts: tuple[list[Pair], ...],
    tiny_settings: tuple[str, ...],
) -> None:
    broken = BROKEN[code]
    train, dev, data = parts
    weft.train(
        out=tmp_path / "model",
        train=write(tmp_path / "train.en-de.tsv", broken.train(train)),
        dev=write(tmp_path / "dev.en-de.tsv", broken.train(dev)),
        settings=(
            *tiny_settings,
            "model.d_model=32",
            f"training.max_steps={broken.steps}",
            f"training.eval_every={max(broken.steps // 6, 1)}",
            "data.test_size=0",
            *broken.settings,
        ),
        allow_bad_data=True,
        quiet=True,
    )
    found = diagnose(
        tmp_path / "model",
        [write(tmp_path / "x.en-de.tsv", broken.tried_with(data))],
        PLAIN,
    )
    assert code in codes(found)
    assert all(cause.evidence and cause.remedy for cause in found)
    if code == "repetition":
        (cause,) = (cause for cause in found if cause.code == code)
        assert "nats of a token that repeats" in cause.evidence
    if code in HELD_OUT:
        assert not OF_RUNS & set(codes(found)), (
            "the run is sound: only the text is another"
        )
        assert diagnose(tmp_path / "model", [], PLAIN) == []


def test_names_a_text_that_was_trained_on(
    tiny_folder: Path, write_pairs: Callable[[int], str]
) -> None:
    (cause,) = diagnose(tiny_folder, [write_pairs(216)], PLAIN)
    assert cause.code == "contaminated-test"
    assert "of 216 pairs" in cause.evidence
    assert "contaminated" not in cause.evidence, "its code says it"


def test_few_known_rows_are_no_cause_of_a_score(
    tiny_folder: Path, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    """Up to one row in a hundred, as weft check has it; but one long row is much of a text."""
    known = Path(write_pairs(216)).read_text().split("\n")[0]
    new = [f"der Tag {i}.\tthe day {i}." for i in range(198)]

    def found(*rows: str) -> list[str]:
        given = tmp_path / "x.en-de.tsv"
        given.write_text("".join(f"{row}\n" for row in [*rows, *new]))
        return codes(diagnose(tiny_folder, [str(given)], PLAIN))

    hashes = training_hashes(tiny_folder)
    assert hashes is not None
    assert hashes.shared([known.split("\t")]) == [0]
    assert "contaminated-test" not in found(known)
    assert "contaminated-test" in found(*[known] * 3)


def test_one_long_document_that_was_trained_on_is_much_of_a_text(
    tmp_path: Path,
) -> None:
    folder, data = train_language_model(tmp_path, 12)
    new = Path(data).read_text()
    hashes = TextHashes.of([("known" * 100,)])
    for known, is_found in (("known" * 100, True), ("unknown" * 100, False)):
        text = TrainableLanguageModelling.load(folder, PLAIN)
        Path(data).write_text("\n\n".join([known, *[new] * 9]))
        read = text.read([data])
        assert len(read) > 100
        evidence = Evidence(text, Run.of(folder), read, hashes)
        cause = contaminated_test(evidence)
        assert (cause is not None) == is_found
        if cause is not None:
            assert cause.evidence.endswith("; loss and perplexity are too low")


def test_a_model_of_one_target_is_not_taken_for_one_of_the_other_direction(
    tmp_path: Path, parts: tuple[list[Pair], ...], tiny_settings: tuple[str, ...]
) -> None:
    train, _, data = parts
    joint = ("tokenizer.joint=true", "tokenizer.src.kind=bpe", "tokenizer.tgt.kind=bpe")
    weft.train(
        out=tmp_path / "model",
        train=write(
            tmp_path / "train.en-de.tsv", [(a, "Maus mag Maus.") for a, _ in train]
        ),
        settings=(
            *tiny_settings,
            *joint,
            "training.max_steps=100",
            "data.dev_size=0",
            "data.test_size=0",
        ),
        allow_bad_data=True,
        quiet=True,
    )
    found = codes(
        diagnose(tmp_path / "model", [write(tmp_path / "x.en-de.tsv", data)], PLAIN)
    )
    assert "one-translation" in found
    assert "wrong-direction" not in found
    (cause,) = diagnose(tmp_path / "model", [], PLAIN)
    assert cause.code == "not-judged"
    assert "no dev or test text" in cause.evidence


@pytest.mark.parametrize(("exchanged", "is_wrong"), [(5.82, False), (1.2, True)])
def test_only_a_clear_difference_tells_the_direction_and_hides_nothing_else(
    exchanged: float,
    is_wrong: bool,
    tiny_folder: Path,
    parts: tuple[list[Pair], ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = parts[2]
    sources = {a for a, _ in data}

    def loss(self: Probe) -> tuple[float, float]:
        return (6.36 if self.text.src[0] in sources else exchanged), 0.9

    monkeypatch.setattr(Probe, "loss_and_end", property(loss))
    answer_with(monkeypatch, "Maus.")
    found = codes(diagnose(tiny_folder, [write(tmp_path / "x.en-de.tsv", data)], PLAIN))
    assert ("wrong-direction" in found) == is_wrong
    assert "one-translation" in found


def test_a_run_that_ended_in_its_warm_up_had_too_few_steps(
    tmp_path: Path, parts: tuple[list[Pair], ...], tiny_settings: tuple[str, ...]
) -> None:
    train, dev, data = parts
    weft.train(
        out=tmp_path / "model",
        train=write(tmp_path / "train.en-de.tsv", train),
        dev=write(tmp_path / "dev.en-de.tsv", dev),
        settings=(
            *tiny_settings,
            "training.max_steps=20",
            "training.warmup_steps=4000",
            "data.test_size=0",
        ),
        quiet=True,
    )
    found = diagnose(tmp_path / "model", [write(tmp_path / "x.en-de.tsv", data)], PLAIN)
    assert found[0].code == "too-few-steps"
    assert "the warm-up (4,000) takes 20 of the 20 steps" in found[0].evidence
    assert found[0].remedy.endswith("--set training.warmup_steps=4")
    assert "long-warm-up" not in codes(found)
    blaming_else = {
        "not-learning",
        "knows-nothing-of-this",
        "source-ignored",
        "no-end-symbol",
    }
    assert not blaming_else & set(codes(found))


def answer_with(monkeypatch: pytest.MonkeyPatch, text: str, **marks: Any) -> None:
    """Let translators say the same of everything."""

    def answers(self: Probe) -> list[Prediction]:
        return [Prediction(text, 0.0, 1, [], [], **marks) for _ in self.text.src]

    monkeypatch.setattr(Probe, "predictions", property(answers))


def causes_of(folder: Path, *data: str) -> dict[str, Cause]:
    return {
        cause.code: cause
        for cause in diagnose(folder, data, PLAIN)
        if cause.code != "contaminated-test"
    }


def test_empty_translations_are_named_as_such(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_with(monkeypatch, "")
    found = causes_of(tiny_folder, write_pairs(40))
    assert not {"one-translation", "too-short", "too-long"} & found.keys()
    assert "40 of 40" in found["empty-translations"].evidence


def test_references_are_as_long_as_the_model_would_write_them(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter and its dots apart are two characters, and one in the translations."""
    answer_with(monkeypatch, "ö" * 20)
    target = "o\u0308" * 20
    rows = "".join(f"a text {i}\t{target}\n" for i in range(30))
    path = tmp_path / "pairs.en-de.tsv"
    path.write_text(rows, "utf-8")
    assert not {"too-short", "too-long"} & causes_of(tiny_folder, str(path)).keys()


def test_a_source_that_was_cut_is_no_translation_that_was(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = write_pairs(40)
    answer_with(monkeypatch, "Maus.", source_cut=True)
    assert "cut-at-limit" not in causes_of(tiny_folder, pairs)
    answer_with(monkeypatch, "Maus.", output_limit="decoding.max_len_ratio")
    cause = causes_of(tiny_folder, pairs)["cut-at-limit"]
    assert "40 of 40 translations were cut at 2 times the tokens" in cause.evidence
    assert "a larger decoding.max_len_ratio" in cause.remedy
    answer_with(monkeypatch, "Maus.", output_limit="model.max_len")
    cause = causes_of(tiny_folder, pairs)["cut-at-limit"]
    # one of the positions is for bos
    num_positions = json.loads((tiny_folder / "config.json").read_text())["model"][
        "max_len"
    ]
    where = f"were cut at the {num_positions - 1:,} tokens that the model can write"
    assert cause.evidence.endswith(where)
    assert "a larger model.max_len" in cause.remedy


def test_advises_nothing_that_is_set_already(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_with(monkeypatch, "Maus.")
    cause = causes_of(tiny_folder, write_pairs(40))["too-short"]
    assert "length_penalty is 1, its beam_size 5" in cause.evidence
    assert "--length-penalty above 1" in cause.remedy
    assert "--beam-size" not in cause.remedy


def test_shows_no_text_that_breaks_off_inside_characters(
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_with(monkeypatch, "\ufffd" * 9)
    cause = causes_of(tiny_folder, write_pairs(40))["one-translation"]
    assert "40 of 40" in cause.evidence
    assert "\ufffd" not in cause.evidence


def test_says_that_few_rows_tell_little(
    tiny_folder: Path, write_pairs: Callable[[int], str]
) -> None:
    found = diagnose(tiny_folder, [write_pairs(3)], PLAIN)
    assert found[-1].code == "few-rows-given"
    assert "3 pairs" in found[-1].evidence


def test_names_how_a_run_ended_that_left_no_model(
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = (*tiny_settings, "training.max_steps=20", "data.test_size=0")
    broken = (*settings, "training.learning_rate=1e30")
    with pytest.raises(DivergedError):
        weft.train(
            out=tmp_path / "diverged",
            train=write_pairs(90),
            settings=broken,
            quiet=True,
        )
    (cause,) = diagnose(tmp_path / "diverged", [], PLAIN)
    assert cause.code == "diverged"
    assert "learning_rate" in cause.remedy

    def stop(*_: object) -> None:
        raise Interrupted("stopped by SIGINT")

    monkeypatch.setattr("weft.training.trainer.Trainer.run", stop)
    with pytest.raises(Interrupted):
        weft.train(
            out=tmp_path / "unfinished",
            train=write_pairs(90),
            settings=settings,
            quiet=True,
        )
    (cause,) = diagnose(tmp_path / "unfinished", [], PLAIN)
    assert cause.code == "unfinished"
    assert "stopped by SIGINT" in cause.evidence
    with pytest.raises(FolderError):
        diagnose(tmp_path, [], PLAIN)


def train_classifier(here: Path, rare_share: int) -> tuple[Path, str]:
    """A model of texts whose last word says their label, one in `rare_share` of which is "no"; and
    even data.
    """
    words = [f"the {a} {b} was" for a, b in product(OTHER_WORDS, repeat=2)]
    rows = [
        (f"{text} {'bad' if i % rare_share == 0 else 'good'}", i % rare_share == 0)
        for i, text in enumerate(words)
    ]
    even = [
        (f"then {text} {'bad' if i % 2 else 'good'}", bool(i % 2))
        for i, text in enumerate(words)
    ]
    for name, some in ("train", rows * 6), ("data", even):
        lines = [
            f"{text}{i // 36},{'no' if no else 'yes'}\n"
            for i, (text, no) in enumerate(some)
        ]
        (here / f"{name}.csv").write_text("text,label\n" + "".join(lines))
    shape = (
        "model.d_model=16",
        "model.d_ff=24",
        "model.num_heads=2",
        "model.num_encoder_layers=0",
    )
    steps = (
        "training.max_steps=60",
        "training.learning_rate=0.02",
        "training.warmup_steps=5",
        "data.dev_size=20",
    )
    settings = ("task=classification", "data.test_size=0", *PLAIN_RUN, *shape, *steps)
    weft.train(
        out=here / "model",
        train=str(here / "train.csv"),
        settings=settings,
        quiet=True,
        allow_bad_data=True,
    )
    return here / "model", str(here / "data.csv")


def train_language_model(here: Path, steps: int, warmup: int = 5) -> tuple[Path, str]:
    sentences = [
        f"the {a} {b} was {c}."
        for a, b, c in product(OTHER_WORDS, OTHER_WORDS, ("warm", "cold", "new"))
    ]
    Random(2).shuffle(sentences)
    (here / "train.txt").write_text("\n\n".join(sentences[:90]))
    (here / "data.txt").write_text("\n\n".join(sentences[90:]))
    shape = (
        "model.d_model=24",
        "model.d_ff=48",
        "model.num_heads=2",
        "model.num_decoder_layers=1",
    )
    of_text = (
        "tokenizer.kind=character",
        "batches.window_len=30",
        "batches.batch_size=8",
    )
    schedule = (
        "training.learning_rate=0.01",
        f"training.warmup_steps={warmup}",
        f"training.max_steps={steps}",
    )
    settings = (
        "task=language-modelling",
        *PLAIN_RUN,
        *shape,
        *of_text,
        *schedule,
        f"training.eval_every={max(steps // 6, 1)}",
    )
    weft.train(
        out=here / "model", train=str(here / "train.txt"), settings=settings, quiet=True
    )
    return here / "model", str(here / "data.txt")


def test_names_a_classifier_with_one_answer(tmp_path: Path) -> None:
    folder, data = train_classifier(tmp_path, 1000)
    assert codes(diagnose(folder, [data], PLAIN))[0] == "one-label"


def train_three_labels(here: Path, *settings: str) -> tuple[Path, str]:
    """A model of texts in which a word, now and then missing, says one of three labels; and such
    data.
    """
    draw = Random(3)

    def rows(count: int) -> list[tuple[str, str]]:
        found = []
        for number in range(count):
            # 4, 4 and 2 of 10
            label = ("red", "green", "blue")[min(number % 10 // 4, 2)]
            words = draw.choices(OTHER_WORDS, k=4)
            words[draw.randrange(4)] = label if draw.random() < 0.6 else "grey"
            found.append((" ".join([*words, f"n{number}"]), label))
        return found

    for name, some in (("train", rows(300)), ("data", rows(120))):
        lines = "".join(f"{text},{label}\n" for text, label in some)
        (here / f"{name}.csv").write_text("text,label\n" + lines)
    shape = ("model.d_model=16", "model.num_encoder_layers=0", "tokenizer.kind=word")
    steps = (
        "training.max_steps=80",
        "training.learning_rate=0.02",
        "training.warmup_steps=5",
        "data.dev_size=20",
    )
    weft.train(
        out=here / "model",
        train=str(here / "train.csv"),
        settings=(
            "task=classification",
            "data.test_size=0",
            *PLAIN_RUN,
            *shape,
            *steps,
            *settings,
        ),
        quiet=True,
        allow_bad_data=True,
    )
    return here / "model", str(here / "data.csv")


def test_names_weights_that_make_a_label_be_named_everywhere(tmp_path: Path) -> None:
    folder, data = train_three_labels(
        tmp_path, "training.class_weights={red=1.0, green=1.0, blue=60.0}"
    )
    cause = causes_of(folder, data)["labels-out-of-balance"]
    assert '"blue" is named' in cause.evidence
    assert "is the label of 24 of 120 rows" in cause.evidence
    assert cause.remedy == f'train with {TABLE}: that of "blue" is larger now'


def test_a_run_without_dev_writes_down_the_rows_of_its_labels(tmp_path: Path) -> None:
    folder, _ = train_three_labels(
        tmp_path, "data.dev_size=0", "training.max_steps=2", "training.warmup_steps=0"
    )
    verdict = Run.of(folder).verdict
    assert verdict is not None
    rows = verdict["judgement"]["figures"]["rows"]
    assert rows == {"red": 120, "green": 120, "blue": 60}


def balance_of(
    given: Sequence[Sequence[str]],
    wanted: Sequence[Sequence[str]],
    weights: Any = None,
    rows: dict[str, int] | None = None,
) -> Cause | None:
    """Without `rows` of training those of the text are a guess."""
    counts = count_labels(given, wanted)
    guess = {count.label: count.wanted for count in counts}
    return out_of_balance(
        counts, len(wanted), Weighing(rows or guess, bool(rows), weights)
    )


def test_names_a_frequent_label_that_wins_where_nothing_is_seen() -> None:
    """By hand: of 40 rows 24 are red and 16 blue; red is named 38 times."""
    wanted = [["red"]] * 24 + [["blue"]] * 16
    given = [["red"]] * 38 + [["blue"]] * 2
    cause = balance_of(given, wanted)
    assert cause is not None
    assert cause.evidence == (
        '"red" is named 38 times and is the label of 24 of 40 rows, "blue" is named 2 times and is the label of 16'
    )
    assert "class_weights=balanced" in cause.remedy
    cause = balance_of(wanted, given)
    assert cause is not None
    assert "weft check" in cause.remedy
    assert "class_weights" not in cause.remedy


@pytest.mark.parametrize(
    ("weights", "remedy", "turned_remedy"),
    [
        ("balanced", f"train with {TABLE}: balanced is", f"train with {LESS} than"),
        (
            {"red": 1.0, "blue": 3.0},
            f"train with {TABLE}: those of now are too mild",
            'train on more rows with the label "red"',
        ),
        (
            {"red": 1.0, "blue": 10.0},
            'train on more rows with the label "blue"',
            f"train with {BETWEEN}",
        ),
        (
            {"red": 1.0, "blue": 30.0},
            'train on more rows with the label "blue"',
            f'train with {TABLE}: that of "blue" is larger now',
        ),
    ],
)
def test_weights_that_are_too_mild_are_not_taken_back(
    weights: Any, remedy: str, turned_remedy: str
) -> None:
    """Red has ten times the rows in training, and is named too often although blue weighs more; or
    the other way round.
    """
    wanted = [["red"]] * 20 + [["blue"]] * 20
    given = [["red"]] * 35 + [["blue"]] * 5
    rows = {"red": 50, "blue": 5}
    cause = balance_of(given, wanted, weights, rows)
    assert cause is not None
    assert cause.remedy.startswith(remedy)
    turned = balance_of(wanted, given, weights, rows)
    assert turned is not None
    assert turned.remedy.startswith(turned_remedy)


def test_labels_that_are_one_are_named_before_weights_are_advised() -> None:
    wanted = [["Billing"]] * 24 + [["billing "]] * 16
    given = [["Billing"]] * 38 + [["billing "]] * 2
    cause = balance_of(given, wanted)
    assert cause is not None
    assert (
        cause.remedy
        == "first unify labels that mean the same: 'Billing' and 'billing '"
    )


def test_names_labels_that_are_alike_and_those_that_dev_or_the_text_lacks(
    tmp_path: Path,
) -> None:
    draw, words = Random(1), {"order": "late", "Order": "lost", "return": "send"}
    rows = [
        (" ".join([*draw.choices(OTHER_WORDS, k=3), words[label]]), label)
        for label in words
        for _ in range(90)
    ]
    rows.append(("hello there", "greeting"))
    path, few = tmp_path / "train.csv", tmp_path / "few.csv"
    path.write_text(
        "text,label\n"
        + "".join(f"{text} {i},{label}\n" for i, (text, label) in enumerate(rows))
    )
    few.write_text(
        "text,label\n" + "".join(f"we send it {i},return\n" for i in range(30))
    )
    shape = (
        "task=classification",
        "model.d_model=16",
        "model.num_encoder_layers=0",
        "tokenizer.kind=word",
    )
    steps = (
        "training.max_steps=30",
        "training.learning_rate=0.02",
        "training.warmup_steps=5",
        "data.dev_size=30",
    )
    settings = (*shape, *steps, *PLAIN_RUN, "data.test_size=0")
    weft.train(out=tmp_path / "model", train=str(path), settings=settings, quiet=True)
    by_run, with_text = (
        causes_of(tmp_path / "model"),
        causes_of(tmp_path / "model", str(few)),
    )
    for found in (by_run, with_text):
        assert "'Order' and 'order'" in found["label-variants"].evidence
        assert "unify them" in found["label-variants"].remedy
    assert (
        "dev text has no row of 'greeting' (1 of 4 labels)"
        in by_run["labels-not-judged"].evidence
    )
    assert (
        "the text has no row of 'Order', 'greeting', 'order' (3 of 4"
        in with_text["labels-not-judged"].evidence
    )


def test_a_label_is_missed_where_none_or_hardly_one_of_its_rows_gets_it() -> None:
    """By hand: rows of a label, how many are given it, and how many rightly."""
    cases = {
        (3, 0, 0): True,
        (2, 0, 0): False,
        (4, 1, 0): False,
        (5, 1, 0): True,
        (10, 1, 1): True,
        (10, 2, 2): False,
        (0, 9, 0): False,
    }
    for (wanted, given, right), is_missed in cases.items():
        assert LabelCount("a", wanted, given, right).is_missed == is_missed
    rows = count_labels([["a"], ["a", "b"], [], ["c"]], [["a"], ["b"], ["b"], ["b"]])
    assert rows == [
        LabelCount("a", 1, 2, 1),
        LabelCount("b", 3, 1, 1),
        LabelCount("c", 0, 1, 0),
    ]
    assert [count.f1 for count in rows] == pytest.approx([2 / 3, 1 / 2, 0])


def test_names_labels_that_are_never_answered_though_accuracy_is_good(
    tmp_path: Path,
) -> None:
    """Of a text, of the run's test, or of its dev; and each of them only where it is so."""
    folder, data = train_classifier(tmp_path, 2)
    _, *lines = Path(data).read_text().strip().split("\n")
    texts = [line.rpartition(",")[0] for line in lines]
    answers = weft.load(folder).classify(texts)
    sure = [
        x for x, answer in zip(texts, answers, strict=True) if answer.label == "yes"
    ]
    rows = [f"{text},{'no' if i < 4 else 'yes'}\n" for i, text in enumerate(sure * 4)]
    assert len(rows) > 24
    Path(data).write_text("text,label\n" + "".join(rows))
    cause = causes_of(folder, data)["labels-missed"]
    assert ': "no" (0 of 4 rows right); rows in training: "no" ' in cause.evidence
    # as many as of the other label, whatever the text has
    assert cause.remedy.startswith("others do not have far more rows")

    task = load_trainable(folder, PLAIN)
    per_class = [
        {"label": "no", "recall": 0.0, "support": 6},
        {"label": "yes", "recall": 1.0, "support": 50},
    ]
    test = {"accuracy": 0.89, "macro_f1": 0.47, "num_absent": 0, "per_class": per_class}
    judgement = {"figures": {"never": ["no"]}}

    def cause_by(weights: Any = None, **verdict: Any) -> Cause | None:
        settings = {"training": {"class_weights": weights}}
        return labels_missed_in_run(Evidence(task, Run(verdict, settings, None, None)))

    cases = {
        "0 of 6 rows right": {"test": test},
        "never answered on dev": {"judgement": judgement},
    }
    for said, verdict in cases.items():
        of_run = cause_by(**verdict)
        assert of_run is not None
        assert of_run.evidence.endswith(f': "no" ({said})')
    right = {**test, "per_class": [{**per_class[0], "recall": 0.5}, per_class[1]]}
    assert cause_by(test=right, judgement=judgement) is None
    mild = cause_by("balanced", test=test)
    assert mild is not None
    assert "inverse of its rows: balanced is too mild here" in mild.remedy
    alike = {**test, "per_class": [per_class[0], {**per_class[1], "support": 7}]}
    known = {"judgement": {"figures": {"rows": {"no": 60, "yes": 70}}}}
    heavy = {"no": 1.0, "yes": 9.0}
    for weights, figures, remedy in (
        (None, {}, "if others have far more rows in the training text (weft check"),
        ("balanced", {}, "if others have far more rows in the training text (weft"),
        (None, known, "others do not have far more rows"),
        (heavy, known, "train without training.class_weights (a table now)"),
        (heavy, {}, f"train with {LESS} than now"),
    ):
        other = cause_by(weights, test=alike, **figures)
        assert other is not None
        assert other.remedy.startswith(remedy)


def test_a_classifier_is_poor_by_macro_f1_too(tmp_path: Path) -> None:
    """By hand: of two labels 1/2 + 1/4 of the other half, 0.625, is a quarter of the gain."""
    folder, _ = train_classifier(tmp_path, 2)
    task = load_trainable(folder, PLAIN)
    for macro_f1, is_poor in ((0.62, True), (0.63, False)):
        for part in (
            {"test": {"accuracy": 0.9, "macro_f1": macro_f1, "num_absent": 0}},
            {"dev": {"dev_accuracy": 0.9, "dev_macro_f1": macro_f1}},
        ):
            run = Run(part, None, None, None)
            assert Evidence(task, run).is_poor_by_run == is_poor


def test_labels_that_are_mixed_up_in_equal_measure_are_in_balance(
    tmp_path: Path,
) -> None:
    wanted = [["red"]] * 20 + [["blue"]] * 20
    given = [["red"], ["blue"]] * 20
    assert balance_of(given, wanted) is None
    folder, data = train_three_labels(tmp_path)
    assert "labels-out-of-balance" not in causes_of(folder, data)


def test_names_a_language_model_that_was_hardly_trained(tmp_path: Path) -> None:
    folder, data = train_language_model(tmp_path, 12)
    assert codes(diagnose(folder, [data], PLAIN)) == ["too-few-steps"]
    assert codes(diagnose(folder, [], PLAIN)) == ["too-few-steps"]


@pytest.mark.long
@pytest.mark.parametrize(("steps", "warmup"), [(5, 0), (5, 100), (40, 4000)])
def test_a_language_model_of_few_steps_is_not_said_to_learn_nothing(
    steps: int, warmup: int, tmp_path: Path
) -> None:
    folder, data = train_language_model(tmp_path, steps, warmup)
    assert codes(diagnose(folder, [data], PLAIN)) == ["too-few-steps"]


def test_a_long_document_is_tried_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, data = train_language_model(tmp_path, 12)
    read: list[str] = []
    evaluate = TrainableLanguageModelling.evaluate
    monkeypatch.setattr(
        TrainableLanguageModelling,
        "evaluate",
        lambda task, text: read.extend(text.texts) or evaluate(task, text),
    )
    monkeypatch.setattr(sampling, "MOST_CHARACTERS", 100)
    sentences = Path(data).read_text().split("\n\n")
    diagnose(folder, [data], PLAIN)
    assert read == [sentence[: 100 // len(sentences)] for sentence in sentences]


def test_names_labels_that_the_model_does_not_know(tmp_path: Path) -> None:
    folder, data = train_classifier(tmp_path, 2)
    lines = Path(data).read_text().replace(",no", ",de").split("\n")
    some = tmp_path / "some.csv"
    some.write_text("\n".join(lines))
    (cause,) = diagnose(folder, [str(some)], PLAIN)
    assert cause.code == "unknown-labels"
    assert "'de' (18 rows" in cause.evidence
    none = tmp_path / "none.csv"
    none.write_text(
        some.read_text().replace(",yes", ",en").replace("bread", "Brötchen überhaupt")
    )
    found = causes_of(folder, str(none))
    assert "1 other label" in found["unknown-labels"].evidence
    assert "one-label" not in found


def test_does_not_advise_the_kind_of_tokenizer_that_the_model_has(
    tmp_path: Path,
) -> None:
    folder, data = train_classifier(tmp_path, 2)
    rows = "".join(
        f"Grüße über Überdruß №{i},{'no' if i % 2 else 'yes'}\n" for i in range(30)
    )
    Path(data).write_text(f"text,label\n{rows}")
    cause = causes_of(folder, data)["unknown-words"]
    assert "the tokenizer (bpe" in cause.evidence
    assert "kind=bpe" not in cause.remedy
    # of whose bytes most are spelled; of a text with many rare words that is not asked
    assert cause.remedy.endswith(
        "is this another language than the model was trained on?"
    )


def test_the_language_is_asked_for_only_where_hardly_a_word_is_known() -> None:
    settings = SideSection(kind="word", vocab_size=400)
    tokenizer = build_tokenizer(settings, ["the dog saw a warm house"] * 9)
    remedies = []
    for text in ("the dog saw a warm house quickly", "Grüße Überdruß Straße"):
        task = SimpleNamespace(sides=lambda text: [("text", tokenizer, text)])
        evidence = SimpleNamespace(given=[text], text=[text], task=task)
        remedies.append(unknown_words(evidence).remedy)
    rare, foreign = remedies
    assert rare.startswith("train with tokenizer.kind=bpe")
    assert "language" not in rare
    assert (
        foreign == f"{rare}; or is this another language than the model was trained on?"
    )


def test_finds_nothing_in_a_healthy_translator(
    tmp_path: Path, parts: tuple[list[Pair], ...], tiny_settings: tuple[str, ...]
) -> None:
    train, dev, data = (
        write(tmp_path / f"{i}.en-de.tsv", some) for i, some in enumerate(parts)
    )
    settings = (
        *tiny_settings,
        "model.d_model=32",
        "training.max_steps=150",
        "data.test_size=0",
    )
    weft.train(
        out=tmp_path / "model", train=train, dev=dev, settings=settings, quiet=True
    )
    assert diagnose(tmp_path / "model", [data], PLAIN) == []
    assert diagnose(tmp_path / "model", [], PLAIN) == []


def test_finds_nothing_in_a_healthy_classifier(tmp_path: Path) -> None:
    folder, data = train_classifier(tmp_path, 2)
    assert diagnose(folder, [data], PLAIN) == diagnose(folder, [], PLAIN) == []


def test_finds_nothing_in_a_healthy_language_model(tmp_path: Path) -> None:
    folder, data = train_language_model(tmp_path, 240)
    assert diagnose(folder, [data], PLAIN) == diagnose(folder, [], PLAIN) == []


def test_the_warm_up_of_a_run_by_the_clock_is_its_plans(tmp_path: Path) -> None:
    files = RunFolder(tmp_path)
    files.folder.mkdir()
    files.recipe.write_text(
        '{"recipe": {"training": {"warmup_steps": 400, "learning_rate": 0.001}}}'
    )
    assert Run.of(tmp_path).training["warmup_steps"] == 400
    assert Run.of(tmp_path).time_plan is None
    plan = TimePlan(2.0, None, 10, 10, 45, 0.002, 97)
    files.plan.write_text(json.dumps(asdict(plan)))
    # the plan's rate is that of noam's peak, and the recipe's is what may be set
    assert Run.of(tmp_path).training == {"warmup_steps": 45, "learning_rate": 0.001}
    assert Run.of(tmp_path).time_plan == plan
    # a number of steps has taken the place of the minutes
    files.recipe.write_text('{"recipe": {"training": {"max_steps": 194}}}')
    assert Run.of(tmp_path).time_plan is None


@pytest.mark.parametrize(
    ("epoch", "times"),
    [(0, "once"), (1, "2 times"), (4, "5 times"), (5, ""), (None, "")],
)
def test_a_run_of_few_passes_had_too_few_steps(
    tmp_path: Path, epoch: int | None, times: str
) -> None:
    """Where the learning rate has decayed, its losses fall no more and say nothing."""
    lines = [
        {"step": step, "loss": loss, "epoch": epoch}
        for step, loss in ((50, 6.0), (100, 5.9), (150, 5.88))
    ]
    metrics = RunFolder(tmp_path).metrics
    metrics.parent.mkdir(parents=True)
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = Run({"step": 150}, None, read_history(tmp_path), None)
    cause = few_passes(Evidence(Any, run))
    said = "" if cause is None else cause.evidence.rpartition("less than ")[2]
    assert said == times
    assert cause is None or cause.code == "few-passes"


def test_a_run_of_55_steps_that_has_learned_little_had_too_few(tmp_path: Path) -> None:
    """As of 3,000 pairs in two minutes: a loss that fell slowly, far from guessing and from use."""
    settings = {"training": {"warmup_steps": 11}}
    losses = {13: 6.9, 27: 6.35, 41: 6.26, 55: 6.2}

    def causes(scale: float, steps: int) -> list[str]:
        lines = [
            {"step": step, "dev_loss": loss * scale} for step, loss in losses.items()
        ]
        lines[-1]["step"] = steps
        run = Run({"step": steps}, settings, History(tmp_path, [], lines), None)
        cause = ended_early(run, math.log(6000), 7.0)
        return [] if cause is None else [cause.code]

    assert causes(1.0, 55) == ["too-few-steps"]
    assert causes(0.5, 55) == []  # it has learned much
    assert causes(1.0, 500) == []  # it had time


def test_a_run_that_has_to_start_over_is_told_so_in_one_cause(
    tiny_folder: Path,
) -> None:
    """Its loss still fell, and its warm-up took 100 of 120 steps: one remedy, that of both."""
    task = load_trainable(tiny_folder, PLAIN)
    run = replace(Run.of(tiny_folder), settings={"training": {"warmup_steps": 100}})
    (cause,) = (one for one in explain_run(task, run) if one.code != "too-little-text")
    assert cause.code == "too-few-steps"
    assert "the warm-up (100) takes 100 of the 120 steps" in cause.evidence
    assert "was still falling" in cause.evidence
    assert cause.remedy == (
        "start over: the same command with --fresh --set training.max_steps=240 "
        "--set training.warmup_steps=24"
    )


def test_a_shorter_warm_up_comes_with_a_smaller_factor_of_noam() -> None:
    """sqrt(20 / 4000), so that the peak rate stays."""
    training = {"schedule": "noam", "learning_rate": 1.0, "warmup_steps": 4000}
    run = Run({"step": 100, "max_steps": 100}, {"training": training}, None, None)
    options = "--set training.warmup_steps=20 --set training.learning_rate=0.0707"
    assert longer(run) == (
        f"start over: the same command with --fresh --set training.max_steps=200 {options}"
    )
    cause = long_warm_up(Evidence(Any, run))
    assert cause is not None
    assert cause.settings == {
        "training.warmup_steps": 10,
        "training.learning_rate": 0.05,
    }


@pytest.mark.parametrize(
    ("training", "losses", "remedy", "rate"),
    [
        ({}, (7.4, 7.35), "ten times that", 0.01),
        ({"schedule": "noam"}, (7.4, 7.35), "noam takes training.learning_rate", 1.0),
        ({}, (7.4, 9.9), "a tenth of that", 0.0001),
    ],
)
def test_what_did_not_learn_is_begun_anew_with_another_rate(
    tmp_path: Path,
    training: dict[str, Any],
    losses: tuple[float, float],
    remedy: str,
    rate: float,
) -> None:
    """Guessing has 7.31; a loss that falls by next to nothing is no reason for more steps."""
    curve = [(100, losses[0]), (200, losses[1])]
    settings = {"training": {"learning_rate": 0.001, "warmup_steps": 20, **training}}
    run = Run({"step": 200}, settings, History(tmp_path, curve, []), None)
    task = SimpleNamespace(loss_of_guessing=7.31, loss_untrained=7.5)
    cause = not_learning(Evidence(cast(Any, task), run))
    assert cause is not None
    assert remedy in cause.remedy
    assert cause.settings == {"training.learning_rate": rate}
    assert set(cause.to_json()) == {"code", "evidence", "remedy"}


def test_more_steps_are_not_advised_where_noams_factor_is_the_rate_of_others(
    tmp_path: Path,
) -> None:
    """The loss still falls, from above guessing, as it does of a new model."""
    lines = [{"step": 50 * i, "dev_loss": 9.0 - i / 2} for i in range(1, 5)]
    for schedule, expected in (("cosine", True), ("noam", False)):
        training = {"schedule": schedule, "learning_rate": 0.001, "warmup_steps": 20}
        history = History(tmp_path, [], lines)
        run = Run({"step": 200}, {"training": training}, history, None)
        assert bool(ended_early(run, 6.5, 9.0)) == expected


def test_a_run_by_the_clock_gets_a_number_of_steps(tiny_folder: Path) -> None:
    plan = TimePlan(2.0, 240, 10, 10, 5, 0.001, 120)
    run = replace(Run.of(tiny_folder), time_plan=plan)
    (cause, *_) = explain_run(load_trainable(tiny_folder, PLAIN), run)
    # 240 would leave it to the clock again
    assert cause.remedy == (
        "give the same command with --set training.max_steps=241 in place of --minutes; "
        "it continues where it ended, at a higher learning rate"
    )


@pytest.mark.parametrize(
    ("schedule", "is_higher"),
    [("cosine", True), ("wsd", True), ("noam", False), ("constant", False)],
)
def test_more_steps_say_whether_the_learning_rate_rises(
    schedule: str, is_higher: bool
) -> None:
    settings = {"training": {"schedule": schedule, "patience": 3}}
    run = Run({"step": 200, "max_steps": 200}, settings, None, None)
    rising = ", at a higher learning rate" if is_higher else ""
    assert longer(run) == (
        "give the same command with --set training.max_steps=400; "
        f"it continues where it ended{rising}"
    )
    # more patience alone changes no length
    verdict = {"step": 100, "max_steps": 200, "evaluations_since_best": 3}
    assert longer(replace(run, verdict=verdict)).endswith("where it ended")


def test_a_run_by_the_clock_goes_on_even_if_most_of_it_was_warm_up() -> None:
    """Its warm-up is the clock's, and --minutes would leave max_steps out."""
    plan = TimePlan(1.0, None, 10, 10, 29, 0.001, 57)
    settings = {"training": {"warmup_steps": 29}}
    run = Run({"step": 57, "max_steps": 57}, settings, None, None, plan)
    assert run.long_warmup
    assert longer(run) == (
        f"give the same command with --set training.max_steps={more_steps(plan, 57)} "
        "in place of --minutes; it continues where it ended, at a higher learning rate"
    )
    assert "--fresh" in longer(replace(run, time_plan=None))


def test_few_rows_of_a_label_and_few_steps_by_the_clock_are_told_without_text() -> None:
    figures = {"few_rows": {"lost": 2, "stolen": 7}}
    verdict = {"step": 58, "judgement": {"figures": figures}}
    plan = TimePlan(1.0, 700, 10, 10, 5, 0.01, 58)
    run = Run(verdict, None, None, None, plan)
    evidence = cast(Evidence, SimpleNamespace(run=run, given=None))
    rows, steps = labels_with_few_rows(evidence), few_of_usual_steps(evidence)
    assert rows is not None
    assert rows.evidence.endswith("of 'lost', 'stolen': 2 rows of the first")
    assert steps is not None
    assert "58 steps; without a time limit it would have 700" in steps.evidence
    assert "--set training.max_steps=701" in steps.remedy
    enough = replace(run, verdict={"step": 200})
    evidence = cast(Evidence, SimpleNamespace(run=enough, given=None))
    assert few_of_usual_steps(evidence) is None
    assert labels_with_few_rows(evidence) is None
    none = SimpleNamespace(run=Run(None, None, None, None), given=None)
    assert few_of_usual_steps(cast(Evidence, none)) is None
    assert {few_of_usual_steps, labels_with_few_rows} <= {*CAUSES}
