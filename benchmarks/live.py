"""How soon a page with a model inside follows what is typed: `python benchmarks/live.py MODEL TEXTS
[--count 40] [--tokens 12] [--beam-size 1]`.

The live page of the model is written and opened in Chromium. Sentences of about so many source
tokens are put into its field, as a last key would; measured is the time from that key to the
translation, to the looks (all maps of attention), to loom and shares, and to all of the page, each
until the next frame has them: median and the 95th of 100. The looks are in sight, all else is drawn
too, but painted when it comes near. Times are those of a clock in the page, so nothing else may
run.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from weft.inspection.live import live_page
from weft.tasks.opening import load_task

CHROMIUM = "/usr/bin/chromium"
QUIET = ("--headless", "--no-sandbox", "--disable-gpu")
# what a page tells of, by the names that are printed
STAGES = {
    "said": "the translation",
    "looks": "the looks",
    "shares": "loom and shares",
    "drawn": "all of the page",
}
HEIGHT = 1000  # pixels of the window
# the milliseconds from a key to the frame in which each of them is seen
TIMES = """(text) => new Promise((done) => {
    const field = document.querySelector("#live-text");
    const times = {};
    const began = performance.now();
    const hear = ({ detail }) => requestAnimationFrame(() => setTimeout(() => {
        times[detail] = performance.now() - began;
        if (detail !== "drawn") return;
        document.removeEventListener("weft-live", hear);
        done(times);
    }));
    document.addEventListener("weft-live", hear);
    field.value = text;
    field.dispatchEvent(new Event("input"));
})"""


def main() -> None:
    """Measure a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--beam-size", type=int, default=1)
    asked = parser.parse_args()
    if not asked.texts.is_file():
        raise SystemExit(f"{asked.texts}: there is no such file; give one of sentences")
    task = load_task(asked.model)
    texts = sentences(task, asked.texts, asked.tokens, asked.count)
    page = live_page(task, asked.model, texts[0], asked.beam_size)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "page.html"
        path.write_text(page.html, "utf-8")
        times = measured(path, texts)
    size = len(page.html.encode()) / 1e6
    print(
        f"{len(texts)} texts of about {asked.tokens} tokens, {page.weights:,} weights, {size:.1f} MB"
    )
    found = [name for name in STAGES if any(name in each for each in times)]
    print(f"| from a key, ms | {' | '.join(STAGES[name] for name in found)} |")
    print(f"|---|{'---|' * len(found)}")
    columns = [sorted(each[name] for each in times if name in each) for name in found]
    middles = [f"{statistics.median(values):.0f}" for values in columns]
    lasts = [f"{high(values):.0f}" for values in columns]
    print(f"| median | {' | '.join(middles)} |")
    print(f"| p95 | {' | '.join(lasts)} |")


def high(values: list[float]) -> float:
    """Return the 95th of 100 of sorted values."""
    return values[min(len(values) - 1, round(0.95 * len(values)))]


def sentences(task: Any, path: Path, tokens: int, count: int) -> list[str]:
    """Return the first lines of a file that have about so many tokens."""
    found = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            text = line.rstrip("\n")
            length = len(task.tokenizers[0].encode(text))
            if abs(length - tokens) <= 2:
                found.append(text)
            if len(found) == count:
                break
    return found


def measured(path: Path, texts: list[str]) -> list[dict[str, float]]:
    """Return the times of each text in the page, after all of them once to warm up."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1400, "height": HEIGHT})
        page.goto(path.as_uri())
        page.wait_for_function(
            "() => /apart/.test(document.querySelector('#live-proof').textContent)"
        )
        page.evaluate("drawAll(); goToSection('looks')")
        for text in texts[:10]:
            page.evaluate(TIMES, text)
        times = [page.evaluate(TIMES, text) for text in texts]
        browser.close()
    return times


if __name__ == "__main__":
    main()
