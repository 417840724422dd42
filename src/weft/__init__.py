"""Weft turns a person's own text into their own Transformer.

    import weft
    weft.train(recipe="en-de", train="train.en,train.de", out="runs/en-de")
    model = weft.load("runs/en-de")
    model.translate(["I want a beer."])[0].text
    model.inspect("I want a beer.")
    weft.plot("history", "runs/en-de")

Names are loaded when they are first used, so that `import weft` and `weft --help` are quick.
"""

import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.console import stages

if TYPE_CHECKING:
    from weft.data.train_text import TrainText
    from weft.inspection.comparison import Comparison
    from weft.inspection.diagnosis.findings import Diagnosis
    from weft.inspection.drawn import Picture
    from weft.inspection.inspected import Inspection, Inspections
    from weft.looking import (
        compare,
        diagnose,
        inspect_checkpoints,
        inspect_models,
        plot,
    )
    from weft.predict.classifier import Classification, Classifier
    from weft.predict.completion import Completion
    from weft.predict.generation import Generation, GenerationSettings
    from weft.predict.language_model import LanguageModel, TextScore
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings
    from weft.run.record import Verdict

DEMO = Path(__file__).with_name("demo")
"""The folder of the model that comes with Weft, English to Chinese: made by tools/demo_model.py."""

__all__ = [
    "DEMO",
    "Classification",
    "Classifier",
    "Comparison",
    "Completion",
    "DecodingSettings",
    "Diagnosis",
    "Generation",
    "GenerationSettings",
    "Inspection",
    "Inspections",
    "LanguageModel",
    "Picture",
    "Prediction",
    "TextScore",
    "TrainText",
    "Translator",
    "Verdict",
    "WeftError",
    "__version__",
    "compare",
    "diagnose",
    "finish",
    "inspect_checkpoints",
    "inspect_models",
    "load",
    "plot",
    "train",
]

_LAZY = {
    "Classification": "weft.predict.classifier",
    "Classifier": "weft.predict.classifier",
    "Comparison": "weft.inspection.comparison",
    "Completion": "weft.predict.completion",
    "DecodingSettings": "weft.predict.settings",
    "Diagnosis": "weft.inspection.diagnosis.findings",
    "Generation": "weft.predict.generation",
    "GenerationSettings": "weft.predict.generation",
    "Inspection": "weft.inspection.inspected",
    "Inspections": "weft.inspection.inspected",
    "LanguageModel": "weft.predict.language_model",
    "Picture": "weft.inspection.drawn",
    "Prediction": "weft.predict.prediction",
    "TextScore": "weft.predict.language_model",
    "TrainText": "weft.data.train_text",
    "Translator": "weft.predict.translator",
    "Verdict": "weft.run.record",
    "WeftError": "weft.errors",
    "compare": "weft.looking",
    "diagnose": "weft.looking",
    "inspect_checkpoints": "weft.looking",
    "inspect_models": "weft.looking",
    "plot": "weft.looking",
}


def load(folder: str | Path, precision: str = "float32", kernels: str = "auto") -> Any:
    """Load a model: a Translator, LanguageModel or Classifier. `folder` is what `weft train` wrote,
    or a pack of it (`weft pack`), whose glossary and translation memory, if it has them, a
    Translator then has, too.

    `precision` is that of matrix products: "float32" (int8 in an int8 folder), "bfloat16",
    "float16" (on a GPU only), or "auto" for the fastest. A classifier computes in float32, and so
    does a model without an engine on this machine.

    `kernels="torch"` runs the PyTorch code of `weft.model` in place of an engine: slower, but a
    debugger can step through it.

    Raises weft.errors.FolderError where the folder is missing, damaged, unfinished or not Weft's,
    UsageError for a precision that the machine does not have.
    """
    from weft.looking import inspect_task
    from weft.tasks.opening import load_task, predictor_of

    task = load_task(Path(folder), precision, kernels)
    model = predictor_of(task, Path(folder))
    if task.name == "translation":
        from weft.tasks.packed import with_packed

        model = with_packed(model, Path(folder))
    model.look_inside = partial(inspect_task, task)
    return model


def train(
    *,
    out: str | Path,
    recipe: str | None = None,
    train: "str | TrainText | Sequence[str | TrainText]" = (),
    dev: str | None = None,
    test: str | None = None,
    glossary: str | None = None,
    mono: Sequence[str] = (),
    rounds: int = 1,
    sample: bool = False,
    denoise: bool = False,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    fresh: bool = False,
    allow_data_change: bool = False,
    allow_bad_data: bool = False,
    quiet: bool = False,
    minutes: float | None = None,
) -> "Verdict":
    """Train as `weft train` does, and write a model folder to `out`.

    The same call continues a run that was stopped.

    `recipe` is a packaged recipe's name or a TOML file, `settings` are "section.key=value" strings,
    `train`, `dev`, `test` and `glossary` name files as on the command line, `train` also with
    weights and tags (`news.tsv@2`, or a `TrainText`); `fresh`, `allow_data_change` and
    `allow_bad_data` are its flags. `mono` has texts in one language of the pairs (`yo=news.txt`),
    which `rounds`, `sample` and `denoise` are about. The run, or all of its steps, ends within
    `minutes`. Raises weft.errors.WeftError, by kind.
    """
    from weft.packages import require_torch

    began = time.monotonic()
    require_torch("training")
    with stages.showing("loading PyTorch", quiet):
        from weft.data.train_text import parse_texts
        from weft.run.request import Request
        from weft.run.train import train as run_training

        request = Request.by_name(
            recipe,
            settings,
            out=Path(out),
            train=parse_texts(train),
            dev=dev,
            test=test,
            glossary=glossary,
            start_from=None if start_from is None else Path(start_from),
            fresh=fresh,
            allow_data_change=allow_data_change,
            allow_bad_data=allow_bad_data,
            minutes=minutes,
            began=began,
        )
        if not mono:
            return run_training(request, quiet=quiet)
        from weft.data.train_text import MonoText
        from weft.run.course.course import train_in_steps
        from weft.run.course.material import MonoUse

        texts = tuple(map(MonoText.parse, mono))
        use = MonoUse(texts, rounds, sample, denoise)
        return train_in_steps(request, use, quiet=quiet)


def finish(folder: str | Path, *, quiet: bool = False) -> "Verdict":
    """Make a model of what the unfinished run in `folder` has saved, as `weft finish` does.

    The run can still be continued afterwards. Raises weft.errors.WeftError, by kind.
    """
    from weft.packages import require_torch

    require_torch("weft.finish")
    from weft.run.finishing import finish as finish_run

    return finish_run(Path(folder), quiet=quiet)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("weft.folder.version").installed_version()
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
