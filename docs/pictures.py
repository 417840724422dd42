"""Draw the pictures of the READMEs: `python docs/pictures.py page` and
`python docs/pictures.py http://127.0.0.1:5000/ docs/serve.png [中文]`.

`page` draws page.png and loom.png beside this file, and both in Chinese, of the page that `weft
inspect` writes of the model that comes with Weft: the top of the page, and its loom.

An address is that of a running `weft serve` with a translator from English: a text is typed, and
other words for one of its translation are shown; in Chinese into Chinese, on a narrow screen and in
the dark look.

Both are opened in Chromium. Needs the extras `dev` and `plot` and Debian's packages `chromium` and
`fonts-noto-cjk`.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import weft

HERE = Path(__file__).parent
SENTENCE = "My sister is drinking tea in the kitchen."
CHOSEN = "喝"  # the token that all pictures of the page are about
SIZE = {"width": 1000, "height": 1040}
MARGIN = 24
PAINTED = 600  # milliseconds
SCALE = 1.75  # pixels of a picture for each of the page
COLORS = 255  # of a picture, so that it is a small file
MOST_BYTES = 200_000
TYPED = {
    False: "Two young girls are playing with a dog in the snow.\n"
    "A man in an orange hat is looking at the sea.",
    True: "My sister is drinking tea in the kitchen.\nMy mother is reading a book at home.",
}
# how far into the first line the word stands whose others are shown
PICKED = {False: 0.4, True: 0.75}


def main() -> None:
    """Photograph the page of an inspection, or that of a server."""
    source = sys.argv[1]
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        if source == "page":
            photograph_pages(browser)
        else:
            picture = Path(sys.argv[2])
            photograph_server(browser, source, picture, "中文" in sys.argv[3:])
        browser.close()


def photograph_pages(browser: Browser) -> None:
    """Write a page, and photograph it in both languages."""
    inspection = weft.load(weft.DEMO).inspect(SENTENCE)
    place = inspection.target.pieces.index(CHOSEN) + 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inside.html"
        inspection.save(path)
        for language, ending in (("English", ""), ("中文", ".zh")):
            page = browser.new_page(
                viewport=SIZE, device_scale_factor=SCALE, color_scheme="light"
            )
            page.goto(f"{path.as_uri()}#t={place}")
            page.get_by_role("radio", name=language).check(force=True)
            keep(page.screenshot(clip=top_of(page)), HERE / f"page{ending}.png")
            photograph_loom(page, HERE / f"loom{ending}.png")
            page.close()


def top_of(page: Page) -> Any:
    """Return the top of the page, down to the end of the model's picture."""
    model = page.locator("section#model .towers").bounding_box()
    assert model is not None
    return {
        "x": 0,
        "y": 0,
        "width": SIZE["width"],
        "height": model["y"] + model["height"] + MARGIN / 4,
    }


def photograph_loom(page: Page, picture: Path) -> None:
    """Photograph the loom with its heading, and a margin around it."""
    page.evaluate("document.querySelector('#ribbon').style.position = 'static'")
    page.evaluate("document.querySelector('#loom').scrollIntoView()")
    page.wait_for_timeout(PAINTED)  # it is painted when it comes into view
    around = page.locator("section#loom").bounding_box()
    heading = page.locator("section#loom h2").bounding_box()
    assert around is not None
    assert heading is not None
    top = heading["y"] - MARGIN
    clip = {
        "x": around["x"] - MARGIN,
        "y": top,
        "width": around["width"] + 2 * MARGIN,
        "height": around["y"] + around["height"] + MARGIN - top,
    }
    keep(page.screenshot(clip=clip), picture)


def keep(content: bytes, picture: Path) -> None:
    """Write a photograph in few colours; it must be small enough for a README."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    few = image.quantize(COLORS, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)
    size = picture.stat().st_size
    assert size < MOST_BYTES, f"{picture}: {size:,} bytes"


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
    words.nth(int(PICKED[is_chinese] * words.count())).click()
    page.wait_for_selector("[role=option]")
    page.keyboard.press("ArrowDown")
    page.screenshot(path=str(picture))


if __name__ == "__main__":
    main()
