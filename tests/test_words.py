"""How the source is written: docstrings begin with a verb, lines are not full, words are known."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import mean

import house  # tools/house.py
import weft

SOURCE = Path(weft.__file__).parent
# Rooms that are still to be read through.
PENDING: set[str] = set()
FILES = [
    name
    for name in sorted(
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")
    )
    if name.split("/")[0] not in PENDING
]
# Of the whole house, and of a file: a plain line of array arithmetic has ten and more.
TOKENS_A_LINE = 8.5
TOKENS_A_LINE_OF_A_FILE = 10.0
CROWDED = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What a function's docstring may begin with; a verb that is missing is added here.
VERBS = {
    *("Accumulate", "Add", "Advance", "Align", "Answer", "Append", "Apply", "Ask", "Attend", "Average"),
    *("Begin", "Build", "Call", "Change", "Charge", "Check", "Choose", "Classify", "Clean", "Close", "Collect"),
    *("Compare", "Compile", "Compute", "Continue", "Convert", "Copy", "Count", "Create", "Cut"),
    *("Decide", "Decode", "Delete", "Describe", "Divide", "Double", "Download", "Draw", "Drop", "Embed", "Encode"),
    *("End", "Estimate", "Evaluate", "Expand", "Extend", "Fill", "Find", "Finish", "Flush", "Follow", "Gather"),
    *("Generate", "Give", "Go", "Group", "Guess", "Halve", "Hand", "Hash", "Hold", "Initialize", "Inspect", "Join"),
    *("Keep", "Label", "Learn", "Leave", "Let", "List", "Load", "Look", "Make", "Map", "Mark", "Mask"),
    *("Measure", "Merge", "Move", "Multiply", "Name", "Normalize", "Note", "Open", "Order", "Pack", "Pad"),
    *("Parse", "Plan", "Print", "Project", "Propose", "Prove", "Put", "Quantize", "Raise", "Rank", "Read"),
    *("Record", "Reduce", "Refuse", "Release", "Remember", "Remove", "Repeat", "Replace", "Report", "Reset", "Reshard"),
    *("Resolve", "Return", "Round", "Run", "Sample", "Save", "Say", "Scale", "Score", "Search", "Send", "Serve", "Set"),
    *("Shard", "Show", "Shuffle", "Skip", "Sort", "Split", "Start", "Step", "Stop", "Store", "Stream"),
    *("Suggest", "Sum", "Switch", "Take", "Tell", "Tokenize", "Train", "Translate", "Try", "Turn", "Undo", "Unpack"),
    *("Update", "Use", "Validate", "Wait", "Walk", "Warn", "Weigh", "Wrap", "Write", "Yield"),
}  # fmt: skip
# Words of our own, and what the field says; whole words of names, docstrings and comments.
FIELD = {
    "slope": "grad",
    "slopes": "grads",
    "way back": "backward",
    "look_around": "self_attention",
    "look_back": "causal_self_attention",
    "look_across": "cross_attention",
    "theirs": "tgt, other",
    "settle": "choose, resolve, finish",
    "settled": "chosen, resolved, finished",
    "blotted": "masked",
    "processor": "CPU",
    "processors": "CPUs",
}
# Names of other programs' formats: this one is a key of tokenizer.json.
FOREIGN = re.compile(r"\bpost_processor\b")
OURS = re.compile(rf"(?<![a-z])({'|'.join(FIELD)})(?![a-z])", re.IGNORECASE)


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((SOURCE / name).read_text("utf-8"))


def nodes_with_docstrings(name: str) -> Iterator[tuple[ast.AST, int, str]]:
    for node in ast.walk(tree(name)):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and (
            text := ast.get_docstring(node)
        ):
            yield node, getattr(node, "lineno", 1), text


def test_a_docstring_says_what_a_function_does() -> None:
    wrong = []
    for name in FILES:
        for node, line, text in nodes_with_docstrings(name):
            if reason := fault_of_docstring(node, text):
                wrong.append(f"{name}:{line}: {reason}: {text.splitlines()[0]}")
    assert wrong == []


def fault_of_docstring(node: ast.AST, text: str) -> str:
    """Say what is wrong with its first word; "" where nothing is."""
    first = text.split(maxsplit=1)[0].strip("`.,:;")
    if first.lower() in house.FRAGMENT:
        return f"begins with {first!r}, a word of FRAGMENT (tools/house.py)"
    if isinstance(node, FUNCTIONS) and first not in VERBS:
        return f"begins with {first!r}, no verb of VERBS (tests/test_words.py)"
    return ""


def test_a_line_is_not_crowded() -> None:
    counts = {
        path.relative_to(SOURCE).as_posix(): tokens_by_line(path)
        for path in SOURCE.rglob("*.py")
    }
    means = {name: mean(counts[name]) for name in FILES if counts[name]}
    crowded = {name for name in means if means[name] > TOKENS_A_LINE_OF_A_FILE}
    assert {name: means[name] for name in crowded} == {}
    assert mean(chain.from_iterable(counts.values())) <= TOKENS_A_LINE


def tokens_by_line(path: Path) -> list[int]:
    docstrings = house.docstring_lines(tree(path.relative_to(SOURCE).as_posix()))
    return house.tokens_by_line(path.read_text("utf-8"), docstrings)


def test_a_line_has_one_comprehension_or_conditional_expression() -> None:
    wrong = []
    for name in FILES:
        nodes = [node for node in ast.walk(tree(name)) if isinstance(node, CROWDED)]
        by_line = Counter(node.lineno for node in nodes)
        wrong += [f"{name}:{line}" for line, count in by_line.items() if count > 1]
    assert wrong == []


def test_what_is_assigned_in_parallel_is_alike() -> None:
    wrong = []
    for name in FILES:
        nodes = [node for node in ast.walk(tree(name)) if is_unlike(node)]
        wrong += [f"{name}:{getattr(node, 'lineno', 0)}" for node in nodes]
    assert wrong == []


def test_words_are_those_of_the_field() -> None:
    wrong = []
    for name in FILES:
        for number, line in enumerate(
            (SOURCE / name).read_text("utf-8").splitlines(), 1
        ):
            wrong += [
                f"{name}:{number}: {word}: {FIELD[word.lower()]}"
                for word in OURS.findall(FOREIGN.sub("", line))
            ]
    assert wrong == []


def is_unlike(node: ast.AST) -> bool:
    """Whether `a, b = x, y` has values of several kinds, and none needs another's old value."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    targets = [target for target in node.targets if isinstance(target, ast.Tuple)]
    if not targets:
        return False
    written = {ast.unparse(name) for target in targets for name in target.elts}
    read = {
        ast.unparse(inner)
        for inner in ast.walk(node.value)
        if isinstance(inner, ast.expr)
    }
    return not written & read and len({kind(value) for value in node.value.elts}) > 1


def kind(value: ast.expr) -> tuple[str, str]:
    if isinstance(value, ast.Call):
        return "call", ast.unparse(value.func)
    if isinstance(value, ast.Constant):
        return "constant", type(value.value).__name__
    return type(value).__name__, ""


def test_the_rules_see_what_they_forbid() -> None:
    crowded = ast.parse(
        "a, b = 1, 'x'\nc, d = d, c\ne, f = len(x), len(y)\ng, h = len(x), y\ndef i(): pass"
    )
    assert [is_unlike(node) for node in crowded.body[:4]] == [True, False, False, True]
    a_function = crowded.body[4]
    for node, word, place in (
        (crowded, "One", "FRAGMENT"),
        (a_function, "One", "FRAGMENT"),
        (a_function, "Rows", "VERBS"),
    ):
        reason = fault_of_docstring(node, f"{word} of a kind.")
        assert re.match(rf"begins with '{word}', .*{place} \(", reason)
    assert fault_of_docstring(crowded, "Rows of a kind.") == ""
    assert OURS.findall("the_slope and slopes; settlement; Settled; a way back") == [
        *("slope", "slopes", "Settled", "way back"),
    ]
