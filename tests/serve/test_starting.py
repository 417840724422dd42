"""What a server says of its addresses when it starts."""

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from weft.serve import starting


def addresses(host: str, *listening: tuple[str, int]) -> list[str]:
    sockets: list[Any] = [
        SimpleNamespace(getsockname=lambda pair=pair: pair) for pair in listening
    ]
    return starting._addresses(host, sockets)


def test_the_address_of_the_start_can_be_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = addresses("127.0.0.1", ("127.0.0.1", 5000), ("127.0.0.1", 8500))
    assert own == [
        "open http://127.0.0.1:5000/",
        "also for OPUS-CAT: http://127.0.0.1:8500/MtRestService/",
    ]
    monkeypatch.setattr(starting, "_own_address", lambda: "10.1.2.3")
    for everywhere in ("0.0.0.0", "::"):
        first, second, proxy = addresses(everywhere, (everywhere, 5000))
        assert first == "open http://localhost:5000/"
        assert second == "from other machines: http://10.1.2.3:5000/"
        assert "TLS" in proxy
    monkeypatch.setattr(starting, "_own_address", lambda: "")
    assert len(addresses("0.0.0.0", ("0.0.0.0", 5000))) == 2
    assert addresses("::1", ("::1", 5000)) == ["open http://[::1]:5000/"]


def test_a_server_looks_for_garbage_often_but_not_among_what_stays() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(100_000)
        starting._collect_often()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] == 5_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@pytest.mark.skipif(sys.platform != "linux", reason="no glibc here")
def test_free_memory_is_returned_after_collections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "_RETURN_EVERY", 0.0)
    before = gc.callbacks.copy()
    returned = []

    class Library:
        @staticmethod
        def malloc_trim(pad: int) -> None:
            returned.append(pad)

    monkeypatch.setattr(starting.ctypes, "CDLL", lambda _: Library)
    try:
        starting._return_memory()
        gc.collect()
    finally:
        gc.callbacks[:] = before
    assert returned == [0]
