"""The files of a page, as they lie in the package."""

import base64
import hashlib
import re
import zlib
from importlib import resources

# in this order; the last one alone belongs to a page that is a file
SCRIPTS = (
    "words.js",
    "arrays.js",
    "element.js",
    "sight.js",
    "frame.js",
    "ribbon.js",
    "heads.js",
    "heatmap.js",
    "lines.js",
    "modelmap.js",
    "numbers.js",
    "looks.js",
    "limits.js",
    "weave.js",
    "parts.js",
    "reasons.js",
    "onelook.js",
    "states.js",
    "loom.js",
    "wrote.js",
    "alignment.js",
    "choosing.js",
    "lanes.js",
    "alone.js",
)
# sections that have something to show where an inspection's data have a key
NEEDED = {
    "states.js": "states",
    "reasons.js": "contributions",
    "alignment.js": "alignment",
    "lanes.js": "beam",
}
# what a page of several inspections has besides, the scripts before the last one
SEVERAL_SCRIPTS = ("several.js", "learned.js", "compared.js")
SEVERAL_STYLES = ("several.css",)
_HEAD = "{{head}}\n"  # in a file of the page, for what is in head.html
STYLES = ("inspect.css", "sections.css")  # of an inspection, with that of every page

# Comments and indents of a script or a style, which a browser need not read.
_UNREAD = re.compile(
    r"^\s*/\*(?:[^*]|\*(?!/))*\*/\s*?\n|^\s*//[^\n]*\n|^[ \t]+|^\n", re.M
)
# Comments behind code; what has quotes in it may be the end of a string, and stays.
_BEHIND = re.compile(r"(?<=[;,{}(]) // (?:[^\"'`\n]|(?<=\w)'s)*$", re.M)

# Spaces and line breaks around the signs of a style; its selectors and strings have none there.
_APART = re.compile(r"([:;,])\s+|\s*([{}])\s*")


def asset(name: str) -> str:
    """Return a file of the page, with line ends as the browser will hash them; where its first line
    asks for it, behind what all pages that are files begin with.
    """
    content = (resources.files("weft") / "page" / name).read_bytes().decode("utf-8")
    content = content.replace("\r\n", "\n")
    if content.startswith(_HEAD):
        return asset("head.html") + content.removeprefix(_HEAD)
    return content


def stylesheet(*names: str) -> str:
    """Return the style of every page, and what a page adds to it."""
    return "".join(asset(name) for name in ("base.css", *names))


def bare_style(*names: str) -> str:
    """Return the same without what a browser need not read: comments, indents and spaces."""
    return _APART.sub(r"\1\2", bare(stylesheet(*names)))


def bare(content: str) -> str:
    """Return a script or a style without its comments and its indents."""
    return _UNREAD.sub("", _BEHIND.sub("", content))


def packed(*contents: str) -> str:
    """Return texts as DEFLATE in base64, for `unpack.js`."""
    press = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    pressed = press.compress("\0".join(contents).encode()) + press.flush()
    return base64.b64encode(pressed).decode("ascii")


def fingerprint(content: str) -> str:
    """Return the hash by which a content security policy allows an inline element."""
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
