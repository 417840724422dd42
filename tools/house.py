"""What the code is like to read, in numbers: `python tools/house.py FOLDER [FOLDER ...]`.

FOLDER is a package or a folder of scripts; every .py file under it counts, tests aside. Prints a
row for each:

- lines: all; code: those with a token that is neither comment nor docstring;
- tokens: of the code; tokens a line: their mean over the code lines;
- functions: median / 90th percentile / maximum of their lines, `def` to last line; and the share
  above 50 lines;
- comments: lines that hold one, as a share of all lines;
- fragments: share of docstrings whose first word opens a fragment (What, Of, Those, As, Where,
  ...);
- rooms: top-level modules and packages; arrows: pairs of rooms of which one imports the other;
  root: modules that lie at the top themselves.

Beside the package of a checkout, the keys that its docs/recipes.md explains are counted.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

# First words that open a fragment: the reader must take the name beside it as the subject, or guess
# one.
QUESTIONS = {"what", "where", "how", "whether", "which", "whom"}
PREPOSITIONS = {"of", "as", "in", "by", "with", "from", "for", "on", "at", "to"}
FRAGMENT = QUESTIONS | PREPOSITIONS | {"those", "all", "one", "some"}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}
NO_CODE |= {tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HEAD = "| | lines | code | tokens | tokens a line | functions: median / p90 / max | > 50 lines | comments | fragments"
HEAD += " | rooms | arrows | root |"


@dataclass
class Counts:
    """Sums over files; `tokens` by code line, `functions` in lines."""

    lines: int = 0
    tokens: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    comments: int = 0
    docstrings: int = 0
    fragments: int = 0
    rooms: set[str] = field(default_factory=set)
    root: set[str] = field(default_factory=set)
    arrows: set[tuple[str, str]] = field(default_factory=set)


def main() -> None:
    """Print the table of the folders that the command line names."""
    folders = [Path(name) for name in sys.argv[1:]]
    if not folders or not all(folder.is_dir() for folder in folders):
        sys.exit("house: name one or more folders of Python sources")
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for folder in folders:
        print(row(folder))
    for folder in folders:
        page = folder.resolve().parents[1] / "docs" / "recipes.md"
        if page.is_file():
            print(f"\nrecipe keys: {recipe_keys(page.read_text('utf-8'))}")


def recipe_keys(page: str) -> int:
    """Count the keys that docs/recipes.md explains, each once; `task`, in no section, aside."""
    return len(set(re.findall(r"^\| `([a-z_]+\.[a-z_.]+)` \|", page, re.M)))


def row(folder: Path) -> str:
    """Return a folder's row of the table."""
    counts = count(folder)
    lengths = sorted(counts.functions) or [0]
    p90 = lengths[int(0.9 * (len(lengths) - 1))]
    long = sum(n > 50 for n in lengths) / len(lengths)
    cells = [
        folder.resolve().name,
        f"{counts.lines:,}",
        f"{len(counts.tokens):,}",
        f"{sum(counts.tokens):,}",
        f"{sum(counts.tokens) / len(counts.tokens):.1f}",
        f"{median(lengths):g} / {p90} / {lengths[-1]}",
        f"{long:.1%}",
        f"{counts.comments / counts.lines:.1%}",
        f"{counts.fragments / max(1, counts.docstrings):.1%} of {counts.docstrings:,}",
        f"{len(counts.rooms)}",
        f"{len(counts.arrows)}",
        f"{len(counts.root)}",
    ]
    return f"| {' | '.join(cells)} |"


def count(folder: Path) -> Counts:
    """Count over all sources of a folder, tests aside."""
    counts = Counts()
    files = sorted(
        path for path in folder.rglob("*.py") if not is_test(path.relative_to(folder))
    )
    counts.root = {path.stem for path in files if path.parent == folder}
    packages = {
        path.relative_to(folder).parts[0] for path in files if path.parent != folder
    }
    counts.rooms = counts.root | packages
    for path in files:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        counts.lines += text.count("\n")
        counts.tokens += tokens_by_line(text, docstring_lines(tree))
        counts.comments += len(
            {t.start[0] for t in tokens(text) if t.type == tokenize.COMMENT}
        )
        counts.functions += [
            end_of(node) - node.lineno + 1
            for node in ast.walk(tree)
            if isinstance(node, FUNCTIONS)
        ]
        for docstring in docstrings(tree):
            counts.docstrings += 1
            counts.fragments += (
                docstring.split()[0].strip("`.,:;").lower() in FRAGMENT
                if docstring.split()
                else 0
            )
        here = path.relative_to(folder).with_suffix("").parts[0]
        for there in imported_rooms(
            tree, path.relative_to(folder), folder.resolve().name
        ):
            if there in counts.rooms and there != here:
                counts.arrows.add((here, there))
    return counts


def is_test(path: Path) -> bool:
    """Whether a file belongs to tests."""
    return any(
        part in ("tests", "test")
        or part.startswith("test_")
        or part.endswith("_test.py")
        for part in path.parts
    )


def tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a source."""
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def tokens_by_line(text: str, skipped: set[int]) -> list[int]:
    """Return how many tokens stand in each code line; a token of several lines counts where it
    begins.
    """
    found: dict[int, int] = {}
    for token in tokens(text):
        if token.type not in NO_CODE and token.start[0] not in skipped:
            found[token.start[0]] = found.get(token.start[0], 0) + 1
    return list(found.values())


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Give the docstrings of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and (
            text := ast.get_docstring(node)
        ):
            yield text


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and ast.get_docstring(node) is not None
        ):
            first = node.body[0]
            found |= set(range(first.lineno, end_of(first) + 1))
    return found


def end_of(node: ast.stmt) -> int:
    """Return the number of a statement's last line."""
    return node.end_lineno or node.lineno


def imported_rooms(tree: ast.Module, path: Path, package: str) -> Iterator[str]:
    """Give the rooms of its own package that a module imports, absolute or relative, wherever it
    does.
    """
    inside = (package, *path.parts[:-1])
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = inside[: len(inside) - node.level + 1] if node.level else ()
            base = ".".join((*parents, *([node.module] if node.module else [])))
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == package and len(parts) > 1:
                yield parts[1]


if __name__ == "__main__":
    main()
