"""The start of a server: folders, limits and keys to an application that listens."""

import ctypes
import gc
import os
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from weft.serve.app import Settings, build_app
from weft.serve.catalogue import (
    Catalogue,
    Named,
    ServedModel,
    named,
    of_directions,
    open_model,
    remembering,
)
from weft.serve.dialects.every import every_dialect
from weft.serve.files import page_routes
from weft.serve.glossaries import open_glossaries
from weft.serve.keys import Keys, is_loopback, refuse_open_door
from weft.serve.limits import Limits
from weft.serve.listening import bound_sockets, listen
from weft.serve.memories import open_memories
from weft.serve.options import refuse_idle_options
from weft.serve.pool import Pool
from weft.serve.service import Service

Say = Callable[[str], None]

# made since the last garbage collection, before there is a next one
_OBJECTS = 5_000
# seconds at least from one return of free memory to the system to the next
_RETURN_EVERY = 60.0


@dataclass(frozen=True)
class Plan:
    """The folders and options of a server."""

    folders: Sequence[str]  # FOLDER or NAME=FOLDER
    host: str = "127.0.0.1"
    ports: Sequence[int] = (5000,)
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    keys: Path | None = None
    is_open: bool = False  # whether other machines may use it without a key
    hosts: Sequence[str] = ()  # other names of this machine
    origins: Sequence[str] = ()  # web pages that may use it
    proxies: Sequence[str] = ()
    drain_seconds: float = 30.0
    pivot: str = ""  # the language over which pairs without a model are translated
    show_samples: bool = False  # of the runs that made the models
    glossaries: Sequence[str] = ()  # FILE, NAME=FILE or NAME:en-de=FILE
    memories: Sequence[str] = ()  # FILE or en-de=FILE
    suggestions: Path | None = None  # better translations that people send
    opens_page: bool = False  # in a browser


def start(plan: Plan, say: Say) -> None:
    """Serve until a signal comes.

    Raises UsageError, and the errors of `weft.load`, before anything is served.
    """
    refuse_open_door(plan.host, plan.keys, plan.is_open)
    refuse_idle_options(plan.origins, plan.hosts, plan.proxies, plan.suggestions)
    asked = [one for each in named(plan.folders) for one in of_directions(each)]
    keys = Keys(plan.keys) if plan.keys else None
    sockets = bound_sockets(plan.host, plan.ports)
    try:
        # no list of them is kept: one that is replaced would stay in memory
        catalogue = Catalogue(
            [opened(one, plan.limits.max_beam, say) for one in asked], plan.pivot
        )
        _remember(catalogue, plan.memories, say)
        service = Service(
            catalogue,
            Pool(plan.threads, plan.limits.max_waiting),
            plan.limits,
            open_glossaries(plan.glossaries, catalogue.pairs(), say),
        )
        settings = Settings(_hosts(plan), tuple(plan.origins), keys)
        pages = page_routes(catalogue, plan.show_samples)
        app = build_app(
            service, every_dialect(plan.suggestions, keys is not None), settings, pages
        )
        _collect_often()
        _return_memory()
        announce = partial(_announce, plan, sockets, say)
        listen(
            app, service, sockets, plan.drain_seconds, plan.proxies, say, keys, announce
        )
    finally:
        for one in sockets:
            one.close()


def _remember(catalogue: Catalogue, words: Sequence[str], say: Say) -> None:
    """Give each translator the memory of its languages, if there is one."""
    models = list(catalogue.of("translation"))
    forms: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for model in models:
        known = forms.setdefault((model.src, model.tgt), [])
        known.append(model.predictor.kept_forms)
    memories = open_memories(words, forms, say)
    for model in models:
        memory = memories.get((model.src, model.tgt))
        catalogue.replace(remembering(model, memory))


def _collect_often() -> None:
    """Look for garbage often from here on, but not among what was made until now, which stays.

    Much garbage at a time lies between what lives, and the heap grows for hours.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS)


def _return_memory() -> None:
    """Return to the system, after collections, what is free between what lives.

    Where the C library cannot (it is not glibc), nothing is done.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim = getattr(library, "malloc_trim", None)
    if trim is None:
        return
    last = time.monotonic()

    def returned(phase: str, info: dict[str, int]) -> None:
        nonlocal last
        is_due = time.monotonic() - last >= _RETURN_EVERY
        if phase == "stop" and info["generation"] and is_due:
            last = time.monotonic()
            trim(0)

    gc.callbacks.append(returned)


def _announce(plan: Plan, sockets: Sequence[socket.socket], say: Say) -> None:
    """Say where the server is, and open its page if that was asked for."""
    for line in _addresses(plan.host, sockets):
        say(line)
    if plan.opens_page:
        _open_page(sockets[0].getsockname()[1])


def _open_page(port: int) -> None:
    """Open the page in a browser, as soon as it is served, where there is a screen."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    if has_screen:
        page = f"http://localhost:{port}/"
        threading.Thread(target=webbrowser.open, args=[page]).start()


def opened(asked: Named, max_beam: int, say: Say) -> ServedModel:
    """Open a model, and say what computes it, and whether its languages may be told wrongly."""
    model = open_model(asked, max_beam)
    say(model.described())
    if model.doubt:
        say(model.doubt)
    return model


def _hosts(plan: Plan) -> tuple[str, ...]:
    """Return the names that the server goes by; addresses need no name."""
    return ("localhost", socket.gethostname(), plan.host, *plan.hosts)


def _is_any(address: str) -> bool:
    """Return whether an address stands for all of a machine, which no browser opens."""
    return address in ("0.0.0.0", "::")


def _page(address: str, port: int) -> str:
    """Return the address of the page, as a browser on this machine opens it."""
    if _is_any(address):
        address = "localhost"
    shown = f"[{address}]" if ":" in address else address
    return f"http://{shown}:{port}/"


def _own_address() -> str:
    """Return the address by which other machines of the network reach this one; "" without a
    network. A datagram's socket names it when it is connected: nothing is sent.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # a host that is nowhere (RFC 5737)
        except OSError:
            return ""
        address: str = asking.getsockname()[0]
    return "" if is_loopback(address) else address


def _addresses(host: str, sockets: Sequence[socket.socket]) -> list[str]:
    """Return the lines that say where the server is."""
    first, *others = [listener.getsockname()[:2] for listener in sockets]
    lines = [f"open {_page(*first)}"]
    if _is_any(first[0]) and (own := _own_address()):
        lines.append(f"from other machines: {_page(own, first[1])}")
    lines += [f"also for OPUS-CAT: {_page(*other)}MtRestService/" for other in others]
    if not is_loopback(host):
        lines.append(
            "other machines can reach it: put a proxy with TLS in front, as docs/serving.md shows"
        )
    return lines
