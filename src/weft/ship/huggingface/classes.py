"""The classes of transformers that models of Weft fit, and the choice among them."""

from weft.ship.huggingface.bart_decoders import OPT, MarianDecoder
from weft.ship.huggingface.bart_family import Blenderbot, Marian, Pegasus
from weft.ship.huggingface.bert_family import BERT, BertGeneration, MegatronBERT
from weft.ship.huggingface.gpt2 import GPT2
from weft.ship.huggingface.home import Home
from weft.ship.huggingface.rotary import (
    GLM4,
    Arcee,
    Llama,
    Qwen3,
    StableLM,
    Starcoder2,
)
from weft.ship.huggingface.t5gemma import T5Gemma
from weft.ship.huggingface.ultrabert import UltraBERT
from weft.ship.source import Source
from weft.ship.tokenizing import why_no_tokenizer

# those of each task in the order in which they are tried
HOMES: tuple[Home, ...] = (
    Blenderbot(),
    Pegasus(),
    Marian(),
    T5Gemma(),
    Qwen3(),
    Llama(),
    Arcee(),
    Starcoder2(),
    StableLM(),
    GLM4(),
    GPT2(),
    MarianDecoder(),
    OPT(),
    BertGeneration(),
    UltraBERT(),
    BERT(),
    MegatronBERT(),
)


def home_of(source: Source) -> Home | None:
    """Return the first class that computes a model; None where none does."""
    for home in _homes_for(source):
        if not list(home.reasons(source)):
            return home
    return None


def why_no_home(source: Source) -> str:
    """Say why no class computes a model, by the one that lacks least, and what of its tokenizer no
    file has; "" where all has a home.
    """
    reasons = [_no_class(source), why_no_tokenizer(source)]
    return "; ".join(filter(None, reasons))


def _no_class(source: Source) -> str:
    reasons = {home: list(home.reasons(source)) for home in _homes_for(source)}
    nearest = min(reasons, key=lambda home: len(reasons[home]))
    found = "; ".join(reasons[nearest])
    return found and f"the nearest class is {nearest.architecture}, but {found}"


def _homes_for(source: Source) -> list[Home]:
    """Return the classes for the model's task."""
    return [home for home in HOMES if home.task == source.task.name]
