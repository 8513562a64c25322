"""What every head does over some texts, and which heads do alike.

Dimension legend: L layers, N heads, T tokens, X = L x N heads. After Clark et al. 2019, "What Does BERT Look
At?", sections 3 (the measures) and 6 (the distances between heads, their map and clusters).
"""

from dataclasses import dataclass, fields

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_summary import HeadSummary, attention_maps, summarise_heads

MEASURES = tuple(field.name for field in fields(HeadSummary))


@dataclass(frozen=True, eq=False)
class HeadProfile:
    """The heads of a model over some texts.

    Attributes:
        summary: `HeadSummary`, means over all tokens of all texts.
        distances: float64 [X, X], the mean over the tokens of the Jensen-Shannon divergence in bits between
            what two heads (layer by layer) look at: 0 the same, 1 nothing in common.
        texts, tokens: how many were read. skipped: texts with nothing in them to read.
    """

    summary: HeadSummary
    distances: np.ndarray
    texts: int
    tokens: int
    skipped: int


def profile_heads(bert, texts, rows=64, progress=None):
    """Read texts and say what every head did in them.

    Args:
        bert: a `Bert`. texts: strings, or pairs (text A, text B or None).
        rows: tokens of a text at most, evenly spread over it, that distances between heads are taken from.
        progress: callable(done, total) in texts; returning False cancels.
    Returns:
        `HeadProfile`.
    Raises:
        InputError: no text holds anything. Cancelled: by `progress`.
    """
    pairs = [(text, None) if isinstance(text, str) else tuple(text) for text in texts]
    total = _Total()
    for done, (text_a, text_b) in enumerate(pairs, 1):
        try:
            total.add(bert.trace(text_a, text_b, hidden_states=False), rows)
        except InputError:
            total.skipped += 1
        report(progress, done, len(pairs))
    return total.profile()


def profile_trace(trace, rows=64, progress=None):
    """The `HeadProfile` of a single trace with attention maps; `progress` as of `head_distances`."""
    total = _Total()
    total.add(trace, rows, progress)
    return total.profile()


class _Total:
    """Sums over texts, each weighted by its tokens."""

    def __init__(self):
        self.measures, self.distances = None, 0.0
        self.texts = self.tokens = self.rows = self.skipped = 0

    def add(self, trace, rows, progress=None):
        summary = summarise_heads(trace)
        found = np.stack([getattr(summary, name) for name in MEASURES]) * trace.length
        self.measures = found if self.measures is None else self.measures + found
        chosen = np.unique(np.linspace(0, trace.length - 1, min(rows, trace.length)).round().astype(int))
        maps = attention_maps(trace)[:, :, chosen]
        self.distances = self.distances + head_distances(maps, progress) * len(chosen)
        self.texts += 1
        self.tokens += trace.length
        self.rows += len(chosen)

    def profile(self):
        if not self.texts:
            raise InputError("None of the texts holds anything to read: give at least one sentence.")
        summary = HeadSummary(**dict(zip(MEASURES, self.measures / self.tokens)))
        return HeadProfile(summary, self.distances / self.rows, self.texts, self.tokens, self.skipped)


def head_distances(maps, progress=None):
    """Jensen-Shannon divergences in bits between heads, means over the looking tokens: float64 [X, X].

    Args:
        maps: float [L, N, R, T], the attention of R tokens; rows add up to 1.
        progress: callable(done, total) in heads compared with all after them; returning False cancels.
    Raises:
        Cancelled: by `progress`.
    """
    layers, heads, rows, tokens = maps.shape
    flat = np.asarray(maps, np.float32).reshape(layers * heads, rows * tokens)
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, with the entropies of all rows of a head added up.
    own = _entropy(flat) / rows
    distances = np.zeros((len(flat), len(flat)))
    for one in range(len(flat) - 1):
        between = _entropy((flat[one + 1 :] + flat[one]) / 2) / rows
        distances[one, one + 1 :] = between - (own[one + 1 :] + own[one]) / 2
        report(progress, one + 1, len(flat) - 1)
    return np.clip(distances + distances.T, 0, 1)


def _entropy(values):
    return -np.einsum("xk,xk->x", values, np.log2(np.maximum(values, np.float32(1e-30))), dtype=np.float64)


def project_heads(distances):
    """Heads on a plane, near each other where they do alike: float64 [X, 2] by classical scaling."""
    from sklearn.manifold import ClassicalMDS

    if len(distances) < 3:
        return np.column_stack([np.linspace(0, distances.max(initial=0), len(distances)), np.zeros(len(distances))])
    return ClassicalMDS(n_components=2, metric="precomputed").fit_transform(distances)


def cluster_heads(distances, clusters=6):
    """Numbers of clusters, int [X], from 0, the largest first: average linkage of the distances.

    Args:
        distances: [X, X]. clusters: how many at most.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 2:
        return np.zeros(len(distances), int)
    tree = linkage(squareform(distances, checks=False), "average")
    found = fcluster(tree, clusters, criterion="maxclust")
    by_size = sorted(set(found), key=lambda name: (-np.sum(found == name), np.argmax(found == name)))
    return np.array([by_size.index(name) for name in found])
