"""Logit lens: what the head for masked words predicts from every layer's hidden state."""

import streamlit as st

from bert_tf import plots
from bert_tf.analyses import Call
from bert_tf.explain import class_lens, logit_lens
from bert_tf.explain.attribution.target import classifies
from bert_tf.inference.predictions import vocabulary_id
from bert_tf.plots.numbers import percent
from bert_tf.plots.representations.logit_lens import state_names
from pages.explain.snippets.logit_lens import snippet
from ui.elements import tables
from ui.elements.cells import cells
from ui.session import calls, state
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, head_predictions, inputs, targets
from ui.widgets.formatting import bold, escape_markdown

PAGE = Page(
    name="logit_lens",
    group="Explain",
    order=1,
    title="Logit lens",
    question="What each layer already knows",
    terms="hidden state vocabulary layer by layer tuned lens residual stream",
    summary=(
        "the head for masked words on every layer's hidden state: the likeliest word at each depth, from "
        "where on the final answer stays on top, rank and probability of any word followed through the "
        "layers; of a model fine-tuned to classify, its classes after every layer"
    ),
    presses={"": Press("chip", MASKED), "all tokens": Press("chip", {**MASKED, "logit_lens.rows": "all"})},
    analyses=("logit-lens",),
    settings=("rows", "start", "at", "layer", "follow"),
    settings_help=(
        "`all` tokens, the first one drawn; position, hidden state (0 the embeddings) and word of the details"
    ),
    opens_rows=True,
    snippet=snippet,
)


_WINDOW = 64  # the most tokens in the table; of a longer text a slider chooses which
_TOP = 5


def page():
    page_inputs = inputs.page_inputs()
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    if not head_predictions.can_analyse(shared, "logit-lens"):
        return
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    if classifies(shared.bert, trace):
        snippets.give(shared, trace)
        _classes(shared, trace)
    elif targets.classes(shared):
        targets.note_class_needs(shared)
    if "mlm" in shared.bert.heads:
        _words(shared, trace)


def _classes(shared, trace):
    """Draw the probabilities that a fine-tuned model's classifier computes from every layer's hidden state."""
    lens = calls.result(shared, Call.of(class_lens), trace)
    inputs.heading("The class after each layer")
    export.save("class-by-layer", lens, trace=trace)
    figures.show(
        "The class after each layer",
        lens.figure(dark=state.is_dark()),
        config=export.plot_config("class-by-layer"),
        key="w_logit_lens_class",
    )
    st.caption(
        "The head that was trained for this task reads each layer's hidden state; “emb.” are the embeddings. It was"
        " trained on the last layer alone: a layer may hold the answer in a form that this head cannot read."
    )


def _words(shared, trace):
    positions = _positions(trace)
    call = Call.of(logit_lens, positions=positions, top_k=_TOP)
    lens = calls.result(shared, call, trace)
    row = _row(lens)
    at, follow = lens.positions[row], state.setting("logit_lens.follow", "")
    snippets.give(shared, trace, call, at, follow)
    _table(trace, lens, row)
    _detail(shared, trace, lens, row)


def _positions(trace):
    """Draw the widgets for the positions in the table; returns the positions."""
    rows = "all"
    if trace.masks:
        rows = st.segmented_control(
            "Positions",
            ["masks", "all"],
            format_func={"masks": "Masked", "all": "All tokens"}.get,
            **state.bind_setting("logit_lens.rows", "w_logit_lens_rows", "masks", ("masks", "all")),
        )
    if rows != "all":
        return trace.masks
    return tuple(inputs.token_window(trace.length, _WINDOW, "logit_lens.start", "w_logit_lens_start"))


def _row(lens):
    """The row of the chosen position: the link's, else the first."""
    at = state.setting("logit_lens.at", -1)
    return lens.positions.index(at) if at in lens.positions else 0


def _table(trace, lens, row):
    names = state_names(lens.probabilities.shape[1])
    width = len(names)
    depth = min(max(state.setting("logit_lens.layer", width - 1), 0), width - 1)

    def pressed(row, column):
        state.set_setting("logit_lens.at", lens.positions[row], -1)
        state.set_setting("logit_lens.layer", column, width - 1)

    inputs.heading("The likeliest word after each layer")
    export.save("logit-lens", lens, trace=trace)
    cells(
        "c_lens",
        "The likeliest word after each layer; each row is a token. Arrow keys move, Enter opens a cell.",
        "after layer",
        [_token_name(trace, position) for position in lens.positions],
        names,
        _tips(trace, lens, names),
        plots.ramp(state.is_dark()),
        pressed,
        texts=[words[0] for token_row in lens.predicted_tokens for words in token_row],
        shades=[round(float(share), 3) for share in lens.probabilities[:, :, 0].ravel()],
        edges=[bool(lens.stable_from[r] == c) for r in range(len(lens.positions)) for c in range(width)],
        picked=row * width + depth,
        strong=[r for r, position in enumerate(lens.positions) if position in trace.masks],
        hint=(
            "From the layer with a bold frame on, the likeliest word is that of the last layer. Point at a cell, or"
            " press it."
        ),
        legend=("0%", "probability 100%"),
    )
    st.caption(
        "The head for masked words reads each layer's hidden state; “emb.” are the embeddings. It was trained on the"
        " last layer alone: a layer may hold the answer in a form that this head cannot read."
    )


def _token_name(trace, position):
    """The name of a row: the token in the text, or [MASK] where a mask was typed."""
    original = trace.original_tokens[position]
    return "[MASK]" if position in trace.masks and original == trace.tokens[position] else original


def _tips(trace, lens, names):
    """The tooltips of the cells, row by row."""
    tips = []
    for position, token_words, token_probabilities in zip(lens.positions, lens.predicted_tokens, lens.probabilities):
        for name, words, probabilities in zip(names, token_words, token_probabilities):
            predictions = ", ".join(f"{word} {percent(share)}" for word, share in zip(words[:3], probabilities))
            layer = "the embeddings" if name == "emb." else f"layer {name}"
            tips.append(f"{targets.position_label(trace, position)}, after {layer}: {predictions}")
    return tips


def _detail(shared, trace, lens, row):
    position = lens.positions[row]
    follow = state.setting("logit_lens.follow", "")
    inputs.heading(f"Token {targets.position_label(trace, position)}")
    with st.container(key="wide_columns"):
        left_column, right_column = st.columns([3, 2], gap="large")
    with left_column:
        followed = _followed(shared, trace, lens, row, follow)
        if followed is not None:
            export.save(f"token-{position}", followed, trace=trace)
            st.markdown(_story(followed))
            figures.show(
                "Rank and probability of the answer after each layer",
                followed.figure("curve", state.is_dark()),
                config=export.plot_config(f"token-{position}"),
                key="w_logit_lens_curve",
            )
    with right_column:
        _state_table(lens, row)


def _followed(shared, trace, lens, row, follow):
    """The lens of one position for the followed word: the last layer's answer, or a word that the visitor chose.

    Returns: a ``LogitLens`` of the position; None for a word that is not in the vocabulary.
    """
    position, options = lens.positions[row], list(dict.fromkeys(words[0] for words in lens.predicted_tokens[row]))
    answer = lens.answers[row].token
    if follow and follow not in options:
        options.append(follow)
    if answer not in options:
        options.append(answer)
    st.session_state["w_logit_lens_follow"] = follow or answer

    def pull():
        value = st.session_state["w_logit_lens_follow"]
        state.set_setting("logit_lens.follow", "" if value in (None, answer) else str(value), "")

    st.selectbox(
        "Word to follow", options, key="w_logit_lens_follow", on_change=pull, accept_new_options=True, width=260
    )
    try:
        ids = None if not follow else [vocabulary_id(shared.tokenizer, follow)]
    except ValueError as error:
        st.warning(escape_markdown(str(error)), icon=":material/spellcheck:")
        return None
    if ids is None:
        return lens.at(row)
    call = Call.of(logit_lens, positions=[position], top_k=_TOP, answers=ids)
    return calls.result(shared, call, trace, name="lens_one")


def _story(lens):
    """The rank of the followed word through the layers, in words; lens: a ``LogitLens`` of one position."""
    answer, first, stable_from = lens.answers[0], int(lens.first_top[0]), int(lens.stable_from[0])
    final = f"{bold(answer.token)} has {percent(answer.probability)} at the end. "
    if first < 0:
        best_rank = int(lens.answer_ranks[0].min())
        return final + f"It is on top after no layer; its best rank is {best_rank:,}."
    begin = "from the embeddings on" if first == 0 else f"first after layer {first}"
    if stable_from < 0:
        return final + f"It is on top {begin}, but not at the end."
    if stable_from == first:
        return final + f"It is on top {begin}" + (" and stays there." if first else ".")
    return final + f"It is on top {begin}, and without a break from layer {stable_from} on."


def _state_table(lens, row):
    """The likeliest words after the chosen layer."""
    width = lens.probabilities.shape[1]
    depth = min(max(state.setting("logit_lens.layer", width - 1), 0), width - 1)
    st.markdown("**" + ("Predictions from the embeddings" if depth == 0 else f"Predictions after layer {depth}") + "**")
    tables.show(
        {"word": list(lens.predicted_tokens[row][depth]), "share": [float(p) for p in lens.probabilities[row, depth]]},
        hide_index=True,
        width="stretch",
        key="w_logit_lens_state",
        column_config={
            "word": "Word",
            "share": st.column_config.ProgressColumn("Probability", format="percent", min_value=0, max_value=1),
        },
    )
    st.caption(f"Entropy {lens.entropies[row, depth]:.2f} bits; 0 means certain. Press a cell to see another layer.")
