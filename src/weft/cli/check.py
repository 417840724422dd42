"""The verb that checks text before training: check."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.on import Workers
from weft.cli.on_pairs import (
    BlockPairs,
    OnPairs,
    pairs_spread_of,
    refuse_no_pairs,
    spread_over,
)
from weft.cli.options import AsJson, RecipeOrGuessed, Settings, TextToTrainOn
from weft.cli.recipe import choose_recipe
from weft.cli.streams import print_json
from weft.console.wording import remark, say_lines
from weft.data.languages import direction, how_to_name
from weft.errors import UsageError
from weft.folder import durable

if TYPE_CHECKING:
    from weft.data.check.finding import Finding
    from weft.data.checkup import Checkup

HANGING = 9  # the column of a finding's text, after its severity
_SHORT = 20  # characters of a source that may be a term
_MOST_DOUBTS = 20  # of a glossary, printed one by one
FATAL_EXIT = 3  # the exit code of DataError


def check(
    data: TextToTrainOn,
    dev: Annotated[
        str | None,
        typer.Option(help="Dev text, to check and compare with the training text."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(help="Test text, to check and compare with the training text."),
    ] = None,
    recipe: RecipeOrGuessed = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Write the full report, with all line numbers, as .html or .json.",
        ),
    ] = None,
    on: OnPairs = None,
    workers: Workers = None,
    block_pairs: BlockPairs = None,
    as_json: AsJson = False,
) -> None:
    """Check text for problems before training; exit with code 3 if there is a fatal one."""
    from weft.data.checkup import check_up
    from weft.data.glossary_check import is_glossary
    from weft.data.texts import Sources
    from weft.data.train_text import names_of, parse_texts, refuse_worth

    spread = pairs_spread_of(on, workers, block_pairs)
    texts = parse_texts(data)
    for item in (dev, test):
        refuse_worth(item)
    data = [*names_of(texts)]
    if len(data) == 1 and recipe is None and is_glossary(Path(data[0])):
        if spread is not None:
            raise UsageError(
                f"--on {spread.where}: {data[0]} is a glossary, which is checked at once; leave it out"
            )
        _check_glossary(Path(data[0]), settings or (), output, as_json)
        return
    if output is not None:
        from weft.inspection.suffixes import FORMATS, refuse_other_suffixes

        refuse_other_suffixes(output, FORMATS)
        durable.refuse_no_place(output)
    chosen = choose_recipe(recipe, settings or [], data)
    notes = [*chosen.said, *chosen.doubts]
    if chosen.recipe.task == "language-modelling" and len(data) == 2:
        notes.append(
            f"if the two files translate each other, join them by a comma: {','.join(data)}"
        )
    refuse_no_pairs(spread, chosen.recipe)
    read = [*data, *filter(None, (dev, test))]
    facts = {"check": chosen.recipe.data.model_dump(mode="json")}
    with spread_over(spread, output, read, facts):
        checkup = check_up(chosen.recipe, Sources(texts, dev, test))
    checkup.notes += notes
    if output is not None:
        from weft.inspection.check_page import write_checkup

        write_checkup(checkup, output)
        remark(f"written to {output}")
    if as_json:
        print_json(checkup.to_json())
    else:
        _say(checkup, data, has_report=output is not None)
    if checkup.is_fatal:
        raise typer.Exit(FATAL_EXIT)


def _check_glossary(
    path: Path, settings: Sequence[str], output: Path | None, as_json: bool
) -> None:
    """Say what is doubtful in a glossary, and how it is used."""
    from weft.data.glossary_check import check_glossary

    if output is not None:
        raise UsageError(
            f"--output {output}: {path} is a glossary, of which no page is made; leave it out"
        )
    values = dict(setting.partition("=")[::2] for setting in settings)
    pair = [values[key] for key in ("data.src_lang", "data.tgt_lang") if key in values]
    found = check_glossary(path, pair)
    if as_json:
        print_json(found.to_json())
        return
    of_these = f"{found.num_inflected:,} with inflection, by which plurals are found"
    lines = [f"{path}: a glossary of {found.num_terms:,} terms, {of_these}"]
    lines += [f"{path}: {note}" for note in found.notes]
    lines += found.doubts[:_MOST_DOUBTS]
    if len(found.doubts) > _MOST_DOUBTS:
        lines.append(f"{len(found.doubts) - _MOST_DOUBTS:,} more such terms: --json")
    lines.append(f"weft translate FOLDER TEXT --glossary {path} uses it")
    say_lines(lines, sys.stdout)


def _say(checkup: "Checkup", data: Sequence[str], has_report: bool) -> None:
    """Print the report: each finding on two lines, with a few examples below."""
    parts = [f"{name}: {_numbers(numbers)}" for name, numbers in checkup.parts.items()]
    say_lines([*checkup.notes, *parts], sys.stdout)
    for finding in checkup.findings:
        say_lines(("", *_shown(finding)), sys.stdout, HANGING)
    counts = checkup.counts()
    said = f"fatal: {counts['fatal']}, warnings: {counts['warning']}, notes: {counts['note']}"
    hidden = [] if has_report else _hidden(checkup)
    hidden = [*_cleaning(data, checkup), *hidden]
    uses = _other_uses(data, checkup)
    say_lines(("", *hidden, *uses, f"{said}; {checkup.words()}"), sys.stdout)


def _other_uses(data: Sequence[str], checkup: "Checkup") -> Iterator[str]:
    """Yield how else than in training a file may be used."""
    from weft.data.formats.filetype import type_of_name

    if checkup.task == "language-modelling" and _is_undivided(data, checkup):
        yield "if each line is a sentence, as in text for weft train --mono: --set data.documents=line"
    if checkup.task != "translation" or len(data) != 1 or "train" not in checkup.parts:
        return
    kind = type_of_name(Path(data[0]))
    if kind is None:
        return
    sources = checkup.parts["train"]["columns"]["source"]
    use = f"weft translate FOLDER TEXT {{}} {data[0]} uses it"
    if kind.task == "translation":
        yield f"as a translation memory, {use.format('--memory')}"
    elif kind.table and sources["characters"]["median"] <= _SHORT:
        yield f"if these are terms, what is said of training does not count: {use.format('--glossary')}"


def _is_undivided(data: Sequence[str], checkup: "Checkup") -> bool:
    """Return whether each file is one document."""
    train = checkup.parts.get("train")
    return train is not None and train["rows"] == len(data)


def _cleaning(data: Sequence[str], checkup: "Checkup") -> Iterator[str]:
    """Yield the command that acts on findings, where there are such."""
    from weft.data.clean.rules import RULES

    acted_on = {rule.name for rule in RULES if rule.action != "keep"}
    found = {one.code for one in checkup.findings if one.part == "train" and one.places}
    if acted_on & found:
        yield f"weft clean {' '.join(data)} --output FILE mends such rows or drops them, and lists both"


def _hidden(checkup: "Checkup") -> Iterator[str]:
    from weft.data.check.finding import counted

    hidden = 0
    for finding in checkup.findings:
        hidden += max(len(finding.examples) - _most(finding), 0)
    if hidden:
        examples = counted(hidden, "examples").replace(" ", " more ", 1)
        yield f"{examples}, all line numbers, lengths and scripts: --output report.html"


def _numbers(numbers: dict[str, Any]) -> str:
    from weft.data.check.finding import counted

    parts = [counted(numbers["rows"], "rows")]
    if langs := tuple(numbers.get("languages", {}).values()):
        parts.append(f"{direction(*langs)}{how_to_name(*langs)}")
    lengths = []
    for name, column in numbers["columns"].items():
        median = column["characters"]["median"]
        lengths.append(f"{name} {median:,.0f} characters")
    parts.append(f"median length: {', '.join(lengths)}")
    parts.append(numbers["signature"])
    return "; ".join(part for part in parts if part)


def _most(finding: "Finding") -> int:
    """Return how many examples of a finding a terminal shows: fewer of a note."""
    return 1 if finding.severity == "note" else 3


def _shown(finding: "Finding") -> Iterator[str]:
    yield f"{finding.severity.upper():8} {finding.code} ({finding.part}): {finding.message}"
    yield f"{'':8} {finding.remedy}"
    for example in finding.examples[: _most(finding)]:
        detail = f" ({example.about})" if example.about else ""
        yield f"{'':10} {example.where}{detail}: {example.with_marks('»', '«')}"
