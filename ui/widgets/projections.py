"""Vectors laid out in the plane or in space, at once where that is quick, else beside the page."""

import weakref

import streamlit as st

from bert_tf.errors import InputError
from bert_tf.explain import project_to_plane
from bert_tf.explain.representations.projection import MIN_POINTS
from ui.session import jobs
from ui.session.session_cache import cached
from ui.widgets import file_input
from ui.widgets.formatting import count

#: How the ways to lay vectors out are called.
NAMES = {"pca": "PCA", "umap": "UMAP", "tsne": "t-SNE"}
_AT_ONCE = 60  # points that PCA and UMAP lay out in a moment
_UNASKED = 300  # points that t-SNE, which cannot be stopped, lays out in about two seconds


def can_lay_out(way, points):
    """Whether there are points enough for a way to lay them out."""
    return way == "pca" or points >= MIN_POINTS


def laid_out(page, found, layer, way, dimensions=2):
    """Coordinates of vectors.

    Args:
        page: name of the page. found: has ``vectors``, float [L+1, W, H]. layer: which of them.
        way: one of `project_to_plane`'s. dimensions: K, 2 or 3.

    Returns:
        (coordinates [W, K], each axis's share of the variance or None). None while there are no coordinates, and the
        page says why: they are being computed, wait for a press, or the points are too few.
    """
    name, key, points = f"{page}_places", (found, layer, way, dimensions), found.vectors.shape[1]

    def work(progress=None):
        return project_to_plane(found.vectors[layer], way, dimensions)

    if not can_lay_out(way, points) or way != "tsne" and points <= _AT_ONCE:
        try:
            made = cached(name, key, work)
        except InputError as error:
            st.info(str(error), icon=":material/scatter_plot:")
            return None
    else:
        # A weak reference: the key of the press must not keep the vectors in memory.
        if not file_input.run_requested(name, (weakref.ref(found), *key[1:]), way != "tsne" or points <= _UNASKED):
            st.caption(f"t-SNE of {count(points, 'point')} takes a while and cannot be stopped. UMAP is quick.")
            return None
        made = jobs.result(name, key, f"Laying out {count(points, 'point')} by {NAMES[way]}", work, stops=False)
    return made
