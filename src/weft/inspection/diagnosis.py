"""Why is my model bad? `weft diagnose`: by what its run wrote down, and by what it does with a text.

Each cause is told from evidence that it leaves, and comes with what to do. What would only explain bad results is
not held against a model that has none.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from weft import durable
from weft.data.corpus import ParallelText
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, SMALLEST, UNK_ID, Tokenizer
from weft.errors import FolderError
from weft.evaluation.language import LanguageScores
from weft.inspection.history import History, read_history
from weft.machine import Machine
from weft.model_folder import run_files
from weft.predict.prediction import Prediction
from weft.predict.text import evaluating
from weft.tasks.choice import load_task
from weft.tasks.classification import Classification
from weft.tasks.task import Task, training_hashes
from weft.tasks.translation import Translation

POOR_BLEU = 15.0
POOR_GAIN = 0.25  # of what a classifier could win over always naming the most frequent label
POOR_LOSS = 0.65  # of a language model, as a share of the loss of guessing: ln of the vocabulary's size
MOST_ROWS = 400  # of a text are looked at, spread over all of it
FEW_PAIRS, FEW_ROWS = 5000, 200
_BATCH = 32
_ENDED = ("done", "stopped early")
SPELLED = {"word": 0.15, "character": 0.05, "bpe": 0.5, "unigram": 0.5}  # of a text's bytes; more is suspicious
OF_OTHER_TEXT = {"wrong-direction", "unknown-words", "longer-than-trained"}  # the text is to blame, not the run


@dataclass(frozen=True)
class Cause:
    """What is wrong, by which evidence, and what to do."""

    code: str
    evidence: str
    remedy: str

    def lines(self) -> list[str]:
        """For a person to read."""
        return [f"{self.code}: {self.evidence}", f"  {self.remedy}"]

    def to_json(self) -> dict[str, str]:
        """The same as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class Run:
    """What a run wrote about itself; None where it is not there."""

    verdict: dict[str, Any] | None
    settings: dict[str, Any] | None
    history: History | None
    num_rows: int | None

    @classmethod
    def of(cls, folder: Path) -> "Run":
        """As far as it can be read."""
        files = run_files(folder)
        hashes = training_hashes(folder)
        recipe = _read_json(files.recipe)
        try:
            history = read_history(folder)
        except FolderError:
            history = None
        settings = None if recipe is None else recipe.get("recipe")
        return cls(_read_json(files.verdict), settings, history, None if hashes is None else len(hashes.rows))

    @property
    def dev_losses(self) -> list[tuple[int, float]]:
        """Of each evaluation, with its step."""
        if self.history is None or self.history.loss is None:
            return []
        return list(zip(*self.history.values(self.history.loss), strict=True))

    @property
    def train_losses(self) -> list[tuple[int, float]]:
        return [] if self.history is None else self.history.losses


def diagnose(folder: Path, data: Sequence[str], machine: Machine) -> list[Cause]:
    """The causes found, the gravest first; `data` is text of the kind that the model was trained on, or nothing.

    Raises FolderError for a folder that holds neither a model nor a run that says how it ended, DataError for text
    that cannot be read.
    """
    run = Run.of(folder)
    try:
        task = load_task(folder, machine)
    except FolderError:
        if run.verdict is None or run.verdict.get("outcome") in _ENDED:
            raise
        return list(_of_unfinished(run))
    poor = _is_poor_by_run(task, run)
    if not data:
        return list(_of_run(task, run)) if poor else []
    text = task.read(data)
    shared = task.shared_rows(text, training_hashes(folder))
    remedy = "score the model on text that was not trained on; weft check finds such rows before training"
    found = [Cause("contaminated-test", note, remedy) for note in shared]
    bad, others = _of_text(task, text)
    if "wrong-direction" not in (cause.code for cause in others):
        found += _of_unknown(task, text)
    wrong = {cause.code for cause in found + others} & OF_OTHER_TEXT
    blamed = bad and not wrong if poor is None else poor
    return [*found, *(_of_run(task, run) if blamed else ()), *others]


def _of_text(task: Task[Any, Any, Any], text: Any) -> tuple[bool, list[Cause]]:
    """Whether the model does badly with a text, and what is seen there."""
    if isinstance(task, Translation):
        probe = Probe(task, text.select(_places(len(text))))
        return probe.bleu < POOR_BLEU, list(_of_translations(probe))
    if isinstance(task, Classification):
        return _of_labels(task, text)
    scores = task.evaluate(text)
    return isinstance(scores, LanguageScores) and scores.loss > POOR_LOSS * _chance(task), []


def _of_unfinished(run: Run) -> Iterator[Cause]:
    verdict = run.verdict or {}
    how = f"{verdict.get('outcome')} while {verdict.get('stage')}, after {verdict.get('step', 0):,} steps"
    if verdict.get("exit_code") == 4:
        remedy = "train with a smaller training.learning_rate, or a longer training.warmup_steps"
        yield Cause("diverged", f"{how}: {verdict.get('reason')}", remedy)
    else:
        remedy = "give the command of the run again; it goes on, and leaves a model when it ends"
        yield Cause("unfinished", f"{how}: {verdict.get('reason')}", remedy)


def _of_run(task: Task[Any, Any, Any], run: Run) -> Iterator[Cause]:
    """What its own figures say of the run of a model that does badly."""
    yield from _of_loss(run, _chance(task))
    yield from _of_dev(run)
    few = {Translation: FEW_PAIRS, Classification: FEW_ROWS}.get(type(task), 0)
    if run.num_rows is not None and run.num_rows < few:
        yield Cause(
            "too-little-text",
            f"{run.num_rows:,} different {task.unit} were trained on",
            f"find more; from fewer than {few:,} {task.unit} little is learned but what they say themselves",
        )


def _of_loss(run: Run, chance: float) -> Iterator[Cause]:
    """Each logged loss is a mean over some steps."""
    losses = [loss for _, loss in run.train_losses]
    if not losses:
        return
    rate = ((run.settings or {}).get("training") or {}).get("learning_rate")
    now = f"training.learning_rate is {rate:g}; " if rate else ""
    least, last = min(losses), mean(losses[-max(len(losses) // 4, 1) :])
    if last > 0.9 * chance:
        yield Cause(
            "not-learning",
            f"the training loss was {last:.2f} nats a token in the end, and guessing has {chance:.2f}",
            f"{now}try a third of it with a longer training.warmup_steps, and three times it",
        )
    elif len(losses) >= 4 and last > 1.15 * least and least < 0.9 * losses[0]:
        yield Cause(
            "unstable",
            f"the training loss fell from {losses[0]:.2f} to {least:.2f} and then rose to {last:.2f}",
            f"{now}try a third of it, or a longer training.warmup_steps",
        )


def _of_dev(run: Run) -> Iterator[Cause]:
    """Trained too briefly, or by heart."""
    dev, train = run.dev_losses, run.train_losses
    curve = dev if len(dev) >= 3 else train
    if len(curve) < 3:
        return
    losses = [loss for _, loss in curve]
    steps, before = curve[-1][0], next(loss for step, loss in curve if 3 * step >= 2 * curve[-1][0])
    if losses[-1] <= min(losses) * 1.001 and losses[-1] < 0.97 * before:
        what = "dev" if curve is dev else "training"
        yield Cause(
            "too-few-steps",
            f"the {what} loss was still falling in the last third of {steps:,} steps, "
            f"from {before:.2f} to {losses[-1]:.2f}",
            "raise training.max_steps; the same command then goes on from where it ended",
        )
    if len(dev) >= 2 and train:
        least, last, own = min(loss for _, loss in dev), dev[-1][1], train[-1][1]
        if last > 1.1 * least and own < 0.8 * last:
            where = next(step for step, loss in dev if loss == least)
            yield Cause(
                "over-fitting",
                f"the dev loss was {least:.2f} at step {where:,} and rose to {last:.2f}, while the training loss "
                f"fell to {own:.2f}",
                "train on more text, or with more model.dropout, a smaller model.d_model or fewer steps",
            )


@dataclass(frozen=True)
class Probe:
    """What a translator does with some pairs; each figure is found when it is first asked for."""

    task: Translation
    text: ParallelText

    @cached_property
    def predictions(self) -> list[Prediction]:
        """As `weft translate` gives them."""
        return self.task.predictor().translate(self.text.src)

    @cached_property
    def bleu(self) -> float:
        """Of these translations."""
        return self.task.scores_of(self.text, self.predictions).bleu

    @cached_property
    def own(self) -> tuple[float, float]:
        """Loss in nats a token, and the mean probability of the end where it is."""
        return self._loss(self._rows(self.text.src, 0), self._rows(self.text.tgt, -1))

    @cached_property
    def by_other_sources(self) -> float:
        """The loss of the targets beside the sources of other pairs."""
        src = self._rows(self.text.src, 0)
        return self._loss(src[1:] + src[:1], self._rows(self.text.tgt, -1))[0]

    @cached_property
    def by_swapped_sides(self) -> float:
        """The loss where each side is taken for the other."""
        return self._loss(self._rows(self.text.tgt, 0), self._rows(self.text.src, -1))[0]

    def _rows(self, texts: Sequence[str], side: int) -> list[list[int]]:
        tokenizer = self.task.tokenizers[side]
        limit = self.task.config.max_src_len - 1 if side == 0 else self.task.model.max_len - 2
        return [[*ids[:limit], EOS_ID] for ids in tokenizer.encode_batch(list(texts))]

    def _loss(self, src: Sequence[list[int]], tgt: Sequence[list[int]]) -> tuple[float, float]:
        total, count, ends = 0.0, 0, []
        device = torch.device(self.task.machine.device)
        with evaluating(self.task.model):
            for first in range(0, len(src), _BATCH):
                some = slice(first, first + _BATCH)
                out = _padded(tgt[some]).to(device)
                begun = _padded([[BOS_ID, *row[:-1]] for row in tgt[some]]).to(device)
                logits = self.task.model(_padded(src[some]).to(device), begun)
                found = logits.float().log_softmax(-1).gather(-1, out[..., None])[..., 0]
                total -= float(found[out != PAD_ID].sum())
                count += int((out != PAD_ID).sum())
                ends += found[out == EOS_ID].exp().tolist()
        return total / max(count, 1), sum(ends) / max(len(ends), 1)


def _of_translations(probe: Probe) -> Iterator[Cause]:
    config, count = probe.task.config, len(probe.text)
    loss, end = probe.own
    chance = _chance(probe.task)
    if probe.by_swapped_sides < loss - 0.5:
        yield Cause(
            "wrong-direction",
            f"with its sides exchanged the text costs {probe.by_swapped_sides:.2f} nats a token, not {loss:.2f}",
            f"the model translates {config.src_lang} to {config.tgt_lang}; give the text in that order",
        )
        return
    if loss > 0.95 * chance:
        yield Cause(
            "knows-nothing-of-this",
            f"a loss of {loss:.2f} nats a token, where guessing has {chance:.2f}",
            "is this text in the languages, and of the kind, that the model was trained on?",
        )
    elif probe.bleu < POOR_BLEU and (gain := probe.by_other_sources - loss) < 0.1 * loss + 0.1:
        yield Cause(
            "source-ignored",
            f"beside the source of another pair a target costs only {gain:.2f} nats a token more ({loss:.2f}): "
            "the model writes in the target language, but not what the source says",
            "are the lines of the training text out of step (weft check finds where)? else train for longer",
        )
    if end < 0.1 and loss < 0.9 * chance:
        yield Cause(
            "no-end-symbol",
            f"where a target ends, the model gives the end a probability of {end:.3f} on average",
            "it has not learned to stop: train on whole sentences, none cut at data.max_len",
        )
    yield from _of_outputs(probe, count)


def _of_outputs(probe: Probe, count: int) -> Iterator[Cause]:
    config, texts = probe.task.config, [p.text for p in probe.predictions]
    (common, often), (_, expected) = (Counter(some).most_common(1)[0] for some in (texts, probe.text.tgt))
    if count >= 20 and often >= 0.3 * count and expected < 0.5 * often:
        yield Cause(
            "one-translation",
            f'{often:,} of {count:,} sources are translated as "{common[:60]}"',
            "the training text has that target too often (weft check), or training.learning_rate was too high",
        )
    if (again := sum(p.repetition for p in probe.predictions)) >= 0.1 * count:
        yield Cause(
            "repetition",
            f"{again:,} of {count:,} translations say the same again and again",
            "train longer or on more text; until then weft translate --no-repeat-ngrams 3",
        )
    elif (cut := sum(p.truncated for p in probe.predictions)) >= 0.1 * count:
        yield Cause(
            "cut-at-limit",
            f"{cut:,} of {count:,} translations were cut at {config.decoding.max_len_ratio:g} times the tokens of "
            f"their source and {config.decoding.max_len_extra:,} more",
            "raise decoding.max_len_ratio; what does not end even so has not learned to",
        )
    ours, wanted = sum(map(len, texts)), max(sum(map(len, probe.text.tgt)), 1)
    if not 0.75 <= ours / wanted <= 1.35:
        decoding = config.decoding
        yield Cause(
            "too-short" if ours < wanted else "too-long",
            f"the translations have {100 * ours / wanted:.0f} % of the references' characters; the recipe's "
            f"length_penalty is {decoding.length_penalty:g}, its beam_size {decoding.beam_size}",
            "a larger length_penalty makes longer ones; weft translate --length-penalty 1 --beam-size 5 is usual",
        )
    limit = config.max_src_len - 1
    lengths = [len(ids) for ids in probe.task.tokenizers[0].encode_batch(probe.text.src)]
    if (long := sum(length > limit for length in lengths)) > 0.05 * count:
        yield Cause(
            "longer-than-trained",
            f"{long:,} of {count:,} sources have more than the {limit:,} tokens that the model reads at once",
            "train with a larger data.max_len, or split the text into sentences",
        )


def _of_labels(task: Classification, text: Any) -> tuple[bool, list[Cause]]:
    """Whether a classifier does badly, and why."""
    rows = _places(len(text))
    answers = task.predictor().classify([text.texts[i] for i in rows])
    wanted = [text.labels[i] for i in rows]
    right = sum(set(a.labels) == set(labels) for a, labels in zip(answers, wanted, strict=True)) / len(rows)
    (_, most), (label, often) = (
        Counter(some).most_common(1)[0] for some in ([", ".join(w) for w in wanted], [a.label for a in answers])
    )
    poor = right - most / len(rows) < POOR_GAIN * (1 - most / len(rows))
    if often >= 0.95 * len(rows) and most <= 0.8 * len(rows):
        evidence = f'{often:,} of {len(rows):,} texts are called "{label}", {right:.0%} of all rightly'
        remedy = "look at the labels of the training text (weft check); is one of them far more frequent?"
        return poor, [Cause("one-label", evidence, remedy)]
    return poor, []


def _of_unknown(task: Task[Any, Any, Any], text: Any) -> Iterator[Cause]:
    """Words that a tokenizer has to spell."""
    sides: list[tuple[str, Tokenizer, Sequence[str]]]
    if isinstance(task, Translation):
        sides = [("source", task.tokenizers[0], text.src), ("target", task.tokenizers[1], text.tgt)]
    else:
        sides = [("text", task.tokenizers[0], text.texts)]
    for name, tokenizer, texts in sides:
        kind = tokenizer.settings.kind
        share = _spelled_share(tokenizer, [texts[i] for i in _places(len(texts))])
        if share > SPELLED.get(kind, 1):
            yield Cause(
                "unknown-words",
                f"{share:.0%} of the {name} is spelled byte by byte: the tokenizer ({kind}, "
                f"{tokenizer.vocab_size:,} entries) has not learned these words",
                "is this the language that the model was trained on? for many rare words take tokenizer kind bpe",
            )


def _spelled_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """How much of the texts' bytes are tokens of their own."""
    counts = Counter(i for row in tokenizer.encode_batch(list(texts)) for i in row)
    total = sum(len(text.encode()) for text in texts)
    if tokenizer.settings.kind == "character":
        return sum(count for i, count in counts.items() if UNK_ID < i < SMALLEST) / max(total, 1)
    return sum(count for i, count in counts.items() if len(tokenizer.spell([i]).strip()) == 1) / max(total, 1)


def _is_poor_by_run(task: Task[Any, Any, Any], run: Run) -> bool | None:
    """By what the run found, on test or else on dev; of a language model also in training. None: no figures."""
    verdict = run.verdict or {}
    test, dev = verdict.get("test") or {}, verdict.get("dev") or {}
    if isinstance(task, Translation):
        bleu = test.get("bleu", dev.get("dev_bleu"))
        return bleu < POOR_BLEU if isinstance(bleu, int | float) else None
    if isinstance(task, Classification):
        right, chance = test.get("accuracy", dev.get("dev_accuracy")), 1 / len(task.config.labels)
        return right - chance < POOR_GAIN * (1 - chance) if isinstance(right, int | float) else None
    losses = run.dev_losses or run.train_losses
    return losses[-1][1] > POOR_LOSS * _chance(task) if losses else None


def _chance(task: Task[Any, Any, Any]) -> float:
    """The loss of guessing, in nats."""
    if isinstance(task, Classification):
        return math.log(max(len(task.config.labels), 2))
    return math.log(task.tokenizers[-1].vocab_size)


def _places(count: int) -> list[int]:
    """Numbers of at most MOST_ROWS rows, spread over all."""
    return [i * count // min(count, MOST_ROWS) for i in range(min(count, MOST_ROWS))]


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD_ID] * (width - len(row))] for row in rows])


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = durable.read_json(path)
    except FolderError:
        return None
    return found
