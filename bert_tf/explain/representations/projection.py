"""Projections of vectors to a plane or to space that keep near vectors near each other (PCA, UMAP, t-SNE).

Sources: McInnes et al. 2018, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction"; van der
Maaten and Hinton 2008, "Visualizing Data using t-SNE".
`scranpy` has UMAP precompiled. It has no wheels for Windows and for Linux on ARM: there umap-learn computes it, after
compiling it in every process, which took half a minute.
"""

import contextlib
import threading
from collections.abc import Iterator

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.representations.vectors import principal_components, vectors_to_project

#: The names of the projections.
PROJECTIONS = ("pca", "umap", "tsne")

_ONE_AT_A_TIME = threading.Lock()

#: UMAP and t-SNE need at least this many vectors: fewer have no neighbourhoods.
MIN_POINTS = 5


def umap(vectors: np.ndarray, count: int = 2, neighbours: int = 10) -> np.ndarray:
    """UMAP coordinates of vectors, computed from their cosines.

    Distances between far points and the axes have no meaning; only which points are near each other has.

    Args:
        vectors: np.ndarray. float [W, H].
        count: int. K, the number of dimensions.
        neighbours: int. The number of neighbours of each point that stay near.
    Returns:
        float64 [W, K], the same in every call.
    Raises:
        InputError: there are fewer than `MIN_POINTS` vectors, a vector with numbers that are not finite, `count` below
            1 or `neighbours` below 2, or neither scranpy nor umap-learn is installed.
    """
    # With a count of 0 scranpy does not end.
    if count < 1:
        raise InputError(f"count must be at least 1, not {count}.")
    if neighbours < 2:
        raise InputError(f"neighbours must be at least 2, not {neighbours}.")
    unit = _directions(vectors, "UMAP")
    try:
        import knncolle
        import scranpy
    except ModuleNotFoundError:
        return _umap_learn(unit, count, min(neighbours, len(unit) - 1))
    return scranpy.run_umap(
        np.asfortranarray(unit.T),
        num_dim=count,
        num_neighbors=min(neighbours, len(unit) - 1),
        min_dist=0.1,
        nn_parameters=knncolle.VptreeParameters(),
    )


def _umap_learn(unit, count, neighbours):
    try:
        from umap import UMAP
    except ModuleNotFoundError:
        raise InputError(
            "UMAP needs scranpy and knncolle, or umap-learn: install one of them, or choose PCA or t-SNE."
        ) from None
    # The eigenvectors of the graph, from which umap-learn starts by default, need more points than these.
    start = "spectral" if len(unit) > 3 * count else "random"
    settings = {"n_neighbors": neighbours, "min_dist": 0.1, "init": start, "random_state": 0, "n_jobs": 1}
    return UMAP(n_components=count, **settings).fit_transform(unit).astype(np.float64)


def tsne(vectors: np.ndarray, count: int = 2, perplexity: float = 30) -> np.ndarray:
    """t-SNE coordinates of vectors, computed from their cosines by scikit-learn, starting from principal components.

    Distances between far points, sizes of clusters and the axes have no meaning; only which points are near each other
    has.

    Args:
        vectors: np.ndarray. float [W, H].
        count: int. K, the number of dimensions, 1 to 3.
        perplexity: float. About the number of neighbours that count for each point; at most a third of the other points
            is used.
    Returns:
        float64 [W, K], the same in every call.
    Raises:
        InputError: there are fewer than `MIN_POINTS` vectors, a vector with numbers that are not finite, `count` is not
            1 to 3, or `perplexity` is not above 0.
    """
    if not 1 <= count <= 3:
        raise InputError(f"count must be 1 to 3, not {count}.")
    if not perplexity > 0:  # NaN is neither above nor below
        raise InputError(f"perplexity must be above 0, not {perplexity}.")
    unit = _directions(vectors, "t-SNE")
    if np.ptp(unit, axis=0).max() < 1e-9:
        return np.zeros((len(unit), count))  # all vectors are equal, and there is no principal component to start from
    from sklearn.manifold import TSNE

    # On a busy machine several threads wait for each other and take ten times as long as one thread.
    with one_thread():
        coordinates = TSNE(count, perplexity=min(perplexity, (len(unit) - 1) / 3), random_state=0).fit_transform(unit)
    return coordinates.astype(np.float64)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """A context in which compiled libraries use one thread.

    Only one such context is open at a time. The limit holds for the whole process: of two overlapping contexts the
    first one to close would lift the limit of the other.
    """
    from threadpoolctl import threadpool_limits

    with _ONE_AT_A_TIME, threadpool_limits(1):
        yield


def project_to_plane(
    vectors: np.ndarray, way: str = "pca", dimensions: int = 2
) -> tuple[np.ndarray, np.ndarray | None]:
    """Project vectors by one of `PROJECTIONS`.

    Args:
        vectors: np.ndarray. float [W, H].
        way: str. "pca", "umap" or "tsne".
        dimensions: int. K, 2 or 3.
    Returns:
        (coordinates float64 [W, K], share of the variance along each dimension float64 [K]). The shares are None except
        for "pca".
    Raises:
        InputError: an unknown projection, other dimensions, or too few vectors for it.

    Example:
        >>> coordinates, shares = project_to_plane(np.random.default_rng(0).normal(size=(20, 768)))
    """
    if way not in PROJECTIONS:
        raise InputError(f"There is no projection {way!r:.40}; choose from {', '.join(PROJECTIONS)}.")
    if dimensions not in (2, 3):
        raise InputError(f"Vectors are projected to 2 or 3 dimensions, not {dimensions!r:.40}.")
    if way == "pca":
        return principal_components(vectors, dimensions)
    return {"umap": umap, "tsne": tsne}[way](vectors, dimensions), None


def _directions(vectors, name):
    """Vectors of length 1, float64 [W, H]. Their Euclidean distances have the same order as their cosines."""
    vectors = vectors_to_project(vectors)
    if len(vectors) < MIN_POINTS:
        raise InputError(f"{name} needs at least {MIN_POINTS} points, not {len(vectors)}: PCA takes fewer.")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
