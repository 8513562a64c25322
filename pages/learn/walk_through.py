"""Walk through: the visitor's text on its way through the loaded model, step by step, with its numbers."""

import urllib.parse

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain.models.walk_through import walk_through
from bert_tf.plots.models.walk_through import drawing, drawn_positions
from pages.learn import walk_steps
from pages.learn.snippets.walk_through import snippet
from pages.learn.walk_component import walk as draw_walk
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import catalogue, frame, snippets
from ui.shell.page import Page, Press
from ui.shell.view import left_out, to_params
from ui.widgets import attention_controls, inputs, targets
from ui.widgets.formatting import AXES, direction

PAGE = Page(
    name="walk_through",
    group="Learn",
    order=1,
    title="Walk through",
    question="Your sentence, step by step through the model",
    terms="steps animation explain transformer tour how it works encoder self-attention QKV query key value softmax",
    summary=(
        "the visitor's text on its way through the loaded model, one step at a time and moving: tokens, the sum of the "
        "embeddings, one head, all heads, add & norm, feed-forward, the layers with the likeliest word after each, and "
        "the model's own heads; the values of any token, layer and head at the pointer, shapes and formulas"
    ),
    # Steps need no server: what is timed is the link to the page.
    presses={"": Press("open")},
    settings=("step", "token"),
    settings_help=(
        "`pieces` `embeddings` `head` `heads` `attention_norm` `feed_forward` `layers`, then those of `nsp` `sop` "
        "`replaced` `mlm` `task` that the model has; position of the token, [CLS] is 0"
    ),
    opens_rows=True,
    snippet=snippet,
)

_STEP, _TOKEN = "walk_through.step", "walk_through.token"


def page():
    page_inputs = inputs.page_inputs(strip=False)
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    attention_controls.keep_head_in_model(shared.config)
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    view = state.view()
    token = _token(trace)
    positions = drawn_positions(trace.length, token)
    call = Call.of(walk_through, layer=view.layer)
    walk = cached(
        "walk",
        (shared.name, view.precision, view.a, view.b, trace.masks, call, positions),
        lambda: shared.run(call.run, trace, positions=positions),
    )
    texts = walk_steps.texts(walk, shared.bert.task and shared.bert.task.settings)
    step = state.setting(_STEP, walk.steps[0])
    data = {
        **drawing(walk, view.head),
        "texts": [{"name": name, **_linked(text, token)} for name, text in texts.items()],
        "step": step if step in walk.steps else walk.steps[0],
        "token": token,
        "direction": direction(trace.text_a),
        "dark": state.is_dark(),
    }
    draw_walk("c_walk", data, _paused, _choose, lambda step, token: _go(texts[step], token))
    attention_controls.footer(shared, trace)
    if not left_out(view, state.limits()):
        letters = " ".join(f"{letter}: {counted}." for letter, counted in AXES.items())
        st.caption("The address of this page is a link to this step.", help=f"The letters in the sizes: {letters}")
    snippets.give(shared, trace, call)


def _token(trace):
    """The position of the chosen token: the link's, else the first mask, else the first token of the text."""
    automatic = trace.masks[0] if trace.masks else min(1, trace.length - 1)
    token = state.setting(_TOKEN, automatic)
    return token if 0 <= token < trace.length else automatic


def _paused(step, token):
    state.set_setting(_STEP, step, "pieces")
    state.set_setting(_TOKEN, token, None)


def _choose(layer, head):
    state.change_view(layer=layer, head=head)


def _linked(text, token):
    """The texts of a step with the title and the address of the page that goes deeper."""
    page = catalogue.pages()[text["page"]]
    params = to_params(_deeper(text, token), state.limits())
    texts = {name: value for name, value in text.items() if name != "settings"}
    return {**texts, "page_title": page.full_title, "href": "?" + urllib.parse.urlencode(params)}


def _deeper(text, token):
    """The view in which the page that goes deeper opens."""
    values = {"token": token, "layer": state.view().layer + 1}
    view = frame.view_of(text["page"])
    for name, value in text["settings"].items():
        view = view.with_setting(f"{text['page']}.{name}", str(values.get(value, value)))
    return view


def _go(text, token):
    state.replace_view(_deeper(text, token))
