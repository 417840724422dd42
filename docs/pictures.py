"""Draw the pictures of the READMEs: `python docs/pictures.py inside.html docs/inside.png [中文]`
and `python docs/pictures.py http://127.0.0.1:5000/ docs/serve.png [中文]`.

A page is one that `weft inspect` wrote of a translator: for README.md of the model of `weft demo
--to de`, for README.zh.md of that of `weft demo`, and the page itself in Chinese. Photographed are
the texts, the tokens with what was most probable at the marked one, and the decoder's attention.

An address is that of a running `weft serve` with a translator from English: a text is typed, and
other words for one of its translation are shown; in Chinese into Chinese, on a narrow screen and in
the dark look.

Both are opened in Chromium. Needs the extra `dev` and Debian's packages `chromium` and
`fonts-noto-cjk`.
"""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

SHOWN = ["tokens-section", "attention-section"]
SIZE = {"width": 1100, "height": 1200}
TYPED = {
    False: "Two young girls are playing with a dog in the snow.\n"
    "A man in an orange hat is looking at the sea.",
    True: "My sister is drinking tea in the kitchen.\nMy mother is reading a book at home.",
}
# how far into the first line the word stands whose others are shown
CHOSEN = {False: 0.4, True: 0.75}


def main() -> None:
    """Photograph a page that is a file, or that of a server."""
    source, picture = sys.argv[1], Path(sys.argv[2])
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        if source.startswith("http"):
            photograph_server(browser, source, picture, "中文" in sys.argv[3:])
        else:
            photograph_file(browser, Path(source), picture, sys.argv[3:])
        browser.close()


def photograph_file(
    browser: Browser, source: Path, picture: Path, languages: list[str]
) -> None:
    """Open the page, leave out what the picture has no room for, and photograph the rest."""
    page = browser.new_page(
        viewport=SIZE, device_scale_factor=1.25, color_scheme="light"
    )
    page.goto(source.resolve().as_uri())
    for language in languages:
        page.get_by_role("radio", name=language).check(force=True)
    shorten(page)
    page.locator("main").screenshot(path=str(picture))


def shorten(page: Page) -> None:
    """Mark a word near the end of the translation; remove captions, buttons, and sections that are
    not shown.
    """
    page.locator("#sentences button").nth(-3).click()
    page.evaluate(
        "shown => document.querySelectorAll('section').forEach(s => { if (!shown.includes(s.id)) s.remove() })",
        SHOWN,
    )
    page.evaluate(
        "document.querySelectorAll('.caption, #languages, #keep').forEach(e => e.remove())"
    )


def photograph_server(
    browser: Browser, address: str, picture: Path, is_chinese: bool
) -> None:
    """Type a text, open the list of other words at one of its translation, and photograph the
    page.
    """
    looks: dict[str, Any] = {
        "viewport": {"width": 1000, "height": 480},
        "device_scale_factor": 1.75,
    }
    if is_chinese:
        looks["viewport"] = {"width": 360, "height": 730}
        looks |= {"locale": "zh-CN", "color_scheme": "dark"}
    page = browser.new_context(**looks).new_page()
    page.goto(address)
    page.locator("#text").fill(TYPED[is_chinese])
    page.wait_for_selector(".line:nth-child(2) .word")
    words = page.locator(".line:first-child .word")
    words.nth(int(CHOSEN[is_chinese] * words.count())).click()
    page.wait_for_selector("[role=option]")
    page.keyboard.press("ArrowDown")
    page.screenshot(path=str(picture))


if __name__ == "__main__":
    main()
