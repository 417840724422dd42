"""A server that answers the page with made-up translations, so that a browser can be driven
without a model: `python tools/stand_in.py [PORT]` shows it.

What it answers is worked out from the request: each word of a text becomes that of a small lexicon,
else itself in capitals; probabilities come from the letters of a word.
"""

import asyncio
import json
import random
import re
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from served import in_thread
from weft.documents.document import FileDocument, Reading
from weft.documents.registry import endings, endings_of_text, format_of
from weft.errors import UsageError
from weft.serve.dialects.terms import row_of
from weft.serve.files import page_routes
from weft.serve.glossaries import sent_terms
from weft.serve.refusals import InvalidRequest

LEXICON = {
    "ein": "a", "eine": "a", "der": "the", "die": "the", "das": "the", "hund": "dog", "katze": "cat", "rennt": "runs",
    "schläft": "sleeps", "im": "in", "schnee": "snow", "auf": "on", "dem": "the", "sofa": "sofa", "und": "and",
    "mann": "man", "frau": "woman", "mit": "with", "einem": "a", "roten": "red",
    "hut": "hat", "spielt": "plays", "gitarre": "guitar",
}  # fmt: skip
OTHERS = ["big", "small", "old", "young", "tired"]
CARD = {
    "title": "Translation",
    "shape": "A Transformer of 3+3 layers (width 192, 6 heads)",
    "sizes": {"kind": "transformer", "layers": "3+3", "width": 192, "heads": 6},
    "weights": "float32",
    "computed_by": "native engine, 2 threads",
    "computer": "engine",
    "weft_version": "0.1.0",
}
MODELS = [
    {"id": "de-en", "task": "translation", "source": "de", "target": "en", "card": CARD},
    {"id": "de-en-small", "task": "translation", "source": "de", "target": "en", "card": CARD},
    {"id": "en-de", "task": "translation", "source": "en", "target": "de", "card": CARD},
    {"id": "en-zh", "task": "translation", "source": "en", "target": "zh", "card": CARD},
    {"id": "plays", "task": "language-modelling", "card": {**CARD, "language": "en"}},
    {"id": "questions", "task": "classification", "card": {**CARD, "labels": ["place", "person", "number"]}},
]  # fmt: skip
LANGUAGES = [
    {"code": "de", "name": "German", "targets": ["en", "zh"]},
    {"code": "en", "name": "English", "targets": ["de", "zh"]},
    {"code": "zh", "name": "Chinese", "targets": []},
]
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}
LIMITS = {
    "max_text": 2000,
    "max_file": 100_000,
    "max_terms": 1000,
    "max_new_tokens": 100,
    "max_inspect_tokens": 40,
}


class Refused(Exception):
    def __init__(self, status: int, message: str, **headers: str) -> None:
        self.response = JSONResponse(
            {"error": {"message": message, "code": headers.pop("code", "x")}},
            status,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )


def words_of(text: str) -> list[tuple[int, int]]:
    places, at = [], 0
    for word in text.split(" "):
        if word:
            places.append((at, at + len(word)))
        at += len(word) + 1
    return places


def marks_of(text: str) -> list[str]:
    """`repetition` of a text that begins with a word twice, `unsure` of one that asks."""
    first, second, *_ = [*text.split(), "", ""]
    marks = {"repetition": bool(first) and first == second, "unsure": "?" in text}
    marks["numbers"] = "Zahl" in text
    return [mark for mark, is_there in marks.items() if is_there]


def probability_of(word: str) -> float:
    return (sum(map(ord, word)) * 37 % 97 + 2) / 100


def translated(text: str, models: list[str]) -> dict[str, Any]:
    """Each word by itself, in its place; of `Zahl` it says that a number is lost."""
    written, words, at = [], [], 0
    for start, end in words_of(text):
        word = text[start:end]
        core = word.strip(".,!?")
        new = word.replace(core, LEXICON.get(core.lower(), core.upper()))
        words.append(
            {
                "text": new,
                "start": at,
                "end": at + len(new),
                "probability": probability_of(word),
                "source": [[start, end]],
            }
        )
        written.append(new)
        at += len(new) + 1
    unknown = [word.lower() for word in text.split() if word.startswith("Qu")]
    doubts = doubts_of(text, words)
    lost = {"numbers": {"put_back": [], "missing": ["512"], "added": []}}
    return (lost if "Zahl" in text else {}) | {
        "text": " ".join(written),
        "source": "de",
        "detected": None,
        "models": models,
        "score": -0.5,
        "marks": marks_of(text),
        "unknown_words": unknown,
        "n_best": [],
        "words": words,
        **doubts,
    }


def doubts_of(text: str, words: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a text that begins with `Learned`, what a model says that has learned to doubt."""
    if not text.startswith("Learned"):
        return {}
    for number, word in enumerate(words):
        word["quality"] = 0.5 if number else 0.9
    return {"quality": 0.7, "marks": ["omission", "doubled"]}


def units_of(text: str) -> list[dict[str, Any]]:
    """What a memory has of a text: of one that begins with a word for it."""
    kind = text.split(maxsplit=1)[0].lower() if text.strip() else ""
    if kind not in ("exact", "part", "repaired", "near"):
        return []
    kind = {"part": "exact"}.get(kind, kind)
    unit = {"source": "Ein <b>", "target": "A <b>", "kind": kind, "where": "a.tmx:1"}
    return [{**unit, "score": 1.0 if kind == "exact" else 0.83, "taken": kind != "near"}]  # fmt: skip


def with_terms(text: str, answer: dict[str, Any], rows: Any) -> dict[str, Any]:
    """The answer with a word for each term, if it is as long as the one in its place."""
    terms: list[dict[str, Any]] = []
    for source, *targets in rows if isinstance(rows, list) else []:
        target = targets[0] if targets else source
        if source.lower() not in text.lower().split():
            continue
        new = LEXICON.get(source.lower(), source.upper())
        found = next((word for word in answer["words"] if word["text"] == new), None)
        terms.append({"source": source, "wanted": [target], "used": "", "status": "missing", "reason": ""})  # fmt: skip
        if found is not None and len(target) == len(new):
            place = slice(found["start"], found["end"])
            answer["text"] = (
                answer["text"][: place.start] + target + answer["text"][place.stop :]
            )
            found["text"] = target
            terms[-1] |= {"used": target, "status": "used"}
    return answer | ({"terms": terms} if terms else {})


def made_up(rows: int, cols: int, layers: int = 2, heads: int = 3) -> list[Any]:
    chance = random.Random(rows * 100 + cols)

    def row() -> list[float]:
        draws = [chance.random() ** 4 for _ in range(cols)]
        return [round(draw / sum(draws), 4) for draw in draws]

    return [[[row() for _ in range(rows)] for _ in range(heads)] for _ in range(layers)]


def tokens_of(text: str) -> dict[str, Any]:
    pieces = [f"▁{word}" for word in text.split()]
    chance = random.Random(len(pieces))
    vectors = [[round(chance.uniform(-1, 1), 3) for _ in range(16)] for _ in pieces]
    return {
        "pieces": pieces,
        "ids": list(range(7, 7 + len(pieces))),
        "vectors": {"width": 16, "positions": None, "tokens": vectors, "beside": []},
    }


def choices_at(piece: str) -> list[dict[str, Any]]:
    return [
        {"piece": piece, "id": 7, "probability": 0.6},
        {"piece": "▁other", "id": 90, "probability": 0.2},
    ]


def shouted(markup: str) -> str:
    """The text of a piece of HTML in capitals, Ä for AE; its tags as they were."""
    return re.sub(
        r"<[^>]*>|[^<]+",
        lambda m: m[0] if m[0][0] == "<" else m[0].upper().replace("AE", "Ä"),
        markup,
    )


def event(text: str, score: float | None, end: str | None) -> str:
    """A chunk of a stream: a token, and a second one of no text, as bytes of a character are."""
    logprobs = None
    if score is not None:
        logprobs = {
            "tokens": ["bytes:", text],
            "token_logprobs": [score / 2, score / 2],
            "text_offset": [40, 40],
        }
    choice = {"text": text, "index": 0, "finish_reason": end, "logprobs": logprobs}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


class StandIn:
    """The server, and what tests may change of it."""

    def __init__(self) -> None:
        self.port = 0
        self._running = ExitStack()
        self.reset()

    def reset(self) -> None:
        """Forget what a test has changed, and what was asked."""
        self.models = MODELS
        self.known = LANGUAGES
        self.key = ""  # where it is set, requests need it
        self.delay = 0.0  # seconds that each translation or inspection takes
        self.refusals: list[Refused] = []  # of the next requests
        self.asked: list[tuple[str, Any]] = []  # paths with their bodies
        self.kept = b""  # the last translated file
        self.report: dict[str, Any] | None = None  # on it
        self.left = 0  # streams that a client has left

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    # what it answers

    async def _fields(self, request: Request) -> dict[str, Any]:
        fields = json.loads(await request.body())
        self.asked.append((request.url.path, fields))
        self._let_in(request)
        if self.refusals:
            raise self.refusals.pop(0)
        return fields

    def _let_in(self, request: Request) -> None:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            raise Refused(401, "a key is needed", code="unauthorized")

    async def info(self, request: Request) -> Response:
        self._let_in(request)
        return JSONResponse(
            {
                "version": "0.1.0",
                "models": self.models,
                "limits": LIMITS,
                "formats": endings(),
                "text_formats": endings_of_text(),
                "glossaries": [
                    {"name": name, "pairs": [["de", "en"]]} for name in ("house", "law")
                ],
            }
        )

    async def languages(self, request: Request) -> Response:
        return JSONResponse(self.known)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def detect(self, request: Request) -> Response:
        fields = await self._fields(request)
        is_german = any(w.lower() in LEXICON for w in fields["text"].split())
        code, other = ("de", "en") if is_german else ("en", "de")
        if "\u4e00" <= fields["text"][:1] <= "\u9fff":
            code = "zh"
        found = [(code, 0.97 if len(fields["text"]) > 4 else 0.4), (other, 0.02)]
        return JSONResponse(
            {"languages": [{"language": c, "confidence": p} for c, p in found]}
        )

    async def translate(self, request: Request) -> Response:
        fields = await self._fields(request)
        await asyncio.sleep(self.delay)
        source, target = fields["source"], fields["target"]
        models = [fields.get("model") or f"{source}-{target}"]
        if (source, target) == ("de", "zh"):
            models = ["de-en", "en-zh"]
        terms = fields.get("glossary")
        answers = [
            with_terms(text, translated(text, models), terms)
            for text in fields["texts"]
        ]
        if fields.get("memory"):
            for text, answer in zip(fields["texts"], answers, strict=True):
                answer["memory"] = units_of(text)
                has_part = text.startswith("Part ")
                is_taken = any(unit["taken"] for unit in answer["memory"])
                share = "all" if is_taken else "nothing"
                answer["from_memory"] = "part" if has_part else share
        if fields.get("format") == "html":
            answers = [{"text": shouted(text), "marks": []} for text in fields["texts"]]
        return JSONResponse({"translations": answers})

    async def segments(self, request: Request) -> Response:
        async with request.form() as form:
            file: Any = form["file"]
            try:
                document = format_of(file.filename).open(
                    await file.read(), Reading("the file")
                )
            except UsageError as error:
                raise Refused(400, str(error)) from None
        assert isinstance(document, FileDocument)
        return JSONResponse(
            {
                "format": format_of(file.filename).name,
                "texts": [segment.source for segment in document.segments],
                "between": document.text.skeleton,
                "ascii": document.encoding == "ascii",
            }
        )

    async def terms(self, request: Request) -> Response:
        async with request.form() as form:
            fields = {name: form[name] for name in form}
            file: Any = fields.pop("file")
            self.asked.append((request.url.path, fields))
            pair = (str(fields["source"]), str(fields["target"]))
            try:
                found = sent_terms(file.filename, await file.read(), pair)
            except InvalidRequest as error:
                raise Refused(400, error.message) from None
        return JSONResponse(
            {"terms": list(map(row_of, found.entries)), "notes": found.notes}
        )

    async def translate_file(self, request: Request) -> Response:
        """The file with all its bytes the other way round."""
        async with request.form() as form:
            fields = {name: form[name] for name in form}
            file: Any = fields.pop("file")
            self.asked.append((request.url.path, fields))
            self._let_in(request)
            await asyncio.sleep(self.delay)
            if self.refusals:
                raise self.refusals.pop(0)
            self.kept = (await file.read())[::-1]
        url = f"https://elsewhere/behind/a/proxy/download_file/1.{file.filename}"
        return JSONResponse({"translatedFileUrl": url, "report": self.report})

    async def download_file(self, request: Request) -> Response:
        self.asked.append((request.url.path, {}))
        return Response(self.kept, media_type="application/octet-stream")

    async def complete(self, request: Request) -> Response:
        fields = await self._fields(request)
        own, prefix = translated(fields["text"], ["de-en"]), fields["prefix"]
        count = len(prefix.split())
        rest = own["text"].split()[count:]
        text = " ".join([prefix.strip(), *rest]).strip()
        if prefix and not fields["alternatives"]:
            text += "!"  # a search may go on with what was whole
        alternatives = [
            {
                "text": other,
                "probability": 0.05,
                "translation": " ".join([prefix.strip(), other, *rest[1:]]).strip(),
            }
            for other in OTHERS[: fields["alternatives"]]
        ]
        places = words_of(text)
        words = [
            {**word, "text": text[s:e], "start": s, "end": e}
            for word, (s, e) in zip(own["words"], places, strict=False)
        ]
        return JSONResponse(
            {"text": text, "words": words, "alternatives": alternatives}
        )

    async def classify(self, request: Request) -> Response:
        fields = await self._fields(request)
        scores = [("place", 0.81), ("person", 0.15), ("number", 0.04)]
        row = {
            "index": 0,
            "label": "place",
            "scores": [{"label": label, "score": score} for label, score in scores],
            "labels": ["place"],
            "truncated": len(fields["input"]) > 200,
            "unknown_words": [w for w in fields["input"].split() if w.startswith("Qu")],
        }
        return JSONResponse({"data": [row]})

    async def inspect(self, request: Request) -> Response:
        fields = await self._fields(request)
        await asyncio.sleep(self.delay)
        task = next(m["task"] for m in self.models if m["id"] == fields["model"])
        if len(fields["text"].split()) > LIMITS["max_inspect_tokens"]:
            raise Refused(413, "more than 40 tokens", code="too_large")
        return JSONResponse(getattr(self, f"_{task.split('-')[0]}")(fields["text"]))

    def _translation(self, text: str) -> dict[str, Any]:
        own = translated(text, [])
        source, target = tokens_of(text), tokens_of(own["text"])
        target["probabilities"] = [w["probability"] for w in own["words"]]
        target["alternatives"] = [choices_at(piece) for piece in target["pieces"]]
        n = len(source["pieces"])
        nodes = [
            {
                "parent": i - 1 if i else None,
                "step": i + 1,
                "piece": piece,
                "id": 7 + i,
                "probability": 0.5,
                "log_prob": -0.7 * (i + 1),
                "is_best": True,
                "fate": "ended" if i == n - 1 else "goes on",
                "score": -0.4 if i == n - 1 else None,
            }
            for i, piece in enumerate(target["pieces"])
        ]
        return {
            "task": "translation", "text": text, "translation": own["text"], "src_lang": "de", "tgt_lang": "en",
            "max_src_len": 128, "segments": 1, "cut": False, "finished": True, "ngrams": 1,
            "source": source, "target": target,
            "attention": {"cross": made_up(n, n), "encoder": made_up(n, n), "decoder": made_up(n, n)},
            "beam": {"nodes": nodes, "beam_size": 4, "length_penalty": 1.0},
            "alignment": {"source": text.split(), "target": own["text"].split(), "pairs": [[i, i] for i in range(n)]},
        }  # fmt: skip

    def _language(self, text: str) -> dict[str, Any]:
        tokens = tokens_of(f"<eos> {text}")
        n = len(tokens["pieces"])
        tokens["probabilities"] = [0.4] * (n - 1)
        tokens["alternatives"] = [choices_at(piece) for piece in tokens["pieces"][1:]]
        return {
            "task": "language-modelling", "text": text, "lang": "en", "max_len": 128, "cut": False, "ngrams": 1,
            "start": "document", "tokens": tokens, "next": choices_at("▁next"), "attention": {"decoder": made_up(n, n)},
        }  # fmt: skip

    def _classification(self, text: str) -> dict[str, Any]:
        tokens = tokens_of(text)
        n = len(tokens["pieces"])
        few = {"▁tiny": -0.00004, "▁small": 0.0123}
        shares = [few.get(p, probability_of(p) - 0.4) for p in tokens["pieces"]]
        labels = [("place", 0.81), ("person", 0.15)]
        return {
            "task": "classification", "text": text, "lang": "en", "max_len": 128, "cut": n > 20, "ngrams": 1,
            "tokens": tokens, "labels": [{"label": label, "probability": p} for label, p in labels],
            "contributions": [
                {
                    "label": label,
                    "gradient": [sign * s for s in shares],
                    "left_out": [sign * s for s in shares],
                    "agreement": 0.9,
                }
                for (label, _), sign in zip(labels, (1, -1), strict=True)
            ],
            "attention": {"encoder": made_up(n, n)},
        }  # fmt: skip

    async def completions(self, request: Request) -> Response:
        fields = await self._fields(request)

        async def events() -> Any:
            is_whole = False
            try:
                for number in range(fields["max_tokens"]):
                    await asyncio.sleep(0.01)
                    yield event(f" word{number}", -(number % 5) / 2, None)
                yield event("", None, "length")
                is_whole = True
                yield "data: [DONE]\n\n"
            finally:
                self.left += not is_whole

        return StreamingResponse(events(), media_type="text/event-stream")

    async def history(self, request: Request) -> Response:
        if (model := request.path_params["model"]) != "de-en":
            rows = [{"step": 6, "loss": 6.25}] if model == "en-de" else []
            return JSONResponse(
                {"rows": rows, "best": None, "scores": [], "good_for": []}
            )
        rows = [{"step": 50 * i, "loss": 6 / (i**0.5)} for i in range(1, 40)]
        rows += [{"step": 200 * i, "dev_loss": 3 / (i**0.4) + 1} for i in range(1, 10)]
        return JSONResponse(
            {
                "rows": rows,
                "best": 1800,
                "scores": ["BLEU   27.21  nrefs:1|case:mixed", "chrF   49.77"],
                "good_for": ["draft: to be read", "captions of photographs"],
                "verdict": "draft",
                "figures": {"count": 1200, "near": 300, "bleu": 27.21, "other": 1},
                "samples": [
                    {
                        "text": "Ein Hund.",
                        "steps": [
                            {"step": 200, "text": "A A A"},
                            {"step": 400, "text": "A dog ."},
                        ],
                    }
                ],
            }
        )

    # its life

    def app(self) -> Any:
        routes = {
            "/v1/translate": self.translate, "/v1/complete": self.complete, "/v1/detect": self.detect,
            "/v1/segments": self.segments, "/v1/inspect": self.inspect, "/v1/completions": self.completions,
            "/v1/terms": self.terms, "/classify": self.classify, "/translate_file": self.translate_file,
        }  # fmt: skip
        reading = {
            "/info": self.info, "/languages": self.languages, "/health": self.health,
            "/v1/history/{model:path}": self.history, "/download_file/{name}": self.download_file,
        }  # fmt: skip
        app = Starlette(
            routes=[
                *(Route(path, call, methods=["POST"]) for path, call in routes.items()),
                *(Route(path, call, methods=["GET"]) for path, call in reading.items()),
                *page_routes(SimpleNamespace(models={}))[:-1],
            ],
            exception_handlers={Refused: _refuse, HTTPException: _lost},
        )
        return _guarded(app)

    def start(self) -> None:
        """Start on the port that it had, else on a free one."""
        config = uvicorn.Config(
            self.app(), log_level="error", lifespan="off", timeout_graceful_shutdown=1
        )
        _, self.port = self._running.enter_context(in_thread(config, self.port))

    def stop(self) -> None:
        self._running.close()


async def _refuse(request: Request, refused: Refused) -> Response:
    return refused.response


async def _lost(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": "nothing here"}, error.status_code)


def _guarded(app: Any) -> Callable[..., Any]:
    """Give every answer the headers that the server's guards give."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        async def send_with(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items()]
                message["headers"] += [pair for pair in more if pair[0] not in own]
            await send(message)

        await app(scope, receive, send_with)

    return guarded


if __name__ == "__main__":
    stand_in = StandIn()
    stand_in.port = int(sys.argv[1]) if len(sys.argv) > 1 else 8811
    stand_in.start()
    print(stand_in.address)
    threading.Event().wait()
