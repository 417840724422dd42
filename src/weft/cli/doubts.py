"""The doubts about a translation that a verb prints, each with what may help."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.config import DecodingSection
    from weft.folder.model_folder import TranslationConfig
    from weft.predict.memory_use import MemoryUse
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings


def doubts_of(
    prediction: "Prediction",
    text: str,
    config: "TranslationConfig",
    settings: "DecodingSettings",
    is_line: bool = True,
) -> list[str]:
    """Return the doubts about a translation of `text`, with what may help: of the options only
    those that the settings allow. A text is a line, or else a segment of a document.
    """
    from weft.predict.prediction import HOW_TO_CHANGE, HOW_TO_READ_ALL
    from weft.predict.text import looks_like_sentence

    doubts = []
    if prediction.source_cut:
        doubts.append(
            "truncated: a sentence is longer than the model reads, and its end was not translated; "
            f"{HOW_TO_READ_ALL[config.limiting_key]}"
        )
    if prediction.output_limit is not None and prediction.repetition:
        doubts.append("truncated: the translation was cut, as it repeats itself")
    elif prediction.output_limit is not None:
        remedy = HOW_TO_CHANGE[prediction.output_limit]
        doubts.append(
            f"truncated: the translation came to no end and was cut at its limit; {remedy}"
        )
    if prediction.repetition:
        again = "repetition: it says the same again and again"
        if not looks_like_sentence(text):
            again += "; its input is no sentence"
        elif not settings.exhaustive:
            again += "; --no-repeat-ngrams 3 forbids that"
        doubts.append(again)
    doubts += _of_what_is_missing(prediction, text, config, settings, is_line)
    doubts += _of_phrases(prediction)
    if is_line and prediction.numbers:
        doubts.append(f"numbers: {prediction.numbers}")
    doubts += [
        f"term {use.source} ({use.where}): {use.status}; {use.reason}"
        for use in prediction.terms or ()
        if use.reason
    ]
    doubts += _of_memory(prediction)
    if 0 < len(prediction.n_best) < settings.n_best and not prediction.is_taken:
        fewer = (
            f"fewer: only {len(prediction.n_best)} different of the {settings.n_best} "
            "translations asked for"
        )
        if settings.mbr is not None:
            fewer += "; more samples (--mbr) or a higher --temperature may give more"
        elif settings.exhaustive:
            fewer += "; a larger --exhaustive may give more"
        doubts.append(fewer)
    return doubts


def near_matches(uses: "Sequence[MemoryUse] | None") -> list[str]:
    """Return what a memory offers: the nearest unit of the text, and of each of its sentences."""
    nearest: dict[int, str] = {}
    for use in uses or ():
        if not use.taken:
            found = f"near ({use.score:.0%}): {use.where} has {use.source!r}: {use.target!r}"
            nearest.setdefault(use.start, found)
    return list(nearest.values())


def _of_memory(prediction: "Prediction") -> list[str]:
    """Return the doubts about units that were taken with other numbers."""
    return [
        f"memory: {use.where} has {use.source!r}; its translation is taken with the numbers of this text"
        for use in prediction.memory or ()
        if use.kind == "repaired" and use.taken
    ]


def _of_phrases(prediction: "Prediction") -> list[str]:
    """Return the doubts about what was left out, and about what is said twice."""
    from weft.predict.document import in_words

    doubts = []
    if prediction.omitted:
        said = in_words(prediction.omitted)
        doubts.append(f"omission: nothing seems to be written from: {said}")
    if not prediction.repetition:
        twice = [f"doubled: it says twice: {one}" for one in prediction.doubled or ()]
        doubts += twice
    return doubts


def _of_what_is_missing(
    prediction: "Prediction",
    text: str,
    config: "TranslationConfig",
    settings: "DecodingSettings",
    is_line: bool,
) -> list[str]:
    """Return the doubt about a translation in which something is missing, or all; else none."""
    if text.strip() and not prediction.text.strip():
        remedy = _how_to_get_text(config.decoding, settings)
        return [f"empty: the model answers nothing; {remedy}"]
    if prediction.empty:
        remedy = _how_to_get_text(config.decoding, settings)
        return [
            f"empty: the model answers nothing to one of its sentences, which is missing; {remedy}"
        ]
    if not prediction.short:
        return []
    short = (
        "short: far fewer tokens for its source than nearly all translations have in training; about half "
        "or more may be missing"
    )
    if is_line:
        short += "; if the text is several sentences, give each on a line of its own"
    return [short]


def _how_to_get_text(recipe: "DecodingSection", settings: "DecodingSettings") -> str:
    """Say what may give text where a translation is empty."""
    more = "more training or more text like this may give text"
    if settings.sampling is not None:
        is_drawn = settings.sampling.temperature > 0
        return f"another --seed, {more}" if is_drawn else more
    if settings.exhaustive:
        return f"a larger --length-penalty, {more}"
    if settings.beams(recipe).beam_size == 1:
        return more
    return f"--beam-size 1, a larger --length-penalty, {more}"
