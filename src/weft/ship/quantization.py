"""A translator in int8: a quarter of the weights' size, and faster; made only where it translates
as well.

`quantize` compares the model before and after on text of the user's own, writes the report into the
new folder, and writes no folder where too much is lost.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.console import stages
from weft.data.check.finding import counted
from weft.data.corpus import ParallelText
from weft.data.directions import describe
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Hypothesis, StepInput
from weft.decoding.shortlist import learn_shortlist
from weft.engine.bindings import Engine, Session
from weft.engine.packed import quantized
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.arrays import Arrays
from weft.folder.layout import SCALES, refuse_pack_name
from weft.folder.model_files import read_card
from weft.folder.model_folder import (
    Contents,
    StoredModel,
    TranslationConfig,
    keep_train_hashes,
    open_model_folder,
    save_model_folder,
)
from weft.kernels.machine import machine_for_use
from weft.predict.parameters import stored_shapes
from weft.predict.prediction import Prediction
from weft.predict.translator import Translator
from weft.run.begun import held_out
from weft.run.card import without_folders, without_run
from weft.ship.parity import ENOUGH, FEW, WORTHWHILE, Parity, ShortlistParity
from weft.tasks.task import training_hashes
from weft.tasks.translation import (
    Translation,
    each_direction,
    form_notes,
    parameters_of,
    weights_of,
)

REPORT = "parity.json"
# of a card: what would help in training, which the new folder cannot go on with
_HELPS = re.compile(r"^- what would help: .*\n", re.MULTILINE)
_TIMED = 500  # texts
_AT_A_TIME = 256  # texts that are translated before they are counted


def quantize(
    folder: Path,
    data: Sequence[str],
    out: Path,
    max_bleu_loss: float = 0.5,
    shortlist: Sequence[str] = (),
) -> Parity:
    """Write `out`, the int8 form of the translator in `folder`, with the report on `data`, pairs of
    texts.

    Without data it is on what the folder's own run holds out. From the pairs in `shortlist` a
    lexical shortlist is learned, which is on where it pays on `data`. Raises UsageError for a model
    or machine that has no int8 form, or a folder `out` that holds something; FolderError, with
    nothing written, where more than `max_bleu_loss` BLEU would be lost.
    """
    if not math.isfinite(max_bleu_loss):
        raise UsageError(
            f"--max-bleu-loss {max_bleu_loss:g}: it must be a finite number"
        )
    refuse_pack_name(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--output {out}: holds something already; give a new folder")
    stages.enter("loading the model")
    stored = open_model_folder(folder)
    _refuse_without_int8(stored)
    exact = Translation.load(folder, machine_for_use())
    if missing := exact.why_no_engine():
        raise UsageError(f"int8 needs the native engine: {missing}")
    if shortlist and exact.config.directions:
        raise UsageError(
            "--shortlist: it is learned for one direction, and the model has several; leave it out"
        )
    part, text = ("", exact.read(data)) if data else held_out(folder)
    trained_on = training_hashes(folder)
    notes = (
        *_whose(part, len(text)),
        *_which(exact, text),
        *exact.shared_rows(text, trained_on),
        *_too_few(len(text)),
        *exact.doubts(text, trained_on),
        *form_notes(exact.tokenizers[1:], text.tgt),
    )
    for note in notes:  # before the work, which may take long
        stages.say(f"note: {note}")
    original = stored.weights(stored_shapes(parameters_of(exact.config)))
    weights = _int8_weights(exact.config, original)
    config = exact.config.model_copy(update={"weights": "int8"})
    small = replace(exact, weights=weights_of(config, weights), config=config)
    found, after = _parity(exact, small, text)
    found = replace(
        found, bytes=_size(original), bytes_int8=_size(weights), notes=notes
    )
    if shortlist:
        stages.enter("learning the shortlist, and trying it")
        small, gain = _with_shortlist(
            small, exact.read(shortlist), text, after, found.bleu_int8
        )
        found = replace(found, shortlist=gain)
    if found.bleu_loss > max_bleu_loss:
        name, bleu, bleu_int8 = found.worst
        where = f" from {name}" if name else " here"
        raise FolderError(
            f"{folder}: int8 loses {found.bleu_loss:.2f} BLEU{where} ({bleu:.2f} to {bleu_int8:.2f}), "
            f"more than {max_bleu_loss:g}; nothing was written; --max-bleu-loss allows more"
        )
    _write(folder, out, small, weights, found, [*data, *shortlist])
    return found


def _parity(
    exact: Translation, small: Translation, text: ParallelText
) -> tuple[Parity, list[str]]:
    """Compare a model with its int8 form on a text; return what was found, without sizes and notes,
    and the translations of the latter.
    """
    before, engine = _translated(exact, text, "as it is")
    after, int8_engine = _translated(small, text, "in int8")
    stages.enter("comparing probabilities")
    outputs: dict[tuple[int, ...], Hypothesis] = {}
    for model, _, sources in each_direction(exact.predictor(), text):
        outputs |= model.hypotheses(sources)
    agreement, largest, mean, tokens = _compared(engine, int8_engine, outputs)
    scores = exact.scores_of_texts(text, before)
    int8_scores = exact.scores_of_texts(text, after)
    directions = {
        name: (one.bleu, int8_scores.directions[name].bleu)
        for name, one in scores.directions.items()
    }
    found = Parity(
        sentences=len(before),
        tokens=tokens,
        token_agreement=agreement,
        largest_error=largest,
        mean_error=mean,
        same_translations=sum(map(str.__eq__, before, after)) / max(len(before), 1),
        bleu=scores.bleu,
        bleu_int8=int8_scores.bleu,
        bleu_signature=scores.bleu_signature,
        directions=directions,
    )
    return found, after


def _size(arrays: Arrays) -> int:
    """Return the bytes of all arrays."""
    return sum(array.nbytes for array in arrays.values())


def _whose(part: str, pairs: int) -> list[str]:
    """Say what text the report is on, where nobody named one; dev has chosen the weights."""
    chose = ", which chose the weights" if part == "dev" else ""
    return (
        [f"compared on the run's own {part} text ({counted(pairs, 'pairs')}){chose}"]
        if part
        else []
    )


def _which(task: Translation, text: ParallelText) -> list[str]:
    """Say which of several directions the text has not, so that nothing is known of them."""
    if not task.config.directions:
        return []
    known = set(text.directions)
    others = [pair for pair in task.directions if pair not in known]
    if not others:
        return []
    return [f"the text has no pairs {describe(others)}, which are not compared"]


def _too_few(pairs: int) -> list[str]:
    if pairs >= FEW:
        return []
    which = "1 pair proves" if pairs == 1 else f"{pairs:,} pairs prove"
    return [
        f"{which} nothing: to show that int8 translates as well takes {FEW} or more"
    ]


def _with_shortlist(
    task: Translation,
    pairs: ParallelText,
    text: ParallelText,
    before: Sequence[str],
    bleu: float,
) -> tuple[Translation, ShortlistParity]:
    """Return the task with what the pairs teach, and what that changes on the text."""
    src, tgt = task.tokenizers
    longest = task.config.max_src_len
    ids = zip(src.encode_batch(pairs.src), tgt.encode_batch(pairs.tgt), strict=True)
    fitting = (pair for pair in ids if max(map(len, pair)) < longest)
    sizes = (task.config.src_vocab_size, task.config.tgt_vocab_size)
    learned = learn_shortlist(fitting, *sizes, always=[EOS_ID])
    listed = replace(
        task,
        shortlist=learned,
        config=task.config.model_copy(update={"shortlist": "on"}),
    )
    predictor = listed.predictor()
    after = [prediction.text for prediction in predictor.translate(text.src)]
    gain = _times_as_fast(predictor, text.src[:_TIMED])
    score = task.scores_of_texts(text, after).bleu
    lengths = [len(learned.of(row)) for row in src.encode_batch(text.src)]
    found = ShortlistParity(
        bleu=score,
        same_translations=sum(map(str.__eq__, before, after)) / max(len(before), 1),
        times_as_fast=gain,
        size=sum(lengths) / max(len(lengths), 1),
        vocab_size=sizes[1],
        is_used=score >= bleu and gain >= WORTHWHILE and len(after) >= ENOUGH,
    )
    config = task.config.model_copy(
        update={"shortlist": "on" if found.is_used else "off"}
    )
    return replace(listed, config=config), found


def _times_as_fast(predictor: Translator, texts: Sequence[str]) -> float:
    """Measure how many times as fast translating is with the shortlist.

    The least of three times each, taken in turns.
    """
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(3):
        for uses_shortlist, taken in seconds.items():
            began = time.perf_counter()
            predictor.translate(texts, shortlist=uses_shortlist)
            taken.append(time.perf_counter() - began)
    return min(seconds[False]) / min(seconds[True])


def _refuse_without_int8(stored: StoredModel) -> None:
    """Raise UsageError for a model that has no int8 form, or has it already."""
    if stored.config.is_recurrent:
        raise UsageError(
            f"{stored.folder}: holds a recurrent model; only Transformers have an int8 form"
        )
    if stored.config.weights == "int8":
        raise UsageError(
            f"{stored.folder}: is in int8 already; give the folder that it was made from"
        )


def _int8_weights(config: TranslationConfig, original: Arrays) -> Arrays:
    """Return the arrays of an int8 folder."""
    weights = dict(original)
    for parameter in parameters_of(config):
        if parameter.is_linear:
            name = parameter.name
            weights[name], weights[name + SCALES] = quantized(original[name])
    return weights


def _translated(
    task: Translation, text: ParallelText, how: str
) -> tuple[list[str], Engine]:
    """Return the translations of a text, each into the language of its target, and the engine."""
    stages.enter(f"translating {len(text):,} pairs {how}")
    predictor = task.predictor()
    assert isinstance(predictor.engine, Engine)
    found: dict[int, str] = {}
    stream = _stream(predictor, text)
    for row, prediction in stages.counted(stream, "pairs", every=1):
        found[row] = prediction.text
    return [found[row] for row in range(len(text))], predictor.engine


def _stream(
    predictor: Translator, text: ParallelText
) -> Iterator[tuple[int, Prediction]]:
    """Yield the number of each pair and the translation of its source, as it is found."""
    for model, rows, sources in each_direction(predictor, text):
        found = model.translate_stream(sources, chunk=_AT_A_TIME)
        yield from zip(rows, found, strict=True)


def _compared(
    exact: Engine,
    small: Engine,
    outputs: Mapping[tuple[int, ...], Hypothesis],
    size: int = 32,
) -> tuple[float, float, float, int]:
    """Compare log-probabilities at the positions of outputs.

    Returns the share with the same best token, the largest and the mean error, and the number of
    positions.
    """
    same = tokens = 0
    largest = errors = 0.0
    sessions = [engine.session(size, 1) for engine in (exact, small)]
    for some in _some_at_a_time(outputs, size):
        original, quantized = (_all_log_probs(session, some) for session in sessions)
        wanted = np.concatenate([_finished(hypothesis) for _, hypothesis in some])
        same += int((original.argmax(1) == quantized.argmax(1)).sum())
        error = np.abs(original - quantized)
        largest = max(largest, float(error.max()))
        errors += float(error[np.arange(len(wanted)), wanted].sum())
        tokens += len(wanted)
    return same / max(tokens, 1), largest, errors / max(tokens, 1), tokens


def _some_at_a_time(
    outputs: Mapping[tuple[int, ...], Hypothesis], size: int
) -> Iterator[list[tuple[tuple[int, ...], Hypothesis]]]:
    """Yield the rows, so many at a time."""
    pairs = iter(outputs.items())
    while some := list(islice(pairs, size)):
        yield some


def _finished(hypothesis: Hypothesis) -> NDArray[np.int64]:
    """Return the tokens of an output, and its end where it has one."""
    return np.array([*hypothesis.ids, *[EOS_ID] * hypothesis.finished], np.int64)


def _all_log_probs(
    session: Session, some: Sequence[tuple[tuple[int, ...], Hypothesis]]
) -> NDArray[np.float32]:
    """Compute the log-probabilities of every token after every prefix of the outputs, in one
    step.
    """
    session.read(range(len(some)), [row for row, _ in some])
    lens = [len(_finished(hypothesis)) for _, hypothesis in some]
    slots = np.repeat(np.arange(len(some)), lens)
    times = np.concatenate([np.arange(n) for n in lens])
    prefixes = [[BOS_ID, *_finished(hypothesis)[:-1]] for _, hypothesis in some]
    inputs = np.concatenate(prefixes).astype(np.int32)
    places = np.zeros(len(slots), np.int64)
    ancestors = np.zeros((len(slots), max(lens)), np.int32)
    _, _, found = session.step(
        StepInput(slots, places, times, inputs, ancestors), 0, all_log_probs=True
    )
    assert found is not None
    return found


def _write(
    folder: Path,
    out: Path,
    task: Translation,
    weights: Arrays,
    found: Parity,
    data: Sequence[str],
) -> None:
    """Write the folder, and the report beside it; both name files without the folders that they lie
    in.
    """
    stored = open_model_folder(folder)
    files = [name for item in data for name in item.split(",")]
    about = without_folders(
        "\n".join(f"- {line}" for line in found.card_lines()), files
    )
    origin = stored.files.weights_sha256()
    card = read_card(folder) or f"# {task.name}\n"
    # nothing of that comes along
    card = _HELPS.sub("", without_run(card)).rstrip("\n")
    card += f"""

## int8

Made from the model {folder.resolve().name} (its weights' sha256 {origin[:16]}), whose training and scores are described
above, by rounding its weights to int8 after training. On {found.sentences:,} sentences:

{about}
"""
    facts = {"quantized_from": origin}
    listed = asdict(task.shortlist) if task.shortlist else None
    words = None if task.known is None else task.known.hashes
    contents = Contents(weights, stored.tokenizers, listed, words, stored.profiles())
    save_model_folder(out, task.config, contents, card, facts)
    keep_train_hashes(folder, out)
    notes = [without_folders(note, files) for note in found.notes]
    durable.write_json(out / REPORT, {**asdict(found), "notes": notes})
