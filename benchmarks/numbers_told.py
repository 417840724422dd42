"""How often numbers that differ are told: `python benchmarks/numbers_told.py SRC TGT TEXT...`.

The languages are codes, a TEXT is pairs as `weft train` takes them, of which the targets are taken
for right: what is told of them is wrong, or a mistake in the text. Then each number of two digits
or more in a target is lost, or gets another digit, and it is counted how often that is told.
"""

import argparse
import random
import re

from weft.data.corpus import read_pairs
from weft.data.numbers import difference, numbers_of

SHOWN = 5


def main() -> None:
    """Print the shares of each text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("texts", nargs="+")
    asked = parser.parse_args()
    languages = asked.src, asked.tgt
    for name in asked.texts:
        text = read_pairs([name], *languages)
        pairs = list(zip(text.src, text.tgt, strict=True))
        _print_false(name, pairs, languages)
        _print_found(pairs, languages)


def _print_false(
    name: str, pairs: list[tuple[str, str]], languages: tuple[str, str]
) -> None:
    """Print what is told of the references themselves."""
    with_digits = [pair for pair in pairs if re.search(r"\d", "".join(pair))]
    told = [pair for pair in with_digits if difference(*pair, languages)]
    share = len(told) / max(1, len(pairs))
    print(f"{name}: {len(pairs):,} pairs, {len(with_digits):,} with digits")
    print(f"  told of {len(told):,}: {share:.2%} of all pairs")
    for pair in random.Random(1).sample(told, min(SHOWN, len(told))):
        print(f"    {difference(*pair, languages)}: {pair[0][:90]} | {pair[1][:90]}")


def _print_found(pairs: list[tuple[str, str]], languages: tuple[str, str]) -> None:
    """Print how many numbers are told that were lost or changed."""
    rng = random.Random(1)
    cases = lost = changed = 0
    for source, target in pairs:
        if difference(source, target, languages):
            continue
        for number in numbers_of(target):
            if not number.is_alone or number.size < 2:
                continue
            before, after = target[: number.start], target[number.end :]
            digit = rng.choice("123456789".replace(number.text[0], ""))
            other = digit + number.text[1:]
            cases += 1
            lost += bool(difference(source, before + after, languages))
            changed += bool(difference(source, before + other + after, languages))
    if cases:
        shares = f"{lost / cases:.1%} of them lost, {changed / cases:.1%} changed"
        print(f"  of {cases:,} numbers in the others told: {shares}")


if __name__ == "__main__":
    main()
