"""Terms of WMT21's shared task on terminologies, for `weft evaluate --glossary`:
`python benchmarks/wmt21_terms.py PAIRS.tsv GLOSSARY.tsv`.

Writes the 971 pairs of its English-French dev set without their marks, and a glossary of the marked
terms, each with all of the targets that the set allows it. The set is the dev part of TICO-19: a
translator that is judged on it must not have learned from that. It says where terms are put, not
how well a model of other text translates them.
"""

import argparse
import html
import re
from collections.abc import Iterator
from pathlib import Path

from side_by_side import DATA, refuse_missing

FOLDER = DATA / "wmt21-terminology"
SOURCE = FOLDER / "dev.en-fr.en.sgm"
REFERENCE = FOLDER / "dev.en-fr.fr.sgm"
_SEGMENT = re.compile(r'<seg id="([^"]*)">(.*?)</seg>', re.DOTALL)
_TERM = re.compile(r'<term [^>]*src="([^"]*)" tgt="([^"]*)"[^>]*>')
_TAG = re.compile(r"<[^>]*>")


def segments(path: Path) -> dict[str, str]:
    """Read the segments of a file, by their numbers, with their marks."""
    return dict(_SEGMENT.findall(path.read_text("utf-8")))


def plain(marked: str) -> str:
    """Return a segment without marks, on a single line."""
    return " ".join(html.unescape(_TAG.sub(" ", marked)).split())


def terms_of(marked: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each term that is marked, with its targets."""
    for source, targets in _TERM.findall(marked):
        yield html.unescape(source), html.unescape(targets).split("|")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("glossary", type=Path)
    asked = parser.parse_args()
    refuse_missing(SOURCE, REFERENCE)
    sources = segments(SOURCE)
    references = segments(REFERENCE)
    known: dict[str, dict[str, None]] = {}
    for marked in sources.values():
        for source, targets in terms_of(marked):
            known.setdefault(source, {}).update(dict.fromkeys(targets))
    pairs = [(sources[number], references[number]) for number in sources]
    lines = [f"{plain(src)}\t{plain(ref)}\n" for src, ref in pairs]
    asked.pairs.write_text("".join(lines), "utf-8")
    rows = [f"{src}\t{'|'.join(each)}\n" for src, each in known.items()]
    asked.glossary.write_text("source\ttarget\n" + "".join(rows), "utf-8")
    print(f"{len(pairs)} pairs, {len(known)} terms")


if __name__ == "__main__":
    main()
