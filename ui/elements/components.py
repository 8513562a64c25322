"""The components for pages, one function each: HTML, CSS and JavaScript of ``assets/components``, without an iframe.

Each function draws one component and calls a callback with the visitor's input. It checks the input first, as a
browser can send any value.
"""

import uuid

import streamlit as st

from ui.elements.component_registry import register
from ui.elements.toolbar import control_data, use_control
from ui.session import state
from ui.widgets.formatting import direction

_NAV, _TYPING, _BARS, _GAUGE, _HEADS, _PICTURE = map(register, ("nav", "typing", "bars", "gauge", "heads", "picture"))
_GRID, _LINES = register("grid", large=True), register("lines", large=True)
_CHIPS = register("chips", "controls")
_PICTURES = ("svg", "png")
#: The most lines that the grid draws for a head; the least weight drawn, as a share of the head's greatest weight.
MOST_STRANDS, FAINTEST_STRAND = 80, 0.06


def nav(key, sections, current, dark, on_go):
    """Draw links to the pages by section, and a search among them; tell the view of the browser's back and forward.

    Args:
        key: of the component.
        sections: list of dicts with ``title`` and ``pages``. A page is a dict with ``name``, ``title``, ``question``,
            ``terms`` (further words by which the search shows it) and ``params``, the parameters of its link that
            not all pages share. The browser has the others in its address bar.
        current: name of the open page.
        dark: whether this run draws for a dark page. If the browser's page has the other theme, the page runs again.
        on_go: callable (page's name), called when a link is pressed.
    """

    def pressed(value):
        if isinstance(value, str):
            on_go(value)

    def went_back(value):
        if isinstance(value, str):
            state.open_link(value)

    data = {"sections": sections, "current": current, "dark": dark}
    presses = {"go": pressed, "theme": lambda _: state.keep_view_next_run(), "back": went_back}
    _NAV(key=key, data=data, presses=presses)


def typing(key, keys):
    """Let Enter apply the text fields with these widget keys, and give back what was typed before a reload."""
    _TYPING(key=key, data={"keys": keys})


def chips(key, strip, texts, on_toggle, controls=(), linked=False):
    """Draw the tokens as chips, and controls at their right.

    Args:
        key: of the component.
        strip: the list that ``ui.elements.mask_chips.chips`` returns.
        texts: (text A, text B); each row of chips has the writing direction of its text.
        on_toggle: callable (``str`` of a ``MaskPosition``), called when a chip is pressed.
        controls: ``Button``, ``Choice`` and ``Switch`` of ``ui.elements.toolbar``.
        linked: whether pointing at a token marks it in the other linked components of the page too.
    """

    def pressed(value):
        if isinstance(value, str):
            on_toggle(value)

    data = {
        "chips": strip,
        "directions": {side: direction(text) for side, text in zip("ab", texts)},
        "controls": control_data(controls),
        "linked": linked,
    }
    _CHIPS(key=key, data=data, presses={"toggle": pressed, "use": use_control(controls)})


def bars(key, cards, on_fill=None, linked=False):
    """Draw cards of bars, one for each mask.

    Args:
        key: of the component.
        cards: as ``ui.elements.cards.cards`` makes them.
        on_fill: callable (position, token id), called when a bar is pressed; None for bars that cannot be pressed.
        linked: whether pointing at a card marks its token in the other linked components of the page too. One card is
            open then, that of the mask pressed last. Instead of True, what ``linked_tokens`` returns if the page's
            chips are another model's tokens.
    """

    def pressed(value):
        if isinstance(value, dict) and all(type(value.get(name)) is int for name in ("position", "token")):
            on_fill(value["position"], value["token"])

    data = {"cards": cards, "linked": linked}
    if on_fill is None:
        _BARS(key=key, data={**data, "still": True})
    else:
        _BARS(key=key, data=data, presses={"fill": pressed})


def gauge(key, is_next, order=False):
    """Draw the score of a pair: the probability that B follows A, or (``order``) that the texts are in order."""
    _GAUGE(key=key, data={"is_next": is_next, "order": order})


def grid(
    key,
    tiles,
    on_open,
    ramp,
    chosen=None,
    style="maps",
    dark=False,
    tallest=52,
    texts=None,
    name="all-heads",
    hint="Layers downwards, heads across; each map scaled to its own strongest.",
    label="Maps of all heads.",
    caption="",
    page=None,
):
    """Draw a small tile for every head: its map, its lines or a number.

    Args:
        key: of the component.
        tiles: ``bert_tf.plots.Tiles``.
        on_open: callable (layer, head), called when a tile is pressed.
        ramp: list of "#rrggbb", the colour scale from 0 to 1.
        chosen: pairs (layer, head) to draw with a frame; None for the heads that the component ``heads`` draws on the
            same page. With None the maps are not sent again when the chosen heads change.
        style: "maps", or "lines" between the tokens, coloured by ``tiles.sides``.
        dark: whether lines are drawn for a dark page. tallest: the greatest height of a row of heads, in pixels.
        texts: a short text for each head, layer by layer, drawn if there is room; None for no texts.
        name: file name of the saved picture, without its ending; the menu Save offers it by `export.save_drawing`.
        hint: the text above the tiles. label: name of the component, for screen readers.
        caption: the line below the saved picture, which says what it shows.
        page: callable () -> the HTML page that is saved.
    """

    def pressed(value):
        head = _head_sent(value)
        if head:
            on_open(min(max(head[0], 0), tiles.layers - 1), min(max(head[1], 0), tiles.heads - 1))

    data = grid_data(tiles, ramp, chosen, style, dark, tallest, texts, name, hint, label, caption)
    data, asked = _with_page(key, data, page)
    _GRID(key=key, data=data, presses={"open": pressed, "page": asked})


def grid_data(tiles, ramp, chosen, style, dark, tallest, texts, name, hint, label, caption):
    """What the script of the component ``grid`` reads; see `grid`."""
    return {
        "layers": tiles.layers,
        "heads": tiles.heads,
        "rows": tiles.rows,
        "columns": tiles.columns,
        "bytes": tiles.base64(),
        "sides": list(tiles.sides),
        "ramp": ramp,
        "style": style,
        "most": MOST_STRANDS,
        "faintest": FAINTEST_STRAND,
        "dark": dark,
        "tallest": tallest,
        "texts": texts,
        "name": name,
        "caption": caption,
        "hint": hint,
        "label": label,
        "chosen": None if chosen is None else [{"layer": layer, "head": head} for layer, head in chosen],
    }


def _with_page(key, data, page):
    """Add the saved HTML page to a component's data if its button was pressed: (data, what its press calls)."""
    flag = f"_{key}_page"

    def asked(_):
        st.session_state[flag] = True

    if page is not None and st.session_state.pop(flag, False):
        data = {**data, "page": {"html": page(), "number": uuid.uuid4().hex}}
    return data, asked


def _head_sent(value):
    """The (layer, head) in a value of the browser, or None."""
    if isinstance(value, dict) and all(type(value.get(part)) is int for part in ("layer", "head")):
        return value["layer"], value["head"]
    return None


def heads(key, chosen, colours, several, on_drop):
    """Draw the names of the chosen heads, and tell the component ``grid`` of the same page which heads they are.

    Args:
        key: of the component.
        chosen: pairs (layer, head). colours: "#rrggbb" of each.
        several: whether several heads may be chosen at the same time.
        on_drop: callable (layer, head), called when a name is pressed.
    """

    def pressed(value):
        dropped = _head_sent(value)
        if dropped in chosen:
            on_drop(*dropped)

    _HEADS(key=key, data={"heads": named_heads(chosen, colours), "several": several}, presses={"drop": pressed})


def named_heads(chosen, colours):
    """Pairs (layer, head) and the "#rrggbb" of each as a list of dicts, for a component."""
    return [{"layer": layer, "head": head, "colour": colour} for (layer, head), colour in zip(chosen, colours)]


def lines(
    key,
    weights,
    name,
    colours=("",),
    least=0.0,
    linked=False,
    caption="",
    page=None,
    start=0,
    on_start=lambda row: None,
    framed=None,
):
    """Draw the attention of one or several heads as lines between tokens.

    Args:
        key: of the component.
        weights: ``bert_tf.plots.Lines``.
        name: file name of the saved picture, without its ending; the menu Save offers it by `export.save_drawing`.
        colours: "#rrggbb" of each head if there are several.
        least: the least weight that is drawn.
        linked: whether pointing at a token marks it in the other linked components of the page too; the tokens are
            those of the whole text. Instead of True, what ``linked_tokens`` returns; see `bars`.
        caption: the line below the saved picture, which says what it shows.
        page: callable () -> the HTML page that is saved.
        start: the first row in sight when a long text opens.
        on_start: callable (row), called when the visitor has scrolled a long text and stays.
        framed: the heads around which the component ``grid`` of the same page draws a frame, as ``named_heads`` returns
            them; None if another component tells it.
    """

    def scrolled(value):
        if type(value) is int:
            on_start(min(max(value, 0), len(weights.left)))

    data = lines_data(weights, name, colours, least, caption) | {"linked": linked, "framed": framed}
    data, asked = _with_page(key, data | {"start": start}, page)
    _LINES(key=key, data=data, presses={"page": asked, "start": scrolled})


def lines_data(weights, name, colours, least, caption):
    """What the script of the component ``lines`` reads; see `lines`."""
    return {
        "left": weights.left,
        "right": weights.right,
        "bytes": weights.base64(),
        "sides_left": weights.sides_left,
        "sides_right": weights.sides_right,
        "name": name,
        "colours": list(colours),
        "least": least,
        "caption": caption,
    }


@st.fragment
def picture(key, title, name, figure, card=""):
    """Draw the buttons that save a figure as SVG and as PNG; the browser makes the files.

    Args:
        key: of the component.
        title: name of the figure. name: of the file, without its ending.
        figure: callable () -> a Plotly figure; called when a button is pressed. A press runs this fragment alone.
        card: what the pointer is told of a picture of exactly the figure's size, which has a single button: a press
            saves it as PNG, a press with Shift as SVG. "": two buttons, and a PNG of twice the size.
    """
    asked = f"_{key}_asked"

    def pressed(value):
        if isinstance(value, dict) and value.get("format") in _PICTURES:
            st.session_state[asked] = value

    data = {"title": title, "name": name, "card": card, "formats": ["png"] if card else list(_PICTURES)}
    request = st.session_state.pop(asked, None)
    if request:
        data |= {"format": request["format"], "figure": figure().to_json(), "number": uuid.uuid4().hex}
        if request.get("library"):
            from plotly.offline import get_plotlyjs

            data["library"] = get_plotlyjs()
        st.toast(f"{name}.{request['format']} is saved where your browser puts downloads.", icon=":material/download:")
    _PICTURE(key=key, data=data, presses={"ask": pressed}, width="content" if card else "stretch")


def drawing_files(key, title, name, formats):
    """Draw the buttons that save a drawing of this page, made by the component ``grid`` or ``lines``.

    Args:
        key: of the component.
        title: name of the drawing. name: the drawing's own file name.
        formats: those it can be saved in, of "svg", "png" and "html".
    """
    data = {"title": title, "name": name, "card": "", "formats": list(formats), "drawing": True}
    _PICTURE(key=key, data=data, width="stretch")


_TOWER = register("tower")


def tower(key, boxes, heads, tokens, runs, chosen, layer, layers, on_open, on_layer):
    """Draw a model as boxes.

    Args:
        key: of the component.
        boxes: dicts with ``name``, ``title``, ``size``, ``shape``, ``work`` and ``share`` (0 to 1).
        heads: names of the boxes that are the model's heads, drawn last.
        tokens: the first tokens of the text. runs: the writing direction of the text, "ltr" or "rtl".
        chosen: name of the open box. layer: index of the open layer. layers: the number of layers.
        on_open: callable (box's name), called when a box is pressed.
        on_layer: callable (layer's index), called when the visitor goes to another layer.
    """

    def box_pressed(value):
        if isinstance(value, str):
            on_open(value)

    def moved(value):
        if type(value) is int:
            on_layer(value)

    _TOWER(
        key=key,
        presses={"open": box_pressed, "layer": moved},
        data={
            "boxes": boxes,
            "heads": heads,
            "tokens": list(tokens),
            "direction": runs,
            "chosen": chosen,
            "layer": layer,
            "layers": layers,
        },
    )
