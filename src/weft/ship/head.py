"""The head of a card that the Hugging Face Hub reads: YAML between two lines of dashes.

Source: the Hub's specification of it, `modelcard.md` of huggingface/hub-docs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from weft.data.languages import UNKNOWN
from weft.folder.durable import MANIFEST
from weft.folder.model_files import files_of
from weft.folder.model_folder import (
    ClassificationConfig,
    FolderConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.ship.licenses import license_of
from weft.ship.own_card import OwnCard, read_own_card
from weft.ship.source import Source
from weft.ship.target import Asked

_PIPELINES = {
    "translation": "translation",
    "language-modelling": "text-generation",
    "classification": "text-classification",
}
# the Hub's name of a score, by Weft's
_METRICS = {
    "BLEU": "bleu",
    "chrF": "chrf",
    "accuracy": "accuracy",
    "macro-F1": "f1",
    "micro-F1": "f1",
    "perplexity": "perplexity",
    "bits per byte": "bits_per_byte",
}
# a text that YAML takes for a text without quotation marks, unless it is one of the words below
_PLAIN = re.compile(r"[a-z][a-z0-9_.+-]*")
_NO_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


def head_of(source: Source, asked: Asked, library: str) -> str:
    """Return the head of a model in another form, which a library opens."""
    card = read_own_card(source.folder, source.task.name)
    facts = files_of(source.folder).json(MANIFEST)
    return head(source.config, facts, card, asked, library)


def head(
    config: FolderConfig,
    manifest: Mapping[str, Any],
    card: OwnCard,
    asked: Asked,
    library: str,
) -> str:
    """Return the head: languages, license, library, task, and the scores on test, as far as they
    are known.
    """
    task = _PIPELINES[config.task]
    facts: dict[str, Any] = {
        **_languages(config),
        **_license(asked),
        "library_name": library,
        "pipeline_tag": task,
        "tags": ["weft"],
        **_scores(task, manifest, card),
    }
    return "\n".join(["---", *_yaml(facts), "---", "", ""])


def _languages(config: FolderConfig) -> dict[str, Any]:
    """Return the languages by codes of ISO 639, and where these have more parts, also as they
    are.
    """
    if isinstance(config, TranslationConfig):
        codes = [config.src_lang, config.tgt_lang]
    else:
        assert isinstance(config, LanguageConfig | ClassificationConfig)
        codes = [config.lang or UNKNOWN]
    codes = [code for code in codes if code != UNKNOWN]
    languages = [code.partition("-")[0].lower() for code in codes]
    found = {}
    if languages:
        found["language"] = list(dict.fromkeys(languages))
    if languages != codes:
        found["language_bcp47"] = codes
    return found


def _license(asked: Asked) -> dict[str, Any]:
    license = license_of(asked.license)
    if license is None:
        return {}
    if not license.name:
        return {"license": license.id}
    return {
        "license": license.id,
        "license_name": license.name,
        "license_link": license.link,
    }


def _scores(task: str, manifest: Mapping[str, Any], card: OwnCard) -> dict[str, Any]:
    """Return the scores on test; nothing where the card has none, or the text is not known."""
    text = manifest.get("texts", {}).get("test")
    scores = list(card.scores())
    if not text or not scores:
        return {}
    metrics = []
    for score in scores:
        args = {
            "signature": score.about,
            "by": card.scored_by and f"Weft, {card.scored_by}",
        }
        known = {key: value for key, value in args.items() if value}
        metric = {
            "type": _METRICS[score.name],
            "value": score.value,
            "name": _name_of(score.name, score.about),
        }
        metrics.append({**metric, "args": known} if known else metric)
    signature = card.scored_text or text.get("signature", "")
    dataset = {
        "type": "text",
        "name": f"{text['size']} of {', '.join(text['files'])}",
        "split": "test",
        "args": {"signature": signature},
    }
    result = {"task": {"type": task}, "dataset": dataset, "metrics": metrics}
    kinds = [metric["type"] for metric in metrics]
    return {
        "metrics": list(dict.fromkeys(kinds)),
        "model-index": [{"name": card.title, "results": [result]}],
    }


def _name_of(name: str, signature: str) -> str:
    return f"{name} in lower case" if "case:lc" in signature else name


def _yaml(value: Mapping[str, Any] | list[Any], margin: str = "") -> Iterator[str]:
    """Yield the lines of an object or a list."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if isinstance(part, Mapping | list):
                yield f"{margin}{key}:"
                yield from _yaml(part, f"{margin}  ")
            else:
                yield f"{margin}{key}: {_scalar(part)}"
        return
    for part in value:
        if isinstance(part, Mapping | list):
            first, *rest = _yaml(part, f"{margin}  ")
            yield f"{margin}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{margin}- {_scalar(part)}"


def _scalar(value: Any) -> str:
    """Return a text or a number as YAML has it: as JSON, or plain where it is a text all the
    same.
    """
    is_text = isinstance(value, str)
    if is_text and _PLAIN.fullmatch(value) and value not in _NO_TEXT:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
