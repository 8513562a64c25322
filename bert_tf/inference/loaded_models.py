"""The models that a server has in memory, within its memory budget."""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import operator
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from bert_tf.parameters import parameter_counts
from bert_tf.resources.memory_budget import ByteStore, MemoryBudget, WeakValues

if TYPE_CHECKING:
    from bert_tf.config import BertConfig

_BYTES_PER_PARAMETER = 4
_TOGETHER = 1.0  # seconds between the graphs that one answer needs
_LEFT = 10.0  # seconds after which a graph makes room for something large, though the next answer may need it
# Where more than a fifth of the bound is missing, `room` waits six times as long: a container kills a server that takes
# too much.
_FAR, _TIMES_AS_LONG = 5, 6


class LoadedModels(ByteStore):
    """The loaded models: a `ByteStore` from (name, precision) to what `read` returns.

    The bytes of a model grow after it was stored: with the graphs that its engine compiles, and with its Keras model.
    What is dropped is a model or, if `drops_parts`, the workspace of a compiled graph, or a graph or the Keras model,
    which the model's last answer did not need. A model that is in use (`using`) is not dropped: that would free
    nothing. One that was dropped while somebody refers to it stays in memory until nobody does; until then it is taken
    back rather than read a second time.

    Args:
        budget: `MemoryBudget`.
        read: callable (name, precision) -> a `Bert`, or what holds one.
        expected: callable (name) -> about the bytes that a model will need, for which room is made before it is read.
        keep: int. How many of the models that were used last are never dropped.
        bert_of: callable (what `read` returned) -> its `Bert`.
        drops_parts: bool. Whether workspaces, graphs and Keras models can be dropped alone, also of the models that
            are kept.
        patience: float. Seconds that `room` waits at most, if not told otherwise; six times as long where more than a
                fifth of the budget's bound is missing.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        read: Callable[[str, str], Any],
        expected: Callable[[str], int] = lambda name: 0,
        keep: int = 2,
        bert_of: Callable[[Any], Any] = lambda bert: bert,
        drops_parts: bool = False,
        patience: float = 0.0,
    ) -> None:
        super().__init__(budget, size=lambda model: 0, keep=keep)
        self._read, self._expected, self._bert_of, self._loading = read, expected, bert_of, threading.RLock()
        self._drops_parts, self._patience = drops_parts, patience
        self._alive = WeakValues()
        self._users: collections.Counter[tuple[str, str]] = collections.Counter()
        self._keras_users: collections.Counter[tuple[str, str]] = collections.Counter()  # of those
        self._waiting: collections.Counter[tuple[str, str]] = collections.Counter()  # for room

    @property
    def bytes(self) -> int:
        """The bytes of all models; weights that several precisions share count once."""
        berts = self._berts()
        weights = {id(bert.weights): bert.weights for bert in berts}
        return sum(one.held_bytes for one in weights.values()) + sum(bert.compiled_bytes for bert in berts)

    def oldest(self) -> float | None:
        """When the model or the part was used that is dropped next; None if none may be dropped."""
        times = [super().oldest(), *(used_at for used_at, _ in self._parts())]
        return min((used_at for used_at in times if used_at is not None), default=None)

    def drop_oldest(self) -> None:
        """Drop the model or the part that was used longest ago, if one may be dropped."""
        model = super().oldest()
        used_at, drop_part = min(self._parts(), key=operator.itemgetter(0), default=(math.inf, None))
        if drop_part is not None and (model is None or used_at < model):
            drop_part()
        else:
            super().drop_oldest()

    def drop_in_need(self) -> bool:
        """Drop the part that was used longest ago of those not in use, though its model's last answer needed it.

        A Keras model goes first, which is several times as large as a graph; then a graph that nobody has used for ten
        seconds. Each is made again in a second or two.
        """
        with self._lock:
            berts = self._berts() if self._drops_parts else []
            graphs = [(one.oldest(), one.drop_oldest) for bert in berts for one in bert.graphs]
            parts = _used_before(math.inf, map(self._built, berts))
            parts = parts or _used_before(time.monotonic() - _LEFT, graphs)
            if parts:
                min(parts, key=operator.itemgetter(0))[1]()
            return bool(parts)

    def _parts(self):
        """(when it was used, callable () that drops it) for each workspace, graph and Keras model that may be dropped
        next."""
        parts = []
        for bert in self._berts() if self._drops_parts else ():
            needed = max((graphs.latest() for graphs in bert.graphs), default=-math.inf) - _TOGETHER
            workspaces = [(graphs.oldest_workspace(), graphs.free_oldest) for graphs in bert.graphs]
            graphs = [(graphs.oldest(), graphs.drop_oldest) for graphs in bert.graphs]
            parts += _used_before(math.inf, workspaces) + _used_before(needed, [*graphs, self._built(bert)])
        return parts

    def _built(self, bert):
        """(when the Keras model of a `Bert` was used last, callable () that drops it); None for the time if there is
        none, or any precision uses it now."""
        weights = bert.weights
        is_in_use = any(one.weights is weights and self._keras_users[key] > 0 for key, one in self._alive_berts())
        used_at = None if is_in_use else getattr(weights, "model_used_at", None)
        return used_at, functools.partial(self._drop_built, weights)

    def _drop_built(self, weights):
        """Drop the Keras model of these weights, which the models of all precisions share."""
        for _, bert in self._alive_berts():
            if bert.weights is weights:
                bert.drop_model()

    def _alive_berts(self):
        return [(key, self._bert_of(model)) for key, model in self._alive.items()]

    def _berts(self):
        with self._lock:
            return [self._bert_of(entry.value) for entry in self._entries.values()]

    def load(self, name: str, precision: str) -> Any:
        """The model of this name and precision; models are read one at a time."""
        model = self.get((name, precision))
        if model is None:
            with self._loading:
                model = self.get((name, precision))  # another thread has read it in the meantime
                if model is None:
                    model = self._alive.get((name, precision))
                    if model is None:
                        with self.room(self._expected(name), name, precision):
                            model = self._read(name, precision)
                            self._alive.put((name, precision), model)
                    self.put((name, precision), model)
        return model

    @contextlib.contextmanager
    def room(
        self,
        size: int,
        name: str,
        precision: str,
        patience: float | None = None,
        waiting: Callable[[], Any] = lambda: None,
    ) -> Iterator[None]:
        """Room in the budget for ``size`` more bytes of this model, see `MemoryBudget.room`.

        Where there is none, it is waited for while another model is in use, as that may be dropped afterwards. Whoever
        uses a model and waits for room too is not waited for.

        Args:
            patience: float. The most seconds to wait; None for those of the store.
            waiting: callable (). It is called again and again meanwhile, and may raise an error to end the waiting.
        """
        own = name, precision
        since = time.monotonic()

        def waits(missing):
            waiting()
            others = any(users > self._waiting[key] for key, users in list(self._users.items()) if key != own)
            is_far = missing > self._budget.most_bytes // _FAR
            seconds = self._patience * (_TIMES_AS_LONG if is_far else 1) if patience is None else patience
            return others and time.monotonic() < since + seconds

        with contextlib.ExitStack() as stack:
            with self._counted(self._waiting, own):
                stack.enter_context(self._budget.room(size, waits))
            yield

    @contextlib.contextmanager
    def using(self, name: str, precision: str, keras: bool = True) -> Iterator[None]:
        """Keep this model from being dropped in this block; `keras`: its Keras model too, which passes of OpenVINO do
        not need.
        """
        with contextlib.ExitStack() as stack:
            for counter in (self._users, self._keras_users) if keras else (self._users,):
                stack.enter_context(self._counted(counter, (name, precision)))
            yield

    @contextlib.contextmanager
    def _counted(self, counter, key):
        with self._lock:
            counter[key] += 1
        try:
            yield
        finally:
            with self._lock:
                counter[key] -= 1

    def _is_in_use(self, key):
        return self._users[key] > 0

    def with_name(self, name: str) -> Any | None:
        """A model of this name in memory, in any precision; None if there is none."""
        return next((model for (one, _), model in self._alive.items() if one == name), None)

    def names(self) -> list[str]:
        """The names of the models in memory, the one that was used longest ago first."""
        with self._lock:
            return [name for name, _ in cast("list[tuple[str, str]]", list(self._entries))]


def _used_before(until, parts):
    """The (when it was used, callable () that drops it) with a time, not None, before ``until``."""
    return [(used_at, drop) for used_at, drop in parts if used_at is not None and used_at < until]


def expected_bytes(config: BertConfig | None) -> int:
    """The weights in eight bits and one compiled graph, as most shipped models need them; 0 without a config."""
    return _BYTES_PER_PARAMETER * parameter_counts(config)["total"] if config else 0
