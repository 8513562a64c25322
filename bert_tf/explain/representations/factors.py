"""What fires together: the activations inside feed-forward blocks taken apart into a few factors.

As Ecco does (Alammar 2021, "Ecco: An Open Source Library for the Explainability of Transformer Language Models"), after
Olah et al. 2018, "The Building Blocks of Interpretability": non-negative matrix factorisation (Lee and Seung 1999).
Dimension legend: L layers, F units of a feed-forward block, T tokens, K factors.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, report
from bert_tf.explain.models.architecture import layer_activations
from bert_tf.results import Result, frame

#: Factors that there can be.
MIN_FACTORS, MAX_FACTORS = 2, 12
#: Activations that are held at once: 256 MB. Base at 512 tokens has 19 million in all layers, Large 50 million.
MAX_ACTIVATIONS = 64_000_000
#: Rounds of the factorisation at most, and those between two looks at what it has gained.
MAX_ITERATIONS, _ROUNDS = 200, 10
# A share of the squared length: what gains less in that many rounds is at its end.
_GAIN = 1e-4


class Unit(NamedTuple):
    """A unit of a feed-forward block: its layer and its number in it, both from 0, and its weight in a factor."""

    layer: int
    unit: int
    weight: float


@dataclass(frozen=True, eq=False)
class FactorUnits(Result, figures={"weights": "bert_tf.plots.representations.factors:unit_bars"}):
    """The units with the greatest weights in one factor.

    Attributes:
        factor: its index, from 0. units: `Unit`s, the strongest first.
    """

    factor: int
    units: tuple

    def to_frame(self):
        """A row for each unit."""
        columns = zip(*((rank, *unit) for rank, unit in enumerate(self.units, start=1)))
        return frame({"factor": self.factor, **dict(zip(("rank", "layer", "unit", "weight"), columns))})


@dataclass(frozen=True, eq=False)
class Factors(Result, figures={"map": "bert_tf.plots.representations.factors:weight_map"}):
    """Activations as a sum of K factors, the longest first: each is some units that fire together at some tokens.

    Attributes:
        weights: float32 [K, T], how strongly each factor is there at each token.
        unit_weights: float32 [K, L, F], the weight of each unit in each factor; those of a factor have length 1.
        explained: share of the activations' squared length that the factors together leave no rest of.
        shares: float64 [K], each factor's own squared length as a share of the activations'. Factors overlap, so they
            add up to no more than `explained`.
        rounds: of the factorisation.
        tokens: the input's tokens. positions: of the T tokens that were looked at. first_layer: number of the first of
            the L layers, from 0. Of activations of no input they are empty, and 0.
        units: the strongest `Unit`s of each factor, K tuples; empty where not asked for.
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

    def to_frame(self):
        """A row for each factor and token, the token at which the factor is strongest first."""
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

    def named(self, tokens, positions, first_layer=0, top_k=10):
        """The same with what its tokens, layers and units are called; `top_k` units of each factor."""
        named = replace(self, tokens=tuple(tokens), positions=tuple(positions), first_layer=first_layer)
        units = tuple(tuple(named.strongest_units(factor, top_k)) for factor in range(len(self.weights)))
        return replace(named, units=units)

    def strongest_units(self, factor, count=10):
        """The units with the greatest weights in a factor, a list of `Unit`s, those that have none left out.

        Args:
            factor: its index. count: how many at most.
        """
        weights = self.unit_weights[factor]
        best = np.argsort(-weights, axis=None, kind="stable")[:count]
        places = zip(*np.unravel_index(best, weights.shape))
        found = [Unit(self.first_layer + int(layer), int(unit), float(weights[layer, unit])) for layer, unit in places]
        return [one for one in found if one.weight > 0]


def feed_forward_activations(bert, trace, first=0, last=None, positions=None, progress=None):
    """What the units inside the feed-forward blocks of some layers give, after the non-linearity.

    Args:
        bert: a `Bert`. trace: its `Trace` with hidden states.
        first, last: layers from 0, both counted in; None for the model's last.
        positions: of the tokens; None for all.
        progress: callable(done, total) in layers; returning False cancels.
    Returns:
        float32 [L, F, T]. What is below 0 is set to 0, as Ecco does: GELU leaves a little there, -0.17 at the least.
    Raises:
        InputError: no such layers or tokens, or more than `MAX_ACTIVATIONS`.
        ValueError: a trace without hidden states.
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
            f"than the {MAX_ACTIVATIONS:,} that are taken apart at once: choose fewer layers or a shorter text."
        )
    found = None
    for place, layer in enumerate(range(first, last + 1)):
        wide = layer_activations(bert, trace, layer)["feed_forward_wide"]  # [T, F]
        if found is None:
            found = np.empty((layers, wide.shape[1], len(places)), np.float32)
        np.maximum(wide[places].T, 0, out=found[place])
        report(progress, place + 1, layers)
    return found


def factorise(activations, factors=6, progress=None):
    """Take activations apart by non-negative matrix factorisation (scikit-learn's, by coordinate descent).

    It starts from the singular vectors of the activations, so that the same ones always give the same factors.

    Args:
        activations: float [L, F, T], none below 0, as of `feed_forward_activations`. factors: K, 2 to 12.
        progress: callable(done, total) in rounds, of which not all may be needed; returning False cancels.
    Returns:
        `Factors`; K is no more than the tokens, nor than the units that fire, and factors that come to nothing are
        left out.
    Raises:
        InputError: another number of factors, or activations that are below 0 or all 0. Cancelled: by `progress`.
    """
    from sklearn.decomposition import non_negative_factorization

    if not MIN_FACTORS <= factors <= MAX_FACTORS:
        raise InputError(f"There can be {MIN_FACTORS} to {MAX_FACTORS} factors, not {factors}.")
    activations = np.asarray(activations, np.float32)
    flat = activations.reshape(-1, activations.shape[-1])
    fire = flat.max(axis=1) > 0
    firing = flat[fire]
    if not len(firing) or flat.min() < 0:
        raise InputError("Only activations can be taken apart of which none is below 0, and some are above.")
    whole, explained, rounds = np.einsum("ut,ut->u", firing, firing).sum(dtype=np.float64), 0.0, 0
    start = {"n_components": min(factors, *firing.shape), "init": "nndsvd"}
    while rounds < MAX_ITERATIONS:
        units, tokens, _ = non_negative_factorization(firing, **start, max_iter=_ROUNDS, tol=0, random_state=0)
        rounds += _ROUNDS
        before, explained = explained, 1 - _rest(firing, units, tokens, whole) / whole
        report(progress, rounds, MAX_ITERATIONS)
        if explained - before < _GAIN:
            break
        start = {"n_components": len(tokens), "init": "custom", "W": units, "H": tokens}
    lengths = np.linalg.norm(units, axis=0)
    units = np.divide(units, lengths, out=np.zeros_like(units), where=lengths > 0)
    tokens = tokens * lengths[:, None]
    strengths = np.linalg.norm(tokens, axis=1)
    order = [place for place in np.argsort(-strengths, kind="stable") if strengths[place] > 0]
    spread = np.zeros((len(order), len(flat)), np.float32)
    spread[:, fire] = units[:, order].T
    shares = np.square(tokens[order], dtype=np.float64).sum(axis=1) / whole
    return Factors(tokens[order], spread.reshape(-1, *activations.shape[:2]), float(explained), shares, rounds)


def _rest(firing, units, tokens, whole):
    """The squared length of what the factors leave, without a matrix of it as large as the activations."""
    crossed = np.einsum("uk,uk->u", firing @ tokens.T, units).sum(dtype=np.float64)
    return whole - 2 * crossed + np.sum((units.T @ units) * (tokens @ tokens.T), dtype=np.float64)


def neuron_factors(bert, trace, factors=6, layers=None, special=True, top_k=10, progress=None):
    """The activations inside the feed-forward blocks taken apart into groups of units that fire together.

    Args:
        bert: a `Bert`. trace: its `Trace` with hidden states.
        factors: K, 2 to 12.
        layers: the first and the last, from 0, both counted in; None for all.
        special: whether the tokens that the model adds are looked at too.
        top_k: units listed of each factor.
        progress: callable(done, total) in layers and rounds; returning False cancels.
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
    found = factorise(activations, factors, lambda done, _: report(progress, steps + done, total))
    return found.named(trace.tokens, positions, first, top_k)


def _check_layers(layers):
    if layers is not None and len(layers) != 2:
        raise InputError(f"layers takes two numbers, the first layer and the last, not {len(layers)}.")


ANALYSIS = Analysis(
    name="neuron-factors",
    function=neuron_factors,
    summary="which units inside the feed-forward blocks fire together, and at which words",
    source="Alammar 2021, Ecco; Olah et al. 2018, The Building Blocks of Interpretability",
    options=(
        Option("factors", "how many", int, 6, minimum=MIN_FACTORS, maximum=MAX_FACTORS, metavar="K"),
        Option("layers", "the first and the last, from 0 (default: all)", int, several=True, metavar="L"),
        Option("special", "leave out the tokens that the model adds", bool, True),
        TOP_K,
    ),
    check=lambda options: _check_layers(options["layers"]),
    aliases=("factors",),
)
