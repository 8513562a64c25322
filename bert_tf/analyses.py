"""The catalogue of analyses: each `Analysis` that a module of `bert_tf.explain` declares, and calls of its function."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

from bert_tf import explain
from bert_tf.analysis import Analysis

_DECLARATION = re.compile(r"^ANALYS[IE]S = ", re.MULTILINE)


@cache
def catalogue() -> dict[str, Analysis]:
    """Every analysis by name, sorted by name: dict str -> `Analysis`."""
    records = {}
    for path in sorted(Path(explain.__file__).parent.rglob("*.py")):
        # Only modules that declare an analysis are imported: some of the others import Keras.
        if not _DECLARATION.search(path.read_text(encoding="utf-8")):
            continue
        module = import_module(
            ".".join(("bert_tf.explain", *path.relative_to(Path(explain.__file__).parent).with_suffix("").parts))
        )
        for record in (*getattr(module, "ANALYSES", ()), *filter(None, [getattr(module, "ANALYSIS", None)])):
            if record.name in records:
                raise ValueError(f"Two analyses are named {record.name!r}: the second is in {module.__name__}.")
            records[record.name] = record
    return dict(sorted(records.items()))


def analysis(name: str) -> Analysis:
    """The analysis of this name or alias.

    Raises:
        ValueError: there is no analysis of this name; the message names all.
    """
    records = catalogue()
    record = records.get(name) or next((other for other in records.values() if name in other.aliases), None)
    if record is None:
        raise ValueError(f"There is no analysis {name!r}; there are {', '.join(records)}.")
    return record


@dataclass(frozen=True)
class Call:
    """A call of a function of `bert_tf.explain`: it can be run, used as a cache key and written as Python source.

    Attributes:
        function: str. The function's name in `bert_tf.explain`.
        arguments: tuple of pairs (name, value). The keyword arguments; the values are hashable.

    Example:
        call = Call("logit_lens", (("top_k", 5),))
        call.python("bert", "trace")  # "logit_lens(bert, trace, top_k=5)"
    """

    function: str
    arguments: tuple = ()

    @classmethod
    def of(cls, function: Callable[..., Any], **arguments: Any) -> "Call":
        """The call of a function with these keyword arguments; lists become tuples."""
        return cls(
            function.__name__,
            tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in arguments.items()),
        )

    def run(self, *positional: Any, progress: Callable[[int, int], object] | None = None) -> Any:
        """Call the function with the `positional` arguments before the keyword arguments.

        Args:
            progress: callable(done, total) or None. Passed on as a keyword argument unless it is None.
        """
        others = {} if progress is None else {"progress": progress}
        return getattr(explain, self.function)(*positional, **dict(self.arguments), **others)

    def python(self, *positional: str) -> str:
        """The call as Python source: ``logit_lens(bert, trace, top_k=5)``.

        Args:
            positional: str. Python expressions of the positional arguments.
        """
        expressions = [*positional, *(f"{name}={source(value)}" for name, value in self.arguments)]
        return f"{self.function}({', '.join(expressions)})"


def source(value: Any) -> str:
    """A value as Python source: the result of its method `python()` if it has one, otherwise its `repr`."""
    if hasattr(value, "python"):
        return value.python()
    if isinstance(value, tuple):
        inner = ", ".join(source(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)
