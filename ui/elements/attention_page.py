"""An HTML page with the attention of many heads, for a file: the components ``grid`` and ``lines`` without a server."""

import base64
import html
import json
import re

import numpy as np

from bert_tf import plots
from ui.elements import components
from ui.elements.component_registry import component_parts
from ui.shell.limits import ROOT

#: Bytes of the maps in a page, one for each weight. Of a longer text the page has the heads of one layer, or one head.
MOST_BYTES = 9_000_000
_PAGE = (ROOT / "assets" / "components" / "attention_page.html").read_text("utf-8")


def attention_page(trace, selection, heads, ramp, caption, colours=("",), least=0.0):
    """An HTML page of a trace's attention that needs no other file: point at a token, choose tokens, a layer, a head.

    Args:
        trace: ``Trace`` with attention maps. selection: ``plots.Selection``, the tokens on both sides.
        heads: pairs (layer, head) that are open at first; the head None for the mean of the layer's heads.
        ramp: list of "#rrggbb", the colour scale of the small maps.
        caption: callable (name of a file such as "layer-1-head-2") -> what its figure shows.
        colours: "#rrggbb" of each open head if there are several. least: the least weight that is drawn.
    """
    layer_count, head_count = trace.attentions.shape[:2]
    size = len(selection.rows) * len(selection.columns)
    saved_heads, note = [(layer, head) for layer in range(layer_count) for head in range(head_count)], ""
    if size * len(saved_heads) > MOST_BYTES:
        saved_heads = [(heads[0][0], head) for head in range(head_count)]
        note = f"The text is long: this file has the heads of layer {heads[0][0] + 1}"
        if size * len(saved_heads) > MOST_BYTES:
            saved_heads, note = [], "The text is long: this file has the open heads"
    saved_heads = list(dict.fromkeys([*heads, *saved_heads]))
    maps = [_map(trace, selection, layer, head, caption) for layer, head in saved_heads]
    first = plots.lines(trace, trace.attentions[0, 0], selection)
    # "alone": without the menu Save of a page, the drawings have buttons of their own.
    lines = components.lines_data(first, "", colours, least, "") | {"bytes": "", "alone": True}
    small = plots.tiles(trace.attentions, selection, 200_000)
    hint = "Layers downwards, heads across. Press one to open it."
    grid = components.grid_data(
        small, ramp, (), "maps", False, 52, None, "all-heads", hint, "Maps of all heads.", caption("all-heads")
    ) | {"alone": True}
    open_heads = [(layer, -1 if head is None else head) for layer, head in heads]
    data = {"maps": maps, "lines": lines, "grid": grid, "open": open_heads, "note": note}
    parts = {
        "title": html.escape(caption("attention")),
        # "</script>" in a text would end the element that holds the data.
        "data": json.dumps(data).replace("<", "\\u003c"),
        "shared": component_parts("shared", ("js",))["js"],
    }
    for name in ("grid", "lines"):
        parts |= {f"{name}_{kind}": _standalone(name, kind, text) for kind, text in component_parts(name).items()}
    return re.sub("@@([a-z_]+)@@", lambda mark: parts[mark[1]], _PAGE)


def head_name(layer, head):
    """The name of a head in the name of a file; layer, head: from 0; the head None for the mean of the layer's."""
    return f"layer-{layer + 1}" + ("-mean" if head is None else f"-head-{head + 1}")


def _standalone(name, kind, text):
    return text.replace("export default", f"DRAW.{name} =") if kind == "js" else text


def _map(trace, selection, layer, head, caption):
    maps = trace.attentions[layer]
    weights = maps.mean(axis=0, dtype=np.float32) if head is None else maps[head]
    name = head_name(layer, head)
    values = plots.lines(trace, weights, selection).values
    return {
        "layer": layer,
        "head": -1 if head is None else head,
        "bytes": base64.b64encode(values.tobytes()).decode("ascii"),
        "name": name,
        "caption": caption(name),
    }
