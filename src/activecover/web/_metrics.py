"""Figures for Prometheus, in its text format."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
#: All but the times at which each was first seen, which the client would add.
_NAMES = [
    "activecover_requests_total",
    *(f"activecover_request_seconds_{part}" for part in ("bucket", "sum", "count")),
    "activecover_items",
]


class Metrics:
    """Counts and durations of requests.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.observe("GET", "/health", 200, 0.001)
    >>> 'activecover_requests_total{method="GET",route="/health",status="200"} 1.0' in metrics.text([]).splitlines()
    True
    """

    def __init__(self) -> None:
        # Not the client's own registry: one process may have several servers.
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "activecover_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "activecover_request_seconds", "Time to answer.", ["route"], buckets=_BUCKETS, registry=registry
        )
        self._items = Gauge(
            "activecover_items", "Items of a campaign by state.", ["campaign", "state"], registry=registry
        )
        self._writing = threading.Lock()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, campaigns: Iterable[tuple[str, Mapping[str, int]]]) -> str:
        """Everything, with the counts of some campaigns."""
        with self._writing:
            self._items.clear()
            for name, counts in campaigns:
                for state, count in counts.items():
                    self._items.labels(name, state).set(count)
            return generate_latest(self._registry.restricted_registry(_NAMES)).decode()
