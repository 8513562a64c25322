"""A cache of values that all visitors share, in this process.

Streamlit's own caches do not serve for this: any visitor's browser may send its `clear_cache` message, which empties
`st.cache_resource` and `st.cache_data` for everybody.
"""

import collections
import functools
import threading
import time


def server_cache(function=None, *, max_entries=None, seconds=None):
    """Decorator: a value is computed once for its arguments; then all visitors get the same object.

    Several threads may call the function. Only one computes a value; the others wait for it. An error is not kept.
    ``function.clear()`` drops all values, also those that are being computed.

    Args:
        function: callable with hashable positional arguments.
        max_entries: how many values to keep, the least recently used go first; None for all.
        seconds: how long to keep a value; None for ever.
    """
    if function is None:
        return functools.partial(server_cache, max_entries=max_entries, seconds=seconds)
    values, guard = collections.OrderedDict(), threading.Lock()
    computing, clears = collections.defaultdict(threading.RLock), 0

    def kept(arguments):
        with guard:
            value, computed_at = values.get(arguments, (None, None))
            is_kept = computed_at is not None and (seconds is None or time.monotonic() - computed_at < seconds)
            if is_kept:
                values.move_to_end(arguments)
            return is_kept, value

    @functools.wraps(function)
    def cached(*arguments):
        is_kept, value = kept(arguments)
        if is_kept:
            return value
        with guard:
            lock = computing[arguments]
        with lock:
            is_kept, value = kept(arguments)  # another thread has computed it in the meantime
            if not is_kept:
                with guard:
                    clears_before = clears
                value = function(*arguments)
                with guard:
                    if clears != clears_before:
                        return value  # what it was computed from may have changed before it was cleared
                    values[arguments] = value, time.monotonic()
                    values.move_to_end(arguments)
                    while max_entries is not None and len(values) > max_entries:
                        computing.pop(values.popitem(last=False)[0], None)
            return value

    def clear():
        nonlocal clears
        with guard:
            clears += 1
            values.clear()

    cached.clear = clear
    return cached
