"""The catalogue of analyses: every `Analysis` that a module of `bert_tf.explain` declares."""

import pkgutil
from functools import cache
from importlib import import_module

from bert_tf import explain
from bert_tf.analysis import Analysis


@cache
def catalogue():
    """Every analysis by its name, in the order of the names: dict str -> `Analysis`."""
    records = {}
    for module in pkgutil.walk_packages(explain.__path__, "bert_tf.explain."):
        home = import_module(module.name)
        for record in (*getattr(home, "ANALYSES", ()), *filter(None, [getattr(home, "ANALYSIS", None)])):
            if record.name in records:
                raise ValueError(f"Two analyses are named {record.name!r}: the second is in {module.name}.")
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
