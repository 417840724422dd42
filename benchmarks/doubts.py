"""How well a translator doubts itself: `python benchmarks/doubts.py FOLDER DEV [TEST]`.

DEV and TEST are pairs, as `weft train` takes them. What the model learns of itself is learned from
DEV, as at the end of training, and measured on TEST; without TEST, from every other pair of DEV,
and measured on the rest. Prints

- the area under the curve of "is this word wrong" (the tags OK and BAD by the alignment of TER
  with the reference, without shifts), by the quality and by the plain probability of the word;
- of how many of ten words with a quality the same share is right (calibration);
- Pearson's and Kendall's correlation of the sentence's quality and of its plain mean
  log-probability with chrF;
- of 200 references, 100 with a phrase of three words or more taken out and 100 with one doubled,
  how many are flagged when they are read as translations, and how many of as many untouched ones;
- how many of the model's own translations are flagged.
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sacrebleu.metrics import CHRF

from weft.cli.models import opened
from weft.data.corpus import ParallelText
from weft.evaluation.tags import area_under_curve, right_words
from weft.predict.prediction import Prediction
from weft.predict.segments import joiner
from weft.predict.translator import Translator
from weft.run.judging.quality import learn_quality
from weft.tasks.translation import Translation

NUM_EDITED = 100  # of each kind
LEAST_WORDS = 8
PHRASES = (3, 3, 4, 5)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("dev")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--most", type=int, default=1000, help="pairs of TEST")
    asked = parser.parse_args()
    task = opened(asked.folder)
    assert isinstance(task, Translation)
    dev = task.read([asked.dev])
    if asked.test:
        test = task.read([asked.test])
    else:
        dev, test = _every_other(dev, 0), _every_other(dev, 1)
    test = test.sample(asked.most)
    translator = task.predictor()
    began = time.process_time()
    learned = learn_quality(translator, dev)
    seconds = time.process_time() - began
    if learned is None:
        raise SystemExit("the text is too little to learn from")
    print(f"learned from {len(dev):,} pairs in {seconds:.1f} s of one core")
    print(f"  on dev by halves: {learned.figures()}")
    translator.doubts = replace(translator.doubts, quality=learned.quality)
    references = [translator.tgt_tokenizer.normalize(text) for text in test.tgt]
    predictions = translator.translate(test.src, doubts=True)
    read = translator.score(test.src, references, alignments=True)
    _words(predictions, read)
    _sentences(predictions, references)
    _own(predictions)
    _edited(translator, test.src, read)


def _every_other(text: ParallelText, first: int) -> ParallelText:
    return text.select(range(first, len(text), 2))


def _words(predictions: Sequence[Prediction], read: Sequence[Prediction]) -> None:
    """Print how well wrong words are told."""
    quality: list[float] = []
    plain: list[float] = []
    right: list[bool] = []
    for one, reference in zip(predictions, read, strict=True):
        words = [word.text for word in one.words or ()]
        wanted = [word.text for word in reference.words or ()]
        right += right_words(words, wanted)
        quality += [word.quality or 0.0 for word in one.words or ()]
        plain += [word.probability for word in one.words or ()]
    wrong = ~np.array(right)
    learned_area = area_under_curve(-np.array(quality), wrong)
    plain_area = area_under_curve(-np.array(plain), wrong)
    print(f"{len(wrong):,} words, {wrong.mean():.1%} wrong")
    print(
        f"  area under the curve: {learned_area:.3f}, plain probability {plain_area:.3f}"
    )
    for name, said in (("quality", quality), ("plain", plain)):
        print(f"  right by {name}: {_calibration(np.array(said), ~wrong)}")


def _calibration(said: np.ndarray, right: np.ndarray) -> str:
    tenths = np.minimum((said * 10).astype(int), 9)
    cells = []
    for tenth in range(10):
        is_here = tenths == tenth
        if is_here.any():
            cells.append(f"{said[is_here].mean():.0%}: {right[is_here].mean():.0%}")
    error = abs(
        np.array(
            [said[tenths == t].sum() - right[tenths == t].sum() for t in range(10)]
        )
    ).sum() / len(said)
    return f"{', '.join(cells)} (mean error {error:.3f})"


def _sentences(predictions: Sequence[Prediction], references: Sequence[str]) -> None:
    """Print how well sentences are told."""
    score = CHRF().sentence_score
    scores = [
        score(one.text, [reference]).score
        for one, reference in zip(predictions, references, strict=True)
    ]
    known = [
        ("quality", [one.quality or 0.0 for one in predictions]),
        ("mean log-probability", [one.confidence or 0.0 for one in predictions]),
    ]
    for name, said in known:
        pearson = np.corrcoef(said, scores)[0, 1]
        print(
            f"  {name} with chrF: Pearson {pearson:.3f}, Kendall {_kendall(said, scores):.3f}"
        )


def _kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Compute Kendall's tau-b."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (np.array(one), np.array(other)))
    both = float((a * b).sum())
    return both / float(np.sqrt((a != 0).sum() * (b != 0).sum()))


def _own(predictions: Sequence[Prediction]) -> None:
    """Print how many of the model's own translations are flagged."""
    omitted = sum(bool(one.omitted) for one in predictions)
    doubled = sum(bool(one.doubled) for one in predictions)
    print(
        f"  of {len(predictions):,} own translations: omission in {omitted}, doubled phrase in {doubled}"
    )


def _edited(
    translator: Translator, sources: Sequence[str], read: Sequence[Prediction]
) -> None:
    """Print how many edited and untouched references are flagged."""
    draw = random.Random(7)
    has_spaces = joiner(translator.tgt_lang) != ""
    order = [
        i for i, one in enumerate(read) if len(_starts(one, has_spaces)) >= LEAST_WORDS
    ]
    draw.shuffle(order)
    chosen = order[: 2 * NUM_EDITED]
    half = len(chosen) // 2
    kinds = {
        "a phrase taken out": (chosen[:half], _without),
        "a phrase doubled": (chosen[half:], _twice),
        "untouched": (chosen, lambda text, begin, end: text),
    }
    for name, (places, edit) in kinds.items():
        edited = []
        for place in places:
            starts = _starts(read[place], has_spaces)
            length = draw.choice(PHRASES)
            first = draw.randrange(len(starts) - length)
            begin, end = starts[first], starts[first + length]
            edited.append(edit(read[place].text, begin, end))
        found = translator.score([sources[i] for i in places], edited, doubts=True)
        omitted = sum(bool(one.omitted) for one in found)
        doubled = sum(bool(one.doubled) for one in found)
        either = sum(bool(one.omitted or one.doubled) for one in found)
        print(
            f"  {len(found)} references, {name}: {either / len(found):.1%} flagged "
            f"(omission {omitted}, doubled {doubled})"
        )


def _starts(one: Prediction, has_spaces: bool) -> list[int]:
    """Return where the words of a text begin; with spaces, those behind one."""
    starts = [word.start for word in one.words or ()]
    if has_spaces:
        starts = [start for start in starts if one.text[:start][-1:].isspace()]
    return starts


def _without(text: str, begin: int, end: int) -> str:
    return text[:begin] + text[end:]


def _twice(text: str, begin: int, end: int) -> str:
    return text[:end] + text[begin:]


if __name__ == "__main__":
    main()
