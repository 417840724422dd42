"""Options of a server that would do nothing as they are written; they are refused at its start."""

import os
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_network
from pathlib import Path

from weft.errors import UsageError

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+/?", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9._-]+", re.IGNORECASE)
_ANY = "*"
_HIDDEN = "null"  # what a browser calls a page that is a file


def refuse_idle_options(
    origins: Iterable[str],
    hosts: Iterable[str],
    proxies: Iterable[str],
    suggestions: Path | None,
) -> None:
    """Raise UsageError for the first option that nothing could ever match."""
    for origin in origins:
        if origin not in (_ANY, _HIDDEN) and not _ORIGIN.fullmatch(origin):
            raise UsageError(
                f"--cors-origin {origin}: give the scheme and the name, without a path, as in https://example.org"
            )
    for host in hosts:
        if host != _ANY and not _is_name(host):
            raise UsageError(
                f"--allow-host {host}: give the name alone, without scheme, port and path, as in example.org"
            )
    for proxy in proxies:
        if proxy != _ANY and not _is_address(proxy):
            raise UsageError(
                f"--proxy {proxy}: give the proxy's address, as in 127.0.0.1, or its network, as in 172.17.0.0/16"
            )
    if suggestions is not None:
        _refuse_closed_folder(suggestions)


def _is_name(host: str) -> bool:
    """Return whether a Host header can have this name; an address is one too."""
    return bool(_NAME.fullmatch(host)) or _is_read(ip_address, host.strip("[]"))


def _is_address(proxy: str) -> bool:
    return _is_read(ip_network if "/" in proxy else ip_address, proxy)


def _is_read(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _refuse_closed_folder(path: Path) -> None:
    """Raise UsageError where the files of suggestions cannot be written beside a path."""
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"--suggestions {path}: there is no folder {folder}; make it")
    if path.is_dir():
        raise UsageError(
            f"--suggestions {path}: that is a folder; name a file in it, as in {path / 'corrections.tsv'}"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"--suggestions {path}: this user may not write in {folder}; name another folder"
        )
