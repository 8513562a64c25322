"""The inputs at the top of the pages: examples, texts, token chips."""

import contextlib

import streamlit as st

from bert_tf.explain.attribution.target import leaves_out_text_b
from ui.elements import components, text_notes
from ui.elements.mask_chips import chips, token_positions, words
from ui.elements.toolbar import Button, Switch, toolbar
from ui.first_paint import SKELETON
from ui.samples.examples import EXAMPLES
from ui.session import model_store, state
from ui.session.model_store import shared_model
from ui.shell.view import MaskPosition
from ui.widgets import history
from ui.widgets.formatting import count, escape_markdown, megabytes, title


def page_inputs(strip=True):
    """Draw the inputs of a page, load the model and encode the texts.

    The text fields are in an expander, closed if there is a text.

    Args:
        strip: whether to draw the chip strip, in which the visitor masks tokens.

    Returns:
        (``SharedModel``, ``Encoding``), or None if there is no text to read, with the reason on the page.
    """
    with st.expander("Texts and masks", expanded=not state.view().a.strip(), icon=":material/edit_note:"):
        examples()
        text_fields(undo=not strip)
    return encoded_texts(strip)


def encoded_texts(strip=True, linked=False):
    """Load the model, encode the view's texts and draw the chip strip.

    Args:
        strip: whether to draw the chip strip. linked: see ``components.chips``.

    Returns: as of ``page_inputs``.
    """
    if not texts_are_usable():
        return None
    shared = model()
    encoding = encode_texts(shared)
    if encoding is None:
        return None
    if strip:
        token_strip(shared, encoding, f"c_{state.view().page}_chips", linked)
    return shared, encoding


def masked_positions(shared, encoding):
    """The token positions of the view's masks; None, with a warning on the page, if there are too many masks."""
    positions = token_positions(encoding, state.view().masks)
    masks, most = len({*typed_masks(shared, encoding), *positions}), state.limits().max_masks
    if masks > most:
        st.warning(
            f"There are {masks} masks; at most {most} are predicted at once here. Unmask some, or shorten the text.",
            icon=":material/filter_alt:",
        )
        return None
    return positions


def typed_masks(shared, encoding):
    """The token positions of each "[MASK]" in the texts, a list of int."""
    return [at for at, token_id in enumerate(encoding.token_ids) if int(token_id) == shared.tokenizer.mask_id]


def examples(offered=EXAMPLES):
    """Draw a pill for each example; a press puts the example's texts and masks into the view."""
    labels = [example.label for example in offered]
    view = state.view()
    current = next((example.label for example in offered if (example.a, example.b) == (view.a, view.b)), None)
    state.set_widget("w_example", current)

    def pick():
        chosen = st.session_state["w_example"]
        # A second press on the chosen pill reports None: the example is set again, with its masks.
        example = offered[labels.index(chosen or current or labels[0])]
        state.change_view(a=example.a, b=example.b, masks=example.masks, start=0)

    st.pills("Examples", labels, key="w_example", on_change=pick, label_visibility="collapsed")


_FIELDS = (
    ("Text A", "Type a sentence. [MASK] may stand for a word."),
    ("Text B (optional)", "A second text: does it follow the first?"),
)


def text_fields(fields=_FIELDS, undo=False):
    """Draw the text fields, bound to the view.

    Args:
        fields: one or two pairs of label and hint. undo: whether to draw undo and redo under the fields: on a page
            without a chip strip. Where text A was cleared no page has one, so they are drawn in any case.
    """
    view = state.view()
    with st.container(horizontal=True, key="texts"):
        for name, (label, hint) in zip("ab", fields):
            key = f"w_text_{name}"
            state.set_widget(key, getattr(view, name))
            st.text_area(label, key=key, on_change=_texts_changed, placeholder=hint, height=68)
    components.typing("c_typing", [f"w_text_{name}" for name, _ in zip("ab", fields)])
    if undo or (history.can_undo() and not view.a.strip()):
        with st.container(horizontal=True, horizontal_alignment="right"):
            toolbar("c_undo", *_undo_and_redo())


def _texts_changed():
    view = state.view()
    texts = [state.typed_text(f"w_text_{name}", getattr(view, name)) for name in "ab"]
    # A visitor cannot clear two fields at once: if both are empty, a slow browser has not filled them yet.
    if any(texts) or not (view.a and view.b):
        state.replace_view(view.with_text(*texts, _words))


def _words(text):
    view = state.view()
    shared = shared_model(view.model, view.precision)
    return words(shared.encode(text, ""), text)


def texts_are_usable(label="Text A", has_examples=True):
    """Whether the view's texts can be read; if not, the reason is drawn on the page.

    Args:
        label: of the field of text A. has_examples: whether the page offers examples above its fields.
    """
    view, limits = state.view(), state.limits()
    for name, text in (("A", view.a), ("B", view.b)):
        if len(text) > limits.max_characters:
            st.error(
                f"Text {name} has {len(text):,} characters; this explorer takes at most "
                f"{limits.max_characters:,}. Shorten it.",
                icon=":material/error:",
            )
            return False
    if not view.a.strip():
        hint = "Type a sentence, or pick one of the examples above." if has_examples else "Type a sentence."
        st.info(f"{label} is empty. {hint}", icon=":material/keyboard:")
        return False
    return True


def model(name=None):
    """The ``SharedModel`` of the view, or the one called ``name``; says so while it loads."""
    name, precision = name or state.view().model, state.view().precision
    with loading(_load_message(name), is_over=model_store.is_loaded(name, precision)):
        return shared_model(name, precision)


def _load_message(name):
    info = next((info for info in model_store.installed() if info.name == name), None)
    size = f", {megabytes(info.size_bytes)}" if info is not None and info.size_bytes else ""
    return f"Loading {title(name)}{size}, once for all visitors …"


@contextlib.contextmanager
def loading(message, is_over):
    """While the body runs: a message with the seconds so far, and grey shapes in the place of the results.

    Args:
        message: what is loaded. is_over: True if the body has nothing to wait for; then nothing is drawn.
    """
    place = st.empty()  # in every run, so that what follows keeps its place on the page
    if is_over:
        yield
        return
    try:
        with place.container(), st.spinner(message, show_time=True):
            st.html(SKELETON)
            yield
    finally:
        place.empty()


def reading(shared):
    """A context manager for a forward pass; the first one of a model takes seconds, because the engine compiles it."""
    if shared.has_answered:
        return st.spinner("Reading …", show_time=True)
    return loading(f"Preparing {title(shared.name)}: the first pass takes a few seconds …", is_over=False)


def encode_texts(shared):
    """Encode the view's texts for the model ``shared``, and draw a note about text that it cannot read.

    Returns:
        the ``Encoding``, or None if text A has no token.
    """
    view = state.view()
    encoding = shared.encode(view.a, view.b)
    if not any(source == "a" for source in encoding.sources):
        st.info(
            "There is nothing in text A that the model can read: only spaces or control characters. Type a sentence.",
            icon=":material/keyboard:",
        )
        return None
    note_unreadable(shared, view.b)
    text_notes.draw(shared, encoding, {"a": view.a, "b": view.b})
    warn_truncated(encoding)
    return encoding


def note_unreadable(shared, text_b, name="Text B"):
    """Draw a note if a text B was typed that the model does not read; ``name``: of the text on the page."""
    if not text_b.strip() or shared.text_b_or_none(text_b) is not None:
        return
    if leaves_out_text_b(shared.bert):
        st.info(f"{name} is left out: {title(shared.name)} classifies single texts.", icon=":material/keyboard:")
    else:
        st.info(f"{name} holds nothing that the model can read, so it counts as empty.", icon=":material/keyboard:")


def warn_truncated(encoding, side_name=""):
    """Draw a warning if the texts did not fit into ``encoding``; ``side_name``: the side of a comparison."""
    cut = [f"{count(number, 'token')} of text {name}" for name, number in zip("AB", encoding.truncated) if number]
    if cut:
        st.warning(
            f"{escape_markdown(side_name)}{': the' if side_name else 'The'} model reads {encoding.length} tokens at"
            f" once: {' and '.join(cut)} at the end {'are' if sum(encoding.truncated) > 1 else 'is'} left out.",
            icon=":material/content_cut:",
        )


def warn_cut(texts, tokens=None, noun="sentence"):
    """Draw a warning if texts are longer than one may be, so that their ends are left out.

    Args:
        texts: the number of such texts. noun: what a text is called.
        tokens: the most tokens that the model reads of a text; None if the limit of characters cuts the texts.
    """
    if texts:
        verb, end = ("is", "its end is") if texts == 1 else ("are", "their ends are")
        most = count(tokens, "token") if tokens else f"{state.limits().max_row_characters:,} characters"
        st.warning(
            f"{count(texts, noun)} {verb} longer than {most}: {end} left out.",
            icon=":material/content_cut:",
        )


def option_choice(option, label, values, setting, key, **more):
    """Draw a choice of values for a number of an analysis; returns the chosen one.

    Args:
        option: ``bert_tf.analysis.Option``: its default is chosen first, and its bounds hold for ``values``.
        label: of the widget. values: the numbers on offer. setting: name in the link. key: of the widget.
        more: as ``st.segmented_control`` takes them.
    """
    for value in values:
        option.check(value)
    return st.segmented_control(label, values, **more, **state.bind_setting(setting, key, option.default, values))


def token_window(length, most, setting, key):
    """The positions that are drawn, a range: all, or of a longer text ``most`` from a token that a slider chooses."""
    if length <= most:
        return range(length)
    last = length - most + 1
    first = st.slider(f"{most} tokens from", 1, last, **state.bind_setting(setting, key, 1, range(1, last + 1)))
    return range(first - 1, first - 1 + most)


def model_and_precision(shared):
    """The model and the precision in which it computed, "BERT Base, float32"."""
    from bert_tf.runtime.runtime import actual_precision

    return f"{title(shared.name)}, {actual_precision(state.view().precision)}"


def heading(text):
    """Draw a heading; return a container for widgets at its right."""
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.header(text, anchor=False, width="content")
    return row


def page_button(label, page, icon, key, help_text):
    """Draw a button that opens another page with the same texts, masks, layer and head.

    Args:
        label, icon, key, help_text: of the button. page: name of the page.
    """
    st.button(label, icon=icon, key=key, type="tertiary", help=help_text, on_click=lambda: state.change_view(page=page))


def _undo_and_redo():
    """The two buttons that undo and redo changes of the texts and masks."""
    return [
        Button(
            name.lower(),
            name,
            name.lower(),
            f"{name} the last change of the texts or masks.",
            act,
            disabled=not can,
            bare=True,
        )
        for name, act, can in (("Undo", history.undo, history.can_undo()), ("Redo", history.redo, history.can_redo()))
    ]


def token_strip(shared, encoding, key, linked=False):
    """Draw the chip strip, in which the visitor masks tokens, undo and redo, and the switch for whole words.

    Args:
        shared: ``SharedModel``. encoding: of the texts. key: of the component. linked: see ``components.chips``.
    """
    view = state.view()

    def pressed(text):
        spot, now = MaskPosition.parse(text), state.view()
        if spot is None:
            return
        if spot not in now.masks and len(token_positions(encoding, (*now.masks, spot))) > state.limits().max_masks:
            st.toast(f"At most {state.limits().max_masks} masks fit here: unmask one first.")
            return
        state.replace_view(now.toggled(spot))
        history.record()

    whole = Switch(
        "whole",
        "Whole words",
        view.whole,
        "On: a press masks all pieces of a word. Off: it masks one piece.",
        lambda on: state.change_view(whole=on),
    )
    strip = chips(encoding, view.masks, view.whole, shared.tokenizer.mask_id)
    components.chips(key, strip, (view.a, view.b), pressed, (*_undo_and_redo(), whole), linked)
