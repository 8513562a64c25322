"""Vectors laid out in a plane or in space so that neighbours stay neighbours (UMAP, t-SNE).

Sources: McInnes et al. 2018, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction"; van der
Maaten and Hinton 2008, "Visualizing Data using t-SNE".
`scranpy` brings UMAP compiled: umap-learn compiles itself anew in every process, which took half a minute.
"""

import contextlib
import threading

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.representations.vectors import principal_components

#: How vectors can be laid out.
PROJECTIONS = ("pca", "umap", "tsne")

_ONE_AT_A_TIME = threading.Lock()

#: Fewer points have no neighbourhoods to keep.
MIN_POINTS = 5


def umap(vectors, count=2, neighbours=10):
    """UMAP coordinates of vectors, by their cosines.

    Distances between far points and the axes mean nothing; only who is near whom does.

    Args:
        vectors: float [W, H]. count: dimensions K. neighbours: of each point that are kept near.
    Returns:
        float64 [W, K], the same at every call.
    Raises:
        InputError: fewer than `MIN_POINTS` vectors.
    """
    unit = _directions(vectors, "UMAP")
    import knncolle
    import scranpy

    return scranpy.run_umap(
        np.asfortranarray(unit.T),
        num_dim=count,
        num_neighbors=min(neighbours, len(unit) - 1),
        min_dist=0.1,
        nn_parameters=knncolle.VptreeParameters(),
    )


def tsne(vectors, count=2, perplexity=30):
    """t-SNE coordinates of vectors, by their cosines; scikit-learn's, from the two greatest components on.

    Distances between far points, sizes of clusters and the axes mean nothing; only who is near whom does.

    Args:
        vectors: float [W, H]. count: dimensions K, 2 or 3.
        perplexity: about how many neighbours of each point count; at most a third of the other points.
    Returns:
        float64 [W, K], the same at every call.
    Raises:
        InputError: fewer than `MIN_POINTS` vectors.
    """
    unit = _directions(vectors, "t-SNE")
    if np.ptp(unit, axis=0).max() < 1e-9:
        return np.zeros((len(unit), count))  # all in one place, where there is no greatest component to begin with
    from sklearn.manifold import TSNE

    # Threads that wait for each other take ten times as long on a busy machine as one takes alone.
    with one_thread():
        found = TSNE(count, perplexity=min(perplexity, (len(unit) - 1) / 3), random_state=0).fit_transform(unit)
    return found.astype(np.float64)


@contextlib.contextmanager
def one_thread():
    """Work of compiled libraries with one thread. One such block at a time: the bound is the whole process's, and of
    two that overlap the first to end would leave it to the other's."""
    from threadpoolctl import threadpool_limits

    with _ONE_AT_A_TIME, threadpool_limits(1):
        yield


def project_to_plane(vectors, way="pca", count=2):
    """Vectors laid out in one of `PROJECTIONS`.

    Args:
        vectors: float [W, H]. way: "pca", "umap" or "tsne". count: dimensions K, 2 or 3.
    Returns:
        (coordinates float64 [W, K], share of the variance along each float64 [K]; None but for "pca").
    Raises:
        InputError: an unknown way, or too few vectors for it.
    """
    if way not in PROJECTIONS:
        raise InputError(f"Vectors are laid out by {', '.join(PROJECTIONS)}, not by {way!r:.40}.")
    if way == "pca":
        return principal_components(vectors, count)
    return {"umap": umap, "tsne": tsne}[way](vectors, count), None


def _directions(vectors, name):
    """Vectors of length one, float64 [W, H]: between them Euclid's distance ranks as the cosine does."""
    vectors = np.asarray(vectors, np.float64)
    if len(vectors) < MIN_POINTS:
        raise InputError(f"{name} needs at least {MIN_POINTS} points, not {len(vectors)}: PCA takes fewer.")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
