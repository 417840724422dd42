"""The Hugging Face Hub, by its own library: one repository of models, and every failure in a line.

The token is the library's to find, in its environment or where `hf auth login` keeps it. It is in
no message.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from weft.errors import FolderError, UsageError, WeftError
from weft.folder.version import installed_version
from weft.ship.target import load

Content: TypeAlias = Path | bytes

_KEPT = ".gitattributes"  # the Hub's own, of every repository
_TOKEN = re.compile(r"\bhf_\w+")
_HIDDEN = "(the token)"
_HOW_TOKEN = "make one that may write at {address}/settings/tokens, then `hf auth login`, or set HF_TOKEN"
# what a refusal says to do, by its status
_REFUSALS = {
    401: f"the Hub does not accept the token: {_HOW_TOKEN}",
    402: "the Hub asks for payment, as its account has no room left",
    403: "the token may not write there: it needs the permission, and the owner is you or an organization of yours",
    404: "there is no such owner or repository, or the token may not see it",
    409: "it was made or changed by another at this moment: look at it, then give the command again",
    412: "it was made or changed by another at this moment: look at it, then give the command again",
    413: "the Hub finds it too large",
    429: "the Hub has had too many requests: wait some minutes",
}


@dataclass(frozen=True)
class Repository:
    """A repository that is there: its newest commit, its files but the Hub's own, and whether all
    may see it.
    """

    commit: str
    files: tuple[str, ...]
    is_public: bool


def refuse_malformed(name: str) -> None:
    """Raise UsageError for what can be no name of a repository."""
    try:
        load("huggingface_hub.utils").validate_repo_id(name)
    except ValueError:
        raise UsageError(
            f"{name!r:.120}: is no name of a repository; give OWNER/MODEL, or MODEL for one of your own, of letters, "
            "digits, '-', '_' and '.'"
        ) from None


class Hub:
    """The Hub, as who owns the token is known there. Raises UsageError where no token is found."""

    def __init__(self) -> None:
        self._library = load("huggingface_hub")
        self._errors = load("huggingface_hub.errors")
        self._token = ""
        self._address = "https://huggingface.co"
        with self._told("the Hugging Face Hub"):
            self._api = self._library.HfApi(
                token=True, library_name="weft", library_version=installed_version()
            )
            self._address = self._api.endpoint
            self._token = self._library.get_token() or ""
        if not self._token:
            how = _HOW_TOKEN.format(address=self._address)
            raise UsageError(f"no token of the Hugging Face Hub is found: {how}")
        load("huggingface_hub.utils").disable_progress_bars()

    def full_name(self, name: str) -> str:
        """Return a repository's name with its owner, by default the owner of the token.

        Raises FolderError where the Hub is not reached or does not accept the token.
        """
        with self._told("the Hugging Face Hub"):
            user = self._api.whoami()["name"]
        return name if "/" in name else f"{user}/{name}"

    def address(self, name: str) -> str:
        """Return where a person finds a repository."""
        return f"{self._address}/{name}"

    def look(self, name: str) -> Repository | None:
        """Return the repository of a name; None where there is none."""
        errors = self._errors
        with self._told(name):
            try:
                found = self._api.repo_info(name)
            except errors.GatedRepoError:
                raise FolderError(f"{name}: {_REFUSALS[403]}") from None
            except errors.RepositoryNotFoundError:
                return None
            names = (file.rfilename for file in found.siblings or ())
            files = tuple(name for name in names if name != _KEPT)
            return Repository(found.sha or "", files, not found.private)

    def create(self, name: str, is_public: bool) -> None:
        """Make a repository. Raises FolderError where the Hub refuses."""
        with self._told(name):
            self._api.create_repo(name, private=not is_public)

    def upload(
        self,
        name: str,
        files: Mapping[str, Content],
        message: str,
        before: Repository | None,
    ) -> str:
        """Make the files those of a repository, in one commit; return its address.

        What is there `before` goes, and must not have changed since. Raises FolderError where the
        Hub refuses, or has other files afterwards.
        """
        add = self._library.CommitOperationAdd
        operations = [add(path, _for_library(files[path])) for path in files]
        old = before.files if before is not None else ()
        delete = self._library.CommitOperationDelete
        operations += [delete(path) for path in old if path not in files]
        parent = before.commit if before is not None else ""
        with self._told(name):
            made = self._api.create_commit(
                name,
                operations,
                commit_message=message,
                parent_commit=parent or None,
            )
            there = list(
                self._api.list_repo_tree(name, recursive=True, revision=made.oid)
            )
        self._refuse_other(name, files, there)
        return str(made.commit_url)

    def _refuse_other(
        self, name: str, files: Mapping[str, Content], there: list[Any]
    ) -> None:
        """Raise FolderError where what a repository has is not what was sent."""
        found = {entry.path: entry for entry in there if hasattr(entry, "blob_id")}
        for path, content in files.items():
            if path not in found:
                raise FolderError(
                    f"{name}: {path} was sent and is not there; a .gitignore there may leave it out"
                )
            if not _is_same(found[path], content):
                raise FolderError(f"{name}: {path} is there, but not as it was sent")

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Raise what goes wrong as an error of Weft's own, in one line, without the token and
        without the library's traceback, which might have it.
        """
        try:
            yield
        except WeftError:
            raise
        except Exception as error:
            why = self._without_token(self._why(error))
            raise FolderError(f"{name}: {why}") from None

    def _without_token(self, text: str) -> str:
        """Return a text without the token, and without what else has its form: one that was made
        anew meanwhile.
        """
        if self._token:
            text = text.replace(self._token, _HIDDEN)
        return _TOKEN.sub(_HIDDEN, text)

    def _why(self, error: Exception) -> str:
        errors = self._errors
        if isinstance(error, errors.OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set: unset it to push"
        of_network = (errors.HTTPError, OSError)
        cause = error
        # an upload that failed is told by another error, which is caused by it
        while isinstance(cause.__cause__, Exception) and not isinstance(
            cause, of_network
        ):
            cause = cause.__cause__
        status = _status(cause)
        if status in _REFUSALS:
            return _REFUSALS[status].format(address=self._address)
        if status is not None and status >= 500:
            return f"the Hub has a fault of its own ({status}): try again later"
        if status is None and isinstance(cause, of_network):
            kind = type(cause).__name__
            return f"no connection to {self._address} ({kind}): look at the network, or at HF_ENDPOINT"
        said = getattr(cause, "server_message", None) or str(cause)
        words = " ".join(said.split())
        shown = "".join(filter(str.isprintable, words))[:200]
        return f"the Hub refuses: {shown or type(cause).__name__}"


def _status(error: BaseException) -> int | None:
    """Return the status of the answer that an error tells of; None where there was no answer."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _for_library(content: Content) -> str | bytes:
    return content if isinstance(content, bytes) else str(content)


def _is_same(entry: Any, content: Content) -> bool:
    """Return whether a file of a repository has this content, by its hash: a large one has that of
    its bytes, any other the one that git gives it.
    """
    if entry.lfs is not None:
        return str(entry.lfs.sha256) == _sha256(content)
    data = content if isinstance(content, bytes) else content.read_bytes()
    blob = b"blob %d\0" % len(data) + data
    return str(entry.blob_id) == hashlib.sha1(blob).hexdigest()


def _sha256(content: Content) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
