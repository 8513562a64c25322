"""Patching: which vector of one input, put into the pass of another, brings the answer back."""

import dataclasses

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import patch_blocks, patch_heads, patch_paths, patch_states
from bert_tf.plots.interventions.patching import patch_map, patched_heads_map
from pages.explain import likely_words, path_patching_view
from pages.explain.snippets.patching import snippet
from ui.elements import components
from ui.samples import patching_pairs
from ui.samples.examples import example
from ui.session import calls, jobs, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import bold, count, escape_markdown

PAGE = Page(
    name="patching",
    group="Explain",
    order=5,
    title="Patching",
    question="Where the answer is decided",
    terms="activation patching causal tracing path patching interchange intervention circuit",
    summary=(
        "two inputs of equally many tokens: which hidden state of one, or what attention or feed-forward adds "
        "in a layer, put into the other, brings the answer back, layers by tokens, or which head, layers by "
        "heads; or one path at a time, from every part straight to the answer, to one head's queries, keys or "
        "values or to one feed-forward block; where lengths differ it names the words and offers others"
    ),
    presses={
        "": Press("chip", MASKED, long=True, most=128),
        "paths": Press("chip", {**MASKED, "patching.part": "path"}, long=True, most=128),
    },
    analyses=("patching", "path-patching"),
    example=example("Shanghai"),
    settings=("a", "b", "part", "place", "into", "layer", "head", "sender", "of", "token", "at", "follows", "label"),
    settings_help=(
        "the other input; `attention`, `feed_forward` or `head` for what a block or head adds in the place of "
        "hidden states, `path` for one path at a time; the only position where heads, and the senders of "
        "paths, are patched; what the paths lead to, `queries`, `keys`, `values` or `feed_forward`, its "
        "layer and its head; the open sender, `12-11` or `12-f`; the rest as of `saliency`"
    ),
    long_settings={"a": "text A of the other input", "b": "text B of the other input"},
    opens_rows=True,
    snippet=snippet,
    in_float32=True,
)


_MOST = 128  # the most tokens: the work grows with their square
_KEPT = "\0"  # no text field sends it: what the visitor has changed is never taken for the default, and stays
_SLIGHT = 0.1  # nats: with a smaller difference between the two inputs' answers, shares mean little
_PARTS = {
    "state": "Hidden state",
    "attention": "What attention adds",
    "feed_forward": "What feed-forward adds",
    "head": "What each head adds",
    "path": "One path at a time",
}
_EXPLANATIONS = {
    "hidden_state": "one hidden state, of one token after one layer, is taken from the first",
    "attention": (
        "what the attention of one layer adds to one token (all heads together) is taken from the first, and the later"
        " parts are computed from it"
    ),
    "feed_forward": (
        "what the feed-forward block of one layer adds to one token is taken from the first, and the later parts are"
        " computed from it"
    ),
    "head": (
        "what one attention head adds, {where}, is taken from the first, the other heads of its layer stay as they are,"
        " and the later parts are computed from it"
    ),
}


def page():
    page_inputs = targets.page_inputs()
    if page_inputs is None:
        return
    shared, encoding, trace = page_inputs
    if trace.length > _MOST:
        st.info(
            f"Every layer and token is patched once, which takes long. At most {_MOST} tokens are possible here, and"
            f" this text has {trace.length}. Shorten it.",
            icon=":material/content_cut:",
        )
        return
    texts = _other_texts(shared, trace)
    other = _aligned(shared, trace, encoding, texts)
    if other is None:
        return
    target = targets.target_picker("patching", shared, trace)
    if target is None:
        return
    part = st.segmented_control(
        "Component",
        list(_PARTS),
        format_func=_PARTS.get,
        **state.bind_setting("patching.part", "w_patching_part", "state", _PARTS),
    )
    if part == "path":
        _paths(shared, trace, other, target)
        return
    position = _place(trace) if part == "head" else None
    call = _call(part, target, position)
    snippets.give(shared, trace, other, call)
    label = f"{_PARTS[part]}, patched one at a time"
    result = calls.job_result(shared, call, trace, other, label=label, name=f"patching {part}", patience=jobs.SHORT)
    if result is not None:
        _draw(trace, other, result)


def _paths(shared, trace, other, target):
    """Draw path patching: the widgets for the receiver, and what each sender brings back."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        receiver, position = path_patching_view.receiver(shared), _place(trace)
    call = Call.of(patch_paths, target=target, receiver=receiver, position=position)
    snippets.give(shared, trace, other, call)
    label = "Paths, patched one at a time"
    result = calls.job_result(shared, call, trace, other, label=label, name="patching path", patience=jobs.SHORT)
    if result is None:
        return
    _heading("Layer by sender", trace, other)
    _save("paths", trace, other, result)
    _show_answers(result)
    path_patching_view.draw(result)


def _place(trace):
    """The position at which heads are patched, or None for all positions."""
    labels = {"": "All tokens"} | {str(place): f"{place}: {token}" for place, token in enumerate(trace.tokens)}
    chosen = st.selectbox(
        "Patch at",
        list(labels),
        format_func=labels.__getitem__,
        width=260,
        **state.bind_setting("patching.place", "w_patching_place", "", labels, labels.items()),
    )
    return int(chosen) if chosen else None


def _other_texts(shared, trace):
    """Draw the fields of the second input; returns its (text_a, text_b)."""
    st.header("The other input", anchor=False)
    texts, columns = [], st.columns(2 if trace.text_b is not None else 1)
    for column, side, default in zip(columns, "ab", _default_texts(shared, trace)):
        name, key = f"patching.{side}", f"w_patching_{side}"
        texts.append(state.setting(name, default)[: state.limits().max_characters])
        column.text_area(
            f"Text {side.upper()} of the other input",
            height=68,
            **state.bind_setting(name, key, default),
        )
    components.typing("c_patching_typing", [f"w_patching_{side}" for side in "ab"[: len(texts)]])
    texts = tuple([*texts, ""][:2])
    _replacement_widgets(shared, trace)
    return texts


def _default_texts(shared, trace):
    """The (text_a, text_b) of the other input until the visitor changes it; `_KEPT` for one that is changed.

    They are a prepared pair, if it differs in a word that is not masked, or else a word of text A is exchanged for a
    likely other one, which takes some passes. If the visitor has changed text B alone, text A is not exchanged.
    """
    texts = (trace.text_a, trace.text_b)
    # What was typed for a text B that is no longer there does not count.
    a_is_changed, b_is_changed = (
        text is not None and state.view().setting(f"patching.{side}") is not None for side, text in zip("ab", texts)
    )
    if not b_is_changed:
        prepared = _prepared_texts(shared, trace)
        if prepared:
            texts = prepared
        elif not a_is_changed:
            pair = cached("patching_default", (trace,), lambda: likely_words.exchange(shared, trace, "a"))
            texts = likely_words.with_word(trace, *pair) if pair else texts
    return tuple(_KEPT if is_changed else text for text, is_changed in zip(texts, (a_is_changed, b_is_changed)))


def _prepared_texts(shared, trace):
    """The texts of a prepared pair, if they differ in a word that is not masked; else None."""
    texts = tuple(text and patching_pairs.corrupted_text(text) for text in (trace.text_a, trace.text_b))
    if texts == (trace.text_a, trace.text_b):
        return None
    other = shared.encode(texts[0], texts[1] or "")
    changed = np.flatnonzero(other.token_ids != trace.token_ids) if patching_pairs.aligned(trace, other) else ()
    return texts if set(changed) - set(trace.masks) else None


def _replacement_widgets(shared, trace):
    """Draw the widgets that replace one word by another of as many tokens."""
    words = likely_words.words_in_sight(trace)
    if not words:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        # Options have a number, as a word may occur twice, and the word, so that a choice from another text is dropped.
        numbered = [f"{number}: {word.text}" for number, word in enumerate(words, start=1)]
        chosen_option = st.selectbox(
            ("Copy text A and B from above, but replace" if trace.text_b else "Copy text A from above, but replace"),
            numbered,
            index=None,
            placeholder="Choose a word",
            key="w_patching_word",
            on_change=lambda: st.session_state.pop("w_patching_instead", None),
            width=300,
        )
        if chosen_option not in numbered:
            return
        index = numbered.index(chosen_option)
        word = words[index]
        suggestions = likely_words.suggestions(shared, trace, word)

        def put():
            value = st.session_state["w_patching_instead"]
            if value:
                _put(shared, trace, word, str(value))

        st.selectbox(
            f"by (a word of {count(len(word.positions), 'token')})",
            suggestions,
            index=None,
            placeholder="Choose or type a word" if suggestions else "Type a word",
            key="w_patching_instead",
            accept_new_options=True,
            on_change=put,
            width=300,
        )


def _put(shared, trace, word, instead):
    """Store the trace's texts, with ``instead`` in the place of ``word``, as the other input."""
    defaults = _default_texts(shared, trace)
    for side, text, default in zip("ab", likely_words.with_word(trace, word, instead), defaults):
        if default is not None:
            state.set_setting(f"patching.{side}", text, default)


def _aligned(shared, trace, encoding, texts):
    """The trace of the other input with the same positions masked; None if the page shows why there is none."""
    if not texts[0].strip() or (trace.text_b is not None and not texts[1].strip()):
        st.info(
            "The other input is empty. Type a text, or replace a word with the list above.",
            icon=":material/keyboard:",
        )
        return None
    if texts == (trace.text_a, trace.text_b or ""):
        st.info(
            "The other input is still the same text. Change a word of it: choose one above, and a word to replace it"
            " with.",
            icon=":material/touch_app:",
        )
        return None
    view, other = state.view(), shared.encode(*texts)
    if not patching_pairs.aligned(encoding, other):
        _show_lengths(
            encoding, other, (view.a, shared.text_b_or_none(view.b)), (texts[0], shared.text_b_or_none(texts[1]))
        )
        return None
    masked = likely_words.pressed_masks(trace)
    other_trace = cached(
        "patching_other",
        (shared.name, view.precision, texts, masked),
        lambda: shared.trace(*texts, masked),
    )
    if other_trace.masks != trace.masks:
        st.info("Only one input has a typed [MASK]. Type the same masks in both.", icon=":material/rule:")
        return None
    if np.array_equal(other_trace.token_ids, trace.token_ids):
        st.info(
            "The two inputs differ in hidden words only, so the model reads the same tokens in both. Change a word that"
            " is not hidden.",
            icon=":material/visibility_off:",
        )
        return None
    return other_trace


def _show_lengths(first, second, texts_first, texts_second):
    """Warn that the two inputs have different numbers of tokens, with the words that make the difference."""
    sides = {
        side: tuple(sum(source == side for source in encoding.sources) for encoding in (first, second)) for side in "ab"
    }
    lengths = " and ".join(
        f"text {side.upper()} has {count(in_first, 'token')} above and {in_second} in the other input"
        for side, (in_first, in_second) in sides.items()
        if in_first != in_second
    )
    lines = [f"A vector can only be patched at its own position, but {lengths}."]
    for difference in patching_pairs.differences(first, second, texts_first, texts_second):
        if difference.pieces[0] != difference.pieces[1]:
            lines.append(
                f"- “{escape_markdown(difference.one[:80])}” is {count(difference.pieces[0], 'token')},"
                f" “{escape_markdown(difference.other[:80])}” is {difference.pieces[1]}."
            )
    lines.append("\nChoose words with equal numbers of tokens; the list above offers some.")
    st.warning("\n".join(lines), icon=":material/straighten:")


def _call(part, target, position):
    """The ``Call`` that patches one component; position: the only one where heads are patched, or None."""
    if part == "state":
        return Call.of(patch_states, target=target)
    if part == "head":
        return Call.of(patch_heads, target=target, position=position)
    return Call.of(patch_blocks, target=target, block=part)


def _draw(trace, other, result):
    _heading("Layer by head" if result.component == "head" else "Layer by position", trace, other)
    _save("patching", trace, other, result)
    _show_answers(result)
    label = escape_markdown(result.target.label)
    position_text = (
        "at all tokens" if result.position is None else f"at “{escape_markdown(trace.tokens[result.position])}” alone"
    )
    figures.show(
        "What each patch brings back",
        _map(trace, other, result, state.is_dark()),
        key="w_patching_map",
        config=export.plot_config("patching"),
    )
    st.caption(
        f"The model reads the other input, and {_EXPLANATIONS[result.component].format(where=position_text)}. Where "
        f"the map is blue, “{label}” comes back (at 100% completely), and where it is orange, it moves further away.",
        help="The numbers are shares of the difference. They show where the difference lies at each depth, not that "
        "the model uses nothing else.",
    )


def _save(name, trace, other, result):
    """Offer a result in the menu Save; its figures name the texts of both inputs."""
    texts = dict.fromkeys((*export.texts_of(trace), *export.texts_of(other)))
    export.save(name, result, {"model": trace.model}, tuple(texts))


def _heading(text, trace, other):
    """Draw a heading with the button that swaps the inputs; returns its container, for more buttons beside it."""
    row = inputs.heading(text).container(horizontal=True, vertical_alignment="center", width="content")
    row.button("Swap inputs", icon=":material/swap_vert:", type="tertiary", on_click=_swap, args=(trace, other))
    return row


def _show_answers(result):
    """Draw the answer in both inputs, with a note if they hardly differ."""
    st.markdown(
        f"{bold(result.target.label)} has {targets.score_text(result.target, result.clean)} in the first input and "
        f"{targets.score_text(result.target, result.corrupted)} in the other."
    )
    if abs(result.clean - result.corrupted) < _SLIGHT:
        st.info(
            "The two are nearly the same, so there is little to bring back and the shares below mean little."
            " Change another word, or choose another answer.",
            icon=":material/balance:",
        )


def _map(trace, other, result, dark):
    if result.component == "head":
        return patched_heads_map(result.recovered, dark)
    return patch_map(result.recovered, trace.tokens, other.tokens, dark, result.component)


def _swap(trace, other):
    """Swap the two inputs."""
    view = dataclasses.replace(state.view(), a=other.text_a, b=other.text_b or "", start=0)
    for side, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is not None:
            view = view.with_setting(f"patching.{side}", text)
    state.replace_view(view)
