"""How the saliency methods fared in `benchmarks/saliency_fidelity.py`, read from the record that it wrote."""

import functools
import json

from ui.shell.limits import ROOT
from ui.widgets.formatting import count, title

_RECORD = ROOT / "assets" / "records" / "saliency_fidelity.json"


@functools.cache
def _record():
    return json.loads(_RECORD.read_text(encoding="utf-8"))


def best_baseline(method):
    """The baseline with which a method fared best, such as "[MASK]"; None if the method has none."""
    # The record lists the best first.
    return next((row["baseline"] for row in _record()["methods"] if row["method"] == method), None)


def sentence(method, baseline, names):
    """How a method fared, in one sentence; "" if it was not measured with this baseline.

    Args:
        method: a name of ``SALIENCY_METHODS``. baseline: of the method, or None. names: dict from methods to titles.
    """
    record = _record()
    row = next((one for one in record["methods"] if (one["method"], one["baseline"]) == (method, baseline)), None)
    if row is None:
        return ""
    best, chance = next(one for one in record["methods"] if one["method"] in names), record["random"]
    others = "the most of all methods" if row is best else f"{names[best['method']]}, the best, {best['loss']:.1f}"
    return (
        f"Tested on {count(record['sentences'], 'sentence')} with {title(record['model'])}: hiding the "
        f"{record['words']} words that this method calls most important cost the prediction {row['loss']:.1f} "
        f"{record['unit']} on average; {others}; a random order {chance['mean']:.1f} ({chance['least']:.1f} to "
        f"{chance['greatest']:.1f})."
    )
