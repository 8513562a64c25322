"""Attention as lines between two columns of tokens, as HTML for a notebook.

After BertViz's head view (Vig 2019, "A Multiscale Visualization of Attention in the Transformer Model").
Dimension legend: L layers, N heads, T tokens.
"""

from __future__ import annotations

import base64
import html
import json
import uuid
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace

# With more tokens the lines would overlap and the HTML would take many megabytes.
_MOST_TOKENS, _LEAST_WEIGHT = 64, 0.02

_DRAWING = """<div id="NAME" style="font: 13px sans-serif">
<label>Layer <select class="layer"></select></label> <label>Head <select class="head"></select></label>
<svg role="img" aria-label="Attention as lines" style="display: block; max-width: 100%; margin-top: 6px"></svg>
<div>NOTE</div></div>
<script>(() => {
  const root = document.getElementById("NAME"), {tokens, layers, heads, weights, least} = DATA;
  const bytes = Uint8Array.from(atob(weights), (character) => character.charCodeAt(0)), count = tokens.length;
  const [layer, head] = ["layer", "head"].map((name) => root.querySelector("select." + name));
  const svg = root.querySelector("svg"), row = 20, width = 480, left = 150, right = 330;
  const add = (parent, tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  for (const [select, size] of [[layer, layers], [head, heads]])
    for (let index = 0; index < size; index++) select.add(new Option(index, index));
  layer.value = layers - 1;
  let chosen = null;
  const draw = () => {
    const start = (layer.value * heads + Number(head.value)) * count * count;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${count * row + 8}`);
    svg.setAttribute("width", width);
    const y = (index) => index * row + 16;
    for (let from = 0; from < count; from++) {
      if (chosen !== null && chosen !== from) continue;
      for (let to = 0; to < count; to++) {
        const weight = bytes[start + from * count + to] / 255;
        if (weight < least) continue;
        const line = add(svg, "line", {x1: left + 6, y1: y(from) - 4, x2: right - 6, y2: y(to) - 4, stroke: "#0072b2",
          "stroke-width": 2, "stroke-opacity": weight});
        add(line, "title", {}, `${tokens[from]} attends to ${tokens[to]}: ${weight.toFixed(2)}`);
      }
    }
    tokens.forEach((token, index) => {
      const label = add(svg, "text", {x: left, y: y(index), "text-anchor": "end", fill: "currentColor",
        style: "cursor: pointer", "font-weight": chosen === index ? "bold" : "normal"}, token);
      label.onclick = () => { chosen = chosen === index ? null : index; draw(); };
      add(svg, "text", {x: right, y: y(index), fill: "currentColor"}, token);
    });
  };
  layer.onchange = head.onchange = draw;
  draw();
})()</script>"""


def lines_html(trace: Trace) -> str:
    """The attention of every head as lines, one head at a time, as HTML.

    Menus choose layer and head, from 0. A click on a token on the left shows only its lines. At most the first 64
    tokens are drawn.

    Args:
        trace: Trace. A trace with attention maps, float [L, N, T, T].
    """
    attentions = np.asarray(trace.attentions)
    layers, heads, length, _ = attentions.shape
    count = min(length, _MOST_TOKENS)
    weights = np.rint(255 * attentions[:, :, :count, :count]).astype(np.uint8)
    data = {
        "tokens": trace.tokens[:count],
        "layers": layers,
        "heads": heads,
        "weights": base64.b64encode(weights.tobytes()).decode("ascii"),
        "least": _LEAST_WEIGHT,
    }
    note = "A token on the left attends to the tokens on the right. Click a token to see only its lines."
    if count < length:
        note += f" The first {count} of {length} tokens are drawn."
    # A "<" inside a script element could end the element.
    data_json = json.dumps(data).replace("<", "\\u003c")
    name = f"attention-{uuid.uuid4().hex}"
    return _DRAWING.replace("NAME", name).replace("NOTE", html.escape(note)).replace("DATA", data_json)
