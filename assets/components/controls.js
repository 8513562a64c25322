// A row of small controls: buttons, menus and switches; a part of the components that have one.

// An element for a control; `paintControl` fills it in.
function buildControl({ kind, name }, send) {
  if (kind === "choice") {
    const select = make("select", "");
    select.onchange = () => send(name, select.selectedIndex);
    return select;
  }
  if (kind === "switch") {
    const [label, box] = [make("label", ""), make("input", "")];
    box.type = "checkbox";
    box.setAttribute("role", "switch");
    box.onchange = () => send(name, box.checked);
    label.append(box, make("span", ""));
    return label;
  }
  const [button, icon] = [make("button", ""), make("span", "icon")];
  button.type = "button";
  icon.setAttribute("aria-hidden", "true");
  button.append(icon, make("span", ""));
  button.onclick = () => send(name, null);
  return button;
}

function paintControl(element, control) {
  element.title = control.help;
  if (control.kind === "choice") {
    element.setAttribute("aria-label", control.label);
    resize(element, control.options.length, () => make("option", ""));
    control.options.forEach((text, index) => { element.children[index].textContent = text; });
    element.selectedIndex = control.chosen;
  } else if (control.kind === "switch") {
    element.lastChild.textContent = control.label;
    element.firstChild.checked = control.on;
  } else {
    element.disabled = control.disabled;
    element.firstChild.textContent = control.icon;
    element.lastChild.textContent = control.bare ? "" : control.label;
    if (control.bare) element.setAttribute("aria-label", control.label);
  }
}

// Draws the controls into `row`. What a visitor does with one is sent as "use".
function drawControls(row, controls, send) {
  row.send = (name, value) => {
    if (send("use", { name, value })) return;
    controls.forEach((control, index) => paintControl(row.children[index], control)); // as the server knows it
  };
  const kinds = controls.map(({ kind, name }) => `${kind} ${name}`).join();
  if (row.kinds !== kinds) {
    row.kinds = kinds;
    row.replaceChildren(...controls.map((control) => buildControl(control, (name, value) => row.send(name, value))));
  }
  controls.forEach((control, index) => paintControl(row.children[index], control));
}
