"""What every head does over some texts, and which heads do alike.

Dimension legend: L layers, N heads, T tokens, X = L x N heads. After Clark et al. 2019, "What Does BERT Look
At?", sections 3 (the measures) and 6 (the distances between heads, their map and clusters).
"""

from dataclasses import dataclass, fields, replace
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_summary import HeadSummary, attention_maps, summarise_heads
from bert_tf.explain.attention.syntax import SyntaxAgreement, syntax_agreement
from bert_tf.results import Result

MEASURES = tuple(field.name for field in fields(HeadSummary))


@dataclass(frozen=True, eq=False)
class HeadProfile(
    Result,
    figures={
        "measures": "bert_tf.plots.attention.head_profile:profile_maps",
        "plane": "bert_tf.plots.attention.head_profile:head_plane",
    },
):
    """The heads of a model over some texts.

    Attributes:
        summary: `HeadSummary`, means over all tokens of all texts.
        distances: float64 [X, X], the mean over the tokens of the Jensen-Shannon divergence in bits between
            what two heads (layer by layer) look at: 0 the same, 1 nothing in common.
        clusters: int64 [L, N], numbers from 0, the largest cluster first (`cluster_heads`).
        coordinates: float64 [L, N, 2], the heads on a plane (`project_heads`).
        num_texts, num_tokens: how many were read. num_skipped: texts with nothing in them to read.
        syntax: `SyntaxAgreement` over the sentences that have dependency trees, or None.
    """

    summary: HeadSummary
    distances: np.ndarray
    clusters: np.ndarray
    coordinates: np.ndarray
    num_texts: int
    num_tokens: int
    num_skipped: int
    syntax: Optional[SyntaxAgreement] = None

    @property
    def measures(self):
        """Name of each measure -> float64 [L, N]; with `syntax` also how often each head follows any relation."""
        measures = self.summary.to_arrays()
        return measures if self.syntax is None else {**measures, "syntax": self.syntax.overall.best_direction}

    def to_frame(self):
        """A row for each head, a column for each measure."""
        table = self.summary.to_frame()
        if self.syntax is not None:
            table["syntax"] = self.measures["syntax"].ravel()
            table["relation"] = best_relations(self.syntax).ravel()
        table["cluster"] = self.clusters.ravel()
        return table

    def to_arrays(self):
        """Every measure and the other arrays of the heads, under their names."""
        return {**self.measures, **super().to_arrays()}

    def to_text(self):
        """The heads, and below them the relations where there are dependency trees."""
        return super().to_text() if self.syntax is None else f"{super().to_text()}\n{self.syntax.to_text()}"


def profile_heads(bert, texts, tokens_per_text=64, progress=None):
    """Read texts and say what every head did in them.

    Args:
        bert: a `Bert`. texts: strings, or pairs (text A, text B or None).
        tokens_per_text: tokens of a text at most, evenly spread over it, that distances between heads are taken from.
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
            total.add(bert.trace(text_a, text_b, hidden_states=False), tokens_per_text)
        except InputError:
            total.skipped += 1
        report(progress, done, len(pairs))
    return total.profile()


def profile_trace(trace, tokens_per_text=64, progress=None):
    """The `HeadProfile` of a single trace with attention maps; `progress` as of `head_distances`."""
    total = _Total()
    total.add(trace, tokens_per_text, progress)
    return total.profile()


class _Total:
    """Sums over texts, each weighted by its tokens."""

    def __init__(self):
        self.measures, self.distances = None, 0.0
        self.texts = self.tokens = self.rows = self.skipped = 0

    def add(self, trace, tokens_per_text, progress=None):
        summary = summarise_heads(trace)
        found = np.stack([getattr(summary, name) for name in MEASURES]) * trace.length
        self.measures = found if self.measures is None else self.measures + found
        chosen = np.unique(np.linspace(0, trace.length - 1, min(tokens_per_text, trace.length)).round().astype(int))
        maps = attention_maps(trace)[:, :, chosen]
        self.distances = self.distances + head_distances(maps, progress) * len(chosen)
        self.texts += 1
        self.tokens += trace.length
        self.rows += len(chosen)

    def profile(self):
        if not self.texts:
            raise InputError("None of the texts holds anything to read: give at least one sentence.")
        summary = HeadSummary(**dict(zip(MEASURES, self.measures / self.tokens)))
        distances, shape = self.distances / self.rows, summary.entropy.shape
        return HeadProfile(
            summary,
            distances,
            cluster_heads(distances).reshape(shape),
            project_heads(distances).reshape(*shape, 2),
            self.texts,
            self.tokens,
            self.skipped,
        )


def head_profiles(bert, trace=None, rows=None, tokens_per_text=64, progress=None):
    """What every head does in a text or in those of a file; where those have dependency trees, also which heads follow
    them.

    Args:
        bert: a `Bert`. trace: a `Trace` with attention maps; or rows: `TextRow`s.
        tokens_per_text: as of `profile_heads`.
        progress: callable(done, total); returning False cancels.
    Returns:
        `HeadProfile`.
    Raises:
        InputError: no text holds anything. Cancelled: by `progress`.
    """
    if trace is not None:
        return profile_trace(trace, tokens_per_text, progress)
    parsed = [row.parsed for row in rows if row.parsed is not None]
    steps = len(rows) + len(parsed)

    def report_from(first):
        return progress and (lambda done, _: progress(first + done, steps))

    texts = [(row.text_a, row.text_b) for row in rows]
    profile = profile_heads(bert, texts, tokens_per_text, report_from(0))
    return replace(profile, syntax=syntax_agreement(bert, parsed, report_from(len(rows)))) if parsed else profile


def best_relations(syntax, least=20):
    """The relation of `least` words or more that each head follows most often, and how often: strings [L, N]."""
    shape = syntax.overall.dependent_to_head.shape
    frequent = {name: one.best_direction for name, one in syntax.relations.items() if one.count >= least}
    relations = np.full(shape, "", object)
    for place in np.ndindex(shape) if frequent else ():
        best = max(frequent, key=lambda name: frequent[name][place])
        relations[place] = f"{best} {frequent[best][place]:.0%}"
    return relations


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


ANALYSIS = Analysis(
    name="head-profiles",
    function=head_profiles,
    summary="what every head does on a text or a file; over CoNLL-U also which relations it follows",
    source="Clark et al. 2019, sections 3, 4 and 6",
    options=(
        Option(
            "tokens_per_text",
            "tokens of each text that distances between heads are taken from",
            int,
            64,
            minimum=1,
            metavar="N",
        ),
    ),
    inputs="pair or file",
    aliases=("heads",),
)
