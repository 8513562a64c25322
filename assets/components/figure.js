// The description of a figure for screen readers, its colour scale, and its numbers as a table, opened with the keyboard.

function row(cells, matrix) {
  const line = document.createElement("tr");
  cells.forEach((text, index) => {
    const cell = document.createElement(matrix && index === 0 ? "th" : "td");
    if (cell.tagName === "TH") cell.scope = "row";
    if (!matrix) cell.className = "text";
    cell.textContent = text;
    line.append(cell);
  });
  return line;
}

function head(names) {
  const line = document.createElement("tr");
  for (const name of names) {
    // The corner of a matrix is not the heading of a column.
    const cell = document.createElement(name ? "th" : "td");
    if (name) cell.scope = "col";
    cell.textContent = name;
    line.append(cell);
  }
  return line;
}

// Sets the accessible name of the block that contains this component and the figure.
function label(element, what) {
  const block = element.getRootNode().host?.closest('[class*="st-key-figure_"]');
  block?.setAttribute("role", "figure");
  block?.setAttribute("aria-label", what);
}

// The colour scale: a strip with marks for its values. The first and the last mark do not reach beyond the strip.
function drawScale(box, scale) {
  box.hidden = !scale;
  if (!scale) return;
  const [name, strip, marks] = box.children;
  name.textContent = scale.name;
  strip.style.background = `linear-gradient(to right, ${scale.stops.map(([share, colour]) => `${colour} ${100 * share}%`).join(", ")})`;
  marks.replaceChildren(...scale.marks.map(([share, text]) => {
    const mark = document.createElement("span");
    mark.textContent = text;
    mark.style.left = `${100 * share}%`;
    mark.style.transform = `translateX(${-100 * share}%)`;
    return mark;
  }));
  const [first, last] = [scale.marks[0][1], scale.marks[scale.marks.length - 1][1]];
  box.setAttribute("aria-label", `Colours from ${first} to ${last}${scale.name && ` ${scale.name}`}`);
}

export default inOrder(function ({ parentElement, data, setStateValue }) {
  const find = (name) => parentElement.querySelector(name);
  const [ask, scroll, table] = [find(".ask"), find(".scroll"), find("table")];
  label(parentElement, data.what);
  find(".say").textContent = data.said;
  drawScale(find(".scale"), data.scale);
  const open = Boolean(data.table);
  ask.setAttribute("aria-expanded", String(open));
  ask.textContent = open ? "Hide the table" : "The numbers as a table";
  ask.setAttribute("aria-label", `${ask.textContent}: ${data.what}`);
  scroll.hidden = !open;
  scroll.setAttribute("aria-label", `Numbers: ${data.what}`);
  find(".cut").hidden = !data.table?.cut;
  find(".cut").textContent = data.table?.cut ?? "";
  if (open) {
    const matrix = data.table.header[0] === "";
    table.tHead.replaceChildren(head(data.table.header));
    table.tBodies[0].replaceChildren(...data.table.rows.map((cells) => row(cells, matrix)));
  } else {
    table.tHead.replaceChildren();
    table.tBodies[0].replaceChildren();
  }
  ask.onclick = () => setStateValue("open", !open);
});
