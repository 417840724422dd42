"""The limits of the server. All of them are on by default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that a request may ask, how long it may take, and how much may wait at all."""

    max_body: int = 2 * 2**20  # bytes of a body, without its files
    max_file: int = 10 * 2**20  # bytes of a file
    max_texts: int = 1000  # of a request
    max_text: int = 20_000  # characters of a text
    max_characters: int = 200_000  # of all texts of a request
    max_terms: int = 1000  # of a glossary that comes with a request
    max_beam: int = 8
    max_alternatives: int = 5
    max_new_tokens: int = 1024
    max_n: int = 8
    max_inspect_tokens: int = 128
    max_waiting: int = 20_000  # rows that wait, of all clients
    requests_per_minute: int | None = None  # of a client
    deadline: float = 60.0  # seconds from the head of a request to its answer

    # Of a connection, in seconds: a client that is slower than this is not waited for.
    head_seconds: float = 10.0  # for the head of a request
    body_seconds: float = 60.0  # for its body
    idle_seconds: float = 30.0  # between two requests
    write_seconds: float = 30.0  # in which the client reads nothing of an answer
    max_head: int = 64 * 2**10  # bytes of a head, where some clients put a text
    max_connections: int = 1000


def shown_size(num_bytes: int) -> str:
    """Return a size as messages show it, `10 MiB`, as the options have it; below one in bytes."""
    mebibytes = num_bytes / 2**20
    return f"{mebibytes:.4g} MiB" if mebibytes >= 1 else f"{num_bytes} bytes"
