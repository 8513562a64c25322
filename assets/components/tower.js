// The model as boxes, from the sentence down to the heads. A press opens a box; the arrows change the layer.

const COLOURS = { embeddings: "#0072b2", attention: "#e69f00", attention_norm: "#8a92a0", feed_forward: "#009e73",
  feed_forward_norm: "#8a92a0", pooler: "#56b4e9", nsp: "#cc79a7", sop: "#cc79a7", mlm: "#d55e00", replaced: "#d55e00",
  task: "#6a5acd" };

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".tower");
  const state = root.state ?? (root.state = {});
  Object.assign(state, { data, send });
  const drawn = JSON.stringify([data.boxes, data.heads, data.tokens, data.direction, data.layers]);
  if (state.drawn === drawn) {
    // Only the open box or layer has changed. Do not build the boxes again: the pointer may be pressing one.
    mark();
    return;
  }
  state.drawn = drawn;
  const boxes = new Map(data.boxes.map((one) => [one.name, one]));

  function mark() {
    for (const one of root.querySelectorAll(".box")) {
      one.setAttribute("aria-pressed", String(one.dataset.name === state.data.chosen));
    }
    const { layer, layers } = state.data;
    root.querySelector(".top b").textContent = `Encoder layer ${layer + 1} of ${layers}`;
    for (const one of root.querySelectorAll(".step")) {
      const next = layer + Number(one.dataset.change);
      one.disabled = next < 0 || next >= layers;
    }
  }

  function box(name) {
    const one = boxes.get(name);
    const button = make("button", "box");
    button.type = "button";
    button.dataset.name = name;
    button.style.setProperty("--part", COLOURS[name] ?? "#8a92a0");
    button.append(make("span", "title", one.title), make("span", "size", one.size),
      make("span", "shape", one.shape), make("span", "work", one.work));
    if (one.share > 0) {
      const meter = make("span", "meter");
      const fill = document.createElement("i");
      fill.style.width = `${Math.max(100 * one.share, .7)}%`;
      meter.append(fill);
      button.append(meter);
    }
    button.onclick = () => state.send("open", name);
    return button;
  }

  function step(label, sign, change) {
    const button = make("button", "step", sign);
    button.type = "button";
    button.dataset.change = change;
    button.setAttribute("aria-label", label);
    button.onclick = () => {
      // Go there at once: a second press goes on from there.
      const data = { ...state.data, layer: state.data.layer + change };
      if (!state.send("layer", data.layer)) return;
      state.data = data;
      mark();
    };
    return button;
  }

  function block(first, second) {
    const part = make("div", "block");
    part.append(box(first), make("div", "down"), box(second));
    return part;
  }

  const layer = make("div", "layer");
  const top = make("div", "top");
  top.append(make("b", ""),
    step("Previous layer", "‹", -1), step("Next layer", "›", 1));
  layer.append(top, block("attention", "attention_norm"), make("div", "down"), block("feed_forward", "feed_forward_norm"));
  const words = make("div", "words");
  words.dir = data.direction;
  words.append(...data.tokens.map((token) => make("span", "", token)));
  const heads = make("div", "heads");
  heads.append(...data.heads.map(box));
  const all = [words, make("div", "down"), box("embeddings"), make("div", "down"), layer];
  if (data.heads.length) all.push(make("div", "down"), heads);
  root.replaceChildren(...all);
  mark();
});
