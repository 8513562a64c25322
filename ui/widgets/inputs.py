"""What the pages have in common above their results: examples, texts, token chips."""

import streamlit as st

from ui.elements import components
from ui.elements.mask_chips import chips, token_positions
from ui.samples.examples import EXAMPLES
from ui.session import state
from ui.session.model_store import shared_model
from ui.shell.view import MaskPosition
from ui.widgets.formatting import count, escape_markdown, title


def page_inputs(folded=True, strip=True):
    """The opening lines of a page: the texts, the model, what the model reads, the tokens to mask.

    Args:
        folded: whether the text fields are put away once there is a text.
        strip: whether the tokens are drawn as chips.

    Returns:
        (SharedModel, Encoding), or None when there is nothing to look at; then the page has said why.
    """
    if folded:
        with st.expander("Texts and masks", expanded=not state.view().a.strip(), icon=":material/edit_note:"):
            examples()
            text_fields()
    else:
        examples()
        text_fields()
    if not texts_are_usable():
        return None
    shared = model()
    encoding = encode_texts(shared)
    if encoding is None:
        return None
    if strip:
        token_strip(shared, encoding, f"c_{state.view().page}_chips")
    return shared, encoding


def masked_positions(shared, encoding):
    """Positions of the view's masks in ``encoding``; None, with the reason said, if there are too many."""
    found = token_positions(encoding, state.view().masks)
    typed = sum(int(one) == shared.tokenizer.mask_id for one in encoding.token_ids)
    most = state.limits().max_masks
    if typed + len(found) > most:
        st.warning(
            f"There are {typed + len(found)} masks; at most {most} are predicted at once here. "
            "Unmask some, or shorten the text.",
            icon=":material/filter_alt:",
        )
        return None
    return found


def examples(offered=EXAMPLES):
    """Pills that put an example's texts and masks into the view."""
    labels = [example.label for example in offered]
    view = state.view()
    shown = next((one.label for one in offered if (one.a, one.b) == (view.a, view.b)), None)
    state.set_widget("w_example", shown)

    def pick():
        chosen = st.session_state["w_example"]
        # A second press on the chosen pill takes it back: the example starts over.
        example = offered[labels.index(chosen or shown or labels[0])]
        state.change_view(a=example.a, b=example.b, masks=example.masks, start=0)

    st.pills("Examples", labels, key="w_example", on_change=pick, label_visibility="collapsed")


_FIELDS = (
    ("Text A", "Type a sentence. [MASK] may stand for a word."),
    ("Text B (optional)", "A second text: does it follow the first?"),
)


def text_fields(fields=_FIELDS):
    """The text fields, tied to the view: one or two pairs of label and hint."""
    view = state.view()
    for column, name, (label, hint) in zip(st.columns(len(fields)), "ab", fields):
        key = f"w_text_{name}"
        state.set_widget(key, getattr(view, name))
        column.text_area(label, key=key, on_change=_texts_changed, placeholder=hint, height=92)


def _texts_changed():
    view = state.view()
    texts = [state.typed_text(f"w_text_{name}", getattr(view, name)) for name in "ab"]
    # Nobody clears two fields at once: a slow browser had not filled them yet.
    if any(texts) or not (view.a and view.b):
        state.replace_view(view.with_text(*texts))


def texts_are_usable():
    """Say what is wrong with the texts, if anything; True when there is something to read."""
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
        st.info("Text A is empty. Type a sentence, or pick one of the examples above.", icon=":material/keyboard:")
        return False
    return True


def model(name=None):
    """The model of the view (or the one called ``name``), loaded; says so while it loads."""
    name = name or state.view().model
    with st.spinner(f"Loading {title(name)} …", show_time=True):
        return shared_model(name, state.view().precision)


def encode_texts(shared):
    """Pack the view's texts for the model ``shared`` and say what did not fit.

    Returns:
        The encoding, or None when there is nothing in it to look at.
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
    warn_truncated(encoding)
    return encoding


def note_unreadable(shared, text_b, name="Text B"):
    """Say of a text B that something was typed and the model can read nothing of it; ``name``: what it is called."""
    if text_b.strip() and shared.text_b_or_none(text_b) is None:
        st.info(f"{name} holds nothing that the model can read, so it counts as empty.", icon=":material/keyboard:")


def warn_truncated(encoding, side_name=""):
    """Say what of the texts did not fit into ``encoding``, if anything; ``side_name``: the side of a comparison."""
    cut = [f"{count(number, 'token')} of text {name}" for name, number in zip("AB", encoding.truncated) if number]
    if cut:
        st.warning(
            f"{escape_markdown(side_name)}{': the' if side_name else 'The'} model reads {encoding.length} tokens at"
            f" once: {' and '.join(cut)} at the end {'are' if sum(encoding.truncated) > 1 else 'is'} left out.",
            icon=":material/content_cut:",
        )


def heading(text):
    """A heading with room at its right: what is drawn in the container this returns stands there."""
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.header(text, anchor=False, width="content")
    return row


def token_strip(shared, encoding, key):
    """The chips, with the switch for whole words."""
    view = state.view()
    with heading("Tokens"):
        st.toggle(
            "Whole words",
            **state.bind_field("whole", "w_whole"),
            help="On: a press masks every piece of a word. Off: one piece alone.",
        )

    def pressed(text):
        spot, now = MaskPosition.parse(text), state.view()
        if spot is None:
            return
        if spot not in now.masks and len(token_positions(encoding, (*now.masks, spot))) > state.limits().max_masks:
            st.toast(f"At most {state.limits().max_masks} masks fit here: unmask one first.")
            return
        state.replace_view(now.toggled(spot))

    shown = chips(encoding, view.masks, view.whole, shared.tokenizer.mask_id)
    components.chips(key, shown, (view.a, view.b), pressed)
