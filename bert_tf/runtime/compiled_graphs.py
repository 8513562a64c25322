"""The compiled graphs of a model, which can be dropped one by one: each holds weights that the engine has packed."""

import collections
import contextlib
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any


class CompiledGraphs:
    """Compiled graphs by their kinds, the one that was used longest ago first.

    Args:
        bytes_of_one: callable () -> about the bytes of a graph.

    Attributes:
        lock: it is held while a graph is compiled or runs. None is dropped meanwhile.
    """

    def __init__(self, bytes_of_one: Callable[[], int]) -> None:
        self.lock, self._bytes_of_one, self._changing = threading.Lock(), bytes_of_one, threading.Lock()
        self._graphs: collections.OrderedDict[Hashable, tuple[Any, float]] = collections.OrderedDict()

    def __contains__(self, kind: Hashable) -> bool:
        return kind in self._graphs

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._graphs)

    def __getitem__(self, kind: Hashable) -> Any:
        return self._graphs[kind][0]

    @property
    def nbytes(self) -> int:
        """About the bytes of all graphs."""
        return len(self._graphs) * self._bytes_of_one()

    @contextlib.contextmanager
    def using(self, kind: Hashable, make: Callable[[], Any]) -> Iterator[Any]:
        """Use the graph of a kind in this block, alone; `make()` compiles it if there is none."""
        with self.lock:
            graph = self[kind] if kind in self else make()
            try:
                yield graph
            finally:
                with self._changing:
                    self._graphs[kind] = graph, time.monotonic()
                    self._graphs.move_to_end(kind)

    def latest(self) -> float:
        """When a graph was used last, by `time.monotonic`; minus infinity if there is none."""
        with self._changing:
            return next(reversed(self._graphs.values()))[1] if self._graphs else -math.inf

    def oldest(self) -> float | None:
        """When the graph was used that `drop_oldest` drops, by `time.monotonic`; None if it drops none."""
        with self._changing:
            return next(iter(self._graphs.values()))[1] if self._graphs and not self.lock.locked() else None

    def drop_oldest(self) -> None:
        """Drop the graph that was used longest ago, unless one runs. It is compiled again when it is needed."""
        if self.lock.acquire(blocking=False):
            try:
                with self._changing:
                    if self._graphs:
                        self._graphs.popitem(last=False)
            finally:
                self.lock.release()
