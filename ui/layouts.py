"""Vectors laid out in the plane or in space, at once where that is quick, else beside the page."""

from bert_tf.explain import lay_out
from bert_tf.explain.projection import LEAST_POINTS
from ui import jobs
from ui.kept import kept
from ui.words import count, percent

#: How the ways to lay vectors out are called.
NAMES = {"pca": "PCA", "umap": "UMAP", "tsne": "t-SNE"}
_AT_ONCE = 60  # points that PCA and UMAP lay out in a moment


def laid_out(page, found, layer, way, dimensions=2):
    """Coordinates of vectors.

    Args:
        page: name of the page. found: has ``vectors``, float [L+1, W, H]. layer: which of them.
        way: one of `lay_out`'s. dimensions: K, 2 or 3.

    Returns:
        (coordinates [W, K], titles of the axes); None while they are worked out, with a bar on the page.
    """
    key, points = (found, layer, way, dimensions), found.vectors.shape[1]

    def work(progress=None):
        return lay_out(found.vectors[layer], way, dimensions)

    if points < LEAST_POINTS or way != "tsne" and points <= _AT_ONCE:
        made = kept(f"{page}_places", key, work)
    else:
        made = jobs.result(f"{page}_places", key, f"Laying out {count(points, 'point')} by {NAMES[way]}", work)
    if made is None:
        return None
    coordinates, shares = made
    titles = [f"component {index}: {percent(share)}" for index, share in enumerate(() if shares is None else shares, 1)]
    return coordinates, tuple(titles) or ("",) * dimensions
