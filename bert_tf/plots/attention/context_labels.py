"""Labels of the words at nearest contexts, and of the tokens that heads attend to most from there, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, LEGEND_ABOVE, apply_theme, escape

if TYPE_CHECKING:
    from bert_tf.explain.attention.context_labels import ContextCounts

_FAR = 5  # tokens; all larger distances share one bar
_LEGEND = {**LEGEND_ABOVE, "traceorder": "normal"}


def paired_bars(at_contexts: dict[str, int], at_attended: dict[str, int], dark: bool = False) -> go.Figure:
    """How often each label occurs at the contexts and at the most attended tokens.

    Args:
        at_contexts: dict from label to count. Of the words at the contexts.
        at_attended: dict from label to count. Of the tokens that heads attend to most from there.
        dark: bool. Whether the page is dark.
    """
    labels = sorted(
        {**at_contexts, **at_attended}, key=lambda label: -at_contexts.get(label, 0) - at_attended.get(label, 0)
    )
    figure = go.Figure(
        [
            _bars([counts.get(label, 0) for label in labels], list(map(escape, labels)), name, colour, shape, "h")
            for counts, name, colour, shape in zip(
                (at_contexts, at_attended), ("found", "looked at"), _colours(dark), ("", "/")
            )
        ]
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.layout.xaxis = dict(title="how many", tickformat="d", rangemode="tozero")
    figure.layout.barmode, figure.layout.showlegend, figure.layout.legend = "group", True, _LEGEND
    return apply_theme(figure, dark, height=130 + 34 * len(labels))


def offset_bars(words: dict[int, int], special: dict[int, int], dark: bool = False) -> go.Figure:
    """The distances from the contexts to the tokens that heads attend to most, as a histogram.

    Args:
        words: dict from offset to count. Of tokens that belong to words; offsets are below 0 before the context.
        special: dict from offset to count. Of tokens that the model adds.
        dark: bool. Whether the page is dark.
    """
    clipped = [max(-_FAR, min(_FAR, offset)) for offset in (*words, *special, 0)]
    steps = range(min(clipped), max(clipped) + 1)
    figure = go.Figure(
        [
            _bars([_within(counts, step) for step in steps], list(map(_named, steps)), name, colour, shape, "v")
            for counts, name, colour, shape in zip(
                (words, special), ("a word", "a special token"), CATEGORIES[1:4:2], ("/", ".")
            )
            if counts
        ]
    )
    figure.layout.xaxis = dict(
        title="tokens away, below 0 before it", type="category", ticks="", showgrid=False, tickangle=0
    )
    figure.layout.yaxis = dict(title="how many", tickformat="d", rangemode="tozero")
    figure.layout.barmode, figure.layout.showlegend, figure.layout.legend = "stack", True, _LEGEND
    return apply_theme(figure, dark, height=300)


def part_of_speech_bars(counts: ContextCounts, dark: bool = False) -> go.Figure:
    """`paired_bars` of the parts of speech."""
    return paired_bars(counts.parts_of_speech or {}, counts.looked_at_parts_of_speech or {}, dark)


def relation_bars(counts: ContextCounts, dark: bool = False) -> go.Figure:
    """`paired_bars` of the relations."""
    return paired_bars(counts.relations or {}, counts.looked_at_relations or {}, dark)


def distance_bars(counts: ContextCounts, dark: bool = False) -> go.Figure:
    """`offset_bars` of the offsets."""
    special = counts.special_offsets
    words = {offset: number - special.get(offset, 0) for offset, number in counts.offsets.items()}
    return offset_bars({offset: number for offset, number in words.items() if number}, special, dark)


def _within(counts: dict[int, int], step: int) -> int:
    return sum(number for offset, number in counts.items() if max(-_FAR, min(_FAR, offset)) == step)


def _named(step: int) -> str:
    return {-_FAR: f"≤-{_FAR}", _FAR: f"≥{_FAR}", 0: "0"}.get(step, f"{step:+d}")


def _bars(values, labels, name, colour, shape, orientation):
    x, y = (values, labels) if orientation == "h" else (labels, values)
    template = "%{y}: %{x}" if orientation == "h" else "%{x}: %{y}"
    return go.Bar(
        x=x,
        y=y,
        name=name,
        orientation=orientation,
        marker={"color": colour, "pattern": {"shape": shape}},
        hovertemplate=template + "<extra>%{fullData.name}</extra>",
    )


def _colours(dark):
    return CATEGORIES[4] if dark else CATEGORIES[0], CATEGORIES[1]
