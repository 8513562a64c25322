"""Patching: which vector, carried over from one input into another, carries the answer with it."""

import dataclasses
import functools

import numpy as np
import streamlit as st

from bert_tf.explain import patch_blocks, patch_heads, patch_states
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.interventions.patching import patch_map, patched_heads_map
from pages.explain import path_patching_view
from pages.explain.snippets.patching import snippet
from ui.samples import patching_pairs
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import bold, count, escape_markdown

PAGE = Page(
    name="patching",
    group="Explain",
    order=5,
    title="Patching",
    question="Where the answer is decided",
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
    settings=("a", "b", "part", "place", "into", "layer", "head", "sender", "of", "token", "at", "follows", "label"),
    settings_help=(
        "the other input; `attention`, `feed_forward` or `head` for what a block or head adds in the place of "
        "hidden states, `path` for one path at a time; the only position where heads, and the senders of "
        "paths, are put over; what the paths lead to, `queries`, `keys`, `values` or `feed_forward`, its "
        "layer and its head; the open sender, `12-11` or `12-f`; the rest as of `saliency`"
    ),
    long_settings={"a": "text A of the other input", "b": "text B of the other input"},
    opens_rows=True,
    snippet=snippet,
)


_MOST = 128  # tokens: the work grows with their square
_SLIGHT = 0.1  # nats between the two inputs' answers below which shares say little
_GUESSES = 8
_PARTS = {
    "state": "Hidden state",
    "attention": "What attention adds",
    "feed_forward": "What feed-forward adds",
    "head": "What each head adds",
    "path": "One path at a time",
}
_SAYS = {
    "hidden_state": "one hidden state, of one token after one layer, is taken from the first",
    "attention": (
        "what the attention of one layer adds to one token (all heads together) is taken from the first, and all that"
        " follows works on from there"
    ),
    "feed_forward": (
        "what the feed-forward block of one layer adds to one token is taken from the first, and all that follows works"
        " on from there"
    ),
    "head": (
        "what one attention head adds, {where}, is taken from the first, the other heads of its layer stay, and all "
        "that follows works on from there"
    ),
}


def page():
    opened = targets.page_inputs()
    if opened is None:
        return
    shared, encoding, trace = opened
    if trace.length > _MOST:
        st.info(
            f"Every layer and token is put over once, which takes long: at most {_MOST} tokens here, and"
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
        "Carry over",
        list(_PARTS),
        format_func=_PARTS.get,
        **state.bind_setting("patching.part", "w_patching_part", "state", _PARTS),
    )
    if part == "path":
        _paths(shared, trace, other, target)
        return
    position = _place(trace) if part == "head" else None
    snippets.give(shared, trace, other, target, part, position)
    found = _patched(shared, trace, other, target, part, position)
    if found is not None:
        _draw(trace, other, found)


def _paths(shared, trace, other, target):
    """One path at a time: where it leads to, and what each part sends along it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        receiver, position = path_patching_view.receiver(shared), _place(trace)
    snippets.give(shared, trace, other, target, "path", position, receiver)
    key = _key(shared, trace, other, target, position)
    found = path_patching_view.patched(shared, key, trace, other, target, position, receiver)
    if found is None:
        return
    with _heading("Layer by sender", trace, other):
        path_patching_view.save(trace, found)
    _say_ends(found)
    path_patching_view.draw(found)


def _place(trace):
    """Where heads are put over: a position, or None for all."""
    places = ["", *map(str, range(trace.length))]
    chosen = st.selectbox(
        "Put over at",
        places,
        format_func=lambda place: f"{place}: {trace.tokens[int(place)]}" if place else "All tokens",
        width=260,
        **state.bind_setting("patching.place", "w_patching_place", "", places),
    )
    return int(chosen) if chosen else None


def _other_texts(shared, trace):
    """Fields for the second input; returns its (text_a, text_b)."""
    st.header("The other input", anchor=False)
    texts, columns = [], st.columns(2 if trace.text_b is not None else 1)
    for column, side, own in zip(columns, "ab", (trace.text_a, trace.text_b)):
        name, key, default = f"patching.{side}", f"w_patching_{side}", patching_pairs.corrupted_text(own)
        texts.append(state.setting(name, default)[: state.limits().max_characters])
        column.text_area(
            f"Text {side.upper()} of the other input",
            height=68,
            **state.bind_setting(name, key, default),
        )
    texts = tuple([*texts, ""][:2])
    _helper(shared, trace)
    return texts


def _helper(shared, trace):
    """Changing one word for another of as many tokens."""
    words = [word for word in trace.words() if not set(word.positions) & set(trace.masks)]
    if not words:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        # Numbered, as a word may stand twice; the texts themselves, so that one of another text is let go.
        numbered = [f"{number}: {word.text}" for number, word in enumerate(words, start=1)]
        chosen = st.selectbox(
            ("Take text A and B as above, but instead of" if trace.text_b else "Take text A as above, but instead of"),
            numbered,
            index=None,
            placeholder="Choose a word",
            key="w_patching_word",
            on_change=lambda: st.session_state.pop("w_patching_instead", None),
            width=300,
        )
        if chosen not in numbered:
            return
        place = numbered.index(chosen)
        word = words[place]
        guesses = cached("patching_guesses", (trace, place), lambda: _guesses(shared, trace, word))

        def put():
            value = st.session_state["w_patching_instead"]
            if value:
                _put(trace, word, str(value))

        st.selectbox(
            f"put in (a word of {count(len(word.positions), 'token')})",
            guesses,
            index=None,
            placeholder="Choose or type a word" if guesses else "Type a word",
            key="w_patching_instead",
            accept_new_options=True,
            on_change=put,
            width=300,
        )


def _put(trace, word, instead):
    for side, text, own in zip("ab", _with(trace, word, instead), (trace.text_a, trace.text_b)):
        if own is not None:
            state.set_setting(f"patching.{side}", text, patching_pairs.corrupted_text(own))


def _with(trace, word, instead):
    """The trace's (text_a, text_b) with another word in the place of ``word``."""
    return tuple(
        own[: word.start] + instead + own[word.end :] if word.source == side else own
        for side, own in (("a", trace.text_a), ("b", trace.text_b))
    )


def _guesses(shared, trace, word):
    """Words that the model expects there and that leave the number of tokens as it is."""
    if "mlm" not in shared.bert.heads:
        return []
    tokenizer = shared.tokenizer
    hidden = shared.trace(trace.text_a, trace.text_b or "", (*_own_masks(trace), *word.positions))
    if len(word.positions) > 1:
        filled = {step.position: step.predictions[0].id for step in shared.fill_jointly(hidden, 1).steps}
        found = [tuple(filled[position] for position in word.positions)]
    else:
        answers = {one.position: one for one in fill_mask(hidden, tokenizer, 3 * _GUESSES)}
        found = [(one.id,) for one in answers[word.positions[0]].predictions]
    fitting = []
    for ids in found:
        text = "".join(tokenizer.spellings[one].removeprefix("##") for one in ids)
        read = _read(shared, trace, word, text)
        # One piece is a word of its own where it is read back as itself: "##ing" is not, nor is the piece of a space.
        whole = read == ids if len(ids) == 1 else read is not None
        if whole and read != tuple(trace.token_ids[list(word.positions)]) and any(map(str.isalnum, text)):
            fitting.append(text)
    return fitting[:_GUESSES]


def _read(shared, trace, word, instead):
    """Token ids that ``instead`` is read as in the place of ``word``; None where the tokens are more or fewer."""
    text_a, text_b = _with(trace, word, instead)
    other = shared.encode(text_a, text_b or "")
    return tuple(other.token_ids[list(word.positions)]) if patching_pairs.aligned(trace, other) else None


def _own_masks(trace):
    """Positions masked by a press, not by a typed [MASK]."""
    return tuple(p for p in trace.masks if trace.original_tokens[p] != trace.tokens[p])


def _aligned(shared, trace, encoding, texts):
    """The trace of the other input with the same positions masked, or None with the reason said."""
    if not texts[0].strip() or (trace.text_b is not None and not texts[1].strip()):
        st.info(
            "The other input is empty. Type it, or change a word as offered above.",
            icon=":material/keyboard:",
        )
        return None
    if texts == (trace.text_a, trace.text_b or ""):
        st.info(
            "The other input is still the same text. Change a word of it: choose one above, and what to put"
            " in its place.",
            icon=":material/touch_app:",
        )
        return None
    view, other = state.view(), shared.encode(*texts)
    if not patching_pairs.aligned(encoding, other):
        _say_lengths(
            encoding, other, (view.a, shared.text_b_or_none(view.b)), (texts[0], shared.text_b_or_none(texts[1]))
        )
        return None
    masked = _own_masks(trace)
    found = cached(
        "patching_other",
        (shared.name, view.precision, texts, masked),
        lambda: shared.trace(*texts, masked),
    )
    if found.masks != trace.masks:
        st.info("A [MASK] is typed in one input only. Put the same masks into both.", icon=":material/rule:")
        return None
    if np.array_equal(found.token_ids, trace.token_ids):
        st.info(
            "The two inputs differ in hidden words alone, so that the model reads the same in both. Change a word"
            " that it sees.",
            icon=":material/visibility_off:",
        )
        return None
    return found


def _say_lengths(one, other, texts_one, texts_other):
    sides = {side: (sum(s == side for s in one.sources), sum(s == side for s in other.sources)) for side in "ab"}
    counted = " and ".join(
        f"text {side.upper()} has {count(mine, 'token')} above and {theirs} in the other input"
        for side, (mine, theirs) in sides.items()
        if mine != theirs
    )
    lines = [f"A vector can only be put over to its own place, and {counted}."]
    for found in patching_pairs.differences(one, other, texts_one, texts_other):
        if found.pieces[0] != found.pieces[1]:
            lines.append(
                f"- “{escape_markdown(found.one[:80])}” is {count(found.pieces[0], 'token')},"
                f" “{escape_markdown(found.other[:80])}” is {found.pieces[1]}."
            )
    lines.append("\nChoose words of equally many tokens; the list above offers some.")
    st.warning("\n".join(lines), icon=":material/straighten:")


def _key(shared, trace, other, target, position):
    """What is patched, beside which vectors."""
    texts = (trace.text_a, trace.text_b, other.text_a, other.text_b)
    return shared.name, state.view().precision, *texts, trace.masks, target, position


def _patched(shared, trace, other, target, part, position):
    key = _key(shared, trace, other, target, position)
    patch = {
        "state": patch_states,
        "head": functools.partial(patch_heads, position=position),
    }.get(part) or functools.partial(patch_blocks, block=part)

    def work(progress):
        return shared.run(patch, trace, other, target, progress=progress)

    return jobs.result(f"patching {part}", key, f"{_PARTS[part]}, put over one at a time", work, patience=jobs.SHORT)


def _draw(trace, other, found):
    with _heading("Layer by head" if found.component == "head" else "Layer by position", trace, other):
        export.save("patching", found, {"model": trace.model})
    _say_ends(found)
    label = escape_markdown(found.target.label)
    where = "at all tokens" if found.position is None else f"at “{escape_markdown(trace.tokens[found.position])}” alone"
    figures.show(
        "What each brings back",
        _map(trace, other, found, frame.is_dark()),
        key="w_patching_map",
        config=export.plot_config("patching"),
    )
    st.caption(
        f"The model reads the other input; {_SAYS[found.component].format(where=where)}."
        f" Blue: “{label}” comes back, 100% all the way; orange: it goes further away. Shares of the"
        " difference. It tells where a difference lies at a given depth, not that the model uses nothing"
        " else."
    )


def _heading(text, trace, other):
    """A heading with the button that turns the inputs round; what is drawn in this container stands beside it."""
    row = inputs.heading(text).container(horizontal=True, vertical_alignment="center", width="content")
    row.button("Change places", icon=":material/swap_vert:", type="tertiary", on_click=_turn, args=(trace, other))
    return row


def _say_ends(found):
    """The answer in both inputs; where there is next to no difference, that too."""
    st.markdown(
        f"{bold(found.target.label)} has {targets.score_text(found.target, found.clean)} in the first input and "
        f"{targets.score_text(found.target, found.corrupted)} in the other."
    )
    if abs(found.clean - found.corrupted) < _SLIGHT:
        st.info(
            "That is nearly the same, so there is little to bring back and the shares below say little."
            " Change another word, or look at another answer.",
            icon=":material/balance:",
        )


def _map(trace, other, found, dark):
    if found.component == "head":
        return patched_heads_map(found.recovered, dark)
    return patch_map(found.recovered, trace.tokens, other.tokens, dark, found.component)


def _turn(trace, other):
    """The two inputs change places."""
    view = dataclasses.replace(state.view(), a=other.text_a, b=other.text_b or "", start=0)
    for side, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is not None:
            view = view.with_setting(f"patching.{side}", text)
    state.replace_view(view)
