"""The compiled graphs of a model, which can be dropped one by one: each holds weights that the engine has packed."""

import collections
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any


class CompiledGraphs:
    """Compiled graphs by their kinds, the one that was used longest ago first.

    Args:
        bytes_of_one: callable () -> about the bytes of a graph.
        keep: int. How many of those that were used last are never dropped.

    Attributes:
        lock: to be held while a graph is compiled or runs. None is dropped meanwhile.
    """

    def __init__(self, bytes_of_one: Callable[[], int], keep: int = 0) -> None:
        self.lock, self._bytes_of_one, self._keep = threading.Lock(), bytes_of_one, keep
        self._changing = threading.Lock()
        self._graphs: collections.OrderedDict[Hashable, tuple[Any, float]] = collections.OrderedDict()

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._graphs)

    def __getitem__(self, kind: Hashable) -> Any:
        return self._graphs[kind][0]

    @property
    def nbytes(self) -> int:
        """About the bytes of all graphs."""
        return len(self._graphs) * self._bytes_of_one()

    def get_or_make(self, kind: Hashable, make: Callable[[], Any]) -> Any:
        """The graph of a kind; `make()` if there is none."""
        graph = self[kind] if kind in self._graphs else make()
        with self._changing:
            self._graphs[kind] = graph, time.monotonic()
            self._graphs.move_to_end(kind)
        return graph

    def oldest(self) -> float | None:
        """When the graph was used that `drop_oldest` drops, by `time.monotonic`; None if it drops none."""
        with self._changing:
            is_free = len(self._graphs) > self._keep and not self.lock.locked()
            return next(iter(self._graphs.values()))[1] if is_free else None

    def drop_oldest(self) -> None:
        """Drop the graph that was used longest ago, if one may be dropped. It is compiled again when it is needed."""
        if self.lock.acquire(blocking=False):
            try:
                with self._changing:
                    if len(self._graphs) > self._keep:
                        self._graphs.popitem(last=False)
            finally:
                self.lock.release()
