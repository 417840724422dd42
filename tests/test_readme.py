"""What the pages say is so: the file tree, every command line, every link, every recipe's first
line.
"""

import ast
import re
import shlex
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import torch
import typer
from pydantic import BaseModel
from typer.core import TyperGroup

import house  # tools/house.py
from weft.cli import app
from weft.cli.command import SECOND_NAMES
from weft.config import (
    FOLLOWS_LENGTH,
    MAY_CHANGE,
    RECIPES,
    SIDES,
    RecurrentSection,
    Seq2SeqSection,
    TranslationRecipe,
)
from weft.data import builtin
from weft.data.formats.registry import FILE_TYPES
from weft.data.tokenizer import BOS_ID, EOS_ID, build_tokenizers
from weft.kernels.machine import machine_for_use
from weft.model.attention import AttentionRecord
from weft.model.transformer import Seq2SeqTransformer, count_parameters
from weft.recipes.file import load_recipe, recipe_names
from weft.tasks.choice import load_trainable

ROOT = Path(__file__).resolve().parents[1]
IN_TREE = (".py", ".toml", ".html", ".css", ".js")
NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|toml|html|css|js|md))")
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
# in a line that shows a form rather than a command
PLACEHOLDER = re.compile(r"[\[\]|<>…]|\.\.\.")
# a key of a recipe, its default and its meaning
ROW = re.compile(r"^\| `([a-z_.]+)` \| ([^|]+) \| ([^|]*)\|", re.M)
# the base of all that is wrong with a command line
WRONG_USAGE = typer.BadParameter.__mro__[1]


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]


def tree_paths(readme: str) -> list[str]:
    """The paths, relative to the repository, in the fenced block whose first line is `weft/`;
    folders end in `/`.

    An entry stands two spaces deeper than its folder. Further names on its line, apart by two
    spaces, stand beside a file and inside a folder; the rest of the line says what it is.
    """
    (block,) = re.findall(r"```text\nweft/\n(.*?)```", readme, re.DOTALL)
    folders: dict[int, str] = {0: ""}
    found = []
    for line in block.rstrip("\n").split("\n"):
        depth = (len(line) - len(line.lstrip(" "))) // 2
        first, *more = re.split(r" {2,}", line.strip())
        parent = folders[depth - 1]
        found.append(parent + first)
        folders[depth] = parent + first if first.endswith("/") else parent
        found += [folders[depth] + name for name in more if NAME.fullmatch(name)]
    return found


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout, so nothing says which files belong to it")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()
    ]


def test_the_tree_is_read_as_it_is_meant() -> None:
    readme = (
        "```text\nweft/\n  LICENSE   MIT\n  docs/tour.md    the house\n  src/weft/\n    cli/    the verbs\n"
        "      use.py   look.py   two words\n    page/   a.html  a.js\n    py.typed\n  Makefile   demo\n```\n"
    )
    inside = {
        "cli/",
        "cli/use.py",
        "cli/look.py",
        "page/",
        "page/a.html",
        "page/a.js",
        "py.typed",
    }
    outside = {"LICENSE", "docs/tour.md", "src/weft/", "Makefile"}
    paths = outside | {f"src/weft/{name}" for name in inside}
    assert sorted(tree_paths(readme)) == sorted(paths)


def test_every_path_of_the_tree_exists() -> None:
    missing = [
        p
        for p in sorted(tree_paths((ROOT / "docs/files.md").read_text("utf-8")))
        if not (ROOT / p).exists()
    ]
    assert missing == []


def test_no_path_stands_in_the_tree_twice() -> None:
    paths = tree_paths((ROOT / "docs/files.md").read_text("utf-8"))
    assert [path for path, count in Counter(paths).items() if count > 1] == []


def test_every_form_of_pairs_is_named_by_the_pages_that_list_them() -> None:
    """And every type that holds nothing else where `--input` says what it refuses."""
    kinds = [kind for kind in FILE_TYPES.values() if not kind.is_text]
    of_pairs = {kind.name for kind in kinds if kind.read_pairs}
    refused = {kind.name for kind in kinds if kind.task == "translation"}
    assert {"tsv", "tmx"} <= of_pairs
    odd = [name for name in FILE_TYPES if not re.fullmatch("[a-z]+", name)]
    assert not odd, f"a name in the registry is of small letters alone, not {odd}"
    for page, beginning, names in (
        ("README.md", "**Sentence pairs**", of_pairs),
        ("README.zh.md", "**句对**", of_pairs),
        ("docs/tour.md", "- **In**: files: ", of_pairs),
        ("docs/translation.md", "| form | example |", of_pairs),
        ("docs/translation.md", "| `--input FILE` |", refused),
    ):
        text = (ROOT / page).read_text("utf-8")
        (listed,) = re.findall(
            rf"^{re.escape(beginning)}.*?(?=\n\n|\n- |\n\| `|\Z)", text, re.M | re.S
        )
        words = set(re.findall("[a-z]+", listed.casefold()))
        missing = names - words
        assert not missing, f"{page} lacks {missing} where it says {beginning!r}"


def test_every_file_is_in_the_tree() -> None:
    in_tree = tree_paths((ROOT / "docs/files.md").read_text("utf-8"))
    for name in tracked():
        source = name.startswith("src/weft/") and name.endswith(IN_TREE)
        if source or "/" not in name or name.startswith(("docs/", "benchmarks/")):
            assert name in in_tree, f"docs/files.md lacks {name}"


def command_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Every `weft ...`, and whether it is a whole command: on a line of its own, and with nothing
    left open.
    """
    for line in text.replace("\\\n", " ").split("\n"):
        bare = line.strip().removeprefix("$ ")
        if bare.startswith("weft "):
            yield bare, not PLACEHOLDER.search(bare_words(bare))
        else:
            yield from (
                (span, False)
                for span in re.findall(r"`([^`]+)`", line)
                if span.startswith("weft ")
            )


def bare_words(line: str) -> str:
    """The line without quoted text, comment and what follows a pipe."""
    return re.sub(r"\"[^\"]*\"|'[^']*'|\s#.*| [|<>] .*", "", line)


def shell_words(line: str) -> list[str]:
    """The words of the first command of a line, without its comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split = True
    words = list(lexer)
    ends = [i for i, word in enumerate(words) if word and set(word) <= set("|<>;&")]
    return words[: ends[0]] if ends else words


def check_command(line: str, whole: bool) -> None:
    """Fail where a verb or an option does not exist; with `whole`, where a key is wrong or anything
    missing.
    """
    group = all_commands()
    assert isinstance(group, TyperGroup)
    _, *words = shell_words(line) if whole else line.split()
    if not words or not words[0].isalpha():  # weft --help, weft ...
        assert not words or words[0] in ("-h", "--help", "..."), line
        return
    verb, *arguments = words
    assert verb in group.commands, f"{line!r}: there is no verb {verb}"
    known = {name for option in group.commands[verb].params for name in option.opts} | {
        "-h",
        "--help",
    }
    known |= {second for second, first in SECOND_NAMES.items() if first in known}
    for word in arguments:
        name = re.sub(r"[\[\].…]", "", word).partition("=")[0]
        assert not name.startswith("-") or name in known, (
            f"{line!r}: {verb} has no option {name}"
        )
    settings = [key for flag, key in pairwise(arguments) if flag == "--set"]
    for key in settings:
        assert not whole or key.partition("=")[0] in recipe_keys(), (
            f"{line!r}: no recipe has the key {key}"
        )
    if whole and not {"-h", "--help"} & set(arguments):
        try:
            context = group.commands[verb].make_context(verb, arguments)
        except WRONG_USAGE as error:
            pytest.fail(f"{line!r}: {error}")
        if verb in ("inspect", "export") and not context.params["demo"]:
            assert context.params["folder"], f"{line!r}: it needs FOLDER, or --demo"
            assert context.params.get("texts", True), f"{line!r}: it needs a text"


@cache
def all_commands() -> Any:
    return typer.main.get_command(app)


@cache
def recipe_keys() -> set[str]:
    """The keys of all tasks."""
    recurrent = {"model": RecurrentSection(kind="recurrent").model_dump(mode="json")}
    trees = [
        *(recipe().model_dump(mode="json") for recipe in RECIPES.values()),
        recurrent,
    ]
    return {key for tree in trees for key, _ in flat(tree, "")}


def flat(tree: dict[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def test_every_command_line_would_be_understood() -> None:
    lines = [
        found for page in pages() for found in command_lines(page.read_text("utf-8"))
    ]
    for line, whole in lines:
        check_command(line, whole)
    assert sum(whole for _, whole in lines) > 12


@pytest.mark.parametrize(
    "line",
    [
        "weft trane --out x",
        "weft train --recipe demo --outt x",
        "weft distill runs/x text.txt",
        "weft train --out x --set training.max_step=3",
        "weft translate",
        "weft inspect runs/x",
    ],
)
def test_a_wrong_command_line_would_be_found(line: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_command(line, whole=True)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", [p.relative_to(ROOT).as_posix() for p in pages()])
def test_every_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link in (a or b for a, b in LINK.findall(prose)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page}: the link {link} leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), (
                f"{page}: {name or page} has no heading {anchor}"
            )


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_begins_with_its_command(name: str) -> None:
    """Only the command: what follows it after two spaces is about it."""
    text = (resources.files("weft") / "recipes" / f"{name}.toml").read_text("utf-8")
    assert tomllib.loads(text)
    assert load_recipe(name).task in RECIPES
    first = text.split("\n", maxsplit=1)[0]
    assert first.startswith("# weft ")
    command = first.removeprefix("# ").split("  ")[0]
    check_command(command, whole=True)
    assert command == f"weft {name}" or f"--recipe {name} " in f"{command} "


HEADINGS = {
    "translation": "Translation",
    "language-modelling": "Language modelling",
    "classification": "Classification",
}


@pytest.mark.parametrize("task", RECIPES)
def test_every_recipe_key_is_documented_with_its_default(task: str) -> None:
    page = (ROOT / "docs/recipes.md").read_text("utf-8")
    parts = {part.split("\n")[0]: part for part in page.split("\n## ")[1:]}
    own, _, recurrent = parts[HEADINGS[task]].partition("\n### ")
    tokenizers = documented_keys(parts["Tokenizers"])
    if task == "translation":
        tokenizers = {
            key.replace("tokenizer.", f"tokenizer.{side}."): default
            for side in SIDES
            for key, default in tokenizers.items()
        }
    shared = documented_keys(parts["Every task"]) | documented_keys(parts["Layers"])
    documented = shared | tokenizers | documented_keys(own)
    assert documented == defaults(RECIPES[task]().model_dump(mode="json"))
    if recurrent:
        section = {"model": RecurrentSection(kind="recurrent").model_dump(mode="json")}
        assert documented_keys(recurrent) == defaults(section)


@pytest.mark.parametrize("task", RECIPES)
def test_every_word_that_a_key_takes_is_in_its_row(task: str) -> None:
    page = (ROOT / "docs/recipes.md").read_text("utf-8")
    parts = {part.split("\n")[0]: part for part in page.split("\n## ")[1:]}
    rows: dict[str, str] = {}
    for part in (HEADINGS[task], "Tokenizers", "Every task", "Layers"):
        for key, default, meaning in ROW.findall(parts[part]):
            rows[key] = rows.get(key, "") + default + meaning
    words = set(words_of(RECIPES[task]))
    assert ("training.optimizer", "muon") in words
    missing = [
        f"{key}: {word}"
        for key, word in sorted(words)
        if not re.search(rf"`\"?{re.escape(word)}\"?`", rows[key])
    ]
    assert missing == [], "docs/recipes.md does not say what they do"


def words_of(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each key with each word that it may be set to; one of both sides' tokenizers once."""
    for name, field in section.model_fields.items():
        key = f"{prefix}{name}"
        inner = prefix if name in SIDES else f"{key}."
        for kind in plain_types(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from words_of(kind, inner)
            elif get_origin(kind) is Literal:
                for value in get_args(kind):
                    yield key, shown(value).strip('"')


def plain_types(annotation: object) -> Iterator[object]:
    """The types that an annotation stands for, without what surrounds them."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        for part in get_args(annotation):
            yield from plain_types(part)
    else:
        yield annotation


def test_every_recipe_key_has_its_reason() -> None:
    page = (ROOT / "docs/recipes.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z_.]+)` \|.* \| ([^|]+) \|$", page, re.M)
    assert {key for key, _ in rows} == set(documented_keys(page))
    words = ("measured: ", "system: ", "class: ", "use: ", "open: ", "the paper")
    assert [key for key, reason in rows if not reason.startswith(words)] == []
    assert house.recipe_keys(page) == len({key for key, _ in rows} - {"task"})
    assert house.recipe_keys(page) <= 108


def test_the_pages_name_all_that_may_change_in_a_run() -> None:
    """A paragraph of each page lists these keys and no others."""
    keys = {key.removeprefix("training.") for key in (*MAY_CHANGE, FOLLOWS_LENGTH)}
    begins = {
        "translation.md": "the command must describe the same run.",
        "decisions.md": "Only the length of a run",
    }
    for page, begin in begins.items():
        words = (ROOT / "docs" / page).read_text("utf-8").split()
        text = " ".join(words)
        listed = text.split(begin)[1].split("other difference")[0]
        named = re.findall("`(?:training\\.)?([a-z_]+)`", listed.lower())
        assert {*named} == keys, page


def documented_keys(text: str) -> dict[str, str]:
    rows = re.findall(r"^\| `([a-z_.]+)` \| ([^|]+) \|", text, re.M)
    return {key: default.strip().strip("`") for key, default in rows}


def defaults(tree: dict[str, object]) -> dict[str, str]:
    """Dotted keys and their defaults as TOML has them; "none" where nothing is set."""
    return {key: shown(value) for key, value in flat(tree, "")}


def shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return '"none"'
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_the_ids_of_the_tour_are_those_of_the_code() -> None:
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    train = builtin.pairs("toy-de-en", "de", "en").train
    src, tgt = build_tokenizers(
        load_recipe("toy-de-en").tokenizer, *map(list, zip(*train, strict=True))
    )
    assert (src.vocab_size, tgt.vocab_size) == (278, 279)
    assert [src.encode(text) for text, _ in train] == [
        [274, 275, 273, 276],
        [274, 275, 273, 277],
    ]
    assert str(src.encode("ich mochte ein bier")) in tour
    assert str(tgt.encode("i want a beer .")) in tour
    assert str(src.encode("radler")) in tour
    for src_text, tgt_text in train:
        assert f"{[*src.encode(src_text), EOS_ID]}\n" in re.sub(
            r"(?<=3\]) +.*", "", tour
        )
        assert f"{[*tgt.encode(tgt_text), EOS_ID]}\n" in re.sub(
            r"(?<=3\]) +.*", "", tour
        )
    assert tgt.decode([275, 276, 274, 277, 273]) == "i want a beer ."


def test_the_shapes_of_the_tour_are_those_of_the_code() -> None:
    """Of a model of the sizes that the tour's own command asks for, read where they come to be."""
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    recipe = load_recipe("toy-de-en", re.findall(r"--set (model\.\S+)", tour))
    assert isinstance(recipe, TranslationRecipe)
    assert isinstance(recipe.model, Seq2SeqSection)
    model = Seq2SeqTransformer(recipe.model, 278, 279, joint=False).eval()
    src = torch.tensor([[274, 275, 273, 276, EOS_ID], [274, 275, 273, 277, EOS_ID]])
    tgt_in = torch.tensor([[2, 275, 276, 274, 277, 273], [2, 275, 276, 274, 278, 273]])
    record, cache = AttentionRecord(), model.prefill(src)
    states, _ = model.decode(tgt_in, cache, record)
    layer = cache.layers[0]
    shown = {
        "memory": model.encode(src).shape,
        "memory keys and values": layer.memory.key.shape,
        "own keys and values": layer.past.key.shape,
        "states": states.shape,
        "self-attention weights": record.decoder[0].shape,
        "cross-attention weights": record.cross[0].shape,
        "logits": model.output(states).shape,
    }
    for name, shape in shown.items():
        assert f"{name} {tuple(shape)}" in tour
    for stack in (model.encoder, model.decoder):
        assert len(stack) == 2
    assert f"{count_parameters(model):,} numbers" in tour


def test_the_heads_of_row_a_leave_the_total_width_as_it_is() -> None:
    """Also with the recipe of the tour, which sets a width of heads of its own."""
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    (row,) = re.findall(r"^\| A \|.*", tour, re.M)
    (width,) = re.findall(r"`(model\.head_dim=[^`]+)`", row)
    (heads,) = re.findall(r"`model\.num_heads` ([\d, ]+)", row)
    counts = set()
    for num in heads.split(", "):
        recipe = load_recipe("toy-de-en", [f"model.num_heads={num}", width])
        assert isinstance(recipe, TranslationRecipe)
        assert isinstance(recipe.model, Seq2SeqSection)
        with torch.device("meta"):  # shapes alone
            model = Seq2SeqTransformer(recipe.model, 278, 279, joint=False)
        counts.add(count_parameters(model))
    assert len(counts) == 1


def test_all_that_the_tour_finds_in_the_code_is_there() -> None:
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    table = tour[tour.index("## From the paper to the code") :]
    file = r"\[`([\w/]+\.py)`\]\([^)]+\)"
    rows = re.findall(rf"^\| [^|]+ \| {file} \| ([^|]+) \|", table, re.M)
    assert len(rows) > 15
    native = re.compile(r"`(\w+)` in `([\w/]+\.cpp)`")
    for path, names_of_all in rows:
        names = native.sub("", names_of_all)
        for name, source in native.findall(names_of_all):
            assert f" {name}(" in (ROOT / "src/weft" / source).read_text("utf-8")
        tree = ast.parse((ROOT / "src/weft" / path).read_text("utf-8"))
        there = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert set(re.findall(r"`(\w+)`", names)) <= there, path
    for row in table.split("\n"):
        settings = re.findall(r"`([a-z]+\.[\w.]+=[^`]+)`", row)
        # raises where there is no such setting
        load_recipe("en-de", ["model.num_heads=8", *settings])


def test_the_settings_of_the_tour_make_the_paper_of_every_translator() -> None:
    """With them all packaged Transformers that translate are alike, but for sizes, numbers of
    steps, and what the paper does not decide.
    """
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    _, table = tour.split("## From the paper to the code")
    table, _ = table.split("Each row of Table 3")
    settings = re.findall(r"`((?:model|training|decoding)\.\w+=[^`]+)`", table)
    open_keys = {
        "model": {"d_model", "d_ff", "num_heads", "head_dim", "max_len"}
        | {f"num_{side}_layers" for side in ("encoder", "decoder")},
        "training": {"eval_every", "momentum", "seed", "precision", "num_samples"},
        "decoding": set(),
    }
    expected = load_recipe("demo", settings)
    names = [
        name
        for name in recipe_names()
        if isinstance(getattr(load_recipe(name), "model", None), Seq2SeqSection)
    ]
    assert len(names) > 5
    for name in names:
        recipe = load_recipe(name, settings)
        for section, keys in open_keys.items():
            own = getattr(recipe, section).model_dump(exclude=keys)
            assert own == getattr(expected, section).model_dump(exclude=keys), name


def test_the_lines_of_the_tour_step_through_the_plain_form(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They print what PyTorch's form would."""
    tour = (ROOT / "docs/tour.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", tour, re.DOTALL)
    assert code.count('"runs/toy"') == 1
    exec(code.replace("runs/toy", str(tiny_folder)), {})
    task = load_trainable(tiny_folder, machine_for_use())
    src = task.tokenizers[0].encode("ich mochte ein bier")
    ids = torch.tensor([[*src, EOS_ID]])
    expected = task.model(ids, torch.tensor([[BOS_ID]])).argmax(-1)
    assert capsys.readouterr().out == f"{expected.numpy()}\n"


def doubled(page: str) -> list[str]:
    """Lines with words that stand twice in a row, but for blank lines; bullets that stand twice on
    a page, and rows twice in a table, outside fenced blocks.
    """
    lines = [line for line in page.split("\n") if re.search(r"\w\w", line)]
    twice = [line for line, following in pairwise(lines) if line == following]
    bullets: set[str] = set()
    rows: set[str] = set()
    is_fenced = False
    for line in page.split("\n"):
        is_fenced ^= line.lstrip().startswith("```")
        is_row = line.startswith("|")
        if not is_row:
            rows = set()
        if is_fenced or not (is_row or re.match(r" *(?:[-*]|\d+\.) ", line)):
            continue
        seen = rows if is_row else bullets
        if line in seen and line not in twice:
            twice.append(line)
        seen.add(line)
    return twice


def test_no_line_of_a_page_is_doubled() -> None:
    pages_of_product = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")]
    assert {path.name for path in pages_of_product} >= {"README.zh.md", "CHANGELOG.md"}
    found = {page.name: doubled(page.read_text("utf-8")) for page in pages_of_product}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_doubled_line_is_seen() -> None:
    sound = "| a b | size |\n|---|---|\n| base | 1 |\n\n| a b | size |\n|---|---|\n| base | 1 |\n"
    assert doubled(f"{sound}- one\n  more\n- two\n  more\n") == []
    assert doubled("| base | 1 |\n| big | 2 |\n| base | 1 |\n") == ["| base | 1 |"]
    assert doubled("- one\n\n- two\n- one\n") == ["- one"]
    assert doubled("a line\n\na line\n- x y\n- x y\n") == ["a line", "- x y"]
