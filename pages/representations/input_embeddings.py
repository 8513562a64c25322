"""Input embeddings: the vectors whose sum is the input of the first layer, for each token."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import VectorSimilarity, cosine_similarities, embedding_parts, position_similarity
from bert_tf.explain.representations.input_embeddings import positions_without_table
from bert_tf.plots.representations.vectors import part_shares, position_map
from pages.representations.snippets.input_embeddings import snippet
from ui.elements import tables
from ui.session import calls, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import escape_markdown, title

PAGE = Page(
    name="input_embeddings",
    group="Representations",
    order=1,
    title="Input embeddings",
    question="The input of the first layer: a sum of vectors",
    terms="word token position segment vectors type sum norm",
    summary=(
        "the parts of the sum token + segment + position of every token: lengths, shares, cosines; the table "
        "of positions"
    ),
    presses={"": Press("chip")},
    analyses=("input-embeddings", "position-embeddings"),
    settings=("of", "start"),
    settings_help="`token` `segment` `position`; the first token drawn",
    opens_rows=True,
    snippet=snippet,
)


_HEADINGS = {
    1: "The vector of each token",
    2: "A sum of two vectors: token and position",
    3: "A sum of three vectors: token, segment and position",
}
_WINDOW = 48  # tokens of a longer text that are drawn at once
_STEP = 4  # every fourth row of the position table is drawn


def page():
    page_inputs = inputs.page_inputs()
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = targets.view_trace(shared, encoding)
    if trace is None:
        return
    has_positions = shared.config.architecture.has_position_table
    call, positions_call = Call.of(embedding_parts), Call.of(position_similarity, step=1) if has_positions else None
    parts = calls.result(shared, call, trace, name="input_embeddings")
    positions = inputs.token_window(trace.length, _WINDOW, "input_embeddings.start", "w_sum_start")
    _sum(trace, parts, positions)
    of = _similarity(trace, parts, positions)
    if positions_call is None:
        st.caption(
            f"{escape_markdown(title(shared.name))} adds nothing to these vectors: it has no table of positions; "
            f"{positions_without_table(shared.config)}."
        )
    else:
        _positions(shared, positions_call)
    snippets.give(shared, trace, call, positions, of, positions_call, _STEP)


def _sum(trace, parts, positions):
    tokens, names = [trace.tokens[at] for at in positions], parts.parts
    inputs.heading(_HEADINGS[len(names)])
    export.save("input-sum", parts, trace=trace)
    left, right = st.columns([5, 7], gap="medium")  # at a width of 1,024 all columns of the table are in sight
    with left:
        figures.show(
            "The parts of each token's sum",
            part_shares(tokens, parts.shares[:, list(positions)], names, state.is_dark()),
            config=export.plot_config("input-sum"),
            key="w_sum_shares",
        )
    with right:
        tables.show(
            {
                "word": tokens,
                **{part: norms[list(positions)].tolist() for part, norms in zip(names, parts.norms)},
                "sum": [float(parts.total_norms[at]) for at in positions],
                **({"alike": [float(parts.cosines[at, 0, -1]) for at in positions]} if len(names) > 1 else {}),
            },
            hide_index=True,
            width="stretch",
            height=min(130 + 24 * len(tokens), 520),
            key="w_sum_norms",
            column_config={
                "word": "Word",
                **{
                    name: st.column_config.NumberColumn(
                        name.capitalize(), format="%.2f", help=f"The length of the {name}'s vector."
                    )
                    for name in (*names, "sum")
                },
                "alike": st.column_config.NumberColumn(
                    "Cosine", format="%.2f", help="The cosine of the token's vector with that of its position."
                ),
            },
        )
    st.caption(
        "Bars show the share of each part in the sum's length, and the table the lengths of the vectors. Both are "
        "from before layer normalisation, and do not show what the layers do with these vectors.",
        help="A part with the opposite direction is below 0.",
    )


def _similarity(trace, parts, positions):
    heading = inputs.heading("How similar the vectors of these tokens are")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        of = st.segmented_control(
            "Vector",
            [*parts.parts, "sum"],
            format_func=str.capitalize,
            label_visibility="collapsed",
            **state.bind_setting("input_embeddings.of", "w_sum_of", "sum", (*parts.parts, "sum")),
        )
        vectors = parts.vectors[parts.parts.index(of)] if of in parts.parts else parts.total
        similarity = VectorSimilarity(
            tuple(trace.tokens[at] for at in positions), cosine_similarities(vectors[list(positions)])
        )
        export.save(f"similarity-{of}", similarity, {"vector": of}, trace=trace)
    figures.show(
        f"Similarity of the vectors: {of}",
        similarity.figure(dark=state.is_dark()),
        config=export.plot_config(f"similarity-{of}"),
        key="w_sum_map",
    )
    return of


def _positions(shared, call):
    similarity = cached(
        "input_embeddings_positions",
        (shared.name, state.view().precision, call),
        lambda: shared.run(call.run),
    )
    inputs.heading("The table of positions")
    export.save("positions", similarity, {"model": shared.name})
    left, right = st.columns([6, 5], gap="large")
    with left:
        figures.show(
            "Similarity of the positions",
            position_map(similarity.cosines[::_STEP, ::_STEP], _STEP, state.is_dark()),
            config=export.plot_config("positions"),
            key="w_sum_positions",
        )
    with right:
        figures.show(
            "Similarity of positions by their distance",
            similarity.figure("by-distance", state.is_dark()),
            config=export.plot_config("positions-apart"),
            key="w_sum_apart",
        )
    st.caption(
        f"{escape_markdown(title(shared.name))} learned a vector for each of {len(similarity.positions)} positions, "
        "and it has learned their order if neighbours are similar. The map shows the table, not how attention uses it."
    )
