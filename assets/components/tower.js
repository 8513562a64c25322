// The model as boxes from the sentence down to the heads; a press opens a box, the arrows change the layer.

const COLOURS = { embeddings: "#0072b2", attention: "#e69f00", attention_norm: "#8a92a0", feed_forward: "#009e73",
  feed_forward_norm: "#8a92a0", pooler: "#56b4e9", nsp: "#cc79a7", sop: "#cc79a7", mlm: "#d55e00", replaced: "#d55e00" };

function make(tag, className, text) {
  const element = document.createElement(tag);
  element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".tower");
  const held = root.contains(root.getRootNode().activeElement) ? root.getRootNode().activeElement.dataset.name : null;
  const boxes = new Map(data.boxes.map((one) => [one.name, one]));

  function box(name) {
    const one = boxes.get(name);
    const button = make("button", "box");
    button.type = "button";
    button.dataset.name = name;
    button.style.setProperty("--part", COLOURS[name] ?? "#8a92a0");
    button.setAttribute("aria-pressed", String(name === data.chosen));
    button.append(make("span", "title", one.title), make("span", "size", one.size),
      make("span", "shape", one.shape), make("span", "work", one.work));
    if (one.share > 0) {
      const meter = make("span", "meter");
      const fill = document.createElement("i");
      fill.style.width = `${Math.max(100 * one.share, .7)}%`;
      meter.append(fill);
      button.append(meter);
    }
    button.onclick = () => setTriggerValue("open", name);
    return button;
  }

  function step(label, sign, change) {
    const button = make("button", "step", sign);
    button.type = "button";
    button.dataset.name = label;
    button.setAttribute("aria-label", label);
    button.disabled = data.layer + change < 0 || data.layer + change >= data.layers;
    button.onclick = () => setTriggerValue("layer", data.layer + change);
    return button;
  }

  function block(first, second) {
    const part = make("div", "block");
    part.append(box(first), make("div", "down"), box(second));
    return part;
  }

  const layer = make("div", "layer");
  const top = make("div", "top");
  top.append(make("b", "", `Encoder layer ${data.layer + 1} of ${data.layers}`),
    step("Layer above this one", "‹", -1), step("Layer after this one", "›", 1));
  layer.append(top, block("attention", "attention_norm"), make("div", "down"), block("feed_forward", "feed_forward_norm"));
  const words = make("div", "words");
  words.append(...data.tokens.map((token) => make("span", "", token)));
  const heads = make("div", "heads");
  heads.append(...data.heads.map(box));
  const all = [words, make("div", "down"), box("embeddings"), make("div", "down"), layer];
  if (data.heads.length) all.push(make("div", "down"), heads);
  root.replaceChildren(...all);
  if (held) root.querySelector(`[data-name="${held}"]`)?.focus();
}
