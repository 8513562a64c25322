"""The compiled graphs of a model, which can be dropped one by one: each holds weights that the engine has packed.

A graph keeps a workspace from its last run, for the next one: memory for attention maps and for intermediate results.
It can be freed alone.
"""

import collections
import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any


class CompiledGraphs:
    """Compiled graphs by their kinds, the one that was used longest ago first.

    Args:
        bytes_of: callable (kind) -> about the bytes of its graph.
        lane_of: callable (kind) -> its lane. Graphs of one lane run one after the other, those of several lanes at the
            same time.
        room: callable (bytes of a graph) -> context manager, in which it is compiled.
        free: callable (kind, graph), which frees the workspace of a graph that does not run.
    """

    def __init__(
        self,
        bytes_of: Callable[[Hashable], int],
        lane_of: Callable[[Hashable], Hashable] = lambda kind: None,
        room: Callable[[int], contextlib.AbstractContextManager] = contextlib.nullcontext,
        free: Callable[[Hashable, Any], None] = lambda kind, graph: None,
    ) -> None:
        self._running: dict[Hashable, threading.Lock] = {}  # of each lane; held while a graph is compiled or runs
        self._changing = threading.Lock()
        self._bytes_of, self._lane_of, self._room, self._free = bytes_of, lane_of, room, free
        self._in_use: dict[Hashable, Hashable] = {}  # the kind of the graph of each lane that is compiled or runs
        self._graphs: collections.OrderedDict[Hashable, _Entry] = collections.OrderedDict()

    def __contains__(self, kind: Hashable) -> bool:
        return kind in self._graphs

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._graphs)

    def __getitem__(self, kind: Hashable) -> Any:
        return self._graphs[kind].graph

    @property
    def nbytes(self) -> int:
        """About the bytes of all graphs."""
        with self._changing:
            return sum(map(self._bytes_of, self._graphs))

    @contextlib.contextmanager
    def using(self, kind: Hashable, make: Callable[[], Any]) -> Iterator[Any]:
        """Use the graph of a kind in this block, alone in its lane; `make()` compiles it if there is none."""
        lane = self._lane_of(kind)
        with self._running.setdefault(lane, threading.Lock()):
            with self._changing:
                self._in_use[lane] = kind
                graph = self._graphs[kind].graph if kind in self._graphs else None
            try:
                if graph is None:
                    with self._room(self._bytes_of(kind)):
                        graph = make()
                yield graph
            finally:
                with self._changing:
                    del self._in_use[lane]
                    if graph is not None:
                        self._graphs[kind] = _Entry(graph, time.monotonic())
                        self._graphs.move_to_end(kind)

    def latest(self) -> float:
        """When a graph was used last, by `time.monotonic`; minus infinity if there is none."""
        with self._changing:
            return next(reversed(self._graphs.values())).used_at if self._graphs else -math.inf

    def oldest(self) -> float | None:
        """When the graph was used that `drop_oldest` drops, by `time.monotonic`; None if it drops none."""
        with self._changing:
            kind = self._idle()
            return None if kind is None else self._graphs[kind].used_at

    def drop_oldest(self) -> None:
        """Drop the graph that was used longest ago and does not run. It is compiled again when it is needed."""
        with self._changing:
            kind = self._idle()
            if kind is not None:
                del self._graphs[kind]

    def oldest_workspace(self) -> float | None:
        """When the graph was used whose workspace `free_oldest` frees, by `time.monotonic`; None if it frees none."""
        with self._changing:
            kind = self._idle(has_workspace=True)
            return None if kind is None else self._graphs[kind].used_at

    def free_oldest(self) -> None:
        """Free the workspace of the graph that was used longest ago of those that have one and do not run."""
        with self._changing:
            kind = self._idle(has_workspace=True)
            if kind is not None:
                self._graphs[kind].has_workspace = False
                self._free(kind, self._graphs[kind].graph)

    def _idle(self, has_workspace=False):
        """The kind that was used longest ago of those that do not run; with `has_workspace` of those that have one."""
        running = self._in_use.values()
        graphs = self._graphs.items()
        kinds = (kind for kind, entry in graphs if kind not in running and entry.has_workspace >= has_workspace)
        return next(kinds, None)


@dataclasses.dataclass
class _Entry:
    graph: Any
    used_at: float
    has_workspace: bool = True
