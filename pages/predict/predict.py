"""Predict: predictions for hidden words, the next-sentence score and the attention of a pair, on one screen."""

import streamlit as st

from bert_tf.plots.share_card import share_card
from pages.predict import attention_view, mask_predictions, pair_view
from pages.predict.snippets.predict import snippet
from ui.elements import components
from ui.elements.linking import linked_tokens
from ui.session import model_store, state
from ui.session.session_cache import cached
from ui.session.trace_store import attention_trace
from ui.shell import frame, snippets
from ui.shell.page import MASKED, Page, Press
from ui.shell.view import left_out
from ui.widgets import comparison, inputs, model_offer
from ui.widgets.formatting import count, milliseconds, title

PAGE = Page(
    name="predict",
    group="Predict",
    order=1,
    title="Predict",
    question="Hide a word: what does the model expect, does B follow A, where do the heads look?",
    terms=(
        "masked language model MLM fill mask next sentence NSP pair tokens WordPiece compare bunny probability "
        "share card picture"
    ),
    summary=(
        "texts, tokens as chips to mask, the likeliest words at every mask, rank and probability of any word "
        "asked about, the next-sentence score, the attention of one head or of a layer's mean with small maps of all "
        "heads; a second model beside the first"
    ),
    presses={
        "": Press("chip", MASKED),
        "head": Press("head", MASKED, most=attention_view.LONGEST),
        "compare": Press("chip", {**MASKED, "predict.compare": "1"}),
    },
    settings=("ask", "compare", "mean"),
    settings_help=(
        "words asked about at every mask, with commas between them; `1` beside the model `with`; `1` for the mean of "
        "the layer's heads"
    ),
    opens_rows=True,
    snippet=snippet,
)

_COMPARE, _WIDGET = "predict.compare", "w_predict_compare"


def page():
    installed = model_store.installed()
    links = st.container(key="page_links", horizontal=True)
    with links:
        _walk_link()
    second = _second_model(installed)
    inputs.text_fields()
    page_inputs = inputs.encoded_texts(linked=True)
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = _trace(shared, encoding)
    if trace is None:
        return
    models = [(shared, trace)]
    if second is None:
        drawn = [_one_model(shared, trace)]
        if drawn[0] is not None:
            with links:
                _share(shared, trace, *drawn[0])
    else:
        other = inputs.model(second)
        other_encoding = other.encode(state.view().a, state.view().b)
        other_trace = _trace(other, other_encoding, "other")
        if other_trace is None:
            return
        models.append((other, other_trace))
        drawn = _two_models(installed, *models)
        model_offer.draw("predict")
    with links:
        _link()
    snippets.give(
        *((*model, *mask_predictions.asked_words(model[0])[:2], where) for model, where in zip(models, drawn))
    )
    _footer(shared, trace)


def _walk_link():
    inputs.page_button(
        "Explain this",
        "walk_through",
        ":material/animation:",
        "w_walk",
        "Walk through: these texts move through the model, step by step, with the numbers of each step.",
    )


def _share(shared, trace, layer, head):
    """Draw the button that saves a picture of the three things; ``head``: None for the mean of the layer's heads."""

    def card():
        maps = trace.attentions[layer]
        where = f"layer {layer + 1}, " + ("mean of the heads" if head is None else f"head {head + 1}")
        weights = maps.mean(axis=0) if head is None else maps[head]
        return share_card(trace, mask_predictions.answers(shared, trace), weights, where, title(shared.name))

    help_text = (
        "Saves a picture of 1200 by 630 pixels with the texts, the predictions and the attention. With Shift: as SVG."
    )
    components.picture("c_share", "Share", "bert", card, help_text)


def _link():
    """Draw the link to this view, unless no link can hold all of it."""
    if left_out(state.view(), state.limits()):
        return
    with st.popover("Link", icon=":material/link:", type="tertiary"):
        st.caption("This link opens this view: the texts, the masks, the models, the layer and the head.")
        st.code(frame.link_to(state.view()), language=None, wrap_lines=True)


def _second_model(installed):
    """Draw the examples and the switch for a second model; returns the second model's name, or None."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="examples"):
        inputs.examples()
        if len(installed) < 2:
            return None
        state.set_widget(_WIDGET, state.setting(_COMPARE, False))
        st.toggle(
            "Compare two models",
            key=_WIDGET,
            on_change=_switch,
            args=(installed,),
            help="Shows the same three things of a second model: Base beside Large if both are installed.",
        )
    if not state.setting(_COMPARE, False):
        return None
    asked = state.view().other
    if asked not in {info.name for info in installed}:
        state.correct_view(other=comparison.default_models(installed, state.view())[1])
    comparison.note_replaced("predict", (asked,), (state.view().other,))
    return state.view().other


def _switch(installed):
    state.set_setting(_COMPARE, st.session_state[_WIDGET], False)
    view = state.view()
    one, other = comparison.default_models(installed, view)
    state.change_view(model=one, other=other)


def _trace(shared, encoding, side=""):
    """The trace of the view's texts, with attention maps if they are short enough to be drawn here.

    Returns: ``Trace``; None if the page shows why there is none.
    """
    masked = inputs.masked_positions(shared, encoding)
    if masked is None:
        return None
    with inputs.reading(shared):
        return _read(shared, encoding, masked, side)


def _read(shared, encoding, masked, side):
    if encoding.length <= attention_view.LONGEST:
        return attention_trace(shared, masked)
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, masked)
    return cached(f"predict{side}", key, lambda: shared.trace(view.a, view.b, masked))


def _one_model(shared, trace):
    """Draw the three things of one model side by side; returns the layer and head that are drawn."""
    left, right = st.columns([4, 7], gap="medium")
    with left:
        mask_predictions.draw(shared, trace)
        pair_view.draw(trace)
    with right:
        return attention_view.draw(shared, trace)


def _two_models(installed, *models):
    """Draw the three things of two models, each model in its column; the same thing begins at the same height.

    Returns: the layer and head that are drawn of either model, as of `_one_model`.
    """
    (first, first_trace), (_, second_trace) = models
    links = {"": True, "_other": linked_tokens(second_trace, first_trace)}

    def title_of(shared, trace, side):
        if side:
            comparison.second_model_picker(installed, "w_predict_other")
        else:
            # On a telephone, where every part says its model, the style sheet hides it.
            st.container(key="model_title").subheader(title(shared.name), anchor=False)

    parts = {
        "title": title_of,
        "predictions": lambda shared, trace, side: mask_predictions.draw(shared, trace, side, links[side]),
        "pair": lambda shared, trace, side: pair_view.draw(trace, side),
        "attention": lambda shared, trace, side: attention_view.draw(shared, trace, side, first.config, links[side]),
    }
    for name, draw in parts.items():
        drawn = []
        for side, column, (shared, trace) in zip(("", "_other"), st.columns(2, gap="large"), models):
            with column:
                if name != "title":
                    # On a telephone the two models stand one below the other: the style sheet shows their names there.
                    st.container(key=f"model_of_{name}{side}").caption(title(shared.name))
                drawn.append(draw(shared, trace, side))
    return drawn  # of the last part, the attention


def _footer(shared, trace):
    facts = (
        inputs.model_and_precision(shared),
        count(trace.length, "token"),
        milliseconds(trace.seconds),
    )
    # If the link cannot hold the full view, another line of the page says so.
    is_complete = not left_out(state.view(), state.limits())
    st.caption(" · ".join([*facts, *["the address of this page is a link to this view"] * is_complete]))
