"""The files of a page, as they lie in the package."""

import base64
import hashlib
from importlib import resources

# in this order; the last one alone belongs to a page that is a file
SCRIPTS = (
    "words.js",
    "arrays.js",
    "element.js",
    "frame.js",
    "ribbon.js",
    "heads.js",
    "heatmap.js",
    "lines.js",
    "modelmap.js",
    "numbers.js",
    "looks.js",
    "limits.js",
    "tokens.js",
    "attention.js",
    "weave.js",
    "parts.js",
    "reasons.js",
    "onelook.js",
    "loom.js",
    "wrote.js",
    "alignment.js",
    "choosing.js",
    "lanes.js",
    "inspect.js",
    "alone.js",
)


def asset(name: str) -> str:
    """Return a file of the page, with line ends as the browser will hash them."""
    content = (resources.files("weft") / "page" / name).read_bytes().decode("utf-8")
    return content.replace("\r\n", "\n")


def stylesheet(*names: str) -> str:
    """Return the style of every page, and what a page adds to it."""
    return "".join(asset(name) for name in ("base.css", *names))


def fingerprint(content: str) -> str:
    """Return the hash by which a content security policy allows an inline element."""
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
