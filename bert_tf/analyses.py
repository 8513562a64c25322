"""The catalogue of analyses: each `Analysis` that a module of `bert_tf.explain` declares, and calls of its function."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from bert_tf import explain
from bert_tf.analysis import Analysis

_DECLARES = re.compile(r"^ANALYS[IE]S = ", re.MULTILINE)


@cache
def catalogue():
    """Every analysis by its name, in the order of the names: dict str -> `Analysis`."""
    records = {}
    for path in sorted(Path(explain.__file__).parent.rglob("*.py")):
        # Only modules that declare one are imported: some of the others need Keras.
        if not _DECLARES.search(path.read_text(encoding="utf-8")):
            continue
        home = import_module(
            ".".join(("bert_tf.explain", *path.relative_to(Path(explain.__file__).parent).with_suffix("").parts))
        )
        for record in (*getattr(home, "ANALYSES", ()), *filter(None, [getattr(home, "ANALYSIS", None)])):
            if record.name in records:
                raise ValueError(f"Two analyses are named {record.name!r}: the second is in {home.__name__}.")
            records[record.name] = record
    return dict(sorted(records.items()))


def analysis(name) -> Analysis:
    """The analysis of this name or alias.

    Raises: ValueError if there is none, with those that there are.
    """
    known = catalogue()
    found = known.get(name) or next((one for one in known.values() if name in one.aliases), None)
    if found is None:
        raise ValueError(f"There is no analysis {name!r}; there are {', '.join(known)}.")
    return found


@dataclass(frozen=True)
class Call:
    """A function of `bert_tf.explain` with its arguments: it runs, it is a cache key, it prints itself as Python.

    Attributes:
        function: the function's name in `bert_tf.explain`.
        arguments: pairs (name, value) of the keyword arguments, hashable.
    """

    function: str
    arguments: tuple = ()

    @classmethod
    def of(cls, function, **arguments):
        """The call of a function with these keyword arguments; lists become tuples."""
        return cls(
            function.__name__,
            tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in arguments.items()),
        )

    def run(self, *positional, progress=None):
        """Call the function with `positional` before the arguments."""
        others = {} if progress is None else {"progress": progress}
        return getattr(explain, self.function)(*positional, **dict(self.arguments), **others)

    def python(self, *positional):
        """The call as Python source; `positional` are expressions: ``logit_lens(bert, trace, top_k=5)``."""
        written = [*positional, *(f"{name}={source(value)}" for name, value in self.arguments)]
        return f"{self.function}({', '.join(written)})"


def source(value):
    """A value as Python source: its own `python()` where it has one."""
    if hasattr(value, "python"):
        return value.python()
    if isinstance(value, tuple):
        inner = ", ".join(source(one) for one in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)
