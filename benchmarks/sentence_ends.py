"""Where sentences end: Weft's own rules and those of sentencex, on texts that a person has cut, and
on neighbouring lines of corpora that are joined to one text.

Prints for each language or corpus the share of texts that are cut as wanted, and the precision and
recall of the ends. A line of a corpus may be several sentences, so that its precision is too low
for both alike. Needs the package sentencex; corpora are looked for in the folder WEFT_DATA.

    python benchmarks/sentence_ends.py
"""

import gzip
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import sentencex

from weft.data.corpus import read_pairs
from weft.data.segment import split_sentences

Split = Callable[[str, str], list[str]]
CASES = Path(__file__).parents[1] / "tests" / "data" / "sentences.txt"
JOINED = 5  # lines of a corpus that are one text
UNSPACED = ("zh", "ja")
COMPLETE = re.compile(r"[.!?。！？।؟][\"”»’')」]*$")
FILES = {
    "multi30k/val.{}": ("en", "de", "fr"),
    "tatoeba-de-en/dev.{}": ("en", "de"),
    "kftt/dev.{}": ("en", "ja"),
    "chren/dev.{}": ("en",),
    "menyo20k/dev.{}": ("en", "yo"),
    "python-docs-en-zh/dev.{}": ("en", "zh"),
}
TMX = "tico19-tmx/all.en-{}.tmx"
TMX_LANGUAGES = ("ckb", "fr", "ms", "rw", "zh")

Text = tuple[str, list[str]]  # language and sentences


def hand_written() -> Iterator[tuple[str, list[Text]]]:
    """The texts of each language of the file of cases."""
    texts: dict[str, list[Text]] = {}
    language = ""
    for line in CASES.read_text("utf-8").split("\n"):
        if line.startswith("# "):
            language = line[2:]
        elif line:
            texts.setdefault(language, []).append((language, line.split("‖")))
    yield from texts.items()


def corpora(folder: Path) -> Iterator[tuple[str, list[Text]]]:
    """The texts of each corpus that is there."""
    for pattern, languages in FILES.items():
        for language in languages:
            path = folder / pattern.format(language)
            if path.exists():
                yield f"{path.parent.name} {language}", joined(lines(path), language)
    for language in TMX_LANGUAGES:
        path = folder / TMX.format(language)
        if path.exists():
            pairs = read_pairs(str(path))
            if language == TMX_LANGUAGES[0]:
                yield "tico19 en", joined(pairs.src, "en")
            yield f"tico19 {language}", joined(pairs.tgt, language)


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return text.decode("utf-8").split("\n")


def joined(found: list[str], language: str) -> list[Text]:
    whole = [line.strip() for line in found if COMPLETE.search(line.strip())]
    space = "" if language in UNSPACED else " "
    texts = []
    for start in range(0, len(whole) - JOINED + 1, JOINED):
        part = whole[start : start + JOINED]
        texts.append((language, [line + space for line in part[:-1]] + part[-1:]))
    return texts


def ends(sentences: list[str]) -> set[int]:
    """Where sentences end but for the last one, in characters that are no white space."""
    places = set()
    count = 0
    for sentence in sentences[:-1]:
        count += len("".join(sentence.split()))
        places.add(count)
    return places - {0}


def measured(texts: list[Text], split: Split) -> str:
    right = both = found = wanted = 0
    for language, sentences in texts:
        want = ends(sentences)
        got = ends(split("".join(sentences), language))
        right += want == got
        both += len(want & got)
        found += len(got)
        wanted += len(want)
    share = right / len(texts)
    return f"{share:7.3f}{both / max(found, 1):7.3f}{both / max(wanted, 1):7.3f}"


def other(text: str, language: str) -> list[str]:
    return list(sentencex.segment(language, text))


def main() -> None:
    everything = list(hand_written())
    together = [text for _, texts in everything for text in texts]
    everything.append(("all by hand", together))
    everything += corpora(Path(os.environ.get("WEFT_DATA", "no such folder")))
    print(f"{'':24}{'weft':>21}{'sentencex':>23}")
    print(f"{'':24}{'right  prec. recall':>21}{'right  prec. recall':>23}")
    for name, texts in everything:
        own = measured(texts, split_sentences)
        print(f"{name:18}{len(texts):6}{own}  {measured(texts, other)}")


if __name__ == "__main__":
    main()
