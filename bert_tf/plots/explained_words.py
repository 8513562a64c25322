"""Figures of the kinds of ``explain`` about words as vectors; see ``explained``."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.explained_parts import token_axes, value_map
from bert_tf.plots.representations.factors import factor_map
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.representations.vectors import (
    component_titles,
    cosine_map,
    curves,
    nearest_map,
    points,
    position_map,
)
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, unique_labels


def _vectors(record, dark):
    names = unique_labels(one["token"] for one in record["tokens"])
    figure = go.Figure()
    for place, (part, colour) in enumerate(zip(("token", "segment", "position"), CATEGORIES)):
        shares = [one["shares"][place] for one in record["tokens"]]
        figure.add_trace(
            go.Bar(
                x=shares,
                y=names,
                orientation="h",
                name=part,
                marker_color=colour,
                hovertemplate="%{y}, " + part + ": %{x:.2f}<extra></extra>",
            )
        )
    figure.update_layout(barmode="relative", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    figure.update_yaxes(autorange="reversed", type="category", ticks="")
    figure.update_xaxes(title="share of the sum")
    return apply_theme(figure, dark, 180 + 22 * len(names))


def _positions(record, dark):
    return position_map(np.array(record["cosines"]), record["step"], dark)


def _neighbours(record, dark):
    """The nearest word that is another than the token itself, on the colour of its cosine; or the nearest places."""
    if "layer" in record:
        return _places(record, dark)
    others = [
        [next((near for near in row if near["token"] != one["token"]), row[0]) for row in one["nearest"]]
        for one in record["tokens"]
    ]
    values = [[near["similarity"] for near in row] for row in others]
    names = unique_labels(one["token"] for one in record["tokens"])
    cells = value_map(values, record["vectors"], names, dark, "%{y}, %{x}: %{text} %{z:.3f}")
    words = [[escape(near["token"]) for near in row] for row in others]
    cells.update(text=words, texttemplate="%{text}", zmin=0, zmax=1)
    figure = go.Figure(cells)
    token_axes(figure)
    figure.update_xaxes(title="static vector, and the state after each layer", tickangle=0)
    return apply_theme(figure, dark, int(np.clip(140 + 26 * len(names), 300, 1600)))


def _places(record, dark):
    """The words of a file nearest to each token's vector, on the colour of their cosines."""
    near, tokens = [one["places"] for one in record["tokens"]], [one["token"] for one in record["tokens"]]
    ranks = [str(rank + 1) for rank in range(len(near[0]))]
    figure = nearest_map(
        [[one["similarity"] for one in line] for line in near],
        [[one["word"] for one in line] for line in near],
        tokens,
        ranks,
        dark,
    )
    tips = [[escape(_tip(one)) for one in line] for line in near]
    figure.data[0].update(customdata=tips, hovertemplate="%{customdata}, cosine %{z:.3f}<extra></extra>")
    heads = record["head"]
    where = f"after layer {record['layer']}"
    if heads is not None:
        heads = [heads] if isinstance(heads, int) else heads
        where = f"by head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))} of layer {record['layer']}"
    return figure.update_xaxes(title=f"nearest places, {where}")


def _tip(place):
    said = "row {row}: {before}[{word}]{after:.60}".format(**place | {"before": place["before"][-60:]})
    looked = place.get("looks_at")
    return said if looked is None else f"{said}, looks at {looked['token']} {looked['share']:.2f}"


def _factors(record, dark):
    return factor_map([one["weights"] for one in record["factors"]], record["tokens"], dark)


def _meaning(record, dark):
    senses, sentences = record["senses"], record["sentences"]
    if record["show"] == "senses":
        apart = record["separation"]
        series = {
            "nearest has the same sense": apart["nearest"],
            "cosine, same sense": apart["within"],
            "cosine, other sense": apart["between"],
        }
        names = state_names(len(apart["nearest"]))
        return curves(series, names, "after layer", "share, and mean cosine", dark, 420)
    if record["show"] == "likeness":
        order = sorted(range(len(senses)), key=lambda index: senses[index])
        cosines = np.array(record["cosines"])[np.ix_(order, order)]
        names = [senses[index] or str(index + 1) for index in order]
        return cosine_map(cosines, names, [sentences[index] for index in order], dark, spread=True)
    axes = component_titles(record["shares_of_variance"], 3)
    return points(np.array(record["coordinates"]), sentences, senses if any(senses) else None, axes, dark)


KINDS = {
    "vectors": _vectors,
    "positions": _positions,
    "neighbours": _neighbours,
    "factors": _factors,
    "meaning": _meaning,
}
