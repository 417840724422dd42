"""Damage texts and count what the data check finds: `python benchmarks/damage.py [--seeds N ...]
[--kinds ...]`

Each kind of damage is put at random places of a public corpus, into one row in a thousand where the
kind allows, and the text is looked over as `weft check` does. Recall is the share of damaged rows
that the right finding names, precision the share of damaged ones among the rows that it names anew;
what it names in the sound corpus already is counted by itself. Corpora are read from WEFT_DATA,
else from ../shared/data.
"""

import argparse
import gzip
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.data.check.finding import Finding
from weft.data.checkup import check_up
from weft.data.texts import Sources
from weft.data.train_text import TrainText
from weft.recipes.file import load_recipe

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data"))
SHARE = 1000  # one row of so many is damaged
Row = tuple[str, ...]  # source and target; label and text; a text alone
CYRILLIC = "абвгдежзиклмнопрстуфхцчшыэюя"


@dataclass
class Damaged:
    """Rows after the damage, those (from 1) that were damaged, and what else a kind has: test rows,
    bytes.
    """

    rows: list[Row]
    lines: set[int]
    test: list[Row] | None = None
    raw: bytes | None = None  # the file as it is, where it cannot be rows
    drop: int | None = None  # a line that the second file lacks


@dataclass(frozen=True)
class Kind:
    """A kind of damage, the finding that should name it, and the texts that it is for."""

    code: str
    damage: Callable[[list[Row], random.Random], Damaged]
    task: str = "translation"


@dataclass
class Tally:
    """What was found of one kind, over corpora and seeds."""

    damaged: int = 0
    hit: int = 0
    new: int = 0
    before: int = 0
    # lines between the first damaged one and the first named
    off: list[int] = field(default_factory=list)


def some(
    rows: Sequence[Row],
    chance: random.Random,
    fits: Callable[[Row], bool] = lambda row: True,
) -> list[int]:
    """About a thousandth of the rows, of those that the kind fits, in order."""
    fitting = [i for i, row in enumerate(rows) if fits(row)]
    return sorted(chance.sample(fitting, min(len(fitting), max(1, len(rows) // SHARE))))


def change(
    make: Callable[[Row, random.Random, list[Row]], Row],
    fits: Callable[[Row], bool] = lambda row: True,
) -> Callable[[list[Row], random.Random], Damaged]:
    """Damage that turns a row into another."""

    def damage(rows: list[Row], chance: random.Random) -> Damaged:
        chosen = some(rows, chance, fits)
        changed = list(rows)
        for i in chosen:
            changed[i] = make(rows[i], chance, rows)
        return Damaged(changed, {i + 1 for i in chosen})

    return damage


def insert(
    make: Callable[[Row, random.Random, list[Row]], Row],
    fits: Callable[[Row], bool] = lambda row: True,
) -> Callable[[list[Row], random.Random], Damaged]:
    """Damage that puts a row made from another one somewhere behind it."""

    def damage(rows: list[Row], chance: random.Random) -> Damaged:
        places = sorted(
            (chance.randint(i + 1, len(rows)), i) for i in some(rows, chance, fits)
        )
        changed, lines = [], set()
        start = 0
        for place, i in places:
            changed += rows[start:place]
            changed.append(make(rows[i], chance, rows))
            lines.add(len(changed))
            start = place
        return Damaged([*changed, *rows[start:]], lines)

    return damage


def shift(
    length: Callable[[int], int],
) -> Callable[[list[Row], random.Random], Damaged]:
    """A target line is lost, all that follow move up, and a stray line ends the stretch."""

    def damage(rows: list[Row], chance: random.Random) -> Damaged:
        size = length(len(rows))
        first = chance.randrange(len(rows) // 10, len(rows) - size)
        targets = [row[1] for row in rows]
        stray = chance.choice(targets)
        last = min(first + size, len(rows)) - 1
        targets[first : last + 1] = [*targets[first + 1 : last + 1], stray]
        changed = [(src, tgt) for (src, _), tgt in zip(rows, targets, strict=True)]
        return Damaged(changed, set(range(first + 1, last + 2)))

    return damage


def lose_line(rows: list[Row], chance: random.Random) -> Damaged:
    """The second file lacks a line."""
    line = chance.randrange(len(rows) // 10, len(rows) * 9 // 10) + 1
    return Damaged(rows, {line}, drop=line)


def exchange(rows: list[Row], chance: random.Random) -> Damaged:
    """Pairs swap their targets, two by two."""
    chosen = some(rows, chance)
    chosen = (
        chosen if len(chosen) > 1 else sorted({*chosen, chance.randrange(len(rows))})
    )
    order = chosen[1:] + chosen[:1]
    changed = list(rows)
    for i, j in zip(chosen, order, strict=True):
        changed[i] = (rows[i][0], rows[j][1])
    return Damaged(changed, {i + 1 for i in chosen})


def bad_byte(rows: list[Row], chance: random.Random) -> Damaged:
    """A byte of another encoding in one line."""
    line = chance.randrange(len(rows))
    lines = ["\t".join(row).encode() for row in rows]
    lines[line] = lines[line][:-1] + b"\xe4\xf6" + lines[line][-1:]
    return Damaged(rows, {line + 1}, raw=b"\n".join(lines) + b"\n")


def stray_tab(rows: list[Row], chance: random.Random) -> Damaged:
    """A TAB too many, or one too few."""
    line = chance.randrange(1, len(rows))
    lines = ["\t".join(row) for row in rows]
    lines[line] = (
        lines[line].replace("\t", " ")
        if chance.random() < 0.5
        else f"{lines[line]}\tmore"
    )
    return Damaged(
        rows, {line + 1}, raw="".join(f"{text}\n" for text in lines).encode()
    )


def into_test(
    make: Callable[[Row], Row],
) -> Callable[[list[Row], random.Random], Damaged]:
    """A thousandth of the rows is held out, and a third of that put into training again."""

    def damage(rows: list[Row], chance: random.Random) -> Damaged:
        held = set(chance.sample(range(len(rows)), max(30, len(rows) // SHARE)))
        test = [rows[i] for i in sorted(held)]
        copied = set(chance.sample(range(len(test)), len(test) // 3))
        train = [row for i, row in enumerate(rows) if i not in held] + [
            make(test[i]) for i in sorted(copied)
        ]
        return Damaged(train, {i + 1 for i in copied}, test)

    return damage


def of_test(
    make: Callable[[list[Row], random.Random], list[Row]],
) -> Callable[[list[Row], random.Random], Damaged]:
    """The last 500 rows are the test text, and something is wrong with its labels."""

    def damage(rows: list[Row], chance: random.Random) -> Damaged:
        return Damaged(rows[:-500], {1}, make(rows[-500:], chance))

    return damage


def lose_class(test: list[Row], chance: random.Random) -> list[Row]:
    label = chance.choice(sorted({row[0] for row in test}))
    return [row for row in test if row[0] != label]


def new_class(test: list[Row], chance: random.Random) -> list[Row]:
    changed = list(test)
    i = chance.randrange(len(test))
    changed[i] = ("UNHEARD", test[i][1])
    return changed


# What becomes of one row


def other_word(text: str, chance: random.Random, rows: list[Row]) -> str:
    """One word exchanged for one of another row; of a text without spaces a character."""
    words, more = (
        t.split() if " " in t else list(t) for t in (text, chance.choice(rows)[-1])
    )
    words[chance.randrange(len(words))] = chance.choice(more)
    return (" " if " " in text else "").join(words)


def last(make: Callable[[str], str]) -> Callable[[Row, random.Random, list[Row]], Row]:
    """A change of a row's last part: the target, or the text."""
    return lambda row, chance, rows: (*row[:-1], make(row[-1]))


def unlike_case(text: str) -> str:
    return re.sub(r"[.,!?。，！？]", "", text.upper()) + " !"


def into_middle(mark: str) -> Callable[[str], str]:
    return lambda text: text[: len(text) // 2] + mark + text[len(text) // 2 :]


def cyrillic(text: str) -> str:
    return "".join(CYRILLIC[ord(c) % len(CYRILLIC)] if c.isalpha() else c for c in text)


def misread(text: str) -> str:
    raw = text.encode()
    return "".join(
        bytes([b]).decode("cp1252", "ignore") or bytes([b]).decode("latin-1")
        for b in raw
    )


def other_number(row: Row, chance: random.Random, rows: list[Row]) -> Row:
    return (row[0], re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), row[1], count=1))


def slip(row: Row, chance: random.Random, rows: list[Row]) -> Row:
    label = row[0]
    place = chance.randrange(1, len(label))
    return (
        label[:place] + label[place + 1 :] if len(label) > 4 else f"{label}{label[-1]}",
        row[1],
    )


def other_label(row: Row, chance: random.Random, rows: list[Row]) -> Row:
    others = sorted({r[0] for r in rows[:500]} - {row[0]})
    return (chance.choice(others), row[1])


def long_enough(row: Row) -> bool:
    return all(len(t.split() if " " in t else t) >= 9 for t in row[-2:])


def non_ascii(row: Row) -> bool:
    return any(c >= "\u00c0" for c in row[-1])


def same_numbers(row: Row) -> bool:
    here, there = (re.findall(r"[0-9]+", text) for text in row)
    return bool(here) and here == there


near = insert(
    lambda row, c, rows: tuple(other_word(t, c, rows) for t in row), long_enough
)
KINDS = {
    "shifted, a thousandth of the lines": Kind(
        "shifted-lines", shift(lambda n: max(12, n // SHARE))
    ),
    "shifted, a tenth of the lines": Kind("shifted-lines", shift(lambda n: n // 10)),
    "a line lost in one file": Kind("unequal-lines", lose_line),
    "targets exchanged": Kind("strangers", exchange),
    "untranslated copies": Kind(
        "untranslated", change(lambda row, c, rows: (row[0], row[0]))
    ),
    "swapped languages": Kind(
        "swapped-languages", change(lambda row, c, rows: row[::-1])
    ),
    "target in the source's language": Kind(
        "same-language", change(lambda row, c, rows: (row[0], c.choice(rows)[0]))
    ),
    "wrong script": Kind("wrong-script", change(last(cyrillic))),
    "cut translations": Kind(
        "length-ratio",
        change(last(lambda t: t[: max(1, len(t) * 3 // 10)]), long_enough),
    ),
    "glued translations": Kind(
        "length-ratio",
        change(
            lambda row, c, rows: (
                row[0],
                f"{row[1]} {c.choice(rows)[1]} {c.choice(rows)[1]}",
            )
        ),
    ),
    "other numbers": Kind("numbers-differ", change(other_number, same_numbers)),
    "duplicates": Kind("duplicates", insert(lambda row, c, rows: row)),
    "duplicates but for case and marks": Kind(
        "duplicates", insert(lambda row, c, rows: tuple(map(unlike_case, row)))
    ),
    "near-duplicates": Kind("near-duplicates", near),
    "control characters": Kind("control-characters", change(last(into_middle("\x07")))),
    "encoding misread": Kind("misread-encoding", change(last(misread), non_ascii)),
    "markup": Kind("markup", change(last(into_middle("<br />")))),
    "very long lines": Kind(
        "long-lines", change(lambda row, c, rows: tuple(f"{t} " * 300 for t in row))
    ),
    "empty sides": Kind("dropped-pairs", change(lambda row, c, rows: (row[0], ""))),
    "invalid bytes": Kind("unreadable", bad_byte),
    "stray or missing TAB": Kind("unreadable", stray_tab),
    "test in training": Kind("test-in-training", into_test(lambda row: row)),
    "test in training but for case and marks": Kind(
        "test-in-training", into_test(lambda row: tuple(map(unlike_case, row)))
    ),
    "rows: label variants": Kind(
        "label-variants",
        change(lambda r, c, _: (r[0].swapcase(), r[1])),
        "classification",
    ),
    "rows: misspelled labels": Kind("label-variants", change(slip), "classification"),
    "rows: contradictions": Kind(
        "contradictions", insert(other_label), "classification"
    ),
    "rows: duplicates": Kind(
        "duplicates", insert(lambda row, c, rows: row), "classification"
    ),
    "rows: no text": Kind(
        "dropped-rows", change(lambda row, c, rows: (row[0], " ")), "classification"
    ),
    "rows: no label": Kind(
        "no-label", change(lambda row, c, rows: ("", row[1])), "classification"
    ),
    "rows: a class missing in test": Kind(
        "missing-label", of_test(lose_class), "classification"
    ),
    "rows: a class unknown to training": Kind(
        "unknown-label", of_test(new_class), "classification"
    ),
    "documents: duplicates": Kind(
        "duplicates", insert(lambda row, c, rows: row), "language-modelling"
    ),
    "documents: near-duplicates": Kind("near-duplicates", near, "language-modelling"),
    "documents: control characters": Kind(
        "control-characters", change(last(into_middle("\ufffd"))), "language-modelling"
    ),
    "documents: encoding misread": Kind(
        "misread-encoding", change(last(misread), non_ascii), "language-modelling"
    ),
    "documents: markup": Kind(
        "markup", change(last(into_middle("&nbsp;"))), "language-modelling"
    ),
    "documents: wrong script": Kind(
        "wrong-script", change(last(cyrillic)), "language-modelling"
    ),
}


# Corpora


def corpora(task: str) -> dict[str, list[Row]]:
    """The public corpora for a task, those that are there."""
    readers: dict[str, dict[str, Callable[[], list[Row]]]] = {
        "translation": {
            "multi30k": lambda: aligned("multi30k/train.en", "multi30k/train.de"),
            "en-cn": lambda: [
                tuple(line.split("\t")[:2]) for line in text_lines("en-cn/train.txt")
            ],
            "enja": lambda: aligned(
                "small_parallel_enja/train.en", "small_parallel_enja/train.ja"
            ),
            "kftt": lambda: aligned("kftt/tune.ja", "kftt/tune.en"),
        },
        "classification": {
            "trec": lambda: table("trec/train.tsv", 0, 2),
            "sst2": lambda: words_for(
                table("sst2/train_sentences.tsv", 0, 1),
                {"0": "negative", "1": "positive"},
            ),
            "imdb": lambda: words_for(
                table("imdb/train.tsv.gz", 1, 2)[:8000],
                {"0": "negative", "1": "positive"},
            ),
        },
        "language-modelling": {
            "wikitext2": lambda: [
                (line,) for line in text_lines("wikitext2/valid.txt") if len(line) > 200
            ]
        },
    }
    return {
        name: read()
        for name, read in readers[task].items()
        if (DATA / FIRST_FILE[name]).is_file()
    }


FIRST_FILE = {
    "multi30k": "multi30k/train.en",
    "en-cn": "en-cn/train.txt",
    "enja": "small_parallel_enja/train.en",
    "kftt": "kftt/tune.ja",
    "trec": "trec/train.tsv",
    "sst2": "sst2/train_sentences.tsv",
    "imdb": "imdb/train.tsv.gz",
    "wikitext2": "wikitext2/valid.txt",
}


def text_lines(name: str) -> list[str]:
    content = (DATA / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    return [line.strip() for line in content.decode().split("\n")[:-1]]


def aligned(src: str, tgt: str) -> list[Row]:
    """Pairs of two files; a TAB in a sentence would end it in the file that is written of them."""
    sides = (
        [line.replace("\t", " ") for line in text_lines(name)] for name in (src, tgt)
    )
    return list(zip(*sides, strict=True))


def table(name: str, label: int, text: int) -> list[Row]:
    cells = (line.split("\t") for line in text_lines(name)[1:])
    return [(row[label], row[text]) for row in cells]


def words_for(rows: list[Row], names: dict[str, str]) -> list[Row]:
    return [(names[label], text) for label, text in rows]


# One trial


def look(damaged: Damaged, task: str, folder: Path) -> list[Finding]:
    """What the doctor says of the rows, written to files and read again."""
    settings = {
        "translation": [],
        "classification": [],
        "language-modelling": ["data.documents=line"],
    }[task]
    recipe = load_recipe(None, [f"task={task}", *settings])
    train = TrainText(written(damaged, damaged.rows, task, folder, "train"))
    given = Sources((train,))
    if damaged.test is not None:
        given = Sources(
            given.train, None, written(damaged, damaged.test, task, folder, "test")
        )
    return check_up(recipe, given).findings


def written(
    damaged: Damaged, rows: list[Row], task: str, folder: Path, name: str
) -> str:
    """The name of DATA that holds the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    if damaged.raw is not None and name == "train":
        (folder / f"{name}.en-xx.tsv").write_bytes(damaged.raw)
        return str(folder / f"{name}.en-xx.tsv")
    if damaged.drop is not None:
        for column, file in enumerate(("train.src", "train.tgt")):
            lines = [
                row[column]
                for i, row in enumerate(rows, start=1)
                if column == 0 or i != damaged.drop
            ]
            (folder / file).write_bytes("".join(f"{line}\n" for line in lines).encode())
        return f"{folder / 'train.src'},{folder / 'train.tgt'}"
    suffix = {
        "translation": "txt",
        "classification": "tsv",
        "language-modelling": "txt",
    }[task]
    head = "label\ttext\n" if task == "classification" else ""
    path = folder / f"{name}.{suffix}"
    path.write_bytes((head + "".join("\t".join(row) + "\n" for row in rows)).encode())
    return str(path)


def lines_named(findings: list[Finding], code: str, header: int) -> set[int]:
    """The rows, from 1, that findings of a code name: all of them, or else the line of the
    message.
    """
    named: set[int] = set()
    for finding in findings:
        if finding.code == code and finding.rows:
            named |= {i + 1 for i in finding.rows}
        elif finding.code == code and (
            match := re.search(r"\.\w+:(\d+)", finding.message)
        ):
            named.add(int(match[1]) - header)
    return named


def trial(
    kind: Kind, rows: list[Row], before: set[Row], seed: int, folder: Path, tally: Tally
) -> None:
    """Damage one corpus once and count."""
    damaged = kind.damage(rows, random.Random(f"{seed} {kind.code} {len(rows)}"))
    findings = look(damaged, kind.task, folder)
    # counted, not named
    if kind.code.startswith("dropped") or kind.code in (
        "missing-label",
        "unknown-label",
        "no-label",
    ):
        count = sum(f.count for f in findings if f.code == kind.code)
        tally.damaged += len(damaged.lines)
        tally.hit += min(count, len(damaged.lines))
        tally.new += max(0, count - len(damaged.lines))
        return
    named = lines_named(findings, kind.code, int(kind.task == "classification"))
    if kind.code == "unreadable":  # the first line that cannot be read stands for all
        damaged.lines = {min(damaged.lines)}
    known = {
        n
        for n in named - damaged.lines
        if n <= len(damaged.rows) and damaged.rows[n - 1] in before
    }
    tally.damaged += len(damaged.lines)
    tally.hit += len(named & damaged.lines)
    tally.new += len(named - damaged.lines - known)
    tally.before += len(known)
    if kind.code in ("shifted-lines", "unequal-lines") and named:
        tally.off.append(abs(min(named) - min(damaged.lines)))


def table_row(name: str, kind: Kind, tally: Tally) -> str:
    recall = tally.hit / tally.damaged if tally.damaged else 0.0
    found = tally.hit + tally.new
    precision = f"{tally.hit / found:.1%}" if found else "none named"
    off = (
        f"; first line off by {sorted(tally.off)[len(tally.off) // 2]} (median), {max(tally.off)} (most)"
        if tally.off
        else ""
    )
    return f"| {name} | `{kind.code}` | {tally.damaged:,} | {recall:.1%} | {precision} | {tally.before:,}{off} |"


def main() -> None:
    """Print the table, then what is said of the sound corpora and how long that takes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--corpora", nargs="+", default=list(FIRST_FILE))
    asked = parser.parse_args()
    texts = {
        task: {k: v for k, v in corpora(task).items() if k in asked.corpora}
        for task in sorted({k.task for k in KINDS.values()})
    }
    with tempfile.TemporaryDirectory() as folder:
        sound = dict(sound_findings(texts, Path(folder)))
        print(
            "\n| damage | finding | damaged | recall | precision | named in the sound text already |"
        )
        print("|---|---|---|---|---|---|")
        for name in asked.kinds:
            kind, tally = KINDS[name], Tally()
            for corpus, rows in texts[kind.task].items():
                already = {
                    rows[i]
                    for f in sound[corpus]
                    if f.code == kind.code
                    for i in f.rows
                    if i < len(rows)
                }
                for seed in asked.seeds:
                    trial(kind, rows, already, seed, Path(folder), tally)
            print(table_row(name, kind, tally), flush=True)


def sound_findings(
    texts: dict[str, dict[str, list[Row]]], folder: Path
) -> Iterator[tuple[str, list[Finding]]]:
    """What is said of each corpus as it is, printed with the time that it takes."""
    print(
        "| sound corpus | rows | seconds | fatal | said of it |\n|---|---|---|---|---|"
    )
    for task, named in texts.items():
        for corpus, rows in named.items():
            started = time.perf_counter()
            findings = look(Damaged(rows, set()), task, folder)
            seconds = time.perf_counter() - started
            fatal = sum(f.severity == "fatal" for f in findings)
            said = ", ".join(
                f"{f.code} {f.count:,}{' (warning)' * (f.severity == 'warning')}"
                for f in findings
            )
            print(
                f"| {corpus} | {len(rows):,} | {seconds:.1f} | {fatal} | {said or 'nothing'} |",
                flush=True,
            )
            yield corpus, findings


if __name__ == "__main__":
    main()
