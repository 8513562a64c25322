"""Nearest words: the words of the vocabulary that lie nearest to a token's vector, layer by layer; and the places of a
file."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain import nearest_words
from bert_tf.explain.representations.vectors import parts_of
from bert_tf.plots.representations.nearest_words import vector_names
from pages.representations import nearest_contexts
from pages.representations.snippets.nearest_words import snippet
from ui.elements.cells import cells
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, inputs, targets
from ui.widgets.formatting import escape_markdown

PAGE = Page(
    name="nearest_words",
    group="Representations",
    order=3,
    title="Nearest words",
    question="Which words lie nearest",
    summary=(
        "the words of the vocabulary nearest to each token's static vector and to its hidden state after "
        "every layer; the places of a file, each word in its sentence, nearest to a token's hidden state or "
        "to what one head or several put together there; the words that these heads look at from there; what "
        "both are: parts of speech by a tagger, or with relations from a CoNLL-U file"
    ),
    presses={"": Press("td[data-at]")},
    analyses=("nearest-words",),
    settings=("start", "at", "vector", "centred", "among", "file", "first", "second", "head", "tags"),
    settings_help=(
        "the first token drawn; position of a token and column of its vector (0 static, 1 what goes in, then "
        "the layers); `0` for plain cosines; `text` for the places of a file; the file as of `dataset`; the "
        "heads, from 1, of the open cell's layer that are compared in the place of the hidden state, `3` or "
        "`3,5`; `1` for the parts of speech of the words found"
    ),
    opens_rows=True,
    snippet=snippet,
)


_WINDOW = 32  # tokens of a longer text in the table at once
_TOP = 10
_AMONG = {"vocabulary": "In the vocabulary", "text": "In a text"}


def page():
    opened = inputs.page_inputs()
    if opened is None:
        return
    shared, encoding = opened
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    shown = _window(trace)
    centred = state.setting("nearest_words.centred", True)
    found = cached(
        "nearest_words", (trace, shown, centred), lambda: shared.run(nearest_words, trace, shown, _TOP, centred)
    )
    if len(found.vectors) == 1:
        st.caption("This model's hidden states are larger than its word vectors: only the static ones have neighbours.")
    _table(trace, shown, found, "three" if "segment" in parts_of(shared.config) else "two")
    row, column = _place(shown, found)
    at, layer = shown[row], column - 1 if column else None
    if _among(trace.tokens[at]) == "vocabulary":
        _detail(found.nearest[row], column)
        snippets.give(shared, trace, shown, centred, _TOP, at, layer)
    elif layer is None and len(found.vectors) > 1:
        st.info(
            "A static vector is the same wherever its word stands. Press a cell of a layer above.",
            icon=":material/touch_app:",
        )
    else:
        # Where states have no neighbours in the vocabulary, the last layer's are compared with each other.
        nearest_contexts.show(shared, trace, at, len(trace.hidden_states) - 1 if layer is None else layer, centred)


def _window(trace):
    if trace.length <= _WINDOW:
        return tuple(range(trace.length))
    most = trace.length - _WINDOW + 1
    first = st.slider(
        f"{_WINDOW} tokens from",
        1,
        most,
        **state.bind_setting("nearest_words.start", "w_near_start", 1, range(1, most + 1)),
    )
    return tuple(range(first - 1, first - 1 + _WINDOW))


def _place(shown, found):
    """Row and column of the open cell: the link's, else the first word after the last layer."""
    at, vector = state.setting("nearest_words.at", -1), state.setting("nearest_words.vector", -1)
    row = shown.index(at) if at in shown else min(1, len(shown) - 1)
    return row, vector if 0 <= vector < len(found.vectors) else len(found.vectors) - 1


def _table(trace, shown, found, parts):
    names = vector_names(found)
    row, column = _place(shown, found)
    best = [[found.nearest_other(at, vector) for vector in range(len(names))] for at in range(len(shown))]
    own = [[near[0].id == int(trace.token_ids[at]) for near in line] for at, line in zip(shown, found.nearest)]

    def pressed(row, column):
        state.set_setting("nearest_words.at", shown[row], -1)
        state.set_setting("nearest_words.vector", column, -1)

    heading = inputs.heading("The nearest other word")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        st.toggle(
            "Centred",
            **state.bind_setting("nearest_words.centred", "w_near_centred", True),
            help="The vectors of a vocabulary share a direction that hides their differences: their "
            "mean is taken from both sides first (Mu and Viswanath 2018).",
        )
        export.save("nearest-words", found, {"model": trace.model})
    cells(
        "c_near",
        "The nearest other word of each token's vectors, a row a token. Arrow keys move, Enter opens one.",
        "after layer",
        [trace.tokens[at] for at in shown],
        names,
        [
            _tip(trace.tokens[at], name, near)
            for at, line in zip(shown, found.nearest)
            for name, near in zip(names, line)
        ],
        plots.ramp(frame.is_dark()),
        pressed,
        texts=[one.token for line in best for one in line],
        shades=[round(min(max(one.similarity, 0.0), 1.0), 3) for line in best for one in line],
        edges=[one for line in own for one in line],
        picked=row * len(names) + column,
        strong=[index for index, at in enumerate(shown) if at in trace.masks],
        hint="Framed in bold: the token's own word is the nearest of all. Point at a cell, or press it.",
        legend=("0", "cosine 1"),
    )
    st.caption(
        "Cosines with the vocabulary's own vectors, the table that goes into the model. “Static” is the "
        f"token's own row of it, “in” the sum of the {parts} parts. Deeper hidden states live in a space of their own: "
        "there, the logit lens asks the head that was trained to read them."
    )


def _tip(token, name, near):
    said = ", ".join(f"{one.token} {one.similarity:.2f}" for one in near[:4])
    what = {"static": "its static vector", "in": "what goes in"}.get(name, f"after layer {name}")
    return f"{token}, {what}: {said}"


def _among(token):
    """The heading of the open cell, with the choice of what is looked through."""
    with inputs.heading(f"Nearest to “{escape_markdown(token)}”"):
        return st.segmented_control(
            "Looked through",
            list(_AMONG),
            format_func=_AMONG.get,
            required=True,
            label_visibility="collapsed",
            **state.bind_setting("nearest_words.among", "w_near_among", "vocabulary", _AMONG),
        )


def _detail(nearest, column):
    sides = [(0, "Its static vector")]
    if column:
        name = "What goes in" if column == 1 else f"After layer {column - 1}"
        sides.append((column, name))
    for place, (index, heading) in zip(st.columns(2, gap="large"), sides):
        with place:
            st.markdown(f"**{heading}**")
            near = nearest[index]
            st.dataframe(
                {"word": [one.token for one in near], "cosine": [one.similarity for one in near]},
                hide_index=True,
                width="stretch",
                key=f"w_near_{'static' if index == 0 else 'state'}",
                column_config={
                    "word": "Word",
                    "cosine": st.column_config.ProgressColumn("Cosine", format="%.3f", min_value=0, max_value=1),
                },
            )
