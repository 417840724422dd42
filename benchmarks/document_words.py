"""What is left of documents that a translator has translated: `python benchmarks/document_words.py
FOLDER`.

Documents are the 500 samples of `tools/document_samples.py`. For each kind, the table has the share
of samples whose tags and placeholders are all there and nested as before, and the share of words
that the same text has where a person has taken tags and placeholders out of it: over all words, and
of samples that have all of them. `--without` says the same where no alignment is given.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import unescape
from pathlib import Path

import weft
from weft.documents.document import Translated
from weft.documents.driver import translate_document

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from document_samples import LETTERS, READ, Sample, faults_of, samples


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator's folder")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--without", action="store_true", help="use no alignment")
    asked = parser.parse_args()
    found = samples(asked.samples)
    answers = answered(asked.folder, found, asked.without)
    rows: defaultdict[str, list[tuple[bool, int, int]]] = defaultdict(list)
    for sample in found:
        entry = measured(sample, answers)
        rows[sample.kind].append(entry)
        rows["all"].append(entry)
    print("| samples | number | structure kept | words as in plain text | all words |")
    print("|---|---|---|---|---|")
    for kind, entries in sorted(rows.items()):
        print(f"| {kind} | {len(entries)} | {' | '.join(shares(entries))} |")


def shares(entries: Sequence[tuple[bool, int, int]]) -> list[str]:
    """Return the shares of samples with their structure, of words, of samples with all words."""
    kept = sum(is_kept for is_kept, _, _ in entries) / len(entries)
    words = sum(same for _, same, _ in entries) / sum(total for _, _, total in entries)
    whole = sum(same == total for _, same, total in entries) / len(entries)
    return [f"{share:.1%}" for share in (kept, words, whole)]


def measured(sample: Sample, answers: dict[str, Translated]) -> tuple[bool, int, int]:
    """Return whether a sample keeps its structure, and how many words of the plain text's
    translation it has, of how many.
    """
    is_kept = not list(faults_of(sample, answers.__getitem__))
    written = translate_document(
        READ[sample.format](sample.text),
        lambda texts: [answers[text] for text in texts],
    )
    found = [word for line in plain(sample, written) for word in LETTERS.findall(line)]
    lines = plain(sample, sample.text)
    wanted = [word for line in lines for word in LETTERS.findall(answers[line].text)]
    blocks = SequenceMatcher(None, found, wanted, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return is_kept, same, max(len(wanted), len(found))


def plain(sample: Sample, text: str) -> list[str]:
    """Return the lines of a document as a person types them, without tags and placeholders."""
    for placeholder in sorted(sample.placeholders, key=len, reverse=True):
        text = text.replace(placeholder, " ")
    text = re.sub(r"</(?:p|li|h2|td|div)>", "\n", text)
    text = re.sub(r"<br\s*/?>", " ", text)
    text = unescape(
        re.sub("<[^>]*>?", "", re.sub('alt=\'[^\']*\'|"[^"<>]* > [^"]*"', "", text))
    )
    text = re.sub(r'"\s*"|\(\s*\)', "", text)
    lines = (
        re.sub(r"\s+([.,:!])", r"\1", " ".join(line.split()))
        for line in text.split("\n")
    )
    return [re.sub(r"^(?:- |:)\s*", "", line) for line in lines if LETTERS.search(line)]


def answered(
    folder: str, found: Sequence[Sample], without: bool
) -> dict[str, Translated]:
    """Translate the texts of all samples, as documents and as plain text."""
    texts: dict[str, None] = {}
    for sample in found:
        segments = READ[sample.format](sample.text).segments
        texts |= dict.fromkeys(segment.text for segment in segments)
        texts |= dict.fromkeys(plain(sample, sample.text))
    predictions = weft.load(folder).translate(list(texts), alignments=True)
    answers = {}
    for text, prediction in zip(texts, predictions, strict=True):
        words = [] if without else prediction.words or []
        pairs = [
            (source.start, source.end, word.start, word.end)
            for word in words
            for source in word.sources
        ]
        answers[text] = Translated(prediction.text, pairs)
    return answers


if __name__ == "__main__":
    main()
