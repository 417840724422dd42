"""How often the language of a short text is told right, beside LibreTranslate's own detector.

    python benchmarks/detection.py --peer /path/to/python

The detector is learned from the train part of each corpus, as a training run learns it, and stored
and read as in a model folder. Texts are cut out of the test part: one word, two or three words,
any number of words in fewer than 20 characters (below which LibreTranslate looks words up), whole
sentences. Of Chinese and Japanese so many characters are cut. `und`, none of the languages, counts
as wrong.

`--peer` is a Python with libretranslate, langdetect and lexilang (`pip install --no-deps
libretranslate==1.9.6 langdetect==1.0.9 lexilang==1.0.7 six`). Its detector is given the same
languages; both of its codes for Chinese count. Without the option, its column is left out.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from side_by_side import DATA, refuse_missing

from weft.data import builtin
from weft.data.detection import Detector
from weft.data.profile import Profile, learn_profiles

SPACELESS = ("zh", "ja")
LENGTHS = ("1 word", "2-3 words", "< 20 characters", "sentence")
SHORT = 20
CHARACTERS = ((1, 2), (3, 6))  # as many as one word, and as two or three
DEV_FROM = (
    600  # lines of en-cn's dev before it were looked at while the detector was written
)
Sides = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Setting:
    """A row: models that were trained on these sides, and texts in their languages."""

    name: str
    models: Sequence[Sides]
    texts: Sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peer", type=Path, help="a Python that has libretranslate")
    parser.add_argument("--count", type=int, default=500, help="texts of each kind")
    arguments = parser.parse_args()
    peer = None
    if arguments.peer is None:
        print("LibreTranslate is left out: no --peer\n")
    elif not arguments.peer.is_file():
        print(f"LibreTranslate is left out: no {arguments.peer}\n")
    else:
        peer = Peer(arguments.peer)
    print_rows(arguments.count, peer)
    print_none(arguments.count)


def print_rows(count: int, peer: "Peer | None") -> None:
    print("| languages, text | length | texts | Weft | LibreTranslate |")
    print("|---|---|---|---|---|")
    for setting in settings():
        detector, _, _ = learned(setting.models)
        for length in LENGTHS:
            rows = list(cut(setting.texts, length, count))
            texts = [text for _, text in rows]
            answers = [detector.best(text)[0] for text in texts]
            shares = [share_right(rows, answers)]
            if peer is not None:
                theirs = peer.answers(detector.languages, texts)
                shares.append(share_right(rows, theirs))
            cells = [f"{share:.1f} %" for share in shares]
            cells += ["-"] * (2 - len(cells))
            print(
                f"| {setting.name} | {length} | {len(rows):,} | {' | '.join(cells)} |"
            )
            sys.stdout.flush()


def print_none(count: int) -> None:
    """Print how often a text is told to be in none of the languages, its own or not."""
    print("\n| detector | text | 1 word | 2-3 words | sentence |")
    print("|---|---|---|---|---|")
    multi30k = multi30k_sides("de")
    tatoeba = tatoeba_sides()
    others = {
        "its own": None,
        "French": read("multi30k/test_2016_flickr.fr"),
        "Yoruba": read("menyo20k/dev.yo"),
        "Kosraean": read("ebible/en-kos/dev.kos"),
        "Japanese": read("small_parallel_enja/dev.ja"),
        "of the other corpus": None,
    }
    own = {"Multi30k": multi30k_test("en", "de"), "Tatoeba": tatoeba_test()}
    for name, sides in (("Multi30k", multi30k), ("Tatoeba", tatoeba)):
        detector, seconds, size = learned([sides])
        (other,) = (texts for key, texts in own.items() if key != name)
        for what, lines in others.items():
            texts = other if what.startswith("of") else own[name]
            if lines is not None:
                texts = {"ja" if what == "Japanese" else "xx": lines}
            cells = []
            for length in (LENGTHS[0], LENGTHS[1], LENGTHS[3]):
                rows = list(cut(texts, length, count))
                none = sum(detector.best(text)[0] == "und" for _, text in rows)
                cells.append(f"{100 * none / len(rows):.0f} %")
            print(f"| {name}, en de | {what} | {' | '.join(cells)} |")
        took = time_a_text(detector, [text for _, text in rows])
        print(
            f"{name}: learned in {seconds:.2f} s, {size / 1000:.0f} kB, {took * 1e6:.0f} us a text",
            file=sys.stderr,
        )


def settings() -> Iterator[Setting]:
    """Yield the rows; a corpus that is absent ends the script."""
    en_de = multi30k_sides("de")
    en_fr = multi30k_sides("fr")
    yield Setting("en de, Multi30k", [en_de], multi30k_test("en", "de"))
    yield Setting("en de fr, Multi30k", [en_de, en_fr], multi30k_test("en", "de", "fr"))
    tatoeba = tatoeba_sides()
    yield Setting("en de, Tatoeba", [tatoeba], tatoeba_test())
    yield Setting("en de, learned on Multi30k, Tatoeba", [en_de], tatoeba_test())
    yield Setting(
        "en de, learned on Tatoeba, Multi30k", [tatoeba], multi30k_test("en", "de")
    )
    en_zh = columns("en-cn/train.txt", ("en", "zh"), 0)
    zh_test = columns("en-cn/dev.txt", ("en", "zh"), DEV_FROM)
    yield Setting("en zh, Tatoeba", [en_zh], zh_test)
    en_ja = {lang: read(f"small_parallel_enja/train.{lang}") for lang in ("en", "ja")}
    ja = read("small_parallel_enja/dev.ja")
    five = {**multi30k_test("en", "de", "fr"), "zh": zh_test["zh"], "ja": ja}
    yield Setting("en de fr zh ja, four models", [en_de, en_fr, en_zh, en_ja], five)
    yield builtin_setting()


def builtin_setting() -> Setting:
    parts = {lang: builtin.pairs("everyday", "en", lang) for lang in ("de", "zh")}
    models = []
    texts: dict[str, list[str]] = {}
    for lang, splits in parts.items():
        models.append(
            {"en": [a for a, _ in splits.train], lang: [b for _, b in splits.train]}
        )
        texts |= {"en": [a for a, _ in splits.test], lang: [b for _, b in splits.test]}
    return Setting("en de zh, built-in", models, texts)


def learned(models: Sequence[Sides]) -> tuple[Detector, float, int]:
    """Return the detector of these models, the seconds that it took, and the bytes of the files."""
    began = time.process_time()
    kept = [learn_profiles(list(sides.items())) for sides in models]
    arrays = [{code: one.to_array() for code, one in of.items()} for of in kept]
    seconds = time.process_time() - began
    size = sum(rows.nbytes for of in arrays for rows in of.values())
    detectors = [
        Detector.of({code: Profile.from_array(rows, code) for code, rows in of.items()})
        for of in arrays
    ]
    return Detector.joined(detectors), seconds, size


def time_a_text(detector: Detector, texts: Sequence[str]) -> float:
    """Return the seconds of the processor that a text takes."""
    began = time.process_time()
    for text in texts:
        detector.detect(text)
    return (time.process_time() - began) / len(texts)


def cut(texts: Sides, length: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield so many texts of each language, with it; always the same."""
    for lang, lines in sorted(texts.items()):
        draw = random.Random(f"{lang} {length}")
        one = part_of_characters if lang in SPACELESS else part_of_words
        found = 0
        while found < count:
            text = one(draw, draw.choice(lines), length)
            if any(letter.isalpha() for letter in text):
                found += 1
                yield lang, text


def part_of_words(draw: random.Random, line: str, length: str) -> str:
    """Return some words of a line; nothing where it has too few."""
    words = line.split()
    if length == LENGTHS[3]:
        return line
    number = {LENGTHS[0]: 1, LENGTHS[1]: draw.randint(2, 3)}.get(length, 0)
    number = number or draw.randint(1, 6)
    if len(words) < number:
        return ""
    first = draw.randrange(len(words) - number + 1)
    text = " ".join(words[first : first + number])
    return text if length != LENGTHS[2] or len(text) < SHORT else ""


def part_of_characters(draw: random.Random, line: str, length: str) -> str:
    line = line.replace(" ", "")
    if length == LENGTHS[3]:
        return line
    least, most = dict(zip(LENGTHS, CHARACTERS, strict=False)).get(length, (1, 19))
    number = draw.randint(least, most)
    first = draw.randrange(max(len(line) - number, 0) + 1)
    return line[first : first + number]


def share_right(rows: Sequence[tuple[str, str]], answers: Sequence[str]) -> float:
    pairs = zip(rows, answers, strict=True)
    right = sum(lang == answer for (lang, _), answer in pairs)
    return 100 * right / len(rows)


class Peer:
    """LibreTranslate's detector in a process of its own Python."""

    def __init__(self, python: Path) -> None:
        script = Path(__file__).with_name("detection_libretranslate.py")
        command = [str(python), str(script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answers(self, languages: Sequence[str], texts: Sequence[str]) -> list[str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([languages, texts]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("LibreTranslate's process has ended, see above")
        found: list[str] = json.loads(line)
        return found


def multi30k_sides(lang: str) -> Sides:
    return {code: read(f"multi30k/train.{code}") for code in ("en", lang)}


def multi30k_test(*langs: str) -> Sides:
    return {lang: read(f"multi30k/test_2016_flickr.{lang}") for lang in langs}


def tatoeba_sides() -> Sides:
    return {lang: read(f"tatoeba-de-en/train.{lang}.gz") for lang in ("en", "de")}


def tatoeba_test() -> Sides:
    return {lang: read(f"tatoeba-de-en/dev.{lang}") for lang in ("en", "de")}


def columns(name: str, langs: tuple[str, str], first: int) -> Sides:
    """Return the two columns of a table, from a line on."""
    rows = [line.split("\t") for line in read(name)[first:]]
    return {lang: [row[n] for row in rows] for n, lang in enumerate(langs)}


def read(name: str) -> list[str]:
    path = DATA / name
    refuse_missing(path)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


if __name__ == "__main__":
    main()
