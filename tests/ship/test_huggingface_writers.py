"""Language models as classes of transformers: the same model, and the same text."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import random_models
import weft
from cards import code_in
from homes import LAST, LEARNED, LLAMA, UNBIASED
from homes import WRITERS as CASES
from weft.errors import UsageError
from weft.ship.exporting import export
from weft.ship.huggingface.opened import OpenedByTransformers
from weft.ship.huggingface.target import HuggingFace
from weft.ship.target import Asked

TEXTS = ("Grüße aus Köln: 12 °C, naïve café…", "A small dog runs across the meadow.")
UNPROVED = Asked(is_certified=False)
REFUSED = {
    "its n-grams": (
        ("tiny-shakespeare",),
        r"Starcoder2ForCausalLM, .* model\.ngrams = 1, not 5; .* model\.match_lengths = \[\], not \[3, 6\]",
    ),
    "biases of the output": (
        LAST,
        r"MarianForCausalLM, .* model\.projection_bias = false",
    ),
    "positions": (
        ("lm-modern", LEARNED),
        r'Qwen3ForCausalLM, .* model\.positions = "rotary", not "learned"',
    ),
    "heads of another width": (
        (*LAST, UNBIASED, "model.head_dim=6"),
        r"MarianForCausalLM, .* model\.head_dim = model\.d_model / model\.num_heads",
    ),
}


def exported(place: Path, name: str, *settings: str, asked: Any = None) -> Any:
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = place / "dev.txt"
    dev.write_text("\n\n".join(TEXTS), "utf-8")
    return export(folder, HuggingFace(), place / "out", [str(dev)], asked)


def opened(place: Path) -> OpenedByTransformers:
    return OpenedByTransformers(place / "out", "AutoModelForCausalLM")


# what differs little from one above is tried by the long tests
VARIANTS = ("Llama with geglu", "GPT-2 without biases", "a norm of embeddings, tied")
LONG = dict.fromkeys(VARIANTS, pytest.mark.long)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=LONG.get(case, ())) for case in CASES]
)
def test_a_language_model_is_the_same_in_its_class(case: str, tmp_path: Path) -> None:
    home, name, *settings = CASES[case]
    made = exported(tmp_path, name, *settings)
    assert made.form.startswith(home)
    checks = {check.name: check for check in made.certificate.checks}
    assert [*checks] == ["weights", "ids", "logits", "greedy", "use"]
    assert checks["logits"].largest < 5e-5
    # by the library's pipeline, and `weft generate`
    if name != "tiny-shakespeare":
        assert checks["use"].equal == checks["use"].compared == len(TEXTS)


def test_no_array_of_a_class_is_left_to_chance(tmp_path: Path) -> None:
    """Marian's layers have arrays that are never used, which must be there."""
    made = exported(tmp_path, *LAST, UNBIASED, asked=UNPROVED)
    assert "one at a time" in made.notes[1]
    transformers = pytest.importorskip("transformers")
    _, found = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not found["unexpected_keys"]
    assert not found["missing_keys"]


def test_what_is_multiplied_and_has_no_copy_is_found_to_its_last_bit(
    tmp_path: Path,
) -> None:
    """Without ties no other array has the table: sqrt(32) is no power of two, 8 is one."""
    untied = ("model.scale_embeddings=true", "model.tie_embeddings=false")
    made = exported(tmp_path / "32", *LLAMA, *untied)
    assert "sqrt(d_model)" in made.certificate.checks[0].about
    made = exported(tmp_path / "64", *LLAMA, *untied, "model.d_model=64")
    assert made.certificate.checks[0].about.endswith(" among them")


@pytest.mark.parametrize("packing", ["packed", "stream"])
def test_generation_begins_as_in_weft_and_stays_in_the_window(
    packing: str, tmp_path: Path
) -> None:
    made = exported(
        tmp_path,
        "lm-modern",
        f'batches.packing="{packing}"',
        "batches.window_len=16",
        "decoding.max_new_tokens=40",
        "decoding.top_k=7",
        "decoding.min_p=0.1",
        asked=UNPROVED,
    )
    told = json.loads((tmp_path / "out" / "generation_config.json").read_text("utf-8"))
    start = {"packed": 2, "stream": 3}[packing]
    assert told["bos_token_id"] == start
    assert opened(tmp_path).encode("A dog")[0] == start
    # with a beginning of the other half the window is full
    assert told["max_new_tokens"] == 8
    assert "max_length" not in told
    assert told["do_sample"]
    assert (told["temperature"], told["top_k"], told["top_p"]) == (0.8, 7, 1.0)
    assert told["min_p"] == 0.1
    assert told["suppress_tokens"] == [0, 1, 2]
    assert "windows of 16 tokens" in made.notes[0]


def test_a_greedy_recipe_is_greedy_in_the_pipeline_as_it_comes(tmp_path: Path) -> None:
    exported(tmp_path, "lm-modern", "decoding.temperature=0", asked=UNPROVED)
    transformers = pytest.importorskip("transformers")
    write = transformers.pipeline("text-generation", str(tmp_path / "out"))
    own = weft.load(tmp_path / "model")
    for text in ("A small dog", "Ein"):
        (found,) = write(text)
        assert found["generated_text"] == text + own.generate(text).text


@pytest.mark.parametrize("more", ["", ", max_new_tokens=9"])
def test_the_lines_of_the_card_run_without_a_warning(
    more: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exported(tmp_path, "lm-modern", asked=UNPROVED)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    (code,) = code_in(card, "python", str(tmp_path / "out"))
    transformers = pytest.importorskip("transformers")
    said: list[str] = []
    for name in ("generation.utils", "pipelines.text_generation", "pipelines.base"):
        logger = transformers.utils.logging.get_logger(f"transformers.{name}")
        monkeypatch.setattr(logger, "warning", lambda text, *_: said.append(text))
    with warnings.catch_warnings(action="error"):
        exec(code.replace('"A beginning"', f'"A beginning"{more}'), {})
    assert capsys.readouterr().out.startswith("A beginning")
    assert said == []


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_home_is_refused_with_what_has(what: str, tmp_path: Path) -> None:
    case, reason = REFUSED[what]
    with pytest.raises(UsageError, match=reason):
        exported(tmp_path, *case)
    assert not (tmp_path / "out").exists()
