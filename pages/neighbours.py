"""Neighbours: the words of the vocabulary that lie nearest to a token's vector, layer by layer; and the places of a
file."""

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import (
    attended_values,
    count_labels,
    embedding_table,
    matched_labels,
    nearest_contexts,
    nearest_tokens,
)
from bert_tf.explain.contexts import MOST
from bert_tf.explain.vectors import parts_of, word_ids
from bert_tf.plots.effects import ranked_bars
from bert_tf.plots.vectors import nearest_map
from ui import export, files, frame, inputs, jobs, models, opening, snippets, state, why
from ui.cells import cells
from ui.kept import kept
from ui.words import count, plain

_WINDOW = 32  # tokens of a longer text in the table at once
_TOP = 10
_HEADER = ("position", "token", "vector", "rank", "neighbour", "cosine")
_AMONG = {"vocabulary": "In the vocabulary", "text": "In a text"}
_PLACES = 20  # places of a file that are shown
_SIDE = 70  # characters of a sentence shown on either side of the word
_PLACES_HEADER = ("rank", "cosine", "row", "before", "word", "after", "token", "position", "text")
_TAGGER = "parts-of-speech-base-cased"
_TAG = "part_of_speech"


def page():
    opened = inputs.opened("Which words lie nearest")
    if opened is None:
        return
    shared, encoding = opened
    trace = why.traced(shared, encoding, hidden_states=True)
    if trace is None:
        return
    shown = _window(trace)
    centred = state.setting("neighbours.centred", True)
    found = kept("neighbours", (trace, shown, centred), lambda: _nearest(shared, trace, shown, centred))
    if len(found[0]) == 1:
        st.caption(
            "This model's states are larger than its word vectors: only the static ones have neighbours."
        )
    _table(trace, shown, found, "three" if "segment" in parts_of(shared.config) else "two")
    row, column = _place(shown, found)
    at, layer = shown[row], column - 1 if column else None
    if _among(trace.tokens[at]) == "vocabulary":
        _detail(found[row], column)
        snippets.give(shared, trace, shown, centred, _TOP, at, layer)
    elif layer is None and len(found[0]) > 1:
        st.info(
            "A static vector is the same wherever its word stands. Press a cell of a layer above.",
            icon=":material/touch_app:",
        )
    else:
        # Where states have no neighbours in the vocabulary, the last layer's are compared with each other.
        _in_text(shared, trace, at, len(trace.hidden_states) - 1 if layer is None else layer, centred)


def _window(trace):
    if trace.length <= _WINDOW:
        return tuple(range(trace.length))
    most = trace.length - _WINDOW + 1
    first = st.slider(
        f"{_WINDOW} tokens from",
        1,
        most,
        **state.bound_setting("neighbours.start", "w_near_start", 1, range(1, most + 1)),
    )
    return tuple(range(first - 1, first - 1 + _WINDOW))


def _nearest(shared, trace, shown, centred):
    """Neighbours of every shown token: [token][vector], vector 0 the static one and then every state.

    Where states are of another width than the vocabulary's vectors, there is the static one alone.
    """
    table = shared.run(embedding_table, "token")
    static = table[trace.token_ids[list(shown)]][None]
    states = trace.hidden_states[:, list(shown)]
    same = states.shape[-1] == static.shape[-1]
    vectors = (np.concatenate([static, states]) if same else static).swapaxes(0, 1)
    flat = shared.run(
        nearest_tokens, vectors.reshape(-1, vectors.shape[-1]), _TOP, centred, word_ids(shared.tokenizer)
    )
    width = vectors.shape[1]
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _names(found):
    return ["static", "in", *map(str, range(1, len(found[0]) - 1))][: len(found[0])]


def _first_other(near, own):
    return next(one for one in near if one.id != own)


def _place(shown, found):
    """Row and column of the open cell: the link's, else the first word after the last layer."""
    at, vector = state.setting("neighbours.at", -1), state.setting("neighbours.vector", -1)
    row = shown.index(at) if at in shown else min(1, len(shown) - 1)
    return row, vector if 0 <= vector < len(found[0]) else len(found[0]) - 1


def _table(trace, shown, found, parts):
    names = _names(found)
    row, column = _place(shown, found)
    best = [[_first_other(near, int(trace.token_ids[at])) for near in line] for at, line in zip(shown, found)]
    own = [[near[0].id == int(trace.token_ids[at]) for near in line] for at, line in zip(shown, found)]

    def pressed(row, column):
        state.set_setting("neighbours.at", shown[row], -1)
        state.set_setting("neighbours.vector", column, -1)

    heading = inputs.heading("The nearest other word")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        st.toggle(
            "Centred",
            **state.bound_setting("neighbours.centred", "w_near_centred", True),
            help="The vectors of a vocabulary share a direction that hides their differences: their "
            "mean is taken from both sides first (Mu and Viswanath 2018).",
        )
        export.menu(
            "neighbours",
            _HEADER,
            lambda: _rows(trace, shown, found),
            lambda: _record(trace, shown, found),
            lambda: nearest_map(
                [[one.similarity for one in line] for line in best],
                [[one.token for one in line] for line in best],
                [trace.tokens[at] for at in shown],
                names,
            ),
            lambda: {
                "positions": np.array(shown),
                "tokens": np.array([trace.tokens[at] for at in shown]),
                "vectors": np.array(names),
                "neighbours": np.array([[[one.token for one in near] for near in line] for line in found]),
                "cosines": np.array([[[one.similarity for one in near] for near in line] for line in found]),
            },
        )
    cells(
        "c_near",
        "The nearest other word of each token's vectors, a row a token. Arrow keys move, Enter opens one.",
        "after layer",
        [trace.tokens[at] for at in shown],
        names,
        [
            _tip(trace.tokens[at], name, near)
            for at, line in zip(shown, found)
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
        f"token's own row of it, “in” the sum of the {parts} parts. Deeper states live in a space of their own: there, "
        "Layer by layer asks the head that was trained to read them."
    )


def _tip(token, name, near):
    said = ", ".join(f"{one.token} {one.similarity:.2f}" for one in near[:4])
    what = {"static": "its static vector", "in": "what goes in"}.get(name, f"after layer {name}")
    return f"{token}, {what}: {said}"


def _among(token):
    """The heading of the open cell, with the choice of what is looked through."""
    with inputs.heading(f"Nearest to “{plain(token)}”"):
        return st.segmented_control(
            "Looked through",
            list(_AMONG),
            format_func=_AMONG.get,
            required=True,
            label_visibility="collapsed",
            **state.bound_setting("neighbours.among", "w_near_among", "vocabulary", _AMONG),
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
                    "cosine": st.column_config.ProgressColumn(
                        "Cosine", format="%.3f", min_value=0, max_value=1
                    ),
                },
            )


def _in_text(shared, trace, at, layer, centred):
    """The places of a file nearest to the token, by the states after the layer or by what a head puts together."""
    read = files.rows("neighbours")
    if read is None:
        return
    rows, file_key = read
    head = _head(shared.config.num_attention_heads, layer) if layer else None
    tagger = _TAGGER if _can_tag() and state.setting("neighbours.tags", False) else None
    view = state.view()
    snippets.give(shared, trace, (), centred, _PLACES, at, layer, file_key, head, tagger)
    key = (shared.name, view.precision, view.a, view.b, trace.masks, at, layer, head, centred, file_key)
    if not files.asked("neighbours", key, len(rows.rows) <= files.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}.")
        return
    found = jobs.result(
        "neighbours",
        key,
        f"Reading {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(_search, trace, at, layer, head, rows.rows, centred, progress=progress),
    )
    if found is not None:
        _places(trace, at, layer, head, centred, found, tagger)


def _head(heads, layer):
    """The head of the layer that is compared, from 0; None for the state."""
    chosen = st.selectbox(
        "Compared",
        range(heads + 1),
        format_func=lambda number: f"Head {number} of layer {layer}" if number else f"The state after layer {layer}",
        width=260,
        help="The state holds all that a layer has made of a token. What one head puts together is the mean of its "
        "value vectors, weighted by where it looks.",
        **state.bound_setting("neighbours.head", "w_near_head", 0, range(heads + 1)),
    )
    return chosen - 1 if chosen else None


def _search(bert, trace, at, layer, head, rows, centred, progress):
    if head is None:
        vectors, index = trace.hidden_states[layer], layer
    else:
        index = layer - 1  # heads are counted from the first layer, states from what goes in
        vectors = attended_values(bert, trace.hidden_states[index], index, head)
    return nearest_contexts(bert, vectors[[at]], index, rows, _PLACES, centred, progress=progress, head=head)


def _can_tag():
    return any(info.name == _TAGGER for info in models.installed())


def _tags(tagger, near):
    """The part of speech of every place's word; None where none are asked for or they are not there yet."""
    if tagger is None:
        return None
    shared, view = inputs.model(tagger), state.view()
    return jobs.result(
        "neighbours tags",
        (tagger, view.precision, near),
        "Reading their sentences",
        lambda progress: shared.run(matched_labels, near, progress=progress),
    )


def _places(trace, at, layer, head, centred, found, tagger):
    (near,) = found.nearest
    heading = inputs.heading("Nearest places in the text")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        if _can_tag():
            st.toggle(
                "Parts of speech",
                **state.bound_setting("neighbours.tags", "w_near_tags", False),
                help="Of the words found, guessed from their sentences by the fine-tuned tagger that ships.",
            )
        menu = st.container(width="content")
    tags = _tags(tagger, near)
    with menu:
        _save_places(trace, at, layer, head, centred, found, tags)
    if tags is not None:
        st.markdown(f"Parts of speech: {', '.join(f'{tag} {number}' for tag, number in count_labels(tags).items())}")
    event = st.dataframe(
        {
            "cosine": [one.similarity for one in near],
            "before": [_tail(one.parts[0]) for one in near],
            "word": [one.word.text for one in near],
            "after": [_cut(one.parts[2]) for one in near],
            **({} if tags is None else {"tag": [tag or "" for tag in tags]}),
            "token": [one.token for one in near],
            "row": [one.row.number for one in near],
        },
        hide_index=True,
        width="stretch",
        key="w_near_places",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "cosine": st.column_config.ProgressColumn("Cosine", format="%.3f", min_value=0, max_value=1, width=100),
            # Narrow, so that a phone shows the word as well; what is next to the word stays.
            "before": st.column_config.TextColumn("Before it", width=170, alignment="right"),
            "word": st.column_config.TextColumn("The word", alignment="center"),
            "after": st.column_config.TextColumn("After it", width=400),
            "tag": "Part of speech",
            "token": "Token",
            "row": st.column_config.NumberColumn("Row", width=50),
        },
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(near):
        opening.open_row("w_near_open", near[chosen[0]].row, ())
    mean = " Their mean is taken from both sides first." if centred else ""
    what = "of what goes in" if layer == 0 else f"after layer {layer}"
    if head is not None:
        what = f"that head {head + 1} of layer {layer} puts together there"
    bound = f" What comes after {MOST:,} tokens is not read." if found.tokens >= MOST else ""
    st.caption(
        f"{count(found.tokens, 'token')} of {count(found.rows, 'row')}, each in its sentence: cosines of the vectors "
        f"{what} with that of “{plain(trace.tokens[at])}”.{mean}{bound} Press the box before a row to open it."
    )


def _save_places(trace, at, layer, head, centred, found, tags):
    (near,) = found.nearest
    header = _PLACES_HEADER if tags is None else (*_PLACES_HEADER, _TAG)

    def lines():
        return [
            (*_place_line(rank, one), *(() if tags is None else (tags[rank - 1] or "",)))
            for rank, one in enumerate(near, start=1)
        ]

    export.menu(
        "places",
        header,
        lines,
        lambda: {
            "model": trace.model,
            "token": trace.tokens[at],
            "position": at,
            "layer": layer,
            "head": None if head is None else head + 1,
            "centred": centred,
            "compared": found.tokens,
            "parts_of_speech": None if tags is None else count_labels(tags),
            "places": [dict(zip(header, line)) for line in lines()],
        },
        lambda: ranked_bars(
            [f"{one.row.number}: {one.word.text}" for one in near], [one.similarity for one in near], "cosine"
        ),
    )


def _tail(text):
    return text if len(text) <= _SIDE else f"…{text[-_SIDE:]}"


def _cut(text):
    return text if len(text) <= _SIDE else f"{text[:_SIDE]}…"


def _place_line(rank, one):
    before, word, after = one.parts
    return rank, one.similarity, one.row.number, before, word, after, one.token, one.position, one.word.source


def _rows(trace, shown, found):
    for at, line in zip(shown, found):
        for name, near in zip(_names(found), line):
            for rank, one in enumerate(near, start=1):
                yield at, trace.tokens[at], name, rank, one.token, one.similarity


def _record(trace, shown, found):
    return {
        "model": trace.model,
        "vectors": _names(found),
        "tokens": [
            {
                "position": at,
                "token": trace.tokens[at],
                "nearest": [
                    [{"token": one.token, "cosine": one.similarity} for one in near] for near in line
                ],
            }
            for at, line in zip(shown, found)
        ],
    }
