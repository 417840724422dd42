"""Run the notebooks of docs/notebooks: `python tools/notebooks.py NOTEBOOK [NOTEBOOK ...]`.

The code cells are executed in their order and in one namespace, as a kernel does it, but in this
process: no server, no sockets and no packages beyond those of the project. What a cell ends with
shows itself, as HTML where it can. The cell with the tag `parameters` gives names that a caller may
set otherwise. An error ends the run and names the cell.

`python tools/notebooks.py --anchors` renews the line numbers of the links into src/weft, by the
names that the links show: [`attention`](../../src/weft/model/attention.py#L91).
"""

import ast
import inspect
import json
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
LINK = re.compile(r"\[`([\w.]+)`\]\((\.\./[^)#\s]+)#L(\d+)\)")


class CellError(Exception):
    """A cell that cannot be executed, or has raised."""


@dataclass
class Ran:
    """The namespace after a notebook, and what its cells have shown."""

    names: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)


def read(path: Path) -> dict[str, Any]:
    """Return a notebook's content."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def run(path: Path, given: Mapping[str, Any] | None = None) -> Ran:
    """Execute a notebook; `given` takes the place of what its cell of parameters sets.

    Raises CellError, with the error of the cell as its cause.
    """
    ran = Ran({"__name__": "__main__"})
    cells = read(path)["cells"]
    for number, cell in enumerate(cells, start=1):
        if cell["cell_type"] != "code":
            continue
        name = f"{path.name}, cell {number}"
        try:
            execute(source_of(cell), name, ran)
        except Exception as error:
            raise CellError(f"{name}: {type(error).__name__}: {error}") from error
        if "parameters" in cell["metadata"].get("tags", ()):
            missing = set(given or {}) - set(ran.names)
            assert not missing, f"{name} has no {missing}"
            ran.names |= given or {}
    return ran


def execute(source: str, name: str, ran: Ran) -> None:
    """Execute a cell, and show what its last expression gives."""
    # so that `inspect.getsource` and tracebacks find what was defined in it
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, name, "exec"), ran.names)
        return
    tree.body.pop()
    exec(compile(tree, name, "exec"), ran.names)
    value = eval(compile(ast.Expression(last.value), name, "eval"), ran.names)
    if value is not None and not source.rstrip().endswith(";"):
        as_html = getattr(value, "_repr_html_", None)
        ran.shown.append(as_html() if as_html else repr(value))


def links(path: Path) -> Iterator[tuple[str, Path, int]]:
    """Yield the links of a notebook into the code: the name that is shown, the file, the line."""
    for cell in read(path)["cells"]:
        for name, target, line in LINK.findall(source_of(cell)):
            yield name, (path.parent / target).resolve(), int(line)


def line_of(name: str, path: Path) -> int:
    """Return the line in which a class, function or method begins, decorators aside."""
    body: list[Any] = ast.parse(path.read_text("utf-8")).body
    found: Any = None
    for part in name.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef)
        named = [node for node in body if isinstance(node, kinds) and node.name == part]
        if not named:
            raise CellError(f"{path} has no {name}")
        found = named[0]
        body = found.body
    return int(found.lineno)


def renew_anchors(path: Path) -> None:
    """Write the lines of today into the links of a notebook."""
    text = path.read_text("utf-8")

    def renewed(match: re.Match[str]) -> str:
        name, target, _ = match.groups()
        line = line_of(name, (path.parent / target).resolve())
        return f"[`{name}`]({target}#L{line})"

    path.write_text(LINK.sub(renewed, text), "utf-8")


def main() -> None:
    """Run the notebooks that the command line names, or renew the anchors of all."""
    names = sys.argv[1:]
    if names == ["--anchors"]:
        for path in sorted(FOLDER.glob("*.ipynb")):
            renew_anchors(path)
        return
    if not names:
        sys.exit(inspect.cleandoc(__doc__ or ""))
    for name in names:
        print(f"{name}: {len(run(Path(name)).shown)} cells have shown something")


if __name__ == "__main__":
    main()
