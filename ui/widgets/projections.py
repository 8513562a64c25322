"""Projections of vectors to two or three dimensions: at once if that is quick, else in a background job."""

import weakref

import streamlit as st

from bert_tf.errors import InputError
from bert_tf.explain import project_to_plane
from bert_tf.explain.representations.projection import MIN_POINTS
from ui.session import jobs
from ui.session.session_cache import cached
from ui.widgets import file_input
from ui.widgets.formatting import count

#: The names of the projections on the page.
NAMES = {"pca": "PCA", "umap": "UMAP", "tsne": "t-SNE"}
_AT_ONCE = 60  # PCA and UMAP project so many points in a moment
_UNASKED = 300  # t-SNE, which cannot be stopped, projects so many points in about two seconds


def can_lay_out(way, points):
    """Whether there are enough points for a projection."""
    return way == "pca" or points >= MIN_POINTS


def laid_out(page, result, layer, way, dimensions=2):
    """The coordinates of vectors in a projection.

    Args:
        page: name of the page. result: a result with ``vectors``, float [L+1, W, H]. layer: index into ``vectors``.
        way: a key of ``NAMES``. dimensions: K, 2 or 3.

    Returns:
        (coordinates [W, K], each axis's share of the variance or None). None if there are no coordinates, with the
        reason on the page: they are being computed, Run must be pressed, or there are too few points.
    """
    name, key, points = f"{page}_places", (result, layer, way, dimensions), result.vectors.shape[1]

    def work(progress=None):
        return project_to_plane(result.vectors[layer], way, dimensions)

    if not can_lay_out(way, points) or way != "tsne" and points <= _AT_ONCE:
        try:
            return cached(name, key, work)
        except InputError as error:
            st.info(str(error), icon=":material/scatter_plot:")
            return None
    # The stored key of the press has a weak reference, so that it does not keep the vectors in memory.
    if not file_input.run_requested(name, (weakref.ref(result), *key[1:]), way != "tsne" or points <= _UNASKED):
        st.caption(f"t-SNE of {count(points, 'point')} takes a while and cannot be stopped. UMAP is quick.")
        return None
    return jobs.result(name, key, f"Projecting {count(points, 'point')} by {NAMES[way]}", work, stops=False)
