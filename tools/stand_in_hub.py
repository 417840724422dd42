"""A server that stands in for the Hugging Face Hub, for tests of what goes there: it keeps what it
gets, and gives it back to the Hub's own library.

It has the few answers that huggingface_hub asks for (version 2.4, without Xet): who a token is of,
making a repository, looking at it, and one commit of small and of large files.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from served import in_thread
from weft.ship.licenses import KNOWN, OTHER

_LARGE = 2_000  # bytes from which on a file is kept by its hash; there it is 10 million
_REPOSITORY = "{owner}/{name}"
_ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass
class Kept:
    """A repository: its commits by their hashes, the newest last, each with all of its files."""

    is_private: bool
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: dict[str, bytes], message: str) -> str:
        """Add a commit; return its hash."""
        said = f"{len(self.commits)} {message} {sorted(files)}"
        oid = hashlib.sha1(said.encode()).hexdigest()
        self.commits[oid] = dict(files)
        self.messages.append(message)
        return oid

    @property
    def newest(self) -> str:
        """The hash of the newest commit."""
        return [*self.commits][-1]

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the newest commit, without the Hub's own."""
        found = dict(self.commits[self.newest])
        del found[".gitattributes"]
        return found


@dataclass
class StandInHub:
    """All that the Hub knows. `faults` are statuses that it answers with, by a pattern of method
    and path; such an answer repeats the token, as a careless server might. `ignored` are files that
    a `.gitignore` there leaves out; `damages` changes what it keeps.
    """

    token: str
    user: str = "me"
    organizations: tuple[str, ...] = ("team",)
    repositories: dict[str, Kept] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    damages: bool = False
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def make(self, name: str, is_private: bool = True, **files: bytes) -> Kept:
        """Add a repository that has files."""
        kept = Kept(is_private)
        kept.commit({".gitattributes": _ATTRIBUTES, **files}, "initial commit")
        self.repositories[name] = kept
        return kept

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve until the block ends; give the address."""
        app = Starlette(routes=self._routes())
        config = uvicorn.Config(app, log_level="error", lifespan="off")
        with in_thread(config) as (host, port):
            self.address = f"http://{host}:{port}"
            yield self.address

    def _routes(self) -> list[Route]:
        api = "/api/models/" + _REPOSITORY
        table: list[tuple[str, str, Any]] = [
            ("GET", "/api/whoami-v2", self._who),
            ("POST", "/api/validate-yaml", self._validate),
            ("POST", "/api/repos/create", self._create),
            ("GET", api, self._look),
            ("GET", api + "/revision/{revision}", self._look),
            ("GET", api + "/tree/{revision}", self._tree),
            ("POST", api + "/preupload/{revision}", self._before_upload),
            ("POST", api + "/commit/{revision}", self._commit),
            ("POST", "/" + _REPOSITORY + ".git/info/lfs/objects/batch", self._batch),
            ("PUT", "/objects/{oid}", self._put),
            ("GET", "/" + _REPOSITORY + "/resolve/{revision}/{path:path}", self._get),
        ]
        return [
            Route(path, self._guarded(answer), methods=[method])
            for method, path, answer in table
        ]

    def _guarded(self, answer: Any) -> Any:
        """Answer with the fault that is planned, if there is one."""

        async def guarded(request: Request) -> Response:
            said = f"{request.method} {request.url.path}"
            self.asked.append(said)
            for pattern, status in self.faults.items():
                if re.search(pattern, said):
                    await request.body()
                    token = request.headers.get("authorization", "")
                    return JSONResponse({"error": f"no: {token}"}, status)
            found: Response = await answer(request)
            return found

        return guarded

    # Who asks, and for what
    # ----------------------------------------------------------------------------------

    def _is_owner(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {self.token}"

    def _asked_for(self, request: Request) -> Kept | None:
        """The repository of the request, if there is one that the token may see."""
        name = "{owner}/{name}".format(**request.path_params)
        kept = self.repositories.get(name)
        may_see = kept is not None and (not kept.is_private or self._is_owner(request))
        return kept if may_see else None

    async def _who(self, request: Request) -> Response:
        if not self._is_owner(request):
            return refused(401, "Invalid credentials in Authorization header")
        named = [{"name": name} for name in self.organizations]
        return JSONResponse({"type": "user", "name": self.user, "orgs": named})

    async def _validate(self, request: Request) -> Response:
        """Find what is wrong with the head of a card: here, its license."""
        content = (await request.json())["content"]
        _, head, *_ = content.split("---\n")
        facts = yaml.safe_load(head)
        license = facts.get("license", "unknown")
        errors = []
        if license not in (*KNOWN, OTHER):
            errors.append({"message": f'"license" must be one of {KNOWN}'})
        if license == OTHER and not facts.get("license_name"):
            errors.append({"message": '"license_name" is missing'})
        if errors:
            return JSONResponse({"errors": errors, "warnings": []}, 400)
        return JSONResponse({"errors": [], "warnings": []})

    # A repository
    # ----------------------------------------------------------------------------------

    async def _create(self, request: Request) -> Response:
        asked = await request.json()
        owner = asked.get("organization") or self.user
        if not self._is_owner(request):
            return refused(401, "Invalid credentials in Authorization header")
        if owner not in (self.user, *self.organizations):
            return refused(403, "You don't have the rights to create a model there")
        name = f"{owner}/{asked['name']}"
        if name in self.repositories:
            return refused(409, "You already created this model repo")
        is_private = asked.get("visibility") == "private" or asked.get("private", False)
        self.make(name, is_private)
        return JSONResponse({"url": f"{self.address}/{name}", "name": name})

    async def _look(self, request: Request) -> Response:
        kept = self._asked_for(request)
        if kept is None:
            return refused(404, "Repository not found", "RepoNotFound")
        files = [{"rfilename": path} for path in kept.commits[kept.newest]]
        return JSONResponse(
            {
                "id": "{owner}/{name}".format(**request.path_params),
                "sha": kept.newest,
                "private": kept.is_private,
                "siblings": files,
                "tags": [],
                "downloads": 0,
                "likes": 0,
            }
        )

    async def _tree(self, request: Request) -> Response:
        kept = self._asked_for(request)
        if kept is None:
            return refused(404, "Repository not found", "RepoNotFound")
        revision = request.path_params["revision"]
        files = kept.commits.get(revision, kept.commits[kept.newest])
        return JSONResponse([entry_of(path, files[path]) for path in files])

    # A commit
    # ----------------------------------------------------------------------------------

    async def _before_upload(self, request: Request) -> Response:
        asked = (await request.json())["files"]
        return JSONResponse(
            {
                "files": [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if file["size"] >= _LARGE else "regular",
                        "shouldIgnore": file["path"] in self.ignored,
                        "oid": None,
                    }
                    for file in asked
                ]
            }
        )

    async def _batch(self, request: Request) -> Response:
        asked = (await request.json())["objects"]
        objects = []
        for one in asked:
            href = f"{self.address}/objects/{one['oid']}"
            objects.append({**one, "actions": {"upload": {"href": href, "header": {}}}})
        return JSONResponse({"transfer": "basic", "objects": objects})

    async def _put(self, request: Request) -> Response:
        content = await request.body()
        oid = request.path_params["oid"]
        if hashlib.sha256(content).hexdigest() != oid:
            return refused(400, "the content has another hash")
        self.objects[oid] = content
        return Response()

    async def _commit(self, request: Request) -> Response:
        kept = self._asked_for(request)
        if kept is None or not self._is_owner(request):
            return refused(403, "You don't have write access to this repo")
        files = dict(kept.commits[kept.newest])
        message = ""
        for line in (await request.body()).decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                message = value["summary"]
                if value.get("parentCommit", kept.newest) != kept.newest:
                    return refused(412, "A commit has happened since")
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
            else:
                del files[value["path"]]
        if self.damages:
            files = {path: content + b" " for path, content in files.items()}
        oid = kept.commit(files, message)
        url = "{owner}/{name}/commit/".format(**request.path_params) + oid
        return JSONResponse(
            {"success": True, "commitOid": oid, "commitUrl": f"{self.address}/{url}"}
        )

    async def _get(self, request: Request) -> Response:
        """Give a file back, with what the library wants to know of it."""
        kept = self._asked_for(request)
        if kept is None:
            return refused(404, "Repository not found", "RepoNotFound")
        content = kept.commits[kept.newest].get(request.path_params["path"])
        if content is None:
            return refused(404, "Entry not found", "EntryNotFound")
        etag = hashlib.sha256(content).hexdigest()
        headers = {"etag": f'"{etag}"', "x-repo-commit": kept.newest}
        return Response(content, headers=headers, media_type="application/octet-stream")


def entry_of(path: str, content: bytes) -> dict[str, Any]:
    """A file as the Hub lists it: a large one with its hash, any other with that of git."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    found: dict[str, Any] = {
        "type": "file",
        "path": path,
        "size": len(content),
        "oid": blob,
    }
    if len(content) >= _LARGE:
        digest = hashlib.sha256(content).hexdigest()
        found["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
    return found


def refused(status: int, message: str, code: str = "") -> Response:
    """An answer as the Hub refuses."""
    headers = {"x-error-message": message}
    if code:
        headers["x-error-code"] = code
    return JSONResponse({"error": message}, status, headers)
