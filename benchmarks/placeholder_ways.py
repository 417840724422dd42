"""How a placeholder is best kept from a translator: `python benchmarks/placeholder_ways.py FOLDER
--text SENTENCES`.

In each sentence one word becomes `{0}`: one that the model aligns with a single word of its
translation, and that one with it alone. Wanted is the translation of the whole sentence, with `{0}`
in the place of that word. Each way of translating the sentence with the placeholder is
compared with it by chrF++ and BLEU, `{0}` counted as a word; a way that fails in a sentence takes
what Weft does. `worked` is the share of sentences in which it did not.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

import weft
from weft.documents.document import Translated
from weft.documents.formats.text.plain import read_plain
from weft.documents.writing import write_segment

MARK = "{0}"
Model = Callable[[Sequence[str]], dict[str, Translated]]
Case = tuple[str, str]
"""A sentence with the placeholder, and its wanted translation."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator's folder")
    parser.add_argument("--text", required=True, help="a file with a sentence a line")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--words", nargs="*", default=["XX", "42", "BMX", "man", "one"])
    asked = parser.parse_args()
    model = partial(translated, weft.load(asked.folder))
    lines = Path(asked.text).read_text("utf-8").split("\n")
    lines = [line for line in lines if line.strip()][: 2 * asked.sentences]
    cases = list(replaced(lines, model(lines)))[: asked.sentences]
    sources = [source for source, _ in cases]
    usual = without(sources, model, aligned=True)
    print(f"{len(cases)} sentences\n")
    print("| way | worked | chrF++ | BLEU |")
    print("|---|---|---|---|")
    show("without it, put back by alignment", cases, usual, usual)
    found = without(sources, model, aligned=False)
    show("without it, put back at its share of the words", cases, found, usual)
    show("both sides by themselves", cases, split(sources, model), usual)
    show("as it is", cases, copied(sources, model, MARK), usual)
    for word in asked.words:
        show(f"as {word}, found again", cases, copied(sources, model, word), usual)
        found = by_alignment(sources, model, word)
        show(f"as {word}, found by alignment", cases, found, usual)


def translated(model: weft.Translator, texts: Sequence[str]) -> dict[str, Translated]:
    """Return the translation of each text, aligned."""
    different = list(dict.fromkeys(texts))
    found = {}
    predictions = model.translate(different, alignments=True)
    for text, prediction in zip(different, predictions, strict=True):
        pairs = [
            (source.start, source.end, word.start, word.end)
            for word in prediction.words or []
            for source in word.sources
        ]
        found[text] = Translated(prediction.text, pairs)
    return found


def replaced(texts: Sequence[str], answers: dict[str, Translated]) -> Iterator[Case]:
    """Yield the texts in which a word can be replaced on both sides, that word drawn by lot."""
    chance = random.Random(1)
    for text in texts:
        answer = answers[text]
        src = Counter(pair[:2] for pair in answer.alignment)
        tgt = Counter(pair[2:] for pair in answer.alignment)
        alone = [
            pair
            for pair in answer.alignment
            if src[pair[:2]] == tgt[pair[2:]] == 1
            and len(text[slice(*pair[:2])]) > 3
            and text[slice(*pair[:2])].isalpha()
            and answer.text[slice(*pair[2:])].isalpha()
        ]
        if alone:
            start, end, first, last = chance.choice(alone)
            wanted = answer.text[:first] + MARK + answer.text[last:]
            yield text[:start] + MARK + text[end:], wanted


def without(sources: Sequence[str], model: Model, aligned: bool) -> list[str]:
    """Translate as Weft does; without the alignment on request."""
    segments = [read_plain(source).segments[0] for source in sources]
    answers = model([segment.text for segment in segments])
    found = []
    for segment in segments:
        answer = answers[segment.text]
        if not aligned:
            answer = Translated(answer.text)
        found.append(write_segment(segment, answer))
    return found


def split(sources: Sequence[str], model: Model) -> list[str | None]:
    """Translate what is before the placeholder and what is after it."""
    sides = [[side.strip() for side in source.split(MARK)] for source in sources]
    answers = model([side for pair in sides for side in pair])
    return [
        f" {MARK} ".join(answers[side].text for side in pair).strip() for pair in sides
    ]


def copied(sources: Sequence[str], model: Model, word: str) -> list[str | None]:
    """Translate with a word in its place, which must be in the translation once."""
    answers = model([source.replace(MARK, word) for source in sources])
    there = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    found: list[str | None] = []
    for source in sources:
        text = answers[source.replace(MARK, word)].text
        is_once = len(there.findall(text)) == 1 and source.count(word) <= (word == MARK)
        found.append(there.sub(lambda _: MARK, text) if is_once else None)
    return found


def by_alignment(sources: Sequence[str], model: Model, word: str) -> list[str | None]:
    """Translate with a word in its place; the only word that comes from it alone is replaced."""
    answers = model([source.replace(MARK, word) for source in sources])
    found: list[str | None] = []
    for source in sources:
        answer = answers[source.replace(MARK, word)]
        start = source.index(MARK)
        end = start + len(word)
        others = {p[2:] for p in answer.alignment if p[1] <= start or p[0] >= end}
        alone = {p[2:] for p in answer.alignment} - others
        if len(alone) != 1:
            found.append(None)
            continue
        ((first, last),) = alone
        marks = re.search(r"\W*$", answer.text[first:last])
        last -= len(marks[0]) if marks else 0
        found.append(answer.text[:first] + MARK + answer.text[last:])
    return found


def show(
    name: str,
    cases: Sequence[Case],
    found: Sequence[str | None],
    usual: Sequence[str | None],
) -> None:
    """Print a row."""
    worked = sum(text is not None for text in found) / len(found)
    texts = [text or other or "" for text, other in zip(found, usual, strict=True)]
    sides = [
        [text.replace(MARK, "\u2588") for text in side]
        for side in (texts, [wanted for _, wanted in cases])
    ]
    chrf = CHRF(word_order=2).corpus_score(sides[0], [sides[1]]).score
    bleu = BLEU().corpus_score(sides[0], [sides[1]]).score
    print(f"| {name} | {worked:.0%} | {chrf:.1f} | {bleu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
