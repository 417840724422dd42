"""The routes of LibreTranslate that translate whole files."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from weft.data.languages import UNKNOWN
from weft.documents.document import (
    FileDocument,
    Reading,
    TextDocument,
    decode_file,
)
from weft.documents.registry import format_of
from weft.errors import UsageError
from weft.serve.bodies import Fields, MissingField, read_fields
from weft.serve.dialects.answers import Wish, translate_file
from weft.serve.dialects.codes import AUTO, by_model, served_language
from weft.serve.dialects.described import FILE, TEXT, body
from weft.serve.dialects.downloads import Downloads
from weft.serve.dialects.replies import reply
from weft.serve.dialects.terms import GLOSSARY, binding_of
from weft.serve.reading import Reader
from weft.serve.refusals import InvalidRequest
from weft.serve.service import Service
from weft.serve.uploads import Upload
from weft.serve.visits import caller_of

_TIMES = 10  # a file has so many times the deadline of other requests


@dataclass(frozen=True)
class Files:
    """The routes over a service."""

    service: Service
    downloads: Downloads
    reader: Reader = field(default_factory=Reader)

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        names = ("source", "target", "model", GLOSSARY, "api_key")
        fields = {"file": FILE, **dict.fromkeys(names, TEXT)}
        required = ["file", "source", "target"]
        router.add_api_route(
            "/translate_file",
            self.translate,
            methods=["POST"],
            openapi_extra=body(fields, required, json=False, forms=True),
        )
        router.add_api_route("/download_file/{name}", self.download, methods=["GET"])

    async def translate(self, request: Request) -> Response:
        """Translate a file; the answer says where it is, and what came of it."""
        fields = await read_fields(request, self.service.limits)
        upload = fields.file("file")
        src, tgt = self._languages(fields)
        wish = Wish(
            model=fields.text("model", "") or None,
            binding=binding_of(fields, self.service.limits),
        )
        if wish.model is not None:
            src, tgt = by_model(self.service.catalogue, wish.model, (src, tgt))
        caller = caller_of(request)
        longer = self.service.limits.deadline * (_TIMES - 1)
        patient = replace(caller, deadline=caller.deadline + longer)
        reading = Reading("the file", _known(src or UNKNOWN), _known(tgt))
        try:
            row = format_of(upload.name)
            async with self.reader.open(row, upload.file.read(), reading) as document:
                answer = await translate_file(
                    self.service, document, (src, tgt), patient, wish
                )
        except UsageError as error:
            raise InvalidRequest(_without_name(error, upload.name), "file") from None
        name = _name_in(upload.name, tgt)
        asked = await asyncio.to_thread(self.downloads.add, name, answer.content)
        url = f"{request.base_url}download_file/{quote(asked)}"
        return reply({"translatedFileUrl": url, "report": answer.report})

    async def download(self, name: str) -> Response:
        """Return a translated file."""
        found = await asyncio.to_thread(self.downloads.find, name)
        if found is None:
            raise InvalidRequest("Invalid filename: this file is gone, or never was")
        own_name, content = found
        # never shown as a page of this server
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(own_name)}",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        return Response(content, 200, headers, "application/octet-stream")

    def _languages(self, fields: Fields) -> tuple[str | None, str]:
        """Return the languages; no source where it is to be found out."""
        names = {name: fields.text(name, "") for name in ("source", "target")}
        for name, code in names.items():
            if not code:
                raise MissingField(name)
        catalogue = self.service.catalogue
        src = None
        if names["source"].lower() != AUTO:
            src = served_language(catalogue, names["source"], "source")
        return src, served_language(catalogue, names["target"], "target")


def _known(code: str) -> str:
    """Return the code of a language, empty for an unknown one."""
    return "" if code == UNKNOWN else code


def divided(upload: Upload) -> tuple[str, TextDocument, str]:
    """Return the format of an uploaded text, its segments, and its encoding.

    Raises InvalidRequest for what is not divided into texts by the format alone.
    """
    try:
        row = format_of(upload.name)
        if row.read is None:
            raise InvalidRequest(
                f"{row.name} is not translated text by text; POST the file to /translate_file"
            )
        content = upload.file.read()
        document = row.open(content, Reading("the file"))
        text = row.read(decode_file(content, "the file"))
    except UsageError as error:
        raise InvalidRequest(_without_name(error, upload.name), "file") from None
    assert isinstance(document, FileDocument)
    return row.name, text, document.encoding


def _without_name(error: UsageError, name: str) -> str:
    """Return the message of an error, which names the file, without that name."""
    return str(error).replace(name, "the file")


def _name_in(name: str, language: str) -> str:
    """Return the name of the translation: `letter_de.txt` for `letter.txt`."""
    path = PurePath(name)
    return f"{path.stem}_{language}{path.suffix}"
