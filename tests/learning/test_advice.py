"""Advice is tried: a fault is planted, what is advised is followed, and what is measured gets
better.
"""

import csv
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from weft.data.check.finding import Finding
from weft.data.check.pairs import look_over
from weft.data.check.parts import examine_rows
from weft.data.check.rows import look_over_labelled
from weft.data.corpus import from_pairs
from weft.data.labelled import from_rows, read_labelled
from weft.errors import DivergedError
from weft.inspection.diagnosis import diagnose
from weft.kernels.machine import Machine
from weft.predict.translator import Translator
from weft.tasks.trainable_translation import TrainableTranslation

Row = tuple[str, str]
Pair = tuple[str, str]

PLAIN = Machine("cpu", "float32", 1, "tests are small")

PLAIN_RUN = (
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
)
CLASSIFIER = (
    "task=classification",
    "tokenizer.kind=word",
    "batches.batch_size=32",
    "model.d_model=16",
    "model.num_encoder_layers=0",
    "training.max_steps=150",
    "training.eval_every=150",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "data.dev_size=0",
    "data.test_size=0",
    *PLAIN_RUN,
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing from a second core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tickets(counts: Mapping[str, int], seed: int) -> list[Row]:
    """Texts of eight words: one or two of their topic's twelve, which also stand in other texts,
    among others.

    A label's topic is its name in small letters: a variant of a label has texts like the label's
    own.
    """
    draw, rows = random.Random(seed), []
    topics = sorted({label.lower() for label in counts})
    for label, count in counts.items():
        for _ in range(count):
            words = [f"word{draw.randrange(80)}" for _ in range(8)]
            for place in draw.sample(range(8), draw.choice([1, 2])):
                words[place] = f"{label.lower()}{draw.randrange(12)}"
            words[draw.randrange(8)] = f"{draw.choice(topics)}{draw.randrange(12)}"
            rows.append((" ".join(words), label))
    draw.shuffle(rows)
    return rows


def write_rows(path: Path, rows: Sequence[Row]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("text", "label"), *rows])
    return str(path)


def classify(folder: Path, train: str, test: str, *settings: str) -> dict[str, Any]:
    """The scores on `test` of a classifier trained on `train`."""
    found = weft.train(
        out=folder,
        train=train,
        test=test,
        settings=(*CLASSIFIER, *settings),
        quiet=True,
        allow_bad_data=True,
    )
    return dict(found.test)


def mean_recall(scores: Mapping[str, Any], labels: Sequence[str]) -> float:
    return sum(
        one["recall"] for one in scores["per_class"] if one["label"] in labels
    ) / len(labels)


def codes_of(path: str) -> dict[str, str]:
    """What the doctor says of rows: each finding's name and remedy."""
    return {
        finding.code: finding.remedy
        for finding in look_over_labelled(read_labelled([path], "text", "label"))
    }


OFTEN = {"billing": 400, "technical": 400, "outage": 90, "returns": 20}
VARIANTS = {"Billing": 8, "Outage": 2, "Technical": 5}


@pytest.mark.long
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_class_weights_help_rare_labels(tmp_path: Path, smoothing: float) -> None:
    """Four labels, one of them rare, once slips of the pen are written alike, as the doctor says
    first.
    """
    often, evenly = (
        list(OFTEN),
        {"billing": 120, "technical": 120, "outage": 60, "returns": 60},
    )
    slips = tickets({**OFTEN, **VARIANTS}, 1)
    assert (
        "first unify labels"
        in codes_of(write_rows(tmp_path / "slips.csv", slips))["imbalance"]
    )
    train = write_rows(
        tmp_path / "train.csv", [(text, label.lower()) for text, label in slips]
    )
    test = write_rows(tmp_path / "test.csv", tickets(evenly, 2))
    assert "training.class_weights=balanced" in codes_of(train)["imbalance"]
    smooth = f"training.label_smoothing={smoothing}"
    without = classify(tmp_path / "without", train, test, smooth)
    weighed = classify(
        tmp_path / "weighed", train, test, smooth, "training.class_weights=balanced"
    )
    assert weighed["accuracy"] > without["accuracy"] > 0.5
    assert mean_recall(weighed, often) > mean_recall(without, often) + 0.01


# Text to translate: what the doctor finds in it, mended as it says


NOUNS = {
    "cat": "Katze",
    "dog": "Ente",
    "bird": "Taube",
    "fish": "Forelle",
    "horse": "Stute",
    "mouse": "Maus",
}
VERBS = {
    "sees": "sieht",
    "hears": "hört",
    "finds": "findet",
    "likes": "mag",
    "knows": "kennt",
    "wants": "will",
}
ADJECTIVES = {"old": "alte", "new": "neue", "red": "rote", "big": "große"}
TRANSLATOR = (
    "model.d_model=32",
    "model.d_ff=48",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "tokenizer.joint=false",
    "tokenizer.src.kind=word",
    "tokenizer.tgt.kind=word",
    "batches.tokens_per_batch=600",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "training.eval_every=1000",
    "decoding.beam_size=1",
    "data.dev_size=0",
    "data.test_size=0",
    *PLAIN_RUN,
)
STEPS = 120


def sentence_pairs() -> tuple[list[Pair], list[Pair]]:
    """Pairs to train on and others to try the model with, of the same few words."""
    words = product(
        ADJECTIVES.items(),
        NOUNS.items(),
        VERBS.items(),
        ADJECTIVES.items(),
        NOUNS.items(),
    )
    pairs = [
        (f"the {a} {n} {v} the {b} {m}.", f"die {aa} {nn} {vv} die {bb} {mm}.")
        for (a, aa), (n, nn), (v, vv), (b, bb), (m, mm) in words
    ]
    random.Random(1).shuffle(pairs)
    return pairs[:600], pairs[600:660]


TRAIN, TEST = sentence_pairs()


def write_pairs(path: Path, pairs: Sequence[Pair]) -> str:
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), "utf-8")
    return str(path)


def bleu(
    folder: Path, pairs: Sequence[Pair], *settings: str, steps: int = STEPS
) -> float:
    """Of a translator that was trained on the pairs, on pairs that are sound."""
    folder.mkdir(exist_ok=True)
    found = weft.train(
        out=folder / "model",
        train=write_pairs(folder / "train.en-de.tsv", pairs),
        test=write_pairs(folder / "test.en-de.tsv", TEST),
        settings=(*TRANSLATOR, f"training.max_steps={steps}", *settings),
        quiet=True,
        allow_bad_data=True,
    )
    return float(found.test["bleu"])


@dataclass(frozen=True)
class Planted:
    """A fault of pairs, and what its remedy makes of the pairs again, told which rows the doctor
    names.
    """

    spoil: Callable[[int, Pair], Pair]
    mend: Callable[[list[Pair], Finding], list[Pair]]


def without(pairs: list[Pair], finding: Finding) -> list[Pair]:
    """Take them out."""
    return [pair for i, pair in enumerate(pairs) if i not in set(finding.rows)]


def each(change: Callable[[Pair], Pair]) -> Callable[[list[Pair], Finding], list[Pair]]:
    """Change the rows that are named."""
    return lambda pairs, finding: [
        change(p) if i in set(finding.rows) else p for i, p in enumerate(pairs)
    ]


FAULTS = {
    "swapped-languages": Planted(
        lambda i, p: p if i % 3 else p[::-1], each(lambda p: p[::-1])
    ),
    "untranslated": Planted(lambda i, p: (p[0], p[0]) if i % 3 else p, without),
    "one-text": Planted(lambda i, p: (p[0], TRAIN[0][1]) if i % 3 else p, without),
    "duplicates": Planted(lambda i, p: p if i < 60 else TRAIN[i % 2], without),
    "misread-encoding": Planted(
        lambda i, p: (p[0], p[1].encode().decode("cp1252")) if i % 4 else p,
        each(lambda p: (p[0], p[1].encode("cp1252").decode())),
    ),
    "markup": Planted(
        lambda i, p: (p[0], f"<b>{p[1]}</b>") if i % 3 else p,
        each(lambda p: (p[0], p[1].removeprefix("<b>").removesuffix("</b>"))),
    ),
    "length-ratio": Planted(
        lambda i, p: (
            (p[0], f"{p[1]} {TRAIN[i - 7][1]} {TRAIN[i - 9][1]}") if i % 3 == 0 else p
        ),
        each(lambda p: (p[0], p[1].split(".")[0] + ".")),
    ),
    "unrelated-sides": Planted(
        lambda i, p: (p[0], TRAIN[i - 1][1]),
        lambda pairs, _: [
            (src, pairs[(i + 1) % len(pairs)][1]) for i, (src, _) in enumerate(pairs)
        ],
    ),
}
QUICK = {"swapped-languages"}


@pytest.mark.parametrize(
    "code",
    [
        code if code in QUICK else pytest.param(code, marks=pytest.mark.long)
        for code in FAULTS
    ],
)
def test_pairs_mended_as_the_doctor_says_make_a_better_translator(
    tmp_path: Path, code: str
) -> None:
    spoilt = [FAULTS[code].spoil(i, pair) for i, pair in enumerate(TRAIN)]
    found = {
        finding.code: finding
        for finding in look_over(from_pairs(spoilt, "made.tsv", "en", "de"))
    }
    mended = FAULTS[code].mend(spoilt, found[code])
    before, after = bleu(tmp_path / "before", spoilt), bleu(tmp_path / "after", mended)
    assert after > before + 5


# Models: what diagnose says of them, followed


def pair_file(folder: Path, pairs: Sequence[Pair]) -> str:
    return write_pairs(folder / "given.en-de.tsv", pairs)


def causes(folder: Path, *data: str) -> dict[str, str]:
    """What diagnose says of a model: each cause's name and remedy."""
    return {cause.code: cause.remedy for cause in diagnose(folder, data, PLAIN)}


def translator(folder: Path) -> Translator:
    return TrainableTranslation.load(folder, PLAIN).predictor()


@pytest.mark.long
def test_more_steps_help_where_they_were_too_few(tmp_path: Path) -> None:
    """The same command with more steps goes on in the same folder."""
    before = bleu(tmp_path, TRAIN, steps=STEPS // 4)
    said = causes(tmp_path / "model", pair_file(tmp_path, TEST))["too-few-steps"]
    more = f"--set training.max_steps={STEPS // 2}"
    rising = "it continues where it ended, at a higher learning rate"
    assert said == f"give the same command with {more}; {rising}"
    after = bleu(tmp_path, TRAIN, steps=STEPS // 2)
    assert after > before + 5


@pytest.mark.long
def test_a_shorter_warm_up_and_more_steps_help_a_run_that_was_mostly_warm_up(
    tmp_path: Path,
) -> None:
    long = ("training.warmup_steps=60",)
    before = bleu(tmp_path / "long", TRAIN, *long, steps=STEPS // 3)
    folder = tmp_path / "long" / "model"
    said = causes(folder, pair_file(tmp_path, TEST))["too-few-steps"]
    settings = ["training.max_steps=80", "training.warmup_steps=8"]
    wanted = " ".join(f"--set {setting}" for setting in settings)
    assert said == f"start over: the same command with --fresh {wanted}"
    assert bleu(tmp_path / "fresh", TRAIN, *settings) > before + 20


@pytest.mark.long
def test_a_shorter_warm_up_helps_with_noam_as_well(tmp_path: Path) -> None:
    """The smaller factor keeps the peak rate, that of a warm-up of 1,000 steps."""
    noam = ("training.schedule=noam", "training.learning_rate=1")
    long = (*noam, "training.warmup_steps=1000")
    before = bleu(tmp_path / "long", TRAIN, *long, steps=STEPS // 3)
    folder = tmp_path / "long" / "model"
    said = causes(folder, pair_file(tmp_path, TEST))["too-few-steps"]
    settings = [word for word in said.split() if word.startswith("training.")]
    assert settings[1:] == [
        "training.warmup_steps=8",
        "training.learning_rate=0.0894",
    ]
    assert bleu(tmp_path / "fresh", TRAIN, *noam, *settings) > before + 20


@pytest.mark.long
def test_forbidding_repeated_ngrams_helps_against_repetition(tmp_path: Path) -> None:
    stammered = [
        (src, " ".join([*tgt.rstrip(".").split(), *tgt.rstrip(".").split()[-1:] * 6]))
        for src, tgt in TRAIN
    ]
    bleu(tmp_path, stammered)
    assert (
        "--no-repeat-ngrams 3"
        in causes(tmp_path / "model", pair_file(tmp_path, TEST))["repetition"]
    )
    sources, model = [src for src, _ in TEST], translator(tmp_path / "model")
    before = sum(answer.repetition for answer in model.translate(sources))
    after = sum(
        answer.repetition for answer in model.translate(sources, no_repeat_ngrams=3)
    )
    assert before > 0.3 * len(TEST)
    assert after < 0.1 * len(TEST)


@pytest.mark.long
@pytest.mark.parametrize("rate", [1e-6, 3.0], ids=["too small", "too large"])
def test_another_learning_rate_helps_where_nothing_was_learned(
    tmp_path: Path, rate: float
) -> None:
    """What is said of each run is followed, until nothing more is said of the rate."""
    words = {
        "ten times t": 10.0,
        "a tenth of that": 0.1,
        "a third of it": 1 / 3,
        "a smaller training.learning": 0.1,
    }
    scores, steps = [], STEPS
    for number in range(9):
        folder = tmp_path / str(number)
        plain = (f"training.learning_rate={rate}", "training.grad_clip_norm=none")
        scores.append(bleu(folder, TRAIN, *plain, steps=steps))
        said = causes(folder / "model", pair_file(tmp_path, TEST))
        remedies = [
            said[code]
            for code in ("not-learning", "unstable", "too-few-steps", "one-translation")
            if code in said
        ]
        if not remedies:
            break
        factors = [factor for word, factor in words.items() if word in remedies[0]]
        rate, steps = (rate * factors[0], steps) if factors else (rate, 2 * steps)
    assert 1 < len(scores) < 9
    assert scores[-1] > scores[0] + 20


@pytest.mark.long
def test_a_smaller_learning_rate_helps_where_a_run_diverged(tmp_path: Path) -> None:
    with pytest.raises(DivergedError):
        bleu(tmp_path, TRAIN, "training.learning_rate=1e30")
    assert "a smaller training.learning_rate" in causes(tmp_path / "model")["diverged"]
    assert bleu(tmp_path / "again", TRAIN, "training.learning_rate=0.01") > 30


@pytest.mark.long
def test_more_text_helps_where_it_was_too_little(tmp_path: Path) -> None:
    before = bleu(tmp_path / "few", TRAIN[:5])
    assert "find more" in causes(tmp_path / "few" / "model")["too-little-text"]
    assert bleu(tmp_path / "more", TRAIN) > before + 20


@pytest.mark.long
def test_training_longer_helps_against_short_translations(tmp_path: Path) -> None:
    """Of a model that learned too little, which ends too early."""
    plain = ("training.learning_rate=0.001", "training.grad_clip_norm=none")
    bleu(tmp_path, TRAIN, *plain)
    said = causes(tmp_path / "model", pair_file(tmp_path, TEST))["too-short"]
    assert "was it trained too briefly? then correct it or train longer" in said

    def written(folder: Path) -> int:
        return sum(
            len(answer.text)
            for answer in translator(folder / "model").translate(src for src, _ in TEST)
        )

    wanted, before = sum(len(tgt) for _, tgt in TEST), written(tmp_path)
    bleu(tmp_path / "longer", TRAIN, *plain, steps=2 * STEPS)
    assert before < 0.75 * wanted < written(tmp_path / "longer") < 1.35 * wanted


@pytest.mark.long
def test_a_larger_ratio_helps_where_translations_are_cut(tmp_path: Path) -> None:
    short = ("decoding.max_len_ratio=0.4", "decoding.max_len_extra=0")
    before = bleu(tmp_path / "cut", TRAIN, *short)
    assert (
        "a larger decoding.max_len_ratio"
        in causes(tmp_path / "cut" / "model", pair_file(tmp_path, TEST))["cut-at-limit"]
    )
    assert bleu(tmp_path / "whole", TRAIN, "decoding.max_len_ratio=2.0") > before + 20


@pytest.mark.long
def test_the_text_the_right_way_round_helps_where_its_sides_were_exchanged(
    tmp_path: Path,
) -> None:
    bleu(tmp_path, TRAIN)
    turned = [(tgt, src) for src, tgt in TEST]
    assert (
        "give the text in that order"
        in causes(tmp_path / "model", pair_file(tmp_path, turned))["wrong-direction"]
    )
    task = TrainableTranslation.load(tmp_path / "model", PLAIN)
    before, after = (
        task.evaluate(from_pairs(pairs, "given", "en", "de")).to_json()["bleu"]
        for pairs in (turned, TEST)
    )
    assert after > before + 20


@pytest.mark.long
def test_whole_sentences_help_where_a_model_has_not_learned_to_stop(
    tmp_path: Path,
) -> None:
    running_on = [
        (src, f"{tgt} {TRAIN[i - 5][1]} {TRAIN[i - 9][1]}")
        for i, (src, tgt) in enumerate(TRAIN)
    ]
    before = bleu(tmp_path, running_on)
    said = causes(tmp_path / "model", pair_file(tmp_path, TEST))["no-end-symbol"]
    assert "train on pairs whose targets end where their sources do" in said
    assert bleu(tmp_path / "whole", TRAIN) > before + 20


@pytest.mark.long
def test_longer_text_is_read_by_a_larger_limit_or_in_sentences(tmp_path: Path) -> None:
    def joined(pairs: Sequence[Pair]) -> list[Pair]:
        return [
            (a.replace(".", ",") + f" {c}", b.replace(".", ",") + f" {d}")
            for (a, b), (c, d) in pairwise(pairs)
        ]

    def score(folder: Path, pairs: Sequence[Pair]) -> float:
        task = TrainableTranslation.load(folder / "model", PLAIN)
        return float(
            task.evaluate(from_pairs(pairs, "given", "en", "de")).to_json()["bleu"]
        )

    pairs, both = [*TRAIN, *joined(TRAIN)], joined(TEST)
    bleu(tmp_path, pairs, "data.max_len=10", steps=300)
    said = causes(tmp_path / "model", pair_file(tmp_path, both))["longer-than-read"]
    assert said == "train with a larger data.max_len, or split the text into sentences"
    before = score(tmp_path, both)
    assert score(tmp_path, TEST) > before + 10
    bleu(tmp_path / "larger", pairs, "data.max_len=40", steps=300)
    assert score(tmp_path / "larger", both) > before + 3


# Labelled rows


FOUR = {"billing": 60, "technical": 60, "outage": 60, "returns": 60}


def spell_otherwise(rows: list[Row]) -> list[Row]:
    """Every other row with its label in another spelling."""
    return [
        (text, label.title() if i % 2 else label)
        for i, (text, label) in enumerate(rows)
    ]


def contradict(rows: list[Row]) -> list[Row]:
    """Two rows of three once more, with another label."""
    labels = sorted(FOUR)
    wrong = [(text, labels[labels.index(label) - 1]) for text, label in rows]
    return [*rows, *(row for i, row in enumerate(wrong) if i % 3)]


def repeat_one(rows: list[Row]) -> list[Row]:
    """A row two thousand times, so that hardly a batch has others."""
    return [*rows, *[rows[0]] * 2000]


@dataclass(frozen=True)
class PlantedRows:
    """A fault of labelled rows, and what its remedy makes of them again."""

    spoil: Callable[[list[Row]], list[Row]]
    mend: Callable[[list[Row], Finding], list[Row]]


def rows_without(rows: list[Row], finding: Finding) -> list[Row]:
    """Take them out."""
    return [row for i, row in enumerate(rows) if i not in set(finding.rows)]


ROW_FAULTS = {
    "label-variants": PlantedRows(
        spell_otherwise, lambda rows, _: [(text, label.lower()) for text, label in rows]
    ),
    "contradictions": PlantedRows(contradict, rows_without),
    "duplicates": PlantedRows(repeat_one, rows_without),
}


@pytest.mark.long
@pytest.mark.parametrize("code", ROW_FAULTS)
def test_rows_mended_as_the_doctor_says_make_a_better_classifier(
    tmp_path: Path, code: str
) -> None:
    spoilt = ROW_FAULTS[code].spoil(tickets(dict.fromkeys(FOUR, 150), 1))
    text = from_rows([(text, [label]) for text, label in spoilt], "made.csv")
    found = {finding.code: finding for finding in look_over_labelled(text)}
    mended = ROW_FAULTS[code].mend(spoilt, found[code])
    test = write_rows(tmp_path / "test.csv", tickets(FOUR, 2))
    before = classify(
        tmp_path / "before", write_rows(tmp_path / "spoilt.csv", spoilt), test
    )
    after = classify(
        tmp_path / "after", write_rows(tmp_path / "mended.csv", mended), test
    )
    assert after["accuracy"] > before["accuracy"] + 0.05


@pytest.mark.long
def test_test_rows_taken_out_of_training_make_the_score_that_of_new_text(
    tmp_path: Path,
) -> None:
    """With as many labels wrong as right only memory can tell, and it tells nothing of new text."""
    draw = random.Random(4)
    rows = [
        (text, draw.choice(sorted(FOUR)))
        for text, _ in tickets(dict.fromkeys(FOUR, 60), 1)
    ]
    old, new = (
        rows[:60],
        [(text, draw.choice(sorted(FOUR))) for text, _ in tickets(FOUR, 2)],
    )
    parts = examine_rows(
        *(
            from_rows([(t, [label]) for t, label in some], "made.csv")
            for some in (rows, new, old)
        )
    )
    (found,) = [finding for finding in parts if finding.code == "test-in-training"]
    assert "remove them from one of the two" in found.remedy
    test, fresh = (
        write_rows(tmp_path / "old.csv", old),
        write_rows(tmp_path / "new.csv", new),
    )
    known = classify(tmp_path / "known", write_rows(tmp_path / "all.csv", rows), test)[
        "accuracy"
    ]
    honest = classify(
        tmp_path / "honest", write_rows(tmp_path / "rest.csv", rows[60:]), test
    )["accuracy"]
    truth = classify(tmp_path / "truth", write_rows(tmp_path / "all.csv", rows), fresh)[
        "accuracy"
    ]
    assert abs(honest - truth) < 0.12
    assert abs(known - truth) > 0.2


@pytest.mark.long
def test_subwords_help_where_words_are_unknown(tmp_path: Path) -> None:
    """Words of a stem that says the label, and of an ending that is always another one."""

    def inflected(seed: int) -> list[Row]:
        draw = random.Random(seed)
        endings = ["".join(draw.choices("aeioubcdf", k=4)) for _ in range(240)]
        return [
            (f"{label}{ending} x", label)
            for label, ending in zip([*FOUR] * 60, endings, strict=True)
        ]

    train, test = (
        write_rows(tmp_path / "train.csv", inflected(1)),
        write_rows(tmp_path / "test.csv", inflected(2)),
    )
    before = classify(tmp_path / "words", train, test, "model.dropout=0.0")
    assert (
        "train with tokenizer.kind=bpe"
        in causes(tmp_path / "words", test)["unknown-words"]
    )
    after = classify(
        tmp_path / "pieces",
        train,
        test,
        "tokenizer.kind=bpe",
        "tokenizer.vocab_size=400",
    )
    assert after["accuracy"] > before["accuracy"] + 0.05


@pytest.mark.long
def test_class_weights_help_where_one_label_is_always_named(tmp_path: Path) -> None:
    train = write_rows(
        tmp_path / "train.csv", tickets({"billing": 900, "outage": 30}, 1)
    )
    test = write_rows(
        tmp_path / "test.csv", tickets({"billing": 100, "outage": 100}, 2)
    )
    before = classify(tmp_path / "before", train, test)
    said = causes(tmp_path / "before", test)["one-label"]
    assert "a table in which each label has the inverse of its rows" in said
    after = classify(
        tmp_path / "after",
        train,
        test,
        "training.class_weights={billing=1.0, outage=30.0}",
    )
    assert after["accuracy"] > before["accuracy"] + 0.1


@pytest.mark.long
def test_class_weights_help_a_label_that_is_never_answered(tmp_path: Path) -> None:
    """Accuracy is good without it; what is said is followed, until nothing more is said of it."""
    rows = {"billing": 900, "technical": 300, "outage": 20}
    train = write_rows(tmp_path / "train.csv", tickets(rows, 1))
    counts = {"billing": 90, "technical": 30, "outage": 30}
    test = write_rows(tmp_path / "test.csv", tickets(counts, 2))
    balanced = "training.class_weights=balanced"
    inverse = ",".join(f"{label}={900 / count}" for label, count in rows.items())
    steps = ("training.max_steps=300", "training.eval_every=300")
    recalls, advice = [], ["training.class_weights=balanced", "balanced is too mild"]
    for number, weights in enumerate(
        ([], [balanced], [f"training.class_weights={{{inverse}}}"])
    ):
        folder = tmp_path / str(number)
        scores = classify(folder, train, test, *steps, *weights)
        recalls.append(mean_recall(scores, ["outage"]))
        said = causes(folder, test).get("labels-missed", "")
        if not said:
            break
        assert advice[number] in said
    assert len(recalls) > 1
    assert recalls[0] < 0.1
    assert recalls[-1] > 0.3


@pytest.mark.long
def test_no_label_is_missed_by_a_model_that_knows_them_all(tmp_path: Path) -> None:
    """Twelve labels, half of them with as few rows in the text as count."""
    labels = [f"topic{chr(97 + i)}" for i in range(12)]
    train = tickets(dict.fromkeys(labels, 60), 1)
    few = {label: 12 - 9 * (i % 2) for i, label in enumerate(labels)}
    test = write_rows(tmp_path / "test.csv", tickets(few, 2))
    classify(tmp_path / "m", write_rows(tmp_path / "train.csv", train), test)
    assert "labels-missed" not in causes(tmp_path / "m", test)
    assert "labels-missed" not in causes(tmp_path / "m")


@pytest.mark.long
def test_weights_taken_away_help_where_they_make_a_label_be_named_everywhere(
    tmp_path: Path,
) -> None:
    train = write_rows(tmp_path / "train.csv", tickets(dict.fromkeys(FOUR, 150), 1))
    test = write_rows(tmp_path / "test.csv", tickets(FOUR, 2))
    table = (
        "training.class_weights={billing=1.0, technical=1.0, outage=1.0, returns=80.0}"
    )
    before = classify(tmp_path / "before", train, test, table)
    assert (
        "train without training.class_weights"
        in causes(tmp_path / "before", test)["one-label"]
    )
    assert (
        classify(tmp_path / "after", train, test)["accuracy"] > before["accuracy"] + 0.1
    )
