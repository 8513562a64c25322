// The attention of one or several heads as lines from the tokens that look (left) to the tokens looked at (right).

const MOST = 500; // the largest number of lines while no token is chosen
const LONG = 128; // tokens of a side above which only lines of the part in sight are drawn
const LISTED = 8; // tokens that are listed with their numbers
const ROWS = [24, 10]; // the greatest height of a row in pixels, and the least at which a token can be read
const NAMESPACE = "http://www.w3.org/2000/svg";

function hue(state, head, side) {
  // Each of several heads has its colour; the lines of a single head have the colour of the text they come from.
  if (state.data.colours.length > 1) return state.data.colours[head];
  // Blue and orange of Okabe and Ito, which people with colour blindness can tell apart.
  if (side === "b") return state.dark ? "#f0b030" : "#d98200";
  if (side === "a") return state.dark ? "#56b4e9" : "#0072b2";
  return state.ink;
}

function tokens(column, texts, sides, side) {
  while (column.children.length < texts.length) column.append(document.createElement("div"));
  while (column.children.length > texts.length) column.lastElementChild.remove();
  texts.forEach((text, index) => {
    const token = column.children[index];
    token.className = `token${sides[index] ? "" : " special"}`;
    if (token.textContent !== text) token.textContent = text; // the browser lays out anew what is set, even if it is equal
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

// Calls back with every line, (head, row, column, weight), of the chosen tokens; with no token chosen, with every line
// that has an end in sight.
function each(state, callback) {
  const { left, right, colours } = state.data;
  const { focus } = state;
  const [top, bottom] = sight(state);
  const all = (list) => list.map((_, index) => index);
  const rows = focus?.side === "left" ? focus.indices : all(left);
  const columns = focus?.side === "right" ? focus.indices : all(right);
  for (let head = 0; head < colours.length; head++) {
    for (const row of rows) {
      for (const column of columns) {
        if (!focus && !(row >= top && row < bottom) && !(column >= top && column < bottom)) continue;
        callback(head, row, column, weight(state, head, row, column));
      }
    }
  }
}

// The first row in sight, and the one after the last. Of a text that is not long all rows count.
function sight(state) {
  if (!state.long) return [0, Infinity];
  const { scrollTop, clientHeight } = state.scroll;
  return [Math.floor(scrollTop / state.row), Math.ceil((scrollTop + clientHeight) / state.row)];
}

// The lines to draw, [head, row, column, weight], the strongest first, and how many there are without the bound.
function chosen(state) {
  const { focus, data: { least } } = state;
  const found = [];
  const faintest = Math.max(least, focus ? 0.003 : 0.02);
  let all = 0; // without the lines below the visitor's "Hide below"
  each(state, (head, row, column, share) => {
    if (share >= least) all++;
    if (share >= faintest) found.push([head, row, column, share]);
  });
  found.sort((one, other) => other[3] - one[3]);
  return { found: focus?.indices.length === 1 ? found : found.slice(0, MOST), all };
}

function newWire() {
  const path = document.createElementNS(NAMESPACE, "path");
  path.setAttribute("fill", "none");
  return path;
}

function wire(state, [head, row, column, share], width, path = newWire()) {
  const middle = width * .4;
  const [y1, y2] = [(row + .5) * state.row, (column + .5) * state.row];
  path.setAttribute("d", `M0 ${y1}C${middle} ${y1} ${width - middle} ${y2} ${width} ${y2}`);
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
  // The lines stay at their tokens where these get more room: it is taken from the drawing's width.
  wires.setAttribute("preserveAspectRatio", "none");
  const { found, all } = chosen(state);
  state.found = found;
  resize(wires, found.length, newWire);
  found.forEach((line, index) => wire(state, line, width, wires.children[index]));
  wires.setAttribute("aria-label", told(state, found));
  // A note if weak lines are not drawn.
  const where = state.long && !state.focus ? " in sight" : "";
  state.few.textContent = found.length < all
    ? `The strongest ${found.length.toLocaleString("en")} of ${all.toLocaleString("en")} lines${where} are drawn.` : "";
  shade(state);
}

// A description of the lines, for screen readers.
function told({ data }, found) {
  if (!found.length) return "No line";
  const said = found.slice(0, 5).map(([, row, column, share]) => `“${data.left[row]}” to “${data.right[column]}” ${percent(share)}`);
  return `${found.length} ${found.length === 1 ? "line" : "lines"}, the strongest: ${said.join("; ")}`;
}

// The weights between the chosen tokens and every token of the other side, summed over the chosen ones: for each other
// token an array with a number for each head.
function sums(state) {
  const { left, right, colours, least } = state.data;
  const others = state.focus.side === "left" ? right : left;
  const found = others.map(() => colours.map(() => 0));
  each(state, (head, row, column, share) => {
    if (share >= least) found[state.focus.side === "left" ? column : row][head] += share;
  });
  return found;
}

// A weight, or a sum of several tokens' weights, which can be above 1.
function amount(state, value) {
  return state.focus.side === "left" && state.focus.indices.length > 1 ? value.toFixed(2) : percent(value);
}

function shade(state) {
  const { focus } = state;
  const found = focus && sums(state);
  // What the sum of several tokens is at most: each gives out 1.
  const most = focus?.side === "left" ? focus.indices.length : 1;
  for (const side of ["left", "right"]) {
    for (const token of state[side].children) {
      const index = Number(token.dataset.index);
      token.classList.toggle("on", Boolean(focus) && focus.side === side && focus.indices.includes(index));
      token.setAttribute("aria-selected", String(Boolean(state.pinned && state.pinned.side === side && state.pinned.indices.includes(index))));
      const held = focus && focus.side !== side ? found[index] : [];
      token.style.backgroundImage = stripes(state, held.map((share) => share / most));
      token.title = held.some(Boolean) ? `${isolated(token.textContent)}: ${held.map((share) => amount(state, share)).join(", ")}` : token.textContent;
      token.setAttribute("aria-label", token.title);
    }
  }
  state.hint.textContent = hint(state, found);
  list(state, found);
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

// The other tokens in descending order, each with its greatest number among the heads: [index, number].
function strongest(found, most) {
  return found.map((shares, index) => [index, Math.max(...shares)]).filter(([, share]) => share >= .003)
    .sort((one, other) => other[1] - one[1]).slice(0, most);
}

// What the colours of a single head's lines mean, where there are both.
function meaning(data) {
  const both = data.colours.length === 1 && data.sides_left.includes("a") && data.sides_left.includes("b");
  return both ? " Blue lines come from text A, orange from B." : "";
}

function hint(state, found) {
  const { focus, data } = state;
  if (!focus) return `Point at a token, or tap it, to see where it looks${data.linked ? "." : "; Ctrl and a press choose several."}${meaning(data)}`;
  const looks = focus.side === "left";
  const first = strongest(found, data.linked ? 3 : 1);
  if (!first.length) return "No weight of this token is large enough to be drawn.";
  const [own, others] = looks ? [data.left, data.right] : [data.right, data.left];
  const names = focus.indices.slice(0, 6).map((index) => `“${isolated(own[index])}”`).join(", ") + (focus.indices.length > 6 ? ", …" : "");
  const said = first.map(([other, share]) => `“${isolated(others[other])}”, ${amount(state, share)}`).join("; then ");
  if (focus.indices.length === 1) return `${names} ${looks ? "looks most at" : "is looked at most by"} ${said}`;
  return looks ? `Sum of ${focus.indices.length} tokens, ${names}: they look most at ${said} of ${focus.indices.length}`
    : `Sum of ${focus.indices.length} tokens, ${names}: looked at most by ${said}`;
}

// The strongest targets in numbers: of the chosen tokens, or of the whole head.
function list(state, found) {
  if (state.data.linked) return;
  const { focus, data } = state;
  const others = focus?.side === "left" ? data.right : data.left;
  const entry = (text, numbers) => {
    const item = make("li", "", text);
    item.title = text;
    numbers.forEach(([number, head]) => {
      const mark = make("b", "", number);
      if (data.colours.length > 1) mark.style.borderBottomColor = data.colours[head];
      item.append(" ", mark);
    });
    return item;
  };
  const entries = focus
    ? strongest(found, LISTED).map(([index]) => entry(isolated(others[index]), found[index].map((share, head) => [amount(state, share), head])))
    : state.found.slice(0, LISTED).map(([head, row, column, share]) => entry(`${isolated(data.left[row])} → ${isolated(data.right[column])}`, [[percent(share), head]]));
  state.list.replaceChildren(...entries);
}

function isSame(one, other) {
  return one?.side === other?.side && one?.indices.join() === other?.indices.join();
}

function set(state, focus) {
  const same = isSame(focus, state.focus);
  state.focus = focus;
  if (same) return;
  draw(state);
  if (!state.data.linked) return;
  state.telling = true;
  tellToken(focus ? chipOf(state.data.linked, focus.indices[0]) : null);
  state.telling = false;
}

// Shows where the token looks that another component of the page has under the pointer.
function follow(state, chip) {
  const position = ownOf(state.data.linked, chip);
  if (state.telling || position === (state.focus ? state.focus.indices[0] : null)) return;
  state.focus = position !== null && position < state.data.left.length ? { side: "left", indices: [position] } : state.pinned;
  draw(state);
}

// Chooses a token, or takes the choice back. `more`: beside the tokens of the same side that are chosen already.
function pin(state, here, more) {
  const { pinned } = state;
  if (here && more && pinned?.side === here.side) {
    const [index] = here.indices;
    const rest = pinned.indices.filter((other) => other !== index);
    const indices = rest.length < pinned.indices.length ? rest : [...rest, index].sort((one, other) => one - other);
    state.pinned = indices.length ? { side: here.side, indices } : null;
  } else {
    state.pinned = isSame(here, pinned) ? null : here;
  }
  set(state, state.pinned);
  shade(state);
}

function place(element) {
  const token = element?.closest?.(".token");
  return token ? { side: token.dataset.side, indices: [Number(token.dataset.index)] } : null;
}

function listen(state) {
  const { stage } = state;
  stage.onpointerover = (event) => { if (event.pointerType !== "touch") set(state, place(event.target) ?? state.pinned); };
  stage.onpointerleave = () => set(state, state.pinned);
  stage.onclick = (event) => {
    const several = state.several || event.ctrlKey || event.metaKey || event.shiftKey;
    pin(state, place(event.target), several && !state.data.linked);
  };
  onFocus(stage, (element) => set(state, place(element) ?? state.pinned));
  stage.onkeydown = (event) => {
    const token = event.target;
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(state, place(token), (state.several || event.ctrlKey || event.metaKey || event.shiftKey) && !state.data.linked);
    }
    if (!step || !token[step]) return;
    event.preventDefault();
    token.tabIndex = -1;
    token[step].tabIndex = 0;
    token[step].focus();
  };
}

// ---- zoom

// The height of a row at which the whole text is in sight, at most that of a short text.
function wholeRow(state) {
  const most = Math.max(state.data.left.length, state.data.right.length);
  return Math.min(state.normal, Math.floor(100 * state.room / most) / 100);
}

// Draws the rows at another height; what was in the middle, or under the pointer, stays there.
function zoom(state, row, at = state.scroll.clientHeight / 2) {
  const { scroll } = state;
  const next = Math.min(Math.max(row, wholeRow(state)), ROWS[0]);
  const before = (scroll.scrollTop + at) / state.row;
  state.row = state.zoomed = next;
  measure(state);
  draw(state);
  scroll.scrollTop = before * next - at;
}

function measure(state) {
  const { stage, row } = state;
  stage.style.setProperty("--row", `${row}px`);
  stage.style.setProperty("--size", row < ROWS[1] ? "0" : row < 14 ? ".6rem" : row < 20 ? ".75rem" : ".88rem");
  stage.classList.toggle("small", row < ROWS[1]);
  state.zooms.hidden = !state.many;
  state.zooms.querySelector(".out").disabled = row <= wholeRow(state);
  state.zooms.querySelector(".in").disabled = row >= ROWS[0];
}

function listenToZoom(state, tell) {
  const { scroll, zooms } = state;
  zooms.querySelector(".out").onclick = () => zoom(state, state.row / 2);
  zooms.querySelector(".in").onclick = () => zoom(state, state.row * 2);
  zooms.querySelector(".whole").onclick = () => zoom(state, wholeRow(state));
  scroll.onwheel = (event) => {
    if (!state.many || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    zoom(state, state.row * Math.exp(-event.deltaY / 300), event.clientY - scroll.getBoundingClientRect().top);
  };
  scroll.onscroll = () => {
    if (!state.long) return;
    cancelAnimationFrame(state.redraw);
    state.redraw = requestAnimationFrame(() => draw(state));
    clearTimeout(state.stay);
    state.stay = setTimeout(() => tell(sight(state)[0]), 1500);
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
  group.append(...chosen(state).found.map((line) => wire(light, line, width)));
  svg.append(group);
  for (const [texts, x, anchor] of [[data.left, edge - 8, "end"], [data.right, wide - edge + 8, "start"]]) {
    if (row >= ROWS[1]) texts.forEach((text, index) => {
      const label = document.createElementNS(NAMESPACE, "text");
      set(label, { x, y: (index + .5) * row + 4, "text-anchor": anchor, fill: "#222" });
      label.textContent = text;
      svg.append(label);
    });
  }
  return svg;
}

export default inOrder(function ({ parentElement, data, send }) {
  const stage = parentElement.querySelector(".stage");
  const state = stage.state ?? (stage.state = { focus: null, pinned: null, several: false });
  const find = (name) => parentElement.querySelector(name);
  const style = getComputedStyle(stage);
  const longest = Math.max(data.left.length, data.right.length);
  const many = longest > 48;
  // Beside chips the rows are tight, but not where a finger presses them.
  const tight = data.linked && !matchMedia("(pointer: coarse)").matches;
  const before = state.data;
  Object.assign(state, { data, stage, many, long: longest > LONG, left: find(".left"), right: find(".right"), wires: find(".wires"),
    hint: find(".hint"), few: find(".few"), list: find(".strongest"), scroll: find(".scroll"), zooms: find(".zooms"),
    bytes: decode(data.bytes), normal: many ? 18 : tight ? 20 : 24, ink: style.color, dark: isDark(style.color),
    accent: style.getPropertyValue("--st-primary-color").trim() || "#2b59c3" });
  state.room = parseFloat(getComputedStyle(state.scroll).maxHeight) || 704;
  // A chosen token stays chosen when the heads change; when the tokens change, no token is chosen.
  const changed = !before || before.left.join() !== data.left.join() || before.right.join() !== data.right.join();
  if (changed) state.focus = state.pinned = state.zoomed = null;
  state.row = state.zoomed ?? state.normal;
  measure(state);
  tokens(state.left, data.left, data.sides_left, "left");
  tokens(state.right, data.right, data.sides_right, "right");
  listen(state);
  listenToZoom(state, (row) => {
    if (row !== state.start && stage.isConnected && send("start", row)) state.start = row;
  });
  for (const button of parentElement.querySelectorAll(".save")) button.hidden = Boolean(data.linked);
  state.list.hidden = Boolean(data.linked);
  parentElement.querySelector(".lines").classList.toggle("linked", Boolean(data.linked));
  if (data.framed) tellHeads({ heads: data.framed, several: false });
  const several = find(".several");
  several.setAttribute("aria-pressed", String(state.several));
  several.onclick = () => {
    state.several = !state.several;
    several.setAttribute("aria-pressed", String(state.several));
    if (!state.several && state.pinned?.indices.length > 1) pin(state, null, false);
  };
  const save = {
    svg: () => downloadSVG(withCaption(drawing(state), data.caption), data.name),
    png: () => downloadPNG(withCaption(drawing(state), data.caption), data.name),
    html: () => send("page", true),
  };
  for (const format of ["svg", "png"]) {
    find(`.${format}`).hidden = !data.alone;
    find(`.${format}`).onclick = save[format];
  }
  const unsaved = onSave(data.name, save);
  savePage(data);
  draw(state);
  if (changed) {
    state.start = data.start ?? 0;
    state.scroll.scrollTop = state.start * state.row;
  }
  const unwatched = onWidth(stage, () => draw(state));
  const unheard = data.linked ? onToken((chip) => follow(state, chip)) : () => {};
  return () => {
    unsaved();
    unwatched();
    unheard();
  };
});
