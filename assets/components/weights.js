// A table of bars with numbers: a row for each token, a column for each method. A press makes a token the one that looks.

function written(value) {
  return value === null ? "" : `${signed(100 * value, 1)}%`;
}

function head(data) {
  const row = document.createElement("tr");
  const corner = make("th", "", "Token");
  corner.scope = "col";
  row.append(corner);
  for (const { name, note } of data.columns) {
    const cell = make("th", "", name);
    cell.scope = "col";
    cell.append(make("small", "", note));
    row.append(cell);
  }
  return row;
}

function build(data) {
  const hues = data.dark ? ["#56b4e966", "#f0b03066"] : ["#0072b24d", "#d982004d"];
  const most = data.columns.map(({ values }) => values.reduce((found, value) => Math.max(found, Math.abs(value ?? 0)), 1e-9));
  return data.rows.map(({ token, position }, index) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    const button = make("button", "token", token);
    button.type = "button";
    button.dataset.position = position;
    button.setAttribute("aria-pressed", String(position === data.chosen));
    button.title = token;
    name.append(button);
    row.append(name);
    data.columns.forEach(({ values }, column) => {
      const cell = document.createElement("td");
      const bar = make("span", "bar", written(values[index]));
      bar.style.setProperty("--share", `${(100 * Math.abs(values[index] ?? 0)) / most[column]}%`);
      bar.style.setProperty("--hue", hues[Number(values[index] < 0)]);
      cell.append(bar);
      row.append(cell);
    });
    return row;
  });
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".weights");
  const table = root.querySelector("table");
  const held = root.getRootNode().activeElement?.dataset?.position;
  table.setAttribute("aria-label", data.label);
  table.style.setProperty("--columns", data.columns.length);
  root.querySelector(".hint").textContent = data.hint;
  table.tHead.replaceChildren(head(data));
  table.tBodies[0].replaceChildren(...build(data));
  const buttons = [...table.querySelectorAll("button")];
  const rove = (target) => buttons.forEach((button) => { button.tabIndex = button === target ? 0 : -1; });
  rove(buttons.find((button) => button.getAttribute("aria-pressed") === "true") ?? buttons[0]);
  if (held !== undefined) buttons.find((button) => button.dataset.position === held)?.focus();
  table.onclick = (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    rove(button);
    send("choose", Number(button.dataset.position));
  };
  table.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = step && buttons[buttons.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    rove(next);
    next.focus();
  };
});
