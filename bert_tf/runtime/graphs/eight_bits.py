"""What products in eight bits do about outliers: channels of the hidden state whose values are many times the others'.

A group of values that share a scale is as coarse as its largest value. So the outliers are taken out of the hidden
state and multiplied apart, in float, as in LLM.int8() (Dettmers et al. 2022, section 3.2). There they are looked for in
every input; here they are the channels that the layer normalizations before the feed-forward blocks scale or shift
most, the same in all layers ("BERT Busters", Kovaleva et al. 2021).
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bert_tf.config import BertConfig

_COUNT = 16
_NORM = ".attention.output.LayerNorm.weight"
#: From this width on, rounding errors even out so far that groups of 128 values keep 98.5% of the first predictions
#: (`benchmarks/precision.py`), as groups of 32 do in narrower models.
_WIDE = 768


class SplitInput(NamedTuple):
    """The input of a product, with the outliers apart.

    Attributes:
        rest: node. The input [..., H] with zeros for the outliers.
        outliers: node. The values of the outliers [..., C].
    """

    rest: Any
    outliers: Any


def group_size(config: BertConfig, names: Iterable[str]) -> int:
    """Return how many values of an input share a scale.

    Args:
        config: `BertConfig`. The settings of the model.
        names: iterable of str. The names of its parameters.
    """
    width = config.hidden_size // config.architecture.stacks
    return 128 if width >= _WIDE and _norms(names) else 32


def outlier_channels(names: Iterable[str], values: Callable[[str], np.ndarray]) -> np.ndarray:
    """Return the channels of the outliers in the hidden states, int64 [C], ascending.

    Args:
        names: iterable of str. The names of the parameters of the model.
        values: callable. From the name of a parameter to its values.

    Returns:
        No channels for layers without a layer normalization after the attention.
    """
    sizes = []
    for name in _norms(names):
        size = values(name) ** 2 + values(name.replace("weight", "bias")) ** 2
        sizes.append(size / max(np.median(size), np.finfo(np.float32).tiny))
    return np.sort(np.argsort(-np.max(sizes, axis=0))[:_COUNT]) if sizes else np.zeros(0, np.int64)


def _norms(names):
    return sorted(name for name in names if name.endswith(_NORM))
