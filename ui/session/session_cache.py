"""What pages worked out last, kept for the visitor within a bound for each visit.

A place holds one value. The places that the page on the screen has used are left alone: it is drawn from them at every
press. Of the others the ones unused for longest are emptied when a visit holds more than ``max_session_megabytes``.
"""

import collections
import collections.abc
import dataclasses

import numpy as np
import streamlit as st

from ui.session import state

_SMALL = 1024  # bytes below which texts are not told apart when they stand in two places


class SessionCache:
    """The values of one visit, by place; the least used first.

    Args:
        most_bytes: that are held, but for what the current run has used.
    """

    def __init__(self, most_bytes):
        self._most, self._used = most_bytes, set()
        self._places = collections.OrderedDict()

    def begin(self):
        """A run begins: it has used nothing yet."""
        self._used.clear()

    def get(self, place, key, use=True):
        """(value,) of a place if it was made for ``key``, else None; ``use``: whether the run is drawn from it."""
        held = self._places.get(place)
        if held is None or held.key != key:
            return None
        if use:
            self._used.add(place)
            self._places.move_to_end(place)
        return (held.value,)

    def put(self, place, key, value, on_drop=None, used=True):
        """Hold a value; ``on_drop()`` is called when it is let go to make room; ``used`` as ``use`` of ``get``."""
        self._places[place] = _Entry(key, value, on_drop, array_bytes((key, value)))
        self._places.move_to_end(place)
        if used:
            self._used.add(place)
        self.make_room()

    def make_room(self):
        """Let go what the run has not used, the longest unused first, until the rest is within the bound."""
        for other in [one for one in self._places if one not in self._used]:
            if self.bytes <= self._most:
                return
            held = self._places.pop(other)
            if held.on_drop:
                held.on_drop()

    def drop(self, place):
        """Forget a place."""
        self._places.pop(place, None)

    @property
    def bytes(self):
        """Bytes of all that is held; what stands in several places counts once."""
        found = {}
        for held in self._places.values():
            found.update(held.array_bytes)
        return sum(found.values())


@dataclasses.dataclass(frozen=True, eq=False)
class _Entry:
    key: object
    value: object
    on_drop: object
    array_bytes: dict


def array_bytes(value):
    """Bytes of the arrays and texts in a value: dict from what tells an array or a long text to its bytes.

    Looks into sequences, dicts and dataclasses; a view of an array counts as the whole array, which it keeps.
    """
    found, seen, stack, small = {}, set(), [value], 0
    while stack:
        one = stack.pop()
        if isinstance(one, (str, bytes)):
            if len(one) < _SMALL:
                small += len(one)
            else:
                found[id(one)] = len(one)
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            found[id(one)] = one.nbytes
        elif hasattr(one, "numpy") and hasattr(one, "shape"):  # a tensor
            found[id(one)] = one.dtype.size * int(np.prod(one.shape))
        elif isinstance(one, collections.abc.Mapping):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, (tuple, list, set, frozenset)):
            stack += one
        elif dataclasses.is_dataclass(one) and not isinstance(one, type):
            stack += [getattr(one, field.name) for field in dataclasses.fields(one)]
    return {**found, object(): small}


def visitor_cache() -> SessionCache:
    """What is kept for this visitor."""
    if "_kept" not in st.session_state:
        st.session_state["_kept"] = SessionCache(state.limits().max_session_megabytes * 1_000_000)
    return st.session_state["_kept"]


def cached(name, key, make):
    """The value that ``make()`` gave for ``key``; made anew when the key is another.

    Args:
        name: of the place: one value is held under each.
        key: what the value depends on; anything that compares.
        make: callable () -> value.
    """
    held = visitor_cache().get(name, key)
    if held is None:
        # What the place holds goes before the new value is there: never both.
        visitor_cache().drop(name)
        held = (make(),)
        visitor_cache().put(name, key, held[0])
    return held[0]
