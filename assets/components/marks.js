// The visitor's texts, each word on the colour of its score. All user text is set by textContent.

function piece(state, part) {
  if (part.tip === undefined) return document.createTextNode(part.text);
  const word = document.createElement("button");
  word.type = "button";
  word.className = ["word", part.hidden && "hidden", part.asked && "asked"].filter(Boolean).join(" ");
  word.textContent = part.hidden ? "[MASK]" : part.text;
  word.setAttribute("aria-label", part.tip);
  word.dataset.tip = part.tip;
  word.tabIndex = -1;
  if (!part.hidden) {
    const fill = rampColour(state.stops, part.shade);
    word.style.setProperty("--fill", `rgb(${fill.join()})`);
    word.style.setProperty("--ink", inkOn(fill));
  }
  return word;
}

function tell(state, word) {
  state.hint.textContent = word ? word.dataset.tip : state.pinned ?? state.data.hint;
}

function onKey(state, event) {
  const words = [...state.root.querySelectorAll(".word")];
  const here = words.indexOf(event.target.closest(".word"));
  const step = wordStep(event, words.length);
  if (here < 0 || step === undefined) return;
  event.preventDefault();
  const next = words[Math.max(0, Math.min(words.length - 1, here + step))];
  words[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export default inOrder(function ({ parentElement, data }) {
  const root = parentElement.querySelector(".marks");
  const state = root.state ?? (root.state = {});
  const drawn = JSON.stringify(data);
  // The same data again: leave the drawing and the hint unchanged.
  if (state.drawn === drawn) return;
  Object.assign(state, { root, data, drawn, stops: rampStops(data.ramp), hint: root.querySelector(".hint"), pinned: null });
  root.setAttribute("aria-label", `The words, from ${data.legend[0]} to ${data.legend[1]}`);
  for (const side of ["a", "b"]) {
    const text = root.querySelector(`[data-side="${side}"]`);
    text.parentElement.hidden = !data[side];
    text.dir = data.directions[side];
    text.replaceChildren(...(data[side] ?? []).map((part) => piece(state, part)));
  }
  const first = root.querySelector(".word");
  if (first) first.tabIndex = 0;
  root.querySelector(".low").textContent = data.legend[0];
  root.querySelector(".high").textContent = data.legend[1];
  root.querySelector(".scale").style.background = `linear-gradient(90deg, ${data.ramp.join()})`;
  tell(state, null);
  root.onpointerover = (event) => tell(state, event.target.closest?.(".word"));
  root.onpointerleave = () => tell(state, null);
  onFocus(root, (element) => tell(state, element?.closest(".word")));
  // On a touch screen no pointer stays on the word after a tap: keep its hint.
  root.onclick = (event) => {
    const word = event.target.closest(".word");
    state.pinned = word ? word.dataset.tip : null;
    tell(state, word);
  };
  root.onkeydown = (event) => onKey(state, event);
});
