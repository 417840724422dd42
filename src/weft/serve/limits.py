"""The limits of the server, all of them on unless they are raised."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that one request, and all of them, may ask for."""

    max_body: int = 2 * 2**20  # bytes
    max_file: int = 10 * 2**20  # bytes
    max_texts: int = 1000  # of a request
    max_text: int = 20_000  # characters of one text
    max_characters: int = 200_000  # of a request
    max_beam: int = 8
    max_alternatives: int = 5
    max_new_tokens: int = 1024
    max_n: int = 8
    max_waiting: int = 20_000  # rows of all requests
    max_inspect_tokens: int = 128
    deadline: float = 60.0  # seconds
    requests_per_minute: int | None = None  # of one client
