"""The service that all dialects speak to: every model, whatever the shape of a request."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from weft.data.languages import UNKNOWN
from weft.decoding.decoder import Hypothesis
from weft.errors import UsageError
from weft.inspection.look import inspection_data, refuse_parts
from weft.inspection.tokens import USUAL
from weft.predict.completion import Completion
from weft.predict.prediction import Prediction
from weft.predict.rows import Planned, Resolved
from weft.predict.segments import SourceRow
from weft.predict.settings import DecodingSettings
from weft.predict.text import one_line
from weft.predict.translator import Translator
from weft.predict.writing import Order
from weft.serve.catalogue import Catalogue, ServedModel, reopened, when_written
from weft.serve.glossaries import NONE as NO_TERMS
from weft.serve.glossaries import USUAL as USUAL_TERMS
from weft.serve.glossaries import Binding, Glossaries
from weft.serve.jobs import Caller, Job
from weft.serve.limits import Limits
from weft.serve.pool import Pool, note_turn
from weft.serve.refusals import (
    InvalidRequest,
    TooLarge,
    TooLate,
    Undetected,
    UnknownModel,
    UnknownPair,
)
from weft.serve.running import as_refusal
from weft.serve.searching import Searcher
from weft.serve.visits import charge, current_visit
from weft.serve.writing import Part, TextWriter, WrittenText

__all__ = ["Caller", "Service", "Translated", "refuse_undetected"]

T = TypeVar("T")

TWO_MODELS = "a glossary is for one model, and two translate between these languages; leave it out"
# the least confidence with which a text among several speaks for itself
SURE = 0.5
# characters that are cut into tokens and put together again between two requests, at once
_SHORT = 2000
# looks, a second apart, after which a folder that is not there is said to be gone
_LOOKS = 3
_LOG = logging.getLogger("weft.serve")


@dataclass(frozen=True)
class Translated:
    """A translation, and from what language: `confidence` is None where that was said."""

    prediction: Prediction
    src: str
    confidence: float | None
    models: tuple[str, ...]


class Service:
    """The models, and the threads that work with them.

    Every method raises Refusal for what cannot be done.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        pool: Pool,
        limits: Limits,
        glossaries: Glossaries | None = None,
    ) -> None:
        """Set what serves."""
        given = glossaries or Glossaries()
        self.glossaries = given.along(catalogue.packed_glossaries())
        self.catalogue = catalogue
        self.pool = pool
        self.limits = limits
        self._damaged: dict[
            str, int
        ] = {}  # folders that could not be opened, by their time
        self._away: dict[str, int] = {}  # how often a folder was not there in a row

    async def translate(
        self,
        texts: Sequence[str],
        src: str | None,
        tgt: str,
        caller: Caller,
        *,
        settings: DecodingSettings | None = None,
        model: str | None = None,
        pivot: bool = False,
        binding: Binding = USUAL_TERMS,
    ) -> list[Translated]:
        """Translate texts; without `src`, each from the language that it is in by its looks.

        The `binding` says which glossary's terms they have.
        """
        self._refuse_large(texts)
        work = _Work(caller, settings or DecodingSettings(), binding)
        if model is not None:
            chosen = self.catalogue.model(model, "translation")
            return await self._translate_by((chosen,), texts, work)
        tgt = self.catalogue.language(tgt, "target")
        if src is not None:
            src = self.catalogue.language(src, "source")
            route = self.catalogue.route(src, tgt, pivot)
            return await self._translate_by(route, texts, work)
        return await self._translate_detected(texts, tgt, work, pivot)

    def detect(
        self, text: str, among: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """Return the languages that a text may be in, the likeliest first; `und` before them where
        nothing is known of any.
        """
        languages = self.catalogue.languages() if among is None else among
        found = self.catalogue.detector.detect(text, languages)
        if not found:
            found = [(UNKNOWN, 0.0)]
        known = {code for code, _ in found}
        return found + [(code, 0.0) for code in languages if code not in known]

    def source_of(
        self, text: str, sources: Sequence[str], others: Sequence[str] = ()
    ) -> tuple[str, float]:
        """Return the language of a text, one of `sources` or of `others`, and its confidence.

        Of a source without a profile nothing is known. Where that leaves one source, it is that;
        where it leaves several, `und`.
        """
        found = self.detect(text, [*sources, *others])[0]
        is_told = set(sources) <= set(self.catalogue.detector.languages)
        if is_told or found[1] >= SURE:
            return found
        return (sources[0] if len(sources) == 1 else UNKNOWN, 0.0)

    async def complete(
        self,
        text: str,
        prefix: str,
        model: ServedModel,
        caller: Caller,
        *,
        alternatives: int = 0,
        settings: DecodingSettings | None = None,
        binding: Binding = USUAL_TERMS,
    ) -> Completion:
        """Translate a text so that its translation begins with a prefix, and find other words that
        may come next.
        """
        self._refuse_large([text, prefix])
        charge([text])
        more = {"alternatives": alternatives, "settings": settings}
        wanted = _Work(caller, settings or DecodingSettings(), binding)
        translator = self._bound(model, wanted)
        work = partial(_completed, translator, text, prefix, **more)
        cost = float(len(text)) * (1 + alternatives)
        done = await self.pool.run(model.calls, [Job(work, caller, cost=cost)])
        ((completion, num_read),) = done
        _note_read(num_read)
        _note_written([completion.prediction])
        return completion

    async def read(
        self,
        text: str,
        translations: Sequence[str],
        model: ServedModel,
        caller: Caller,
    ) -> list[Prediction]:
        """Read given translations of a text: which of their words belong to which of its own."""
        texts = [text] * len(translations)
        settings = DecodingSettings(alignments=True)
        work = partial(model.predictor.score, texts, translations, settings)
        job = Job(work, caller, cost=float(len(text)) * len(texts))
        (found,) = await self.pool.run(model.calls, [job])
        return found

    async def inspect(
        self,
        model: str,
        text: str,
        caller: Caller,
        is_packed: bool = False,
        parts: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return what `weft inspect` shows of a text, as data: lists, or packed arrays; with
        `parts`, these alone.
        """
        self._refuse_large([text])
        served = self.catalogue.models.get(model)
        if served is None:
            raise UnknownModel(model)
        try:
            refuse_parts(served.task, parts)
        except UsageError as error:
            raise InvalidRequest(str(error), "parts") from None
        charge([text])
        most = replace(USUAL, tokens=self.limits.max_inspect_tokens)
        work = partial(inspection_data, served.task, text, most, is_packed, parts)
        job = Job(work, caller, cost=10.0 * len(text))
        (data,) = await self.pool.run(served.calls, [job])
        return data

    async def renew(self) -> list[str]:
        """Serve the models whose folders hold another one by now; return their names.

        What runs on a former model ends there: no request is dropped.
        """
        renewed = []
        self._tell_away(await asyncio.to_thread(self.catalogue.away))
        for model in await asyncio.to_thread(self.catalogue.changed):
            written = when_written(model.folder)
            if self._damaged.get(model.id) == written:
                continue
            opened = await asyncio.to_thread(reopened, model, self.limits.max_beam)
            if opened is None:
                self._damaged[model.id] = written
                continue
            self.catalogue.replace(opened)
            for runner in (model.searcher, model.writer, model.calls):
                self.pool.retire(runner)
            renewed.append(model.id)
        if renewed:
            packed = self.catalogue.packed_glossaries()
            self.glossaries = self.glossaries.along(packed)
        return renewed

    def _tell_away(self, reasons: Mapping[str, str]) -> None:
        """Say once in the log that folders are gone; one written anew is away for a moment."""
        self._away = {name: self._away.get(name, 0) + 1 for name in reasons}
        for name, looks in self._away.items():
            if looks == _LOOKS:
                _LOG.warning(
                    "%s: %s; it is served from memory until the server ends",
                    name,
                    reasons[name],
                )

    async def classify(
        self, model: str | None, texts: Sequence[str], caller: Caller
    ) -> tuple[list[Any], int]:
        """Return the Classification of each text, and how many tokens they have in all."""
        self._refuse_large(texts)
        served = self.catalogue.model(model, "classification")
        charge(texts)
        jobs = [
            Job(partial(_classified, served.predictor, part), caller)
            for part in _parts(texts)
        ]
        parts = await self.pool.run(served.calls, jobs)
        num_read = sum(count for _, count in parts)
        _note_read(num_read)
        return [answer for answers, _ in parts for answer in answers], num_read

    async def write(
        self, model: ServedModel, orders: Sequence[Order], caller: Caller
    ) -> list[WrittenText]:
        """Write texts, or score them, with a language model."""
        writer, jobs = self._text_jobs(model, orders, caller)
        return await self.pool.run(writer, jobs)

    def stream(
        self, model: ServedModel, orders: Sequence[Order], caller: Caller
    ) -> AsyncIterator[tuple[int, Part | WrittenText]]:
        """Write texts, and yield for each its parts and then its whole, with its number.

        Raises what it refuses at the call, before the first part.
        """
        queue: asyncio.Queue[Any] = asyncio.Queue()
        writer, jobs = self._text_jobs(model, orders, caller, queue)
        for number, job in enumerate(jobs):
            job.future.add_done_callback(partial(_put_end, queue, number))
        self.pool.submit(writer, jobs)
        return _parts_as_they_come(queue, jobs, caller)

    def _text_jobs(
        self,
        model: ServedModel,
        orders: Sequence[Order],
        caller: Caller,
        queue: "asyncio.Queue[Any] | None" = None,
    ) -> tuple[TextWriter, list[Job]]:
        """Make a job of each order; its parts go to the queue, with its number."""
        writer = model.writer
        if writer is None:
            raise UnknownModel(model.id, "language-modelling")
        charge()
        jobs = []
        for number, order in enumerate(orders):
            listen = None
            if queue is not None:
                listen = partial(_put, queue, number)
            try:
                cost, expected = writer.sizes(order)
            except UsageError as error:
                raise InvalidRequest(str(error)) from None
            jobs.append(Job(order, caller, cost=cost, expected=expected, listen=listen))
        return writer, jobs

    async def _translate_detected(
        self,
        texts: Sequence[str],
        tgt: str,
        work: "_Work",
        pivot: bool,
    ) -> list[Translated]:
        """Translate each text from its own language, all of a language together."""
        sources = self.catalogue.sources(tgt, pivot)
        if not sources:
            raise UnknownPair("auto", tgt)
        guesses = [self.source_of(text, sources) for text in texts]
        refuse_undetected((guess for guess, _ in guesses), sources)
        answers: dict[int, Translated] = {}
        for src in dict.fromkeys(guess for guess, _ in guesses):
            places = [i for i, (guess, _) in enumerate(guesses) if guess == src]
            route = self.catalogue.route(src, tgt, pivot)
            own = [texts[i] for i in places]
            done = await self._translate_by(route, own, work)
            for place, answer in zip(places, done, strict=True):
                answers[place] = replace(answer, confidence=guesses[place][1])
        return [answers[i] for i in range(len(texts))]

    async def _translate_by(
        self, route: Sequence[ServedModel], texts: Sequence[str], work: "_Work"
    ) -> list[Translated]:
        """Translate by a model, or by one after the other."""
        names = tuple(model.id for model in route)
        if len(route) > 1 and work.binding.is_asked:
            raise InvalidRequest(TWO_MODELS, "glossary")
        predictions: list[Prediction] = []
        for model in route:
            own = work if model is route[-1] else work.between()
            predictions = await self._predict(model, texts, own)
            texts = [prediction.text for prediction in predictions]
            _note_written(predictions)
        return [
            Translated(prediction, route[0].src, None, names)
            for prediction in predictions
        ]

    async def _predict(
        self, model: ServedModel, texts: Sequence[str], work: "_Work"
    ) -> list[Prediction]:
        """Translate texts by one model: each row among those of other callers, where it can be."""
        searcher = model.searcher
        assert searcher is not None
        caller = work.caller
        self.pool.refuse_too_many(caller, len({text for text in texts if text.strip()}))
        is_short = sum(map(len, texts)) <= _SHORT
        translator = self._bound(model, work)
        plan = partial(translator.plan, texts, work.settings)
        planned = await self._done(model, plan, caller, is_short)
        found = await self._search(searcher, planned.rows, planned.settings, caller)
        caller.is_under_way = True
        if any(row.found for row in planned.rows):
            found = await self._with_terms(model, planned, found, work)
        assemble = partial(translator.assemble, planned, found)
        is_quick = is_short and not work.settings.alignments
        return await self._done(model, assemble, caller, is_quick)

    async def _with_terms(
        self,
        model: ServedModel,
        planned: Planned,
        found: dict[SourceRow, list[Hypothesis]],
        work: "_Work",
    ) -> dict[SourceRow, list[Hypothesis]]:
        """Search again for what lacks terms of the glossary, as `Translator.find` does."""
        caller = work.caller
        settings = planned.settings
        translator = self._bound(model, work)
        searcher = model.searcher
        assert searcher is not None
        found = dict(found)
        again: dict[SourceRow, SourceRow] = {}
        while True:
            bound = partial(translator.bound, found, settings, again)
            again = await self._done(model, bound, caller, is_quick=False)
            if not again:
                return found
            rows = list(again.values())
            more = await self._search(searcher, rows, settings, caller)
            found |= {row: more[terms] for row, terms in again.items()}

    async def _search(
        self,
        searcher: Searcher,
        rows: Sequence[SourceRow],
        settings: Resolved,
        caller: Caller,
    ) -> dict[SourceRow, list[Hypothesis]]:
        """Return what the searches of some rows find."""
        try:
            jobs = searcher.jobs(rows, settings, caller)
        except UsageError as error:
            raise as_refusal(error) from None
        _note_read(sum(int(job.cost) for job in jobs))
        found = await self.pool.run(searcher, jobs)
        return dict(zip(rows, found, strict=True))

    def _bound(self, model: ServedModel, work: "_Work") -> Translator:
        """Return a model's translator, bound by the terms that are asked for, or else the usual
        ones, which samples do without.
        """
        binding = work.binding
        if not binding.is_asked and work.settings.sampling is not None:
            binding = NO_TERMS
        pair = (model.src, model.tgt)
        glossary = self.glossaries.find(binding, pair, model.id)
        translator: Translator = model.predictor
        return translator.with_glossary(glossary) if glossary else translator

    async def _done(
        self, model: ServedModel, work: Callable[[], T], caller: Caller, is_quick: bool
    ) -> T:
        """Return what a function gives, called by a thread of the pool unless it is quick."""
        if not is_quick:
            (result,) = await self.pool.run(model.calls, [Job(work, caller)])
            return result
        try:
            return work()
        except Exception as error:
            raise as_refusal(error) from None

    def _refuse_large(self, texts: Sequence[str]) -> None:
        """Raise TooLarge where texts are above the limits."""
        limits = self.limits
        if len(texts) > limits.max_texts:
            raise TooLarge(
                f"{len(texts):,} texts: at most {limits.max_texts:,} are taken at once"
            )
        longest = max(map(len, texts), default=0)
        if longest > limits.max_text:
            raise TooLarge(
                f"a text of {longest:,} characters: at most {limits.max_text:,} are taken"
            )
        in_all = sum(map(len, texts))
        if in_all > limits.max_characters:
            raise TooLarge(
                f"{in_all:,} characters: at most {limits.max_characters:,} are taken at once"
            )


def refuse_undetected(guesses: Iterable[str], sources: Sequence[str]) -> None:
    """Raise Undetected where the language of a text is not known; a model that does not know its
    own takes any, where it is the only one.
    """
    if UNKNOWN in guesses and list(sources) != [UNKNOWN]:
        raise Undetected


@dataclass(frozen=True)
class _Work:
    """The wishes for a translation, and whose they are."""

    caller: Caller
    settings: DecodingSettings
    binding: Binding

    def between(self) -> "_Work":
        """Return what is wanted of the first model of two, whose translations nobody sees."""
        settings = replace(self.settings, prefix="", n_best=1, alignments=False)
        return replace(self, settings=settings)


async def _parts_as_they_come(
    queue: "asyncio.Queue[Any]", jobs: Sequence[Job], caller: Caller
) -> AsyncIterator[tuple[int, Part | WrittenText]]:
    """Yield what the jobs hand out, each with its number; where it is not read on, they end."""
    running = len(jobs)
    try:
        while running:
            seconds = max(0.0, caller.deadline - time.monotonic())
            async with asyncio.timeout(seconds):
                number, part = await queue.get()
            if isinstance(part, asyncio.Future):
                running -= 1
                part = part.result()
            yield number, part
    except TimeoutError:
        raise TooLate from None
    finally:
        note_turn(jobs)
        for job in jobs:
            job.future.cancel()


def _classified(classifier: Any, texts: Sequence[str]) -> tuple[list[Any], int]:
    """Classify texts, and count their tokens."""
    encoded = classifier.tokenizer.encode_batch(list(map(one_line, texts)))
    return classifier.classify(texts), sum(map(len, encoded))


def _completed(
    translator: Any, text: str, prefix: str, **more: Any
) -> tuple[Completion, int]:
    """Go on with a translation, and count the tokens of its source."""
    completion = translator.complete(text, prefix, **more)
    rows = translator.plan([text], DecodingSettings()).rows
    return completion, sum(len(row.ids) for row in rows)


def _note_read(count: int) -> None:
    """Note the tokens of texts for the metrics."""
    visit = current_visit()
    if visit is not None:
        visit.note(read=count)


def _note_written(predictions: Sequence[Prediction]) -> None:
    """Note the tokens of translations for the log and the metrics."""
    visit = current_visit()
    if visit is None:
        return
    for prediction in predictions:
        visit.note(
            written=len(prediction.tokens),
            is_cut=prediction.output_limit is not None,
        )


def _put(queue: "asyncio.Queue[Any]", number: int, part: Any) -> None:
    queue.put_nowait((number, part))


def _put_end(
    queue: "asyncio.Queue[Any]", number: int, ended: "asyncio.Future[Any]"
) -> None:
    if not ended.cancelled():
        ended.exception()  # has been looked at, though nobody may read the queue
        _put(queue, number, ended)


def _parts(texts: Sequence[str], most: int = 32) -> list[Sequence[str]]:
    """Return the texts in parts of so many, so that others come in between."""
    return [texts[start : start + most] for start in range(0, len(texts), most)]
