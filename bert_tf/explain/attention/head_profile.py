"""Profiles of attention heads over some texts: summary statistics, distances between heads, their clusters.

Dimension legend: L layers, N heads, T tokens, X = L x N heads. After Clark et al. 2019, "What Does BERT Look
At?", sections 3 (the measures) and 6 (the distances between heads, their map and clusters).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, TextError, refuse_one_alone, report
from bert_tf.explain.attention.head_summary import HeadSummary, attention_maps, summarise_heads
from bert_tf.explain.attention.syntax import SyntaxAgreement, SyntaxTotal
from bert_tf.results import Result

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: Names of the measures of a `HeadSummary`.
MEASURES = tuple(field.name for field in fields(HeadSummary))


@dataclass(frozen=True, eq=False)
class HeadProfile(
    Result,
    figures={
        "measures": "bert_tf.plots.attention.head_profile:profile_maps",
        "plane": "bert_tf.plots.attention.head_profile:head_plane",
    },
):
    """Summary statistics, distances and clusters of the heads of a model over some texts.

    Attributes:
        summary: HeadSummary. Means over all tokens of all texts.
        distances: float64 [X, X]. Jensen-Shannon divergence in bits between the attention of two heads, averaged over
            tokens: 0 for the same attention, 1 for no token in common. Heads are ordered layer by layer.
        clusters: int64 [L, N]. Cluster numbers from 0, the largest cluster first (`cluster_heads`).
        coordinates: float64 [L, N, 2]. The heads as points of a plane (`project_heads`).
        num_texts: int. The number of texts.
        num_tokens: int. The number of tokens of these texts.
        num_skipped: int. The number of texts that cannot be read, such as empty ones.
        syntax: SyntaxAgreement or None. Over the sentences that have dependency trees; None if no sentence that
            fits the model has one.

    Example:
        >>> profile = profile_heads(bert_tf.load(), ["The cat sat on the mat.", "Dogs bark."])
        >>> profile.to_frame().sort_values("entropy").head()
    """

    summary: HeadSummary
    distances: np.ndarray
    clusters: np.ndarray
    coordinates: np.ndarray
    num_texts: int
    num_tokens: int
    num_skipped: int
    syntax: SyntaxAgreement | None = None

    @property
    def measures(self) -> dict[str, np.ndarray]:
        """Dict from the name of each measure to float64 [L, N]; with `syntax` also the share of dependencies that each
        head follows."""
        measures = self.summary.to_arrays()
        return measures if self.syntax is None else {**measures, "syntax": self.syntax.overall.best_direction}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each head, a column for each measure."""
        table = self.summary.to_frame()
        if self.syntax is not None:
            table["syntax"] = self.measures["syntax"].ravel()
            table["relation"] = best_relations(self.syntax).ravel()
        table["cluster"] = self.clusters.ravel()
        return table

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Dict from its name to each measure and each other array."""
        return {**self.measures, **super().to_arrays()}

    def to_text(self) -> str:
        """The table of heads; with dependency trees the table of relations below it."""
        return super().to_text() if self.syntax is None else f"{super().to_text()}\n{self.syntax.to_text()}"


def profile_heads(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    tokens_per_text: int = 64,
    progress: Callable[[int, int], Any] | None = None,
) -> HeadProfile:
    """The profile of every head over some texts.

    Args:
        bert: Bert.
        texts: iterable of strings, or of pairs (text A, text B or None).
        tokens_per_text: int. The distances between heads use at most this many tokens of each text, the middles of
            equal parts of it.
        progress: callable(done, total) or None. Counts texts; returning False cancels.
    Returns:
        `HeadProfile`.
    Raises:
        InputError: a text alone and not a list, `tokens_per_text` below 1, or none of the texts can be read.
        Cancelled: `progress` returned False.
    """
    refuse_one_alone(texts, "texts")
    pairs = [(text, None) if isinstance(text, str) else text for text in texts]
    total = _Total(tokens_per_text)
    for done, (text_a, text_b) in enumerate(pairs, 1):
        total.read(bert, text_a, text_b)
        report(progress, done, len(pairs))
    return total.profile()


def profile_trace(
    trace: Trace, tokens_per_text: int = 64, progress: Callable[[int, int], Any] | None = None
) -> HeadProfile:
    """The profile of every head in one trace with attention maps.

    Args:
        trace: Trace. A trace with attention maps.
        tokens_per_text: int. As in `profile_heads`.
        progress: callable(done, total) or None. As in `head_distances`.
    Returns:
        `HeadProfile`.
    Raises:
        InputError: the trace has no attention maps, or `tokens_per_text` is below 1.
        Cancelled: `progress` returned False.
    """
    total = _Total(tokens_per_text)
    total.add(trace, progress)
    return total.profile()


class _Total:
    """Sums over texts, each weighted by its tokens."""

    def __init__(self, tokens_per_text: int) -> None:
        if tokens_per_text < 1:
            raise InputError(f"tokens_per_text must be at least 1, not {tokens_per_text}.")
        self.tokens_per_text = tokens_per_text
        self.measures: np.ndarray | None = None
        self.distances: np.ndarray | float = 0.0
        self.texts = self.tokens = self.rows = self.skipped = 0

    def read(self, bert: Bert, text_a: str, text_b: str | None) -> Trace | None:
        """The trace of an input, which is added; None if it cannot be read."""
        try:
            trace = bert.trace(text_a, text_b, hidden_states=False)
        except (InputError, TextError):
            self.skipped += 1
            return None
        self.add(trace)
        return trace

    def add(self, trace: Trace, progress: Callable[[int, int], Any] | None = None) -> None:
        summary = summarise_heads(trace)
        measures = np.stack([getattr(summary, name) for name in MEASURES]) * trace.length
        self.measures = measures if self.measures is None else self.measures + measures
        rows = min(self.tokens_per_text, trace.length)
        # The middles of equal parts of the text: its ends, [CLS] and [SEP], are a few tokens among others.
        queries = (2 * np.arange(rows) + 1) * trace.length // (2 * rows)
        maps = attention_maps(trace)[:, :, queries]
        self.distances = self.distances + head_distances(maps, progress) * rows
        self.texts += 1
        self.tokens += trace.length
        self.rows += rows

    def profile(self) -> HeadProfile:
        if self.measures is None:
            raise InputError("None of the texts can be read: give at least one sentence.")
        summary = HeadSummary(**dict(zip(MEASURES, self.measures / self.tokens)))
        distances, shape = np.asarray(self.distances / self.rows), summary.entropy.shape
        return HeadProfile(
            summary,
            distances,
            cluster_heads(distances).reshape(shape),
            project_heads(distances).reshape(*shape, 2),
            self.texts,
            self.tokens,
            self.skipped,
        )


def head_profiles(
    bert: Bert,
    trace: Trace | None = None,
    rows: Sequence[TextRow] | None = None,
    tokens_per_text: int = 64,
    progress: Callable[[int, int], Any] | None = None,
) -> HeadProfile:
    """The profile of every head in one trace or over the texts of a file; with dependency trees in the file also the
    agreement of the heads with them.

    Args:
        bert: Bert.
        trace: Trace or None. A trace with attention maps; None if `rows` is set.
        rows: sequence of TextRow or None. Used if `trace` is None.
        tokens_per_text: int. As in `profile_heads`.
        progress: callable(done, total) or None. As in `profile_trace`, or counts rows; returning False cancels.
    Returns:
        `HeadProfile`.
    Raises:
        InputError: none of the texts can be read.
        Cancelled: `progress` returned False.
    """
    if trace is not None:
        return profile_trace(trace, tokens_per_text, progress)
    rows = rows or ()
    total, syntax = _Total(tokens_per_text), SyntaxTotal()
    for done, row in enumerate(rows, 1):
        read = total.read(bert, row.text_a, row.text_b)
        if row.parsed is not None:
            syntax.add(row.parsed, read)
        report(progress, done, len(rows))
    return replace(total.profile(), syntax=syntax.agreement())


def best_relations(syntax: SyntaxAgreement, least: int = 20) -> np.ndarray:
    """The relation that each head follows most often, and how often: strings [L, N], such as "nsubj 63%".

    Args:
        syntax: SyntaxAgreement.
        least: int. Rarer relations, with fewer dependents, are left out.
    Returns:
        object array [L, N] of strings, "" if no relation is frequent enough.
    """
    shape = syntax.overall.dependent_to_head.shape
    frequent = {
        name: agreement.best_direction for name, agreement in syntax.relations.items() if agreement.count >= least
    }
    relations = np.full(shape, "", object)
    for head in np.ndindex(shape) if frequent else ():
        best = max(frequent, key=lambda name: frequent[name][head])
        relations[head] = f"{best} {frequent[best][head]:.0%}"
    return relations


def head_distances(maps: np.ndarray, progress: Callable[[int, int], Any] | None = None) -> np.ndarray:
    """Jensen-Shannon divergences in bits between the attention of heads, averaged over the queries.

    Args:
        maps: float [L, N, R, T]. The attention of R tokens; rows add up to 1.
        progress: callable(done, total) or None. Counts the heads that are compared with all later heads; returning
            False cancels.
    Returns:
        float64 [X, X].
    Raises:
        Cancelled: `progress` returned False.
    """
    layers, heads, rows, tokens = maps.shape
    flat = np.asarray(maps, np.float32).reshape(layers * heads, rows * tokens)
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, with the entropies of all rows of a head added up.
    entropies = _entropy(flat) / rows
    distances = np.zeros((len(flat), len(flat)))
    for head in range(len(flat) - 1):
        mixed = _entropy((flat[head + 1 :] + flat[head]) / 2) / rows
        distances[head, head + 1 :] = mixed - (entropies[head + 1 :] + entropies[head]) / 2
        report(progress, head + 1, len(flat) - 1)
    return np.clip(distances + distances.T, 0, 1)


def _entropy(values: np.ndarray) -> np.ndarray:
    return -np.einsum("xk,xk->x", values, np.log2(np.maximum(values, np.float32(1e-30))), dtype=np.float64)


def project_heads(distances: np.ndarray) -> np.ndarray:
    """The heads as points of a plane by classical multidimensional scaling; heads with small distances lie close.

    Args:
        distances: float64 [X, X]. The result of `head_distances`.
    Returns:
        float64 [X, 2].
    """
    from sklearn.manifold import ClassicalMDS

    if len(distances) < 3:
        return np.column_stack([np.linspace(0, distances.max(initial=0), len(distances)), np.zeros(len(distances))])
    return ClassicalMDS(n_components=2, metric="precomputed").fit_transform(distances)


def cluster_heads(distances: np.ndarray, clusters: int = 6) -> np.ndarray:
    """Clusters of heads by average linkage of their distances.

    Args:
        distances: float64 [X, X]. The result of `head_distances`.
        clusters: int. The largest number of clusters.
    Returns:
        int [X], the number of each head's cluster from 0, the largest cluster first.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 2:
        return np.zeros(len(distances), int)
    tree = linkage(squareform(distances, checks=False), "average")
    labels = fcluster(tree, clusters, criterion="maxclust")
    by_size = sorted(set(labels), key=lambda label: (-np.sum(labels == label), np.argmax(labels == label)))
    return np.array([by_size.index(label) for label in labels])


ANALYSIS = Analysis(
    name="head-profiles",
    function=head_profiles,
    summary="what every head attends to in a text or a file; with CoNLL-U also which relations it follows",
    source="Clark et al. 2019, sections 3, 4 and 6",
    options=(
        Option(
            "tokens_per_text",
            "tokens of each text that the distances between heads are computed from",
            int,
            64,
            minimum=1,
            metavar="N",
        ),
    ),
    inputs="pair or file",
    aliases=("heads",),
    attentions=True,
)
