"""The card of an export: its head as the Hub's library reads it, the license, the scores."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index

import random_models
from cards import code_in
from weft.data.glossary import read_glossary
from weft.errors import UsageError
from weft.ship.card import UNCHANGED, card_of
from weft.ship.exporting import export
from weft.ship.head import head
from weft.ship.huggingface.target import HuggingFace
from weft.ship.licenses import KNOWN, License, license_of
from weft.ship.own_card import OwnCard, Score, read_own_card
from weft.ship.pack import pack
from weft.ship.source import open_source
from weft.ship.target import Asked
from weft.ship.targets import TARGETS, target_named
from weft.ship.tokenizers.ids import same
from weft.ship.written import Written

BLEU = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
LOWER = "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0"
OWN = f"""# Translation, de to en

A Transformer.

## Use

    weft translate THIS_FOLDER "A sentence."

## What it is good for

- a draft
- what would help: more text

## Text

- test: 9 pairs from a.tsv

## Scores on test

    BLEU   26.15  {BLEU}
    BLEU   27.25  {LOWER}
    9 sentences, references sha256 2154
    text  data:1|rules:2
    by    precision float32, beam size 5

## Notes

- none
"""
CLASSIFIED = """# Classification

## Scores on test

    accuracy           0.7428
    macro-F1           0.7427  over 2 of 3 labels
    calibration error  0.1182

    label     precision     recall
    accuracy     0.9999     0.7576
"""
FORMS = [form for form in TARGETS if form != "web"]  # a page is no model of the Hub's
# what the Hub calls the program of a form
LIBRARIES = {"huggingface": "transformers", "argos": "argostranslate"}
TEXTS = {"test": {"size": "9 pairs", "files": ["a.tsv"], "signature": "data:0"}}


def exported(place: Path, asked: Asked, own: str = OWN) -> str:
    """The card of an export of a model that has its own card and manifest."""
    folder = random_models.write_folder("en-de", place / "model")
    (folder / "README.md").write_text(own, "utf-8")
    manifest = folder / "manifest.json"
    facts = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**facts, "texts": TEXTS}), "utf-8")
    export(folder, HuggingFace(), place / "out", asked=asked)
    return (place / "out" / "README.md").read_text("utf-8")


def test_the_library_of_the_hub_reads_all_of_the_head(tmp_path: Path) -> None:
    asked = Asked("CC BY 4.0", "texts: nobody's", is_certified=False)
    card = ModelCard(exported(tmp_path, asked), ignore_metadata_errors=False)
    data: Any = card.data
    assert (data.language, data.license) == (["de", "en"], "cc-by-4.0")
    assert (data.library_name, data.pipeline_tag) == ("transformers", "translation")
    assert (data.tags, data.metrics) == (["weft"], ["bleu"])
    plain, lower = data.eval_results
    assert (plain.metric_value, plain.metric_args["signature"]) == (26.15, BLEU)
    assert (lower.metric_value, lower.metric_name) == (27.25, "BLEU in lower case")
    assert plain.metric_args["by"] == "Weft, precision float32, beam size 5"
    assert plain.dataset_name == "9 pairs of a.tsv"
    assert plain.dataset_args == {"signature": "data:1|rules:2"}
    # what the library writes of what it read is what stands there
    again = eval_results_to_model_index(data.model_name, data.eval_results)
    _, text, _ = card.content.split("---\n", maxsplit=2)
    assert yaml.safe_load(text)["model-index"] == again


def test_the_hub_reads_the_head_of_every_form(tmp_path: Path) -> None:
    source = open_source(random_models.write_folder("en-de", tmp_path / "model"))
    written = Written("a form", [], same(source.tokenizers[0]))
    for form in FORMS:
        card = card_of(source, target_named(form), written, None, Asked("mit"))
        data: Any = ModelCard(card, ignore_metadata_errors=False).data
        assert data.library_name == LIBRARIES.get(form, form)
        assert (data.language, data.license) == (["de", "en"], "mit")
        assert (data.tags, data.pipeline_tag) == (["weft"], "translation")


@pytest.mark.parametrize("recipe", ["en-de", "lm-modern", "classify-modern"])
def test_what_a_stranger_copies_is_code_in_every_form(
    recipe: str, tmp_path: Path
) -> None:
    source = open_source(random_models.write_folder(recipe, tmp_path / "model"))
    written = Written("a form", [], same(source.tokenizers[0]))
    for form in FORMS:
        target = target_named(form)
        if target.why_not(source):
            continue
        card = card_of(source, target, written, None, Asked())
        assert "weft-text" in card
        blocks = [code_in(card, kind) for kind in ("python", "bash", "javascript")]
        assert sum(map(len, blocks)) >= 1
        assert card.count("```") == 2 * sum(map(len, blocks))
        assert "\n    from " not in card
        for code in blocks[0]:
            compile(code, form, "exec")
        unchanged = f"{UNCHANGED}\n"
        assert unchanged in blocks[1]
        assert "`THIS_FOLDER` is the folder" in card
        for code in itertools.chain(*blocks):
            assert "THIS_FOLDER" in code or code == unchanged
            assert "{{" not in code
        is_told = "Give it one sentence at a time" in card
        assert is_told == (recipe == "en-de" and form != "argos")
        if form == "argos":
            assert "-d ~/.local/share/argos-translate/packages\n" in card


def test_a_translator_that_has_learned_from_longer_texts_says_how_long(
    tmp_path: Path,
) -> None:
    source = open_source(random_models.write_folder("en-de", tmp_path / "model"))
    longer = source.config.model_copy(update={"single_sentences": False})
    source = replace(source, task=replace(source.task, config=longer))
    written = Written("a form", [], same(source.tokenizers[0]))
    card = card_of(source, HuggingFace(), written, None, Asked())
    assert "a line of at most 25 tokens at a time" in card


def test_what_a_pack_has_along_is_not_dropped_silently(tmp_path: Path) -> None:
    folder = random_models.write_folder("en-de", tmp_path / "model")
    terms = tmp_path / "terms.tsv"
    terms.write_text("Hund\tdog\n", "utf-8")
    pack(folder, tmp_path / "model.weft", read_glossary(terms, "de", "en"))
    asked = Asked(is_certified=False)
    out = tmp_path / "out"
    made = export(tmp_path / "model.weft", HuggingFace(), out, asked=asked)
    (note,) = made.notes
    assert note.startswith("the glossary of the pack does not come along")
    assert f"- {note}\n" in (out / "README.md").read_text("utf-8")


def test_a_precision_that_a_form_has_not_is_refused_with_those_it_has(
    tmp_path: Path,
) -> None:
    has = {
        "gguf": "float32, f16, bf16 and q8_0",
        "ctranslate2": "float32 and int8",
        "onnx": "float32 alone",
    }
    asked = Asked(precision="int4")
    for form, listed in has.items():
        with pytest.raises(
            UsageError, match=f"^--precision int4: .*{form} has {listed}$"
        ):
            export(tmp_path, target_named(form), tmp_path / "out", asked=asked)


def test_a_stranger_reads_first_what_the_model_is_good_for(tmp_path: Path) -> None:
    card = exported(tmp_path, Asked(data_terms="on request", is_certified=False))
    headings = [line for line in card.split("\n") if line.startswith("#")]
    assert headings == [
        "# Translation, de to en",
        "## Use",
        "## What it is good for",
        "## Scores on test",
        "## Terms",
        "## Is it the same model?",
        "## Text",
        "## Notes on the training",
    ]
    assert "what would help" not in card
    assert "weft translate" not in card
    assert "License of the model: none was stated" in card
    assert "learned from: on request" in card
    assert "\nlicense" not in card


def test_a_license_of_ones_own_has_a_name_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "TERMS.txt").write_text("All may read it.\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    asked = Asked("Acme 1.0 TERMS.txt", is_certified=False)
    card = ModelCard(exported(tmp_path, asked), ignore_metadata_errors=False)
    data = card.data.to_dict()
    named = {key: data[key] for key in ("license", "license_name", "license_link")}
    assert [*named.values()] == ["other", "acme-1.0", "LICENSE"]
    assert "[acme-1.0](LICENSE)" in card.text
    copied = tmp_path / "out" / "LICENSE"
    assert copied.read_text("utf-8") == "All may read it.\n"


def test_licenses_are_those_of_the_hub_or_have_a_name_and_an_address() -> None:
    assert license_of("  ") is None
    for stated in ("MIT", "Apache-2.0", "CC BY-NC-SA 4.0"):
        found = license_of(stated)
        assert found is not None
        assert found.id == "-".join(stated.lower().split())
        assert found.id in KNOWN
    own = license_of("Mine-1.0 https://example.org/mine")
    assert own == License("other", "mine-1.0", "https://example.org/mine")


def test_a_license_that_the_hub_does_not_know_is_refused_with_the_nearest(
    tmp_path: Path,
) -> None:
    wrong = {
        "gpl3": "near: gpl, lgpl, gpl-3.0",
        "GPL-3.0-or-later": r"gpl-3\.0",
        "proprietary": r'"NAME https://\.\.\."',
        "mine missing.txt": "there is no file missing.txt",
        "mine missing": "knows no such license",
        "other": "knows no such license",
        "mit https://example.org": "leave out https://example.org",
        "a/b https://example.org": "letters, digits",
    }
    for stated, said in wrong.items():
        with pytest.raises(UsageError, match=said):
            license_of(stated)
    # before anything is loaded or written
    with pytest.raises(UsageError, match="knows no such license"):
        export(tmp_path, HuggingFace(), tmp_path / "out", asked=Asked("gpl3"))


def test_scores_of_labels_are_no_scores_of_the_model(tmp_path: Path) -> None:
    folder = random_models.write_folder("classify-modern", tmp_path / "model")
    (folder / "README.md").write_text(CLASSIFIED, "utf-8")
    card = read_own_card(folder, "classification")
    assert list(card.scores()) == [
        Score("accuracy", 0.7428),
        Score("macro-F1", 0.7427, "over 2 of 3 labels"),
    ]
    assert (card.scored_by, card.scored_text) == ("", "")


def test_what_is_not_known_is_not_in_the_head() -> None:
    config = random_models.tiny_task("lm-modern").config
    unknown = config.model_copy(update={"lang": "und"})
    card = OwnCard("Language model", "", {})
    found = yaml.safe_load(head(unknown, {}, card, Asked(), "weft").split("---\n")[1])
    assert found == {
        "library_name": "weft",
        "pipeline_tag": "text-generation",
        "tags": ["weft"],
    }


def test_a_code_that_is_no_code_of_iso_639_stands_beside_one() -> None:
    config = random_models.tiny_task("en-de").config
    norwegian = config.model_copy(update={"src_lang": "no", "tgt_lang": "zh-Hant"})
    card = OwnCard("Translation", "", {})
    found = yaml.safe_load(head(norwegian, {}, card, Asked(), "weft").split("---\n")[1])
    assert found["language"] == ["no", "zh"]
    assert found["language_bcp47"] == ["no", "zh-Hant"]
