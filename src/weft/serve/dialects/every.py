"""The dialects of the server, in the order in which their routes are tried."""

from pathlib import Path

from weft.serve.dialects.classification import classify, predict
from weft.serve.dialects.deepl import deepl
from weft.serve.dialects.dialect import Dialect
from weft.serve.dialects.huggingface import huggingface
from weft.serve.dialects.immersive import immersive
from weft.serve.dialects.libretranslate import libretranslate
from weft.serve.dialects.openai import openai
from weft.serve.dialects.opuscat import opuscat
from weft.serve.dialects.own import own
from weft.serve.dialects.suggestions import Suggestions


def every_dialect(
    suggestions: Path | None = None, needs_key: bool = False
) -> list[Dialect]:
    """Return the dialects. Suggestions are kept where a file is named; `needs_key` is told to
    pages.
    """
    kept = None if suggestions is None else Suggestions(suggestions)
    return [
        own(),
        openai(),
        libretranslate(kept, needs_key),
        deepl(),
        opuscat(),
        classify(),
        predict(),
        immersive(),
        huggingface(),
    ]
