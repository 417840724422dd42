"""Draw the pictures of the READMEs: `python docs/pictures.py inside.html docs/inside.png [中文]`.

The page is one that `weft inspect` wrote of a translator: for README.md of the model of `weft demo
--to de`, for README.zh.md of that of `weft demo`, and the page itself in Chinese. It is opened in
Chromium and photographed: the texts, the tokens with what was most probable at the marked one, and
the decoder's attention. Needs the extra `dev` and Debian's package `chromium`.
"""

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SHOWN = ["tokens-section", "attention-section"]
SIZE = {"width": 1100, "height": 1200}


def main() -> None:
    """Open the page, leave out what the picture has no room for, and photograph the rest."""
    source, picture = map(Path, sys.argv[1:3])
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(
            viewport=SIZE, device_scale_factor=1.25, color_scheme="light"
        )
        page.goto(source.resolve().as_uri())
        for language in sys.argv[3:]:
            page.get_by_role("radio", name=language).check(force=True)
        shorten(page)
        page.locator("main").screenshot(path=str(picture))
        browser.close()


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


if __name__ == "__main__":
    main()
