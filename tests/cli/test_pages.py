"""Every command that a page shows is run, in the page's order and on small files of the names that
it uses.

Only sizes and steps are made small, inside: the words of a command are the page's own.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft.run.distillation
import weft.run.train
from office_samples import docx  # tools/
from weft.config import Recipe
from weft.recipes.file import with_values

Command = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
PUSHED = ("README.md", "README.zh.md")
PAGES = (
    *PUSHED,
    *(
        f"docs/{name}.md"
        for name in ("translation", "language-modelling", "classification", "checking")
    ),
)
# By page and beginning: what is not run here, and why. One that the page has no more fails.
NOT_RUN = {
    (
        "docs/classification.md",
        "weft train train.tsv --recipe imdb-classifier",
    ): "a test for each recipe runs it",
    **dict.fromkeys(
        ((page, "weft train train.en,train.de --mono") for page in PUSHED),
        "its steps need more pairs than a page has",
    ),
    **dict.fromkeys(
        ((page, "weft sweep heads.toml") for page in PUSHED),
        "another page shows the file, and tests of sweeps train one",
    ),
    (
        "docs/translation.md",
        "weft train web.en,web.de bible.tsv@:bible --recipe bible-last.toml",
    ): "the page shows the recipe above it",
    (
        "docs/translation.md",
        "weft train pairs.en-de.tsv pairs.fr-en.tsv",
    ): "no text here is French",
    **dict.fromkeys(
        (
            ("docs/translation.md", f"weft {begin}")
            for begin in (
                "backtranslate runs/yo-en",
                "train pairs.en-yo.tsv",
            )
        ),
        "no text here is Yoruba",
    ),
}
PLACEHOLDER = re.compile(r"[\[\]|<>…]|\.\.\.")
SHORT = 0.1  # minutes, where a command asks for more: a model of a few steps
STEPS = {"translation": 90, "language-modelling": 4, "classification": 4}
NOUNS = {
    "cat": "Katze",
    "dog": "Hund",
    "bird": "Vogel",
    "fish": "Fisch",
    "horse": "Pferd",
    "mouse": "Maus",
}
VERBS = {
    "sees": "sieht",
    "hears": "hört",
    "finds": "findet",
    "likes": "mag",
    "knows": "kennt",
    "wants": "will",
}
PAIRS = [
    (f"A {a} {v} a {b}.", f"Ein Wesen {x} {w} {y}.")
    for (a, x), (v, w), (b, y) in product(NOUNS.items(), VERBS.items(), NOUNS.items())
]
PARAGRAPH = "<w:p><w:r><w:t>A cat sees a dog.</w:t></w:r></w:p>"
PARTS = {
    "train": PAIRS[:150],
    "val": PAIRS[150:180],
    "dev": PAIRS[150:180],
    "test": PAIRS[180:],
}


def commands(page: str) -> list[str]:
    """The whole commands of a page, in order, without comments; a backslash joins lines."""
    text = (ROOT / page).read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip().removeprefix("$ ") for line in text.split("\n")]
    found = [
        re.sub(r"\s+#\s.*", "", line) for line in lines if line.startswith("weft ")
    ]
    bare = re.compile(r"\"[^\"]*\"|'[^']*'")
    return [
        " ".join(line.split())
        for line in found
        if not PLACEHOLDER.search(bare.sub("", line))
    ]


def snippets(page: str) -> list[str]:
    """The pieces of Python."""
    return re.findall(
        r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL
    )


class Stage:
    """The folder in which a page's commands run, with a file or model for each name that they
    use.
    """

    def __init__(self, command: Command) -> None:
        self.command = command

    def run(self, line: str) -> None:
        """One command; it must end with exit 0 and write what it says."""
        _, verb, *arguments = shlex.split(line)
        output = self.option(arguments, "--output") or self.option(arguments, "--out")
        for word in arguments:
            if word != output:
                self.provide(verb, word, line)
        more = (
            ["--max-bleu-loss", "100"]
            if verb == "quantize" and "--max-bleu-loss" not in arguments
            else []
        )
        ended = self.command(verb, *arguments, *more)
        assert ended.code == 0, (
            f"{line}\n{ended.out.decode()[-1500:]}\n{ended.err[-1500:]}"
        )
        for name in output.split(",") if output else ():
            assert Path(name).exists(), f"{line} wrote no {name}"

    @staticmethod
    def option(arguments: list[str], name: str) -> str | None:
        return arguments[arguments.index(name) + 1] if name in arguments else None

    def provide(self, verb: str, word: str, line: str) -> None:
        """The files that a word names, if it names any, or the model folder."""
        # without the weight and the tag of a training text
        word = re.sub(r"(?<=\w)@[\d.]*(:\w+)?$", "", word)
        if re.fullmatch(r"[\w./-]+(,[\w./-]+)*", word) and not word.startswith("-"):
            for name in word.split(","):
                path = Path(name)
                if path.suffix in WRITERS and not path.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(WRITERS[path.suffix](path, line), "utf-8")
                if path.suffix == ".docx" and f"--output {name}" not in line:
                    path.write_bytes(docx(PARAGRAPH))
            if (word.startswith("runs/") or word in ("mine", "teacher")) and not Path(
                word
            ).exists():
                self.make_model(verb, Path(word), line)

    def make_model(self, verb: str, folder: Path, line: str) -> None:
        """A model that the page takes for granted: another of its kind again, or one that is
        trained now.
        """
        task = {
            "generate": "language-modelling",
            "score": "language-modelling",
            "classify": "classification",
        }
        wanted = task.get(verb, "translation")
        beside = [
            Path(word, "config.json")
            for word in line.split()
            if Path(word, "config.json").is_file()
        ]
        made = sorted(
            Path("runs").glob("*/config.json"), key=lambda path: path.stat().st_mtime_ns
        )
        for other in [*beside, *made]:
            config = json.loads(other.read_bytes())
            is_usual = config.get("src_lang", "en") == "en" and not config.get(
                "directions"
            )
            if config["task"] == wanted and is_usual:
                shutil.copytree(other.parent, folder)
                return
        if wanted == "translation":
            self.provide("train", "train.en,train.de", "")
            weft.train(out=folder, train="train.en,train.de", quiet=True)
        else:
            is_writer = wanted == "language-modelling"
            name, recipe = (
                ("text.txt", "lm-modern")
                if is_writer
                else ("reviews.csv", "classify-fast")
            )
            self.provide("train", name, "")
            weft.train(out=folder, train=name, recipe=recipe, quiet=True)


def part(path: Path) -> list[tuple[str, str]]:
    return next(
        (rows for name, rows in PARTS.items() if path.name.startswith(name)),
        PARTS["train"],
    )


def side(number: int) -> Callable[[Path, str], str]:
    return lambda path, line: "".join(f"{pair[number]}\n" for pair in part(path))


def running_text(path: Path, line: str) -> str:
    """Lines of their own where they are to be used one by one, else paragraphs."""
    joint = "\n" if "--input" in line or "score" in line else "\n\n"
    rows = (
        PARTS["test"]
        if re.match(r"test|other|valid|more|lines|letters", path.name)
        else PARTS["train"]
    )
    return joint.join(a for a, _ in rows) + "\n"


def rows(path: Path) -> Iterator[tuple[str, str]]:
    return (
        (text, label)
        for pair in part(path)
        for text, label in zip(pair, ("English", "German"), strict=True)
    )


def terms(path: Path, line: str) -> str:
    word, target = next(iter(NOUNS.items()))
    if path.suffix == ".tsv":
        return f"source\ttarget\n{word}\t{target}\n"
    sides = (
        f'<langSec xml:lang="{code}"><termSec><term>{text}</term></termSec></langSec>'
        for code, text in (("en", word), ("de", target))
    )
    return f"<tbx><text><body><conceptEntry>{''.join(sides)}</conceptEntry></body></text></tbx>"


def table(path: Path, line: str, mark: str) -> str:
    if path.stem == "terms":
        return terms(path, line)
    is_labelled = "classif" in line or "label_column" in line or "review" in line
    if mark == "\t" and not is_labelled:
        names = "en\tde\n" if path.stem == "named" else ""
        return names + "".join(f"{a}\t{b}\n" for a, b in part(path))
    label = re.search(r"label_column=(\w+)", line)
    name = label[1] if label else "label"
    column = re.search(r"--column (\w+)", line)
    text = column[1] if column else "text"
    return f"{text}{mark}{name}\n" + "".join(f"{a}{mark}{b}\n" for a, b in rows(path))


def memory(path: Path, line: str) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>\n'
        for a, b in part(path)
    )
    return f'<tmx version="1.4"><header srclang="en"/><body>\n{units}</body></tmx>\n'


def catalogue(path: Path, line: str) -> str:
    """A catalogue of messages, translated where it is to be a memory."""
    is_known = f"--memory {path}" in line
    messages = (
        f'msgid "{a}"\nmsgstr "{b if is_known else ""}"\n' for a, b in part(path)
    )
    return "\n".join(('msgid ""\nmsgstr "Language: de\\n"\n', *messages))


WRITERS: dict[str, Callable[[Path, str], str]] = {
    ".en": side(0),
    ".de": side(1),
    ".txt": running_text,
    ".tsv": lambda path, line: table(path, line, "\t"),
    ".csv": lambda path, line: table(path, line, ","),
    ".jsonl": lambda path, line: "".join(
        f'{{"text": "{a}", "label": "{b};all"}}\n' for a, b in rows(path)
    ),
    ".tmx": memory,
    ".tbx": terms,
    ".po": catalogue,
    ".toml": lambda path, line: 'task = "translation"\n',
}


@pytest.fixture
def stage(
    command: Command,
    shrink: Callable[[Recipe], dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Stage:
    """Trainings in the shown way, but tiny; the folder is a new one."""
    whole = weft.run.train.train

    def small(recipe: Recipe) -> Recipe:
        kept = {
            "training.keep_checkpoints",
            "decoding.max_len_ratio",
            "decoding.max_len_extra",
        }
        sizes = {key: value for key, value in shrink(recipe).items() if key not in kept}
        steps = STEPS[recipe.task]
        sizes |= {
            "training.max_steps": steps,
            "training.eval_every": steps // 3 or 1,
            "training.save_every": steps // 3 or 1,
        }
        sizes |= {
            "training.kernels": "torch",
            "training.learning_rate": 0.01,
            "training.r_drop": 0.0,
        }
        return with_values(recipe, sizes)

    def tiny(request: Any, *more: Any, **named: Any) -> Any:
        minutes = None if request.minutes is None else SHORT
        return whole(
            replace(request, recipe=small(request.recipe), minutes=minutes),
            *more,
            **named,
        )

    monkeypatch.setattr(weft.run.train, "train", tiny)
    for name, value in vars(weft.run.distillation).items():
        if value is whole:
            monkeypatch.setattr(weft.run.distillation, name, tiny)
    monkeypatch.chdir(tmp_path)
    return Stage(command)


def marked(page: str) -> Any:
    return pytest.param(page, marks=[] if page in PUSHED else [pytest.mark.long])


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_every_command_of_a_page(page: str, stage: Stage) -> None:
    shown = commands(page)
    if page == "README.zh.md" and shown == commands("README.md"):
        return  # word for word those of README.md, which are run
    skipped = [begin for where, begin in NOT_RUN if where == page]
    for begin in skipped:
        assert any(line.startswith(begin) for line in shown), (
            f"{page} does not show {begin} any more"
        )
    for line in shown:
        if line.startswith("weft serve"):
            stage.run(f"{line} --new-key parsed")  # serves nothing
        # the demo has tests of its own, and so has the server
        elif not line.startswith(("weft demo", *skipped)):
            stage.run(line)
    for snippet in snippets(page):
        run_snippet(stage, snippet)


def run_snippet(stage: Stage, text: str) -> None:
    for word in re.findall(r"\"([^\"]+)\"", text):
        is_loaded = f'load("{word}")' in text and f'out="{word}"' not in text
        if is_loaded or not word.startswith("runs/"):
            stage.provide("train", word, text)
    exec(compile(text, "snippet", "exec"), {})


@pytest.mark.parametrize("page", PUSHED)
def test_the_readmes_show_commands(page: str) -> None:
    verbs = {line.split()[1] for line in commands(page)}
    assert {
        "train",
        "translate",
        "evaluate",
        "generate",
        "classify",
        "inspect",
    } <= verbs


def test_a_command_that_fails_is_found(stage: Stage) -> None:
    with pytest.raises(AssertionError, match="no such folder"):
        stage.run("weft evaluate nowhere test.en,test.de")


def test_every_page_that_is_left_out_is_one_of_these() -> None:
    assert {page for page, _ in NOT_RUN} <= set(PAGES)
