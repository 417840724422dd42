"""Applications that a thread of this process serves, for tests that take a real socket."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def in_thread(config: uvicorn.Config, port: int = 0) -> Iterator[tuple[str, int]]:
    """Serve until the block ends, at a port of this machine or a free one; give the address."""
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()
