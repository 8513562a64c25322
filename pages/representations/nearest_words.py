"""Nearest words: the words of the vocabulary, or the contexts of a file, nearest to a token's vectors."""

import streamlit as st

from bert_tf import plots
from bert_tf.analyses import Call
from bert_tf.explain import nearest_words
from bert_tf.explain.representations.embedding_tables import parts_of
from bert_tf.plots.representations.nearest_words import vector_names
from pages.representations import nearest_contexts
from pages.representations.snippets.nearest_words import snippet
from ui.elements import tables
from ui.elements.cells import cells
from ui.session import calls, state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, inputs, targets
from ui.widgets.formatting import escape_markdown, number

PAGE = Page(
    name="nearest_words",
    group="Representations",
    order=3,
    title="Nearest words",
    question="Which words lie nearest",
    terms="neighbours cosine similarity embeddings contexts analogy",
    summary=(
        "the words of the vocabulary nearest to each token's static vector and to its hidden state after "
        "every layer; the contexts in a file, each word in its sentence, nearest to a token's hidden state or "
        "to the output of one or more heads; the words that these heads attend to; parts of speech of both by a "
        "tagger, or with relations from a CoNLL-U file"
    ),
    presses={"": Press("td[data-at]")},
    analyses=("nearest-words",),
    settings=("start", "at", "vector", "centred", "among", "file", "first", "second", "head", "tags"),
    settings_help=(
        "the first token drawn; position of a token and column of its vector (0 static, 1 the embeddings, then "
        "the layers); `0` for plain cosines; `text` for the contexts in a file; the file as of `dataset`; the "
        "heads, from 1, of the open cell's layer whose outputs are compared instead of the hidden state, `3` or "
        "`3,5`; `1` for the parts of speech of the words"
    ),
    opens_rows=True,
    snippet=snippet,
)


_WINDOW = 32  # tokens of a longer text in the table at once
_TOP = 10
_AMONG = {"vocabulary": "In the vocabulary", "text": "In a text"}
#: The hidden state 0 by the number of vectors that are added.
_EMBEDDINGS = {
    1: "the same after its normalisation",
    2: "the sum of the two parts of the embeddings",
    3: "the sum of the three parts of the embeddings",
}


def page():
    page_inputs = inputs.page_inputs()
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    positions = tuple(inputs.token_window(trace.length, _WINDOW, "nearest_words.start", "w_near_start"))
    centred = state.setting("nearest_words.centred", True)
    call = Call.of(nearest_words, positions=positions, top_k=_TOP, centred=centred)
    neighbours = calls.result(shared, call, trace)
    if len(neighbours.vectors) == 1:
        st.caption("This model's hidden states are larger than its word vectors: only the static ones have neighbours.")
    _table(trace, positions, neighbours, len(parts_of(shared.config)))
    row, column = _place(positions, neighbours)
    at, layer = positions[row], column - 1 if column else None
    if _among(trace.tokens[at]) == "vocabulary":
        _detail(neighbours.nearest[row], column)
        snippets.give(shared, trace, call, (row, column))
    elif layer is None and len(neighbours.vectors) > 1:
        st.info(
            "A static vector is the same in every context. Press a cell of a layer above.",
            icon=":material/touch_app:",
        )
    else:
        # If hidden states have no neighbours in the vocabulary, those of the last layer are compared.
        nearest_contexts.show(shared, trace, at, len(trace.hidden_states) - 1 if layer is None else layer, centred)


def _place(positions, neighbours):
    """Row and column of the open cell: those of the link, else the first word after the middle layer.

    After the last layers the nearest words are mostly noise.
    """
    at, vector = state.setting("nearest_words.at", -1), state.setting("nearest_words.vector", -1)
    row = positions.index(at) if at in positions else min(1, len(positions) - 1)
    return row, vector if 0 <= vector < len(neighbours.vectors) else len(neighbours.vectors) // 2


def _table(trace, positions, neighbours, parts):
    names = vector_names(neighbours)
    row, column = _place(positions, neighbours)
    best = [[neighbours.nearest_other(at, vector) for vector in range(len(names))] for at in range(len(positions))]
    is_own_word = [
        [near[0].id == int(trace.token_ids[at]) for near in line] for at, line in zip(positions, neighbours.nearest)
    ]

    def pressed(row, column):
        state.set_setting("nearest_words.at", positions[row], -1)
        state.set_setting("nearest_words.vector", column, -1)

    heading = inputs.heading("The nearest other word")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        st.toggle(
            "Centred",
            **state.bind_setting("nearest_words.centred", "w_near_centred", True),
            help="The vectors of a vocabulary share a direction that hides their differences: with this, their "
            "mean is subtracted from all vectors first (Mu and Viswanath 2018).",
        )
        export.save("nearest-words", neighbours, trace=trace)
    cells(
        "c_near",
        "The nearest other word of each token's vectors, a row for each token. Arrow keys move, Enter opens a cell.",
        "after layer",
        [trace.tokens[at] for at in positions],
        names,
        [
            _tip(trace.tokens[at], name, near)
            for at, line in zip(positions, neighbours.nearest)
            for name, near in zip(names, line)
        ],
        plots.ramp(state.is_dark()),
        pressed,
        texts=[one.token for line in best for one in line],
        shades=[round(min(max(one.similarity, 0.0), 1.0), 3) for line in best for one in line],
        edges=[one for line in is_own_word for one in line],
        picked=row * len(names) + column,
        strong=[index for index, at in enumerate(positions) if at in trace.masks],
        hint="Framed in bold: the token's own word is the nearest of all. Point at a cell, or press it.",
        legend=("0", "cosine 1"),
    )
    st.caption(
        "The cosines are with the vectors of the token table: “static” is the token's row of this table, and “emb.” "
        f"{_EMBEDDINGS[parts]}. The hidden states of deeper layers lie in another space: the logit lens "
        "reads them with the head that was trained on the last layer."
    )


def _tip(token, name, near):
    words = ", ".join(f"{neighbour.token} {number(neighbour.similarity)}" for neighbour in near[:4])
    vector = {"static": "its static vector", "emb.": "the embeddings"}.get(name, f"after layer {name}")
    return f"{token}, {vector}: {words}"


def _among(token):
    """The heading of the open cell, with the choice between the vocabulary and a file; returns a key of `_AMONG`."""
    with inputs.heading(f"Nearest to “{escape_markdown(token)}”"):
        return st.segmented_control(
            "Searched in",
            list(_AMONG),
            format_func=_AMONG.get,
            required=True,
            label_visibility="collapsed",
            **state.bind_setting("nearest_words.among", "w_near_among", "vocabulary", _AMONG),
        )


def _detail(nearest, column):
    sides = [(0, "Its static vector")]
    if column:
        name = "The embeddings" if column == 1 else f"After layer {column - 1}"
        sides.append((column, name))
    for place, (index, heading) in zip(st.columns(2, gap="large"), sides):
        with place:
            st.markdown(f"**{heading}**")
            near = nearest[index]
            tables.show(
                {"word": [one.token for one in near], "cosine": [one.similarity for one in near]},
                hide_index=True,
                width="stretch",
                key=f"w_near_{'static' if index == 0 else 'state'}",
                column_config={
                    "word": "Word",
                    "cosine": st.column_config.ProgressColumn("Cosine", format="%.3f", min_value=0, max_value=1),
                },
            )
