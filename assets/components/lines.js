// The attention of one or several heads as lines from the tokens that look (left) to the tokens looked at (right).

const MOST = 500; // the largest number of lines while no token is chosen
const NAMESPACE = "http://www.w3.org/2000/svg";

function hue(state, head, side) {
  // Each of several heads has its colour; the lines of a single head have the colour of the text they come from.
  if (state.data.colours.length > 1) return state.data.colours[head];
  // Blue and orange of Okabe and Ito, which people with colour blindness can tell apart.
  if (side === "b") return state.dark ? "#f0b030" : "#d98200";
  if (side === "a") return state.dark ? "#56b4e9" : "#0072b2";
  return state.ink;
}

function tokens(state, column, texts, sides, side) {
  while (column.children.length < texts.length) column.append(document.createElement("div"));
  while (column.children.length > texts.length) column.lastElementChild.remove();
  texts.forEach((text, index) => {
    const token = column.children[index];
    token.className = `token${sides[index] ? "" : " special"}`;
    token.textContent = text;
    token.title = text;
    token.setAttribute("role", "option");
    token.tabIndex = index === 0 ? 0 : -1;
    token.dataset.side = side;
    token.dataset.index = index;
  });
}

function weight(state, head, row, column) {
  const { left, right } = state.data;
  return state.bytes[(head * left.length + row) * right.length + column] / 255;
}

// Whether a line belongs to the token under the pointer; true if the pointer is on no token.
function among({ focus }, row, column) {
  return !focus || focus.index === (focus.side === "left" ? row : column);
}

// The lines to draw, [head, row, column, weight], the strongest first.
function chosen(state) {
  const { left, right, least, colours } = state.data;
  const found = [];
  const focus = state.focus;
  const faintest = Math.max(least, focus ? 0.003 : 0.02);
  for (let head = 0; head < colours.length; head++) {
    for (let row = 0; row < left.length; row++) {
      for (let column = 0; column < right.length; column++) {
        const share = weight(state, head, row, column);
        if (among(state, row, column) && share >= faintest) found.push([head, row, column, share]);
      }
    }
  }
  found.sort((one, other) => other[3] - one[3]);
  return focus ? found : found.slice(0, MOST);
}

function wire(state, [head, row, column, share], width) {
  const middle = width * .4;
  const path = document.createElementNS(NAMESPACE, "path");
  const [y1, y2] = [(row + .5) * state.row, (column + .5) * state.row];
  path.setAttribute("d", `M0 ${y1}C${middle} ${y1} ${width - middle} ${y2} ${width} ${y2}`);
  path.setAttribute("fill", "none");
  path.setAttribute("stroke", hue(state, head, state.data.sides_left[row]));
  path.setAttribute("stroke-width", (0.6 + 2.6 * share).toFixed(2));
  path.setAttribute("stroke-opacity", Math.min(1, state.focus ? .1 + .9 * Math.sqrt(share) : .04 + .9 * share).toFixed(3));
  return path;
}

function draw(state) {
  const { wires, data } = state;
  const height = Math.max(data.left.length, data.right.length) * state.row;
  const width = wires.clientWidth || 200;
  wires.setAttribute("viewBox", `0 0 ${width} ${height}`);
  wires.style.height = `${height}px`;
  const found = chosen(state);
  wires.replaceChildren(...found.map((line) => wire(state, line, width)));
  wires.setAttribute("aria-label", told(state, found));
  few(state, found.length);
  shade(state);
}

// A note if weak lines are not drawn. The lines below the visitor's "Hide below" do not count.
function few(state, drawn) {
  const { left, right, least, colours } = state.data;
  let all = 0;
  for (let head = 0; head < colours.length; head++) {
    for (let row = 0; row < left.length; row++) {
      for (let column = 0; column < right.length; column++) {
        if (among(state, row, column) && weight(state, head, row, column) >= least) all++;
      }
    }
  }
  state.few.textContent = drawn < all ? `The strongest ${drawn.toLocaleString("en")} of ${all.toLocaleString("en")} lines are drawn.` : "";
}

// A description of the lines, for screen readers.
function told({ data }, found) {
  if (!found.length) return "No line";
  const said = found.slice(0, 5).map(([, row, column, share]) => `“${data.left[row]}” to “${data.right[column]}” ${percent(share)}`);
  return `${found.length} ${found.length === 1 ? "line" : "lines"}, the strongest: ${said.join("; ")}`;
}

function shade(state) {
  const { focus } = state;
  for (const side of ["left", "right"]) {
    for (const token of state[side].children) {
      const index = Number(token.dataset.index);
      token.classList.toggle("on", Boolean(focus) && focus.side === side && focus.index === index);
      token.setAttribute("aria-selected", String(Boolean(state.pinned && state.pinned.side === side && state.pinned.index === index)));
      const shares = focus && focus.side !== side ? state.data.colours.map((_, head) =>
        side === "right" ? weight(state, head, focus.index, index) : weight(state, head, index, focus.index)) : [];
      const held = shares.map((share) => (share >= state.data.least ? share : 0));
      token.style.backgroundImage = stripes(state, held);
      token.title = held.some(Boolean) ? `${token.textContent}: ${held.map(percent).join(", ")}` : token.textContent;
      token.setAttribute("aria-label", token.title);
    }
  }
  state.hint.textContent = hint(state);
}

// The background of a token: a stripe for each head, as opaque as the head's weight.
function stripes(state, shares) {
  if (!shares.some(Boolean)) return "none";
  const several = shares.length > 1;
  const parts = shares.flatMap((share, head) => {
    const colour = `color-mix(in srgb, ${several ? state.data.colours[head] : state.accent} ${(90 * share).toFixed(1)}%, transparent)`;
    return [`${colour} ${(100 * head) / shares.length}%`, `${colour} ${(100 * (head + 1)) / shares.length}%`];
  });
  return `linear-gradient(90deg, ${parts.join(", ")})`;
}

function hint(state) {
  const { focus, data } = state;
  if (!focus) return "Point at a token, or tap it, to see where it looks.";
  const looks = focus.side === "left";
  // With several heads each other token is named once, with its greatest weight.
  const found = new Map();
  for (const [, row, column, share] of chosen(state)) {
    const other = looks ? column : row;
    if (!found.has(other)) found.set(other, share);
  }
  if (!found.size) return "No weight of this token is large enough to be drawn.";
  const own = (looks ? data.left : data.right)[focus.index];
  const others = looks ? data.right : data.left;
  const said = [...found].slice(0, 3).map(([other, share]) => `“${others[other]}”, ${percent(share)}`);
  return `“${own}” ${looks ? "looks most at" : "is looked at most by"} ${said.join("; then ")}`;
}

function set(state, focus) {
  const same = focus?.side === state.focus?.side && focus?.index === state.focus?.index;
  state.focus = focus;
  if (same) return;
  draw(state);
  if (state.data.linked) tellToken(focus ? focus.index : null);
}

// Shows where the token looks that another component of the page has under the pointer.
function follow(state, position) {
  if (position === (state.focus ? state.focus.index : null)) return;
  state.focus = position !== null && position < state.data.left.length ? { side: "left", index: position } : state.pinned;
  draw(state);
}

function place(element) {
  const token = element?.closest?.(".token");
  return token ? { side: token.dataset.side, index: Number(token.dataset.index) } : null;
}

function listen(state) {
  const { stage } = state;
  stage.onpointerover = (event) => { if (event.pointerType !== "touch") set(state, place(event.target) ?? state.pinned); };
  stage.onpointerleave = () => set(state, state.pinned);
  stage.onclick = (event) => {
    const here = place(event.target);
    const again = here && state.pinned && here.side === state.pinned.side && here.index === state.pinned.index;
    state.pinned = again ? null : here;
    set(state, state.pinned);
    shade(state);
  };
  onFocus(stage, (element) => set(state, place(element) ?? state.pinned));
  stage.onkeydown = (event) => {
    const token = event.target;
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); token.click(); }
    if (!step || !token[step]) return;
    event.preventDefault();
    token.tabIndex = -1;
    token[step].tabIndex = 0;
    token[step].focus();
  };
}

// The drawing for a file: always for a white page.
function drawing(state) {
  const { data, row } = state;
  const light = { ...state, dark: false, ink: "#222" };
  const wide = 640;
  const edge = 150;
  const svg = document.createElementNS(NAMESPACE, "svg");
  const height = Math.max(data.left.length, data.right.length) * row;
  const set = (element, values) => Object.entries(values).forEach(([name, value]) => element.setAttribute(name, value));
  set(svg, { xmlns: NAMESPACE, viewBox: `0 0 ${wide} ${height}`, width: wide, height, "font-family": "sans-serif", "font-size": 13 });
  const ground = document.createElementNS(NAMESPACE, "rect");
  set(ground, { width: wide, height, fill: "#fff" });
  svg.append(ground);
  const group = document.createElementNS(NAMESPACE, "g");
  group.setAttribute("transform", `translate(${edge} 0)`);
  const width = wide - 2 * edge;
  group.append(...chosen(state).map((line) => wire(light, line, width)));
  svg.append(group);
  for (const [texts, x, anchor] of [[data.left, edge - 8, "end"], [data.right, wide - edge + 8, "start"]]) {
    texts.forEach((text, index) => {
      const label = document.createElementNS(NAMESPACE, "text");
      set(label, { x, y: (index + .5) * row + 4, "text-anchor": anchor, fill: "#222" });
      label.textContent = text;
      svg.append(label);
    });
  }
  return svg;
}

export default inOrder(function ({ parentElement, data }) {
  const stage = parentElement.querySelector(".stage");
  const state = stage.state ?? (stage.state = { focus: null, pinned: null });
  const find = (name) => parentElement.querySelector(name);
  const style = getComputedStyle(stage);
  const many = Math.max(data.left.length, data.right.length) > 48;
  const before = state.data;
  Object.assign(state, { data, stage, left: find(".left"), right: find(".right"), wires: find(".wires"),
    hint: find(".hint"), few: find(".few"), bytes: decode(data.bytes), row: many ? 18 : data.linked ? 20 : 24, ink: style.color, dark: isDark(style.color),
    accent: style.getPropertyValue("--st-primary-color").trim() || "#2b59c3" });
  // A chosen token stays chosen when the heads change; when the tokens change, no token is chosen.
  if (!before || before.left.join() !== data.left.join() || before.right.join() !== data.right.join()) {
    state.focus = state.pinned = null;
  }
  stage.style.setProperty("--row", `${state.row}px`);
  stage.style.setProperty("--size", many ? ".75rem" : ".88rem");
  tokens(state, state.left, data.left, data.sides_left, "left");
  tokens(state, state.right, data.right, data.sides_right, "right");
  listen(state);
  for (const button of parentElement.querySelectorAll(".save")) button.hidden = Boolean(data.linked);
  find(".svg").onclick = () => downloadSVG(withCaption(drawing(state), data.caption), data.name);
  find(".png").onclick = () => downloadPNG(withCaption(drawing(state), data.caption), data.name);
  find(".page").onclick = () => downloadPage(withCaption(drawing(state), data.caption), data.name);
  draw(state);
  const unwatched = onWidth(stage, () => draw(state));
  const unheard = data.linked ? onToken((position) => follow(state, position)) : () => {};
  return () => {
    unwatched();
    unheard();
  };
});
