"""The page of weft translate --review, filled with what was translated; and given translations."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.models import Opened
from weft.cli.named_files import refuse_missing
from weft.cli.streams import CHUNK, look_at_kind, refuse_no_file
from weft.console.wording import remark
from weft.data.plain_lines import lines
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.inspection.review import Review, Reviewed
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings
    from weft.predict.translator import Translator


def open_review(
    path: Path, source: Path | None, output: Path | None, found: Opened
) -> "Review":
    """Begin a page on the translation of a source. Raises UsageError for a name that is none, or
    that another file has.
    """
    from weft.inspection.review import Review, refuse_review

    refuse_review(path, [source, output])
    refuse_no_file(path)
    title = source.name if source is not None else "texts"
    config = found.task.config
    is_learned = found.model.doubts.quality is not None
    return Review(path, title, (config.src_lang, config.tgt_lang), is_learned)


def close_review(review: "Review") -> None:
    """Write the page, and say so."""
    review.write()
    translations = "translations" if len(review.rows) != 1 else "translation"
    counted = f"{len(review.rows):,} {translations} side by side"
    remark(f"weft: {review.path}: {counted}; a browser opens it")


def reviewed(
    place: str, text: str, prediction: "Prediction", doubts: Sequence[str]
) -> "Reviewed":
    """Return a translated text as the page shows it."""
    from weft.inspection.review import Reviewed
    from weft.predict.document import confidence_of

    facts = prediction.to_json()
    return Reviewed(
        place,
        text,
        prediction.text,
        confidence_of(prediction),
        [*doubts, *of_whole(prediction.unsure, prediction.unknown_words)],
        facts.get("words") or (),
        facts.get("omitted") or (),
        prediction.unknown_words,
        facts.get("terms") or (),
        facts.get("memory") or (),
    )


def of_whole(is_unsure: bool, unknown_words: Sequence[str]) -> Iterator[str]:
    """Yield what the terminal counts at its end, but a row says for itself."""
    if is_unsure:
        yield "unsure: the model is less sure than usual"
    if unknown_words:
        yield f"never seen in training: {', '.join(unknown_words)}"


def given_lines(path: Path, count: int | None) -> list[str]:
    """Read translations, one for each of so many texts.

    Raises UsageError where there are more or fewer, DataError for what is no text.
    """
    refuse_missing(path, "--given")
    with path.open("rb") as stream:
        look_at_kind(stream, path)
        found = [line for _, line in lines(stream, path)]
    if count is not None and len(found) != count:
        raise UsageError(
            f"--given {path}: has {len(found):,} lines for {count:,} texts; give one for each"
        )
    return found


def score_stream(
    model: "Translator",
    texts: Iterator[str],
    translations: Sequence[str],
    settings: "DecodingSettings",
) -> Iterator["Prediction"]:
    """Yield what the model thinks of given translations."""
    rest = iter(translations)
    while some := list(islice(texts, CHUNK)):
        yield from model.score(some, list(islice(rest, len(some))), settings)


def judged_line(prediction: "Prediction", doubts: Sequence[str]) -> str:
    """Return a line on a given translation: a probability, and its doubts in a word each."""
    from weft.predict.document import confidence_of

    confidence = confidence_of(prediction)
    names = dict.fromkeys(doubt.partition(":")[0] for doubt in doubts)
    if prediction.unsure:
        names["unsure"] = None
    share = "" if confidence is None else f"{confidence:.4f}"
    return f"{share}\t{'; '.join(names)}\n"
