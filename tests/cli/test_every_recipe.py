"""Every packaged recipe, its sizes shrunk and its structure kept, through every verb; with and
without kernels.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.config import Recipe
from weft.data import builtin
from weft.engine import bindings
from weft.kernels import native
from weft.recipes.file import load_recipe, recipe_names

Command = Callable[..., Any]
NAMES = recipe_names()
CASES = [
    *((name, "native", "few") for name in NAMES),  # pushed; the rest takes long
    *((name, kernels, "all") for name in NAMES for kernels in ("native", "none")),
]
PUSHED_WHOLE = {("toy-de-en", "none")}
# a recipe for each kind of model, as it is built today
PUSHED = {"classify-fast", "en-de-modern", "lm-modern", "seq2seq-rnn-additive"}

ONE_LINE = 2  # the exit code of a verb that does not suit the task


Shrink = Callable[[Recipe], dict[str, object]]


def shrunk(name: str, shrink: Shrink) -> list[str]:
    """--set values for a recipe on files of ours, of which a built-in text of thousands of pairs is
    none.
    """
    recipe = load_recipe(name)
    found = shrink(recipe)
    found |= (
        {"data.builtin": "none"}
        if recipe.data.model_dump()["builtin"] == "everyday"
        else {}
    )
    return [f"{key}={value}" for key, value in found.items()]


def sets(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text for every task: pairs, documents, rows; of each a part that is not trained
    on.
    """
    here = tmp_path_factory.mktemp("texts")
    for src, tgt in (("en", "de"), ("en", "zh"), ("de", "en")):
        splits = builtin.pairs("everyday", src, tgt)
        for part, rows in (("train", splits.train[:80]), ("test", splits.test[:12])):
            lines = "".join(f"{a}\t{b}\n" for a, b in rows)
            (here / f"{part}.{src}-{tgt}.tsv").write_text(lines, "utf-8")
    splits = builtin.pairs("everyday", "en", "de")
    for part, rows in (("train", splits.train[:80]), ("test", splits.test[:12])):
        (here / f"{part}.txt").write_text(
            "\n\n".join(a for a, _ in rows) + "\n", "utf-8"
        )
        table = [
            (text, label)
            for row in rows
            for text, label in zip(row, ("English", "German"), strict=True)
        ]
        (here / f"{part}.csv").write_text(
            "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in table),
            "utf-8",
        )
    return here


class Bench:
    """One recipe's models, and what each verb did; a verb that fails does not hide the next."""

    def __init__(
        self,
        command: Command,
        here: Path,
        settings: list[str],
        name: str,
        texts: Path,
        teacher: Path,
        lesson: str,
    ) -> None:
        recipe = load_recipe(name)
        self.teacher, self.lesson = teacher, lesson
        self.command, self.here, self.name, self.task = command, here, name, recipe.task
        self.settings = settings
        self.failures: list[str] = []
        self.model, self.other = here / "model", here / "other"
        data = recipe.data.model_dump()
        langs = f"{data.get('src_lang')}-{data.get('tgt_lang')}"
        ending = {
            "translation": f".{langs}.tsv",
            "language-modelling": ".txt",
            "classification": ".csv",
        }[self.task]
        self.train_text, self.test_text = (
            texts / f"train{ending}",
            texts / f"test{ending}",
        )
        self.has_text = "data.builtin=none" not in self.settings and bool(
            data["builtin"]
        )

    def run(self, *arguments: object, code: int = 0) -> Any:
        """The command's outcome; what is not as it should be is kept."""
        shown = " ".join(map(str, arguments))
        try:
            ended = self.command(*arguments)
        except Exception as error:  # what a person would see as a traceback
            self.failures.append(f"weft {shown}: {type(error).__name__}: {error}")
            return None
        if ended.code != code or (code and len(ended.messages) != 1):
            self.failures.append(
                f"weft {shown}: exit {ended.code}, not {code}: {ended.err[-300:]}"
            )
        return ended

    def train(self, out: Path, steps: int, *more: str) -> None:
        text = [] if self.has_text else [self.train_text]
        settings = sets([*self.settings, f"training.max_steps={steps}", *more])
        self.run("train", *text, "--recipe", self.name, "--output", out, *settings)

    def wrote(self, path: Path) -> Path:
        if not (path.is_dir() and any(path.iterdir())) and not (
            path.is_file() and path.stat().st_size
        ):
            self.failures.append(f"{path.name} was not written")
        return path

    def every_verb(self, is_whole: bool) -> None:
        """With `is_whole`, each with more of its options, and what takes long."""
        self.train(self.model, 4)
        self.train(self.model, 6)  # goes on where it was
        self.train(self.other, 4, "training.seed=2")
        if self.failures:
            return
        by_task = {
            "translation": self.translation,
            "language-modelling": self.language_modelling,
            "classification": self.classification,
        }
        by_task[self.task](is_whole)
        self.any_task(is_whole)

    def any_task(self, is_whole: bool) -> None:
        self.run("evaluate", self.model, self.test_text)
        self.run("compare", self.model, self.other, self.test_text, "--samples", 20)
        for suffix in ("html", "json", "svg") if is_whole else ("html", "json"):
            self.run(
                "inspect",
                self.model,
                "Anna has a Zzz.",
                "--output",
                self.here / f"look.{suffix}",
            )
            self.wrote(self.here / f"look.{suffix}")
        self.run("diagnose", self.model, self.test_text)
        self.run("average", self.model, "--last", 2, "--output", self.here / "mean")
        self.run(
            "plot",
            "history",
            self.model,
            self.other,
            "--output",
            self.here / "history.svg",
        )
        self.wrote(self.here / "history.svg")
        if is_whole:
            self.run("inspect", self.model, "5", "--output", self.here / "unknown.html")
            self.run(
                "compare",
                self.model,
                self.model,
                self.test_text,
                "--samples",
                20,
                "--json",
            )
            self.run("diagnose", self.model)
            self.run("selfcheck", self.model)
            self.run("evaluate", self.here / "mean", self.test_text)

    def translation(self, is_whole: bool) -> None:
        asked: list[list[object]] = [[], ["--json", "--alignments"]]
        rest: list[list[object]] = [
            ["--beam-size", 2, "--n-best", 2],
            ["--beam-size", 1],
            ["--mbr", 2],
        ]
        rest += [["--temperature", 1.0, "--n-best", 2], ["--prefix", "a"]]
        for options in [*asked, *rest] if is_whole else asked:
            self.run("translate", self.model, "Anna has a Zzz.", "", *options)
        if is_whole:
            self.run(
                "inspect",
                self.model,
                "Anna has a book.",
                "--output",
                self.here / "words.txt",
            )
        self.refused("generate", "score", "classify")
        self.distilled()
        self.quantized(is_whole)

    def distilled(self) -> None:
        """A student of this recipe; its teacher ends its sentences, which hardly trained models do
        not.
        """
        settings = sets(
            [
                *self.settings,
                "training.max_steps=2",
                "data.builtin=none",
                "data.src_lang=en",
                "data.tgt_lang=de",
            ]
        )
        order = [
            "distill",
            self.teacher,
            self.lesson,
            "--recipe",
            self.name,
            "--output",
            self.here / "student",
        ]
        self.run(*order, "--beam-size", 1, *settings)
        self.run("translate", self.here / "student", "Anna has a book.")

    def quantized(self, is_whole: bool) -> None:
        order = [
            "quantize",
            self.model,
            self.test_text,
            "--output",
            self.here / "int8",
            "--max-bleu-loss",
            100,
        ]
        if weft.load(self.model).engine is None:
            self.run(*order, code=ONE_LINE)
            return
        self.run(*order)
        self.run("translate", self.here / "int8", "Anna has a book.")
        if is_whole:
            self.run("selfcheck", self.here / "int8")

    def language_modelling(self, is_whole: bool) -> None:
        for options in (
            [],
            ["--prompt", "Anna"],
            ["--prompt", "Anna", "--json", "--temperature", 0],
        ):
            self.run("generate", self.model, *options)
        self.run(
            "generate",
            self.model,
            "--prompt",
            "Anna",
            "--draft",
            "prompt",
            "--repetition-penalty",
            1.2,
        )
        self.run("score", self.model, self.test_text)
        if is_whole:
            self.run("score", self.model, self.test_text, "--json")
        self.refused("translate", "classify", "quantize", "distill")

    def classification(self, is_whole: bool) -> None:
        for options in ([], ["--all"], ["--json"]) if is_whole else ([],):
            self.run("classify", self.model, "Anna has a book.", "Zzz", "", *options)
        self.refused("translate", "generate", "score", "quantize", "distill")

    def refused(self, *verbs: str) -> None:
        """Verbs of another task: one line and exit 2."""
        text, new = self.test_text, self.here / "new"
        rest = {"translate": ["a"], "classify": ["a"], "generate": [], "score": [text]}
        rest |= {
            "quantize": [text, "--output", new],
            "distill": [self.train_text, "--output", new],
        }
        for verb in verbs:
            ended = self.run(verb, self.model, *rest[verb], code=ONE_LINE)
            if ended is not None and self.task not in ended.err:
                self.failures.append(
                    f"weft {verb} does not name the model's task: {ended.err}"
                )


@pytest.fixture
def kernels(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """`native`, or `none`: as on a machine without a compiler."""
    if request.param == "none":

        def refuse(*given: object) -> None:
            raise native.UnavailableError("there is no C++ compiler; install one")

        monkeypatch.setattr(native, "library", refuse)
        monkeypatch.setattr(native, "load", refuse)
        bindings.library.cache_clear()
    yield "torch" if request.param == "none" else "native"
    bindings.library.cache_clear()


def marked(name: str, kernels: str, verbs: str) -> Any:
    is_few = verbs == "few" and name in PUSHED
    is_pushed = is_few or (name, kernels) in PUSHED_WHOLE
    marks = [] if is_pushed else [pytest.mark.long]
    return pytest.param(
        name, kernels, verbs, marks=marks, id=f"{name}-{kernels}-{verbs}"
    )


@pytest.mark.parametrize(
    ("name", "kernels", "verbs"),
    [marked(*case) for case in CASES],
    indirect=["kernels"],
)
def test_every_verb(
    name: str,
    kernels: str,
    verbs: str,
    command: Command,
    texts: Path,
    shrink: Shrink,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    settings = [*shrunk(name, shrink), f"training.kernels={kernels}"]
    bench = Bench(
        command, tmp_path, settings, name, texts, tiny_folder, write_pairs(80)
    )
    bench.every_verb(verbs == "all")
    assert not bench.failures, "\n" + "\n".join(bench.failures)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shrunk_is_a_size_alone(name: str, shrink: Shrink) -> None:
    """Nothing of a recipe's structure gets lost on the way here."""
    sizes = {
        "d_model",
        "d_ff",
        "d_hidden",
        "head_dim",
        "max_len",
        "num_encoder_layers",
        "num_decoder_layers",
    }
    whole = json.loads(load_recipe(name).model_dump_json())["model"]
    small = json.loads(load_recipe(name, shrunk(name, shrink)).model_dump_json())[
        "model"
    ]
    assert {key for key in whole if whole[key] != small[key]} <= sizes | {
        "ngram_buckets"
    }
    assert small["d_model"] <= 32
