"""Models broken on purpose, each by one known cause, and healthy ones: what diagnose says of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

import pytest

import weft
from weft.errors import DivergedError, FolderError, Interrupted
from weft.inspection.diagnosis import Cause, diagnose
from weft.machine import Machine

Pair = tuple[str, str]

PLAIN = Machine("cpu", "float32", 1, "tests are small")
PLAIN_RUN = ("training.precision=float32", "training.kernels=torch", "training.threads=1")
OTHER_WORDS = ("stone", "river", "cloud", "bread", "light", "house")


def shifted(pairs: list[Pair]) -> list[Pair]:
    """Every target one line too low."""
    return [(a, pairs[i - 1][1]) for i, (a, _) in enumerate(pairs)]


def with_one_target(pairs: list[Pair]) -> list[Pair]:
    """Most sources with the same target."""
    return [(a, b if i % 8 == 0 else "Maus mag Maus.") for i, (a, b) in enumerate(pairs)]


def running_on(pairs: list[Pair]) -> list[Pair]:
    """Targets that never end where their sentence does."""
    return [(a, f"{b} {b}") for a, b in pairs]


def cut_off(pairs: list[Pair]) -> list[Pair]:
    """Targets of one word."""
    return [(a, b.split()[0]) for a, b in pairs]


def stammering(pairs: list[Pair]) -> list[Pair]:
    """Targets that say their last word seven times."""
    return [(a, " ".join([*b.rstrip(".").split(), *b.rstrip(".").split()[-1:] * 6])) for a, b in pairs]


def few(pairs: list[Pair]) -> list[Pair]:
    """Hardly any pairs."""
    return pairs[:8]


def exchanged(pairs: list[Pair]) -> list[Pair]:
    """Each side where the other belongs."""
    return [(b, a) for a, b in pairs]


def of_other_words(pairs: list[Pair]) -> list[Pair]:
    """Sources of words that stand nowhere in training."""
    return [(f"{OTHER_WORDS[i % 6]} {OTHER_WORDS[i % 5]}", b) for i, (_, b) in enumerate(pairs)]


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
    "not-learning": Broken(steps=20, settings=["training.learning_rate=1e-7"]),
    "over-fitting": Broken(few),
    "too-little-text": Broken(few, steps=40),
    "source-ignored": Broken(shifted),
    "one-translation": Broken(with_one_target),
    "no-end-symbol": Broken(running_on),
    "repetition": Broken(stammering),
    "too-short": Broken(cut_off),
    "cut-at-limit": Broken(settings=["decoding.max_len_ratio=0.4", "decoding.max_len_extra=0"]),
    "wrong-direction": Broken(tried_with=exchanged),
    "unknown-words": Broken(tried_with=of_other_words),
    "longer-than-trained": Broken(settings=["data.max_len=5"], tried_with=of_two_sentences),
}
HELD_OUT = {"wrong-direction", "unknown-words", "longer-than-trained"}
OF_RUNS = {"too-few-steps", "not-learning", "unstable", "over-fitting", "too-little-text"}


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


@pytest.mark.parametrize("code", BROKEN)
def test_names_the_cause_of_a_broken_translator(
    code: str, tmp_path: Path, parts: tuple[list[Pair], ...], tiny_settings: tuple[str, ...]
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
    found = diagnose(tmp_path / "model", [write(tmp_path / "x.en-de.tsv", broken.tried_with(data))], PLAIN)
    assert code in codes(found)
    assert all(cause.evidence and cause.remedy for cause in found)
    if code in HELD_OUT:
        assert not OF_RUNS & set(codes(found)), "the run is sound: only the text is another"
        assert diagnose(tmp_path / "model", [], PLAIN) == []


def test_names_a_text_that_was_trained_on(tiny_folder: Path, write_pairs: Callable[[int], str]) -> None:
    (cause,) = diagnose(tiny_folder, [write_pairs(216)], PLAIN)
    assert cause.code == "contaminated-test"
    assert "of 216 pairs" in cause.evidence


def test_names_how_a_run_ended_that_left_no_model(
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = (*tiny_settings, "training.max_steps=20", "data.test_size=0")
    broken = (*settings, "training.learning_rate=1e30")
    with pytest.raises(DivergedError):
        weft.train(out=tmp_path / "diverged", train=write_pairs(90), settings=broken, quiet=True)
    (cause,) = diagnose(tmp_path / "diverged", [], PLAIN)
    assert cause.code == "diverged"
    assert "learning_rate" in cause.remedy

    def stop(*_: object) -> None:
        raise Interrupted("stopped by SIGINT")

    monkeypatch.setattr("weft.training.trainer.Trainer.run", stop)
    with pytest.raises(Interrupted):
        weft.train(out=tmp_path / "unfinished", train=write_pairs(90), settings=settings, quiet=True)
    (cause,) = diagnose(tmp_path / "unfinished", [], PLAIN)
    assert cause.code == "unfinished"
    assert "stopped by SIGINT" in cause.evidence
    with pytest.raises(FolderError):
        diagnose(tmp_path, [], PLAIN)


def train_classifier(here: Path, rare_share: int) -> tuple[Path, str]:
    """A model of texts whose last word says their label, one in `rare_share` of which is "no"; and even data."""
    words = [f"the {a} {b} was" for a, b in product(OTHER_WORDS, repeat=2)]
    rows = [
        (f"{text} {'bad' if i % rare_share == 0 else 'good'}", i % rare_share == 0) for i, text in enumerate(words)
    ]
    even = [(f"then {text} {'bad' if i % 2 else 'good'}", bool(i % 2)) for i, text in enumerate(words)]
    for name, some in ("train", rows * 6), ("data", even):
        lines = [f"{text}{i // 36},{'no' if no else 'yes'}\n" for i, (text, no) in enumerate(some)]
        (here / f"{name}.csv").write_text("text,label\n" + "".join(lines))
    shape = ("model.d_model=16", "model.d_ff=24", "model.num_heads=2", "model.num_encoder_layers=0")
    steps = ("training.max_steps=60", "training.learning_rate=0.02", "training.warmup_steps=5", "data.dev_size=20")
    settings = ("task=classification", "data.test_size=0", *PLAIN_RUN, *shape, *steps)
    weft.train(
        out=here / "model", train=str(here / "train.csv"), settings=settings, quiet=True, allow_bad_data=True
    )
    return here / "model", str(here / "data.csv")


def train_language_model(here: Path, steps: int) -> tuple[Path, str]:
    sentences = [f"the {a} {b} was {c}." for a, b, c in product(OTHER_WORDS, OTHER_WORDS, ("warm", "cold", "new"))]
    Random(2).shuffle(sentences)
    (here / "train.txt").write_text("\n\n".join(sentences[:90]))
    (here / "data.txt").write_text("\n\n".join(sentences[90:]))
    shape = ("model.d_model=24", "model.d_ff=48", "model.num_heads=2", "model.num_decoder_layers=1")
    of_text = ("tokenizer.kind=character", "batches.window_len=30", "batches.batch_size=8")
    schedule = ("training.learning_rate=0.01", "training.warmup_steps=5", f"training.max_steps={steps}")
    settings = (
        "task=language-modelling",
        *PLAIN_RUN,
        *shape,
        *of_text,
        *schedule,
        f"training.eval_every={steps // 6}",
    )
    weft.train(out=here / "model", train=str(here / "train.txt"), settings=settings, quiet=True)
    return here / "model", str(here / "data.txt")


def test_names_a_classifier_with_one_answer(tmp_path: Path) -> None:
    folder, data = train_classifier(tmp_path, 1000)
    assert codes(diagnose(folder, [data], PLAIN))[0] == "one-label"


def test_names_a_language_model_that_was_hardly_trained(tmp_path: Path) -> None:
    folder, data = train_language_model(tmp_path, 12)
    assert codes(diagnose(folder, [data], PLAIN)) == ["too-few-steps"]
    assert codes(diagnose(folder, [], PLAIN)) == ["too-few-steps"]


def test_finds_nothing_in_a_healthy_translator(
    tmp_path: Path, parts: tuple[list[Pair], ...], tiny_settings: tuple[str, ...]
) -> None:
    train, dev, data = (write(tmp_path / f"{i}.en-de.tsv", some) for i, some in enumerate(parts))
    settings = (*tiny_settings, "model.d_model=32", "training.max_steps=150", "data.test_size=0")
    weft.train(out=tmp_path / "model", train=train, dev=dev, settings=settings, quiet=True)
    assert diagnose(tmp_path / "model", [data], PLAIN) == []
    assert diagnose(tmp_path / "model", [], PLAIN) == []


def test_finds_nothing_in_a_healthy_classifier(tmp_path: Path) -> None:
    folder, data = train_classifier(tmp_path, 2)
    assert diagnose(folder, [data], PLAIN) == diagnose(folder, [], PLAIN) == []


def test_finds_nothing_in_a_healthy_language_model(tmp_path: Path) -> None:
    folder, data = train_language_model(tmp_path, 240)
    assert diagnose(folder, [data], PLAIN) == diagnose(folder, [], PLAIN) == []
