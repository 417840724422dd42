"""How quick the page of a server is: `python benchmarks/page_speed.py http://127.0.0.1:5000/
[--loads 9] [--keys 40] [--text TEXT]`.

The page of a running `weft serve` with a translator is opened in Chromium anew for each load, with
an empty cache. Printed are the bytes, uncompressed, and the requests until a text can be typed, the
time to the first paint, and the time from a key to the whole translation of the text with it: once
where each key comes after a pause, and once where the last of some quick keys is timed, whose
predecessors were sent or waited and are given up. Times are those of a clock, so nothing else may
run. Needs the extra `dev` and Debian's package `chromium`.
"""

import argparse
import statistics
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

TEXT = (
    "Two young girls in red coats are playing with a small brown dog in the "
    "snow in front of a house"
)
QUICK = 6  # keys that come right after each other
BETWEEN = 40  # ms between them
PAINT = """() => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    const sent = performance.getEntriesByType("resource");
    const [page] = performance.getEntriesByType("navigation");
    const sum = (all) => all.reduce((total, one) => total + one.decodedBodySize, 0);
    return { paint: paint?.startTime, bytes: sum([...sent, page]), requests: sent.length + 1 };
}"""
# Resolves with the milliseconds from a key until no line waits and all of the text is translated.
KEY = """async ({ texts, between }) => {
    const field = document.getElementById("text");
    const result = document.getElementById("result");
    const busy = () => document.querySelector(".busy, #result .stale") !== null;
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    let began;
    for (const [i, text] of texts.entries()) {
        if (i) await pause(between);
        began = performance.now();
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    for (;;) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        if (!busy() && result.querySelector(".line")?.textContent) break;
    }
    return performance.now() - began;
}"""


def main() -> None:
    """Measure the page of a server."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("address")
    parser.add_argument("--loads", type=int, default=9)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--text", default=TEXT)
    asked = parser.parse_args()
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        loads = [loaded(browser, asked.address) for _ in range(asked.loads)]
        page = opened(browser, asked.address)
        words = len(asked.text.split())
        slow = [keyed(page, [f"{asked.text} {n}"], 0) for n in range(asked.keys)]
        quick = [keyed(page, typed(asked.text, n), BETWEEN) for n in range(asked.keys)]
        browser.close()
    print(f"{loads[0]['bytes']:,} bytes in {loads[0]['requests']} requests")
    print(said("first paint", [load["paint"] for load in loads]))
    print(said(f"key to translation of {words + 1} words, after a pause", slow))
    print(said(f"the same after {QUICK} quick keys", quick))


def opened(browser: Browser, address: str) -> Page:
    """Open the page in a context of its own, which has no cache."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(address)
    page.wait_for_selector("#text")
    return page


def loaded(browser: Browser, address: str) -> dict[str, Any]:
    """Return what a load took."""
    page = opened(browser, address)
    page.wait_for_load_state("networkidle")
    found: dict[str, Any] = page.evaluate(PAINT)
    page.context.close()
    return found


def typed(text: str, number: int) -> list[str]:
    """Return a text of its own as it grows by the last keys."""
    whole = f"{text} {number} quick"
    return [whole[: len(whole) - left] for left in range(QUICK)[::-1]]


def keyed(page: Page, texts: Sequence[str], between: int) -> float:
    """Return the milliseconds from the last key to its translation."""
    page.wait_for_timeout(400)
    waited: float = page.evaluate(KEY, {"texts": texts, "between": between})
    return waited


def said(name: str, times: Sequence[float]) -> str:
    """Return median and 95th percentile in a line."""
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{name}: median {statistics.median(ordered):.0f} ms, p95 {last:.0f} ms"


if __name__ == "__main__":
    main()
