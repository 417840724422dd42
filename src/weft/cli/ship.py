"""Verbs that make something of models: quantize, average, distill, pack, export."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from weft import DEMO
from weft.cli.leaving import all_or_nothing
from weft.cli.models import glossary_for, refuse_missing_files, units_for
from weft.cli.on import BlockRows, OnSentences, Workers, spread_of, writer_for
from weft.cli.options import AsJson, Folder, FolderOrDemo, FromDemo, Settings, To
from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import print_json, progress
from weft.cli.train import (
    AllowBadData,
    Dev,
    Output,
    RecipeName,
    Test,
    say_ended,
)
from weft.console import stages
from weft.console.wording import remark
from weft.errors import FolderError, UsageError
from weft.folder.layout import refuse_no_model
from weft.folder.model_files import refuse_other_task


def quantize(
    folder: Folder,
    output: Annotated[Path, typer.Option("--output", help="The new model folder.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Pairs to compare on, not trained on. Default: the run's held-out pairs."
        ),
    ] = None,
    shortlist: Annotated[
        list[str] | None,
        typer.Option(
            help="Training pairs: learn from them which words each word can become; repeatable."
        ),
    ] = None,
    max_bleu_loss: Annotated[
        float, typer.Option(help="Write nothing if int8 loses more BLEU than this.")
    ] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Quantize a translator to int8: a quarter of the size, and faster; refuse a loss of BLEU."""
    refuse_other_task(
        folder, "translation", "be quantized: only translators have an int8 form"
    )
    refuse_missing_text([*(data or ()), *(shortlist or ())])
    from dataclasses import asdict

    with stages.showing("loading the model"):
        from weft.ship.contents import contents
        from weft.ship.quantization import quantize as make

        report = make(
            folder,
            data or (),
            output,
            max_bleu_loss,
            shortlist or (),
        )
    if as_json:
        print_json({**asdict(report), "folder": str(output)})
        return
    for line in report.lines():
        print(line)
    remark(f"weft: wrote {output}: {contents(output)}")


def average(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="A model folder with its run's checkpoints, or several models."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", help="The new model folder.")],
    last: Annotated[
        int | None,
        typer.Option(
            help="With one folder: average its newest N checkpoints; without it, all that it kept, the best one too."
        ),
    ] = None,
) -> None:
    """Average the weights of a run's checkpoints, or of several models."""
    from weft.ship.averaging import about_starts
    from weft.ship.averaging import average as make

    for name in make(folders, output, last):
        print(name)
    if said := about_starts(folders):
        remark(f"weft: note: {said}")
    remark(
        f"weft: wrote {output}, the mean of these; weft compare tells whether it is better"
    )


def distill(
    teacher: Annotated[Path, typer.Argument(help="The teacher's model folder.")],
    data: Annotated[
        list[str],
        typer.Argument(
            help="Text to translate: pairs, or one sentence per line; also .gz."
        ),
    ],
    output: Output,
    recipe: RecipeName = None,
    dev: Dev = None,
    test: Test = None,
    settings: Settings = None,
    beam_size: Annotated[
        int | None,
        typer.Option(min=1, help="The teacher's beam size. Default: from its recipe."),
    ] = None,
    allow_bad_data: AllowBadData = False,
    to: To = None,
    on: OnSentences = None,
    workers: Workers = None,
    block_rows: BlockRows = None,
) -> None:
    """Train a student on a teacher's translations, or continue a distillation that was stopped."""
    from weft.recipes.file import load_recipe

    spread = spread_of(on, workers, block_rows)
    student = load_recipe(recipe, settings or ())
    refuse_no_model(teacher)
    refuse_missing_text([*data, dev, test])

    from weft.run.distillation import distill as run_distilling
    from weft.run.request import Request

    request = Request(
        recipe=student,
        out=output,
        dev=dev,
        test=test,
        command=shlex.join(["weft", *sys.argv[1:]]),
        allow_bad_data=allow_bad_data,
    )
    verdict = run_distilling(
        request,
        teacher,
        data,
        beam_size,
        progress=progress,
        to=to,
        write=writer_for(spread),
    )
    say_ended(verdict, student.task, output)


def pack(
    folder: Folder,
    output: Annotated[
        Path,
        typer.Option("--output", help="The new pack; its name ends in .weft."),
    ],
    glossary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Terms that come along, as they are: the pack translates with them. Repeatable.",
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Pairs translated before that come along, as they are: the pack takes them. Repeatable.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Put it in the place of a pack that is there already."
        ),
    ] = False,
) -> None:
    """Put a model into one file, to hand on: without training text and checkpoints."""
    refuse_no_model(folder)
    if glossary or memory:
        option = "--glossary" if glossary else "--memory"
        refuse_other_task(folder, "translation", f"translate: leave out {option}")
    refuse_missing_files(glossary or (), memory or ())
    from weft.folder.model_files import files_of
    from weft.folder.model_folder import config_in

    config: Any = config_in(files_of(folder))
    terms = glossary_for(config, glossary) if glossary else None
    units = units_for(config, memory) if memory else None
    with stages.showing("packing the model"), all_or_nothing(output):
        from weft.ship.contents import contents
        from weft.ship.pack import pack as make

        size = make(folder, output, terms, units, replace)
    remark(f"weft: wrote {output}, {size / 1e6:,.1f} MB: {contents(output)}")
    remark("every verb takes it in the place of the model's folder")


class Form(StrEnum):
    """The forms that `weft export` writes a model in."""

    WEB = "web"
    HUGGINGFACE = "huggingface"
    ONNX = "onnx"
    CTRANSLATE2 = "ctranslate2"
    GGUF = "gguf"
    TRANSFORMERS_JS = "transformers.js"
    ARGOS = "argos"


_OTHER_FORMS = ", ".join(form for form in Form if form is not Form.WEB)


def export(
    target: Annotated[
        Form,
        typer.Option(
            "--to",
            metavar="FORM",
            help=f"web: a page that computes by itself; or the program that opens it: {_OTHER_FORMS}.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", help="The new folder.")],
    folder: FolderOrDemo = None,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text to compare both forms on, not trained on. Default: the run's held-out text."
        ),
    ] = None,
    demo: FromDemo = False,
    precision: Annotated[
        str,
        typer.Option(
            help="The type of the weights: float32; for ctranslate2 also int8, for gguf f16, bf16 or q8_0."
        ),
    ] = "float32",
    license_: Annotated[
        str,
        typer.Option(
            "--license",
            "--licence",
            help="The license of the model, as the card or the page says it, such as cc-by-4.0.",
        ),
    ] = "",
    data_terms: Annotated[
        str,
        typer.Option(help="The terms of the text that it learned from, for the card."),
    ] = "",
    uncertified: Annotated[
        bool,
        typer.Option(
            "--uncertified",
            help="Write without comparing; the card says so. Only what writes the files has to be installed.",
        ),
    ] = False,
    title: Annotated[
        str, typer.Option(help="For web: the title of the page. Default: what it does.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write a model in a form that is used without Weft, and prove that it is the same model."""
    model, texts = _model_and_texts(folder, data or [], demo)
    refuse_no_model(model)
    refuse_missing_text(texts)
    if title and target is not Form.WEB:
        raise UsageError(
            f"--title is that of a page, and --to {target} makes none: leave it out"
        )
    if output.exists():
        raise FolderError(
            f"{output}: exists already; a folder is never written over: give another name"
        )
    with stages.showing("loading the model"), all_or_nothing(output):
        from weft.inspection.browser import refuse_no_browser
        from weft.ship.exporting import export as write
        from weft.ship.licenses import DEMO_TERMS, OF_DEMO
        from weft.ship.target import Asked
        from weft.ship.targets import target_named
        from weft.ship.web.target import Web

        if target is Form.WEB:
            refuse_no_browser(model)
        form = Web(title) if target is Form.WEB else target_named(target.value)
        if demo:
            license_ = license_ or OF_DEMO
            data_terms = data_terms or DEMO_TERMS
        asked = Asked(license_, data_terms, precision, not uncertified)
        builtin = "everyday" if demo and not texts else ""
        made = write(model, form, output, texts, asked, builtin)
    if as_json:
        print_json({**made.to_json(), "folder": str(output)})
        return
    for line in made.lines():
        print(line)
    remark(f"weft: wrote {output}: {made.form}, {made.size / 1e6:.1f} MB")
    if target is Form.WEB:
        for line in _how_opened(output):
            remark(line)
    if not license_:
        remark(
            "weft: note: the card says that no license was stated; --license and --data-terms say them"
        )


def _model_and_texts(
    folder: Path | None, data: list[str], demo: bool
) -> tuple[Path, list[str]]:
    """Return the folder that is exported, and the texts. Raises UsageError without a model.

    With --demo what stands in the folder's place is a text, if it is no folder.
    """
    if folder is None and not demo:
        raise UsageError(
            "weft export needs FOLDER (a model folder), or --demo; see weft export --help"
        )
    if folder is None or not demo:
        return folder or DEMO, data
    if folder.is_dir():
        raise UsageError(
            f"--demo takes the model that comes with Weft: leave out {folder}, or --demo"
        )
    return DEMO, [str(folder), *data]


def _how_opened(output: Path) -> list[str]:
    """Say how a page is opened."""
    from weft.ship.web.page import PAGE

    served = f"python -m http.server --directory {shlex.quote(str(output))}"
    return [
        f"open {output / PAGE} in a browser, or put the folder on any web host",
        f"where the browser lets no file load another: {served}, then http://localhost:8000",
    ]
