"""Projections of vectors to two or three dimensions: at once if that is quick, else in a background job."""

import weakref

import streamlit as st

from bert_tf.analyses import Call
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


def projection_call(way, in_space):
    """The ``Call`` that projects vectors; way: a key of ``NAMES``; in_space: to three dimensions instead of two."""
    return Call.of(project_to_plane, way=way, dimensions=3 if in_space else 2)


def can_lay_out(call, points):
    """Whether there are enough points for the projection of a ``Call``."""
    return call["way"] == "pca" or points >= MIN_POINTS


def laid_out(place, result, layer, call):
    """The coordinates of vectors in a projection.

    Args:
        place: where the coordinates are kept. result: a result with ``vectors``, float [L+1, W, H].
        layer: index into ``vectors``. call: from ``projection_call``.

    Returns:
        (coordinates [W, K], each axis's share of the variance or None). None if there are no coordinates, with the
        reason on the page: they are being computed, Run must be pressed, or there are too few points.
    """
    name, key, points, way = f"{place}_places", (result, layer, call), result.vectors.shape[1], call["way"]

    def work(progress=None):
        return call.run(result.vectors[layer])

    if not can_lay_out(call, points) or way != "tsne" and points <= _AT_ONCE:
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
