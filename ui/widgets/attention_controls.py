"""What the pages about attention share: trace, filters, pickers of layer and head, and one warning."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain.attention.attention_maps import HeadAttention
from ui.elements import components
from ui.elements.attention_page import attention_page, head_name
from ui.session import state
from ui.session.trace_store import attention_trace
from ui.widgets import export, inputs
from ui.widgets.formatting import count, milliseconds

LARGEST = 128  # tokens a side up to which every one is shown
WINDOW = 64  # tokens a side of the detail of a longer text
_MOST_WEIGHTS = 1_000_000  # of the lines that are sent to the browser, a byte each
_FROM_ONE = {"read": lambda number: number - 1, "show": lambda index: index + 1}


def page_inputs(strip=True):
    """The opening lines of a page and the trace with attention maps: (SharedModel, Trace), or None."""
    model_and_encoding = inputs.page_inputs(strip=strip)
    if model_and_encoding is None:
        return None
    shared, encoding = model_and_encoding
    keep_head_in_model(shared.config)
    masked = inputs.masked_positions(shared, encoding)
    if masked is None:
        return None
    with inputs.reading(shared):
        return shared, attention_trace(shared, masked)


def filtered_page_inputs():
    """The opening lines of a page without chips, and its filters: (SharedModel, Trace, `Selection`), or None."""
    model_and_trace = page_inputs(strip=False)
    selection = filters(model_and_trace[1]) if model_and_trace else None
    return (*model_and_trace, selection) if selection else None


def keep_head_in_model(config):
    """Put the view's layer and head inside the model's."""
    view = state.view()
    layer = min(view.layer, config.num_hidden_layers - 1)
    head = min(view.head, config.num_attention_heads - 1)
    if (layer, head) != (view.layer, view.head):
        state.correct_view(layer=layer, head=head)


def filters(trace):
    """The switches for what is shown; then ``plots.Selection``, or None with the reason said."""
    names = {"all": "All", "aa": "A→A", "ab": "A→B", "ba": "B→A", "bb": "B→B"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if trace.text_b is not None:
            st.segmented_control(
                "Show", list(names), format_func=names.get, **state.bind_field("selection", "w_selection")
            )
        elif state.view().selection != "all":
            state.correct_view(selection="all")
        st.toggle(
            "Special tokens",
            **state.bind_field("special", "w_special"),
            help="They ([CLS] and [SEP] in BERT) often draw most of the attention: hide them to see the rest.",
        )
        st.toggle("Punctuation", **state.bind_field("punctuation", "w_punctuation"))
    view = state.view()
    selection = plots.select(trace, view.selection, view.special, view.punctuation)
    if not selection:
        st.info(
            "No token is left under these filters. Show special tokens or punctuation, or type a text B.",
            icon=":material/filter_alt_off:",
        )
        return None
    return selection


def pickers(shape, threshold=None):
    """Sliders for layer and head of a model with ``shape`` (layers, heads, ...).

    Args:
        threshold: name of the page's setting for the least weight that is drawn; None for no such slider.
    """
    sliders = [(name, most) for name, most in zip(("layer", "head"), shape) if most > 1]
    columns = st.columns(max(1, len(sliders) + bool(threshold)))
    for column, (name, most) in zip(columns, sliders):
        column.slider(name.capitalize(), 1, most, **state.bind_field(name, f"w_{name}", **_FROM_ONE, offered=(most,)))
    if threshold:
        with columns[-1]:
            threshold_picker(threshold)


def threshold_picker(threshold, width="stretch"):
    """The slider of the least weight that is drawn, the page's setting ``threshold``."""
    bound = state.bind_setting(threshold, f"w_{threshold.replace('.', '_')}", 0, range(51))
    st.slider("Hide below", 0, 50, format="%d%%", width=width, **bound)


def least(threshold):
    """The least weight that is drawn, by the page's setting ``threshold``."""
    value = state.setting(threshold, 0)
    return value / 100 if value in range(51) else 0.0


def detail(selection):
    """The selection, or of a long one the part of ``WINDOW`` tokens that a slider chooses."""
    longest = max(len(selection.rows), len(selection.columns))
    if longest <= LARGEST:
        return selection
    return selection.window(first_token(longest, WINDOW, f"Detail: {WINDOW} tokens from"), WINDOW)


def first_token(length, shown, label):
    """The first of the ``shown`` tokens, from 0, that a slider chooses among more."""
    most = length - shown + 1
    if state.view().start >= most:
        state.correct_view(start=most - 1)
    st.slider(label, 1, most, **state.bind_field("start", "w_start", **_FROM_ONE, offered=(most,)))
    return state.view().start


def save(trace, heads, selection, threshold):
    """Offer one head or several between the tokens of a selection in the menu Save.

    Args:
        heads: pairs (layer, head), from 0. selection: ``plots.Selection``, saved whole however long it is.
        threshold: weights below it are left out of the figures.
    """
    layers, heads = zip(*heads)
    attention = HeadAttention(
        trace=trace,
        layers=layers,
        heads=heads,
        positions=selection.rows,
        attended_positions=selection.columns,
        threshold=threshold,
    )
    name = "-".join(map(head_name, layers, heads))
    export.save(name, attention, trace=trace)


def draw_lines(key, trace, heads, selection, name, threshold, colours=("",), drawing="Lines"):
    """The lines of one head or several between all tokens of a selection; a long text is scrolled and zoomed.

    Of a text with more than ``_MOST_WEIGHTS`` weights a slider chooses the tokens.

    Args:
        key: of the component. heads: pairs (layer, head), from 0. name: of the saved files, without an ending.
        threshold: the least weight that is drawn. colours: "#rrggbb" of each head if there are several.
        drawing: its title in the menu Save.
    """
    maps = trace.attentions[[layer for layer, _ in heads], [head for _, head in heads]]
    is_whole = len(heads) * len(selection.rows) * len(selection.columns) <= _MOST_WEIGHTS
    drawn = selection if is_whole else detail(selection)
    export.save_drawing(drawing, name)
    components.lines(
        key,
        plots.lines(trace, maps, drawn),
        name,
        colours,
        threshold,
        caption=export.trace_caption(name, trace),
        page=lambda: saved_page(trace, heads, selection, threshold, colours),
        **({"start": state.view().start, "on_start": lambda row: state.change_view(start=row)} if is_whole else {}),
    )


def saved_page(trace, heads, selection, threshold=0.0, colours=("",)):
    """The HTML page of all heads that the menu Save offers; see `attention_page`."""
    return attention_page(
        trace,
        selection,
        heads,
        plots.ramp(False),
        lambda name: export.trace_caption(name, trace),
        colours,
        threshold,
    )


def footer(shared, trace):
    """What was read and in which precision, and how long it took."""
    read = f"{inputs.model_and_precision(shared)} · {count(trace.length, 'token')}"
    st.caption(f"{read} · {milliseconds(trace.seconds)}")


#: Why attention is no explanation; a `warning` opens it.
_WHY = """\
**Is attention an explanation? No, not by itself.** A weight says how much of one token's value vector goes into
another's sum, in one head of one layer. It does not say that the answer depends on it.

- Jain and Wallace (2019), *Attention is not Explanation*: weights often disagree with gradients and with
  leaving words out, and quite different weights can give the same prediction.
- Serrano and Smith (2019), *Is Attention Interpretable?*: setting the largest weights to zero often
  changes nothing.
- Wiegreffe and Pinter (2019), *Attention is not not Explanation*: other weights that are also *learnt* do
  worse, so the weights are not arbitrary either; whether they explain depends on what one means by it.
- Brunner et al. (2020) and Kobayashi et al. (2020): a part of a map cannot reach the output at all, and a
  large weight on a short vector moves little. [SEP] is the usual case. *Attention methods* shows both.
- Abnar and Zuidema (2020): after a few layers a token's vector is a mixture of all tokens, so a weight in a
  deep layer points at a place, no longer at a word. Rollout and flow, also under *Attention methods*, follow the
  mixing.

Read a head as a description of what the model moves where. To learn what an answer depends on, change something and
look again: hide a word, replace it, or switch the head off.
"""


def warning():
    """A button that opens, where it stands, why attention is no explanation."""
    with st.popover(
        "Attention is not explanation: read why", icon=":material/help:", type="tertiary", key="w_not_explanation"
    ):
        st.markdown(_WHY)
