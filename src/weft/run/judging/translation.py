"""The verdict on a translator: its dev sentences, beside copies of the nearest training ones.

No score alone decides. What does: how many translations are broken, how many are right or nearly,
and whether looking a sentence up in the training text would do as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from weft.data.base import spread
from weft.data.corpus import ParallelText
from weft.predict.prediction import Prediction
from weft.predict.segments import joiner
from weft.run.judging.judgement import (
    DRAFT,
    FEW_JUDGED,
    NOT_JUDGED,
    NOT_YET,
    NUM_EXAMPLES,
    USABLE,
    Judgement,
    not_judged,
)
from weft.run.judging.memory import Memory
from weft.run.judging.quality import learn_quality
from weft.run.judging.words import edits, words_of
from weft.tasks.translation import Translation

# sentences of dev, and of training text, spread over all
MOST_JUDGED, MOST_REMEMBERED = 200, 100_000
# share of translations that repeat themselves, are empty, cut or too short: it cannot be used
BROKEN = 0.1
NEAR = 0.5  # share that a word or less is wrong in: for text like this it can be used
# share with half of its words right: below it there is nothing to correct
HALF_RIGHT = 0.5
# share of the reference's words below which one is too short, where it has so many words
TOO_SHORT = 0.5
LONG = 4


@dataclass(frozen=True)
class Outcomes:
    """Counts of dev sentences by what became of them, the first of these that holds.

    `near` have at most one word (character, without spaces) wrong, `half` at most half of the
    reference's words; `near` are among them.
    """

    count: int
    repeated: int
    empty: int
    cut: int
    short: int
    near: int
    half: int

    @property
    def broken(self) -> int:
        """Count those that cannot be a translation."""
        return self.repeated + self.empty + self.cut + self.short

    def faults(self) -> Iterator[str]:
        """Say which of these faults occur, and how often."""
        named = (
            (self.repeated, "repeat themselves"),
            (self.empty, "are empty"),
            (self.cut, "find no end"),
            (self.short, "have less than half of the reference's words"),
        )
        for count, what in named:
            if count:
                yield f"{count} of {self.count} translations {what}"


def judge_translator(
    task: Translation, train: ParallelText, dev: ParallelText
) -> Judgement:
    """Translate some of dev, as `weft translate` does, and judge."""
    predictor = task.predictor()
    learned = learn_quality(predictor, dev)
    dev = dev.sample(MOST_JUDGED)
    predictions = predictor.translate(dev.src)
    references = [task.tokenizers[1].normalize(text) for text in dev.tgt]
    copied = _copies(task, train.sample(MOST_REMEMBERED), dev.src)
    copies = [task.tokenizers[1].normalize(text) for text in copied]
    normalized = replace(dev, tgt=references)

    def bleu_of(texts: Sequence[str]) -> float:
        return task.scores_of_texts(normalized, texts).bleu

    language = task.config.tgt_lang
    found = judge(dev.src, predictions, references, copies, language, bleu_of)
    if learned is None or found.verdict == NOT_JUDGED:
        return found
    figures = {**found.figures, **learned.figures()}
    return replace(found, figures=figures, quality=learned.quality)


def judge(
    sources: Sequence[str],
    predictions: Sequence[Prediction],
    references: Sequence[str],
    copies: Sequence[str],
    language: str,
    bleu_of: Callable[[Sequence[str]], float],
) -> Judgement:
    """Return the verdict on some translations.

    `copies` are the translations of the nearest training sentences; `bleu_of` scores texts against
    the references.
    """
    count = len(references)
    if count < FEW_JUDGED:
        return not_judged(
            f"dev has {count} sentences, too few to judge; {FEW_JUDGED} are needed"
        )
    texts = [prediction.text for prediction in predictions]
    counts = outcomes(predictions, references, language)
    bleu = bleu_of(texts)
    copied = bleu_of(copies)
    verdict, first = _verdict(counts, bleu, copied, language)
    figures = {
        **asdict(counts),
        "bleu": round(bleu, 2),
        "copy_bleu": round(copied, 2),
    }
    beside = f"copying the translation of the nearest training sentence gives BLEU {copied:.1f}, the model {bleu:.1f}"
    shown = [
        {"source": sources[i], "translation": texts[i], "reference": references[i]}
        for i in spread(count, NUM_EXAMPLES)
    ]
    confidence = _low_confidence(predictions)
    return Judgement(
        verdict, [first, beside], figures, examples=shown, low_confidence=confidence
    )


def outcomes(
    predictions: Sequence[Prediction], references: Sequence[str], language: str
) -> Outcomes:
    """Count what became of each sentence."""
    kinds = [
        _kind(one, text, language)
        for one, text in zip(predictions, references, strict=True)
    ]
    return Outcomes(
        count=len(kinds),
        repeated=kinds.count("repeated"),
        empty=kinds.count("empty"),
        cut=kinds.count("cut"),
        short=kinds.count("short"),
        near=kinds.count("near"),
        half=kinds.count("near") + kinds.count("half"),
    )


def _kind(prediction: Prediction, reference: str, language: str) -> str:
    words = words_of(prediction.text, language)
    wanted = words_of(reference, language)
    if prediction.repetition:
        return "repeated"
    if not words and wanted:
        return "empty"
    if prediction.output_cut:
        return "cut"
    if len(wanted) >= LONG and len(words) < TOO_SHORT * len(wanted):
        return "short"
    distance = edits(words, wanted)
    if distance <= 1:
        return "near"
    return "half" if distance <= len(wanted) / 2 else "other"


def _verdict(
    counts: Outcomes, bleu: float, copied: float, language: str
) -> tuple[str, str]:
    """Return the word, and the sentence that explains it."""
    unit = "word" if joiner(language) else "character"
    near = f"{counts.near} of {counts.count} dev sentences differ from the reference by a {unit} or less"
    half = f"{counts.half} of {counts.count} have at least half of their {unit}s right"
    if counts.broken >= BROKEN * counts.count:
        return NOT_YET, ", ".join(counts.faults())
    if counts.near >= NEAR * counts.count:
        return USABLE, f"for text like the training text; {near}"
    if counts.half < HALF_RIGHT * counts.count:
        return NOT_YET, f"only {half}"
    if bleu < copied:
        return (
            NOT_YET,
            "copying the translation of the nearest training sentence does better",
        )
    return DRAFT, f"to be read and corrected; {near}, {half}"


def _copies(
    task: Translation, train: ParallelText, sources: Sequence[str]
) -> list[str]:
    encode = task.tokenizers[0].encode_batch
    memory = Memory(encode(train.src))
    return [train.tgt[memory.nearest(row)] for row in encode(list(sources))]


def _low_confidence(predictions: Sequence[Prediction]) -> float | None:
    """Return the mean log-probability a token that one translation in twenty is below."""
    means = sorted(one.confidence for one in predictions if one.confidence is not None)
    if len(means) < FEW_JUDGED:
        return None
    return round(means[len(means) // 20], 4)
