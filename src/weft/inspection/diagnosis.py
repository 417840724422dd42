"""Why is my model bad? `weft diagnose`: by what its run wrote down, and by what it does with a
text.

Each cause is told from evidence that it leaves, and comes with what to do. What would only explain
bad results is not held against a model that has none.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from weft.console import stages
from weft.data.check.finding import counted
from weft.data.check.rows import alike_in_words, alike_labels, unknown_labels
from weft.data.labelled import label_counts, named
from weft.data.tokenizer import SMALLEST, UNK_ID, Tokenizer
from weft.errors import FolderError
from weft.evaluation.language import LanguageScores
from weft.folder import durable
from weft.folder.layout import DONE, FINISHED_EARLY, STOPPED_EARLY
from weft.folder.model_folder import RunFolder
from weft.inspection.history import History, read_history
from weft.inspection.probe import Probe, exchanged
from weft.kernels.machine import Machine
from weft.tasks.choice import load_task
from weft.tasks.classification import Classification
from weft.tasks.task import Task, training_hashes
from weft.tasks.translation import Translation
from weft.training.schedule import about_long_warmup, shorter_warmup

POOR_BLEU = 15.0
# of what a classifier could win over always naming the most frequent label
POOR_GAIN = 0.25
# of a language model, as a share of the loss of guessing: ln of the vocabulary's size
POOR_LOSS = 0.65
MOST_ROWS = 400  # of a text are looked at, spread over all of it
MOST_CHARACTERS = 20_000  # of documents, of which one may be a whole library
FEW_PAIRS, FEW_ROWS = 5000, 200
# of a text's bytes; more is suspicious
SPELLED = {"word": 0.15, "character": 0.05, "bpe": 0.5, "unigram": 0.5}
# after the warm-up, from which on a loss that did not fall says something
ENOUGH_STEPS = 50
# of the loss of guessing: a run of few steps that ends above it had too few
FAR_FROM_LEARNED = 0.6
# times the loss of guessing: what had steps enough and is worse than that takes too large ones
WORSE = 1.3
FAR_OFF = 0.2  # of a text's rows, so many too many of some labels
FEW_GIVEN = 20  # rows of a text from which on what is seen there is hardly chance
# the text is to blame, not the run
OF_OTHER_TEXT = {"unknown-labels", "unknown-words", "longer-than-trained"}
OF_UNTRAINED = {
    "knows-nothing-of-this",
    "source-ignored",
    "no-end-symbol",
}  # what any model does that learned little


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
        """Return the same as a plain dictionary."""
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
        files = RunFolder(folder)
        hashes = training_hashes(folder)
        recipe = _read_json(files.recipe)
        try:
            history = read_history(folder)
        except FolderError:
            history = None
        settings = None if recipe is None else recipe.get("recipe")
        # the clock's, which counted
        if settings is not None and (plan := _read_json(files.plan)) is not None:
            planned = {
                key: plan[key]
                for key in ("warmup_steps", "learning_rate")
                if key in plan
            }
            settings = {
                **settings,
                "training": {**settings.get("training", {}), **planned},
            }
        return cls(
            _read_json(files.verdict),
            settings,
            history,
            None if hashes is None else len(hashes.rows),
        )

    @property
    def dev_losses(self) -> list[tuple[int, float]]:
        """Of each evaluation, with its step."""
        if self.history is None or self.history.loss is None:
            return []
        return list(zip(*self.history.values(self.history.loss), strict=True))

    @property
    def training(self) -> dict[str, Any]:
        """The recipe's section of that name."""
        return (self.settings or {}).get("training") or {}

    @property
    def steps(self) -> int:
        """That it has made; the last that a loss was logged of, where no verdict says more."""
        logged = max(
            (step for step, _ in [*self.train_losses, *self.dev_losses]), default=0
        )
        return int((self.verdict or {}).get("step") or logged)

    @property
    def is_stopped(self) -> bool:
        """Whether a person stopped it, and its command goes on."""
        return (self.verdict or {}).get("outcome") == FINISHED_EARLY

    @property
    def train_losses(self) -> list[tuple[int, float]]:
        return [] if self.history is None else self.history.losses


def diagnose(folder: Path, data: Sequence[str], machine: Machine) -> list[Cause]:
    """Return the causes found, the gravest first; `data` is text of the kind that the model was
    trained on, or nothing.

    Raises FolderError for a folder that holds neither a model nor a run that says how it ended,
    DataError for text that cannot be read.
    """
    run = Run.of(folder)
    stages.enter("loading the model")
    try:
        task = load_task(folder, machine)
    except FolderError:
        if run.verdict is None or run.verdict.get("outcome") in (DONE, STOPPED_EARLY):
            raise
        return list(_of_unfinished(run))
    poor = _is_poor_by_run(task, run)
    if not data:
        figures = (
            of_run(task, run) if poor else _of_unjudged(run) if poor is None else ()
        )
        return [*_of_label_names(task), *_of_dev_labels(task, run), *figures]
    text = task.read(data)
    found = [*_of_label_names(task)]
    if isinstance(task, Translation):
        probe = Probe(task, text.select(_places(len(text))))
        found += _of_direction(probe)
        if found:  # all else is asked of the text as the model should get it
            probe, text = probe.exchanged, exchanged(text)
        bad, others = probe.bleu < POOR_BLEU, list(_of_translations(probe))
    elif isinstance(task, Classification):
        bad, others = _of_labels(task, text, run)
    else:
        stages.enter(f"scoring {counted(len(text), task.unit)}")
        scores = task.evaluate(_beginnings(text))
        bad, others = (
            isinstance(scores, LanguageScores)
            and scores.loss > POOR_LOSS * _chance(task),
            [],
        )
    remedy = "score the model on text that was not trained on; weft check finds such rows before training"
    shared = task.shared_rows(text, training_hashes(folder))
    found += [
        Cause("contaminated-test", note.removeprefix("contaminated: "), remedy)
        for note in shared
    ]
    found += _of_unknown(task, text)
    wrong = {cause.code for cause in found + others} & OF_OTHER_TEXT
    blamed = bad and not wrong if poor is None else poor
    by_run = list(of_run(task, run)) if blamed else []
    if {"too-few-steps", "not-learning"} & {cause.code for cause in by_run}:
        others = [cause for cause in others if cause.code not in OF_UNTRAINED]
    return [
        *found,
        *by_run,
        *others,
        *_of_absent_labels(task, text),
        *_of_few_rows(task, len(text)),
    ]


def _of_label_names(task: Task[Any, Any, Any]) -> Iterator[Cause]:
    """Labels of a classifier that are most likely one."""
    if isinstance(task, Classification) and (
        alike := alike_labels(dict.fromkeys(task.config.labels, 1))
    ):
        yield Cause(
            "label-variants",
            "the model has labels that differ in case, spaces or marks alone, and takes them for different: "
            f"{alike_in_words(alike)}",
            "write them alike in the text (weft check names the rows) and train anew",
        )


def _of_dev_labels(task: Task[Any, Any, Any], run: Run) -> Iterator[Cause]:
    """Labels of a classifier that its dev text had not, as its verdict has them."""
    figures = ((run.verdict or {}).get("judgement") or {}).get("figures") or {}
    if isinstance(task, Classification) and (absent := figures.get("not_in_dev")):
        remedy = "train with rows of each label in dev: with more of them in the text, or by --dev"
        yield _not_judged(absent, task, "the run's dev text", remedy)


def _of_absent_labels(task: Task[Any, Any, Any], text: Any) -> Iterator[Cause]:
    """Labels of a classifier that a text has not; one with other labels is of another kind, which
    is said.
    """
    if not isinstance(task, Classification):
        return
    counts, known = label_counts(text), task.config.labels
    if counts.keys() <= set(known) and (
        absent := [label for label in known if label not in counts]
    ):
        yield _not_judged(absent, task, "the text", "give text with rows of each label")


def _not_judged(
    absent: Sequence[str], task: Classification, where: str, remedy: str
) -> Cause:
    many = f"{len(absent):,} of {counted(len(task.config.labels), 'labels')}"
    evidence = f"{where} has no row of {named(absent)} ({many}): how well such texts are labelled is not known"
    return Cause("labels-not-judged", evidence, remedy)


def _of_unjudged(run: Run) -> Iterator[Cause]:
    why = (
        "the folder holds no run"
        if run.verdict is None
        else "the run had no dev or test text"
    )
    yield Cause(
        "not-judged",
        f"{why}: nothing here says how good the model is",
        "give text of the kind that it was trained on as well, and the model is tried with it",
    )


def _of_few_rows(task: Task[Any, Any, Any], count: int) -> Iterator[Cause]:
    """Of a language model's documents one may be enough."""
    if isinstance(task, Translation | Classification) and count < FEW_GIVEN:
        yield Cause(
            "few-rows-given",
            f"the text has {counted(count, task.unit)}: what they show, or do not show, may be chance",
            "give 100 or more",
        )


def _of_unfinished(run: Run) -> Iterator[Cause]:
    verdict = run.verdict or {}
    how = f"{verdict.get('outcome')} while {verdict.get('stage')}, after {verdict.get('step', 0):,} steps"
    if verdict.get("exit_code") == 4:
        remedy = "train with a smaller training.learning_rate, or a longer training.warmup_steps"
        yield Cause("diverged", f"{how}: {verdict.get('reason')}", remedy)
    else:
        remedy = (
            "give the command of the run again; it goes on, and leaves a model when it ends; or make one of what "
            "it has saved (weft finish)"
        )
        yield Cause("unfinished", f"{how}: {verdict.get('reason')}", remedy)


def of_run(task: Task[Any, Any, Any], run: Run) -> Iterator[Cause]:
    """What its own figures say of the run of a model that does badly."""
    chance, blind = _chance(task), _blind_chance(task)
    hurried = list(_of_stop(run) if run.is_stopped else _of_haste(run, chance, blind))
    yield from hurried or _of_level(run, chance, blind)
    yield from _of_warmup(run, hurried)
    yield from _of_curves(run)
    few = {Translation: FEW_PAIRS, Classification: FEW_ROWS}.get(type(task), 0)
    if run.num_rows is not None and run.num_rows < few:
        yield Cause(
            "too-little-text",
            f"{run.num_rows:,} different {task.unit} were trained on",
            f"find more; from fewer than {few:,} {task.unit} little is learned but what they say themselves",
        )


def _of_stop(run: Run) -> Iterator[Cause]:
    """Stopped by the person, not ended by its plan."""
    whole = (run.verdict or {}).get("max_steps")
    far = f"stopped at step {run.steps:,}" + (f" of {whole:,}" if whole else "")
    yield Cause("too-few-steps", far, "the same command goes on")


def _of_warmup(run: Run, hurried: Sequence[Cause]) -> Iterator[Cause]:
    """Yield a warm-up that takes most of the run; of one that ended within it, that is said
    already.
    """
    warmup, whole = (
        run.training.get("warmup_steps") or 0,
        (run.verdict or {}).get("max_steps") or 0,
    )
    if (
        whole
        and (said := about_long_warmup(warmup, whole))
        and not any(said in cause.evidence for cause in hurried)
    ):
        yield Cause(
            "long-warm-up", said, f"begin anew (--fresh) with {shorter_warmup(whole)}"
        )


def _of_haste(run: Run, chance: float, blind: float) -> Iterator[Cause]:
    """Ended before it could learn: while the loss fell, in the warm-up or soon after it."""
    what, curve = (
        ("dev", run.dev_losses)
        if len(run.dev_losses) >= 3
        else ("training", run.train_losses)
    )
    if not curve:
        return
    losses = [loss for _, loss in curve]
    remedy = (
        "raise training.max_steps; the same command then goes on from where it ended"
    )
    if (
        losses[-1] > WORSE * blind
        and curve[-1][0] >= (run.training.get("warmup_steps") or 0) + ENOUGH_STEPS
    ):
        return  # not for want of steps
    steps, before = (
        run.steps,
        next(loss for step, loss in curve if 3 * step >= 2 * curve[-1][0]),
    )
    lowest = losses[-1] <= min(losses) * 1.001
    warmup = run.training.get("warmup_steps") or 0
    if len(curve) >= 3 and lowest and losses[-1] < 0.97 * before:
        evidence = (
            f"the {what} loss was still falling in the last third of {steps:,} steps, "
            f"from {before:.2f} to {losses[-1]:.2f}"
        )
    elif lowest and steps <= warmup:
        evidence = f"{about_long_warmup(warmup, steps)}; the {what} loss was {losses[-1]:.2f} in the end"
        remedy = f"begin anew (--fresh) with {shorter_warmup(steps)}, or raise training.max_steps"
    elif (
        steps < warmup + ENOUGH_STEPS
        and lowest
        and (len(curve) < 3 or losses[-1] > FAR_FROM_LEARNED * chance)
    ):
        after = f" after {warmup:,} of warm-up" if warmup else ""
        evidence = f"the run had {steps - warmup:,} steps{after}; the {what} loss was {losses[-1]:.2f} then"
    else:
        return
    rate = run.training.get("learning_rate")
    if losses[-1] > 0.9 * chance and rate and steps >= warmup + ENOUGH_STEPS:
        remedy += f"; or begin anew with ten times training.learning_rate, which is {rate:g}: it learned next to nothing"
    yield Cause("too-few-steps", evidence, remedy)


def _of_level(run: Run, chance: float, blind: float) -> Iterator[Cause]:
    """Each logged loss is a mean over some steps, and smoothed where the recipe says so; those on
    dev are not.
    """
    losses = [loss for _, loss in run.train_losses]
    if not losses:
        return
    rate = run.training.get("learning_rate")
    now = f"training.learning_rate is {rate:g}; " if rate else ""
    least, last = min(losses), mean(losses[-max(len(losses) // 4, 1) :])
    if min(last, *(loss for _, loss in run.dev_losses[-1:]), math.inf) > 0.9 * chance:
        yield Cause(
            "not-learning",
            f"the training loss was {last:.2f} nats a token in the end, and guessing has {chance:.2f}",
            f"{now}{_other_rate(losses, blind)}",
        )
    elif len(losses) >= 4 and last > 1.15 * least and least < 0.9 * losses[0]:
        yield Cause(
            "unstable",
            f"the training loss fell from {losses[0]:.2f} to {least:.2f} and then rose to {last:.2f}",
            f"{now}try a third of it, or a longer training.warmup_steps",
        )


def _other_rate(losses: Sequence[float], blind: float) -> str:
    """What to try where nothing is learned: larger steps where the loss hardly falls, smaller where
    it jumps.
    """
    if losses[-1] < min(1.01 * min(losses), WORSE * blind):
        return "the loss hardly moved: try ten times that, and again, until it falls"
    return "the loss jumps: try a tenth of that, or a longer training.warmup_steps"


def _of_curves(run: Run) -> Iterator[Cause]:
    """Trained by heart: dev and training go apart."""
    dev, train = run.dev_losses, run.train_losses
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


def _of_direction(probe: Probe) -> Iterator[Cause]:
    """Yield a model that knows neither order has a small difference too, and either way."""
    config, loss, swapped = probe.task.config, probe.own[0], probe.exchanged.own[0]
    if swapped < 0.8 * loss and swapped < 0.9 * _chance(probe.task):
        yield Cause(
            "wrong-direction",
            f"with its sides exchanged the text costs {swapped:.2f} nats a token, not {loss:.2f}",
            f"the model translates {config.src_lang} to {config.tgt_lang}; give the text in that order. What else "
            "is said here is of the text with its sides exchanged",
        )


def _of_translations(probe: Probe) -> Iterator[Cause]:
    loss, end = probe.own
    chance = _chance(probe.task)
    if loss > 0.95 * chance:
        yield Cause(
            "knows-nothing-of-this",
            f"a loss of {loss:.2f} nats a token, where guessing has {chance:.2f}",
            "is this text in the languages, and of the kind, that the model was trained on?",
        )
    elif (
        probe.bleu < POOR_BLEU
        and (gain := probe.by_other_sources - loss) < 0.1 * loss + 0.1
    ):
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
            "it has not learned to stop: train on pairs whose targets end where their sources do, without what "
            "belongs to the next sentence",
        )
    yield from _of_outputs(probe)


def _of_outputs(probe: Probe) -> Iterator[Cause]:
    config, texts = probe.task.config, [p.text.strip() for p in probe.predictions]
    count = len(texts)
    if (empty := texts.count("")) >= 0.1 * count:
        yield Cause(
            "empty-translations",
            f"{empty:,} of {count:,} translations are empty: the model takes the end for likeliest at once",
            "train for longer or on more text; if weft translate --beam-size 1 gives text, so may "
            f"--length-penalty above {config.decoding.length_penalty:g}",
        )
    (common, often), (_, expected) = (
        Counter(some).most_common(1)[0] for some in (texts, probe.text.tgt)
    )
    if (
        common
        and count >= FEW_GIVEN
        and often >= 0.3 * count
        and expected < 0.5 * often
    ):
        yield Cause(
            "one-translation",
            f"{often:,} of {count:,} sources get the same translation{_shown(common)}",
            "does the training text have that target too often (weft check finds it)? else train for longer, or "
            "with a smaller training.learning_rate",
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
            "train with a larger decoding.max_len_ratio; what does not end even so has not learned to",
        )
    written = [
        (text, target)
        for text, target in zip(texts, probe.text.tgt, strict=True)
        if text
    ]
    ours, wanted = (
        (sum(map(len, side)) for side in zip(*written, strict=True))
        if written
        else (1, 1)
    )
    if not 0.75 <= ours / wanted <= 1.35:
        penalty, beam = config.decoding.length_penalty, config.decoding.beam_size
        short, search = ours < wanted, " --beam-size 5" if beam == 1 else ""
        yield Cause(
            "too-short" if short else "too-long",
            f"the translations have {100 * ours / wanted:.0f} % of the references' characters; the recipe's "
            f"length_penalty is {penalty:g}, its beam_size {beam}",
            f"are the targets of the training text so {'short' if short else 'long'}, or was it trained too "
            f"briefly? then mend or train longer; else weft translate{search} --length-penalty "
            f"{'above' if short else 'below'} {penalty:g}",
        )
    limit = config.max_src_len - 1
    lengths = [
        len(ids) for ids in probe.task.tokenizers[0].encode_batch(probe.text.src)
    ]
    if (long := sum(length > limit for length in lengths)) > 0.05 * count:
        yield Cause(
            "longer-than-trained",
            f"{long:,} of {count:,} sources have more than the {limit:,} tokens that the model reads at once",
            "train with a larger data.max_len, or split the text into sentences",
        )


def _of_labels(task: Classification, text: Any, run: Run) -> tuple[bool, list[Cause]]:
    """Return whether a classifier does badly, and why; where it does not know a label, by the other
    rows.
    """
    if unknown := list(unknown_labels(task.config.labels, text, "the text")):
        more = (
            f"; the same holds for {counted(len(unknown) - 1, 'other labels')}"
            if len(unknown) > 1
            else ""
        )
        cause = Cause(
            "unknown-labels", f"{unknown[0].message}{more}", unknown[0].remedy
        )
        strange = {i for finding in unknown for i in finding.rows}
        rest = [i for i in range(len(text)) if i not in strange]
        bad, others = _of_labels(task, text.select(rest), run) if rest else (False, [])
        return bad, [cause, *others]
    rows = _places(len(text))
    stages.enter(f"classifying {counted(len(rows), 'texts')}")
    answers = task.predictor().classify([text.texts[i] for i in rows])
    wanted = [text.labels[i] for i in rows]
    right = sum(
        set(a.labels) == set(labels) for a, labels in zip(answers, wanted, strict=True)
    ) / len(rows)
    (_, most), (label, often) = (
        Counter(some).most_common(1)[0]
        for some in ([", ".join(w) for w in wanted], [a.label for a in answers])
    )
    poor = right - most / len(rows) < POOR_GAIN * (1 - most / len(rows))
    if often >= 0.95 * len(rows) and most <= 0.8 * len(rows):
        evidence = f'{often:,} of {len(rows):,} texts are called "{label}", {right:.0%} of all rightly'
        remedy = _without_weights(run) or (
            "look at the labels of the training text (weft check); if one of them is far more frequent, give "
            "training.class_weights a table in which each label has the inverse of its rows"
        )
        return poor, [Cause("one-label", evidence, remedy)]
    given = [list(answer.labels) for answer in answers]
    return poor, list(_of_balance(given, wanted, run)) if len(rows) >= FEW_GIVEN else []


def _of_balance(
    given: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], run: Run
) -> Iterator[Cause]:
    """Yield a label that the model names far too often, and the one that it names far too seldom
    instead.
    """
    named, true = (
        Counter(label for labels in some for label in labels)
        for some in (given, wanted)
    )
    more = {label: named[label] - true[label] for label in sorted(named | true)}
    over, under = max(more, key=more.__getitem__), min(more, key=more.__getitem__)
    if sum(surplus for surplus in more.values() if surplus > 0) < FAR_OFF * len(wanted):
        return
    alike = alike_labels(dict.fromkeys(more, 1))
    if any({over, under} & set(group) for group in alike):
        remedy = f"first write labels alike that mean the same: {alike_in_words(alike)}"
    elif weighted := _without_weights(run):
        remedy = weighted
    elif true[over] < true[under]:
        remedy = "look whether the training text has that label as seldom as this text does (weft check)"
    else:
        remedy = "train with training.class_weights=balanced as well, by which rare labels count for more"
    yield Cause(
        "labels-out-of-balance",
        f'"{over}" is named {named[over]:,} times and is the label of {true[over]:,} of {len(wanted):,} rows, '
        f'"{under}" is named {named[under]:,} times and is the label of {true[under]:,}',
        remedy,
    )


def _without_weights(run: Run) -> str:
    """What to do about a label that is named too often where weights may be the cause; else
    nothing.
    """
    weights = run.training.get("class_weights")
    if weights is None:
        return ""
    said = "balanced" if weights == "balanced" else "a table"
    return f"train without training.class_weights ({said} now), or with weights that differ less"


def _of_unknown(task: Task[Any, Any, Any], text: Any) -> Iterator[Cause]:
    """Words that a tokenizer has to spell."""
    sides: list[tuple[str, Tokenizer, Sequence[str]]]
    if isinstance(task, Translation):
        sides = [
            ("source", task.tokenizers[0], text.src),
            ("target", task.tokenizers[1], text.tgt),
        ]
    else:
        sides = [("text", task.tokenizers[0], text.texts)]
    for name, tokenizer, texts in sides:
        kind = tokenizer.settings.kind
        share = _spelled_share(tokenizer, [texts[i] for i in _places(len(texts))])
        if share > SPELLED.get(kind, 1):
            pieces = kind in ("bpe", "unigram")
            better = (
                "train with text of this kind too"
                if pieces
                else "for many rare words take tokenizer kind bpe"
            )
            yield Cause(
                "unknown-words",
                f"{share:.0%} of the {name} is spelled byte by byte: the tokenizer ({kind}, "
                f"{tokenizer.vocab_size:,} entries) has not learned these words",
                f"is this the language that the model was trained on? else {better}",
            )


def _spelled_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """How much of the texts' bytes are tokens of their own."""
    counts = Counter(i for row in tokenizer.encode_batch(list(texts)) for i in row)
    total = sum(len(text.encode()) for text in texts)
    if tokenizer.settings.kind == "character":
        return sum(count for i, count in counts.items() if UNK_ID < i < SMALLEST) / max(
            total, 1
        )
    return sum(
        count for i, count in counts.items() if len(tokenizer.spell([i]).strip()) == 1
    ) / max(total, 1)


def _is_poor_by_run(task: Task[Any, Any, Any], run: Run) -> bool | None:
    """By what the run found, on test or else on dev; of a language model also in training. None: no
    figures.
    """
    verdict = run.verdict or {}
    test, dev = verdict.get("test") or {}, verdict.get("dev") or {}
    if isinstance(task, Translation):
        bleu = test.get("bleu", dev.get("dev_bleu"))
        return bleu < POOR_BLEU if isinstance(bleu, int | float) else None
    if isinstance(task, Classification):
        right, chance = (
            test.get("accuracy", dev.get("dev_accuracy")),
            1 / len(task.config.labels),
        )
        return (
            right - chance < POOR_GAIN * (1 - chance)
            if isinstance(right, int | float)
            else None
        )
    losses = run.dev_losses or run.train_losses
    return losses[-1][1] > POOR_LOSS * _chance(task) if losses else None


def _shown(text: str) -> str:
    """To stand behind what is said of it; not where it breaks off inside characters."""
    return f': "{text[:60]}"' if "\ufffd" not in text else ""


def _chance(task: Task[Any, Any, Any]) -> float:
    """Return the loss of guessing, in nats."""
    if isinstance(task, Classification):
        return math.log(max(len(task.config.labels), 2))
    tokenizer = task.tokenizers[-1]
    # in bytes, but only what it does not know
    spells = tokenizer.settings.kind in ("character", "word")
    return math.log(max(tokenizer.vocab_size - (SMALLEST if spells else 0), 2))


def _blind_chance(task: Task[Any, Any, Any]) -> float:
    """The loss of guessing among all pieces, those too that text hardly needs, in nats: a new model
    has it.
    """
    return (
        _chance(task)
        if isinstance(task, Classification)
        else math.log(task.tokenizers[-1].vocab_size)
    )


def _places(count: int) -> list[int]:
    """Numbers of at most MOST_ROWS rows, spread over all."""
    return [i * count // min(count, MOST_ROWS) for i in range(min(count, MOST_ROWS))]


def _beginnings(text: Any) -> Any:
    """Of documents: of each as much as all together may have."""
    some = text.select(_places(len(text)))
    return replace(
        some, texts=[one[: MOST_CHARACTERS // len(some)] for one in some.texts]
    )


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = durable.read_json(path)
    except FolderError:
        return None
    return found
