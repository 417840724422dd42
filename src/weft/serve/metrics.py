"""The numbers of the server, for Prometheus, under the names that vLLM gave such numbers.

Labels are methods, routes as the program writes them, statuses and reasons: never a text, a key or
an address.
"""

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from weft.serve.pool import Load
from weft.serve.visits import NO_ROUTE, Visit

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """The numbers of one server."""

    def __init__(self, load: Callable[[], Load]) -> None:
        """Begin at zero; the function counts the work of now."""
        # when each series began: of no use, and twice the size
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.registry.register(_Now(load))
        self._requests = Counter(
            "weft:http_requests",
            "Requests answered, by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._ended = Counter(
            "weft:request_success",
            "Requests that a model worked for, by why they ended.",
            ("finished_reason",),
            registry=self.registry,
        )
        self._prompt_tokens = self._counter("prompt_tokens", "Tokens read.")
        self._generation_tokens = self._counter("generation_tokens", "Tokens written.")
        self._latency = self._seconds(
            "e2e_request_latency", "From a request to the end of its answer."
        )
        self._first = self._seconds(
            "time_to_first_token", "From a request to its first token."
        )
        self._queue = self._seconds(
            "request_queue_time", "From a request to its first row's turn."
        )

    def _counter(self, name: str, about: str) -> Counter:
        return Counter(f"weft:{name}", about, registry=self.registry)

    def _seconds(self, name: str, about: str) -> Histogram:
        return Histogram(
            f"weft:{name}_seconds", about, registry=self.registry, buckets=_SECONDS
        )

    def add(self, visit: Visit, route: str) -> None:
        """Count a request that is over."""
        method = visit.shown_method()
        self._requests.labels(method, route, str(visit.final_status())).inc()
        if route == NO_ROUTE or not visit.is_work:
            return
        self._ended.labels(visit.finished_reason()).inc()
        self._latency.observe(visit.seconds())
        self._prompt_tokens.inc(visit.tokens_read)
        self._generation_tokens.inc(visit.tokens_written)
        for histogram, moment in (
            (self._first, visit.first_token),
            (self._queue, visit.turn),
        ):
            if moment is not None:
                histogram.observe(max(0.0, moment - visit.began))

    def page(self) -> bytes:
        """Return the numbers as Prometheus reads them."""
        return generate_latest(self.registry)


class _Now(Collector):
    """The work of now."""

    def __init__(self, load: Callable[[], Load]) -> None:
        self._load = load

    def collect(self) -> Iterator[GaugeMetricFamily]:
        load = self._load()
        for name, about, count in (
            ("requests_running", "Requests worked on.", load.requests_running),
            ("requests_waiting", "Requests that wait.", load.requests_waiting),
            ("rows_running", "Texts or parts worked on.", load.rows_running),
            ("rows_waiting", "Texts or parts that wait.", load.rows_waiting),
        ):
            yield GaugeMetricFamily(f"weft:num_{name}", about, count)
