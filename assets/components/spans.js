// The visitor's text with labelled spans. All user text is set by textContent.

function piece(state, part) {
  if (part.kind === undefined) return document.createTextNode(part.text);
  const span = document.createElement("button");
  span.type = "button";
  span.className = "span";
  span.style.setProperty("--kind", state.colours[part.kind % state.colours.length]);
  span.textContent = part.text;
  if (part.label) {
    const label = document.createElement("small");
    label.textContent = part.label;
    span.append(label);
  }
  span.dataset.tip = part.tip;
  span.setAttribute("aria-label", part.tip);
  span.tabIndex = -1;
  return span;
}

function entry(state, one) {
  const item = document.createElement("li");
  item.style.setProperty("--kind", state.colours[one.kind % state.colours.length]);
  const name = document.createElement("b");
  name.textContent = one.label;
  item.append(document.createElement("i"), name, document.createTextNode(one.note));
  return item;
}

function onKey(state, event) {
  const spans = [...state.root.querySelectorAll(".span")];
  const here = spans.indexOf(event.target.closest(".span"));
  const step = wordStep(event, spans.length);
  if (here < 0 || step === undefined) return;
  event.preventDefault();
  const next = spans[Math.max(0, Math.min(spans.length - 1, here + step))];
  spans[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export default inOrder(function ({ parentElement, data }) {
  const root = parentElement.querySelector(".spans");
  const state = root.state ?? (root.state = {});
  const drawn = JSON.stringify(data);
  // The same data again: leave the drawing and the hint unchanged.
  if (state.drawn === drawn) return;
  Object.assign(state, { root, drawn, colours: data.colours });
  const hint = root.querySelector(".hint");
  const tell = (span) => { hint.textContent = span ? span.dataset.tip : state.pinned ?? data.hint; };
  state.pinned = null;
  const text = root.querySelector(".text");
  text.dir = data.direction;
  text.replaceChildren(...data.parts.map((part) => piece(state, part)));
  root.querySelector(".legend").replaceChildren(...data.legend.map((one) => entry(state, one)));
  const first = root.querySelector(".span");
  if (first) first.tabIndex = 0;
  tell(null);
  root.onpointerover = (event) => tell(event.target.closest?.(".span"));
  root.onpointerleave = () => tell(null);
  onFocus(root, (element) => tell(element?.closest(".span")));
  // On a touch screen no pointer stays on the span after a tap: keep its hint.
  root.onclick = (event) => {
    state.pinned = event.target.closest(".span")?.dataset.tip ?? null;
    tell(event.target.closest(".span"));
  };
  root.onkeydown = (event) => onKey(state, event);
});
