"""A repetitive document, translated with the memory of an older one and without: `python
benchmarks/repetitive.py FOLDER test.en,test.de`.

The older document is the pairs, with their references as its translation. In the new one each third
sentence has another number on both sides, or as many as there are with a number. English number
words with their German ones are digits in both documents, as a manual has them. Prints BLEU
against the new references, and what was taken.
"""

import argparse
import re
from collections import Counter
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

import weft
from weft.data.corpus import from_pairs, read_pairs
from weft.data.memory import Memory
from weft.predict.translator import Translator

WORDS = (
    "zero one two three four five six seven eight nine ten",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn",
)
FIRST = 2  # one is an article, too
ADDED = 10


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator's folder")
    parser.add_argument("pairs", help="pairs, such as test.en,test.de")
    asked = parser.parse_args()
    model = weft.load(asked.folder)
    assert isinstance(model, Translator)
    text = read_pairs(asked.pairs, model.src_lang, model.tgt_lang)
    old = [with_digits(*pair) for pair in zip(text.src, text.tgt, strict=True)]
    new, changed = changed_numbers(old)
    languages = (model.src_lang, model.tgt_lang)
    memory = Memory.from_text(from_pairs(old, "old", *languages))
    sources = [src for src, _ in new]
    without = model.translate(sources)
    remembering = model.with_memory(memory).translate(sources)
    kinds = Counter(
        use.kind for one in remembering for use in one.memory or () if use.taken
    )
    print(
        f"{len(new):,} sentences, {len(changed):,} with another number; taken: {dict(kinds)}"
    )
    print("| | BLEU | of those with another number |")
    print("|---|---|---|")
    references = [tgt for _, tgt in new]
    for name, predictions in (("without", without), ("with the memory", remembering)):
        texts = [one.text for one in predictions]
        whole = bleu(texts, references)
        part = bleu([texts[n] for n in changed], [references[n] for n in changed])
        print(f"| {name} | {whole:.1f} | {part:.1f} |")


def bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the score of translations."""
    return float(BLEU().corpus_score(list(texts), [list(references)]).score)


def with_digits(src: str, tgt: str) -> tuple[str, str]:
    """Return a pair with digits for the number words that stand once on either side."""
    for number, words in enumerate(zip(*map(str.split, WORDS), strict=True)):
        if number < FIRST:
            continue
        forms = [re.compile(rf"\b{word}\b", re.IGNORECASE) for word in words]
        counts = [len(forms[0].findall(src)), len(forms[1].findall(tgt))]
        if counts == [1, 1]:
            src = forms[0].sub(str(number), src)
            tgt = forms[1].sub(str(number), tgt)
    return src, tgt


def changed_numbers(
    pairs: Sequence[tuple[str, str]],
) -> tuple[list[tuple[str, str]], list[int]]:
    """Return the pairs, of which a third at most have another number, and which these are: those
    that have one alike on both sides.
    """
    changed = []
    new = list(pairs)
    for place, (src, tgt) in enumerate(pairs):
        numbers = re.findall(r"\b\d+\b", src)
        alike = [n for n in numbers if src.count(n) == tgt.count(n) == 1]
        if alike and len(changed) * 3 <= place:
            other = str(int(alike[0]) + ADDED)
            new[place] = src.replace(alike[0], other), tgt.replace(alike[0], other)
            changed.append(place)
    return new, changed


if __name__ == "__main__":
    main()
