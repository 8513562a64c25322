"""Neuron factors: the activations inside feed-forward blocks factorised into groups of units that are active together.

The method is that of Ecco (Alammar 2021, "Ecco: An Open Source Library for the Explainability of Transformer Language
Models"), after Olah et al. 2018, "The Building Blocks of Interpretability": non-negative matrix factorisation (Lee and
Seung 1999). Dimension legend: L layers, F units of a feed-forward block, T tokens, K factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, report
from bert_tf.explain.models.architecture import layer_activations
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: The fewest and the most factors.
MIN_FACTORS, MAX_FACTORS = 2, 12
#: The most activations held in memory at once: 256 MB. All layers of Base at 512 tokens have 19 million, Large 50
#: million.
MAX_ACTIVATIONS = 64_000_000
#: The most rounds of the factorisation, and the rounds between two checks of its progress.
MAX_ITERATIONS, _ROUNDS = 200, 10
# The factorisation stops when that many rounds explain less than this share of the squared length in addition.
_GAIN = 1e-4


class Unit(NamedTuple):
    """A unit of a feed-forward block.

    Attributes:
        layer: int. From 0.
        unit: int. The number of the unit in its layer, from 0.
        weight: float. The weight of the unit in a factor.
    """

    layer: int
    unit: int
    weight: float


@dataclass(frozen=True, eq=False)
class FactorUnits(Result, figures={"weights": "bert_tf.plots.representations.factors:unit_bars"}):
    """The units with the greatest weights in one factor.

    Attributes:
        factor: int. The index of the factor, from 0.
        units: tuple of Unit. The strongest first.
    """

    factor: int
    units: tuple

    def to_frame(self) -> pd.DataFrame:
        """A row for each unit."""
        columns = zip(*((rank, *unit) for rank, unit in enumerate(self.units, start=1)))
        return frame({"factor": self.factor, **dict(zip(("rank", "layer", "unit", "weight"), columns))})


@dataclass(frozen=True, eq=False)
class Factors(Result, figures={"map": "bert_tf.plots.representations.factors:weight_map"}):
    """Activations as a sum of K factors, the longest first.

    A factor is a group of units that are active at the same tokens.

    Attributes:
        weights: np.ndarray. float32 [K, T], the strength of each factor at each token.
        unit_weights: np.ndarray. float32 [K, L, F], the weight of each unit in each factor; the weights of a factor
            have length 1.
        explained: float. The share of the activations' squared length that all factors together explain.
        shares: np.ndarray. float64 [K], the squared length of each factor as a share of the activations' squared
            length. Factors overlap, so the shares add up to at most `explained`.
        rounds: int. The rounds of the factorisation.
        tokens: tuple of str. The tokens of the input; empty for activations without an input.
        positions: tuple of int. The positions of the T tokens; empty for activations without an input.
        first_layer: int. The number of the first of the L layers, from 0.
        units: tuple. K tuples of the strongest `Unit`s of each factor; empty where not asked for.
    """

    weights: np.ndarray
    unit_weights: np.ndarray = field(metadata={"export": "arrays"})
    explained: float
    shares: np.ndarray
    rounds: int
    tokens: tuple = ()
    positions: tuple = ()
    first_layer: int = 0
    units: tuple = ()

    def to_frame(self) -> pd.DataFrame:
        """A row for each factor and token; the tokens of a factor are ordered by its strength there."""
        order = np.argsort(-self.weights, axis=1, kind="stable")
        positions = np.array(self.positions if self.positions else range(self.weights.shape[1]), int)
        columns = {
            "factor": np.repeat(np.arange(len(order)), order.shape[1]),
            "share": np.repeat(self.shares, order.shape[1]),
            "position": positions[order].ravel(),
            "token": [self.tokens[position] for position in positions[order].ravel()] if self.tokens else None,
            "weight": np.take_along_axis(self.weights, order, axis=1).ravel(),
        }
        return frame({name: values for name, values in columns.items() if values is not None})

    def named(self, tokens: Iterable[str], positions: Iterable[int], first_layer: int = 0, top_k: int = 10) -> Factors:
        """The same factors with the names of their tokens, layers and units.

        Args:
            tokens: sequence of str. The tokens of the input.
            positions: sequence of int. The positions of the T tokens.
            first_layer: int. The number of the first of the L layers, from 0.
            top_k: int. The number of units listed for each factor.
        """
        named = replace(self, tokens=tuple(tokens), positions=tuple(positions), first_layer=first_layer)
        units = tuple(tuple(named.strongest_units(factor, top_k)) for factor in range(len(self.weights)))
        return replace(named, units=units)

    def strongest_units(self, factor: int, count: int = 10) -> list[Unit]:
        """The units with the greatest weights in a factor, without units of weight 0.

        Args:
            factor: int. The index of the factor.
            count: int. The most units that are returned.
        """
        weights = self.unit_weights[factor]
        best = np.argsort(-weights, axis=None, kind="stable")[:count]
        places = zip(*np.unravel_index(best, weights.shape))
        units = [Unit(self.first_layer + int(layer), int(unit), float(weights[layer, unit])) for layer, unit in places]
        return [unit for unit in units if unit.weight > 0]


def feed_forward_activations(
    bert: Bert,
    trace: Trace,
    first: int = 0,
    last: int | None = None,
    positions: Sequence[int] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """The activations of the units inside the feed-forward blocks of some layers, after the non-linearity.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        first, last: int. Layers from 0, both included; None for the model's last.
        positions: sequence of int. Positions of tokens; None for all.
        progress: callable(done, total). Called with numbers of layers; it cancels by returning False.
    Returns:
        float32 [L, F, T]. Activations below 0 are set to 0, as in Ecco; the smallest value of GELU is -0.17.
    Raises:
        InputError: the layers or tokens do not exist, or there are more than `MAX_ACTIVATIONS`.
        ValueError: the trace has no hidden states.
        Cancelled: by `progress`.
    """
    count = bert.config.num_hidden_layers
    last = count - 1 if last is None else last
    if not 0 <= first <= last < count:
        raise InputError(f"There are no layers {first} to {last}: this model has layers 0 to {count - 1}.")
    places = list(range(trace.length) if positions is None else positions)
    if not places or not all(0 <= place < trace.length for place in places):
        raise InputError(f"Give positions of tokens, 0 to {trace.length - 1}.")
    layers = last - first + 1
    if layers * bert.config.intermediate_size * len(places) > MAX_ACTIVATIONS:
        raise InputError(
            f"{layers} layers of {bert.config.intermediate_size:,} units have more activations at {len(places)} tokens "
            f"than the limit of {MAX_ACTIVATIONS:,}: choose fewer layers or a shorter text."
        )
    activations: Any = None
    for index, layer in enumerate(range(first, last + 1)):
        wide = layer_activations(bert, trace, layer)["feed_forward_wide"]  # [T, F]
        if activations is None:
            activations = np.empty((layers, wide.shape[1], len(places)), np.float32)
        np.maximum(wide[places].T, 0, out=activations[index])
        report(progress, index + 1, layers)
    return activations


def factorise(activations: np.ndarray, factors: int = 6, progress: Callable[[int, int], Any] | None = None) -> Factors:
    """Factorise activations by non-negative matrix factorisation (scikit-learn's, by coordinate descent).

    It starts from the singular vectors of the activations, so the same activations always give the same factors.

    Args:
        activations: np.ndarray. float [L, F, T], none below 0, as `feed_forward_activations` returns them.
        factors: int. K, 2 to 12.
        progress: callable(done, total). Called with numbers of rounds, of which not all may be needed; it cancels by
            returning False.
    Returns:
        `Factors`. K is at most the number of tokens and of active units, and factors of length 0 are left out.
    Raises:
        InputError: another number of factors, or activations that are below 0 or all 0.
        Cancelled: by `progress`.

    Example:
        >>> factorise(np.random.default_rng(0).random((2, 16, 8)), factors=3).explained
    """
    from sklearn.decomposition import non_negative_factorization

    if not MIN_FACTORS <= factors <= MAX_FACTORS:
        raise InputError(f"There can be {MIN_FACTORS} to {MAX_FACTORS} factors, not {factors}.")
    activations = np.asarray(activations, np.float32)
    if activations.ndim != 3 or not activations.size:
        raise InputError(f"Activations have the shape [L, F, T], not {list(activations.shape)}.")
    flat = activations.reshape(-1, activations.shape[-1])
    is_active = flat.max(axis=1) > 0
    active = flat[is_active]
    if not len(active) or flat.min() < 0:
        raise InputError("Activations can be factorised only if none is below 0 and some are above 0.")
    squared_length, explained, rounds = np.einsum("ut,ut->u", active, active).sum(dtype=np.float64), 0.0, 0
    start = {"n_components": min(factors, *active.shape), "init": "nndsvd"}
    while rounds < MAX_ITERATIONS:
        units, tokens, _ = non_negative_factorization(active, **start, max_iter=_ROUNDS, tol=0, random_state=0)
        rounds += _ROUNDS
        before, explained = explained, 1 - _residual(active, units, tokens, squared_length) / squared_length
        report(progress, rounds, MAX_ITERATIONS)
        if explained - before < _GAIN:
            break
        start = {"n_components": len(tokens), "init": "custom", "W": units, "H": tokens}
    lengths = np.linalg.norm(units, axis=0)
    units = np.divide(units, lengths, out=np.zeros_like(units), where=lengths > 0)
    tokens = tokens * lengths[:, None]
    strengths = np.linalg.norm(tokens, axis=1)
    order = [place for place in np.argsort(-strengths, kind="stable") if strengths[place] > 0]
    unit_weights = np.zeros((len(order), len(flat)), np.float32)
    unit_weights[:, is_active] = units[:, order].T
    shares = np.square(tokens[order], dtype=np.float64).sum(axis=1) / squared_length
    return Factors(tokens[order], unit_weights.reshape(-1, *activations.shape[:2]), float(explained), shares, rounds)


def _residual(active, units, tokens, squared_length):
    """The squared length of the residual, computed without a residual matrix, which is as large as the activations."""
    cross_term = np.einsum("uk,uk->u", active @ tokens.T, units).sum(dtype=np.float64)
    return squared_length - 2 * cross_term + np.sum((units.T @ units) * (tokens @ tokens.T), dtype=np.float64)


def neuron_factors(
    bert: Bert,
    trace: Trace,
    factors: int = 6,
    layers: Sequence[int] | None = None,
    special: bool = True,
    top_k: int = 10,
    progress: Callable[[int, int], Any] | None = None,
) -> Factors:
    """Factorise the activations inside the feed-forward blocks into groups of units that are active together.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        factors: int. K, 2 to 12.
        layers: (first, last). Layers from 0, both included; None for all.
        special: bool. Whether to include the tokens that the model adds.
        top_k: int. The number of units listed for each factor.
        progress: callable(done, total). Called with numbers of layers and rounds; it cancels by returning False.
    Returns:
        `Factors`.
    Raises:
        As `feed_forward_activations` and `factorise`.
    """
    _check_layers(layers)
    first, last = layers or (0, bert.config.num_hidden_layers - 1)
    positions = tuple(place for place, source in enumerate(trace.sources) if special or source is not None)
    steps = max(last - first + 1, 0)
    total = steps + MAX_ITERATIONS
    activations = feed_forward_activations(
        bert, trace, first, last, positions, lambda done, _: report(progress, done, total)
    )
    result = factorise(activations, factors, lambda done, _: report(progress, steps + done, total))
    return result.named(trace.tokens, positions, first, top_k)


def _check_layers(layers):
    if layers is not None and len(layers) != 2:
        raise InputError(f"layers takes two numbers, the first layer and the last, not {len(layers)}.")


ANALYSIS = Analysis(
    name="neuron-factors",
    function=neuron_factors,
    summary="which units inside the feed-forward blocks fire together, and at which words",
    source="Alammar 2021, Ecco; Olah et al. 2018, The Building Blocks of Interpretability",
    options=(
        Option("factors", "number of factors", int, 6, minimum=MIN_FACTORS, maximum=MAX_FACTORS, metavar="K"),
        Option("layers", "the first and the last layer, from 0 (default: all)", int, several=True, metavar="L"),
        Option("special", "leave out the tokens that the model adds", bool, True),
        TOP_K,
    ),
    check=lambda options: _check_layers(options["layers"]),
    aliases=("factors",),
)
