"""Pages in a browser; and a tiny translator with random weights, far enough from zero that every
head looks somewhere else.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from weft.config import TranslationRecipe
from weft.data.corpus import fingerprint, from_pairs
from weft.data.texts import Texts
from weft.data.tokenizer import build_tokenizers
from weft.inspection.look import Inspection
from weft.inspection.report import write_report
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.kernels.machine import Machine
from weft.tasks.trainable_translation import TrainableTranslation

SRC = [
    "Ich möchte eine Tasse Tee .",
    "Wir gehen nach Hause .",
    "Der Tee ist heiß .",
] * 4
TGT = ["我想要一杯茶。", "我们回家。", "茶很热。"] * 4


@pytest.fixture(scope="package")
def task() -> TrainableTranslation:
    recipe = TranslationRecipe.model_validate(
        {
            "tokenizer": {
                "joint": False,
                "src": {"kind": "bpe", "vocab_size": 310},
                "tgt": {"kind": "character"},
            },
            "model": {
                "d_model": 22,
                "d_ff": 29,
                "num_heads": 3,
                "head_dim": 5,
                "num_encoder_layers": 2,
                "num_decoder_layers": 4,
                "dropout": 0.5,
                "tie_embeddings": False,
            },
            "data": {"max_len": 200, "src_lang": "de", "tgt_lang": "zh"},
            "decoding": {"beam_size": 3, "max_len_extra": 2, "max_len_ratio": 0.5},
        }
    )
    tokenizers = build_tokenizers(recipe.tokenizer, SRC, TGT)
    text = from_pairs(zip(SRC, TGT, strict=True), "text", "de", "zh")
    texts = Texts(text, None, None, "pairs", fingerprint)
    task = TrainableTranslation.build(
        recipe, texts, tokenizers, Machine("cpu", "float32", 1, "tests are small")
    )
    with torch.no_grad():
        generator = torch.Generator().manual_seed(5)
        for parameter in task.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    task.model.eval()
    return task


@pytest.fixture(scope="package")
def inspection(task: TrainableTranslation) -> TranslationInspection:
    return inspect_translation(task, "Ich möchte eine Tasse Tee .")


@pytest.fixture(scope="module", params=["additive", "dot"])
def recurrent(request: pytest.FixtureRequest) -> TranslationInspection:
    model = {
        "kind": "recurrent",
        "attention": request.param,
        "d_model": 10,
        "d_hidden": 7,
        "num_decoder_layers": 2,
    }
    recipe = TranslationRecipe.model_validate(
        {"model": model, "data": {"src_lang": "de", "tgt_lang": "en"}}
    )
    texts = Texts(
        from_pairs([("ein Haus", "a house")] * 3, "text", "de", "en"),
        None,
        None,
        "pairs",
        fingerprint,
    )
    tokenizers = TrainableTranslation.learn_tokenizers(recipe, texts)
    task = TrainableTranslation.build(
        recipe, texts, tokenizers, Machine("cpu", "float32", 1, "tests are small")
    )
    found = inspect_translation(task, "ein Haus", beam_size=1)
    assert found.family == found.to_json()["family"] == request.param
    return found


# what is out of sight follows a choice at once, too
TOGETHER = """() => {
    const own = go;
    globalThis.go = changes => { own(changes); followAll(); };
}"""


@pytest.fixture
def open_page(
    browser: Any, watch: Callable[..., None], tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Write an inspection and open it; at the end nothing may have gone wrong or been asked for."""
    contexts = []

    def opened(inspection: Inspection, width: int = 1280, scheme: str = "light") -> Any:
        write_report(inspection, tmp_path / "page.html")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        address = (tmp_path / "page.html").as_uri()
        watch(page, address)
        page.goto(address)
        page.wait_for_selector("#rail a", state="attached")  # it unpacks itself first
        # what is out of sight is laid out as well, so that its text can be read at once
        far = "document.documentElement.style.setProperty('--far', 'visible')"
        page.evaluate(far)
        page.evaluate("drawAll()")
        page.evaluate(TOGETHER)
        return page

    yield opened
    for context in contexts:
        context.close()


class Unseen:
    """Insides, map and lexicon of a model that nobody looked into."""

    def to_data(self) -> dict[str, Any]:
        return {}


@pytest.fixture(scope="package")
def unseen() -> dict[str, Any]:
    """The same, for inspections that are made up."""
    return dict.fromkeys(("insides", "model", "lexicon"), Unseen())
