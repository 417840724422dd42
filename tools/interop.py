"""Every packaged recipe in every form of `weft export`: models trained for a moment, and the tables
of docs/interop.md.

tests/ship/test_interop.py trains and exports them; `make interop` has it write the tables.
"""

import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import weft
from weft.recipes.file import load_recipe

MARKS = ("<!-- tables: written by `make interop` -->\n", "<!-- end of the tables -->")
PACKAGES = (
    "transformers",
    "tokenizers",
    "torch",
    "ctranslate2",
    "sentencepiece",
    "onnx",
    "onnxruntime",
    "gguf",
    "xllamacpp",
)
_WIDTH = 96  # a multiple of the heads of every recipe but those with two or eight as head_dim says
_STEPS = 300


@dataclass(frozen=True)
class Case:
    """A recipe with what changes it; `name` is its row in the tables."""

    recipe: str
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The recipe, and what is set beside it."""
        return " ".join([self.recipe, *self.settings])

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return re.sub(r"[^\w.=-]+", "-", self.name).strip("-")


CASES = (
    Case("en-de"),
    Case("en-de", ('tokenizer.kind="unigram"',)),
    Case("en-de", ('model.positions="learned"',)),
    Case("en-de-fast"),
    Case("en-de-modern"),
    Case("en-zh"),
    Case("demo"),
    Case("annotated-en-zh"),
    Case("annotated-en-zh", ('tokenizer.src.words="unicode"',)),
    Case("toy-de-en"),
    Case("seq2seq-transformer"),
    Case("seq2seq-rnn-additive"),
    Case("seq2seq-rnn-dot"),
    Case("lm-modern"),
    Case("lm-modern", ("tokenizer.leading_space=false",)),
    Case("lm-modern", ("model.query_key_norm=false",)),
    Case("tiny-shakespeare"),
    Case("tiny-shakespeare", ("model.ngrams=1", "model.match_lengths=[]")),
    Case("causal-lm"),
    Case("causal-lm", ("model.norm_first=true", "model.bias=false")),
    Case("classify-modern"),
    Case("classify-fast"),
    Case("imdb-classifier"),
    Case(
        "imdb-classifier",
        (
            'tokenizer.words="unicode"',
            "model.embedding_norm=true",
            'model.pooling="first"',
        ),
    ),
)


def settings_of(case: Case) -> list[str]:
    """The settings of a model that learns the built-in sentences in under a minute."""
    recipe = load_recipe(case.recipe)
    shape: Any = recipe.model
    found = {
        "data.builtin": '"everyday"',
        "training.max_steps": _STEPS,
        "training.eval_every": _STEPS,
        "training.warmup_steps": 30,
        "training.threads": 1,
        "training.num_samples": 1,
    }
    if case.recipe == "toy-de-en":
        found["data.builtin"] = '"toy-de-en"'
    if not getattr(shape, "ngrams", 1) > 1:
        found |= {"model.d_model": _WIDTH, "training.learning_rate": 0.003}
    if getattr(shape, "head_dim", None):
        found["model.head_dim"] = _WIDTH // shape.num_heads
    if hasattr(shape, "d_ff"):
        found["model.d_ff"] = 2 * _WIDTH
    for key in ("num_encoder_layers", "num_decoder_layers"):
        if getattr(shape, key, 0):
            found[f"model.{key}"] = min(2, getattr(shape, key))
    found["training.r_drop"] = 0.0
    if recipe.task == "translation" and case.recipe != "toy-de-en":
        found["batches.tokens_per_batch"] = 2048
        found["batches.batch_size"] = '"none"'
    changed = [f"{key}={value}" for key, value in found.items()]
    return [*changed, *case.settings]


@dataclass(frozen=True)
class Cell:
    """A model in a form: what its certificate found, or why it has no home there."""

    case: str
    form: str
    precision: str
    refused: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0

    def row(self) -> str:
        """The line of the table."""
        checks = {check["name"]: check for check in self.told["checks"]}
        unchecked = self.told["unchecked"]
        logits = _number(checks.get("logits"))
        equal = [
            _share(name, checks, unchecked) for name in ("ids", "greedy", "beam", "use")
        ]
        change = _change(checks.get("use"))
        size = f"{self.size / 1e6:.2f}"
        home = self.told["form"]
        cells = [self.case, home, self.told["precision"], logits, *equal, change, size]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| model | home | weights | logits differ by | ids | greedy | beam of 4 | as shipped | BLEU by Weft, there | MB |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def tables(cells: Sequence[Cell]) -> Iterator[str]:
    """The lines of all tables, one table a form, and what has no home there."""
    for form in dict.fromkeys(cell.form for cell in cells):
        yield f"### `--to {form}`"
        yield ""
        yield from HEAD
        own = [cell for cell in cells if cell.form == form]
        yield from (cell.row() for cell in own if not cell.refused)
        yield ""
        yield from _refusals(own)
        yield ""


def _refusals(cells: Sequence[Cell]) -> Iterator[str]:
    """The models that have no home, those of one reason in a line."""
    for reason in dict.fromkeys(cell.refused for cell in cells if cell.refused):
        names = [f"`{cell.case}`" for cell in cells if cell.refused == reason]
        yield f"- No home in {cells[0].form} for {', '.join(names)}: {reason}"


def write(page: Path, cells: Sequence[Cell]) -> None:
    """Write the tables between the marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    packages = [f"{name} {version(name)}" for name in PACKAGES if _is_there(name)]
    told = ", ".join([f"Python {platform.python_version()}", *packages])
    lines = "\n".join(tables(cells))
    found = f"{date.today()}, Weft {weft.__version__}, {told}:\n\n{lines}"
    page.write_text(f"{before}{MARKS[0]}\n{found}\n{MARKS[1]}{after}", "utf-8")


def read_told(folder: Path) -> dict[str, Any]:
    """What a certificate says."""
    told: dict[str, Any] = json.loads((folder / "parity.json").read_text("utf-8"))
    return told


def _is_there(package: str) -> bool:
    try:
        version(package)
    except ImportError:
        return False
    return True


def _number(check: Mapping[str, Any] | None) -> str:
    return f"{check['largest']:.1e}" if check else "-"


def _share(name: str, checks: Mapping[str, Any], unchecked: Mapping[str, str]) -> str:
    check = checks.get(name)
    if check is None:
        return "-" if name in unchecked else ""
    return f"{check['equal']:,} of {check['compared']:,}"


def _change(check: Mapping[str, Any] | None) -> str:
    scores = check["scores"] if check else {}
    return " → ".join(f"{value:.1f}" for value in scores.values()) or "-"
