"""The places of a file nearest to a token, on the page Neighbours: by states or by heads, what words stand there, and
where these heads look."""

import dataclasses

import streamlit as st

from bert_tf.explain import (
    count_labels,
    count_offsets,
    head_outputs,
    matched_labels,
    nearest_contexts,
    parsed_labels,
)
from bert_tf.explain.representations.nearest_contexts import MAX_COMPARED_TOKENS
from bert_tf.plots.attention.context_labels import offset_bars, paired_bars
from bert_tf.plots.interventions.ablation import ranked_bars
from ui.session import jobs, model_store, state
from ui.shell import frame, open_row, snippets
from ui.widgets import export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown

_PLACES = 20  # that are shown
_SIDE = 70  # characters of a sentence shown on either side of the word
_HEADER = ("rank", "cosine", "row", "before", "word", "after", "token", "position", "text")
_LOOKED_HEADER = ("looks_at", "looks_at_word", "looks_at_position", "offset", "share")
_COUNTS_HEADER = ("counted", "value", "found", "looked_at")
TAGGER = "parts-of-speech-base-cased"


@dataclasses.dataclass(frozen=True)
class _WordLabels:
    """What is known of the words found, or of those looked at from there: tuples with a label or None for each place;
    None in the place of a tuple where nothing is known of any."""

    part_of_speech: object = None
    relation: object = None

    def known(self):
        """Name -> labels of what is known."""
        return {name: labels for name, labels in vars(self).items() if labels is not None}

    def counts(self):
        """Name -> label -> count."""
        return {name: count_labels(labels) for name, labels in self.known().items()}


def show(shared, trace, at, layer, centred):
    """The places of a file nearest to the token, by the hidden states after the layer or by what some heads put together."""
    read = file_input.rows("nearest_words", trees=True)
    if read is None:
        return
    rows, file_key = read
    heads = _heads(shared.config.num_attention_heads, layer) if layer else None
    parsed = any(row.parsed is not None for row in rows.rows)
    tagger = TAGGER if not parsed and _can_tag() and state.setting("nearest_words.tags", False) else None
    view = state.view()
    snippets.give(shared, trace, (), centred, _PLACES, at, layer, file_key, heads, tagger, parsed)
    special = heads is None or view.special  # of states nothing hangs on it
    key = (shared.name, view.precision, view.a, view.b, trace.masks, at, layer, heads, centred, file_key, special)
    if not file_input.run_requested("nearest_words", key[:-1], len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}.")
        return
    found = jobs.result(
        "nearest_words",
        key,
        f"Reading {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(_search, trace, at, layer, heads, rows.rows, centred, special, progress=progress),
    )
    if found is not None:
        _list(trace, at, layer, heads, centred, found, tagger, parsed)


def _heads(heads, layer):
    """The heads of the layer that are compared, from 0, a tuple; None for the state."""
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
        help="The hidden state holds all that a layer has made of a token. What a head puts together is the mean of its "
        "value vectors, weighted by where it looks. Of several heads each counts alike: the cosines are their mean.",
    )
    return tuple(number - 1 for number in sorted(chosen)) or None


def _search(bert, trace, at, layer, heads, rows, centred, special, progress):
    if heads is None:
        vectors, index = trace.hidden_states[layer], layer
    else:
        index = layer - 1  # heads are counted from the first layer, states from what goes in
        vectors = head_outputs(bert, trace.hidden_states[index], index, heads)
    return nearest_contexts(
        bert, vectors[[at]], index, rows, _PLACES, centred, progress=progress, head=heads, special=special
    )


def _can_tag():
    return any(info.name == TAGGER for info in model_store.installed())


def _word_labels(near, tagger, parsed):
    """(`_WordLabels` of the words found, of those looked at); both empty where nothing is asked for, or not there yet."""
    most_attended = [one.most_attended for one in near if one.most_attended is not None]
    both = (*near, *most_attended)
    if parsed:
        # A file may know no parts of speech, or no relations.
        known = [
            labels if any(said and one.word is not None for one, said in zip(both, labels)) else None
            for labels in parsed_labels(both)
        ]
        parts = (slice(len(near)), slice(len(near), None)) if most_attended else (slice(len(near)),)
        return tuple(_WordLabels(*(labels and labels[part] for labels in known)) for part in parts) + (
            _WordLabels(),
        ) * (not most_attended)
    if tagger is None:
        return _WordLabels(), _WordLabels()
    shared, view = inputs.model(tagger), state.view()
    tags = jobs.result(
        "neighbours tags",
        (tagger, view.precision, near),
        "Reading their sentences",
        lambda progress: shared.run(matched_labels, both, progress=progress),
    )
    if tags is None:
        return _WordLabels(), _WordLabels()
    return _WordLabels(tags[: len(near)]), _WordLabels(tags[len(near) :]) if most_attended else _WordLabels()


def _list(trace, at, layer, heads, centred, found, tagger, parsed):
    (near,) = found.nearest
    heading = inputs.heading("Nearest places in the text")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        if _can_tag() and not parsed:
            st.toggle(
                "Parts of speech",
                **state.bind_setting("nearest_words.tags", "w_near_tags", False),
                help="Of the words found, predicted from their sentences by the fine-tuned tagger that ships.",
            )
        menu = st.container(width="content")
    said, most_attended = _word_labels(near, tagger, parsed)
    with menu:
        _save(trace, at, layer, heads, centred, found, said, most_attended)
    for name, counts in said.counts().items():
        title = {"part_of_speech": "Parts of speech", "relation": "Relations"}[name]
        st.markdown(f"{title}: {', '.join(f'{escape_markdown(label)} {number}' for label, number in counts.items())}")
    event = _table(near, heads, said, most_attended)
    chosen = event.selection.rows
    if chosen and chosen[0] < len(near):
        open_row.open_row("w_near_open", near[chosen[0]].row, ())
    mean = " Their mean is taken from both sides first." if centred else ""
    what = "of what goes in" if layer == 0 else f"after layer {layer}"
    if heads is not None:
        what = f"that {_named(heads, layer)} put{'s' * (len(heads) == 1)} together there"
        mean += " Each head's part is brought to length 1." if len(heads) > 1 else ""
    own = " Parts of speech and relations are the file's own." if parsed and said.known() else ""
    bound = (
        f" What comes after {MAX_COMPARED_TOKENS:,} tokens is not read." if found.tokens >= MAX_COMPARED_TOKENS else ""
    )
    st.caption(
        f"{count(found.tokens, 'token')} of {count(found.rows, 'row')}, each in its sentence: cosines of the vectors "
        f"{what} with that of “{escape_markdown(trace.tokens[at])}”.{mean}{own}{bound} Press the box before a row to open it."
    )
    if heads is not None:
        _looks(trace, layer, heads, near, said, most_attended)


def _named(heads, layer):
    numbers = [str(head + 1) for head in heads]
    listed = " and ".join(filter(None, (", ".join(numbers[:-1]), numbers[-1])))
    return f"head{'s' * (len(heads) > 1)} {listed} of layer {layer}"


def _table(near, heads, said, most_attended):
    around = [one.around(_SIDE) for one in near]
    columns = {
        "cosine": [one.similarity for one in near],
        "before": [before for before, _, _ in around],
        "word": [word for _, word, _ in around],
        "after": [after for _, _, after in around],
    }
    if heads is not None:
        columns |= {
            "looks_at": [one.most_attended.token for one in near],
            "share": [one.most_attended.share for one in near],
            "offset": [one.most_attended.offset for one in near],
        }
    names = {"part_of_speech": "tag", "relation": "relation"}
    columns |= {names[name]: [label or "" for label in labels] for name, labels in said.known().items()}
    columns |= {
        f"looked_{names[name]}": [label or "" for label in labels] for name, labels in most_attended.known().items()
    }
    columns |= {"token": [one.token for one in near], "row": [one.row.number for one in near]}
    return st.dataframe(
        columns,
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
            "after": st.column_config.TextColumn("After it", width=400 if heads is None else 260),
            "looks_at": "Looks at",
            "share": st.column_config.NumberColumn("Share", format="%.2f", help="Of all the attention from the word."),
            "offset": st.column_config.NumberColumn("Away", format="%+d", help="Tokens; below 0 before the word."),
            "tag": "Part of speech",
            "relation": "Relation",
            "looked_tag": "Looked at: part of speech",
            "looked_relation": "Looked at: relation",
            "token": "Token",
            "row": st.column_config.NumberColumn("Row", width=50),
        },
    )


def _looks(trace, layer, heads, near, said, most_attended):
    """What the heads look at from the places found, counted."""
    offsets = _offsets(near)
    drawn = {
        "Parts of speech": lambda dark=False: _paired("part_of_speech", said, most_attended, dark),
        "Relations": lambda dark=False: _paired("relation", said, most_attended, dark),
        "How far away": lambda dark=False: offset_bars(*offsets, dark),
    }
    known = [name is not None for name in (most_attended.part_of_speech, most_attended.relation)] + [True]
    drawn = {title: make for (title, make), is_known in zip(drawn.items(), known) if is_known}
    name, special = _named(heads, layer), state.view().special
    heading = inputs.heading(f"Where {name} look{'s' * (len(heads) == 1)} there")
    with heading.container(horizontal=True, vertical_alignment="center", width="content"):
        st.toggle(
            "Special tokens",
            **state.bind_field("special", "w_near_special"),
            help="They ([CLS] and [SEP] in BERT) often draw most of the attention: leave them out to see at which "
            "words the heads look.",
        )
        export.menu(
            "looked-at",
            _COUNTS_HEADER,
            lambda: _counted(near, said, most_attended),
            lambda: {
                "model": trace.model,
                "layer": layer,
                "head": _written(heads),
                "special": special,
                "places": len(near),
                "counts": [dict(zip(_COUNTS_HEADER, line)) for line in _counted(near, said, most_attended)],
            },
            drawn,
        )
    for place, (title, make) in zip(st.columns(max(2, len(drawn)), gap="large"), drawn.items()):
        with place:
            st.markdown(f"**{title}**")
            slug = title.lower().replace(" ", "-")
            figures.show(
                f"{title}, of the words found and of what is looked at",
                make(frame.is_dark()),
                key=f"w_near_{slug}",
                config=export.plot_config(f"looked-at-{slug}"),
            )
    mean = " Of several heads it is the mean of their maps." if len(heads) > 1 else ""
    what = "token that gets" if special else "word that gets, of all words,"
    more = "" if most_attended.known() else " Parts of speech are counted here too where they are known."
    st.caption(
        f"For each of the {count(len(near), 'place')}: the {what} the greatest share of the attention, with "
        f"« » about its word where it stands in the same text.{mean}{more}"
    )


def _paired(name, said, most_attended, dark):
    return paired_bars(said.counts()[name], most_attended.counts()[name], dark)


def _offsets(near):
    """Offset -> count, of words and of the tokens that the model adds."""
    return tuple(
        count_offsets([one for one in near if (one.most_attended.word is None) is special]) for special in (False, True)
    )


def _counted(near, said, most_attended):
    found, there = said.counts(), most_attended.counts()
    for name in there:
        for label in {**found[name], **there[name]}:
            yield name, label, found[name].get(label, 0), there[name].get(label, 0)
    for offset, number in count_offsets(near).items():
        yield "offset", offset, None, number


def _save(trace, at, layer, heads, centred, found, said, most_attended):
    (near,) = found.nearest
    there = {f"looks_at_{name}": labels for name, labels in most_attended.known().items()}
    labels = {**said.known(), **there}
    header = (*_HEADER, *(() if heads is None else _LOOKED_HEADER), *labels)

    def lines():
        return [
            (*_line(rank, one), *(labels[name][rank - 1] or "" for name in labels))
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
            "head": _written(heads),
            "centred": centred,
            "compared": found.tokens,
            "parts_of_speech": said.counts().get("part_of_speech"),
            "relations": said.counts().get("relation"),
            "places": [dict(zip(header, line)) for line in lines()],
        },
        lambda: ranked_bars(
            [f"{one.row.number}: {one.word.text}" for one in near], [one.similarity for one in near], "cosine"
        ),
    )


def _written(heads):
    """Heads as files have them, from 1: None, a number, or a list of several."""
    if heads is None:
        return None
    return heads[0] + 1 if len(heads) == 1 else [head + 1 for head in heads]


def _line(rank, one):
    before, word, after = one.parts
    line = (rank, one.similarity, one.row.number, before, word, after, one.token, one.position, one.word.source)
    if one.most_attended is None:
        return line
    most_attended = one.most_attended
    word = "" if most_attended.word is None else most_attended.word.text
    return (*line, most_attended.token, word, most_attended.position, most_attended.offset, most_attended.share)
