"""What stands at the places found in a file, and what heads look at from there, as bars."""

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, apply_theme, escape

_FAR = 5  # tokens; all that is further away stands in one bar
_LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def paired_bars(found, looked, dark=False):
    """How often each label stands among the words found, and among those that heads look at from there.

    Args:
        found, looked: dicts from label to count. dark: for a dark page.
    """
    labels = sorted({**found, **looked}, key=lambda label: -found.get(label, 0) - looked.get(label, 0))
    figure = go.Figure(
        [
            _bars([counts.get(label, 0) for label in labels], list(map(escape, labels)), name, colour, shape, "h")
            for counts, name, colour, shape in zip((found, looked), ("found", "looked at"), _colours(dark), ("", "/"))
        ]
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.layout.xaxis = dict(title="how many", tickformat="d", rangemode="tozero")
    figure.layout.barmode, figure.layout.showlegend, figure.layout.legend = "group", True, _LEGEND
    return apply_theme(figure, dark, height=130 + 34 * len(labels))


def offset_bars(words, special, dark=False):
    """How far away what heads look at stands from the words found, as a histogram.

    Args:
        words, special: dicts from offset to count, of words and of tokens that the model adds; below 0 before the word.
        dark: for a dark page.
    """
    far = [max(-_FAR, min(_FAR, offset)) for offset in (*words, *special, 0)]
    steps = range(min(far), max(far) + 1)
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


def part_of_speech_bars(counts, dark=False):
    """Parts of speech of the words found and of those looked at, of ``ContextCounts``."""
    return paired_bars(counts.parts_of_speech or {}, counts.looked_at_parts_of_speech, dark)


def relation_bars(counts, dark=False):
    """Relations of the words found and of those looked at, of ``ContextCounts``."""
    return paired_bars(counts.relations or {}, counts.looked_at_relations, dark)


def distance_bars(counts, dark=False):
    """How far away what heads look at stands, of ``ContextCounts``."""
    special = counts.special_offsets
    words = {offset: number - special.get(offset, 0) for offset, number in counts.offsets.items()}
    return offset_bars({offset: number for offset, number in words.items() if number}, special, dark)


def _within(counts, step):
    return sum(number for offset, number in counts.items() if max(-_FAR, min(_FAR, offset)) == step)


def _named(step):
    return {-_FAR: f"≤-{_FAR}", _FAR: f"≥{_FAR}", 0: "0"}.get(step, f"{step:+d}")


def _bars(values, labels, name, colour, shape, orientation):
    x, y = (values, labels) if orientation == "h" else (labels, values)
    told = "%{y}: %{x}" if orientation == "h" else "%{x}: %{y}"
    return go.Bar(
        x=x,
        y=y,
        name=name,
        orientation=orientation,
        marker={"color": colour, "pattern": {"shape": shape}},
        hovertemplate=told + "<extra>%{fullData.name}</extra>",
    )


def _colours(dark):
    return CATEGORIES[4] if dark else CATEGORIES[0], CATEGORIES[1]
