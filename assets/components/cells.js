// A table of coloured cells. A press chooses a cell or switches it on or off; some tables cannot be pressed.

function head(state) {
  const { data } = state;
  const row = document.createElement("tr");
  for (const [index, text] of [data.corner, ...data.columns].entries()) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    if (data.breaks.includes(index - 1)) row.append(space());
    row.append(cell);
  }
  state.table.tHead.replaceChildren(row);
}

// The narrow space before a group of columns.
function space() {
  const cell = document.createElement("td");
  cell.className = "gap";
  cell.setAttribute("role", "presentation");
  return cell;
}

function build(state) {
  const { data } = state;
  state.cells = [];
  const rows = data.rows.map((_, r) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    row.append(name);
    for (let c = 0; c < data.columns.length; c++) {
      const cell = document.createElement("td");
      cell.setAttribute("role", "gridcell");
      cell.dataset.at = r * data.columns.length + c;
      cell.tabIndex = -1;
      if (data.breaks.includes(c)) row.append(space());
      row.append(cell);
      state.cells.push(cell);
    }
    return row;
  });
  state.table.tBodies[0].replaceChildren(...rows);
}

function paint(state) {
  const { data } = state;
  data.rows.forEach((text, r) => {
    const name = state.table.tBodies[0].rows[r].cells[0];
    name.textContent = text;
    name.title = text;
    name.className = data.strong.includes(r) ? "strong" : "";
  });
  state.cells.forEach((cell, at) => {
    const share = data.shades?.[at] ?? null;
    const fill = share === null ? null : rampColour(state.stops, share);
    cell.style.setProperty("--fill", fill ? `rgb(${fill.join()})` : "transparent");
    cell.style.setProperty("--ink", fill ? inkOn(fill) : "inherit");
    const off = Boolean(data.off?.[at]);
    cell.textContent = off ? "" : data.texts?.[at] ?? "";
    cell.setAttribute("aria-label", data.tips[at]);
    if (data.off || data.picked !== null) cell.setAttribute("aria-selected", String(off || data.picked === at));
    cell.className = [off && "off", data.edges?.[at] && "edge", data.picked === at && "picked"].filter(Boolean).join(" ");
  });
}

// If the table is wider than the page, scrolls to the column of the picked cell.
function reveal(state, box) {
  const cell = state.cells[state.data.picked];
  if (cell) box.scrollLeft = Math.max(0, cell.offsetLeft + cell.offsetWidth + 8 - box.clientWidth);
}

function rove(state, cell) {
  for (const one of state.cells) if (one.tabIndex === 0 && one !== cell) one.tabIndex = -1;
  if (cell) cell.tabIndex = 0;
}

function press(state, cell) {
  const at = Number(cell.dataset.at);
  rove(state, cell);
  const width = state.data.columns.length;
  if (state.data.still || !state.send("press", { row: Math.floor(at / width), column: at % width })) return;
  // Show the change at once; the server's data follow and replace it.
  if (state.data.off) state.data.off[at] = !state.data.off[at]; else state.data.picked = at;
  paint(state);
}

function onKey(state, event) {
  const cell = event.target.closest("td[data-at]");
  if (!cell) return;
  const at = Number(cell.dataset.at);
  const width = state.data.columns.length;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    press(state, cell);
    return;
  }
  const column = at % width;
  const next = { ArrowRight: column + 1 < width ? at + 1 : at, ArrowLeft: column > 0 ? at - 1 : at, ArrowDown: at + width,
    ArrowUp: at - width, Home: at - column, End: at - column + width - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const target = state.cells[next];
  if (target) { rove(state, target); target.focus(); }
}

function tell(state, cell) {
  state.hint.textContent = cell ? state.data.tips[Number(cell.dataset.at)] : state.data.hint;
}

function legend(state, root) {
  const box = root.querySelector(".legend");
  const { legend: ends, ramp } = state.data;
  box.hidden = !ends;
  if (!ends) return;
  box.querySelector(".low").textContent = ends[0];
  box.querySelector(".high").textContent = ends[1];
  box.querySelector(".scale").style.background = `linear-gradient(90deg, ${ramp.join()})`;
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".cells");
  const state = root.state ?? (root.state = {});
  const size = `${data.rows.length} ${data.columns.length}`;
  Object.assign(state, { data, send, stops: rampStops(data.ramp),
    table: root.querySelector("table"), hint: root.querySelector(".hint") });
  root.classList.toggle("text", Boolean(data.texts));
  root.classList.toggle("switches", Boolean(data.off));
  root.style.setProperty("--columns", data.columns.length);
  root.classList.toggle("many", data.columns.length > 10);
  root.classList.toggle("still", Boolean(data.still));
  state.table.setAttribute("aria-label", data.label);
  const fresh = state.size !== size;
  if (fresh) {
    state.size = size;
    build(state);
  }
  head(state);
  paint(state);
  if (fresh) reveal(state, root.querySelector(".scroll"));
  if (!state.cells.some((cell) => cell.tabIndex === 0)) rove(state, state.cells[data.picked ?? 0]);
  legend(state, root);
  tell(state, state.table.querySelector("td[data-at]:hover"));
  state.table.onclick = (event) => { const cell = event.target.closest("td[data-at]"); if (cell) press(state, cell); };
  state.table.onkeydown = (event) => onKey(state, event);
  state.table.onpointerover = (event) => tell(state, event.target.closest("td[data-at]"));
  state.table.onpointerleave = () => tell(state, null);
  onFocus(state.table, (element) => tell(state, element?.closest("td[data-at]") ?? null));
});
