"""The catalogue of analyses: each `Analysis` that a module of `bert_tf.explain` declares, and calls of its function."""

import inspect
import re
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

from bert_tf import explain
from bert_tf.analysis import Analysis
from bert_tf.errors import require_head
from bert_tf.explain.attribution.target import heads_of

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


def check_model(record: Analysis, bert: Any, name: str | None = None) -> None:
    """Check that a model has the heads that an analysis needs.

    Args:
        record: Analysis.
        bert: `Bert`. The model.
        name: str or None. The name of the model in the message; None for its own.

    Raises:
        MissingHead: it does not. The command line, the service and the pages show this sentence.
    """
    for need in record.needs:
        require_head(heads_of(bert), need, name or bert.name)


@dataclass(frozen=True)
class Call:
    """A function of `bert_tf.explain` with its options: it runs, it is a cache key, and it prints itself as Python.

    The model and the inputs (a trace, rows) are no part of it: they are the arguments of `run`.

    Attributes:
        function: callable. The function.
        options: tuple of (str, value). The keyword arguments; the values are hashable.

    Example:
        >>> call = Call.of(logit_lens, positions=[3], top_k=1)
        >>> lens = call.run(bert, trace)
        >>> call.python("bert", "trace")
        'logit_lens(bert, trace, positions=(3,), top_k=1)'
    """

    function: Callable
    options: tuple = ()

    @classmethod
    def of(cls, function: Callable, **options: Any) -> "Call":
        """The call of a function with options; lists become tuples, and options at their default are left out."""
        parameters = inspect.signature(function).parameters
        pairs = ((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items())
        return cls(function, tuple((name, value) for name, value in pairs if value != parameters[name].default))

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def __getitem__(self, option: str) -> Any:
        return dict(self.options).get(option, inspect.signature(self.function).parameters[option].default)

    def replace(self, **options: Any) -> "Call":
        """The same call with other values for some options."""
        return Call.of(self.function, **{**dict(self.options), **options})

    def run(self, *inputs: Any, **more: Any) -> Any:
        """Calls the function.

        Args:
            *inputs: The arguments before the options: the `Bert`, and what is analysed.
            **more: Arguments that do not change the result, such as `progress`; those that the function does not have
                are left out.

        Returns: the result of the function.
        """
        parameters = inspect.signature(self.function).parameters
        known = {name: value for name, value in more.items() if name in parameters}
        return self.function(*inputs, **dict(self.options), **known)

    def python(self, *inputs: str, **written: str) -> str:
        """The call as Python source.

        Args:
            *inputs: str. The source of the arguments before the options: "bert", "trace".
            **written: str. The source of options that a value alone does not show, such as a variable's name.

        Returns: str, on one line.
        """
        options = (f"{name}={written.get(name) or source(value)}" for name, value in self.options)
        return f"{self.name}({', '.join([*inputs, *options])})"

    def imports(self, *written: str) -> list[str]:
        """The import lines that `python` needs.

        Args:
            *written: str. The names of the options that `python` takes as source.

        Returns: list of str.
        """
        values = [value for name, value in self.options if name not in written]
        return [import_line(self.function), *(import_line(type(value)) for value in values if is_dataclass(value))]


def source(value: Any) -> str:
    """A value as Python source; of a dataclass only the fields that are not at their default."""
    if is_dataclass(value):
        own = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
        named = (f"{name}={source(item)}" for name, item, default in own if item != default)
        return f"{type(value).__name__}({', '.join(named)})"
    return repr(value)


def import_line(thing: Callable) -> str:
    """The line that imports a function or class: from `bert_tf.explain` where it is public there."""
    home = "bert_tf.explain" if thing.__name__ in explain.__all__ else thing.__module__
    return f"from {home} import {thing.__name__}"
