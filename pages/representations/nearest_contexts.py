"""The contexts of a file nearest to a token, on the page Nearest words: by hidden states or by the outputs of heads."""

import dataclasses

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import count_contexts, label_contexts, nearest
from bert_tf.explain.representations.nearest_contexts import MAX_COMPARED_TOKENS
from ui.elements import tables
from ui.session import jobs, model_store, state
from ui.shell import open_row, snippets
from ui.widgets import export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown

_PLACES = 20  # how many contexts are listed
_SIDE = 70  # characters of a sentence shown on either side of the word
_TITLES = {"parts_of_speech": "Parts of speech", "relations": "Relations"}
TAGGER = "parts-of-speech-base-cased"


def show(shared, trace, at, layer, centred):
    """Draw the tokens of a file nearest to a token.

    Args:
        shared: ``SharedModel``. trace: ``Trace`` with hidden states. at: position of the token.
        layer: index of the hidden state, 0 is the embeddings. centred: whether the mean vector is subtracted.
    """
    read = file_input.rows("nearest_words", trees=True)
    if read is None:
        return
    rows, file_key = read
    heads = _heads(shared.config.num_attention_heads, layer) if layer else None
    parsed = any(row.parsed is not None for row in rows.rows)
    tagger = TAGGER if not parsed and _can_tag() and state.setting("nearest_words.tags", False) else None
    view = state.view()
    call = Call.of(
        nearest,
        positions=(at,),
        top_k=_PLACES,
        centred=centred,
        # Hidden state 0 is the embeddings: layer 0 follows it.
        layer=layer if heads is None else layer - 1,
        heads=heads,
        special=heads is None or view.special,
    )
    snippets.give(shared, trace, call, file=file_key, tagger=tagger, parsed=parsed)
    inputs_key = (shared.name, view.precision, view.a, view.b, trace.masks, file_key)
    # The choice of special tokens changes what the heads look at, and not the search: it asks for no new press.
    pressed = (*inputs_key, call.replace(special=True))
    if not file_input.run_requested("nearest_words", pressed, len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}.")
        return
    contexts = jobs.result(
        "nearest_words",
        (*inputs_key, call),
        f"Reading {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(call.run, trace, rows.rows, progress=progress),
    )
    if contexts is not None:
        _list(trace, at, layer, heads, centred, contexts, tagger, parsed)


def _heads(heads, layer):
    """The widget that chooses heads of the layer; returns a tuple of heads from 0, or None for the hidden state."""
    wanted = state.setting("nearest_words.head", "").split(",")
    state.set_widget("w_near_head", [number for number in range(1, heads + 1) if str(number) in wanted])

    def pull():
        state.set_setting("nearest_words.head", ",".join(map(str, sorted(st.session_state["w_near_head"]))), "")

    chosen = st.multiselect(
        f"Heads of layer {layer} that are compared",
        range(1, heads + 1),
        format_func=lambda number: f"Head {number}",
        placeholder=f"None: the hidden state after layer {layer}",
        key="w_near_head",
        on_change=pull,
        width=360,
        help="The hidden state is the whole output of a layer for a token. The output of a head is the sum of its "
        "value vectors, weighted by its attention. Several heads count equally: the cosine is the mean of theirs.",
    )
    return tuple(number - 1 for number in sorted(chosen)) or None


def _can_tag():
    return any(info.name == TAGGER for info in model_store.installed())


def _labelled(contexts, tagger):
    """The contexts with the parts of speech that the tagger predicts for their words; unchanged if there are none."""
    if tagger is None:
        return contexts
    shared, view = inputs.model(tagger), state.view()
    labelled = jobs.result(
        "nearest_words tags",
        (tagger, view.precision, contexts.nearest),
        "Reading their sentences",
        lambda progress: shared.run(label_contexts, contexts, progress=progress),
        skeleton=False,
    )
    if labelled is None:
        return contexts
    return dataclasses.replace(labelled, counts=tuple(map(count_contexts, labelled.nearest)))


def _list(trace, at, layer, heads, centred, contexts, tagger, parsed):
    heading = inputs.heading("Nearest contexts in the text")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        if _can_tag() and not parsed:
            st.toggle(
                "Parts of speech",
                **state.bind_setting("nearest_words.tags", "w_near_tags", False),
                help="Parts of speech of these words, predicted from their sentences by the shipped tagger.",
            )
    contexts = _labelled(contexts, tagger)
    (near,), (counts,) = contexts.nearest, contexts.counts
    export.save("contexts", contexts, trace=trace)
    for name, title in _TITLES.items():
        if known := getattr(counts, name):
            listed = ", ".join(f"{escape_markdown(label)} {number}" for label, number in known.items())
            st.markdown(f"{title}: {listed}")
    event = _table(near, heads)
    chosen = event.selection.rows
    if chosen and chosen[0] < len(near):
        open_row.open_row("w_near_open", near[chosen[0]].row, ())
    mean = " The mean vector is subtracted from both first." if centred else ""
    vectors = "of the embeddings" if layer == 0 else f"after layer {layer}"
    if heads is not None:
        vectors = f"that {_named(heads, layer)} add{'s' * (len(heads) == 1)} there"
        mean += " Each head's vector is scaled to length 1." if len(heads) > 1 else ""
    known = parsed and (counts.parts_of_speech or counts.relations)
    source = " Parts of speech and relations are those of the file." if known else ""
    bound = (
        f" Only the first {MAX_COMPARED_TOKENS:,} tokens are read."
        if contexts.tokens_compared >= MAX_COMPARED_TOKENS
        else ""
    )
    st.caption(
        f"{count(contexts.tokens_compared, 'token')} of {count(contexts.rows_read, 'row')}, each in its sentence:"
        f" cosines of the vectors {vectors} with that of “{escape_markdown(trace.tokens[at])}”.{mean}{source}{bound}"
        " Press the box before a row to open it."
    )
    if heads is not None:
        _looks(trace, layer, heads, near, counts)


def _named(heads, layer):
    numbers = [str(head + 1) for head in heads]
    listed = " and ".join(filter(None, (", ".join(numbers[:-1]), numbers[-1])))
    return f"head{'s' * (len(heads) > 1)} {listed} of layer {layer}"


def _table(near, heads):
    around = [context.around(_SIDE) for context in near]
    columns = {
        "cosine": [context.similarity for context in near],
        "before": [before for before, _, _ in around],
        "word": [word for _, word, _ in around],
        "after": [after for _, _, after in around],
    }
    if heads is not None:
        columns |= {
            "looks_at": [context.most_attended.token for context in near],
            "share": [context.most_attended.share for context in near],
            "offset": [context.most_attended.offset for context in near],
        }
    attended = [context.most_attended for context in near if context.most_attended is not None]
    for prefix, listed in (("", near), ("looked_", attended)):
        for name, field in (("tag", "part_of_speech"), ("relation", "relation")):
            labels = [getattr(context, field) for context in listed]
            if any(label is not None for label in labels):
                columns[prefix + name] = [label or "" for label in labels]
    columns |= {"token": [context.token for context in near], "row": [context.row.number for context in near]}
    return tables.show(
        columns,
        hide_index=True,
        width="stretch",
        key=tables.key_of("w_near_places", ((context.row.text_a, context.word, context.position) for context in near)),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "cosine": st.column_config.ProgressColumn("Cosine", format="%.3f", min_value=0, max_value=1, width=100),
            # Narrow, so that a phone shows the word as well; what is next to the word stays.
            "before": st.column_config.TextColumn("Before it", width=170, alignment="right"),
            "word": st.column_config.TextColumn("The word", alignment="center"),
            "after": st.column_config.TextColumn("After it", width=400 if heads is None else 260),
            "looks_at": "Attends to",
            "share": st.column_config.NumberColumn("Share", format="%.2f", help="The share of the word's attention."),
            "offset": st.column_config.NumberColumn(
                "Away", format="%+d", help="Distance in tokens; negative: before the word."
            ),
            "tag": "Part of speech",
            "relation": "Relation",
            "looked_tag": "Attended to: part of speech",
            "looked_relation": "Attended to: relation",
            "token": "Token",
            "row": st.column_config.NumberColumn("Row", width=50),
        },
    )


def _looks(trace, layer, heads, near, counts):
    """Draw the tokens that the heads attend to from the contexts, counted."""
    name, special = _named(heads, layer), state.view().special
    heading = inputs.heading(f"What {name} attend{'s' * (len(heads) == 1)} to there")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        st.toggle(
            "Special tokens",
            **state.bind_field("special", "w_near_special"),
            help="They ([CLS] and [SEP] in BERT) often get most of the attention: leave them out to see which "
            "words the heads attend to.",
        )
        about = {"layer": layer - 1, "heads": list(heads), "special": special}
        export.save("looked-at", counts, about, trace=trace)
    for place, slug in zip(st.columns(max(2, len(counts.figures)), gap="large"), counts.figures):
        with place:
            title = slug.replace("-", " ").capitalize()
            st.markdown(f"**{title}**")
            figures.show(
                f"{title} of the words and of the tokens attended to",
                counts.figure(slug, state.is_dark()),
                key=f"w_near_{slug}",
                config=export.plot_config(f"looked-at-{slug}"),
            )
    mean = " For several heads it is the mean of their maps." if len(heads) > 1 else ""
    token = "token that gets" if special else "word that gets, of all words,"
    known = counts.looked_at_parts_of_speech or counts.looked_at_relations
    more = "" if known else " Parts of speech are counted here too if they are known."
    st.caption(
        f"For each of the {count(len(near), 'context')}: the {token} the greatest share of the attention; "
        f"« » mark its word if it is in the same text.{mean}{more}"
    )
