"""Counts and times of the requests, in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left

#: Upper bounds of the histogram of answer times, in seconds.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts requests by route and status, and how long they took. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, int], int] = {}
        self._times: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._inputs = 0
        self.waiting = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        with self._lock:
            self._requests[route, status] = self._requests.get((route, status), 0) + 1
            self._times.setdefault(route, [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def count_inputs(self, number: int) -> None:
        """Count the texts or pairs of a request."""
        with self._lock:
            self._inputs += number

    def text(self, models: list[str]) -> str:
        """All numbers, with the names of the models in memory."""
        with self._lock:
            lines = ["# TYPE bert_tf_requests_total counter"]
            for (route, status), number in sorted(self._requests.items()):
                lines.append(f'bert_tf_requests_total{{route="{route}",status="{status}"}} {number}')
            lines += ["# TYPE bert_tf_inputs_total counter", f"bert_tf_inputs_total {self._inputs}"]
            lines += ["# TYPE bert_tf_requests_in_progress gauge", f"bert_tf_requests_in_progress {self.waiting}"]
            lines += ["# TYPE bert_tf_models_loaded gauge", f"bert_tf_models_loaded {len(models)}"]
            lines.append("# TYPE bert_tf_request_seconds histogram")
            for route, counts in sorted(self._times.items()):
                total = 0
                for bound, number in zip((*_BOUNDS, "+Inf"), counts, strict=True):
                    total += number
                    lines.append(f'bert_tf_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
                lines.append(f'bert_tf_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'bert_tf_request_seconds_count{{route="{route}"}} {total}')
        return "\n".join(lines) + "\n"
