"""The verb that cleans text: clean."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.on import Workers
from weft.cli.on_pairs import (
    BlockPairs,
    OnPairs,
    files_of,
    pairs_spread_of,
    refuse_no_pairs,
    spread_over,
)
from weft.cli.options import AsJson, RecipeOrGuessed, Settings, TextToTrainOn
from weft.cli.recipe import choose_recipe
from weft.cli.streams import print_json
from weft.console.wording import remark, say_lines
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.cluster.tasks import InBlocks
    from weft.config import Recipe
    from weft.data.base import Corpus
    from weft.data.clean.cleaned import Cleaned
    from weft.data.clean.rules import Choice
    from weft.data.clean.writing import Contents, Destination

_NO_FAULTS = ("as-read", "languages-not-recognized", "language-not-named")


Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="Write the cleaned text: a file, or two as clean.en,clean.de; with --on also a folder of shards.",
    ),
]
Changes = Annotated[
    Path | None,
    typer.Option(help="Write what was dropped and mended. Default: beside the output."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(help="Leave rows with this finding as they are; repeatable."),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Drop rows with this finding; repeatable.")
]
Dev = Annotated[str | None, typer.Option(help="Dev text, whose rows are dropped.")]
Test = Annotated[str | None, typer.Option(help="Test text, whose rows are dropped.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
]


def clean(
    data: TextToTrainOn,
    output: Output = None,
    changes: Changes = None,
    keep: Keep = None,
    drop: Drop = None,
    dev: Dev = None,
    test: Test = None,
    dry_run: DryRun = False,
    recipe: RecipeOrGuessed = None,
    settings: Settings = None,
    on: OnPairs = None,
    workers: Workers = None,
    block_pairs: BlockPairs = None,
    as_json: AsJson = False,
) -> None:
    """Clean text: mend what can be mended, drop what would spoil training, and list both."""
    from weft.data.clean.rules import Choice
    from weft.data.train_text import refuse_worth

    read = [*data, *filter(None, (dev, test))]
    for item in read:
        refuse_worth(item)
    if output is None and not dry_run:
        raise UsageError(
            "--output is missing: name the file of the cleaned text, or add --dry-run to see what would be done"
        )
    spread = pairs_spread_of(on, workers, block_pairs)
    chosen = choose_recipe(recipe, settings or [], data)
    refuse_no_pairs(spread, chosen.recipe)
    choice = Choice.of(chosen.recipe.task, keep or (), drop or ())
    place = _place_of(output, changes, read, spread is not None, dry_run)
    shard_pairs = spread.block_rows if spread is not None else 0
    job = _Job(chosen.recipe, data, choice, (dev, test), place, shard_pairs)
    facts = {
        "clean": chosen.recipe.data.model_dump(mode="json"),
        "rules": dict(choice.actions),
    }
    with spread_over(spread, output, read, facts) as blocks:
        cleaned, contents, columns = job.run()
        cleaned.notes[:0] = [*chosen.said, *chosen.doubts]
        if place is not None and not dry_run:
            lines = cleaned.record.lines(columns)
            manifest = None
            if place.folder is not None:
                assert blocks is not None
                manifest = _manifest(read, facts, cleaned, shard_pairs, blocks)
            place.write({place.changes: lines, **contents}, manifest)
    if as_json:
        print_json(cleaned.to_json())
        return
    say_lines(_report(cleaned, choice, chosen.recipe.task), sys.stdout)
    if place is not None and not dry_run:
        remark(f"written to {' and '.join(map(str, place.named))}")
        remark(f"what was dropped and mended: {place.changes}")


def _place_of(
    output: str | None,
    changes: Path | None,
    read: Sequence[str],
    is_spread: bool,
    dry_run: bool,
) -> "Destination | None":
    """Return the files to write, and say which will be replaced. Raises UsageError where one is in
    the way.
    """
    from weft.data.clean.writing import Destination

    if output is None:
        return None
    place = Destination.of(output, changes, read, is_spread)
    if not dry_run:
        place.refuse_existing()
        if there := " and ".join(str(path) for path in place.texts if path.exists()):
            remark(f"weft: {there}: of an earlier cleaning; will be replaced")
    return place


def _manifest(
    read: Sequence[str],
    facts: dict[str, Any],
    cleaned: "Cleaned[Any]",
    shard_pairs: int,
    blocks: "InBlocks",
) -> dict[str, Any]:
    """Return what the manifest of a folder of shards says, beside the size of each and its hash."""
    from weft.data.clean.writing import shards_of
    from weft.folder.durable import sha256_of
    from weft.folder.version import installed_version

    files = [file for item in read for file in files_of(item)]
    return {
        "verb": "clean",
        "version": installed_version(),
        "inputs": [
            {"path": str(file.resolve()), "sha256": sha256_of(file)} for file in files
        ],
        "settings": facts,
        "shards": [
            {"shard": name, "first": part.start + 1, "rows": len(part)}
            for name, part in shards_of(len(cleaned.text), shard_pairs).items()
        ],
        "blocks": blocks.entries,
    }


class _Job:
    """The cleaning of one kind of text, by its recipe."""

    def __init__(
        self,
        recipe: "Recipe",
        data: Sequence[str],
        choice: "Choice",
        held_out: tuple[str | None, str | None],
        place: "Destination | None",
        shard_pairs: int,
    ) -> None:
        self._place = place
        self._shard_pairs = shard_pairs
        self._recipe = recipe
        self._data = data
        self._choice = choice
        named = zip(("dev-in-training", "test-in-training"), held_out, strict=True)
        self._held_out = {rule: item for rule, item in named if item}
        self._texts = place.texts if place is not None else ()

    def run(self) -> "tuple[Cleaned[Any], Contents, tuple[str, ...]]":
        """Clean the text; return it, the content of each file, and the columns of a row."""
        from weft.config import ClassificationRecipe, LanguageRecipe

        if isinstance(self._recipe, LanguageRecipe):
            return self._documents(self._recipe)
        if isinstance(self._recipe, ClassificationRecipe):
            return self._rows(self._recipe)
        return self._pairs()

    def _pairs(self) -> "tuple[Cleaned[Any], Contents, tuple[str, ...]]":
        from weft.config import TranslationRecipe
        from weft.data.clean.pairs import clean_pairs
        from weft.data.clean.writing import (
            pairs_as_files,
            pairs_as_shards,
            refuse_form_of_pairs,
        )
        from weft.data.corpus import read_pairs

        assert isinstance(self._recipe, TranslationRecipe)
        section = self._recipe.data
        languages = section.src_lang, section.tgt_lang
        refuse_form_of_pairs(self._texts)
        held = {r: read_pairs(item, *languages) for r, item in self._held_out.items()}
        cleaned = clean_pairs(self._data, languages, self._choice, held)
        contents: Contents = {}
        if self._place is not None and self._place.folder is not None:
            contents = pairs_as_shards(
                cleaned.text, self._place.folder, self._shard_pairs
            )
        elif self._texts:
            contents = pairs_as_files(cleaned.text, self._texts)
        return cleaned, contents, ("source", "target")

    def _documents(
        self, recipe: Any
    ) -> "tuple[Cleaned[Any], Contents, tuple[str, ...]]":
        from weft.data.clean.documents import clean_documents
        from weft.data.clean.writing import documents_as_file, refuse_form_of_documents

        section = recipe.data
        if self._held_out:
            raise UsageError(
                "--dev and --test are for pairs and labelled rows; weft check compares documents with them"
            )
        if self._texts:
            refuse_form_of_documents(self._texts, section.documents, len(self._data))
        cleaned = clean_documents(
            self._data, section.documents, section.raw, self._choice
        )
        contents: Contents = {}
        if self._texts:
            contents = documents_as_file(
                cleaned.text, section.documents, self._texts[0]
            )
        return cleaned, contents, ("text",)

    def _rows(self, recipe: Any) -> "tuple[Cleaned[Any], Contents, tuple[str, ...]]":
        from weft.data.clean.labelled import clean_labelled
        from weft.data.clean.writing import refuse_form_of_rows, rows_as_file
        from weft.data.labelled import read_labelled

        section = recipe.data
        if self._texts:
            refuse_form_of_rows(self._texts, self._data)
        columns = section.text_column, section.label_column, section.label_separator
        held = {r: read_labelled(i, *columns) for r, i in self._held_out.items()}
        cleaned, table = clean_labelled(self._data, section, self._choice, held)
        contents: Contents = {}
        if self._texts:
            contents = rows_as_file(table, self._texts[0])
        return cleaned, contents, ("label", "text")


def _report(cleaned: "Cleaned[Corpus]", choice: "Choice", task: str) -> Iterator[str]:
    """Yield what was done by each rule, what is left, and how many rows that makes."""
    from weft.data.check.finding import counted
    from weft.data.clean.documents import LINE_RULES
    from weft.data.clean.rules import BY_NAME

    of_lines = LINE_RULES if task == "language-modelling" else ()
    yield from cleaned.notes
    for name, numbers in cleaned.record.counts().items():
        rule = BY_NAME[name]
        unit = " (lines)" if name in of_lines else ""
        for done, why in (("mended", rule.mends), ("dropped", rule.drops)):
            if numbers[done]:
                yield f"{numbers[done]:7,} {done} {name}{unit}: {why or rule.mends}"
    for reason, count in sorted(cleaned.record.unlisted.items()):
        yield f"{count:7,} dropped in reading: {reason}"
    for finding in cleaned.left:
        if finding.code not in _NO_FAULTS:
            kept = " (kept)" if choice.does(finding.code, "keep") else ""
            yield f"still there: {finding.severity} {finding.code}{kept}: {finding.message}"
    rows = {"translation": "pairs", "language-modelling": "documents"}.get(task, "rows")
    read = counted(cleaned.num_read, rows)
    yield f"{read} read, {len(cleaned.text):,} kept, {cleaned.num_read - len(cleaned.text):,} dropped"
