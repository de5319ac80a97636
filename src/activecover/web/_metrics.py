"""Figures for Prometheus, in its text format."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts and durations of requests.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.observe("GET", "/health", 200, 0.001)
    >>> print(metrics.text([]).splitlines()[2])
    activecover_requests_total{method="GET",route="/health",status="200"} 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        place = next((i for i, edge in enumerate(_BUCKETS) if seconds <= edge), len(_BUCKETS))
        with self._lock:
            self._counts[method, route, status] += 1
            self._buckets[route][place] += 1
            self._seconds[route] += seconds

    def text(self, campaigns: Iterable[tuple[str, Mapping[str, int]]]) -> str:
        """All of it, with the counts of campaigns."""
        lines = [
            "# HELP activecover_requests_total Requests answered.",
            "# TYPE activecover_requests_total counter",
        ]
        with self._lock:
            for (method, route, status), count in sorted(self._counts.items()):
                marks = _marks(method=method, route=route, status=str(status))
                lines.append(f"activecover_requests_total{marks} {count}")
            lines += [
                "# HELP activecover_request_seconds Time to answer.",
                "# TYPE activecover_request_seconds histogram",
            ]
            for route, buckets in sorted(self._buckets.items()):
                total = 0
                for edge, count in zip([*map(str, _BUCKETS), "+Inf"], buckets, strict=True):
                    total += count
                    lines.append(f"activecover_request_seconds_bucket{_marks(route=route, le=edge)} {total}")
                lines.append(f"activecover_request_seconds_sum{_marks(route=route)} {self._seconds[route]:.6f}")
                lines.append(f"activecover_request_seconds_count{_marks(route=route)} {total}")
        lines += ["# HELP activecover_items Items of a campaign by state.", "# TYPE activecover_items gauge"]
        for name, counts in campaigns:
            lines += [f"activecover_items{_marks(campaign=name, state=key)} {value}" for key, value in counts.items()]
        return "\n".join(lines) + "\n"


def _marks(**labels: str) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + inside + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
