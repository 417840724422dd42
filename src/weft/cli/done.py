"""The translations of a document's texts, as they are kept between interruptions."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from weft.cli.doubts import doubts_of
from weft.cli.models import Opened, naming_options
from weft.cli.streams import progress
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.documents.document import Translated
    from weft.documents.writing import Mended
    from weft.predict.memory_use import MemoryUse
    from weft.predict.prediction import Prediction
    from weft.predict.settings import DecodingSettings
    from weft.predict.words import SourceWord

_CHUNK = 128  # texts that an interruption may cost
_FEWEST = 50  # texts for which a bar is shown


@dataclass(frozen=True)
class Done:
    """The translation of a text, as it is kept until all are done.

    `remarks` go into the document, `doubts` to the terminal. The alignment has places as
    `Translated` has them.
    """

    text: str
    score: float | None
    confidence: float | None
    remarks: list[str]
    doubts: list[str]
    unknown_words: list[str]
    unsure: bool
    is_unaligned: bool
    alignment: list[list[int]]
    words: list[dict[str, Any]] | None
    terms: list[dict[str, Any]] | None = None
    memory: list[dict[str, Any]] | None = None
    offers: list[dict[str, Any]] = field(default_factory=list)
    taken: str = ""
    where: str = ""
    stands: dict[str, str] = field(default_factory=dict)
    quality: float | None = None
    omitted: list[dict[str, Any]] | None = None
    doubled: list[str] | None = None

    @property
    def uses(self) -> "list[MemoryUse] | None":
        """Return what a memory has of it."""
        from weft.predict.memory_use import MemoryUse

        if self.memory is None:
            return None
        return [MemoryUse(**use) for use in self.memory]

    def translated(self, languages: tuple[str, str]) -> "Translated":
        """Return it as a document takes it; languages are BCP-47, empty where unknown."""
        from weft.documents.document import Doubt, Translated

        alignment = [(a, b, c, d) for a, b, c, d in self.alignment]
        doubt = Doubt.from_json(asdict(self))
        words = [(word["start"], word["end"]) for word in self.words or ()]
        return Translated(self.text, alignment, doubt, self.stands, languages, words)


@dataclass(frozen=True)
class AllDone:
    """The translations of a document: `of` its texts, and as its segments are written."""

    of: Mapping[str, Done]
    mended: "Sequence[Mended]"


def kept_texts(file: BinaryIO, output: Path, texts: Sequence[str]) -> dict[str, Done]:
    """Read the translations of texts that an interrupted command has left, a line each."""
    file.seek(0)
    try:
        found = [Done(**json.loads(line)) for line in islice(file, len(texts))]
    except (ValueError, TypeError):
        raise UsageError(
            f"{output}.partial: is damaged; remove it, and give the same command again"
        ) from None
    file.seek(0, io.SEEK_END)
    return dict(zip(texts, found, strict=True))


def translate_rest(
    texts: Sequence[str],
    file: BinaryIO,
    done: dict[str, Done],
    settings: "DecodingSettings",
    found: Opened,
) -> None:
    """Translate texts, and keep each translation in `done` and as a line of the file."""
    from weft.predict.settings import DecodingSettings

    with naming_options(DecodingSettings.__dataclass_fields__):
        predictions = found.model.translate_stream(texts, settings, chunk=_CHUNK)
    total = len(done) + len(texts)
    with progress(total, len(done), "texts", _FEWEST) as advance:
        for text, prediction in zip(texts, predictions, strict=True):
            one = _done(text, prediction, settings, found)
            line = json.dumps(asdict(one)) + "\n"
            file.write(line.encode())
            file.flush()
            done[text] = one
            advance()


def _done(
    text: str, prediction: "Prediction", settings: "DecodingSettings", found: Opened
) -> Done:
    from weft.predict.document import for_document

    translated = for_document(text, prediction)
    words = None
    if prediction.words is not None:
        words = [word.to_json() for word in prediction.words]
    terms = None
    if prediction.terms is not None:
        terms = [use.to_json() for use in prediction.terms]
    memory = None
    if prediction.memory is not None:
        memory = [use.to_json() for use in prediction.memory]
    return Done(
        text=translated.text,
        score=prediction.score,
        confidence=translated.doubt.confidence,
        remarks=list(translated.doubt.remarks),
        doubts=doubts_of(prediction, text, found.task.config, settings, is_line=False),
        unknown_words=prediction.unknown_words,
        unsure=prediction.unsure,
        is_unaligned=prediction.is_unaligned,
        alignment=[list(link) for link in translated.alignment],
        words=words,
        terms=terms,
        memory=memory,
        offers=[asdict(offer) for offer in translated.doubt.offers],
        taken=translated.doubt.taken,
        where=translated.doubt.where,
        stands=dict(translated.stands),
        quality=prediction.quality,
        omitted=_as_objects(prediction.omitted),
        doubled=prediction.doubled,
    )


def _as_objects(words: "Sequence[SourceWord] | None") -> list[dict[str, Any]] | None:
    if words is None:
        return None
    return [dict(vars(word)) for word in words]
