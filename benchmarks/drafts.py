"""What a draft is worth: `python benchmarks/drafts.py FOLDER --prompts prompts.txt`.

A language model goes on from each line of a file, without a draft and with the text so far as
draft; greedily and drawn at temperature 1. They take turns, round after round, in
this one process. Before anything is timed, each must write the same text. The table has the medians
over the rounds.
"""

import argparse
import statistics
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import weft


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a language model's folder")
    parser.add_argument(
        "--prompts", required=True, help="a text file, one prompt a line"
    )
    parser.add_argument(
        "--tokens", type=int, default=200, help="to be written after each prompt"
    )
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    model = weft.load(asked.folder)
    prompts = [
        line for line in Path(asked.prompts).read_text("utf-8").split("\n") if line
    ]
    drafts: dict[str, Any] = {"none": None, "prompt": "prompt"}
    found: dict[tuple[float, str], list[float]] = {
        key: [] for key in product((0.0, 1.0), drafts)
    }
    counts = {
        key: run(model, prompts, asked.tokens, key[0], drafts[key[1]])[1:]
        for key in found
    }
    if len({(temperature, text) for (temperature, _), (text, _) in counts.items()}) > 2:
        sys.exit("a draft changes the text")
    for _ in range(asked.rounds):
        for (temperature, name), speeds in found.items():
            speeds.append(
                run(model, prompts, asked.tokens, temperature, drafts[name])[0]
            )
    print(
        "| temperature | draft | accepted of proposed | tokens/s | lowest to highest | times |"
    )
    print("|---|---|---|---|---|---|")
    for (temperature, name), speeds in found.items():
        ratio = statistics.median(
            a / b for a, b in zip(speeds, found[temperature, "none"], strict=True)
        )
        median, lowest, highest = (f(speeds) for f in (statistics.median, min, max))
        facts = f"{median:,.0f} | {lowest:,.0f} to {highest:,.0f} | {ratio:.2f}"
        print(
            f"| {temperature:g} | {name} | {counts[temperature, name][1]} | {facts} |"
        )


def run(
    model: weft.LanguageModel,
    prompts: list[str],
    tokens: int,
    temperature: float,
    draft: Any,
) -> tuple[float, str, str]:
    """Tokens a second, all that was written, and how much of it the draft foresaw."""
    began = time.perf_counter()
    asked = {"max_new_tokens": tokens, "temperature": temperature, "draft": draft}
    found = [
        model.generate(prompt, seed=i, **asked) for i, prompt in enumerate(prompts)
    ]
    speed = sum(len(one.token_log_probs) for one in found) / (
        time.perf_counter() - began
    )
    proposed, accepted = (
        sum(one.proposed for one in found),
        sum(one.accepted for one in found),
    )
    share = f"{accepted:,} of {proposed:,}" if proposed else "-"
    return speed, "\n".join(one.text for one in found), share


if __name__ == "__main__":
    main()
