"""Input: what the vector of each token is the sum of, before the first layer."""

import itertools

import numpy as np
import streamlit as st

from bert_tf.explain import cosine_similarities, embedding_parts, embedding_table
from bert_tf.explain.representations.vectors import PARTS, mean_by_distance, parts_of
from bert_tf.plots.representations.vectors import (
    cosine_map,
    curves,
    part_shares,
    position_map,
)
from pages.representations.snippets.input_embeddings import snippet
from ui.session import model_store, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import escape_markdown, title

PAGE = Page(
    name="input_embeddings",
    group="Representations",
    order=1,
    title="Input embeddings",
    question="What goes in: a sum of vectors",
    summary=(
        "the sum token + segment + position of every token taken apart: lengths, shares, cosines; the table "
        "of positions"
    ),
    presses={"": Press("chip")},
    analyses=("vectors", "positions"),
    settings=("of", "start"),
    settings_help="`token` `segment` `position`; the first token drawn",
    opens_rows=True,
    snippet=snippet,
)


_HEADINGS = {
    2: "A sum of two vectors: token and position",
    3: "A sum of three vectors: token, segment and position",
}
_WINDOW = 48  # tokens of a longer text that are drawn at once
_STEP = 4  # of the position table every fourth row is drawn


def page():
    opened = inputs.page_inputs()
    if opened is None:
        return
    shared, encoding = opened
    trace = targets.view_trace(shared, encoding)
    if trace is None:
        return
    parts = cached("input_embeddings", trace, lambda: shared.run(embedding_parts, trace))
    shown = _window(trace)
    _sum(trace, parts, shown)
    of = _likeness(trace, parts, shown)
    _positions(shared)
    snippets.give(shared, trace, shown, of)


def _parts():
    """The vectors that the view's model adds up."""
    config = next((info.config for info in model_store.installed() if info.name == state.view().model), None)
    return PARTS if config is None else parts_of(config)


def _window(trace):
    if trace.length <= _WINDOW:
        return range(trace.length)
    most = trace.length - _WINDOW + 1
    first = st.slider(
        f"{_WINDOW} tokens from",
        1,
        most,
        **state.bind_setting("input_embeddings.start", "w_sum_start", 1, range(1, most + 1)),
    )
    return range(first - 1, first - 1 + _WINDOW)


def _sum(trace, parts, shown):
    tokens, of = [trace.tokens[at] for at in shown], _parts()
    rows = [PARTS.index(part) for part in of]
    shares = parts.shares[rows][:, list(shown)]

    def figure(dark=False):
        return part_shares(tokens, shares, of, dark)

    with inputs.heading(_HEADINGS[len(of)]):
        export.menu(
            "input-sum",
            _header(of),
            lambda: _rows(trace, parts, rows),
            lambda: _record(trace, parts, rows),
            figure,
            lambda: {**_record(trace, parts, rows), "vectors": parts.vectors[rows], "sum": parts.total},
        )
    left, right = st.columns([1, 1], gap="large")
    with left:
        figures.show(
            "What each token's sum is made of",
            figure(frame.is_dark()),
            config=export.plot_config("input-sum"),
            key="w_sum_shares",
        )
    with right:
        st.dataframe(
            {
                "word": tokens,
                **{part: [float(norm) for norm in parts.norms[row, list(shown)]] for row, part in zip(rows, of)},
                "sum": [float(parts.total_norms[at]) for at in shown],
                "alike": [float(parts.cosines[at, 0, 2]) for at in shown],
            },
            hide_index=True,
            width="stretch",
            height=min(130 + 24 * len(tokens), 520),
            key="w_sum_norms",
            column_config={
                "word": "",
                **{
                    name: st.column_config.NumberColumn(
                        name.capitalize(), format="%.2f", help=f"Length of the {name}'s vector."
                    )
                    for name in (*of, "sum")
                },
                "alike": st.column_config.NumberColumn(
                    "cos", format="%.2f", help="Cosine of the token's vector with its position's."
                ),
            },
        )
    st.caption(
        "Bars: how much of the sum's length each part brings; one that points the other way is below 0. "
        "Table: the vectors' lengths. This is before layer normalisation and says nothing of what the layers "
        "make of it."
    )


def _likeness(trace, parts, shown):
    heading = inputs.heading("How alike the vectors of these tokens are")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        of = st.segmented_control(
            "Vector",
            [*_parts(), "sum"],
            format_func=str.capitalize,
            label_visibility="collapsed",
            **state.bind_setting("input_embeddings.of", "w_sum_of", "sum", (*_parts(), "sum")),
        )
        vectors = parts.total if of not in PARTS else parts.vectors[PARTS.index(of)]
        values, tokens = cosine_similarities(vectors[list(shown)]), [trace.tokens[at] for at in shown]
        export.menu(
            f"likeness-{of}",
            ("position", "token", *tokens),
            lambda: ((at, token, *line) for at, token, line in zip(shown, tokens, values)),
            lambda: {"model": trace.model, "vector": of, "tokens": tokens, "cosines": values},
            lambda: cosine_map(values, tokens),
            lambda: {"tokens": np.array(tokens), "cosines": values},
        )
    figures.show(
        f"Likeness of the vectors: {of}",
        cosine_map(values, tokens, dark=frame.is_dark()),
        config=export.plot_config(f"likeness-{of}"),
        key="w_sum_map",
    )
    return of


def _positions(shared):
    values = cached(
        "input_embeddings_positions",
        (shared.name, state.view().precision),
        lambda: cosine_similarities(shared.run(embedding_table, "position")),
    )
    means = mean_by_distance(values)

    def figure(dark=False):
        return position_map(values[::_STEP, ::_STEP], _STEP, dark)

    def apart(dark=False):
        return curves({"mean cosine": means}, range(len(means)), "positions apart", "mean cosine", dark, height=430)

    with inputs.heading("The table of positions"):
        export.menu(
            "positions",
            ("position", *map(str, range(len(values)))),
            lambda: ((row, *map(float, line)) for row, line in enumerate(values)),
            lambda: {"model": shared.name, "cosines": np.round(values.astype(float), 5), "mean_by_distance": means},
            {"Map": figure, "By distance": apart},
            lambda: {"cosines": values, "mean_by_distance": means},
        )
    left, right = st.columns([6, 5], gap="large")
    with left:
        figures.show(
            "Likeness of the positions",
            figure(frame.is_dark()),
            config=export.plot_config("positions"),
            key="w_sum_positions",
        )
    with right:
        figures.show(
            "Likeness of positions by how far apart they are",
            apart(frame.is_dark()),
            config=export.plot_config("positions-apart"),
            key="w_sum_apart",
        )
    st.caption(
        f"{escape_markdown(title(shared.name))} learned one vector for each of its {len(values)} positions. Neighbours "
        "are alike where the model learned an order; the map shows the table, not how attention uses it."
    )


def _header(of):
    cosines = (f"cosine_{one}_{other}" for one, other in itertools.combinations(of, 2))
    norms, shares = ([f"{part}_{what}" for part in of] for what in ("norm", "share"))
    return ("position", "token", *norms, "sum_norm", *shares, *cosines)


def _rows(trace, parts, rows):
    for at, token in enumerate(trace.tokens):
        cosines = parts.cosines[at]
        yield (
            at,
            token,
            *map(float, parts.norms[rows, at]),
            float(parts.total_norms[at]),
            *map(float, parts.shares[rows, at]),
            *(float(cosines[pair]) for pair in itertools.combinations(rows, 2)),
        )


def _record(trace, parts, rows):
    """What is saved of the parts in these rows of ``PARTS``."""
    return {
        "model": trace.model,
        "tokens": list(trace.tokens),
        "parts": [PARTS[row] for row in rows],
        "norms": parts.norms[rows],
        "sum_norms": parts.total_norms,
        "shares": parts.shares[rows],
        "cosines": parts.cosines[:, rows][:, :, rows],
    }
