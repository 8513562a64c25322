"""Vectors laid out in a plane or in space so that neighbours stay neighbours (UMAP).

Source: McInnes et al. 2018, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction".
`scranpy` brings it compiled: umap-learn compiles itself anew in every process, which took half a minute.
"""

import numpy as np

from bert_tf.explain.errors import InputError

#: Fewer points have no neighbourhoods to keep.
LEAST_POINTS = 5


def umap(vectors, count=2, neighbours=10):
    """UMAP coordinates of vectors, by their cosines.

    Distances between far points and the axes mean nothing; only who is near whom does.

    Args:
        vectors: float [W, H]. count: dimensions K. neighbours: of each point that are kept near.
    Returns:
        float64 [W, K], the same at every call.
    Raises:
        InputError: fewer than `LEAST_POINTS` vectors.
    """
    vectors = np.asarray(vectors, np.float64)
    if len(vectors) < LEAST_POINTS:
        raise InputError(f"UMAP needs at least {LEAST_POINTS} points, not {len(vectors)}: add sentences.")
    import knncolle
    import scranpy

    # Between vectors of length one, Euclid's distance ranks as the cosine does.
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scranpy.run_umap(
        np.asfortranarray(unit.T),
        num_dim=count,
        num_neighbors=min(neighbours, len(vectors) - 1),
        min_dist=0.1,
        nn_parameters=knncolle.VptreeParameters(),
    )
